"""Every law over every member of its registry, with all its settings."""

import inspect
import itertools
import math
from functools import partial

import pytest
from sklearn.utils import estimator_checks
from sklearn.utils.estimator_checks import check_estimator

from precbench import solvers
from precbench.solvers import SOLVERS
from precbench.solvers.common.driver import PassMixin
from precbench.solvers.common.weights import WeightedRanker
from tests import laws
from tests.sentences import raises

MEMBERS = {
    **SOLVERS,
    **{f"1pmb-{name}": partial(solvers.OnePMB, name) for name in ("pauc", "auc", "f1")},
    **{f"2pmb-{name}": partial(solvers.TwoPMB, name) for name in ("pauc", "auc", "f1")},
    **{f"ftrl-{name}": partial(solvers.FTRL, name) for name in ("prec@k", "pauc")},
    "perceptron-best": partial(solvers.PerceptronAtK, keep="best"),
    "sgd-ramp": partial(solvers.SGDAtK, "ramp"),
    "sgd-struct": partial(solvers.SGDAtK, "struct"),
    "pnorm-push-newton": partial(solvers.PNormPush, method="newton"),
    "oam-gradient": partial(solvers.OAM, "gradient", C=2**-6),
    "adaoam-ball": partial(solvers.AdaOAM, eta0=2.0, reg=6.0),
    "spam-l1": partial(solvers.SPAM, l1_reg=0.001),
    "cutting-plane-best": partial(solvers.CuttingPlane, keep="best"),
    "random-forest-undersampled": partial(
        solvers.RandomForest, class_weight="undersampled"
    ),
    "xgboost-ndcg": partial(
        solvers.XGBoost,
        "rank:ndcg",
        min_child_weight=0.0,
        reg_lambda=0.01,
        learning_rate=0.1,
    ),
}
OWN = [name for name in MEMBERS if name not in SOLVERS or not SOLVERS.package(name)]
LINEAR = [name for name, factory in MEMBERS.items() if laws.is_linear(factory)]
IN_PASSES = [
    name for name, factory in MEMBERS.items() if isinstance(factory(), PassMixin)
]
INCREMENTAL = [
    name for name, factory in MEMBERS.items() if hasattr(factory(), "partial_fit")
]


@pytest.fixture(scope="module", autouse=True)
def few_members():
    """Stack one member with weights and one of trees.

    All members are solvers, to which the laws apply for themselves.
    """
    all_recipes = solvers.Ensemble._recipes

    def two_recipes(*arguments):
        recipes = list(all_recipes(*arguments))
        return [recipes[1], recipes[3]]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(solvers.Ensemble, "_recipes", two_recipes)
        yield


NO_SHARES = [0, 1.1, math.nan, "0.1"]
# solver, parameter and values
OUT_OF_RANGE = [
    (solvers.BBR, "radius", [0, math.nan, "1"]),
    (solvers.LCBR, "radius", [0]),
    (solvers.LCBR, "n_pairs", [0, -2.5]),
    (solvers.OAM, "C", [0]),
    (solvers.OAM, "reservoir_size", [2.5]),
    (solvers.OAM, "update", ["other"]),
    (solvers.PGD, "eta0", [0]),
    (solvers.PGD, "power_t", [1.5]),
    (solvers.PGD, "epochs", [0]),
    (solvers.AdaOAM, "eta0", [0]),
    (solvers.AdaOAM, "reg", [0]),
    (solvers.AdaOAM, "delta", [0]),
    (solvers.SPAM, "eta0", [-1.0]),
    (solvers.SPAM, "reg", [-1.0]),
    (solvers.SPAM, "l1_reg", [-1.0]),
    (partial(solvers.CuttingPlane, "pauc"), "beta", NO_SHARES),
    (partial(solvers.ProjectedSubgradient, "pauc"), "beta", NO_SHARES),
    (partial(solvers.OnePMB, "pauc"), "beta", NO_SHARES),
    (partial(solvers.TwoPMB, "pauc"), "beta", NO_SHARES),
]


def values_out_of_range():
    for make, parameter, values in OUT_OF_RANGE:
        name = type(make()).__name__
        for value in values:
            yield pytest.param(make, parameter, value, id=f"{name}-{parameter}={value}")


@pytest.mark.parametrize(("make", "parameter", "value"), [*values_out_of_range()])
def test_a_parameter_out_of_range_is_named(make, parameter, value):
    solver = make(**{parameter: value})
    with raises(ValueError, f"'{parameter}'"):
        solver.fit(*laws.problem())


def leaves(cls):
    """Yield the classes below a class that have no subclass."""
    subclasses = cls.__subclasses__()
    if not subclasses:
        yield cls
    for subclass in subclasses:
        yield from leaves(subclass)


def test_every_solver_is_registered():
    own = {c for c in leaves(solvers.Ranker) if c.__module__.startswith("precbench.")}
    built_in = {
        type(make()) for name, make in SOLVERS.items() if not SOLVERS.package(name)
    }
    assert own == built_in


def _soon_done(solver):
    """Set few trees or steps, and few batches where each is a problem to solve."""
    if isinstance(solver, solvers.FTRL):
        return solver.set_params(batch_size=10)
    if isinstance(solver, solvers.ProjectedSubgradient):
        return solver.set_params(max_iter=50)
    if isinstance(solver, solvers.LinearRanker):
        return solver
    few = {name: n for name, n in laws.FEW_TREES.items() if name in solver.get_params()}
    return solver.set_params(**few)


LABELS_BY_ORDER = "y.flat[0]" in inspect.getsource(
    estimator_checks._enforce_estimator_tags_y
)


def excused(solver):
    """Return why checks of scikit-learn fail, by their names.

    They fail for its own LinearSVC as well, or for all solvers with weights.
    """
    if isinstance(solver, solvers.LinearSVMRanker):
        reason = "LIBLINEAR stops by the number of rows, repeated or not"
    elif isinstance(solver, WeightedRanker) and LABELS_BY_ORDER:
        reason = (
            "of two classes it gives the shuffled rows other labels, in"
            " scikit-learn 1.6"
        )
    else:
        return {}
    return {
        "check_sample_weight_equivalence_on_dense_data": reason,
        "check_sample_weight_equivalence_on_sparse_data": reason,
    }


@pytest.mark.promise("R10")
@pytest.mark.filterwarnings("ignore:the risk has no minimiser")
@pytest.mark.parametrize("name", [*SOLVERS, "1pmb-f1", "2pmb-pauc", "ftrl-pauc"])
def test_scikit_learn_compatible(name, figure):
    solver = _soon_done(MEMBERS[name]())
    checks = check_estimator(
        solver, expected_failed_checks=excused(solver), on_skip=None
    )
    for check in checks:
        assert (check["status"] == "xfail") == check["expected_to_fail"], check
    n_passed = sum(check["status"] == "passed" for check in checks)
    figure(f"{n_passed} checks of scikit-learn")


# Why a member is not subject to a law.
EXCEPTIONS = {
    laws.separable_rows_are_ranked_without_mistake: {
        "lightgbm-lambdarank": "k = n_pos: 0.99",
        "catboost": "k = n_pos, 100 trees: 0.98",
        "no-skill": "it has no skill",
        "adaoam-ball": "the ball is small",
    },
    laws.an_overflow_is_reported: {
        "random-forest": "its library takes float32 and says so",
        "random-forest-undersampled": "as random-forest",
        "extra-trees": "its library takes float32 and says so",
        "ensemble": "extra-trees take float32 and say so",
        "xgboost": "its library takes float32, and we say so",
        "xgboost-ndcg": "its library takes float32, and we say so",
        "catboost": "its library takes float32, and we say so",
    },
    laws.rows_of_zeros_give_equal_scores: {
        "mlp": "unused features keep their first weights",
    },
    laws.an_unshuffled_fit_is_a_chain_of_partial_fits: {
        "spam": "fit surveys all rows first",
        "spam-l1": "fit surveys all rows first",
    },
}


# the promise that a law keeps
KEEPING = {
    laws.dense_equals_sparse: "R9",
    laws.float32_gives_the_bits_of_its_values_as_float64: "R9",
    laws.a_refused_fit_leaves_no_weights_for_its_rows: "R11",
    laws.a_sparse_matrix_of_no_valid_form_is_refused: "R11",
}


# laws, and the members that are subject to them
SUBJECTS = [
    (laws.SOLVER_LAWS, MEMBERS),
    (laws.LINEAR_LAWS, LINEAR),
    (laws.INCREMENTAL_LAWS, INCREMENTAL),
    ([laws.several_learn_together_as_each_alone], IN_PASSES),
    ([laws.several_learn_together_from_pieces], sorted({*IN_PASSES} & {*INCREMENTAL})),
]


def cases():
    """Give each law each member that is subject to it, but for the exceptions."""
    for law_list, names in SUBJECTS:
        for law, name in itertools.product(law_list, names):
            if name in EXCEPTIONS.get(law, {}):
                continue
            marks = []
            if law in KEEPING:
                marks.append(pytest.mark.promise(KEEPING[law]))
            if name == "xgboost-ndcg":
                marks.append(pytest.mark.extras("xgboost"))
            yield pytest.param(law, name, marks=marks, id=f"{name}-{law.__name__}")


@pytest.mark.parametrize(("law", "name"), [*cases()])
def test_every_solver_obeys_the_laws(law, name):
    law(partial(laws.quick, MEMBERS[name]))
