"""Encoding of table columns as features.

Numbers, days, and one feature for each category.
"""

from __future__ import annotations

import json
import re
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace
from datetime import date
from typing import TYPE_CHECKING, Any, Literal, Self

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from precbench.core.errors import InputError
from precbench.core.kinds import Format
from precbench.core.text import count
from precbench.data.dataset import Imputed, ImputedColumn, fill_value
from precbench.tables.detectors import (
    CURRENCY,
    EXAMPLE,
    LARGEST_QUANTITY,
    OTHER_DATE,
    as_numbers,
    check_date_format,
    content_of,
    is_date,
    moments_of,
    mostly,
    texts_of,
)
from precbench.tables.problems import (
    OPTION_WORDS,
    Problems,
    Remedy,
    TableError,
    column_of,
    listed,
    named_columns,
)
from precbench.tables.reading import Categorical, Missing
from precbench.tables.roles import dotted_error, misfit, refuse, refuse_two_readings

if TYPE_CHECKING:
    from precbench.tables.own_table import OwnTable

MOST_CATEGORIES = 1000
# the limit if more than half of the values are distinct, as of identifiers
_FEW_CATEGORIES = 100
_MICROSECONDS_OF_DAY = 86_400e6
_Option = Literal["categorical", "numeric"]  # by which a column may be named
_MIXED_SHARE = 0.1  # above this share of text, a column of numbers may be categorical


@dataclass(frozen=True)
class Column:
    """How a column of a table becomes features."""

    name: str
    # None for numbers and dates; else each has a feature. A value of new rows that is
    # none of them gives zeros.
    categories: tuple[str, ...] | None = None
    fill: float | str | None = None  # replaces a missing value; None refuses it
    # the first date in training, from which days are counted; None without dates
    origin: str | None = None
    notation: str | None = None  # see `Content`
    words: bool = False  # whether NA, None and the like are values, not gaps
    unit: str = ""  # % or a currency, if amounts of the training rows have a unit
    indicator: bool = False  # whether a last feature is 1 where the value is missing
    # `_have_thousands` of the training rows; None if that is not known
    has_thousands: bool | None = None

    @property
    def features(self) -> list[str]:
        """Names: ``column`` or each ``column=category``.

        With indicator ``column is missing``.
        """
        if self.categories is None:
            names = [self.name]
        else:
            names = [f"{self.name}={text}" for text in self.categories]
        if self.indicator:
            names.append(f"{self.name} is missing")
        return names

    def value_of(self, features: NDArray[np.float64]) -> str:
        """Return in words the value that `Encoding.encode` turned into features.

        ``(unknown)`` is a category that the training rows did not have.
        """
        if self.indicator and features[-1]:  # the last feature is the indicator
            return "(missing)"
        if self.categories is not None:
            if not features.any():
                return "(unknown)"
            return self.categories[int(features.argmax())]
        number = float(features[0])  # or days since the origin
        if self.origin is not None:
            n_minutes = round(number * 24 * 60)
            moment = np.datetime64(self.origin, "m") + n_minutes
            return str(moment).removesuffix("T00:00")
        n_digits_before_point = len(f"{abs(number):.0f}")
        # all digits before the point, and 4 at least; a float has 15 exactly
        n_shown = min(15, max(4, n_digits_before_point))
        return f"{number:.{n_shown}g}"


@dataclass
class Gaps:
    """Missing values and unseen categories of new rows, counted block by block."""

    # whether a missing value is an error, although the encoding could fill it
    refuse: bool = False
    n_rows: int = 0  # of all blocks
    # number of values filled in, by column
    filled: Counter[str] = field(default_factory=Counter)
    # unseen categories by column, at most one more than MOST_CATEGORIES
    unseen: defaultdict[str, set[str]] = field(default_factory=lambda: defaultdict(set))
    # number of rows with an unseen category, by column
    uncategorised: Counter[str] = field(default_factory=Counter)
    # which values of the last block are missing, by column, if any are
    missing: dict[str, NDArray[np.bool_]] = field(default_factory=dict)
    # places of the rows of each block in the file, from 0
    places: list[Any] = field(default_factory=list)

    def places_of(self, rows: Any) -> NDArray[np.intp]:
        """Return the numbers of encoded rows in the file, blank rows counted.

        `rows` are their numbers without blank rows; all count from 1.
        """
        rows = np.asarray(rows)
        if not self.places:
            return rows
        return np.concatenate(self.places)[rows - 1] + 1

    def add_unseen(self, column: str, texts: NDArray[np.object_]) -> None:
        """Count the rows of a block whose texts are no categories of a column."""
        self.uncategorised[column] += len(texts)
        unseen = self.unseen[column]
        new = sorted(set(texts) - unseen)
        # One above MOST_CATEGORIES is enough to say "more than".
        unseen.update(new[: MOST_CATEGORIES + 1 - len(unseen)])

    def sentences(self) -> list[str]:
        """Return warnings: columns without a known value, then counts of others."""
        sentences = []
        empty = [name for name, n in self.filled.items() if n == self.n_rows]
        if empty:
            sentences.append(
                f"no row has a value of {listed(empty)}; the fill value of training is"
                " used"
            )
        unknown = [name for name, n in self.uncategorised.items() if n == self.n_rows]
        if unknown:
            sentences.append(
                f"no value of {listed(unknown)} was seen in training; all count as"
                " unknown"
            )
        counts = []
        for name, texts in self.unseen.items():
            if name not in unknown:
                examples = listed(sorted(texts), 3)
                counts.append(f"{_count_unseen(len(texts))} in {name} ({examples})")
        for name, n_filled in self.filled.items():
            if name not in empty:
                counts.append(f"{count(n_filled, 'value')} filled in {name}")
        if counts:
            sentences.append(listed(counts))
        return sentences


def _count_unseen(n_texts: int) -> str:
    """Return in words how many texts of a column are in `Gaps.unseen`."""
    if n_texts > MOST_CATEGORIES:
        return f"more than {MOST_CATEGORIES:,} unseen categories"
    return "1 unseen category" if n_texts == 1 else f"{n_texts:,} unseen categories"


@dataclass(frozen=True)
class Encoding:
    """How rows of a file become rows of X, for training rows and new ones."""

    format: Format
    n_features: int
    dense: bool
    columns: tuple[Column, ...] = ()  # empty for svmlight and npz

    @classmethod
    def learn(
        cls,
        table: OwnTable,
        names: Sequence[str] | None = None,
        categorical: Categorical = "error",
        missing: Missing = "error",
        numeric: Sequence[str] = (),
    ) -> Self:
        """Learn the encoding of the training rows, by default of all columns.

        For the options see `precbench.tables.own_file.read_own_file`.

        With ``missing="error"`` missing values are refused here; those of new rows
        become the median, or the most frequent category. All problems are raised
        together, as one `TableError`.
        """
        names = list(table.frame.columns) if names is None else names
        columns = _learn_columns(table, names, categorical, missing, numeric)
        n_features = sum(len(column.features) for column in columns)
        # `encode` makes dense features
        return cls(table.format, n_features, dense=True, columns=columns)

    def with_notation(self, decimal: str | None, date_format: str | None) -> Self:
        """Return the encoding for rows with another notation of numbers or dates."""
        columns = []
        for column in self.columns:
            # Categories may get a notation, too, of which they make no use.
            notation = date_format if column.origin else decimal
            if notation:
                column = replace(column, notation=notation)
            if decimal:
                # With a given mark, 1.234 can be read in one way only.
                column = replace(column, has_thousands=None)
            columns.append(column)
        return replace(self, columns=tuple(columns))

    def encode(
        self, table: pd.DataFrame, name: str = "the table", gaps: Gaps | None = None
    ) -> NDArray[np.float64]:
        """Return the features of a block of rows; `name` is the table's, for errors.

        Its gaps and unseen texts are counted in `gaps`. A gap becomes the column's fill
        value, a number or a category; an unseen text becomes zeros.
        """
        gaps = Gaps() if gaps is None else gaps
        gaps.missing = {}  # of this block alone
        X = np.zeros((len(table), self.n_features))
        for column, span in self.spans():
            values = column_of(table, column.name, name)
            is_missing = values.isna().to_numpy()
            n_missing = int(np.count_nonzero(is_missing))
            if n_missing:
                # the caller, or the model, allows no gap
                if gaps.refuse or column.fill is None:
                    _refuse_gap(values, name)
                gaps.filled[column.name] += n_missing
                gaps.missing[column.name] = is_missing
            if column.indicator:
                X[:, span.stop - 1] = is_missing  # the last feature of the column
            if column.categories is None:
                numbers = _numbers(values, column, name)
                _refuse_new_thousands(values, numbers, column, name)
                X[:, span.start] = numbers
                if n_missing:
                    X[is_missing, span.start] = column.fill
            else:
                texts = texts_of(values, name)
                texts[is_missing] = column.fill
                places = _places(texts, column.categories)
                is_known = places >= 0
                X[is_known, span.start + places[is_known]] = 1.0
                if not is_known.all():
                    gaps.add_unseen(column.name, texts[~is_known])
        gaps.n_rows += len(table)
        return X

    def imputed(self, table: pd.DataFrame, how: Missing) -> Imputed | None:
        """Return which values of the training rows `encode` fills in.

        None if none is missing.
        """
        columns = []
        for column, features in self.spans():
            missing = np.flatnonzero(table[column.name].isna())
            if len(missing):
                stop = features.stop
                if column.indicator:
                    stop -= 1  # the last feature, which has no gaps
                columns.append(ImputedColumn(features.start, stop, rows=missing))
        return Imputed(how, tuple(columns)) if columns else None

    def spans(self) -> list[tuple[Column, slice]]:
        """Return each column and the slice of its features in X.

        Without a table each feature counts as a column.
        """
        columns: Sequence[Column] = self.columns
        if not columns:
            columns = [Column(f"feature {j + 1}") for j in range(self.n_features)]
        spans = []
        start = 0
        for column in columns:
            stop = start + len(column.features)
            spans.append((column, slice(start, stop)))
            start = stop
        return spans

    @property
    def feature_names(self) -> tuple[str, ...] | None:
        """Names of the columns of X; None without a table."""
        names: list[str] = []
        for column in self.columns:
            names += column.features
        return tuple(names) or None

    def to_dict(self) -> dict[str, Any]:
        """Return the encoding as values of JSON, with lists in place of tuples."""
        return json.loads(json.dumps(asdict(self)))

    @classmethod
    def from_dict(cls, description: dict[str, Any]) -> Self:
        """Rebuild an encoding from the untrusted result of `to_dict`."""
        from pydantic import TypeAdapter

        encoding = TypeAdapter(cls).validate_json(json.dumps(description), strict=True)
        n_features = len(encoding.feature_names or ())
        if encoding.columns and n_features != encoding.n_features:
            raise ValueError(
                f"its columns make {n_features} features, n_features is"
                f" {encoding.n_features}"
            )
        for column in encoding.columns:
            _check_column(column)
        return encoding


def _check_column(column: Column) -> None:
    """Refuse an untrusted column whose parts do not fit together."""
    if column.origin:
        date.fromisoformat(column.origin)  # raises for an invalid date
        check_date_format(column.notation)
    elif column.notation not in (None, ".", ","):
        raise ValueError(f"column {column.name!r} has a wrong notation")
    if column.fill is None:  # refuses gaps
        return
    if isinstance(column.fill, str):
        fits = column.categories is not None
    else:
        fits = column.categories is None and bool(np.isfinite(column.fill))
    if not fits:
        raise ValueError(f"column {column.name!r} has a wrong fill value")


# --- columns ---


def _learn_columns(
    table: OwnTable,
    names: Sequence[str],
    categorical: Categorical,
    missing: Missing,
    numeric: Sequence[str],
) -> tuple[Column, ...]:
    """Return how each column is encoded, and its gaps filled.

    Raise all problems together.
    """
    where = table.where
    frame = table.frame
    problems = Problems(where)
    options = _options_of_columns(problems, names, categorical, numeric)
    problems.raise_if_any()
    # Columns of text are categorical if `categorical` is the word one-hot, or a list
    # with this word, which is then a key of `options` beside the columns.
    takes_text = categorical == "one-hot" or "one-hot" in options
    columns: dict[str, Column] = {}
    for name in names:
        values = frame[name]
        with problems.collected():  # a column with a problem is not added
            columns[name] = _learn_column(table, name, options.get(name), takes_text)
        is_missing = values.isna()
        is_empty = is_missing.all()  # which is refused above
        if is_missing.any() and not is_empty:
            with problems.collected():
                if missing == "error":
                    _refuse_gap(values, where, table.gap(name))
                if name in columns:
                    columns[name] = replace(columns[name], indicator=True)
    problems.raise_if_any()
    # Categories have their fill value already. With "error" the training rows have no
    # gaps; gaps of new rows get the median.
    how = "median" if missing == "error" else missing
    for name, column in columns.items():
        if column.categories is None:
            numbers = _numbers(frame[name], column, where)
            columns[name] = replace(
                column,
                fill=fill_value(numbers, how),
                has_thousands=None if column.origin else _have_thousands(numbers),
            )
    return tuple(columns.values())


def _options_of_columns(
    problems: Problems,
    names: Sequence[str],
    categorical: Categorical,
    numeric: Sequence[str],
) -> dict[str, _Option]:
    """Return by column the option that names it; add errors to `problems`.

    The word one-hot in a list of categorical is a key as well.
    """
    where = problems.where
    options: dict[str, _Option] = {}
    with problems.collected():
        words = OPTION_WORDS["categorical"]
        for name in named_columns(categorical, names, f"{where}: categorical", words):
            options[name] = "categorical"
    with problems.collected():
        for name in named_columns(numeric, names, f"{where}: numeric"):
            if options.get(name) == "categorical":
                raise InputError(
                    f"{where}: {name!r} is in categorical and numeric; choose one"
                )
            options[name] = "numeric"
    return options


def _learn_column(
    table: OwnTable,
    name: str,
    option: _Option | None,
    takes_text: bool,
) -> Column:
    """Return how a column is encoded, without its gaps.

    It gets its categories, its first day, or the notation of its numbers. `option` is
    the one that names the column. With `takes_text` a column of text is categorical
    without being named.
    """
    values = table.frame[name]
    where = table.where
    content = table.content(name)
    if content.holds == "nothing":
        raise _empty_error(table, name, option)
    if option == "categorical":
        if content.holds == "dates":
            raise TableError(
                where, f"column {name!r} holds dates; remove it from categorical"
            )
        return _learn_categories(
            values, MOST_CATEGORIES, where, words=name in table.words
        )
    if option is None and content.holds != "dates":
        dotted = table.dotted_date(name)
        if dotted is not None:
            raise dotted_error(values, dotted, table.written(name), where)
    if content.holds == "text" and option == "numeric":
        content = table.content(name, ignore_type=True)
    elif content.holds == "text" and not takes_text:
        _refuse_numbers_as_text(table, name)
    refuse_two_readings(values, content, where)
    numbers = content.numbers
    present = values.notna().to_numpy()
    is_no_number = np.isnan(numbers) & present
    # numbers, dates or text, in this order
    if not is_no_number.any():
        _refuse_too_large(values, numbers, where, drop=option is None)
        unit = _learn_unit(values, numbers, where) if content.notation else ""
        return Column(name, notation=content.notation, unit=unit)
    if option == "numeric":
        fault = "is not a number; correct it, or remove the column from numeric"
        refuse(values, is_no_number, fault, where)
    if content.holds == "dates":
        moments = moments_of(values, where, content.notation)
        is_no_date = moments.isna().to_numpy() & present
        fault = "is not a date, unlike most values; correct it or drop the column"
        refuse(values, is_no_date, fault, where, drop=True)
        origin = moments.min().date().isoformat()
        return Column(name, origin=origin, notation=content.notation)
    return _learn_text(values, is_no_number, takes_text, where)


def _empty_error(table: OwnTable, name: str, option: str | None) -> TableError:
    """Return the error for a column without values; `option` names it, if any does."""
    advice = "drop it"
    if table.format == "xlsx":
        advice += ", or, if it has formulas, save it with Excel"
    return TableError(
        table.where,
        f"column {name!r} has no values; {advice}",
        column=name,
        remedy=None if option == "numeric" else Remedy("drop", name),
    )


def _refuse_numbers_as_text(table: OwnTable, name: str) -> None:
    """Refuse a column of type text whose values are all numbers in one notation."""
    content = table.content(name, ignore_type=True)
    if content.holds == "numbers" and not content.others:
        example = table.column(name).dropna().iloc[0]
        raise TableError(
            table.where,
            f"column {name!r} holds numbers stored as text, such as {example!r}; name"
            " it in numeric or in categorical",
            column=name,
            remedy=Remedy("numeric", name),
        )


def _learn_text(
    values: pd.Series, is_text: NDArray[np.bool_], takes_text: bool, where: str
) -> Column:
    """Return the categories of a column with text, if `takes_text` and most is text.

    Otherwise refuse the text, with advice that depends on its share and its kind.
    """
    texts = texts_of(values.dropna(), where)  # also of numbers beside the text
    if mostly(texts, OTHER_DATE):
        fault = "looks like a date; name the format (date-format), or drop the column"
        refuse(values, is_text, fault, where, drop=True)
    text_share = is_text.sum() / len(texts)
    are_signs = values[is_text].map(str).str.fullmatch(r"\\N|\W+").all()  # as - and ?
    share_of_categories = 0.5 if takes_text else 1  # from which signs may be categories
    if are_signs and text_share < share_of_categories:
        fault = "is not a number; leave the cell empty if the value is missing"
        raise misfit(values, is_text, fault, where, option=None)
    n_distinct = len(set(texts))
    if text_share > 0.5:
        # Values that rarely repeat may be identifiers, so fewer pass as categories.
        is_repetitive = len(texts) > 2 * n_distinct
        most = MOST_CATEGORIES if is_repetitive else _FEW_CATEGORIES
        column = _learn_categories(values, most, where)  # raises if there are too many
        if takes_text:
            return column
        fault = (
            "is not a number; drop the column, or encode text with categorical: one-hot"
        )
        raise misfit(values, is_text, fault, where, "categorical", kind="text")
    # Numbers and a few texts, each twice on average, as with "none" or "10+"
    is_mixed = (
        text_share >= _MIXED_SHARE
        and n_distinct <= _FEW_CATEGORIES
        and is_text.sum() >= 2 * values[is_text].nunique()
    )
    if is_mixed:
        fault = (
            "is not a number; name the column in categorical, correct the text, or drop"
            " the column"
        )
        raise misfit(values, is_text, fault, where, "categorical")
    # Numbers with typing errors
    fault = "is not a number; correct it or drop the column"
    raise misfit(values, is_text, fault, where, "drop")


def _learn_categories(
    values: pd.Series, most: int, where: str, *, words: bool = False
) -> Column:
    """Return a column with its categories, at most `most`.

    The most frequent category fills gaps.
    """
    texts = pd.Series(texts_of(values.dropna(), where))
    counts = _merged(texts.value_counts())
    if len(counts) > most:
        raise _too_many(values, len(counts), where)
    categories = sorted(counts.index)
    # Of equally frequent categories the first, as in SimpleImputer
    fill = max(categories, key=counts.__getitem__)
    name = str(values.name)
    return Column(name, categories=tuple(categories), fill=fill, words=words)


def _code(text: str) -> str:
    """Return one text for all spellings of a whole number, such as 1, 1.0 and 1,0.

    A gap turns a column of codes into floats. The codes 1 and 01 are two.
    """
    if not re.fullmatch(r"[+-]?(0|[1-9][0-9]*)(\.0+|,0)", text):
        return text
    whole, *_ = re.split("[.,]", text)
    return "0" if whole in ("-0", "+0") else whole


def _merged(counts: pd.Series) -> pd.Series:
    """Return the counts of texts, with one count for all spellings of a code."""
    codes = counts.index.map(_code)
    if codes.is_unique:
        return counts
    has_spellings = codes.duplicated(keep=False)
    # A text without another spelling stays as it is spelled.
    names = codes.where(has_spellings, counts.index)
    return counts.groupby(names, sort=False).sum()


def _places(texts: NDArray[np.object_], categories: Sequence[str]) -> NDArray[np.intp]:
    """Return the place of each text among the categories, -1 for an unseen text."""
    places = pd.Index(np.array(categories, dtype=object)).get_indexer(pd.Index(texts))
    is_new = places < 0
    if is_new.any():  # or another spelling of a category
        place_by_code = {_code(text): place for place, text in enumerate(categories)}
        # Each text is looked up once.
        which, distinct = pd.factorize(texts[is_new])
        distinct_places = [place_by_code.get(_code(text), -1) for text in distinct]
        places[is_new] = np.array(distinct_places, dtype=np.intp)[which]
    return places


def _too_many(values: pd.Series, n_distinct: int, where: str) -> TableError:
    """Return the error for too many categories, which may be identifiers."""
    name = str(values.name)
    n_rows = len(values)
    example = f"such as {values.dropna().iloc[0]!r}"
    all_differ = n_distinct == n_rows
    if all_differ and n_rows > _FEW_CATEGORIES:
        return TableError(
            where,
            f"column {name!r} looks like an identifier (a different value in every row,"
            f" {example}): add --id {name} or --drop {name}",
            kind="identifier",
            column=name,
            place=example,  # as no row alone is wrong
            remedy=Remedy("id", name),
        )
    return TableError(
        where,
        f"column {name!r} has too many categories: {n_distinct:,} in {n_rows:,} rows,"
        f" {example}; drop it (--drop {name}, or drop in a config), or correct the"
        " values",
        column=name,
        place=example,
        remedy=Remedy("drop", name),
    )


def _numbers(values: pd.Series, column: Column, where: str) -> NDArray[np.float64]:
    """Return the numbers of a column, or its days since the origin, NaN for gaps.

    Refuse values that are neither.
    """
    if column.origin is not None:
        numbers = _days(values, column, where)
        example = EXAMPLE.strftime(column.notation or "%Y-%m-%d")
        fault = f"is not a date such as {example}; correct it"
    else:
        numbers = as_numbers(values, column.notation)
        fault = "is not a number; correct it"
    refuse(values, np.isnan(numbers) & values.notna().to_numpy(), fault, where)
    _refuse_too_large(values, numbers, where)
    if column.notation and column.origin is None:
        _check_units(values, numbers, column.unit, where)
    return numbers


def _refuse_too_large(
    values: pd.Series, numbers: NDArray[np.float64], where: str, *, drop: bool = False
) -> None:
    """Refuse infinity, and numbers that are too large for a quantity."""
    is_too_large = np.abs(numbers) >= LARGEST_QUANTITY
    fault = (
        "is too large for a quantity; if it stands for a missing value, leave the cell"
        " empty, else correct it"
    )
    refuse(values, is_too_large, fault, where, drop=drop)


def _refuse_new_thousands(
    values: pd.Series, numbers: NDArray[np.float64], column: Column, where: str
) -> None:
    """Refuse texts such as 1.234 if only new or only training rows have thousands."""
    if column.has_thousands is None:
        return
    if column.has_thousands != _have_thousands(numbers):
        refuse_two_readings(values, content_of(values, where), where)


def _have_thousands(numbers: NDArray[np.float64]) -> bool:
    """Return whether numbers are whole and reach 1,000.

    If only new or only old ones do, 1.234 may have been read as 1234, or the other way
    round.
    """
    return not (numbers % 1 > 0).any() and bool((np.abs(numbers) >= 1000).any())


def _learn_unit(values: pd.Series, numbers: NDArray[np.float64], where: str) -> str:
    """Return the unit of most amounts, or ""; refuse amounts in another unit."""
    amounts = values[np.abs(numbers) > 0]  # 0 is the same in any unit
    units = _units_of(amounts)
    unit = _most_frequent(units)
    _refuse_other_units(amounts, units, unit, where)
    return unit


def _check_units(
    values: pd.Series, numbers: NDArray[np.float64], unit: str, where: str
) -> None:
    """Refuse new amounts in another unit than those of the training rows.

    If these have none (""), new amounts may have one currency.
    """
    amounts = values[np.abs(numbers) > 0]
    units = _units_of(amounts, may_be_percents=unit == "%")
    if unit == "":
        has_percents = (units == "%").any()
        # With "none", percents are refused.
        unit = "none" if has_percents else _most_frequent(units)
    _refuse_other_units(amounts, units, unit, where)


def _units_of(amounts: pd.Series, *, may_be_percents: bool = False) -> pd.Series:
    """Return % or the currency of each amount; others have a gap, or beside % "none".

    A number without % is a hundred times as large as one with %; one without a currency
    is not refused.
    """
    units = amounts.astype(str).str.extract(f"(%|{CURRENCY})", expand=False)
    if may_be_percents or (units == "%").any():
        return units.fillna("none")
    return units


def _most_frequent(units: pd.Series) -> str:
    return next(iter(units.value_counts().index), "")


def _refuse_other_units(
    amounts: pd.Series, units: pd.Series, unit: str, where: str
) -> None:
    is_wrong = (units.notna() & (units != unit)).to_numpy()
    fault = f"has another unit than other values ({unit}); convert it"
    refuse(amounts, is_wrong, fault, where)


def _days(values: pd.Series, column: Column, where: str) -> NDArray[np.float64]:
    """Return days since the origin.

    NaN for missing values and for values that are no dates.
    """
    # Only with a notation, such as %Y%m%d, is a number a date.
    if column.notation is None and pd.api.types.is_numeric_dtype(values.dtype):
        return np.full(len(values), np.nan)
    date_format = None if is_date(values) else column.notation
    moments = moments_of(values, where, date_format)
    origin = np.datetime64(str(column.origin), "us")
    microseconds = (moments.to_numpy("datetime64[us]") - origin).astype(np.int64)
    return np.where(moments.isna(), np.nan, microseconds / _MICROSECONDS_OF_DAY)


def _refuse_gap(values: pd.Series, where: str, word: str = "") -> None:
    """Raise an error for the first missing value.

    `word` is its text in the file, such as NA, or "".
    """
    name = str(values.name)
    place = f"row {values.index[values.isna()][0] + 1}"
    ways = "impute with missing: mean, median or most-frequent"
    if word:
        # Without a kind: the line that columns of a kind share would not show the word.
        raise TableError(
            where,
            f"column {name!r}, {place}: {word!r} counts as missing; name the column in"
            f" categorical if it is a word, or {ways}",
            column=name,
            place=place,
            remedy=Remedy("categorical", name),
        )
    raise TableError(
        where,
        f"column {name!r}, {place}: the value is missing; fill it, drop the column, or"
        f" {ways}",
        kind="missing",
        column=name,
        place=place,
        remedy=Remedy("missing", "median"),
    )
