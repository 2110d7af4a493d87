"""What the pages say of the survey, and the benches of advice and of intervals."""

import gzip
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

from precbench.claims import LedgerRow, load_claims
from precbench.claims.verdicts import Verdict
from precbench.experiment import load_config
from precbench.survey import ranking
from precbench.survey.ranking import AP, Survey
from precbench.survey.tasks import read_tasks
from scripts.survey import __main__ as program
from scripts.survey import advice, page, rare, tables
from tests.test_survey import by_hand, run_of, split_table


def test_the_program_writes_the_reference(tmp_path, monkeypatch, capsys):
    run_of(tmp_path / "survey-long")
    monkeypatch.setattr(program, "REFERENCE", tmp_path / "survey.csv.gz")
    monkeypatch.setattr(program, "DIGEST", tmp_path / "survey.sha256")
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
    text = gzip.decompress((tmp_path / "survey.csv.gz").read_bytes()).decode()
    assert (tmp_path / "survey.sha256").read_text() == program.digest(text)
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
    monkeypatch.setattr(program, "DIGEST", tmp_path / "survey.sha256")
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


def test_one_contestant_alone_can_be_trained_again():
    """It keeps its place among the others; what it failed on this time is gone."""
    splits = [(task, solver, split) for task in "ab" for split in (0, 1) for solver in "xyz"]
    known = pd.DataFrame(splits, columns=["task", "solver", "split"]).assign(value=0)
    ran = known.query("solver == 'y'").assign(value=1)
    found = program.replaced(known, ran.query("task == 'a' or split == 0"), ran)
    expected = known.assign(value=(known["solver"] == "y").astype(int))
    expected = expected[
        ~((known["task"] == "b") & (known["split"] == 1) & (known["solver"] == "y"))
    ]
    assert found.to_numpy().tolist() == expected.to_numpy().tolist()


def test_the_committed_values_are_those_that_were_collected():
    text = gzip.decompress(ranking.REFERENCE.read_bytes()).decode()
    assert program.DIGEST.read_text() == program.digest(text)


def test_tasks_to_train_again_are_small_and_others_each_week():
    tasks = read_tasks()
    weeks = [program.drawn(tasks, (2026, week)) for week in range(1, 30)]
    names = [tuple(task.task for task in week) for week in weeks]
    assert {len({*week}) for week in names} == {program.DRAWN} and len({*names}) == len(names)
    assert program.drawn(tasks, (2026, 1)) == weeks[0]
    small = {task.task for task in tasks if task.rows <= program.MOST_ROWS}
    assert {name for week in names for name in week} == small


def test_the_rare_panel_is_what_its_rules_say():
    listed = pd.DataFrame(rare.read_tasks())
    share = listed["positives"] / listed["rows"]
    assert [int((share <= most).sum()) for most in (0.05, 0.02, 0.005)] == [37, 27, 10]
    assert len(listed) == 37 and (listed["test_share"] * listed["positives"] >= 20).all()
    natural, drawn = (listed[listed["kind"] == kind] for kind in ("natural", "thinned"))
    assert len(natural) == natural["source"].nunique() == 14
    assert drawn.groupby("share")["source"].nunique().to_dict() == {"0.01": 15, "0.005": 8}
    assert (share[drawn.index] <= drawn["share"].astype(float)).all()


def test_the_files_and_configs_of_a_rare_task(mirror, isolated, tmp_path, monkeypatch, capsys):
    """Each thinning keeps all negatives and other positives; 20 of them would be in a test part."""
    [task] = [task for task in rare.read_tasks() if task.task == "letter-1in100"]
    small = task._replace(source="ionosphere", rows=266, positives=40, test_share=0.5)
    natural = task._replace(kind="natural", task="ionosphere", test_share=0.5)
    monkeypatch.setattr(rare, "read_tasks", lambda: [natural, small])
    monkeypatch.setattr("sys.argv", ["survey", "tasks", str(tmp_path), "--rare"])
    program.main()
    configs = [load_config(path) for path in capsys.readouterr().out.split()]
    assert [config.name for config in configs] == [
        *("rare-natural-50-long", "rare-thinned-50-short"),
    ]
    assert [config.protocol.n_splits for config in configs] == [3, 1]
    names = [f"letter-1in100-{draw}" for draw in range(rare.DRAWS)]
    assert [entry.name for entry in configs[1].datasets] == names
    drawn = [pd.read_csv(tmp_path / f"{name}.csv") for name in names]
    whole = rare.whole(small)
    for rows in drawn:
        assert rows["label"].value_counts().to_dict() == {0: 225, 1: 40}
        assert rows[rows["label"] == 0].to_numpy() == pytest.approx(
            whole[whole["label"] == 0].to_numpy()
        )
    assert not drawn[0].equals(drawn[1]) and drawn[0].shape[1] == whole.shape[1]


@pytest.mark.parametrize("metric", ranking.MEASURES)
def test_the_committed_standings_by_hand(metric):
    survey = page.committed()
    values = survey.values(metric, page.sound(survey, metric) or survey.real)
    found = ranking.standings(values, draws=10).loc[values.columns]
    for name, of_hand in zip(("rank", "lost", "wins"), by_hand(values.to_numpy()), strict=True):
        assert np.allclose(found[name], of_hand), name


def test_a_situation_of_few_tasks_has_no_recommendation():
    drawn = np.random.default_rng(0).integers(1, 9, (6, 3)) / 10
    survey = Survey(split_table(drawn))
    values = survey.values(AP)
    assert page.choose(survey, values.iloc[: page.LEAST_TASKS - 1]) is None
    found = page.choose(survey, values.iloc[: page.LEAST_TASKS])
    assert found.tasks == page.LEAST_TASKS
    assert ranking.kind_of(found.rival) != ranking.kind_of(found.solver)


def test_no_contestant_is_broken():
    """None but chance has an AUC significantly below 1/2 on a task; one that has is found."""
    assert page.broken(page.committed()) == []
    planted = split_table([[0.9, 0.9, 0.5]] * 3 + [[0.9, 0.39, 0.5]])
    assert page.broken(Survey(planted)) == ["sgd-avg on magic"]


def test_what_is_reproduced_under_readings_alone_counts_apart():
    about = {"kind": "mean", "where": "", "printed": "x", "verdict": Verdict.WITH_DEVIATION}
    deviations = ["medv-is-a-feature", "medv-is-a-feature absolute-derivative"]
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


def test_the_bench_of_advice_by_hand(monkeypatch):
    of_list = {"positives": 20, "rows": 100, "low": 2, "high": 6}
    lists = [
        {"task": "a", "seed": 0, "trained": 9, "compare": 5, "score": 4, "sum": 20, "drift": False},
        {"task": "a", "seed": 1, "trained": 9, "compare": 3, "score": 3, "sum": 23, "drift": False},
        {"task": "b", "seed": 0, "trained": 40, "compare": 6, "score": 7, "sum": 29, "drift": True},
    ]
    monkeypatch.setattr(advice, "RIVALS", {"forest": {}})
    results = pd.DataFrame(
        {**of_list, **one, "method": method, "hits": n}
        for one, taken, rival in zip(lists, (4, 3, 8), (4, 2, 6), strict=True)
        for method, n in ((advice.PICK, taken), ("forest", rival))
    )
    hits = advice.hits_table(results)
    assert "| recommended by compare | 15 | 7 |  |" in hits
    assert "| forest | 12 | 6 | +25.0% (+16.7% to +33.3%) |" in hits
    forecasts = advice.forecasts_table(results)
    for line in (
        "| lists | 3 |",
        "| hits of a list, mean | 5.0 |",
        "| error of the forecast of compare, mean | 1.00 |",
        "| error of the forecast of score, mean | 0.33 |",
        "| intervals of score that hold the hits | 66.7% |",
        "| sums of probabilities that are right | 66.7% |",
        "| lists that are said to have drifted | 1 |",
    ):
        assert line in forecasts


def test_the_bench_of_advice_end_to_end(tmp_path, monkeypatch):
    """On a list of ours in place of its tasks."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((200, 3))
    rows = pd.DataFrame(X.round(3)).assign(label=(X[:, 0] + 0.3 * X[:, 1] > 0.8).astype(int))
    monkeypatch.setattr(advice, "read_task", lambda _: rows)
    monkeypatch.setattr(advice, "RIVALS", {"logistic-regression": {"C": 0.1}})
    options = {"solvers": ["logistic-regression"], "n_splits": 2}
    found = advice.examine(SimpleNamespace(task="mine"), 0, tmp_path, **options)
    assert found["method"].tolist() == [advice.PICK, "logistic-regression"]
    assert set(found["k"]) == {10} and not found["drift"].any()
    assert found["hits"].min() >= 8  # of a list in which the positives are easily told
    assert found["compare"][0] == pytest.approx(found["hits"][0], abs=3)
    assert found["score"][0] == pytest.approx(found["compare"][0], abs=2)
