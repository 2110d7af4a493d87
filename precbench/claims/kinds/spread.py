"""A mean over the splits that is sure to within so much."""

from typing import Any, Literal

import numpy as np
from pydantic import PositiveFloat

from precbench.claims.evidence import Evidence
from precbench.claims.kinds.base import MeasuredClaim
from precbench.claims.ledger import LedgerRow
from precbench.claims.verdicts import MIN_SPLITS, Verdict

__all__ = ["SpreadClaim"]


class SpreadClaim(MeasuredClaim):
    """A mean over the splits that is sure to within so much.

    Attributes
    ----------
    solver : str
        Label in the results.
    at_most : float
        The largest standard error of the mean that agrees.
    """

    kind: Literal["spread"]
    solver: str
    at_most: PositiveFloat

    def judge(self, evidence: Evidence) -> LedgerRow:
        """Judge how sure a mean is."""
        outcomes = self.results_in(evidence.outcomes)
        values = outcomes.values(self.dataset, self.solver, self.metric, self.part, self.checkpoint)
        error = float(values.std() / np.sqrt(len(values)))
        fields: dict[str, Any] = {"measured": f"{error:.3g}", "runs": len(values)}
        if len(values) < MIN_SPLITS or not np.isfinite(error):
            return self.ledger_row(
                Verdict.INCONCLUSIVE, reason=f"needs {MIN_SPLITS} splits", **fields
            )
        return self.ledger_row(*self.judged(error <= self.at_most), **fields)
