"""Random Fourier features: linear scores like those of a Gaussian kernel."""

from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from precbench.core.errors import InputError
from precbench.solvers.common.base import require_memory
from precbench.solvers.common.rows import as_rows, linear_scores

_MOST = 1_000_000  # random features
ROWS_AT_ONCE = 4096  # mapped at a time, to limit the memory


def fitted_sampler(
    X: Any, n_components: int, gamma: float | None, bandwidth: float, seed: int | None
) -> Any:
    """Draw a map from scaled rows to random features, an `RBFSampler`.

    The map approximates the kernel ``exp(-gamma ||(x - x') / bandwidth||^2)``; by
    default `gamma` is 1 / (n_features * variance of X).
    """
    from sklearn.kernel_approximation import RBFSampler

    sampler = RBFSampler(
        gamma="scale" if gamma is None else gamma,
        n_components=n_components,
        random_state=seed,
    )
    sampler.fit(X.astype(np.float64, copy=False))
    sampler.random_weights_ /= bandwidth
    return sampler


def mapped(sampler: Any, X: Any) -> Any:
    """Map rows to random features, computed in float64, in the type of the rows."""
    if X.dtype == np.float64:
        return sampler.transform(X)
    features = np.empty((X.shape[0], sampler.n_components), X.dtype)
    for start in range(0, X.shape[0], ROWS_AT_ONCE):  # few rows at a time as float64
        rows = slice(start, start + ROWS_AT_ONCE)
        features[rows] = sampler.transform(X[rows].astype(np.float64))
    return features


@dataclass(frozen=True, eq=False)
class RandomFeatures:
    """The map ``sqrt(2 / n_components) cos(X @ weights.T + offset)``."""

    weights: NDArray[np.float64]  # (n_components, n_features)
    offset: NDArray[np.float64]  # (n_components,)

    @classmethod
    def fit(
        cls,
        X: Any,
        n_components: int,
        *,
        gamma: float | None = None,
        bandwidth: float = 1.0,
        seed: int | None = None,
    ) -> Self:
        """Draw a map, after checking its parameters and the memory."""
        if not _is_number(n_components, Integral) or not 1 <= n_components <= _MOST:
            raise InputError(
                f"n_components = {n_components!r} is invalid; give an integer from 1 to"
                f" {_MOST:,}"
            )
        scales = {"bandwidth": bandwidth}
        if gamma is not None:
            scales = {"gamma": gamma, **scales}
        for name, value in scales.items():
            if not _is_number(value, Real) or not 0 < value < np.inf:
                raise InputError(
                    f"{name} = {value!r} is invalid; give a finite number above 0"
                )
        n_samples, n_features = X.shape
        n_values_of_rows = n_samples * int(n_components)
        n_values_of_map = n_features * int(n_components)
        require_memory(
            n_values_of_rows + n_values_of_map,
            n_features,
            f"{n_components:,} random features of all rows",
        )
        sampler = fitted_sampler(X, int(n_components), gamma, bandwidth, seed)
        return cls(
            np.ascontiguousarray(sampler.random_weights_.T), sampler.random_offset_
        )

    def transform(self, X: Any) -> NDArray[np.float64]:
        """Map rows X to ``sqrt(2 / n_components) cos(X @ weights.T + offset)``."""
        rows = as_rows(X)
        n_components = len(self.offset)
        features = np.empty((X.shape[0], n_components))
        # A product of matrices would not have the same bits on every machine.
        for j in range(n_components):
            features[:, j] = linear_scores(rows, self.weights[j])
        features += self.offset
        np.cos(features, out=features)
        features *= np.sqrt(2 / n_components)
        return features


def _is_number(value: object, kind: type) -> bool:
    """Return whether a value is a number of a kind; True and False are none."""
    return isinstance(value, kind) and not isinstance(value, bool)
