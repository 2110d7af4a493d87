"""The statistics behind the verdicts: when a printed value counts as reproduced.

No tolerance is chosen so that something passes. An *exact* number must agree to half a
unit of its last printed digit. A *mean* is one draw among many that were possible, so
the question is where it lies among our own draws. An *order* is decided by a sign test.
"""

import re
from collections.abc import Sequence
from enum import StrEnum
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import stdtr, stdtrit

from precbench.core.errors import InputError

# Fewer draws say too little about the tail in which a wrong number would lie
MIN_REPETITIONS = 100
MIN_SPLITS = 20  # for a test over splits
MIN_TIMED_SPLITS = 5  # the number over which the papers average their times
LEVEL = 0.05  # of all tests
# The fraction of a claim's bounds or curves that has to be able to fail: at least half
MIN_INFORMATIVE = 0.5


class Verdict(StrEnum):
    """The verdict on a claim; the first four are decisions, from best to worst.

    No power: whatever was printed would have passed. Inconclusive: too few runs. No
    data: nothing to compare with. No config: no experiment measures it yet. Not
    testable: no run can decide it. The last two do not depend on the results.
    """

    REPRODUCED = "reproduced"
    WITH_DEVIATION = "reproduced with deviation"
    TREND_ONLY = "trend only"
    NOT_REPRODUCED = "not reproduced"
    NO_POWER = "no power"
    INCONCLUSIVE = "inconclusive"
    NO_DATA = "no data"
    NO_CONFIG = "no config"
    NOT_TESTABLE = "not testable"

    @property
    def rank(self) -> int | None:
        """Place from best (0) to worst; None if nothing was decided."""
        decided = list(Verdict)[:4]  # the decisions, from best to worst
        return decided.index(self) if self in decided else None

    @property
    def holds(self) -> bool:
        return self in (Verdict.REPRODUCED, Verdict.WITH_DEVIATION)

    @property
    def is_settled(self) -> bool:
        """Whether enough was measured for a decision, or to say that there is none."""
        return self.rank is not None or self is Verdict.NO_POWER

    @property
    def is_fixed(self) -> bool:
        """Whether the verdict follows from the claim alone, whatever the results."""
        return self in (Verdict.NO_CONFIG, Verdict.NOT_TESTABLE)


class Printed(NamedTuple):
    """A number as printed, and the unit of its last digit."""

    value: float
    unit: float


_NUMBER = re.compile(  # groups: integer, decimals, power of ten, K
    r"(-?(?:\d{1,3}(?:,\d{3})+|\d+))(?:\.(\d+))?(?:\s*\*\s*10\^(\d+)|(K))?\s*%?",
    re.ASCII,
)


def parse_printed(text: str, power_of_ten: int = 0) -> Printed:
    """Return a printed number, such as ``17,160.17``, ``2.73*10^3``, ``33K`` or ``3.92 %``.

    The number is multiplied by 10^`power_of_ten`, which the print left out.
    """
    match = _NUMBER.fullmatch(text)
    if match is None:
        raise InputError(
            f"{text!r} is not a printed number; write it as 17,160.17 or 2.73*10^3"
        )
    integer, decimals, power, thousands = (group or "" for group in match.groups())
    digits = integer.replace(",", "")
    exponent = (3 if thousands else int(power or 0)) + power_of_ten
    return Printed(
        float(f"{digits}.{decimals}e{exponent}"), float(f"1e{exponent - len(decimals)}")
    )


def agrees(printed: Printed, measured: float, truncated: bool = False) -> bool:
    """Return whether a measured number would be printed as `printed`, rounded or truncated."""
    slack = 1e-9 * printed.unit  # for the rounding of the difference
    if truncated:
        return -slack <= measured - printed.value < printed.unit + slack
    return bool(abs(measured - printed.value) <= 0.5 * printed.unit + slack)


class Placement(NamedTuple):
    """Where the printed values of a row lie among our own repetitions."""

    # fraction of repetitions, the printed one included, at least as far out as the
    # print
    p: float
    # fraction in which any row is as far out; at most `LEVEL`: the row differs
    p_of_all: float
    # by cell: detected if all other values are our means
    smallest_error: NDArray[np.float64]


def place(
    rows: Sequence[tuple[NDArray[np.float64], NDArray[np.float64]]],
) -> list[Placement]:
    """Return for each printed row where it lies among our repetitions, which all rows share.

    A row is the printed values and our repetitions, an array of shape (n_repetitions,
    n_cells). How far out it lies is its Mahalanobis distance from the repetitions:
    differences between columns of the same split vary less than the values, and count
    for more. Distances are scaled for each row by those of its own repetitions, which
    may have heavy tails; one threshold for all rows then keeps the fraction of false
    alarms at 5 %.
    """
    # By row: the squared distances of the print and of each repetition, and the units
    # of errors
    printed, drawn, units = zip(*(_distances(*row) for row in rows), strict=True)
    with np.errstate(divide="ignore"):  # a distance of 0 has the logarithm -inf
        log_drawn, log_printed = np.log(drawn), np.log(printed)
    # Logarithms are scaled: 0 is the median of a row's repetitions, 1 is their 95 %
    # point.
    middle, high = (
        np.median(log_drawn, axis=1),
        np.quantile(log_drawn, 1 - LEVEL, axis=1),
    )
    scaled_print = (log_printed - middle) / (high - middle)
    farthest = ((log_drawn.T - middle) / (high - middle)).max(axis=1)  # by repetition
    # Only a print beyond the threshold has `p_of_all` <= `LEVEL`, see `_share`.
    threshold = np.sort(farthest)[-int(LEVEL * (1 + farthest.size))]
    # by row, as squared distances
    limits = np.exp(middle + threshold * (high - middle))
    return [
        Placement(
            p=_p_value(log_drawn[i] >= log_printed[i]),
            p_of_all=_p_value(farthest >= scaled_print[i]),
            smallest_error=np.sqrt(limits[i]) * units[i],
        )
        for i in range(len(rows))
    ]


def _distances(
    printed: NDArray[np.float64], samples: NDArray[np.float64]
) -> tuple[float, NDArray[np.float64], NDArray[np.float64]]:
    """Return squared Mahalanobis distances.

    Of a printed row from `samples`, of each from others.

    Last comes, by cell, how far it alone has to be off for a distance of 1. The samples
    are our repetitions, an array of shape (n_repetitions, n_cells).
    """
    # With z the standardised difference from the mean and C the correlation of the
    # samples, the squared distance is z' inv(C) z = (n - 1) |along z|^2; along = axes /
    # s, by the SVD of all z.
    n, centre, spread = len(samples), samples.mean(axis=0), samples.std(axis=0)
    u, s, axes = np.linalg.svd((samples - centre) / spread, full_matrices=False)
    # axes along which repetitions vary by more than rounding; s[0]: most
    used = s > 1e-9 * s[0]
    leverage, along = (u[:, used] ** 2).sum(axis=1), axes[used] / s[used, None]
    offset = (printed - centre) / spread  # z of the print
    # Our repetitions never leave the used axes: a print that leaves them is infinitely
    # far out.
    is_outside = (
        np.abs(axes[~used] @ offset).max(initial=0) > 1e-6 * np.abs(offset).max()
    )
    # cells that follow from others
    is_fixed = np.abs(axes[~used]).max(axis=0, initial=0) > 1e-6
    with np.errstate(divide="ignore"):  # a denominator of 0: infinitely far out
        # Each from the n - 1 others, by its leverage h (Sherman and Morrison, as one
        # row is left out): (n - 2) n h / ((n - 1)^2 / n - (n - 1) h).
        drawn = (
            (n - 2)
            * n
            * leverage
            / np.maximum((n - 1) ** 2 / n - (n - 1) * leverage, 0)
        )
    unit = spread / np.sqrt((n - 1) * (along**2).sum(axis=0))
    distance = np.inf if is_outside else (n - 1) * float(((along @ offset) ** 2).sum())
    # An error of a fixed cell alone is infinitely far out, however small.
    return distance, drawn, np.where(is_fixed, 0.0, unit)


def _p_value(as_far: NDArray[np.bool_]) -> float:
    # share as far out as the print, counted as one
    return float(1 + as_far.sum()) / (1 + as_far.size)


def has_spread(sample: NDArray[np.float64]) -> bool:
    """Return whether the interquartile range is positive whichever repetition is left out."""
    ordered, n = np.sort(sample), len(sample)
    # A quartile moves a place at most: inner places are compared. -(-a // 4) rounds a /
    # 4 up.
    return bool(n > 3 and ordered[3 * (n - 2) // 4] > ordered[-(-(n - 2) // 4) + 1])


def prediction_half_width(sample: NDArray[np.float64], runs: int) -> float:
    """Return how far the mean of `runs` more draws is from the mean of a sample in 95 % of cases.

    This is half of Student's prediction interval, for normal draws.
    """
    n = len(sample)
    return float(
        stdtrit(n - 1, 1 - LEVEL / 2) * sample.std(ddof=1) * np.sqrt(1 / n + 1 / runs)
    )


def sign_test(
    better: NDArray, worse: NDArray, chance: float = 0.5
) -> tuple[int, int, float]:
    """Return wins, losses, and p of the one-sided sign test over splits.

    Larger is better.

    Ties count for neither. `chance` is how often the claim would hold if the methods
    did not differ: b / (b + w) for the best of b methods against the best of w.
    """
    from scipy.stats import binomtest  # takes half a second to import

    wins, losses = int(np.sum(better > worse)), int(np.sum(better < worse))
    if wins + losses == 0:
        return 0, 0, 1.0
    return (
        wins,
        losses,
        float(binomtest(wins, wins + losses, chance, alternative="greater").pvalue),
    )


def mean_test(differences: ArrayLike) -> float:
    """Return p of the one-sided t test.

    A small p says that the mean of the values is above 0.
    """
    values = np.asarray(differences, dtype=float)
    mean, error = values.mean(), values.std(ddof=1) / np.sqrt(len(values))
    # values equal but for rounding: no doubt is left
    if error <= 1e-12 * abs(mean) or error == 0:
        return 0.0 if mean > 0 else 1.0
    return float(stdtr(len(values) - 1, -mean / error))


class Slope(NamedTuple):  # with the limits of an interval
    value: float
    low: float
    high: float


def fitted_slope(x: NDArray, values: NDArray, level: float = LEVEL) -> Slope:
    """Return the slope of the logarithms of positive values against x, the logarithms of sizes.

    Student's interval misses the true slope in the fraction `level` of cases, for
    independent normal errors of equal spread; with fewer than three points the interval
    is unbounded.
    """
    # Least squares: slope = sum (x - mean x) log v / sum (x - mean x)^2.
    n, logarithms = len(x), np.log(values)
    centred = x - x.mean()
    square = float(centred @ centred)
    slope = float(centred @ logarithms) / square
    if n < 3:
        return Slope(slope, -np.inf, np.inf)
    errors = logarithms - logarithms.mean() - slope * centred  # from the fitted line
    spread = float(np.sqrt(errors @ errors / (n - 2) / square))
    half = float(stdtrit(n - 2, 1 - level / 2)) * spread
    return Slope(slope, slope - half, slope + half)
