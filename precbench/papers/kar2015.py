"""The theorems of kar2015 on data whose optimum is known: bound beside measured value.

Theorems 7 and 9 and Corollaries 8 and 10 are explicit bounds of the perceptrons' mistakes.
Theorems 12, 13 and 15 hold up to a constant that the paper leaves open: for them the smallest
constant that makes the inequality true is given, and what the theorem says is that it stays
bounded when the batches grow.
"""

import functools
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from precbench.data import Dataset
from precbench.errors import InputError
from precbench.experiment import Trial
from precbench.experiment.plan import Plan
from precbench.experiment.samples import training_rows
from precbench.losses import SURROGATES, margins, prec_loss
from precbench.store import Store
from precbench.topk import resolve_k

__all__ = ["write_bounds"]

DELTA = 0.05
_SCALES = np.geomspace(0.1, 1000, 41)
_WEIGHTS = 40
_SAMPLES = 200
_SEED = 20150706


def write_bounds(plan: Plan, store: Store) -> pd.DataFrame:
    """Compare the records of a plan with the theorems and write ``bounds.csv``.

    Parameters
    ----------
    plan : Plan
        Of mini-batch solvers in the stored order, with a checkpoint after every batch, on data
        sets with a known optimum.
    store : Store

    Returns
    -------
    pandas.DataFrame
        Columns ``theorem, quantity, solver, dataset, split, batch_size, n_batches, measured,
        bound`` (for Theorems 12, 13, 15 without the term of unknown constant), ``constant`` (the
        smallest that will do), ``holds`` (for the explicit bounds) and ``possible`` (the most
        mistakes that the batches allow: a larger bound says nothing).
    """
    wanted = set(plan.experiment.theorems or ())
    rows: list[dict[str, Any]] = []
    for dataset in plan.datasets.values():
        if dataset.optimum is None:
            raise InputError(f"theorems need a data set with a known optimum, not {dataset.name}")
        if 12 in wanted:
            sizes = sorted({t.params["batch_size"] for t, _ in plan.trials})
            k = plan.trials[0][0].params["k"]
            rows += _uniform_convergence(dataset, k, sizes)
    for trial, key in plan.trials:
        record = store.read(key)
        if record is not None and record["status"] == "ok":
            stream = _Stream(trial, plan.datasets[trial.dataset.name], store.arrays(key))
            for theorem, compare in _COMPARISONS.get(trial.solver, ()):
                if theorem in wanted:
                    rows += compare(stream)
    table = pd.DataFrame(rows)
    table.to_csv(store.folder / "bounds.csv", index=False)
    return table


class _Stream:
    """The batches that a trial went through, and the weights after each of them."""

    def __init__(self, trial: Trial, dataset: Dataset, arrays: dict[str, NDArray]):
        if trial.params["shuffle"] is not False or trial.params["epochs"] != 1:
            raise InputError("theorems need shuffle: false and epochs: 1, one pass over a stream")
        part, _ = training_rows(trial, dataset)
        self.trial = trial
        self.X: Any = dataset.X
        self.y = dataset.y
        self.n_pos = dataset.n_pos
        self.optimum: Any = dataset.optimum
        self.k: float | int = trial.params["k"]
        self.batch_size: int = trial.params["batch_size"]
        starts = range(0, len(part.y), self.batch_size)
        self.batches = [
            (part.X[i : i + self.batch_size], part.y[i : i + self.batch_size]) for i in starts
        ]
        self.n_batches = len(self.batches)
        if len(arrays["coef"]) != self.n_batches + 1:
            raise InputError(
                f"theorems need a checkpoint after each of the {self.n_batches} batches, found "
                f"{len(arrays['coef']) - 1}: it needs checkpoints: every"
            )
        self.weights = arrays["coef"]
        self.mistakes = np.diff(arrays["mistakes"])
        self.radius = max(float(np.linalg.norm(X, axis=1).max()) for X, _ in self.batches)

    def with_positives(self) -> list[tuple[NDArray, NDArray, int]]:
        """Return the batches that have a positive, each with its k."""
        return [
            (X, y, resolve_k(self.k, int(np.sum(y > 0)))) for X, y in self.batches if (y > 0).any()
        ]

    def row(self, theorem: str, quantity: str, measured: float, bound: float, **more: Any):
        return {
            "theorem": theorem,
            "quantity": quantity,
            "solver": self.trial.label,
            "dataset": self.trial.dataset.name,
            "split": self.trial.split.index,
            "batch_size": self.batch_size,
            "n_batches": self.n_batches,
            "measured": measured,
            "bound": bound,
            **more,
        }


def _mistake_bound(stream: _Stream, surrogate: str, theorem: str) -> Iterator[dict[str, Any]]:
    """Theorems 7 and 9: mistakes <= min over w of (||w|| R sqrt(4k) + sqrt(L(w)))^2.

    The minimum is taken over multiples of the known optimum, so the true bound may be smaller.
    """
    optimum = stream.optimum
    batches = stream.with_positives()
    k = max(k for _, _, k in batches)
    reach = stream.radius * np.sqrt(4 * k)
    scores = [(X @ optimum, y, k) for X, y, k in batches]
    bounds = [
        (c * reach + np.sqrt(sum(SURROGATES[surrogate].value(c * s, y, k) for s, y, k in scores)))
        ** 2
        for c in _SCALES
    ]
    total = float(stream.mistakes.sum())
    best = float(min(bounds))
    possible = sum(k for _, _, k in batches)
    yield stream.row(
        f"Theorem {theorem}", "mistakes", total, best, holds=total <= best, possible=possible
    )
    kind = "average" if surrogate == "avg" else "strong"
    margin = min(getattr(margins(s, y, k), kind) for s, y, k in scores if (y < 0).any())
    corollary = {"7": "8", "9": "10"}[theorem]
    if margin > 0:
        bound = float((reach / margin) ** 2)
        name = f"Corollary {corollary}"
        yield stream.row(name, "mistakes", total, bound, holds=total <= bound, possible=possible)


def _online_to_batch(stream: _Stream) -> Iterator[dict[str, Any]]:
    """Theorem 13, with Delta_t / (kappa n_pos(X_t)), the loss of w_{t-1} on batch t.

    The ensemble is w_1, ..., w_{T-1}: at w_0 = 0 all scores are tied.
    """
    X, y = stream.X, stream.y
    k = resolve_k(stream.k, stream.n_pos)
    population = np.mean([prec_loss(X @ w, y, k) / k for w in stream.weights[1:-1]])
    online = np.mean(
        [
            n_false / resolve_k(stream.k, int(np.sum(labels > 0)))
            for n_false, (_, labels) in zip(stream.mistakes[1:], stream.batches[1:], strict=True)
            if (labels > 0).any()
        ]
    )
    rate = np.sqrt(np.log(stream.n_batches / DELTA) / stream.batch_size)
    constant = max(0.0, (population - online) / rate)
    yield stream.row(
        "Theorem 13", "mean prec@k loss", float(population), float(online), constant=constant
    )


def _convergence(stream: _Stream) -> Iterator[dict[str, Any]]:
    """Theorem 15: the avg surrogate of the returned mean against that of w* in the ball."""
    X, y = stream.X, stream.y
    k = resolve_k(stream.k, stream.n_pos)
    value = SURROGATES["avg"].value
    radius = stream.trial.params["radius"] or np.inf
    scores = X @ stream.optimum
    best = min(value(c * scores, y, k) for c in {*_SCALES[radius >= _SCALES], min(radius, 1e3)})
    found = value(X @ stream.weights[-1], y, k) / k
    rate = np.sqrt(np.log(stream.n_batches / DELTA) / stream.batch_size)
    rate += np.sqrt(1 / stream.n_batches)
    constant = max(0.0, (found - best / k) / rate)
    yield stream.row("Theorem 15", "avg surrogate / k", found, best / k, constant=constant)


_COMPARISONS: dict[str, list[tuple[int, Callable[[_Stream], Iterator[dict[str, Any]]]]]] = {
    "perceptron-avg": [
        (7, functools.partial(_mistake_bound, surrogate="avg", theorem="7")),
        (13, _online_to_batch),
    ],
    "perceptron-max": [
        (9, functools.partial(_mistake_bound, surrogate="max", theorem="9")),
        (13, _online_to_batch),
    ],
    "sgd-avg": [(15, _convergence)],
}


def _uniform_convergence(
    dataset: Dataset, k: float | int, sizes: list[int]
) -> Iterator[dict[str, Any]]:
    """Theorem 12: how far samples of size b stray from the population, at the worst of many w.

    W is a finite set of directions around the optimum, at norm 10; the deviation is the quantile
    1 - delta over samples without replacement that have a positive.
    """
    rng = np.random.default_rng(_SEED)
    X: Any = dataset.X
    directions = rng.standard_normal((_WEIGHTS, X.shape[1])) * rng.random((_WEIGHTS, 1))
    weights = directions / np.sqrt(X.shape[1]) + dataset.optimum
    weights *= 10 / np.linalg.norm(weights, axis=1, keepdims=True)
    scores, y = X @ weights.T, dataset.y
    measures: dict[str, Callable[..., float]] = {"prec@k loss": prec_loss}
    measures |= {f"{name} surrogate": SURROGATES[name].value for name in ("ramp", "avg", "max")}
    for quantity, measure in measures.items():

        def of(rows: Any, measure: Callable[..., float] = measure) -> NDArray[np.float64]:
            count = resolve_k(k, int(np.sum(y[rows] > 0)))
            return np.array([measure(s, y[rows], count) / count for s in scores[rows].T])

        population = of(slice(None))
        for size in sizes:
            deviations = [
                np.abs(of(rows) - population).max()
                for rows in (rng.choice(len(y), size, replace=False) for _ in range(_SAMPLES))
                if 0 < np.sum(y[rows] > 0) < size
            ]
            worst = float(np.quantile(deviations, 1 - DELTA))
            yield {
                "theorem": "Theorem 12",
                "quantity": quantity,
                "solver": "",
                "dataset": dataset.name,
                "split": -1,
                "batch_size": size,
                "n_batches": 1,
                "measured": worst,
                "bound": 0.0,
                "constant": worst / np.sqrt(np.log(1 / DELTA) / size),
            }
