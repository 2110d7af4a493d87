"""Labels, groups, ids and times of the rows of a table."""

import re
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from precbench.data.own.content import Content, as_numbers, content_of, moments_of
from precbench.data.own.problems import TableError, listed
from precbench.errors import InputError
from precbench.text import count

Label = str | float
_MOST_LABELS = 10  # among which the positive one may be
_POSITIVE = ("1", "yes", "y", "true", "t", "positive", "pos")


def signs(
    labels: pd.Series,
    where: str,
    positive: Label | Sequence[Label] | None = None,
    *,
    one_class: bool = False,
) -> NDArray[np.float64]:
    """Return labels as -1 and +1; warn if several different labels count as negative.

    `positive` may be left out for the labels 0 and 1, or -1 and 1. With `one_class` all labels may
    be equal, as in a month without hits.
    """
    codes, distinct = _factorised(labels, where, "label")  # distinct[codes] are the labels
    words = {*labels.map(str).str.strip().str.lower()}
    if words & {"true", "false"} and words & {"0", "1", "0.0", "1.0"}:
        warnings.warn(
            f"{where}: in column {labels.name!r} TRUE counts as the label 1, and FALSE as 0; "
            "correct the labels if that is wrong",
            stacklevel=3,
        )
    counts = np.bincount(codes)
    positives = [positive] if isinstance(positive, str | int | float) else positive
    # If all labels are equal, their sign is known from `positive`, or from a usual 1, 0 or -1.
    is_known = positives is not None or canonical(distinct[0]) in (-1, 0, 1)
    if one_class and len(distinct) == 1 and is_known:
        is_hit = canonical(distinct[0]) in map(canonical, positives or [1])
        warnings.warn(
            f"{where}: every label is {listed(distinct)}, so all rows count as "
            f"{'positive' if is_hit else 'negative'}; name the positive label if that is wrong",
            stacklevel=3,
        )
        return np.full(len(codes), 1.0 if is_hit else -1.0)
    is_positive = are_positive(distinct, where, positives, counts)
    negatives = np.flatnonzero(~is_positive).tolist()
    if positives is not None and len(negatives) > 1:
        folded = {str(label).strip().casefold() for label in positives}  # without letter case
        counted = listed([f"{str(distinct[i]).strip()} ({counts[i]:,})" for i in negatives])
        similar = [distinct[i] for i in negatives if str(distinct[i]).strip().casefold() in folded]
        case = f", of which {listed(similar)} differ only in letter case" if similar else ""
        warnings.warn(
            f"{where}: labels other than {listed(positives)} count as negative: {counted}{case}; "
            "name all positive labels if that is wrong",
            stacklevel=3,
        )
    return np.where(is_positive[codes], 1.0, -1.0)


def are_positive(
    labels: Sequence[object],
    where: str,
    positive: Sequence[Label] | None,
    counts: NDArray[np.intp] | None = None,
) -> NDArray[np.bool_]:
    """Return whether each distinct label is positive; `counts` has the number of rows of each."""
    names = [canonical(label) for label in labels]
    counts = np.ones(len(labels), dtype=np.intp) if counts is None else counts
    if positive is None:
        if not set(names) <= {-1, 0, 1} or len(names) > 2:
            raise TableError(
                where,
                f"name the positive label (positive), one of {listed(labels)}",
                remedy=_likely_positive(labels, counts),
            )
        positive = [1]
    given = {canonical(label): label for label in positive}  # as spelled in the option
    if len(names) == 1:
        raise InputError(f"{where}: every label is {listed(labels)}; add rows of another class")
    if unknown := [label for name, label in given.items() if name not in names]:
        raise TableError(
            where,
            f"no row has the positive label {unknown[0]!r}; name one of {listed(labels)}",
            remedy=_likely_positive(labels, counts),
        )
    is_positive = np.array([name in given for name in names])
    if is_positive.all():
        raise InputError(f"{where}: one class, all of {listed(labels)} are in positive; name fewer")
    return is_positive


def _likely_positive(
    labels: Sequence[object], counts: NDArray[np.intp]
) -> tuple[str, list[str]] | None:
    # Return a remedy: all spellings of the likely positive label (typical, or rarest); or None.
    spellings: dict[str, list[tuple[int, str]]] = {}  # by lower case: number of rows and spelling
    for label, n_rows in zip(labels, counts.tolist(), strict=True):
        text = listed([label]).strip()
        spellings.setdefault(text.casefold(), []).append((n_rows, text))
    if not 2 <= len(spellings) <= _MOST_LABELS:
        return None  # one label, or too many for a guess
    typical = [name for name in _POSITIVE if name in spellings]
    rarest_first = sorted(spellings, key=lambda name: sum(n for n, _ in spellings[name]))
    likely, *_ = typical + rarest_first
    return "positive", [text for _, text in sorted(spellings[likely], reverse=True)]


def canonical(label: object) -> object:
    """Return equal labels for 1, 1.0, True, "1" and "+1"; the codes 01 and 1.10 stay text."""
    if isinstance(label, float | np.floating):
        return int(label) if label.is_integer() else float(label)
    text = str(label).strip()
    if re.fullmatch(r"[+-]?(0|[1-9][0-9]{0,299})(\.0+)?", text):  # below the largest double
        return int(text.partition(".")[0])
    if re.fullmatch(r"[+-]?(0|[1-9][0-9]{0,299})?\.[0-9]*[1-9]", text):
        return canonical(float(text))
    return {"true": 1, "false": 0}.get(text.lower(), text)


def number_groups(groups: pd.Series, where: str) -> NDArray[np.int64]:
    """Return a number for each row, equal for rows of one group."""
    return _factorised(groups, where, "group")[0].astype(np.int64)  # [0]: the codes


def require_unique(values: pd.Series, where: str) -> None:
    """Refuse a column as an id unless it has a different value in each row."""
    if (n_distinct := values.map(str).nunique()) < len(values):
        raise InputError(
            f"{where}: column {values.name!r} has {n_distinct:,} different values in "
            f"{len(values):,} rows, so it cannot be an id; name it in groups if rows with the same "
            "value belong together, otherwise in drop"
        )


def require_same_rows(X: Any, **columns: Any) -> None:
    """Refuse as `columns` the name of a column, and a Series with the index of X out of order."""
    for name, values in columns.items():  # values will be taken by places, not by the index
        if isinstance(values, str):
            raise InputError(f"{name} must be one value per row, found {values!r}; give an array")
        are_indexed = isinstance(X, pd.DataFrame) and isinstance(values, pd.Series)
        if are_indexed and not values.index.equals(X.index) and set(values.index) == set(X.index):
            raise InputError(
                f"{name} has the index of X in another order; give {name}.loc[X.index]"
            )


def order_in_time(
    values: pd.Series, where: str, date_format: str | None = None
) -> NDArray[np.int64] | NDArray[np.float64]:
    """Return the time of each row: numbers as they are, dates in microseconds since 1970.

    Dates and times may be text, in UTC without a zone.
    """
    if values.isna().any():
        name, row = values.name, values.index[values.isna()][0] + 1
        raise InputError(
            f"{where}: column {name!r}, row {row}: the time is missing; fill it, or remove the row"
        )
    content = content_of(values, where, date_format=date_format, is_time=True)
    refuse_two_readings(values, content, where)
    are_numbers = np.isfinite(content.numbers)
    if are_numbers.all():
        integers = pd.api.types.is_signed_integer_dtype(values.dtype)
        return values.to_numpy(np.int64) if integers else content.numbers
    moments = moments_of(values, where, content.notation if content.holds == "dates" else None)
    are_dates = moments.notna().to_numpy()
    what = "does not fit: times are all numbers, or all dates (ISO 8601 or date_format); correct it"
    refuse(values, ~max(are_dates, are_numbers, key=np.sum), what, where)  # the rarer kind
    return moments.to_numpy("datetime64[us]").astype(np.int64)


def refuse(
    values: pd.Series, wrong: NDArray[np.bool_], what: str, where: str, *, drop: bool = False
) -> None:
    """Raise an error for the first wrong value, if any; with `drop` the remedy drops the column."""
    if wrong.any():
        raise misfit(values, wrong, what, where, "drop" if drop else None)


def misfit(
    values: pd.Series,
    wrong: NDArray[np.bool_],
    what: str,
    where: str,
    option: str | None,
    kind: str = "",
) -> TableError:
    """Return the error for the first wrong value; the remedy is to name the column in `option`."""
    name, rows = str(values.name), values.index[wrong] + 1
    value = f"row {rows[0]}: {str(values[wrong].iloc[0])!r}"
    return TableError(
        where, f"column {name!r}, {value} {what}", kind=kind, column=name, place=value,
        rows=() if option == "categorical" else rows,  # texts may be right
        remedy=None if option is None else (option, name),
    )  # fmt: skip


def refuse_two_readings(values: pd.Series, content: Content, where: str) -> None:
    """Refuse a column to which another notation gives other values, shown with one value."""
    if not content.others:
        return
    notations = [content.notation, *content.others]
    name, option = str(values.name), "date_format" if "%" in str(notations) else "decimal"
    for value in values.dropna().drop_duplicates():
        single = pd.Series([value], dtype=object)
        if option == "date_format":
            readings = [str(moments_of(single, where, style)[0].date()) for style in notations]
        else:
            readings = [f"{as_numbers(single, style)[0]:.15g}" for style in notations]
        if len(set(readings)) > 1:  # the first value that the notations read differently
            break
    pairs = zip(readings, notations, strict=True)  # the readings of `value`
    choices = " or ".join(f"{reading} ({option} {style})" for reading, style in pairs)
    place = f"column {name!r}, row {values.index[values == value][0] + 1}"
    raise TableError(where, f"{place}: {value!r} can be {choices}; set one", column=name)


def _factorised(values: pd.Series, where: str, what: str) -> tuple[NDArray[np.intp], list[object]]:
    # Return a code for each row, one for all spellings of a value, and the first spelling by code.
    codes, distinct = pd.factorize(values.astype(object))
    if (missing := codes < 0).any():
        n, rows = int(missing.sum()), values.index[missing] + 1
        others = f" (as in {count(n - 1, 'other row')})" if n > 1 else ""
        if what != "label":
            raise InputError(
                f"{where}: row {rows[0]}: the {what} is missing{others}; fill it in, or remove the "
                "row"
            )
        may_be_total = n == 1 and missing[-1]  # only the last row
        raise TableError(
            where,
            f"row {rows[0]}: the label is missing{others}; remove such rows"
            f"{', as of totals' if may_be_total else ''}, or rank them with --open",
            column=str(values.name),
            place=f"row {rows[0]}",
            rows=rows,
            remedy=None if may_be_total else ("open_list", f"{Path(where).stem}-ranked.csv"),
        )
    merged = pd.factorize(np.array([canonical(value) for value in distinct], dtype=object))[0]
    return merged[codes], [*distinct[np.unique(merged, return_index=True)[1]]]
