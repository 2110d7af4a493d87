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
    """Stack one member of each kind, with weights and of trees, and divide the rows
    once.

    All members are solvers, to which the laws apply for themselves.
    """
    every = solvers.Ensemble._recipes
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            solvers.Ensemble, "_recipes", lambda *of: [[*every(*of)][i] for i in (1, 3)]
        )
        patch.setattr("precbench.solvers.others.ensemble._MOST_DIVISIONS", 1)
        yield


ON_PAUC = [
    partial(getattr(solvers, name), "pauc")
    for name in ("CuttingPlane", "ProjectedSubgradient", "OnePMB", "TwoPMB")
]
OUT_OF_RANGE = [
    *((solvers.BBR, {"radius": value}) for value in (0, math.nan, "1")),
    *(
        (solvers.LCBR, param)
        for param in ({"radius": 0}, {"n_pairs": 0}, {"n_pairs": -2.5})
    ),
    *(
        (solvers.OAM, param)
        for param in ({"C": 0}, {"reservoir_size": 2.5}, {"update": "other"})
    ),
    *((solvers.PGD, param) for param in ({"eta0": 0}, {"power_t": 1.5}, {"epochs": 0})),
    *((solvers.AdaOAM, {name: 0}) for name in ("eta0", "reg", "delta")),
    *((solvers.SPAM, {name: -1.0}) for name in ("eta0", "reg", "l1_reg")),
    *((make, {"beta": beta}) for make in ON_PAUC for beta in (0, 1.1, math.nan, "0.1")),
]


@pytest.mark.parametrize(("make", "param"), OUT_OF_RANGE)
def test_a_parameter_out_of_range_is_named(make, param):
    with raises(ValueError, f"'{next(iter(param))}'"):
        make(**param).fit(*laws.problem())


def leaves(cls):
    below = cls.__subclasses__()
    return [leaf for sub in below for leaf in leaves(sub)] if below else [cls]


def test_every_solver_is_registered():
    own = {c for c in leaves(solvers.Ranker) if c.__module__.startswith("precbench.")}
    built_in = (
        solver() for name, solver in SOLVERS.items() if not SOLVERS.package(name)
    )
    assert own == set(map(type, built_in))


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
    """Return the checks of scikit-learn that fail, as they do for its own LinearSVC, or
    for all.
    """
    reason = ""
    if isinstance(solver, solvers.LinearSVMRanker):
        reason = "LIBLINEAR stops by the number of rows, repeated or not"
    elif isinstance(solver, WeightedRanker) and LABELS_BY_ORDER:
        reason = (
            "of two classes it gives the shuffled rows other labels, in"
            " scikit-learn 1.6"
        )
    names = ("dense", "sparse") if reason else ()
    return {f"check_sample_weight_equivalence_on_{name}_data": reason for name in names}


@pytest.mark.promise("R10")
@pytest.mark.filterwarnings("ignore:the risk has no minimiser")
@pytest.mark.parametrize("name", [*SOLVERS, "1pmb-f1", "2pmb-pauc", "ftrl-pauc"])
def test_scikit_learn_compatible(name, figure):
    solver = _soon_done(MEMBERS[name]())
    found = check_estimator(
        solver, expected_failed_checks=excused(solver), on_skip=None
    )
    assert all(
        (check["status"] == "xfail") == check["expected_to_fail"] for check in found
    )
    figure(
        f"{sum(check['status'] == 'passed' for check in found)} checks of scikit-learn"
    )


EXCEPTIONS = {
    (
        "lightgbm-lambdarank",
        laws.separable_rows_are_ranked_without_mistake,
    ): "k = n_pos: 0.99",
    (
        "random-forest",
        laws.an_overflow_is_reported,
    ): "its library takes float32 and says so",
    (
        "extra-trees",
        laws.an_overflow_is_reported,
    ): "its library takes float32 and says so",
    ("ensemble", laws.an_overflow_is_reported): "extra-trees take float32 and say so",
    ("random-forest-undersampled", laws.an_overflow_is_reported): "as random-forest",
    **{
        (name, laws.an_overflow_is_reported): "its library takes float32, and we say so"
        for name in ("xgboost", "xgboost-ndcg", "catboost")
    },
    (
        "catboost",
        laws.separable_rows_are_ranked_without_mistake,
    ): "k = n_pos, 100 trees: 0.98",
    (
        "mlp",
        laws.rows_of_zeros_give_equal_scores,
    ): "unused features keep their first weights",
    ("no-skill", laws.separable_rows_are_ranked_without_mistake): "it has no skill",
    (
        "adaoam-ball",
        laws.separable_rows_are_ranked_without_mistake,
    ): "the ball is small",
    (
        "spam",
        laws.an_unshuffled_fit_is_a_chain_of_partial_fits,
    ): "fit surveys all rows first",
    (
        "spam-l1",
        laws.an_unshuffled_fit_is_a_chain_of_partial_fits,
    ): "fit surveys all rows first",
}


KEEPING = {
    laws.dense_equals_sparse: "R9",
    laws.float32_gives_the_bits_of_its_values_as_float64: "R9",
    laws.a_refused_fit_leaves_no_weights_for_its_rows: "R11",
    laws.a_sparse_matrix_of_no_valid_form_is_refused: "R11",
}


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
            if (name, law) not in EXCEPTIONS:
                marks = [pytest.mark.promise(KEEPING[law])] if law in KEEPING else []
                if name == "xgboost-ndcg":
                    marks.append(pytest.mark.extras("xgboost"))
                yield pytest.param(law, name, marks=marks, id=f"{name}-{law.__name__}")


@pytest.mark.parametrize(("law", "name"), [*cases()])
def test_every_solver_obeys_the_laws(law, name):
    law(partial(laws.quick, MEMBERS[name]))
