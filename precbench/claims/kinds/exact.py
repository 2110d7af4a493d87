"""A number of a study that follows from the paper's own definitions."""

import math
from collections.abc import Iterator
from typing import ClassVar, Literal

import pandas as pd
from pydantic import Field

from precbench.claims.evidence import Evidence
from precbench.claims.kinds.base import Claim, Selection, Texts
from precbench.claims.ledger import LedgerRow
from precbench.claims.verdicts import Verdict, agrees, parse_printed
from precbench.errors import InputError
from precbench.yaml.models import Items, Section

__all__ = ["ExactClaim", "Reading"]


class Reading(Section):
    """One way to read the paper; `deviation` is the id of the documented one, if it is ours."""

    cell: Selection = Field(default_factory=dict)
    deviation: str | None = None


class ExactClaim(Claim):
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

    reads_study: ClassVar[bool] = True

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

    def judge(self, evidence: Evidence) -> LedgerRow:
        """Judge a number by the first reading of the paper that agrees with it."""
        table = self.results_in(evidence.values)
        values = [self._read(reading, table) for reading in self.readings]
        for reading, (measured, agreed) in zip(self.readings, values, strict=True):
            if agreed:
                ours = [reading.deviation] if reading.deviation else []
                return self.ledger_row(*self.judged(True, more=ours), measured=measured, runs=1)
        return self.ledger_row(Verdict.NOT_REPRODUCED, measured=values[0][0], runs=1)

    def _read(self, reading: Reading, table: pd.DataFrame) -> tuple[str, bool]:
        """Return the value under one reading of the paper, and whether it agrees with the print."""
        rows = self.selected(table, {**self.cell, **reading.cell})
        if self.argmin is not None:
            rows = rows[rows[self.argmin].isin(self.among)]
        if len(rows) != (len(self.among) or 1):
            raise InputError(f"{self.id}: its cell selects {len(rows)} values instead of one")
        if self.argmin is not None:
            smallest = str(rows[self.argmin].iloc[int(rows["value"].argmin())])
            return smallest, smallest == self.printed.replace("_", "")
        value = float(rows["value"].iloc[0])
        if self.expected is not None or self.at_least is not None:
            reached = self.at_least is not None and value >= self.at_least
            exact = self.expected is not None and math.isclose(value, self.expected, rel_tol=1e-12)
            return f"{value:.8g}", reached or exact
        return f"{value:.8g}", agrees(parse_printed(self.printed), value, self.truncated)
