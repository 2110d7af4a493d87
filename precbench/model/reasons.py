"""Why rows have their scores: the columns that raise or lower them most."""

from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Any

import numpy as np
from scipy import sparse

from precbench.model.model import Model
from precbench.tables.encoding import Gaps

_VALUES_AT_ONCE = 2**22  # of a block of rows: 32 MiB
# The columns that raise and that lower a score: column, value as text, contribution
Reasons = dict[str, list[dict[str, Any]]]
_ROUNDING = 1e-12  # of the sum of all absolute contributions: less is due to rounding


class ReasonsOfList:
    """The rows that `Model.rank_blocks` lists, with the `n` columns that raise each score most."""

    def __init__(self, model: Model, n: int):
        model.explain(np.zeros((1, model.n_features)))  # raises before a file is read
        self._model = model
        self.n = min(n, len(model.spans))  # columns to name
        # by number from 1; filled by `Model.rank_blocks`
        self.rows: dict[int, Any] = {}
        # by number: columns without a value
        self._missing: dict[int, frozenset[str]] = {}

    def noting(
        self, blocks: Iterable[tuple[Any, Any]], gaps: Gaps
    ) -> Iterator[tuple[Any, Any]]:
        """Yield blocks unchanged to `Model.rank_blocks`.

        Note which values the listed rows lack.
        """
        n_before = 0  # rows of the earlier blocks
        for X, names in blocks:
            yield X, names
            # When resumed: `rank_blocks` has put its listed rows of this block into
            # `rows`, and `gaps.missing` is still of this block.
            for row in self.rows.keys() - self._missing.keys():
                self._missing[row] = frozenset(
                    name
                    for name, is_gap in gaps.missing.items()
                    if is_gap[row - n_before - 1]
                )
            n_before += X.shape[0]

    def reasons(self, numbers: Sequence[int]) -> list[Reasons]:
        """Return the reasons of the listed rows with these numbers, in this order."""
        rows = [self.rows[row] for row in numbers]
        missing = [self._missing[row] for row in numbers]
        return [*reasons(self._model, rows, self.n, missing)]


def reason_columns(row_reasons: Sequence[Reasons], n: int) -> dict[str, list[str]]:
    """Return columns of text for a table.

    ``raises_1`` to ``raises_n``, and ``lowers_1``.

    A cell is empty if fewer columns raise or lower the score of its row.
    """
    columns = {
        f"raises_{i + 1}": [_in_words(row["raises"], i) for row in row_reasons]
        for i in range(n)
    }
    return columns | {"lowers_1": [_in_words(row["lowers"], 0) for row in row_reasons]}


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
    # rows of a block
    spans, length = model.spans, max(1, _VALUES_AT_ONCE // model.n_features)

    def reason(i: int, features: Any, j: int, contribution: float) -> dict[str, Any]:
        # Return the name of column j, its value in row i, and the contribution of this
        # value.
        column, span = spans[j]
        is_missing = missing is not None and column.name in missing[i]
        value = "(missing)" if is_missing else column.value_of(features[span])
        return {"column": column.name, "value": value, "contribution": contribution}

    for start in range(0, len(X), length):
        block = X[start : start + length]
        rows = (
            np.stack(block)
            if isinstance(block[0], np.ndarray)
            else sparse.vstack(block).tocsr()
        )
        values = model.explain(rows, n_jobs=-1).to_numpy()
        for i, (row, contributions) in enumerate(zip(rows, values, strict=True), start):
            negligible = _ROUNDING * np.abs(contributions).sum()
            order = np.argsort(-contributions, kind="stable").tolist()
            features = row if isinstance(row, np.ndarray) else row.toarray()[0]
            chosen = {
                "raises": [j for j in order[:n] if contributions[j] > negligible],
                # one at most
                "lowers": [j for j in order[-1:] if contributions[j] < -negligible],
            }
            yield {
                kind: [reason(i, features, j, float(contributions[j])) for j in columns]
                for kind, columns in chosen.items()
            }
