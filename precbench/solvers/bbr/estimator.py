"""Bipartite ranking by the pairwise squared loss, in closed form: BBR and LCBR."""

from abc import abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from numbers import Integral
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.metaestimators import available_if

from precbench.core.errors import InputError
from precbench.ranking.topk import ceil_share
from precbench.solvers.bbr.ball import minimise_along_axes
from precbench.solvers.bbr.kernel import add_pairs, add_sparse_rows, fill_blocks
from precbench.solvers.common.base import (
    MATRICES,
    LinearRanker,
    Trace,
    checks_parameters,
    untraced,
)
from precbench.solvers.common.parameters import (
    MULTIPLE_OR_COUNT,
    RADIUS,
    SEED,
    Allowed,
    as_generator,
    one_of,
)
from precbench.solvers.common.rows import STORED, Rows, as_rows

_EPS = float(np.finfo(np.float64).eps)
_BLOCK_ROWS = 8192  # most rows of one class that BLAS multiplies at a time
_LEAST_BLOCK_ROWS = 64
_BLOCK_PRODUCTS = 2**29  # products of entries in a block: about 0.05 s
_SLICE_PRODUCTS = 2**22  # of entries, between two calls of the trace: about 0.01 s
_SLICE_PAIRS = 2**13  # most pairs that are summed apart, see `PairSums`


class Noise(NamedTuple):
    """A bound of rounding errors: ``a[j] * b[k]`` at the entry [j, k] of a matrix."""

    a: NDArray[np.float64]
    b: NDArray[np.float64]


class Moments(NamedTuple):
    """The first two moments of the differences ``x_i - x_j`` over pairs."""

    mean: NDArray[np.float64]
    second: NDArray[np.float64]
    noise: Noise | None = None  # of `second`


class SquaredPairRanker(LinearRanker):
    """Base of BBR and LCBR, whose w follows from two moments of differences."""

    # The two minimise the mean over pairs of a positive i and a negative j of
    #     (1 - w' (x_i - x_j))^2 / 2,
    # which is, less the constant 1/2,
    #     R(w) = w' second w / 2 - mean' w.
    # `mean` is in the range (column space) of `second`, for second - mean mean' is a
    # covariance. The trace is called at the start, between slices of the sums and at
    # the end. Until the sums are complete the weights are 0, or those of the last
    # `catch_up`.

    radius: float | None

    dtypes = STORED

    allowed = Allowed(radius=RADIUS)

    def _fit(self, X: Any, labels: NDArray[np.int8], trace: Trace) -> None:
        self._start(X.shape[1])
        if not trace(self) and self._learn(as_rows(X), labels, trace):
            self.n_iter_ = 1
            trace(self)

    @abstractmethod
    def _learn(self, rows: Rows, labels: NDArray[np.int8], trace: Trace) -> bool:
        """Set `coef_`; return False if the trace ended the fit."""

    def _fit_memory(self, n_features: int) -> tuple[int, str]:
        what = f"{MATRICES} matrices of n_features x n_features"
        return MATRICES * n_features**2, what

    def _minimise(self, moments: Moments) -> None:
        """Set `coef_` to the minimiser of ``w' second w / 2 - mean' w`` in the ball."""
        mean, second, noise = moments
        if not (np.isfinite(second).all() and np.isfinite(mean).all()):
            # `fit` reports these weights as an overflow.
            self.coef_ = np.full_like(mean, np.nan)
            return
        curvatures, axes = np.linalg.eigh(second)
        greatest_curvature = curvatures[-1]  # they ascend
        # Eigenvalues below the floor count as 0: they may be rounding errors.
        floor = np.full(len(mean), len(mean) * _EPS * greatest_curvature)
        if noise is not None:
            # v' second v of an axis v is off by at most (a' |v|) (b' |v|).
            errors = (noise.a @ np.abs(axes)) * (noise.b @ np.abs(axes))
            floor = np.maximum(floor, errors)
        # `mean` is in the range of `second`, as the head of the class says.
        self.coef_ = minimise_along_axes(
            curvatures, axes, floor, mean, self.radius, mean_in_range=True
        )

    def _learn_from_pairs(
        self,
        rows: Rows,
        labels: NDArray[np.int8],
        n_pairs: int,
        pair_numbers: Callable[[int, int], NDArray[np.int64]],
        trace: Trace,
    ) -> bool:
        """Set `coef_` from a sequence of `n_pairs` pairs.

        Return False if the trace ended the fit. ``pair_numbers(start, stop)`` gives the
        pairs at the places start to stop of the sequence as numbers: t stands for the
        positive t // n_neg with the negative t % n_neg.
        """
        n = len(self.coef_)  # features
        pos = np.flatnonzero(labels > 0).astype(np.int32)
        neg = np.flatnonzero(labels < 0).astype(np.int32)
        length = _pairs_per_slice(rows, n)  # of a slice
        scratch = _scratch(n)
        self._sums = PairSums(n)  # an attribute for `catch_up`
        start = 0
        while start < n_pairs:
            # Go on to the end of the slice, or to the trace's `next_rows` if this comes
            # first. The slices do not depend on the trace, so that no bit of the sums
            # depends on the trace.
            checkpoint = max(start + 1, getattr(trace, "next_rows", n_pairs))
            slice_end = (start // length + 1) * length
            stop = min(n_pairs, slice_end, checkpoint)
            add_pairs(  # adds to the two sums in place
                rows,
                pos,
                neg,
                pair_numbers(start, stop),
                *scratch,
                self._sums.of_slice,
                self._sums.products_of_slice,
            )
            if stop % length == 0 or stop == n_pairs:
                self._sums.end_slice()
            self.n_rows_seen_ += stop - start
            start = stop
            if start < n_pairs and trace(self):
                self.catch_up()
                del self._sums
                return False
        self._minimise(self._sums.moments(n_pairs))
        del self._sums
        return True


class PairSums:
    """Sums of differences z of pairs, and of the products z z', which kernels fill.

    Those of the current slice are kept apart, since longer sums lose digits.
    """

    def __init__(self, n_features: int):
        self.before_slice = np.zeros(n_features)
        self.products_before_slice = np.zeros((n_features, n_features))
        self.of_slice = np.zeros(n_features)
        self.products_of_slice = np.zeros((n_features, n_features))

    def end_slice(self) -> None:
        self.before_slice += self.of_slice
        self.products_before_slice += self.products_of_slice
        self.of_slice.fill(0)
        self.products_of_slice.fill(0)

    def moments(self, n_pairs: int) -> Moments:
        """Return the moments of all `n_pairs` pairs so far."""
        sums = self.before_slice + self.of_slice
        products = self.products_before_slice + self.products_of_slice
        return Moments(mean=sums / n_pairs, second=_symmetric(products) / n_pairs)


@dataclass(kw_only=True, eq=False, repr=False)
class BBR(SquaredPairRanker):
    """Batch bipartite ranking: the pairwise squared loss, minimised in closed form.

    With the rows x_i of the N_1 positives and x_j of the N_0 negatives, BBR minimises
    half the mean of ``(1 - w' (x_i - x_j))**2`` over all pairs; up to a constant,

        R(w) = w' Sigma w / 2 - mu' w   over   ||w|| <= radius,
        mu = mean of x_i - x_j,   Sigma = mean of (x_i - x_j)(x_i - x_j)'.

    There is no step size and no number of iterations to choose: one pass over the rows
    and one eigendecomposition give w. All pairs count alike, so that the method suits
    the order of a whole list (its AUC) rather than the top of the list.

    w is unique where Sigma is regular or the ball is reached, else the shortest
    minimiser.

    Parameters
    ----------
    radius : float or None, default=None
        Radius of the ball that w lies in, above 0; None for the whole space. The paper
        chooses it, its W_*, by cross-validation.
    accumulate : {"moments", "pairs"}, default="moments"
        How mu and Sigma are computed, with the same result except for rounding: by the
        "moments" of each class in O((N_1 + N_0) D^2) for D features,

            mu = m_1 - m_0,   Sigma = S_1 + S_0 - m_1 m_0' - m_0 m_1',

        where m_c is the mean of x and S_c that of x x' in class c; or by the loop over
        "pairs" of Algorithm 1 in O(N_1 N_0 D^2).

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
        Number of calls that have been learnt from: 1 after `fit`, one more for each
        `partial_fit`.
    n_rows_seen_ : int
        With "moments" rows, each visited once; with "pairs" pairs of rows, each visited
        once.

    Notes
    -----
    Dense rows are counted from the mean of the first rows, which keeps the digits of
    features far from 0. CSR rows are counted from 0: of a feature whose mean is m
    standard deviations from 0 they lose the digits of m**2; scale or centre it. A fit
    holds nine matrices of n_features x n_features and, for the moments of dense rows,
    two blocks of up to 8,192 rows. For other features phi(x) put their transformer
    before the method: ``make_pipeline(RBFSampler(), BBR())``.

    The paper has the loop over pairs alone.

    References
    ----------
    Gultekin, Paisley, "Risk bounds for low cost bipartite ranking", UAI 2020: the
    problem (3) and Algorithm 1. Theorem 1 bounds R(w) less the least R of the ball,
    when the rows also lie in a ball.

    Examples
    --------
    >>> from precbench import BBR
    >>> ranker = BBR().fit([[2.0], [1.0], [0.0], [0.0]], [1, 1, 0, 0])
    >>> ranker.coef_.round(3).tolist()  # mean difference 1.5 over mean square 2.5
    [0.6]
    """

    radius: float | None = field(default=None, kw_only=False)
    accumulate: str = "moments"

    allowed = Allowed(accumulate=one_of("moments", "pairs"))

    def _takes_pieces(self) -> bool:  # True, or raises with the reason
        if self.accumulate == "pairs":
            raise AttributeError(
                'partial_fit needs accumulate="moments", since a pair may have its two'
                " rows in different calls; set this parameter, or call fit with all"
                " rows"
            )
        return True

    @available_if(_takes_pieces)
    @checks_parameters
    def partial_fit(
        self,
        X: Any,
        y: ArrayLike,
        classes: ArrayLike | None = None,
        trace: Trace | None = None,
    ) -> Self:
        """Continue with more rows, to the result of `fit` on all rows.

        The two differ by rounding only. While no row of one class has come, the weights
        are 0.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            The rows to add.
        y : array-like of shape (n_samples,)
            Their labels; the greater of the two labels is the positive class.
        classes : array-like of shape (2,), optional
            The two labels, needed at the first call if `y` may lack one.
        trace : callable, optional
            Observer of the training, see `precbench.solvers.common.base.Trace`. If it
            ends the call, these rows have not been learnt.

        Returns
        -------
        self

        Raises
        ------
        InputError
            If y has other labels than the first call, the earlier rows were fitted with
            ``accumulate="pairs"``, the memory is too small, or a later call of fit
            failed.
        """
        trace = trace or untraced
        is_first = not hasattr(self, "coef_")
        # A fit that has ended without moments had accumulate="pairs".
        if not is_first and self._moments is None and self.n_iter_:
            raise InputError(
                'partial_fit cannot continue a fit with accumulate="pairs", which keeps'
                " no sums of the earlier rows; call fit with all rows, or start a new"
                " solver and call partial_fit with the earlier rows, then with these"
            )
        X, labels = self._check_input(X, y, reset=is_first, classes=classes)
        if not is_first:
            self._check_width(X.shape[1])
        else:
            self._start(X.shape[1])
            if trace(self):
                return self
        n_before = self.n_rows_seen_
        if self._learn(as_rows(X), labels, trace):
            self.n_iter_ += 1
            trace(self)
        else:  # the trace has ended the call, so that these rows are not learnt
            self.n_rows_seen_ = n_before
        self._report_overflow(trace)
        return self

    def _fit_memory(self, n_features: int) -> tuple[int, str]:
        n_values, what = super()._fit_memory(n_features)
        if self.accumulate == "pairs":  # reads rows where they are, without blocks
            return n_values, what
        length = _block_length(n_features)
        n_values += 2 * length * n_features  # each class has a block
        return n_values, f"{what} and two blocks of {length:,} rows"

    def _start(self, n_features: int) -> None:
        super()._start(n_features)
        self._moments: ClassMoments | None = None  # no rows have been learnt

    def _learn(self, rows: Rows, labels: NDArray[np.int8], trace: Trace) -> bool:
        """Set `coef_` from all pairs of these rows, or from moments by class.

        The moments are those of these and earlier rows. Return False if the trace ended
        the fit.
        """
        if self.accumulate == "pairs":
            n_pos = int(np.count_nonzero(labels > 0))
            n_pairs = n_pos * (len(labels) - n_pos)
            in_order = np.arange
            return self._learn_from_pairs(rows, labels, n_pairs, in_order, trace)
        total = ClassMoments(rows, len(self.coef_))
        for n_added in total.add(rows, labels):
            self.n_rows_seen_ += n_added
            is_last = total.counts.sum() == rows.n_rows  # after it the caller traces
            if not is_last and trace(self):
                return False
        if self._moments is not None:  # of earlier calls of `partial_fit`
            total = self._moments.join(total)
        self._moments = total
        if total.counts.all():  # rows of both classes have come
            with np.errstate(over="ignore", invalid="ignore"):
                self._minimise(total.of_differences())
        return True


@dataclass(kw_only=True, eq=False, repr=False)
class LCBR(SquaredPairRanker):
    """Low-cost bipartite ranking: the pairwise squared loss on a sample of pairs.

    With S pairs of a positive x_i and a negative x_j, drawn at random, LCBR minimises

        R(w) = w' Sigma w / 2 - mu' w   over   ||w|| <= radius,
        mu = mean of x_i - x_j,   Sigma = mean of (x_i - x_j)(x_i - x_j)',

    in closed form: there is no step size to choose. It takes O(S D^2) for D features,
    however many rows there are. Use it where reading all rows takes too long; where it
    does not, `BBR` with its moments minimises the mean over all pairs in one pass.

    w is unique where Sigma is regular or the ball is reached, else the shortest
    minimiser.

    Parameters
    ----------
    n_pairs : int or float, default=5000
        Number S of pairs of a positive and a negative, drawn uniformly with replacement
        from all of them. An int, at least 1, is the number of pairs; a float above 0 is
        a multiple of the number of rows, rounded up.
    radius : float or None, default=None
        Radius of the ball that w lies in, above 0; None for the whole space.
    random_state : int, RandomState, Generator or None, default=None
        Seed of the choice of the pairs. An int of at least 0 gives the same pairs in
        each fit, None new ones; a RandomState or Generator goes on where it stopped.

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
        1 after a `fit`; 0 if a trace ended it before the last pair.
    n_rows_seen_ : int
        Pairs of rows visited so far, repeated visits included.

    Notes
    -----
    A fit holds nine matrices of n_features x n_features.

    Theorem 2 of the paper says how many pairs suffice. Its (12) should read "at most
    delta", and the second term of (11) eps^2 / 64, not eps^2 / 4: a difference of two
    rows may have twice the norm of a row.

    References
    ----------
    Gultekin, Paisley, "Risk bounds for low cost bipartite ranking", UAI 2020: the
    problem (3) and Algorithm 2.

    Examples
    --------
    >>> from precbench import LCBR
    >>> X, y = [[2.0], [1.0], [0.0], [0.0]], [1, 1, 0, 0]
    >>> ranker = LCBR(n_pairs=5000, random_state=0).fit(X, y)
    >>> ranker.coef_.round(2).tolist(), ranker.n_rows_seen_  # of all pairs 0.6
    ([0.6], 5000)
    """

    n_pairs: int | float = field(default=5000, kw_only=False)
    radius: float | None = None
    random_state: Any = None

    allowed = Allowed(n_pairs=MULTIPLE_OR_COUNT, random_state=SEED)

    def _start(self, n_features: int) -> None:
        super()._start(n_features)
        self._rng = as_generator(self.random_state)

    def _learn(self, rows: Rows, labels: NDArray[np.int8], trace: Trace) -> bool:
        """Set `coef_` from pairs drawn with replacement.

        Return False if the trace ends the fit.
        """
        n_pos = int(np.count_nonzero(labels > 0))
        n_possible = n_pos * (len(labels) - n_pos)
        n_pairs = self.n_pairs
        if not isinstance(n_pairs, Integral):  # a multiple of the number of rows
            n_pairs = ceil_share(float(n_pairs), len(labels))

        def draw(start: int, stop: int) -> NDArray[np.int64]:  # random numbers of pairs
            return self._rng.integers(n_possible, size=stop - start)

        return self._learn_from_pairs(rows, labels, int(n_pairs), draw, trace)

    def catch_up(self) -> None:
        """Set `coef_` from the pairs visited so far, which `n_rows_seen_` counts."""
        is_learning = hasattr(self, "_sums")  # in the course of `_learn_from_pairs`
        if self.n_rows_seen_ and is_learning:
            self._minimise(self._sums.moments(self.n_rows_seen_))


class ClassMoments:
    """Count, sum and sum of outer products of the rows of each class, positives first.

    The rows are counted from an origin: 0 for CSR rows, the mean of the first rows if
    dense. If the mean of all rows is d of their standard deviations from the origin,
    the relative rounding error of the covariance is d^2 times as large. For dense rows
    d^2 is at most n_rows / (number of the first rows).
    """

    def __init__(self, rows: Rows, n_features: int):
        self.counts = np.zeros(2, dtype=np.intp)  # numbers of rows
        self.sums = np.zeros((2, n_features))  # of z, a row less the origin
        self.products = np.zeros((2, n_features, n_features))  # sums of z z'
        self.origin = np.zeros(n_features)
        is_dense = not len(rows.indptr)
        if is_dense:
            first = rows.data[: _BLOCK_ROWS * n_features].reshape(-1, n_features)
            with np.errstate(over="ignore", invalid="ignore"):
                self.origin = first.astype(np.float64, copy=False).mean(axis=0)

    def add(self, rows: Rows, labels: NDArray[np.int8]) -> Iterator[int]:
        """Add rows slice by slice; yield the number of rows of each after it."""
        if len(rows.indptr):
            return self._add_sparse(rows, labels)
        return self._add_dense(rows, labels)

    def _add_dense(self, rows: Rows, labels: NDArray[np.int8]) -> Iterator[int]:
        """Copy dense rows, less the origin, to the block of their class.

        When a block is full, or at the end, let BLAS add the products z z' of its rows;
        yield the number of rows just copied.
        """
        n = len(self.origin)  # features
        blocks = np.empty((2, min(_block_length(n), rows.n_rows), n))
        filled = np.zeros(2, dtype=np.intp)  # number of rows in each block
        start = 0  # the next row to copy
        while start < rows.n_rows:
            # The kernel copies rows until a block is full, and updates `filled` and the
            # sums.
            stop = fill_blocks(
                rows, labels, start, self.origin, blocks, filled, self.sums
            )
            for c in range(2):  # the classes
                is_full = filled[c] == blocks.shape[1]
                if is_full or stop == rows.n_rows:
                    block = blocks[c, : filled[c]]
                    with np.errstate(over="ignore", invalid="ignore"):
                        self.products[c] += block.T @ block
                    self.counts[c] += filled[c]
                    filled[c] = 0
            yield stop - start
            start = stop

    def _add_sparse(self, rows: Rows, labels: NDArray[np.int8]) -> Iterator[int]:
        """Add CSR rows entry by entry; yield the number of rows of each slice.

        Counts are set, and products made symmetric, after the last slice only.
        """
        n = len(self.origin)  # features
        products_per_row = _n_products(rows, n, n_joined=1)
        length = max(1, _SLICE_PRODUCTS // products_per_row)  # of a slice, in rows
        scratch = _scratch(n)
        for start in range(0, rows.n_rows, length):
            stop = min(rows.n_rows, start + length)
            add_sparse_rows(
                rows, labels, start, stop, *scratch, self.sums, self.products
            )
            if stop == rows.n_rows:
                n_pos = int(np.count_nonzero(labels > 0))
                self.counts[:] = n_pos, rows.n_rows - n_pos
                for products in self.products:
                    products[:] = _symmetric(products)
            yield stop - start

    def join(self, other: "ClassMoments") -> "ClassMoments":
        """Add the moments of other rows, shifted to this origin; return self."""
        shift = other.origin - self.origin
        for c in range(2):  # the classes
            n, total = other.counts[c], other.sums[c]
            # With total = sum z over the rows of `other`,
            #     sum (z + shift)(z + shift)' = sum z z' + cross + cross',
            #     cross = (total + n/2 shift) shift',
            # as cross and cross' each have a half of n shift shift'.
            cross = np.outer(total + n / 2 * shift, shift)
            self.products[c] += other.products[c] + cross + cross.T
            self.sums[c] += total + n * shift
        self.counts += other.counts
        return self

    def of_differences(self) -> Moments:
        """Return the moments over all pairs of a positive and a negative."""
        # With means m and second moments S of the positives (1) and negatives (0),
        #     mean = m_1 - m_0,
        #     second = S_1 + S_0 - m_1 m_0' - m_0 m_1'.
        pos_mean, neg_mean = self.sums / self.counts[:, None]
        second = self.products[0] / self.counts[0]  # of the positives
        second += self.products[1] / self.counts[1]
        cross = np.outer(pos_mean, neg_mean)
        second -= cross
        second -= cross.T
        # Each of the rows in the sums may add a rounding error of _EPS.
        noise_of_cross = Noise(
            a=_EPS * self.counts.sum() * np.abs(pos_mean), b=np.abs(neg_mean)
        )
        return Moments(pos_mean - neg_mean, second, noise_of_cross)


def _block_length(n_features: int) -> int:
    """Return the number of rows of a block."""
    n_rows = _BLOCK_PRODUCTS // n_features**2
    return min(_BLOCK_ROWS, max(_LEAST_BLOCK_ROWS, n_rows))


def _pairs_per_slice(rows: Rows, n_features: int) -> int:
    """Return how many pairs are summed apart from those before, see `PairSums`."""
    products_per_pair = _n_products(rows, n_features, n_joined=2)
    length = min(_SLICE_PAIRS, _SLICE_PRODUCTS // products_per_pair)
    # At the end of a slice its sums are added in n_features**2 steps. A slice has at
    # least 4 times as many products, so that this takes little of the time.
    return max(1, length, 4 * n_features**2 // products_per_pair)


def _n_products(rows: Rows, n_features: int, n_joined: int) -> int:
    """Estimate the products of entries in z z', z made of `n_joined` rows."""
    if not len(rows.indptr):  # dense rows: the entries of the upper triangle
        return n_features * (n_features + 1) // 2
    n_stored = np.diff(rows.indptr).astype(np.float64)  # entries of each sparse row
    # A z of m = n_joined * n_stored entries takes about m^2 / 2 products. Return the
    # mean of these over the rows, plus 1, since the callers divide by the result.
    return 1 + int(n_joined**2 * (n_stored @ n_stored) / len(n_stored) / 2)


def _scratch(
    n_features: int,
) -> tuple[NDArray[np.float64], NDArray[np.int32], NDArray[np.int32]]:
    """Return the arrays in which the kernels work: z, its columns, their places."""
    z = np.empty(n_features)
    columns = np.empty(n_features, dtype=np.int32)
    places = np.full(n_features, -1, dtype=np.int32)  # -1: the column is not in z
    return z, columns, places


def _symmetric(products: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return ``U + U' - diag(U)`` of products U that kernels wrote only once."""
    both = products + products.T
    np.fill_diagonal(both, products.diagonal())
    return both
