"""What it takes to repeat a trial: the command and the machine."""

import shlex
from functools import cache
from typing import Any

from precbench.core.locations import config_names
from precbench.results.machine import Machine


@cache
def shipped_config(experiment: str) -> str | None:
    """Return the name of an experiment's or study's shipped config, or None without one."""
    return next(
        (name for name in config_names() if name.replace("/", "-") == experiment), None
    )


def repeat_command(
    experiment: str,
    solver: str,
    dataset: str,
    *,
    config: str | None = None,
    smoke: bool = False,
) -> tuple[str, str] | None:
    """Return the command that repeats a trial, in two parts.

    Before and after the split's number.

    Return None if `config` is "", as for trials started from Python. A `config` of None
    is unknown: the command names the shipped config, or else ``<experiment>.yaml``.
    """
    if config == "":
        return None
    parts = [
        "precbench",
        "run",
        config or shipped_config(experiment) or f"{experiment}.yaml",
    ]
    parts += ["--solver", solver, "--dataset", dataset]
    parts += ["--smoke"] if smoke else []
    return f"{shlex.join(parts)} --splits ", " --force"


def machine_facts(machine: Machine) -> dict[str, Any]:
    """Return the known facts of a machine and the versions of the packages there, by name."""
    facts = machine.model_dump(exclude={"packages", "blas"}) | machine.packages
    return {name: value for name, value in facts.items() if value is not None}
