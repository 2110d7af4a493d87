"""Styles of solvers in figures, and names of curves."""

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeAlias

import numpy as np

if TYPE_CHECKING:
    import matplotlib.axes

Axes: TypeAlias = "matplotlib.axes.Axes"  # text: importing matplotlib takes long

# Okabe and Ito's palette without yellow, which is too faint on paper, and grey, the
# colour of chance. Each further colour is as far as possible (in OKLab) from all
# colours before, from grey and from white, among colours that are neither nearly black
# nor paler than 2.2 : 1 on white.
_COLOURS = (
    "#0072B2",
    "#D55E00",
    "#009E73",
    "#CC79A7",
    "#56B4E9",
    "#E69F00",
    "#000000",
    "#8700D2",
    "#87004B",
    "#5A4B00",
    "#001ED2",
    "#F05AFF",
    "#FF0069",
    "#8778FF",
    "#00C300",
    "#5A3C87",
    "#C30096",
    "#878700",
    "#005A5A",
    "#965A5A",
    "#006900",
    "#B4000F",
    "#0F69FF",
    "#A55AC3",
    "#FF8778",
    "#8787C3",
    "#96B478",
    "#FF5AB4",
    "#B4875A",
    "#5A3CE1",
    "#870087",
    "#782D0F",
    "#C396FF",
    "#C33C69",
    "#2D9600",
    "#FF2D0F",
)
_PLACE_OF = {colour: place for place, colour in enumerate(_COLOURS)}
_MARKERS = ("o", "s", "^", "D", "v", "P", "X", "<", ">", "p", "*")

MOST_CURVES = 8  # of one figure


class Style(NamedTuple):
    color: str
    marker: str


# All combinations: the numbers of colours and markers have no common factor.
_STYLES = [
    Style(_COLOURS[i % len(_COLOURS)], _MARKERS[i % len(_MARKERS)])
    for i in range(len(_COLOURS) * len(_MARKERS))
]


def solver_styles(
    labels: Sequence[str], built_in: Sequence[str] = ()
) -> dict[str, Style]:
    """Return a style for each label.

    A label in `built_in` has the style of its position there. Other labels, one after
    the other, take a free style: of the colour, then of the marker, used least so far.
    So no two labels share a style, and no two of the first 36 share a colour.
    """
    reserved = dict(zip(built_in, _STYLES, strict=False))  # `_STYLES` is longer
    styles = {label: reserved[label] for label in labels if label in reserved}
    for label in labels:
        if label not in styles:
            taken = {*reserved.values(), *styles.values()}
            free = [style for style in _STYLES if style not in taken]
            styles[label] = _least_used(free or _STYLES, list(styles.values()))
    return styles


def _least_used(candidates: Sequence[Style], used: Sequence[Style]) -> Style:
    """Return the candidate whose colour, then whose marker, is used least.

    Of equally used colours the first in the palette is taken.
    """
    colours = Counter(style.color for style in used)
    markers = Counter(style.marker for style in used)

    def uses(style: Style) -> tuple[int, int, int]:
        return colours[style.color], _PLACE_OF[style.color], markers[style.marker]

    return min(candidates, key=uses)


def name_curves(
    axes: Axes,
    looks: Mapping[str, Mapping[str, Any]],
    last_values: Mapping[str, float],
    bold: Collection[str] = (),
) -> None:
    """Write the names of curves beside the axes, the highest last value first.

    Looks and last values are given by name; the names in `bold` are bold.
    """
    from matplotlib.lines import Line2D

    order = sorted(looks, key=lambda name: -last_values[name])
    handles = [Line2D([], [], **looks[name]) for name in order]
    numbers = [str(number) for number in range(len(order))]
    legend = axes.legend(handles, numbers, loc="upper left", bbox_to_anchor=(1, 1))
    # Names replace the numbers only now: a legend leaves out labels that begin with an
    # underscore.
    for text, name in zip(legend.get_texts(), order, strict=True):
        text.set(text=name, parse_math=False, gid="name")
        if name in bold:
            text.set_fontweight("bold")


def log_scale(axes: Axes, which: Literal["x", "y"]) -> None:
    """Make an axis logarithmic once all is drawn, with labels that do not overlap."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    axes.set(**{f"{which}scale": "log"})
    axis = axes.xaxis if which == "x" else axes.yaxis
    low, high = axes.get_xlim() if which == "x" else axes.get_ylim()
    decades = np.log10(high / low)
    if decades < 2.5:
        # Powers of ten would be too few labels, and fewer decades need more multiples.
        multiples = (1, 2, 5) if decades > 0.7 else (1, 1.5, 2, 3, 5, 7)
        axis.set_major_locator(LogLocator(subs=multiples))
        axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,g}"))
    axis.set_minor_formatter(NullFormatter())
