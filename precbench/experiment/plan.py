"""An experiment with its data loaded and the keys of its trials."""

import itertools
from collections.abc import Collection, Hashable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple

from precbench.core.errors import DataUnavailableError, InputError
from precbench.core.keys import key_of
from precbench.core.text import count
from precbench.data import Dataset
from precbench.experiment.config import Experiment
from precbench.experiment.division import (
    PartSize,
    check_division,
    part_sizes,
    smallest_part,
)
from precbench.experiment.sections import Protocol
from precbench.experiment.trial import Trial
from precbench.ranking.metrics import Metric


@dataclass(frozen=True, eq=False)
class Plan:
    """An experiment with its data and the keys of its trials."""

    experiment: Experiment
    datasets: Mapping[str, Dataset]  # by name; not necessarily all of the experiment
    # each with its key, which trials with equal numbers share
    trials: tuple[tuple[Trial, str], ...]
    smoke: bool = False
    # skipped data sets, and why
    absent: Mapping[str, str] = field(default_factory=dict)

    def keys_of(self, part: Experiment) -> set[str]:
        """Return the keys of a part of the experiment, see `Experiment.select`."""
        return {
            _key(trial, self.datasets)
            for trial in part.trials()
            if trial.dataset.name in self.datasets
        }

    @cached_property
    def most_epochs(self) -> Mapping[tuple[str, Any], int]:
        """Most epochs of any solver, by data set and point of the sweep.

        A limit is a multiple of them, see `sections.Limit`.
        """
        most: dict[tuple[str, Any], int] = {}
        for trial, _key_of_trial in self.trials:
            if "epochs" in trial.params:
                place = trial.dataset.name, trial.sweep
                # the candidates if they are tuned, else the only value
                epochs = trial.candidates.get("epochs", [trial.params["epochs"]])
                most[place] = max(most.get(place, 0), *epochs)
        return most

    @property
    def protocol(self) -> str:
        """How rows are divided, in words, such as ``70/30 random split, 5 splits``."""
        phrases = [_phrase_of_split(self.experiment.protocol)]
        datasets_with_split = [
            entry.name
            for entry in self.experiment.datasets
            if getattr(entry, "split", None)
        ]
        if datasets_with_split:
            phrases.append(f"{', '.join(datasets_with_split)}: {_PROVIDED}")
        return "; ".join(phrases)

    @property
    def scaling(self) -> str:
        """How rows are prepared, in words: ``standardised on the training set``."""
        experiment = self.experiment
        is_fitted_on_training = experiment.scaling_fitted_on == "train"
        where = "on the training set" if is_fitted_on_training else "on all rows"
        words = {
            "standardise": f"standardised {where}",
            "unit": f"scaled to [0, 1] {where}",
            "unit-norm": "each row divided by its norm",
            "standardise-unit-norm": (
                f"standardised {where} and each row divided by its norm"
            ),
            "none": "as distributed",
        }
        kinds = sorted({trial.scaling for trial, _key_of_trial in self.trials})
        phrases = [", ".join(words[kind] for kind in kinds)]
        if experiment.dtype != "float64":
            phrases.append(f"kept as {experiment.dtype}")
        for label, entry in experiment.solvers.items():
            if entry.fourier:
                phrases.append(f"{label}: {entry.fourier.phrase}")
        return "; ".join(phrases)


_PROVIDED = "the provided training and test sets"


def _phrase_of_split(protocol: Protocol) -> str:
    """Return how a protocol divides the rows, in words."""
    if protocol.split == "provided":
        return _PROVIDED
    if protocol.split == "none":
        return "trained and measured on all rows"
    if protocol.split == "kfold":
        phrase = f"{protocol.n_splits}-fold cross-validation"
        if protocol.stratified:
            phrase = f"stratified {phrase}"
        if protocol.repetitions > 1:
            phrase += f", {protocol.repetitions} repetitions"
        return phrase
    splits = count(len(protocol.indices), "split")
    if protocol.split == "time":
        share = f"{100 * protocol.test_size:.3g} %"
        if protocol.n_splits == 1:
            return f"trained on the past, measured on the latest {share}"
        return f"trained on the past, measured on the next {share}, {splits}"
    drawn = "stratified" if protocol.stratified else "random"
    if protocol.train_size is not None:
        trained = f"trained on {protocol.train_size:,} {drawn} rows"
        return f"{trained}, measured on the others, {splits}"
    percent = round(100 * (1 - protocol.test_size))
    return f"{percent}/{100 - percent} {drawn} split, {splits}"


def make_plan(
    experiment: Experiment,
    *,
    only: Collection[str] | None = None,
    mirror: str | None = None,
    stand_ins: bool = True,
    smoke: bool = False,
    datasets: Mapping[str, Dataset] | None = None,
) -> Plan:
    """Load the data of an experiment, and compute and check the keys of its trials.

    `only` names the data sets to load, `datasets` are data sets loaded already. Without
    `stand_ins`, a missing data set is an error, whatever ``on_missing`` says in the
    config.
    """
    from precbench.experiment.samples import read_data

    if smoke:
        experiment = experiment.smoke_size()
    loaded = dict(datasets or {})
    absent: dict[str, str] = {}  # why, by the name of a skipped data set
    for entry in experiment.datasets:
        if entry.name in loaded or (only is not None and entry.name not in only):
            continue
        try:
            loaded[entry.name] = read_data(
                entry,
                mirror=mirror,
                stand_ins=stand_ins,
                rows=experiment.rows,
                dtype=experiment.dtype,
            )
        except DataUnavailableError as error:
            on_missing = getattr(entry, "on_missing", "error")
            if stand_ins and on_missing == "skip":
                absent[entry.name] = str(error)
            else:
                raise
    if absent and not loaded:
        raise DataUnavailableError("\n".join(absent.values()))
    trials = [trial for trial in experiment.trials() if trial.dataset.name in loaded]
    trials_with_keys = tuple((trial, _key(trial, loaded)) for trial in trials)
    for trial in trials:
        check_division(trial.split, loaded[trial.dataset.name])
    _refuse_two_limits(trials_with_keys)
    _refuse_too_few_rows(experiment, trials, loaded, smoke)
    return Plan(experiment, loaded, trials_with_keys, smoke, absent)


def _refuse_two_limits(trials: Iterable[tuple[Trial, str]]) -> None:
    """Refuse trials that differ in the limit only, and would share one record."""
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
    """Refuse a metric for which a part has too few positives or rows."""
    checked = set[Hashable]()
    for trial in trials:
        dataset = datasets[trial.dataset.name]
        tuning_label = trial.metric.label if trial.candidates else None
        # all trials with these have equal parts and metrics
        parts_and_metrics = dataset.name, trial.split, trial.sweep_point, tuning_label
        if parts_and_metrics in checked:
            continue
        checked.add(parts_and_metrics)
        metrics_by_part: dict[str, tuple[Metric, ...]] = {}
        for part in experiment.parts:
            metrics_by_part[part] = experiment.metrics_at(trial.sweep)
        if trial.candidates:
            metrics_by_part["validation"] = (trial.metric,)
        shortage = _first_shortage(trial, dataset, metrics_by_part)
        if shortage is None:
            continue
        sized = f"{dataset.name} at the smoke size" if smoke else dataset.name
        # The reason ends with a first remedy.
        other_remedies = ""
        if shortage.part == "validation":
            other_remedies += ", or set tuned_by to another metric"
        if smoke:
            other_remedies += ", or raise smoke.rows"
        raise InputError(
            f"the metric {shortage.metric.label} cannot be measured on the"
            f" {shortage.part} set of split {trial.split.index} of {sized}:"
            f" {shortage.reason}{other_remedies}"
        )


class _Shortage(NamedTuple):
    """A metric, and the part of the rows that has too few of them, and why."""

    metric: Metric
    part: str
    reason: str


def _first_shortage(
    trial: Trial, dataset: Dataset, metrics_by_part: Mapping[str, tuple[Metric, ...]]
) -> _Shortage | None:
    """Return the first part of a trial that is too small for one of its metrics."""
    # Dividing the rows takes time, and is left out if every metric could be measured on
    # 1 positive among half of the rows that the smallest part is expected to have.
    fewest_rows = max(1, smallest_part(trial, dataset) // 2)
    least_size = PartSize(n_pos=1, n_rows=fewest_rows)
    metrics = itertools.chain.from_iterable(metrics_by_part.values())
    if not any(_shortage_reason(metric, least_size) for metric in metrics):
        return None
    try:
        sizes = part_sizes(trial, dataset)
    except InputError:
        return None  # the rows cannot be divided, which the trial reports when it runs
    for part, size in sizes.items():
        for metric in metrics_by_part.get(part, ()):
            reason = _shortage_reason(metric, size)
            if reason:
                return _Shortage(metric, part, reason)
    return None


def _shortage_reason(metric: Metric, size: PartSize) -> str:
    """Return why a part is too small for a metric, "" if it is large enough."""
    try:
        metric.check_size(size.n_pos, size.n_rows)
    except InputError as error:
        return str(error)
    return ""


def _key(trial: Trial, datasets: Mapping[str, Dataset]) -> str:
    """Return the key of the trial's record."""
    return key_of(trial.description(datasets[trial.dataset.name].sha256))
