"""Mutated files of every kind are read, or refused with an error message."""

import re
import subprocess
import sys

import pytest

from tests.helpers import ROOT


@pytest.mark.measured
@pytest.mark.promise("R15", "R26")
@pytest.mark.timeout(7200)
def test_mutated_files_are_read_or_refused(size, figure):
    command = [sys.executable, ROOT / "scripts" / "fuzz.py", "--cases", str(size(1500, 100_000))]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    [n_cases] = re.findall(r"fuzz: ([\d,]+) cases", done.stdout)
    figure(f"{n_cases.replace(',', '')} mutated files")
