"""The importance of columns on held-out rows: what a ranking loses where one is shuffled."""

from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from precbench.errors import InputError
from precbench.metrics import average_precision
from precbench.report.table import Table, text_table
from precbench.statistics import resampled_interval
from precbench.strict_json import Count, Fields, Number
from precbench.text import count

if TYPE_CHECKING:
    from precbench.advice.model import Model
    from precbench.data.own.encoding import Encoding

__all__ = ["Importance", "Shuffling", "describe_importance", "importance_table"]

_MOST_ROWS, _MOST_COLUMNS, _EXPLAINED = 2_000, 20, 50
_MOST_VALUES = 2**22
_MOST_SHOWN = 10


class _OfColumn(Fields):
    column: str
    loss: Number
    interval: Annotated[list[Number], Field(min_length=2, max_length=2)] | None = None


class Importance(Fields):
    """What average precision loses where the values of a column are shuffled, as values of JSON.

    Means over the splits with their 95 % intervals, None of one split; the greatest loss first.
    Measured are at most 2,000 held-out rows of each split, half of them positive if so many are,
    and 20 columns, those with the greatest contributions.
    """

    splits: Count
    rows: Count
    positives: Count
    average_precision: Number
    columns: list[_OfColumn]


class _OfSplit(NamedTuple):
    n_rows: int
    n_pos: int
    whole: float
    losses: list[float]


class Shuffling:
    """Measures the importance of columns, split by split.

    Parameters
    ----------
    encoding : Encoding or None
        How rows of a file have become those of the splits.
    """

    def __init__(self, encoding: "Encoding | None" = None):
        self._encoding = encoding
        self._columns: list[tuple[str, slice]] | None = None
        self._found: list[_OfSplit] = []

    def measure(self, model: "Model", X: Any, y: NDArray[np.float64]) -> None:
        """Measure a model on rows that it was not fitted to.

        Parameters
        ----------
        model : Model
        X : ndarray or csr_matrix of shape (n_samples, n_features)
        y : ndarray of shape (n_samples,)
            Labels -1 and +1.
        """
        model = replace(model, encoding=self._encoding)
        rng = np.random.default_rng(len(self._found))
        kept = _sample(y, rng)
        X, y = X[kept], y[kept]
        if self._columns is None:
            self._columns = _most_contributing(model, X, rng)
        whole, losses = average_precision(y, model.decision_function(X)), []
        for _, features in self._columns:
            shuffled = _shuffled(X, features, rng.permutation(len(y)))
            losses.append(whole - average_precision(y, model.decision_function(shuffled)))
        self._found.append(_OfSplit(len(y), int(np.count_nonzero(y > 0)), whole, losses))

    def importance(self, test_share: float) -> Importance | None:
        """Return means and intervals over the splits; None if nothing could be measured."""
        if not self._columns:
            return None
        columns = []
        for (name, _), losses in zip(
            self._columns, zip(*(of.losses for of in self._found), strict=True), strict=True
        ):
            mean, low, high = resampled_interval(losses, test_share)
            interval = None if np.isnan(low) else [low, high]
            columns.append(_OfColumn(column=name, loss=mean, interval=interval))
        n_rows, n_pos, whole = (
            float(np.mean([of[part] for of in self._found])) for part in range(3)
        )
        return Importance(
            splits=len(self._found),
            rows=round(n_rows),
            positives=round(n_pos),
            average_precision=whole,
            columns=sorted(columns, key=lambda of: -of.loss),
        )


def _sample(y: NDArray[np.float64], rng: np.random.Generator) -> NDArray[np.intp]:
    """Return some rows in their order, of the positives as many as there may be."""
    positive, negative = (rng.permutation(np.flatnonzero(sign * y > 0)) for sign in (1, -1))
    n_pos = min(len(positive), max(_MOST_ROWS // 2, _MOST_ROWS - len(negative)))
    return np.sort(np.concatenate([positive[:n_pos], negative[: _MOST_ROWS - n_pos]]))


def _most_contributing(model: "Model", X: Any, rng: np.random.Generator) -> list[tuple[str, slice]]:
    """Return names and features of the columns that add or take most, where there are many."""
    spans = [(column.name, features) for column, features in model.spans]
    if len(spans) <= _MOST_COLUMNS:
        return spans
    # Contributions are dense.
    n_explained = min(_EXPLAINED, max(1, _MOST_VALUES // model.n_features))
    some = rng.permutation(X.shape[0])[:n_explained]
    try:
        added = np.abs(model.explain(X[some]).to_numpy()).sum(axis=0)
    except InputError:  # of trees of random features
        return []
    return [spans[j] for j in np.sort(np.argsort(-added, kind="stable")[:_MOST_COLUMNS])]


def _shuffled(X: Any, features: slice, order: NDArray[np.intp]) -> Any:
    """Return rows whose values of some features are those of other rows."""
    if isinstance(X, np.ndarray):
        X = X.copy()
        X[:, features] = X[order, features]
        return X
    X = X.tocsc(copy=True)
    start, stop = X.indptr[features.start], X.indptr[features.stop]
    X.indices[start:stop] = order[X.indices[start:stop]]
    X.has_sorted_indices = False
    return X.tocsr()


def importance_table(found: Importance, title: str) -> Table:
    """Lay out what columns matter, the greatest loss first."""
    rows = []
    for of in found.columns:
        ends = "" if of.interval is None else f"{of.interval[0]:.3f} to {of.interval[1]:.3f}"
        rows.append([of.column, f"{of.loss:.3f}", ends])
    note = (
        f"What average precision, {found.average_precision:.3f} on {found.rows:,} held-out rows, "
        f"loses where the values of a column are shuffled; means of {count(found.splits, 'split')}."
    )
    return text_table(title, ["column", "loss", "95 %"], rows, note)


def describe_importance(found: Importance) -> list[str]:
    """Describe what columns matter.

    Parameters
    ----------
    found : Importance

    Returns
    -------
    list of str
        One line for all, one for each of the first that matter beyond doubt, and one for the
        others; of one split, one for each of the first.
    """
    clear = [of for of in found.columns if of.interval is None or of.interval[0] > 0]
    lines = [
        f"what average precision, {found.average_precision:.3f} on {found.rows:,} held-out rows, "
        f"{found.positives:,} positive, loses where a column is shuffled"
    ]
    for of in clear[:_MOST_SHOWN]:
        ends = "" if of.interval is None else f" ({of.interval[0]:.3f} to {of.interval[1]:.3f})"
        lines.append(f"{of.column}: {of.loss:.3f}{ends}")
    if len(clear) > _MOST_SHOWN:
        lines.append(f"and {len(clear) - _MOST_SHOWN:,} more, see --json")
    others = [of.column for of in found.columns if of not in clear]
    if others:
        lines.append(f"no clear loss: {', '.join(others)}")
    return lines
