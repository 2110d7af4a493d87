"""What a shell completes: names of configs, solvers, data sets and metrics."""

from collections.abc import Callable, Iterable
from typing import Any

import typer

from precbench.errors import PrecbenchError

__all__ = ["configs", "datasets", "labels", "solvers"]


def _completes(names: Callable[[typer.Context], Iterable[str]]) -> Callable[..., list[str]]:
    """Return what typer calls with the beginning of a word."""

    def complete(ctx: typer.Context, incomplete: str) -> list[str]:
        return [name for name in names(ctx) if name.startswith(incomplete)]

    return complete


def _configs(_: typer.Context) -> Iterable[str]:
    from precbench.experiment import list_configs

    return list_configs()


def _solvers(_: typer.Context) -> Iterable[str]:
    from precbench.solvers import SOLVERS

    return SOLVERS


def _labels(ctx: typer.Context) -> Iterable[str]:
    """Return the labels of the configs before the option, all solvers without any."""
    return _members_of(ctx, "solvers") or _solvers(ctx)


def _datasets(ctx: typer.Context) -> Iterable[str]:
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


configs, solvers, labels, datasets = map(_completes, (_configs, _solvers, _labels, _datasets))
