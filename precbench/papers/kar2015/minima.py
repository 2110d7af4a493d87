"""Where the surrogates have their minimum: at w = 0, if no ranking can be better."""

# At w = 0 the avg surrogate has the value k, and its subgradients are the sums of k
# different negatives less k times the mean of the positives. The surrogate is convex,
# so it is least at w = 0 if and only if a convex combination of the subgradients is 0:
# if the mean of the positives is a weighted mean of the negatives in which no weight
# exceeds 1/k. For the max surrogate the positives are also weighted, by at most 1/k
# each. A linear programme finds the weights.
#
# The cutting plane minimises a risk plus the square of ||w||, whose gradient is 0 at w
# = 0, so the answer is the same for every C: w = 0 is the minimiser if and only if
#   "struct, at least k", F-measure: the mean of the positives is a mean of negatives
#       with weights of at most 1/n_pos, whatever k is. At w = 0 the most violated
#       labellings have no true positive and any number of false ones; the constant
#       column makes their weights sum to n_pos.
#   "pauc": the mean of the positives is a mean with weights of at most
#       1/ceil(beta n_neg).
#   "struct" (exactly k ones, as in (3)): n_pos times the mean of the positives is k
#       times a mean of negatives with weights of at most 1/k.

import warnings
from collections.abc import Callable, Iterator
from functools import partial
from itertools import product
from typing import Annotated, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, PositiveFloat
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning

from precbench.core.errors import InputError
from precbench.core.kinds import Scaling
from precbench.core.seeds import trial_seed
from precbench.core.studies import Count, DatasetNames, Seed, table_of
from precbench.core.yaml.models import matching
from precbench.data import DATASETS, load_dataset
from precbench.data.preprocess import Scaler
from precbench.data.splits import split_rows
from precbench.ranking.losses import SURROGATES
from precbench.ranking.metrics import f1, partial_auc, precision_at_k
from precbench.ranking.topk import resolve_k
from precbench.solvers import CuttingPlane, SGDAtK, as_rows, linear_scores
from precbench.solvers.common.base import untraced

_MINIMISER = "w = 0 is a minimiser"
_SAME = 1e-7  # the tolerance of the linear programmes
_ROWS: dict[str, Scaling] = {"as scaled": "none", "of norm 1": "unit-norm"}


@table_of("dataset", "rows", "surrogate", "quantity", "eta0", "value")
def surrogate_minima(
    datasets: DatasetNames,
    k: Annotated[float, Field(gt=0, le=1)],  # of the positives
    beta: Annotated[float, Field(gt=0, le=1)],  # of the negatives, for "pauc"
    eta0: Annotated[list[PositiveFloat], Field(min_length=1)],  # step sizes of SGD@k
    epochs: Count,
    batch_size: Count,
    seed: Seed,
) -> Iterator[tuple[str, str, str, str, float, float]]:
    """Compare the surrogates at the w of SGD@k with their values at w = 0."""
    # Of each surrogate: whether w = 0 minimises it (1 or 0); of avg and max also, by
    # step size, its value as a multiple of that at w = 0. Rows are scaled as the cards
    # recommend, then to norm 1.
    for name in datasets:
        dataset = load_dataset(name)
        positive = dataset.y > 0
        scaler = Scaler(DATASETS[name].scaling).fit(dataset.X)
        scaled = scaler.transform_in_place(dataset.X.copy())
        random_state = trial_seed(seed, name, 0)
        sgd = SGDAtK(
            k=k, epochs=epochs, batch_size=batch_size, random_state=random_state
        )
        # "as scaled" first: "of norm 1" overwrites `scaled`
        for rows, scaling in _ROWS.items():
            X = Scaler(scaling).fit(scaled).transform_in_place(scaled)
            shares = {"struct": k, "struct, at least k": k, "pauc": beta, "avg": k}
            is_least = {
                problem: is_least_at_zero(X, positive, share, problem)
                for problem, share in shares.items()
            }
            # Where avg is least at w = 0, so is max: max lies above avg, and equals avg
            # at w = 0.
            is_least["max"] = is_least["avg"] or is_least_at_zero(X, positive, k, "max")
            for surrogate, is_minimiser in is_least.items():
                yield name, rows, surrogate, _MINIMISER, np.nan, float(is_minimiser)
                if surrogate in ("avg", "max"):  # the surrogates that SGD@k minimises
                    for step, ratio in _ratios_of(
                        sgd, surrogate, X, dataset.y, k, eta0
                    ):
                        yield name, rows, surrogate, "relative to w = 0", step, ratio


def _ratios_of(
    sgd: SGDAtK,
    surrogate: str,
    X: Any,
    y: NDArray[np.float64],
    k: float,
    eta0: list[float],
) -> Iterator[tuple[float, float]]:
    """Yield by step size the surrogate at the w of SGD@k, divided by that at w = 0."""
    loss = SURROGATES[surrogate]
    positive = y > 0
    at_zero = loss.value(np.zeros(len(y)), positive, k)  # all scores are 0
    for step in eta0:
        w = sgd.set_params(surrogate=surrogate, eta0=step).fit(X, y).coef_
        yield step, loss.value(linear_scores(as_rows(X), w), positive, k) / at_zero


_Measure = Callable[..., float]  # of labels and scores


class _Problem(NamedTuple):
    """What `CuttingPlane` minimises, and what is measured of its weights."""

    parameters: dict[str, Any]  # of `CuttingPlane`
    measure: _Measure


def _problem(name: str, beta: float) -> _Problem:
    """Return the problem ``pauc``, ``f1`` or ``prec@K``, K a share of the positives."""
    if name == "pauc":
        return _Problem(
            {"objective": "pauc", "beta": beta}, partial(partial_auc, beta=beta)
        )
    if name == "f1":
        return _Problem({"objective": "f1"}, f1)
    k = float(name.removeprefix("prec@"))
    return _Problem({"k": k, "at_least_k": True}, partial(precision_at_k, k=k))


_ProblemName = Annotated[
    str,
    matching(
        # K above 0, at most 1
        r"pauc|f1|prec@(0?\.\d*[1-9]\d*|1(\.0*)?)",
        "should be pauc, f1, or prec@ with a share of the positives such as prec@0.25",
    ),
]


@table_of("dataset", "problem", "C", "iteration", "quantity", "value")
def cutting_plane_minima(
    datasets: DatasetNames,
    problems: Annotated[list[_ProblemName], Field(min_length=1)],
    beta: Annotated[float, Field(gt=0, le=1)],  # of the negatives, for "pauc"
    C: Annotated[list[PositiveFloat], Field(min_length=1)],  # of the cutting plane
    max_iter: Count,
    paths: list[str],
    seed: Seed,
) -> Iterator[tuple[str, str, float, float, str, float]]:
    """Measure how the cutting plane ends: values relative to w = 0, norms, measures."""
    # Each data set has one random split, 70 % for training, and is scaled as its card
    # recommends. The `problems` are ``pauc``, ``f1``, or ``prec@`` with a fraction of
    # the positives, the least number of ones of a labelling. `paths` names the data
    # sets for which every iterate of the first problem is shown. Measures (partial AUC,
    # F1 or precision) are of the test rows.
    for name in paths:
        if name not in datasets:
            raise InputError(
                f"paths: {name} is none of the data sets {', '.join(datasets)};"
                " name one of these"
            )
    for name in datasets:
        dataset = load_dataset(name)
        parts = split_rows(
            dataset, "random", index=0, n_splits=1, seed=trial_seed(seed, name, 0)
        )
        scaler = Scaler(DATASETS[name].scaling).fit(dataset.X[parts.train])
        train = scaler.transform_in_place(dataset.X[parts.train].copy())
        test = scaler.transform_in_place(dataset.X[parts.test].copy())
        y_train, y_test = dataset.y[parts.train], dataset.y[parts.test]
        for problem, strength in product(problems, C):
            parameters, measure = _problem(problem, beta)
            shows_all_iterates = name in paths and problem == problems[0]
            trace = _FitTrace(measure, test, y_test)
            solver = CuttingPlane(C=strength, max_iter=max_iter, **parameters)
            with warnings.catch_warnings():
                # The summary says whether the fit has converged.
                warnings.simplefilter("ignore", ConvergenceWarning)
                solver.fit(
                    train, y_train, trace=trace if shows_all_iterates else untraced
                )
            values = list(trace.summary(solver))
            if shows_all_iterates:
                values += trace.path(solver)
            for value in values:
                yield name, problem, strength, *value


class _FitValue(NamedTuple):
    iteration: float  # NaN: of the whole fit
    quantity: str
    value: float


class _FitTrace:
    """A trace that measures each iterate on the test rows, for `summary` and `path`.

    The summary needs no traced fit.
    """

    def __init__(self, measure: _Measure, X: Any, labels: NDArray[np.float64]):
        self._metric = measure
        self._rows = as_rows(X)
        self._labels = labels
        self._n_features = X.shape[1]
        self._measured: list[float] = []

    def __call__(self, solver: CuttingPlane) -> bool:
        if solver.n_iter_ > len(self._measured):  # a new iterate
            self._measured.append(self.measure(_with_intercept(solver)))
        return False  # the fit goes on

    def measure(self, w: NDArray[np.float64]) -> float:
        """Return the measure of weights, followed by an intercept if there is one."""
        weights = np.ascontiguousarray(w[: self._n_features])
        intercept = sum(w[self._n_features :])
        scores = linear_scores(self._rows, weights) + intercept
        return float(self._metric(self._labels, scores))

    def summary(self, solver: CuttingPlane) -> Iterator[_FitValue]:
        """Yield how the whole fit ended."""
        at_zero = solver.primal_path_[0]  # the first iterate is w = 0
        best = solver.best_weights_
        last = _with_intercept(solver)
        values = {
            "minimum": solver.primal_ / at_zero,
            "bound": solver.lower_bound_ / at_zero,
            "norm of the best w": float(np.linalg.norm(best)),
            "norm of the last w": float(np.linalg.norm(last)),
            "measure of the best w": self.measure(best),
            "measure of the last w": self.measure(last),
            "measure of w = 0": self.measure(np.zeros_like(best)),
            "iterations": float(solver.n_iter_),
            "converged": float(solver.converged_),
        }
        for quantity, value in values.items():
            yield _FitValue(np.nan, quantity, value)

    def path(self, solver: CuttingPlane) -> Iterator[_FitValue]:
        """Yield values of each iterate of a fit that this object has traced."""
        at_zero = solver.primal_path_[0]
        paths = {
            "value": solver.primal_path_ / at_zero,
            "best": solver.best_path_ / at_zero,
            # no value is < 0
            "bound so far": np.maximum(solver.lower_bound_path_, 0) / at_zero,
            "measure": self._measured,
        }
        for quantity, path in paths.items():
            for i, value in enumerate(path):
                yield _FitValue(float(i), quantity, float(value))


def _with_intercept(solver: CuttingPlane) -> NDArray[np.float64]:
    """Return the last weights, followed by the intercept if there is one."""
    return np.append(solver.coef_, getattr(solver, "intercept_", []))


class _Weights(NamedTuple):
    """What the weights of the rows of a class obey."""

    total: float  # their sum
    most: float  # of each
    least_rows: int  # whose weights, as large as allowed, reach the sum


def is_least_at_zero(
    X: Any,
    positive: NDArray[np.bool_],
    k: float | int,
    surrogate: str,
    n_first: int = 30_000,
    n_more: int = 10_000,
) -> bool:
    """Return whether w = 0 minimises a surrogate, by linear programmes.

    It does so if, with some bounded weights, the sums of positives and negatives are
    equal, see the head of the file. `k` is a count, or a fraction of the positives; for
    "pauc" of the negatives, the head's beta. `n_first` and `n_more` are the negatives
    in the first linear programme, and those added to each next one: the answer does not
    depend on them.
    """
    neg = X[~positive]
    pos = X[positive]
    n_pos = pos.shape[0]
    n_of_share = neg.shape[0] if surrogate == "pauc" else n_pos
    count = resolve_k(k, n_of_share)
    of_neg = _weights_of_neg(surrogate, count, n_pos)
    if neg.shape[0] < of_neg.least_rows:
        return False
    if surrogate == "max":
        of_pos = _Weights(total=1.0, most=1 / count, least_rows=count)
    else:  # all positives have the same weight: take their mean
        pos = _mean(pos)[np.newaxis]
        of_pos = _Weights(total=1.0, most=1.0, least_rows=1)
    return _sums_can_be_equal(neg, pos, of_neg, of_pos, n_first, n_more)


def _weights_of_neg(surrogate: str, count: int, n_pos: int) -> _Weights:
    """Return what the weights of negatives obey; `count` is k, or ceil(beta n_neg)."""
    if surrogate == "struct":  # exactly k ones
        return _Weights(total=count / n_pos, most=1 / n_pos, least_rows=count)
    if surrogate == "struct, at least k":
        return _Weights(total=1.0, most=1 / n_pos, least_rows=n_pos)
    return _Weights(total=1.0, most=1 / count, least_rows=count)


def _sums_can_be_equal(
    neg: Any,
    pos: Any,
    of_neg: _Weights,
    of_pos: _Weights,
    n_first: int,  # negatives in the first programme
    n_more: int,  # negatives that each next one adds
) -> bool:
    """Return whether a weighted sum of negatives can equal one of positives."""
    # A programme with few negatives is quick, and if it makes the sums equal, they can
    # be equal with all negatives. The first one has the negatives that lie farthest
    # towards the positives. The prices of its constraints are a direction: if along it
    # the highest sum of any negatives lies below the lowest of positives, no sums are
    # equal. Else the next programme has more negatives: those that, by the prices,
    # reduce the distance of the sums.
    n_first = max(n_first, 2 * of_neg.least_rows)
    towards_pos = neg @ (_mean(pos) - _mean(neg))
    used = np.argsort(-towards_pos, kind="stable")[:n_first]
    while True:
        solution = _least_distance(neg[used], pos, of_neg, of_pos)
        if solution.distance <= _SAME:
            return True
        scores_of_neg = neg @ solution.direction
        scores_of_pos = pos @ solution.direction
        highest = of_neg.most * np.sort(scores_of_neg)[-of_neg.least_rows :].sum()
        lowest = of_pos.most * np.sort(scores_of_pos)[: of_pos.least_rows].sum()
        if lowest - highest > _SAME:
            return False
        # by how much the weight of a negative reduces the distance, at these prices
        gain = scores_of_neg + solution.price_of_total
        gain[used] = 0
        best = np.argsort(-gain, kind="stable")[:n_more]
        added = best[gain[best] > 0]
        assert added.size, "the prices of the linear programme are inexact"
        used = np.append(used, added)


def _mean(rows: Any) -> NDArray[np.float64]:
    return np.asarray(rows.mean(axis=0), dtype=float).ravel()


class _Solution(NamedTuple):
    """The least distance of two weighted sums of rows, and prices."""

    distance: float  # L1
    direction: NDArray[np.float64]  # the prices of the features
    price_of_total: float  # of the weights of negatives


def _least_distance(
    neg: Any, pos: Any, of_neg: _Weights, of_pos: _Weights
) -> _Solution:
    """Return how near a weighted sum of negatives comes to one of positives.

    Over weights u of negatives that obey `of_neg`, v of positives that obey `of_pos`,
    and d+, d- >= 0, the least sum of all d+ and d- with neg' u - pos' v + d+ - d- = 0.
    """
    from scipy.optimize import linprog

    n_neg, n_features = neg.shape
    n_pos = pos.shape[0]
    one = sparse.eye_array(n_features)
    # rows: the features, the sum of u, the sum of v
    blocks = [
        [sparse.csc_array(neg.T), sparse.csc_array(-pos.T), one, -one],
        [np.ones((1, n_neg)), None, None, None],
        [None, np.ones((1, n_pos)), None, None],
    ]
    sizes = [n_neg, n_pos, 2 * n_features]  # of u, of v, of d+ and d- together
    bounds = [[0, of_neg.most], [0, of_pos.most], [0, np.inf]]
    result = linprog(
        np.repeat([0.0, 0.0, 1.0], sizes),  # the sum of all d+ and d- is minimised
        A_eq=sparse.block_array(blocks, format="csc"),
        b_eq=np.append(np.zeros(n_features), [of_neg.total, of_pos.total]),
        bounds=np.repeat(bounds, sizes, axis=0),
        method="highs",
    )
    # a solution exists: any weights of these sums
    assert result.status == 0, result.message
    # by constraint: of each feature, then of the totals of u and v
    prices = result.eqlin.marginals
    return _Solution(
        distance=result.fun,
        direction=prices[:n_features],
        price_of_total=prices[n_features],  # of u
    )
