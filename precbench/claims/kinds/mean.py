"""A printed mean: alone, or with all others of one draw of the data."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, ClassVar, Literal, NamedTuple, Self

import numpy as np
import pandas as pd
from pydantic import PositiveInt, model_validator

from precbench.claims.evidence import Evidence, MissingError
from precbench.claims.kinds.kind import MeasuredClaim
from precbench.claims.ledger import LedgerRow
from precbench.claims.verdicts import (
    LEVEL,
    MIN_REPETITIONS,
    MIN_SPLITS,
    Placement,
    PrintedRow,
    Verdict,
    has_spread,
    parse_printed,
    place,
    prediction_half_width,
    sign_test,
)
from precbench.core.errors import InputError
from precbench.core.yaml.models import at, refuse


class MeanClaim(MeasuredClaim):
    """A printed number from one draw of the data, or from a few; we have many draws."""

    number_unless: ClassVar = ()

    kind: Literal["mean"]
    solver: str
    row: str = ""  # cells of one printed row are judged together
    # over many draws: ours should agree to half a unit of the last digit
    averaged: bool = False
    # with `averaged`, a distance that still agrees ("approximately")
    margin: float = 0.0
    # a few draws: the print should lie where a mean of as many of ours would in 95 of
    # 100 cases
    runs: PositiveInt | None = None
    power_of_ten: int = 0  # that the print leaves out; a power above 0 is our choice
    logarithm: bool = False  # whether distances are taken between logarithms
    # first column of the row: the trend is the difference from it
    first_solver: str = ""
    first_printed: str = ""

    @model_validator(mode="after")
    def _check_logarithm(self) -> Self:
        """Refuse `logarithm` where digits are compared."""
        if self.averaged and self.logarithm:
            mistake = "compares the digits of means, not of logarithms: leave one out"
            refuse(at(("averaged",), [mistake]))
        return self

    @property
    def is_one_draw(self) -> bool:
        """Whether the print comes from a single draw of the data."""
        return self.runs is None and not self.averaged

    def scaled(self, printed: str, shift: int = 0) -> float:
        """Return a printed number, or its logarithm for a claim with ``logarithm``.

        `shift` tries a neighbouring power of ten, if the power is our choice (above 0).
        """
        power = self.power_of_ten
        if power > 0:
            power += shift
        value = parse_printed(printed, power).value
        if not self.logarithm:
            return value
        if value <= 0:
            raise InputError(
                f"claim {self.id}: print {printed!r} has no logarithm; leave the key"
                " logarithm out"
            )
        return float(np.log(value))

    def draws(self, evidence: Evidence) -> "_Draws":
        """Return our values by repetition."""
        outcomes = self.results_in(evidence.outcomes)
        values = outcomes.values(
            self.dataset, self.solver, self.metric, self.part, self.checkpoint
        )
        if self.logarithm:
            # log 0 is -inf, with which no verdict is reached
            with np.errstate(divide="ignore"):
                values = np.log(values)
        return _Draws(self, values)

    def judge(self, evidence: Evidence) -> LedgerRow:
        """Judge a mean of many draws by its digits, of a few draws by an interval."""
        cell = self.draws(evidence)
        mean = float(cell.draws.mean())
        measured = np.exp(mean) if self.logarithm else mean
        fields: dict[str, Any] = {"measured": f"{measured:.6g}"}
        if len(cell.draws) < MIN_SPLITS or not np.isfinite(cell.draws).all():
            return cell.undecided(f"needs {MIN_SPLITS} repetitions", **fields)
        distance = abs(self.scaled(self.printed) - mean)
        if self.runs is None:  # the print is a mean over many draws
            unit = parse_printed(self.printed, self.power_of_ten).unit
            rounding = 1e-9 * unit  # of the difference
            holds = distance <= max(self.margin, unit / 2) + rounding
            return cell.ledger_row(*self.judged(holds), **fields)

        limit = prediction_half_width(cell.draws.to_numpy(), self.runs)
        fields["smallest_error"] = cell.relative(limit)
        if distance <= limit:
            return cell.ledger_row(*self.judged(holds=True), **fields)
        trend = _trend(cell, evidence)
        fields["reason"] = (
            f"farther than {limit:.3g}, which chance allows for means of {self.runs};"
            f" {trend.text}"
        )
        return cell.ledger_row(
            *self.judged(holds=False, trend=trend.is_as_printed), **fields
        )

    @classmethod
    def judge_all(
        cls, claims: Sequence[Self], evidence: Evidence
    ) -> Iterator[LedgerRow]:
        """Judge each mean of several draws alone, means of one draw by printed rows.

        A doubt about the solver of a mean of one draw is its verdict.
        """
        yield from super().judge_all([c for c in claims if not c.is_one_draw], evidence)
        cells = []
        for claim in claims:
            if not claim.is_one_draw:
                continue
            try:
                cell = claim.draws(evidence)
                doubts = [*claim.doubts(evidence).values()]
            except MissingError as missing:
                yield claim.ledger_row(Verdict.NO_DATA, reason=str(missing))
                continue
            if doubts:
                yield cell.ledger_row(doubts[0].verdict, reason=doubts[0].reason)
            else:
                cells.append(cell)
        yield from _judge_rows(cells, evidence)


class _Draws(NamedTuple):
    """A claim about a mean, with our draws (logarithms, for a claim with that key)."""

    claim: MeanClaim
    draws: pd.Series  # by repetition

    @property
    def column(self) -> tuple[str, ...]:
        """The column of the printed table in which the mean stands."""
        return (
            self.claim.experiment,
            self.claim.dataset,
            self.claim.solver,
            self.claim.part,
        )

    def relative(self, error: float) -> float | None:
        """Return an error as a share of our mean; None if the mean is 0."""
        if self.claim.logarithm:  # an error of e multiplies the mean by exp(e)
            return float(np.expm1(error))
        mean = float(self.draws.mean())
        return error / abs(mean) if mean != 0 else None

    def ledger_row(
        self, verdict: Verdict, deviations: Iterable[str] = (), **other: Any
    ) -> LedgerRow:
        """Return the row of the ledger with median and quartiles of our draws."""
        fields: dict[str, Any] = {"runs": len(self.draws)}
        if fields["runs"] and np.isfinite(self.draws).all():
            quartiles = np.quantile(self.draws, [0.25, 0.5, 0.75])
            if self.claim.logarithm:
                quartiles = np.exp(quartiles)
            lower, median, upper = quartiles
            fields["measured"] = f"{median:.6g}"
            fields["spread"] = f"{lower:.4g} to {upper:.4g}"
        return self.claim.ledger_row(verdict, deviations, **fields | other)

    def undecided(self, reason: str, **other: Any) -> LedgerRow:
        """Return the row of the ledger if draws are too few or unsuitable."""
        return self.ledger_row(Verdict.INCONCLUSIVE, reason=reason, **other)

    @property
    def obstacle(self) -> str:
        """Why a printed number cannot be placed among the draws; "" if it can."""
        if len(self.draws) < MIN_REPETITIONS:
            return f"needs {MIN_REPETITIONS} repetitions"
        if not np.isfinite(self.draws).all():
            return "a repetition has no finite value"
        if not has_spread(self.draws.to_numpy()):
            return "half of the repetitions are equal"
        return ""


def _judge_rows(cells: Sequence[_Draws], evidence: Evidence) -> Iterator[LedgerRow]:
    """Judge means of one draw by their printed rows, if all have draws in common."""
    placeable = []
    for cell in cells:
        if cell.obstacle:
            yield cell.undecided(cell.obstacle)
        else:
            placeable.append(cell)
    if not placeable:
        return
    # a row for each repetition that all cells have, a column for each cell
    common = pd.concat([cell.draws for cell in placeable], axis=1, join="inner")
    if len(common) < MIN_REPETITIONS:
        reason = f"needs {MIN_REPETITIONS} repetitions that all cells have"
        yield from (cell.undecided(reason) for cell in placeable)
        return
    by_row: dict[str, list[_Draws]] = {}
    for i, cell in enumerate(placeable):
        name = cell.claim.row or cell.claim.id  # a mean without a row stands alone
        with_common_draws = cell._replace(draws=common.iloc[:, i])
        by_row.setdefault(name, []).append(with_common_draws)
    yield from _judge_comparable(list(by_row.values()), evidence)


def _judge_comparable(
    rows: Sequence[Sequence[_Draws]], evidence: Evidence
) -> Iterator[LedgerRow]:
    """Judge cells by how far out their rows lie among the draws that all share."""
    placements = place([_printed_row(row) for row in rows])
    # A power of ten that is our choice is also tried lower by one and higher by one.
    placements_below = place([_printed_row(row, shift=-1) for row in rows])
    placements_above = place([_printed_row(row, shift=1) for row in rows])
    # The columns are looked at in rows that pass; other rows differ anyhow.
    passed: list[_Draws] = []
    for row, placement in zip(rows, placements, strict=True):
        if placement.passes:
            passed += row
    misfits = _misfits(passed)
    for row, placement, below, above in zip(
        rows, placements, placements_below, placements_above, strict=True
    ):
        power = row[0].claim.power_of_ten  # the same for all cells of the row
        ambiguity = _ambiguity(power, below, above) if power > 0 else ""
        for i, cell in enumerate(row):
            misfit = ""
            if power > 0 and cell.claim.logarithm:
                misfit = misfits.get(cell.column, "")
            yield _judge_cell(cell, placement, i, evidence, misfit, ambiguity)


def _ambiguity(power: int, below: Placement, above: Placement) -> str:
    """Return which powers of ten beside ours pass as well; "" if none does."""
    others = []
    if below.passes:
        others.append(f"10^{power - 1}")
    if above.passes:
        others.append(f"10^{power + 1}")
    if not others:
        return ""
    which = " and ".join(others)
    return f"with the power 10^{power}, which is ours; {which} pass as well"


def _printed_row(cells: Sequence[_Draws], shift: int = 0) -> PrintedRow:
    """Return the print of a row, our powers of ten shifted, and our draws."""
    printed = [cell.claim.scaled(cell.claim.printed, shift) for cell in cells]
    return PrintedRow(np.array(printed), np.column_stack([c.draws for c in cells]))


def _misfits(cells: Iterable[_Draws]) -> dict[tuple[str, ...], str]:
    """Return by column why the powers of ten that we chose contradict its numbers."""
    # All measures of a column come from one draw, so that their logarithms must fit
    # each other. `place`, made for rows of a table, tests this fit: each column is
    # given to `place` as a row.
    columns = _columns_with_our_power(cells)
    if not columns:
        return {}
    placements = place([_printed_row(column) for column in columns.values()])
    misfits = {}
    for name, placement in zip(columns, placements, strict=True):
        if not placement.passes:
            p = f"p = {placement.p_of_all:.2g}"
            misfits[name] = f"powers of ten with the others of the column: {p}"
    return misfits


def _columns_with_our_power(
    cells: Iterable[_Draws],
) -> dict[tuple[str, ...], list[_Draws]]:
    """Return the cells of logarithms of columns in which we chose a power of ten."""
    columns: dict[tuple[str, ...], list[_Draws]] = {}
    for cell in cells:
        if cell.claim.logarithm:
            columns.setdefault(cell.column, []).append(cell)
    return {
        name: column
        for name, column in columns.items()
        if any(cell.claim.power_of_ten > 0 for cell in column)
    }


def _judge_cell(
    cell: _Draws,
    placement: Placement,
    i: int,
    evidence: Evidence,
    misfit: str,
    ambiguity: str,
) -> LedgerRow:
    """Judge the i-th cell of a row by the row's placement, and by our power of ten.

    `misfit` says why our power is wrong, `ambiguity` which other powers pass; "": no
    objection.
    """
    claim = cell.claim
    reason = f"row: p = {placement.p:.2g}, of all rows {placement.p_of_all:.2g}"
    printed = claim.scaled(claim.printed)
    if printed < cell.draws.min():
        reason += "; below all draws"
    elif printed > cell.draws.max():
        reason += "; above all draws"
    error = cell.relative(float(placement.smallest_error[i]))
    if not placement.passes:
        trend = _trend(cell, evidence)
        verdict, deviations = claim.judged(holds=False, trend=trend.is_as_printed)
        reason += f"; {trend.text}"
    elif misfit:
        verdict, deviations = Verdict.NOT_REPRODUCED, []
        reason += f"; {misfit}"
    elif ambiguity:
        verdict, deviations = Verdict.NO_POWER, []
        reason += f"; {ambiguity}"
    else:
        verdict, deviations = claim.judged(holds=True)
    return cell.ledger_row(verdict, deviations, reason=reason, smallest_error=error)


class _Trend(NamedTuple):
    """On which side of the first cell of its row a cell lies."""

    is_as_printed: bool
    text: str  # why


def _trend(cell: _Draws, evidence: Evidence) -> _Trend:
    """Compare a cell with the first of its row, by a sign test over our draws."""
    claim = cell.claim
    if claim.first_solver in ("", claim.solver):
        return _Trend(is_as_printed=False, text="it is the first of its row")
    try:
        first = claim.model_copy(update={"solver": claim.first_solver}).draws(evidence)
    except MissingError:
        text = "the first of its row was not measured"
        return _Trend(is_as_printed=False, text=text)
    own, of_first = cell.draws.align(first.draws, join="inner")
    # Times the sign of the printed difference, draws are larger on the printed side;
    # if the prints are equal, all draws tie.
    difference = claim.scaled(claim.printed) - claim.scaled(claim.first_printed)
    sign = np.sign(difference)
    test = sign_test(sign * own.to_numpy(), sign * of_first.to_numpy())
    is_as_printed = test.p <= LEVEL and len(own) >= MIN_SPLITS
    text = f"on the printed side of the first of its row in {test.wins} of {len(own)}"
    return _Trend(is_as_printed, text)
