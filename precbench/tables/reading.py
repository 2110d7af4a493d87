"""The options of reading a user's table, by which type checkers know their names."""

from collections.abc import Sequence
from typing import Literal, TypedDict

from precbench.core.kinds import Format

Label = str | float
Missing = Literal["error", "mean", "median", "most-frequent"]
Categorical = Literal["error", "one-hot"] | Sequence[str]


class LayoutOptions(TypedDict, total=False):
    """How a file is written; each is detected where it can be."""

    format: Format | None
    separator: str | None
    encoding: str | None
    decimal: str | None
    date_format: str | None
    sheet: str | None
    skip_rows: int


class ColumnOptions(LayoutOptions, total=False):
    """Columns that are no features, or whose text or digits are numbers."""

    drop: Sequence[str]
    id: Sequence[str]
    numeric: Sequence[str]


class ReadingOptions(ColumnOptions, total=False):
    """How the columns of a labelled table are read."""

    positive: Label | Sequence[Label] | None
    groups: str | None
    time: str | None
    categorical: Categorical
    missing: Missing
