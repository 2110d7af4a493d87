"""What it takes to repeat a trial: the command and the machine."""

import shlex
from functools import cache
from typing import Any

from precbench.locations import config_names
from precbench.store import Machine


@cache
def shipped_config(experiment: str) -> str | None:
    """Return the shipped config of an experiment or study, None if there is none."""
    return next((name for name in config_names() if name.replace("/", "-") == experiment), None)


def repeat_command(
    experiment: str, solver: str, dataset: str, *, config: str | None = None, smoke: bool = False
) -> tuple[str, str] | None:
    """Return what stands before and after the split in the command that repeats a trial.

    None for a trial of no config. ``<experiment>.yaml`` stands for a config of unknown place.
    """
    if config == "":  # "" for trials from Python, None if unknown
        return None
    parts = ["precbench", "run", config or shipped_config(experiment) or f"{experiment}.yaml"]
    parts += ["--solver", solver, "--dataset", dataset]
    if smoke:
        parts.append("--smoke")
    return f"{shlex.join(parts)} --splits ", " --force"


def machine_facts(machine: Machine) -> dict[str, Any]:
    """Return what is known of a machine and of the versions on it."""
    facts = machine.model_dump(exclude={"packages", "blas"}) | machine.packages
    return {name: value for name, value in facts.items() if value is not None}
