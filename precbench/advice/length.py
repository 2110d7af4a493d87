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
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple, Self

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from pydantic import Field, model_validator

from precbench.core.errors import InputError
from precbench.core.files import write_whole
from precbench.core.strict_json import Count, Fields, Number, parse
from precbench.core.text import count
from precbench.model.calibration import Calibration
from precbench.ranking.statistics import Interval, expected_hits, expected_total
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
# A greater gain or cost is refused: squares and sums over rows stay finite.
_MOST_WORTH = 1e15
# Inches in a figure: heights of a panel and of the label below all, width.
_PANEL = 2.6
_X_LABEL = 0.3
_WIDTH = 4.0
# Six significant digits.
_SIX_DIGITS = decimal.Context(prec=6, rounding=decimal.ROUND_DOWN)


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
        """Require numbers in range, and either a gain of each hit or a column."""
        _require_amount("gain", self.gain)
        _require_amount("cost", self.cost)
        if (self.gain is None) == (self.column is None):
            excess = "a number and a column" if self.column else "a cost alone"
            raise InputError(
                f"gain: found {excess}; give either one number for all hits, or a"
                " column with a number for each row"
            )


def _require_amount(name: str, value: float | None) -> None:
    if value is None:
        return
    if not isinstance(value, Real) or not 0 <= value <= _MOST_WORTH:
        raise InputError(
            f"{name} must be a number from 0 to {_MOST_WORTH:g}, found {value!r}"
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
        (hits by length), ``recall`` and ``lift``; ``recall_low`` and ``recall_high``,
        the interval of the share of a new list's hits that its top holds (files of
        earlier versions lack both); with a gain ``profit``, ``profit_low`` and
        ``profit_high``.
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
        """Require all columns of one size, and lengths from 1 that include `k`."""
        names = (*_CURVE, *_OF_PROFIT) if self.profit else _CURVE
        sizes = {len(column) for column in self.curve.values()}
        if not self.curve.keys() >= set(names) or len(sizes) != 1:
            raise ValueError(
                f"curve: expected columns {', '.join(names)} of equal length"
            )
        lengths = self.curve["length"]
        missing = set(self.k) - set(lengths)
        if missing:
            raise ValueError(
                f"curve: the column length has no row for k = {min(missing):g}"
            )
        if min(lengths) < 1:
            raise ValueError(
                f"curve: the column length has {min(lengths):g}, which is below 1"
            )
        return self

    @property
    def table(self) -> pd.DataFrame:
        """The curve, with a row for each length."""
        return pd.DataFrame(self.curve)


class _Stored(Length):
    """The content of length.json; `of` is the digest of the results when written."""

    of: str
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
    """Return what the top of a list of new rows is expected to hold, by its length.

    `lists` are held-out parts, a `test_share` each, of a file of `n_rows` rows, `n_pos`
    positives. The new list has `list_rows`, by default as many as the file.
    """
    rows = list_rows or n_rows
    calibration = Calibration.fit(lists, test_share)
    n_held = calibration.held  # rows of a held-out list, on average
    n_expected = round(n_pos * rows / n_rows)  # positives in the new list
    # Each length once, in the order of `k`.
    k_rows = list(dict.fromkeys(resolve_k(length, n_expected, rows) for length in k))
    # The shortest round length: so many new rows as one held-out row stands for.
    shortest = math.ceil(rows / n_held)
    lengths = np.array(sorted({*k_rows, *_round_lengths(shortest, rows)}))
    by_list = _precisions_of_lists(calibration, lists, lengths / rows)
    precision = by_list.pooled.mean(axis=0)
    hits = [
        calibration.unseen(
            np.append(precision[i], by_list.single[:, i]), int(length), rows
        )
        for i, length in enumerate(lengths)
    ]
    by_chance = precision[-1]  # of the whole list
    curve: dict[str, Any] = {
        "length": lengths,
        "hits": np.array([interval.mean for interval in hits]),
        "low": np.array([interval.low for interval in hits]),
        "high": np.array([interval.high for interval in hits]),
        "precision": precision,
        "recall": precision * lengths / (by_chance * rows),
        "lift": precision / by_chance,
    }
    shares_of_hits = _recalls(lists, lengths / rows, test_share, curve, n_held / rows)
    curve["recall_low"] = np.array([share.low for share in shares_of_hits])
    curve["recall_high"] = np.array([share.high for share in shares_of_hits])
    curve["recall_low"][-1] = 1.0  # the whole list has all its hits
    profit = None
    if worth is not None:
        # Rows at the top of each held-out list, by length.
        depths = np.array([lengths * (len(held.y) / rows) for held in lists])
        tested = lengths * (n_held / rows)
        amounts = _Amounts(lists, worth, depths, tested, test_share)
        by_length = _profit_by_length(amounts, curve)
        profit = _most_profitable(amounts, curve, by_length)
        curve["profit"] = by_length.profit[1:]
        curve["profit_low"] = by_length.low[1:]
        curve["profit_high"] = by_length.high[1:]
    return Length(
        method=method,
        rows=rows,
        splits=len(lists),
        k=k_rows,
        curve={name: values.tolist() for name, values in curve.items()},
        profit=profit,
    )


class _PrecisionsOfLists(NamedTuple):
    """Mean probabilities at the top of each list, by list and by length.

    Attributes
    ----------
    pooled : ndarray
        By the curve of all lists.
    single : ndarray
        By the curve of each list.
    """

    pooled: NDArray[np.float64]
    single: NDArray[np.float64]


def _precisions_of_lists(
    calibration: Calibration, lists: Sequence[HeldOut], shares: NDArray[np.float64]
) -> _PrecisionsOfLists:
    """Return mean probabilities at the top of each list, by share of its rows.

    Each list has a top of its own: the top of all lists together would leave out a list
    whose scores are low.
    """
    pooled, single = [], []
    for place, held in enumerate(lists):
        depths = shares * len(held.y)
        pooled_curve, *curves = calibration.curves(held.scores)
        pooled.append(sums_at(pooled_curve, held.scores, depths) / depths)
        single.append(sums_at(curves[place], held.scores, depths) / depths)
    return _PrecisionsOfLists(np.array(pooled), np.array(single))


def _recalls(
    lists: Sequence[HeldOut],
    shares: NDArray[np.float64],
    test_share: float,
    curve: dict[str, Any],
    share_of_lists: float,
) -> list[Interval]:
    """Return the share of its hits that the top of a new list holds, by length.

    Each hit of a list is or is not in its top: the intervals are those of
    `expected_hits`, with the hits of a list in place of its top rows. `shares` are the
    lengths as shares of the rows.
    """
    n_hits = [np.count_nonzero(held.y > 0) for held in lists]
    recalls = np.array(
        [
            sums_at(held.y > 0, held.scores, shares * len(held.y)) / n
            for held, n in zip(lists, n_hits, strict=True)
        ]
    )
    n_expected = max(1, round(float(curve["hits"][-1])))  # in the whole new list
    intervals = []
    for of_lists, expected in zip(recalls.T, curve["recall"], strict=True):
        hits = expected_hits(
            of_lists,
            float(np.mean(n_hits)),
            test_share,
            n_expected,
            share_of_lists=share_of_lists,
        )
        low = min(hits.low / n_expected, float(expected))
        high = max(hits.high / n_expected, float(expected))
        intervals.append(Interval(float(expected), low, high))
    return intervals


def share_of_list(k: TopK, rows: int) -> float | str:
    """Return a share `k` as it is, and a count as a share of `rows`.

    Raises
    ------
    InputError
        If `k` exceeds `rows`.
    """
    if not isinstance(k, int):
        return k
    resolve_k(k, rows, rows)  # only to raise the error
    # Rounded down, as `resolve_k` rounds up.
    percent = _SIX_DIGITS.divide(100 * k, rows)
    return f"{percent:f} %"


def _round_lengths(least: int, most: int) -> list[int]:
    """Return round numbers from `least` to `most`, and `most` itself, in no order.

    Below 10 all numbers are round; then each is some 12 % above the one before.
    """
    numbers = {most}
    for step in np.arange(_STEPS * math.log10(most) + 1):
        two_digits = f"{10 ** (step / _STEPS):.2g}"
        number = round(float(two_digits))
        if least <= number < most:
            numbers.add(number)
    return list(numbers)


class _Amounts:
    """Gains of the held-out rows, added up from the top of each list.

    Attributes
    ----------
    depths : ndarray
        Rows at the top, by list and length. Length 0, of no rows at all, is the first.
    tested : ndarray
        By length, the mean of these depths.
    sums, squares : ndarray
        By list and length, the sums of the first rows' gains, and of their squares.
    mean_square : float
        Of the gain of a hit.
    """

    def __init__(
        self,
        lists: Sequence[HeldOut],
        worth: Worth,
        depths: NDArray[np.float64],
        tested: NDArray[np.float64],
        test_share: float,
    ):
        """Add up gains; `depths` and `tested` are without the length 0."""
        self.worth = worth
        self.test_share = test_share
        self.depths = np.pad(depths, ((0, 0), (1, 0)))
        self.tested = np.append(0.0, tested)
        sums = []
        squares = []
        total_square = 0.0
        n_hits = 0
        for held, list_depths in zip(lists, self.depths, strict=True):
            amounts: Any = held.amounts if worth.gain is None else worth.gain
            gains = np.where(held.y > 0, amounts, 0.0)  # only hits gain
            sums.append(sums_at(gains, held.scores, list_depths))
            squares.append(sums_at(gains**2, held.scores, list_depths))
            total_square += float((gains**2).sum())
            n_hits += int(np.count_nonzero(held.y > 0))
        self.sums = np.array(sums)
        self.squares = np.array(squares)
        self.mean_square = total_square / n_hits

    def expected(self, start: int, end: int, k: int | None) -> Interval:
        """Return the expected gain of the rows between two lengths.

        `start` and `end` index the lengths, 0 for no rows. The gain is the total of `k`
        new rows there, or if `k` is None the mean of one row.
        """
        n_between = self.depths[:, end] - self.depths[:, start]  # rows, by list
        mean_between = self.tested[end] - self.tested[start]
        means = (self.sums[:, end] - self.sums[:, start]) / n_between
        mean_squares = (self.squares[:, end] - self.squares[:, start]) / n_between
        # The variance of a row's gain: its mean square less its squared mean.
        variance = float(np.mean(mean_squares)) - float(means.mean()) ** 2
        # At least as if all these rows and one more had half a hit: a new row may gain
        # where none did.
        n_rows = mean_between * len(n_between) + 1
        least = self.mean_square * 0.5 / n_rows
        spread = max(variance, least)
        return expected_total(means, spread, mean_between, self.test_share, k)


class _ProfitByLength(NamedTuple):
    """The profit of each length, 0 first, and the ends of its interval."""

    profit: NDArray[np.float64]
    low: NDArray[np.float64]
    high: NDArray[np.float64]


def _profit_by_length(amounts: _Amounts, curve: dict[str, Any]) -> _ProfitByLength:
    """Return the profit of each length: the gain of the hits less the cost of the rows.

    `curve` has the columns of `Length.curve`, which lack the length 0.
    """
    gain = amounts.worth.gain
    if gain is None:  # each row has a gain of its own
        no_rows_as_one = np.where(amounts.depths > 0, amounts.depths, 1)
        gain_of_row = (amounts.sums / no_rows_as_one).mean(axis=0)
        totals = [
            amounts.expected(0, end, int(length))
            for end, length in enumerate(curve["length"], 1)
        ]
        gain_low = np.array([total.low for total in totals])
        gain_high = np.array([total.high for total in totals])
    else:
        gain_of_row = gain * np.append(0.0, curve["precision"])
        gain_low = gain * curve["low"]
        gain_high = gain * curve["high"]
    lengths = np.append(0, curve["length"])
    costs = amounts.worth.cost * lengths
    return _ProfitByLength(
        profit=gain_of_row * lengths - costs,
        low=np.append(0.0, gain_low) - costs,
        high=np.append(0.0, gain_high) - costs,
    )


def _most_profitable(
    amounts: _Amounts, curve: dict[str, Any], by_length: _ProfitByLength
) -> Profit:
    """Return the most profitable length, and those that are not significantly worse."""
    lengths = np.append(0, curve["length"])
    best = int(np.argmax(by_length.profit))
    alike = []  # indices of lengths
    for i in range(len(lengths)):
        shorter = min(i, best)
        longer = max(i, best)
        if i == best or _is_alike(amounts, shorter, longer):
            alike.append(i)
    worth = amounts.worth
    return Profit(
        gain=None if worth.gain is None else float(worth.gain),
        column=worth.column,
        cost=float(worth.cost),
        best=int(lengths[best]),
        low=int(lengths[min(alike)]),
        high=int(lengths[max(alike)]),
        profit=float(by_length.profit[best]),
        profit_low=float(by_length.low[best]),
        profit_high=float(by_length.high[best]),
    )


def _is_alike(amounts: _Amounts, start: int, end: int) -> bool:
    """Return whether two lengths may pay alike.

    The rows between them may gain what they cost.
    """
    gain_of_row = amounts.expected(start, end, None)
    return gain_of_row.low <= amounts.worth.cost <= gain_of_row.high


def length_table(length: Length) -> Table:
    """Return the lengths around `k` as a table, the most profitable one bold."""
    rows = [
        _length_cells(row, length)
        for row in length.table.to_dict("records")
        if _is_shown(int(row["length"]), length)
    ]
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


def _is_shown(n: int, length: Length) -> bool:
    """Return whether the table shows `n`: k, the best length, or 1, 2, 5 ... near k."""
    if n in length.k or (length.profit and n == length.profit.best):
        return True
    is_near_k = min(length.k) / _AROUND <= n <= max(length.k) * _AROUND
    leading = n / 10 ** int(math.log10(n))  # 2 of 200, 2.5 of 250
    return is_near_k and leading in _SHOWN


def _length_cells(row: dict[Any, Any], length: Length) -> list[Cell]:
    """Return a row of the table, made of a row of the curve."""
    n = int(row["length"])
    mark = " (k)" if n in length.k else ""
    is_best = length.profit is not None and n == length.profit.best
    profit_or_lift = f"{row['lift']:.2f}"
    if length.profit:
        ends = f"{_money(row['profit_low'])} to {_money(row['profit_high'])}"
        profit_or_lift = f"{_money(row['profit'])} ({ends})"
    return [
        Cell(f"{n:,}{mark}", bold=is_best),
        Cell(f"{row['hits']:,.1f} ({row['low']:,.0f} to {row['high']:,.0f})"),
        Cell(f"{row['precision']:.3f}"),
        Cell(f"{row['recall']:.3f}"),
        Cell(profit_or_lift),
    ]


def _money(value: float) -> str:
    """Format an amount of 100 or more as a whole number, others in three digits."""
    return f"{value:,.0f}" if abs(value) >= 100 else three_digits(value)


def profit_text(length: Length) -> str:
    """Return the most profitable length in words; "" if no gain was given."""
    profit = length.profit
    if profit is None:
        return ""
    gain = f"gains by {profit.column}"
    if profit.column is None:
        gain = f"a gain of {profit.gain:g}"
    terms = f"with {gain} for each hit and a cost of {profit.cost:g} for each row"
    if profit.best == 0:
        text = f"No length pays {terms}"
        if profit.high:  # whose profit does not differ significantly from 0
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
    """Write ``length.json`` into a results folder.

    The report shows `tables` and `command` beside it.
    """
    stored = _Stored(
        of=digest_of_results(folder),
        tables=list(tables),
        command=command,
        **dict(length),
    )
    write_whole({folder / _FILE: stored.model_dump_json()})


class StoredLength(NamedTuple):
    """A forecast as `write_length` stored it."""

    length: Length
    tables: list[Table]
    command: str


def read_length(folder: Path) -> StoredLength | None:
    """Return a stored forecast.

    None without the file, or if the results have changed since.
    """
    path = folder / _FILE
    if not path.is_file():
        return None
    try:
        stored = parse(path.read_bytes(), _Stored)
    except ValueError as error:
        raise InputError(
            f"{path} is damaged: {error}; run precbench compare again"
        ) from None
    if stored.of != digest_of_results(folder):
        return None
    return StoredLength(stored, stored.tables, stored.command)


def digest_of_results(folder: Path) -> str:
    """Return a digest of the results in a folder."""
    return hashlib.sha256((folder / "results.csv").read_bytes()).hexdigest()


def length_sheet(length: Length) -> Sheet:
    """Return a figure of hits by length, and of profit below if a gain is given."""
    caption = (
        f"Of {length.method}, from held-out rows of {count(length.splits, 'split')}."
        " Bands: 95 % of such lists; grey line: by chance; vertical: the lengths asked"
        " for"
    )
    n_panels = 1
    if length.profit:
        caption += "; grey: may be as profitable"
        n_panels = 2
    return Sheet(
        f"A list from {length.rows:,} new rows",
        draw=partial(_draw, length=length),
        width=_WIDTH,
        height=n_panels * _PANEL + _X_LABEL,
        caption=[f"{caption}."],
    )


def _draw(figure: "SubFigure", length: Length) -> None:
    """Draw hits, and profit in a panel below, up to four times the longest k."""
    most = min(4 * max(length.k), length.rows)
    curve = length.table[length.table["length"] <= most]
    n_panels = 2 if length.profit else 1
    panels = figure.subplots(n_panels, 1, sharex=True, squeeze=False)[:, 0]
    _draw_band(panels[0], length, curve, "hits", low="low", high="high")
    if length.profit:
        _draw_band(
            panels[1], length, curve, "profit", low="profit_low", high="profit_high"
        )
        # Shade the lengths that may be equally profitable.
        last = min(length.profit.high, most)
        panels[1].axvspan(length.profit.low, last, color="0.9", zorder=0)
    by_chance = length.table["precision"].iloc[-1]  # that of the whole list
    lengths = curve["length"]
    panels[0].plot(lengths, lengths * by_chance, color="0.5", linewidth=0.8)
    panels[0].set_ylim(bottom=0)
    panels[-1].set_xlim(0, most)
    panels[-1].set_xlabel("rows in the list")


def _draw_band(
    axes: Any, length: Length, curve: pd.DataFrame, name: str, *, low: str, high: str
) -> None:
    """Draw a column against the length with its interval, and the lengths asked for.

    The interval has the columns `low` and `high`.
    """
    lengths = curve["length"]
    axes.fill_between(lengths, curve[low], curve[high], alpha=0.2, linewidth=0)
    axes.plot(lengths, curve[name])
    axes.set_ylabel(name)
    for k in length.k:
        axes.axvline(k, color="0.5", linewidth=0.8, zorder=1)
