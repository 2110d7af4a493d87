"""The kinds of claims: the fields of each, what it reads and how it judges."""

from pkgutil import resolve_name

from precbench.claims.kinds.kind import Claim
from precbench.core.errors import InputError
from precbench.core.registry import Registry

__all__ = ["KINDS", "Claim"]

_BUILT_IN = {
    "exact": "stated:ExactClaim",
    "bound": "stated:BoundClaim",
    "rate": "stated:RateClaim",
    "statement": "stated:StatementClaim",
    "mean": "mean:MeanClaim",
    "spread": "measured:SpreadClaim",
    "order": "measured:OrderClaim",
    "variation": "measured:VariationClaim",
    "ratio": "measured:RatioClaim",
    "fact": "measured:FactClaim",
}


def _checked(kind: object) -> type[Claim]:
    """Return a class of claims as it is; refuse any other object."""
    if not (isinstance(kind, type) and issubclass(kind, Claim)):
        raise InputError(
            f"kind of claim {kind!r} is no subclass of precbench.claims.kinds.Claim;"
            " derive the kind from this class"
        )
    return kind


# Classes by name, as in the key ``kind`` of a claim.
KINDS = Registry(
    "precbench.claims",
    _BUILT_IN,
    check=_checked,
    load=lambda name: resolve_name(f"{__name__}.{_BUILT_IN[name]}"),
)
