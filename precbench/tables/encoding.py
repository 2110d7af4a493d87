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
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from precbench.core.errors import InputError
from precbench.core.kinds import Format
from precbench.core.text import count
from precbench.data.dataset import Imputed, fill_value
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
_MIXED_SHARE = 0.1  # above this share of text, a column of numbers may be categorical


@dataclass(frozen=True)
class Column:  # how a column of a table becomes features
    name: str
    # None for numbers and dates; else a feature for each. Other values of new rows give
    # zeros.
    categories: tuple[str, ...] | None = None
    fill: float | str | None = None  # replaces a missing value; None refuses it
    # of dates, which become days since the first one in training
    origin: str | None = None
    notation: str | None = None  # see `Content`
    words: bool = False  # whether NA, None and the like are values, not gaps
    unit: str = ""  # % or a currency, if amounts of the training rows have a unit
    # whether there is a last feature: 1 where the value is missing
    indicator: bool = False
    # see `_have_thousands`, in training; None: not known
    has_thousands: bool | None = None

    @property
    def features(self) -> list[str]:
        """Names: ``column`` or each ``column=category``.

        With indicator ``column is missing``.
        """
        texts = self.categories
        names = (
            [self.name] if texts is None else [f"{self.name}={text}" for text in texts]
        )
        return [*names, f"{self.name} is missing"] if self.indicator else names

    def value_of(self, features: NDArray[np.float64]) -> str:
        """Return, in words, the value that `Encoding.encode` turned into these features.

        ``(unknown)`` is a category that the training rows did not have.
        """
        if self.indicator and features[-1]:  # the last feature is the indicator
            return "(missing)"
        if self.categories is not None:
            return (
                self.categories[int(features.argmax())]
                if features.any()
                else "(unknown)"
            )
        number = float(features[0])
        if self.origin is None:
            # digits before the point: 4 to 15 are shown
            n_before = len(f"{abs(number):.0f}")
            return f"{number:.{min(15, max(4, n_before))}g}"
        # days to minutes
        moment = np.datetime64(self.origin, "m") + round(number * 1440)
        return str(moment).removesuffix("T00:00")


@dataclass
class Gaps:
    """Missing values and unseen categories of new rows, counted block by block."""

    # whether a missing value is an error, although the encoding could fill it
    refuse: bool = False
    n_rows: int = 0  # of all blocks
    # By column: number of values filled in, up to 1,001 unseen categories, rows with
    # one of these.
    filled: Counter[str] = field(default_factory=Counter)
    unseen: defaultdict[str, set[str]] = field(default_factory=lambda: defaultdict(set))
    uncategorised: Counter[str] = field(default_factory=Counter)
    # of the last block
    missing: dict[str, NDArray[np.bool_]] = field(default_factory=dict)
    # index of each block in its file, from 0
    places: list[Any] = field(default_factory=list)

    def places_of(self, rows: Any) -> NDArray[np.intp]:
        """Return the numbers in the file, which count blank rows, of encoded rows.

        Both from 1.
        """
        rows = np.asarray(rows)
        return np.concatenate(self.places)[rows - 1] + 1 if self.places else rows

    def sentences(self) -> list[str]:
        """Return warnings.

        Columns without any known value, then counts of the other columns.
        """
        # no row has a value
        empty = [name for name, n in self.filled.items() if n == self.n_rows]
        # none known
        unknown = [name for name, n in self.uncategorised.items() if n == self.n_rows]
        n_unseen = {
            name: len(texts)
            for name, texts in self.unseen.items()
            if name not in unknown
        }
        counts = [  # `encode` keeps at most MOST_CATEGORIES + 1 of a column
            f"{'more than ' if n > MOST_CATEGORIES else ''}{min(n, MOST_CATEGORIES):,}"
            f" unseen {'category' if n == 1 else 'categories'} in {name}"
            f" ({listed(sorted(self.unseen[name]), 3)})"
            for name, n in n_unseen.items()
        ]
        n_filled = {name: n for name, n in self.filled.items() if name not in empty}
        counts += [
            f"{count(n, 'value')} filled in {name}" for name, n in n_filled.items()
        ]
        sentences = (  # said if the list on the left is not empty
            (
                empty,
                (
                    f"no row has a value of {listed(empty)}; the fill value of training"
                    " is used"
                ),
            ),
            (
                unknown,
                (
                    f"no value of {listed(unknown)} was seen in training; all count as"
                    " unknown"
                ),
            ),
            (counts, listed(counts)),
        )
        return [sentence for reasons, sentence in sentences if reasons]


@dataclass(frozen=True)
class Encoding:
    """How rows of a file become rows of X, for training rows and new ones."""

    format: Format
    n_features: int
    dense: bool
    columns: tuple[Column, ...] = ()  # none for svmlight and npz

    @classmethod
    def learn(
        cls,
        table: OwnTable,
        names: Sequence[str] | None = None,
        categorical: Categorical = "error",
        missing: Missing = "error",
        numeric: Sequence[str] = (),
    ) -> Self:
        """Learn the encoding of the training rows.

        See `precbench.tables.own_file.read_own_file`.

        With ``missing="error"`` missing values are refused here; those of new rows
        become the median. All problems are raised together, as one `TableError`.
        """
        names = list(table.frame.columns) if names is None else names
        columns = _learn_columns(table, names, categorical, missing, numeric)
        n_features = sum(len(column.features) for column in columns)
        # dense, as by `encode`
        return cls(table.format, n_features, dense=True, columns=columns)

    def with_notation(self, decimal: str | None, date_format: str | None) -> Self:
        """Return the encoding for rows with another notation of numbers or dates."""
        columns = [  # the notation of categories is not used
            replace(
                column,
                notation=(date_format if column.origin else decimal) or column.notation,
                has_thousands=None if decimal else column.has_thousands,
            )
            for column in self.columns
        ]
        return replace(self, columns=tuple(columns))

    def encode(
        self, table: pd.DataFrame, name: str = "the table", gaps: Gaps | None = None
    ) -> NDArray[np.float64]:
        """Return the features of a block of rows, and count its gaps and unseen texts in `gaps`.

        A gap becomes the column's fill value, a number or a category; an unseen text
        becomes zeros.
        """
        gaps = Gaps() if gaps is None else gaps
        gaps.missing = {}  # of this block alone
        X = np.zeros((len(table), self.n_features))
        for column, span in self.spans():
            values = column_of(table, column.name, name)
            is_missing = values.isna().to_numpy()
            if n_missing := int(np.count_nonzero(is_missing)):
                # the caller, or the model, allows no gap
                if gaps.refuse or column.fill is None:
                    _refuse_gap(values, name)
                gaps.filled[column.name] += n_missing
                gaps.missing[column.name] = is_missing
            if column.indicator:
                X[:, span.stop - 1] = is_missing  # the last feature of the column
            if column.categories is None:
                X[:, span.start] = numbers = _numbers(values, column, name)
                if column.has_thousands not in (None, _have_thousands(numbers)):
                    refuse_two_readings(values, content_of(values, name), name)
                if n_missing:
                    X[is_missing, span.start] = column.fill
                continue
            texts = texts_of(values, name)
            texts[is_missing] = column.fill
            # Codes are places in the sorted categories, -1 for an unseen text.
            codes = _places(texts, column.categories)
            known = np.flatnonzero(codes >= 0)
            X[known, span.start + codes[known]] = 1.0
            if len(known) < len(table):
                gaps.uncategorised[column.name] += len(table) - len(known)
                unseen = gaps.unseen[column.name]  # a set, updated in place
                new = set(texts[codes < 0]) - unseen
                # One above MOST_CATEGORIES is enough for `sentences` to say "more
                # than".
                unseen |= set(sorted(new)[: MOST_CATEGORIES + 1 - len(unseen)])
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
                # All features of the column but the indicator, the last one, which has
                # no gaps.
                columns.append(
                    (features.start, features.stop - column.indicator, missing)
                )
        return Imputed(how, tuple(columns)) if columns else None

    def spans(self) -> list[tuple[Column, slice]]:
        """Return each column and the slice of its features in X.

        Without a table, of 1 feature.
        """
        columns = self.columns or [
            Column(f"feature {j + 1}") for j in range(self.n_features)
        ]
        ends = np.cumsum([0, *(len(column.features) for column in columns)]).tolist()
        return [*zip(columns, map(slice, ends[:-1], ends[1:]), strict=True)]

    @property
    def feature_names(self) -> tuple[str, ...] | None:
        """Names of the columns of X; None without a table."""
        return (
            tuple(name for column in self.columns for name in column.features) or None
        )

    def to_dict(self) -> dict[str, Any]:  # values of JSON: tuples become lists
        return json.loads(json.dumps(asdict(self)))

    @classmethod
    def from_dict(cls, description: dict[str, Any]) -> Self:
        """Rebuild an encoding from the untrusted result of `to_dict`."""
        from pydantic import TypeAdapter

        encoding = TypeAdapter(cls).validate_json(json.dumps(description), strict=True)
        if (
            encoding.columns
            and (n := len(encoding.feature_names or ())) != encoding.n_features
        ):
            raise ValueError(
                f"its columns make {n} features, n_features is {encoding.n_features}"
            )
        for column in encoding.columns:
            # raises for an invalid date
            date.fromisoformat(column.origin or "1970-01-01")
            check_date_format(column.notation if column.origin else None)
            # With an origin, `notation` is a date format (checked above), else a
            # decimal mark.
            is_notation = column.origin or column.notation in (None, ".", ",")
            # `fill` is text for categories, else a finite number; None refuses gaps.
            fits = isinstance(column.fill, str) == (column.categories is not None)
            can_fill = column.fill is None or (
                fits and column.fill not in (np.inf, -np.inf)
            )
            if not (is_notation and can_fill):
                wrong = "fill value" if is_notation else "notation"
                raise ValueError(f"column {column.name!r} has a wrong {wrong}")
        return encoding


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
    where, frame = table.where, table.frame
    problems = Problems(where)
    options: dict[str, str] = {}  # by column: the option that names it
    for option, texts in (("categorical", categorical), ("numeric", numeric)):
        with problems.collected():
            for name in named_columns(
                texts, names, f"{where}: {option}", OPTION_WORDS[option]
            ):
                if options.setdefault(name, option) != option:
                    raise InputError(
                        f"{where}: {name!r} is in categorical and numeric; choose one"
                    )
    problems.raise_if_any()
    takes_text = "one-hot" in (*options, str(categorical))
    columns: dict[str, Column] = {}
    for name in names:
        values = frame[name]
        with problems.collected():  # a column with a problem is not added
            columns[name] = _learn_column(table, name, options.get(name), takes_text)
        # empty columns are refused above
        if values.isna().any() and not values.isna().all():
            with problems.collected():
                if missing == "error":
                    _refuse_gap(values, where, table.gap(name))
                if name in columns:
                    columns[name] = replace(columns[name], indicator=True)
    problems.raise_if_any()
    # With missing="error" the training rows have no gaps, and gaps of new rows get the
    # median.
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


def _learn_column(
    table: OwnTable, name: str, option: str | None, takes_text: bool
) -> Column:
    # Return a column with its categories, its first day, or the notation of its
    # numbers. `option` names the column: "categorical", "numeric" or none; with
    # `takes_text` a column of text is categorical without being named.
    values, where, content = table.frame[name], table.where, table.content(name)
    present = values.notna().to_numpy()
    is_dated = content.holds == "dates"
    if content.holds == "nothing":
        how = (
            ", or, if it has formulas, save it with Excel"
            if table.format == "xlsx"
            else ""
        )
        text = f"column {name!r} has no values; drop it{how}"
        remedy = None if option == "numeric" else ("drop", name)
        raise TableError(where, text, column=name, remedy=remedy)
    if option == "categorical":
        if is_dated:
            raise TableError(
                where, f"column {name!r} holds dates; remove it from categorical"
            )
        return _learn_categories(
            values, MOST_CATEGORIES, where, words=name in table.words
        )
    if option is None and not is_dated:
        date = table.dotted_date(name)
        if date is not None:
            raise dotted_error(values, date, table.written(name), where)
    if content.holds == "text" and (option == "numeric" or not takes_text):
        # digits of type text are numbers
        as_numeric = table.content(name, ignore_type=True)
        if (
            as_numeric.holds == "numbers"
            and option != "numeric"
            and not as_numeric.others
        ):
            raise TableError(
                where,
                f"column {name!r} holds numbers stored as text, such as "
                f"{values.dropna().iloc[0]!r}; name it in numeric or in categorical",
                column=name,
                remedy=("numeric", name),
            )
        content = as_numeric if option == "numeric" else content
    refuse_two_readings(values, content, where)
    numbers = content.numbers
    is_no_number = np.isnan(numbers) & present
    if not is_no_number.any():
        _refuse_no_quantity(values, numbers, where, drop=option is None)
        unit = _unit(values, numbers, where) if content.notation else ""
        return Column(name, notation=content.notation, unit=unit)
    if option == "numeric":
        what = "is not a number; correct it, or remove the column from numeric"
        refuse(values, is_no_number, what, where)
    if is_dated:
        moments = moments_of(values, where, content.notation)
        what = "is not a date, unlike most values; correct it or drop the column"
        refuse(values, moments.isna().to_numpy() & present, what, where, drop=True)
        return Column(
            name, origin=moments.min().date().isoformat(), notation=content.notation
        )
    return _learn_text(values, is_no_number, takes_text, where)


def _learn_text(
    values: pd.Series, is_text: NDArray[np.bool_], takes_text: bool, where: str
) -> Column:
    """Return a column with categories if mostly text and `takes_text`.

    Else refuse text with advice.
    """
    present = values.notna().to_numpy()
    texts = texts_of(values[present], where)
    if mostly(texts, OTHER_DATE):
        what = "looks like a date; name the format (date-format), or drop the column"
        refuse(values, is_text, what, where, drop=True)
    n_distinct = len(set(texts))
    # Values that rarely repeat may be identifiers, so fewer of them pass as categories.
    most = MOST_CATEGORIES if len(texts) > 2 * n_distinct else _FEW_CATEGORIES
    text_share = is_text.sum() / present.sum()
    is_mostly_text = text_share > 0.5
    # such as - and ?
    are_signs = values[is_text].map(str).str.fullmatch(r"\\N|\W+").all()
    if are_signs and text_share < (0.5 if takes_text else 1):
        advice, option = "leave the cell empty if the value is missing", None
    elif is_mostly_text:
        column = _learn_categories(values, most, where)  # raises if there are too many
        if takes_text:
            return column
        advice, option = (
            "drop the column, or encode text with categorical: one-hot",
            "categorical",
        )
    # numbers and a few different texts, each twice on average, as with "none" or "10+"
    elif (
        text_share >= _MIXED_SHARE
        and n_distinct <= _FEW_CATEGORIES
        and is_text.sum() >= 2 * values[is_text].nunique()
    ):
        option = "categorical"
        advice = "name the column in categorical, correct the text, or drop the column"
    else:  # numbers with typing errors
        advice, option = "correct it or drop the column", "drop"
    kind = "text" if is_mostly_text and option else ""  # columns of text share a line
    raise misfit(values, is_text, f"is not a number; {advice}", where, option, kind)


def _learn_categories(
    values: pd.Series, most: int, where: str, *, words: bool = False
) -> Column:
    """Return a column with its categories, at most `most`.

    The most frequent category fills gaps.
    """
    counts = _merged(pd.Series(texts_of(values.dropna(), where)).value_counts())
    name = str(values.name)
    if len(counts) > most:
        raise _too_many(values, len(counts), where)
    categories = sorted(counts.index)
    # Of equally frequent categories the first, as in SimpleImputer
    fill = max(categories, key=lambda text: counts[text])
    return Column(name, tuple(categories), fill, words=words)


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
        return counts  # as they are spelled
    is_spelled_once = ~codes.duplicated(keep=False)
    return counts.groupby(codes.where(~is_spelled_once, counts.index), sort=False).sum()


def _places(texts: NDArray[np.object_], categories: Sequence[str]) -> NDArray[np.intp]:
    """Return the place of each text among the categories, -1 for an unseen text."""
    places = pd.Index(np.array(categories, dtype=object)).get_indexer(pd.Index(texts))
    if (is_new := places < 0).any():
        place_of = {_code(text): place for place, text in enumerate(categories)}
        numbers, distinct = pd.factorize(texts[is_new])
        same = [place_of.get(_code(text), -1) for text in distinct]
        places[is_new] = np.array(same, dtype=np.intp)[numbers]
    return places


def _too_many(values: pd.Series, n_distinct: int, where: str) -> TableError:
    # Return the error for too many categories, or for a column that looks like an
    # identifier.
    name, n_rows, example = (
        str(values.name),
        len(values),
        f"such as {values.dropna().iloc[0]!r}",
    )
    option, kind = (
        ("id", "identifier") if n_distinct == n_rows > _FEW_CATEGORIES else ("drop", "")
    )
    text = (
        f"column {name!r} looks like an identifier (a different value in every row,"
        f" {example}): add --id {name} or --drop {name}"
        if option == "id"
        else (
            f"column {name!r} has too many categories: {n_distinct:,} in {n_rows:,}"
            f" rows, {example}; drop it (--drop {name}, or drop in a config), or"
            " correct the values"
        )
    )
    return TableError(
        where, text, kind=kind, column=name, place=example, remedy=(option, name)
    )


def _numbers(values: pd.Series, column: Column, where: str) -> NDArray[np.float64]:
    """Return the numbers of a column, or its days since the origin.

    NaN only for gaps.
    """
    # then `notation` is a date format, else a decimal mark
    is_dated = column.origin is not None
    numbers = (
        _days(values, column, where)
        if is_dated
        else as_numbers(values, column.notation)
    )
    date_text = f"date such as {EXAMPLE.strftime(column.notation or '%Y-%m-%d')}"
    what = f"is not a {date_text if is_dated else 'number'}; correct it"
    refuse(values, np.isnan(numbers) & values.notna().to_numpy(), what, where)
    _refuse_no_quantity(values, numbers, where)
    if column.notation and not is_dated:
        _unit(values, numbers, where, column.unit)  # called for its error
    return numbers


def _refuse_no_quantity(
    values: pd.Series, numbers: NDArray[np.float64], where: str, *, drop: bool = False
) -> None:
    """Refuse infinity, and numbers that are too large for a quantity."""
    what = (
        "is too large for a quantity; if it stands for a missing value, leave the cell"
        " empty, else correct it"
    )
    refuse(values, np.abs(numbers) >= LARGEST_QUANTITY, what, where, drop=drop)


def _have_thousands(numbers: NDArray[np.float64]) -> bool:
    """Return whether numbers are whole and reach 1,000.

    If only new or only old ones do, 1.234 may have been read as 1234, or the other way
    round.
    """
    return not (numbers % 1 > 0).any() and bool((np.abs(numbers) >= 1000).any())


def _unit(
    values: pd.Series, numbers: NDArray[np.float64], where: str, unit: str | None = None
) -> str:
    """Return `unit` or, if not known, the unit of most amounts.

    Refuse amounts in another unit.
    """
    values = values[np.abs(numbers) > 0]  # 0 is the same in any unit
    units = values.astype(str).str.extract(f"(%|{CURRENCY})", expand=False)
    if unit == "%" or (units == "%").any():  # then a number without % has another unit
        unit, units = "none" if unit == "" else unit, units.fillna("none")
    unit = unit or next(iter(units.value_counts().index), "")
    wrong = (units.notna() & (units != unit)).to_numpy()
    refuse(
        values, wrong, f"has another unit than other values ({unit}); convert it", where
    )
    return unit


def _days(values: pd.Series, column: Column, where: str) -> NDArray[np.float64]:
    """Return days since the origin.

    NaN for missing values and for values that are no dates.
    """
    if column.notation is None and pd.api.types.is_numeric_dtype(values.dtype):
        return np.full(len(values), np.nan)  # numbers are no dates
    moments = moments_of(values, where, None if is_date(values) else column.notation)
    since = moments.to_numpy("datetime64[us]") - np.datetime64(str(column.origin), "us")
    # microseconds a day
    return np.where(moments.isna(), np.nan, since.astype(np.int64) / 86_400e6)


def _refuse_gap(values: pd.Series, where: str, word: str = "") -> None:
    """Raise for the first missing value.

    `word` is its text in the file, such as NA, or "".
    """
    name, row = str(values.name), values.index[values.isna()][0] + 1
    as_word = (
        f"{word!r} counts as missing; name the column in categorical if it is a word"
    )
    fault = as_word if word else "the value is missing; fill it, drop the column"
    raise TableError(
        where,
        f"column {name!r}, row {row}: {fault}, or impute with missing: mean, median or "
        "most-frequent",
        # such columns share a line, which shows each place
        kind="" if word else "missing",
        column=name, place=f"row {row}",
        remedy=("categorical", name) if word else ("missing", "median"),
    )  # fmt: skip
