"""The importance of columns on held-out rows.

What a ranking loses where one is shuffled.
"""

from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any

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

# measured on each split, so that a split takes seconds
_MOST_ROWS, _MOST_COLUMNS = 2_000, 20
# rows whose contributions to scores choose the columns, where there are more
_EXPLAINED = 50
_MOST_VALUES = 2**22  # of these contributions, which take 32 MiB


class _OfColumn(Fields):  # the importance of one column
    column: str
    loss: Number  # of average precision
    interval: Annotated[list[Number], Field(min_length=2, max_length=2)] | None = None


class Importance(Fields):
    """What average precision loses where the values of a column are shuffled, as values of JSON.

    Losses are means over the splits, the greatest first, with 95 % intervals (None for
    one split). At most 2,000 held-out rows of each split are measured, half of them
    positive if there are enough, and the 20 columns that contribute most to scores.
    """

    splits: Count
    rows: Count
    positives: Count
    average_precision: Number
    columns: list[_OfColumn]


class Shuffling:
    """Measures the importance of columns.

    `measure` each split, then ask for `importance`.
    """

    def __init__(self, encoding: "Encoding | None" = None):
        self._encoding = encoding
        self._columns: list[tuple[str, slice]] | None = None  # names and features
        # Of each split: rows, positives, average precision, and its losses, one for
        # each column
        self._splits: list[tuple[int, int, float, list[float]]] = []

    def measure(self, model: "Model", X: Any, y: NDArray[np.float64]) -> None:
        """Shuffle each column of held-out rows, and keep what average precision `model` loses."""
        # names the columns and their features
        model = replace(model, encoding=self._encoding)
        rng = np.random.default_rng(len(self._splits))  # another seed for each split
        sample = _sample(y, rng)
        X, y = X[sample], y[sample]
        if self._columns is None:  # the first split chooses the columns for all splits
            self._columns = _most_contributing(model, X, rng)
        # before shuffling
        intact, losses = average_precision(y, model.decision_function(X)), []
        for _, features in self._columns:
            shuffled = _shuffled(X, features, rng.permutation(len(y)))
            losses.append(
                intact - average_precision(y, model.decision_function(shuffled))
            )
        self._splits.append((len(y), int(np.count_nonzero(y > 0)), intact, losses))

    def importance(self, test_share: float) -> Importance | None:
        """Return means and intervals over the splits; None if nothing was measured."""
        if not self._columns:
            return None
        n_rows, n_pos, intact, losses = zip(*self._splits, strict=True)  # each by split
        columns = []
        # `losses` has a list for each split; transposed, a list for each column.
        for (name, _), column_losses in zip(
            self._columns, zip(*losses, strict=True), strict=True
        ):
            mean, low, high = resampled_interval(column_losses, test_share)
            interval = None if np.isnan(low) else [low, high]  # NaN: one split has none
            columns.append(_OfColumn(column=name, loss=mean, interval=interval))
        return Importance(
            splits=len(self._splits),
            rows=round(float(np.mean(n_rows))),
            positives=round(float(np.mean(n_pos))),
            average_precision=float(np.mean(intact)),
            columns=sorted(columns, key=lambda column: -column.loss),
        )


def _sample(y: NDArray[np.float64], rng: np.random.Generator) -> NDArray[np.intp]:
    """Return up to `_MOST_ROWS` drawn row numbers, ascending.

    Half of each class if it has enough.
    """
    positive, negative = (
        rng.permutation(np.flatnonzero(sign * y > 0)) for sign in (1, -1)
    )
    n_pos = min(len(positive), max(_MOST_ROWS // 2, _MOST_ROWS - len(negative)))
    return np.sort(np.concatenate([positive[:n_pos], negative[: _MOST_ROWS - n_pos]]))


def _most_contributing(
    model: "Model", X: Any, rng: np.random.Generator
) -> list[tuple[str, slice]]:
    # Return the names of the columns that contribute most to scores, at most
    # `_MOST_COLUMNS`, with the places of their features in X; none if the model cannot
    # be explained.
    spans = [(column.name, features) for column, features in model.spans]
    if len(spans) <= _MOST_COLUMNS:
        return spans
    # At most as many rows as a dense array of contributions can have within
    # `_MOST_VALUES`
    n_explained = min(_EXPLAINED, max(1, _MOST_VALUES // model.n_features))
    sample = rng.permutation(X.shape[0])[:n_explained]
    try:
        contributions = np.abs(model.explain(X[sample]).to_numpy()).sum(axis=0)
    except InputError:  # trees of random features cannot be explained
        return []
    greatest = np.argsort(-contributions, kind="stable")[:_MOST_COLUMNS]
    return [spans[j] for j in np.sort(greatest)]  # in the order of the table


def _shuffled(X: Any, features: slice, order: NDArray[np.intp]) -> Any:
    # Return a copy of X in which the values of `features` are exchanged between rows:
    # each row gets all these values from one row, by the permutation `order`.
    if isinstance(X, np.ndarray):
        X = X.copy()
        X[:, features] = X[order, features]
        return X
    X = X.tocsc(copy=True)
    # entries of these features
    start, stop = X.indptr[features.start], X.indptr[features.stop]
    # a value of row i goes to row order[i]
    X.indices[start:stop] = order[X.indices[start:stop]]
    X.has_sorted_indices = False
    return X.tocsr()


def importance_table(importance: Importance, title: str) -> Table:
    """Return the importance of columns as a table.

    A note asks if a dominant column is a leak.
    """
    rows = [
        [
            c.column,
            f"{c.loss:.3f}",
            "{:.3f} to {:.3f}".format(*c.interval) if c.interval else "",
        ]
        for c in importance.columns
    ]
    note = (
        f"Drop in average precision ({importance.average_precision:.3f} on"
        f" {importance.rows:,} held-out rows) when the values of a column are shuffled;"
        f" means of {count(importance.splits, 'split')}."
    )
    doubts = [
        f"Over half of this precision depends on {c.column}: is this column known"
        " before the label?"
        for c in importance.columns
        if c.loss > importance.average_precision / 2
    ]
    return text_table(title, ["column", "loss", "95 %"], rows, note, *doubts)
