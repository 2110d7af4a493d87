"""The surrogates and objectives: their definitions, subgradients, margins and input."""

import itertools
import math
from dataclasses import replace
from functools import partial

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

EACH = {
    **SURROGATES,
    "prec@k": PrecisionAtK(0.25),
    "prbep": PrecisionAtK(1.0),
    "pauc": PartialAUC(0.1),
    "pauc-wide": PartialAUC(0.6),
    "auc": AUC(),
    "f1": F1(),
}
each_loss = pytest.mark.parametrize("name", EACH)


def vectors(draw, n):
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
    return vectors(draw, n), y, draw(st.integers(1, int(y.sum())))


def loss_at(name, k):
    """Return a loss with its parameters; an objective has its own."""
    return replace(SURROGATES[name], k=k) if name in SURROGATES else EACH[name]


# Values by definition


def labellings(n, k=None):
    """All vectors in {0, 1}^n, with k ones."""
    for labelling in itertools.product([0, 1], repeat=n):
        if k is None or sum(labelling) == k:
            yield np.array(labelling)


def subsets_of(mask, size):
    return (z for z in labellings(len(mask), size) if np.all(z <= mask))


def brute_struct(s, y, k):
    return max(
        np.sum((1 - y) * yh) + np.sum((yh - y) * s) for yh in labellings(len(s), k)
    )


def brute_ramp(s, y, k):
    first = max(np.sum((1 - y) * yh) + np.sum(yh * s) for yh in labellings(len(s), k))
    return first - max(np.sum(yt * s) for yt in subsets_of(y, k))


def brute_max(s, y, k):
    return max(
        np.sum((1 - y) * yh)
        + np.sum((yh - y) * s)
        + max(np.sum(yt * s) for yt in subsets_of((1 - yh) * y, int(y.sum()) - k))
        for yh in labellings(len(s), k)
    )


def brute_avg(s, y, k):
    def relaxed(yh):
        n_missed = np.sum(y) - np.sum(y * yh)
        share = (np.sum(y) - k) / n_missed if n_missed else 0
        return share * np.sum((1 - yh) * y * s)

    return max(
        np.sum((1 - y) * yh) + np.sum((yh - y) * s) + relaxed(yh)
        for yh in labellings(len(s), k)
    )


def brute_prec(s, y, k, share):
    return brute_struct(s, y, math.ceil(share * y.sum()))


def brute_pauc(s, y, k, beta):
    """The greatest sum of hinges over all sets of so many negatives, as a mean."""
    count = math.ceil(beta * (y == 0).sum() - 1e-9)
    hinges = np.maximum(0, 1 - (s[y == 1][:, None] - s[y == 0]))
    sets = itertools.combinations(range(hinges.shape[1]), count)
    return max(hinges[:, list(chosen)].mean() for chosen in sets)


def brute_f1(s, y, k):
    def loss(z):
        return 1 - 2 * (y @ z) / (y.sum() + z.sum())

    return max(loss(z) + (z - y) @ s / y.sum() for z in labellings(len(s)))


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
    scores, k = vectors(data.draw, n), data.draw(st.integers(0, n))
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
    best, worst = (
        precision_at_k(y, scores, k, ties=ties) for ties in ("best", "worst")
    )
    assert round(k * (1 - best)) <= loss <= round(k * (1 - worst))
    ranked = sorted(range(len(scores)), key=lambda row: (-scores[row], row))
    assert loss == sum(y[row] == 0 for row in ranked[:k])


# Subgradients


@pytest.mark.parametrize(
    "name", [name for name, loss in EACH.items() if loss.is_convex]
)
@given(problem=problems(), data=st.data())
def test_subgradient_inequality(name, problem, data):
    s, y, k = problem
    others, loss = vectors(data.draw, len(s)), loss_at(name, k)
    linear = loss.value(s, y) + loss.subgradient(s, y) @ (others - s)
    assert loss.value(others, y) >= linear - 1e-9


@pytest.mark.promise("R12")
@each_loss
@given(seed=st.integers(0, 2**32 - 1), n=st.integers(2, 12))
def test_gradient_by_finite_differences(name, seed, n):
    rng = np.random.default_rng(seed)
    s = rng.normal(size=n)
    y = rng.permutation(np.arange(n) < rng.integers(1, n)).astype(int)
    loss, step = loss_at(name, int(rng.integers(1, y.sum() + 1))), 1e-6
    gradient = loss.subgradient(s, y)
    for row in np.eye(n) * step:
        # All are piecewise linear: within one piece the difference is the gradient.
        assume(np.array_equal(loss.subgradient(s + row, y), gradient))
        assume(np.array_equal(loss.subgradient(s - row, y), gradient))
        difference = loss.value(s + row, y) - loss.value(s - row, y)
        assert difference / (2 * step) == pytest.approx(gradient @ row / step, abs=1e-6)


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
    gradient = loss_at(name, 2).subgradient(np.zeros(6), [1, 1, 1, 0, 0, 0])
    np.testing.assert_allclose(gradient * n_terms, expected)


@pytest.mark.parametrize(
    ("name", "scores", "y", "expected"),
    [
        # Augmented scores tie: row 0 is chosen for its lower index, not for its class.
        ("struct", [1.0, 0.0, -5.0], [1, 0, 1], [0, 0, -1]),
        ("struct", [0.0, 1.0, -5.0], [0, 1, 1], [1, -1, -1]),
        # Both k' = 0 and k' = 1 give 0; the first maximiser is taken.
        ("avg", [1.0, 1.0, 0.0], [1, 1, 0], [-0.5, -0.5, 1]),
        # A hinge of zero is inactive.
        ("max", [1.0, 0.0], [1, 0], [0, 0]),
        ("auc", [1.0, 0.0], [1, 0], [0, 0]),
        # No negative at -1/2 is predicted positive; with one positive it pays from
        # -1/3 on.
        ("f1", [5.0, -0.5], [1, 0], [0, 0]),
        ("f1", [5.0, -1 / 3 - 1e-9], [1, 0], [0, 0]),
        ("f1", [5.0, -1 / 3 + 1e-9], [1, 0], [0, 1]),
    ],
)
def test_subgradients_at_the_edges(name, scores, y, expected):
    np.testing.assert_array_equal(loss_at(name, 1).subgradient(scores, y), expected)


def scores_of_many_rows():
    """Scores of many rows.

    Spread, clustered, tied, all equal, in order, and the extremes.
    """
    normal = np.random.default_rng(0).standard_normal(5_000)
    yield from (
        normal,
        1e-300 * normal,
        1e300 * normal,
        np.round(normal),
        np.zeros(5_000),
    )
    yield from (np.sort(normal), np.where(normal > 1, 1e9, 1e-9) * normal, normal[:1])


@pytest.mark.parametrize("share", [0.002, 0.3, 1.0])
def test_top_rows_of_many(share):
    for scores in scores_of_many_rows():
        member = np.arange(len(scores)) % 3 != 1
        for listed in (np.flatnonzero(member), np.arange(len(scores))):
            ranked = listed[np.argsort(-scores[listed], kind="stable")]
            count = math.ceil(share * len(listed))
            for rows in (listed, member if len(listed) < len(scores) else None):
                found = top_rows(scores, rows, count)
                last = scores[ranked[count - 1]]
                expected = np.sort(ranked[:count])
                above = scores[expected] > last
                assert np.array_equal(found, [*expected[above], *expected[~above]])


@pytest.mark.parametrize("every", [2, 50])
def test_pairs_of_many_rows(every):
    for scores in scores_of_many_rows():
        positive = np.arange(len(scores)) % every == 0
        for mask in (positive, ~positive):
            pos, neg = np.flatnonzero(mask), np.flatnonzero(~mask)
            bars = 1 + scores[neg]
            expected = np.zeros(len(scores))
            expected[neg] = np.searchsorted(np.sort(scores[pos]), bars, "left")
            expected[pos] = np.searchsorted(np.sort(bars), scores[pos], "right") - len(
                neg
            )
            assert np.array_equal(pair_hinges(scores, pos, neg)[1], expected)


# Margins


@given(problems(max_size=8))
def test_margins_by_enumeration_of_subsets(problem):
    scores, y, k = problem
    positives, top = scores[y == 1], scores[y == 0].max()
    weak = max(min(chosen) for chosen in itertools.combinations(positives, k)) - top
    size = len(positives) - k + 1
    average = min(sum(c) / size for c in itertools.combinations(positives, size)) - top
    measured = margins(scores, y, k)
    assert measured.weak == weak and measured.average == pytest.approx(
        average, abs=1e-9
    )
    assert measured.strong == positives.min() - top
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
    expected = loss_at(name, k)
    share = k / int(y.sum())
    for labels in (2 * y - 1, y == 1, y + 1, np.array(["no", "yes"])[y]):
        loss = loss_at(name, share)
        slope = loss.subgradient(scores, labels)
        np.testing.assert_array_equal(slope, expected.subgradient(scores, y))
        assert loss.value(scores, labels) == expected.value(scores, y)


MALFORMED = [
    ([0.0, 1.0], [1, 1], "2"),
    ([0.0, math.nan], [0, 1], "1"),
    ([0.0], [0, 1], "2 1"),
]
WITH_K = [*(surrogate.value for surrogate in SURROGATES.values()), prec_loss, margins]
REFUSED = [
    *(
        (partial(function, *rows), InputError, places)
        for function in (
            SURROGATES["ramp"].value,
            SURROGATES["ramp"].subgradient,
            F1().value,
        )
        for *rows, places in MALFORMED
    ),
    *(
        (partial(function, *rows, 1), InputError, places)
        for function in (prec_loss, margins)
        for *rows, places in MALFORMED
    ),
    *(
        (partial(function, [0.0, 1.0], [0, 1], k), InputError, places)
        for function in WITH_K
        for k, places in ((2, "k 2 1"), (True, "k"), (None, "k"))
    ),
    *(
        (partial(objective.value, [0.0, 1.0], [0, 1], k=1), TypeError, "'k'")
        for objective in (PartialAUC(), AUC(), F1())
    ),
    *(
        (partial(PartialAUC, beta), InputError, "beta 0 1")
        for beta in (0, -0.1, 1.0001, 2, math.nan, True, "0.1", None)
    ),
]


@pytest.mark.promise("R11")
@pytest.mark.parametrize(("call", "kind", "places"), REFUSED)
def test_invalid_arguments_are_rejected(call, kind, places):
    with raises(kind, places):
        call()
