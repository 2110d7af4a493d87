"""The targets that make an environment."""

import shutil
import subprocess

import pytest

from tests.helpers import ROOT

# Makes what `python -m venv` leaves on Debian without the package python3-venv, and
# fails.
PYTHON = """\
#!/bin/sh
mkdir -p .venv/bin
touch .venv/bin/python
test -e repaired
"""


@pytest.fixture
def make(work_folder):
    """Return a function that makes an environment with a Python that fails at first."""
    shutil.copy(ROOT / "Makefile", work_folder)
    python = work_folder / "python"
    python.write_text(PYTHON)
    python.chmod(0o755)

    def make():
        # An outer make, such as that of `make oldest`, exports a VENV of its own.
        command = ["make", ".venv/.made", "VENV=.venv", f"PYTHON={python}"]
        return subprocess.run(command, capture_output=True, text=True, check=False)

    return make


def test_an_environment_that_could_not_be_made_is_made_by_the_next_command(
    make, work_folder
):
    first = make()
    assert first.returncode != 0
    assert (
        "apt install python3-venv" in first.stderr
        and "repeat the command" in first.stderr
    )
    (work_folder / "repaired").touch()
    assert make().returncode == 0
    assert (work_folder / ".venv" / ".made").exists()
