"""A small world of valid files, what a case is, and how it ended."""

import contextlib
import os
import signal
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import typer.testing
from typer.main import get_command

from precbench.cli import app

COMMAND = get_command(app)
typer.testing._get_command = lambda _: COMMAND  # made anew for each call, it takes longer than most

Change = Callable[[Random, bytes], bytes]
FIT = ["--label", "y", "--categorical", "one-hot", "--missing", "median", "--k", "3"]
SAVED = {
    "model.npz": ["perceptron-avg"],
    "trees.npz": ["hist-gradient-boosting", "--param", "max_iter=3"],
    "forest.npz": ["random-forest", "--param", "n_estimators=3", "--fourier", "3"],
}


class End(NamedTuple):
    """How a case ended: its file and what read it, the file's content, and what is wrong."""

    outcome: str
    case: str
    content: bytes
    finding: str = ""
    error: str = ""


def give(arguments: list[str]) -> Any:
    """Run a command in this process."""
    return typer.testing.CliRunner().invoke(app, arguments)


def make_world(world: Path, config: str, *commands: list[str]) -> pd.DataFrame:
    """Write rows, a config and three models, give these commands, and stay in the folder."""
    world.mkdir(parents=True)
    os.chdir(world)
    rng = np.random.default_rng(0)
    table = pd.DataFrame(rng.standard_normal((60, 3)).round(3), columns=["a", "b", "c"])
    table["colour"] = np.where(table["c"] > 0, "red", "=green;x")
    table["y"] = np.where(table["a"] + table["b"] > 0.5, 1, -1)
    table.to_csv("rows.csv", index=False)
    table.to_parquet("rows.parquet", index=False)
    np.savez("rows.npz", X=table[["a", "b", "c"]].to_numpy(), y=table["y"].to_numpy())
    Path("mine.yaml").write_text(config)
    fits = [
        ["fit", "rows.csv", *FIT, "--splits", "1", "--save", name, "--solver", *how]
        for name, how in SAVED.items()
    ]
    for arguments in (*fits, *commands):
        done = give(arguments)
        assert done.exit_code in (0, 4), done.output
    return table


def place_of(error: BaseException) -> str:
    """Return an error with the place where it was raised."""
    where = traceback.extract_tb(error.__traceback__)[-1]
    return f"{type(error).__name__} ({Path(where.filename).name}:{where.lineno})"


def ring(*_: Any) -> None:
    """End a case that takes too long."""
    raise TimeoutError("takes too long")


@contextlib.contextmanager
def within(seconds: int) -> Iterator[None]:
    """Ring when the time is over."""
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
