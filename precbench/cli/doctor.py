"""``precbench doctor``."""

import importlib
import os
import shutil
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from rich.filesize import decimal

from precbench.cli.options import Json, print_facts
from precbench.core.locations import cache_folder

_PACKAGE = Path(__file__).parents[1]
_EXTRAS = {
    "cluster": ["distributed"],
    "parquet": ["pyarrow"],
    "excel": ["openpyxl", "python-calamine"],
    "trees": ["lightgbm"],
    "rivals": ["lightgbm", "xgboost", "catboost"],
}


def examine(as_json: Json = False) -> int:
    """Check the installation; paste the output into bug reports.

    Checks compiled kernels, BLAS, versions, extras, the cache, the mirror and free disk
    space. No user name, host name or address is printed.

    Exit code 1: something does not work.

    \b
    Example:
      precbench doctor
    """
    state: dict[str, Any] = {}
    broken: list[str] = []
    for name, check in _CHECKS.items():  # functions that describe a part, or raise
        try:
            state[name] = check()
        except Exception as error:  # whatever is broken, report the rest
            state[name] = (
                f"does not work: {type(error).__name__}: {' '.join(str(error).split())}"
            )
            broken.append(name)
    print_facts({**state, "wrong": broken}, as_json=as_json)
    if not as_json:
        print(f"does not work: {', '.join(broken)}" if broken else "everything works")
    return int(bool(broken))


def _kernels() -> str:
    """Import all compiled kernels.

    Return in words how many there are, and their names.
    """
    # An installed package has no .pyx files, only the compiled modules.
    files = [*_PACKAGE.rglob("*.pyx")] or [*_PACKAGE.rglob("*.so")]
    # "solvers.push.kernel" of solvers/push/kernel.pyx, or of kernel.cpython-311-….so
    names = sorted(
        ".".join([*path.relative_to(_PACKAGE).parts[:-1], path.name.partition(".")[0]])
        for path in files
    )
    for name in names:
        importlib.import_module(f"precbench.{name}")
    return f"{len(names)} loaded ({', '.join(names)})"


def _environment() -> dict[str, Any]:  # the machine, and versions of packages
    importlib.import_module("scipy.linalg")  # so that the BLAS of scipy is listed
    from precbench.results.machine import environment

    return environment()


def _extras() -> dict[str, str]:  # by extra, "installed" or how to install
    return {
        extra: (
            "installed"
            if all(map(find_spec, packages))
            else f"pip install '.[{extra}]' in a checkout"
        )
        for extra, packages in _EXTRAS.items()
    }


def _cache() -> str:
    """Describe the cache folder and the free disk space.

    Raise if the folder is not writable.
    """
    folder = cache_folder()
    sizes = [path.stat().st_size for path in folder.rglob("*") if path.is_file()]
    place = (
        "$PRECBENCH_CACHE"
        if os.environ.get("PRECBENCH_CACHE")
        else "the default cache folder"
    )
    # or a parent
    nearest = next(path for path in (folder, *folder.parents) if path.exists())
    if not os.access(nearest, os.W_OK):
        # The path is not printed, since it may hold the user's name.
        raise PermissionError(
            f"cannot write to {place}; set $PRECBENCH_CACHE to another folder"
        )
    free = decimal(shutil.disk_usage(nearest).free)
    return (
        f"{place}, {len(sizes):,} files, {decimal(sum(sizes))}, {free} free on the disk"
    )


def _mirror() -> str:
    """Return the kind of mirror: an address, a folder or none.

    Raise if the folder is missing.
    """
    mirror = os.environ.get("PRECBENCH_MIRROR", "")
    if "://" in mirror:
        return "an address"
    if mirror and not Path(mirror).is_dir():
        raise NotADirectoryError(
            "$PRECBENCH_MIRROR is no folder; set it to a folder or an address"
        )
    return "a folder" if mirror else "none ($PRECBENCH_MIRROR is not set)"


def _solver() -> str:
    """Fit a solver to data that one feature separates.

    Raise if a positive is not ranked first.
    """
    from precbench.ranking.metrics import auc
    from precbench.solvers import SOLVERS

    # The rows whose first feature, i % 7, is above 4 are positive.
    X, y = (
        [[float(i % 7), float(i % 3)] for i in range(60)],
        [i % 7 > 4 for i in range(60)],
    )
    value = auc(
        y, SOLVERS["sgd-avg"](k=0.5, random_state=0).fit(X, y).decision_function(X)
    )
    if value != 1.0:
        raise ValueError(
            f"sgd-avg has AUC {value}, not 1, on separable data; reinstall precbench"
        )
    return "fits linearly separable data"


_CHECKS: dict[str, Callable[[], Any]] = {
    "kernels": _kernels,
    "machine": _environment,
    "extras": _extras,
    "solver": _solver,
    "cache": _cache,
    "mirror": _mirror,
}
