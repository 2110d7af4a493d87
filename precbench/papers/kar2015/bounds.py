"""The theorems of kar2015 beside measured values, on data whose optimum is known."""

# Theorems 7 and 9 and Corollaries 8 and 10 bound the mistakes of the perceptrons explicitly.
# Theorems 12, 13 and 15 hold up to a constant that the paper leaves open. For them the smallest
# sufficient constant is computed, which should stay bounded as batches grow.

import itertools
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Annotated, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, PositiveFloat

from precbench.data import Dataset, load_dataset
from precbench.data.splits import split_rows, validation_split
from precbench.errors import InputError
from precbench.losses import SURROGATES, Surrogate, margins, prec_loss
from precbench.seeds import trial_seed
from precbench.solvers import LinearRanker, PerceptronAtK, SGDAtK
from precbench.studies import AtLeastTwo, Count, DatasetNames, Seed, Sizes, rows_of, table_of
from precbench.topk import ceil_share, resolve_k

DELTA = 0.05
_MULTIPLES = np.geomspace(0.1, 1000, 41)  # of the known optimum


@table_of("theorem", "measure", "solver", "dataset", "split", "batch_size", "quantity", "value")
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
    """Compare Theorems 7, 9, 12, 13, 15 and Corollaries 8, 10 with measured values."""
    # Each solver makes one pass over the training set of a split, 70 % of the rows in random order,
    # so that the batches of the theorems are those of the solver. `k` is kappa, a fraction of the
    # positives of a batch. A bound that exceeds the ``trivial`` one, the most mistakes that the
    # batches allow, is vacuous. Bounds with an open constant have an ``explicit part`` and a
    # ``rate``, the term without its constant, and the smallest sufficient ``constant``.
    #
    # Theorem 13 prints Delta_t / b, which is read as Delta_t / (kappa n_+(X_t)), the loss
    # prec@kappa of w_{t-1} on batch t. Theorems 7 and 9 take the largest k of a batch, and the
    # minimum over all w, here over multiples of the known optimum, so that the true bound may be
    # smaller.
    for name in datasets:
        dataset = _with_optimum(name)
        rng = np.random.default_rng(seed)
        deviations = _deviations(dataset, k, sample_sizes, weights, samples, radius, rng)
        for measure, by_size in deviations.items():
            for size, values in zip(sample_sizes, by_size, strict=True):
                # There is no solver and no split.
                yield from rows_of(
                    _rate(values, size), "Theorem 12", measure, "", name, np.nan, size
                )
        rng = np.random.default_rng([seed, 22])  # its own stream of random numbers
        for size in sample_sizes:
            averages = _top_averages(dataset, k, size, samples, rng)
            yield from rows_of(averages, "Lemma 22", "top of the list", "", name, np.nan, size)
        population = _Population(dataset, k)
        # Theorems 7 to 15 and their lemmas; size is that of a batch.
        for split, size in itertools.product(range(splits), batch_sizes):
            stream = _stream(population, size, split, splits)
            for solver, statements in _statements(stream, eta0, radius):
                for theorem, measure, quantities in statements:
                    yield from rows_of(quantities, theorem, measure, solver, name, split, size)


@table_of("theorem", "solver", "batch_size", "quantity", "value")
def precision_rates(
    dataset: str,
    k: Annotated[float, Field(gt=0, le=1)],
    lengths: Sizes,  # b
    repetitions: AtLeastTwo,  # streams of each length
    eta0: PositiveFloat,
    radius: PositiveFloat,  # of the ball in which w lies
    seed: Seed,
) -> Iterator[tuple[str, str, int, str, float]]:
    """Measure whether the open constants of Theorems 13, 15 and Corollary 14 stay bounded."""
    # Streams of b batches of b rows are drawn independently from all rows, with replacement; as b
    # grows all terms of the bounds fall together. `eta0` is the step on the surrogate divided by k,
    # of which the theorem speaks: SGD@k, which sums over k rows, gets it divided by the k of an
    # average batch.
    data = _with_optimum(dataset)
    population = _Population(data, k)
    rng = np.random.default_rng(seed)
    share_of_pos = np.mean(data.y > 0)
    for length in lengths:
        step = eta0 / math.ceil(k * share_of_pos * length)  # over the k of an average batch
        constants: dict[tuple[str, str], list[float]] = {}  # by theorem and solver
        for _ in range(repetitions):
            drawn = rng.integers(len(data.y), size=length**2)  # b batches of b rows
            X, y = np.asarray(data.X)[drawn], data.y[drawn]
            for key, constant in _constants(_Stream(population, X, y, length), step, radius):
                constants.setdefault(key, []).append(constant)
        yield from ((*key, length, "constant", float(np.mean(c))) for key, c in constants.items())


def _with_optimum(name: str) -> Dataset:
    dataset = load_dataset(name)
    if dataset.optimum is None:
        raise InputError(f"data set {name} has no known optimum; use margin or margin-noisy")
    return dataset


@dataclass(frozen=True)
class _Population:
    """All rows of a data set with a known optimum w*, and kappa; losses are divided by their k."""

    data: Dataset
    k: float

    @property
    def scores_of_optimum(self) -> NDArray[np.float64]:
        X, optimum = self.data.X, self.data.optimum
        return X @ optimum  # type: ignore[operator]

    @cached_property
    def surrogate_at_multiples(self) -> NDArray[np.float64]:  # at c w*, c in `_MULTIPLES`
        scores = self.scores_of_optimum
        return np.array([self.measured("avg surrogate", c * scores) for c in _MULTIPLES])

    def measured(self, measure: str, scores: NDArray[np.float64]) -> float:
        y = self.data.y
        return _measures(self.k)[measure](scores, y) / _count(self.k, y)


def _count(k: float, y: NDArray[np.float64]) -> int:  # k of rows with these labels
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
        parts = (slice(i, i + self.batch_size) for i in range(0, len(self.y), self.batch_size))
        return [
            (self.X[part], self.y[part], _count(self.population.k, self.y[part])) for part in parts
        ]

    @property
    def n_batches(self) -> int:
        return -(-len(self.y) // self.batch_size)

    @property
    def uniform_rate(self) -> float:
        """How far, by Theorem 12 and up to its constant, any of the batches deviates at most."""
        return math.sqrt(math.log(self.n_batches / DELTA) / self.batch_size)


def _stream(population: _Population, batch_size: int, split: int, splits: int) -> _Stream:
    """Return the training rows of a split as a stream, in the order of an experiment."""
    dataset = population.data
    seed = trial_seed(0, dataset.name, split)  # as in an experiment with the seed 0
    train = split_rows(dataset, "random", split, n_splits=splits, seed=seed).train
    parts = validation_split(dataset.y[train], 0.2, [seed, "validation"])  # to fit, to validate
    train = train[np.concatenate(parts)]  # the 20 % to validate come last
    return _Stream(population, dataset.X[train], dataset.y[train], batch_size)


def _path(
    stream: _Stream, solver: PerceptronAtK
) -> tuple[Sequence[NDArray[np.float64]], NDArray[np.int64]]:
    """Train for an epoch; return w_0, w_1, ... and the mistakes on each batch."""
    path: list[tuple[NDArray[np.float64], int]] = []  # w, and the mistakes so far
    solver.fit_pieces(
        stream.X.shape[1],
        lambda: ((X, y, np.arange(len(y), dtype=np.int32)) for X, y, _k in stream.batches),
        trace=lambda solver: path.append((solver.coef_, solver.n_mistakes_)),  # after each piece
    )
    weights, counts = zip(*path, strict=True)
    return weights, np.diff(counts)


_Statement = tuple[str, str, Mapping[str, float]]  # theorem, measure, values by quantity


def _statements(
    stream: _Stream, eta0: float, radius: float
) -> Iterator[tuple[str, Iterator[_Statement]]]:
    """Train each solver on the stream, and yield its name with the statements about its weights."""
    options: dict[str, Any] = {"k": stream.population.k, "batch_size": stream.batch_size}
    options |= {"epochs": 1, "shuffle": False}
    for variant, theorem, corollary in (("avg", 7, 8), ("max", 9, 10)):
        weights, mistakes = _path(stream, PerceptronAtK(variant, **options))
        bounds = _mistake_bounds(stream, mistakes, variant, theorem, corollary)
        steps = _steps(stream, np.array(weights), mistakes, variant)
        online = _online_to_batch(stream, weights[1:-1], mistakes[1:])  # w_1 to w_(T-1)
        yield f"perceptron-{variant}", itertools.chain(bounds, steps, online)
    sgd = SGDAtK("avg", eta0=eta0, radius=radius, **options).fit(stream.X, stream.y)
    yield "sgd-avg", _convergence(stream, sgd, radius)


def _mistake_bounds(
    stream: _Stream, mistakes: NDArray[np.int64], surrogate: str, theorem: int, corollary: int
) -> Iterator[_Statement]:
    """Yield the number of mistakes, and its bounds by Theorem 7 or 9 and by Corollary 8 or 10."""
    # Theorem: at most (||w|| R sqrt(4 k) + sqrt(sum_t L_t(w)))^2 for each w, here the multiples of
    # w*, whose norm is 1. L_t is the surrogate on batch t (7: avg, 9: max), R the largest norm of a
    # row. Corollary: at most 4 k R^2 / margin^2, with the least margin of w* on a batch.
    optimum: Any = stream.population.data.optimum
    batches = [(X @ optimum, y, k) for X, y, k in stream.batches if k]  # scores, labels, k
    loss = _measures(stream.population.k)[f"{surrogate} surrogate"]
    most_k = max(k for *_, k in batches)
    reach = float(np.linalg.norm(stream.X, axis=1).max()) * math.sqrt(4 * most_k)  # R sqrt(4 k)
    bound = min(
        (c * reach + math.sqrt(sum(loss(c * scores, y) for scores, y, _ in batches))) ** 2
        for c in _MULTIPLES  # w = c w*
    )
    values = {
        "measured": float(mistakes.sum()),
        "bound": float(bound),
        "trivial": float(sum(k for *_, k in batches)),
    }
    yield f"Theorem {theorem}", "mistakes", values
    kind = {"avg": "average", "max": "strong"}[surrogate]  # the margin of the corollary
    margin = min(getattr(margins(scores, y, k), kind) for scores, y, k in batches if (y < 0).any())
    if margin > 0:  # else the corollary says nothing
        yield f"Corollary {corollary}", "mistakes", values | {"bound": (reach / margin) ** 2}


def _steps(
    stream: _Stream, weights: NDArray[np.float64], mistakes: NDArray[np.int64], surrogate: str
) -> Iterator[_Statement]:
    """Yield how Lemma 18 and Lemma 19 (avg) or 20 (max) hold on the batches with mistakes."""
    # Delta_t are the mistakes on batch t, R the largest norm of a row. Lemma 18: the largest ratio
    # of both sides of ||w_t||^2 - ||w_{t-1}||^2 <= 4 k R^2 Delta_t. Lemmas 19 and 20: the largest
    # excess of the left side of Delta_t - L_t(w) <= <w_t - w_{t-1}, w>, over multiples w of w*.
    optimum: Any = stream.population.data.optimum
    largest_norm = float(np.linalg.norm(stream.X, axis=1).max())  # R
    growth = np.diff(np.sum(weights**2, axis=1))  # of ||w||^2, by each batch
    allowed = 4 * largest_norm**2 * mistakes * [k for *_, k in stream.batches]  # mistakes: Delta_t
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
    """Yield Theorem 13: the mean loss of the w_t on all rows, and that on the batch after each."""
    # The first is at most the second plus C `uniform_rate`; both are shares of k. w_0 = 0, where
    # all scores tie, is left out, and so is the first batch; `mistakes` are those on the others.
    population = stream.population
    losses = [population.measured("prec@k loss", population.data.X @ w) for w in weights]
    batches = zip(mistakes, stream.batches[1:], strict=True)
    online = float(np.mean([n_mistakes / k for n_mistakes, (_, _, k) in batches if k]))
    measured = float(np.mean(losses))
    yield "Theorem 13", "prec@k loss", _open_ended(measured, online, stream.uniform_rate)


def _convergence(stream: _Stream, solver: LinearRanker, radius: float) -> Iterator[_Statement]:
    """Yield Theorem 15: the avg surrogate of the returned w, and the least of multiples of w*."""
    # The first is at most that of the best w in the ball plus C (`uniform_rate` + sqrt(1 / T)).
    population = stream.population
    at_edge = min(radius, 1e3) * population.scores_of_optimum  # of w* with the norm radius, or 1e3
    inside = population.surrogate_at_multiples[radius >= _MULTIPLES]  # at c w* in the ball
    best = min(population.measured("avg surrogate", at_edge), *inside)  # the explicit part
    measured = population.measured("avg surrogate", population.data.X @ solver.coef_)
    rate = stream.uniform_rate + math.sqrt(1 / stream.n_batches)
    yield "Theorem 15", "avg surrogate", _open_ended(measured, best, rate)


def _open_ended(measured: float, explicit: float, rate: float) -> dict[str, float]:
    """Return the quantities of a bound ``explicit + constant rate``, with the least constant."""
    constant = max(0.0, (measured - explicit) / rate)
    return {"measured": measured, "explicit part": explicit, "rate": rate, "constant": constant}


def _constants(
    stream: _Stream, eta0: float, radius: float
) -> Iterator[tuple[tuple[str, str], float]]:
    """Yield (theorem, solver) and the least constant with which it holds on a stream."""
    for solver, statements in _statements(stream, eta0, radius):
        for theorem, _, quantities in statements:
            if "rate" not in quantities:
                continue  # the statement has no open constant
            yield (theorem, solver), quantities["constant"]
            if (theorem, solver) == ("Theorem 13", "perceptron-avg"):  # its form with Theorem 7
                yield (
                    ("Corollary 14", solver),
                    _constant_of_corollary_14(stream, quantities["measured"]),
                )


def _constant_of_corollary_14(stream: _Stream, loss: float) -> float:
    """Return the least constant C with which Corollary 14 holds at the multiples w = c w*."""
    # loss <= (sqrt(L(w)) + C (||w|| R / sqrt(T) + `uniform_rate`))^2, L: avg, R: largest row norm.
    optimum: Any = stream.population.data.optimum
    reach = float(np.linalg.norm(optimum) * np.linalg.norm(stream.X, axis=1).max())  # ||w*|| R
    needed = (
        (math.sqrt(loss) - math.sqrt(surrogate))
        / (c * reach / math.sqrt(stream.n_batches) + stream.uniform_rate)
        for c, surrogate in zip(_MULTIPLES, stream.population.surrogate_at_multiples, strict=True)
    )
    return max(0.0, *needed)


_Measure = Callable[[NDArray[np.float64], NDArray[np.float64]], float]


def _measures(k: float) -> dict[str, _Measure]:
    """Return functions of scores and labels: the loss prec@k and its surrogates, as sums."""

    def measure(surrogate: Surrogate) -> _Measure:  # binds the surrogate of one turn
        return lambda scores, y: surrogate.evaluate(scores, y > 0)[0]  # without its gradient

    surrogates = {name: replace(SURROGATES[name], k=k) for name in ("ramp", "avg", "max")}
    return {
        "prec@k loss": lambda scores, y: prec_loss(scores, y, k),
        **{f"{name} surrogate": measure(surrogate) for name, surrogate in surrogates.items()},
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
    """Return, by measure and sample size, the largest deviation over many w of each sample."""
    # Theorem 12 bounds how far, for all w, a loss on a sample is from that on all rows, each over
    # its k. Here all w are near the optimum, then scaled to the norm `radius`. Samples are drawn
    # with replacement: without it deviations would fall too fast as they grow towards all rows.
    X, y = np.asarray(dataset.X), dataset.y
    optimum: Any = dataset.optimum
    directions = rng.standard_normal((weights, X.shape[1])) * rng.random((weights, 1))
    W = directions / math.sqrt(X.shape[1]) + optimum
    W *= radius / np.linalg.norm(W, axis=1, keepdims=True)
    scores = X @ W.T  # a column for each w
    measures = _measures(k)

    def losses(rows: Any) -> NDArray[np.float64]:  # a row for each measure, a column for each w
        labels = y[rows]
        count = resolve_k(k, int(np.sum(labels > 0)))  # k of these rows
        columns = np.ascontiguousarray(scores[rows].T)
        return np.array([[f(s, labels) / count for s in columns] for f in measures.values()])

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
                f"sample_sizes: no sample of {size} rows of {dataset.name} has both classes; "
                "give larger sizes"
            )
        by_size.append(np.array(deviations))
    return {name: [at_size[:, i] for at_size in by_size] for i, name in enumerate(measures)}


def _top_averages(
    dataset: Dataset, share: float, size: int, samples: int, rng: np.random.Generator
) -> dict[str, float]:
    """Compare means over the top of samples with that over the top of all rows (Lemma 22)."""
    # The means of a function h over the best kappa b of b rows and the best share kappa of all rows
    # differ by at most 4 sqrt(log(2 / delta) / (kappa b)). Here w* ranks, and h marks negatives.
    scores = _Population(dataset, share).scores_of_optimum
    h = (dataset.y < 0)[np.argsort(-scores, kind="stable")]  # from the highest score down
    ranks = np.sort(rng.integers(len(h), size=(samples, size)), axis=1)  # of drawn rows, best first
    top = h[ranks[:, : ceil_share(share, size)]].mean(axis=1)  # one for each sample
    deviations = np.abs(top - h[: ceil_share(share, len(h))].mean())
    bound = 4 * math.sqrt(math.log(2 / DELTA) / (share * size))
    return {"measured": float(np.quantile(deviations, 1 - DELTA)), "bound": bound, "trivial": 1.0}


def _rate(deviations: NDArray[np.float64], size: int) -> dict[str, float]:
    """Return a quantile of deviations, the rate of Theorem 12 and its constant, their quotient."""
    measured = float(np.quantile(deviations, 1 - DELTA))
    rate = math.sqrt(math.log(1 / DELTA) / size)
    return {"measured": measured, "rate": rate, "constant": measured / rate}
