"""Packages that extend precbench through entry points, and those that do it wrongly."""

import os
import subprocess
import sys
from functools import partial

import pandas as pd
import pytest

from precbench.claims import KINDS
from precbench.core.errors import InputError
from precbench.core.locations import shipped
from precbench.core.registry import Registry
from precbench.data.cards import catalogue
from precbench.ranking.metrics import METRICS, check_metric
from precbench.results.store import Store
from precbench.solvers import SOLVERS, SGDAtK, check_solver, solver_version
from tests.helpers import (
    ROOT,
    invoke,
    run,
    small_experiment,
    write_metadata,
    written,
)
from tests.sentences import raises, refused, tells

RANKER = """
from precbench.solvers import LinearRanker

class Mine(LinearRanker):
    _parameter_constraints = {"eta0": [float]}
    def __init__(self, *, eta0=0.5):
        self.eta0 = eta0
    def _fit(self, X, labels, trace):
        self.coef_ = X.mean(axis=0)

class Unconstrained(Mine):
    def __init__(self, *, eta0=0.5, C=1.0):
        self.eta0, self.C = eta0, C

class Opaque(Mine):
    def __init__(self, *, eta0=object()):
        self.eta0 = eta0

class Demanding(Mine):
    def __init__(self, eta0):
        self.eta0 = eta0

number = 3
"""


@pytest.fixture
def install(tmp_path, monkeypatch):
    """Put a package with its metadata on the path, as an installation would."""
    imported_earlier = set(sys.modules)

    def install(group, value, *, entry="mine", package="extra", version="1.2", **files):
        folder = tmp_path / package
        folder.mkdir()
        write_metadata(folder, package, version, group, entry, value)
        for name, text in files.items():
            (folder / f"{package}_{name}.py").write_text(text)
        monkeypatch.syspath_prepend(folder)
        return folder

    yield install
    for name in set(sys.modules) - imported_earlier:
        if name.startswith(("extra", "other")):
            del sys.modules[name]


def solvers():
    """Return the registry as a fresh process has it."""
    return Registry(
        "precbench.solvers", {"sgd-avg": partial(SGDAtK, surrogate="avg")}, check_solver
    )


def test_a_package_adds_a_solver(install, monkeypatch):
    install("precbench.solvers", "extra_ranker:Mine", ranker=RANKER)
    registry = solvers()
    assert {*registry} >= {"sgd-avg", "mine"}
    assert len(registry) == len([*registry])
    assert "extra_ranker" not in sys.modules  # imported when it is used
    assert registry["mine"](eta0=2.0).eta0 == 2.0


def test_the_version_of_an_added_solver_names_its_package(install, monkeypatch):
    install("precbench.solvers", "extra_ranker:Mine", ranker=RANKER)
    registry = solvers()
    assert registry.package("mine") == "extra 1.2"
    assert registry.package("sgd-avg") == ""
    monkeypatch.setattr("precbench.solvers.SOLVERS", registry)
    assert solver_version("mine") == "1 of extra 1.2"
    assert solver_version("sgd-avg") == SGDAtK.algorithm_version


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        pytest.param(
            "extra_absent:Mine",
            "ModuleNotFoundError: No module named 'extra_absent'",
            id="no such module",
        ),
        pytest.param(
            "extra_ranker:number",
            "a solver must be a subclass of LinearRanker or NonlinearRanker",
            id="no class",
        ),
        pytest.param(
            "extra_ranker:Unconstrained",
            "Unconstrained does not say which values of C are allowed",
            id="a parameter without constraints",
        ),
        pytest.param(
            "extra_ranker:Opaque",
            "TypeError: Object of type object is not JSON",
            id="a default that is no plain value",
        ),
        pytest.param(
            "extra_ranker:Demanding", "TypeError: ", id="a parameter without a default"
        ),
    ],
)
def test_an_unusable_solver_is_reported_with_its_package(install, value, reason):
    install("precbench.solvers", value, ranker=RANKER)
    registry = solvers()
    assert registry["sgd-avg"]().get_params()  # the others are usable
    with pytest.raises(InputError) as caught:
        registry["mine"]
    message = str(caught.value)
    start = (
        "entry point 'mine' (precbench.solvers) of the package extra 1.2 cannot be"
        " used: "
    )
    assert message.startswith(start + reason)
    assert "\n" not in message


def test_the_name_of_a_built_in_solver_is_refused(install):
    install("precbench.solvers", "third:Mine", package="third", entry="sgd-avg")
    with raises(InputError, "'sgd-avg' third 1.2"):
        list(solvers())


def test_a_name_of_two_packages_is_refused(install):
    install("precbench.solvers", "extra_ranker:Mine", ranker=RANKER)
    install("precbench.solvers", "other_ranker:Mine", package="other", ranker=RANKER)
    with raises(InputError, "'mine'"):
        solvers()["mine"]


def test_the_command_line_lists_packages(install, monkeypatch):
    install("precbench.solvers", "extra_ranker:Mine", ranker=RANKER)
    monkeypatch.setattr("precbench.solvers.SOLVERS", solvers())
    tells(invoke("list", "solvers").output, "mine extra 1.2")


def test_the_command_line_refuses_a_package_that_cannot_be_used(install, monkeypatch):
    install("precbench.solvers", "other_absent:Mine", package="other", entry="theirs")
    monkeypatch.setattr("precbench.solvers.SOLVERS", solvers())
    refused(["list", "solvers"], "1.2")


def test_assignment_is_refused_with_the_way_to_add_a_solver():
    with raises(InputError, "precbench.solvers"):
        SOLVERS["mine"] = SGDAtK


def test_every_built_in_solver_passes_the_check_of_the_others():
    for solver in SOLVERS.values():
        assert check_solver(solver) is solver


# --- metrics ---

HITS = """
from precbench.ranking.metrics import MetricSpec

def hits(y_true, y_score, top: int = 3) -> float:
    order = sorted(range(len(y_score)), key=lambda i: -y_score[i])
    return float(sum(y_true[i] > 0 for i in order[:top]))

losses = MetricSpec(hits, "hits in {top}", smaller_is_better=True)

def lonely(y_true):
    return 0.0
"""


def metrics():
    """Return the registry as a fresh process has it."""
    return Registry("precbench.metrics", {"auc": METRICS["auc"]}, check_metric)


def test_a_package_adds_a_metric_as_a_function(install):
    install("precbench.metrics", "extra_hits:hits", hits=HITS)
    metric = metrics()["mine"]
    assert metric.parameters == {"top": 3}
    assert not metric.smaller_is_better
    assert metric.written == "hits"


def test_a_package_adds_a_metric_as_a_specification(install):
    install("precbench.metrics", "extra_hits:losses", hits=HITS)
    metric = metrics()["mine"]
    assert metric.parameters == {"top": 3}
    assert metric.smaller_is_better
    assert metric.written == "hits in {top}"


@pytest.mark.parametrize(
    "value",
    [
        pytest.param("extra_hits:lonely", id="a function of one argument"),
        pytest.param("builtins:dict", id="a class"),
    ],
)
def test_an_unusable_metric_is_reported_with_its_package(install, value):
    install("precbench.metrics", value, hits=HITS)
    with raises(InputError, "extra 1.2"):
        metrics()["mine"]


# --- cards ---


@pytest.fixture
def cards(install, monkeypatch):
    """Install a package of cards, and forget it afterwards."""

    def add(package="extra", name="mycard", value="extra_cards"):
        folder = install("precbench.cards", value, package=package)
        (folder / "extra_cards").mkdir()
        card = (shipped("datasets") / "counterexample.yaml").read_text()
        card = card.replace("name: counterexample", f"name: {name}")
        (folder / "extra_cards" / f"{name}.yaml").write_text(card)
        catalogue._paths.cache_clear()

    yield add
    monkeypatch.undo()
    catalogue._paths.cache_clear()


def test_a_package_adds_cards(cards):
    n_built_in = len(catalogue.DATASETS)
    cards()
    assert "mycard" in catalogue.DATASETS
    assert len(catalogue.DATASETS) == n_built_in + 1
    n_rows = catalogue.find_card("mycard").rows
    assert n_rows == catalogue.find_card("counterexample").rows


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        pytest.param(
            {"name": "letter"},
            "adds a data set 'letter', and that name is in use",
            id="a name in use",
        ),
        pytest.param(
            {"value": "extra_absent"},
            "extra_absent, which is not a package with cards",
            id="no such package",
        ),
        pytest.param(
            {"value": "extra_absent.sub"}, "ModuleNotFoundError", id="no such module"
        ),
        pytest.param(
            {"value": "json.decoder"},
            "json.decoder, which is not a package with cards",
            id="a module",
        ),
    ],
)
def test_unusable_cards_are_reported_with_their_package(cards, changes, reason):
    cards(**changes)
    with pytest.raises(InputError) as caught:
        list(catalogue.DATASETS)
    message = str(caught.value)
    assert message.startswith(
        "entry point 'mine' (precbench.cards) of the package extra 1.2 "
    )
    assert reason in message


# --- the worked example of docs/add-a-solver.md ---


@pytest.fixture(scope="module")
def example(tmp_path_factory):
    """The package of the page."""
    return written("add-a-solver.md", tmp_path_factory.mktemp("example"))


def run_in_example(folder, *command, beside=()):
    """Run a module in the folder of the example, and return its output.

    The process finds the packages there and those of the folders `beside`.
    """
    path = os.pathsep.join(map(str, [folder, *beside, ROOT]))
    done = subprocess.run(
        [sys.executable, "-m", *map(str, command)],
        cwd=folder,
        env=os.environ | {"PYTHONPATH": path, "PRECBENCH_CACHE": str(folder / "cache")},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def results_of_example(example, tmp_path_factory):
    """Run the experiment of the page, and one with the metric of a package.

    It is one run, whose worker must find both packages.
    """
    folder = tmp_path_factory.mktemp("metric")
    write_metadata(
        folder, "extra", "1.2", "precbench.metrics", "mine", "extra_hits:hits"
    )
    (folder / "extra_hits.py").write_text(HITS)
    config = small_experiment(folder)(
        metrics="[{mine: {top: 10}}]",
        protocol="{n_splits: 1}",
        solvers="{sgd-avg: {eta0: {tune: [0.1, 1.0]}}}",
    )
    command = ["precbench", "run", "pairs.yaml", config, "--jobs", "1", "--no-plots"]
    run_in_example(example, *command, beside=[folder])
    return example / "results"


def test_a_run_measures_and_tunes_by_the_metric_of_a_package(results_of_example):
    folder = results_of_example / "small"
    results = pd.read_csv(folder / "results.csv")
    assert set(results["metric"]) == {"mine(top=10)"}
    assert (results["value"] <= 10).all()
    [record] = Store(folder).records()
    assert record.description["tuning"]["metric"]["package"] == "extra 1.2"


def test_the_worked_example_runs_to_the_table(results_of_example):
    folder = results_of_example / "pairs"
    results = pd.read_csv(folder / "results.csv")
    added = results[(results["solver"] == "pair-perceptron") & results["final"]]
    assert set(added["status"]) == {"ok"}
    assert set(added["split"]) == {0, 1}
    assert (added["value"] > results["value"].min()).all()
    assert added["chosen"].str.len().all()
    assert "| pair-perceptron |" in (folder / "summary.md").read_text()


def test_records_name_the_package_of_the_worked_example(results_of_example):
    versions = set()
    for record in Store(results_of_example / "pairs").records():
        versions.add(record.description["algorithm_version"]["solver"])
    assert "1 of pair-perceptron 0.1.0" in versions


def test_results_are_drawn_where_their_packages_are_not_known(results_of_example):
    plot = invoke("plot", results_of_example / "pairs")
    assert plot.exit_code == 0
    assert "accuracy-time-margin-noisy.png" in plot.output


def test_the_worked_example_obeys_the_laws(example):
    laws = [
        str(ROOT / "tests" / "test_laws.py"),
        "-k",
        "pair-perceptron or PairPerceptron",
    ]
    options = ["--rootdir", str(ROOT), "-q", "-p", "no:cacheprovider"]
    assert "passed" in run_in_example(example, "pytest", *laws, *options)


# --- a kind of claim, as in docs/claims.md ---

PUBLISHED = """
paper: mine
experiment: small
common: {where: here, printed: good, dataset: mine, metric: auc, solver: sgd-avg, config: letter}
claims:
  - for: {least: [0.5, 0.999]}
    id: worst/{least}
    kind: worst
    at_least: "{least}"
"""  # noqa: E501 (places are named)
JUDGE = """
from pathlib import Path
from precbench.claims import make_ledger, read_evidence
from precbench.claims.published import read_claims
claims = read_claims(Path("small.published.yaml"))
for row in make_ledger(claims, read_evidence(["results"])):
    print(row.kind, row.verdict)
try:
    read_claims(Path("misspelt.published.yaml"))
except ValueError as error:
    print(error)
"""


def test_a_kind_of_claim_of_a_package_judges(small, in_this_process, tmp_path):
    folder = written("claims.md", tmp_path / "package")
    done = run(small(), folder / "results", "--solver", "sgd-avg", "--no-plots")
    assert done.exit_code == 0
    (folder / "small.published.yaml").write_text(PUBLISHED)
    misspelt = PUBLISHED.replace("kind: worst", "kind: worrst")
    (folder / "misspelt.published.yaml").write_text(misspelt)
    (folder / "judging.py").write_text(JUDGE)
    first_verdict, second_verdict, error = run_in_example(
        folder, "judging"
    ).splitlines()
    assert first_verdict == "worst reproduced"
    assert second_verdict == "worst not reproduced"
    assert "misspelt.published.yaml:8:5" in error
    assert "did you mean 'worst'" in error


def test_what_is_no_kind_of_claim_is_refused(install):
    install("precbench.claims", "extra_thing:thing", thing="thing = 5")
    with raises(InputError, ""):
        Registry("precbench.claims", {}, KINDS._check)["mine"]
