"""
Reproduce and draw a study of a paper
=====================================

A study is a figure or table of a paper that needs no training. `precbench.run`, or the
command ``precbench run NAME``, computes it, and writes its numbers as ``values.csv``
beside a figure and a report. This one is Figure 1 of Rudin (2009): what each pair of a
positive and a negative adds to the objective of the P-Norm Push, in a list of 12
positives and 8 negatives.

The shares of the negatives are drawn again from the file. With p = 1 the highest
negative has a fifth of the objective and the lowest still a twelfth; with p = 16 the
first one alone has more than nine tenths: it pays to push this one down, and nothing
else. ``precbench list configs`` names the other studies and experiments, and
``precbench check`` compares what they computed with what the papers print.
"""

import tempfile

import matplotlib.pyplot as plt

import precbench

with tempfile.TemporaryDirectory() as folder:
    values = precbench.run("rudin2009/fig-1-and-4", out=folder).frame

of_negatives = values[
    (values["positive"] == "all") & values["objective"].str.startswith("p=")
]

figure, axes = plt.subplots(figsize=(7, 3.8), layout="constrained")
colours = ["#0072B2", "#56B4E9", "#009E73", "#E69F00", "#D55E00"]
markers = "os^Dv"
pushes = of_negatives.groupby("objective", sort=False)
for (name, rows), colour, marker in zip(pushes, colours, markers, strict=True):
    axes.plot(rows["negative"], rows["value"], color=colour, marker=marker, label=name)
axes.set(
    xlabel="negative, from the highest to the lowest", ylabel="share of the objective"
)
axes.grid(color="0.9")
axes.legend(loc="center left", bbox_to_anchor=(1, 0.5), frameon=False)
plt.show()
