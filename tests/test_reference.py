"""The committed reference: what the README shows of it, and how a run is compared with it."""

import importlib.util
import sys

import numpy as np
import pandas as pd
import pytest

from precbench.claims import LedgerRow, load_claims, read_evidence
from precbench.claims.ledger import to_csv
from precbench.claims.verdicts import Verdict
from tests.claims.helpers import write_results
from tests.helpers import ROOT


def script(name):
    """Load a file of scripts/."""
    spec = importlib.util.spec_from_file_location(name, ROOT / "scripts" / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


reference, power = script("reference"), script("power")


def test_the_readme_shows_the_reference():
    text = reference.README.read_text()
    committed = pd.read_csv(reference.REFERENCE), reference.read_ledger(reference.LEDGER)
    assert text == reference.readme_with(text, *committed)
    assert text.count("| sgd-avg | 0.") == 1 and text.count("| rudin2009 | ") == 1


def test_ties_with_the_best_are_marked():
    columns = {"mean": [0.9, 0.8, 0.7], "std": 0.1, "p_best": [np.nan, 0.06, 0.05]}
    about = {"dataset": "letter", "solver": ["a", "b", "c"], "metric": reference.METRIC}
    lines = reference.table(pd.DataFrame(about | columns)).splitlines()[2:]
    cells = [line.split(" | ")[1].removesuffix(" |") for line in lines]
    assert cells == ["**0.900 ± 0.100**", "0.800 ± 0.100 ≈", "0.700 ± 0.100"]


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
    header, _, *lines = reference.ledger_table(rows).splitlines()
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


def test_wrong_draws_are_detected(tmp_path, monkeypatch):
    """Table 5 as printed, with small errors in common and smaller ones of the columns."""
    rng = np.random.default_rng(0)
    cells = {}
    for row in power.printed_rows("table-5"):
        level = 1 + 0.02 * rng.standard_normal(101)
        for claim in row:
            value = claim.scaled(claim.printed)
            value = np.exp(value) if claim.logarithm else value
            draws = value * level * (1 + 0.005 * rng.standard_normal(101))
            cells[claim.dataset, claim.solver, claim.metric, "test"] = draws
    evidence = read_evidence([write_results(tmp_path, cells, name="rudin2009-table-5-housing")])
    monkeypatch.setattr(power, "PAPERS", 5)
    names = ["none", "p has no effect", "columns p = 2 and 4 change places", "AUC 1 % too high"]
    found = power.collect(evidence, ("table-5",), names).set_index("wrong")
    assert list(found.index) == names
    assert list(found["rows_that_tell"] > 0) == [False, True, True, False]
    assert found.loc["none", "power"] < 0.5 and found.loc["p has no effect", "power"] == 1
    shown = power.power_table(found.reset_index())
    assert (
        "| p | p has no effect |  |  | **detected**" in shown
        and "| no error | none |  |  | not detected" in shown
    )


@pytest.fixture
def measured(tmp_path):
    """Write a results folder from the reference of letter, changed in one number."""

    def measured(solver, column, change):
        table = pd.read_csv(reference.REFERENCE).query("experiment == 'letter'")
        table.loc[table["solver"] == solver, column] += change
        (tmp_path / "letter").mkdir(exist_ok=True)
        table.assign(stand_in=False).to_csv(tmp_path / "letter" / "summary.csv", index=False)
        return reference.differences(tmp_path, pd.read_csv(reference.REFERENCE))

    return measured


@pytest.mark.promise("R32")
@pytest.mark.parametrize("column", ["mean", "std"])
def test_a_difference_from_the_reference_is_found(measured, column):
    assert measured("sgd-avg", column, 0) == []
    found = measured("sgd-avg", column, 1e-6)
    assert len(found) == 2 and all(line.startswith("letter, sgd-avg: ") for line in found)
    assert measured("linear-svm", column, 4e-3) == []
    assert len(measured("linear-svm", column, 2e-2)) == 2


def test_what_a_limit_stopped_is_compared(measured):
    assert len(measured("cutting-plane", "mean", 0.5)) == 2


def test_results_without_the_experiments_are_no_agreement(tmp_path):
    [found] = reference.differences(tmp_path, pd.read_csv(reference.REFERENCE))
    assert "none of letter, adult" in found


def test_a_verdict_that_got_better_is_reported(tmp_path):
    """A baseline that gets worse makes verdicts better."""
    about = {"paper": "kar2015", "where": "", "kind": "order", "printed": "x"}
    for name, verdict in (("before", Verdict.TREND_ONLY), ("ledger", Verdict.REPRODUCED)):
        row = LedgerRow(id="kar2015/x/a", verdict=verdict, **about)
        (tmp_path / f"{name}.csv").write_text(to_csv([row]))
    [found] = reference.better(tmp_path, tmp_path / "before.csv")
    assert "kar2015/x/a was trend only, is reproduced" in found
    assert reference.better(tmp_path, tmp_path / "ledger.csv") == []
