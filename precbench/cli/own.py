"""Options of a person's own file, and what fit, compare and score share."""

import os
import shlex
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, get_type_hints

import typer

from precbench.data.own.problems import TableError
from precbench.errors import InputError
from precbench.topk import TopK, several_k

if TYPE_CHECKING:
    from precbench.advice.length import Worth
    from precbench.data.own.encoding import Encoding
    from precbench.data.own.table import OwnTable
    from precbench.model.model import Model

_WORDS = {"true": True, "false": False, "none": None, "null": None}

_FILE = "Your file"
_LAYOUT = "How the file is written, where it does not say so itself"
_WORTH = "Profit"
_NAMES = ("label", "positive", "groups", "time", "missing")
_LISTS = ("drop", "id", "categorical", "numeric")


@dataclass(frozen=True, kw_only=True)
class FileLayout:
    """How a file is laid out, see `precbench.data.own.table.Layout`."""

    form: Annotated[
        str | None,
        typer.Option(
            "--format",
            help="svmlight, csv, tsv, parquet, xlsx or npz [default: from the suffix].",
            rich_help_panel=_LAYOUT,
        ),
    ] = None
    separator: Annotated[
        str | None,
        typer.Option(help="Between the columns of CSV and TSV.", rich_help_panel=_LAYOUT),
    ] = None
    encoding: Annotated[
        str | None,
        typer.Option(help="Of CSV and TSV, for example cp1252.", rich_help_panel=_LAYOUT),
    ] = None
    decimal: Annotated[
        str | None,
        typer.Option(
            metavar="MARK", help="Point or comma, before decimal places.", rich_help_panel=_LAYOUT
        ),
    ] = None
    date_format: Annotated[
        str | None,
        typer.Option(help="For example %d.%m.%Y, where not ISO 8601.", rich_help_panel=_LAYOUT),
    ] = None
    sheet: Annotated[
        str | None, typer.Option(help="Of a workbook with several.", rich_help_panel=_LAYOUT)
    ] = None
    skip_rows: Annotated[
        int,
        typer.Option(
            min=0, help="Lines before that with the column names.", rich_help_panel=_LAYOUT
        ),
    ] = 0

    @property
    def layout(self) -> dict[str, Any]:
        """The options that were given, the form as ``format``."""
        given = {of.name: getattr(self, of.name) for of in fields(FileLayout)}
        return {"format" if n == "form" else n: v for n, v in given.items() if v}


@dataclass(frozen=True, kw_only=True)
class OwnRows(FileLayout):
    """A file of rows with labels, how to read it, and how many rows are the top."""

    file: Annotated[
        Path, typer.Argument(help="svmlight, CSV, TSV, Parquet or npz; text may be .gz, .bz2, .xz.")
    ]
    label: Annotated[
        str | None, typer.Option(help="Label column (required for tables).", rich_help_panel=_FILE)
    ] = None
    positive: Annotated[
        list[str] | None,
        typer.Option(
            help="Positive label; not needed for 0/1 and -1/1; repeatable.", rich_help_panel=_FILE
        ),
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
    id: Annotated[
        list[str] | None,
        typer.Option(
            help="Column with another value in each row, which is left out, too; repeatable.",
            rich_help_panel=_FILE,
        ),
    ] = None
    categorical: Annotated[
        list[str] | None,
        typer.Option(
            help="Columns whose values are categories, also codes of digits (zip,product); one-hot "
            "for all columns of text; repeatable [default: text is refused].",
            rich_help_panel=_FILE,
        ),
    ] = None
    numeric: Annotated[
        list[str] | None,
        typer.Option(
            help="Columns of numbers, though they look like codes; repeatable.",
            rich_help_panel=_FILE,
        ),
    ] = None
    missing: Annotated[
        str,
        typer.Option(
            help="Treatment of missing values: error, mean, median or most-frequent.",
            rich_help_panel=_FILE,
        ),
    ] = "error"
    allow: Annotated[
        list[str] | None,
        typer.Option(
            help="Columns to take for features though they look like a leak or an identifier; "
            "repeatable.",
            rich_help_panel=_FILE,
        ),
    ] = None
    k: Annotated[
        list[str] | None,
        typer.Option(
            "--k",
            help="Length of the top of the list: a number of rows (100), a fraction of the "
            'positives (0.25), or a fraction of the rows ("1 %"); repeatable: the first one '
            "decides, all are shown [default: 0.25].",
        ),
    ] = None
    list_rows: Annotated[
        int | None,
        typer.Option(
            min=1,
            max=10**12,
            help="Length of the list that you will score, for the hits to expect [default: as many "
            "rows as the file has].",
        ),
    ] = None
    gain: Annotated[
        float | None,
        typer.Option(help="What each hit gains, for the profit by length.", rich_help_panel=_WORTH),
    ] = None
    gain_column: Annotated[
        str | None,
        typer.Option(
            help="Column of numbers, what each row gains if it is a hit (tables); it stays a "
            "feature, unless dropped.",
            rich_help_panel=_WORTH,
        ),
    ] = None
    cost: Annotated[
        float | None,
        typer.Option(
            help="What each row of the list costs, hit or not [default: 0].", rich_help_panel=_WORTH
        ),
    ] = None

    @property
    def lengths(self) -> list[TopK]:
        """The values of ``--k``, each once."""
        return several_k([plain_value(text) for text in self.k or ["0.25"]])

    @property
    def worth(self) -> "Worth | None":
        """What a hit gains and a row costs, if any of them was given."""
        from precbench.advice.length import Worth

        if self.gain is None and self.gain_column is None and self.cost is None:
            return None
        return Worth(self.gain, self.gain_column, self.cost or 0.0)

    def table(self) -> "OwnTable":
        """Read the file."""
        from precbench.data.own.table import open_table  # which takes long to import

        return open_table(self.file, self.reading)

    @property
    def reading(self) -> dict[str, Any]:
        """The parameters of `precbench.data.own.read.read_own_file` that were given."""
        given: dict[str, Any] = dict(self.layout)
        given |= {name: getattr(self, name) for name in (*_NAMES, *_LISTS)}
        if self.positive and len(self.positive) == 1:
            given["positive"] = self.positive[0]
        if self.categorical in (["one-hot"], ["error"]):
            given["categorical"] = self.categorical[0]
        return {name: value for name, value in given.items() if value and value != "error"}

    @contextmanager
    def corrected(self, command: str) -> Iterator[None]:
        """Tell of a table that is refused which command would read it."""
        try:
            yield
        except TableError as error:
            if not error.remedies or not error.is_enough:
                raise
            several = "\n  " if "\n" in str(error) else "; "
            words = shlex.join(["precbench", command, *self._words(error.remedies)])
            raise InputError(f"{error}{several}this would do: {words}") from None

    def _words(self, remedies: Iterable[tuple[str, object]]) -> list[str]:
        """Return the arguments of this command, with those that a table needs."""
        values = {of.name: getattr(self, of.name) for of in fields(self)}
        for name, value in remedies:
            if name not in _LISTS:
                values[name] = value
            elif str(value) not in (given := values[name] or []):
                values[name] = [*(one for one in given if one != "error"), str(value)]
        left_out = {*(values["drop"] or ()), *(values["id"] or ())}
        for name in ("categorical", "numeric"):
            values[name] = [one for one in values[name] or () if one not in left_out] or None
        for name in ("id", "categorical", "numeric"):
            if values[name] and not any("," in one for one in values[name]):
                values[name] = [",".join(values[name])]
        words = [str(values.pop("file"))]
        hints = get_type_hints(type(self), include_extras=True)
        for of in fields(self):
            value = values.get(of.name)
            if value is None or value == of.default:
                continue
            declared = getattr(hints[of.name].__metadata__[0], "param_decls", None) or ()
            name = next(iter(declared), f"--{of.name.replace('_', '-')}")
            for one in value if isinstance(value, list) else [value]:
                words += [name] if one is True else [name, str(one)]
        return words


def load_model(path: Path) -> "tuple[Model, Encoding]":
    """Load a model of a file, and how its rows become features."""
    from precbench.model.model import Model  # which takes long to import

    model = Model.load(path)
    if model.encoding is None:
        raise InputError(f"{path} was fitted to arrays, not to a file: score rows from Python")
    return model, model.encoding


def check_target(option: str, path: Path, others: Mapping[str, Path]) -> None:
    """Refuse a name for a file that cannot be written, or that is another file of the command."""
    if not path.parent.is_dir():
        raise InputError(f"{option} {path}: there is no folder {path.parent}")
    if path.exists() and not path.is_file():
        raise InputError(f"{option} {path} is not a regular file: name another")
    if not os.access(path.parent, os.W_OK):
        raise InputError(f"{option} {path}: no permission to write to {path.parent}")
    for what, other in others.items():
        if path.exists() and other.exists() and path.samefile(other):
            raise InputError(f"{option} {path} is {what}: give another name")


def plain_value(text: str) -> Any:
    """Return the number, truth value or None that a text of the command line means, else itself."""
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            pass
    return _WORDS.get(text.lower(), text)
