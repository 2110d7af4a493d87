"""What a shell completes: names of configs, solvers, data sets and metrics."""

from collections.abc import Iterable
from typing import Any

import typer

from precbench.errors import PrecbenchError

__all__ = ["configs", "datasets", "labels", "solvers"]


def configs() -> Iterable[str]:
    """Return the shipped configs."""
    from precbench.experiment import list_configs

    return list_configs()


def solvers() -> Iterable[str]:
    """Return all solvers."""
    from precbench.solvers import SOLVERS

    return SOLVERS


def labels(ctx: typer.Context) -> Iterable[str]:
    """Return the labels of the configs before the option, all solvers without any."""
    return _members_of(ctx, "solvers") or solvers()


def datasets(ctx: typer.Context) -> Iterable[str]:
    """Return the data sets of the configs before the option, all that have a card without any."""
    from precbench.data import DATASETS

    return _members_of(ctx, "datasets") or DATASETS


def _members_of(ctx: typer.Context, what: str) -> list[str]:
    from precbench.experiment import Experiment, load_config

    found: list[str] = []
    for name in [*(ctx.params.get("configs") or ()), *ctx.args]:  # the latter of half a line
        try:
            config: Any = load_config(name)
        except PrecbenchError:
            continue
        if isinstance(config, Experiment):
            entries = {"solvers": config.solvers, "datasets": [of.name for of in config.datasets]}
            found += entries[what]
    return list(dict.fromkeys(found))
