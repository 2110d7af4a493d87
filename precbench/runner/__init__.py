"""Runs trials; the only part of the package that measures time."""

import secrets
from collections import Counter
from collections.abc import Callable, Collection, Generator, Iterable, Mapping, Sequence
from math import inf, isinf
from typing import TYPE_CHECKING, Any

from precbench.experiment import Trial
from precbench.experiment.code import describe
from precbench.experiment.plan import Plan
from precbench.solvers import SOLVERS
from precbench.store import RETRIED, Machine, Record, Store, environment, key_of
from precbench.strict_json import checked

if TYPE_CHECKING:
    from precbench.runner.worker import Job

    Engine = Callable[[Sequence[Job]], Iterable[tuple[Job, str]]]

__all__ = ["code_changes", "run_plan", "to_do"]


def to_do(
    plan: Plan,
    store: Store,
    *,
    wanted: Collection[str] | None = None,
    timing: bool = False,
    force: bool = False,
    rerun: Collection[str] = (),
) -> dict[str, Trial]:
    """Return the trials without a usable record, one per key.

    Parameters
    ----------
    plan : Plan
    store : Store
    wanted : collection of str, optional
        Keys; None means all.
    timing : bool, default=False
        Whether records of trials that ran in parallel are unusable, and those of other machines
        unless all trials of a split ran there.
    force : bool, default=False
        Whether all records are unusable.
    rerun : collection of str, optional
        Statuses; only the trials whose records have one of them are returned.

    Returns
    -------
    dict of str to Trial
        In the order of the plan.
    """
    missing: dict[str, Trial] = {}
    done: dict[str, tuple[Trial, str]] = {}
    for trial, key in plan.trials:
        if key in missing or key in done or (wanted is not None and key not in wanted):
            continue
        record = None if force else store.read(key)
        if rerun:
            if record is not None and record.status in rerun:
                missing[key] = trial
        elif (
            record is None
            or record.status in RETRIED
            or (timing and record.timing != "sequential")
            or _limit_has_changed(plan, trial, record)
        ):
            missing[key] = trial
        else:
            done[key] = trial, record.environment
    if timing and done:
        missing |= _timed_elsewhere(store, missing, done)
        missing = {key: missing[key] for _, key in plan.trials if key in missing}
    return missing


def _timed_elsewhere(
    store: Store, missing: Mapping[str, Trial], done: Mapping[str, tuple[Trial, str]]
) -> dict[str, Trial]:
    """Return what ran on another machine than this one, where not all trials of the split did."""
    kinds = {name: machine.kind for name, machine in store.machines().items()}
    here = checked(environment(), Machine).kind
    ran_on = {key: (trial, kinds.get(name, "")) for key, (trial, name) in done.items()}
    machines: dict[tuple[str, int], set[str]] = {}
    for trial, kind in [*ran_on.values(), *((trial, here) for trial in missing.values())]:
        machines.setdefault((trial.dataset.name, trial.split.index), set()).add(kind)
    return {
        key: trial
        for key, (trial, kind) in ran_on.items()
        if kind != here and len(machines[trial.dataset.name, trial.split.index]) > 1
    }


def code_changes(plan: Plan, store: Store, trials: Collection[Trial]) -> Counter[str]:
    """Count the trials that ran before with other code, by the modules that have changed since.

    Parameters
    ----------
    plan : Plan
    store : Store
    trials : collection of Trial
        Those that will run.

    Returns
    -------
    collections.Counter
        Names of modules, separated by commas, and the numbers of trials; an empty name counts
        those whose records are of an earlier precbench, which noted no code.
    """
    before: dict[str, dict[str, str]] = {}
    for record in store.records() if trials else ():
        if described := record.description.to_dict():
            before[_but_for_code(described)] = record.description.code
    changes: Counter[str] = Counter()
    for trial in trials:
        about = describe(trial, plan.datasets[trial.dataset.name].sha256)
        old = before.get(_but_for_code(about))
        if old is not None and old != about["code"]:
            differ = [name for name, now in about["code"].items() if old.get(name) != now]
            changes[", ".join(differ) if old else ""] += 1
    return changes


def _but_for_code(description: dict[str, Any]) -> str:
    return key_of({name: value for name, value in description.items() if name != "code"})


def _limit_has_changed(plan: Plan, trial: Trial, record: Record) -> bool:
    """Return whether a limit that stopped a trial, or would have stopped it, has changed."""
    seconds, passes = _limits(plan, trial)
    if record.stopped:
        known = record.limit_seconds, record.limit_passes
        return known != tuple(None if isinf(limit) else limit for limit in (seconds, passes))
    n_rows = record.fitted.get("n_rows_seen_") or 0
    most_rows = passes * (record.n_train or inf)
    return (record.seconds or 0.0) > seconds or n_rows > most_rows


def run_plan(
    plan: Plan,
    store: Store,
    trials: Mapping[str, Trial],
    *,
    n_workers: int = 1,
    engine: "Engine | None" = None,
) -> "Generator[tuple[Job, str]]":
    """Run trials and yield each with its status as it ends; the caller holds the store's lock.

    Parameters
    ----------
    plan : Plan
    store : Store
    trials : mapping of str to Trial
        By key, see `to_do`.
    n_workers : int, default=1
        Number of trials to run at a time. With more than one, times are marked as not comparable.
    engine : callable, optional
        What runs them and notes on which machine, as `precbench.runner.cluster.Cluster.dispatch`;
        by default processes of this one.

    Yields
    ------
    job, status : Job, str
    """
    from precbench.runner.dispatch import dispatch
    from precbench.runner.worker import Job, base_record

    machine = "" if engine else store.add_environment(environment())
    run = secrets.token_hex(8)
    jobs = []
    for key, trial in trials.items():
        seconds, passes = _limits(plan, trial)
        jobs.append(
            Job(
                trial=trial,
                key=key,
                folder=str(store.folder.resolve()),
                dataset=plan.datasets[trial.dataset.name],
                limit=seconds,
                passes=passes,
                timing="sequential" if n_workers == 1 else "parallel",
                environment=machine,
                run=run,
                before=_outcome(store.read(key)),
            )
        )
    try:
        yield from engine(jobs) if engine else dispatch(jobs, n_workers)
    except (KeyboardInterrupt, GeneratorExit):
        for job in jobs:
            if job.mark.exists() and not _is_done(store, job.key):
                reason = "interrupted while it ran"
                store.write(base_record(job) | {"status": "interrupted", "reason": reason})
            job.mark.unlink(missing_ok=True)
        raise


def _outcome(record: Record | None) -> str:
    if record is None:
        return ""
    return ": ".join(filter(None, (record.status, record.reason)))


def _is_done(store: Store, key: str) -> bool:
    """Return whether there is a result, of this run or an earlier one, to keep."""
    record = store.read(key)
    return record is not None and record.status not in RETRIED


def _limits(plan: Plan, trial: Trial) -> tuple[float, float]:
    """Return the limits of a trial: training time in seconds, and passes over the rows."""
    seconds, passes = inf, inf
    if trial.limit is not None:
        seconds = trial.limit.seconds or inf
        if trial.limit.times_slowest is not None:
            epochs = [
                max(other.candidates.get("epochs", [other.params["epochs"]]))
                for other, _ in plan.trials
                if "epochs" in other.params
                and (other.dataset, other.sweep) == (trial.dataset, trial.sweep)
            ]
            cost = SOLVERS[trial.solver]().row_cost
            passes = trial.limit.times_slowest * max(epochs, default=inf) / cost
    return seconds, passes
