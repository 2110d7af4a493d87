"""``precbench check``, on results written by hand and of two real runs."""

import json
import re
import shutil
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from precbench.claims.kinds.mean import MeanClaim
from precbench.claims.ledger import read_ledger, to_csv
from precbench.claims.verdicts import MIN_REPETITIONS, Verdict, parse_printed
from precbench.ranking.metrics import Metric
from tests.claims.helpers import (
    HOUSING,
    REPRODUCED,
    auc_of,
    check_command,
    normal,
    write_results,
)
from tests.helpers import invoke, run, succeed
from tests.sentences import naming, refused

pytestmark = pytest.mark.usefixtures("in_this_process")


@pytest.fixture
def quick(monkeypatch, claims, computed):
    monkeypatch.setattr(check_command, "load_claims", lambda: claims)
    monkeypatch.setattr(check_command, "_quick_studies", lambda _: computed)


MEASURES = ("auc", "pnorm_risk(p=16)")  # of Table 5
CELL = "rudin2009/table-5/p=4/auc"


def write_housing(folder, claims, factors=None, n=MIN_REPETITIONS):
    """Write repetitions that have printed values of Table 5 in their middle.

    `factors` multiply the values of claims by id.
    """
    factors = factors or {}
    cells = {}
    for i, c in enumerate(claims):
        if c.experiment != HOUSING or not isinstance(c, MeanClaim):
            continue
        if c.metric not in MEASURES:
            continue
        printed = parse_printed(c.printed, c.power_of_ten).value
        value = printed * factors.get(c.id, 1)
        repetitions = value * normal(n, 1, 0.003, seed=i)
        folds = np.repeat(repetitions, 3)
        cells[c.dataset, c.solver, c.metric, c.part] = folds
    return write_results(folder, cells, name=HOUSING, folds=3)


@pytest.fixture(scope="module")
def made(tmp_path_factory, claims, computed):
    """Results of Table 5 and a reference that was made of them."""
    folder = tmp_path_factory.mktemp("made")
    write_housing(folder / "results", claims)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(check_command, "_quick_studies", lambda claims: computed)
        result = check(folder, "--update-reference")
    assert result.exit_code == 0, result.output
    return folder


@pytest.fixture
def checked(made, tmp_path, quick):
    shutil.copytree(made, tmp_path, dirs_exist_ok=True)
    return tmp_path


def check(folder, *options, results="results"):
    return invoke(
        "check", folder / results, "--reference", folder / "reference.csv", *options
    )


def verdicts(path):
    return {row.id: row.verdict for row in read_ledger(path)}


def test_results_without_claims_say_so(tmp_path, quick):
    write_results(tmp_path / "results", auc_of(a=[0.5]), name="mine")
    output = invoke("check", tmp_path / "results").stdout
    assert output.startswith("no published claim concerns these results")


def test_claims_are_chosen_by_paper_and_verdict(tmp_path, quick):
    write_results(tmp_path / "results", auc_of(a=[0.5]), name="mine")
    options = ["--paper", "rudin2009", "--verdict", "not testable"]
    output = invoke("check", tmp_path / "results", *options).stdout
    assert "rudin2009/figure-7/curves" in output
    assert "rudin2009/table-5" not in output


def test_check_passes_on_the_results_of_the_reference(checked, claims):
    result = check(checked, "--all")
    assert result.exit_code == 0, result.output
    assert "Changed" not in result.stdout
    assert result.stderr == ""
    ledger = checked / "results" / "ledger.csv"
    assert ledger.read_text() == (checked / "reference.csv").read_text()
    assert f"Ledger of {len(claims)} published" in result.stdout


def test_verdicts_on_the_results_of_the_reference(checked, claims):
    check(checked, "--all")
    verdict_of = verdicts(checked / "results" / "ledger.csv")
    assert list(verdict_of) == [c.id for c in claims]
    assert verdict_of["rudin2009/table-3/p=4/auc"] is Verdict.NO_DATA
    of_table_5 = [
        verdict
        for name, verdict in verdict_of.items()
        if re.match(r"rudin2009/table-5/(p=|IR)", name)
    ]
    assert len(of_table_5) == 49
    assert set(of_table_5) <= REPRODUCED | {Verdict.NO_DATA}
    assert sum(verdict in REPRODUCED for verdict in of_table_5) == 14


def test_only_claims_about_the_results_are_shown(checked, claims):
    n_claims = sum(claim.experiment == HOUSING for claim in claims)
    assert f"Ledger of {n_claims} published" in check(checked).stdout


def test_files_of_the_check(checked):
    folder = checked / "results"
    files = {path.name: path.read_bytes() for path in folder.glob("ledger.*")}
    assert set(files) == {"ledger.csv", "ledger.json", "ledger.md"}

    rows = json.loads(files["ledger.json"], parse_constant=pytest.fail)
    assert [row["id"] for row in rows] == list(verdicts(folder / "ledger.csv"))
    assert list(rows[0]) == list(pd.read_csv(folder / "ledger.csv"))
    assert f"| {CELL} |" in files["ledger.md"].decode()

    other = checked / "other" / "place"
    result = check(checked, "--json", "--out", other)
    assert json.loads(result.stdout, parse_constant=pytest.fail) == rows
    assert {path.name: path.read_bytes() for path in other.iterdir()} == files


@pytest.mark.promise("R21")
def test_worse_verdict_is_a_regression(checked, claims, monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")
    write_housing(checked / "worse", claims, {CELL: 1.1})
    result = check(checked, results="worse")
    assert result.exit_code == 4
    message = f"{CELL} was reproduced.*, is (not reproduced|trend only)"
    assert re.search(message, result.stderr)
    row = {row.id: row for row in read_ledger(checked / "worse" / "ledger.csv")}[CELL]
    lines = [line.strip() for line in result.stdout.splitlines()]
    line_of_cell = next(line for line in lines if line.startswith(CELL))
    assert row.printed in line_of_cell
    assert row.measured in line_of_cell
    assert row.spread in line_of_cell
    assert verdicts(checked / "reference.csv")[CELL] in REPRODUCED


def test_check_without_results(checked):
    (checked / "empty").mkdir()
    assert check(checked, results="empty").exit_code == 4
    verdict_of = verdicts(checked / "empty" / "ledger.csv")
    assert verdict_of["rudin2009/table-1/zero-one/swap-none"] is Verdict.REPRODUCED


def test_folders_that_cannot_be_checked(checked):
    refused(["check", checked / "none"], str(checked / "none"))
    shutil.copytree(checked / "results", checked / "twice")
    refused(["check", checked / "results", checked / "twice"], HOUSING)


def test_a_misspelt_verdict_is_refused(checked):
    refused(
        ["check", checked / "results", "--verdict", "trend onli"],
        "'trend onli' 'trend only'",
    )


@pytest.mark.parametrize("options", [[], ["--update-reference"]])
@pytest.mark.parametrize(
    "damage",
    [
        pytest.param(lambda text: text.replace("no data", "nothing"), id="verdict"),
        pytest.param(lambda text: text.replace(",1,", ",x,"), id="number"),
        pytest.param(lambda text: text.replace("id,", "name,", 1), id="column"),
        pytest.param(lambda text: "", id="empty"),
        pytest.param(lambda text: "id,verdict\na,b\n", id="two columns"),
        pytest.param(lambda text: 'id\n"', id="open quotation"),
    ],
)
def test_a_damaged_reference_is_refused_and_stays(checked, damage, options):
    reference = checked / "reference.csv"
    damaged = damage(reference.read_text())
    reference.write_text(damaged)
    command = ["check", checked / "results", "--reference", reference]
    refused([*command, *options], str(reference))
    assert reference.read_text() == damaged


def test_a_missing_reference_is_refused(checked):
    reference = checked / "reference.csv"
    reference.unlink()
    command = ["check", checked / "results", "--reference", reference]
    refused(command, "--update-reference")


def test_an_update_with_few_repetitions_changes_nothing(checked, claims):
    reference = checked / "reference.csv"
    original = reference.read_text()
    write_housing(checked / "few", claims, n=3)
    result = check(checked, "--update-reference", results="few")
    assert result.exit_code == 0
    assert "Changed" not in result.stdout
    assert reference.read_text() == original


def test_an_update_shows_its_changes(checked):
    reference = checked / "reference.csv"
    original = reference.read_text()
    rows = {row.id: row for row in read_ledger(reference)}
    rows[CELL] = replace(rows[CELL], verdict=Verdict.NOT_REPRODUCED)
    reference.write_text(to_csv(rows.values()))
    output = check(checked, "--update-reference").stdout
    _, _, table = output.partition("Changed against the reference")
    assert re.search(f"{CELL} +not reproduced +reproduced", table)
    assert table.count("rudin2009/") == 1
    assert reference.read_text() == original


def test_a_real_run_is_checked(tmp_path, quick, reference):
    options = ("--solver", "sgd-avg", "--solver", "1pmb")
    assert run("kar2015/counterexample", tmp_path / "results", *options).exit_code == 0
    succeed("check", tmp_path / "results")
    rows = {row.id: row for row in read_ledger(tmp_path / "results" / "ledger.csv")}
    fact = rows["kar2015/appendix-a/rows"]
    assert fact.verdict is Verdict.REPRODUCED
    assert fact.measured == "6"
    order = rows["kar2015/appendix-a/1pmb-suboptimal"]
    assert order.verdict is Verdict.REPRODUCED
    assert order.measured == "holds in 1 of 1, fails in 0"
    assert order.reason == "nothing is left to chance"
    succeed("check", tmp_path / "results" / "kar2015-counterexample")


MEASURED = Metric.__call__


def too_high(metric, labels, scores):
    """Add a positive below all rows to zero-one risks: each height grows by 1."""
    if (
        metric.name == "pnorm_risk"
        and metric.params.get("loss", "zero-one") == "zero-one"
    ):
        labels, scores = [*labels, max(labels)], [*scores, min(scores) - 1]
    return MEASURED(metric, labels, scores)


@pytest.mark.promise("R21")
def test_broken_height_is_detected(tmp_path, monkeypatch, claims, computed):
    """Without results of any run: Tables 1 and 2 are always measured."""
    compute = check_command._quick_studies
    claims_of_tables = [c for c in claims if c.config == "rudin2009/tables-1-2"]
    monkeypatch.setattr(Metric, "__call__", too_high)
    monkeypatch.setattr(
        check_command, "_quick_studies", lambda _: computed | compute(claims_of_tables)
    )
    write_results(tmp_path / "results", auc_of(a=[0.5]))
    result = invoke("check", tmp_path / "results")
    assert result.exit_code == 4
    verdict_of = verdicts(tmp_path / "results" / "ledger.csv")
    names = [f"table-1/zero-one/swap-{swap}" for swap in ("none", "bottom", "top")]
    for p in range(2, 11):
        names += [f"table-2/zero-one-f1/p={p}", f"table-2/zero-one-f2/p={p}"]
    for name in names:
        assert verdict_of[f"rudin2009/{name}"] is Verdict.NOT_REPRODUCED, name
        change = f"{Verdict.REPRODUCED} {Verdict.NOT_REPRODUCED}"
        naming(result.stderr, f"rudin2009/{name} {change}")
    assert verdict_of["rudin2009/table-1/logistic/swap-top"] in REPRODUCED
