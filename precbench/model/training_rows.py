"""Hashes of training rows, by which they are recognised in a list."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from precbench.core.text import count

_MOST = 10_000  # hashes that a model keeps
_MEND = "fit and save the model again"
_SIGMAS = 4  # standard deviations above chance from which on equal rows need a warning


def _hashes(X: NDArray[Any]) -> NDArray[np.uint64]:
    """Return a hash of each row.

    Its values, as whole numbers of 64 bits, are mixed, and multiplied by the powers of
    an odd number; the hash is the sum, modulo 2**64. This is five times as fast as the
    hash of pandas.
    """
    bits = np.add(X, 0.0, dtype=np.float64).view(np.uint64)  # -0 becomes 0
    # Mix high bits into the low ones: the low bits of whole numbers are 0, and would
    # stay 0 in products modulo 2**64.
    bits ^= bits >> np.uint64(32)
    # 2**64 over the golden ratio, as in Fibonacci hashing (Knuth).
    odd = np.full(X.shape[1], 0x9E3779B97F4A7C15, np.uint64)
    return bits @ np.cumprod(odd, dtype=np.uint64)


@dataclass(frozen=True, eq=False)
class TrainingRows:
    """Hashes of some training rows, and how often rows are equal by chance.

    Attributes
    ----------
    hashes : ndarray of uint64
        The smallest hashes of the distinct encoded rows, in ascending order.
    share : float
        Share of the distinct rows whose hashes are kept.
    repeated : float
        Share of the training rows that are equal to another training row.
    """

    hashes: NDArray[np.uint64] = field(repr=False)
    share: float
    repeated: float

    @classmethod
    def learn(cls, X: Any) -> Self | None:
        """Keep the smallest hashes of encoded rows, which are a random sample.

        Return None for sparse rows.
        """
        if not isinstance(X, np.ndarray):
            return None
        distinct, counts = np.unique(_hashes(X), return_counts=True)  # ascending
        smallest = distinct[:_MOST].copy()
        n_repeated = counts[counts > 1].sum()
        return cls(
            hashes=smallest,
            share=len(smallest) / len(distinct),
            repeated=float(n_repeated / len(X)),
        )

    def count(self, X: NDArray[Any]) -> int:
        """Count the encoded rows whose hash is among those of training rows."""
        hashes = _hashes(X)
        # A hash above all those of training rows is compared with the last of them.
        last = len(self.hashes) - 1
        places = np.minimum(np.searchsorted(self.hashes, hashes), last)
        return int((self.hashes[places] == hashes).sum())

    def sentence(self, n_equal: int, n_rows: int) -> str | None:
        """Return a warning if chance does not explain `n_equal`, from `count`."""
        # The number of equal rows among new rows has a Poisson distribution, whose
        # standard deviation is the root of its mean.
        by_chance = self.repeated * self.share * n_rows
        if n_equal <= by_chance + _SIGMAS * by_chance**0.5:
            return None
        # Only a share of the hashes is stored.
        n_training = min(n_rows, round(n_equal / self.share))
        roughly = "about " if self.share < 1 else ""
        return (
            f"{roughly}{count(n_training, 'training row')} of this model among"
            f" {n_rows:,} rows: expect fewer hits among new rows"
        )

    def to_arrays(self) -> dict[str, NDArray]:
        numbers = np.array([self.share, self.repeated])
        return {"hashes": self.hashes.view(np.int64), "numbers": numbers}

    @classmethod
    def from_arrays(cls, arrays: dict[str, NDArray]) -> Self:
        """Rebuild from the arrays of an untrusted file."""
        hashes = arrays["hashes"]  # saved as signed integers
        if hashes.dtype != np.int64 or hashes.ndim != 1:
            raise ValueError(f"rows: hashes are no vector of integers; {_MEND}")
        if not 0 < len(hashes) <= _MOST:
            raise ValueError(f"rows: there are no hashes, or too many; {_MEND}")
        share, repeated = arrays["numbers"].tolist()
        if not 0 < share <= 1:
            raise ValueError(f"rows: the share of hashes is not in (0, 1]; {_MEND}")
        if not 0 <= repeated <= 1:
            raise ValueError(f"rows: the share of repeats is not in [0, 1]; {_MEND}")
        return cls(hashes.view(np.uint64), share, repeated)
