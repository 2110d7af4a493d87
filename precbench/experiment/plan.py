"""An experiment with its data loaded and the keys of its trials."""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from precbench.data import Dataset
from precbench.errors import DataUnavailableError, InputError
from precbench.experiment.config import Experiment
from precbench.experiment.division import check_division, part_sizes, smallest_part
from precbench.experiment.trial import Trial
from precbench.metrics import Metric
from precbench.store import key_of
from precbench.text import count


@dataclass(frozen=True, eq=False)
class Plan:
    """An experiment with its data and the keys of its trials."""

    experiment: Experiment
    datasets: Mapping[str, Dataset]  # by name; not necessarily all of the experiment
    trials: tuple[tuple[Trial, str], ...]  # with keys; trials with equal numbers share one
    smoke: bool = False
    absent: Mapping[str, str] = field(default_factory=dict)  # skipped data sets, and why

    def keys_of(self, part: Experiment) -> set[str]:
        """Return the keys of a part of the experiment, see `Experiment.select`."""
        trials = (trial for trial in part.trials() if trial.dataset.name in self.datasets)
        return {_key(trial, self.datasets) for trial in trials}

    @cached_property
    def most_epochs(self) -> Mapping[tuple[str, Any], int]:
        """The most epochs of any solver, by data set and point of the sweep."""
        most: dict[tuple[str, Any], int] = {}
        for trial, _ in self.trials:
            if "epochs" in trial.params:
                place = trial.dataset.name, trial.sweep
                epochs = trial.candidates.get("epochs", [trial.params["epochs"]])  # if not tuned
                most[place] = max(most.get(place, 0), *epochs)
        return most

    @property
    def protocol(self) -> str:
        """How rows are divided, in words, such as ``70/30 random split, 5 splits``."""
        # All kinds of split get words; those of this kind are taken, and of data sets' own splits.
        protocol = self.experiment.protocol
        splits = count(len(protocol.indices), "split")
        kind = "stratified" if protocol.stratified else "random"
        train, window = round(100 * (1 - protocol.test_size)), f"{100 * protocol.test_size:.3g} %"
        random = f"{train}/{100 - train} {kind} split"
        if protocol.train_size is not None:
            random = f"trained on {protocol.train_size:,} {kind} rows, measured on the others"
        folds = f"{'stratified ' * protocol.stratified}{protocol.n_splits}-fold cross-validation"
        if protocol.repetitions > 1:
            folds += f", {protocol.repetitions} repetitions"
        windows = f"trained on the past, measured on the next {window}, {splits}"
        if protocol.n_splits == 1:
            windows = f"trained on the past, measured on the latest {window}"
        texts = {
            "random": f"{random}, {splits}",
            "kfold": folds,
            "time": windows,
            "provided": "the provided training and test sets",
            "none": "trained and measured on all rows",
        }
        names = [entry.name for entry in self.experiment.datasets if getattr(entry, "split", None)]
        exceptions = [f"{', '.join(names)}: {texts['provided']}"] if names else []
        return "; ".join([texts[protocol.split], *exceptions])

    @property
    def scaling(self) -> str:
        """How rows are prepared, in words, such as ``standardised on the training set``."""
        experiment = self.experiment
        fitted = "on the training set" if experiment.scaling_fitted_on == "train" else "on all rows"
        words = {
            "standardise": f"standardised {fitted}",
            "unit": f"scaled to [0, 1] {fitted}",
            "unit-norm": "each row divided by its norm",
            "standardise-unit-norm": f"standardised {fitted} and each row divided by its norm",
            "none": "as distributed",
        }
        kinds = sorted({trial.scaling for trial, _ in self.trials})
        random_features = [
            f"{label}: {entry.fourier.phrase}"
            for label, entry in experiment.solvers.items()
            if entry.fourier
        ]
        stored = [] if experiment.dtype == "float64" else [f"kept as {experiment.dtype}"]
        return "; ".join([", ".join(words[kind] for kind in kinds), *stored, *random_features])


def make_plan(
    experiment: Experiment,
    *,
    only: Collection[str] | None = None,
    mirror: str | None = None,
    stand_ins: bool = True,
    smoke: bool = False,
    datasets: Mapping[str, Dataset] | None = None,
) -> Plan:
    """Load the data of an experiment and compute the keys of its trials."""
    # `only` names the data sets to load, `datasets` are those that are loaded already. Without
    # `stand_ins`, ``on_missing: stand-in`` and ``skip`` are errors.
    from precbench.experiment.samples import read_data

    experiment = experiment.smoke_size() if smoke else experiment
    datasets = dict(datasets or {})  # a copy, to add those that are loaded here
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
    """Refuse trials that differ in their limit only: with one key, they would share a record."""
    first_with_key: dict[str, Trial] = {}
    for trial, key in trials:
        other = first_with_key.setdefault(key, trial)
        if other.limit != trial.limit:
            raise InputError(
                f"the solvers {other.label!r} and {trial.label!r} differ in their limit only; "
                "give them the same limit, or run them in two experiments"
            )


def _refuse_too_few_rows(
    experiment: Experiment, trials: Iterable[Trial], datasets: Mapping[str, Dataset], smoke: bool
) -> None:
    """Refuse metrics that need more rows than the part that they measure has."""
    checked = set[tuple[Any, ...]]()  # trials of one case have the same parts and metrics
    for trial in trials:
        dataset = datasets[trial.dataset.name]
        tuned_by = (trial.metric,) if trial.candidates else ()
        case = dataset.name, trial.split, trial.sweep_point, *(metric.label for metric in tuned_by)
        if case in checked:
            continue
        checked.add(case)
        metrics = experiment.metrics_at(trial.sweep)
        measured = dict.fromkeys(experiment.parts, metrics) | {"validation": tuned_by}
        # Dividing the rows takes time: it is left out if 1 positive, and half of the rows expected,
        # are enough for every metric.
        fewest = 1, max(1, smallest_part(trial, dataset) // 2)  # positives, rows
        if not any(_shortage(metric, fewest) for metric in (*metrics, *tuned_by)):
            continue
        try:
            sizes = part_sizes(trial, dataset)
        except InputError:  # the rows cannot be divided, which the trial reports when it runs
            continue
        for part, size in sizes.items():
            for metric in measured.get(part, ()):
                if shortage := _shortage(metric, size):
                    sized = f"{dataset.name} at the smoke size" if smoke else dataset.name
                    remedies = ", or choose by another (tuned_by)" if part == "validation" else ""
                    remedies += ", or more rows to smoke" if smoke else ""
                    raise InputError(  # a shortage ends with the first remedy: "give k = 5 or less"
                        f"the metric {metric.label} cannot be measured on the {part} set of split "
                        f"{trial.split.index} of {sized}: {shortage}{remedies}"
                    )


def _shortage(metric: Metric, size: tuple[int, int]) -> str:
    """Return why a metric needs more than `size` (positives, rows); "" if it does not."""
    try:
        metric.check_size(*size)
    except InputError as error:
        return str(error)
    return ""


def _key(trial: Trial, datasets: Mapping[str, Dataset]) -> str:
    return key_of(trial.description(datasets[trial.dataset.name].sha256))
