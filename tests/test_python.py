"""precbench from Python.

What it exports, and what its solvers say and do as scikit-learn's.
"""

import inspect
import math
import pickle
import subprocess
import sys
import warnings
from functools import partial
from typing import NamedTuple

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.sparse import csr_matrix
from sklearn.base import clone
from sklearn.ensemble import RandomForestClassifier
from sklearn.model_selection import GridSearchCV, StratifiedKFold, cross_val_score
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.validation import has_fit_parameter

import precbench
from precbench import (
    SOLVERS,
    HistGradientBoosting,
    LightGBM,
    LinearSVMRanker,
    LogisticRegressionRanker,
    OnePMB,
    PNormPush,
    RandomForest,
    SGDAtK,
)
from precbench.core.errors import InputError
from precbench.ranking.metrics import precision_at_k
from precbench.ranking.topk import cut_below
from precbench.solvers import ScoringClassifier
from precbench.solvers.common.base import untraced
from precbench.solvers.others.wrapper import ranker_of
from tests import laws
from tests.sentences import raises

PRESETS = [name for name in SOLVERS.built_in if isinstance(SOLVERS[name], partial)]


def test_every_class_of_solvers_is_exported():
    classes = {type(SOLVERS[name]()) for name in SOLVERS.built_in}
    assert {getattr(precbench, cls.__name__) for cls in classes} == classes
    assert {cls.__name__ for cls in classes} < set(dir(precbench))


def test_imports_are_cheap():
    """What takes long is imported when it is used: scikit-learn by classes of solvers.

    The program prints a line of what each step has imported.
    """
    heavy = (
        "{'joblib', 'matplotlib', 'pandas', 'scipy.optimize', 'scipy.stats', 'sklearn'}"
    )
    program = f"""
import sys, precbench
assert not {{'numpy', 'scipy'}} & set(sys.modules)
import precbench.cli, precbench.runner, precbench.solvers
print(*precbench.SOLVERS, *{heavy} & set(sys.modules))
import precbench.cli.run
print(*{heavy} & set(sys.modules))
import precbench.report.folder, precbench.claims
print(*{heavy} & set(sys.modules))
"""
    result = subprocess.run(
        [sys.executable, "-c", program], check=True, stdout=subprocess.PIPE, text=True
    )
    of_solvers, of_run, of_report = result.stdout.splitlines()
    assert of_solvers == " ".join(SOLVERS)
    assert of_run == ""
    assert of_report == "pandas"


@pytest.mark.parametrize("name", PRESETS)
def test_a_preset_is_its_class_with_other_defaults(name):
    preset = SOLVERS[name]
    parameters = inspect.signature(preset).parameters
    defaults = {key: parameter.default for key, parameter in parameters.items()}
    assert preset().get_params() == defaults
    assert preset.__doc__ == preset.func.__doc__
    unpickled = pickle.loads(pickle.dumps(preset))
    assert repr(unpickled()) == repr(preset())
    with raises(TypeError):
        preset(colour=1)


def problem(n=1000, share=0.1, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, 4))
    scores = X @ [1.0, -1.0, 0.5, 0.0] + rng.standard_normal(n)
    return X, np.where(scores > np.quantile(scores, 1 - share), "hit", "a miss")


FACTORIES = {name: SOLVERS[name] for name in SOLVERS.built_in}
FACTORIES["1pmb-auc"] = partial(OnePMB, "auc")


def fitted(factory, X, y, **params):
    solver = laws.quick(factory, **params)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return solver.fit(X, y)


def marks_by_probability(name):
    """Return whether a solver marks rows that are more likely hits than not."""
    solver = FACTORIES[name]()
    is_classifier = isinstance(solver, ScoringClassifier) and not solver.ranks_lists
    return name == "ensemble" or is_classifier


BY_PROBABILITY = [name for name in FACTORIES if marks_by_probability(name)]
BY_TOP = [name for name in FACTORIES if not marks_by_probability(name)]


@pytest.mark.parametrize("name", BY_PROBABILITY)
def test_a_score_of_a_classifier_needs_no_threshold(name):
    X, y = problem()
    solver = fitted(FACTORIES[name], X, y)
    assert_array_equal(solver.predict(X) == "hit", solver.decision_function(X) > 0)
    assert not hasattr(solver, "threshold_")


@pytest.mark.parametrize("name", BY_TOP)
def test_predict_marks_the_top_of_the_training_rows(name):
    X, y = problem()
    solver = fitted(FACTORIES[name], X, y)
    marked = solver.predict(X) == "hit"
    assert_array_equal(marked, solver.decision_function(X) > 0)
    has_own_k = solver.get_params().get("k") == 0.25 and name not in ("psg", "1pmb-auc")
    k = 25 if has_own_k else 100  # of 100 positives
    scores = solver._scores(X)
    first_score_below = np.sort(scores)[-k - 1]
    assert marked.any()
    assert marked.sum() == (scores > first_score_below).sum()
    if name not in ("rankboost", "lightgbm-lambdarank"):  # whose scores may tie there
        assert marked.sum() == k
    new_rows, _labels = problem(seed=1)
    n_marked_new = (solver.predict(new_rows) == "hit").sum()
    assert 0.5 * k < n_marked_new < 2 * k


@pytest.mark.parametrize(
    ("k", "n_marked"),
    [
        pytest.param(7, 7, id="count"),
        pytest.param("2 %", 20, id="share of the rows"),
        pytest.param(0.3, 30, id="share of the positives"),
        pytest.param(1000, 1000, id="all rows"),
        pytest.param(2000, 1000, id="more than all rows"),
    ],
)
def test_predict_marks_k_rows_for_each_kind_of_k(k, n_marked):
    X, y = problem()
    marked = fitted(SGDAtK, X, y, k=k).predict(X) == "hit"
    assert marked.sum() == n_marked


@pytest.mark.parametrize("scale", [1e-290, 1e290])
@pytest.mark.parametrize(
    ("scores", "count", "cut"),
    [
        pytest.param([3, 1, 2, 2], 1, 2.5, id="below the first"),
        pytest.param([3, 1, 2, 2], 2, 2.5, id="above ties"),
        pytest.param([3, 1, 2, 2 + 1e-14, 2 - 1e-14], 2, 2.5, id="above near ties"),
        pytest.param([3, 1, 2, 2], 3, 1.5, id="below ties"),
        pytest.param([-1, 1, 0], 1, 0.5, id="scores of both signs"),
        pytest.param([0, 1e-8], 1, 0.5e-8, id="a small difference is no tie"),
    ],
)
def test_a_cut_lies_midway(scores, count, cut, scale):
    scaled = scale * np.array(scores, dtype=float)
    assert_allclose(cut_below(scaled, count), scale * cut)


@pytest.mark.parametrize("factor", [1, 1 - 1e-12, 1 + 1e-12])
@pytest.mark.parametrize(
    ("scores", "count", "n_above"),
    [
        pytest.param([2.0] * 3, 2, 0, id="all tied"),
        pytest.param([0.0] * 3, 2, 0, id="all tied at 0"),
        pytest.param([3.0, -1.0], 2, 2, id="all in the top"),
        pytest.param([0.0, 5.0], 9, 2, id="fewer than the top"),
        pytest.param([5.0], 0, 0, id="an empty top"),
    ],
)
def test_a_cut_beside_all_rows_keeps_its_distance(scores, count, n_above, factor):
    """So that other last digits of scores decide nothing."""
    cut = cut_below(np.array(scores), count)
    assert np.count_nonzero(np.array(scores) * factor > cut) == n_above


def test_rows_tied_at_the_cut_are_out():
    X, y = problem()
    zeros = np.zeros_like(X)
    assert set(fitted(PNormPush, zeros, y).predict(zeros)) == {"a miss"}


INCREMENTAL = [name for name in FACTORIES if hasattr(FACTORIES[name](), "partial_fit")]


@pytest.mark.parametrize("name", INCREMENTAL)
def test_further_rows_leave_no_threshold(name):
    X, y = problem()
    solver = fitted(FACTORIES[name], X, y)
    assert hasattr(solver, "threshold_")
    solver.partial_fit(X, y)
    assert not hasattr(solver, "threshold_")


def test_scores_lie_about_the_threshold():
    X, y = problem()
    solver = fitted(SGDAtK, X, y)
    expected = X @ solver.coef_ - solver.threshold_
    assert_allclose(solver.decision_function(X), expected, atol=1e-12)


def test_a_traced_fit_has_no_threshold():
    X, y = problem()
    solver = fitted(SGDAtK, X, y)
    solver.fit(X, y, trace=untraced)
    assert not hasattr(solver, "threshold_")


def test_scores_of_a_traced_fit_have_no_threshold():
    X, y = problem()
    traced = clone(fitted(SGDAtK, X, y)).fit(X, y, trace=untraced)
    assert_allclose(traced.decision_function(X), X @ traced.coef_, atol=1e-12)


def test_the_objective_f1_has_no_threshold():
    X, y = problem()
    solver = OnePMB("auc", random_state=0).fit(X, y)
    solver.set_params(objective="f1").fit(X, y)
    assert not hasattr(solver, "threshold_")


@pytest.mark.parametrize(
    ("factory", "k"),
    [
        pytest.param(partial(SGDAtK, k=30), 30, id="count"),
        pytest.param(partial(SGDAtK, k="2 %"), "2 %", id="share of the rows"),
        pytest.param(SGDAtK, 0.25, id="default of the solver"),
        pytest.param(PNormPush, 1.0, id="solver without k"),
        pytest.param(partial(OnePMB, "auc"), 1.0, id="objective without k"),
        pytest.param(HistGradientBoosting, 1.0, id="classifier"),
    ],
)
def test_score_is_precision_at_k(factory, k):
    X, y = problem()
    solver = fitted(factory, X, y)
    assert solver.score(X, y) == precision_at_k(y, solver.decision_function(X), k)


@pytest.mark.parametrize("k", [20, 0.3, "2 %"])
def test_cross_validation_measures_the_top_of_held_out_lists(k):
    X, y = problem()
    pipeline = make_pipeline(StandardScaler(), SGDAtK(epochs=3, random_state=0))
    scorer = precbench.precision_at_k_scorer(k)
    values = cross_val_score(pipeline, X, y, scoring=scorer, cv=3)
    by_hand = []
    for train, test in StratifiedKFold(3).split(X, y):
        ranker = clone(pipeline).fit(X[train], y[train])
        by_hand.append(precision_at_k(y[test], ranker.decision_function(X[test]), k))
    assert_allclose(values, by_hand)


@pytest.mark.parametrize("k", [20, 0.3, "2 %"])
def test_a_scorer_may_be_pickled(k):
    scorer = precbench.precision_at_k_scorer(k)
    assert repr(pickle.loads(pickle.dumps(scorer))) == repr(scorer)


def test_a_search_chooses_by_the_top_of_the_list():
    X, y = problem()
    scorer = precbench.precision_at_k_scorer("2 %")
    grid = {"eta0": [0.01, 1.0]}
    search = GridSearchCV(
        SGDAtK(epochs=2, random_state=0), grid, scoring=clone(scorer, safe=False)
    )
    assert search.fit(X, y).best_params_["eta0"] in grid["eta0"]
    assert search.score(X, y) == scorer(search.best_estimator_, X, y)


def test_a_scorer_ranks_by_probabilities_where_there_are_no_scores():
    X, y = problem()
    forest = RandomForestClassifier(5, random_state=0).fit(X, y)
    precision = precbench.precision_at_k_scorer("2 %")(forest, X, y)
    assert precision == precision_at_k(y, forest.predict_proba(X)[:, 1], "2 %")


def test_a_scorer_of_no_k_is_refused():
    with raises(InputError, "k 1.5"):
        precbench.precision_at_k_scorer(1.5)


@pytest.mark.parametrize(
    ("solver", "method", "instead"),
    [
        pytest.param(SGDAtK(), "fit", "", id="SGD@k"),
        pytest.param(SGDAtK(), "partial_fit", "", id="SGD@k, partial_fit"),
        pytest.param(RandomForest(), "fit", "class_weight", id="forest"),
        pytest.param(ranker_of(KNeighborsClassifier)(), "fit", "", id="neighbours"),
        pytest.param(PNormPush(), "score", "", id="P-Norm Push, score"),
        pytest.param(LightGBM(), "score", "class_weight", id="LightGBM, score"),
    ],
)
def test_weights_of_rows_are_refused_with_the_reason(solver, method, instead):
    X, y = problem()
    with raises(InputError, f"sample_weight {instead}"):
        getattr(solver, method)(X, y, sample_weight=np.ones(len(y)))
    assert method == "score" or not has_fit_parameter(solver, "sample_weight")


WEIGHTED = [
    name for name in FACTORIES if has_fit_parameter(FACTORIES[name](), "sample_weight")
]


class WeightedRows(NamedTuple):
    X: np.ndarray
    y: np.ndarray
    weights: np.ndarray  # whole numbers, some of them 0


def weighted_problem():
    X, y = problem(120, 0.3)
    return WeightedRows(X, y, np.random.default_rng(0).integers(0, 4, 120))


@pytest.mark.parametrize("name", ["hist-gradient-boosting", "lightgbm"])
def test_classes_of_any_name_may_have_weights(name):
    X, y = problem(120, 0.3)

    def scores(**class_weight):
        return fitted(FACTORIES[name], X, y, **class_weight).decision_function(X)

    scores_of_equal = scores(class_weight={"hit": 1.0, "a miss": 1.0})
    scores_of_heavy = scores(class_weight={"hit": 50.0, "a miss": 1.0})
    without_weights = fitted(FACTORIES[name], X, y)
    assert_array_equal(scores_of_equal, without_weights._scores(X))
    assert scores_of_heavy.mean() > scores_of_equal.mean()


def test_weights_are_taken_where_a_loss_is_a_sum():
    trees = {"hist-gradient-boosting", "lightgbm"}
    assert set(WEIGHTED) == {"logistic-regression", "linear-svm"} | trees


@pytest.mark.parametrize(
    "class_weight", [None, "balanced", {"hit": 3.0, "a miss": 0.5}]
)
@pytest.mark.parametrize("layout", [np.asarray, csr_matrix])
@pytest.mark.parametrize("name", [name for name in WEIGHTED if name != "lightgbm"])
def test_a_whole_weight_is_that_many_rows(name, layout, class_weight):
    """Of LightGBM not even without a smallest leaf: it counts rows for its bins."""
    X, y, weights = weighted_problem()
    params = {"class_weight": class_weight, "tol": 1e-9, "max_iter": 10_000}
    if "tol" not in FACTORIES[name]().get_params():
        params = {"class_weight": class_weight, "min_samples_leaf": 1, "max_iter": 10}
    weighted = clone(FACTORIES[name]()).set_params(**params)
    repeated = clone(FACTORIES[name]()).set_params(**params)
    weighted.fit(layout(X), y, sample_weight=weights)
    repeated.fit(layout(np.repeat(X, weights, axis=0)), np.repeat(y, weights))
    expected = repeated.decision_function(X)
    tolerance = 2e-5 * np.abs(expected).max()
    assert_allclose(weighted.decision_function(X), expected, atol=tolerance)


@pytest.mark.parametrize(
    ("change", "places"),
    [
        pytest.param(
            lambda weights, y: np.where(np.arange(120) == 4, -1.0, weights),
            "-1 5",
            id="a negative weight",
        ),
        pytest.param(
            lambda weights, y: weights * (y == "hit"), "0", id="a class without weight"
        ),
        pytest.param(
            lambda weights, y: weights[1:], "sample_weight.shape 119", id="too few"
        ),
        pytest.param(
            lambda weights, y: weights * 1e200,
            "sample_weight 1e+12 mean",
            id="too large",
        ),
        pytest.param(
            lambda weights, y: weights * 1e-200,
            "sample_weight 1e-12 mean",
            id="too small",
        ),
        pytest.param(lambda weights, y: weights * np.nan, "", id="NaN"),
    ],
)
def test_invalid_weights_are_refused(change, places):
    X, y, weights = weighted_problem()
    solver = LogisticRegressionRanker()
    with raises(ValueError, places):
        solver.fit(X, y, sample_weight=change(weights.astype(float), y))
    assert not vars(solver).keys() & {"_sample_weight", "_weights", "coef_"}


BEYOND_BOUNDS = [1e200, 1e-200, -1.0, math.nan, "2"]  # there liblinear does not end


@pytest.mark.parametrize("weight", BEYOND_BOUNDS)
def test_weights_of_classes_have_bounds(weight):
    X, y = problem(120, 0.3)
    with raises(InputError, f"class_weight {weight!r} 1e-12 1e+12"):
        LinearSVMRanker(class_weight={"hit": weight}).fit(X, y)


@pytest.mark.parametrize("C", BEYOND_BOUNDS)
def test_the_parameter_c_of_liblinear_has_bounds(C):
    X, y = problem(120, 0.3)
    with raises(ValueError, f"'C' [1e-30, 1e+30] {C!r}"):
        LinearSVMRanker(C=C).fit(X, y)
