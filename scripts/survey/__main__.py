"""Write the tasks of the survey, take its results into the reference, or compare them with it.

``python -m scripts.survey tasks FOLDER [TASK ...]`` writes their files and configs for
``precbench run``; ``python -m scripts.survey collect RESULTS`` takes what was run into
results/reference, in place of the same splits there; ``python -m scripts.survey again RESULTS``
ends with 1 where a value is not the one there, to its five digits.
"""

import argparse
import gzip
import io
import sys
from pathlib import Path

import pandas as pd

from precbench.errors import PrecbenchError
from precbench.survey.ranking import COLUMNS, MEASURES, REFERENCE, collect
from precbench.survey.tasks import read_tasks, write_configs

RUNS = ("survey-short", "survey-long", "top-synthetic")


def replaced(known: pd.DataFrame, table: pd.DataFrame) -> pd.DataFrame:
    """Put splits of tasks in the place of the same ones, or behind the others of the task."""
    place = ["task", "split"]
    old = known.set_index(place).index.isin(table.set_index(place).index)
    both = pd.concat([known[~old], table], ignore_index=True)
    order = {name: at for at, name in enumerate(both["task"].unique())}
    return both.sort_values(
        place, key=lambda c: c.map(order) if c.name == "task" else c, kind="stable"
    )


def as_text(table: pd.DataFrame) -> str:
    """Write the values as the reference does."""
    return table.to_csv(index=False, lineterminator="\n", float_format="%.5g")


def other_values(known: pd.DataFrame, table: pd.DataFrame) -> tuple[int, list[str]]:
    """Count the values that both tables have, and list those that are not the same."""
    place = ["task", "solver", "split"]
    both = known.merge(pd.read_csv(io.StringIO(as_text(table))), on=place, suffixes=("", "_again"))
    n_values, found = 0, []
    for metric in MEASURES:
        old, new = both[metric], both[f"{metric}_again"]
        n_values += int(old.notna().sum())
        changed = both[(old != new) & (old.notna() | new.notna())]
        found += [
            f"{row['task']}, {row['solver']}, split {row['split']}, {metric}: "
            f"{row[f'{metric}_again']:g} in place of {row[metric]:g}"
            for row in changed.to_dict("records")
        ]
    return n_values, found


def main() -> None:
    """Run the program."""
    parser = argparse.ArgumentParser(prog="python -m scripts.survey", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("do", choices=["tasks", "collect", "again"])
    parser.add_argument("folder", type=Path)
    parser.add_argument("task", nargs="*")
    options = parser.parse_args()
    known = pd.read_csv(REFERENCE) if REFERENCE.exists() else pd.DataFrame(columns=COLUMNS)
    try:
        if options.do == "tasks":
            tasks = {task.task: task for task in read_tasks()}
            if unknown := [name for name in options.task if name not in tasks]:
                parser.error(f"unknown task {unknown[0]!r}; see results/reference/survey-tasks.csv")
            chosen = [tasks[name] for name in options.task] or list(tasks.values())
            print(*write_configs(options.folder, chosen), sep="\n")
            return
        table = collect(options.folder / name for name in RUNS)
    except PrecbenchError as error:
        parser.error(str(error))
    if options.do == "again":
        n_values, found = other_values(known, table)
        print(*found, f"{n_values:,} values again, {len(found)} not the same", sep="\n")
        sys.exit(bool(found) or not n_values)
    REFERENCE.write_bytes(gzip.compress(as_text(replaced(known, table)).encode(), mtime=0))


if __name__ == "__main__":
    main()
