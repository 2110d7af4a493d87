"""Which wrong implementations the printed tables of rudin2009 would detect."""

import numpy as np
import pytest

from precbench.claims import read_evidence
from scripts import power
from tests.claims.helpers import write_results


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
    shown = power.power_rows(found.reset_index())
    assert [row[:2] for row in shown] == [
        ["no error", "none"],
        ["p", "p has no effect"],
        ["p", "columns p = 2 and 4 change places"],
        ["measure", "AUC 1 % too high"],
    ]
    assert [row[4].partition(",")[0] for row in shown[:2]] == ["not detected", "**detected**"]
    assert shown[0][2:4] == ["", ""]


def test_results_without_the_runs_are_refused_with_a_sentence(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(
        "sys.argv", ["power", str(write_results(tmp_path, {("a", "b", "auc", "test"): [0.5]}))]
    )
    with pytest.raises(SystemExit):
        power.main()
    assert "none: no values of p=1 in these results" in capsys.readouterr().err
