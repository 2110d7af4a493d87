"""Estimates of the time of trials."""

import math
from collections.abc import Iterable
from statistics import median

from precbench.experiment import Trial
from precbench.experiment.plan import Plan
from precbench.store import Store

# Roughly what a pass takes for each value and, in addition, for each row
_SECONDS_PER_VALUE = 2e-9
_SECONDS_PER_ROW = 3e-8
_SECONDS_PER_TRIAL = 0.2  # to begin and to measure a trial
_ITERATIONS = 100  # of a solver without `max_iter` and without a limit


def expected_seconds(plan: Plan, store: Store, trials: Iterable[Trial]) -> list[float]:
    """Estimate the seconds of each trial from records of its label and data set, or its size."""
    known: dict[tuple[str, str], list[float]] = {}  # seconds by label and data set
    for record in store.records():
        if record.status == "ok":
            seconds = _SECONDS_PER_TRIAL + (record.seconds or 0.0) + (record.tuning_seconds or 0.0)
            known.setdefault((record.label, record.dataset), []).append(seconds)
    return [
        median(known.get((t.label, t.dataset.name)) or [_SECONDS_PER_TRIAL + _by_size(plan, t)])
        for t in trials  # without known records, the size of the trial decides
    ]


def _by_size(plan: Plan, trial: Trial) -> float:
    """Estimate the seconds of a trial from the size of its data and its passes."""
    X = plan.datasets[trial.dataset.name].X
    n_rows, n_features = X.shape
    values_per_row = getattr(X, "nnz", n_rows * n_features) / n_rows  # stored ones, if sparse
    n_candidates = math.prod(map(len, trial.candidates.values()))
    tuned = n_candidates > 1  # below True counts as 1, False as 0
    # In each sum, 1 is the training after tuning. A candidate takes 0.8 of a training, which leaves
    # out validation rows; with epochs about 0.4, as candidates share passes.
    if "epochs" in trial.params:
        passes = (1 + 0.4 * n_candidates * tuned) * _largest(trial, "epochs")
    elif trial.limit is not None:
        most_epochs = max(_largest(other, "epochs", default=1) for other, _ in plan.trials)
        passes = (1 + tuned) * trial.limit.times_slowest * most_epochs  # one limit for all tuning
    else:
        passes = (1 + 0.8 * n_candidates * tuned) * _largest(trial, "max_iter", _ITERATIONS)
    n_train = n_rows * (1 - trial.split.test_size)
    return n_train * passes * (values_per_row * _SECONDS_PER_VALUE + _SECONDS_PER_ROW)


def _largest(trial: Trial, name: str, default: float | None = None) -> float:
    """Return the largest candidate of a tuned parameter, or the value of another parameter."""
    return float(max(trial.candidates.get(name, [trial.params.get(name, default)])))
