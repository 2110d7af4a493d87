"""Rows read from disk block by block, in stored or random order.

The data may be larger than memory. A stream is read again at every pass; rows, features
and positives are counted at the opening.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise, starmap
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from precbench.core.kinds import Dtype, Scaling
from precbench.data.dataset import Dataset, Matrix, parts
from precbench.data.preprocess import Scaler

BLOCK_BYTES = 2**20  # 1 MiB
BUFFER_BYTES = 2**26  # 64 MiB

# A function that returns for each row number whether the row belongs to a part
Keep = Callable[[NDArray[np.int64]], NDArray[np.bool_]]


class Piece(NamedTuple):
    """Rows and their labels."""

    X: Matrix
    y: NDArray[np.float64]


class Visit(NamedTuple):
    """Rows to be visited in an order; see `RowStream.visits`."""

    X: Matrix
    y: NDArray[np.float64 | np.int8]
    order: NDArray[np.int32]


class Run(NamedTuple):
    """The rows of neighbouring blocks."""

    first: int  # number of the first row
    X: Matrix
    y: NDArray[np.float64]  # -1 or +1


class Span(NamedTuple):
    """Neighbouring rows."""

    start: int  # number of the first row
    stop: int  # number of the row behind the last


class _Counts(NamedTuple):
    n_rows: int
    n_pos: int  # positive rows


class _BlocksInMap(NamedTuple):
    """Blocks of a file that fill a buffer, where their rows are not copied."""

    spans: list[Span]  # of each block
    rows: NDArray[np.int32]  # numbers of the rows that belong to the part


# A function that maps all rows of a file; spans of rows that are about to be visited
# are prefetched
Mapped = Callable[[Iterable[Span]], AbstractContextManager[NDArray[np.floating]]]

# Where only numbers and labels of rows are read; a multiple of 8, for whole bytes
_ROWS_AT_ONCE = 2**16
_MOST_MAPPED = 2**12  # blocks of a buffer: a process may have some 2**16 separate maps


@dataclass(frozen=True, eq=False, kw_only=True)
class Source(ABC):
    """Blocks of neighbouring rows that can be read in any order."""

    n_features: int
    dense: bool  # whether blocks are ndarrays; else CSR matrices
    starts: NDArray[np.int64]  # the first row of each block, then the number of rows
    positives: NDArray[np.uint8]  # one bit a row, set for positive rows
    block_bytes: int  # on disk
    blocks_per_run: int = 8  # neighbours read at a time in stored order
    dtype: Dtype = "float64"

    @abstractmethod
    def read(self, runs: Iterable[range]) -> Iterator[Run]:
        """Yield the rows of each run, which is given as a range of block numbers."""

    @property
    def n_rows(self) -> int:
        """Number of rows, those of all parts."""
        return int(self.starts[-1])

    @property
    def n_blocks(self) -> int:
        """Number of blocks."""
        return len(self.starts) - 1

    @property
    def mapped(self) -> Mapped | None:
        """Function that maps the rows into memory.

        None unless a file holds the rows unchanged.
        """
        return None


@dataclass(frozen=True, eq=False)
class RowStream:
    """Rows with labels that are read again at every pass.

    A stream takes at most

        5 * buffer_bytes + 32 * block_bytes + n_rows / 2 + 64 * n_blocks

    bytes: the buffer, which dense rows need once, sparse rows several times while it is
    filled; blocks in flight (text takes the most); a bit a row for the label and for
    each part; and the starts of the blocks. A row longer than a block is a block of its
    own. Rows of a data set with a card come from the memory map in the cache, whose
    pages the system reclaims at any time. Rows of an npy file that need no change are
    mapped from the file: in random order they are visited in the map, not copied. The
    buffer of other dense rows is kept for the next pass, one per part.

    Parameters
    ----------
    source : Source
        See `open_stream` and `stream_dataset`.
    buffer_bytes : int
        Size of the shuffle buffer in memory.
    keeps : tuple of callable
        A row is left out if any of these functions rejects its number.
    scaler : Scaler, optional
        Fitted; see `scaled`.

    Examples
    --------
    Two passes, each in another random order:

    >>> import numpy as np
    >>> from precbench import SGDAtK
    >>> from precbench.data import Dataset, stream_dataset
    >>> X, y = np.arange(8.0).reshape(4, 2), np.array([1.0, -1.0, -1.0, 1.0])
    >>> stream = stream_dataset(Dataset("four", "Four", X, y, "")).X
    >>> rng, model = np.random.default_rng(0), SGDAtK(k=1, batch_size=2)
    >>> for _ in range(2):
    ...     for rows, labels in stream.batches(model.batch_size, rng):
    ...         model = model.partial_fit(rows, labels, classes=[-1, 1])
    >>> model.n_rows_seen_
    8
    """

    source: Source
    buffer_bytes: int = BUFFER_BYTES
    keeps: tuple[Keep, ...] = ()
    scaler: Scaler | None = None

    @property
    def shape(self) -> tuple[int, int]:
        """Numbers of rows and features."""
        return self._counts.n_rows, self.source.n_features

    @property
    def n_pos(self) -> int:
        """Number of positive rows."""
        return self._counts.n_pos

    @cached_property
    def _counts(self) -> _Counts:
        n_rows = 0
        n_pos = 0
        for y in self._labels():
            n_rows += len(y)
            n_pos += int(np.count_nonzero(y > 0))
        return _Counts(n_rows, n_pos)

    def labels(self) -> NDArray[np.float64]:
        """Return the labels, -1 or +1, in stored order: 8 bytes a row."""
        return np.concatenate([np.empty(0), *self._labels()])

    def __iter__(self) -> Iterator[Piece]:
        """Yield copies of X and y in stored order, a few blocks at a time."""
        return starmap(_gathered, self._visit_blocks(self._runs_in_order()))

    def batches(
        self, batch_size: int, rng: np.random.Generator | None = None
    ) -> Iterator[Piece]:
        """Yield the rows in pieces, of whole batches of `batch_size` but for the last.

        Batches of `partial_fit` never span two calls, so such pieces give the same path
        as one call with all rows.

        For a random order, the blocks are read in random order. When the buffer is
        full, its rows are permuted and yielded, and further blocks are read. If the
        buffer holds all rows, every order is equally likely; if it holds one block,
        rows change places within their block only.

        Parameters
        ----------
        batch_size : int
            Number of rows.
        rng : numpy.random.Generator, optional
            For a random order; by default the stored order.

        Yields
        ------
        X : ndarray or csr_matrix of shape (n_piece, n_features)
        y : ndarray of shape (n_piece,), float64, -1 or +1
        """
        return starmap(_gathered, self.visits(batch_size, rng))

    def visits(
        self, batch_size: int, rng: np.random.Generator | None = None
    ) -> Iterator[Visit]:
        """Yield the pieces of `batches` without copies: X, y, and which rows to visit.

        Parameters
        ----------
        batch_size : int
        rng : numpy.random.Generator, optional

        Yields
        ------
        X : ndarray or csr_matrix
            The next X, of this pass or a later pass, may overwrite its memory.
        y : ndarray of float64 or int8
            -1 or +1 for the rows to visit.
        order : ndarray of int32
            The rows of X to visit, in this order.
        """
        if rng is None:
            blocks = self._visit_blocks(self._runs_in_order())
        else:
            blocks = self._visit_buffers(rng)
        rest: list[Piece] = []  # of a batch that the next blocks complete
        n_rest = 0
        for X, y, order in blocks:
            if n_rest:
                n_missing = batch_size - n_rest
                completing = order[:n_missing]
                rest.append(_gathered(X, y, completing))
                n_rest += len(completing)
                order = order[n_missing:]
                if n_rest < batch_size:  # this block is used up
                    continue
                yield _visit_all(*_stacked(rest))  # `_stacked` empties `rest`
            n_rest = len(order) % batch_size
            n_ready = len(order) - n_rest  # rows of whole batches
            if n_ready:
                yield Visit(X, y, order[:n_ready])
            if n_rest:
                rest.append(_gathered(X, y, order[n_ready:]))
        if n_rest:  # the last batch, which is not full
            yield _visit_all(*_stacked(rest))

    def part(self, keep: Keep) -> Self:
        """Return the stream of the rows whose numbers `keep` accepts."""
        return replace(self, keeps=(*self.keeps, keep))

    def scaled(self, kind: Scaling, fitted_on: "RowStream") -> Self:
        """Return the stream, scaled as fitted to another stream in one pass."""
        if kind == "none":
            return self
        return replace(self, scaler=Scaler(kind).fit_blocks(X for X, _ in fitted_on))

    def __getstate__(self) -> dict[str, Any]:
        """Return the state for another process, without buffers."""
        state = dict(self.__dict__)
        state.pop("_spare_buffers", None)
        return state

    @cached_property
    def _spare_buffers(self) -> list[NDArray[np.floating]]:
        """A list of the shuffle buffer of the last pass, empty while a pass uses it."""
        return []

    def _runs_in_order(self) -> Iterator[range]:
        """Yield ranges of `blocks_per_run` neighbouring block numbers, in order."""
        bounds = block_starts(self.source.n_blocks, self.source.blocks_per_run)
        for start, stop in pairwise(bounds.tolist()):
            yield range(start, stop)

    def _visit_blocks(self, runs: Iterable[range]) -> Iterator[Visit]:
        """Yield X, y and the order as `visits` does, for each run.

        Scaled rows are copies.
        """
        for first, X, y in self.source.read(runs):
            is_in_part = self._is_in_part(first, first + len(y))
            order = np.flatnonzero(is_in_part).astype(np.int32)
            if len(order) == 0:
                continue
            if self.scaler is None:
                yield Visit(X, y, order)
            else:
                X, y = _gathered(X, y, order)  # the same names: frees the rows read
                yield _visit_all(self.scaler.transform_in_place(X), y)

    def _visit_buffers(self, rng: np.random.Generator) -> Iterator[Visit]:
        """Yield full buffers of randomly drawn blocks, each in random order."""
        blocks = rng.permutation(self.source.n_blocks).tolist()
        runs = (range(block, block + 1) for block in blocks)
        mapped = self.source.mapped if self._may_be_mapped() else None
        if mapped is not None:
            buffers = self._visit_in_map(blocks, mapped)
        elif self.source.dense:
            buffers = starmap(_visit_all, self._dense_buffers(runs))
        else:
            buffers = starmap(_visit_all, self._csr_buffers(runs))
        for X, y, rows in buffers:
            yield Visit(X, y, rng.permutation(rows))

    def _may_be_mapped(self) -> bool:
        """Return whether rows in a map are as good as copies in a buffer."""
        if self.scaler is not None:  # whose result needs memory of its own
            return False
        if self.source.n_rows > np.iinfo(np.int32).max:  # row numbers are int32
            return False
        n_rows_of_part, _ = self.shape
        if n_rows_of_part < self.source.n_rows / 2:  # most rows would be of other parts
            return False
        # Each block of a buffer has a map of its own.
        return self.buffer_bytes <= _MOST_MAPPED * self.source.block_bytes

    @property
    def _rows_per_buffer(self) -> int:
        row_bytes = np.dtype(self.source.dtype).itemsize * self.source.n_features
        return max(1, self.buffer_bytes // row_bytes)

    def _visit_in_map(self, blocks: list[int], mapped: Mapped) -> Iterator[Visit]:
        """Yield full buffers as `visits` does, in a map.

        To copy their rows would take as long as the pass.
        """
        for spans, rows in self._blocks_that_fill_a_buffer(blocks):
            # New zeros take memory only in pages that are written to.
            labels = np.zeros(self.source.n_rows, dtype=np.int8)
            for start, stop in spans:
                is_positive = _unpacked(self.source.positives, start, stop)
                labels[start:stop] = np.where(is_positive, 1, -1)
            with mapped(spans) as X:
                yield Visit(X, labels, rows)

    def _blocks_that_fill_a_buffer(self, blocks: list[int]) -> Iterator[_BlocksInMap]:
        """Yield the blocks of each full buffer, and of the last one."""
        spans: list[Span] = []
        rows: list[NDArray[np.int32]] = []
        n_rows = 0
        for block in blocks:
            start, stop = self.source.starts[block : block + 2].tolist()
            spans.append(Span(start, stop))
            rows_of_block = np.arange(start, stop, dtype=np.int32)
            rows_of_part = rows_of_block[self._is_in_part(start, stop)]
            rows.append(rows_of_part)
            n_rows += len(rows_of_part)
            if n_rows >= self._rows_per_buffer:
                yield _BlocksInMap(spans, np.concatenate(rows))
                spans = []
                rows = []
                n_rows = 0
        if n_rows:
            yield _BlocksInMap(spans, np.concatenate(rows))

    def _dense_buffers(self, runs: Iterable[range]) -> Iterator[Piece]:
        """Yield X and y of full buffers, views of one array, valid until the next one.

        `runs` are ranges of block numbers. To reuse the array is fast.
        """
        n_full = self._rows_per_buffer
        spare = self._spare_buffers
        # The buffer is taken out, so that a second pass at the same time has its own.
        buffer = spare.pop() if spare else self._new_buffer()
        labels = np.empty(len(buffer))
        n_filled = 0
        for first, X, y in self.source.read(runs):
            is_in_part = self._is_in_part(first, first + len(y))
            stop = n_filled + int(np.count_nonzero(is_in_part))
            rows = buffer[n_filled:stop]  # a view
            rows[:] = X if is_in_part.all() else X[is_in_part]
            labels[n_filled:stop] = y[is_in_part]
            if self.scaler is not None:
                self.scaler.transform_in_place(rows)
            n_filled = stop
            if n_filled >= n_full:
                yield Piece(buffer[:n_filled], labels[:n_filled])
                n_filled = 0
        if n_filled:
            yield Piece(buffer[:n_filled], labels[:n_filled])
        spare[:] = [buffer]  # for the next pass

    def _new_buffer(self) -> NDArray[np.floating]:
        """Return a buffer with room for a block that runs over its end.

        Pages that are not filled take no memory.
        """
        longest_block = int(np.diff(self.source.starts).max())
        n_rows = min(self.source.n_rows, self._rows_per_buffer + longest_block)
        return np.empty((n_rows, self.source.n_features), self.source.dtype)

    def _csr_buffers(self, runs: Iterable[range]) -> Iterator[Piece]:
        """Yield X and y of sparse rows, joined until they fill the buffer."""
        waiting: list[Piece] = []
        waiting_bytes = 0
        for visit in self._visit_blocks(runs):
            waiting.append(_gathered(*visit))
            waiting_bytes += n_bytes(waiting[-1].X)  # no name: `_stacked` frees it
            if waiting_bytes >= self.buffer_bytes:
                yield _stacked(waiting)  # `_stacked` empties `waiting`
                waiting_bytes = 0
        if waiting:
            yield _stacked(waiting)

    def _labels(self) -> Iterator[NDArray[np.float64]]:
        """Yield the labels of the rows of this part, many at a time."""
        for start, stop in self._spans():
            y = np.where(_unpacked(self.source.positives, start, stop), 1.0, -1.0)
            yield y[self._is_in_part(start, stop)]

    def _spans(self) -> Iterator[Span]:
        """Yield spans of all rows, whose bits fill whole bytes."""
        bounds = block_starts(self.source.n_rows, _ROWS_AT_ONCE)
        for start, stop in pairwise(bounds.tolist()):
            yield Span(start, stop)

    def _is_in_part(self, start: int, stop: int) -> NDArray[np.bool_]:
        """Return for each row of a range whether it belongs to this part."""
        if not self.keeps:
            return np.ones(stop - start, bool)  # the stream has all rows
        return _unpacked(self._bits_of_part, start, stop)

    @cached_property
    def _bits_of_part(self) -> NDArray[np.uint8]:
        """One bit a row, set for the rows of this part, which all of `keeps` accept."""
        pieces = []
        for span in self._spans():
            numbers = np.arange(span.start, span.stop)
            accepted = [keep(numbers) for keep in self.keeps]
            pieces.append(np.packbits(np.logical_and.reduce(accepted)))
        return np.concatenate(pieces)


@dataclass(frozen=True, eq=False)
class StreamedDataset(Dataset):
    """A data set whose rows are a stream.

    Attributes
    ----------
    X : RowStream
        Rows and labels.
    y : ndarray of shape (0,)
        The labels are in the stream.

    Examples
    --------
    >>> import numpy as np
    >>> from precbench.data import Dataset, stream_dataset
    >>> X, y = np.arange(8.0).reshape(4, 2), np.array([1.0, -1.0, -1.0, 1.0])
    >>> data = stream_dataset(Dataset("four", "Four", X, y, ""))
    >>> data.y.shape, data.X.labels().tolist()
    ((0,), [1.0, -1.0, -1.0, 1.0])
    """

    X: RowStream

    @property
    def n_pos(self) -> int:
        """Number of positive rows."""
        return self.X.n_pos


def stream_dataset(
    dataset: Dataset,
    *,
    block_bytes: int = BLOCK_BYTES,
    buffer_bytes: int = BUFFER_BYTES,
) -> StreamedDataset:
    """Stream the rows of a data set, for example from the memory map of `load_dataset`.

    Parameters
    ----------
    dataset : Dataset
    block_bytes, buffer_bytes : int
        As in `open_stream`.

    Returns
    -------
    StreamedDataset

    Examples
    --------
    >>> import numpy as np
    >>> from precbench.data import Dataset, stream_dataset
    >>> X, y = np.arange(8.0).reshape(4, 2), np.array([1.0, -1.0, -1.0, 1.0])
    >>> data = stream_dataset(Dataset("four", "Four", X, y, ""))
    >>> data.title, data.X.shape, data.n_pos
    ('Four, streamed', (4, 2), 2)
    """
    n_rows = dataset.X.shape[0]
    # so many rows of the average size take `block_bytes`
    rows_per_block = max(1, block_bytes * n_rows // max(1, n_bytes(dataset.X)))
    source = _ArrayBlocks(
        n_features=dataset.X.shape[1],
        dense=isinstance(dataset.X, np.ndarray),
        starts=block_starts(n_rows, rows_per_block),
        positives=np.packbits(dataset.y > 0),
        block_bytes=block_bytes,
        dtype="float32" if dataset.X.dtype == np.float32 else "float64",
        X=dataset.X,
        y=dataset.y,
    )
    return StreamedDataset(
        name=dataset.name,
        title=f"{dataset.title}, streamed",
        X=RowStream(source, buffer_bytes),
        y=np.empty(0),
        sha256=dataset.sha256,
        stand_in=dataset.stand_in,
        groups=dataset.groups,
        n_train=dataset.n_train,
    )


@dataclass(frozen=True, eq=False, kw_only=True)
class _ArrayBlocks(Source):
    """Blocks of the arrays of a data set."""

    X: Matrix
    y: NDArray[np.float64]

    def read(self, runs: Iterable[range]) -> Iterator[Run]:
        for run in runs:
            start = int(self.starts[run.start])
            stop = int(self.starts[run.stop])
            yield Run(start, self.X[start:stop], self.y[start:stop])


def block_starts(n_rows: int, per_block: int) -> NDArray[np.int64]:
    """Return the first row of each block, then the number of rows."""
    return np.append(np.arange(0, n_rows, per_block), n_rows)


def _unpacked(bits: NDArray[np.uint8], start: int, stop: int) -> NDArray[np.bool_]:
    """Return the bits from `start` to `stop` as Booleans."""
    # Only the bytes with these bits are unpacked.
    first_byte = start // 8
    next_byte = (stop + 7) // 8
    flags = np.unpackbits(bits[first_byte:next_byte])
    n_before = 8 * first_byte
    return flags[start - n_before : stop - n_before].view(np.bool_)


def n_bytes(X: Matrix) -> int:
    """Return the size of X in memory."""
    return sum(array.nbytes for array in parts(X))


def _visit_all(X: Matrix, y: NDArray[np.float64]) -> Visit:
    """Return a visit of all rows, as they lie in X."""
    return Visit(X, y, np.arange(len(y), dtype=np.int32))


def _gathered(X: Matrix, y: NDArray[Any], order: NDArray[np.int32]) -> Piece:
    """Return copies of the rows `order` of X, and the labels of these rows."""
    labels = np.asarray(y[order], dtype=np.float64)
    if isinstance(X, np.ndarray):
        return Piece(np.take(X, order, axis=0), labels)
    return Piece(X[order], labels)


def _stacked(pieces: list[Piece]) -> Piece:
    """Return the pieces joined into one piece; empty their list, to free memory."""
    if len(pieces) == 1:
        return pieces.pop()
    matrices = [piece.X for piece in pieces]
    labels = np.concatenate([piece.y for piece in pieces])
    pieces.clear()
    if isinstance(matrices[0], np.ndarray):
        return Piece(np.concatenate(matrices), labels)
    from scipy.sparse import vstack

    return Piece(vstack(matrices, format="csr"), labels)
