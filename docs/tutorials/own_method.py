"""
A method of one's own
=====================

For anyone who has a method of their own. After this page you can write a ranker in 20
lines, and measure it against one that is there. It is the *centroid* rule: the weights
are the mean of the positive rows minus the mean of the negative ones.
"""

# %%
# The class
# ---------
# A solver with weights is a subclass of :class:`precbench.solvers.LinearRanker`, which
# checks the input, turns labels into -1 and +1, and ranks rows by ``X @ coef_``. We
# write ``_fit``, and call the trace before the first update and after each slice of
# work, so that a curve can be drawn.

import numpy as np

import precbench
from precbench.solvers import LinearRanker, as_rows, weighted_sum
from precbench.solvers.common.parameters import Allowed


class Centroid(LinearRanker):
    """Rank rows along the line from the mean negative to the mean positive."""

    allowed = Allowed()

    def _fit(self, X, labels, trace):
        self._start(X.shape[1])
        if trace(self):
            return
        weights = np.where(labels > 0, 1 / np.sum(labels > 0), -1 / np.sum(labels < 0))
        self.coef_ = weighted_sum(as_rows(X), weights, X.shape[1])
        self.n_iter_, self.n_rows_seen_ = 1, len(labels)
        trace(self)


# %%
# It is an estimator
# ------------------
# Pipelines, searches and cross-validation take it as any other of scikit-learn.

from sklearn.datasets import load_breast_cancer
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

X, y = load_breast_cancer(return_X_y=True)
y = y == 0  # malignant
scorer = precbench.precision_at_k_scorer(0.25)
for solver in (Centroid(), precbench.SGDAtK(k=0.25, random_state=0)):
    found = cross_val_score(
        make_pipeline(StandardScaler(), solver), X, y, scoring=scorer, cv=5
    )
    print(f"{type(solver).__name__}: {found.mean():.3f}")

# %% On these easy data the simple rule does as well; :doc:`/all-solvers` shows where
# methods differ.

# %%
# Is it consistent?
# -----------------
# Dense and sparse rows have to give the same ranking.

from scipy.sparse import csr_array

dense, sparse = Centroid().fit(X, y), Centroid().fit(csr_array(X), y)
np.testing.assert_array_equal(dense.coef_, sparse.coef_)

# %%
# Next
# ----
# :doc:`/add-a-solver` gives it a name, by one line in a ``pyproject.toml``: configs and
# tables then know it, and the common tests try it. :doc:`/rank-your-method` places it
# among the methods of the survey.
