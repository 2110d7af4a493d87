"""The driver of the methods that visit rows in passes, batch by batch.

A method is an estimator with `PassMixin`, and a `Step` that it makes: the state of the
method, which learns from the rows of a batch. Epochs, orders of visits, slices between
calls of the trace, solvers fitted together and rows in pieces are functions here. The
loop is in `run_epochs` (the pieces of each epoch) and `visit_piece` (the slices of a
piece).
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from numbers import Integral
from typing import Any, Literal, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.metaestimators import available_if

from precbench.core.errors import InputError
from precbench.solvers.common.base import Trace, checks_parameters, untraced
from precbench.solvers.common.parameters import (
    BOOLEAN,
    COUNT,
    SEED,
    SHUFFLE,
    Allowed,
    as_generator,
)
from precbench.solvers.common.rows import STORED, VALUES_PER_SLICE, Rows, as_rows

__all__ = [
    "Fit",
    "PassMixin",
    "Pieces",
    "Shuffle",
    "Step",
    "fit_pieces_together",
    "fit_together",
    "visiting_order",
]

BLOCK_ROWS = 32  # neighbouring rows that ``shuffle="blocks"`` keeps together
Shuffle = bool | Literal["rows", "blocks"]

# A piece has rows in C order or CSR, of float64 or float32, their labels -1 or +1, and
# the order of visits.
Pieces = Iterable[tuple[Any, NDArray[np.float64 | np.int8], NDArray[np.int32]]]


def visiting_order(
    n: int, shuffle: Shuffle, rng: np.random.Generator
) -> NDArray[np.int32]:
    """Return the order, of type int32, in which one epoch visits n rows.

    Parameters
    ----------
    n : int
    shuffle : bool or {"rows", "blocks"}
        False for the stored order, True or "rows" for a random order, "blocks" for
        blocks of `BLOCK_ROWS` neighbouring rows in random order.
    rng : numpy.random.Generator

    Examples
    --------
    >>> import numpy as np
    >>> from precbench.solvers.common.driver import visiting_order
    >>> order = visiting_order(96, "blocks", np.random.default_rng(0))
    >>> order[::32].tolist(), order[:3].tolist()  # neighbours stay together
    ([64, 0, 32], [64, 65, 66])
    """
    if shuffle is False:
        return np.arange(n, dtype=np.int32)
    if shuffle == "blocks":
        starts = rng.permutation(np.arange(0, n, BLOCK_ROWS, dtype=np.int32))
        order = (starts[:, None] + np.arange(BLOCK_ROWS, dtype=np.int32)).ravel()
        if n % BLOCK_ROWS:  # the last block of stored rows is shorter
            order = order[order < n]
        return order
    return rng.permutation(np.arange(n, dtype=np.int32))


class Piece(NamedTuple):
    """Rows to visit."""

    rows: Rows
    labels: NDArray[np.int8]  # -1 or +1
    order: NDArray[np.int32]  # numbers of the rows to visit, in turn
    batch_size: int  # rows of a batch; the last may be shorter


class Step(ABC):
    """What a method knows while it visits rows: weights w, and what a subclass adds.

    The driver counts the batches in `t`.

    Parameters
    ----------
    n_weights : int
        Length of w.
    takes_mean : bool
        Whether the model is the mean of w over all batches, not the last w.

    Examples
    --------
    A method that adds the positives of each batch to w, and subtracts the negatives:

    >>> import numpy as np
    >>> from precbench.solvers import LinearRanker, weighted_sum
    >>> from precbench.solvers.common.driver import PassMixin, Step
    >>> from precbench.solvers.common.parameters import COUNT, POSITIVE, Allowed
    >>> class DifferenceStep(Step):
    ...     def set_parameters(self, solver):
    ...         self.eta0 = solver.eta0
    ...     @staticmethod
    ...     def visit(steps, rows, labels, order, batch_size):
    ...         for step in steps:
    ...             for start in range(0, len(order), batch_size):
    ...                 batch = order[start : start + batch_size]
    ...                 c = np.zeros(rows.n_rows)
    ...                 c[batch] = labels[batch]
    ...                 step.w += step.eta0 * weighted_sum(rows, c, len(step.w))
    >>> class Difference(PassMixin, LinearRanker):
    ...     average, shuffle, random_state = False, False, None
    ...     allowed = Allowed(batch_size=COUNT, eta0=POSITIVE)
    ...     def __init__(self, *, batch_size=2, epochs=1, eta0=0.5):
    ...         self.batch_size, self.epochs, self.eta0 = batch_size, epochs, eta0
    ...     def _new_step(self, n_features):
    ...         step = DifferenceStep(n_features, takes_mean=False)
    ...         step.set_parameters(self)
    ...         return step
    >>> X, y = [[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]], [1, 0, 1]
    >>> ranker = Difference(epochs=3).fit(X, y)
    >>> ranker.coef_.tolist(), ranker.t_  # in each epoch two batches
    ([3.0, 0.0], 6)
    """

    has_intercept = False  # whether w ends with an intercept
    values_per_row = 1  # values of the state that a visit of a row reads

    def __init__(self, n_weights: int, takes_mean: bool):
        self.w = np.zeros(n_weights)
        # The sum of w after each batch; empty if no mean is taken.
        self.w_sum = np.zeros(n_weights if takes_mean else 0)
        self.t = 0  # batches so far
        # The w that is the model where it is neither the last w nor the mean.
        self.chosen_w: NDArray[np.float64] | None = None

    @abstractmethod
    def set_parameters(self, solver: Any) -> None:
        """Take the parameters of the solver, which may have changed since."""

    @staticmethod
    @abstractmethod
    def visit(
        steps: Sequence[Any],
        rows: Rows,
        labels: NDArray[np.int8],
        order: NDArray[np.int32],
        batch_size: int,
    ) -> None:
        """Let the steps of several solvers visit the rows of `order` in batches.

        Change w in place; after each batch add w to `w_sum`, unless `w_sum` is empty.
        """

    def prepare(self, labels: NDArray[np.int8], batch_size: int) -> None:
        """Prepare a fit, before the trace starts the clock."""

    def read_totals(self, rows: Rows, labels: NDArray[np.int8]) -> None:
        """Compute statistics of all rows of a fit that the passes need."""

    def finish_pass(self, rows: Rows, labels: NDArray[np.int8]) -> None:
        """Inspect w at the end of a pass, before the trace."""

    def model(self) -> NDArray[np.float64]:
        """Return the w to publish: that chosen, the mean, or the last w."""
        if self.chosen_w is not None:
            return self.chosen_w
        if len(self.w_sum):
            return self.w_sum / self.t
        return self.w.copy()  # later batches change w in place


class PassMixin(ABC):
    """Mixin of the linear solvers that visit rows in passes, one step a batch.

    A solver defines `_new_step`. By default an epoch visits all rows as they come, so
    that rows may also come in pieces.

    Attributes
    ----------
    t_ : int
        Batches so far.

    Examples
    --------
    >>> from precbench import SGDAtK
    >>> from precbench.solvers.common.driver import PassMixin
    >>> isinstance(SGDAtK(), PassMixin)
    True
    """

    batch_size: int
    epochs: int
    average: bool
    shuffle: Shuffle
    random_state: Any

    t_: int
    _step: Any  # the `Step`, from the first rows on

    dtypes: tuple[type, ...] = STORED
    allowed = Allowed(epochs=COUNT, average=BOOLEAN, shuffle=SHUFFLE, random_state=SEED)

    @property
    def _takes_pieces(self) -> bool:
        """Whether rows may come in pieces."""
        return True

    @property
    def visits(self) -> Hashable | None:
        """Key of the order of visits, by which `fit_together` joins; None if random."""
        if not isinstance(self.random_state, Integral):
            return None
        names = ("batch_size", "reservoir_size", "shuffle", "random_state")
        return type(self), *(getattr(self, name, None) for name in names)

    @abstractmethod
    def _new_step(self, n_features: int) -> Step:
        """Return the state before the first row."""

    def _batch_length(self, labels: NDArray[np.int8]) -> int:
        """Return the rows of a batch of `fit`: at most all rows."""
        return min(self.batch_size, len(labels))

    def _epochs(
        self,
        rows: Rows,
        labels: NDArray[np.int8],
        batch_size: int,
        rng: np.random.Generator,
    ) -> Iterator[Iterable[Piece]]:
        """Yield the pieces of each epoch of `fit`, in whole batches, without an end."""
        while True:
            order = visiting_order(len(labels), self.shuffle, rng)
            yield [Piece(rows, labels, order, batch_size)]

    def _fit(self, X: Any, labels: NDArray[np.int8], trace: Trace) -> None:
        step = self._new_step(X.shape[1])
        begun, epochs = begin([Fit(self, trace)], [step], X, labels)
        run_epochs(begun, epochs)

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

        Batches never span two calls: pieces whose lengths are multiples of `batch_size`
        give the same path as one call. Whether the mean of w is returned is settled at
        the first call.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            The rows to visit.
        y : array-like of shape (n_samples,)
            Their labels; the greater of the two labels is the positive class.
        classes : array-like of shape (2,), optional
            The two labels, needed at the first call if `y` may lack one.
        order : array-like of int, optional
            Indices of the rows to visit, in turn; by default the stored order.
        trace : callable, optional
            Observer of the training, see `precbench.solvers.common.base.Trace`.

        Returns
        -------
        self
            The solver, without a `threshold_`.

        Raises
        ------
        InputError
            If `order` has a number beyond the rows of X, or labels, features or
            objective changed.
        """
        learn_more(self, X, y, classes, order, trace or untraced)
        return self

    @available_if(lambda self: self._takes_pieces)
    def fit_pieces(
        self, n_features: int, epoch: Callable[[], Pieces], trace: Trace | None = None
    ) -> Self:
        """Learn as `fit` does from rows that are read again in each epoch.

        The result is that of `partial_fit` on one piece after the other, without its
        slow checks.

        Parameters
        ----------
        n_features : int
            Number of features of the rows.
        epoch : callable
            Called for each epoch; returns the pieces, finite rows with labels of -1 and
            +1 and an order whose length is a multiple of the batch size in all pieces
            except the last.
        trace : callable, optional
            Observer of the training, see `precbench.solvers.common.base.Trace`. Its
            first call precedes the first piece, so that the time to read counts.

        Returns
        -------
        self
            The fitted solver, without a `threshold_`.
        """
        fit_pieces_together([Fit(self, trace or untraced)], n_features, epoch)
        return self


class Fit(NamedTuple):
    """A solver that is being fitted, and the trace of its fit."""

    solver: Any  # with `PassMixin`
    trace: Trace


def fit_together(fits: Sequence[Fit], X: Any, y: ArrayLike) -> None:
    """Fit solvers to the same rows, which are read once for all of them.

    The weights and the number of rows seen of each solver are bitwise those of a
    separate fit.

    Parameters
    ----------
    fits : sequence of Fit
        Solvers with the same `PassMixin.visits`, which is not None.
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
    # One check will do, as all solvers take the same rows. The others get what it has
    # set in `first`.
    X, labels = first._check_input(X, y, reset=True)
    for solver, _trace in fits[1:]:
        solver.classes_ = first.classes_
        solver.n_features_in_ = first.n_features_in_
        solver.require_memory(X.shape[1])
    with np.errstate(all="ignore"):  # weights that overflow are reported at the end
        steps = [solver._new_step(X.shape[1]) for solver, _trace in fits]
        begun, epochs = begin(fits, steps, X, labels)
        run_epochs(begun, epochs)
    for solver, trace in fits:
        solver._report_overflow(trace)


def fit_pieces_together(
    fits: Sequence[Fit], n_features: int, epoch: Callable[[], Pieces]
) -> None:
    """Fit solvers with the same `PassMixin.visits` to pieces that are read once.

    Parameters
    ----------
    fits : sequence of Fit
    n_features, epoch
        See `PassMixin.fit_pieces`.

    Examples
    --------
    >>> import numpy as np
    >>> from precbench import SGDAtK
    >>> from precbench.solvers.common.base import untraced
    >>> from precbench.solvers.common.driver import Fit, fit_pieces_together
    >>> X, y = np.array([[1.0], [0.0]]), np.array([1.0, -1.0])
    >>> order = np.array([0, 1], np.int32)
    >>> ranker = SGDAtK(k=1, batch_size=2, epochs=3, random_state=0)
    >>> fit_pieces_together([Fit(ranker, untraced)], 1, lambda: [(X, y, order)] * 4)
    >>> ranker.n_rows_seen_  # 3 epochs of 4 pieces of 2 rows
    24
    """
    for solver, _trace in fits:
        solver.require_memory(n_features)
        solver.n_features_in_ = n_features
        solver.classes_ = np.array([-1.0, 1.0])
        install(solver, solver._new_step(n_features))
    run_epochs(call_traces(fits), read_epochs(epoch, fits[0].solver.batch_size))
    for solver, trace in fits:
        solver._report_overflow(trace)


def read_epochs(
    epoch: Callable[[], Pieces], batch_size: int
) -> Iterator[Iterable[Piece]]:
    """Yield the pieces of each epoch, which `epoch` reads again, without an end."""
    while True:
        yield (
            Piece(
                as_rows(X),
                y.astype(np.int8, copy=False),
                order,
                min(batch_size, len(order)),
            )
            for X, y, order in epoch()
        )


def begin(
    fits: Sequence[Fit], steps: Sequence[Step], X: Any, labels: NDArray[np.int8]
) -> tuple[list[Fit], Iterator[Iterable[Piece]]]:
    """Begin fits of equal `visits` to checked rows.

    Return the fits that are to go on, and the pieces of each epoch. `steps` are the
    states of the solvers before the first row.
    """
    first = fits[0].solver
    rng = as_generator(first.random_state)
    rows = as_rows(X)
    batch_size = first._batch_length(labels)
    for (solver, _trace), step in zip(fits, steps, strict=True):
        step.prepare(labels, batch_size)
        install(solver, step)
    begun = call_traces(fits)  # the first call of a trace starts its clock
    for solver, _trace in begun:
        solver._step.read_totals(rows, labels)
    return begun, first._epochs(rows, labels, batch_size, rng)


def install(solver: Any, step: Step) -> None:
    """Set the weights and all counters of a solver to 0, as of a new step."""
    solver._step = step
    solver._publish(step.w.copy(), has_intercept=step.has_intercept)
    solver.n_iter_ = solver.n_rows_seen_ = solver.t_ = 0


def call_traces(fits: Iterable[Fit]) -> list[Fit]:
    """Call the trace of each fit with its solver; return the fits that are to go on."""
    to_go_on = []
    for fit in fits:
        if not fit.trace(fit.solver):
            to_go_on.append(fit)
    return to_go_on


def run_epochs(fits: list[Fit], epochs: Iterator[Iterable[Piece]]) -> None:
    """Train until each solver has done its epochs, or its trace ends the fit."""
    while True:
        fits = [fit for fit in fits if fit.solver.n_iter_ < fit.solver.epochs]
        if not fits:
            return
        begun = fits
        for piece in next(epochs):
            fits = visit_piece(fits, piece)  # those that go on
            if not fits:
                break
        for solver, _trace in begun:  # an epoch that a trace ended also counts
            solver.n_iter_ += 1


def visit_piece(fits: list[Fit], piece: Piece) -> list[Fit]:
    """Visit the rows of a piece in slices; return the fits that go on.

    The traces are called after each slice, which takes a fraction of 0.1 s, or ends
    with the batch in which a trace becomes due.
    """
    rows, labels, order, batch_size = piece
    start = 0
    while fits and start < len(order):
        length = min(len(order) - start, rows_until_traces(fits, rows))
        # A batch cut in two would be two steps: the slice ends with a whole batch.
        n_batches = -(-length // batch_size)  # rounded up
        stop = min(len(order), start + n_batches * batch_size)
        steps = [solver._step for solver, _trace in fits]
        steps[0].visit(steps, rows, labels, order[start:stop], batch_size)
        for (solver, _trace), step in zip(fits, steps, strict=True):
            step.t += n_batches
            if stop == len(order):
                step.finish_pass(rows, labels)
            solver.t_ = step.t
            solver.n_rows_seen_ += stop - start
            solver._publish(step.model(), has_intercept=step.has_intercept)
        fits = call_traces(fits)
        start = stop
    return fits


def rows_until_traces(fits: Iterable[Fit], rows: Rows) -> int:
    """Return how many rows to visit before the traces are called, at least one."""
    length = rows.per_slice()
    for solver, trace in fits:
        n_fast_rows = VALUES_PER_SLICE // solver._step.values_per_row
        length = min(length, max(1, n_fast_rows))
        if hasattr(trace, "next_rows"):
            n_rows_until_due = trace.next_rows - solver.n_rows_seen_
            length = min(length, max(1, n_rows_until_due))
    return length


def learn_more(
    solver: Any,
    X: Any,
    y: ArrayLike,
    classes: ArrayLike | None,
    order: ArrayLike | None,
    trace: Trace,
) -> None:
    """Learn from more rows in one pass, see `PassMixin.partial_fit`."""
    is_first = not hasattr(solver, "coef_")
    X, labels = solver._check_input(X, y, reset=is_first, classes=classes)
    if is_first:
        install(solver, solver._new_step(X.shape[1]))
        if trace(solver):  # the trace ends the fit
            return
    else:
        solver._check_width(X.shape[1])
        step = solver._step
        step.set_parameters(solver)
        if len(step.w) != X.shape[1] + step.has_intercept:
            raise InputError(
                f"the objective was changed {'to' if step.has_intercept else 'from'}"
                ' "f1", which alone has an intercept; continue with the earlier'
                " objective, or call fit"
            )
    rows = as_rows(X)
    visited = row_numbers(order, rows.n_rows)
    # The kernels have scratch arrays for a batch: they need no more than these rows.
    batch_size = min(solver.batch_size, max(1, len(visited)))
    visit_piece([Fit(solver, trace)], Piece(rows, labels, visited, batch_size))
    solver.n_iter_ += 1
    solver._report_overflow(trace)


def row_numbers(order: ArrayLike | None, n_rows: int) -> NDArray[np.int32]:
    """Return the checked row numbers in `order`, or those of all rows."""
    visited = np.arange(n_rows) if order is None else np.asarray(order)
    if visited.ndim != 1 or (visited.size and visited.dtype.kind not in "iu"):
        raise InputError(
            f"order has the shape {visited.shape} and the type {visited.dtype}; give a"
            " flat list of integers, the row numbers"
        )
    if visited.size and not 0 <= visited.min() <= visited.max() < n_rows:
        raise InputError(
            f"order has row numbers from {visited.min()} to {visited.max()}; give"
            f" numbers of rows of X, from 0 to {n_rows - 1}"
        )
    return np.ascontiguousarray(visited, dtype=np.int32)
