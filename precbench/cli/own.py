"""Options of a person's own file, and what fit, compare and score share."""

import os
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from precbench.errors import InputError

_WORDS = {"true": True, "false": False, "none": None, "null": None}

_FILE = "Your file"
FORMAT = "svmlight, csv, tsv, parquet or npz [default: from the suffix]."
Form = Annotated[str | None, typer.Option("--format", help=FORMAT)]


@dataclass(frozen=True, kw_only=True)
class OwnRows:
    """A file of rows with labels, how to read it, and how many rows are the top."""

    file: Annotated[
        Path, typer.Argument(help="svmlight, CSV, TSV, Parquet or npz; text may be .gz, .bz2, .xz.")
    ]
    label: Annotated[
        str | None, typer.Option(help="Label column (required for tables).", rich_help_panel=_FILE)
    ] = None
    positive: Annotated[
        str | None,
        typer.Option(help="Positive label; not needed for 0/1 and -1/1.", rich_help_panel=_FILE),
    ] = None
    groups: Annotated[
        str | None,
        typer.Option(
            help="Column (npz: array) of groups; rows of a group stay together in the split.",
            rich_help_panel=_FILE,
        ),
    ] = None
    time: Annotated[
        str | None,
        typer.Option(
            help="Column (npz: array) of the time of each row, numbers or ISO dates; the quality "
            "is measured on the latest rows.",
            rich_help_panel=_FILE,
        ),
    ] = None
    drop: Annotated[
        list[str] | None,
        typer.Option(
            help="Column to leave out of the features; repeatable.", rich_help_panel=_FILE
        ),
    ] = None
    categorical: Annotated[
        str,
        typer.Option(help="Treatment of text columns: error or one-hot.", rich_help_panel=_FILE),
    ] = "error"
    missing: Annotated[
        str,
        typer.Option(
            help="Treatment of missing values: error, mean, median or most-frequent.",
            rich_help_panel=_FILE,
        ),
    ] = "error"
    form: Annotated[
        str | None,
        typer.Option("--format", help=FORMAT, rich_help_panel=_FILE),
    ] = None
    k: Annotated[
        str,
        typer.Option(
            "--k",
            help="Length of the top of the list: a number of rows (100), a fraction of the "
            'positives (0.25), or a fraction of the rows ("1 %").',
        ),
    ] = "0.25"

    @property
    def reading(self) -> dict[str, Any]:
        """The parameters of `precbench.data.own.read.read_own_file` that were given."""
        names = ("label", "positive", "groups", "time", "drop", "categorical", "missing")
        given = {"format": self.form} | {name: getattr(self, name) for name in names}
        return {name: value for name, value in given.items() if value and value != "error"}


def check_target(save: Path, file: Path) -> None:
    """Refuse a name for the model that is the file of the rows, or that cannot be written."""
    if not save.parent.is_dir():
        raise InputError(f"--save {save}: there is no folder {save.parent}")
    if save.is_dir():
        raise InputError(f"--save {save}: it is a folder; choose another place")
    if not os.access(save.parent, os.W_OK):
        raise InputError(f"--save {save}: no permission to write to {save.parent}")
    if save.exists() and file.exists() and save.samefile(file):
        raise InputError(f"--save {save} is the file of the rows: give the model another name")


def plain_value(text: str) -> Any:
    """Return the number, truth value or None that a text of the command line means, else itself."""
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            pass
    return _WORDS.get(text.lower(), text)


@contextmanager
def plain_warnings() -> Iterator[None]:
    """Print each warning in one line."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("default")
        yield
    for text in dict.fromkeys(" ".join(str(warning.message).split()) for warning in caught):
        print(f"precbench: warning: {text}", file=sys.stderr)
