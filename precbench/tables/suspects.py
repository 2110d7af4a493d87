"""Columns that look like leaks of the label, identifiers, codes or numbers of rows."""

import re
import shlex
from collections.abc import Collection, Sequence

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from precbench.ranking.metrics import auc
from precbench.tables.detectors import is_date
from precbench.tables.encoding import MOST_CATEGORIES
from precbench.tables.own_table import OwnTable, raw_texts
from precbench.tables.problems import Problems, TableError

LEAK = 0.99  # the AUC of a single column above which it looks like a leak
_GAP_DIFFERENCE = 0.9  # difference between the classes' shares of gaps
# with fewer, an AUC above `LEAK` may be chance
_FEWEST_ROWS, _FEWEST_OF_A_CLASS = 50, 5
# distinct values up to which a column is ranked by shares of positives
FEW_VALUES = 100
_TEXTS = {  # what is said of a column; {} is what was seen
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
# of codes: distinct values (more than so many), digits
_FEWEST_CODES, _SHORTEST_CODE = 20, 5
# Names that pandas gives to an index without a name
_NAMELESS = re.compile(r"(Unnamed: \d+(_level_\d+)?(\.\d+)*|index|level_\d+|)\s*")
# different numbers of rows of which some are left out, or are shuffled
_FEWEST_COUNTED = 20
_STEPS_OF_ONE_WAY = 0.9  # share of the steps from row to row that go up, or go down


def look_for_suspects(
    table: OwnTable,
    names: Sequence[str],
    y: NDArray[np.float64] | None,
    problems: Problems,
    *,
    categorical: Collection[str] = (),
    numeric: Collection[str] = (),
) -> None:
    """Add a problem for each column that looks like a leak, an identifier, a code or a count.

    Columns of `numeric` are neither identifiers, codes nor counts of rows, and those of
    `categorical` neither codes nor counts.
    Without `y` no column is a leak.
    """
    where, n_rows = problems.where, len(table.column(names[0])) if names else 0
    refused = {  # columns with a problem other than gaps
        getattr(e, "column", "")
        for e in problems.errors
        if getattr(e, "kind", "") != "missing"
    }
    padded = _padded(
        table, [name for name in names if name not in {*categorical, *numeric}]
    )
    enough_rows = n_rows >= _FEWEST_ROWS
    enough_of_both = (
        y is not None and min((y > 0).sum(), (y < 0).sum()) >= _FEWEST_OF_A_CLASS
    )

    def add(kind: str, name: str, option: str, what: str) -> None:  # `what` was seen
        typed = shlex.quote(name)  # as in a command
        text = f"column {name!r} {_TEXTS[kind].format(what, name=typed, option=option)}"
        problems.add(
            TableError(where, text, kind=kind, column=name, remedy=(option, name))
        )

    for name in names:
        values, content = table.column(name), table.content(name)
        is_text = content.holds == "text" and not is_date(values)
        is_whole = content.holds == "numbers" and _are_whole(content.numbers)
        values = (
            values
            if content.holds == "numbers"
            else values.map(str, na_action="ignore")
        )
        # 0 for other columns: neither identifiers nor codes, and not ranked in groups.
        n_distinct = values.nunique() if is_text or is_whole else 0
        # may be an identifier or a code
        if name not in refused and name not in numeric:
            # Numbers that rise or fall (97 %) may have 1 % duplicates; few values tell
            # nothing. +1: up, -1: down
            steps = np.sign(pd.Series(content.numbers).dropna().diff())
            least = (
                0.99 if is_whole and abs(steps.mean()) >= 0.97 else 1.0
            ) * values.count()
            if n_distinct >= max(least, n_rows / 2, _FEWEST_ROWS):
                advice = (
                    ("id", "")
                    if n_distinct == n_rows
                    else ("drop", ", gaps or few aside")
                )
                add("identifier", name, *advice)
                continue  # no need to look for a leak
            is_nameless = _NAMELESS.fullmatch(name) and name not in categorical
            if is_nameless and is_whole and _count_rows(content.numbers):
                add("count", name, "drop", "")
                continue
            is_code = name in padded or (
                is_whole and enough_rows and _is_code(content.numbers)
            )
            if is_code and name not in categorical:
                option = "categorical" if n_distinct <= MOST_CATEGORIES else "numeric"
                add("codes", name, option, f"{n_distinct:,}")
        in_groups = is_text or 0 < n_distinct <= FEW_VALUES  # see `auc_alone`
        if (
            (y is not None and enough_rows and enough_of_both)
            and (reason := _leak_reason(values, content.numbers, y, in_groups))
        ):  # fmt: skip
            add("leak", name, "drop", reason)


def _leak_reason(
    values: pd.Series,
    numbers: NDArray[np.float64],
    y: NDArray[np.float64],
    in_groups: bool,
) -> str:
    """Return why a column looks like a leak of the label; "" if nothing says so."""
    # which explains `in_groups`
    if (value := auc_alone(values, numbers, y, in_groups)) > LEAK:
        return f"has an AUC of {value:.3f} alone"
    is_missing = values.isna().to_numpy()
    # shares
    in_pos, in_neg = float(is_missing[y > 0].mean()), float(is_missing[y < 0].mean())
    if abs(in_pos - in_neg) <= _GAP_DIFFERENCE:
        return ""
    return (
        f"is missing in {in_pos:.0%} of the positive rows and {in_neg:.0%} of the"
        " others"
    )


def _padded(table: OwnTable, names: Sequence[str]) -> set[str]:
    # Return the columns of whole numbers in which some value has leading zeros or looks
    # like 5E3.
    whole = [
        n
        for n in names
        if (c := table.content(n)).holds == "numbers" and _are_whole(c.numbers)
    ]
    if table.is_file and table.format in ("csv", "tsv"):
        texts = raw_texts(table, whole)
    else:  # leading zeros are only in values of type text
        texts = pd.DataFrame({n: table.column(n).astype(str) for n in whole})
    return {n for n in whole if texts[n].str.match(r"[+-]?0\d|\d+[Ee]\d").any()}


def _are_whole(numbers: NDArray[np.float64]) -> bool:  # gaps aside
    known = numbers[~np.isnan(numbers)]
    return bool(len(known)) and bool(
        np.isfinite(known).all() and (known == np.floor(known)).all()
    )


def _count_rows(numbers: NDArray[np.float64]) -> bool:
    """Return whether whole numbers count rows, also of frames put one below the other.

    Rows may have been dropped, turned round or shuffled since.
    """
    known = numbers[~np.isnan(numbers)]
    first = known.min()
    if first < 0:
        return False
    steps = np.diff(known)
    restarts = known[1:][steps != 1]
    if (
        first <= 1
        and len(known) > 2 * (1 + len(restarts))
        and (restarts == first).all()
    ):
        return known[0] == first and known.max() >= min(
            _FEWEST_COUNTED, len(known) // 2
        )
    distinct, n_each = np.unique(known, return_counts=True)
    if len(distinct) < _FEWEST_COUNTED:
        return False
    share_up, share_down = (steps > 0).mean(), (steps < 0).mean()
    if (
        max(share_up, share_down) >= _STEPS_OF_ONE_WAY
        or len(distinct) >= len(known) / 2
    ):
        return True
    # Of frames from 0, or from 1, a larger number is in no more frames than a smaller
    # one.
    has_all = first <= 1 and distinct[-1] - first == len(distinct) - 1
    return bool(has_all and (np.diff(n_each) <= 0).all())


def _is_code(numbers: NDArray[np.float64]) -> bool:
    # Return whether there are many whole numbers, all with the same number of digits,
    # as postcodes. from the smallest to the largest
    distinct = np.unique(numbers[~np.isnan(numbers)])
    return bool(
        len(distinct) > _FEWEST_CODES
        and distinct[0] >= 10 ** (_SHORTEST_CODE - 1)  # at least so many digits
        and len(f"{distinct[0]:.0f}") == len(f"{distinct[-1]:.0f}")
    )


def auc_alone(
    values: pd.Series,
    numbers: NDArray[np.float64],
    y: NDArray[np.float64],
    in_groups: bool,
) -> float:
    """Return the AUC of a column as a score, in the better direction, gaps at the better end."""
    aucs = [0.5]  # of a constant
    if in_groups:  # few values, or text: a value ranks by its share of positives
        aucs.append(_auc_of_shares(pd.factorize(values, use_na_sentinel=False)[0], y))
    ordered = values if np.isnan(numbers).all() else numbers
    # rank numbers, and dates of many values, in order
    if not in_groups or ordered is numbers:
        codes, distinct = pd.factorize(ordered, sort=True)  # -1: missing
        # Rank missing values (if any) before all others, then behind them.
        for end in (-1, len(distinct)) if codes.min() < 0 else (-1,):
            value = auc(y, np.where(codes < 0, end, codes).astype(np.float64))
            aucs += [value, 1 - value]
    return max(aucs)


def _auc_of_shares(codes: NDArray[np.intp], y: NDArray[np.float64]) -> float:
    # Return the AUC of the share of positives by value, learnt on one half of the rows,
    # measured on the other half: so the label of a row does not rank the row. 0.5 if a
    # half has only one class.
    halves = np.array_split(np.random.default_rng(0).permutation(len(y)), 2)
    aucs = []
    n_values = codes.max() + 1
    for learnt, measured in (halves, halves[::-1]):
        if len(set(y[measured])) < 2:
            return 0.5  # no AUC without both classes
        n_rows = np.bincount(codes[learnt], minlength=n_values)
        positives = np.bincount(codes[learnt], y[learnt] > 0, n_values)
        prior = (y[learnt] > 0).mean()  # counts as one more row of each value
        shares = (positives + prior) / (n_rows + 1)
        aucs.append(auc(y[measured], shares[codes[measured]]))
    return min(aucs)  # the half that is less like a leak
