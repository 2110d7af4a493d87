"""Contestants without weights.

Trees, classifiers of other libraries, and their stored scores.
"""

import re
import sys
from functools import partial
from importlib import import_module

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from scipy.special import logit
from sklearn.ensemble import (
    ExtraTreesClassifier,
    HistGradientBoostingClassifier,
    RandomForestClassifier,
)
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.neural_network import MLPClassifier
from sklearn.utils.class_weight import compute_sample_weight

import precbench
from precbench.core.errors import InputError, MissingPackageError
from precbench.core.source_code import code_of
from precbench.experiment import load_config
from precbench.experiment.plan import make_plan
from precbench.ranking.metrics import auc, precision_at_k
from precbench.results.store import Store
from precbench.runner import worker
from precbench.runner.worker import Job, run_job
from precbench.solvers import (
    MLP,
    SOLVERS,
    CatBoost,
    LambdaRank,
    LightGBM,
    NoSkill,
    XGBoost,
    check_solver,
)
from precbench.solvers.common.base import untraced
from precbench.solvers.others import wrapper
from precbench.solvers.others.wrapper import ranker_of
from tests.helpers import numbers, records, run, succeed
from tests.laws import problem
from tests.sentences import names, raises, tells

pytestmark = pytest.mark.usefixtures("in_this_process")

TREES = (
    "{sgd-avg: {epochs: 2}, hist-gradient-boosting: {max_iter: 6}, lightgbm:"
    " {n_estimators: 6}}"
)


def few_trees(name, n_trees):
    """Return a solver of a few trees."""
    size = "max_iter" if name == "hist-gradient-boosting" else "n_estimators"
    return SOLVERS[name](**{size: n_trees}, random_state=0)


@pytest.mark.parametrize(
    "name",
    [
        "hist-gradient-boosting",
        "lightgbm",
        "lightgbm-lambdarank",
        "random-forest",
        "extra-trees",
    ],
)
def test_the_first_trees_are_those_of_a_smaller_ensemble(name):
    X, y = problem()
    whole = few_trees(name, 12).fit(X, y)
    for n_trees in (1, 5, 12):
        smaller = few_trees(name, n_trees).fit(X, y)
        expected = smaller.scores_after(X, n_trees)
        assert_array_equal(whole.scores_after(X, n_trees), expected)
    assert not whole.scores_after(X, 0).any()
    order = np.random.default_rng(0).permutation(len(X))
    scores_in_order = whole.decision_function(X)[order]
    assert_array_equal(whole.decision_function(X[order]), scores_in_order)
    assert whole.n_iter_ == 12
    assert whole.n_rows_seen_ == 12 * len(X)


QUIET = {
    "catboost": {"verbose": False, "allow_writing_files": False, "thread_count": 1},
    "lightgbm": {"n_jobs": 1, "verbosity": -1},
    "xgboost": {"n_jobs": 1},
}


def of_library(package, name, **params):
    """Return a classifier or ranker of a package, as its own interface has it."""
    return getattr(import_module(package), name)(**QUIET[package], **params)


def lightgbm_scores(X, y, weight):
    classifier = of_library(
        "lightgbm", "LGBMClassifier", n_estimators=20, class_weight=weight
    )
    return classifier.fit(X, y).predict(X, raw_score=True)


def lambdarank_scores(X, y):
    ranker = of_library(
        "lightgbm", "LGBMRanker", n_estimators=20, lambdarank_truncation_level=50
    )
    return ranker.fit(X, y > 0, group=np.array([len(X)])).predict(X)


def xgboost_scores(X, y, weight):
    classifier = of_library(
        "xgboost",
        "XGBClassifier",
        n_estimators=20,
        tree_method="hist",
        max_leaves=5,
        grow_policy="lossguide",
        max_depth=0,
    )
    classifier.fit(X, y > 0, sample_weight=compute_sample_weight(weight, y))
    return classifier.predict(X, output_margin=True)


def xgboost_ranks(X, y, objective):
    ranker = of_library(
        "xgboost",
        "XGBRanker",
        n_estimators=20,
        min_child_weight=0.0,
        objective=objective,
        lambdarank_pair_method="topk",
        lambdarank_num_pair_per_sample=53,
    )
    return ranker.fit(X, y > 0, qid=np.zeros(len(X), int)).predict(X)


def catboost_scores(X, y, weight):
    seed = int(np.random.default_rng(7).integers(2**31))
    classifier = of_library(
        "catboost", "CatBoostClassifier", iterations=20, depth=3, random_seed=seed
    )
    classifier.fit(X, y, sample_weight=compute_sample_weight(weight, y))
    return classifier.predict(X, prediction_type="RawFormulaVal")


def forest_scores(X, y):
    forest = RandomForestClassifier(20, random_state=0).fit(X, y)
    return forest.predict_proba(X)[:, 1] - 0.5


def extra_trees_scores(X, y):
    forest = ExtraTreesClassifier(20, random_state=0).fit(X, y)
    return forest.predict_proba(X)[:, 1] - 0.5


def hist_scores(X, y):
    classifier = HistGradientBoostingClassifier(
        max_iter=20, early_stopping=False, random_state=0
    )
    return classifier.fit(X, y).decision_function(X)


def mlp_scores(X, y):
    classifier = MLPClassifier((8,), max_iter=20, random_state=0).fit(X, y)
    return logit(classifier.predict_proba(X)[:, 1])


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize(
    ("solver", "scores_of_library", "tolerance"),
    [
        pytest.param(
            few_trees("hist-gradient-boosting", 20),
            hist_scores,
            0,
            id="hist-gradient-boosting",
        ),
        pytest.param(
            few_trees("random-forest", 20), forest_scores, 0, id="random-forest"
        ),
        pytest.param(
            few_trees("extra-trees", 20), extra_trees_scores, 0, id="extra-trees"
        ),
        pytest.param(
            MLP(hidden_layer_size=8, max_iter=20, random_state=0),
            mlp_scores,
            1e-7,
            id="mlp",
        ),
        pytest.param(
            LambdaRank(k=0.25, n_estimators=20),
            lambdarank_scores,
            1e-9,
            id="lightgbm-lambdarank",
        ),
    ],
)
def test_scores_are_those_of_the_library(solver, scores_of_library, tolerance):
    X, y = problem(n=1000)
    scores = solver.fit(X, y, trace=untraced).decision_function(X)
    assert_allclose(scores, scores_of_library(X, y), rtol=0, atol=tolerance)


@pytest.mark.parametrize("objective", ["rank:ndcg", "rank:map"])
def test_ranks_are_those_of_xgboost(objective):
    pytest.importorskip("xgboost")
    X, y = problem(n=1000)
    expected = xgboost_ranks(X, y, objective)
    solver = XGBoost(objective, k=0.25, n_estimators=20, min_child_weight=0.0)
    scores = solver.fit(X, y, trace=untraced).decision_function(X)
    assert_allclose(scores, expected, rtol=0, atol=1e-6)


@pytest.mark.parametrize("weight", [None, "balanced"])
@pytest.mark.parametrize(
    ("make", "scores_of_library", "tolerance"),
    [
        pytest.param(LightGBM, lightgbm_scores, 1e-9, id="lightgbm"),
        pytest.param(
            partial(XGBoost, max_leaves=5, max_depth=0),
            xgboost_scores,
            1e-6,
            id="xgboost",
        ),
        pytest.param(
            partial(CatBoost, depth=3, random_state=7),
            catboost_scores,
            1e-9,
            id="catboost",
        ),
    ],
)
def test_scores_with_weights_of_classes_are_those_of_the_library(
    make, scores_of_library, tolerance, weight
):
    X, y = problem(n=1000)
    solver = make(n_estimators=20, class_weight=weight)
    scores = solver.fit(X, y, trace=untraced).decision_function(X)
    expected = scores_of_library(X, y, weight)
    assert_allclose(scores, expected, rtol=0, atol=tolerance)


@pytest.mark.parametrize(
    "ranker",
    [
        pytest.param(LambdaRank, id="LightGBM"),
        pytest.param(partial(XGBoost, "rank:ndcg"), id="XGBoost, NDCG"),
        pytest.param(partial(XGBoost, "rank:map"), id="XGBoost, MAP"),
    ],
)
def test_the_top_of_lists_may_be_longer_than_k(ranker):
    X, y = problem(n=1000)  # 200 positives

    def scores(**params):
        return ranker(n_estimators=20, random_state=0, **params).fit(X, y)._scores(X)

    assert_array_equal(scores(k=50, beyond_k=3), scores(k=53, beyond_k=0))
    longer = scores(k=40, beyond_k=10, list_length=500)
    assert_array_equal(longer, scores(k=60, beyond_k=0, list_length=500))
    assert np.abs(longer - scores(k=40, beyond_k=0, list_length=500)).max() > 0


@pytest.mark.parametrize(
    ("n_values", "weight"),
    [
        (1, None),
        (2, "balanced"),
        (7, None),
        (254, "balanced"),
        (255, None),
        (256, "balanced"),
    ],
)
def test_boosting_takes_no_more_bins_than_there_are_values_and_gives_the_same_scores(
    n_values, weight, monkeypatch
):
    rng = np.random.default_rng(n_values)
    columns = [rng.permutation(1200) % n for n in (1, n_values, 2)]
    X = np.column_stack(columns).astype(float)
    signal = X @ [0.0, 1.0, 0.3 * n_values]
    y = np.where(signal + rng.normal(size=1200) > 0.9 * n_values, 1, -1)
    solver = SOLVERS["hist-gradient-boosting"](max_iter=8, class_weight=weight)
    scores = solver.fit(X, y).decision_function(X)
    assert len(set(scores)) > 1
    assert solver.classifier_.max_bins == min(max(2, n_values), 255)
    solver.fit(sparse.csr_matrix(X), y)
    assert_array_equal(solver.decision_function(X), scores)
    monkeypatch.setattr(type(solver), "_suited_to", lambda *_: {})
    solver.fit(X, y)
    assert solver.classifier_.max_bins == 255
    assert_array_equal(solver.decision_function(X), scores)


def test_a_ranking_without_skill_has_the_expected_values_of_chance():
    X, y = problem()
    scores = NoSkill().fit(X, y).decision_function(X)
    share = np.mean(y > 0)
    assert auc(y, scores) == 0.5
    assert precision_at_k(y, scores, 10) == pytest.approx(share)
    assert precision_at_k(y, scores, 1.0) == precision_at_k(y, scores, 10)


def undersampled(name, n_estimators, random_state=0):
    """Return a forest whose trees see as many rows of each class."""
    return SOLVERS[name](
        n_estimators=n_estimators,
        class_weight="undersampled",
        random_state=random_state,
    )


@pytest.mark.parametrize("name", ["random-forest", "extra-trees"])
def test_an_undersampled_tree_has_as_many_rows_of_each_class(name):
    X, y = problem(n=1000, share=0.03)
    solver = undersampled(name, n_estimators=40).fit(X, y)
    trees = [tree.tree_ for tree in solver.classifier_.estimators_]
    assert {float(tree.weighted_n_node_samples[0]) for tree in trees} == {60.0}
    assert_allclose([tree.value[0, 0] for tree in trees], 0.5)
    assert np.mean([tree.n_node_samples[0] for tree in trees]) < 55  # with replacement


@pytest.mark.parametrize("name", ["random-forest", "extra-trees"])
def test_the_seed_decides_which_rows_undersampled_trees_have(name):
    X, y = problem(n=1000, share=0.03)
    larger = undersampled(name, n_estimators=40).fit(X, y)
    scores = undersampled(name, n_estimators=15).fit(X, y)._scores(X)
    other_seed = undersampled(name, n_estimators=15, random_state=1).fit(X, y)
    assert_array_equal(scores, larger.scores_after(X, 15))
    assert np.abs(other_seed._scores(X) - scores).max() > 0


@pytest.mark.parametrize(
    ("name", "params"),
    [
        ("lightgbm", {"reg_lambda": 0.1}),
        ("lightgbm-lambdarank", {"reg_lambda": 0.1}),
        ("hist-gradient-boosting", {"l2_regularization": 0.1}),
        ("xgboost", {}),
        ("xgboost", {"objective": "rank:ndcg", "min_child_weight": 0.0}),
        ("catboost", {"n_estimators": 100}),
    ],
)
def test_boosting_with_few_positives_is_better_than_chance(name, params):
    """Without a penalty leaves of tiny second derivatives make steps of any length.

    Scikit-learn's boosting has an AUC of 0.18 here.
    """
    X, y = problem(n=20_000, d=20, share=0.001)
    solver = SOLVERS[name](random_state=0, **params).fit(X[::2], y[::2])
    assert auc(y[1::2], solver.decision_function(X[1::2])) > 0.8


@pytest.mark.parametrize("name", ["xgboost", "catboost"])
def test_values_beyond_float32_are_refused_by_a_sentence(name):
    X, y = problem()
    with raises(InputError, "1e+60 float32"):
        SOLVERS[name](n_estimators=2).fit(np.where(X > 0, 1e60, X), y)


@pytest.mark.parametrize("name", ["xgboost", "catboost"])
def test_an_optional_package_that_is_missing_is_named_with_its_extra(name, monkeypatch):
    monkeypatch.setitem(sys.modules, name, None)
    X, y = problem()
    with raises(MissingPackageError, f"{name} precbench[rivals]"):
        SOLVERS[name]().fit(X, y)


@pytest.mark.extras("lightgbm")
def test_a_long_list_is_ranked_in_parts():
    X, y = problem(n=1000)

    def scores(**params):
        return LambdaRank(**params).fit(X, y).decision_function(X)

    of_whole_list = scores(random_state=0)
    of_parts = scores(random_state=0, list_length=300)
    of_other_parts = scores(random_state=1, list_length=300)
    assert_array_equal(of_parts, scores(random_state=0, list_length=300))
    assert np.abs(of_parts - of_other_parts).max() > 0
    assert auc(y, of_parts) > auc(y, of_whole_list) - 0.02


@pytest.mark.parametrize("n_jobs", [2, -1])
@pytest.mark.parametrize(
    "name",
    [name for name in SOLVERS.built_in if "n_jobs" in SOLVERS[name]().get_params()],
)
def test_the_number_of_jobs_changes_no_score(name, n_jobs):
    X, y = problem(600)
    on_one_thread = few_trees(name, 12).fit(X, y)
    on_several = few_trees(name, 12).set_params(n_jobs=n_jobs).fit(X, y)
    expected = on_one_thread.decision_function(X)
    assert_array_equal(on_several.decision_function(X), expected)


def test_n_jobs_is_a_number_of_threads():
    with raises(ValueError, "'n_jobs'"):
        SOLVERS["random-forest"](n_jobs=0).fit(*problem())


def test_n_jobs_is_no_key_of_a_config(small):
    with raises(InputError, "n_jobs"):
        load_config(small(solvers="{random-forest: {n_jobs: 2}}", common="{}"))


def test_the_code_of_a_plugged_in_classifier_is_that_of_its_library():
    package = ranker_of(GaussianNB).__module__.partition(".")[0]
    assert package == "sklearn"
    assert re.fullmatch("[0-9a-f]{12}", code_of(package))


@pytest.mark.parametrize(
    "classifier", [KNeighborsClassifier, GaussianNB, LogisticRegression]
)
def test_any_classifier_of_scikit_learn_may_rank(classifier):
    make = check_solver(classifier)
    X, y = problem()
    solver = make().fit(X, y)
    fitted = classifier().fit(X, y)
    if hasattr(fitted, "decision_function"):
        expected = fitted.decision_function(X)
    else:
        expected = fitted.predict_proba(X)[:, 1] - 0.5
    assert_array_equal(solver.decision_function(X), expected)
    assert solver.get_params() == classifier().get_params()
    assert re.search("scikit-learn|sklearn", solver.algorithm_version)
    assert check_solver(make) is make


def test_a_classifier_of_scikit_learn_keeps_its_parameters():
    make = check_solver(KNeighborsClassifier)
    X, y = problem()
    assert make(n_neighbors=3).fit(X, y).classifier_.n_neighbors == 3
    with raises(TypeError, "n_neighbor"):
        make(n_neighbor=3)
    with raises(ValueError, "n_neighbors"):
        make(n_neighbors=-1).fit(X, y)


def test_trees_may_need_dense_rows(monkeypatch):
    X, y = problem(n=100)
    monkeypatch.setattr("precbench.solvers.common.base.memory_limit", lambda: 5000)
    with raises(InputError, "7"):
        few_trees("hist-gradient-boosting", 2).fit(sparse.csr_matrix(X), y)


WITH_TREES = {"solvers": TREES, "common": "{k: 0.5}", "checkpoints": "3"}


@pytest.mark.extras("lightgbm")
def test_a_new_metric_trains_nothing(small, tmp_path):
    folder = tmp_path / "small"
    run(small(**WITH_TREES), tmp_path)
    first_records = records(folder)
    metrics = set(numbers(folder)["metric"])
    assert "precision_at_k(k=0.5)" in metrics
    run(small(**WITH_TREES, metrics="[precision_at_k, auc, dcg]"), tmp_path)
    assert records(folder) == first_records
    table = numbers(folder)
    assert set(table["metric"]) > metrics
    assert table["value"].notna().all()
    points_of_curves = table.groupby(["solver", "split", "metric"]).size()
    assert (points_of_curves.xs("lightgbm") >= 3).all()


@pytest.mark.extras("lightgbm")
def test_a_new_part_trains_again_what_stores_scores(small, tmp_path):
    folder = tmp_path / "small"
    run(small(**WITH_TREES), tmp_path)
    first_records = records(folder)
    n_splits = len(set(numbers(folder)["split"]))
    run(small(**WITH_TREES, parts="[test, training]"), tmp_path)
    added = set(records(folder)) - set(first_records)
    trained = {Store(folder).read(path.stem).solver for path in added}
    assert trained == {"hist-gradient-boosting", "lightgbm"}
    assert len(added) == 2 * n_splits


def job_of(config, folder, label="lightgbm"):
    """Return the first trial of a label, to be run."""
    plan = make_plan(load_config(config))
    trial, key = next(
        (trial, key) for trial, key in plan.trials if trial.label == label
    )
    return Job(
        trial=trial,
        key=key,
        folder=str(folder),
        dataset=plan.datasets["mine"],
        passes=float("inf"),
        timing="sequential",
        environment="none",
        run="none",
    )


@pytest.mark.extras("lightgbm")
def test_stored_scores_are_bounded(small, tmp_path, monkeypatch):
    job = job_of(small(solvers=TREES, common="{k: 0.5}", checkpoints="every"), tmp_path)
    assert run_job(job) == "ok"
    whole = Store(tmp_path).arrays(job.key)
    n_rows = whole["scores_test"].shape[1]
    assert_array_equal(whole["n_iter"], range(7))
    for most_scores, n_iter in ((3 * n_rows, [0, 3, 6]), (1, [6])):
        monkeypatch.setattr(worker, "_MOST_SCORES", most_scores)
        assert run_job(job) == "ok"
        arrays = Store(tmp_path).arrays(job.key)
        assert_array_equal(arrays["n_iter"], n_iter)
        for name, array in arrays.items():
            assert_array_equal(array.shape, whole[name][n_iter].shape)
        assert_array_equal(arrays["scores_test"], whole["scores_test"][n_iter])


def test_a_package_that_is_not_installed_skips_the_trial(
    small, in_this_process, tmp_path, monkeypatch
):
    monkeypatch.setitem(sys.modules, "lightgbm", None)
    config = small(solvers=TREES, common="{k: 0.5}", checkpoints="1")
    result = succeed("run", config, "--out", tmp_path / "out")
    tells(result.output, "Without lightgbm 2 skipped")
    [folder] = (tmp_path / "out").iterdir()
    table = numbers(folder)
    is_missing = table["solver"] == "lightgbm"
    assert set(table.loc[is_missing, "status"]) == {"skipped"}
    assert set(table.loc[~is_missing, "status"]) == {"ok"}


def test_the_library_is_part_of_the_key(small, monkeypatch):
    config = load_config(small(solvers=TREES, common="{k: 0.5}"))
    keys = {trial.label: key for trial, key in make_plan(config).trials}
    monkeypatch.setattr("importlib.metadata.version", lambda name: "99")
    without_cache = wrapper.version_with.__wrapped__
    monkeypatch.setattr(wrapper, "version_with", without_cache)
    new_keys = {trial.label: key for trial, key in make_plan(config).trials}
    assert new_keys.keys() == keys.keys()
    changed = {label for label in keys if keys[label] != new_keys[label]}
    assert changed == {"hist-gradient-boosting", "lightgbm"}


def test_random_features_may_be_tuned(small, tmp_path):
    """What is chosen gives the numbers that it gives where nothing is to be chosen."""

    def values_of(name, eta0, n_components, bandwidth):
        fourier = f"{{n_components: {n_components}, bandwidth: {bandwidth}}}"
        config = small(
            solvers=f"{{sgd-avg: {{eta0: {eta0}, fourier: {fourier}}}}}",
            common="{k: 0.5, epochs: 2}",
            checkpoints="1",
            protocol="{n_splits: 1}",
        )
        assert run(config, tmp_path / name).exit_code == 0
        return numbers(tmp_path / name / "small")

    tuned = values_of(
        "tuned",
        eta0="{tune: [0.1, 10.0]}",
        n_components="{tune: [3, 60]}",
        bandwidth="{tune: [0.5, 2.0]}",
    )
    [chosen_in_words] = set(tuned["chosen"])
    chosen = dict(pair.split("=") for pair in chosen_in_words.split())
    fixed = values_of(
        "fixed",
        eta0=float(chosen["eta0"]),
        n_components=chosen["fourier.n_components"],
        bandwidth=chosen["fourier.bandwidth"],
    )
    assert_array_equal(fixed["value"], tuned["value"])


def raising(error):
    def scores(_):
        raise error

    return scores


@pytest.mark.parametrize(
    ("scores", "places"),
    [
        pytest.param(lambda n: None, "shape ()", id="no scores"),
        pytest.param(lambda n: np.full(n, 1j), "complex128", id="complex numbers"),
        pytest.param(
            lambda n: 2**60 + np.arange(n), "float64 ranks", id="ranks that are lost"
        ),
        pytest.param(lambda n: np.zeros(1), "1 scores", id="too few scores"),
        pytest.param(raising(KeyboardInterrupt()), "KeyboardInterrupt", id="Ctrl-C"),
        pytest.param(raising(SystemExit(0)), "SystemExit", id="exit"),
    ],
)
def test_what_a_package_answers_fails_its_trial(
    small, tmp_path, monkeypatch, scores, places
):
    """It is no overflow, and it ends no other trial."""
    name = "hist-gradient-boosting"
    config = small(solvers=f"{{{name}: {{max_iter: 1}}}}", common="{}")
    job = job_of(config, tmp_path, name)
    monkeypatch.setattr(
        HistGradientBoostingClassifier, "decision_function", lambda _, X: scores(len(X))
    )
    assert run_job(job) == "failed"
    names(Store(tmp_path).read(job.key).reason, places)


@pytest.mark.parametrize(
    ("solver", "parameters"),
    [
        pytest.param(
            "hist-gradient-boosting", {"max_leaf_nodes": 1}, id="a single leaf"
        ),
        pytest.param("lightgbm", {"num_leaves": 1}, id="a single leaf, LightGBM"),
        pytest.param(
            "lightgbm-lambdarank", {"num_leaves": 1}, id="a single leaf, LambdaRank"
        ),
        pytest.param("catboost", {"depth": 17}, id="deeper than CatBoost allows"),
    ],
)
def test_sizes_of_trees_that_the_libraries_lack_are_refused(solver, parameters):
    [name] = parameters
    with raises(ValueError, name):
        SOLVERS[solver](**parameters).fit([[0.0], [1.0]], [0, 1])


def test_a_parameter_that_a_config_reads_as_a_key_is_refused():
    X = np.eye(40)
    y = np.arange(40) % 2
    liblinear = LogisticRegression(solver="liblinear")
    with raises(InputError, "LogisticRegression has solver='liblinear'"):
        precbench.compare(X, y, k=5, solvers=[liblinear])
