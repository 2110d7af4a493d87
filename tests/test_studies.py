"""Studies: their numbers, their configs, and the way to files, tables and figures."""

import itertools
import json
import math
from functools import partial

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.integrate import quad
from scipy.stats import multivariate_normal, norm

from precbench.claims import Evidence, load_claims, make_ledger
from precbench.claims.kinds.stated import BoundClaim
from precbench.claims.verdicts import Verdict
from precbench.core.errors import InputError
from precbench.core.studies import STUDIES
from precbench.experiment import Study, list_configs, load_config
from precbench.papers.costs import growth
from precbench.papers.gultekin.lemmas import _coins, _Sample, bounds_of
from precbench.papers.gultekin.mixtures import (
    MixturePair,
    MixtureProblem,
    draw_mixture_pair,
)
from precbench.papers.kar2014 import theory as kar2014
from precbench.papers.rudin2009 import lists as rudin2009
from precbench.papers.rudin2009 import theorems as rudin2009_theorems
from precbench.ranking.losses import SURROGATES
from precbench.ranking.metrics import METRICS, auc
from precbench.report.study_tables import read_study, study_tables
from precbench.results.read import read_values
from precbench.solvers import BBR, FTRL, LCBR, PNormPush
from precbench.solvers.bbr.ball import minimise_over_ball
from tests.helpers import (
    invoke,
    misplaced,
    shipped_config,
    shipped_configs,
    smoke_table,
    succeed,
)
from tests.sentences import mistakes, naming, raises, refused

# Equal but for times
TIMED = ["gultekin/fig1", "gultekin/cost", "kar2014/cost", "regression/mixtures"]
SMALL = """\
name: small
title: A small one
study: lemma-7
parameters: {p: 4, a: 0.4, points: 11}
"""
DISCOUNTS = "discount-factors\nparameters: {z_min: 3, z_max: 2, points: 11}\n"


def values(config, **changes):
    """Return the table of a study with other parameters."""
    loaded = load_config(config)
    return STUDIES[loaded.kind].function(**{**loaded.arguments(), **changes})


def one(table, **cell):
    """Return the only value with these entries."""
    for column, entry in cell.items():
        table = table[table[column] == entry]
    [value] = table["value"]
    return value


@pytest.fixture
def complaints(tmp_path):
    def complaints(text, old, new):
        """Return the mistakes in a config in which `new` stands for `old`."""
        path = tmp_path / "c.yaml"
        path.write_text(text.replace(old, new))
        return [
            line.removeprefix(f"{tmp_path}/") for line in mistakes(load_config, path)
        ]

    return complaints


# Numbers


FIG_1_AND_4 = load_config("rudin2009/fig-1-and-4").parameters


def losses_of_pairs():
    """Return e^(s_k - s_i), a row for each positive i, from the highest score down."""
    labels, scores = FIG_1_AND_4["labels"], FIG_1_AND_4["scores"]
    pos = [s for y, s in zip(labels, scores, strict=True) if y == 1]
    neg = [s for y, s in zip(labels, scores, strict=True) if y == -1]
    return [[math.exp(s_k - s_i) for s_k in neg] for s_i in pos]


def test_the_list_of_figure_1():
    labels, scores = FIG_1_AND_4["labels"], FIG_1_AND_4["scores"]
    assert labels.count(1) == 12
    assert labels.count(-1) == 8
    assert scores == sorted(scores, reverse=True)


@pytest.mark.parametrize("p", FIG_1_AND_4["powers"])
def test_contributions_to_the_risk_follow_the_caption(p):
    """A pair contributes height_k^(p - 1) e^(s_k - s_i)."""
    losses = losses_of_pairs()
    heights = [sum(of_negative) for of_negative in zip(*losses, strict=True)]
    contributions = [
        [heights[k] ** (p - 1) * loss for k, loss in enumerate(of_positive)]
        for of_positive in losses
    ]
    expect_shares(f"p={p}", contributions)


def test_contributions_to_the_ir_push_follow_the_caption():
    """A pair contributes ln(1 + sum_i) e^(s_k - s_i) / sum_i."""
    contributions = []
    for of_positive in losses_of_pairs():
        total = sum(of_positive)
        contributions.append([math.log1p(total) * loss / total for loss in of_positive])
    expect_shares("IR", contributions)


def expect_shares(objective, contributions):
    """Compare the shares in an objective with the contributions of the pairs."""
    table = values("rudin2009/fig-1-and-4")
    total = math.fsum(itertools.chain(*contributions))
    for i, of_positive in enumerate(contributions, start=1):
        for k, contribution in enumerate(of_positive, start=1):
            share = one(table, objective=objective, positive=str(i), negative=str(k))
            assert share == pytest.approx(contribution / total, rel=1e-12)


def test_discounting_factors():
    table = values("rudin2009/fig-3")
    assert one(table, curve="1/ln(1+z)", z=1.0) == pytest.approx(1 / math.log(2))
    assert one(table, curve="1/z", z=4.0) == 0.25
    assert one(table, curve="-ln(1+z)", z=10.0) == pytest.approx(-math.log(11))
    assert one(table, curve="share of z in the order of the caption") == 1.0


NOISY = {"datasets": ["margin-noisy"]}


@pytest.mark.parametrize(
    ("name", "changes", "places"),
    [
        pytest.param(
            "rudin2009/fig-3",
            {"z_min": 2, "z_max": 1, "points": 3},
            "z_max 1 z_min 2",
            id="an interval from 2 to 1",
        ),
        pytest.param(
            "rudin2009/pushes",
            NOISY | {"rows": 20_000},
            "20,000",
            id="pushes: no row is left to test on",
        ),
        pytest.param(
            "rudin2009/pushes",
            NOISY | {"rows": 60},
            "crucial 5",
            id="pushes: too few positives",
        ),
        pytest.param(
            "rudin2009/objectives",
            NOISY | {"rows": 20_000},
            "20,000",
            id="objectives: no row is left to test on",
        ),
        pytest.param(
            "kar2014/regret",
            NOISY | {"horizons": [20001, 20002]},
            "20,000 20,002",
            id="regret: too few rows",
        ),
        pytest.param(
            "kar2014/uniform-convergence",
            NOISY | {"sizes": [2, 20001]},
            "20,000 20,001",
            id="uniform convergence: too few rows",
        ),
        pytest.param(
            "kar2014/uniform-convergence",
            NOISY | {"sizes": [2, 3], "samples": 1},
            "2",
            id="uniform convergence: no sample of both classes",
        ),
        pytest.param(
            "kar2015/bounds",
            {"datasets": ["counterexample"]},
            "counterexample",
            id="bounds: no known optimum",
        ),
        pytest.param(
            "kar2015/rates",
            {"dataset": "counterexample"},
            "counterexample",
            id="rates: no known optimum",
        ),
        pytest.param(
            "kar2015/optima",
            {"paths": ["letters"]},
            "paths letters letter",
            id="optima: the path of another data set",
        ),
    ],
)
def test_data_that_do_not_suffice_are_reported(name, changes, places):
    with raises(InputError, places):
        values(name, **changes)


@pytest.mark.filterwarnings("ignore:the risk has no minimiser")
def test_each_push_is_best_at_its_own_end():
    """On the training rows, whose risks the pushes minimise."""
    table = values(
        "rudin2009/pushes", datasets=["margin-noisy"], rows=600, repetitions=2
    )
    means = table[(table["statistic"] == "mean") & (table["rows"] == "training")]
    by_measure = means.pivot(index="fit", columns="measure", values="value")
    at_top = by_measure["top, R^(1/p)"]
    assert at_top["top"] < at_top["bottom"]
    at_bottom = by_measure["bottom, R^(1/p)"]
    assert at_bottom["bottom"] < at_bottom["both"] < at_bottom["top"]
    share_of_crucial = by_measure["crucial pairs"]
    assert share_of_crucial["top"] < share_of_crucial["crucial pairs"]


def test_the_inequalities_of_theorem_1_hold():
    theorems = smoke_table("rudin2009/theorems")
    is_ratio = theorems["quantity"].str.startswith("largest ratio")
    is_of_theorem_1 = theorems["statement"].str.startswith("Theorem 1")
    # The logistic loss to the base e lies below the zero-one loss.
    is_natural = theorems["quantity"].str.endswith("logistic")
    ratios = theorems["value"][is_ratio & is_of_theorem_1 & ~is_natural]
    assert len(ratios) == 3 * 5
    assert (ratios <= 1 + 1e-9).all()


def test_deviations_of_the_push_are_below_their_bounds():
    theorems = smoke_table("rudin2009/theorems")
    index = ["statement", "p", "size"]
    wide = theorems.pivot_table(index=index, columns="quantity", values="value")
    assert (wide["measured"] <= wide["bound"]).all()


def test_lemma_9_with_p_1_is_hoeffdings_inequality():
    """With the exponent 2 p of Theorem 2 in its place."""
    theorems = smoke_table("rudin2009/theorems")
    epsilon = one(theorems, statement="Lemma 9", p=1.0, size=100, quantity="bound")
    assert 2 * np.exp(-0.5 * 100 * epsilon**2) * (1 + 100) == pytest.approx(0.05)


def test_minimisers_of_the_push_have_the_same_losses():
    theorems = smoke_table("rudin2009/theorems")
    is_difference = theorems["quantity"] == "largest difference"
    assert (theorems["value"][is_difference] < 1e-3).all()


def test_lemma_5_holds():
    assert one(smoke_table("rudin2009/theorems"), statement="Lemma 5", p=2.0) <= 1


def test_the_ratio_of_lemma_5_by_hand():
    """Of one pair of functions, pair of rows by pair of rows; Lip(phi) = 1 / theta."""
    theta = 0.5
    [row] = rudin2009_theorems._lipschitz(
        np.random.default_rng(3), powers=[1.0], pairs=1, theta=theta
    )
    rng = np.random.default_rng(3)
    n_pos, n_neg = 4 * rng.integers(1, 6, 2)
    n = n_pos + n_neg
    f = rng.standard_normal(n)
    other = f + 10.0 ** rng.uniform(-3, 0) * rng.uniform(-1, 1, n)
    pos_of_sample = rng.integers(0, n_pos, 3)
    neg_of_sample = n_pos + rng.integers(0, n_neg, 3)

    def risk(scores, pos, neg):
        losses = [
            min(max(1 - (scores[i] - scores[k]) / theta, 0), 1)
            for i in pos
            for k in neg
        ]
        return sum(losses) / len(losses)

    def deviation(scores):
        on_all_rows = risk(scores, range(n_pos), range(n_pos, n))
        return on_all_rows - risk(scores, pos_of_sample, neg_of_sample)

    left = deviation(f) - deviation(other)
    right = 4 / theta * max(abs(f - other))
    assert left > 0
    assert row.value == pytest.approx(left / right)


def test_adaboost_and_rankboost_have_the_same_minimiser():
    """Where a constant is among the weak classifiers (Rudin and Schapire, 2009)."""
    table = smoke_table("rudin2009/objectives")
    cell = {"rows": "training", "measure": "AUC", "statistic": "mean"}
    adaboost = one(table, fit="AdaBoost", **cell)
    rankboost = one(table, fit="p=1", **cell)
    assert adaboost == pytest.approx(rankboost, abs=1e-3)


def test_the_minimiser_of_the_push_is_that_of_the_solver():
    cell = {"rows": "training", "measure": "AUC", "statistic": "mean"}
    X, y = rudin2009.scaled_to_unit("margin-noisy")
    by_newton = []
    for repetition in range(2):
        rows = np.random.default_rng([0, repetition]).permutation(len(y))[:2000]
        push = PNormPush(4, method="newton").fit(X[rows], y[rows])
        by_newton.append(METRICS["auc"](y[rows], X[rows] @ push.coef_))
    by_study = one(smoke_table("rudin2009/objectives"), fit="p=4", **cell)
    assert by_study == pytest.approx(np.mean(by_newton), abs=1e-4)


@pytest.mark.parametrize(
    ("successes", "is_enough"),
    [(1000, True), (800, True), (775, True), (765, False)],
)
def test_too_few_successes_of_1000_are_reported(successes, is_enough):
    assert rudin2009._is_at_least(0.8, successes, 1000) == is_enough


def test_bounds_hold_at_smoke_size():
    configs = ("kar2014/regret", "kar2014/uniform-convergence")
    tables = {shipped_config(name).name: smoke_table(name) for name in configs}
    claims = [
        claim
        for claim in load_claims()
        if isinstance(claim, BoundClaim) and claim.experiment in tables
    ]
    assert len(claims) >= 9
    rows = make_ledger(claims, Evidence(values=tables))
    for claim, row in zip(claims, rows, strict=True):
        assert row.runs >= 1, row
        # A bound may lie above the regret of w = 0.
        is_idle = claim.trivial is not None and row.verdict is Verdict.NO_POWER
        assert row.verdict.holds or is_idle, row


def test_rows_of_a_stream_have_a_norm_of_1_at_most():
    X, _ = kar2014._stream("margin-noisy", 0)
    assert np.linalg.norm(X, axis=1).max() == pytest.approx(1)


HORIZON = 60
BATCH_SIZE = 8  # sqrt(60), rounded up


def first_rows():
    X, y = kar2014._stream("margin-noisy", 0)
    return X[:HORIZON], y[:HORIZON]


@pytest.mark.parametrize("objective", ["prbep", "prec@k", "pauc"])
def test_regret_equals_that_of_the_solver(objective):
    table = smoke_table("kar2014/regret")
    is_cell = (
        (table["rows"] == "batches of sqrt(T)")
        & (table["horizon"] == HORIZON)
        & (table["objective"] == objective)
    )
    quantities = table[is_cell].set_index("quantity")["value"]
    X, y = first_rows()
    n_pos = np.sum(y > 0)
    n_neg = HORIZON - n_pos
    if objective == "pauc":
        divisor = 0.1 * n_pos * n_neg
        rate = np.sqrt(BATCH_SIZE * (1 / n_pos + 1 / n_neg))
    else:
        divisor = HORIZON
        rate = np.sqrt(BATCH_SIZE / HORIZON)
    player = FTRL(objective, batch_size=BATCH_SIZE, shuffle=False).fit(X, y)
    least = player.leader(X, y).loss
    regret = (player.penalties_.sum() - least) / divisor
    assert quantities["regret"] == pytest.approx(regret, abs=1e-12)
    bound = np.sqrt(2 * np.sum(player.lipschitz_**2)) / divisor
    assert quantities["bound"] == pytest.approx(bound)
    assert quantities["rate"] == pytest.approx(rate)
    most = quantities["regret, at most"]
    assert regret <= most <= regret + 0.01 * bound
    assert quantities["constant"] == pytest.approx(most / rate)
    # A player whose w stay within 1e-9, whatever their directions.
    still = FTRL(
        objective, radius=1e-9, tol=0.1, batch_size=BATCH_SIZE, shuffle=False
    ).fit(X, y)
    idle = (still.penalties_.sum() - least) / divisor
    assert quantities["w = 0"] == pytest.approx(idle, abs=1e-6)


@pytest.mark.parametrize(
    ("name", "constant"), [("Lemma 2", 1), ("Case 2.1", 3), ("Lemma 12", 4)]
)
def test_smallest_constants_of_lemmas(name, constant):
    """A lemma holds with this constant, and with nothing less."""
    table = smoke_table("kar2014/regret")
    ratio = one(table, quantity=f"{name}, largest ratio")
    assert 0.95 * constant <= ratio <= constant + 1e-9


@pytest.fixture(scope="module")
def played():
    """FTRL that played row by row, and w_(t+1) by t, the rows played."""
    weights = {}

    def keep_weights(solver):
        weights[solver.n_iter_] = solver.coef_.copy()

    player = FTRL("prbep", shuffle=False)
    player.fit(*first_rows(), trace=keep_weights)
    return player, weights


ROW_BY_ROW = {"objective": "prbep", "rows": "single rows", "horizon": HORIZON}


def test_forward_losses_of_follow_the_regularised_leader(played):
    """Lemma 9 from the penalties, one row at a time, at the w that were played."""
    X, y = first_rows()
    _, w = played
    surrogate = SURROGATES["struct"]

    def loss(w, n):
        return surrogate.value(X[:n] @ w, y[:n], int(np.sum(y[:n] > 0)))

    penalties = [
        loss(w[t], t) - loss(w[t], t - 1)
        for t in range(1, HORIZON + 1)
        if len(set(y[: t - 1])) == 2
    ]
    # rows of one class: each positive may be missed once
    n_first = HORIZON - len(penalties)
    forward = one(smoke_table("kar2014/regret"), quantity="forward loss", **ROW_BY_ROW)
    assert forward == pytest.approx(sum(penalties) / HORIZON, abs=n_first / HORIZON)


def test_steps_of_follow_the_regularised_leader(played):
    player, w = played
    steps = [np.linalg.norm(w[t] - w[t - 1]) for t in range(1, HORIZON + 1)]
    ratio = player.eta_ * max(steps) / 4
    largest = one(smoke_table("kar2014/regret"), quantity="largest step", **ROW_BY_ROW)
    assert largest == pytest.approx(ratio, rel=0.01)


def test_error_of_a_pass_that_sees_all_rows():
    """With one buffer of all rows there is no deviation: only the open term is left."""
    changes = {"buffers": [599, 600], "horizons": [60, 61], "objectives": ["pauc"]}
    table = values("kar2014/error", **load_config("kar2014/error").smoke | changes)
    cell = {"theorem": "Theorem 6", "size": 600}
    assert one(table, quantity="bound", **cell) == pytest.approx(1)
    excess = one(table, quantity="excess", **cell)
    excess_at_zero = one(table, quantity="w = 0", **cell)
    assert 0 <= excess < excess_at_zero <= 1


@pytest.mark.parametrize("horizon", [60, 120])
def test_the_open_term_of_theorem_4(horizon):
    table = smoke_table("kar2014/error")
    bounds = table[
        (table["theorem"] == "Theorem 4")
        & (table["quantity"] == "bound")
        & (table["size"] == horizon)
    ]
    assert len(bounds) >= 1
    assert_allclose(bounds["value"], (np.log(20) / horizon) ** 0.25)


def test_costs_grow_with_the_power_of_what_is_allocated():
    curve = {"grows": ["features"], "sizes": [200, 400], "rows": 10, "features": 1}
    curve |= {"measure": "bytes", "exponent": 2}
    curves = {name: growth.CostCurve(solver=name, **curve) for name in ("bbr", "spam")}
    table = growth.growing_costs(curves, repetitions=1, seed=0)
    bytes_of = table.set_index(["curve", "size"])["value"]
    assert bytes_of["bbr", 400] > 8 * 400**2
    quotient_of_bbr = bytes_of["bbr", 400] / bytes_of["bbr", 200]
    assert quotient_of_bbr == pytest.approx(4, rel=0.1)
    quotient_of_spam = bytes_of["spam", 400] / bytes_of["spam", 200]
    assert quotient_of_spam < 2.3


def test_the_least_of_several_timed_fits_counts(monkeypatch):
    """What else the machine does only adds to a time."""
    seconds = iter([3.0, 5.0, 1.0, 8.0])  # two sizes in turn
    monkeypatch.setattr(growth, "_cost", lambda *_: next(seconds))
    curve = {
        "solver": "bbr",
        "grows": ["rows"],
        "sizes": [10, 20],
        "rows": 10,
        "features": 1,
    }
    curves = {"costs": growth.CostCurve(**curve, exponent=1)}
    table = growth.growing_costs(curves, repetitions=2, seed=0)
    assert one(table, quantity="seconds", size=10) == 1
    assert one(table, quantity="seconds", size=20) == 5


def test_deviations_of_a_sample_of_all_rows():
    changes = {
        "sizes": [2000, 20000],
        "samples": 3,
        "weights": 4,
        "datasets": ["margin-noisy"],
    }
    table = values("kar2014/uniform-convergence", **changes)
    for objective in ("prbep", "prec@k", "pauc"):
        cell = {"objective": objective, "quantity": "deviation"}
        assert one(table, size=20000, **cell) == pytest.approx(0, abs=1e-12)
        assert one(table, size=2000, **cell) > 1e-3
        rate = one(table, size=2000, objective=objective, quantity="rate")
        assert rate == pytest.approx(math.sqrt(math.log(20) / 2000))


def test_other_measures_follow_their_definitions():
    """G-mean over all labellings, the logistic loss over all pairs, and 1 at w = 0."""
    scores = np.random.default_rng(0).standard_normal(7)
    positive = np.arange(7) < 3
    by_labelling = []
    for labels in itertools.product((False, True), repeat=7):
        chosen = np.array(labels)
        recalls = chosen[positive].mean() * (1 - chosen[~positive].mean())
        difference = (chosen.astype(float) - positive) @ scores
        by_labelling.append(1 - math.sqrt(recalls) + difference / 3)
    loss = partial(kar2014._mean_loss, top=0.25, beta=0.5)
    assert loss("g-mean", scores, positive) == pytest.approx(max(by_labelling))
    assert loss("g-mean", np.zeros(7), positive) == 1
    assert loss("f1", np.zeros(7), positive) == 1
    top = np.sort(scores[~positive])[-2:]
    pairs = [math.log1p(math.exp(k - i)) for i in scores[positive] for k in top]
    assert loss("pauc, logistic", scores, positive) == pytest.approx(np.mean(pairs))


# Configs


def test_every_study_is_configured_and_drawn():
    loaded = [shipped_config(name) for name in list_configs()]
    own = {name for name in STUDIES if STUDIES.package(name).startswith("precbench ")}
    assert {config.kind for config in loaded if isinstance(config, Study)} == own
    assert len({config.name for config in loaded}) == len(loaded)


@pytest.mark.parametrize(
    ("old", "new", "places"),
    [
        pytest.param("lemma-7", "lemma-8", "3:1 study 'lemma-8'", id="unknown study"),
        pytest.param("study:", "stduy:", "3:1 stduy 'study'", id="misspelt key"),
        pytest.param(
            "points:", "point:", "4:28 parameters.point 'points'", id="parameter"
        ),
        pytest.param("p: 4", "p: true", "4:14 parameters.p", id="no number"),
        pytest.param(
            "11}",
            "11}\nsmoke: {points: a}",
            "5:9 smoke.points",
            id="no number at smoke size",
        ),
        pytest.param(
            "11}",
            "11}\nsmoke: {b: 1}",
            "5:9 smoke.b",
            id="unknown parameter at smoke size",
        ),
        pytest.param(
            "11}", "11}\nsolvers: {}", "5:1 solvers", id="a key of experiments"
        ),
        pytest.param(
            SMALL[SMALL.index("lemma-7") :],
            DISCOUNTS,
            "4:1 parameters z_max z_min",
            id="parameters that do not fit each other",
        ),
    ],
)
def test_mistakes_are_reported_with_their_line(complaints, old, new, places):
    naming("\n".join(complaints(SMALL, old, new)), places)


LISTS = """\
name: small
title: A small one
study: ranked-lists
parameters:
  lists:
    a:
      labels: [1, -1]
      scores: [2, 1]
  scales: [1]
  measures:
    - pnorm_risk: {p: 2}
"""


@pytest.mark.parametrize(
    ("old", "new", "places"),
    [
        pytest.param(
            "labels:", "llabels:", "7:7 parameters.lists.a.llabels", id="misspelt key"
        ),
        pytest.param(
            "[2, 1]", "[2, x]", "8:19 parameters.lists.a.scores[1]", id="no number"
        ),
        pytest.param(
            "[2, 1]", "[2]", "4:1 parameters pnorm_risk 2 1", id="too few scores"
        ),
        pytest.param(
            "pnorm_risk:",
            "pnorm_risks:",
            "11:7 parameters.measures[0].pnorm_risks",
            id="misspelt measure",
        ),
        pytest.param(
            "{p: 2}",
            "{p: 2, los: logistic}",
            "11:26 parameters.measures[0].pnorm_risk.los",
            id="misspelt parameter of a measure",
        ),
        pytest.param(
            "{p: 2}",
            "{p: 2}\nsmoke: {lists: {b: {labels: [1], scores: [1]}}}",
            "smoke.lists.b 'a'",
            id="another list at smoke size",
        ),
    ],
)
def test_mistakes_in_ranked_lists(complaints, old, new, places):
    naming("\n".join(complaints(LISTS, old, new)), places)


COSTS = """\
name: small
title: A small one
study: growing-costs
parameters:
  curves:
    a:
      solver: bbr
      grows: [rows]
      sizes: [10, 20]
      rows: 10
      features: 2
      exponent: 1
      parameters: {radius: 2.0}
  repetitions: 1
  seed: 0
"""


@pytest.mark.parametrize(
    ("old", "new", "places"),
    [
        pytest.param(
            "bbr", "bbrr", "7:7 parameters.curves.a.solver 'bbr'", id="misspelt solver"
        ),
        pytest.param(
            "[rows]",
            "[features, rowz]",
            "8:25 parameters.curves.a.grows[1] 'rowz' 'rows'",
            id="misspelt size",
        ),
        pytest.param(
            "[rows]",
            "[accumulate]",
            "8:15 parameters.curves.a.grows[0] accumulate",
            id="a parameter that no size fits",
        ),
        pytest.param(
            "radius:",
            "radios:",
            "13:20 parameters.curves.a.parameters.radios 'radius'",
            id="misspelt parameter",
        ),
        pytest.param(
            "2.0",
            "-2.0",
            "13:20 parameters.curves.a.parameters.radius",
            id="rejected value",
        ),
    ],
)
def test_mistakes_in_curves_of_costs(complaints, old, new, places):
    naming("\n".join(complaints(COSTS, old, new)), places)


MINIMA = """\
name: small
title: A small one
study: cutting-plane-minima
parameters:
  datasets: [counterexample]
  problems: [f1, pauc, prec@0.25, prec@.5, prec@1, prec@1.0]
  beta: 0.1
  C: [1.0]
  max_iter: 5
  paths: [counterexample]
  seed: 0
"""


@pytest.mark.parametrize(
    "problem", ["prec", "prec@", "prec@0.0", "prec@1.5", "prec@k", "pauc@0.5", "f2"]
)
def test_a_problem_that_the_cutting_plane_has_not_is_reported(complaints, problem):
    [line] = complaints(MINIMA, "f1", problem)
    naming(line, f"6:14 parameters.problems[0] '{problem}'")


# Running

DRAWN_TWICE = ["rudin2009/fig-1-and-4", "rudin2009/section-10-1", "kar2015/rates"]


@pytest.mark.promise("R23")
@pytest.mark.filterwarnings("ignore:the risk has no minimiser")
@pytest.mark.parametrize("name", shipped_configs(Study))
def test_every_study_runs_and_is_repeated_identically(
    name, tmp_path, drawn_without_fonts
):
    result = succeed("run", name, "--smoke", "--out", tmp_path)
    [folder] = tmp_path.iterdir()
    assert folder.name == f"{shipped_config(name).smoke_size().name}-smoke"
    study = json.loads((folder / "illustration.json").read_text())
    assert study["smoke"]
    assert study["kind"] in STUDIES
    assert study["schema"] == 1

    tables = folder / "tables.md"
    figures = folder / "figures"
    picture = figures / f"{study['kind']}.png"
    drawn = [tables, figures / f"{study['kind']}.pdf", picture]
    assert str(picture) in result.output
    if name in DRAWN_TWICE:
        contents = [path.read_bytes() for path in drawn]
        for path in drawn:
            path.unlink()
        succeed("plot", tmp_path)
        assert [path.read_bytes() for path in drawn] == contents
    assert "smoke size" in tables.read_text()
    texts = [text.get_text() for text in drawn_without_fonts[-1].subfigs[0].texts]
    assert "smoke size" in " ".join(texts)

    measured = read_values(folder)
    assert all(table.rows for table in study_tables(read_study(measured)))
    values = measured.values
    assert values.columns[-1] == "value"
    assert np.isfinite(values["value"]).all()
    assert not values.duplicated(list(values.columns[:-1])).any()
    if name not in TIMED:
        repeated = smoke_table(name).to_csv(index=False, lineterminator="\n")
        assert (folder / "values.csv").read_text() == repeated


@pytest.mark.parametrize("measure", ["pnorm_risk: {p: 2}", "auc"])
def test_lists_without_curves_have_their_tables(measure, tmp_path):
    path = tmp_path / "c.yaml"
    path.write_text(LISTS.replace("pnorm_risk: {p: 2}", measure))
    succeed("run", path, "--out", tmp_path)
    assert "| " in (tmp_path / "small" / "tables.md").read_text()


def test_json_and_dry_run(tmp_path):
    command = ["run", "rudin2009/fig-3", "--json"]
    none = tmp_path / "none"
    [planned] = json.loads(invoke(*command, "--dry-run", "--out", none).output)
    assert planned["illustration"] == "discount-factors"
    assert planned["not_ok"] == {}
    assert not none.exists()
    [done] = json.loads(invoke(*command, "--out", tmp_path).output)
    assert done == {**planned, "folder": str(tmp_path / "rudin2009-fig-3")}


@pytest.mark.parametrize(
    "option", [["--solver", "sgd-avg"], ["--dataset", "letter"], ["--seeds", "0"]]
)
def test_selection_options_are_refused(tmp_path, option):
    none = tmp_path / "none"
    refused(["run", "rudin2009/fig-3", *option, "--out", none], "study")
    assert not none.exists()


@pytest.mark.parametrize("name", DRAWN_TWICE)
def test_no_text_leaves_a_figure(name, tmp_path, laid_out):
    assert invoke("run", name, "--smoke", "--out", tmp_path).exit_code == 0
    assert [misplaced(figure) for figure in laid_out.values()] == [[]]


# --- gaussian mixtures, and the studies of gultekin that are made of them ---


def pair(seed=0, k=3, n=4, eccentricity=0.6):
    """Return a mixture whose components have different weights."""
    rng = np.random.default_rng(seed)
    drawn = draw_mixture_pair(k, 1.5, n, rng, eccentricity=eccentricity)
    return MixturePair(rng.dirichlet(np.ones(k)), drawn.means, drawn.covariance)


def test_moments_are_sums_over_pairs_of_components():
    mixture = pair()
    means_of_neg, means_of_pos = mixture.means
    mean = np.zeros(4)
    second = np.zeros((4, 4))
    for i, k in itertools.product(range(3), repeat=2):
        share = mixture.weights[i] * mixture.weights[k]
        gap = means_of_pos[i] - means_of_neg[k]
        mean += share * gap
        second += share * (2 * mixture.covariance + np.outer(gap, gap))
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

    integral, _ = quad(
        lambda t: density(t) * below(t), -40, 40, limit=200, epsabs=1e-12
    )
    assert mixture.auc(w) == pytest.approx(integral, abs=1e-9)
    assert mixture.auc(3 * w) == pytest.approx(mixture.auc(w), rel=1e-12)
    assert mixture.auc(-w) == pytest.approx(1 - mixture.auc(w), rel=1e-12)


def test_auc_and_risk_of_w_0_are_one_half():
    mixture = pair()
    assert mixture.auc(np.zeros(4)) == 0.5
    assert mixture.risk(np.zeros(4)) == 0.5


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
    estimate = mixture.largest_auc(500, np.random.default_rng(0))
    assert estimate == pytest.approx(best, rel=1e-9)


def test_no_linear_ranker_exceeds_the_likelihood_ratio():
    """An exclusive or, where every linear ranker is bad."""
    means = np.array([[[2.0, -2.0], [-2.0, 2.0]], [[2.0, 2.0], [-2.0, -2.0]]])
    mixture = MixturePair(np.array([0.5, 0.5]), means, np.eye(2))
    rng = np.random.default_rng(0)
    X, y = mixture.sample(20_000, 20_000, rng)
    largest = mixture.largest_auc(20_000, rng)
    of_sample = auc(y, mixture.log_likelihood_ratio(X))
    assert largest == pytest.approx(of_sample, abs=0.01)
    directions = [[math.cos(a), math.sin(a)] for a in np.linspace(0, np.pi, 50)]
    assert max(mixture.auc(w) for w in directions) < 0.76 < largest


def test_means_of_drawn_mixtures_lie_on_two_sides_of_0():
    mixture = draw_mixture_pair(3, 4.0, 10, np.random.default_rng(0))
    assert mixture.means.shape == (2, 3, 10)
    means_of_neg, means_of_pos = mixture.means
    assert means_of_neg.min() >= -1
    assert means_of_neg.max() <= 0
    assert means_of_pos.min() >= 0
    assert means_of_pos.max() <= 1
    assert_array_equal(mixture.covariance, 16 * np.eye(10))
    assert_allclose(mixture.weights, 1 / 3)


def test_an_eccentric_mixture_has_the_same_means_and_mean_variance():
    isotropic = draw_mixture_pair(3, 4.0, 10, np.random.default_rng(0))
    mixture = draw_mixture_pair(3, 4.0, 10, np.random.default_rng(0), eccentricity=0.5)
    assert_array_equal(mixture.means, isotropic.means)
    assert np.trace(mixture.covariance) == pytest.approx(160)
    variances = np.linalg.eigvalsh(mixture.covariance)
    assert 3 * variances[0] > variances[-1] > 1.2 * variances[0] > 0


# --- Figure 1 ---


FIG_1 = load_config("gultekin/fig1").smoke_size().arguments()


def compute(**changes):
    return STUDIES["gaussian-mixtures"].function(**{**FIG_1, **changes})


@pytest.fixture(scope="module")
def figure():
    return smoke_table("gultekin/fig1")


def without_times(table):
    timed = table["measure"].str.startswith("seconds") | (table["part"] == "speed")
    return table[~timed].reset_index(drop=True)


def test_equal_seeds_give_equal_values_but_for_times(figure):
    expected = without_times(figure)
    pd.testing.assert_frame_equal(without_times(compute()), expected, check_exact=True)


def test_another_seed_gives_other_values(figure):
    values = without_times(figure)["value"]
    assert not np.allclose(without_times(compute(seed=1))["value"], values)


def test_quotients_of_times_are_positive(figure):
    assert (figure["value"][figure["part"] == "speed"] > 0).all()


def test_sizes_do_not_affect_other_values(figure):
    """Values belong to what they are of, not to the order in which they were found."""
    table = without_times(compute(pairs=[500], problems=FIG_1["problems"][1:]))
    both = table.merge(without_times(figure), on=list(figure.columns[:-1]))
    assert len(both) == len(table)
    assert_array_equal(both["value_x"], both["value_y"])


@pytest.mark.parametrize(
    ("method", "cell"),
    [
        pytest.param("bbr", {}, id="BBR"),
        pytest.param("lcbr", {"pairs": 100}, id="LCBR"),
        pytest.param("optimum", {}, id="the optimum"),
    ],
)
def test_values_are_those_of_the_solvers(figure, method, cell):
    aucs = [auc_of(method, repetition) for repetition in range(FIG_1["repetitions"])]
    cell = cell | {"part": "pairs", "components": 2, "measure": "auc"}
    mean = one(figure, method=method, statistic="mean", **cell)
    assert mean == pytest.approx(np.mean(aucs), rel=1e-12)
    error = one(figure, method=method, statistic="standard error", **cell)
    expected = np.std(aucs, ddof=1) / math.sqrt(len(aucs))
    assert error == pytest.approx(expected, rel=1e-12)


def auc_of(method, repetition):
    """Return the AUC of a method with two components, in one repetition."""
    entropy = (FIG_1["seed"], 2, repetition)
    mixture = draw_mixture_pair(2, 3.0, 10, np.random.default_rng([*entropy, 0]))
    if method == "optimum":
        return mixture.auc(minimise_over_ball(mixture.second, mixture.mean, 10.0))
    solver = BBR(10.0)
    if method == "lcbr":
        rng = np.random.default_rng([*entropy, 2, 100])
        solver = LCBR(100, radius=10.0, random_state=rng)
    X, y = mixture.sample(100, 100, np.random.default_rng([*entropy, 1]))
    return mixture.auc(solver.fit(X, y).coef_)


def test_no_risk_lies_below_the_optimum(figure):
    risks = figure[(figure["measure"] == "risk") & (figure["statistic"] == "mean")]
    for _, rows in risks.groupby("components"):
        assert (rows["value"] >= one(rows, method="optimum")).all()


@pytest.mark.parametrize(
    ("changes", "places"),
    [
        pytest.param(
            {"shares": [0.001, 0.5]}, "rows 200 0.001", id="a share of no row"
        ),
        pytest.param(
            {"problems": [MixtureProblem(components=1, sigma=s) for s in (1, 2)]},
            "problems",
            id="two problems with one component",
        ),
    ],
)
def test_incompatible_parameters_are_reported(changes, places):
    with raises(InputError, places):
        compute(**changes)


# --- bounds ---


W, D, NORM = 1.7, 6, 0.4  # the radius, the features, ||Sigma_N||
BOUNDS = bounds_of(W, D)
each_s = pytest.mark.parametrize("s", [50, 5000])
each_delta = pytest.mark.parametrize("delta", [0.3, 0.05, 1e-6])


@each_s
@each_delta
@pytest.mark.parametrize(("version", "factor"), [("printed", 4), ("re-derived", 64)])
def test_theorem_2_follows_its_formula(s, delta, version, factor):
    """(11), the larger of two terms, the second with another factor."""
    bounds = BOUNDS[version]
    epsilon = bounds.theorem_2(s, delta, NORM)
    first = math.log(4 * D / delta) * (NORM * W**4 + epsilon * W**2 / 3)
    first *= 32 / epsilon**2
    second = factor * W**2 / epsilon**2 * (math.sqrt(2 * math.log(4 / delta)) + 1) ** 2
    assert max(first, second) == pytest.approx(s, rel=1e-9)
    # The terms of (11) are those of Lemma 2, with eps / 2 and delta / 2.
    probability = bounds.theorem_2_probability(s, np.array([epsilon]), NORM)
    assert probability == pytest.approx(delta, rel=1e-8)


@each_s
@each_delta
def test_lemma_2_i_follows_its_formula(s, delta):
    bounds = BOUNDS["re-derived"]
    epsilon = bounds.quadratic(s, delta, NORM)
    exponent = s * epsilon**2 / (8 * NORM * W**4 + 16 / 3 * epsilon * W**2)
    assert 2 * D * math.exp(-exponent) == pytest.approx(delta, rel=1e-9)
    probability = bounds.quadratic_probability(s, epsilon, NORM)
    assert probability == pytest.approx(delta, rel=1e-9)


@each_s
@each_delta
@pytest.mark.parametrize(("version", "factor"), [("printed", 2), ("re-derived", 4)])
def test_lemma_2_ii_follows_its_formula(s, delta, version, factor):
    bounds = BOUNDS[version]
    epsilon = bounds.linear(s, delta, bounds.lemma_factor)
    exponent = (epsilon * math.sqrt(s) / (factor * W) - 1) ** 2 / 2
    assert 2 * math.exp(-exponent) == pytest.approx(delta, rel=1e-9)


@pytest.mark.parametrize(("version", "covered"), [("printed", 1), ("re-derived", W)])
def test_lemma_1_follows_its_formula(version, covered):
    n, delta = 3000, 0.05
    c_1 = 8 * W + 4
    c_2 = 3 * W**2 + 2 * W
    epsilon = BOUNDS[version].uniform(n, delta)
    cover = (1 + 2 * covered / (epsilon / (2 * c_1))) ** D
    probability = 2 * cover * math.exp(-(epsilon**2) / (2 * c_2**2) * 0.25 * n)
    assert probability == pytest.approx(delta, rel=1e-6)


def test_pairs_are_those_that_lcbr_draws():
    X, y, sample = small_sample()
    for s in (10, 20_000):
        risk = sample.risk_of(s, np.random.default_rng(4))
        lcbr = LCBR(s, radius=0.5, random_state=4).fit(X, y)
        assert_allclose(risk.minimiser(0.5), lcbr.coef_, atol=1e-10)


def test_the_risk_of_all_pairs_is_that_of_bbr():
    X, y, sample = small_sample()
    bbr = BBR(0.5).fit(X, y)
    assert_allclose(sample.risk().minimiser(0.5), bbr.coef_, atol=1e-10)
    z = (X[:20, np.newaxis] - X[20:]).reshape(-1, 3)
    w = np.random.default_rng(1).standard_normal(3)
    risk = np.mean((1 - z @ w) ** 2 - 1) / 2
    assert sample.risk()(w) == pytest.approx(risk, rel=1e-12)


def small_sample():
    """Return 20 positives, then 30 negatives, and the sample of all of them."""
    X = np.random.default_rng(0).standard_normal((50, 3))
    y = np.repeat([1, -1], [20, 30])
    return X, y, _Sample.whole(X[:20], X[20:])


def test_probabilities_of_coins_are_exact():
    """Every outcome of 2 S coins, S = 6."""
    s, radius = 6, 1.5
    rows = pd.DataFrame(_coins(s, 20, radius))
    exact = rows[(rows["what"] == "probability") & (rows["quantity"] == "measured")]
    coins = np.array(list(itertools.product((-1, 1), repeat=2 * s)))
    deviations = 2 * radius * np.abs(coins.sum(axis=1)) / s  # 2 W |mu_S|, mu_N = 0
    shares = [np.mean(deviations >= epsilon - 1e-12) for epsilon in exact["epsilon"]]
    assert len(exact) >= 3
    assert_allclose(exact["value"], shares, rtol=1e-12)


def test_re_derived_bounds_hold_and_printed_ones_are_smaller():
    table = smoke_table("gultekin/bound")
    keys = ["what", "statement", "rows", "pairs", "epsilon"]
    compared = table[table["what"].isin(["deviation", "probability"])]
    wide = compared.pivot(index=keys, columns="quantity", values="value")
    bounds = wide.dropna(subset="re-derived")
    assert len(bounds) > 30
    assert (bounds["measured"] <= bounds["re-derived"]).all()
    assert (bounds["printed"] <= bounds["re-derived"]).all()


@pytest.mark.parametrize("s", [100, 10_000])
def test_the_printed_vector_bound_is_false(s):
    """With L = X instead of 2 X; the re-derived one holds."""
    rows = pd.DataFrame(_coins(s, 40, 2.0))
    largest = rows[rows["what"] == "largest ratio"]
    ratio = largest.set_index("quantity")["value"]
    assert ratio["printed"] > 10
    assert ratio["re-derived"] < 1


def test_odd_size_is_reported():
    config = load_config("gultekin/bound").smoke_size()
    with raises(InputError, "21"):
        STUDIES["pair-bounds"].function(**{**config.arguments(), "rows": [20, 21]})
