"""Write the survey's tasks, or take its results into the reference or compare them.

``python -m scripts.survey tasks FOLDER [TASK ...]`` writes their files and configs for
``precbench run`` (``--draw``: ten small ones, others each week); ``python -m
scripts.survey collect RESULTS`` takes what was run into results/reference, in place of
the same splits of the same contestants there; ``python -m scripts.survey again
RESULTS`` ends with 1 where a value is not the one there, to its five digits. ``--panel
rare`` does this for the rare panel, and ``--panel folds`` for the part of it on which
rivals choose by folds.
"""

import argparse
import datetime
import gzip
import hashlib
import io
import sys
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from precbench.core.errors import InputError, PrecbenchError
from precbench.survey.ranking import COLUMNS, MEASURES, REFERENCE, collect
from precbench.survey.tasks import TASKS, read_tasks, write_configs
from scripts.survey import rare

RUNS = ("survey-short", "survey-long", "top-synthetic")
DRAWN = 10  # tasks that are trained again each week
MOST_ROWS = 3200  # of such a task
_FIT = ["task", "split", "solver"]  # what names a fit


def drawn(tasks: Sequence[Any], week: tuple[int, int]) -> list[Any]:
    """Draw small tasks that have files, by the year and the week."""
    small = [task for task in tasks if task.rows <= MOST_ROWS]
    n_drawn = min(DRAWN, len(small))
    places = np.random.default_rng(week).choice(len(small), n_drawn, replace=False)
    return [small[place] for place in sorted(places)]


def trained(folders: Iterable[Path]) -> pd.DataFrame:
    """Return which contestants were run on which splits, whatever came of it."""
    runs = []
    for folder in folders:
        path = folder / "results.csv"
        if path.exists():
            fits = pd.read_csv(path, usecols=["dataset", "split", "solver"])
            runs.append(fits.drop_duplicates())
    if not runs:
        raise InputError("nothing of the survey was run: make survey")
    return pd.concat(runs).rename(columns={"dataset": "task"})


def replaced(
    known: pd.DataFrame, table: pd.DataFrame, ran: pd.DataFrame
) -> pd.DataFrame:
    """Put results of contestants on splits in the place of the same ones.

    What is new comes behind the splits of the task, or the contestants of the split.
    What was run and failed leaves nothing.
    """
    run_again = pd.MultiIndex.from_frame(ran[_FIT])
    is_old = pd.MultiIndex.from_frame(known[_FIT]).isin(run_again)
    remaining = pd.concat([known[~is_old], table], ignore_index=True)
    everything = pd.concat([known, table])
    tasks = list(everything["task"].unique())
    solvers = list(everything["solver"].unique())

    def in_order(column: pd.Series) -> pd.Series:
        if column.name == "task":
            return column.map(tasks.index)
        if column.name == "solver":
            return column.map(solvers.index)
        return column

    return remaining.sort_values(_FIT, key=in_order)


def digest_of(reference: Path) -> Path:
    """Return the file with the digest of the values as they were collected."""
    return reference.with_name(f"{reference.name.partition('.')[0]}.sha256")


def digest(text: str) -> str:
    """Return what an edit of the values would change."""
    return hashlib.sha256(text.encode()).hexdigest() + "\n"


def as_text(table: pd.DataFrame) -> str:
    """Write the values as the reference does."""
    return table.to_csv(index=False, lineterminator="\n", float_format="%.5g")


def other_values(known: pd.DataFrame, table: pd.DataFrame) -> tuple[int, list[str]]:
    """Count the values that both tables have, and list those that are not the same."""
    again = pd.read_csv(io.StringIO(as_text(table)))  # rounded as in the reference
    both = known.merge(again, on=_FIT, suffixes=("", "_again"))
    n_values = 0
    sentences = []
    for metric in MEASURES:
        committed = both[metric]
        measured = both[f"{metric}_again"]
        n_values += int(committed.notna().sum())
        are_missing = committed.isna() & measured.isna()
        others = both[(committed != measured) & ~are_missing]
        for row in others.to_dict("records"):
            sentences.append(
                f"{row['task']}, {row['solver']}, split {row['split']}, {metric}: "
                f"{row[f'{metric}_again']:g} in place of {row[metric]:g}"
            )
    return n_values, sentences


class Panel(NamedTuple):
    """The files of a panel, and how its tasks are read and written.

    Attributes
    ----------
    tasks : pathlib.Path
        The list of its tasks.
    reference : pathlib.Path
        The committed values.
    runs : sequence of str
        Names of its experiments.
    read_tasks : callable
    write_configs : callable
        Of a folder and tasks.
    is_rare : bool
    """

    tasks: Path
    reference: Path
    runs: Sequence[str]
    read_tasks: Callable[[], list[Any]]
    write_configs: Callable[[Path, Iterable[Any]], list[Path]]
    is_rare: bool = True


def panel_of(name: str) -> Panel:
    """Return a panel by its name on the command line."""
    if name == "survey":
        return Panel(TASKS, REFERENCE, RUNS, read_tasks, write_configs, is_rare=False)
    folds = name == "folds"
    return Panel(
        rare.TASKS,
        rare.FOLDED if folds else rare.REFERENCE,
        rare.runs(folds),
        partial(rare.read_tasks, folds),
        partial(rare.write, folds=folds),
    )


def write_tasks(
    panel: Panel, folder: Path, names: Sequence[str], draw: bool
) -> list[Path]:
    """Write the files and the configs of tasks, all if none is named."""
    tasks = {task.task: task for task in panel.read_tasks()}
    for name in names:
        if name not in tasks:
            raise InputError(
                f"unknown task {name!r}; see results/reference/{panel.tasks.name}"
            )
    chosen = [tasks[name] for name in names or tasks]
    if draw:
        chosen = drawn(chosen, datetime.date.today().isocalendar()[:2])
    return panel.write_configs(folder, chosen)


def compare_again(known: pd.DataFrame, table: pd.DataFrame) -> int:
    """Print which values are not those known; return the exit code."""
    n_values, sentences = other_values(known, table)
    total = f"{n_values:,} values again, {len(sentences)} not the same"
    print(*sentences, total, sep="\n")
    return int(bool(sentences) or n_values == 0)


def write_reference(path: Path, table: pd.DataFrame) -> None:
    """Write the values, and their digest beside them."""
    text = as_text(table)
    path.write_bytes(gzip.compress(text.encode(), mtime=0))
    digest_of(path).write_text(digest(text))


def main() -> None:
    """Run the program."""
    parser = argparse.ArgumentParser(
        prog="python -m scripts.survey", description=__doc__
    )
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("do", choices=["tasks", "collect", "again"])
    parser.add_argument("folder", type=Path)
    parser.add_argument("task", nargs="*")
    parser.add_argument("--draw", action="store_true")
    parser.add_argument(
        "--panel", choices=["survey", "rare", "folds"], default="survey"
    )
    options = parser.parse_args()
    panel = panel_of(options.panel)
    try:
        if options.do == "tasks":
            paths = write_tasks(panel, options.folder, options.task, options.draw)
            print(*paths, sep="\n")
            return
        folders = [options.folder / name for name in panel.runs]
        table = collect(folders)
        ran = trained(folders)
    except PrecbenchError as error:
        parser.error(str(error))
    if panel.is_rare:
        table = rare.joined(table)
        ran = rare.joined(ran)
    known = pd.DataFrame(columns=COLUMNS)
    if panel.reference.exists():
        known = pd.read_csv(panel.reference)
    if options.do == "again":
        sys.exit(compare_again(known, table))
    write_reference(panel.reference, replaced(known, table, ran))


if __name__ == "__main__":
    main()
