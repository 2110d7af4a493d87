"""The survey: which method is the best where, and the page that says so.

``make survey`` runs all contestants on its tasks, by the rules of docs/survey-rules.md,
and takes their values on each split into results/reference/survey.csv.gz, which all
else here is made from.
"""
