"""The base class of the methods that visit rows in passes, batch by batch."""

from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.metaestimators import available_if

from precbench.errors import InputError
from precbench.solvers.base import LinearRanker, Trace, untraced
from precbench.solvers.parameters import BOOLEAN, COUNT, SEED, SHUFFLE, Allowed, checks_parameters
from precbench.solvers.rows import Rows, as_rows

__all__ = ["PassRanker", "Pieces", "Shuffle", "visiting_order"]

BLOCK_ROWS = 32
"""Neighbouring rows that ``shuffle="blocks"`` keeps together."""

Shuffle = bool | Literal["rows", "blocks"]

Pieces = Iterable[tuple[Any, NDArray[np.float64], NDArray[np.int32]]]
"""Rows (float64 in C order, or CSR), their labels -1 or +1, and the order in which to visit them.
"""


def visiting_order(n: int, shuffle: Shuffle, rng: np.random.Generator) -> NDArray[np.int32]:
    """Return the order in which one epoch visits n rows.

    Parameters
    ----------
    n : int
    shuffle : bool or {"rows", "blocks"}
        False for the stored order, True or "rows" for a random order, "blocks" for blocks of
        `BLOCK_ROWS` neighbouring rows in random order.
    rng : numpy.random.Generator

    Returns
    -------
    ndarray of shape (n,), int32
    """
    if shuffle is False:
        return np.arange(n, dtype=np.int32)
    if shuffle == "blocks":
        starts = rng.permutation(np.arange(0, n, BLOCK_ROWS, dtype=np.int32))
        order = (starts[:, None] + np.arange(BLOCK_ROWS, dtype=np.int32)).ravel()
        return order[order < n] if n % BLOCK_ROWS else order
    return rng.permutation(np.arange(n, dtype=np.int32))


class PassRanker(LinearRanker):
    """Base of the methods that visit rows in passes, one step a batch.

    A subclass defines `_visitor`, and in `_reset` creates its state. By default an
    epoch visits all rows as they come, so that rows may also come in pieces.

    Attributes
    ----------
    t_ : int
        Batches so far.
    """

    batch_size: int
    epochs: int
    average: bool
    shuffle: Shuffle
    random_state: Any

    allowed = Allowed(epochs=COUNT, average=BOOLEAN, shuffle=SHUFFLE, random_state=SEED)

    @property
    def _takes_pieces(self) -> bool:
        """Whether there are `partial_fit` and `fit_pieces`."""
        return True

    @property
    def _takes_mean(self) -> bool:
        """Whether the mean of w over all batches is the model."""
        return self.average

    @abstractmethod
    def _visitor(
        self, rows: Rows, labels: NDArray[np.int8], order: NDArray[np.int32], b: int
    ) -> Callable[[int, int], None]:
        """Return a function of start and stop.

        It visits the rows ``order[start:stop]`` in batches of b, updates ``_w`` and, unless it
        is empty, adds w after each batch to ``_w_sum``.
        """

    @property
    def _has_intercept(self) -> bool:
        """Whether the last weight is an intercept."""
        return False

    def _batch_length(self, labels: NDArray[np.int8]) -> int:
        """Return the number of rows in a full batch of `fit`."""
        return min(self.batch_size, len(labels))

    def _passes(
        self, labels: NDArray[np.int8], rng: np.random.Generator
    ) -> Iterator[Iterable[NDArray[np.int32]]]:
        """Yield the rows of each epoch of `fit`, in pieces of whole batches."""
        while True:
            yield [visiting_order(len(labels), self.shuffle, rng)]

    def _survey(self, rows: Rows, labels: NDArray[np.int8]) -> None:
        """Compute from all rows of `fit` what the passes need."""

    def _weigh(self, rows: Rows, labels: NDArray[np.int8]) -> None:
        """Look at w when all rows of a pass are visited, before the trace."""

    def _model(self) -> NDArray[np.float64]:
        """Return the w to publish, which later steps leave as it is."""
        return self._w_sum / self.t_ if len(self._w_sum) else self._w.copy()

    def _slice_length(self, rows: Rows) -> int:
        """Return the number of rows that are visited in a small fraction of 0.1 s."""
        return rows.per_slice()

    def _reset(self, n_features: int) -> None:
        """Set weights, counters and state to those before the first row."""
        n_weights = n_features + self._has_intercept
        w, w_sum = np.zeros(n_weights), np.zeros(n_weights if self._takes_mean else 0)
        self._publish(w.copy(), has_intercept=self._has_intercept)
        self._w, self._w_sum = w, w_sum
        self.n_iter_ = self.n_rows_seen_ = self.t_ = 0

    def _fit(self, X: Any, labels: NDArray[np.int8], trace: Trace) -> None:
        rng = np.random.default_rng(self.random_state)
        rows = as_rows(X)
        self._reset(X.shape[1])
        length, passes = self._batch_length(labels), self._passes(labels, rng)
        stopped = trace(self)
        if not stopped:
            self._survey(rows, labels)
        while not stopped and self.n_iter_ < self.epochs:
            stopped = any(self._visit(rows, labels, o, length, trace) for o in next(passes))
            self.n_iter_ += 1

    def _visit(
        self,
        rows: Rows,
        labels: NDArray[np.int8],
        order: NDArray[np.int32],
        b: int,
        trace: Trace,
    ) -> bool:
        """Visit rows in batches of b, slice by slice; return whether the trace ended it."""
        n = len(order)
        visit = self._visitor(rows, labels, order, b)
        start = 0
        while start < n:
            length = min(n - start, self._slice_length(rows))
            if hasattr(trace, "next_rows"):
                length = min(length, max(1, trace.next_rows - self.n_rows_seen_))
            n_batches = -(-length // b)
            stop = min(n, start + n_batches * b)
            visit(start, stop)
            self.t_ += n_batches
            self.n_rows_seen_ += stop - start
            start = stop
            if start == n:
                self._weigh(rows, labels)
            self._publish(self._model(), has_intercept=self._has_intercept)
            if trace(self):
                return True
        return False

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
        """Go on learning with one pass over more rows.

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
            If y has labels that the first call did not know, or `order` names rows that X does
            not have. If the weights so far do not fit: those of other features, because a later
            call of fit failed, or of an objective with an intercept where this one has none.
        """
        first, trace = not hasattr(self, "coef_"), trace or untraced
        X, labels = self._checked(X, y, reset=first, classes=classes)
        if first:
            self._reset(X.shape[1])
            if trace(self):
                return self
        else:
            self._check_width(X.shape[1])
            if len(self._w) != X.shape[1] + self._has_intercept:
                raise InputError(
                    'the objective was changed to or from "f1", the only one with an intercept: '
                    "go on with the objective of the first rows, or call fit"
                )
        rows = as_rows(X)
        visited = np.arange(rows.n_rows) if order is None else np.asarray(order)
        if visited.ndim != 1 or (visited.size and visited.dtype.kind not in "iu"):
            raise InputError(
                f"order should be a list of row numbers, found {visited.ndim} dimensions of "
                f"{visited.dtype}"
            )
        if visited.size and not 0 <= visited.min() <= visited.max() < rows.n_rows:
            raise InputError(
                f"order names row {visited.min()} to {visited.max()}, X has rows 0 to "
                f"{rows.n_rows - 1}"
            )
        length = min(self.batch_size, max(1, len(visited)))
        self._visit(rows, labels, np.ascontiguousarray(visited, dtype=np.int32), length, trace)
        self.n_iter_ += 1
        self._warn_of_overflow()
        return self

    @available_if(lambda self: self._takes_pieces)
    def fit_pieces(
        self, n_features: int, epoch: Callable[[], Pieces], trace: Trace | None = None
    ) -> Self:
        """Learn as `fit` does from rows that are read again in each epoch.

        The result is that of `partial_fit` on one piece after the other, without its checks,
        which take longer than the learning.

        Parameters
        ----------
        n_features : int
        epoch : callable
            Called for each epoch; returns the pieces, finite rows with an order whose length is a
            multiple of the batch size in all pieces except the last.
        trace : callable, optional
            As in `fit`. Its first call comes before the first piece is asked for, so that the
            time to read counts.

        Returns
        -------
        self
        """
        self.require_memory(n_features)
        self.n_features_in_ = n_features
        self.classes_ = np.array([-1.0, 1.0])
        self._reset(n_features)
        trace = trace or untraced
        stopped = trace(self)
        while not stopped and self.n_iter_ < self.epochs:
            for X, y, order in epoch():
                length = min(self.batch_size, len(order))
                stopped = self._visit(as_rows(X), y.astype(np.int8), order, length, trace)
                if stopped:
                    break
            self.n_iter_ += 1
        self._warn_of_overflow()
        return self
