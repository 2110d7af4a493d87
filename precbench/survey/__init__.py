"""The survey: which method is the best where, and the page that says so.

``make survey`` runs it, and ``python -m precbench.survey results`` takes the means of the runs in
results/top-* into results/reference/top.csv, which everything else here is made from.
"""
