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
# Modules of the packages of each extra
_EXTRAS = {
    "cluster": ["distributed"],
    "parquet": ["pyarrow"],
    "excel": ["openpyxl", "python_calamine"],
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
            message = " ".join(str(error).split())
            state[name] = f"does not work: {type(error).__name__}: {message}"
            broken.append(name)
    print_facts({**state, "wrong": broken}, as_json=as_json)
    if not as_json:
        print(f"does not work: {', '.join(broken)}" if broken else "everything works")
    return int(bool(broken))


def _kernels() -> str:
    """Import all compiled kernels; return their number and names."""
    # An installed package has no .pyx files, only the compiled modules.
    files = [*_PACKAGE.rglob("*.pyx")] or [*_PACKAGE.rglob("*.so")]
    names = sorted(map(_module_name, files))
    for name in names:
        importlib.import_module(f"precbench.{name}")
    return f"{len(names)} loaded ({', '.join(names)})"


def _module_name(path: Path) -> str:
    """Return solvers.push.kernel for .../solvers/push/kernel.cpython-311-x86_64.so."""
    stem, _dot, _suffixes = path.name.partition(".")
    return ".".join([*path.parent.relative_to(_PACKAGE).parts, stem])


def _environment() -> dict[str, Any]:
    """Describe the machine and the versions of packages."""
    importlib.import_module("scipy.linalg")  # so that the BLAS of scipy is listed
    from precbench.results.machine import environment

    return environment()


def _extras() -> dict[str, str]:
    """Return for each extra "installed", or how to install it."""
    state = {}
    for extra, modules in _EXTRAS.items():
        if all(map(find_spec, modules)):
            state[extra] = "installed"
        else:
            state[extra] = f"pip install '.[{extra}]' in a checkout"
    return state


def _cache() -> str:
    """Describe the cache folder and the free disk space; raise if not writable."""
    folder = cache_folder()
    sizes = [path.stat().st_size for path in folder.rglob("*") if path.is_file()]
    place = (
        "$PRECBENCH_CACHE"
        if os.environ.get("PRECBENCH_CACHE")
        else "the default cache folder"
    )
    # Before the first download the folder is missing: its nearest parent counts.
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
    """Return the kind of mirror, such as a folder; raise if the folder is missing."""
    mirror = os.environ.get("PRECBENCH_MIRROR", "")
    if "://" in mirror:
        return "an address"
    if mirror and not Path(mirror).is_dir():
        raise NotADirectoryError(
            "$PRECBENCH_MIRROR is no folder; set it to a folder or an address"
        )
    return "a folder" if mirror else "none ($PRECBENCH_MIRROR is not set)"


def _solver() -> str:
    """Fit a solver to separable data; raise if a positive is not ranked first."""
    from precbench.ranking.metrics import auc
    from precbench.solvers import SOLVERS

    X = [[float(i % 7), float(i % 3)] for i in range(60)]
    y = [i % 7 > 4 for i in range(60)]  # the first feature separates the rows
    solver = SOLVERS["sgd-avg"](k=0.5, random_state=0).fit(X, y)
    value = auc(y, solver.decision_function(X))
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
