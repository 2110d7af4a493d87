import dataclasses
import itertools
import math

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from precbench.errors import InputError
from precbench.metrics import precision_at_k
from precbench.surrogates import SURROGATES, Margins, Surrogate, margins, prec_loss

CONVEX = [name for name, surrogate in SURROGATES.items() if surrogate.is_convex]
BOUNDS = [name for name, surrogate in SURROGATES.items() if surrogate.upper_bounds_loss]

many_ties = st.integers(-2, 2).map(float)
few_ties = st.floats(-3, 3)


def vectors(draw, n, values):
    return np.array(draw(st.lists(values, min_size=n, max_size=n)))


@st.composite
def problems(draw, max_size=8, values=None):
    """Scores with many ties or few, labels in {0, 1} with both classes, and a count k <= n₊."""
    n = draw(st.integers(2, max_size))
    y = np.array(draw(st.lists(st.integers(0, 1), min_size=n, max_size=n)))
    assume(0 < y.sum() < n)
    scores = vectors(draw, n, values or draw(st.sampled_from([many_ties, few_ties])))
    return scores, y, draw(st.integers(1, int(y.sum())))


def labellings(n, k):
    """All vectors in {0, 1}^n with k ones."""
    for ones in itertools.combinations(range(n), k):
        labelling = np.zeros(n, dtype=int)
        labelling[list(ones)] = 1
        yield labelling


def subsets_of(mask, size):
    return (z for z in labellings(len(mask), size) if np.all(z <= mask))


def brute_struct(s, y, k):
    return max(np.sum((1 - y) * yh) + np.sum((yh - y) * s) for yh in labellings(len(s), k))


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
        np.sum((1 - y) * yh) + np.sum((yh - y) * s) + relaxed(yh) for yh in labellings(len(s), k)
    )


BRUTE = {"ramp": brute_ramp, "max": brute_max, "avg": brute_avg, "struct": brute_struct}


def test_the_registry():
    assert SURROGATES.keys() == BRUTE.keys()
    assert {type(s) for s in SURROGATES.values()} == set(Surrogate.__subclasses__())
    assert all(surrogate.name == name for name, surrogate in SURROGATES.items())
    assert set(CONVEX) == {"max", "avg", "struct"}
    assert set(BOUNDS) == {"ramp", "max", "avg"}


@pytest.mark.parametrize("name", SURROGATES)
def test_surrogates_are_frozen(name):
    with pytest.raises(dataclasses.FrozenInstanceError):
        SURROGATES[name].name = "other"


# Values


@pytest.mark.parametrize("name", SURROGATES)
@settings(deadline=None)
@given(problem=problems())
def test_value_is_the_maximum_over_all_labellings(name, problem):
    assert SURROGATES[name].value(*problem) == pytest.approx(BRUTE[name](*problem), abs=1e-9)


@settings(deadline=None)
@given(st.data())
def test_struct_takes_any_k_and_rows_of_one_class(data):
    n = data.draw(st.integers(1, 7))
    y = np.array(data.draw(st.lists(st.integers(0, 1), min_size=n, max_size=n)))
    scores, k = vectors(data.draw, n, many_ties), data.draw(st.integers(0, n))
    value, subgradient = SURROGATES["struct"].evaluate(scores, y > 0, k)
    assert value == pytest.approx(brute_struct(scores, y, k), abs=1e-9)
    other = vectors(data.draw, n, few_ties)
    assert brute_struct(other, y, k) >= value + subgradient @ (other - scores) - 1e-9


@given(problems(max_size=30))
def test_the_surrogates_are_ordered_above_the_loss(problem):
    ramp, avg, top = (SURROGATES[name].value(*problem) for name in ("ramp", "avg", "max"))
    assert prec_loss(*problem) <= ramp + 1e-9
    assert ramp <= avg + 1e-9
    assert avg <= top + 1e-9


@given(problems(max_size=30))
def test_all_surrogates_agree_when_k_is_the_number_of_positives(problem):
    scores, y, _ = problem
    struct = SURROGATES["struct"].value(scores, y, 1.0)
    for surrogate in SURROGATES.values():
        assert surrogate.value(scores, y, 1.0) == pytest.approx(struct, abs=1e-9)


@pytest.mark.parametrize("name", SURROGATES)
@given(problem=problems(max_size=30), shift=st.integers(-5, 5))
def test_adding_a_constant_to_all_scores_changes_struct_only(name, problem, shift):
    scores, y, k = problem
    change = (k - int(y.sum())) * shift if name == "struct" else 0
    expected = SURROGATES[name].value(scores, y, k) + change
    assert SURROGATES[name].value(scores + shift, y, k) == pytest.approx(expected, abs=1e-9)


@given(problems(max_size=30))
def test_the_loss_is_that_of_one_order_of_the_tied_rows(problem):
    scores, y, k = problem
    loss = prec_loss(scores, y, k)
    assert type(loss) is int
    best, worst = (precision_at_k(y, scores, k, ties=ties) for ties in ("best", "worst"))
    assert round(k * (1 - best)) <= loss <= round(k * (1 - worst))
    ranked = sorted(range(len(scores)), key=lambda row: (-scores[row], row))
    assert loss == sum(y[row] == 0 for row in ranked[:k])


# Subgradients


@pytest.mark.parametrize("name", SURROGATES)
@given(problem=problems(max_size=30))
def test_the_subgradient_belongs_to_the_value(name, problem):
    """A surrogate is <g, s> plus the number of negatives in the labelling that attains it."""
    scores, y, k = problem
    gradient = SURROGATES[name].subgradient(scores, y, k)
    assert gradient.dtype == np.float64
    assert gradient.shape == scores.shape
    assert set(gradient[y == 0]) <= {0, 1}
    value = gradient @ scores + gradient[y == 0].sum()
    assert SURROGATES[name].value(scores, y, k) == pytest.approx(value, abs=1e-9)


@pytest.mark.parametrize("name", CONVEX)
@given(data=st.data())
def test_subgradient_inequality(name, data):
    scores, y, k = data.draw(problems(max_size=12))
    others = vectors(data.draw, len(scores), data.draw(st.sampled_from([many_ties, few_ties])))
    surrogate = SURROGATES[name]
    linear = surrogate.value(scores, y, k) + surrogate.subgradient(scores, y, k) @ (others - scores)
    assert surrogate.value(others, y, k) >= linear - 1e-9


def test_ramp_is_not_convex():
    ramp, y = SURROGATES["ramp"], [1, 1, 0]
    assert ramp.value([1, 0, 0], y, 1) == ramp.value([0, 1, 0], y, 1) == 0
    assert ramp.value([0.5, 0.5, 0], y, 1) == 0.5


@pytest.mark.parametrize("name", SURROGATES)
@given(seed=st.integers(0, 2**32 - 1), n=st.integers(2, 12))
def test_finite_differences_where_smooth(name, seed, n):
    rng = np.random.default_rng(seed)
    scores = rng.normal(size=n)
    y = rng.permutation(np.arange(n) < rng.integers(1, n)).astype(int)
    k = int(rng.integers(1, y.sum() + 1))
    surrogate, step = SURROGATES[name], 1e-6
    gradient = surrogate.subgradient(scores, y, k)
    for row in np.eye(n) * step:
        ahead, behind = scores + row, scores - row
        # All four are piecewise linear: within one piece the difference is the gradient.
        assume(np.array_equal(surrogate.subgradient(ahead, y, k), gradient))
        assume(np.array_equal(surrogate.subgradient(behind, y, k), gradient))
        difference = surrogate.value(ahead, y, k) - surrogate.value(behind, y, k)
        assert difference / (2 * step) == pytest.approx(gradient @ row / step, abs=1e-6)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("ramp", [-1, -1, 0, 1, 1, 0]),
        ("struct", [-1, -1, -1, 1, 1, 0]),
        ("max", [0, -1, -1, 1, 1, 0]),
        ("avg", [-2 / 3, -2 / 3, -2 / 3, 1, 1, 0]),
    ],
)
def test_among_tied_scores_the_lower_row_stands_first(name, expected):
    gradient = SURROGATES[name].subgradient(np.zeros(6), [1, 1, 1, 0, 0, 0], 2)
    np.testing.assert_allclose(gradient, expected)


def test_a_negative_one_below_a_positive_ties_with_it_in_the_augmented_order():
    """Row 0 is chosen because its index is lower, not because of its class."""
    for y, expected in (([1, 0, 1], [0, 0, -1]), ([0, 1, 1], [1, -1, -1])):
        scores = np.array([1.0 if label else 0.0 for label in y])
        scores[2] = -5
        np.testing.assert_array_equal(SURROGATES["struct"].subgradient(scores, y, 1), expected)


def test_avg_takes_the_first_of_the_best_numbers_of_true_positives():
    """Both k' = 0 and k' = 1 give 0 here."""
    np.testing.assert_array_equal(
        SURROGATES["avg"].subgradient([1.0, 1.0, 0.0], [1, 1, 0], 1), [-0.5, -0.5, 1]
    )


def test_a_bracket_of_zero_is_left_out_of_max():
    np.testing.assert_array_equal(SURROGATES["max"].subgradient([1.0, 0.0], [1, 0], 1), [0, 0])


# Margins


@settings(deadline=None)
@given(problems())
def test_margins_over_all_subsets(problem):
    scores, y, k = problem
    positives, top = scores[y == 1], scores[y == 0].max()
    weak = max(min(chosen) for chosen in itertools.combinations(positives, k)) - top
    size = len(positives) - k + 1
    average = min(sum(c) / size for c in itertools.combinations(positives, size)) - top
    measured = margins(scores, y, k)
    assert measured.weak == weak
    assert measured.average == pytest.approx(average, abs=1e-9)
    assert measured.strong == positives.min() - top
    assert measured.weak + 1e-9 >= measured.average >= measured.strong - 1e-9


@pytest.mark.parametrize(
    ("name", "margin"), [("ramp", "weak"), ("avg", "average"), ("max", "strong")]
)
@given(problem=problems(max_size=30), gamma=st.integers(-2, 5).map(lambda i: i / 2))
def test_a_surrogate_is_zero_exactly_when_its_margin_is_one(name, margin, problem, gamma):
    """Claims 3 and 6 and section 3.3 of kar2015, and their converse."""
    scores, y, k = problem
    scores = scores + y * (gamma - getattr(margins(scores, y, k), margin))
    assert getattr(margins(scores, y, k), margin) == pytest.approx(gamma, abs=1e-9)
    value = SURROGATES[name].value(scores, y, k)
    assert value >= max(0, 1 - gamma) - 1e-9
    if gamma >= 1:
        assert value == pytest.approx(0, abs=1e-9)
        assert prec_loss(scores, y, k) == 0


# Appendix A


APPENDIX_X = np.array([-1.0, -1, -2, -3, -3, -3])
APPENDIX_Y = np.array([1, 1, 1, 0, 0, 0])


@pytest.mark.parametrize("w", np.arange(-8, 9) / 4)
def test_struct_on_the_six_points_of_appendix_a(w):
    struct = SURROGATES["struct"].value(w * APPENDIX_X, APPENDIX_Y, 1)
    assert struct == pytest.approx(1 - abs(w) if w <= 0 else max(1 + w, 3 * w))
    assert prec_loss(w * APPENDIX_X, APPENDIX_Y, 1) == (w < 0)
    if w < 0:
        assert struct < 1


@pytest.mark.parametrize("name", SURROGATES)
def test_only_struct_prefers_the_wrong_sign_on_appendix_a(name):
    grid = np.linspace(-3, 3, 61)
    values = [SURROGATES[name].value(w * APPENDIX_X, APPENDIX_Y, 1) for w in grid]
    best = grid[int(np.argmin(values))]
    assert best == -3 if name == "struct" else best > 0


# Input


@pytest.mark.parametrize("name", SURROGATES)
@given(problem=problems(max_size=12))
def test_labels_and_k_in_any_form(name, problem):
    scores, y, k = problem
    surrogate = SURROGATES[name]
    expected = surrogate.subgradient(scores, y, k)
    share = k / int(y.sum())
    for labels in (2 * y - 1, y == 1, y + 1, np.array(["no", "yes"])[y]):
        np.testing.assert_array_equal(surrogate.subgradient(scores, labels, share), expected)
        assert surrogate.value(scores, labels, share) == surrogate.value(scores, y, k)


@pytest.mark.parametrize(
    "function",
    [f for s in SURROGATES.values() for f in (s.value, s.subgradient)] + [prec_loss, margins],
)
@pytest.mark.parametrize(
    ("scores", "y", "k", "message"),
    [
        ([0.0, 1.0], [0, 1], 2, r"k = 2 .* positives, 1"),
        ([0.0, 1.0], [0, 1], True, "k = True"),
        ([0.0, 1.0], [1, 1], 1, "all 2 labels"),
        ([0.0, math.nan], [0, 1], 1, "index 1 is nan"),
        ([0.0], [0, 1], 1, "2 labels and 1 scores"),
    ],
)
def test_malformed_input_is_refused(function, scores, y, k, message):
    with pytest.raises(InputError, match=message):
        function(scores, y, k)


def test_input_is_left_alone():
    scores, y = np.array([0.0, 2.0, 1.0]), np.array([1, 0, 1])
    scores.flags.writeable = y.flags.writeable = False
    for surrogate in SURROGATES.values():
        surrogate.value(scores, y, 1)
        surrogate.subgradient(scores, y, 1)
    assert margins(scores, y, 1) == Margins(weak=-1.0, average=-1.5, strong=-2.0)
