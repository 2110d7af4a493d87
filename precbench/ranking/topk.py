"""The top of a ranked list.

`k` and `beta` as counts of rows, and where the list is cut.

An int `k` is a count of rows, a float a fraction of the positives, and a string ending
in % such as ``"1 %"`` a fraction of the rows. `beta` is a fraction of the negatives.
Scores are finite.
"""

import functools
import math
import re
from collections.abc import Sequence
from contextlib import suppress
from numbers import Integral, Real
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from precbench.core.errors import InputError

# 100: a count of rows; 0.25: a fraction of the positives; "1 %": a fraction of the
# rows.
TopK = float | int | str

_PERCENT = re.compile(r"(\d{1,15}(?:\.\d{0,15})?|\.\d{1,15}) ?%", re.ASCII)
_NEARLY_PERCENT = re.compile(
    r"\s*([\d.,]{1,31})\s*(?:%|percent|per cent|pct)\s*", re.IGNORECASE
)


class HeldOut(NamedTuple):
    """Labels and scores of the rows that a model was measured on.

    Labels are above 0 for positives. `amounts` holds what each row gains as a hit.
    """

    y: NDArray[np.float64]
    scores: NDArray[np.float64]
    amounts: NDArray[np.float64] | None = None


def check_k(k: TopK) -> TopK:
    """Return `k` as it is; raise an error if `k` has no meaning for any list."""
    if _is_count(k) or _is_share(k) or _share_of_rows(k) is not None:
        return k
    text = repr(str(k)) if isinstance(k, str) else k
    raise InputError(
        f"k = {text} is neither a fraction of the positives (a float in (0, 1]), nor a"
        " number of rows (an int of at least 1), nor a fraction of the rows (such as"
        f" '1 %'){_suggestion(k)}; give one of the three"
    )


def several_k(k: TopK | Sequence[TopK]) -> list[TopK]:
    """Return one `k` or several as a list without duplicates; refuse an empty list."""
    values: list[Any] = list(k) if isinstance(k, list | tuple) else [k]
    if not values:
        raise InputError("k is an empty list; give at least one length of the top")
    # The text tells 1, a single row, from 1.0, as many rows as there are positives,
    # which are equal as numbers.
    by_text: dict[str, TopK] = {}
    for value in values:
        plain = value.item() if isinstance(value, np.generic) else value
        by_text[repr(plain)] = check_k(plain)
    return list(by_text.values())


def _is_count(k: Any) -> bool:
    return isinstance(k, Integral) and not isinstance(k, bool) and int(k) >= 1


def _is_share(k: Any) -> bool:
    """Return whether `k` is a share of the positives."""
    return isinstance(k, Real) and not isinstance(k, Integral) and 0 < float(k) <= 1


def _share_of_rows(k: object) -> float | None:
    """Return the share of text such as "1 %", None for all else."""
    if not isinstance(k, str):
        return None
    match = _PERCENT.fullmatch(k)
    if match is None:
        return None
    share = float(match[1]) / 100
    return share if 0 < share <= 1 else None


def _suggestion(k: object) -> str:
    """Return what text that is nearly a `k` may mean, such as " (did you mean '1 %'?)".

    For all else "".
    """
    if not isinstance(k, str):
        return ""
    percent = _NEARLY_PERCENT.fullmatch(k)
    text = f"{percent[1].replace(',', '.')} %" if percent else k.strip()
    if _share_of_rows(text) is not None:
        return f" (did you mean {text!r}?)"
    for kind in (int, float):
        with suppress(ValueError):
            if _is_count(kind(text)) or _is_share(kind(text)):
                return f" (did you mean {kind(text)}, without quotes?)"
    return ""


def resolve_k(k: TopK, n_pos: int, n_rows: int | None = None) -> int:
    """Return `k` as a number of rows, fractions rounded up.

    Refuse more than the list has. Without `n_rows`, `k` must not exceed the number of
    positives, nor be a fraction of the rows.
    """
    if n_rows is None and _share_of_rows(k) is not None:
        raise InputError(
            f"k = {k} is a fraction of the rows, whose number is not known here; give a"
            " fraction of the positives such as 0.25, or a count"
        )
    if n_rows is None:
        # The number of rows does not matter: `k` is no share of the rows.
        count = _count(k, n_pos, n_rows=0)
        most = n_pos
        counted = "positives"
    else:
        count = _count(k, n_pos, n_rows)
        most = n_rows
        counted = "rows"
    if count > most:
        raise InputError(
            f"k = {count} exceeds the number of {counted}, {most}; give a smaller"
            " count, or a fraction of the positives in (0, 1]"
        )
    return count


class TrainingK(NamedTuple):
    """A `k` as a number of rows, and the k to train for."""

    capped: int  # at most the number of positives: the k to train for
    uncapped: int  # which may exceed all rows, since more may be ranked later


def training_k(k: TopK, n_pos: int, n_rows: int) -> TrainingK:
    """Return `k` as a number of rows, and capped for the training."""
    # A top of more than `n_pos` rows is perfect if the positives come first, so
    # training needs no greater k.
    count = _count(k, n_pos, n_rows)
    return TrainingK(capped=min(count, n_pos), uncapped=count)


def _count(k: TopK, n_pos: int, n_rows: int) -> int:
    """Return `k` as a number of rows, fractions rounded up, even if there are fewer."""
    check_k(k)  # raises if `k` is invalid
    share = _share_of_rows(k)
    if share is not None:
        return ceil_share(share, n_rows)
    if isinstance(k, Integral):
        return int(k)
    return ceil_share(float(k), n_pos)


@functools.lru_cache(maxsize=32, typed=True)  # typed: 1 and 1.0 are two values of k
def k_by_n_pos(k: TopK, length: int) -> NDArray[np.int32]:
    """Return an array whose entry n is the k to train for with n positives.

    They are among `length` rows; n goes from 0 to `length`. The array is cached:
    callers must not change it.
    """
    counts = [0]
    for n_pos in range(1, length + 1):
        counts.append(training_k(k, n_pos, length).capped)
    return np.array(counts, dtype=np.int32)


def ceil_share(share: float, n: int) -> int:
    """Return `share` times `n` as a count of at least 1, rounded up.

    `share` may exceed 1.
    """
    # 0.07 * 100 is 7.000000000000001 in floating point, and must not become 8.
    return max(1, math.ceil(float(share) * n * (1 - 1e-12)))


def check_beta(beta: float) -> float:
    if isinstance(beta, bool) or not isinstance(beta, Real) or not 0 < beta <= 1:
        raise InputError(
            f"beta = {beta} is not a fraction of the negatives; give a number in (0, 1]"
        )
    return float(beta)


class Split(NamedTuple):
    """The top of a list, whose last rows may be tied with rows below it.

    Attributes
    ----------
    above : ndarray
        Rows above the lowest score in the top.
    tied : ndarray
        Rows with this score.
    n_tied_in_top : int
        How many of the tied rows the top needs.
    """

    above: NDArray[np.intp]
    tied: NDArray[np.intp]
    n_tied_in_top: int


def split_at(scores: NDArray, count: int) -> Split:
    """Return the top of `count` >= 1 rows in linear time."""
    place = scores.size - count  # of the lowest score in the top, in ascending order
    lowest = np.partition(scores, place)[place]
    reached = np.flatnonzero(scores >= lowest)
    is_tied = scores[reached] == lowest
    above = reached[~is_tied]
    return Split(above=above, tied=reached[is_tied], n_tied_in_top=count - above.size)


def top_rows(
    scores: NDArray[np.float64], rows: NDArray[Any] | None, count: int
) -> NDArray[np.intp]:
    """Return the `count` highest scored of `rows` as indices.

    `rows` are indices, a mask, or None for all. Of equal scores the lower index comes
    first. The result is not sorted by score, but rows with its lowest score come last.
    """
    if not count:
        return np.empty(0, dtype=np.intp)
    if rows is None:
        return _first_of_split(scores, count)
    if rows.dtype == np.bool_:
        in_mask = np.where(rows, scores, -np.inf)  # all other rows come last
        return _first_of_split(in_mask, count)
    return rows[_first_of_split(scores[rows], count)]


def _first_of_split(scores: NDArray[np.float64], count: int) -> NDArray[np.intp]:
    """Return the `count` highest scores as indices, see `top_rows`."""
    # ``np.argpartition`` would break ties differently on other processors.
    top = split_at(scores, count)
    return np.concatenate([top.above, top.tied[: top.n_tied_in_top]])


def first_rows(scores: NDArray, count: int) -> NDArray[np.intp]:
    """Return the indices of the `count` highest scores, ascending.

    Of equal scores the first.
    """
    return np.sort(top_rows(scores, rows=None, count=count))


def sums_at(values: NDArray, scores: NDArray, counts: ArrayLike) -> NDArray[np.float64]:
    """Return the sum of `values` over so many rows at the top, for each of `counts`.

    Ties at the end of the top count by the mean over their orders, which is linear in
    the length.
    """
    order = np.argsort(-scores, kind="stable")
    is_last_of_score = np.append(np.diff(scores[order]) != 0, True)
    last_of_score = np.flatnonzero(is_last_of_score)
    lengths = [0, *(last_of_score + 1)]  # of the tops that end between scores
    sums = [0.0, *np.cumsum(values[order])[last_of_score]]
    return np.interp(np.asarray(counts), lengths, sums)


def cut_below(scores: NDArray, count: int) -> float:
    """Return a number that only the `count` highest scores exceed.

    If scores of the top are tied with one below it, they do not exceed it.
    """
    # Scores that differ by less than the noise are tied. It is far above rounding
    # errors, and far below other differences of scores.
    smallest = float(np.finfo(np.float64).tiny)
    noise = max(2.0**-33 * float(np.abs(scores).max()), smallest)
    if count >= scores.size:  # cut below all rows
        return float(scores.min()) - noise
    top_and_next = top_rows(scores, rows=None, count=count + 1)
    ascending = np.sort(scores[top_and_next])
    gaps = np.flatnonzero(np.diff(ascending) > noise)
    if not gaps.size:  # all these scores are tied: cut above them
        return float(ascending[-1]) + noise
    # The lowest gap is between the next row and the top, or above the ties of the two.
    # Cut midway, so that the last bit of a score, which may differ between processors,
    # does not decide.
    below_gap = ascending[gaps[0]]
    above_gap = ascending[gaps[0] + 1]
    return float(below_gap / 2 + above_gap / 2)  # the sum might overflow
