"""Gaussian mixtures, and the studies of gultekin that are made of them."""

import itertools
import math

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.integrate import quad
from scipy.optimize import minimize
from scipy.stats import multivariate_normal, norm

from precbench.errors import InputError
from precbench.experiment import load_config
from precbench.metrics import auc
from precbench.papers.gultekin.bounds import _coins, _Sample, bounds_of
from precbench.papers.gultekin.mixtures import MixturePair, MixtureProblem, draw_mixture_pair
from precbench.solvers import BBR, LCBR
from precbench.solvers.ball import minimise_over_ball
from precbench.studies import STUDIES
from tests.helpers import smoke_table
from tests.sentences import raises

# --- the distribution ---


def pair(seed=0, k=3, n=4, eccentricity=0.6):
    """Return a mixture whose components have different weights."""
    rng = np.random.default_rng(seed)
    drawn = draw_mixture_pair(k, 1.5, n, rng, eccentricity=eccentricity)
    return MixturePair(rng.dirichlet(np.ones(k)), drawn.means, drawn.covariance)


def test_moments_are_sums_over_pairs_of_components():
    mixture = pair()
    second = np.zeros((4, 4))
    mean = np.zeros(4)
    for (c, pos), (d, neg) in itertools.product(
        zip(mixture.weights, mixture.means[1], strict=True),
        zip(mixture.weights, mixture.means[0], strict=True),
    ):
        mean += c * d * (pos - neg)
        second += c * d * (2 * mixture.covariance + np.outer(pos - neg, pos - neg))
    assert_allclose(mixture.mean, mean, rtol=1e-12)
    assert_allclose(mixture.second, second, rtol=1e-12)


def test_the_auc_is_an_integral():
    """P(s1 > s0), with the densities of both scores."""
    mixture = pair()
    w = np.array([1.0, -0.5, 2.0, 0.3])
    spread = math.sqrt(w @ mixture.covariance @ w)

    def density(t):
        return mixture.weights @ norm.pdf(t, mixture.means[1] @ w, spread)

    def below(t):
        return mixture.weights @ norm.cdf(t, mixture.means[0] @ w, spread)

    found, _ = quad(lambda t: density(t) * below(t), -40, 40, limit=200, epsabs=1e-12)
    assert mixture.auc(w) == pytest.approx(found, abs=1e-9)
    assert mixture.auc(3 * w) == pytest.approx(mixture.auc(w), rel=1e-12)
    assert mixture.auc(-w) == pytest.approx(1 - mixture.auc(w), rel=1e-12)
    assert mixture.auc(np.zeros(4)) == 0.5 and mixture.risk(np.zeros(4)) == 0.5


def test_the_likelihood_ratio_is_one_of_densities():
    mixture = pair()
    X = np.random.default_rng(5).standard_normal((20, 4))

    def log_density(means):
        parts = [multivariate_normal.pdf(X, mean, mixture.covariance) for mean in means]
        return np.log(mixture.weights @ parts)

    expected = log_density(mixture.means[1]) - log_density(mixture.means[0])
    assert_allclose(mixture.log_likelihood_ratio(X), expected, atol=1e-10)


@pytest.mark.parametrize("seed", range(3))
def test_the_optimum_of_the_risk(seed):
    mixture = pair(seed)
    w = minimise_over_ball(mixture.second, mixture.mean)
    assert_allclose(w, np.linalg.solve(mixture.second, mixture.mean), rtol=1e-9)
    found = minimize(mixture.risk, np.zeros(4), method="Nelder-Mead", options={"xatol": 1e-7})
    assert mixture.risk(w) <= found.fun + 1e-12
    assert mixture.risk(w) == pytest.approx(found.fun, abs=1e-8)


def test_one_component_has_a_linear_likelihood_ratio():
    mixture = pair(k=1)
    gap = mixture.means[1][0] - mixture.means[0][0]
    best = norm.cdf(math.sqrt(gap @ np.linalg.solve(mixture.covariance, gap) / 2))
    w = minimise_over_ball(mixture.second, mixture.mean)
    assert mixture.auc(w) == pytest.approx(best, rel=1e-12)
    value, error = mixture.largest_auc(500, np.random.default_rng(0))
    assert value == pytest.approx(best, rel=1e-9) and error == pytest.approx(0, abs=1e-9)


def test_no_linear_ranker_exceeds_the_likelihood_ratio():
    """An exclusive or, where every linear ranker is bad."""
    mixture = MixturePair(
        np.array([0.5, 0.5]),
        np.array([[[2.0, -2.0], [-2.0, 2.0]], [[2.0, 2.0], [-2.0, -2.0]]]),
        np.eye(2),
    )
    rng = np.random.default_rng(0)
    X, y = mixture.sample(20_000, 20_000, rng)
    direct = auc(y, mixture.log_likelihood_ratio(X))
    value, error = mixture.largest_auc(20_000, rng)
    assert value == pytest.approx(direct, abs=8 * error) and 0 < error < 0.01
    angles = np.linspace(0, np.pi, 50)
    linear = [mixture.auc([math.cos(a), math.sin(a)]) for a in angles]
    assert max(linear) < 0.76 < value


def test_the_standard_error_is_that_of_repetitions():
    mixture = pair(k=2)
    rng = np.random.default_rng(3)
    values, errors = np.array([mixture.largest_auc(200, rng) for _ in range(200)]).T
    assert values.std() == pytest.approx(np.mean(errors), rel=0.15)
    exact = mixture.largest_auc(100_000, rng)
    assert abs(values.mean() - exact[0]) < 5 * (values.std() / 20 + exact[1])


def test_drawn_mixtures():
    mixture = draw_mixture_pair(3, 4.0, 10, np.random.default_rng(0))
    assert mixture.means.shape == (2, 3, 10)
    assert (mixture.means[0] <= 0).all() and (mixture.means[0] >= -1).all()
    assert (mixture.means[1] >= 0).all() and (mixture.means[1] <= 1).all()
    assert_array_equal(mixture.covariance, 16 * np.eye(10))
    assert_allclose(mixture.weights, 1 / 3)
    other = draw_mixture_pair(3, 4.0, 10, np.random.default_rng(0), eccentricity=0.5)
    assert_array_equal(other.means, mixture.means)
    assert np.trace(other.covariance) == pytest.approx(160)
    variances = np.linalg.eigvalsh(other.covariance)
    assert variances[-1] > 1.2 * variances[0] > 0 and variances[-1] < 3 * variances[0]


def test_samples():
    mixture = pair()
    X, y = mixture.sample(3, 5, np.random.default_rng(2))
    assert X.shape == (8, 4) and X.flags.c_contiguous
    assert_array_equal(y, [1, 1, 1, -1, -1, -1, -1, -1])
    again, _ = mixture.sample(3, 5, np.random.default_rng(2))
    assert_array_equal(again, X)


# --- Figure 1 ---


@pytest.fixture(scope="module")
def figure():
    return smoke_table("gultekin/fig1")


def cell(table, **where):
    for column, value in where.items():
        table = table[table[column] == value]
    [value] = table["value"]
    return value


def without_times(table):
    timed = table["measure"].str.startswith("seconds") | (table["part"] == "speed")
    return table[~timed].reset_index(drop=True)


def test_equal_seeds_give_equal_values_but_for_times(figure):
    again = load_config("gultekin/fig1").smoke_size().compute()
    pd.testing.assert_frame_equal(without_times(again), without_times(figure), check_exact=True)
    assert (
        np.isfinite(figure["value"]).all()
        and (figure["value"][figure["part"] == "speed"] > 0).all()
    )
    assert not figure.duplicated(list(figure.columns[:-1])).any()
    other = load_config("gultekin/fig1").smoke_size()
    changed = STUDIES["gaussian-mixtures"].function(**{**other.arguments(), "seed": 1})
    assert not np.allclose(without_times(changed)["value"], without_times(figure)["value"])


def test_sizes_do_not_affect_other_values(figure):
    """Values belong to what they are of, not to the order in which they were found."""
    config = load_config("gultekin/fig1").smoke_size()
    fewer = {"pairs": [500], "problems": config.arguments()["problems"][1:]}
    table = STUDIES["gaussian-mixtures"].function(**{**config.arguments(), **fewer})
    keys = list(figure.columns[:-1])
    both = without_times(table).merge(without_times(figure), on=keys)
    assert len(both) == len(without_times(table))
    assert_array_equal(both["value_x"], both["value_y"])


def test_values_are_those_of_the_solvers(figure):
    config = load_config("gultekin/fig1").smoke_size().arguments()
    found = {"bbr": [], "lcbr": [], "optimum": []}
    for repetition in range(config["repetitions"]):
        entropy = (config["seed"], 2, repetition)
        mixture = draw_mixture_pair(2, 3.0, 10, np.random.default_rng([*entropy, 0]))
        X, y = mixture.sample(100, 100, np.random.default_rng([*entropy, 1]))
        lcbr = LCBR(100, radius=10.0, random_state=np.random.default_rng([*entropy, 2, 100]))
        found["bbr"].append(mixture.auc(BBR(10.0).fit(X, y).coef_))
        found["lcbr"].append(mixture.auc(lcbr.fit(X, y).coef_))
        w = minimise_over_ball(mixture.second, mixture.mean, 10.0)
        found["optimum"].append(mixture.auc(w))
    where = {"part": "pairs", "components": 2, "measure": "auc"}
    for method, values in found.items():
        more = {"pairs": 100} if method == "lcbr" else {}
        for statistic, value in (
            ("mean", np.mean(values)),
            ("standard error", np.std(values, ddof=1) / math.sqrt(len(values))),
        ):
            one = cell(figure, **where, **more, method=method, statistic=statistic)
            assert one == pytest.approx(value, rel=1e-12)


def test_no_risk_lies_below_the_optimum(figure):
    risks = figure[(figure["measure"] == "risk") & (figure["statistic"] == "mean")]
    for _, rows in risks.groupby("components"):
        assert (rows["value"] >= cell(rows, method="optimum")).all()


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"shares": [0.001, 0.5]}, "rows 200 0.001"),
        ({"problems": [MixtureProblem(components=1, sigma=s) for s in (1, 2)]}, ""),
    ],
)
def test_incompatible_parameters_are_reported(changes, says):
    config = load_config("gultekin/fig1").smoke_size()
    with raises(InputError, says):
        STUDIES["gaussian-mixtures"].function(**{**config.arguments(), **changes})


# --- bounds ---


def size(epsilon, delta, norm, d, x, w):
    """Return both terms of (11), the second as printed and as re-derived."""
    first = math.log(4 * d / delta) * (norm * x**2 * w**4 + epsilon * x**2 * w**2 / 3)
    root = (math.sqrt(2 * math.log(4 / delta)) + 1) ** 2
    return first / (epsilon**2 / 32), *(x**2 * w**2 / (epsilon**2 / by) * root for by in (4, 64))


@pytest.mark.parametrize("s", [50, 5000])
@pytest.mark.parametrize("delta", [0.3, 0.05, 1e-6])
def test_bounds_follow_the_formulas(s, delta):
    w, d, norm = 1.7, 6, 0.4
    bounds = bounds_of(w, d)
    for b, second in zip((bounds["printed"], bounds["re-derived"]), (1, 2), strict=True):
        epsilon = b.theorem_2(s, delta, norm)
        sizes = size(epsilon, delta, norm, d, 1, w)
        assert max(sizes[0], sizes[second]) == pytest.approx(s, rel=1e-9)
        # The terms of (11) are those of Lemma 2, with eps / 2 and delta / 2.
        assert b.theorem_2_probability(s, np.array([epsilon]), norm) == pytest.approx(
            delta, rel=1e-8
        )
    derived = bounds["re-derived"]
    one = derived.quadratic(s, delta, norm)
    exponent = s * one**2 / (8 * norm * w**4 + 16 / 3 * one * w**2)
    assert 2 * d * math.exp(-exponent) == pytest.approx(delta, rel=1e-9)
    assert derived.quadratic_probability(s, one, norm) == pytest.approx(delta, rel=1e-9)
    for b, times in ((derived, 4), (bounds["printed"], 2)):
        two = b.linear(s, delta, b.lemma_factor)
        exponent = (two * math.sqrt(s) / (times * w) - 1) ** 2 / 2
        assert 2 * math.exp(-exponent) == pytest.approx(delta, rel=1e-9)


def test_uniform_bound_follows_the_formula():
    w, d, n, delta = 1.7, 6, 3000, 0.05
    c_1, c_2 = 8 * w + 4, 3 * w**2 + 2 * w
    for b, ball in ((bounds_of(w, d)["re-derived"], w), (bounds_of(w, d)["printed"], 1)):
        epsilon = b.uniform(n, delta)
        cover = (1 + 2 * ball / (epsilon / (2 * c_1))) ** d
        found = 2 * cover * math.exp(-(epsilon**2) / (2 * c_2**2) * 0.25 * n)
        assert found == pytest.approx(delta, rel=1e-6)


def test_pairs_are_those_that_lcbr_draws():
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((50, 3)), np.repeat([1, -1], [20, 30])
    sample = _Sample.whole(X[:20], X[20:])
    for s in (10, 20_000):
        cheap = sample.risk_of(s, np.random.default_rng(4))
        lcbr = LCBR(s, radius=0.5, random_state=4).fit(X, y)
        assert_allclose(cheap.minimiser(0.5), lcbr.coef_, atol=1e-10)
    assert_allclose(sample.risk().minimiser(0.5), BBR(0.5).fit(X, y).coef_, atol=1e-10)
    z = (X[:20, np.newaxis] - X[20:]).reshape(-1, 3)
    w = rng.standard_normal(3)
    assert sample.risk()(w) == pytest.approx(np.mean((1 - z @ w) ** 2 - 1) / 2, rel=1e-12)


def test_probabilities_of_coins_are_exact():
    """Every outcome of 2 S coins, S = 6."""
    s, radius = 6, 1.5
    rows = pd.DataFrame(_coins(s, 20, radius)).iloc[:, [0, 4, 5, 6]]
    rows.columns = ["what", "epsilon", "quantity", "value"]
    exact = rows[(rows["what"] == "probability") & (rows["quantity"] == "measured")]
    coins = np.array(list(itertools.product((-1, 1), repeat=2 * s)))
    deviations = 2 * radius * np.abs(coins.sum(axis=1)) / s  # 2 W |mu_S|, mu_N = 0
    assert len(exact) >= 3
    for _, row in exact.iterrows():
        share = np.mean(deviations >= row["epsilon"] - 1e-12)
        assert row["value"] == pytest.approx(share, rel=1e-12)


@pytest.fixture(scope="module")
def bounds():
    return smoke_table("gultekin/bound")


def test_bounds_hold(bounds):
    keys = ["what", "statement", "rows", "pairs", "epsilon"]
    compared = bounds[bounds["what"].isin(["deviation", "probability"])]
    wide = compared.pivot(index=keys, columns="quantity", values="value")
    measured = wide.dropna(subset="re-derived")
    assert len(measured) > 30 and (measured["measured"] <= measured["re-derived"]).all()
    assert (measured["printed"] <= measured["re-derived"]).all()


def test_the_printed_vector_bound_is_false(bounds):
    """With L = X instead of 2 X; the re-derived one holds."""
    for s in (100, 10_000):
        rows = pd.DataFrame(_coins(s, 40, 2.0)).iloc[:, [0, 5, 6]]
        ratio = rows[rows[0] == "largest ratio"].set_index(5)[6]
        assert ratio["printed"] > 10 and ratio["re-derived"] < 1


def test_odd_size_is_reported():
    config = load_config("gultekin/bound").smoke_size()
    with raises(InputError, "21"):
        STUDIES["pair-bounds"].function(**{**config.arguments(), "rows": [20, 21]})
