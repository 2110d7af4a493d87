"""The kinds of claims: the statement of each, and how it is decided."""

from precbench.claims.kinds.base import Selection
from precbench.claims.kinds.measured import (
    ConsistencyClaim,
    FactClaim,
    MeanClaim,
    OrderClaim,
    RatioClaim,
    SpreadClaim,
    VariationClaim,
)
from precbench.claims.kinds.stated import BoundClaim, ExactClaim, Reading, StatementClaim

__all__ = [
    "BoundClaim",
    "Claim",
    "ConsistencyClaim",
    "ExactClaim",
    "FactClaim",
    "MeanClaim",
    "OrderClaim",
    "RatioClaim",
    "Reading",
    "Selection",
    "SpreadClaim",
    "StatementClaim",
    "VariationClaim",
]

Claim = (
    ExactClaim
    | BoundClaim
    | MeanClaim
    | SpreadClaim
    | OrderClaim
    | ConsistencyClaim
    | VariationClaim
    | RatioClaim
    | FactClaim
    | StatementClaim
)
