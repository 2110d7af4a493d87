"""The rows that a trial trains and is measured on, in memory or streamed."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, TypeAlias, cast

import numpy as np
from numpy.typing import NDArray

from precbench.core.errors import InputError
from precbench.core.kinds import Dtype
from precbench.data import Dataset, StreamedDataset, load_dataset, stream_dataset
from precbench.data.dataset import parts
from precbench.data.preprocess import Scaler
from precbench.data.row_stream import Keep, RowStream
from precbench.data.splits import RowSplit
from precbench.experiment.division import (
    StreamDivision,
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
# of the rarer class among drawn rows, so that metrics can be measured
_LEAST_SHARE = 0.02


def read_data(
    entry: Data,
    *,
    mirror: str | None = None,
    stand_ins: bool = True,
    rows: int | None = None,
    dtype: Dtype = "float64",
) -> Dataset:
    """Load the data set of a config entry.

    Of more than `rows` rows, about `rows` are drawn.
    """
    # Runs draw alike. Without `stand_ins` a missing data set is an error, whatever
    # `on_missing` is.
    if isinstance(entry, StreamedFile):
        return _open_stream(entry, rows, dtype)
    if isinstance(entry, FileData):
        from precbench.tables.own_file import read_own_file

        # The other fields are arguments of the function that reads the file.
        options = entry.model_dump(exclude={"file", "name"}, exclude_none=True)
        dataset, _encoding = read_own_file(entry.file, dtype=dtype, **options)
        # With `split_key=None` the splits depend on the name in the config, not on the
        # labels.
        dataset = replace(dataset, name=entry.name, title=entry.name, split_key=None)
    else:
        stand_in = stand_ins and entry.on_missing == "stand-in"
        card = entry.card if isinstance(entry, StreamedCard) else entry.name
        dataset = load_dataset(
            card,
            mirror=mirror,
            on_missing="stand-in" if stand_in else "error",
            dtype=dtype,
        )
    dataset = dataset if rows is None else _subsample_rows(dataset, rows)
    if isinstance(entry, StreamedCard):
        options = entry.model_dump(
            include={"block_bytes", "buffer_bytes"}, exclude_none=True
        )
        return replace(stream_dataset(dataset, **options), name=entry.name)
    return dataset


def _open_stream(
    entry: StreamedFile, rows: int | None, dtype: Dtype
) -> StreamedDataset:
    """Open a streamed file.

    Each row is drawn by itself, so that about `rows` rows are kept.
    """
    from precbench.tables.streamed_files import open_stream

    options = entry.model_dump(exclude={"file", "name", "stream"}, exclude_none=True)
    opened = open_stream(entry.file, dtype=dtype, **options)
    X = opened.X
    if rows is not None and rows < X.shape[0]:
        X = X.part(keep_share(0.0, rows / X.shape[0], "rows"))
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
        """Fit a solver, or solvers with equal visits to the rows.

        Traces record the fits.
        """
        # a single solver may lack `visits`, which `fit_together` needs
        if len(solvers) == 1:
            solvers[0].fit(self.X, self.y, trace=traces[0])
        else:
            fit_together(list(map(Fit, solvers, traces)), self.X, self.y)

    def scored_by(self, solver: Ranker) -> NDArray[np.float64]:
        # the scores of all rows
        return solver.decision_function(self.X)

    def scores(
        self,
        weights: NDArray[np.float64],
        intercepts: Intercepts = None,
        # the scores of all rows under each weight vector
    ) -> Iterator[NDArray[np.float64]]:
        for w, intercept in _with_intercepts(weights, intercepts):
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
    def y(self) -> NDArray[np.float64]:  # read from the stream once
        return self.X.labels()

    def train(self, solvers: Sequence[Any], traces: Sequence[Trace]) -> None:
        """Fit solvers on the shuffled rows, or in stored order with ``shuffle=False``."""
        # The clock runs while blocks are read and shuffled, which is the cost of
        # streaming.
        n_rows, n_features = self.X.shape
        if not 0 < self.X.n_pos < n_rows:
            raise InputError(
                f"{self.name} has {n_rows:,} rows, {self.X.n_pos:,} of them positive; a"
                " ranking needs rows of both classes: set another protocol.seed, or"
                " take more rows"
            )
        first = solvers[0]  # all solvers have one shuffle, seed and batch size
        rng = (
            None
            if first.shuffle is False
            else np.random.default_rng(first.random_state)
        )
        fits = list(map(Fit, solvers, traces))  # each solver with its trace
        fit_pieces_together(
            fits, n_features, lambda: self.X.visits(first.batch_size, rng)
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
        """Yield the scores of all rows under each weight vector.

        One reading serves several.
        """
        models = _with_intercepts(weights, intercepts)
        at_once = max(1, _SCORES_AT_ONCE // max(1, self.n_rows))  # models of a reading
        for first in range(0, len(models), at_once):
            batch = models[first : first + at_once]  # pairs of weights and intercept
            scores = np.empty((len(batch), self.n_rows))
            start = 0
            for X, y in self.X:  # blocks of rows
                rows, stop = as_rows(X), start + len(y)
                for model, (w, intercept) in enumerate(batch):
                    scores[model, start:stop] = linear_scores(rows, w) + intercept
                start = stop
            yield from scores


def _with_intercepts(
    weights: NDArray[np.float64],
    intercepts: Intercepts,
    # by weight vector; an intercept not given is 0
) -> list[tuple[NDArray[np.float64], float]]:
    return list(
        zip(
            weights,
            [0.0] * len(weights) if intercepts is None else intercepts,
            strict=True,
        )
    )


# Rows that solvers learn from or are measured on
Sample: TypeAlias = InMemory | Streamed


class Rows:
    """The rows of a trial, scaled; each part is prepared once, at the first use."""

    def __init__(self, trial: Trial, dataset: Dataset):
        self._trial, self._dataset = trial, dataset

    @cached_property
    def split(self) -> tuple[RowSplit, int]:
        """The row numbers of the parts, and how many training rows are for fitting."""
        return divide_rows(self._trial, self._dataset)

    @cached_property
    def training(self) -> Sample:
        """All training rows.

        The arrays are made read-only, since they may serve several trials.
        """
        if isinstance(self._dataset, StreamedDataset):
            return self._streamed("training", self._streams.train)
        X, _prepare = self._prepared
        division, _n_fit = self.split
        rows = InMemory(X, self._dataset.y[division.train])
        # `parts`: X, or the three arrays of a sparse X
        for array in (rows.y, *parts(X)):
            array.flags.writeable = False
        return rows

    @cached_property
    def test(self) -> Sample:
        # The test rows, prepared (scaled, random features) as fitted to the training
        # rows
        if isinstance(self._dataset, StreamedDataset):
            return self._streamed("test", self._streams.test)
        (train, test), _n_fit = self.split
        # gaps are filled in from the training rows
        X = self._dataset.gathered(test, train)
        if self._trial.scaling != "none" or self._trial.fourier is not None:
            _, prepare = self._prepared  # also prepares the training rows
            X = prepare(X)
        return InMemory(X, self._dataset.y[test])

    def part(self, name: str) -> Sample:  # named "training" or "test"
        return self.test if name == "test" else self.training

    @cached_property
    def divisions(self) -> Sequence[tuple[Any, Any]]:
        """Pairs.

        Training rows to fit candidates to, and training rows to compare candidates on.
        """
        # Rows are a slice or places among the training rows; of a stream, a function
        # picks rows.
        trial = self._trial
        if isinstance(self._dataset, StreamedDataset):
            validation = self._streams.validation
            return [(all_but(validation), validation)]
        split, n_fit = self.split  # the first `n_fit` training rows are for fitting
        if trial.folds and trial.candidates:
            return divide_into_folds(trial, self._dataset, split.train)
        n_all = len(split.train)
        fraction = min(1.0, trial.tuning_rows / n_all) if trial.tuning_rows else 1.0
        n_validation = round(fraction * (n_all - n_fit))
        # `tuning_rows` keeps the first rows of each of the two parts, which are in
        # random order.
        return [(slice(round(fraction * n_fit)), slice(n_fit, n_fit + n_validation))]

    @cached_property
    def _streams(self) -> StreamDivision:
        assert isinstance(self._dataset, StreamedDataset)
        return divide_stream(self._trial, self._dataset)

    def _streamed(self, part: str, rows: RowStream) -> Streamed:
        """Return the rows of a part of a stream, scaled.

        The part's name is for messages.
        """
        trial, all_rows = self._trial, cast(RowStream, self._dataset.X)
        fitted_on = (
            self._streams.train if trial.scaling_fitted_on == "train" else all_rows
        )
        return Streamed(
            rows.scaled(trial.scaling, fitted_on),
            f"the {part} set of {self._dataset.name}",
        )

    @cached_property
    def _prepared(self) -> tuple[Any, Callable[[Any], Any]]:
        """The prepared training rows, and a function that prepares other rows, perhaps in place."""
        trial, (division, _n_fit) = self._trial, self.split
        train = division.train
        X_train = self._dataset.gathered(train, train)
        fitted_on = X_train if trial.scaling_fitted_on == "train" else self._dataset.X
        scale = Scaler(trial.scaling).fit(fitted_on).transform_in_place
        X = scale(X_train)  # in place, which is safe, as X_train is a copy
        if (features := trial.fourier) is None:
            return X, scale
        from precbench.solvers.common.random_features import fitted_sampler, mapped

        sampler = fitted_sampler(
            X, features.n_components, features.gamma, features.bandwidth, trial.seed
        )
        return mapped(sampler, X), lambda X: mapped(sampler, scale(X))


def _subsample_rows(dataset: Dataset, rows: int) -> Dataset:
    """Return about `rows` rows, drawn by class, 2 or more of each class.

    All if there are fewer.
    """
    # The rarer class gets the larger of its share and `_LEAST_SHARE`, but at most all
    # its rows.
    if dataset.X.shape[0] <= rows:
        return dataset
    rng = np.random.default_rng(0)  # every run draws equal rows
    # row numbers by class
    members = [np.flatnonzero(dataset.y == label) for label in (-1.0, 1.0)]
    sizes = [max(2, round(rows * len(numbers) / len(dataset.y))) for numbers in members]
    # `rare`: place in `sizes`
    rare, fewest = int(np.argmin(sizes)), round(_LEAST_SHARE * rows)
    if sizes[rare] <= fewest:
        rare_size = min(fewest, len(members[rare]))
        # 1 - rare: the common class
        sizes[rare], sizes[1 - rare] = rare_size, rows - rare_size
    drawn = [
        rng.choice(numbers, min(size, len(numbers)), replace=False)
        for numbers, size in zip(members, sizes, strict=True)
    ]
    # In stored order, so that the provided training rows stay in front.
    chosen = np.sort(np.concatenate(drawn))
    return replace(
        dataset,
        X=dataset.X[chosen],
        y=dataset.y[chosen],
        groups=None if dataset.groups is None else dataset.groups[chosen],
        time=None if dataset.time is None else dataset.time[chosen],
        imputed=None if dataset.imputed is None else dataset.imputed.select(chosen),
        n_train=(
            None if dataset.n_train is None else int(np.sum(chosen < dataset.n_train))
        ),
    )
