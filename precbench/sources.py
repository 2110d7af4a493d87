"""Hashes of the source code that this process runs, and of the state of files."""

import hashlib
import json
import os
from collections.abc import Collection, Iterator
from functools import cache
from importlib import import_module
from importlib.machinery import EXTENSION_SUFFIXES
from importlib.metadata import entry_points
from importlib.util import find_spec
from pathlib import Path
from typing import Any

__all__ = ["code_of", "digest", "plugged_in", "state"]


@cache
def code_of(package: str, without: Collection[str] = ()) -> str:
    """Hash the source of a package, compiled modules included.

    Parameters
    ----------
    package : str
        Name of a package, or of a single module.
    without : collection of str
        Its modules and packages that do not count.

    Returns
    -------
    str
        12 hexadecimal digits. A compiled module counts with its ``SOURCE``, the hash of what it was
        compiled from, where it has one: binaries differ between machines.
    """
    spec = find_spec(package)
    assert spec is not None and spec.origin is not None, package
    if not spec.submodule_search_locations:
        return hashlib.sha256(Path(spec.origin).read_bytes()).hexdigest()[:12]
    folder = Path(spec.origin).parent
    digest = hashlib.sha256()
    for path in sorted([*folder.rglob("*.py"), *folder.rglob(f"*{EXTENSION_SUFFIXES[0]}")]):
        *rooms, file = path.relative_to(folder).parts
        name = ".".join([*rooms, file.partition(".")[0]])
        if name.partition(".")[0] not in without:
            content = path.read_bytes() if path.suffix == ".py" else _source(f"{package}.{name}")
            digest.update(f"{name}\0".encode() + hashlib.sha256(content).digest())
    return digest.hexdigest()[:12]


def _source(module: str) -> bytes:
    return str(getattr(import_module(module), "SOURCE", "")).encode()


def plugged_in() -> Iterator[Any]:
    """Yield the entry points of other packages for this one, and the `state` of each package."""
    groups = sorted(group for group in entry_points().groups if group.startswith("precbench."))
    for group in groups:
        for name, value, package in sorted(
            (entry.name, entry.value, entry.module.partition(".")[0])
            for entry in entry_points(group=group)
        ):
            spec = None if package == "precbench" else find_spec(package)
            if spec is not None:
                places = spec.submodule_search_locations or [str(spec.origin)]
                yield group, name, value, [*map(state, places)]


def state(place: str | Path, without: Collection[str] = ()) -> list[tuple[str, int, int, int]]:
    """Return path, size and times of a file, or of each file in a folder, as make sees them."""
    paths = [Path(place)] if Path(place).is_file() else []
    for folder, folders, files in os.walk(place):
        folders[:] = sorted({*folders} - {*without, "__pycache__"})
        paths += [Path(folder, name) for name in sorted({*files} - {*without})]
    found = ((path, path.lstat()) for path in paths)
    return [(str(path), of.st_size, of.st_mtime_ns, of.st_ctime_ns) for path, of in found]


def digest(value: Any) -> str:
    """Return the sha256 of a value, as JSON."""
    return hashlib.sha256(json.dumps(value, default=vars).encode()).hexdigest()
