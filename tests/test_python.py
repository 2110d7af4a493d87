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
    """What takes long is imported when it is used.

    Scikit-learn by the classes of solvers.
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
    done = subprocess.run(
        [sys.executable, "-c", program], check=True, stdout=-1, text=True
    )
    assert done.stdout.splitlines() == [" ".join(SOLVERS), "", "pandas"]


@pytest.mark.parametrize("name", PRESETS)
def test_a_preset_is_its_class_with_other_defaults(name):
    preset = SOLVERS[name]
    defaults = {n: p.default for n, p in inspect.signature(preset).parameters.items()}
    assert preset().get_params() == defaults and preset.__doc__ == preset.func.__doc__
    assert repr(pickle.loads(pickle.dumps(preset))()) == repr(preset())
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


@pytest.mark.parametrize("name", FACTORIES)
def test_predict_marks_the_top_of_the_training_rows(name):
    X, y = problem()
    solver = fitted(FACTORIES[name], X, y)
    marked = solver.predict(X) == "hit"
    assert_array_equal(marked, solver.decision_function(X) > 0)
    if name == "ensemble" or (
        isinstance(solver, ScoringClassifier) and not solver.ranks_lists
    ):
        assert not hasattr(solver, "threshold_")
        return
    scores = solver._scores(X)
    k = (
        25
        if solver.get_params().get("k") == 0.25 and name not in ("psg", "1pmb-auc")
        else 100
    )
    assert marked.sum() == (scores > np.sort(scores)[-k - 1]).sum() > 0
    assert marked.sum() == k or name in ("rankboost", "lightgbm-lambdarank")
    assert 0.5 * k < (solver.predict(problem(seed=1)[0]) == "hit").sum() < 2 * k


@pytest.mark.parametrize(
    ("k", "expected"), [(7, 7), ("2 %", 20), (0.3, 30), (1000, 1000), (2000, 1000)]
)
def test_predict_marks_k_rows_for_each_kind_of_k(k, expected):
    X, y = problem()
    assert (fitted(SGDAtK, X, y, k=k).predict(X) == "hit").sum() == expected


@pytest.mark.parametrize("scale", [1e-290, 1e290])
@pytest.mark.parametrize(
    ("scores", "count", "cut"),
    [
        ([3, 1, 2, 2], 1, 2.5),
        ([3, 1, 2, 2], 2, 2.5),
        ([3, 1, 2, 2 + 1e-14, 2 - 1e-14], 2, 2.5),  # ties, but for rounding
        ([3, 1, 2, 2], 3, 1.5),
        ([-1, 1, 0], 1, 0.5),
        ([0, 1e-8], 1, 0.5e-8),
    ],
)
def test_a_cut_lies_midway(scores, count, cut, scale):
    assert_allclose(
        cut_below(scale * np.array(scores, dtype=float), count), scale * cut
    )


@pytest.mark.parametrize(
    ("scores", "count", "above"),
    [
        ([2.0] * 3, 2, 0),
        ([0.0] * 3, 2, 0),
        ([3.0, -1.0], 2, 2),
        ([0.0, 5.0], 9, 2),
        ([5.0], 0, 0),
    ],
)
def test_a_cut_beside_all_rows_keeps_its_distance(scores, count, above):
    scores = np.array(scores)
    for other_digits in (1, 1 - 1e-12, 1 + 1e-12):
        assert (
            np.count_nonzero(scores * other_digits > cut_below(scores, count)) == above
        )


def test_rows_tied_at_the_cut_are_out():
    X, y = problem()
    assert set(fitted(PNormPush, np.zeros_like(X), y).predict(np.zeros_like(X))) == {
        "a miss"
    }


INCREMENTAL = [name for name in FACTORIES if hasattr(FACTORIES[name](), "partial_fit")]


@pytest.mark.parametrize("name", INCREMENTAL)
def test_further_rows_leave_no_threshold(name):
    X, y = problem()
    solver = fitted(FACTORIES[name], X, y)
    assert hasattr(solver, "threshold_") and not hasattr(
        solver.partial_fit(X, y), "threshold_"
    )


def test_only_an_untraced_fit_has_a_threshold():
    X, y = problem()
    solver = fitted(SGDAtK, X, y)
    assert_allclose(
        solver.decision_function(X), X @ solver.coef_ - solver.threshold_, atol=1e-12
    )
    for learn in (
        lambda: clone(solver).fit(X, y).fit(X, y, trace=untraced),
        lambda: (
            OnePMB("auc", random_state=0).fit(X, y).set_params(objective="f1").fit(X, y)
        ),
    ):
        assert not hasattr(learn(), "threshold_")
    traced = clone(solver).fit(X, y, trace=untraced)
    assert_allclose(traced.decision_function(X), X @ traced.coef_, atol=1e-12)


@pytest.mark.parametrize(
    ("factory", "k"),
    [
        (partial(SGDAtK, k=30), 30),
        (partial(SGDAtK, k="2 %"), "2 %"),
        (SGDAtK, 0.25),
        (PNormPush, 1.0),
        (partial(OnePMB, "auc"), 1.0),
        (HistGradientBoosting, 1.0),
    ],
)
def test_score_is_precision_at_k(factory, k):
    X, y = problem()
    solver = fitted(factory, X, y)
    assert solver.score(X, y) == precision_at_k(y, solver.decision_function(X), k)


def test_a_search_chooses_by_the_top_of_the_list():
    X, y = problem()
    for k in (20, 0.3, "2 %"):
        scorer = precbench.precision_at_k_scorer(k)
        assert repr(pickle.loads(pickle.dumps(scorer))) == repr(scorer)
        pipeline = make_pipeline(StandardScaler(), SGDAtK(epochs=3, random_state=0))
        values = cross_val_score(pipeline, X, y, scoring=scorer, cv=3)
        folds = StratifiedKFold(3).split(X, y)
        by_hand = [
            precision_at_k(
                y[test],
                clone(pipeline).fit(X[train], y[train]).decision_function(X[test]),
                k,
            )
            for train, test in folds
        ]
        assert_allclose(values, by_hand)
    grid = {"eta0": [0.01, 1.0]}
    search = GridSearchCV(
        SGDAtK(epochs=2, random_state=0), grid, scoring=clone(scorer, safe=False)
    )
    assert search.fit(X, y).best_params_["eta0"] in grid["eta0"]
    assert search.score(X, y) == scorer(search.best_estimator_, X, y)
    forest = RandomForestClassifier(5, random_state=0).fit(X, y)
    assert scorer(forest, X, y) == precision_at_k(y, forest.predict_proba(X)[:, 1], k)
    with raises(InputError, "k 1.5"):
        precbench.precision_at_k_scorer(1.5)


@pytest.mark.parametrize(
    ("solver", "method", "instead"),
    [
        (SGDAtK(), "fit", ""),
        (SGDAtK(), "partial_fit", ""),
        (RandomForest(), "fit", "class_weight"),
        (ranker_of(KNeighborsClassifier)(), "fit", ""),
        (PNormPush(), "score", ""),
        (LightGBM(), "score", "class_weight"),
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


def weighted_problem():
    """Return rows, labels and whole weights, some of them 0."""
    X, y = problem(120, 0.3)
    return X, y, np.random.default_rng(0).integers(0, 4, 120)


@pytest.mark.parametrize("name", ["hist-gradient-boosting", "lightgbm"])
def test_classes_of_any_name_may_have_weights(name):
    X, y = problem(120, 0.3)
    equal, heavy = (
        fitted(FACTORIES[name], X, y, class_weight={"hit": weight, "a miss": 1.0})
        for weight in (1.0, 50.0)
    )
    assert_array_equal(
        equal.decision_function(X), fitted(FACTORIES[name], X, y)._scores(X)
    )
    assert heavy.decision_function(X).mean() > equal.decision_function(X).mean()


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
    one, other = (clone(FACTORIES[name]()).set_params(**params) for _ in range(2))
    one.fit(layout(X), y, sample_weight=weights)
    other.fit(layout(np.repeat(X, weights, axis=0)), np.repeat(y, weights))
    scores = other.decision_function(X)
    assert_allclose(one.decision_function(X), scores, atol=2e-5 * np.abs(scores).max())


@pytest.mark.parametrize(
    ("change", "what"),
    [
        (lambda w, y: np.where(np.arange(120) == 4, -1.0, w), "-1 5"),
        (lambda w, y: w * (y == "hit"), "0"),
        (lambda w, y: w[1:], "sample_weight.shape 119"),
        (lambda w, y: w * 1e200, "sample_weight 1e+12 mean"),
        (lambda w, y: w * 1e-200, "sample_weight 1e-12 mean"),
        (lambda w, y: w * np.nan, ""),
    ],
)
def test_invalid_weights_are_refused(change, what):
    X, y, weights = weighted_problem()
    solver = LogisticRegressionRanker()
    with raises(ValueError, what):
        solver.fit(X, y, sample_weight=change(weights.astype(float), y))
    assert not vars(solver).keys() & {"_sample_weight", "_weights", "coef_"}


@pytest.mark.parametrize("weight", [1e200, 1e-200, -1.0, math.nan, "2"])
def test_weights_of_classes_have_bounds_and_so_has_c(weight):
    """Beyond them liblinear does not end."""
    X, y, _ = weighted_problem()
    with raises(InputError, f"class_weight {weight!r} 1e-12 1e+12"):
        LinearSVMRanker(class_weight={"hit": weight}).fit(X, y)
    with raises(ValueError, f"'C' [1e-30, 1e+30] {weight!r}"):
        LinearSVMRanker(C=weight).fit(X, y)
