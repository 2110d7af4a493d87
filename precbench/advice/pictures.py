"""The pictures of an answer: methods, gains, calibration and importance of columns."""

from collections.abc import Iterable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pandas as pd

from precbench.advice.choice import Choice, splits_in_words
from precbench.advice.importance import Importance
from precbench.advice.length import Length, digest_of_results
from precbench.advice.reliability import Reliability, reliability_sheet
from precbench.core.errors import InputError
from precbench.core.files import write_whole
from precbench.core.strict_json import Fields, parse
from precbench.core.text import count
from precbench.report.html import Drawing
from precbench.report.sheet import Sheet
from precbench.report.style import Axes

if TYPE_CHECKING:
    from matplotlib.figure import SubFigure

_FILE = "pictures.json"
# Inches: so wide that the letters can be read on a telephone, and three are side by
# side on a desk.
_WIDTH = 4.0
_HEIGHT = 2.8
_BAR = 0.2  # height of a method or a column
_AXIS = 0.6  # height of what is below them
_LONGEST_NAME = 26  # letters
_QUIET = "0.6"  # colour of methods that are not compared
_NOT_COMPARED = ("incomplete", "no result", "not trained")
_NAMES = ("methods", "gains", "calibration", "importance")


class Picture(NamedTuple):
    """A figure of the answer.

    Attributes
    ----------
    name : str
        Of its files.
    sheet : Sheet
    table : DataFrame
        Its numbers.
    alt : str
        What it shows, in words.
    """

    name: str
    sheet: Sheet
    table: pd.DataFrame
    alt: str

    def save(self, folder: Path, sources: Sequence[Path]) -> list[Path]:
        """Write the figure and its numbers, unless they are newer than the sources."""
        return self.sheet.save(folder / self.name, self.table, sources)

    def drawn(self) -> Drawing:
        """Draw the figure for a page, without a file."""
        return Drawing.of(self.name, self.sheet.svg(), self.alt)


class Measured(Fields):
    """What pictures show beside the results and the lengths of the list.

    Attributes
    ----------
    reliability : Reliability or None
    importance : Importance or None
    """

    reliability: Reliability | None = None
    importance: Importance | None = None


class _Stored(Measured):
    """The content of pictures.json; `of` is the digest of the results when written."""

    of: str


def write_measured(measured: Measured, folder: Path) -> None:
    """Write ``pictures.json`` into a results folder."""
    stored = _Stored(of=digest_of_results(folder), **dict(measured))
    write_whole({folder / _FILE: stored.model_dump_json()})


def read_measured(folder: Path) -> Measured:
    """Return what ``pictures.json`` holds.

    Nothing without the file, or if the results have changed since.
    """
    path = folder / _FILE
    if not path.is_file():
        return Measured()
    try:
        stored = parse(path.read_bytes(), _Stored)
    except ValueError as error:
        raise InputError(
            f"{path} is damaged: {error}; run precbench compare again"
        ) from None
    if stored.of != digest_of_results(folder):
        return Measured()
    return stored


def answer_pictures(choice: Choice, reliability: Reliability | None) -> list[Picture]:
    """Return the pictures that stand below the sentences of an answer."""
    pictures = [_methods(choice)]
    if choice.length is not None:
        pictures.append(_gains(choice.length))
    if reliability is not None:
        pictures.append(_calibration(reliability))
    return pictures


# --- methods ---


def _methods(choice: Choice) -> Picture:
    """Return the picture of each method's hits, the recommended one on top."""
    table = methods_table(choice)
    first = table.to_dict("records")[0]
    hits = f"{first['hits']:.1f} ({first['low']:.1f} to {first['high']:.1f})"
    caption = (
        f"Points: means over {splits_in_words(choice)}; lines: 95 % intervals; filled:"
        " recommended"
    )
    if choice.equivalent:
        caption += "; ≈: as good"
    if table["splits"].between(1, choice.splits - 1).any():
        caption += "; †: on fewer splits"
    return Picture(
        "methods",
        Sheet(
            "Hits by method",
            draw=partial(_draw_methods, table=table, choice=choice),
            width=_WIDTH,
            height=_BAR * len(table) + _AXIS,
            caption=[f"{caption}; grey line: by chance."],
        ),
        table,
        f"Hits in {choice.k:,} of {choice.rows:,} held-out rows with 95 % intervals,"
        f" by method: on top {choice.recommended}, recommended, with {hits}; the others"
        " are in the table of methods",
    )


def methods_table(choice: Choice) -> pd.DataFrame:
    """Return hits and verdicts of all methods, those without a result last."""
    values = choice.values
    is_measured = values["mean"].notna()
    ordered = pd.concat([values[is_measured], values[~is_measured]])
    table = pd.DataFrame(
        {
            "method": ordered["solver"],
            "verdict": ordered["verdict"].where(ordered["mean"].notna(), "no result"),
            "splits": ordered["n"].astype(int),
            # No list has fewer than 0 hits, or more than k.
            "hits": (choice.k * ordered["mean"]).clip(0, choice.k),
            "low": (choice.k * ordered["low"]).clip(0, choice.k),
            "high": (choice.k * ordered["high"]).clip(0, choice.k),
        }
    )
    left_out = pd.DataFrame({"method": choice.left_out})
    if left_out.empty:
        return table.reset_index(drop=True)
    left_out = left_out.assign(
        verdict="not trained", splits=0, hits=np.nan, low=np.nan, high=np.nan
    )
    return pd.concat([table, left_out], ignore_index=True)


def _draw_methods(figure: "SubFigure", table: pd.DataFrame, choice: Choice) -> None:
    axes = figure.add_subplot()
    methods = table.to_dict("records")
    names = [_marked_name(method, choice.splits) for method in methods]
    axes.set_yticks(range(len(names)), names, parse_math=False)
    for place, (method, label) in enumerate(
        zip(methods, axes.get_yticklabels(), strict=True)
    ):
        label.set_color(_colour(method["verdict"]))
        if np.isfinite(method["hits"]):
            _draw_hits(axes, place, method)
        else:
            _write_at_the_right(axes, place, method["verdict"])
    axes.get_yticklabels()[0].set_fontweight("bold")
    axes.set_ylim(len(names) - 0.4, -0.6)  # the first is on top
    axes.grid(visible=False, axis="y")
    axes.tick_params(axis="y", length=0)
    axes.axvline(choice.k * choice.by_chance, color="0.5", linewidth=0.8, zorder=1)
    axes.set_xlim(left=0)
    axes.set_xlabel(f"hits in {choice.k:,} of {choice.rows:,} held-out rows")


def _colour(verdict: str) -> str:
    """Return the colour of a method."""
    if verdict == "recommended":
        return "C0"
    return _QUIET if verdict in _NOT_COMPARED else "0.25"


def _draw_hits(axes: Axes, place: int, method: dict[Any, Any]) -> None:
    """Draw the hits of a method as a point, and their interval as a line."""
    colour = _colour(method["verdict"])
    axes.plot([method["low"], method["high"]], [place] * 2, color=colour, linewidth=1.2)
    filling = colour if method["verdict"] == "recommended" else "white"
    axes.plot(method["hits"], place, color=colour, marker="o", markerfacecolor=filling)


def _write_at_the_right(axes: Axes, place: int, text: str) -> None:
    """Write a text in place of hits; at the left is the line of chance."""
    axes.text(
        0.98,
        place,
        text,
        transform=axes.get_yaxis_transform(),
        color=_QUIET,
        fontsize=8,
        horizontalalignment="right",
        verticalalignment="center",
    )


def _marked_name(method: dict[Any, Any], n_splits: int) -> str:
    """Return the name of a method with the marks of the table of methods."""
    name = _shortened(method["method"])
    if method["verdict"] == "equivalent":
        name += " ≈"
    if 0 < method["splits"] < n_splits:
        name += " †"
    return name


# --- gains ---


def _gains(length: Length) -> Picture:
    """Return the picture of the hits that the top of the list holds."""
    table = gains_table(length)
    k = length.k[0]
    recall = table["recall"][table["rows"] == k].item()
    caption = f"Of {length.method}, for a list of {length.rows:,} new rows. "
    if "low" in table:
        caption += "Band: 95 % of such lists; "
    caption += "diagonal: by chance; vertical: the lengths asked for."
    return Picture(
        "gains",
        Sheet(
            "Cumulative gains",
            draw=partial(_draw_gains, table=table, lengths=length.k),
            width=_WIDTH,
            height=_HEIGHT,
            caption=[caption],
        ),
        table,
        f"Share of all hits against the share of the list: the first {k:,} of"
        f" {length.rows:,} rows hold {_percent(recall)} of the hits",
    )


def gains_table(length: Length) -> pd.DataFrame:
    """Return the share of all hits by share of the list, from 0 rows to all.

    It has an interval, unless an earlier version has written the file.
    """
    curve = length.table
    table = pd.DataFrame(
        {
            "rows": curve["length"].astype(int),
            "share": curve["length"] / length.rows,
            "recall": curve["recall"],
        }
    )
    if "recall_low" in curve and "recall_high" in curve:
        table["low"] = curve["recall_low"]
        table["high"] = curve["recall_high"]
    no_rows = pd.DataFrame([dict.fromkeys(table.columns, 0)])
    return pd.concat([no_rows, table], ignore_index=True)


def _draw_gains(
    figure: "SubFigure", table: pd.DataFrame, lengths: Sequence[int]
) -> None:
    from matplotlib.ticker import PercentFormatter

    axes = figure.add_subplot()
    if "low" in table:
        axes.fill_between(
            table["share"], table["low"], table["high"], alpha=0.2, linewidth=0
        )
    axes.plot(table["share"], table["recall"], color="C0")
    axes.plot([0, 1], [0, 1], color="0.5", linewidth=0.8, zorder=1)
    share_at = dict(zip(table["rows"], table["share"], strict=True))
    recall_at = dict(zip(table["rows"], table["recall"], strict=True))
    for k in lengths:
        axes.axvline(share_at[k], color="0.5", linewidth=0.8, zorder=1)
    first = lengths[0]
    axes.plot(share_at[first], recall_at[first], color="C0", marker="o")
    # Below the curve, which rises to the right.
    is_at_left = share_at[first] < 0.6
    axes.annotate(
        f"{first:,} rows: {_percent(recall_at[first])}",
        (share_at[first], recall_at[first]),
        xytext=(7 if is_at_left else -7, -4),
        textcoords="offset points",
        horizontalalignment="left" if is_at_left else "right",
        verticalalignment="top",
        fontsize=8,
    )
    axes.set(
        xlim=(0, 1),
        ylim=(0, 1.02),
        xlabel="share of the list",
        ylabel="share of all hits",
    )
    axes.xaxis.set_major_formatter(PercentFormatter(1, symbol=" %"))
    axes.yaxis.set_major_formatter(PercentFormatter(1, symbol=" %"))


def _percent(share: float) -> str:
    """Format a share; small ones have a digit more."""
    return f"{100 * share:.0f} %" if share >= 0.1 else f"{100 * share:.1f} %"


# --- calibration ---


def _calibration(reliability: Reliability) -> Picture:
    """Return the picture of stated probabilities beside the hits."""
    points = [
        f"{of_bin.stated:.2f} and {of_bin.precision:.2f} in rows {of_bin.first:,} to"
        f" {of_bin.last:,}"
        for of_bin in reliability.bins
    ]
    return Picture(
        "calibration",
        reliability_sheet(reliability),
        reliability.table,
        "Stated probability and share of hits, from the top of the held-out lists:"
        f" {'; '.join(points)}",
    )


# --- importance of columns ---


def importance_picture(importance: Importance) -> Picture:
    """Return the picture of what the ranking loses without each column."""
    table = pd.DataFrame(
        {
            "column": [measured.column for measured in importance.columns],
            "loss": [measured.loss for measured in importance.columns],
            "low": [_end(measured.interval, 0) for measured in importance.columns],
            "high": [_end(measured.interval, 1) for measured in importance.columns],
        }
    )
    caption = (
        f"Drop in average precision ({importance.average_precision:.3f}) when the"
        " values of a column are shuffled; means of"
        f" {count(importance.splits, 'split')}"
    )
    if importance.splits > 1:
        caption += ", lines: 95 % intervals"
    greatest = ", ".join(
        f"{row.column} {row.loss:.3f}" for row in table.head(3).itertuples()
    )
    return Picture(
        "importance",
        Sheet(
            "Importance of columns",
            draw=partial(_draw_importance, table=table),
            width=_WIDTH,
            height=_BAR * len(table) + _AXIS,
            caption=[f"{caption}."],
        ),
        table,
        f"Bars of the loss of average precision by column, the greatest first:"
        f" {greatest}; all are in the table of columns",
    )


def _end(interval: Sequence[float] | None, place: int) -> float:
    return np.nan if interval is None else interval[place]


def _draw_importance(figure: "SubFigure", table: pd.DataFrame) -> None:
    axes = figure.add_subplot()
    places = range(len(table))
    axes.barh(places, table["loss"], height=0.6, color="C0", alpha=0.4)
    axes.hlines(places, table["low"], table["high"], color="C0", linewidth=1.2)
    names = [_shortened(column) for column in table["column"]]
    axes.set_yticks(places, names, parse_math=False)
    axes.set_ylim(len(names) - 0.4, -0.6)  # the first is on top
    axes.grid(visible=False, axis="y")
    axes.tick_params(axis="y", length=0)
    axes.axvline(0, color="0.5", linewidth=0.8)
    axes.set_xlabel("loss of average precision")


def _shortened(name: str) -> str:
    """Cut a long name."""
    if len(name) <= _LONGEST_NAME:
        return name
    return f"{name[: _LONGEST_NAME - 2]} …"


def delete_others(pictures: Iterable[Picture], folder: Path) -> None:
    """Delete the files of pictures that an earlier answer had."""
    names = {picture.name for picture in pictures}
    for name in _NAMES:
        if name not in names:
            for path in folder.glob(f"{name}.*"):
                path.unlink()
