"""Description of a table, column by column, before anything is trained."""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from precbench.core.errors import InputError
from precbench.tables.detectors import Content, moments_of
from precbench.tables.own_file import read_amounts, read_own_file
from precbench.tables.own_table import OwnTable
from precbench.tables.problems import TableError
from precbench.tables.roles import number_groups, signs
from precbench.tables.suspects import FEW_VALUES, auc_alone

# How a decimal mark is called; a date format stands for itself.
_MARKS = {".": "decimal point", ",": "decimal comma"}


@dataclass(frozen=True)
class ColumnProfile:
    """What a column of a table holds.

    Attributes
    ----------
    name : str
    holds : str
        Numbers, dates or text, with the notation where it was detected.
    distinct, missing : int
        Different values, and rows without a value.
    low, high : str
        The smallest and the largest value; for text ``low`` is the most frequent value.
    auc : float or None
        The AUC of the column as a score, in the better direction; None without labels.
    """

    name: str
    holds: str
    distinct: int
    missing: int
    low: str
    high: str
    auc: float | None


@dataclass(frozen=True, eq=False)
class TableProfile:
    """What a table holds, and whether it can be compared or fitted as it stands.

    Attributes
    ----------
    name : str
    rows : int
    positives : int or None
        None if the labels are unknown.
    groups : int or None
        Number of groups; None without a column of groups.
    duplicates : int
        Rows that are equal to an earlier row.
    columns : tuple of ColumnProfile
        All but the label.
    refusal : TableError or None
        Why `fit` and `compare` refuse the table as it stands.
    outlook : str or None
        What `compare` would train, and for how long; None if it refuses the table.
    """

    name: str
    rows: int
    positives: int | None
    groups: int | None
    duplicates: int
    columns: tuple[ColumnProfile, ...]
    refusal: TableError | None = None
    outlook: str | None = None

    @property
    def frame(self) -> pd.DataFrame:
        """The columns as a table, a row for each."""
        return pd.DataFrame([asdict(column) for column in self.columns])

    def to_dict(self) -> dict[str, Any]:
        """Return the profile as values of JSON."""
        return {
            "rows": self.rows,
            "positives": self.positives,
            "duplicates": self.duplicates,
            "columns": [asdict(column) for column in self.columns],
            "refusal": None if self.refusal is None else str(self.refusal),
            "compare": self.outlook,
        }

    def _repr_html_(self) -> str:
        return self.frame.to_html(index=False)


def profile_table(
    own: OwnTable,
    reading: Mapping[str, Any],
    allow: Sequence[str] = (),
    gain_column: str | None = None,
) -> TableProfile:
    """Describe a table that is read with the given options of `read_own_file`."""
    frame = _require_frame(own)
    y = _labels(own, reading)
    refusal = None
    try:
        if gain_column is not None:  # read only for the errors
            read_amounts(own, gain_column, "--gain-column")
        read_own_file(own, **reading, allow=allow)
    except TableError as error:
        refusal = error
    return TableProfile(
        name=own.where,
        rows=len(frame),
        positives=None if y is None else int(np.count_nonzero(y > 0)),
        groups=_count_groups(own, reading.get("groups")),
        duplicates=int(frame.duplicated().sum()),
        columns=profile_columns(own, reading),
        refusal=refusal,
    )


def profile_columns(
    own: OwnTable, reading: Mapping[str, Any]
) -> tuple[ColumnProfile, ...]:
    """Describe each column of a table but the label."""
    frame = _require_frame(own)
    y = _labels(own, reading)
    label = reading.get("label")
    return tuple(_profile_column(own, str(name), y) for name in frame if name != label)


def _require_frame(own: OwnTable) -> pd.DataFrame:
    if own.frame is None:
        raise InputError(
            f"{own.path}: {own.format} is no table; give CSV, TSV, Parquet or XLSX"
        )
    return own.frame


def _labels(own: OwnTable, reading: Mapping[str, Any]) -> NDArray[np.float64] | None:
    """Return -1 or +1 for each row; None if the labels cannot be read."""
    label = reading.get("label")
    if label in own.frame:
        # `profile_table` returns the error of reading the table
        with suppress(InputError):
            return signs(own.column(str(label)), own.where, reading.get("positive"))
    return None


def _count_groups(own: OwnTable, column: str | None) -> int | None:
    if column is None or column not in own.frame:
        return None
    return len(np.unique(number_groups(own.column(column), own.where)))


def _profile_column(
    own: OwnTable, name: str, y: NDArray[np.float64] | None
) -> ColumnProfile:
    """Describe a column; its AUC needs the labels `y`."""
    values = own.column(name)
    content = own.content(name)
    texts = values.map(str, na_action="ignore")
    # As texts, 1 and 1.0 would differ.
    comparable = values if content.holds == "numbers" else texts
    distinct = int(comparable.nunique())
    auc = None
    if y is not None and distinct > 1:
        # Text and few values rank by their shares of positives.
        in_groups = content.holds == "text" or distinct <= FEW_VALUES
        auc = auc_alone(comparable, content.numbers, y, in_groups=in_groups)
    ends = _ends(own, name, content, texts)
    return ColumnProfile(
        name=name,
        holds=_holds_in_words(content),
        distinct=distinct,
        missing=int(values.isna().sum()),
        low=ends.low,
        high=ends.high,
        auc=auc,
    )


class _Ends(NamedTuple):
    """The smallest and the largest value; of text the most frequent one and ""."""

    low: str
    high: str


def _ends(own: OwnTable, name: str, content: Content, texts: pd.Series) -> _Ends:
    """Return the least and greatest value of a column, of text the most frequent."""
    if content.holds == "numbers":
        smallest = np.nanmin(content.numbers)
        largest = np.nanmax(content.numbers)
        return _Ends(f"{smallest:g}", f"{largest:g}")
    if content.holds == "dates":
        moments = moments_of(own.column(name), own.where, content.notation)
        return _Ends(str(moments.min().date()), str(moments.max().date()))
    if content.holds == "text":
        most_frequent = texts.mode().iloc[0]
        return _Ends(str(most_frequent), "")
    return _Ends("", "")


def _holds_in_words(content: Content) -> str:
    if not content.notation:
        return content.holds
    return f"{content.holds} ({_MARKS.get(content.notation, content.notation)})"
