"""The user's tables: CSV, TSV, Parquet, XLSX or a data frame, read once."""

import codecs
import csv
import io
import os
import re
import threading
import warnings
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from itertools import chain, islice
from pathlib import Path
from typing import Any, Self, TypeAlias, cast, get_args

import numpy as np
import pandas as pd

from precbench.data.formats import SUFFIXES, Format, find_format, opened
from precbench.data.own.content import (
    GROUPED,
    PANDAS_IS_EXACT,
    Content,
    as_numbers,
    check_date_format,
    content_of,
    is_declared_text,
    moments_of,
)
from precbench.data.own.dotted import DottedDate, dotted_date
from precbench.data.own.problems import OPTION_WORDS, TableError, column_of, listed, named_columns
from precbench.errors import InputError
from precbench.text import count

Source: TypeAlias = "str | os.PathLike[str] | pd.DataFrame | OwnTable"
Block = tuple[pd.DataFrame, pd.DataFrame]  # rows, and columns of these rows as text

MOST_COLUMNS = 100_000  # a column takes some KiB, however short it is
_WORKBOOKS = (".xls", ".xlsb", ".ods")
_SEPARATORS = {"csv": ",", "tsv": "\t"}
TABLES = (*_SEPARATORS, "parquet", "xlsx")
_CONTENTS = {  # what a file holds, by its first bytes
    b"PAR1\x15": "parquet",  # a column may be named PAR1 or PK
    b"PK\x03\x04": "xlsx or another ZIP archive",
    b"\xd0\xcf\x11\xe0": "xls, or a workbook with a password",
    b"": "text or packed data",  # all others begin so, too: comes last
}
_NAMELESS = "Unnamed: "  # pandas' prefix for a column without a name
_MISSING_TEXTS = (  # what pandas takes for missing
    *("", "#N/A", "#N/A N/A", "#NA", "-1.#IND", "-1.#QNAN", "-NaN", "-nan", "1.#IND", "1.#QNAN"),
    *("<NA>", "N/A", "NA", "NULL", "NaN", "None", "n/a", "nan", "null"),
)
# Rows, columns and characters of a cell, as in Excel; characters of all cells
_SHEET_LIMITS = (1_048_576, 16_384, 32_767, 2**28)
_WIDE = {  # encodings of two or four bytes a character, by a byte order mark or by their NULs
    r"\xff\xfe\0\0|\0\0\xfe\xff": "utf-32",
    r"\xff\xfe|\xfe\xff": "utf-16",
    r"[^\0]\0\0\0": "utf-32-le",
    r"\0\0\0[^\0]": "utf-32-be",
    r"[^\0]\0[^\0]\0": "utf-16-le",
    r"\0[^\0]\0[^\0]": "utf-16-be",
}
_SAMPLE_LINES = 50  # lines from which the separator is detected
# Characters of a value that the module csv reads; where a separator is tried that a line
# lacks, the line is one value
_LONGEST_VALUE = 2**28
_LARGEST_EXACT = 2**53  # above this float, not every integer is a float
_MANY_LINES = 5  # in one value, as an unclosed quotation mark makes


@dataclass(frozen=True, kw_only=True)
class Layout:
    """How the text of a file is laid out; None where it is detected."""

    separator: str | None = None  # of CSV and TSV
    encoding: str | None = None  # of CSV and TSV
    decimal: Any = None  # "." or ",", of numbers in text
    date_format: str | None = None  # other than ISO 8601, as for `datetime.strptime`
    sheet: str | None = None  # of a workbook
    skip_rows: int = 0  # lines above the column names

    def __post_init__(self) -> None:
        # Refuse impossible options before a file is read.
        if self.decimal not in (None, ".", ","):
            raise InputError(f"decimal must be '.' or ',', found {self.decimal!r}")
        if self.separator is not None and len(self.separator) != 1:
            raise InputError(f"separator must be one character, found {self.separator!r}")
        if self.date_format is not None:
            check_date_format(self.date_format)


@dataclass(eq=False)
class OwnTable:
    """A file of the user, or a frame, read once."""

    path: Path  # or the name of a frame
    format: Format
    frame: Any  # None without named columns; the index counts rows from 0, blank ones too
    is_file: bool = True
    layout: Layout = Layout()
    words: frozenset[str] = frozenset()  # columns in which NA, None and the like are words
    is_whole: bool = True  # whether it has all rows of the file
    _contents: dict[tuple[str, bool], Content] = field(default_factory=dict)  # see `content`

    @property
    def where(self) -> str:  # as messages name the table
        return str(self.path)

    def column(self, name: str) -> pd.Series:  # refuse an unknown name
        return column_of(self.frame, name, self.where)

    def split_labelled(self, label: str) -> tuple[Self, pd.DataFrame]:
        """Return the rows that have a label, as a table, and the rows that have none."""
        is_open = self.column(label).isna()
        known = replace(self, frame=self.frame[~is_open], is_whole=False, _contents={})
        return known, self.frame[is_open]

    @cached_property
    def dialect(self) -> tuple[Any, ...]:  # of a CSV or TSV file, see `_dialect`
        encoding, has_blank_rows, _ = _scan(self.path, self.layout)
        return _dialect(self.path, self.format, self.layout, encoding, has_blank_rows)

    def gap(self, name: str) -> str:
        """Return the text, such as NA, of the first gap in a text column of CSV, else ""."""
        if self.format not in _SEPARATORS or not self.is_whole:
            return ""  # without all rows, places in the file are unknown
        if self.content(name).holds != "text":
            return ""
        place = int(np.argmax(self.column(name).isna()))  # of the first gap
        return str(raw_texts(self, [name], place + 1)[name].iloc[place])

    def _as_written(self, name: str) -> pd.Series:
        """Return the values of a column as they stand in a file of text, gaps aside."""
        values = self.column(name)
        if self.is_file and self.format in _SEPARATORS:
            values = raw_texts(self, [name])[name].loc[values.index].where(values.notna())
        return values.dropna().astype(str)

    def written(self, name: str) -> str:
        """Return the first value of a column as it stands in the file."""
        return str(self._as_written(name).iloc[0])

    def dotted_date(self, name: str, *, is_time: bool = False) -> DottedDate | None:
        """Return the notation of dates, such as 01.2023, that all values of a column fit."""
        values = self.column(name)
        decimal = self.layout.decimal if self.is_file else None
        numbers = as_numbers(values)
        if is_declared_text(values) and decimal is not None:
            numbers = as_numbers(values, decimal)
        if np.isnan(numbers[values.notna().to_numpy()]).any():
            return None
        has_texts = is_declared_text(values) or (self.is_file and self.format in _SEPARATORS)
        texts = partial(self._as_written, name) if has_texts else None
        return dotted_date(numbers, texts, is_time=is_time)

    def content(self, name: str, *, ignore_type: bool = False) -> Content:
        """Return what a column holds, kept; with `ignore_type` digits of type text are numbers."""
        declares_text = not ignore_type and self.format not in _SEPARATORS  # CSV has no types
        key = name, declares_text
        if key not in self._contents:
            self._contents[key] = content_of(
                self.column(name), self.where, declares_text=declares_text,
                decimal=self.layout.decimal if self.is_file else None,
                date_format=self.layout.date_format,
            )  # fmt: skip
        return self._contents[key]


def is_frame(X: Any) -> bool:
    """Return whether X is a data frame with named columns, not only columns numbered from 0."""
    return isinstance(X, pd.DataFrame) and not X.columns.equals(pd.RangeIndex(X.shape[1]))


def open_table(source: Source, options: Mapping[str, Any]) -> OwnTable:
    """Return a source as a table; `options` are those of `read_own_file`.

    An svmlight or npz file, which has no named columns, is not read; its `frame` is None.
    """
    if isinstance(source, OwnTable):
        return source
    given = {name: options.get(name) for name in Layout.__dataclass_fields__}
    layout = Layout(**{name: value for name, value in given.items() if value is not None})
    if is_frame(source):
        return table_of(cast("pd.DataFrame", source), layout=layout)
    if not isinstance(source, str | os.PathLike):
        raise InputError(
            f"a table must be a path or a frame with named columns, found {type(source).__name__}"
        )
    path = Path(source)
    kind = format_of(path, options.get("format"), layout.sheet)
    if kind not in TABLES:
        return OwnTable(path, kind, None)
    # In these columns NA and None are words, not missing values.
    columns = [*map(options.get, ("label", "groups")), *several(options.get("categorical") or ())]
    words = frozenset(str(name) for name in columns if name is not None)
    ids = several(options.get("id") or ())
    table = _read_whole(path, kind, layout, words, ids)
    if kind in _SEPARATORS and layout.decimal is None:
        layout = replace(layout, decimal=_decimal_of(table))
        if layout.decimal == ",":  # then 1.234 is 1234, and pandas has read it as a fraction
            return _read_whole(path, kind, layout, words, ids)
        table = replace(table, layout=layout, _contents={})  # detect again, with this decimal mark
    return table


def table_of(frame: pd.DataFrame, name: str = "table", layout: Layout = Layout()) -> OwnTable:
    """Return a frame, whose columns have declared types, as a table."""
    frame = _with_text_names(frame, name).set_axis(pd.RangeIndex(len(frame)))
    return OwnTable(Path(name), "parquet", _nested_as_text(frame), is_file=False, layout=layout)


def several(names: str | Sequence[str]) -> list[str]:
    """Return the texts of an option, but no treatment, and the parts between commas of each."""
    texts = {names}.difference(OPTION_WORDS["categorical"]) if isinstance(names, str) else names
    return [*texts, *(part.strip() for text in texts for part in text.split(","))]


def format_of(path: Path, name: str | None = None, sheet: str | None = None) -> Format:
    # Return the given format, else that of the suffix. Refuse an unknown format, a table that
    # begins with the bytes of another format, and a sheet of a file that is not xlsx.
    kind = find_format(path, name)
    with _pandas_errors_as_input_errors(path), path.open("rb") as file:
        head = file.read(8)
    content = next(what for first, what in _CONTENTS.items() if head.startswith(first))
    if kind in TABLES and not content.startswith("text" if kind in _SEPARATORS else kind):
        raise InputError(
            f"{path}: the file holds {content}, not {kind}; give the file the suffix of its "
            f"content, or save the rows as {kind}"
        )
    if kind in get_args(Format):
        if sheet is not None and kind != "xlsx":
            raise InputError(f"{path}: {kind} files have no sheets; leave out sheet {sheet!r}")
        return cast("Format", kind)
    if kind.lower() in _WORKBOOKS:
        raise InputError(f"{path}: unknown format {kind!r}; save the sheet as XLSX or CSV")
    suffixes = [suffix for suffix, known in SUFFIXES.items() if known in get_args(Format)]
    raise InputError(
        f"{path}: unknown format {kind!r}; name one of {listed(get_args(Format))}, or use one of "
        f"the suffixes {listed(suffixes)}"
    )


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
    """Yield a table in blocks of `rows_at_once` rows (None: all), each beside its columns `keep`.

    `keep` gives text as it stands in the file: ``007`` stays ``007``, a missing value is ``""``.
    `texts` are columns of CSV (None for all) that stay text although all values may be numbers; in
    the columns `words` only an empty cell is missing, not NA or None. Blank rows are left out, but
    the index of both frames, which starts from 0, counts blank rows.
    """
    if kind == "parquet":
        blocks = _read_parquet(path, rows_at_once, keep)
    elif kind == "xlsx":
        blocks = _read_workbook(path, layout, keep)
    else:
        blocks = _read_csv(path, kind, layout, texts, words, rows_at_once, keep)
    is_empty = True
    while True:  # errors of reading a block become InputErrors, those of the caller do not
        with _pandas_errors_as_input_errors(path), warnings.catch_warnings():
            warnings.simplefilter("error", pd.errors.ParserWarning)
            block = next(blocks, None)
        if block is None:
            break
        rows, kept_texts = block
        if len(rows):
            is_empty = False
            yield rows, kept_texts.set_axis(rows.index) if keep else kept_texts
    if is_empty:
        raise _empty_error(path, layout, "the file has no rows; add some below the names")


def _read_whole(
    path: Path, kind: Format, layout: Layout, words: frozenset[str], ids: Sequence[str]
) -> OwnTable:
    # Return all rows as a table, without columns that have neither a name nor a value.
    # None: all; or 1.234 is a fraction. The ids 7 and 007 are two.
    texts = None if layout.decimal == "," else words.union(ids)
    frame, _ = next(read_blocks(path, kind, layout, texts=texts, words=words))
    empty = [name for name in frame if str(name).startswith(_NAMELESS) and frame[name].isna().all()]
    if empty:
        warnings.warn(
            f"{path}: {count(len(empty), 'column')} with neither a name nor values will not be "
            "used; remove them",
            stacklevel=4,
        )
    frame = _nested_as_text(frame.drop(columns=empty))
    table = OwnTable(path, kind, frame, layout=layout, words=words)
    if kind in _SEPARATORS:
        table.frame = _with_exact_integers(frame, partial(_integers_of_texts, table))
        if layout.date_format is not None:
            table.frame = table.frame.assign(**_dates_as_written(table, layout.date_format))
    return table


def _dates_as_written(table: OwnTable, date_format: str) -> dict[str, pd.Series]:
    """Return as text the columns of decimals that are dates: 10.2020 has become 10.202."""
    decimals = [str(name) for name, values in table.frame.items() if values.dtype.kind == "f"]
    columns = {}
    for name, texts in raw_texts(table, decimals).items():
        written = texts.set_axis(table.frame.index).where(table.frame[name].notna())
        known = written.dropna()
        if len(known) and moments_of(known, table.where, date_format).notna().all():
            columns[str(name)] = written
    return columns


def _with_exact_integers(
    frame: pd.DataFrame, read: Callable[[list[str]], Mapping[str, Any]]
) -> pd.DataFrame:
    """Return a frame with integers in place of floats that cannot tell neighbours apart.

    A gap turns a column of integers into floats. `read` returns columns as they are in the file.
    """
    rounded = []
    for name, values in frame.items():
        if values.dtype.kind == "f" and (values.abs() >= _LARGEST_EXACT).any():
            rounded.append(str(name))
    if not rounded:
        return frame
    integers = {
        name: values
        for name, values in read(rounded).items()
        if pd.api.types.infer_dtype(values, skipna=True) == "integer"
    }
    return frame.assign(**integers)


def _integers_of_texts(table: OwnTable, names: list[str]) -> Mapping[str, Any]:
    """Return those of the columns of a CSV file whose values are all integers, and gaps."""
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
    # Return a frame with text in place of lists and records, which have no hash.
    objects = [name for name, values in frame.items() if values.dtype == object]
    nested = [n for n in objects if frame[n].map(lambda value: value.__hash__ is None).any()]
    return frame.assign(**{str(name): frame[name].map(str, na_action="ignore") for name in nested})


def _empty_error(path: Path, layout: Layout, text: str) -> InputError:  # `text`: if none skipped
    skipped = f"skip_rows {layout.skip_rows:,} leaves no rows; skip fewer lines"
    return InputError(f"{path}: {skipped if layout.skip_rows else text}")


def _with_text_names(frame: pd.DataFrame, where: object) -> pd.DataFrame:
    # Return a frame whose columns are named by text, as Parquet names them; refuse equal names.
    names = frame.columns.map(lambda n: str((*map(str, n),) if isinstance(n, tuple) else n))
    if not names.is_unique:
        raise InputError(f"{where}: two columns named {names[names.duplicated()][0]!r}; rename one")
    return frame.set_axis(names, axis=1)


def _decimal_of(table: OwnTable) -> str | None:
    # Return the decimal mark if all columns of a file agree on one mark, else None.
    kinds = {str(n): values.dtype.kind for n, values in table.frame.items()}  # biuf: numbers
    contents = [table.content(name) for name, kind in kinds.items() if kind not in "biuf"]
    # Marks of amounts such as $ 7,200.00 that only one mark fits
    marks = {c.notation for c in contents if c.holds == "numbers" and c.notation and not c.others}
    # In floats pandas took the point for the decimal mark. The point may separate thousands where
    # other columns have commas or, if no value is like 0.125 or 1.5, in a file with semicolons or
    # beside whole numbers below 1,000 alone.
    floats = [name for name, kind in kinds.items() if kind == "f"]
    for n_rows in (1000, None):  # the first rows mostly show the mark
        texts = raw_texts(table, floats, n_rows)
        dotted = {str(n): text[text.str.contains(".", regex=False)] for n, text in texts.items()}
        clear = [n for n, text in dotted.items() if not text.str.fullmatch(GROUPED.pattern).all()]
        if clear and "," not in marks:
            break
    unclear = [name for name, text in dotted.items() if len(text) and name not in clear]
    is_likely = unclear and (
        table.dialect[-1]["sep"] == ";"
        or any(texts[n].str.extract(r"^[+-]?(\d+)$")[0].str.len().max() <= 3 for n in unclear)
    )
    if unclear and ("," in marks or (is_likely and not marks and not clear)):
        raise TableError(
            table.where,
            f"column {unclear[0]!r}: the point in {dotted[unclear[0]].iloc[0]!r} may be decimal or "
            "separate thousands; set the decimal mark (decimal) to . or ,",
            column=unclear[0],
        )
    marks |= {"." for text in dotted.values() if len(text)}
    return marks.pop() if len(marks) == 1 else None


# --- CSV ---


def _read_csv(
    path: Path,
    kind: str,
    layout: Layout,
    texts: Collection[str] | None,
    words: Collection[str],
    rows_at_once: int | None,
    keep: Sequence[str],
) -> Iterator[Block]:
    # Yield blocks as `read_blocks` does; a second reader gives the columns `keep` as text.
    encoding, has_blank_rows, unended = _scan(path, layout)  # unended: a last line without an end
    if encoding == "cp1252" and layout.encoding is None:
        warnings.warn(
            f"{path}: the text is not UTF-8 and is read as Windows-1252; name another encoding if "
            "that is wrong",
            stacklevel=5,
        )
    header, opened_text, places, options = _dialect(path, kind, layout, encoding, has_blank_rows)
    n_cells = unended.count(options["sep"].encode()) + 1
    # A line with a quotation mark is not judged: the line may be the rest of a cell of many lines.
    if unended and b'"' not in unended and n_cells < len(header):
        raise InputError(
            f"{path}: the last line has {n_cells} of {len(header)} columns and no line end: "
            "the file is truncated; get the file again, or remove this line"
        )
    options |= {"chunksize": rows_at_once, "iterator": True}  # one block if None
    missing = {name: [""] if name in words else _MISSING_TEXTS for name in header}
    keep = _columns_to_keep(keep, header, path)
    text_options = {**options, "usecols": keep, "dtype": "str", "na_filter": False}
    dtypes = {name: "str" for name in header if texts is None or name in texts}
    options |= {"dtype": dtypes, "na_values": missing, "keep_default_na": False}
    with opened_text() as text, opened_text() as kept_text, ExitStack() as stack:
        if keep:
            text_blocks = stack.enter_context(pd.read_csv(kept_text, **text_options))
        for frame in stack.enter_context(pd.read_csv(text, **options)):
            kept_texts = next(text_blocks)[keep] if keep else pd.DataFrame(index=frame.index)
            if places is not None:  # pandas has counted without the blank rows
                frame.index = places[frame.index]
            for name, values in frame.items():
                # Beside integers of more than 64 bits pandas keeps gaps as texts.
                if name not in dtypes and is_declared_text(values):
                    frame[name] = values.mask(values.isin(missing[name]))
            _warn_of_quotes(path, frame, options["sep"])
            yield frame, kept_texts


def raw_texts(table: OwnTable, names: Collection[str], n_rows: int | None = None) -> pd.DataFrame:
    """Read columns of a CSV or TSV file as text (007, NA), of the first `n_rows` rows if given."""
    if not names:
        return pd.DataFrame()
    _, opened_text, places, dialect = table.dialect
    options = dialect | {"usecols": [*names], "dtype": "str", "na_filter": False, "nrows": n_rows}
    with opened_text() as text:
        frame = pd.read_csv(text, **options)
    return frame if places is None else frame.set_axis(places[frame.index])


def _dialect(
    path: Path, kind: str, layout: Layout, encoding: str, has_blank_rows: bool
) -> tuple[Any, ...]:
    # Return the column names, a function that opens the text from the names on, the places of the
    # rows with a value (from 0, blank rows counted; None: all rows), and the options of pandas.
    skipped = layout.skip_rows
    with _long_values(), _text_below(path, encoding, skipped) as text:
        lines = [*islice(text, _SAMPLE_LINES)]
        hint = re.fullmatch(r'"?sep=(.)"?\s*', lines[0]) if lines else None
        if hint:  # a first line by which Excel knows the separator
            skipped += 1
            lines = lines[1:]
        separator = layout.separator or (hint and hint[1]) or _separator(lines, _SEPARATORS[kind])
        _refuse_several_blanks(path, lines, separator)
        rows = csv.reader(chain(lines, text), delimiter=separator)
        n_blank, header = 0, []  # the blank lines above the column names, and the names
        for header in rows:  # up to the first row with text, which stays in `header`
            if "".join(header).strip():
                break
            n_blank = rows.line_num
    if not header:
        raise _empty_error(path, layout, "the file is empty; give one with names and rows")
    header = _named(header)
    _check_header(path, header)
    options: dict[str, Any] = {
        "sep": separator, "header": 0, "names": header, "index_col": False, "low_memory": False,
    }  # fmt: skip
    if not PANDAS_IS_EXACT:
        options["float_precision"] = "round_trip"
    opened_text = partial(_text_below, path, encoding, skipped + n_blank)
    places = None
    if has_blank_rows:
        with _long_values(), opened_text() as text:
            rows = csv.reader(text, delimiter=separator)
            # Below 0: cells without a value, which pandas would read; 0: a blank line.
            sizes = np.array([len("".join(row).strip()) or -len(row) for row in rows])
        places = np.flatnonzero(sizes > 0)[1:] - 1  # without the names
        options["skiprows"] = np.flatnonzero(sizes < 0).tolist()
    return header, opened_text, places, options


def _refuse_several_blanks(path: Path, lines: Sequence[str], separator: str) -> None:
    """Refuse columns that are set apart by any number of blanks; two of them hold no value."""
    filled = [line for line in lines if line.strip()]
    n_values = {len(row) for row in csv.reader(filled, delimiter=separator)}
    has_several = any("  " in line.strip() or line.startswith(" ") for line in filled)
    if separator == " " and has_several and len(n_values) > 1:
        raise InputError(
            f"{path}: there are several blanks between values; save the file with one separator, "
            "such as a comma"
        )


class _ValueLimit:
    """The limit of the module csv, shared by the whole process, and who has raised it."""

    lock = threading.Lock()
    usual = 0  # before the first of the present readers
    n_readers = 0


@contextmanager
def _long_values() -> Iterator[None]:
    """Let the module csv read long values; the last of several threads restores its limit."""
    with _ValueLimit.lock:
        if _ValueLimit.n_readers == 0:
            _ValueLimit.usual = csv.field_size_limit(_LONGEST_VALUE)
        _ValueLimit.n_readers += 1
    try:
        yield
    finally:
        with _ValueLimit.lock:
            _ValueLimit.n_readers -= 1
            if _ValueLimit.n_readers == 0:
                csv.field_size_limit(_ValueLimit.usual)


@contextmanager
def _text_below(path: Path, encoding: str, n_lines: int) -> Iterator[io.TextIOWrapper]:
    # Open the text of a file below its first lines, which pandas would count in another way. All
    # line ends become \n, as pandas skips no row behind \r.
    with opened(path) as stream, io.TextIOWrapper(stream, encoding) as text:
        next(islice(text, n_lines, n_lines), None)  # reads these lines, and no other
        yield text


def _scan(path: Path, layout: Layout) -> tuple[str, bool, bytes]:
    # Return the encoding (if not given UTF-8, one of `_WIDE`, or else Windows-1252), whether there
    # may be rows without a value, and the last line if this line has no end, else b"".
    decoder: Any = codecs.getincrementaldecoder("utf-8")()
    encoding, has_blank, held_back, last_line = layout.encoding or "utf-8-sig", False, b"", b""
    no_values = f' \t,;|"{layout.separator or ""}'.encode()  # what a row without a value may hold
    with opened(path) as stream:
        while chunk := stream.read(2**20):
            head = chunk[:4].decode("latin-1") if stream.tell() == len(chunk) else ""
            if wide := [name for first, name in _WIDE.items() if re.match(first, head)]:
                return layout.encoding or wide[0], True, b""  # the rows are not looked at
            if b"\0" in chunk and not PANDAS_IS_EXACT:  # earlier versions read 1\0.5 as 1
                raise InputError(f"{path}: the file holds a NUL character; get the file again")
            # Line ends are held back until text follows, as blank lines at the end do not count.
            filled = (held_back + chunk).rstrip(b"\r\n \t")
            held_back = (held_back + chunk)[len(filled) :]
            lines = filled.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
            # The line at the end of the chunk, which may have begun in an earlier one.
            last_line = lines[lines.rfind(b"\n") + 1 :] if b"\n" in lines else last_line + lines
            values = lines.translate(None, no_values) + b"\n"
            has_blank = has_blank or b"\n\n" in values  # nothing between two line ends
            try:
                decoder.decode(chunk)
            except UnicodeDecodeError:
                encoding = layout.encoding or "cp1252"
                decoder = codecs.getincrementaldecoder("cp1252")("replace")  # never fails
    has_blank = has_blank or b"\t" in held_back  # tabs may be a row of empty cells
    return encoding, has_blank, b"" if held_back.strip(b" \t") else last_line + held_back


def _separator(lines: list[str], usual: str) -> str:
    # Return the separator that splits most lines into as many columns (> 1) as the first line.
    shares = dict.fromkeys("\t;|,", (0.0, 0))  # of lines split so; columns
    for separator in shares:
        rows = csv.reader(lines, delimiter=separator)
        lengths = [len(row) for row in rows if "".join(row).strip()]  # of rows that are not blank
        if lengths and lengths[0] > 1:
            shares[separator] = lengths.count(lengths[0]) / len(lengths), lengths[0]
    # Of equal shares that with most columns, and the comma last: names and numbers have commas.
    likely = max(shares, key=shares.__getitem__)
    return likely if shares[likely][0] > 0.5 else usual


def _warn_of_quotes(path: Path, frame: pd.DataFrame, separator: str) -> None:
    # Warn where a value seems to hold other rows, as behind a quotation mark without an end.
    cells = re.escape(separator) + r"\S"  # in prose a blank or a line end follows the separator
    for name, values in frame.items():
        if not is_declared_text(values):
            continue
        values = values[values.str.contains("\n", regex=False, na=False)]
        n_breaks = values.str.count("\n")
        holds_rows = values.str.count(cells) == n_breaks * (frame.shape[1] - 1)  # whole rows
        if (is_odd := (n_breaks >= _MANY_LINES) | holds_rows).any():
            i = int(is_odd.argmax())  # the first odd value
            warnings.warn(
                f"{path}: row {values.index[i] + 1}, column {name!r} holds {n_breaks.iloc[i] + 1} "
                "lines; check the value for an unclosed quotation mark",
                stacklevel=6,
            )


# --- Parquet and workbooks ---


def _columns_of_parquet(path: Path, names: list[str]) -> dict[str, Any]:
    """Return columns with integers as they are stored, and gaps."""
    frame = pd.read_parquet(path, columns=names, dtype_backend="numpy_nullable")
    return {str(name): values for name, values in frame.items()}


def _read_parquet(path: Path, rows_at_once: int | None, keep: Sequence[str]) -> Iterator[Block]:
    # Yield blocks as `read_blocks` does; without `rows_at_once` one block of all rows, and no text.
    if rows_at_once is None:
        frame = _with_index(pd.read_parquet(path), 0, path)
        yield _with_exact_integers(frame, partial(_columns_of_parquet, path)), pd.DataFrame()
        return
    from pyarrow.parquet import ParquetFile

    n_rows = 0
    with ParquetFile(path) as file:
        for group in range(file.num_row_groups):  # one pass over all would keep their buffers
            for batch in file.iter_batches(rows_at_once, [group]):
                frame = _with_index(batch.to_pandas(), n_rows, path)
                n_rows += len(frame)
                frame = _with_exact_integers(frame, partial(_lists_of, batch))
                names = _columns_to_keep(keep, [*frame.columns], path)
                yield frame, _as_text({name: batch.column(name).to_pylist() for name in names})


def _lists_of(batch: Any, names: list[str]) -> Mapping[str, Any]:
    """Return columns of a batch of Parquet as arrays of Python's numbers."""
    return {name: np.array(batch.column(name).to_pylist(), dtype=object) for name in names}


def _columns_to_keep(keep: Sequence[str], header: Sequence[str], path: Path) -> list[str]:
    # Return the columns that `keep` names; "all" means all columns, unless a column has this name.
    names = named_columns(keep, header, f"{path}: keep", ("all",))
    return [*header] if "all" in names and "all" not in header else [*dict.fromkeys(names)]


def _as_text(columns: Mapping[str, list[Any]]) -> pd.DataFrame:  # "" for None and NaN (v != v)
    return pd.DataFrame(
        {n: ["" if v is None or v != v else str(v) for v in vs] for n, vs in columns.items()},
        dtype="str",
    )


def _with_index(frame: pd.DataFrame, n_before: int, path: Path) -> pd.DataFrame:
    # Return a frame with named levels of its index as columns, and rows numbered from `n_before`.
    frame = _with_text_names(frame, path)
    if named := [name for name in frame.index.names if name is not None]:
        frame = frame.reset_index(level=named, names=[*map(str, named)])
    return frame.set_axis(pd.RangeIndex(n_before, n_before + len(frame)))


def _read_workbook(path: Path, layout: Layout, keep: Sequence[str]) -> Iterator[Block]:
    # Yield all rows of a sheet, at most a million, as one block.
    with closing(_open_workbook(path)) as book:
        sheets = book.worksheets  # without those of charts
        if not sheets:  # or all are elsewhere than the workbook says
            raise InputError(
                f"{path}: the workbook names no sheet with rows that can be read; save the file "
                "again with Excel, or save the rows as CSV"
            )
        chosen = [sheet for sheet in sheets if layout.sheet in (None, sheet.title)]
        if len(chosen) != 1:
            fault = f"no sheet {layout.sheet!r}" if layout.sheet else f"{len(sheets)} sheets"
            raise InputError(
                f"{path}: {fault}; name one (sheet) of {listed(sheet.title for sheet in sheets)}"
            )
        lines = _sheet_rows(path, chosen[0], layout.skip_rows)
        # The first row with a value holds the column names; columns count from 1.
        filled_rows = ((n, cells) for n, cells in lines if set(cells.values()) - {None})
        top, titles = next(filled_rows, (0, {}))  # the number of that row, and its names by column
        names = [titles.get(i + 1) for i in range(max(titles, default=0))]
        header = _named(["" if name is None else str(name) for name in names])
        _check_header(path, header)
        rows = {}  # the values of each row, by the place of the row below the header
        for number, line in lines:  # the other rows, as those up to the names are used up
            filled = {column for column, value in line.items() if value is not None}
            if max(filled, default=0) > len(header):
                raise InputError(
                    f"{path}: row {number} has more values than there are column names; if other "
                    "lines precede the names, skip them (skip_rows)"
                )
            if filled:
                rows[number - top - 1] = [line.get(i + 1) for i in range(len(header))]
    frame = pd.DataFrame([*rows.values()], columns=header, index=[*rows])
    frame = _with_exact_integers(frame, partial(_cells_of, [*rows.values()], header))
    places = {name: header.index(name) for name in _columns_to_keep(keep, header, path)}
    yield frame, _as_text({n: [row[i] for row in rows.values()] for n, i in places.items()})


def _cells_of(
    rows: Sequence[Sequence[Any]], header: Sequence[str], names: list[str]
) -> Mapping[str, Any]:
    """Return columns of a sheet as arrays of the values of cells."""
    places = {name: header.index(name) for name in names}
    return {n: np.array([row[i] for row in rows], dtype=object) for n, i in places.items()}


def _open_workbook(path: Path) -> Any:
    """Open a workbook with openpyxl, which raises a KeyError where a part is missing."""
    from openpyxl import load_workbook

    try:
        return load_workbook(path, read_only=True, data_only=True)
    except KeyError as error:
        raise InputError(
            f"{path}: the file lacks a part that a workbook needs, such as a sheet; save it again "
            "with Excel, or save the rows as CSV"
        ) from error


def _sheet_rows(path: Path, sheet: Any, skipped: int) -> Iterator[tuple[int, dict[int, Any]]]:
    # Yield the number of each row below the first `skipped`, and the values by column, from 1.
    # Refuse a sheet that is too large (see `_SHEET_LIMITS`) or damaged, or that has merged rows.
    # `iter_rows` of openpyxl makes all rows up to a wrong number, and drops cells out of order.
    from openpyxl.worksheet._reader import WorkSheetParser

    book, previous_number, n_characters, n_hidden = sheet.parent, 0, 0, 0
    with sheet._get_source() as source:
        formats = book._date_formats, book._timedelta_formats  # True below: values, not formulas
        parser = WorkSheetParser(source, sheet._shared_strings, True, book.epoch, *formats)
        for number, cells in parser.parse():
            line = {cell["column"]: cell["value"] for cell in cells}
            lengths = [len(value) for value in line.values() if isinstance(value, str)]
            n_characters += sum(lengths)
            # As the limits: number and last column of the row, its longest text, all characters.
            sizes = number, max(line, default=0), max(lengths, default=0), n_characters
            if any(n > most for n, most in zip(sizes, _SHEET_LIMITS, strict=True)):
                raise InputError(
                    "{}: row {:,} exceeds the limits of a sheet, {:,} rows of {:,} cells of {:,} "
                    "characters, {:,} in all; save as CSV".format(path, number, *_SHEET_LIMITS)
                )
            if number <= previous_number or len(line) < len(cells):  # fewer: a column came twice
                has_moved = number <= previous_number
                fault = f"comes after row {previous_number}" if has_moved else "has a cell twice"
                raise InputError(f"{path}: row {number} {fault}; save the file again with Excel")
            previous_number = number
            if number > skipped:
                is_hidden = parser.row_dimensions.get(str(number), {}).get("hidden") == "1"
                n_hidden += is_hidden and any(value is not None for value in line.values())
                yield number, line
    for cells in parser.merged_cells.mergeCell if parser.merged_cells else ():
        if max(cells.min_row, skipped + 1) < cells.max_row:  # more than one row is not skipped
            raise InputError(
                f"{path}: the cells {cells.coord} are merged, so only the first row has "
                "a value; unmerge them, and fill in the other rows"
            )
    if n_hidden:
        hidden = count(n_hidden, "hidden row")
        warnings.warn(f"{path}: {hidden} will be used; delete unwanted rows", stacklevel=7)


@contextmanager
def _pandas_errors_as_input_errors(path: Path) -> Iterator[None]:
    # Report any error of pandas, and of the readers that pandas calls, as an `InputError`.
    try:
        yield
    except pd.errors.ParserWarning as error:
        raise InputError(
            f"{path}: the rows have more values than there are column names; if other lines "
            "precede the names, skip them (skip_rows)"
        ) from error
    except InputError:
        raise
    except UnicodeDecodeError as error:
        encoding = {"charmap": "Windows-1252"}.get(error.encoding, error.encoding)
        raise InputError(f"{path}: the text is not {encoding}; name the right encoding") from error
    except ImportError as error:
        is_parquet = path.suffix.lower() == ".parquet"  # else a workbook
        package, extra = ("pyarrow", "parquet") if is_parquet else ("openpyxl", "excel")
        raise InputError(f"{path}: {package} is needed; install precbench[{extra}]") from error
    except Exception as error:  # a damaged file has many ways to fail
        reason = " ".join(str(error).split()) or type(error).__name__
        if wide := re.search(r"Expected (\d+) fields in line (\d+), saw (\d+)", reason):
            n_names, line, n_values = wide.groups()  # pandas counts the names as line 1
            reason = f"row {int(line) - 1} has {n_values} values, and {n_names} columns have names"
        # Python raises a plain LookupError for the name of an encoding, and for nothing else.
        advice = "name another (encoding)" if type(error) is LookupError else "correct the file"
        raise InputError(f"{path}: the file cannot be read: {reason}; {advice}") from error


def _named(header: Sequence[str]) -> list[str]:
    """Return the header with a name for each column, as pandas names those without one.

    A file that was saved twice with its index has a column of such a name already.
    """
    taken = set(header)
    names = []
    for i, name in enumerate(header):
        if not name:
            usual = name = f"{_NAMELESS}{i}"
            n_others = 0
            while name in taken:
                n_others += 1
                name = f"{usual}.{n_others}"
            taken.add(name)
        names.append(name)
    return names


def _check_header(path: Path, names: list[str]) -> None:
    # Refuse column names that pandas would repair silently, and more names than memory can hold.
    if len(names) > MOST_COLUMNS:
        raise InputError(
            f"{path}: {len(names):,} columns exceed the limit of {MOST_COLUMNS:,}; save the rows "
            "as svmlight or npz"
        )
    if names and not pd.to_numeric(pd.Series(names), errors="coerce").isna().any():  # all numbers
        raise InputError(
            f"{path}: the first line must hold the column names, found {listed(names)}; add a line "
            "with names"
        )
    _with_text_names(pd.DataFrame(columns=names), path)
