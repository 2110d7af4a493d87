"""The verdict on each claim."""

from collections.abc import Callable, Sequence
from typing import Any

from precbench.claims.evidence import Evidence, MissingError
from precbench.claims.judge import means, measured, stated
from precbench.claims.judge.rows import ledger_row
from precbench.claims.kinds import (
    BoundClaim,
    Claim,
    ConsistencyClaim,
    ExactClaim,
    FactClaim,
    MeanClaim,
    OrderClaim,
    RatioClaim,
    SpreadClaim,
    StatementClaim,
    VariationClaim,
)
from precbench.claims.ledger import LedgerRow
from precbench.claims.verdicts import Verdict
from precbench.locations import shipped

__all__ = ["make_ledger"]

_JUDGES: dict[type, Callable[[Any, Evidence], LedgerRow]] = {
    ExactClaim: stated.judge_exact,
    BoundClaim: stated.judge_bound,
    StatementClaim: stated.judge_statement,
    MeanClaim: means.judge_mean,
    SpreadClaim: measured.judge_spread,
    OrderClaim: measured.judge_order,
    ConsistencyClaim: measured.judge_consistency,
    VariationClaim: measured.judge_variation,
    RatioClaim: measured.judge_ratio,
    FactClaim: measured.judge_fact,
}


def make_ledger(claims: Sequence[Claim], evidence: Evidence) -> list[LedgerRow]:
    """Give each claim its verdict.

    Parameters
    ----------
    claims : sequence of Claim
    evidence : Evidence

    Returns
    -------
    list of LedgerRow
        In the order of the claims.
    """
    rows: list[LedgerRow] = []
    cells: list[means.Draws] = []
    for claim in claims:
        if lacking := _lacking_config(claim):
            rows.append(ledger_row(claim, Verdict.NO_CONFIG, reason=lacking))
            continue
        try:
            if isinstance(claim, MeanClaim) and claim.is_one_draw:
                cells.append(means.draws_of(claim, evidence))
            else:
                rows.append(_JUDGES[type(claim)](claim, evidence))
        except MissingError as missing:
            rows.append(ledger_row(claim, Verdict.NO_DATA, reason=str(missing)))
    rows += means.judge_rows(cells, evidence)
    place_of = {claim.id: i for i, claim in enumerate(claims)}
    return sorted(rows, key=lambda row: place_of[row.id])


def _lacking_config(claim: Claim) -> str:
    """Return why no experiment measures it yet, or nothing."""
    if claim.untested or isinstance(claim, StatementClaim):
        return claim.untested
    config = shipped("configs") / f"{claim.config}.yaml"
    return "" if config.exists() else f"there is no config {claim.config} yet"
