"""Reader of CSV and TSV."""

import codecs
import csv
import io
import re
import threading
import warnings
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from functools import partial
from itertools import chain, islice
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from precbench.core.errors import InputError
from precbench.data.formats import opened
from precbench.tables.detectors import PANDAS_IS_EXACT, is_declared_text
from precbench.tables.layout import (
    Block,
    Layout,
    check_header,
    columns_to_keep,
    empty_error,
    named,
)

SEPARATORS = {"csv": ",", "tsv": "\t"}
# What pandas takes for missing
_MISSING_TEXTS = (
    "",
    "#N/A",
    "#N/A N/A",
    "#NA",
    "-1.#IND",
    "-1.#QNAN",
    "-NaN",
    "-nan",
    "1.#IND",
    "1.#QNAN",
    "<NA>",
    "N/A",
    "NA",
    "NULL",
    "NaN",
    "None",
    "n/a",
    "nan",
    "null",
)
# How a text begins in encodings of two or four bytes a character: with a byte order
# mark, or with NULs beside its first characters
_WIDE = {
    rb"\xff\xfe\0\0|\0\0\xfe\xff": "utf-32",
    rb"\xff\xfe|\xfe\xff": "utf-16",
    rb"[^\0]\0\0\0": "utf-32-le",
    rb"\0\0\0[^\0]": "utf-32-be",
    rb"[^\0]\0[^\0]\0": "utf-16-le",
    rb"\0[^\0]\0[^\0]": "utf-16-be",
}
_CHUNK_BYTES = 2**20
_SAMPLE_LINES = 50  # lines from which the separator is detected
# Characters of a value that the module csv reads; where a separator is tried that a
# line lacks, the line is one value
_LONGEST_VALUE = 2**28
_MANY_LINES = 5  # in one value, as an unclosed quotation mark makes


class TextScan(NamedTuple):
    """What a first look through the bytes of a file shows."""

    encoding: str
    may_have_blank_rows: bool  # rows without a value
    unended_line: bytes  # the last line, if it has no line end, else b""


class Dialect(NamedTuple):
    """How the rows of a CSV or TSV file are read."""

    header: list[str]  # the column names
    separator: str
    # opens the text from the line of the column names on
    open_text: Callable[[], AbstractContextManager[io.TextIOWrapper]]
    # of the rows with a value, from 0, blank rows counted; None if no row is blank
    places: NDArray[np.intp] | None
    pandas_options: dict[str, Any]  # for `pandas.read_csv`


def read_csv(
    path: Path,
    kind: str,
    layout: Layout,
    texts: Collection[str] | None,
    words: Collection[str],
    rows_at_once: int | None,
    keep: Sequence[str],
) -> Iterator[Block]:
    """Yield blocks as `read_blocks` does.

    A second reader gives the columns `keep` as text.
    """
    scan = scan_text(path, layout)
    if scan.encoding == "cp1252" and layout.encoding is None:
        warnings.warn(
            f"{path}: the text is not UTF-8 and is read as Windows-1252; name another"
            " encoding if that is wrong",
            stacklevel=5,
        )
    dialect = detect_dialect(path, kind, layout, scan)
    header = dialect.header
    _refuse_truncated(path, scan.unended_line, dialect)
    missing_texts = {name: [""] if name in words else _MISSING_TEXTS for name in header}
    text_types = {name: "str" for name in header if texts is None or name in texts}
    options = {
        "dtype": text_types,
        "na_values": missing_texts,
        "keep_default_na": False,
    }
    raw_columns = columns_to_keep(keep, header, path)
    raw_options = {"usecols": raw_columns, "dtype": "str", "na_filter": False}
    with ExitStack() as stack:
        blocks = stack.enter_context(_opened_blocks(dialect, rows_at_once, options))
        if raw_columns:
            raw_blocks = stack.enter_context(
                _opened_blocks(dialect, rows_at_once, raw_options)
            )
        for frame in blocks:
            raw = pd.DataFrame(index=frame.index)
            if raw_columns:
                # in the order of `keep`, not in that of the file
                raw = next(raw_blocks)[raw_columns]
            if dialect.places is not None:
                # pandas has numbered the rows without the blank ones
                frame.index = dialect.places[frame.index]
            for name, values in frame.items():
                # Beside integers of more than 64 bits pandas keeps gaps as texts.
                if name not in text_types and is_declared_text(values):
                    frame[name] = values.mask(values.isin(missing_texts[str(name)]))
            _warn_of_quotes(path, frame, dialect.separator)
            yield frame, raw


@contextmanager
def _opened_blocks(
    dialect: Dialect, rows_at_once: int | None, options: dict[str, Any]
) -> Iterator[Iterator[pd.DataFrame]]:
    """Open the rows of a file in blocks, or in one block if `rows_at_once` is None."""
    with (
        dialect.open_text() as text,
        pd.read_csv(
            text,
            chunksize=rows_at_once,
            iterator=True,
            **dialect.pandas_options,
            **options,
        ) as blocks,
    ):
        yield blocks


def _refuse_truncated(path: Path, unended_line: bytes, dialect: Dialect) -> None:
    """Refuse a last line that has neither a line end nor all columns.

    `unended_line` is b"" if the line has an end.
    """
    may_end_a_cell = b'"' in unended_line  # one that begins in a line above
    if unended_line == b"" or may_end_a_cell:
        return
    n_cells = unended_line.count(dialect.separator.encode()) + 1
    n_columns = len(dialect.header)
    if n_cells < n_columns:
        raise InputError(
            f"{path}: the last line has {n_cells} of {n_columns} columns and no line"
            " end: the file is truncated; get the file again, or remove this line"
        )


def detect_dialect(path: Path, kind: str, layout: Layout, scan: TextScan) -> Dialect:
    """Find the separator, the column names and the blank rows of a file."""
    head = _read_head(path, kind, layout, scan.encoding)
    if not head.names:
        raise empty_error(
            path, layout, "the file is empty; give one with names and rows"
        )
    header = named(head.names)
    check_header(path, header)
    options: dict[str, Any] = {
        "sep": head.separator,
        "header": 0,
        "names": header,
        "index_col": False,
        "low_memory": False,
    }
    if not PANDAS_IS_EXACT:
        options["float_precision"] = "round_trip"
    open_text = partial(_text_below, path, scan.encoding, head.n_above)
    places = None
    if scan.may_have_blank_rows:
        rows = _number_rows(open_text, head.separator)
        below_names = rows.with_value[1:]
        places = np.array(below_names, dtype=np.intp) - 1  # the first row below is 0
        options["skiprows"] = rows.without_value
    return Dialect(
        header=header,
        separator=head.separator,
        open_text=open_text,
        places=places,
        pandas_options=options,
    )


class _Head(NamedTuple):
    """How a file begins."""

    separator: str
    names: list[str]  # of the columns; empty if there is no row
    n_above: int  # lines above the names


def _read_head(path: Path, kind: str, layout: Layout, encoding: str) -> _Head:
    """Find the separator, and the first row with a value, which holds the names."""
    n_above = layout.skip_rows
    with _long_values(), _text_below(path, encoding, n_above) as text:
        lines = list(islice(text, _SAMPLE_LINES))
        hint = _separator_for_excel(lines)
        if hint is not None:  # the first line is no row
            n_above += 1
            lines = lines[1:]
        separator = layout.separator or hint or _separator(lines, SEPARATORS[kind])
        _refuse_several_blanks(path, lines, separator)
        n_blank = 0  # lines of the rows without a value that come first
        names: list[str] = []
        rows = csv.reader(chain(lines, text), delimiter=separator)
        for row in rows:
            names = row
            if _has_value(row):
                break
            n_blank = rows.line_num  # lines read so far; a row may have several
    return _Head(separator, names, n_above + n_blank)


class _RowNumbers(NamedTuple):
    """Numbers of rows from 0, which is the row of the column names."""

    with_value: list[int]
    without_value: list[int]  # empty lines aside, which pandas skips by itself


def _number_rows(
    open_text: Callable[[], AbstractContextManager[io.TextIOWrapper]], separator: str
) -> _RowNumbers:
    """Return where rows with a value are, and rows of separators and blanks alone."""
    numbers = _RowNumbers([], [])
    with _long_values(), open_text() as text:
        for number, row in enumerate(csv.reader(text, delimiter=separator)):
            if _has_value(row):
                numbers.with_value.append(number)
            elif row:
                numbers.without_value.append(number)
    return numbers


def _separator_for_excel(lines: Sequence[str]) -> str | None:
    """Return the separator that a first line such as sep=; names, or None."""
    if not lines:
        return None
    match = re.fullmatch(r'"?sep=(.)"?\s*', lines[0])
    return None if match is None else match[1]


def _has_value(row: Sequence[str]) -> bool:
    return bool("".join(row).strip())


def _refuse_several_blanks(path: Path, lines: Sequence[str], separator: str) -> None:
    """Refuse columns that are set apart by any number of blanks.

    A reader of CSV would see an empty value between two blanks.
    """
    if separator != " ":
        return
    filled = [line for line in lines if line.strip()]
    lengths = {len(row) for row in csv.reader(filled, delimiter=separator)}
    # or one blank in front, as of numbers that are aligned to the right
    has_several = any("  " in line.strip() or line.startswith(" ") for line in filled)
    if has_several and len(lengths) > 1:
        raise InputError(
            f"{path}: there are several blanks between values; save the file with one"
            " separator, such as a comma"
        )


class _ValueLimit:
    """The limit of the module csv, shared by the whole process."""

    lock = threading.Lock()
    usual = 0  # before the first of the present readers raised it
    n_readers = 0  # that need the raised limit at present


@contextmanager
def _long_values() -> Iterator[None]:
    """Let the module csv read long values.

    The last of several threads restores its limit.
    """
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
    r"""Open the text of a file below its first lines.

    pandas would count these lines in another way, and skips no row behind \r; here all
    line ends become \n.
    """
    with opened(path) as stream, io.TextIOWrapper(stream, encoding) as text:
        next(islice(text, n_lines, n_lines), None)  # reads these lines, and no other
        yield text


def scan_text(path: Path, layout: Layout) -> TextScan:
    """Look through a file for its encoding, blank rows and a last line without an end.

    An encoding that is not given is UTF-8, one of `_WIDE`, or else Windows-1252.
    """
    decoder = codecs.getincrementaldecoder("utf-8")()
    is_utf8 = True
    lines = _LineScan(layout.separator or "")
    with opened(path) as stream:
        chunk = stream.read(_CHUNK_BYTES)
        wide = _wide_encoding(chunk)
        if wide is not None:  # its rows are not looked at
            return TextScan(
                layout.encoding or wide, may_have_blank_rows=True, unended_line=b""
            )
        while chunk:
            # Earlier versions of pandas read 1\0.5 as 1.
            if b"\0" in chunk and not PANDAS_IS_EXACT:
                raise InputError(
                    f"{path}: the file holds a NUL character; get the file again"
                )
            if is_utf8:
                try:
                    decoder.decode(chunk)
                except UnicodeDecodeError:
                    is_utf8 = False
            lines.feed(chunk)
            chunk = stream.read(_CHUNK_BYTES)
    return TextScan(
        encoding=layout.encoding or ("utf-8-sig" if is_utf8 else "cp1252"),
        may_have_blank_rows=lines.may_have_blank_rows,
        unended_line=lines.unended_line,
    )


class _LineScan:
    """Looks chunk by chunk for rows without a value, and for the last line."""

    def __init__(self, separator: str) -> None:
        # what a row without a value may hold
        self._no_values = f' \t,;|"{separator}'.encode()
        self._has_blank_row = False
        self._last_line = b""  # as far as it is read
        # line ends, blanks and tabs at the end of what is read
        self._blank_end = b""

    def feed(self, chunk: bytes) -> None:
        """Look through the next chunk of the file."""
        # Line ends are held back until text follows, as blank lines at the end do not
        # count.
        text = self._blank_end + chunk
        filled = text.rstrip(b"\r\n \t")
        self._blank_end = text[len(filled) :]
        lines = filled.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
        if b"\n" in lines:
            self._last_line = lines[lines.rfind(b"\n") + 1 :]
        else:  # the line has begun in an earlier chunk
            self._last_line += lines
        # A last line without a value so far counts as blank, although it may go on.
        values = lines.translate(None, self._no_values) + b"\n"
        if b"\n\n" in values:  # nothing between two line ends
            self._has_blank_row = True

    @property
    def may_have_blank_rows(self) -> bool:
        """Whether some row may have no value; tabs at the end may be such a row."""
        return self._has_blank_row or b"\t" in self._blank_end

    @property
    def unended_line(self) -> bytes:
        """The last line, if it has no line end, else b""."""
        is_ended = b"\n" in self._blank_end or b"\r" in self._blank_end
        return b"" if is_ended else self._last_line + self._blank_end


def _wide_encoding(head: bytes) -> str | None:
    """Return an encoding of two or four bytes a character, by the first bytes."""
    for pattern, encoding in _WIDE.items():
        if re.match(pattern, head):
            return encoding
    return None


class _Split(NamedTuple):
    """How a separator splits lines; the greater, the more likely it is right."""

    share: float  # of the lines with as many columns as the first line
    n_columns: int  # of the first line


def _separator(lines: list[str], usual: str) -> str:
    """Return the separator that splits most lines into as many columns as the first.

    `usual` is returned if none splits more than half of the lines so.
    """
    splits = {}  # by separator
    for separator in "\t;|,":
        rows = csv.reader(lines, delimiter=separator)
        lengths = [len(row) for row in rows if _has_value(row)]
        if not lengths or lengths[0] == 1:
            continue
        n_columns = lengths[0]
        share = lengths.count(n_columns) / len(lengths)
        if share > 0.5:
            splits[separator] = _Split(share, n_columns)
    # Of equal splits the first separator: the comma comes last, as names and numbers
    # have commas.
    return max(splits, key=splits.__getitem__, default=usual)


def _warn_of_quotes(path: Path, frame: pd.DataFrame, separator: str) -> None:
    """Warn where a value seems to hold other rows.

    A quotation mark without an end makes such values.
    """
    # In prose a blank or a line end follows the separator.
    separator_in_row = re.escape(separator) + r"\S"
    n_separators = frame.shape[1] - 1  # of a row
    for name, values in frame.items():
        if not is_declared_text(values):
            continue
        of_many_lines = values[values.str.contains("\n", regex=False, na=False)]
        n_breaks = of_many_lines.str.count("\n")
        n_found = of_many_lines.str.count(separator_in_row)
        # The rest of one row, whole rows and the beginning of another have together
        # the separators of a row for each line break.
        holds_rows = n_found == n_breaks * n_separators
        is_odd = (n_breaks >= _MANY_LINES) | holds_rows
        if is_odd.any():
            first = int(is_odd.argmax())
            warnings.warn(
                f"{path}: row {of_many_lines.index[first] + 1}, column {name!r} holds"
                f" {n_breaks.iloc[first] + 1} lines; check the value for an unclosed"
                " quotation mark",
                stacklevel=6,
            )
