"""Large files: a streamed pass, reading in pieces, averaged weights.

``python -m scripts.scale --write`` measures what docs/cluster.md quotes. Files are
synthetic, and read from the page cache. Contestants take turns; medians of CPU times
over the rounds.
"""

import argparse
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from threadpoolctl import threadpool_limits

from precbench.data import load_dataset
from precbench.data.preprocess import Scaler
from precbench.ranking.metrics import precision_at_k
from precbench.solvers import SOLVERS
from precbench.tables.streamed_files import open_stream
from scripts.reference import REFERENCE

SCALE = REFERENCE / "scale.csv"
COLUMNS = 10
GROUP_ROWS = 2**20  # of a row group of Parquet, and of a block of npy
BUFFER = 2**26
AVERAGED = ("ijcnn1", "adult", "w8a", "cod-rna-2")
PARTS = (1, 2, 4, 10, 100)
SEEDS = 20
STEPS = (1e-3, 1e-2, 1e-1, 1.0, 10.0)
READING = "reading the file"
Pieces = Iterator[tuple[np.ndarray, np.ndarray]]  # rows and their labels


def write(folder: Path, n: int, columns: int) -> None:
    """Write normal rows of float32 with 1 % positives as npy and as Parquet."""
    import pyarrow as pa
    from pyarrow.parquet import ParquetWriter

    rng = np.random.default_rng(0)
    X = np.lib.format.open_memmap(folder / "X.npy", "w+", np.float32, (n, columns))
    y = np.empty(n, dtype=np.int8)
    features = [(f"x{j}", pa.float32()) for j in range(columns)]
    schema = pa.schema([*features, ("y", pa.int8())])
    with ParquetWriter(folder / "rows.parquet", schema) as file:
        for start in range(0, n, GROUP_ROWS):
            n_rows = min(GROUP_ROWS, n - start)
            block = rng.standard_normal((n_rows, columns), dtype=np.float32)
            noise = rng.standard_normal(n_rows, dtype=np.float32)
            labels = (block[:, 0] + noise > 3.3).astype(np.int8)
            X[start : start + n_rows] = block
            y[start : start + n_rows] = labels
            arrays = dict(zip(schema.names, [*block.T, labels], strict=True))
            file.write_table(pa.table(arrays, schema))
    X.flush()
    np.save(folder / "y.npy", y)


# --- a pass over a file ---


@contextmanager
def memory_watched() -> Iterator[list[float]]:
    """Collect the memory of this process above that at the start, in MB."""
    at_start = own_memory()
    samples = [0.0]
    ended = threading.Event()

    def watch() -> None:
        while not ended.wait(0.02):
            samples.append(own_memory() - at_start)

    watcher = threading.Thread(target=watch)
    watcher.start()
    try:
        yield samples
    finally:
        ended.set()
        watcher.join()


def own_memory() -> float:
    """Return the memory of this process in MB, without pages of files."""
    lines = Path("/proc/self/status").read_text().splitlines()
    [line] = [line for line in lines if line.startswith("RssAnon")]
    kilobytes = int(line.split()[1])
    return kilobytes / 1024


def read_npy(folder: Path) -> None:
    """Read the file into one buffer."""
    buffer = bytearray(BUFFER)
    with (folder / "X.npy").open("rb", buffering=0) as file:
        while file.readinto(buffer):
            pass


def read_parquet(folder: Path) -> None:
    """Have pyarrow read the file, a row group at a time."""
    from pyarrow.parquet import ParquetFile

    with ParquetFile(folder / "rows.parquet") as file:
        for group in range(file.num_row_groups):
            file.read_row_group(group)


def npy_pieces(folder: Path) -> Pieces:
    """Yield blocks of the rows of the npy file, and their labels."""
    X = np.load(folder / "X.npy", mmap_mode="r")
    y = np.load(folder / "y.npy", mmap_mode="r")
    for start in range(0, len(X), GROUP_ROWS):
        rows = slice(start, start + GROUP_ROWS)
        yield X[rows], y[rows]


def parquet_pieces(folder: Path) -> Pieces:
    """Yield the rows of each row group of the Parquet file, and their labels."""
    from pyarrow.parquet import ParquetFile

    with ParquetFile(folder / "rows.parquet") as file:
        for group in range(file.num_row_groups):
            table = file.read_row_group(group)
            *features, labels = [column.to_numpy() for column in table.columns]
            yield np.column_stack(features), labels


class Cost(NamedTuple):
    """What a contestant takes: the median CPU seconds, and the most memory in MB."""

    seconds: float
    memory: float


def streams(n: int, rounds: int) -> list[dict[str, Any]]:
    """Time one pass over the rows of a file against reading it."""
    rows = []
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        write(folder, n, COLUMNS)
        rows += measured(npy_contestants(folder), folder / "X.npy", "npy", n, rounds)
        rows += measured(
            parquet_contestants(folder), folder / "rows.parquet", "Parquet", n, rounds
        )
    return rows


def npy_contestants(folder: Path) -> dict[str, Callable[[], object]]:
    """Return what is done with the npy file; to read it is the yardstick."""
    open_npy = partial(
        open_stream, folder / "X.npy", labels=folder / "y.npy", dtype="float32"
    )
    npy = open_npy().X

    def stream(name: str) -> None:
        solver = SOLVERS[name](epochs=1)
        solver.fit_pieces(COLUMNS, lambda: npy.visits(solver.batch_size))

    return {
        READING: partial(read_npy, folder),
        "`open_stream`, which checks it": open_npy,
        "a pass of `sgd-avg`": partial(stream, "sgd-avg"),
        "a pass of `1pmb`": partial(stream, "1pmb"),
        "`partial_fit` of `bbr`": partial(fit_in_pieces, "bbr", npy_pieces, folder),
    }


def parquet_contestants(folder: Path) -> dict[str, Callable[[], object]]:
    """Return what is done with the Parquet file; to read it is the yardstick."""

    def make_arrays() -> None:
        for _rows in parquet_pieces(folder):
            pass

    contestants: dict[str, Callable[[], object]] = {
        READING: partial(read_parquet, folder),
        "its rows as an array": make_arrays,
    }
    for name in ("sgd-avg", "1pmb", "bbr"):
        contestants[f"`partial_fit` of `{name}`"] = partial(
            fit_in_pieces, name, parquet_pieces, folder
        )
    return contestants


def fit_in_pieces(name: str, pieces: Callable[[Path], Pieces], folder: Path) -> None:
    """Fit a solver to the rows of a file, piece by piece."""
    solver = SOLVERS[name]()
    for X, y in pieces(folder):
        solver.partial_fit(X, y, classes=[0, 1])


def measured(
    contestants: Mapping[str, Callable[[], object]],
    file: Path,
    kind: str,
    n: int,
    rounds: int,
) -> list[dict[str, Any]]:
    """Return a row for each contestant, its time beside that of reading the file."""
    costs = costs_of(contestants, rounds)
    rows = []
    for name, cost in costs.items():
        row = {
            "bench": "stream",
            "rows": n,
            "of": kind,
            "what": name,
            "seconds": cost.seconds,
            "ratio": cost.seconds / costs[READING].seconds,
            "memory_mb": cost.memory,
            "gigabytes": file.stat().st_size / 1e9,
        }
        rows.append(row)
        print(row)
    return rows


def costs_of(
    contestants: Mapping[str, Callable[[], object]], rounds: int
) -> dict[str, Cost]:
    """Measure contestants in turns."""
    times: dict[str, list[float]] = {name: [] for name in contestants}
    memory = dict.fromkeys(contestants, 0.0)
    for _ in range(rounds):
        for name, contestant in contestants.items():
            with memory_watched() as samples:
                start = time.process_time()
                contestant()
                times[name].append(time.process_time() - start)
            memory[name] = max(memory[name], *samples)
    return {
        name: Cost(float(np.median(seconds)), memory[name])
        for name, seconds in times.items()
    }


# --- averaged weights ---


def averaging() -> list[dict[str, Any]]:
    """Compare one sequential pass with the mean weights of passes over parts.

    The step size is the best one on the training rows, for each number of partitions.
    """
    rows = []
    for name in AVERAGED:
        data = load_dataset(name)
        tops: dict[int, list[float]] = {count: [] for count in PARTS}
        for seed in range(SEEDS):
            order = np.random.default_rng(seed).permutation(len(data.y))
            test, train = np.split(order, [int(0.3 * len(order))])
            X = data.X
            y = data.y > 0
            if isinstance(X, np.ndarray):
                scaler = Scaler("standardise").fit(X[train])
                X = scaler.transform_in_place(X.astype(np.float64))
            for count in PARTS:
                w = _best_mean_of_passes(X, y, np.array_split(train, count), train)
                tops[count].append(precision_at_k(y[test], X[test] @ w, 0.25))
        for count, values in tops.items():
            lost = np.array(tops[1]) - values  # against the whole in one part
            row = {
                "bench": "averaging",
                "rows": len(data.y),
                "of": name,
                "what": count,
                "precision": np.mean(values),
                "lost": lost.mean(),
                "lost_error": lost.std(ddof=1) / np.sqrt(SEEDS),
            }
            rows.append(row)
            print(row)
    return rows


def _best_mean_of_passes(
    X: Any, y: Any, parts: list[np.ndarray], train: np.ndarray
) -> np.ndarray:
    """Return the mean weights of the step size that is best on the training rows."""
    weights = [_mean_of_passes(X, y, parts, eta0) for eta0 in STEPS]
    tops = [precision_at_k(y[train], X[train] @ w, 0.25) for w in weights]
    return weights[int(np.argmax(tops))]


def _mean_of_passes(X: Any, y: Any, parts: list[np.ndarray], eta0: float) -> np.ndarray:
    weights = []
    for rows in parts:
        solver = SOLVERS["sgd-avg"](eta0=eta0)
        solver.partial_fit(X[rows], y[rows], classes=[False, True])
        weights.append(solver.coef_)
    return np.mean(weights, axis=0)


def main() -> None:
    """Run the script."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=10**8, help="of the streamed files")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--only", choices=["stream", "averaging"])
    parser.add_argument(
        "--write", action="store_true", help="keep these figures for the docs"
    )
    options = parser.parse_args()
    rows = []
    with threadpool_limits(1):
        if options.only in (None, "stream"):
            rows += streams(options.rows, options.rounds)
        if options.only in (None, "averaging"):
            rows += averaging()
    if options.write:
        table = pd.DataFrame(rows)
        if options.only and SCALE.exists():
            written = pd.read_csv(SCALE, dtype={"what": str})
            others = written[written["bench"] != options.only]
            table = pd.concat([others, table])
        table.map(_rounded).to_csv(SCALE, index=False, lineterminator="\n")


def _rounded(value: Any) -> Any:
    return round(value, 4) if isinstance(value, float) else value


if __name__ == "__main__":
    main()
