"""Untrusted JSON objects: typed, of bounded depth, without NaN."""

from collections.abc import Callable
from typing import Annotated, Any, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError

Number = Annotated[float, Field(allow_inf_nan=False)]
Count = Annotated[int, Field(ge=0, lt=2**63)]


class Fields(BaseModel):
    """The keys of an object that the program reads; other keys are ignored."""

    model_config = ConfigDict(strict=True, frozen=True)


_Fields = TypeVar("_Fields", bound=Fields)


def parse(content: bytes, kind: type[_Fields]) -> _Fields:
    """Return the fields of a JSON object, or raise with what is missing or wrong."""
    return _validated(kind.model_validate_json, content)


def checked(data: Any, kind: type[_Fields]) -> _Fields:
    """Return the fields of an object that was parsed before; errors as in `parse`."""
    return _validated(kind.model_validate, data)


def _validated(validate: Callable[[Any], _Fields], data: Any) -> _Fields:
    """Return what `validate` makes of the data; errors are as in `parse`."""
    try:
        return validate(data)
    except ValidationError as error:
        problems = error.errors(include_url=False, include_input=False)
    missing = [
        _place(problem["loc"]) for problem in problems if problem["type"] == "missing"
    ]
    if missing:
        raise ValueError(f"fields are missing: {', '.join(missing)}")
    first, *others = problems
    if first["type"] == "json_invalid":
        raise ValueError(f"not JSON: {first['ctx']['error']}")
    # pydantic puts these words before our text.
    message = first["msg"].removeprefix("Value error, ")
    place = _place(first["loc"])
    if place:
        message = f"{place}: {message}"
    if others:
        message += f" (and {len(others):,} more)"
    raise ValueError(message)


def _place(loc: tuple[int | str, ...]) -> str:
    """Return the place of a problem, "" for the whole object."""
    return ".".join(map(str, loc))
