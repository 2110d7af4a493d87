"""Description of a table, column by column, before anything is trained."""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

import numpy as np
from numpy.typing import NDArray

from precbench.core.errors import InputError
from precbench.tables.detectors import moments_of
from precbench.tables.own_file import read_amounts, read_own_file
from precbench.tables.own_table import OwnTable, Source, open_table
from precbench.tables.problems import TableError
from precbench.tables.roles import signs
from precbench.tables.suspects import FEW_VALUES, auc_alone

_MARKS = {".": "decimal point", ",": "decimal comma"}  # a date format stands for itself


def profile_table(
    source: Source, reading: Mapping[str, Any], allow: Sequence[str] = (), gains: str | None = None
) -> dict[str, Any]:
    """Describe a table, read with the given options of `read_own_file`; `gains` is a column.

    Return ``rows``, ``duplicates`` of earlier rows, ``positives`` (None if the labels are unknown),
    ``columns`` (see `profile_columns`), and ``refusal``: the error of reading the table, or None.
    """
    own = open_table(source, reading)
    positives, columns = profile_columns(own, reading)
    refusal, table = None, own.frame
    try:
        if gains is not None:  # read only for the errors
            read_amounts(own, gains, "--gain-column")
        read_own_file(own, **reading, allow=allow)
    except TableError as error:
        refusal = error
    return {
        "rows": len(table), "positives": positives, "duplicates": int(table.duplicated().sum()),
        "columns": columns, "refusal": refusal,
    }  # fmt: skip


def profile_columns(
    own: OwnTable, reading: Mapping[str, Any]
) -> tuple[int | None, list[dict[str, Any]]]:
    """Return the number of positives, None if unknown, and a description of each other column.

    ``low`` and ``high`` are the smallest and largest value; for text ``low`` is the most frequent
    value. ``auc`` is the AUC of the column as a score in the better direction, None without labels.
    """
    if own.frame is None:
        raise InputError(f"{own.path}: {own.format} is no table; give CSV, TSV, Parquet or XLSX")
    label, y = reading.get("label"), None
    with suppress(InputError):  # unknown labels; `profile_table` returns the error
        if label in own.frame:
            y = signs(own.column(str(label)), own.where, reading.get("positive"))
    columns = [_column(own, str(name), y) for name in own.frame if name != label]
    return None if y is None else int(np.sum(y > 0)), columns


def _column(own: OwnTable, name: str, y: NDArray[np.float64] | None) -> dict[str, Any]:
    # Return the description of a column, as in `profile_columns`; y has the labels, if known.
    values, content = own.column(name), own.content(name)
    comparable = values.map(str, na_action="ignore")
    holds, notation, low, high = content.holds, content.notation, "", ""
    if holds == "numbers":
        low, high = f"{np.nanmin(content.numbers):g}", f"{np.nanmax(content.numbers):g}"
        comparable = values  # 1 and 1.0 are one value
    elif holds == "dates":
        moments = moments_of(values, own.where, content.notation)
        low, high = (str(moment.date()) for moment in (moments.min(), moments.max()))
    elif holds == "text":
        low = str(comparable.mode().iloc[0])
    distinct, auc = int(comparable.nunique()), None
    if y is not None and distinct > 1:  # text and few values rank by their shares of positives
        in_groups = holds == "text" or distinct <= FEW_VALUES
        auc = auc_alone(comparable, content.numbers, y, in_groups=in_groups)
    return {
        "name": name,
        "holds": f"{holds} ({_MARKS.get(notation, notation)})" if notation else holds,
        "distinct": distinct, "missing": int(values.isna().sum()),
        "low": low, "high": high, "auc": auc,
    }  # fmt: skip
