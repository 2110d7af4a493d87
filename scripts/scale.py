"""Large files and partitions: a streamed pass, whole-set methods on workers, averaged weights.

``python -m scripts.scale --write`` measures what docs/cluster.md shows. Files are synthetic, and
read from the page cache. Contestants take turns; medians over the rounds. Times of streams are
those of the processor, times on workers those on the wall.
"""

import argparse
import tempfile
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from distributed import LocalCluster
from sklearn.exceptions import ConvergenceWarning
from threadpoolctl import threadpool_limits

from precbench.data import load_dataset, open_stream
from precbench.data.parts import PART_BYTES, find_parts
from precbench.data.preprocess import Scaler
from precbench.metrics import precision_at_k
from precbench.runner.cluster import Cluster
from precbench.solvers import SOLVERS
from precbench.solvers.bbr import ClassMoments
from precbench.solvers.rows import PartedRows, as_rows
from precbench.survey.tables import laid_out
from scripts.reference import REFERENCE

SCALE = REFERENCE / "scale.csv"
COLUMNS, GROUP_ROWS, BUFFER = 10, 2**20, 2**26
WHOLE: dict[str, dict[str, Any]] = {
    "pnorm-push": {"max_iter": 3},
    "toppush": {"max_iter": 3},
    "cutting-plane": {"max_iter": 3},
    "bbr": {},
}
WIRE, TASK = 1.25e9, 0.003  # bytes a second of 10 Gbit/s, and seconds of Dask for a partition
LONG = 10_000  # no vector of weights is
LARGE, WORKERS = 10**9, (1, 2, 10, 100)  # rows and workers, on paper
AVERAGED, PARTS, SEEDS = ("ijcnn1", "adult", "w8a", "cod-rna-2"), (1, 2, 4, 10, 100), 20
STEPS = (1e-3, 1e-2, 1e-1, 1.0, 10.0)


def write(folder: Path, n: int, columns: int, parquet: bool = True) -> None:
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
            block = rng.standard_normal((min(GROUP_ROWS, n - start), columns), dtype=np.float32)
            labels = block[:, 0] + rng.standard_normal(len(block), dtype=np.float32) > 3.3
            X[start : start + len(block)], y[start : start + len(block)] = block, labels
            if parquet:
                values = [*block.T, labels.astype(np.int8)]
                table.write_table(pa.table(dict(zip(schema.names, values, strict=True)), schema))
    X.flush()
    np.save(folder / "y.npy", y)


# --- a pass over a file ---


@contextmanager
def memory_watched() -> Iterator[list[float]]:
    """Collect the MB of this process that are no pages of a file, above those at the start."""

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


def streams(n: int, rounds: int) -> list[dict[str, Any]]:
    """Time one pass over the rows of a file against reading it."""
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        write(folder, n, COLUMNS)
        npy = open_stream(folder / "X.npy", labels=folder / "y.npy", dtype="float32").X
        parts = {
            "npy": find_parts(folder / "X.npy", labels=folder / "y.npy"),
            "Parquet": find_parts(folder / "rows.parquet", label="y"),
        }

        def streamed(name: str) -> None:
            solver = SOLVERS[name](epochs=1)
            solver.fit_pieces(COLUMNS, lambda: npy.visits(solver.batch_size))

        def in_pieces(kind: str, name: str) -> None:
            solver = SOLVERS[name]()
            for part in parts[kind]:
                solver.partial_fit(*part.read(), classes=[0, 1])

        def rows_of_parquet() -> None:
            for part in parts["Parquet"]:
                part.read()

        cases: dict[str, dict[str, Callable[[], None]]] = {
            "npy": {
                "reading the file": partial(read_npy, folder),
                "`open_stream`, which checks it": partial(
                    open_stream, folder / "X.npy", labels=folder / "y.npy", dtype="float32"
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
                row |= {"seconds": median, "ratio": median / base, "memory_mb": memory[name]}
                found.append(row | {"gigabytes": sizes[kind].stat().st_size / 1e9})
                print(row)
    return found


# --- whole-set methods on workers ---


class Alone(PartedRows):
    """Rows in memory as one partition, and the seconds of the sums over them."""

    def __init__(self, X: np.ndarray):
        self.rows, self.shape, self.seconds = as_rows(X), X.shape, 0.0

    def each(self, function: Any, *by_row: Any, shared: Any = ()) -> list[Any]:  # noqa: D102
        start = time.perf_counter()
        result = function(self.rows, *by_row, *shared)
        self.seconds += time.perf_counter() - start
        return [result]


class Counted:
    """Bytes of the arrays that go to workers and come back: of each row, and of each partition."""

    def __init__(self, cluster: Cluster):
        self._call = cluster.call
        cluster.call = self  # type: ignore[method-assign,assignment]
        self.reset()

    def reset(self) -> None:
        """Begin anew."""
        self.by_row = self.by_part = self.calls = 0

    def __call__(self, function: Any, held: Any, arguments: Any) -> list[Any]:  # noqa: D102
        results = self._call(function, held, arguments)
        for array in _arrays([arguments, results]):
            if array.ndim == 1 and len(array) > LONG:
                self.by_row += array.nbytes
            else:
                self.by_part += array.nbytes
        self.calls += 1
        return results


def _arrays(value: Any) -> Iterator[np.ndarray]:
    if isinstance(value, np.ndarray):
        yield value
    elif isinstance(value, tuple | list):
        for item in value:
            yield from _arrays(item)
    elif isinstance(value, ClassMoments):
        yield from _arrays([*vars(value).values()])


def timed(name: str, rows: Any, y: Any) -> tuple[float, Any]:
    """Return the seconds of an iteration on the wall, and the solver."""
    marks = []
    solver = SOLVERS[name](**WHOLE[name])
    solver.fit(rows, y, trace=lambda _: marks.append(time.perf_counter()))
    return (marks[-1] - marks[0]) / solver.n_iter_, solver


def workers(n: int, columns: int, rounds: int) -> list[dict[str, Any]]:
    """Time iterations in memory, by threads of one worker, and by workers of their own."""
    found = []
    with tempfile.TemporaryDirectory() as place, ExitStack() as stack:
        folder = Path(place)
        write(folder, n, columns, parquet=False)
        X, y = np.load(folder / "X.npy"), np.load(folder / "y.npy")
        parts = find_parts(folder / "X.npy", labels=folder / "y.npy")
        sources: dict[str, Any] = {"in memory": (X, y)}
        counters = {}
        for where in ("1 thread", "2 threads", "1 process", "2 processes"):
            count = int(where[0])
            address = f"local:{count}"
            if "process" in where:
                local = stack.enter_context(
                    LocalCluster(n_workers=count, threads_per_worker=1, dashboard_address=":0")
                )
                address = local.scheduler_address
            cluster = stack.enter_context(Cluster(address, trials=False))
            rows = cluster.rows(parts)
            sources[where], counters[where] = (rows, rows.y), Counted(cluster)
        for name in WHOLE:
            times: dict[str, list[float]] = {where: [] for where in sources}
            moved: dict[str, float] = {}
            for _ in range(rounds):
                for where, source in sources.items():
                    if counter := counters.get(where):
                        counter.reset()
                    seconds, solver = timed(name, *source)
                    times[where].append(seconds)
                    if counter:
                        moved = {
                            "bytes_a_row": counter.by_row / solver.n_iter_ / n,
                            "bytes_a_part": counter.by_part / solver.n_iter_ / len(parts),
                            "calls": counter.calls / solver.n_iter_,
                        }
            rows_alone = Alone(X)
            seconds, solver = timed(name, rows_alone, y)
            moved["share_of_sums"] = rows_alone.seconds / (seconds * solver.n_iter_)
            base = float(np.median(times["in memory"]))
            for where, seconds_ in times.items():
                median = float(np.median(seconds_))
                of = f"`{name}`, {columns} columns"
                row = {"bench": "workers", "rows": n, "of": of, "what": where}
                row |= {"seconds": median, "ratio": median / base}
                found.append(row | moved | {"row_bytes": 4 * columns})
                print(found[-1])
    return found


# --- averaged weights ---


def averaging() -> list[dict[str, Any]]:
    """Compare one sequential pass with the mean of the weights of passes over partitions.

    The step size is the best one on the training rows, for each number of partitions.
    """
    found = []
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
                best = max(
                    (_mean_of_passes(X, y, np.array_split(train, count), eta0) for eta0 in STEPS),
                    key=lambda w: precision_at_k(y[train], X[train] @ w, 0.25),
                )
                tops[count].append(precision_at_k(y[test], X[test] @ best, 0.25))
        for count, values in tops.items():
            lost = np.array(tops[1]) - values
            row = {"bench": "averaging", "rows": len(data.y), "of": name, "what": count}
            row |= {"precision": np.mean(values), "lost": lost.mean()}
            found.append(row | {"lost_error": lost.std(ddof=1) / np.sqrt(SEEDS)})
            print(found[-1])
    return found


def _mean_of_passes(X: Any, y: Any, parts: list[np.ndarray], eta0: float) -> np.ndarray:
    fitted = [
        SOLVERS["sgd-avg"](eta0=eta0).partial_fit(X[rows], y[rows], classes=[False, True]).coef_
        for rows in parts
    ]
    return np.mean(fitted, axis=0)


# --- the page ---


def scale_table(table: pd.DataFrame, part: str) -> str:
    """Lay out one part of the figures."""
    lays_out = {"stream": _streams, "workers": _workers, "paper": _paper, "averaging": _averaging}
    return lays_out[part](table)


def _streams(table: pd.DataFrame) -> str:
    rows = [
        [
            f"{row.of}, {row.gigabytes:.1f} GB",
            row.what,
            f"{row.seconds:.1f}",
            f"{row.ratio:.2f}",
            f"{row.memory_mb:.0f}",
        ]
        for row in table[table["bench"] == "stream"].itertuples()
    ]
    header = ["file", "what", "CPU seconds", "to reading the file", "MB of memory"]
    return laid_out(header, rows, numbers=3)


def _workers(table: pd.DataFrame) -> str:
    here = table[table["bench"] == "workers"]
    wide = here.pivot(index="of", columns="what", values="ratio")
    rows = []
    for name in here["of"].unique():
        first = here[here["of"] == name].iloc[0]
        sums, moved = f"{min(1, first['share_of_sums']):.0%}", f"{first['bytes_a_row']:.0f}"
        cells = [f"{wide.loc[name, where]:.2f}" for where in here["what"].unique()[1:]]
        rows.append([name, f"{first['seconds']:.2f}", *cells, sums, moved])
    header = ["an iteration of", "seconds in memory", *here["what"].unique()[1:]]
    return laid_out([*header, "sums", "bytes a row"], rows, numbers=7)


def _paper(table: pd.DataFrame) -> str:
    here = table[table["bench"] == "workers"]
    rows = []
    for name in here["of"].unique():
        of = here[here["of"] == name]
        alone = of.iloc[0]["seconds"] / of.iloc[0]["rows"] * LARGE
        last, parts = of.iloc[-1], LARGE * of.iloc[-1]["row_bytes"] / PART_BYTES
        wire = (last["bytes_a_row"] * LARGE + last["bytes_a_part"] * parts) / WIRE
        dask = TASK * last["calls"] * parts
        sums = alone * min(1.0, last["share_of_sums"])
        spent = [alone - sums + sums / count + wire + dask for count in WORKERS]
        rows.append([name, f"{alone:.0f}", *(f"{seconds:.0f}" for seconds in spent)])
    header = [
        "an iteration of",
        "in memory",
        *(f"{count} worker{'s' * (count > 1)}" for count in WORKERS),
    ]
    return laid_out(header, rows, numbers=1 + len(WORKERS))


def _averaging(table: pd.DataFrame) -> str:
    here = table[table["bench"] == "averaging"]
    rows = []
    for name in here["of"].unique():
        of = here[here["of"] == name]
        others = of[of["what"] != of["what"].iloc[0]].itertuples()
        cells = [f"{row.lost:+.3f} ± {row.lost_error:.3f}" for row in others]
        first = of.iloc[0]
        rows.append([f"{name}, {first['rows']:,} rows", f"{first['precision']:.3f}", *cells])
    header = ["data", "one pass", *(f"{count} parts" for count in PARTS[1:])]
    return laid_out(header, rows, numbers=len(PARTS))


def main() -> None:
    """Run the script."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=10**8, help="of the streamed files")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--only", choices=["stream", "workers", "averaging"])
    parser.add_argument("--write", action="store_true", help="keep these figures for the docs")
    options = parser.parse_args()
    warnings.simplefilter("ignore", ConvergenceWarning)
    measures = {
        "stream": lambda: streams(options.rows, options.rounds),
        "workers": lambda: [
            row
            for columns in (COLUMNS, 10 * COLUMNS)
            for row in workers(options.rows // columns, columns, options.rounds)
        ],
        "averaging": averaging,
    }
    with threadpool_limits(1):
        chosen = [options.only] if options.only else list(measures)
        found = [row for name in chosen for row in measures[name]()]
    if options.write:
        table = pd.DataFrame(found)
        if options.only and SCALE.exists():
            before = pd.read_csv(SCALE, dtype={"what": str})
            table = pd.concat([before[before["bench"] != options.only], table])
        rounded = table.map(lambda value: round(value, 4) if isinstance(value, float) else value)
        rounded.to_csv(SCALE, index=False, lineterminator="\n")


if __name__ == "__main__":
    main()
