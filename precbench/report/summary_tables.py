"""Summary tables: CSV for programs, Markdown and LaTeX for people.

`make_tables` lays out the tables of a summary; one function writes each format.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path

import numpy as np
import pandas as pd

from precbench.core.files import write_whole
from precbench.core.text import one_line, visible
from precbench.ranking.statistics import LEVEL, levels
from precbench.report.table import Cell, Table
from precbench.results.read import Run
from precbench.results.summary import TRIAL

_EMPTY = "–"
_TIMES = ("seconds", "relative_time", "seconds_to_99")
_SECONDS = "Times are medians of wall seconds."
_TIES = (
    f"≈: not significantly different from the best (paired t test at {100 * LEVEL:g} %,"
    " with the variance corrected for rows shared between splits)."
)
STAND_IN = (
    "synthetic data stand in; precbench data info {} says how to get the real files"
)


def write_tables(
    run: Run, summary: pd.DataFrame, tables: Sequence[Table]
) -> list[Path]:
    """Write the summary as CSV and the tables as Markdown and LaTeX.

    Return the paths.
    """
    rows = summary.copy()
    rows.insert(0, "experiment", run.name)
    contents = {
        run.folder / "summary.csv": rows.to_csv(index=False, lineterminator="\n"),
        run.folder / "summary.md": markdown_page(run.title, run.source, tables),
        run.folder / "summary.tex": _latex(run, tables),
    }
    for path, content in contents.items():
        # One by one, since no file depends on another.
        write_whole({path: content})
    return [*contents]


def make_tables(run: Run, summary: pd.DataFrame) -> list[Table]:
    """Lay out the tables of an experiment.

    Without a sweep, a table for each data set: solvers by metrics and times. With a
    sweep, tables of solvers by swept values: for each data set and metric, and for the
    times on each data set.
    """
    make = _metric_table if run.sweep is None else _sweep_tables
    return [
        table
        for dataset in run.datasets
        for table in make(run, dataset, summary[summary["dataset"] == dataset])
    ]


def _metric_table(run: Run, dataset: str, summary: pd.DataFrame) -> list[Table]:
    """Lay out solvers by metrics and times, of an experiment without a sweep."""
    columns = {metric: _at(summary, metric, "", run.solvers) for metric in run.metrics}
    main = columns[run.metrics[0]]  # rows of the summary in the order of the solvers
    header = ["solver", *(run.metric_name(metric) for metric in columns)]
    header += ["time to final (s)", "relative time", "time to 99 % (s)"]
    cells = [
        *(_means(rows, metric in run.losses) for metric, rows in columns.items()),
        *(_times(main, column, mixed=is_mixed(summary)) for column in _TIMES),
    ]
    sentences = [
        *_means_over(run, dataset, summary),
        (
            f"{_SECONDS} To 99 %: to the first checkpoint within 1 % of the best"
            f" {run.metric_name(run.metrics[0])} of a trial's own curve; relative: as a"
            " multiple of the fastest solver's time to final."
        ),
        *tuned(summary),
        *_edges(run, dataset),
        *notes(summary),
    ]
    several_quantities = ""
    return [
        _assemble(run, dataset, summary, several_quantities, header, cells, sentences)
    ]


def _sweep_tables(run: Run, dataset: str, summary: pd.DataFrame) -> list[Table]:
    """Lay out tables of each metric and of times, solvers by points of the sweep."""
    header, mixed = ["solver", *run.sweep_points], is_mixed(summary)
    tables: list[Table] = []
    times: list[list[Cell]] = []  # filled at the first metric only
    for metric in run.metrics:
        # The label of a metric differs between points if the parameter of the metric is
        # swept.
        points = [(run.metric_at(metric, sweep), sweep) for sweep in run.sweep_points]
        columns = {point: _at(summary, *point, run.solvers) for point in points}
        cells = [
            _means(rows, label in run.losses) for (label, _), rows in columns.items()
        ]
        times = times or [
            _times(rows, "seconds", mixed=mixed) for rows in columns.values()
        ]
        at_points = summary[summary["metric"].isin(label for label, _ in points)]
        sentences = [
            *_means_over(run, dataset, at_points),
            *tuned(summary),
            *_edges(run, dataset),
        ]
        sentences += notes(summary, times=False)
        quantity = run.metric_name(metric)
        tables.append(
            _assemble(run, dataset, at_points, quantity, header, cells, sentences)
        )
    sentences = [_SECONDS, *notes(summary)]
    timed = _assemble(
        run, dataset, summary, "time to final (s)", header, times, sentences
    )
    return [*tables, timed]


def _at(
    summary: pd.DataFrame, metric: str, sweep: str, solvers: list[str]
) -> pd.DataFrame:
    """Return the rows of a metric at a point by solver, NaN without trials."""
    rows = summary[(summary["metric"] == metric) & (summary["sweep"] == sweep)]
    return rows.set_index("solver").reindex(solvers)


def _assemble(
    run: Run,
    dataset: str,
    summary: pd.DataFrame,
    quantity: str,  # for the title; "" for a table of several
    header: list[str],
    columns: Sequence[Iterable[Cell]],  # after the column of solvers
    sentences: list[str],
) -> Table:
    title = run.dataset_title(dataset)
    stopped = {*summary["solver"][summary["stopped"] > 0]}
    names = [f"{solver} ‡" if solver in stopped else solver for solver in run.solvers]
    return Table(
        title=f"{title}: {quantity}" if quantity else title,
        warning=STAND_IN.format(dataset) if run.is_stand_in(dataset) else "",
        header=header,
        rows=[
            [Cell(name), *cells] for name, *cells in zip(names, *columns, strict=True)
        ],
        notes=[run.protocol_sentence, *sentences],
        dataset=dataset,
    )


def _means_over(run: Run, dataset: str, summary: pd.DataFrame) -> list[str]:
    """Return sentences on what cells show and, if tests were made, on the mark ≈."""
    n = run.n_splits(dataset)
    if n == 1:
        return ["Values of one split, so without standard deviation; best in bold."]
    means = f"Mean ± standard deviation over {n} splits, best mean in bold."
    return [means, _TIES] if summary["p_best"].notna().any() else [means]


def notes(summary: pd.DataFrame, times: bool = True) -> list[str]:
    """Return sentences on trials without a usual end and, with `times`, on times."""
    sentences = []
    counts = summary["stopped"].astype(str) + " of " + summary["trials"].astype(str)
    stopped = _by_solver(summary, counts.where(summary["stopped"] > 0))
    if stopped:
        sentences.append(
            "‡ Training or tuning stopped by a limit; the last iterate counts:"
            f" {stopped}."
        )
    failed = _by_solver(summary, summary["outcomes"].where(summary["failed"] > 0))
    if failed:
        sentences.append(f"Without a result: {failed}.")
    return sentences + _notes_on_times(summary) if times else sentences


def _notes_on_times(summary: pd.DataFrame) -> list[str]:
    """Return sentences on times that are not comparable."""
    sentences = []
    if (summary["timing"] == "parallel").any():
        if is_mixed(summary):
            sentences.append(
                "† Timed beside other trials: not comparable with the other times."
            )
        else:
            sentences.append(
                "Trials were timed beside each other: not comparable with those that"
                " run alone."
            )
    machines = {name for names in summary["machines"] for name in names.split("; ")}
    machines.discard("")
    if len(machines) > 1:
        is_paired = summary["same_machine"].all()
        how = "each split on one" if is_paired else "so not comparable"
        names = "; ".join(sorted(machines))
        sentences.append(f"Timed on different machines, {how}: {names}.")
    return sentences


def is_mixed(summary: pd.DataFrame) -> bool:
    """Return whether some trials ran alone, and others beside each other."""
    return summary["timing"][summary["timing"] != ""].nunique() > 1


def tuned(summary: pd.DataFrame) -> list[str]:
    """Return the sentences about parameters chosen on a validation set, if any."""
    trials = summary.drop_duplicates(["solver", "sweep"])
    is_tuned = trials["chosen"] != ""
    if not is_tuned.any():
        return []
    if trials["sweep"].nunique() > 1:
        solvers = ", ".join(trials[is_tuned]["solver"].unique())
        return [
            f"Chosen on a validation set of the training rows: parameters of {solvers},"
            " see the columns chosen and tuning_seconds of summary.csv."
        ]
    chosen = _by_solver(trials, trials["chosen"].where(is_tuned))
    tuning_times = trials["tuning_seconds"].where(is_tuned).dropna()
    seconds = _by_solver(trials, tuning_times.map(three_digits))
    return [
        f"Chosen on a validation set of the training rows: {chosen}.",
        f"Tuning took in addition (median wall seconds): {seconds}.",
    ]


def _edges(run: Run, dataset: str) -> list[str]:
    """Return a sentence on grids at whose edge most trials chose a value, if any."""
    rows = run.results[
        (run.results["dataset"] == dataset) & (run.results["chosen"] != "")
    ]
    trials = rows.drop_duplicates(["solver", "sweep", *TRIAL])
    at_edges = []
    for (solver, sweep), group in trials.groupby(["solver", "sweep"], sort=False):
        for name, values in run.grids.get(str(solver), {}).items():
            for edge, n in _edge_counts(group["chosen"], name, values).items():
                if 2 * n > len(group):  # most trials
                    where = f" at {sweep}" if sweep else ""
                    at_edges.append(
                        f"{solver}{where} ({name}={edge:g} in {n} of {len(group)})"
                    )
    sentence = (
        "At the edge of the grid, beyond which the best may lie:"
        f" {'; '.join(at_edges)}."
    )
    return [sentence] if at_edges else []


def _edge_counts(
    texts: pd.Series, name: str, values: Sequence[object]
) -> dict[float, int]:
    """Return how many texts such as "C=0.1 k=10" have an edge of the grid."""
    numbers = [
        v for v in values if isinstance(v, int | float) and not isinstance(v, bool)
    ]
    has_edges = len(numbers) == len(values) >= 3
    if not has_edges:
        return {}
    chosen = texts.str.extract(rf"(?:^| ){re.escape(name)}=(\S+)", expand=False)
    return {
        edge: int((chosen == f"{edge:g}").sum())
        for edge in (min(numbers), max(numbers))
    }


def _by_solver(summary: pd.DataFrame, texts: pd.Series) -> str:
    """Return solvers with their texts, such as ``sgd-avg at k=10 (2 of 5)``.

    `texts` belong to the rows of the summary, and are missing where there is nothing to
    say. Points of the sweep are named unless a text holds at all points. Without any
    text, return "".
    """
    if texts.isna().all():
        return ""
    present = summary.assign(text=texts).dropna(subset="text")
    names: dict[str, list[str]] = {}  # of solvers, by text
    for (solver, text), rows in present.groupby(["solver", "text"], sort=False):
        points = list(dict.fromkeys(rows["sweep"]))
        holds_at_all = len(points) == summary["sweep"].nunique()
        where = "" if holds_at_all else f" at {', '.join(points)}"
        names.setdefault(str(text), []).append(f"{solver}{where}")
    return "; ".join(
        f"{', '.join(solvers)} ({text})" for text, solvers in names.items()
    )


def _means(rows: pd.DataFrame, smaller_is_better: bool) -> Iterator[Cell]:
    """Yield a column of means, the best in bold.

    Only means over the most trials compete.
    """
    competing = rows["mean"].where(rows["n"] == rows["n"].max())
    # In order, equal for means that differ by rounding only. If all are equal, none is
    # the best; fmin and fmax leave out NaN.
    places = levels(competing)
    contested = len(set(places[~np.isnan(places)])) > 1
    best = np.fmin.reduce(places) if smaller_is_better else np.fmax.reduce(places)
    for (_, row), place in zip(rows.iterrows(), places, strict=True):
        bold = bool(contested and place == best)
        # Without a p-value, which is NaN then, no mean counts as tied.
        tied = bool(contested and not bold and row["p_best"] > LEVEL)
        yield Cell(f"{_mean(row)} ≈" if tied else _mean(row), bold)


def _mean(row: pd.Series) -> str:
    """Return a mean and its standard deviation as text; without a mean, see `_gap`."""
    if not row["n"] > 0:  # 0, or NaN without trials
        return _gap(row)
    fixed = abs(row["mean"]) < 1e5  # else with an exponent
    # Four decimals, and one less for each further digit before the point.
    decimals = 4 - int(np.log10(max(abs(row["mean"]), 1))) if fixed else 4
    form = f".{max(decimals, 0)}{'f' if fixed else 'e'}"
    spread = "" if np.isnan(row["std"]) else f" ± {row['std']:{form}}"
    some = (
        f" ({row['n']:.0f} of {row['trials']:.0f})" if row["n"] < row["trials"] else ""
    )
    return f"{row['mean']:{form}}{spread}{some}"


def _gap(row: pd.Series) -> str:
    """Return the status that all trials share, or a dash, in place of a mean."""
    if not row["trials"] > 0:  # NaN without trials
        return _EMPTY
    counted, _colon, _reasons = row["outcomes"].partition(":")  # as in "3 timeout: why"
    number, _space, status = counted.partition(" ")
    return status if number == f"{row['trials']:.0f}" and status != "ok" else _EMPTY


def _times(rows: pd.DataFrame, column: str, *, mixed: bool) -> list[Cell]:
    """Return a column of times; if `mixed`, those beside other trials are marked."""
    cells = []
    for seconds, timing in zip(rows[column], rows["timing"], strict=True):
        if np.isnan(seconds):
            cells.append(Cell(_EMPTY))
            continue
        mark = " †" if mixed and timing == "parallel" else ""
        cells.append(Cell(f"{three_digits(seconds)}{mark}"))
    return cells


def three_digits(value: float) -> str:
    """Format a number with three significant digits and no exponent."""
    if value == 0:
        return "0"
    # Rounded first, since rounding may add a digit: 9.996 is 10.0.
    rounded = f"{value:.2e}"
    decimals = max(0, 2 - int(rounded.partition("e")[2]))
    return f"{float(rounded):.{decimals}f}"


def markdown_page(title: str, source: str | None, tables: Iterable[Table]) -> str:
    """Return a page of Markdown with a title, its source (a paper) and tables."""
    lines = [f"# {_escaped_markdown(title)}", ""]
    if source:
        lines += [f"After {_escaped_markdown(source)}.", ""]
    for table in tables:
        lines += markdown_table(table)
    return "\n".join(lines)


def markdown_table(table: Table) -> list[str]:
    """Return the lines of a table in Markdown: title, warning, rows and notes."""
    header, *rows = _cells(table, _escaped_markdown, "**{}**")
    dashes = ["---"] + ["---:"] * (len(header) - 1)
    return [
        f"## {_escaped_markdown(table.title)}",
        "",
        *([f"**{_escaped_markdown(table.warning)}**", ""] if table.warning else []),
        *(f"| {' | '.join(row)} |" for row in (header, dashes, *rows)),
        "",
        _escaped_markdown(" ".join(table.notes)),
        "",
    ]


def _cells(table: Table, escaped: Callable[[str], str], bold: str) -> list[list[str]]:
    """Return the header and then the rows, as escaped texts.

    `bold` is the format of bold cells.
    """
    texts = [
        [(bold if cell.bold else "{}").format(escaped(cell.text)) for cell in row]
        for row in table.rows
    ]
    return [[*map(escaped, table.header)], *texts]


def _latex(run: Run, tables: Iterable[Table]) -> str:
    """Return the tables in LaTeX, each with its warning and notes in the caption."""
    lines = [f"% {_escaped_latex(run.title)}; needs \\usepackage{{booktabs}}"]
    for table in tables:
        warning = (
            f"\\textbf{{{_escaped_latex(table.warning)}.}} " if table.warning else ""
        )
        notes = _escaped_latex(" ".join(table.notes))
        header, *rows = (
            " & ".join(row) for row in _cells(table, _escaped_latex, r"\textbf{{{}}}")
        )
        lines += [
            "",
            "\\begin{table}",
            "\\centering",
            f"\\caption{{{_escaped_latex(table.title)}. {warning}{notes}}}",
            f"\\begin{{tabular}}{{l{'r' * (len(table.header) - 1)}}}",
            "\\toprule",
            f"{header} \\\\",
            "\\midrule",
            *(f"{row} \\\\" for row in rows),
            "\\bottomrule",
            "\\end{tabular}",
            "\\end{table}",
        ]
    return "\n".join(lines) + "\n"


def _escaper(replacements: dict[str, str]) -> Callable[[str], str]:
    """Return a function that puts a text on one line and replaces these characters."""
    table = str.maketrans(replacements)
    return lambda text: visible(one_line(text)).translate(table)


_escaped_markdown = _escaper({mark: f"\\{mark}" for mark in "\\`*_[]<>|$&~"})
_escaped_latex = _escaper(
    {mark: f"\\{mark}" for mark in "&%$#_{}"}
    | {"\\": "\\textbackslash{}", "~": "\\textasciitilde{}", "^": "\\textasciicircum{}"}
    | {
        "<": "$<$",
        ">": "$>$",
        "≥": "$\\geq$",
        "≤": "$\\leq$",
        "±": "$\\pm$",
        "×": "$\\times$",
    }
    | {
        "–": "--",
        "≈": "$\\approx$",
        "†": "$\\dagger$",
        "‡": "$\\ddagger$",
        "κ": "$\\kappa$",
    }
)
