"""A loaded data set."""

from __future__ import annotations

from dataclasses import dataclass
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
    split_key : str or None
        What random splits are drawn from; None for the name.
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

    @property
    def n_pos(self) -> int:
        """Number of positive rows."""
        return int(np.count_nonzero(self.y > 0))
