"""The choice of parameters on rows that candidates have not learnt from."""

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import numpy as np

from precbench.core.errors import PrecbenchError
from precbench.experiment.samples import Sample
from precbench.experiment.trial import Trial
from precbench.ranking.statistics import levels
from precbench.solvers import Ranker


class TrainedCandidate(NamedTuple):
    """A candidate, trained for a fold, and the rows to measure it on."""

    number: int  # of the candidate
    solver: Ranker
    validation: Sample


def choose(
    trial: Trial,
    train: Callable[[list[dict[str, Any]]], Iterable[TrainedCandidate]],
) -> dict[str, Any]:
    """Return the candidate that ranks held-out rows best, the middle of equal ones.

    `train` takes the candidates and yields them trained, in any order: each once, or
    once for each fold.
    """
    sign = -1 if trial.metric.smaller_is_better else 1
    candidates = trial.combinations()
    values_by_number: dict[int, list[float]] = {}  # larger is better
    for number, solver, validation in train(candidates):
        value = np.nan  # leaves the candidate out below
        if not solver.overflowed:
            value = sign * trial.metric(validation.y, validation.scored_by(solver))
        values_by_number.setdefault(number, []).append(value)
    means = {}
    for number, values in sorted(values_by_number.items()):
        mean = np.mean(values)
        if not np.isnan(mean):
            means[number] = mean
    if not means:
        raise PrecbenchError(
            f"every candidate of {', '.join(trial.candidates)} diverged: the weights"
            " overflowed; give smaller values to tune, or scale the features"
        )
    ranks = levels(list(means.values()))  # equal means have one rank
    best_rank = max(ranks)
    best = []  # numbers of candidates
    for number, rank in zip(means, ranks, strict=True):
        if rank == best_rank:
            best.append(number)
    return candidates[best[len(best) // 2]]
