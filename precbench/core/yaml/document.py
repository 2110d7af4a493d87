"""YAML as plain data, with the place of each piece in the file.

Scalars follow YAML 1.2 (only ``true`` and ``false`` are booleans, ``1e-3`` is a number,
nothing is a date). Duplicate keys, anchors, aliases, tags and numbers in another base
are refused. Data are built from the parser's events, so a file can neither run code nor
exhaust memory. The nodes of `yaml.compose` would not do: they no longer have anchors,
and an alias is the node it names, with the place of that node.
"""

import math
import re
import reprlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import takewhile
from pathlib import Path
from typing import Any

import yaml

from precbench.core.errors import InputError, did_you_mean
from precbench.core.text import visible

MAX_BYTES = 1_000_000
MAX_DEPTH = 20
MAX_MISTAKES = 20  # then reading stops

Keys = tuple[str | int, ...]

_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_CONSTANTS: dict[str, Any] = {
    "": None,
    "~": None,
    "null": None,
    "true": True,
    "false": False,
}
_INTEGER = re.compile(r"[-+]?(0|[1-9][0-9]*)")
_FLOAT = re.compile(r"[-+]?(\.[0-9]+|(0|[1-9][0-9]*)(\.[0-9]*)?)([eE][-+]?[0-9]+)?")
_OTHER_BASE = re.compile(r"[-+]?0([0-9][0-9.]*|[xob][0-9a-fA-F]+)")
_NOT_FINITE = re.compile(r"[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN)")


@dataclass(frozen=True)
class Document:
    """The content of a file, and the place of each piece."""

    file: str  # the name in messages
    data: Any  # dictionaries with text as keys, lists, and scalars
    where: dict[Keys, tuple[int, int]]  # line and column, from 1, of each key or item
    base: "Document | None" = None  # the file that this one extends, see `extended`

    def refusal(self, problems: Iterable[tuple[Keys, str]]) -> InputError:
        """Return the error with a line for each problem, in file order, at most `MAX_MISTAKES`."""
        # Each problem becomes (file, (line, column), keys, text); those in the base
        # file come last.
        placed = [(*self._place(keys), keys, text) for keys, text in problems]
        placed.sort(key=lambda problem: (problem[0] != self.file, problem[1]))
        lines = list(dict.fromkeys(_complaint(*problem) for problem in placed))
        if (more := len(lines) - MAX_MISTAKES) > 0:
            lines[MAX_MISTAKES:] = [f"{self.file}: and {more:,} more"]
        return InputError("\n".join(lines))

    def _place(self, keys: Keys) -> tuple[str, tuple[int, int]]:
        """Return file, line and column of the piece at `keys`, or of the nearest piece around."""
        # A piece below a top-level key that only the base file has is placed in the
        # base file.
        if (
            self.base is not None
            and keys[:1] not in self.where
            and keys[:1] in self.base.where
        ):
            return self.base._place(keys)
        nearest = next(
            keys[:n] for n in range(len(keys), -1, -1) if keys[:n] in self.where
        )
        return self.file, self.where[nearest]


def load(path: Path) -> Document:
    """Return a file's content.

    The error has a line per mistake, ``file:line:col: path: text``.
    """
    try:
        with path.open("rb") as stream:
            content = stream.read(MAX_BYTES + 1)
    except OSError as error:
        raise InputError(
            f"{path} cannot be read: {error.strerror}; check its path"
        ) from error
    if len(content) > MAX_BYTES:
        raise InputError(
            f"{path}:1:1: larger than {MAX_BYTES:,} bytes; give a shorter file"
        )
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        column = error.start - content.rfind(b"\n", 0, error.start)
        raise InputError(
            f"{path}:{line}:{column}: not UTF-8; save the file as UTF-8"
        ) from error
    return parse(text, str(path))


def extended(own: Document, folder: Path) -> Document:
    """Return a document with the keys of the file in `folder` that ``extends`` names, if any.

    The result has the top-level keys of both files; for a key in both, all below is
    that of `own`.
    """
    if not isinstance(own.data, dict) or "extends" not in own.data:
        return own
    name = own.data["extends"]
    if not isinstance(name, str) or Path(name).name != name:
        problem = (
            f"should be the name of a file beside this one, found {reprlib.repr(name)}"
        )
        raise own.refusal([(("extends",), problem)])
    if not (folder / name).is_file():
        near = did_you_mean(name, (other.name for other in folder.glob("*.yaml")))
        raise own.refusal(
            [(("extends",), f"there is no {name} beside this file{near}")]
        )
    base = load(folder / name)
    if not isinstance(base.data, dict) or "extends" in base.data:
        fault = "extends a third file" if isinstance(base.data, dict) else "has no keys"
        raise own.refusal([(("extends",), f"{name} {fault}; name another file")])
    data = {**base.data, **own.data}
    del data["extends"]
    return replace(own, data=data, base=base)


def parse(text: str, file: str = "<text>") -> Document:
    """Return YAML from memory as a document; `file` is the name that messages show."""
    builder = _Builder(text, file)
    try:
        data = builder.document()
    except yaml.reader.ReaderError as error:
        before = text[: error.position]
        # line, column from 1
        place = (before.count("\n") + 1, len(before) - before.rfind("\n"))
        raise InputError(
            _complaint(file, place, (), "a character YAML does not allow")
        ) from error
    except yaml.MarkedYAMLError as error:
        message = ", ".join(part for part in (error.problem, error.context) if part)
        raise InputError(
            _complaint(file, _position(error.problem_mark), (), message)
        ) from error
    if builder.mistakes:
        raise InputError("\n".join(builder.mistakes))
    return Document(file, data, builder.where)


class _Builder:
    """Builds data from the events of the parser, and notes places and mistakes."""

    def __init__(self, text: str, file: str):
        self.file = file
        # line and column of each key or item
        self.where: dict[Keys, tuple[int, int]] = {}
        self.mistakes: list[str] = []
        # advanced by all methods
        self._events: Iterator[Any] = yaml.parse(text, Loader=_LOADER)

    def document(self) -> Any:
        """Read the only document of the file and return its data, None for an empty file."""
        data = None
        for event in self._events:
            # not the first
            if isinstance(event, yaml.DocumentStartEvent) and self.where:
                self._refuse(
                    event,
                    (),
                    "a second document (give it a file of its own)",
                    fatal=True,
                )
            elif isinstance(event, yaml.NodeEvent):
                data = self._value(event, ())
        self.where.setdefault((), (1, 1))  # the place of the whole, for an empty file
        return data

    def _value(self, event: Any, keys: Keys) -> Any:
        """Read the value that begins with an event.

        Note the places of all its parts in `where`.
        """
        # A value in a mapping has the place of its key, which `_key` has noted before.
        self.where.setdefault(keys, _position(event.start_mark))
        self._refuse_special(event, keys)
        if isinstance(event, yaml.ScalarEvent):
            return self._scalar(event, keys)
        if len(keys) == MAX_DEPTH:
            self._refuse(event, keys, f"more than {MAX_DEPTH} levels", fatal=True)
        members = takewhile(
            lambda e: not isinstance(e, yaml.CollectionEndEvent), self._events
        )
        if isinstance(event, yaml.SequenceStartEvent):
            return [self._value(item, (*keys, i)) for i, item in enumerate(members)]
        # Keys and values alternate: each key is followed by the events of its value.
        return {
            name: self._value(next(self._events), (*keys, name))
            for name in (self._key(key, keys) for key in members)
        }

    def _key(self, event: Any, keys: Keys) -> str:
        """Read a key of the mapping at `keys`; note its place in `where`."""
        self._refuse_special(event, keys)
        if not isinstance(event, yaml.ScalarEvent):
            self._refuse(event, keys, "a key that is not plain text", fatal=True)
        name: str = event.value
        # allowed in values, so `_refuse_special` lets them pass
        if {"\n", "\t"} & set(name):
            self._refuse(event, keys, "a control character in a text")
        if first := self.where.get((*keys, name)):  # (line, column)
            self._refuse(
                event,
                (*keys, name),
                f"duplicate key {name!r}, first in line {first[0]}",
            )
        self.where.setdefault((*keys, name), _position(event.start_mark))
        return name

    def _scalar(self, event: yaml.ScalarEvent, keys: Keys) -> Any:
        """Return a scalar as a constant such as true, as a number, or else as text."""
        text = event.value
        if event.style:  # quoted, or a block of text
            return text
        if text in _CONSTANTS:
            return _CONSTANTS[text]
        if _INTEGER.fullmatch(text):
            if len(text) < 19:  # fits 64 bits
                return int(text)
            self._refuse(
                event, keys, "an integer of more than 18 digits (write 1e20, or quotes)"
            )
        elif _FLOAT.fullmatch(text):
            number = float(text)
            if math.isfinite(number):
                return number
            self._refuse(event, keys, f"{text} (numbers must be below 1.8e308)")
        elif _OTHER_BASE.fullmatch(text):
            self._refuse(
                event,
                keys,
                f"{text} (write a decimal number without leading zeros, or quotes)",
            )
        elif _NOT_FINITE.fullmatch(text):
            self._refuse(event, keys, f"{text} (numbers must be finite)")
        return text  # of a refused number too: reading goes on

    def _refuse_special(self, event: Any, keys: Keys) -> None:
        """Refuse aliases, anchors and tags, which are no plain data, and control characters."""
        # no value to go on with, as the others have
        if isinstance(event, yaml.AliasEvent):
            self._refuse(
                event,
                keys,
                f"the alias *{event.anchor} (write the value out)",
                fatal=True,
            )
        if event.anchor:
            self._refuse(
                event,
                keys,
                f"the anchor &{event.anchor} (write values out where needed)",
            )
        if event.tag:
            self._refuse(event, keys, f"the tag {event.tag} (write the plain value)")
        if isinstance(event, yaml.ScalarEvent) and visible(event.value) != event.value:
            self._refuse(event, keys, "a control character in a text")

    def _refuse(
        self, event: yaml.Event, keys: Keys, what: str, fatal: bool = False
    ) -> None:
        """Note a mistake.

        Raise all noted mistakes if `fatal`, or if there are `MAX_MISTAKES`.
        """
        # A duplicate key is a mistake anywhere, so its message does not say "not
        # allowed here".
        what = what if what.startswith("duplicate") else f"not allowed here: {what}"
        self.mistakes.append(
            _complaint(self.file, _position(event.start_mark), keys, what)
        )
        if fatal or len(self.mistakes) == MAX_MISTAKES:
            raise InputError("\n".join(self.mistakes))


def _position(mark: Any) -> tuple[int, int]:  # line and column, from 1
    return (mark.line + 1, mark.column + 1) if mark else (1, 1)


def _complaint(file: str, place: tuple[int, int], keys: Keys, message: str) -> str:
    """Return ``file:line:column: path.

    Message``, with a path such as ``solvers.a.tune[0]``.
    """
    path, (line, column) = "", place
    for key in keys:
        path += f"[{key}]" if isinstance(key, int) else (f".{key}" if path else key)
    return f"{file}:{line}:{column}: {path}{': ' if path else ''}{message}"
