"""Keys of trials hold versions, no source.

Edited code trains nothing, a number that moves does.
"""

import json
import subprocess
import sys
from importlib.util import find_spec

import numpy as np
import pytest

from precbench.core import source_code
from precbench.core.source_code import code_of
from precbench.experiment import load_config
from precbench.experiment.plan import make_plan
from precbench.experiment.samples import Rows
from precbench.experiment.trial import NO_NUMBERS, PREPARATION_VERSION, TUNING_VERSION
from precbench.results.store import Store
from precbench.solvers import CuttingPlane
from tests import laws
from tests.helpers import ROOT, records, run
from tests.sentences import done_already, tells
from tests.test_laws import MEMBERS, OWN

pytestmark = pytest.mark.promise("R25")

MORE = "raise the version of what you changed, and put its new numbers into golden.json"
GOLDEN = json.loads((ROOT / "tests" / "golden.json").read_text())
PREPARED = {
    f"{scaling}, fitted on {part}": {"scaling": scaling, "scaling_fitted_on": part}
    for scaling in ("standardise", "unit", "standardise-unit-norm")
    for part in ("train", "all")
}
PREPARED |= {
    "unit-norm": {"scaling": "unit-norm"},
    "k folds": {"protocol": "{split: kfold, n_splits: 3, stratified: true}"},
    "stratified": {
        "protocol": "{n_splits: 2, stratified: true, test_size: 0.4, seed: 3}"
    },
    "training rows": {"protocol": "{n_splits: 2, train_size: 100}"},
    "few rows": {"rows": "300"},
    "random features": {
        "solvers": "{sgd-avg: {fourier: {n_components: 5, gamma: 0.1}}}"
    },
}


def digest(array):
    """Return a number that moves when one of these does, or their order."""
    values = np.asarray(array, float).ravel()
    return float(values @ np.cos(np.arange(values.size)))


def own_solvers():
    """Return the solvers whose arithmetic is ours.

    The others have the versions of libraries.
    """
    return [name for name in OWN if isinstance(MEMBERS[name]().algorithm_version, int)]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", own_solvers())
def test_no_solver_moves_without_its_version(name):
    X, y = laws.problem(integers=True)
    solver = laws.quick(MEMBERS[name]).fit(X, y)
    version = solver.algorithm_version
    number = digest(laws.weights(solver))
    golden_version, golden_number = GOLDEN["solvers"].get(name, [None, None])
    what_to_do = f'{MORE}: "{name}": [{version}, {number:.12f}] in "solvers"'
    assert version == golden_version, what_to_do
    assert number == pytest.approx(golden_number, rel=1e-6), what_to_do


@pytest.mark.parametrize("name", PREPARED)
def test_no_prepared_row_moves_without_the_version_of_preparation(name, small):
    plan = make_plan(load_config(small(**PREPARED[name])))
    number = 0.0
    for trial, _key in plan.trials[:: len(plan.trials) // 2]:
        rows = Rows(trial, plan.datasets["mine"])
        fitting = rows.training.part(rows.divisions[0].fit)
        for part in (rows.training, fitting, Rows(trial, plan.datasets["mine"]).test):
            number += digest(part.X) + digest(part.y)
    golden_version, golden_number = GOLDEN["preparation"][name]
    assert golden_version == PREPARATION_VERSION, MORE
    assert golden_number == pytest.approx(number), MORE


@pytest.mark.parametrize("metric", ["precision_at_k: {k: 0.9}", "auc: {}"])
def test_no_choice_moves_without_the_version_of_tuning(
    metric, small, in_this_process, tmp_path
):
    grid = "{tune: [0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0]}"
    entries = (
        f"sgd-avg: {{eta0: {grid}}}",
        f"1pmb: {{eta0: {grid}}}",
        f"logistic-regression: {{C: {grid}}}",
    )
    config = small(
        solvers=f"{{{', '.join(entries)}}}",
        common="",
        metrics=f"[{{{metric}}}]",
        protocol="{n_splits: 3}",
    )
    assert run(config, tmp_path / "out", "--no-plots").exit_code == 0
    stored = Store(tmp_path / "out" / "small").records()
    in_order = sorted(stored, key=lambda record: (record.label, record.split))
    choices = [[*record.chosen.values()] for record in in_order]
    golden_version, golden_choices = GOLDEN["tuning"][metric]
    assert golden_version == TUNING_VERSION, MORE
    assert golden_choices == choices, MORE


@pytest.fixture
def finished(small, in_this_process, tmp_path):
    assert run(small(), tmp_path / "out", "--no-plots").exit_code == 0
    return small(), tmp_path / "out"


def test_changed_code_of_the_same_versions_trains_nothing_unless_asked(finished):
    config, out = finished
    for path in records(out / "small"):
        record = json.loads(path.read_text())
        if record["split"] == 0:
            path.write_text(json.dumps(record | {"code": "0123456789ab"}))
    of_other_code = records(out / "small")

    resumed = run(config, out, "--no-plots").output
    assert done_already(resumed) == 6
    tells(resumed, "3 code")
    assert records(out / "small") == of_other_code

    tells(run(config, out, "--rerun", "changed-code", "--no-plots").output, "6 3")
    of_this_code = records(out / "small")
    assert of_this_code.keys() == of_other_code.keys()
    changed = [p for p in of_this_code if of_this_code[p] != of_other_code[p]]
    assert len(changed) == 3
    assert "other code" not in run(config, out, "--dry-run").output


def test_another_version_trains_what_has_it(finished, monkeypatch):
    config, out = finished
    monkeypatch.setattr(CuttingPlane, "algorithm_version", 99)
    assert done_already(run(config, out, "--dry-run").output) == 4
    monkeypatch.setattr("precbench.experiment.trial.TUNING_VERSION", 2)
    assert done_already(run(config, out, "--dry-run").output) == 2
    monkeypatch.setattr("precbench.experiment.trial.PREPARATION_VERSION", 2)
    assert done_already(run(config, out, "--dry-run").output) == 0


@pytest.fixture
def package(tmp_path, monkeypatch):
    folder = tmp_path / "toy"
    (folder / "c").mkdir(parents=True)
    for name in ("__init__", "a", "b", "c/__init__", "c/d"):
        (folder / f"{name}.py").write_text("x = 1\n")
    monkeypatch.syspath_prepend(tmp_path)
    yield folder
    code_of.cache_clear()
    for name in [name for name in sys.modules if name.partition(".")[0] == "toy"]:
        del sys.modules[name]


def hashes_around_an_edit(package, edited, without):
    """Return the hash of a package without some parts, before an edit and after."""
    first = code_of("toy", without)
    (package / f"{edited}.py").write_text("x = 2\n")
    code_of.cache_clear()
    return first, code_of("toy", without)


@pytest.mark.parametrize(
    ("edited", "without"),
    [
        pytest.param("a", (), id="of the whole"),
        pytest.param("a", ("b", "c"), id="beside what is left out"),
        pytest.param("c/d", ("b",), id="in a folder"),
    ],
)
def test_an_edit_changes_the_hash_of_what_holds_it(edited, without, package):
    first, second = hashes_around_an_edit(package, edited, without)
    assert second != first


@pytest.mark.parametrize(
    ("edited", "without"),
    [
        pytest.param("b", ("b", "c"), id="of a module that is left out"),
        pytest.param("c/d", ("b", "c"), id="in a folder that is left out"),
    ],
)
def test_an_edit_of_what_is_left_out_changes_no_hash(edited, without, package):
    first, second = hashes_around_an_edit(package, edited, without)
    assert second == first


def test_every_module_behind_a_number_counts():
    """What is left out exists, and none of it is imported where a trial is trained."""
    program = (
        "import sys, precbench.runner.worker, precbench.experiment.tuning\n"
        "from precbench.solvers import SOLVERS\n"
        "print([SOLVERS[name]() for name in SOLVERS] and ' '.join(sys.modules))"
    )
    command = [sys.executable, "-c", program]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    imported = {
        name.removeprefix("precbench.")
        for name in done.stdout.split()
        if name.startswith("precbench.")
    }
    assert "ranking.statistics" in imported
    assert "ranking.metrics" in imported
    assert "ranking.losses" in imported
    assert "core.seeds" in imported
    for part in NO_NUMBERS:
        assert find_spec(f"precbench.{part}"), part
        assert not [name for name in imported if f"{name}.".startswith(f"{part}.")]


def test_a_compiled_module_counts_with_what_it_was_compiled_from(monkeypatch):
    first = source_code.code_of.__wrapped__("precbench")
    monkeypatch.setattr("precbench.solvers.push.kernel.SOURCE", "edited")
    assert source_code.code_of.__wrapped__("precbench") != first
