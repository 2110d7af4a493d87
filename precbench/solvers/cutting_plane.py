"""The cutting-plane method on a structural surrogate: the part that SVMperf plays in the papers."""

import warnings
from numbers import Integral, Real
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import _fit_context
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils._param_validation import Interval, StrOptions

from precbench.kernels import cutting_plane
from precbench.metrics import resolve_k
from precbench.solvers.base import (
    K_CONSTRAINT,
    LinearRanker,
    Rows,
    Trace,
    as_rows,
    linear_scores,
    warn_of_overflow,
)
from precbench.surrogates import SURROGATES

__all__ = ["CuttingPlane"]

_IDLE_ITERATIONS = 50
_MASTER_STEPS = 20_000  # between two looks at the clock


class CuttingPlane(LinearRanker):
    """Minimise a regularised structural risk over the whole training set by cutting planes.

    The problem, in the scaling of SVMperf, is

        P(w) = 1/2 ||w||^2 + C R(w),
        R(w) = 100 max over labellings y' with k ones of
               [ #(ones on negatives) / k  +  1/n sum_i (y'_i - y_i) <w, x_i> ],

    that is, R(w) = 100/k times the struct surrogate at the scores ``k/n X w``. Each iteration
    adds the plane of the most violated labelling and solves for the best w against all planes so
    far (1-slack), which also gives a lower bound of P.

    Parameters
    ----------
    objective : {"prec@k"}, default="prec@k"
    k : float or int, default=0.25
        Share of the positives in (0, 1], or a count of rows.
    C : float, default=1.0
        Weight of the risk, a loss in percent.
    tol : float, default=1e-3
        Stop when the gap between P and the lower bound is at most so many times P.
    max_iter : int, default=5000

    Attributes
    ----------
    primal_ : float
        P of `coef_`.
    lower_bound_ : float
        No w has a smaller P.
    gap_ : float
        ``primal_ - lower_bound_``.
    converged_ : bool

    Notes
    -----
    There is no slack variable that would cut R off at 0, and no bias feature. `coef_` is the
    last iterate, as in the published program, also when the trace or `max_iter` ends the fit.

    References
    ----------
    Joachims, "A support vector method for multivariate performance measures", ICML 2005;
    Joachims, Finley, Yu, "Cutting-plane training of structural SVMs", Machine Learning 2009.
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "objective": [StrOptions({"prec@k"})],
        "k": K_CONSTRAINT,
        "C": [Interval(Real, 0, None, closed="neither")],
        "tol": [Interval(Real, 0, None, closed="neither")],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
    }

    def __init__(
        self,
        objective: str = "prec@k",
        *,
        k: float | int = 0.25,
        C: float = 1.0,
        tol: float = 1e-3,
        max_iter: int = 5000,
    ):
        self.objective = objective
        self.k = k
        self.C = C
        self.tol = tol
        self.max_iter = max_iter

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: ArrayLike, trace: Trace | None = None) -> Self:
        """Learn from rows and labels.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
        y : array-like of shape (n_samples,)
            Two labels, the greater is the positive class.
        trace : callable, optional
            Called after each iteration, see `precbench.solvers.base.Trace`.

        Returns
        -------
        self

        Raises
        ------
        InputError
            If y does not have two classes, or k exceeds the number of positives.
        """
        X, labels = self._checked(X, y, reset=True)
        k = resolve_k(self.k, int(np.count_nonzero(labels > 0)))
        rows = as_rows(X)
        self.coef_ = np.zeros(X.shape[1])
        self.n_iter_ = self.n_rows_seen_ = 0
        self.primal_ = self.gap_ = np.inf
        self.lower_bound_ = -np.inf
        self.converged_ = False
        if trace is not None and trace(self):
            return self
        bundle = _Bundle(self.C, X.shape[1])
        while True:
            offset, slope = _most_violated(rows, labels, self.coef_, k)
            self._assess(float(offset + slope @ self.coef_), rows.n_rows)
            if trace is not None and trace(self):
                break
            if self.converged_ or self._gave_up():
                break
            bundle.add(offset, slope)
            if not self._solve(bundle, trace):
                break
        return self

    def _assess(self, risk: float, n_rows: int) -> None:
        """Take stock of `coef_`, whose risk is known."""
        self.primal_ = float(0.5 * self.coef_ @ self.coef_ + self.C * risk)
        self.gap_ = self.primal_ - self.lower_bound_
        self.converged_ = bool(self.gap_ <= self.tol * abs(self.primal_))
        self.n_iter_ += 1
        self.n_rows_seen_ += n_rows

    def _gave_up(self) -> bool:
        if not np.isfinite(self.primal_):
            self.coef_ = np.full_like(self.coef_, np.nan)
            warn_of_overflow()
        elif self.n_iter_ == self.max_iter:
            warnings.warn(
                f"the gap is still {self.gap_:.3g} after max_iter={self.max_iter} iterations",
                ConvergenceWarning,
                stacklevel=4,
            )
        else:
            return False
        return True

    def _solve(self, bundle: "_Bundle", trace: Trace | None) -> bool:
        """Move `coef_` to the best w against all planes; return False if the trace ends it."""
        enough = 0.1 * self.tol * abs(self.primal_) / self.C
        while not bundle.improve(enough):
            if trace is not None and trace(self):
                return False
        self.coef_ = bundle.weights()
        self.lower_bound_ = max(self.lower_bound_, bundle.bound())
        return True


def _most_violated(
    rows: Rows, labels: NDArray[np.int8], w: NDArray[np.float64], k: int
) -> tuple[float, NDArray[np.float64]]:
    """Return the plane ``R >= offset + slope @ w`` that touches R at w."""
    n, length = rows.n_rows, rows.per_slice()
    scores = linear_scores(rows, w)
    if not np.isfinite(scores).all():
        return np.nan, np.full(len(w), np.nan)
    change = SURROGATES["struct"].subgradient(scores * (k / n), labels, k)
    slope = np.zeros(len(w))
    for start in range(0, n, length):
        cutting_plane.add_rows(*rows[:3], change, start, min(n, start + length), slope)
    n_false = np.count_nonzero(change > 0)
    return 100.0 * n_false / k, slope * (100.0 / n)


class _Bundle:
    """The planes so far, and w = -sum_j alpha_j slope_j, the best against all of them."""

    def __init__(self, C: float, n_features: int):
        self.C = C
        self.offsets = np.empty(0)
        self.slopes = np.empty((0, n_features))
        self.gram = np.empty((0, 0))
        self.alpha = np.empty(0)
        self.idle = np.empty(0, dtype=int)

    def add(self, offset: float, slope: NDArray[np.float64]) -> None:
        """Add a plane and drop those that have long carried no weight."""
        keep = self.idle < _IDLE_ITERATIONS
        slopes = np.vstack([self.slopes[keep], slope])
        m = len(slopes)
        gram = np.empty((m, m))
        gram[:-1, :-1] = self.gram[np.ix_(keep, keep)]
        gram[-1] = gram[:, -1] = [other @ slope for other in slopes]
        self.slopes, self.gram = slopes, gram
        self.offsets = np.append(self.offsets[keep], offset)
        self.alpha = np.append(self.alpha[keep], 0.0 if m > 1 else self.C)
        self.idle = np.append(self.idle[keep], 0)

    def improve(self, tol: float) -> bool:
        """Go on solving for the weights of the planes; return whether they are optimal to tol."""
        gradient = np.empty(len(self.alpha))
        steps = cutting_plane.solve_master(
            self.gram, self.offsets, self.alpha, gradient, tol, _MASTER_STEPS
        )
        done = steps < _MASTER_STEPS
        if done:
            self.idle = np.where(self.alpha > 0, 0, self.idle + 1)
        return done

    def weights(self) -> NDArray[np.float64]:
        """Return the best w against all planes."""
        return -(self.alpha @ self.slopes)

    def bound(self) -> float:
        """Return the value of the dual, a lower bound of P."""
        w = self.weights()
        return float(self.alpha @ self.offsets - 0.5 * w @ w)
