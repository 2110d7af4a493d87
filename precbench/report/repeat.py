"""The command that repeats a trial."""

import shlex
from functools import cache

from precbench.locations import config_names


@cache
def shipped_config(experiment: str) -> str | None:
    """Return the name of the shipped config of an experiment or study, None for one's own."""
    return next((name for name in config_names() if name.replace("/", "-") == experiment), None)


def repeat_command(
    experiment: str, solver: str, dataset: str, *, config: str | None = None, smoke: bool = False
) -> tuple[str, str] | None:
    """Return the command that repeats a trial, None for a trial of no config.

    Parameters
    ----------
    experiment, solver, dataset : str
        Its name, the label, and the name of the data set.
    config : str, optional
        From `precbench.results.Run`.
    smoke : bool, default=False

    Returns
    -------
    before, after : str
        What stands before and after the number of the split. ``<experiment>.yaml`` stands for a
        config that is not shipped, of a results folder that does not tell its place.
    """
    if config == "":
        return None
    parts = ["precbench", "run", config or shipped_config(experiment) or f"{experiment}.yaml"]
    parts += ["--solver", solver, "--dataset", dataset]
    if smoke:
        parts.append("--smoke")
    return f"{shlex.join(parts)} --splits ", " --force"
