"""svmlight and npy files opened as streams."""

import hashlib
import json
import mmap
import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import IO, Any, NamedTuple, Self, get_args

import numpy as np
from numpy.typing import NDArray

from precbench.core.errors import InputError
from precbench.core.kinds import Dtype, StreamFormat
from precbench.data.dataset import to_dtype
from precbench.data.formats import SUFFIXES, find_format, opener
from precbench.data.row_stream import (
    BLOCK_BYTES,
    BUFFER_BYTES,
    Mapped,
    RowStream,
    Run,
    Source,
    Span,
    StreamedDataset,
    block_starts,
)
from precbench.data.svmlight import DENSE_ABOVE, matrix_of, parse_rows, parsed
from precbench.tables.encoding import MOST_CATEGORIES
from precbench.tables.roles import canonical, check_labels

# part of a stream's identity: raise VERSION when an equal file gives other rows
VERSION = 1

_MAP_FLAGS = mmap.MAP_SHARED | getattr(mmap, "MAP_POPULATE", 0)  # Linux reads all pages


def open_stream(
    path: str | os.PathLike[str],
    *,
    format: StreamFormat | None = None,  # noqa: A002
    labels: str | os.PathLike[str] | None = None,
    positive: float | None = None,
    n_features: int | None = None,
    block_bytes: int = BLOCK_BYTES,
    buffer_bytes: int = BUFFER_BYTES,
    dtype: Dtype = "float64",
) -> StreamedDataset:
    """Open a file that may be larger than memory.

    The file is read once from start to end: every row is checked, rows and positives
    are counted. A later pass raises an error if size or modification time of the file
    have changed. Never write over an npy file that is being read: its rows are mapped
    into memory, and the system kills a process that accesses rows which are gone.
    Replace the file instead.

    Parameters
    ----------
    path : path
        svmlight text, or an npy file of numbers with two dimensions in C order.
    format : {"svmlight", "npy"}, optional
        By default known from the suffix: ``.svm``, ``.libsvm``, ``.svmlight``,
        ``.txt``; ``.npy``.
    labels : path, optional
        For an npy file: the npy file with the labels of its rows.
    positive : number, optional
        The label of the positive class; not needed for 0 and 1, or -1 and 1.
    n_features : int, optional
        Number of features of an svmlight file; by default the largest index in the
        file.
    block_bytes : int
        Size of a block on disk; only the shuffle buffer separates rows of a block.
    buffer_bytes : int
        Size of the shuffle buffer in memory.
    dtype : {"float64", "float32"}
        Type of the values as read; with float32 a buffer of twice the rows: another
        random order.

    Returns
    -------
    StreamedDataset
        svmlight rows are dense if more than half of the values are non-zero.

    Raises
    ------
    InputError
        A file that cannot be streamed (compressed, npz, a table) or is malformed (with
        line or row and column), one class only, an unknown positive label.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> import numpy as np
    >>> from precbench.tables.streamed_files import open_stream
    >>> with TemporaryDirectory() as folder:
    ...     np.save(Path(folder, "X.npy"), [[0.5, 2.0], [0.0, 3.0]])
    ...     np.save(Path(folder, "y.npy"), [1, 0])
    ...     stream = open_stream(Path(folder, "X.npy"), labels=Path(folder, "y.npy")).X
    ...     print(stream.shape, stream.n_pos)
    ...     for X, y in stream:
    ...         print(X.tolist(), y.tolist())
    (2, 2) 1
    [[0.5, 2.0], [0.0, 3.0]] [1.0, -1.0]
    """
    path = Path(path)
    if block_bytes < 1:
        raise InputError(f"block_bytes must be at least 1, found {block_bytes}")
    if buffer_bytes < 1:
        raise InputError(f"buffer_bytes must be at least 1, found {buffer_bytes}")
    target = canonical(1 if positive is None else positive)  # the positive label
    kind = find_format(path, format)
    if kind == "npz":
        raise InputError(
            f"{path}: an npz file is an archive and cannot be read in pieces; save X"
            " and y as two npy files"
        )
    if kind not in get_args(StreamFormat):
        suffixes = [name for name, format_ in SUFFIXES.items() if format_ == "svmlight"]
        raise InputError(
            f"{path}: only svmlight ({', '.join(suffixes)}) and .npy can be streamed;"
            " convert it"
        )
    # None stands for an option that was removed, to keep the hashes.
    options = [VERSION, kind, None, positive, n_features]
    scan = _Scan(hashlib.sha256(json.dumps(options).encode()), target)
    if kind == "svmlight":
        if labels is not None:
            raise InputError(
                f"{path}: an svmlight file holds its labels; leave out 'labels'"
            )
        source: Source = _scan_text(path, scan, n_features, block_bytes)
    else:
        if n_features is not None:
            raise InputError(
                f"{path}: the shape of an npy file is fixed; leave out n_features"
            )
        source = _scan_npy(path, labels, scan, block_bytes)
    distinct = sorted(scan.distinct)
    check_labels(
        distinct,
        str(path),
        positive=None if positive is None else [positive],
        counts=[1] * len(distinct),  # as numbers of rows are not counted
    )
    name = path.name.split(".")[0]
    return StreamedDataset(
        name=name,
        title=name,
        X=RowStream(replace(source, dtype=dtype), buffer_bytes),
        y=np.empty(0),  # the labels are in the stream
        sha256=scan.digest.hexdigest(),
    )


class _Scan:
    """What the first pass over a file collects: a digest, and what labels there are."""

    def __init__(self, digest: Any, target: object) -> None:
        self.digest = digest  # hash of the options and of what has been read
        self.target = target  # the positive label
        self.distinct: set[float] = set()  # the labels that have occurred
        # one bit a row, set for positive rows
        self._packed: list[NDArray[np.uint8]] = []
        self._rest = np.empty(0, dtype=bool)  # the last rows, too few for a whole byte

    def see(self, labels: NDArray[Any], path: Path) -> None:
        """Add the labels of the next rows; refuse too many different ones."""
        self.distinct.update(np.unique(labels).tolist())
        if len(self.distinct) > MOST_CATEGORIES:
            raise InputError(
                f"{path}: over {MOST_CATEGORIES:,} distinct labels; label rows 0 or 1"
            )
        bits = np.concatenate([self._rest, labels == self.target])
        n_whole = len(bits) - len(bits) % 8  # bits that fill whole bytes
        self._packed.append(np.packbits(bits[:n_whole]))
        self._rest = bits[n_whole:]

    def positives(self) -> NDArray[np.uint8]:
        """Return one bit a row, set for positive rows."""
        return np.concatenate([*self._packed, np.packbits(self._rest)])


class Stamp(NamedTuple):
    """What changes with a file."""

    size: int
    modified: int  # nanoseconds


def _stamp(file: IO[bytes]) -> Stamp:
    status = os.fstat(file.fileno())
    return Stamp(status.st_size, status.st_mtime_ns)


@contextmanager
def open_unchanged(path: Path, stamp: Stamp | None = None) -> Iterator[IO[bytes]]:
    """Yield an open file.

    Raise if its stamp is not `stamp` (if given), or changes meanwhile.
    """
    try:
        with path.open("rb") as file:
            if stamp is None:
                stamp = _stamp(file)
            _refuse_changed(path, file, stamp)
            yield file
            _refuse_changed(path, file, stamp)
    except OSError as error:
        raise InputError(
            f"{path}: cannot be read: {error.strerror}; make it readable"
        ) from error


def _refuse_changed(path: Path, file: IO[bytes], stamp: Stamp) -> None:
    if _stamp(file) != stamp:
        raise _changed_error(path)


def _changed_error(path: Path) -> InputError:
    return InputError(
        f"{path}: the file has changed since its rows were counted; start again when"
        " complete"
    )


@dataclass(frozen=True, eq=False, kw_only=True)
class _TextBlocks(Source):
    """Blocks of rows of an svmlight file."""

    path: Path
    stamp: Stamp
    # the first byte of each block, then the size of the file
    offsets: NDArray[np.int64]
    target: object  # the canonical label of the positive class

    def read(self, runs: Iterable[range]) -> Iterator[Run]:
        """Yield runs of blocks as `Source.read` does, whose text is parsed again."""
        with open_unchanged(self.path, self.stamp) as file:
            for run in runs:
                first_byte = self.offsets[run.start]
                next_byte = self.offsets[run.stop]
                file.seek(first_byte)
                text = file.read(next_byte - first_byte)
                try:
                    rows = parse_rows(text, str(self.path), self.n_features)
                except InputError:  # every line was right in the first pass
                    raise _changed_error(self.path) from None
                sparse, labels = matrix_of(rows, self.n_features)
                first_row = int(self.starts[run.start])
                next_row = int(self.starts[run.stop])
                if len(labels) != next_row - first_row:
                    raise _changed_error(self.path)
                values = sparse.toarray() if self.dense else sparse
                X = to_dtype(values, self.dtype, str(self.path))
                y = np.where(labels == self.target, 1.0, -1.0)
                yield Run(first_row, X, y)


def _scan_text(
    path: Path, scan: _Scan, n_features: int | None, block_bytes: int
) -> _TextBlocks:
    """Parse an svmlight file once, fill `scan`, and return a source of its blocks."""
    starts = [0]  # the first row of each block, then the number of rows
    offsets = [0]  # the first byte of each block, then the number of bytes
    largest = 0
    n_entries = 0
    with open_unchanged(path) as file:
        stamp = _stamp(file)
        if opener(file):  # compressed
            raise InputError(
                f"{path}: a compressed file cannot be read in random order; decompress"
                " the file"
            )
        for text, rows in parsed(file, os.fspath(path), n_features, block_bytes):
            scan.digest.update(text)
            scan.see(rows.labels, path)
            largest = max(largest, rows.largest_index)
            n_entries += len(rows.data)
            starts.append(starts[-1] + len(rows.labels))
            offsets.append(offsets[-1] + len(text))
    width = largest if n_features is None else n_features
    if width == 0:
        raise InputError(f"{path}: no row has a feature; write features as index:value")
    return _TextBlocks(
        path=path,
        stamp=stamp,
        n_features=width,
        dense=n_entries > DENSE_ABOVE * starts[-1] * width,
        starts=np.array(starts),
        positives=scan.positives(),
        block_bytes=block_bytes,
        # one block at a time: parsing takes many times the memory of its text
        blocks_per_run=1,
        offsets=np.array(offsets),
        target=scan.target,
    )


class _Pages(NamedTuple):
    """Where some rows are in a file, in bytes."""

    start: int  # of the first page
    n_bytes: int  # from the start to the end of the rows
    n_before: int  # from the start to the first row


@dataclass(frozen=True, eq=False)
class Npy:
    """A file with one array, read a few rows at a time."""

    path: Path
    stamp: Stamp
    dtype: np.dtype
    shape: tuple[int, ...]
    offset: int  # bytes before the first row

    @classmethod
    def described(cls, path: Path, n_dimensions: int) -> Self:
        """Return what the header says about the file.

        Refuse all but numbers in C order.
        """
        with open_unchanged(path) as file:
            stamp = _stamp(file)
        try:
            array = np.load(path, mmap_mode="r", allow_pickle=False)
        except Exception as error:  # a damaged header has many ways to fail
            reason, _, _ = str(error).partition(".")  # without advice to unpickle
            raise InputError(
                f"{path}: no array of numbers: {reason}; use numpy.save"
            ) from error
        if not isinstance(array, np.memmap) or array.dtype.kind not in "fiub":
            content = "an npz archive"
            if hasattr(array, "dtype"):
                content = f"dtype {array.dtype}"
            raise InputError(
                f"{path}: found {content}, not an array of numbers; use numpy.save"
            )
        if array.ndim != n_dimensions:
            raise InputError(
                f"{path}: found the shape {array.shape}; save an array of"
                f" {n_dimensions} dimensions"
            )
        if not array.flags.c_contiguous:
            raise InputError(
                f"{path}: the array is in Fortran order; save"
                " numpy.ascontiguousarray(array)"
            )
        return cls(path, stamp, array.dtype, array.shape, array.offset)

    def rows(self, file: IO[bytes], start: int, stop: int) -> NDArray[Any]:
        """Return rows from `start` to `stop` as a map of the open file.

        The map is freed with the array.
        """
        # access beyond the end would kill the process
        _refuse_changed(self.path, file, self.stamp)
        place = self._pages(start, stop)
        pages = mmap.mmap(
            file.fileno(),
            place.n_bytes,
            _MAP_FLAGS,
            mmap.PROT_READ,
            offset=place.start,
        )
        shape = (stop - start, *self.shape[1:])
        values = np.ndarray(shape, self.dtype, pages, offset=place.n_before)
        # a copy if the values are not aligned
        return np.require(values, requirements=["C", "A"])

    @contextmanager
    def mapped(self, spans: Iterable[Span]) -> Iterator[NDArray[Any]]:
        """Yield all rows as a map, with `spans` of rows prefetched.

        Free its pages at the end.
        """
        with open_unchanged(self.path, self.stamp) as file:
            whole_file = 0  # as a length
            pages = mmap.mmap(file.fileno(), whole_file, prot=mmap.PROT_READ)
            for start, stop in spans:
                place = self._pages(start, stop)
                # The advice splits the map, so that access to the span maps no page
                # outside.
                pages.madvise(mmap.MADV_SEQUENTIAL, place.start, place.n_bytes)
                pages.madvise(mmap.MADV_WILLNEED, place.start, place.n_bytes)
            yield np.ndarray(self.shape, self.dtype, pages, self.offset)
            pages.madvise(mmap.MADV_DONTNEED)  # frees memory even if the array is kept

    def _pages(self, start: int, stop: int) -> _Pages:
        """Return the pages that hold the rows from `start` to `stop`."""
        row_bytes = int(np.prod(self.shape[1:])) * self.dtype.itemsize
        begin = self.offset + start * row_bytes
        end = self.offset + stop * row_bytes
        # A map begins at a multiple of the granularity.
        n_before = begin % mmap.ALLOCATIONGRANULARITY
        page_start = begin - n_before
        return _Pages(page_start, end - page_start, n_before)


class _LabelledRows(NamedTuple):
    """Neighbouring rows, as an npy file and that of its labels have them."""

    first_row: int
    X: NDArray[np.floating]
    labels: NDArray[Any]


@dataclass(frozen=True, eq=False, kw_only=True)
class _NpyBlocks(Source):
    """Blocks of rows of an npy file, and of an npy file of their labels."""

    features: Npy
    labels: Npy
    target: object  # the canonical label of the positive class

    @property
    def mapped(self) -> Mapped | None:
        """A map of all rows; None if their values must be copied."""
        features = self.features
        is_aligned = features.offset % features.dtype.alignment == 0
        if is_aligned and features.dtype == self.dtype:
            return features.mapped
        return None

    def read(self, runs: Iterable[range]) -> Iterator[Run]:
        """Yield runs of blocks as `Source.read` does."""
        for rows in self.raw(runs):
            y = np.where(rows.labels == self.target, 1.0, -1.0)
            yield Run(rows.first_row, rows.X, y)

    def raw(self, runs: Iterable[range]) -> Iterator[_LabelledRows]:
        """Yield the rows of each run of blocks, with their labels as in the file."""
        with (
            open_unchanged(self.features.path, self.features.stamp) as file,
            open_unchanged(self.labels.path, self.labels.stamp) as label_file,
        ):
            for run in runs:
                start = int(self.starts[run.start])
                stop = int(self.starts[run.stop])
                values = self.features.rows(file, start, stop)
                X = to_dtype(values, self.dtype, str(self.features.path))
                labels = self.labels.rows(label_file, start, stop)
                yield _LabelledRows(start, X, labels)


def _scan_npy(
    path: Path,
    labels_path: str | os.PathLike[str] | None,
    scan: _Scan,
    block_bytes: int,
) -> _NpyBlocks:
    """Check an npy file and its labels, fill `scan`, and return a source of blocks."""
    if labels_path is None:
        raise InputError(
            f"{path}: the labels are missing; name their npy file in 'labels'"
        )
    features = Npy.described(path, n_dimensions=2)
    n_rows, width = features.shape
    labels = Npy.described(Path(labels_path), n_dimensions=1)
    if labels.shape != (n_rows,):
        raise InputError(
            f"{labels.path}: {labels.shape[0]:,} labels for {n_rows:,} rows; give one"
            " label a row"
        )
    if width == 0:
        raise InputError(f"{path}: the array has no columns; give at least one feature")
    rows_of_block = max(1, block_bytes // (width * features.dtype.itemsize))
    blocks = _NpyBlocks(
        n_features=width,
        dense=True,
        features=features,
        labels=labels,
        starts=block_starts(n_rows, rows_of_block),
        positives=np.empty(0, dtype=np.uint8),  # set below, when all rows are read
        block_bytes=block_bytes,
        target=scan.target,
    )
    single_blocks = [range(i, i + 1) for i in range(len(blocks.starts) - 1)]
    for rows in blocks.raw(single_blocks):
        scan.digest.update(rows.X)
        scan.digest.update(np.ascontiguousarray(rows.labels))
        is_finite = np.isfinite(rows.X)
        if not is_finite.all():
            place, column = np.argwhere(~is_finite)[0]
            raise InputError(
                f"{path}: row {rows.first_row + place + 1}, feature {column + 1}"
                " (from 1) is not finite; correct the value"
            )
        has_label = np.isfinite(rows.labels)
        if not has_label.all():
            place = np.argmin(has_label)
            raise InputError(
                f"{labels.path}: row {rows.first_row + place + 1} (from 1) has no"
                " finite label; give one"
            )
        scan.see(rows.labels, labels.path)
    return replace(blocks, positives=scan.positives())
