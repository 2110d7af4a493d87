"""Runs trials, and is the only place with a clock."""

from collections.abc import Collection, Generator, Mapping

from precbench.experiment import Trial
from precbench.experiment.plan import Plan
from precbench.runner.dispatch import dispatch
from precbench.runner.work import Job, base_record
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
    """Return the trials that have no record yet that would do, one per key.

    Parameters
    ----------
    plan : Plan
    store : Store
    wanted : collection of str, optional
        Keys; default all.
    timing : bool, default=False
        Records whose trial did not run alone do not do.
    force : bool, default=False
        No record does.

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
            or (timing and record["timing"] != "sequential")
        ):
            missing[key] = trial
    return missing


def run_plan(
    plan: Plan,
    store: Store,
    trials: Mapping[str, Trial],
    *,
    n_workers: int = 1,
) -> Generator[tuple[Job, str]]:
    """Run trials and yield each with its status as it ends; the caller holds the store's lock.

    Trials that get a multiple of the time of others come after them.

    Parameters
    ----------
    plan : Plan
    store : Store
    trials : mapping of str to Trial
        By key, see `to_do`.
    n_workers : int, default=1
        Trials at a time. With more than one their times are marked as not comparable.

    Yields
    ------
    job, status : Job, str
    """
    machine = store.add_environment(environment())
    for key in trials:
        store.remove(key)
    for second_round in (False, True):
        jobs = [
            Job(
                trial=trial,
                key=key,
                folder=str(store.folder),
                dataset=plan.datasets[trial.dataset.name],
                limit=_limit(plan, store, trial),
                timing="sequential" if n_workers == 1 else "parallel",
                environment=machine,
            )
            for key, trial in trials.items()
            if _waits(trial) == second_round
        ]
        try:
            yield from dispatch(jobs, n_workers)
        except (KeyboardInterrupt, GeneratorExit):
            for job in jobs:
                if job.mark.exists():
                    reason = "interrupted while it ran"
                    store.write(base_record(job) | {"status": "interrupted", "reason": reason})
                    job.mark.unlink(missing_ok=True)
            raise


def _waits(trial: Trial) -> bool:
    return trial.limit is not None and trial.limit.times_slowest is not None


def _limit(plan: Plan, store: Store, trial: Trial) -> float:
    """Return the seconds of training that a trial may take.

    ``times_slowest`` counts from the slowest of the methods that work in epochs on the same
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
        seconds = [r["seconds"] for r in rivals if r is not None and r["status"] == "ok"]
        if seconds:
            limits.append(trial.limit.times_slowest * max(seconds))
    return min(limits)
