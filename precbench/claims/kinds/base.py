"""What all kinds of claims have in common."""

from abc import abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Annotated, Any, ClassVar, Literal, Self, TypeVar

import numpy as np
import pandas as pd
from pydantic import Field, model_validator

from precbench.claims.evidence import WALL_SECONDS, Evidence, MissingError
from precbench.claims.ledger import LedgerRow
from precbench.claims.verdicts import Verdict, parse_printed
from precbench.errors import InputError
from precbench.yaml.models import Section, at, refuse

__all__ = ["Claim", "MeasuredClaim", "Selection", "Texts"]

_Results = TypeVar("_Results")

SECONDHAND = "printed according to another source, as the paper could not be read"

Selection = dict[str, str | int | float]
"""Rows of a study's ``values.csv``: those that hold these entries in these columns."""
Texts = Annotated[tuple[str, ...], Field(strict=False)]
ClaimId = Annotated[str, Field(pattern=r"^[a-z0-9]+(/[A-Za-z0-9_.,=@()-]+)+$")]

_DATA = ("dataset", "datasets", "or_on")
_SOLVERS = ("solver", "first_solver", "better", "worse", "slower", "faster", "among")
"""Fields that name data sets, and those that name solvers by their labels, of whatever kind."""


class Claim(Section):
    """A claim: its fields in YAML, what it reads, and how it is judged.

    A kind of claim is a subclass with a field ``kind`` and the method `judge`; `reads_study` says
    whether it reads the values of a study, and no results of trials.

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
    secondhand : bool
        Whether the paper could not be read, and what it printed comes from another source: no
        verdict can then be a decision, and the ledger says which one it would be.
    sentence : str
        Claims of one sentence count once: those that quote the same (`says`), or have this in
        common where the quotations differ.
    """

    reads_study: ClassVar[bool] = False

    kind: str
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
    secondhand: bool = False
    sentence: str = ""

    @property
    def apart(self) -> str:
        """What keeps it apart from the claims that were read in the paper, after its name."""
        return ", second-hand" if self.secondhand else ", additional" if self.ours else ""

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
        values = [getattr(self, field, ()) for field in fields]
        lists = [[names] if isinstance(names, str) else names for names in values if names]
        return tuple(name for names in lists for name in names)

    @property
    def is_testable(self) -> bool:
        """Whether a run decides it."""
        return not self.untested

    @property
    def is_timed(self) -> bool:
        """Whether times decide it."""
        return getattr(self, "metric", "") == WALL_SECONDS

    def is_about(self, dataset: str) -> bool:
        """Return whether results on one data set can decide it."""
        return dataset in self.data

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

    @abstractmethod
    def judge(self, evidence: Evidence) -> LedgerRow:
        """Give the claim its verdict.

        Returns
        -------
        LedgerRow
            See `ledger_row` and `judged`.

        Raises
        ------
        MissingError
            If nothing was measured that it could be compared with.
        """

    @classmethod
    def judge_all(cls, claims: Sequence[Self], evidence: Evidence) -> Iterator[LedgerRow]:
        """Yield the verdicts on all claims of this kind; a kind may judge them together."""
        for claim in claims:
            try:
                yield claim.judge(evidence)
            except MissingError as missing:
                yield claim.ledger_row(Verdict.NO_DATA, reason=str(missing))

    def results_in(self, results: Mapping[str, _Results]) -> _Results:
        """Return the results of the claim's experiment."""
        if self.experiment not in results:
            raise MissingError(f"not in these results: precbench run {self.config}")
        return results[self.experiment]

    def selected(self, table: pd.DataFrame, cell: Selection) -> pd.DataFrame:
        """Return the rows of a study's table that hold these entries."""
        chosen = np.ones(len(table), dtype=bool)
        for column, wanted in cell.items():
            if column not in table:
                raise InputError(f"{self.id}: {self.experiment} has no column {column}")
            chosen &= table[column].to_numpy() == wanted
        return table[chosen]

    def ledger_row(
        self, verdict: Verdict, deviations: Iterable[str] = (), **other: Any
    ) -> LedgerRow:
        """Return the row of the ledger; what else is given are fields of the row."""
        fields: dict[str, Any] = {
            "id": self.id,
            "paper": self.paper,
            "where": self.where,
            "kind": self.kind,
            "printed": self.printed,
            "verdict": verdict,
            "deviation": " ".join(deviations),
        }
        row = LedgerRow(**fields | other)
        if not self.secondhand:
            return row
        would = "" if verdict.rank is None else f"would be {verdict}"
        reason = "; ".join(filter(None, [would, row.reason, SECONDHAND]))
        return replace(row, verdict=Verdict.INCONCLUSIVE if would else verdict, reason=reason)

    def judged(
        self, holds: bool, trend: bool = False, more: Iterable[str] = ()
    ) -> tuple[Verdict, list[str]]:
        """Return the verdict, and the deviations under which it was reached.

        Parameters
        ----------
        holds : bool
        trend : bool, default=False
            Whether at least the trend is as printed.
        more : iterable of str
            Deviations besides those of the claim.
        """
        deviations = list(dict.fromkeys([*self.deviations, *more]))
        if holds:
            return Verdict.WITH_DEVIATION if deviations else Verdict.REPRODUCED, deviations
        return Verdict.TREND_ONLY if trend else Verdict.NOT_REPRODUCED, deviations


class MeasuredClaim(Claim):
    """A claim about a metric.

    Attributes
    ----------
    dataset, metric, part : str
    checkpoint : int or None
        The checkpoint of the curve to compare; None for the final weights.
    """

    dataset: str
    metric: str
    part: Literal["test", "training"] = "test"
    checkpoint: int | None = None
