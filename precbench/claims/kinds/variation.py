"""A mean that hardly varies over the points of a sweep, by t tests."""

from itertools import permutations
from typing import Annotated, Any, Literal

import numpy as np
from pydantic import Field

from precbench.claims.evidence import Evidence
from precbench.claims.kinds.base import Claim, Texts
from precbench.claims.ledger import LedgerRow
from precbench.claims.verdicts import LEVEL, MIN_SPLITS, Verdict, mean_test

__all__ = ["VariationClaim"]


class VariationClaim(Claim):
    """The mean over the splits hardly varies over the points of a sweep.

    Attributes
    ----------
    dataset, solver, metric : str
    at_most : float
        The largest relative variation that agrees.
    points : tuple of str
        Points of the sweep, as ``batch_size=500``; none means all.
    """

    kind: Literal["variation"]
    dataset: str
    solver: str
    metric: str
    at_most: Annotated[float, Field(gt=0, lt=1)]
    points: Texts = ()

    def judge(self, evidence: Evidence) -> LedgerRow:
        """Show by t tests that no point lies too far below another, or that one does."""
        outcomes = self.results_in(evidence.outcomes)
        values = outcomes.sweep(self.dataset, self.solver, self.metric, points=self.points)
        means = values.mean()
        variation = 1 - means.min() / means.max() if means.max() > 0 else np.nan
        fields: dict[str, Any] = {"measured": f"{variation:.2%}", "runs": len(values)}
        if len(values) < MIN_SPLITS:
            return self.ledger_row(
                Verdict.INCONCLUSIVE, reason=f"needs {MIN_SPLITS} splits", **fields
            )
        share = 1 - self.at_most
        above = [mean_test(values[a] - share * values[b]) for a, b in permutations(values, 2)]
        below = [mean_test(share * values[b] - values[a]) for a, b in permutations(values, 2)]
        if max(above) <= LEVEL:
            reason = f"t tests of {len(above)} pairs: p = {max(above):.2g}"
            return self.ledger_row(*self.judged(True), reason=reason, **fields)
        if min(below) * len(below) <= LEVEL:
            reason = (
                f"t test of the farthest of {len(below)} pairs: p = {min(below) * len(below):.2g}"
            )
            return self.ledger_row(*self.judged(False), reason=reason, **fields)
        reason = f"{len(values)} splits show neither less nor more than {self.at_most:.0%}"
        return self.ledger_row(Verdict.INCONCLUSIVE, reason=reason, **fields)
