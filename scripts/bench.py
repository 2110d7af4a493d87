"""Speed as ratios: contestants interleaved, one thread, medians over the rounds.

Run it through ``make bench``. The yardstick of a pass is ``X @ w`` of NumPy (SciPy for
CSR) over the same array in float64. Times are those of the processor, on which other
work weighs least, and on the wall only where threads are compared. They start when the
solver has checked its input, as in every record, and include the shuffling where there
is any.
"""

import argparse
import bz2
import io
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from subprocess import DEVNULL
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from scipy import sparse
from sklearn.datasets import dump_svmlight_file, load_svmlight_file
from sklearn.exceptions import ConvergenceWarning
from threadpoolctl import threadpool_limits

from precbench.core.errors import DataUnavailableError
from precbench.data import find_card, load_dataset, read_svmlight
from precbench.data.cards.fetch import fetch
from precbench.model.model import Model
from precbench.ranking.metrics import auc, average_precision, precision_at_k
from precbench.ranking.topk import first_rows
from precbench.results.machine import environment
from precbench.results.store import Store
from precbench.solvers import SOLVERS
from precbench.solvers.bbr.estimator import ClassMoments
from precbench.solvers.common.driver import Fit, fit_together
from precbench.solvers.common.rows import as_rows
from precbench.solvers.push.reference import pnorm_push_path
from precbench.solvers.push.risks import (
    Classes,
    ExponentialRisk,
    PairLists,
    PairwiseRisk,
    Side,
    Term,
)
from precbench.tables.streamed_files import open_stream
from scripts.reference import REFERENCE, ROOT

BENCH = REFERENCE / "bench.csv"


class Shape(NamedTuple):
    """The size of dense rows, and the share of the positive ones."""

    rows: int
    features: int
    positive: float


class SparseShape(NamedTuple):
    """The size of sparse rows, and the share of the positive ones."""

    rows: int
    features: int
    filled: int  # non-zeros of a row
    positive: float


class Pass(NamedTuple):
    """A pass of a solver over dense rows, and the most of the time of ``X @ w``.

    None for no target.
    """

    solver: str
    parameters: Mapping[str, Any] = {}
    most: float | None = None
    any_order: bool = False
    dtype: type = np.float64


# the shapes of the papers' data sets, or of their training parts
DENSE = {
    "102,294 x 117": Shape(102_294, 117, 0.0061),
    "240,249 x 85": Shape(240_249, 85, 0.0119),
    "581,012 x 54": Shape(581_012, 54, 0.0163),
    "20,000 x 16": Shape(20_000, 16, 0.0392),
    "231,806 x 8": Shape(231_806, 8, 0.3333),
}
WIDE = ["102,294 x 117", "240,249 x 85", "581,012 x 54"]
TURNS = 3  # of two checkouts
SLOWER = 1.15  # times as long as before: beyond the noise of two runs on one machine
CSR = "CSR 48,842 x 123"
CSR_SHAPE = SparseShape(48_842, 123, filled=14, positive=0.2393)
PASSES = {
    "perceptron-avg, stored order": Pass("perceptron-avg", most=1.1),
    "perceptron-avg, shuffled blocks": Pass(
        "perceptron-avg", {"shuffle": "blocks"}, most=1.3
    ),
    "perceptron-avg, any row order": Pass("perceptron-avg", most=1.5, any_order=True),
    "perceptron-avg, shuffled rows": Pass("perceptron-avg", {"shuffle": "rows"}),
    "perceptron-max, stored order": Pass("perceptron-max"),
    "sgd-avg, stored order": Pass("sgd-avg", most=1.3),
    "sgd-max, stored order": Pass("sgd-max"),
    "sgd-avg, k = n_pos": Pass("sgd-avg", {"k": 1.0}),
    "perceptron-avg, float32": Pass("perceptron-avg", most=0.75, dtype=np.float32),
    "sgd-avg, float32": Pass("sgd-avg", most=0.75, dtype=np.float32),
}
# The most of the time of X @ w, by the shape of the rows.
MOST_WIDE = {label: each.most for label, each in PASSES.items()}
MOST: dict[str, dict[str, float | None]] = {
    "102,294 x 117": MOST_WIDE,
    "240,249 x 85": MOST_WIDE,
    "581,012 x 54": {
        **MOST_WIDE,
        "perceptron-avg, shuffled blocks": 1.15,
        "perceptron-avg, any row order": 1.7,
    },
    "20,000 x 16": {"perceptron-avg, stored order": 1.4},
    "231,806 x 8": {"perceptron-avg, stored order": 3.0, "sgd-avg, k = n_pos": 4.0},
}
MOST_PMB = {
    Shape(102_294, 117, 0.0061): {"1pmb, pauc": 1.3, "2pmb, pauc": 1.6},
    Shape(141_691, 22, 0.0957): {"1pmb, pauc": 1.8, "2pmb, pauc": 2.2},
}
# The most of the time of one candidate that five at once take.
MOST_TOGETHER = {"102,294 x 117": 2.2, "581,012 x 54": 2.2, CSR: 2.5}
# What takes most of the time of what may miss its target, by part of its name.
WHY = {
    "shuffled blocks": (
        "each block begins anew in memory, where nothing has been read ahead"
    ),
    "any row order": (
        "each row waits for memory; the narrower it is, the less is read ahead"
    ),
    "20,000 x 16, perceptron-avg, stored": (
        "scores, 1.3 times the product: rows come from a cache"
    ),
    "k = n_pos": "most rows are selected, and sorted",
    "2pmb, pauc": "counting the pairs takes as long as the scores",
    "npy, stored order": (
        "blocks of the file are mapped, and batches across them put together"
    ),
    "CSR": (
        "the end of each short row, which no processor predicts, then selection and"
        " step"
    ),
    "candidates, CSR": "rows of several candidates are not read four at a time",
    "the first 1 %": (
        "half is the read, the rest taking the likely rows and selecting among them"
    ),
    "value and gradient": (
        "the product with the transpose, nearly as long as that with the rows"
    ),
    "as many of each class": "rows are gathered by class before the product",
    "speed-up, BBR": "more than half of the moments' time is X.T @ X of the BLAS",
    "boosting": (
        "three quarters are histograms: every row is added in each column, of few"
        " bins too"
    ),
    "run letter": (
        "a fifth until the first trial ends, nearly half to measure, draw and report"
    ),
    "first trial": (
        "scikit-learn imports scipy.stats and pandas, in two processes at once"
    ),
}
STEPS = (1e-4, 1e-2, 1.0, 1e2, 1e4)
Contestant = Callable[[], float]  # returns seconds


class Case(NamedTuple):
    """Contestants that take turns, and the yardstick of the others, if any."""

    title: str
    contestants: Mapping[str, Contestant]
    yardstick: str = ""
    most: Mapping[str, float | None] = {}  # as a multiple of the yardstick's time
    # of the yardstick's time as a multiple: only these are shown
    least: Mapping[str, float] = {}
    fewer: int = 1  # divides the rounds
    note: Callable[[str, float], str] = lambda *_: ""  # on a contestant and its seconds

    def measure(self, rounds: int) -> list[dict[str, Any]]:
        """Time the contestants, print it, and return a row for each ratio."""
        times: dict[str, list[float]] = {name: [] for name in self.contestants}
        for _ in range(max(1, rounds // self.fewer)):
            for name, contestant in self.contestants.items():
                times[name].append(contestant())
        medians = {name: float(np.median(seconds)) for name, seconds in times.items()}
        print(f"\n{self.title}")
        for name, seconds in medians.items():
            print(f"  {name:32} {seconds * 1e3:12.3f} ms {self.note(name, seconds)}")
        figures = [self._figure(name, medians) for name in self._compared()]
        print(*(f"  {ratio_in_words(figure)}" for figure in figures), sep="\n")
        return figures

    def _compared(self) -> list[str]:
        """Return the contestants whose ratio to the yardstick is shown."""
        if self.least:
            return list(self.least)
        if not self.yardstick:
            return []
        return [name for name in self.contestants if name != self.yardstick]

    def _figure(self, name: str, medians: dict[str, float]) -> dict[str, Any]:
        if self.least:
            of, to = self.yardstick, name
            target: float | None = self.least[name]
        else:
            of, to = name, self.yardstick
            target = self.most.get(name)
        ratio = medians[of] / medians[to]
        figure = ratio_figure(self.title, of, to, ratio, target, bool(self.least))
        return figure | {"ratio": round(ratio, 2)}


def ratio_figure(
    bench: str, of: str, to: str, ratio: float, target: float | None, least: bool
) -> dict[str, Any]:
    """Return a ratio of a bench with its target, and whether it is met."""
    if target is None:
        met = True
    elif least:
        met = bool(ratio >= target)
    else:
        met = bool(ratio <= target)
    return {
        "bench": bench,
        "of": of,
        "to": to,
        "ratio": ratio,
        "target": target,
        "least": least,
        "met": met,
    }


def ratio_in_words(figure: dict[str, Any]) -> str:
    """Say a ratio beside its target."""
    text = "{of} to {to}: {ratio:.2f} x".format(**figure)
    if figure["target"] is None:
        return text
    bound = "least" if figure["least"] else "most"
    missed = "" if figure["met"] else ", missed"
    return f"{text} (at {bound} {figure['target']:g}{missed})"


class Clock:
    """A trace that measures the training alone."""

    def __init__(self):
        self.start = None

    def __call__(self, _: Any) -> None:  # noqa: D102
        self.seconds = time.process_time() - (self.start or time.process_time())
        self.start = self.start or time.process_time()


def fit(solver: Any, X: Any, y: Any, order: bool = False) -> Contestant:
    """Return a contestant.

    A fit, or a pass in any order, timed by the solver's own trace.
    """
    any_order = np.random.default_rng(1).permutation(len(y))

    def contestant() -> float:
        trace = Clock()
        if order:
            del solver.coef_
            solver.partial_fit(X, y, order=any_order, trace=trace)
        else:
            solver.fit(X, y, trace=trace)
        return trace.seconds

    solver.fit(X, y)
    return contestant


ONCE = {"epochs": 1, "random_state": 0, "shuffle": False}


def one_pass(
    name: str, X: Any, y: Any, order: bool = False, **params: Any
) -> Contestant:
    """Return a contestant: one pass in the stored order, or as the parameters say."""
    return fit(SOLVERS[name](**(ONCE | params)), X, y, order)


def together(name: str, X: Any, y: Any, **params: Any) -> Contestant:
    """Return a contestant: one pass of several step sizes at once."""

    def contestant() -> float:
        fits = [
            Fit(SOLVERS[name](**ONCE, **params, eta0=eta0), Clock()) for eta0 in STEPS
        ]
        fit_together(fits, X, y)
        return max(fit.trace.seconds for fit in fits)

    return contestant


def call(
    function: Callable[[], object],
    times: int = 1,
    clock: Callable[[], float] = time.process_time,
) -> Contestant:
    """Return a contestant: the whole call, the mean of so many in a row."""

    def contestant() -> float:
        start = clock()
        for _ in range(times):
            function()
        return (clock() - start) / times

    return contestant


def per_iteration(
    solver: Any, X: Any, y: Any, n_iterations: int | None = None
) -> Contestant:
    """Return a contestant: a fit, divided by its iterations, or by so many."""
    whole = fit(solver, X, y)

    def contestant() -> float:
        seconds = whole()
        return seconds / (n_iterations or solver.n_iter_)

    return contestant


def difference(more: Contestant, fewer: Contestant) -> Contestant:
    """Return a contestant: what one takes longer than another."""

    def contestant() -> float:
        return more() - fewer()

    return contestant


def labelled(X: Any, share: float, rng: np.random.Generator) -> np.ndarray:
    """Label the rows that score highest along a random direction, with noise."""
    scores = np.asarray(X @ rng.standard_normal(X.shape[1]))
    scores += 0.5 * scores.std() * rng.standard_normal(len(scores))
    y = np.full(len(scores), -1)
    y[np.argsort(-scores)[: int(share * len(scores))]] = 1
    return y


def normal(n: int, d: int, share: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return normal rows, their labels, and weights."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n, d))
    return X, labelled(X, share, rng), rng.standard_normal(d)


def synthetic(name: str) -> tuple[Any, np.ndarray, np.ndarray]:
    """Return rows of a shape in `DENSE`, or sparse ones of ones of the shape of a9a."""
    if name in DENSE:
        return normal(*DENSE[name])
    rng = np.random.default_rng(0)
    shape = CSR_SHAPE
    density = shape.filled / shape.features
    X = sparse.random(
        shape.rows, shape.features, density=density, format="csr", rng=rng
    )
    X.data[:] = 1.0
    return X, labelled(X, shape.positive, rng), rng.standard_normal(shape.features)


def real(name: str) -> tuple[Any, np.ndarray] | None:
    """Return the rows and labels of a data set, if it can be had."""
    try:
        data = load_dataset(name)
    except DataUnavailableError:
        print(f"\n{name}: no data")
        return None
    return data.X, np.where(np.asarray(data.y) > 0, 1, -1)


# --- passes ---


def dense(name: str) -> Iterator[Case]:
    """Time passes over dense rows."""
    X, y, w = synthetic(name)
    single = X.astype(np.float32)
    contestants = {"X @ w": call(lambda: X @ w)}
    for label, each in PASSES.items():
        rows = single if each.dtype is np.float32 else X
        contestants[label] = one_pass(
            each.solver, rows, y, each.any_order, **each.parameters
        )
    yield Case(f"dense {name}", contestants, "X @ w", MOST[name])


def pmb() -> Iterator[Case]:
    """Time passes of 1PMB and 2PMB over dense rows, for each objective."""
    for shape, most in MOST_PMB.items():
        X, y, w = normal(*shape)
        contestants = {"X @ w": call(partial(np.matmul, X, w))}
        for objective in ("pauc", "auc", "f1", "prec@k"):
            contestants[f"1pmb, {objective}"] = one_pass(
                "1pmb", X, y, objective=objective
            )
        contestants["2pmb, pauc"] = one_pass("2pmb", X, y, objective="pauc")
        title = f"stored order, {shape.rows:,} x {shape.features}"
        yield Case(title, contestants, "X @ w", most)


def stream() -> Iterator[Case]:
    """Time passes over files in the page cache against the same rows in memory."""
    n, d = 100_000, 100
    X, y, _ = normal(n, d, 0.05)
    X = np.round(X, 6)

    def streamed(rows: Any, seed: int | None = None) -> Contestant:
        solver = SOLVERS["sgd-avg"](epochs=1)
        rng = None if seed is None else np.random.default_rng(seed)

        def contestant() -> float:
            clock = Clock()
            solver.fit_pieces(d, lambda: rows.visits(500, rng), clock)
            return clock.seconds

        return contestant

    with tempfile.TemporaryDirectory() as folder:
        rows = Path(folder, "X.npy")
        labels = Path(folder, "y.npy")
        text = Path(folder, "rows.svm")
        np.save(rows, X)
        np.save(labels, y)
        places = " ".join(f"{j + 1}:%.6f" for j in range(d))
        np.savetxt(text, np.column_stack([y, X]), fmt="%d " + places)
        npy = open_stream(rows, labels=labels).X
        svmlight = open_stream(text).X
        megabytes = text.stat().st_size / 1e6

        def speed(name: str, seconds: float) -> str:
            return f"{megabytes / seconds:.0f} MB/s" if "svmlight" in name else ""

        title = f"sgd-avg streamed from {n:,} x {d}, "
        stored = {
            "in memory, stored order": one_pass("sgd-avg", X, y),
            "npy, stored order": streamed(npy),
            "svmlight, stored order": streamed(svmlight),
        }
        yield Case(
            f"{title}stored order",
            stored,
            "in memory, stored order",
            {"npy, stored order": 1.5},
            fewer=2,
            note=speed,
        )
        shuffled = {
            "in memory, shuffled rows": one_pass("sgd-avg", X, y, shuffle="rows"),
            "npy, shuffled": streamed(npy, 1),
        }
        most = {"npy, shuffled": 1.3}
        yield Case(f"{title}shuffled", shuffled, "in memory, shuffled rows", most)


def csr() -> Iterator[Case]:
    """Time passes over sparse rows."""
    X, y, w = synthetic(CSR)
    contestants = {"SciPy's X @ w": call(lambda: X @ w)}
    for label in (
        "perceptron-avg, stored order",
        "perceptron-avg, shuffled blocks",
        "sgd-avg, stored order",
    ):
        each = PASSES[label]
        contestants[label] = one_pass(each.solver, X, y, **each.parameters)
    title = f"{CSR}, {CSR_SHAPE.filled} non-zeros a row"
    yield Case(
        title, contestants, "SciPy's X @ w", {"perceptron-avg, stored order": 1.0}
    )


def candidates() -> Iterator[Case]:
    """Time a pass of five step sizes at once against a pass of one alone."""
    rules: dict[str, tuple[str, dict[str, Any]]] = {
        "sgd-avg": ("sgd-avg", {}),
        "sgd-max": ("sgd-max", {}),
        "1pmb, pauc": ("1pmb", {"objective": "pauc"}),
    }
    for name, most in MOST_TOGETHER.items():
        X, y, _ = synthetic(name)
        for rule, (solver, params) in rules.items():
            contestants = {
                f"{rule}, one": one_pass(solver, X, y, **params),
                "five at once": together(solver, X, y, **params),
            }
            targets = {"five at once": most} if rule == "sgd-avg" else {}
            yield Case(f"candidates, {name}", contestants, f"{rule}, one", targets)


# --- readers, selection, fits, scores ---


def selection() -> Iterator[Case]:
    """Time the top of a long list, and what needs all of it in order."""
    rng = np.random.default_rng(0)
    scores = rng.standard_normal(1_000_000)
    y = rng.random(1_000_000) < 0.01
    contestants = {
        "a read": call(scores.max),
        "the first 1 %": call(partial(first_rows, scores, 10_000)),
        "precision_at_k": call(partial(precision_at_k, y, scores, 10_000)),
    }
    most = {"the first 1 %": 1.5}
    yield Case("selection among 1,000,000 scores", contestants, "a read", most)
    contestants = {
        "a stable argsort": call(partial(np.argsort, scores, kind="stable")),
        "auc": call(partial(auc, y, scores)),
        "average_precision": call(partial(average_precision, y, scores)),
    }
    most = {"auc": 0.5, "average_precision": 0.5}
    yield Case(
        "sorting 1,000,000 scores", contestants, "a stable argsort", most, fewer=3
    )


def reader() -> Iterator[Case]:
    """Time the svmlight reader on ijcnn1, or else on rows of its shape."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "rows.svm")
        try:
            files = fetch(find_card("ijcnn1"))
            path.write_bytes(
                b"".join(bz2.decompress(file.path.read_bytes()) for file in files)
            )
        except DataUnavailableError:
            X, y, _ = normal(141_691, 22, 0.1)
            dump_svmlight_file(np.round(X, 6), y, str(path), zero_based=False)
        text = path.read_bytes()
        contestants = {
            "scikit-learn": call(
                lambda: load_svmlight_file(io.BytesIO(text), n_features=22)
            ),
            "precbench": call(lambda: read_svmlight(path, 22)),
        }
        title = "speed-up, svmlight reader, 141,691 x 22"

        def speed(_: str, seconds: float) -> str:
            return f"{len(text) / seconds / 1e6:.0f} MB/s"

        yield Case(
            title,
            contestants,
            "scikit-learn",
            least={"precbench": 8},
            fewer=5,
            note=speed,
        )


def push_problem(n: int, d: int = 10) -> tuple[np.ndarray, np.ndarray, ExponentialRisk]:
    """Return features in [0, 1], labels and the risk of the P-Norm Push, p = 4."""
    rng = np.random.default_rng(0)
    X = rng.random((n, d))
    labels = labelled(X, 0.65, rng).astype(np.int8)
    return X, labels, ExponentialRisk(X, labels, 4.0, [Term(1.0, 4.0, 0.0)])


def push_evaluation() -> Iterator[Case]:
    """Time value and gradient of the P-Norm Push against a pass, and by rows."""
    w = np.random.default_rng(1).standard_normal(10)
    sizes = [10**3, 10**4, 10**5, 10**6]
    risks = {n: push_problem(n)[2] for n in sizes}
    X = push_problem(10**6)[0]
    contestants = {
        "X @ w": call(lambda: X @ w),
        "value and gradient": call(lambda: risks[10**6].at(w)),
    }
    yield Case(
        "push, 1,000,000 x 10", contestants, "X @ w", {"value and gradient": 1.6}
    )

    def a_million(n: int) -> None:
        for _ in range(10**6 // n):
            risks[n].at(w)

    contestants = {f"{n:,} rows": call(partial(a_million, n)) for n in sizes}
    most = dict.fromkeys(contestants, 1.5)
    yield Case("push, time per million rows", contestants, "1,000 rows", most, fewer=3)


def push_pairs() -> Iterator[Case]:
    """Time the P-Norm Push against the same over all pairs, compiled and in NumPy."""
    X, labels, risk = push_problem(2_000)
    sides = [Side(1.0, 0.0, PairLists.of_labels(labels))]
    pairs = PairwiseRisk(X, Classes(labels), 4.0, False, sides)
    w = np.random.default_rng(1).standard_normal(10)
    contestants = {
        "factorised": call(lambda: risk.at(w), times=100),
        "compiled pairs": call(lambda: pairs.at(w)),
    }
    title = "speed-up, value and gradient of the P-Norm Push, 2,000 x 10"
    yield Case(title, contestants, "compiled pairs", least={"factorised": 100})
    X, y, _ = push_problem(1_000)
    if magic := real("magic"):
        chosen = np.random.default_rng(0).permutation(len(magic[1]))[:1000]
        features, labels = np.asarray(magic[0]), magic[1]
        unit = (features - features.min(axis=0)) / np.ptp(features, axis=0)
        X, y = unit[chosen], labels[chosen]
    solver = SOLVERS["pnorm-push"]()
    contestants = {
        "coordinate": call(lambda: solver.fit(X, y), times=10),
        "NumPy pairs": call(lambda: pnorm_push_path(X, y, 4, 100)),
    }
    title = "speed-up, P-Norm Push, 1,000 x 10, 100 iterations"
    yield Case(title, contestants, "NumPy pairs", least={"coordinate": 200}, fewer=10)


def iteration() -> Iterator[Case]:
    """Time an iteration of the cutting plane against two products and a selection."""
    for name in WIDE:
        X, y, w = synthetic(name)
        scores = X @ w
        top = int(0.25 * np.count_nonzero(y > 0))

        def unit(X=X, w=w, scores=scores, top=top) -> None:
            X @ w
            np.argpartition(scores, -top)
            X.T @ scores

        contestants = {"X @ w, selection, X.T @ v": call(unit)}
        objectives: dict[str, dict[str, Any]] = {
            "prec@k": {"k": 0.25},
            "pauc": {"objective": "pauc"},
        }
        for label, parameters in objectives.items():
            solver = SOLVERS["cutting-plane"](**parameters, tol=1e-12, max_iter=20)
            contestants[label] = per_iteration(solver, X, y)
        title = f"an iteration of the cutting plane, {name}"
        most = {"prec@k": 1.3, "pauc": 1.3}
        yield Case(title, contestants, "X @ w, selection, X.T @ v", most, fewer=10)


def bbr() -> Iterator[Case]:
    """Time BBR by moments against ``X.T @ X``, its pair loop, and LCBR."""
    for name in ("102,294 x 117", "581,012 x 54"):
        X, y, _ = synthetic(name)
        even = labelled(X, 0.5, np.random.default_rng(1))
        contestants = {
            "X.T @ X": call(lambda X=X: X.T @ X),
            "bbr": fit(SOLVERS["bbr"](), X, y),
            "bbr, as many of each class": fit(SOLVERS["bbr"](), X, even),
        }
        most = {"bbr": 1.3, "bbr, as many of each class": 1.3}
        yield Case(f"bbr by moments, {name}", contestants, "X.T @ X", most, fewer=2)
    for d, least in ((10, 100), (50, 1000)):
        X, y, _ = normal(2_000, d, 0.5)

        rows, classes = as_rows(X), y.astype(np.int8)

        def by_class(d=d, rows=rows, y=classes) -> None:
            moments = ClassMoments(rows, d)
            for _ in moments.add(rows, y):
                pass
            moments.of_differences()

        one = fit(SOLVERS["lcbr"](n_pairs=1, random_state=0), X, y)
        lcbr = fit(SOLVERS["lcbr"](n_pairs=5000, random_state=0), X, y)
        contestants = {
            "moments": call(by_class, times=20),
            "bbr": fit(SOLVERS["bbr"](), X, y),
            "lcbr": lcbr,
            "5,000 pairs": difference(lcbr, one),
            "all pairs": fit(SOLVERS["bbr"](accumulate="pairs"), X, y),
        }
        fast = {"moments": least, "5,000 pairs": 100}
        yield Case(
            f"speed-up, BBR, 2,000 x {d}", contestants, "all pairs", least=fast, fewer=2
        )


def toppush() -> Iterator[Case]:
    """Time an iteration of TopPush, those that search for the step size included."""
    n_iterations = 50
    for share in (0.01, 0.1):
        X, y, w = normal(100_000, 100, share)
        contestants = {"X @ w": call(partial(np.matmul, X, w))}
        for top in (1, 0.01, 0.05, 0.25):
            how = {"top_negatives": top, "tol": 1e-12, "max_iter": n_iterations}
            solver = SOLVERS["toppush"](**how)
            contestants[f"top_negatives={top}"] = per_iteration(
                solver, X, y, n_iterations
            )
        title = f"an iteration of toppush, {share:.0%} positive"
        most = dict.fromkeys(contestants, 3.0)
        yield Case(title, contestants, "X @ w", most, fewer=6)


def threads() -> Iterator[Case]:
    """Time the scores of a model in one thread and in two."""
    X, y, _ = normal(100_000, 50, 0.1)
    models: dict[str, dict[str, Any]] = {
        "trees": {"solver": "hist-gradient-boosting"},
        "300 random features": {"fourier": 300},
    }
    for name, parameters in models.items():
        model = Model.fit(X[:20_000], y[:20_000], random_state=0, **parameters)
        slow, fast = f"{name}, one thread", f"{name}, two threads"
        one = partial(model.decision_function, X, n_jobs=1)
        two = partial(model.decision_function, X, n_jobs=2)
        contestants = {
            slow: call(one, clock=time.perf_counter),
            fast: call(two, clock=time.perf_counter),
        }
        yield Case(
            "scores of 100,000 x 50", contestants, slow, least={fast: 1.8}, fewer=3
        )


def boosting() -> Iterator[Case]:
    """Time boosted trees on columns of 0 and 1, alone and beside one of numbers."""
    rng = np.random.default_rng(0)
    codes = [rng.integers(0, n, 4_075) for n in rng.integers(2, 11, 85)]
    X = np.concatenate([np.eye(code.max() + 1)[code] for code in codes], axis=1)
    y = np.where(
        X @ rng.standard_normal(X.shape[1]) + rng.standard_normal(len(X)) > 4, 1, -1
    )
    numbers = np.column_stack([X, rng.standard_normal(len(X))])
    solver = SOLVERS["hist-gradient-boosting"](random_state=0)
    contestants = {
        "0 and 1": fit(solver, X, y),
        "and a column of numbers": fit(solver, numbers, y),
    }
    title = f"boosting, {X.shape[0]:,} x {X.shape[1]}, 0 and 1"
    most = {"0 and 1": 0.33}
    yield Case(title, contestants, "and a column of numbers", most, fewer=5)


def command() -> Iterator[Case]:
    """Time a whole run by two workers, on the wall, against its trials."""
    if real("letter") is None:
        return
    training = "its training and tuning, over two"
    first = "first trial"
    last: dict[str, float] = {}

    def whole() -> float:
        with tempfile.TemporaryDirectory() as out:
            run = ["run", "letter", "--jobs", "2", "--out", out, "--quiet"]
            start = time.time()
            subprocess.run(
                [sys.executable, "-m", "precbench", *run], check=True, stdout=DEVNULL
            )
            seconds = time.time() - start
            store = Store(Path(out, "letter"))
            trials = [*store.records()]
            last[first] = min(store.moments(store.keys())) - start
        last[training] = sum(t.seconds + (t.tuning_seconds or 0.0) for t in trials) / 2
        return seconds

    def imports() -> float:
        start = time.time()
        subprocess.run([sys.executable, "-c", "import numpy, scipy.sparse"], check=True)
        return time.time() - start

    contestants = {"run letter": whole, training: lambda: last[training]}
    yield Case("the whole command", contestants, training, {"run letter": 2.5}, fewer=5)
    contestants = {"run letter": whole, first: lambda: last[first], "imports": imports}
    title = "the whole command, and import numpy, scipy.sparse"
    yield Case(title, contestants, "imports", {first: 3.0}, fewer=5)


BENCHES: dict[str, Callable[[], Iterator[Case]]] = {
    **{name: partial(dense, name) for name in DENSE},
    "pmb": pmb,
    "stream": stream,
    "csr": csr,
    "candidates": candidates,
    "reader": reader,
    "selection": selection,
    "push evaluation": push_evaluation,
    "push pairs": push_pairs,
    "iteration": iteration,
    "bbr": bbr,
    "toppush": toppush,
    "boosting": boosting,
    "threads": threads,
    "command": command,
}


def longer(figures: pd.DataFrame, before: pd.DataFrame) -> set[str]:
    """Return what takes longer than in other figures, beyond the noise of rounds.

    Of figures with several rows for a ratio, medians count.
    """
    names = ["bench", "of", "to"]
    ratios = figures.groupby(names)["ratio"].median()
    earlier_ratios = before.groupby(names)["ratio"].median()
    sentences = set()
    for figure in figures.drop_duplicates(names).to_dict("records"):
        bench, of, to = (figure[name] for name in names)
        now = ratios[bench, of, to]
        earlier = earlier_ratios.get((bench, of, to))
        if not earlier:
            continue
        # Of a speed-up a smaller ratio is the slower one.
        growth = (now / earlier) ** (-1 if figure["least"] else 1)
        if growth > SLOWER:
            sentences.add(f"{bench}, {of} to {to}: {now:.2f} x; it was {earlier:.2f} x")
    return sentences


def report(
    figures: list[dict[str, Any]], why: Mapping[str, str] = WHY
) -> list[dict[str, Any]]:
    """Print which figures miss their targets, and return them."""
    missed = [figure for figure in figures if not figure["met"]]
    print(
        f"\n{len(figures) - len(missed)} of {len(figures)} ratios within their targets"
    )
    for figure in missed:
        print(f"  {figure['bench']}, {ratio_in_words(figure)}")
        if reason := reason_of(figure, why):
            print(f"    {reason}")
    return missed


def reason_of(figure: dict[str, Any], why: Mapping[str, str]) -> str:
    """Return what takes most of the time, by the last of the parts of its name.

    "" for unknown.
    """
    about = "{bench}, {of} to {to}".format(**figure)
    return next((reason for part, reason in reversed(why.items()) if part in about), "")


def write_figures(rows: list[dict[str, Any]], path: Path, whole: bool) -> None:
    """Write rows of figures, or replace those of the same benches."""
    table = pd.DataFrame(rows).assign(machine=environment()["cpu"])
    if not whole:
        before = pd.read_csv(path)
        places = list(dict.fromkeys([*before["bench"], *table["bench"]]))
        table = pd.concat([before[~before["bench"].isin(table["bench"])], table])
        table = table.sort_values(
            "bench", key=lambda benches: benches.map(places.index), kind="stable"
        )
    table.to_csv(path, index=False, lineterminator="\n")


def slower(name: str, base: Path, rounds: int) -> set[str]:
    """Return what is slower here than in another checkout, in turns, twice."""
    sentences: set[str] = set()
    for _ in range(2):
        here, before = [], []
        for _ in range(TURNS):
            before.append(_measured_in(base, name, rounds))
            here.append(_measured_in(ROOT, name, rounds))
        sentences = longer(pd.concat(here), pd.concat(before))
        if not sentences:
            break
    return sentences


def _measured_in(checkout: Path, name: str, rounds: int) -> pd.DataFrame:
    """Measure a bench by the code of a checkout, and restore its figures."""
    figures = checkout / BENCH.relative_to(ROOT)
    committed = figures.read_bytes()
    python = (checkout / ".venv/bin/python").absolute()
    options = ["--only", name, "--rounds", str(rounds), "--write"]
    try:
        figures.write_text(",".join(pd.read_csv(figures).columns) + "\n")
        # fails for missed targets
        subprocess.run(
            [python, "-m", "scripts.bench", *options], cwd=checkout, stdout=DEVNULL
        )
        return pd.read_csv(figures)
    finally:
        figures.write_bytes(committed)


def main() -> None:
    """Run the script."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=30)
    parser.add_argument(
        "--only", default="", help="part of a data shape, or of a bench's name"
    )
    parser.add_argument(
        "--write", action="store_true", help="keep these figures for the docs"
    )
    parser.add_argument(
        "--base", type=Path, help="fail only where this checkout is 15 %% faster"
    )
    options = parser.parse_args()
    # of fits that are cut short to be timed
    warnings.simplefilter("ignore", ConvergenceWarning)
    chosen = [name for name in BENCHES if options.only in name]
    if options.base:
        sentences: list[str] = []
        for name in chosen:
            sentences += slower(name, options.base, options.rounds)
        title = "slower, twice:" if sentences else "nothing is slower, twice"
        print(title, *sentences, sep="\n  ")
        sys.exit(bool(sentences))
    figures: list[dict[str, Any]] = []
    with threadpool_limits(1):
        for name in chosen:
            for case in BENCHES[name]():
                figures += case.measure(options.rounds)
    missed = report(figures)
    if options.write:
        write_figures(figures, BENCH, whole=not options.only)
    sys.exit(bool(missed))


if __name__ == "__main__":
    main()
