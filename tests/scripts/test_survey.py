"""What the pages say of the survey, and the benches of advice and of intervals."""

import csv
import gzip
import re

import numpy as np
import pandas as pd
import pytest
from scipy.stats import rankdata

from precbench.claims import LedgerRow, load_claims
from precbench.claims.verdicts import Verdict
from precbench.experiment import load_config
from precbench.survey import ranking
from precbench.survey.ranking import AP, Survey
from scripts.survey import __main__ as program
from scripts.survey import advice, page, rare, tables
from tests.test_survey import by_hand, run_of, split_table


def test_the_program_writes_the_reference(tmp_path, monkeypatch):
    monkeypatch.setattr(program, "REFERENCE", tmp_path / "survey.csv.gz")

    def collected(folder):
        monkeypatch.setattr("sys.argv", ["survey", "collect", str(folder)])
        program.main()
        return program.REFERENCE.read_bytes()

    run_of(tmp_path / "survey-long")
    assert collected(tmp_path) == collected(tmp_path)
    more = {"split": [1, 2, 1, 2], "value": [0.5, 0.6, 0.7, 0.8]}
    run_of(tmp_path / "more" / "survey-long", **more)
    text = gzip.decompress(collected(tmp_path / "more")).decode()
    table = pd.read_csv(program.REFERENCE).set_index(["split", "solver"])[AP]
    assert table.to_dict() == {
        (0, "no-skill"): 0.3,
        (0, "sgd-avg"): 0.7,
        (1, "no-skill"): 0.5,
        (1, "sgd-avg"): 0.7,
        (2, "no-skill"): 0.6,
    }
    assert (tmp_path / "survey.sha256").read_text() == program.digest(text)


def test_thinnings_are_the_splits_of_their_task():
    names = ["fars", "fars", "fars-1in100-0", "fars-1in100-2", "yeast4"]
    table = rare.joined(pd.DataFrame({"task": names, "split": [0, 1, 0, 0, 2]}))
    assert list(table.itertuples(index=False, name=None)) == [
        *(
            ("fars", 0),
            ("fars", 1),
            ("fars-1in100", 0),
            ("fars-1in100", 2),
            ("yeast4", 2),
        )
    ]


def test_the_rare_panel_looks_at_the_test_rows_of_each_task():
    """At 20 positives or more, and at 400 rows or more, of which 100 are a quarter."""
    names = [task.task for task in rare.read_tasks()]
    panel = Survey(split_table([[0.5, 0.4, 0.3]] * len(names), names=names), rare.TASKS)
    assert panel.looked_at(AP)["flare-F"] == 0.5 * 43
    assert page.sound(panel, AP) == list(panel.tasks.index)
    assert (panel.tasks["rows"] * panel.tasks["test_share"] >= 400).all()
    assert "flare-F" not in page.panel(panel, AP) and "| 37 |" in page.panel(panel, AP)


def test_rivals_choose_by_five_folds(tmp_path):
    task = next(task for task in rare.read_tasks(folds=True) if not task.package)
    [config] = map(load_config, rare.write(tmp_path, [task], folds=True))
    assert config.tuning.folds == 5 and len(config.solvers) == 4


@pytest.mark.parametrize("metric", ["precision_at_k(k=100)", AP])
def test_the_answer_of_the_rare_panel_by_hand(metric):
    rows = {}
    for path in (rare.REFERENCE, rare.FOLDED):  # folds take the place of the same fits
        with gzip.open(path, "rt") as file:
            rows |= {
                (r["task"], r["solver"], r["split"]): r[metric]
                for r in csv.DictReader(file)
            }
    tasks, solvers, splits = (
        list(dict.fromkeys(part)) for part in zip(*rows, strict=True)
    )
    means = [  # a fit that failed ranks as no skill
        [
            np.mean(
                [float(rows.get((t, s, i), rows[t, "no-skill", i])) for i in splits]
            )
            for s in solvers
        ]
        for t in tasks
    ]
    rank, lost, _ = by_hand(np.array(means))
    first = int(rank.argmin())
    text = page.answer(page.rare_panel(), metric)
    drawn = np.random.default_rng(7).integers(0, len(means), (4000, len(means)))
    ranks = np.array([rankdata(-np.round(row, 12)) for row in means])[:, first]
    low, high = np.percentile(ranks[drawn].mean(axis=1), [2.5, 97.5])
    shown = re.search(
        rf"`{solvers[first]}`.*is ([\d.]+) \(([\d.]+) to ([\d.]+)\).*loses ([\d.]+)%",
        text,
    )
    assert np.allclose(
        [float(x) for x in shown.groups()[:3]], [rank[first], low, high], atol=0.25
    )
    assert float(shown[1]) == round(rank[first], 1)
    assert float(shown[4]) == round(100 * lost[first], 1)


def test_the_committed_values_are_those_that_were_collected():
    for path in (ranking.REFERENCE, rare.REFERENCE, rare.FOLDED):
        text = gzip.decompress(path.read_bytes()).decode()
        assert program.digest_of(path).read_text() == program.digest(text)


def test_a_situation_of_few_tasks_has_no_recommendation():
    survey = Survey(split_table(np.random.default_rng(0).integers(1, 9, (6, 3)) / 10))
    values = survey.values(AP)
    assert page.choose(survey, values.iloc[: page.LEAST_TASKS - 1]) is None
    found = page.choose(survey, values.iloc[: page.LEAST_TASKS])
    assert found.tasks == page.LEAST_TASKS
    assert ranking.kind_of(found.rival) != ranking.kind_of(found.solver)


def broken(survey):
    """Return contestants whose mean AUC on a task is significantly below that of no
    skill.
    """
    # By three standard errors of the AUC of chance (Hanley and McNeil), since splits
    # share rows.
    auc = survey.values("auc")
    tasks = survey.tasks.loc[auc.index]
    n_pos = tasks.get("test_share", 0.3) * tasks["positives"]
    n_neg = n_pos * (tasks["rows"] / tasks["positives"] - 1)
    error = ((n_pos + n_neg + 1) / (12 * n_pos * n_neg)) ** 0.5
    below = auc.lt(0.5 - 3 * error, axis=0)
    names = [solver for solver in auc if solver != "no-skill"]
    return [
        f"{solver} on {task}" for solver in names for task in auc.index[below[solver]]
    ]


def test_no_contestant_is_broken():
    """None but chance has an AUC significantly below 1/2 on a task.

    One that has is found.
    """
    assert broken(page.committed()) == broken(page.rare_panel()) == []
    planted = split_table([[0.9, 0.9, 0.5]] * 3 + [[0.9, 0.39, 0.5]])
    assert broken(Survey(planted)) == ["sgd-avg on magic"]


def test_what_is_reproduced_under_readings_alone_counts_apart():
    about = {
        "kind": "mean",
        "where": "",
        "printed": "x",
        "verdict": Verdict.WITH_DEVIATION,
    }
    deviations = ["medv-is-a-feature", "medv-is-a-feature absolute-derivative"]
    rows = [
        LedgerRow(
            id=f"rudin2009/table-5/p={p}/auc",
            paper="rudin2009",
            deviation=names,
            **about,
        )
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
        LedgerRow(
            id=n, paper=n[:7], verdict=verdicts.get(n, Verdict.REPRODUCED), **about
        )
        for n in [*names, "rudin2009/table-5/p=4/auc", "rudin2009/table-5/p=8/auc"]
    ]
    header, _, *lines = tables.ledger_table(rows).splitlines()
    column = header.split(" | ").index
    shown = {
        cells[0].strip("| "): cells for cells in (line.split(" | ") for line in lines)
    }
    assert list(shown) == ["kar2014, additional", "kar2015", "rudin20"]
    for name, verdict, n, of in (
        ("kar2015", "not reproduced", 1, 35),
        ("kar2014, additional", "reproduced", 1, 8),
        ("rudin20", "reproduced", 2, 2),
    ):
        assert shown[name][column(verdict)] == str(n) and shown[name][-1] == f"{of} |"
        assert sum(map(int, shown[name][1:-1])) == n


def test_the_bench_of_advice_end_to_end(in_this_process, tmp_path):
    """On a list of ours in place of its tasks."""
    X = np.random.default_rng(0).standard_normal((200, 3))
    rows = pd.DataFrame(X.round(3)).assign(
        label=(X[:, 0] + 0.3 * X[:, 1] > 0.8).astype(int)
    )
    found = advice.examine(
        "mine",
        rows,
        seed=0,
        folder=tmp_path,
        rivals={"logistic-regression": {"C": 0.1}},
        solvers=["logistic-regression"],
        n_splits=2,
    )
    assert found["method"].tolist() == [advice.PICK, "logistic-regression"]
    assert set(found["k"]) == {10} and not found["drift"].any()
    assert found["hits"].min() >= 8  # of a list in which the positives are easily told
    assert found["compare"][0] == pytest.approx(found["hits"][0], abs=3)
    assert found["score"][0] == pytest.approx(found["compare"][0], abs=2)
