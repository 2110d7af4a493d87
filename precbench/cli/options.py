"""Options that several commands share, and dataclasses of options."""

import json
import sys
from collections.abc import Callable, Collection, Mapping
from functools import wraps
from inspect import Signature, signature
from typing import Annotated, Any

import typer

from precbench.cli import completion
from precbench.core.errors import InputError, nearest_or_all

NOT_HELD = 5  # exit code of --strict and --fail-below
JSON = "Print JSON instead of text."
RESULTS = "Folder of results, or of one experiment in it, such as results/letter."
MIRROR = (
    "Folder or URL to try for data before the original sources [default:"
    " $PRECBENCH_MIRROR]."
)
Configs = Annotated[
    list[str],
    typer.Argument(
        metavar="CONFIG",
        help="Config files, or names that precbench list configs shows.",
        autocompletion=completion.configs,
    ),
]
Json = Annotated[bool, typer.Option("--json", help=JSON)]
NoRowHashes = Annotated[
    bool,
    typer.Option(
        "--no-row-hashes",
        help=(
            "Store no hashes of training rows in the model; precbench score then cannot"
            " recognise training rows."
        ),
    ),
]
Mirror = Annotated[str | None, typer.Option(help=MIRROR)]


def refuse_unknown(
    what: str, value: str | None, known: Collection[str], listed: str = ""
) -> None:
    """Raise if a value is unknown; `precbench list` with `listed` shows all known."""
    if value is not None and value not in known:
        raise InputError(
            f"unknown {what} {value!r}{nearest_or_all(value, known, listed)}"
        )


def print_facts(facts: Mapping[str, Any], *, as_json: bool) -> None:
    """Print nested facts as JSON, or for people as YAML without empty facts."""
    text = json.dumps(facts, indent=1, default=str)
    if as_json:
        print(text)
        return
    import yaml

    plain = json.loads(text)  # with paths as text, which YAML can write
    filled = {
        name: value for name, value in plain.items() if value not in (None, "", [], {})
    }
    written = yaml.safe_dump(
        filled, sort_keys=False, allow_unicode=True, width=sys.maxsize
    )
    print(written.rstrip())


def takes(
    options_class: Callable[..., Any],
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Return a decorator that gives a command the fields of a dataclass as options.

    The command takes the fields one by one. The function that is decorated gets them as
    one object, `options`, its last parameter.
    """

    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        *own_parameters, _options = signature(function).parameters.values()
        own_names = [parameter.name for parameter in own_parameters]

        @wraps(function)
        def command(**values: Any) -> Any:
            arguments = {name: values.pop(name) for name in own_names}
            return function(**arguments, options=options_class(**values))

        # typer reads the options of a command from its signature and annotations.
        fields = signature(options_class).parameters.values()
        all_parameters = [*own_parameters, *fields]
        command.__signature__ = Signature(all_parameters)  # type: ignore[attr-defined]
        command.__annotations__ = {p.name: p.annotation for p in all_parameters}
        return command

    return decorate
