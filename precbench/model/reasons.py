"""Why rows have their scores: the columns that raise or lower them most."""

from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from precbench.model.model import Model
from precbench.tables.encoding import Column, Gaps

_VALUES_AT_ONCE = 2**22  # of a block of rows: 32 MiB
# The columns that raise and that lower a score: column, value as text, contribution.
Reasons = dict[str, list[dict[str, Any]]]
# Less than this share of the sum of all absolute contributions is due to rounding.
_ROUNDING = 1e-12


class ReasonsOfList:
    """The rows that `Model.rank_blocks` lists, and why each has its score."""

    def __init__(self, model: Model, n: int):
        # Raises before a file is read, if the model cannot be explained.
        model.explain(np.zeros((1, model.n_features)))
        self._model = model
        self.n = min(n, len(model.spans))  # columns to name of each row
        # By their numbers from 1; `Model.rank_blocks` writes them.
        self.rows: dict[int, Any] = {}
        # Columns without a value, by the number of the row.
        self._missing: dict[int, frozenset[str]] = {}

    def noting(
        self, blocks: Iterable[tuple[Any, Any]], gaps: Gaps
    ) -> Iterator[tuple[Any, Any]]:
        """Yield blocks to `Model.rank_blocks` unchanged; note gaps of listed rows."""
        n_before = 0  # rows of the earlier blocks
        for X, texts in blocks:
            yield X, texts
            # When resumed: `rank_blocks` has put its listed rows of this block into
            # `rows`, and `gaps.missing` is still of this block.
            for row in self.rows.keys() - self._missing.keys():
                place = row - n_before - 1  # in the block
                self._missing[row] = frozenset(
                    name for name, is_gap in gaps.missing.items() if is_gap[place]
                )
            n_before += X.shape[0]

    def reasons(self, numbers: Sequence[int]) -> list[Reasons]:
        """Return the reasons of the listed rows with these numbers, in this order."""
        rows = [self.rows[number] for number in numbers]
        missing = [self._missing[number] for number in numbers]
        return [*reasons(self._model, rows, self.n, missing)]


def reason_columns(row_reasons: Sequence[Reasons], n: int) -> dict[str, list[str]]:
    """Return columns of text for a table: ``raises_1`` to ``raises_n``, ``lowers_1``.

    A cell is empty if fewer columns raise or lower the score of its row.
    """
    columns = {}
    for i in range(n):
        texts = [_in_words(row["raises"], i) for row in row_reasons]
        columns[f"raises_{i + 1}"] = texts
    columns["lowers_1"] = [_in_words(row["lowers"], 0) for row in row_reasons]
    return columns


def _in_words(chosen: Sequence[dict[str, Any]], i: int) -> str:
    return f"{chosen[i]['column']} = {chosen[i]['value']}" if i < len(chosen) else ""


def reasons(
    model: Model,
    X: Sequence[Any],
    n: int,
    missing: Sequence[Collection[str]] | None = None,
) -> Iterator[Reasons]:
    """Yield for each row of X the columns that raise and that lower its score most.

    ``raises`` lists at most `n` columns, ``lowers`` at most one column, as dicts of
    ``column``, ``value`` as text and ``contribution``. `missing` names the filled-in
    columns of each row.
    """
    spans = model.spans
    length = max(1, _VALUES_AT_ONCE // model.n_features)  # rows of a block
    for start in range(0, len(X), length):
        block = X[start : start + length]
        is_dense = isinstance(block[0], np.ndarray)
        rows = np.stack(block) if is_dense else sparse.vstack(block).tocsr()
        values = model.explain(rows, n_jobs=-1).to_numpy()
        for i, (row, contributions) in enumerate(zip(rows, values, strict=True), start):
            features = row if is_dense else row.toarray()[0]
            lacking = () if missing is None else missing[i]
            decisive = _decisive_columns(contributions, n)
            yield {
                "raises": [
                    _reason(spans[j], features, contributions[j], lacking)
                    for j in decisive.raising
                ],
                "lowers": [
                    _reason(spans[j], features, contributions[j], lacking)
                    for j in decisive.lowering
                ],
            }


class _DecisiveColumns(NamedTuple):
    """The numbers of columns that raise and that lower a score, the first most."""

    raising: list[int]
    lowering: list[int]


def _decisive_columns(contributions: NDArray[np.float64], n: int) -> _DecisiveColumns:
    """Return up to n columns that raise a score most, and the one that lowers it most.

    Contributions that may be due to rounding do not count.
    """
    negligible = _ROUNDING * np.abs(contributions).sum()
    order = np.argsort(-contributions, kind="stable").tolist()
    raising = [j for j in order[:n] if contributions[j] > negligible]
    lowering = [j for j in order[-1:] if contributions[j] < -negligible]
    return _DecisiveColumns(raising, lowering)


def _reason(
    span: tuple[Column, slice],
    features: Any,
    contribution: float,
    lacking: Collection[str],
) -> dict[str, Any]:
    """Return the name of a column, its value in a row, and what the value adds."""
    column, places = span
    value = "(missing)"
    if column.name not in lacking:
        value = column.value_of(features[places])
    return {"column": column.name, "value": value, "contribution": float(contribution)}
