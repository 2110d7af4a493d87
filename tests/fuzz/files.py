"""Read mutated files: each must give finite rows, or one of our errors, within seconds."""

import bz2
import gzip
import lzma
import os
import resource
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
from mutators import changed_bytes, changed_json_file, changed_npz, changed_table
from world import Change, End, make_world, place_of, within

from precbench.data.own.read import read_new_blocks, read_own_file
from precbench.errors import PrecbenchError
from precbench.experiment import load_config
from precbench.experiment.plan import make_plan
from precbench.model.model import Model
from precbench.report.tables import make_tables, summarise
from precbench.results import read_run
from precbench.runner import to_do
from precbench.score import write_results
from precbench.store import Store

SECONDS = 20  # a case that takes longer is a finding
GIBIBYTES = 2  # and one that asks for more memory

CONFIG = """
name: mine
title: Mine
datasets: [{file: rows.csv, label: y, drop: [colour]}]
protocol: {n_splits: 1}
solvers: {perceptron-avg: {k: 0.5, epochs: 1}}
metrics: [auc]
checkpoints: 3
"""


class Files:
    """One valid file of each kind, its mutations, and how a command reads it."""

    def __init__(self, folder: Path):
        self.folder = folder
        table = make_world(folder / "world", CONFIG, ["run", "mine.yaml", "--no-plots"])
        X, y = table[["a", "b", "c"]].to_numpy(), table["y"]
        text = "".join(
            f"{label} 1:{row[0]} 2:{row[1]}e-1 7:{row[2]:.17f} # comment\n"
            for label, row in zip(y, X, strict=True)
        ).encode()
        for suffix, pack in {"": bytes, "gz": gzip.compress, "bz2": bz2.compress}.items():
            Path(f"rows.svm.{suffix}".rstrip(".")).write_bytes(pack(text))
        Path("rows.svm.xz").write_bytes(lzma.compress(text))
        parts = {"data": X.ravel(), "indices": np.tile(np.arange(3), len(X))}
        parts |= {"indptr": np.arange(0, X.size + 1, 3), "shape": np.array(X.shape)}
        np.savez("sparse.npz", **parts, y=y)
        Path("new.csv").write_bytes(Path("rows.csv").read_bytes())
        self.plan = make_plan(load_config(Path("mine.yaml")))
        self.store = Store(Path("results", "mine").resolve())
        [record] = self.store.folder.glob("trials/*.json")
        self.kinds: list[tuple[str | Path, Change, Callable]] = [
            ("rows.svm", changed_bytes, own),
            ("rows.npz", changed_npz, own),
            ("rows.csv", changed_bytes, own),
            (record, changed_json_file, self.score),
            ("rows.svm", changed_bytes, own),
            ("sparse.npz", changed_npz, own),
            ("rows.parquet", changed_table, own),
            ("model.npz", changed_npz, rank),
            ("trees.npz", changed_npz, rank),
            ("forest.npz", changed_npz, rank),
            ("rows.svm.gz", changed_bytes, own),
            ("rows.svm.bz2", changed_bytes, own),
            ("new.csv", changed_bytes, rank_rows),
            (record.with_suffix(".npz"), changed_npz, self.score),
            (self.store.folder / "results.csv", changed_bytes, self.report),
            ("rows.svm.xz", changed_bytes, own),
            (self.store.folder / "experiment.json", changed_json_file, self.report),
        ]
        if "asan" not in os.environ.get(
            "LD_PRELOAD", ""
        ):  # its shadow needs terabytes of addresses
            used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
            resource.setrlimit(resource.RLIMIT_AS, (used + GIBIBYTES * 2**30,) * 2)

    def give(self, number: int, rng: Random) -> End:
        """Put the changed file in the place of the valid one, and read it."""
        name, change, read = self.kinds[number % len(self.kinds)]
        path = Path(name)
        valid = path.read_bytes()
        content = change(rng, valid)
        path.write_bytes(content)
        try:
            with within(SECONDS):
                read(rng, path)
        except PrecbenchError:
            return End("refused", path.name, content)
        except Exception as error:
            finding = f"{path.name}: {place_of(error)}"
            return End("wrong", path.name, content, finding, str(error)[:200])
        finally:
            path.write_bytes(valid)
        return End("read", path.name, content)

    def score(self, *_: Any) -> None:
        """Continue a run that has this part of a record."""
        to_do(self.plan, self.store)
        write_results(self.plan, self.store)

    def report(self, *_: Any) -> None:
        """Make the tables of a folder that has this file."""
        run = read_run(self.store.folder)
        make_tables(run, summarise(run.results, run.losses))


def own(rng: Random, path: Path) -> None:
    """Read rows as ``precbench fit`` does."""
    options: dict[str, Any] = {"positive": rng.choice([None, 1, "1"])}
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


def rank(_: Random, path: Path, rows: str = "rows.csv") -> None:
    """Rank good rows by this model."""
    model = Model.load(path)
    if model.encoding is not None:
        ranking, _ = model.rank_blocks(read_new_blocks(Path(rows), model.encoding))
        assert np.isfinite(ranking["score"]).all(), "a score that is not finite"


def rank_rows(rng: Random, path: Path) -> None:
    """Rank these rows by a good model."""
    rank(rng, Path("model.npz"), str(path))
