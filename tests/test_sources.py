"""A changed module is seen in the keys of the trials that depend on it, and in no others."""

import json
import sys
from dataclasses import replace

import pytest

from precbench import sources
from precbench.experiment import load_config
from precbench.experiment.code import code_behind, describe
from precbench.solvers import SOLVERS
from precbench.sources import code_of
from tests.helpers import refused, run


def forget():
    """Forget the hashes of this process."""
    for cached in (sources._read, code_behind):
        cached.cache_clear()


@pytest.fixture(autouse=True)
def afresh():
    forget()
    yield
    forget()


@pytest.fixture
def package(tmp_path, monkeypatch):
    """A package of three modules, of which a and b are connected."""
    folder = tmp_path / "toy"
    folder.mkdir()
    (folder / "__init__.py").write_text("")
    (folder / "a.py").write_text("import os\nfrom toy.b import f\nx = f(1)  # one\n")
    (folder / "b.py").write_text('"""Text."""\n\ndef f(x):\n    """Text."""\n    return x\n')
    (folder / "c.py").write_text("y = 1\n")
    monkeypatch.syspath_prepend(tmp_path)
    yield folder
    for name in [name for name in sys.modules if name.partition(".")[0] == "toy"]:
        del sys.modules[name]


def edited(path, old, new):
    before = code_of(["toy.a", "toy.c"], ["toy.*"])
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))
    forget()
    after = code_of(["toy.a", "toy.c"], ["toy.*"])
    return {name for name in before if before[name] != after[name]}


def test_imports_are_followed_within_the_patterns(package):
    assert list(code_of(["toy.a"], ["toy.*"])) == ["toy.a", "toy.b"]
    assert list(code_of(["toy.a"], ["other.*"])) == ["toy.a"]


def test_code_counts_and_text_does_not(package):
    assert edited(package / "b.py", "return x", "return -x") == {"toy.b"}
    assert edited(package / "b.py", '"""Text."""', '"""Other\n\ntext."""') == set()
    assert edited(package / "a.py", "  # one", "\n\n# two") == set()
    assert edited(package / "a.py", "f(1)", "f(2)") == {"toy.a"}


def code_of_solver(name):
    trial = next(t for t in load_config("letter").trials() if t.label == name)
    return describe(trial, "0" * 64)["code"]


def test_a_trial_depends_on_its_solver_its_kernels_and_the_preparation():
    code = code_of_solver("sgd-avg")
    wanted = {"data.preprocess", "data.splits", "experiment.division", "experiment.samples"}
    wanted |= {"experiment.tuning", "kernels.linear", "kernels.minibatch", "seeds", "topk"}
    wanted |= {"solvers.base", "solvers.minibatch", "solvers.passes", "solvers.rows"}
    wanted |= {"runner.recorder", "runner.worker"}
    assert {f"precbench.{name}" for name in wanted} <= set(code)
    assert not {"precbench.kernels.push", "precbench.solvers.push", "precbench.errors"} & set(code)
    assert "precbench.kernels.cutting_plane" in code_of_solver("cutting-plane")


def test_every_solver_has_the_code_of_its_class():
    trial, *_ = load_config("letter").trials()
    for name in SOLVERS:
        code = describe(replace(trial, solver=name), "0" * 64)["code"]
        assert type(SOLVERS[name]()).__module__ in code
        assert all(len(value) == 12 for value in code.values())


def test_a_changed_module_runs_its_solvers_again(small, tmp_path, monkeypatch):
    """And no others; the run says why."""
    out = tmp_path / "out"
    assert run(small(), out).exit_code == 0
    original = sources._code

    def changed(text, tree):
        return original(text, tree) + "#" * ("class CuttingPlane(" in text)

    monkeypatch.setattr(sources, "_code", changed)
    forget()
    output = run(small(), out, "--dry-run").output
    assert "6 trials, 4 of them done already" in output
    assert "2 of them ran before precbench.solvers.cutting_plane changed; they run again" in output
    path = next((out / "small" / "trials").glob("*.json"))
    record = json.loads(path.read_text())
    for description in (5, {"code": 5}, {"code": {"precbench.topk": 5}}):
        path.write_text(json.dumps(record | {"description": description}))
        assert f"{path} is damaged (description" in refused(["run", small(), "--out", out])
