"""What several test modules use.

The command line in process, results of a run, a toy card.
"""

import contextlib
import hashlib
import itertools
import os
import re
import signal
import subprocess
import sys
import time
import tomllib
from functools import cache
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pandas as pd
import typer
from hypothesis import strategies as st
from typer.main import get_command
from typer.testing import CliRunner

from precbench.cli import app
from precbench.data.cards.card import Card
from precbench.experiment import list_configs, load_config
from precbench.model.model import Model
from precbench.runner.worker import run_job
from precbench.tables.own_file import read_new_blocks

ROOT = Path(__file__).resolve().parents[1]
TIMES = ["cpu_seconds", "wall_seconds", "tuning_seconds", "timing", "run", "machine"]
PEAK = """
import ctypes

def begin():  # forget what imports took for a time or left to reuse
    if hasattr(libc := ctypes.CDLL(None), "malloc_trim"):
        libc.malloc_trim(0)
    open("/proc/self/clear_refs", "w").write("5")
    return peak()

def peak():  # in KiB; ru_maxrss would begin at that of the parent process
    lines = open("/proc/self/status").read().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM"))
"""
TOY_SVM = b"1 1:1\n-1 2:1\n" * 50


# Else a runner makes the commands anew for each call, which takes longer than many of
# the calls.
typer.testing._get_command = cache(get_command)

shipped_config = cache(load_config)


def shipped_configs(kind):
    return [name for name in list_configs() if isinstance(shipped_config(name), kind)]


@cache
def smoke_table(name):
    """Return the table of a study at its smoke size, to be read only."""
    return shipped_config(name).smoke_size().compute()


def small_integers(draw, n, below):
    """Draw n integers from 0 at once, each alike.

    One by one takes ten times as long.
    """
    return (
        np.frombuffer(draw(st.binary(min_size=n, max_size=n)), np.uint8).astype(int)
        % below
    )


def misplaced(figure):
    """Return the texts of a figure that leave its page, and the names of curves that
    overlap.
    """
    from matplotlib.text import Text

    texts = [text for text in figure.findobj(Text) if text.get_text().strip()]
    boxes = [(text, text.get_window_extent()) for text in texts if text.get_visible()]
    width, height = figure.bbox.width, figure.bbox.height
    beyond = [
        text.get_text()
        for text, box in boxes
        if not (box.x0 >= 0 <= box.y0 and box.x1 <= width and box.y1 <= height)
        # no number
        and re.search(r"[a-z]{2}", text.get_text().replace("mathdefault", ""))
    ]
    names = [
        (text.get_text(), box.padded(-1))
        for text, box in boxes
        if text.get_gid() == "name"
    ]
    both = itertools.combinations(names, 2)
    return beyond + [
        f"{one} on {other}" for (one, a), (other, b) in both if a.overlaps(b)
    ]


def entry_point(file):
    project = tomllib.loads(file.read_text())["project"]
    [(group, entries)] = project["entry-points"].items()
    [(entry, value)] = entries.items()
    about = {"package": project["name"], "version": project["version"]}
    return about | {"group": group, "entry": entry, "value": value}


def write_metadata(folder, package, version, group, entry, value):
    """Write the metadata of an installed package with one entry point."""
    metadata = folder / f"{package.replace('-', '_')}-{version}.dist-info"
    metadata.mkdir(exist_ok=True)
    about = f"Metadata-Version: 2.1\nName: {package}\nVersion: {version}\n"
    (metadata / "METADATA").write_text(about)
    (metadata / "entry_points.txt").write_text(f"[{group}]\n{entry} = {value}\n")


def written(page, folder):
    """Write the files of a page, and the metadata that pip would make of its
    pyproject.toml.
    """
    folder.mkdir(parents=True, exist_ok=True)
    page = (ROOT / "docs" / page).read_text()
    shown = re.findall(
        r"^```\w+\n(# ([\w.-]+)\n.*?)^```$", page, re.MULTILINE | re.DOTALL
    )
    for text, name in shown:
        (folder / name).write_text(text)
    write_metadata(folder, **entry_point(folder / "pyproject.toml"))
    return folder


def invoke(*arguments, **options):
    return CliRunner().invoke(app, [str(a) for a in arguments], **options)


def run(config, out, *options):
    return invoke("run", config, "--out", out, *options)


def succeed(*arguments):
    """Run a command in this process, and see that it ends well."""
    result = invoke(*arguments)
    assert result.exit_code == 0, result.output
    return result


def small_experiment(folder):
    """Write a table of 600 rows; return a function that writes a config beside it."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((600, 4))
    y = X @ [1.0, -1.0, 0.5, 0.0] + rng.standard_normal(600) > 1.5
    table = pd.DataFrame(X, columns=[*"abcd"]).assign(label=y.astype(int))
    table.to_csv(folder / "mine.csv", index=False, float_format="%.6f")

    def write(**changes):
        parts = {
            "name": "small",
            "title": "A small experiment",
            "datasets": "[{file: mine.csv, label: label}]",
            "protocol": "{n_splits: 2}",
            "common": "{k: 0.5, epochs: 3, batch_size: 50}",
            "solvers": (
                "{perceptron-avg: , sgd-avg: {eta0: {tune: [0.1, 1.0]}},"
                " cutting-plane: }"
            ),
            "metrics": "[{precision_at_k: {k: 0.5}}, auc]",
            "checkpoints": "5",
            "plots": "[]",
            **changes,
        }
        path = folder / "small.yaml"
        path.write_text(
            "".join(f"{key}: {value}\n" for key, value in parts.items() if value)
        )
        return path

    write()
    return write


def run_in_this_process(monkeypatch):
    monkeypatch.setattr("precbench.core.processes.begin", lambda *_: None)
    monkeypatch.setattr(
        "precbench.runner.dispatch.run_here",
        lambda jobs, n_workers: ((job, run_job(job)) for job in jobs),
    )


def numbers(folder):
    """Return results.csv without its times and machines."""
    return pd.read_csv(folder / "results.csv").drop(columns=TIMES)


def records(folder):
    """Return the record files of a run, each with the time of its last change."""
    return {
        path: path.stat().st_mtime_ns for path in (folder / "trials").glob("*.json")
    }


def printed_numbers(program, *arguments):
    """Run a program in a process of its own, and return what it prints.

    The program may call ``begin()`` and ``peak()``.
    """
    command = [sys.executable, "-c", PEAK + program, *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return [float(number) for number in done.stdout.split()]


def make_card(**changes):
    """Return the card of a data set of 100 rows, with some fields changed."""
    file = {"name": "toy.svm", "bytes": len(TOY_SVM)}
    file |= {"sha256": hashlib.sha256(TOY_SVM).hexdigest()} | changes.pop("file", {})
    fields = {
        "name": "toy",
        "title": "Toy",
        "folder": "toys",
        "format": "svmlight",
        "files": [file],
        "positive": 1,
        "rows": 100,
        "features": 2,
        "positives": 50,
        "scaling": "none",
        "licence": "none",
        "citation": "none",
        "stand_in": {"density": 1.0, "noise": 0.5},
    }
    return Card.model_validate(fields | changes, strict=False)


def wait_until(condition, seconds=30):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "still waiting"
        time.sleep(0.05)


def session(leader):
    """Return the command lines of the living processes of a session."""
    found = {}
    for folder in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):  # it has ended meanwhile
            command = (folder / "cmdline").read_bytes()  # nothing of one that is dead
            if command and os.getsid(int(folder.name)) == leader:
                found[int(folder.name)] = command
    return found


class Deadly:
    """Stands for a data set; another process that looks at it dies."""

    n_train = groups = None
    name = title = sha256 = "deadly"
    stand_in = False

    def __init__(self):
        self.home = os.getpid()

    @property
    def is_elsewhere(self):
        return os.getpid() != self.home

    @property
    def X(self):  # noqa: N802 (as in a data set)
        if self.is_elsewhere:
            os.kill(os.getpid(), signal.SIGKILL)

    y = X


def served(plan, stand_ins):
    """Return a plan that gives stand-ins for the data set, by how often it was asked
    for.
    """

    class Served(dict):
        calls = itertools.count()

        def __missing__(self, name):
            return stand_ins.get(next(self.calls), plan.datasets[name])

    return SimpleNamespace(trials=plan.trials, datasets=Served())


def reloaded(model, path):
    """Save a model, and return what a file of it gives."""
    model.save(path)
    return Model.load(path)


def read_new_rows(path, encoding):
    """Return all rows of a file as a model with an encoding scores them."""
    blocks = [X for X, _ in read_new_blocks(path, encoding)]
    return blocks[0] if len(blocks) == 1 else np.concatenate(blocks)
