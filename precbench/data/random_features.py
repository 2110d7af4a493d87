"""Random Fourier features, whose linear scores approximate those of a Gaussian kernel."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from precbench.data.preprocess import ROWS_AT_ONCE

if TYPE_CHECKING:
    from precbench.data.dataset import Matrix

__all__ = ["fitted_sampler", "mapped"]


def fitted_sampler(
    X: Matrix, n_components: int, gamma: float | None, bandwidth: float, seed: int | None
) -> Any:
    """Draw the map from rows to random features.

    Parameters
    ----------
    X : ndarray or csr_matrix of shape (n_samples, n_features)
        Scaled training rows.
    n_components : int
        Number of random features.
    gamma : float or None
        For the kernel ``exp(-gamma ||x - x'||^2)``; None for 1 / (n_features * variance of X).
    bandwidth : float
        Width of the kernel, as a multiple of the one by `gamma`.
    seed : int or None

    Returns
    -------
    sklearn.kernel_approximation.RBFSampler
    """
    from sklearn.kernel_approximation import RBFSampler

    sampler = RBFSampler(
        gamma="scale" if gamma is None else gamma, n_components=n_components, random_state=seed
    )
    sampler.fit(X.astype(np.float64, copy=False)).random_weights_ /= bandwidth
    return sampler


def mapped(sampler: Any, X: Matrix) -> Matrix:
    """Map rows to random features, computed in float64 and stored in the type of the rows."""
    if X.dtype == np.float64:
        return sampler.transform(X)
    features = np.empty((X.shape[0], sampler.n_components), X.dtype)
    for start in range(0, X.shape[0], ROWS_AT_ONCE):
        rows = slice(start, start + ROWS_AT_ONCE)
        features[rows] = sampler.transform(X[rows].astype(np.float64))
    return features
