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
class LedgerRow:  # a claim with its measured value and verdict
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
    # smallest relative error of a print that we would detect
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
    before = {row.id: row for row in reference}
    for row in ledger:
        old = before.get(row.id)
        if old is None or old.verdict == row.verdict or not old.verdict.is_settled:
            continue
        # Ranks: 0 (best) to 3 (not reproduced). "No power" counts as 2, so that only 3
        # is worse.
        rank = 2 if old.verdict.rank is None else old.verdict.rank
        if row.verdict.rank is not None:  # a decision
            yield Change(row.id, old.verdict, row.verdict, row.verdict.rank > rank)
        elif old.verdict.rank is not None and (row.kind == "exact" or _is_final(row)):
            yield Change(row.id, old.verdict, row.verdict, worse=True)


def updated(
    ledger: Sequence[LedgerRow], reference: Iterable[LedgerRow]
) -> list[LedgerRow]:
    """Return the new reference.

    For each claim of the ledger the new row, or the old row.

    The new row is taken if more results cannot change its verdict, or if its runs are
    at least as many. An old row is returned with the place, the print and the
    deviations of the claim now.
    """
    before = {row.id: row for row in reference}
    return [
        (
            row
            if _replaces(row, before.get(row.id, row))
            else _requote(before[row.id], row)
        )
        for row in ledger
    ]


def _requote(old: LedgerRow, now: LedgerRow) -> LedgerRow:
    """Return the old row of a claim, with the place, print and deviations of the claim now."""
    # But an exact number keeps the old deviation: only a measurement says which reading
    # agreed.
    deviation = old.deviation if old.kind == "exact" else now.deviation
    if_it_holds = Verdict.WITH_DEVIATION if deviation else Verdict.REPRODUCED
    verdict = if_it_holds if old.verdict.holds else old.verdict
    return replace(
        old, where=now.where, printed=now.printed, deviation=deviation, verdict=verdict
    )


def _is_final(row: LedgerRow) -> bool:
    """Return whether more results cannot change the verdict.

    Results of a study are complete.
    """
    by_study = row.kind in ("bound", "rate") and row.verdict is Verdict.INCONCLUSIVE
    return row.verdict.is_settled or row.verdict.is_fixed or by_study


def _replaces(row: LedgerRow, before: LedgerRow) -> bool:  # in the new reference
    if _is_final(row) or row.kind != before.kind:
        return True
    # As many runs are enough; but a settled row of 0 runs stays.
    return row.runs >= before.runs and (
        before.runs > 0 or not before.verdict.is_settled
    )


def to_csv(ledger: Iterable[LedgerRow]) -> str:  # numbers have four digits
    table = pd.DataFrame(
        map(vars, ledger), columns=[field.name for field in fields(LedgerRow)]
    )
    return table.to_csv(index=False, lineterminator="\n", float_format="%.4g")


def to_json(ledger: Iterable[LedgerRow]) -> str:
    return json.dumps([*map(vars, ledger)], indent=1, allow_nan=False) + "\n"


def reference_path() -> Path:
    return shipped("results/reference") / "ledger.csv"


def read_ledger(path: Path) -> list[LedgerRow]:  # from a file that `to_csv` made
    try:
        table = pd.read_csv(path, dtype=str, keep_default_na=False)
        return [_from_text(row) for row in table.to_dict("records")]
    except (OSError, ValueError, TypeError, KeyError) as error:
        raise InputError(
            f"{path} is no ledger: {error}; give a ledger.csv that precbench check"
            " wrote"
        ) from None


def _from_text(row: dict[Any, str]) -> LedgerRow:  # a row of the CSV file, by column
    typed: dict[str, Any] = {
        "smallest_error": (
            float(row["smallest_error"]) if row["smallest_error"] else None
        ),
        "runs": int(row["runs"]),
        "verdict": Verdict(row["verdict"]),
    }
    return LedgerRow(**row | typed)
