"""The choice of parameters on the validation part."""

import itertools
from collections.abc import Callable
from typing import Any

from precbench.errors import PrecbenchError
from precbench.experiment.samples import Sample
from precbench.experiment.trial import Trial
from precbench.solvers import Ranker

__all__ = ["choose"]


def choose(
    trial: Trial, train: Callable[[dict[str, Any]], tuple[Ranker, Sample]]
) -> dict[str, Any]:
    """Choose the candidate whose ranking of the validation part is best; among ties the middle one.

    Parameters
    ----------
    trial : Trial
        With candidates, and the metric that compares them.
    train : callable
        Takes a candidate, the values of all tuned parameters. Returns the solver, trained on a part
        of the training rows, and the other rows.

    Returns
    -------
    dict of str to Any
        The values chosen, by parameter.

    Raises
    ------
    PrecbenchError
        If every candidate diverged.
    """
    names = list(trial.candidates)
    sign = -1 if trial.metric.smaller_is_better else 1
    tried: list[tuple[float, dict[str, Any]]] = []
    for values in itertools.product(*trial.candidates.values()):
        candidate = dict(zip(names, values, strict=True))
        solver, validation = train(candidate)
        if not solver.overflowed:
            scores = validation.scored_by(solver)
            tried.append((sign * trial.metric(validation.y, scores), candidate))
    if not tried:
        raise PrecbenchError(f"every candidate of {', '.join(names)} diverged: take smaller ones")
    best = max(value for value, _ in tried)
    tied = [candidate for value, candidate in tried if value == best]
    return tied[len(tied) // 2]
