"""The theorems and lemmas of rudin2009 beside measured values, and similar objectives."""

import math
from collections.abc import Callable, Iterator
from functools import partial
from typing import Annotated

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from pydantic import Field, PositiveFloat
from scipy.optimize import brentq, minimize
from scipy.special import logsumexp, ndtr, softmax
from threadpoolctl import threadpool_limits

from precbench.core.studies import (
    AtLeastTwo,
    Count,
    DatasetNames,
    Seed,
    Sizes,
    table_of,
)
from precbench.papers.rudin2009.lists import Rows, means_of_fits, training_sets
from precbench.ranking.metrics import auc, pnorm_risk, r_max
from precbench.solvers import PNormPush

DELTA = 0.05  # the probability with which a bound may fail
Powers = Annotated[list[Annotated[float, Field(ge=1)]], Field(min_length=1)]
_Row = tuple[str, float, float, str, float]  # statement, p, size, quantity, value
# p at which the p-norm stands for R_max: its log is off by log K / p at most
_STEEP = 2.0**14


@table_of("statement", "p", "size", "quantity", "value")
def push_theorems(
    powers: Powers,  # p
    lists: Count,  # random lists, for Theorem 1 and Section 2
    pairs: Count,  # of functions, for Lemma 5
    rankers: Count,
    features: Count,
    distance: PositiveFloat,  # between the means of the classes
    margin: PositiveFloat,  # theta
    sizes: Sizes,  # of each class
    draws: AtLeastTwo,  # training sets of each size
    problems: Count,  # random problems, for Theorem 4
    seed: Seed,
) -> Iterator[_Row]:
    """Measure both sides of Theorems 1 to 4, Lemmas 5 and 9 and the limits of Section 2."""
    # Each function below says in comments what it measures. A ratio divides the left
    # side of an inequality by the right side, so it should be at most 1 (``stated``,
    # the last row); in Section 2 the ratio falls towards 1. ``measured`` is the
    # deviation that 5 % of the draws exceed, ``bound`` the deviation that, by the
    # theorem, is reached with probability 0.05 at most.
    rng = np.random.default_rng(seed)
    with threadpool_limits(1):
        yield from (
            *_theorem_1(rng, powers, lists),
            *_steep_prices(rng, lists),
            *_lipschitz(rng, powers, pairs, margin),
            *_generalisation(
                rng, powers, rankers, features, distance, margin, sizes, draws
            ),
            *_compare_minimisers(rng, powers, problems),
            ("", np.nan, np.nan, "stated", 1.0),  # the limit of all ratios
        )


def _log_power(p: float, r: NDArray) -> NDArray:  # log of the price r^p
    return p * np.log(r)


def _heights(pos: NDArray, neg: NDArray, loss: Callable[[NDArray], NDArray]) -> NDArray:
    return loss(pos[:, None] - neg).sum(axis=0)  # of each negative, over the positives


_LOSSES: dict[str, Callable[[NDArray], NDArray]] = {
    "zero-one": lambda z: (z <= 0).astype(float),
    "exponential": lambda z: np.exp(-z),
    "hinge": lambda z: np.maximum(0, 1 - z),
    "logistic": lambda z: np.logaddexp(0, -z),
    "logistic, base 2": lambda z: np.logaddexp(0, -z) / math.log(2),
}


def _theorem_1(
    rng: np.random.Generator, powers: list[float], lists: int
) -> Iterator[_Row]:
    """Yield the largest ratio of the left to the right side of each inequality of Theorem 1."""
    # K g(R_max / K) <= R_g,1 <= K g(R_max), and R_g,1 <= R_g,l for a loss l that is at
    # least the zero-one loss. R_g,l sums the price g(height) over the K negatives; a
    # height sums the loss l over the positives. The index 1 is the zero-one loss, and
    # R_max its largest height.
    log_prices: dict[str, Callable[[NDArray], NDArray]] = {
        "e^r": lambda r: r,
        **{f"r^{p:g}": partial(_log_power, p) for p in powers},
    }
    largest: dict[tuple[str, str], float] = {}  # by price and inequality
    for _ in range(lists):
        n_pos, n_neg = rng.integers(1, 13, 2)  # n_neg is K
        # scores, with ties
        pos, neg = (rng.integers(0, 8, n) / 4.0 for n in (n_pos, n_neg))
        heights = {name: _heights(pos, neg, loss) for name, loss in _LOSSES.items()}
        ones = heights.pop("zero-one")  # by negative: the number of positives not above
        for price, log_g in log_prices.items():
            with np.errstate(divide="ignore"):  # log 0
                total = float(logsumexp(log_g(ones)))
                if total == -np.inf:
                    continue  # R_max and both sides are 0
                worst = ones.max(keepdims=True)  # R_max, in an array
                sides = {  # by inequality, the logs of its left and right side
                    "K g(R_max / K) <= R_g,1": (
                        log_g(worst / n_neg)[0] + math.log(n_neg),
                        total,
                    ),
                    "R_g,1 <= K g(R_max)": (total, log_g(worst)[0] + math.log(n_neg)),
                } | {
                    f"R_g,1 <= R_g,{name}": (total, float(logsumexp(log_g(h))))
                    for name, h in heights.items()
                }
            for inequality, (left, right) in sides.items():
                ratio = math.exp(min(left - right, 700))  # e^710 overflows
                largest[price, inequality] = max(
                    largest.get((price, inequality), 0.0), ratio
                )
    for (price, inequality), ratio in largest.items():
        yield (
            f"Theorem 1, {price}",
            np.nan,
            np.nan,
            f"largest ratio, {inequality}",
            ratio,
        )


def _steep_prices(rng: np.random.Generator, lists: int) -> Iterator[_Row]:
    """Yield the largest ratio of g^-1(R) to R_max for steep prices g, which nears 1 (Section 2)."""
    # R sums g(height) over the negatives, and R_max is the largest height: the steeper
    # g is, the nearer g^-1(R), a root or log, comes to R_max. The loss is zero-one, but
    # for the last key.
    by_price: dict[str, list[float]] = {
        "r^64": [],
        "e^r": [],
        "r^64, exponential loss": [],
    }
    for _ in range(lists):
        pos, neg = rng.standard_normal(100) + 1, rng.standard_normal(100)
        ones, exps = (
            _heights(pos, neg, _LOSSES[name]) for name in ("zero-one", "exponential")
        )
        of_ones, of_exps = (
            float(np.sum((h / h.max()) ** 64) ** (1 / 64)) for h in (ones, exps)
        )
        by_price["r^64"].append(of_ones)
        by_price["e^r"].append(float(logsumexp(ones)) / ones.max())
        by_price["r^64, exponential loss"].append(of_exps)
    for price, ratios in by_price.items():
        yield (
            "Section 2",
            np.nan,
            np.nan,
            f"largest ratio, g^-1(R) to R_max, {price}",
            max(ratios),
        )


def _ramp_risk(pos: NDArray, neg: NDArray, theta: float, p: float) -> float:
    """Return the p-norm over the negatives of the mean ramp losses over the positives."""
    heights = np.clip(1 - (pos[:, None] - neg) / theta, 0, 1).mean(axis=0)
    return float(np.mean(heights**p) ** (1 / p))


def _lipschitz(
    rng: np.random.Generator, powers: list[float], pairs: int, theta: float
) -> Iterator[_Row]:
    """Yield the largest ratio of the left to the right side of Lemma 5, over random functions."""
    # L(f_1) - L(f_2) <= 4 Lip(phi) max |f_1 - f_2|, where L(f) is the risk of the
    # scores f on all rows less the risk on a sample. The loss phi is the ramp, with
    # Lip(phi) = 1 / theta.
    for p in powers:
        largest = 0.0
        for _ in range(pairs):
            n_pos, n_neg = 4 * rng.integers(1, 6, 2)  # from 4 to 20
            f_1 = rng.standard_normal(n_pos + n_neg)  # scores, the positives first
            f_2 = f_1 + 10.0 ** rng.uniform(-3, 0) * rng.uniform(-1, 1, f_1.size)
            # the sample
            i, k = rng.integers(0, n_pos, 3), n_pos + rng.integers(0, n_neg, 3)
            l_1, l_2 = (  # L(f_1), L(f_2)
                _ramp_risk(f[:n_pos], f[n_pos:], theta, p)
                - _ramp_risk(f[i], f[k], theta, p)
                for f in (f_1, f_2)
            )
            distance = float(np.abs(f_1 - f_2).max())
            largest = max(largest, (l_1 - l_2) / (4 / theta * distance))
        yield "Lemma 5", p, np.nan, "largest ratio", largest


def _generalisation(
    rng: np.random.Generator,
    powers: list[float],  # p
    rankers: int,
    features: int,
    distance: float,  # between the means of the classes
    theta: float,  # the margin
    sizes: list[int],  # n, of each class
    draws: int,  # training sets of each size
) -> Iterator[_Row]:
    """Yield how far true risks exceed risks on training sets, and the bounds of such excesses."""
    # A risk is the p-norm over the negatives of the heights: the share of positives not
    # above each. Theorems 2 and 3 bound the largest excess in a class of rankers, where
    # on the training set a positive has to be `theta` above; Lemma 9 bounds the excess
    # of one ranker, with the loss phi. Negatives are N(0, I), positives N((distance, 0,
    # ...), I). A ranker is the projection on a direction, so scores are normal, and its
    # true risk is an integral over a negative's score.
    directions = rng.standard_normal((rankers, features))  # a row for each ranker
    directions /= np.linalg.norm(directions, axis=1, keepdims=True)
    shifts = distance * directions[:, 0]  # of the positives, along each direction
    # The true risks, by quadrature
    # for means over a negative's score
    nodes, weights = np.polynomial.hermite_e.hermegauss(80)
    weights /= weights.sum()
    # phi: the mean zero-one loss with these margins
    steps = theta * (np.arange(8) + 0.5) / 8
    # by ranker: height of a negative at each node
    heights_at = ndtr(nodes - shifts[:, None])
    # with phi, first ranker
    stairs_at = ndtr(nodes + steps[:, None] - shifts[0]).mean(axis=0)
    # of each ranker
    true_risks = {p: (heights_at**p @ weights) ** (1 / p) for p in powers}
    # first ranker
    true_stairs = {p: float((stairs_at**p @ weights) ** (1 / p)) for p in powers}
    for n in sizes:
        # By p, the excesses on the training sets: the most of all rankers, and the
        # first ranker's
        excesses: dict[float, list[float]] = {p: [] for p in powers}
        excesses_of_first: dict[float, list[float]] = {p: [] for p in powers}
        for _ in range(draws):
            # `shift` moves the positives
            X_pos, X_neg = rng.standard_normal((2, n, features))
            scores = [  # by ranker: of the positives, and of the negatives
                (np.sort(X_pos @ direction + shift), np.sort(X_neg @ direction))
                for direction, shift in zip(directions, shifts, strict=True)
            ]
            # By ranker and negative: the share of the positives not `theta` above the
            # negative.
            heights = [
                np.searchsorted(pos, neg + theta, "right") / n for pos, neg in scores
            ]
            [(pos, neg), *_] = scores  # of the first ranker
            counts = [np.searchsorted(pos, neg + step, "right") for step in steps]
            # heights with the loss phi, first ranker
            stairs = np.mean(counts, axis=0) / n
            for p in powers:
                empirical = [np.mean(h**p) ** (1 / p) for h in heights]
                excesses[p].append(float(np.max(true_risks[p] - empirical)))
                excesses_of_first[p].append(
                    true_stairs[p] - float(np.mean(stairs**p)) ** (1 / p)
                )
        for p in powers:
            for statement, excess, cover, divisor, least in (
                ("Theorem 2", excesses[p], rankers, 4, 0.0),
                ("Theorem 3", excesses[p], rankers, 4, float(true_risks[p].min())),
                ("Lemma 9", excesses_of_first[p], 1, 2, true_stairs[p]),
            ):
                yield (
                    statement,
                    p,
                    n,
                    "measured",
                    max(0.0, float(np.quantile(excess, 1 - DELTA))),
                )
                yield statement, p, n, "bound", _epsilon(cover, n, p, divisor, least)
                yield statement, p, n, "largest possible", 1.0


def _epsilon(cover: int, n: int, p: float, divisor: int, least: float) -> float:
    """Return the epsilon that deviations reach with probability 0.05 at most, by a statement."""
    # Theorem 2 (with least = 0), Theorem 3 and Lemma 9 bound this probability, with n
    # rows a class, by 2 cover (exp(-2 n max((e r^(p-1))^2, e^(2 p))) + n exp(-2 n
    # e^2)): e is epsilon / divisor, r the `least` true risk, and `cover` the number of
    # rankers in the class.

    def log_bound(log_epsilon: float) -> float:  # log(this bound / 0.05), which falls
        e = math.exp(log_epsilon) / divisor
        log_first = -2 * n * max((e * least ** (p - 1)) ** 2, e ** (2 * p))
        log_second = -2 * e**2 * n + math.log(n)
        return (
            math.log(2 * cover)
            + float(np.logaddexp(log_first, log_second))
            - math.log(DELTA)
        )

    # the root, in [1e-6, 1e3]
    return math.exp(brentq(log_bound, math.log(1e-6), math.log(1e3)))


def _compare_minimisers(
    rng: np.random.Generator, powers: list[float], problems: int
) -> Iterator[_Row]:
    """Yield how much the losses of the minimisers of R_p,exp differ.

    Not at all, by Theorem 4.
    """
    # L-BFGS finds two minimisers from random starts, Newton's a third (of dependent
    # features).
    for p in powers:
        largest = {"dependent features": 0.0, "unbounded": 0.0}
        for _ in range(problems):
            X = rng.random((40, 3))
            # by a noisy feature
            positive = X[:, 0] + rng.standard_normal(40) * 0.5 > 0.5
            positive[:2] = [True, False]  # both classes
            dependent = np.hstack(
                [X, X @ rng.standard_normal((3, 3)), np.ones((40, 1))]
            )
            newton = PNormPush(p, method="newton", max_iter=200).fit(X, positive)
            by_newton = [X @ newton.coef_] if not newton.unbounded_ else []
            # A feature that is 1 only for some positives ranks no pair wrongly: no
            # weight is best.
            unbounded = np.column_stack([X, positive & (X[:, 1] > 0.5)])
            for name, features, known in (
                ("dependent features", dependent, by_newton),
                ("unbounded", unbounded, []),
            ):
                starts = rng.standard_normal((2, features.shape[1]))
                risk = _log_risk(features[positive], features[~positive], p)
                scores = [*known, *(features @ _minimise(risk, w) for w in starts)]
                # The minimisers should agree in the losses of all pairs, not in the
                # scores.
                first, *others = (
                    np.exp(s[~positive] - s[positive][:, None]) for s in scores
                )
                gaps = [float(np.abs(losses - first).max()) for losses in others]
                largest[name] = max(largest[name], *gaps)
        for name, gap in largest.items():
            yield f"Theorem 4, {name}", p, np.nan, "largest difference", gap


def _log_risk(
    pos: NDArray, neg: NDArray, p: float
) -> Callable[[NDArray], tuple[float, NDArray]]:
    """Return log R_p,exp / p and its gradient as a function of w.

    R_p,exp is a product.
    """
    # R_p,exp = sum_k (sum_i e^(s_k - s_i))^p = (sum_i e^-s_i)^p sum_k e^(p s_k): scores
    # s, i over the positives, k over the negatives.

    def risk(w: NDArray) -> tuple[float, NDArray]:
        a, b = -(pos @ w), p * (neg @ w)
        return float(logsumexp(a) + logsumexp(b) / p), neg.T @ softmax(
            b
        ) - pos.T @ softmax(a)

    return risk


def _log_adaboost_risk(pos: NDArray, neg: NDArray, w: NDArray) -> tuple[float, NDArray]:
    """Return log sum_i e^(-y_i f(x_i)) and its gradient.

    The last weight of f is its constant.
    """
    z = np.concatenate([-(pos @ w[:-1]) - w[-1], neg @ w[:-1] + w[-1]])  # -y f(x)
    shares = softmax(z) * np.repeat([-1, 1], [len(pos), len(neg)])
    by_w = pos.T @ shares[: len(pos)] + neg.T @ shares[len(pos) :]
    return float(logsumexp(z)), np.append(by_w, shares.sum())


def _log_exponential_price(
    pos: NDArray, neg: NDArray, w: NDArray
) -> tuple[float, NDArray]:
    # Return log sum_k e^(height_k), height_k = sum_i e^(s_k - s_i), and its gradient.
    a, b = -(pos @ w), neg @ w  # log height_k = logsumexp(a) + b_k
    heights = np.exp(np.minimum(logsumexp(a) + b, 700))  # e^710 overflows
    shares = softmax(heights) * heights  # d height_k = height_k d(log height_k)
    return float(logsumexp(heights)), neg.T @ shares - shares.sum() * (
        pos.T @ softmax(a)
    )


def _minimise(risk: Callable[[NDArray], tuple[float, NDArray]], w: NDArray) -> NDArray:
    options = {
        "maxiter": 5000,
        "maxfun": 20000,
        "ftol": 1e-15,
        "gtol": 1e-10,
        "maxcor": 30,
    }
    # to high precision
    return minimize(risk, w, jac=True, method="L-BFGS-B", options=options).x


def push_objectives(
    datasets: DatasetNames,
    powers: Powers,
    rows: AtLeastTwo,
    repetitions: AtLeastTwo,
    seed: Seed,
) -> pd.DataFrame:
    """Compare the minimisers of AdaBoost's risk, R_p,exp, the price e^r and R_max."""
    # Sections 1, 2 and 9.2. AdaBoost has a constant among its weak classifiers.
    return means_of_fits(
        (name, *compared)
        for name in datasets
        for train, test in training_sets(name, rows, repetitions, seed)
        for compared in _compare_objectives(train, test, powers)
    )


def _compare_objectives(
    train: Rows, test: Rows, powers: list[float]
) -> Iterator[tuple[str, str, str, float]]:
    """Minimise all objectives.

    Yield each fit, the rows measured, the measure and its value.
    """
    with threadpool_limits(1):  # the same results on any number of cores
        fits = [*_minimise_objectives(*train, powers)]
    for fit, w in fits:
        for part, (X, y) in (("training", train), ("test", test)):
            for measure, value in _measures(y, X @ w, powers):
                yield fit, part, measure, value


def _minimise_objectives(
    X: NDArray, y: NDArray, powers: list[float]
) -> Iterator[tuple[str, NDArray]]:
    """Yield names and minimisers of R_p,exp, AdaBoost's risk, the price e^r and R_max."""
    pos, neg, zero = X[y > 0], X[y < 0], np.zeros(X.shape[1])
    w = zero  # the minimiser for one p is the start for the next p
    for p in powers:
        w = _minimise(_log_risk(pos, neg, p), w)
        yield f"p={p:g}", w
    adaboost = partial(_log_adaboost_risk, pos, neg)
    # without the constant
    yield "AdaBoost", _minimise(adaboost, np.append(zero, 0.0))[:-1]
    yield "e^r", _minimise(partial(_log_exponential_price, pos, neg), w)
    p = max(powers)
    # R_max is the limit of the p-norm: raise p, from the last minimiser
    while p < _STEEP:
        p = min(4 * p, _STEEP)
        w = _minimise(_log_risk(pos, neg, p), w)
    yield "R_max", w


def _measures(
    y: NDArray, scores: NDArray, powers: list[float]
) -> Iterator[tuple[str, float]]:
    """Yield AUC, and power means and maximum of the negatives' heights as shares of positives."""
    # a height: positives not above it
    n_pos, n_neg = int(np.sum(y > 0)), int(np.sum(y < 0))
    yield "AUC", auc(y, scores)
    for p in powers:  # R_p,1: of the zero-one loss
        yield (
            f"R_{p:g},1^(1/{p:g})",
            (pnorm_risk(y, scores, p) / n_neg) ** (1 / p) / n_pos,
        )
    yield "R_max", r_max(y, scores) / n_pos
