"""The theorems of kar2015 beside measured values, on data whose optimum is known."""

# Theorems 7 and 9 and Corollaries 8 and 10 bound the mistakes of the perceptrons
# explicitly. Theorems 12, 13 and 15 hold up to a constant that the paper leaves open.
# For these theorems the smallest sufficient constant is computed, which should stay
# bounded as batches grow.

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
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
from precbench.ranking.losses import SURROGATES, margins, prec_loss
from precbench.ranking.topk import ceil_share, resolve_k
from precbench.solvers import LinearRanker, PerceptronAtK, SGDAtK

DELTA = 0.05  # the probability with which a bound may fail
# c, for the multiples c w* of the known optimum w*
_MULTIPLES = np.geomspace(0.1, 1000, 41)
_MEASURES = ("prec@k loss", "ramp surrogate", "avg surrogate", "max surrogate")


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
    """Compare Theorems 7, 9, 12, 13, 15 and their corollaries with measured values."""
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
                quantities = _theorem_12(values, size)
                # without a solver and a split
                yield from rows_of(
                    quantities, "Theorem 12", measure, "", name, np.nan, size
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
                for statement in statements:
                    yield from rows_of(
                        statement.quantities,
                        statement.theorem,
                        statement.measure,
                        solver,
                        name,
                        split,
                        size,
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
    """Measure whether the open constants of Theorems 13 to 15 stay bounded."""
    # Streams of b batches of b rows are drawn from all rows, with replacement; as b
    # grows all terms of the bounds fall together. `eta0` is the step of Theorem 15, on
    # a surrogate divided by the k rows of a batch. SGD@k does not divide by k, so its
    # step is divided instead.
    data = _with_optimum(dataset)
    population = _Population(data, k)
    rng = np.random.default_rng(seed)
    share_of_pos = np.mean(data.y > 0)
    for length in lengths:
        k_of_average_batch = math.ceil(k * share_of_pos * length)
        step = eta0 / k_of_average_batch
        by_statement: dict[tuple[str, str], list[float]] = {}  # theorem and solver
        for _ in range(repetitions):
            drawn = rng.integers(len(data.y), size=length**2)  # b batches of b rows
            X = np.asarray(data.X)[drawn]
            stream = _Stream(population, X, data.y[drawn], length)
            for constant in _constants(stream, step, radius):
                key = (constant.theorem, constant.solver)
                by_statement.setdefault(key, []).append(constant.value)
        for (theorem, solver), constants in by_statement.items():
            yield theorem, solver, length, "constant", float(np.mean(constants))


def _with_optimum(name: str) -> Dataset:
    """Load a data set, and refuse it if its optimum is unknown."""
    dataset = load_dataset(name)
    if dataset.optimum is None:
        raise InputError(
            f"data set {name} has no known optimum; use margin or margin-noisy"
        )
    return dataset


@dataclass(frozen=True)
class _Population:
    """All rows of a data set with a known optimum w*."""

    data: Dataset
    k: float  # kappa, a share of the positives

    @property
    def scores_of_optimum(self) -> NDArray[np.float64]:
        X, optimum = self.data.X, self.data.optimum
        return X @ optimum  # type: ignore[operator]

    @cached_property
    def surrogate_at_multiples(self) -> NDArray[np.float64]:
        """The avg surrogate at c w*, for each c of `_MULTIPLES`."""
        scores = self.scores_of_optimum
        return np.array(
            [self.measured("avg surrogate", c * scores) for c in _MULTIPLES]
        )

    def measured(self, measure: str, scores: NDArray[np.float64]) -> float:
        """Return a measure of all rows, divided by their k."""
        y = self.data.y
        return _measured(measure, self.k, scores, y) / _count(self.k, y)


def _measured(
    measure: str, k: float, scores: NDArray[np.float64], y: NDArray[np.float64]
) -> float:
    """Return the loss prec@k or one of its surrogates, not divided by k."""
    if measure == "prec@k loss":
        return prec_loss(scores, y, k)
    surrogate = replace(SURROGATES[measure.removesuffix(" surrogate")], k=k)
    value, _gradient = surrogate.evaluate(scores, y > 0)
    return value


def _count(k: float, y: NDArray[np.float64]) -> int:
    """Return the k of rows with these labels, 0 if none is positive."""
    n_pos = int(np.sum(y > 0))
    return resolve_k(k, n_pos) if n_pos else 0


class _Batch(NamedTuple):
    X: NDArray[np.floating]
    y: NDArray[np.float64]
    k: int  # 0 without a positive


class _Stream(NamedTuple):
    """Rows in the order in which a solver sees them, in batches."""

    population: _Population
    X: NDArray[np.floating]
    y: NDArray[np.float64]
    batch_size: int

    @property
    def batches(self) -> list[_Batch]:
        batches = []
        for start in range(0, len(self.y), self.batch_size):
            rows = slice(start, start + self.batch_size)
            k = _count(self.population.k, self.y[rows])
            batches.append(_Batch(self.X[rows], self.y[rows], k))
        return batches

    @property
    def largest_norm(self) -> float:  # R
        return float(np.linalg.norm(self.X, axis=1).max())

    @property
    def n_batches(self) -> int:
        return math.ceil(len(self.y) / self.batch_size)

    @property
    def uniform_rate(self) -> float:
        """The most by which any batch deviates, but for a constant, by Theorem 12."""
        return math.sqrt(math.log(self.n_batches / DELTA) / self.batch_size)


def _stream(
    population: _Population, batch_size: int, split: int, splits: int
) -> _Stream:
    """Return the training rows of a split, in the order of an experiment."""
    dataset = population.data
    seed = trial_seed(0, dataset.name, split)  # as in an experiment with the seed 0
    train = split_rows(dataset, "random", split, n_splits=splits, seed=seed).train
    parts = validation_split(dataset.y[train], share=0.2, seed_key=[seed, "validation"])
    train = train[np.concatenate(parts)]  # to fit, then the 20 % to validate
    return _Stream(population, dataset.X[train], dataset.y[train], batch_size)


class _Path(NamedTuple):
    """One epoch of a perceptron."""

    weights: Sequence[NDArray[np.float64]]  # w_0, w_1, ...
    mistakes: NDArray[np.int64]  # Delta_1, Delta_2, ...: on each batch


def _path(stream: _Stream, solver: PerceptronAtK) -> _Path:
    """Train for an epoch, and return the weights and the mistakes."""
    weights = []
    counts = []  # of all mistakes so far

    def append_state(solver: PerceptronAtK) -> None:  # at first and after each batch
        weights.append(solver.coef_)
        counts.append(solver.n_mistakes_)

    def pieces() -> Iterator[tuple[NDArray, NDArray, NDArray[np.int32]]]:
        for batch in stream.batches:
            yield batch.X, batch.y, np.arange(len(batch.y), dtype=np.int32)

    solver.fit_pieces(stream.X.shape[1], pieces, trace=append_state)
    return _Path(weights, np.diff(counts))


class _Statement(NamedTuple):
    """What a theorem says of a fit, and what was measured."""

    theorem: str
    measure: str
    quantities: Mapping[str, float]


class _Variant(NamedTuple):
    """A perceptron, and what the paper says of it."""

    surrogate: str
    solver: str
    theorem: str  # that bounds its mistakes by the surrogate
    corollary: str  # that bounds its mistakes by a margin
    margin: str
    lemma: str  # how far a step turns w


_AVG = _Variant(
    surrogate="avg",
    solver="perceptron-avg",
    theorem="Theorem 7",
    corollary="Corollary 8",
    margin="average",
    lemma="Lemma 19",
)
_MAX = _Variant(
    surrogate="max",
    solver="perceptron-max",
    theorem="Theorem 9",
    corollary="Corollary 10",
    margin="strong",
    lemma="Lemma 20",
)


def _statements(
    stream: _Stream, eta0: float, radius: float
) -> Iterator[tuple[str, Iterator[_Statement]]]:
    """Train each solver on the stream; yield its name and statements on its weights."""
    options: dict[str, Any] = {
        "k": stream.population.k,
        "batch_size": stream.batch_size,
        # one pass in the order of the stream
        "epochs": 1,
        "shuffle": False,
    }
    for variant in (_AVG, _MAX):
        perceptron = PerceptronAtK(variant.surrogate, **options)
        weights, mistakes = _path(stream, perceptron)
        bounds = _mistake_bounds(stream, mistakes, variant)
        steps = _steps(stream, np.array(weights), mistakes, variant)
        online = _online_to_batch(stream, weights[1:-1], mistakes[1:])  # w_1 to w_(T-1)
        yield variant.solver, itertools.chain(bounds, steps, online)
    sgd = SGDAtK("avg", eta0=eta0, radius=radius, **options).fit(stream.X, stream.y)
    yield "sgd-avg", _convergence(stream, sgd, radius)


def _mistake_bounds(
    stream: _Stream, mistakes: NDArray[np.int64], variant: _Variant
) -> Iterator[_Statement]:
    """Yield the number of mistakes, and its bounds by a theorem and its corollary.

    Theorems 7 and 9: sum_t Delta_t <= (||w|| R sqrt(4 k) + sqrt(sum_t L_t(w)))^2 for
    each w, where L_t is the surrogate on batch t (7: avg, 9: max), k the largest of a
    batch and R the largest norm of a row. Only multiples of w* are tried, whose norm is
    1: the least bound over all w may be smaller. Corollaries 8 and 10:
    sum_t Delta_t <= 4 k R^2 / gamma^2, with the least margin gamma of w* on a batch.
    """
    optimum: Any = stream.population.data.optimum
    batches = [batch for batch in stream.batches if batch.k]
    all_scores = [batch.X @ optimum for batch in batches]
    most_k = max(batch.k for batch in batches)
    reach = stream.largest_norm * math.sqrt(4 * most_k)
    bounds = []
    for c in _MULTIPLES:  # w = c w*, so ||w|| is c
        losses = [
            _surrogate_of(stream, variant, c * scores, batch)
            for scores, batch in zip(all_scores, batches, strict=True)
        ]
        bounds.append((c * reach + math.sqrt(sum(losses))) ** 2)
    quantities = {
        "measured": float(mistakes.sum()),
        "bound": float(min(bounds)),
        "trivial": float(sum(batch.k for batch in batches)),
    }
    yield _Statement(variant.theorem, "mistakes", quantities)

    gammas = []
    for scores, batch in zip(all_scores, batches, strict=True):
        if (batch.y < 0).any():  # both classes
            of_batch = margins(scores, batch.y, batch.k)
            gammas.append(getattr(of_batch, variant.margin))
    gamma = min(gammas)
    if gamma > 0:  # else the corollary says nothing
        quantities = quantities | {"bound": (reach / gamma) ** 2}
        yield _Statement(variant.corollary, "mistakes", quantities)


def _surrogate_of(
    stream: _Stream, variant: _Variant, scores: NDArray[np.float64], batch: _Batch
) -> float:
    """Return the surrogate of a perceptron on a batch, L_t."""
    measure = f"{variant.surrogate} surrogate"
    return _measured(measure, stream.population.k, scores, batch.y)


def _steps(
    stream: _Stream,
    weights: NDArray[np.float64],
    mistakes: NDArray[np.int64],
    variant: _Variant,
) -> Iterator[_Statement]:
    """Yield how Lemmas 18 and 19 (avg) or 20 (max) hold on batches with mistakes."""
    optimum: Any = stream.population.data.optimum
    batches = stream.batches
    # Lemma 18: ||w_t||^2 - ||w_{t-1}||^2 <= 4 k R^2 Delta_t, as a ratio
    growth = np.diff(np.sum(weights**2, axis=1))
    ks = [batch.k for batch in batches]
    allowed = 4 * stream.largest_norm**2 * mistakes * ks
    has_mistakes = mistakes > 0
    ratios = growth[has_mistakes] / allowed[has_mistakes]
    quantities = {"measured": float(ratios.max()), "bound": 1.0}
    yield _Statement("Lemma 18", "norm", quantities)

    # Lemmas 19 and 20: Delta_t - L_t(w) <= <w_t - w_{t-1}, w>, here for w = c w*
    progress = np.diff(weights @ optimum)  # <w_t - w_{t-1}, w*>
    excesses = []
    for t, batch in enumerate(batches):
        if not mistakes[t]:
            continue
        scores = batch.X @ optimum
        for c in _MULTIPLES:
            loss = _surrogate_of(stream, variant, c * scores, batch)
            excesses.append(mistakes[t] - loss - c * progress[t])
    quantities = {"measured": float(max(excesses)), "bound": 0.0}
    yield _Statement(variant.lemma, "progress", quantities)


def _online_to_batch(
    stream: _Stream, weights: Sequence[NDArray[np.float64]], mistakes: NDArray[np.int64]
) -> Iterator[_Statement]:
    """Yield Theorem 13 for weights w_1, ... and mistakes on the batch after each.

    mean_t prec@kappa(w_t; all rows) <= mean_t Delta_t / b + C `uniform_rate`. The paper
    prints Delta_t / b, read here as Delta_t / (kappa n_+(X_t)), the loss prec@kappa of
    w_{t-1} on batch t. w_0 = 0 is left out, as all scores tie, and so are the mistakes
    on the first batch.
    """
    population = stream.population
    losses = [
        population.measured("prec@k loss", population.data.X @ w) for w in weights
    ]
    losses_on_next_batch = [
        n_mistakes / batch.k
        for n_mistakes, batch in zip(mistakes, stream.batches[1:], strict=True)
        if batch.k
    ]
    quantities = _open_ended(
        measured=float(np.mean(losses)),
        explicit=float(np.mean(losses_on_next_batch)),
        rate=stream.uniform_rate,
    )
    yield _Statement("Theorem 13", "prec@k loss", quantities)


def _convergence(
    stream: _Stream, solver: LinearRanker, radius: float
) -> Iterator[_Statement]:
    """Yield Theorem 15 for the returned w and the multiples of w* in the ball.

    avg(w) <= avg(w*) + C (`uniform_rate` + sqrt(1 / T)), for the avg surrogate on all
    rows.
    """
    population = stream.population
    # The explicit part is the least surrogate at multiples of w*: at those in the ball,
    # and at its edge, or at 1e3, the last of `_MULTIPLES`, if the edge is farther out.
    inside = population.surrogate_at_multiples[radius >= _MULTIPLES]
    largest_multiple = min(radius, 1e3)
    at_edge = population.measured(
        "avg surrogate", largest_multiple * population.scores_of_optimum
    )
    quantities = _open_ended(
        measured=population.measured("avg surrogate", population.data.X @ solver.coef_),
        explicit=min(at_edge, *inside),
        rate=stream.uniform_rate + math.sqrt(1 / stream.n_batches),
    )
    yield _Statement("Theorem 15", "avg surrogate", quantities)


def _open_ended(measured: float, explicit: float, rate: float) -> dict[str, float]:
    """Return the parts of measured <= explicit + C rate, with the least constant C."""
    constant = max(0.0, (measured - explicit) / rate)
    return {
        "measured": measured,
        "explicit part": explicit,
        "rate": rate,
        "constant": constant,
    }


class _Constant(NamedTuple):
    """The least constant that suffices on a stream."""

    theorem: str
    solver: str
    value: float


def _constants(stream: _Stream, eta0: float, radius: float) -> Iterator[_Constant]:
    """Yield the constants that the paper leaves open."""
    for solver, statements in _statements(stream, eta0, radius):
        for statement in statements:
            if "constant" not in statement.quantities:
                continue  # the statement has no open constant
            constant = statement.quantities["constant"]
            yield _Constant(statement.theorem, solver, constant)
            # Corollary 14 joins Theorems 13 and 7.
            if statement.theorem == "Theorem 13" and solver == _AVG.solver:
                loss = statement.quantities["measured"]
                constant = _constant_of_corollary_14(stream, loss)
                yield _Constant("Corollary 14", solver, constant)


def _constant_of_corollary_14(stream: _Stream, loss: float) -> float:
    """Return the least constant C with which Corollary 14 holds at all w = c w*.

    loss <= (sqrt(avg(w)) + C (||w|| R / sqrt(T) + `uniform_rate`))^2, with the avg
    surrogate on all rows and the largest norm R of a row.
    """
    optimum: Any = stream.population.data.optimum
    reach = float(np.linalg.norm(optimum)) * stream.largest_norm
    surrogates = stream.population.surrogate_at_multiples
    constants = [0.0]
    for c, surrogate in zip(_MULTIPLES, surrogates, strict=True):
        difference = math.sqrt(loss) - math.sqrt(surrogate)
        rate = c * reach / math.sqrt(stream.n_batches) + stream.uniform_rate
        constants.append(difference / rate)
    return max(constants)


def _deviations(
    dataset: Dataset,
    k: float,
    sizes: list[int],  # of samples
    weights: int,  # how many w
    samples: int,  # of each size
    radius: float,  # of the w
    rng: np.random.Generator,
) -> dict[str, list[NDArray[np.float64]]]:
    """Return by measure and size the largest deviation over many w of each sample."""
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

    def losses(rows: Any) -> NDArray[np.float64]:
        """Return a row for each measure, a column for each w."""
        labels = y[rows]
        k_of_rows = resolve_k(k, int(np.sum(labels > 0)))
        scores_by_w = np.ascontiguousarray(scores[rows].T)
        return np.array(
            [
                [_measured(name, k, s, labels) / k_of_rows for s in scores_by_w]
                for name in _MEASURES
            ]
        )

    on_all_rows = losses(slice(None))
    by_size = []  # arrays with a row for each sample, a column for each measure
    for size in sizes:
        deviations = []
        for _ in range(samples):
            rows = rng.integers(len(y), size=size)
            has_both_classes = 0 < np.sum(y[rows] > 0) < size
            if has_both_classes:
                deviations.append(np.abs(losses(rows) - on_all_rows).max(axis=1))
        if not deviations:
            raise InputError(
                f"sample_sizes: no sample of {size} rows of {dataset.name} has both"
                " classes; give larger sizes"
            )
        by_size.append(np.array(deviations))
    return {
        name: [of_size[:, i] for of_size in by_size] for i, name in enumerate(_MEASURES)
    }


def _top_averages(
    dataset: Dataset, share: float, size: int, samples: int, rng: np.random.Generator
) -> dict[str, float]:
    """Compare the top of samples with the top of all rows (Lemma 22).

    The means of a function h over the best kappa b of b rows and over the best share
    kappa of all rows differ by at most 4 sqrt(log(2 / delta) / (kappa b)). Here w*
    ranks, and h is 1 for negatives, else 0.
    """
    scores = _Population(dataset, share).scores_of_optimum
    h = (dataset.y < 0)[np.argsort(-scores, kind="stable")]  # of all rows, best first
    # A row for each sample: the places of its rows in `h`, best first.
    ranks = np.sort(rng.integers(len(h), size=(samples, size)), axis=1)
    of_samples = h[ranks[:, : ceil_share(share, size)]].mean(axis=1)
    of_all_rows = h[: ceil_share(share, len(h))].mean()
    deviations = np.abs(of_samples - of_all_rows)
    bound = 4 * math.sqrt(math.log(2 / DELTA) / (share * size))
    return {
        "measured": float(np.quantile(deviations, 1 - DELTA)),
        "bound": bound,
        "trivial": 1.0,
    }


def _theorem_12(deviations: NDArray[np.float64], size: int) -> dict[str, float]:
    """Return a quantile of deviations, and the rate and constant of Theorem 12."""
    measured = float(np.quantile(deviations, 1 - DELTA))
    rate = math.sqrt(math.log(1 / DELTA) / size)
    return {"measured": measured, "rate": rate, "constant": measured / rate}
