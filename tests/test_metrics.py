import itertools
import math
from fractions import Fraction
from functools import partial

import numpy as np
import pytest
import sklearn.metrics
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from numpy.testing import assert_array_equal

from precbench.core.errors import InputError
from precbench.ranking.metrics import (
    METRICS,
    Metric,
    auc,
    average_precision,
    average_reciprocal_rank,
    dcg,
    f1,
    f1_max,
    interval_at_k,
    lift_at_k,
    partial_auc,
    partial_auc_mcclish,
    partial_pr_auc,
    pnorm_risk,
    prbep,
    precision_at_k,
    r_max,
    recall_at_fpr,
    recall_at_k,
    roc_curve,
)
from precbench.ranking.topk import (
    first_rows,
    k_by_size,
    resolve_k,
    split_at,
    training_k,
)
from tests.helpers import small_integers
from tests.sentences import raises

# Every member of METRICS with one choice of its required parameters.
PARAMS = {
    "precision_at_k": {"k": 0.5},
    "recall_at_k": {"k": 2},
    "lift_at_k": {"k": "50 %"},
    "partial_auc": {"beta": 0.3},
    "partial_auc_mcclish": {"beta": 0.3},
    "partial_pr_auc": {"recall": 0.6},
    "recall_at_fpr": {"beta": 0.3},
    "auc": {},
    "average_precision": {},
    "prbep": {},
    "f1": {},
    "f1_max": {},
    "pnorm_risk": {"p": 4},
    "r_max": {},
    "dcg": {},
    "average_reciprocal_rank": {},
}
CREDIT = {"half": 0.5, "correct": 1, "error": 0}


@st.composite
def rankings(draw, max_size=30):
    """Labels in {-1, 1} with both classes, and scores with many ties or few."""
    n = draw(st.integers(2, max_size))
    y = 2 * small_integers(draw, n, 2) - 1
    assume(abs(y.sum()) < n)
    if draw(st.booleans()):
        return y, small_integers(draw, n, 5) - 2.0
    return y, np.array(draw(st.lists(st.floats(-1e6, 1e6), min_size=n, max_size=n)))


def call(name, y, scores):
    return METRICS[name](y, scores, **PARAMS[name])


# resolve_k


@pytest.mark.parametrize(
    ("k", "n_pos", "count"),
    [
        (0.07, 100, 7),
        (0.25, 3, 1),
        (0.25, 4, 1),
        (0.25, 5, 2),
        (1e-9, 5, 1),
        (1.0, 7, 7),
        (np.float32(0.5), 7, 4),
        (1, 7, 1),
        (7, 7, 7),
        (np.int32(3), 7, 3),
        (np.uint8(3), 7, 3),
    ],
)
def test_resolve_k(k, n_pos, count):
    assert resolve_k(k, n_pos) == count and type(resolve_k(k, n_pos)) is int


@given(
    st.integers(1, 10**6).flatmap(lambda n: st.tuples(st.integers(1, n), st.just(n)))
)
def test_count_to_share_round_trip(pair):
    count, n_pos = pair
    assert resolve_k(count / n_pos, n_pos) == count


@given(st.integers(1, 100), st.integers(1, 10_000))
def test_a_share_in_percent_is_rounded_up_exactly(percent, n_pos):
    assert resolve_k(percent / 100, n_pos) == math.ceil(Fraction(percent * n_pos, 100))


@pytest.mark.parametrize("text", ["0.7 %", "0.7%", ".7 %", "0.70 %", "00.7%"])
def test_text_is_a_share_of_the_rows(text):
    assert resolve_k(text, 5, 1000) == 7  # 7.000000000000001 in floating point
    assert resolve_k(text, 5, 1001) == 8 and resolve_k(text, 5, 2) == 1
    assert resolve_k(np.str_("100 %"), 5, 1000) == 1000


MEANT = {
    "1 percent": "'1 %'",
    " 1 %": "'1 %'",
    "1 % ": "'1 %'",
    "1,5 %": "'1.5 %'",
    "100": "100, without quotes",
    "0.25": "0.25, without quotes",
    "0 %": "",
    "101 %": "",
    "1.5": "",
    "-1 %": "",
    "1e1 %": "",
    "\u0661 %": "",
    "nan": "",
    "many": "",
    "%": "",
    "": "",
}


@pytest.mark.promise("R11")
@pytest.mark.parametrize("text", MEANT)
def test_text_that_is_no_share_of_the_rows(text):
    with raises(InputError) as caught:
        resolve_k(text, 5, 100)
    meant = MEANT[text]
    assert (
        (f"(did you mean {meant}?)" in str(caught.value))
        if meant
        else "mean" not in str(caught)
    )


def test_training_needs_no_more_rows_than_there_are_positives():
    assert resolve_k(6, 5, 6) == 6 and training_k(100, 80, 400) == (80, 100)
    assert training_k(1000, 80, 400) == (80, 1000) and training_k("1 %", 80, 400) == (
        4,
        4,
    )
    assert training_k("50 %", 80, 400) == (80, 200) and training_k(0.25, 80, 400) == (
        20,
        20,
    )
    assert k_by_size("10 %", 30)[:6].tolist() == [0, 1, 2, 3, 3, 3]
    assert k_by_size(2, 5).tolist() == [0, 1, 2, 2, 2, 2]


# Brute force


@pytest.mark.promise("R12")
@settings(max_examples=60)
@given(rankings(max_size=6), st.data())
def test_precision_at_k_by_enumeration_of_tie_breaks(ranking, data):
    y, scores = ranking
    n, n_pos = len(y), int((y == 1).sum())
    k = data.draw(st.integers(1, n))
    hits = [
        sum(int(y[i] == 1) for i in sorted(order, key=lambda i: -scores[i])[:k])
        for order in itertools.permutations(range(n))
    ]
    mean = Fraction(sum(hits), len(hits))
    units = {
        precision_at_k: Fraction(1, k),
        recall_at_k: Fraction(1, n_pos),
        lift_at_k: Fraction(n, k * n_pos),
    }
    for metric, unit in units.items():
        assert metric(y, scores, k) == pytest.approx(float(mean * unit))
        assert metric(y, scores, k, ties="best") == pytest.approx(
            float(max(hits) * unit)
        )
        assert metric(y, scores, k, ties="worst") == pytest.approx(
            float(min(hits) * unit)
        )
        percent = f"{math.floor(1e6 * k / n) / 1e4:.4f} %"
        assert metric(y, scores, percent) == metric(y, scores, k)


# Intervals


@settings(max_examples=40)
@given(rankings(), st.data())
def test_an_interval_holds_the_value_and_knows_no_order(ranking, data):
    y, scores = ranking
    k = data.draw(st.integers(1, len(y)))
    turn = np.argsort(small_integers(data.draw, len(y), 256))
    low, high = interval_at_k(y, scores, k)
    assert 0 <= low <= precision_at_k(y, scores, k) + 1e-9
    assert precision_at_k(y, scores, k) - 1e-9 <= high
    assert (low, high) == interval_at_k(y[turn], scores[turn], k)
    inner = interval_at_k(y, scores, k, level=0.5)
    assert low - 1e-9 <= inner[0] <= inner[1] <= high + 1e-9


def test_an_interval_in_the_limit_of_no_threshold():
    """All rows tied and k far below their number.

    Nothing but Wilson's interval of k draws.
    """
    y, scores = np.tile([1, -1, -1, -1], 250_000), np.zeros(10**6)
    centre, half = (0.25 + 1.96**2 / 200) / (1 + 1.96**2 / 100), 0.0828
    assert interval_at_k(y, scores, 100) == pytest.approx(
        (centre - half, centre + half), abs=1e-3
    )


def test_an_interval_of_all_rows():
    """No threshold is drawn.

    What remains is Wilson's interval of 200 draws, of which 60 hit.
    """
    y, scores = np.repeat([1, -1], [60, 140]), -np.arange(200.0)
    assert interval_at_k(y, scores, 200) == pytest.approx(wilson(0.3, 200), abs=1e-4)


def test_an_interval_where_no_row_near_rank_k_is_positive():
    """Their share is taken as half a row of 11, as that of the first 10 has half a row
    more.
    """
    y, scores = np.repeat([1, -1], [3, 997]), -np.arange(1000.0)
    near, share = 0.5 / 11, 3.5 / 11
    excess = 1 + (share - near) ** 2 * 0.99 / (share * (1 - share))
    assert interval_at_k(y, scores, 10) == pytest.approx(
        wilson(0.3, 10 / excess), abs=1e-4
    )


def wilson(share, n, z=1.96):
    half = z * np.sqrt(share * (1 - share) / n + z**2 / (4 * n**2))
    return tuple(
        (share + z**2 / (2 * n) + side) / (1 + z**2 / n) for side in (-half, half)
    )


@pytest.mark.parametrize("steepness", [1, 10])
def test_intervals_cover(steepness):
    """A steep list has nearly only positives before rank k, and few near it."""
    rng = np.random.default_rng(0)
    offset = {1: -2.6, 10: -13.4}[steepness]  # a tenth are positive
    lists = []
    for _ in range(400):
        scores = rng.standard_normal(1000)
        chances = 1 / (1 + np.exp(-(steepness * scores + offset)))
        lists.append((np.where(rng.random(1000) < chances, 1, -1), scores))
    truth = np.mean([precision_at_k(y, s, 100) for y, s in lists])
    within = [
        low <= truth <= high
        for low, high in (interval_at_k(y, s, 100) for y, s in lists)
    ]
    assert 0.92 <= np.mean(within) <= 0.99


def slow_partial_auc(y, scores, beta, tied_pairs="half"):
    n_top = math.ceil(Fraction(beta).limit_denominator(20) * int((y == -1).sum()))
    top = sorted(scores[y == -1], reverse=True)[:n_top]
    pairs = itertools.product(scores[y == 1], top)
    return np.mean(
        [CREDIT[tied_pairs] if pos == neg else pos > neg for pos, neg in pairs]
    )


def slow_partial_pr_auc(y, scores, recall):
    """Each positive covers its share of the recalls, as far as these lie beyond the
    start.
    """
    n_pos, area, start = (
        int(np.sum(y > 0)),
        Fraction(0),
        Fraction(recall).limit_denominator(20),
    )
    for j, lowest in enumerate(np.sort(scores[y > 0])[::-1]):
        above = scores >= lowest
        precision = Fraction(int(np.sum(above & (y > 0))), int(above.sum()))
        area += (
            max(Fraction(j + 1, n_pos) - max(Fraction(j, n_pos), start), 0) * precision
        )
    return float(area / (1 - start))


def slow_recall_at_fpr(y, scores, beta):
    found = [0.0]
    for threshold in scores:
        above = scores >= threshold
        if np.sum(above & (y < 0)) <= Fraction(beta) * int(np.sum(y < 0)):
            found.append(np.sum(above & (y > 0)) / np.sum(y > 0))
    return max(found)


def slow_f1_max(y, scores):
    positive = y == 1
    return max(
        2 * (positive & (scores >= t)).sum() / (positive.sum() + (scores >= t).sum())
        for t in scores
    )


def heights(y, scores):
    """Count for each negative the positives that are not above it."""
    return [sum(pos <= neg for pos in scores[y == 1]) for neg in scores[y == -1]]


def slow_pnorm_risk(y, scores, p, log=False):
    risk = sum(float(height) ** p for height in heights(y, scores))
    return risk if not log else math.log(risk) if risk else -math.inf


def ranks(y, scores):
    return [sum(other >= own for other in scores) for own in scores[y == 1]]


SHARES, TIES = (
    st.sampled_from([i / 20 for i in range(1, 21)]),
    st.sampled_from(list(CREDIT)),
)
DEFINITIONS = {
    partial_auc: (slow_partial_auc, {"beta": SHARES, "tied_pairs": TIES}),
    auc: (partial(slow_partial_auc, beta=1), {"tied_pairs": TIES}),
    partial_pr_auc: (
        slow_partial_pr_auc,
        {"recall": st.sampled_from([0, 1 / 3, 0.5, 0.95])},
    ),
    recall_at_fpr: (
        slow_recall_at_fpr,
        {"beta": st.sampled_from([0.001, 0.1, 0.25, 0.5, 1.0])},
    ),
    pnorm_risk: (
        slow_pnorm_risk,
        {"p": st.sampled_from([1, 2, 4, 2.5]), "log": st.booleans()},
    ),
    r_max: (lambda y, scores: max(heights(y, scores)), {}),
    dcg: (
        lambda y, scores: sum(1 / math.log(1 + rank) for rank in ranks(y, scores)),
        {},
    ),
    average_reciprocal_rank: (lambda y, s: sum(1 / rank for rank in ranks(y, s)), {}),
    prbep: (lambda y, scores: precision_at_k(y, scores, int((y == 1).sum())), {}),
    f1: (
        lambda y, scores: sklearn.metrics.f1_score(y, np.where(scores > 0, 1, -1)),
        {},
    ),
    f1_max: (slow_f1_max, {}),
    average_precision: (sklearn.metrics.average_precision_score, {}),
    partial_auc_mcclish: (
        lambda y, scores, beta: sklearn.metrics.roc_auc_score(y, scores, max_fpr=beta),
        {"beta": st.floats(0.01, 1)},
    ),
}


@pytest.mark.promise("R12")
@pytest.mark.parametrize("metric", DEFINITIONS, ids=lambda metric: metric.__name__)
@given(ranking=rankings(), data=st.data())
def test_metrics_follow_their_definitions(metric, ranking, data):
    """By enumeration of pairs, thresholds or ranks, or as scikit-learn has them."""
    slow, choices = DEFINITIONS[metric]
    params = {name: data.draw(choice) for name, choice in choices.items()}
    expected = slow(*ranking, **params)
    assert metric(*ranking, **params) == pytest.approx(expected, rel=1e-9, abs=1e-12)


@given(rankings(), st.sampled_from([0.5, 1, 2, 4, 2.5, 300]))
def test_pnorm_risk_of_other_losses_by_enumeration_of_pairs(ranking, p):
    y, scores = ranking
    scores = scores.clip(-20, 20)
    prices = {
        "exponential": lambda r: math.exp(-r),
        "logistic": lambda r: math.log1p(math.exp(-r)),
    }
    for loss, price in prices.items():
        heights = [sum(price(i - k) for i in scores[y == 1]) for k in scores[y == -1]]
        logs = [p * math.log(height) for height in heights]
        log_risk = max(logs) + math.log(sum(math.exp(log - max(logs)) for log in logs))
        measured = pnorm_risk(y, scores, p, loss=loss, log=True)
        assert measured == pytest.approx(log_risk, rel=1e-12, abs=1e-11)
        if log_risk < 700:
            assert pnorm_risk(y, scores, p, loss=loss) == pytest.approx(
                math.exp(log_risk)
            )


@pytest.mark.parametrize("loss", ["exponential", "logistic"])
def test_pnorm_risk_of_distant_scores(loss):
    """Beyond the range of exp, either way.

    1e4 above, the logistic loss is the difference.
    """
    y = np.array([1, -1])
    for r in (1e4, -1e4):
        expected = -r if r > 0 or loss == "exponential" else math.log(-r)
        measured = pnorm_risk(y, np.array([r, 0.0]), 64, loss=loss, log=True)
        assert measured == pytest.approx(64 * expected, rel=1e-14)
    # The logarithm is finite where the risk is not: of distant scores, and of many
    # pairs.
    many, ties = np.repeat([1, -1], [1000, 2]), np.zeros(1002)
    assert pnorm_risk(many, ties, p=200) == math.inf
    expected = 200 * math.log(1000) + math.log(2)
    assert pnorm_risk(many, ties, p=200, log=True) == pytest.approx(expected)
    assert pnorm_risk(y, np.array([-1e4, 0.0]), 100, loss=loss) == math.inf
    assert pnorm_risk(y, np.array([1e4, 0.0]), 100, loss=loss) == 0


def test_logistic_risk_by_blocks_of_pairs(monkeypatch):
    rng = np.random.default_rng(0)
    y, scores = rng.permutation(np.repeat([1, -1], [20, 37])), rng.normal(size=57)
    whole = pnorm_risk(y, scores, 3, loss="logistic")
    monkeypatch.setattr("precbench.ranking.metrics._BLOCK_PAIRS", 50)
    assert pnorm_risk(y, scores, 3, loss="logistic") == pytest.approx(whole, rel=1e-14)


# Invariance


@pytest.mark.parametrize("name", METRICS)
@given(data=st.data())
def test_permuting_rows_changes_no_bit(name, data):
    y, scores = data.draw(rankings())
    order = np.argsort(small_integers(data.draw, len(y), 256))
    assert call(name, y[order], scores[order]) == call(name, y, scores)


@pytest.mark.parametrize(
    "names",
    [
        np.array([0, 1]),
        np.array([1, 2], dtype=np.uint8),
        np.array([False, True]),
        np.array([-0.5, 2.5]),
        np.array(["benign", "malignant"]),
        np.array(["b", "g"], dtype=object),
    ],
    ids=str,
)
def test_the_greater_label_is_positive(names):
    y, scores = np.array([-1, 1, -1, 1, -1, -1]), np.array([1.0, 3, 0, 1, -2, 2])
    y.flags.writeable = scores.flags.writeable = False
    for name in METRICS:
        found = call(name, y, scores)
        assert type(found) is float and call(name, names[(y + 1) // 2], scores) == found
        assert call(name, list(names[(y + 1) // 2]), list(scores)) == found


# Errors


@pytest.mark.promise("R11")
@pytest.mark.parametrize(
    ("y", "scores", "message"),
    [
        ([], [], ""),
        ([1, 1], [0.0, 1.0], "2 1"),
        ([0, 1, 2], [0.0, 1.0, 2.0], "0 1 2"),
        ([0, 1, 1], [0.0, 1.0], "3 2"),
        ([[0, 1]], [0.0, 1.0], "1 2"),
        ([0, 1], [[0.0], [1.0]], "2 1"),
        ([0, 1, 1], [0.0, math.nan, 1.0], "1"),
        ([0, 1, 1], [0.0, 1.0, -math.inf], "2"),
        ([0.0, 1.0, math.nan], [0.0, 1.0, 2.0], "2"),
        ([0, 1], ["a", "b"], ""),
        ([None, 1], [0.0, 1.0], ""),
    ],
)
def test_malformed_input_is_rejected(y, scores, message):
    for name in METRICS:
        with raises(InputError, message):
            call(name, y, scores)


def test_recall_at_fpr_counts_a_rate_that_rounding_exceeds():
    y, scores = [1, *[-1] * 10, 1], -np.arange(12.0)
    assert recall_at_fpr(y, scores, 0.7) == 0.5
    y = [-1, -1, -1, 1, *[-1] * 7]
    assert 3 / 10 <= 0.3 and recall_at_fpr(y, -np.arange(11.0), 0.1 + 0.2) == 1
    assert recall_at_fpr(y, -np.arange(11.0), 0.3) == 1
    assert recall_at_fpr(y, -np.arange(11.0), 0.29) == 0


TWO, THREE = ([0, 1], [0.0, 1.0]), ([1, 0, 0], [3.0, 2.0, 1.0])
NO_K = [0, -1, 0.0, 1.5, -0.1, math.nan, math.inf, True, np.True_, "1", None]
OUT_OF_RANGE = [
    *((partial(resolve_k, k, 5), "k") for k in NO_K),
    (partial(resolve_k, 6, 5), "k 6 5"),
    (partial(resolve_k, 0.5, 0), "0"),
    (partial(resolve_k, 7, 5, 6), "k 7 6"),
    (partial(resolve_k, "1 %", 5), "k 1 %"),
    (partial(interval_at_k, *THREE, 4), "k 4 3"),
    *(
        (partial(interval_at_k, *THREE, 1, level=level), "level")
        for level in (0, 1, math.nan, 5e-324, "0.05", None)
    ),
    *(
        (partial(partial_pr_auc, *TWO, recall), "recall")
        for recall in (-0.1, 1, 1.5, True, "half", math.nan)
    ),
    *(
        (partial(metric, *TWO, beta), "beta")
        for metric in (partial_auc, partial_auc_mcclish, recall_at_fpr)
        for beta in (0, -0.1, 1.1, math.nan, True, "0.1")
    ),
    *(
        (partial(pnorm_risk, *TWO, p), "p")
        for p in (0, -1, math.inf, math.nan, True, "2")
    ),
    (partial(pnorm_risk, *TWO, 1, loss="hinge"), "loss 'hinge'"),
    (partial(precision_at_k, *TWO, 1, ties="mean"), "ties 'mean'"),
    (partial(partial_auc, *TWO, 1, tied_pairs="best"), "tied_pairs 'best'"),
]


@pytest.mark.promise("R11")
@pytest.mark.parametrize(("call", "places"), OUT_OF_RANGE)
def test_arguments_out_of_range_are_refused(call, places):
    with raises(InputError, places):
        call()


# The registry


def test_smaller_is_better():
    smaller = {name for name, spec in METRICS.items() if spec.smaller_is_better}
    assert smaller == {"pnorm_risk", "r_max"}
    perfect, reverse = [2, 1, 0, 0], [0, 0, 1, 2]
    for name, spec in METRICS.items():
        best, worst = (
            spec([1, 1, 0, 0], scores, **PARAMS[name]) for scores in (perfect, reverse)
        )
        assert best < worst if spec.smaller_is_better else best > worst


@pytest.mark.parametrize(
    ("name", "params", "label", "written"),
    [
        ("precision_at_k", {"k": 0.25}, "precision_at_k(k=0.25)", "prec@0.25"),
        ("precision_at_k", {"k": 100}, "precision_at_k(k=100)", "prec@100"),
        ("precision_at_k", {}, "precision_at_k", "prec@k"),
        (
            "precision_at_k",
            {"k": 5, "ties": "worst"},
            "precision_at_k(k=5, ties=worst)",
            "prec@5 (ties=worst)",
        ),
        ("precision_at_k", {"k": "1 %"}, "precision_at_k(k=1 %)", "prec@1 %"),
        ("lift_at_k", {"k": 100}, "lift_at_k(k=100)", "lift@100"),
        ("auc", {}, "auc", "AUC"),
        ("partial_auc", {"beta": 0.1}, "partial_auc(beta=0.1)", "pAUC(0.1)"),
        ("pnorm_risk", {"p": 4}, "pnorm_risk(p=4)", "p-norm risk, p = 4"),
        ("partial_pr_auc", {}, "partial_pr_auc", "PR-AUC (recall ≥ 0.95)"),
    ],
)
def test_labels_and_notation(name, params, label, written):
    metric = Metric(name, params)
    assert (metric.label, metric.written) == (label, written)


def test_replace_ignores_other_parameters():
    assert Metric("precision_at_k", {"k": 0.25}).replace(k=1, epochs=5).params == {
        "k": 1
    }
    assert Metric("auc", {}).replace(k=1) == Metric("auc", {})


LISTS = [
    lambda rng, n: rng.standard_normal(n),
    lambda rng, n: rng.integers(0, 40, n).astype(float),  # ties
    lambda rng, n: rng.choice([-1.0, -0.0, 0.0, 1.0], n),
    lambda rng, n: np.full(n, -0.5),
    lambda rng, n: 5e-324 * rng.integers(-9, 9, n),
    lambda rng, n: rng.choice([-1, 1], n) * 2.0 ** rng.integers(-1074, 1024, n),
    lambda rng, n: np.arange(n) % 64 + rng.random(n),  # the sample is the lowest of all
    lambda rng, n: -(np.arange(n) % 64) + rng.random(n),  # and the highest
    lambda rng, n: np.where(rng.random(n) < 0.001, 1.0, -0.0) * rng.random(n),
]


def infinite(rng, n):
    return rng.choice([-np.inf, -1.0, 0.0, np.inf], n).astype(np.float32)


@pytest.mark.parametrize("n", [1, 2, 600, 70_000])
@pytest.mark.parametrize("of", [*LISTS, infinite])
def test_the_first_rows_are_those_of_a_stable_sort(n, of):
    scores = of(np.random.default_rng(n), n)
    spaced = np.repeat(scores, 2)[::2]
    spaced.flags.writeable = False
    order = np.argsort(-scores, kind="stable")
    for count in sorted(
        {1, min(2, n), math.ceil(n / 1000), math.ceil(n / 100), n // 2 or 1, n}
    ):
        for layout in (scores, spaced):
            assert_array_equal(first_rows(layout, count), np.sort(order[:count]))
        above, tied, free = split_at(scores, count)
        threshold = scores[order[count - 1]]
        assert_array_equal(above, np.flatnonzero(scores > threshold))
        assert_array_equal(tied, np.flatnonzero(scores == threshold))
        assert free == count - len(above)


@pytest.mark.parametrize("n", [2, 3000])
@pytest.mark.parametrize("of", LISTS)
def test_the_roc_curve_is_that_of_a_stable_sort(n, of):
    """The slow twin.

    Rows by falling score, counted, and read at the last of each score.
    """
    rng = np.random.default_rng(n)
    scores, positive = of(rng, n), rng.permutation(np.arange(n) % 5 == 0)
    order = np.argsort(-scores, kind="stable")
    last = np.flatnonzero(np.append(np.diff(scores[order]) != 0, True))
    fpr, tpr, thresholds = roc_curve(positive, scores)
    for found, counted in ((tpr, positive), (fpr, ~positive)):
        counts = np.cumsum(counted[order])[last]
        assert_array_equal(found, [0, *(counts / counts[-1])])
    assert_array_equal(thresholds, [np.inf, *scores[order][last]])


@pytest.mark.parametrize(
    "scores", [2**60 + np.arange(100), 1 + np.arange(100) * np.longdouble(2) ** -60]
)
def test_scores_that_no_float_holds_are_refused(scores):
    """They would be ties."""
    y = np.arange(100) % 2
    with raises(InputError, "float64 ranks"):
        auc(y, scores)
    assert auc(y, np.arange(100)) == auc(y, scores - scores[0])


def test_a_missing_label_is_named():
    with raises(InputError, "row 2 missing"):
        METRICS["auc"](np.array([1, None, 0], dtype=object), [0.1, 0.2, 0.3])
