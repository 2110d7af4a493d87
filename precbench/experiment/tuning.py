"""The choice of parameters on rows that candidates have not learnt from."""

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from precbench.core.errors import PrecbenchError
from precbench.experiment.samples import Sample
from precbench.experiment.trial import Trial
from precbench.ranking.statistics import levels
from precbench.solvers import Ranker


def choose(
    trial: Trial,
    train: Callable[[list[dict[str, Any]]], Iterable[tuple[int, Ranker, Sample]]],
) -> dict[str, Any]:
    """Return the candidate that ranks held-out rows best.

    Of equally good candidates the middle.
    """
    # `train` takes the candidates and yields, in any order, the number of a candidate,
    # its trained solver, and the rows to measure the solver on: once for each
    # candidate, or once for each fold.
    sign = -1 if trial.metric.smaller_is_better else 1
    candidates = trial.combinations()
    # values by the number of the candidate; larger is better
    tried: dict[int, list[float]] = {}
    for number, solver, validation in train(candidates):
        # if the weights have overflowed; NaN leaves the candidate out below
        value = np.nan
        if not solver.overflowed:
            value = sign * trial.metric(validation.y, validation.scored_by(solver))
        tried.setdefault(number, []).append(value)
    means = {number: np.mean(values) for number, values in tried.items()}
    numbers = sorted(number for number, mean in means.items() if not np.isnan(mean))
    if not numbers:
        raise PrecbenchError(
            f"every candidate of {', '.join(trial.candidates)} diverged: the weights"
            " overflowed; give smaller values to tune, or scale the features"
        )
    ranks = levels([means[number] for number in numbers])  # equal means have one rank
    best = [
        number
        for number, rank in zip(numbers, ranks, strict=True)
        if rank == max(ranks)
    ]
    return candidates[best[len(best) // 2]]  # the middle of the best
