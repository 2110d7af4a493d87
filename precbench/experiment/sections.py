"""The sections of a config: frozen pydantic models that refuse unknown keys.

Names and values are checked field by field, so that a mistake is reported with its own
place in the file. Registries of solvers and data sets are imported in checks: to import
this module is cheap.
"""

import inspect
import itertools
import os
import reprlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, NoReturn, get_type_hints

from pydantic import (
    BeforeValidator,
    Field,
    PlainValidator,
    PositiveFloat,
    PositiveInt,
    Strict,
    TypeAdapter,
    ValidationError,
    ValidationInfo,
    field_validator,
    model_validator,
)

from precbench.core.errors import InputError, did_you_mean
from precbench.core.kinds import Scaling, SplitKind
from precbench.core.yaml.document import Keys
from precbench.core.yaml.models import (
    Items,
    Name,
    Problem,
    Section,
    at,
    in_plain_words,
    known,
    refuse,
    repeats,
    unknown,
)
from precbench.ranking.metrics import METRICS, Metric
from precbench.ranking.topk import check_k

FittedOn = Literal["train", "all"]
Plot = Literal[
    "accuracy-time",
    "accuracy-rows",
    "accuracy-share",
    "accuracy-sweep",
    "precision-k",
    "roc",
    "roc-counts",
]
Part = Literal["test", "training"]
Share = Annotated[float, Field(gt=0, lt=1)]
# If a data set cannot be obtained: raise an error, use synthetic data, or leave the
# data set out
OnMissing = Literal["error", "stand-in", "skip"]


@dataclass(frozen=True)
class Origin:
    """Where a config comes from; the context of the validators.

    Attributes
    ----------
    folder : Path
        To which the paths in the config are relative.
    runs_own_classes : bool
        Whether classes in files are imported, as where the config is run.
    """

    folder: Path
    runs_own_classes: bool = False


# Keys of a solver's section that are not parameters
SOLVER_KEYS = ("solver", "limit", "tuned_by", "fourier")

_LARGEST_TRY = 100_000  # rows on which a metric is tried, to check its parameters


def refuse_here(problem: str) -> NoReturn:
    """Refuse the value that is checked."""
    refuse([((), problem)])
    raise AssertionError("`refuse` raises an error for a problem")


def _checkpoints(value: Any) -> Any:
    """Return a count, "every", or a list of passes; refuse anything else."""
    if isinstance(value, list):
        if not _are_ascending_above_0(value):
            refuse_here("should list passes over the rows: ascending numbers above 0")
        return tuple(map(float, value))
    is_count = isinstance(value, int) and not isinstance(value, bool) and value > 0
    if is_count or value == "every":
        return value
    refuse_here(
        "should be a count above 0, every, or a list of passes, found"
        f" {reprlib.repr(value)}"
    )


def _are_ascending_above_0(values: list[Any]) -> bool:
    for value in values:
        if not isinstance(value, int | float) or isinstance(value, bool):
            return False
    is_ascending = all(
        earlier < later for earlier, later in itertools.pairwise([0, *values])
    )
    return len(values) > 0 and is_ascending


# The approximate number of checkpoints, at growing distances; "every": after each batch
# or iteration; or their places, in passes over the training rows
Checkpoints = Annotated[int | str | tuple[float, ...], PlainValidator(_checkpoints)]


CardName = Annotated[str, known("data set", "precbench.data:DATASETS")]


class NamedData(Section):
    """A data set with a card."""

    # either key makes the entry another kind of data
    more_keys: ClassVar = ("file", "stream")

    name: CardName
    on_missing: OnMissing = "error"
    # The provided training and test sets, in place of the split of the protocol
    split: Literal["provided"] | None = None
    # In place of the scaling of the config, or of the card
    scaling: Scaling | None = None


def _existing_file(file: Any, info: ValidationInfo) -> Any:
    """Return the path of a file; a relative path starts at the folder of the config."""
    if not isinstance(file, str):
        return file
    # A ~ without a home folder stays as it is.
    folder = Path() if info.context is None else info.context.folder
    path = Path(os.path.expanduser(folder / file))  # noqa: PTH111 (Path's raises)
    if not os.path.isfile(path):  # noqa: PTH113 (False for too long a name)
        files_beside = [other.name for other in path.parent.glob("*")]
        refuse_here(f"no such file: {path}{did_you_mean(path.name, files_beside)}")
    return path


DataFile = Annotated[Path, Strict(False), BeforeValidator(_existing_file)]


class FileData(Section):
    """A file of the user; a relative path starts at the folder of the config."""

    more_keys: ClassVar = ("stream",)

    file: DataFile
    name: Name
    format: Literal["svmlight", "csv", "tsv", "parquet", "xlsx", "npz"] | None = None
    label: str | int | None = None
    positive: (
        str | int | float | bool | Annotated[tuple[Any, ...], Strict(False)] | None
    ) = None
    groups: str | int | None = None
    # Column of the order of the rows, for ``split: time``: numbers, or dates
    time: str | int | None = None
    drop: Annotated[tuple[str | int, ...], Strict(False)] = ()
    id: Annotated[tuple[str, ...], Strict(False)] = ()
    categorical: (
        Literal["one-hot"] | Annotated[tuple[str, ...], Strict(False)] | None
    ) = None
    numeric: Annotated[tuple[str, ...], Strict(False)] = ()
    missing: Literal["mean", "median", "most-frequent"] | None = None
    separator: str | None = None
    encoding: str | None = None
    decimal: Literal[".", ","] | None = None
    date_format: str | None = None
    sheet: str | None = None
    skip_rows: int | None = None


class StreamedCard(Section):
    """A data set with a card, its rows read block by block from the cache."""

    card: CardName = Field(alias="name")
    stream: Literal[True]
    on_missing: OnMissing = "error"
    block_bytes: PositiveInt | None = None
    buffer_bytes: PositiveInt | None = None

    @property
    def name(self) -> str:
        """The name of the card with a suffix, unlike that of the data in memory."""
        return f"{self.card}-streamed"


class StreamedFile(Section):
    """A file of the user that may be larger than the memory."""

    file: DataFile
    stream: Literal[True]
    name: Name
    format: Literal["svmlight", "npy"] | None = None
    labels: DataFile | None = None  # of an npy file
    positive: int | float | None = None
    n_features: PositiveInt | None = None
    block_bytes: PositiveInt | None = None
    buffer_bytes: PositiveInt | None = None


def _dataset(entry: Any, info: ValidationInfo) -> Any:
    """Return an entry, validated as the kind of data that its keys show."""
    if isinstance(entry, str):
        entry = {"name": entry}
    if isinstance(entry, dict) and "file" in entry:
        file_name = Path(str(entry["file"])).name
        default_name = file_name.split(".")[0]  # without suffixes
        named = {"name": default_name, **entry}
        kind = StreamedFile if "stream" in entry else FileData
        return kind.model_validate(named, context=info.context)
    if isinstance(entry, dict) and "stream" in entry:
        return StreamedCard.model_validate(entry)
    return NamedData.model_validate(entry)


Data = NamedData | FileData | StreamedCard | StreamedFile
DataEntry = Annotated[Data, BeforeValidator(_dataset)]


# The plan of more splits would fill the memory
MOST_SPLITS = 100_000


class Protocol(Section):
    """How the rows are divided."""

    split: SplitKind = "random"
    # Fraction of the rows in the test set; with ``split: time`` split 0 has the latest
    # rows
    test_size: Share = 0.3
    # Number of training rows, in place of `test_size`; all other rows are test rows
    train_size: PositiveInt | None = None
    n_splits: Annotated[int, Field(ge=1, le=MOST_SPLITS)] = 5
    # Number of repetitions of a ``kfold``, each with another partition into `n_splits`
    # folds
    repetitions: Annotated[int, Field(ge=1, le=MOST_SPLITS)] = 1
    stratified: bool = False
    # Whether rows of one group, if the data have groups, stay in one part
    groups: Literal["keep", "ignore"] = "keep"
    seed: Annotated[int, Field(ge=0)] = 0
    validation_size: Share = 0.2
    # Which of the splits to run; None means all
    splits: Items[Annotated[int, Field(ge=0)]] | None = None

    @model_validator(mode="before")
    @classmethod
    def _split_once_unless_random(cls, value: Any) -> Any:
        """Default to one split if the division is not random."""
        not_random = ("time", "provided", "none")
        if isinstance(value, dict) and value.get("split") in not_random:
            return {"n_splits": 1, **value}
        return value

    @model_validator(mode="after")
    def _fits_the_split(self) -> "Protocol":
        """Refuse keys that the kind of split does not use, and impossible splits."""
        refuse(
            [
                *self._unused_keys(),
                *self._impossible_numbers(),
                *self._impossible_indices(),
            ]
        )
        return self

    def _unused_keys(self) -> Iterator[Problem]:
        """Yield the problems of keys that mean nothing for this kind of split."""
        keys_in_file = self.model_fields_set
        kinds_that_use = {
            "test_size": ("random", "time"),
            "train_size": ("random",),
            "stratified": ("random", "kfold"),
            "repetitions": ("kfold",),
        }
        for key, kinds in kinds_that_use.items():
            if key in keys_in_file and self.split not in kinds:
                yield (key,), f"has no meaning with split: {self.split}; remove this"
        if {"test_size", "train_size"} <= keys_in_file:
            message = "cannot be combined with test_size: give one of the two"
            yield ("train_size",), message

    def _impossible_numbers(self) -> Iterator[Problem]:
        """Yield the problems of too few splits, too many, or too large test sets."""
        if self.split == "kfold" and self.n_splits < 2:
            yield ("n_splits",), "kfold needs 2 or more"
        if self.split == "time" and self.n_splits * self.test_size >= 1:
            bound = 1 / self.n_splits
            message = (
                f"{self.n_splits} test sets of {self.test_size:g} leave no rows to"
                f" train on: give less than {bound:.3g}"
            )
            yield ("test_size",), message
        n_splits_in_all = len(self._all_indices)
        if n_splits_in_all > MOST_SPLITS:
            message = (
                f"{n_splits_in_all:,} splits in all, but {MOST_SPLITS:,} are the most:"
                " give fewer"
            )
            yield ("repetitions",), message

    def _impossible_indices(self) -> Iterator[Problem]:
        """Yield the problems of repeated or unknown numbers of splits to run."""
        splits = self.splits or ()
        for i in repeats(splits):
            yield ("splits", i), f"{splits[i]} is repeated"
        for i, index in enumerate(splits):
            if index not in self._all_indices:
                yield ("splits", i), no_splits([index], self._all_indices)

    @property
    def indices(self) -> tuple[int, ...]:
        """Numbers of the splits to run."""
        return tuple(self._all_indices) if self.splits is None else self.splits

    @property
    def _all_indices(self) -> range:
        """Numbers of the splits of all repetitions."""
        return range(self.n_splits * self.repetitions)

    @property
    def folds(self) -> int:
        """Number of successive splits that form one repetition of the protocol."""
        return self.n_splits if self.split == "kfold" else 1


def _metric(entry: Any, info: ValidationInfo) -> Metric:
    """Return the metric of an entry, a name or ``{name: parameters}``."""
    if isinstance(entry, str):
        entry = {entry: {}}
    if not isinstance(entry, dict) or len(entry) != 1:
        expected = "should be a name, or {name: {parameters}}"
        refuse_here(f"{expected}, found {reprlib.repr(entry)}")
    [(name, own_params)] = entry.items()
    refuse(at((name,), unknown("metric", name, METRICS)))
    if not isinstance(own_params, dict):
        problem = f"should be a mapping of parameters, found {reprlib.repr(own_params)}"
        refuse(at((name,), [problem]))
    common = {}
    for key, value in info.data.get("common", {}).items():
        if not is_tuned(value):  # only solvers are tuned
            common[key] = value
    # `replace` takes the parameters that the metric has.
    inherited = Metric(name, {}).replace(**common)
    params = {**inherited.params, **own_params}
    refuse(((name, *path), text) for path, text in metric_problems(name, params))
    return Metric(name, params)


MetricEntry = Annotated[Metric, BeforeValidator(_metric)]


class Tuning(Section):
    """How the values of tuned parameters are chosen."""

    # The metric that compares candidates, if a solver has no `tuned_by`; default: the
    # first metric
    by: MetricEntry | None = None
    # The number of folds of the training rows: each candidate is trained on all folds
    # but one and measured on the fold left out, and the means are compared. By default
    # a candidate is measured once, on ``protocol.validation_size`` of the rows. Folds
    # are stratified, and keep groups.
    folds: Annotated[int, Field(ge=2, le=MOST_SPLITS)] | None = None
    # Number of training rows for tuning; what tuning chooses is trained on all training
    # rows
    rows: Annotated[int, Field(ge=2)] | None = None
    # Most candidates of a solver: of more combinations of the lists, so many are drawn
    # at random, the same for all data sets and splits. By default all combinations are
    # tried.
    draw: Annotated[int, Field(ge=2)] | None = None


class Limit(Section):
    """When a solver is stopped, with its last iterate as the result."""

    # After about so many times the time of the solver with most epochs. A visit to a
    # row counts as the time `LinearRanker.row_cost` of the solver, so that no number
    # depends on a clock.
    times_slowest: PositiveFloat
    # Whether tuning has a limit, too: all candidates together that of one training
    tuning: bool = True


def _tunable(kind: Any) -> PlainValidator:
    """Return a validator of values of a type, or of ``{tune: [such values]}``."""
    adapter = TypeAdapter(kind)

    def check(value: Any) -> Any:
        refuse(at((), choice_problems(value)))
        candidates = value["tune"] if is_tuned(value) else [value]
        try:
            for candidate in candidates:
                adapter.validate_python(candidate, strict=True)
        except ValidationError as error:
            first_error = error.errors()[0]
            refuse_here(in_plain_words(first_error))
        return value

    return PlainValidator(check)


class Fourier(Section):
    """Random Fourier features, which approximate a Gaussian kernel.

    Linear scores of them are close to the scores of the kernel. They replace the scaled
    features x, see `sklearn.kernel_approximation.RBFSampler`. Each value may be tuned:
    ``{tune: [two or more values]}``.
    """

    n_components: Annotated[Any, _tunable(Annotated[int, Field(ge=1, le=1_000_000)])]
    # For the kernel ``exp(-gamma ||x - x'||^2)``; default 1 / (n_features * variance of
    # x)
    gamma: Annotated[Any, _tunable(PositiveFloat | None)] = None
    # Width of the kernel, as a multiple of the width that `gamma` gives
    bandwidth: Annotated[Any, _tunable(PositiveFloat)] = 1.0

    @property
    def candidates(self) -> dict[str, list[Any]]:
        """Values to try of each tuned field, by name."""
        fields = self.model_dump().items()
        return {name: value["tune"] for name, value in fields if is_tuned(value)}

    @property
    def phrase(self) -> str:
        """Words with each number to try: ``100 or 200 random Fourier features``."""
        sizes = self.candidates.get("n_components", [self.n_components])
        *others, last = [f"{size:,}" for size in sizes]
        listed = f"{', '.join(others)} or {last}" if others else last
        return f"{listed} random Fourier features"


def _admitted(name: Any, info: ValidationInfo) -> Any:
    """Import a class that is named FILE.py:CLASS; return its name in the registry."""
    from precbench.solvers import SOLVERS
    from precbench.solvers.own_class import is_own_class

    if not is_own_class(name):
        return name
    origin: Origin = info.context or Origin(Path())
    if not origin.runs_own_classes:
        problem = (
            f"{name} is a class in a file, which only compare, fit, rank, run and"
            " validate import"
        )
        refuse(at((), [problem]))
    try:
        return SOLVERS.admit(name, origin.folder)
    except InputError as error:
        refuse(at((), [str(error)]))


class SolverEntry(Section):
    """A solver with the parameters under its label.

    In the file the parameters stand beside ``solver``, ``limit``, ``tuned_by`` and
    ``fourier``. A tuned parameter is ``{"tune": [candidates]}``; the metric `tuned_by`
    chooses its value.
    """

    solver: Annotated[
        str,
        BeforeValidator(_admitted),
        known("solver", "precbench.solvers:SOLVERS"),
    ]
    limit: Limit | None = None
    tuned_by: MetricEntry | None = None
    fourier: Fourier | None = None
    params: dict[str, Any]

    @model_validator(mode="before")
    @classmethod
    def _gather_parameters(cls, value: Any) -> Any:
        """Move all keys that are not in `SOLVER_KEYS` to the field `params`."""
        if not isinstance(value, dict):
            return value
        own: dict[str, Any] = {}
        params: dict[str, Any] = {}
        for name, content in value.items():
            if name in SOLVER_KEYS:
                own[name] = content
            else:
                params[name] = content
        return {**own, "params": params}

    @classmethod
    def _path(cls, loc: Keys) -> Keys:
        """Return the place in the file, which has no key `params`."""
        return loc[1:] if loc[:1] == ("params",) else loc

    @field_validator("params")
    @classmethod
    def _refuse_unsuited(
        cls, params: dict[str, Any], info: ValidationInfo
    ) -> dict[str, Any]:
        """Refuse parameters that the solver does not have or accept."""
        problems: list[Problem] = []
        solver = info.data.get("solver")
        if solver is None:  # it is refused already, or missing: its key may be misspelt
            for name in params:
                hint = did_you_mean(name, SOLVER_KEYS)
                if hint:
                    problems.append(((name,), f"unknown key{hint}"))
        else:
            for name, value in params.items():
                problems += at((name,), parameter_problems(solver, name, value))
        refuse(problems)
        return params

    def has_parameter(self, name: str) -> bool:
        return name in solver_defaults(self.solver)

    def replace(self, **params: Any) -> "SolverEntry":
        """Return a copy with `params`, without parameters that the solver lacks."""
        own = {
            name: value for name, value in params.items() if self.has_parameter(name)
        }
        return self.model_copy(update={"params": {**self.params, **own}})


class Smoke(Section):
    """The size for trying a config out: limits of rows and passes, never of time."""

    rows: PositiveInt = 2000
    n_splits: PositiveInt = 1
    epochs: PositiveInt = 2
    max_iter: PositiveInt = 20
    n_estimators: PositiveInt = 10
    checkpoints: Checkpoints = 4
    sweep: Items[Any] | None = None
    datasets: Items[str] | None = None


def no_splits(missing: Sequence[int], known: Sequence[int]) -> str:
    """Return the message about splits that do not exist."""
    named = ", ".join(map(str, missing[:5]))
    if len(missing) > 5:
        named += ", ..."
    if len(known) > 10:
        available = f"{known[0]} to {known[-1]}"
    else:
        available = ", ".join(map(str, known))
    return f"there is no split {named}: the splits are {available}"


def solver_defaults(solver: str) -> dict[str, Any]:
    """Return the parameters of a solver that a config may set, with their defaults."""
    from precbench.solvers import SOLVERS

    left_out = {"random_state"}  # follows from the seed of the protocol
    if solver in SOLVERS.built_in:
        left_out.add("n_jobs")  # a trial has one thread, and no number depends on it
    params = SOLVERS[solver]().get_params(deep=False)
    return {name: value for name, value in params.items() if name not in left_out}


def is_tuned(value: Any) -> bool:
    """Return whether a value is ``{"tune": candidates}``."""
    return isinstance(value, dict) and set(value) == {"tune"}


def choice_problems(value: Any) -> list[str]:
    """Return the problems of a value that may be ``{tune: [different values]}``."""
    if not isinstance(value, dict):  # a plain value
        return []
    candidates = value["tune"] if is_tuned(value) else None
    if not isinstance(candidates, list) or len(candidates) < 2:
        first_key = next(iter(value), "")
        hint = did_you_mean(first_key, ["tune"])
        return [
            "should be a value, or {tune: [two or more values]}, found"
            f" {reprlib.repr(value)}{hint}"
        ]
    repeated = repeats(map(repr, candidates))  # by text: 1 is not 1.0
    return [
        f"{candidates[i]} is repeated among the values to tune; give each value once"
        for i in repeated
    ]


def parameter_problems(solver: str, name: str, value: Any) -> list[str]:
    """Return the problems of a solver's parameter: its name, or values refused."""
    if name == "random_state":
        return [
            "cannot be set: seeds follow from protocol.seed; set protocol.seed instead"
        ]
    defaults = solver_defaults(solver)
    if name not in defaults:
        hint = did_you_mean(name, [*defaults, *SOLVER_KEYS])
        return [f"unknown parameter of {solver}{hint}"]
    problems = choice_problems(value)
    if problems:
        return problems
    candidates = value["tune"] if is_tuned(value) else [value]
    for candidate in candidates:
        if isinstance(candidate, bool) and not isinstance(defaults[name], bool):
            problems.append(f"should not be true or false, found {candidate}")
        try:
            _check_value(solver, name, candidate)
        except (TypeError, ValueError) as error:
            problems.append(str(error))
    return problems


def _check_value(solver: str, name: str, value: Any) -> None:
    """Raise if a solver refuses the value of a parameter."""
    from precbench.solvers import SOLVERS
    from precbench.solvers.common.parameters import K

    estimator = SOLVERS[solver](**{name: value})
    # `K` is the constraint of a parameter that is a count, a share, or text such as
    # "1 %". For wrong text, `check_k` has a better message than scikit-learn's check.
    if isinstance(value, str) and estimator._parameter_constraints[name] is K:
        check_k(value)
    estimator._validate_params()


def metric_problems(metric: str, params: Mapping[str, Any]) -> list[Problem]:
    """Return the problems of a metric's parameters: names, types, or values refused."""
    spec = METRICS[metric]
    defaults = spec.parameters
    types = get_type_hints(spec.function)
    problems: list[Problem] = []
    for name, default in defaults.items():
        if default is inspect.Parameter.empty and name not in params:
            problems.append(((), f"needs the parameter {name}"))
    for name, value in params.items():
        if name not in defaults:
            hint = did_you_mean(name, defaults)
            problems.append(((name,), f"unknown parameter of {metric}{hint}"))
            continue
        try:
            TypeAdapter(types.get(name, Any)).validate_python(value, strict=True)
        except ValidationError as error:
            problems.append(((name,), in_plain_words(error.errors()[0])))
    if problems:
        return problems
    # Measure a perfect ranking: labels as scores, so many that no count such as k
    # exceeds them.
    counts = [value for value in params.values() if isinstance(value, int)]
    n_pos = max([2, *counts])
    if n_pos > _LARGEST_TRY:  # this would take long
        return []
    labels = [1] * n_pos + [0] * 2
    try:
        spec(labels, labels, **params)
    except ValueError as error:
        return [((), str(error))]
    return []
