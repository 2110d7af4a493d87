"""A config file as one frozen object.

An experiment, expanded into trials, or a study.
"""

import inspect
import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, get_type_hints

from pydantic import (
    AfterValidator,
    Field,
    PositiveInt,
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
    solver_defaults,
)
from precbench.experiment.trial import Split, Trial
from precbench.ranking.metrics import METRICS, Metric
from precbench.results.records import RESERVED

if TYPE_CHECKING:
    import pandas as pd


def _not_reserved(name: str) -> str:
    """Refuse a name that means something else in a folder of results.

    A file system may ignore case.
    """
    if name.lower() in RESERVED:
        what = "is the name of a folder that precbench makes in a folder of results"
        refuse(at((), [f"{name!r} {what}; choose another"]))
    return name


# The name of a folder of results
ResultsName = Annotated[Name, AfterValidator(_not_reserved)]


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
    smoke: Smoke = Smoke()

    @field_validator("solvers", mode="before")
    @classmethod
    def _label_is_the_solver(cls, solvers: Any) -> Any:
        if not isinstance(solvers, dict):
            return solvers
        return {  # by default a label is the name of its solver
            label: (
                {"solver": label, **(entry or {})}
                if isinstance(entry, dict | None)
                else entry
            )
            for label, entry in solvers.items()
        }

    @field_validator("common")
    @classmethod
    def _common_to_some(cls, common: dict[str, Any], info: ValidationInfo) -> Any:
        if "solvers" in info.data:
            # shared parameters that no solver has, or with a value that a solver
            # refuses
            refuse(
                problem
                for name, value in common.items()
                for problem in _shared_problems(
                    (name,), name, {(name,): value}, info.data["solvers"]
                )
            )
        return common

    @field_validator("metrics", mode="wrap")
    @classmethod
    def _inherit_from_common(
        cls, metrics: Any, read: ValidatorFunctionWrapHandler, info: ValidationInfo
    ) -> Any:
        # `_metric` needs a valid `common`
        return read(metrics) if "common" in info.data else ()

    @field_validator("plots")
    @classmethod
    def _choose_plots(cls, plots: tuple[Plot, ...] | None, info: ValidationInfo) -> Any:
        """Return the given plots.

        By default plots that suit the sweep and the metrics.
        """
        if plots is not None:
            return plots
        if info.data.get("sweep"):
            return ("accuracy-time", "accuracy-sweep")
        at_k = any(
            metric.name == "precision_at_k" for metric in info.data.get("metrics", ())
        )
        return ("accuracy-time", "precision-k") if at_k else ("accuracy-time",)

    @model_validator(mode="after")
    def _fit_together(self) -> "Experiment":  # refuse keys that do not fit
        refuse(
            [
                *self._repeated(),
                *self._sweep_and_smoke_problems(),
                *self._inapplicable_keys(),
            ]
        )
        return self

    def _repeated(self) -> Iterator[Problem]:  # names that stand twice in a list
        lists: dict[str, Sequence[str]] = {
            "datasets": [entry.name for entry in self.datasets],
            "metrics": [metric.label for metric in self.metrics],
            "parts": self.parts,
            "plots": self.plots or (),
        }
        for key, names in lists.items():
            yield from (((key, i), f"{names[i]} is repeated") for i in repeats(names))

    def _sweep_and_smoke_problems(self) -> Iterator[Problem]:
        """Yield the problems of ``sweep``, of keys that need a sweep, and of ``smoke.datasets``."""
        smoke, plots = self.smoke, self.plots or ()
        if self.sweep is None:
            if smoke.sweep:
                yield (
                    (
                        "smoke",
                        "sweep",
                    ),
                    "has no meaning without sweep: add sweep, or remove this",
                )
            if "accuracy-sweep" in plots:
                yield (
                    ("plots", plots.index("accuracy-sweep")),
                    (
                        "accuracy-sweep needs a sweep, and there is none: add sweep, or"
                        " remove this"
                    ),
                )
        elif len(self.sweep) != 1:
            yield (
                ("sweep",),
                f"should name one parameter, found {', '.join(self.sweep) or 'none'}",
            )
        else:
            [(name, values)] = self.sweep.items()
            yield from self._swept_value_problems(("sweep", name), name, values)
            if smoke.sweep:
                yield from self._swept_value_problems(
                    ("smoke", "sweep"), name, smoke.sweep
                )
        names = [entry.name for entry in self.datasets]
        for i, name in enumerate(smoke.datasets or ()):
            yield from at(
                ("smoke", "datasets", i),
                unknown("data set of this config", name, names),
            )

    def _swept_value_problems(
        self, path: Keys, name: str, values: Sequence[Any]
    ) -> list[Problem]:
        """Return the problems of swept values.

        Invalid, repeated, or making two metrics equal.
        """
        # places in the file
        by_place = {(*path, i): value for i, value in enumerate(values)}
        if problems := _shared_problems(
            path, name, by_place, self.solvers, self.metrics
        ):
            return problems
        problems = [
            ((*path, i), f"{values[i]} is repeated") for i in repeats(map(repr, values))
        ]
        # Metrics that differ in the swept parameter alone become equal at each swept
        # value, so that the first value is enough to find such metrics.
        labels = [metric.replace(**{name: values[0]}).label for metric in self.metrics]
        return problems + at(
            path,
            [
                f"makes metrics equal: {labels[i]}; remove a metric"
                for i in repeats(labels)
            ],
        )

    def _inapplicable_keys(self) -> Iterator[Problem]:
        """Yield the problems of keys that mean nothing beside another key, or for a stream."""
        tuning = self.tuning
        if tuning.folds and tuning.rows:
            yield (
                (
                    "tuning",
                    "rows",
                ),
                "has no meaning with folds, which take all rows; remove this",
            )
        given: list[Keys] = [
            ("tuning", key) for key in ("folds", "rows") if getattr(tuning, key)
        ]
        if self.protocol.split == "time":
            why = (
                "has no meaning with split: time, which validates on the latest rows;"
                " remove this"
            )
            yield from ((place, why) for place in given)
        streams = [
            e.name for e in self.datasets if isinstance(e, StreamedCard | StreamedFile)
        ]
        # messages name the first stream: for others only the name would differ
        if streams:
            yield from self._stream_problems(streams[0], given)

    def _stream_problems(
        self, name: str, of_tuning: Sequence[Keys]
    ) -> Iterator[Problem]:
        """Yield the problems of keys and solvers that do not suit the streamed data set `name`."""
        from precbench.solvers import SOLVERS

        of_solvers = [
            ("solvers", n, "fourier") for n, e in self.solvers.items() if e.fourier
        ]
        why = (
            f"has no meaning for {name}, which is streamed; remove this, or stream:"
            " true"
        )
        yield from ((place, why) for place in (*of_tuning, *of_solvers))
        of_protocol = {  # whether each key of `protocol` is set
            "stratified": self.protocol.stratified,
            "train_size": self.protocol.train_size,
            "split": self.protocol.split == "time",
        }
        why = (
            f"has no meaning for {name}, a stream divided by row; remove this, or"
            " stream: true"
        )
        yield from (
            (("protocol", key), why) for key, value in of_protocol.items() if value
        )
        why = (
            f"needs all rows at once, and {name} is streamed; remove this, or stream:"
            " true"
        )
        yield from (
            (("solvers", label), f"{entry.solver} {why}")
            for label, entry in self.solvers.items()
            # Only some solvers learn from pieces, and some only with suitable
            # parameters.
            if not hasattr(SOLVERS[entry.solver](**entry.params), "fit_pieces")
        )

    def select(
        self,
        solvers: Sequence[str] | None = None,
        datasets: Sequence[str] | None = None,
        seeds: Sequence[int] | None = None,
    ) -> "Experiment":
        """Return the experiment with these solvers, data sets and splits (`seeds`).

        None: all.
        """
        names = [entry.name for entry in self.datasets]
        choices = (("solver", solvers, self.solvers), ("data set", datasets, names))
        complaints = [
            f"{self.name}: {text}"
            for what, chosen, available in choices
            for name in chosen or ()
            for text in unknown(what, name, available)
        ]
        indices = self.protocol.indices
        if missing := sorted({*(seeds or ())}.difference(indices)):
            complaints.append(no_splits(missing, indices))
        if complaints:
            raise InputError("\n".join(complaints))
        chosen_splits = set(indices if seeds is None else seeds)
        splits = tuple(index for index in indices if index in chosen_splits)
        changes = {
            "solvers": {
                n: e for n, e in self.solvers.items() if solvers is None or n in solvers
            },
            "datasets": tuple(
                e for e in self.datasets if datasets is None or e.name in datasets
            ),
            "protocol": self.protocol.model_copy(update={"splits": splits}),
        }
        return self.model_copy(update=changes)

    def smoke_size(self) -> "Experiment":
        """Return the experiment at its smoke size, without some data sets.

        Call `select` before.
        """
        smoke = self.smoke
        lengths = smoke.model_dump(include={"epochs", "max_iter", "n_estimators"})
        chosen = tuple(e for e in self.datasets if e.name in (smoke.datasets or ()))
        changes: dict[str, Any] = {
            "rows": smoke.rows,
            # all, if `select` has left no chosen data set
            "datasets": chosen or self.datasets,
            "protocol": self.protocol.model_copy(
                update={"splits": self.protocol.indices[: smoke.n_splits]}
            ),
            # `replace` ignores parameters in `lengths` that the solver does not have.
            "solvers": {
                n: entry.replace(**lengths) for n, entry in self.solvers.items()
            },
            "checkpoints": smoke.checkpoints,
        }
        # by default the first and last value, or the only value
        if self.sweep is not None:
            changes["sweep"] = {
                name: smoke.sweep or (values[0], values[-1])[: len(values)]
                for name, values in self.sweep.items()
            }
        return self.model_copy(update=changes)

    def sweep_points(self) -> list[tuple[str, Any] | None]:
        """Return (parameter, value) for each value of the sweep.

        ``[None]`` without a sweep.
        """
        if self.sweep is None:
            return [None]
        return [
            (name, value) for name, values in self.sweep.items() for value in values
        ]

    def metrics_at(self, sweep: tuple[str, Any] | None) -> tuple[Metric, ...]:
        swept = dict([sweep] if sweep else [])  # {parameter: value}, or {}
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
        """Return the trial of the solver with this label on split `index` of a data set."""
        protocol, entry = self.protocol, self.solvers[label]
        seed = trial_seed(protocol.seed, dataset.name, index)
        split_seed = seed
        # one division of the rows makes all folds of a repetition
        if protocol.split == "kfold":
            repetition = index // protocol.folds
            # Repetition 0 has the seed, and so the folds, of a config without
            # repetitions.
            purpose = ("folds", repetition) if repetition else ("folds",)
            split_seed = trial_seed(protocol.seed, dataset.name, *purpose)
        swept = dict([sweep] if sweep else [])
        given = {**self.common, **entry.params, **swept}  # of equal names the last wins
        # of `given`, only names in `defaults` are used
        defaults = solver_defaults(entry.solver)
        # goes before the scaling of the config
        own_scaling = getattr(dataset, "scaling", None)
        return Trial(
            experiment=self.name,
            dataset=dataset,
            scaling=own_scaling or self.scaling or _recommended_scaling(dataset),
            scaling_fitted_on=self.scaling_fitted_on,
            dtype=self.dtype,
            split=Split(
                kind=getattr(dataset, "split", None) or protocol.split,
                index=index,
                seed=split_seed,
                n_splits=protocol.n_splits,
                test_size=protocol.test_size,
                train_size=protocol.train_size,
                stratified=protocol.stratified,
                groups=protocol.groups,
            ),
            solver=entry.solver,
            label=label,
            params={name: given.get(name, value) for name, value in defaults.items()},
            sweep=sweep,
            metric=(entry.tuned_by or self.tuning.by or self.metrics[0]).replace(
                **swept
            ),
            folds=self.tuning.folds,
            tuning_rows=self.tuning.rows,
            draw=self.tuning.draw,
            validation_size=protocol.validation_size,
            checkpoints=self.checkpoints,
            rows=self.rows,
            seed=seed,
            timeout=self.timeout,
            limit=entry.limit,
            fourier=entry.fourier,
            parts=self.parts,
        )


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
    def _match_the_function(
        cls, parameters: dict[str, Any], info: ValidationInfo
    ) -> Any:
        if "kind" in info.data:
            _arguments(info.data["kind"], parameters)  # raises if some are invalid
        return parameters

    @field_validator("smoke")
    @classmethod
    def _replaces_parameters(
        cls, smoke: dict[str, Any], info: ValidationInfo
    ) -> dict[str, Any]:
        """Check the parameters at the smoke size, which replace parameters of the full size."""
        # kind and parameters were found valid
        if {"kind", "parameters"} <= set(info.data):
            parameters = info.data["parameters"]
            # raises if some are invalid
            _arguments(info.data["kind"], {**parameters, **smoke})
            # new keys in a mapping of the full size; a new mapping may have any keys
            refuse(
                problem
                for name, value in smoke.items()
                if isinstance(value, dict)
                for key in value
                for problem in at(
                    (name, key), unknown("entry", key, parameters.get(name, value))
                )
            )
        return smoke

    @model_validator(mode="after")
    def _try_if_quick(self) -> "Study":
        """Refuse parameters that are invalid only together, which computing a quick study shows."""
        if self.is_quick:
            try:
                self.smoke_size().compute()  # the function of the study raises
            except ValueError as error:
                refuse(at(("parameters",), [str(error)]))
        return self

    @property
    def is_quick(self) -> bool:
        return STUDIES[self.kind].quick

    def compute(self) -> "pd.DataFrame":  # the values of the study
        return STUDIES[self.kind].function(**self.arguments())

    def arguments(self) -> dict[str, Any]:
        # checked parameters, for the function of the study
        return _arguments(self.kind, self.parameters)

    def smoke_size(self) -> "Study":  # the study with the parameters under ``smoke``
        return self.model_copy(update={"parameters": {**self.parameters, **self.smoke}})


def _arguments(kind: str, parameters: dict[str, Any]) -> dict[str, Any]:
    """Check the parameters of a study.

    Return the parameters as the study's function takes them.
    """
    return dict(_parameters_of(kind).model_validate(parameters))


@cache
def _parameters_of(kind: str) -> type[Section]:
    """Return a model of the parameters of a kind of study, from its function's signature."""
    function = STUDIES[kind].function
    # A config lists metrics, where the function takes `Measures`: a mapping from labels
    # to metrics.
    as_configured: dict[Any, Any] = {
        Measures: Annotated[
            Items[MetricEntry],
            AfterValidator(lambda metrics: {m.label: m for m in metrics}),
        ]
    }
    types = get_type_hints(function, include_extras=True)
    fields: dict[str, Any] = {
        # pydantic: ... for required
        name: (as_configured.get(types[name], types[name]), ...)
        for name in inspect.signature(function).parameters
    }
    return create_model(kind, __base__=Section, **fields)


def load_config(config: str | Path) -> Experiment | Study:
    """Read a config: a shipped config by its name (see `list_configs`), or a file.

    Where there is no such file, ``configs/NAME.yaml`` means the shipped config NAME.
    """
    names, path = config_names(), Path(config)
    if str(config) in names or not path.is_file():  # shipped names go before files
        name = str(config).removeprefix("configs/").removesuffix(".yaml")
        path = shipped("configs") / f"{name}.yaml"
    if not path.is_file():
        remedy = nearest_or_all(config, names, "configs")
        raise InputError(
            f"no file and no shipped config is named {str(config)!r}{remedy}"
        )
    return from_document(load(path), path.parent)


def from_document(document: Document, folder: Path) -> Experiment | Study:
    """Return the content of a config file, checked.

    Relative paths in it start at `folder`.
    """
    # with the contents of the config that is extended
    document = extended(document, folder)
    # A study has the key `study`; if this key is misspelt, the key `parameters` shows a
    # study.
    keys = set(document.data) if isinstance(document.data, dict) else set()
    if keys.isdisjoint({"study", "parameters"}):
        return validated(document, Experiment, folder)
    return validated(document, Study, folder)


def _recommended_scaling(dataset: Data) -> Scaling:
    # by the card; "none" for a file of the user
    from precbench.data import DATASETS

    card = dataset.card if isinstance(dataset, StreamedCard) else dataset.name
    return (
        DATASETS[card].scaling
        if isinstance(dataset, NamedData | StreamedCard)
        else "none"
    )


def _shared_problems(
    path: Keys,
    name: str,
    values: Mapping[Keys, Any],
    solvers: Mapping[str, SolverEntry],
    metrics: Iterable[Metric] = (),
) -> list[Problem]:
    """Return the problems that solvers and metrics have with a shared parameter."""
    # `path` is the place of `name` in the file; `values` are keyed by their places in
    # the file.
    if name == "random_state":  # refused, whatever the solver and the value
        return at(path, parameter_problems("", name, None))
    solvers_with_it = sorted(
        {e.solver for e in solvers.values() if e.has_parameter(name)}
    )
    metrics_with_it = [
        metric for metric in metrics if name in METRICS[metric.name].parameters
    ]
    if not solvers_with_it and not metrics_with_it:
        available = {
            n for entry in solvers.values() for n in solver_defaults(entry.solver)
        }
        hint = did_you_mean(name, sorted(available))
        return at(path, [f"none of the solvers has this parameter{hint}"])
    problems = []
    for place, value in values.items():
        texts = [
            text for s in solvers_with_it for text in parameter_problems(s, name, value)
        ]
        for metric in metrics_with_it:
            replaced = metric.replace(**{name: value})
            texts += [
                text for _, text in metric_problems(replaced.name, replaced.params)
            ]
        # one text is enough: most solvers have equal constraints
        problems += at(place, texts[:1])
    return problems
