"""What a table of the user's holds, column by column, before anything is trained."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from precbench.data.own.encoding import as_numbers, is_date, mostly_dates, signs
from precbench.data.own.problems import TableError
from precbench.data.own.read import OwnTable, Source, open_table, read_own_file
from precbench.data.own.suspects import FEW_VALUES, auc_alone
from precbench.errors import InputError


class ColumnProfile(NamedTuple):
    """One column.

    Attributes
    ----------
    name : str
    holds : {"numbers", "dates", "text", "nothing"}
    distinct, missing : int
        Different values; rows without one.
    low, high : str
        The smallest and the largest; of text the most frequent one, and nothing.
    auc : float
        Of the column alone, in the better direction; NaN without labels.
    """

    name: str
    holds: str
    distinct: int
    missing: int
    low: str
    high: str
    auc: float


class Profile(NamedTuple):
    """A table.

    Attributes
    ----------
    rows, duplicates : int
        Rows, and those that repeat an earlier one in every column.
    positives : int or None
        None where the labels are not known.
    columns : list of ColumnProfile
        All but that of the labels.
    refusal : TableError or None
        Why it cannot be read with these options.
    """

    rows: int
    duplicates: int
    positives: int | None
    columns: list[ColumnProfile]
    refusal: TableError | None


def profile_table(source: Source, reading: Mapping[str, Any], allow: Sequence[str] = ()) -> Profile:
    """Describe a table.

    Parameters
    ----------
    source : path, DataFrame or OwnTable
    reading : mapping
        The options of `precbench.data.own.read.read_own_file` with which it is to be read.
    allow : sequence of str

    Raises
    ------
    InputError
        If it is no table, or cannot be read whatever the options.
    """
    own = open_table(source, reading.get("format"), reading.get("categorical", "error"))
    positives, columns = profile_columns(own, reading)
    refusal, table = None, own.frame
    assert table is not None
    try:
        read_own_file(own, **reading, allow=allow)
    except TableError as error:
        refusal = error
    duplicates = int(table.duplicated().sum())
    return Profile(len(table), duplicates, positives, columns, refusal)


def profile_columns(
    own: OwnTable, reading: Mapping[str, Any]
) -> tuple[int | None, list[ColumnProfile]]:
    """Return the number of positives, if the labels are known, and the other columns."""
    path, kind, table, _ = own
    if table is None:
        raise InputError(f"{path}: {kind} has no columns with names: a table is profiled")
    label, y = reading.get("label"), None
    with suppress(InputError):  # the refusal says so
        if label in table:
            y = signs(path, table[label].tolist(), reading.get("positive"))
    columns = [_column(str(name), table[name], y) for name in table if name != label]
    return None if y is None else int(np.sum(y > 0)), columns


def _column(name: str, values: pd.Series, y: NDArray[np.float64] | None) -> ColumnProfile:
    present, numbers = values.dropna(), as_numbers(values)
    texts = values.map(str, na_action="ignore")
    holds, low, high = "text", "", ""
    if present.empty:
        holds = "nothing"
    elif not (np.isnan(numbers) & values.notna()).any():
        holds, low, high = "numbers", f"{np.nanmin(numbers):g}", f"{np.nanmax(numbers):g}"
        texts = values
    elif is_date(values) or mostly_dates(texts.dropna().to_numpy(dtype=object)):
        holds, low, high = "dates", texts.min(), texts.max()
    else:
        low = str(texts.mode().iloc[0])
    distinct, auc = int(texts.nunique()), np.nan
    if y is not None and distinct > 1:
        in_groups = holds == "text" or distinct <= FEW_VALUES
        auc = auc_alone(texts, numbers, y, in_groups)
    return ColumnProfile(name, holds, distinct, len(values) - len(present), low, high, auc)
