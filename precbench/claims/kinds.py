"""The kinds of claims: the statement of each, and how it is decided."""

from collections.abc import Iterator
from typing import Annotated, Literal, Self

from pydantic import AliasChoices, Field, PositiveFloat, PositiveInt, model_validator

from precbench.claims.verdicts import parse_printed
from precbench.errors import InputError
from precbench.yaml.models import Items, Section, at, refuse

__all__ = [
    "BoundClaim",
    "Claim",
    "ConsistencyClaim",
    "ExactClaim",
    "FactClaim",
    "MeanClaim",
    "OrderClaim",
    "RatioClaim",
    "Reading",
    "Selection",
    "SpreadClaim",
    "StatementClaim",
    "VariationClaim",
]

Selection = dict[str, str | int | float]
"""Rows of a study's ``values.csv``: those that hold these entries in these columns."""
ClaimId = Annotated[str, Field(pattern=r"^[a-z0-9]+(/[A-Za-z0-9_.,=@()-]+)+$")]


class _Claim(Section):
    """Fields of every claim.

    Attributes
    ----------
    id : str
        Permanent: paper, place, row or column.
    where : str
        Where in the paper.
    printed : str
        As printed, hence with its digits.
    says : str
        The sentence, for a claim that is not a cell of a table.
    experiment : str
        Name of the experiment whose results decide; the file's, unless the claim names another.
    config : str
        The config of that experiment; may not exist yet.
    deviations : tuple of str
        Ids of the documented deviations under which we measure.
    protocol : str
        How the paper measured, as far as it says.
    untested : str
        Why no experiment decides it yet, though one could.
    ours : bool
        Whether it is a statement of ours about the paper's methods: counted apart.
    sentence : str
        Claims of one sentence count once: those that quote the same (`says`), or have this in
        common where the quotations differ.
    """

    id: ClaimId
    where: str
    printed: str
    says: str = ""
    experiment: str
    config: str
    deviations: Annotated[tuple[str, ...], Field(strict=False)] = ()
    protocol: str = ""
    untested: str = ""
    ours: bool = False
    sentence: str = ""

    @property
    def counted_as(self) -> tuple[str, str]:
        """What counts once, however many claims it takes: a sentence, or a number."""
        return self.paper, self.sentence or self.says or self.id

    @property
    def paper(self) -> str:
        """The key of the paper."""
        return self.id.partition("/")[0]

    @property
    def place(self) -> str:
        """The table, figure or section, as in the id."""
        return self.id.split("/")[1]

    @property
    def in_words(self) -> bool:
        """Whether the verdict needs no printed number."""
        return False

    @property
    def is_positive(self) -> bool:
        """Whether only a printed number above 0 makes sense."""
        return False

    @property
    def data(self) -> tuple[str, ...]:
        """Names of the data sets whose results decide it; none for a study."""
        return ()

    @property
    def labels(self) -> tuple[str, ...]:
        """Labels of the solvers that it compares."""
        return ()

    def all_deviations(self) -> Iterator[str]:
        """Yield the ids of all deviations that a verdict may name."""
        yield from self.deviations

    @model_validator(mode="after")
    def _printed_is_a_number(self) -> Self:
        if not (self.untested or self.in_words):
            try:
                value = parse_printed(self.printed).value
            except InputError as error:
                refuse(at((), [str(error)]))
            refuse(at((), ["should be above 0"] if self.is_positive and value <= 0 else []))
        return self


class Reading(Section):
    """One way to read the paper; `deviation` is the id of the documented one, if it is ours."""

    cell: Selection = Field(default_factory=dict)
    deviation: str | None = None


class ExactClaim(_Claim):
    """A number that follows from the paper's own definitions, without chance.

    Attributes
    ----------
    cell : dict
        Selects one value of the study.
    argmin : str or None
        Instead of a value, the entry of this column that has the smallest value was printed.
    among : tuple of str
        The entries that compete.
    readings : tuple of Reading
        Are tried in turn; the first that agrees decides.
    truncated : bool
        The digits after the last were cut off instead of rounded: a documented deviation.
    expected, at_least : float or None
        The number, or its lower limit, where the paper says it in words.
    """

    kind: Literal["exact"]
    cell: Selection = Field(default_factory=dict)
    argmin: str | None = None
    among: Annotated[tuple[str, ...], Field(strict=False)] = ()
    readings: Items[Reading] = (Reading(),)
    truncated: bool = False
    expected: float | None = None
    at_least: float | None = None

    @property
    def in_words(self) -> bool:
        """Whether an entry or a number in words was printed."""
        return self.argmin is not None or (self.expected, self.at_least) != (None, None)

    def all_deviations(self) -> Iterator[str]:
        """Yield also those of the readings."""
        yield from self.deviations
        yield from (r.deviation for r in self.readings if r.deviation is not None)


class BoundClaim(_Claim):
    """Some values of a study lie below others: a theorem, or an order of curves.

    Attributes
    ----------
    cell, by : dict
        Select the values on the left and those on the right. A value on the left is compared with
        the one that equals it in all other columns, or with the only one on the right.
    trivial : dict or None
        Selects in the same way the values of the trivial model w = 0, which learns nothing. A bound
        above them holds for any method that learns; where all bounds are, they decide nothing.
    factor, margin : float
        The claim is ``left <= factor * right + margin``.
    open_constant : bool
        The paper leaves a constant open, so that a bound with ours can be too small.
    """

    kind: Literal["bound"]
    cell: Selection
    by: Selection
    trivial: Selection | None = Field(None, validation_alias=AliasChoices("trivial", "idle"))
    factor: float = 1.0
    margin: float = 0.0
    open_constant: bool = False

    @property
    def in_words(self) -> bool:
        """Both sides are measured."""
        return True


class _Measured(_Claim):
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

    @property
    def data(self) -> tuple[str, ...]:
        """The data set."""
        return (self.dataset,)


class MeanClaim(_Measured):
    """A number from one draw of the data; ours are many.

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
    def labels(self) -> tuple[str, ...]:
        """Labels of both sides, or of the one."""
        return (self.solver, *([self.first_solver] if self.first_solver else []))

    @property
    def is_positive(self) -> bool:
        """Whether its logarithm is taken."""
        return self.logarithm


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

    @property
    def labels(self) -> tuple[str, ...]:
        """Labels of both sides, or of the one."""
        return (self.solver,)

    @property
    def in_words(self) -> bool:
        """The limit is our reading."""
        return True


class OrderClaim(_Measured):
    """One side is better than the other, paired over the splits.

    Attributes
    ----------
    better, worse : tuple of str
        Labels of solvers.
    of : {"best", "gap", "falls", "shortfall", "variation"}
        What is compared: the best value of each side; the distance between the two values of
        each side; the share of the steps from one checkpoint to the next at which the value falls
        by more than `fall_by`; how far the values before the last lie below the best of the
        curve, on average; by which share the least value over the sweep lies below the largest.
        Of the last four the smaller is the better.
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
        would, fails if hardly any does, and else cannot be told.
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
    or_on: Annotated[tuple[str, ...], Field(strict=False)] = ()
    one_draw: bool = False
    deterministic: bool = False

    @property
    def labels(self) -> tuple[str, ...]:
        """Labels of both sides, or of the one."""
        return (*self.better, *self.worse)

    @property
    def data(self) -> tuple[str, ...]:
        """The data set, and the others of which one is enough."""
        return (self.dataset, *self.or_on)

    @property
    def chance(self) -> float:
        """How often it would hold if all solvers were alike, and at least half if of all splits."""
        share = len(self.better) / (len(self.better) + len(self.worse))
        if self.of == "gap":
            return 0.5
        return share if self.one_draw else max(share, 0.5)

    @property
    def in_words(self) -> bool:
        """Both sides are measured."""
        return True


class ConsistencyClaim(_Claim):
    """Some solvers are near the best on all data sets, others fall behind on some.

    Attributes
    ----------
    datasets : tuple of str
    metric : str
    among : tuple of str
        The solvers whose best is the measure: how much a solver falls behind on a data set is the
        share of the best value that it lacks; over the data sets its largest share counts.
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
    steady: Annotated[tuple[str, ...], Field(strict=False)] = ()
    unsteady: Items[str]
    margin: float = 0.0

    @property
    def labels(self) -> tuple[str, ...]:
        """Labels of both sides, or of the one."""
        return self.among

    @property
    def data(self) -> tuple[str, ...]:
        """The data sets."""
        return self.datasets

    @property
    def in_words(self) -> bool:
        """Both sides are measured."""
        return True


class VariationClaim(_Claim):
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
    points: Annotated[tuple[str, ...], Field(strict=False)] = ()

    @property
    def labels(self) -> tuple[str, ...]:
        """Labels of both sides, or of the one."""
        return (self.solver,)

    @property
    def data(self) -> tuple[str, ...]:
        """The data set."""
        return (self.dataset,)

    @property
    def in_words(self) -> bool:
        """The limit was printed in a sentence."""
        return True


class RatioClaim(_Claim):
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
    def labels(self) -> tuple[str, ...]:
        """Labels of both sides, or of the one."""
        return (self.slower, self.faster)

    @property
    def data(self) -> tuple[str, ...]:
        """The data set."""
        return (self.dataset,)

    @property
    def in_words(self) -> bool:
        """Whether the ratio was printed in words."""
        return self.read_as is not None

    @property
    def is_positive(self) -> bool:
        """A ratio of times is."""
        return True


class FactClaim(_Claim):
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
    def data(self) -> tuple[str, ...]:
        """The data set."""
        return (self.dataset,)


class StatementClaim(_Claim):
    """A sentence, definition or formula that no other kind of claim holds.

    Attributes
    ----------
    reason : str
        Why no run can decide it. If a run could, but none does yet, `untested` says so instead.
    """

    kind: Literal["statement"]
    reason: str = ""

    @property
    def in_words(self) -> bool:
        """Nothing is compared."""
        return True

    @model_validator(mode="after")
    def _says_why(self) -> Self:
        if bool(self.reason) == bool(self.untested):
            refuse(at((), ["needs either a reason (no run can decide it) or untested (none does)"]))
        return self


Claim = (
    ExactClaim
    | BoundClaim
    | MeanClaim
    | SpreadClaim
    | OrderClaim
    | ConsistencyClaim
    | VariationClaim
    | RatioClaim
    | FactClaim
    | StatementClaim
)
