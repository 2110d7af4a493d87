"""Give whole commands over hostile folders: each must end as its help says, and touch nothing else.

A finding is a traceback, an exit code that is not documented, no reason given, a control character
in the output, more than ``SECONDS`` seconds, or a change outside the world.
"""

import bz2
import os
import shutil
import time
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

from mutators import (
    changed_bytes,
    changed_csv,
    changed_json_file,
    changed_npz,
    changed_table,
    changed_yaml,
)
from world import FIT, Change, End, give, make_world, place_of, within

from precbench.text import visible

SECONDS = 60
DOCUMENTED = {0, 1, 2, 3, 4, 5}

CONFIG = """
name: mine
title: Mine
datasets: [{file: rows.csv, label: y, drop: [colour], name: rows}]
protocol: {n_splits: 2}
solvers: {perceptron-avg: {epochs: 1}, sgd-avg: {epochs: 1}}
metrics: [{precision_at_k: {k: 0.25}}, auc]
sweep: {batch_size: [10, 20]}
plots: []
checkpoints: 3
"""
MINE = ["--config", "mine.yaml", "--no-plots"]
STUDY = "rudin2009-fig-3-smoke"


class Kind(NamedTuple):
    """Files of the world, how they are changed, and which commands read them."""

    pattern: str
    change: Change
    commands: list[list[str]]


RUN = ["run", "mine.yaml", "--no-plots"]
RESULTS = [
    [*RUN, "--dry-run"],
    ["plot", "results/mine"],
    ["report", "results"],
    ["status", "results"],
    ["diff", "results/mine", "other/mine"],
    ["show", "rows/sgd-avg/0"],
    ["merge", "results", "other", "--out", "out", *MINE],
    ["merge", "other", "--out", "results", *MINE],
] * 3 + [["check", "results", "--out", "out"]]
OWN = [
    ["fit", "{}", *FIT, "--splits", "1", "--solver", "perceptron-avg", "--save", "new.npz"],
    ["score", "model.npz", "{}", "--id", "colour"],
    ["score", "model.npz", "{}", "--out", "top.csv"],
    ["score", "model.npz", "rows.csv", "--last", "{}", "--id", "colour"],
    ["score", "model.npz", "{}", "--drift", "drift.json", "--strict"],
    ["evaluate", "model.npz", "{}", *FIT[:2]],
    ["validate", "mine.yaml"],
    [*RUN, "--dry-run"],
]
MODELS = [
    ["show", "{}"],
    ["score", "{}", "rows.csv", "--drift", "drift.json"],
    ["evaluate", "{}", "rows.csv", *FIT[:2], "--against", "model.npz"],
]
COMPARE = ["compare", "{}", *FIT, "--splits", "2", "--jobs", "1", "--solver", "sgd-avg"]
OFTEN = [
    Kind("results/mine/trials/*.json", changed_json_file, RESULTS),
    Kind("results/mine/trials/*.npz", changed_npz, RESULTS),
    Kind("results/mine/trials/*.json", changed_json_file, [*RESULTS, RUN]),
    Kind("results/mine/results.csv", changed_csv, RESULTS),
    Kind(
        "results/mine/results.csv", changed_csv, [["plot", "results/mine"], ["report", "results"]]
    ),
    Kind("results/mine/*.csv", changed_csv, RESULTS),
    Kind("results/mine/*.json", changed_json_file, [*RESULTS, RUN]),
    Kind("results/mine/*.json", changed_json_file, RESULTS),
    Kind("results/mine/environments/*.json", changed_json_file, RESULTS),
    Kind(f"results/{STUDY}/*.json", changed_json_file, [["plot", f"results/{STUDY}"], *RESULTS]),
    Kind(f"results/{STUDY}/*.csv", changed_csv, [["plot", f"results/{STUDY}"], *RESULTS]),
    Kind("rows.csv", changed_csv, [*OWN, *OWN, COMPARE]),
    Kind("rows.parquet", changed_table, OWN[:3]),
    Kind("rows.npz", changed_npz, [["fit", "{}", "--k", "3", "--splits", "1", "--save", "a.npz"]]),
    Kind("model.npz", changed_npz, MODELS),
    Kind("trees.npz", changed_npz, MODELS),
    Kind("forest.npz", changed_npz, MODELS),
    Kind("mine.yaml", changed_yaml, [["validate", "{}"], [*RUN, "--dry-run"], RESULTS[6], RUN]),
    Kind("Features.txt", changed_bytes, [["data", "add", "kdd08", "{}", "Info.txt"]]),
    Kind("housing.data.bz2", changed_bytes, [["data", "add", "housing", "{}"]]),
]
CHECK = ["check", "results", "--reference", "{}", "--out", "out"]  # takes a second
KINDS = [*OFTEN, *OFTEN, Kind("ledger.csv", changed_csv, [CHECK])]


class Commands:
    """A valid world, the copy of it in which a case is given, and what lies beside that."""

    cases = "commands"

    def __init__(self, folder: Path):
        self.folder = folder
        self.whole, self.beside = folder / "whole", folder / "beside"
        self.world, home = self.beside / "world", self.beside / "home"
        home.mkdir(parents=True)
        (home / "mine.txt").write_text("precious")
        os.environ |= {"HOME": str(home), "PRECBENCH_CACHE": "cache", "COLUMNS": "100"}
        os.environ.pop("PRECBENCH_MIRROR", None)
        make_world(
            self.whole,
            CONFIG,
            ["run", "mine.yaml"],
            ["run", "rudin2009/fig-3", "--smoke"],
            ["run", "mine.yaml", "--out", "other", "--splits", "0"],
            ["check", "results", "--out", "ledger"],
        )
        shutil.copy("ledger/ledger.csv", "ledger.csv")
        Path("Features.txt").write_text("0 0 0\n" * 20)
        Path("Info.txt").write_text("1 2 3\n" * 20)
        Path("housing.data.bz2").write_bytes(bz2.compress(b"1 2 3\n" * 20))
        notes = Path("cache") / "files" / "kdd08"
        notes.mkdir(parents=True)
        for name in ("Features.txt", "Info.txt"):
            (notes / name).write_text("0 0 0\n")
        give(["data", "info", "kdd08"])
        self.untouched = self._state()

    def give(self, number: int, rng: Random) -> End:
        """Change a file in a new copy of the world, and give a command."""
        kind = KINDS[number % len(KINDS)]
        path = rng.choice(sorted(self.whole.glob(kind.pattern))).relative_to(self.whole)
        arguments = [str(path) if word == "{}" else word for word in rng.choice(kind.commands)]
        content = kind.change(rng, (self.whole / path).read_bytes())
        os.chdir(self.folder)
        shutil.rmtree(self.world, ignore_errors=True)
        shutil.copytree(self.whole, self.world, symlinks=True)
        os.chdir(self.world)
        path.write_bytes(content)
        begun = time.perf_counter()
        with within(SECONDS):
            done = give(arguments)
        found = wrong_end(done)
        if not found and time.perf_counter() - begun > SECONDS:
            found = "too long"
        if not found and self._state() != self.untouched:
            found = "a file outside was touched"
        finding = found and f"{arguments[0]}: {found}"
        case = f"{path.name} of {path.parent}, {' '.join(arguments)}"
        outcome = f"of exit code {done.exit_code}"
        return End(outcome, case, content, finding, str(done.exception)[:200])

    def _state(self) -> dict[str, int]:
        """Return the files beside the world, with the times of their last change."""
        paths = (p for p in self.beside.rglob("*") if self.world not in (p, *p.parents))
        return {str(path): path.stat().st_mtime_ns for path in paths}


def wrong_end(done: Any) -> str:
    """Return what is wrong with the way in which a command ended, or an empty text."""
    if done.exception is not None and not isinstance(done.exception, SystemExit):
        return place_of(done.exception)
    if done.exit_code not in DOCUMENTED:
        return f"exit code {done.exit_code}"
    if "Traceback" in done.output:
        return "a traceback is printed"
    if visible(done.output) != done.output:
        return "a control character is printed"
    if done.exit_code in (2, 3) and not done.stderr.strip():
        return f"exit code {done.exit_code} without a reason"
    return ""
