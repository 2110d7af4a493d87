"""Online methods for the AUC: OAM, PGD, AdaOAM and SPAM take a step at every row.

They learn from each row against the earlier ones, in one pass; in later epochs the
earlier rows count each time they were visited. The path does not depend on how the rows
are cut into pieces for `partial_fit`. A row without an earlier row to compare with
(PGD: any row, others: a row of the other class) is remembered and changes nothing;
`fit` of SPAM has no such row, for it knows the means of both classes from the start.
"""

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from precbench.solvers.common.base import LinearRanker
from precbench.solvers.common.driver import PassMixin, Shuffle, Step
from precbench.solvers.common.parameters import (
    COUNT,
    NOT_NEGATIVE,
    POSITIVE,
    Allowed,
    as_generator,
    one_of,
    real,
)
from precbench.solvers.common.rows import Rows, weighted_sum
from precbench.solvers.online_auc.kernel import (
    adaoam_pass,
    oam_pass,
    pgd_pass,
    spam_pass,
)


class OnlineStep(Step):
    """The state of a method that takes a step at every row."""

    @staticmethod
    def visit(
        steps: Sequence["OnlineStep"],
        rows: Rows,
        labels: NDArray[np.int8],
        order: NDArray[np.int32],
        batch_size: int,
    ) -> None:
        for step in steps:
            step.learn(rows, labels, order)

    @abstractmethod
    def learn(
        self, rows: Rows, labels: NDArray[np.int8], order: NDArray[np.int32]
    ) -> None:
        """Take a step at each row of `order`, and change the state in place."""


@dataclass(kw_only=True, eq=False, repr=False)
class OAM(PassMixin, LinearRanker):
    """Online AUC maximisation with buffers: the hinge loss of pairs with sampled rows.

    Each row x_t, with the label y_t of -1 or +1, is compared with the rows b in a
    reservoir of the other class. With the penalty
    ``C_t = C max(1, N / reservoir_size)``, N being the number of earlier rows of the
    other class, the step is

    - ``"sequential"``: for one b after the other,
      ``w += min(C_t / 2, loss / |x_t - b|**2) * y_t (x_t - b)``
      with ``loss = max(0, 1 - y_t <w, x_t - b>)`` under the current w,
    - ``"gradient"``: ``w += C_t / 2 * sum(y_t (x_t - b))`` over the b with
      ``y_t <w, x_t - b> <= 1`` under the w before.

    Then x_t enters the reservoir of its own class: while there is room always, later as
    the n-th row of its class with probability ``reservoir_size / n``, in the place of a
    random row. Use the method for streams with many features, as it holds no matrix of
    n_features x n_features; it aims at the whole list, not at its top.

    Parameters
    ----------
    update : {"sequential", "gradient"}, default="sequential"
        The step, see above.
    C : float, default=1e-4
        Weight of the losses against half the square norm of w, above 0.
    reservoir_size : int, default=100
        Number of rows in each of the two reservoirs, at least 1. They are dense:
        together ``16 * reservoir_size * n_features`` bytes.
    epochs : int, default=1
        Number of passes over the rows, at least 1; the paper makes one. In later passes
        the earlier rows count each time they were visited.
    average : bool, default=False
        Whether the model is the mean of w over all rows instead of the last w, the
        paper's choice.
    shuffle : bool or {"rows", "blocks"}, default=True
        Order of the rows in each epoch of `fit`. True or "rows" draws a new random
        order. "blocks" draws an order of blocks of 32 neighbouring rows, which is
        faster, and fit for rows that already lie in random order. False keeps the
        stored order.
    random_state : int, RandomState, Generator or None, default=None
        Seed of the order of the rows and, as a separate stream, of the reservoirs. An
        int of at least 0 gives the same in each fit, None new ones; a RandomState or
        Generator goes on where it stopped.

    Attributes
    ----------
    coef_ : ndarray of shape (n_features,)
        Weights w of the features: a row x has the score ``w' x``. There is no
        intercept, since none changes a ranking.
    threshold_ : float
        Where `predict` cuts the list; `decision_function` subtracts it. As many
        training rows score above it as there are positives, except for ties. Only after
        a `fit` without a trace.
    classes_ : ndarray of shape (2,)
        The two labels in ascending order; the second is the positive class.
    n_features_in_ : int
        Number of features of the training rows.
    n_iter_ : int
        Passes over the rows so far; each call of `partial_fit` counts as one.
    n_rows_seen_ : int
        Rows visited, repeated visits included.
    t_ : int
        Steps so far, one for each row visited.

    Notes
    -----
    The paper draws whether a row enters, and then its place; ours draws the place among
    the rows so far (Vitter's Algorithm R), which has the same law. A row without an
    earlier row of the other class changes nothing but the reservoir.

    References
    ----------
    Zhao, Hoi, Jin, Yang, "Online AUC maximization", ICML 2011: Algorithms 1 to 4.

    Examples
    --------
    >>> from precbench import OAM
    >>> for C in (0.5, 10):  # a step for the one pair: as far as needed, at most C / 2
    ...     print(OAM(C=C, shuffle=False).fit([[0.0], [1.0]], [0, 1]).coef_.tolist())
    [0.25]
    [1.0]
    """

    update: str = field(default="sequential", kw_only=False)
    C: float = 1e-4
    reservoir_size: int = 100
    epochs: int = 1
    average: bool = False
    shuffle: Shuffle = True
    random_state: Any = None

    batch_size = 1

    allowed = Allowed(
        update=one_of("sequential", "gradient"), C=POSITIVE, reservoir_size=COUNT
    )

    def _fit_memory(self, n_features: int) -> tuple[int, str]:
        size = self.reservoir_size
        return 2 * size * n_features, f"two reservoirs of {size:,} rows"

    def _new_step(self, n_features: int) -> "OAMStep":
        return OAMStep(self, n_features)


class OAMStep(OnlineStep):
    """The state of OAM: w and two reservoirs of rows."""

    def __init__(self, solver: OAM, n_features: int):
        super().__init__(n_features, solver.average)
        size = solver.reservoir_size
        # The reservoirs have a random stream of their own, and so do not change the
        # order of the rows.
        [self.rng] = as_generator(solver.random_state).spawn(1)
        self.reservoirs = np.zeros((2, size, n_features))  # of negatives, of positives
        self.counts = np.zeros(2, dtype=np.int64)  # of the rows seen, by class
        self.values_per_row = self.reservoirs.size + 2 * n_features
        self.set_parameters(solver)

    def set_parameters(self, solver: OAM) -> None:
        self.update = solver.update
        self.C = solver.C

    def learn(
        self, rows: Rows, labels: NDArray[np.int8], order: NDArray[np.int32]
    ) -> None:
        _two, size, n_features = self.reservoirs.shape
        oam_pass(
            rows,
            labels,
            order,
            places=self.draw_places(labels[order] > 0),
            sequential=self.update == "sequential",
            C=self.C,
            w=self.w,
            w_sum=self.w_sum,
            reservoirs=self.reservoirs,
            counts=self.counts,
            scratch=np.empty(2 * n_features + size),
        )

    def draw_places(self, positive: NDArray[np.bool_]) -> NDArray[np.int64]:
        """Draw for each next row a place in the reservoir of its class.

        Rows with a place beyond the end stay out. By Vitter's Algorithm R row number n
        of a class takes the next free place if there is room, else one of n places at
        random.
        """
        size = self.reservoirs.shape[1]
        numbers = np.where(
            positive,
            self.counts[1] + positive.cumsum(),
            self.counts[0] + (~positive).cumsum(),
        )
        places = self.rng.integers(0, numbers)
        return np.where(numbers <= size, numbers - 1, places)


@dataclass(kw_only=True, eq=False, repr=False)
class PGD(PassMixin, LinearRanker):
    """Pairwise gradient descent: the squared loss of each row against all earlier ones.

    With labels y of -1 and +1, step t is

        w -= eta0 / t^power_t mean_j((<w, x_t - x_j> - (y_t - y_j)) (x_t - x_j))

    over the rows j = 1, ..., t - 1, of either class, without a projection. The mean is
    computed from the sums and the second moments of the earlier rows, in
    O(n_features^2) a row. Use the method for streams with at most a few thousand
    features; it aims at the whole list, not at its top.

    Parameters
    ----------
    eta0 : float, default=0.1
        Length of the steps, above 0, as a multiple of the gradient; the paper's 1 / mu.
    power_t : float, default=0.5
        Power in [0, 1] of the number of the step, the paper's theta. The paper proves
        convergence for values between 1/2 and 1.
    epochs : int, default=1
        Number of passes over the rows, at least 1; the paper makes one. In later passes
        the earlier rows count each time they were visited.
    average : bool, default=False
        Whether the model is the mean of w over all rows instead of the last w, the
        paper's choice.
    shuffle : bool or {"rows", "blocks"}, default=True
        Order of the rows in each epoch of `fit`. True or "rows" draws a new random
        order. "blocks" draws an order of blocks of 32 neighbouring rows, which is
        faster, and fit for rows that already lie in random order. False keeps the
        stored order.
    random_state : int, RandomState, Generator or None, default=None
        Seed of the order of the rows. An int of at least 0 gives the same order in each
        fit, None a new one; a RandomState or Generator goes on where it stopped.

    Attributes
    ----------
    coef_ : ndarray of shape (n_features,)
        Weights w of the features: a row x has the score ``w' x``. There is no
        intercept, since none changes a ranking.
    threshold_ : float
        Where `predict` cuts the list; `decision_function` subtracts it. As many
        training rows score above it as there are positives, except for ties. Only after
        a `fit` without a trace.
    classes_ : ndarray of shape (2,)
        The two labels in ascending order; the second is the positive class.
    n_features_in_ : int
        Number of features of the training rows.
    n_iter_ : int
        Passes over the rows so far; each call of `partial_fit` counts as one.
    n_rows_seen_ : int
        Rows visited, repeated visits included.
    t_ : int
        Steps so far, one for each row visited.

    Notes
    -----
    The second moments take ``8 * n_features**2`` bytes. They are counted from 0, and
    lose the digits of m**2 for a feature whose mean is m standard deviations from 0:
    centre the features. The first row changes nothing.

    References
    ----------
    Boissier, Lyu, Ying, Zhou, "Fast convergence of online pairwise learning
    algorithms", AISTATS 2016: its online algorithm with the polynomially decaying steps
    of its theorems.

    Examples
    --------
    >>> from precbench import PGD
    >>> ranker = PGD(eta0=0.1, shuffle=False).fit([[0.0], [1.0]], [0, 1])
    >>> ranker.coef_.round(3).tolist()  # one step, at t = 2: 0.1 / sqrt(2) times 2
    [0.141]
    """

    eta0: float = 0.1
    power_t: float = 0.5
    epochs: int = 1
    average: bool = False
    shuffle: Shuffle = True
    random_state: Any = None

    batch_size = 1

    allowed = Allowed(eta0=POSITIVE, power_t=real(0, 1, "both"))

    def _fit_memory(self, n_features: int) -> tuple[int, str]:
        return n_features**2, "the second moments"

    def _new_step(self, n_features: int) -> "PGDStep":
        return PGDStep(self, n_features)


class PGDStep(OnlineStep):
    """The state of PGD: w, and sums over the earlier rows."""

    def __init__(self, solver: PGD, n_features: int):
        super().__init__(n_features, solver.average)
        self.counts = np.zeros(2)  # of rows, by class
        self.sums = np.zeros((2, n_features))  # of x, by class
        self.moments = np.zeros((n_features, n_features))  # sum of x x', both classes
        self.values_per_row = self.moments.size + 4 * n_features
        self.set_parameters(solver)

    def set_parameters(self, solver: PGD) -> None:
        self.eta0 = solver.eta0
        self.power_t = solver.power_t

    def learn(
        self, rows: Rows, labels: NDArray[np.int8], order: NDArray[np.int32]
    ) -> None:
        t = np.arange(self.t + 1, self.t + 1 + len(order), dtype=np.float64)
        pgd_pass(
            rows,
            labels,
            order,
            eta=self.eta0 / t**self.power_t,
            w=self.w,
            w_sum=self.w_sum,
            counts=self.counts,
            sums=self.sums,
            moments=self.moments,
            scratch=np.empty(len(self.w)),
        )


@dataclass(kw_only=True, eq=False, repr=False)
class AdaOAM(PassMixin, LinearRanker):
    """Adaptive online AUC maximisation: adaptive steps against the other class.

    With the label y_t of -1 or +1, the gradient at row x_t of the squared loss is

        g_t = reg w - mean_j((1 - y_t <w, x_t - x_j>) y_t (x_t - x_j))

    over the earlier rows j of the class other than y_t's, computed from their number,
    sum and second moments. Coordinate by coordinate, the step is

        w = P_t[w - eta0 g_t / h_t],   h_t = delta + sqrt(g_1^2 + ... + g_t^2),

    with P_t[u] the w of the ball ``||w|| <= 1 / sqrt(reg)`` that is nearest to u by
    ``sum(h_t (w - u)^2)``. Rare features take longer steps, so that the scale of
    features matters little. Use the method for streams with at most a few thousand
    features; it aims at the whole list, not at its top.

    Parameters
    ----------
    eta0 : float, default=0.1
        Length of the steps, above 0: the first step moves each weight by about this.
    reg : float, default=1e-4
        Weight of half the square norm of w, above 0; the paper's lambda.
    delta : float, default=1e-8
        Number above 0 that keeps the division defined; the paper leaves it open.
    epochs : int, default=1
        Number of passes over the rows, at least 1; the paper makes one. In later passes
        the earlier rows count each time they were visited.
    average : bool, default=False
        Whether the model is the mean of w over all rows instead of the last w, the
        paper's choice.
    shuffle : bool or {"rows", "blocks"}, default=True
        Order of the rows in each epoch of `fit`. True or "rows" draws a new random
        order. "blocks" draws an order of blocks of 32 neighbouring rows, which is
        faster, and fit for rows that already lie in random order. False keeps the
        stored order.
    random_state : int, RandomState, Generator or None, default=None
        Seed of the order of the rows. An int of at least 0 gives the same order in each
        fit, None a new one; a RandomState or Generator goes on where it stopped.

    Attributes
    ----------
    coef_ : ndarray of shape (n_features,)
        Weights w of the features: a row x has the score ``w' x``. There is no
        intercept, since none changes a ranking.
    threshold_ : float
        Where `predict` cuts the list; `decision_function` subtracts it. As many
        training rows score above it as there are positives, except for ties. Only after
        a `fit` without a trace.
    classes_ : ndarray of shape (2,)
        The two labels in ascending order; the second is the positive class.
    n_features_in_ : int
        Number of features of the training rows.
    n_iter_ : int
        Passes over the rows so far; each call of `partial_fit` counts as one.
    n_rows_seen_ : int
        Rows visited, repeated visits included.
    t_ : int
        Steps so far, one for each row visited.

    Notes
    -----
    The second moments of the two classes take ``16 * n_features**2`` bytes, and a row
    O(n_features^2) time. The moments are counted from 0, and lose the digits of m**2
    for a feature whose mean is m standard deviations from 0: centre the features. A row
    without an earlier row of the other class changes nothing but the sums.

    The paper writes the covariance where ours has the second moments.

    References
    ----------
    Ding, Zhao, Hoi, Ong, "An adaptive gradient method for online AUC maximization",
    AAAI 2015: Algorithm 1. The loss and its gradient are those of OPAUC: Gao, Jin, Zhu,
    Zhou, "One-pass AUC optimization", ICML 2013.

    Examples
    --------
    >>> from precbench import AdaOAM
    >>> X, y = [[0.0, 0.0], [1.0, 1000.0]], [0, 1]
    >>> ranker = AdaOAM(eta0=0.1, shuffle=False).fit(X, y)
    >>> ranker.coef_.round(3).tolist()  # one step, as long for each feature
    [0.1, 0.1]
    """

    eta0: float = 0.1
    reg: float = 1e-4
    delta: float = 1e-8
    epochs: int = 1
    average: bool = False
    shuffle: Shuffle = True
    random_state: Any = None

    batch_size = 1

    allowed = Allowed(eta0=POSITIVE, reg=POSITIVE, delta=POSITIVE)

    def _fit_memory(self, n_features: int) -> tuple[int, str]:
        return 2 * n_features**2, "the second moments of both classes"

    def _new_step(self, n_features: int) -> "AdaOAMStep":
        return AdaOAMStep(self, n_features)


class AdaOAMStep(OnlineStep):
    """The state of AdaOAM: w, sums over each class's rows, and squared gradients."""

    def __init__(self, solver: AdaOAM, n_features: int):
        super().__init__(n_features, solver.average)
        self.counts = np.zeros(2)  # of rows, by class
        self.sums = np.zeros((2, n_features))  # of x, by class
        self.moments = np.zeros((2, n_features, n_features))  # sums of x x', by class
        self.squares = np.zeros(n_features)  # sums of the squared gradients
        self.values_per_row = self.moments.size + 5 * n_features
        self.set_parameters(solver)

    def set_parameters(self, solver: AdaOAM) -> None:
        self.eta0 = solver.eta0
        self.reg = solver.reg
        self.delta = solver.delta

    def learn(
        self, rows: Rows, labels: NDArray[np.int8], order: NDArray[np.int32]
    ) -> None:
        adaoam_pass(
            rows,
            labels,
            order,
            eta=self.eta0,
            reg=self.reg,
            delta=self.delta,
            w=self.w,
            w_sum=self.w_sum,
            counts=self.counts,
            sums=self.sums,
            moments=self.moments,
            squares=self.squares,
            scratch=np.empty(2 * len(self.w)),
        )


@dataclass(kw_only=True, eq=False, repr=False)
class SPAM(PassMixin, LinearRanker):
    """Stochastic proximal AUC maximisation: the squared loss of pairs, row by row.

    With the share p of the positives and the scores a and b of the means of the
    positives and the negatives under w, a step is ``w = prox[w - eta_t g_t]`` with
    ``eta_t = eta0 / sqrt(t)`` and

    - ``g_t = 2 (1 - p) (<w, x_t> - b - 1) x_t`` for a positive row,
    - ``g_t = 2 p (<w, x_t> - a + 1) x_t`` for a negative row,

    which is the paper's gradient with the best alpha = b - a put in, and
    ``prox[u] = sign(u) max(0, |u| - eta_t l1_reg) / (1 + eta_t reg)`` coordinate by
    coordinate. The mean of g_t is the gradient of ``p (1 - p)`` times the mean of
    ``(1 - <w, x - x'>)**2`` over the pairs of a positive x and a negative x'. A row
    takes O(n_features): use the method for long streams with many features, and with
    `l1_reg` for few weights. It aims at the whole list, not at its top.

    Parameters
    ----------
    eta0 : float, default=0.1
        Length of the first step, above 0, as a multiple of the gradient.
    reg : float, default=1e-4
        Weight of half the square norm of w, at least 0; the paper's beta.
    l1_reg : float, default=0.0
        Weight of the l1 norm of w, at least 0, which makes the penalty an elastic net.
    epochs : int, default=1
        Number of passes over the rows, at least 1; the paper makes one. In later passes
        the earlier rows count each time they were visited.
    average : bool, default=False
        Whether the model is the mean of w over all rows instead of the last w, for
        which convergence is proved.
    shuffle : bool or {"rows", "blocks"}, default=True
        Order of the rows in each epoch of `fit`. True or "rows" draws a new random
        order. "blocks" draws an order of blocks of 32 neighbouring rows, which is
        faster, and fit for rows that already lie in random order. False keeps the
        stored order.
    random_state : int, RandomState, Generator or None, default=None
        Seed of the order of the rows. An int of at least 0 gives the same order in each
        fit, None a new one; a RandomState or Generator goes on where it stopped.

    Attributes
    ----------
    coef_ : ndarray of shape (n_features,)
        Weights w of the features: a row x has the score ``w' x``. There is no
        intercept, since none changes a ranking.
    threshold_ : float
        Where `predict` cuts the list; `decision_function` subtracts it. As many
        training rows score above it as there are positives, except for ties. Only after
        a `fit` without a trace.
    classes_ : ndarray of shape (2,)
        The two labels in ascending order; the second is the positive class.
    n_features_in_ : int
        Number of features of the training rows.
    n_iter_ : int
        Passes over the rows so far; each call of `partial_fit` counts as one.
    n_rows_seen_ : int
        Rows visited, repeated visits included, but not the first pass of `fit`.
    t_ : int
        Steps so far, one for each row visited.

    Notes
    -----
    `fit` takes p and the means from a first pass over its rows, which `n_rows_seen_`
    does not count and a trace's clock does; a later `partial_fit` leaves them so.
    `partial_fit` from the start, and training on a stream, estimate them from the rows
    so far, and make no step before both classes were seen.

    The theorem of the paper has steps in proportion to 1 / t; the authors' programs,
    which ours follows, to 1 / sqrt(t). They report the mean of w.

    References
    ----------
    Natole, Ying, Lyu, "Stochastic proximal algorithms for AUC maximization", ICML 2018:
    Algorithm 1.

    Examples
    --------
    >>> import numpy as np
    >>> from precbench import SPAM
    >>> X = np.random.default_rng(0).standard_normal((500, 20))
    >>> y = X[:, 0] > 1
    >>> for l1_reg in (0.0, 0.3):  # features with a weight
    ...     print(np.count_nonzero(SPAM(l1_reg=l1_reg, random_state=0).fit(X, y).coef_))
    20
    11
    """

    eta0: float = 0.1
    reg: float = 1e-4
    l1_reg: float = 0.0
    epochs: int = 1
    average: bool = False
    shuffle: Shuffle = True
    random_state: Any = None

    batch_size = 1

    allowed = Allowed(eta0=POSITIVE, reg=NOT_NEGATIVE, l1_reg=NOT_NEGATIVE)

    def _new_step(self, n_features: int) -> "SPAMStep":
        return SPAMStep(self, n_features)


class SPAMStep(OnlineStep):
    """The state of SPAM: w, and the means of both classes, or what is known of them."""

    def __init__(self, solver: SPAM, n_features: int):
        super().__init__(n_features, solver.average)
        self.counts = np.zeros(2)  # of rows, by class: 0 negative, 1 positive
        self.sums = np.zeros((2, n_features))  # of x, by class
        self.means_are_known = False
        self.values_per_row = 4 * n_features
        self.set_parameters(solver)

    def set_parameters(self, solver: SPAM) -> None:
        self.eta0 = solver.eta0
        self.reg = solver.reg
        self.l1_reg = solver.l1_reg

    def read_totals(self, rows: Rows, labels: NDArray[np.int8]) -> None:
        """Set the count and the sum of the rows of each class."""
        negative, positive = labels < 0, labels > 0
        for c, in_class in enumerate((negative, positive)):
            indicator = in_class.astype(np.float64)
            self.counts[c] = np.count_nonzero(in_class)
            self.sums[c] = weighted_sum(rows, indicator, rows.n_features)
        self.means_are_known = True

    def learn(
        self, rows: Rows, labels: NDArray[np.int8], order: NDArray[np.int32]
    ) -> None:
        t = np.arange(self.t + 1, self.t + 1 + len(order))
        spam_pass(
            rows,
            labels,
            order,
            eta=self.eta0 / np.sqrt(t),
            reg=self.reg,
            l1_reg=self.l1_reg,
            running=not self.means_are_known,
            w=self.w,
            w_sum=self.w_sum,
            counts=self.counts,
            sums=self.sums,
        )
