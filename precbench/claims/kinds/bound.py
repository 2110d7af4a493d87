"""Values of a study that lie below others."""

from typing import Any, ClassVar, Literal

import numpy as np
from pydantic import AliasChoices, Field

from precbench.claims.evidence import Evidence
from precbench.claims.kinds.base import Claim, Selection
from precbench.claims.ledger import LedgerRow
from precbench.claims.verdicts import MIN_INFORMATIVE, Verdict

__all__ = ["BoundClaim"]


class BoundClaim(Claim):
    """Some values of a study lie below others: a theorem, or an order of curves.

    Attributes
    ----------
    cell, by : dict
        Select the values on the left and those on the right. A value on the left is compared with
        the one that equals it in all other columns, or with the only one on the right.
    trivial : dict or None
        Selects in the same way the values of what does not obey the claim: the trivial model w = 0,
        which learns nothing, or a control. A bound above them can hardly fail; unless half of the
        bounds or more lie below, they decide nothing. Without it, 0 against 0 decides nothing.
    factor, margin : float
        The claim is ``left <= factor * right + margin``.
    open_constant : bool
        The paper leaves a constant open, so that a bound with our choice can be too small, and one
        that holds is a trend only.
    """

    reads_study: ClassVar[bool] = True

    kind: Literal["bound"]
    cell: Selection
    by: Selection
    trivial: Selection | None = Field(None, validation_alias=AliasChoices("trivial", "idle"))
    factor: float = 1.0
    margin: float = 0.0
    open_constant: bool = False

    def judge(self, evidence: Evidence) -> LedgerRow:
        """Judge that values lie below others."""
        table = self.results_in(evidence.values)
        values = self.selected(table, self.cell)["value"].to_numpy()
        right = self.counterparts(table, self.cell, self.by)
        bounds = self.factor * right + self.margin
        holds = values <= bounds
        measured = f"{values[0]:.4g} against {right[0]:.4g}"
        if len(holds) > 1:
            with np.errstate(divide="ignore", invalid="ignore"):
                shares = values / right
            measured = f"holds in {holds.sum()} of {len(holds)}, "
            if np.isfinite(shares).all():
                measured += f"ratio {shares.min():.3g} to {shares.max():.3g}"
            else:
                measured += f"excess {(values - right).min():.3g} to {(values - right).max():.3g}"
        fields: dict[str, Any] = {"measured": measured, "runs": len(holds)}
        if not holds.all():
            if self.open_constant:
                reason = "the constant is open, and ours does not suffice, which refutes nothing"
                return self.ledger_row(Verdict.INCONCLUSIVE, reason=reason, **fields)
            return self.ledger_row(*self.judged(False), **fields)
        if self.trivial is None:
            informative = (values != 0) | (right != 0)
            said = "compare more than 0 with 0"
        else:
            informative = bounds < self.counterparts(table, self.cell, self.trivial)
            said = "lie below what does not obey the claim"
            fields["reason"] = f"{informative.sum()} of {len(holds)} bounds {said}"
        if informative.mean() < MIN_INFORMATIVE:
            reason = f"{informative.sum()} of {len(holds)} bounds {said}, fewer than half"
            return self.ledger_row(Verdict.NO_POWER, **fields | {"reason": reason})
        if self.open_constant:
            reason = "it holds with the constant 1, but the constant is open"
            return self.ledger_row(Verdict.TREND_ONLY, **fields | {"reason": reason})
        return self.ledger_row(*self.judged(True), **fields)
