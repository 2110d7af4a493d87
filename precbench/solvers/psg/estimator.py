"""Projected subgradient descent on the risk of all training rows."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from precbench.ranking.losses import OBJECTIVES
from precbench.ranking.topk import TopK
from precbench.solvers.common.base import LinearRanker, Trace
from precbench.solvers.common.parameters import (
    BOOLEAN,
    COUNT,
    POSITIVE,
    RADIUS,
    SHARE,
    Allowed,
    K,
    one_of,
)
from precbench.solvers.common.rows import STORED, norm
from precbench.solvers.cutting_plane.estimator import TrainingRisk

_LEAST_NORM = 1e-300  # in place of a norm of 0, by which no radius can be divided


@dataclass(kw_only=True, eq=False, repr=False)
class ProjectedSubgradient(LinearRanker):
    """Projected subgradient descent (PSG) on the risk of the whole training set.

    Each step t = 1, 2, ... is

        w_t = P_W[w_(t-1) - eta0 / sqrt(t) g_t],

    with P_W the projection onto the ball ``||w|| <= radius`` and g_t a subgradient at
    w_(t-1) of the loss R of the objective. In the scores s = X w of n rows, n_pos of
    them positive and n_neg negative, R is

    ``prec@k``
        ``max [#(ones on negatives) / k + 1/n sum_i (y'_i - y_i) s_i]`` over the
        labellings y' with k ones: the struct surrogate at the scores ``k/n s``, divided
        by k.
    ``pauc``, ``auc``
        The mean of the hinges ``max(0, 1 - (s_i - s_j))`` over the pairs of a positive
        i and one of the ``ceil(beta n_neg)`` highest negatives j, or over all pairs.
    ``f1``
        ``max [1 - F1(y, y') + 1/n sum_i (y'_i - y_i) s_i]`` over all labellings y'.

    A simple batch baseline: each step reads all rows, and no gap says how far the
    minimum is.

    Parameters
    ----------
    objective : {"prec@k", "pauc", "f1", "auc"}, default="pauc"
        The loss R, see above.
    k : float, int or str, default=0.25
        Length of the top of the list, for "prec@k" only. An int is a number of rows, a
        float in (0, 1] a fraction of the positives, and text such as "1 %" a fraction
        of the rows; fractions are rounded up. So 1 is a single row, and 1.0 as many
        rows as there are positives. Training takes at most as many rows as there are
        positives, and warns if `k` is more.
    beta : float, default=0.1
        Fraction of the negatives in (0, 1], rounded up, that form pairs; for "pauc"
        only.
    eta0 : float, default=0.1
        Length of the first step, above 0, as a multiple of the subgradient.
    radius : float or None, default=None
        Radius of the ball, above 0; None for the whole space.
    max_iter : int, default=500
        Number of steps, at least 1; each visits all rows.
    average : bool, default=False
        Whether the model is the mean of w_1, ..., w_t instead of w_t.

    Attributes
    ----------
    coef_ : ndarray of shape (n_features,)
        Weights w of the features: a row x has the score ``w' x``, plus `intercept_` if
        there is one.
    intercept_ : float
        Weight of a constant column, in the ball with the other weights. Only if the
        objective is "f1".
    risk_ : float
        R at the w_(t-1) of the last step, a share, not in percent; infinite before the
        first step.
    threshold_ : float
        Where `predict` cuts the list; `decision_function` subtracts it. With "prec@k"
        the first `k` training rows score above it, with other objectives as many as
        there are positives, except for ties. Only after a `fit` without a trace, and
        not with an `intercept_`.
    classes_ : ndarray of shape (2,)
        The two labels in ascending order; the second is the positive class.
    n_features_in_ : int
        Number of features of the training rows.
    n_iter_ : int
        Steps so far.
    n_rows_seen_ : int
        Rows visited, repeated visits included: all training rows in each step.

    Notes
    -----
    R is that of `CuttingPlane` without its weight and divided by 100. R of "prec@k"
    with k below the number of positives may be below 0, and without a ball may have no
    minimum.

    References
    ----------
    kar2014 (Kar, Narasimhan, Jain, "Online and stochastic gradient methods for
    non-decomposable loss functions", NIPS 2014), section 5, compares with it. The
    method for "pauc" is that of Narasimhan, Agarwal, "SVM pAUC tight", KDD 2013.
    Neither states the steps; kar2014 tuned their scale.

    Examples
    --------
    >>> from precbench import ProjectedSubgradient
    >>> ranker = ProjectedSubgradient("auc", radius=0.25).fit([[1.0], [-1.0]], [1, 0])
    >>> ranker.coef_.round(3).tolist(), round(ranker.risk_, 3)  # at the edge; 1 - 2 w
    ([0.25], 0.5)
    """

    objective: str = field(default="pauc", kw_only=False)
    k: TopK = 0.25
    beta: float = 0.1
    eta0: float = 0.1
    radius: float | None = None
    max_iter: int = 500
    average: bool = False

    dtypes = STORED

    allowed = Allowed(
        objective=one_of(*OBJECTIVES),
        k=K,
        beta=SHARE,
        eta0=POSITIVE,
        radius=RADIUS,
        max_iter=COUNT,
        average=BOOLEAN,
    )

    def _fit(self, X: Any, labels: NDArray[np.int8], trace: Trace) -> None:
        """Step down the subgradient and project onto the ball, `max_iter` times."""
        risk = TrainingRisk(X, labels, self.objective, k=self.k, beta=self.beta)
        radius = np.inf if self.radius is None else self.radius
        w = mean = np.zeros(risk.n_weights)
        self._publish(w, has_intercept=risk.has_intercept)
        self.n_iter_ = self.n_rows_seen_ = 0
        self.risk_ = np.inf
        while not trace(self) and self.n_iter_ < self.max_iter:
            point = risk.at(w)
            if not np.isfinite(point.risk):
                # `fit` reports these weights as an overflow.
                self.coef_ = np.full_like(self.coef_, np.nan)
                break
            self.n_iter_ += 1
            self.n_rows_seen_ += len(labels)
            self.risk_ = point.risk / 100  # `risk` and its subgradient are in percent
            # w_t = P_W[w_(t-1) - eta0 / sqrt(t) g_t]
            w = w - self.eta0 / np.sqrt(self.n_iter_) * risk.subgradient(point) / 100
            w = w * min(1.0, radius / max(norm(w), _LEAST_NORM))
            mean = mean + (w - mean) / self.n_iter_  # of w_1, ..., w_t
            self._publish(mean if self.average else w, has_intercept=risk.has_intercept)
