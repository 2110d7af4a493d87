"""
Precision at the top against logistic regression
================================================

Where few rows can be looked at, a linear method need not find all positives: it may
give up those that no straight line reaches and put the reachable ones first. Logistic
regression cannot, because each positive counts in its loss. In these generated lists 3
% of the rows are positive; four of ten of them stand out in one direction, the others
lie the other way.

Each grey line is one list, drawn anew with its own test rows (20 seeds). Among the
first rows, as many as a quarter of the positives, SGD\\@k finds more on average over
the lists. It pays for that with a lower AUC, the quality of the whole order. If you
would use the whole list, take logistic regression; and where one direction fits all
positives, the two hardly differ.
"""

import matplotlib.pyplot as plt
import numpy as np

import precbench


def generated(rng, n):
    y = rng.random(n) < 0.03
    X = rng.standard_normal((n, 10))
    reachable = rng.random(n) < 0.4
    X[y & reachable, 0] += 3
    X[y & ~reachable, :2] -= [1.5, 2.5]
    return X, y


methods = {
    "logistic\nregression": precbench.LogisticRegressionRanker(),
    "SGD@k": precbench.SGDAtK(k=0.25, random_state=0),
}
metrics = {"precision@0.25": ("precision_at_k", {"k": 0.25}), "AUC": ("auc", {})}
values = {name: [] for name in metrics}
for seed in range(20):
    rng = np.random.default_rng(seed)
    X, y = generated(rng, 8000)
    X_new, y_new = generated(rng, 20_000)
    scores = [method.fit(X, y).decision_function(X_new) for method in methods.values()]
    for name, (metric, parameters) in metrics.items():
        measure = precbench.METRICS[metric]
        values[name].append([measure(y_new, s, **parameters) for s in scores])

figure, panels = plt.subplots(1, 2, figsize=(7, 3.6), layout="constrained")
for axes, (name, pairs) in zip(panels, values.items(), strict=True):
    axes.plot([0, 1], np.transpose(pairs), color="0.75", linewidth=0.8)
    axes.plot(
        [0, 1],
        np.mean(pairs, axis=0),
        "o-",
        color="#D55E00",
        linewidth=2.5,
        label="mean",
    )
    axes.set(
        xticks=[0, 1],
        xticklabels=methods,
        xlim=(-0.4, 1.4),
        ylabel=f"{name} on new rows",
    )
    axes.grid(axis="y", color="0.9")
panels[0].plot([], [], color="0.75", label="one list")
panels[0].legend(loc="upper left", frameon=False)
plt.show()
