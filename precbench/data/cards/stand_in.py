"""Synthetic rows in place of a data set that cannot be obtained.

A stand-in has the rows, features, positives and density of the card, a linear signal and label
noise. It says nothing about the real data and never gets a verdict.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from precbench.data.cards.card import Card
from precbench.data.dataset import Arrays
from precbench.seeds import data_generator
from precbench.topk import first_rows

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix

VERSION = 1  # raise it when the numbers change: it is part of a stand-in's identity
MOST_FREQUENT = 0.9
ROWS_AT_ONCE = 4096


def generate_stand_in(card: Card) -> Arrays:
    """Generate the stand-in of a card.

    The positives are the rows with the largest ``X @ w / scale + noise``; the signal has unit
    variance, the noise the card's. Features are dense and Gaussian, some set to zero, or for a
    sparse format binary in CSR.
    """
    from precbench.data.svmlight import DENSE_ABOVE

    assert card.stand_in is not None
    rng = data_generator(f"{card.name} stand-in")
    density = card.stand_in.density
    w = rng.standard_normal(card.features)
    if card.format == "svmlight" and density <= DENSE_ABOVE:
        X = _binary(rng, card.rows, card.features, density)
        signal = X @ w
    else:
        X = rng.standard_normal((card.rows, card.features))
        if density < 1:
            X *= rng.random(X.shape, dtype=np.float32) < density
        signal = np.einsum("ij,j->i", X, w)  # unlike BLAS, bitwise identical everywhere
    scores = signal / signal.std() + card.stand_in.noise * rng.standard_normal(card.rows)
    y = np.full(card.rows, -1.0)
    y[first_rows(scores, card.positives)] = 1.0
    return Arrays(X, y)


def _binary(
    rng: np.random.Generator, n_samples: int, n_features: int, density: float
) -> csr_matrix:
    """Draw independent binary columns with frequencies that follow Zipf's law."""
    from scipy.sparse import csr_matrix, vstack

    frequency = rng.permutation(_zipf(n_features, density)).astype(np.float32)
    lengths = [min(ROWS_AT_ONCE, n_samples - i) for i in range(0, n_samples, ROWS_AT_ONCE)]
    draws = (rng.random((length, n_features), dtype=np.float32) for length in lengths)
    return vstack([csr_matrix(u < frequency, dtype=np.float64) for u in draws], format="csr")


def _zipf(n_features: int, density: float) -> NDArray[np.float64]:
    """Return ``min(MOST_FREQUENT, c / rank)`` with the mean `density`."""
    from scipy.optimize import brentq

    ranks = np.arange(1, n_features + 1)

    def excess(c: float) -> float:
        return float(np.minimum(MOST_FREQUENT, c / ranks).mean() - density)

    return np.minimum(MOST_FREQUENT, brentq(excess, 0, MOST_FREQUENT * n_features) / ranks)
