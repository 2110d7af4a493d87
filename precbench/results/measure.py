"""Metrics of the stored weights or scores, and the files that reports are made from.

``results.csv`` has one row per solver, split, part, checkpoint and metric, ``roc.csv``
the vertices of the ROC curve of each trial's final scores, ``roc-counts.csv`` those of
one split in numbers of rows, ``precision-k.csv`` prec@k at many k, ``experiment.json``
the description of the experiment.
"""

import itertools
import json
from collections import Counter
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
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
# Parts of the package that do not measure: a change to them leaves results as they are
_NOT_MEASURING = (
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
    """Compute the metrics of a plan's records, write the files, return the rows.

    Nothing is computed if the records and the code that measures are unchanged. A trial
    without a record has no row; a trial without a result has a row per metric, with the
    reason. The rows of data sets that the plan omits stay in the files, and are not
    returned. `config` is the name or path of the config, for the command that repeats a
    trial.
    """
    description = _description(plan, config)
    sizes_of_others = _sizes_of_other_datasets(plan, store.folder / "experiment.json")
    description["data"] = sizes_of_others | description["data"]
    description_text = json.dumps(description, indent=1) + "\n"
    unchanged_rows = _unchanged_rows(plan, store, description_text)
    if unchanged_rows is not None:
        return unchanged_rows
    measured = _measure(plan, store)
    results = pd.DataFrame(measured.rows, columns=[*COLUMNS])
    for name, tables in {"results.csv": [results], **measured.curves}.items():
        rows_of_others = _rows_of_other_datasets(plan, store.folder / name)
        table = pd.concat([rows_of_others, *tables])
        _write(store, name, table.to_csv(index=False, lineterminator="\n"))
    # last: says that the other files are complete
    _write(store, "experiment.json", description_text)
    return results


class _Measured(NamedTuple):
    """What is measured of trials: rows of ``results.csv``, and tables of curves."""

    rows: list[dict[str, Any]]
    curves: dict[str, list[pd.DataFrame]]  # by the name of their file


def _measure(plan: Plan, store: Store) -> _Measured:
    """Measure the recorded trials of a plan."""
    experiment = plan.experiment
    measured = _Measured([], _headers_of_curves(experiment.plots or ()))
    machine_kinds = {name: machine.kind for name, machine in store.machines().items()}
    for group in _by_rows(plan, store):
        trial_of_group = group[0].trial
        # prepared once for all trials of a group
        prepared = Rows(trial_of_group, plan.datasets[trial_of_group.dataset.name])
        for recorded in group:
            trial, _key, record = recorded
            columns = _trial_columns(plan, trial, record)
            columns["machine"] = machine_kinds.get(record.environment, "")
            if record.status == "ok":
                _measure_trial(experiment, store, recorded, columns, prepared, measured)
            else:
                for metric in experiment.metrics_at(trial.sweep):
                    measured.rows.append(columns | {"metric": metric.label})
    return measured


def _measure_trial(
    experiment: Experiment,
    store: Store,
    recorded: "_RecordedTrial",
    columns: dict[str, Any],
    prepared: Rows,
    measured: _Measured,
) -> None:
    """Add what is measured of a trial on its `prepared` rows to `measured`.

    `columns` are those that all rows of the trial share.
    """
    metrics = experiment.metrics_at(recorded.trial.sweep)
    samples: dict[str, Sample] = {
        part: prepared.part(part) for part in experiment.parts
    }
    arrays = _checkpoints(store, recorded.key, samples)
    for part, sample in samples.items():
        part_columns = columns | {"part": part}
        scores = _scores(arrays, part, sample)
        rows, last_scores = _metric_rows(
            metrics, part_columns, arrays, sample.y, scores
        )
        measured.rows.extend(rows)
        curves = _curves(
            experiment.plots or (), part_columns, sample.y, last_scores, metrics
        )
        for name, table in curves:
            measured.curves.setdefault(name, []).append(table)


def _headers_of_curves(plots: Sequence[str]) -> dict[str, list[pd.DataFrame]]:
    """Return by file name a table without rows, the header if there are no curves."""
    headers = {"roc.csv": [*_ROC_COLUMNS, "fpr", "tpr"]}  # always written
    if "precision-k" in plots:
        headers["precision-k.csv"] = [*_ROC_COLUMNS, "k", "share", "precision"]
    if "roc-counts" in plots:
        counts = ("false_positives", "true_positives")
        headers["roc-counts.csv"] = [*_COUNTS_COLUMNS, *counts]
    return {name: [pd.DataFrame(columns=names)] for name, names in headers.items()}


def _unchanged_rows(
    plan: Plan, store: Store, description_text: str
) -> pd.DataFrame | None:
    """Return the rows of ``results.csv`` if records and code are unchanged."""
    with suppress(OSError, InputError):
        # the description names the code that measured
        written = (store.folder / "experiment.json").read_bytes()
        if written != visible(description_text).encode():
            return None
        for plot in plan.experiment.plots or ():
            # Plots of accuracies are drawn from results.csv, each other plot from the
            # file of its name.
            is_drawn_from_curves = "accuracy" not in plot
            if is_drawn_from_curves and not (store.folder / f"{plot}.csv").is_file():
                return None
        path = store.folder / "results.csv"
        results = read_csv(path, COLUMNS)
        results = results[results["dataset"].isin(plan.datasets)]
        planned_keys = {key for _, key in plan.trials}
        if planned_keys.intersection(store.keys()) != set(results["key"]):
            return None
        if store.last_change() < path.stat().st_mtime_ns:
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
    """A trial's record, its division of the rows, and the last scores of test rows."""

    record: Record
    split: RowSplit
    scores: NDArray[np.float64]


def final_scores(plan: Plan, store: Store, label: str) -> Iterator[ScoredSplit]:
    """Yield the last test scores of each trial of a method that has a result."""
    for group in _by_rows(plan, store):
        for trial, key, record in group:
            if trial.label != label or record.status != "ok":
                continue
            rows = Rows(trial, plan.datasets[trial.dataset.name])
            arrays = _checkpoints(store, key, {"test": rows.test})
            *_earlier_scores, last_scores = _scores(arrays, "test", rows.test)
            yield ScoredSplit(record, rows.division.split, last_scores)


def final_means(results: pd.DataFrame) -> list[dict[str, Any]]:
    """Return a row for each mean of final values, with the number of splits.

    A mean that is not finite is None, for JSON, which has no infinity.
    """
    is_final = results["final"].eq(True)  # `final` may be NaN
    final = results[is_final & results["value"].notna()]
    cells = final.groupby(["dataset", "sweep", "metric", "part", "solver"], sort=False)
    means = cells["value"].agg(mean="mean", splits="count").reset_index()
    rows: list[dict[Any, Any]] = means.to_dict("records")
    for row in rows:
        if not isfinite(row["mean"]):
            row["mean"] = None
    return rows


def not_ok(results: pd.DataFrame, part: Experiment) -> dict[str, int]:
    """Count by status the trials of a part of an experiment that are not ok."""
    planned = {
        (trial.dataset.name, trial.label, trial.split.index) for trial in part.trials()
    }
    rows_not_ok = results.loc[results["status"] != "ok"]
    # a row for each trial, in place of a row for each metric
    trials = rows_not_ok.drop_duplicates(["dataset", "solver", "split", "sweep"])
    counts = Counter[str]()
    for trial in trials.itertuples(index=False):
        if (trial.dataset, trial.solver, trial.split) in planned:
            counts[str(trial.status)] += 1
    return dict(counts)


def _rows_of_other_datasets(plan: Plan, path: Path) -> pd.DataFrame:
    """Return the rows that earlier runs wrote on data sets that this plan omits."""
    others = _other_datasets(plan)
    if not others or not path.exists():
        return pd.DataFrame()
    # text, which is written unchanged
    table = pd.read_csv(path, dtype=str, keep_default_na=False)
    return table[table["dataset"].isin(others)]


def _other_datasets(plan: Plan) -> set[str]:
    """Return the names of the data sets of the experiment that the plan omits."""
    return {entry.name for entry in plan.experiment.datasets} - set(plan.datasets)


class _EarlierDescription(Fields):
    """What is read of the ``experiment.json`` of an earlier run."""

    data: dict[str, Sizes]


def _sizes_of_other_datasets(plan: Plan, path: Path) -> dict[str, Any]:
    """Return the sizes of data sets that this plan omits, as an earlier run wrote."""
    others = _other_datasets(plan)
    with suppress(FileNotFoundError, ValueError):  # ValueError: the file was edited
        earlier = parse(path.read_bytes(), _EarlierDescription)
        return {
            name: sizes.model_dump()
            for name, sizes in earlier.data.items()
            if name in others
        }
    return {}


class _RecordedTrial(NamedTuple):
    trial: Trial
    key: str
    record: Record


def _by_rows(plan: Plan, store: Store) -> Iterator[list[_RecordedTrial]]:
    """Yield groups of trials with the same prepared rows."""
    groups: dict[Hashable, list[_RecordedTrial]] = {}
    for planned_trial, key in plan.trials:
        record = store.read(key)
        if record is None:
            continue
        trial = _with_features(planned_trial, store, record)
        rows_depend_on = trial.dataset.name, trial.split, trial.fourier
        group = groups.setdefault(rows_depend_on, [])
        group.append(_RecordedTrial(trial, key, record))
    yield from groups.values()


def _with_features(trial: Trial, store: Store, record: Record) -> Trial:
    """Return a trial with the random features that tuning chose, if it succeeded."""
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
    """Return the columns that all rows of a trial share."""
    dataset = plan.datasets[trial.dataset.name]
    chosen = [f"{name}={_written(value)}" for name, value in record.chosen.items()]
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
        # "True" or "False" of a solver that has a tolerance
        "converged": str(record.fitted.get("converged_", "")),
        "chosen": " ".join(chosen),
    }


def _written(value: Any) -> str:
    """Return a value that tuning chose as text."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        return f"{value:g}"
    return str(value).lower()


def _checkpoints(
    store: Store, key: str, samples: Mapping[str, Sample]
) -> dict[str, NDArray]:
    """Return the stored arrays of a trial; refuse damaged arrays.

    For each checkpoint they hold the progress, and the scores of each part in `samples`
    or the weights of a linear solver.
    """
    arrays = store.arrays(key)
    rows_seen = np.atleast_1d(arrays.get("rows_seen", ()))  # a damaged array may be 0-d
    n_checkpoints = len(rows_seen)
    if not n_checkpoints:
        raise store.damaged(key, "rows_seen has no checkpoint")
    shapes: dict[str, tuple[int, ...]] = dict.fromkeys(_PROGRESS, (n_checkpoints,))
    if _holds_scores(arrays):
        for part, sample in samples.items():
            shapes[f"scores_{part}"] = (n_checkpoints, sample.n_rows)
    else:
        any_sample = next(iter(samples.values()))
        shapes["coef"] = (n_checkpoints, any_sample.X.shape[1])
        if "intercept" in arrays:
            shapes["intercept"] = (n_checkpoints,)
    for name, shape in shapes.items():
        array = arrays.get(name, np.empty(0))
        if array.shape != shape or array.dtype.kind not in "fi":
            raise store.damaged(key, f"{name} should be numbers of shape {shape}")
        if not np.isfinite(array).all():
            raise store.damaged(key, f"{name} holds a value that is not finite")
    return arrays


def _holds_scores(arrays: Mapping[str, NDArray]) -> bool:
    """Return whether a trial stored scores, with n_iter, and not weights."""
    return "n_iter" in arrays


def _scores(
    arrays: dict[str, NDArray], part: str, sample: Sample
) -> Iterator[NDArray[np.float64]]:
    """Yield the scores of a part at each checkpoint, stored or by stored weights."""
    if _holds_scores(arrays):
        yield from arrays[f"scores_{part}"].astype(np.float64, copy=False)
    else:
        weights = arrays["coef"].astype(np.float64, copy=False)
        yield from sample.scores(weights, arrays.get("intercept"))


def _metric_rows(
    metrics: Sequence[Metric],
    columns: dict[str, Any],
    arrays: dict[str, NDArray],
    y: NDArray[np.float64],
    scores: Iterable[NDArray[np.float64]],
) -> tuple[list[dict[str, Any]], NDArray[np.float64]]:
    """Return rows of ``results.csv``, metric by metric, and the last scores.

    A row has `columns`, which all rows of a trial on a part share, and what was
    measured at a checkpoint.
    """
    rows_by_metric: list[list[dict[str, Any]]] = [[] for _ in metrics]
    last_scores = np.empty(0)
    for checkpoint, scores_at_checkpoint in enumerate(scores):
        last_scores = scores_at_checkpoint
        progress = {name: arrays[name][checkpoint] for name in _PROGRESS}
        for metric, rows in zip(metrics, rows_by_metric, strict=True):
            # A metric that has failed at a checkpoint is not computed at later
            # checkpoints.
            if rows and rows[-1]["status"] == "failed":
                continue
            row = columns | {"metric": metric.label}
            try:
                value = metric(y, scores_at_checkpoint)
            except InputError as error:  # too few rows, or a metric that a package adds
                row |= {"status": "failed", "reason": f"not measured: {error}"}
            else:
                row |= {
                    "checkpoint": checkpoint,
                    **progress,
                    "value": value,
                    "final": checkpoint == len(arrays["rows_seen"]) - 1,
                }
            rows.append(row)
    return list(itertools.chain.from_iterable(rows_by_metric)), last_scores


def _curves(
    plots: Sequence[str],
    columns: dict[str, Any],
    y: NDArray[np.float64],
    scores: NDArray[np.float64],
    metrics: Iterable[Metric],
) -> Iterator[tuple[str, pd.DataFrame]]:
    """Yield the rows that the last scores of a trial add to a file, with its name."""
    is_test = columns["part"] == "test"
    if "roc" in plots and is_test:
        yield "roc.csv", _roc_vertices(columns, y, scores)
    if "precision-k" in plots and is_test:
        yield "precision-k.csv", _precisions(columns, y, scores, metrics)
    is_drawn = columns["split"] == 0  # of both parts
    if "roc-counts" in plots and is_drawn:
        yield "roc-counts.csv", _roc_counts(columns, y, scores)


def _roc_vertices(
    columns: dict[str, Any], y: NDArray[np.float64], scores: NDArray[np.float64]
) -> pd.DataFrame:
    """Return rows of ``roc.csv``: at most `_ROC_VERTICES`, denser towards the top."""
    fpr, tpr, _thresholds = roc_curve(y, scores)
    if len(fpr) > _ROC_VERTICES:
        numbers = np.geomspace(1, len(fpr), _ROC_VERTICES).round().astype(int)
        vertices = np.unique(numbers - 1)
        fpr = fpr[vertices]
        tpr = tpr[vertices]
    trial_columns = {name: columns[name] for name in _ROC_COLUMNS}
    return pd.DataFrame({**trial_columns, "fpr": fpr, "tpr": tpr})


def _roc_counts(
    columns: dict[str, Any], y: NDArray[np.float64], scores: NDArray[np.float64]
) -> pd.DataFrame:
    """Return rows of ``roc-counts.csv``: vertices of the curve, in numbers of rows."""
    fpr, tpr, _thresholds = roc_curve(y, scores)
    # Figures show the top in full: the first vertices are all kept.
    first = np.arange(min(_ROC_VERTICES, len(fpr)))
    spaced = np.linspace(0, len(fpr) - 1, _ROC_VERTICES).round().astype(int)
    vertices = np.union1d(first, spaced)
    n_pos = np.count_nonzero(y > 0)
    n_neg = len(y) - n_pos
    # Products of fractions miss the counts, which are whole, by a rounding.
    false_positives = np.round(fpr[vertices] * n_neg, 6)
    true_positives = np.round(tpr[vertices] * n_pos, 6)
    trial_columns = {name: columns[name] for name in _COUNTS_COLUMNS}
    return pd.DataFrame(
        {
            **trial_columns,
            "false_positives": false_positives,
            "true_positives": true_positives,
        }
    )


def _precisions(
    columns: dict[str, Any],
    y: NDArray[np.float64],
    scores: NDArray[np.float64],
    metrics: Iterable[Metric],
) -> pd.DataFrame:
    """Return the rows of ``precision-k.csv``.

    They hold prec@k for the k of the metrics, and for k whose logarithms are spaced
    evenly. Where rows are tied, the mean over their orders counts.
    """
    n_rows = len(y)
    n_pos = int(np.count_nonzero(y > 0))
    depths = set(np.geomspace(1, n_rows, _DEPTHS).round().astype(int).tolist())
    for metric in metrics:
        if metric.name == "precision_at_k":
            with suppress(InputError):  # too few rows for this k
                depths.add(resolve_k(metric.params["k"], n_pos, n_rows))
    k = np.array(sorted(depths))
    hits = sums_at(y > 0, scores, k)
    trial_columns = {name: columns[name] for name in _ROC_COLUMNS}
    return pd.DataFrame(
        {**trial_columns, "k": k, "share": k / n_pos, "precision": hits / k}
    )


def _form(entry: SolverEntry) -> str:
    """Return "linear", "random features", "nonlinear" or "ensemble"."""
    solver = SOLVERS[entry.solver]()
    if not isinstance(solver, LinearRanker):
        return "ensemble" if hasattr(solver, "to_members") else "nonlinear"
    return "random features" if entry.fourier else "linear"


def _code_of_measuring(experiment: Experiment) -> str:
    """Return hashes of the code that measures: ours, and of packages with metrics."""
    modules = {
        METRICS[metric.name].function.__module__ for metric in experiment.metrics
    }
    packages = {module.partition(".")[0] for module in modules} - {"precbench"}
    own_hash = code_of("precbench", _NOT_MEASURING)
    return " ".join([own_hash, *map(code_of, sorted(packages))])


def _described_metric(metric: Metric) -> dict[str, Any]:
    return {
        "name": metric.name,
        "parameters": metric.params,
        "written": metric.written,
        "smaller_is_better": metric.smaller_is_better,
    }


def _described_sweep(experiment: Experiment) -> dict[str, Any] | None:
    """Return the fields of `precbench.results.read.Sweep`, None without a sweep."""
    if experiment.sweep is None:
        return None
    [(name, values)] = experiment.sweep.items()
    labels_by_value = []
    for point in experiment.sweep_points():
        metrics = experiment.metrics_at(point)
        labels_by_value.append([metric.label for metric in metrics])
    written = []
    for metric in experiment.metrics:
        # the name of the parameter stands for its value, as in prec@k
        symbolic = metric.replace(**{name: name})
        written.append(symbolic.written)
    return {
        "name": name,
        "values": list(values),
        "metrics": labels_by_value,
        "written": written,
    }


def _described_data(plan: Plan) -> dict[str, dict[str, Any]]:
    """Return the sizes of each data set, and the share of its rows that are tested."""
    # One split of each data set: all splits test the same share.
    a_split = {trial.dataset.name: trial.split for trial, _ in plan.trials}
    described = {}
    for name, dataset in plan.datasets.items():
        n_rows = dataset.X.shape[0]
        test_share = a_split[name].test_share(n_rows)
        described[name] = _sizes(dataset) | {"test_share": test_share}
    return described


def _sizes(dataset: Dataset) -> dict[str, Any]:
    n_rows, n_features = dataset.X.shape
    return {
        "rows": n_rows,
        "features": n_features,
        "positives": dataset.n_pos,
        "stand_in": dataset.stand_in,
        "training_rows": dataset.n_train or 0,  # 0 without a provided split
    }


def _description(plan: Plan, config: str) -> dict[str, Any]:
    """Return ``experiment.json``, with the fields of `precbench.results.read.Run`."""
    experiment = plan.experiment
    metrics = list(experiment.metrics)
    for point in experiment.sweep_points():
        metrics += experiment.metrics_at(point)
    grids = {
        trial.label: trial.candidates for trial, _ in plan.trials if trial.candidates
    }
    forms = {label: _form(entry) for label, entry in experiment.solvers.items()}
    # Other people may read the file: a folder of the user is left out.
    config_name = Path(config).name if Path(config).is_absolute() else config
    return {
        "name": experiment.name,
        "title": experiment.title,
        "source": experiment.source,
        "plots": list(experiment.plots or ()),
        "highlight": list(experiment.highlight),
        "metrics": [metric.label for metric in experiment.metrics],
        "measures": {metric.label: _described_metric(metric) for metric in metrics},
        "solvers": list(experiment.solvers),
        "built_in_solvers": SOLVERS.built_in,
        "forms": forms,
        "grids": grids,
        "datasets": [entry.name for entry in experiment.datasets],
        "sweep": _described_sweep(experiment),
        "protocol": plan.protocol,
        "scaling": plan.scaling,
        "folds": experiment.protocol.folds,
        "data": _described_data(plan),
        "smoke": plan.smoke,
        "code": _code_of_measuring(experiment),
        "config": visible(config_name),
    }
