"""Estimates of the time of trials."""

import math
from collections.abc import Iterable
from statistics import median

from precbench.experiment import Trial
from precbench.experiment.plan import Plan
from precbench.results.store import Store
from precbench.solvers import SOLVERS

# Roughly what a pass takes for each value and, in addition, for each row
_SECONDS_PER_VALUE = 2e-9
_SECONDS_PER_ROW = 3e-8
# to begin and to measure a trial, which its record does not count
_SECONDS_PER_TRIAL = 0.01
# at which most solvers without epochs have converged, before `max_iter`
_ITERATIONS = 100


def expected_seconds(plan: Plan, store: Store, trials: Iterable[Trial]) -> list[float]:
    """Estimate the seconds of each trial from records of its label and data set, or its size."""
    known: dict[tuple[str, str], list[float]] = {}  # seconds by label and data set
    for record in store.records():
        if record.status == "ok":
            seconds = (
                _SECONDS_PER_TRIAL
                + (record.seconds or 0.0)
                + (record.tuning_seconds or 0.0)
            )
            known.setdefault((record.label, record.dataset), []).append(seconds)
    return [
        median(
            known.get((t.label, t.dataset.name))
            or [_SECONDS_PER_TRIAL + _by_size(plan, t)]
        )
        for t in trials  # without known records, the size of the trial decides
    ]


def _by_size(plan: Plan, trial: Trial) -> float:
    """Estimate the seconds of a trial from the size of its data and its passes."""
    X = plan.datasets[trial.dataset.name].X
    n_rows, n_features = X.shape
    # stored ones, if sparse
    values_per_row = getattr(X, "nnz", n_rows * n_features) / n_rows
    n_candidates = math.prod(map(len, trial.candidates.values()))
    is_tuned = n_candidates > 1
    # A candidate takes less than the training after tuning: it leaves out validation
    # rows, shares passes with others, or converges early.
    trainings = 1 + 0.4 * n_candidates if is_tuned else 1.0
    if "epochs" in trial.params:
        passes = trainings * _largest(trial, "epochs")
    else:
        n_iterations = min(_largest(trial, "max_iter", _ITERATIONS), _ITERATIONS)
        training = n_iterations * SOLVERS[trial.solver]().row_cost
        tuning = (trainings - 1) * training
        if trial.limit is not None:
            most_epochs = max(
                _largest(other, "epochs", default=1) for other, _ in plan.trials
            )
            limit = trial.limit.times_slowest * most_epochs
            training = min(training, limit)
            # all candidates together have the limit of one training
            if trial.limit.tuning:
                tuning = min(tuning, limit)
        passes = training + tuning
    n_train = n_rows * (1 - trial.split.test_size)
    return n_train * passes * (values_per_row * _SECONDS_PER_VALUE + _SECONDS_PER_ROW)


def _largest(trial: Trial, name: str, default: float | None = None) -> float:
    """Return the largest candidate of a tuned parameter, or the value of another parameter."""
    return float(max(trial.candidates.get(name, [trial.params.get(name, default)])))
