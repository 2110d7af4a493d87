"""Dates of two parts, such as 01.2023 and 02.01, which look like decimal numbers."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

_LAST_YEAR = 2100
_LAST_WEEK = 53  # of a year
_FEWEST_NUMBERS = 6  # different ones, where numbers have lost their zeros
_FEWEST_PLAIN = 10  # different texts, where no part begins with 0
_DECIMALS = 4  # of a month.year


class DottedDate(NamedTuple):
    """A notation of dates of two parts."""

    parts: str  # in words
    date_format: str | None  # None if no format reads all values, or if two do


def dotted_date(
    numbers: NDArray[np.float64],
    texts: Callable[[], pd.Series] | None,
    *,
    is_time: bool = False,
) -> DottedDate | None:
    """Return the notation of dates that all numbers of a column fit, or None.

    `texts` returns the numbers as they are written, gaps aside; without it, zeros at
    the ends are unknown. Dates such as 02.01 are known by a zero in front, 01.2023 and
    2023.01 by the year.
    """
    known = numbers[~np.isnan(numbers)]
    if len(known) < 2:
        return None
    # A day, month, week or year is 1 or more; 2100.12 is still in the last year.
    if known.min() < 1 or known.max() > _LAST_YEAR + 1:
        return None
    if not _may_be_dates(known):
        return None
    if texts is None:
        return _of_numbers(np.unique(known))
    distinct = texts().str.strip().str.replace(",", ".", regex=False).drop_duplicates()
    if len(distinct) < 2:
        return None
    return (
        _month_and_year(distinct)
        or _year_and_month(distinct)
        or _day_and_month(distinct, is_time)
    )


def _may_be_dates(known: NDArray[np.float64]) -> bool:
    """Return whether numbers can have parts of dates, without a look at their texts."""
    whole = np.floor(known)
    decimals = np.round((known - whole) * 10**_DECIMALS)  # 100 for .01
    are_years = (decimals >= 1900) & (decimals <= _LAST_YEAR)
    if (are_years & (whole <= _LAST_WEEK)).all():  # such as 01.2023
        return True
    # .01 to .99, of which the last two of the four digits are 0
    have_two_digits = (decimals % 100 == 0) & (decimals >= 100)
    if not have_two_digits.all():
        return False
    return bool((whole <= 31).all() or (whole >= 1900).all())  # as 02.01 or 2023.01


def _parts(texts: pd.Series, pattern: str) -> tuple[pd.Series, pd.Series] | None:
    """Return both parts as numbers if the pattern, with two groups, fits all texts."""
    parts = texts.str.extract(f"^{pattern}$")
    if parts.isna().to_numpy().any():
        return None
    return parts[0].astype(int), parts[1].astype(int)


def _are_years(numbers: pd.Series) -> bool:
    return bool(numbers.between(1900, _LAST_YEAR).all())


def _are_weeks(numbers: pd.Series) -> bool:
    """Return whether numbers may be weeks of a year, or months."""
    return bool(numbers.between(1, _LAST_WEEK).all())


def _month_and_year(texts: pd.Series) -> DottedDate | None:
    """Recognise 01.2023, a month or a week; no format reads a week."""
    parts = _parts(texts, r"(\d{1,2})\.(\d{4})")
    if parts is None:
        return None
    periods, years = parts
    if not (_are_years(years) and _are_weeks(periods)):
        return None
    if periods.max() <= 12:
        return DottedDate("a month and a year", "%m.%Y")
    return DottedDate("a week and a year", None)


def _year_and_month(texts: pd.Series) -> DottedDate | None:
    """Recognise 2023.01, and 2023.1 beside 2023.10, which are one number."""
    parts = _parts(texts, r"(\d{4})\.(\d{1,2})")
    if parts is None:
        return None
    years, periods = parts
    if not (_are_years(years) and _are_weeks(periods)):
        return None
    lengths = texts.str.len()
    # Numbers such as 2023.1 to 2023.9 alone may be no dates.
    all_have_one_digit = (lengths == len("2023.1")).all()
    if periods.max() <= 12 and not all_have_one_digit:
        return DottedDate("a year and a month", "%Y.%m")
    all_have_two_digits = (lengths == len("2023.01")).all()
    has_zeros = texts.str.match(r"\d{4}\.0").any()
    if all_have_two_digits and has_zeros:
        return DottedDate("a year and a week", None)
    return None


def _day_and_month(texts: pd.Series, is_time: bool) -> DottedDate | None:
    """Recognise 02.01 by a zero in front.

    Of times also 2.01 and 15.11, if there are many.
    """
    parts = _parts(texts, r"(\d{1,2})\.(\d{2})")
    if parts is None:
        return None
    all_have_two_digits = (texts.str.len() == len("02.01")).all()
    are_padded = all_have_two_digits and texts.str.match(r"0\d").any()
    are_many_times = is_time and len(texts) >= _FEWEST_PLAIN
    if not (are_padded or are_many_times):
        return None
    first, second = parts
    can_be_day_first = first.between(1, 31).all() and second.between(1, 12).all()
    can_be_month_first = first.between(1, 12).all() and second.between(1, 31).all()
    if not (can_be_day_first or can_be_month_first):
        return None
    date_format = "%d.%m" if can_be_day_first else "%m.%d"
    moments = pd.to_datetime(texts, format=date_format, errors="coerce")
    all_exist = moments.notna().all()  # not 31.02
    is_clear = can_be_day_first != can_be_month_first and all_exist
    return DottedDate("a day and a month", date_format if is_clear else None)


def _of_numbers(distinct: NDArray[np.float64]) -> DottedDate | None:
    """Recognise months with years that have lost zeros.

    01.2020 has become 1.202, and 2023.10 has become 2023.1.
    """
    if len(distinct) < _FEWEST_NUMBERS:
        return None
    whole = np.floor(distinct)
    decimals = np.round((distinct - whole) * 10**_DECIMALS)
    if not np.allclose(whole + decimals / 10**_DECIMALS, distinct, rtol=0, atol=1e-9):
        return None  # a number has more decimals
    are_years = (decimals >= 1900) & (decimals <= _LAST_YEAR)
    if whole.max() <= _LAST_WEEK and are_years.all():
        return DottedDate("a month and a year", None)
    hundredths = decimals / 100  # 1 for .01, 10 for .1
    are_months = (hundredths >= 1) & (hundredths <= 12) & (hundredths % 1 == 0)
    if whole.min() >= 1900 and are_months.all():
        return DottedDate("a year and a month", None)
    return None
