"""The machine and the software that trials run on."""

import os
import platform
import subprocess
import sys
from contextlib import suppress
from functools import cache
from importlib import metadata
from pathlib import Path
from typing import Any

from pydantic import ConfigDict

from precbench.core.keys import canonical_json
from precbench.core.strict_json import Count, Fields, Number
from precbench.core.text import one_line

_PACKAGES = (
    "precbench",
    "catboost",
    "joblib",
    "lightgbm",
    "matplotlib",
    "numpy",
    "pandas",
    "scikit-learn",
    "scipy",
    "threadpoolctl",
    "xgboost",
    "xgboost-cpu",
)


class Machine(Fields):  # what `environment` returns; other keys are kept
    model_config = ConfigDict(extra="allow")

    os: str
    machine: str
    cpu: str
    cores: Count | None
    memory_gib: Number
    python: str
    packages: dict[str, str | None]
    commit: str | None
    dirty: bool | None

    @property
    def kind(self) -> str:
        """What times depend on, in words; times are comparable within one kind."""
        return one_line(
            f"{self.cores or 'unknown'} cores of {self.cpu} with {self.memory_gib:g}"
            f" GiB under {self.os} {self.machine}"
        )


@cache
def environment() -> dict[str, Any]:
    """Return a description of machine and software, without user name, host name or paths."""
    from threadpoolctl import threadpool_info

    blas = [
        {
            name: value
            for name, value in library.items()
            if name not in ("filepath", "prefix")
        }
        for library in threadpool_info()
    ]
    commit = _git("rev-parse", "HEAD")
    # "": none
    changes = _git("status", "--porcelain", "--untracked-files=no") if commit else None
    return {
        "os": f"{platform.system()} {platform.release()}",
        "machine": platform.machine(),
        "cpu": _cpu_model(),
        "cores": (
            len(os.sched_getaffinity(0)) if sys.platform == "linux" else os.cpu_count()
        ),
        "memory_gib": round(
            os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30, 1
        ),
        "python": f"{platform.python_implementation()} {platform.python_version()}",
        "packages": package_versions(),
        "blas": sorted(blas, key=canonical_json),
        "commit": commit,
        "dirty": None if changes is None else bool(changes),
    }


def package_versions() -> dict[str, str | None]:
    """Return the versions of packages that numbers and figures depend on, None if missing."""
    return {name: _version(name) for name in _PACKAGES}


def _cpu_model() -> str:
    # Return the name of the processor on macOS and Linux, only its kind on other
    # systems.
    if sys.platform == "darwin":
        return _output("sysctl", "-n", "machdep.cpu.brand_string") or platform.machine()
    with suppress(OSError), Path("/proc/cpuinfo").open() as lines:
        models = (
            line.split(":", 1)[1].strip()
            for line in lines
            if line.startswith("model name")
        )
        return next(models, platform.machine())
    return platform.machine()


@cache
def _version(package: str) -> str | None:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None  # not installed


@cache  # a later commit does not change the code that runs
def _git(*arguments: str) -> str | None:
    # what git prints in our repository, None without one
    root = Path(__file__).parents[2]
    return (
        _output("git", "-C", str(root), *arguments)
        if (root / ".git").exists()
        else None
    )


def _output(*command: str) -> str | None:
    """Return what a command prints, None if the command fails."""
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=10, check=True
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout.strip()
