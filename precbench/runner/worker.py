"""A trial in a worker process, from the data to the record."""

import contextlib
import ctypes
import faulthandler
import functools
import gc
import os
import threading
import time
import traceback
import warnings
from collections.abc import Hashable, Iterator, Mapping
from dataclasses import dataclass, replace
from math import prod
from pathlib import Path
from typing import Any, NamedTuple, cast

import numpy as np
from numpy.typing import NDArray

from precbench.core.errors import MissingPackageError, PrecbenchError
from precbench.data import Dataset
from precbench.experiment import Trial
from precbench.experiment.samples import InMemory, Rows
from precbench.experiment.sections import Fourier
from precbench.experiment.tuning import TrainedCandidate, choose
from precbench.ranking.metrics import as_scores
from precbench.ranking.topk import ceil_share
from precbench.results.store import Store
from precbench.runner.recorder import Recorder
from precbench.solvers import SOLVERS, NonlinearRanker, Ranker
from precbench.solvers.own_class import OwnClass

_GRACE_SECONDS = 5.0  # for compiled code to return after the timeout
# Growth of the rows between checkpoints of a solver whose number of passes is not known
# in advance
_UNKNOWN_LENGTH_FACTOR = 1.3
_MOST_SCORES = 2**25  # stored scores of a trial, over all its checkpoints; 256 MiB
_MOST_KEPT = 2**23  # values of rows that wait for another trial, 64 MiB


@dataclass(frozen=True, eq=False)
class Job:
    """A trial with the data and settings that its worker needs."""

    trial: Trial
    key: str
    folder: str  # of the experiment's results
    dataset: Dataset  # in a local worker, the arrays of large data are memory maps
    passes: float  # passes over the rows after which the solver is stopped
    timing: str  # "sequential" or "parallel"
    environment: str  # id of the machine record
    run: str  # id of the run; earlier records of the key have another id
    # "status: reason" of the earlier record; "" if the trial has not run
    before: str = ""
    own_class: OwnClass | None = None  # the solver, if it is a class in a file

    @property
    def mark(self) -> Path:
        """The file with the title of the trial, which exists while the trial runs."""
        return Store(self.folder).running / self.key


class TrialTimeoutError(Exception):
    """The trial has exceeded its timeout."""


def base_record(job: Job) -> dict[str, Any]:
    """Return the fields of a record that are known before the trial runs."""
    trial = job.trial
    return {
        "key": job.key,
        "experiment": trial.experiment,
        "label": trial.label,
        "solver": trial.solver,
        "dataset": trial.dataset.name,
        "split": trial.split.index,
        "seed": trial.seed,
        "sweep": None if trial.sweep is None else list(trial.sweep),
        "timing": job.timing,
        "environment": job.environment,
        "run": job.run,
        "before": job.before,
        "code": trial.code,
        "limit": None if trial.limit is None else trial.limit.model_dump(),
    }


def run_job(job: Job) -> str:
    """Run a trial, write its record whatever the outcome, and return its status."""
    # a full disk is reported when the record is written
    with contextlib.suppress(OSError):
        job.mark.parent.mkdir(parents=True, exist_ok=True)
        job.mark.write_text(job.trial.title, "utf-8")
    record, arrays = outcome(job)
    Store(job.folder).write(record, arrays)
    # The record comes first: a mark without record tells the parent which trial killed
    # the process.
    job.mark.unlink(missing_ok=True)
    return str(record["status"])


def outcome(job: Job) -> tuple[dict[str, Any], dict[str, NDArray] | None]:
    """Run a trial and return its record and arrays, whatever the outcome."""
    record = base_record(job)
    arrays = None
    try:
        with _hard_limit(job.trial.timeout):
            fields, arrays = _train(job)
        record |= fields
    except MissingPackageError as error:
        record |= {"status": "skipped", "reason": str(error)}
    except TrialTimeoutError:
        record |= {"status": "timeout", "reason": f"more than {job.trial.timeout:g} s"}
    except BaseException as error:
        # a package may raise KeyboardInterrupt or SystemExit
        record |= {"status": "failed", "reason": _reason(error)}
    if _prepared:  # many rows do not wait for another trial, since memory may be short
        n_values = prod(_prepared[0].rows.training.X.shape)
        if n_values > _MOST_KEPT:
            _prepared.clear()
    return record, arrays


def _train(job: Job) -> tuple[dict[str, Any], dict[str, NDArray]]:
    """Tune and train; return the remaining fields of the record, and the arrays."""
    if job.own_class is not None:
        SOLVERS.admit_own(job.own_class)
    warm_up(job.trial.solver)
    tuned = _tune(job)
    trial = job.trial.with_features(tuned.chosen)
    params = job.trial.params_of(tuned.chosen)
    rows = _prepared_rows(job, trial.fourier)
    training = rows.training
    solver = _solver(trial, params)
    recorder = Recorder(
        **_checkpoint_schedule(trial, params, training.n_rows),
        most_rows=job.passes * training.n_rows,
    )
    gc.collect()
    gc.disable()  # a collection in the middle of a training would count as its time
    try:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            training.train([solver], [recorder])
    finally:
        gc.enable()
    arrays = recorder.finish(solver)
    # scores are stored where there are no weights to score rows by
    if isinstance(solver, NonlinearRanker):
        rows_by_part = {part: cast(InMemory, rows.part(part)) for part in trial.parts}
        arrays = _with_scores(arrays, solver, rows_by_part)
    status = "ok"
    reason = ""
    if not all(np.isfinite(array).all() for array in arrays.values()):
        status = "diverged"
        reason = "the scores have overflowed: scale the features"
    fields = {
        "status": status,
        "reason": reason,
        "description": job.trial.description(job.dataset.sha256),
        "title": job.dataset.title,
        "stand_in": job.dataset.stand_in,
        "n_train": training.n_rows,
        "chosen": tuned.chosen,
        "tuning_seconds": tuned.seconds,
        "stopped": recorder.stopped or tuned.stopped,
        "seconds": recorder.seconds,
        "limit_passes": job.passes,
        "fitted": _scalars(solver),
        "warnings": sorted({str(warning.message) for warning in caught}),
    }
    return fields, arrays


def _with_scores(
    arrays: dict[str, NDArray],
    solver: NonlinearRanker,
    rows_by_part: Mapping[Any, InMemory],
) -> dict[str, NDArray]:
    """Return arrays with the scores of rows, at as many checkpoints as may be stored.

    `_MOST_SCORES` limits their number.
    """
    n_checkpoints = len(arrays["n_iter"])
    n_rows = sum(rows.n_rows for rows in rows_by_part.values())
    n_stored = min(n_checkpoints, max(1, _MOST_SCORES // n_rows))
    # Evenly spaced from the end, so that the last checkpoint, which is the result, is
    # stored.
    from_the_end = np.linspace(n_checkpoints - 1, 0, n_stored).round().astype(int)
    checkpoints = from_the_end[::-1]
    stored = {name: array[checkpoints] for name, array in arrays.items()}
    for part, rows in rows_by_part.items():
        scores = np.empty((n_stored, rows.n_rows))
        for i, n_iter in enumerate(stored["n_iter"]):
            values = solver.scores_after(rows.X, int(n_iter))
            scores[i] = as_scores(values, rows.n_rows)
        stored[f"scores_{part}"] = scores
    return stored


def _solver(trial: Trial, params: dict[str, Any]) -> Ranker:
    """Return the solver of a trial, unfitted, with the trial's seed."""
    solver = SOLVERS[trial.solver](**params)
    if "random_state" in solver.get_params():
        solver.set_params(random_state=trial.seed)
    return solver


# Parameters of which a small value makes a small solver
_SIZE_PARAMETERS = ("n_estimators", "max_iter", "n_components", "folds")


@functools.cache
def warm_up(solver: str) -> None:
    """Fit small solvers, so that no trial in this process pays for late imports."""
    X = np.random.default_rng(0).standard_normal((64, 2))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # warnings of too few iterations
        # the first two load shared code
        for name in ("perceptron-avg", "sgd-avg", solver):
            small = SOLVERS[name]()
            if name in SOLVERS.built_in:
                for parameter in _SIZE_PARAMETERS:
                    if parameter in small.get_params():
                        small.set_params(**{parameter: 2})
            # the trace warms `Recorder` up
            small.fit(X, np.sign(X[:, 0]), trace=Recorder(first_rows=1))
    gc.collect()
    # later collections, for which a trial waits, skip the objects loaded by now
    gc.freeze()


# Fields of a trial's description that determine its rows
_ROW_FIELDS = ("dataset", "data_sha256", "rows", "preprocessing", "split", "seed")


class _PreparedRows(NamedTuple):
    settings: dict[str, Any]  # which determine the rows
    rows: Rows


# At most one entry, perhaps of an earlier trial
_prepared: list[_PreparedRows] = []


def _prepared_rows(job: Job, fourier: Fourier | None) -> Rows:
    """Return the rows of a trial with these random features, prepared at most once."""
    trial = replace(job.trial, fourier=fourier)
    description = trial.description(job.dataset.sha256)
    settings = {name: description[name] for name in _ROW_FIELDS}
    settings["is_tuned"] = bool(trial.candidates)
    if trial.candidates:  # how tuning divides the training rows
        settings["folds"] = trial.folds
        settings["tuning_rows"] = trial.tuning_rows
    if _prepared and _prepared[0].settings == settings:
        return _prepared[0].rows
    _prepared.clear()  # before the new rows need the memory
    rows = Rows(trial, job.dataset)
    _ = rows.training  # prepares the rows, before a clock starts
    _prepared.append(_PreparedRows(settings, rows))
    return rows


class _Tuned(NamedTuple):
    """What tuning has chosen, how long it took, and whether it was stopped."""

    chosen: dict[str, Any]
    seconds: float
    stopped: str  # "tuning limit", or "" if the limit was not reached


def _tune(job: Job) -> _Tuned:
    """Choose the values of tuned parameters.

    All candidates together have the limit of one training, unless the limit leaves
    tuning out.
    """
    trial = job.trial
    if not trial.candidates:
        return _Tuned(chosen={}, seconds=0.0, stopped="")
    # Prepare the rows of the first candidate before the clock starts.
    first_candidate = trial.combinations()[0]
    _prepared_rows(job, trial.with_features(first_candidate).fourier)
    is_limited = trial.limit is None or trial.limit.tuning
    passes = job.passes if is_limited else np.inf
    start = time.perf_counter()
    stopped = ""

    def train_candidates(
        candidates: list[dict[str, Any]],
    ) -> Iterator[TrainedCandidate]:
        """Yield each candidate as fitted in each division, with its validation rows."""
        nonlocal stopped
        for group in _groups_of_shared_visits(trial, candidates):
            rows = _prepared_rows(job, group.fourier)
            for division in rows.divisions:
                fitting = rows.training.part(division.fit)
                # A group has a share of the limit, which its solvers divide.
                n_fits = len(candidates) * len(rows.divisions)
                share = len(group.numbers) / n_fits
                most_rows_of_group = passes * fitting.n_rows * share
                most_rows = most_rows_of_group / len(group.numbers)
                solvers = []
                limits = []  # traces without a checkpoint, which end a fit
                for number in group.numbers:
                    params = trial.params_of(candidates[number])
                    solvers.append(_solver(trial, params))
                    limits.append(Recorder(first_rows=None, most_rows=most_rows))
                fitting.train(solvers, limits)
                if any(limit.stopped for limit in limits):
                    stopped = "tuning limit"
                validation = rows.training.part(division.validation)
                for number, solver in zip(group.numbers, solvers, strict=True):
                    yield TrainedCandidate(number, solver, validation)

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        chosen = choose(trial, train_candidates)
    return _Tuned(chosen, time.perf_counter() - start, stopped)


class _Group(NamedTuple):
    """Candidates that learn together: their random features, and their numbers."""

    fourier: Fourier | None
    numbers: list[int]


def _groups_of_shared_visits(
    trial: Trial, candidates: list[dict[str, Any]]
) -> list[_Group]:
    """Return groups of candidates whose solvers take equal rows in equal order.

    Such solvers have equal `visits`; a solver without `visits` is alone.
    """
    groups: dict[tuple[Fourier | None, Hashable], _Group] = {}
    for number, candidate in enumerate(candidates):
        solver = _solver(trial, trial.params_of(candidate))
        fourier = trial.with_features(candidate).fourier
        visits = getattr(solver, "visits", None) or ("alone", number)
        group = groups.setdefault((fourier, visits), _Group(fourier, []))
        group.numbers.append(number)
    return list(groups.values())


def _checkpoint_schedule(
    trial: Trial, params: dict[str, Any], n_train: int
) -> dict[str, Any]:
    """Return arguments of `Recorder` that place the checkpoints, in numbers of rows."""
    checkpoints = trial.checkpoints
    if isinstance(checkpoints, tuple):
        places = [ceil_share(passes, n_train) for passes in checkpoints]
        return {"first_rows": 1, "places": places}
    if checkpoints == "every":  # at each call
        return {"first_rows": 1, "factor": 1.0}
    n_checkpoints = int(checkpoints)
    if n_checkpoints == 1:  # the final state
        return {"first_rows": None}
    if "epochs" not in params:  # the number of rows is not known
        return {"first_rows": 1, "factor": _UNKNOWN_LENGTH_FACTOR}
    # first_rows * factor**i, i = 0, ..., n_checkpoints - 1, ends with the rows of all
    # epochs.
    first_rows = min(params.get("batch_size", 1), n_train)
    last_rows = params["epochs"] * n_train
    factor = (last_rows / first_rows) ** (1 / (n_checkpoints - 1))
    # A factor of 1 would mean every call.
    return {"first_rows": first_rows, "factor": max(1.001, factor)}


def _scalars(solver: Ranker) -> dict[str, Any]:
    """Return the fitted attributes that are numbers, such as ``n_iter_``."""
    scalars = {}
    # `dir(solver)`, which scikit-learn defines, would call every property.
    for name in object.__dir__(solver):
        if name.endswith("_") and not name.startswith("_"):
            value = getattr(solver, name, None)
            if isinstance(value, (bool, int, float, np.number)):
                scalars[name] = value
    return scalars


@contextlib.contextmanager
def _hard_limit(seconds: float) -> Iterator[None]:
    """Raise `TrialTimeoutError` after a number of seconds.

    The exception waits for compiled code to return. If the code needs `_GRACE_SECONDS`
    more, the process ends, and the parent process finds a mark without a record.
    """
    started = time.monotonic()
    # Unlike a signal, this also reaches a trial in another thread, as on a worker of
    # Dask.
    timer = threading.Timer(
        seconds,
        ctypes.pythonapi.PyThreadState_SetAsyncExc,
        [ctypes.c_ulong(threading.get_ident()), ctypes.py_object(TrialTimeoutError)],
    )
    silent = open(os.devnull, "w")  # noqa: PTH123, SIM115 (faulthandler needs an open file)
    timer.start()
    # faulthandler ends the process from a thread of its own, which does not wait for
    # compiled code.
    faulthandler.dump_traceback_later(seconds + _GRACE_SECONDS, exit=True, file=silent)
    try:
        yield
        if time.monotonic() > started + seconds:  # but the exception has not come yet
            raise TrialTimeoutError
    finally:
        try:
            timer.cancel()
            timer.join()  # waits, so that an exception of the last moment comes here
        finally:
            faulthandler.cancel_dump_traceback_later()
            silent.close()


def _reason(error: BaseException) -> str:
    """Return why a trial failed, with type and place if the error is unexpected."""
    if isinstance(error, PrecbenchError):
        return str(error)
    if isinstance(error, MemoryError):
        return f"out of memory: {error}" if str(error) else "out of memory"
    reason = f"{type(error).__name__}: {error}"
    frames = traceback.extract_tb(error.__traceback__)
    if frames:
        raising = frames[-1]
        reason += f" ({Path(raising.filename).name}:{raising.lineno})"
    return reason
