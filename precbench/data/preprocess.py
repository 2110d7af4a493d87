"""Scale features in place."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Literal, Self

import numpy as np
from numpy.typing import NDArray

from precbench.errors import InputError

if TYPE_CHECKING:
    from precbench.data.dataset import Matrix

ROWS_AT_ONCE = 4096

Scaling = Literal["standardise", "unit", "none"]


class Scaler:
    """Map every feature x to (x - shift) / scale.

    Parameters
    ----------
    kind : {"standardise", "unit", "none"}
        ``standardise``: to mean 0 and standard deviation 1. ``unit``: to [0, 1] by minimum and
        maximum; of a sparse matrix to [-1, 1] by the largest absolute value, so that zeros stay.
        A constant feature keeps its scale.

    Attributes
    ----------
    shift, scale : ndarray of shape (n_features,)
        Known after `fit`; not for ``none``.
    """

    shift: NDArray[np.float64] | None
    scale: NDArray[np.float64] | None

    def __init__(self, kind: Scaling) -> None:
        if kind not in ("standardise", "unit", "none"):
            raise InputError(f"scaling is 'standardise', 'unit' or 'none', found {kind!r}")
        self.kind = kind
        self.shift = self.scale = None

    def fit(self, X: Matrix) -> Self:
        """Learn shift and scale, a few thousand rows at a time.

        Parameters
        ----------
        X : ndarray or csr_matrix of shape (n_samples, n_features)

        Returns
        -------
        Scaler
            This scaler.

        Raises
        ------
        InputError
            Standardisation of a sparse matrix, which would make it dense.
        """
        return self.fit_blocks(X[rows] for rows in _slices(X.shape[0]))

    def fit_blocks(self, blocks: Iterable[Matrix]) -> Self:
        """Learn shift and scale from rows that come block by block.

        Parameters
        ----------
        blocks : iterable of ndarray or csr_matrix of shape (n_block, n_features)
            All dense or all sparse. For ``none`` none is taken.

        Returns
        -------
        Scaler
            This scaler.

        Raises
        ------
        InputError
            Standardisation of a sparse matrix, which would make it dense.
        """
        if self.kind == "none":
            return self
        from sklearn.preprocessing import MaxAbsScaler, MinMaxScaler, StandardScaler

        learner = StandardScaler() if self.kind == "standardise" else MinMaxScaler()
        for block in blocks:
            if not isinstance(block, np.ndarray):
                if self.kind == "standardise":
                    raise InputError(
                        "sparse data cannot be standardised, the shift would fill the zeros; use "
                        "scaling 'unit' or 'none'"
                    )
                if not isinstance(learner, MaxAbsScaler):
                    learner = MaxAbsScaler()
            learner.partial_fit(block)
        if self.kind == "standardise":
            self.shift, self.scale = learner.mean_, learner.scale_
        elif isinstance(learner, MaxAbsScaler):
            self.shift, self.scale = np.zeros_like(learner.scale_), learner.scale_
        else:
            spread = learner.data_range_
            self.shift, self.scale = learner.data_min_, np.where(spread > 0, spread, 1.0)
        return self

    def transform_in_place(self, X: Matrix) -> Matrix:
        """Scale the rows where they are.

        Parameters
        ----------
        X : ndarray or csr_matrix of shape (n_samples, n_features)
            Overwritten.

        Returns
        -------
        ndarray or csr_matrix
            `X` itself.

        Raises
        ------
        InputError
            Another number of features than in `fit`, or sparse rows after a dense fit.
        """
        if self.shift is None or self.scale is None:
            return X
        if X.shape[1] != len(self.shift):
            raise InputError(
                f"the scaling was fitted to {len(self.shift)} features, found {X.shape[1]}"
            )
        if isinstance(X, np.ndarray):
            for rows in _slices(X.shape[0]):
                X[rows] -= self.shift
                X[rows] /= self.scale
        elif self.shift.any():
            raise InputError(
                "sparse rows cannot be shifted as the dense ones were; make them dense"
            )
        else:
            for entries in _slices(X.nnz):
                X.data[entries] /= self.scale[X.indices[entries]]
        return X

    def to_arrays(self) -> dict[str, NDArray[np.float64]]:
        """Return the arrays that a saved model must carry; none for ``none``.

        Returns
        -------
        dict of str to ndarray
        """
        if self.shift is None or self.scale is None:
            return {}
        return {"shift": self.shift, "scale": self.scale}

    @classmethod
    def from_arrays(cls, kind: Scaling, arrays: Mapping[str, NDArray[np.float64]]) -> Self:
        """Rebuild a fitted scaler.

        Parameters
        ----------
        kind : {"standardise", "unit", "none"}
        arrays : mapping
            As `to_arrays` gave them.

        Returns
        -------
        Scaler
        """
        scaler = cls(kind)
        scaler.shift, scaler.scale = arrays.get("shift"), arrays.get("scale")
        return scaler


def _slices(n: int) -> Iterator[slice]:
    return (slice(start, start + ROWS_AT_ONCE) for start in range(0, n, ROWS_AT_ONCE))
