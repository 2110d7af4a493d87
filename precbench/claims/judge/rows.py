"""Rows of the ledger, and the results behind them, for all kinds of claims."""

from collections.abc import Iterable, Mapping
from typing import Any, TypeVar

from precbench.claims.evidence import MissingError
from precbench.claims.kinds import Claim
from precbench.claims.ledger import LedgerRow
from precbench.claims.verdicts import Verdict

__all__ = ["judged", "ledger_row", "results_of"]

_Results = TypeVar("_Results")


def results_of(claim: Claim, results: Mapping[str, _Results]) -> _Results:
    """Return the results of the claim's experiment."""
    if claim.experiment not in results:
        raise MissingError(f"not in these results: precbench run {claim.config}")
    return results[claim.experiment]


def ledger_row(
    claim: Claim, verdict: Verdict, deviations: Iterable[str] = (), **other: Any
) -> LedgerRow:
    """Return the row of a claim; what else is given are fields of the row."""
    about: dict[str, Any] = {
        "id": claim.id,
        "paper": claim.paper,
        "where": claim.where,
        "kind": claim.kind,
        "printed": claim.printed,
        "verdict": verdict,
        "deviation": " ".join(deviations),
    }
    return LedgerRow(**about | other)


def judged(
    claim: Claim, holds: bool, trend: bool = False, more: Iterable[str] = ()
) -> tuple[Verdict, list[str]]:
    """Return the verdict, and the deviations under which it was reached.

    Parameters
    ----------
    claim : Claim
    holds : bool
    trend : bool, default=False
        Whether at least the trend is as printed.
    more : iterable of str
        Deviations besides those of the claim.
    """
    deviations = list(dict.fromkeys([*claim.deviations, *more]))
    if holds:
        return Verdict.WITH_DEVIATION if deviations else Verdict.REPRODUCED, deviations
    return Verdict.TREND_ONLY if trend else Verdict.NOT_REPRODUCED, deviations
