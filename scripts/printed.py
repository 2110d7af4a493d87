"""What a paper printed beside ours, from the committed ledger: tables and pictures.

`scripts.pages` puts the short tables into the pages of the papers; the picture and the
list of all claims are made where the site is built (``docs/conf.py``).
"""

import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from functools import cache, partial
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


class Look(NamedTuple):
    """How the claims of a verdict are drawn."""

    marker: str
    colour: str


LOOKS = {
    Verdict.REPRODUCED: Look("o", "#009E73"),
    Verdict.WITH_DEVIATION: Look("D", "#0072B2"),
    Verdict.TREND_ONLY: Look("^", "#E69F00"),
    Verdict.NOT_REPRODUCED: Look("X", "#D55E00"),
    Verdict.NO_POWER: Look("s", "0.6"),
    Verdict.INCONCLUSIVE: Look("v", "0.8"),
}
_HOLDS = re.compile(r"holds in (\d+) of (\d+)")


class Decision(NamedTuple):
    """A claim, and what the committed ledger says of it."""

    claim: Claim
    row: LedgerRow


@cache
def ledger() -> list[Decision]:
    """Return all claims with what the committed ledger says of them."""
    by_id = {claim.id: claim for claim in load_claims()}
    return [Decision(by_id[row.id], row) for row in read_ledger(LEDGER)]


def claims(paper: str) -> list[Decision]:
    """Return the claims of a paper with what the committed ledger says of them."""
    return [decision for decision in ledger() if decision.row.paper == paper]


def cells(paper: str, table: str) -> str:
    """Lay out a printed table: in each cell what is printed, and ours in its unit."""
    texts_by_name: dict[str, dict[str, str]] = defaultdict(dict)
    for claim, row in claims(paper):
        _paper, place, column, *parts = row.id.split("/")
        if place != table or row.kind != "mean":
            continue
        n_decimals = len(row.printed.partition(".")[2])
        ours = float(row.measured) / 10.0 ** getattr(claim, "power_of_ten", 0)
        mark = MARKS.get(row.verdict, "")
        text = f"{row.printed} / {ours:.{n_decimals}f}{mark}"
        texts_by_name["/".join(parts)][column] = text
    columns = next(iter(texts_by_name.values()))
    lines = []
    for name, texts in texts_by_name.items():
        lines.append([f"`{name}`", *texts.values()])
    return laid_out(["printed / ours", *columns], lines, numbers=7)


def numbers(paper: str) -> str:
    """List the printed numbers that a run can decide, those without data in a line."""
    lines = []
    lacking = []  # the configs of numbers without data
    for claim, row in claims(paper):
        if number(claim) is None or row.verdict is Verdict.NOT_TESTABLE:
            continue
        if row.verdict is Verdict.NO_DATA:
            lacking.append(claim.config)
        else:
            lines.append(_line(claim, row))
    text = laid_out(_HEADER, lines)
    if lacking:
        runs = ", ".join(f"`{config}`" for config in dict.fromkeys(lacking))
        text += f"\nFor {len(lacking)} more the data are lacking ({runs}).\n"
    return text


_HEADER = ["claim", "printed", "ours", "verdict", "command"]


def _line(claim: Claim, row: LedgerRow) -> list[str]:
    """Return the cells below `_HEADER`."""
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
    lines = [_line(claim, row) for claim, row in claims(paper)]
    table = laid_out(_HEADER, lines)
    title = f"All {len(lines)} rows of the ledger: printed, ours, verdict, command"
    return f"::::{{dropdown}} {title}\n{table}::::\n"


class Dot(NamedTuple):
    """A claim in a picture.

    Attributes
    ----------
    label : str
    value : float
    spread : sequence of float
        The quartiles of our repetitions, if there are any.
    verdict : Verdict
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
        if row.kind == "ratio":
            label = f"{row.printed} ({claim.config.partition('/')[2]})"
        elif row.kind == "mean":
            label = row.where.rpartition(",")[0]
        else:
            continue
        printed = getattr(claim, "read_as", None) or number(claim)
        if not printed or not row.measured:
            continue
        ends = row.spread.split(" to ") if row.spread else []
        spread = [float(end) / printed for end in ends]
        dots.append(Dot(label, float(row.measured) / printed, spread, row.verdict))
    return dots


def shares(paper: str) -> list[Dot]:
    """Return in what share of the splits a sentence about an order holds."""
    dots = []
    for _claim, row in claims(paper):
        if row.kind not in ("order", "consistency"):
            continue
        holds = _HOLDS.match(row.measured)
        if holds:
            share = int(holds[1]) / int(holds[2])
            dots.append(Dot(f"“{row.printed}”", share, [], row.verdict))
    return dots


def picture(paper: str, folder: Path) -> str:
    """Draw a paper into a folder of the site; return the Markdown that shows it."""
    folder.mkdir(parents=True, exist_ok=True)
    draw(paper, folder / f"{paper}.svg")
    shown = (
        "How ours compares with what is printed, by claim; the numbers are in the list"
        " below"
    )
    image = f"![{shown}](/{folder.parent.name}/{folder.name}/{paper}.svg)"
    return (
        f"{image}\n\nEach mark is a claim; the line at one spans the middle half of our"
        " repetitions. Bounds, rates, exact numbers and what was not measured are in"
        " the list only.\n\n"
    )


def draw(paper: str, path: Path) -> None:
    """Draw the claims of a paper that are numbers, or hold in a share of splits."""
    titles = {
        "Numbers: ours as a multiple of what is printed": ratios(paper),
        "Sentences: share of the splits in which they hold": shares(paper),
    }
    panels = {title: dots for title, dots in titles.items() if dots}
    save_figure(partial(_figure, panels), path)


def _figure(panels: Mapping[str, Sequence[Dot]]) -> Figure:
    """Draw panels below each other, as high as they have labels, above a legend."""
    heights = [len({dot.label for dot in dots}) + 1 for dots in panels.values()]
    figure = Figure(figsize=(7, 0.28 * sum(heights) + 1.2), layout="constrained")
    grid = figure.subplots(len(panels), 1, squeeze=False, height_ratios=heights)
    column = grid[:, 0]
    for axes, (title, dots) in zip(column, panels.items(), strict=True):
        _draw_dots(axes, title, dots)
    drawn = {dot.verdict for dots in panels.values() for dot in dots}
    handles: list[Any] = []
    for verdict, look in LOOKS.items():
        if verdict in drawn:
            handles += column[-1].plot(
                [], [], look.marker, color=look.colour, label=verdict
            )
    figure.legend(handles=handles, loc="outside lower center", ncols=3)
    return figure


def _draw_dots(axes: Axes, title: str, dots: Sequence[Dot]) -> None:
    """Draw a line of dots for each label, and their spreads."""
    labels = list(dict.fromkeys(dot.label for dot in dots))
    for y, label in enumerate(labels):
        alike = [dot for dot in dots if dot.label == label]
        # Dots of one label are spread over two thirds of its line.
        shifts = np.linspace(-0.32, 0.32, len(alike) + 2)[1:-1]
        for dot, height in zip(alike, y + shifts, strict=True):
            look = LOOKS[dot.verdict]
            if dot.spread:
                axes.plot(dot.spread, [height] * 2, color=look.colour, linewidth=1)
            axes.plot(dot.value, height, look.marker, color=look.colour, markersize=4)
    axes.set_yticks(range(len(labels)), labels)
    axes.set_ylim(len(labels) - 0.4, -0.6)
    axes.set_title(title, loc="left")
    if title.startswith("Numbers"):
        axes.axvline(1, color="black", linewidth=0.8)
        xs = [x for dot in dots for x in (dot.value, *dot.spread)]
        if min(xs) <= 1 / 2 or max(xs) >= 2:
            log_scale(axes, "x")
    else:
        axes.set_xlim(-0.03, 1.03)
