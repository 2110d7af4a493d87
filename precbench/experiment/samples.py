"""The rows that a trial trains and is measured on, in memory or streamed."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any, NamedTuple, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from precbench.data import Dataset, StreamedDataset, load_dataset, open_stream, stream_dataset
from precbench.data.own.read import read_own_file
from precbench.data.preprocess import Scaler
from precbench.data.splits import in_share, split_rows, validation_split
from precbench.data.stream.row_stream import Keep, RowStream
from precbench.errors import InputError
from precbench.experiment.sections import Data, FileData, Fourier, StreamedCard, StreamedFile
from precbench.experiment.trial import Split, Trial
from precbench.solvers.base import Trace
from precbench.solvers.rows import Rows, as_rows, linear_scores

Intercepts: TypeAlias = Sequence[float] | NDArray[np.float64] | None

_SCORES_AT_ONCE = 2**23


def read_data(
    entry: Data,
    *,
    mirror: str | None = None,
    stand_ins: bool = True,
    rows: int | None = None,
) -> Dataset:
    """Load what an entry of a config names.

    Parameters
    ----------
    entry : NamedData, FileData, StreamedCard or StreamedFile
    mirror : str, optional
        Folder or address that is asked before the official ones.
    stand_ins : bool, default=True
        False turns ``on_missing: stand-in`` into an error.
    rows : int, optional
        Keep at most so many rows: a random choice, always the same, with the classes in their
        proportions and at least two rows of each. Of a streamed file about so many rows, each
        chosen for itself.

    Returns
    -------
    Dataset
        A `StreamedDataset` for a streamed entry.
    """
    if isinstance(entry, StreamedFile):
        options = entry.model_dump(exclude={"file", "name", "stream"}, exclude_none=True)
        streamed = replace(open_stream(entry.file, **options), name=entry.name, title=entry.name)
        n_rows = streamed.X.shape[0]
        if rows is None or rows >= n_rows:
            return streamed
        return replace(streamed, X=streamed.X.part(_share("rows", 0.0, rows / n_rows)))
    if isinstance(entry, FileData):
        options = entry.model_dump(exclude={"file", "name"}, exclude_none=True)
        dataset = replace(read_own_file(entry.file, **options)[0], name=entry.name)
    else:
        on_missing = entry.on_missing if stand_ins else "error"
        card = entry.card if isinstance(entry, StreamedCard) else entry.name
        dataset = load_dataset(card, mirror=mirror, on_missing=on_missing)
    dataset = dataset if rows is None else _at_most(dataset, rows)
    if isinstance(entry, StreamedCard):
        options = entry.model_dump(include={"block_bytes", "buffer_bytes"}, exclude_none=True)
        return replace(stream_dataset(dataset, **options), name=entry.name)
    return dataset


class Sample(Protocol):
    """Rows that solvers learn from or are measured on."""

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        ...

    @property
    def y(self) -> NDArray[np.float64]:
        """Labels, -1 or +1."""
        ...

    def train(self, solver: Any, trace: Trace) -> None:
        """Fit a solver."""
        ...

    def scores(
        self, weights: NDArray[np.float64], intercepts: Intercepts = None
    ) -> Iterator[NDArray[np.float64]]:
        """Yield the scores of all rows under each of several weights."""
        ...


@dataclass(frozen=True, eq=False)
class InMemory:
    """Rows in memory."""

    X: Any
    y: NDArray[np.float64]

    @property
    def n_rows(self) -> int:  # noqa: D102
        return len(self.y)

    def train(self, solver: Any, trace: Trace) -> None:  # noqa: D102
        solver.fit(self.X, self.y, trace=trace)

    def scores(  # noqa: D102
        self, weights: NDArray[np.float64], intercepts: Intercepts = None
    ) -> Iterator[NDArray[np.float64]]:
        for w, intercept in _with_intercepts(weights, intercepts):
            yield linear_scores(self._rows, w) + intercept

    @cached_property
    def _rows(self) -> Rows:
        return as_rows(self.X)


@dataclass(frozen=True, eq=False)
class Streamed:
    """Rows that are read again at every pass.

    In memory stay the labels and the scores under one weight vector, 16 bytes a row, when
    they are asked for; where rows are few, the scores under several.

    Attributes
    ----------
    stream : RowStream
    name : str
        What messages call the rows.
    """

    stream: RowStream
    name: str

    @property
    def n_rows(self) -> int:  # noqa: D102
        return self.stream.shape[0]

    @cached_property
    def y(self) -> NDArray[np.float64]:  # noqa: D102
        return self.stream.labels()

    def train(self, solver: Any, trace: Trace) -> None:
        """Fit a solver on the shuffled rows, or in stored order with ``shuffle=False``.

        The clock runs while blocks are read and shuffled: that is what streaming costs.
        """
        n_rows, n_features = self.stream.shape
        if not 0 < self.stream.n_pos < n_rows:
            raise InputError(
                f"{self.name} has {n_rows:,} rows, {self.stream.n_pos:,} of them positive: a "
                "ranking needs rows of both classes"
            )
        rng = None if solver.shuffle is False else np.random.default_rng(solver.random_state)
        solver.fit_pieces(n_features, lambda: self.stream.visits(solver.batch_size, rng), trace)

    def scores(  # noqa: D102
        self, weights: NDArray[np.float64], intercepts: Intercepts = None
    ) -> Iterator[NDArray[np.float64]]:
        pairs = _with_intercepts(weights, intercepts)
        at_once = max(1, _SCORES_AT_ONCE // max(1, self.n_rows))
        for first in range(0, len(pairs), at_once):
            some = pairs[first : first + at_once]
            found = np.empty((len(some), self.n_rows))
            start = 0
            for X, y in self.stream:
                rows, stop = as_rows(X), start + len(y)
                for scores, (w, intercept) in zip(found, some, strict=True):
                    scores[start:stop] = linear_scores(rows, w) + intercept
                start = stop
            yield from found


def _with_intercepts(
    weights: NDArray[np.float64], intercepts: Intercepts
) -> list[tuple[NDArray[np.float64], float]]:
    return list(
        zip(weights, [0.0] * len(weights) if intercepts is None else intercepts, strict=True)
    )


class Training(Protocol):
    """The training rows of a trial, and how tuning divides them."""

    @property
    def whole(self) -> Sample:
        """All training rows."""
        ...

    @property
    def fitting(self) -> Sample:
        """Those that candidates are fitted to."""
        ...

    @property
    def validation(self) -> Sample:
        """Those that candidates are compared on."""
        ...


def check_division(rule: Split, dataset: Dataset) -> None:
    """Refuse what a data set cannot be divided by.

    Raises
    ------
    InputError
        A provided split where there is none; for a stream, groups that are to be kept together.
    """
    if rule.kind == "provided" and dataset.n_train is None:
        raise InputError(f"{dataset.name} comes without a provided split; use 'random' or 'kfold'")
    streamed = isinstance(dataset, StreamedDataset)
    if streamed and dataset.groups is not None and rule.groups == "keep":
        raise InputError(
            f"{dataset.name} has groups, and the rows of a stream are divided one by one; set "
            "groups: ignore, or do not stream it"
        )


def training(trial: Trial, dataset: Dataset) -> Training:
    """Gather and scale the training rows of a trial, or say how to stream them."""
    if isinstance(dataset, StreamedDataset):
        return _streamed_training(trial, dataset)
    return training_part(trial, dataset)


def sample(trial: Trial, dataset: Dataset, part: str) -> Sample:
    """Return the rows that a trial is measured on.

    Parameters
    ----------
    trial : Trial
    dataset : Dataset
    part : {"test", "training"}

    Returns
    -------
    Sample
        Scaled as the training rows are.
    """
    if part == "training":
        return training(trial, dataset).whole
    if isinstance(dataset, StreamedDataset):
        return _streamed_test(trial, dataset)
    return InMemory(*test_part(trial, dataset))


@dataclass(frozen=True, eq=False)
class TrainingPart:
    """The training rows in random order, those of the validation part last.

    Attributes
    ----------
    X : ndarray or csr_matrix of shape (n_train, n_features)
        Scaled.
    y : ndarray of shape (n_train,)
    n_fit : int
        Rows before the validation part.
    """

    X: Any
    y: NDArray[np.float64]
    n_fit: int

    @property
    def whole(self) -> InMemory:  # noqa: D102
        return InMemory(self.X, self.y)

    @property
    def fitting(self) -> InMemory:  # noqa: D102
        return InMemory(self.X[: self.n_fit], self.y[: self.n_fit])

    @property
    def validation(self) -> InMemory:  # noqa: D102
        return InMemory(self.X[self.n_fit :], self.y[self.n_fit :])


def training_part(trial: Trial, dataset: Dataset) -> TrainingPart:
    """Gather and scale the training rows: the one copy that a trial makes of them.

    They come in the same order for every solver, so that comparisons on a split are paired.
    Random features, where there are any, take their place.
    """
    divided = _divided(trial, dataset)
    X = dataset.X[divided.train]
    _scaler(trial, dataset, X).transform_in_place(X)
    if trial.fourier is not None:
        X = _fourier(trial.fourier, trial.seed, X).transform(X)
    return TrainingPart(X, dataset.y[divided.train], divided.n_fit)


def test_part(trial: Trial, dataset: Dataset) -> tuple[Any, NDArray[np.float64]]:
    """Gather the rows that a trial is measured on, scaled as the training rows are.

    Returns
    -------
    X : ndarray or csr_matrix of shape (n_test, n_features)
    y : ndarray of shape (n_test,)
    """
    divided = _divided(trial, dataset)
    X = dataset.X[divided.test]
    if trial.scaling != "none" or trial.fourier is not None:
        X_train = dataset.X[divided.train]
        scaler = _scaler(trial, dataset, X_train)
        scaler.transform_in_place(X)
        if trial.fourier is not None:
            scaler.transform_in_place(X_train)
            X = _fourier(trial.fourier, trial.seed, X_train).transform(X)
    return X, dataset.y[divided.test]


class _Divided(NamedTuple):
    train: NDArray[np.intp]  # in random order, those of the validation part last
    n_fit: int
    test: NDArray[np.intp]


def _divided(trial: Trial, dataset: Dataset) -> _Divided:
    rule = trial.split
    if rule.groups == "ignore":
        dataset = replace(dataset, groups=None)
    split = split_rows(
        dataset,
        rule.kind,
        rule.fold if rule.kind == "kfold" else rule.index,
        n_splits=rule.n_splits,
        test_size=rule.test_size,
        train_size=rule.train_size,
        stratified=rule.stratified,
        seed=rule.seed,
    )
    train = split.train
    groups = None if dataset.groups is None else dataset.groups[train]
    try:
        fit, validation = validation_split(
            dataset.y[train], trial.validation_size, [trial.seed, "validation"], groups
        )
    except InputError:  # too few rows for a validation part
        if trial.candidates:
            raise
        return _Divided(train, len(train), split.test)
    return _Divided(train[np.concatenate([fit, validation])], len(fit), split.test)


def _scaler(trial: Trial, dataset: Dataset, X_train: Any) -> Scaler:
    return Scaler(trial.scaling).fit(X_train if trial.scaling_fitted_on == "train" else dataset.X)


def _fourier(kind: Fourier, seed: int, X_train: Any) -> Any:
    """Return a fitted map from scaled rows to random features."""
    from sklearn.kernel_approximation import RBFSampler

    gamma = "scale" if kind.gamma is None else kind.gamma
    return RBFSampler(gamma=gamma, n_components=kind.n_components, random_state=seed).fit(X_train)


# --- streams: every row draws its part for itself, by its number ---


class StreamedTraining(NamedTuple):
    """The training rows of a streamed data set."""

    whole: Streamed
    fitting: Streamed
    validation: Streamed


def _streamed_training(trial: Trial, dataset: StreamedDataset) -> StreamedTraining:
    whole = _training_rows(trial, dataset)
    scaled = whole.scaled(trial.scaling, _fitted_on(trial, dataset))
    held_out = _share("validation", 0.0, trial.validation_size, trial.seed)
    name = f"the training part of {dataset.name}"
    return StreamedTraining(
        Streamed(scaled, name),
        Streamed(scaled.part(_all_but(held_out)), f"{name} without the validation part"),
        Streamed(scaled.part(held_out), f"the validation part of {dataset.name}"),
    )


def _streamed_test(trial: Trial, dataset: StreamedDataset) -> Streamed:
    rows = dataset.X.part(_tested(trial.split, dataset))
    scaled = rows.scaled(trial.scaling, _fitted_on(trial, dataset))
    return Streamed(scaled, f"the test part of {dataset.name}")


def _training_rows(trial: Trial, dataset: StreamedDataset) -> RowStream:
    if trial.split.kind == "none":
        return dataset.X
    return dataset.X.part(_all_but(_tested(trial.split, dataset)))


def _fitted_on(trial: Trial, dataset: StreamedDataset) -> RowStream:
    return _training_rows(trial, dataset) if trial.scaling_fitted_on == "train" else dataset.X


def _tested(rule: Split, dataset: StreamedDataset) -> Keep:
    if rule.kind == "provided":
        n_train = dataset.n_train or 0  # `check_division` has seen that there is one
        return lambda rows: rows >= n_train
    low, high = {
        "random": (0.0, rule.test_size),
        "kfold": (rule.fold / rule.n_splits, (rule.fold + 1) / rule.n_splits),
    }.get(rule.kind, (0.0, 1.0))
    return _share("test", low, high, rule.seed)


def _share(what: str, low: float, high: float, *seeds: int) -> Keep:
    return partial(in_share, key=(*seeds, what), low=low, high=high)


def _all_but(keep: Keep) -> Keep:
    return lambda rows: ~keep(rows)


def _at_most(dataset: Dataset, rows: int) -> Dataset:
    if dataset.X.shape[0] <= rows:
        return dataset
    rng = np.random.default_rng(0)
    kept = []
    for label in (-1.0, 1.0):
        members = np.flatnonzero(dataset.y == label)
        share = max(2, round(rows * len(members) / len(dataset.y)))
        kept.append(rng.choice(members, min(share, len(members)), replace=False))
    chosen = np.sort(np.concatenate(kept))
    return replace(
        dataset,
        X=dataset.X[chosen],
        y=dataset.y[chosen],
        groups=None if dataset.groups is None else dataset.groups[chosen],
        n_train=None if dataset.n_train is None else int(np.sum(chosen < dataset.n_train)),
    )
