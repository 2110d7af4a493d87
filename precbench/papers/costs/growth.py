"""How the seconds and the memory of a solver grow: a paper's O(...), measured."""

import tracemalloc
from collections.abc import Collection, Iterator
from typing import Annotated, Any, Literal, Self

import numpy as np
from pydantic import Field, PositiveFloat, model_validator
from threadpoolctl import threadpool_limits

from precbench.core.studies import AtLeastTwo, Count, Seed, Sizes, table_of, timed_fit
from precbench.core.yaml.models import Name, Problem, Section, at, refuse, unknown
from precbench.solvers import SOLVERS, Ranker
from precbench.solvers.common.base import untraced

# what may grow besides the parameters of the solver
_ROWS = "rows"
_FEATURES = "features"


class CostCurve(Section):
    """Fits of one solver: all that `grows` has each of the sizes, the rest is fixed."""

    solver: str
    # rows, features, parameters of the solver
    grows: Annotated[list[str], Field(min_length=1)]
    sizes: Sizes
    rows: AtLeastTwo
    features: Count
    parameters: dict[str, Any] = Field(default_factory=dict)
    measure: Literal["seconds", "bytes"] = "seconds"
    # whether the cost is compared with powers of ``n log n`` instead of n
    times_log: bool = False
    exponent: PositiveFloat  # the power of n, or of n log n, that the paper states

    @model_validator(mode="after")
    def _check_parameters(self) -> Self:
        """Refuse an unknown solver, and parameters that it lacks or rejects."""
        refuse(at(("solver",), unknown("solver", self.solver, SOLVERS)))
        known = SOLVERS[self.solver]().get_params()
        problems: list[Problem] = []
        for i, name in enumerate(self.grows):
            if name not in (_ROWS, _FEATURES):
                names = (_ROWS, _FEATURES, *known)
                mistakes = self._mistakes_in(name, self.sizes[0], names)
                problems += at(("grows", i), mistakes)
        for name, value in self.parameters.items():
            mistakes = self._mistakes_in(name, value, known)
            problems += at(("parameters", name), mistakes)
        refuse(problems)
        return self

    def _mistakes_in(self, name: str, value: Any, known: Collection[str]) -> list[str]:
        """Return why the solver takes no such parameter, if it does not."""
        mistakes = unknown(f"parameter of {self.solver}", name, known)
        if mistakes:
            return mistakes
        try:
            SOLVERS[self.solver](**{name: value})._validate_params()
        except (TypeError, ValueError) as error:
            return [str(error)]
        return []


@table_of("curve", "size", "quantity", "value")
def growing_costs(
    curves: Annotated[dict[Name, CostCurve], Field(min_length=1)],
    repetitions: Count,
    seed: Seed,
) -> Iterator[tuple[str, int, str, float]]:
    """Measure the seconds or bytes of fits of growing size, for each curve."""
    # Seconds are CPU seconds, on one thread, from where training starts (the first call
    # of a trace, after the checks of the input). Bytes are what a fit allocates besides
    # its rows. Rows are normal, half of them positive. A value is the least of
    # `repetitions` fits on other rows.
    least: dict[tuple[str, int], float] = {}  # by name of the curve and size
    with threadpool_limits(1):
        for repetition in range(repetitions):
            for name, curve in curves.items():
                for size in curve.sizes:
                    cost = _cost(curve, size, [seed, repetition, size])
                    least[name, size] = min(cost, least.get((name, size), np.inf))
    for name, curve in curves.items():
        for size in curve.sizes:
            yield name, size, curve.measure, least[name, size]


def _cost(curve: CostCurve, size: int, entropy: list[int]) -> float:
    """Return the seconds or bytes of one fit, on rows drawn with these seeds."""
    parameters = {**curve.parameters, **dict.fromkeys(curve.grows, size)}
    n = parameters.pop(_ROWS, curve.rows)
    d = parameters.pop(_FEATURES, curve.features)
    rng = np.random.default_rng(entropy)
    y = np.where(np.arange(n) < n // 2, 1, -1)  # half of the rows are positive
    rng.shuffle(y)
    # noise, shifted by class
    X = rng.standard_normal((n, d)) / np.sqrt(d) + 0.1 * y[:, None]
    solver = SOLVERS[curve.solver](**parameters)
    if curve.measure == "bytes":
        return _bytes(solver, X, y)
    seconds = timed_fit(solver, X, y)
    # above 0, as the slope of its logarithm is compared with `exponent`
    return max(seconds.after_checks, 1e-9)


def _bytes(solver: Ranker, X: Any, y: Any) -> float:
    """Return how many bytes a fit holds at its peak."""
    tracemalloc.start()
    try:
        solver.fit(X, y, trace=untraced)
        _current, peak = tracemalloc.get_traced_memory()
        return float(peak)
    finally:
        tracemalloc.stop()
