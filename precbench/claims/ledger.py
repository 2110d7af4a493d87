"""The ledger: every claim with the measured value and the verdict."""

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

import pandas as pd

from precbench.claims.verdicts import Verdict
from precbench.core.errors import InputError
from precbench.core.locations import shipped


@dataclass(frozen=True)
class LedgerRow:
    """A claim with its measured value and verdict."""

    id: str
    paper: str
    where: str
    kind: str
    printed: str
    measured: str = ""  # the value or the counts that decided
    runs: int = 0  # repetitions or splits
    verdict: Verdict = Verdict.NO_DATA
    deviation: str = ""  # ids of documented deviations, separated by spaces
    reason: str = ""
    spread: str = ""  # quartiles of our repetitions
    # the smallest relative error of a print that we would detect
    smallest_error: float | None = None

    @property
    def place(self) -> str:
        return self.id.split("/")[1]  # of "paper/place/..."


@dataclass(frozen=True)
class Change:
    """A verdict that differs from the reference."""

    id: str
    before: str
    after: str
    worse: bool


def changes(
    ledger: Iterable[LedgerRow], reference: Iterable[LedgerRow]
) -> Iterator[Change]:
    """Yield the verdicts that differ from settled verdicts of the reference.

    A decision is worse if its rank is farther from the best. No decision after a
    decision is also worse, but counts only where missing results cannot be the reason:
    for an exact number or a complete study, or if the verdict is "no power", "no
    config" or "not testable".
    """
    old_rows = {row.id: row for row in reference}
    for row in ledger:
        old = old_rows.get(row.id)
        if old is None or old.verdict == row.verdict or not old.verdict.is_settled:
            continue
        # Ranks go from 0 (best) to 3 (not reproduced).
        old_rank = old.verdict.rank
        new_rank = row.verdict.rank
        if new_rank is not None and old_rank is not None:
            yield Change(row.id, old.verdict, row.verdict, worse=new_rank > old_rank)
        elif new_rank is not None:
            # After "no power" only "not reproduced" is worse.
            is_worse = row.verdict is Verdict.NOT_REPRODUCED
            yield Change(row.id, old.verdict, row.verdict, worse=is_worse)
        elif old_rank is not None and (row.kind == "exact" or _is_final(row)):
            yield Change(row.id, old.verdict, row.verdict, worse=True)


def updated(
    ledger: Sequence[LedgerRow], reference: Iterable[LedgerRow]
) -> list[LedgerRow]:
    """Return the new reference: for each claim of the ledger its new or its old row.

    The new row is taken if more results cannot change its verdict, or if its runs are
    at least as many. An old row is returned with the place, the print and the
    deviations of the claim now.
    """
    old_rows = {row.id: row for row in reference}
    rows = []
    for row in ledger:
        old = old_rows.get(row.id)
        if old is None or _replaces(row, old):
            rows.append(row)
        else:
            rows.append(_requote(old, row))
    return rows


def _requote(old: LedgerRow, new: LedgerRow) -> LedgerRow:
    """Return the old row, with the place, print and deviations of the new one."""
    # But an exact number keeps the old deviation: only a measurement says which reading
    # agreed.
    deviation = old.deviation if old.kind == "exact" else new.deviation
    verdict = old.verdict
    if verdict.holds:
        verdict = Verdict.WITH_DEVIATION if deviation else Verdict.REPRODUCED
    return replace(
        old, where=new.where, printed=new.printed, deviation=deviation, verdict=verdict
    )


def _is_final(row: LedgerRow) -> bool:
    """Return whether more results cannot change the verdict."""
    if row.verdict.is_settled or row.verdict.is_fixed:
        return True
    # The results of a study are complete, whatever they say.
    is_of_study = row.kind in ("bound", "rate")
    return is_of_study and row.verdict is Verdict.INCONCLUSIVE


def _replaces(row: LedgerRow, old: LedgerRow) -> bool:
    """Return whether a row takes the place of the old one in the new reference."""
    if _is_final(row) or row.kind != old.kind:
        return True
    if old.runs == 0 and old.verdict.is_settled:  # settled without runs
        return False
    return row.runs >= old.runs


def to_csv(ledger: Iterable[LedgerRow]) -> str:
    """Return the ledger as CSV, its numbers with four digits."""
    table = pd.DataFrame(
        map(vars, ledger), columns=[field.name for field in fields(LedgerRow)]
    )
    return table.to_csv(index=False, lineterminator="\n", float_format="%.4g")


def to_json(ledger: Iterable[LedgerRow]) -> str:
    return json.dumps([*map(vars, ledger)], indent=1, allow_nan=False) + "\n"


def reference_path() -> Path:
    return shipped("results/reference") / "ledger.csv"


def read_ledger(path: Path) -> list[LedgerRow]:
    """Read a file that `to_csv` made."""
    try:
        table = pd.read_csv(path, dtype=str, keep_default_na=False)
        return [_from_text(row) for row in table.to_dict("records")]
    except (OSError, ValueError, TypeError, KeyError) as error:
        raise InputError(
            f"{path} is no ledger: {error}; give a ledger.csv that precbench check"
            " wrote"
        ) from None


def _from_text(row: dict[Any, str]) -> LedgerRow:
    """Return the row of the ledger from the texts of a CSV row, by column."""
    error = row["smallest_error"]
    typed: dict[str, Any] = {
        "smallest_error": float(error) if error else None,
        "runs": int(row["runs"]),
        "verdict": Verdict(row["verdict"]),
    }
    fields_of_row: dict[str, Any] = {**row, **typed}
    return LedgerRow(**fields_of_row)
