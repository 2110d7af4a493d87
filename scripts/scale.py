"""Large files: a streamed pass, reading in pieces, averaged weights.

``python -m scripts.scale --write`` measures what docs/cluster.md quotes. Files are
synthetic, and read from the page cache. Contestants take turns; medians of CPU times
over the rounds.
"""

import argparse
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import Any

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
COLUMNS, GROUP_ROWS, BUFFER = 10, 2**20, 2**26
AVERAGED, PARTS, SEEDS = ("ijcnn1", "adult", "w8a", "cod-rna-2"), (1, 2, 4, 10, 100), 20
STEPS = (1e-3, 1e-2, 1e-1, 1.0, 10.0)


def write(folder: Path, n: int, columns: int) -> None:
    """Write normal rows of float32 with 1 % positives as npy and as Parquet."""
    import pyarrow as pa
    from pyarrow.parquet import ParquetWriter

    rng = np.random.default_rng(0)
    X = np.lib.format.open_memmap(folder / "X.npy", "w+", np.float32, (n, columns))
    y = np.empty(n, dtype=np.int8)
    names = [f"x{j}" for j in range(columns)]
    schema = pa.schema([*((name, pa.float32()) for name in names), ("y", pa.int8())])
    with ExitStack() as stack:
        table = stack.enter_context(ParquetWriter(folder / "rows.parquet", schema))
        for start in range(0, n, GROUP_ROWS):
            block = rng.standard_normal(
                (min(GROUP_ROWS, n - start), columns), dtype=np.float32
            )
            labels = (
                block[:, 0] + rng.standard_normal(len(block), dtype=np.float32) > 3.3
            )
            X[start : start + len(block)], y[start : start + len(block)] = block, labels
            values = [*block.T, labels.astype(np.int8)]
            table.write_table(
                pa.table(dict(zip(schema.names, values, strict=True)), schema)
            )
    X.flush()
    np.save(folder / "y.npy", y)


# --- a pass over a file ---


@contextmanager
def memory_watched() -> Iterator[list[float]]:
    """Collect the MB of this process beside pages of files, above the start."""

    def now() -> float:
        lines = Path("/proc/self/status").read_text().splitlines()
        [line] = [line for line in lines if line.startswith("RssAnon")]
        return int(line.split()[1]) / 1024

    start, seen, ended = now(), [0.0], threading.Event()

    def watch() -> None:
        while not ended.wait(0.02):
            seen.append(now() - start)

    watcher = threading.Thread(target=watch)
    watcher.start()
    try:
        yield seen
    finally:
        ended.set()
        watcher.join()


def read_npy(folder: Path) -> None:
    """Read the file into one buffer."""
    room = bytearray(BUFFER)
    with (folder / "X.npy").open("rb", buffering=0) as file:
        while file.readinto(room):
            pass


def read_parquet(folder: Path) -> None:
    """Have pyarrow read the file, a row group at a time."""
    from pyarrow.parquet import ParquetFile

    with ParquetFile(folder / "rows.parquet") as file:
        for group in range(file.num_row_groups):
            file.read_row_group(group)


def npy_pieces(folder: Path) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Yield blocks of the rows of the npy file, and their labels."""
    X, y = (np.load(folder / f"{name}.npy", mmap_mode="r") for name in "Xy")
    for start in range(0, len(X), GROUP_ROWS):
        yield X[start : start + GROUP_ROWS], y[start : start + GROUP_ROWS]


def parquet_pieces(folder: Path) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Yield the rows of each row group of the Parquet file, and their labels."""
    from pyarrow.parquet import ParquetFile

    with ParquetFile(folder / "rows.parquet") as file:
        for group in range(file.num_row_groups):
            columns = [
                column.to_numpy() for column in file.read_row_group(group).columns
            ]
            yield np.column_stack(columns[:-1]), columns[-1]


def streams(n: int, rounds: int) -> list[dict[str, Any]]:
    """Time one pass over the rows of a file against reading it."""
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        write(folder, n, COLUMNS)
        npy = open_stream(folder / "X.npy", labels=folder / "y.npy", dtype="float32").X
        pieces = {"npy": npy_pieces, "Parquet": parquet_pieces}

        def streamed(name: str) -> None:
            solver = SOLVERS[name](epochs=1)
            solver.fit_pieces(COLUMNS, lambda: npy.visits(solver.batch_size))

        def in_pieces(kind: str, name: str) -> None:
            solver = SOLVERS[name]()
            for X, y in pieces[kind](folder):
                solver.partial_fit(X, y, classes=[0, 1])

        def rows_of_parquet() -> None:
            for _ in parquet_pieces(folder):
                pass

        cases: dict[str, dict[str, Callable[[], None]]] = {
            "npy": {
                "reading the file": partial(read_npy, folder),
                "`open_stream`, which checks it": partial(
                    open_stream,
                    folder / "X.npy",
                    labels=folder / "y.npy",
                    dtype="float32",
                ),
                "a pass of `sgd-avg`": partial(streamed, "sgd-avg"),
                "a pass of `1pmb`": partial(streamed, "1pmb"),
                "`partial_fit` of `bbr`": partial(in_pieces, "npy", "bbr"),
            },
            "Parquet": {
                "reading the file": partial(read_parquet, folder),
                "its rows as an array": rows_of_parquet,
                **{
                    f"`partial_fit` of `{name}`": partial(in_pieces, "Parquet", name)
                    for name in ("sgd-avg", "1pmb", "bbr")
                },
            },
        }
        sizes = {"npy": folder / "X.npy", "Parquet": folder / "rows.parquet"}
        found = []
        for kind, contestants in cases.items():
            times: dict[str, list[float]] = {name: [] for name in contestants}
            memory = dict.fromkeys(contestants, 0.0)
            for _ in range(rounds):
                for name, contestant in contestants.items():
                    with memory_watched() as seen:
                        start = time.process_time()
                        contestant()
                        times[name].append(time.process_time() - start)
                    memory[name] = max(memory[name], *seen)
            base = float(np.median(times["reading the file"]))
            for name, seconds in times.items():
                median = float(np.median(seconds))
                row = {"bench": "stream", "rows": n, "of": kind, "what": name}
                row |= {
                    "seconds": median,
                    "ratio": median / base,
                    "memory_mb": memory[name],
                }
                found.append(row | {"gigabytes": sizes[kind].stat().st_size / 1e9})
                print(row)
    return found


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
            X, y = data.X, data.y > 0
            if isinstance(X, np.ndarray):
                scaler = Scaler("standardise").fit(X[train])
                X = scaler.transform_in_place(X.astype(np.float64))
            for count in PARTS:
                w = _best_mean_of_passes(X, y, np.array_split(train, count), train)
                tops[count].append(precision_at_k(y[test], X[test] @ w, 0.25))
        for count, values in tops.items():
            lost = np.array(tops[1]) - values
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
    fitted = [
        SOLVERS["sgd-avg"](eta0=eta0)
        .partial_fit(X[rows], y[rows], classes=[False, True])
        .coef_
        for rows in parts
    ]
    return np.mean(fitted, axis=0)


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
    measures = {
        "stream": lambda: streams(options.rows, options.rounds),
        "averaging": averaging,
    }
    with threadpool_limits(1):
        chosen = [options.only] if options.only else list(measures)
        rows = [row for name in chosen for row in measures[name]()]
    if options.write:
        table = pd.DataFrame(rows)
        if options.only and SCALE.exists():
            before = pd.read_csv(SCALE, dtype={"what": str})
            table = pd.concat([before[before["bench"] != options.only], table])
        rounded = table.map(
            lambda value: round(value, 4) if isinstance(value, float) else value
        )
        rounded.to_csv(SCALE, index=False, lineterminator="\n")


if __name__ == "__main__":
    main()
