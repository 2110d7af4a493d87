"""Rows as the library is given them: a labelled table, or X and y."""

import hashlib
import warnings
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import joblib
import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.utils import check_array, check_consistent_length

from precbench.advice.length import Worth
from precbench.core.errors import InputError
from precbench.data.dataset import Dataset, Imputed, split_key_of
from precbench.solvers.common.rows import canonical, with_short_indices
from precbench.tables.encoding import Encoding
from precbench.tables.own_file import read_amounts
from precbench.tables.own_table import OwnTable, is_frame, table_of
from precbench.tables.problems import Problems
from precbench.tables.reading import Categorical, Label, Missing
from precbench.tables.roles import number_groups, order_in_time, signs_of_rows
from precbench.tables.suspects import look_for_suspects


def table_options(
    label: str | None,
    positive: Label | Sequence[Label] | None,
    groups: Any,
    time: Any,
    categorical: Categorical,
    missing: Missing,
    reading: Mapping[str, Any],
) -> dict[str, Any]:
    """Return the options of reading a labelled table, without defaults of two.

    Refuse arrays in place of the names of columns.
    """
    options: dict[str, Any] = {
        "label": label,
        "positive": positive,
        "groups": column_name("groups", groups),
        "time": column_name("time", time),
        **reading,
    }
    if not isinstance(categorical, str) or categorical != "error":
        options["categorical"] = categorical
    if missing != "error":
        options["missing"] = missing
    return options


def column_name(option: str, name: Any) -> str | None:
    """Return the name of a column; refuse an array."""
    if name is not None and not isinstance(name, str):
        raise InputError(
            f"{option} of a labelled table is the name of a column; give y otherwise"
        )
    return name


def refuse_table_options(options: Mapping[str, Any]) -> None:
    """Refuse options of a labelled table that are given beside y."""
    for name, value in options.items():
        if value:
            raise InputError(f"{name} is for a labelled table; leave out {name}, or y")


class Gains(NamedTuple):
    """What hits and rows are worth.

    Attributes
    ----------
    worth : Worth or None
        None without a gain and a cost.
    amounts : ndarray or None
        What each row gains as a hit; None if all hits gain the same.
    """

    worth: Worth | None
    amounts: NDArray[np.float64] | None


def gains_of_table(own: OwnTable, gain: Any, cost: float) -> Gains:
    """Return the gains of a labelled table, where `gain` may name a column."""
    if isinstance(gain, str):
        amounts = read_amounts(own, gain, "gain")
        return Gains(Worth(column=gain, cost=cost), amounts)
    if gain is None and not cost:
        return Gains(worth=None, amounts=None)
    return Gains(Worth(gain, cost=cost), amounts=None)


def gains_of_rows(gain: Any, cost: float, n_rows: int) -> Gains:
    """Return the gains of bare rows, where `gain` may be one for each row."""
    if gain is None and not cost:
        return Gains(worth=None, amounts=None)
    if np.ndim(gain) == 0:  # a number, or a cost alone
        return Gains(Worth(gain, cost=cost), amounts=None)
    amounts = amounts_of_rows(gain, "gain", n_rows)
    return Gains(Worth(column="gain", cost=cost), amounts)


def amounts_of_rows(values: Any, name: str, n_rows: int) -> NDArray[np.float64]:
    """Return the argument `name`, a finite number of at least 0 for each row."""
    amounts = _plain(values, n_rows, name)  # numbers, flags or text
    if amounts.dtype.kind in "fiub":
        is_amount = np.isfinite(amounts) & (amounts >= 0)
    else:
        is_amount = np.zeros(n_rows, dtype=bool)
    if not is_amount.all():
        row = int(is_amount.argmin())
        raise InputError(
            f"{name} of row {row + 1} is {amounts[row].item()!r}; give a finite number"
            " of at least 0"
        )
    return amounts


class ReadRows(NamedTuple):
    """A data set of rows and labels, and the encoding learnt from a frame."""

    dataset: Dataset
    encoding: Encoding | None


def read_rows(
    X: Any,
    y: Any,
    positive: Label | Sequence[Label] | None,
    categorical: Categorical,
    missing: Missing,
    groups: Any,
    time: Any,
) -> ReadRows:
    """Return a data set of these rows and labels; a frame is encoded.

    Its random splits follow the labels, as those of a table of the same rows.
    """
    signs = signs_of_rows(y, positive)
    roles: dict[str, Any] = {"groups": None, "time": None, "imputed": None}
    encoding = None
    if is_frame(X):
        table = table_of(X, "X")
        encoding = Encoding.learn(table, categorical=categorical, missing=missing)
        matrix = _checked_matrix(encoding.encode(table.frame, "X"), signs)
        roles["imputed"] = encoding.imputed(table.frame, missing)
        _warn_of_leaks(table, encoding, signs)
    else:
        matrix = _checked_matrix(X, signs)
    if groups is not None:
        column = pd.Series(_plain(groups, len(signs), "groups"), name="groups")
        roles["groups"] = number_groups(column, "groups")
    if time is not None:
        column = pd.Series(_plain(time, len(signs), "time"), name="time")
        roles["time"] = order_in_time(column, "time")
    if isinstance(matrix, np.ndarray):
        matrix = np.ascontiguousarray(matrix)
    else:
        matrix = with_short_indices(canonical(matrix))
    sha256 = content_hash(matrix, signs, **roles)
    dataset = Dataset(
        name="X",
        title="X",
        X=matrix,
        y=signs,
        sha256=sha256,
        split_key=split_key_of(signs),
        **roles,
    )
    return ReadRows(dataset, encoding)


def _warn_of_leaks(
    table: OwnTable, encoding: Encoding, signs: NDArray[np.float64]
) -> None:
    """Warn of columns of a frame that look like the label."""
    names = [column.name for column in encoding.columns]
    problems = Problems("X")
    # Only leaks are looked for: a column that is named as numeric is no suspect.
    look_for_suspects(table, names, signs, problems, numeric=names)
    for leak in problems.errors:
        warnings.warn(f"{leak}", stacklevel=4)  # the line that calls `compare` or `fit`


def _checked_matrix(X: Any, signs: NDArray[np.float64]) -> Any:
    """Return rows as a matrix of finite numbers, one row for each label."""
    try:
        matrix = check_array(X, accept_sparse="csr", dtype=np.float64, input_name="X")
        check_consistent_length(matrix, signs)
    except ValueError as error:
        first_line = f"{error}".partition("\n")[0].rstrip(".")
        advice = "give a matrix of finite numbers and one label per row"
        if first_line == "Input X contains NaN":
            advice = "give a DataFrame, and how to fill missing values (missing)"
        raise InputError(f"X or y cannot be used: {first_line}; {advice}") from error
    return matrix


def _plain(column: Any, n_rows: int, name: str) -> Any:
    """Return the argument `name` as an array with a number, flag or text for each row.

    Refuse gaps.
    """
    values = np.asarray(column)
    if values.shape != (n_rows,):
        raise InputError(
            f"{name} must have the shape ({n_rows},) of y, found {values.shape}"
        )
    is_missing = np.asarray(pd.isna(values))
    if is_missing.any():
        raise InputError(
            f"{name}: the value of row {int(is_missing.argmax()) + 1} is missing; fill"
            " it in or remove the row"
        )
    is_plain = values.dtype.kind in "fiubU"  # numbers, flags and text
    return values if is_plain else values.astype(str)


def content_hash(
    X: Any,
    signs: NDArray,
    groups: NDArray | None,
    time: NDArray | None,
    imputed: Imputed | None,
) -> str:
    """Return the hash of rows and labels, by which their trials are stored.

    Equal rows have one hash: sparse rows are sorted, and have int32 indices.
    """
    parts: list[Any] = [X]
    if not isinstance(X, np.ndarray):
        parts = [X.data, X.indices, X.indptr, X.shape]
    parts += [signs, groups, time]
    if imputed is not None:
        # As plain tuples: the hash would depend on the name of their class.
        parts += [imputed.how, *map(tuple, imputed.columns)]
    content = joblib.hash(tuple(parts))
    return hashlib.sha256(content.encode()).hexdigest()
