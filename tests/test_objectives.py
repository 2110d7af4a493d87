import dataclasses
import itertools
import math

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from precbench.errors import InputError
from precbench.metrics import f1, partial_auc
from precbench.objectives import AUC, F1, OBJECTIVES, Objective, PartialAUC, PrecisionAtK
from precbench.surrogates import SURROGATES, prec_loss

EACH = {
    "prec@k": PrecisionAtK(0.25),
    "prbep": PrecisionAtK(1.0),
    "pauc": PartialAUC(0.1),
    "pauc-wide": PartialAUC(0.6),
    "auc": AUC(),
    "f1": F1(),
}
SHIFT_INVARIANT = ["prbep", "pauc", "pauc-wide", "auc"]
each_objective = pytest.mark.parametrize("name", EACH)

many_ties = st.integers(-2, 2).map(float)
few_ties = st.floats(-3, 3)


def vectors(draw, n):
    values = draw(st.sampled_from([many_ties, few_ties]))
    return np.array(draw(st.lists(values, min_size=n, max_size=n)))


@st.composite
def problems(draw, max_size=30):
    """Scores with many ties or few, and labels in {0, 1} with both classes."""
    n = draw(st.integers(2, max_size))
    y = np.array(draw(st.lists(st.integers(0, 1), min_size=n, max_size=n)))
    assume(0 < y.sum() < n)
    return vectors(draw, n), y


def labellings(n):
    return (np.array(labelling) for labelling in itertools.product([0, 1], repeat=n))


def brute_struct(s, y, share):
    k = math.ceil(share * y.sum())
    return max(((1 - y) * z).sum() + (z - y) @ s for z in labellings(len(s)) if z.sum() == k)


def brute_pauc(s, y, beta):
    """The greatest sum of hinges over all sets of so many negatives, as a mean."""
    count = math.ceil(beta * (y == 0).sum() - 1e-9)
    hinges = np.maximum(0, 1 - (s[y == 1][:, None] - s[y == 0]))
    sets = itertools.combinations(range(hinges.shape[1]), count)
    return max(hinges[:, list(chosen)].mean() for chosen in sets)


def brute_f1(s, y):
    def loss(z):
        return 1 - 2 * (y @ z) / (y.sum() + z.sum())

    return max(loss(z) + (z - y) @ s / y.sum() for z in labellings(len(s)))


BRUTE = {
    "prec@k": lambda s, y: brute_struct(s, y, 0.25),
    "prbep": lambda s, y: brute_struct(s, y, 1.0),
    "pauc": lambda s, y: brute_pauc(s, y, 0.1),
    "pauc-wide": lambda s, y: brute_pauc(s, y, 0.6),
    "auc": lambda s, y: brute_pauc(s, y, 1.0),
    "f1": brute_f1,
}


def test_the_registry():
    assert list(OBJECTIVES) == ["prec@k", "pauc", "f1", "auc"]
    assert set(OBJECTIVES.values()) == set(Objective.__subclasses__())
    assert all(cls.name == name for name, cls in OBJECTIVES.items())
    assert [name for name, cls in OBJECTIVES.items() if cls.has_threshold] == ["f1"]


@each_objective
def test_objectives_are_frozen(name):
    with pytest.raises(dataclasses.FrozenInstanceError):
        EACH[name].name = "other"


# Values


@each_objective
@settings(deadline=None)
@given(problem=problems(max_size=9))
def test_value_is_that_of_the_definition(name, problem):
    assert EACH[name].value(*problem) == pytest.approx(BRUTE[name](*problem), abs=1e-9)


@given(problems(max_size=40))
def test_f1_is_the_maximum_over_all_tables(problem):
    s, y = problem
    pos, neg = -np.sort(-s[y == 1]), -np.sort(-s[y == 0])
    tables = itertools.product(range(pos.size + 1), range(neg.size + 1))
    value = max(
        1 - 2 * a / (a + b + pos.size) + (neg[:b].sum() - pos[a:].sum()) / pos.size
        for a, b in tables
    )
    assert F1().value(s, y) == pytest.approx(value, abs=1e-9)


@given(problems())
def test_auc_is_pauc_over_all_negatives(problem):
    assert AUC().value(*problem) == PartialAUC(1).value(*problem)
    np.testing.assert_array_equal(
        AUC().subgradient(*problem), PartialAUC(1.0).subgradient(*problem)
    )


@given(problems(), st.sampled_from([0.25, 1.0, 1]))
def test_prec_at_k_is_the_struct_surrogate(problem, k):
    assert PrecisionAtK(k).value(*problem) == SURROGATES["struct"].value(*problem, k)


@given(problems())
def test_objectives_are_not_below_their_losses(problem):
    s, y = problem
    assert PrecisionAtK(1.0).value(s, y) >= prec_loss(s, y, 1.0) - 1e-9
    for objective, beta in ((PartialAUC(0.1), 0.1), (PartialAUC(0.6), 0.6), (AUC(), 1.0)):
        loss = 1 - partial_auc(y, s, beta, tied_pairs="error")
        assert objective.value(s, y) >= loss - 1e-9
    assert F1().value(s, y) >= 1 - f1(y, s) - 1e-9


@pytest.mark.parametrize("name", SHIFT_INVARIANT)
@given(problem=problems(), shift=st.integers(-5, 5))
def test_a_shift_of_all_scores_changes_nothing(name, problem, shift):
    s, y = problem
    assert EACH[name].value(s + shift, y) == pytest.approx(EACH[name].value(s, y), abs=1e-9)


@each_objective
@given(problem=problems(), data=st.data())
def test_permuted_rows_have_the_same_value(name, problem, data):
    s, y = problem
    turn = data.draw(st.permutations(range(len(s))))
    assert EACH[name].value(s[turn], y[turn]) == pytest.approx(EACH[name].value(s, y), abs=1e-9)


@pytest.mark.parametrize("name", [name for name in EACH if name != "prec@k"])
def test_a_wide_margin_costs_nothing(name):
    y = np.repeat([1, 0], [3, 5])
    value, gradient = EACH[name].evaluate(4.0 * y - 2, y == 1)
    assert value == 0
    np.testing.assert_array_equal(gradient, np.zeros(8))


# Subgradients


@each_objective
@given(problem=problems(), data=st.data())
def test_subgradient_inequality(name, problem, data):
    s, y = problem
    others = vectors(data.draw, len(s))
    linear = EACH[name].value(s, y) + EACH[name].subgradient(s, y) @ (others - s)
    assert EACH[name].value(others, y) >= linear - 1e-9


@each_objective
@given(problem=problems())
def test_signs_of_the_subgradient(name, problem):
    s, y = problem
    gradient = EACH[name].subgradient(s, y)
    assert gradient.dtype == np.float64
    assert gradient.shape == s.shape
    assert (gradient[y == 0] >= 0).all()
    assert (gradient[y == 1] <= 0).all()
    if name in SHIFT_INVARIANT:
        assert gradient.sum() == pytest.approx(0, abs=1e-12)


@each_objective
@given(seed=st.integers(0, 2**32 - 1), n=st.integers(2, 12))
def test_finite_differences_where_smooth(name, seed, n):
    rng = np.random.default_rng(seed)
    s = rng.normal(size=n)
    y = rng.permutation(np.arange(n) < rng.integers(1, n)).astype(int)
    objective, step = EACH[name], 1e-6
    gradient = objective.subgradient(s, y)
    for row in np.eye(n) * step:
        # All are piecewise linear: within one piece the difference is the gradient.
        assume(np.array_equal(objective.subgradient(s + row, y), gradient))
        assume(np.array_equal(objective.subgradient(s - row, y), gradient))
        difference = objective.value(s + row, y) - objective.value(s - row, y)
        assert difference / (2 * step) == pytest.approx(gradient @ row / step, abs=1e-6)


@pytest.mark.parametrize(
    ("objective", "expected"),
    [
        (PartialAUC(0.5), [1 / 2, -1 / 2, 1 / 2, -1 / 2, 0, 0]),
        (AUC(), [1 / 4, -1 / 2, 1 / 4, -1 / 2, 1 / 4, 1 / 4]),
        (PrecisionAtK(1.0), [1, -1, 1, -1, 0, 0]),
        (F1(), [0, -1 / 2, 0, -1 / 2, 0, 0]),
    ],
)
def test_among_tied_scores_the_lower_row_stands_first(objective, expected):
    np.testing.assert_array_equal(objective.subgradient(np.zeros(6), [0, 1, 0, 1, 0, 0]), expected)


def test_a_hinge_of_zero_takes_no_part():
    np.testing.assert_array_equal(AUC().subgradient([1.0, 0.0], [1, 0]), [0, 0])


def test_a_negative_at_minus_one_half_is_never_predicted_positive():
    """Alone with one positive it pays from -1/3 on."""
    for score, predicted in ((-0.5, 0), (-1 / 3 - 1e-9, 0), (-1 / 3 + 1e-9, 1)):
        np.testing.assert_array_equal(F1().subgradient([5.0, score], [1, 0]), [0, predicted])


# Input


@each_objective
@given(problem=problems(max_size=12))
def test_labels_in_any_form(name, problem):
    s, y = problem
    expected = EACH[name].subgradient(s, y)
    for labels in (2 * y - 1, y == 1, y + 1, np.array(["no", "yes"])[y]):
        np.testing.assert_array_equal(EACH[name].subgradient(s, labels), expected)


@pytest.mark.parametrize("beta", [0, -0.1, 1.0001, 2, math.nan, True, "0.1", None])
def test_a_share_of_the_negatives_that_is_none_is_refused(beta):
    with pytest.raises(InputError, match=r"beta = .* give a number in \(0, 1\]"):
        PartialAUC(beta)


@pytest.mark.parametrize("method", ["value", "subgradient"])
@pytest.mark.parametrize(
    ("objective", "scores", "y", "message"),
    [
        (PrecisionAtK(2), [0.0, 1.0], [0, 1], r"k = 2 .* positives, 1"),
        (PrecisionAtK(True), [0.0, 1.0], [0, 1], "k = True"),
        (PartialAUC(), [0.0, 1.0], [1, 1], "all 2 labels"),
        (F1(), [0.0, math.nan], [0, 1], "index 1 is nan"),
        (AUC(), [0.0], [0, 1], "2 labels and 1 scores"),
    ],
)
def test_malformed_input_is_refused(method, objective, scores, y, message):
    with pytest.raises(InputError, match=message):
        getattr(objective, method)(scores, y)


@each_objective
def test_input_is_left_alone(name):
    scores, y = np.array([0.0, 2.0, 1.0]), np.array([1, 0, 1])
    scores.flags.writeable = y.flags.writeable = False
    EACH[name].value(scores, y)
    EACH[name].subgradient(scores, y)
    assert scores.tolist() == [0.0, 2.0, 1.0] and y.tolist() == [1, 0, 1]
