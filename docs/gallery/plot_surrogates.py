"""
Surrogates of precision at k
============================

Precision at k is a step function of the scores: it tells an optimiser nothing until two
rows change places. Kar, Narasimhan and Jain (2015) replace it by surrogates that have a
slope. Here one negative row moves through a list of four positives and two negatives,
and the loss counts the false positives among the first two rows.

The loss jumps to 1 where the row passes the second positive. Ramp, avg and max are
never below it, nor one below the one before: ramp is the closest, but not convex, and
max rises first. All rise before the row reaches the top, which is what a solver learns
from. Struct, of an earlier paper, is no bound where k is smaller than the number of
positives: it is below the loss here, and for most places of the row even below 0. The
solvers ``sgd-avg`` and ``sgd-max`` minimise two of them.
"""

import matplotlib.pyplot as plt
import numpy as np

import precbench

y = np.array([1, 1, 1, 1, 0, 0])
fixed = [3.0, 2.5, 1.0, 0.5, -1.0]
moved = np.linspace(-2, 3.8, 581)
lists = [np.array([*fixed, score]) for score in moved]
curves = {
    "false positives": [
        2 * (1 - precbench.METRICS["precision_at_k"](y, scores, k=2))
        for scores in lists
    ]
}
for name in ("ramp", "avg", "max", "struct"):
    surrogate = precbench.SURROGATES[name]
    curves[name] = [surrogate.value(scores, y, 2) for scores in lists]

figure, axes = plt.subplots(figsize=(7, 4), layout="constrained")
looks = ["black", "#0072B2", "#009E73", "#D55E00", "#CC79A7"]
dashes = ["-", "-", "--", "-.", ":"]
for (name, values), colour, dash in zip(curves.items(), looks, dashes, strict=True):
    axes.plot(moved, values, color=colour, linestyle=dash, linewidth=2, label=name)
axes.plot(fixed[:4], [-2.2] * 4, "^", color="0.4", label="positives (fixed)")
axes.plot(
    fixed[4:],
    [-2.2],
    "v",
    color="0.4",
    markerfacecolor="none",
    label="other negative (fixed)",
)
axes.set(xlabel="score of the moving negative row", ylabel="loss, of the first 2 rows")
axes.grid(color="0.9")
axes.legend(loc="center left", bbox_to_anchor=(1, 0.5), frameon=False)
plt.show()
