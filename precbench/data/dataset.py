"""A loaded data set."""

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NamedTuple, Self, TypeAlias

import numpy as np
from numpy.typing import NDArray

from precbench.core.errors import InputError
from precbench.core.kinds import Dtype

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix

Matrix: TypeAlias = "NDArray[np.floating] | csr_matrix"

# Type of the values in X


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
    return [X] if isinstance(X, np.ndarray) else [X.data, X.indices, X.indptr]


class Arrays(NamedTuple):
    """The arrays of a data set, as `Dataset` describes them."""

    X: Matrix
    y: NDArray[np.float64]
    groups: NDArray[np.int64] | None = None
    optimum: NDArray[np.float64] | None = None


@dataclass(frozen=True, eq=False)
class Imputed:
    """Which values of X were missing and have been filled in."""

    how: str  # "mean", "median" or "most-frequent"
    # For each column with gaps: its first feature, the feature after its last (a column
    # of categories has several), and the rows without a value.
    columns: tuple[tuple[int, int, NDArray[np.int64]], ...]

    def select(self, rows: NDArray[np.intp]) -> Self:
        """Return the gaps in `rows` (ascending), each at its place in `rows`."""
        columns = []
        # features of a column, its rows with gaps
        for start, stop, missing in self.columns:
            still_missing = missing[np.isin(missing, rows, assume_unique=True)]
            # places in `rows`
            columns.append((start, stop, np.searchsorted(rows, still_missing)))
        return replace(self, columns=tuple(columns))


def fill_value(numbers: NDArray[np.floating], how: str) -> float:
    """Return the mean, median or most frequent number (the least of a tie).

    NaN is ignored.
    """
    if how == "most-frequent":
        distinct, counts = np.unique(numbers[~np.isnan(numbers)], return_counts=True)
        return float(distinct[counts.argmax()])
    return float(
        np.nanmedian(numbers) if how == "median" else np.nanmean(numbers, dtype=float)
    )


def _filling(known: NDArray[np.floating], how: str) -> NDArray[np.floating] | float:
    """Return what fills gaps of a column.

    `known`: its features in training rows without a gap.
    """
    if not len(known):
        return 0.0  # in each feature: nothing to learn from
    # one-hot: 1 for the most frequent category alone, whatever `how` is
    if known.shape[1] > 1:
        return np.eye(known.shape[1])[known.sum(axis=0).argmax()]
    return fill_value(known, how)


@dataclass(frozen=True, eq=False)
class Dataset:
    """Rows with labels; the arrays may be read-only memory maps.

    Attributes
    ----------
    name, title : str
        Tables and plots show the title; that of a stand-in ends with ``(stand-in,
        synthetic)``.
    X : ndarray of shape (n_samples, n_features), C-contiguous, or csr_matrix with int32 indices
        Of float64 or float32.
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
        """Return a copy of `rows` of X, with gaps filled from the rows `train` alone."""
        X = self.X[rows]
        if self.imputed is None:
            return X
        is_missing = np.zeros(self.X.shape[0], dtype=bool)
        for start, stop, missing in self.imputed.columns:
            is_missing[missing] = True
            # places in `rows`, thus rows of the copy
            gaps = np.flatnonzero(is_missing[rows])
            if len(gaps):
                known = np.asarray(self.X[train[~is_missing[train]], start:stop])
                X[gaps, start:stop] = _filling(known, self.imputed.how)
            is_missing[missing] = False  # all False again, for the next column
        return X

    @property
    def n_pos(self) -> int:
        """Number of positive rows."""
        return int(np.count_nonzero(self.y > 0))
