"""The base class of the methods that visit rows in passes, batch by batch."""

from abc import abstractmethod
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from numbers import Integral
from typing import Any, Literal, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.metaestimators import available_if

from precbench.core.errors import InputError
from precbench.solvers.common.base import LinearRanker, Trace, untraced
from precbench.solvers.common.parameters import (
    BOOLEAN,
    COUNT,
    SEED,
    SHUFFLE,
    Allowed,
    checks_parameters,
)
from precbench.solvers.common.rows import STORED, Rows, as_rows

__all__ = [
    "Fit",
    "PassRanker",
    "Pieces",
    "Shuffle",
    "fit_pieces_together",
    "fit_together",
    "visiting_order",
]

BLOCK_ROWS = 32  # neighbouring rows that ``shuffle="blocks"`` keeps together
Shuffle = bool | Literal["rows", "blocks"]

# Rows in C order or CSR, of float64 or float32, their labels -1 or +1, and the order of visits.
Pieces = Iterable[tuple[Any, NDArray[np.float64 | np.int8], NDArray[np.int32]]]


def visiting_order(n: int, shuffle: Shuffle, rng: np.random.Generator) -> NDArray[np.int32]:
    """Return the order, of type int32, in which one epoch visits n rows.

    Parameters
    ----------
    n : int
    shuffle : bool or {"rows", "blocks"}
        False for the stored order, True or "rows" for a random order, "blocks" for blocks of
        `BLOCK_ROWS` neighbouring rows in random order.
    rng : numpy.random.Generator

    Examples
    --------
    >>> import numpy as np
    >>> from precbench.solvers.common.driver import visiting_order
    >>> order = visiting_order(96, "blocks", np.random.default_rng(0))
    >>> order[::32].tolist(), order[:3].tolist()  # where the blocks begin; neighbours stay together
    ([64, 0, 32], [64, 65, 66])
    """
    if shuffle is False:
        return np.arange(n, dtype=np.int32)
    if shuffle == "blocks":
        starts = rng.permutation(np.arange(0, n, BLOCK_ROWS, dtype=np.int32))
        order = (starts[:, None] + np.arange(BLOCK_ROWS, dtype=np.int32)).ravel()
        return order[order < n] if n % BLOCK_ROWS else order  # the last block may be shorter
    return rng.permutation(np.arange(n, dtype=np.int32))


class PassRanker(LinearRanker):
    """Base of the methods that visit rows in passes, one step a batch; `t_` counts the batches.

    A subclass defines `_visit_batches`, and in `_reset` creates its state. By default an
    epoch visits all rows as they come, so that rows may also come in pieces.

    Examples
    --------
    >>> from precbench import SGDAtK
    >>> from precbench.solvers.common.driver import PassRanker
    >>> isinstance(SGDAtK(), PassRanker)
    True
    """

    batch_size: int
    epochs: int
    average: bool
    shuffle: Shuffle
    random_state: Any

    dtypes = STORED
    allowed = Allowed(epochs=COUNT, average=BOOLEAN, shuffle=SHUFFLE, random_state=SEED)

    @property
    def _takes_pieces(self) -> bool:  # whether rows may come in pieces
        return True

    @property
    def _takes_mean(self) -> bool:  # whether the model is the mean of w
        return self.average

    @property
    def visits(self) -> Hashable | None:
        """Key of the order of visits, None if random; `fit_together` takes solvers of one key."""
        if not isinstance(self.random_state, Integral):
            return None
        params = self.get_params()
        names = ("batch_size", "reservoir_size", "shuffle", "random_state")
        return type(self), *(params.get(name) for name in names)

    @staticmethod
    @abstractmethod
    def _visit_batches(
        solvers: Sequence[Any],
        rows: Rows,
        labels: NDArray[np.int8],
        order: NDArray[np.int32],
        batch_size: int,
    ) -> None:
        """Let solvers visit the rows of `order` in batches, read once for all (`fit_together`).

        Change ``_w`` in place; after each batch add w to ``_w_sum``, unless ``_w_sum`` is empty.
        """

    @property
    def _has_intercept(self) -> bool:  # whether w ends with an intercept
        return False

    def _batch_length(self, labels: NDArray[np.int8]) -> int:  # in `fit`: at most all rows
        return min(self.batch_size, len(labels))

    def _passes(
        self, labels: NDArray[np.int8], rng: np.random.Generator
    ) -> Iterator[Iterable[NDArray[np.int32]]]:
        """Yield for each epoch of `fit` the order of its rows, in pieces of whole batches."""
        while True:  # endless: the caller stops; here one piece of all rows, in `TwoPMB` several
            yield [visiting_order(len(labels), self.shuffle, rng)]

    def _prepare(self, labels: NDArray[np.int8]) -> None:
        """Prepare `fit` before the trace starts the clock."""

    def _compute_totals(self, rows: Rows, labels: NDArray[np.int8]) -> None:
        """Compute statistics of all rows of `fit` that the passes need."""

    def _finish_pass(self, rows: Rows, labels: NDArray[np.int8]) -> None:
        """Inspect w at the end of a pass, before the trace."""

    def _model(self) -> NDArray[np.float64]:
        """Return the w to publish: the mean, or a copy of the last w, which later steps change."""
        return self._w_sum / self.t_ if len(self._w_sum) else self._w.copy()

    def _slice_length(self, rows: Rows) -> int:  # in rows
        return rows.per_slice()

    def _reset(self, n_features: int) -> None:
        """Set the weights and all counters to 0."""
        n_weights = n_features + self._has_intercept
        # w_sum, the sum of w over the batches, is empty if the model is not the mean of w.
        w, w_sum = np.zeros(n_weights), np.zeros(n_weights if self._takes_mean else 0)
        self._publish(w.copy(), has_intercept=self._has_intercept)  # steps change w in place
        self._w, self._w_sum = w, w_sum
        self.n_iter_ = self.n_rows_seen_ = self.t_ = 0

    def _fit(self, X: Any, labels: NDArray[np.int8], trace: Trace) -> None:
        _train([Fit(self, trace)], X, labels)

    @available_if(lambda self: self._takes_pieces)
    @checks_parameters
    def partial_fit(
        self,
        X: Any,
        y: ArrayLike,
        classes: ArrayLike | None = None,
        order: ArrayLike | None = None,
        trace: Trace | None = None,
    ) -> Self:
        """Continue learning with one pass over more rows.

        Batches never span two calls: pieces whose lengths are multiples of `batch_size` give
        the same path as one call. Whether the mean of w is returned is settled at the first call.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
        y : array-like of shape (n_samples,)
        classes : array-like of shape (2,), optional
            The two labels, needed at the first call if y may lack one.
        order : array-like of int, optional
            Indices of the rows to visit, in turn; default the stored order.
        trace : callable, optional

        Returns
        -------
        self

        Raises
        ------
        InputError
            If `order` has a number beyond the rows of X, or labels, features or objective changed.
        """
        is_first, trace = not hasattr(self, "coef_"), trace or untraced
        X, labels = self._check_input(X, y, reset=is_first, classes=classes)
        if is_first:
            self._reset(X.shape[1])
            if trace(self):  # the trace ends the fit
                return self
        else:
            self._check_width(X.shape[1])
            if len(self._w) != X.shape[1] + self._has_intercept:
                raise InputError(
                    f'the objective was changed {"to" if self._has_intercept else "from"} "f1", '
                    "which alone has an intercept; continue with the earlier objective, or call fit"
                )
        rows = as_rows(X)
        visited = _row_numbers(order, rows.n_rows)
        batch_size = min(self.batch_size, max(1, len(visited)))  # no larger scratch than needed
        _visit([Fit(self, trace)], rows, labels, visited, batch_size)
        self.n_iter_ += 1
        self._report_overflow(trace)
        return self

    @available_if(lambda self: self._takes_pieces)
    def fit_pieces(
        self, n_features: int, epoch: Callable[[], Pieces], trace: Trace | None = None
    ) -> Self:
        """Learn as `fit` does from rows that are read again in each epoch.

        The result is that of `partial_fit` on one piece after the other, without its slow checks.

        Parameters
        ----------
        n_features : int
        epoch : callable
            Called for each epoch; returns the pieces, finite rows with an order whose length is a
            multiple of the batch size in all pieces except the last.
        trace : callable, optional
            As in `fit`. Its first call precedes the first piece, so that the time to read counts.

        Returns
        -------
        self
        """
        fit_pieces_together([Fit(self, trace or untraced)], n_features, epoch)
        return self


def _row_numbers(order: ArrayLike | None, n_rows: int) -> NDArray[np.int32]:
    # Return the checked numbers in `order`, or the numbers of all rows if `order` is None.
    visited = np.arange(n_rows) if order is None else np.asarray(order)
    if visited.ndim != 1 or (visited.size and visited.dtype.kind not in "iu"):
        raise InputError(
            f"order has the shape {visited.shape} and the type {visited.dtype}; give a flat list "
            "of integers, the row numbers"
        )
    if visited.size and not 0 <= visited.min() <= visited.max() < n_rows:
        raise InputError(
            f"order has row numbers from {visited.min()} to {visited.max()}; give numbers of rows "
            f"of X, from 0 to {n_rows - 1}"
        )
    return np.ascontiguousarray(visited, dtype=np.int32)


class Fit(NamedTuple):
    """A solver that is being fitted, and the trace of its fit."""

    solver: PassRanker
    trace: Trace


def fit_together(fits: Sequence[Fit], X: Any, y: ArrayLike) -> None:
    """Fit solvers to the same rows, which are read once for all of them.

    The weights and the number of rows seen of each solver are bitwise those of a separate fit.

    Parameters
    ----------
    fits : sequence of Fit
        Solvers with the same `PassRanker.visits`, which is not None.
    X, y
        See `Ranker.fit`.

    Examples
    --------
    >>> from precbench import SGDAtK
    >>> from precbench.solvers.common.base import untraced
    >>> from precbench.solvers.common.driver import Fit, fit_together
    >>> X, y = [[1.0], [0.0], [1.0], [0.0]], [1, 0, 0, 0]
    >>> one, other = (SGDAtK(k=1, eta0=eta0, random_state=0) for eta0 in (0.1, 1.0))
    >>> fit_together([Fit(one, untraced), Fit(other, untraced)], X, y)
    >>> bool(other.coef_ == SGDAtK(k=1, eta0=1.0, random_state=0).fit(X, y).coef_)
    True
    """
    first = fits[0].solver
    for solver, _trace in fits:
        solver._validate_params()
    X, labels = first._check_input(X, y, reset=True)  # once: other solvers would find the same
    for solver, _trace in fits[1:]:  # what `_check_input` has done for `first`
        solver.classes_, solver.n_features_in_ = first.classes_, first.n_features_in_
        solver.require_memory(X.shape[1])
    with np.errstate(all="ignore"):  # weights that overflow are reported at the end
        _train(fits, X, labels)
    for solver, trace in fits:
        solver._report_overflow(trace)


def fit_pieces_together(fits: Sequence[Fit], n_features: int, epoch: Callable[[], Pieces]) -> None:
    """Fit solvers with the same `PassRanker.visits` to pieces, which are read once for all of them.

    Parameters
    ----------
    fits : sequence of Fit
    n_features, epoch
        See `PassRanker.fit_pieces`.

    Examples
    --------
    >>> import numpy as np
    >>> from precbench import SGDAtK
    >>> from precbench.solvers.common.base import untraced
    >>> from precbench.solvers.common.driver import Fit, fit_pieces_together
    >>> X, y, order = np.array([[1.0], [0.0]]), np.array([1.0, -1.0]), np.array([0, 1], np.int32)
    >>> ranker = SGDAtK(k=1, batch_size=2, epochs=3, random_state=0)
    >>> fit_pieces_together([Fit(ranker, untraced)], 1, lambda: [(X, y, order)] * 4)
    >>> ranker.n_rows_seen_  # 3 epochs of 4 pieces of 2 rows
    24
    """
    for solver, _trace in fits:
        solver.require_memory(n_features)
        solver.n_features_in_ = n_features
        solver.classes_ = np.array([-1.0, 1.0])
        solver._reset(n_features)
    batch_size = fits[0].solver.batch_size
    _repeat(
        _call_traces(fits),
        lambda: (
            (as_rows(X), y.astype(np.int8, copy=False), order, min(batch_size, len(order)))
            for X, y, order in epoch()  # reads the pieces again
        ),
    )
    for solver, trace in fits:
        solver._report_overflow(trace)


_Visits = Iterable[tuple[Rows, NDArray[np.int8], NDArray[np.int32], int]]  # arguments of `_visit`


def _train(fits: Sequence[Fit], X: Any, labels: NDArray[np.int8]) -> None:
    """Train solvers with equal `visits` on checked rows, in place, epoch by epoch."""
    first = fits[0].solver
    rng = np.random.default_rng(first.random_state)
    rows = as_rows(X)
    for solver, _trace in fits:
        solver._prepare(labels)
        solver._reset(X.shape[1])
    batch_size, orders = first._batch_length(labels), first._passes(labels, rng)
    started = _call_traces(fits)  # the first call of a trace starts its clock
    for solver, _trace in started:
        solver._compute_totals(rows, labels)
    # next(orders) is the row order of an epoch, in pieces.
    _repeat(started, lambda: ((rows, labels, order, batch_size) for order in next(orders)))


def _call_traces(fits: Iterable[Fit]) -> list[Fit]:
    """Call the trace of each fit with its solver; return the fits that are to go on."""
    return [fit for fit in fits if not fit.trace(fit.solver)]


def _repeat(fits: list[Fit], epoch: Callable[[], _Visits]) -> None:
    # Train solvers in place until each has done its number of `epochs` or its trace ends it. A call
    # of `epoch` begins an epoch, and returns for each piece of its rows the arguments of `_visit`.
    while fits := [fit for fit in fits if fit.solver.n_iter_ < fit.solver.epochs]:
        begun = fits
        for piece in epoch():
            fits = _visit(fits, *piece)  # the fits that go on
            if not fits:
                break
        for solver, _trace in begun:  # an epoch that a trace ended also counts
            solver.n_iter_ += 1


def _visit(
    fits: list[Fit], rows: Rows, labels: NDArray[np.int8], order: NDArray[np.int32], batch_size: int
) -> list[Fit]:
    # Visit the rows of `order` in slices, call the traces after each; return the fits that go on.
    # A slice takes a fraction of 0.1 s, or ends with the batch in which a trace becomes due.
    n, start = len(order), 0
    while fits and start < n:
        solvers = [fit.solver for fit in fits]
        length = min(n - start, *(solver._slice_length(rows) for solver in solvers))
        for solver, trace in fits:
            if hasattr(trace, "next_rows"):  # the `n_rows_seen_` at which the trace is due
                length = min(length, max(1, trace.next_rows - solver.n_rows_seen_))
        # The length becomes that of whole batches: a batch cut in two would be two steps.
        n_batches = -(-length // batch_size)  # rounded up
        stop = min(n, start + n_batches * batch_size)
        solvers[0]._visit_batches(solvers, rows, labels, order[start:stop], batch_size)
        for solver in solvers:
            solver.t_ += n_batches
            solver.n_rows_seen_ += stop - start
            if stop == n:
                solver._finish_pass(rows, labels)
            solver._publish(solver._model(), has_intercept=solver._has_intercept)
        fits = _call_traces(fits)
        start = stop
    return fits
