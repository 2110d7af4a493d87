"""The stages of a comparison: what each trains, and when a comparison ends."""

import numpy as np
import pytest

import precbench
from precbench.advice.contest import prepare
from precbench.advice.stages import Stage, first_stage, next_stage
from precbench.core.errors import InputError
from precbench.data import Dataset
from precbench.ranking.statistics import narrowing, resampled_test
from tests.helpers import invoke
from tests.test_contest import chosen, rows_of, write_table  # noqa: F401 (a fixture)

pytestmark = pytest.mark.usefixtures("in_this_process")

LOG = "logistic-regression"
METHODS = ["logistic-regression", "sgd-avg", "extra-trees", "ensemble"]
SECOND = Stage(METHODS, n_splits=4)
EVERYTHING = Stage(METHODS, n_splits=10)
# Prec@20 on four splits.
ENSEMBLE = [0.80, 0.75, 0.85, 0.80]


def experiment_of(methods, n_splits=10):
    X, y = rows_of()
    dataset = Dataset(
        name="rows", title="rows", X=X, y=np.where(y > 0, 1.0, -1.0), sha256=""
    )
    return prepare(dataset, 20, solvers=methods, n_splits=n_splits).experiment


@pytest.mark.parametrize("n_splits", [1, 2, 3, 10])
def test_the_first_stage_has_few_methods_on_few_splits(n_splits):
    stage = first_stage(experiment_of(METHODS, n_splits))
    assert stage == Stage([LOG, "ensemble"], min(n_splits, 3))


def test_methods_of_the_user_are_all_in_the_first_stage():
    stage = first_stage(experiment_of(["sgd-avg", "pnorm-push"]))
    assert stage == Stage(["sgd-avg", "pnorm-push"], 3)


def next_of(stage, choice, effort, n_splits=10):
    return next_stage(stage, choice, experiment_of(METHODS, n_splits), effort)


@pytest.fixture
def unsure(chosen):  # noqa: F811
    """Return a choice in which no further split would decide."""
    return chosen({"ensemble": ENSEMBLE, LOG: [0.7, 0.9, 0.6, 1.0]})


@pytest.mark.parametrize(
    ("effort", "after_first", "after_second"),
    [
        pytest.param("quick", None, None, id="quick: one stage"),
        pytest.param("normal", SECOND, None, id="normal: until no split would decide"),
        pytest.param("thorough", SECOND, EVERYTHING, id="thorough: everything"),
    ],
)
def test_efforts(unsure, effort, after_first, after_second):
    first = first_stage(experiment_of(METHODS))
    assert next_of(first, unsure, effort) == after_first
    assert next_of(SECOND, unsure, effort) == after_second
    assert next_of(EVERYTHING, unsure, effort) is None


def test_where_there_are_few_splits_the_second_stage_has_them_all(unsure):
    first = first_stage(experiment_of(METHODS, n_splits=3))
    second = next_of(first, unsure, "normal", n_splits=3)
    assert second == Stage(METHODS, 3)
    assert next_of(second, unsure, "normal", n_splits=3) is None


@pytest.mark.parametrize(
    ("rival", "goes_on"),
    [
        pytest.param([0.30, 0.35, 0.30, 0.25], False, id="worse"),
        pytest.param(ENSEMBLE[::-1], False, id="undecided, and as far as it was"),
        pytest.param([0.90, 0.90, 0.90, 0.90], True, id="nearly better"),
        pytest.param([0.75, 0.60, 0.85, 0.75], False, id="too few hits to win"),
    ],
)
def test_a_method_goes_on_if_it_may_win_and_the_splits_may_decide(
    chosen,  # noqa: F811
    rival,
    goes_on,
):
    choice = chosen({"ensemble": ENSEMBLE, "extra-trees": rival})
    stage = next_of(SECOND, choice, "normal")
    expected = Stage([LOG, "extra-trees", "ensemble"], 10)
    assert stage == (expected if goes_on else None)


def test_a_method_that_beats_the_ensemble_has_to_do_so_on_all_splits(
    chosen,  # noqa: F811
):
    better = [0.95, 0.92, 0.98, 0.96]
    choice = chosen({"ensemble": ENSEMBLE, "extra-trees": better})
    assert choice.best == "extra-trees"
    assert next_of(SECOND, choice, "normal") == Stage(
        [LOG, "extra-trees", "ensemble"], 10
    )


def test_where_a_trial_of_the_recommended_method_failed_all_splits_are_tried(
    chosen,  # noqa: F811
):
    choice = chosen({"ensemble": ENSEMBLE[:3], LOG: [0.1, 0.2]}, n_splits=4)
    assert choice.splits == 3
    assert next_of(SECOND, choice, "normal") == EVERYTHING


def test_an_interval_over_more_splits_is_narrower_by_the_stated_factor():
    """Of repeated differences, only n - 1 in the standard deviation is another."""
    first = [0.8, 0.7, 0.9, 0.6]
    second = [0.5, 0.6, 0.7, 0.6]
    few = resampled_test(first, second, 0.3)
    many = resampled_test(first * 3, second * 3, 0.3)
    spread = np.sqrt((12 / 11) / (4 / 3))  # standard deviations of 12 and of 4
    ratio = (many.high - many.low) / (few.high - few.low)
    assert ratio == pytest.approx(spread * narrowing(4, 12, 0.3))


def test_quick_names_the_methods_that_were_not_trained(tmp_path):
    write_table(tmp_path, *rows_of())
    options = ["--label", "label", "--k", 20, "--effort", "quick"]
    for solver in ("sgd-avg", LOG):
        options += ["--solver", solver]
    result = invoke("compare", tmp_path / "mine.csv", *options, "--out", tmp_path)
    assert result.exit_code == 0
    assert "1 method on 3 splits: 3 trials, roughly " in result.stdout
    assert "Not trained: sgd-avg." in result.stdout
    assert "later answers" not in result.stdout
    [page] = tmp_path.glob("*/report.html")
    assert "Not trained: sgd-avg." in page.read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("n_splits", "later"),
    [
        pytest.param(5, "at most 2 more trials", id="two splits are left"),
        pytest.param(3, None, id="nothing is left"),
    ],
)
def test_the_cost_of_later_stages_is_of_the_trials_that_are_left(
    tmp_path, n_splits, later
):
    write_table(tmp_path, *rows_of())
    options = ["--label", "label", "--k", 20, "--solver", LOG, "--splits", n_splits]
    result = invoke("compare", tmp_path / "mine.csv", *options, "--out", tmp_path)
    assert result.exit_code == 0
    if later is None:
        assert "later answers" not in result.stdout
    else:
        assert f"later answers, --effort normal: {later}, roughly" in result.stdout


@pytest.fixture
def interrupted_in_the_second_stage(monkeypatch):
    """Let the user interrupt the second run of a config."""
    from precbench.advice import comparison

    run_config = comparison.run_config
    n_runs = []

    def interrupt_later(*arguments, **options):
        n_runs.append(1)
        if len(n_runs) == 2:
            raise KeyboardInterrupt
        return run_config(*arguments, **options)

    monkeypatch.setattr(comparison, "run_config", interrupt_later)


@pytest.mark.usefixtures("interrupted_in_the_second_stage")
def test_an_interrupt_keeps_the_answer_of_the_stage_before(tmp_path):
    write_table(tmp_path, *rows_of())
    save = tmp_path / "model.npz"
    options = ["--label", "label", "--k", 20, "--solver", LOG, "--save", save]
    result = invoke("compare", tmp_path / "mine.csv", *options, "--out", tmp_path)
    assert result.exit_code == 130
    assert f"Use {LOG}: about " in result.stdout
    assert "The last answer stands: " in result.stdout
    assert not save.exists()
    [page] = tmp_path.glob("*/report.html")
    assert f"Use {LOG}: about " in page.read_text(encoding="utf-8")


@pytest.mark.usefixtures("interrupted_in_the_second_stage")
def test_an_interrupt_in_python_returns_the_answer_of_the_stage_before():
    X, y = rows_of()
    choice = precbench.compare(X, y, k=20, solvers=[LOG])
    assert choice.was_interrupted
    assert choice.splits == 3
    assert choice.fit().solver == LOG


def test_an_unknown_effort_is_refused():
    X, y = rows_of()
    with pytest.raises(InputError, match=r"effort .*'normal'.*'much'"):
        precbench.compare(X, y, k=20, effort="much")
