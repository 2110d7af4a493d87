"""Claims about values of a study, and statements that no run decides."""

import math
from collections.abc import Iterator
from typing import Any, ClassVar, Literal, NamedTuple, Self

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from pydantic import Field, model_validator

from precbench.claims.evidence import Evidence
from precbench.claims.kinds.kind import Claim, Selection, Texts
from precbench.claims.ledger import LedgerRow
from precbench.claims.verdicts import (
    LEVEL,
    MIN_INFORMATIVE,
    Slope,
    Verdict,
    agrees,
    fitted_slope,
    parse_printed,
)
from precbench.core.errors import InputError
from precbench.core.yaml.models import Items, Section, at, refuse


class Reading(Section):
    """One way to read the paper."""

    cell: Selection = Field(default_factory=dict)  # joined to the `cell` of the claim
    # id of the documented deviation, if the reading is ours
    deviation: str | None = None


class ExactClaim(Claim):
    """A number that follows from the paper's definitions, without chance."""

    reads_study: ClassVar[bool] = True
    number_unless: ClassVar = ("argmin", "expected", "at_least")

    kind: Literal["exact"]
    cell: Selection = Field(default_factory=dict)  # selects one value of the study
    # the print is the entry of this column with the smallest value
    argmin: str | None = None
    among: Texts = ()  # the entries that compete
    # tried in turn; the first that agrees decides
    readings: Items[Reading] = (Reading(),)
    truncated: bool = False  # digits were cut off, not rounded: a documented deviation
    expected: float | None = None  # the number, if the paper says it in words
    # lower limit of the number, if the paper says it in words
    at_least: float | None = None

    def all_deviations(self) -> Iterator[str]:
        yield from self.deviations
        yield from (r.deviation for r in self.readings if r.deviation is not None)

    def judge(self, evidence: Evidence) -> LedgerRow:
        """Judge by the first reading that agrees with the print, or by the first."""
        table = self.results_in(evidence.values)
        # All are read before one is judged, as a mistake in any of them is refused.
        values = [self._read(reading, table) for reading in self.readings]
        for reading, value in zip(self.readings, values, strict=True):
            if value.agrees:
                more = [reading.deviation] if reading.deviation else []
                verdict, deviations = self.judged(holds=True, more=more)
                return self.ledger_row(
                    verdict, deviations, measured=value.measured, runs=1
                )
        first = values[0]
        return self.ledger_row(Verdict.NOT_REPRODUCED, measured=first.measured, runs=1)

    def _read(self, reading: Reading, table: pd.DataFrame) -> "_ReadValue":
        """Return the study's value under a reading, and whether the print agrees."""
        rows = self.selected(table, {**self.cell, **reading.cell})
        if self.argmin is None:
            self._refuse_other_number(rows, 1)
            value = float(rows["value"].iloc[0])
            return _ReadValue(f"{value:.8g}", self._agrees(value))
        competing = rows[rows[self.argmin].isin(self.among)]
        # at least 1: without `among` nothing competes, which is refused
        self._refuse_other_number(competing, max(1, len(self.among)))
        smallest = str(competing[self.argmin].iloc[int(competing["value"].argmin())])
        # f_1 in print is f1
        return _ReadValue(smallest, smallest == self.printed.replace("_", ""))

    def _refuse_other_number(self, rows: pd.DataFrame, n_needed: int) -> None:
        if len(rows) == n_needed:
            return
        change = "more" if len(rows) > n_needed else "fewer"
        raise InputError(
            f"claim {self.id}: `cell` selects {len(rows)} values of the study, but"
            f" needs {n_needed}; give `cell` {change} columns"
        )

    def _agrees(self, value: float) -> bool:
        """Return whether a value agrees with the print.

        The paper gives the number, or its lower limit, in words; else it prints digits.
        """
        if self.expected is None and self.at_least is None:
            return agrees(parse_printed(self.printed), value, self.truncated)
        if self.at_least is not None and value >= self.at_least:
            return True
        return self.expected is not None and math.isclose(
            value, self.expected, rel_tol=1e-12
        )


class _ReadValue(NamedTuple):
    """The value of a study under one reading of the paper."""

    measured: str
    agrees: bool


class BoundClaim(Claim):
    """Some values of a study lie below others: a theorem, or an order of curves.

    The claim is ``left <= factor * right + margin``. `cell` selects the values on the
    left, and `by` the values on the right: each left value is compared with the right
    value whose row agrees in all other columns, or with the only right value.
    """

    reads_study: ClassVar[bool] = True

    kind: Literal["bound"]
    cell: Selection
    by: Selection
    # Selects values of what does not obey the claim: the model w = 0, or a control. If
    # fewer than half of the bounds are below, nothing is decided. None: all bounds but
    # 0 <= 0 count.
    trivial: Selection | None = None
    factor: float = 1.0
    margin: float = 0.0
    # Whether the paper leaves a constant open: ours may be too small, so that a bound
    # which fails refutes nothing, and a bound which holds is a trend only.
    open_constant: bool = False

    def judge(self, evidence: Evidence) -> LedgerRow:
        """Judge whether all values obey their bounds, and half could have failed."""
        table = self.results_in(evidence.values)
        left = self.selected(table, self.cell)["value"].to_numpy()
        right = self.counterparts(table, self.cell, self.by)
        bounds = self.factor * right + self.margin
        holds = left <= bounds
        measured = _compared_in_words(left, right, int(holds.sum()))
        fields: dict[str, Any] = {"measured": measured, "runs": len(holds)}
        if not holds.all():
            if self.open_constant:
                reason = (
                    "the constant is open, and ours does not suffice, which refutes"
                    " nothing"
                )
                return self.undecided(reason, **fields)
            return self.ledger_row(*self.judged(holds=False), **fields)
        # A bound is informative if the bound could have failed.
        if self.trivial is None:  # all bounds could have failed, except 0 against 0
            informative = (left != 0) | (right != 0)
            condition = "compare more than 0 with 0"
        else:
            informative = bounds < self.counterparts(table, self.cell, self.trivial)
            condition = "lie below what does not obey the claim"
        reason = f"{informative.sum()} of {len(holds)} bounds {condition}"
        if informative.mean() < MIN_INFORMATIVE:
            reason += ", fewer than half"
            return self.ledger_row(Verdict.NO_POWER, reason=reason, **fields)
        if self.open_constant:
            reason = "it holds with the constant 1, but the constant is open"
            return self.ledger_row(Verdict.TREND_ONLY, reason=reason, **fields)
        if self.trivial is None:  # nothing to say of bounds that all could have failed
            reason = ""
        return self.ledger_row(*self.judged(holds=True), reason=reason, **fields)


def _compared_in_words(left: NDArray, right: NDArray, n_holding: int) -> str:
    """Return in words the sides of a bound, or how many hold and how they differ."""
    if len(left) == 1:
        return f"{left[0]:.4g} against {right[0]:.4g}"
    with np.errstate(divide="ignore", invalid="ignore"):
        compared = left / right
    name = "ratio"
    if not np.isfinite(compared).all():  # some right side is 0
        compared = left - right
        name = "excess"
    outcome = f"holds in {n_holding} of {len(left)}"
    return f"{outcome}, {name} {compared.min():.3g} to {compared.max():.3g}"


class RateClaim(Claim):
    """Values of a study are O(n^exponent), with a constant that the paper leaves open.

    The rate is n^exponent, (n log n)^exponent with `times_log`, or the values that `by`
    selects. The slope of each curve (logarithms of values against those of sizes) has
    an interval; all hold together in 95 of 100 cases. If any interval lies above the
    exponent, the rate does not show at these sizes, which is inconclusive: no size
    refutes or proves an O with an open constant. Otherwise the verdict is "trend only".
    A curve says nothing if its interval reaches the slope of what does not obey the
    rate, or if it has a value of 0 or less. Unless half of the curves say something,
    the verdict is "no power".
    """

    reads_study: ClassVar[bool] = True

    kind: Literal["rate"]
    cell: Selection  # one value for each size of each curve
    against: str  # column of the sizes
    # Selects values of the rate at the same sizes; their reciprocals stand for the
    # sizes.
    by: Selection | None = None
    times_log: bool = False  # the exponent is of ``n log n``, not of n
    # the default is for `by`; without `by` the exponent has to be given
    exponent: float = -1.0
    # Slope of what does not obey the rate; default 0 if the rate falls, exponent + 1 if
    # it grows
    trivial: float | None = None

    @model_validator(mode="after")
    def _check_rate(self) -> Self:
        """Require either an exponent, or values of the rate, but not both."""
        has_exponent = "exponent" in self.model_fields_set
        if self.by is not None and (self.times_log or has_exponent):
            refuse(
                at(("by",), ["gives the rate itself: leave exponent and times_log out"])
            )
        if self.by is None and not has_exponent:
            refuse(at((), ["needs the rate: give the key exponent, or by"]))
        return self

    def judge(self, evidence: Evidence) -> LedgerRow:
        """Judge whether the slopes of the curves show the rate, by joint intervals."""
        curves = list(self._curves(self.results_in(evidence.values)))
        positive = [curve for curve in curves if (curve.values > 0).all()]
        # All intervals hold together in 95 of 100 cases, by Bonferroni's rule.
        slopes = [
            fitted_slope(curve.log_sizes, curve.values, LEVEL / len(positive))
            for curve in positive
        ]
        runs = sum(len(curve.values) for curve in curves)
        if not slopes:
            reason = "0 against 0 decides nothing"
            return self.ledger_row(
                Verdict.NO_POWER, measured="0", runs=runs, reason=reason
            )
        trivial = self._trivial_slope
        n_informative = sum(slope.high < trivial for slope in slopes)
        n_slower_than_rate = sum(slope.low > self.exponent for slope in slopes)
        out_of = f"of {len(curves)} curves"
        if n_slower_than_rate:
            reason = (
                f"{n_slower_than_rate} {out_of}: the interval excludes"
                f" {self.exponent:g} at these sizes, which refutes no O"
            )
            verdict = Verdict.INCONCLUSIVE
        elif n_informative < MIN_INFORMATIVE * len(curves):
            reason = (
                f"only {n_informative} {out_of} can be told from the slope {trivial:g}"
            )
            verdict = Verdict.NO_POWER
        else:
            reason = f"no interval excludes {self.exponent:g}; the constant is open"
            verdict = Verdict.TREND_ONLY
        measured = _slopes_in_words(slopes)
        return self.ledger_row(verdict, measured=measured, runs=runs, reason=reason)

    @property
    def _trivial_slope(self) -> float:
        """The slope of what does not obey the rate."""
        if self.trivial is not None:
            return self.trivial
        if self.exponent < 0:  # the rate falls: no fall
            return 0.0
        return self.exponent + 1

    def _curves(self, table: pd.DataFrame) -> Iterator["_Curve"]:
        """Yield the curves, which differ in a column that names no size."""
        rows = self.selected(table, self.cell)
        sizes = rows[self.against].to_numpy(dtype=float)
        if self.by is not None:
            # 1 / rate stands for a size
            log_sizes = -np.log(self.counterparts(table, self.cell, self.by))
        elif self.times_log:
            log_sizes = np.log(sizes * np.log(sizes))
        else:
            log_sizes = np.log(sizes)
        keys = [column for column in table if column not in ("value", self.against)]
        with_sizes = rows.assign(log_size=log_sizes)
        for _, curve in with_sizes.groupby(keys, sort=False, dropna=False):
            yield _Curve(
                curve["log_size"].to_numpy(), curve["value"].to_numpy(dtype=float)
            )


class _Curve(NamedTuple):
    """Values of a study by size."""

    log_sizes: NDArray[np.float64]
    values: NDArray[np.float64]


def _slopes_in_words(slopes: list[Slope]) -> str:
    """Return in words a slope and its interval, or the ranges of slopes and limits."""
    values = [slope.value for slope in slopes]
    lowest = min(slope.low for slope in slopes)
    highest = max(slope.high for slope in slopes)
    limits = f"{lowest:.3g} to {highest:.3g}"
    if len(slopes) == 1:
        return f"slope {values[0]:.3g} ({limits})"
    return f"slopes {min(values):.3g} to {max(values):.3g} (limits {limits})"


class StatementClaim(Claim):
    """A sentence, definition or formula that no other kind of claim holds."""

    kind: Literal["statement"]
    reason: str = ""  # why no run can decide it; if none does yet, `untested` says why

    @property
    def is_testable(self) -> bool:
        return False

    @model_validator(mode="after")
    def _check_reason(self) -> Self:
        """Require either `reason` or `untested`."""
        if bool(self.reason) == bool(self.untested):
            needs = (
                "needs either reason (no run can decide the claim) or untested (none"
                " does yet)"
            )
            refuse(at((), [f"{needs}, found {'both' if self.reason else 'neither'}"]))
        return self

    def judge(self, evidence: Evidence) -> LedgerRow:
        return self.ledger_row(Verdict.NOT_TESTABLE, reason=self.reason)
