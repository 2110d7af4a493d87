"""Which wrong implementations the printed tables of rudin2009 would detect."""

import numpy as np

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
    assert len(power.power_rows(found.reset_index())) == 4
