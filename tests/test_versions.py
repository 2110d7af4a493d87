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
    **{
        f"{scaling}, fitted on {part}": {"scaling": scaling, "scaling_fitted_on": part}
        for scaling in ("standardise", "unit", "standardise-unit-norm")
        for part in ("train", "all")
    },
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
    found = digest(laws.weights(solver))
    version, number = GOLDEN["solvers"].get(name, [None, None])
    same = solver.algorithm_version == version and found == pytest.approx(
        number, rel=1e-6
    )
    assert same, (
        f'{MORE}: "{name}": [{solver.algorithm_version}, {found:.12f}] in "solvers"'
    )


@pytest.mark.parametrize("name", PREPARED)
def test_no_prepared_row_moves_without_the_version_of_preparation(name, small):
    plan = make_plan(load_config(small(**PREPARED[name])))
    found = 0.0
    for trial, _ in plan.trials[:: len(plan.trials) // 2]:
        rows = Rows(trial, plan.datasets["mine"])
        fitting = rows.training.part(rows.divisions[0][0])
        for part in (rows.training, fitting, Rows(trial, plan.datasets["mine"]).test):
            found += digest(part.X) + digest(part.y)
    assert [PREPARATION_VERSION, pytest.approx(found)] == GOLDEN["preparation"][name], (
        MORE
    )


@pytest.mark.parametrize("by", ["precision_at_k: {k: 0.9}", "auc: {}"])
def test_no_choice_moves_without_the_version_of_tuning(
    by, small, in_this_process, tmp_path
):
    grid = "{tune: [0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0]}"
    solvers = (
        f"{{sgd-avg: {{eta0: {grid}}}, 1pmb: {{eta0: {grid}}}, logistic-regression:"
        f" {{C: {grid}}}}}"
    )
    parts = {
        "solvers": solvers,
        "common": "",
        "metrics": f"[{{{by}}}]",
        "protocol": "{n_splits: 3}",
    }
    assert run(small(**parts), tmp_path / "out", "--no-plots").exit_code == 0
    stored = Store(tmp_path / "out" / "small").records()
    in_order = sorted(stored, key=lambda record: (record.label, record.split))
    found = [[*record.chosen.values()] for record in in_order]
    assert [TUNING_VERSION, found] == GOLDEN["tuning"][by], MORE


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
    before = records(out / "small")
    kept = run(config, out, "--no-plots").output
    assert done_already(kept) == 6
    tells(kept, "3 code")
    assert records(out / "small") == before
    tells(run(config, out, "--rerun", "changed-code", "--no-plots").output, "6 3")
    after = records(out / "small")
    assert before.keys() == after.keys()
    assert sum(before[path] != after[path] for path in before) == 3
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


@pytest.mark.parametrize(
    ("edited", "without", "is_seen"),
    [
        ("a", (), True),
        ("a", ("b", "c"), True),
        ("b", ("b", "c"), False),
        ("c/d", ("b",), True),
        ("c/d", ("b", "c"), False),
    ],
)
def test_an_edit_changes_the_hash_of_what_holds_it(edited, without, is_seen, package):
    before = code_of("toy", without)
    (package / f"{edited}.py").write_text("x = 2\n")
    code_of.cache_clear()
    assert (code_of("toy", without) != before) == is_seen


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
    numbers = {"ranking.statistics", "ranking.metrics", "ranking.losses", "core.seeds"}
    assert numbers <= imported
    for part in NO_NUMBERS:
        assert not [name for name in imported if f"{name}.".startswith(f"{part}.")]
    assert all(find_spec(f"precbench.{part}") for part in NO_NUMBERS)


def test_a_compiled_module_counts_with_what_it_was_compiled_from(monkeypatch):
    before = source_code.code_of.__wrapped__("precbench")
    monkeypatch.setattr("precbench.solvers.push.kernel.SOURCE", "edited")
    assert source_code.code_of.__wrapped__("precbench") != before
