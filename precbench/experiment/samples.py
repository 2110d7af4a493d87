"""The rows that a trial trains and is measured on, in memory or streamed."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple, TypeAlias, cast

import numpy as np
from numpy.typing import NDArray

from precbench.core.errors import InputError
from precbench.core.kinds import Dtype
from precbench.data import Dataset, StreamedDataset, load_dataset, stream_dataset
from precbench.data.dataset import parts
from precbench.data.preprocess import Scaler
from precbench.data.row_stream import Keep, RowStream
from precbench.experiment.division import (
    RowDivision,
    StreamDivision,
    TuningDivision,
    all_but,
    divide_into_folds,
    divide_rows,
    divide_stream,
    keep_share,
)
from precbench.experiment.sections import Data, FileData, StreamedCard, StreamedFile
from precbench.experiment.trial import Trial
from precbench.solvers.common.base import LinearRanker, Ranker, Trace
from precbench.solvers.common.driver import Fit, fit_pieces_together, fit_together
from precbench.solvers.common.rows import Rows as SolverRows
from precbench.solvers.common.rows import as_rows, linear_scores

Intercepts: TypeAlias = Sequence[float] | NDArray[np.float64] | None

_SCORES_AT_ONCE = 2**23  # of streamed rows, 64 MiB
# The least share of the rarer class among drawn rows, chosen so that metrics can be
# measured
_LEAST_SHARE = 0.02


def read_data(
    entry: Data,
    *,
    mirror: str | None = None,
    stand_ins: bool = True,
    rows: int | None = None,
    dtype: Dtype = "float64",
) -> Dataset:
    """Load the data set of a config entry; of more than `rows` rows, so many are drawn.

    Every run draws the same rows. Without `stand_ins` a missing data set is an error,
    whatever ``on_missing`` is.
    """
    if isinstance(entry, StreamedFile):
        return _open_stream(entry, rows, dtype)
    if isinstance(entry, FileData):
        dataset = _read_file(entry, dtype)
    else:
        card = entry.card if isinstance(entry, StreamedCard) else entry.name
        allows_stand_in = stand_ins and entry.on_missing == "stand-in"
        dataset = load_dataset(
            card,
            mirror=mirror,
            on_missing="stand-in" if allows_stand_in else "error",
            dtype=dtype,
        )
    if rows is not None:
        dataset = _subsample_rows(dataset, rows)
    if isinstance(entry, StreamedCard):
        options = entry.model_dump(
            include={"block_bytes", "buffer_bytes"}, exclude_none=True
        )
        return replace(stream_dataset(dataset, **options), name=entry.name)
    return dataset


def _read_file(entry: FileData, dtype: Dtype) -> Dataset:
    from precbench.tables.own_file import read_own_file

    # All other fields are arguments of the function that reads the file.
    options = entry.model_dump(exclude={"file", "name"}, exclude_none=True)
    dataset, _encoding = read_own_file(entry.file, dtype=dtype, **options)
    # With `split_key=None` the splits depend on the name in the config, not on the
    # labels.
    return replace(dataset, name=entry.name, title=entry.name, split_key=None)


def _open_stream(
    entry: StreamedFile, rows: int | None, dtype: Dtype
) -> StreamedDataset:
    """Open a streamed file; each row is drawn by itself, so that about `rows` stay."""
    from precbench.tables.streamed_files import open_stream

    options = entry.model_dump(exclude={"file", "name", "stream"}, exclude_none=True)
    opened = open_stream(entry.file, dtype=dtype, **options)
    X = opened.X
    n_rows = X.shape[0]
    if rows is not None and rows < n_rows:
        X = X.part(keep_share(0.0, rows / n_rows, "rows"))
    return replace(opened, X=X, name=entry.name, title=entry.name)


@dataclass(frozen=True, eq=False)
class InMemory:
    """Rows of an array or a CSR matrix."""

    X: Any
    y: NDArray[np.float64]

    def part(self, rows: slice | NDArray[np.intp]) -> "InMemory":
        return InMemory(self.X[rows], self.y[rows])

    @property
    def n_rows(self) -> int:
        return len(self.y)

    def train(self, solvers: Sequence[Any], traces: Sequence[Trace]) -> None:
        """Fit one solver, or several with equal visits to the rows; call the traces."""
        if len(solvers) == 1:  # it may lack `visits`, which `fit_together` needs
            solvers[0].fit(self.X, self.y, trace=traces[0])
        else:
            fit_together(list(map(Fit, solvers, traces)), self.X, self.y)

    def scored_by(self, solver: Ranker) -> NDArray[np.float64]:
        """Return the scores of all rows."""
        return solver.decision_function(self.X)

    def scores(
        self, weights: NDArray[np.float64], intercepts: Intercepts = None
    ) -> Iterator[NDArray[np.float64]]:
        """Yield the scores of all rows under each weight vector."""
        for w, intercept in _models(weights, intercepts):
            yield linear_scores(self._rows, w) + intercept

    @cached_property
    def _rows(self) -> SolverRows:
        return as_rows(self.X)


@dataclass(frozen=True, eq=False)
class Streamed:
    """Rows that are read again at every pass; `name` is used in messages.

    Once used, the labels and the scores under one weight vector are in memory, 16 bytes
    a row; of few rows, the scores under several weight vectors.
    """

    X: RowStream
    name: str

    def part(self, rows: Keep) -> "Streamed":
        return Streamed(self.X.part(rows), f"a part of {self.name}")

    @property
    def n_rows(self) -> int:
        return self.X.shape[0]

    @cached_property
    def y(self) -> NDArray[np.float64]:
        """The labels, read from the stream once."""
        return self.X.labels()

    def train(self, solvers: Sequence[Any], traces: Sequence[Trace]) -> None:
        """Fit solvers on shuffled rows, or in stored order with ``shuffle=False``.

        The clock runs while blocks are read and shuffled, the cost of streaming.
        """
        n_rows, n_features = self.X.shape
        if not 0 < self.X.n_pos < n_rows:
            raise InputError(
                f"{self.name} has {n_rows:,} rows, {self.X.n_pos:,} of them positive; a"
                " ranking needs rows of both classes: set another protocol.seed, or"
                " take more rows"
            )
        any_solver = solvers[0]  # all have one shuffle, seed and batch size
        rng = None
        if any_solver.shuffle is not False:
            rng = np.random.default_rng(any_solver.random_state)
        fits = list(map(Fit, solvers, traces))
        fit_pieces_together(
            fits, n_features, lambda: self.X.visits(any_solver.batch_size, rng)
        )

    def scored_by(self, solver: Ranker) -> NDArray[np.float64]:
        """Return the scores of all rows; a stream has linear solvers only."""
        assert isinstance(solver, LinearRanker)
        [scores] = self.scores(
            solver.coef_[np.newaxis], [getattr(solver, "intercept_", 0.0)]
        )
        return scores

    def scores(
        self, weights: NDArray[np.float64], intercepts: Intercepts = None
    ) -> Iterator[NDArray[np.float64]]:
        """Yield the scores of all rows by weight vector; one reading serves several."""
        models = _models(weights, intercepts)
        n_at_once = max(1, _SCORES_AT_ONCE // max(1, self.n_rows))
        for first in range(0, len(models), n_at_once):
            yield from self._scores_of_a_reading(models[first : first + n_at_once])

    def _scores_of_a_reading(self, models: Sequence["_Model"]) -> NDArray[np.float64]:
        """Return the scores of all rows, in a row for each model."""
        scores = np.empty((len(models), self.n_rows))
        start = 0
        for block, labels in self.X:
            stop = start + len(labels)
            rows = as_rows(block)
            for number, (w, intercept) in enumerate(models):
                scores[number, start:stop] = linear_scores(rows, w) + intercept
            start = stop
        return scores


class _Model(NamedTuple):
    weights: NDArray[np.float64]
    intercept: float


def _models(weights: NDArray[np.float64], intercepts: Intercepts) -> list[_Model]:
    """Return weight vectors with their intercepts, which are 0 if not given."""
    if intercepts is None:
        return [_Model(w, 0.0) for w in weights]
    return [
        _Model(w, intercept) for w, intercept in zip(weights, intercepts, strict=True)
    ]


# Rows that solvers learn from or are measured on
Sample: TypeAlias = InMemory | Streamed


class Rows:
    """The rows of a trial, scaled; each part is prepared once, at the first use."""

    def __init__(self, trial: Trial, dataset: Dataset):
        self._trial = trial
        self._dataset = dataset

    @cached_property
    def division(self) -> RowDivision:
        """The row numbers of the parts."""
        return divide_rows(self._trial, self._dataset)

    @cached_property
    def training(self) -> Sample:
        """All training rows, read-only, since they may serve several trials."""
        if isinstance(self._dataset, StreamedDataset):
            return self._streamed("training", self._streams.train)
        X = self._prepared.X_train
        y = self._dataset.y[self.division.split.train]
        # `parts`: X, or the three arrays of a sparse X
        for array in (y, *parts(X)):
            array.flags.writeable = False
        return InMemory(X, y)

    @cached_property
    def test(self) -> Sample:
        """The test rows, prepared as fitted to the training rows."""
        if isinstance(self._dataset, StreamedDataset):
            return self._streamed("test", self._streams.test)
        split = self.division.split
        # gaps are filled in from the training rows
        X = self._dataset.gathered(split.test, split.train)
        # else the training rows need not be read
        if self._trial.scaling != "none" or self._trial.fourier is not None:
            X = self._prepared.prepare(X)
        return InMemory(X, self._dataset.y[split.test])

    def part(self, name: str) -> Sample:
        """Return the part named "training" or "test"."""
        return self.test if name == "test" else self.training

    @cached_property
    def divisions(self) -> Sequence[TuningDivision]:
        """Divisions of the training rows, on which candidates are compared."""
        trial = self._trial
        if isinstance(self._dataset, StreamedDataset):
            validation = self._streams.validation
            return [TuningDivision(all_but(validation), validation)]
        split, n_fit = self.division
        if trial.folds and trial.candidates:
            return divide_into_folds(trial, self._dataset, split.train)
        n_train = len(split.train)
        fraction = 1.0
        if trial.tuning_rows:
            fraction = min(1.0, trial.tuning_rows / n_train)
        # The first `n_fit` training rows are for fitting, the others for validation.
        # Both parts are in random order, so that tuning may take the first of each.
        n_fit_tuning = round(fraction * n_fit)
        n_validation = round(fraction * (n_train - n_fit))
        fit_rows = slice(n_fit_tuning)
        validation_rows = slice(n_fit, n_fit + n_validation)
        return [TuningDivision(fit_rows, validation_rows)]

    @cached_property
    def _streams(self) -> StreamDivision:
        assert isinstance(self._dataset, StreamedDataset)
        return divide_stream(self._trial, self._dataset)

    def _streamed(self, part: str, rows: RowStream) -> Streamed:
        """Return the scaled rows of a part of a stream, whose name is for messages."""
        trial = self._trial
        if trial.scaling_fitted_on == "train":
            fitted_on = self._streams.train
        else:
            fitted_on = cast(RowStream, self._dataset.X)
        return Streamed(
            rows.scaled(trial.scaling, fitted_on),
            f"the {part} set of {self._dataset.name}",
        )

    @cached_property
    def _prepared(self) -> "_Prepared":
        """The prepared training rows, and a function that prepares other rows."""
        trial = self._trial
        train = self.division.split.train
        X_train = self._dataset.gathered(train, train)
        fitted_on = X_train if trial.scaling_fitted_on == "train" else self._dataset.X
        scale = Scaler(trial.scaling).fit(fitted_on).transform_in_place
        X = scale(X_train)  # in place, which is safe, as X_train is a copy
        features = trial.fourier
        if features is None:
            return _Prepared(X, scale)
        from precbench.solvers.common.random_features import fitted_sampler, mapped

        sampler = fitted_sampler(
            X, features.n_components, features.gamma, features.bandwidth, trial.seed
        )

        def scale_and_map(rows: Any) -> Any:
            return mapped(sampler, scale(rows))

        return _Prepared(mapped(sampler, X), scale_and_map)


class _Prepared(NamedTuple):
    X_train: Any
    prepare: Callable[[Any], Any]  # returns other rows prepared, and overwrites them


def _subsample_rows(dataset: Dataset, rows: int) -> Dataset:
    """Return about `rows` rows, drawn by class, 2 or more of each class."""
    if dataset.X.shape[0] <= rows:
        return dataset
    rng = np.random.default_rng(0)  # every run draws equal rows
    negatives = np.flatnonzero(dataset.y == -1.0)
    positives = np.flatnonzero(dataset.y == 1.0)
    n_neg, n_pos = _sizes_by_class(len(negatives), len(positives), rows)
    drawn = [
        rng.choice(negatives, min(n_neg, len(negatives)), replace=False),
        rng.choice(positives, min(n_pos, len(positives)), replace=False),
    ]
    # In stored order, so that the provided training rows stay in front.
    chosen = np.sort(np.concatenate(drawn))
    changes: dict[str, Any] = {"X": dataset.X[chosen], "y": dataset.y[chosen]}
    if dataset.groups is not None:
        changes["groups"] = dataset.groups[chosen]
    if dataset.time is not None:
        changes["time"] = dataset.time[chosen]
    if dataset.imputed is not None:
        changes["imputed"] = dataset.imputed.select(chosen)
    if dataset.n_train is not None:
        changes["n_train"] = int(np.sum(chosen < dataset.n_train))
    return replace(dataset, **changes)


def _sizes_by_class(n_neg: int, n_pos: int, n_drawn: int) -> tuple[int, int]:
    """Return how many of `n_neg` negatives and of `n_pos` positives to draw.

    The classes keep their shares of `n_drawn` rows, but the rarer class gets at least
    `_LEAST_SHARE`, if it has so many rows.
    """
    n_rows = n_neg + n_pos
    neg_size = max(2, round(n_drawn * n_neg / n_rows))
    pos_size = max(2, round(n_drawn * n_pos / n_rows))
    least_size = round(_LEAST_SHARE * n_drawn)
    if min(neg_size, pos_size) > least_size:
        return neg_size, pos_size
    if neg_size <= pos_size:  # the negatives are rare
        neg_size = min(least_size, n_neg)
        return neg_size, n_drawn - neg_size
    pos_size = min(least_size, n_pos)
    return n_drawn - pos_size, pos_size
