"""The committed reference: that it covers every solver, and that a change is seen."""

from collections import defaultdict
from dataclasses import replace
from typing import NamedTuple

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


class Contestant(NamedTuple):
    """What the regression trains: a name of the registry, and all its parameters."""

    solver: str
    params: dict

    @property
    def estimator(self):
        return type(SOLVERS[self.solver]())


@pytest.fixture(scope="module")
def contestants():
    trained = []
    for config in map(load_config, reference.CONFIGS):
        if not isinstance(config, Experiment):
            continue
        for entry in config.solvers.values():
            defaults = solver_defaults(entry.solver)
            common = {
                name: value for name, value in config.common.items() if name in defaults
            }
            params = defaults | common | entry.params
            trained.append(Contestant(entry.solver, params))
    return trained


ADVICE = (
    "add a contestant to configs/regression, then make regression, then write the"
    " reference"
)


@pytest.mark.promise("R21")
def test_every_solver_is_in_the_regression_of_values(contestants):
    trained = {contestant.solver for contestant in contestants}
    missing = sorted({*SOLVERS.built_in} - trained)
    assert not missing, f"no reference sees a change of {', '.join(missing)}: {ADVICE}"


@pytest.mark.promise("R21")
def test_every_option_is_in_the_regression_of_values(contestants):
    """Of each class, each parameter has a value besides its default, and each named
    choice occurs.
    """
    used = defaultdict(set)
    for contestant in contestants:
        for parameter, value in contestant.params.items():
            values = value["tune"] if is_tuned(value) else [value]
            used[contestant.estimator, parameter] |= {repr(value) for value in values}
    missing = []
    for estimator in {type(SOLVERS[name]()) for name in SOLVERS.built_in}:
        for parameter, default in estimator().get_params(deep=False).items():
            if parameter in ("random_state", "n_jobs"):  # which the trial gives
                continue
            values = used[estimator, parameter]
            lacking = sorted(named_choices(estimator, parameter) - values)
            if not values - {repr(default)} and not lacking:
                lacking = [f"a value besides {default!r}"]
            if lacking:
                option = f"{estimator.__name__}({parameter})"
                missing.append(f"{option}: {', '.join(lacking)}")
    assert not missing, (
        f"no reference sees a change of {'; '.join(sorted(missing))}: {ADVICE}"
    )


def named_choices(estimator, parameter):
    """Return the words that a parameter may be.

    "1 %" stands for any share, and how rows are shuffled is a matter of the base class.
    """
    choices = set()
    for constraint in estimator._parameter_constraints[parameter]:
        if isinstance(constraint, StrOptions):
            choices |= {repr(option) for option in constraint.options}
    return choices - {"'1 %'", "'rows'", "'blocks'"}


@pytest.mark.promise("R21")
def test_every_metric_has_a_reference(committed):
    configs = [load_config(name) for name in reference.CONFIGS]
    experiments = [config for config in configs if isinstance(config, Experiment)]
    measured = {metric.name for config in experiments for metric in config.metrics}
    assert measured == {*METRICS.built_in}
    for config in experiments:
        rows = committed[committed["experiment"] == config.name]
        assert set(config.solvers) == set(rows["solver"])
        assert {metric.label for metric in config.metrics} <= set(rows["metric"])


@pytest.mark.promise("R21")
def test_the_reference_is_that_of_its_configs(committed):
    names = [*reference.CONFIGS, *reference.PUBLISHED]
    experiments = {load_config(name).name for name in names}
    assert set(committed["experiment"]) == experiments
    assert not committed.duplicated(KEYS).any()


def test_only_solvers_without_promised_bits_have_a_wide_tolerance():
    built_in = {*SOLVERS.built_in}
    of_other_libraries = {
        name for name in built_in if not laws.is_linear(SOLVERS[name])
    }
    without_promised_bits = (LAPACK | EXPONENTIALS) & built_in
    assert without_promised_bits | of_other_libraries == FOLLOWING


def test_equal_values_do_not_differ(committed):
    assert differences(committed, committed) == []


@pytest.mark.promise("R21")
@pytest.mark.parametrize("sign", [-1, 1])
@pytest.mark.parametrize("column", ["mean", "std"])
@pytest.mark.parametrize(
    ("solver", "change"),
    [
        pytest.param("toppush", 1e-6, id="of exact bits"),
        pytest.param("bbr", 0.03, id="that follows BLAS"),
    ],
)
def test_a_value_that_is_better_or_worse_differs(
    committed, solver, change, column, sign
):
    """The change is a multiple of the standard deviation."""
    spread = committed[committed["std"] > 0]
    changed = spread.copy()
    rows = changed["solver"] == solver
    changed.loc[rows, column] += sign * change * changed.loc[rows, "std"]
    sentences = differences(changed, spread)
    assert len(sentences) == rows.sum() > 0
    for sentence in sentences:
        assert f"{column} was" in sentence


def test_a_value_that_is_missing_differs(committed):
    [sentence] = differences(committed.drop(index=3), committed)
    assert "is missing" in sentence


def test_a_value_that_is_new_differs(committed):
    [sentence] = differences(committed, committed.drop(index=3))
    assert "not in the reference" in sentence


def test_data_that_cannot_be_had_do_not_differ(committed):
    without_german = committed[committed["dataset"] != "german"]
    assert differences(without_german, committed) == []


@pytest.mark.parametrize(
    ("column", "value"),
    [
        pytest.param("numbers", "0" * 16, id="other rows"),
        pytest.param("sum", 1e-7, id="another scaling"),
        pytest.param("positives", 1, id="other labels"),
    ],
)
def test_another_split_differs(column, value):
    table = reference.read(DIVISIONS)
    changed = table.copy()
    changed.loc[5, column] = value
    [sentence] = differences(changed, table)
    assert column in sentence


def test_a_verdict_that_got_better_is_reported(tmp_path):
    """A baseline that gets worse makes verdicts better."""
    row = LedgerRow(
        id="kar2015/x/a",
        paper="kar2015",
        where="",
        kind="order",
        printed="x",
        verdict=Verdict.REPRODUCED,
    )
    earlier = replace(row, verdict=Verdict.TREND_ONLY)
    ledger = tmp_path / "ledger.csv"
    ledger.write_text(to_csv([row]))
    earlier_ledger = tmp_path / "earlier.csv"
    earlier_ledger.write_text(to_csv([earlier]))
    [sentence] = reference.better(tmp_path, earlier_ledger)
    assert "kar2015/x/a was trend only, is reproduced" in sentence
    assert reference.better(tmp_path, ledger) == []
