"""Shell completion of configs, solvers and data sets."""

from collections.abc import Iterable

from precbench.core.locations import config_names as configs

__all__ = ["configs", "datasets", "solvers"]


def solvers() -> Iterable[str]:
    from precbench.solvers import SOLVERS  # here, as the import takes long

    return SOLVERS


def datasets() -> Iterable[str]:
    from precbench.data import DATASETS  # here, as the import takes long

    return DATASETS
