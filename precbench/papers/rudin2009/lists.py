"""The figures, small tables and variants of the push of rudin2009."""

import itertools
from collections.abc import Iterable, Iterator, Mapping
from typing import Annotated, Any

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
    """Labels (the greater is the positive class) with their scores, in the same order."""

    labels: list[int]
    scores: list[float]
    divisor: PositiveFloat = 1.0  # of all scores, so that a file can say 1/14


@table_of("list", "scale", "measure", "value")
def ranked_lists(
    lists: Annotated[dict[Name, RankedList], Field(min_length=1)],
    scales: Annotated[list[PositiveFloat], Field(min_length=1)],
    measures: Measures,
) -> Iterator[tuple[str, float, str, float]]:
    """Measure ranked lists, with their scores multiplied by each scale (Tables 1 and 2)."""
    # A loss other than zero-one depends on the scale of the scores, so several scales
    # can be tried.
    for name, ranked in lists.items():
        for scale, (label, measure) in itertools.product(scales, measures.items()):
            try:
                value = measure(
                    ranked.labels, scale * np.array(ranked.scores) / ranked.divisor
                )
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
    """Yield the share of each pair in the objectives of the pushes (Figures 1 and 4)."""
    # Positives and negatives are named by their ranks within their class, 1 for the
    # highest score; the rank ``all`` stands for the sum over the class.
    objectives = {f"p={p:g}": pnorm_shares(labels, scores, p) for p in powers}
    if ir:
        objectives["IR"] = ir_shares(labels, scores)
    for name, shares in objectives.items():
        yield from ((name, *entry) for entry in _with_sums(shares))


def pnorm_shares(
    y_true: ArrayLike, y_score: ArrayLike, p: float
) -> NDArray[np.float64]:
    """Return the share of each pair in the risk of the P-Norm Push, highest scores first."""
    # The risk sums ``height**p`` over the negatives k, with the height ``sum_i e^(s_k -
    # s_i)``, i over the positives. The share of a pair is ``height**p`` of k, times the
    # share of i in this height, divided by the risk; in logs nothing overflows.
    z = _differences(y_true, y_score)  # s_k - s_i, a row for each i
    log_heights = np.logaddexp.reduce(z, axis=0)
    return np.exp((p - 1) * log_heights + z - np.logaddexp.reduce(p * log_heights))


def ir_shares(y_true: ArrayLike, y_score: ArrayLike) -> NDArray[np.float64]:
    """Return the share of each pair in the objective of the IR Push, highest scores first."""
    # The objective sums ``ln(1 + sum_k e^(s_k - s_i))``, k over the negatives, for the
    # positives i. The share of a pair is the term of i times the share of k in the sum,
    # over the objective.
    z = _differences(y_true, y_score)  # s_k - s_i, a row for each i
    log_sums = np.logaddexp.reduce(z, axis=1, keepdims=True)
    contributions = np.logaddexp(0, log_sums) * np.exp(z - log_sums)
    return contributions / contributions.sum()


def _differences(y_true: ArrayLike, y_score: ArrayLike) -> NDArray[np.float64]:
    """Return ``s_k - s_i``, a row per positive i, a column per negative k, highest first."""
    positive, scores = check_ranking(y_true, y_score)
    return -np.sort(-scores[~positive]) + np.sort(-scores[positive])[:, None]


def _with_sums(shares: NDArray) -> Iterator[tuple[str, str, float]]:
    """Yield the share of each pair, then the sums for each positive and each negative."""
    for (i, k), share in np.ndenumerate(shares):  # ranks count from 1
        yield str(i + 1), str(k + 1), share
    for i, share in enumerate(shares.sum(axis=1)):
        yield str(i + 1), "all", share
    for k, share in enumerate(shares.sum(axis=0)):
        yield "all", str(k + 1), share


def discount_factors(
    z_min: PositiveFloat, z_max: PositiveFloat, points: AtLeastTwo
) -> pd.DataFrame:
    """Compare the discounting factors of DCG, average reciprocal rank and IR push (Fig. 3)."""
    if z_max <= z_min:
        raise InputError(
            f"z_max = {z_max:g} should exceed z_min = {z_min:g}; raise z_max"
        )
    z = np.linspace(z_min, z_max, points)
    dcg, reciprocal, ir = 1 / np.log1p(z), 1 / z, -np.log1p(z)
    # as the paper's caption says
    in_order = float(np.mean((dcg > reciprocal) & (reciprocal > ir)))
    curves = {"1/ln(1+z)": dcg, "1/z": reciprocal, "-ln(1+z)": ir}
    return _curves("z", z, curves, {"share of z in the order of the caption": in_order})


def lemma_7(
    p: Annotated[float, Field(gt=1)], a: Share, points: AtLeastTwo
) -> pd.DataFrame:
    """Compare both sides of Lemma 7 for a fixed a and for b from 0 to 1 (Figure 8)."""
    # |a^(1/p) - b^(1/p)| <= min(|a - b| a^(1/p - 1), |a - b|^(1/p)). The quotient of
    # the two terms of the minimum is (|a - b| / a)^(1 - 1/p): the first is the smaller
    # for b between 0 and 2 a.
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
        # by the quotient
        "share of b with |a - b| a^(1/p - 1) < |a - b|^(1/p)": min(2 * a, 1.0),
        # At b = 0 both sides are equal, except for rounding.
        "share of b where Lemma 7 holds": float(np.mean(left <= right + 1e-12)),
    }
    return _curves("b", b, curves, facts)


def _curves(
    name: str, x: NDArray, curves: Mapping[str, NDArray], facts: Mapping[str, float]
) -> pd.DataFrame:  # columns curve, `name`, value; facts are values without an x
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
    """Choose by R_max between an increasing and a decreasing function (Section 10.1)."""
    # The negatives lie on [-1, 0] and the positives on [0, 1], but for a share
    # `epsilon`: half of this share are positives on [-2, -1], half negatives on [1, 2].
    # A training set of `m` rows chooses the function with the smaller R_max; a tie
    # chooses the decreasing one, whose true R_max is smaller. Sets that ``miss
    # epsilon``, with the probability ``(1 - epsilon)^m``, lie in [-1, 1] and choose the
    # increasing one. I is the number of positives.
    rng = np.random.default_rng(seed)
    drawn = pd.DataFrame(
        _measure_both(*_draw_sample(rng, epsilon, m)) for _ in range(repetitions)
    )
    test = pd.Series(_measure_both(*_draw_sample(rng, epsilon, test_size)))
    bound = (1 - epsilon) ** m  # at most the probability that "increasing" is chosen
    # of sets that choose "increasing"
    chosen = drawn.loc[drawn["chosen"], "increasing R_max / I"]
    supported = _is_at_least(bound, len(chosen), repetitions)  # by a binomial test
    up = "increasing"  # the function of four rows below
    yield from (
        ("distribution", "", "positives on [-2, -1]", epsilon / 2),
        ("distribution", "", "negatives on [-1, 0]", (1 - epsilon) / 2),
        ("distribution", "", "positives on [0, 1]", (1 - epsilon) / 2),
        ("distribution", "", "negatives on [1, 2]", epsilon / 2),
        ("training sets", "", "(1 - epsilon)^m", bound),
        ("training sets", "", "share that miss epsilon", drawn["missed"].mean()),
        ("training sets", "", "share with a tie", drawn["tied"].mean()),
        ("training sets", up, "share that choose it", drawn["chosen"].mean()),
        (
            "training sets",
            up,
            "consistent with at least (1 - epsilon)^m",
            float(supported),
        ),
        ("training sets", up, "R_max / I where chosen", chosen.mean()),
        (
            "training sets",
            up,
            "5 % quantile of AUC",
            float(drawn["increasing AUC"].quantile(0.05)),
        ),
    )
    parts = {
        "training sets": drawn.mean(),
        "training sets that miss epsilon": drawn[drawn["missed"]].mean(),
        "test set": test,
    }
    for part, function, quantity in itertools.product(
        parts, (up, "decreasing"), ("R_max / I", "AUC")
    ):
        yield part, function, quantity, float(parts[part][f"{function} {quantity}"])


def _draw_sample(
    rng: np.random.Generator, epsilon: float, n: int
) -> tuple[NDArray, NDArray]:
    """Draw n labels and their places on the line, by the distribution of `one_dimensional`."""
    # cumulated shares of the intervals
    ends = np.array([epsilon / 2, 0.5, 1 - epsilon / 2])
    # [-2, -1], ..., [1, 2]
    interval = np.searchsorted(ends, rng.random(n), side="right")
    return np.array([1, -1, 1, -1])[interval], interval - 2 + rng.random(n)


def _measure_both(labels: NDArray, x: NDArray) -> dict[str, float]:
    """Measure an increasing and a decreasing function of x, and how R_max chooses between them."""
    n_pos = np.sum(labels == 1)
    scores = {"increasing": x, "decreasing": -x}
    worst = {
        f"{function} R_max / I": r_max(labels, s) / n_pos
        for function, s in scores.items()
    }
    return {
        "missed": bool(np.all(np.abs(x) <= 1)),  # no row outside of [-1, 1]
        # increasing
        "chosen": worst["increasing R_max / I"] < worst["decreasing R_max / I"],
        "tied": worst["increasing R_max / I"] == worst["decreasing R_max / I"],
        **worst,
        **{f"{function} AUC": auc(labels, s) for function, s in scores.items()},
    }


def _is_at_least(probability: float, successes: int, draws: int) -> bool:
    from scipy.stats import binom

    # the level; below: refuted
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
    """Compare the pushes of Section 7.

    At the top, the bottom, both ends, and on crucial pairs.
    """
    # The crucial pairs are those of the `crucial` positives that the push at the top
    # ranks lowest, each with every negative of the training set; the push on crucial
    # pairs ignores all others. ``R^(1/p)`` is the p-norm of the heights of negatives,
    # at the bottom of heights of positives.
    return means_of_fits(
        (name, *compared)
        for name in datasets
        for train, test in training_sets(name, rows, repetitions, seed)
        for compared in _compare_pushes(train, test, p, bottom_weight, crucial)
    )


def means_of_fits(values: Iterable[tuple[str, str, str, str, float]]) -> pd.DataFrame:
    """Return mean and standard error over training sets, by data set, fit, rows and measure."""
    keys = ["dataset", "fit", "rows", "measure"]
    groups = pd.DataFrame(values, columns=[*keys, "value"]).groupby(keys, sort=False)[
        "value"
    ]
    parts = [
        groups.mean().reset_index().assign(statistic="mean"),
        groups.sem().reset_index().assign(statistic="standard error"),
    ]
    return pd.concat(parts, ignore_index=True)[[*keys, "statistic", "value"]]


Rows = tuple[NDArray[np.float64], NDArray[np.float64]]


def training_sets(
    name: str, rows: int, repetitions: int, seed: int
) -> Iterator[tuple[Rows, Rows]]:
    """Yield random training sets of `rows` rows, each with all other rows of the data set."""
    X, y = scaled_to_unit(name)
    if rows >= len(y):
        raise InputError(
            f"rows = {rows:,}, but {name} has {len(y):,} rows, and some must be left to"
            " test on; reduce rows"
        )
    for repetition in range(repetitions):
        order = np.random.default_rng([seed, repetition]).permutation(len(y))
        train, test = order[:rows], order[rows:]
        yield (X[train], y[train]), (X[test], y[test])


def scaled_to_unit(name: str) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the rows of a data set, each feature scaled to [0, 1] over all rows, and labels."""
    data = load_dataset(name)
    X: Any = data.X
    X = X.toarray() if sparse.issparse(X) else X
    X = X - X.min(axis=0)
    largest = X.max(axis=0)
    return X / np.where(largest > 0, largest, 1), data.y  # a constant feature becomes 0


def _compare_pushes(
    train: Rows, test: Rows, p: float, bottom_weight: float, crucial: int
) -> Iterator[tuple[str, str, str, float]]:
    """Fit the pushes of Section 7.

    Yield each fit, the rows measured, the measure and its value.
    """
    X, y = train
    positives, negatives = np.flatnonzero(y > 0), np.flatnonzero(y < 0)
    if len(positives) <= crucial:
        raise InputError(
            f"crucial = {crucial} is not below the {len(positives)} positives of a"
            " training set; lower crucial, or raise rows"
        )
    pushes = ("top", "bottom", "both")
    fits = {
        push: PNormPush(p, push=push, bottom_weight=bottom_weight) for push in pushes
    }
    for fit in fits.values():
        fit.fit(X, y)
    # The crucial pairs: the positives that the push at the top ranks lowest, with all
    # negatives.
    lowest = positives[
        np.argsort((X @ fits["top"].coef_)[positives], kind="stable")[:crucial]
    ]
    # is 1 where the row should rank above the column
    relation = np.zeros((len(y), len(y)))
    relation[np.ix_(lowest, negatives)] = 1
    fits[CRUCIAL] = PNormPush(p).fit_pairs(X, relation)
    for name, fit in fits.items():
        for part, (X_part, y_part) in (("training", train), ("test", test)):
            scores = X_part @ fit.coef_
            yield name, part, "top, R^(1/p)", pnorm_risk(y_part, scores, p) ** (1 / p)
            # Negated labels and scores: R then sums over positives instead of
            # negatives.
            yield (
                name,
                part,
                "bottom, R^(1/p)",
                pnorm_risk(-y_part, -scores, p) ** (1 / p),
            )
            yield name, part, "AUC", auc(y_part, scores)
    for name in ("top", CRUCIAL):  # compared on crucial pairs, and on all other pairs
        scores = X @ fits[name].coef_
        for measure, pos in (
            (CRUCIAL, lowest),
            ("other pairs", np.setdiff1d(positives, lowest)),
        ):
            rows = np.concatenate([pos, negatives])
            # share of pairs in order
            yield name, "training", measure, auc(y[rows], scores[rows])
