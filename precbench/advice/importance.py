"""The importance of columns: what a held-out ranking loses where one is shuffled."""

from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from precbench.core.errors import InputError
from precbench.core.strict_json import Count, Fields, Number
from precbench.core.text import count
from precbench.ranking.metrics import average_precision
from precbench.ranking.statistics import resampled_interval
from precbench.report.table import Table, text_table

if TYPE_CHECKING:
    from precbench.model.model import Model
    from precbench.tables.encoding import Encoding

# Measured on each split, so that a split takes seconds.
_MOST_ROWS = 2_000
_MOST_COLUMNS = 20
# Rows whose contributions to scores choose the columns, where there are more.
_EXPLAINED = 50
_MOST_VALUES = 2**22  # of these contributions, which take 32 MiB


class _ColumnLoss(Fields):
    """What average precision loses where one column is shuffled."""

    column: str
    loss: Number
    interval: Annotated[list[Number], Field(min_length=2, max_length=2)] | None = None


class Importance(Fields):
    """What average precision loses where a column is shuffled, as values of JSON.

    Losses are means over the splits, the greatest first, with 95 % intervals (None for
    one split). At most 2,000 held-out rows of each split are measured, half of them
    positive if there are enough, and the 20 columns that contribute most to scores.
    """

    splits: Count
    rows: Count
    positives: Count
    average_precision: Number
    columns: list[_ColumnLoss]


class _ShuffledColumn(NamedTuple):
    """A column whose values are shuffled, and the places of its features in X."""

    name: str
    features: slice


class _MeasuredSplit(NamedTuple):
    """The average precision of held-out rows, and what it loses, column by column."""

    rows: int
    positives: int
    average_precision: float
    losses: list[float]


class Shuffling:
    """Measures the importance of columns.

    `measure` each split, then ask for `importance`.
    """

    def __init__(self, encoding: "Encoding | None" = None):
        self._encoding = encoding
        self._columns: list[_ShuffledColumn] | None = None
        self._splits: list[_MeasuredSplit] = []

    def measure(self, model: "Model", X: Any, y: NDArray[np.float64]) -> None:
        """Measure what average precision `model` loses where a column is shuffled.

        X and y are held-out rows and their labels.
        """
        # The encoding names the columns and their features.
        named = replace(model, encoding=self._encoding)
        rng = np.random.default_rng(len(self._splits))  # another seed for each split
        sample = _sample(y, rng)
        rows = X[sample]
        labels = y[sample]
        if self._columns is None:  # the first split chooses the columns for all splits
            self._columns = _most_contributing(named, rows, rng)
        intact = average_precision(labels, named.decision_function(rows))
        losses = []
        for column in self._columns:
            shuffled = _shuffled(rows, column.features, rng.permutation(len(labels)))
            remaining = average_precision(labels, named.decision_function(shuffled))
            losses.append(intact - remaining)
        n_pos = int(np.count_nonzero(labels > 0))
        self._splits.append(_MeasuredSplit(len(labels), n_pos, intact, losses))

    def importance(self, test_share: float) -> Importance | None:
        """Return means and intervals over the splits; None if nothing was measured."""
        if not self._columns:
            return None
        splits = self._splits
        columns = []
        for i, column in enumerate(self._columns):
            losses = [split.losses[i] for split in splits]
            mean, low, high = resampled_interval(losses, test_share)
            interval = None if len(splits) == 1 else [low, high]
            columns.append(
                _ColumnLoss(column=column.name, loss=mean, interval=interval)
            )
        return Importance(
            splits=len(splits),
            rows=round(float(np.mean([split.rows for split in splits]))),
            positives=round(float(np.mean([split.positives for split in splits]))),
            average_precision=float(
                np.mean([split.average_precision for split in splits])
            ),
            columns=sorted(columns, key=lambda column: -column.loss),
        )


def _sample(y: NDArray[np.float64], rng: np.random.Generator) -> NDArray[np.intp]:
    """Draw up to `_MOST_ROWS` rows, and return their numbers, ascending.

    Half of them are of each class if it has enough.
    """
    positive = rng.permutation(np.flatnonzero(y > 0))
    negative = rng.permutation(np.flatnonzero(y < 0))
    most_pos = max(_MOST_ROWS // 2, _MOST_ROWS - len(negative))
    drawn_pos = positive[:most_pos]
    drawn_neg = negative[: _MOST_ROWS - len(drawn_pos)]
    return np.sort(np.concatenate([drawn_pos, drawn_neg]))


def _most_contributing(
    model: "Model", X: Any, rng: np.random.Generator
) -> list[_ShuffledColumn]:
    """Return the `_MOST_COLUMNS` columns that contribute most to scores.

    Return none of many columns if the model cannot be explained.
    """
    columns = [
        _ShuffledColumn(column.name, features) for column, features in model.spans
    ]
    if len(columns) <= _MOST_COLUMNS:
        return columns
    # A dense array of contributions has at most `_MOST_VALUES`.
    n_explained = min(_EXPLAINED, max(1, _MOST_VALUES // model.n_features))
    sample = rng.permutation(X.shape[0])[:n_explained]
    try:
        contributions = np.abs(model.explain(X[sample]).to_numpy()).sum(axis=0)
    except InputError:  # trees of random features cannot be explained
        return []
    greatest = np.argsort(-contributions, kind="stable")[:_MOST_COLUMNS]
    return [columns[j] for j in np.sort(greatest)]  # in the order of the table


def _shuffled(X: Any, features: slice, order: NDArray[np.intp]) -> Any:
    """Return a copy of X in which the values of `features` change rows.

    All these values of a row go to one row, by the permutation `order`.
    """
    if isinstance(X, np.ndarray):
        dense = X.copy()
        dense[:, features] = X[order, features]
        return dense
    sparse = X.tocsc(copy=True)
    entries = slice(sparse.indptr[features.start], sparse.indptr[features.stop])
    # An entry of row i goes to row order[i].
    sparse.indices[entries] = order[sparse.indices[entries]]
    sparse.has_sorted_indices = False
    return sparse.tocsr()


def importance_table(importance: Importance, title: str) -> Table:
    """Return the importance of columns as a table.

    A note asks if a dominant column is a leak.
    """
    rows = []
    doubts = []
    for measured in importance.columns:
        interval = ""
        if measured.interval is not None:
            low, high = measured.interval
            interval = f"{low:.3f} to {high:.3f}"
        rows.append([measured.column, f"{measured.loss:.3f}", interval])
        if measured.loss > importance.average_precision / 2:
            doubts.append(
                f"Over half of this precision depends on {measured.column}: is this"
                " column known before the label?"
            )
    note = (
        f"Drop in average precision ({importance.average_precision:.3f} on"
        f" {importance.rows:,} held-out rows) when the values of a column are shuffled;"
        f" means of {count(importance.splits, 'split')}."
    )
    return text_table(title, ["column", "loss", "95 %"], rows, note, *doubts)
