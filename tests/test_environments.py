"""Every command in every surrounding.

One sentence or a result, no traceback, no end that waits.
"""

import itertools
import os
import random
import resource
import shlex
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd
import pytest

from tests.helpers import succeed

PRECBENCH = Path(sys.executable).with_name("precbench")
CODES = {0, 1, 2, 3, 4, 5, 141}
FIT = (
    "fit mine.csv --label y --k 10 --solver logistic-regression --splits 2 --save"
    " new.npz"
)
COMMANDS = [
    "--help",
    "list solvers",
    "list deviations",
    "schema",
    "doctor",
    "validate letter",
    "data info letter",
    "data list",
    "profile mine.csv --label y",
    "compare mine.csv --label y --k 10 --solver logistic-regression --splits 2"
    " --out out",
    FIT,
    "score m.npz mine.csv --top 3 --explain 2",
    "score m.npz mine.csv --out list.csv",
    "evaluate m.npz mine.csv --label y",
    "show m.npz",
    "run letter --smoke --solver sgd-avg --splits 0 --out out",
    "status letter --out out",
    "report out",
    "check out",
    "rank nothing",
    "merge out --out merged",
    "claims new mine --help",
]


@dataclass(frozen=True)
class Environment:
    """What surrounds a command."""

    shell: str = ""  # stands after the command
    variables: Mapping[str, str] = field(default_factory=dict)
    without: Sequence[str] = ()  # names of variables
    uid: int | None = None  # what the system seems to say
    limit: tuple[int, int] | None = None  # a resource, and how much of it there is
    folder: str = "here"
    modules: Sequence[str] = ()  # files that must not be imported

    @property
    def has_pipe(self):
        return "|" in self.shell


ENVIRONMENTS = {
    "as it is": Environment(),
    "closed output": Environment(shell=">&-"),
    "closed errors": Environment(shell="2>&-"),
    "nothing open": Environment(shell=">&- 2>&- <&-"),
    "full device": Environment(shell=">/dev/full"),
    "a reader that has left": Environment(shell="| true"),
    "ASCII": Environment(variables={"PYTHONIOENCODING": "ascii", "LC_ALL": "C"}),
    "cp1252": Environment(variables={"PYTHONIOENCODING": "cp1252"}),
    "20 columns": Environment(variables={"COLUMNS": "20"}),
    "no home": Environment(without=["HOME", "XDG_CACHE_HOME", "PRECBENCH_CACHE"]),
    "a home that cannot be": Environment(
        variables={"HOME": "/dev/null/none"}, without=["XDG_CACHE_HOME"]
    ),
    "a user without a name": Environment(without=["HOME", "XDG_CACHE_HOME"], uid=54321),
    "few files": Environment(limit=(resource.RLIMIT_NOFILE, 64)),
    "small files": Environment(limit=(resource.RLIMIT_FSIZE, 4096)),
    "a folder of a hostile name": Environment(
        folder="a\n\x1b[31m[red]$(exit) é\udce9 {0}%s'"
    ),
    "planted modules": Environment(
        modules=["precbench/__init__.py", "joblib.py", "numpy.py", "typer.py"]
    ),
}
EXECUTED = "open('/proc/self/cwd/executed', 'w').close()\n"
PAIRS = list(itertools.product(ENVIRONMENTS, COMMANDS))


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("files")
    rng = np.random.default_rng(0)
    y = np.arange(200) % 4 == 0
    table = pd.DataFrame(
        {"a": rng.standard_normal(200) + y, "b": rng.random(200), "y": y.astype(int)}
    )
    table.to_csv(folder / "mine.csv", index=False)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        succeed(*FIT.replace("new.npz", "m.npz").split())
    return {name: (folder / name).read_bytes() for name in ("mine.csv", "m.npz")}


def _prepare(files, folder, environment):
    """Write the files of a folder, and return the variables of a command in it."""
    variables = {**os.environ, **environment.variables}
    for name in (*environment.without, "PYTHONSAFEPATH"):
        if name not in environment.variables:
            variables.pop(name, None)
    scripts = dict.fromkeys(environment.modules, EXECUTED)
    if environment.uid is not None:
        text = f"import os\nos.getuid = lambda: {environment.uid}\n"
        scripts["as/sitecustomize.py"] = text
        variables["PYTHONPATH"] = str(folder / "as")
    for name, text in scripts.items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(text)
    for name, content in files.items():
        (folder / name).write_bytes(content)
    return variables


class End(NamedTuple):
    """How a command has ended."""

    code: int | None  # None if it had to be killed
    output: str


def _run(folder, variables, environment, command):
    """Run a command in a folder, and return how it ends."""
    line = f"{shlex.quote(str(PRECBENCH))} {command} {environment.shell}"
    line = f"set -o pipefail; {line}" if environment.has_pipe else f"exec {line}"

    def limit_resource():
        if environment.limit is not None:
            kind, most = environment.limit
            resource.setrlimit(kind, (most, most))

    process = subprocess.Popen(
        ["bash", "-c", line],
        cwd=folder,
        env=variables,
        preexec_fn=limit_resource,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        start_new_session=True,
    )
    try:
        output, _errors = process.communicate(timeout=60)
        code = process.returncode
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        output, _errors = process.communicate()
        code = None
    return End(code, output.decode("utf-8", "replace"))


def _faults(files, folder, name, command):
    """Return what is wrong with the end of a command in an environment."""
    environment = ENVIRONMENTS[name]
    folder /= environment.folder
    folder.mkdir(parents=True)
    variables = _prepare(files, folder, environment)
    end = _run(folder, variables, environment, command)
    faults = []
    if "Traceback" in end.output:
        faults.append("traceback")
    if end.code is None:
        faults.append("hang")
    elif end.code not in CODES and not environment.has_pipe:
        faults.append("exit code")
    if any((folder / file).read_bytes() != files[file] for file in files):
        faults.append("changed input")
    if (folder / "executed").exists():
        faults.append("executed")
    return [(fault, name, command, end.code, end.output) for fault in faults]


@pytest.mark.parametrize("seed", range(3))
def test_a_drawn_pair_ends_in_a_sentence(files, tmp_path, seed):
    environment, command = random.Random(seed).choice(PAIRS)
    assert not _faults(files, tmp_path, environment, command)


@pytest.mark.measured
@pytest.mark.promise("R19")
@pytest.mark.timeout(7200)
def test_pairs_drawn_for_a_minute_end_in_a_sentence(files, size, figure, tmp_path):
    """The variables PAIRS_SEED and PAIRS_SECONDS set the seed and the time."""
    seed = int(os.environ.get("PAIRS_SEED", random.randrange(2**32)))
    seconds = int(os.environ.get("PAIRS_SECONDS", size(60, 3600)))
    last_moment = time.monotonic() + seconds
    rng = random.Random(seed)
    n_pairs = 0
    faults = []
    while time.monotonic() < last_moment:
        n_pairs += 1
        folder = tmp_path / f"{n_pairs}"
        environment, command = rng.choice(PAIRS)
        faults += _faults(files, folder, environment, command)
        shutil.rmtree(folder)
    print(f"seed {seed}: {n_pairs} pairs, {len(faults)} faults")
    assert not faults
    figure(f"{n_pairs} commands in surroundings that were drawn")
