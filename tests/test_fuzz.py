"""Mutated files are read, or refused with an error message."""

import subprocess
import sys

import pytest

from tests.helpers import ROOT


@pytest.mark.measured
@pytest.mark.promise("R14", "R13")
@pytest.mark.timeout(7200)
def test_mutated_files_are_read_or_refused(size, figure, tmp_path):
    n_cases = size(1500, 100_000)
    options = ["--cases", str(n_cases), "--folder", tmp_path / "fuzz"]
    command = [sys.executable, ROOT / "tests" / "fuzz" / "run.py", *options]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"fuzz: {n_cases:,} mutated files in" in done.stdout
    figure(f"{n_cases} mutated files")
