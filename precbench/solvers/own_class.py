"""A solver from a file of the user, such as ``mine.py:RidgeTop``.

The file is imported by its path, in this process and in workers, and only where a
command, a function or a config that is run names it. A name that is read from a results
folder or a model imports nothing: `Registry` does not know it.
"""

import hashlib
import re
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

from precbench.core.errors import InputError, did_you_mean
from precbench.core.text import one_line

_SPECIFICATION = re.compile(r"(?P<file>.+\.py):(?P<name>[A-Za-z_]\w*)")
_REGISTERED = re.compile(r".+\.py:[A-Za-z_]\w*@(?P<digest>[0-9a-f]{12})")


@dataclass(frozen=True)
class OwnClass:
    """A class in a file, whose content is part of its identity.

    Attributes
    ----------
    path : str
        The file, absolute.
    class_name : str
    digest : str
        Of the file, 12 hexadecimal digits.
    """

    path: str
    class_name: str
    digest: str

    @property
    def name(self) -> str:
        """The name in the registry and in records, without a folder of the user."""
        return f"{Path(self.path).name}:{self.class_name}@{self.digest}"

    def load(self) -> Any:
        """Import the file by its path, if it is unchanged, and return the class."""
        file = Path(self.path).name
        source = _source(Path(self.path))
        if _digest(source) != self.digest:
            raise InputError(
                f"{file} has changed since the run began; run the same command again"
            )
        module = _imported(source, self.path, f"precbench_own_{self.digest}")
        member = getattr(module, self.class_name, None)
        if member is None:
            hint = did_you_mean(self.class_name, vars(module))
            raise InputError(f"{file} has no class {self.class_name}{hint}")
        if not isinstance(member, type):
            raise InputError(
                f"{self.class_name} in {file} is no class; name a class with a method"
                " fit"
            )
        if not callable(getattr(member, "fit", None)):
            raise InputError(
                f"{self.class_name} in {file} has no method fit; make it a LinearRanker"
                " or NonlinearRanker of precbench.solvers, or a classifier of"
                " scikit-learn"
            )
        return member


def is_own_class(name: object) -> bool:
    """Return whether a name has the form FILE.py:CLASS."""
    return isinstance(name, str) and _SPECIFICATION.fullmatch(name) is not None


def digest_of(name: str) -> str:
    """Return the digest of the file in a registered name, "" in any other name."""
    registered = _REGISTERED.fullmatch(name)
    return registered["digest"] if registered else ""


def find_own_class(specification: str, folder: Path) -> OwnClass:
    """Return the class that FILE.py:CLASS names; the file is relative to `folder`."""
    parts = _SPECIFICATION.fullmatch(specification)
    assert parts is not None, specification
    path = (folder / Path(parts["file"]).expanduser()).resolve()
    return OwnClass(str(path), parts["name"], _digest(_source(path)))


def _source(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise InputError(
            f"{path.name} cannot be read: {error.strerror}; give the path of a Python"
            " file as FILE.py:CLASS"
        ) from error


def _digest(source: bytes) -> str:
    return hashlib.sha256(source).hexdigest()[:12]


def _imported(source: bytes, path: str, name: str) -> ModuleType:
    """Return the module of a file, imported once in this process."""
    if name in sys.modules:
        return sys.modules[name]
    module = ModuleType(name)
    module.__file__ = path
    sys.modules[name] = module  # before its code runs, as of any module
    try:
        # What was hashed is what runs, whatever has been written since.
        exec(compile(source, path, "exec"), module.__dict__)
    except Exception as error:
        del sys.modules[name]
        raise InputError(
            f"{Path(path).name} cannot be imported ({type(error).__name__}:"
            f" {one_line(str(error))}); correct it"
        ) from error
    return module


def checked_class(own: OwnClass, check: Callable[[Any], Any]) -> Any:
    """Return what `check` makes of the class; its error names file and class."""
    member = own.load()
    try:
        return check(member)
    except Exception as error:
        file = Path(own.path).name
        raise InputError(
            f"{own.class_name} in {file} cannot be used: {one_line(str(error))}"
        ) from error
