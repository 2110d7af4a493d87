"""The theorems of kar2015 beside measured values, on data whose optimum is known."""

# Theorems 7 and 9 and Corollaries 8 and 10 bound the mistakes of the perceptrons
# explicitly. Theorems 12, 13 and 15 hold up to a constant that the paper leaves open.
# For these theorems the smallest sufficient constant is computed, which should stay
# bounded as batches grow.

import itertools
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Annotated, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, PositiveFloat

from precbench.core.errors import InputError
from precbench.core.seeds import trial_seed
from precbench.core.studies import (
    AtLeastTwo,
    Count,
    DatasetNames,
    Seed,
    Sizes,
    rows_of,
    table_of,
)
from precbench.data import Dataset, load_dataset
from precbench.data.splits import split_rows, validation_split
from precbench.ranking.losses import SURROGATES, Surrogate, margins, prec_loss
from precbench.ranking.topk import ceil_share, resolve_k
from precbench.solvers import LinearRanker, PerceptronAtK, SGDAtK

DELTA = 0.05  # the probability with which a bound may fail
# c, for the multiples c w* of the known optimum w*
_MULTIPLES = np.geomspace(0.1, 1000, 41)


@table_of(
    "theorem",
    "measure",
    "solver",
    "dataset",
    "split",
    "batch_size",
    "quantity",
    "value",
)
def precision_bounds(
    datasets: DatasetNames,
    k: Annotated[float, Field(gt=0, le=1)],
    batch_sizes: Annotated[list[Count], Field(min_length=1)],  # b
    splits: Count,
    eta0: PositiveFloat,  # step size of SGD@k
    radius: PositiveFloat,  # of the ball in which w lies
    sample_sizes: Sizes,  # for Theorem 12 and Lemma 22
    weights: Count,  # how many w, for Theorem 12
    samples: AtLeastTwo,  # of each size
    seed: Seed,
) -> Iterator[tuple[str, str, str, str, float, float, str, float]]:
    """Compare Theorems 7, 9, 12, 13, 15, their corollaries and lemmas with measured values."""
    # Each solver makes one pass over the training set of a split, 70 % of the rows in
    # random order, so that the batches of the theorems are those of the solver. `k` is
    # kappa, a fraction of the positives of a batch. A bound above the ``trivial``
    # bound, the most mistakes that the batches allow, is vacuous. A bound with an open
    # constant is the ``explicit part`` plus ``constant`` times ``rate``; given is the
    # smallest sufficient constant.
    for name in datasets:
        dataset = _with_optimum(name)
        rng = np.random.default_rng(seed)
        deviations = _deviations(
            dataset, k, sample_sizes, weights, samples, radius, rng
        )
        for measure, by_size in deviations.items():
            for size, values in zip(sample_sizes, by_size, strict=True):
                # without a solver and a split
                yield from rows_of(
                    _rate(values, size), "Theorem 12", measure, "", name, np.nan, size
                )
        # a stream of random numbers for Lemma 22 alone
        rng = np.random.default_rng([seed, 22])
        for size in sample_sizes:
            averages = _top_averages(dataset, k, size, samples, rng)
            yield from rows_of(
                averages, "Lemma 22", "top of the list", "", name, np.nan, size
            )
        population = _Population(dataset, k)
        # Theorems 7 to 15 except 12, and their lemmas; `size` is the number of rows of
        # a batch.
        for split, size in itertools.product(range(splits), batch_sizes):
            stream = _stream(population, size, split, splits)
            for solver, statements in _statements(stream, eta0, radius):
                for theorem, measure, quantities in statements:
                    yield from rows_of(
                        quantities, theorem, measure, solver, name, split, size
                    )


@table_of("theorem", "solver", "batch_size", "quantity", "value")
def precision_rates(
    dataset: str,
    # kappa, a fraction of the positives of a batch
    k: Annotated[float, Field(gt=0, le=1)],
    lengths: Sizes,  # b
    repetitions: AtLeastTwo,  # streams of each length
    eta0: PositiveFloat,
    radius: PositiveFloat,  # of the ball in which w lies
    seed: Seed,
) -> Iterator[tuple[str, str, int, str, float]]:
    """Measure whether the open constants of Theorems 13, 15 and Corollary 14 stay bounded."""
    # Streams of b batches of b rows are drawn from all rows, with replacement; as b
    # grows all terms of the bounds fall together. `eta0` is the step of Theorem 15, on
    # a surrogate divided by the k rows of a batch. SGD@k does not divide by k, so its
    # step is divided instead.
    data = _with_optimum(dataset)
    population = _Population(data, k)
    rng = np.random.default_rng(seed)
    share_of_pos = np.mean(data.y > 0)
    for length in lengths:
        # k: that of an average batch
        step = eta0 / math.ceil(k * share_of_pos * length)
        constants: dict[tuple[str, str], list[float]] = {}  # by theorem and solver
        for _ in range(repetitions):
            drawn = rng.integers(len(data.y), size=length**2)  # b batches of b rows
            X, y = np.asarray(data.X)[drawn], data.y[drawn]
            for key, constant in _constants(
                _Stream(population, X, y, length), step, radius
            ):
                constants.setdefault(key, []).append(constant)
        yield from (
            (*key, length, "constant", float(np.mean(c)))
            for key, c in constants.items()
        )


def _with_optimum(name: str) -> Dataset:  # refuses a data set whose optimum is unknown
    dataset = load_dataset(name)
    if dataset.optimum is None:
        raise InputError(
            f"data set {name} has no known optimum; use margin or margin-noisy"
        )
    return dataset


@dataclass(frozen=True)
class _Population:
    """All rows of a data set with a known optimum w*, and kappa.

    K as a share of the positives.
    """

    data: Dataset
    k: float  # kappa

    @property
    def scores_of_optimum(self) -> NDArray[np.float64]:
        X, optimum = self.data.X, self.data.optimum
        return X @ optimum  # type: ignore[operator]

    @cached_property
    def surrogate_at_multiples(self) -> NDArray[np.float64]:
        # at c w*, c in `_MULTIPLES`
        scores = self.scores_of_optimum
        return np.array(
            [self.measured("avg surrogate", c * scores) for c in _MULTIPLES]
        )

    def measured(self, measure: str, scores: NDArray[np.float64]) -> float:
        y = self.data.y
        # / the k of all rows
        return _measures(self.k)[measure](scores, y) / _count(self.k, y)


def _count(k: float, y: NDArray[np.float64]) -> int:
    # k of rows with these labels; 0: no positive
    n_pos = int(np.sum(y > 0))
    return resolve_k(k, n_pos) if n_pos else 0


class _Stream(NamedTuple):
    """Rows in the order in which a solver sees them, in batches."""

    population: _Population
    X: NDArray[np.floating]
    y: NDArray[np.float64]
    batch_size: int

    @property
    def batches(self) -> list[tuple[NDArray[np.floating], NDArray[np.float64], int]]:
        """Rows, labels and k of each batch; k is 0 without a positive."""
        parts = (
            slice(i, i + self.batch_size)
            for i in range(0, len(self.y), self.batch_size)
        )
        return [
            (self.X[part], self.y[part], _count(self.population.k, self.y[part]))
            for part in parts
        ]

    @property
    def n_batches(self) -> int:
        return -(-len(self.y) // self.batch_size)  # rounded up

    @property
    def uniform_rate(self) -> float:
        """The most by which any batch deviates, by Theorem 12 without its open constant."""
        return math.sqrt(math.log(self.n_batches / DELTA) / self.batch_size)


def _stream(
    population: _Population, batch_size: int, split: int, splits: int
) -> _Stream:
    """Return the training rows of a split as a stream, in the order of an experiment."""
    dataset = population.data
    seed = trial_seed(0, dataset.name, split)  # as in an experiment with the seed 0
    train = split_rows(dataset, "random", split, n_splits=splits, seed=seed).train
    parts = validation_split(dataset.y[train], share=0.2, seed_key=[seed, "validation"])
    train = train[np.concatenate(parts)]  # to fit, then the 20 % to validate
    return _Stream(population, dataset.X[train], dataset.y[train], batch_size)


def _path(
    stream: _Stream, solver: PerceptronAtK
) -> tuple[Sequence[NDArray[np.float64]], NDArray[np.int64]]:
    """Train for an epoch; return w_0, w_1, ... and the mistakes on each batch."""
    # at first and after each batch: w, mistakes
    path: list[tuple[NDArray[np.float64], int]] = []
    solver.fit_pieces(
        stream.X.shape[1],
        lambda: (
            (X, y, np.arange(len(y), dtype=np.int32)) for X, y, _k in stream.batches
        ),
        # None: goes on
        trace=lambda solver: path.append((solver.coef_, solver.n_mistakes_)),
    )
    weights, counts = zip(*path, strict=True)
    return weights, np.diff(counts)


# theorem, measure, values by quantity
_Statement = tuple[str, str, Mapping[str, float]]


def _statements(
    stream: _Stream, eta0: float, radius: float
) -> Iterator[tuple[str, Iterator[_Statement]]]:
    """Train each solver on the stream.

    Yield the solver's name and statements on its weights.
    """
    options: dict[str, Any] = {
        "k": stream.population.k,
        "batch_size": stream.batch_size,
    }
    options |= {"epochs": 1, "shuffle": False}  # one pass in the order of the stream
    for variant, theorem, corollary in (("avg", 7, 8), ("max", 9, 10)):
        weights, mistakes = _path(stream, PerceptronAtK(variant, **options))
        bounds = _mistake_bounds(stream, mistakes, variant, theorem, corollary)
        steps = _steps(stream, np.array(weights), mistakes, variant)
        online = _online_to_batch(stream, weights[1:-1], mistakes[1:])  # w_1 to w_(T-1)
        yield f"perceptron-{variant}", itertools.chain(bounds, steps, online)
    sgd = SGDAtK("avg", eta0=eta0, radius=radius, **options).fit(stream.X, stream.y)
    yield "sgd-avg", _convergence(stream, sgd, radius)


def _mistake_bounds(
    stream: _Stream,
    mistakes: NDArray[np.int64],
    surrogate: str,
    theorem: int,
    corollary: int,
) -> Iterator[_Statement]:
    """Yield the number of mistakes, and its bounds by Theorem 7 or 9 and by Corollary 8 or 10."""
    # Theorem: at most (||w|| R sqrt(4 k) + sqrt(sum_t L_t(w)))^2 for each w. L_t is the
    # surrogate on batch t (7: avg, 9: max), k the largest of a batch, R the largest
    # norm of a row. Only multiples of w* are tried, whose norm is 1: the least bound
    # over all w may be smaller. Corollary: at most 4 k R^2 / margin^2, with the least
    # margin of w* on a batch.
    optimum: Any = stream.population.data.optimum
    # scores, labels, k
    batches = [(X @ optimum, y, k) for X, y, k in stream.batches if k]
    loss = _measures(stream.population.k)[f"{surrogate} surrogate"]
    most_k = max(k for *_, k in batches)
    # R sqrt(4 k)
    reach = float(np.linalg.norm(stream.X, axis=1).max()) * math.sqrt(4 * most_k)
    bound = min(
        (c * reach + math.sqrt(sum(loss(c * scores, y) for scores, y, _ in batches)))
        ** 2
        for c in _MULTIPLES  # w = c w*, so ||w|| is c
    )
    values = {
        "measured": float(mistakes.sum()),
        "bound": float(bound),
        "trivial": float(sum(k for *_, k in batches)),
    }
    yield f"Theorem {theorem}", "mistakes", values
    # margin of batches with both classes
    kind = {"avg": "average", "max": "strong"}[surrogate]
    margin = min(
        getattr(margins(scores, y, k), kind)
        for scores, y, k in batches
        if (y < 0).any()
    )
    if margin > 0:  # else the corollary says nothing
        yield (
            f"Corollary {corollary}",
            "mistakes",
            values | {"bound": (reach / margin) ** 2},
        )


def _steps(
    stream: _Stream,
    weights: NDArray[np.float64],
    mistakes: NDArray[np.int64],
    surrogate: str,
) -> Iterator[_Statement]:
    """Yield how Lemma 18 and Lemma 19 (avg) or 20 (max) hold on the batches with mistakes."""
    # Delta_t are the mistakes on batch t, R the largest norm of a row. Lemma 18: the
    # largest ratio of left to right side of ||w_t||^2 - ||w_{t-1}||^2 <= 4 k R^2
    # Delta_t. Lemmas 19 and 20: for w = c w* the largest left less right side of
    # Delta_t - L_t(w) <= <w_t - w_{t-1}, w>.
    optimum: Any = stream.population.data.optimum
    largest_norm = float(np.linalg.norm(stream.X, axis=1).max())  # R
    growth = np.diff(np.sum(weights**2, axis=1))  # of ||w||^2, by each batch
    # mistakes: Delta_t
    allowed = 4 * largest_norm**2 * mistakes * [k for *_, k in stream.batches]
    ratios = growth[mistakes > 0] / allowed[mistakes > 0]
    yield "Lemma 18", "norm", {"measured": float(ratios.max()), "bound": 1.0}
    loss = _measures(stream.population.k)[f"{surrogate} surrogate"]
    progress = np.diff(weights @ optimum)  # <w_t - w_{t-1}, w*>
    most = max(  # over w = c w*
        mistakes[t] - loss(c * (X @ optimum), y) - c * progress[t]
        for t, (X, y, _) in enumerate(stream.batches)
        for c in _MULTIPLES
        if mistakes[t]
    )
    name = {"avg": "Lemma 19", "max": "Lemma 20"}[surrogate]
    yield name, "progress", {"measured": float(most), "bound": 0.0}


def _online_to_batch(
    stream: _Stream, weights: Sequence[NDArray[np.float64]], mistakes: NDArray[np.int64]
) -> Iterator[_Statement]:
    """Yield Theorem 13.

    Mean losses of the w_t, on all rows and on the batch after each w_t.
    """
    # The first mean is at most the second plus C `uniform_rate`, losses as shares of k.
    # The paper prints Delta_t / b, read here as Delta_t / (kappa n_+(X_t)), the loss
    # prec@kappa of w_{t-1} on batch t. `weights` lack w_0 = 0, where all scores tie,
    # and `mistakes` the first batch.
    population = stream.population
    losses = [
        population.measured("prec@k loss", population.data.X @ w) for w in weights
    ]
    batches = zip(mistakes, stream.batches[1:], strict=True)
    online = float(np.mean([n_mistakes / k for n_mistakes, (_, _, k) in batches if k]))
    measured = float(np.mean(losses))
    yield (
        "Theorem 13",
        "prec@k loss",
        _open_ended(measured, online, stream.uniform_rate),
    )


def _convergence(
    stream: _Stream, solver: LinearRanker, radius: float
) -> Iterator[_Statement]:
    """Yield Theorem 15.

    The avg surrogate at the returned w, and the least at multiples of w*.
    """
    # The surrogate at w is at most C (`uniform_rate` + sqrt(1 / T)) above the least in
    # the ball.
    population = stream.population
    # at c w* with c = radius or 1e3
    at_edge = min(radius, 1e3) * population.scores_of_optimum
    # at c w* in the ball
    inside = population.surrogate_at_multiples[radius >= _MULTIPLES]
    # the explicit part
    best = min(population.measured("avg surrogate", at_edge), *inside)
    measured = population.measured("avg surrogate", population.data.X @ solver.coef_)
    rate = stream.uniform_rate + math.sqrt(1 / stream.n_batches)
    yield "Theorem 15", "avg surrogate", _open_ended(measured, best, rate)


def _open_ended(measured: float, explicit: float, rate: float) -> dict[str, float]:
    """Return the quantities of a bound ``explicit + constant * rate`` with its least constant."""
    constant = max(0.0, (measured - explicit) / rate)
    return {
        "measured": measured,
        "explicit part": explicit,
        "rate": rate,
        "constant": constant,
    }


def _constants(
    stream: _Stream, eta0: float, radius: float
) -> Iterator[tuple[tuple[str, str], float]]:
    """Yield (theorem, solver) and the least constant with which the theorem holds on a stream."""
    for solver, statements in _statements(stream, eta0, radius):
        for theorem, _, quantities in statements:
            if "rate" not in quantities:
                continue  # the statement has no open constant
            yield (theorem, solver), quantities["constant"]
            # Corollary 14 adds Theorem 7
            if (theorem, solver) == ("Theorem 13", "perceptron-avg"):
                constant = _constant_of_corollary_14(stream, quantities["measured"])
                yield ("Corollary 14", solver), constant


def _constant_of_corollary_14(stream: _Stream, loss: float) -> float:
    """Return the least constant C with which Corollary 14 holds at the multiples w = c w*."""
    # loss <= (sqrt(L(w)) + C (||w|| R / sqrt(T) + `uniform_rate`))^2, L: avg, R:
    # largest row norm.
    optimum: Any = stream.population.data.optimum
    # ||w*|| R
    reach = float(np.linalg.norm(optimum) * np.linalg.norm(stream.X, axis=1).max())
    needed = (
        (math.sqrt(loss) - math.sqrt(surrogate))
        / (c * reach / math.sqrt(stream.n_batches) + stream.uniform_rate)
        for c, surrogate in zip(
            _MULTIPLES, stream.population.surrogate_at_multiples, strict=True
        )
    )
    return max(0.0, *needed)  # one C for all w


_Measure = Callable[[NDArray[np.float64], NDArray[np.float64]], float]


def _measures(k: float) -> dict[str, _Measure]:
    """Return functions of scores and labels.

    Prec@k and its surrogates, not divided by k.
    """

    def measure(surrogate: Surrogate) -> _Measure:  # binds the surrogate of one turn
        # without its gradient
        return lambda scores, y: surrogate.evaluate(scores, y > 0)[0]

    surrogates = {
        name: replace(SURROGATES[name], k=k) for name in ("ramp", "avg", "max")
    }
    return {
        "prec@k loss": lambda scores, y: prec_loss(scores, y, k),
        **{
            f"{name} surrogate": measure(surrogate)
            for name, surrogate in surrogates.items()
        },
    }


def _deviations(
    dataset: Dataset,
    k: float,
    sizes: list[int],  # of samples
    weights: int,  # how many w
    samples: int,  # of each size
    radius: float,  # of the w
    rng: np.random.Generator,
) -> dict[str, list[NDArray[np.float64]]]:
    """Return lists by measure.

    For each size the samples' largest deviations over many w.
    """
    # Theorem 12 bounds how far, for all w, a loss on a sample is from the loss on all
    # rows, each divided by its k. Here all w are near the optimum, then scaled to the
    # norm `radius`. Samples are drawn with replacement, else deviations would fall too
    # fast as samples near all rows.
    X, y = np.asarray(dataset.X), dataset.y
    optimum: Any = dataset.optimum
    directions = rng.standard_normal((weights, X.shape[1])) * rng.random((weights, 1))
    W = directions / math.sqrt(X.shape[1]) + optimum  # a row for each w
    W *= radius / np.linalg.norm(W, axis=1, keepdims=True)
    scores = X @ W.T  # a column for each w
    measures = _measures(k)

    def losses(rows: Any) -> NDArray[np.float64]:
        # a row for each measure, a column for each w
        labels = y[rows]
        count = resolve_k(k, int(np.sum(labels > 0)))  # k of these rows
        by_w = np.ascontiguousarray(scores[rows].T)
        return np.array(
            [[f(s, labels) / count for s in by_w] for f in measures.values()]
        )

    population = losses(slice(None))
    by_size = []  # arrays with a row for each sample, a column for each measure
    for size in sizes:
        drawn = (rng.integers(len(y), size=size) for _ in range(samples))
        deviations = [
            np.abs(losses(rows) - population).max(axis=1)
            for rows in drawn
            if 0 < np.sum(y[rows] > 0) < size  # both classes
        ]
        if not deviations:
            raise InputError(
                f"sample_sizes: no sample of {size} rows of {dataset.name} has both"
                " classes; give larger sizes"
            )
        by_size.append(np.array(deviations))
    return {
        name: [at_size[:, i] for at_size in by_size] for i, name in enumerate(measures)
    }


def _top_averages(
    dataset: Dataset, share: float, size: int, samples: int, rng: np.random.Generator
) -> dict[str, float]:
    """Compare means over the top of samples with the mean over the top of all rows (Lemma 22)."""
    # The means of a function h over the best kappa b of b rows and the best share kappa
    # of all rows differ by at most 4 sqrt(log(2 / delta) / (kappa b)). Here w* ranks,
    # and h marks negatives.
    scores = _Population(dataset, share).scores_of_optimum
    # from the highest score down
    h = (dataset.y < 0)[np.argsort(-scores, kind="stable")]
    # of drawn rows, best first
    ranks = np.sort(rng.integers(len(h), size=(samples, size)), axis=1)
    top = h[ranks[:, : ceil_share(share, size)]].mean(axis=1)  # of each sample
    deviations = np.abs(top - h[: ceil_share(share, len(h))].mean())
    bound = 4 * math.sqrt(math.log(2 / DELTA) / (share * size))
    return {
        "measured": float(np.quantile(deviations, 1 - DELTA)),
        "bound": bound,
        "trivial": 1.0,
    }


def _rate(deviations: NDArray[np.float64], size: int) -> dict[str, float]:
    """Return a quantile of deviations, the rate of Theorem 12, and their quotient, the constant."""
    measured = float(np.quantile(deviations, 1 - DELTA))
    rate = math.sqrt(math.log(1 / DELTA) / size)
    return {"measured": measured, "rate": rate, "constant": measured / rate}
