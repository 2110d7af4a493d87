"""`random_state` may be what scikit-learn's and NumPy's users give."""

import inspect

import numpy as np
import pytest

import precbench
from precbench.core.errors import MissingPackageError

ESTIMATORS = [
    cls
    for cls in (getattr(precbench, name) for name in precbench.__all__)
    if inspect.isclass(cls) and "random_state" in inspect.signature(cls).parameters
]
KINDS = {
    "int": lambda: 3,
    "integer of NumPy": lambda: np.int64(3),
    "RandomState": lambda: np.random.RandomState(3),
    "Generator": lambda: np.random.default_rng(3),
}


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((120, 3))
    return X, X[:, 0] + rng.standard_normal(120) > 1


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("estimator", ESTIMATORS, ids=lambda cls: cls.__name__)
@pytest.mark.filterwarnings("ignore")
def test_equal_states_give_equal_scores(estimator, kind, rows):
    small = {"n_estimators": 5} if "n_estimators" in estimator().get_params() else {}
    scores = []
    for _ in range(2):
        solver = estimator(random_state=KINDS[kind](), **small)
        try:
            scores.append(solver.fit(*rows).decision_function(rows[0]))
        except MissingPackageError as error:
            pytest.skip(str(error))
    assert np.array_equal(*scores)


@pytest.mark.parametrize("kind", ["RandomState", "Generator"])
def test_a_state_is_continued(kind, rows):
    """As in scikit-learn: a second fit with the same object draws further numbers."""
    state = KINDS[kind]()
    first, second = (
        precbench.SGDAtK(k=5, random_state=state).fit(*rows) for _ in range(2)
    )
    assert not np.array_equal(first.coef_, second.coef_)
