"""Labels, groups, ids and times of the rows of a table."""

import re
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from precbench.core.errors import InputError
from precbench.core.text import count
from precbench.tables.detectors import Content, as_numbers, content_of, moments_of
from precbench.tables.dotted_dates import DottedDate
from precbench.tables.problems import Remedy, TableError, listed
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
    # With `one_class` hits are counted, and no row is ranked.
    codes, spellings = _factorised(labels, where, "label", can_rank=not one_class)
    _warn_of_true_beside_1(labels, where)
    positives = [positive] if isinstance(positive, str | int | float) else positive
    positive_names = [canonical(label) for label in positives or [1]]
    names = [canonical(label) for label in spellings]
    is_positive = np.array([name in positive_names for name in names], dtype=bool)
    counts = np.bincount(codes)  # rows of each label
    is_single = one_class and len(names) == 1
    doubt = ""
    # The sign of a single label is known from `positive`, or for a usual 1, 0 or -1.
    if is_single and (positives is not None or names[0] in (-1, 0, 1)):
        sign = "positive" if is_positive[0] else "negative"
        doubt = f"every label is {names[0]}; all rows are {sign}"
    else:
        check_labels(spellings, where, positives, counts)
        negatives = np.flatnonzero(~is_positive)
        if positives is not None and len(negatives) > 1:
            counted = listed([f"{names[i]} ({counts[i]:,})" for i in negatives])
            others = listed(positive_names)
            doubt = f"labels other than {others} count as negative: {counted}"
    if doubt:
        similar = _differing_in_case(names, positive_names)
        if similar:
            doubt += f", although {listed(similar)} differs only in letter case"
        warnings.warn(
            f"{where}: {doubt}; name all positive labels if that is wrong",
            stacklevel=3,
        )
    return np.where(is_positive[codes], 1.0, -1.0)


def _warn_of_true_beside_1(labels: pd.Series, where: str) -> None:
    words = {*labels.map(str).str.strip().str.lower()}
    if words & {"true", "false"} and words & {"0", "1", "0.0", "1.0"}:
        warnings.warn(
            f"{where}: in column {labels.name!r} TRUE counts as the label 1, and FALSE"
            " as 0; correct the labels if that is wrong",
            stacklevel=4,
        )


def _differing_in_case(
    names: Sequence[object], positive_names: Sequence[object]
) -> list[object]:
    """Return the names that equal a positive one but for the case of letters."""
    folded = {str(name).casefold() for name in positive_names}
    differing = []
    for name in names:
        if name not in positive_names and str(name).casefold() in folded:
            differing.append(name)
    return differing


def signs_of_rows(
    y: Any, positive: Label | Sequence[Label] | None = None
) -> NDArray[np.float64]:
    """Return the labels of rows in memory as -1 and +1.

    The rules are those for a column of a file. Of two words neither is positive by
    itself; scikit-learn would take the greater one, "stayed" of "left" and "stayed".
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

    `counts` are the numbers of rows with each label.
    """
    names = [canonical(label) for label in labels]
    if len(names) < 2:
        raise InputError(
            f"{where}: every label is {listed(labels) or 'missing'}; add rows of"
            " another class"
        )
    likely = _likely_positive(labels, counts)
    are_usual = len(names) == 2 and set(names) <= {-1, 0, 1}
    if positive is None and not are_usual:
        raise TableError(
            where,
            f"name the positive label (positive), one of {listed(labels)}",
            remedy=likely,
        )
    # labels as they are given, by what they equal
    given = {canonical(label): label for label in positive or [1]}
    unknown = [label for name, label in given.items() if name not in names]
    if unknown:
        parts = []  # one text may have named several labels
        for label in given.values():
            parts += [part.strip() for part in str(label).split(",")]
        are_labels = {canonical(part) for part in parts} <= set(names)
        raise TableError(
            where,
            f"no row has the positive label {unknown[0]!r}; name one of"
            f" {listed(labels)}",
            remedy=Remedy("positive", parts) if are_labels else likely,
        )
    if set(names) <= set(given):
        raise InputError(
            f"{where}: one class, all of {listed(labels)} are in positive; name fewer"
        )


class _Spelling(NamedTuple):
    """One way in which a label is written."""

    n_rows: int
    text: str


def _likely_positive(
    labels: Sequence[object], counts: Sequence[int] | NDArray[np.intp]
) -> Remedy | None:
    """Return the remedy that names all spellings of the likely positive label.

    It is a typical one, or the rarest; None if no guess is possible.
    """
    spellings: dict[str, list[_Spelling]] = {}  # by the label in lower case
    for label, n_rows in zip(labels, counts, strict=True):
        text = listed([label]).strip()  # as in messages
        spellings.setdefault(text.casefold(), []).append(_Spelling(n_rows, text))
    if not 2 <= len(spellings) <= _MOST_LABELS:
        return None  # one label, or too many for a guess
    n_rows_by_label = {
        label: sum(spelling.n_rows for spelling in same)
        for label, same in spellings.items()
    }
    likely = min(n_rows_by_label, key=n_rows_by_label.__getitem__)  # the rarest
    for label in _POSITIVE:
        if label in spellings:
            likely = label
            break
    most_frequent_first = sorted(spellings[likely], reverse=True)
    return Remedy("positive", [spelling.text for spelling in most_frequent_first])


def canonical(label: object) -> object:
    """Return equal labels for 1, 1.0, True, "1" and "+1".

    The codes 01 and 1.10 stay text.
    """
    if isinstance(label, float | np.floating):
        return int(label) if label.is_integer() else float(label)
    text = str(label).strip()
    # A longer integer than this may exceed the largest double, and stays text.
    if re.fullmatch(r"[+-]?(0|[1-9][0-9]{0,299})(\.0+)?", text):
        return int(text.partition(".")[0])
    if re.fullmatch(r"[+-]?(0|[1-9][0-9]{0,299})?\.[0-9]*[1-9]", text):
        return canonical(float(text))
    return {"true": 1, "false": 0}.get(text.lower(), text)


def number_groups(groups: pd.Series, where: str) -> NDArray[np.int64]:
    """Return a number for each row, equal for rows of one group."""
    return _factorised(groups, where, "group").codes.astype(np.int64)


def require_unique(values: pd.Series, where: str) -> None:
    """Refuse a column as an id unless its values, gaps aside, are all different."""
    known = values.dropna()
    n_distinct = known.map(str).nunique()
    if n_distinct < len(known):
        raise InputError(
            f"{where}: column {values.name!r} has {n_distinct:,} different values in"
            f" {len(known):,} rows, so it cannot be an id; name it in groups if rows"
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
            stacklevel=5,
        )


def require_same_rows(X: Any, **columns: Any) -> None:
    """Refuse arguments that are the name of a column, or a Series of other rows than X.

    `columns` are the arguments by name. Their values will be taken by places, not by
    the index, so the indices must agree.
    """
    for name, values in columns.items():
        if isinstance(values, str):
            raise InputError(
                f"{name} must be one value per row, found {values!r}; give an array"
            )
        if not (isinstance(X, pd.DataFrame) and isinstance(values, pd.Series)):
            continue
        if len(X) == len(values) and not _may_pair(X.index, values.index):
            raise InputError(
                f"{name} has another index than X; give {name}.loc[X.index], or "
                f"{name}.to_numpy() if its rows are in the order of X"
            )


def _may_pair(rows: pd.Index, others: pd.Index) -> bool:
    """Return whether two indices of one length may stand for the same rows in order."""
    if rows.equals(others):
        return True
    if isinstance(rows, pd.RangeIndex) and isinstance(others, pd.RangeIndex):
        return False  # slices of two parts, such as rows 0 to 99 and 100 to 199
    if {*rows} == {*others}:
        return False  # the same rows in another order
    # Rows counted from 0, as of an array, pair with any other rows.
    counted = pd.RangeIndex(len(rows))
    return rows.equals(counted) or others.equals(counted)


def order_in_time(
    values: pd.Series, where: str, date_format: str | None = None
) -> NDArray[np.int64] | NDArray[np.float64]:
    """Return the time of each row.

    Numbers stay as they are, dates become microseconds since 1970. Dates and times may
    be text, in UTC without a zone.
    """
    if values.isna().any():
        row = values.index[values.isna()][0] + 1
        raise InputError(
            f"{where}: column {values.name!r}, row {row}: the time is missing; fill it,"
            " or remove the row"
        )
    content = content_of(values, where, date_format=date_format, is_time=True)
    refuse_two_readings(values, content, where)
    is_number = np.isfinite(content.numbers)
    if is_number.all():
        _refuse_days_as_numbers(values, where)
        if pd.api.types.is_signed_integer_dtype(values.dtype):
            return values.to_numpy(np.int64, copy=True)
        return content.numbers
    notation = content.notation if content.holds == "dates" else None
    moments = moments_of(values, where, notation)
    is_date = moments.notna().to_numpy()
    are_mostly_numbers = is_number.sum() > is_date.sum()
    is_usual = is_number if are_mostly_numbers else is_date
    fault = (
        "does not fit: times are all numbers, or all dates (ISO 8601 or date_format);"
        " correct it"
    )
    refuse(values, ~is_usual, fault, where)
    return moments.to_numpy("datetime64[us]").astype(np.int64)


def _refuse_days_as_numbers(values: pd.Series, where: str) -> None:
    """Refuse digits such as 31052024, whose order is not that of the days."""
    first = values.iloc[:1000]  # enough to tell
    for date_format in ("%d%m%Y", "%m%d%Y"):
        years = moments_of(first, where, date_format).dt.year
        if (years > 1900).all():  # which fails for a value that is no date
            fault = (
                "looks like a day; name the format of dates (date_format), such as"
                " %d%m%Y"
            )
            refuse(values, np.ones(len(values), dtype=bool), fault, where)


def refuse(
    values: pd.Series,
    is_wrong: NDArray[np.bool_],
    fault: str,
    where: str,
    *,
    drop: bool = False,
) -> None:
    """Raise an error for the first wrong value, if any.

    With `drop` the remedy drops the column.
    """
    if is_wrong.any():
        raise misfit(values, is_wrong, fault, where, "drop" if drop else None)


def misfit(
    values: pd.Series,
    is_wrong: NDArray[np.bool_],
    fault: str,
    where: str,
    option: str | None,
    kind: str = "",
) -> TableError:
    """Return the error for the first wrong value.

    The remedy is to name the column in `option`; there is none if that is None.
    """
    name = str(values.name)
    rows = values.index[is_wrong] + 1
    place = f"row {rows[0]}: {str(values[is_wrong].iloc[0])!r}"
    return TableError(
        where,
        f"column {name!r}, {place} {fault}",
        kind=kind,
        column=name,
        place=place,
        # as categories the texts may be right
        rows=() if option == "categorical" else rows,
        remedy=None if option is None else Remedy(option, name),
    )


def dotted_error(
    values: pd.Series,
    date: DottedDate,
    written: str,
    where: str,
    *,
    is_time: bool = False,
) -> TableError:
    """Return the error for a column of numbers that look like dates.

    `written` is one of them, as it stands in the file.
    """
    name = str(values.name)
    remedy = None
    if date.date_format is None:
        advice = "write whole dates, such as 2024-05-31"
    else:
        advice = f"name the format of dates (date_format), such as {date.date_format}"
        remedy = Remedy("date_format", date.date_format)
    if not is_time:
        advice += ", drop the column, or name it in numeric if it holds numbers"
        if remedy is None:
            remedy = Remedy("drop", name)
    place = f"row {values.index[values.notna()][0] + 1}: {written!r}"
    return TableError(
        where,
        f"column {name!r}, {place} looks like a date ({date.parts}), not like a number;"
        f" {advice}",
        column=name,
        place=place,
        remedy=remedy,
    )


def refuse_two_readings(values: pd.Series, content: Content, where: str) -> None:
    """Refuse a column that another notation reads as other values.

    The error shows one value in all notations.
    """
    if not content.others:
        return
    notations = [str(content.notation), *content.others]
    are_formats = any("%" in notation for notation in notations)
    option = "date_format" if are_formats else "decimal"
    distinct = values.dropna().drop_duplicates().tolist()
    example = distinct[-1]  # if all values read alike, such as 05/05/2024
    for value in distinct:
        if len(set(_readings(value, notations, where))) > 1:
            example = value
            break
    choices = []
    for reading, notation in zip(
        _readings(example, notations, where), notations, strict=True
    ):
        choices.append(f"{reading} ({option} {notation})")
    name = str(values.name)
    row = values.index[values == example][0] + 1
    raise TableError(
        where,
        f"column {name!r}, row {row}: {example!r} can be"
        f" {' or '.join(choices)}; set one",
        column=name,
    )


def _readings(value: object, notations: Sequence[str], where: str) -> list[str]:
    """Return what a value means in each notation, a date format or a decimal mark."""
    single = pd.Series([value], dtype=object)
    readings = []
    for notation in notations:
        if "%" in notation:
            readings.append(str(moments_of(single, where, notation)[0].date()))
        else:
            readings.append(f"{as_numbers(single, notation)[0]:.15g}")
    return readings


class _Factorised(NamedTuple):
    """The values of a column, with all spellings of one as one."""

    codes: NDArray[np.intp]  # of each row
    spellings: list[object]  # the first one of each code


def _factorised(
    values: pd.Series, where: str, word: str, *, can_rank: bool = False
) -> _Factorised:
    """Return a code for each value of a column, and a value of each; refuse gaps.

    `word` is what a message calls a value; see `_missing_error` for `can_rank`.
    """
    codes, distinct = pd.factorize(values.astype(object))
    # a code for each distinct value, the same for all spellings of one
    merged, names = pd.factorize(
        np.array([canonical(value) for value in distinct], dtype=object)
    )
    is_missing = codes < 0
    if is_missing.any():
        raise _missing_error(values, is_missing, names, where, word, can_rank)
    _, first_places = np.unique(merged, return_index=True)
    return _Factorised(merged[codes], list(distinct[first_places]))


def _missing_error(
    values: pd.Series,
    is_missing: NDArray[np.bool_],
    names: NDArray[np.object_],
    where: str,
    word: str,
    can_rank: bool,
) -> TableError:
    """Return the error for missing labels or groups; `names` are those present.

    With `can_rank` rows without a label may be those to be ranked.
    """
    n_missing = int(is_missing.sum())
    rows = values.index[is_missing] + 1
    advice = "fill it in, or remove the row"
    remedy = None
    if len(names) == 0:
        advice = (
            f"write each {word}, or, if the column has formulas, save the file with"
            " Excel"
        )
    elif len(names) == 1 and word == "label":
        other = 1 if names[0] == 0 else 0  # a usual label of the other class
        advice = (
            f"write {other} where a blank is not {listed(names)}, or remove such rows"
        )
    elif can_rank and n_missing == 1 and is_missing[-1]:
        advice = "remove such rows, as of totals, or rank them with --open"
    elif can_rank:
        advice = "remove such rows, or rank them with --open"
        remedy = Remedy("open_list", f"{Path(where).stem}-ranked.csv")
    others = f" (as in {count(n_missing - 1, 'other row')})" if n_missing > 1 else ""
    place = f"row {rows[0]}"
    return TableError(
        where,
        f"{place}: the {word} is missing{others}; {advice}",
        column=str(values.name),
        place=place,
        rows=rows,
        remedy=remedy,
    )
