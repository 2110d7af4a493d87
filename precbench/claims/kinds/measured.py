"""Claims that experiments decide: numbers, orders and times of solvers, and counts of data sets."""

from typing import Annotated, Literal

import numpy as np
from pydantic import Field, PositiveFloat, PositiveInt

from precbench.claims.kinds.base import BaseClaim, Texts
from precbench.claims.verdicts import parse_printed
from precbench.yaml.models import Items

__all__ = [
    "ConsistencyClaim",
    "FactClaim",
    "MeanClaim",
    "OrderClaim",
    "RatioClaim",
    "SpreadClaim",
    "VariationClaim",
]


class _Measured(BaseClaim):
    """A claim about a metric.

    Attributes
    ----------
    dataset, metric, part : str
    checkpoint : int or None
        The checkpoint of the curve to compare; None for the final weights.
    """

    dataset: str
    metric: str
    part: Literal["test", "training"] = "test"
    checkpoint: int | None = None


class MeanClaim(_Measured):
    """A number from one draw of the data; we have many.

    Attributes
    ----------
    solver : str
        Label in the results.
    averaged : bool
        The number is a mean over many draws: ours should agree to half a unit of its last digit.
    margin : float
        With `averaged`, a distance that agrees too, where the paper says "approximately".
    runs : int or None
        The number is a mean over so few draws: it should lie where the mean of as many of ours
        would in 95 of 100 cases.
    power_of_ten : int
        The power that was dropped in print.
    logarithm : bool
        Whether distances are taken between logarithms.
    row : str
        Cells with the same one were printed in one row and are judged together.
    first_solver, first_printed : str
        Those of the first column of the row: the trend is the difference from it.
    """

    kind: Literal["mean"]
    solver: str
    row: str = ""
    averaged: bool = False
    margin: float = 0.0
    runs: PositiveInt | None = None
    power_of_ten: int = 0
    logarithm: bool = False
    first_solver: str = ""
    first_printed: str = ""

    @property
    def is_one_draw(self) -> bool:
        """Whether the number is no mean over draws of the data."""
        return self.runs is None and not self.averaged

    @property
    def in_words(self) -> bool:
        """A number is printed."""
        return False

    @property
    def is_positive(self) -> bool:
        """Whether its logarithm is taken."""
        return self.logarithm

    def scaled(self, printed: str) -> float:
        """Return a printed number on the scale on which distances are taken."""
        value = parse_printed(printed, self.power_of_ten).value
        return float(np.log(value)) if self.logarithm else value


class SpreadClaim(_Measured):
    """A mean over the splits that is sure to within so much.

    Attributes
    ----------
    solver : str
        Label in the results.
    at_most : float
        The largest standard error of the mean that agrees.
    """

    kind: Literal["spread"]
    solver: str
    at_most: PositiveFloat


class OrderClaim(_Measured):
    """One side is better than the other, paired over the splits.

    Attributes
    ----------
    better, worse : tuple of str
        Labels of solvers.
    of : {"best", "gap", "falls", "shortfall", "variation"}
        What is compared: the best value of each side; the distance between the two values of
        each side; the fraction of the steps from one checkpoint to the next at which the value
        falls by more than `fall_by`; how far the values before the last lie below the best of the
        curve, on average; by which share the least value over the sweep lies below the largest. Of
        the last four the smaller is the better.
    fall_by : float
    margin : float
        The better side may be worse by less than this: it is comparable.
    worse_checkpoint : int, "last" or None
        The checkpoint of the worse side, if it is not that of the better one.
    at, worse_at : str
        The point of the sweep, as ``batch_size=500``, of the better side, and of the worse one if
        it is another.
    or_on : tuple of str
        Other data sets; it is enough that it holds on one of all.
    one_draw : bool
        Said of one draw of the data alone: it holds if more of our draws show it than chance
        would, fails if hardly any does, and else is undecided.
    deterministic : bool
        Nothing is left to chance, so that one run decides.
    """

    kind: Literal["order"]
    better: Items[str]
    worse: Items[str]
    of: Literal["best", "gap", "falls", "shortfall", "variation"] = "best"
    fall_by: float = 0.0
    margin: float = 0.0
    worse_checkpoint: int | Literal["last"] | None = None
    at: str = ""
    worse_at: str = ""
    or_on: Texts = ()
    one_draw: bool = False
    deterministic: bool = False

    @property
    def chance(self) -> float:
        """How often it would hold if all solvers were alike, and at least half if of all splits."""
        share = len(self.better) / (len(self.better) + len(self.worse))
        if self.of == "gap":
            return 0.5
        return share if self.one_draw else max(share, 0.5)


class ConsistencyClaim(BaseClaim):
    """Some solvers are near the best on all data sets, others fall behind on some.

    Attributes
    ----------
    datasets : tuple of str
    metric : str
    among : tuple of str
        The solvers whose best is the measure: how much a solver falls behind on a data set is the
        fraction of the best value that it lacks; over the data sets its largest share counts.
    steady : tuple of str
        Each of them falls less behind than any of `unsteady`; none means that these fall behind by
        more than `margin`.
    unsteady : tuple of str
    margin : float
    """

    kind: Literal["consistency"]
    datasets: Items[str]
    metric: str
    among: Items[str]
    steady: Texts = ()
    unsteady: Items[str]
    margin: float = 0.0


class VariationClaim(BaseClaim):
    """The mean over the splits hardly varies over the points of a sweep.

    Attributes
    ----------
    dataset, solver, metric : str
    at_most : float
        The largest relative variation that agrees.
    points : tuple of str
        Points of the sweep, as ``batch_size=500``; none means all.
    """

    kind: Literal["variation"]
    dataset: str
    solver: str
    metric: str
    at_most: Annotated[float, Field(gt=0, lt=1)]
    points: Texts = ()


class RatioClaim(BaseClaim):
    """One side takes a number of times as long as the other.

    Attributes
    ----------
    dataset, slower, faster : str
    read_as : float or None
        The ratio, where the paper says it in words.
    at_least : bool
        Whether a larger ratio agrees too.
    within, metric : float and str, or None and empty
        Compares the times to the first checkpoint at which a side is no worse than the worse of
        the two final values of this metric, less this; else those to the final weights.
    """

    kind: Literal["ratio"]
    dataset: str
    slower: str
    faster: str
    within: PositiveFloat | None = None
    metric: str = ""
    read_as: PositiveFloat | None = None
    at_least: bool = False

    @property
    def in_words(self) -> bool:
        """Whether the ratio was printed in words."""
        return self.read_as is not None

    @property
    def is_positive(self) -> bool:
        """A ratio of times is."""
        return True


class FactClaim(BaseClaim):
    """A count that describes a data set.

    Attributes
    ----------
    dataset : str
    of : str
        "columns" are the features and the label, "share" is the percentage of positives,
        "training_rows" are those of the provided split.
    """

    kind: Literal["fact"]
    dataset: str
    of: Literal[
        "rows",
        "training_rows",
        "features",
        "columns",
        "positives",
        "negatives",
        "share",
        "positives_per_fold",
    ]

    @property
    def in_words(self) -> bool:
        """A number is printed."""
        return False
