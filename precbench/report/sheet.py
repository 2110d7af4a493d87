"""The sheet of a figure (title, drawing, caption), and the writing of its files."""

import io
import textwrap
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from precbench.core.files import write_whole
from precbench.core.text import visible

if TYPE_CHECKING:
    from matplotlib.figure import Figure, SubFigure


MARGIN = 0.08  # in inches, as all lengths
_TITLE_LINE = 0.2  # height of a line of the title
_LINE = 0.15  # height of a line of small print
# Mean width of a letter of 1 point, by weight
_LETTERS = {"normal": 0.0079, "bold": 0.0093}
_MOST_LINES = 20  # of a text
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
    "pdf.fonttype": 42,  # TrueType
    "svg.fonttype": "none",  # letters stay text
    # Otherwise the ids in an SVG are random, and equal results give unequal files.
    "svg.hashsalt": "precbench",
    "savefig.dpi": 150,
}
_METADATA: dict[str, dict[str, Any]] = {
    ".pdf": {"Creator": "precbench", "CreationDate": None},
    ".png": {"Software": "precbench"},
    ".svg": {"Creator": "precbench", "Date": None},
}


@dataclass(frozen=True)
class Sheet:
    """Title, small print, drawing and caption below each other.

    Lengths are in inches.
    """

    title: str
    draw: Callable[["SubFigure"], Any]  # into the part of the figure for the drawing
    width: float
    height: float  # of the drawing alone
    above: str = ""  # small print below the title
    caption: Sequence[str] = ()  # paragraphs below the drawing

    def figure(self) -> "Figure":
        """Return the figure: title and small print, drawing, and caption."""
        from matplotlib.figure import Figure

        inside = self.width - 2 * MARGIN
        title = wrapped(self.title, inside, size=10, weight="bold")
        above = wrapped(self.above, inside)
        caption = [line for text in self.caption for line in wrapped(text, inside)]
        below_title = MARGIN + _TITLE_LINE * len(title)
        heights = [
            below_title + _LINE * len(above),
            self.height,
            MARGIN + _LINE * len(caption),
        ]
        figure = Figure(figsize=(self.width, sum(heights)), layout="constrained")
        # Without frames, since equal figures differ in whether an edge is at 0 or -0.
        parts: Any = figure.subfigures(
            3, 1, height_ratios=heights, hspace=0, frameon=False
        )
        top, drawing, bottom = parts
        self.draw(drawing)
        bold = {"fontsize": 10, "fontweight": "bold"}
        small = {"fontsize": 8}
        top_height, _drawing_height, bottom_height = heights
        self._write(
            top, top_height, title, start=MARGIN, line_height=_TITLE_LINE, look=bold
        )
        self._write(
            top, top_height, above, start=below_title, line_height=_LINE, look=small
        )
        self._write(
            bottom, bottom_height, caption, start=0, line_height=_LINE, look=small
        )
        return figure

    def _write(
        self,
        part: "SubFigure",
        height: float,
        lines: Sequence[str],
        *,
        start: float,
        line_height: float,
        look: dict[str, Any],
    ) -> None:
        """Write lines below each other, the first `start` inches below the part's top.

        `height` is that of the part, of which matplotlib wants the places as fractions.
        """
        x = MARGIN / self.width
        for i, line in enumerate(lines):
            y = 1 - (start + i * line_height) / height
            part.text(x, y, line, va="top", parse_math=False, **look)

    def svg(self) -> str:
        """Return the drawing as SVG."""
        # The path stands for the format: no file is written.
        [(_path, content)] = _files(self.figure, Path("drawing.svg")).items()
        return visible(content) if isinstance(content, str) else content.decode()

    def save(
        self,
        stem: Path,
        table: pd.DataFrame | None = None,
        sources: Sequence[Path] = (),
    ) -> list[Path]:
        """Write the drawing as PDF, PNG and SVG, and `table` as CSV; return the paths.

        `stem` is the path without suffix. Files are kept if all are newer than the
        given `sources`.
        """
        drawings = [
            stem.with_name(f"{stem.name}.{suffix}") for suffix in ("pdf", "png", "svg")
        ]
        csv = stem.with_name(f"{stem.name}.csv")
        paths = drawings if table is None else [csv, *drawings]
        if sources and _are_newer(paths, sources):
            return paths
        stem.parent.mkdir(parents=True, exist_ok=True)
        if table is not None:
            write_whole({csv: table.to_csv(index=False, lineterminator="\n")})
        save_figure(self.figure, *drawings)
        return paths


def _are_newer(paths: Sequence[Path], sources: Sequence[Path]) -> bool:
    """Return whether all paths are files, and newer than all sources."""
    newest_source = max(path.stat().st_mtime_ns for path in sources)
    return all(
        path.is_file() and path.stat().st_mtime_ns > newest_source for path in paths
    )


def wrapped(
    text: str, inches: float, size: float = 8, weight: str = "normal"
) -> list[str]:
    """Return a text in lines of at most `inches`, cut with " …" after `_MOST_LINES`."""
    width_of_letter = size * _LETTERS[weight]
    # Below 8 letters, lines would be too short for words.
    n_letters = max(int(inches / width_of_letter), 8)
    return textwrap.wrap(text, n_letters, max_lines=_MOST_LINES, placeholder=" …")


def save_figure(draw: Callable[[], "Figure"], *paths: Path) -> None:
    """Draw a figure to files, by their suffixes; equal figures give equal bytes."""
    write_whole(_files(draw, *paths))


def _files(draw: Callable[[], "Figure"], *paths: Path) -> dict[Path, bytes | str]:
    """Return the content of files of a figure, by their suffixes."""
    from matplotlib import style
    from matplotlib.text import Text

    contents: dict[Path, bytes | str] = {}
    with style.context(["default", _RC_PARAMS]):  # the style of the package
        figure = draw()
        for text in figure.findobj(Text):
            text.set_text(visible(text.get_text()))  # escapes control characters
        _lay_out(figure)
        for path in paths:
            content = _rendered(figure, path)
            # Drawing has rewritten the ticks: given as text, an SVG is escaped again by
            # `write_whole`.
            contents[path] = content.decode() if path.suffix == ".svg" else content
    return contents


def _rendered(figure: "Figure", path: Path) -> bytes:
    """Return the content of a file of the figure, in the format of the suffix."""
    content = io.BytesIO()
    figure.savefig(content, format=path.suffix[1:], metadata=_METADATA[path.suffix])
    return content.getvalue()


def _lay_out(figure: "Figure") -> None:
    """Fix the places of the parts, rounded: last bits differ between equal figures."""
    from matplotlib.transforms import Bbox

    def rounded(place: Any) -> Any:
        """Round to 2**-30, not to decimals: text is measured in 1/64 pixel.

        Such a place may lie halfway between two decimals, but not between two of these.
        """
        return np.round(place.get_points() * 2**30) / 2**30

    figure.draw_without_rendering()
    figure.set_layout_engine(None)  # with "none" each file would be drawn twice
    for part in figure.subfigs:
        part.bbox_relative.set_points(rounded(part.bbox_relative))
    for axes in figure.axes:
        axes.set_position(Bbox(rounded(axes.get_position(original=True))))
