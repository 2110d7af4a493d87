"""Read mutated files: each must give finite rows, or one of our errors, within seconds.

Files of every untrusted kind (svmlight, tables, npz, models, records, results)
are changed at random, some as bytes, some in the parts that they consist of, and read as the
commands read them. `make sanitize` runs this over kernels built with the address and
undefined-behaviour sanitizers. The cases follow from ``--seed`` alone; the case that killed the
process, and those with a finding, lie in ``build/fuzz``.
"""

import argparse
import bz2
import contextlib
import gzip
import io
import lzma
import os
import random
import resource
import signal
import subprocess
import sys
import time
import traceback
import warnings
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from mutators import changed_bytes, changed_json_file, changed_npz, changed_table

from precbench.advice.model import Model
from precbench.data.own.read import read_new_rows, read_own_file
from precbench.errors import PrecbenchError
from precbench.experiment import load_config
from precbench.experiment.plan import make_plan
from precbench.report.tables import make_tables, summarise
from precbench.results import read_run
from precbench.runner import run_plan, to_do
from precbench.score import write_results
from precbench.store import Store

SECONDS = 20  # a case that takes longer is a finding
GIBIBYTES = 2  # and one that asks for more memory
MOST_SHOWN = 20

OVERFLOW = """
import numpy as np
from precbench.kernels.svmlight import parse_block
text = bytearray(b"1 1:1\\n" * 200)
room = {"data": np.empty(400), "indices": np.empty(400, np.int32), "labels": np.empty(600)}
parse_block(text, len(text), 9, row_ends=np.empty(150, np.intp), inexact=np.empty((9, 3), np.intp),
            **room)
"""


# --- kinds of files ---


class Kinds:
    """One valid file of each kind, its mutations, and how a command reads it."""

    def __init__(self, folder: Path):
        self.folder = folder
        rng = np.random.default_rng(0)
        X = rng.standard_normal((30, 3)).round(3)
        y = np.where(X[:, 0] + X[:, 1] > 0.5, 1, -1)
        self.table = pd.DataFrame(X, columns=["a", "b", "c"])
        self.table["colour"] = np.where(X[:, 2] > 0, "red", "green")
        self.table["y"] = y
        text = "".join(
            f"{label} 1:{row[0]} 2:{row[1]}e-1 7:{row[2]:.17f} # comment\n"
            for label, row in zip(y, X, strict=True)
        ).encode()
        csv = self.table.to_csv(index=False).encode()
        parquet, dense, sparse = io.BytesIO(), io.BytesIO(), io.BytesIO()
        self.table.to_parquet(parquet, index=False)
        np.savez(dense, X=X, y=y)
        parts = {"data": X.ravel(), "indices": np.tile(np.arange(3), 30)}
        np.savez(sparse, **parts, indptr=np.arange(0, 91, 3), shape=np.array([30, 3]), y=y)
        self._prepare_model(csv)
        self._prepare_results()
        packed = [("gz", gzip.compress), ("bz2", bz2.compress), ("xz", lzma.compress)]
        packed_texts = [(f"{name}.svm.{name}", pack(text)) for name, pack in packed]
        self.kinds: list[tuple[str, str, bytes, Callable, Callable]] = [
            ("svmlight", "rows.svm", text, changed_bytes, self.own),
            ("npz", "dense.npz", dense.getvalue(), changed_npz, self.own),
            ("csv", "rows.csv", csv, changed_bytes, self.own),
            ("record", self.record.name, self.record.read_bytes(), changed_json_file, self.score),
            ("svmlight", "rows.svm", text, changed_bytes, self.own),
            ("npz", "sparse.npz", sparse.getvalue(), changed_npz, self.own),
            ("parquet", "rows.parquet", parquet.getvalue(), changed_table, self.own),
            ("model", "model.npz", self.model.read_bytes(), changed_npz, self.rank),
            ("model", "model.npz", self.trees.read_bytes(), changed_npz, self.rank),
            *(
                ("packed", name, content, changed_bytes, self.own)
                for name, content in packed_texts[:2]
            ),
            ("rows", "new.csv", csv, changed_bytes, self.rank_rows),
            ("record", self.arrays.name, self.arrays.read_bytes(), changed_npz, self.score),
            ("results", "results.csv", self.results.read_bytes(), changed_bytes, self.report),
            ("packed", *packed_texts[2], changed_bytes, self.own),
            (
                "results",
                "experiment.json",
                self.about.read_bytes(),
                changed_json_file,
                self.report,
            ),
        ]

    def _prepare_model(self, csv: bytes) -> None:
        rows = self.folder / "good.csv"
        rows.write_bytes(csv)
        dataset, encoding = read_own_file(rows, label="y", categorical="one-hot", missing="mean")
        model = Model.fit(
            dataset.X, dataset.y, "sgd-avg", scaling="standardise", encoding=encoding, k=0.5
        )
        self.rows, self.model = rows, self.folder / "good.npz"
        model.save(self.model)
        ensemble = Model.fit(
            *(dataset.X, dataset.y, "random-forest"),
            scaling="standardise",
            encoding=encoding,
            fourier=3,
            n_estimators=3,
        )
        self.trees = self.folder / "trees.npz"
        ensemble.save(self.trees)

    def _prepare_results(self) -> None:
        config = self.folder / "mine.yaml"
        config.write_text(
            "name: mine\ntitle: Mine\ndatasets: [{file: good.csv, label: y, drop: [colour]}]\n"
            "protocol: {n_splits: 1}\nsolvers: {perceptron-avg: {k: 0.5, epochs: 1}}\n"
            "metrics: [auc]\ncheckpoints: 3\n"
        )
        self.plan = make_plan(load_config(config))
        self.store = Store(self.folder / "results")
        list(run_plan(self.plan, self.store, to_do(self.plan, self.store)))
        write_results(self.plan, self.store)
        [(_, key)] = self.plan.trials  # records of earlier code may lie beside
        trial = self.store.folder / "trials" / key
        self.record, self.arrays = trial.with_suffix(".json"), trial.with_suffix(".npz")
        self.results = self.store.folder / "results.csv"
        self.about = self.store.folder / "experiment.json"

    def own(self, rng: random.Random, path: Path) -> None:
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

    def rank(self, _: random.Random, path: Path) -> None:
        """Rank good rows by this model."""
        model = Model.load(path)
        if model.encoding is not None:
            ranking = model.rank(read_new_rows(self.rows, model.encoding))
            assert np.isfinite(ranking["score"]).all(), "a score that is not finite"

    def rank_rows(self, _: random.Random, path: Path) -> None:
        """Rank these rows by a good model."""
        model = Model.load(self.model)
        ranking = model.rank(read_new_rows(path, model.encoding))  # type: ignore[arg-type]
        assert np.isfinite(ranking["score"]).all(), "a score that is not finite"

    def score(self, _: random.Random, path: Path) -> None:
        """Continue a run that has this part of a record."""
        with self._in_place_of(self.store.folder / "trials" / path.name, path):
            to_do(self.plan, self.store)
            write_results(self.plan, self.store)

    def report(self, _: random.Random, path: Path) -> None:
        """Make the tables of a folder that has this file."""
        with self._in_place_of(self.store.folder / path.name, path):
            run = read_run(self.store.folder)
            make_tables(run, summarise(run.results, run.losses))

    @contextlib.contextmanager
    def _in_place_of(self, target: Path, path: Path):
        content = target.read_bytes()
        target.write_bytes(path.read_bytes())
        try:
            yield
        finally:
            target.write_bytes(content)


# --- running ---


class TooLongError(Exception):
    """A case takes too long."""


def run(n_cases: int, seed: int, first: int) -> int:
    """Read the cases and return the number of findings."""
    folder = Path("build/fuzz")
    folder.mkdir(parents=True, exist_ok=True)
    kinds = Kinds(folder)
    if "asan" not in os.environ.get("LD_PRELOAD", ""):  # its shadow needs terabytes of addresses
        used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
        limit = used + GIBIBYTES * 2**30
        resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
    signal.signal(signal.SIGALRM, ring)
    warnings.simplefilter("ignore")
    outcomes: Counter[str] = Counter()
    findings: Counter[str] = Counter()
    started = time.perf_counter()
    for number in range(first, first + n_cases):
        kind, name, content, change, read = kinds.kinds[number % len(kinds.kinds)]
        rng = random.Random(f"{seed}/{number}")
        path = folder / name
        path.write_bytes(change(rng, content))
        signal.alarm(SECONDS)
        try:
            read(rng, path)
            outcomes["read"] += 1
        except PrecbenchError:
            outcomes["refused"] += 1
        except Exception as error:
            where = traceback.extract_tb(error.__traceback__)[-1]
            finding = f"{kind}: {type(error).__name__} ({Path(where.filename).name}:{where.lineno})"
            findings[finding] += 1
            if findings[finding] == 1 and len(findings) <= MOST_SHOWN:
                print(f"case {number}, {finding}: {str(error)[:200]}", file=sys.stderr)
                path.with_name(f"case-{number}-{name}").write_bytes(path.read_bytes())
        finally:
            signal.alarm(0)
    seconds = time.perf_counter() - started
    n_findings = findings.total()
    print(
        f"fuzz: {n_cases:,} cases of {len({k[0] for k in kinds.kinds})} kinds in {seconds:.0f} s, "
        f"seed {seed}: {outcomes['read']:,} read, {outcomes['refused']:,} refused, "
        f"{n_findings:,} findings"
    )
    return n_findings


def ring(*_: Any) -> None:
    raise TooLongError(f"more than {SECONDS} s")


def overflow(expected: str) -> int:
    """Write beyond an array in another process, which must end with this text."""
    done = subprocess.run(
        [sys.executable, "-c", OVERFLOW], capture_output=True, text=True, check=False
    )
    found = done.returncode != 0 and expected in done.stderr
    print(f"a planted overflow was {'found' if found else 'NOT found'} ({expected})")
    return int(not found)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--cases", type=int, default=3000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--first", type=int, default=0, help="number of the first case")
    parser.add_argument("--overflow", metavar="TEXT", help="see that a planted overflow is found")
    options = parser.parse_args()
    if options.overflow:
        return overflow(options.overflow)
    return int(run(options.cases, options.seed, options.first) > 0)


if __name__ == "__main__":
    sys.exit(main())
