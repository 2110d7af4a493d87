"""The targets that make an environment."""

import shutil
import subprocess

import pytest

from tests.helpers import ROOT

# Until it is repaired, it leaves what `python -m venv` leaves on Debian without the
# package python3-venv, and fails.
PYTHON = """\
#!/bin/sh
mkdir -p .venv/bin
touch .venv/bin/python
test -e repaired
"""


@pytest.fixture
def broken_python(work_folder):
    """Return a Python that fails to make an environment until it is repaired."""
    path = work_folder / "python"
    path.write_text(PYTHON)
    path.chmod(0o755)
    return path


def make_environment(python):
    # An outer make, such as that of `make oldest`, exports a VENV of its own.
    command = ["make", ".venv/.made", "VENV=.venv", f"PYTHON={python}"]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_an_environment_that_could_not_be_made_is_made_by_the_next_command(
    broken_python, work_folder
):
    shutil.copy(ROOT / "Makefile", work_folder)
    first = make_environment(broken_python)
    assert first.returncode != 0
    assert "apt install python3-venv" in first.stderr
    assert "repeat the command" in first.stderr
    (work_folder / "repaired").touch()
    second = make_environment(broken_python)
    assert second.returncode == 0
    assert (work_folder / ".venv" / ".made").exists()
