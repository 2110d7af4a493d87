"""The statistics behind the verdicts: when a printed value counts as reproduced.

No tolerance is chosen so that something passes. An *exact* number must agree to half a unit of its
last printed digit. A *mean* is one draw among many that were possible, so the question is where it
lies among our own draws. An *order* is decided by a sign test.
"""

import re
from enum import StrEnum
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.stats import binomtest, t

from precbench.errors import InputError

__all__ = [
    "MIN_REPETITIONS",
    "MIN_SPLITS",
    "MIN_TIMED_SPLITS",
    "Placement",
    "Printed",
    "Verdict",
    "agrees",
    "has_spread",
    "parse_printed",
    "place",
    "prediction_error",
    "sign_test",
]

MIN_REPETITIONS = 100
"""Fewer draws of ours say too little about the tail in which a wrong number would lie."""
MIN_SPLITS = 20
MIN_TIMED_SPLITS = 5
"""The number of splits over which the papers average their times."""
LEVEL = 0.05


class Verdict(StrEnum):
    """What the results say about a claim; the first four are decisions, from best to worst.

    Without a decision: it was measured, but whatever was printed would have passed (no power), too
    few runs (inconclusive), no results or no data set to compare with (no data), no experiment that
    measures it yet (no config), or a statement that no run can decide (not testable). The last two
    do not depend on the results.
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
        decided = list(Verdict)[:4]
        return decided.index(self) if self in decided else None

    @property
    def is_settled(self) -> bool:
        """Whether enough was measured for a decision, or to say that there is none."""
        return self.rank is not None or self is Verdict.NO_POWER

    @property
    def is_fixed(self) -> bool:
        """Whether it follows from the claim alone, whatever the results."""
        return self in (Verdict.NO_CONFIG, Verdict.NOT_TESTABLE)


class Printed(NamedTuple):
    """A number as printed, and the unit of its last digit."""

    value: float
    unit: float


_NUMBER = re.compile(r"(-?\d[\d,]*)(?:\.(\d+))?(?:\s*\*\s*10\^(\d+)|(K))?\s*%?")


def parse_printed(text: str, power_of_ten: int = 0) -> Printed:
    """Read a printed number.

    Parameters
    ----------
    text : str
        For example ``17,160.17``, ``2.73*10^3``, ``33K`` or ``3.92 %``.
    power_of_ten : int, default=0
        A power that was dropped in print.

    Returns
    -------
    Printed

    Raises
    ------
    InputError
        If the text is not such a number.
    """
    match = _NUMBER.fullmatch(text)
    if match is None:
        raise InputError(f"{text!r} is not a printed number such as 17,160.17 or 2.73*10^3")
    whole, decimals = match[1].replace(",", ""), match[2] or ""
    power = 3 if match[4] else int(match[3] or 0)
    exponent = power + power_of_ten
    return Printed(float(f"{whole}.{decimals}e{exponent}"), float(f"1e{exponent - len(decimals)}"))


def agrees(printed: Printed, measured: float, truncated: bool = False) -> bool:
    """Return whether a measured number would have been printed like this.

    Parameters
    ----------
    printed : Printed
    measured : float
    truncated : bool, default=False
        Whether the digits after the last were cut off instead of rounded.

    Returns
    -------
    bool
    """
    slack = 1e-9 * printed.unit  # for the rounding of the sum itself
    if truncated:
        return -slack <= measured - printed.value < printed.unit + slack
    return bool(abs(measured - printed.value) <= 0.5 * printed.unit + slack)


class Placement(NamedTuple):
    """Where printed values lie among our own repetitions.

    Attributes
    ----------
    distance : ndarray of shape (n_cells,)
        ``|printed - median| / IQR``.
    percentile : ndarray of shape (n_cells,)
        Share of the repetitions below the printed value, ties by half, in percent.
    threshold : float
        The distance from which a value counts as different: the 95 % quantile, over the repetitions
        taken in turn as the printed one, of the largest distance over all cells.
    smallest_error : ndarray of shape (n_cells,)
        The smallest error of a printed value that is detected where the true one is the median:
        the threshold times the IQR.
    """

    distance: NDArray[np.float64]
    percentile: NDArray[np.float64]
    threshold: float
    smallest_error: NDArray[np.float64]


def place(printed: NDArray[np.float64], samples: NDArray[np.float64]) -> Placement:
    """Place printed values among our repetitions, all cells together.

    One threshold for all of them keeps the share of false alarms at 5 %, however many they are.

    Parameters
    ----------
    printed : ndarray of shape (n_cells,)
    samples : ndarray of shape (n_repetitions, n_cells)
        Our own repetitions of the same protocol; a row holds all cells of one of them.

    Returns
    -------
    Placement
    """
    centre, spread = _centre_and_spread(samples)
    largest = [
        _distance(row, *_centre_and_spread(np.delete(samples, i, axis=0))).max()
        for i, row in enumerate(samples)
    ]
    threshold = float(np.quantile(largest, 1 - LEVEL, method="higher"))
    below, tied = (samples < printed).mean(axis=0), (samples == printed).mean(axis=0)
    return Placement(
        distance=_distance(printed, centre, spread),
        percentile=100 * (below + 0.5 * tied),
        threshold=threshold,
        smallest_error=threshold * spread,
    )


def has_spread(sample: NDArray[np.float64]) -> bool:
    """Return whether distances can be measured in interquartile ranges.

    Parameters
    ----------
    sample : ndarray of shape (n_repetitions,)

    Returns
    -------
    bool
        Whether the range stays positive when any one repetition is left out.
    """
    ordered, n = np.sort(sample), len(sample)
    return bool(n > 3 and ordered[3 * (n - 2) // 4] > ordered[-(-(n - 2) // 4) + 1])


def prediction_error(sample: NDArray[np.float64], runs: int) -> float:
    """Return how far the mean of a few more draws lies from that of the sample at most.

    Parameters
    ----------
    sample : ndarray of shape (n_draws,)
    runs : int
        Number of further draws.

    Returns
    -------
    float
        Half the prediction interval of Student that holds in 95 of 100 cases for normal draws.
    """
    n = len(sample)
    return float(t.ppf(1 - LEVEL / 2, n - 1) * sample.std(ddof=1) * np.sqrt(1 / n + 1 / runs))


def sign_test(
    better: NDArray[np.float64], worse: NDArray[np.float64], chance: float = 0.5
) -> tuple[int, int, float]:
    """Compare two methods that were measured on the same splits; larger is better.

    Parameters
    ----------
    better, worse : ndarray of shape (n_splits,)
        Values of the method that is claimed to be better, and of the other.
    chance : float, default=0.5
        How often the claim would hold if the two did not differ: b / (b + w) for the best of b
        methods against the best of w.

    Returns
    -------
    wins, losses : int
        Splits in which the claim holds, and in which its opposite does.
    p : float
        p-value of the one-sided sign test; ties count for neither.
    """
    wins, losses = int(np.sum(better > worse)), int(np.sum(better < worse))
    if wins + losses == 0:
        return 0, 0, 1.0
    return wins, losses, float(binomtest(wins, wins + losses, chance, alternative="greater").pvalue)


def _centre_and_spread(
    samples: NDArray[np.float64],
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    q25, q50, q75 = np.quantile(samples, [0.25, 0.5, 0.75], axis=0)
    return q50, q75 - q25


def _distance(
    values: NDArray[np.float64], centre: NDArray[np.float64], spread: NDArray[np.float64]
) -> NDArray[np.float64]:
    away = np.abs(values - centre)
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(away == 0, 0.0, away / spread)
