"""Probabilities and numbers of hits, learnt from the scores of held-out rows."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from precbench.ranking.statistics import Interval, expected_hits
from precbench.ranking.topk import HeldOut

# Relative difference of the spreads of scores that chance explains (chosen).
_TOLERANCE = 0.1


@dataclass(frozen=True, eq=False)
class Calibration:
    """Isotonic curves from scores to probabilities, linear between the given scores.

    The first curve, of all held-out lists together, gives the probabilities. The curves
    of single lists show how uncertain these probabilities are.

    Attributes
    ----------
    test_share : float
        Share of the rows in a held-out list.
    held, positives : float
        Rows of a held-out list, and positives among these rows, on average.
    scores : ndarray of shape (n,)
        Scores at which the curves bend, in ascending order.
    shares : ndarray of shape (1 + n_splits, n)
        Probability at each of the `scores`, by curve.
    """

    test_share: float
    held: float
    positives: float
    scores: NDArray[np.float64]
    shares: NDArray[np.float64]

    @classmethod
    def fit(cls, lists: Sequence[HeldOut], test_share: float) -> Self:
        """Fit curves to held-out lists, each with both classes.

        Isotonic curves (Zadrozny and Elkan, KDD 2002); smoothed labels (Platt, 1999)
        avoid 0 and 1.
        """
        from sklearn.isotonic import IsotonicRegression

        hits = [held.y > 0 for held in lists]
        scores = [held.scores for held in lists]
        n_pos = float(np.mean([np.count_nonzero(is_hit) for is_hit in hits]))
        n_rows = float(np.mean([len(is_hit) for is_hit in hits]))
        # Platt's smoothed labels. All lists, and the pooled one, are smoothed as a list
        # of mean length, so that all curves end at the same probabilities.
        label_of_hit = (n_pos + 1) / (n_pos + 2)
        label_of_miss = 1 / (n_rows - n_pos + 2)

        def fit_curve(scores: NDArray[np.float64], is_hit: NDArray[np.bool_]) -> Any:
            smoothed = np.where(is_hit, label_of_hit, label_of_miss)
            return IsotonicRegression().fit(scores, smoothed)

        pooled = fit_curve(np.concatenate(scores), np.concatenate(hits))
        curves = [pooled, *map(fit_curve, scores, hits)]
        # The scores at which any of the curves bends: all curves are linear in between.
        knots = np.unique(np.concatenate([curve.X_thresholds_ for curve in curves]))
        shares = [
            np.interp(knots, curve.X_thresholds_, curve.y_thresholds_)
            for curve in curves
        ]
        return cls(
            test_share,
            held=n_rows,
            positives=n_pos,
            scores=knots,
            shares=np.array(shares),
        )

    def matched(
        self, of_lists: NDArray[np.float64], of_model: NDArray[np.float64]
    ) -> Self:
        """Return the curves for a model whose scores have another scale.

        The curves move so that the median and the interquartile range of the lists'
        scores become those of the model's scores.
        """
        factor = _spread(of_model) / _spread(of_lists)
        # If a spread is 0, the factor is NaN: no scale is known.
        if np.isnan(factor) or abs(factor - 1) <= _TOLERANCE:
            return self
        centred = self.scores - np.median(of_lists)
        return replace(self, scores=centred * factor + np.median(of_model))

    def probabilities(self, scores: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the probability of a hit at each score."""
        return self.curves(scores)[0]

    def expected(self, scores: NDArray[np.float64], n_rows: int) -> Interval:
        """Return the hits expected among the first of `n_rows` rows.

        These first rows have the `scores`.
        """
        # Sorted, as the last bit of a mean depends on the order of rows.
        in_order = np.sort(scores)
        return self._hits(self.curves(in_order).mean(axis=1), len(scores), n_rows)

    def unseen(self, precisions: NDArray[np.float64], k: int, n_rows: int) -> Interval:
        """Return the hits expected in the first `k` of `n_rows` rows not scored yet.

        The first of `precisions` is the mean probability at the top of the held-out
        lists by the pooled curve, the others are those of each list by its own curve.
        """
        return self._hits(precisions, k, n_rows, share_of_lists=self.held / n_rows)

    def _hits(
        self,
        precisions: NDArray[np.float64],
        k: int,
        n_rows: int,
        *,
        share_of_lists: float = 0.0,
    ) -> Interval:
        """Return the hits expected in the first `k` rows of a list of `n_rows`.

        The interval allows for `share_of_lists`, see `expected_hits`.
        """
        pooled, *single = precisions
        # The pooled curve gives the mean; the single curves, shifted to this mean, give
        # the variation.
        centred = np.clip(single - np.mean(single) + pooled, 0, 1)
        # Rows on which the precision was in effect measured: the share k / n_rows of a
        # held-out list, but at least the number of its positives, since a curve smooths
        # over neighbours.
        tested = max(self.held * k / n_rows, self.positives)
        hits = expected_hits(
            centred, tested, self.test_share, k, share_of_lists=share_of_lists
        )
        return hits._replace(mean=float(k * pooled))

    def curves(self, scores: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the probability of a hit at each score, a row for each curve."""
        return np.array(
            [np.interp(scores, self.scores, shares) for shares in self.shares]
        )

    def to_arrays(self) -> dict[str, NDArray[Any]]:
        sizes = np.array([self.test_share, self.held, self.positives])
        return {"size": sizes, "scores": self.scores, "shares": self.shares}

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, NDArray[Any]]) -> Self:
        """Rebuild from untrusted arrays; raise an error if they do not fit together."""
        for name, array in arrays.items():
            _require(array.dtype == np.float64, f"{name} are not of float64")
            _require(bool(np.isfinite(array).all()), f"{name} are not finite")
        test_share, held, positives = arrays["size"].tolist()
        _require(0 < test_share < 1, "the share of held-out rows is not in (0, 1)")
        _require(1 <= positives <= held, "a held-out list has too few rows")
        scores = arrays["scores"]
        _require(scores.ndim == 1, "scores are no vector")
        _require(scores.size > 0, "there are no scores")
        _require(bool((np.diff(scores) > 0).all()), "scores do not ascend")
        shares = arrays["shares"]
        _require(shares.ndim == 2, "shares are no matrix")
        _require(shares.shape[1] == scores.size, "shares do not fit scores")
        _require(len(shares) > 1, "only the pooled curve is there, and no list's")
        _require(bool((shares >= 0).all()), "a share is below 0")
        _require(bool((shares <= 1).all()), "a share is above 1")
        _require(bool((np.diff(shares, axis=1) >= 0).all()), "a curve falls")
        return cls(test_share, held, positives, scores, shares)


def _require(holds: bool, fault: str) -> None:
    if not holds:
        raise ValueError(f"calibration: {fault}; fit and save the model again")


def _spread(scores: NDArray[np.float64]) -> float:
    """Return the interquartile range of scores, NaN in place of 0."""
    upper, lower = np.quantile(scores, [0.75, 0.25])
    return float(upper - lower) or np.nan
