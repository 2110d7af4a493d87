"""
Write a solver and compare it
=============================

A solver of your own is a subclass of ``LinearRanker`` with one method: the base class
checks rows and labels, and ranks by ``X @ coef_``. This one, a batch perceptron on
confused pairs, puts the lowest positive against the highest negative, the second
against the second, and adds the differences of those in the wrong order.

As an estimator it can stand in ``cross_val_score`` beside the solvers of precbench at
once. Each grey line is one of ten folds of the digits of scikit-learn, ranked for being
an 8; the measure is the precision in the first 10 % of the rows. On average over the
folds the new solver is behind both others, but not in each fold, and one split could
have said otherwise. To use a solver by its name, in ``compare`` and in configs,
register it by an entry point of a package.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.model_selection import StratifiedKFold, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import precbench
from precbench.solvers import LinearRanker


class PairPerceptron(LinearRanker):
    def __init__(self, *, max_iter=100):
        self.max_iter = max_iter

    def _fit(self, X, labels, trace):
        positives, negatives = np.flatnonzero(labels > 0), np.flatnonzero(labels < 0)
        n_pairs = min(len(positives), len(negatives))
        self._start(X.shape[1])
        while not trace(self) and self.n_iter_ < self.max_iter:
            scores = X @ self.coef_
            low = positives[np.argsort(scores[positives], kind="stable")[:n_pairs]]
            high = negatives[np.argsort(-scores[negatives], kind="stable")[:n_pairs]]
            wrong = scores[low] <= scores[high]
            self.coef_ = self.coef_ + (X[low[wrong]] - X[high[wrong]]).sum(axis=0)
            self.n_iter_ += 1
            self.n_rows_seen_ += len(labels)


X, digit = load_digits(return_X_y=True)
solvers = [PairPerceptron(), precbench.SGDAtK(k=1.0, random_state=0)]
solvers.append(precbench.LogisticRegressionRanker())
how = {"cv": StratifiedKFold(10, shuffle=True, random_state=0)}
how["scoring"] = precbench.precision_at_k_scorer("10 %")
pipelines = [make_pipeline(StandardScaler(), solver) for solver in solvers]
folds = np.array([cross_val_score(pipe, X, digit == 8, **how) for pipe in pipelines])
figure, axes = plt.subplots(figsize=(7, 3.8), layout="constrained")
axes.plot(folds, color="0.75", linewidth=0.8)
axes.plot(folds.mean(axis=1), "o", color="#D55E00", markersize=9)
axes.set(xticks=range(3), xticklabels=[type(solver).__name__ for solver in solvers])
axes.set(xlim=(-0.4, 2.4), ylabel="precision in the first 10 % of a fold")
axes.grid(axis="y", color="0.9")
plt.show()
