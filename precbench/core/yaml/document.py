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
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import yaml

from precbench.core.errors import InputError, did_you_mean
from precbench.core.locations import config_names, shipped
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


class Place(NamedTuple):
    """A place in a file, from 1."""

    line: int
    column: int


class _Complaint(NamedTuple):
    """A problem of a file, and the place to which it belongs."""

    file: str
    place: Place
    keys: Keys
    message: str

    def __str__(self) -> str:
        """Return ``file:line:column: solvers.a.tune[0]: message``."""
        start = f"{self.file}:{self.place.line}:{self.place.column}:"
        path = _path(self.keys)
        if path:
            return f"{start} {path}: {self.message}"
        return f"{start} {self.message}"


@dataclass(frozen=True)
class Document:
    """The content of a file, and the place of each piece."""

    file: str  # the name in messages
    data: Any  # dictionaries with text as keys, lists, and scalars
    where: Mapping[Keys, Place]  # of each key or item
    base: "Document | None" = None  # the file that this one extends, see `extended`
    of_base: frozenset[Keys] = frozenset()  # the pieces that only the base has

    def refusal(self, problems: Iterable[tuple[Keys, str]]) -> InputError:
        """Return the error with a line for each problem, at most `MAX_MISTAKES`.

        Problems are in the order of the file; those in the base file come last.
        """
        of_this_file: list[_Complaint] = []
        of_base: list[_Complaint] = []
        for keys, message in problems:
            document = self._document_of(keys)
            place = document._place(keys)
            complaint = _Complaint(document.file, place, keys, message)
            if document is self:
                of_this_file.append(complaint)
            else:
                of_base.append(complaint)
        of_this_file.sort(key=_place_of)
        of_base.sort(key=_place_of)
        lines = _distinct(str(complaint) for complaint in [*of_this_file, *of_base])
        n_more = len(lines) - MAX_MISTAKES
        if n_more > 0:
            lines[MAX_MISTAKES:] = [f"{self.file}: and {n_more:,} more"]
        return InputError("\n".join(lines))

    def _document_of(self, keys: Keys) -> "Document":
        """Return the base if the piece is only there, else this document."""
        if self.base is None:
            return self
        around = [keys[:length] for length in range(1, len(keys) + 1)]
        return self.base if self.of_base.intersection(around) else self

    def _place(self, keys: Keys) -> Place:
        """Return the place of the piece at `keys`, or of the nearest piece around."""
        around = keys
        while around not in self.where:
            around = around[:-1]
        return self.where[around]


def load(path: Path) -> Document:
    """Return a file's content, or raise with lines ``file:line:col: keys: text``."""
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
    """Return a document with what it leaves as it is in the config that it extends.

    ``extends`` names a file in `folder`, or a shipped config. Mappings are merged key
    by key, and null removes a key of the other file; lists and values are replaced.
    """
    if not isinstance(own.data, dict) or "extends" not in own.data:
        return own
    place: Keys = ("extends",)
    name = own.data["extends"]
    if not isinstance(name, str):
        problem = (
            "should be the name of a file beside this one, or of a shipped config,"
            f" found {reprlib.repr(name)}"
        )
        raise own.refusal([(place, problem)])
    path = _extended_file(name, folder)
    if path is None:
        beside = [other.name for other in folder.glob("*.yaml")]
        hint = did_you_mean(name, [*beside, *config_names()])
        problem = f"there is no {name} beside this file, and no shipped config of it"
        raise own.refusal([(place, f"{problem}{hint}")])
    base = load(path)
    if not isinstance(base.data, dict):
        raise own.refusal([(place, f"{name} has no keys; name another file")])
    if "extends" in base.data:
        raise own.refusal([(place, f"{name} extends a third file; name another file")])
    changes = {key: value for key, value in own.data.items() if key != "extends"}
    of_base: set[Keys] = set()
    data = _merged(base.data, changes, (), of_base)
    return replace(own, data=data, base=base, of_base=frozenset(of_base))


def _extended_file(name: str, folder: Path) -> Path | None:
    """Return the file beside a config, or the shipped config, of a name."""
    if Path(name).name == name and (folder / name).is_file():
        return folder / name
    if name in config_names():
        return shipped("configs") / f"{name}.yaml"
    return None


def _merged(
    base: Mapping[str, Any], own: Mapping[str, Any], place: Keys, of_base: set[Keys]
) -> dict[str, Any]:
    """Return a mapping with the keys of both; note what only the base has in `of_base`.

    `place` is that of the mappings in their files.
    """
    merged: dict[str, Any] = {}
    for key, value in base.items():
        if key not in own:
            merged[key] = value
            of_base.add((*place, key))
        elif isinstance(value, dict) and isinstance(own[key], dict):
            merged[key] = _merged(value, own[key], (*place, key), of_base)
        elif own[key] is not None:
            merged[key] = own[key]
    for key, value in own.items():
        if key not in base:
            merged[key] = value
    return merged


def parse(text: str, file: str = "<text>") -> Document:
    """Return YAML from memory as a document; `file` is the name that messages show."""
    builder = _Builder(text, file)
    try:
        data = builder.document()
    except yaml.reader.ReaderError as error:
        before = text[: error.position]
        place = Place(
            line=before.count("\n") + 1, column=len(before) - before.rfind("\n")
        )
        complaint = _Complaint(file, place, (), "a character YAML does not allow")
        raise InputError(str(complaint)) from error
    except yaml.MarkedYAMLError as error:
        message = ", ".join(part for part in (error.problem, error.context) if part)
        complaint = _Complaint(file, _position(error.problem_mark), (), message)
        raise InputError(str(complaint)) from error
    if builder.mistakes:
        raise InputError("\n".join(builder.mistakes))
    return Document(file, data, builder.where)


class _Builder:
    """Builds data from the events of the parser, and notes places and mistakes."""

    def __init__(self, text: str, file: str):
        self.file = file
        self.where: dict[Keys, Place] = {}  # of each key or item
        self.mistakes: list[str] = []
        # advanced by all methods
        self._events: Iterator[Any] = yaml.parse(text, Loader=_LOADER)

    def document(self) -> Any:
        """Read the only document and return its data, None for an empty file."""
        data = None
        for event in self._events:
            if isinstance(event, yaml.NodeEvent):
                data = self._value(event, ())
            elif isinstance(event, yaml.DocumentStartEvent) and self.where:
                # places are noted already, those of a first document
                self._refuse(
                    event,
                    (),
                    "a second document (give it a file of its own)",
                    fatal=True,
                )
        self.where.setdefault((), Place(1, 1))  # of the whole, for an empty file
        return data

    def _value(self, event: Any, keys: Keys) -> Any:
        """Read the value that begins with an event; note the places of its parts."""
        # A value in a mapping has the place of its key, which `_key` has noted before.
        self.where.setdefault(keys, _position(event.start_mark))
        self._refuse_special(event, keys)
        if isinstance(event, yaml.ScalarEvent):
            return self._scalar(event, keys)
        if len(keys) == MAX_DEPTH:
            self._refuse(event, keys, f"more than {MAX_DEPTH} levels", fatal=True)
        if isinstance(event, yaml.SequenceStartEvent):
            return self._list(keys)
        return self._mapping(keys)

    def _list(self, keys: Keys) -> list[Any]:
        """Read the items of the list at `keys`, to its end."""
        items: list[Any] = []
        for event in self._events_to_the_end():
            items.append(self._value(event, (*keys, len(items))))
        return items

    def _mapping(self, keys: Keys) -> dict[str, Any]:
        """Read the keys and values of the mapping at `keys`, to its end."""
        mapping = {}
        for event in self._events_to_the_end():
            name = self._key(event, keys)
            first_of_value = next(self._events)
            mapping[name] = self._value(first_of_value, (*keys, name))
        return mapping

    def _events_to_the_end(self) -> Iterator[Any]:
        """Yield the first event of each part of the present list or mapping.

        The caller takes the other events of the part before it asks for the next part.
        """
        for event in self._events:
            if isinstance(event, yaml.CollectionEndEvent):
                return
            yield event

    def _key(self, event: Any, keys: Keys) -> str:
        """Read a key of the mapping at `keys`; note its place in `where`."""
        self._refuse_special(event, keys)
        if not isinstance(event, yaml.ScalarEvent):
            self._refuse(event, keys, "a key that is not plain text", fatal=True)
        name: str = event.value
        if "\n" in name or "\t" in name:  # which `_refuse_special` allows in values
            self._refuse(event, keys, "a control character in a text")
        path = (*keys, name)
        if path in self.where:
            line = self.where[path].line
            self._note(event, path, f"duplicate key {name!r}, first in line {line}")
        else:
            self.where[path] = _position(event.start_mark)
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
        """Refuse what is no plain data: aliases, anchors, tags, control characters."""
        if isinstance(event, yaml.AliasEvent):
            # fatal, as there is no value to go on with
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
        """Note what a file must not have; go on as `_note` does."""
        self._note(event, keys, f"not allowed here: {what}", fatal)

    def _note(
        self, event: yaml.Event, keys: Keys, message: str, fatal: bool = False
    ) -> None:
        """Note a mistake; raise all if it is `fatal`, or there are `MAX_MISTAKES`."""
        complaint = _Complaint(self.file, _position(event.start_mark), keys, message)
        self.mistakes.append(str(complaint))
        if fatal or len(self.mistakes) == MAX_MISTAKES:
            raise InputError("\n".join(self.mistakes))


def _position(mark: Any) -> Place:
    """Return the place of a mark of the parser, which counts from 0."""
    if mark is None:
        return Place(1, 1)
    return Place(mark.line + 1, mark.column + 1)


def _place_of(complaint: _Complaint) -> Place:
    return complaint.place


def _distinct(lines: Iterable[str]) -> list[str]:
    """Return the lines without repetitions, in their order."""
    return [*dict.fromkeys(lines)]


def _path(keys: Keys) -> str:
    """Return keys in writing: ``solvers.a.tune[0]``."""
    path = ""
    for key in keys:
        if isinstance(key, int):
            path += f"[{key}]"
        elif path:
            path += f".{key}"
        else:
            path = key
    return path
