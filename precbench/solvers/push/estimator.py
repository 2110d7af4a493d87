"""The P-Norm Push, RankBoost and the IR Push: convex risks for the top of the list."""

import math
from abc import abstractmethod
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.utils.validation import validate_data

from precbench.core.errors import InputError
from precbench.solvers.common.base import (
    MATRICES,
    LinearRanker,
    Trace,
    checks_parameters,
    untraced,
    warn,
)
from precbench.solvers.common.parameters import (
    COUNT,
    POSITIVE,
    Allowed,
    one_of,
    real,
)
from precbench.solvers.common.rows import STORED, with_short_indices
from precbench.solvers.push.risks import (
    Classes,
    Evaluation,
    ExponentialRisk,
    InformationRetrievalRisk,
    PairLists,
    PairwiseRisk,
    PushRisk,
    Side,
    Term,
)

_EPS = float(np.finfo(np.float64).eps)
# The damping of Newton steps, as a multiple of the greatest curvature.
_FIRST_DAMPING = 1e-3
_LEAST_DAMPING = 1e-15
_MOST_DAMPING = 1e12
# Along an axis with so small a fraction of the greatest curvature w may diverge.
_FLAT = 1e-6


@dataclass(kw_only=True, eq=False, repr=False)
class PushRanker(LinearRanker):
    """Base of the pushes: minimises a risk by Newton's method or by coordinates."""

    max_iter: int = 100
    tol: float = 1e-8

    method, derivative = "newton", "absolute"
    dtypes = STORED

    allowed = Allowed(max_iter=COUNT, tol=POSITIVE)

    def _fit_memory(self, n_features: int) -> tuple[int, str]:
        if self.method != "newton":
            return super()._fit_memory(n_features)
        what = f"{MATRICES} matrices of n_features x n_features"
        return MATRICES * n_features**2, what

    @abstractmethod
    def _risk(self, X: Any, labels: NDArray[np.int8]) -> PushRisk:
        """Return the risk to minimise."""

    def _fit(self, X: Any, labels: NDArray[np.int8], trace: Trace) -> None:
        self._train(self._risk(with_short_indices(X), labels), trace)

    def _train(self, risk: PushRisk, trace: Trace) -> None:
        """Minimise a risk from w = 0; warn if there is no minimiser."""
        self._start(risk.X.shape[1])
        self.gradient_norm_ = self.log_risk_ = np.inf
        self.converged_ = self.unbounded_ = False
        if trace(self):
            return
        minimise = self._by_newton if self.method == "newton" else self._by_coordinates
        minimise(risk, trace)
        if self.unbounded_:
            warn(
                "the risk has no minimiser: some weights rank no pair of the training"
                " rows wrongly, and the risk falls without end as they grow; use the"
                " finite weights at which the fit stopped, or train on more rows"
            )

    def _assess(self, point: Evaluation) -> None:
        """Set the attributes that describe the risk at the current w."""
        self.gradient_norm_ = math.hypot(*point.gradient)
        self.log_risk_ = point.log_risk
        self.converged_ = self.gradient_norm_ <= self.tol

    def _move(
        self, w: NDArray[np.float64], point: Evaluation, risk: PushRisk, trace: Trace
    ) -> bool:
        """Set `coef_` to w, describe the risk there, return whether the trace ends."""
        self.coef_ = w
        self.n_iter_ += 1
        self.n_rows_seen_ += risk.rows.n_rows
        self._assess(point)
        return bool(trace(self))

    def _by_newton(self, risk: PushRisk, trace: Trace) -> None:
        """Take damped Newton steps until the gradient is small."""
        point = risk.at(self.coef_)
        damping = _FIRST_DAMPING
        flat_axes = np.empty((len(self.coef_), 0))  # none without a Hessian
        self._assess(point)
        while not (self.converged_ or self.unbounded_) and self.n_iter_ < self.max_iter:
            hessian = risk.hessian(self.coef_)
            if not np.isfinite(hessian).all():
                # `fit` reports these weights as an overflow.
                self.coef_ = np.full_like(self.coef_, np.nan)
                return
            curvatures, axes = np.linalg.eigh(hessian)
            greatest_curvature = curvatures[-1]  # they ascend
            flat_axes = axes[:, curvatures <= _FLAT * greatest_curvature]
            step = _damped_step(risk, self.coef_, point, curvatures, axes, damping)
            if step is None:  # no step decreases the risk
                break
            point, damping = step.point, step.next_damping
            if self._move(step.w, point, risk, trace):
                return
            self.unbounded_ = _separates(risk.relation, point.scores)
        self.unbounded_ = self.unbounded_ or risk.is_unbounded_along(flat_axes)
        self.converged_ &= not self.unbounded_
        if not self.converged_ and not self.unbounded_:
            warn(
                f"the norm of the gradient is still {self.gradient_norm_:.3g} after"
                f" {self.n_iter_} iterations; raise max_iter, now {self.max_iter}, or"
                f" tol, now {self.tol:g}"
            )

    def _by_coordinates(self, risk: PushRisk, trace: Trace) -> None:
        """Step along the feature of the largest derivative (rudin2009, Fig. 2)."""
        # A step ends at the root of the derivative along its feature. Along a feature
        # that ranks no pair wrongly, or none rightly, there is no root: take a finite
        # step, and only once.
        point = risk.at(self.coef_)
        used = np.zeros(len(self.coef_), dtype=bool)
        self._assess(point)
        while self.n_iter_ < self.max_iter:
            slopes = np.where(used, 0, point.gradient)
            sizes = np.abs(slopes) if self.derivative == "absolute" else -slopes
            j = int(sizes.argmax())
            if abs(slopes[j]) <= point.noise:  # 0 but for rounding
                break
            column = risk.column(j)
            least, most = risk.relation.extreme_gaps(column)
            ranks_all_pairs = least > 0 or most < 0  # all rightly, or all wrongly
            ranks_both_ways = least < 0 < most  # some rightly, some wrongly
            if ranks_both_ways:
                step = risk.step_along(point, column)
            else:
                used[j] = True
                if least == most == 0:
                    # The feature is equal in all pairs: its derivative was rounding.
                    continue
                self.unbounded_ = True
                sign = 1 if least >= 0 else -1  # sign * feature ranks no pair wrongly
                step = sign * _separating_step(risk, point, sign * column)
            w = self.coef_.copy()
            w[j] += step
            point = risk.at(w)
            if not np.isfinite(point.value):
                # `fit` reports these weights as an overflow.
                self.coef_ = np.full_like(w, np.nan)
                return
            stopped = self._move(w, point, risk, trace)
            if stopped or ranks_all_pairs:  # after the finite step all pairs are right
                break
        self.unbounded_ = self.unbounded_ or _separates(risk.relation, point.scores)
        self.converged_ &= not self.unbounded_


def _separating_step(
    risk: PushRisk, point: Evaluation, column: NDArray[np.float64]
) -> float:
    """Return a finite step along a column of X, which must rank no pair wrongly.

    After the step each pair in which the column differs has a margin of at least 1. The
    least margin before is `worst`; a step t raises the margin of such a pair by t times
    its gap in the column.
    """
    worst, _best = risk.relation.extreme_gaps(point.scores)
    return (1 - min(worst, 0)) / risk.relation.least_gap_above_0(column)


class _NewtonStep(NamedTuple):
    """An accepted step: the new w, the risk there, the damping to begin with next."""

    w: NDArray[np.float64]
    point: Evaluation
    next_damping: float


def _damped_step(
    risk: PushRisk,
    w: NDArray[np.float64],
    point: Evaluation,
    curvatures: NDArray[np.float64],
    axes: NDArray[np.float64],
    damping: float,
) -> _NewtonStep | None:
    """Return the first Newton step that is accepted, with ever more damping, or None.

    `axes` and `curvatures` are eigenvectors and ascending eigenvalues of the Hessian at
    w. A step is accepted if the risk decreases by a tenth of what the quadratic model
    predicts. Where the risk changes by rounding only, the gradient must shrink.
    """
    slopes = axes.T @ point.gradient  # derivatives along the axes
    greatest_curvature = curvatures[-1]
    rounding = 8 * _EPS * max(1.0, abs(point.value))  # the few last digits of the risk
    while damping <= _MOST_DAMPING:
        moves = -slopes / (np.maximum(curvatures, 0) + damping * greatest_curvature)
        new_w = w + axes @ moves
        new = risk.at(new_w)
        # By the quadratic model a move m gains -(slope m + 1/2 curvature m^2).
        predicted = -(slopes @ moves + 0.5 * (curvatures @ moves**2))
        # A gain of NaN or -inf, after an overflow, passes neither comparison below.
        gained = point.value - new.value
        if abs(gained) <= rounding:
            if math.hypot(*new.gradient) < math.hypot(*point.gradient):
                return _NewtonStep(new_w, new, damping)
        elif gained > 0.1 * predicted:
            # With more than half of the predicted gain, the next step may be bolder.
            next_damping = damping / 10 if gained > 0.5 * predicted else damping
            return _NewtonStep(new_w, new, max(next_damping, _LEAST_DAMPING))
        damping *= 10
    return None


def _separates(relation: Classes | PairLists, scores: NDArray[np.float64]) -> bool:
    """Return whether scores rank no pair wrongly and some pair rightly."""
    least, most = relation.extreme_gaps(scores)
    return least >= 0 and most > 0


@dataclass(kw_only=True, eq=False, repr=False)
class IRPush(PushRanker):
    """The IR Push: a smooth bound on a discounted measure of information retrieval.

    With positives i, negatives k and scores s = X w, IRPush minimises the convex risk

        R(w) = sum_i ln(1 + sum_k exp(s_k - s_i))

    to its optimum, by Newton's method with damped steps. A positive costs little once
    it lies above all negatives, so that the top of the list counts most. There is no
    parameter to tune. Newton's method holds nine matrices of n_features x n_features:
    use the method where features are at most a few thousand.

    Parameters
    ----------
    max_iter : int, default=100
        Most Newton steps, at least 1; each visits all rows.
    tol : float, default=1e-8
        Stop when the norm of the gradient of R is at most this, a number above 0.

    Attributes
    ----------
    coef_ : ndarray of shape (n_features,)
        Weights w of the features: a row x has the score ``w' x``. There is no
        intercept, since none changes a ranking.
    log_risk_ : float
        ln R at `coef_`; infinite if a trace ended the fit before the first evaluation.
    gradient_norm_ : float
        Norm of the gradient of R at `coef_`; infinite if a trace ended the fit before
        the first evaluation.
    converged_ : bool
        Whether `gradient_norm_` is at most `tol`, and R has a minimiser.
    unbounded_ : bool
        Whether R has no minimiser: some w ranks no pair of training rows wrongly and
        some pair rightly, R falls without end, and `coef_` is a finite w on the way.
    threshold_ : float
        Where `predict` cuts the list; `decision_function` subtracts it. As many
        training rows score above it as there are positives, except for ties. Only after
        a `fit` without a trace.
    classes_ : ndarray of shape (2,)
        The two labels in ascending order; the second is the positive class.
    n_features_in_ : int
        Number of features of the training rows.
    n_iter_ : int
        Newton steps so far.
    n_rows_seen_ : int
        Rows visited, repeated visits included: all training rows in each iteration.

    Notes
    -----
    A `ConvergenceWarning` says that R has no minimiser, or that `max_iter` steps, or
    double precision, did not bring the gradient down to `tol`.

    The paper minimised with Matlab's fminunc; the optimum is the same.

    References
    ----------
    Rudin, "The P-Norm Push: a simple convex ranking algorithm that concentrates at the
    top of the list", JMLR 10, 2009, equation (2).

    Examples
    --------
    >>> import numpy as np
    >>> from precbench import IRPush
    >>> ranker = IRPush().fit([[2.0], [-1.0], [0.0]], [1, 1, 0])
    >>> w, risk = ranker.coef_[0], np.exp(ranker.log_risk_)
    >>> print(f"{w:.2f} {risk:.3f}")  # minimum of ln(1 + exp(-2 w)) + ln(1 + exp(w))
    0.42 1.284
    """

    def _risk(self, X: Any, labels: NDArray[np.int8]) -> PushRisk:
        return InformationRetrievalRisk(X, labels)


class PairPushRanker(PushRanker):
    """Base of the pushes with a power p, which also learn from pairs."""

    p: float
    loss: str
    push: str
    bottom_weight: float

    allowed = Allowed(
        loss=one_of("exponential", "logistic"), method=one_of("coordinate", "newton")
    )

    @checks_parameters
    def fit_pairs(self, X: Any, pairs: Any, trace: Trace | None = None) -> Self:
        """Learn from rows and from pairs of rows with a known order, the crucial pairs.

        With every positive above every negative the result is that of `fit`, at the
        cost of the pairs. See rudin2009, section 7.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            The training rows. Values of float32 stay as they are, others become
            float64.
        pairs : {array-like, sparse matrix} of shape (n_samples, n_samples)
            A positive entry at [i, k], of any value, says that row i should rank above
            row k.
        trace : callable, optional
            Called after each iteration, see `precbench.solvers.common.base.Trace`.

        Returns
        -------
        self
            `classes_` is (-1, 1), because there are no labels.

        Raises
        ------
        InputError
            If `pairs` has another shape, no or too many entries, an entry that is not a
            positive number, or a row above itself.
        """
        X = validate_data(self, X, accept_sparse="csr", dtype=STORED, order="C")
        relation = _check_pairs(pairs, X.shape[0])
        self.classes_ = np.array([-1, 1])
        above = PairLists.of_matrix(relation)  # CSC, by column k: the rows above k
        below = PairLists.of_matrix(relation.tocsr())  # CSR, by row i: the rows below i
        risk = PairwiseRisk(
            with_short_indices(X),
            above,
            self.p,
            logistic=self.loss == "logistic",
            sides=self._sides(above, below),
        )
        with np.errstate(all="ignore"):
            self._train(risk, trace or untraced)
        self._report_overflow(trace)
        return self

    def _risk(self, X: Any, labels: NDArray[np.int8]) -> PushRisk:
        """Return the risk of the chosen loss, at the top, the bottom or both."""
        if self.loss == "exponential":
            return ExponentialRisk(X, labels, self.p, self._terms())
        sides = self._sides(
            above=PairLists.of_labels(labels), below=PairLists.of_labels(-labels)
        )
        return PairwiseRisk(X, Classes(labels), self.p, logistic=True, sides=sides)

    def _terms(self) -> list[Term]:
        """Return the terms of an `ExponentialRisk`, see there: top, bottom or both."""
        p = float(self.p)
        terms = []
        if self.push in ("top", "both"):
            terms.append(Term(rate_pos=1.0, rate_neg=p, constant=0.0))
        if self.push in ("bottom", "both"):
            terms.append(
                Term(rate_pos=p, rate_neg=1.0, constant=self._bottom_constant())
            )
        return terms

    def _sides(self, above: PairLists, below: PairLists) -> list[Side]:
        """Return the terms of a `PairwiseRisk`: top, bottom or both.

        `above` lists for each row the rows that should rank above it, `below` those
        that should rank below it.
        """
        sides = []
        if self.push in ("top", "both"):
            sides.append(Side(sign=1.0, constant=0.0, pairs=above))
        if self.push in ("bottom", "both"):
            sides.append(Side(sign=-1.0, constant=self._bottom_constant(), pairs=below))
        return sides

    def _bottom_constant(self) -> float:
        """Return what `bottom_weight` adds to log(R) / p at the bottom."""
        if self.push != "both":
            return 0.0
        return float(np.log(self.bottom_weight)) / self.p


@dataclass(kw_only=True, eq=False, repr=False)
class PNormPush(PairPushRanker):
    """The P-Norm Push: a convex risk in which negatives at the top cost most.

    With positives i, negatives k and scores s = X w, PNormPush minimises

        R(w) = sum_k (sum_i loss(s_i - s_k))^p,   loss(r) = exp(-r) or ln(1 + exp(-r)).

    The inner sum is a smooth count of the positives below the negative k, the price of
    which grows with the power p. With p = 1 this is RankBoost, which ranks the whole
    list; a large p pushes the highest negatives down, at the cost of the rest of the
    list.

    Parameters
    ----------
    p : float, default=4.0
        Power, at least 1: the greater, the more the top of the list counts.
    max_iter : int, default=100
        Number of iterations, at least 1; each visits all rows. "coordinate" ends before
        only where all derivatives are 0 or one feature orders all pairs, "newton" at
        `tol`.
    tol : float, default=1e-8
        Norm of the gradient, above 0, up to which the fit counts as converged and at
        which "newton" stops: of ln(R) / p (exponential loss) or R^(1/p) (logistic
        loss).
    loss : {"exponential", "logistic"}, default="exponential"
        Loss of a pair. With "exponential" an iteration takes time linear in the number
        of rows, with "logistic" in the number of pairs.
    method : {"coordinate", "newton"}, default="coordinate"
        How R is minimised. "coordinate" is the algorithm of the paper, Fig. 2: from
        weights of 0, `max_iter` times, go along the feature with the largest derivative
        (of equal ones the first) to the root of the derivative, equation (1). "newton"
        takes damped Newton steps to the optimum, and holds nine matrices of n_features
        x n_features.
    derivative : {"absolute", "signed"}, default="absolute"
        The derivative whose largest value chooses the feature in "coordinate". Fig. 2
        of the paper has the signed one, its text the absolute one, and only the
        absolute one gives the published results.
    push : {"top", "bottom", "both"}, default="top"
        The end of the list that counts most. "bottom" exchanges the roles of the
        classes, ``sum_i (sum_k loss(s_i - s_k))^p``. "both" is the risk at the top plus
        `bottom_weight` times that at the bottom.
    bottom_weight : float, default=1.0
        Weight, above 0, of the risk at the bottom with ``push="both"``; not used
        otherwise.

    Attributes
    ----------
    coef_ : ndarray of shape (n_features,)
        Weights w of the features: a row x has the score ``w' x``. There is no
        intercept, since none changes a ranking.
    log_risk_ : float
        ln R at `coef_`; infinite if a trace ended the fit before the first evaluation.
    gradient_norm_ : float
        Norm of the gradient of ln(R) / p (exponential loss) or R^(1/p) (logistic loss)
        at `coef_`; infinite if a trace ended the fit before the first evaluation.
    converged_ : bool
        Whether `gradient_norm_` is at most `tol`, and R has a minimiser.
    unbounded_ : bool
        Whether R has no minimiser: some w ranks no pair of training rows wrongly and
        some pair rightly, and `coef_` is a finite w on the way. "newton" sees it by its
        scores and by the directions in which R is flat, "coordinate" by its scores and
        by single features.
    threshold_ : float
        Where `predict` cuts the list; `decision_function` subtracts it. As many
        training rows score above it as there are positives, except for ties. Only after
        a `fit` without a trace.
    classes_ : ndarray of shape (2,)
        The two labels in ascending order; the second is the positive class.
    n_features_in_ : int
        Number of features of the training rows.
    n_iter_ : int
        Iterations so far: steps along a feature, or Newton steps.
    n_rows_seen_ : int
        Rows visited, repeated visits included: all training rows in each iteration.

    Notes
    -----
    Along a feature that ranks no pair wrongly the derivative has no root. There the
    step of "coordinate" gives a margin of at least 1 to the pairs in which the feature
    differs, and the feature is not used again.

    A `ConvergenceWarning` says that R has no minimiser, or that "newton" ended before
    the gradient was as small as `tol`. `fit_pairs` learns from pairs in place of
    labels.

    References
    ----------
    Rudin, "The P-Norm Push: a simple convex ranking algorithm that concentrates at the
    top of the list", JMLR 10, 2009: sections 2 and 5 (Fig. 2, equation (1)), section 7
    for the pushes at the bottom and at both ends and for pairs, Theorem 4 for the
    minimiser.

    Examples
    --------
    >>> from precbench import PNormPush
    >>> from precbench.ranking.metrics import r_max
    >>> X = [[0, 3], [3, 0], [0, 3], [2, 3], [2, 0], [1, 1], [0, 0], [0, 1], [3, 3]]
    >>> y = [1, 1, 1, 1, 0, 0, 0, 0, 0]
    >>> for p in (1, 8):  # positives below the highest negative, (3, 3)
    ...     ranker = PNormPush(p=p, method="newton").fit(X, y)
    ...     print(p, r_max(y, ranker.decision_function(X)))
    1 4.0
    8 1.0
    """

    p: float = field(default=4.0, kw_only=False)
    loss: str = "exponential"
    method: str = "coordinate"
    derivative: str = "absolute"
    push: str = "top"
    bottom_weight: float = 1.0

    allowed = Allowed(
        p=real(1, None, "left"),
        derivative=one_of("absolute", "signed"),
        push=one_of("top", "bottom", "both"),
        bottom_weight=POSITIVE,
    )


@dataclass(kw_only=True, eq=False, repr=False)
class RankBoost(PairPushRanker):
    """RankBoost: a convex risk that counts all misranked pairs alike.

    With positives i, negatives k and scores s = X w, RankBoost minimises

        R(w) = sum_i sum_k loss(s_i - s_k),   loss(r) = exp(-r) or ln(1 + exp(-r)),

    by steps along one feature at a time, or to the optimum. It is the P-Norm Push with
    p = 1, and suits the order of the whole list (the AUC) rather than its top.

    Parameters
    ----------
    max_iter : int, default=100
        Number of iterations, at least 1; each visits all rows. "coordinate" ends before
        only where all derivatives are 0 or one feature orders all pairs, "newton" at
        `tol`.
    tol : float, default=1e-8
        Norm of the gradient, above 0, up to which the fit counts as converged and at
        which "newton" stops: of ln R (exponential loss) or R (logistic loss).
    loss : {"exponential", "logistic"}, default="exponential"
        Loss of a pair. With "exponential" an iteration takes time linear in the number
        of rows, with "logistic" in the number of pairs.
    method : {"coordinate", "newton"}, default="coordinate"
        How R is minimised. "coordinate" is the algorithm of the paper, Fig. 2: from
        weights of 0, `max_iter` times, go along the feature with the largest absolute
        derivative (of equal ones the first) to the root of the derivative, equation
        (1). "newton" takes damped Newton steps to the optimum, and holds nine matrices
        of n_features x n_features.

    Attributes
    ----------
    coef_ : ndarray of shape (n_features,)
        Weights w of the features: a row x has the score ``w' x``. There is no
        intercept, since none changes a ranking.
    log_risk_ : float
        ln R at `coef_`; infinite if a trace ended the fit before the first evaluation.
    gradient_norm_ : float
        Norm of the gradient of ln R (exponential loss) or R (logistic loss) at `coef_`;
        infinite if a trace ended the fit before the first evaluation.
    converged_ : bool
        Whether `gradient_norm_` is at most `tol`, and R has a minimiser.
    unbounded_ : bool
        Whether R has no minimiser: some w ranks no pair of training rows wrongly and
        some pair rightly, and `coef_` is a finite w on the way. "newton" sees it by its
        scores and by the directions in which R is flat, "coordinate" by its scores and
        by single features.
    threshold_ : float
        Where `predict` cuts the list; `decision_function` subtracts it. As many
        training rows score above it as there are positives, except for ties. Only after
        a `fit` without a trace.
    classes_ : ndarray of shape (2,)
        The two labels in ascending order; the second is the positive class.
    n_features_in_ : int
        Number of features of the training rows.
    n_iter_ : int
        Iterations so far: steps along a feature, or Newton steps.
    n_rows_seen_ : int
        Rows visited, repeated visits included: all training rows in each iteration.

    Notes
    -----
    Along a feature that ranks no pair wrongly the derivative has no root. There the
    step of "coordinate" gives a margin of at least 1 to the pairs in which the feature
    differs, and the feature is not used again.

    A `ConvergenceWarning` says that R has no minimiser, or that "newton" ended before
    the gradient was as small as `tol`. `fit_pairs` learns from pairs in place of
    labels.

    References
    ----------
    Freund, Iyer, Schapire, Singer, "An efficient boosting algorithm for combining
    preferences", JMLR 4, 2003. Rudin, "The P-Norm Push: a simple convex ranking
    algorithm that concentrates at the top of the list", JMLR 10, 2009: section 5 (Fig.
    2, equation (1)) with p = 1.

    Examples
    --------
    >>> from precbench import PNormPush, RankBoost
    >>> X, y = [[2.0], [-1.0], [0.0]], [1, 1, 0]
    >>> RankBoost().fit(X, y).coef_.tolist() == PNormPush(p=1).fit(X, y).coef_.tolist()
    True
    """

    loss: str = "exponential"
    method: str = "coordinate"

    p, push, bottom_weight = 1.0, "top", 1.0


def _check_pairs(pairs: Any, n_samples: int) -> sparse.csc_array:
    """Return the pairs as a new CSC matrix.

    Any entry above 0 at [i, k] puts row i above row k.
    """
    relation = sparse.csc_array(pairs, copy=True)
    if relation.shape != (n_samples, n_samples):
        raise InputError(
            f"pairs has the shape {relation.shape}; give one row and one column for"
            f" each of the {n_samples} rows of X"
        )
    relation.sum_duplicates()
    relation.eliminate_zeros()
    if relation.nnz == 0:
        raise InputError("pairs is empty; name at least one pair of rows")
    if relation.nnz > np.iinfo(np.int32).max:  # `PairLists` has indices of int32
        raise InputError(
            f"pairs has {relation.nnz:,} entries; name fewer pairs, at most 2**31 - 1"
        )
    invalid = ~(np.isfinite(relation.data) & (relation.data > 0))
    if invalid.any():
        entries = relation.tocoo()  # in the order of `invalid`
        first = int(np.argmax(invalid))
        raise InputError(
            f"pairs has the entry {entries.data[first]} at"
            f" [{entries.row[first]}, {entries.col[first]}], counted from 0;"
            " give positive numbers only"
        )
    rows_above_themselves = np.flatnonzero(relation.diagonal())
    if rows_above_themselves.size:
        raise InputError(
            f"pairs puts row {rows_above_themselves[0]}, counted from 0, above itself;"
            " remove this entry"
        )
    return relation
