"""The memory that this process may use."""

import os
import resource
from pathlib import Path

from precbench.errors import InputError

__all__ = ["MATRICES", "memory_limit", "require_memory"]

MATRICES = 9
"""Matrices of n_features x n_features that `numpy.linalg.eigh` and its caller hold at once, at
most: five are LAPACK's."""

_CONTAINER_LIMIT = Path("/sys/fs/cgroup/memory.max")


def memory_limit() -> int:
    """Return the memory that this process may use, in bytes.

    The least of the machine's memory, the limit on the address space of the process and the limit
    on the memory of its container.
    """
    limits = [os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")]
    soft, _ = resource.getrlimit(resource.RLIMIT_AS)
    if soft != resource.RLIM_INFINITY:
        limits.append(soft)
    try:
        granted = _CONTAINER_LIMIT.read_text().strip()
    except OSError:
        granted = "max"
    if granted.isdecimal():
        limits.append(int(granted))
    return min(limits)


def require_memory(n_values: int, n_features: int, what: str) -> None:
    """Refuse a number of features for which the arrays of a solver do not fit into memory.

    Parameters
    ----------
    n_values : int
        Number of float64 values in the arrays.
    n_features : int
    what : str
        The arrays, as the message names them.

    Raises
    ------
    InputError
    """
    needed, limit = 8 * n_values, memory_limit()
    if needed > limit:
        raise InputError(
            f"X has {n_features:,} features: {what} take {needed / 2**30:,.1f} GiB, and this "
            f"process may use {limit / 2**30:,.1f} GiB; select or project the features"
        )
