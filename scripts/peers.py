"""Peers side by side: from a text file to weights, and to precision at the top.

Run it through ``make peers``. All read the same generated (synthetic) rows, Vowpal
Wabbit in its own format. Each contestant has a process of its own, all but one on one
core with one thread; they take turns, and the medians over the rounds count. Test rows
are scored when all passes are done, so that they cost neither time nor memory. A peer
that is not installed is skipped.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
import tomllib
import warnings
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from importlib import import_module, metadata
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from scipy import sparse
from sklearn.datasets import dump_svmlight_file, load_svmlight_file
from sklearn.linear_model import LogisticRegression, SGDClassifier
from sklearn.utils import check_array

from precbench.data import read_svmlight
from precbench.ranking.metrics import precision_at_k
from precbench.report.sheet import save_figure
from precbench.report.style import log_scale, solver_styles
from precbench.solvers import SOLVERS
from precbench.tables.streamed_files import open_stream
from scripts.bench import Case, labelled, ratio_figure, reason_of, report, write_figures
from scripts.reference import REFERENCE, ROOT
from scripts.survey.tables import laid_out

PEERS = REFERENCE / "peers.csv"
TEST_ROWS = 50_000
FIXED = 100  # the k of the precision at a fixed k
VW = "Vowpal Wabbit, one pass"
OURS = "precbench, one pass"
NEAR = 0.99  # of the best precision over the passes
Scorer = Callable[[Any], np.ndarray]
Steps = Iterator[Scorer | None]
"""What a contestant yields: None once the rows are read, a scorer after each pass."""


class Size(NamedTuple):
    """A shape of generated rows.

    Attributes
    ----------
    rows, columns : int
        Of the training rows.
    drawn : int
        Columns drawn for a row, of which some fall together.
    share : float
        Of the positives.
    words : bool
        Whether the values are weights of words, as in rcv1; else ones.
    """

    rows: int
    columns: int
    drawn: int
    share: float
    words: bool = True


SIZES = {
    "48,842 x 123": Size(48_842, 123, 16, 0.2393, words=False),
    "60,000 x 47,236": Size(60_000, 47_236, 88, 0.05),
    "677,399 x 47,236": Size(677_399, 47_236, 88, 0.05),
}
FULL = "677,399 x 47,236"
MOST_ROUNDS_FULL = 3


class Package(NamedTuple):
    """A distribution, and a module of it that is loaded before the clock starts."""

    name: str
    module: str


class Peer(NamedTuple):
    """A contestant.

    Attributes
    ----------
    steps : callable
        Of a folder, the number of columns and the number of passes.
    package : Package
    settings : str
        As the page says them.
    passes : int
    """

    steps: Callable[[Path, int, int], Steps]
    package: Package
    settings: str
    passes: int = 1


def rows_and_labels(
    size: Size, test_rows: int, seed: int = 0
) -> tuple[sparse.csr_matrix, np.ndarray]:
    """Generate rows with a linear signal and noise.

    Words are drawn by Zipf's law and weighed as those of rcv1 are (Lewis et al., JMLR
    5, 2004): by 1 + the log of their count in the row, times the log of the rows to
    those that have the word; then each row is divided by its length. Values have 15
    decimals, about as many as there.
    """
    rng = np.random.default_rng(seed)
    n = size.rows + test_rows
    drawn = rng.random((n, size.drawn))
    if size.words:
        # Zipf's law: of word 1 to j there are as many as log j to log columns.
        places = (size.columns + 1) ** drawn - 1
    else:
        places = size.columns * drawn**2
    columns = places.astype(np.int32).ravel()
    starts = np.arange(0, columns.size + 1, size.drawn, dtype=np.int32)
    X = sparse.csr_matrix(
        (np.ones(len(columns)), columns, starts), shape=(n, size.columns)
    )
    X.sum_duplicates()
    if size.words:
        X.data = _weights(X)
    else:
        X.data[:] = 1.0
    return X, labelled(X, size.share, rng)


def _weights(counts: sparse.csr_matrix) -> np.ndarray:
    """Return the weight of each count of a word in a row."""
    n_rows, n_words = counts.shape
    rows_with = np.bincount(counts.indices, minlength=n_words)
    weights = (1 + np.log(counts.data)) * np.log(n_rows / rows_with[counts.indices])
    lengths = np.sqrt(np.add.reduceat(weights**2, counts.indptr[:-1]))
    return (weights / np.repeat(lengths, np.diff(counts.indptr))).round(15)


def write(X: Any, y: np.ndarray, folder: Path) -> None:
    """Write training rows as svmlight, and as text for Vowpal Wabbit."""
    text = folder / "rows.svm"
    dump_svmlight_file(X, y, str(text), zero_based=False)
    with text.open() as lines, (folder / "rows.vw").open("w") as file:
        file.writelines(line.replace(" ", " | ", 1) for line in lines)


def write_all(size: Size, folder: Path, test_rows: int) -> None:
    """Write generated rows, the last of them for the test."""
    X, y = rows_and_labels(size, test_rows)
    write(X[: size.rows], y[: size.rows], folder)
    sparse.save_npz(folder / "test.npz", X[size.rows :])
    np.save(folder / "test.npy", y[size.rows :])


def linear(w: np.ndarray) -> Scorer:
    """Return what scores rows by a copy of the weights."""
    weights = np.array(w).ravel()
    return lambda X: X @ weights


# --- contestants ---


def by_sklearn(folder: Path, columns: int) -> tuple[sparse.csr_matrix, np.ndarray]:
    """Read the rows, with the indices of 32 bits that its solvers take."""
    X, y = load_svmlight_file(str(folder / "rows.svm"), n_features=columns)
    X.indices = X.indices.astype(np.int32)
    X.indptr = X.indptr.astype(np.int32)
    return X, y


def sgd_at_k(folder: Path, columns: int, passes: int, **settings: Any) -> Steps:
    """Read the rows, and go over them."""
    X, y = read_svmlight(folder / "rows.svm", columns)
    yield None
    solver = SOLVERS["sgd-avg"](random_state=0, **settings)
    for _ in range(passes):
        yield linear(solver.partial_fit(X, y).coef_)


def streamed(folder: Path, columns: int, passes: int) -> Steps:
    """Check the file, and read it again while learning."""
    rows = open_stream(folder / "rows.svm", n_features=columns).X
    yield None
    solver = SOLVERS["sgd-avg"](random_state=0, epochs=passes)
    solver.fit_pieces(columns, lambda: rows.visits(solver.batch_size))
    yield linear(solver.coef_)


def vowpal_wabbit(
    folder: Path, columns: int, passes: int, *, settings: str = ""
) -> Steps:
    """Learn while the file is read.

    Of several passes the first writes a cache of the rows and a model; each later one
    reads the cache, and continues from the model of the last one.
    """
    from vowpalwabbit import Workspace

    yield None
    model = folder / "model.vw"
    for number in range(passes):
        options = f"-d {folder / 'rows.vw'} --quiet"
        if passes > 1:
            options += f" --cache_file {folder / 'rows.cache'} -f {model}"
        if number > 0:
            options += f" -i {model}"
        else:
            if passes > 1:
                options += " -k"
            options += f" -b 18 --loss_function logistic {settings}"
        learner = Workspace(options)
        w = np.array([learner.get_weight(column + 1) for column in range(columns)])
        learner.finish()
        yield linear(w)


def sklearn_sgd(folder: Path, columns: int, passes: int) -> Steps:
    """Go over the rows one by one."""
    X, y = by_sklearn(folder, columns)
    yield None
    solver = SGDClassifier(loss="log_loss", random_state=0)
    for _ in range(passes):
        yield linear(solver.partial_fit(X, y, classes=[-1, 1]).coef_)


def logistic_regression(folder: Path, columns: int, _passes: int) -> Steps:
    """Go on to the tolerance."""
    X, y = by_sklearn(folder, columns)
    yield None
    yield linear(LogisticRegression().fit(X, y).coef_)


def liblinear(folder: Path, columns: int, _passes: int) -> Steps:
    """Go on to the tolerance, from the rows as scikit-learn reads them."""
    from liblinear import liblinearutil

    X, y = by_sklearn(folder, columns)
    yield None
    model = liblinearutil.train(y, X, "-q")
    w, _bias = model.get_decfun()  # of the label that it calls the first
    yield linear(np.array(w) * model.get_labels()[0])


PRECBENCH = Package("precbench", "precbench.solvers.minibatch.estimator")
VOWPAL_WABBIT = Package("vowpalwabbit", "vowpalwabbit")
SCIKIT_LEARN = Package("scikit-learn", "sklearn")
LIBLINEAR = Package("liblinear-official", "liblinear")
CONTESTANTS = {
    OURS: Peer(sgd_at_k, PRECBENCH, "`sgd-avg`, defaults, stored order"),
    "precbench, one pass, k = 1": Peer(
        partial(sgd_at_k, k=1.0, keep="last"),
        PRECBENCH,
        '`k=1.0`, `keep="last"`, else the same',
    ),
    "precbench, five passes": Peer(sgd_at_k, PRECBENCH, "as one pass", passes=5),
    "precbench, streamed": Peer(
        streamed,
        PRECBENCH,
        "`open_stream`, which reads all to check it; one pass",
    ),
    VW: Peer(
        vowpal_wabbit,
        VOWPAL_WABBIT,
        "`--loss_function logistic -b 18`, `-d` file",
    ),
    "Vowpal Wabbit, five passes": Peer(
        vowpal_wabbit,
        VOWPAL_WABBIT,
        "the same, from a cache, each from the last model (`-i`)",
        passes=5,
    ),
    "SGDClassifier": Peer(
        sklearn_sgd,
        SCIKIT_LEARN,
        "`log_loss`, five passes in random order",
        passes=5,
    ),
    "LogisticRegression": Peer(logistic_regression, SCIKIT_LEARN, "defaults (L-BFGS)"),
    "LIBLINEAR": Peer(
        liblinear, LIBLINEAR, "defaults (`-s 1`); rows read by scikit-learn"
    ),
}


# What takes most of the time, or makes most of the distance, where a target may be
# missed, by part of the figure's name.
WHY = {
    f"{OURS} to {VW}": "reading, then the pass with the check of its input",
    f"{FULL}, {OURS} to {VW}": (
        "the system takes as long to give memory for the matrix as the text takes to be"
        " parsed"
    ),
    "LogisticRegression to chance": (
        "its tolerance, of a mean gradient, is met after a few steps"
    ),
    f"{OURS} to {VW}, prec@0.25": (
        "a step learns from the first quarter of a batch's positives and as many"
        " negatives, and the mean of w counts the first steps most"
    ),
}


# --- installing ---


def required() -> list[str]:
    """Return what the extra `peers` of the package asks for."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    return project["optional-dependencies"]["peers"]


def install() -> None:
    """Install each peer on its own, so that one that cannot be had costs no other."""
    for requirement in required():
        quiet = ["--quiet", "--disable-pip-version-check"]
        command = [sys.executable, "-m", "pip", "install", *quiet, requirement]
        exit_code = subprocess.run(command).returncode
        if exit_code != 0:  # pip has said why
            print(f"{requirement}: could not be installed, see above", flush=True)


# --- measuring ---


class Moment(NamedTuple):
    """The time of the processor, and that on the wall, in seconds."""

    cpu: float
    wall: float

    @classmethod
    def now(cls) -> "Moment":
        """Read both clocks."""
        return cls(time.process_time(), time.perf_counter())

    def since(self, start: "Moment") -> "Moment":
        """Return the seconds since another moment."""
        return Moment(self.cpu - start.cpu, self.wall - start.wall)


def peak_memory() -> float:
    """Return the most memory that this process has had, in MB.

    That of `getrusage` begins with what the process had that started this one.
    """
    status = Path("/proc/self/status")
    if not status.exists():
        return np.nan
    [line] = [line for line in status.open() if line.startswith("VmHWM:")]
    kilobytes = int(line.split()[1])
    return kilobytes / 1024


def measured(name: str, folder: Path, columns: int) -> dict[str, Any]:
    """Let a contestant read and learn in this process; it must be a new one."""
    peer = CONTESTANTS[name]
    import_module(peer.package.module)
    # The first check of an array searches what is installed for plug-ins: an import.
    check_array(np.zeros((1, 1)))
    warnings.simplefilter("ignore")
    if hasattr(os, "sched_setaffinity"):
        last_core = max(os.sched_getaffinity(0))
        os.sched_setaffinity(0, [last_core])
    start = Moment.now()
    steps = peer.steps(folder, columns, peer.passes)
    next(steps)  # the rows are read
    read = Moment.now().since(start)
    scorers = []
    passes = []  # from the start to the end of each
    for scorer in steps:
        passes.append(Moment.now().since(start))
        scorers.append(scorer)
    memory = peak_memory()
    X = sparse.load_npz(folder / "test.npz")
    y = np.load(folder / "test.npy")
    scores = [scorer(X) for scorer in scorers]
    precisions = [precision_at_k(y, of_pass, 0.25) for of_pass in scores]
    near_best = np.nan
    if peer.passes > 1:
        is_near = np.array(precisions) >= NEAR * max(precisions)
        near_best = passes[int(is_near.argmax())].cpu  # of the first that is
    total = passes[-1]
    return {
        "version": metadata.version(peer.package.name),
        "read": read.cpu,
        "train": total.cpu - read.cpu,
        "total": total.cpu,
        "read_wall": read.wall,
        "train_wall": total.wall - read.wall,
        "total_wall": total.wall,
        "near_best": near_best,
        "memory_mb": memory,
        "prec_quarter": precisions[-1],
        "prec_fixed": precision_at_k(y, scores[-1], FIXED),
    }


def run(name: str, folder: Path, columns: int) -> dict[str, Any]:
    """Measure a contestant in a process of its own, in which no library has threads."""
    one_thread = {
        "OPENBLAS_NUM_THREADS": "1",
        "OMP_NUM_THREADS": "1",
        "MKL_NUM_THREADS": "1",
    }
    arguments = ["--one", name, str(folder), str(columns)]
    done = subprocess.run(
        [sys.executable, "-m", "scripts.peers", *arguments],
        check=True,
        stdout=subprocess.PIPE,
        env=os.environ | one_thread,
    )
    return json.loads(done.stdout.splitlines()[-1])


def judged(
    row: dict[str, Any], share: float, rows: list[dict[str, Any]]
) -> list[dict[str, Any]]:
    """Hold a contestant's figures to their targets, as ratios like those of the bench.

    `rows` are those of all contestants, and `share` is that of the positives. Scores of
    the wrong sign, as of labels the other way round, rank worse than chance.
    """
    figures = []

    def judge(to: str, ratio: float, target: float, least: bool) -> None:
        figures.append(
            ratio_figure(row["bench"], row["of"], to, ratio, target=target, least=least)
        )

    judge("chance, prec@0.25", row["prec_quarter"] / share, target=1.5, least=True)
    if row["of"] == OURS:
        for rival in rows:
            if rival["of"] == VW:
                times = row["total"] / rival["total"]
                precisions = row["prec_quarter"] / rival["prec_quarter"]
                judge(VW, times, target=0.5, least=False)
                judge(f"{VW}, prec@0.25", precisions, target=1.0, least=True)
    return figures


class Contest(NamedTuple):
    """A row of figures for each contestant, and the ratios with targets."""

    rows: list[dict[str, Any]]
    ratios: list[dict[str, Any]]


def contest(
    title: str,
    size: Size,
    rounds: int,
    test_rows: int = TEST_ROWS,
    contestants: Mapping[str, Peer] = CONTESTANTS,
) -> Contest:
    """Measure each installed contestant, in turns."""
    records: dict[str, list[dict[str, Any]]] = {}

    def measure(name: str, folder: Path) -> float:
        record = run(name, folder, size.columns)
        records.setdefault(name, []).append(record)
        return record["total"]

    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        write_all(size, folder, test_rows)
        taking_part = {}
        for name, peer in contestants.items():
            try:
                import_module(peer.package.module)
            except (ImportError, OSError) as error:
                print(
                    f"{title}, {name}: skipped, {peer.package.name} is not installed:"
                    f" {error}"
                )
                continue
            taking_part[name] = partial(measure, name, folder)
        Case(title, taking_part).measure(rounds)
    rows = []
    for name, runs in records.items():
        medians = pd.DataFrame(runs).drop(columns="version").median().to_dict()
        version = runs[0]["version"]
        rows.append({"bench": title, "of": name, "version": version, **medians})
    ratios = []
    for row in rows:
        of_row = judged(row, size.share, rows)
        ratios += of_row
        row["missed"] = "; ".join(ratio["to"] for ratio in of_row if not ratio["met"])
    return Contest(rows, ratios)


# --- the page ---


def peers_table(table: pd.DataFrame) -> str:
    """Lay out CPU seconds and precision at each size, and the memory at the largest."""
    titles = list(table["bench"].unique())
    wide = table.pivot(index="of", columns="bench")
    header = ["contestant"]
    for title in titles:
        header += [f"{title}: s", f"{title}: prec@0.25"]
    header.append("MB there")
    lines = []
    for name in table["of"].unique():
        row = wide.loc[name]
        line = [name]
        for title in titles:
            line.append(f"{row['total', title]:.2f}")
            line.append(f"{row['prec_quarter', title]:.3f}")
        line.append(f"{row['memory_mb', titles[-1]]:.0f}")
        lines.append(line)
    return laid_out(header, lines, numbers=len(header) - 1)


def settings_table(table: pd.DataFrame) -> str:
    """Lay out how each contestant was run."""
    versions = dict(zip(table["of"], table["version"], strict=True))
    rows = [[name, versions[name], CONTESTANTS[name].settings] for name in versions]
    return laid_out(["contestant", "version", "settings"], rows)


def missed_list(table: pd.DataFrame) -> str:
    """List what misses its target, and why."""
    ratios: dict[tuple[str, str], list[str]] = defaultdict(list)
    for title, of_size in table.groupby("bench", sort=False):
        share = SIZES[str(title)].share
        rows = of_size.to_dict("records")
        for row in rows:
            for figure in judged(row, share, rows):
                if figure["met"]:
                    continue
                name = f"{figure['of']} to {figure['to']}"
                sign = "≥" if figure["least"] else "≤"
                why = f"target {sign} {figure['target']:g}; {reason_of(figure, WHY)}"
                ratios[name, why].append(f"{figure['ratio']:.2f} x at {title}")
    lines = []
    for (name, why), texts in ratios.items():
        lines.append(f"- {name}: {', '.join(texts)}; {why}.\n")
    return "".join(lines)


def draw(table: pd.DataFrame, path: Path) -> None:
    """Draw time against precision, a panel for each size."""
    save_figure(partial(_drawn, table), path)


def _drawn(table: pd.DataFrame) -> Any:
    from matplotlib.figure import Figure

    titles = table["bench"].unique()
    names = set(table["of"])
    styles = solver_styles([name for name in CONTESTANTS if name in names])
    figure = Figure(figsize=(2.2 * len(titles) + 1.9, 2.8), layout="constrained")
    panels = figure.subplots(1, len(titles), squeeze=False)[0]
    handles = {}
    for axes, title in zip(panels, titles, strict=True):
        for row in table[table["bench"] == title].itertuples():
            [handles[row.of]] = axes.plot(
                row.total,
                row.prec_quarter,
                linestyle="",
                label=row.of,
                **styles[row.of]._asdict(),
            )
        log_scale(axes, "x")
        axes.set(title=title, xlabel="CPU seconds to weights")
    panels[0].set_ylabel("prec@0.25 of test rows")
    figure.legend(handles.values(), handles.keys(), loc="outside right center")
    return figure


def main() -> None:
    """Measure all, or one contestant."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--only", default="", help="part of a size")
    parser.add_argument("--full", action="store_true", help="at rcv1's size, too")
    parser.add_argument(
        "--write", action="store_true", help="keep these figures for the docs"
    )
    parser.add_argument(
        "--one", nargs=3, metavar=("NAME", "FOLDER", "COLUMNS"), help="as JSON"
    )
    parser.add_argument(
        "--install", action="store_true", help="install the peers instead"
    )
    options = parser.parse_args()
    if options.install:
        install()
        return
    if options.one:
        name, folder, columns = options.one
        print(json.dumps(measured(name, Path(folder), int(columns))))
        return
    rows = []
    ratios = []
    for title, size in SIZES.items():
        if options.only not in title:
            continue
        rounds = options.rounds
        if title == FULL:
            if not options.full:
                continue
            rounds = min(rounds, MOST_ROUNDS_FULL)
        measured_here = contest(title, size, rounds)
        rows += measured_here.rows
        ratios += measured_here.ratios
    if options.write:
        write_figures([_rounded(row) for row in rows], PEERS, whole=not PEERS.exists())
    missed = report(ratios, WHY)
    sys.exit(bool(missed))


def _rounded(row: dict[str, Any]) -> dict[str, Any]:
    return {key: round(x, 4) if isinstance(x, float) else x for key, x in row.items()}


if __name__ == "__main__":
    main()
