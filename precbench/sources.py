"""Hashes of the source code that this process runs, so that a record can say which it was."""

import hashlib
from collections.abc import Collection
from functools import cache
from importlib import import_module
from importlib.machinery import EXTENSION_SUFFIXES
from importlib.util import find_spec
from pathlib import Path

__all__ = ["code_of"]


@cache
def code_of(package: str, parts: Collection[str] = ()) -> str:
    """Hash the source of a package, compiled modules included.

    Parameters
    ----------
    package : str
        Name of a package, or of a single module.
    parts : collection of str
        Its modules and packages that count; all without any.

    Returns
    -------
    str
        12 hexadecimal digits. A compiled module counts with its ``SOURCE``, the hash of what it was
        compiled from, where it has one: binaries differ between machines.
    """
    spec = find_spec(package)
    assert spec is not None and spec.origin is not None, package
    folder = Path(spec.origin).parent
    if not spec.submodule_search_locations:
        return hashlib.sha256(Path(spec.origin).read_bytes()).hexdigest()[:12]
    digest = hashlib.sha256()
    for path in sorted(
        path for kind in ("*.py", f"*{EXTENSION_SUFFIXES[0]}") for path in folder.rglob(kind)
    ):
        place = path.relative_to(folder)
        if parts and place.parts[0].partition(".")[0] not in parts:
            continue
        name = ".".join((package, *place.parts[:-1], path.name.partition(".")[0]))
        content = (
            path.read_bytes()
            if path.suffix == ".py"
            else getattr(import_module(name), "SOURCE", "").encode()
        )
        digest.update(f"{name}\0".encode() + hashlib.sha256(content).digest())
    return digest.hexdigest()[:12]
