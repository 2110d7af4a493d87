"""YAML without its traps: plain data, and where in the file each piece of it is.

Scalars follow YAML 1.2 (only ``true`` and ``false`` are booleans, ``1e-3`` is a number, nothing
is a date). Duplicate keys, anchors, aliases, tags and numbers in another base are refused, and a
file can neither run code nor exhaust memory: the data are built from the parser's events, never
by its constructors.
"""

import math
import re
import reprlib
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import yaml

from precbench.errors import InputError, did_you_mean
from precbench.text import visible

MAX_BYTES = 1_000_000
MAX_DEPTH = 20
MAX_MISTAKES = 20  # then reading stops

Keys = tuple[str | int, ...]

_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_CONSTANTS: dict[str, Any] = {"": None, "~": None, "null": None, "true": True, "false": False}
_INTEGER = re.compile(r"[-+]?(0|[1-9][0-9]*)")
_FLOAT = re.compile(r"[-+]?(\.[0-9]+|(0|[1-9][0-9]*)(\.[0-9]*)?)([eE][-+]?[0-9]+)?")
_OTHER_BASE = re.compile(r"[-+]?0([0-9][0-9.]*|[xob][0-9a-fA-F]+)")
_NOT_FINITE = re.compile(r"[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN)")


@dataclass(frozen=True)
class Document:
    """The content of a file, and where in the file each piece is.

    Attributes
    ----------
    file : str
        The file's name as messages show it.
    data : Any
        Dictionaries (keys are always text), lists, and scalars.
    where : dict of tuple to (int, int)
        For the path of each key or item, the line and column (from 1) where it begins.
    base : Document or None
        The file that this one extends, see `extended`.
    """

    file: str
    data: Any
    where: dict[Keys, tuple[int, int]]
    base: "Document | None" = None

    def refusal(self, problems: Iterable[tuple[Keys, str]]) -> InputError:
        """Return the error that reports the problems, one line each, in the order of the file.

        At most `MAX_MISTAKES` are shown; the others are counted.

        Parameters
        ----------
        problems : iterable of (tuple, str)
            The path of a key or item, and the message. A path that is not in the file is placed at
            its nearest parent.

        Returns
        -------
        InputError
        """
        placed = [(*self._place(keys), keys, text) for keys, text in problems]
        placed.sort(key=lambda problem: (problem[0] != self.file, problem[1]))
        lines = [_complaint(*problem) for problem in placed]
        lines = list(dict.fromkeys(lines))
        more = len(lines) - MAX_MISTAKES
        shown = lines[:MAX_MISTAKES]
        if more > 0:
            shown.append(f"{self.file}: and {more:,} more")
        return InputError("\n".join(shown))

    def _place(self, keys: Keys) -> tuple[str, tuple[int, int]]:
        if self.base is not None and keys[:1] not in self.where and keys[:1] in self.base.where:
            return self.base._place(keys)
        nearest = next(keys[:n] for n in range(len(keys), -1, -1) if keys[:n] in self.where)
        return self.file, self.where[nearest]


def load(path: Path) -> Document:
    """Read one file.

    Parameters
    ----------
    path : pathlib.Path

    Returns
    -------
    Document

    Raises
    ------
    InputError
        With one line per mistake, each ``file:line:col: path: message``.
    """
    try:
        with path.open("rb") as stream:
            content = stream.read(MAX_BYTES + 1)
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror}") from error
    if len(content) > MAX_BYTES:
        raise InputError(f"{path}:1:1: larger than {MAX_BYTES:,} bytes")
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        column = error.start - content.rfind(b"\n", 0, error.start)
        raise InputError(f"{path}:{line}:{column}: not UTF-8 text") from error
    return parse(text, str(path))


def extended(own: Document, folder: Path) -> Document:
    """Return a document with the file that it extends, if it has the key ``extends``.

    Of both, the keys of the highest level count; where both have one, that of `own`.

    Parameters
    ----------
    own : Document
    folder : pathlib.Path
        Where the other file is.

    Returns
    -------
    Document
        Without the key ``extends``.

    Raises
    ------
    InputError
        As for `load`; also if the other file cannot be extended.
    """
    if not isinstance(own.data, dict) or "extends" not in own.data:
        return own
    name = own.data["extends"]
    if not isinstance(name, str) or Path(name).name != name:
        shown = reprlib.repr(name)
        problem = f"should be the name of a file beside this one, found {shown}"
        raise own.refusal([(("extends",), problem)])
    if not (folder / name).is_file():
        near = did_you_mean(name, (other.name for other in folder.glob("*.yaml")))
        raise own.refusal([(("extends",), f"there is no {name} beside this file{near}")])
    base = load(folder / name)
    if not isinstance(base.data, dict) or "extends" in base.data:
        raise own.refusal([(("extends",), f"{name} has no keys, or extends a third file")])
    data = {**base.data, **own.data}
    del data["extends"]
    return replace(own, data=data, base=base)


def parse(text: str, file: str = "<text>") -> Document:
    """Read YAML from memory; `file` is the name that messages show.

    Parameters
    ----------
    text : str
    file : str

    Returns
    -------
    Document

    Raises
    ------
    InputError
        As for `load`.
    """
    builder = _Builder(file)
    try:
        for event in yaml.parse(text, Loader=_LOADER):
            builder.take(event)
    except yaml.reader.ReaderError as error:
        before = text[: error.position]
        place = (before.count("\n") + 1, len(before) - before.rfind("\n"))
        raise InputError(_complaint(file, place, (), "a character YAML does not allow")) from error
    except yaml.MarkedYAMLError as error:
        message = ", ".join(part for part in (error.problem, error.context) if part)
        raise InputError(_complaint(file, _place(error.problem_mark), (), message)) from error
    if builder.mistakes:
        raise InputError("\n".join(builder.mistakes))
    return Document(file, builder.data, builder.where)


class _Builder:
    """Turns the parser's events into data, without recursion."""

    def __init__(self, file: str):
        self.file = file
        self.data: Any = None
        self.where: dict[Keys, tuple[int, int]] = {(): (1, 1)}
        self.mistakes: list[str] = []
        self._open: list[dict | list] = []  # the containers around the current event
        self._keys: list[str | None] = []  # for each of them, the key that awaits its value
        self._path: list[str | int] = []
        self._documents = 0

    def take(self, event: yaml.Event) -> None:
        """Take the next event."""
        if isinstance(event, yaml.DocumentStartEvent):
            self._documents += 1
            if self._documents > 1:
                self._refuse(event, "a second document in one file", fatal=True)
        elif isinstance(event, yaml.AliasEvent):
            self._refuse(event, f"the alias *{event.anchor} (write the value out)", fatal=True)
        elif isinstance(event, yaml.ScalarEvent):
            self._refuse_labels(event)
            self._refuse_unseen(event)
            if self._awaits_key():
                self._take_key(event)
            else:
                self._place_value(event, self._scalar(event))
        elif isinstance(event, (yaml.MappingStartEvent, yaml.SequenceStartEvent)):
            self._refuse_labels(event)
            if self._awaits_key():
                self._refuse(event, "a key that is not plain text", fatal=True)
            if len(self._open) == MAX_DEPTH:
                self._refuse(event, f"more than {MAX_DEPTH} levels", fatal=True)
            container: dict | list = {} if isinstance(event, yaml.MappingStartEvent) else []
            self._place_value(event, container, leave=False)
            self._open.append(container)
            self._keys.append(None)
        elif isinstance(event, yaml.CollectionEndEvent):
            self._open.pop()
            self._keys.pop()
            self._leave()

    def _awaits_key(self) -> bool:
        return bool(self._open) and isinstance(self._open[-1], dict) and self._keys[-1] is None

    def _take_key(self, event: yaml.ScalarEvent) -> None:
        self._keys[-1] = event.value
        self._path.append(event.value)
        if event.value in self._open[-1]:
            line = self.where[tuple(self._path)][0]
            self._refuse(event, f"duplicate key {event.value!r}, first in line {line}")
        else:
            self.where[tuple(self._path)] = _place(event.start_mark)

    def _place_value(self, event: yaml.Event, value: Any, leave: bool = True) -> None:
        if not self._open:
            self.data = value
            self.where[()] = _place(event.start_mark)
            return
        parent = self._open[-1]
        if isinstance(parent, list):
            self._path.append(len(parent))
            self.where[tuple(self._path)] = _place(event.start_mark)
            parent.append(value)
        else:
            parent[self._path[-1]] = value
        if leave:
            self._leave()

    def _leave(self) -> None:
        if self._path:
            self._path.pop()
            self._keys[-1] = None

    def _scalar(self, event: yaml.ScalarEvent) -> Any:
        text = event.value
        if event.style:  # quoted, or a block of text
            return text
        if text in _CONSTANTS:
            return _CONSTANTS[text]
        if _INTEGER.fullmatch(text):
            if len(text) < 19:
                return int(text)
            self._refuse(event, "an integer of more than 18 digits")
        elif _FLOAT.fullmatch(text):
            number = float(text)
            if math.isfinite(number):
                return number
            self._refuse(event, f"the number {text} is too large")
        elif _OTHER_BASE.fullmatch(text):
            self._refuse(event, f"{text} (write a decimal number without leading zeros, or quotes)")
        elif _NOT_FINITE.fullmatch(text):
            self._refuse(event, f"{text} (numbers must be finite)")
        return text

    def _refuse_labels(self, event: Any) -> None:
        if event.anchor:
            self._refuse(event, f"the anchor &{event.anchor} (write values out where needed)")
        if event.tag:
            self._refuse(event, f"the tag {event.tag}")

    def _refuse_unseen(self, event: yaml.ScalarEvent) -> None:
        text = event.value
        if visible(text) != text or (self._awaits_key() and {"\n", "\t"} & set(text)):
            self._refuse(event, "a control character in a text")

    def _refuse(self, event: yaml.Event, what: str, fatal: bool = False) -> None:
        place = _place(event.start_mark)
        what = what if what.startswith("duplicate") else f"not allowed here: {what}"
        self.mistakes.append(_complaint(self.file, place, tuple(self._path), what))
        if fatal or len(self.mistakes) == MAX_MISTAKES:
            raise InputError("\n".join(self.mistakes))


def _place(mark: Any) -> tuple[int, int]:
    return (mark.line + 1, mark.column + 1) if mark else (1, 1)


def _complaint(file: str, place: tuple[int, int], keys: Keys, message: str) -> str:
    path = ""
    for key in keys:
        path += f"[{key}]" if isinstance(key, int) else f".{key}" if path else key
    return f"{file}:{place[0]}:{place[1]}: {path}{': ' if path else ''}{message}"
