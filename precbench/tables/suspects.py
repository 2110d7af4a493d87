"""Columns that look like leaks of the label, identifiers, codes or numbers of rows."""

import re
import shlex
from collections.abc import Collection, Sequence
from typing import Literal, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from precbench.ranking.metrics import auc
from precbench.tables.detectors import is_date
from precbench.tables.encoding import MOST_CATEGORIES
from precbench.tables.own_table import OwnTable, raw_texts
from precbench.tables.problems import Problems, Remedy, TableError

LEAK = 0.99  # the AUC of a single column above which it looks like a leak
_GAP_DIFFERENCE = 0.9  # difference between the classes' shares of gaps
# With fewer rows, in all or of a class, an AUC above `LEAK` may be chance.
_FEWEST_ROWS = 50
_FEWEST_OF_A_CLASS = 5
FEW_VALUES = 100  # up to so many rank by their shares of positives
# Numbers of identifiers may have a few duplicates where they rise or fall: the least
# mean of the signs of their steps, and the least share of distinct values
_STEADY = 0.97
_MOSTLY_DISTINCT = 0.99
# Messages by kind of problem; {} is what was seen in the column
_TEXTS = {
    "identifier": (
        "looks like an identifier (a different value in every row{}); add --{option} "
        "{name}, or --allow {name} to use it"
    ),
    "codes": (
        "may hold codes ({} whole numbers of one length, with leading zeros or like"
        " 5E3); name it in categorical or in numeric"
    ),
    "count": (
        "has no name of its own and counts rows, as the index of a data frame does; "
        "drop it (--drop {name}), or use it all the same (--allow {name})"
    ),
    "leak": (
        "{}; it looks like a leak of the label; drop it (--drop {name}), or use it all"
        " the same (--allow {name})"
    ),
}
_FEWEST_CODES = 20  # codes have more distinct values
_SHORTEST_CODE = 5  # digits
# Names that pandas gives to an index without a name
_NAMELESS = re.compile(r"(Unnamed: \d+(_level_\d+)?(\.\d+)*|index|level_\d+|)\s*")
_FEWEST_COUNTED = 20  # different numbers, where rows are left out or shuffled
_STEPS_OF_ONE_WAY = 0.9  # share of the steps from row to row that go up, or go down


class _Suspicion(NamedTuple):
    """Why a column is suspect, and what helps."""

    kind: Literal["identifier", "codes", "count", "leak"]
    option: str  # that helps, such as drop
    seen: str = ""  # what was seen in the column, as `_TEXTS` has it


def look_for_suspects(
    table: OwnTable,
    names: Sequence[str],
    y: NDArray[np.float64] | None,
    problems: Problems,
    *,
    categorical: Collection[str] = (),
    numeric: Collection[str] = (),
) -> None:
    """Add to `problems` each column like a leak, an identifier, a code or a count.

    Only the columns `names` are looked at. Columns of `numeric` are neither
    identifiers, codes nor counts of rows, and those of `categorical` neither codes nor
    counts. Without `y` no column is a leak.
    """
    refused = set()  # columns with a problem other than gaps
    for problem in problems.problems:
        if problem.kind != "missing":
            refused.add(problem.column)
    may_be_codes = [name for name in names if name not in {*categorical, *numeric}]
    padded = _padded(table, may_be_codes)
    for name in names:
        suspicions = []
        described = _describe(table, name)
        may_leak = True
        if name not in refused and name not in numeric:
            suspicion = _suspect_names(
                described, is_categorical=name in categorical, is_padded=name in padded
            )
            if suspicion is not None:
                suspicions.append(suspicion)
                # An identifier or a count is to be left out in any case.
                may_leak = suspicion.kind == "codes"
        if may_leak and y is not None and _are_enough(y):
            reason = _leak_reason(described, y)
            if reason:
                suspicions.append(_Suspicion("leak", option="drop", seen=reason))
        for suspicion in suspicions:
            problems.add(_suspect_error(problems.where, name, suspicion))


def _suspect_error(where: str, name: str, suspicion: _Suspicion) -> TableError:
    text = _TEXTS[suspicion.kind].format(
        suspicion.seen,
        name=shlex.quote(name),  # as in a command
        option=suspicion.option,
    )
    return TableError(
        where,
        f"column {name!r} {text}",
        kind=suspicion.kind,
        column=name,
        remedy=Remedy(suspicion.option, name),
    )


class _Described(NamedTuple):
    """A column, as far as it may be suspect."""

    name: str
    values: pd.Series  # numbers or texts
    numbers: NDArray[np.float64]  # NaN for text and gaps
    is_text: bool
    is_whole: bool  # whole numbers
    n_distinct: int  # 0 for other columns than text and whole numbers

    @property
    def ranks_by_shares(self) -> bool:
        """Whether `auc_alone` ranks values by their shares of positives."""
        return self.is_text or 0 < self.n_distinct <= FEW_VALUES


def _describe(table: OwnTable, name: str) -> _Described:
    values = table.column(name)
    content = table.content(name)
    is_text = content.holds == "text" and not is_date(values)
    is_whole = content.holds == "numbers" and _are_whole(content.numbers)
    if content.holds != "numbers":
        values = values.map(str, na_action="ignore")
    return _Described(
        name=name,
        values=values,
        numbers=content.numbers,
        is_text=is_text,
        is_whole=is_whole,
        n_distinct=values.nunique() if is_text or is_whole else 0,
    )


def _suspect_names(
    column: _Described, *, is_categorical: bool, is_padded: bool
) -> _Suspicion | None:
    """Return why values may name a row, or a group of rows, or None."""
    n_rows = len(column.values)
    if _are_identifiers(column):
        if column.n_distinct == n_rows:
            return _Suspicion("identifier", option="id")
        # completes "a different value in every row"
        return _Suspicion("identifier", option="drop", seen=", gaps or few aside")
    if is_categorical:
        return None
    is_nameless = _NAMELESS.fullmatch(column.name) is not None
    if is_nameless and column.is_whole and _are_row_numbers(column.numbers):
        return _Suspicion("count", option="drop")
    have_one_length = (
        column.is_whole and n_rows >= _FEWEST_ROWS and _have_one_length(column.numbers)
    )
    if is_padded or have_one_length:
        option = "categorical" if column.n_distinct <= MOST_CATEGORIES else "numeric"
        return _Suspicion("codes", option=option, seen=f"{column.n_distinct:,}")
    return None


def _are_identifiers(column: _Described) -> bool:
    """Return whether nearly every row has another value."""
    least_share = 1.0
    if column.is_whole:
        directions = np.sign(pd.Series(column.numbers).dropna().diff())  # +1: up
        if abs(directions.mean()) >= _STEADY:
            least_share = _MOSTLY_DISTINCT
    n_values = column.values.count()  # gaps aside
    n_rows = len(column.values)
    # A column of more gaps than values names no rows.
    least_distinct = max(least_share * n_values, n_rows / 2, _FEWEST_ROWS)
    return column.n_distinct >= least_distinct


def _are_enough(y: NDArray[np.float64]) -> bool:
    """Return whether there are enough rows, in all and of each class, to see a leak."""
    n_of_rarer = min((y > 0).sum(), (y < 0).sum())
    return len(y) >= _FEWEST_ROWS and n_of_rarer >= _FEWEST_OF_A_CLASS


def _leak_reason(column: _Described, y: NDArray[np.float64]) -> str:
    """Return why a column looks like a leak of the label; "" if nothing says so."""
    auc_of_column = auc_alone(
        column.values, column.numbers, y, in_groups=column.ranks_by_shares
    )
    if auc_of_column > LEAK:
        return f"has an AUC of {auc_of_column:.3f} alone"
    is_missing = column.values.isna().to_numpy()
    gaps_of_positives = float(is_missing[y > 0].mean())  # as a share
    gaps_of_negatives = float(is_missing[y < 0].mean())
    if abs(gaps_of_positives - gaps_of_negatives) <= _GAP_DIFFERENCE:
        return ""
    return (
        f"is missing in {gaps_of_positives:.0%} of the positive rows and"
        f" {gaps_of_negatives:.0%} of the others"
    )


def _padded(table: OwnTable, names: Sequence[str]) -> set[str]:
    """Return columns of whole numbers with a value like 007 or 5E3."""
    whole = []
    for name in names:
        content = table.content(name)
        if content.holds == "numbers" and _are_whole(content.numbers):
            whole.append(name)
    if table.is_file and table.format in ("csv", "tsv"):
        texts = raw_texts(table, whole)
    else:  # leading zeros are only in values of type text
        texts = pd.DataFrame({name: table.column(name).astype(str) for name in whole})
    padded = set()
    for name in whole:
        if texts[name].str.match(r"[+-]?0\d|\d+[Ee]\d").any():
            padded.add(name)
    return padded


def _are_whole(numbers: NDArray[np.float64]) -> bool:
    """Return whether numbers, gaps aside, are whole, and there is any."""
    known = numbers[~np.isnan(numbers)]
    if len(known) == 0 or not np.isfinite(known).all():
        return False
    return bool((known == np.floor(known)).all())


def _are_row_numbers(numbers: NDArray[np.float64]) -> bool:
    """Return whether whole numbers count rows, also of frames put one below the other.

    Rows may have been dropped, turned round or shuffled since.
    """
    known = numbers[~np.isnan(numbers)]
    n_known = len(known)
    first = known.min()
    if first < 0:
        return False
    begins_low = first <= 1  # at 0 or 1
    steps = np.diff(known)
    # numbers behind a step other than 1, with which another frame may begin
    restarts = known[1:][steps != 1]
    n_frames = 1 + len(restarts)
    # frames of more than two rows on average, each counted from the first number
    if begins_low and n_known > 2 * n_frames and (restarts == first).all():
        # Some frame counts far: to 20, or in a short table to half the number of rows.
        fewest = min(_FEWEST_COUNTED, n_known // 2)
        return bool(known[0] == first and known.max() >= fewest)
    # Otherwise rows may have been dropped, turned round or shuffled.
    distinct, n_each = np.unique(known, return_counts=True)
    if len(distinct) < _FEWEST_COUNTED:
        return False
    share_up = (steps > 0).mean()
    share_down = (steps < 0).mean()
    if max(share_up, share_down) >= _STEPS_OF_ONE_WAY:
        return True
    if len(distinct) >= n_known / 2:
        return True
    # Of frames from 0, or from 1, a larger number is in no more frames than a smaller
    # one.
    has_all = begins_low and distinct[-1] - first == len(distinct) - 1
    return bool(has_all and (np.diff(n_each) <= 0).all())


def _have_one_length(numbers: NDArray[np.float64]) -> bool:
    """Return whether many whole numbers have equally many digits, as postcodes."""
    distinct = np.unique(numbers[~np.isnan(numbers)])
    if len(distinct) <= _FEWEST_CODES:
        return False
    smallest = distinct[0]
    largest = distinct[-1]
    if smallest < 10 ** (_SHORTEST_CODE - 1):
        return False
    return len(f"{smallest:.0f}") == len(f"{largest:.0f}")


def auc_alone(
    values: pd.Series,
    numbers: NDArray[np.float64],
    y: NDArray[np.float64],
    in_groups: bool,
) -> float:
    """Return the AUC of a column as a score, in the better direction.

    Gaps rank at the better end. With `in_groups`, for text or few values, a value may
    also rank by its share of positives.
    """
    aucs = [0.5]  # of a constant
    if in_groups:
        codes, _ = pd.factorize(values, use_na_sentinel=False)
        aucs.append(_auc_of_shares(codes, y))
    has_numbers = not np.isnan(numbers).all()
    # Text has no order, and that of a few dates is not asked for.
    if in_groups and not has_numbers:
        return max(aucs)
    # Numbers rank in their order, and so do dates, which `values` holds.
    codes, distinct = pd.factorize(numbers if has_numbers else values, sort=True)
    is_missing = codes < 0
    ends = [-1]  # missing values rank before all others
    if is_missing.any():
        ends.append(len(distinct))  # or behind them
    for end in ends:
        ascending = auc(y, np.where(is_missing, end, codes).astype(np.float64))
        aucs += [ascending, 1 - ascending]
    return max(aucs)


def _auc_of_shares(codes: NDArray[np.intp], y: NDArray[np.float64]) -> float:
    """Return the AUC of the share of positives of each value.

    Shares are learnt on one half of the rows and measured on the other, so that the
    label of a row does not rank the row. 0.5 if a half has only one class.
    """
    halves = np.array_split(np.random.default_rng(0).permutation(len(y)), 2)
    aucs = []
    n_values = codes.max() + 1
    for learnt, measured in (halves, halves[::-1]):
        if len(set(y[measured])) < 2:
            return 0.5  # no AUC without both classes
        n_rows = np.bincount(codes[learnt], minlength=n_values)
        n_positives = np.bincount(
            codes[learnt], weights=y[learnt] > 0, minlength=n_values
        )
        prior = (y[learnt] > 0).mean()  # counts as one more row of each value
        shares = (n_positives + prior) / (n_rows + 1)
        aucs.append(auc(y[measured], shares[codes[measured]]))
    return min(aucs)  # the half that is less like a leak
