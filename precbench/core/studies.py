"""Studies: tables of computed numbers (figures, lemmas, theorems), without training.

A study is a function that returns a tidy table with one number per row, in the last
column ``value``; the other columns say which number it is. Equal arguments give equal
tables, except for times. A config gives the arguments, which are checked against the
annotations of the function. Packages add studies through entry points of the group
``precbench.studies``.
"""

import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import wraps
from pathlib import Path
from pkgutil import resolve_name
from typing import TYPE_CHECKING, Annotated, Any, Literal, NamedTuple, TypeAlias

from numpy.typing import ArrayLike
from pydantic import Field

from precbench.core.errors import InputError
from precbench.core.registry import Registry
from precbench.core.strict_json import Fields

if TYPE_CHECKING:
    import matplotlib.figure
    import pandas as pd

Count = Annotated[int, Field(ge=1)]
AtLeastTwo = Annotated[int, Field(ge=2)]
Seed = Annotated[int, Field(ge=0)]
Share = Annotated[float, Field(gt=0, lt=1)]
DatasetNames = Annotated[list[str], Field(min_length=1)]
Sizes = Annotated[list[AtLeastTwo], Field(min_length=2)]

# Metrics by label, each a function of labels and scores; the labels are those of the
# config of an experiment
Measures = Mapping[str, Callable[[ArrayLike, ArrayLike], float]]

# text: importing matplotlib takes long
SubFigure: TypeAlias = "matplotlib.figure.SubFigure"


def table_of(
    *columns: str,
) -> "Callable[[Callable[..., Any]], Callable[..., pd.DataFrame]]":
    """Return a decorator that makes a study of a function that yields rows."""

    def decorate(function: Callable[..., Any]) -> Any:
        @wraps(function)
        def compute(*arguments: Any, **parameters: Any) -> "pd.DataFrame":
            import pandas as pd  # takes long: a study is shown without it

            rows = [*function(*arguments, **parameters)]
            return pd.DataFrame(rows, columns=[*columns])

        return compute

    return decorate


def rows_of(
    values: Mapping[str, float], *labels: str | float
) -> Iterator[tuple[Any, ...]]:
    """Yield a row of a table for each named value: the labels, the name, the value."""
    for name, value in values.items():
        yield (*labels, name, value)


class FitSeconds(NamedTuple):
    """CPU seconds of a fit."""

    after_checks: float  # of the input
    in_all: float


def timed_fit(solver: Any, X: Any, y: Any) -> FitSeconds:
    """Fit a solver, and return the CPU seconds."""
    times_of_calls: list[float] = []

    def trace(_solver: Any) -> None:
        times_of_calls.append(time.process_time())

    start = time.process_time()
    solver.fit(X, y, trace=trace)
    end = time.process_time()
    # The first call comes after the checks of the input.
    start_of_training = times_of_calls[0]
    return FitSeconds(after_checks=end - start_of_training, in_all=end - start)


class Result(Fields):
    """The contents of the results folder of a study."""

    folder: Path
    values: Any  # a data frame with a column ``value`` of numbers
    version: Literal[1] = Field(alias="schema")
    name: str
    title: str
    source: str | None
    kind: str
    parameters: dict[str, Any]
    smoke: bool


@dataclass(frozen=True)
class StudyKind:
    """A kind of study: what it computes, and how its values are shown.

    Attributes
    ----------
    compute : callable or str
        The function, or ``module:function``: showing a study then imports no solver and
        no data.
    text, numbers : tuple of str
        The columns besides ``value``, with strings and with numbers.
    tables, draw : callable
        ``tables(result)`` returns tables of a report, ``draw(figure, result)`` fills a
        subfigure.
    size : tuple of float
        Width and height of the figure in inches, without its caption.
    caption : str
        Text below the figure; names of parameters in braces stand for their values.
    quick : bool
        Whether computing needs no data and a few seconds at most: then every check
        computes again.
    """

    compute: "Callable[..., pd.DataFrame] | str"
    text: tuple[str, ...]
    numbers: tuple[str, ...]
    tables: Callable[[Result], Iterable[Any]]
    draw: Callable[[SubFigure, Result], None]
    size: tuple[float, float]
    caption: str
    quick: bool = False

    @property
    def function(self) -> "Callable[..., pd.DataFrame]":
        """The function that computes the table."""
        if isinstance(self.compute, str):
            return resolve_name(self.compute)
        return self.compute


def _checked(kind: object) -> StudyKind:
    if not isinstance(kind, StudyKind):
        raise InputError(
            f"the entry point names a {type(kind).__name__}, not a "
            "precbench.core.studies.StudyKind; let it name a StudyKind"
        )
    return kind


# Names, as in the key ``study`` of a config, and kinds of studies
STUDIES = Registry[StudyKind]("precbench.studies", {}, _checked)
