"""Runs trials; the only part of the package that measures time."""

import secrets
from collections.abc import Collection, Generator, Mapping
from typing import Any

from precbench.experiment import Trial
from precbench.experiment.plan import Plan
from precbench.runner.dispatch import dispatch
from precbench.runner.worker import Job, base_record
from precbench.store import Store, environment

__all__ = ["Job", "run_plan", "to_do"]

_RETRIED = {"failed", "timeout", "crashed", "interrupted"}


def to_do(
    plan: Plan,
    store: Store,
    *,
    wanted: Collection[str] | None = None,
    timing: bool = False,
    force: bool = False,
) -> dict[str, Trial]:
    """Return the trials without a usable record, one per key.

    Parameters
    ----------
    plan : Plan
    store : Store
    wanted : collection of str, optional
        Keys; None means all.
    timing : bool, default=False
        Whether records of trials that ran in parallel are unusable.
    force : bool, default=False
        Whether all records are unusable.

    Returns
    -------
    dict of str to Trial
        In the order of the plan.
    """
    missing: dict[str, Trial] = {}
    for trial, key in plan.trials:
        if key in missing or (wanted is not None and key not in wanted):
            continue
        record = None if force else store.read(key)
        if (
            record is None
            or record["status"] in _RETRIED
            or (timing and record.get("timing") != "sequential")
            or _limit_has_changed(plan, store, trial, record)
        ):
            missing[key] = trial
    return missing


def _limit_has_changed(plan: Plan, store: Store, trial: Trial, record: dict[str, Any]) -> bool:
    """Return whether a limit that stopped a trial, or would have stopped it, has changed."""
    if record.get("stopped"):
        return record.get("limit") != (None if trial.limit is None else trial.limit.model_dump())
    ran_without = record.get("limit_seconds") is None
    return ran_without and (record.get("seconds") or 0.0) > _limit(plan, store, trial)


def run_plan(
    plan: Plan,
    store: Store,
    trials: Mapping[str, Trial],
    *,
    n_workers: int = 1,
) -> Generator[tuple[Job, str]]:
    """Run trials and yield each with its status as it ends; the caller holds the store's lock.

    Trials limited to a multiple of the time of others run after them.

    Parameters
    ----------
    plan : Plan
    store : Store
    trials : mapping of str to Trial
        By key, see `to_do`.
    n_workers : int, default=1
        Number of trials to run at a time. With more than one, times are marked as not comparable.

    Yields
    ------
    job, status : Job, str
    """
    machine = store.add_environment(environment())
    run = secrets.token_hex(8)
    for last_round in (False, True):
        jobs = [
            Job(
                trial=trial,
                key=key,
                folder=str(store.folder.resolve()),
                dataset=plan.datasets[trial.dataset.name],
                limit=_limit(plan, store, trial),
                timing="sequential" if n_workers == 1 else "parallel",
                environment=machine,
                run=run,
            )
            for key, trial in trials.items()
            if _runs_last(trial) == last_round
        ]
        try:
            yield from dispatch(jobs, n_workers)
        except (KeyboardInterrupt, GeneratorExit):
            for job in jobs:
                if job.mark.exists() and not _is_done(store, job.key):
                    reason = "interrupted while it ran"
                    store.write(base_record(job) | {"status": "interrupted", "reason": reason})
                job.mark.unlink(missing_ok=True)
            raise


def _is_done(store: Store, key: str) -> bool:
    """Return whether there is a result, of this run or an earlier one, to keep."""
    record = store.read(key)
    return record is not None and record["status"] not in _RETRIED


def _runs_last(trial: Trial) -> bool:
    return trial.limit is not None and trial.limit.times_slowest is not None


def _limit(plan: Plan, store: Store, trial: Trial) -> float:
    """Return the limit on the training time of a trial, in seconds.

    ``times_slowest`` is a multiple of the time of the slowest solver with epochs on the same
    split of the same data.
    """
    if trial.limit is None:
        return float("inf")
    limits = [trial.limit.seconds or float("inf")]
    if trial.limit.times_slowest is not None:
        rivals = [
            store.read(key)
            for other, key in plan.trials
            if "epochs" in other.params
            and (other.dataset, other.split, other.sweep)
            == (trial.dataset, trial.split, trial.sweep)
        ]
        seconds = [r.get("seconds") or 0.0 for r in rivals if r and r["status"] == "ok"]
        if seconds:
            limits.append(trial.limit.times_slowest * max(seconds))
    return min(limits)
