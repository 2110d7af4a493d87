"""The metrics: their definitions, ties, intervals, invariance, and their arguments."""

import itertools
import math
from fractions import Fraction
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import pytest
import sklearn.metrics
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from precbench.core.errors import InputError
from precbench.ranking.metrics import (
    METRICS,
    Metric,
    _log_logistic_heights,
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
    TrainingK,
    first_rows,
    k_by_n_pos,
    resolve_k,
    split_at,
    training_k,
)
from tests.helpers import small_integers
from tests.sentences import raises

# One choice of the required parameters of every member of METRICS.
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
CREDIT = {"half": 0.5, "correct": 1, "error": 0}  # of a tied pair


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
        pytest.param(0.07, 100, 7, id="7.000000000000001 is 7"),
        pytest.param(0.25, 3, 1, id="0.75 is rounded up"),
        pytest.param(0.25, 4, 1, id="1 is exact"),
        pytest.param(0.25, 5, 2, id="1.25 is rounded up"),
        pytest.param(1e-9, 5, 1, id="at least one row"),
        pytest.param(1.0, 7, 7, id="all positives"),
        pytest.param(np.float32(0.5), 7, 4, id="a share of float32"),
        pytest.param(1, 7, 1, id="one row"),
        pytest.param(7, 7, 7, id="as many rows as positives"),
        pytest.param(np.int32(3), 7, 3, id="a count of int32"),
        pytest.param(np.uint8(3), 7, 3, id="a count of uint8"),
    ],
)
def test_k_becomes_a_number_of_rows(k, n_pos, count):
    resolved = resolve_k(k, n_pos)
    assert resolved == count
    assert type(resolved) is int


@given(st.data())
def test_a_count_of_the_positives_as_a_share_is_this_count(data):
    n_pos = data.draw(st.integers(1, 10**6))
    count = data.draw(st.integers(1, n_pos))
    assert resolve_k(count / n_pos, n_pos) == count


@given(st.integers(1, 100), st.integers(1, 10_000))
def test_a_share_in_percent_is_rounded_up_exactly(percent, n_pos):
    assert resolve_k(percent / 100, n_pos) == math.ceil(Fraction(percent * n_pos, 100))


@pytest.mark.parametrize("text", ["0.7 %", "0.7%", ".7 %", "0.70 %", "00.7%"])
def test_text_is_a_share_of_the_rows(text):
    assert resolve_k(text, n_pos=5, n_rows=1000) == 7  # 7.000000000000001 as a float
    assert resolve_k(text, n_pos=5, n_rows=1001) == 8
    assert resolve_k(text, n_pos=5, n_rows=2) == 1


def test_text_may_be_a_share_of_all_rows():
    assert resolve_k(np.str_("100 %"), n_pos=5, n_rows=1000) == 1000


@pytest.mark.promise("R11")
@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ("1 percent", "'1 %'"),
        (" 1 %", "'1 %'"),
        ("1 % ", "'1 %'"),
        ("1,5 %", "'1.5 %'"),
        ("100", "100, without quotes"),
        ("0.25", "0.25, without quotes"),
    ],
)
def test_text_that_is_nearly_a_k_is_refused_with_what_may_be_meant(text, meant):
    with raises(InputError) as caught:
        resolve_k(text, n_pos=5, n_rows=100)
    assert f"(did you mean {meant}?)" in str(caught.value)


@pytest.mark.promise("R11")
@pytest.mark.parametrize(
    "text",
    ["0 %", "101 %", "1.5", "-1 %", "1e1 %", "\u0661 %", "nan", "many", "%", ""],
)
def test_text_that_is_no_k_is_refused_without_a_guess(text):
    with raises(InputError) as caught:
        resolve_k(text, n_pos=5, n_rows=100)
    assert "mean" not in str(caught)


def test_more_rows_than_positives_may_be_ranked():
    assert resolve_k(6, n_pos=5, n_rows=6) == 6


@pytest.mark.parametrize(
    ("k", "expected"),
    [
        (100, TrainingK(capped=80, uncapped=100)),
        (1000, TrainingK(capped=80, uncapped=1000)),
        ("1 %", TrainingK(capped=4, uncapped=4)),
        ("50 %", TrainingK(capped=80, uncapped=200)),
        (0.25, TrainingK(capped=20, uncapped=20)),
    ],
)
def test_training_needs_no_more_rows_than_there_are_positives(k, expected):
    assert training_k(k, n_pos=80, n_rows=400) == expected


def test_the_k_of_training_by_the_number_of_positives():
    assert k_by_n_pos("10 %", length=30)[:6].tolist() == [0, 1, 2, 3, 3, 3]
    assert k_by_n_pos(2, length=5).tolist() == [0, 1, 2, 2, 2, 2]


# Brute force


@pytest.mark.promise("R12")
@settings(max_examples=60)
@given(rankings(max_size=6), st.data())
def test_precision_at_k_by_enumeration_of_tie_breaks(ranking, data):
    y, scores = ranking
    n, n_pos = len(y), int((y == 1).sum())
    k = data.draw(st.integers(1, n))
    hits = []  # for each order of the rows, which decides between equal scores
    for order in itertools.permutations(range(n)):
        top = sorted(order, key=lambda i: -scores[i])[:k]
        hits.append(sum(int(y[i] == 1) for i in top))
    mean = Fraction(sum(hits), len(hits))
    percent = f"{math.floor(1e6 * k / n) / 1e4:.4f} %"
    values_of_a_hit = {
        precision_at_k: Fraction(1, k),
        recall_at_k: Fraction(1, n_pos),
        lift_at_k: Fraction(n, k * n_pos),
    }
    for metric, of_a_hit in values_of_a_hit.items():
        expected = metric(y, scores, k)
        best = metric(y, scores, k, ties="best")
        worst = metric(y, scores, k, ties="worst")
        assert expected == pytest.approx(float(mean * of_a_hit))
        assert best == pytest.approx(float(max(hits) * of_a_hit))
        assert worst == pytest.approx(float(min(hits) * of_a_hit))
        assert metric(y, scores, percent) == expected


# Intervals


@settings(max_examples=40)
@given(rankings(), st.data())
def test_an_interval_holds_the_value_and_knows_no_order(ranking, data):
    y, scores = ranking
    k = data.draw(st.integers(1, len(y)))
    order = np.argsort(small_integers(data.draw, len(y), 256))
    precision = precision_at_k(y, scores, k)
    low, high = interval_at_k(y, scores, k)
    assert 0 <= low <= precision + 1e-9
    assert precision - 1e-9 <= high
    assert (low, high) == interval_at_k(y[order], scores[order], k)
    inner_low, inner_high = interval_at_k(y, scores, k, level=0.5)
    assert low - 1e-9 <= inner_low <= inner_high <= high + 1e-9


def test_an_interval_in_the_limit_of_no_threshold():
    """All rows tied and k far below their number.

    Nothing but Wilson's interval of k draws.
    """
    y = np.tile([1, -1, -1, -1], 250_000)
    interval = interval_at_k(y, np.zeros(10**6), k=100)
    centre = (0.25 + 1.96**2 / 200) / (1 + 1.96**2 / 100)
    half_width = 0.0828
    expected = (centre - half_width, centre + half_width)
    assert interval == pytest.approx(expected, abs=1e-3)


def test_an_interval_of_all_rows():
    """No threshold is drawn.

    What remains is Wilson's interval of 200 draws, of which 60 hit.
    """
    y = np.repeat([1, -1], [60, 140])
    interval = interval_at_k(y, -np.arange(200.0), k=200)
    assert interval == pytest.approx(wilson(0.3, 200), abs=1e-4)


def test_an_interval_where_no_row_near_rank_k_is_positive():
    """Their share is taken as half a row of 11, as that of the first 10 has half a row
    more.
    """
    y = np.repeat([1, -1], [3, 997])
    interval = interval_at_k(y, -np.arange(1000.0), k=10)
    share_near_k = 0.5 / 11
    share = 3.5 / 11
    excess = 1 + (share - share_near_k) ** 2 * 0.99 / (share * (1 - share))
    assert interval == pytest.approx(wilson(0.3, 10 / excess), abs=1e-4)


def wilson(share, n, z=1.96):
    """Return the ends of Wilson's interval of 95 %."""
    centre = share + z**2 / (2 * n)
    half_width = z * np.sqrt(share * (1 - share) / n + z**2 / (4 * n**2))
    divisor = 1 + z**2 / n
    return (centre - half_width) / divisor, (centre + half_width) / divisor


@pytest.mark.parametrize(
    ("steepness", "offset"),
    [
        pytest.param(1, -2.6, id="flat"),
        # nearly only positives before rank k, and few near it
        pytest.param(10, -13.4, id="steep"),
    ],
)
def test_intervals_cover_the_mean_precision(steepness, offset):
    """A tenth of the rows are positive."""
    rng = np.random.default_rng(0)
    precisions = []
    intervals = []
    for _ in range(400):
        scores = rng.standard_normal(1000)
        chances = 1 / (1 + np.exp(-(steepness * scores + offset)))
        y = np.where(rng.random(1000) < chances, 1, -1)
        precisions.append(precision_at_k(y, scores, 100))
        intervals.append(interval_at_k(y, scores, 100))
    truth = np.mean(precisions)
    coverage = np.mean([low <= truth <= high for low, high in intervals])
    assert 0.92 <= coverage <= 0.99


# The definitions, slowly.


def slow_partial_auc(y, scores, beta, tied_pairs="half"):
    n_top = math.ceil(Fraction(beta).limit_denominator(20) * int((y == -1).sum()))
    top = sorted(scores[y == -1], reverse=True)[:n_top]
    values = []  # of each pair
    for pos, neg in itertools.product(scores[y == 1], top):
        values.append(CREDIT[tied_pairs] if pos == neg else pos > neg)
    return np.mean(values)


def slow_partial_pr_auc(y, scores, recall):
    """Each positive covers its share of the recalls, as far as these lie beyond the
    start.
    """
    start = Fraction(recall).limit_denominator(20)
    n_pos = int(np.sum(y > 0))
    area = Fraction(0)
    for j, threshold in enumerate(np.sort(scores[y > 0])[::-1]):
        above = scores >= threshold
        precision = Fraction(int(np.sum(above & (y > 0))), int(above.sum()))
        width = Fraction(j + 1, n_pos) - max(Fraction(j, n_pos), start)
        area += max(width, 0) * precision
    return float(area / (1 - start))


def slow_recall_at_fpr(y, scores, beta):
    recalls = [0.0]
    for threshold in scores:
        above = scores >= threshold
        if np.sum(above & (y < 0)) <= Fraction(beta) * int(np.sum(y < 0)):
            recalls.append(np.sum(above & (y > 0)) / np.sum(y > 0))
    return max(recalls)


def slow_f1_max(y, scores):
    positive = y == 1
    values = []
    for threshold in scores:
        predicted = scores >= threshold
        hits = (positive & predicted).sum()
        values.append(2 * hits / (positive.sum() + predicted.sum()))
    return max(values)


def heights(y, scores):
    """Count for each negative the positives that are not above it."""
    return [sum(pos <= neg for pos in scores[y == 1]) for neg in scores[y == -1]]


def slow_pnorm_risk(y, scores, p, log=False):
    risk = sum(float(height) ** p for height in heights(y, scores))
    if not log:
        return risk
    return math.log(risk) if risk else -math.inf


def slow_r_max(y, scores):
    return max(heights(y, scores))


def ranks(y, scores):
    """Count for each positive the rows that score no lower."""
    return [sum(other >= own for other in scores) for own in scores[y == 1]]


def slow_dcg(y, scores):
    return sum(1 / math.log(1 + rank) for rank in ranks(y, scores))


def slow_average_reciprocal_rank(y, scores):
    return sum(1 / rank for rank in ranks(y, scores))


def slow_prbep(y, scores):
    n_pos = int((y == 1).sum())
    return precision_at_k(y, scores, n_pos)


def f1_of_sklearn(y, scores):
    return sklearn.metrics.f1_score(y, np.where(scores > 0, 1, -1))


def mcclish_of_sklearn(y, scores, beta):
    return sklearn.metrics.roc_auc_score(y, scores, max_fpr=beta)


class Definition(NamedTuple):
    """A metric, what it has to equal, and the values that its parameters may take."""

    metric: Any
    slow: Any
    choices: dict[str, Any]


TIED_PAIRS = st.sampled_from(list(CREDIT))
DEFINITIONS = [
    Definition(
        partial_auc,
        slow_partial_auc,
        {
            "beta": st.sampled_from([i / 20 for i in range(1, 21)]),
            "tied_pairs": TIED_PAIRS,
        },
    ),
    Definition(auc, partial(slow_partial_auc, beta=1), {"tied_pairs": TIED_PAIRS}),
    Definition(
        partial_pr_auc,
        slow_partial_pr_auc,
        {"recall": st.sampled_from([0, 1 / 3, 0.5, 0.95])},
    ),
    Definition(
        recall_at_fpr,
        slow_recall_at_fpr,
        {"beta": st.sampled_from([0.001, 0.1, 0.25, 0.5, 1.0])},
    ),
    Definition(
        pnorm_risk,
        slow_pnorm_risk,
        {"p": st.sampled_from([1, 2, 4, 2.5]), "log": st.booleans()},
    ),
    Definition(r_max, slow_r_max, {}),
    Definition(dcg, slow_dcg, {}),
    Definition(average_reciprocal_rank, slow_average_reciprocal_rank, {}),
    Definition(prbep, slow_prbep, {}),
    Definition(f1, f1_of_sklearn, {}),
    Definition(f1_max, slow_f1_max, {}),
    Definition(average_precision, sklearn.metrics.average_precision_score, {}),
    Definition(partial_auc_mcclish, mcclish_of_sklearn, {"beta": st.floats(0.01, 1)}),
]


@pytest.mark.promise("R12")
@pytest.mark.parametrize(
    "definition", DEFINITIONS, ids=lambda definition: definition.metric.__name__
)
@given(ranking=rankings(), data=st.data())
def test_metrics_follow_their_definitions(definition, ranking, data):
    """By enumeration of pairs, thresholds or ranks, or as scikit-learn has them."""
    params = {}
    for name, choice in definition.choices.items():
        params[name] = data.draw(choice)
    value = definition.metric(*ranking, **params)
    expected = definition.slow(*ranking, **params)
    assert value == pytest.approx(expected, rel=1e-9, abs=1e-12)


LOSSES_OF_PAIRS = {
    "exponential": lambda r: math.exp(-r),
    "logistic": lambda r: math.log1p(math.exp(-r)),
}


def slow_log_risk(y, scores, p, loss_of_pair):
    log_terms = []
    for neg in scores[y == -1]:
        height = sum(loss_of_pair(pos - neg) for pos in scores[y == 1])
        log_terms.append(p * math.log(height))
    peak = max(log_terms)
    return peak + math.log(sum(math.exp(term - peak) for term in log_terms))


@given(rankings(), st.sampled_from([0.5, 1, 2, 4, 2.5, 300]))
def test_pnorm_risk_of_other_losses_by_enumeration_of_pairs(ranking, p):
    y, scores = ranking
    scores = scores.clip(-20, 20)
    for loss, loss_of_pair in LOSSES_OF_PAIRS.items():
        expected = slow_log_risk(y, scores, p, loss_of_pair)
        log_risk = pnorm_risk(y, scores, p, loss=loss, log=True)
        assert log_risk == pytest.approx(expected, rel=1e-12, abs=1e-11)
        if expected < 700:  # else exp overflows
            risk = pnorm_risk(y, scores, p, loss=loss)
            assert risk == pytest.approx(math.exp(expected))


@pytest.mark.parametrize(
    ("loss", "difference", "log_loss"),
    [
        ("exponential", 1e4, -1e4),
        ("exponential", -1e4, 1e4),
        ("logistic", 1e4, -1e4),
        pytest.param("logistic", -1e4, math.log(1e4), id="the loss is the difference"),
    ],
)
def test_pnorm_risk_of_scores_beyond_the_range_of_exp(loss, difference, log_loss):
    scores = np.array([difference, 0.0])
    log_risk = pnorm_risk([1, -1], scores, p=64, loss=loss, log=True)
    assert log_risk == pytest.approx(64 * log_loss, rel=1e-14)


@pytest.mark.parametrize("loss", ["exponential", "logistic"])
def test_pnorm_risk_of_distant_scores_is_infinite_or_0(loss):
    assert pnorm_risk([1, -1], [-1e4, 0.0], p=100, loss=loss) == math.inf
    assert pnorm_risk([1, -1], [1e4, 0.0], p=100, loss=loss) == 0


def test_the_logarithm_of_a_risk_of_many_pairs_is_finite_where_the_risk_is_not():
    y = np.repeat([1, -1], [1000, 2])
    ties = np.zeros(1002)
    assert pnorm_risk(y, ties, p=200) == math.inf
    expected = 200 * math.log(1000) + math.log(2)
    assert pnorm_risk(y, ties, p=200, log=True) == pytest.approx(expected)


def test_logistic_heights_by_blocks_of_pairs():
    rng = np.random.default_rng(0)
    pos, neg = rng.normal(size=20), rng.normal(size=37)
    in_blocks = _log_logistic_heights(pos, neg, n_block_pairs=50)
    whole = _log_logistic_heights(pos, neg)
    assert_allclose(in_blocks, whole, rtol=1e-14)


# Invariance


@pytest.mark.parametrize("name", METRICS)
@given(data=st.data())
def test_permuting_rows_changes_no_bit(name, data):
    y, scores = data.draw(rankings())
    order = np.argsort(small_integers(data.draw, len(y), 256))
    assert call(name, y[order], scores[order]) == call(name, y, scores)


@pytest.mark.parametrize(
    "classes",
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
def test_the_greater_label_is_positive(classes):
    y = np.array([-1, 1, -1, 1, -1, -1])
    scores = np.array([1.0, 3, 0, 1, -2, 2])
    y.flags.writeable = scores.flags.writeable = False
    labels = classes[(y + 1) // 2]
    for name in METRICS:
        value = call(name, y, scores)
        assert type(value) is float
        assert call(name, labels, scores) == value
        assert call(name, list(labels), list(scores)) == value


# Errors


@pytest.mark.promise("R11")
@pytest.mark.parametrize(
    ("y", "scores", "places"),
    [
        pytest.param([], [], "", id="no rows"),
        pytest.param([1, 1], [0.0, 1.0], "2 1", id="one class"),
        pytest.param([0, 1, 2], [0.0, 1.0, 2.0], "0 1 2", id="three classes"),
        pytest.param([0, 1, 1], [0.0, 1.0], "3 2", id="fewer scores than labels"),
        pytest.param([[0, 1]], [0.0, 1.0], "1 2", id="a table of labels"),
        pytest.param([0, 1], [[0.0], [1.0]], "2 1", id="a table of scores"),
        pytest.param([0, 1, 1], [0.0, math.nan, 1.0], "1", id="a score of NaN"),
        pytest.param([0, 1, 1], [0.0, 1.0, -math.inf], "2", id="an infinite score"),
        pytest.param([0.0, 1.0, math.nan], [0.0, 1.0, 2.0], "2", id="a label of NaN"),
        pytest.param([0, 1], ["a", "b"], "", id="scores of text"),
        pytest.param([None, 1], [0.0, 1.0], "", id="a label of None"),
    ],
)
def test_malformed_input_is_rejected(y, scores, places):
    for name in METRICS:
        with raises(InputError, places):
            call(name, y, scores)


def test_recall_at_fpr_does_not_count_a_rate_above():
    y = [1, *[-1] * 10, 1]
    assert recall_at_fpr(y, -np.arange(12.0), beta=0.7) == 0.5


@pytest.mark.parametrize(
    ("beta", "recall"),
    [
        pytest.param(0.1 + 0.2, 1, id="a little more than 0.3"),
        pytest.param(0.3, 1, id="0.3"),
        pytest.param(0.29, 0, id="less"),
    ],
)
def test_recall_at_fpr_counts_a_rate_that_rounding_exceeds(beta, recall):
    """Three of ten negatives precede the positive."""
    y = [-1, -1, -1, 1, *[-1] * 7]
    assert 3 / 10 <= 0.3
    assert recall_at_fpr(y, -np.arange(11.0), beta) == recall


@pytest.mark.promise("R11")
@pytest.mark.parametrize(
    "k", [0, -1, 0.0, 1.5, -0.1, math.nan, math.inf, True, np.True_, "1", None]
)
def test_what_is_no_k_is_refused(k):
    with raises(InputError, "k"):
        resolve_k(k, n_pos=5)


@pytest.mark.promise("R11")
@pytest.mark.parametrize(
    ("k", "n_pos", "n_rows", "places"),
    [
        pytest.param(6, 5, None, "k 6 5", id="more than positives"),
        pytest.param(0.5, 0, None, "0", id="no positives"),
        pytest.param(7, 5, 6, "k 7 6", id="more than rows"),
        pytest.param("1 %", 5, None, "k 1 %", id="a share of unknown rows"),
    ],
)
def test_a_k_of_too_many_rows_is_refused(k, n_pos, n_rows, places):
    with raises(InputError, places):
        resolve_k(k, n_pos, n_rows)


@pytest.mark.promise("R11")
def test_an_interval_at_more_than_all_rows_is_refused():
    with raises(InputError, "k 4 3"):
        interval_at_k([1, 0, 0], [3.0, 2.0, 1.0], k=4)


@pytest.mark.promise("R11")
@pytest.mark.parametrize("level", [0, 1, math.nan, 5e-324, "0.05", None])
def test_what_is_no_level_is_refused(level):
    with raises(InputError, "level"):
        interval_at_k([1, 0, 0], [3.0, 2.0, 1.0], k=1, level=level)


def two_rows(metric, *arguments, **params):
    """Return a call of a metric for a negative below a positive."""
    return partial(metric, [0, 1], [0.0, 1.0], *arguments, **params)


@pytest.mark.promise("R11")
@pytest.mark.parametrize("recall", [-0.1, 1, 1.5, True, "half", math.nan])
def test_what_is_no_recall_is_refused(recall):
    with raises(InputError, "recall"):
        two_rows(partial_pr_auc, recall)()


@pytest.mark.promise("R11")
@pytest.mark.parametrize("metric", [partial_auc, partial_auc_mcclish, recall_at_fpr])
@pytest.mark.parametrize("beta", [0, -0.1, 1.1, math.nan, True, "0.1"])
def test_what_is_no_beta_is_refused(metric, beta):
    with raises(InputError, "beta"):
        two_rows(metric, beta)()


@pytest.mark.promise("R11")
@pytest.mark.parametrize("p", [0, -1, math.inf, math.nan, True, "2"])
def test_what_is_no_power_is_refused(p):
    with raises(InputError, "p"):
        two_rows(pnorm_risk, p)()


@pytest.mark.promise("R11")
@pytest.mark.parametrize(
    ("refused_call", "places"),
    [
        pytest.param(two_rows(pnorm_risk, 1, loss="hinge"), "loss 'hinge'", id="loss"),
        pytest.param(
            two_rows(precision_at_k, 1, ties="mean"), "ties 'mean'", id="ties"
        ),
        pytest.param(
            two_rows(partial_auc, 1, tied_pairs="best"),
            "tied_pairs 'best'",
            id="tied pairs",
        ),
    ],
)
def test_an_unknown_option_is_refused(refused_call, places):
    with raises(InputError, places):
        refused_call()


# The registry


def test_the_metrics_of_which_smaller_is_better():
    smaller = {name for name, spec in METRICS.items() if spec.smaller_is_better}
    assert smaller == {"pnorm_risk", "r_max"}


@pytest.mark.parametrize("name", METRICS)
def test_a_perfect_list_is_better_than_its_reverse(name):
    y = [1, 1, 0, 0]
    perfect = call(name, y, [2, 1, 0, 0])
    reverse = call(name, y, [0, 0, 1, 2])
    if METRICS[name].smaller_is_better:
        assert perfect < reverse
    else:
        assert perfect > reverse


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
    assert metric.label == label
    assert metric.written == written


def test_replace_ignores_parameters_that_a_metric_has_not():
    precision = Metric("precision_at_k", {"k": 0.25})
    assert precision.replace(k=1, epochs=5).params == {"k": 1}
    assert Metric("auc", {}).replace(k=1) == Metric("auc", {})


# Long lists

LISTS = {
    "normal": lambda rng, n: rng.standard_normal(n),
    "ties": lambda rng, n: rng.integers(0, 40, n).astype(float),
    "zeros of both signs": lambda rng, n: rng.choice([-1.0, -0.0, 0.0, 1.0], n),
    "all equal": lambda rng, n: np.full(n, -0.5),
    "subnormal": lambda rng, n: 5e-324 * rng.integers(-9, 9, n),
    "all sizes": (
        lambda rng, n: rng.choice([-1, 1], n) * 2.0 ** rng.integers(-1074, 1024, n)
    ),
    "a sample of the lowest": lambda rng, n: np.arange(n) % 64 + rng.random(n),
    "a sample of the highest": lambda rng, n: -(np.arange(n) % 64) + rng.random(n),
    "nearly all 0": (
        lambda rng, n: np.where(rng.random(n) < 0.001, 1.0, -0.0) * rng.random(n)
    ),
}
each_list = pytest.mark.parametrize("scores_of", LISTS.values(), ids=LISTS)


def assert_first_rows_of_a_stable_sort(scores):
    n = len(scores)
    spaced = np.repeat(scores, 2)[::2]
    spaced.flags.writeable = False
    order = np.argsort(-scores, kind="stable")
    counts = {1, min(2, n), math.ceil(n / 1000), math.ceil(n / 100), n // 2 or 1, n}
    for count in sorted(counts):
        expected = np.sort(order[:count])
        assert_array_equal(first_rows(scores, count), expected)
        assert_array_equal(first_rows(spaced, count), expected)
        top = split_at(scores, count)
        lowest = scores[order[count - 1]]
        assert_array_equal(top.above, np.flatnonzero(scores > lowest))
        assert_array_equal(top.tied, np.flatnonzero(scores == lowest))
        assert top.n_tied_in_top == count - len(top.above)


@pytest.mark.parametrize("n", [1, 2, 600, 70_000])
@each_list
def test_the_first_rows_are_those_of_a_stable_sort(n, scores_of):
    assert_first_rows_of_a_stable_sort(scores_of(np.random.default_rng(n), n))


@pytest.mark.parametrize("n", [1, 2, 600, 70_000])
def test_infinite_scores_of_float32_have_an_order(n):
    rng = np.random.default_rng(n)
    scores = rng.choice([-np.inf, -1.0, 0.0, np.inf], n).astype(np.float32)
    assert_first_rows_of_a_stable_sort(scores)


@pytest.mark.parametrize("n", [2, 3000])
@each_list
def test_the_roc_curve_is_that_of_a_stable_sort(n, scores_of):
    """Rows by falling score, counted, and read at the last of each score."""
    rng = np.random.default_rng(n)
    scores = scores_of(rng, n)
    positive = rng.permutation(np.arange(n) % 5 == 0)
    order = np.argsort(-scores, kind="stable")
    is_last_of_score = np.append(np.diff(scores[order]) != 0, True)
    tp = np.cumsum(positive[order])[is_last_of_score]
    fp = np.cumsum(~positive[order])[is_last_of_score]
    fpr, tpr, thresholds = roc_curve(positive, scores)
    assert_array_equal(fpr, [0, *(fp / fp[-1])])
    assert_array_equal(tpr, [0, *(tp / tp[-1])])
    assert_array_equal(thresholds, [np.inf, *scores[order][is_last_of_score]])


@pytest.mark.parametrize(
    "scores",
    [
        pytest.param(2**60 + np.arange(100), id="large integers"),
        pytest.param(1 + np.arange(100) * np.longdouble(2) ** -60, id="long doubles"),
    ],
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
