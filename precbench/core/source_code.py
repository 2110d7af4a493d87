"""Hashes of the source code that this process runs."""

import hashlib
from collections.abc import Collection
from functools import cache
from importlib import import_module
from importlib.machinery import EXTENSION_SUFFIXES
from importlib.util import find_spec
from pathlib import Path


@cache
def code_of(package: str, without: Collection[str] = ()) -> str:
    """Return a hash of the source of a package or module, as 12 hexadecimal digits.

    `without` names parts of the package to leave out, such as "cli" or "results.merge".
    A compiled module counts by its variable SOURCE, a hash of sources and options,
    because binaries differ by machine.
    """
    spec = find_spec(package)
    assert spec is not None and spec.origin is not None, package
    if not spec.submodule_search_locations:  # a module, not a package
        return hashlib.sha256(Path(spec.origin).read_bytes()).hexdigest()[:12]
    folder = Path(spec.origin).parent
    digest = hashlib.sha256()
    sources = folder.rglob("*.py")
    # The first suffix is that of modules compiled for this version of Python.
    compiled = folder.rglob(f"*{EXTENSION_SUFFIXES[0]}")
    for path in sorted([*sources, *compiled]):
        name = _name_in(folder, path)
        if any(_is_within(part, name) for part in without):
            continue
        if path.suffix == ".py":
            content = path.read_bytes()
        else:
            module = import_module(f"{package}.{name}")
            content = str(getattr(module, "SOURCE", "")).encode()
        digest.update(f"{name}\0".encode() + hashlib.sha256(content).digest())
    return digest.hexdigest()[:12]


def _name_in(folder: Path, path: Path) -> str:
    """Return the name of a module inside its package, such as "data.splits"."""
    *folders, file = path.relative_to(folder).parts
    module, _, _suffixes = file.partition(".")
    return ".".join([*folders, module])


def _is_within(part: str, name: str) -> bool:
    """Return whether a module is a part of a package, or in that part."""
    return name == part or name.startswith(f"{part}.")
