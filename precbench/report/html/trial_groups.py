"""The trials behind the cells of tables, and their machines."""

from collections import Counter
from typing import Any, NamedTuple

import numpy as np

from precbench.report.repeat import machine_facts, repeat_command
from precbench.report.summary_tables import three_digits
from precbench.report.table import Table, text_table
from precbench.results.read import Run
from precbench.results.store import Store
from precbench.results.summary import final_values


class TrialGroup(NamedTuple):
    """The trials of a solver on a data set.

    Attributes
    ----------
    dataset, solver : str
    id : str
        Of the HTML element: "d0s2" for the first data set and the third solver.
    ok : str
        How many trials are ok, such as "3 of 5 ok".
    command : str
        To repeat the first split; "" for trials without a config.
    table : Table
        A row for each trial.
    """

    dataset: str
    solver: str
    id: str
    ok: str
    command: str
    table: Table


class _TrialKey(NamedTuple):
    """A trial of a solver on a data set, in the order in which trials are shown."""

    point: int  # number of the point of the sweep
    split: int
    seed: int


def trial_groups(run: Run) -> list[TrialGroup]:
    """Return a group for each data set and solver, in the order of `run`."""
    finals = final_values(run.results, run.losses)
    rows_of = dict(iter(finals.groupby(["dataset", "solver"])))
    groups = []
    for dataset in run.datasets:
        for solver in run.solvers:
            if (dataset, solver) in rows_of:
                rows = rows_of[dataset, solver].to_dict("records")
                groups.append(_group(run, dataset, solver, rows))
    return groups


def _group(
    run: Run, dataset: str, solver: str, finals: list[dict[Any, Any]]
) -> TrialGroup:
    """Lay out the trials of a solver; `finals` has a row for each trial and metric."""
    # Each row has the value of a metric and, alike in all rows of a trial, how it went.
    trials: dict[_TrialKey, dict[Any, Any]] = {}
    values: dict[_TrialKey, dict[str, float]] = {}  # by metric
    for final in finals:
        point = run.sweep_points.index(final["sweep"])
        key = _TrialKey(point, int(final["split"]), int(final["seed"]))
        trials[key] = final
        values.setdefault(key, {})[final["metric"]] = final["value"]
    keys = sorted(trials)
    title = solver if len(run.datasets) == 1 else f"{dataset}: {solver}"
    command = repeat_command(
        run.name,
        solver,
        dataset,
        split=keys[0].split,
        config=run.config,
        smoke=run.smoke,
    )
    n_ok = sum(final["status"] == "ok" for final in trials.values())
    return TrialGroup(
        dataset,
        solver,
        id=f"d{run.datasets.index(dataset)}s{run.solvers.index(solver)}",
        ok=f"{n_ok} of {len(trials)} ok",
        command=command or "",
        table=_trial_table(
            title, run, [_cells(run, key, trials[key], values[key]) for key in keys]
        ),
    )


def _cells(
    run: Run, key: _TrialKey, final: dict[Any, Any], values: dict[str, float]
) -> list[str]:
    """Return the cells of a trial: place, values of the metrics, and how it went."""
    point = run.sweep_points[key.point]
    numbers = []
    for metric in run.metrics:
        value = values.get(run.metric_at(metric, point), np.nan)
        numbers.append("–" if np.isnan(value) else f"{value:.6g}")
    seconds = final["seconds"]
    return [
        str(key.split),
        str(key.seed),
        point,
        *numbers,
        "–" if np.isnan(seconds) else three_digits(seconds),
        final["chosen"],
        _outcome(final),
        final["key"],
    ]


def _trial_table(title: str, run: Run, rows: list[list[str]]) -> Table:
    """Lay out the cells of trials, without columns that have no entry.

    Such a column is the point of an experiment without a sweep.
    """
    header = [
        "split",
        "seed",
        "at",
        *map(run.metric_name, run.metrics),
        "seconds",
        "chosen",
        "outcome",
        "record",
    ]
    filled = [j for j in range(len(header)) if any(row[j] for row in rows)]
    return text_table(
        title, [header[j] for j in filled], [[row[j] for j in filled] for row in rows]
    )


def _outcome(final: dict[Any, Any]) -> str:
    if final["status"] != "ok":
        reason = final["reason"]
        return f"{final['status']}: {reason}" if reason else final["status"]
    return f"ok, stopped by a {final['stopped']}" if final["stopped"] else "ok"


def machines(run: Run) -> Table:
    """Return a table of the machines of a run, with the number of trials of each."""
    store = Store(run.folder)
    keys = {*run.results["key"]}
    machine_of = store.machines()  # by the name of the environment
    n_trials: Counter[str] = Counter()
    for record in store.records():
        if record.key in keys:
            n_trials[record.environment] += 1
    rows = []
    for name in sorted(n_trials.keys() & machine_of.keys()):
        facts = [
            f"{fact} {value}" for fact, value in machine_facts(machine_of[name]).items()
        ]
        rows.append([name, str(n_trials[name]), ", ".join(facts)])
    return text_table("Machines", ["machine", "trials", "about"], rows)
