"""
Learn from a stream with partial_fit
====================================

Online solvers learn rows as they arrive: ``partial_fit`` continues where the last call
ended, and ``classes`` names both labels in case the first block has only one. The
generated stream has 40,000 rows, 3 % positive, that come in blocks of 500; after each
block the precision on other rows is measured.

Both lines are means over 10 streams, with bands from the lowest to the highest. SGD\\@k
keeps the mean of its weights, and is steady after some 10,000 rows. The last weights of
the perceptron keep moving with each mistake, and its precision with them. Where a model
is used while it learns, take one that averages (``keep="mean"`` does it for the
perceptron, too).
"""

import matplotlib.pyplot as plt
import numpy as np

import precbench

METRIC, BLOCK = precbench.METRICS["precision_at_k"], 500


def generated(rng, n):
    X = rng.standard_normal((n, 20))
    return X, X[:, 0] + X[:, 1] + 0.7 * rng.standard_normal(n) > 3


curves = {"SGD@k, mean of the weights": [], "Perceptron@k, last weights": []}
for seed in range(10):
    rng = np.random.default_rng(seed)
    X, y = generated(rng, 40_000)
    X_new, y_new = generated(rng, 10_000)
    models = precbench.SGDAtK(k=0.25), precbench.PerceptronAtK(k=0.25)
    for model, seen in zip(models, curves.values(), strict=True):
        seen.append([])
        for start in range(0, len(y), BLOCK):
            rows = slice(start, start + BLOCK)
            model.partial_fit(X[rows], y[rows], classes=[False, True])
            seen[-1].append(METRIC(y_new, model.decision_function(X_new), k=0.25))

figure, axes = plt.subplots(figsize=(7, 4), layout="constrained")
rows_seen = np.arange(BLOCK, len(y) + 1, BLOCK)
for (name, values), colour in zip(curves.items(), ["#0072B2", "#D55E00"], strict=True):
    axes.plot(rows_seen, np.mean(values, axis=0), color=colour, label=name)
    low, high = np.min(values, axis=0), np.max(values, axis=0)
    axes.fill_between(rows_seen, low, high, color=colour, alpha=0.2, linewidth=0)
axes.set(xlabel="rows learnt", ylabel="precision@0.25 on new rows")
axes.grid(color="0.9")
figure.legend(loc="outside upper center", ncols=2, frameon=False)
plt.show()
