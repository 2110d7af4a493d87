"""The values of the survey, and ``precbench rank``."""

import json
from hashlib import sha256
from types import SimpleNamespace

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
from tests.helpers import invoke
from tests.sentences import raises, refused

pytestmark = pytest.mark.usefixtures("in_this_process")

TASKS = ("german", "ionosphere", "letter", "magic", "sonar", "abalone19")


def split_table(values, solvers=("ensemble", "sgd-avg", "no-skill"), n=2, names=TASKS):
    rows = [
        {
            "task": task,
            "solver": solver,
            "split": split,
            "seconds": 1.0,
            "stopped": False,
        }
        | dict.fromkeys(ranking.MEASURES, value)
        for task, of_task in zip(names, values, strict=False)
        for solver, value in zip(solvers, of_task, strict=True)
        for split in range(n)
    ]
    return pd.DataFrame(rows)[ranking.COLUMNS]


@pytest.fixture(scope="module")
def random_survey():
    rng = np.random.default_rng(0)
    solvers = [
        "ensemble",
        "xgboost",
        "extra-trees",
        "sgd-avg",
        "pnorm-push",
        "no-skill",
    ]
    return Survey(
        split_table(rng.integers(1, 9, (len(TASKS), len(solvers))) / 10, solvers)
    )


def test_every_solver_and_contestant_has_a_kind():
    for name in [*SOLVERS.built_in, *load_config("top/survey").solvers]:
        assert ranking.kind_of(name) in ranking.KINDS


def run_of(folder, smoke=False, **changed):
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


def test_what_is_taken_of_a_run(tmp_path):
    """Not what failed, nor stand-ins, nor smoke runs.

    Where a split failed, no skill counts.
    """
    others = run_of(tmp_path / "b", smoke=True), run_of(tmp_path / "c", stand_in=True)
    table = ranking.collect([run_of(tmp_path / "a"), *others, tmp_path / "absent"])
    found = table.set_index(["task", "solver", "split"])
    assert list(found[AP]) == [0.3, 0.2, 0.7]
    assert found.loc[("german", "sgd-avg", 0), ["seconds", "stopped"]].tolist() == [
        0.75,
        True,
    ]
    values = Survey(table).values(AP).loc["german"]
    assert values["sgd-avg"] == pytest.approx((0.7 + 0.2) / 2)
    assert values["no-skill"] == pytest.approx(0.25)
    assert ranking.collect([run_of(tmp_path / "d", split=[0, 1, 0, 2])])[
        "split"
    ].tolist() == [0, 0]
    with raises(InputError, "make survey"):
        ranking.collect([tmp_path / "absent", others[0]])


def by_hand(values):
    """Return mean ranks, losses and wins by another way."""
    values = values.round(12)
    ranks = np.array([rankdata(-row) for row in values])
    lost = [[1 - v / max(row) if max(row) else 0 for v in row] for row in values]
    wins = [
        np.mean(
            [
                (a > b) + 0.5 * (a == b)
                for row in values
                for k, b in enumerate(row)
                if k != j
                for a in [row[j]]
            ]
        )
        for j in range(values.shape[1])
    ]
    return ranks.mean(axis=0), np.mean(lost, axis=0), wins


def test_standings_by_hand(random_survey):
    values = random_survey.values(AP)
    found = ranking.standings(values).loc[values.columns]
    rank, lost, wins = by_hand(values.to_numpy())
    assert np.allclose(found["rank"], rank) and np.allclose(found["lost"], lost)
    assert np.allclose(found["wins"], wins)
    rng, ranks = (
        np.random.default_rng(7),
        np.array([rankdata(-row) for row in values.to_numpy()]),
    )
    means = [
        ranks[rng.choice(len(ranks), len(ranks))].mean(axis=0) for _ in range(4000)
    ]
    low, high = np.percentile(means, [2.5, 97.5], axis=0)
    assert np.allclose(found["rank_low"], low, atol=0.2)
    assert np.allclose(found["rank_high"], high, atol=0.2)


@pytest.mark.parametrize("shift", [0.005, -0.015])
def test_the_bayesian_test_by_its_definition(shift):
    rng = np.random.default_rng(1)
    first = rng.normal(0.7, 0.1, 40)
    second = first - shift + rng.normal(0, 0.02, 40)
    found = bayesian_signed_rank(first, second, 0.01)
    assert sum(found) == pytest.approx(1)
    differences, means = [0, *(first - second)], []
    above = [[a + b > 0.02 for b in differences] for a in differences]
    below = [[a + b < -0.02 for b in differences] for a in differences]
    for _ in range(4000):
        gaps = rng.exponential(size=41)
        gaps[0] = rng.gamma(0.5)
        pairs = np.outer(gaps, gaps) / gaps.sum() ** 2
        left, right = pairs[np.array(above)].sum(), pairs[np.array(below)].sum()
        means.append([left, 1 - left - right, right])
    assert found == pytest.approx(np.mean(means, axis=0), abs=0.01)


@pytest.mark.parametrize(
    ("n", "steps", "word"),
    [
        (40, (0.0, 0.001), "practically equivalent"),
        (40, (0.2, 0.1), "ahead"),
        (6, (0.03, 0.0), "undecided"),
    ],
)
def test_words_follow_the_values(n, steps, word):
    rows = [[0.8, 0.8 - steps[i % 2], 0.1] for i in range(n)]
    values = pd.DataFrame(rows, columns=["ensemble", "sgd-avg", "no-skill"])
    assert ranking.in_words(ranking.compared(values, "ensemble", "sgd-avg")) == word
    swapped = ranking.in_words(ranking.compared(values, "sgd-avg", "ensemble"))
    assert swapped == {"ahead": "behind"}.get(word, word)


@pytest.mark.parametrize("beta", [0.1, 0.3])
def test_the_share_of_the_area_is_that_of_orders_by_chance(beta):
    """With ties, of the mean over the orders in which they may stand.

    1 for a perfect ranking.
    """
    rng = np.random.default_rng(0)
    y = np.repeat([1, 0], [30, 300])
    scores = (rng.normal(size=330) + y).round()
    found = ranking.share_of_area(partial_auc_mcclish(y, scores, beta), beta)
    broken = [partial_auc(y, scores + 1e-3 * rng.random(330), beta) for _ in range(500)]
    assert found == pytest.approx(np.mean(broken), abs=0.005)
    constant = ranking.share_of_area(partial_auc_mcclish(y, 0 * scores, beta), beta)
    assert constant == pytest.approx(beta / 2)
    assert ranking.share_of_area(
        partial_auc_mcclish(y, y, beta), beta
    ) == pytest.approx(1)


@pytest.fixture
def small_survey(real_data, tmp_path, monkeypatch):
    """Two tasks that have cards, and values of two methods there."""
    of = {task.task: task for task in tasks.read_tasks()}
    monkeypatch.setattr(rank, "read_tasks", lambda: [of["ionosphere"], of["german"]])
    reference = split_table([[0.99, 0.01]] * 2, ["ensemble", "no-skill"], n=10)
    reference.to_csv(tmp_path / "reference.csv", index=False)
    monkeypatch.setattr(rank, "REFERENCE", tmp_path / "reference.csv")


def test_a_method_is_placed_among_the_others(small_survey, tmp_path):
    out = tmp_path / "out"
    args = [
        "rank",
        "logistic-regression",
        "--parameters",
        "{C: 0.1}",
        "--splits",
        0,
        "--out",
        out,
    ]
    done = invoke(*args)
    assert done.exit_code == 0 and "logistic-regression (yours)" in done.stdout
    found = pd.read_csv(out / "rank-logistic-regression.csv", index_col=0)
    assert found.index.tolist() == [
        "ensemble",
        "logistic-regression (yours)",
        "no-skill",
    ]
    assert found["rank"].tolist() == [1, 2, 3]
    html = (out / "rank-logistic-regression.html").read_text()
    assert "Rank of logistic-regression in the survey" in html and "ionosphere" in html
    again = json.loads(invoke(*args, "--json").stdout)
    assert again["solver"] == "logistic-regression"
    assert again["lost"] == pytest.approx(found["lost"].iloc[1])
    assert "prec@100" in html and "wins" in html


@pytest.mark.parametrize(
    ("args", "words"),
    [
        (["no-such-solver"], "no-such-solver"),
        (["bbr", "--parameters", "{radius: [}"], "--parameters"),
        (["bbr", "--parameters", "{radius: -1.0}"], "radius"),
        (["bbr", "--parameters", "3"], "--parameters"),
    ],
)
def test_what_cannot_be_ranked_is_refused(small_survey, tmp_path, args, words):
    refused(["rank", *args, "--out", tmp_path / "out"], words)


def test_tasks_of_another_distribution_are_refused(tmp_path, monkeypatch):
    """And text in a column of numbers makes categories of them all."""
    rows = "@data\n%\n1,2,x\n5more,<null>,y\n"
    of = {"task": "a", "package": "no-such==0.2.5", "file": "a.dat", "label": "last"}
    task = SimpleNamespace(**of, positive="y", sha256=sha256(rows.encode()).hexdigest())
    with raises(DataUnavailableError, "no-such==0.2.5"):
        tasks.read_task(task)
    installed = SimpleNamespace(locate_file=tmp_path.joinpath)
    monkeypatch.setattr(tasks, "distribution", lambda _: installed)
    (tmp_path / "no_such").mkdir()
    (tmp_path / "no_such/a.dat").write_text(rows)
    assert tasks.read_task(task).values.tolist() == [
        ["is 1", "2", 0],
        ["is 5more", "", 1],
    ]
    first = SimpleNamespace(**vars(task) | {"label": "first", "positive": "5more"})
    assert tasks.read_task(first).values.tolist() == [["2", "is x", 0], ["", "is y", 1]]
    (tmp_path / "no_such/a.dat").write_text(rows + "1,1,x\n")
    with raises(DataUnavailableError, "no_such/a.dat"):
        tasks.read_task(task)
