"""How long a list should be.

Hits, precision, recall, lift and profit against its length.

Hits are expected from held-out rows, as by ``precbench score``; intervals hold for 95 %
of lists.
"""

import decimal
import hashlib
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from numbers import Real
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Self

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from pydantic import Field, model_validator

from precbench.core.errors import InputError
from precbench.core.files import write_whole
from precbench.core.strict_json import Count, Fields, Number, parse
from precbench.core.text import count
from precbench.model.calibration import Calibration
from precbench.ranking.statistics import expected_total
from precbench.ranking.topk import HeldOut, TopK, resolve_k, sums_at
from precbench.report.sheet import Sheet
from precbench.report.summary_tables import three_digits
from precbench.report.table import Cell, Table

if TYPE_CHECKING:
    from matplotlib.figure import SubFigure

_FILE = "length.json"
_STEPS = 20  # lengths for each factor of ten, rounded to two digits
_SHOWN = (1, 2, 5)  # first digits of the lengths that a table shows
_AROUND = 20.0  # a table reaches from k / 20 to 20 k
_MOST_WORTH = 1e15  # of a gain or cost: squares and sums over rows stay finite
# inches: heights of a panel and below all, width
_PANEL, _X_LABEL, _WIDTH = 2.6, 0.3, 6.4
_SIX_DIGITS = decimal.Context(prec=6, rounding=decimal.ROUND_DOWN)  # significant ones


@dataclass(frozen=True)
class Worth:
    """What a hit gains and a row of the list costs.

    Attributes
    ----------
    gain : float or None
        Gain of each hit; None where `column` holds the gains.
    column : str or None
        Name of the column with the amounts of `HeldOut`.
    cost : float
        Cost of each row, hit or not.
    """

    gain: float | None = None
    column: str | None = None
    cost: float = 0.0

    def __post_init__(self) -> None:
        # Require numbers in range, and either a gain of each hit or a column of gains.
        for name, value in (("gain", self.gain), ("cost", self.cost)):
            if value is not None and not (
                isinstance(value, Real) and 0 <= value <= _MOST_WORTH
            ):
                raise InputError(
                    f"{name} must be a number from 0 to {_MOST_WORTH:g}, found"
                    f" {value!r}"
                )
        if (self.gain is None) == (self.column is None):
            raise InputError(
                "gain: found"
                f" {'a number and a column' if self.column else 'a cost alone'}; give"
                " either one number for all hits, or a column with a number for"
                " each row"
            )


class Profit(Fields):
    """The most profitable length.

    Attributes
    ----------
    gain, column, cost
        See `Worth`.
    best, low, high : int
        The length with the largest expected profit, 0 if no length pays; and the
        shortest and the longest length whose profit does not differ significantly (5 %)
        from the largest.
    profit, profit_low, profit_high : float
        Expected for a list of length `best`, and the interval that holds 95 % of such
        lists.
    """

    gain: Number | None
    column: str | None
    cost: Number
    best: Count
    low: Count
    high: Count
    profit: Number
    profit_low: Number
    profit_high: Number


_CURVE = ("length", "hits", "low", "high", "precision", "recall", "lift")
_OF_PROFIT = ("profit", "profit_low", "profit_high")


class Length(Fields):
    """The expected content of the top of a list of new rows, by its length.

    Attributes
    ----------
    method : str
    rows : int
        New rows to choose from.
    splits : int
    k : list of int
        The lengths that were asked for.
    curve : dict of str to list
        By column, with one value for each ``length``: ``hits``, from the mean of the
        calibrated probabilities at the top of each held-out list, with ``low`` and
        ``high``, see `precbench.model.calibration.Calibration.unseen`; ``precision``
        (hits by length), ``recall`` and ``lift``; with a gain ``profit``,
        ``profit_low`` and ``profit_high``.
    profit : Profit or None
    """

    method: str
    rows: Annotated[Count, Field(ge=1)]
    splits: Count
    k: Annotated[list[Count], Field(min_length=1)]
    curve: dict[str, list[Number]]
    profit: Profit | None = None

    @model_validator(mode="after")
    def _is_whole(self) -> Self:
        # Require all columns, of equal length, and lengths of at least 1 that include
        # `k`.
        names = _CURVE + (_OF_PROFIT if self.profit else ())
        sizes = {len(column) for column in self.curve.values()}
        if not self.curve.keys() >= {*names} or len(sizes) != 1:
            raise ValueError(
                f"curve: expected columns {', '.join(names)} of equal length"
            )
        if missing := {*self.k} - {*self.curve["length"]}:  # the caller says what to do
            raise ValueError(
                f"curve: the column length has no row for k = {min(missing):g}"
            )
        if (least := min(self.curve["length"])) < 1:
            raise ValueError(
                f"curve: the column length has {least:g}, which is below 1"
            )
        return self

    @property
    def table(self) -> pd.DataFrame:  # `curve`, a row for each length
        return pd.DataFrame(self.curve)


class _Stored(Length):  # the content of length.json
    of: str  # digest of the results
    tables: list[Table] = Field(default_factory=list)
    command: str = ""


def measure_length(
    lists: Sequence[HeldOut],
    test_share: float,
    k: Sequence[TopK],
    n_pos: int,
    n_rows: int,
    *,
    method: str = "",
    list_rows: int | None = None,
    worth: Worth | None = None,
) -> Length:
    """Return what the top of a list of `list_rows` new rows is expected to hold, by its length.

    `lists` are held-out parts, a `test_share` each, of a file of `n_rows` rows, `n_pos`
    positives.
    """
    rows = list_rows or n_rows  # of the new list
    calibration = Calibration.fit(lists, test_share)
    n_held = calibration.held  # rows of a held-out list, on average
    n_expected = round(n_pos * rows / n_rows)  # positives in the new list
    # each once
    k_rows = list(dict.fromkeys(resolve_k(length, n_expected, rows) for length in k))
    # The shortest round length: so many new rows as one held-out row stands for.
    lengths = np.array(
        sorted({*k_rows, *_round_lengths(math.ceil(rows / n_held), rows)})
    )
    pooled, single = _precisions_of_lists(calibration, lists, lengths / rows)
    precision = pooled.mean(axis=0)
    hits = [
        calibration.unseen(by_curve, n, rows)
        for by_curve, n in zip(
            np.vstack([precision, single]).T, lengths.tolist(), strict=True
        )
    ]
    by_chance = precision[-1]  # of the whole list
    recall, lift = precision * lengths / (by_chance * rows), precision / by_chance
    # `hits` becomes three columns: the expected number, and the ends of its interval.
    curve = dict(
        zip(
            _CURVE, (lengths, *np.transpose(hits), precision, recall, lift), strict=True
        )
    )
    profit = None
    if worth is not None:
        # of each list
        depths = np.array([lengths * (len(held.y) / rows) for held in lists])
        amounts = _Amounts(lists, worth, depths, lengths * (n_held / rows), test_share)
        profit, profit_columns = _profit(amounts, curve)
        curve |= profit_columns
    curve = {name: values.tolist() for name, values in curve.items()}
    return Length(
        method=method,
        rows=rows,
        splits=len(lists),
        k=k_rows,
        curve=curve,
        profit=profit,
    )


def _precisions_of_lists(
    calibration: Calibration, lists: Sequence[HeldOut], shares: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return mean probabilities at the top of each list, by list and by share of its rows.

    First those by the pooled curve, then those by the curve of each list. Each list has
    a top of its own: the top of all lists together would leave out a list whose scores
    are low.
    """
    pooled, single = [], []
    for place, held in enumerate(lists):
        depths = shares * len(held.y)
        pooled_curve, *curves = calibration.curves(held.scores)
        pooled.append(sums_at(pooled_curve, held.scores, depths) / depths)
        single.append(sums_at(curves[place], held.scores, depths) / depths)
    return np.array(pooled), np.array(single)


def share_of_list(k: TopK, rows: int) -> float | str:
    """Return a share `k` as it is, a count as a share of `rows`, for lists of another length.

    Raises
    ------
    InputError
        If `k` exceeds `rows`.
    """
    if not isinstance(k, int):
        return k
    resolve_k(k, rows, rows)  # only to raise the error
    # rounded down, as `resolve_k` rounds up
    return f"{_SIX_DIGITS.divide(100 * k, rows):f} %"


def _round_lengths(least: int, most: int) -> list[int]:
    """Return round numbers from `least` to `most`, in no order, and `most`.

    Below 10 all are round; then each is some 12 % above the one before.
    """
    powers = np.arange(_STEPS * math.log10(most) + 1)
    numbers = {round(float(f"{10 ** (power / _STEPS):.2g}")) for power in powers}
    return [*(number for number in numbers if least <= number < most), most]


class _Amounts:
    """Gains of the held-out rows, added up from the top of each list."""

    def __init__(
        self,
        lists: Sequence[HeldOut],
        worth: Worth,
        depths: NDArray[np.float64],  # by list and length: rows at the top
        tested: NDArray[np.float64],  # by length: the mean of these depths
        test_share: float,
    ):
        # Add up, by list and length, the gains of the first rows, and the squares for
        # variances.
        self.worth, self.test_share = worth, test_share
        self.depths = np.pad(depths, ((0, 0), (1, 0)))  # index 0: no rows at all
        self.tested = np.append(0.0, tested)
        sums, squares, total, n_hits = [], [], 0.0, 0
        for held, list_depths in zip(lists, self.depths, strict=True):
            amounts: Any = held.amounts if worth.gain is None else worth.gain
            gains = np.where(held.y > 0, amounts, 0.0)  # only hits gain
            sums.append(sums_at(gains, held.scores, list_depths))
            squares.append(sums_at(gains**2, held.scores, list_depths))
            total += float((gains**2).sum())
            n_hits += int(np.count_nonzero(held.y > 0))
        self.sums, self.squares = np.array(sums), np.array(squares)
        self.mean_square = total / n_hits  # of the gain of a hit

    def expected(
        self, start: int, end: int, k: int | None
    ) -> tuple[float, float, float]:
        """Return the expected gain of the rows between two lengths, and its interval (low, high).

        `start` and `end` index the lengths, 0 for no rows. The gain is the total of `k`
        new rows there, or if `k` is None the mean of one row.
        """
        n = self.depths[:, end] - self.depths[:, start]  # rows between, in each list
        means = (self.sums[:, end] - self.sums[:, start]) / n
        tested = self.tested[end] - self.tested[start]  # the mean of `n`
        # The variance of a row's gain: its mean square less its squared mean
        variance = float(np.mean((self.squares[:, end] - self.squares[:, start]) / n))
        variance -= float(means.mean()) ** 2
        # At least as if these rows and one more had half a hit: a new row may gain
        # where none did.
        least = self.mean_square * 0.5 / (tested * len(n) + 1)
        return expected_total(means, max(variance, least), tested, self.test_share, k)


def _profit(amounts: _Amounts, curve: dict[str, Any]) -> tuple[Profit, dict[str, Any]]:
    # Return the most profitable length, and the columns `_OF_PROFIT` of `Length.curve`:
    # the profit (gain less cost) of each length, and the ends of its interval.
    worth, lengths = amounts.worth, np.append(0, curve["length"])  # 0: no list at all
    # hits differ in gain; `gains`: mean of the first rows, by length
    if worth.gain is None:
        gains = (amounts.sums / np.where(amounts.depths > 0, amounts.depths, 1)).mean(
            axis=0
        )
        totals = [
            amounts.expected(0, end, int(n)) for end, n in enumerate(curve["length"], 1)
        ]
        ends = np.transpose(totals)[1:]  # low and high, without the mean
    else:  # all hits gain the same
        gains = worth.gain * np.append(0.0, curve["precision"])
        ends = worth.gain * np.array([curve["low"], curve["high"]])
    costs = worth.cost * lengths
    profit = gains * lengths - costs
    low, high = (np.append(0.0, end) - costs for end in ends)  # 0.0: of no list
    best = int(np.argmax(profit))
    # Indices of the lengths whose profit is not significantly lower (`sorted`: shorter
    # one first)
    alike = [
        i
        for i in range(len(lengths))
        if i == best or _is_alike(amounts, *sorted((i, best)))
    ]
    most_profitable = Profit(
        gain=None if worth.gain is None else float(worth.gain),
        column=worth.column,
        cost=float(worth.cost),
        best=int(lengths[best]),
        low=int(lengths[min(alike)]),
        high=int(lengths[max(alike)]),
        profit=float(profit[best]),
        profit_low=float(low[best]),
        profit_high=float(high[best]),
    )
    columns = (values[1:] for values in (profit, low, high))  # without the empty list
    return most_profitable, dict(zip(_OF_PROFIT, columns, strict=True))


def _is_alike(amounts: _Amounts, start: int, end: int) -> bool:
    """Return whether two lengths may pay alike.

    The rows between them may gain what they cost.
    """
    _, low, high = amounts.expected(start, end, None)
    return low <= amounts.worth.cost <= high


def length_table(length: Length) -> Table:
    """Return the lengths around `k` as a table, the most profitable one bold."""
    best = length.profit.best if length.profit else 0
    least, most = min(length.k) / _AROUND, max(length.k) * _AROUND
    always_shown = {*length.k, best}  # of the others 1, 2, 5, 10, 20 ... near k
    rows = []
    for row in length.table.to_dict("records"):
        n = int(row["length"])
        leading = n / 10 ** int(math.log10(n))  # 2 of 200, 2.5 of 250
        if n not in always_shown and not (least <= n <= most and leading in _SHOWN):
            continue
        hits = f"{row['hits']:,.1f} ({row['low']:,.0f} to {row['high']:,.0f})"
        profit_or_lift = f"{row['lift']:.2f}"
        if length.profit:
            ends = f"{_money(row['profit_low'])} to {_money(row['profit_high'])}"
            profit_or_lift = f"{_money(row['profit'])} ({ends})"
        texts = [
            hits,
            f"{row['precision']:.3f}",
            f"{row['recall']:.3f}",
            profit_or_lift,
        ]
        mark = " (k)" if n in length.k else ""
        rows.append([Cell(f"{n:,}{mark}", bold=n == best), *map(Cell, texts)])
    names = [
        "length",
        "hits",
        "precision",
        "recall",
        "profit" if length.profit else "times chance",
    ]
    note = (
        f"Estimated for {length.method} on held-out rows of"
        f" {count(length.splits, 'split')}; in brackets: the range of 95 % of such"
        " lists. Precision is hits divided by length."
    )
    title = f"Hits by length of the list, from {length.rows:,} new rows"
    return Table(title, names, rows, [note], best="most profitable")


def _money(value: float) -> str:  # whole from 100 on, else three digits
    return f"{value:,.0f}" if abs(value) >= 100 else three_digits(value)


def profit_text(length: Length) -> str:
    """Return the most profitable length in words; "" if no gain was given."""
    profit = length.profit
    if profit is None:
        return ""
    gain = (
        f"a gain of {profit.gain:g}"
        if profit.column is None
        else f"gains by {profit.column}"
    )
    terms = f"with {gain} for each hit and a cost of {profit.cost:g} for each row"
    if profit.best == 0:
        text = f"No length pays {terms}"
        # the longest list whose profit does not differ significantly from 0
        if profit.high:
            text += f"; up to {count(profit.high, 'row')} may lose nothing"
    else:
        ends = f"{_money(profit.profit_low)} to {_money(profit.profit_high)}"
        text = (
            f"The most profitable length is {profit.best:,}, {terms}: about "
            f"{_money(profit.profit)} ({ends} in 95 % of such lists)"
        )
        if profit.low < profit.high:
            text += (
                f"; any length from {profit.low:,} to {profit.high:,} may be equally"
                " profitable"
            )
    return f"{text}."


def write_length(
    length: Length, folder: Path, tables: Iterable[Table] = (), command: str = ""
) -> None:
    """Write ``length.json`` into a results folder, with `tables` and `command` for the report."""
    stored = _Stored(
        of=_digest(folder), tables=[*tables], command=command, **dict(length)
    )
    write_whole({folder / _FILE: stored.model_dump_json()})


def read_length(folder: Path) -> tuple[Length, list[Table], str] | None:
    """Return what `write_length` stored.

    None without the file, or if the results have changed.
    """
    path = folder / _FILE
    if not path.is_file():
        return None
    try:
        stored = parse(path.read_bytes(), _Stored)  # a kind of `Length`
    except ValueError as error:
        raise InputError(
            f"{path} is damaged: {error}; run precbench compare again"
        ) from None
    # `of`: the digest of the results when written
    is_current = stored.of == _digest(folder)
    return (stored, stored.tables, stored.command) if is_current else None


def _digest(folder: Path) -> str:  # of the results in a folder
    return hashlib.sha256((folder / "results.csv").read_bytes()).hexdigest()


def length_sheet(length: Length) -> Sheet:
    """Return a figure of hits by length, and of profit below if a gain is given."""
    caption = (
        f"Of {length.method}, from held-out rows of {count(length.splits, 'split')}."
        " Bands: 95 % of such lists; grey line: by chance; vertical: the lengths asked"
        f" for{'; grey: may be as profitable' if length.profit else ''}."
    )
    return Sheet(
        f"A list from {length.rows:,} new rows",
        draw=partial(_draw, length=length),
        width=_WIDTH,
        height=(2 if length.profit else 1) * _PANEL + _X_LABEL,
        caption=[caption],
    )


def _draw(figure: "SubFigure", length: Length) -> None:
    # Draw hits, and profit in a panel below, against the length, up to four times the
    # longest k.
    most = min(4 * max(length.k), length.rows)
    curve = length.table[length.table["length"] <= most]
    x, names = curve["length"], ["hits", "profit"] if length.profit else ["hits"]
    panels = figure.subplots(len(names), 1, sharex=True, squeeze=False)[:, 0]
    for axes, name in zip(panels, names, strict=True):
        low, high = ("low", "high") if name == "hits" else ("profit_low", "profit_high")
        # the interval
        axes.fill_between(x, curve[low], curve[high], alpha=0.2, linewidth=0)
        axes.plot(x, curve[name])
        axes.set_ylabel(name)
        for k in length.k:
            axes.axvline(k, color="0.5", linewidth=0.8, zorder=1)
    by_chance = length.table["precision"].iloc[-1]  # that of the whole list
    panels[0].plot(x, x * by_chance, color="0.5", linewidth=0.8)
    panels[0].set_ylim(bottom=0)
    if length.profit:  # shade the lengths that may be equally profitable
        panels[1].axvspan(
            length.profit.low, min(length.profit.high, most), color="0.9", zorder=0
        )
    panels[-1].set_xlim(0, most)
    panels[-1].set_xlabel("rows in the list")
