"""One side takes a number of times as long as the other, by the median over the splits."""

from typing import Any, Literal

import pandas as pd
from pydantic import PositiveFloat

from precbench.claims.evidence import WALL_SECONDS, Evidence, Outcomes
from precbench.claims.kinds.base import Claim
from precbench.claims.ledger import LedgerRow
from precbench.claims.verdicts import MIN_TIMED_SPLITS, Verdict, parse_printed

__all__ = ["RatioClaim"]


class RatioClaim(Claim):
    """One side takes a number of times as long as the other.

    Attributes
    ----------
    dataset, slower, faster : str
    read_as : float or None
        The ratio, where the paper says it in words.
    at_least : bool
        Whether a larger ratio agrees too.
    within, metric : float and str, or None and empty
        Compares the times to the first checkpoint at which a side is no worse than the worse of
        the two final values of this metric, less this; else those to the final weights.
    """

    kind: Literal["ratio"]
    dataset: str
    slower: str
    faster: str
    within: PositiveFloat | None = None
    metric: str = ""
    read_as: PositiveFloat | None = None
    at_least: bool = False

    @property
    def in_words(self) -> bool:
        """Whether the ratio was printed in words."""
        return self.read_as is not None

    @property
    def is_timed(self) -> bool:
        """It is one of times."""
        return True

    @property
    def compares_values(self) -> bool:
        """Times to an accuracy depend on what was reached in the end."""
        return self.within is not None

    @property
    def is_positive(self) -> bool:
        """A ratio of times is."""
        return True

    def judge(self, evidence: Evidence) -> LedgerRow:
        """Judge a ratio of times, by the median over the splits."""
        outcomes = self.results_in(evidence.outcomes)
        slower, faster = (outcomes.times(self.dataset, s) for s in (self.slower, self.faster))
        outcomes.refuse_different_runs(self.dataset, self.labels)
        if self.within is not None:
            slower, faster = self._times_to_accuracy(self.within, outcomes)
        ratios = (slower / faster).dropna()
        ratio = float(ratios.median())
        printed = self.read_as or parse_printed(self.printed).value
        if len(ratios) < MIN_TIMED_SPLITS:
            reason = f"needs {MIN_TIMED_SPLITS} splits that both sides have"
            return self.ledger_row(Verdict.INCONCLUSIVE, reason=reason, runs=len(ratios))
        fields: dict[str, Any] = {"measured": f"{ratio:.3g}", "runs": len(ratios)}
        if ratio >= printed if self.at_least else printed / 2 <= ratio <= printed * 2:
            return self.ledger_row(*self.judged(True), **fields)
        same = ratio > 1
        reason = f"the {'same' if same else 'other'} side is the faster"
        verdict = Verdict.TREND_ONLY if same else Verdict.NOT_REPRODUCED
        return self.ledger_row(verdict, reason=reason, **fields)

    def _times_to_accuracy(self, within: float, outcomes: Outcomes) -> tuple[pd.Series, pd.Series]:
        """Return the seconds of both sides to about the worse of the final values, by split."""
        slower, faster = (
            outcomes.curves(self.dataset, s, self.metric) for s in (self.slower, self.faster)
        )
        seconds = {}
        for split in slower.keys() & faster.keys():
            curves = slower[split], faster[split]
            target = min(curve["value"].iloc[-1] for curve in curves) - within
            seconds[split] = [c.loc[c["value"] >= target, WALL_SECONDS].iloc[0] for c in curves]
        times = pd.DataFrame.from_dict(seconds, orient="index", columns=["slower", "faster"])
        return times["slower"], times["faster"]
