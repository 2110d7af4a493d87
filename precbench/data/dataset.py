"""A loaded data set."""

import hashlib
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NamedTuple, Self, TypeAlias

import numpy as np
from numpy.typing import NDArray

from precbench.core.errors import InputError
from precbench.core.kinds import Dtype

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix

Matrix: TypeAlias = "NDArray[np.floating] | csr_matrix"


def to_dtype(X: Matrix, dtype: Dtype, name: str) -> Matrix:
    """Return X as `dtype`, without a copy if X has that type.

    Refuse values out of its range.
    """
    try:
        with np.errstate(over="raise"):  # else large values would become infinite
            return X.astype(dtype, copy=False)
    except FloatingPointError as error:
        raise InputError(
            f"{name}: X has absolute values above {np.finfo(dtype).max:.3g}, the"
            f" largest {dtype} number; use dtype float64"
        ) from error


def parts(X: Matrix) -> list[NDArray]:
    """Return the arrays that X consists of: X itself, or the three of a CSR matrix."""
    if isinstance(X, np.ndarray):
        return [X]
    return [X.data, X.indices, X.indptr]


class Arrays(NamedTuple):
    """The arrays of a data set, as `Dataset` describes them."""

    X: Matrix
    y: NDArray[np.float64]
    groups: NDArray[np.int64] | None = None
    optimum: NDArray[np.float64] | None = None


class ImputedColumn(NamedTuple):
    """A column with gaps; one of categories has several features."""

    start: int  # the first feature
    stop: int  # the feature after the last
    rows: NDArray[np.int64]  # without a value


@dataclass(frozen=True, eq=False)
class Imputed:
    """Which values of X were missing and have been filled in."""

    how: str  # "mean", "median" or "most-frequent"
    columns: tuple[ImputedColumn, ...]

    def select(self, rows: NDArray[np.intp]) -> Self:
        """Return the gaps in `rows` (ascending), each at its place in `rows`."""
        columns = []
        for column in self.columns:
            is_selected = np.isin(column.rows, rows, assume_unique=True)
            places = np.searchsorted(rows, column.rows[is_selected])
            columns.append(column._replace(rows=places))
        return replace(self, columns=tuple(columns))


def fill_value(numbers: NDArray[np.floating], how: str) -> float:
    """Return the mean, median or most frequent number (the least of a tie).

    NaN is ignored.
    """
    if how == "most-frequent":
        distinct, counts = np.unique(numbers[~np.isnan(numbers)], return_counts=True)
        return float(distinct[counts.argmax()])
    if how == "median":
        return float(np.nanmedian(numbers))
    return float(np.nanmean(numbers, dtype=float))


def _filling(known: NDArray[np.floating], how: str) -> NDArray[np.floating] | float:
    """Return what fills gaps of a column.

    `known` has the features of the column in training rows without a gap.
    """
    n_rows, n_features = known.shape
    if n_rows == 0:  # nothing to learn from
        return 0.0
    if n_features > 1:  # of categories: the most frequent one, whatever `how` is
        one_hot = np.zeros(n_features)
        one_hot[known.sum(axis=0).argmax()] = 1.0
        return one_hot
    return fill_value(known, how)


def split_key_of(y: NDArray[np.float64]) -> str:
    """Return the key of random splits that follow the labels, not a name."""
    return hashlib.sha256((y > 0).tobytes()).hexdigest()


@dataclass(frozen=True, eq=False)
class Dataset:
    """Rows with labels; the arrays may be read-only memory maps.

    Attributes
    ----------
    name, title : str
        Tables and plots show the title; that of a stand-in ends with ``(stand-in,
        synthetic)``.
    X : ndarray of shape (n_samples, n_features), or csr_matrix
        Of float64 or float32; the ndarray is C-contiguous, the csr_matrix has int32
        indices.
    y : ndarray of shape (n_samples,), float64
        -1 or +1.
    sha256 : str
        Identity of the content: hash of the files and how they are read, or of the
        generator's parameters.
    stand_in : bool
        Whether the rows are synthetic because the data set could not be obtained.
    groups : ndarray of shape (n_samples,), int64, or None
        No split separates rows with the same number.
    n_train : int or None
        The first `n_train` rows are the provided training set.
    feature_names : tuple of str or None
    optimum : ndarray of shape (n_features,) or None
        The unit vector that generated the labels, if known.
    split_key : str or None
        Seed key of random splits; if None, `name` is the key.
    time : ndarray of shape (n_samples,), int64 or float64, or None
        Time of each row: numbers, or for dates microseconds since 1970 (UTC).
    imputed : Imputed or None
        Missing values of X, filled in from all rows; `gathered` fills them from the
        training rows.

    Examples
    --------
    >>> import numpy as np
    >>> from precbench.data import Dataset
    >>> data = Dataset("three", "Three", np.eye(3), np.array([1.0, -1.0, -1.0]), "")
    >>> data.X.shape, int((data.y > 0).sum())
    ((3, 3), 1)
    """

    name: str
    title: str
    X: Matrix
    y: NDArray[np.float64]
    sha256: str
    stand_in: bool = False
    groups: NDArray[np.int64] | None = None
    n_train: int | None = None
    feature_names: tuple[str, ...] | None = None
    optimum: NDArray[np.float64] | None = None
    split_key: str | None = None
    time: NDArray[np.int64] | NDArray[np.float64] | None = None
    imputed: Imputed | None = None

    def gathered(self, rows: NDArray[np.intp], train: NDArray[np.intp]) -> Matrix:
        """Return a copy of `rows` of X, with gaps filled from the rows `train` only."""
        X = self.X[rows]
        if self.imputed is None:
            return X
        for column in self.imputed.columns:
            is_gap = np.zeros(self.X.shape[0], dtype=bool)
            is_gap[column.rows] = True
            gaps = np.flatnonzero(is_gap[rows])  # places in `rows`, and in the copy
            if len(gaps) == 0:
                continue
            features = slice(column.start, column.stop)
            known_rows = train[~is_gap[train]]
            known = np.asarray(self.X[known_rows, features])
            X[gaps, features] = _filling(known, self.imputed.how)
        return X

    @property
    def n_pos(self) -> int:
        """Number of positive rows."""
        return int(np.count_nonzero(self.y > 0))
