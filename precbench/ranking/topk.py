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
    """Labels (above 0 for positives) and scores of the rows that a model was measured on.

    `amounts` holds what each row gains if it is a hit.
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
    values: list[Any] = [*k] if isinstance(k, list | tuple) else [k]
    if not values:
        raise InputError("k is an empty list; give at least one length of the top")
    plain = [
        value.item() if isinstance(value, np.generic) else value for value in values
    ]
    # by text: 1 (a row) == 1.0 (all)
    return [*{repr(v): check_k(v) for v in plain}.values()]


def _is_count(k: Any) -> bool:
    return isinstance(k, Integral) and not isinstance(k, bool) and int(k) >= 1


def _is_share(k: Any) -> bool:  # of the positives
    return isinstance(k, Real) and not isinstance(k, Integral) and 0 < float(k) <= 1


def _share_of_rows(k: object) -> float | None:
    # of text such as "1 %"; None for all else
    match = _PERCENT.fullmatch(k) if isinstance(k, str) else None
    share = float(match[1]) / 100 if match else 0.0
    return share if 0 < share <= 1 else None


def _suggestion(k: object) -> str:
    """Return what text that is nearly a `k` may mean: ``" (did you mean '1 %'?)"``.

    Else "".
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

    Refuse more than the list has.

    Without `n_rows`, `k` must not exceed the number of positives, nor be a fraction of
    the rows.
    """
    if n_rows is None and _share_of_rows(k) is not None:
        raise InputError(
            f"k = {k} is a fraction of the rows, whose number is not known here; give a"
            " fraction of the positives such as 0.25, or a count"
        )
    # a share of the rows has been refused without n_rows
    count = _count(k, n_pos, n_rows or 0)
    most, what = (n_pos, "positives") if n_rows is None else (n_rows, "rows")
    if count > most:
        raise InputError(
            f"k = {count} exceeds the number of {what}, {most}; "
            "give a smaller count, or a fraction of the positives in (0, 1]"
        )
    return count


def training_k(k: TopK, n_pos: int, n_rows: int) -> tuple[int, int]:
    """Return the k to train for, at most `n_pos`, and `k` as a number of rows."""
    # A top of more than `n_pos` rows is perfect if the positives come first, so
    # training needs no greater k. A count may exceed `n_rows`, since more rows may be
    # ranked later.
    count = _count(k, n_pos, n_rows)
    return min(count, n_pos), count


def _count(k: TopK, n_pos: int, n_rows: int) -> int:
    """Return `k` as a number of rows, fractions rounded up, even if there are fewer rows."""
    check_k(k)  # raises if `k` is invalid
    if (share := _share_of_rows(k)) is not None:
        return ceil_share(share, n_rows)
    return int(k) if isinstance(k, Integral) else ceil_share(float(k), n_pos)


@functools.lru_cache(maxsize=32, typed=True)  # typed: 1 and 1.0 are two values of k
def k_by_size(k: TopK, length: int) -> NDArray[np.int32]:
    """Return an array.

    Entry n is the k to train for with n positives among `length` rows.
    """
    # The array is cached: callers must not change its entries.
    # [0]: the k to train for
    counts = (training_k(k, n, length)[0] for n in range(1, length + 1))
    return np.array([0, *counts], dtype=np.int32)


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


def split_at(
    scores: NDArray, count: int
) -> tuple[NDArray[np.intp], NDArray[np.intp], int]:
    # Return the rows above the `count`-th highest score, the rows tied with it, and how
    # many of the tied rows are needed for a top of `count` rows. Takes linear time.
    place = scores.size - count
    lowest = np.partition(scores, place)[place]  # the lowest score in the top
    top = np.flatnonzero(scores >= lowest)
    is_tied = scores[top] == lowest
    above = top[~is_tied]
    return above, top[is_tied], count - above.size


def top_rows(
    scores: NDArray[np.float64], rows: NDArray[Any] | None, count: int
) -> NDArray[np.intp]:
    """Return the `count` highest scored of `rows` (indices, a mask, or None.

    All) as indices.
    """
    # Of equal scores the lower index comes first; ``np.argpartition`` breaks ties
    # differently on other processors. Not sorted by score, but rows with the lowest
    # score of the top come last.
    if not count:
        return np.empty(0, dtype=np.intp)
    if rows is not None and rows.dtype == np.bool_:
        # a mask: other rows come last
        scores, rows = np.where(rows, scores, -np.inf), None
    above, tied, n_tied_in_top = split_at(
        scores if rows is None else scores[rows], count
    )
    first = np.concatenate([above, tied[:n_tied_in_top]])  # positions in `rows`
    return first if rows is None else rows[first]


def first_rows(scores: NDArray, count: int) -> NDArray[np.intp]:
    """Return the indices of the `count` highest scores, ascending.

    Of equal scores the first.
    """
    return np.sort(top_rows(scores, rows=None, count=count))


def sums_at(values: NDArray, scores: NDArray, counts: ArrayLike) -> NDArray[np.float64]:
    """Return the sums of `values` over the rows with the highest scores, for each of `counts`."""
    # Ties at the end of the top count by the mean over their orders, which is linear in
    # the length.
    order = np.argsort(-scores, kind="stable")
    # last row of each score
    ends = np.flatnonzero(np.append(np.diff(scores[order]) != 0, True))
    return np.interp(
        np.asarray(counts), [0, *(ends + 1)], [0.0, *np.cumsum(values[order])[ends]]
    )


def cut_below(scores: NDArray, count: int) -> float:
    """Return a number that only the `count` highest scores exceed.

    Those tied at the end do not.
    """
    # Cut midway between the last score of the top and the highest below, so that the
    # last bit of a score, which may differ between processors, does not decide. If
    # scores of the top are tied, up to noise, with the highest score below, cut above
    # the ties; if the top has all rows, cut below all. The noise is far above rounding
    # errors, and far below differences of scores.
    noise = max(
        2.0**-33 * float(np.abs(scores).max()), float(np.finfo(np.float64).tiny)
    )
    if count >= scores.size:
        return float(scores.min()) - noise
    # top and next score
    ascending = np.sort(scores[top_rows(scores, rows=None, count=count + 1)])
    gaps = np.flatnonzero(np.diff(ascending) > noise)
    if not gaps.size:  # all these scores are tied
        return float(ascending[-1]) + noise
    # lowest gap: below the top or above its ties
    below, above = ascending[gaps[0] : gaps[0] + 2]
    return float(below / 2 + above / 2)  # halved before the sum, which might overflow
