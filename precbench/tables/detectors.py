"""Detection of what a column holds: numbers and dates in any common notation, or text.

What a function here returns of a column is a copy, or a view that cannot be written:
the memory of a column is the caller's.
"""

import re
from collections.abc import Callable
from datetime import datetime
from functools import partial
from typing import Literal, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from precbench.core.errors import InputError
from precbench.tables.problems import Remedy, TableError

Decimal = Literal[".", ","]
_ISO = r"\d{4}-\d{2}-\d{2}(?!\d)"
_MONTH = "(?i:(jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]*)"
# begins like 31.5.2024, 2024/5/31, 5/31/24, 31.05.24, 31-May-24 or May 31, 2024
OTHER_DATE = (
    r"(\d{1,2}([./-])\d{1,2}\2\d{4}|\d{4}([./])\d{1,2}\3\d{1,2}|"
    r"\d{1,2}/\d{1,2}/\d{2}|\d{2}\.\d{2}\.\d{2}|"
    rf"\d{{1,2}}[- .]{{1,2}}{_MONTH}[- .]\d{{2}}(\d{{2}})?|{_MONTH} \d{{1,2}},?"
    r" \d{4})(?!\d)"
)
_FORMATS = (
    "%m/%d/%Y",
    "%d/%m/%Y",
    "%m-%d-%Y",
    "%d-%m-%Y",
    "%d.%m.%Y",
    "%Y/%m/%d",
    "%Y.%m.%d",
)
_TIMES = ("", " %H:%M", " %H:%M:%S")
GROUPED = re.compile(r"[+-]?[1-9]\d{0,2}(\.\d{3})+")  # such as 1.234
CURRENCY = r"(?:[$€£¥₹]|AUD|CAD|CHF|CNY|CZK|DKK|EUR|GBP|INR|JPY|NOK|PLN|SEK|USD)"
_BLANKS = " \u00a0\u2007\u2009\u202f"
# Earlier versions of pandas take some texts for a neighbour of the nearest double.
PANDAS_IS_EXACT = tuple(map(int, pd.__version__.split(".")[:2])) >= (3, 1)
_NUMBER = re.compile(
    r"\s*[+-]?((\d+\.?\d*|\.\d+)(e[+-]?\d+)?|inf(inity)?)\s*", re.ASCII | re.IGNORECASE
)
EXAMPLE = datetime(2024, 5, 31)  # of a date, in messages
# Programs write the largest number of single or double precision, 3.4e38 or 1.8e308,
# for "no value", often with fewer digits. No quantity is that large.
LARGEST_QUANTITY = 3.4e38


class Content(NamedTuple):
    """What a column holds, and in which notation."""

    holds: Literal["numbers", "dates", "text", "nothing"]
    numbers: NDArray[np.float64]  # NaN for what is missing, a date or text
    # The decimal mark of amounts, or the format of dates that are not in ISO 8601.
    notation: str | None = None
    # notations in which all values can be read differently
    others: tuple[str, ...] = ()


def content_of(
    values: pd.Series,
    where: str,
    *,
    declares_text: bool = False,
    decimal: Decimal | None = None,
    date_format: str | None = None,
    is_time: bool = False,
) -> Content:
    """Detect what a column holds, from all its values, whatever their order.

    With `declares_text`, as for Parquet, digits in a column of type text are text.
    `decimal` is the decimal mark of all numbers in text, `date_format` the format of
    dates that are not in ISO 8601, as for `datetime.strptime`; both are detected by
    default. Digits are dates if all are days in `date_format`, or with `is_time` if
    most fit the format.
    """
    is_present = values.notna().to_numpy()
    is_text = is_declared_text(values)
    no_numbers = np.full(len(values), np.nan)
    # With a decimal comma the text 1.234 is no fraction.
    stays_text = is_text and (declares_text or decimal == ",")
    numbers = no_numbers if stays_text else as_numbers(values)
    # What the column holds, by the first description that fits
    if not is_present.any():
        return Content("nothing", numbers)
    # 1.234 may be 1234, but not as a time, nor where a decimal point is given.
    may_be_grouped = not is_time and decimal != "." and _has_grouped_text(values)
    if _all_numbers(numbers, is_present) and not may_be_grouped:
        known = values[is_present]
        if date_format and _are_dates_in_digits(known, where, date_format, is_time):
            return Content("dates", no_numbers, date_format)
        return Content("numbers", numbers)
    if values.dtype.kind == "m":  # durations
        return Content("text", numbers)
    if is_date(values):
        return Content("dates", numbers)
    texts = texts_of(values[is_present], where)
    if mostly(texts, _ISO):
        return Content("dates", numbers)
    formats = _formats(texts, date_format)
    if formats:
        return Content("dates", numbers, formats[0], tuple(formats[1:]))
    if not (is_text and declares_text):
        amounts = _detect_amounts(values, is_present, decimal)
        if amounts is not None:
            return amounts
    return Content("text", numbers)


def _all_numbers(numbers: NDArray[np.float64], is_present: NDArray[np.bool_]) -> bool:
    return not np.isnan(numbers[is_present]).any()


def _has_grouped_text(values: pd.Series) -> bool:
    """Return whether some text is like 1.234; in a workbook, also beside numbers."""
    if values.dtype.kind != "O":
        return False
    return any(isinstance(value, str) and GROUPED.fullmatch(value) for value in values)


def _are_dates_in_digits(
    values: pd.Series, where: str, date_format: str, is_time: bool
) -> bool:
    """Return whether numbers such as 31052024 are dates in a format."""
    share_of_dates = moments_of(values, where, date_format).notna().mean()
    if is_time and share_of_dates > 0.5:
        return True
    # A format of days, unlike one of years, gives back a whole date; one with other
    # characters than digits, such as %m.%Y, fits no number by chance.
    example = EXAMPLE.strftime(date_format)
    is_of_days = datetime.strptime(example, date_format) == EXAMPLE
    return share_of_dates == 1 and (is_of_days or not example.isdigit())


def _detect_amounts(
    values: pd.Series, is_present: NDArray[np.bool_], decimal: Decimal | None
) -> Content | None:
    """Return a column as amounts, with the decimal marks that fit all its values.

    None if no mark fits.
    """
    marks: tuple[Decimal, ...] = (".", ",") if decimal is None else (decimal,)
    amounts = {}
    for mark in marks:
        numbers = as_numbers(values, mark)
        if _all_numbers(numbers, is_present):
            amounts[mark] = numbers
    if not amounts:
        return None
    first_mark, *other_marks = amounts
    first = amounts[first_mark]
    # Another mark matters only if it makes another number of some text.
    others = []
    for mark in other_marks:
        if not np.array_equal(amounts[mark], first, equal_nan=True):
            others.append(mark)
    return Content("numbers", first, first_mark, tuple(others))


def is_declared_text(values: pd.Series) -> bool:
    """Return whether a column is text or categories, by its type or in all values."""
    is_category = isinstance(values.dtype, pd.CategoricalDtype) and not is_date(values)
    return is_category or pd.api.types.is_string_dtype(values.dropna())


def is_date(values: pd.Series) -> bool:
    """Return whether the type is dates, durations or periods.

    pandas would make numbers of these.
    """
    dtype = values.dtype
    if isinstance(dtype, pd.CategoricalDtype):
        dtype = dtype.categories.dtype
    return dtype.kind in "mM" or isinstance(dtype, pd.PeriodDtype)


def as_numbers(values: pd.Series, decimal: str | None = None) -> NDArray[np.float64]:
    """Return the values as numbers; NaN for what is missing, text or a date.

    With a decimal mark, amounts such as 7,200.00, $ 1,571.00 and 9.75 % are numbers.
    """
    if isinstance(values.dtype, np.dtype) and values.dtype.kind in "biuf":
        return _read_only(values.to_numpy(np.float64))
    if is_date(values):
        return np.full(len(values), np.nan)
    if decimal is not None:
        return _parsed(values, partial(_amount, decimal=decimal))
    is_exact = PANDAS_IS_EXACT or pd.api.types.is_numeric_dtype(values.dtype)
    if not is_exact:
        return _parsed(values, _nearest_number)
    try:
        numbers = pd.to_numeric(values, errors="coerce")
    except OverflowError:  # an integer above all floats; its text reads as infinite
        numbers = pd.to_numeric(values.astype(str), errors="coerce")
    return _read_only(numbers.to_numpy(dtype=np.float64, na_value=np.nan))


def _parsed(values: pd.Series, parse: Callable[[object], float]) -> NDArray[np.float64]:
    """Return a number for each value, NaN for gaps; parse equal values once."""
    codes, distinct = pd.factorize(values.astype(object))
    numbers = [parse(value) for value in distinct]
    numbers.append(np.nan)  # the last place, -1, is the code of a missing value
    return np.array(numbers)[codes]


def _nearest_number(value: object) -> float:
    """Return the double that is nearest to a number or to its text.

    NaN for other text.
    """
    if isinstance(value, int | float):
        return float(value)
    text = str(value)
    return float(text) if _NUMBER.fullmatch(text) else np.nan


def _read_only(array: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return a view that cannot be written; the memory may be the caller's."""
    view = array.view()
    view.flags.writeable = False
    return view


def _amount(value: object, decimal: str) -> float:
    """Return a number, also with separators of thousands, a currency or %.

    NaN for other text.
    """
    if isinstance(value, int | float):  # beside text, in a workbook
        return float(value)
    separator = "," if decimal == "." else "."
    thousands = f"[{separator}'’{_BLANKS}]"
    text = str(value).strip().replace("\u2212", "-")  # with an ASCII minus sign
    # (8.14) and 8.14- are -8.14; 2- stays text, as it may be a mark at school
    signed = re.sub(r"^\((.+)\)$|^(.+[.,]\d+)-$", r"-\1\2", text)
    # Drop a currency before or behind the number, and keep the sign, which may precede
    # it.
    bare = re.sub(rf"^([+-]?)\s*({CURRENCY}\s*)?|\s*{CURRENCY}$", r"\1", signed)
    whole = f"([1-9][0-9]{{0,2}}({thousands}[0-9]{{3}})+|[0-9]+)"  # as in 1,234 or 1234
    fraction = f"([{decimal}][0-9]*)?"
    scientific = f"[0-9]+{fraction}[Ee][+-]?[0-9]{{1,3}}"
    if not re.fullmatch(rf"[+-]?({whole}{fraction}(\s*%)?|{scientific})", bare):
        return np.nan
    ungrouped = re.sub(rf"{thousands}|\s", "", bare)
    # 9.75 % is 0.0975
    return float(ungrouped.replace(",", ".").replace("%", "e-2"))


def texts_of(values: pd.Series, where: str) -> NDArray[np.object_]:
    """Return the values as text, in an array of its own; 7.0 becomes 7.

    A gap turns integers into floats.
    """
    try:
        if values.dtype.kind == "f":
            codes, distinct = pd.factorize(
                values.to_numpy(np.float64), use_na_sentinel=False
            )
            texts = []
            for number in distinct.tolist():
                is_whole = number.is_integer()
                texts.append(str(int(number)) if is_whole else str(number))
            return np.array(texts, dtype=object)[codes]
        # Without a copy, the array may be the memory of the caller's frame.
        return values.astype(str).to_numpy(dtype=object, copy=True)
    except UnicodeDecodeError as error:
        name = str(values.name)
        raise TableError(
            where,
            f"column {name!r} holds bytes, neither numbers nor text; drop it",
            column=name,
            remedy=Remedy("drop", name),
        ) from error


def moments_of(
    values: pd.Series, where: str, date_format: str | None = None
) -> pd.Series:
    """Return dates, by default in ISO 8601, as timestamps in UTC.

    Anything else as NaT.
    """
    if isinstance(values.dtype, pd.PeriodDtype):
        dates = values.dt.to_timestamp()  # when the period begins
    elif values.dtype.kind == "M":
        dates = values
    else:
        dates = pd.Series(texts_of(values, where), dtype=object, index=values.index)
        example = EXAMPLE.strftime(date_format or "")
        # 03112024 may have become 3112024 or, beside gaps, 3112024.0
        if example.isdigit():
            dates = dates.str.removesuffix(".0").str.zfill(len(example))
    moments = pd.to_datetime(
        dates, format=date_format or "ISO8601", errors="coerce", utc=True
    )
    return moments.dt.as_unit("us")  # microseconds, whatever unit pandas chose


def check_date_format(text: str | None) -> None:
    """Refuse a format in which no date can be written and read again.

    None is accepted.
    """
    if text is None:
        return
    try:
        if "%" not in text:
            # caught below
            raise ValueError("the format has no % code for a part of a date")
        datetime.strptime(EXAMPLE.strftime(text), text)
    except ValueError as error:
        raise InputError(
            f"date_format {text!r} is invalid; give one such as %d.%m.%Y"
        ) from error


def _formats(texts: NDArray[np.object_], date_format: str | None) -> list[str]:
    """Return the formats in which all texts are dates: `date_format`, or usual ones."""
    if date_format is not None:
        candidates = [date_format]
    elif re.match(OTHER_DATE, texts[0]):
        candidates = [f"{day}{time}" for day in _FORMATS for time in _TIMES]
    else:
        return []  # the first text does not look like a date
    distinct = pd.Series(texts).drop_duplicates()
    fitting = []
    for candidate in candidates:
        if pd.to_datetime(distinct, format=candidate, errors="coerce").notna().all():
            fitting.append(candidate)
    return fitting


def mostly(texts: NDArray[np.object_], pattern: str) -> bool:
    """Return whether more than half of the distinct texts begin with a pattern."""
    return bool(pd.Series(texts).drop_duplicates().str.match(pattern).mean() > 0.5)
