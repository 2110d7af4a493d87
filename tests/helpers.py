"""What several test modules use: the command line in process, results, a toy card."""

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
    libc = ctypes.CDLL(None)
    if hasattr(libc, "malloc_trim"):
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
    content = draw(st.binary(min_size=n, max_size=n))
    return np.frombuffer(content, np.uint8).astype(int) % below


def misplaced(figure):
    """Return the texts of a figure that leave its page, and the names of curves that
    overlap.
    """
    from matplotlib.text import Text

    texts = [
        text
        for text in figure.findobj(Text)
        if text.get_visible() and text.get_text().strip()
    ]
    beyond = [
        text.get_text()
        for text in texts
        if _has_words(text) and not _is_within(text.get_window_extent(), figure.bbox)
    ]
    names = [text for text in texts if text.get_gid() == "name"]
    overlapping = [
        f"{one.get_text()} on {other.get_text()}"
        for one, other in itertools.combinations(names, 2)
        if _inner_box(one).overlaps(_inner_box(other))
    ]
    return beyond + overlapping


def _has_words(text):
    """Return whether a text of a figure is more than a number."""
    return re.search(r"[a-z]{2}", text.get_text().replace("mathdefault", ""))


def _is_within(box, page):
    if box.x0 < 0 or box.y0 < 0:
        return False
    return box.x1 <= page.width and box.y1 <= page.height


def _inner_box(text):
    return text.get_window_extent().padded(-1)


def entry_point(file):
    """Return the only entry point of a pyproject.toml, as `write_metadata` takes it."""
    project = tomllib.loads(file.read_text())["project"]
    [(group, entries)] = project["entry-points"].items()
    [(entry, value)] = entries.items()
    return {
        "package": project["name"],
        "version": project["version"],
        "group": group,
        "entry": entry,
        "value": value,
    }


def write_metadata(folder, package, version, group, entry, value):
    """Write the metadata of an installed package with one entry point."""
    metadata = folder / f"{package.replace('-', '_')}-{version}.dist-info"
    metadata.mkdir(exist_ok=True)
    description = f"Metadata-Version: 2.1\nName: {package}\nVersion: {version}\n"
    (metadata / "METADATA").write_text(description)
    (metadata / "entry_points.txt").write_text(f"[{group}]\n{entry} = {value}\n")


def written(page, folder):
    """Write the files of a page, and the metadata that pip would make of its
    pyproject.toml.
    """
    folder.mkdir(parents=True, exist_ok=True)
    text_of_page = (ROOT / "docs" / page).read_text()
    # Each block begins with a comment that is the name of its file.
    block = re.compile(
        r"^```\w+\n(?P<text># (?P<name>[\w.-]+)\n.*?)^```$", re.MULTILINE | re.DOTALL
    )
    for match in block.finditer(text_of_page):
        (folder / match["name"]).write_text(match["text"])
    write_metadata(folder, **entry_point(folder / "pyproject.toml"))
    return folder


def invoke(*arguments, **options):
    """Run a command in this process; return its exit code and its output."""
    return CliRunner().invoke(app, [str(word) for word in arguments], **options)


def run(config, out, *options):
    """Run a config in this process; return the exit code and the output."""
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
    is_positive = X @ [1.0, -1.0, 0.5, 0.0] + rng.standard_normal(600) > 1.5
    table = pd.DataFrame(X, columns=["a", "b", "c", "d"])
    table["label"] = is_positive.astype(int)
    table.to_csv(folder / "mine.csv", index=False, float_format="%.6f")

    def write(**changes):
        sections = {
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
        lines = [f"{key}: {value}\n" for key, value in sections.items() if value]
        path = folder / "small.yaml"
        path.write_text("".join(lines))
        return path

    write()
    return write


def run_in_this_process(monkeypatch):
    """Run trials without workers."""

    def run_here(jobs, n_workers):
        for job in jobs:
            yield job, run_job(job)

    monkeypatch.setattr("precbench.core.processes.begin", lambda *_: None)
    monkeypatch.setattr("precbench.runner.dispatch.run_here", run_here)


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
    process = subprocess.run(command, capture_output=True, text=True, check=False)
    assert process.returncode == 0, process.stderr
    return [float(number) for number in process.stdout.split()]


def make_card(**changes):
    """Return the card of a data set of 100 rows, with some fields changed.

    The change `file` is one of fields of its file.
    """
    file = {
        "name": "toy.svm",
        "bytes": len(TOY_SVM),
        "sha256": hashlib.sha256(TOY_SVM).hexdigest(),
        **changes.pop("file", {}),
    }
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
    """Wait until a condition holds; fail if it does not within some seconds."""
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "still waiting"
        time.sleep(0.05)


def session(leader):
    """Return the command lines of the living processes of a session, by their ids."""
    commands = {}
    for folder in Path("/proc").glob("[0-9]*"):
        pid = int(folder.name)
        with contextlib.suppress(OSError):  # it has ended meanwhile
            command = (folder / "cmdline").read_bytes()  # empty for one that is dead
            if command and os.getsid(pid) == leader:
                commands[pid] = command
    return commands


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

    y = n_pos = X


def served(plan, stand_ins):
    """Return a plan that gives other data sets in place of its own.

    `stand_ins` has them by the number of the request, from 0.
    """

    class Served(dict):
        requests = itertools.count()

        def __missing__(self, name):
            return stand_ins.get(next(self.requests), plan.datasets[name])

    return SimpleNamespace(trials=plan.trials, datasets=Served())


def reloaded(model, path):
    """Save a model, and return what a file of it gives."""
    model.save(path)
    return Model.load(path)


def read_new_rows(path, encoding):
    """Return all rows of a file as a model with an encoding scores them."""
    blocks = [X for X, _ in read_new_blocks(path, encoding)]
    if len(blocks) == 1:
        return blocks[0]
    return np.concatenate(blocks)
