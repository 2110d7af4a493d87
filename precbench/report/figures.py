"""Figures.

Accuracy against time, rows or a swept parameter, ROC curves, prec@k against k.

Each figure is written as PDF, PNG and SVG, with its numbers as CSV. Curves are medians
over the splits, bands reach from the lower to the upper quartile. A built-in solver
looks alike in all figures, another label in all figures of an experiment; of over eight
solvers the best are drawn.
"""

import itertools
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from precbench.core.errors import InputError
from precbench.core.studies import SubFigure
from precbench.ranking.statistics import levels
from precbench.ranking.topk import resolve_k
from precbench.report.curves import (
    precision_against_k,
    roc,
    value_against_share,
    value_against_sweep,
    value_against_time,
)
from precbench.report.sheet import Sheet, wrapped
from precbench.report.style import (
    MOST_CURVES,
    Axes,
    Style,
    log_scale,
    name_curves,
    solver_styles,
)
from precbench.report.summary_tables import is_mixed, notes
from precbench.results.read import Run, read_csv

# Labels of an axis, by the type of k
_K_LABELS = {
    "float": "k (fraction of the positives)",
    "int": "k (rows)",
    "str": "k (fraction of the rows)",
}
_AXIS_LABELS = {
    "batch_size": "batch size (rows)",
    "epochs": "passes over the training set",
    "reservoir_size": "reservoir (rows)",
}
# Of the drawing, in inches; title and notes come on top of the height
_WIDTH = 6.4
_HEIGHT = 3.8
_THICK = 3.0  # points, of the curve of a solver that is highlighted
_DENSE = 12  # points of a curve; with more, only some have a marker
_MARKER_DISTANCE = 0.15  # on such a curve, as a share of the diagonal of the axes
_TOP_SHARE = 0.1  # of the negatives, shown enlarged
_FIRST_SPLIT = "The curves of the first split."

_Reader = Callable[[str], pd.DataFrame]  # returns the curves in the file of this name
# The types of the columns of all files of curves, and of each file
_COLUMNS: dict[str, type] = {
    "dataset": str,
    "title": str,
    "solver": str,
    "sweep": str,
    "split": float,
}
_CURVE_FILES: dict[str, dict[str, type]] = {
    "roc.csv": {"fpr": float, "tpr": float},
    "precision-k.csv": {"k": float, "share": float, "precision": float},
    "roc-counts.csv": {"part": str, "false_positives": float, "true_positives": float},
}


def write_figures(
    run: Run, summary: pd.DataFrame, sources: Sequence[Path] = ()
) -> list[Path]:
    """Draw the figures that ``experiment.json`` lists, and return all paths.

    Figures newer than all `sources`, if any, are kept; figures without data are
    deleted.
    """
    unknown = [kind for kind in run.plots if kind not in _KINDS]
    if unknown:
        raise InputError(
            f"{run.folder / 'experiment.json'}: unknown kinds of figures"
            f" {', '.join(unknown)} in plots; use some of {', '.join(_KINDS)}"
        )
    files: list[Path] = []
    read = _reader(run.folder)
    for kind in run.plots:
        # "" stands for all data sets, or all points of the sweep, on one page.
        datasets = [""] if kind in _OF_ALL_DATASETS else run.datasets
        points = [""] if kind in _OF_ALL_POINTS else run.sweep_points
        for dataset, sweep in itertools.product(datasets, points):
            page = _KINDS[kind](run, dataset, sweep, read)
            stem = run.folder / "figures" / _file_name(kind, page)
            if page.data.empty:  # without a finished trial
                for path in stem.parent.glob(f"{stem.name}.*"):
                    path.unlink()  # a figure of earlier results
                continue
            table = page.data
            if run.is_stand_in(page.dataset):
                table = table.assign(stand_in=True)
            files += _sheet(page, run, summary).save(stem, table, sources)
    return files


def _reader(folder: Path) -> _Reader:
    """Return a function that reads files of curves, each of them once."""

    @cache
    def read(name: str) -> pd.DataFrame:
        return read_csv(folder / name, _COLUMNS | _CURVE_FILES[name])

    return read


def _file_name(kind: str, page: "_Page") -> str:
    """Return the name of a figure without suffix, such as roc-letter-k-0.25."""
    words = []
    for part in (kind, page.dataset, page.sweep):
        if part:
            in_letters = part.replace("%", "percent")
            words.append(re.sub(r"[^A-Za-z0-9_.]+", "-", in_letters))
    return "-".join(words)


@dataclass(frozen=True)
class _Page:
    """The numbers of a figure, how to draw them, and what the sheet says of them."""

    dataset: str  # "" for a page with all data sets
    sweep: str  # the point of the sweep; "" for a page with all points
    what: str  # what is shown: the second half of the title
    data: pd.DataFrame  # columns: solver, x, and the statistics, such as median
    draw: Callable[[SubFigure, "_Lines"], None]
    sentences: Sequence[str] = ()  # below the drawing
    spread: str = "Median and quartiles over {} splits."  # above the drawing
    height: float = _HEIGHT  # of the drawing, in inches
    timed: bool = False  # whether an axis is time


@dataclass(frozen=True)
class _Lines:
    """Styles and names of the solvers that a figure shows."""

    styles: Mapping[str, Style]
    names: Mapping[str, str]  # of the solvers that are drawn
    highlighted: Collection[str] = ()  # solvers

    def look(self, solver: str) -> dict[str, Any]:
        """Return options of `Axes.plot`."""
        look: dict[str, Any] = {**self.styles[solver]._asdict(), "zorder": 3}
        if solver in self.highlighted:
            look |= {"zorder": 4, "linewidth": _THICK}  # above the other curves
        return look

    def draw(
        self,
        axes: Axes,
        data: pd.DataFrame,
        x: str,
        y: str = "median",
        step: bool = False,
        marker: str | None = None,
    ) -> None:
        """Draw a curve for each solver, with a band between quartiles if any.

        With `step`, a value holds until the next point. `marker` is drawn at all
        points; by default the solver's marker is drawn, at some of many points.
        """
        parts = dict(iter(data.groupby("solver", sort=False)))
        shown = [solver for solver in self.names if solver in parts]
        for i, solver in enumerate(shown):
            rows = parts[solver]
            look = self.look(solver)
            look["drawstyle"] = "steps-post" if step else "default"
            if marker is not None:
                look |= {"marker": marker, "markersize": 3}
            elif len(rows) > _DENSE:
                # Each curve has its first marker elsewhere, so that equal curves show.
                first = _MARKER_DISTANCE * i / len(shown)
                look["markevery"] = (first, _MARKER_DISTANCE)
            axes.plot(rows[x], rows[y].to_numpy(dtype=float), **look)
            if "q25" in rows:
                _draw_band(axes, rows, x, look["color"], step)

    def mark(self, axes: Axes, points: pd.DataFrame, x: str) -> None:
        """Draw a large marker at each point of the solvers that are drawn."""
        of_names = points[points["solver"].isin([*self.names])]
        for point in of_names.to_dict("records"):
            look = {
                **self.look(point["solver"]),
                "markersize": 7,
                "markeredgecolor": "white",
                "markeredgewidth": 0.6,
            }
            axes.plot(point[x], point["median"], **look)

    def write_names(self, axes: Axes, data: pd.DataFrame, y: str = "median") -> None:
        """Write the names beside the axes, in the order of the last values."""
        last_of_solver = data[data[y].notna()].groupby("solver")[y].last()
        looks = {}
        last_values = {}
        for solver, name in self.names.items():
            looks[name] = self.look(solver)
            last_values[name] = last_of_solver.get(solver, -np.inf)
        bold = {self.names[solver] for solver in self.highlighted}
        name_curves(axes, looks, last_values, bold)


def _draw_band(axes: Axes, rows: pd.DataFrame, x: str, color: str, step: bool) -> None:
    """Shade the band between the quartiles; at a single point draw a line."""
    if len(rows) == 1:
        axes.vlines(rows[x], rows["q25"], rows["q75"], color=color)
        return
    axes.fill_between(
        rows[x],
        rows["q25"],
        rows["q75"],
        step="post" if step else None,
        color=color,
        alpha=0.12,
        linewidth=0,
    )


def _over_log_scale(
    data: pd.DataFrame, x: str, y: str, label: str, metric: str, **look: Any
) -> Callable[[SubFigure, _Lines], None]:
    """Return the `draw` of a page with a logarithmic axis.

    Column `y` of `data`, named `metric`, is drawn over column `x`, named `label`;
    `look` has further options of `_Lines.draw`.
    """

    def draw(figure: SubFigure, lines: _Lines) -> None:
        axes = figure.add_subplot()
        lines.draw(axes, data, x, y, **look)
        log_scale(axes, "x")
        lines.write_names(axes, data, y)
        _label(axes, label, metric)

    return draw


def _time_page(run: Run, dataset: str, sweep: str, _read: _Reader) -> _Page:
    """Make the page of the main metric by time: wall if all ran alone, or CPU."""
    metric = _main_metric(run, sweep)
    rows = _main_results(run, dataset, sweep)
    if (rows["timing"] == "sequential").all():
        clock = "wall_seconds"
        unit = "wall seconds of trials that ran alone"
    else:
        clock = "cpu_seconds"
        unit = "CPU seconds"
    data = _per_solver(run, rows, partial(value_against_time, clock=clock))
    label = f"training time ({unit}, log scale)"
    # In steps, since until the next checkpoint there are no newer weights.
    draw = _over_log_scale(data, "seconds", "median", label, metric, step=True)
    return _Page(
        dataset,
        sweep,
        what=f"{metric} against training time",
        data=data,
        draw=draw,
        timed=True,
    )


def _rows_page(run: Run, dataset: str, sweep: str, _read: _Reader) -> _Page:
    """Make the page of every checkpoint of one split, which shows a zig-zag."""
    metric = _main_metric(run, sweep)
    rows = _main_results(run, dataset, sweep)
    of_first = rows[(rows["split"] == rows["split"].min()) & (rows["rows_seen"] > 0)]

    def iterates(of_solver: pd.DataFrame) -> pd.DataFrame:
        return of_solver[["rows_seen", "value"]]

    data = _per_solver(run, of_first, iterates)
    label = "rows visited (each time counted, log scale)"
    draw = _over_log_scale(data, "rows_seen", "value", label, metric, marker=".")
    return _Page(
        dataset,
        sweep,
        what=f"{metric} of the iterates",
        data=data,
        draw=draw,
        spread=_FIRST_SPLIT,
    )


def _share_page(run: Run, _dataset: str, sweep: str, _read: _Reader) -> _Page:
    """Make the page of the main metric by share of the rows, by data set."""
    metric = _main_metric(run, sweep)
    parts = {}  # the numbers, by data set
    for dataset in run.datasets:
        rows = _main_results(run, dataset, sweep)
        part = _per_solver(run, rows, value_against_share)
        parts[dataset] = part.assign(dataset=dataset)
    shown = [dataset for dataset, part in parts.items() if len(part)]
    # Without a result the page has the empty table of the first data set.
    with_columns = shown or run.datasets[:1]
    data = pd.concat([parts[dataset] for dataset in with_columns], ignore_index=True)

    def draw(figure: SubFigure, lines: _Lines) -> None:
        """Draw a panel for each data set, and solvers' names beside."""
        panels = figure.subplots(1, len(shown), squeeze=False)[0]
        for axes, dataset in zip(panels, shown, strict=True):
            lines.draw(axes, parts[dataset], "share")
            title = wrapped(
                run.dataset_title(dataset), 0.75 * _WIDTH / len(shown), size=9
            )
            axes.set_title("\n".join(title), parse_math=False)
            axes.set_xlabel("rows visited (%)")
        lines.write_names(panels[-1], parts[shown[-1]])
        panels[0].set_ylabel(f"{metric} on the test set", parse_math=False)

    return _Page(
        dataset="",
        sweep=sweep,
        what=f"{metric} against the fraction of the rows",
        data=data,
        draw=draw,
    )


class _MeasuredK(NamedTuple):
    """The first precision at k among the metrics of an experiment, if any."""

    notation: str = ""
    k: float | int | str | None = None


def _measured_k(run: Run, sweep: str) -> _MeasuredK:
    for metric in run.metrics:
        measure = run.measures[run.metric_at(metric, sweep)]
        if measure.name == "precision_at_k":
            return _MeasuredK(measure.written, measure.parameters.get("k"))
    return _MeasuredK()


def _rows_of_k(run: Run, dataset: str, k: float | int | str | None) -> int | None:
    """Return `k` as a number of rows of the test set, None if the number is unknown."""
    sizes = run.data.get(dataset)
    if sizes is None or k is None:
        return None
    # Without a share the split is provided, or all rows are tested (0 training rows).
    share = sizes.test_share or 1 - sizes.training_rows / sizes.rows
    try:
        return resolve_k(
            k, n_pos=round(share * sizes.positives), n_rows=round(share * sizes.rows)
        )
    except InputError:  # k is larger than the test set
        return None


def _decade_below(fpr: float) -> float:
    """Return the largest 10**-n, n >= 1, below a rate; 0.1 for NaN."""
    if not fpr > 0:
        return 0.1
    return 10.0 ** min(-1, np.ceil(np.log10(fpr)) - 1)


def _roc_page(run: Run, dataset: str, sweep: str, read: _Reader) -> _Page:
    """Make the page of ROC curves: in full, and the beginnings on a log scale."""
    vertices = _curves_at(read("roc.csv"), dataset, sweep)
    # The log axis begins at a power of ten below all positive rates.
    least = _decade_below(vertices["fpr"][vertices["fpr"] > 0].min())
    linear_grid = np.linspace(0, 1, 501)
    log_grid = np.geomspace(least, 1, 501)
    grid = np.union1d(linear_grid, log_grid)
    data = _per_solver(run, vertices, partial(roc, fpr=grid))

    def draw(figure: SubFigure, lines: _Lines) -> None:
        """Draw the full curves on the left, and the top of the list on the right."""
        full, top = figure.subplots(1, 2, sharey=True)
        # The top ends at the first power of ten by which some solver finds half of the
        # positives: ten times the power below that rate.
        half = data["fpr"][data["median"] >= 0.5].min()
        most = 10 * max(_decade_below(half), least)
        chance = np.append(0, np.geomspace(least, 1, 101))  # the diagonal
        for axes in (full, top):
            axes.plot(chance, chance, color="0.5", linewidth=0.8, zorder=1)
        shown = data[data["fpr"].between(least, most)]
        lines.draw(full, data, "fpr", marker="")
        lines.draw(top, shown, "fpr")
        full.set(
            title="full (grey: chance)",
            xlabel="false positive rate",
            ylabel="true positive rate",
        )
        top.set(
            title="top of the list",
            xlabel="false positive rate (log scale)",
            xlim=(least, most),
        )
        log_scale(top, "x")
        lines.write_names(top, shown)

    return _Page(dataset, sweep, what="ROC curves", data=data, draw=draw)


def _precision_page(run: Run, dataset: str, sweep: str, read: _Reader) -> _Page:
    """Make the page of prec@k for all k, with a mark at the k of the experiment."""
    notation, k = _measured_k(run, sweep)
    n_rows = _rows_of_k(run, dataset, k)
    mark: float | None  # the place of k on the axis
    if isinstance(k, float):
        x = "share"  # of the positives
        label = _K_LABELS["float"]
        mark = k if n_rows else None
    else:
        x = "k"  # rows
        label = _K_LABELS["int"]
        mark = n_rows
    points = _curves_at(read("precision-k.csv"), dataset, sweep)
    # A log axis shows x > 0 only; 1e15 is far beyond any number of rows.
    is_on_axis = points[x].between(0, 1e15, "right")
    points = points[np.isfinite(points["precision"]) & is_on_axis]
    data = _per_solver(run, points, partial(precision_against_k, x=x, mark=mark))

    def draw(figure: SubFigure, lines: _Lines) -> None:
        """Draw medians by k, with names in the order of the values at the mark."""
        axes = figure.add_subplot()
        lines.draw(axes, data.drop(columns=["q25", "q75"]), x, marker="")
        axes.set_xlim(data[x].min(), data[x].max())
        log_scale(axes, "x")
        if mark:
            at_mark = data[data[x] == mark]
            axes.axvline(mark, color="0.5", linewidth=0.8, zorder=1)
            lines.mark(axes, at_mark, x)
            lines.write_names(axes, at_mark)
        else:
            lines.write_names(axes, data)
        _label(axes, f"{label}, log scale", "prec@k")

    sentences = []
    if mark:
        sentences.append(f"Markers, and the order of the names: {notation}.")
    return _Page(
        dataset,
        sweep,
        what="prec@k against k",
        data=data,
        draw=draw,
        sentences=sentences,
        spread="Medians over {} splits.",
    )


def _roc_counts_page(run: Run, dataset: str, sweep: str, read: _Reader) -> _Page:
    """Make the page of the first split's ROC in counts, training above test."""
    x = "false_positives"
    y = "true_positives"
    points = _curves_at(read("roc-counts.csv"), dataset, sweep)

    def unchanged(of_solver: pd.DataFrame) -> pd.DataFrame:
        return of_solver.drop(columns="solver")  # which `_per_solver` puts in again

    data = _per_solver(run, points, unchanged)

    def draw(figure: SubFigure, lines: _Lines) -> None:
        """Draw each part in full, and beside it the first tenth of the negatives."""
        parts = [part for part in ("training", "test") if (data["part"] == part).any()]
        for row, part in enumerate(parts):
            of_part = data[data["part"] == part]
            # Panels are numbered from 1, row by row.
            full = figure.add_subplot(len(parts), 2, 2 * row + 1)
            top = figure.add_subplot(len(parts), 2, 2 * row + 2)
            for axes, title in ((full, "full"), (top, "top of the list")):
                lines.draw(axes, of_part, x, y)
                axes.locator_params(integer=True)
                axes.set(title=f"{part} set, {title}", ylabel="true positives")
                if part == parts[-1]:
                    axes.set_xlabel("false positives")
            most = _TOP_SHARE * of_part[x].max()
            shown = of_part[of_part[x] <= most]
            # a little above the curves
            top.set(xlim=(0, most), ylim=(0, 1.03 * shown[y].max()))
            lines.write_names(top, shown, y)

    return _Page(
        dataset,
        sweep,
        what="ROC curves in counts of rows",
        data=data,
        draw=draw,
        spread=_FIRST_SPLIT,
        height=1.6 * _HEIGHT,  # two rows of panels
    )


def _sweep_page(run: Run, dataset: str, _sweep: str, _read: _Reader) -> _Page:
    """Make the page of the final values by the swept parameter."""
    if run.sweep is None:
        raise InputError(
            f"{run.folder / 'experiment.json'}: the figure accuracy-sweep needs a"
            " sweep, and there is none; leave accuracy-sweep out of plots"
        )
    parameter = run.sweep.name
    metric = run.metric_name(run.metrics[0])
    # by point; values of equal text are one point, which has the last of them
    value_of: dict[str, Any] = dict(
        zip(run.sweep_points, run.sweep.values, strict=True)
    )
    label = _sweep_label(parameter, list(value_of.values()))
    unequal_value_of = _with_unequal_values(value_of)
    values = list(unequal_value_of.values())
    finals = pd.concat(
        _main_results(run, dataset, point).assign(**{parameter: value})
        for point, value in unequal_value_of.items()
    )
    data = _per_solver(
        run, finals[finals["final"]], partial(value_against_sweep, parameter=parameter)
    )

    def draw(figure: SubFigure, lines: _Lines) -> None:
        """Draw numbers to scale, on a log axis if over a decade; texts side by side."""
        to_scale = _are_on_one_scale(parameter, values)
        places = values if to_scale else range(len(values))
        place_of = dict(zip(values, places, strict=True))
        placed = data.assign(**{parameter: data[parameter].map(place_of)})
        placed = placed.sort_values(parameter, kind="stable")
        axes = figure.add_subplot()
        lines.draw(axes, placed, parameter)
        axis_label = label
        if to_scale and min(values) > 0 and max(values) > 10 * min(values):
            axes.set_xscale("log")
            axes.minorticks_off()
            axis_label += ", log scale"
        axes.set_xticks(
            list(place_of.values()), [str(value) for value in values], parse_math=False
        )
        lines.write_names(axes, placed)
        _label(axes, axis_label, metric)

    n_splits = run.n_splits(dataset)
    sentences = []
    if (data["n_splits"] < n_splits).any():
        sentences.append(f"Some points are of fewer than {n_splits} splits.")
    quantity, _parenthesis, _unit = label.partition(" (")
    return _Page(
        dataset,
        sweep="",
        what=f"{metric} against {quantity}",
        data=data,
        draw=draw,
        sentences=sentences,
    )


def _with_unequal_values(swept: dict[str, Any]) -> dict[str, Any]:
    """Return the values of points; as texts if two are equal, as 1 and 1.0 are.

    As k these mean one row and all positives.
    """
    if len(set(swept.values())) == len(swept):
        return swept
    return {point: str(value) for point, value in swept.items()}


def _sweep_label(parameter: str, values: Sequence[Any]) -> str:
    """Return the label of the axis of a swept parameter."""
    if parameter != "k":
        return _AXIS_LABELS.get(parameter, parameter)
    types = {type(value).__name__ for value in values}
    if len(types) != 1:  # such as a count and a share
        return "k"
    return _K_LABELS.get(types.pop(), "k")


def _are_on_one_scale(parameter: str, values: Sequence[Any]) -> bool:
    """Return whether swept values are numbers of one kind."""
    if not all(isinstance(value, int | float) for value in values):
        return False
    # A k of 1 is a count of rows, a k of 1.0 a share of the positives.
    return parameter != "k" or len({type(value) for value in values}) == 1


# Makers of pages from the run, a data set, a point of the sweep, and a reader of files
# with curves
_KINDS: dict[str, Callable[[Run, str, str, _Reader], _Page]] = {
    "accuracy-time": _time_page,
    "accuracy-rows": _rows_page,
    "accuracy-share": _share_page,
    "precision-k": _precision_page,
    "roc": _roc_page,
    "roc-counts": _roc_counts_page,
    "accuracy-sweep": _sweep_page,
}
# Kinds with one page for all data sets, and for all points of the sweep
_OF_ALL_DATASETS = ("accuracy-share",)
_OF_ALL_POINTS = ("accuracy-sweep",)


def _label(axes: Axes, x: str, metric: str) -> None:
    axes.set_xlabel(x, parse_math=False)
    axes.set_ylabel(f"{metric} on the test set", parse_math=False)


def _curves_at(curves: pd.DataFrame, dataset: str, sweep: str) -> pd.DataFrame:
    return curves[(curves["dataset"] == dataset) & (curves["sweep"] == sweep)]


def _main_metric(run: Run, sweep: str) -> str:
    """Return the notation of the main metric at a point of the sweep."""
    return run.measures[run.metric_at(run.metrics[0], sweep)].written


def _main_results(run: Run, dataset: str, sweep: str) -> pd.DataFrame:
    """Return the results by the main metric on the test set."""
    wanted = {
        "dataset": dataset,
        "sweep": sweep,
        "metric": run.metric_at(run.metrics[0], sweep),
        "status": "ok",
        "part": "test",
    }
    rows = run.results
    for column, value in wanted.items():
        rows = rows[rows[column] == value]
    return rows


def _per_solver(
    run: Run, rows: pd.DataFrame, statistics: Callable[[pd.DataFrame], pd.DataFrame]
) -> pd.DataFrame:
    """Return the statistics of each solver in one table."""
    rows_of = dict(iter(rows.groupby("solver", sort=False)))
    no_rows = rows[:0]
    parts = []
    for solver in run.solvers:
        part = statistics(rows_of.get(solver, no_rows))
        part.insert(0, "solver", solver)
        parts.append(part)
    filled = [part for part in parts if len(part)]
    if not filled:
        return parts[0]  # empty, but with the names of the columns
    return pd.concat(filled, ignore_index=True)


def _sheet(page: _Page, run: Run, summary: pd.DataFrame) -> Sheet:
    """Return the sheet of a page, with the drawing of the best solvers."""
    solvers = list(dict.fromkeys(page.data["solver"]))
    of_page = _rows_about(page, summary)
    highlighted = [solver for solver in solvers if solver in run.highlight]
    best = _best_solvers(run, of_page, solvers)
    drawn = _with_highlighted(best, highlighted, solvers)
    of_drawn = of_page[of_page["solver"].isin(drawn)]
    names = {solver: _solver_name(solver, of_drawn, page.timed) for solver in drawn}
    lines = _Lines(_styles(run, drawn), names, highlighted)

    def draw(figure: SubFigure) -> None:
        page.draw(figure, lines)

    sentences = list(page.sentences)
    if len(drawn) < len(solvers):
        n_best = sum(solver in best for solver in drawn)
        others = [solver for solver in drawn if solver not in best]
        sentences.append(
            f"The {n_best} best of {len(solvers)} methods by mean"
            f" {run.metric_name(run.metrics[0])}"
            + (f", and {', '.join(others)}." if others else ".")
        )
    return Sheet(
        _title(page, run),
        draw,
        width=_WIDTH,
        height=page.height,
        above=f"{run.protocol_sentence} {_spread(page, run)}",
        caption=[" ".join(sentences), *notes(of_drawn, page.timed)],
    )


def _rows_about(page: _Page, summary: pd.DataFrame) -> pd.DataFrame:
    """Return the rows of a summary at the data set and the point of a page."""
    if page.dataset:
        summary = summary[summary["dataset"] == page.dataset]
    if page.sweep:
        summary = summary[summary["sweep"] == page.sweep]
    return summary


def _styles(run: Run, best: Sequence[str]) -> dict[str, Style]:
    """Return the styles of all solvers; no two of the best share a colour."""
    styles = solver_styles(run.solvers, run.built_in_solvers)
    if len({styles[solver].color for solver in best}) < len(best):
        styles |= solver_styles(best)
    return styles


def _title(page: _Page, run: Run) -> str:
    if page.dataset:
        subject = run.dataset_title(page.dataset)  # which names the smoke size
    elif run.smoke:
        subject = f"{run.title}, smoke size"
    else:
        subject = run.title
    at_point = f", {page.sweep}" if page.sweep else ""
    return f"{subject}: {page.what}{at_point}"


def _spread(page: _Page, run: Run) -> str:
    """Return what curves and bands are; of a single split there is nothing to say."""
    datasets = [page.dataset] if page.dataset else run.datasets
    n_splits = min(run.n_splits(dataset) for dataset in datasets)
    return page.spread.format(n_splits) if n_splits > 1 else ""


def _best_solvers(run: Run, summary: pd.DataFrame, solvers: Sequence[str]) -> list[str]:
    """Return the best of `solvers` by mean rank of the main metric, the best first."""
    if len(solvers) <= MOST_CURVES:
        return list(solvers)
    # The main metric may have another parameter at each point of a sweep.
    main = {run.metric_at(run.metrics[0], sweep) for sweep in run.sweep_points}
    rows = summary[summary["metric"].isin(main) & summary["solver"].isin(solvers)]
    groups = [rows[column] for column in ("dataset", "sweep", "metric")]
    # Means that are equal up to rounding have one level.
    mean_levels = rows["mean"].groupby(groups).transform(levels)
    is_loss = not main.isdisjoint(run.losses)  # then the smallest mean has rank 1
    # A solver without a mean is the last.
    ranks = mean_levels.groupby(groups).rank(ascending=is_loss, na_option="bottom")
    mean_ranks = ranks.groupby(rows["solver"]).mean().reindex(pd.Index(solvers))
    return [*mean_ranks.sort_values(kind="stable").index[:MOST_CURVES]]


def _with_highlighted(
    best: Sequence[str], highlighted: Sequence[str], solvers: Sequence[str]
) -> list[str]:
    """Return the solvers to draw, in the order of `solvers`.

    Those to highlight are always drawn; the last of the best make room for them.
    """
    others = [solver for solver in best if solver not in highlighted]
    n_others = max(0, MOST_CURVES - len(highlighted))
    drawn = {*highlighted, *others[:n_others]}
    return [solver for solver in solvers if solver in drawn]


def _solver_name(solver: str, summary: pd.DataFrame, timed: bool) -> str:
    """Return a solver's name, with marks and the number of results if some lack.

    ‡ means that a limit stopped fits; † that fits ran beside others, in a figure of
    times where not all did.
    """
    rows = summary[summary["solver"] == solver]
    n = rows["n"].min()
    n_trials = rows["trials"].max()
    name = solver if n == n_trials else f"{solver} ({n} of {n_trials})"
    marks = ""
    if (rows["stopped"] > 0).any():
        marks += "‡"
    if timed and is_mixed(summary) and (rows["timing"] == "parallel").any():
        marks += "†"
    return f"{name} {marks}".rstrip()
