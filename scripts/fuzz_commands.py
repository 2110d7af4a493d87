"""Give whole commands over hostile folders: each must end as its help says, and touch nothing else.

One file of a small world (own rows, a config, results of an experiment and a study, a model, a
ledger, an archive, the cache) is changed at random, and commands that read it are given. A finding
is a traceback, an exit code that is not documented, no reason given, a control character in the
output, more than ``SECONDS`` seconds, or a change outside the world. The cases follow from
``--seed`` alone; the last one of each finding is repeated by ``--first``.
"""

import argparse
import bz2
import os
import random
import shutil
import signal
import sys
import time
import traceback
import zipfile
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import typer.testing
from mutators import (
    changed_bytes,
    changed_csv,
    changed_json_file,
    changed_npz,
    changed_table,
    changed_yaml,
    changed_zip,
)
from typer.main import get_command

from precbench.cli import app
from precbench.text import visible

SECONDS = 60
DOCUMENTED = {0, 1, 2, 3, 4}
MOST_SHOWN = 20
COMMAND = get_command(app)
typer.testing._get_command = lambda _: COMMAND  # made anew for each call, it takes longer than most

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
TREES = ["--solver", "hist-gradient-boosting", "--param", "max_iter=3"]
FIT = ["--label", "y", "--categorical", "one-hot", "--missing", "median", "--k", "3"]
MINE = ["--config", "mine.yaml", "--no-plots"]
STUDY = "rudin2009-fig-3-smoke"


class Kind(NamedTuple):
    """Files of the world, how they are changed, and which commands read them."""

    pattern: str
    change: Callable[[random.Random, bytes], bytes]
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
    ["validate", "mine.yaml"],
    [*RUN, "--dry-run"],
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
    Kind("model.npz", changed_npz, [["show", "{}"], ["score", "{}", "rows.csv"]]),
    Kind("trees.npz", changed_npz, [["show", "{}"], ["score", "{}", "rows.csv"]]),
    Kind("mine.yaml", changed_yaml, [["validate", "{}"], [*RUN, "--dry-run"], RESULTS[6], RUN]),
    Kind("training_data.zip", changed_zip, [["data", "add", "kdd08", "{}"]]),
    Kind("training_data.zip", changed_zip, [["data", "fetch", "kdd08", "--mirror", "mirror"]]),
    Kind("housing.data.bz2", changed_bytes, [["data", "add", "housing", "{}"]]),
    Kind("cache/files/kdd08/.*.json", changed_json_file, [["data", "info", "kdd08"]]),
]
CHECK = ["check", "results", "--reference", "{}", "--out", "out"]  # takes a second
KINDS = [*OFTEN, *OFTEN, Kind("ledger.csv", changed_csv, [CHECK])]


def give(arguments: list[str]) -> Any:
    """Run a command in this process."""
    return typer.testing.CliRunner().invoke(app, arguments)


def make_world(world: Path) -> None:
    """Make one valid file of each kind, with the commands that the cases give."""
    os.chdir(world)
    rng = np.random.default_rng(0)
    table = pd.DataFrame(rng.standard_normal((60, 3)).round(3), columns=["a", "b", "c"])
    table["colour"] = np.where(table["c"] > 0, "red", "=green;x")
    table["y"] = np.where(table["a"] + table["b"] > 0.5, 1, -1)
    table.to_csv("rows.csv", index=False)
    table.to_parquet("rows.parquet", index=False)
    np.savez("rows.npz", X=table[["a", "b", "c"]].to_numpy(), y=table["y"].to_numpy())
    Path("mine.yaml").write_text(CONFIG)
    for arguments in (
        ["run", "mine.yaml"],
        ["run", "rudin2009/fig-3", "--smoke"],
        ["run", "mine.yaml", "--out", "other", "--splits", "0"],
        ["check", "results", "--out", "ledger"],
        [*OWN[0][:-1], "model.npz"],
        [*OWN[0][:-2], *TREES, "--save", "trees.npz"],
    ):
        done = give([argument.format("rows.csv") for argument in arguments])
        assert done.exit_code in (0, 4), done.output
    shutil.copy("ledger/ledger.csv", "ledger.csv")
    with zipfile.ZipFile("training_data.zip", "w") as archive:
        archive.writestr("Features.txt", "0 0 0\n" * 20)
        archive.writestr("Info.txt", "1 2 3\n" * 20)
    Path("mirror/kdd08").mkdir(parents=True)
    Path("mirror/kdd08/training_data.zip").symlink_to(world / "training_data.zip")
    Path("housing.data.bz2").write_bytes(bz2.compress(b"1 2 3\n" * 20))
    notes = world / "cache" / "files" / "kdd08"
    notes.mkdir(parents=True)
    for name in ("Features.txt", "Info.txt"):
        (notes / name).write_text("0 0 0\n")
    give(["data", "info", "kdd08"])


class Case(NamedTuple):
    """A file of the world, its new content, and the command to give."""

    path: str
    content: bytes
    arguments: list[str]

    @classmethod
    def draw(cls, world: Path, seed: int, number: int) -> "Case":
        """Draw the case of a number."""
        rng = random.Random(f"{seed}/{number}")
        kind = KINDS[number % len(KINDS)]
        path = rng.choice(sorted(world.glob(kind.pattern)))
        arguments = rng.choice(kind.commands)
        name = str(path.relative_to(world))
        return cls(
            name,
            kind.change(rng, path.read_bytes()),
            [argument.format(name) if argument == "{}" else argument for argument in arguments],
        )


def wrong_end(done: Any) -> str:
    """Return what is wrong with the way in which a command ended, or an empty text."""
    if done.exception is not None and not isinstance(done.exception, SystemExit):
        where = traceback.extract_tb(done.exc_info[2])[-1]
        return f"{type(done.exception).__name__} ({Path(where.filename).name}:{where.lineno})"
    if done.exit_code not in DOCUMENTED:
        return f"exit code {done.exit_code}"
    if "Traceback" in done.output:
        return "a traceback is printed"
    if visible(done.output) != done.output:
        return "a control character is printed"
    if done.exit_code in (2, 3) and not done.stderr.strip():
        return f"exit code {done.exit_code} without a reason"
    return ""


def state(folder: Path, but: Path) -> dict[str, int]:
    """Return the files beside the world, with the times of their last change."""
    paths = (path for path in folder.rglob("*") if but not in (path, *path.parents))
    return {str(path): path.stat().st_mtime_ns for path in paths}


def ring(*_: Any) -> None:
    raise TimeoutError(f"more than {SECONDS} s")


def run(n_cases: int, seed: int, first: int, folder: Path) -> int:
    """Give the commands of the cases and return the number of findings."""
    shutil.rmtree(folder, ignore_errors=True)
    whole, world, home = folder / "whole", folder / "beside" / "world", folder / "beside" / "home"
    whole.mkdir(parents=True)
    home.mkdir(parents=True)
    (home / "mine.txt").write_text("precious")
    os.environ |= {"HOME": str(home), "PRECBENCH_CACHE": "cache", "COLUMNS": "100"}
    os.environ.pop("PRECBENCH_MIRROR", None)
    make_world(whole)
    beside = state(home.parent, world)
    signal.signal(signal.SIGALRM, ring)
    ends: Counter[int] = Counter()
    findings: Counter[str] = Counter()
    started = time.perf_counter()
    for number in range(first, first + n_cases):
        case = Case.draw(whole, seed, number)
        os.chdir(folder)
        shutil.rmtree(world, ignore_errors=True)
        shutil.copytree(whole, world, symlinks=True)
        os.chdir(world)
        (world / case.path).write_bytes(case.content)
        signal.alarm(SECONDS)
        begun = time.perf_counter()
        done = give(case.arguments)
        signal.alarm(0)
        ends[done.exit_code] += 1
        found = wrong_end(done)
        if not found and time.perf_counter() - begun > SECONDS:
            found = "too long"
        if not found and state(home.parent, world) != beside:
            found = "a file outside was touched"
        if found:
            finding = f"{case.arguments[0]}: {found}"
            findings[finding] += 1
            if findings[finding] == 1 and len(findings) <= MOST_SHOWN:
                print(
                    f"case {number}, {case.path}, {' '.join(case.arguments)}: {finding}: "
                    f"{str(done.exception)[:200]}",
                    file=sys.stderr,
                )
    seconds = time.perf_counter() - started
    n_findings = findings.total()
    codes = ", ".join(f"{n:,} of {code}" for code, n in sorted(ends.items()))
    print(
        f"fuzz: {n_cases:,} commands in {seconds:.0f} s, seed {seed}: exit codes {codes}; "
        f"{n_findings:,} findings"
    )
    return n_findings


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--cases", type=int, default=500)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--first", type=int, default=0, help="number of the first case")
    parser.add_argument("--folder", type=Path, default=Path("build/fuzz-commands"))
    options = parser.parse_args()
    return int(run(options.cases, options.seed, options.first, options.folder.resolve()) > 0)


if __name__ == "__main__":
    sys.exit(main())
