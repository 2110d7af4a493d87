"""The committed reference: what the README shows of it, and whether it is still measured."""

import importlib.util

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from precbench.cli import app
from tests.conftest import ROOT

spec = importlib.util.spec_from_file_location("reference", ROOT / "scripts" / "reference.py")
reference = importlib.util.module_from_spec(spec)
spec.loader.exec_module(reference)

# Their last bits follow the BLAS and the CPU; all others give the same numbers everywhere.
OPTIMISERS = ("logistic-regression", "linear-svm", "cutting-plane")


def test_the_readme_shows_the_reference():
    text = reference.README.read_text()
    committed = pd.read_csv(reference.REFERENCE), reference.read_ledger(reference.LEDGER)
    assert text == reference.readme_with(text, *committed)
    assert text.count("| sgd-avg |") == 1 and text.count("| rudin2009 | ") == 1


@pytest.mark.parametrize("name", ["letter", "w8a"])
def test_the_reference_is_measured_again(name, mirror, isolated, tmp_path):
    result = CliRunner().invoke(app, ["run", name, "--jobs", "2", "--out", str(tmp_path)])
    assert result.exit_code == 0, result.output
    keys = ["dataset", "solver", "metric"]
    measured = pd.read_csv(tmp_path / name / "summary.csv").set_index(keys)
    committed = pd.read_csv(reference.REFERENCE).set_index(keys)
    committed = committed[committed["experiment"] == name]
    assert len(committed) == 20
    for key, row in committed.iterrows():
        if row["stopped"] or measured.loc[key, "stopped"]:  # by a clock, which no one can repeat
            continue
        tolerance = 5e-3 if key[1] in OPTIMISERS else 1e-12
        found = measured.loc[key, ["mean", "std"]].astype(float)
        np.testing.assert_allclose(found, row[["mean", "std"]].astype(float), atol=tolerance)
