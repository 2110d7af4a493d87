"""
The p of the P-Norm Push
========================

Rudin's P-Norm Push minimises the sum over negatives of the p-th power of what lies
above each: with p = 1 all pairs count alike, as in AUC, and with a large p the highest
negatives count most. In these generated lists one in ten rows is positive; four of ten
of them stand out in one direction, the others lie the other way.

Points are means over 20 lists, each with its own test rows, of the difference to p = 1
on the same list; bands are 95 % intervals. The larger p, the higher the precision at
the top, and from p = 4 on the lower the AUC. Raise p if only the top will be used: the
rest of the list pays for it.
"""

import matplotlib.pyplot as plt
import numpy as np

import precbench

POWERS = [1, 2, 4, 8, 16]


def generated(rng, n):
    y = rng.random(n) < 0.1
    X = rng.standard_normal((n, 5))
    reachable = rng.random(n) < 0.4
    X[y & reachable, 0] += 3
    X[y & ~reachable, :2] -= [1.5, 2.5]
    return X, y


metrics = {"precision@0.25": ("precision_at_k", {"k": 0.25}), "AUC": ("auc", {})}
values = {name: np.empty((20, len(POWERS))) for name in metrics}
for seed in range(20):
    rng = np.random.default_rng(seed)
    X, y = generated(rng, 2000)
    X_new, y_new = generated(rng, 10_000)
    for i, p in enumerate(POWERS):
        scores = precbench.PNormPush(p=p).fit(X, y).decision_function(X_new)
        for name, (metric, parameters) in metrics.items():
            values[name][seed, i] = precbench.METRICS[metric](
                y_new, scores, **parameters
            )

figure, panels = plt.subplots(1, 2, figsize=(7, 3.4), layout="constrained")
for axes, (name, of), colour in zip(
    panels, values.items(), ["#D55E00", "#0072B2"], strict=True
):
    gain = of - of[:, :1]
    mean, half = gain.mean(axis=0), 2.09 * gain.std(axis=0, ddof=1) / 20**0.5
    axes.plot(POWERS, mean, "o-", color=colour)
    axes.fill_between(
        POWERS, mean - half, mean + half, color=colour, alpha=0.2, linewidth=0
    )
    axes.set_xscale("log", base=2)
    axes.set(
        xticks=POWERS,
        xticklabels=POWERS,
        xlabel="p",
        ylabel=f"{name}, difference to p = 1",
    )
    axes.grid(color="0.9")
plt.show()
