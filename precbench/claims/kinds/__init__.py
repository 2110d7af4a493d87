"""The kinds of claims: a file each, which says how it is written, what it reads, how it judges."""

from importlib import import_module
from inspect import isabstract

from precbench.claims.kinds.base import Claim
from precbench.errors import InputError
from precbench.extensions import Registry

__all__ = ["KINDS", "Claim"]

_BUILT_IN = {
    "exact": "ExactClaim",
    "bound": "BoundClaim",
    "rate": "RateClaim",
    "mean": "MeanClaim",
    "spread": "SpreadClaim",
    "order": "OrderClaim",
    "variation": "VariationClaim",
    "ratio": "RatioClaim",
    "fact": "FactClaim",
    "statement": "StatementClaim",
}


def _built_in(name: str) -> type[Claim]:
    kind: type[Claim] = getattr(import_module(f"{__name__}.{name}"), _BUILT_IN[name])
    return kind


def _checked(kind: object) -> type[Claim]:
    if not (isinstance(kind, type) and issubclass(kind, Claim)):
        raise InputError(f"{kind!r} is no subclass of precbench.claims.kinds.Claim")
    if isabstract(kind):
        raise InputError(f"{kind.__name__} has no judge")
    return kind


KINDS = Registry("precbench.claims", _BUILT_IN, _checked, _built_in)
"""Names, as in the key ``kind`` of a claim, and their classes."""
