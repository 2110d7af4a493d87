"""
Confidence interval of precision at k
=====================================

A list of 50 rows in which 30 are hits has a precision of 0.6, and the next list will
have another. ``interval_at_k`` says from this one list where the mean over new lists
lies, with 95 % confidence. It is not the interval of 50 coin tosses: which rows come
first depends on the other rows, too.

Each bar is one of 60 generated lists of 1,000 rows, ranked by a fixed rule; the line is
the mean over 2,000 other lists. About one interval in twenty does not hold it (orange);
in this picture it may be a few more or less. The bars are long: a difference of a few
hits between two methods on one list of this length tells nothing, and ``compare``,
which pairs methods over splits, can tell more.
"""

import matplotlib.pyplot as plt
import numpy as np

import precbench

K = 50
rng = np.random.default_rng(0)


def generated():
    risk = rng.standard_normal(1000)
    return risk + rng.standard_normal(1000) > 2, risk


mean = np.mean(
    [precbench.METRICS["precision_at_k"](*generated(), k=K) for _ in range(2000)]
)
figure, axes = plt.subplots(figsize=(7, 3.8), layout="constrained")
missed = 0
for i in range(60):
    y, risk = generated()
    precision = precbench.METRICS["precision_at_k"](y, risk, k=K)
    low, high = precbench.interval_at_k(y, risk, k=K)
    holds = low <= mean <= high
    missed += not holds
    colour = "#0072B2" if holds else "#D55E00"
    axes.plot([i, i], [low, high], color=colour)
    axes.plot(i, precision, ".", color=colour)
axes.axhline(mean, color="black", linestyle="--")
axes.set_title(
    f"mean over new lists {mean:.3f}, in all intervals but {missed}", fontsize=10
)
axes.set(xlabel="list", ylabel=f"precision in the first {K} rows")
axes.grid(axis="y", color="0.9")
plt.show()
