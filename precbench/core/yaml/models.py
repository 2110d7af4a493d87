"""Strict sections of YAML files: frozen pydantic models with mistakes in plain words.

A check returns the problems that it finds.
"""

import re
import reprlib
from collections.abc import Collection, Hashable, Iterable
from pkgutil import resolve_name
from typing import Annotated, Any, ClassVar, TypeVar

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    Strict,
    ValidationError,
    model_validator,
)
from pydantic_core import InitErrorDetails, PydanticCustomError

from precbench.core.errors import did_you_mean
from precbench.core.text import one_line
from precbench.core.yaml.document import Document, Keys

# The place, relative to the section that is checked, and the message
Problem = tuple[Keys, str]

Name = Annotated[str, Field(pattern="^[A-Za-z0-9_-]+$")]
Names = Annotated[tuple[Name, ...], Strict(False)]
Line = Annotated[str, AfterValidator(one_line)]
_Item = TypeVar("_Item")

# Messages by the type of the error that pydantic found
_PROBLEMS = {
    "model_type": "should be a mapping (key: value)",
    "dict_type": "should be a mapping (key: value)",
    "tuple_type": "should be a list",
    "string_pattern_mismatch": "may hold letters, digits, - and _ only",
    "path_type": "should be the name of a file",
}


def refuse(problems: Iterable[Problem]) -> None:
    """Raise a pydantic error with the problems, if there are any.

    Pydantic adds the place of the section.
    """
    details = []
    for path, text in dict.fromkeys(problems):  # each once
        error = PydanticCustomError("problem", "{text}", {"text": text})
        details.append(InitErrorDetails(type=error, loc=path, input=None))
    if details:
        raise ValidationError.from_exception_data("config", details)


def at(path: Keys, texts: Iterable[str]) -> list[Problem]:
    """Return a problem for each of the texts, all at the place `path`."""
    return [(path, text) for text in texts]


def unknown(what: str, name: str, known: Collection[str]) -> list[str]:
    """Return no message for a known name, else one with the nearest known name."""
    if name in known:
        return []
    return [f"unknown {what} {name!r}{did_you_mean(name, [*known])}"]


def repeats(values: Iterable[Hashable]) -> list[int]:
    """Return the places of values that equal an earlier value."""
    places = []
    earlier: set[Hashable] = set()
    for place, value in enumerate(values):
        if value in earlier:
            places.append(place)
        earlier.add(value)
    return places


def in_plain_words(error: Any, keys: Iterable[str] = ()) -> str:
    """Return the message for an error of pydantic; `keys` are those of the section."""
    kind = error["type"]
    value = reprlib.repr(error["input"])
    if kind == "problem":  # of our own checks, see `refuse`
        return error["msg"]
    if kind == "missing":
        return "is missing"
    if kind == "extra_forbidden":
        return f"unknown key{did_you_mean(error['loc'][-1], keys)}"
    if kind == "literal_error":
        # Pydantic's text is "'a', 'b' or 'c'".
        expected = error["ctx"]["expected"].replace(" or ", ", ").replace("'", "")
        hint = did_you_mean(error["input"], expected.split(", "))
        return f"{value} is none of {expected}{hint}"
    problem = _PROBLEMS.get(kind, error["msg"].replace("Input should", "should"))
    return f"{problem}, found {value}"


def matching(pattern: str, complaint: str) -> AfterValidator:
    """Return a validator of text by a pattern; `complaint` says what it should be."""

    def check(text: str) -> str:
        if not re.fullmatch(pattern, text):
            refuse(at((), [f"{complaint}, found {text!r}"]))
        return text

    return AfterValidator(check)


def known(what: str, registry: str) -> AfterValidator:
    """Return a validator that refuses names not in a registry.

    `what` is the kind of name in messages. `registry` is written ``module:name``, and
    imported on first use.
    """

    def check(name: str) -> str:
        members = resolve_name(registry)
        refuse(at((), unknown(what, name, members)))
        return name

    return AfterValidator(check)


def _not_empty(items: Any) -> Any:
    if not items:
        refuse(at((), ["should not be empty"]))
    return items


Items = Annotated[tuple[_Item, ...], Strict(False), AfterValidator(_not_empty)]


def _is_misspelt_elsewhere(fault: Any, faults: Iterable[Any], keys: list[str]) -> bool:
    """Return whether a key is missing because another one of the faults misspells it.

    Then "unknown key", with a hint at the right key, is enough. `keys` are those of the
    section.
    """
    if fault["type"] != "missing":
        return False
    hint = f"did you mean {fault['loc'][-1]!r}?"
    unknown_keys = [other for other in faults if other["type"] == "extra_forbidden"]
    return any(hint in in_plain_words(other, keys) for other in unknown_keys)


class Section(BaseModel):
    """A mapping in a file: unknown keys are refused, nothing is converted silently."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)
    # What a file may have here beside the fields
    more_keys: ClassVar[tuple[str, ...]] = ()

    @model_validator(mode="wrap")
    @classmethod
    def _in_plain_words(cls, value: Any, handler: Any) -> Any:
        """Validate a section, with mistakes in plain words."""
        try:
            return handler(value)
        except ValidationError as error:
            faults = error.errors()
        keys = cls._keys()
        problems: list[Problem] = []
        for fault in faults:
            if not _is_misspelt_elsewhere(fault, faults, keys):
                path = cls._path(fault["loc"])
                problems.append((path, in_plain_words(fault, keys)))
        return refuse(problems)  # raises: the misspelt keys are left, if nothing else

    @classmethod
    def _keys(cls) -> list[str]:
        """Return all keys that a file may have here."""
        keys = [
            str(field.validation_alias or name)
            for name, field in cls.model_fields.items()
        ]
        return [*keys, *cls.more_keys]

    @classmethod
    def _path(cls, loc: Keys) -> Keys:
        """Return the place of a field in the file, which subclasses may move."""
        return loc


_Section = TypeVar("_Section", bound=Section)


def validated(
    document: Document, kind: type[_Section], context: Any = None
) -> _Section:
    """Return the section that a file consists of; `context` is for the validators."""
    try:
        return kind.model_validate(document.data, context=context)
    except ValidationError as error:
        problems = [(fault["loc"], fault["msg"]) for fault in error.errors()]
        raise document.refusal(problems) from None
