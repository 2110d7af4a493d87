"""Write the tasks of the survey, or take its results into the reference.

``python -m precbench.survey tasks FOLDER`` writes their files and configs for ``precbench run``;
``python -m precbench.survey collect RESULTS`` takes what was run into results/reference, in place
of the same splits there.
"""

import argparse
import gzip
from pathlib import Path

import pandas as pd

from precbench.errors import PrecbenchError
from precbench.survey.ranking import REFERENCE, collect
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


def main() -> None:
    """Run the program."""
    parser = argparse.ArgumentParser(prog="python -m precbench.survey", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("do", choices=["tasks", "collect"])
    parser.add_argument("folder", type=Path)
    options = parser.parse_args()
    try:
        if options.do == "tasks":
            print(*write_configs(options.folder, read_tasks()), sep="\n")
            return
        table = collect(options.folder / name for name in RUNS)
    except PrecbenchError as error:
        parser.error(str(error))
    known = pd.read_csv(REFERENCE) if REFERENCE.exists() else table[:0]
    table = replaced(known, table)
    text = table.to_csv(index=False, lineterminator="\n", float_format="%.5g")
    REFERENCE.write_bytes(gzip.compress(text.encode(), mtime=0))


if __name__ == "__main__":
    main()
