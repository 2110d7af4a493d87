"""Registries of named members, which installed packages extend through entry points.

A package lists what it adds in its metadata, for example in its ``pyproject.toml``::

    [project.entry-points."precbench.solvers"]
    rocchio = "precbench_rocchio:Rocchio"

Every process, workers included, reads the metadata when it needs a name that is not
built in, or all names. A package is imported when its member is first used.
"""

from collections.abc import Callable, Iterator, Mapping
from functools import cached_property
from importlib.metadata import EntryPoint, entry_points
from typing import Any, NoReturn, TypeVar

from precbench.core.errors import InputError
from precbench.core.text import one_line

_Member = TypeVar("_Member")


def find_entry_points(group: str) -> list[EntryPoint]:
    """Return the entry points of a group, such as ``precbench.solvers``, by name."""
    return sorted(entry_points(group=group), key=lambda entry: entry.name)


def package_of(entry: EntryPoint) -> str:
    """Return the name and version of the package that defines an entry point."""
    assert entry.dist is not None  # only an entry point made by hand has no `dist`
    return f"{entry.dist.name} {entry.dist.version}"


def refusal(entry: EntryPoint, reason: str) -> InputError:
    """Return the error for an unusable entry point; `reason` begins with a verb."""
    return InputError(
        f"entry point {entry.name!r} ({entry.group}) of the package {package_of(entry)}"
        f" {reason}; repair or uninstall the package"
    )


class Registry(Mapping[str, _Member]):
    """A read-only mapping from names to members, first built-in, then of packages.

    `check` takes the object that an entry point refers to, and returns the member or
    raises. `load` takes the name of a built-in member and returns the member on first
    use; without `load`, `built_in` maps to the members themselves.
    """

    def __init__(
        self,
        group: str,
        built_in: Mapping[str, Any],
        check: Callable[[Any], _Member],
        load: Callable[[str], _Member] | None = None,
    ):
        self._group = group  # of entry points, such as "precbench.solvers"
        self._built_in = built_in
        self._check = check
        self._load = load or built_in.__getitem__
        self._loaded: dict[str, _Member] = {}  # members used so far, by name

    @cached_property
    def _added(self) -> dict[str, EntryPoint]:
        """The entry points of packages by name; no two members may have the same."""
        added: dict[str, EntryPoint] = {}
        for entry in find_entry_points(self._group):
            if entry.name in self._built_in:
                raise refusal(entry, "has the name of a built-in member")
            if entry.name in added:
                other = package_of(added[entry.name])
                raise refusal(
                    entry, f"has the same name as an entry point of the package {other}"
                )
            added[entry.name] = entry
        return added

    @property
    def built_in(self) -> list[str]:
        """The names of the built-in members."""
        return list(self._built_in)

    def package(self, name: str) -> str:
        """Return name and version of a member's package, "" for a built-in member."""
        if name in self._built_in:
            return ""
        return package_of(self._added[name])

    def __getitem__(self, name: str) -> _Member:
        """Return a member, loaded on first use."""
        if name in self._loaded:
            return self._loaded[name]
        if name in self._built_in:
            member = self._load(name)
        else:
            entry = self._added[name]  # `KeyError` for an unknown name
            member = self._load_added(entry)
        self._loaded[name] = member
        return member

    def _load_added(self, entry: EntryPoint) -> _Member:
        """Return the member of a package, or raise an `InputError` that names it."""
        try:
            return self._check(entry.load())
        except Exception as error:
            reason = one_line(str(error))
            if not isinstance(error, InputError):
                reason = f"{type(error).__name__}: {reason}"
            raise refusal(entry, f"cannot be used: {reason}") from error

    def __contains__(self, name: object) -> bool:
        return name in self._built_in or name in self._added

    def __iter__(self) -> Iterator[str]:
        return iter([*self._built_in, *self._added])

    def __len__(self) -> int:
        return len(self._built_in) + len(self._added)

    def __setitem__(self, name: str, member: Any) -> NoReturn:
        raise InputError(
            f"cannot assign {name!r} in {self._group}, because worker processes would"
            " not find it; install a package with an entry point in the group"
            f" {self._group}"
        )

    def __repr__(self) -> str:
        return f"{self._group}({', '.join(self)})"
