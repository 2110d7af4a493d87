"""Styles of solvers in figures, and names at the ends of curves."""

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from matplotlib.axes import Axes


# Okabe and Ito's palette without its yellow, which is too faint on paper, and its grey, the colour
# of chance. Each further one is as far as possible from all before it (in OKLab), from that
# grey and from white, among those that are neither nearly black nor paler than 2.2 : 1 on white.
_COLOURS = (
    *("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00", "#000000", "#8700D2"),
    *("#87004B", "#5A4B00", "#001ED2", "#F05AFF", "#FF0069", "#8778FF", "#00C300", "#5A3C87"),
    *("#C30096", "#878700", "#005A5A", "#965A5A", "#006900", "#B4000F", "#0F69FF", "#A55AC3"),
    *("#FF8778", "#8787C3", "#96B478", "#FF5AB4", "#B4875A", "#5A3CE1", "#870087", "#782D0F"),
    *("#C396FF", "#C33C69", "#2D9600", "#FF2D0F"),
)
_PLACES = {colour: place for place, colour in enumerate(_COLOURS)}
_DASHES: tuple[Any, ...] = ("-", "--", "-.", (0, (6, 1, 1, 1, 1, 1)), (0, (9, 2)))
_MARKERS = ("o", "s", "^", "D", "v", "P", "X", "<", ">", "p", "*")

# Of one figure
MOST_CURVES = 8

# Inches from one name at the ends of curves to the next
NAME_LINE = 0.155


class Style(NamedTuple):
    color: str
    linestyle: Any
    marker: str


# All combinations: the numbers of colours, dashes and markers have no common factor.
_STYLES = [
    Style(_COLOURS[i % len(_COLOURS)], _DASHES[i % len(_DASHES)], _MARKERS[i % len(_MARKERS)])
    for i in range(len(_COLOURS) * len(_DASHES) * len(_MARKERS))
]


def solver_styles(labels: Sequence[str], built_in: Sequence[str] = ()) -> dict[str, Style]:
    """Assign a style to each label; names in `built_in` have the style of their place.

    No two labels have the same style, and no two of the first 36 the same colour. Other labels
    take, in their order, a free style: of the colour, then of the marker, used least so far.
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
    name: str
    y: float  # NaN for a curve of another panel
    look: dict[str, Any]  # keywords of a line


def name_ends(axes: "Axes", ends: Sequence[End], height: float) -> None:
    """Write the names of curves at the right of their ends, without overlap.

    The limits of the axes are final; `height` is in inches, roughly.
    """
    from scipy.optimize import isotonic_regression

    scale = axes.transScale + axes.transLimits
    heights = [scale.transform((axes.get_xlim()[1], end.y))[1] for end in ends]
    order = sorted(range(len(ends)), key=lambda i: (np.nan_to_num(heights[i], nan=-np.inf), -i))
    offsets = NAME_LINE / height * np.arange(len(ends))
    wanted = np.clip(np.nan_to_num([heights[i] for i in order], nan=0.0), 0, 1)
    # The least squares among all places that are far enough apart.
    places = isotonic_regression(wanted - offsets).x
    places = np.clip(places, 0, max(1 - offsets[-1], 0)) + offsets if len(ends) else places
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
            fontsize=8,
            parse_math=False,
            annotation_clip=False,
            gid="name",
        )


def log_scale(axes: "Axes", which: Literal["x", "y"]) -> None:
    """Make an axis logarithmic after drawing; its labels do not overlap."""
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
