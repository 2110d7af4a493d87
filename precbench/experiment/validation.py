"""Checks of the parameters in a config against the registries of solvers and metrics.

The registries are imported when something is checked, so that importing this module is cheap.
A check returns the problems it finds, none being an empty list.
"""

import inspect
import reprlib
from collections.abc import Mapping
from typing import Any, get_type_hints

from pydantic import TypeAdapter, ValidationError

from precbench.errors import did_you_mean
from precbench.yaml.models import Problem, at, in_plain_words

_LARGEST_TRY = 100_000

SOLVER_KEYS = ("solver", "limit", "tuned_by", "fourier")
"""Keys of a solver's section that are not parameters."""


def solver_defaults(solver: str) -> dict[str, Any]:
    """Return the parameters of a solver that a config may set, with their defaults."""
    from precbench.solvers import SOLVERS

    params = SOLVERS[solver]().get_params(deep=False)
    return {name: value for name, value in params.items() if name != "random_state"}


def is_tuned(value: Any) -> bool:
    """Return whether the value of a parameter is a choice among candidates."""
    return isinstance(value, dict) and set(value) == {"tune"}


def parameter_problems(solver: str, name: str, value: Any) -> list[str]:
    """Return the problems of one parameter of a solver, by the solver's own constraints."""
    from precbench.solvers import SOLVERS

    if name == "random_state":
        return ["cannot be set: seeds follow from protocol.seed, the data set and the split"]
    known = solver_defaults(solver)
    if name not in known:
        return [f"unknown parameter of {solver}{did_you_mean(name, [*known, *SOLVER_KEYS])}"]
    candidates = value["tune"] if is_tuned(value) else [value]
    if isinstance(value, dict) and not (
        is_tuned(value) and isinstance(candidates, list) and len(candidates) > 1
    ):
        return [
            "should be a value, or {tune: [two or more values]}, "
            f"found {reprlib.repr(value)}{did_you_mean(next(iter(value), ''), ['tune'])}"
        ]
    problems = []
    for candidate in candidates:
        if isinstance(candidate, bool) and not isinstance(known[name], bool):
            problems.append(f"should not be true or false, found {candidate}")
        try:
            SOLVERS[solver](**{name: candidate})._validate_params()
        except (TypeError, ValueError) as error:
            problems.append(str(error))
    return problems


def metric_problems(metric: str, params: Mapping[str, Any]) -> list[Problem]:
    """Return the problems of a metric's parameters: names, types, then a trial evaluation."""
    from precbench.metrics import METRICS

    spec = METRICS[metric]
    defaults, types = spec.parameters, get_type_hints(spec.function)
    problems: list[Problem] = [
        ((), f"needs the parameter {name}")
        for name, default in defaults.items()
        if default is inspect.Parameter.empty and name not in params
    ]
    for name, value in params.items():
        if name not in defaults:
            near = did_you_mean(name, defaults)
            problems.append(((name,), f"unknown parameter of {metric}{near}"))
            continue
        try:
            TypeAdapter(types.get(name, Any)).validate_python(value, strict=True)
        except ValidationError as error:
            problems.append(((name,), in_plain_words(error.errors()[0])))
    # A perfect ranking with enough positives for any count among the parameters.
    n_pos = max([2, *(value for value in params.values() if isinstance(value, int))])
    if not problems and n_pos <= _LARGEST_TRY:
        labels = [1] * n_pos + [0] * 2
        try:
            spec(labels, labels, **params)
        except ValueError as error:
            problems += at((), [str(error)])
    return problems
