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


class Machine(Fields):
    """What `environment` returns; other keys are kept."""

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
    """Return a description of machine and software, without names of user or host."""
    commit = _git("rev-parse", "HEAD")
    changes = None
    if commit:
        changes = _git("status", "--porcelain", "--untracked-files=no")
    memory_bytes = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return {
        "os": f"{platform.system()} {platform.release()}",
        "machine": platform.machine(),
        "cpu": _cpu_model(),
        "cores": _cores(),
        "memory_gib": round(memory_bytes / 2**30, 1),
        "python": f"{platform.python_implementation()} {platform.python_version()}",
        "packages": package_versions(),
        "blas": _blas_libraries(),
        "commit": commit,
        "dirty": None if changes is None else changes != "",
    }


def _cores() -> int | None:
    """Return the number of cores; on Linux, of those that this process may use."""
    if sys.platform == "linux":
        return len(os.sched_getaffinity(0))
    return os.cpu_count()


def _blas_libraries() -> list[dict[str, Any]]:
    """Return descriptions of the libraries of linear algebra, without their paths."""
    from threadpoolctl import threadpool_info

    libraries = []
    for library in threadpool_info():
        library.pop("filepath", None)
        library.pop("prefix", None)
        libraries.append(library)
    return sorted(libraries, key=canonical_json)


def package_versions() -> dict[str, str | None]:
    """Return the versions of packages that numbers and figures depend on."""
    return {name: _version(name) for name in _PACKAGES}


def _cpu_model() -> str:
    """Return the name of the processor on macOS and Linux, else only its kind."""
    if sys.platform == "darwin":
        return _output("sysctl", "-n", "machdep.cpu.brand_string") or platform.machine()
    with suppress(OSError), Path("/proc/cpuinfo").open() as lines:
        for line in lines:
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    return platform.machine()


@cache
def _version(package: str) -> str | None:
    """Return the version of a package, None if it is not installed."""
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None


@cache  # a later commit does not change the code that runs
def _git(*arguments: str) -> str | None:
    """Return what git prints in our repository, None without one."""
    root = Path(__file__).parents[2]
    if not (root / ".git").exists():
        return None
    return _output("git", "-C", str(root), *arguments)


def _output(*command: str) -> str | None:
    """Return what a command prints, None if the command fails."""
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=10, check=True
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout.strip()
