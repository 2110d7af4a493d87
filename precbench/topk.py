"""The top of a ranked list: `k` and `beta` as counts of rows, and selection of these rows.

A float is a share, of the positives for `k` and of the negatives for `beta`; an int is a count.
"""

import functools
import math
from numbers import Integral, Real

import numpy as np
from numpy.typing import NDArray

from precbench.errors import InputError

__all__ = ["ceil_share", "check_beta", "k_by_size", "resolve_k", "split_at", "top_rows"]


def resolve_k(k: float | int, n_pos: int) -> int:
    """Return `k` as a number of rows.

    Parameters
    ----------
    k : float or int
        A float in (0, 1] is a share of the positives, an int of at least 1 a count.
    n_pos : int
        Number of positives.

    Returns
    -------
    int
        ``max(1, ceil(k * n_pos))`` for a share, `k` itself for a count; at most `n_pos`.

    Raises
    ------
    InputError
        If `k` is neither, or exceeds the number of positives.
    """
    if isinstance(k, Integral) and not isinstance(k, bool) and k >= 1:
        count = int(k)
    elif isinstance(k, Real) and not isinstance(k, Integral) and 0 < k <= 1:
        count = ceil_share(k, n_pos)
    else:
        raise InputError(
            f"k = {k} is neither a share of the positives (a float in (0, 1]) "
            "nor a count (an int of at least 1); give one of the two"
        )
    if count > n_pos:
        raise InputError(
            f"k = {count} exceeds the number of positives, {n_pos}; "
            "give a smaller count or a share in (0, 1]"
        )
    return count


@functools.lru_cache(maxsize=8, typed=True)
def k_by_size(k: float | int, length: int) -> NDArray[np.int32]:
    """Tabulate `resolve_k` by the number of positives, which also caps a count.

    Parameters
    ----------
    k : float or int
        Share or count, as in `resolve_k`.
    length : int
        Largest number of positives.

    Returns
    -------
    ndarray of int32, shape (length + 1,)
        At index n the number of rows for n positives, at most n.

    Raises
    ------
    InputError
        If `k` is neither a share nor a count.
    """
    sizes = range(1, length + 1)
    counts = (resolve_k(min(k, n) if isinstance(k, Integral) else k, n) for n in sizes)
    return np.array([0, *counts], dtype=np.int32)


def ceil_share(share: float, n: int) -> int:
    """Return a share of `n` as a count, rounded up.

    Parameters
    ----------
    share : float
        Above 0; may exceed 1.
    n : int

    Returns
    -------
    int
        At least 1. Rounding errors do not matter: 0.07 of 100 is 7.
    """
    # 0.07 * 100 is 7.000000000000001 in floating point.
    return max(1, math.ceil(float(share) * n * (1 - 1e-12)))


def check_beta(beta: float) -> float:
    """Validate `beta`, a share of the negatives.

    Parameters
    ----------
    beta : float

    Returns
    -------
    float
        The same.

    Raises
    ------
    InputError
        If it is not a number in (0, 1].
    """
    if isinstance(beta, bool) or not isinstance(beta, Real) or not 0 < beta <= 1:
        raise InputError(f"beta = {beta} is not a share of the negatives; give a number in (0, 1]")
    return float(beta)


def split_at(scores: NDArray, count: int) -> tuple[NDArray[np.bool_], NDArray[np.bool_], int]:
    """Divide a ranked list at its `count`-th highest score, in linear time.

    Parameters
    ----------
    scores : ndarray of float64, shape (n_samples,)
        Finite.
    count : int
        At least 1, at most the number of rows.

    Returns
    -------
    above, tied : ndarray of bool, shape (n_samples,)
        The rows with higher scores, and those with the same.
    free : int
        Number of the tied rows that still belong to the top.
    """
    threshold = np.partition(scores, scores.size - count)[scores.size - count]
    above = scores > threshold
    return above, scores == threshold, count - int(np.count_nonzero(above))


def top_rows(scores: NDArray, rows: NDArray[np.intp], count: int) -> NDArray[np.intp]:
    """Return the highest scored of the given rows, in linear time.

    Parameters
    ----------
    scores : ndarray of float64, shape (n_samples,)
        Finite.
    rows : ndarray of intp
        Indices into `scores`, ascending.
    count : int
        At most the number of rows.

    Returns
    -------
    ndarray of intp, shape (count,)
        In any order. Of rows with equal scores those with the lower index come first.
    """
    if count == 0:
        return rows[:0]
    of_rows = scores[rows]
    threshold = np.partition(of_rows, -count)[-count]
    above, tied = rows[of_rows > threshold], rows[of_rows == threshold]
    return np.concatenate((above, tied[: count - above.size]))
