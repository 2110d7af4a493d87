"""Estimates of the time of trials."""

import math
from collections.abc import Iterable
from statistics import median

from precbench.experiment import Trial
from precbench.experiment.plan import Plan
from precbench.results.store import Store
from precbench.solvers import SOLVERS

# Rough values, enough to tell the user minutes from hours. A pass takes so long for
# each value and, in addition, for each row.
_SECONDS_PER_VALUE = 2e-9
_SECONDS_PER_ROW = 3e-8
# for each tree, however few the rows
_SECONDS_PER_TREE = 1e-3
# to begin and to measure a trial, which its record does not count
_SECONDS_PER_TRIAL = 0.01
# at which most solvers without epochs have converged, before `max_iter`
_ITERATIONS = 100
# What training a candidate takes, as a share of the training after tuning: it leaves
# out validation rows, shares passes with others, or converges early
_SHARE_OF_A_CANDIDATE = 0.4
# An ensemble fits each of five members to the rows without each of five folds, and to
# all rows.
_FITS_OF_AN_ENSEMBLE = 30


def expected_seconds(plan: Plan, store: Store, trials: Iterable[Trial]) -> list[float]:
    """Estimate the seconds of each trial from records of its kind, or from its size.

    Trials of a kind have label and data set in common.
    """
    recorded: dict[tuple[str, str], list[float]] = {}
    for record in store.records():
        if record.status == "ok":
            seconds = (
                _SECONDS_PER_TRIAL
                + (record.seconds or 0.0)
                + (record.tuning_seconds or 0.0)
            )
            recorded.setdefault((record.label, record.dataset), []).append(seconds)
    estimates = []
    for trial in trials:
        kind = trial.label, trial.dataset.name
        if kind in recorded:
            estimates.append(median(recorded[kind]))
        else:
            estimates.append(_SECONDS_PER_TRIAL + _by_size(plan, trial))
    return estimates


def _by_size(plan: Plan, trial: Trial) -> float:
    """Estimate the seconds of a trial from the size of its data and its passes."""
    X = plan.datasets[trial.dataset.name].X
    n_rows, n_features = X.shape
    n_values = getattr(X, "nnz", n_rows * n_features)  # sparse rows have `nnz`
    values_per_row = n_values / n_rows
    seconds_per_row = values_per_row * _SECONDS_PER_VALUE + _SECONDS_PER_ROW
    n_train = n_rows * (1 - trial.split.test_size)
    seconds_per_pass = n_train * seconds_per_row
    solver = SOLVERS[trial.solver]()
    if hasattr(solver, "to_trees") or hasattr(solver, "to_members"):
        seconds_per_pass += _SECONDS_PER_TREE
    return _passes(plan, trial) * seconds_per_pass


def _passes(plan: Plan, trial: Trial) -> float:
    """Estimate the passes for tuning and training, in passes in which a row costs 1."""
    n_candidates = math.prod(map(len, trial.candidates.values()))
    is_tuned = n_candidates > 1
    # the time of tuning as a multiple of that of the training
    tuning = _SHARE_OF_A_CANDIDATE * n_candidates if is_tuned else 0.0
    if "epochs" in trial.params:
        return (1 + tuning) * _largest(trial, "epochs")
    n_iterations = min(_largest(trial, "max_iter", _ITERATIONS), _ITERATIONS)
    solver = SOLVERS[trial.solver]()
    training_passes = n_iterations * solver.row_cost
    if hasattr(solver, "to_members"):
        training_passes *= _FITS_OF_AN_ENSEMBLE
    tuning_passes = tuning * training_passes
    if trial.limit is not None:
        most_epochs = max(
            _largest(other, "epochs", default=1) for other, _key in plan.trials
        )
        limit = trial.limit.times_slowest * most_epochs
        training_passes = min(training_passes, limit)
        # all candidates together have the limit of one training
        if trial.limit.tuning:
            tuning_passes = min(tuning_passes, limit)
    return training_passes + tuning_passes


def _largest(trial: Trial, name: str, default: float | None = None) -> float:
    """Return the largest candidate of a parameter, or its value if it is not tuned."""
    only_value = trial.params.get(name)
    if only_value is None:  # or the solver chooses it
        only_value = default
    candidates = trial.candidates.get(name, [only_value])
    return float(max(candidates))
