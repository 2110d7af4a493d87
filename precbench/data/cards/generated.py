"""Synthetic rows, of synthetic data sets and of stand-ins.

A stand-in takes the place of a data set that cannot be obtained. It has the rows,
features, positives and density of the card, a linear signal and label noise. It says
nothing about the real data and never gets a verdict.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from precbench.core.seeds import data_generator
from precbench.data.cards.card import Card
from precbench.data.dataset import Arrays
from precbench.ranking.topk import first_rows

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix

# Raise a version when the numbers change: the versions are part of a data set's
# identity.
VERSION = 2
STAND_IN_VERSION = 1
MOST_FREQUENT = 0.9  # the largest share of ones in a binary feature of a stand-in
ROWS_AT_ONCE = 4096  # drawn at a time, to save memory
NOISE = 0.5  # standard deviation in ``generator: signal``; the signal's is 1


def generate(card: Card) -> Arrays:
    """Return the rows that a synthetic card describes."""
    if card.generator == "counterexample":
        return _counterexample()
    if card.generator == "margin":
        return _with_margin(card)
    assert card.generator == "signal"
    return _with_signal(card)


def _counterexample() -> Arrays:
    """Return six points on a line; see the note of the card."""
    X = np.array([[-1.0], [-1.0], [-2.0], [-3.0], [-3.0], [-3.0]])
    return Arrays(X, np.array([1.0, 1.0, 1.0, -1.0, -1.0, -1.0]))


def _with_margin(card: Card) -> Arrays:
    """Return rows in the unit ball; a plane separates both classes by a margin gamma.

    A row is s w + z. The unit vector w, the `optimum`, is normal to the plane; the
    score s, at least gamma/2 in absolute value, has the sign of the label; z is
    orthogonal to w and uniform in the remaining ball. Then, as noise, `swapped`
    positives and as many negatives change their labels.
    """
    assert card.gamma is not None
    rng = data_generator(card.name)
    w = rng.standard_normal(card.features)
    w /= np.linalg.norm(w)
    y = np.full(card.rows, -1.0)
    y[rng.permutation(card.rows)[: card.positives]] = 1.0

    least = card.gamma / 2
    # |s| of each row, mostly near the margin; the first row of each class is at it
    size = least + (1.0 - least) * rng.random(card.rows) ** 2
    size[[np.argmax(y), np.argmin(y)]] = least
    # z is orthogonal to w. `einsum`, unlike BLAS, has the same bits anywhere.
    Z = rng.standard_normal((card.rows, card.features))
    Z -= np.outer(np.einsum("ij,j->i", Z, w), w)
    norms = np.maximum(np.linalg.norm(Z, axis=1), np.finfo(float).tiny)  # for division
    # Radius of the remaining ball, with room for rounding
    radius = 0.999 * np.sqrt(1.0 - size**2)
    # With uniform u, u^(1/d) is the radius of a uniform point in the unit ball of d
    # dimensions; orthogonal to w there are d = features - 1.
    exponent = 1 / max(card.features - 1, 1)
    # Python's power, since the last bits of NumPy's depend on the processor (AVX-512).
    radius *= [drawn**exponent for drawn in rng.random(card.rows).tolist()]
    X = np.outer(y * size, w) + Z * (radius / norms)[:, np.newaxis]
    # Rows with a swapped label stay on the side of their first label.
    negatives = np.flatnonzero(y == -1.0)
    positives = np.flatnonzero(y == 1.0)
    swapped_negatives = rng.choice(negatives, card.swapped, replace=False)
    swapped_positives = rng.choice(positives, card.swapped, replace=False)
    y[swapped_negatives] = 1.0
    y[swapped_positives] = -1.0
    return Arrays(X, y, optimum=w)


def _with_signal(card: Card) -> Arrays:
    """Return Gaussian rows; the positives are those with the most signal plus noise.

    The signal is a linear function and, for the share `non_linear` of its variance, a
    sum of squares of features and of products of neighbours, with random factors. A
    Gaussian feature correlates with no such sum, so no linear function explains that
    share.
    """
    assert card.non_linear is not None
    rng = data_generator(card.name)
    w, squares, products = rng.standard_normal((3, card.features))
    X = rng.standard_normal((card.rows, card.features))
    linear = np.einsum("ij,j->i", X, w)  # unlike BLAS, bitwise identical everywhere
    curved = np.einsum("ij,j->i", X**2, squares / np.sqrt(2))  # a square has variance 2
    curved += np.einsum("ij,j->i", X * np.roll(X, 1, axis=1), products)
    score = NOISE * rng.standard_normal(card.rows)
    # Each term has the variance of its share.
    score += np.sqrt(1 - card.non_linear) * linear / linear.std()
    score += np.sqrt(card.non_linear) * curved / curved.std()
    y = np.full(card.rows, -1.0)
    y[first_rows(score, card.positives)] = 1.0
    return Arrays(X, y)


# --- stand-ins ---


def generate_stand_in(card: Card) -> Arrays:
    """Return the rows of the stand-in of a card.

    The positives are the rows with the largest ``X @ w / scale + noise``; the signal
    has unit variance, the noise the standard deviation on the card. Features are dense
    and Gaussian, some set to zero, or for a sparse format binary in CSR.
    """
    from precbench.data.svmlight import DENSE_ABOVE

    assert card.stand_in is not None
    rng = data_generator(f"{card.name} stand-in")
    density = card.stand_in.density
    w = rng.standard_normal(card.features)
    is_sparse = card.format == "svmlight" and density <= DENSE_ABOVE
    if is_sparse:
        X = _binary(rng, card.rows, card.features, density)
        signal = X @ w
    else:
        X = rng.standard_normal((card.rows, card.features))
        if density < 1:
            is_kept = rng.random(X.shape, dtype=np.float32) < density
            X *= is_kept  # the other values become zero
        signal = np.einsum("ij,j->i", X, w)  # unlike BLAS, bitwise identical everywhere
    noise = rng.standard_normal(card.rows)
    scores = signal / signal.std() + card.stand_in.noise * noise
    y = np.full(card.rows, -1.0)
    y[first_rows(scores, card.positives)] = 1.0
    return Arrays(X, y)


def _binary(
    rng: np.random.Generator, n_rows: int, n_features: int, density: float
) -> csr_matrix:
    """Return independent binary columns with Zipf's frequencies, of mean `density`."""
    from scipy.sparse import csr_matrix, vstack

    frequency = rng.permutation(_zipf(n_features, density)).astype(np.float32)
    blocks = []
    for start in range(0, n_rows, ROWS_AT_ONCE):
        shape = (min(ROWS_AT_ONCE, n_rows - start), n_features)
        is_one = rng.random(shape, dtype=np.float32) < frequency
        blocks.append(csr_matrix(is_one, dtype=np.float64))
    return vstack(blocks, format="csr")


def _zipf(n_features: int, density: float) -> NDArray[np.float64]:
    """Return frequencies min(MOST_FREQUENT, c / rank) whose mean is `density`."""
    from scipy.optimize import brentq

    ranks = np.arange(1, n_features + 1)

    def frequencies(c: float) -> NDArray[np.float64]:
        return np.minimum(MOST_FREQUENT, c / ranks)

    def excess(c: float) -> float:
        return frequencies(c).mean() - density

    largest_c = MOST_FREQUENT * n_features  # makes all frequencies `MOST_FREQUENT`
    return frequencies(brentq(excess, 0, largest_c))
