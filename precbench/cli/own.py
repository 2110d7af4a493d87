"""Options of commands on the user's own file."""

import os
import shlex
import warnings
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, fields
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple, get_type_hints

import typer

from precbench.core.errors import InputError
from precbench.core.kinds import LIST_SUFFIXES
from precbench.core.text import count
from precbench.ranking.topk import TopK, resolve_k, several_k
from precbench.tables.problems import TableError

if TYPE_CHECKING:
    import pandas as pd

    from precbench.advice.length import Worth
    from precbench.model.model import Model
    from precbench.tables.encoding import Encoding
    from precbench.tables.own_table import OwnTable

_CONSTANTS = {"true": True, "false": False, "none": None, "null": None}

# Options under these titles of the help
_file_option = partial(typer.Option, rich_help_panel="Your file")
_layout_option = partial(
    typer.Option, rich_help_panel="File format, detected where possible"
)
_profit_option = partial(typer.Option, rich_help_panel="Profit")

# fields of `OwnColumns`
_READER_OPTIONS = ("label", "positive", "groups", "time", "missing")
_COLUMN_LISTS = ("drop", "id", "categorical", "numeric")  # fields that list columns


@dataclass(frozen=True, kw_only=True)
class FileLayout:
    """How a file of rows is written."""

    form: Annotated[
        str | None,
        _layout_option(
            "--format",
            help=(
                "Format: svmlight, csv, tsv, parquet, xlsx or npz [default: from the"
                " suffix]."
            ),
        ),
    ] = None
    separator: Annotated[
        str | None, _layout_option(help="Separator of the columns of CSV and TSV.")
    ] = None
    encoding: Annotated[
        str | None, _layout_option(help="Encoding of CSV and TSV, for example cp1252.")
    ] = None
    decimal: Annotated[
        str | None,
        _layout_option(metavar="MARK", help="Decimal mark: a point or a comma."),
    ] = None
    date_format: Annotated[
        str | None,
        _layout_option(
            help="Format of dates other than ISO 8601, for example %d.%m.%Y."
        ),
    ] = None
    sheet: Annotated[
        str | None, _layout_option(help="Sheet to read; required if there are several.")
    ] = None
    skip_rows: Annotated[
        int,
        _layout_option(min=0, help="Number of lines to skip above the column names."),
    ] = 0

    @property
    def layout(self) -> dict[str, Any]:
        """The options that are set, as arguments of the readers.

        `form` becomes ``format``.
        """
        values = {}
        for field in fields(FileLayout):
            value = getattr(self, field.name)
            if value:
                name = "format" if field.name == "form" else field.name
                values[name] = value
        return values


@dataclass(frozen=True, kw_only=True)
class OwnColumns(FileLayout):
    """A file of labelled rows, and its columns."""

    file: Annotated[
        Path,
        typer.Argument(
            help="CSV, TSV, Parquet, xlsx, svmlight or npz file, also .gz, .bz2, .xz."
        ),
    ]
    label: Annotated[
        str | None, _file_option(help="Label column (required for tables).")
    ] = None
    positive: Annotated[
        list[str] | None,
        _file_option(help="Positive label; not needed for 0/1 and -1/1; repeatable."),
    ] = None
    groups: Annotated[
        str | None,
        _file_option(
            help=(
                "Column (npz: array) of groups; a split never divides the rows of a"
                " group."
            )
        ),
    ] = None
    time: Annotated[
        str | None,
        _file_option(
            help=(
                "Column (npz: array) of the time of each row, numbers or ISO dates; the"
                " quality is measured on the latest rows."
            )
        ),
    ] = None
    drop: Annotated[
        list[str] | None,
        _file_option(
            help=(
                "Columns to leave out of the features, such as zip,product; repeatable."
            )
        ),
    ] = None
    id: Annotated[
        list[str] | None,
        _file_option(
            help=(
                "Column that identifies rows, with a different value in each, and is no"
                " feature; repeatable."
            )
        ),
    ] = None
    categorical: Annotated[
        list[str] | None,
        _file_option(
            help=(
                "Columns of categories, text or codes, such as zip,product; one-hot"
                " means all columns of text; repeatable [default: text is refused]."
            )
        ),
    ] = None
    numeric: Annotated[
        list[str] | None,
        _file_option(
            help=(
                "Columns to read as numbers although they look like codes (0012);"
                " repeatable."
            )
        ),
    ] = None
    missing: Annotated[
        str,
        _file_option(
            help="Treatment of missing values: error, mean, median or most-frequent."
        ),
    ] = "error"
    allow: Annotated[
        list[str] | None,
        _file_option(
            help=(
                "Columns to use as features although they look like a leak or an"
                " identifier; repeatable."
            )
        ),
    ] = None

    @property
    def reading(self) -> dict[str, Any]:
        """The options that are set, as parameters of `read_own_file`."""
        options: dict[str, Any] = dict(self.layout)
        for name in (*_READER_OPTIONS, *_COLUMN_LISTS):
            options[name] = getattr(self, name)
        if self.positive and len(self.positive) == 1:
            options["positive"] = self.positive[0]
        if self.categorical in (["one-hot"], ["error"]):
            options["categorical"] = self.categorical[0]  # a treatment, not a column
        # "error" is the default of the readers for missing values and for text.
        return {
            name: value for name, value in options.items() if value and value != "error"
        }

    @contextmanager
    def suggesting(self, command: str) -> Iterator[None]:
        """Add to an error of the block a command that would be accepted."""
        try:
            yield
        except TableError as error:
            raise InputError(self.with_remedy(command, error)) from None

    def with_remedy(self, command: str, error: TableError) -> str:
        """Return an error's text and, if options solve it, the command with these."""
        options_solve_it = error.remedies and error.is_enough
        if not options_solve_it:
            return str(error)
        separator = "\n  " if "\n" in str(error) else "; "
        remedy = self.line(command, error.remedies)
        return f"{error}{separator}this would be accepted: {remedy}"

    def _changed(self, changes: Iterable[tuple[str, object]]) -> dict[str, Any]:
        """Return the values of all options by name after `changes`.

        A change to a list of columns adds a column; columns that are left out of the
        features leave the other lists.
        """
        values = {field.name: getattr(self, field.name) for field in fields(self)}
        for name, value in changes:
            if name in _COLUMN_LISTS:
                values[name] = _with_column(values[name] or [], name, str(value))
            else:
                values[name] = value
        left_out: set[str] = set()
        for text in [*(values["drop"] or ()), *(values["id"] or ())]:
            left_out.update([text, *_parts(text)])
        for name in _COLUMN_LISTS:
            columns = values[name] or []
            if name not in ("drop", "id"):
                columns = _without(left_out, columns)
            if columns and not any("," in column for column in columns):
                columns = [",".join(columns)]  # one option names all: zip,product
            values[name] = columns or None
        return values

    def line(self, command: str, changes: Iterable[tuple[str, object]] = ()) -> str:
        """Return this command as it is typed, with some options changed.

        `command` may have arguments that precede the file.
        """
        values = self._changed(changes)
        words = ["precbench", *shlex.split(command), str(self.file)]
        hints = get_type_hints(type(self), include_extras=True)
        for field in fields(self):
            value = values[field.name]
            if field.name == "file" or value is None or value == field.default:
                continue
            name = _option_name(field.name, hints[field.name])
            for item in value if isinstance(value, list) else [value]:
                words.append(name)
                if item is not True:  # not a flag
                    words.append(str(item))
        return shlex.join(words)


@dataclass(frozen=True, kw_only=True)
class OwnRows(OwnColumns):
    """A file of labelled rows, its columns, and the list that is made of it."""

    open_list: Annotated[
        Path | None,
        _file_option(
            "--open",
            metavar="LIST",
            help=(
                "File to write (.csv, .xlsx or .parquet): the rows without a label,"
                " ranked by the model (tables only)."
            ),
        ),
    ] = None
    k: Annotated[
        list[str] | None,
        typer.Option(
            "--k",
            help=(
                "Length of the top of the list: a number of rows (100), a fraction of"
                ' the positives (0.25), or a fraction of the rows ("1 %"); repeatable:'
                " the first is used for training, all are shown [default: 0.25]."
            ),
        ),
    ] = None
    list_rows: Annotated[
        int | None,
        typer.Option(
            min=1,
            max=10**12,
            help=(
                "Number of rows of the list that you will score later; hits are"
                " forecast for the top k of these rows [default: as many as the file"
                " has]."
            ),
        ),
    ] = None
    gain: Annotated[
        float | None,
        _profit_option(
            help=(
                "What each hit gains; the profit is then shown for each length of the"
                " list."
            )
        ),
    ] = None
    gain_column: Annotated[
        str | None,
        _profit_option(
            help=(
                "Column with the gain from a row that is a hit (tables only); also a"
                " feature, unless --drop names the column."
            )
        ),
    ] = None
    cost: Annotated[
        float | None,
        _profit_option(
            help="Cost of a listed row, in the unit of --gain [default: 0]."
        ),
    ] = None

    @property
    def lengths(self) -> list[TopK]:
        """The lengths `k` as numbers and texts, as the library takes them."""
        return several_k([plain_value(text) for text in self.k or ["0.25"]])

    def checked_worth(self) -> "Worth | None":
        """Return what a hit gains and a listed row costs; None if neither is given."""
        from precbench.advice.length import Worth

        if self.gain is None and self.gain_column is None and self.cost is None:
            return None
        return Worth(gain=self.gain, column=self.gain_column, cost=self.cost or 0.0)

    def table(self) -> "OwnTable":
        """Return the table of the file, without encoding any column."""
        from precbench.tables.own_table import open_table  # which takes long to import

        return open_table(self.file, self.reading)

    def tables(self) -> "tuple[OwnTable, pd.DataFrame | None]":
        """Return the table and None, or with ``--open`` its labelled and other rows."""
        if self.open_list is None:
            return self.table(), None
        others = {"the file of the rows": self.file}
        check_target("--open", self.open_list, others, LIST_SUFFIXES)
        own = self.table()
        if own.frame is None:
            raise InputError(
                f"{self.file}: --open needs a table; convert the file to CSV"
            )
        if self.label is None:
            raise InputError(f"{self.file}: --open needs --label")
        known, rows = own.split_labelled(self.label)
        if self.open_list.suffix == ".xlsx":
            from precbench.tables.list_file import require_sheet
            from precbench.tables.own_table import several

            ids = rows.filter(several(self.id or ()))  # an option may name several
            require_sheet(ids, self.open_list)  # before any training
        return known, rows


def _parts(text: str) -> list[str]:
    """Return the names that a text such as zip,product has."""
    return [part.strip() for part in text.split(",")]


def _without(left_out: set[str], texts: list[str]) -> list[str]:
    """Return the texts of an option without the columns that are left out."""
    others = []
    for text in texts:
        parts = _parts(text)
        remaining = [part for part in parts if part not in left_out]
        if text in left_out or not remaining:
            continue
        # A name may have a comma itself.
        others.append(text if remaining == parts else ",".join(remaining))
    return others


def _with_column(columns: list[str], option: str, column: str) -> list[str]:
    """Return the columns of an option and one more, without the treatment "error"."""
    if option == "categorical" and column == "error":
        column = "error,error"  # alone it would be the treatment of text
    if column in columns:
        return columns
    return [*(name for name in columns if name != "error"), column]


def _option_name(field: str, hint: Any) -> str:
    """Return the name of the option of a field, such as --list-rows."""
    [option] = hint.__metadata__  # the typer.Option of the annotation
    # typer stores a name that is given first, such as "--open", as the default value.
    for text in (option.default, *(option.param_decls or ())):
        if str(text).startswith("--"):
            return str(text)
    return f"--{field.replace('_', '-')}"


class _Writer(NamedTuple):
    """The package that writes a list, and the extra of precbench that installs it."""

    package: str
    extra: str


_WRITERS = {
    ".parquet": _Writer("pyarrow", "parquet"),
    ".xlsx": _Writer("openpyxl", "excel"),
}


def check_target(
    option: str, path: Path, others: Mapping[str, Path], suffixes: Collection[str] = ()
) -> None:
    """Refuse a path that cannot be written, or is another file of the command.

    `others` are the other files by their description, `suffixes` the formats that are
    allowed.
    """
    if suffixes and path.suffix not in suffixes:
        raise InputError(
            f"{option} {path}: the name must end with {' or '.join(suffixes)}"
        )
    if suffixes and path.suffix in _WRITERS:
        writer = _WRITERS[path.suffix]
        if find_spec(writer.package) is None:
            raise InputError(
                f"{option} {path} needs {writer.package}; install"
                f" precbench[{writer.extra}]"
            )
    folder = path.parent
    if not folder.is_dir():
        raise InputError(
            f"{option} {path}: there is no folder {folder}; create it first"
        )
    if path.exists() and not path.is_file():
        raise InputError(f"{option} {path} is not a regular file; give another name")
    if not os.access(folder, os.W_OK):
        raise InputError(
            f"{option} {path}: cannot write to folder {folder}; give another"
        )
    for description, other in others.items():
        if path.exists() and other.exists() and path.samefile(other):
            raise InputError(f"{option} {path} is {description}; give another name")


def write_open(model: "Model", rows: "pd.DataFrame", options: OwnRows) -> str:
    """Write the rows without a label to ``--open``; return a sentence on their hits."""
    from precbench.tables.list_file import write_list  # which takes long to import

    path = options.open_list
    assert path is not None
    assert model.encoding is not None
    assert model.calibration is not None
    if rows.empty:
        return f"every row has a label: no list is written to {path}"
    features = _encoded(model.encoding, rows, options.file)
    ids = _ids_as_in_file(options).reindex(rows.index)
    ranking, n_rows = model.rank_blocks([(features, ids)], n_jobs=-1)
    # The model has numbered the rows without a label; the list has the numbers that
    # these rows have in the file. Both count from 1, an index from 0.
    index_in_file = rows.index.to_numpy()[ranking["row"] - 1]
    ranking["row"] = index_in_file + 1
    scores = ranking["score"].to_numpy()
    ranking["probability"] = model.probabilities(scores)
    write_list(ranking, path)
    main_k = options.lengths[0]
    length = _rows_at_top(main_k, ranking["probability"])
    hits = model.calibration.expected(scores[:length], n_rows)
    return (
        f"{count(n_rows, 'row')} without a label, ranked: {path}; expect about "
        f"{hits.mean:,.1f} hits among the first {length:,} "
        f"({hits.low:,.0f} to {hits.high:,.0f} in 95 % of such lists)"
    )


def _encoded(encoding: "Encoding", rows: "pd.DataFrame", file: Path) -> Any:
    """Encode rows; warn of missing values and of categories that are new."""
    from precbench.tables.encoding import Gaps

    gaps = Gaps()
    features = encoding.encode(rows, str(file), gaps)
    for sentence in gaps.sentences():
        warnings.warn(f"{file}: check the rows of --open: {sentence}", stacklevel=3)
    return features


def _ids_as_in_file(options: OwnRows) -> "pd.DataFrame":
    """Read the columns of ids again as text, such as 007."""
    import pandas as pd

    from precbench.tables.encoding import Encoding
    from precbench.tables.own_file import read_new_blocks

    no_features = Encoding("csv", n_features=0, dense=True)  # for any kind of table
    blocks = read_new_blocks(
        options.file, no_features, keep=options.id or (), **options.layout
    )
    return pd.concat([texts for _X, texts in blocks])


def _rows_at_top(k: TopK, probabilities: "pd.Series") -> int:
    """Return `k` as a number of rows, at most all.

    A fraction is of the rows, or of the positives, whose number is not known, but
    expected from their probabilities.
    """
    n_rows = len(probabilities)
    if isinstance(k, int):
        return min(k, n_rows)
    n_pos = max(1, round(probabilities.sum()))
    return resolve_k(k, n_pos, n_rows)


def plain_value(text: str) -> Any:
    """Return the value that a text such as "true" means, else the text."""
    for kind in (int, float):
        with suppress(ValueError):
            return kind(text)
    return _CONSTANTS.get(text.lower(), text)
