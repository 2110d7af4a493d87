"""A config file as one frozen object: an experiment with its trials, or a study."""

import inspect
import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, get_type_hints

from pydantic import (
    AfterValidator,
    BeforeValidator,
    Field,
    PositiveInt,
    PrivateAttr,
    Strict,
    ValidationInfo,
    ValidatorFunctionWrapHandler,
    create_model,
    field_validator,
    model_validator,
)

from precbench.core.errors import InputError, did_you_mean, nearest_or_all
from precbench.core.kinds import Dtype, Scaling
from precbench.core.locations import config_names, shipped
from precbench.core.seeds import trial_seed
from precbench.core.studies import STUDIES, Measures
from precbench.core.yaml.document import Document, Keys, extended, load
from precbench.core.yaml.models import (
    Items,
    Line,
    Name,
    Names,
    Problem,
    Section,
    at,
    known,
    refuse,
    repeats,
    unknown,
    validated,
)
from precbench.experiment.sections import (
    Checkpoints,
    Data,
    DataEntry,
    FittedOn,
    MetricEntry,
    NamedData,
    Origin,
    Part,
    Plot,
    Protocol,
    Smoke,
    SolverEntry,
    StreamedCard,
    StreamedFile,
    Tuning,
    metric_problems,
    no_splits,
    parameter_problems,
    refuse_here,
    solver_defaults,
)
from precbench.experiment.trial import Split, Trial
from precbench.ranking.metrics import METRICS, Metric
from precbench.results.records import RESERVED

if TYPE_CHECKING:
    import pandas as pd


def _not_reserved(name: str) -> str:
    """Refuse a name that means something else in a folder of results."""
    if name.lower() in RESERVED:  # a file system may ignore case
        problem = (
            f"{name!r} is the name of a folder that precbench makes in a folder of"
            " results; choose another"
        )
        refuse_here(problem)
    return name


# The name of a folder of results
ResultsName = Annotated[Name, AfterValidator(_not_reserved)]


def _one_or_several(labels: Any) -> Any:
    """Return a list of labels, also for one that is given alone."""
    return [labels] if isinstance(labels, str) else labels


class Experiment(Section):
    """A config file; the files in ``configs`` show the meaning of each key."""

    more_keys: ClassVar = ("extends",)

    name: ResultsName
    # Groups of configs that are run together; the Makefile knows these groups
    tags: Names = ()
    title: Line
    source: Line | None = None
    datasets: Items[DataEntry]
    scaling: Scaling | None = None
    scaling_fitted_on: FittedOn = "train"
    # Type in which the rows are kept: "float32" takes half the memory. Sums are of
    # float64.
    dtype: Dtype = "float64"
    rows: PositiveInt | None = None
    protocol: Protocol = Protocol()
    solvers: Annotated[dict[str, SolverEntry], Field(min_length=1)]
    common: dict[str, Any] = Field(default_factory=dict)
    metrics: Items[MetricEntry]
    tuning: Tuning = Tuning()
    parts: Items[Part] = ("test",)
    checkpoints: Checkpoints = 20
    sweep: dict[str, Items[Any]] | None = None
    timeout: Annotated[float, Field(gt=0, le=366 * 24 * 3600)] = 3600.0
    plots: Annotated[tuple[Plot, ...], Strict(False)] | None = Field(
        default=None, validate_default=True
    )
    # Labels of solvers that figures always show, with thick lines and bold names
    highlight: Annotated[
        tuple[str, ...], Strict(False), BeforeValidator(_one_or_several)
    ] = ()
    smoke: Smoke = Smoke()

    _extends: str = PrivateAttr(default="")  # no key of the file

    @property
    def extends(self) -> str:
        """The name of the experiment that this one extends, "" without one."""
        return self._extends

    def extending(self, name: str) -> "Experiment":
        """Return the experiment as one that extends an experiment of another name."""
        copy = self.model_copy()
        copy._extends = name
        return copy

    @field_validator("solvers", mode="before")
    @classmethod
    def _name_solvers(cls, solvers: Any) -> Any:
        """Take a label for the name of the solver, where the entry names none."""
        if not isinstance(solvers, dict):
            return solvers
        entries = {}
        for label, entry in solvers.items():
            if entry is None:
                entries[label] = {"solver": label}
            elif isinstance(entry, dict):
                entries[label] = {"solver": label, **entry}
            else:
                entries[label] = entry  # is refused later
        return entries

    @field_validator("common")
    @classmethod
    def _refuse_unsuited_common(
        cls, common: dict[str, Any], info: ValidationInfo
    ) -> Any:
        """Refuse shared parameters that no solver has, or a value that one refuses."""
        if "solvers" not in info.data:
            return common  # the solvers are refused already
        problems: list[Problem] = []
        for name, value in common.items():
            place = (name,)
            problems += _shared_problems(
                place, name, {place: value}, info.data["solvers"]
            )
        refuse(problems)
        return common

    @field_validator("metrics", mode="wrap")
    @classmethod
    def _read_after_common(
        cls, metrics: Any, read: ValidatorFunctionWrapHandler, info: ValidationInfo
    ) -> Any:
        """Read metrics, which take parameters from `common`, unless it is refused."""
        return read(metrics) if "common" in info.data else ()

    @field_validator("plots")
    @classmethod
    def _choose_plots(cls, plots: tuple[Plot, ...] | None, info: ValidationInfo) -> Any:
        """Return the given plots, or plots that suit the sweep and the metrics."""
        if plots is not None:
            return plots
        if info.data.get("sweep"):
            return ("accuracy-time", "accuracy-sweep")
        names = [metric.name for metric in info.data.get("metrics", ())]
        if "precision_at_k" in names:
            return ("accuracy-time", "precision-k")
        return ("accuracy-time",)

    @model_validator(mode="after")
    def _fit_together(self) -> "Experiment":
        """Refuse keys that do not fit each other."""
        refuse(
            [
                *self._repeated(),
                *self._highlight_problems(),
                *self._sweep_and_smoke_problems(),
                *self._inapplicable_keys(),
            ]
        )
        return self

    def _repeated(self) -> Iterator[Problem]:
        """Yield the problems of names that stand twice in a list."""
        lists: dict[str, Sequence[str]] = {
            "datasets": [entry.name for entry in self.datasets],
            "metrics": [metric.label for metric in self.metrics],
            "parts": self.parts,
            "plots": self.plots or (),
            "highlight": self.highlight,
        }
        for key, names in lists.items():
            for i in repeats(names):
                yield (key, i), f"{names[i]} is repeated"

    def _highlight_problems(self) -> Iterator[Problem]:
        """Yield the problems of labels to highlight that are no labels of solvers."""
        for i, label in enumerate(self.highlight):
            texts = unknown("solver of this config", label, self.solvers)
            yield from at(("highlight", i), texts)

    def _sweep_and_smoke_problems(self) -> Iterator[Problem]:
        """Yield the problems of a sweep, of keys that need one, and of smoke data."""
        if self.sweep is None:
            yield from self._missing_sweep_problems()
        else:
            yield from self._sweep_problems(self.sweep)
        datasets = [entry.name for entry in self.datasets]
        for i, dataset in enumerate(self.smoke.datasets or ()):
            texts = unknown("data set of this config", dataset, datasets)
            yield from at(("smoke", "datasets", i), texts)

    def _missing_sweep_problems(self) -> Iterator[Problem]:
        """Yield the problems of keys that need a sweep, where there is none."""
        if self.smoke.sweep:
            message = "has no meaning without sweep: add sweep, or remove this"
            yield ("smoke", "sweep"), message
        plots = self.plots or ()
        if "accuracy-sweep" in plots:
            message = (
                "accuracy-sweep needs a sweep, and there is none: add sweep, or"
                " remove this"
            )
            yield ("plots", plots.index("accuracy-sweep")), message

    def _sweep_problems(self, sweep: Mapping[str, Sequence[Any]]) -> Iterator[Problem]:
        """Yield the problems of the swept parameter and its values."""
        if len(sweep) != 1:
            names = ", ".join(sweep) or "none"
            yield ("sweep",), f"should name one parameter, found {names}"
            return
        [(parameter, values)] = sweep.items()
        yield from self._swept_value_problems(("sweep", parameter), parameter, values)
        if self.smoke.sweep:
            yield from self._swept_value_problems(
                ("smoke", "sweep"), parameter, self.smoke.sweep
            )

    def _swept_value_problems(
        self, path: Keys, name: str, values: Sequence[Any]
    ) -> list[Problem]:
        """Return the problems of values: invalid, repeated, or making metrics equal."""
        by_place = {(*path, i): value for i, value in enumerate(values)}
        problems = _shared_problems(path, name, by_place, self.solvers, self.metrics)
        if problems:
            return problems
        for i in repeats(map(repr, values)):
            problems.append(((*path, i), f"{values[i]} is repeated"))
        # Metrics that differ in the swept parameter alone become equal at each swept
        # value, so that the first value is enough to find such metrics.
        labels = [metric.replace(**{name: values[0]}).label for metric in self.metrics]
        for i in repeats(labels):
            message = f"makes metrics equal: {labels[i]}; remove a metric"
            problems.append((path, message))
        return problems

    def _inapplicable_keys(self) -> Iterator[Problem]:
        """Yield the problems of keys without meaning beside others, or for streams."""
        tuning = self.tuning
        if tuning.folds and tuning.rows:
            message = "has no meaning with folds, which take all rows; remove this"
            yield ("tuning", "rows"), message
        tuning_keys: list[Keys] = [
            ("tuning", key) for key in ("folds", "rows") if getattr(tuning, key)
        ]
        if self.protocol.split == "time":
            message = (
                "has no meaning with split: time, which validates on the latest rows;"
                " remove this"
            )
            for place in tuning_keys:
                yield place, message
        for entry in self.datasets:
            if isinstance(entry, StreamedCard | StreamedFile):
                yield from self._stream_problems(entry.name, tuning_keys)
                return  # the problems of other streams would differ in the name only

    def _stream_problems(
        self, name: str, tuning_keys: Sequence[Keys]
    ) -> Iterator[Problem]:
        """Yield the problems of keys and solvers that do not suit a stream."""
        from precbench.solvers import SOLVERS

        unsuited_keys = list(tuning_keys)
        for label, entry in self.solvers.items():
            if entry.fourier:
                unsuited_keys.append(("solvers", label, "fourier"))
        remedy = "remove this, or stream: true"
        for place in unsuited_keys:
            yield place, f"has no meaning for {name}, which is streamed; {remedy}"
        is_set = {
            "stratified": self.protocol.stratified,
            "train_size": self.protocol.train_size is not None,
            "split": self.protocol.split == "time",
        }
        for key, value in is_set.items():
            if value:
                message = (
                    f"has no meaning for {name}, a stream divided by row; {remedy}"
                )
                yield ("protocol", key), message
        for label, entry in self.solvers.items():
            # Only some solvers learn from pieces, and some only with suitable
            # parameters.
            if not hasattr(SOLVERS[entry.solver](**entry.params), "fit_pieces"):
                need = f"{entry.solver} needs all rows at once"
                yield ("solvers", label), f"{need}, and {name} is streamed; {remedy}"

    def select(
        self,
        solvers: Sequence[str] | None = None,
        datasets: Sequence[str] | None = None,
        seeds: Sequence[int] | None = None,
    ) -> "Experiment":
        """Return a part of the experiment; `seeds` are splits, None means all."""
        self._refuse_unknown(solvers or (), datasets or (), seeds or ())
        changes: dict[str, Any] = {}
        if solvers is not None:
            changes["solvers"] = {
                label: entry
                for label, entry in self.solvers.items()
                if label in solvers
            }
        if datasets is not None:
            changes["datasets"] = tuple(
                entry for entry in self.datasets if entry.name in datasets
            )
        splits = self.protocol.indices
        if seeds is not None:
            chosen = set(seeds)
            splits = tuple(index for index in splits if index in chosen)
        changes["protocol"] = self.protocol.model_copy(update={"splits": splits})
        return self.model_copy(update=changes)

    def _refuse_unknown(
        self, solvers: Sequence[str], datasets: Sequence[str], splits: Sequence[int]
    ) -> None:
        """Refuse names and numbers that the experiment does not have."""
        all_datasets = [entry.name for entry in self.datasets]
        problems: list[str] = []
        for name in solvers:
            problems += unknown("solver", name, self.solvers)
        for name in datasets:
            problems += unknown("data set", name, all_datasets)
        lines = [f"{self.name}: {problem}" for problem in problems]
        missing = sorted(set(splits).difference(self.protocol.indices))
        if missing:
            lines.append(no_splits(missing, self.protocol.indices))
        if lines:
            raise InputError("\n".join(lines))

    def smoke_size(self) -> "Experiment":
        """Return the experiment at its smoke size; `select`, if used, comes before."""
        smoke = self.smoke
        smoke_datasets = tuple(
            entry for entry in self.datasets if entry.name in (smoke.datasets or ())
        )
        splits = self.protocol.indices[: smoke.n_splits]
        lengths_of_training = smoke.model_dump(
            include={"epochs", "max_iter", "n_estimators"}
        )
        solvers = {}
        for label, entry in self.solvers.items():
            # `replace` ignores parameters that the solver does not have.
            solvers[label] = entry.replace(**lengths_of_training)
        changes: dict[str, Any] = {
            "rows": smoke.rows,
            # all, if `select` has left none of the data sets for the smoke size
            "datasets": smoke_datasets or self.datasets,
            "protocol": self.protocol.model_copy(update={"splits": splits}),
            "solvers": solvers,
            "checkpoints": smoke.checkpoints,
        }
        if self.sweep is not None:
            [(name, values)] = self.sweep.items()
            # by default the first and the last value, or the only one
            ends = (values[0], values[-1]) if len(values) > 1 else values
            changes["sweep"] = {name: smoke.sweep or ends}
        return self.model_copy(update=changes)

    def sweep_points(self) -> list[tuple[str, Any] | None]:
        """Return (parameter, value) by value of the sweep, ``[None]`` without one."""
        if self.sweep is None:
            return [None]
        [(name, values)] = self.sweep.items()
        return [(name, value) for value in values]

    def metrics_at(self, sweep: tuple[str, Any] | None) -> tuple[Metric, ...]:
        """Return the metrics at a point of the sweep."""
        swept = _swept_parameter(sweep)
        return tuple(metric.replace(**swept) for metric in self.metrics)

    def trials(self) -> list[Trial]:
        """Return all trials, ordered by split, data set, sweep value and solver.

        Solvers to compare follow each other, so that a slow drift of the machine
        affects all these solvers. Trials with equal keys share one record.
        """
        return [
            self._trial(index, dataset, sweep, label)
            for index, dataset, sweep, label in itertools.product(
                self.protocol.indices, self.datasets, self.sweep_points(), self.solvers
            )
        ]

    def _trial(
        self, index: int, dataset: Data, sweep: tuple[str, Any] | None, label: str
    ) -> Trial:
        """Return the trial of a labelled solver on split `index` of a data set."""
        entry = self.solvers[label]
        swept = _swept_parameter(sweep)
        # of equal names the last wins
        configured = {**self.common, **entry.params, **swept}
        params = {}
        for name, default in solver_defaults(entry.solver).items():
            params[name] = configured.get(name, default)
        scaling_of_dataset = getattr(dataset, "scaling", None)
        scaling = scaling_of_dataset or self.scaling or _recommended_scaling(dataset)
        tuning_metric = entry.tuned_by or self.tuning.by or self.metrics[0]
        return Trial(
            experiment=self.name,
            dataset=dataset,
            scaling=scaling,
            scaling_fitted_on=self.scaling_fitted_on,
            dtype=self.dtype,
            split=self._split(index, dataset),
            solver=entry.solver,
            label=label,
            params=params,
            sweep=sweep,
            metric=tuning_metric.replace(**swept),
            folds=self.tuning.folds,
            tuning_rows=self.tuning.rows,
            draw=self.tuning.draw,
            validation_size=self.protocol.validation_size,
            checkpoints=self.checkpoints,
            rows=self.rows,
            seed=trial_seed(self.protocol.seed, dataset.name, index),
            timeout=self.timeout,
            limit=entry.limit,
            fourier=entry.fourier,
            parts=self.parts,
        )

    def _split(self, index: int, dataset: Data) -> Split:
        """Return split `index` of a data set, which may have a kind of its own."""
        protocol = self.protocol
        return Split(
            kind=getattr(dataset, "split", None) or protocol.split,
            index=index,
            seed=self._split_seed(index, dataset),
            n_splits=protocol.n_splits,
            test_size=protocol.test_size,
            train_size=protocol.train_size,
            stratified=protocol.stratified,
            groups=protocol.groups,
        )

    def _split_seed(self, index: int, dataset: Data) -> int:
        """Return the seed of a split, which all folds of a repetition share.

        The first repetition has the seed of a config without repetitions.
        """
        protocol = self.protocol
        if protocol.split != "kfold":
            return trial_seed(protocol.seed, dataset.name, index)
        repetition = index // protocol.folds
        if repetition == 0:
            return trial_seed(protocol.seed, dataset.name, "folds")
        return trial_seed(protocol.seed, dataset.name, "folds", repetition)


def _swept_parameter(sweep: tuple[str, Any] | None) -> dict[str, Any]:
    """Return ``{parameter: value}`` at a point of the sweep, ``{}`` without a sweep."""
    if sweep is None:
        return {}
    name, value = sweep
    return {name: value}


class Study(Section):
    """A config file with the key ``study``."""

    name: ResultsName
    tags: Names = ()
    title: Line
    source: Line | None = None
    kind: Annotated[str, known("study", "precbench.core.studies:STUDIES")] = Field(
        validation_alias="study"
    )
    parameters: dict[str, Any] = Field(default_factory=dict, validate_default=True)
    smoke: dict[str, Any] = Field(default_factory=dict)  # parameters at the smoke size

    @field_validator("parameters")
    @classmethod
    def _refuse_unsuited_parameters(
        cls, parameters: dict[str, Any], info: ValidationInfo
    ) -> Any:
        """Refuse parameters that the function of the study does not take."""
        if "kind" in info.data:
            _arguments(info.data["kind"], parameters)
        return parameters

    @field_validator("smoke")
    @classmethod
    def _refuse_unsuited_smoke(
        cls, smoke: dict[str, Any], info: ValidationInfo
    ) -> dict[str, Any]:
        """Refuse invalid values at the smoke size, which replace those of full size."""
        if "kind" not in info.data or "parameters" not in info.data:
            return smoke  # they are refused already
        parameters = info.data["parameters"]
        _arguments(info.data["kind"], {**parameters, **smoke})
        # A mapping may have only keys of the mapping that it replaces, if there is one.
        problems: list[Problem] = []
        for name, value in smoke.items():
            if isinstance(value, dict):
                replaced = parameters.get(name, value)
                for key in value:
                    problems += at((name, key), unknown("entry", key, replaced))
        refuse(problems)
        return smoke

    @model_validator(mode="after")
    def _try_if_quick(self) -> "Study":
        """Compute a quick study, to refuse parameters that are invalid together."""
        if not self.is_quick:
            return self
        try:
            self.smoke_size().compute()
        except ValueError as error:
            refuse(at(("parameters",), [str(error)]))
        return self

    @property
    def is_quick(self) -> bool:
        return STUDIES[self.kind].quick

    def compute(self) -> "pd.DataFrame":
        """Return the values of the study."""
        return STUDIES[self.kind].function(**self.arguments())

    def arguments(self) -> dict[str, Any]:
        """Return the checked parameters as the study's function takes them."""
        return _arguments(self.kind, self.parameters)

    def smoke_size(self) -> "Study":
        """Return the study with the parameters under ``smoke``."""
        return self.model_copy(update={"parameters": {**self.parameters, **self.smoke}})


def _arguments(kind: str, parameters: dict[str, Any]) -> dict[str, Any]:
    """Check the parameters of a study; return them as its function takes them."""
    return dict(_model_of_parameters(kind).model_validate(parameters))


def _by_label(metrics: Iterable[Metric]) -> dict[str, Metric]:
    return {metric.label: metric for metric in metrics}


@cache
def _model_of_parameters(kind: str) -> type[Section]:
    """Return a model of a study's parameters, from the signature of its function."""
    function = STUDIES[kind].function
    types = get_type_hints(function, include_extras=True)
    fields: dict[str, Any] = {}
    for name in inspect.signature(function).parameters:
        field_type = types[name]
        if field_type == Measures:
            # A config lists metrics, where the function takes a mapping from labels to
            # metrics.
            field_type = Annotated[Items[MetricEntry], AfterValidator(_by_label)]
        fields[name] = (field_type, ...)  # pydantic: ... means required
    return create_model(kind, __base__=Section, **fields)


def load_config(
    config: str | Path, *, runs_own_classes: bool = False
) -> Experiment | Study:
    """Read a config: a shipped config by its name (see `list_configs`), or a file.

    Where there is no such file, ``configs/NAME.yaml`` means the shipped config NAME.
    A config that names a class in a file is refused, unless it may run these classes.
    """
    names = config_names()
    path = Path(config)
    if str(config) in names or not path.is_file():  # shipped names go before files
        name = str(config).removeprefix("configs/").removesuffix(".yaml")
        path = shipped("configs") / f"{name}.yaml"
    if not path.is_file():
        remedy = nearest_or_all(config, names, "configs")
        raise InputError(
            f"no file and no shipped config is named {str(config)!r}{remedy}"
        )
    return from_document(load(path), Origin(path.parent, runs_own_classes))


def from_document(document: Document, origin: Origin) -> Experiment | Study:
    """Return the checked content of a config."""
    whole = extended(document, origin.folder)
    keys = set(whole.data) if isinstance(whole.data, dict) else set()
    # If the key `study` is misspelt, the key `parameters` shows a study.
    if keys.isdisjoint({"study", "parameters"}):
        experiment = validated(whole, Experiment, origin)
        if whole.base is None or whole.base.data.get("name") == experiment.name:
            return experiment
        return experiment.extending(str(whole.base.data.get("name", "")))
    return validated(whole, Study, origin)


def _recommended_scaling(dataset: Data) -> Scaling:
    """Return the scaling of the data set's card, "none" for a file of the user."""
    from precbench.data import DATASETS

    if isinstance(dataset, StreamedCard):
        return DATASETS[dataset.card].scaling
    if isinstance(dataset, NamedData):
        return DATASETS[dataset.name].scaling
    return "none"


def _shared_problems(
    path: Keys,
    name: str,
    values: Mapping[Keys, Any],
    solvers: Mapping[str, SolverEntry],
    metrics: Iterable[Metric] = (),
) -> list[Problem]:
    """Return the problems that solvers and metrics have with a shared parameter.

    `path` is the place of its name in the file; its `values` are by their places.
    """
    if name == "random_state":  # refused, whatever the solver and the value
        return at(path, parameter_problems("", name, None))
    solvers_with_it = sorted(
        {entry.solver for entry in solvers.values() if entry.has_parameter(name)}
    )
    metrics_with_it = [
        metric for metric in metrics if name in METRICS[metric.name].parameters
    ]
    if not solvers_with_it and not metrics_with_it:
        available: set[str] = set()
        for entry in solvers.values():
            available.update(solver_defaults(entry.solver))
        hint = did_you_mean(name, sorted(available))
        return at(path, [f"none of the solvers has this parameter{hint}"])
    problems: list[Problem] = []
    for place, value in values.items():
        texts: list[str] = []
        for solver in solvers_with_it:
            texts += parameter_problems(solver, name, value)
        for metric in metrics_with_it:
            swept = metric.replace(**{name: value})
            for _place, text in metric_problems(swept.name, swept.params):
                texts.append(text)
        # the first text is enough: most solvers have equal constraints
        problems += at(place, texts[:1])
    return problems
