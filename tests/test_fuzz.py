"""Mutated files are read or refused with an error message; commands over them end as documented."""

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


@pytest.mark.measured
@pytest.mark.promise("R15", "R27", "R28")
@pytest.mark.timeout(7200)
@pytest.mark.parametrize("part", [0, 1])
def test_commands_over_hostile_folders_end_as_documented(part, size, figure, tmp_path):
    n_cases = size(250, 10_000)
    command = [sys.executable, ROOT / "scripts" / "fuzz_commands.py", "--cases", str(n_cases)]
    command += ["--first", str(part * n_cases), "--folder", tmp_path / "fuzz"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    figure(f"{n_cases} commands over hostile folders")
