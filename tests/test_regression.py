"""The committed values of every solver and metric cover all of them, and a change is seen."""

import pytest
import regression
from regression import DIVISIONS, KEYS, VALUES, differences

from precbench.experiment import Experiment, load_config
from precbench.metrics import METRICS
from precbench.solvers import SOLVERS
from tests import laws
from tests.test_bits import EXPONENTIALS, LAPACK


@pytest.fixture(scope="module")
def reference():
    return regression.read(VALUES)


@pytest.mark.promise("R32")
def test_every_solver_and_metric_has_a_reference(reference):
    configs = [load_config(name) for name in regression.CONFIGS]
    experiments = [config for config in configs if isinstance(config, Experiment)]
    linear = {name for name in SOLVERS.built_in if laws.is_linear(SOLVERS[name])}
    assert {e.solver for c in experiments for e in c.solvers.values()} == linear
    assert {m.name for c in experiments for m in c.metrics} == {*METRICS.built_in}
    for config in experiments:
        rows = reference[reference["experiment"] == config.name]
        assert set(config.solvers) == set(rows["solver"])
        assert {metric.label for metric in config.metrics} <= set(rows["metric"])
    published = [load_config(name) for name in regression.PUBLISHED]
    assert {c.name for c in configs + published} == set(reference["experiment"])
    assert not reference.duplicated(KEYS).any()


def test_only_solvers_without_promised_bits_have_a_wide_tolerance():
    assert (LAPACK | EXPONENTIALS) & {*SOLVERS.built_in} == regression.FOLLOWING


@pytest.mark.promise("R32")
@pytest.mark.parametrize("sign", [-1, 1])
@pytest.mark.parametrize("column", ["mean", "std"])
def test_a_value_that_is_better_or_worse_differs(reference, column, sign):
    assert differences(reference, reference) == []
    spread = reference[reference["std"] > 0]
    for solver, least in (("toppush", 1e-6), ("bbr", 0.03)):
        changed = spread.copy()
        rows = changed["solver"] == solver
        changed.loc[rows, column] += sign * least * changed.loc[rows, "std"]
        found = differences(changed, spread)
        assert len(found) == rows.sum() > 0 and f"{column} was" in found[0], found


def test_what_is_missing_or_new_differs_but_data_that_cannot_be_had(reference):
    without = reference.drop(index=3)
    [lost], [new] = differences(without, reference), differences(reference, without)
    assert "is missing" in lost and "not in the reference" in new
    assert differences(reference[reference["dataset"] != "german"], reference) == []


def test_a_split_with_other_rows_or_another_scaling_differs():
    table = regression.read(DIVISIONS)
    for column, value in (("numbers", "0" * 16), ("sum", 1e-7), ("positives", 1)):
        changed = table.copy()
        changed.loc[5, column] = value
        [found] = differences(changed, table)
        assert column in found


def test_the_program(tmp_path, monkeypatch, capsys, reference):
    monkeypatch.setattr(regression, "values", lambda folder, configs: reference)
    table = regression.read(DIVISIONS)
    monkeypatch.setattr(regression, "divisions", lambda: table.assign(positives=1))
    monkeypatch.setattr("sys.argv", ["regression.py", str(tmp_path)])
    with pytest.raises(SystemExit, match=f"and {len(table) - 20} more of divisions.csv"):
        regression.main()
    assert f"0 differences in {len(reference):,} rows" in capsys.readouterr().out
