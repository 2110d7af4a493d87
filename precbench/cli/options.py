"""Options and arguments that several commands have, and commands that take them as one object."""

from collections.abc import Callable
from functools import wraps
from inspect import signature
from pathlib import Path
from typing import Annotated, Any

import typer

JSON = "Print JSON instead of text."
MIRROR = (
    "Folder or http address to try before the official addresses of the data "
    "[default: $PRECBENCH_MIRROR]."
)
Json = Annotated[bool, typer.Option("--json", help=JSON)]
Mirror = Annotated[str | None, typer.Option(help=MIRROR)]
Form = Annotated[
    str | None,
    typer.Option("--format", help="svmlight, csv, tsv, parquet or npz [default: from the suffix]."),
]
OwnFile = Annotated[
    Path, typer.Argument(help="svmlight, CSV, TSV, Parquet or npz; text may be .gz, .bz2, .xz.")
]
Label = Annotated[str | None, typer.Option(help="Label column (required for tables).")]
Positive = Annotated[str | None, typer.Option(help="Positive label; not needed for 0/1 and -1/1.")]
Groups = Annotated[
    str | None,
    typer.Option(help="Column (npz: array) of groups; rows of a group stay together in the split."),
]
Time = Annotated[
    str | None,
    typer.Option(
        help="Column (npz: array) of the time of each row, numbers or ISO dates; the quality "
        "is measured on the latest rows."
    ),
]
Drop = Annotated[
    list[str] | None, typer.Option(help="Column to leave out of the features; repeatable.")
]
Categorical = Annotated[str, typer.Option(help="Treatment of text columns: error or one-hot.")]
Missing = Annotated[
    str, typer.Option(help="Treatment of missing values: error, mean, median or most-frequent.")
]
K = Annotated[
    str,
    typer.Option(
        "--k",
        help="Length of the top of the list: a number of rows (100), a fraction of the positives "
        '(0.25), or a fraction of the rows ("1 %").',
    ),
]


def takes(options: Callable[..., Any]) -> Callable[[Callable[[Any], Any]], Callable[..., Any]]:
    """Make a function of a dataclass a command, whose arguments and options are the fields."""

    def decorated(function: Callable[[Any], Any]) -> Callable[..., Any]:
        @wraps(function)
        def command(**values: Any) -> Any:
            return function(options(**values))

        fields = signature(options)
        command.__signature__ = fields  # type: ignore[attr-defined]
        command.__annotations__ = {name: of.annotation for name, of in fields.parameters.items()}
        return command

    return decorated
