"""One valid file of each kind that comes from elsewhere, and how a command reads it."""

import bz2
import gzip
import lzma
import os
from collections.abc import Callable
from functools import partial
from pathlib import Path
from random import Random
from typing import NamedTuple

import numpy as np
import pandas as pd
from mutators import changed_bytes, changed_json_file, changed_npz, changed_table
from typer.testing import CliRunner

from precbench.cli import app
from precbench.experiment import load_config
from precbench.experiment.plan import Plan, make_plan
from precbench.model.model import Model
from precbench.report.summary_tables import make_tables
from precbench.results.measure import write_results
from precbench.results.read import read_run
from precbench.results.store import Store
from precbench.results.summary import summarise
from precbench.runner import to_do
from precbench.tables.own_file import read_new_blocks, read_own_file

CONFIG = """
name: mine
title: Mine
datasets: [{file: rows.csv, label: y, drop: [colour]}]
protocol: {n_splits: 1}
solvers: {perceptron-avg: {k: 0.5, epochs: 1}}
metrics: [auc]
checkpoints: 3
"""
FIT = "fit rows.csv --label y --categorical one-hot --missing median --k 3 --splits 1"
COMMANDS = [
    f"{FIT} --save model.npz --solver perceptron-avg",
    f"{FIT} --save trees.npz --solver hist-gradient-boosting --param max_iter=3",
    (
        f"{FIT} --save forest.npz --solver random-forest --param n_estimators=3"
        " --fourier 3"
    ),
    "run mine.yaml --no-plots",
]


class Kind(NamedTuple):
    """A valid file, how it is changed, and how it is read."""

    path: Path
    change: Callable[[Random, bytes], bytes]
    read: Callable[[Random, Path], None]


def write_files(folder: Path) -> list[Kind]:
    """Write a valid file of each kind, and stay in their folder."""
    folder.mkdir(parents=True)
    os.chdir(folder)
    write_rows()
    Path("mine.yaml").write_text(CONFIG)
    for command in COMMANDS:
        done = CliRunner().invoke(app, command.split())
        assert done.exit_code in (0, 4), done.output
    store = Store(Path("results", "mine").resolve())
    [record] = store.folder.glob("trials/*.json")
    resume = partial(continue_run, make_plan(load_config(Path("mine.yaml"))), store)
    report = partial(make_report, store.folder)
    return [
        Kind(Path("rows.svm"), changed_bytes, read_rows),
        Kind(Path("rows.npz"), changed_npz, read_rows),
        Kind(Path("rows.csv"), changed_bytes, read_rows),
        Kind(record, changed_json_file, resume),
        Kind(Path("rows.svm"), changed_bytes, read_rows),
        Kind(Path("sparse.npz"), changed_npz, read_rows),
        Kind(Path("rows.parquet"), changed_table, read_rows),
        Kind(Path("model.npz"), changed_npz, rank_by_model),
        Kind(Path("trees.npz"), changed_npz, rank_by_model),
        Kind(Path("forest.npz"), changed_npz, rank_by_model),
        Kind(Path("rows.svm.gz"), changed_bytes, read_rows),
        Kind(Path("rows.svm.bz2"), changed_bytes, read_rows),
        Kind(Path("new.csv"), changed_bytes, rank_new_rows),
        Kind(record.with_suffix(".npz"), changed_npz, resume),
        Kind(store.folder / "results.csv", changed_bytes, report),
        Kind(Path("rows.svm.xz"), changed_bytes, read_rows),
        Kind(store.folder / "experiment.json", changed_json_file, report),
    ]


def write_rows() -> None:
    """Write the same rows in each format, and those of the CSV file once more."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((60, 3)).round(3)
    y = np.where(X[:, 0] + X[:, 1] > 0.5, 1, -1)
    table = pd.DataFrame(X, columns=["a", "b", "c"])
    table = table.assign(colour=np.where(X[:, 2] > 0, "red", "=green;x"), y=y)
    table.to_csv("rows.csv", index=False)
    table.to_csv("new.csv", index=False)
    table.to_parquet("rows.parquet", index=False)
    np.savez("rows.npz", X=X, y=y)
    np.savez(
        "sparse.npz",
        data=X.ravel(),
        indices=np.tile(np.arange(3), len(X)),
        indptr=np.arange(0, X.size + 1, 3),
        shape=np.array(X.shape),
        y=y,
    )
    lines = [
        f"{label} 1:{row[0]} 2:{row[1]}e-1 7:{row[2]:.17f} # comment\n"
        for label, row in zip(y, X, strict=True)
    ]
    packs = {
        "": bytes,
        ".gz": gzip.compress,
        ".bz2": bz2.compress,
        ".xz": lzma.compress,
    }
    for suffix, pack in packs.items():
        Path(f"rows.svm{suffix}").write_bytes(pack("".join(lines).encode()))


def read_rows(rng: Random, path: Path) -> None:
    """Read rows as ``precbench fit`` does."""
    options = {"positive": rng.choice([None, 1, "1"])}
    if path.suffix in (".csv", ".parquet"):
        options |= {
            "label": "y",
            "categorical": rng.choice(["error", "one-hot"]),
            "missing": rng.choice(["error", "mean", "median", "most-frequent"]),
        }
    dataset, encoding = read_own_file(path, **options)
    X = dataset.X if isinstance(dataset.X, np.ndarray) else dataset.X.data
    assert np.isfinite(X).all(), "a value that is not finite"
    assert dataset.X.shape == (len(dataset.y), encoding.n_features), "shapes differ"
    assert set(dataset.y) == {-1.0, 1.0}, "labels"


def rank_by_model(_: Random, path: Path) -> None:
    """Rank valid rows by this model."""
    rank(path, Path("rows.csv"))


def rank_new_rows(_: Random, path: Path) -> None:
    """Rank these rows by a valid model."""
    rank(Path("model.npz"), path)


def rank(path_of_model: Path, path_of_rows: Path) -> None:
    model = Model.load(path_of_model)
    if model.encoding is not None:
        ranking, _ = model.rank_blocks(read_new_blocks(path_of_rows, model.encoding))
        assert np.isfinite(ranking["score"]).all(), "a score that is not finite"


def continue_run(plan: Plan, store: Store, *_: object) -> None:
    """Continue a run that has this part of a record."""
    to_do(plan, store)
    write_results(plan, store)


def make_report(folder: Path, *_: object) -> None:
    """Make the tables of a results folder that has this file."""
    run = read_run(folder)
    make_tables(run, summarise(run.results, run.losses))
