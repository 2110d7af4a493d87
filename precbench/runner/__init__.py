"""Running of trials; the only part of the package that measures time."""

import secrets
from collections.abc import Collection, Generator, Mapping
from functools import partial
from math import inf
from typing import TYPE_CHECKING

from precbench.experiment import Trial
from precbench.experiment.plan import Plan
from precbench.results.machine import environment
from precbench.results.records import RETRIED, Record
from precbench.results.store import Store
from precbench.solvers import SOLVERS

if TYPE_CHECKING:
    from precbench.runner.dispatch import RunJobs
    from precbench.runner.worker import Job


def to_do(
    plan: Plan,
    store: Store,
    *,
    wanted: Collection[str] | None = None,
    timing: bool = False,
    force: bool = False,
    rerun: Collection[str] = (),
    changed_code: bool = False,
) -> dict[str, Trial]:
    """Return by key, in the order of the plan, the trials without a usable record.

    Keys outside `wanted` are left out. With `force` every record is unusable, with
    `timing` a record of a trial that ran in parallel, with `changed_code` a record that
    other code made. With `rerun`, trials with one of these statuses run, and no others.
    """
    to_run: dict[str, Trial] = {}
    for trial, key in plan.trials:
        if key in to_run or (wanted is not None and key not in wanted):
            continue
        record = None if force else store.read(key)
        if rerun:
            is_due = record is not None and record.status in rerun
        else:
            is_due = (
                record is None
                or record.status in RETRIED  # statuses without a result
                or (timing and record.timing != "sequential")
                or (changed_code and record.code != trial.code)
                or _limit_has_changed(plan, trial, record)
            )
        if is_due:
            to_run[key] = trial
    return to_run


def keys_of_other_code(plan: Plan, store: Store, keys: Collection[str]) -> list[str]:
    """Return which of `keys` have a record of other code, with equal versions."""
    keys_of_others = []
    for trial, key in plan.trials:
        if key in keys:
            record = store.read(key)
            if record is not None and record.code != trial.code:
                keys_of_others.append(key)
    return keys_of_others


def _limit_has_changed(plan: Plan, trial: Trial, record: Record) -> bool:
    """Return whether a recorded trial would end elsewhere under the present limit."""
    passes = _most_passes(plan, trial)
    limits_tuning = trial.limit is not None and trial.limit.tuning
    if record.stopped == "tuning limit" and not limits_tuning:
        return True
    if record.stopped:
        former_passes = inf if record.limit_passes is None else record.limit_passes
        return former_passes != passes
    # The trial ended by itself, perhaps beyond the present limit.
    rows_seen = record.fitted.get("n_rows_seen_") or 0
    most_rows = passes * (record.n_train or inf)
    return rows_seen > most_rows


def run_plan(
    plan: Plan,
    store: Store,
    trials: Mapping[str, Trial],
    *,
    n_workers: int = 1,
    elsewhere: "RunJobs | None" = None,
) -> "Generator[tuple[Job, str]]":
    """Run trials and yield each job and its status; the caller holds the store's lock.

    With more than one worker, times are marked as not comparable. `elsewhere`, such as
    `precbench.runner.cluster.Cluster.run`, runs jobs instead, and puts machines in
    their records.
    """
    from precbench.runner.dispatch import dispatch, run_here
    from precbench.runner.worker import Job, base_record

    machine_id = "" if elsewhere else store.add_environment(environment())
    run = secrets.token_hex(8)  # an id that earlier records lack
    jobs = []
    for key, trial in trials.items():
        jobs.append(
            Job(
                trial=trial,
                key=key,
                folder=str(store.folder.resolve()),
                dataset=plan.datasets[trial.dataset.name],
                passes=_most_passes(plan, trial),
                timing="sequential" if n_workers == 1 else "parallel",
                environment=machine_id,
                run=run,
                before=_ending(store.read(key)),
                own_class=SOLVERS.own_class(trial.solver),
            )
        )
    try:
        yield from dispatch(jobs, elsewhere or partial(run_here, n_workers=n_workers))
    except (KeyboardInterrupt, GeneratorExit):
        outcome = {"status": "interrupted", "reason": "interrupted while it ran"}
        for job in jobs:
            if job.mark.exists():  # the trial was running
                record = store.read(job.key)
                has_result = record is not None and record.status not in RETRIED
                if not has_result:
                    store.write(base_record(job) | outcome)
            job.mark.unlink(missing_ok=True)
        raise


def _ending(record: Record | None) -> str:
    """Return how a trial ended, "status: reason"; "" without a record."""
    if record is None:
        return ""
    if record.reason:
        return f"{record.status}: {record.reason}"
    return record.status


def _most_passes(plan: Plan, trial: Trial) -> float:
    """Return the limit of a trial, as a number of passes over the rows."""
    if trial.limit is None:
        return inf
    epochs = plan.most_epochs.get((trial.dataset.name, trial.sweep), inf)
    # A row costs 1 in a pass that `epochs` counts, and `row_cost` in a pass of this
    # solver.
    row_cost = SOLVERS[trial.solver]().row_cost
    return trial.limit.times_slowest * epochs / row_cost
