"""The surrogates and objectives: their definitions, subgradients, margins and input."""

import itertools
import math
from dataclasses import replace
from functools import partial
from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from precbench.core.errors import InputError
from precbench.ranking.losses import (
    AUC,
    F1,
    SURROGATES,
    PartialAUC,
    PrecisionAtK,
    margins,
    pair_hinges,
    prec_loss,
    struct,
    top_rows,
)
from precbench.ranking.metrics import precision_at_k
from tests.helpers import small_integers
from tests.sentences import raises

LOSSES = {
    **SURROGATES,
    "prec@k": PrecisionAtK(0.25),
    "prbep": PrecisionAtK(1.0),
    "pauc": PartialAUC(0.1),
    "pauc-wide": PartialAUC(0.6),
    "auc": AUC(),
    "f1": F1(),
}
each_loss = pytest.mark.parametrize("name", LOSSES)


def vectors(draw, n):
    """Draw n scores, with many ties or few."""
    if draw(st.booleans()):
        return small_integers(draw, n, 5) - 2.0
    return np.array(draw(st.lists(st.floats(-3, 3), min_size=n, max_size=n)))


@st.composite
def problems(draw, max_size=30):
    """Scores with many ties or few, labels in {0, 1} with both classes, and a count k
    <= n₊.
    """
    n = draw(st.integers(2, max_size))
    y = small_integers(draw, n, 2)
    assume(0 < y.sum() < n)
    scores = vectors(draw, n)
    k = draw(st.integers(1, int(y.sum())))
    return scores, y, k


def loss_at(name, k):
    """Return a loss with its parameters; an objective has its own."""
    return replace(SURROGATES[name], k=k) if name in SURROGATES else LOSSES[name]


# Values by definition


def labellings(n, k=None):
    """Yield all vectors in {0, 1}^n, or those with k ones."""
    for labelling in itertools.product([0, 1], repeat=n):
        if k is None or sum(labelling) == k:
            yield np.array(labelling)


def largest_sum(s, mask, size):
    """Return the largest sum of the scores of `size` rows of a mask."""
    subsets = (z for z in labellings(len(mask), size) if np.all(z <= mask))
    return max(np.sum(z * s) for z in subsets)


def false_positives(y, z):
    return np.sum((1 - y) * z)


def brute_struct(s, y, k):
    values = []
    for z in labellings(len(s), k):
        values.append(false_positives(y, z) + np.sum((z - y) * s))
    return max(values)


def brute_ramp(s, y, k):
    values = []
    for z in labellings(len(s), k):
        values.append(false_positives(y, z) + np.sum(z * s))
    return max(values) - largest_sum(s, y, k)


def brute_max(s, y, k):
    values = []
    for z in labellings(len(s), k):
        missed = (1 - z) * y
        highest_missed = largest_sum(s, missed, int(y.sum()) - k)
        values.append(false_positives(y, z) + np.sum((z - y) * s) + highest_missed)
    return max(values)


def brute_avg(s, y, k):
    values = []
    for z in labellings(len(s), k):
        missed = (1 - z) * y
        share = (np.sum(y) - k) / np.sum(missed) if missed.any() else 0
        part_of_missed = share * np.sum(missed * s)
        values.append(false_positives(y, z) + np.sum((z - y) * s) + part_of_missed)
    return max(values)


def brute_prec(s, y, k, share):
    return brute_struct(s, y, math.ceil(share * y.sum()))


def brute_pauc(s, y, k, beta):
    """The greatest sum of hinges over all sets of so many negatives, as a mean."""
    count = math.ceil(beta * (y == 0).sum() - 1e-9)
    hinges = np.maximum(0, 1 - (s[y == 1][:, None] - s[y == 0]))
    sets = itertools.combinations(range(hinges.shape[1]), count)
    return max(hinges[:, list(chosen)].mean() for chosen in sets)


def brute_f1(s, y, k):
    values = []
    for z in labellings(len(s)):
        f1 = 2 * (y @ z) / (y.sum() + z.sum())
        values.append(1 - f1 + (z - y) @ s / y.sum())
    return max(values)


BRUTE = {
    "ramp": brute_ramp,
    "max": brute_max,
    "avg": brute_avg,
    "struct": brute_struct,
    "prec@k": partial(brute_prec, share=0.25),
    "prbep": partial(brute_prec, share=1.0),
    "pauc": partial(brute_pauc, beta=0.1),
    "pauc-wide": partial(brute_pauc, beta=0.6),
    "auc": partial(brute_pauc, beta=1.0),
    "f1": brute_f1,
}


@pytest.mark.promise("R12")
@each_loss
@given(problem=problems(max_size=8))
def test_value_by_enumeration(name, problem):
    s, y, k = problem
    value = loss_at(name, k).value(s, y)
    assert value == pytest.approx(BRUTE[name](*problem), abs=1e-9)
    if name in SURROGATES:
        assert SURROGATES[name].value(*problem) == value


@given(st.data())
def test_struct_accepts_any_k_and_rows_of_one_class(data):
    n = data.draw(st.integers(1, 7))
    y = np.array(data.draw(st.lists(st.integers(0, 1), min_size=n, max_size=n)))
    scores = vectors(data.draw, n)
    k = data.draw(st.integers(0, n))
    value, subgradient = struct(scores, y > 0, k)
    assert value == pytest.approx(brute_struct(scores, y, k), abs=1e-9)
    other = vectors(data.draw, n)
    assert brute_struct(other, y, k) >= value + subgradient @ (other - scores) - 1e-9


# Relations


@given(problems())
def test_prec_loss_is_that_of_one_order_of_the_tied_rows(problem):
    scores, y, k = problem
    loss = prec_loss(scores, y, k)
    assert type(loss) is int
    best = precision_at_k(y, scores, k, ties="best")
    worst = precision_at_k(y, scores, k, ties="worst")
    assert round(k * (1 - best)) <= loss <= round(k * (1 - worst))
    ranked = sorted(range(len(scores)), key=lambda row: (-scores[row], row))
    assert loss == sum(y[row] == 0 for row in ranked[:k])


# Subgradients


@pytest.mark.parametrize(
    "name", [name for name, loss in LOSSES.items() if loss.is_convex]
)
@given(problem=problems(), data=st.data())
def test_a_convex_loss_is_above_the_plane_of_its_subgradient(name, problem, data):
    s, y, k = problem
    others = vectors(data.draw, len(s))
    loss = loss_at(name, k)
    plane_at_others = loss.value(s, y) + loss.subgradient(s, y) @ (others - s)
    assert loss.value(others, y) >= plane_at_others - 1e-9


@pytest.mark.promise("R12")
@each_loss
@given(seed=st.integers(0, 2**32 - 1), n=st.integers(2, 12))
def test_gradient_by_finite_differences(name, seed, n):
    rng = np.random.default_rng(seed)
    s = rng.normal(size=n)
    y = rng.permutation(np.arange(n) < rng.integers(1, n)).astype(int)
    loss = loss_at(name, int(rng.integers(1, y.sum() + 1)))
    gradient = loss.subgradient(s, y)
    step = 1e-6
    for i, shift in enumerate(step * np.eye(n)):
        # All are piecewise linear: within one piece the difference is the gradient.
        assume(np.array_equal(loss.subgradient(s + shift, y), gradient))
        assume(np.array_equal(loss.subgradient(s - shift, y), gradient))
        difference = loss.value(s + shift, y) - loss.value(s - shift, y)
        assert difference / (2 * step) == pytest.approx(gradient[i], abs=1e-6)


@pytest.mark.parametrize(
    ("name", "n_terms", "expected"),
    [
        ("ramp", 1, [-1, -1, 0, 1, 1, 0]),
        ("struct", 1, [-1, -1, -1, 1, 1, 0]),
        ("max", 1, [0, -1, -1, 1, 1, 0]),
        ("avg", 3, [-2, -2, -2, 3, 3, 0]),
        ("prec@k", 1, [-1, -1, -1, 1, 0, 0]),
        ("pauc", 3, [-1, -1, -1, 3, 0, 0]),
        ("pauc-wide", 6, [-2, -2, -2, 3, 3, 0]),
        ("auc", 9, [-3, -3, -3, 3, 3, 3]),
        ("f1", 3, [-1, -1, -1, 0, 0, 0]),
    ],
)
def test_among_tied_scores_the_lower_row_comes_first(name, n_terms, expected):
    """The loss is a mean of `n_terms`, whose derivatives are whole numbers."""
    gradient = loss_at(name, 2).subgradient(np.zeros(6), [1, 1, 1, 0, 0, 0])
    np.testing.assert_allclose(gradient * n_terms, expected)


class Edge(NamedTuple):
    """Scores at which a loss has more than one subgradient, and the one it takes."""

    loss: str
    scores: list[float]
    y: list[int]
    subgradient: list[float]


@pytest.mark.parametrize(
    "edge",
    [
        pytest.param(
            Edge(
                "struct", scores=[1.0, 0.0, -5.0], y=[1, 0, 1], subgradient=[0, 0, -1]
            ),
            id="of tied augmented scores the first, a positive",
        ),
        pytest.param(
            Edge(
                "struct", scores=[0.0, 1.0, -5.0], y=[0, 1, 1], subgradient=[1, -1, -1]
            ),
            id="of tied augmented scores the first, a negative",
        ),
        pytest.param(
            Edge(
                "avg", scores=[1.0, 1.0, 0.0], y=[1, 1, 0], subgradient=[-0.5, -0.5, 1]
            ),
            id="of k' = 0 and k' = 1, which both give 0, the first",
        ),
        pytest.param(
            Edge("max", scores=[1.0, 0.0], y=[1, 0], subgradient=[0, 0]),
            id="a hinge of 0 is inactive in max",
        ),
        pytest.param(
            Edge("auc", scores=[1.0, 0.0], y=[1, 0], subgradient=[0, 0]),
            id="a hinge of 0 is inactive in auc",
        ),
        pytest.param(
            Edge("f1", scores=[5.0, -0.5], y=[1, 0], subgradient=[0, 0]),
            id="no negative at -1/2 is predicted positive",
        ),
        pytest.param(
            Edge("f1", scores=[5.0, -1 / 3 - 1e-9], y=[1, 0], subgradient=[0, 0]),
            id="with one positive it does not pay below -1/3",
        ),
        pytest.param(
            Edge("f1", scores=[5.0, -1 / 3 + 1e-9], y=[1, 0], subgradient=[0, 1]),
            id="with one positive it pays above -1/3",
        ),
    ],
)
def test_subgradients_at_the_edges(edge):
    subgradient = loss_at(edge.loss, 1).subgradient(edge.scores, edge.y)
    np.testing.assert_array_equal(subgradient, edge.subgradient)


# Many rows

NORMAL = np.random.default_rng(0).standard_normal(5_000)
SCORES_OF_MANY_ROWS = {
    "spread": NORMAL,
    "tiny": 1e-300 * NORMAL,
    "huge": 1e300 * NORMAL,
    "tied": np.round(NORMAL),
    "all equal": np.zeros(5_000),
    "in order": np.sort(NORMAL),
    "clustered": np.where(NORMAL > 1, 1e9, 1e-9) * NORMAL,
    "a single row": NORMAL[:1],
}
each_scores = pytest.mark.parametrize(
    "scores", SCORES_OF_MANY_ROWS.values(), ids=SCORES_OF_MANY_ROWS
)


def top_of_a_stable_sort(scores, rows, share):
    """Return the first rows: those above the lowest, then those tied with it."""
    ranked = rows[np.argsort(-scores[rows], kind="stable")]
    count = math.ceil(share * len(rows))
    top = np.sort(ranked[:count])
    is_above = scores[top] > scores[ranked[count - 1]]
    return np.concatenate([top[is_above], top[~is_above]])


@each_scores
@pytest.mark.parametrize("share", [0.002, 0.3, 1.0])
def test_the_top_of_some_of_many_rows(scores, share):
    member = np.arange(len(scores)) % 3 != 1
    rows = np.flatnonzero(member)
    expected = top_of_a_stable_sort(scores, rows, share)
    assert np.array_equal(top_rows(scores, rows, len(expected)), expected)
    assert np.array_equal(top_rows(scores, member, len(expected)), expected)


@each_scores
@pytest.mark.parametrize("share", [0.002, 0.3, 1.0])
def test_the_top_of_many_rows(scores, share):
    rows = np.arange(len(scores))
    expected = top_of_a_stable_sort(scores, rows, share)
    assert np.array_equal(top_rows(scores, rows, len(expected)), expected)
    assert np.array_equal(top_rows(scores, None, len(expected)), expected)


@each_scores
@pytest.mark.parametrize("every", [2, 50])
@pytest.mark.parametrize("positives_are_rare", [True, False])
def test_pairs_of_many_rows(scores, every, positives_are_rare):
    is_rare = np.arange(len(scores)) % every == 0
    positive = is_rare if positives_are_rare else ~is_rare
    pos, neg = np.flatnonzero(positive), np.flatnonzero(~positive)
    bars = 1 + scores[neg]
    expected = np.zeros(len(scores))
    expected[neg] = np.searchsorted(np.sort(scores[pos]), bars, "left")
    n_bars_not_above = np.searchsorted(np.sort(bars), scores[pos], "right")
    expected[pos] = n_bars_not_above - len(neg)
    _value, subgradient = pair_hinges(scores, pos, neg)
    assert np.array_equal(subgradient, expected)


# Margins


@given(problems(max_size=8))
def test_margins_by_enumeration_of_subsets(problem):
    scores, y, k = problem
    positives = scores[y == 1]
    highest_negative = scores[y == 0].max()
    size = len(positives) - k + 1
    lowest_of_k = [min(subset) for subset in itertools.combinations(positives, k)]
    means = [sum(subset) / size for subset in itertools.combinations(positives, size)]
    measured = margins(scores, y, k)
    assert measured.weak == max(lowest_of_k) - highest_negative
    average = min(means) - highest_negative
    assert measured.average == pytest.approx(average, abs=1e-9)
    assert measured.strong == positives.min() - highest_negative
    assert measured.weak + 1e-9 >= measured.average >= measured.strong - 1e-9


# Appendix A of kar2015


APPENDIX_X = np.array([-1.0, -1, -2, -3, -3, -3])
APPENDIX_Y = np.array([1, 1, 1, 0, 0, 0])


@pytest.mark.parametrize("w", [-2.0, -0.25, 0.0, 0.25, 1.0])
def test_struct_on_the_six_points_of_appendix_a(w):
    value = SURROGATES["struct"].value(w * APPENDIX_X, APPENDIX_Y, 1)
    assert value == pytest.approx(1 - abs(w) if w <= 0 else max(1 + w, 3 * w))
    assert prec_loss(w * APPENDIX_X, APPENDIX_Y, 1) == (w < 0)
    if w < 0:
        assert value < 1


# Input


@each_loss
@given(problem=problems(max_size=12))
def test_labels_and_k_of_any_type(name, problem):
    scores, y, k = problem
    by_count = loss_at(name, k)
    by_share = loss_at(name, k / int(y.sum()))
    for labels in (2 * y - 1, y == 1, y + 1, np.array(["no", "yes"])[y]):
        subgradient = by_share.subgradient(scores, labels)
        np.testing.assert_array_equal(subgradient, by_count.subgradient(scores, y))
        assert by_share.value(scores, labels) == by_count.value(scores, y)


@pytest.mark.promise("R11")
@pytest.mark.parametrize(
    "function",
    [
        pytest.param(SURROGATES["ramp"].value, id="value of a surrogate"),
        pytest.param(SURROGATES["ramp"].subgradient, id="subgradient of a surrogate"),
        pytest.param(F1().value, id="value of an objective"),
        pytest.param(partial(prec_loss, k=1), id="prec_loss"),
        pytest.param(partial(margins, k=1), id="margins"),
    ],
)
@pytest.mark.parametrize(
    ("scores", "y", "places"),
    [
        pytest.param([0.0, 1.0], [1, 1], "2", id="one class"),
        pytest.param([0.0, math.nan], [0, 1], "1", id="a score of NaN"),
        pytest.param([0.0], [0, 1], "2 1", id="fewer scores than labels"),
    ],
)
def test_malformed_rows_are_refused(function, scores, y, places):
    with raises(InputError, places):
        function(scores, y)


FUNCTIONS_OF_K = {
    **{name: surrogate.value for name, surrogate in SURROGATES.items()},
    "prec_loss": prec_loss,
    "margins": margins,
}


@pytest.mark.promise("R11")
@pytest.mark.parametrize("function", FUNCTIONS_OF_K.values(), ids=FUNCTIONS_OF_K)
@pytest.mark.parametrize(
    ("k", "places"),
    [
        pytest.param(2, "k 2 1", id="more than positives"),
        pytest.param(True, "k", id="True"),
        pytest.param(None, "k", id="None"),
    ],
)
def test_an_invalid_k_is_refused(function, k, places):
    with raises(InputError, places):
        function([0.0, 1.0], [0, 1], k)


@pytest.mark.promise("R11")
@pytest.mark.parametrize("objective", [PartialAUC(), AUC(), F1()], ids=repr)
def test_an_objective_without_k_takes_none(objective):
    with raises(TypeError, "'k'"):
        objective.value([0.0, 1.0], [0, 1], k=1)


@pytest.mark.promise("R11")
@pytest.mark.parametrize("beta", [0, -0.1, 1.0001, 2, math.nan, True, "0.1", None])
def test_an_invalid_beta_is_refused(beta):
    with raises(InputError, "beta 0 1"):
        PartialAUC(beta)
