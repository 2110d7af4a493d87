"""Scale features and rows in place, with sums in float64 for either dtype."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple, Self, get_args

import numpy as np
from numpy.typing import NDArray

from precbench.core.errors import InputError
from precbench.core.kinds import Scaling
from precbench.data.dataset import Matrix

ROWS_AT_ONCE = 4096  # of a temporary copy in float64

_KINDS = get_args(Scaling)
# How features are scaled before rows are, for the kinds that scale rows
_FEATURE_SCALING = {"unit-norm": "none", "standardise-unit-norm": "standardise"}


class Scaler:
    """Map every feature x to (x - shift) / scale, and for ``unit-norm`` rows to norm 1.

    ``standardise``: mean 0 and standard deviation 1. ``unit``: to [0, 1] by minimum and
    maximum, or for a sparse matrix to [-1, 1] by the largest absolute value, so that
    zeros stay. A constant feature (if sparse, one of zeros) keeps its scale.
    ``unit-norm``: each row divided by its Euclidean norm; a zero row stays.
    ``standardise-unit-norm``: features, then rows.
    """

    shift: NDArray[np.float64] | None
    scale: NDArray[np.float64] | None

    def __init__(self, kind: Scaling) -> None:
        """Choose the scaling, whose shift and scale `fit` learns."""
        if kind not in _KINDS:
            raise InputError(
                f"scaling must be one of {', '.join(_KINDS)}, found {kind!r}"
            )
        self.kind = kind
        self._feature_scaling = _FEATURE_SCALING.get(kind, kind)
        self.shift = None  # until learnt
        self.scale = None

    @property
    def learns(self) -> bool:
        """Whether `fit` does anything."""
        return self._feature_scaling != "none"

    @property
    def scales_rows(self) -> bool:
        """Whether rows are scaled after the features."""
        return self.kind != self._feature_scaling

    def fit(self, X: Matrix) -> Self:
        """Learn shift and scale, a few thousand rows at a time; return self."""
        return self.fit_blocks(X[rows] for rows in _slices(X.shape[0]))

    def fit_blocks(self, blocks: Iterable[Matrix]) -> Self:
        """Learn shift and scale from blocks, all dense or all sparse; return self."""
        if not self.learns:
            return self
        learner: Any = None  # of scikit-learn
        for block in blocks:
            if learner is None:
                learner = self._learner(is_dense=isinstance(block, np.ndarray))
            # Overflows are refused below.
            with np.errstate(over="ignore", invalid="ignore"):
                learner.partial_fit(block.astype(np.float64, copy=False))
        learnt = _learnt(learner)
        self.shift = learnt.shift
        self.scale = learnt.scale
        # A sum is finite only if both terms are.
        is_too_large = ~np.isfinite(learnt.shift + learnt.spread)
        if is_too_large.any():
            first = np.argmax(is_too_large) + 1
            raise InputError(
                f"feature {first} of {len(is_too_large)} cannot be scaled, as its"
                " values are too large for double precision; divide the feature by a"
                " constant, or leave out the feature"
            )
        return self

    def _learner(self, is_dense: bool) -> Any:
        """Return what learns the scaling of features from dense or sparse blocks."""
        from sklearn.preprocessing import MaxAbsScaler, MinMaxScaler, StandardScaler

        if self._feature_scaling == "standardise":
            if not is_dense:
                raise InputError(
                    "sparse data cannot be standardised: the shift would fill the"
                    " zeros; use scaling 'unit', 'unit-norm' or 'none'"
                )
            return StandardScaler()
        if is_dense:
            return MinMaxScaler()
        return MaxAbsScaler()  # without a shift: zeros stay zeros

    def transform_in_place(self, X: Matrix) -> Matrix:
        """Overwrite X with its scaled rows, and return X."""
        self._scale_features(X)
        if self.scales_rows:
            from sklearn.preprocessing import normalize

            for rows in _slices(X.shape[0]):
                block = normalize(X[rows].astype(np.float64, copy=False), copy=False)
                if isinstance(X, np.ndarray):
                    # If X is float64, the block is a view of X, and this does nothing.
                    X[rows] = block
                else:  # the block is a copy
                    first = X.indptr[rows.start]  # the first entry of these rows
                    X.data[first : first + block.nnz] = block.data
        return X

    def _scale_features(self, X: Matrix) -> None:
        """Overwrite X with (X - shift) / scale, a few thousand rows at a time."""
        if self.shift is None or self.scale is None:
            return  # nothing was learnt
        if X.shape[1] != len(self.shift):
            raise InputError(
                f"X has {X.shape[1]} features, but the scaling was fitted to"
                f" {len(self.shift)}; give rows with the same features"
            )
        if isinstance(X, np.ndarray):
            for rows in _slices(X.shape[0]):
                np.divide(X[rows] - self.shift, self.scale, out=X[rows])
        elif self.shift.any():
            raise InputError(
                "X is sparse, but the scaling was fitted to dense rows, and its shift"
                " would fill the zeros of X; make X dense"
            )
        else:
            for entries in _slices(X.nnz):
                X.data[entries] /= self.scale[X.indices[entries]]

    def to_arrays(self) -> dict[str, NDArray[np.float64]]:
        """Return the fitted arrays by name, none if nothing was learnt."""
        arrays = {"shift": self.shift, "scale": self.scale}
        return {name: array for name, array in arrays.items() if array is not None}

    @classmethod
    def from_arrays(
        cls, kind: Scaling, arrays: Mapping[str, NDArray[np.float64]]
    ) -> Self:
        """Rebuild a fitted scaler from the result of `to_arrays`."""
        scaler = cls(kind)
        scaler.shift = arrays.get("shift")
        scaler.scale = arrays.get("scale")
        return scaler


class _Learnt(NamedTuple):
    """What was learnt of each feature."""

    shift: NDArray[np.float64]
    scale: NDArray[np.float64]
    spread: NDArray[np.float64]  # infinite where values are too large


def _learnt(learner: Any) -> _Learnt:
    """Return what a scaler of scikit-learn has learnt."""
    from sklearn.preprocessing import MaxAbsScaler, StandardScaler

    if isinstance(learner, StandardScaler):
        # Where the variance is infinite, scikit-learn makes the scale 1.
        return _Learnt(learner.mean_, learner.scale_, spread=learner.var_)
    if isinstance(learner, MaxAbsScaler):
        no_shift = np.zeros_like(learner.scale_)
        return _Learnt(no_shift, learner.scale_, spread=learner.scale_)
    data_range = learner.data_range_
    scale = np.where(data_range > 0, data_range, 1.0)  # 1 for a constant feature
    return _Learnt(learner.data_min_, scale, spread=scale)


def _slices(n: int) -> Iterator[slice]:
    """Yield slices of places below n, of which the last may end beyond n."""
    for start in range(0, n, ROWS_AT_ONCE):
        yield slice(start, start + ROWS_AT_ONCE)
