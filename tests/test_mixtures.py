"""Gaussian mixtures, and the studies of gultekin that are made of them."""

import itertools
import math

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.integrate import quad
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
    second, mean = np.zeros((4, 4)), np.zeros(4)
    classes = (zip(mixture.weights, means, strict=True) for means in mixture.means[::-1])
    for (c, pos), (d, neg) in itertools.product(*classes):
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


def test_one_component_has_a_linear_likelihood_ratio():
    mixture = pair(k=1)
    gap = mixture.means[1][0] - mixture.means[0][0]
    best = norm.cdf(math.sqrt(gap @ np.linalg.solve(mixture.covariance, gap) / 2))
    w = minimise_over_ball(mixture.second, mixture.mean)
    assert mixture.auc(w) == pytest.approx(best, rel=1e-12)
    value = mixture.largest_auc(500, np.random.default_rng(0))
    assert value == pytest.approx(best, rel=1e-9)


def test_no_linear_ranker_exceeds_the_likelihood_ratio():
    """An exclusive or, where every linear ranker is bad."""
    means = np.array([[[2.0, -2.0], [-2.0, 2.0]], [[2.0, 2.0], [-2.0, -2.0]]])
    mixture = MixturePair(np.array([0.5, 0.5]), means, np.eye(2))
    rng = np.random.default_rng(0)
    X, y = mixture.sample(20_000, 20_000, rng)
    value = mixture.largest_auc(20_000, rng)
    assert value == pytest.approx(auc(y, mixture.log_likelihood_ratio(X)), abs=0.01)
    angles = np.linspace(0, np.pi, 50)
    assert max(mixture.auc([math.cos(a), math.sin(a)]) for a in angles) < 0.76 < value


def test_drawn_mixtures():
    mixture = draw_mixture_pair(3, 4.0, 10, np.random.default_rng(0))
    assert mixture.means.shape == (2, 3, 10)
    assert (mixture.means[0] >= -1).all() and (mixture.means[0] <= 0).all()
    assert (mixture.means[1] >= 0).all() and (mixture.means[1] <= 1).all()
    assert_array_equal(mixture.covariance, 16 * np.eye(10))
    assert_allclose(mixture.weights, 1 / 3)
    other = draw_mixture_pair(3, 4.0, 10, np.random.default_rng(0), eccentricity=0.5)
    assert_array_equal(other.means, mixture.means)
    assert np.trace(other.covariance) == pytest.approx(160)
    variances = np.linalg.eigvalsh(other.covariance)
    assert 3 * variances[0] > variances[-1] > 1.2 * variances[0] > 0


# --- Figure 1 ---


FIG_1 = load_config("gultekin/fig1").smoke_size().arguments()


def compute(**changes):
    return STUDIES["gaussian-mixtures"].function(**{**FIG_1, **changes})


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
    found = without_times(figure)
    pd.testing.assert_frame_equal(without_times(compute()), found, check_exact=True)
    assert (figure["value"][figure["part"] == "speed"] > 0).all()
    assert not np.allclose(without_times(compute(seed=1))["value"], found["value"])


def test_sizes_do_not_affect_other_values(figure):
    """Values belong to what they are of, not to the order in which they were found."""
    table = without_times(compute(pairs=[500], problems=FIG_1["problems"][1:]))
    both = table.merge(without_times(figure), on=list(figure.columns[:-1]))
    assert len(both) == len(table)
    assert_array_equal(both["value_x"], both["value_y"])


def test_values_are_those_of_the_solvers(figure):
    found = {"bbr": [], "lcbr": [], "optimum": []}
    for repetition in range(FIG_1["repetitions"]):
        entropy = (FIG_1["seed"], 2, repetition)
        mixture = draw_mixture_pair(2, 3.0, 10, np.random.default_rng([*entropy, 0]))
        X, y = mixture.sample(100, 100, np.random.default_rng([*entropy, 1]))
        lcbr = LCBR(100, radius=10.0, random_state=np.random.default_rng([*entropy, 2, 100]))
        found["bbr"].append(mixture.auc(BBR(10.0).fit(X, y).coef_))
        found["lcbr"].append(mixture.auc(lcbr.fit(X, y).coef_))
        w = minimise_over_ball(mixture.second, mixture.mean, 10.0)
        found["optimum"].append(mixture.auc(w))
    for method, values in found.items():
        where = {"part": "pairs", "components": 2, "measure": "auc", "method": method}
        where |= {"pairs": 100} if method == "lcbr" else {}
        error = np.std(values, ddof=1) / math.sqrt(len(values))
        for statistic, value in (("mean", np.mean(values)), ("standard error", error)):
            assert cell(figure, **where, statistic=statistic) == pytest.approx(value, rel=1e-12)


def test_no_risk_lies_below_the_optimum(figure):
    risks = figure[(figure["measure"] == "risk") & (figure["statistic"] == "mean")]
    for _, rows in risks.groupby("components"):
        assert (rows["value"] >= cell(rows, method="optimum")).all()


@pytest.mark.parametrize(("changes", "says"), [
    ({"shares": [0.001, 0.5]}, "rows 200 0.001"),
    ({"problems": [MixtureProblem(components=1, sigma=s) for s in (1, 2)]}, ""),
])  # fmt: skip
def test_incompatible_parameters_are_reported(changes, says):
    with raises(InputError, says):
        compute(**changes)


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
        probability = b.theorem_2_probability(s, np.array([epsilon]), norm)
        assert probability == pytest.approx(delta, rel=1e-8)
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
    shares = [np.mean(deviations >= epsilon - 1e-12) for epsilon in exact["epsilon"]]
    assert len(exact) >= 3
    assert_allclose(exact["value"], shares, rtol=1e-12)


def test_bounds_hold():
    bounds = smoke_table("gultekin/bound")
    keys = ["what", "statement", "rows", "pairs", "epsilon"]
    compared = bounds[bounds["what"].isin(["deviation", "probability"])]
    wide = compared.pivot(index=keys, columns="quantity", values="value")
    measured = wide.dropna(subset="re-derived")
    assert len(measured) > 30 and (measured["measured"] <= measured["re-derived"]).all()
    assert (measured["printed"] <= measured["re-derived"]).all()


def test_the_printed_vector_bound_is_false():
    """With L = X instead of 2 X; the re-derived one holds."""
    for s in (100, 10_000):
        rows = pd.DataFrame(_coins(s, 40, 2.0)).iloc[:, [0, 5, 6]]
        ratio = rows[rows[0] == "largest ratio"].set_index(5)[6]
        assert ratio["printed"] > 10 and ratio["re-derived"] < 1


def test_odd_size_is_reported():
    config = load_config("gultekin/bound").smoke_size()
    with raises(InputError, "21"):
        STUDIES["pair-bounds"].function(**{**config.arguments(), "rows": [20, 21]})
