"""Claims, and results written by hand, which reach every verdict without training."""

import importlib
import json
from functools import cache

import numpy as np
import pandas as pd

from precbench.claims import KINDS, load_claims, make_ledger, read_evidence
from precbench.claims.ledger import LedgerRow
from precbench.claims.verdicts import Verdict
from precbench.results.read import plain_strings

check_command = importlib.import_module("precbench.cli.check")  # hidden by the function
REPRODUCED = {Verdict.REPRODUCED, Verdict.WITH_DEVIATION}
HOUSING = "rudin2009-table-5-housing"
TIMED = {"a": 1.0, "b": 3.0}


@cache
@plain_strings
def quick_studies():
    """Return the tables of all quick studies, which every check computes.

    They are to be read only.
    """
    return check_command._quick_studies(load_claims())


def write_results(folder, cells, name="toy", seconds=None, **changes):
    """Write what a run leaves, and return its folder.

    `cells` maps (data set, solver, metric, part) to values by split, `seconds` solvers
    to theirs. A change replaces a column of the results, by a function of the solver or
    by a value, or a key of ``experiment.json``.
    """
    folder = folder / name
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "experiment.json").write_text(
        json.dumps(experiment_of(cells, name, changes))
    )
    rows = []
    for (dataset, solver, metric, part), values in cells.items():
        columns = {
            "experiment": name,
            "dataset": dataset,
            "title": dataset,
            "solver": solver,
            "part": part,
            "metric": metric,
            "stand_in": False,
            "final": True,
            "status": "ok",
            "seed": 1,
            "checkpoint": 1,
            "rows_seen": 1,
            "cpu_seconds": 1.0,
            "run": "1a",
            "wall_seconds": 1.0 if seconds is None else seconds[solver],
            "sweep": "",
            "reason": "",
            "stopped": "",
            "converged": "",
            "machine": "",
            "key": "",
            "chosen": "",
            "timing": "sequential",
            "tuning_seconds": 0.0,
        }
        for column in columns.keys() & changes.keys():
            change = changes[column]
            columns[column] = change(solver) if callable(change) else change
        for split, value in pd.Series(values, dtype=float).items():
            final = {"split": split, "value": value, **columns}
            # what was measured before the end is far from it
            begun = {**final, "checkpoint": 0, "final": False, "value": 1e9}
            rows += [final, begun]
    pd.DataFrame(rows).to_csv(folder / "results.csv", index=False)
    return folder


def experiment_of(cells, name, changes):
    """Return the content of ``experiment.json`` for these cells."""
    datasets = list(dict.fromkeys(dataset for dataset, _, _, _ in cells))
    solvers = list(dict.fromkeys(solver for _, solver, _, _ in cells))
    metrics = list(dict.fromkeys(metric for _, _, metric, _ in cells))
    experiment = {
        "name": name,
        "title": "A toy",
        "metrics": metrics,
        "solvers": solvers,
        "source": None,
        "sweep": None,
        "protocol": "",
        "scaling": "",
        "config": "",
        "plots": [],
        "built_in_solvers": [],
        "forms": {},
        "grids": {},
        "datasets": datasets,
        "folds": 1,
        "smoke": False,
    }
    experiment["measures"] = {
        metric: {
            "name": metric.partition("(")[0],
            "parameters": {},
            "written": metric,
            "smaller_is_better": metric.startswith("pnorm_risk"),
        }
        for metric in metrics
    }
    shape = {
        "rows": 506,
        "features": 13,
        "positives": 35,
        "training_rows": 400,
        "test_share": None,
        "stand_in": changes.get("stand_in", False),
    }
    experiment["data"] = dict.fromkeys(datasets, shape)
    for key in experiment.keys() & changes.keys():
        experiment[key] = changes[key]
    return experiment


def write_sweep(folder, name, tables):
    """Replace what `write_results` wrote by a sweep.

    `tables` are the rows at 0, 1, 2 and so on.
    """
    points = [
        table.assign(sweep=f"{name}={value}") for value, table in enumerate(tables)
    ]
    pd.concat(points).to_csv(folder / "results.csv", index=False)
    path = folder / "experiment.json"
    experiment = json.loads(path.read_text())
    metrics = experiment["metrics"]
    experiment["sweep"] = {
        "name": name,
        "values": list(range(len(tables))),
        "written": metrics,
        "metrics": [metrics] * len(tables),
    }
    path.write_text(json.dumps(experiment))


def judged(claims, *folders, values=None):
    """Return the rows of the ledger, in the order of the claims.

    `values` are the tables of studies by name.
    """
    evidence = read_evidence(folders)
    evidence.values = values or {}
    rows = make_ledger(claims, evidence)
    assert [row.id for row in rows] == [claim.id for claim in claims]
    return rows


def expect(folder, *cases, values=None):
    """Judge claims on the same results, and return the rows of the ledger.

    A case is a claim and its verdict.
    """
    claims = [
        published_claim.model_copy(update={"id": f"toy/table-1/{i}"})
        for i, (published_claim, _) in enumerate(cases)
    ]
    rows = judged(claims, folder, values=values)
    assert [row.verdict for row in rows] == [verdict for _, verdict in cases]
    return rows


def claim(kind, printed, number=0, **fields):
    """Return a claim; `number` is the end of its id."""
    common = {
        "id": f"toy/table-1/{number}",
        "where": "Table 1",
        "printed": printed,
        "kind": kind,
        "experiment": "toy",
        "config": "letter",
    }
    if kind not in ("exact", "bound", "rate", "statement", "consistency"):
        common["dataset"] = "housing"
    if kind in ("mean", "order", "spread"):
        common["metric"] = "auc"
    return KINDS[kind](**common | fields)


def mean(printed, solver="a", **fields):
    return claim("mean", printed, solver=solver, **fields)


def order(better="a", worse="b", **fields):
    return claim("order", "better", better=[better], worse=[worse], **fields)


def normal(n, centre=0.8, spread=0.01, seed=0):
    return centre + spread * np.random.default_rng(seed).standard_normal(n)


def auc_of(**solvers):
    return {
        ("housing", solver, "auc", "test"): values for solver, values in solvers.items()
    }


def ratio(printed="3", **fields):
    return claim("ratio", printed, slower="b", faster="a", **fields)


def row_of(name, verdict, kind="mean", **other):
    return LedgerRow(
        f"toy/table-1/{name}", "toy", "Table 1", kind, "1", verdict=verdict, **other
    )
