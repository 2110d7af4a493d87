"""How columns of a table become features, and labels become -1 and +1."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field, replace
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Self

import numpy as np
from numpy.typing import NDArray

from precbench.data.formats import Format
from precbench.errors import InputError, did_you_mean
from precbench.text import count

if TYPE_CHECKING:
    import pandas as pd

MOST_CATEGORIES = 1000
_FEW_CATEGORIES = 100
"""More of them than half the rows are taken for identifiers."""
_COLUMNS_AT_ONCE = 256  # whose missing values are learnt: each is copied as numbers
_ISO_DATE = r"\d{4}-\d{2}-\d{2}(?!\d)"
_OTHER_DATE = r"(\d{1,2}([./-])\d{1,2}\2\d{4}|\d{4}([./])\d{1,2}\3\d{1,2})(?!\d)"

Missing = Literal["error", "mean", "median", "most-frequent"]


@dataclass(frozen=True)
class Column:
    """One column of a table and its encoding.

    Attributes
    ----------
    name : str
    categories : tuple of str or None
        None for numbers and dates; else the values that get a feature of their own. Any other value
        of a new row gives zeros.
    fill : float or str or None
        Replaces a missing value; None refuses it.
    origin : str or None
        For dates and times, which are converted to days since then: the first day of the training
        rows.
    """

    name: str
    categories: tuple[str, ...] | None = None
    fill: float | str | None = None
    origin: str | None = None


@dataclass
class Gaps:
    """What new rows lack, counted while they are encoded, perhaps block by block.

    Attributes
    ----------
    n_rows : int
        Number of rows so far.
    filled : Counter
        Number of missing values that were filled in, by column.
    unseen : dict of str to set of str
        Categories that the training rows did not have, by column; no more than 1,001 of each.
    uncategorised : Counter
        Number of rows with such a category, by column.
    """

    n_rows: int = 0
    filled: Counter[str] = field(default_factory=Counter)
    unseen: defaultdict[str, set[str]] = field(default_factory=lambda: defaultdict(set))
    uncategorised: Counter[str] = field(default_factory=Counter)

    def sentences(self) -> list[str]:
        """Return what a user should know of it."""
        empty = [name for name, n in self.filled.items() if n == self.n_rows]
        unknown = [name for name, n in self.uncategorised.items() if n == self.n_rows]
        counts = [
            f"{_many(len(texts))} in {name} ({listed(sorted(texts), 3)})"
            for name, texts in self.unseen.items()
            if name not in unknown
        ] + [
            f"{count(n, 'value')} filled in {name}"
            for name, n in self.filled.items()
            if name not in empty
        ]
        sentences = []
        if empty:
            sentences.append(f"no row has a value in {listed(empty)}: all are filled in alike")
        if unknown:
            sentences.append(
                f"the training rows had none of the values in {listed(unknown)}: all are treated "
                "as unknown"
            )
        return [*sentences, listed(counts)] if counts else sentences


def _many(n_categories: int) -> str:
    if n_categories > MOST_CATEGORIES:
        return f"more than {MOST_CATEGORIES:,} unseen categories"
    return "1 unseen category" if n_categories == 1 else f"{n_categories:,} unseen categories"


@dataclass(frozen=True)
class Encoding:
    """How rows of a file become rows of X; the same for training rows and new ones.

    Attributes
    ----------
    format : {"svmlight", "csv", "tsv", "parquet", "npz"}
    n_features : int
    dense : bool
    columns : tuple of Column
        Columns of a table; empty for svmlight and npz, whose features have no names.
    """

    format: Format
    n_features: int
    dense: bool
    columns: tuple[Column, ...] = ()

    @classmethod
    def learn(
        cls,
        table: pd.DataFrame,
        names: Sequence[str],
        categorical: str = "error",
        missing: Missing = "error",
        name: str = "the table",
        format: Format = "parquet",  # noqa: A002
    ) -> Self:
        """Learn from the training rows how columns of a table become features.

        Parameters
        ----------
        table : pandas.DataFrame of n_samples rows
        names : sequence of str
            The columns to take.
        categorical : {"error", "one-hot"}
            Treatment of text.
        missing : {"error", "mean", "median", "most-frequent"}
            Treatment of missing values; in text the most frequent value replaces them.
        name : str
            Name of the table in messages.
        format : {"csv", "tsv", "parquet"}

        Returns
        -------
        Encoding

        Raises
        ------
        InputError
            Two columns of one name, text or missing values that are to be refused, a slip in a
            column of numbers or dates, too many different texts.
        """
        if not table.columns.is_unique:
            twice = table.columns[table.columns.duplicated()][0]
            raise InputError(f"{name}: two columns are named {twice!r}")
        columns = learn_columns(table, names, categorical, missing, name)
        width = sum(
            1 if column.categories is None else len(column.categories) for column in columns
        )
        return cls(format, width, dense=True, columns=columns)

    def encode(
        self, table: pd.DataFrame, name: str = "the table", gaps: Gaps | None = None
    ) -> NDArray[np.float64]:
        """Turn rows of a table into features.

        Parameters
        ----------
        table : pandas.DataFrame of n_samples rows
            Other columns than those of the encoding are ignored.
        name : str
            Name of the table in messages.
        gaps : Gaps, optional
            Counts what these rows lack; its rows so far come before them in messages.

        Returns
        -------
        ndarray of shape (n_samples, n_features), float64

        Raises
        ------
        InputError
            A missing column; text or a date in a column of numbers, infinity, or a missing value,
            with column and row.
        """
        gaps = Gaps() if gaps is None else gaps
        X = np.zeros((len(table), self.n_features))
        place = 0
        for column in self.columns:
            values = column_of(table, column.name, name)
            if column.categories is None:
                X[:, place] = _numbers(values, column, name, gaps.n_rows)
                place += 1
            else:
                texts = _filled(values, _texts(values, name), column.fill, name, gaps.n_rows)
                codes = _codes(texts, column.categories)
                known = np.flatnonzero(codes >= 0)
                X[known, place + codes[known]] = 1.0
                place += len(column.categories)
                if len(known) < len(table):
                    gaps.uncategorised[column.name] += len(table) - len(known)
                    seen = gaps.unseen[column.name]
                    more = set(texts[codes < 0]) - seen
                    seen |= set(sorted(more)[: MOST_CATEGORIES + 1 - len(seen)])
            if n_missing := int(values.isna().sum()):
                gaps.filled[column.name] += n_missing
        gaps.n_rows += len(table)
        return X

    @property
    def feature_names(self) -> tuple[str, ...] | None:
        """Names of the columns of X: ``column`` or ``column=category``; None without a table."""
        if not self.columns:
            return None
        return tuple(
            name
            for column in self.columns
            for name in (
                [column.name]
                if column.categories is None
                else [f"{column.name}={category}" for category in column.categories]
            )
        )

    def to_dict(self) -> dict[str, Any]:
        """Return the encoding as values of JSON."""
        return json.loads(json.dumps(asdict(self)))

    @classmethod
    def from_dict(cls, description: dict[str, Any]) -> Self:
        """Rebuild an encoding from the result of `to_dict`, which is untrusted."""
        columns = tuple(
            Column(
                name=column["name"],
                categories=None if column["categories"] is None else tuple(column["categories"]),
                fill=column["fill"],
                origin=_day(column.get("origin")),  # older models know no dates
            )
            for column in description["columns"]
        )
        encoding = cls(**{**description, "columns": columns})
        kinds = (encoding.format, str), (encoding.n_features, int), (encoding.dense, bool)
        if not all(type(value) is kind for value, kind in kinds):
            raise ValueError("the encoding is not as it was written")
        if columns and len(encoding.feature_names or ()) != encoding.n_features:
            raise ValueError("the columns do not make up the features")
        for column in columns:
            is_text = column.categories is not None
            fills = (str,) if is_text else (int, float)
            is_whole = (
                all(isinstance(text, str) for text in (column.name, *(column.categories or ())))
                and isinstance(column.fill, (*fills, type(None)))
                and (is_text or column.fill is None or np.isfinite(column.fill))
            )
            if not is_whole:
                raise ValueError("a column is not as it was written")
        return encoding


def _day(text: str | None) -> str | None:
    return None if text is None else date.fromisoformat(text).isoformat()


# --- columns ---


def column_of(table: pd.DataFrame, name: str, where: str) -> pd.Series:
    """Return a column; an unknown name is reported with the nearest valid one."""
    if name in table.columns:
        return table[name]
    near = did_you_mean(name, map(str, table.columns))
    raise InputError(f"{where}: no column {name!r}{near}; it has {listed(table.columns)}")


def is_table(X: Any) -> bool:
    """Return whether X is a frame of pandas whose columns have names, not numbers."""
    return hasattr(X, "iloc") and all(isinstance(name, str) for name in getattr(X, "columns", [0]))


def learn_columns(
    table: pd.DataFrame, names: Sequence[str], categorical: str, missing: Missing, where: str
) -> tuple[Column, ...]:
    """Learn the categories and fill values of columns from the training rows."""
    from sklearn.impute import SimpleImputer

    columns = {name: _learn_column(table[name], categorical, missing, where) for name in names}
    if missing != "error":
        numeric = [name for name in names if columns[name].categories is None]
        imputer = SimpleImputer(strategy=missing.replace("-", "_"))
        for start in range(0, len(numeric), _COLUMNS_AT_ONCE):
            some = numeric[start : start + _COLUMNS_AT_ONCE]
            numbers = np.array(
                [_numbers(table[name], replace(columns[name], fill=np.nan), where) for name in some]
            ).T
            fills = imputer.fit(numbers).statistics_.tolist()
            columns |= {
                name: replace(columns[name], fill=fill)
                for name, fill in zip(some, fills, strict=True)
            }
    return tuple(columns.values())


def _learn_column(values: pd.Series, categorical: str, missing: Missing, where: str) -> Column:
    """Learn the categories of a column or its first day and, of text, the fill value."""
    from sklearn.impute import SimpleImputer
    from sklearn.preprocessing import OneHotEncoder

    name = str(values.name)
    numbers = _as_numbers(values)
    if np.isfinite(numbers).all():
        return Column(name)
    present = values.notna().to_numpy()
    if not present.any():
        raise InputError(f"{where}: column {name!r} has no values; drop it")
    is_text = np.isnan(numbers) & present
    if not is_text.any():
        return Column(name)
    texts = _texts(values.dropna(), where)[:, np.newaxis]
    is_duration = values.dtype.kind == "m"
    if (_is_date(values) and not is_duration) or _mostly(texts, _ISO_DATE):
        moments = _moments(values, where)
        what = "is not a date, as most values are; correct it or drop the column"
        _refuse(values, moments.isna().to_numpy() & present, what, where)
        return Column(name, origin=moments.min().date().isoformat())
    if _mostly(texts, _OTHER_DATE):
        what = "looks like a date: write dates as 2024-05-31 (ISO 8601), or drop the column"
        _refuse(values, is_text, what, where)
    _refuse_text(values, is_text, categorical, where)
    categories = OneHotEncoder().fit(texts).categories_[0].tolist()
    most = MOST_CATEGORIES if len(texts) > 2 * len(categories) else _FEW_CATEGORIES
    if len(categories) > most:
        raise InputError(
            f"{where}: column {name!r} has {len(categories):,} different texts in {len(texts):,} "
            f"rows, too many for a feature each; leave it out (--drop {name}, or drop in a config)"
        )
    most_frequent = None
    if missing != "error":
        most_frequent = SimpleImputer(strategy="most_frequent").fit(texts).statistics_[0]
    return Column(name, tuple(categories), most_frequent)


def _as_numbers(values: pd.Series) -> NDArray[np.float64]:
    """Return the values as numbers; NaN for what is missing, text or a date."""
    import pandas as pd

    if isinstance(values.dtype, np.dtype) and values.dtype.kind in "biuf":
        return values.to_numpy(np.float64)
    if _is_date(values):
        return np.full(len(values), np.nan)
    try:
        numbers = pd.to_numeric(values, errors="coerce")
    except OverflowError:  # an integer beyond every float; as text it is infinite
        numbers = pd.to_numeric(values.astype(str), errors="coerce")
    return numbers.to_numpy(dtype=np.float64, na_value=np.nan)


def _is_date(values: pd.Series) -> bool:
    """Whether the values are dates or times, which pandas would count in nanoseconds or months."""
    import pandas as pd

    kept = values.dtype.categories if isinstance(values.dtype, pd.CategoricalDtype) else values
    return kept.dtype.kind in "mM" or isinstance(kept.dtype, pd.PeriodDtype)


def _mostly(texts: NDArray[np.object_], pattern: str) -> bool:
    """Whether most different texts begin as a pattern says."""
    import pandas as pd

    distinct = pd.Series(texts.ravel()).drop_duplicates()
    return bool(distinct.str.match(pattern).mean() > 0.5)


def _texts(values: pd.Series, where: str) -> NDArray[np.object_]:
    try:
        return values.astype(str).to_numpy(dtype=object)
    except UnicodeDecodeError as error:
        raise InputError(
            f"{where}: column {values.name!r} holds bytes, neither numbers nor text; drop it"
        ) from error


def _refuse_text(
    values: pd.Series, is_text: NDArray[np.bool_], categorical: str, where: str
) -> None:
    """Refuse text, unless it is to be encoded and not a slip in a column of numbers."""
    is_date = _is_date(values)
    if is_text.sum() > values.notna().sum() / 2 and categorical == "one-hot" and not is_date:
        return
    advice = "drop the column" if is_date else "correct it or drop the column"
    if categorical == "error" and not is_date:
        advice = "drop the column, or encode text with categorical: one-hot"
    _refuse(values, is_text, f"is not a number; {advice}", where)


def _numbers(
    values: pd.Series, column: Column, where: str, n_before: int = 0
) -> NDArray[np.float64]:
    is_date = column.origin is not None
    numbers = _as_numbers(values) if column.origin is None else _days(values, column.origin, where)
    if np.isfinite(numbers).all():
        return numbers
    is_missing = values.isna().to_numpy()
    what = "is not a date such as 2024-05-31 (ISO 8601)" if is_date else "is not a number"
    _refuse(values, np.isnan(numbers) & ~is_missing, what, where, n_before)
    _refuse(values, np.isinf(numbers), "is not a finite number", where, n_before)
    return _filled(values, numbers, column.fill, where, n_before)


def _days(values: pd.Series, origin: str, where: str) -> NDArray[np.float64]:
    """Return days since a date; NaN for what is missing or no date."""
    import pandas as pd

    if pd.api.types.is_numeric_dtype(values.dtype):
        return np.full(len(values), np.nan)
    moments = _moments(values, where)
    since = moments.to_numpy("datetime64[us]") - np.datetime64(origin, "us")
    return np.where(moments.isna(), np.nan, since.astype(np.int64) / 86_400e6)


def _codes(texts: NDArray, categories: tuple[str, ...]) -> NDArray[np.intp]:
    import pandas as pd

    return pd.Index(categories, dtype=object).get_indexer(pd.Index(texts, dtype=object))


def _filled(
    values: pd.Series, array: NDArray, fill: float | str | None, where: str, n_before: int
) -> NDArray:
    is_missing = values.isna().to_numpy()
    if not is_missing.any():
        return array
    if fill is None:
        row = n_before + int(np.argmax(is_missing)) + 1
        raise InputError(
            f"{where}: column {values.name!r}, row {row}: the value is missing; fill it, drop the "
            "column, or impute with missing: mean, median or most-frequent"
        )
    return np.where(is_missing, fill, array)


def _refuse(
    values: pd.Series, wrong: NDArray[np.bool_], what: str, where: str, n_before: int = 0
) -> None:
    if wrong.any():
        row = int(np.argmax(wrong))
        raise InputError(
            f"{where}: column {values.name!r}, row {n_before + row + 1}: "
            f"{str(values.iloc[row])!r} {what}"
        )


def _moments(values: pd.Series, where: str) -> pd.Series:
    """Return dates in ISO 8601 as timestamps in UTC, anything else as NaT."""
    import pandas as pd

    if isinstance(values.dtype, pd.PeriodDtype):
        values = values.dt.to_timestamp()
    elif values.dtype.kind != "M":
        values = pd.Series(_texts(values, where), dtype=object)
    moments = pd.to_datetime(values, format="ISO8601", errors="coerce", utc=True)
    return moments.dt.as_unit("us")


# --- labels, groups and times ---


def signs(
    path: Path, labels: Sequence[object], positive: str | float | None
) -> NDArray[np.float64]:
    """Turn labels into -1 and +1; `positive` may be left out if they are 0 and 1, or -1 and 1.

    Raises
    ------
    InputError
        A missing label, one class only, or no row with the positive label.
    """
    codes, distinct = _factorised(path, labels, "label")
    names = [canonical(label) for label in distinct]
    if positive is None:
        if not set(names) <= {-1.0, 0.0, 1.0}:
            raise InputError(
                f"{path}: name the positive label (positive), one of {listed(distinct)}"
            )
        positive = 1
    is_positive = np.array([name == canonical(positive) for name in names])
    if len(set(names)) == 1:
        raise InputError(f"{path}: one class only, every label is {listed(distinct)}")
    if not is_positive.any():
        raise InputError(
            f"{path}: no row has the positive label {positive!r}; found {listed(distinct)}"
        )
    return np.where(is_positive[codes], 1.0, -1.0)


def canonical(label: object) -> object:
    """Make 1, 1.0, True, "1" and "+1" the same label."""
    try:
        return float(label)  # type: ignore[arg-type]
    except (TypeError, ValueError, OverflowError):  # no number, or an integer beyond every float
        return str(label).strip()


def number_groups(path: Path, groups: Sequence[object]) -> NDArray[np.int64]:
    """Return a number for each row, equal for rows of one group."""
    return _factorised(path, groups, "group")[0].astype(np.int64)


def order_in_time(values: pd.Series, where: str) -> NDArray[np.int64] | NDArray[np.float64]:
    """Return when each row was seen: numbers as they are, dates in microseconds since 1970.

    Dates and times may be text in ISO 8601, of UTC where they name no zone.

    Raises
    ------
    InputError
        A missing value, or one that is no number in a column of numbers, or no date.
    """
    import pandas as pd

    is_missing = values.isna().to_numpy()
    if is_missing.any():
        row = int(np.argmax(is_missing)) + 1
        raise InputError(f"{where}: column {values.name!r}, row {row}: the time is missing")
    if isinstance(values.dtype, np.dtype) and values.dtype.kind in "bi":
        return values.to_numpy(np.int64)
    numbers = _as_numbers(values)
    are_numbers = np.isfinite(numbers)
    if are_numbers.all():
        integers = pd.api.types.is_signed_integer_dtype(values.dtype)
        return values.to_numpy(np.int64) if integers else numbers
    moments = _moments(values, where)
    are_dates = moments.notna().to_numpy()
    if are_numbers.sum() > are_dates.sum():
        _refuse(values, ~are_numbers, "is not a number, as most times are", where)
    _refuse(
        values,
        ~are_dates,
        "is neither a number nor a date such as 2024-05-31 or 2024-05-31T18:00 (ISO 8601)",
        where,
    )
    return moments.to_numpy("datetime64[us]").astype(np.int64)


def _factorised(
    path: Path, values: Sequence[object], what: str
) -> tuple[NDArray[np.intp], list[object]]:
    import pandas as pd

    try:
        codes, distinct = pd.factorize(np.fromiter(values, dtype=object, count=len(values)))
    except TypeError as error:
        raise InputError(f"{path}: the {what}s are lists or mappings, not single values") from error
    if codes.min() < 0:
        raise InputError(f"{path}: row {int(np.argmin(codes)) + 1}: the {what} is missing")
    return codes, list(distinct)


def listed(names: Iterable[object], most: int = 8) -> str:
    """Return the names for a message, shortened if there are many."""
    shown = [f"{name:.15g}" if isinstance(name, float) else str(name) for name in names]
    more = f" and {len(shown) - most} more" if len(shown) > most else ""
    return ", ".join(shown[:most]) + more
