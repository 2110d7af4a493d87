"""Figures: accuracy against time, against a swept parameter, and ROC curves.

Each is written as PNG and PDF with the numbers drawn beside it as CSV. Curves are medians over the
splits, bands reach from the lower to the upper quartile. A solver looks the same in every figure.
"""

import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pandas as pd

from precbench.report import Run

if TYPE_CHECKING:
    pass

__all__ = ["Style", "roc", "solver_styles", "value_against_sweep", "value_against_time"]
__all__ += ["write_figures"]

# Okabe and Ito's palette; grey replaces its yellow, which cannot be seen on paper.
_COLOURS = (
    *("#0072B2", "#D55E00", "#009E73", "#CC79A7"),
    *("#56B4E9", "#E69F00", "#000000", "#7F7F7F"),
)
_LINES = ("-", "--", "-.", (0, (1, 1)), (0, (6, 1, 1, 1, 1, 1)))
_MARKERS = ("o", "s", "^", "D", "v", "P", "X", "<", ">", "p", "*")
# The position fixes the style: append only. The first eight, of kar2015, differ in colour.
_SOLVERS = (
    *("perceptron-avg", "perceptron-max", "sgd-avg", "sgd-max", "1pmb", "linear-svm"),
    *("cutting-plane", "logistic-regression", "2pmb", "psg", "ftrl", "pnorm-push", "ir-push"),
    *("rankboost", "bbr", "lcbr", "oam", "adaoam", "pgd", "spam"),
)
_STATISTICS = ["n_splits", "q25", "median", "q75"]
_ROC_TEXT, _ROC_NUMBERS = ("dataset", "title", "solver", "sweep"), ("split", "fpr", "tpr")
_AXIS_LABELS = {
    "k": "k (share of the positives)",
    "batch_size": "batch length (rows)",
    "epochs": "passes over the training part",
}
_WIDTH, _HEIGHT = 6.4, 4.4  # inches, notes below come on top
_LINE = 0.16  # inches for a line of small print
_LOOK = {
    "font.size": 9,
    "axes.labelsize": 9,
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
    "savefig.dpi": 150,
}


class Style(NamedTuple):
    """How a solver looks."""

    color: str
    linestyle: Any
    marker: str


def solver_styles(labels: Sequence[str]) -> dict[str, Style]:
    """Return how each solver looks.

    Parameters
    ----------
    labels : sequence of str
        All labels of an experiment, in its order.

    Returns
    -------
    dict of str to Style
        A public solver name has the same style everywhere. Other labels get, in their order, styles
        that no public name has, in the colours least used so far.
    """
    positions = {label: _SOLVERS.index(label) for label in labels if label in _SOLVERS}
    free = list(range(len(_SOLVERS), len(_COLOURS) * len(_LINES) + len(labels)))
    for label in labels:
        if label not in positions:
            used = [position % len(_COLOURS) for position in positions.values()]
            positions[label] = min(free, key=lambda i: used.count(i % len(_COLOURS)))
            free.remove(positions[label])
    return {
        label: Style(*(each[positions[label] % len(each)] for each in (_COLOURS, _LINES, _MARKERS)))
        for label in labels
    }


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
        ``seconds`` (every time at which a curve steps, from the first at which all have a value),
        ``n_splits``, ``q25``, ``median`` and ``q75``.
    """
    steps = trials[(trials["wall_seconds"] > 0) & trials["value"].notna()]
    curves = [
        curve.sort_values("wall_seconds", kind="stable") for _, curve in steps.groupby("split")
    ]
    if not curves:
        return _statistics("seconds", np.empty(0), np.empty((0, 0)))
    start = max(curve["wall_seconds"].iloc[0] for curve in curves)
    times = np.unique(steps["wall_seconds"])
    times = times[times >= start]
    values = [
        curve["value"].to_numpy()[np.searchsorted(curve["wall_seconds"], times, "right") - 1]
        for curve in curves
    ]
    return _statistics("seconds", times, np.array(values))


def roc(vertices: pd.DataFrame, fpr: np.ndarray) -> pd.DataFrame:
    """Summarise the ROC curves of one solver over its splits.

    Parameters
    ----------
    vertices : pandas.DataFrame
        The columns ``split``, ``fpr`` and ``tpr``.
    fpr : ndarray of shape (n,)
        Where to read the curves: at a vertical step, its upper end.

    Returns
    -------
    pandas.DataFrame
        ``fpr``, ``n_splits``, ``q25``, ``median`` and ``q75`` of the true positive rate.
    """
    curves = [
        np.interp(fpr, curve["fpr"], curve["tpr"])
        for _, curve in vertices.sort_values(["fpr", "tpr"]).groupby("split")
    ]
    return _statistics("fpr", fpr, np.array(curves))


def value_against_sweep(finals: pd.DataFrame) -> pd.DataFrame:
    """Summarise the final values of one solver over its splits.

    Parameters
    ----------
    finals : pandas.DataFrame
        The columns ``x`` (the swept value) and ``value`` of one metric.

    Returns
    -------
    pandas.DataFrame
        ``x``, ``n_splits``, ``q25``, ``median`` and ``q75``.
    """
    groups = finals[finals["value"].notna()].groupby("x", sort=False)["value"]
    points = [_statistics("x", np.array([x]), values.to_numpy()[:, None]) for x, values in groups]
    empty = _statistics("x", np.empty(0), np.empty((0, 0)))
    return pd.concat(points, ignore_index=True) if points else empty


def _statistics(name: str, x: np.ndarray, values: np.ndarray) -> pd.DataFrame:
    """Return the quartiles over the rows of `values`, of shape (n_splits, n)."""
    quartiles = np.quantile(values, [0.25, 0.5, 0.75], axis=0) if values.size else np.empty((3, 0))
    columns = dict(zip(_STATISTICS[1:], quartiles, strict=True))
    return pd.DataFrame({name: x, "n_splits": len(values), **columns})


def write_figures(folder: str | os.PathLike[str]) -> list[Path]:
    """Draw the figures that ``experiment.json`` names, into ``figures`` in the folder.

    Parameters
    ----------
    folder : path-like
        ``results/<experiment>``, with ``results.csv``, ``experiment.json`` and, for ROC curves,
        ``roc.csv``.

    Returns
    -------
    list of pathlib.Path
        A PNG, a PDF and a CSV for each figure; the same results give the same bytes. A data set
        without any finished trial has no figure.

    Raises
    ------
    InputError
        If the folder lacks the results, they are malformed, or a kind of figure is unknown.
    """
    run = read_run(folder)
    unknown = [kind for kind in run.plots if kind not in _KINDS]
    if unknown:
        raise InputError(
            f"{run.folder / 'experiment.json'} asks for {', '.join(unknown)}: "
            f"the kinds of figures are {', '.join(_KINDS)}"
        )
    summary = summarise(run.results)
    written: list[Path] = []
    for kind in run.plots:
        for page in _KINDS[kind](run):
            written += _write(page, run, summary)
    return written


@dataclass(frozen=True)
class _Page:
    """One figure before it is drawn."""

    kind: str
    dataset: str
    sweep: str  # the point of the sweep, if it shows only one
    data: pd.DataFrame  # solver, x, and the statistics
    what: str  # the title, after that of the data set
    draw: Callable[["_Page", "Figure", "_Lines"], None]
    timed: bool = False


class _Lines:
    """Draws the line of each solver, in its style, and remembers it for the legend."""

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
                **style._asdict(),
                drawstyle="steps-post" if step else "default",
                markevery=(0.15 * i / len(shown), 0.15) if len(rows) > _MANY else None,
            )
            if len(rows) > 1:
                axes.fill_between(
                    rows[x],
                    rows["q25"],
                    rows["q75"],
                    step="post" if step else None,
                    color=style.color,
                    alpha=0.15,
                    linewidth=0,
                )
            else:
                axes.vlines(rows[x], rows["q25"], rows["q75"], color=style.color)


def _time_pages(run: Run) -> Iterator[_Page]:
    for dataset, sweep in itertools.product(run.datasets, run.sweep_points):
        metric = run.metric_at(run.metrics[0], sweep)
        rows = _finished(run, dataset, sweep, metric)
        yield _Page(
            kind="accuracy-time",
            dataset=dataset,
            sweep=sweep,
            data=_per_solver(run, rows, value_against_time),
            what=f"{metric_name(metric)} against training time",
            draw=partial(_draw_time, metric=metric_name(metric)),
            timed=True,
        )


def _draw_time(page: _Page, figure: "Figure", lines: _Lines, metric: str) -> None:
    axes = figure.add_subplot()
    lines.draw(axes, page.data, "seconds", step=True)
    axes.set_xscale("log")
    axes.set_xlabel("training time (wall seconds)")
    axes.set_ylabel(f"{metric} on the test part")


def _roc_pages(run: Run) -> Iterator[_Page]:
    everything = read_csv(run.folder / "roc.csv", _ROC_TEXT, _ROC_NUMBERS)
    for dataset, sweep in itertools.product(run.datasets, run.sweep_points):
        vertices = everything[(everything["dataset"] == dataset) & (everything["sweep"] == sweep)]
        positive = vertices["fpr"][vertices["fpr"] > 0]
        left = 10 ** np.floor(np.log10(min(positive, default=1)) - 1e-9)
        grid = np.union1d(np.linspace(0, 1, 501), np.geomspace(left, 1, 501))
        yield _Page(
            kind="roc",
            dataset=dataset,
            sweep=sweep,
            data=_per_solver(run, vertices, partial(roc, fpr=grid)),
            what="ROC curve, full and at the top of the list",
            draw=partial(_draw_roc, left=left),
        )


def _draw_roc(page: _Page, figure: "Figure", lines: _Lines, left: float) -> None:
    full, top = figure.subplots(1, 2, sharey=True)
    reached = page.data["fpr"][page.data["median"] >= 0.9].min()
    right = min(1.0, max(10 * left, 10 ** np.ceil(np.log10(max(reached, left)))))
    zoomed = page.data[page.data["fpr"].between(left, right)]
    lines.draw(full, page.data, "fpr")
    lines.draw(top, zoomed, "fpr")
    chance = np.geomspace(left, right, 101)
    for axes, x in ((full, chance), (top, chance)):
        axes.plot(x, x, color="#7F7F7F", linewidth=0.8, zorder=1)
    full.plot([0, 1], [0, 1], color="#7F7F7F", linewidth=0.8, zorder=1)
    top.set_xscale("log")
    top.set_xlim(left, right)
    top.set_title("top of the list (log scale)", fontsize=9)
    full.set_title("full", fontsize=9)
    full.set_ylabel("true positive rate")
    figure.supxlabel("false positive rate", fontsize=9)


def _sweep_pages(run: Run) -> Iterator[_Page]:
    if run.sweep is None:
        raise InputError(f"{run.folder / 'experiment.json'}: accuracy-sweep needs a sweep")
    values = run.sweep["values"]
    for dataset in run.datasets:
        finals = pd.concat(
            rows[rows["final"]].assign(x=value)
            for value, sweep in zip(values, run.sweep_points, strict=True)
            for rows in [_finished(run, dataset, sweep, run.metric_at(run.metrics[0], sweep))]
        )
        metric = run.metric_name(run.metrics[0])
        label = _axis_label(run.sweep["name"], values)
        yield _Page(
            kind="accuracy-sweep",
            dataset=dataset,
            sweep="",
            data=_per_solver(run, finals, value_against_sweep).rename(
                columns={"x": run.sweep["name"]}
            ),
            what=f"{metric} against {label.partition(' (')[0]}",
            draw=partial(
                _draw_sweep, x=run.sweep["name"], values=values, label=label, metric=metric
            ),
        )


def _draw_sweep(
    page: _Page,
    figure: "Figure",
    lines: _Lines,
    x: str,
    values: list[Any],
    label: str,
    metric: str,
) -> None:
    axes = figure.add_subplot()
    numeric = all(isinstance(value, int | float) for value in values)
    places = dict(zip(values, values if numeric else range(len(values)), strict=True))
    lines.draw(axes, page.data.assign(**{x: page.data[x].map(places)}), x)
    if numeric and min(values) > 0 and max(values) > 10 * min(values):
        axes.set_xscale("log")
        axes.minorticks_off()
    axes.set_xticks(list(places.values()), [str(value) for value in values])
    axes.set_xlabel(label)
    axes.set_ylabel(f"{metric} on the test part")


_KINDS: dict[str, Callable[[Run], Iterator[_Page]]] = {
    "accuracy-time": _time_pages,
    "roc": _roc_pages,
    "accuracy-sweep": _sweep_pages,
}


def _axis_label(parameter: str, values: Sequence[Any]) -> str:
    if parameter == "k" and all(isinstance(value, int) for value in values):
        return "k (rows)"
    return _AXIS_LABELS.get(parameter, parameter)


def _finished(run: Run, dataset: str, sweep: str, metric: str) -> pd.DataFrame:
    rows = run.results
    wanted = {"dataset": dataset, "sweep": sweep, "metric": metric, "status": "ok"}
    for column, value in wanted.items():
        rows = rows[rows[column] == value]
    return rows


def _per_solver(
    run: Run, rows: pd.DataFrame, statistics: Callable[[pd.DataFrame], pd.DataFrame]
) -> pd.DataFrame:
    """Put the statistics of the solvers that have any below each other."""
    by_solver = {solver: same for solver, same in rows.groupby("solver")}
    parts = {s: statistics(by_solver[s]) for s in run.solvers if s in by_solver}
    filled = [part.assign(solver=solver) for solver, part in parts.items() if len(part)]
    data = pd.concat(filled, ignore_index=True) if filled else pd.DataFrame({"solver": []})
    return data[["solver", *data.columns.drop("solver")]]


def _write(page: _Page, run: Run, summary: pd.DataFrame) -> list[Path]:
    from matplotlib import style

    parts = (page.kind, page.dataset, page.sweep)
    stem = "-".join(re.sub(r"[^A-Za-z0-9_.]+", "-", part) for part in parts if part)
    paths = [run.folder / "figures" / f"{stem}.{suffix}" for suffix in ("csv", "pdf", "png")]
    if page.data.empty:
        for path in paths:
            path.unlink(missing_ok=True)
        return []
    paths[0].parent.mkdir(exist_ok=True)
    page.data.to_csv(paths[0], index=False, lineterminator="\n")
    with style.context(["default", _LOOK]):
        figure = _drawn(page, run, summary)
        figure.savefig(paths[1], metadata={"Creator": "precbench", "CreationDate": None})
        figure.savefig(paths[2], metadata={"Software": "precbench"})
    return paths


def _drawn(page: _Page, run: Run, summary: pd.DataFrame) -> "Figure":
    from matplotlib.figure import Figure

    here = summary[summary["dataset"] == page.dataset]
    if page.sweep:
        here = here[here["sweep"] == page.sweep]
    title = f"{run.dataset_title(page.dataset)}: {page.what}"
    if page.sweep:
        title += f", {page.sweep}"
    spread = " Median and quartiles over the splits." if run.n_splits(page.dataset) > 1 else ""
    head = textwrap.wrap(title, 70)
    small = textwrap.wrap(run.protocol_of(page.dataset) + spread, 96)
    foot = [line for note in notes(here, page.timed) for line in textwrap.wrap(note, 96)]

    lines = _Lines(solver_styles(run.solvers))
    above = 0.1 + 0.2 * len(head) + _LINE * len(small)
    below = _LINE * len(foot) + 0.08 * bool(foot)
    height = _HEIGHT + above + below
    figure = Figure(figsize=(_WIDTH, height), layout="constrained")
    figure.get_layout_engine().set(rect=(0, below / height, 1, 1 - (above + below) / height))
    page.draw(page, figure, lines)
    _legend(page, figure, lines, run, here)
    top = height - 0.08
    for texts, step, look in (
        (head, 0.2, {"fontsize": 10, "fontweight": "bold"}),
        (small, _LINE, {"fontsize": 8}),
    ):
        for text in texts:
            figure.text(0.08 / _WIDTH, top / height, text, va="top", parse_math=False, **look)
            top -= step
    for i, text in enumerate(reversed(foot)):
        y = (0.06 + i * _LINE) / height
        figure.text(0.08 / _WIDTH, y, text, va="bottom", parse_math=False, fontsize=8)
    return figure
