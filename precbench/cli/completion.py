"""Shell completion of configs, solvers and data sets."""

from collections.abc import Iterable


def configs() -> Iterable[str]:
    """Return the shipped configs."""
    from precbench.experiment import list_configs

    return list_configs()


def solvers() -> Iterable[str]:
    """Return all solvers."""
    from precbench.solvers import SOLVERS

    return SOLVERS


def datasets() -> Iterable[str]:
    """Return all data sets that have a card."""
    from precbench.data import DATASETS

    return DATASETS
