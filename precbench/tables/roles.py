"""Labels, groups, ids and times of the rows of a table."""

import re
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from precbench.core.errors import InputError
from precbench.core.text import count
from precbench.tables.detectors import Content, as_numbers, content_of, moments_of
from precbench.tables.dotted_dates import DottedDate
from precbench.tables.problems import TableError, listed
from precbench.tables.reading import Label

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

    `positive` may be left out for the labels 0 and 1, or -1 and 1. With `one_class` all
    labels may be equal, as in a month without hits.
    """
    # distinct[codes] are the labels; with `one_class` hits are counted, and no row is
    # ranked
    codes, distinct = _factorised(labels, where, "label", can_rank=not one_class)
    words = {*labels.map(str).str.strip().str.lower()}
    if words & {"true", "false"} and words & {"0", "1", "0.0", "1.0"}:
        warnings.warn(
            f"{where}: in column {labels.name!r} TRUE counts as the label 1, and FALSE"
            " as 0; correct the labels if that is wrong",
            stacklevel=3,
        )
    counts = np.bincount(codes)
    positives = [positive] if isinstance(positive, str | int | float) else positive
    given = [canonical(label) for label in positives or [1]]
    names = [canonical(label) for label in distinct]
    negatives = [i for i, name in enumerate(names) if name not in given]
    # If all labels are equal, their sign is known from `positive`, or from a usual 1, 0
    # or -1.
    is_known = (
        one_class
        and len(names) == 1
        and (positives is not None or names[0] in (-1, 0, 1))
    )
    if not is_known:
        check_labels(distinct, where, positives, counts)
    if is_known or (positives is not None and len(negatives) > 1):
        folded = {str(label).casefold() for label in given}  # without letter case
        similar = [names[i] for i in negatives if str(names[i]).casefold() in folded]
        case = (
            f", although {listed(similar)} differs only in letter case"
            if similar
            else ""
        )
        counted = listed([f"{names[i]} ({counts[i]:,})" for i in negatives])
        problem = (
            f"every label is {names[0]}; all rows are"
            f" {'negative' if negatives else 'positive'}"
            if is_known
            else f"labels other than {listed(given)} count as negative: {counted}"
        )
        message = f"{where}: {problem}{case}; name all positive labels if that is wrong"
        warnings.warn(message, stacklevel=3)
    return np.where(np.isin(codes, negatives), -1.0, 1.0)


def signs_of_rows(
    y: Any, positive: Label | Sequence[Label] | None = None
) -> NDArray[np.float64]:
    """Return the labels of rows in memory as -1 and +1, by the rules for a column of a file.

    Neither of two words is positive by itself: "stayed" is greater than "left".
    """
    from sklearn.utils import column_or_1d

    try:
        labels = pd.Series(column_or_1d(y), name="y")
    except ValueError as error:
        raise InputError(
            f"y cannot be used: {str(error).rstrip('.')}; give a label a row"
        ) from error
    is_missing = labels.isna()
    if is_missing.any():
        raise InputError(
            f"y, row {is_missing.argmax() + 1}: the label is missing; leave such rows"
            " out, and rank them by the model"
        )
    return signs(labels, "y", positive)


def check_labels(
    labels: Sequence[object],
    where: str,
    positive: Sequence[Label] | None,
    counts: Sequence[int] | NDArray[np.intp],
) -> None:
    """Refuse distinct labels that are not of two classes.

    `counts` has the rows of each.
    """
    names = [canonical(label) for label in labels]
    likely = _likely_positive(labels, counts)
    if len(names) < 2:
        raise InputError(
            f"{where}: every label is {listed(labels) or 'missing'}; add rows of"
            " another class"
        )
    if positive is None and (not set(names) <= {-1, 0, 1} or len(names) > 2):
        what = f"name the positive label (positive), one of {listed(labels)}"
        raise TableError(where, what, remedy=likely)
    # as spelled in the option
    given = {canonical(label): label for label in positive or [1]}
    if unknown := [label for name, label in given.items() if name not in names]:
        parts = [
            part.strip() for label in given.values() for part in str(label).split(",")
        ]
        are_labels = {canonical(part) for part in parts} <= set(names)
        raise TableError(
            where,
            f"no row has the positive label {unknown[0]!r}; name one of"
            f" {listed(labels)}",
            remedy=("positive", parts) if are_labels else likely,
        )
    if set(names) <= set(given):
        raise InputError(
            f"{where}: one class, all of {listed(labels)} are in positive; name fewer"
        )


def _likely_positive(
    labels: Sequence[object], counts: Sequence[int] | NDArray[np.intp]
) -> tuple[str, list[str]] | None:
    """Return a remedy.

    All spellings of the likely positive label (typical, or rarest); or None.
    """
    # by lower case: number of rows and spelling
    spellings: dict[str, list[tuple[int, str]]] = {}
    for label, n_rows in zip(labels, counts, strict=True):
        text = listed([label]).strip()
        spellings.setdefault(text.casefold(), []).append((n_rows, text))
    if not 2 <= len(spellings) <= _MOST_LABELS:
        return None  # one label, or too many for a guess
    typical = [name for name in _POSITIVE if name in spellings]
    rarest_first = sorted(
        spellings, key=lambda name: sum(n for n, _ in spellings[name])
    )
    likely, *_ = typical + rarest_first
    return "positive", [text for _, text in sorted(spellings[likely], reverse=True)]


def canonical(label: object) -> object:
    """Return equal labels for 1, 1.0, True, "1" and "+1".

    The codes 01 and 1.10 stay text.
    """
    if isinstance(label, float | np.floating):
        return int(label) if label.is_integer() else float(label)
    text = str(label).strip()
    # below the largest double
    if re.fullmatch(r"[+-]?(0|[1-9][0-9]{0,299})(\.0+)?", text):
        return int(text.partition(".")[0])
    if re.fullmatch(r"[+-]?(0|[1-9][0-9]{0,299})?\.[0-9]*[1-9]", text):
        return canonical(float(text))
    return {"true": 1, "false": 0}.get(text.lower(), text)


def number_groups(groups: pd.Series, where: str) -> NDArray[np.int64]:
    """Return a number for each row, equal for rows of one group."""
    return _factorised(groups, where, "group")[0].astype(np.int64)  # [0]: the codes


def require_unique(values: pd.Series, where: str) -> None:
    """Refuse a column as an id unless its values, gaps aside, are all different."""
    values = values.dropna()
    if (n_distinct := values.map(str).nunique()) < len(values):
        raise InputError(
            f"{where}: column {values.name!r} has {n_distinct:,} different values in"
            f" {len(values):,} rows, so it cannot be an id; name it in groups if rows"
            " with the same value belong together, otherwise in drop"
        )


def warn_of_missing_id(values: pd.Series, where: str) -> None:
    """Warn of the first row without an id, which may be needed in the list."""
    is_missing = values.isna()
    if is_missing.any():
        n_others = int(is_missing.sum()) - 1
        others = f" (as in {count(n_others, 'other row')})" if n_others else ""
        warnings.warn(
            f"{where}: column {values.name!r}, row {values.index[is_missing][0] + 1}:"
            f" the id is missing{others}; fill it in if you need it",
            stacklevel=4,
        )


def require_same_rows(X: Any, **columns: Any) -> None:
    """Refuse as `columns` the name of a column, and a Series whose index is not that of X."""
    # values will be taken by places, not by the index
    for name, values in columns.items():
        if isinstance(values, str):
            raise InputError(
                f"{name} must be one value per row, found {values!r}; give an array"
            )
        is_named = isinstance(X, pd.DataFrame) and isinstance(values, pd.Series)
        if is_named and len(X) == len(values) and not values.index.equals(X.index):
            # Rows of an array are counted from 0, and pair with any rows but those of a
            # slice.
            is_counted = [
                rows.index.equals(pd.RangeIndex(len(X))) for rows in (X, values)
            ]
            are_slices = all(
                isinstance(rows.index, pd.RangeIndex) for rows in (X, values)
            )
            if are_slices or not any(is_counted) or {*X.index} == {*values.index}:
                raise InputError(
                    f"{name} has another index than X; give {name}.loc[X.index], or "
                    f"{name}.to_numpy() if its rows are in the order of X"
                )


def order_in_time(
    values: pd.Series, where: str, date_format: str | None = None
) -> NDArray[np.int64] | NDArray[np.float64]:
    """Return the time of each row.

    Numbers as they are, dates in microseconds since 1970.

    Dates and times may be text, in UTC without a zone.
    """
    if values.isna().any():
        name, row = values.name, values.index[values.isna()][0] + 1
        raise InputError(
            f"{where}: column {name!r}, row {row}: the time is missing; fill it, or"
            " remove the row"
        )
    content = content_of(values, where, date_format=date_format, is_time=True)
    refuse_two_readings(values, content, where)
    are_numbers = np.isfinite(content.numbers)
    if are_numbers.all():
        # Digits that do not begin with the year, such as 31052024, are not in the order
        # of days.
        first = values.iloc[:1000]  # enough to tell
        years = [
            moments_of(first, where, form).dt.year for form in ("%d%m%Y", "%m%d%Y")
        ]
        what = (
            "looks like a day; name the format of dates (date_format), such as %d%m%Y"
        )
        refuse(
            values,
            are_numbers & any((year > 1900).all() for year in years),
            what,
            where,
        )
        integers = pd.api.types.is_signed_integer_dtype(values.dtype)
        return values.to_numpy(np.int64, copy=True) if integers else content.numbers
    moments = moments_of(
        values, where, content.notation if content.holds == "dates" else None
    )
    are_dates = moments.notna().to_numpy()
    what = (
        "does not fit: times are all numbers, or all dates (ISO 8601 or date_format);"
        " correct it"
    )
    # the rarer kind
    refuse(values, ~max(are_dates, are_numbers, key=np.sum), what, where)
    return moments.to_numpy("datetime64[us]").astype(np.int64)


def refuse(
    values: pd.Series,
    wrong: NDArray[np.bool_],
    what: str,
    where: str,
    *,
    drop: bool = False,
) -> None:
    """Raise an error for the first wrong value, if any.

    With `drop` the remedy drops the column.
    """
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
    """Return the error for the first wrong value.

    The remedy is to name the column in `option`.
    """
    name, rows = str(values.name), values.index[wrong] + 1
    value = f"row {rows[0]}: {str(values[wrong].iloc[0])!r}"
    return TableError(
        where, f"column {name!r}, {value} {what}", kind=kind, column=name, place=value,
        rows=() if option == "categorical" else rows,  # texts may be right
        remedy=None if option is None else (option, name),
    )  # fmt: skip


def dotted_error(
    values: pd.Series,
    date: DottedDate,
    written: str,
    where: str,
    *,
    is_time: bool = False,
) -> TableError:
    """Return the error for a column of numbers that look like dates, such as `written`."""
    name = str(values.name)
    others = (
        ""
        if is_time
        else ", drop the column, or name it in numeric if it holds numbers"
    )
    advice = "name the format of dates (date_format)"
    if date.date_format is None:
        advice = "write whole dates, such as 2024-05-31"
    place = f"row {values.index[values.notna()][0] + 1}: {written!r}"
    remedy: tuple[str, object] | None = None if is_time else ("drop", name)
    if date.date_format is not None:
        advice += f", such as {date.date_format}"
        remedy = ("date_format", date.date_format)
    return TableError(
        where,
        f"column {name!r}, {place} looks like a date ({date.parts}), not like a number;"
        f" {advice}{others}",
        column=name,
        place=place,
        remedy=remedy,
    )


def refuse_two_readings(values: pd.Series, content: Content, where: str) -> None:
    """Refuse a column to which another notation gives other values, shown with one value."""
    if not content.others:
        return
    notations = [content.notation, *content.others]
    name, option = (
        str(values.name),
        ("date_format" if "%" in str(notations) else "decimal"),
    )
    for value in values.dropna().drop_duplicates():
        single = pd.Series([value], dtype=object)
        if option == "date_format":
            readings = [
                str(moments_of(single, where, style)[0].date()) for style in notations
            ]
        else:
            readings = [f"{as_numbers(single, style)[0]:.15g}" for style in notations]
        # the first value that the notations read differently
        if len(set(readings)) > 1:
            break
    pairs = zip(readings, notations, strict=True)  # the readings of `value`
    choices = " or ".join(f"{reading} ({option} {style})" for reading, style in pairs)
    place = f"column {name!r}, row {values.index[values == value][0] + 1}"
    raise TableError(
        where, f"{place}: {value!r} can be {choices}; set one", column=name
    )


def _factorised(
    values: pd.Series, where: str, what: str, *, can_rank: bool = False
) -> tuple[NDArray[np.intp], list[object]]:
    # Return a code for each row, one for all spellings of a value, and the first
    # spelling by code.
    codes, distinct = pd.factorize(values.astype(object))
    merged, names = pd.factorize(
        np.array([canonical(value) for value in distinct], dtype=object)
    )
    if (missing := codes < 0).any():
        n, rows = int(missing.sum()), values.index[missing] + 1
        advice, remedy = "fill it in, or remove the row", None
        others = f" (as in {count(n - 1, 'other row')})" if n > 1 else ""
        if len(names) == 0:
            advice = (
                f"write each {what}, or, if the column has formulas, save the file with"
                " Excel"
            )
        elif len(names) == 1 and what == "label":
            other = int(names[0] == 0)  # any label of the other class: 0, or 1 beside 0
            advice = (
                f"write {other} where a blank is not {listed(names)}, or remove such"
                " rows"
            )
        elif can_rank:
            # the last row alone
            totals = ", as of totals" if n == 1 and missing[-1] else ""
            advice = f"remove such rows{totals}, or rank them with --open"
            remedy = None if totals else ("open_list", f"{Path(where).stem}-ranked.csv")
        name, place = str(values.name), f"row {rows[0]}"
        text = f"{place}: the {what} is missing{others}; {advice}"
        raise TableError(
            where, text, column=name, place=place, rows=rows, remedy=remedy
        )
    return merged[codes], [*distinct[np.unique(merged, return_index=True)[1]]]
