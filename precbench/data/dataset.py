"""A loaded data set."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from precbench.errors import InputError

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix

    Matrix: TypeAlias = NDArray[np.floating] | csr_matrix

Dtype = Literal["float64", "float32"]
"""The type that values of rows are stored in."""


def stored(X: Matrix, dtype: Dtype, name: str) -> Matrix:
    """Return rows with each value as the nearest of a type; without a copy if it is theirs.

    Parameters
    ----------
    X : ndarray or csr_matrix
    dtype : {"float64", "float32"}
    name : str
        Of the rows, for the message.

    Returns
    -------
    ndarray or csr_matrix

    Raises
    ------
    InputError
        If the type cannot hold a value.
    """
    try:
        with np.errstate(over="raise"):
            return X.astype(dtype, copy=False)
    except FloatingPointError as error:
        raise InputError(
            f"{name}: {dtype} holds values up to {np.finfo(dtype).max:.3g} only, and X has larger "
            "ones: leave out dtype"
        ) from error


class Arrays(NamedTuple):
    """The arrays of a data set, as `Dataset` describes them."""

    X: Matrix
    y: NDArray[np.float64]
    groups: NDArray[np.int64] | None = None
    optimum: NDArray[np.float64] | None = None


@dataclass(frozen=True, eq=False)
class Imputed:
    """Values of X that were missing and are filled in.

    Attributes
    ----------
    how : {"mean", "median", "most-frequent"}
    columns : tuple of (int, int, ndarray of int64)
        For each column with missing values its first feature, the one after its last (several are
        the categories of text, of which the most frequent is filled in), and the rows that lack it.
    """

    how: str
    columns: tuple[tuple[int, int, NDArray[np.int64]], ...]

    def of(self, rows: NDArray[np.intp]) -> Imputed:
        """Return those of some rows, which are given in ascending order."""
        columns = (
            (
                start,
                stop,
                np.searchsorted(rows, missing[np.isin(missing, rows, assume_unique=True)]),
            )
            for start, stop, missing in self.columns
        )
        return replace(self, columns=tuple(columns))


def _fill(values: NDArray[np.floating], how: str) -> NDArray[np.floating] | float:
    """Return what stands for a missing value: 0 where nothing is known."""
    if not len(values):
        return 0.0
    if values.shape[1] > 1:
        return np.eye(values.shape[1])[values.sum(axis=0).argmax()]
    if how == "most-frequent":
        distinct, counts = np.unique(values, return_counts=True)
        return distinct[counts.argmax()]
    return float(np.median(values) if how == "median" else np.mean(values, dtype=np.float64))


@dataclass(frozen=True, eq=False)
class Dataset:
    """Rows with labels; the arrays may be read-only memory maps.

    Attributes
    ----------
    name : str
    title : str
        Name in tables and plots; that of a stand-in ends with ``(stand-in, synthetic)``.
    X : ndarray of shape (n_samples, n_features), C-contiguous, or csr_matrix with int32 indices
        Of float64, or where it was asked for of float32.
    y : ndarray of shape (n_samples,), float64
        -1 or +1.
    sha256 : str
        Identity of the content: of the files and how they are read, or of the generator's
        parameters.
    stand_in : bool
        Whether synthetic rows stand in for a data set that could not be obtained.
    groups : ndarray of shape (n_samples,), int64, or None
        Rows with the same number belong together; no split separates them.
    time : ndarray of shape (n_samples,), int64 or float64, or None
        When each row was seen: numbers as they were given, dates as microseconds since 1970 (UTC).
    n_train : int or None
        The first `n_train` rows are the provided training set.
    feature_names : tuple of str or None
    optimum : ndarray of shape (n_features,) or None
        The unit vector that generated the labels, where one is known.
    imputed : Imputed or None
        Which values of X were missing and are filled in from all rows; `gathered` fills them in
        from the training rows of a split.
    split_key : str or None
        What random splits are drawn from; None for the name.

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
        """Return a copy of rows of X, with what they lack filled in from the training rows alone.

        Parameters
        ----------
        rows, train : ndarray of int
            Numbers of rows.
        """
        X = self.X[rows]
        if self.imputed is None:
            return X
        is_missing = np.zeros(self.X.shape[0], dtype=bool)
        for start, stop, missing in self.imputed.columns:
            is_missing[missing] = True
            gaps = np.flatnonzero(is_missing[rows])
            if len(gaps):
                values = np.asarray(self.X[train[~is_missing[train]], start:stop])
                X[gaps, start:stop] = _fill(values, self.imputed.how)
            is_missing[missing] = False
        return X

    @property
    def n_pos(self) -> int:
        """Number of positive rows."""
        return int(np.count_nonzero(self.y > 0))
