"""How a table is laid out, and what the readers of all kinds of tables share."""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from precbench.core.errors import InputError
from precbench.tables.detectors import check_date_format
from precbench.tables.problems import listed, named_columns

Block = tuple[pd.DataFrame, pd.DataFrame]  # rows, and columns of these rows as text
MOST_COLUMNS = 100_000  # a column takes some KiB, however short it is
NAMELESS = "Unnamed: "  # pandas' prefix for a column without a name
_LARGEST_EXACT = 2**53  # above this float, not every integer is a float


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
        """Refuse impossible options before a file is read."""
        if self.decimal not in (None, ".", ","):
            raise InputError(f"decimal must be '.' or ',', found {self.decimal!r}")
        if self.separator is not None and len(self.separator) != 1:
            raise InputError(
                f"separator must be one character, found {self.separator!r}"
            )
        if self.date_format is not None:
            check_date_format(self.date_format)


DETECTED = Layout()


def with_exact_integers(
    frame: pd.DataFrame, read: Callable[[list[str]], Mapping[str, Any]]
) -> pd.DataFrame:
    """Return a frame with integers in place of floats too large to be exact.

    A gap turns a column of integers into floats. `read` takes names of columns, and
    returns at least those of integers, by name, as they are in the file.
    """
    rounded = []
    for name, values in frame.items():
        if values.dtype.kind == "f" and (values.abs() >= _LARGEST_EXACT).any():
            rounded.append(str(name))
    if not rounded:
        return frame
    integers = {}
    for name, values in read(rounded).items():
        if pd.api.types.infer_dtype(values, skipna=True) == "integer":
            integers[name] = values
    return frame.assign(**integers)


def empty_error(path: Path, layout: Layout, text: str) -> InputError:
    """Return the error for a file without rows.

    It says `text` or, if lines were skipped, that fewer should be.
    """
    if layout.skip_rows:
        text = f"skip_rows {layout.skip_rows:,} leaves no rows; skip fewer lines"
    return InputError(f"{path}: {text}")


def with_text_names(frame: pd.DataFrame, where: object) -> pd.DataFrame:
    """Return a frame whose columns are named by text, as Parquet names them.

    Refuse equal names.
    """
    names = frame.columns.map(_text_name)
    if not names.is_unique:
        repeated = names[names.duplicated()][0]
        raise InputError(f"{where}: two columns named {repeated!r}; rename one")
    return frame.set_axis(names, axis=1)


def _text_name(name: object) -> str:
    """Return the name of a column as text; names of several levels look like tuples."""
    if isinstance(name, tuple):
        return str(tuple(str(part) for part in name))
    return str(name)


def columns_to_keep(
    keep: Sequence[str], header: Sequence[str], path: Path
) -> list[str]:
    """Return the columns that `keep` names.

    "all" means all columns, unless a column has this name.
    """
    names = named_columns(keep, header, f"{path}: columns to list", ("all",))
    if "all" in names and "all" not in header:
        return list(header)
    return list(dict.fromkeys(names))  # each once


def as_text(columns: Mapping[str, Iterable[Any]]) -> pd.DataFrame:
    """Return columns as text, "" for a missing value."""
    texts = {
        name: [_text_or_empty(value) for value in values]
        for name, values in columns.items()
    }
    return pd.DataFrame(texts, dtype="str")


def _text_or_empty(value: Any) -> str:
    is_nan = value != value
    return "" if value is None or is_nan else str(value)


@contextmanager
def pandas_errors_as_input_errors(path: Path) -> Iterator[None]:
    """Report any error of pandas, and of readers that it calls, as an `InputError`."""
    try:
        yield
    except pd.errors.ParserWarning as error:  # `read_blocks` has it raised
        raise InputError(
            f"{path}: the rows have more values than there are column names; if other"
            " lines precede the names, skip them (skip_rows)"
        ) from error
    except InputError:
        raise
    except UnicodeDecodeError as error:
        # Python calls the decoder of Windows-1252 charmap.
        encoding = {"charmap": "Windows-1252"}.get(error.encoding, error.encoding)
        raise InputError(
            f"{path}: the text is not {encoding}; name the right encoding"
        ) from error
    except ImportError as error:
        if path.suffix.lower() == ".parquet":
            needed = "pyarrow is needed; install precbench[parquet]"
        else:
            needed = "python-calamine is needed; install precbench[excel]"
        raise InputError(f"{path}: {needed}") from error
    except Exception as error:  # a damaged file has many ways to fail
        reason = " ".join(str(error).split()) or type(error).__name__
        wide_row = re.search(r"Expected (\d+) fields in line (\d+), saw (\d+)", reason)
        if wide_row is not None:
            n_names, line, n_values = wide_row.groups()
            row = int(line) - 1  # pandas counts the names as line 1
            reason = (
                f"row {row} has {n_values} values, and {n_names} columns have names"
            )
        advice = "correct the file"
        # A plain LookupError is for an unknown encoding, and for nothing else.
        if type(error) is LookupError:
            advice = "name another (encoding)"
        raise InputError(
            f"{path}: the file cannot be read: {reason}; {advice}"
        ) from error


def named(header: Sequence[str]) -> list[str]:
    """Return the header with a name for each column, as pandas names those without one.

    A file that was saved twice with its index has a column of such a name already.
    """
    taken = set(header)
    names = []
    for i, name in enumerate(header):
        if not name:
            usual = f"{NAMELESS}{i}"
            name = usual
            n_others = 0
            while name in taken:
                n_others += 1
                name = f"{usual}.{n_others}"
            taken.add(name)
        names.append(name)
    return names


def check_header(path: Path, names: list[str]) -> None:
    """Refuse too many column names, numbers in their place, and equal names."""
    if len(names) > MOST_COLUMNS:
        raise InputError(
            f"{path}: {len(names):,} columns exceed the limit of {MOST_COLUMNS:,}; save"
            " the rows as svmlight or npz"
        )
    are_numbers = pd.to_numeric(pd.Series(names), errors="coerce").notna().all()
    if names and are_numbers:
        raise InputError(
            f"{path}: the first line must hold the column names, found {listed(names)};"
            " add a line with names"
        )
    with_text_names(pd.DataFrame(columns=names), path)  # raises for equal names
