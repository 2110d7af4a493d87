"""The power with which values of a study fall or grow, against the power that a paper states."""

from collections.abc import Iterator
from typing import ClassVar, Literal, NamedTuple, Self

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from pydantic import model_validator

from precbench.claims.evidence import Evidence
from precbench.claims.kinds.base import Claim, Selection
from precbench.claims.ledger import LedgerRow
from precbench.claims.verdicts import LEVEL, MIN_INFORMATIVE, Slope, Verdict, fitted_slope
from precbench.yaml.models import at, refuse

__all__ = ["RateClaim"]


class RateClaim(Claim):
    """Values of a study are O(n^exponent), with a constant that the paper leaves open.

    The slope of the logarithm of the values against that of their sizes has an interval that
    holds for all curves together in 95 of 100 cases. If it excludes the exponent from the wrong
    side on any curve (the values fall more slowly, or grow faster), the rate is not reproduced.
    Otherwise it is a trend only, as no size decides an O with an open constant. A curve whose
    interval reaches the slope of what does not obey the rate at all says nothing, nor does one
    with a value of 0 or less; unless at least half of the curves say something, there is no power.

    Attributes
    ----------
    cell : dict
        Selects the values, one for each size of each curve.
    against : str
        The column of the sizes.
    by : dict or None
        Selects the values of the stated rate at the same places, against whose reciprocals the
        slope is taken, in place of the sizes; the stated exponent is then -1.
    times_log : bool
        The exponent is one of ``n log n``.
    exponent : float
    trivial : float or None
        The slope of what does not obey it; by default 0 for a rate that falls, and one power more
        than stated for one that grows.
    """

    reads_study: ClassVar[bool] = True

    kind: Literal["rate"]
    cell: Selection
    against: str
    by: Selection | None = None
    times_log: bool = False
    exponent: float = -1.0
    trivial: float | None = None

    @model_validator(mode="after")
    def _has_one_scale(self) -> Self:
        several = self.by is not None and (self.times_log or "exponent" in self.model_fields_set)
        refuse(at(("by",), ["has the exponent -1: leave exponent and times_log out"] * several))
        lacking = self.by is None and "exponent" not in self.model_fields_set
        refuse(at((), ["needs exponent, or by"] if lacking else []))
        return self

    def judge(self, evidence: Evidence) -> LedgerRow:
        """Judge the exponent by the slopes of all curves and their joint interval."""
        table = self.results_in(evidence.values)
        curves = list(self._curves(table))
        positive = [curve for curve in curves if (curve.values > 0).all()]
        slopes = [fitted_slope(*curve, LEVEL / len(positive)) for curve in positive]
        runs = sum(len(curve.values) for curve in curves)
        if not slopes:
            reason = "0 against 0 decides nothing"
            return self.ledger_row(Verdict.NO_POWER, measured="0", runs=runs, reason=reason)
        idle = self.trivial
        if idle is None:
            idle = 0.0 if self.exponent < 0 else self.exponent + 1
        telling = sum(slope.high < idle for slope in slopes)
        slower = sum(slope.low > self.exponent for slope in slopes)
        measured, of = _shown(slopes), f"of {len(curves)} curves"
        if slower:
            reason = f"{slower} {of}: the interval excludes {self.exponent:g}"
            verdict = Verdict.NOT_REPRODUCED
        elif telling < MIN_INFORMATIVE * len(curves):
            reason = f"only {telling} {of} can be told from the slope {idle:g}"
            verdict = Verdict.NO_POWER
        else:
            reason = f"no interval excludes {self.exponent:g}; the constant is open"
            verdict = Verdict.TREND_ONLY
        return self.ledger_row(verdict, measured=measured, runs=runs, reason=reason)

    def _curves(self, table: pd.DataFrame) -> Iterator["_Curve"]:
        rows = self.selected(table, self.cell)
        sizes = rows[self.against].to_numpy(dtype=float)
        x = np.log(sizes * np.log(sizes)) if self.times_log else np.log(sizes)
        if self.by is not None:
            x = -np.log(self.counterparts(table, self.cell, self.by))
        others = [c for c in table if c not in ("value", self.against)]
        for _, curve in rows.assign(x=x).groupby(others, sort=False, dropna=False):
            yield _Curve(curve["x"].to_numpy(), curve["value"].to_numpy(dtype=float))


class _Curve(NamedTuple):
    x: NDArray[np.float64]
    values: NDArray[np.float64]


def _shown(slopes: list[Slope]) -> str:
    if len(slopes) == 1:
        [slope] = slopes
        return f"slope {slope.value:.3g} ({slope.low:.3g} to {slope.high:.3g})"
    values = [slope.value for slope in slopes]
    low, high = min(s.low for s in slopes), max(s.high for s in slopes)
    return f"slopes {min(values):.3g} to {max(values):.3g} (limits {low:.3g} to {high:.3g})"
