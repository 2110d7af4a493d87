"""The figures, small tables and variants of the push of rudin2009."""

import itertools
from collections.abc import Iterable, Iterator, Mapping
from typing import Annotated, Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray
from pydantic import Field, PositiveFloat
from scipy import sparse

from precbench.core.errors import InputError
from precbench.core.studies import (
    AtLeastTwo,
    Count,
    DatasetNames,
    Measures,
    Seed,
    Share,
    table_of,
)
from precbench.core.yaml.models import Name, Section
from precbench.data import load_dataset
from precbench.ranking.metrics import auc, check_ranking, pnorm_risk, r_max
from precbench.solvers import PNormPush

CRUCIAL = "crucial pairs"


class RankedList(Section):
    """Labels, of which the greater is the positive class, with their scores."""

    labels: list[int]
    scores: list[float]
    divisor: PositiveFloat = 1.0  # of all scores, so that a file can say 1/14


@table_of("list", "scale", "measure", "value")
def ranked_lists(
    lists: Annotated[dict[Name, RankedList], Field(min_length=1)],
    scales: Annotated[list[PositiveFloat], Field(min_length=1)],
    measures: Measures,
) -> Iterator[tuple[str, float, str, float]]:
    """Measure ranked lists, their scores multiplied by each scale (Tables 1 and 2)."""
    # A loss other than zero-one depends on the scale of the scores, so several scales
    # can be tried.
    for name, ranked in lists.items():
        for scale, (label, measure) in itertools.product(scales, measures.items()):
            scores = scale * np.array(ranked.scores) / ranked.divisor
            try:
                value = measure(ranked.labels, scores)
            except InputError as error:
                raise InputError(
                    f"measure {label} of the list {name}: {error}"
                ) from None
            yield name, scale, label, value


@table_of("objective", "positive", "negative", "value")
def pair_shares(
    labels: list[int],
    scores: list[float],
    powers: Annotated[list[PositiveFloat], Field(min_length=1)],  # p
    ir: bool,  # whether to add the IR push
) -> Iterator[tuple[str, str, str, float]]:
    """Yield the share of each pair in the objectives (Figures 1 and 4)."""
    # Positives and negatives are named by their ranks within their class, 1 for the
    # highest score; the rank ``all`` stands for the sum over the class.
    objectives = {f"p={p:g}": pnorm_shares(labels, scores, p) for p in powers}
    if ir:
        objectives["IR"] = ir_shares(labels, scores)
    for name, shares in objectives.items():
        for (i, k), share in np.ndenumerate(shares):  # ranks count from 1
            yield name, str(i + 1), str(k + 1), share
        for i, share in enumerate(shares.sum(axis=1)):
            yield name, str(i + 1), "all", share
        for k, share in enumerate(shares.sum(axis=0)):
            yield name, "all", str(k + 1), share


def pnorm_shares(
    y_true: ArrayLike, y_score: ArrayLike, p: float
) -> NDArray[np.float64]:
    """Return the share of each pair in the risk of the P-Norm Push.

    Rows are positives, columns negatives, each from the highest score down. The risk is
    sum_k height_k^p, with height_k = sum_i e^(s_k - s_i), i over the positives and k
    over the negatives. The share of a pair is
    height_k^p / risk * e^(s_k - s_i) / height_k.
    """
    differences = _differences(y_true, y_score)
    # in logarithms, in which nothing overflows
    log_heights = np.logaddexp.reduce(differences, axis=0)
    log_risk = np.logaddexp.reduce(p * log_heights)
    return np.exp((p - 1) * log_heights + differences - log_risk)


def ir_shares(y_true: ArrayLike, y_score: ArrayLike) -> NDArray[np.float64]:
    """Return the share of each pair in the objective of the IR Push, as `pnorm_shares`.

    The objective is sum_i ln(1 + sum_i), with sum_i = sum_k e^(s_k - s_i). The share of
    a pair is ln(1 + sum_i) / objective * e^(s_k - s_i) / sum_i.
    """
    differences = _differences(y_true, y_score)
    log_sums = np.logaddexp.reduce(differences, axis=1, keepdims=True)
    contributions = np.logaddexp(0, log_sums) * np.exp(differences - log_sums)
    return contributions / contributions.sum()


def _differences(y_true: ArrayLike, y_score: ArrayLike) -> NDArray[np.float64]:
    """Return s_k - s_i, a row for each positive i, a column for each negative k.

    Both go from the highest score down.
    """
    positive, scores = check_ranking(y_true, y_score)
    s_i = -np.sort(-scores[positive])
    s_k = -np.sort(-scores[~positive])
    return s_k - s_i[:, np.newaxis]


def discount_factors(
    z_min: PositiveFloat, z_max: PositiveFloat, points: AtLeastTwo
) -> pd.DataFrame:
    """Compare the discounts of DCG, average reciprocal rank and IR push (Figure 3)."""
    if z_max <= z_min:
        raise InputError(
            f"z_max = {z_max:g} should exceed z_min = {z_min:g}; raise z_max"
        )
    z = np.linspace(z_min, z_max, points)
    dcg = 1 / np.log1p(z)
    reciprocal = 1 / z
    ir = -np.log1p(z)
    # as the paper's caption says
    in_order = float(np.mean((dcg > reciprocal) & (reciprocal > ir)))
    curves = {"1/ln(1+z)": dcg, "1/z": reciprocal, "-ln(1+z)": ir}
    return _curves("z", z, curves, {"share of z in the order of the caption": in_order})


def lemma_7(
    p: Annotated[float, Field(gt=1)], a: Share, points: AtLeastTwo
) -> pd.DataFrame:
    """Compare both sides of Lemma 7 for a fixed a and for b from 0 to 1 (Figure 8)."""
    # |a^(1/p) - b^(1/p)| <= min(|a - b| a^(1/p - 1), |a - b|^(1/p))
    b = np.linspace(0, 1, points)
    left = np.abs(a ** (1 / p) - b ** (1 / p))
    root = np.abs(a - b) ** (1 / p)
    right = np.minimum(np.abs(a - b) * a ** (1 / p - 1), root)
    curves = {
        "|a^(1/p) - b^(1/p)|": left,
        "min(|a - b| a^(1/p - 1), |a - b|^(1/p))": right,
        "|a - b|^(1/p)": root,
    }
    facts = {
        # The first term divided by the second is (|a - b| / a)^(1 - 1/p), below 1 for b
        # between 0 and 2 a.
        "share of b with |a - b| a^(1/p - 1) < |a - b|^(1/p)": min(2 * a, 1.0),
        # At b = 0 both sides are equal, except for rounding.
        "share of b where Lemma 7 holds": float(np.mean(left <= right + 1e-12)),
    }
    return _curves("b", b, curves, facts)


def _curves(
    name: str, x: NDArray, curves: Mapping[str, NDArray], facts: Mapping[str, float]
) -> pd.DataFrame:
    """Return a table of curves over x, called `name`, and facts without an x."""
    parts = [
        pd.DataFrame({"curve": curve, name: x, "value": y})
        for curve, y in curves.items()
    ]
    fact_rows = pd.DataFrame(
        {"curve": [*facts], name: np.nan, "value": [*facts.values()]}
    )
    return pd.concat([*parts, fact_rows], ignore_index=True)


@table_of("part", "function", "quantity", "value")
def one_dimensional(
    epsilon: Share, m: AtLeastTwo, repetitions: Count, test_size: AtLeastTwo, seed: Seed
) -> Iterator[tuple[str, str, str, float]]:
    """Choose by R_max between two functions of one feature (Section 10.1)."""
    # The negatives lie on [-1, 0] and the positives on [0, 1], but for a share
    # `epsilon`: half of this share are positives on [-2, -1], half negatives on [1, 2].
    # A training set of `m` rows chooses the function with the smaller R_max; a tie
    # chooses the decreasing one, whose true R_max is smaller. Sets that ``miss
    # epsilon``, with the probability ``(1 - epsilon)^m``, lie in [-1, 1] and choose the
    # increasing one. I is the number of positives.
    rng = np.random.default_rng(seed)
    drawn = pd.DataFrame(
        _measure_both(_draw_sample(rng, epsilon, m)) for _ in range(repetitions)
    )
    test = pd.Series(_measure_both(_draw_sample(rng, epsilon, test_size)))
    for interval, share in zip(_INTERVALS, _shares(epsilon), strict=True):
        yield "distribution", "", interval, share

    # at most the probability that the increasing function is chosen
    bound = (1 - epsilon) ** m
    of_sets = {
        "(1 - epsilon)^m": bound,
        "share that miss epsilon": drawn["missed"].mean(),
        "share with a tie": drawn["tied"].mean(),
    }
    for quantity, value in of_sets.items():
        yield "training sets", "", quantity, value

    r_max_where_chosen = drawn.loc[drawn["chosen"], "increasing R_max / I"]
    is_consistent = _is_at_least(bound, len(r_max_where_chosen), repetitions)
    of_increasing = {
        "share that choose it": drawn["chosen"].mean(),
        "consistent with at least (1 - epsilon)^m": float(is_consistent),
        "R_max / I where chosen": r_max_where_chosen.mean(),
        "5 % quantile of AUC": float(drawn["increasing AUC"].quantile(0.05)),
    }
    for quantity, value in of_increasing.items():
        yield "training sets", "increasing", quantity, value

    parts = {
        "training sets": drawn.mean(),
        "training sets that miss epsilon": drawn[drawn["missed"]].mean(),
        "test set": test,
    }
    for part, values in parts.items():
        for function in ("increasing", "decreasing"):
            for quantity in ("R_max / I", "AUC"):
                yield part, function, quantity, float(values[f"{function} {quantity}"])


_INTERVALS = [
    "positives on [-2, -1]",
    "negatives on [-1, 0]",
    "positives on [0, 1]",
    "negatives on [1, 2]",
]


def _shares(epsilon: float) -> list[float]:
    """Return the probability of each of the `_INTERVALS`."""
    return [epsilon / 2, (1 - epsilon) / 2, (1 - epsilon) / 2, epsilon / 2]


class _LineSample(NamedTuple):
    labels: NDArray[np.int_]
    x: NDArray[np.float64]  # places on the line


def _draw_sample(rng: np.random.Generator, epsilon: float, n: int) -> _LineSample:
    """Draw n rows by the distribution of `one_dimensional`."""
    # the cumulated probabilities of the `_INTERVALS`, without the last
    ends = np.array([epsilon / 2, 0.5, 1 - epsilon / 2])
    interval = np.searchsorted(ends, rng.random(n), side="right")
    labels = np.array([1, -1, 1, -1])[interval]
    # Interval j begins at j - 2, and has the length 1.
    return _LineSample(labels, x=interval - 2 + rng.random(n))


def _measure_both(sample: _LineSample) -> dict[str, float]:
    """Measure an increasing and a decreasing function of x, and which R_max chooses."""
    labels, x = sample
    n_pos = np.sum(labels == 1)
    worst_of_increasing = r_max(labels, x) / n_pos
    worst_of_decreasing = r_max(labels, -x) / n_pos
    return {
        "missed": bool(np.all(np.abs(x) <= 1)),  # no row outside of [-1, 1]
        "chosen": worst_of_increasing < worst_of_decreasing,  # the increasing one
        "tied": worst_of_increasing == worst_of_decreasing,
        "increasing R_max / I": worst_of_increasing,
        "decreasing R_max / I": worst_of_decreasing,
        "increasing AUC": auc(labels, x),
        "decreasing AUC": auc(labels, -x),
    }


def _is_at_least(probability: float, successes: int, draws: int) -> bool:
    """Return whether so many successes agree with at least this probability.

    They do unless a binomial test refutes it at the level of 1 %.
    """
    from scipy.stats import binom

    return bool(binom.cdf(successes, draws, probability) >= 0.01)


def push_variants(
    datasets: DatasetNames,
    p: Annotated[float, Field(ge=1)],
    bottom_weight: PositiveFloat,
    crucial: Count,
    rows: AtLeastTwo,
    repetitions: AtLeastTwo,
    seed: Seed,
) -> pd.DataFrame:
    """Compare the pushes of Section 7: top, bottom, both ends, crucial pairs."""
    # The crucial pairs are those of the `crucial` positives that the push at the top
    # ranks lowest, each with every negative of the training set; the push on crucial
    # pairs ignores all others. ``R^(1/p)`` is the p-norm of the heights of negatives,
    # at the bottom of heights of positives.
    values: list[FitValue] = []
    for name in datasets:
        for train, test in training_sets(name, rows, repetitions, seed):
            values += _compare_pushes(name, train, test, p, bottom_weight, crucial)
    return means_of_fits(values)


class FitValue(NamedTuple):
    """A measure of a fit on one training set."""

    dataset: str
    fit: str
    rows: str  # "training" or "test"
    measure: str
    value: float


def means_of_fits(values: Iterable[FitValue]) -> pd.DataFrame:
    """Return mean and standard error over training sets, by all but the value."""
    keys = ["dataset", "fit", "rows", "measure"]
    table = pd.DataFrame(values, columns=[*keys, "value"])
    by_fit = table.groupby(keys, sort=False)["value"]
    parts = [
        by_fit.mean().reset_index().assign(statistic="mean"),
        by_fit.sem().reset_index().assign(statistic="standard error"),
    ]
    return pd.concat(parts, ignore_index=True)[[*keys, "statistic", "value"]]


class Rows(NamedTuple):
    """Rows of a data set, with their labels."""

    X: NDArray[np.float64]
    y: NDArray[np.float64]


def training_sets(
    name: str, rows: int, repetitions: int, seed: int
) -> Iterator[tuple[Rows, Rows]]:
    """Yield random training sets, each with all other rows to test on."""
    X, y = scaled_to_unit(name)
    if rows >= len(y):
        raise InputError(
            f"rows = {rows:,}, but {name} has {len(y):,} rows, and some must be left to"
            " test on; reduce rows"
        )
    for repetition in range(repetitions):
        order = np.random.default_rng([seed, repetition]).permutation(len(y))
        train, test = order[:rows], order[rows:]
        yield Rows(X[train], y[train]), Rows(X[test], y[test])


def scaled_to_unit(name: str) -> Rows:
    """Return all rows of a data set, each feature scaled to [0, 1]."""
    data = load_dataset(name)
    X: Any = data.X
    X = X.toarray() if sparse.issparse(X) else X
    X = X - X.min(axis=0)
    largest = X.max(axis=0)
    divisor = np.where(largest > 0, largest, 1)  # a constant feature becomes 0
    return Rows(X / divisor, data.y)


def _compare_pushes(
    dataset: str,
    train: Rows,
    test: Rows,
    p: float,
    bottom_weight: float,
    crucial: int,
) -> Iterator[FitValue]:
    """Fit the pushes of Section 7, and measure them on training and test rows."""
    X, y = train
    positives = np.flatnonzero(y > 0)
    negatives = np.flatnonzero(y < 0)
    if len(positives) <= crucial:
        raise InputError(
            f"crucial = {crucial} is not below the {len(positives)} positives of a"
            " training set; lower crucial, or raise rows"
        )
    fits = {}
    for push in ("top", "bottom", "both"):
        solver = PNormPush(p, push=push, bottom_weight=bottom_weight)
        fits[push] = solver.fit(X, y)
    # The crucial pairs: the positives that the push at the top ranks lowest, with all
    # negatives.
    scores_of_pos = (X @ fits["top"].coef_)[positives]
    lowest = positives[np.argsort(scores_of_pos, kind="stable")[:crucial]]
    should_rank_above = np.zeros((len(y), len(y)))  # the row above the column
    should_rank_above[np.ix_(lowest, negatives)] = 1
    fits[CRUCIAL] = PNormPush(p).fit_pairs(X, should_rank_above)

    for name, fit in fits.items():
        for part, rows in (("training", train), ("test", test)):
            scores = rows.X @ fit.coef_
            top = pnorm_risk(rows.y, scores, p)
            # With negated labels and scores the risk sums over positives.
            bottom = pnorm_risk(-rows.y, -scores, p)
            yield FitValue(dataset, name, part, "top, R^(1/p)", top ** (1 / p))
            yield FitValue(dataset, name, part, "bottom, R^(1/p)", bottom ** (1 / p))
            yield FitValue(dataset, name, part, "AUC", auc(rows.y, scores))

    # the share of crucial pairs, and of all other pairs, in order
    others = np.setdiff1d(positives, lowest)
    for name in ("top", CRUCIAL):
        scores = X @ fits[name].coef_
        for measure, pos in ((CRUCIAL, lowest), ("other pairs", others)):
            numbers = np.concatenate([pos, negatives])
            share = auc(y[numbers], scores[numbers])
            yield FitValue(dataset, name, "training", measure, share)
