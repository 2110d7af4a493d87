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


def housing(folder, claims, shift=None, n=MIN_REPETITIONS, **changes):
    """Write repetitions that have printed values of Table 5 in their middle, of two
    measures.
    """
    cells = {}
    for i, c in enumerate(claims):
        if (
            c.experiment == HOUSING
            and isinstance(c, MeanClaim)
            and c.metric in MEASURES
        ):
            value = parse_printed(c.printed, c.power_of_ten).value * (shift or {}).get(
                c.id, 1
            )
            draws = np.repeat(value * normal(n, 1, 0.003, seed=i), 3)
            cells[c.dataset, c.solver, c.metric, c.part] = draws
    return write_results(folder, cells, name=HOUSING, folds=3, **changes)


MEASURES = ("auc", "pnorm_risk(p=16)")
CELL = "rudin2009/table-5/p=4/auc"


@pytest.fixture(scope="module")
def made(tmp_path_factory, claims, computed):
    """Results of Table 5 and a reference that was made of them."""
    folder = tmp_path_factory.mktemp("made")
    housing(folder / "results", claims)
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
    write_results(
        tmp_path / "results",
        {("housing", "sgd-avg", "auc", "test"): [0.5]},
        name="mine",
    )
    printed = invoke("check", tmp_path / "results").stdout
    assert printed.startswith("no published claim concerns these results")
    chosen = ["--paper", "rudin2009", "--verdict", "not testable"]
    listed = invoke("check", tmp_path / "results", *chosen).stdout
    assert "rudin2009/figure-7/curves" in listed
    assert "rudin2009/table-5" not in listed


def test_check_passes_on_the_results_of_the_reference(checked, claims):
    result = check(checked, "--all")
    assert result.exit_code == 0, result.output
    assert "Changed" not in result.stdout
    assert result.stderr == ""
    ledger = checked / "results" / "ledger.csv"
    assert ledger.read_text() == (checked / "reference.csv").read_text()
    verdict_of = verdicts(ledger)
    assert list(verdict_of) == [c.id for c in claims]
    assert verdict_of["rudin2009/table-3/p=4/auc"] is Verdict.NO_DATA
    table_5 = [
        v
        for name, v in verdict_of.items()
        if re.match(r"rudin2009/table-5/(p=|IR)", name)
    ]
    assert len(table_5) == 49
    assert set(table_5) <= REPRODUCED | {Verdict.NO_DATA}
    assert sum(verdict in REPRODUCED for verdict in table_5) == 14
    about = [claim for claim in claims if claim.experiment == HOUSING]
    assert f"Ledger of {len(claims)} published" in result.stdout
    assert f"Ledger of {len(about)} published" in check(checked).stdout


def test_files_of_the_check(checked):
    folder = checked / "results"
    before = {path.name: path.read_bytes() for path in folder.glob("ledger.*")}
    assert set(before) == {"ledger.csv", "ledger.json", "ledger.md"}

    rows = json.loads(before["ledger.json"], parse_constant=pytest.fail)
    assert [row["id"] for row in rows] == list(verdicts(folder / "ledger.csv"))
    assert list(rows[0]) == list(pd.read_csv(folder / "ledger.csv"))
    assert f"| {CELL} |" in before["ledger.md"].decode()
    result = check(checked, "--json", "--out", checked / "other" / "place")
    assert json.loads(result.stdout, parse_constant=pytest.fail) == rows
    assert {
        p.name: p.read_bytes() for p in (checked / "other" / "place").iterdir()
    } == before


@pytest.mark.promise("R21")
def test_worse_verdict_is_a_regression(checked, claims, monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")
    housing(checked / "worse", claims, {CELL: 1.1})
    result = check(checked, results="worse")
    assert result.exit_code == 4
    assert re.search(
        f"{CELL} was reproduced.*, is (not reproduced|trend only)", result.stderr
    )
    row = {row.id: row for row in read_ledger(checked / "worse" / "ledger.csv")}[CELL]
    line = next(
        text for text in result.stdout.splitlines() if text.strip().startswith(CELL)
    )
    assert all(text in line for text in (row.printed, row.measured, row.spread))
    assert verdicts(checked / "reference.csv")[CELL] in REPRODUCED


def test_check_without_results(checked):
    (checked / "empty").mkdir()
    assert check(checked, results="empty").exit_code == 4
    verdict_of = verdicts(checked / "empty" / "ledger.csv")
    assert verdict_of["rudin2009/table-1/zero-one/swap-none"] is Verdict.REPRODUCED


def test_invalid_use_of_check(checked):
    reference = checked / "reference.csv"
    good = reference.read_text()
    refused(["check", checked / "none"], str(checked / "none"))
    refused(
        ["check", checked / "results", "--verdict", "trend onli"],
        "'trend onli' 'trend only'",
    )
    against = ["check", checked / "results", "--reference", reference]
    damaged = [good.replace("no data", "nothing"), good.replace(",1,", ",x,")]
    damaged += [good.replace("id,", "name,", 1), "", "id,verdict\na,b\n", 'id\n"']
    for text in damaged:
        reference.write_text(text)
        for options in ([], ["--update-reference"]):
            refused([*against, *options], str(reference))
        assert reference.read_text() == text
    reference.unlink()
    refused(against, "--update-reference")
    shutil.copytree(checked / "results", checked / "twice")
    refused(["check", checked / "results", checked / "twice"], HOUSING)


def test_update_shows_its_changes_and_keeps_the_rest(checked, claims):
    reference = checked / "reference.csv"
    before = reference.read_text()
    housing(checked / "few", claims, n=3)
    result = check(checked, "--update-reference", results="few")
    assert result.exit_code == 0
    assert "Changed" not in result.stdout
    assert reference.read_text() == before
    rows = {row.id: row for row in read_ledger(reference)}
    rows[CELL] = replace(rows[CELL], verdict=Verdict.NOT_REPRODUCED)
    reference.write_text(to_csv(rows.values()))
    changed = check(checked, "--update-reference").stdout
    changed = changed.partition("Changed against the reference")[2]
    assert re.search(f"{CELL} +not reproduced +reproduced", changed)
    assert changed.count("rudin2009/") == 1
    assert reference.read_text() == before


def test_a_real_run_is_checked(tmp_path, quick, reference):
    options = ("--solver", "sgd-avg", "--solver", "1pmb")
    assert run("kar2015/counterexample", tmp_path / "results", *options).exit_code == 0
    succeed("check", tmp_path / "results")
    rows = {row.id: row for row in read_ledger(tmp_path / "results" / "ledger.csv")}
    fact = rows["kar2015/appendix-a/rows"]
    assert (fact.verdict, fact.measured) == (Verdict.REPRODUCED, "6")
    one = rows["kar2015/appendix-a/1pmb-suboptimal"]
    assert one.verdict is Verdict.REPRODUCED
    assert one.measured == "holds in 1 of 1, fails in 0"
    assert one.reason == "nothing is left to chance"
    assert (
        invoke("check", tmp_path / "results" / "kar2015-counterexample").exit_code == 0
    )


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
    of_tables = [c for c in claims if c.config == "rudin2009/tables-1-2"]
    monkeypatch.setattr(Metric, "__call__", too_high)
    monkeypatch.setattr(
        check_command, "_quick_studies", lambda _: computed | compute(of_tables)
    )
    write_results(tmp_path / "results", auc_of(a=[0.5]))
    result = invoke("check", tmp_path / "results")
    assert result.exit_code == 4
    verdict_of = verdicts(tmp_path / "results" / "ledger.csv")
    names = [f"table-1/zero-one/swap-{where}" for where in ("none", "bottom", "top")]
    names += [f"table-2/zero-one-{f}/p={p}" for f in ("f1", "f2") for p in range(2, 11)]
    for name in names:
        assert verdict_of[f"rudin2009/{name}"] is Verdict.NOT_REPRODUCED, name
        naming(
            result.stderr,
            f"rudin2009/{name} {Verdict.REPRODUCED} {Verdict.NOT_REPRODUCED}",
        )
    assert verdict_of["rudin2009/table-1/logistic/swap-top"] in REPRODUCED
