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
    """Return the fields of a JSON object.

    `ValueError` names missing fields or the first fault.
    """
    return _validated(kind.model_validate_json, content)


def checked(data: Any, kind: type[_Fields]) -> _Fields:
    """Return the fields of an object that was parsed before.

    Errors are as in `parse`.
    """
    return _validated(kind.model_validate, data)


def _validated(validate: Callable[[Any], _Fields], data: Any) -> _Fields:
    """Return what `validate` makes of the data; errors are as in `parse`."""
    try:
        return validate(data)
    except ValidationError as error:
        first, *others = problems = error.errors(include_url=False, include_input=False)
    # "" for the whole object
    places = [".".join(map(str, problem["loc"])) for problem in problems]
    missing = [
        place
        for place, e in zip(places, problems, strict=True)
        if e["type"] == "missing"
    ]
    if missing:
        raise ValueError(f"fields are missing: {', '.join(missing)}")
    if first["type"] == "json_invalid":
        raise ValueError(f"not JSON: {first['ctx']['error']}")
    message = first["msg"].removeprefix("Value error, ")  # of pydantic, before our text
    more = f" (and {len(others):,} more)" if others else ""
    raise ValueError(f"{places[0]}{': ' if places[0] else ''}{message}{more}")
