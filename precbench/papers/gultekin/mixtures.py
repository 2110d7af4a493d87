"""Two classes that are Gaussian mixtures, and exact risks of linear rankers."""

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
    """Two classes of mixtures of Gaussians with the covariance ``sigma**2 I``."""

    components: Count
    sigma: PositiveFloat


@dataclass(frozen=True, eq=False)
class MixturePair:
    """Mixtures of negatives and of positives, with equal weights and one covariance.

    The density of a class is sum_k c_k N(x; mu_k, covariance), which is (24) with a
    covariance of ``sigma**2 I`` (the constant that is printed there lacks a power D).
    Below x1 is a positive, x0 a negative, drawn independently, and z = x1 - x0.
    """

    weights: NDArray[np.float64]  # c_k
    means: NDArray[np.float64]  # mu_k: of the negatives (0) and of the positives (1)
    covariance: NDArray[np.float64]

    @cached_property
    def mean(self) -> NDArray[np.float64]:  # E[z]
        return np.einsum("k,kj->j", self.weights, self.means[1] - self.means[0])

    @cached_property
    def second(self) -> NDArray[np.float64]:  # E[z z']
        # For x1 of component k and x0 of component l, z is N(gap, 2 covariance), with
        # E[z z'] = 2 covariance + gap gap'.
        of_centres = np.einsum("kli,klj,kl->ij", self._gaps, self._gaps, self._shares)
        return 2 * self.covariance + of_centres

    @cached_property
    def _gaps(self) -> NDArray[np.float64]:
        # by component of x1, component of x0, and feature: the difference of means
        return self.means[1][:, np.newaxis] - self.means[0]

    @cached_property
    def _shares(self) -> NDArray[np.float64]:
        # by component of x1 and component of x0: the share of such pairs
        return np.outer(self.weights, self.weights)

    @cached_property
    def _root(self) -> NDArray[np.float64]:
        return cholesky(self.covariance, lower=True)  # covariance: _root _root'

    def risk(self, w: ArrayLike) -> float:
        """Return the mean of the loss (3), ``(1 - w'z)^2 / 2``, by the moments of z."""
        w = np.asarray(w, dtype=np.float64)
        # 1/2 + w' E[z z'] w / 2 - E[z]' w
        return float(0.5 + w @ self.second @ w / 2 - self.mean @ w)

    def auc(self, w: ArrayLike) -> float:
        """Return the probability that ``w'x1 > w'x0``, a tie counting one half."""
        w = np.asarray(w, dtype=np.float64)
        # In a pair of components w'z is N(w'gap, deviation^2), and P(w'z > 0) is
        # Phi(w'gap / deviation); the AUC is the mean of this over the pairs.
        deviation = float(np.sqrt(2 * w @ self.covariance @ w))
        if deviation == 0:  # w = 0
            return 0.5
        return float(np.sum(self._shares * ndtr(self._gaps @ w / deviation)))

    def log_likelihood_ratio(self, X: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return log(density of positives / density of negatives) of each row.

        No scores have a larger AUC (Neyman and Pearson).
        """
        # rows scaled to the covariance I
        white = solve_triangular(self._root, X.T, lower=True)
        logs = []  # of the density of each class, without common terms
        for means in self.means:
            centres = solve_triangular(self._root, means.T, lower=True)
            # The term ||x||^2 / 2 cancels in the ratio and is left out.
            exponents = white.T @ centres - np.sum(centres**2, axis=0) / 2
            logs.append(logsumexp(exponents, axis=1, b=self.weights))
        return logs[1] - logs[0]  # positives less negatives

    def largest_auc(self, n: int, rng: np.random.Generator) -> float:
        """Estimate the AUC of the likelihood ratio, from n rows of each class."""
        # The AUC of the linear ranker w = ``covariance^-1 mean`` is known in closed
        # form. Only the difference of the two AUCs is estimated, which has less noise
        # (a control variate).
        X, y = self.sample(n, n, rng)
        w = np.linalg.solve(self.covariance, self.mean)
        best = _shares_below(self.log_likelihood_ratio(X), y)
        linear = _shares_below(X @ w, y)
        return self.auc(w) + float(np.mean(best - linear))

    def sample(
        self, n_pos: int, n_neg: int, rng: np.random.Generator
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Draw rows and their labels 1 and -1, the positives first."""
        means_of_neg, means_of_pos = self.means
        parts = []
        for means, n in ((means_of_pos, n_pos), (means_of_neg, n_neg)):
            component_of_row = rng.choice(len(self.weights), size=n, p=self.weights)
            noise = rng.standard_normal((n, len(self.covariance)))
            parts.append(means[component_of_row] + noise @ self._root.T)
        return np.concatenate(parts), np.repeat([1.0, -1.0], [n_pos, n_neg])


def _shares_below(
    scores: NDArray[np.float64], y: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Return by positive the share of the negatives below it, a tie counting one half.

    The mean of these shares is the AUC.
    """
    pos = scores[y > 0]
    neg = np.sort(scores[y < 0])
    # each count, of negatives below and of negatives not above, counts half
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
    """Draw a pair of mixtures of components of equal weight (Section 5.1)."""
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
        weights=np.full(n_components, 1 / n_components),
        means=means,
        covariance=sigma**2 * covariance,
    )
