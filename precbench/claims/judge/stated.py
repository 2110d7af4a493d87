"""Verdicts on what studies compute, and on statements."""

import math
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from precbench.claims.evidence import Evidence
from precbench.claims.judge.rows import judged, ledger_row, results_of
from precbench.claims.kinds import BoundClaim, Claim, ExactClaim, Reading, Selection, StatementClaim
from precbench.claims.ledger import LedgerRow
from precbench.claims.verdicts import Verdict, agrees, parse_printed
from precbench.errors import InputError

__all__ = ["judge_bound", "judge_exact", "judge_statement"]


def _select(claim: Claim, table: pd.DataFrame, cell: Selection) -> pd.DataFrame:
    """Return the rows of a study's table that hold these entries."""
    chosen = np.ones(len(table), dtype=bool)
    for column, wanted in cell.items():
        if column not in table:
            raise InputError(f"{claim.id}: {claim.experiment} has no column {column}")
        chosen &= table[column].to_numpy() == wanted
    return table[chosen]


def judge_exact(claim: ExactClaim, evidence: Evidence) -> LedgerRow:
    """Judge a number by the first reading of the paper that agrees with it."""
    table = results_of(claim, evidence.values)
    found = [_read(claim, reading, table) for reading in claim.readings]
    for reading, (measured, agreed) in zip(claim.readings, found, strict=True):
        if agreed:
            ours = [reading.deviation] if reading.deviation else []
            return ledger_row(claim, *judged(claim, True, more=ours), measured=measured, runs=1)
    return ledger_row(claim, Verdict.NOT_REPRODUCED, measured=found[0][0], runs=1)


def _read(claim: ExactClaim, reading: Reading, table: pd.DataFrame) -> tuple[str, bool]:
    """Return the value under one reading of the paper, and whether it agrees with the print."""
    rows = _select(claim, table, {**claim.cell, **reading.cell})
    if claim.argmin is not None:
        rows = rows[rows[claim.argmin].isin(claim.among)]
    if len(rows) != (len(claim.among) or 1):
        raise InputError(f"{claim.id}: its cell selects {len(rows)} values")
    if claim.argmin is not None:
        smallest = str(rows[claim.argmin].iloc[int(rows["value"].argmin())])
        return smallest, smallest == claim.printed.replace("_", "")
    value = float(rows["value"].iloc[0])
    if claim.expected is not None or claim.at_least is not None:
        reached = claim.at_least is not None and value >= claim.at_least
        exact = claim.expected is not None and math.isclose(value, claim.expected, rel_tol=1e-12)
        return f"{value:.8g}", reached or exact
    return f"{value:.8g}", agrees(parse_printed(claim.printed), value, claim.truncated)


def judge_bound(claim: BoundClaim, evidence: Evidence) -> LedgerRow:
    """Judge that values lie below others."""
    table = results_of(claim, evidence.values)
    left = _select(claim, table, claim.cell)
    values, right = left["value"].to_numpy(), _counterparts(claim, table, left, claim.by)
    bounds = claim.factor * right + claim.margin
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
    about: dict[str, Any] = {"measured": measured, "runs": len(holds)}
    everywhere = bool(holds.all())
    if not everywhere:
        if claim.open_constant:
            reason = "the constant is open, and ours does not suffice, which refutes nothing"
            return ledger_row(claim, Verdict.INCONCLUSIVE, reason=reason, **about)
    elif claim.trivial is not None:
        decisive = int(np.sum(bounds < _counterparts(claim, table, left, claim.trivial)))
        if not decisive:
            reason = "every bound lies above the value of w = 0"
            return ledger_row(claim, Verdict.NO_POWER, reason=reason, **about)
        about["reason"] = f"{decisive} of the bounds lie below the value of w = 0"
    return ledger_row(claim, *judged(claim, everywhere), **about)


def _counterparts(
    claim: BoundClaim, table: pd.DataFrame, left: pd.DataFrame, cell: Selection
) -> NDArray:
    """Return the value that each value on the left is compared with."""
    right = _select(claim, table, cell)
    if len(right) == 1 and len(left):
        return np.full(len(left), float(right["value"].iloc[0]))
    others = [c for c in table if c != "value" and c not in {**claim.cell, **cell}]
    pairs = left.merge(right, on=others, suffixes=("", "_right"))
    if pairs.empty or len(pairs) != len(left):
        raise InputError(
            f"{claim.id}: {len(left)} values on its left, of which {len(pairs)} have a "
            "counterpart on the right"
        )
    return pairs["value_right"].to_numpy()


def judge_statement(claim: StatementClaim, evidence: Evidence) -> LedgerRow:
    """Say why no run can decide it."""
    return ledger_row(claim, Verdict.NOT_TESTABLE, claim.deviations, reason=claim.reason)
