"""What the pages say of the survey, and the benches of advice and of intervals."""

import csv
import gzip
import re
from typing import NamedTuple

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
    reference = tmp_path / "survey.csv.gz"
    monkeypatch.setattr(program, "REFERENCE", reference)

    def collect(folder):
        monkeypatch.setattr("sys.argv", ["survey", "collect", str(folder)])
        program.main()

    run_of(tmp_path / "survey-long")
    collect(tmp_path)
    content = reference.read_bytes()
    collect(tmp_path)
    assert reference.read_bytes() == content
    later_values = {"split": [1, 2, 1, 2], "value": [0.5, 0.6, 0.7, 0.8]}
    run_of(tmp_path / "later" / "survey-long", **later_values)
    collect(tmp_path / "later")
    table = pd.read_csv(reference).set_index(["split", "solver"])[AP]
    assert table.to_dict() == {
        (0, "no-skill"): 0.3,
        (0, "sgd-avg"): 0.7,
        (1, "no-skill"): 0.5,
        (1, "sgd-avg"): 0.7,
        (2, "no-skill"): 0.6,
    }
    text = gzip.decompress(reference.read_bytes()).decode()
    assert (tmp_path / "survey.sha256").read_text() == program.digest(text)


def test_thinnings_are_the_splits_of_their_task():
    run = pd.DataFrame(
        {
            "task": ["fars", "fars", "fars-1in100-0", "fars-1in100-2", "yeast4"],
            "split": [0, 1, 0, 0, 2],
        }
    )
    expected = pd.DataFrame(
        {
            "task": ["fars", "fars", "fars-1in100", "fars-1in100", "yeast4"],
            "split": [0, 1, 0, 2, 2],
        }
    )
    pd.testing.assert_frame_equal(rare.joined(run), expected)


def test_the_rare_panel_looks_at_the_test_rows_of_each_task():
    """At 20 positives or more, and at 400 rows or more, of which 100 are a quarter."""
    names = [task.task for task in rare.read_tasks()]
    panel = Survey(split_table([[0.5, 0.4, 0.3]] * len(names), names=names), rare.TASKS)
    assert panel.looked_at(AP)["flare-F"] == 0.5 * 43
    assert page.sound(panel, AP) == list(panel.tasks.index)
    assert (panel.tasks["rows"] * panel.tasks["test_share"] >= 400).all()
    text = page.panel(panel, AP)
    assert "flare-F" not in text
    assert "| 37 |" in text


def test_rivals_choose_by_five_folds(tmp_path):
    task = next(task for task in rare.read_tasks(folds=True) if not task.package)
    [path] = rare.write(tmp_path, [task], folds=True)
    config = load_config(path)
    assert config.tuning.folds == 5
    assert len(config.solvers) == 4


class PanelByHand(NamedTuple):
    """Means over the splits: a line for each task, a column for each solver."""

    solvers: list
    means: np.ndarray


def read_rare_panel(metric):
    """Read the values of the panel; a fit that failed counts as no skill."""
    values = {}
    for path in (rare.REFERENCE, rare.FOLDED):  # folds take the place of the same fits
        with gzip.open(path, "rt") as file:
            for row in csv.DictReader(file):
                values[row["task"], row["solver"], row["split"]] = row[metric]
    tasks, solvers, splits = map(dict.fromkeys, zip(*values, strict=True))
    means = []
    for task in tasks:
        line = []
        for solver in solvers:
            of_splits = []
            for split in splits:
                chance = values[task, "no-skill", split]
                of_splits.append(float(values.get((task, solver, split), chance)))
            line.append(np.mean(of_splits))
        means.append(line)
    return PanelByHand(list(solvers), np.array(means))


@pytest.mark.parametrize("metric", ["precision_at_k(k=100)", AP])
def test_the_answer_of_the_rare_panel_by_hand(metric):
    solvers, means = read_rare_panel(metric)
    standing = by_hand(means)
    first = int(standing.rank.argmin())
    rank = standing.rank[first]
    n_tasks = len(means)
    ranks = np.array([rankdata(-np.round(row, 12)) for row in means])[:, first]
    drawn = np.random.default_rng(7).integers(0, n_tasks, (4000, n_tasks))
    low, high = np.percentile(ranks[drawn].mean(axis=1), [2.5, 97.5])
    shown = re.search(
        rf"`{solvers[first]}`.*is (?P<rank>[\d.]+) \((?P<low>[\d.]+) to"
        r" (?P<high>[\d.]+)\).*loses (?P<lost>[\d.]+)%",
        page.answer(page.rare_panel(), metric),
    )
    assert float(shown["rank"]) == round(rank, 1)
    assert float(shown["low"]) == pytest.approx(low, abs=0.25)
    assert float(shown["high"]) == pytest.approx(high, abs=0.25)
    assert float(shown["lost"]) == round(100 * standing.lost[first], 1)


def test_the_committed_values_are_those_that_were_collected():
    for path in (ranking.REFERENCE, rare.REFERENCE, rare.FOLDED):
        text = gzip.decompress(path.read_bytes()).decode()
        assert program.digest_of(path).read_text() == program.digest(text)


def test_a_situation_of_few_tasks_has_no_recommendation():
    survey = Survey(split_table(np.random.default_rng(0).integers(1, 9, (6, 3)) / 10))
    values = survey.values(AP)
    assert page.choose(survey, values.iloc[: page.LEAST_TASKS - 1]) is None
    choice = page.choose(survey, values.iloc[: page.LEAST_TASKS])
    assert choice.tasks == page.LEAST_TASKS
    assert ranking.kind_of(choice.rival) != ranking.kind_of(choice.solver)


def below_chance(survey):
    """Return contestants whose mean AUC on a task is significantly below 1/2.

    That is by three standard errors of the AUC of chance (Hanley and McNeil), since
    splits share rows.
    """
    auc = survey.values("auc")
    tasks = survey.tasks.loc[auc.index]
    n_pos = tasks.get("test_share", 0.3) * tasks["positives"]
    n_neg = n_pos * (tasks["rows"] / tasks["positives"] - 1)
    error = ((n_pos + n_neg + 1) / (12 * n_pos * n_neg)) ** 0.5
    is_below = auc.lt(0.5 - 3 * error, axis=0)
    texts = []
    for solver in auc.columns.drop("no-skill"):
        for task in auc.index[is_below[solver]]:
            texts.append(f"{solver} on {task}")
    return texts


def test_no_contestant_ranks_below_chance():
    assert below_chance(page.committed()) == []
    assert below_chance(page.rare_panel()) == []


def test_a_contestant_below_chance_is_noticed():
    table = split_table([[0.9, 0.9, 0.5]] * 3 + [[0.9, 0.39, 0.5]])
    assert below_chance(Survey(table)) == ["sgd-avg on magic"]


def ledger_row(name, paper, kind="order", **fields):
    return LedgerRow(id=name, paper=paper, kind=kind, where="", printed="x", **fields)


def read_ledger_table(rows):
    """Return the cells of each paper by the title of their column."""
    header, _rule, *lines = tables.ledger_table(rows).splitlines()
    titles = [title.strip("| ") for title in header.split(" | ")]
    counts = {}
    for line in lines:
        paper, *numbers = [cell.strip("| ") for cell in line.split(" | ")]
        counts[paper] = dict(zip(titles[1:], map(int, numbers), strict=True))
    return counts


def test_what_is_reproduced_under_readings_alone_counts_apart():
    with_deviation = {"kind": "mean", "verdict": Verdict.WITH_DEVIATION}
    rows = [
        ledger_row(
            "rudin2009/table-5/p=4/auc",
            "rudin2009",
            deviation="medv-is-a-feature",
            **with_deviation,
        ),
        ledger_row(
            "rudin2009/table-5/p=8/auc",
            "rudin2009",
            deviation="medv-is-a-feature absolute-derivative",
            **with_deviation,
        ),
    ]
    counts = read_ledger_table(rows)["rudin2009"]
    assert counts[tables.READING] == 1
    assert counts[str(Verdict.WITH_DEVIATION)] == 1


def test_a_sentence_counts_once_and_additional_claims_separately():
    """One has 35 rows, an additional one 8, and two rows have none in common."""
    seconds = [c for c in load_claims() if "-against-cutting-plane/seconds" in c.id]
    printed = [c.id for c in seconds if c.id.startswith("kar2015/section-6/")]
    additional = [c.id for c in seconds if c.ours and not c.id.endswith("to-accuracy")]
    assert len(printed) == 35
    assert len(additional) == 8
    alone = ["rudin2009/table-5/p=4/auc", "rudin2009/table-5/p=8/auc"]
    verdicts = dict.fromkeys([*printed, *additional, *alone], Verdict.REPRODUCED)
    verdicts[printed[0]] = Verdict.NOT_REPRODUCED
    verdicts[printed[1]] = Verdict.NO_DATA
    verdicts[additional[0]] = Verdict.NO_DATA
    rows = [
        ledger_row(name, paper=name.partition("/")[0], verdict=verdict)
        for name, verdict in verdicts.items()
    ]
    counts = read_ledger_table(rows)
    assert given(counts.pop("kar2015")) == {"not reproduced": 1, "rows": 35}
    assert given(counts.pop("kar2014, additional")) == {"reproduced": 1, "rows": 8}
    assert given(counts.pop("rudin2009")) == {"reproduced": 2, "rows": 2}
    assert not counts


def given(counts):
    """Return the counts that are not 0."""
    return {title: n for title, n in counts.items() if n}


def test_the_bench_of_advice_end_to_end(in_this_process, tmp_path):
    """It is run on a list of ours in place of its tasks."""
    X = np.random.default_rng(0).standard_normal((200, 3))
    is_positive = X[:, 0] + 0.3 * X[:, 1] > 0.8  # easily told from the others
    rows = pd.DataFrame(X.round(3)).assign(label=is_positive.astype(int))
    results = advice.examine(
        "mine",
        rows,
        seed=0,
        folder=tmp_path,
        rivals={"logistic-regression": {"C": 0.1}},
        solvers=["logistic-regression"],
        n_splits=2,
    )
    assert results["method"].tolist() == [advice.PICK, "logistic-regression"]
    assert set(results["k"]) == {10}
    assert not results["drift"].any()
    assert results["hits"].min() >= 8
    of_pick = results.loc[0]
    assert of_pick["compare"] == pytest.approx(of_pick["hits"], abs=3)
    assert of_pick["score"] == pytest.approx(of_pick["compare"], abs=2)
