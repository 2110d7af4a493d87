"""What it takes to repeat a trial: the command and the machine."""

import shlex
from functools import cache
from typing import Any

from precbench.core.locations import config_names
from precbench.results.machine import Machine


@cache
def shipped_config(experiment: str) -> str | None:
    """Return the name of the shipped config of an experiment or study, if any.

    The config kar2015/appendix-a is of the experiment kar2015-appendix-a.
    """
    return next(
        (name for name in config_names() if name.replace("/", "-") == experiment), None
    )


def repeat_command(
    experiment: str,
    solver: str,
    dataset: str,
    *,
    split: int | str,
    config: str | None = None,
    smoke: bool = False,
) -> str | None:
    """Return the command that repeats the trial of a split.

    Return None if `config` is "", as for trials started from Python. A `config` of None
    is unknown: the command names the shipped config, or else ``<experiment>.yaml``.
    """
    if config == "":
        return None
    if config is None:
        config = shipped_config(experiment) or f"{experiment}.yaml"
    words = ["precbench", "run", config, "--solver", solver, "--dataset", dataset]
    if smoke:
        words.append("--smoke")
    words += ["--splits", str(split), "--force"]
    return shlex.join(words)


def machine_facts(machine: Machine) -> dict[str, Any]:
    """Return the known facts of a machine and the versions of its packages."""
    facts = machine.model_dump(exclude={"packages", "blas"}) | machine.packages
    return {name: value for name, value in facts.items() if value is not None}
