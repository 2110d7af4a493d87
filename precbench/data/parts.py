"""Partitions of files, each opened by whoever holds it: blocks of npy, row groups of Parquet, npz.

The partitions of a file do not depend on how many workers there are, nor do, therefore, sums that
are added up over them in their order.
"""

import os
from abc import ABC, abstractmethod
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from precbench.data.formats import SUFFIXES
from precbench.data.own.problems import listed
from precbench.data.own.read import read_npz
from precbench.data.preprocess import ROWS_AT_ONCE
from precbench.data.stream.files import Npy, unchanged
from precbench.errors import InputError

__all__ = ["find_parts"]

PART_BYTES = 2**27


@dataclass(frozen=True, kw_only=True)
class Part(ABC):
    """Some rows of a file, as a worker is told of them.

    Attributes
    ----------
    path : str
    """

    path: str

    @abstractmethod
    def read(self) -> tuple[Any, NDArray[Any]]:
        """Return the rows, of float64 or float32, and their labels as they stand in the file."""

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of the features; none where the file does not name them."""
        return ()


def find_parts(
    source: str | os.PathLike[str],
    *,
    labels: str | os.PathLike[str] | None = None,
    label: str | int | None = None,
    drop: Collection[str] = (),
    part_bytes: int | None = None,
) -> list[Part]:
    """Return the partitions of a file, of the files of a folder, or of those that match a pattern.

    Parameters
    ----------
    source : path
        Files ``.npy``, ``.parquet`` (columns of numbers without gaps) or ``.npz`` (arrays X and y,
        or those of a CSR matrix and y), all of one kind. A folder or a pattern such as
        ``rows/2024-*.parquet`` stands for its files in the order of their names.
    labels : path, optional
        npy: a file with the labels of the rows of one file.
    label : str or int, optional
        Parquet: the column of labels. npy: its number, counted from 0, in place of `labels`.
    drop : collection of str
        Parquet: columns that are no features.
    part_bytes : int, optional
        Bytes of the rows of a partition, of Parquet whole row groups, of npz always a file. Default
        2**27, or a tenth of the file if that is less.

    Returns
    -------
    list of Part

    Raises
    ------
    InputError
        No such files, or of several kinds, or no place of the labels.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> import numpy as np
    >>> from precbench.data.parts import find_parts
    >>> with TemporaryDirectory() as folder:
    ...     np.save(Path(folder, "rows.npy"), np.arange(12.0).reshape(4, 3))
    ...     parts = find_parts(Path(folder, "rows.npy"), label=2, part_bytes=48)
    ...     print([(X.tolist(), y.tolist()) for X, y in (part.read() for part in parts)])
    [([[0.0, 1.0], [3.0, 4.0]], [2.0, 5.0]), ([[6.0, 7.0], [9.0, 10.0]], [8.0, 11.0])]
    """
    files = _files(Path(source))
    kinds = {SUFFIXES.get(path.suffix.lower(), path.suffix) for path in files}
    kind = kinds.pop()
    if kinds or kind not in ("npy", "parquet", "npz"):
        raise InputError(
            f"{source}: partitions are made of .npy, .parquet or .npz files, all of one kind, "
            f"found {listed(sorted({path.name for path in files}), 3)}"
        )
    if kind == "npz":
        return [_WholeFile(path=str(path)) for path in files]
    if kind == "parquet":
        if label is None or labels is not None:
            raise InputError(f"{source}: name the column of labels (label)")
        return [part for path in files for part in _row_groups(path, str(label), drop, part_bytes)]
    if (labels is None) == (label is None) or (labels is not None and len(files) > 1):
        raise InputError(
            f"{source}: say where the labels are: in a file beside one file of rows (labels), or "
            "in a column, by its number (label)"
        )
    return [part for path in files for part in _blocks(path, labels, label, part_bytes)]


def _rows_of_part(n_rows: int, row_bytes: int, part_bytes: int | None) -> int:
    """Return the number of rows of a partition; a tenth of ten can be held out."""
    most = part_bytes or min(PART_BYTES, n_rows * row_bytes // 10)
    return max(1, most // max(1, row_bytes))


def _files(source: Path) -> list[Path]:
    if source.is_file():
        return [source]
    found = source.glob("*.*") if source.is_dir() else source.parent.glob(source.name)
    files = sorted(path for path in found if path.is_file())
    if not files:
        raise InputError(f"{source}: no such file, no folder with files, no pattern that fits any")
    return files


# --- npy ---


@dataclass(frozen=True, kw_only=True)
class _Block(Part):
    file: Npy
    start: int
    stop: int
    labels: Npy | None
    label: int  # the column, if there is no such file

    def read(self) -> tuple[Any, NDArray[Any]]:
        rows = self._stretch(self.file)
        if self.labels is not None:
            return _of_float(rows), self._stretch(self.labels)
        return _of_float(np.delete(rows, self.label, axis=1)), rows[:, self.label]

    def _stretch(self, file: Npy) -> NDArray[Any]:
        with unchanged(file.path, file.stamp) as opened:
            return file.rows(opened, self.start, self.stop)


def _of_float(X: NDArray[Any]) -> NDArray[np.floating]:
    """Return the rows as they lie in the file, if the kernels can read them there."""
    dtype = np.float32 if X.dtype == np.float32 else np.float64
    return np.ascontiguousarray(X, dtype)


def _blocks(
    path: Path,
    labels: str | os.PathLike[str] | None,
    label: str | int | None,
    part_bytes: int | None,
) -> Iterator[_Block]:
    file = Npy.at(path, 2)
    n_rows, width = file.shape
    beside = None if labels is None else Npy.at(Path(labels), 1)
    if beside is not None and beside.shape != (n_rows,):
        raise InputError(f"{labels}: {beside.shape[0]:,} labels for {n_rows:,} rows")
    column = int(label or 0) if str(label or 0).isdecimal() else width
    if column >= width:
        raise InputError(f"{path}: no column {label}: there are {width}, counted from 0")
    length = _rows_of_part(n_rows, width * file.dtype.itemsize, part_bytes)
    for start in range(0, n_rows, length):
        stop = min(n_rows, start + length)
        yield _Block(path=str(path), file=file, start=start, stop=stop, labels=beside, label=column)


# --- Parquet ---


@dataclass(frozen=True, kw_only=True)
class _RowGroups(Part):
    groups: range
    label: str
    names: tuple[str, ...]

    @property
    def columns(self) -> tuple[str, ...]:
        return self.names

    def read(self) -> tuple[Any, NDArray[Any]]:
        with _parquet(Path(self.path)) as file:
            table = file.read_row_groups([*self.groups], [*self.names, self.label])
        columns = [self._numbers(table, name) for name in self.names]
        is_single = all(column.dtype == np.float32 for column in columns)
        X = np.empty((table.num_rows, len(columns)), np.float32 if is_single else np.float64)
        for start in range(0, len(X), ROWS_AT_ONCE):  # rows that stay in the cache meanwhile
            rows = slice(start, start + ROWS_AT_ONCE)
            for j, column in enumerate(columns):
                X[rows, j] = column[rows]
        return X, table.column(self.label).to_numpy()

    def _numbers(self, table: Any, name: str) -> NDArray[Any]:
        values = table.column(name).to_numpy()
        if values.dtype.kind not in "fiub":
            raise InputError(f"{self.path}: column {name!r} is not of numbers, or lacks some")
        return np.asarray(values)


def _parquet(path: Path) -> Any:
    try:
        from pyarrow.parquet import ParquetFile
    except ImportError:
        raise InputError(
            f"{path}: Parquet files need pyarrow; install precbench[parquet]"
        ) from None
    try:
        return ParquetFile(path)
    except Exception as error:  # a damaged file has many ways to fail
        reason = " ".join(str(error).split())
        raise InputError(f"{path}: the file cannot be read: {reason}") from error


def _row_groups(
    path: Path, label: str, drop: Collection[str], part_bytes: int | None
) -> Iterator[_RowGroups]:
    with _parquet(path) as file:
        schema, about = file.schema_arrow, file.metadata
    index = (schema.pandas_metadata or {}).get("index_columns", ())  # of a frame, no column of it
    names = [name for name in schema.names if name not in index]
    if unknown := {label, *drop} - {*names}:
        raise InputError(f"{path}: no column {listed(sorted(unknown))}; it has {listed(names)}")
    features = tuple(name for name in names if name not in {label, *drop})
    length, first, n_rows = _rows_of_part(about.num_rows, 8 * len(features), part_bytes), 0, 0
    for group in range(about.num_row_groups):
        n_rows += about.row_group(group).num_rows
        if n_rows >= length or group == about.num_row_groups - 1:
            groups = range(first, group + 1)
            yield _RowGroups(path=str(path), groups=groups, label=label, names=features)
            first, n_rows = group + 1, 0


# --- npz ---


@dataclass(frozen=True, kw_only=True)
class _WholeFile(Part):
    def read(self) -> tuple[Any, NDArray[Any]]:
        X, arrays = read_npz(Path(self.path))
        if arrays.get("y", np.empty(0)).shape != X.shape[:1]:
            raise InputError(f"{self.path}: expected y, a label for each of {X.shape[0]:,} rows")
        return X, arrays["y"]
