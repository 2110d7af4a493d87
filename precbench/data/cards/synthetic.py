"""Generators of data: a counterexample, rows with a known margin, and a signal with noise."""

from __future__ import annotations

import numpy as np

from precbench.data.cards.card import Card
from precbench.data.dataset import Arrays
from precbench.seeds import data_generator
from precbench.topk import first_rows

VERSION = 2  # raise it when the numbers change: it is part of a data set's identity
NOISE = 0.5  # standard deviation of the noise of ``generator: signal``, the signal having 1


def generate(card: Card) -> Arrays:
    """Generate the rows of a synthetic card, with `optimum` for ``generator: margin``."""
    if card.generator == "counterexample":
        X = np.array([[-1.0], [-1.0], [-2.0], [-3.0], [-3.0], [-3.0]])
        return Arrays(X, np.array([1.0, 1.0, 1.0, -1.0, -1.0, -1.0]))
    return _with_margin(card) if card.generator == "margin" else _with_signal(card)


def _with_margin(card: Card) -> Arrays:
    """Generate rows of the unit ball with min positive - max negative score = gamma along a vector.

    A row is s w + z: the score s is at least gamma/2 in absolute value, its sign is the label, and
    z is orthogonal to w and uniform in the remaining ball. Then, as noise, a number of positives
    and as many negatives swap their labels.
    """
    assert card.gamma is not None
    rng = data_generator(card.name)
    w = rng.standard_normal(card.features)
    w /= np.linalg.norm(w)
    y = np.full(card.rows, -1.0)
    y[rng.permutation(card.rows)[: card.positives]] = 1.0

    least = card.gamma / 2
    size = least + (1.0 - least) * rng.random(card.rows) ** 2
    size[[np.argmax(y), np.argmin(y)]] = least  # one row of each class at the margin
    Z = rng.standard_normal((card.rows, card.features))
    Z -= np.outer(np.einsum("ij,j->i", Z, w), w)
    norms = np.maximum(np.linalg.norm(Z, axis=1), np.finfo(float).tiny)
    radius = 0.999 * np.sqrt(1.0 - size**2)
    share = 1 / max(card.features - 1, 1)
    # Python's power: the bits of NumPy's depend on AVX-512.
    radius *= [drawn**share for drawn in rng.random(card.rows).tolist()]
    X = np.outer(y * size, w) + Z * (radius / norms)[:, np.newaxis]
    noisy = [rng.choice(np.flatnonzero(y == c), card.swapped, replace=False) for c in (-1.0, 1.0)]
    y[np.concatenate(noisy)] *= -1
    return Arrays(X, y, optimum=w)


def _with_signal(card: Card) -> Arrays:
    """Generate Gaussian features; the positives are the rows with the most signal plus noise.

    The signal is a linear function and, for the share `non_linear` of its variance, a sum of
    squares of features and of products of neighbours, with random factors. A Gaussian feature
    correlates with neither.
    """
    assert card.non_linear is not None
    rng = data_generator(card.name)
    w, squares, products = rng.standard_normal((3, card.features))
    X = rng.standard_normal((card.rows, card.features))
    linear = np.einsum("ij,j->i", X, w)  # unlike BLAS, bitwise identical everywhere
    curved = np.einsum("ij,j->i", X**2, squares / np.sqrt(2))
    curved += np.einsum("ij,j->i", X * np.roll(X, 1, axis=1), products)
    score = NOISE * rng.standard_normal(card.rows)
    for share, part in ((1 - card.non_linear, linear), (card.non_linear, curved)):
        score += np.sqrt(share) * part / part.std()
    y = np.full(card.rows, -1.0)
    y[first_rows(score, card.positives)] = 1.0
    return Arrays(X, y)
