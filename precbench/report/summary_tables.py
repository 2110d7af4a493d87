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
# Headings of times, and their columns in a summary
_TIMES = {
    "time to final (s)": "seconds",
    "relative time": "relative_time",
    "time to 99 % (s)": "seconds_to_99",
}
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
    """Write the summary as CSV, the tables as Markdown and LaTeX; return the paths."""
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
    tables: list[Table] = []
    for dataset in run.datasets:
        of_dataset = summary[summary["dataset"] == dataset]
        if run.sweep is None:
            tables.append(_metric_table(run, dataset, of_dataset))
        else:
            tables += _sweep_tables(run, dataset, of_dataset)
    return tables


def _metric_table(run: Run, dataset: str, summary: pd.DataFrame) -> Table:
    """Lay out solvers by metrics and times, of an experiment without a sweep."""
    header = ["solver"]
    columns: list[Iterable[Cell]] = []
    for metric in run.metrics:
        header.append(run.metric_name(metric))
        rows = _at(summary, metric, "", run.solvers)
        columns.append(_means(rows, metric in run.losses))
    main = _at(summary, run.metrics[0], "", run.solvers)
    for heading, column in _TIMES.items():
        header.append(heading)
        columns.append(_times(main, column, mixed=is_mixed(summary)))
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
    return _assemble(run, dataset, summary, header, columns, sentences)


def _sweep_tables(run: Run, dataset: str, summary: pd.DataFrame) -> list[Table]:
    """Lay out tables of each metric and of times, solvers by points of the sweep."""
    header = ["solver", *run.sweep_points]
    tables: list[Table] = []
    for metric in run.metrics:
        labels = []
        columns = []
        for sweep in run.sweep_points:
            # If the parameter of the metric is swept, its label is another each time.
            label = run.metric_at(metric, sweep)
            rows = _at(summary, label, sweep, run.solvers)
            labels.append(label)
            columns.append(_means(rows, label in run.losses))
        of_metric = summary[summary["metric"].isin(labels)]
        sentences = [
            *_means_over(run, dataset, of_metric),
            *tuned(summary),
            *_edges(run, dataset),
            *notes(summary, times=False),
        ]
        table = _assemble(
            run,
            dataset,
            of_metric,
            header,
            columns,
            sentences,
            quantity=run.metric_name(metric),
        )
        tables.append(table)
    tables.append(_sweep_times(run, dataset, summary, header))
    return tables


def _sweep_times(
    run: Run, dataset: str, summary: pd.DataFrame, header: list[str]
) -> Table:
    """Lay out the times, which are the same for all metrics, at points of the sweep."""
    columns = []
    for sweep in run.sweep_points:
        label = run.metric_at(run.metrics[0], sweep)
        rows = _at(summary, label, sweep, run.solvers)
        columns.append(_times(rows, "seconds", mixed=is_mixed(summary)))
    sentences = [_SECONDS, *notes(summary)]
    return _assemble(
        run,
        dataset,
        summary,
        header,
        columns,
        sentences,
        quantity="time to final (s)",
    )


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
    header: list[str],
    columns: Sequence[Iterable[Cell]],
    sentences: list[str],
    *,
    quantity: str = "",
) -> Table:
    """Return a table of the columns, after a column of solvers.

    The title names the `quantity`, if the table has only one.
    """
    title = run.dataset_title(dataset)
    if quantity:
        title = f"{title}: {quantity}"
    stopped = {*summary["solver"][summary["stopped"] > 0]}
    names = [f"{solver} ‡" if solver in stopped else solver for solver in run.solvers]
    return Table(
        title=title,
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
    sentences = [f"Mean ± standard deviation over {n} splits, best mean in bold."]
    has_tests = summary["p_best"].notna().any()
    if has_tests:
        sentences.append(_TIES)
    return sentences


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
    if times:
        sentences += _notes_on_times(summary)
    return sentences


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
    results = run.results
    is_tuned = (results["dataset"] == dataset) & (results["chosen"] != "")
    trials = results[is_tuned].drop_duplicates(["solver", "sweep", *TRIAL])
    at_edges = []
    for (solver, sweep), group in trials.groupby(["solver", "sweep"], sort=False):
        where = f"{solver} at {sweep}" if sweep else str(solver)
        n_trials = len(group)
        grids = run.grids.get(str(solver), {})
        for name, values in grids.items():
            counts = _edge_counts(group["chosen"], name, values)
            for edge, n in counts.items():
                if n > n_trials / 2:
                    at_edges.append(f"{where} ({name}={edge:g} in {n} of {n_trials})")
    if not at_edges:
        return []
    return [
        "At the edge of the grid, beyond which the best may lie:"
        f" {'; '.join(at_edges)}."
    ]


def _edge_counts(
    texts: pd.Series, name: str, values: Sequence[object]
) -> dict[float, int]:
    """Return how many texts such as "C=0.1 k=10" have an edge of the grid."""
    numbers = [
        value
        for value in values
        if isinstance(value, int | float) and not isinstance(value, bool)
    ]
    if len(numbers) < len(values) or len(numbers) < 3:  # then no grid has an edge
        return {}
    chosen = texts.str.extract(rf"(?:^| ){re.escape(name)}=(\S+)", expand=False)
    counts = {}
    for edge in (min(numbers), max(numbers)):
        counts[edge] = int((chosen == f"{edge:g}").sum())
    return counts


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
    """Yield a column of means, in bold the best of those over the most trials."""
    competing = rows["mean"].where(rows["n"] == rows["n"].max())
    # Means that differ by rounding only are at one level.
    level_of_row = levels(competing)
    n_levels = len(set(level_of_row[~np.isnan(level_of_row)]))
    # fmin and fmax leave out NaN.
    pick = np.fmin if smaller_is_better else np.fmax
    best = pick.reduce(level_of_row)
    for (_, row), level in zip(rows.iterrows(), level_of_row, strict=True):
        text = _mean(row)
        if n_levels < 2:  # all are equal, so none is the best
            yield Cell(text)
        elif level == best:
            yield Cell(text, bold=True)
        elif row["p_best"] > LEVEL:  # which NaN, for no test, is not
            yield Cell(f"{text} ≈")
        else:
            yield Cell(text)


def _mean(row: pd.Series) -> str:
    """Return a mean and its standard deviation as text; without a mean, see `_gap`."""
    if not row["n"] > 0:  # 0, or NaN without trials
        return _gap(row)
    size = abs(row["mean"])
    form = ".4e"
    if size < 1e5:
        # Four decimals, and one less for each further digit before the point.
        decimals = 4 - int(np.log10(max(size, 1)))
        form = f".{max(decimals, 0)}f"
    spread = "" if np.isnan(row["std"]) else f" ± {row['std']:{form}}"
    some = ""
    if row["n"] < row["trials"]:
        some = f" ({row['n']:.0f} of {row['trials']:.0f})"
    return f"{row['mean']:{form}}{spread}{some}"


def _gap(row: pd.Series) -> str:
    """Return the status that all trials share, or a dash, in place of a mean."""
    if not row["trials"] > 0:  # NaN without trials
        return _EMPTY
    counted, _colon, _reasons = row["outcomes"].partition(":")  # as in "3 timeout: why"
    number, _space, status = counted.partition(" ")
    is_shared = number == f"{row['trials']:.0f}"
    return status if is_shared and status != "ok" else _EMPTY


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
    _digits, _e, exponent = rounded.partition("e")
    decimals = max(0, 2 - int(exponent))
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
    header, *rows = _cells(table, _escaped_markdown, _bold_markdown)
    dashes = ["---"] + ["---:"] * (len(header) - 1)
    lines = [f"## {_escaped_markdown(table.title)}", ""]
    if table.warning:
        lines += [_bold_markdown(_escaped_markdown(table.warning)), ""]
    for row in (header, dashes, *rows):
        lines.append(f"| {' | '.join(row)} |")
    lines += ["", _escaped_markdown(" ".join(table.notes)), ""]
    return lines


def _bold_markdown(text: str) -> str:
    return f"**{text}**"


def _cells(
    table: Table, escape: Callable[[str], str], bold: Callable[[str], str]
) -> list[list[str]]:
    """Return header and rows as escaped texts, those of bold cells made `bold`."""
    lines = [[escape(text) for text in table.header]]
    for row in table.rows:
        texts = []
        for cell in row:
            text = escape(cell.text)
            texts.append(bold(text) if cell.bold else text)
        lines.append(texts)
    return lines


def _latex(run: Run, tables: Iterable[Table]) -> str:
    """Return the tables in LaTeX, each with its warning and notes in the caption."""
    lines = [f"% {_escaped_latex(run.title)}; needs \\usepackage{{booktabs}}"]
    for table in tables:
        lines += _latex_table(table)
    return "\n".join(lines) + "\n"


def _bold_latex(text: str) -> str:
    return rf"\textbf{{{text}}}"


def _latex_table(table: Table) -> list[str]:
    """Return the lines of a table in LaTeX, as a float with lines of booktabs."""
    caption = f"{_escaped_latex(table.title)}. "
    if table.warning:
        warning = _bold_latex(f"{_escaped_latex(table.warning)}.")
        caption += f"{warning} "
    caption += _escaped_latex(" ".join(table.notes))
    alignment = "l" + "r" * (len(table.header) - 1)
    lines = _cells(table, _escaped_latex, _bold_latex)
    header, *rows = [" & ".join(line) + r" \\" for line in lines]
    return [
        "",
        r"\begin{table}",
        r"\centering",
        rf"\caption{{{caption}}}",
        rf"\begin{{tabular}}{{{alignment}}}",
        r"\toprule",
        header,
        r"\midrule",
        *rows,
        r"\bottomrule",
        r"\end{tabular}",
        r"\end{table}",
    ]


def _escaper(replacements: dict[str, str]) -> Callable[[str], str]:
    """Return a function that puts a text on one line and replaces these characters."""
    table = str.maketrans(replacements)

    def escape(text: str) -> str:
        return visible(one_line(text)).translate(table)

    return escape


_escaped_markdown = _escaper({mark: f"\\{mark}" for mark in "\\`*_[]<>|$&~"})
_escaped_latex = _escaper(
    {mark: f"\\{mark}" for mark in "&%$#_{}"}
    | {
        "\\": "\\textbackslash{}",
        "~": "\\textasciitilde{}",
        "^": "\\textasciicircum{}",
        "<": "$<$",
        ">": "$>$",
        "≥": "$\\geq$",
        "≤": "$\\leq$",
        "±": "$\\pm$",
        "×": "$\\times$",
        "–": "--",
        "≈": "$\\approx$",
        "†": "$\\dagger$",
        "‡": "$\\ddagger$",
        "κ": "$\\kappa$",
    }
)
