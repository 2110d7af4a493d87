"""Metrics of the stored weights or scores, and the files that reports are made from.

``results.csv`` has one row per solver, split, part, checkpoint and metric, ``roc.csv``
the vertices of the ROC curve of each trial's final scores, ``roc-counts.csv`` those of
one split in numbers of rows, ``precision-k.csv`` prec@k at many k, ``experiment.json``
the description of the experiment.
"""

import itertools
import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from math import isfinite
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from precbench.core.errors import InputError
from precbench.core.source_code import code_of
from precbench.core.strict_json import Fields, parse
from precbench.core.text import visible
from precbench.data import Dataset
from precbench.data.splits import RowSplit
from precbench.experiment import Experiment, Trial
from precbench.experiment.plan import Plan
from precbench.experiment.samples import Rows, Sample
from precbench.experiment.sections import SolverEntry
from precbench.ranking.metrics import METRICS, Metric, roc_curve
from precbench.ranking.topk import resolve_k, sums_at
from precbench.results.read import COLUMNS, Sizes, plain_strings, read_csv
from precbench.results.records import Record
from precbench.results.store import Store
from precbench.solvers import SOLVERS, LinearRanker

_ROC_VERTICES = 400  # a figure does not tell more apart
_NOT_MEASURING = (  # not hashed
    "advice",
    "claims",
    "cli",
    "papers",
    "report",
    "results.merge",
    "survey",
)
_DEPTHS = 150  # values of k in ``precision-k.csv``
_ROC_COLUMNS = ("dataset", "title", "solver", "split", "sweep")
_COUNTS_COLUMNS = (*_ROC_COLUMNS, "part")
# arrays and columns, by checkpoint
_PROGRESS = ("rows_seen", "cpu_seconds", "wall_seconds")


@plain_strings
def write_results(plan: Plan, store: Store, config: str = "") -> pd.DataFrame:
    """Compute the metrics of a plan's records, write the files.

    Return the plan's result rows.

    Nothing is computed if the records and the code that measures are unchanged. A trial
    without a record has no row; a trial without a result has a row per metric, with the
    reason. `config` is the name or path of the config, for the command that repeats a
    trial.
    """
    facts = _description(plan, config)  # the content of experiment.json
    facts["data"] = (
        _sizes_of_other_datasets(plan, store.folder / "experiment.json") | facts["data"]
    )
    described = json.dumps(facts, indent=1) + "\n"
    if (measured_before := _measured_before(plan, store, described)) is not None:
        return measured_before
    rows, curves = _measure(plan, store)
    results = pd.DataFrame(rows, columns=[*COLUMNS])
    for name, tables in {"results.csv": [results], **curves}.items():
        table = pd.concat([_rows_of_other_datasets(plan, store.folder / name), *tables])
        _write(store, name, table.to_csv(index=False, lineterminator="\n"))
    # last: says that the other files are complete
    _write(store, "experiment.json", described)
    return results


def _measure(
    plan: Plan, store: Store
) -> tuple[list[Any], dict[str, list[pd.DataFrame]]]:
    # Return the rows of ``results.csv``, and by file name the tables that make up a
    # file of curves.
    experiment, plots = plan.experiment, plan.experiment.plots or ()
    rows: list[dict[str, Any]] = []
    # The first table of a file has no rows: it makes the header of a file without
    # curves. always written
    curves = {"roc.csv": [pd.DataFrame(columns=[*_ROC_COLUMNS, "fpr", "tpr"])]}
    if "precision-k" in plots:
        header = [*_ROC_COLUMNS, "k", "share", "precision"]
        curves["precision-k.csv"] = [pd.DataFrame(columns=header)]
    machine_kinds = {name: machine.kind for name, machine in store.machines().items()}
    for trials in _by_rows(plan, store):  # a group that shares its rows
        first, *_ = trials[0]  # a trial, without key and record
        # once for all trials of a group
        prepared = Rows(first, plan.datasets[first.dataset.name])
        for trial, key, record in trials:
            columns = _trial_columns(plan, trial, record)
            columns["machine"] = machine_kinds.get(record.environment, "")
            metrics = experiment.metrics_at(trial.sweep)
            if record.status != "ok":
                rows += [columns | {"metric": metric.label} for metric in metrics]
                continue
            measured: dict[str, Sample] = {
                part: prepared.part(part) for part in experiment.parts
            }
            arrays = _checkpoints(store, key, measured)
            for part, sample_rows in measured.items():
                part_columns, y = columns | {"part": part}, sample_rows.y
                # at each checkpoint; `final`: the last
                scores = _scores(arrays, part, sample_rows)
                metric_rows, final = _metric_rows(
                    metrics, part_columns, arrays, y, scores
                )
                rows += metric_rows
                for name, table in _curves(plots, part_columns, y, final, metrics):
                    curves.setdefault(name, []).append(table)
    return rows, curves


def _measured_before(plan: Plan, store: Store, described: str) -> pd.DataFrame | None:
    # Return the rows of ``results.csv`` if they are of these records and this code,
    # else None.
    path = store.folder / "results.csv"
    # Plots of accuracies are drawn from results.csv, each other plot from the file of
    # its name.
    needed = [
        f"{plot}.csv" for plot in plan.experiment.plots or () if "accuracy" not in plot
    ]
    with suppress(OSError, InputError):
        # names the code that measured
        written = (store.folder / "experiment.json").read_bytes()
        has_curves = all((store.folder / name).is_file() for name in needed)
        if written == visible(described).encode() and has_curves:
            results = read_csv(path, COLUMNS)
            results = results[results["dataset"].isin(plan.datasets)]
            # with a record
            keys = {key for _, key in plan.trials}.intersection(store.keys())
            if (
                keys == {*results["key"]}
                and store.last_change() < path.stat().st_mtime_ns
            ):
                return results
    return None


def _write(store: Store, name: str, content: str) -> None:
    """Write a file only if its content has changed.

    Figures older than the file are drawn again.
    """
    path = store.folder / name
    if not path.is_file() or path.read_bytes() != visible(content).encode():
        store.write_text(name, content)


class ScoredSplit(NamedTuple):
    """A trial's record, its division of the rows, and the last scores of its test rows."""

    record: Record
    split: RowSplit
    scores: NDArray[np.float64]


def final_scores(plan: Plan, store: Store, label: str) -> Iterator[ScoredSplit]:
    """Yield the last test scores of each trial of a method that has a result."""
    for trials in _by_rows(plan, store):
        for trial, key, record in trials:
            if trial.label == label and record.status == "ok":
                rows = Rows(trial, plan.datasets[trial.dataset.name])
                arrays = _checkpoints(store, key, {"test": rows.test})
                *_before, scores = _scores(arrays, "test", rows.test)
                split, _n_fit = rows.split
                yield ScoredSplit(record, split, scores)


def final_means(results: pd.DataFrame) -> list[dict[str, Any]]:
    """Return a row for each mean of final values, with the number of splits.

    Not finite: None.
    """
    # `final` may be NaN
    final = results[results["final"].eq(True) & results["value"].notna()]
    cells = final.groupby(["dataset", "sweep", "metric", "part", "solver"], sort=False)[
        "value"
    ]
    means = (
        cells.agg(["mean", "count"]).reset_index().rename(columns={"count": "splits"})
    )
    # for JSON, which has no infinity
    records: list[dict[Any, Any]] = means.to_dict("records")
    return [
        {**row, "mean": row["mean"] if isfinite(row["mean"]) else None}
        for row in records
    ]


def not_ok(results: pd.DataFrame, part: Experiment) -> dict[str, int]:
    """Count by status the trials of `part`, a selection of an experiment, that are not ok."""
    trials = results.loc[results["status"] != "ok"]  # has a row for each metric
    trials = trials.drop_duplicates(["dataset", "solver", "split", "sweep"])
    planned = {
        (trial.dataset.name, trial.label, trial.split.index) for trial in part.trials()
    }
    ended = zip(
        trials["dataset"],
        trials["solver"],
        trials["split"],
        trials["status"],
        strict=True,
    )
    return dict(Counter(status for *trial, status in ended if tuple(trial) in planned))


def _rows_of_other_datasets(plan: Plan, path: Path) -> pd.DataFrame:
    """Return the rows of a file on data sets that this plan omits.

    Earlier runs wrote these rows.
    """
    others = _other_datasets(plan)
    if not others or not path.exists():
        return pd.DataFrame()
    # text, which is written unchanged
    table = pd.read_csv(path, dtype=str, keep_default_na=False)
    return table[table["dataset"].isin(others)]


def _other_datasets(plan: Plan) -> set[str]:  # of the experiment, but not of the plan
    return {entry.name for entry in plan.experiment.datasets} - set(plan.datasets)


class _Former(Fields):  # of an ``experiment.json`` from an earlier run
    data: dict[str, Sizes]


def _sizes_of_other_datasets(plan: Plan, path: Path) -> dict[str, Any]:
    # Return the ``data`` of an earlier ``experiment.json`` for data sets that the plan
    # omits.
    others = _other_datasets(plan)
    with suppress(FileNotFoundError, ValueError):  # an edited file is ignored
        former = parse(path.read_bytes(), _Former)
        return {
            name: sizes.model_dump()
            for name, sizes in former.data.items()
            if name in others
        }
    return {}


def _by_rows(plan: Plan, store: Store) -> Iterator[list[tuple[Trial, str, Record]]]:
    # Yield groups of trials with the same prepared rows, each trial with its key and
    # record.
    groups: dict[Any, list[tuple[Trial, str, Record]]] = {}
    for trial, key in plan.trials:
        if (record := store.read(key)) is not None:
            trial = _with_features(trial, store, record)
            # what the rows depend on
            rows = trial.dataset.name, trial.split, trial.fourier
            groups.setdefault(rows, []).append((trial, key, record))
    yield from groups.values()


def _with_features(trial: Trial, store: Store, record: Record) -> Trial:
    # Return a trial with the random features that tuning chose, without features if it
    # failed.
    if trial.fourier is None or record.status != "ok":
        return replace(trial, fourier=None)
    chosen = record.chosen
    for name, values in trial.fourier.candidates.items():
        if chosen.get(f"fourier.{name}") not in values:
            raise store.damaged(record.key, f"fourier.{name} should be one of {values}")
    return trial.with_features(chosen)


# Columns that are fields of a record
_RECORDED = {"key", "status", "reason", "stopped", "timing", "run", "tuning_seconds"}


def _trial_columns(plan: Plan, trial: Trial, record: Record) -> dict[str, Any]:
    # of each row
    dataset = plan.datasets[trial.dataset.name]
    return {
        "experiment": plan.experiment.name,
        "dataset": dataset.name,
        "title": dataset.title,
        "stand_in": dataset.stand_in,
        "solver": trial.label,
        "split": trial.split.index,
        "seed": trial.seed,
        "sweep": trial.sweep_point,
        "part": "test",  # replaced in rows with numbers
        **record.model_dump(include=_RECORDED),
        # Of a solver that has a tolerance: whether the final fit reached it, "True" or
        # "False".
        "converged": str(record.fitted.get("converged_", "")),
        "chosen": " ".join(f"{n}={_written(v)}" for n, v in record.chosen.items()),
    }


def _written(value: Any) -> str:  # a value that tuning chose, as text
    if isinstance(value, int | float) and not isinstance(value, bool):
        return f"{value:g}"
    return str(value).lower()


def _checkpoints(
    store: Store, key: str, measured: Mapping[str, Sample]
) -> dict[str, NDArray]:
    """Return the stored arrays of a trial; refuse damaged arrays.

    For each checkpoint they hold the progress, and the scores of each part in
    `measured` or the weights of a linear solver.
    """
    arrays = store.arrays(key)
    # `len` fails for 0-d
    n_checkpoints = len(np.atleast_1d(arrays.get("rows_seen", ())))
    shapes: dict[str, tuple[int, ...]] = dict.fromkeys(_PROGRESS, (n_checkpoints,))
    # the recorder stores n_iter only with scores, not with weights
    if "n_iter" in arrays:
        for part, rows in measured.items():
            shapes[f"scores_{part}"] = (n_checkpoints, rows.n_rows)
    else:
        # of any part
        shapes["coef"] = (n_checkpoints, next(iter(measured.values())).X.shape[1])
        shapes |= {"intercept": (n_checkpoints,)} if "intercept" in arrays else {}
    for name, shape in shapes.items():
        array = arrays.get(name, np.empty(0))
        if not n_checkpoints or array.shape != shape or array.dtype.kind not in "fi":
            raise store.damaged(key, f"{name} should be numbers of shape {shape}")
        if not np.isfinite(array).all():
            raise store.damaged(key, f"{name} holds a value that is not finite")
    return arrays


def _scores(
    arrays: dict[str, NDArray], part: str, rows: Sample
) -> Iterator[NDArray[np.float64]]:
    """Yield the scores of a part at each checkpoint.

    Stored scores, or scores by stored weights.
    """
    states = arrays[f"scores_{part}" if "n_iter" in arrays else "coef"]
    states = states.astype(np.float64, copy=False)
    yield from (
        states if "n_iter" in arrays else rows.scores(states, arrays.get("intercept"))
    )


def _metric_rows(
    metrics: Sequence[Metric],
    columns: dict[str, Any],
    arrays: dict[str, NDArray],
    y: NDArray[np.float64],
    scores: Iterable[NDArray[np.float64]],
) -> tuple[list[dict[str, Any]], NDArray[np.float64]]:
    # Return rows of ``results.csv``, metric by metric, and the scores at the last
    # checkpoint. A row has `columns`, which all rows of a trial on a part share, and
    # what was measured.
    by_metric: list[list[dict[str, Any]]] = [[] for _ in metrics]
    final = np.empty(0)
    # after the loop, `final` holds the last scores
    for checkpoint, final in enumerate(scores):
        for metric, rows in zip(metrics, by_metric, strict=True):
            named = columns | {"metric": metric.label}
            # A metric that has failed at a checkpoint is not computed at later
            # checkpoints.
            if rows and rows[-1]["status"] == "failed":
                continue
            try:
                value = metric(y, final)
            except InputError as error:  # too few rows, or a metric that a package adds
                rows.append(
                    named | {"status": "failed", "reason": f"not measured: {error}"}
                )
                continue
            rows.append(
                named
                | {
                    "checkpoint": checkpoint,
                    **{name: arrays[name][checkpoint] for name in _PROGRESS},
                    "value": value,
                    "final": checkpoint == len(arrays["rows_seen"]) - 1,
                }
            )
    return [row for rows in by_metric for row in rows], final


def _curves(
    plots: Sequence[str],
    columns: dict[str, Any],
    y: NDArray[np.float64],
    scores: NDArray[np.float64],
    metrics: Iterable[Metric],
) -> Iterator[tuple[str, pd.DataFrame]]:
    # Yield pairs of a file name and the rows that the final scores of a trial on a part
    # add to it.
    if "roc" in plots and columns["part"] == "test":
        yield "roc.csv", _roc_vertices(columns, y, scores)
    if "precision-k" in plots and columns["part"] == "test":
        yield "precision-k.csv", _precisions(columns, y, scores, metrics)
    if "roc-counts" in plots and columns["split"] == 0:  # one split is drawn
        yield "roc-counts.csv", _roc_counts(columns, y, scores)


def _roc_vertices(
    columns: dict[str, Any], y: NDArray[np.float64], scores: NDArray[np.float64]
):
    """Return the rows of ``roc.csv``.

    At most `_ROC_VERTICES` vertices, denser towards the top.
    """
    fpr, tpr, _ = roc_curve(y, scores)
    if len(fpr) > _ROC_VERTICES:
        places = np.unique(
            np.geomspace(1, len(fpr), _ROC_VERTICES).round().astype(int) - 1
        )
        fpr, tpr = fpr[places], tpr[places]
    return pd.DataFrame(
        {**{n: columns[n] for n in _ROC_COLUMNS}, "fpr": fpr, "tpr": tpr}
    )


def _roc_counts(
    columns: dict[str, Any], y: NDArray[np.float64], scores: NDArray[np.float64]
):
    """Return the rows of ``roc-counts.csv``.

    Some vertices of the ROC curve, in numbers of rows.
    """
    fpr, tpr, _ = roc_curve(y, scores)
    spaced = np.linspace(0, len(fpr) - 1, _ROC_VERTICES).round().astype(int)
    # All of the first vertices, where the figure shows the top in full; evenly spaced
    # ones beyond
    vertices = np.union1d(spaced, np.arange(min(_ROC_VERTICES, len(fpr))))
    n_pos = np.count_nonzero(y > 0)
    named = {name: columns[name] for name in _COUNTS_COLUMNS}
    # whole: rounded below
    false, true = fpr[vertices] * (len(y) - n_pos), tpr[vertices] * n_pos
    return pd.DataFrame(
        {**named, "false_positives": false, "true_positives": true}
    ).round(6)


def _precisions(
    columns: dict[str, Any],
    y: NDArray[np.float64],
    scores: NDArray[np.float64],
    metrics: Iterable[Metric],
):
    """Return the rows of ``precision-k.csv``.

    Prec@k for the k of the metrics, and for k whose logarithms are spaced evenly. Where
    rows are tied, the mean over their orders counts.
    """
    n_pos, n_rows = int(np.count_nonzero(y > 0)), len(y)
    depths = set(np.geomspace(1, n_rows, _DEPTHS).round().astype(int).tolist())
    for metric in metrics:
        if metric.name == "precision_at_k":
            with suppress(InputError):  # too few rows for this k
                depths.add(resolve_k(metric.params["k"], n_pos, n_rows))
    k = np.array(sorted(depths))
    hits = sums_at(y > 0, scores, k)
    named = {name: columns[name] for name in _ROC_COLUMNS}
    return pd.DataFrame({**named, "k": k, "share": k / n_pos, "precision": hits / k})


def _sizes(dataset: Dataset) -> dict[str, Any]:
    rows, features = dataset.X.shape
    return {
        "rows": rows,
        "features": features,
        "positives": dataset.n_pos,
        "stand_in": dataset.stand_in,
        "training_rows": dataset.n_train or 0,  # 0: no provided split
    }


def _form(entry: SolverEntry) -> str:
    """Return the form of a method, see `precbench.advice.choice.Choice.values`."""
    solver = SOLVERS[entry.solver]()
    if not isinstance(solver, LinearRanker):
        return "ensemble" if hasattr(solver, "to_members") else "nonlinear"
    return "random features" if entry.fourier else "linear"


def _code_of_measuring(experiment: Experiment) -> str:
    """Return hashes of the code that measures.

    Ours, and that of packages that add metrics.
    """
    modules = {
        METRICS[metric.name].function.__module__ for metric in experiment.metrics
    }
    packages = {module.partition(".")[0] for module in modules} - {"precbench"}
    return " ".join(
        [code_of("precbench", _NOT_MEASURING), *map(code_of, sorted(packages))]
    )


def _description(plan: Plan, config: str) -> dict[str, Any]:
    # Return the content of ``experiment.json``, with the fields of
    # `precbench.results.read.Run`.
    experiment, sweep = plan.experiment, None
    # any split of each
    splits = {trial.dataset.name: trial.split for trial, _ in plan.trials}
    points = [experiment.metrics_at(point) for point in experiment.sweep_points()]
    if experiment.sweep is not None:
        # `symbolic` shows this name as the value
        [(name, values)] = experiment.sweep.items()
        symbolic = [
            metric.replace(**{name: name}).written for metric in experiment.metrics
        ]
        labels = [[metric.label for metric in metrics] for metrics in points]
        sweep = {
            "name": name,
            "values": list(values),
            "metrics": labels,
            "written": symbolic,
        }
    return {
        "name": experiment.name,
        "title": experiment.title,
        "source": experiment.source,
        "plots": list(experiment.plots or ()),
        "metrics": [metric.label for metric in experiment.metrics],
        "measures": {
            metric.label: {
                "name": metric.name,
                "parameters": metric.params,
                "written": metric.written,
                "smaller_is_better": metric.smaller_is_better,
            }
            for metric in itertools.chain(experiment.metrics, *points)
        },
        "solvers": list(experiment.solvers),
        "built_in_solvers": SOLVERS.built_in,
        "forms": {label: _form(entry) for label, entry in experiment.solvers.items()},
        "grids": {
            trial.label: trial.candidates
            for trial, _ in plan.trials
            if trial.candidates
        },
        "datasets": [entry.name for entry in experiment.datasets],
        "sweep": sweep,
        "protocol": plan.protocol,
        "scaling": plan.scaling,
        "folds": experiment.protocol.folds,
        "data": {
            name: (
                _sizes(dataset)
                | {"test_share": splits[name].test_share(len(dataset.y))}
            )
            for name, dataset in plan.datasets.items()
        },
        "smoke": plan.smoke,
        "code": _code_of_measuring(experiment),
        # Other people may read the file: a folder of the user is left out.
        "config": visible(Path(config).name if Path(config).is_absolute() else config),
    }
