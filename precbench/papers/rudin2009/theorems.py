"""The theorems of rudin2009 beside measured values, and similar objectives."""

import math
from collections.abc import Callable, Iterator
from functools import partial
from typing import Annotated, NamedTuple

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
from precbench.papers.rudin2009.lists import (
    FitValue,
    Rows,
    means_of_fits,
    training_sets,
)
from precbench.ranking.metrics import auc, pnorm_risk, r_max
from precbench.solvers import PNormPush

DELTA = 0.05  # the probability with which a bound may fail
Powers = Annotated[list[Annotated[float, Field(ge=1)]], Field(min_length=1)]
# p at which the p-norm stands for R_max: its log is off by log K / p at most
_STEEP = 2.0**14
_LARGEST_LOG = 700  # whose exponential is still a float: e^710 overflows


class _Row(NamedTuple):
    statement: str
    p: float
    size: float
    quantity: str
    value: float


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
    """Measure both sides of Theorems 1 to 4 and Lemmas 5 and 9."""
    # Each function below says what it measures. A ratio divides the left
    # side of an inequality by the right side, so it should be at most 1 (``stated``,
    # the last row); in Section 2 the ratio falls towards 1. ``measured`` is the
    # deviation that 5 % of the draws exceed, ``bound`` the deviation that, by the
    # theorem, is reached with probability 0.05 at most.
    rng = np.random.default_rng(seed)
    with threadpool_limits(1):
        yield from _theorem_1(rng, powers, lists)
        yield from _steep_prices(rng, lists)
        yield from _lipschitz(rng, powers, pairs, margin)
        yield from _generalisation(
            rng, powers, rankers, features, distance, margin, sizes, draws
        )
        yield from _compare_minimisers(rng, powers, problems)
        # the limit of all ratios
        yield _Row("", p=np.nan, size=np.nan, quantity="stated", value=1.0)


_Elementwise = Callable[[NDArray], NDArray]

# losses of z = f(x_i) - f(x~_k), of a positive i and a negative k
_LOSSES: dict[str, _Elementwise] = {
    "zero-one": lambda z: (z <= 0).astype(float),
    "exponential": lambda z: np.exp(-z),
    "hinge": lambda z: np.maximum(0, 1 - z),
    "logistic": lambda z: np.logaddexp(0, -z),
    "logistic, base 2": lambda z: np.logaddexp(0, -z) / math.log(2),
}


def _heights(pos: NDArray, neg: NDArray, loss: _Elementwise) -> NDArray:
    """Return the height of each negative: the sum of its losses over the positives."""
    return loss(pos[:, None] - neg).sum(axis=0)


def _log_of_exponential(r: NDArray) -> NDArray:  # of the price e^r
    return r


def _log_of_power(p: float, r: NDArray) -> NDArray:  # of the price r^p
    return p * np.log(r)


def _theorem_1(
    rng: np.random.Generator, powers: list[float], lists: int
) -> Iterator[_Row]:
    """Yield the largest ratio of the sides of each inequality of Theorem 1.

    R_g,l sums the price g(height) over the K negatives, where a height sums the loss l
    over the positives; the index 1 is the zero-one loss, and R_max its largest height.
    K g(R_max / K) <= R_g,1 <= K g(R_max), and R_g,1 <= R_g,l for a loss l that is at
    least the zero-one loss.
    """
    log_prices: dict[str, _Elementwise] = {"e^r": _log_of_exponential}
    for p in powers:
        log_prices[f"r^{p:g}"] = partial(_log_of_power, p)
    largest: dict[tuple[str, str], float] = {}  # by price and inequality
    for _ in range(lists):
        n_pos, n_neg = rng.integers(1, 13, 2)  # n_neg is K
        # multiples of 1/4, with ties
        pos = rng.integers(0, 8, n_pos) / 4.0
        neg = rng.integers(0, 8, n_neg) / 4.0
        heights = {name: _heights(pos, neg, loss) for name, loss in _LOSSES.items()}
        r_max_is_zero = not heights["zero-one"].any()
        for price, log_g in log_prices.items():
            if r_max_is_zero and price != "e^r":
                continue  # both sides are 0
            for inequality, log_ratio in _log_ratios(heights, log_g).items():
                ratio = math.exp(min(log_ratio, _LARGEST_LOG))
                key = (price, inequality)
                largest[key] = max(largest.get(key, 0.0), ratio)
    for (price, inequality), ratio in largest.items():
        yield _Row(
            f"Theorem 1, {price}",
            p=np.nan,
            size=np.nan,
            quantity=f"largest ratio, {inequality}",
            value=ratio,
        )


def _log_ratios(heights: dict[str, NDArray], log_g: _Elementwise) -> dict[str, float]:
    """Return by inequality of Theorem 1 the logarithm of left / right side."""
    ones = heights["zero-one"]
    log_n_neg = math.log(len(ones))
    worst = ones.max(keepdims=True)  # R_max
    log_ratios = {}
    with np.errstate(divide="ignore"):  # log 0
        log_risk = float(logsumexp(log_g(ones)))  # R_g,1
        left = log_g(worst / len(ones))[0] + log_n_neg
        log_ratios["K g(R_max / K) <= R_g,1"] = left - log_risk
        right = log_g(worst)[0] + log_n_neg
        log_ratios["R_g,1 <= K g(R_max)"] = log_risk - right
        for name, of_loss in heights.items():
            if name != "zero-one":
                right = float(logsumexp(log_g(of_loss)))
                log_ratios[f"R_g,1 <= R_g,{name}"] = log_risk - right
    return log_ratios


def _steep_prices(rng: np.random.Generator, lists: int) -> Iterator[_Row]:
    """Yield the largest ratio of g^-1(R) to R_max for steep prices g (Section 2).

    R sums g(height) over the negatives, and R_max is the largest height: the steeper g
    is, the nearer g^-1(R), a root or log, comes to R_max. The loss is zero-one, but for
    the last price.
    """
    ratios: dict[str, list[float]] = {
        "r^64": [],
        "e^r": [],
        "r^64, exponential loss": [],
    }
    for _ in range(lists):
        pos = rng.standard_normal(100) + 1
        neg = rng.standard_normal(100)
        ones = _heights(pos, neg, _LOSSES["zero-one"])
        exponentials = _heights(pos, neg, _LOSSES["exponential"])
        ratios["r^64"].append(_root_to_largest(ones))
        ratios["e^r"].append(float(logsumexp(ones)) / ones.max())
        ratios["r^64, exponential loss"].append(_root_to_largest(exponentials))
    for price, of_price in ratios.items():
        yield _Row(
            "Section 2",
            p=np.nan,
            size=np.nan,
            quantity=f"largest ratio, g^-1(R) to R_max, {price}",
            value=max(of_price),
        )


def _root_to_largest(heights: NDArray) -> float:
    """Return (sum of height^64)^(1/64) divided by the largest height."""
    return float(np.sum((heights / heights.max()) ** 64) ** (1 / 64))


def _ramp_risk(pos: NDArray, neg: NDArray, theta: float, p: float) -> float:
    """Return the p-norm over negatives of the mean ramp loss over positives."""
    heights = np.clip(1 - (pos[:, None] - neg) / theta, 0, 1).mean(axis=0)
    return float(np.mean(heights**p) ** (1 / p))


def _lipschitz(
    rng: np.random.Generator, powers: list[float], pairs: int, theta: float
) -> Iterator[_Row]:
    """Yield the largest ratio of the left to the right side of Lemma 5.

    L(f_1) - L(f_2) <= 4 Lip(phi) max |f_1 - f_2|, where L(f) is the risk of the scores
    f on all rows less the risk on a sample. The loss phi is the ramp, with
    Lip(phi) = 1 / theta.
    """
    for p in powers:
        largest = 0.0
        for _ in range(pairs):
            n_pos, n_neg = 4 * rng.integers(1, 6, 2)  # from 4 to 20
            # scores, the positives first
            f_1 = rng.standard_normal(n_pos + n_neg)
            f_2 = f_1 + 10.0 ** rng.uniform(-3, 0) * rng.uniform(-1, 1, f_1.size)
            # three rows of each class are the sample
            i = rng.integers(0, n_pos, 3)
            k = n_pos + rng.integers(0, n_neg, 3)
            l_1 = _ramp_risk(f_1[:n_pos], f_1[n_pos:], theta, p)
            l_1 -= _ramp_risk(f_1[i], f_1[k], theta, p)
            l_2 = _ramp_risk(f_2[:n_pos], f_2[n_pos:], theta, p)
            l_2 -= _ramp_risk(f_2[i], f_2[k], theta, p)
            distance = float(np.abs(f_1 - f_2).max())
            largest = max(largest, (l_1 - l_2) / (4 / theta * distance))
        yield _Row("Lemma 5", p, size=np.nan, quantity="largest ratio", value=largest)


class _Projections(NamedTuple):
    """Rankers that project normal rows on directions, so that all scores are normal.

    Negatives are N(0, I), positives N((distance, 0, ...), I).
    """

    directions: NDArray[np.float64]  # a row for each ranker
    shifts: NDArray[np.float64]  # of the positives, along each direction
    theta: float  # the margin

    @property
    def steps(self) -> NDArray[np.float64]:
        """The margins of 8 zero-one losses; phi is their mean, a ramp in steps."""
        return self.theta * (np.arange(8) + 0.5) / 8

    def true_risks(self, p: float) -> NDArray[np.float64]:
        """Return R_p,1 of each ranker, an integral over a negative's score."""
        nodes, weights = _quadrature()
        heights = ndtr(nodes - self.shifts[:, None])
        return (heights**p @ weights) ** (1 / p)

    def true_risk_of_first(self, p: float) -> float:
        """Return R_p,phi of the first ranker."""
        nodes, weights = _quadrature()
        heights = ndtr(nodes + self.steps[:, None] - self.shifts[0]).mean(axis=0)
        return float((heights**p @ weights) ** (1 / p))


def _quadrature() -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return nodes and weights for means over a standard normal score."""
    nodes, weights = np.polynomial.hermite_e.hermegauss(80)
    return nodes, weights / weights.sum()


class _Heights(NamedTuple):
    """Heights of the negatives of a training set, as shares of the positives."""

    # by ranker and negative: the share of positives not `theta` above the negative
    with_margin: list[NDArray[np.float64]]
    of_first: NDArray[np.float64]  # of the first ranker with the loss phi


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
    """Yield how far true risks exceed those on training sets, and their bounds.

    A risk is the p-norm over the negatives of the heights: the share of positives not
    above each. Theorems 2 and 3 bound the largest excess in a class of rankers, where
    on the training set a positive has to be `theta` above; Lemma 9 bounds the excess of
    one ranker, with the loss phi.
    """
    directions = rng.standard_normal((rankers, features))
    directions /= np.linalg.norm(directions, axis=1, keepdims=True)
    class_of_rankers = _Projections(directions, distance * directions[:, 0], theta)
    true_risks = {p: class_of_rankers.true_risks(p) for p in powers}
    true_risk_of_first = {p: class_of_rankers.true_risk_of_first(p) for p in powers}
    for n in sizes:
        all_heights = [_draw_heights(rng, class_of_rankers, n) for _ in range(draws)]
        for p in powers:
            excesses = []  # the largest of all rankers
            excesses_of_first = []
            for heights in all_heights:  # of a training set
                empirical = [np.mean(h**p) ** (1 / p) for h in heights.with_margin]
                excesses.append(float(np.max(true_risks[p] - empirical)))
                empirical_of_first = float(np.mean(heights.of_first**p)) ** (1 / p)
                excesses_of_first.append(true_risk_of_first[p] - empirical_of_first)
            bounds = {
                "Theorem 2": _epsilon(rankers, n, p, divisor=4, least=0.0),
                "Theorem 3": _epsilon(
                    rankers, n, p, divisor=4, least=float(true_risks[p].min())
                ),
                "Lemma 9": _epsilon(1, n, p, divisor=2, least=true_risk_of_first[p]),
            }
            for statement, bound in bounds.items():
                bounded = excesses_of_first if statement == "Lemma 9" else excesses
                measured = max(0.0, float(np.quantile(bounded, 1 - DELTA)))
                yield _Row(statement, p, n, "measured", measured)
                yield _Row(statement, p, n, "bound", bound)
                yield _Row(statement, p, n, "largest possible", 1.0)


def _draw_heights(rng: np.random.Generator, rankers: _Projections, n: int) -> _Heights:
    """Draw n rows of each class, and return the heights of the negatives."""
    X_pos, X_neg = rng.standard_normal((2, n, rankers.directions.shape[1]))
    with_margin = []
    for direction, shift in zip(rankers.directions, rankers.shifts, strict=True):
        pos = np.sort(X_pos @ direction + shift)
        neg = np.sort(X_neg @ direction)
        with_margin.append(np.searchsorted(pos, neg + rankers.theta, "right") / n)
    pos_of_first = np.sort(X_pos @ rankers.directions[0] + rankers.shifts[0])
    neg_of_first = np.sort(X_neg @ rankers.directions[0])
    counts = [
        np.searchsorted(pos_of_first, neg_of_first + step, "right")
        for step in rankers.steps
    ]
    return _Heights(with_margin, of_first=np.mean(counts, axis=0) / n)


def _epsilon(cover: int, n: int, p: float, *, divisor: int, least: float) -> float:
    """Return the epsilon that deviations reach with probability 0.05 at most.

    With n rows a class, I = K = n, and e = epsilon / divisor, Theorem 2 (where `least`
    is 0), Theorem 3 and Lemma 9 bound the probability by
    2 cover (exp(-2 n max((e least^(p-1))^2, e^(2 p))) + n exp(-2 n e^2)). `cover` is
    the number of rankers in the class, `least` their least true risk.
    """

    def log_bound(log_epsilon: float) -> float:  # log(this bound / 0.05), which falls
        e = math.exp(log_epsilon) / divisor
        log_first = -2 * n * max((e * least ** (p - 1)) ** 2, e ** (2 * p))
        log_second = -2 * e**2 * n + math.log(n)
        log_sum = float(np.logaddexp(log_first, log_second))
        return math.log(2 * cover) + log_sum - math.log(DELTA)

    # the root, in [1e-6, 1e3]
    return math.exp(brentq(log_bound, math.log(1e-6), math.log(1e3)))


def _compare_minimisers(
    rng: np.random.Generator, powers: list[float], problems: int
) -> Iterator[_Row]:
    """Yield how much the losses of the minimisers of R_p,exp differ.

    By Theorem 4 they do not. L-BFGS finds two minimisers from random starts; without
    the dependent features Newton's method finds a third.
    """
    for p in powers:
        largest = {"dependent features": 0.0, "unbounded": 0.0}
        for _ in range(problems):
            X = rng.random((40, 3))
            # The label is a noisy feature above 0.5; both classes occur.
            positive = X[:, 0] + rng.standard_normal(40) * 0.5 > 0.5
            positive[:2] = [True, False]

            mixed = X @ rng.standard_normal((3, 3))
            dependent = np.hstack([X, mixed, np.ones((40, 1))])
            newton = PNormPush(p, method="newton", max_iter=200).fit(X, positive)
            scores = [] if newton.unbounded_ else [X @ newton.coef_]
            scores += _two_minimisers(rng, dependent, positive, p)
            gap = _largest_gap(scores, positive)
            largest["dependent features"] = max(largest["dependent features"], gap)

            # A feature that is 1 only for some positives ranks no pair wrongly: no
            # weight is best.
            unbounded = np.column_stack([X, positive & (X[:, 1] > 0.5)])
            gap = _largest_gap(_two_minimisers(rng, unbounded, positive, p), positive)
            largest["unbounded"] = max(largest["unbounded"], gap)
        for name, gap in largest.items():
            yield _Row(
                f"Theorem 4, {name}",
                p,
                size=np.nan,
                quantity="largest difference",
                value=gap,
            )


def _two_minimisers(
    rng: np.random.Generator, X: NDArray, positive: NDArray[np.bool_], p: float
) -> list[NDArray]:
    """Return the scores of two minimisers of R_p,exp, from random starts."""
    risk = _log_risk(X[positive], X[~positive], p)
    starts = rng.standard_normal((2, X.shape[1]))
    return [X @ _minimise(risk, start) for start in starts]


def _largest_gap(scores: list[NDArray], positive: NDArray[np.bool_]) -> float:
    """Return how far the exponential losses of pairs differ from those of the first.

    Minimisers should agree in the losses of all pairs, not in the scores.
    """
    losses = [np.exp(s[~positive] - s[positive][:, np.newaxis]) for s in scores]
    first, *others = losses
    return max(float(np.abs(other - first).max()) for other in others)


def _log_risk(
    pos: NDArray, neg: NDArray, p: float
) -> Callable[[NDArray], tuple[float, NDArray]]:
    """Return log R_p,exp / p and its gradient as a function of w.

    R_p,exp = sum_k (sum_i e^(s_k - s_i))^p = (sum_i e^-s_i)^p sum_k e^(p s_k): scores
    s, i over the positives, k over the negatives.
    """

    def risk(w: NDArray) -> tuple[float, NDArray]:
        a = -(pos @ w)
        b = p * (neg @ w)
        value = float(logsumexp(a) + logsumexp(b) / p)
        return value, neg.T @ softmax(b) - pos.T @ softmax(a)

    return risk


def _log_adaboost_risk(pos: NDArray, neg: NDArray, w: NDArray) -> tuple[float, NDArray]:
    """Return log sum_i e^(-y_i f(x_i)) and its gradient.

    The last weight of f is its constant.
    """
    weights, constant = w[:-1], w[-1]
    z = np.concatenate([-(pos @ weights) - constant, neg @ weights + constant])  # -y f
    shares = softmax(z) * np.repeat([-1, 1], [len(pos), len(neg)])
    by_w = pos.T @ shares[: len(pos)] + neg.T @ shares[len(pos) :]
    return float(logsumexp(z)), np.append(by_w, shares.sum())


def _log_exponential_price(
    pos: NDArray, neg: NDArray, w: NDArray
) -> tuple[float, NDArray]:
    """Return log sum_k e^(sum_i e^(s_k - s_i)) and its gradient."""
    a = -(pos @ w)
    b = neg @ w
    # height_k = sum_i e^(s_k - s_i), so log height_k = logsumexp(a) + b_k
    heights = np.exp(np.minimum(logsumexp(a) + b, _LARGEST_LOG))
    shares = softmax(heights) * heights  # d height_k = height_k d(log height_k)
    gradient = neg.T @ shares - shares.sum() * (pos.T @ softmax(a))
    return float(logsumexp(heights)), gradient


def _minimise(risk: Callable[[NDArray], tuple[float, NDArray]], w: NDArray) -> NDArray:
    """Minimise a risk to high precision, from w."""
    options = {
        "maxiter": 5000,
        "maxfun": 20000,
        "ftol": 1e-15,
        "gtol": 1e-10,
        "maxcor": 30,
    }
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
    values: list[FitValue] = []
    for name in datasets:
        for train, test in training_sets(name, rows, repetitions, seed):
            values += _compare_objectives(name, train, test, powers)
    return means_of_fits(values)


def _compare_objectives(
    dataset: str, train: Rows, test: Rows, powers: list[float]
) -> Iterator[FitValue]:
    """Minimise all objectives, and measure them on training and test rows."""
    with threadpool_limits(1):  # the same results on any number of cores
        fits = list(_minimise_objectives(train.X, train.y, powers))
    for fit, w in fits:
        for part, rows in (("training", train), ("test", test)):
            for measure, value in _measures(rows.y, rows.X @ w, powers):
                yield FitValue(dataset, fit, part, measure, value)


def _minimise_objectives(
    X: NDArray, y: NDArray, powers: list[float]
) -> Iterator[tuple[str, NDArray]]:
    """Yield names and minimisers of all objectives."""
    pos = X[y > 0]
    neg = X[y < 0]
    zero = np.zeros(X.shape[1])
    w = zero  # the minimiser for one p is the start for the next p
    for p in powers:
        w = _minimise(_log_risk(pos, neg, p), w)
        yield f"p={p:g}", w
    adaboost = partial(_log_adaboost_risk, pos, neg)
    # without the constant
    yield "AdaBoost", _minimise(adaboost, np.append(zero, 0.0))[:-1]
    exponential_price = partial(_log_exponential_price, pos, neg)
    yield "e^r", _minimise(exponential_price, w)
    p = max(powers)
    # R_max is the limit of the p-norm: raise p, from the last minimiser
    while p < _STEEP:
        p = min(4 * p, _STEEP)
        w = _minimise(_log_risk(pos, neg, p), w)
    yield "R_max", w


def _measures(
    y: NDArray, scores: NDArray, powers: list[float]
) -> Iterator[tuple[str, float]]:
    """Yield the AUC, and power means and the maximum of the heights of the negatives.

    A height is the share of positives that are not above the negative.
    """
    n_pos = int(np.sum(y > 0))
    n_neg = int(np.sum(y < 0))
    yield "AUC", auc(y, scores)
    for p in powers:
        # R_p,1 is the sum of (n_pos height)^p over the negatives.
        mean = pnorm_risk(y, scores, p) / n_neg
        yield f"R_{p:g},1^(1/{p:g})", mean ** (1 / p) / n_pos
    yield "R_max", r_max(y, scores) / n_pos
