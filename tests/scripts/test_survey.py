"""What the pages say of the survey, and the benches of advice and of intervals."""

from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

from precbench.claims import LedgerRow, load_claims
from precbench.claims.verdicts import Verdict
from precbench.survey import ranking
from precbench.survey.ranking import AP, Survey
from scripts.survey import __main__ as program
from scripts.survey import advice, page, tables
from tests.test_survey import by_hand, run_of, split_table


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
