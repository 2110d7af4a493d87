"""The committed reference: that it covers every solver, and that a change is seen."""

from collections import defaultdict

import pytest
from sklearn.utils._param_validation import StrOptions

from precbench.claims import LedgerRow
from precbench.claims.ledger import to_csv
from precbench.claims.verdicts import Verdict
from precbench.experiment import Experiment, load_config
from precbench.experiment.sections import is_tuned, solver_defaults
from precbench.ranking.metrics import METRICS
from precbench.solvers import SOLVERS
from scripts import reference
from scripts.reference import DIVISIONS, FOLLOWING, KEYS, VALUES, differences
from tests import laws
from tests.test_bits import EXPONENTIALS, LAPACK


@pytest.fixture(scope="module")
def committed():
    return reference.read(VALUES)


@pytest.fixture(scope="module")
def contestants():
    """Return the solvers and parameters that the regression trains."""
    found = []
    for config in map(load_config, reference.CONFIGS):
        for entry in config.solvers.values() if isinstance(config, Experiment) else ():
            known = solver_defaults(entry.solver)
            given = {
                n: v for n, v in config.common.items() if n in known
            } | entry.params
            found.append((entry.solver, known | given))
    return found


_TELL = (
    "add a contestant to configs/regression, then make regression, then write the"
    " reference"
)


@pytest.mark.promise("R21")
def test_every_solver_is_in_the_regression_of_values(contestants):
    missing = sorted({*SOLVERS.built_in} - {name for name, _ in contestants})
    assert not missing, f"no reference sees a change of {', '.join(missing)}: {_TELL}"


@pytest.mark.promise("R21")
def test_every_option_is_in_the_regression_of_values(contestants):
    """Of each class, each parameter has a value besides its default, and each named
    choice occurs.

    The trial gives the random state, and has one job. "1 %" stands for any share, and
    how rows are shuffled is a matter of the base class.
    """
    used = defaultdict(set)
    for name, params in contestants:
        solver = type(SOLVERS[name]())
        for parameter, value in params.items():
            values = value["tune"] if is_tuned(value) else [value]
            used[solver, parameter] |= {repr(value) for value in values}
    missing = []
    for solver in {type(SOLVERS[name]()) for name in SOLVERS.built_in}:
        for parameter, default in solver().get_params(deep=False).items():
            allowed = solver._parameter_constraints[parameter]
            named = {
                repr(o) for c in allowed if isinstance(c, StrOptions) for o in c.options
            }
            named -= {"'1 %'", "'rows'", "'blocks'"}
            has = used[solver, parameter]
            of_trial = parameter in ("random_state", "n_jobs")
            if not of_trial and not (has - {repr(default)} and named <= has):
                lacks = sorted(named - has) or [f"a value besides {default!r}"]
                missing.append(f"{solver.__name__}({parameter}): {', '.join(lacks)}")
    assert not missing, (
        f"no reference sees a change of {'; '.join(sorted(missing))}: {_TELL}"
    )


@pytest.mark.promise("R21")
def test_every_metric_has_a_reference(committed):
    configs = [load_config(name) for name in reference.CONFIGS]
    experiments = [config for config in configs if isinstance(config, Experiment)]
    assert {m.name for c in experiments for m in c.metrics} == {*METRICS.built_in}
    for config in experiments:
        rows = committed[committed["experiment"] == config.name]
        assert set(config.solvers) == set(rows["solver"])
        assert {metric.label for metric in config.metrics} <= set(rows["metric"])
    published = [load_config(name) for name in reference.PUBLISHED]
    assert {c.name for c in configs + published} == set(committed["experiment"])
    assert not committed.duplicated(KEYS).any()


def test_only_solvers_without_promised_bits_have_a_wide_tolerance():
    of_other_libraries = {n for n in SOLVERS.built_in if not laws.is_linear(SOLVERS[n])}
    assert (LAPACK | EXPONENTIALS) & {
        *SOLVERS.built_in
    } | of_other_libraries == FOLLOWING


@pytest.mark.promise("R21")
@pytest.mark.parametrize("sign", [-1, 1])
@pytest.mark.parametrize("column", ["mean", "std"])
def test_a_value_that_is_better_or_worse_differs(committed, column, sign):
    assert differences(committed, committed) == []
    spread = committed[committed["std"] > 0]
    for solver, least in (("toppush", 1e-6), ("bbr", 0.03)):
        changed = spread.copy()
        rows = changed["solver"] == solver
        changed.loc[rows, column] += sign * least * changed.loc[rows, "std"]
        found = differences(changed, spread)
        assert len(found) == rows.sum() > 0 and f"{column} was" in found[0], found


def test_what_is_missing_or_new_differs_but_data_that_cannot_be_had(committed):
    without = committed.drop(index=3)
    [lost], [new] = differences(without, committed), differences(committed, without)
    assert "is missing" in lost and "not in the reference" in new
    assert differences(committed[committed["dataset"] != "german"], committed) == []


def test_a_split_with_other_rows_or_another_scaling_differs():
    table = reference.read(DIVISIONS)
    for column, value in (("numbers", "0" * 16), ("sum", 1e-7), ("positives", 1)):
        changed = table.copy()
        changed.loc[5, column] = value
        [found] = differences(changed, table)
        assert column in found


def test_a_verdict_that_got_better_is_reported(tmp_path):
    """A baseline that gets worse makes verdicts better."""
    about = {"paper": "kar2015", "where": "", "kind": "order", "printed": "x"}
    for name, verdict in (
        ("before", Verdict.TREND_ONLY),
        ("ledger", Verdict.REPRODUCED),
    ):
        row = LedgerRow(id="kar2015/x/a", verdict=verdict, **about)
        (tmp_path / f"{name}.csv").write_text(to_csv([row]))
    [found] = reference.better(tmp_path, tmp_path / "before.csv")
    assert "kar2015/x/a was trend only, is reproduced" in found
    assert reference.better(tmp_path, tmp_path / "ledger.csv") == []
