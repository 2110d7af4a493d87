"""Values of a study that lie below others."""

from typing import Any, ClassVar, Literal

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from pydantic import AliasChoices, Field

from precbench.claims.evidence import Evidence
from precbench.claims.kinds.base import Claim, Selection
from precbench.claims.ledger import LedgerRow
from precbench.claims.verdicts import Verdict
from precbench.errors import InputError

__all__ = ["BoundClaim"]


class BoundClaim(Claim):
    """Some values of a study lie below others: a theorem, or an order of curves.

    Attributes
    ----------
    cell, by : dict
        Select the values on the left and those on the right. A value on the left is compared with
        the one that equals it in all other columns, or with the only one on the right.
    trivial : dict or None
        Selects in the same way the values of the trivial model w = 0, which learns nothing. A bound
        above them holds for any method that learns; where all bounds are, they decide nothing.
    factor, margin : float
        The claim is ``left <= factor * right + margin``.
    open_constant : bool
        The paper leaves a constant open, so that a bound with our choice can be too small.
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
        left = self.selected(table, self.cell)
        values, right = left["value"].to_numpy(), self._counterparts(table, left, self.by)
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
        everywhere = bool(holds.all())
        if not everywhere:
            if self.open_constant:
                reason = "the constant is open, and ours does not suffice, which refutes nothing"
                return self.ledger_row(Verdict.INCONCLUSIVE, reason=reason, **fields)
        elif self.trivial is not None:
            decisive = int(np.sum(bounds < self._counterparts(table, left, self.trivial)))
            if not decisive:
                reason = "every bound lies above the value of w = 0"
                return self.ledger_row(Verdict.NO_POWER, reason=reason, **fields)
            fields["reason"] = f"{decisive} of the bounds lie below the value of w = 0"
        return self.ledger_row(*self.judged(everywhere), **fields)

    def _counterparts(self, table: pd.DataFrame, left: pd.DataFrame, cell: Selection) -> NDArray:
        """Return the value that each value on the left is compared with."""
        right = self.selected(table, cell)
        if len(right) == 1 and len(left):
            return np.full(len(left), float(right["value"].iloc[0]))
        others = [c for c in table if c != "value" and c not in {**self.cell, **cell}]
        pairs = left.merge(right, on=others, suffixes=("", "_right"))
        if pairs.empty or len(pairs) != len(left):
            raise InputError(
                f"{self.id}: {len(left)} values on its left, of which {len(pairs)} have a "
                "counterpart on the right"
            )
        return pairs["value_right"].to_numpy()
