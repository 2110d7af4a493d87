"""Type checkers know the parameters of public names, and refuse what does not exist."""

import os
import re
import subprocess
import sys

import pytest

import precbench
from tests.helpers import ROOT

# Calls that are wrong, each with a word of the error.
WRONG = {
    "SGDAtK(etta0=1)": "etta0",
    "LightGBM(n_estimator=3)": "n_estimator",
    "BBR('x')": "incompatible type",
    "Ensemble(trees='x')": "trees",
    "precbench.SGDATK()": "SGDATK",
    "precbench.score('m.npz', 'new.csv', topp=3)": "topp",
    "precbench.evaluate('m.npz', 'new.csv', encodng='cp1252')": "encodng",
    "precbench.compare([[1.0]], [1], k=3, solver=['x'])": "solver",
    "precbench.fit('old.csv', lable='y')": "lable",
    "precbench.fit([[1.0]], [1], k=3, group=[0])": "group",
    "precbench.run('letter', job=2)": "job",
}
RIGHT = """
SGDAtK(eta0=1, k="1 %")
LightGBM(n_estimators=3)
BBR(0.5)
precbench.score("m.npz", "new.csv", top=3, encoding="cp1252").rows
precbench.compare("old.csv", label="y", k=3, drop=["id"]).fit().save("m.npz")
precbench.fit("old.csv", label="y", missing="median").rank([[1.0]])
precbench.fit([[1.0]], [1], k=3, groups=[0], weight=[2.0]).save("m.npz")
precbench.run("letter", smoke=True).frame
"""
NAMES = "import precbench\nfrom precbench import BBR, Ensemble, LightGBM, SGDAtK\n"


@pytest.mark.extras("mypy")
def test_mypy_refuses_what_does_not_exist(tmp_path):
    file = tmp_path / "calls.py"
    file.write_text(NAMES + "\n".join(WRONG) + "\n" + RIGHT)
    options = ["--ignore-missing-imports", "--config-file=", f"--cache-dir={tmp_path}"]
    done = subprocess.run(
        [sys.executable, "-m", "mypy", *options, str(file)],
        # an editable installation is invisible
        env=os.environ | {"MYPYPATH": str(ROOT)},
        capture_output=True,
        text=True,
    )
    errors = first_error_by_line(done.stdout)
    first_line = NAMES.count("\n") + 1
    lines = dict(enumerate(WRONG, start=first_line))
    assert errors.keys() == lines.keys(), done.stdout
    for number, call in lines.items():
        assert WRONG[call] in errors[number], call


def first_error_by_line(output):
    """Return the first error of each line of the file, by its number."""
    errors = {}
    for number, error in re.findall(r"calls\.py:(\d+): error: (.*)", output):
        errors.setdefault(int(number), error)
    return errors


def test_the_stub_has_the_public_names():
    stub = (ROOT / "precbench" / "__init__.pyi").read_text()
    names = re.findall(r"(\w+) as \1\b", stub)
    assert sorted([*names, "__version__"]) == sorted(precbench.__all__)
