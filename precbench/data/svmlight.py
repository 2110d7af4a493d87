"""svmlight files: strict, streaming, several times faster than general readers.

Plain text, ``.gz``, ``.bz2`` and ``.xz`` are recognised by their first bytes. Every value is the
double nearest to the printed number. The grammar is in ``precbench/kernels/svmlight.pyx``.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from queue import SimpleQueue
from typing import IO, TYPE_CHECKING, NamedTuple

import numpy as np
from joblib import effective_n_jobs
from numpy.typing import NDArray

from precbench.data.dataset import Dtype, stored
from precbench.data.formats import Source, name_of, opened
from precbench.errors import InputError
from precbench.kernels.svmlight import Status, parse_block

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix

    from precbench.data.dataset import Matrix

BLOCK_BYTES = 1 << 18
LONGEST_LINE = 1 << 28
MOST_ENTRIES = 2**31 - 1  # what the int32 of a csr_matrix can count
LARGEST_INDEX = 2**31 - 1
DENSE_ABOVE = 0.5  # fraction of non-zero values above which a sparse format comes out dense

_BYTE_ORDER_MARKS = (b"\xef\xbb\xbf", b"\xff\xfe", b"\xfe\xff")
_MISTAKES = {
    Status.BAD_LABEL: "a line must begin with its label, a finite number, found {token}",
    Status.BAD_INDEX: "expected index:value, found {token}",
    Status.ZERO_INDEX: "feature indices count from 1, found {token}",
    Status.LARGE_INDEX: "the feature index must be at most {limit}, found {token}",
    Status.UNSORTED_INDEX: (
        "feature indices must ascend strictly within a line, found {token} after a larger "
        "or equal one"
    ),
    Status.NO_COLON: "expected index:value, found {token}",
    Status.BAD_VALUE: "the value of a feature must be a finite number, found {token}",
}


class Rows(NamedTuple):
    """Some rows, of some lines; ``row_ends`` counts the entries up to the end of each."""

    data: NDArray[np.floating]
    indices: NDArray[np.int32]
    row_ends: NDArray[np.intp]
    labels: NDArray[np.float64]
    largest_index: int
    n_lines: int


def read_svmlight(
    source: Source,
    n_features: int | None = None,
    dtype: Dtype = "float64",
    *,
    n_jobs: int | None = None,
) -> tuple[csr_matrix, NDArray[np.float64]]:
    r"""Read a whole svmlight file.

    Parameters
    ----------
    source : path or binary file object
        Plain text, or text compressed as gz, bz2 or xz.
    n_features : int, optional
        Number of columns; by default the largest index in the file.
    dtype : {"float64", "float32"}
        Type of the values of X.
    n_jobs : int, optional
        Number of threads, which change neither result nor message: -1 takes all cores, by default
        one.

    Returns
    -------
    X : scipy.sparse.csr_matrix of shape (n_samples, n_features), int32 indices
    y : ndarray of shape (n_samples,), float64
        The labels as printed.

    Raises
    ------
    InputError
        A malformed line or an index above `n_features` (with file, line and column), an empty
        or unreadable file, more than 2**31 - 1 entries.

    Examples
    --------
    >>> import io
    >>> from precbench.data import read_svmlight
    >>> X, y = read_svmlight(io.BytesIO(b"+1 1:0.5 3:2\n-1 2:1\n"))
    >>> X.toarray().tolist(), y.tolist()
    ([[0.5, 0.0, 2.0], [0.0, 1.0, 0.0]], [1.0, -1.0])
    """
    name = name_of(source)
    pieces = []
    n_entries = 0
    with opened(source) as stream:
        for _, rows in parsed(stream, name, n_features, BLOCK_BYTES, n_jobs):
            n_entries += len(rows.data)
            if n_entries > MOST_ENTRIES:
                raise InputError(
                    f"{name}: the file has more than 2**31 - 1 entries; read it in pieces with "
                    "open_stream"
                )
            pieces.append(rows._replace(data=stored(rows.data, dtype, name)))
    if n_features is None:
        n_features = max(rows.largest_index for rows in pieces)
    return joined(pieces, n_features)


def joined(pieces: Iterable[Rows], n_features: int) -> tuple[csr_matrix, NDArray[np.float64]]:
    """Join parsed blocks into a matrix and its labels."""
    from scipy.sparse import csr_matrix

    data, indices, row_ends, labels, *_ = zip(*pieces, strict=True)
    offsets = np.cumsum([0, *map(len, data)])
    indptr = np.concatenate(
        [[0], *(ends + offset for ends, offset in zip(row_ends, offsets, strict=False))],
        dtype=np.int32,
    )
    y = np.concatenate(labels)
    X = csr_matrix(
        (np.concatenate(data), np.concatenate(indices), indptr), shape=(len(y), n_features)
    )
    return X, y


def dense_if_full(X: csr_matrix) -> Matrix:
    """Return the rows as ndarray if more than half of the values are non-zero."""
    return X.toarray() if X.nnz > DENSE_ABOVE * X.shape[0] * X.shape[1] else X


def parsed(
    stream: IO[bytes],
    name: str,
    n_features: int | None,
    block_bytes: int,
    n_jobs: int | None = None,
) -> Iterator[tuple[bytes, Rows]]:
    """Yield blocks of whole lines, and the rows in them, in the order of the file."""
    n_lines = n_rows = 0
    for text, is_cut, parsing in _started(stream, name, n_features, block_bytes, n_jobs):
        if n_lines == 0 and text.startswith(_BYTE_ORDER_MARKS):
            raise InputError(
                f"{name}:1:1: the file begins with a byte order mark; save it as plain text"
            )
        if is_cut:
            line = n_lines + text.count(b"\n") + 1
            raise InputError(f"{name}:{line}: the line is longer than {LONGEST_LINE:,} bytes")
        try:
            rows = parsing.result()
        except InputError:  # again, as its line is known now
            Parser(name, n_features).parse(text, n_lines)
            raise
        yield text, rows
        n_lines += rows.n_lines
        n_rows += len(rows.labels)
    if n_rows == 0:
        raise InputError(f"{name}: the file is empty: it has no line with a label")


def _started(
    stream: IO[bytes],
    name: str,
    n_features: int | None,
    block_bytes: int,
    n_jobs: int | None,
) -> Iterator[tuple[bytes, bool, Future[Rows]]]:
    """Yield blocks, whether their last line is too long, and what they will be parsed to."""
    n_threads = effective_n_jobs(n_jobs)
    parsers: SimpleQueue[Parser] = SimpleQueue()
    for _ in range(n_threads):
        parsers.put(Parser(name, n_features))

    def parse(text: bytes) -> Rows:
        parser = parsers.get()
        try:
            return parser.parse(text)
        finally:
            parsers.put(parser)

    started: deque[tuple[bytes, bool, Future[Rows]]] = deque()
    failure = None
    with ThreadPoolExecutor(n_threads) as pool:
        try:
            while text := stream.read(block_bytes):
                end = stream.readline(LONGEST_LINE)
                is_cut = len(end) >= LONGEST_LINE and not end.endswith(b"\n")
                text += end
                started.append((text, is_cut, pool.submit(parse, text)))
                if len(started) > 2 * n_threads:
                    yield started.popleft()
        except Exception as error:  # after the mistakes of the blocks before
            failure = error
        yield from started
        if failure is not None:
            raise failure


class Parser:
    """Parses blocks of whole lines, in room that grows with the longest one."""

    def __init__(self, name: str, n_features: int | None) -> None:
        self.name = name
        self.limit = LARGEST_INDEX if n_features is None else min(n_features, LARGEST_INDEX)
        self._make_room(0)

    def _make_room(self, n_bytes: int) -> None:
        self.n_bytes = n_bytes  # an entry takes 4 of them or more, as in " 1:1", and a row 2
        self.data = np.empty(n_bytes // 4 + 1)
        self.indices = np.empty(n_bytes // 4 + 1, dtype=np.int32)
        self.row_ends = np.empty(n_bytes // 2 + 1, dtype=np.intp)
        self.labels = np.empty(n_bytes // 2 + 1)
        self.inexact = np.empty((n_bytes // 4 + 1, 3), dtype=np.intp)

    def parse(self, text: bytes, n_lines: int = 0) -> Rows:
        """Parse whole lines, which follow `n_lines` earlier ones."""
        if not text.endswith(b"\n"):
            text += b"\n"
        if self.n_bytes < len(text):
            self._make_room(len(text))
        n_rows, n_read, n_entries, n_inexact, largest, status, position = parse_block(
            text,
            len(text),
            self.limit,
            self.data,
            self.indices,
            self.row_ends,
            self.labels,
            self.inexact,
        )
        for first, behind, slot in self.inexact[:n_inexact].tolist():
            value = float(text[first:behind])
            if value in (np.inf, -np.inf):
                status = Status.BAD_LABEL if slot < 0 else Status.BAD_VALUE
                position = first
                break
            if slot < 0:
                self.labels[-1 - slot] = value
            else:
                self.data[slot] = value
        if status != Status.OK:
            line = n_lines + 1 + text.count(b"\n", 0, position)
            column = position - text.rfind(b"\n", 0, position)
            token = _token(text, position)
            what = _MISTAKES[Status(status)].format(token=token, limit=self.limit)
            if token.startswith("'qid:"):
                what = f"query ids are not supported, found {token}; remove them"
            raise InputError(f"{self.name}:{line}:{column}: {what}")
        return Rows(
            self.data[:n_entries].copy(),
            self.indices[:n_entries].copy(),
            self.row_ends[:n_rows].copy(),
            self.labels[:n_rows].copy(),
            largest,
            n_read,
        )


def _token(text: bytes, position: int) -> str:
    """Return the word at `position`, shortened, for a message."""
    words = text[position : position + 40].split(maxsplit=1)
    if not words or text[position : position + 1].isspace():
        return "nothing"
    return repr(words[0].decode("ascii", "backslashreplace"))
