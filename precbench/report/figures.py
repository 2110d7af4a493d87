"""Figures: accuracy against time, rows visited or a swept parameter, and ROC curves.

Each is written as PDF, PNG and SVG, with its numbers as CSV. Curves are medians over the splits,
bands reach from the lower to the upper quartile. A built-in solver looks the same in all figures,
any other label in those of an experiment.
"""

import itertools
import re
import textwrap
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pandas as pd

from precbench.errors import InputError
from precbench.report.tables import notes
from precbench.results import Run, read_csv

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure, SubFigure

__all__ = [
    "Style",
    "roc",
    "save_figure",
    "solver_styles",
    "value_against_share",
    "value_against_sweep",
    "value_against_time",
    "write_figures",
]

# Okabe and Ito's palette; grey replaces its yellow, which is too faint on paper.
_COLOURS = (
    *("#0072B2", "#D55E00", "#009E73", "#CC79A7"),
    *("#56B4E9", "#E69F00", "#000000", "#7F7F7F"),
)
_DASHES: tuple[Any, ...] = ("-", "--", "-.", (0, (1, 1)), (0, (6, 1, 1, 1, 1, 1)))
_MARKERS = ("o", "s", "^", "D", "v", "P", "X", "<", ">", "p", "*")
_K_LABELS = {
    "float": "k (share of the positives)",
    "int": "k (rows)",
    "str": "k (share of the rows)",
}
_AXIS_LABELS = {
    "batch_size": "batch length (rows)",
    "epochs": "passes over the training part",
}
_WIDTH, _HEIGHT = 6.4, 3.8  # inches; titles and notes take more of the height
_LINE = 0.15  # inches for a line of small print
_TITLE_LINE = 0.2
_MARGIN = 0.08
_MOST_LINES = 20  # of one text
_MOST_VALUES = 1_000_000  # at a time
_DENSE = 12  # points of a curve; with more, only some have a marker
_TOP_SHARE = 0.1  # of the negatives, shown enlarged
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
    "svg.hashsalt": "precbench",
    "savefig.dpi": 150,
}


class Style(NamedTuple):
    """Colour, dashes and marker of a solver."""

    color: str
    linestyle: Any
    marker: str


# The numbers of colours, dashes and markers have no common factor: 440 styles, of which any eight
# in a row differ in colour.
_STYLES = [Style(_COLOURS[i % 8], _DASHES[i % 5], _MARKERS[i % 11]) for i in range(8 * 5 * 11)]


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
        No two labels have the same style. Those not in `built_in` take, in their order, the first
        style that is left of the colour least used so far.
    """
    own = dict(zip(built_in, _STYLES, strict=False))
    styles = {label: own[label] for label in labels if label in own}
    for label in labels:
        if label not in styles:
            used = Counter(style.color for style in styles.values())
            left = [style for style in _STYLES[len(own) :] if style not in styles.values()]
            styles[label] = min(left or _STYLES, key=lambda style: used[style.color])
    return styles


def value_against_time(trials: pd.DataFrame) -> pd.DataFrame:
    """Summarise the curves of one solver over its splits.

    A curve is a right-continuous step function of the training time: it has no value before its
    first checkpoint with a positive time, and keeps the last one.

    Parameters
    ----------
    trials : pandas.DataFrame
        The columns ``split``, ``wall_seconds`` and ``value`` of one metric.

    Returns
    -------
    pandas.DataFrame
        ``seconds`` (each time of a step of any curve, once all have a value), ``n_splits``,
        ``q25``, ``median`` and ``q75``.
    """
    steps = trials[(trials["wall_seconds"] > 0) & trials["value"].notna()]
    steps = steps.sort_values("wall_seconds", kind="stable")
    curves = [
        (curve["wall_seconds"].to_numpy(), curve["value"].to_numpy())
        for _, curve in steps.groupby("split")
    ]
    start = max((times[0] for times, _ in curves), default=np.inf)
    grid = np.unique(steps["wall_seconds"].to_numpy())
    grid = grid[grid >= start]
    return _in_pieces("seconds", grid, curves, _last_step)


def _last_step(at: np.ndarray, times: np.ndarray, values: np.ndarray) -> np.ndarray:
    return values[np.searchsorted(times, at, "right") - 1]


def roc(vertices: pd.DataFrame, fpr: np.ndarray) -> pd.DataFrame:
    """Summarise the ROC curves of one solver over its splits.

    Parameters
    ----------
    vertices : pandas.DataFrame
        The columns ``split``, ``fpr`` and ``tpr``.
    fpr : ndarray of shape (n,)
        False positive rates at which to read the curves; of a vertical step, its upper end.

    Returns
    -------
    pandas.DataFrame
        ``fpr``, ``n_splits``, ``q25``, ``median`` and ``q75`` of the true positive rate.
    """
    curves = [
        (curve["fpr"].to_numpy(), curve["tpr"].to_numpy())
        for _, curve in vertices.sort_values(["fpr", "tpr"]).groupby("split")
    ]
    return _in_pieces("fpr", fpr if curves else fpr[:0], curves, np.interp)


def value_against_sweep(finals: pd.DataFrame, parameter: str) -> pd.DataFrame:
    """Summarise the final values of one solver over its splits.

    Parameters
    ----------
    finals : pandas.DataFrame
        The columns `parameter` (the swept value) and ``value`` of one metric.
    parameter : str

    Returns
    -------
    pandas.DataFrame
        `parameter`, ``n_splits``, ``q25``, ``median`` and ``q75``.
    """
    groups = finals[finals["value"].notna()].groupby(parameter, sort=False)["value"]
    points = [
        _quartiles(parameter, np.array([x]), [np.array([value]) for value in values])
        for x, values in groups
    ]
    return pd.concat(points or [_quartiles(parameter, np.empty(0), [])], ignore_index=True)


def _in_pieces(
    name: str,
    x: np.ndarray,
    curves: Sequence[tuple[np.ndarray, np.ndarray]],
    read: Callable[..., Any],
) -> pd.DataFrame:
    """Return the quartiles of curves read at `x`; all readings at once might fill the memory."""
    pieces = np.array_split(x, 1 + len(x) * len(curves) // _MOST_VALUES)
    return pd.concat(
        [_quartiles(name, piece, [read(piece, *curve) for curve in curves]) for piece in pieces],
        ignore_index=True,
    )


def _quartiles(name: str, x: np.ndarray, curves: Sequence[np.ndarray]) -> pd.DataFrame:
    """Return the quartiles over curves with values at the same `x`."""
    with np.errstate(invalid="ignore"):  # between two risks that have overflowed
        q = np.quantile(curves, [0.25, 0.5, 0.75], axis=0) if len(x) else np.empty((3, 0))
    return pd.DataFrame(
        {name: x, "n_splits": len(curves), "q25": q[0], "median": q[1], "q75": q[2]}
    )


def write_figures(run: Run, summary: pd.DataFrame) -> list[Path]:
    """Draw the figures that ``experiment.json`` asks for, into the subfolder ``figures``.

    Parameters
    ----------
    run : Run
        From `precbench.results.read_run`; its folder holds ``roc.csv`` for ROC curves.
    summary : pandas.DataFrame
        From `precbench.report.tables.summarise`.

    Returns
    -------
    list of pathlib.Path
        A CSV, a PDF, a PNG and an SVG for each figure; the same results give the same bytes. A
        data set without any finished trial has no figure.

    Raises
    ------
    InputError
        If a kind of figure is unknown, or ``roc.csv`` is missing or malformed.
    """
    unknown = [kind for kind in run.plots if kind not in _KINDS]
    if unknown:
        raise InputError(
            f"{run.folder / 'experiment.json'} asks for {', '.join(unknown)}: "
            f"the kinds of figures are {', '.join(_KINDS)}"
        )
    written: list[Path] = []
    for kind in run.plots:
        for page in _KINDS[kind](run):
            written += _write(page, run, summary)
    return written


@dataclass(frozen=True)
class _Page:
    """One figure before it is drawn."""

    kind: str
    dataset: str  # "" for a page with all of them
    sweep: str  # the point of the sweep, if it shows only one
    what: str  # the second half of the title
    data: pd.DataFrame  # solver, x, and the statistics
    draw: Callable[["SubFigure", "_Lines", pd.DataFrame], None]
    spread: bool = True  # whether it shows all splits
    height: float = _HEIGHT
    timed: bool = False  # whether an axis is time
    legend_below: bool = False


class _Lines:
    """Draws the curves of solvers in their styles, and keeps them for the legend."""

    def __init__(self, styles: dict[str, Style]):
        self.styles = styles
        self.handles: dict[str, Any] = {}

    def draw(self, axes: "Axes", data: pd.DataFrame, x: str, step: bool = False) -> None:
        """Draw medians and bands; `step` for right-continuous step functions."""
        shown = list(dict.fromkeys(data["solver"]))
        for i, solver in enumerate(shown):
            rows, style = data[data["solver"] == solver], self.styles[solver]
            [self.handles[solver]] = axes.plot(
                rows[x],
                rows["median"],
                drawstyle="steps-post" if step else "default",
                markevery=(0.15 * i / len(shown), 0.15) if len(rows) > _DENSE else None,
                **style._asdict(),
            )
            if len(rows) == 1:
                axes.vlines(rows[x], rows["q25"], rows["q75"], color=style.color)
            axes.fill_between(
                rows[x],
                rows["q25"],
                rows["q75"],
                step="post" if step else None,
                color=style.color,
                alpha=0.15,
                linewidth=0,
            )


def _time_pages(run: Run) -> Iterator[_Page]:
    for dataset, sweep in itertools.product(run.datasets, run.sweep_points):
        label = run.metric_at(run.metrics[0], sweep)
        metric = run.written(label)
        yield _Page(
            kind="accuracy-time",
            dataset=dataset,
            sweep=sweep,
            what=f"{metric} against training time",
            data=_per_solver(run, _ok(run, dataset, sweep, label), value_against_time),
            draw=partial(_draw_time, metric=metric),
            timed=True,
        )


def _draw_time(figure: "SubFigure", lines: _Lines, data: pd.DataFrame, metric: str) -> None:
    axes = figure.add_subplot()
    lines.draw(axes, data, "seconds", step=True)
    axes.set_xscale("log")
    axes.set_xlabel("training time (wall seconds, log scale)")
    axes.set_ylabel(f"{metric} on the test part", parse_math=False)


def _rows_pages(run: Run) -> Iterator[_Page]:
    for dataset, sweep in itertools.product(run.datasets, run.sweep_points):
        label = run.metric_at(run.metrics[0], sweep)
        metric = run.written(label)
        curves = _ok(run, dataset, sweep, label)
        first = curves[(curves["split"] == curves["split"].min()) & (curves["rows_seen"] > 0)]
        yield _Page(
            kind="accuracy-rows",
            dataset=dataset,
            sweep=sweep,
            what=f"{metric} of the iterates",
            data=_per_solver(run, first, lambda rows: rows[["rows_seen", "value"]]),
            draw=partial(_draw_rows, metric=metric),
            spread=False,
        )


def _draw_rows(figure: "SubFigure", lines: _Lines, data: pd.DataFrame, metric: str) -> None:
    """Draw every checkpoint of one split, since medians would hide a zig-zag."""
    axes = figure.add_subplot()
    for solver, curve in data.groupby("solver", sort=False):
        look = lines.styles[str(solver)]._asdict() | {"marker": "."}
        [lines.handles[str(solver)]] = axes.plot(
            curve["rows_seen"], curve["value"], linewidth=1, markersize=3, **look
        )
    axes.set_xscale("log")
    axes.set_xlabel("rows visited (each time counted, log scale)")
    axes.set_ylabel(f"{metric} on the test part", parse_math=False)


def value_against_share(trials: pd.DataFrame) -> pd.DataFrame:
    """Summarise the curves of one solver by the share of rows visited.

    Parameters
    ----------
    trials : pandas.DataFrame
        The columns ``split``, ``rows_seen`` and ``value`` of one metric.

    Returns
    -------
    pandas.DataFrame
        ``share`` (of all the rows that a fit visits, in percent), ``n_splits``,
        ``q25``, ``median`` and ``q75``.
    """
    learnt = trials[(trials["rows_seen"] > 0) & trials["value"].notna()]
    share = 100 * learnt["rows_seen"] / learnt.groupby("split")["rows_seen"].transform("max")
    return value_against_sweep(learnt.assign(share=share.round(0)), "share")


def _share_pages(run: Run) -> Iterator[_Page]:
    """Place the data sets side by side."""
    for sweep in run.sweep_points:
        label = run.metric_at(run.metrics[0], sweep)
        metric = run.written(label)
        parts = [
            _per_solver(run, _ok(run, dataset, sweep, label), value_against_share).assign(
                dataset=dataset
            )
            for dataset in run.datasets
        ]
        yield _Page(
            kind="accuracy-share",
            dataset="",
            sweep=sweep,
            what=f"{metric} against the share of the rows",
            data=pd.concat([part for part in parts if len(part)] or parts[:1], ignore_index=True),
            draw=partial(_draw_shares, metric=metric, run=run),
            legend_below=True,
        )


def _draw_shares(
    figure: "SubFigure", lines: _Lines, data: pd.DataFrame, metric: str, run: Run
) -> None:
    shown = [dataset for dataset in run.datasets if (data["dataset"] == dataset).any()]
    panels = figure.subplots(1, len(shown), squeeze=False)
    for axes, dataset in zip(panels[0], shown, strict=True):
        lines.draw(axes, data[data["dataset"] == dataset], "share")
        title = _wrapped(run.dataset_title(dataset), max(60 // len(shown), 8))
        axes.set_title("\n".join(title), parse_math=False)
        axes.set_xlabel("rows visited (%)")
    panels[0, 0].set_ylabel(f"{metric} on the test part", parse_math=False)


def _roc_pages(run: Run) -> Iterator[_Page]:
    numbers, text = ("split", "fpr", "tpr"), ("dataset", "title", "solver", "sweep")
    everything = read_csv(run.folder / "roc.csv", text, numbers)
    for dataset, sweep in itertools.product(run.datasets, run.sweep_points):
        vertices = everything[(everything["dataset"] == dataset) & (everything["sweep"] == sweep)]
        left = _decade_below(vertices["fpr"][vertices["fpr"] > 0].min())
        grid = np.union1d(np.linspace(0, 1, 501), np.geomspace(left, 1, 501))
        yield _Page(
            kind="roc",
            dataset=dataset,
            sweep=sweep,
            what="ROC curves",
            data=_per_solver(run, vertices, partial(roc, fpr=grid)),
            draw=partial(_draw_roc, left=left),
            legend_below=True,
        )


def _decade_below(fpr: float) -> float:
    return 10.0 ** min(-1, np.ceil(np.log10(fpr)) - 1) if fpr > 0 else 0.1


def _draw_roc(figure: "SubFigure", lines: _Lines, data: pd.DataFrame, left: float) -> None:
    """Draw full curves, and on a log scale their start, where half of the positives are found."""
    full, top = figure.subplots(1, 2, sharey=True)
    right = 10 * max(_decade_below(data["fpr"][data["median"] >= 0.5].min()), left)
    chance = np.append(0, np.geomspace(left, 1, 101))
    for axes in (full, top):
        axes.plot(chance, chance, color="0.5", linewidth=0.8, zorder=1)
    lines.draw(full, data, "fpr")
    lines.draw(top, data[data["fpr"].between(left, right)], "fpr")
    full.set(title="full (grey: chance)", xlabel="false positive rate", ylabel="true positive rate")
    top.set(title="top of the list", xlabel="false positive rate (log scale)")
    top.set(xscale="log", xlim=(left, right))


def _roc_counts_pages(run: Run) -> Iterator[_Page]:
    numbers = ("split", "false_positives", "true_positives")
    text = ("dataset", "title", "solver", "sweep", "part")
    everything = read_csv(run.folder / "roc-counts.csv", text, numbers)
    for dataset, sweep in itertools.product(run.datasets, run.sweep_points):
        curves = everything[(everything["dataset"] == dataset) & (everything["sweep"] == sweep)]
        yield _Page(
            kind="roc-counts",
            dataset=dataset,
            sweep=sweep,
            what="ROC curves in counts of rows",
            data=_per_solver(run, curves, lambda rows: rows.drop(columns="solver")),
            draw=_draw_roc_counts,
            legend_below=True,
            spread=False,
            height=1.6 * _HEIGHT,
        )


def _draw_roc_counts(figure: "SubFigure", lines: _Lines, data: pd.DataFrame) -> None:
    """Draw the training part above the test part; on the right the top of the list."""
    parts = [part for part in ("training", "test") if (data["part"] == part).any()]
    for i, part in enumerate(parts):
        curves = data[data["part"] == part]
        right = _TOP_SHARE * curves["false_positives"].max()
        for j, what in enumerate(("full", "top of the list")):
            axes = figure.add_subplot(len(parts), 2, 2 * i + j + 1)
            for solver, curve in curves.groupby("solver", sort=False):
                look = lines.styles[str(solver)]._asdict() | {"marker": ""}
                x, y = curve["false_positives"], curve["true_positives"]
                [lines.handles[str(solver)]] = axes.plot(x, y, **look)
            axes.locator_params(integer=True)
            axes.set_title(f"{part} part, {what}")
            axes.set_ylabel("true positives")
            if i == len(parts) - 1:
                axes.set_xlabel("false positives")
            if j == 1:
                axes.set_xlim(0, right)
                top = curves.loc[curves["false_positives"] <= right, "true_positives"].max()
                axes.set_ylim(0, 1.03 * top)


def _sweep_pages(run: Run) -> Iterator[_Page]:
    if run.sweep is None:
        raise InputError(f"{run.folder / 'experiment.json'}: accuracy-sweep needs a sweep")
    name, values = run.sweep["name"], run.sweep["values"]
    metric = run.metric_name(run.metrics[0])
    of_k = _K_LABELS.get("".join({type(value).__name__ for value in values}), "k")
    label = of_k if name == "k" else _AXIS_LABELS.get(name, name)
    for dataset in run.datasets:
        points = [
            _ok(run, dataset, sweep, run.metric_at(run.metrics[0], sweep)).assign(**{name: value})
            for sweep, value in zip(run.sweep_points, values, strict=True)
        ]
        finals = pd.concat(points)
        statistics = partial(value_against_sweep, parameter=name)
        yield _Page(
            kind="accuracy-sweep",
            dataset=dataset,
            sweep="",
            what=f"{metric} against {label.partition(' (')[0]}",
            data=_per_solver(run, finals[finals["final"]], statistics),
            draw=partial(_draw_sweep, name=name, values=values, label=label, metric=metric),
        )


def _draw_sweep(
    figure: "SubFigure",
    lines: _Lines,
    data: pd.DataFrame,
    name: str,
    values: Sequence[Any],
    label: str,
    metric: str,
) -> None:
    axes = figure.add_subplot()
    numbers = all(isinstance(value, int | float) for value in values)
    if name == "k":  # a count and a share are not on one scale
        numbers &= len({type(value) for value in values}) == 1
    places = dict(zip(values, values if numbers else range(len(values)), strict=True))
    placed = data.assign(**{name: data[name].map(places)}).sort_values(name, kind="stable")
    lines.draw(axes, data=placed, x=name)
    if numbers and min(values) > 0 and max(values) > 10 * min(values):
        axes.set_xscale("log")
        axes.minorticks_off()
        label += ", log scale"
    axes.set_xticks(list(places.values()), [str(value) for value in values], parse_math=False)
    axes.set_xlabel(label, parse_math=False)
    axes.set_ylabel(f"{metric} on the test part", parse_math=False)


_KINDS: dict[str, Callable[[Run], Iterator[_Page]]] = {
    "accuracy-time": _time_pages,
    "accuracy-rows": _rows_pages,
    "accuracy-share": _share_pages,
    "roc": _roc_pages,
    "roc-counts": _roc_counts_pages,
    "accuracy-sweep": _sweep_pages,
}


def _ok(run: Run, dataset: str, sweep: str, metric: str) -> pd.DataFrame:
    rows = run.results
    wanted = {"dataset": dataset, "sweep": sweep, "metric": metric, "status": "ok", "part": "test"}
    for column, value in wanted.items():
        rows = rows[rows[column] == value]
    return rows


def _per_solver(
    run: Run, rows: pd.DataFrame, statistics: Callable[[pd.DataFrame], pd.DataFrame]
) -> pd.DataFrame:
    """Concatenate the statistics of each solver, in the order of the tables."""
    parts = [statistics(rows[rows["solver"] == solver]) for solver in run.solvers]
    for part, solver in zip(parts, run.solvers, strict=True):
        part.insert(0, "solver", solver)
    filled = [part for part in parts if len(part)]
    return pd.concat(filled, ignore_index=True) if filled else parts[0]


def _write(page: _Page, run: Run, summary: pd.DataFrame) -> list[Path]:
    parts = (page.kind, page.dataset, page.sweep)
    plain = (part.replace("%", "percent") for part in parts if part)
    stem = "-".join(re.sub(r"[^A-Za-z0-9_.]+", "-", part) for part in plain)
    table, *drawings = (
        run.folder / "figures" / f"{stem}.{suffix}" for suffix in ("csv", "pdf", "png", "svg")
    )
    if page.data.empty:
        for path in (table, *drawings):  # left by earlier results
            path.unlink(missing_ok=True)
        return []
    table.parent.mkdir(exist_ok=True)
    page.data.to_csv(table, index=False, lineterminator="\n")
    here = summary[summary["dataset"] == page.dataset] if page.dataset else summary
    save_figure(partial(_draw, page, run, here), *drawings)
    return [table, *drawings]


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

    with style.context(["default", _RC_PARAMS]):
        figure = draw()
        for path in paths:
            figure.savefig(path, metadata=_METADATA[path.suffix])
            figure.set_layout_engine("none")  # it is laid out by now


def _draw(page: _Page, run: Run, summary: pd.DataFrame) -> "Figure":
    """Stack title, protocol, curves with legend, and notes."""
    from matplotlib.figure import Figure

    at = f", {page.sweep}" if page.sweep else ""
    here = summary[summary["sweep"] == page.sweep] if page.sweep else summary
    n = min(run.n_splits(dataset) for dataset in ([page.dataset] if page.dataset else run.datasets))
    spread = f"Median and quartiles over {n} splits." if n > 1 else ""
    if not page.spread:
        spread = "The curves of the first split."
    of = run.dataset_title(page.dataset) if page.dataset else run.title
    title = _wrapped(f"{of}: {page.what}{at}", 72)
    protocol = _wrapped(f"{run.protocol_sentence} {spread}", 104)
    below = [line for note in notes(here, page.timed) for line in _wrapped(note, 104)]

    head = _MARGIN + _TITLE_LINE * len(title) + _LINE * len(protocol)
    foot = _MARGIN + _LINE * len(below)
    heights = [head, page.height, foot]
    figure = Figure(figsize=(_WIDTH, sum(heights)), layout="constrained")
    parts: Any = figure.subfigures(3, 1, height_ratios=heights, hspace=0)
    above, body, under = parts
    lines = _Lines(solver_styles(run.solvers, run.built_in_solvers))
    page.draw(body, lines, page.data)
    _legend(page, body, lines, here)

    y = head - _MARGIN
    for text in title:
        _add_line(above, y / head, text, fontsize=10, fontweight="bold")
        y -= _TITLE_LINE
    for text in protocol:
        _add_line(above, y / head, text)
        y -= _LINE
    for i, text in enumerate(below):
        _add_line(under, 1 - i * _LINE / foot, text)
    return figure


def _wrapped(text: str, width: int) -> list[str]:
    """Return lines, no more than a figure has room for."""
    return textwrap.wrap(text, width, max_lines=_MOST_LINES, placeholder=" …")


def _add_line(part: "SubFigure", y: float, text: str, fontsize: int = 8, **look: Any) -> None:
    """Add a line of text with its upper edge at `y`, a share of the height."""
    part.text(_MARGIN / _WIDTH, y, text, va="top", parse_math=False, fontsize=fontsize, **look)


def _legend(page: _Page, figure: "SubFigure", lines: _Lines, summary: pd.DataFrame) -> None:
    """Name the solvers, with the number of trials if some have no result and the marks of notes."""
    legend = figure.legend(
        list(lines.handles.values()),
        [""] * len(lines.handles),
        loc="outside lower center" if page.legend_below else "outside right upper",
        ncols=3 if page.legend_below else 1,
    )
    for text, solver in zip(legend.get_texts(), lines.handles, strict=True):
        rows = summary[summary["solver"] == solver]
        n, trials = rows["n"].min(), rows["trials"].max()
        label = solver if n == trials else f"{solver} ({n} of {trials})"
        if (rows["stopped"] > 0).any():
            label += " ‡"
        if page.timed and (rows["timing"] == "parallel").any():
            label += " †"
        text.set_text(label)
        text.set_parse_math(False)
