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
from pathlib import Path

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
    (
        "compare mine.csv --label y --k 10 --solver logistic-regression --splits 2"
        " --out out"
    ),
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


def _limited(what, most):
    return lambda: resource.setrlimit(what, (most, most))


ENVIRONMENTS = {
    "as it is": {},
    "closed output": {"shell": ">&-"},
    "closed errors": {"shell": "2>&-"},
    "nothing open": {"shell": ">&- 2>&- <&-"},
    "full device": {"shell": ">/dev/full"},
    "a reader that has left": {"shell": "| true"},
    "ASCII": {"env": {"PYTHONIOENCODING": "ascii", "LC_ALL": "C"}},
    "cp1252": {"env": {"PYTHONIOENCODING": "cp1252"}},
    "20 columns": {"env": {"COLUMNS": "20"}},
    "no home": {"without": ["HOME", "XDG_CACHE_HOME", "PRECBENCH_CACHE"]},
    "a home that cannot be": {
        "env": {"HOME": "/dev/null/none"},
        "without": ["XDG_CACHE_HOME"],
    },
    "a user without a name": {"without": ["HOME", "XDG_CACHE_HOME"], "uid": 54321},
    "few files": {"limit": _limited(resource.RLIMIT_NOFILE, 64)},
    "small files": {"limit": _limited(resource.RLIMIT_FSIZE, 4096)},
    "a folder of a hostile name": {"folder": "a\n\x1b[31m[red]$(exit) é\udce9 {0}%s'"},
    "planted modules": {
        "plant": ["precbench/__init__.py", "joblib.py", "numpy.py", "typer.py"]
    },
}
EXECUTED = "open('/proc/self/cwd/executed', 'w').close()\n"
PAIRS = list(itertools.product(ENVIRONMENTS, COMMANDS))


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("files")
    rng = np.random.default_rng(0)
    y = np.arange(200) % 4 == 0
    pd.DataFrame(
        {"a": rng.standard_normal(200) + y, "b": rng.random(200), "y": y.astype(int)}
    ).to_csv(folder / "mine.csv", index=False)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        succeed(*FIT.replace("new.npz", "m.npz").split())
    return {name: (folder / name).read_bytes() for name in ("mine.csv", "m.npz")}


def _end(files, folder, environment, command):
    """Run a command, and return its exit code and what it says."""
    planted = dict.fromkeys(environment.get("plant", ()), EXECUTED)
    left_out = {*environment.get("without", ()), "PYTHONSAFEPATH"}
    env = {n: v for n, v in os.environ.items() if n not in left_out} | environment.get(
        "env", {}
    )
    if "uid" in environment:
        planted["as/sitecustomize.py"] = (
            f"import os\nos.getuid = lambda: {environment['uid']}\n"
        )
        env["PYTHONPATH"] = str(folder / "as")
    for name, text in planted.items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(text)
    for name, content in files.items():
        (folder / name).write_bytes(content)
    line = (
        f"exec {shlex.quote(str(PRECBENCH))} {command} {environment.get('shell', '')}"
    )
    if "|" in line:
        line = f"set -o pipefail; {line.removeprefix('exec ')}"
    process = subprocess.Popen(
        ["bash", "-c", line],
        cwd=folder,
        env=env,
        preexec_fn=environment.get("limit"),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        start_new_session=True,
    )
    try:
        said = process.communicate(timeout=60)[0].decode("utf-8", "replace")
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        return None, process.communicate()[0].decode("utf-8", "replace")
    return process.returncode, said


def _faults(files, folder, where, command):
    """Return what is wrong with the end of a command in some surroundings."""
    environment = ENVIRONMENTS[where]
    folder /= environment.get("folder", "here")
    folder.mkdir(parents=True)
    code, said = _end(files, folder, environment, command)
    wrong = {
        "traceback": "Traceback" in said,
        "hang": code is None,
        "exit code": (
            code not in CODES | {None} and "|" not in environment.get("shell", "")
        ),
        "changed input": any(
            (folder / name).read_bytes() != files[name] for name in files
        ),
        "executed": (folder / "executed").exists(),
    }
    return [
        (fault, where, command, code, said) for fault, holds in wrong.items() if holds
    ]


@pytest.mark.parametrize("number", range(3))
def test_a_drawn_pair_ends_in_a_sentence(files, tmp_path, number):
    assert not _faults(files, tmp_path, *random.Random(number).choice(PAIRS))


@pytest.mark.measured
@pytest.mark.promise("R19")
@pytest.mark.timeout(7200)
def test_pairs_drawn_for_a_minute_do(files, size, figure, tmp_path):
    """PAIRS_SEED and PAIRS_SECONDS tell which, and how long."""
    seed = int(os.environ.get("PAIRS_SEED", random.randrange(2**32)))
    end = time.monotonic() + int(os.environ.get("PAIRS_SECONDS", size(60, 3600)))
    rng, n_pairs, faults = random.Random(seed), 0, []
    while time.monotonic() < end:
        n_pairs += 1
        faults += _faults(files, tmp_path / f"{n_pairs}", *rng.choice(PAIRS))
        shutil.rmtree(tmp_path / f"{n_pairs}")
    print(f"seed {seed}: {n_pairs} pairs, {len(faults)} faults")
    assert not faults
    figure(f"{n_pairs} commands in surroundings that were drawn")
