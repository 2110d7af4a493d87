"""Probabilities and numbers of hits, learnt from the scores of held-out rows."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from precbench.ranking.statistics import Interval, expected_hits
from precbench.ranking.topk import HeldOut

_TOLERANCE = 0.1  # relative difference of the spreads of scores that chance explains


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

        # labels and scores of each list
        samples = [(held.y > 0, held.scores) for held in lists]
        n_pos = float(np.mean([np.count_nonzero(positive) for positive, _ in samples]))
        n_rows = float(np.mean([len(positive) for positive, _ in samples]))
        # labels, scores of all lists
        pooled = [*map(np.concatenate, zip(*samples, strict=True))]
        # Platt's smoothed labels
        one, zero = (n_pos + 1) / (n_pos + 2), 1 / (n_rows - n_pos + 2)
        curves = [
            IsotonicRegression().fit(scores, np.where(positive, one, zero))
            # all smoothed as a mean list: equal ends
            for positive, scores in [pooled, *samples]
        ]
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

    def matched(self, scores: NDArray[np.float64], own: NDArray[np.float64]) -> Self:
        """Return the curves for a model whose scores have another scale than the lists' scores.

        The curves move so that the median and interquartile range of `scores` (of the
        lists) become the median and interquartile range of `own` (scores of the model).
        """
        factor, middle = _spread(own) / _spread(scores), np.median(own)
        if not abs(factor - 1) > _TOLERANCE:  # the same scale; NaN: a spread is 0
            return self
        return replace(self, scores=(self.scores - np.median(scores)) * factor + middle)

    def probabilities(self, scores: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the probability of a hit at each score."""
        return self.curves(scores)[0]

    def expected(self, scores: NDArray[np.float64], n_rows: int) -> Interval:
        """Return the hits expected among the first rows of a list of `n_rows`, with an interval."""
        # else the last bit of a mean would depend on the order of rows
        in_order = np.sort(scores)
        return self._hits(self.curves(in_order).mean(axis=1), len(scores), n_rows)

    def unseen(self, precisions: NDArray[np.float64], k: int, n_rows: int) -> Interval:
        """Return the hits expected in the first `k` of `n_rows` rows whose scores are not known.

        `precisions`: mean probability at the top of the held-out lists by the pooled
        curve, then at the top of each list by its own curve.
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
        """Return the hits in the first `k` rows of a list of `n_rows`, with an interval."""
        pooled, *single = precisions
        # The pooled curve gives the mean; the single curves, shifted to this mean, the
        # variation.
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
        test_share, held, positives = arrays["size"].tolist()
        scores, shares = arrays["scores"], arrays["shares"]
        is_whole = (
            all(a.dtype == np.float64 and np.isfinite(a).all() for a in arrays.values())
            and scores.ndim == 1
            and shares.ndim == 2
            and len(shares) > 1  # the pooled curve, and the curve of a list or more
            and shares.shape[1] == scores.size > 0
            and (np.diff(scores) > 0).all()  # scores ascend
            and (np.diff(shares, axis=1) >= 0).all()  # no curve falls
            and ((shares >= 0) & (shares <= 1)).all()
            and 0 < test_share < 1 <= positives <= held
        )
        if not is_whole:
            raise ValueError(
                "calibration: the curves are invalid; fit and save the model again"
            )
        return cls(test_share, held, positives, scores, shares)


def _spread(scores: NDArray[np.float64]) -> float:
    """Return the interquartile range of scores, NaN in place of 0."""
    return float(np.subtract(*np.quantile(scores, [0.75, 0.25]))) or np.nan
