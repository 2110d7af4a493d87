"""What all methods share that visit rows in passes, batch by batch."""

from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator
from numbers import Integral
from typing import Any, ClassVar, Literal, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import _fit_context
from sklearn.utils._param_validation import Interval, StrOptions

from precbench.errors import InputError
from precbench.solvers.base import LinearRanker, Trace, warn_of_overflow
from precbench.solvers.rows import Rows, as_rows

__all__ = ["OnlineRanker", "PassRanker", "Shuffle", "visiting_order"]

BLOCK_ROWS = 32
"""Neighbouring rows that ``shuffle="blocks"`` keeps together."""

Shuffle = bool | Literal["rows", "blocks"]


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

    Subclasses say how long a batch is, which rows each pass visits and what a visit does.

    Attributes
    ----------
    t_ : int
        Batches so far.
    """

    epochs: int
    average: bool
    shuffle: Shuffle
    random_state: Any

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "epochs": [Interval(Integral, 1, None, closed="left")],
        "average": ["boolean"],
        "shuffle": ["boolean", StrOptions({"rows", "blocks"})],
        "random_state": [None, Interval(Integral, 0, None, closed="left"), np.random.Generator],
    }

    @abstractmethod
    def _batch_length(self, labels: NDArray[np.int8]) -> int:
        """Return the rows of a full batch of `fit`."""

    @abstractmethod
    def _passes(
        self, labels: NDArray[np.int8], rng: np.random.Generator
    ) -> Iterator[Iterable[NDArray[np.int32]]]:
        """Yield the rows of each epoch of `fit`, in pieces of whole batches."""

    @abstractmethod
    def _visitor(
        self, rows: Rows, labels: NDArray[np.int8], order: NDArray[np.int32], b: int
    ) -> Callable[[int, int], None]:
        """Return what visits ``order[start:stop]`` in batches of b and updates w."""

    def _prepare(self, labels: NDArray[np.int8]) -> None:
        """Refuse what `fit` cannot take, and do what is not training."""

    def _survey(self, rows: Rows, labels: NDArray[np.int8]) -> None:
        """Learn from all rows of `fit` what the passes need to know."""

    def _slice_length(self, rows: Rows) -> int:
        """Return the rows that are visited in a small fraction of 0.1 s."""
        return rows.per_slice()

    def _fit(self, X: Any, labels: NDArray[np.int8], trace: Trace | None) -> None:
        self._prepare(labels)
        rng = np.random.default_rng(self.random_state)
        rows = as_rows(X)
        self._reset(X.shape[1])
        length = self._batch_length(labels)
        stopped = trace is not None and bool(trace(self))
        if not stopped:
            self._survey(rows, labels)
        passes = self._passes(labels, rng)
        while not stopped and self.n_iter_ < self.epochs:
            stopped = any(self._visit(rows, labels, o, length, trace) for o in next(passes))
            self.n_iter_ += 1
        self._warn_if_lost()

    def _reset(self, n_features: int) -> None:
        n_weights = self._n_weights(n_features)
        w, w_sum = np.zeros(n_weights), np.zeros(n_weights if self.average else 0)
        self._publish(w.copy())
        self._w, self._w_sum = w, w_sum
        self.n_iter_ = self.n_rows_seen_ = self.t_ = 0

    def _n_weights(self, n_features: int) -> int:
        return n_features

    def _check_further(self, n_features: int) -> None:
        """Refuse more rows where the state so far does not fit them."""
        self._check_width(n_features)

    def _publish(self, w: NDArray[np.float64]) -> None:
        self.coef_ = w

    def _visit(
        self,
        rows: Rows,
        labels: NDArray[np.int8],
        order: NDArray[np.int32],
        b: int,
        trace: Trace | None,
    ) -> bool:
        """Visit rows in batches of b, slice by slice; return whether the trace ended it."""
        n = len(order)
        visit = self._visitor(rows, labels, order, b)
        start = 0
        while start < n:
            length = min(n - start, self._slice_length(rows))
            if trace is not None and hasattr(trace, "next_rows"):
                length = min(length, max(1, trace.next_rows - self.n_rows_seen_))
            n_batches = -(-length // b)
            stop = min(n, start + n_batches * b)
            visit(start, stop)
            self.t_ += n_batches
            self.n_rows_seen_ += stop - start
            self._publish(self._w_sum / self.t_ if len(self._w_sum) else self._w.copy())
            start = stop
            if trace is not None and trace(self):
                return True
        return False

    def _warn_if_lost(self) -> None:
        if not np.isfinite(self.coef_).all():
            warn_of_overflow()


class OnlineRanker(PassRanker):
    """Base of the methods that take all rows as they come, so also piece by piece."""

    batch_size: int

    @_fit_context(prefer_skip_nested_validation=True)
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
            The rows to visit, in turn; default the stored order.
        trace : callable, optional

        Returns
        -------
        self

        Raises
        ------
        InputError
            If y has labels that the first call did not know, or `order` names rows that X does
            not have. If the weights so far do not fit: those of other features, because a later
            call of fit failed, or of an objective that alone has an intercept.
        """
        first = not hasattr(self, "coef_")
        X, labels = self._checked(X, y, reset=first, classes=classes)
        if not first:
            self._check_further(X.shape[1])
        else:
            self._reset(X.shape[1])
            if trace is not None and trace(self):
                return self
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
        self._warn_if_lost()
        return self

    def _batch_length(self, labels: NDArray[np.int8]) -> int:
        return min(self.batch_size, len(labels))

    def _passes(
        self, labels: NDArray[np.int8], rng: np.random.Generator
    ) -> Iterator[Iterable[NDArray[np.int32]]]:
        while True:
            yield [visiting_order(len(labels), self.shuffle, rng)]
