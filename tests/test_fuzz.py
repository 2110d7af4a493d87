"""Mutated files are read or refused with an error message; commands over them end as documented."""

import subprocess
import sys

import pytest

from tests.helpers import ROOT


def fuzz(target, n_cases, first, folder):
    """Give so many cases in another process; return what it prints."""
    options = ["--cases", str(n_cases), "--first", str(first), "--folder", folder / "fuzz"]
    command = [sys.executable, ROOT / "tests" / "fuzz" / "run.py", target, *options]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.measured
@pytest.mark.promise("R14", "R13")
@pytest.mark.timeout(7200)
def test_mutated_files_are_read_or_refused(size, figure, tmp_path):
    n_cases = size(1500, 100_000)
    assert f"fuzz: {n_cases:,} mutated files in" in fuzz("files", n_cases, 0, tmp_path)
    figure(f"{n_cases} mutated files")


@pytest.mark.measured
@pytest.mark.promise("R14", "R13", "R19")
@pytest.mark.timeout(7200)
@pytest.mark.parametrize("part", [0, 1])
def test_commands_over_hostile_folders_end_as_documented(part, size, figure, tmp_path):
    n_cases = size(250, 10_000)
    said = fuzz("commands", n_cases, part * n_cases, tmp_path)
    assert f"fuzz: {n_cases:,} commands in" in said
    figure(f"{n_cases} commands over hostile folders")
