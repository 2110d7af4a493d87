"""
The p of the P-Norm Push
========================

Rudin's P-Norm Push minimises the sum over negatives of the p-th power of what lies above each: with
p = 1 all pairs count alike, as in AUC, and with a large p the highest negatives count most. The
generated lists have positives of two kinds, as in fraud of two patterns: one direction finds a
quarter of them with certainty, another suits the majority.

Lines are means over 20 lists, each with its own test rows; bands are their 95 % intervals. From left
to right the precision at the top rises and the AUC falls. Raise p if only the top will be used; a p
chosen for the top makes the rest of the list worse. The gain ends where almost all the weight lies
on few negatives.
"""

import matplotlib.pyplot as plt
import numpy as np

import precbench

POWERS = [1, 2, 4, 8, 16]


def generated(rng, n):
    y = rng.random(n) < 0.3
    X = rng.standard_normal((n, 4))
    clear = rng.random(n) < 0.25
    X[y & clear, 0] += 3
    X[y & ~clear, :2] += [-0.5, 1]
    return X, y


metrics = {"precision@0.1": ("precision_at_k", {"k": 0.1}), "AUC": ("auc", {})}
values = {name: np.empty((20, len(POWERS))) for name in metrics}
for seed in range(20):
    rng = np.random.default_rng(seed)
    X, y = generated(rng, 1000)
    X_new, y_new = generated(rng, 10_000)
    for i, p in enumerate(POWERS):
        scores = precbench.PNormPush(p=p).fit(X, y).decision_function(X_new)
        for name, (metric, parameters) in metrics.items():
            values[name][seed, i] = precbench.METRICS[metric](y_new, scores, **parameters)

figure, panels = plt.subplots(1, 2, figsize=(7, 3.4), layout="constrained")
for axes, (name, of), colour in zip(panels, values.items(), ["#D55E00", "#0072B2"], strict=True):
    mean, half = of.mean(axis=0), 2.09 * of.std(axis=0, ddof=1) / 20**0.5
    axes.plot(POWERS, mean, "o-", color=colour)
    axes.fill_between(POWERS, mean - half, mean + half, color=colour, alpha=0.2, linewidth=0)
    axes.set_xscale("log", base=2)
    axes.set(xticks=POWERS, xticklabels=POWERS, xlabel="p", ylabel=f"{name} on new rows")
    axes.grid(color="0.9")
plt.show()
