"""The user's tables: CSV, TSV, Parquet, XLSX or a data frame, read once."""

import os
import warnings
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from pathlib import Path
from typing import Any, NamedTuple, Self, TypeAlias, cast, get_args

import numpy as np
import pandas as pd

from precbench.core.errors import InputError
from precbench.core.kinds import Format
from precbench.core.text import count
from precbench.data.formats import SUFFIXES, find_format
from precbench.tables.csv import (
    SEPARATORS,
    Dialect,
    detect_dialect,
    read_csv,
    scan_text,
)
from precbench.tables.detectors import (
    GROUPED,
    Content,
    as_numbers,
    content_of,
    is_declared_text,
    moments_of,
)
from precbench.tables.dotted_dates import DottedDate, dotted_date
from precbench.tables.layout import (
    DETECTED,
    NAMELESS,
    Block,
    Layout,
    empty_error,
    pandas_errors_as_input_errors,
    with_exact_integers,
    with_text_names,
)
from precbench.tables.parquet import read_parquet
from precbench.tables.problems import OPTION_WORDS, TableError, column_of, listed
from precbench.tables.workbook import read_workbook

Source: TypeAlias = "str | os.PathLike[str] | pd.DataFrame | OwnTable"
_WORKBOOKS = (".xls", ".xlsb", ".ods")
TABLES = (*SEPARATORS, "parquet", "xlsx")
_ROWS_THAT_SHOW_MARK = 1000  # the first rows mostly show the decimal mark
# What a file holds, by its first bytes; a column may be named PAR1 or PK
_CONTENTS = {
    b"PAR1\x15": "parquet",
    b"PK\x03\x04": "xlsx or another ZIP archive",
    b"\xd0\xcf\x11\xe0": "xls, or a workbook with a password",
}


@dataclass(eq=False)
class OwnTable:
    """A file of the user, or a frame, read once."""

    path: Path  # or the name of a frame
    format: Format
    # None without named columns; the index counts rows from 0, blank ones too
    frame: Any
    is_file: bool = True
    layout: Layout = DETECTED
    # columns in which NA, None and the like are words
    words: frozenset[str] = frozenset()
    is_whole: bool = True  # whether it has all rows of the file
    # what `content` has detected, by column and whether its type declares text
    _contents: dict[tuple[str, bool], Content] = field(default_factory=dict)

    @property
    def where(self) -> str:
        """The table, as messages name it."""
        return str(self.path)

    def column(self, name: str) -> pd.Series:
        """Return a column; refuse an unknown name."""
        return column_of(self.frame, name, self.where)

    def split_labelled(self, label: str) -> tuple[Self, pd.DataFrame]:
        """Return the rows with a label, as a table, and the rows without one."""
        is_open = self.column(label).isna()
        known = replace(self, frame=self.frame[~is_open], is_whole=False, _contents={})
        return known, self.frame[is_open]

    @cached_property
    def dialect(self) -> Dialect:
        """How the rows of a CSV or TSV file are read."""
        scan = scan_text(self.path, self.layout)
        return detect_dialect(self.path, self.format, self.layout, scan)

    def gap(self, name: str) -> str:
        """Return the text of the first gap in a text column of CSV, such as NA.

        In other columns return "".
        """
        if self.format not in SEPARATORS or not self.is_whole:
            return ""  # without all rows, places in the file are unknown
        if self.content(name).holds != "text":
            return ""
        place = int(np.argmax(self.column(name).isna()))  # of the first gap
        return str(raw_texts(self, [name], place + 1)[name].iloc[place])

    def _as_written(self, name: str) -> pd.Series:
        """Return the values of a column as they stand in a file of text, gaps aside."""
        known = self.column(name).dropna()
        if self.is_file and self.format in SEPARATORS:
            return raw_texts(self, [name])[name].loc[known.index]
        return known.astype(str)

    def written(self, name: str) -> str:
        """Return the first value of a column as it stands in the file."""
        return str(self._as_written(name).iloc[0])

    def dotted_date(self, name: str, *, is_time: bool = False) -> DottedDate | None:
        """Return the notation of dates such as 01.2023 that all values fit, or None."""
        values = self.column(name)
        decimal = self.layout.decimal if self.is_file else None
        numbers = as_numbers(values)
        if is_declared_text(values) and decimal is not None:
            numbers = as_numbers(values, decimal)
        if np.isnan(numbers[values.notna().to_numpy()]).any():
            return None
        texts = None  # numbers of other files than CSV have no text
        if is_declared_text(values) or (self.is_file and self.format in SEPARATORS):
            texts = partial(self._as_written, name)
        return dotted_date(numbers, texts, is_time=is_time)

    def content(self, name: str, *, ignore_type: bool = False) -> Content:
        """Return what a column holds, detected once.

        With `ignore_type` digits of type text are numbers.
        """
        has_types = self.format not in SEPARATORS
        declares_text = has_types and not ignore_type
        key = (name, declares_text)
        if key not in self._contents:
            self._contents[key] = content_of(
                self.column(name),
                self.where,
                declares_text=declares_text,
                decimal=self.layout.decimal if self.is_file else None,
                date_format=self.layout.date_format,
            )
        return self._contents[key]


def is_frame(X: Any) -> bool:
    """Return whether X is a data frame with names, not only numbers, of columns."""
    if not isinstance(X, pd.DataFrame):
        return False
    return not X.columns.equals(pd.RangeIndex(X.shape[1]))


def open_table(source: Source, options: Mapping[str, Any]) -> OwnTable:
    """Return a source as a table; `options` are those of `read_own_file`.

    An svmlight or npz file, which has no named columns, is not read; its `frame` is
    None.
    """
    if isinstance(source, OwnTable):
        return source
    given = {}
    for name in Layout.__dataclass_fields__:
        if options.get(name) is not None:
            given[name] = options[name]
    layout = Layout(**given)
    if is_frame(source):
        return table_of(cast("pd.DataFrame", source), layout=layout)
    if not isinstance(source, str | os.PathLike):
        raise InputError(
            "a table must be a path or a frame with named columns, found"
            f" {type(source).__name__}"
        )
    path = Path(source)
    kind = format_of(path, options.get("format"), layout.sheet)
    if kind not in TABLES:
        return OwnTable(path, kind, None)
    # In these columns NA and None are words, not missing values.
    columns = several(options.get("categorical") or ())
    for role in ("label", "groups"):
        if options.get(role) is not None:
            columns.append(str(options[role]))
    words = frozenset(str(name) for name in columns)
    ids = several(options.get("id") or ())
    table = _read_whole(path, kind, layout, words, ids)
    if kind in SEPARATORS and layout.decimal is None:
        layout = replace(layout, decimal=_decimal_of(table))
        if layout.decimal == ",":
            # 1.234 is 1234, and pandas has read it as a fraction.
            return _read_whole(path, kind, layout, words, ids)
        # Contents are detected again, with this decimal mark.
        table = replace(table, layout=layout, _contents={})
    return table


def table_of(
    frame: pd.DataFrame, name: str = "table", layout: Layout = DETECTED
) -> OwnTable:
    """Return a frame, whose columns have declared types, as a table."""
    frame = with_text_names(frame, name).set_axis(pd.RangeIndex(len(frame)))
    return OwnTable(
        Path(name), "parquet", _nested_as_text(frame), is_file=False, layout=layout
    )


def several(names: str | Sequence[str]) -> list[str]:
    """Return the columns that an option names, or may name.

    These are its texts and, as a text may name several columns, the parts between
    commas; a treatment such as one-hot that is given alone is no column.
    """
    if isinstance(names, str):
        is_treatment = names in OPTION_WORDS["categorical"]
        texts = [] if is_treatment else [names]
    else:
        texts = list(names)
    columns = list(texts)
    for text in texts:
        columns += [part.strip() for part in text.split(",")]
    return columns


def format_of(path: Path, name: str | None = None, sheet: str | None = None) -> Format:
    """Return the format `name` if it is given, else that of the suffix.

    Refuse an unknown format, a table that begins with the bytes of another format, and
    a sheet of a file that is not xlsx.
    """
    kind = find_format(path, name)
    with pandas_errors_as_input_errors(path), path.open("rb") as file:
        head = file.read(8)
    # in words that begin with the format, such as "text or packed data"
    content = _content_by_head(head)
    expected = "text" if kind in SEPARATORS else kind
    if kind in TABLES and not content.startswith(expected):
        raise InputError(
            f"{path}: the file holds {content}, not {kind}; give the file the suffix of"
            f" its content, or save the rows as {kind}"
        )
    formats = get_args(Format)
    if kind in formats:
        if sheet is not None and kind != "xlsx":
            raise InputError(
                f"{path}: {kind} files have no sheets; leave out sheet {sheet!r}"
            )
        return cast("Format", kind)
    if kind.lower() in _WORKBOOKS:
        raise InputError(
            f"{path}: unknown format {kind!r}; save the sheet as XLSX or CSV"
        )
    suffixes = [suffix for suffix, known in SUFFIXES.items() if known in formats]
    raise InputError(
        f"{path}: unknown format {kind!r}; name one of {listed(formats)}, or use one of"
        f" the suffixes {listed(suffixes)}"
    )


def _content_by_head(head: bytes) -> str:
    """Return in words what a file holds that begins with these bytes."""
    for first_bytes, content in _CONTENTS.items():
        if head.startswith(first_bytes):
            return content
    return "text or packed data"


def read_blocks(
    path: Path,
    kind: Format,
    layout: Layout,
    *,
    texts: Collection[str] | None = (),
    words: Collection[str] = (),
    rows_at_once: int | None = None,
    keep: Sequence[str] = (),
) -> Iterator[Block]:
    """Yield a table in blocks of rows, each beside its columns `keep`.

    A block has `rows_at_once` rows, or all rows if that is None. `keep` gives text as
    it stands in the file: ``007`` stays ``007``, a missing value is ``""``. `texts` are
    columns of CSV (None for all) that stay text although all values may be numbers; in
    the columns `words` only an empty cell is missing, not NA or None. Blank rows are
    left out, but the index of both frames, which starts from 0, counts blank rows.
    """
    if kind == "parquet":
        blocks = read_parquet(path, rows_at_once, keep)
    elif kind == "xlsx":
        blocks = read_workbook(path, layout, keep)
    else:
        blocks = read_csv(path, kind, layout, texts, words, rows_at_once, keep)
    is_empty = True
    while True:
        # Errors of reading a block become InputErrors, those of the caller do not.
        with pandas_errors_as_input_errors(path), warnings.catch_warnings():
            warnings.simplefilter("error", pd.errors.ParserWarning)
            block = next(blocks, None)
        if block is None:
            break
        rows, raw = block
        if len(rows):
            is_empty = False
            if keep:
                raw = raw.set_axis(rows.index)
            yield rows, raw
    if is_empty:
        raise empty_error(
            path, layout, "the file has no rows; add some below the names"
        )


def _read_whole(
    path: Path, kind: Format, layout: Layout, words: frozenset[str], ids: Sequence[str]
) -> OwnTable:
    """Return all rows as a table, without columns that have neither name nor value.

    In the columns `words` NA and None are words. `ids` are columns of identifiers.
    """
    # With a decimal comma all columns (None) stay text, or 1.234 would be a fraction;
    # else `words` and `ids` do, as 7 and 007 are two ids.
    texts = None if layout.decimal == "," else words.union(ids)
    frame, _ = next(read_blocks(path, kind, layout, texts=texts, words=words))
    empty = []
    for name in frame:
        if str(name).startswith(NAMELESS) and frame[name].isna().all():
            empty.append(name)
    if empty:
        warnings.warn(
            f"{path}: {count(len(empty), 'column')} with neither a name nor values will"
            " not be used; remove them",
            stacklevel=4,
        )
    frame = _nested_as_text(frame.drop(columns=empty))
    table = OwnTable(path, kind, frame, layout=layout, words=words)
    if kind in SEPARATORS:
        table.frame = with_exact_integers(frame, partial(_integers_of_texts, table))
        if layout.date_format is not None:
            table.frame = table.frame.assign(
                **_dates_as_written(table, layout.date_format)
            )
    return table


def _dates_as_written(table: OwnTable, date_format: str) -> dict[str, pd.Series]:
    """Return by name, as text, the columns of decimals that are dates.

    As a number 10.2020 has become 10.202.
    """
    decimals = [
        str(name) for name, values in table.frame.items() if values.dtype.kind == "f"
    ]
    columns = {}
    for name, texts in raw_texts(table, decimals).items():
        written = texts.set_axis(table.frame.index).where(table.frame[name].notna())
        known = written.dropna()
        if len(known) == 0:
            continue
        if moments_of(known, table.where, date_format).notna().all():
            columns[str(name)] = written
    return columns


def _integers_of_texts(table: OwnTable, names: list[str]) -> Mapping[str, Any]:
    """Return those columns of a CSV file that hold nothing but integers and gaps.

    By name, as arrays of integers, None for a gap.
    """
    columns = {}
    for name, texts in raw_texts(table, names).items():
        is_missing = table.frame[name].isna().to_numpy()
        known = texts[~is_missing].str.strip()
        if known.str.fullmatch(r"[+-]?\d{1,400}").all():
            integers = np.full(len(texts), None, dtype=object)
            integers[~is_missing] = [int(text) for text in known]
            columns[str(name)] = integers
    return columns


def _nested_as_text(frame: pd.DataFrame) -> pd.DataFrame:
    """Return a frame with text in place of lists and records, which have no hash."""
    texts = {}
    for name, values in frame.items():
        if values.dtype == object:
            has_nested = values.map(lambda value: value.__hash__ is None).any()
            if has_nested:
                texts[str(name)] = values.map(str, na_action="ignore")
    return frame.assign(**texts)


class _Points(NamedTuple):
    """The points in a column of CSV that pandas has read as floats."""

    column: str
    example: str  # the first value with a point
    are_decimal: bool  # as a value such as 0.125 or 1.5 shows
    # whether there are also whole numbers, but none of 1,000 or more
    are_beside_small_integers: bool


def _points_of(
    table: OwnTable, names: Sequence[str], n_rows: int | None = None
) -> list[_Points]:
    """Describe the points of those columns that have any.

    Look at the first `n_rows` rows, or at all.
    """
    points = []
    for name, texts in raw_texts(table, names, n_rows).items():
        dotted = texts[texts.str.contains(".", regex=False)]
        if len(dotted) == 0:
            continue
        integers = texts.str.extract(r"^[+-]?(\d+)$", expand=False).dropna()
        points.append(
            _Points(
                column=str(name),
                example=dotted.iloc[0],
                are_decimal=not dotted.str.fullmatch(GROUPED.pattern).all(),
                # false without integers, as no NaN is at most 3
                are_beside_small_integers=integers.str.len().max() <= 3,
            )
        )
    return points


def _decimal_of(table: OwnTable) -> str | None:
    """Return the decimal mark if all columns of a file agree on one mark, else None.

    Refuse points that may be decimal or separate thousands.
    """
    marks = _marks_of_amounts(table)
    points = _points_that_decide(table, marks)
    unclear = [column for column in points if not column.are_decimal]
    if unclear and _may_separate_thousands(table, marks, points):
        first = unclear[0]
        raise TableError(
            table.where,
            f"column {first.column!r}: the point in {first.example!r} may be"
            " decimal or separate thousands; set the decimal mark (decimal) to . or"
            " ,",
            column=first.column,
        )
    if points:  # which are decimal
        marks.add(".")
    return marks.pop() if len(marks) == 1 else None


def _marks_of_amounts(table: OwnTable) -> set[str]:
    """Return the decimal marks of columns such as $ 7,200.00, which only one fits."""
    marks = set()
    for name, values in table.frame.items():
        if values.dtype.kind not in "fbiu":
            content = table.content(str(name))
            if content.holds == "numbers" and content.notation and not content.others:
                marks.add(content.notation)
    return marks


def _points_that_decide(table: OwnTable, marks: set[str]) -> list[_Points]:
    """Return the points in the first rows if one of these is decimal, else in all rows.

    `marks` are the decimal marks of columns such as $ 7,200.00. Beside a comma, each
    column with points has to show that they are decimal, so all rows are needed.
    """
    # Of these columns pandas has taken the points for decimal.
    floats = []
    for name, values in table.frame.items():
        if values.dtype.kind == "f":
            floats.append(str(name))
    first_points = _points_of(table, floats, _ROWS_THAT_SHOW_MARK)
    are_decimal = any(column.are_decimal for column in first_points)
    if are_decimal and "," not in marks:
        return first_points
    return _points_of(table, floats)


def _may_separate_thousands(
    table: OwnTable, marks: set[str], points: Sequence[_Points]
) -> bool:
    """Return whether those points that look like it may separate thousands."""
    if "," in marks:
        return True
    if "." in marks or any(column.are_decimal for column in points):
        return False
    if table.dialect.separator == ";":  # as where the decimal mark is a comma
        return True
    return any(column.are_beside_small_integers for column in points)


def raw_texts(
    table: OwnTable, names: Collection[str], n_rows: int | None = None
) -> pd.DataFrame:
    """Read columns of a CSV or TSV file as text, 007 and NA as they stand there.

    Read the first `n_rows` rows, or all.
    """
    if not names:
        return pd.DataFrame()
    options = {
        **table.dialect.pandas_options,
        "usecols": list(names),
        "dtype": "str",
        "na_filter": False,
        "nrows": n_rows,
    }
    with table.dialect.open_text() as text:
        frame = pd.read_csv(text, **options)
    if table.dialect.places is None:
        return frame
    return frame.set_axis(table.dialect.places[frame.index])
