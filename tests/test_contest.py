"""Which method is recommended.

The choice by hand, known winners, one list in every format.
"""

import json
import re
import warnings
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import AdaBoostClassifier, BaggingClassifier
from sklearn.linear_model import LinearRegression, SGDClassifier
from sklearn.naive_bayes import GaussianNB
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import precbench
from precbench.advice.choice import Expected, choice_table, choose_method
from precbench.advice.contest import _name_of, prepare
from precbench.advice.given_rows import read_rows
from precbench.core.errors import InputError
from precbench.experiment.division import divide_rows
from precbench.experiment.plan import make_plan
from precbench.model.model import Model
from precbench.ranking.metrics import Metric, precision_at_k
from precbench.ranking.statistics import (
    binomial_interval,
    resampled_interval,
    resampled_test,
)
from precbench.ranking.topk import resolve_k
from precbench.results.read import read_run
from precbench.solvers import SOLVERS
from tests.helpers import invoke, succeed
from tests.sentences import done_already, raises, refused, warns
from tests.test_report import ABOUT, measures, trial, write

pytestmark = pytest.mark.usefixtures("in_this_process")
SHARE = 0.3
FORMS = {
    "trees": "nonlinear",
    "map": "random features",
    "stack": "ensemble",
    "extra-trees": "nonlinear",
    "ensemble": "ensemble",
    "sgd-avg": "linear",
    "logistic-regression": "linear",
}
VALUES = {
    "logistic-regression": [0.30, 0.35, 0.30, 0.35],
    "trees": [0.80, 0.70, 0.80, 0.70],
    # the fourth split failed
    "map": [0.75, 0.75, 0.70, 0.75],
    "sgd-avg": [0.80, 0.60, 0.75],
}
SECONDS = {
    "logistic-regression": 1.0,
    "trees": 4.0,
    "map": 3.0,
    "sgd-avg": 0.5,
    "stack": 9.0,
}


@pytest.fixture
def chosen(tmp_path):
    """Return the choice among methods with given values, one for each split.

    A method with fewer values than others has failed in the splits that follow.
    """

    def choose(values, n_splits=None, dcg=None, prefer=None, average_precision=None):
        n_splits = n_splits or max(map(len, values.values()))
        prec = Metric("precision_at_k", {"k": 20})
        folder = tmp_path / str(len([*tmp_path.iterdir()]))
        columns = trial("letter", "any", 0, [1.0], [0.5])[0]
        rows = []
        for solver, precisions in values.items():
            seconds = [SECONDS.get(solver, 1.0)]
            for split, value in enumerate(precisions):
                rows += trial("letter", solver, split, seconds, [value], prec.label)
        failure = {"metric": prec.label, "status": "failed", "reason": "no"}
        for solver, precisions in values.items():
            for split in range(len(precisions), n_splits):
                rows += trial("letter", solver, split, **failure)
        for solver, value in (dcg or {}).items():
            for split in range(n_splits):
                rows += trial("letter", solver, split, [1.0], [value], "dcg")
        metric = "average_precision"
        for solver, precisions in (average_precision or {}).items():
            for split, value in enumerate(precisions):
                rows += trial("letter", solver, split, [1.0], [value], metric)
        more = {"dcg": dcg, "average_precision": average_precision}
        metrics = [prec, *(Metric(name, {}) for name, given in more.items() if given)]
        data = {"rows": 1000, "features": 3, "positives": 100, "stand_in": False}
        data |= {"training_rows": 0, "test_share": SHARE}
        about = {
            **ABOUT,
            "metrics": [metric.label for metric in metrics],
            "measures": measures(*metrics),
            "solvers": list(values),
            "forms": FORMS,
            "datasets": ["letter"],
            "data": {"letter": data},
        }
        run = read_run(write(folder, pd.DataFrame(rows, columns=columns), about))
        return choose_method(run, prefer=prefer)

    return choose


def test_the_best_its_ties_and_the_rest(chosen):
    choice = chosen(VALUES)
    assert choice.decided
    assert choice.recommended == choice.best == "trees"
    assert choice.equivalent == []
    assert choice.undecided == ["map"]
    assert choice.worse == ["logistic-regression"]
    assert choice.k == 20
    assert choice.rows == 300
    assert choice.positives == 30
    assert choice.splits == 4
    assert choice.by_chance == 0.1
    assert choice.expected is None  # without scores
    assert list(choice.values["solver"])[:2] == ["trees", "map"]
    trees, log = choice.methods["trees"], choice.methods["logistic-regression"]
    interval = resampled_interval(VALUES["trees"], SHARE)
    assert (trees["mean"], trees["low"], trees["high"]) == pytest.approx(interval)
    test = resampled_test(VALUES["trees"], VALUES["logistic-regression"], SHARE)
    logged = [log[name] for name in ("behind", "behind_low", "behind_high", "p")]
    assert logged == pytest.approx(list(test))
    low, high = (f"{20 * trees[name]:.1f}" for name in ("low", "high"))
    few, most = (f"{20 * log[name]:.1f}" for name in ("behind_low", "behind_high"))
    assert choice.card == [
        f"Use trees: about 15.0 hits in 20 ({low} to {high}), 7.5 times chance.",
        (
            "logistic-regression finds 8.5 hits fewer in 20 of 300 held-out rows"
            f" ({few} to {most})."
        ),
    ]
    assert choice.text == " ".join(choice.card)
    json.dumps(choice.to_dict(), allow_nan=False)
    failed = choice.methods["sgd-avg"]
    assert (failed["verdict"], failed["outcomes"]) == (
        "incomplete",
        "3 ok, 1 failed: no",
    )
    rows = [[cell.text for cell in row] for row in choice_table(choice, "Mine").rows]
    assert [row[0] for row in rows][:2] == ["trees", "map"]
    hits, fewer = zip(*(row[1:3] for row in rows), strict=True)
    assert [text.partition(" (")[0] for text in hits] == ["15.0", "14.8", "6.5", "14.3"]
    assert [text.partition(" (")[0] for text in fewer] == ["", "0.3", "8.5", "1.0"]
    assert [text[-1:] for text in fewer] == ["", ")", ")", "†"]


LOG = "logistic-regression"
HIGH = [0.8, 0.8, 0.85, 0.85] * 5
STACK = {
    "trees": [0.8, 0.75, 0.85, 0.8],
    "stack": [0.75, 0.8, 0.8, 0.8],
    "map": [0.3, 0.4] * 2,
}


@dataclass(frozen=True)
class Choice:
    """What is chosen among methods with these precisions, one for each split."""

    values: dict
    expected: dict
    text: str = ""
    dcg: dict | None = None


CHOICES = {
    "the first of equal means, whatever their last bits": Choice(
        {"map": [0.3, 0.2, 0.1], "trees": [0.1, 0.2, 0.3]},
        expected={"best": "map", "undecided": ["trees"]},
    ),
    "one split tells nothing apart": Choice(
        {"trees": [0.8], LOG: [0.3]},
        expected={"decided": False},
        text="1 split cannot show whether methods differ",
    ),
    "nor do methods that failed": Choice(
        {"map": [0.05] * 3, "trees": [0.9], LOG: [0.8]},
        expected={"decided": False, "worse": []},
        text="With 30 positives in each held-out list, no method is measurably better",
    ),
    "noise about a share of a tenth": Choice(
        {
            "trees": [0.4, 0.1, 0.5, 0.2],
            LOG: [0.15, 0.1, 0.2, 0.15],
            "map": [0.2, 0.1, 0.1, 0],
        },
        expected={"decided": False, "equivalent": [], "needed": 18000},
        text="you need about 18,000 positives; you have 100.",
    ),
    "of ties that of the greater DCG": Choice(
        {"trees": [0.80, 0.70, 0.80, 0.70], "map": [0.75, 0.75, 0.70, 0.75]},
        expected={"best": "map"},
        dcg={"trees": 3.0, "map": 3.5},
    ),
    "not against a significant difference": Choice(
        {"trees": [0.80, 0.82, 0.81, 0.8], "map": [0.4, 0.41, 0.42, 0.4]},
        expected={"best": "trees", "worse": ["map"]},
        dcg={"trees": 3.0, "map": 3.5},
    ),
    "a clear winner": Choice(
        {"trees": [0.8, 0.82, 0.81], LOG: [0.3, 0.31, 0.33]},
        expected={"decided": True, "undecided": [], "needed": None},
        text="logistic-regression finds ",
    ),
    "near the best and near chance": Choice(
        {"trees": [0.11, 0.09, 0.1, 0.1], LOG: [0.1] * 4},
        expected={"decided": False, "equivalent": []},
    ),
    "where less than a quarter of the hits may be lost": Choice(
        {"trees": [0.8, 0.85] * 2, LOG: [0.8, 0.8, 0.85, 0.8], "map": [0.3, 0.2] * 2},
        expected={"decided": True, "undecided": [LOG], "worse": ["map"]},
        text=f"{LOG} is not measurably worse in ",
    ),
    "but not where more": Choice(
        {"trees": [0.8, 0.5, 0.8, 0.5], LOG: [0.5, 0.8, 0.4, 0.8]},
        expected={"decided": False},
        text="logistic-regression might find up to 7.0 hits more in 20 of 300.",
    ),
    "an ensemble, whatever the DCG": Choice(
        STACK,
        expected={"best": "stack", "undecided": ["trees"], "worse": ["map"]},
        dcg={"trees": 4.0, "stack": 3.0},
    ),
    "unless another has significantly more hits": Choice(
        STACK | {"stack": [0.5, 0.52, 0.5, 0.51]},
        expected={"best": "trees", "worse": ["stack", "map"]},
    ),
    "or it has failed": Choice(
        STACK | {"stack": [0.9, 0.9]},
        expected={"best": "trees"},
    ),
    "but undecided": Choice(
        {"stack": [0.2, 0.1, 0.2, 0.1], LOG: [0.1, 0.2, 0.1, 0.2]},
        expected={"decided": False},
        text="An ensemble came closest to the best method on our test lists.",
    ),
    "an ensemble is the least simple, where methods never differ on 67 rows": Choice(
        {"stack": HIGH, "trees": HIGH, "map": [0.3, 0.4] * 10},
        expected={"best": "stack", "equivalent": ["stack"], "recommended": "trees"},
    ),
    "but not on 51 rows": Choice(
        {"stack": HIGH[:4], "trees": HIGH[:4]},
        expected={"recommended": "stack", "undecided": ["trees"]},
    ),
}


@pytest.mark.parametrize("case", CHOICES.values(), ids=CHOICES)
def test_what_is_chosen(chosen, case):
    choice = chosen(case.values, dcg=case.dcg)
    assert {name: getattr(choice, name) for name in case.expected} == case.expected
    assert case.text in choice.text
    assert "nan" not in choice.text


def test_the_simplest_is_logistic_regression_and_taken_where_it_is_equivalent(chosen):
    """Also where another linear method has the better mean."""
    values = {
        "trees": HIGH,
        "sgd-avg": HIGH,
        LOG: [v - 0.001 * (v > 0.8) for v in HIGH],
    }
    choice = chosen(values | {"map": [0.3, 0.4] * 10})
    assert choice.best == "trees"
    assert choice.worse == ["map"]
    assert choice.decided
    assert choice.recommended == LOG
    assert choice.equivalent == ["trees", "sgd-avg"]
    assert choice.text.startswith(f"Use {LOG}: about 16.5 hits in 20 (")
    assert choice.card[1].startswith(
        "It is as good as trees in 20 of 300 held-out rows (within 1"
    )
    assert choice.values["solver"].tolist() == [LOG, "trees", "sgd-avg", "map"]
    bold = [
        [cell.text for cell in row if cell.bold]
        for row in choice_table(choice, "").rows
    ]
    assert bold == [[LOG], [], [], []]


FULL = [1.0, 0.95, 1.0, 1.0] * 5  # of hits: 20 at the top
GOOD, POOR = [0.90, 0.91, 0.90, 0.92] * 5, [0.70, 0.74, 0.71, 0.72] * 5


@pytest.mark.parametrize(
    ("whole_list", "expected"),
    [
        pytest.param(
            {"trees": GOOD, LOG: POOR}, "trees", id="behind on the whole list"
        ),
        pytest.param(
            {"trees": GOOD, LOG: GOOD[::-1]}, LOG, id="as good on the whole list"
        ),
        pytest.param({"trees": POOR, LOG: GOOD}, LOG, id="better on the whole list"),
        pytest.param(None, LOG, id="the whole list was not measured"),
    ],
)
def test_where_all_rows_at_the_top_are_hits_the_whole_list_decides(
    chosen, whole_list, expected
):
    choice = chosen({"trees": FULL, LOG: FULL}, average_precision=whole_list)
    assert choice.best == "trees"
    assert choice.recommended == expected


@pytest.mark.parametrize("share", [0.2, 0.5])
def test_where_few_rows_at_the_top_are_hits_the_whole_list_decides(chosen, share):
    """One hit more or less, which is no difference in practice, is a tenth or a quarter
    here.
    """
    values = [share] * 20
    whole_list = {"trees": GOOD, LOG: POOR}
    assert chosen({"trees": values, LOG: values}).recommended == LOG
    with_list = chosen({"trees": values, LOG: values}, average_precision=whole_list)
    assert with_list.recommended == "trees"


@pytest.mark.parametrize("values", [[0.1, 0.1, 0.1], [0.0, 0.0], [1.0]])
def test_no_interval_vanishes(chosen, values):
    """It is that of the rows at the top of any list.

    Of 66.7 rows, each is held out by chance.
    """
    held_out = (
        np.random.default_rng(0).random((2000, len(values), round(20 / SHARE))) < SHARE
    )
    n_tested = held_out.any(axis=1).sum(axis=1).mean()
    for row in chosen({"trees": values, LOG: values}).methods.values():
        assert row["low"] < row["high"]
        exact = binomial_interval(values[0], round(n_tested))
        assert (row["low"], row["high"]) == pytest.approx(exact)


@pytest.mark.parametrize("values", [[0.8, 0.8001], [0.35, 0.35, 0.3501], [1.0, 0.9999]])
def test_values_that_nearly_agree_are_not_certain(chosen, values):
    """Two lists that agree by chance know no more than the rows at their top."""
    [row] = chosen({LOG: values}).methods.values()
    n_tested = round(20 / SHARE * (1 - (1 - SHARE) ** len(values)))
    low, high = binomial_interval(np.mean(values), n_tested)
    assert (row["low"], row["high"]) == pytest.approx((low, high), abs=0.02)


def test_a_statement_on_chance_agrees_with_the_forecast(chosen):
    choice = chosen({LOG: [0.1, 0.9, 0.1]})
    assert "no method is measurably better than chance" in choice.text
    k, chance = choice.k, choice.by_chance * choice.k
    for low, is_chance in ((0.0, True), (chance, True), (chance + 1, False)):
        expected = Expected(rows=100, k=k, hits=10.0, low=low, high=20.0, lift=2.0)
        text = replace(choice, expected=expected).text
        assert ("better than chance" in text) is is_chance
        assert (
            f"the hits of {LOG} differ too much between the lists" in text
        ) is not is_chance


def test_a_simple_method_is_preferred_within_one_standard_error(chosen):
    near = {
        "trees": [0.8, 0.75, 0.85, 0.8],
        "map": [0.3] * 4,
        LOG: [0.75, 0.8, 0.8, 0.8],
    }
    assert chosen(near).recommended == "trees"
    assert chosen(near).methods[LOG]["p"] > 0.3
    choice = chosen(near, prefer="simple")
    assert (choice.recommended, choice.best) == (LOG, "trees")
    assert "It is within one standard error of trees, and simpler." in choice.text
    gap = choice.methods["trees"]
    assert 0 > gap["behind"] > -gap["error"] > gap["behind_low"] - gap["behind"]
    assert (
        chosen(near | {LOG: [0.7, 0.72, 0.75, 0.7]}, prefer="simple").recommended
        == "trees"
    )


def test_the_first_k_of_a_longer_list_are_another_share(tmp_path):
    """A thousand lists of another length, of the same distribution."""
    X, y = rows_of(n=600)
    np.savez(tmp_path / "mine.npz", X=X, y=y)
    options = ["--k", 20, "--solver", LOG, "--json", "--out", tmp_path]
    choice = json.loads(succeed("compare", tmp_path / "mine.npz", *options).stdout)
    assert choice["list"]["rows"] == 600
    assert choice["list"]["k"] == 20
    assert choice["k"] == 6
    assert abs(choice["list"]["hits"] - 20 * choice["values"][0]["mean"]) < 2
    options += ["--list-rows", 2000]
    longer = json.loads(succeed("compare", tmp_path / "mine.npz", *options).stdout)[
        "list"
    ]
    assert 18 <= longer["hits"] <= longer["high"] == 20
    refused(["compare", tmp_path / "mine.npz", "--k", 20, "--list-rows", 19], "20 19")
    options = ["--k", 20, "--solver", LOG, "--out", tmp_path, "--list-rows", 20_000]
    text = " ".join(succeed("compare", tmp_path / "mine.npz", *options).stdout.split())
    assert (
        "in the first 1 of 180 held-out rows, a larger share than 20 of 20,000" in text
    )


def test_no_result_gives_an_error(chosen):
    with raises(InputError, "2"):
        chosen({"trees": [], "map": []}, n_splits=2)


def rows_of(signal=lambda X: X @ [1, 1, 0, 0], n=300, share=0.1, n_features=4):
    rng = np.random.default_rng(3)
    X = rng.standard_normal((n, n_features))
    scores = signal(X) + 0.3 * rng.standard_normal(n)
    return X, (scores > np.quantile(scores, 1 - share)).astype(int)


def write_table(folder, X, y, **columns):
    """Write labelled rows as mine.csv."""
    table = pd.DataFrame(X, columns=list("abcd")).assign(**columns, label=y)
    table.to_csv(folder / "mine.csv", index=False)


def compare_table(folder, *options):
    """Compare methods on mine.csv; the results go to a folder out beside it."""
    out = ["--out", folder / "out"]
    return succeed("compare", folder / "mine.csv", "--label", "label", *options, *out)


TREES = "hist-gradient-boosting"


@pytest.mark.parametrize(
    ("signal", "n_features", "rival", "best"),
    [
        pytest.param(
            lambda X: X[:, 0] * X[:, 1],
            4,
            TREES,
            TREES,
            id="a product of two columns: trees win",
        ),
        pytest.param(
            lambda X: X @ np.ones(40),
            40,
            TREES,
            "logistic-regression",
            id="a sum of many columns: a linear method wins",
        ),
        pytest.param(
            lambda X: X @ np.ones(40),
            40,
            "linear-svm",
            None,
            id="a sum of many columns: two linear methods tie",
        ),
    ],
)
def test_known_winners_and_ties(signal, n_features, rival, best):
    X, y = rows_of(signal, 600, n_features=n_features)
    choice = precbench.compare(
        X,
        y,
        k=50,
        solvers=["logistic-regression", rival],
        n_splits=10,
        effort="thorough",
    )
    assert bool(choice.worse) == (best is not None)
    assert choice.decided
    assert best in (None, choice.best)


def test_a_frame_is_compared_drawn_and_fitted_as_its_file(tmp_path):
    """What it lacks is filled in from the training rows of each split alone."""
    X, y = rows_of()
    rng = np.random.default_rng(1)
    frame = pd.DataFrame(X, columns=list("abcd")).assign(
        e=rng.choice(["x", "y", "z"], 300)
    )
    frame = frame.mask(rng.random(frame.shape) < 0.3)
    frame.assign(label=y).to_csv(tmp_path / "mine.csv", index=False)
    few = {"k": 15, "solvers": [LOG, TREES], "n_splits": 2, "categorical": "one-hot"}
    choice = precbench.compare(frame, y, missing="most-frequent", **few)
    options = ["--k", 15, "--splits", 2, "--solver", LOG, "--solver", TREES, "--json"]
    options += ["--categorical", "one-hot", "--missing", "most-frequent"]
    saved = compare_table(tmp_path, *options, "--save", tmp_path / "best.npz")
    of_file = json.loads(saved.stdout)
    expected = [[row["solver"], row["mean"]] for row in of_file["values"]]
    assert choice.values[["solver", "mean"]].to_numpy().tolist() == expected
    assert choice.text == of_file["text"] == repr(choice)
    assert (choice.table["hits"].tolist()) == [choice.k * mean for _, mean in expected]
    page = choice._repr_html_()
    assert page.count("<table") == 2
    assert "Hits by length of the list, from 300 new rows" in page
    assert [len(axes.lines) for axes in choice.plot().axes[:2]] == [3]
    fitted, saved = choice.fit(), Model.load(tmp_path / "best.npz")
    with pytest.warns(UserWarning, match="filled in"):
        scores = [model.predict_proba(frame) for model in (fitted, saved)]
        assert choice.explain(frame).equals(saved.explain(frame))
        assert choice.fit() is fitted
    assert np.array_equal(*scores)
    assert fitted.about["precision_at_k"] == saved.about["precision_at_k"]


def test_a_frame_that_holds_the_label_is_compared_with_a_warning():
    X, y = rows_of()
    frame = pd.DataFrame(X).assign(label=y).rename(columns=str)
    with pytest.warns(
        UserWarning, match="X: column 'label' has an AUC of 1.000 alone; .* leak"
    ):
        precbench.compare(frame, frame["label"], k=15, solvers=[LOG], n_splits=1)


def test_arrays_with_times_and_groups_are_compared_as_their_file(tmp_path):
    """And the importance of columns is measured on the splits of the comparison."""
    X, y = rows_of()
    beside = {"groups": [f"p{i // 2}" for i in range(300)], "time": np.arange(300) // 3}
    write_table(tmp_path, X, y, **beside)
    frame = pd.DataFrame(X, columns=list("abcd"))
    choice = precbench.compare(
        frame, y, k=15, solvers=[LOG, TREES], n_splits=2, **beside
    )
    options = ["--k", 15, "--splits", 2, "--solver", LOG, "--solver", TREES, "--json"]
    options += ["--groups", "groups", "--time", "time", "--save", tmp_path / "best.npz"]
    assert choice.text == json.loads(compare_table(tmp_path, *options).stdout)["text"]
    importance = json.loads(choice.recipe.importance.model_dump_json())
    assert Model.load(tmp_path / "best.npz").about["importance"] == importance


def test_an_interrupted_comparison_in_python_resumes(tmp_path, capsys):
    """With a bar, if it is asked for."""
    X, y = rows_of()
    options = {"k": 15, "n_splits": 2, "folder": tmp_path / "kept"}
    one = precbench.compare(X, y, solvers=[LOG], **options)
    records = sorted((tmp_path / "kept" / "trials").glob("*.json"))
    written = [path.stat().st_mtime_ns for path in records]
    assert capsys.readouterr().err == ""
    both = precbench.compare(X, y, solvers=[LOG, TREES], **options, verbose=True)
    assert "100%" in capsys.readouterr().err
    assert len(records) == 2
    assert [path.stat().st_mtime_ns for path in records] == written
    assert both.methods[LOG]["mean"] == one.methods[LOG]["mean"]
    X[0, 0] += 1  # other rows have other trials
    precbench.compare(X, y, solvers=[LOG], **options)
    assert len([*(tmp_path / "kept" / "trials").glob("*.json")]) == 6
    succeed("report", tmp_path / "kept")


def test_classifiers_of_scikit_learn_are_contestants(tmp_path):
    X, y = rows_of()
    np.savez(tmp_path / "mine.npz", X=X, y=y)
    few = {"k": 15, "n_splits": 2, "n_jobs": 1}
    own = AdaBoostClassifier(n_estimators=5)
    choice = precbench.compare(
        X, y, solvers=["logistic-regression", own, GaussianNB()], **few
    )
    assert {"AdaBoostClassifier, n_estimators=5", "GaussianNB"} < {*choice.table.index}
    assert (choice.values["n"] == 2).all()
    data = {"file": tmp_path / "mine.npz"}
    plan = make_plan(
        prepare(data, 15, folder=tmp_path, solvers=[own], n_splits=2).experiment
    )
    by_hand, alone = [], AdaBoostClassifier(n_estimators=5, random_state=0)
    for one, _ in plan.trials:
        rows = divide_rows(one, plan.datasets["list"])[0]
        fitted = make_pipeline(StandardScaler(), alone).fit(
            X[rows.train], y[rows.train]
        )
        by_hand.append(
            precision_at_k(y[rows.test], fitted.decision_function(X[rows.test]), "5 %")
        )
    assert choice.methods["AdaBoostClassifier, n_estimators=5"]["mean"] == np.mean(
        by_hand
    )
    # Their own parameters of the names that ours share.
    more = [
        SGDClassifier(alpha=np.float64(0.01)),
        MLPClassifier(shuffle=False, max_iter=5),
    ]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of an unfinished training
        choice = precbench.compare(X, y, solvers=["sgd-avg", *more], **few)
    labels = {
        "sgd-avg",
        "SGDClassifier, alpha=0.01",
        "MLPClassifier, max_iter=5, shuffle=False",
    }
    assert {*choice.table.index} == labels
    unknown = (
        "multiclass.OneVsRestClassifier",
        "tests.test_common.X",
        "foo.Bar",
        "svm.x",
    )
    assert not any(f"sklearn.{name}" in SOLVERS for name in unknown)
    for wrong, says in (
        (AdaBoostClassifier, "AdaBoostClassifier()"),
        (LinearRegression(), "LinearRegression()"),
        (BaggingClassifier(GaussianNB()), "estimator"),
    ):
        with raises(InputError, says):
            precbench.compare(X, y, solvers=[wrong], **few)


def test_solvers_of_precbench_are_contestants_as_estimators():
    X, y = rows_of()
    few = {"k": 15, "n_splits": 2, "n_jobs": 1}
    by_max = precbench.PerceptronAtK(variant="max", keep="last")
    contestants = [precbench.SGDAtK(eta0=1.0), precbench.PerceptronAtK(), by_max, "bbr"]
    choice = precbench.compare(X, y, solvers=contestants, **few)
    labels = ["bbr", "perceptron-avg", "perceptron-max, keep=last", "sgd-avg, eta0=1.0"]
    assert sorted(choice.table.index) == labels
    assert not choice.methods["perceptron-max, keep=last"]["chosen"]  # nothing is tuned


def compared(folder):
    """Return the folder of the results of a comparison of mine.csv."""
    [results] = (folder / "out").glob("compare-*mine-*k-*")
    return results


def test_other_files_of_one_name_and_other_lengths_have_results_of_their_own():
    name = _name_of(Path("b/data.csv"), Path(), "label", ["1 %", 0.5])
    assert name == "compare-b-data-label-k-1-percent-0-5"
    files = [
        "\u5ba2.csv",
        "\u767a.csv",
        ".b",
        "b.2024-01.csv",
        "b.2024-02.csv",
        "b.parquet",
    ]
    files += ["a/x/y/b.csv", "b/x/y/b.csv"]
    others = [_name_of(Path(file), Path(), "", [20]) for file in files]
    assert len({*others}) == len(files)
    assert others[2:4] == ["compare-b-k-20", "compare-b-2024-01-k-20"]
    assert all(re.fullmatch(r"[A-Za-z0-9_-]+", name) for name in others)


def test_the_best_method_is_fitted_to_all_rows_and_saved(tmp_path):
    X, y = rows_of(lambda X: X[:, 0] * X[:, 1], 600)
    write_table(tmp_path, X, y)
    options = [
        "--k",
        15,
        "--splits",
        3,
        "--solver",
        "sgd-avg, random features",
        "--solver",
        "pgd",
    ]
    done = compare_table(tmp_path, *options, "--save", tmp_path / "best.npz", "--json")
    best = json.loads(done.stdout)["values"][0]
    model = Model.load(tmp_path / "best.npz")
    assert best["solver"] == "sgd-avg, random features"
    assert best["chosen"].startswith(f"eta0={model.params['eta0']:g} (")  # most often
    assert read_run(compared(tmp_path)).config == ""  # it is in no file
    about = model.about
    assert about["precision_at_k"] == best["mean"]
    assert about["precision_at_k_interval"] == [best["low"], best["high"]]
    assert about["auc_interval"][0] < about["auc"] < about["auc_interval"][1]
    losses = {
        column["column"]: column["loss"] for column in about["importance"]["columns"]
    }
    assert min(losses["a"], losses["b"]) > 0.1 > max(losses["c"], losses["d"])
    page = (compared(tmp_path) / "report.html").read_text(encoding="utf-8")
    assert "What sgd-avg, random features ranks by" in page
    assert f"{losses['a']:.3f}" in page
    assert y[np.argsort(-model.decision_function(X))[:30]].mean() > 0.6


def test_the_parameters_of_failed_trials_do_not_count():
    """Three of seventy-five groups have positives, so that most splits fail."""
    rng = np.random.default_rng(0)
    groups = np.repeat(np.arange(75), 20)
    y = ((groups < 3) & (rng.random(1500) < 0.5)).astype(int)
    table = pd.DataFrame({"a": y + rng.standard_normal(1500)})
    choice = precbench.compare(table, y, k=5, groups=groups, solvers=["sgd-avg"])
    # Of the first splits some fail, so that all are tried.
    assert re.search(r"results on [1-9] of 10 splits only", choice.text)
    assert isinstance(choice.fit().params["eta0"], float)


def test_the_config_repeats_the_comparison(tmp_path):
    X, y = rows_of(share=0.4)
    write_table(
        tmp_path, X, y, day=pd.date_range("2026-01-01", periods=len(y)).astype(str)
    )
    config = tmp_path / "again.yaml"
    options = ["--time", "day", "--k", 50, "--solver", LOG, "--config", config]
    text = compare_table(tmp_path, *options, "--effort", "thorough").stdout
    assert "1 method on 5 splits" in text
    assert f"Use {LOG}: about " in text
    assert done_already(invoke("run", config, "--out", tmp_path / "out").stdout) == 5
    run = read_run(compared(tmp_path))
    assert run.config == "again.yaml"
    assert run.protocol.startswith("trained on the past")


@pytest.mark.parametrize("k", [1, 90, 200, 0.01, 0.99, 1.0, "1 %", "40 %", "100 %"])
def test_k_is_a_part_of_the_held_out_rows(k, tmp_path):
    X, y = rows_of()
    np.savez(tmp_path / "mine.npz", X=X, y=y)
    share = {"1": "0.333333 %", "90": "30 %", "200": "66.6666 %"}.get(f"{k}", k)
    contest = prepare({"file": tmp_path / "mine.npz"}, k, folder=tmp_path)
    assert contest.experiment.metrics[0].params["k"] == share
    assert resolve_k(share, 30, 300) == resolve_k(k, 30, 300)


@pytest.mark.promise("R6")
@pytest.mark.parametrize(
    ("options", "places"),
    [
        pytest.param(["--k", 400], "k 400 300", id="k above the rows"),
        pytest.param(["--k", "5 percent"], "'5 %'", id="k in words"),
        pytest.param(
            ["--solver", "sgd-agv"], "'sgd-agv' 'sgd-avg'", id="misspelt solver"
        ),
        pytest.param(
            ["--config", "mine.csv"], "--config mine.csv", id="config over the rows"
        ),
        pytest.param(["--config", "no/such.yaml"], "", id="config in no folder"),
        pytest.param(
            ["--save", "mine.csv"], "--save mine.csv", id="model over the rows"
        ),
        pytest.param(
            ["--time", "a", "--splits", 0], "--splits", id="no splits in time"
        ),
    ],
)
def test_what_is_refused_before_training(options, places, work_folder):
    write_table(work_folder, *rows_of())
    refused(["compare", "mine.csv", "--label", "label", *options], places)
    assert [path.name for path in work_folder.iterdir()] == ["mine.csv"]


def test_too_few_positives_are_refused_before_training(work_folder):
    table = pd.DataFrame(
        np.random.default_rng(0).standard_normal((300, 2)), columns=["a", "b"]
    )
    options = "--label y --k 20 --solver logistic-regression"
    few = ["compare", "few.csv", *options.split()]
    table.assign(y=table.index < 2).astype(float).to_csv("few.csv", index=False)
    assert "few.csv: 2 positives in 300 rows are too few" in refused(few)
    assert [path.name for path in work_folder.iterdir()] == ["few.csv"]
    table.assign(y=table.index < 5).astype(float).to_csv("few.csv", index=False)
    result = invoke(*few, "--splits", 2)
    assert result.exit_code == 0
    assert "Use logistic-regression: about " in result.stdout
    assert "2 splits cannot show whether methods differ." in result.stdout


@pytest.mark.parametrize(
    ("changes", "places"),
    [
        pytest.param({"y": [0, 1, 2] * 10}, "y positive 0, 1, 2", id="three labels"),
        pytest.param({"y": [0, 1]}, "", id="fewer labels than rows"),
        pytest.param({"X": np.full((30, 2), np.nan)}, "NaN missing", id="gaps alone"),
        pytest.param({"k": 40}, "40 30", id="k above the rows"),
        pytest.param({"groups": [1, 2]}, "groups 30", id="fewer groups than rows"),
        pytest.param({"groups": [None, *range(29)]}, "groups 1", id="a group missing"),
        pytest.param(
            {"y": [np.nan, *[0, 1] * 14, 1]},
            "y 1 missing",
            id="a numeric label missing",
        ),
        pytest.param(
            {"y": [*"ab" * 14, None, "a"]},
            "y 29 missing",
            id="a label in words missing",
        ),
        pytest.param({"y": [1] * 30}, "y every label 1", id="one label"),
        pytest.param({"y": [[0, 1]] * 15}, "y label", id="two columns of labels"),
        pytest.param(
            {"X": pd.DataFrame({"a": ["x"] * 30})},
            "'a' 1 'x'",
            id="words among features",
        ),
        pytest.param({"solvers": "pgd"}, "solvers 'pgd'", id="misspelt solver"),
        pytest.param({"n_splits": 0}, "n_splits 1 0", id="no splits"),
        pytest.param(
            {"random_state": np.random.RandomState(0)},
            "random_state",
            id="random state of NumPy",
        ),
        pytest.param({"n_jobs": 0}, "n_jobs 1 -1 0", id="no jobs"),
        pytest.param({"y": "eight"}, "y row 'eight'", id="labels as one word"),
        pytest.param(
            {
                "X": pd.DataFrame({"a": range(30)}),
                "groups": pd.Series({29 - i: i for i in range(30)}),
            },
            "groups X groups.loc[X.index]",
            id="groups in another order than X",
        ),
        pytest.param(
            {"X": pd.DataFrame({"a": range(40)})[10:], "y": pd.Series([0, 1] * 15)},
            "y.loc[X.index]",
            id="labels in another order than X",
        ),
        pytest.param(
            {"X": pd.DataFrame(index=["a"] * 30), "y": pd.Series(0, ["b"] * 30)},
            "y.loc[X.index]",
            id="labels of other rows than X",
        ),
    ],
)
def test_what_python_refuses(changes, places):
    rows = {"X": np.arange(60.0).reshape(30, 2), "y": [0, 1] * 15, "k": 2, **changes}
    with raises(InputError, places):
        precbench.compare(rows.pop("X"), rows.pop("y"), **rows)


# labels of a negative and of a positive row, and what names the positive
WORDS_OF_LABELS = {
    "the positive sorts first": ("stayed", "left", "left"),
    "the positive sorts last": ("no", "yes", "yes"),
    "numbers": (2, 1, 1),
    "numbers in text": ("1", "2", "2"),
    "a word of truth": ("false", "other", "other"),
    "codes": (10, 20, 20),
    "halves": (0.5, 1.5, 1.5),
    "letters": ("b", "g", "b"),
    "a list": ("left", "stayed", ["left"]),
    "a list of NumPy": (np.str_("x"), np.str_("a"), np.str_("a")),
}


@pytest.mark.parametrize("case", WORDS_OF_LABELS)
def test_python_needs_the_name_of_the_positive_label(case):
    """No word of two is positive by itself, whichever is the greater one."""
    negative, other, positive = WORDS_OF_LABELS[case]
    X, y = rows_of()
    labels = np.where(y > 0, other, negative)
    is_positive = labels == (positive[0] if isinstance(positive, list) else positive)
    options = {"k": 20, "solvers": ["logistic-regression"], "n_splits": 2, "n_jobs": 1}
    with raises(InputError, "y positive"):
        precbench.compare(X, labels, **options)
    with raises(InputError, "y positive"):
        Model.fit(X, labels)
    named = precbench.compare(X, labels, positive=positive, **options)
    plain = precbench.compare(X, is_positive.astype(int), **options)
    assert named.values["mean"].tolist() == plain.values["mean"].tolist()
    model = Model.fit(X, labels, positive=positive, random_state=0)
    assert np.array_equal(model.coef, Model.fit(X, is_positive, random_state=0).coef)


@pytest.mark.parametrize(
    "labels", [[0, 1], [-1, 1], [False, True], ["0", "1"], [0.0, 1.0]]
)
def test_usual_labels_need_no_name(labels):
    X, y = rows_of()
    expected = Model.fit(X, y, random_state=0).coef
    model = Model.fit(X, np.array(labels)[(y > 0).astype(int)], random_state=0)
    assert np.array_equal(model.coef, expected)


def test_several_labels_are_positive_and_others_negative_with_a_warning():
    X, y = rows_of()
    labels = np.where(y > 0, "fraud", "no")
    labels[np.flatnonzero(y > 0)[:9]] = "theft"
    model = Model.fit(X, labels, positive=["fraud", "theft"], random_state=0)
    assert np.array_equal(model.coef, Model.fit(X, y, random_state=0).coef)
    with warns(UserWarning, "theft (9) negative"):
        Model.fit(X, labels, positive="fraud")
    with raises(InputError, "no row 'frauds' fraud"):
        Model.fit(X, labels, positive="frauds")


def test_rows_in_memory_have_the_same_identity_in_every_version():
    """Their stored trials are found again; gaps are part of the identity."""
    rng = np.random.default_rng(0)
    gaps = np.where(rng.random(60) < 0.2, np.nan, 1.0)
    table = pd.DataFrame({"a": np.arange(60.0), "b": gaps * np.arange(60)})
    y = np.arange(60) % 3 == 0
    dataset, _encoding = read_rows(table, y, None, "error", "mean", None, None)
    assert (
        dataset.sha256
        == "6f16b2c3763686281b083161901f15076453088d39df344c1c9cb0a5e8a8890e"
    )
