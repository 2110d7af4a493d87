"""precbench from Python: what it exports, and what its solvers say and do as scikit-learn's."""

import inspect
import pickle
import pydoc
import subprocess
import sys

import pytest

import precbench
from precbench import SOLVERS, SGDAtK
from precbench.solvers.presets import Preset

PRESETS = [name for name in SOLVERS.built_in if isinstance(SOLVERS[name], Preset)]


def test_every_class_of_solvers_is_exported():
    classes = {type(SOLVERS[name]()) for name in SOLVERS.built_in}
    assert {getattr(precbench, cls.__name__) for cls in classes} == classes
    assert {cls.__name__ for cls in classes} < set(dir(precbench))


def test_the_import_is_cheap():
    heavy = "{'numpy', 'scipy', 'sklearn', 'pandas'}"
    program = f"import sys, precbench; assert not {heavy} & set(sys.modules)"
    subprocess.run([sys.executable, "-c", program], check=True)


@pytest.mark.parametrize("name", SOLVERS.built_in)
def test_help_shows_parameters_and_what_a_solver_does(name):
    text = pydoc.plain(pydoc.render_doc(SOLVERS[name]))
    for param, value in SOLVERS[name]().get_params().items():
        assert f"{param}={value!r}" in text or f"{param}: " in text
        assert f"{param} :" in text
    assert "partial" not in text.splitlines()[0]


@pytest.mark.parametrize("name", PRESETS)
def test_a_preset_is_its_class_with_other_defaults(name):
    preset = SOLVERS[name]
    defaults = {n: p.default for n, p in inspect.signature(preset).parameters.items()}
    assert preset().get_params() == defaults
    copy = pickle.loads(pickle.dumps(preset))
    assert repr(copy) == repr(preset)
    assert repr(copy()) == repr(preset())
    with pytest.raises(TypeError, match="unexpected"):
        preset(colour=1)


def test_a_preset_may_be_overridden():
    solver = SOLVERS["sgd-max"](surrogate="avg", k=3)
    assert (type(solver), solver.surrogate, solver.k) == (SGDAtK, "avg", 3)
