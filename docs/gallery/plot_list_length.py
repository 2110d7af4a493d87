"""
Choose the length of a list by profit
=====================================

A longer list finds more hits, and each further row is less likely to be one. If a hit
gains 40 and a check costs 10, a row is worth checking as long as one in four like it is
a hit. ``compare`` measures hits and profit on held-out rows, for every length of a list
of new rows.

The 2,000 rows are generated, one in eight positive. Bands hold 95 % of such lists. The
profit rises to a maximum at the dotted line and falls below 0 if all rows are checked,
because then most checks are in vain. In the shaded range of lengths no difference from
the best is significant, so any round number in it will do. ``choice.plot()`` draws
precision and recall, too.
"""

import matplotlib.pyplot as plt
from sklearn.datasets import make_classification

import precbench

X, y = make_classification(
    2000, 10, weights=[0.9], class_sep=0.5, flip_y=0.05, random_state=0
)
choice = precbench.compare(
    X,
    y,
    k=100,
    gain=40,
    cost=10,
    solvers=["logistic-regression", "hist-gradient-boosting"],
)
print(choice.text)
found, table = choice.length.profit, choice.length.table

figure, panels = plt.subplots(2, sharex=True, figsize=(7, 5), layout="constrained")
columns = {"hits": ("low", "high"), "profit": ("profit_low", "profit_high")}
for axes, (name, (low, high)) in zip(panels, columns.items(), strict=True):
    axes.fill_between(
        table["length"],
        table[low],
        table[high],
        color="#56B4E9",
        alpha=0.35,
        linewidth=0,
    )
    axes.plot(table["length"], table[name], color="#0072B2")
    axes.axvspan(found.low, found.high, color="#E69F00", alpha=0.3, linewidth=0)
    axes.axvline(found.best, color="black", linestyle=":")
    axes.set_ylabel(f"{name} of the list")
    axes.grid(color="0.9")
panels[1].axhline(0, color="0.5", linewidth=0.8)
panels[1].set_xlabel("rows on the list, of 2,000")
panels[0].set_title(
    f"best length {found.best}, as good from {found.low} to {found.high}"
)
plt.show()
