"""
Which method is best on average? Mean ranks over tasks
======================================================

One data set says little about a method. Over several tasks, methods are ranked on each
and the ranks averaged, ties sharing their mean; ``precbench rank`` does so on the
dozens of tasks of the survey. Here the ten tasks are the digits of scikit-learn, each
ranked against the others; half of the rows are for training, and the measure is average
precision.

A dot is the rank on one task, a bar the mean of them. Trees and the neighbours of
scikit-learn come first, the four linear methods after them: a digit is no half-space.
Such an order belongs to its tasks; on others it may be another. Ten tasks about one set
of images are no ten independent ones, so no test is made of them.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from sklearn.neighbors import KNeighborsClassifier
from sklearn.preprocessing import scale

import precbench
from precbench.ranking.statistics import mean_ranks

X, digit = load_digits(return_X_y=True)
X_train, X_test, d_train, d_test = train_test_split(
    scale(X), digit, test_size=0.5, random_state=0
)
names = ["logistic-regression", "linear-svm", "sgd-avg", "bbr"]
methods = {name: precbench.SOLVERS[name]() for name in [*names, "extra-trees"]}
for name in ("sgd-avg", "extra-trees"):
    methods[name].set_params(random_state=0)
methods["extra-trees"].set_params(n_estimators=50)
methods["10 neighbours"] = KNeighborsClassifier(10, weights="distance")

values = np.empty((10, len(methods)))
for task in range(10):
    for i, method in enumerate(methods.values()):
        method.fit(X_train, d_train == task)
        if hasattr(method, "decision_function"):
            scores = method.decision_function(X_test)
        else:
            scores = method.predict_proba(X_test)[:, 1]
        values[task, i] = precbench.METRICS["average_precision"](d_test == task, scores)

ranks = np.array([mean_ranks(row[np.newaxis]) for row in values])
means = mean_ranks(values)
order = np.argsort(-means)
figure, axes = plt.subplots(figsize=(7, 3.8), layout="constrained")
for place, i in enumerate(order):
    axes.plot(
        ranks[:, i],
        place + np.linspace(-0.2, 0.2, 10),
        "o",
        color="#56B4E9",
        markersize=4,
    )
    axes.plot(
        [means[i]] * 2, [place - 0.35, place + 0.35], color="#D55E00", linewidth=3
    )
axes.set(yticks=range(len(order)), yticklabels=np.array([*methods])[order])
axes.set_xlabel("rank by average precision, 1 is best")
plt.show()
