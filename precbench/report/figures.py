"""Figures.

Accuracy against time, rows or a swept parameter, ROC curves, prec@k against k.

Each figure is written as PDF, PNG and SVG, with its numbers as CSV. Curves are medians
over the splits, bands reach from the lower to the upper quartile. A built-in solver
looks alike in all figures, another label in all figures of an experiment; of over eight
solvers the best are drawn.
"""

import itertools
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import Any

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

_K_LABELS = {  # by the type of k
    "float": "k (fraction of the positives)",
    "int": "k (rows)",
    "str": "k (fraction of the rows)",
}
_AXIS_LABELS = {
    "batch_size": "batch size (rows)",
    "epochs": "passes over the training set",
    "reservoir_size": "reservoir (rows)",
}
# of the drawing, in inches; title and notes come on top of the height
_WIDTH, _HEIGHT = 6.4, 3.8
_DENSE = 12  # points of a curve; with more, only some have a marker
_TOP_SHARE = 0.1  # of the negatives, shown enlarged
_FIRST_SPLIT = "The curves of the first split."


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
    # Types of the columns that all files of curves have; `read` reads each file once.
    common = dict.fromkeys(("dataset", "title", "solver", "sweep"), str) | {
        "split": float
    }
    read = cache(lambda name: read_csv(run.folder / name, common | _CURVE_FILES[name]))
    for kind in run.plots:
        # "": all on one page
        datasets = [""] if kind in _OF_ALL_DATASETS else run.datasets
        points = [""] if kind in _OF_ALL_POINTS else run.sweep_points
        for dataset, sweep in itertools.product(datasets, points):
            page = _KINDS[kind](run, dataset, sweep, read)
            parts = [
                p.replace("%", "percent") for p in (kind, page.dataset, page.sweep) if p
            ]
            name = "-".join(re.sub(r"[^A-Za-z0-9_.]+", "-", part) for part in parts)
            stem = run.folder / "figures" / name
            if page.data.empty:  # without a finished trial
                # a figure of earlier results
                for path in stem.parent.glob(f"{name}.*"):
                    path.unlink()
                continue
            flag = {"stand_in": True} if run.is_stand_in(page.dataset) else {}
            files += _sheet(page, run, summary).save(
                stem, page.data.assign(**flag), sources
            )
    return files


@dataclass(frozen=True)
class _Page:
    """One figure.

    The numbers, how to draw them, and what the sheet says about the drawing.
    """

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

    def look(self, solver: str) -> dict[str, Any]:  # options of `Axes.plot`
        return {**self.styles[solver]._asdict(), "zorder": 3}  # 3: above other lines

    def draw(
        self,
        axes: Axes,
        data: pd.DataFrame,
        x: str,
        y: str = "median",
        step: bool = False,  # whether a value holds until the next point
        # at all points; by default the solver's, at some of many points
        marker: str | None = None,
    ) -> None:
        """Draw a curve for each solver, with a band between quartiles if any."""
        parts = dict(iter(data.groupby("solver", sort=False)))
        shown = [solver for solver in self.names if solver in parts]
        for i, solver in enumerate(shown):
            rows, look = parts[solver], self.look(solver)
            look["drawstyle"] = "steps-post" if step else "default"
            if marker is not None:
                look |= {"marker": marker, "markersize": 3}
            elif len(rows) > _DENSE:
                # (start, step) in parts of the diagonal; starts differ, so that equal
                # curves show.
                look["markevery"] = (0.15 * i / len(shown), 0.15)
            axes.plot(rows[x], rows[y].to_numpy(dtype=float), **look)
            if "q25" not in rows:  # no quartiles, so no band
                continue
            band = rows[x], rows["q25"], rows["q75"]
            if len(rows) == 1:  # a band needs two points
                axes.vlines(*band, color=look["color"])
            else:
                shade: Any = {"step": "post" if step else None, "color": look["color"]}
                axes.fill_between(*band, alpha=0.12, linewidth=0, **shade)

    def mark(self, axes: Axes, points: pd.DataFrame, x: str) -> None:
        # with large markers
        for point in points[points["solver"].isin([*self.names])].to_dict("records"):
            look = {**self.look(point["solver"]), "markersize": 7}
            look |= {"markeredgecolor": "white", "markeredgewidth": 0.6}
            axes.plot(point[x], point["median"], **look)

    def write_names(self, axes: Axes, data: pd.DataFrame, y: str = "median") -> None:
        """Write the names beside the axes, in the order of the last values."""
        last_values = data[data[y].notna()].groupby("solver")[y].last()
        by_name = {
            name: last_values.get(solver, -np.inf)
            for solver, name in self.names.items()
        }
        name_curves(axes, {self.names[s]: self.look(s) for s in self.names}, by_name)


def _over_log_scale(
    data: pd.DataFrame, x: str, y: str, label: str, metric: str, **look: Any
) -> Callable[[SubFigure, _Lines], None]:
    # Return the `draw` of a page: column `y` of `data`, named `metric`, over a
    # logarithmic axis of column `x`, named `label`; `look` has further options of
    # `_Lines.draw`.

    def draw(figure: SubFigure, lines: _Lines) -> None:
        axes = figure.add_subplot()
        lines.draw(axes, data, x, y, **look)
        log_scale(axes, "x")
        lines.write_names(axes, data, y)
        _label(axes, label, metric)

    return draw


def _time_page(run: Run, dataset: str, sweep: str, _read: "_Reader") -> _Page:
    """Make the page of the main metric by time: wall if all ran alone, or CPU."""
    metric, rows = _main_metric(run, dataset, sweep)
    clock, unit = "cpu_seconds", "CPU seconds"
    if (rows["timing"] == "sequential").all():
        clock, unit = "wall_seconds", "wall seconds of trials that ran alone"
    data = _per_solver(run, rows, partial(value_against_time, clock=clock))
    label = f"training time ({unit}, log scale)"
    # Steps: until the next checkpoint the weights of the last checkpoint are all there
    # is.
    draw = _over_log_scale(data, "seconds", "median", label, metric, step=True)
    return _Page(
        dataset, sweep, f"{metric} against training time", data, draw, timed=True
    )


def _rows_page(run: Run, dataset: str, sweep: str, _read: "_Reader") -> _Page:
    """Make the page of every checkpoint of one split, which shows a zig-zag."""
    metric, rows = _main_metric(run, dataset, sweep)
    of_first = rows[(rows["split"] == rows["split"].min()) & (rows["rows_seen"] > 0)]
    data = _per_solver(
        run, of_first, lambda of_solver: of_solver[["rows_seen", "value"]]
    )
    label = "rows visited (each time counted, log scale)"
    draw = _over_log_scale(data, "rows_seen", "value", label, metric, marker=".")
    return _Page(
        dataset, sweep, f"{metric} of the iterates", data, draw, spread=_FIRST_SPLIT
    )


def _share_page(run: Run, _dataset: str, sweep: str, _read: "_Reader") -> _Page:
    """Make the page of the main metric by share of the rows, by data set."""
    parts = {}  # the numbers, by data set
    for dataset in run.datasets:
        # the metric is the same on all data sets
        metric, rows = _main_metric(run, dataset, sweep)
        parts[dataset] = _per_solver(run, rows, value_against_share).assign(
            dataset=dataset
        )
    # none: an empty page
    shown = [dataset for dataset, part in parts.items() if len(part)]
    data = pd.concat(
        [parts[dataset] for dataset in shown or run.datasets[:1]], ignore_index=True
    )

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
        lines.write_names(panels[-1], parts[shown[-1]])  # beside the last panel
        panels[0].set_ylabel(f"{metric} on the test set", parse_math=False)

    return _Page("", sweep, f"{metric} against the fraction of the rows", data, draw)


def _measured_k(run: Run, sweep: str) -> tuple[str, float | int | str | None]:
    """Return notation and k of the first precision at k among the metrics."""
    for metric in run.metrics:
        measure = run.measures[run.metric_at(metric, sweep)]
        if measure.name == "precision_at_k":
            return measure.written, measure.parameters.get("k")
    return "", None


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
    # the largest 10**-n, n >= 1, below a rate; 0.1 for NaN
    return 10.0 ** min(-1, np.ceil(np.log10(fpr)) - 1) if fpr > 0 else 0.1


def _roc_page(run: Run, dataset: str, sweep: str, read: "_Reader") -> _Page:
    """Make the page of ROC curves: in full, and the beginnings on a log scale."""
    vertices = _curves_at(read("roc.csv"), dataset, sweep)
    # where the log axis begins
    least = _decade_below(vertices["fpr"][vertices["fpr"] > 0].min())
    # linear, log
    grid = np.union1d(np.linspace(0, 1, 501), np.geomspace(least, 1, 501))
    data = _per_solver(run, vertices, partial(roc, fpr=grid))

    def draw(figure: SubFigure, lines: _Lines) -> None:
        """Draw the full curves on the left, and the top of the list on the right."""
        full, top = figure.subplots(1, 2, sharey=True)
        # The top ends at the first power of ten by which some solver finds half of the
        # positives: `_decade_below` is the power below that rate; times 10 it is the
        # power at or above.
        most = 10 * max(_decade_below(data["fpr"][data["median"] >= 0.5].min()), least)
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

    return _Page(dataset, sweep, "ROC curves", data, draw)


def _precision_page(run: Run, dataset: str, sweep: str, read: "_Reader") -> _Page:
    """Make the page of prec@k for all k, with a mark at the k of the experiment."""
    name, k = _measured_k(run, sweep)
    # the axis: share of the positives, or rows
    x = "share" if isinstance(k, float) else "k"
    n_rows = _rows_of_k(run, dataset, k)  # None if unknown
    mark = k if n_rows and isinstance(k, float) else n_rows  # k on this axis
    points = _curves_at(read("precision-k.csv"), dataset, sweep)
    # A log axis shows x > 0 only; 1e15 is far beyond any number of rows.
    points = points[
        np.isfinite(points["precision"]) & points[x].between(0, 1e15, "right")
    ]
    data = _per_solver(run, points, partial(precision_against_k, x=x, mark=mark))

    def draw(figure: SubFigure, lines: _Lines) -> None:
        """Draw medians by k on a log scale.

        Names are in the order of the values at the mark.
        """
        axes = figure.add_subplot()
        lines.draw(axes, data.drop(columns=["q25", "q75"]), x, marker="")
        axes.set_xlim(data[x].min(), data[x].max())
        log_scale(axes, "x")
        if mark:
            axes.axvline(mark, color="0.5", linewidth=0.8, zorder=1)
            lines.mark(axes, data[data[x] == mark], x)
        lines.write_names(axes, data[data[x] == mark] if mark else data)
        _label(
            axes,
            f"{_K_LABELS['float' if x == 'share' else 'int']}, log scale",
            "prec@k",
        )

    note = [f"Markers, and the order of the names: {name}."] if mark else []
    return _Page(
        dataset,
        sweep,
        "prec@k against k",
        data,
        draw,
        note,
        spread="Medians over {} splits.",
    )


def _roc_counts_page(run: Run, dataset: str, sweep: str, read: "_Reader") -> _Page:
    """Make the page of the first split's ROC in counts, training above test."""
    x, y = "false_positives", "true_positives"
    points = _curves_at(read("roc-counts.csv"), dataset, sweep)
    # As they are: no statistics; `_per_solver` puts the column ``solver`` in again.
    data = _per_solver(run, points, lambda rows: rows.drop(columns="solver"))

    def draw(figure: SubFigure, lines: _Lines) -> None:
        """Draw a row of panels for each part.

        Full, and the first tenth of the negatives.
        """
        parts = [part for part in ("training", "test") if (data["part"] == part).any()]
        for row, part in enumerate(parts):
            of_part = data[data["part"] == part]
            for column, title in enumerate(("full", "top of the list")):
                # numbered from 1
                axes = figure.add_subplot(len(parts), 2, 2 * row + column + 1)
                lines.draw(axes, of_part, x, y)
                axes.locator_params(integer=True)
                axes.set(title=f"{part} set, {title}", ylabel="true positives")
                if row == len(parts) - 1:  # the lowest
                    axes.set_xlabel("false positives")
            # `axes` is now the right panel, which shows only the top of the list.
            most = _TOP_SHARE * of_part[x].max()
            shown = of_part[of_part[x] <= most]
            # a little above the curves
            axes.set(xlim=(0, most), ylim=(0, 1.03 * shown[y].max()))
            lines.write_names(axes, shown, y)

    what, height = "ROC curves in counts of rows", 1.6 * _HEIGHT  # two rows of panels
    return _Page(dataset, sweep, what, data, draw, spread=_FIRST_SPLIT, height=height)


def _sweep_page(run: Run, dataset: str, _sweep: str, _read: "_Reader") -> _Page:
    """Make the page of the final values by the swept parameter.

    Numbers are drawn to scale.
    """
    if run.sweep is None:
        raise InputError(
            f"{run.folder / 'experiment.json'}: the figure accuracy-sweep needs a"
            " sweep, and there is none; leave accuracy-sweep out of plots"
        )
    # `swept` is the parameter
    swept, metric = run.sweep.name, run.metric_name(run.metrics[0])
    # Values of equal text are one point, of which only the last value is kept.
    values: list[Any] = [
        *dict(zip(run.sweep_points, run.sweep.values, strict=True)).values()
    ]
    # of two types: not a key
    type_names = "".join({type(value).__name__ for value in values})
    label = (
        _K_LABELS.get(type_names, "k")
        if swept == "k"
        else _AXIS_LABELS.get(swept, swept)
    )
    # 1 == 1.0, but as k they mean one row and all positives
    if len({*values}) < len(values):
        values = [str(value) for value in values]
    # The final values at all points; the value of the parameter is in a column named
    # `swept`.
    finals = pd.concat(
        _main_metric(run, dataset, sweep)[1].assign(**{swept: value})  # [1]: the rows
        for sweep, value in zip(dict.fromkeys(run.sweep_points), values, strict=True)
    )
    data = _per_solver(
        run, finals[finals["final"]], partial(value_against_sweep, parameter=swept)
    )
    n = run.n_splits(dataset)

    def draw(figure: SubFigure, lines: _Lines) -> None:
        """Draw numbers to scale (over a decade.

        On a log axis), and texts at equal distances.
        """
        axes, axis_label = figure.add_subplot(), label
        is_numeric = all(isinstance(value, int | float) for value in values)
        if swept == "k":  # a count and a share are not on one scale
            is_numeric &= len({type(value) for value in values}) == 1
        places = dict(
            zip(values, values if is_numeric else range(len(values)), strict=True)
        )
        placed = data.assign(**{swept: data[swept].map(places)}).sort_values(
            swept, kind="stable"
        )
        lines.draw(axes, placed, swept)
        if is_numeric and min(values) > 0 and max(values) > 10 * min(values):
            axes.set_xscale("log")
            axes.minorticks_off()
            axis_label += ", log scale"
        axes.set_xticks(
            list(places.values()), [str(value) for value in values], parse_math=False
        )
        lines.write_names(axes, placed)
        _label(axes, axis_label, metric)

    few = f"Some points are of fewer than {n} splits."
    what = f"{metric} against {label.partition(' (')[0]}"
    return _Page(
        dataset, "", what, data, draw, [few] if (data["n_splits"] < n).any() else []
    )


_Reader = Callable[[str], pd.DataFrame]  # returns the curves in the file of this name
_CURVE_FILES: dict[str, dict[str, type]] = {  # the types of the columns, by file
    "roc.csv": {"fpr": float, "tpr": float},
    "precision-k.csv": {"k": float, "share": float, "precision": float},
    "roc-counts.csv": {"part": str, "false_positives": float, "true_positives": float},
}
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
_OF_ALL_DATASETS, _OF_ALL_POINTS = ("accuracy-share",), ("accuracy-sweep",)


def _label(axes: Axes, x: str, metric: str) -> None:
    axes.set_xlabel(x, parse_math=False)
    axes.set_ylabel(f"{metric} on the test set", parse_math=False)


def _curves_at(curves: pd.DataFrame, dataset: str, sweep: str) -> pd.DataFrame:
    return curves[(curves["dataset"] == dataset) & (curves["sweep"] == sweep)]


def _main_metric(run: Run, dataset: str, sweep: str) -> tuple[str, pd.DataFrame]:
    """Return the notation of the main metric, and its results on the test set."""
    label, rows = run.metric_at(run.metrics[0], sweep), run.results
    wanted = {
        "dataset": dataset,
        "sweep": sweep,
        "metric": label,
        "status": "ok",
        "part": "test",
    }
    for column, value in wanted.items():
        rows = rows[rows[column] == value]
    return run.measures[label].written, rows


def _per_solver(
    run: Run, rows: pd.DataFrame, statistics: Callable[[pd.DataFrame], pd.DataFrame]
) -> pd.DataFrame:
    """Return the statistics of each solver in one table."""
    rows_of = dict(iter(rows.groupby("solver", sort=False)))
    # [:0]: no rows
    parts = [statistics(rows_of.get(solver, rows[:0])) for solver in run.solvers]
    for part, solver in zip(parts, run.solvers, strict=True):
        part.insert(0, "solver", solver)
    filled = [part for part in parts if len(part)]
    # only column names
    return pd.concat(filled, ignore_index=True) if filled else parts[0]


def _sheet(page: _Page, run: Run, summary: pd.DataFrame) -> Sheet:
    """Return the sheet of a page.

    Title, small print, the drawing of the best solvers, caption.
    """
    here = summary[summary["dataset"] == page.dataset] if page.dataset else summary
    # the rows about the figure
    here = here[here["sweep"] == page.sweep] if page.sweep else here
    # Which solvers are drawn, and how.
    solvers = list(dict.fromkeys(page.data["solver"]))
    best = _best_solvers(run, here, solvers)
    styles = solver_styles(run.solvers, run.built_in_solvers)
    # more solvers than colours
    if len({styles[solver].color for solver in best}) < len(best):
        styles |= solver_styles(best)  # no two of the best share a colour
    here = here[here["solver"].isin(best)]
    lines = _Lines(
        styles, {solver: _solver_name(solver, here, page.timed) for solver in best}
    )
    # What the title, the small print and the caption say.
    at_point = f", {page.sweep}" if page.sweep else ""
    n = min(
        run.n_splits(dataset)
        for dataset in ([page.dataset] if page.dataset else run.datasets)
    )
    spread = page.spread.format(n) if n > 1 else ""  # what curves and bands are
    subject = run.dataset_title(page.dataset) if page.dataset else run.title
    # a data set's title says so
    smoke = ", smoke size" if run.smoke and not page.dataset else ""
    sentences = [*page.sentences]
    if len(best) < len(solvers):
        shown = f"The {len(best)} best of {len(solvers)} methods"
        sentences.append(f"{shown} by mean {run.metric_name(run.metrics[0])}.")
    return Sheet(
        f"{subject}{smoke}: {page.what}{at_point}",
        lambda figure: page.draw(figure, lines),
        width=_WIDTH,
        height=page.height,
        above=f"{run.protocol_sentence} {spread}",
        caption=[" ".join(sentences), *notes(here, page.timed)],
    )


def _best_solvers(run: Run, summary: pd.DataFrame, solvers: Sequence[str]) -> list[str]:
    """Return at most `MOST_CURVES` of `solvers`.

    The best by mean rank of the main metric.
    """
    if len(solvers) <= MOST_CURVES:
        return list(solvers)
    # The main metric may have another parameter at each point of a sweep.
    main = {run.metric_at(run.metrics[0], sweep) for sweep in run.sweep_points}
    rows = summary[summary["metric"].isin(main) & summary["solver"].isin(solvers)]
    # then the smallest mean is the best, of rank 1
    is_loss = bool(main & set(run.losses))
    groups = [rows[column] for column in ("dataset", "sweep", "metric")]
    # equal up to rounding: one place
    places = rows["mean"].groupby(groups).transform(levels)
    # no mean: last
    ranks = places.groupby(groups).rank(ascending=is_loss, na_option="bottom")
    mean_ranks = ranks.groupby(rows["solver"]).mean().reindex(pd.Index(solvers))
    best = mean_ranks.sort_values(kind="stable").index[:MOST_CURVES]
    return [solver for solver in solvers if solver in best]


def _solver_name(solver: str, summary: pd.DataFrame, timed: bool) -> str:
    """Return a solver's name, with marks and the number of results if some lack."""
    # ‡: a limit stopped fits; †: fits ran beside others, in a figure of times where not
    # all did.
    rows = summary[summary["solver"] == solver]
    n, trials = rows["n"].min(), rows["trials"].max()
    name = solver if n == trials else f"{solver} ({n} of {trials})"
    marks = "‡" if (rows["stopped"] > 0).any() else ""
    marks += (
        "†"
        if timed and is_mixed(summary) and (rows["timing"] == "parallel").any()
        else ""
    )
    return f"{name} {marks}".rstrip()
