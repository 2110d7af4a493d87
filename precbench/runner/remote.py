"""Trials on a worker of a Dask cluster: each runs in a process that the worker keeps for it.

A process of its own has signals and clocks to itself, so that a trial ends by its time limit and is
timed as on one machine; if it dies, the worker reports it and stays alive.
"""

import functools
import io
import os
import platform
import threading
import time
from contextlib import suppress
from dataclasses import replace
from importlib import metadata
from math import inf
from pathlib import Path
from typing import Any, Literal, NamedTuple

import joblib

import precbench
from precbench.data import Dataset
from precbench.data.cards.fetch import info
from precbench.errors import PrecbenchError
from precbench.experiment.samples import read_data
from precbench.experiment.sections import Data, FileData, StreamedCard, StreamedFile
from precbench.experiment.trial import Trial
from precbench.files import passing, write_whole
from precbench.processes import Process
from precbench.runner.worker import Job, run_job
from precbench.sources import code_of
from precbench.store import environment

__all__ = [
    *("BEGUN", "Answer", "begun", "has_data", "hollow", "keep_data", "packed", "run_remote"),
    *("start", "versions"),
]

_LIBRARIES = (
    *("numpy", "scipy", "scikit-learn", "joblib"),
    *("lightgbm", "xgboost", "xgboost-cpu", "catboost"),
)
_MOST_OF_THE_MEMORY = 0.95  # as Dask's own limit

BEGUN = "precbench"
"""Topic of the events that say which trials have begun, also on a worker that then dies."""


class Answer(NamedTuple):
    """What comes back from a worker for a trial.

    Attributes
    ----------
    end : {"recorded", "timeout", "failed", "died", "lacks data"}
        Whether there is a record; else what kept the process from writing one.
    worker : str
        Address of the worker.
    reason : str
        Why it timed out or failed.
    record, arrays : bytes
        The two files of the record.
    environment : dict or None
        The machine, see `precbench.store.environment`.
    """

    end: Literal["recorded", "timeout", "failed", "died", "lacks data"]
    worker: str
    reason: str = ""
    record: bytes = b""
    arrays: bytes = b""
    environment: dict[str, Any] | None = None


def begun(job: Job) -> str:
    """Return the event that says that a job has begun."""
    return f"{job.run}-{job.key}"


def versions() -> dict[str, str | None]:
    """Return what must agree between client and workers: precbench, its source, and libraries."""
    return {
        "Python": platform.python_version(),
        "precbench": precbench.__version__,
        "the source of precbench": code_of("precbench"),
        **{name: _version(name) for name in _LIBRARIES},
    }


def _version(package: str) -> str | None:
    with suppress(metadata.PackageNotFoundError):
        return metadata.version(package)
    return None


def hollow(dataset: Dataset) -> Dataset:
    """Return what identifies a data set, to be sent without its rows."""
    nothing: dict[str, Any] = dict.fromkeys(
        ("X", "y", "groups", "time", "imputed", "feature_names")
    )
    return replace(dataset, **nothing)


# --- in a thread of the worker ---


def run_remote(job: Job) -> Answer:
    """Run a trial whose rows are those that this worker has, and return the files of its record."""
    worker, limit = _worker(), job.trial.timeout
    worker.log_event(BEGUN, begun(job))
    kept, started = _kept(worker, job.trial, job.dataset), time.monotonic()
    try:
        outcome = _process().call(_run, job, kept, memory=_memory(worker))
    except MemoryError as error:
        return Answer("failed", worker.address, str(error))
    except EOFError:
        if time.monotonic() - started > limit:
            return Answer("timeout", worker.address, f"more than {limit:g} s in compiled code")
        return Answer("died", worker.address)
    if outcome is None:
        return Answer("lacks data", worker.address)
    return Answer("recorded", worker.address, "", *outcome)


def start() -> None:
    """Start the process of this thread, which takes seconds."""
    with suppress(EOFError):
        _process().call(os.getpid)


def has_data(trial: Trial, dataset: Dataset) -> bool:
    """Load the data set of a trial, and return whether this worker has it."""
    kept = _kept(_worker(), trial, dataset)
    with suppress(EOFError):  # as of a process without memory for them
        return bool(_process().call(_can_load, trial, dataset, kept))
    return False


def keep_data(trial: Trial, dataset: Dataset, content: bytes, dask_worker: Any = None) -> None:
    """Keep a data set that this worker lacks; Dask says which it is."""
    write_whole({_kept(dask_worker, trial, dataset): content})


def packed(dataset: Dataset) -> bytes:
    """Return a data set for `keep_data`; its arrays are memory maps once it is loaded."""
    content = io.BytesIO()
    joblib.dump(dataset, content)
    return content.getvalue()


def _worker() -> Any:
    from distributed import get_worker  # its processes start sooner without

    return get_worker()


def _kept(worker: Any, trial: Trial, dataset: Dataset) -> Path:
    """Return where a worker keeps a data set that was sent to it."""
    rows = "all" if trial.rows is None else trial.rows
    return Path(worker.local_directory, f"{dataset.sha256}-{rows}-{trial.dtype}.joblib")


def _memory(worker: Any) -> float:
    limit = worker.memory_manager.memory_limit or inf
    return _MOST_OF_THE_MEMORY * limit / worker.state.nthreads


_of_thread = threading.local()


def _process() -> Process:
    """Return the process of this thread."""
    if not getattr(_of_thread, "process", None) or not _of_thread.process.is_alive():
        _of_thread.process = Process(__name__)
    return _of_thread.process


# --- in its process ---


def _run(job: Job, kept: Path) -> tuple[bytes, bytes, dict[str, Any]] | None:
    """Run a trial and return its record, and this machine; None if its data are not here."""
    dataset = _load(job.trial, job.dataset, kept)
    if dataset is None:
        return None
    folder = kept.parent / f"process-{os.getpid()}"
    with passing():  # the client's record is the one that lasts
        run_job(replace(job, dataset=dataset, folder=str(folder)))
    record = folder / "trials" / f"{job.key}.json"
    return _taken(record), _taken(record.with_suffix(".npz")), _machine()


def _taken(path: Path) -> bytes:
    """Return the content of a file that is not needed any more, nothing if there is none."""
    if not path.exists():
        return b""
    content = path.read_bytes()
    path.unlink()
    return content


def _can_load(trial: Trial, wanted: Dataset, kept: Path) -> bool:
    return _load(trial, wanted, kept) is not None


_machine = functools.cache(environment)
_loaded: dict[str, Dataset] = {}


def _load(trial: Trial, wanted: Dataset, kept: Path) -> Dataset | None:
    """Return a data set: the last one, one that was sent, or one of this machine."""
    if kept.name not in _loaded:
        dataset = joblib.load(kept, mmap_mode="r") if kept.exists() else _found(trial, wanted)
        if dataset is None:
            return None
        _loaded.clear()
        _loaded[kept.name] = dataset
    return _loaded[kept.name]


def _found(trial: Trial, wanted: Dataset) -> Dataset | None:
    """Return a data set if this machine has it, in its cache, its mirror or at the same path."""
    if wanted.stand_in or not _is_at_hand(trial.dataset):
        return None
    try:
        dataset = read_data(trial.dataset, rows=trial.rows, dtype=trial.dtype)
    except (PrecbenchError, OSError):
        return None
    return dataset if dataset.sha256 == wanted.sha256 else None


def _is_at_hand(entry: Data) -> bool:
    """Whether a data set can be read without the network."""
    if isinstance(entry, FileData | StreamedFile):
        return Path(entry.file).exists()
    card = entry.card if isinstance(entry, StreamedCard) else entry.name
    return bool(os.environ.get("PRECBENCH_MIRROR")) or all(
        f.status != "missing" for f in info(card)
    )
