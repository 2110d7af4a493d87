"""A loaded data set."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix

    Matrix: TypeAlias = NDArray[np.float64] | csr_matrix


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
    X : ndarray of shape (n_samples, n_features), float64, C-contiguous, or csr_matrix with int32
        indices
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
        The first `n_train` rows are the provided training part.
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
