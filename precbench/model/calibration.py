"""Probabilities of hits by score, learnt from the scores of rows that were not fitted to."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, logit

from precbench.statistics import Interval, expected_hits
from precbench.topk import HeldOut

__all__ = ["Calibration"]

_FEWEST = 500  # positives in each list, for isotonic regression: with fewer it flatters the top


@dataclass(frozen=True, eq=False)
class Calibration:
    """A curve of each held-out list, isotonic or logistic; the probability is their mean.

    Attributes
    ----------
    scores, shares : ndarray of shape (n,) and (n_splits, n), or None
        Isotonic: probabilities at scores in ascending order, linear in between.
    slope, intercept : ndarray of shape (n_splits,), or None
        Logistic: of the log odds.
    test_share : float
        Share of the rows in a held-out list.
    held, positives : float
        Rows of such a list, and positives among them, on average.
    """

    test_share: float
    held: float
    positives: float
    scores: NDArray[np.float64] | None = None
    shares: NDArray[np.float64] | None = None
    slope: NDArray[np.float64] | None = None
    intercept: NDArray[np.float64] | None = None

    @classmethod
    def fit(cls, lists: Sequence[HeldOut], test_share: float) -> Self:
        """Fit curves to held-out lists: isotonic with 500 positives in each, else logistic.

        Parameters
        ----------
        lists : sequence of HeldOut
            Each with both classes.
        test_share : float

        References
        ----------
        Platt, "Probabilistic outputs for support vector machines", 1999, whose targets the logistic
        curves have; Niculescu-Mizil, Caruana, "Predicting good probabilities with supervised
        learning", ICML 2005.
        """
        n_pos = [np.count_nonzero(held.y > 0) for held in lists]
        sizes: dict[str, Any] = {
            "test_share": test_share,
            "held": float(np.mean([len(held.y) for held in lists])),
            "positives": float(np.mean(n_pos)),
        }
        if min(n_pos) < _FEWEST:
            slope, intercept = np.transpose([_logistic(held.y > 0, held.scores) for held in lists])
            return cls(slope=slope, intercept=intercept, **sizes)
        from sklearn.isotonic import IsotonicRegression

        curves = [IsotonicRegression().fit(held.scores, held.y > 0) for held in lists]
        scores = np.unique(np.concatenate([curve.X_thresholds_ for curve in curves]))
        return cls(
            scores=scores,
            shares=np.array([np.interp(scores, c.X_thresholds_, c.y_thresholds_) for c in curves]),
            **sizes,
        )

    def probabilities(self, scores: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the probability of a hit at each score."""
        curves = [*self._curves(scores)]
        return np.asarray(sum(curves)) / len(curves)

    def expected(self, scores: NDArray[np.float64], n_rows: int) -> Interval:
        """Return the sum of the probabilities of a list, with the interval of its hits.

        Parameters
        ----------
        scores : ndarray of shape (n,)
            Of the first rows of a list, at least one.
        n_rows : int
            Of the whole list.
        """
        precisions = [float(curve.mean()) for curve in self._curves(scores)]
        # A curve knows of the first rows from others, too: of as many as there are positives.
        tested = max(self.held * len(scores) / n_rows, self.positives)
        return expected_hits(precisions, tested, self.test_share, len(scores))

    def _curves(self, scores: NDArray[np.float64]) -> Iterator[NDArray[np.float64]]:
        if self.slope is not None and self.intercept is not None:
            for slope, intercept in zip(self.slope, self.intercept, strict=True):
                yield expit(slope * scores + intercept)
        else:
            assert self.scores is not None and self.shares is not None
            yield from (np.interp(scores, self.scores, shares) for shares in self.shares)

    def to_arrays(self) -> dict[str, NDArray[Any]]:
        """Return the arrays that a saved model must carry."""
        curves = {n: a for n, a in vars(self).items() if isinstance(a, np.ndarray)}
        return {"size": np.array([self.test_share, self.held, self.positives]), **curves}

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, NDArray[Any]]) -> Self:
        """Rebuild from the arrays of an untrusted file.

        Raises
        ------
        KeyError, TypeError, ValueError
            If an array is missing, of another type or shape, or out of range.
        """
        curves = dict(arrays)
        test_share, held, positives = curves.pop("size").tolist()
        is_whole = all(a.dtype == np.float64 and np.isfinite(a).all() for a in arrays.values())
        if curves.keys() == {"slope", "intercept"}:
            x, y, rising = curves["slope"], curves["intercept"], curves["slope"]
        else:
            x, y = curves["scores"], curves["shares"]
            rising = np.append(np.diff(y, axis=1), 0)
            is_whole &= (
                len(arrays) == 3
                and y.ndim == 2
                and len(y) > 0
                and bool((np.diff(x) > 0).all())
                and bool(((y >= 0) & (y <= 1)).all())
            )
        has_shape = x.ndim == 1 and x.size > 0 and y.shape[-1:] == x.shape
        has_sizes = 0 < test_share < 1 <= positives <= held
        if not (is_whole and has_shape and has_sizes and (rising >= 0).all()):
            raise ValueError("the curves of probabilities do not fit together")
        return cls(test_share, held, positives, **curves)


def _logistic(positive: NDArray[np.bool_], scores: NDArray[np.float64]) -> tuple[float, float]:
    """Return slope and intercept of the log odds; the slope is not negative."""
    from sklearn.linear_model import LogisticRegression

    n_pos, n = int(np.count_nonzero(positive)), len(scores)
    base, spread = float(logit((n_pos + 1) / (n + 2))), float(scores.std())
    if not spread > 0:
        return 0.0, base
    target = np.where(positive, (n_pos + 1) / (n_pos + 2), 1 / (n - n_pos + 2))
    scaled = np.tile((scores - scores.mean()) / spread, 2)[:, None]
    both = np.repeat([1, 0], n)
    curve = LogisticRegression(C=np.inf, max_iter=1000, tol=1e-8).fit(
        scaled, both, sample_weight=np.concatenate([target, 1 - target])
    )
    slope = float(curve.coef_[0, 0]) / spread
    if slope <= 0:  # of a ranking no better than chance
        return 0.0, base
    return slope, float(curve.intercept_[0]) - slope * float(scores.mean())
