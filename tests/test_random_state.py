"""`random_state` may be what scikit-learn's and NumPy's users give."""

import inspect
from typing import NamedTuple

import numpy as np
import pytest

import precbench
from precbench.core.errors import MissingPackageError

ESTIMATORS = [
    estimator
    for estimator in (getattr(precbench, name) for name in precbench.__all__)
    if inspect.isclass(estimator)
    and "random_state" in inspect.signature(estimator).parameters
]
GENERATORS = [
    pytest.param(lambda: np.random.RandomState(3), id="RandomState"),
    pytest.param(lambda: np.random.default_rng(3), id="Generator"),
]
STATES = [
    pytest.param(lambda: 3, id="int"),
    pytest.param(lambda: np.int64(3), id="integer of NumPy"),
    *GENERATORS,
]


class Rows(NamedTuple):
    X: np.ndarray
    y: np.ndarray


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((120, 3))
    return Rows(X, X[:, 0] + rng.standard_normal(120) > 1)


def scores_of(estimator, random_state, rows):
    """Return the scores of an estimator that is fitted with a state."""
    small = {"n_estimators": 5} if "n_estimators" in estimator().get_params() else {}
    solver = estimator(random_state=random_state, **small)
    try:
        solver.fit(rows.X, rows.y)
    except MissingPackageError as error:
        pytest.skip(str(error))
    return solver.decision_function(rows.X)


@pytest.mark.parametrize("make_state", STATES)
@pytest.mark.parametrize("estimator", ESTIMATORS, ids=lambda cls: cls.__name__)
@pytest.mark.filterwarnings("ignore")
def test_equal_states_give_equal_scores(estimator, make_state, rows):
    first = scores_of(estimator, make_state(), rows)
    second = scores_of(estimator, make_state(), rows)
    assert np.array_equal(first, second)


@pytest.mark.parametrize("make_state", GENERATORS)
def test_a_state_is_continued(make_state, rows):
    """As in scikit-learn: a second fit with the same object draws further numbers."""
    state = make_state()
    first = precbench.SGDAtK(k=5, random_state=state).fit(rows.X, rows.y)
    second = precbench.SGDAtK(k=5, random_state=state).fit(rows.X, rows.y)
    assert not np.array_equal(first.coef_, second.coef_)
