"""A strict, streaming reader of svmlight files, much faster than general readers.

Every value is the double nearest to the printed number. The grammar is in
``precbench/data/svmlight_kernel.pyx``.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import IO, TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import DTypeLike, NDArray

from precbench.core.errors import InputError
from precbench.core.kinds import Dtype
from precbench.data.dataset import Matrix, to_dtype
from precbench.data.formats import Source, name_of, opened
from precbench.data.svmlight_kernel import Status, parse_block

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix

BLOCK_BYTES = 1 << 18  # read at a time
LONGEST_LINE = 1 << 28  # bytes
MOST_ENTRIES = 2**31 - 1  # what the int32 of a csr_matrix can count
LARGEST_INDEX = 2**31 - 1
# Fraction of non-zero values above which a sparse format comes out dense
DENSE_ABOVE = 0.5

# Arrays grow to at most so many times their filled length, as later blocks may differ.
_MOST_GROWTH = 64.0

_BYTE_ORDER_MARKS = (b"\xef\xbb\xbf", b"\xff\xfe", b"\xfe\xff")
_MISTAKES = {
    Status.BAD_LABEL: (
        "a line must begin with its label, a finite number, found {token}"
    ),
    Status.BAD_INDEX: "expected index:value, found {token}",
    Status.ZERO_INDEX: "feature indices count from 1, found {token}",
    Status.LARGE_INDEX: "the feature index must be at most {limit}, found {token}",
    Status.UNSORTED_INDEX: (
        "feature indices must ascend strictly within a line, found {token} after a"
        " larger or equal index"
    ),
    Status.NO_COLON: "expected index:value, found {token}",
    Status.BAD_VALUE: "the value of a feature must be a finite number, found {token}",
}


class Rows(NamedTuple):
    """Parsed rows."""

    data: NDArray[np.floating]
    indices: NDArray[np.int32]
    row_ends: NDArray[np.integer]  # number of entries up to the end of each row
    labels: NDArray[np.float64]
    largest_index: int
    n_lines: int


def read_svmlight(
    source: Source, n_features: int | None = None, dtype: Dtype = "float64"
) -> tuple[csr_matrix, NDArray[np.float64]]:
    r"""Read a whole svmlight file.

    Parameters
    ----------
    source : path or binary file object
        Plain text, or text compressed as gz, bz2 or xz, recognised by its first bytes.
    n_features : int, optional
        Number of columns; by default the largest index in the file.
    dtype : {"float64", "float32"}
        Type of the values of X.

    Returns
    -------
    X : scipy.sparse.csr_matrix of shape (n_samples, n_features), int32 indices
    y : ndarray of shape (n_samples,), float64
        The labels as printed.

    Raises
    ------
    InputError
        A malformed line or an index above `n_features` (with file, line and column), an
        empty or unreadable file, more than 2**31 - 1 entries.

    Examples
    --------
    >>> import io
    >>> from precbench.data import read_svmlight
    >>> X, y = read_svmlight(io.BytesIO(b"+1 1:0.5 3:2\n-1 2:1\n"))
    >>> X.toarray().tolist(), y.tolist()
    ([[0.5, 0.0, 2.0], [0.0, 1.0, 0.0]], [1.0, -1.0])
    """
    name = name_of(source)
    data = _Growing(dtype)
    indices = _Growing(np.int32)
    row_ends = _Growing(np.int32)
    labels = _Growing(np.float64)
    n_entries = 0
    n_bytes = 0
    largest = 0
    with opened(source) as stream:
        size = _size_of(stream)
        for text, rows in parsed(stream, name, n_features, BLOCK_BYTES):
            if n_entries + len(rows.data) > MOST_ENTRIES:
                raise InputError(
                    f"{name}: the file has more than 2**31 - 1 entries; read the file"
                    " in pieces with open_stream"
                )
            n_bytes += len(text)
            growth = _growth(n_bytes, size)
            data.add(to_dtype(rows.data, dtype, name), growth)
            indices.add(rows.indices, growth)
            row_ends.add(rows.row_ends + n_entries, growth)
            labels.add(rows.labels, growth)
            n_entries += len(rows.data)
            largest = max(largest, rows.largest_index)
    all_rows = Rows(
        data=data.filled(),
        indices=indices.filled(),
        row_ends=row_ends.filled(),
        labels=labels.filled(),
        largest_index=largest,
        n_lines=0,  # not counted
    )
    return matrix_of(all_rows, largest if n_features is None else n_features)


class _Growing:
    """An array with spare capacity; pages that are not filled take no memory."""

    def __init__(self, dtype: DTypeLike) -> None:
        self._reserved = np.empty(0, dtype)
        self._n = 0  # values that are filled, the first of the reserved

    def add(self, part: NDArray[Any], growth: float) -> None:
        """Append values.

        If capacity is lacking, first grow to `growth` times the filled length.
        """
        end = self._n + len(part)
        if end > len(self._reserved):
            larger = np.empty(max(end, int(growth * end)), self._reserved.dtype)
            larger[: self._n] = self._reserved[: self._n]
            self._reserved = larger
        self._reserved[self._n : end] = part
        self._n = end

    def filled(self) -> NDArray[Any]:
        """Return the values, and free the spare capacity."""
        self._reserved.resize(self._n, refcheck=False)
        return self._reserved


def _growth(n_bytes: int, size: int) -> float:
    """Return how many times as long full arrays become, after `n_bytes` of text.

    That is what the rest of a file of `size` bytes needs, plus 2 %. More text than the
    file has bytes is compressed, or of a stream without a size: twice as long.
    """
    if n_bytes > size:
        return 2.0
    return min(_MOST_GROWTH, 1.02 * size / n_bytes)


def _size_of(stream: Any) -> int:
    """Return the size on disk in bytes, packed as it is; 0 if the stream has none."""
    try:
        return os.fstat(stream.fileno()).st_size
    except (AttributeError, OSError):
        return 0


def matrix_of(rows: Rows, n_features: int) -> tuple[csr_matrix, NDArray[np.float64]]:
    """Return the rows as a CSR matrix, without a copy of the values, and the labels."""
    from scipy.sparse import csr_matrix

    indptr = np.concatenate([[0], rows.row_ends], dtype=np.int32)
    shape = len(rows.labels), n_features
    return csr_matrix((rows.data, rows.indices, indptr), shape=shape), rows.labels


def dense_if_full(X: csr_matrix) -> Matrix:
    """Return X as ndarray if more than half of the values are non-zero, else X."""
    n_rows, n_features = X.shape
    if X.nnz > DENSE_ABOVE * n_rows * n_features:
        return X.toarray()
    return X


def parsed(
    stream: IO[bytes], name: str, n_features: int | None, block_bytes: int
) -> Iterator[tuple[bytes, Rows]]:
    """Yield the text and the rows of one block of whole lines after another."""
    n_lines = 0
    n_rows = 0
    while text := stream.read(block_bytes):
        text += stream.readline(LONGEST_LINE)  # the rest of the last line
        if n_lines == 0 and text.startswith(_BYTE_ORDER_MARKS):
            raise InputError(
                f"{name}:1:1: the file begins with a byte order mark; save as UTF-8"
                " without a mark"
            )
        rows = parse_rows(text, name, n_features, n_lines)
        yield text, rows
        n_lines += rows.n_lines
        n_rows += len(rows.labels)
    if n_rows == 0:
        raise InputError(f"{name}: no line has a label; begin each row with its label")


def parse_rows(
    text: bytes, name: str, n_features: int | None, n_lines: int = 0
) -> Rows:
    """Return the rows of whole lines.

    `n_lines` lines are before `text`, for messages.
    """
    if len(text) - text.rfind(b"\n") > LONGEST_LINE:
        line = n_lines + text.count(b"\n") + 1
        raise InputError(
            f"{name}:{line}: over {LONGEST_LINE:,} bytes; end each row by a newline"
        )
    if not text.endswith(b"\n"):
        text += b"\n"
    # the largest feature index that is allowed
    limit = LARGEST_INDEX if n_features is None else min(n_features, LARGEST_INDEX)
    # The kernel fills these arrays. An entry takes at least 4 bytes, as in " 1:1", and
    # a row 2; unfilled pages take no memory.
    most_entries = len(text) // 4 + 1
    most_rows = len(text) // 2 + 1
    data = np.empty(most_entries)
    indices = np.empty(most_entries, dtype=np.int32)
    row_ends = np.empty(most_rows, dtype=np.intp)
    labels = np.empty(most_rows)
    inexact = np.empty((most_entries, 3), dtype=np.intp)  # see `_read_inexact`
    parsed_block = _ParsedBlock(
        *parse_block(text, len(text), limit, data, indices, row_ends, labels, inexact)
    )
    mistake = _read_inexact(inexact[: parsed_block.n_inexact], text, data, labels)
    if mistake is None and parsed_block.status != Status.OK:
        mistake = _Mistake(Status(parsed_block.status), parsed_block.position)
    if mistake is not None:
        line = n_lines + 1 + text.count(b"\n", 0, mistake.position)
        column = mistake.position - text.rfind(b"\n", 0, mistake.position)
        raise InputError(
            f"{name}:{line}:{column}: the line is not in svmlight format:"
            f" {_described(mistake, text, limit)}"
        )
    n_rows = parsed_block.n_rows
    n_entries = parsed_block.n_entries
    return Rows(
        data=data[:n_entries],
        indices=indices[:n_entries],
        row_ends=row_ends[:n_rows],
        labels=labels[:n_rows],
        largest_index=parsed_block.largest_index,
        n_lines=parsed_block.n_lines,
    )


class _ParsedBlock(NamedTuple):
    """What the kernel returns: how much it has filled, and how the block ends."""

    n_rows: int
    n_lines: int
    n_entries: int
    n_inexact: int  # numbers that it cannot round to the nearest double
    largest_index: int
    status: int  # see `Status`
    position: int  # in the text: of the mistake, or of the end


class _Mistake(NamedTuple):
    """The first mistake in a text."""

    status: Status
    position: int


def _read_inexact(
    inexact: NDArray[np.intp],
    text: bytes,
    data: NDArray[np.float64],
    labels: NDArray[np.float64],
) -> _Mistake | None:
    """Fill `data` and `labels` with the numbers that the kernel cannot round.

    Return the first one that is too large for a double, as a mistake, else None.
    A row of `inexact` has the start and stop of a number in the text, and its place i
    in `data`, or -1 - i for the place i in `labels`. All stand before the mistake at
    which the kernel has stopped, if any.
    """
    for start, stop, place in inexact.tolist():
        is_label = place < 0
        value = float(text[start:stop])
        if value in (np.inf, -np.inf):
            status = Status.BAD_LABEL if is_label else Status.BAD_VALUE
            return _Mistake(status, start)
        if is_label:
            labels[-1 - place] = value
        else:
            data[place] = value
    return None


def _described(mistake: _Mistake, text: bytes, limit: int) -> str:
    """Say what is wrong with the word at a mistake; indices go to `limit`."""
    start = mistake.position
    token = "nothing"  # where the word is missing
    is_word = not text[start : start + 1].isspace()
    words = text[start : start + 40].split(maxsplit=1)  # enough to quote
    if words and is_word:
        token = repr(words[0].decode("ascii", "backslashreplace"))
    if token.startswith("'qid:"):
        return f"query ids are not supported, found {token}; remove the ids"
    return _MISTAKES[mistake.status].format(token=token, limit=limit)
