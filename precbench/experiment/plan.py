"""An experiment with its data loaded and the keys of its trials."""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from precbench.core.errors import DataUnavailableError, InputError
from precbench.core.keys import key_of
from precbench.core.text import count
from precbench.data import Dataset
from precbench.experiment.config import Experiment
from precbench.experiment.division import check_division, part_sizes, smallest_part
from precbench.experiment.trial import Trial
from precbench.ranking.metrics import Metric


@dataclass(frozen=True, eq=False)
class Plan:
    """An experiment with its data and the keys of its trials."""

    experiment: Experiment
    datasets: Mapping[str, Dataset]  # by name; not necessarily all of the experiment
    # with keys; trials with equal numbers share a key
    trials: tuple[tuple[Trial, str], ...]
    smoke: bool = False
    # skipped data sets, and why
    absent: Mapping[str, str] = field(default_factory=dict)

    def keys_of(self, part: Experiment) -> set[str]:
        """Return the keys of a part of the experiment, see `Experiment.select`."""
        trials = (
            trial for trial in part.trials() if trial.dataset.name in self.datasets
        )
        return {_key(trial, self.datasets) for trial in trials}

    @cached_property
    def most_epochs(self) -> Mapping[tuple[str, Any], int]:
        """Most epochs of any solver, by data set and point of the sweep, see `sections.Limit`."""
        most: dict[tuple[str, Any], int] = {}
        for trial, _ in self.trials:
            if "epochs" in trial.params:
                case = trial.dataset.name, trial.sweep
                # or one value
                epochs = trial.candidates.get("epochs", [trial.params["epochs"]])
                most[case] = max(most.get(case, 0), *epochs)
        return most

    @property
    def protocol(self) -> str:
        """How rows are divided, in words, such as ``70/30 random split, 5 splits``."""
        # There are words for each kind of split. The words for the protocol's kind are
        # returned, with the words for "provided" if data sets have their own, provided
        # split.
        protocol = self.experiment.protocol
        splits = count(len(protocol.indices), "split")
        drawn = "stratified" if protocol.stratified else "random"
        trained = round(100 * (1 - protocol.test_size))  # percent of the rows
        random = f"{trained}/{100 - trained} {drawn} split"
        if protocol.train_size is not None:
            random = (
                f"trained on {protocol.train_size:,} {drawn} rows, measured on the"
                " others"
            )
        folds = (
            f"{'stratified ' * protocol.stratified}{protocol.n_splits}-fold"
            " cross-validation"
        )
        if protocol.repetitions > 1:
            folds += f", {protocol.repetitions} repetitions"
        which = "latest" if protocol.n_splits == 1 else "next"
        windows = (
            f"trained on the past, measured on the {which}"
            f" {100 * protocol.test_size:.3g} %"
        )
        texts = {
            "random": f"{random}, {splits}",
            "kfold": folds,
            "time": windows if protocol.n_splits == 1 else f"{windows}, {splits}",
            "provided": "the provided training and test sets",
            "none": "trained and measured on all rows",
        }
        own = [
            entry.name
            for entry in self.experiment.datasets
            if getattr(entry, "split", None)
        ]
        exceptions = [f"{', '.join(own)}: {texts['provided']}"] if own else []
        return "; ".join([texts[protocol.split], *exceptions])

    @property
    def scaling(self) -> str:
        """How rows are prepared, in words, such as ``standardised on the training set``."""
        experiment = self.experiment
        fitted = (
            "on the training set"
            if experiment.scaling_fitted_on == "train"
            else "on all rows"
        )
        words = {
            "standardise": f"standardised {fitted}",
            "unit": f"scaled to [0, 1] {fitted}",
            "unit-norm": "each row divided by its norm",
            "standardise-unit-norm": (
                f"standardised {fitted} and each row divided by its norm"
            ),
            "none": "as distributed",
        }
        kinds = sorted({trial.scaling for trial, _ in self.trials})
        random_features = [
            f"{label}: {entry.fourier.phrase}"
            for label, entry in experiment.solvers.items()
            if entry.fourier
        ]
        stored = (
            [] if experiment.dtype == "float64" else [f"kept as {experiment.dtype}"]
        )
        return "; ".join(
            [", ".join(words[kind] for kind in kinds), *stored, *random_features]
        )


def make_plan(
    experiment: Experiment,
    *,
    only: Collection[str] | None = None,
    mirror: str | None = None,
    stand_ins: bool = True,
    smoke: bool = False,
    datasets: Mapping[str, Dataset] | None = None,
) -> Plan:
    """Return the plan of an experiment.

    Load its data, compute and check the keys of its trials.
    """
    # `only` names the data sets to load, `datasets` are data sets loaded already.
    # Without `stand_ins`, a missing data set is an error, whatever ``on_missing`` says
    # in the config.
    from precbench.experiment.samples import read_data

    experiment = experiment.smoke_size() if smoke else experiment
    datasets = dict(datasets or {})  # a copy, to add data sets loaded here
    absent: dict[str, str] = {}  # messages about skipped data sets
    for entry in experiment.datasets:
        if entry.name in datasets or (only is not None and entry.name not in only):
            continue
        try:
            datasets[entry.name] = read_data(
                entry,
                mirror=mirror,
                stand_ins=stand_ins,
                rows=experiment.rows,
                dtype=experiment.dtype,
            )
        except DataUnavailableError as error:
            if not stand_ins or getattr(entry, "on_missing", "error") != "skip":
                raise
            absent[entry.name] = str(error)
    if absent and not datasets:
        raise DataUnavailableError("\n".join(absent.values()))
    trials = tuple(
        (trial, _key(trial, datasets))
        for trial in experiment.trials()
        if trial.dataset.name in datasets
    )
    for trial, _ in trials:
        check_division(trial.split, datasets[trial.dataset.name])
    _refuse_two_limits(trials)
    _refuse_too_few_rows(experiment, [trial for trial, _ in trials], datasets, smoke)
    return Plan(experiment, datasets, trials, smoke, absent)


def _refuse_two_limits(trials: Iterable[tuple[Trial, str]]) -> None:
    """Refuse trials that differ in the limit only.

    They would share one key and one record.
    """
    first_with_key: dict[str, Trial] = {}
    for trial, key in trials:
        other = first_with_key.setdefault(key, trial)
        if other.limit != trial.limit:
            raise InputError(
                f"the solvers {other.label!r} and {trial.label!r} differ in limit only,"
                " and one experiment stores one result for the two; remove a solver,"
                " or use a second config"
            )


def _refuse_too_few_rows(
    experiment: Experiment,
    trials: Iterable[Trial],
    datasets: Mapping[str, Dataset],
    smoke: bool,
) -> None:
    """Refuse a metric if a part that is measured has too few positives or rows for the metric."""
    # cases: the trials of a case have equal parts and metrics
    checked = set[tuple[Any, ...]]()
    for trial in trials:
        dataset = datasets[trial.dataset.name]
        tuned_by = (trial.metric,) if trial.candidates else ()
        case = (
            dataset.name,
            trial.split,
            trial.sweep_point,
            *(metric.label for metric in tuned_by),
        )
        if case in checked:
            continue
        checked.add(case)
        metrics = experiment.metrics_at(trial.sweep)
        # per part
        metrics_of = dict.fromkeys(experiment.parts, metrics) | {"validation": tuned_by}
        # Dividing the rows takes time, and is left out if every metric could be
        # measured on 1 positive among half of the rows that the smallest part is
        # expected to have.
        fewest = 1, max(1, smallest_part(trial, dataset) // 2)  # positives, rows
        if not any(_shortage(metric, fewest) for metric in (*metrics, *tuned_by)):
            continue
        try:
            sizes = part_sizes(trial, dataset)
        except InputError:
            # the rows cannot be divided, which the trial reports when it runs
            continue
        for part, size in sizes.items():
            for metric in metrics_of.get(part, ()):
                if shortage := _shortage(metric, size):
                    sized = (
                        f"{dataset.name} at the smoke size" if smoke else dataset.name
                    )
                    remedies = (
                        ", or set tuned_by to another metric"
                        if part == "validation"
                        else ""
                    )
                    remedies += ", or raise smoke.rows" if smoke else ""
                    # the shortage names a first remedy: "give k = 5 or less"
                    raise InputError(
                        f"the metric {metric.label} cannot be measured on the {part}"
                        f" set of split {trial.split.index} of {sized}:"
                        f" {shortage}{remedies}"
                    )


def _shortage(metric: Metric, size: tuple[int, int]) -> str:
    """Return why `size` (positives, rows) is too small for a metric.

    "" if `size` is enough.
    """
    try:
        metric.check_size(*size)
    except InputError as error:
        return str(error)
    return ""


def _key(trial: Trial, datasets: Mapping[str, Dataset]) -> str:  # of the trial's record
    return key_of(trial.description(datasets[trial.dataset.name].sha256))
