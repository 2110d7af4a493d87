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
import json
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
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from precbench.data.own.read import read_new_rows, read_own_file
from precbench.errors import PrecbenchError
from precbench.experiment import load_config
from precbench.experiment.plan import make_plan
from precbench.model import Model
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

TOKENS = [
    *(b"", b"\0", b"-1", b"0", b"1", b"2147483647", b"2147483648", b"9223372036854775808"),
    *(b"1e308", b"1e309", b"-1e-400", b"5e-324", b"nan", b"inf", b"0x10", b"1_0", b"9" * 400),
    *(b"\n", b"\r\n", b"\r", b",", b"\t", b" ", b":", b"#", b'"', b'""', b"'", b"\xef\xbb\xbf"),
    *(b"\xff\xfe", b"\xc3\x28", b"qid:1", b"true", b"2024-01-01", b"[", b"{", b"\\", b"\x1b[31m"),
]
VALUES = [
    *(None, True, False, 0, 1, -1, 2**31, 2**63, 10**400, 0.5, 1e308, -1e-320, "", "a", "\0", "1"),
    *([], [[]], [None], {}, {"a": 1}, [1, 2], "x" * 300, "../x", "ok", "nan", 1.5e300),
]
WORDS = ["a", "b", "é", "", "1", "1e3", "nan", "-", "TRUE", " 2", "x" * 300, "\x1b[2J"]


# --- mutations ---


def changed_bytes(rng: random.Random, content: bytes) -> bytes:
    """Change bytes, tokens or slices in up to four places."""
    changed = bytearray(content)
    for _ in range(rng.randint(1, 4)):
        at = rng.randrange(len(changed) + 1)
        length = rng.choice([1, 1, 2, 8, 64])
        match rng.randrange(6):
            case 0:
                changed[at : at + 1] = bytes([rng.randrange(256)])
            case 1:
                changed[at : at + length] = rng.choice(TOKENS)
            case 2:
                changed[at:at] = rng.choice(TOKENS)
            case 3:
                del changed[at : at + length]
            case 4:
                other = rng.randrange(len(changed) + 1)
                changed[at:at] = changed[other : other + length]
            case 5:
                if rng.random() < 0.3:
                    del changed[at:]
                elif at < len(changed):
                    changed[at] ^= 1 << rng.randrange(8)
    return bytes(changed)


def changed_json(rng: random.Random, value: Any) -> Any:
    """Replace, remove or add one value somewhere in a tree."""
    if isinstance(value, (dict, list)) and value and rng.random() < 0.9:
        items = dict(value) if isinstance(value, dict) else dict(enumerate(value))
        name = rng.choice(list(items))
        match rng.randrange(8):
            case 0:
                del items[name]
            case 1:
                items[rng.choice(["x", 99, name])] = rng.choice(VALUES)
            case _:
                items[name] = changed_json(rng, items[name])
        return items if isinstance(value, dict) else list(items.values())
    return rng.choice(VALUES)


def changed_array(rng: random.Random, array: np.ndarray) -> np.ndarray:
    """Change values, the type or the shape."""
    changed = np.array(array)
    kinds = ["f4", "f2", "i8", "u1", "c16", "?", "M8[ns]", "U5", "S3", ">f8", "O"]
    with np.errstate(all="ignore"), contextlib.suppress(ValueError, TypeError, IndexError):
        match rng.randrange(7):
            case 0:
                changed = changed.astype(rng.choice(kinds))
            case 1:
                changed = changed.reshape(rng.choice([(-1,), (1, -1), (-1, 1), (1, -1, 1)]))
            case 2:
                changed = changed[rng.choice([slice(0), slice(1, None), slice(-1), ...])]
            case 3:
                changed = np.concatenate([changed, changed])
            case 4:
                changed = np.resize(changed, (rng.randrange(4), rng.randrange(4)))
            case _:
                special = [np.nan, np.inf, -np.inf, 1e308, 5e-324, -1, 0, 2**31 - 1, 2**40]
                changed.flat[rng.randrange(changed.size)] = rng.choice(special)
    return changed


def changed_npz(rng: random.Random, content: bytes) -> bytes:
    """Change the bytes of an archive, or an array in it."""
    if rng.random() < 0.3:
        return changed_bytes(rng, content)
    with np.load(io.BytesIO(content)) as file:
        arrays = dict(file)
    for _ in range(rng.randint(1, 2)):
        name = rng.choice(list(arrays))
        if name == "description" and rng.random() < 0.9:
            text = json.dumps(changed_json(rng, json.loads(str(arrays[name]))))
            arrays[name] = np.array(text)
        elif rng.random() < 0.1:
            arrays.pop(name)
        else:
            arrays[name] = changed_array(rng, arrays[name])
        arrays = arrays or {"x": np.zeros(1)}
    stream = io.BytesIO()
    rng.choice([np.savez, np.savez, np.savez, np.savez_compressed])(stream, **arrays)
    return stream.getvalue()


def changed_table(rng: random.Random, content: bytes) -> bytes:
    """Change the bytes of a Parquet file, or write it with columns of other types."""
    if rng.random() < 0.5:
        return changed_bytes(rng, content)
    table = pd.read_parquet(io.BytesIO(content))
    n_rows = len(table)
    odd: list[Callable[[], Any]] = [
        lambda: rng.choice(WORDS),
        lambda: rng.choice([None, 1.0, float("inf"), float("nan"), 1e308]),
        lambda: rng.choice([b"\0", b"1"]),
        lambda: [1, 2],
        lambda: {"a": 1},
        lambda: Decimal(rng.choice(["1.5", "-2"])),
        lambda: datetime(rng.randint(1900, 2100), 1, 1, tzinfo=rng.choice([None, UTC])),
        lambda: rng.choice([True, False, None]),
        lambda: rng.choice([2**63 - 1, -5]),
    ]
    make, name = rng.choice(odd), rng.choice([*table.columns, "new", "é", ""])
    table[name] = pd.Series([make() for _ in range(n_rows)])
    with contextlib.suppress(TypeError):  # lists and mappings have no categories
        if rng.random() < 0.2:
            table[name] = table[name].astype("category")
    stream = io.BytesIO()
    table.iloc[: rng.choice([n_rows, n_rows, 1, 0])].to_parquet(stream, index=False)
    return stream.getvalue()


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
            ("record", self.record.name, self.record.read_bytes(), self.json_or_bytes, self.score),
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
                self.json_or_bytes,
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

    @staticmethod
    def json_or_bytes(rng: random.Random, content: bytes) -> bytes:
        """Change the bytes of a JSON file, or a value in it."""
        if rng.random() < 0.5:
            return changed_bytes(rng, content)
        return json.dumps(changed_json(rng, json.loads(content))).encode()

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
