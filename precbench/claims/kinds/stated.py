"""Claims that a study decides, without data or chance, and statements that no run decides."""

from collections.abc import Iterator
from typing import Literal, Self

from pydantic import AliasChoices, Field, model_validator

from precbench.claims.kinds.base import BaseClaim, Selection, Texts
from precbench.yaml.models import Items, Section, at, refuse

__all__ = ["BoundClaim", "ExactClaim", "Reading", "StatementClaim"]


class Reading(Section):
    """One way to read the paper; `deviation` is the id of the documented one, if it is ours."""

    cell: Selection = Field(default_factory=dict)
    deviation: str | None = None


class ExactClaim(BaseClaim):
    """A number that follows from the paper's own definitions, without chance.

    Attributes
    ----------
    cell : dict
        Selects one value of the study.
    argmin : str or None
        Instead of a value, the entry of this column that has the smallest value was printed.
    among : tuple of str
        The entries that compete.
    readings : tuple of Reading
        Are tried in turn; the first that agrees decides.
    truncated : bool
        The digits after the last were cut off instead of rounded: a documented deviation.
    expected, at_least : float or None
        The number, or its lower limit, where the paper says it in words.
    """

    kind: Literal["exact"]
    cell: Selection = Field(default_factory=dict)
    argmin: str | None = None
    among: Texts = ()
    readings: Items[Reading] = (Reading(),)
    truncated: bool = False
    expected: float | None = None
    at_least: float | None = None

    @property
    def in_words(self) -> bool:
        """Whether an entry or a number in words was printed."""
        return self.argmin is not None or (self.expected, self.at_least) != (None, None)

    def all_deviations(self) -> Iterator[str]:
        """Yield also those of the readings."""
        yield from self.deviations
        yield from (r.deviation for r in self.readings if r.deviation is not None)


class BoundClaim(BaseClaim):
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

    kind: Literal["bound"]
    cell: Selection
    by: Selection
    trivial: Selection | None = Field(None, validation_alias=AliasChoices("trivial", "idle"))
    factor: float = 1.0
    margin: float = 0.0
    open_constant: bool = False


class StatementClaim(BaseClaim):
    """A sentence, definition or formula that no other kind of claim holds.

    Attributes
    ----------
    reason : str
        Why no run can decide it. If a run could, but none does yet, `untested` says so instead.
    """

    kind: Literal["statement"]
    reason: str = ""

    @model_validator(mode="after")
    def _says_why(self) -> Self:
        if bool(self.reason) == bool(self.untested):
            refuse(at((), ["needs either a reason (no run can decide it) or untested (none does)"]))
        return self
