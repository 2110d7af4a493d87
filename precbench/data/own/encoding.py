"""How columns of a table become features, and labels become -1 and +1."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Collection, Sequence
from dataclasses import asdict, dataclass, field, replace
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Self

import numpy as np
from numpy.typing import NDArray

from precbench.data.dataset import Imputed
from precbench.data.formats import Format
from precbench.data.own.problems import Problems, TableError, listed
from precbench.errors import InputError, did_you_mean
from precbench.text import count

if TYPE_CHECKING:
    import pandas as pd

MOST_CATEGORIES = 1000
_FEW_CATEGORIES = 100
"""More of them than half the rows are taken for identifiers."""
_WORDS: dict[str, tuple[str, ...]] = {"categorical": ("error", "one-hot"), "numeric": ()}
_MOST_LABELS = 10  # among which the positive one may be
_SEVERAL = 0.1  # of the values: text among numbers that is no slip, but a category such as 5more
_COLUMNS_AT_ONCE = 256  # whose missing values are learnt: each is copied as numbers
_ISO_DATE = r"\d{4}-\d{2}-\d{2}(?!\d)"
_OTHER_DATE = r"(\d{1,2}([./-])\d{1,2}\2\d{4}|\d{4}([./])\d{1,2}\3\d{1,2})(?!\d)"

Missing = Literal["error", "mean", "median", "most-frequent"]
Categorical = Literal["error", "one-hot"] | Sequence[str]


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

    @property
    def width(self) -> int:
        """Number of features of the column."""
        return 1 if self.categories is None else len(self.categories)

    def value_of(self, features: NDArray[np.float64]) -> str:
        """Return in words what `Encoding.encode` made features of.

        Parameters
        ----------
        features : ndarray of shape (width,)

        Returns
        -------
        str
            Of a number four digits or more, a date in ISO 8601, a category, or ``(unknown)`` for
            those that the training rows did not have.
        """
        if self.categories is not None:
            return self.categories[int(features.argmax())] if features.any() else "(unknown)"
        number = float(features[0])
        if self.origin is None:
            return _few_digits(number)
        moment = np.datetime64(self.origin, "m") + round(number * 1440)
        return str(moment).removesuffix("T00:00")


def _few_digits(number: float) -> str:
    """Return a number with four digits, or all of those before its point."""
    if not 1 <= abs(number) < 1e15:
        return f"{number:.4g}"
    n_before = len(f"{abs(number):.0f}")
    text = f"{number:.{max(0, 4 - n_before)}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


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
    missing : dict of str to ndarray
        Which of the rows that were encoded last lack a value, by column.
    """

    n_rows: int = 0
    filled: Counter[str] = field(default_factory=Counter)
    unseen: defaultdict[str, set[str]] = field(default_factory=lambda: defaultdict(set))
    uncategorised: Counter[str] = field(default_factory=Counter)
    missing: dict[str, NDArray[np.bool_]] = field(default_factory=dict)

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
    format : {"svmlight", "csv", "tsv", "parquet", "xlsx", "npz"}
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
        categorical: Categorical = "error",
        missing: Missing = "error",
        name: str = "the table",
        format: Format = "parquet",  # noqa: A002
        numeric: Sequence[str] = (),
    ) -> Self:
        """Learn from the training rows how columns of a table become features.

        Parameters
        ----------
        table : pandas.DataFrame of n_samples rows
        names : sequence of str
            The columns to take.
        categorical : {"error", "one-hot"} or sequence of str
            Treatment of text, or the columns whose values are categories though they may be
            numbers; ``"one-hot"`` among them stands for all columns of text.
        missing : {"error", "mean", "median", "most-frequent"}
            Treatment of missing values; in text the most frequent value replaces them.
        name : str
            Name of the table in messages.
        format : {"csv", "tsv", "parquet", "xlsx"}
        numeric : sequence of str
            Columns of nothing but numbers.

        Raises
        ------
        TableError
            Two columns of one name, text or missing values that are to be refused, a slip in a
            column of numbers or dates, too many different texts; all of them at once.
        """
        if not table.columns.is_unique:
            twice = table.columns[table.columns.duplicated()][0]
            raise InputError(f"{name}: two columns are named {twice!r}")
        columns = learn_columns(table, names, categorical, missing, name, numeric)
        return cls(format, sum(column.width for column in columns), dense=True, columns=columns)

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

        Raises
        ------
        InputError
            A missing column; text or a date in a column of numbers, infinity, or a missing value,
            with column and row.
        """
        gaps = Gaps() if gaps is None else gaps
        gaps.missing = {}
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
            is_missing = values.isna().to_numpy()
            if n_missing := int(np.count_nonzero(is_missing)):
                gaps.filled[column.name] += n_missing
                gaps.missing[column.name] = is_missing
        gaps.n_rows += len(table)
        return X

    def imputed(self, table: pd.DataFrame, how: Missing) -> Imputed | None:
        """Return which values of the training rows are filled in, None if none is."""
        columns = []
        for column, features in self.spans():
            missing = np.flatnonzero(table[column.name].isna())
            if len(missing):
                columns.append((features.start, features.stop, missing))
        return Imputed(how, tuple(columns)) if columns else None

    def spans(self) -> list[tuple[Column, slice]]:
        """Return the columns with their features; ``feature 1`` and so on where none has a name."""
        unnamed = (Column(f"feature {j}") for j in range(1, self.n_features + 1))
        columns = self.columns or tuple(unnamed)
        ends = np.cumsum([0, *(column.width for column in columns)]).tolist()
        return [*zip(columns, map(slice, ends, ends[1:]), strict=False)]

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
        from pydantic import TypeAdapter

        encoding = TypeAdapter(cls).validate_json(json.dumps(description), strict=True)
        if encoding.columns and len(encoding.feature_names or ()) != encoding.n_features:
            raise ValueError("the columns do not make up the features")
        for column in encoding.columns:
            date.fromisoformat(column.origin or "1970-01-01")
            fits = isinstance(column.fill, str) == (column.categories is not None)
            if not (column.fill is None or (fits and column.fill not in (np.inf, -np.inf))):
                raise ValueError("a column is not as it was written")
        return encoding


# --- columns ---


def column_of(
    table: pd.DataFrame, name: str, where: str, remedy: tuple[str, object] | None = None
) -> pd.Series:
    """Return a column; an unknown name is reported with the nearest valid one."""
    if name in table.columns:
        return table[name]
    near = did_you_mean(name, map(str, table.columns))
    text = f"no column {name!r}{near}; it has {listed(table.columns)}"
    raise TableError(where, text, remedy=remedy)


def is_table(X: Any) -> bool:
    """Return whether X is a frame of pandas whose columns have names, not numbers."""
    return hasattr(X, "iloc") and all(isinstance(name, str) for name in getattr(X, "columns", [0]))


def named_columns(
    given: Sequence[str], names: Collection[str], option: str, words: Sequence[str] = ()
) -> list[str]:
    """Return the columns that an option names, some of them together with commas between them.

    Some words may stand in place of a column.

    Raises
    ------
    InputError
        If there is no such column among the names.
    """
    found = [
        name
        for text in given
        for name in (
            [text] if text in names or "," not in text else map(str.strip, text.split(","))
        )
    ]
    for name in found:
        if name not in names and name not in words:
            near = did_you_mean(name, [*words, *map(str, names)])
            raise InputError(f"{option}: no column {name!r}{near} among {listed(names)}")
    return found


def learn_columns(
    table: pd.DataFrame,
    names: Sequence[str],
    categorical: Categorical,
    missing: Missing,
    where: str,
    numeric: Sequence[str] = (),
) -> tuple[Column, ...]:
    """Learn the categories and fill values of columns from the training rows.

    Raises
    ------
    TableError
        See `Encoding.learn`.
    """
    from sklearn.impute import SimpleImputer

    given = [categorical] if isinstance(categorical, str) else categorical
    takes_text = "one-hot" in given
    problems = Problems(where)
    kinds: dict[str, str] = {}
    for option, texts in (("categorical", given), ("numeric", numeric)):
        with problems.collected():
            for name in named_columns(texts, names, f"{where}: {option}", _WORDS[option]):
                if kinds.setdefault(name, option) != option:
                    raise InputError(f"{where}: {name!r} is both categorical and numeric")
    problems.tell()
    columns: dict[str, Column] = {}
    for name in names:
        values = table[name]
        with problems.collected():
            columns[name] = _learn_column(values, kinds.get(name), takes_text, missing, where)
        if missing == "error" and values.isna().any() and not values.isna().all():
            with problems.collected():
                _filled(values, np.empty(0), None, where, 0)
    problems.tell()
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


def _learn_column(
    values: pd.Series, kind: str | None, takes_text: bool, missing: Missing, where: str
) -> Column:
    """Learn the categories of a column or its first day and, of text, the fill value.

    What it holds is found from all its values, in whatever order they come.
    """
    name = str(values.name)
    present = values.notna().to_numpy()
    if not present.any():
        raise _problem(where, f"column {name!r} has no values; drop it", "drop", name)
    if kind == "categorical":
        if is_date(values):
            text = f"column {name!r} holds dates, which are no categories: leave it out of those"
            raise TableError(where, text)
        return _learn_categories(values, MOST_CATEGORIES, missing, where)
    numbers = as_numbers(values)
    is_text = np.isnan(numbers) & present
    if not is_text.any():
        _refuse(values, np.isinf(numbers), "is not a finite number", where, drop=True)
        return Column(name)
    if kind == "numeric":
        _refuse(values, is_text, "is not a number, as all values of numeric columns are", where)
    texts = _texts(values.dropna(), where)
    is_duration = values.dtype.kind == "m"
    if (is_date(values) and not is_duration) or mostly_dates(texts):
        moments = _moments(values, where)
        what = "is not a date, as most values are; correct it or drop the column"
        _refuse(values, moments.isna().to_numpy() & present, what, where, drop=True)
        return Column(name, origin=moments.min().date().isoformat())
    if _mostly(texts, _OTHER_DATE):
        what = "looks like a date: write dates as 2024-05-31 (ISO 8601), or drop the column"
        _refuse(values, is_text, what, where, drop=True)
    if is_date(values):
        _refuse(values, is_text, "is not a number; drop the column", where, drop=True)
    n_distinct = values.dropna().astype(str).nunique()
    most = MOST_CATEGORIES if len(texts) > 2 * n_distinct else _FEW_CATEGORIES
    share = is_text.sum() / present.sum()
    if share > 0.5 and takes_text:
        return _learn_categories(values, most, missing, where)
    if share > 0.5 and n_distinct > most:
        raise _too_many(values, n_distinct, len(texts), where)
    advice, remedy = "correct it or drop the column", "drop"
    if share > 0.5:
        advice = "drop the column, or encode text with categorical: one-hot"
        remedy = "categorical"
    elif (
        share >= _SEVERAL
        and n_distinct <= _FEW_CATEGORIES
        and is_text.sum() >= 2 * values[is_text].nunique()
    ):
        advice = (
            f"as {present.sum() - is_text.sum():,} of {present.sum():,} values are; name the "
            "column in categorical, correct the text, or drop the column"
        )
        remedy = "categorical"
    row = int(np.argmax(is_text))
    found = f"row {row + 1}: {str(values.iloc[row])!r}"
    joined = "," if advice.startswith("as ") else ";"
    raise TableError(
        where,
        f"column {name!r}, {found} is not a number{joined} {advice}",
        kind="text" if share > 0.5 else "",
        column=name,
        place=found,
        remedy=(remedy, name),
    )


def _learn_categories(values: pd.Series, most: int, missing: Missing, where: str) -> Column:
    from sklearn.impute import SimpleImputer
    from sklearn.preprocessing import OneHotEncoder

    texts = _texts(values.dropna(), where)[:, np.newaxis]
    categories = OneHotEncoder().fit(texts).categories_[0].tolist()
    if len(categories) > most:
        raise _too_many(values, len(categories), len(texts), where)
    most_frequent = None
    if missing != "error":
        most_frequent = SimpleImputer(strategy="most_frequent").fit(texts).statistics_[0]
    return Column(str(values.name), tuple(categories), most_frequent)


def _too_many(values: pd.Series, n_distinct: int, n_rows: int, where: str) -> TableError:
    name = str(values.name)
    if n_distinct == n_rows > _FEW_CATEGORIES:
        text = (
            f"column {name!r} has another text in each of {n_rows:,} rows and looks like an "
            "identifier; name it in id, or in drop"
        )
        return TableError(where, text, kind="identifier", column=name, remedy=("id", name))
    text = (
        f"column {name!r} has {n_distinct:,} different texts in {n_rows:,} rows, too many for a "
        f"feature each; leave it out (--drop {name}, or drop in a config)"
    )
    return _problem(where, text, "drop", name)


def _problem(where: str, text: str, option: str, column: str) -> TableError:
    return TableError(where, text, column=column, remedy=(option, column))


def as_numbers(values: pd.Series) -> NDArray[np.float64]:
    """Return the values as numbers; NaN for what is missing, text or a date."""
    import pandas as pd

    if isinstance(values.dtype, np.dtype) and values.dtype.kind in "biuf":
        return values.to_numpy(np.float64)
    if is_date(values):
        return np.full(len(values), np.nan)
    try:
        numbers = pd.to_numeric(values, errors="coerce")
    except OverflowError:  # an integer beyond every float; as text it is infinite
        numbers = pd.to_numeric(values.astype(str), errors="coerce")
    return numbers.to_numpy(dtype=np.float64, na_value=np.nan)


def is_date(values: pd.Series) -> bool:
    """Whether the values are dates or times, which pandas would count in nanoseconds or months."""
    import pandas as pd

    kept = values.dtype.categories if isinstance(values.dtype, pd.CategoricalDtype) else values
    return kept.dtype.kind in "mM" or isinstance(kept.dtype, pd.PeriodDtype)


def mostly_dates(texts: NDArray[np.object_]) -> bool:
    """Whether most different texts begin with a date in ISO 8601."""
    return _mostly(texts, _ISO_DATE)


def _mostly(texts: NDArray[np.object_], pattern: str) -> bool:
    """Whether most different texts begin as a pattern says."""
    import pandas as pd

    distinct = pd.Series(texts.ravel()).drop_duplicates()
    return bool(distinct.str.match(pattern).mean() > 0.5)


def _texts(values: pd.Series, where: str) -> NDArray[np.object_]:
    """Return the values as text; 7.0, which an integer is beside a missing value, as 7."""
    import pandas as pd

    try:
        if values.dtype.kind == "f":
            codes, distinct = pd.factorize(values.to_numpy(np.float64), use_na_sentinel=False)
            shown = [str(int(v) if v.is_integer() else v) for v in distinct.tolist()]
            return np.array(shown, dtype=object)[codes]
        return values.astype(str).to_numpy(dtype=object)
    except UnicodeDecodeError as error:
        text = f"column {values.name!r} holds bytes, neither numbers nor text; drop it"
        raise _problem(where, text, "drop", str(values.name)) from error


def _numbers(
    values: pd.Series, column: Column, where: str, n_before: int = 0
) -> NDArray[np.float64]:
    dated = column.origin is not None
    numbers = as_numbers(values) if column.origin is None else _days(values, column.origin, where)
    if np.isfinite(numbers).all():
        return numbers
    is_missing = values.isna().to_numpy()
    what = "is not a date such as 2024-05-31 (ISO 8601)" if dated else "is not a number"
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
        raise TableError(
            where,
            f"column {values.name!r}, row {row}: the value is missing; fill it, drop the column, "
            "or impute with missing: mean, median or most-frequent",
            kind="missing",
            column=str(values.name),
            place=f"row {row}",
            remedy=("missing", "median"),
        )
    return np.where(is_missing, fill, array)


def _refuse(
    values: pd.Series,
    wrong: NDArray[np.bool_],
    what: str,
    where: str,
    n_before: int = 0,
    *,
    drop: bool = False,
) -> None:
    """Name the first wrong value; `drop` tells whether the column can be left out instead."""
    if wrong.any():
        row = int(np.argmax(wrong))
        name = str(values.name)
        text = f"column {name!r}, row {n_before + row + 1}: {str(values.iloc[row])!r} {what}"
        raise TableError(where, text, column=name, remedy=("drop", name) if drop else None)


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

    Of three kinds one may mean that a row has no label, so that `positive` is needed.

    Raises
    ------
    InputError
        A missing label, one class only, or no row with the positive label.
    """
    codes, distinct = _factorised(path, labels, "label")
    names = [canonical(label) for label in distinct]
    if positive is None:
        if not set(names) <= {-1.0, 0.0, 1.0} or len(set(names)) > 2:
            text = f"name the positive label (positive), one of {listed(distinct)}"
            raise TableError(str(path), text, remedy=_rarest(codes, distinct))
        positive = 1
    is_positive = np.array([name == canonical(positive) for name in names])
    if len(set(names)) == 1:
        raise InputError(f"{path}: one class only, every label is {listed(distinct)}")
    if not is_positive.any():
        text = f"no row has the positive label {positive!r}; found {listed(distinct)}"
        raise TableError(str(path), text, remedy=_rarest(codes, distinct))
    return np.where(is_positive[codes], 1.0, -1.0)


def _rarest(codes: NDArray[np.intp], labels: list[object]) -> tuple[str, object] | None:
    """Return a proposal for the positive label, where there are few to choose from."""
    if not 2 <= len(labels) <= _MOST_LABELS:
        return None
    return "positive", listed([labels[int(np.argmin(np.bincount(codes)))]])


def canonical(label: object) -> object:
    """Make 1, 1.0, True, "1" and "+1" the same label."""
    try:
        return float(label)  # type: ignore[arg-type]
    except (TypeError, ValueError, OverflowError):  # no number, or an integer beyond every float
        text = str(label).strip()
        return {"True": 1.0, "False": 0.0}.get(text, text)


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
    numbers = as_numbers(values)
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
