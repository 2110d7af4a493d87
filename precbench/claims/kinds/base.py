"""What all kinds of claims have in common."""

from collections.abc import Iterator
from typing import Annotated, Self

from pydantic import Field, model_validator

from precbench.claims.verdicts import parse_printed
from precbench.errors import InputError
from precbench.yaml.models import Section, at, refuse

__all__ = ["BaseClaim", "Selection", "Texts"]

Selection = dict[str, str | int | float]
"""Rows of a study's ``values.csv``: those that hold these entries in these columns."""
Texts = Annotated[tuple[str, ...], Field(strict=False)]
ClaimId = Annotated[str, Field(pattern=r"^[a-z0-9]+(/[A-Za-z0-9_.,=@()-]+)+$")]

_DATA = ("dataset", "datasets", "or_on")
_SOLVERS = ("solver", "first_solver", "better", "worse", "slower", "faster", "among")
"""Fields that name data sets, and those that name solvers by their labels, of whatever kind."""


class BaseClaim(Section):
    """Fields of every claim.

    Attributes
    ----------
    id : str
        Permanent: paper, place, row or column.
    where : str
        Where in the paper.
    printed : str
        As printed, hence with its digits.
    says : str
        The sentence, for a claim that is not a cell of a table.
    experiment : str
        Name of the experiment whose results decide; the file's, unless the claim names another.
    config : str
        The config of that experiment; may not exist yet.
    deviations : tuple of str
        Ids of the documented deviations under which we measure.
    protocol : str
        How the paper measured, as far as it says.
    untested : str
        Why no experiment decides it yet, though one could.
    ours : bool
        Whether it is an additional claim of our own about the paper's methods: counted separately.
    sentence : str
        Claims of one sentence count once: those that quote the same (`says`), or have this in
        common where the quotations differ.
    """

    id: ClaimId
    where: str
    printed: str
    says: str = ""
    experiment: str
    config: str
    deviations: Texts = ()
    protocol: str = ""
    untested: str = ""
    ours: bool = False
    sentence: str = ""

    @property
    def counted_as(self) -> tuple[str, str]:
        """What counts once, however many claims it takes: a sentence, or a number."""
        return self.paper, self.sentence or self.says or self.id

    @property
    def paper(self) -> str:
        """The key of the paper."""
        return self.id.partition("/")[0]

    @property
    def place(self) -> str:
        """The table, figure or section, as in the id."""
        return self.id.split("/")[1]

    @property
    def in_words(self) -> bool:
        """Whether the verdict needs no printed number, as where both sides are measured."""
        return True

    @property
    def is_positive(self) -> bool:
        """Whether only a printed number above 0 makes sense."""
        return False

    @property
    def data(self) -> tuple[str, ...]:
        """Names of the data sets whose results decide it; none for a study."""
        return self._names_in(*_DATA)

    @property
    def labels(self) -> tuple[str, ...]:
        """Labels of the solvers that it compares; none for a study or a count."""
        return self._names_in(*_SOLVERS)

    def _names_in(self, *fields: str) -> tuple[str, ...]:
        found = [getattr(self, field, ()) for field in fields]
        lists = [[names] if isinstance(names, str) else names for names in found if names]
        return tuple(name for names in lists for name in names)

    def all_deviations(self) -> Iterator[str]:
        """Yield the ids of all deviations that a verdict may name."""
        yield from self.deviations

    @model_validator(mode="after")
    def _printed_is_a_number(self) -> Self:
        if not (self.untested or self.in_words):
            try:
                value = parse_printed(self.printed).value
            except InputError as error:
                refuse(at((), [str(error)]))
            refuse(at((), ["should be above 0"] if self.is_positive and value <= 0 else []))
        return self
