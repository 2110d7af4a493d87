"""Shell completion of configs, solvers and data sets."""

from collections.abc import Callable, Iterable
from pkgutil import resolve_name

from precbench.core.locations import config_names as configs

__all__ = ["configs", "datasets", "solvers"]


def _names(registry: str) -> Callable[[], Iterable[str]]:
    # imports the registry when called
    return lambda: resolve_name(registry)


solvers = _names("precbench.solvers:SOLVERS")
datasets = _names("precbench.data:DATASETS")
