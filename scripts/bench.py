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


class Problem(NamedTuple):
    """Rows, their labels (-1 or 1), and weights."""

    X: Any
    y: np.ndarray
    w: np.ndarray


class RealRows(NamedTuple):
    """The rows of a data set, and their labels (-1 or 1)."""

    X: Any
    y: np.ndarray


class Pass(NamedTuple):
    """A pass of a solver over dense rows.

    Attributes
    ----------
    solver : str
    parameters : dict of str to object
    most : float, optional
        The target: a multiple of the time of ``X @ w``.
    any_order : bool
        Over rows in random order in place of the stored one.
    dtype : type
        Of the rows.
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
TURNS = 3  # of each of two checkouts
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
# The targets of passes, as multiples of the time of X @ w, by the shape of the rows.
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
# The targets of five candidates at once, as multiples of the time of one.
MOST_TOGETHER = {"102,294 x 117": 2.2, "581,012 x 54": 2.2, CSR: 2.5}
# What takes most of the time where a target may be missed, by part of its name.
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
    """Contestants that take turns, and the yardstick of the others, if any.

    Attributes
    ----------
    title : str
    contestants : dict of str to callable
    yardstick : str
        The contestant to whose time the times of the others are ratios.
    most : dict of str to float or None
        Targets of these ratios.
    least : dict of str to float
        If given, only these contestants are compared with the yardstick, by how many
        times as fast they are: the targets of these speed-ups.
    fewer : int
        Divides the rounds.
    note : callable
        What is printed beside a contestant, of whom it gets the name and the seconds.
    """

    title: str
    contestants: Mapping[str, Contestant]
    yardstick: str = ""
    most: Mapping[str, float | None] = {}
    least: Mapping[str, float] = {}
    fewer: int = 1
    note: Callable[[str, float], str] = lambda *_: ""

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
        figures = self._figures(medians)
        print(*(f"  {ratio_in_words(figure)}" for figure in figures), sep="\n")
        return figures

    def _figures(self, medians: Mapping[str, float]) -> list[dict[str, Any]]:
        """Return the ratios that are shown, by the contestants' times."""
        figures = []
        if self.least:
            for name, target in self.least.items():
                figures.append(
                    self._figure(self.yardstick, name, medians, target, least=True)
                )
        elif self.yardstick:
            for name in self.contestants:
                if name != self.yardstick:
                    target = self.most.get(name)
                    figures.append(
                        self._figure(name, self.yardstick, medians, target, least=False)
                    )
        return figures

    def _figure(
        self,
        of: str,
        to: str,
        medians: Mapping[str, float],
        target: float | None,
        *,
        least: bool,
    ) -> dict[str, Any]:
        """Return a ratio, which is rounded once its target has been judged."""
        ratio = medians[of] / medians[to]
        figure = ratio_figure(self.title, of, to, ratio, target=target, least=least)
        return figure | {"ratio": round(ratio, 2)}


def ratio_figure(
    bench: str, of: str, to: str, ratio: float, *, target: float | None, least: bool
) -> dict[str, Any]:
    """Return a ratio of a bench with its target, and whether it is met.

    A ratio is at least its target, as a speed-up, or at most.
    """
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
    """A trace that measures the training alone, from its first call to its last."""

    def __init__(self):
        self.start = None
        self.seconds = 0.0

    def __call__(self, _solver: Any) -> None:  # noqa: D102
        now = time.process_time()
        if self.start is None:
            self.start = now
        self.seconds = now - self.start


def fit(solver: Any, X: Any, y: Any, any_order: bool = False) -> Contestant:
    """Return a contestant: a fit, or a pass over the rows in random order.

    It is timed by the solver's own trace.
    """
    order = np.random.default_rng(1).permutation(len(y))

    def contestant() -> float:
        trace = Clock()
        if any_order:
            del solver.coef_
            solver.partial_fit(X, y, order=order, trace=trace)
        else:
            solver.fit(X, y, trace=trace)
        return trace.seconds

    solver.fit(X, y)
    return contestant


ONCE = {"epochs": 1, "random_state": 0, "shuffle": False}


def one_pass(
    name: str, X: Any, y: Any, any_order: bool = False, **params: Any
) -> Contestant:
    """Return a contestant: one pass in the stored order, or as the parameters say."""
    return fit(SOLVERS[name](**(ONCE | params)), X, y, any_order)


def together(name: str, X: Any, y: Any, **params: Any) -> Contestant:
    """Return a contestant: one pass of several step sizes at once."""

    def contestant() -> float:
        clocks = [Clock() for _ in STEPS]
        fits = []
        for eta0, clock in zip(STEPS, clocks, strict=True):
            fits.append(Fit(SOLVERS[name](**ONCE, **params, eta0=eta0), clock))
        fit_together(fits, X, y)
        return max(clock.seconds for clock in clocks)

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


def normal(n: int, d: int, share: float) -> Problem:
    """Generate normal rows."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n, d))
    return Problem(X, labelled(X, share, rng), rng.standard_normal(d))


def synthetic(name: str) -> Problem:
    """Generate rows of a shape in `DENSE`, or sparse ones of the shape of a9a."""
    if name in DENSE:
        return normal(*DENSE[name])
    rng = np.random.default_rng(0)
    shape = CSR_SHAPE
    density = shape.filled / shape.features
    X = sparse.random(
        shape.rows, shape.features, density=density, format="csr", rng=rng
    )
    X.data[:] = 1.0
    y = labelled(X, shape.positive, rng)
    return Problem(X, y, rng.standard_normal(shape.features))


def real(name: str) -> RealRows | None:
    """Return the rows and labels of a data set, if it can be had."""
    try:
        data = load_dataset(name)
    except DataUnavailableError:
        print(f"\n{name}: no data")
        return None
    return RealRows(data.X, np.where(np.asarray(data.y) > 0, 1, -1))


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
    yield Case(f"dense {name}", contestants, yardstick="X @ w", most=MOST[name])


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
        yield Case(title, contestants, yardstick="X @ w", most=most)


def stream() -> Iterator[Case]:
    """Time passes over files in the page cache against the same rows in memory."""
    n, d = 100_000, 100
    problem = normal(n, d, 0.05)
    X, y = np.round(problem.X, 6), problem.y

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
            yardstick="in memory, stored order",
            most={"npy, stored order": 1.5},
            fewer=2,
            note=speed,
        )
        shuffled = {
            "in memory, shuffled rows": one_pass("sgd-avg", X, y, shuffle="rows"),
            "npy, shuffled": streamed(npy, seed=1),
        }
        yield Case(
            f"{title}shuffled",
            shuffled,
            yardstick="in memory, shuffled rows",
            most={"npy, shuffled": 1.3},
        )


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
    yield Case(
        f"{CSR}, {CSR_SHAPE.filled} non-zeros a row",
        contestants,
        yardstick="SciPy's X @ w",
        most={"perceptron-avg, stored order": 1.0},
    )


def candidates() -> Iterator[Case]:
    """Time a pass of five step sizes at once against a pass of one alone."""
    passes = {
        "sgd-avg": Pass("sgd-avg"),
        "sgd-max": Pass("sgd-max"),
        "1pmb, pauc": Pass("1pmb", {"objective": "pauc"}),
    }
    for name, most in MOST_TOGETHER.items():
        X, y, _w = synthetic(name)
        for label, each in passes.items():
            one = f"{label}, one"
            contestants = {
                one: one_pass(each.solver, X, y, **each.parameters),
                "five at once": together(each.solver, X, y, **each.parameters),
            }
            targets = {"five at once": most} if label == "sgd-avg" else {}
            title = f"candidates, {name}"
            yield Case(title, contestants, yardstick=one, most=targets)


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
    yield Case(
        "selection among 1,000,000 scores",
        contestants,
        yardstick="a read",
        most={"the first 1 %": 1.5},
    )
    contestants = {
        "a stable argsort": call(partial(np.argsort, scores, kind="stable")),
        "auc": call(partial(auc, y, scores)),
        "average_precision": call(partial(average_precision, y, scores)),
    }
    yield Case(
        "sorting 1,000,000 scores",
        contestants,
        yardstick="a stable argsort",
        most={"auc": 0.5, "average_precision": 0.5},
        fewer=3,
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
            X, y, _w = normal(141_691, 22, 0.1)
            dump_svmlight_file(np.round(X, 6), y, str(path), zero_based=False)
        text = path.read_bytes()
        contestants = {
            "scikit-learn": call(
                lambda: load_svmlight_file(io.BytesIO(text), n_features=22)
            ),
            "precbench": call(lambda: read_svmlight(path, 22)),
        }

        def speed(_name: str, seconds: float) -> str:
            return f"{len(text) / seconds / 1e6:.0f} MB/s"

        yield Case(
            "speed-up, svmlight reader, 141,691 x 22",
            contestants,
            yardstick="scikit-learn",
            least={"precbench": 8},
            fewer=5,
            note=speed,
        )


class PushProblem(NamedTuple):
    """Features in [0, 1], labels, and the risk of the P-Norm Push, p = 4."""

    X: np.ndarray
    labels: np.ndarray
    risk: ExponentialRisk


def push_problem(n: int, d: int = 10) -> PushProblem:
    """Generate rows for the P-Norm Push."""
    rng = np.random.default_rng(0)
    X = rng.random((n, d))
    labels = labelled(X, 0.65, rng).astype(np.int8)
    risk = ExponentialRisk(X, labels, 4.0, [Term(1.0, 4.0, 0.0)])
    return PushProblem(X, labels, risk)


def push_evaluation() -> Iterator[Case]:
    """Time value and gradient of the P-Norm Push against a pass, and by rows."""
    w = np.random.default_rng(1).standard_normal(10)
    sizes = [10**3, 10**4, 10**5, 10**6]
    risks = {n: push_problem(n).risk for n in sizes}
    X = push_problem(10**6).X
    contestants = {
        "X @ w": call(lambda: X @ w),
        "value and gradient": call(lambda: risks[10**6].at(w)),
    }
    yield Case(
        "push, 1,000,000 x 10",
        contestants,
        yardstick="X @ w",
        most={"value and gradient": 1.6},
    )

    def a_million(n: int) -> None:
        for _ in range(10**6 // n):
            risks[n].at(w)

    contestants = {f"{n:,} rows": call(partial(a_million, n)) for n in sizes}
    yield Case(
        "push, time per million rows",
        contestants,
        yardstick="1,000 rows",
        most=dict.fromkeys(contestants, 1.5),
        fewer=3,
    )


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
    yield Case(
        "speed-up, value and gradient of the P-Norm Push, 2,000 x 10",
        contestants,
        yardstick="compiled pairs",
        least={"factorised": 100},
    )
    X, y, _risk = push_problem(1_000)
    magic = real("magic")
    if magic is not None:
        chosen = np.random.default_rng(0).permutation(len(magic.y))[:1000]
        features = np.asarray(magic.X)
        unit = (features - features.min(axis=0)) / np.ptp(features, axis=0)
        X, y = unit[chosen], magic.y[chosen]
    solver = SOLVERS["pnorm-push"]()
    contestants = {
        "coordinate": call(lambda: solver.fit(X, y), times=10),
        "NumPy pairs": call(lambda: pnorm_push_path(X, y, 4, 100)),
    }
    yield Case(
        "speed-up, P-Norm Push, 1,000 x 10, 100 iterations",
        contestants,
        yardstick="NumPy pairs",
        least={"coordinate": 200},
        fewer=10,
    )


def iteration() -> Iterator[Case]:
    """Time an iteration of the cutting plane against two products and a selection."""
    for name in WIDE:
        yield _iteration(name)


def _iteration(name: str) -> Case:
    X, y, w = synthetic(name)
    scores = X @ w
    top = int(0.25 * np.count_nonzero(y > 0))

    def unit() -> None:
        X @ w
        np.argpartition(scores, -top)
        X.T @ scores

    limits = {"tol": 1e-12, "max_iter": 20}
    at_k = SOLVERS["cutting-plane"](k=0.25, **limits)
    pauc = SOLVERS["cutting-plane"](objective="pauc", **limits)
    contestants = {
        "X @ w, selection, X.T @ v": call(unit),
        "prec@k": per_iteration(at_k, X, y),
        "pauc": per_iteration(pauc, X, y),
    }
    return Case(
        f"an iteration of the cutting plane, {name}",
        contestants,
        yardstick="X @ w, selection, X.T @ v",
        most={"prec@k": 1.3, "pauc": 1.3},
        fewer=10,
    )


def bbr() -> Iterator[Case]:
    """Time BBR by moments against ``X.T @ X``, its pair loop, and LCBR."""
    yield _moments_to_product("102,294 x 117")
    yield _moments_to_product("581,012 x 54")
    yield _pairs_to_moments(d=10, least=100)
    yield _pairs_to_moments(d=50, least=1000)


def _moments_to_product(name: str) -> Case:
    X, y, _w = synthetic(name)
    half_positive = labelled(X, 0.5, np.random.default_rng(1))
    contestants = {
        "X.T @ X": call(lambda: X.T @ X),
        "bbr": fit(SOLVERS["bbr"](), X, y),
        "bbr, as many of each class": fit(SOLVERS["bbr"](), X, half_positive),
    }
    return Case(
        f"bbr by moments, {name}",
        contestants,
        yardstick="X.T @ X",
        most={"bbr": 1.3, "bbr, as many of each class": 1.3},
        fewer=2,
    )


def _pairs_to_moments(d: int, least: float) -> Case:
    X, y, _w = normal(2_000, d, 0.5)
    rows = as_rows(X)
    classes = y.astype(np.int8)

    def moments_of_differences() -> None:
        moments = ClassMoments(rows, d)
        for _ in moments.add(rows, classes):
            pass
        moments.of_differences()

    one_pair = fit(SOLVERS["lcbr"](n_pairs=1, random_state=0), X, y)
    lcbr = fit(SOLVERS["lcbr"](n_pairs=5000, random_state=0), X, y)
    contestants = {
        "moments": call(moments_of_differences, times=20),
        "bbr": fit(SOLVERS["bbr"](), X, y),
        "lcbr": lcbr,
        "5,000 pairs": difference(lcbr, one_pair),
        "all pairs": fit(SOLVERS["bbr"](accumulate="pairs"), X, y),
    }
    return Case(
        f"speed-up, BBR, 2,000 x {d}",
        contestants,
        yardstick="all pairs",
        least={"moments": least, "5,000 pairs": 100},
        fewer=2,
    )


def toppush() -> Iterator[Case]:
    """Time an iteration of TopPush, those that search for the step size included."""
    n_iterations = 50
    for share in (0.01, 0.1):
        X, y, w = normal(100_000, 100, share)
        contestants = {"X @ w": call(partial(np.matmul, X, w))}
        for top in (1, 0.01, 0.05, 0.25):
            solver = SOLVERS["toppush"](
                top_negatives=top, tol=1e-12, max_iter=n_iterations
            )
            contestants[f"top_negatives={top}"] = per_iteration(
                solver, X, y, n_iterations
            )
        title = f"an iteration of toppush, {share:.0%} positive"
        most = dict.fromkeys(contestants, 3.0)
        yield Case(title, contestants, yardstick="X @ w", most=most, fewer=6)


def threads() -> Iterator[Case]:
    """Time the scores of a model in one thread and in two."""
    X, y, _w = normal(100_000, 50, 0.1)
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
            "scores of 100,000 x 50",
            contestants,
            yardstick=slow,
            least={fast: 1.8},
            fewer=3,
        )


def boosting() -> Iterator[Case]:
    """Time boosted trees on columns of 0 and 1, alone and beside one of numbers."""
    rng = np.random.default_rng(0)
    columns = [rng.integers(0, n_codes, 4_075) for n_codes in rng.integers(2, 11, 85)]
    one_hot = [np.eye(codes.max() + 1)[codes] for codes in columns]
    X = np.concatenate(one_hot, axis=1)
    scores = X @ rng.standard_normal(X.shape[1]) + rng.standard_normal(len(X))
    y = np.where(scores > 4, 1, -1)
    with_numbers = np.column_stack([X, rng.standard_normal(len(X))])
    solver = SOLVERS["hist-gradient-boosting"](random_state=0)
    contestants = {
        "0 and 1": fit(solver, X, y),
        "and a column of numbers": fit(solver, with_numbers, y),
    }
    yield Case(
        f"boosting, {X.shape[0]:,} x {X.shape[1]}, 0 and 1",
        contestants,
        yardstick="and a column of numbers",
        most={"0 and 1": 0.33},
        fewer=5,
    )


class RunOfLetter:
    """A run by two workers; it keeps two times of the latest one, in seconds.

    Attributes
    ----------
    first_trial : float
        From the start of the command to the end of the first trial.
    training : float
        Of all trials, with tuning, over two workers.
    """

    first_trial: float
    training: float

    def __call__(self) -> float:
        """Run the whole command, and return how long it took."""
        with tempfile.TemporaryDirectory() as out:
            run = ["run", "letter", "--jobs", "2", "--out", out, "--quiet"]
            start = time.time()
            subprocess.run(
                [sys.executable, "-m", "precbench", *run], check=True, stdout=DEVNULL
            )
            seconds = time.time() - start
            store = Store(Path(out, "letter"))
            self.first_trial = min(store.moments(store.keys())) - start
            trials = list(store.records())
        total = sum(trial.seconds + (trial.tuning_seconds or 0.0) for trial in trials)
        self.training = total / 2
        return seconds


def imports() -> float:
    """Return how long a process takes to import NumPy and scipy.sparse."""
    start = time.time()
    subprocess.run([sys.executable, "-c", "import numpy, scipy.sparse"], check=True)
    return time.time() - start


def command() -> Iterator[Case]:
    """Time a whole run by two workers, on the wall, against its trials."""
    if real("letter") is None:
        return
    run = RunOfLetter()
    contestants = {
        "run letter": run,
        "its training and tuning, over two": lambda: run.training,
    }
    yield Case(
        "the whole command",
        contestants,
        yardstick="its training and tuning, over two",
        most={"run letter": 2.5},
        fewer=5,
    )
    contestants = {
        "run letter": run,
        "first trial": lambda: run.first_trial,
        "imports": imports,
    }
    yield Case(
        "the whole command, and import numpy, scipy.sparse",
        contestants,
        yardstick="imports",
        most={"first trial": 3.0},
        fewer=5,
    )


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
    keys = ["bench", "of", "to"]
    ratios = figures.groupby(keys)["ratio"].median()
    earlier_ratios = before.groupby(keys)["ratio"].median()
    are_speed_ups = figures.groupby(keys)["least"].first()
    sentences = set()
    for (bench, of, to), ratio in ratios.items():
        earlier = earlier_ratios.get((bench, of, to))
        if not earlier:
            continue
        is_speed_up = are_speed_ups[bench, of, to]
        growth = earlier / ratio if is_speed_up else ratio / earlier
        if growth > SLOWER:
            sentences.add(
                f"{bench}, {of} to {to}: {ratio:.2f} x; it was {earlier:.2f} x"
            )
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
        reason = reason_of(figure, why)
        if reason:
            print(f"    {reason}")
    return missed


def reason_of(figure: dict[str, Any], why: Mapping[str, str]) -> str:
    """Return what takes most of the time, or nothing if that is unknown.

    Of reasons of several parts of the figure's name, the last one of the list holds.
    """
    name = "{bench}, {of} to {to}".format(**figure)
    reasons = [reason for part, reason in why.items() if part in name]
    return reasons[-1] if reasons else ""


def write_figures(rows: list[dict[str, Any]], path: Path, whole: bool) -> None:
    """Write rows of figures as the `whole` file, or in the place of the same benches.

    Benches that the file lacks come last.
    """
    measured = pd.DataFrame(rows).assign(machine=environment()["cpu"])
    table = measured
    if not whole:
        written = pd.read_csv(path)
        places = list(dict.fromkeys([*written["bench"], *measured["bench"]]))
        others = written[~written["bench"].isin(measured["bench"])]
        table = pd.concat([others, measured]).sort_values(
            "bench", key=lambda benches: benches.map(places.index), kind="stable"
        )
    table.to_csv(path, index=False, lineterminator="\n")


def slower(name: str, base: Path, rounds: int) -> set[str]:
    """Return what is slower here than in another checkout, if it is so twice."""
    if _slower_once(name, base, rounds):
        return _slower_once(name, base, rounds)
    return set()


def _slower_once(name: str, base: Path, rounds: int) -> set[str]:
    """Measure a bench here and in another checkout in turns; return what is slower."""
    here = []
    there = []
    for _ in range(TURNS):
        there.append(_measured_in(base, name, rounds))
        here.append(_measured_in(ROOT, name, rounds))
    return longer(pd.concat(here), pd.concat(there))


def _measured_in(checkout: Path, name: str, rounds: int) -> pd.DataFrame:
    """Measure a bench by the code of a checkout, and restore its figures."""
    figures = checkout / BENCH.relative_to(ROOT)
    committed = figures.read_bytes()
    python = (checkout / ".venv/bin/python").absolute()
    options = ["--only", name, "--rounds", str(rounds), "--write"]
    try:
        # Without other benches, whose figures would be kept.
        figures.write_text(",".join(pd.read_csv(figures).columns) + "\n")
        # It fails where a target is missed.
        subprocess.run(
            [python, "-m", "scripts.bench", *options], cwd=checkout, stdout=DEVNULL
        )
        return pd.read_csv(figures)
    finally:
        figures.write_bytes(committed)


def compare_with(base: Path, chosen: list[str], rounds: int) -> int:
    """Print which benches are slower here than in a checkout; return the exit code."""
    sentences: list[str] = []
    for name in chosen:
        sentences += slower(name, base, rounds)
    title = "slower, twice:" if sentences else "nothing is slower, twice"
    print(title, *sentences, sep="\n  ")
    return int(bool(sentences))


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
    # Of fits that are cut short to be timed.
    warnings.simplefilter("ignore", ConvergenceWarning)
    chosen = [name for name in BENCHES if options.only in name]
    if options.base:
        sys.exit(compare_with(options.base, chosen, options.rounds))
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
