"""Reader of CSV and TSV."""

import codecs
import csv
import io
import re
import threading
import warnings
from collections.abc import Collection, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from itertools import chain, islice
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

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
_MISSING_TEXTS = (  # what pandas takes for missing
    *(
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
    ),
    *("<NA>", "N/A", "NA", "NULL", "NaN", "None", "n/a", "nan", "null"),
)
# encodings of two or four bytes a character, by a byte order mark or by their NULs
_WIDE = {
    r"\xff\xfe\0\0|\0\0\xfe\xff": "utf-32",
    r"\xff\xfe|\xfe\xff": "utf-16",
    r"[^\0]\0\0\0": "utf-32-le",
    r"\0\0\0[^\0]": "utf-32-be",
    r"[^\0]\0[^\0]\0": "utf-16-le",
    r"\0[^\0]\0[^\0]": "utf-16-be",
}
_SAMPLE_LINES = 50  # lines from which the separator is detected
# Characters of a value that the module csv reads; where a separator is tried that a
# line lacks, the line is one value
_LONGEST_VALUE = 2**28
_MANY_LINES = 5  # in one value, as an unclosed quotation mark makes


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
    # unended: a last line without an end
    encoding, has_blank_rows, unended = scan(path, layout)
    if encoding == "cp1252" and layout.encoding is None:
        warnings.warn(
            f"{path}: the text is not UTF-8 and is read as Windows-1252; name another"
            " encoding if that is wrong",
            stacklevel=5,
        )
    header, opened_text, places, options = dialect(
        path, kind, layout, encoding, has_blank_rows
    )
    n_cells = unended.count(options["sep"].encode()) + 1
    # A line with a quotation mark is not judged: the line may be the rest of a cell of
    # many lines.
    if unended and b'"' not in unended and n_cells < len(header):
        raise InputError(
            f"{path}: the last line has {n_cells} of {len(header)} columns and no line"
            " end: the file is truncated; get the file again, or remove this line"
        )
    options |= {"chunksize": rows_at_once, "iterator": True}  # one block if None
    missing = {name: [""] if name in words else _MISSING_TEXTS for name in header}
    keep = columns_to_keep(keep, header, path)
    text_options = {**options, "usecols": keep, "dtype": "str", "na_filter": False}
    dtypes = {name: "str" for name in header if texts is None or name in texts}
    options |= {"dtype": dtypes, "na_values": missing, "keep_default_na": False}
    with opened_text() as text, opened_text() as kept_text, ExitStack() as stack:
        if keep:
            text_blocks = stack.enter_context(pd.read_csv(kept_text, **text_options))
        for frame in stack.enter_context(pd.read_csv(text, **options)):
            kept_texts = (
                next(text_blocks)[keep] if keep else pd.DataFrame(index=frame.index)
            )
            if places is not None:  # pandas has counted without the blank rows
                frame.index = places[frame.index]
            for name, values in frame.items():
                # Beside integers of more than 64 bits pandas keeps gaps as texts.
                if name not in dtypes and is_declared_text(values):
                    frame[name] = values.mask(values.isin(missing[name]))
            _warn_of_quotes(path, frame, options["sep"])
            yield frame, kept_texts


def dialect(
    path: Path, kind: str, layout: Layout, encoding: str, has_blank_rows: bool
) -> tuple[Any, ...]:
    # Return the column names, a function that opens the text from the names on, the
    # places of the rows with a value (from 0, blank rows counted; None: all rows), and
    # the options of pandas.
    skipped = layout.skip_rows
    with _long_values(), _text_below(path, encoding, skipped) as text:
        lines = [*islice(text, _SAMPLE_LINES)]
        hint = re.fullmatch(r'"?sep=(.)"?\s*', lines[0]) if lines else None
        if hint:  # a first line by which Excel knows the separator
            skipped += 1
            lines = lines[1:]
        separator = (
            layout.separator
            or (hint and hint[1])
            or _separator(lines, SEPARATORS[kind])
        )
        _refuse_several_blanks(path, lines, separator)
        rows = csv.reader(chain(lines, text), delimiter=separator)
        n_blank, header = 0, []  # the blank lines above the column names, and the names
        for header in rows:  # up to the first row with text, which stays in `header`
            if "".join(header).strip():
                break
            n_blank = rows.line_num
    if not header:
        raise empty_error(
            path, layout, "the file is empty; give one with names and rows"
        )
    header = named(header)
    check_header(path, header)
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
    """Refuse columns that are set apart by any number of blanks.

    Two of them hold no value.
    """
    filled = [line for line in lines if line.strip()]
    n_values = {len(row) for row in csv.reader(filled, delimiter=separator)}
    has_several = any("  " in line.strip() or line.startswith(" ") for line in filled)
    if separator == " " and has_several and len(n_values) > 1:
        raise InputError(
            f"{path}: there are several blanks between values; save the file with one"
            " separator, such as a comma"
        )


class _ValueLimit:
    """The limit of the module csv, shared by the whole process, and who has raised it."""

    lock = threading.Lock()
    usual = 0  # before the first of the present readers
    n_readers = 0


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
    # Open the text of a file below its first lines, which pandas would count in another
    # way. All line ends become \n, as pandas skips no row behind \r.
    with opened(path) as stream, io.TextIOWrapper(stream, encoding) as text:
        next(islice(text, n_lines, n_lines), None)  # reads these lines, and no other
        yield text


def scan(path: Path, layout: Layout) -> tuple[str, bool, bytes]:
    # Return the encoding (if not given UTF-8, one of `_WIDE`, or else Windows-1252),
    # whether there may be rows without a value, and the last line if this line has no
    # end, else b"".
    decoder: Any = codecs.getincrementaldecoder("utf-8")()
    encoding, has_blank, held_back, last_line = (
        layout.encoding or "utf-8-sig",
        False,
        b"",
        b"",
    )
    # what a row without a value may hold
    no_values = f' \t,;|"{layout.separator or ""}'.encode()
    with opened(path) as stream:
        while chunk := stream.read(2**20):
            head = chunk[:4].decode("latin-1") if stream.tell() == len(chunk) else ""
            if wide := [name for first, name in _WIDE.items() if re.match(first, head)]:
                # the rows are not looked at
                return layout.encoding or wide[0], True, b""
            # earlier versions read 1\0.5 as 1
            if b"\0" in chunk and not PANDAS_IS_EXACT:
                raise InputError(
                    f"{path}: the file holds a NUL character; get the file again"
                )
            # Line ends are held back until text follows, as blank lines at the end do
            # not count.
            filled = (held_back + chunk).rstrip(b"\r\n \t")
            held_back = (held_back + chunk)[len(filled) :]
            lines = filled.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
            # The line at the end of the chunk, which may have begun in an earlier one.
            last_line = (
                lines[lines.rfind(b"\n") + 1 :] if b"\n" in lines else last_line + lines
            )
            values = lines.translate(None, no_values) + b"\n"
            has_blank = has_blank or b"\n\n" in values  # nothing between two line ends
            try:
                decoder.decode(chunk)
            except UnicodeDecodeError:
                encoding = layout.encoding or "cp1252"
                # never fails
                decoder = codecs.getincrementaldecoder("cp1252")("replace")
    has_blank = has_blank or b"\t" in held_back  # tabs may be a row of empty cells
    return (
        encoding,
        has_blank,
        b"" if held_back.strip(b" \t") else last_line + held_back,
    )


def _separator(lines: list[str], usual: str) -> str:
    # Return the separator that splits most lines into as many columns (> 1) as the
    # first line.
    shares = dict.fromkeys("\t;|,", (0.0, 0))  # of lines split so; columns
    for separator in shares:
        rows = csv.reader(lines, delimiter=separator)
        # of rows that are not blank
        lengths = [len(row) for row in rows if "".join(row).strip()]
        if lengths and lengths[0] > 1:
            shares[separator] = lengths.count(lengths[0]) / len(lengths), lengths[0]
    # Of equal shares that with most columns, and the comma last: names and numbers have
    # commas.
    likely = max(shares, key=shares.__getitem__)
    return likely if shares[likely][0] > 0.5 else usual


def _warn_of_quotes(path: Path, frame: pd.DataFrame, separator: str) -> None:
    # Warn where a value seems to hold other rows, as behind a quotation mark without an
    # end. in prose a blank or a line end follows the separator
    cells = re.escape(separator) + r"\S"
    for name, values in frame.items():
        if not is_declared_text(values):
            continue
        values = values[values.str.contains("\n", regex=False, na=False)]
        n_breaks = values.str.count("\n")
        # whole rows
        holds_rows = values.str.count(cells) == n_breaks * (frame.shape[1] - 1)
        if (is_odd := (n_breaks >= _MANY_LINES) | holds_rows).any():
            i = int(is_odd.argmax())  # the first odd value
            warnings.warn(
                f"{path}: row {values.index[i] + 1}, column {name!r} holds"
                f" {n_breaks.iloc[i] + 1} lines; check the value for an unclosed"
                " quotation mark",
                stacklevel=6,
            )
