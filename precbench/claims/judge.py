"""The verdict on each claim."""

from collections.abc import Sequence

from precbench.claims.evidence import Evidence
from precbench.claims.kinds import Claim
from precbench.claims.ledger import LedgerRow
from precbench.claims.verdicts import Verdict
from precbench.locations import shipped


def make_ledger(claims: Sequence[Claim], evidence: Evidence) -> list[LedgerRow]:
    """Give each claim its verdict, in the order of the claims."""
    rows: list[LedgerRow] = []
    by_kind: dict[type[Claim], list[Claim]] = {}
    for claim in claims:
        if lacking := _lacking_config(claim):
            rows.append(claim.ledger_row(Verdict.NO_CONFIG, reason=lacking))
        else:
            by_kind.setdefault(type(claim), []).append(claim)
    for kind, alike in by_kind.items():
        rows += kind.judge_all(alike, evidence)
    place_of = {claim.id: i for i, claim in enumerate(claims)}
    return sorted(rows, key=lambda row: place_of[row.id])


def _lacking_config(claim: Claim) -> str:
    """Return why no experiment measures it yet, or nothing."""
    if not claim.is_testable:
        return claim.untested
    config = shipped("configs") / f"{claim.config}.yaml"
    return "" if config.exists() else f"there is no config {claim.config} yet"
