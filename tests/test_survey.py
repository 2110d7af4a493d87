"""The values of the survey, and ``precbench rank``."""

import json
from hashlib import sha256
from types import SimpleNamespace
from typing import NamedTuple

import numpy as np
import pandas as pd
import pytest
from scipy.stats import rankdata

from precbench.cli import rank
from precbench.core.errors import DataUnavailableError, InputError
from precbench.experiment import load_config
from precbench.ranking.metrics import partial_auc, partial_auc_mcclish
from precbench.ranking.statistics import bayesian_signed_rank
from precbench.solvers import SOLVERS
from precbench.survey import ranking, tasks
from precbench.survey.ranking import AP, Survey
from tests.helpers import invoke, succeed
from tests.sentences import raises, refused

pytestmark = pytest.mark.usefixtures("in_this_process")

TASKS = ("german", "ionosphere", "letter", "magic", "sonar", "abalone19")


def split_table(
    values, solvers=("ensemble", "sgd-avg", "no-skill"), n_splits=2, names=TASKS
):
    """Return results of which all measures have these values, tasks by solvers."""
    rows = []
    for task, values_of_task in zip(names, values, strict=False):
        for solver, value in zip(solvers, values_of_task, strict=True):
            for split in range(n_splits):
                fit = {"task": task, "solver": solver, "split": split}
                end = {"seconds": 1.0, "stopped": False}
                rows.append(fit | dict.fromkeys(ranking.MEASURES, value) | end)
    return pd.DataFrame(rows)[ranking.COLUMNS]


@pytest.fixture(scope="module")
def random_survey():
    solvers = [
        "ensemble",
        "xgboost",
        "extra-trees",
        "sgd-avg",
        "pnorm-push",
        "no-skill",
    ]
    rng = np.random.default_rng(0)
    values = rng.integers(1, 9, (len(TASKS), len(solvers))) / 10
    return Survey(split_table(values, solvers))


def test_every_solver_and_contestant_has_a_kind():
    for name in [*SOLVERS.built_in, *load_config("top/survey").solvers]:
        assert ranking.kind_of(name) in ranking.KINDS


def run_of(folder, smoke=False, **changed):
    """Write the results of a run, of which a fit was stopped and another failed."""
    rows = pd.DataFrame(
        {
            "dataset": "german",
            "stand_in": False,
            "solver": ["no-skill", "no-skill", "sgd-avg", "sgd-avg"],
            "split": [0, 1, 0, 1],
            "wall_seconds": 0.25,
            "tuning_seconds": [None, None, 0.5, 0.5],
            "metric": AP,
            "value": [0.3, 0.2, 0.7, 0.9],
            "status": ["ok", "ok", "ok", "timeout"],
            "stopped": [None, None, "limit", None],
            "final": True,
        }
        | changed,
    )
    folder.mkdir(parents=True)
    rows.to_csv(folder / "results.csv", index=False)
    (folder / "experiment.json").write_text(json.dumps({"smoke": smoke}))
    return folder


def test_a_run_gives_the_values_of_fits_that_have_not_failed(tmp_path):
    table = ranking.collect([run_of(tmp_path / "run")])
    fits = table.set_index(["solver", "split"])
    assert fits[AP].to_dict() == {
        ("no-skill", 0): 0.3,
        ("no-skill", 1): 0.2,
        ("sgd-avg", 0): 0.7,
    }
    assert fits.loc[("sgd-avg", 0), "seconds"] == 0.75
    assert fits.loc[("sgd-avg", 0), "stopped"]
    assert set(table["task"]) == {"german"}


def test_where_a_split_failed_no_skill_counts(tmp_path):
    table = ranking.collect([run_of(tmp_path / "run")])
    values = Survey(table).values(AP).loc["german"]
    assert values["sgd-avg"] == pytest.approx((0.7 + 0.2) / 2)
    assert values["no-skill"] == pytest.approx(0.25)


def test_smoke_runs_stand_ins_and_absent_folders_give_nothing(tmp_path):
    run = run_of(tmp_path / "run")
    smoke = run_of(tmp_path / "smoke", smoke=True)
    stand_in = run_of(tmp_path / "stand-in", stand_in=True)
    absent = tmp_path / "absent"
    table = ranking.collect([run, smoke, stand_in, absent])
    pd.testing.assert_frame_equal(table, ranking.collect([run]))
    with raises(InputError, "make survey"):
        ranking.collect([absent, smoke])


def test_a_split_that_some_contestant_has_not_run_is_left_out(tmp_path):
    run = run_of(tmp_path / "run", split=[0, 1, 0, 2])
    assert ranking.collect([run])["split"].tolist() == [0, 0]


class Standing(NamedTuple):
    """Means over the tasks, a number for each contestant."""

    rank: np.ndarray
    lost: np.ndarray
    wins: np.ndarray


def by_hand(values):
    """Return standings by another way, of values of tasks by contestants."""
    values = values.round(12)
    ranks = [rankdata(-row) for row in values]
    lost = [
        [1 - value / max(row) if max(row) else 0 for value in row] for row in values
    ]
    wins = []
    for contestant in range(values.shape[1]):
        own = values[:, [contestant]]
        others = np.delete(values, contestant, axis=1)
        wins.append(np.mean((own > others) + 0.5 * (own == others)))
    return Standing(np.mean(ranks, axis=0), np.mean(lost, axis=0), np.array(wins))


def test_standings_by_hand(random_survey):
    values = random_survey.values(AP)
    standings = ranking.standings(values).loc[values.columns]
    expected = by_hand(values.to_numpy())
    assert np.allclose(standings["rank"], expected.rank)
    assert np.allclose(standings["lost"], expected.lost)
    assert np.allclose(standings["wins"], expected.wins)
    rng = np.random.default_rng(7)
    ranks = np.array([rankdata(-row) for row in values.to_numpy()])
    means = []
    for _ in range(4000):
        tasks_drawn = rng.choice(len(ranks), len(ranks))
        means.append(ranks[tasks_drawn].mean(axis=0))
    low, high = np.percentile(means, [2.5, 97.5], axis=0)
    assert np.allclose(standings["rank_low"], low, atol=0.2)
    assert np.allclose(standings["rank_high"], high, atol=0.2)


@pytest.mark.parametrize("shift", [0.005, -0.015])
def test_the_bayesian_test_by_its_definition(shift):
    rng = np.random.default_rng(1)
    first = rng.normal(0.7, 0.1, 40)
    second = first - shift + rng.normal(0, 0.02, 40)
    posterior = bayesian_signed_rank(first, second, rope=0.01)
    assert sum(posterior) == pytest.approx(1)
    # The prior is one more difference, of 0, with half the weight.
    differences = np.array([0, *(first - second)])
    sums = differences[:, None] + differences
    draws = []
    for _ in range(4000):
        weights = rng.exponential(size=41)
        weights[0] = rng.gamma(0.5)
        pairs = np.outer(weights, weights) / weights.sum() ** 2
        first_is_better = pairs[sums > 0.02].sum()
        second_is_better = pairs[sums < -0.02].sum()
        neither = 1 - first_is_better - second_is_better
        draws.append([first_is_better, neither, second_is_better])
    assert posterior == pytest.approx(np.mean(draws, axis=0), abs=0.01)


@pytest.mark.parametrize(
    ("n_tasks", "gaps", "word", "reversed_word"),
    [
        pytest.param(
            40,
            [0.0, 0.001],
            "practically equivalent",
            "practically equivalent",
            id="gaps within the rope",
        ),
        pytest.param(40, [0.2, 0.1], "ahead", "behind", id="wide gaps"),
        pytest.param(6, [0.03, 0.0], "undecided", "undecided", id="few tasks"),
    ],
)
def test_words_follow_the_values(n_tasks, gaps, word, reversed_word):
    """The gaps between the two contestants alternate from task to task."""
    first = np.full(n_tasks, 0.8)
    second = 0.8 - np.resize(gaps, n_tasks)
    values = pd.DataFrame({"ensemble": first, "sgd-avg": second})
    ahead = ranking.compared(values, "ensemble", "sgd-avg")
    behind = ranking.compared(values, "sgd-avg", "ensemble")
    assert ranking.in_words(ahead) == word
    assert ranking.in_words(behind) == reversed_word


@pytest.mark.parametrize("beta", [0.1, 0.3])
def test_the_share_of_the_area_is_that_of_orders_by_chance(beta):
    """With ties: of the mean over the orders in which they may stand."""
    rng = np.random.default_rng(0)
    y = np.repeat([1, 0], [30, 300])
    scores = (rng.normal(size=330) + y).round()
    without_ties = [scores + 1e-3 * rng.random(330) for _ in range(500)]
    expected = np.mean([partial_auc(y, order, beta) for order in without_ties])
    assert share_of_area(y, scores, beta) == pytest.approx(expected, abs=0.005)
    assert share_of_area(y, 0 * scores, beta) == pytest.approx(beta / 2)  # all tied
    assert share_of_area(y, y, beta) == pytest.approx(1)  # perfect


def share_of_area(y, scores, beta):
    return ranking.share_of_area(partial_auc_mcclish(y, scores, beta), beta)


@pytest.fixture
def small_survey(real_data, tmp_path, monkeypatch):
    """Two tasks that have cards, and values of two methods there."""
    listed = {task.task: task for task in tasks.read_tasks()}
    two = [listed["ionosphere"], listed["german"]]
    monkeypatch.setattr(rank, "read_tasks", lambda: two)
    reference = split_table([[0.99, 0.01]] * 2, ["ensemble", "no-skill"], n_splits=10)
    reference.to_csv(tmp_path / "reference.csv", index=False)
    monkeypatch.setattr(rank, "REFERENCE", tmp_path / "reference.csv")


def test_a_method_is_placed_among_the_others(small_survey, tmp_path):
    out = tmp_path / "out"
    options = ["--parameters", "{C: 0.1}", "--splits", 0, "--out", out]
    command = ["rank", "logistic-regression", *options]
    result = succeed(*command)
    assert "logistic-regression (yours)" in result.stdout
    ranks = pd.read_csv(out / "rank-logistic-regression.csv", index_col=0)
    assert ranks["rank"].to_dict() == {
        "ensemble": 1,
        "logistic-regression (yours)": 2,
        "no-skill": 3,
    }
    html = (out / "rank-logistic-regression.html").read_text()
    assert "Rank of logistic-regression in the survey" in html
    assert "ionosphere" in html
    assert "prec@100" in html
    assert "wins" in html
    own = json.loads(succeed(*command, "--json").stdout)
    assert own["solver"] == "logistic-regression"
    assert own["lost"] == pytest.approx(
        ranks.loc["logistic-regression (yours)", "lost"]
    )


@pytest.mark.parametrize(
    ("arguments", "place"),
    [
        pytest.param(["no-such-solver"], "no-such-solver", id="solver"),
        pytest.param(
            ["bbr", "--parameters", "{radius: [}"], "--parameters", id="no YAML"
        ),
        pytest.param(["bbr", "--parameters", "{radius: -1.0}"], "radius", id="value"),
        pytest.param(["bbr", "--parameters", "3"], "--parameters", id="no names"),
    ],
)
def test_what_cannot_be_ranked_is_refused(small_survey, tmp_path, arguments, place):
    refused(["rank", *arguments, "--out", tmp_path / "out"], place)


@pytest.fixture
def survey_of_one(tmp_path, monkeypatch):
    """A survey of one task, whose rows are there already, and of two methods."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((300, 3))
    rows = pd.DataFrame(X, columns=["x1", "x2", "x3"])
    rows["label"] = (X[:, 0] + rng.standard_normal(300) > 1.2).astype(int)
    folder = tmp_path / "out" / "survey-tasks"
    folder.mkdir(parents=True)
    rows.to_csv(folder / "sonar.csv", index=False)
    task = SimpleNamespace(task="sonar", package="no-such==1", rows=300)
    monkeypatch.setattr(rank, "read_tasks", lambda: [task])
    reference = split_table(
        [[0.99, 0.01]], ["ensemble", "no-skill"], n_splits=30, names=["sonar"]
    )
    reference.to_csv(tmp_path / "reference.csv", index=False)
    monkeypatch.setattr(rank, "REFERENCE", tmp_path / "reference.csv")
    return tmp_path / "out"


ONE = ["rank", "logistic-regression", "--parameters", "{C: 0.1}", "--splits", "0-2"]


def test_a_dry_run_says_what_would_be_compared_and_for_how_long(survey_of_one):
    done = invoke(*ONE, "--out", survey_of_one, "--dry-run")
    assert done.exit_code == 0
    assert (
        "logistic-regression (yours) against 2 methods of the survey, on 1 task"
        in done.stdout
    )
    assert "3 trials, 0 of them done already" in done.stdout
    assert "with 1 at a time, estimated from" in done.stdout
    facts = json.loads(
        invoke(*ONE, "--out", survey_of_one, "--dry-run", "--json").stdout
    )
    assert (facts["trials"], facts["cached"]) == (3, 0)
    assert facts["expected_seconds"] >= 0


def test_progress_is_shown_while_a_method_is_ranked(survey_of_one):
    done = invoke(*ONE, "--out", survey_of_one)
    assert done.exit_code == 0, done.output
    assert "3/3" in done.stderr or "3 of 3" in done.stderr
    again = invoke(*ONE, "--out", survey_of_one, "--dry-run")
    assert "3 trials, 3 of them done already" in again.stdout
    quiet = invoke(*ONE, "--out", survey_of_one, "--quiet", "--force")
    assert not quiet.stderr


def test_a_shard_says_that_it_has_no_rank(survey_of_one):
    done = invoke(*ONE, "--out", survey_of_one, "--shard", "1/2")
    assert "a shard has no rank; its records are in" in done.stdout


ROWS = "@data\n%\n1,2,x\n5more,<null>,y\n"


def task_of(label, positive):
    return SimpleNamespace(
        task="a",
        package="no-such==0.2.5",
        file="a.dat",
        label=label,
        positive=positive,
        sha256=sha256(ROWS.encode()).hexdigest(),
    )


@pytest.fixture
def installed_file(tmp_path, monkeypatch):
    """The file of a task, as its package has it."""
    package = SimpleNamespace(locate_file=tmp_path.joinpath)
    monkeypatch.setattr(tasks, "distribution", lambda _name: package)
    file = tmp_path / "no_such" / "a.dat"
    file.parent.mkdir()
    file.write_text(ROWS)
    return file


@pytest.mark.parametrize(
    ("label", "positive", "rows"),
    [
        pytest.param("last", "y", [["is 1", "2", 0], ["is 5more", "", 1]], id="last"),
        pytest.param("first", "5more", [["2", "is x", 0], ["", "is y", 1]], id="first"),
    ],
)
def test_text_in_a_column_of_numbers_makes_categories_of_them_all(
    installed_file, label, positive, rows
):
    assert tasks.read_task(task_of(label, positive)).values.tolist() == rows


def test_a_task_of_a_package_that_is_not_installed_is_refused():
    with raises(DataUnavailableError, "no-such==0.2.5"):
        tasks.read_task(task_of("last", "y"))


def test_a_task_of_another_distribution_is_refused(installed_file):
    installed_file.write_text(ROWS + "1,1,x\n")
    with raises(DataUnavailableError, "no_such/a.dat"):
        tasks.read_task(task_of("last", "y"))
