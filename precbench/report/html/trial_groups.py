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
    """The trials of a solver on a data set."""

    dataset: str
    solver: str
    id: str  # of the HTML element: "d0s2" for the first data set and the third solver
    ok: str  # how many trials are ok, such as "3 of 5 ok"
    command: str  # to repeat the first split; "" for trials without a config
    table: Table


def trial_groups(run: Run) -> list[TrialGroup]:
    # Return a group for each data set and solver with trials, in the order of `run`.
    groups = dict(
        iter(final_values(run.results, run.losses).groupby(["dataset", "solver"]))
    )
    return [
        _group(run, dataset, solver, groups[dataset, solver].to_dict("records"))
        for dataset in run.datasets
        for solver in run.solvers
        if (dataset, solver) in groups
    ]


def _group(
    run: Run, dataset: str, solver: str, finals: list[dict[Any, Any]]
) -> TrialGroup:
    """Lay out the final values of a solver, one row per trial and one column per metric."""
    # `finals` has a row for each trial and metric: its value and, alike in all, how the
    # trial went.
    points = run.sweep_points
    # By trial, as (number of the point, split, seed): any row of the trial, and values
    # by metric.
    trials: dict[tuple[int, int, int], dict[Any, Any]] = {}
    values: dict[tuple[int, int, int], dict[str, float]] = {}
    for final in finals:
        trial = points.index(final["sweep"]), int(final["split"]), int(final["seed"])
        trials[trial] = final
        values.setdefault(trial, {})[final["metric"]] = final["value"]
    rows = []  # of texts, one row per trial
    for (point, split, seed), final in sorted(trials.items()):
        labels = [run.metric_at(metric, points[point]) for metric in run.metrics]
        of_metrics = [values[point, split, seed].get(label, np.nan) for label in labels]
        numbers = ["–" if np.isnan(value) else f"{value:.6g}" for value in of_metrics]
        seconds = "–" if np.isnan(final["seconds"]) else three_digits(final["seconds"])
        texts = [seconds, final["chosen"], _outcome(final), final["key"]]
        rows.append([str(split), str(seed), points[point], *numbers, *texts])
    metrics = map(run.metric_name, run.metrics)
    header = ["split", "seed", "at", *metrics, "seconds", "chosen", "outcome", "record"]
    # Columns without an entry are left out, such as the point of an experiment without
    # a sweep.
    columns = [column for column in zip(header, *rows, strict=True) if any(column[1:])]
    header, *rows = map(list, zip(*columns, strict=True))
    table = text_table(
        solver if len(run.datasets) == 1 else f"{dataset}: {solver}", header, rows
    )
    n_ok = sum(final["status"] == "ok" for final in trials.values())
    command = repeat_command(
        run.name, solver, dataset, config=run.config, smoke=run.smoke
    )
    return TrialGroup(
        dataset,
        solver,
        id=f"d{run.datasets.index(dataset)}s{run.solvers.index(solver)}",
        ok=f"{n_ok} of {len(trials)} ok",
        # rows[0][0], the number of the first split, goes between the two parts of the
        # command.
        command="" if command is None else rows[0][0].join(command),
        table=table,
    )


def _outcome(final: dict[Any, Any]) -> str:
    if final["status"] != "ok":
        # without a reason
        return f"{final['status']}: {final['reason']}".removesuffix(": ")
    return f"ok, stopped by a {final['stopped']}" if final["stopped"] else "ok"


def machines(run: Run) -> Table:
    """Return a table of the machines that ran trials of `run`, with the number of these trials."""
    store, keys = Store(run.folder), {*run.results["key"]}
    known = store.machines()  # by the name of their environment
    n_trials = Counter(
        record.environment for record in store.records() if record.key in keys
    )
    facts_of = {
        name: machine_facts(known[name])
        for name in sorted(n_trials.keys() & known.keys())
    }
    rows = [
        [
            name,
            str(n_trials[name]),
            ", ".join(f"{fact} {value}" for fact, value in facts.items()),
        ]
        for name, facts in facts_of.items()
    ]
    return text_table("Machines", ["machine", "trials", "about"], rows)
