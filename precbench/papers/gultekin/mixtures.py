"""Two classes that are Gaussian mixtures.

Their moments, and exact risks of linear rankers.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike, NDArray
from pydantic import PositiveFloat
from scipy.linalg import cholesky, solve_triangular
from scipy.special import logsumexp, ndtr

from precbench.core.studies import Count
from precbench.core.yaml.models import Section


class MixtureProblem(Section):
    """Two classes of Gaussian mixtures.

    Each component has the covariance ``sigma**2 I``.
    """

    components: Count
    sigma: PositiveFloat


@dataclass(frozen=True, eq=False)
class MixturePair:
    """Gaussian mixtures of negatives and of positives, with the same weights and one covariance."""

    # `means` (2, n_components, n_features) are those of the negatives, then of the
    # positives. Below x1 is a positive and x0 a negative, drawn independently; `mean`
    # is the mean of z = x1 - x0, `second` that of z z'. In (24) the covariance is
    # ``sigma**2 I``; the constant lacks a power D.

    weights: NDArray[np.float64]
    means: NDArray[np.float64]
    covariance: NDArray[np.float64]

    @cached_property
    def mean(self) -> NDArray[np.float64]:
        return np.einsum("k,kj->j", self.weights, self.means[1] - self.means[0])

    @cached_property
    def second(self) -> NDArray[np.float64]:
        of_centres = np.einsum("kli,klj,kl->ij", self._gaps, self._gaps, self._shares)
        # z in a pair of components: N(gap, 2 covariance)
        return 2 * self.covariance + of_centres

    @cached_property
    def _gaps(self) -> NDArray[np.float64]:
        # by component of positives, of negatives, and feature
        return self.means[1][:, np.newaxis] - self.means[0]

    @cached_property
    def _shares(self) -> NDArray[np.float64]:
        # of the pairs of components, as in `_gaps`
        return np.outer(self.weights, self.weights)

    @cached_property
    def _root(self) -> NDArray[np.float64]:
        return cholesky(self.covariance, lower=True)  # covariance: _root _root'

    def risk(self, w: ArrayLike) -> float:
        """Return the expected pairwise squared loss, ``1/2 + w' second w / 2 - mean' w``."""
        w = np.asarray(w, dtype=np.float64)
        # mean of (1 - w'z)^2 / 2
        return float(0.5 + w @ self.second @ w / 2 - self.mean @ w)

    def auc(self, w: ArrayLike) -> float:
        """Return the probability that ``w'x1 > w'x0``, a tie counting one half, in closed form."""
        w = np.asarray(w, dtype=np.float64)
        # of w'z in a pair of components
        deviation = float(np.sqrt(2 * w @ self.covariance @ w))
        if deviation == 0:  # w = 0
            return 0.5
        # Over pairs of components, weighted by `_shares`; `_gaps` are the differences
        # of means.
        return float(np.sum(self._shares * ndtr(self._gaps @ w / deviation)))

    def log_likelihood_ratio(self, X: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return log(density of positives / density of negatives), scores of the largest AUC."""
        # rows scaled to the covariance I
        white = solve_triangular(self._root, X.T, lower=True)
        logs = []  # of the density of each class, without common terms
        for means in self.means:  # of the negatives, then of the positives
            centres = solve_triangular(self._root, means.T, lower=True)
            # The term ||x||^2 / 2 cancels in the ratio and is left out.
            exponents = white.T @ centres - np.sum(centres**2, axis=0) / 2
            logs.append(logsumexp(exponents, axis=1, b=self.weights))
        return logs[1] - logs[0]  # positives less negatives

    def largest_auc(self, n: int, rng: np.random.Generator) -> float:
        """Estimate the largest AUC, which the likelihood ratio has, from n rows of each class."""
        # The AUC of the linear ranker w = ``covariance^-1 mean`` is known in closed
        # form. Only the difference of the two AUCs is estimated, which has less noise
        # (a control variate).
        X, y = self.sample(n, n, rng)
        w = np.linalg.solve(self.covariance, self.mean)
        # For each positive the share of the negatives with a lower score; the mean is
        # the AUC.
        best, linear = (
            _shares_below(s, y) for s in (self.log_likelihood_ratio(X), X @ w)
        )
        return self.auc(w) + float(np.mean(best - linear))

    def sample(
        self, n_pos: int, n_neg: int, rng: np.random.Generator
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Draw rows and their labels 1 and -1, the positives first."""
        parts = []
        # means[1]: positives
        for means, n in ((self.means[1], n_pos), (self.means[0], n_neg)):
            # of each row
            components = rng.choice(len(self.weights), size=n, p=self.weights)
            noise = rng.standard_normal((n, len(self.covariance)))
            parts.append(means[components] + noise @ self._root.T)
        return np.concatenate(parts), np.repeat([1.0, -1.0], [n_pos, n_neg])


def _shares_below(
    scores: NDArray[np.float64], y: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Return the share of the negatives that lies below each positive.

    A tie counts one half.
    """
    pos, neg = scores[y > 0], np.sort(scores[y < 0])
    below = np.searchsorted(neg, pos, "left") + np.searchsorted(neg, pos, "right")
    return below / (2 * len(neg))


def draw_mixture_pair(
    n_components: int,
    sigma: float,
    n_features: int,
    rng: np.random.Generator,
    *,
    eccentricity: float = 0.0,
) -> MixturePair:
    """Draw a pair of mixtures of components of equal weight (Gultekin and Paisley, Section 5.1)."""
    # Features of the means of positives are uniform in [0, 1], those of negatives in
    # [-1, 0]; the means do not depend on `sigma` and `eccentricity`. The paper has no
    # eccentricity. With an e in (0, 1) the covariance has random axes, and the
    # variances along them are drawn uniformly between 1 - e and 1 + e, then scaled to
    # have the mean ``sigma**2``.
    means = rng.random((2, n_components, n_features))
    means[0] *= -1  # the negatives
    covariance = np.eye(n_features)
    if eccentricity:
        variances = 1 + eccentricity * rng.uniform(-1, 1, n_features)
        # random rotation
        axes, _ = np.linalg.qr(rng.standard_normal((n_features, n_features)))
        covariance = (axes * (variances / variances.mean())) @ axes.T
    return MixturePair(
        np.full(n_components, 1 / n_components), means, sigma**2 * covariance
    )
