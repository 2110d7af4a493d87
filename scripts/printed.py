"""What a paper printed beside ours, from the committed ledger.

Tables, and a picture for the site.

`scripts.pages` puts the short tables into the pages of the papers; the picture and the
list of all claims are made where the site is built (``docs/conf.py``).
"""

import re
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from precbench.claims import Claim, load_claims
from precbench.claims.ledger import LedgerRow, read_ledger
from precbench.claims.verdicts import Verdict, parse_printed
from precbench.core.errors import InputError
from precbench.report.sheet import save_figure
from precbench.report.style import log_scale
from scripts.reference import LEDGER
from scripts.survey.tables import laid_out

MARKS = {Verdict.NO_POWER: " †", Verdict.TREND_ONLY: " ~", Verdict.NOT_REPRODUCED: " ✗"}
LOOKS = {
    Verdict.REPRODUCED: ("o", "#009E73"),
    Verdict.WITH_DEVIATION: ("D", "#0072B2"),
    Verdict.TREND_ONLY: ("^", "#E69F00"),
    Verdict.NOT_REPRODUCED: ("X", "#D55E00"),
    Verdict.NO_POWER: ("s", "0.6"),
    Verdict.INCONCLUSIVE: ("v", "0.8"),
}
_HOLDS = re.compile(r"holds in (\d+) of (\d+)")


@cache
def ledger() -> list[tuple[Claim, LedgerRow]]:
    """Return all claims with what the committed ledger says of them."""
    of = {claim.id: claim for claim in load_claims()}
    return [(of[row.id], row) for row in read_ledger(LEDGER)]


def claims(paper: str) -> list[tuple[Claim, LedgerRow]]:
    """Return the claims of a paper with what the committed ledger says of them."""
    return [(claim, row) for claim, row in ledger() if row.paper == paper]


def cells(paper: str, table: str) -> str:
    """Lay out a printed table.

    In each cell what is printed, and ours in the same unit.
    """
    rows: dict[str, dict[str, str]] = {}
    for claim, row in claims(paper):
        _, place, column, *name = row.id.split("/")
        if place == table and row.kind == "mean":
            decimals = len(row.printed.partition(".")[2])
            ours = float(row.measured) / 10.0 ** getattr(claim, "power_of_ten", 0)
            text = f"{row.printed} / {ours:.{decimals}f}{MARKS.get(row.verdict, '')}"
            rows.setdefault("/".join(name), {})[column] = text
    header = ["printed / ours", *next(iter(rows.values()))]
    return laid_out(
        header, [[f"`{name}`", *row.values()] for name, row in rows.items()], 7
    )


def numbers(paper: str) -> str:
    """List the printed numbers that a run can decide.

    Those without data in one line.
    """
    listed, lacking = [], []
    for claim, row in claims(paper):
        if number(claim) is None or row.verdict is Verdict.NOT_TESTABLE:
            continue
        if row.verdict is Verdict.NO_DATA:
            lacking.append(claim.config)
        else:
            listed.append(_line(claim, row))
    text = laid_out(_HEADER, listed)
    if lacking:
        runs = ", ".join(f"`{config}`" for config in dict.fromkeys(lacking))
        text += f"\nFor {len(lacking)} more the data are lacking ({runs}).\n"
    return text


_HEADER = ["claim", "printed", "ours", "verdict", "command"]


def _line(claim: Claim, row: LedgerRow) -> list[str]:
    name = row.id.partition("/")[2]
    command = f"`precbench run {claim.config}`" if claim.is_testable else ""
    return [f"`{name}`", row.printed, row.measured, row.verdict, command]


def number(claim: Claim) -> float | None:
    """Return the printed number, or None if words or a formula are printed."""
    try:
        return parse_printed(claim.printed, getattr(claim, "power_of_ten", 0)).value
    except InputError:
        return None


def every_claim(paper: str) -> str:
    """Return all claims of a paper as a table that opens on demand."""
    found = claims(paper)
    table = laid_out(_HEADER, (_line(claim, row) for claim, row in found))
    title = f"All {len(found)} rows of the ledger: printed, ours, verdict, command"
    return f"::::{{dropdown}} {title}\n{table}::::\n"


class Dot(NamedTuple):
    """A claim in a picture.

    A number, the quartiles of our repetitions if any, and the verdict.
    """

    label: str
    value: float
    spread: Sequence[float]
    verdict: Verdict


def ratios(paper: str) -> list[Dot]:
    """Return ours as a multiple of what is printed, for means and for ratios.

    Words such as "several orders of magnitude" are taken for the number as which they
    are read.
    """
    dots = []
    for claim, row in claims(paper):
        printed = getattr(claim, "read_as", None) or number(claim)
        if printed and row.measured and row.kind in ("mean", "ratio"):
            spread = [float(end) / printed for end in row.spread.split(" to ") if end]
            label = row.where.rpartition(",")[0]
            if row.kind == "ratio":
                label = f"{row.printed} ({claim.config.partition('/')[2]})"
            dots.append(Dot(label, float(row.measured) / printed, spread, row.verdict))
    return dots


def shares(paper: str) -> list[Dot]:
    """Return in what share of the splits a sentence about an order holds."""
    dots = []
    for _, row in claims(paper):
        if row.kind in ("order", "consistency") and (
            found := _HOLDS.match(row.measured)
        ):
            share = int(found[1]) / int(found[2])
            dots.append(Dot(f"“{row.printed}”", share, [], row.verdict))
    return dots


def picture(paper: str, folder: Path) -> str:
    """Draw a paper into a folder below the site's, and return what shows it in a page."""
    folder.mkdir(parents=True, exist_ok=True)
    draw(paper, folder / f"{paper}.svg")
    drawn = (
        "How ours compares with what is printed, by claim; the numbers are in the list"
        " below"
    )
    return (
        f"![{drawn}](/{folder.parent.name}/{folder.name}/{paper}.svg)\n\nEach mark is a"
        " claim; the line at one spans the middle half of our repetitions. Bounds,"
        " rates, exact numbers and what was not measured are in the list only.\n\n"
    )


def draw(paper: str, path: Path) -> None:
    """Draw the claims of a paper that are a number, or hold in a share of the splits."""
    titles = {
        "Numbers: ours as a multiple of what is printed": ratios(paper),
        "Sentences: share of the splits in which they hold": shares(paper),
    }
    panels = {title: dots for title, dots in titles.items() if dots}

    def drawn() -> Figure:
        heights = [len({dot.label for dot in dots}) + 1 for dots in panels.values()]
        figure = Figure(figsize=(7, 0.28 * sum(heights) + 1.2), layout="constrained")
        grid = figure.subplots(len(panels), 1, squeeze=False, height_ratios=heights)[
            :, 0
        ]
        for axes, (title, dots) in zip(grid, panels.items(), strict=True):
            _draw_dots(axes, title, dots)
        given = {dot.verdict for dots in panels.values() for dot in dots}
        handles: list[Any] = [
            axes.plot([], [], marker, color=colour, label=verdict)[0]
            for verdict, (marker, colour) in LOOKS.items()
            if verdict in given
        ]
        figure.legend(handles=handles, loc="outside lower center", ncols=3)
        return figure

    save_figure(drawn, path)


def _draw_dots(axes: Axes, title: str, dots: Sequence[Dot]) -> None:
    labels = list(dict.fromkeys(dot.label for dot in dots))
    for y, label in enumerate(labels):
        row = [dot for dot in dots if dot.label == label]
        for dot, away in zip(
            row, np.linspace(-0.32, 0.32, len(row) + 2)[1:-1], strict=True
        ):
            marker, colour = LOOKS[dot.verdict]
            if dot.spread:
                axes.plot(dot.spread, [y + away] * 2, color=colour, linewidth=1)
            axes.plot(dot.value, y + away, marker, color=colour, markersize=4)
    axes.set_yticks(range(len(labels)), labels)
    axes.set_ylim(len(labels) - 0.4, -0.6)
    axes.set_title(title, loc="left")
    if title.startswith("Numbers"):
        axes.axvline(1, color="black", linewidth=0.8)
        if any(not 1 / 2 < end < 2 for dot in dots for end in (dot.value, *dot.spread)):
            log_scale(axes, "x")
    else:
        axes.set_xlim(-0.03, 1.03)
