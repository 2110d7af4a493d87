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
from collections.abc import Iterable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from precbench.core.errors import InputError, PrecbenchError
from precbench.survey.ranking import COLUMNS, MEASURES, REFERENCE, collect
from precbench.survey.tasks import read_tasks, write_configs
from scripts.survey import rare

RUNS = ("survey-short", "survey-long", "top-synthetic")
DRAWN, MOST_ROWS = 10, 3200
"""Tasks that are trained again each week, and the rows of the largest."""


def drawn(tasks: Sequence[Any], week: tuple[int, int]) -> list[Any]:
    """Draw small tasks that have files, by the year and the week."""
    small = [task for task in tasks if task.rows <= MOST_ROWS]
    chosen = np.random.default_rng(week).choice(
        len(small), min(DRAWN, len(small)), replace=False
    )
    return [small[i] for i in sorted(chosen)]


def trained(folders: Iterable[Path]) -> pd.DataFrame:
    """Return which contestants were run on which splits, whatever came of it."""
    place = {"dataset": "task", "split": "split", "solver": "solver"}
    paths = [path for folder in folders if (path := folder / "results.csv").exists()]
    runs = [pd.read_csv(path, usecols=[*place]).drop_duplicates() for path in paths]
    if not runs:
        raise InputError("nothing of the survey was run: make survey")
    return pd.concat(runs).rename(columns=place)


def replaced(
    known: pd.DataFrame, table: pd.DataFrame, ran: pd.DataFrame
) -> pd.DataFrame:
    """Put results of contestants on splits in the place of the same ones.

    What is new comes behind the splits of the task, or the contestants of the split.
    What was run and failed leaves nothing.
    """
    place = ["task", "split", "solver"]
    run_again = pd.MultiIndex.from_frame(ran[place])
    is_old = pd.MultiIndex.from_frame(known[place]).isin(run_again)
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

    return remaining.sort_values(place, key=in_order)


def digest_of(reference: Path) -> Path:
    """Return the file with the digest of the values as they were collected.

    An edit would show.
    """
    return reference.with_name(f"{reference.name.partition('.')[0]}.sha256")


def digest(text: str) -> str:
    """Return what an edit of the values would change."""
    return hashlib.sha256(text.encode()).hexdigest() + "\n"


def as_text(table: pd.DataFrame) -> str:
    """Write the values as the reference does."""
    return table.to_csv(index=False, lineterminator="\n", float_format="%.5g")


def other_values(known: pd.DataFrame, table: pd.DataFrame) -> tuple[int, list[str]]:
    """Count the values that both tables have, and list those that are not the same."""
    place = ["task", "solver", "split"]
    both = known.merge(
        pd.read_csv(io.StringIO(as_text(table))), on=place, suffixes=("", "_again")
    )
    n_values = 0
    sentences = []
    for metric in MEASURES:
        old = both[metric]
        new = both[f"{metric}_again"]
        n_values += int(old.notna().sum())
        changed = both[(old != new) & (old.notna() | new.notna())]
        for row in changed.to_dict("records"):
            sentences.append(
                f"{row['task']}, {row['solver']}, split {row['split']}, {metric}: "
                f"{row[f'{metric}_again']:g} in place of {row[metric]:g}"
            )
    return n_values, sentences


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
    is_rare = options.panel != "survey"
    folds = options.panel == "folds"
    references = {"survey": REFERENCE, "rare": rare.REFERENCE, "folds": rare.FOLDED}
    reference = references[options.panel]
    known = pd.DataFrame(columns=COLUMNS)
    if reference.exists():
        known = pd.read_csv(reference)
    names = rare.runs(folds) if is_rare else RUNS
    folders = [options.folder / name for name in names]
    try:
        if options.do == "tasks":
            listed = rare.read_tasks(folds) if is_rare else read_tasks()
            tasks = {task.task: task for task in listed}
            unknown = [name for name in options.task if name not in tasks]
            if unknown:
                kind = "rare" if is_rare else "survey"
                parser.error(
                    f"unknown task {unknown[0]!r}; see"
                    f" results/reference/{kind}-tasks.csv"
                )
            chosen = [tasks[name] for name in options.task] or list(tasks.values())
            if options.draw:
                chosen = drawn(chosen, datetime.date.today().isocalendar()[:2])
            write = partial(rare.write, folds=folds) if is_rare else write_configs
            print(*write(options.folder, chosen), sep="\n")
            return
        table, ran = collect(folders), trained(folders)
    except PrecbenchError as error:
        parser.error(str(error))
    if is_rare:
        table, ran = rare.joined(table), rare.joined(ran)
    if options.do == "again":
        n_values, others = other_values(known, table)
        sentence = f"{n_values:,} values again, {len(others)} not the same"
        print(*others, sentence, sep="\n")
        sys.exit(bool(others) or not n_values)
    text = as_text(replaced(known, table, ran))
    reference.write_bytes(gzip.compress(text.encode(), mtime=0))
    digest_of(reference).write_text(digest(text))


if __name__ == "__main__":
    main()
