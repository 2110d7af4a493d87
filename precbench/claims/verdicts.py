"""The statistics behind the verdicts: when a printed value counts as reproduced.

No tolerance is chosen so that something passes. An *exact* number must agree to half a
unit of its last printed digit. A *mean* is one draw among many that were possible, so
the question is where it lies among our own draws. An *order* is decided by a sign test.
"""

import math
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
    """Read a number such as ``17,160.17``, ``2.73*10^3``, ``33K`` or ``3.92 %``.

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
        value=float(f"{digits}.{decimals}e{exponent}"),
        unit=float(f"1e{exponent - len(decimals)}"),
    )


def agrees(printed: Printed, measured: float, truncated: bool = False) -> bool:
    """Return whether a number would be printed as `printed`, rounded or truncated."""
    slack = 1e-9 * printed.unit  # for the rounding of the difference
    if truncated:
        return -slack <= measured - printed.value < printed.unit + slack
    return bool(abs(measured - printed.value) <= 0.5 * printed.unit + slack)


class PrintedRow(NamedTuple):
    """The printed values of a row of a table, and our repetitions of the row."""

    printed: NDArray[np.float64]  # by cell
    samples: NDArray[np.float64]  # (n_repetitions, n_cells)


class Placement(NamedTuple):
    """Where the printed values of a row lie among our own repetitions."""

    # share of repetitions, the print counted as one, at least as far out as the print
    p: float
    # share in which any row is as far out
    p_of_all: float
    # by cell: the least error that is detected if all other values are our means
    smallest_error: NDArray[np.float64]

    @property
    def passes(self) -> bool:
        """Whether the printed row is like our repetitions."""
        return self.p_of_all > LEVEL


def place(rows: Sequence[PrintedRow]) -> list[Placement]:
    """Return for each printed row where it lies among our repetitions.

    All rows share the repetitions. How far out a row lies is its Mahalanobis distance
    from the repetitions: differences between columns of the same split vary less than
    the values, and count for more. Distances are scaled for each row by those of its
    own repetitions, which may have heavy tails; one threshold for all rows then keeps
    the fraction of false alarms at 5 %.
    """
    distances = [_distances(printed, samples) for printed, samples in rows]
    with np.errstate(divide="ignore"):  # a distance of 0 has the logarithm -inf
        # by row
        log_printed = np.log([of_row.of_print for of_row in distances])
        # by row and repetition
        log_samples = np.log([of_row.of_samples for of_row in distances])
    # The logarithms d of a row are scaled to (d - middle) / (high - middle), so that 0
    # is the median of its repetitions and 1 their 95 % point.
    middle = np.median(log_samples, axis=1)
    high = np.quantile(log_samples, 1 - LEVEL, axis=1)
    scaled_print = (log_printed - middle) / (high - middle)
    scaled_samples = (log_samples.T - middle) / (high - middle)  # by repetition and row
    farthest = scaled_samples.max(axis=1)  # of all rows, by repetition
    # Only a print beyond the threshold has `p_of_all` <= `LEVEL`, see `_p_value`.
    threshold = np.sort(farthest)[-int(LEVEL * (1 + farthest.size))]
    # the threshold of each row as a squared distance
    limits = np.exp(middle + threshold * (high - middle))
    return [
        Placement(
            p=_p_value(log_samples[i] >= log_printed[i]),
            p_of_all=_p_value(farthest >= scaled_print[i]),
            smallest_error=np.sqrt(limits[i]) * distances[i].unit_errors,
        )
        for i in range(len(rows))
    ]


class _Distances(NamedTuple):
    """Squared Mahalanobis distances of a row."""

    of_print: float  # from our repetitions
    of_samples: NDArray[np.float64]  # of each repetition from the others
    # by cell: the error that alone gives a distance of 1
    unit_errors: NDArray[np.float64]


def _distances(
    printed: NDArray[np.float64], samples: NDArray[np.float64]
) -> _Distances:
    """Return how far out a printed row lies, and each of our repetitions of it.

    With z the standardised difference from the mean, Z the matrix of all z of the n
    samples, and C = Z'Z / (n - 1) their covariance, the squared distance is z' C^-1 z.
    By the SVD Z = U S A' it is (n - 1) |S^-1 A' z|^2.
    """
    n = len(samples)
    centre = samples.mean(axis=0)
    spread = samples.std(axis=0)
    u, s, axes = np.linalg.svd((samples - centre) / spread, full_matrices=False)
    # axes along which repetitions vary by more than rounding; along the first they
    # vary most
    used = s > 1e-9 * s[0]
    along = axes[used] / s[used, None]  # S^-1 A'
    unused = axes[~used]
    # An error of cell j alone, of e standard deviations, has the squared distance
    # (n - 1) |column j of S^-1 A'|^2 e^2. A cell with a part along an unused axis
    # follows from the others: any error of it is infinitely far out.
    unit_errors = spread / np.sqrt((n - 1) * (along**2).sum(axis=0))
    follows = np.abs(unused).max(axis=0, initial=0) > 1e-6
    return _Distances(
        of_print=_distance_of_print((printed - centre) / spread, along, unused, n),
        of_samples=_distances_of_samples(u[:, used], n),
        unit_errors=np.where(follows, 0.0, unit_errors),
    )


def _distance_of_print(
    z: NDArray[np.float64],
    along: NDArray[np.float64],  # S^-1 A'
    unused: NDArray[np.float64],  # the axes that our repetitions never leave
    n: int,
) -> float:
    """Return the squared distance of z, infinity if it lies along an unused axis."""
    outside = np.abs(unused @ z).max(initial=0)
    if outside > 1e-6 * np.abs(z).max():
        return np.inf
    return (n - 1) * float(((along @ z) ** 2).sum())


def _distances_of_samples(u: NDArray[np.float64], n: int) -> NDArray[np.float64]:
    """Return the squared distance of each repetition from the n - 1 others.

    `u` is U of the SVD in `_distances`, for the axes along which repetitions vary.
    With its leverage h = |row of U|^2 this is (n - 2) n h / ((n - 1)^2 / n - (n - 1) h)
    (Sherman and Morrison, as one row is left out).
    """
    leverage = (u**2).sum(axis=1)
    denominator = np.maximum((n - 1) ** 2 / n - (n - 1) * leverage, 0)
    with np.errstate(divide="ignore"):  # a denominator of 0: infinitely far out
        return (n - 2) * n * leverage / denominator


def _p_value(as_far: NDArray[np.bool_]) -> float:
    """Return the share that is as far out as the print, which is counted as one."""
    return float(1 + as_far.sum()) / (1 + as_far.size)


def has_spread(sample: NDArray[np.float64]) -> bool:
    """Return whether any n - 1 repetitions have a positive interquartile range."""
    n = len(sample)
    if n <= 3:
        return False
    # Whichever repetition is left out, the lower quartile of the others is at most
    # `lower`, and their upper quartile at least `upper`.
    ordered = np.sort(sample)
    lower = ordered[math.ceil((n - 2) / 4) + 1]
    upper = ordered[3 * (n - 2) // 4]
    return bool(upper > lower)


def prediction_half_width(sample: NDArray[np.float64], runs: int) -> float:
    """Return half the width of Student's prediction interval, for normal draws.

    In 95 % of cases the mean of `runs` more draws lies as near to the mean of the
    sample.
    """
    n = len(sample)
    return float(
        stdtrit(n - 1, 1 - LEVEL / 2) * sample.std(ddof=1) * np.sqrt(1 / n + 1 / runs)
    )


class SignTest(NamedTuple):
    wins: int
    losses: int
    p: float


def sign_test(better: NDArray, worse: NDArray, chance: float = 0.5) -> SignTest:
    """Return the one-sided sign test over splits; larger is better.

    Ties count for neither. `chance` is how often the claim would hold if the methods
    did not differ: b / (b + w) for the best of b methods against the best of w.
    """
    from scipy.stats import binomtest  # takes half a second to import

    wins = int(np.sum(better > worse))
    losses = int(np.sum(better < worse))
    if wins + losses == 0:
        return SignTest(0, 0, p=1.0)
    test = binomtest(wins, wins + losses, chance, alternative="greater")
    return SignTest(wins, losses, float(test.pvalue))


def mean_test(differences: ArrayLike) -> float:
    """Return p of the one-sided t test: small if the mean of the values is above 0."""
    values = np.asarray(differences, dtype=float)
    mean = values.mean()
    standard_error = values.std(ddof=1) / np.sqrt(len(values))
    # If the values are equal but for rounding, no doubt is left.
    if standard_error <= 1e-12 * abs(mean) or standard_error == 0:
        return 0.0 if mean > 0 else 1.0
    return float(stdtr(len(values) - 1, -mean / standard_error))


class Slope(NamedTuple):
    value: float
    low: float  # limits of its confidence interval
    high: float


def fitted_slope(x: NDArray, values: NDArray, level: float = LEVEL) -> Slope:
    """Return the slope of log(values) against x, the logarithms of sizes.

    Student's interval misses the true slope in the fraction `level` of cases, for
    independent normal errors of equal spread; with fewer than three points the interval
    is unbounded.
    """
    # Least squares: slope = sum (x - mean x) log v / sum (x - mean x)^2.
    n = len(x)
    logarithms = np.log(values)
    centred = x - x.mean()
    sum_of_squares = float(centred @ centred)
    slope = float(centred @ logarithms) / sum_of_squares
    if n < 3:
        return Slope(slope, -np.inf, np.inf)
    residuals = logarithms - logarithms.mean() - slope * centred
    standard_error = float(np.sqrt(residuals @ residuals / (n - 2) / sum_of_squares))
    half_width = float(stdtrit(n - 2, 1 - level / 2)) * standard_error
    return Slope(slope, slope - half_width, slope + half_width)
