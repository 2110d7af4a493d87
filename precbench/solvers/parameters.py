"""The values that parameters of solvers may take.

scikit-learn checks the parameters of its own estimators by private functions. They are imported
here and nowhere else.
"""

from numbers import Integral, Real
from typing import Any

import numpy as np
from sklearn.base import _fit_context
from sklearn.utils._param_validation import Interval, RealNotInt, StrOptions

__all__ = [
    "BOOLEAN",
    "COUNT",
    "MULTIPLE_OR_COUNT",
    "NOT_NEGATIVE",
    "POSITIVE",
    "RADIUS",
    "SEED",
    "SHARE",
    "SHUFFLE",
    "Allowed",
    "K",
    "checks_parameters",
    "one_of",
    "real",
]


class Allowed(dict[str, list[Any]]):
    """Parameters of a solver by name, each with the list of constraints of which one must hold."""


def real(low: float | None, high: float | None, closed: str) -> list[Any]:
    """Allow the numbers of an interval; `closed` is "left", "right", "both" or "neither"."""
    return [Interval(Real, low, high, closed=closed)]


def one_of(*names: str) -> list[Any]:
    """Allow these strings."""
    return [StrOptions(set(names))]


POSITIVE = real(0, None, "neither")
NOT_NEGATIVE = real(0, None, "left")
RADIUS = [None, *POSITIVE]
SHARE = real(0, 1, "right")
COUNT = [Interval(Integral, 1, None, closed="left")]
K = [Interval(RealNotInt, 0, 1, closed="right"), *COUNT]  # a share of a class, or a count
MULTIPLE_OR_COUNT = [Interval(RealNotInt, 0, None, closed="neither"), *COUNT]
BOOLEAN = ["boolean"]
SHUFFLE = [*BOOLEAN, *one_of("rows", "blocks")]
SEED = [None, Interval(Integral, 0, None, closed="left"), np.random.Generator]

checks_parameters = _fit_context(prefer_skip_nested_validation=True)
"""Decorator of a method that learns: the parameters are checked before it runs."""
