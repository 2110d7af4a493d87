"""The values that parameters of solvers may take, checked by scikit-learn."""

from collections.abc import Iterable
from numbers import Integral, Real
from typing import Any, Literal

import numpy as np
from sklearn.utils._param_validation import Interval, Options, RealNotInt, StrOptions

from precbench.core.errors import InputError
from precbench.ranking.topk import check_k

MOST_WEIGHT = 1e12  # above it solvers overflow, or do not terminate
ClassWeight = Literal["balanced"] | dict[Any, float] | None


class Allowed(dict[str, list[Any]]):
    """Parameters by name, each with constraints of which one must hold."""


def real(low: float | None, high: float | None, closed: str) -> list[Any]:
    """Allow numbers from `low` to `high`; `closed` says which ends are included."""
    return [Interval(Real, low, high, closed=closed)]


def one_of(*names: str) -> list[Any]:
    return [StrOptions(set(names))]


class _ShareOfRows(StrOptions):
    """Text such as "1 %"; a `StrOptions`, as scikit-learn accepts no other class."""

    def __init__(self) -> None:
        super().__init__({"1 %"})  # an example: `is_satisfied_by` decides

    def is_satisfied_by(self, val: Any) -> bool:
        if not isinstance(val, str):
            return False
        try:
            check_k(val)
        except InputError:
            return False
        return True

    def __str__(self) -> str:
        return "a percentage of the rows such as '1 %'"


def at_least(n: int) -> list[Any]:
    return [Interval(Integral, n, None, closed="left")]


def integers(low: int, high: int) -> list[Any]:
    return [Interval(Integral, low, high, closed="both")]


POSITIVE = real(0, None, "neither")
NOT_NEGATIVE = real(0, None, "left")
RADIUS = [None, *POSITIVE]
SHARE = real(0, 1, "right")
COUNT = at_least(1)
SHARE_OR_COUNT = [Interval(RealNotInt, 0, 1, closed="right"), *COUNT]  # of a class
K = [*SHARE_OR_COUNT, _ShareOfRows()]  # see `precbench.ranking.topk.check_k`
# A float is a multiple of the number of rows.
MULTIPLE_OR_COUNT = [Interval(RealNotInt, 0, None, closed="neither"), *COUNT]
BOOLEAN = ["boolean"]
CLASS_WEIGHT = [None, *one_of("balanced"), dict]
SHUFFLE = [*BOOLEAN, *one_of("rows", "blocks")]
RANDOM_STATE = ["random_state", np.random.Generator]  # of another library's solver
N_JOBS = [*COUNT, Options(Integral, {-1})]  # number of threads
SEED = [
    None,
    Interval(Integral, 0, None, closed="left"),
    np.random.RandomState,
    np.random.Generator,
]


def as_generator(random_state: Any) -> np.random.Generator:
    """Return a generator of NumPy for a `random_state` of any kind."""
    if isinstance(random_state, np.random.RandomState):
        random_state = int(random_state.randint(2**31 - 1))
    return np.random.default_rng(random_state)


def as_library_state(random_state: Any) -> Any:
    """Return a `random_state` for a library, which takes no generator of NumPy."""
    if isinstance(random_state, np.random.Generator):
        return int(random_state.integers(2**31))
    return random_state


def signed_weights(class_weight: ClassWeight, classes: Iterable[Any]) -> ClassWeight:
    """Return `class_weight` with -1 and +1 in place of the user's ascending classes."""
    if not isinstance(class_weight, dict):
        return class_weight
    signed = {
        sign: class_weight.get(y, 1.0) for sign, y in zip((-1, 1), classes, strict=True)
    }
    least = 1 / MOST_WEIGHT  # of the weights above 0
    for sign, weight in signed.items():
        is_allowed = isinstance(weight, Real) and (
            weight == 0 or least <= weight <= MOST_WEIGHT
        )
        if not is_allowed:
            raise InputError(
                f"class_weight has {weight!r} for the"
                f" {'positives' if sign > 0 else 'negatives'}; give 0 or a number from"
                f" {least:g} to {MOST_WEIGHT:g}"
            )
    return signed
