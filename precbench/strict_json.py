"""Untrusted JSON objects: typed, of bounded depth, without NaN."""

from typing import Annotated, Any, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError
from pydantic_core import from_json

__all__ = ["Count", "Fields", "Number", "checked", "load"]

Number = Annotated[float, Field(allow_inf_nan=False)]
Count = Annotated[int, Field(ge=0, lt=2**63)]


class Fields(BaseModel):
    """The keys of an object that the program reads; others are ignored."""

    model_config = ConfigDict(strict=True, frozen=True)


_Fields = TypeVar("_Fields", bound=Fields)


def load(content: bytes) -> Any:
    """Return what JSON describes.

    Parameters
    ----------
    content : bytes

    Returns
    -------
    Any

    Raises
    ------
    ValueError
        If it is not JSON, or nested deeper than 200 levels.
    """
    try:
        return from_json(content, allow_inf_nan=False)
    except ValueError as error:
        raise ValueError(f"not JSON: {error}") from None


def checked(data: Any, kind: type[_Fields]) -> _Fields:
    """Return the fields of an object that are of one kind.

    Parameters
    ----------
    data : Any
        From `load`.
    kind : type
        A subclass of `Fields`.

    Returns
    -------
    Fields

    Raises
    ------
    ValueError
        If a field is missing or of another type; the message names the first.
    """
    try:
        return kind.model_validate(data)
    except ValidationError as error:
        problem, *others = problems = error.errors(include_url=False, include_input=False)
        places = [".".join(map(str, each["loc"])) for each in problems]
        absent = [p for p, e in zip(places, problems, strict=True) if e["type"] == "missing"]
        if absent:
            raise ValueError(f"it lacks {', '.join(absent)}") from None
        message = problem["msg"].removeprefix("Value error, ")
        more = f" (and {len(others):,} more)" if others else ""
        raise ValueError(f"{places[0]}{places[0] and ': '}{message}{more}") from None
