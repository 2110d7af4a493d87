"""Peers side by side.

From a text file to weights, to precision at the top of test rows.

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
from collections.abc import Callable, Iterator
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
TEST_ROWS, FIXED = 50_000, 100
VW = "Vowpal Wabbit, one pass"
OURS = "precbench, one pass"
NEAR = 0.99  # of the best precision over the passes
Scorer = Callable[[Any], np.ndarray]
# None once the rows are read, then a scorer after each pass
Steps = Iterator[Scorer | None]


class Size(NamedTuple):
    """A shape of generated rows; some of the columns drawn for a row fall together."""

    rows: int
    columns: int
    drawn: int
    share: float
    words: bool = True  # as in rcv1; else ones


SIZES = {
    "48,842 x 123": Size(48_842, 123, 16, 0.2393, words=False),
    "60,000 x 47,236": Size(60_000, 47_236, 88, 0.05),
    "677,399 x 47,236": Size(677_399, 47_236, 88, 0.05),
}
FULL = "677,399 x 47,236"


class Peer(NamedTuple):
    """A contestant."""

    # of the folder, the columns and the passes
    steps: Callable[[Path, int, int], Steps]
    package: str
    module: str
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
    # Zipf's law: of word 1 to j there are as many as log j to log columns.
    places = (size.columns + 1) ** drawn - 1 if size.words else size.columns * drawn**2
    ends = np.arange(0, places.size + 1, size.drawn, dtype=np.int32)
    columns = places.astype(np.int32).ravel()
    X = sparse.csr_matrix(
        (np.ones(len(columns)), columns, ends), shape=(n, size.columns)
    )
    X.sum_duplicates()
    if size.words:
        rows_with = np.bincount(X.indices, minlength=size.columns)
        X.data = (1 + np.log(X.data)) * np.log(n / rows_with[X.indices])
        lengths = np.sqrt(np.add.reduceat(X.data**2, X.indptr[:-1]))
        X.data = (X.data / np.repeat(lengths, np.diff(X.indptr))).round(15)
    else:
        X.data[:] = 1.0
    return X, labelled(X, size.share, rng)


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
    kept = np.array(w).ravel()
    return lambda X: X @ kept


# --- contestants ---


def by_sklearn(folder: Path, columns: int) -> tuple[sparse.csr_matrix, np.ndarray]:
    """Read the rows, with the indices of 32 bits that its solvers take."""
    X, y = load_svmlight_file(str(folder / "rows.svm"), n_features=columns)
    X.indices, X.indptr = X.indices.astype(np.int32), X.indptr.astype(np.int32)
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
    yield linear(
        solver.fit_pieces(columns, lambda: rows.visits(solver.batch_size)).coef_
    )


def vowpal_wabbit(
    folder: Path, columns: int, passes: int, *, settings: str = ""
) -> Steps:
    """Learn while the file is read.

    Later passes continue from a model, over the cache.
    """
    from vowpalwabbit import Workspace

    yield None
    text, model = folder / "rows.vw", folder / "model.vw"
    again = f" --cache_file {folder / 'rows.cache'} -f {model}" if passes > 1 else ""
    for done in range(passes):
        start = (
            f" -i {model}" if done else f" -b 18 --loss_function logistic {settings}"
        )
        learner = Workspace(
            f"-d {text} --quiet{again}{' -k' if again and not done else ''}{start}"
        )
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


def logistic_regression(folder: Path, columns: int, _: int) -> Steps:
    """Go on to the tolerance."""
    X, y = by_sklearn(folder, columns)
    yield None
    yield linear(LogisticRegression().fit(X, y).coef_)


def liblinear(folder: Path, columns: int, _: int) -> Steps:
    """Go on to the tolerance, from the rows as scikit-learn reads them."""
    from liblinear import liblinearutil

    X, y = by_sklearn(folder, columns)
    yield None
    model = liblinearutil.train(y, X, "-q")
    w, _ = model.get_decfun()  # of the label that it calls the first
    yield linear(np.array(w) * model.get_labels()[0])


OWN = "precbench", "precbench.solvers.minibatch.estimator"
CONTESTANTS = {
    OURS: Peer(sgd_at_k, *OWN, "`sgd-avg`, defaults, stored order"),
    "precbench, one pass, k = 1": Peer(
        partial(sgd_at_k, k=1.0, keep="last"),
        *OWN,
        '`k=1.0`, `keep="last"`, else the same',
    ),
    "precbench, five passes": Peer(sgd_at_k, *OWN, "as one pass", 5),
    "precbench, streamed": Peer(
        streamed, *OWN, "`open_stream`, which reads all to check it; one pass"
    ),
    VW: Peer(
        vowpal_wabbit,
        "vowpalwabbit",
        "vowpalwabbit",
        "`--loss_function logistic -b 18`, `-d` file",
    ),
    "Vowpal Wabbit, five passes": Peer(
        vowpal_wabbit,
        "vowpalwabbit",
        "vowpalwabbit",
        "the same, from a cache, each from the last model (`-i`)",
        5,
    ),
    "SGDClassifier": Peer(
        sklearn_sgd,
        "scikit-learn",
        "sklearn",
        "`log_loss`, five passes in random order",
        5,
    ),
    "LogisticRegression": Peer(
        logistic_regression, "scikit-learn", "sklearn", "defaults (L-BFGS)"
    ),
    "LIBLINEAR": Peer(
        liblinear,
        "liblinear-official",
        "liblinear",
        "defaults (`-s 1`); rows read by scikit-learn",
    ),
}


WHY = {  # most of the time, or of the distance, of what may miss its target
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
        command = [sys.executable, "-m", "pip", "install", "--quiet", requirement]
        # says why
        if subprocess.run([*command, "--disable-pip-version-check"]).returncode:
            print(f"{requirement}: could not be installed, see above", flush=True)


# --- measuring ---


def seconds() -> np.ndarray:
    """Return the time of the processor and on the wall."""
    return np.array([time.process_time(), time.perf_counter()])


def peak_memory() -> float:
    """Return the most memory that this process has had, in MB.

    That of `getrusage` begins with what the process had that started this one.
    """
    status = Path("/proc/self/status")
    if not status.exists():
        return np.nan
    [peak] = (line.split()[1] for line in status.open() if line.startswith("VmHWM:"))
    return int(peak) / 1024


def measured(name: str, folder: Path, columns: int) -> dict[str, Any]:
    """Let a contestant read and learn in this process; it must be a new one."""
    peer = CONTESTANTS[name]
    import_module(peer.module)
    # once, what is installed is searched for plug-ins: an import
    check_array(np.zeros((1, 1)))
    warnings.simplefilter("ignore")
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[-1:])
    times, scorers = [seconds()], []
    for scorer in peer.steps(folder, columns, peer.passes):
        times.append(seconds())
        scorers.append(scorer)
    memory = peak_memory()
    X, y = sparse.load_npz(folder / "test.npz"), np.load(folder / "test.npy")
    scores = [scorer(X) for scorer in scorers[1:]]
    (read, read_wall), *_, (total, total_wall) = np.array(times[1:]) - times[0]
    tops = [precision_at_k(y, of_pass, 0.25) for of_pass in scores]
    near = next(i for i, top in enumerate(tops) if top >= NEAR * max(tops))
    return {
        "version": metadata.version(peer.package),
        "read": read,
        "train": total - read,
        "total": total,
        "read_wall": read_wall,
        "train_wall": total_wall - read_wall,
        "total_wall": total_wall,
        "near_best": times[2 + near][0] - times[0][0] if peer.passes > 1 else np.nan,
        "memory_mb": memory,
        "prec_quarter": tops[-1],
        "prec_fixed": precision_at_k(y, scores[-1], FIXED),
    }


def run(name: str, folder: Path, columns: int) -> dict[str, Any]:
    """Measure a contestant in a process of its own.

    No library starts threads by itself.
    """
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

    Scores of the wrong sign, as of labels the other way round, rank worse than chance.
    """
    bench, name = row["bench"], row["of"]
    to_chance = row["prec_quarter"] / share
    figures = [ratio_figure(bench, name, "chance, prec@0.25", to_chance, 1.5, True)]
    vw = next((other for other in rows if other["of"] == VW), None)
    if name == OURS and vw is not None:
        time = row["total"] / vw["total"]
        precision = row["prec_quarter"] / vw["prec_quarter"]
        figures += [
            ratio_figure(bench, name, VW, time, 0.5, least=False),
            ratio_figure(bench, name, f"{VW}, prec@0.25", precision, 1.0, least=True),
        ]
    return figures


def contest(
    title: str, size: Size, rounds: int, test_rows: int = TEST_ROWS
) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Return a row for each installed contestant, and the ratios with targets."""
    records: dict[str, list[dict[str, Any]]] = {}
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        write_all(size, folder, test_rows)

        def contestant(name: str) -> float:
            records.setdefault(name, []).append(run(name, folder, size.columns))
            return records[name][-1]["total"]

        taking_part = {}
        for name, peer in CONTESTANTS.items():
            try:
                import_module(peer.module)
            except (ImportError, OSError) as error:
                print(
                    f"{title}, {name}: skipped, {peer.package} is not installed:"
                    f" {error}"
                )
                continue
            taking_part[name] = partial(contestant, name)
        Case(title, taking_part).measure(rounds)
    rows = []
    for name, runs in records.items():
        medians = pd.DataFrame(runs).drop(columns="version").median().to_dict()
        version = runs[0]["version"]
        rows.append({"bench": title, "of": name, "version": version, **medians})
    figures = [figure for row in rows for figure in judged(row, size.share, rows)]
    for row in rows:
        missed = [f["to"] for f in figures if f["of"] == row["of"] and not f["met"]]
        row["missed"] = "; ".join(missed)
    return rows, figures


# --- the page ---


def peers_table(table: pd.DataFrame) -> str:
    """Lay out CPU seconds and precision at each size, and the memory at the largest."""
    titles = list(table["bench"].unique())
    wide = table.pivot(index="of", columns="bench")
    header = [f"{title}: {what}" for title in titles for what in ("s", "prec@0.25")]
    rows = []
    for name in table["of"].unique():
        row = wide.loc[name]
        pairs = [(row["total", title], row["prec_quarter", title]) for title in titles]
        cells = [text for s, top in pairs for text in (f"{s:.2f}", f"{top:.3f}")]
        rows.append([name, *cells, f"{row['memory_mb', titles[-1]]:.0f}"])
    return laid_out(["contestant", *header, "MB there"], rows, numbers=len(header) + 1)


def settings_table(table: pd.DataFrame) -> str:
    """Lay out how each contestant was run."""
    versions = dict(zip(table["of"], table["version"], strict=True))
    rows = [[name, versions[name], CONTESTANTS[name].settings] for name in versions]
    return laid_out(["contestant", "version", "settings"], rows)


def missed_list(table: pd.DataFrame) -> str:
    """List what misses its target, and why."""
    found: dict[tuple[str, str], list[str]] = {}
    for title, here in table.groupby("bench", sort=False):
        rows = here.to_dict("records")
        for figure in (
            f for row in rows for f in judged(row, SIZES[str(title)].share, rows)
        ):
            if figure["met"]:
                continue
            sign = "≥" if figure["least"] else "≤"
            why = f"target {sign} {figure['target']:g}; {reason_of(figure, WHY)}"
            places = found.setdefault((f"{figure['of']} to {figure['to']}", why), [])
            places.append(f"{figure['ratio']:.2f} x at {title}")
    return "".join(
        f"- {of}: {', '.join(at)}; {why}.\n" for (of, why), at in found.items()
    )


def draw(table: pd.DataFrame, path: Path) -> None:
    """Draw time against precision, a panel for each size."""
    save_figure(partial(_drawn, table), path)


def _drawn(table: pd.DataFrame) -> Any:
    from matplotlib.figure import Figure

    titles = table["bench"].unique()
    styles = solver_styles([name for name in CONTESTANTS if name in set(table["of"])])
    figure = Figure(figsize=(2.2 * len(titles) + 1.9, 2.8), layout="constrained")
    for axes, title in zip(
        np.atleast_1d(figure.subplots(1, len(titles))), titles, strict=True
    ):
        for row in table[table["bench"] == title].itertuples():
            look = {"color": styles[row.of].color, "marker": styles[row.of].marker}
            axes.plot(row.total, row.prec_quarter, linestyle="", label=row.of, **look)
        log_scale(axes, "x")
        axes.set(title=title, xlabel="CPU seconds to weights")
    figure.axes[0].set_ylabel("prec@0.25 of test rows")
    handles = {h.get_label(): h for axes in figure.axes for h in axes.lines}
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
    rows, figures = [], []
    for title, size in SIZES.items():
        if options.only in title and (options.full or title != FULL):
            found = contest(
                title, size, min(options.rounds, 3 if title == FULL else 100)
            )
            rows += found[0]
            figures += found[1]
    if options.write:
        write_figures([_rounded(row) for row in rows], PEERS, whole=not PEERS.exists())
    sys.exit(bool(report(figures, WHY)))


def _rounded(row: dict[str, Any]) -> dict[str, Any]:
    return {key: round(x, 4) if isinstance(x, float) else x for key, x in row.items()}


if __name__ == "__main__":
    main()
