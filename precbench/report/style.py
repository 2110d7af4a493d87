"""What all figures have in common: looks of solvers, names at the ends of curves, and files."""

import textwrap
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np

from precbench.text import visible

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure, SubFigure

__all__ = [
    "MOST_STRONG",
    "NAME_LINE",
    "QUIET",
    "End",
    "Style",
    "log_scale",
    "mark_smoke",
    "name_ends",
    "save_figure",
    "solver_styles",
    "wrapped",
]

# Okabe and Ito's palette without its yellow, which is too faint on paper, and its grey, the colour
# of quiet curves. Each further one is as far as possible from all before it (in OKLab), from that
# grey and from white, among those that are neither nearly black nor paler than 2.2 : 1 on white.
_COLOURS = (
    *("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00", "#000000", "#8700D2"),
    *("#87004B", "#5A4B00", "#001ED2", "#F05AFF", "#FF0069", "#8778FF", "#00C300", "#5A3C87"),
    *("#C30096", "#878700", "#005A5A", "#965A5A", "#006900", "#B4000F", "#0F69FF", "#A55AC3"),
    *("#FF8778", "#8787C3", "#96B478", "#FF5AB4", "#B4875A", "#5A3CE1", "#870087", "#782D0F"),
    *("#C396FF", "#C33C69", "#2D9600", "#FF2D0F"),
)
_PLACES = {colour: place for place, colour in enumerate(_COLOURS)}
# Dots have a meaning of their own: fewer splits than elsewhere.
_DASHES: tuple[Any, ...] = ("-", "--", "-.", (0, (6, 1, 1, 1, 1, 1)), (0, (9, 2)))
_MARKERS = ("o", "s", "^", "D", "v", "P", "X", "<", ">", "p", "*")

MOST_STRONG = 8
"""Curves of one figure that have a colour; the others are quiet."""

QUIET: dict[str, Any] = {"color": "0.75", "linewidth": 0.8, "markersize": 3.5}
"""The look of the others."""

NAME_LINE = 0.155
"""Inches from one name at the ends of curves to the next."""

_LETTERS = {"normal": 0.0079, "bold": 0.0093}  # inches, of a size of 1 point
_MOST_LINES = 20  # of one text
_RC_PARAMS: dict[str, Any] = {
    "font.size": 9,
    "axes.labelsize": 9,
    "axes.titlesize": 9,
    "xtick.labelsize": 8,
    "ytick.labelsize": 8,
    "legend.fontsize": 8,
    "legend.frameon": False,
    "legend.handlelength": 3,
    "lines.linewidth": 1.5,
    "lines.markersize": 5,
    "axes.grid": True,
    "axes.axisbelow": True,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "grid.color": "#E0E0E0",
    "grid.linewidth": 0.6,
    "pdf.fonttype": 42,
    "svg.fonttype": "none",
    # Otherwise the ids in an SVG are random, and equal results give unequal files.
    "svg.hashsalt": "precbench",
    "savefig.dpi": 150,
}


class Style(NamedTuple):
    """Colour, dashes and marker of a solver."""

    color: str
    linestyle: Any
    marker: str


# The numbers of colours, dashes and markers have no common factor.
_N_STYLES = len(_COLOURS) * len(_DASHES) * len(_MARKERS)
_STYLES = [
    Style(_COLOURS[i % len(_COLOURS)], _DASHES[i % len(_DASHES)], _MARKERS[i % len(_MARKERS)])
    for i in range(_N_STYLES)
]


def solver_styles(labels: Sequence[str], built_in: Sequence[str] = ()) -> dict[str, Style]:
    """Assign a style to each solver.

    Parameters
    ----------
    labels : sequence of str
        All labels of an experiment, in its order.
    built_in : sequence of str, default=()
        Names with a style of their own, which follows from their place.

    Returns
    -------
    dict of str to Style
        No two labels have the same style, and no two of the first 36 the same colour. Those not in
        `built_in` take, in their order, a style that is left: of the colour least used so far, and
        with the marker least used.
    """
    own = dict(zip(built_in, _STYLES, strict=False))
    styles = {label: own[label] for label in labels if label in own}
    for label in labels:
        if label not in styles:
            taken = {*own.values(), *styles.values()}
            colours = Counter(style.color for style in styles.values())
            markers = Counter(style.marker for style in styles.values())
            styles[label] = min(
                [style for style in _STYLES if style not in taken] or _STYLES,
                key=lambda style: (
                    colours[style.color],
                    _PLACES[style.color],
                    markers[style.marker],
                ),
            )
    return styles


class End(NamedTuple):
    """The end of a curve, and how it is named.

    Attributes
    ----------
    name : str
    y : float
        NaN for a curve of another panel.
    look : dict
        Keywords of a line.
    strong : bool
    """

    name: str
    y: float
    look: dict[str, Any]
    strong: bool


def name_ends(axes: "Axes", ends: Sequence[End], height: float) -> None:
    """Write the names of curves at the right of their ends, where they do not overlap.

    Parameters
    ----------
    axes : matplotlib.axes.Axes
        Whose limits are final.
    ends : sequence of End
    height : float
        Of the axes in inches, roughly.
    """
    from scipy.optimize import isotonic_regression

    scale = axes.transScale + axes.transLimits
    heights = [scale.transform((axes.get_xlim()[1], end.y))[1] for end in ends]
    order = sorted(range(len(ends)), key=lambda i: (np.nan_to_num(heights[i], nan=-np.inf), -i))
    apart = NAME_LINE / height * np.arange(len(ends))
    wanted = np.clip(np.nan_to_num([heights[i] for i in order], nan=0.0), 0, 1)
    # The least squares among all places that are far enough apart.
    places = isotonic_regression(wanted - apart).x
    places = np.clip(places, 0, max(1 - apart[-1], 0)) + apart if len(ends) else places
    side = axes.inset_axes((1, 0, 0.1, 1), xlim=(0, 1), ylim=(0, 1))
    side.axis("off")
    for i, place in zip(order, places, strict=True):
        end = ends[i]
        look: dict[str, Any] = {**end.look, "clip_on": False}
        if np.isfinite(heights[i]) and 0 <= heights[i] <= 1:
            thin = {**look, "linewidth": 0.6, "marker": "", "linestyle": "-"}
            side.plot([0, 0.4], [heights[i], place], **thin)
        side.plot([0.4, 0.7, 1], [place] * 3, **look, markevery=[1])
        side.annotate(
            end.name,
            (1, place),
            (3, 0),
            textcoords="offset points",
            va="center",
            fontsize=8 if end.strong else 7,
            color="black" if end.strong else "0.4",
            parse_math=False,
            annotation_clip=False,
            gid="name",
        )


def log_scale(axes: "Axes", which: Literal["x", "y"]) -> None:
    """Make an axis logarithmic, once it holds all that it shows; labels leave each other room."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    axes.set(**{f"{which}scale": "log"})
    axis = axes.xaxis if which == "x" else axes.yaxis
    low, high = axes.get_xlim() if which == "x" else axes.get_ylim()
    decades = np.log10(high / low)
    if decades < 2.5:
        axis.set_major_locator(
            LogLocator(subs=(1, 2, 5) if decades > 0.7 else (1, 1.5, 2, 3, 5, 7))
        )
        axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,g}"))
    axis.set_minor_formatter(NullFormatter())


def wrapped(text: str, inches: float, size: float = 8, weight: str = "normal") -> list[str]:
    """Return the lines of a text that fit a width, no more than a figure has room for."""
    letters = max(int(inches / (size * _LETTERS[weight])), 8)
    return textwrap.wrap(text, letters, max_lines=_MOST_LINES, placeholder=" …")


def mark_smoke(figure: "Figure | SubFigure") -> None:
    """Write across a drawing that it is of smoke size."""
    figure.text(
        *(0.5, 0.5, "smoke size"),
        ha="center",
        va="center",
        fontsize=36,
        rotation=20,
        color="0.5",
        alpha=0.2,
        in_layout=False,
        gid="smoke",
    )


_METADATA: dict[str, dict[str, Any]] = {
    ".pdf": {"Creator": "precbench", "CreationDate": None},
    ".png": {"Software": "precbench"},
    ".svg": {"Creator": "precbench", "Date": None},
}


def save_figure(draw: Callable[[], "Figure"], *paths: Path) -> None:
    """Draw a figure in the style of the package and write it; equal figures give equal bytes.

    Parameters
    ----------
    draw : callable
    *paths : pathlib.Path
        Files that end in ``.pdf``, ``.png`` or ``.svg``.
    """
    from matplotlib import style
    from matplotlib.text import Text

    with style.context(["default", _RC_PARAMS]):
        figure = draw()
        for text in figure.findobj(Text):
            text.set_text(visible(text.get_text()))
        _lay_out(figure)
        for path in paths:
            figure.savefig(path, metadata=_METADATA[path.suffix])
            if path.suffix == ".svg":  # names at ticks are set anew with each drawing
                path.write_text(visible(path.read_text(encoding="utf-8")), encoding="utf-8")


def _lay_out(figure: "Figure") -> None:
    """Place the panels once and for all, rounded: the last bits differ between equal layouts."""
    from matplotlib.transforms import Bbox

    def rounded(place: Any) -> Any:  # not to decimals: sizes of text are 1/64 of a pixel, and tie
        return np.round(place.get_points() * 2**30) / 2**30

    figure.draw_without_rendering()
    figure.set_layout_engine(None)  # "none" sets a placeholder, with which each file is drawn twice
    for part in figure.subfigs:
        part.bbox_relative.set_points(rounded(part.bbox_relative))
    for axes in figure.axes:
        axes.set_position(Bbox(rounded(axes.get_position(original=True))))
