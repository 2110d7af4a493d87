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


@dataclass(kw_only=True, eq=False, repr=False)
class ProjectedSubgradient(LinearRanker):
    """PSG: projected subgradient descent on the whole training set.

    ``w_t = P_W[w_{t-1} - eta0 / sqrt(t) * g_t]`` with g_t a subgradient at w_{t-1} of the risk
    of `CuttingPlane` divided by 100, a loss as a share, and P_W the projection onto the ball.

    Parameters
    ----------
    objective : {"prec@k", "pauc", "f1", "auc"}, default="pauc"
    k : float, int or str, default=0.25
    beta : float, default=0.1
        Both as in `CuttingPlane`.
    eta0 : float, default=0.1
    radius : float or None, default=None
        Radius of the ball W; None for the whole space.
    max_iter : int, default=500
    average : bool, default=False
        Give the mean of w_1, ..., w_t instead of w_t.

    Attributes
    ----------
    intercept_ : float
        Only for "f1": the weight of a constant column, in the ball with the others.
    risk_ : float
        Risk of the w_{t-1} at which the last subgradient was taken, as a share.

    References
    ----------
    kar2014 (see `precbench.ranking.losses`), section 5; the method is that of Narasimhan,
    Agarwal, "SVM pAUC tight", KDD 2013. Neither states the steps; kar2014 tuned the scale.

    Examples
    --------
    >>> from precbench import ProjectedSubgradient
    >>> ranker = ProjectedSubgradient("auc", radius=0.25).fit([[1.0], [-1.0]], [1, 0])
    >>> ranker.coef_.round(3).tolist(), round(ranker.risk_, 3)  # the edge of the ball; 1 - 2 w
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
                self.coef_ = np.full_like(self.coef_, np.nan)  # is reported as an overflow
                break
            self.n_iter_ += 1
            self.n_rows_seen_ += len(labels)
            self.risk_ = point.risk / 100  # `risk` and its subgradient are in percent
            w = w - self.eta0 / np.sqrt(self.n_iter_) * risk.subgradient(point) / 100
            w = w * min(1.0, radius / max(norm(w), 1e-300))  # onto the ball; the norm may be 0
            mean = mean + (w - mean) / self.n_iter_  # of all w so far
            self._publish(mean if self.average else w, has_intercept=risk.has_intercept)
