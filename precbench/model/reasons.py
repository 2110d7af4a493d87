"""Why rows have their scores: the columns that raise or lower them most."""

from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Any

import numpy as np
import pandas as pd
from scipy import sparse

from precbench.data.own.encoding import Gaps
from precbench.model.model import Model

_VALUES_AT_ONCE = 2**22
_ROUNDING = 1e-12  # of the sum of all contributions; none of a column that matters


class Listing:
    """The rows that `Model.rank_blocks` lists, and the `n` columns that raise each most."""

    def __init__(self, model: Model, n: int):
        model.explain(np.zeros((1, model.n_features)))  # refuses before a file is read
        self._model, self._n = model, min(n, len(model.spans))
        self.rows: dict[int, Any] = {}
        self._missing: dict[int, frozenset[str]] = {}

    def noting(self, blocks: Iterable[tuple[Any, Any]], gaps: Gaps) -> Iterator[tuple[Any, Any]]:
        """Yield blocks of rows, and note which values of the listed ones are missing."""
        n_rows = 0
        for X, names in blocks:
            yield X, names
            for row in self.rows.keys() - self._missing.keys():
                self._missing[row] = frozenset(
                    name for name, rows in gaps.missing.items() if rows[row - n_rows - 1]
                )
            n_rows += X.shape[0]

    def with_reasons(self, ranking: pd.DataFrame) -> tuple[pd.DataFrame, list[dict[Any, Any]]]:
        """Return a ranking with reasons as text columns, and its rows with lists of reasons."""
        numbers = ranking["row"].tolist()
        missing = [self._missing[row] for row in numbers]
        why = [*reasons(self._model, [self.rows[row] for row in numbers], self._n, missing)]
        columns = {
            f"{way}_{i + 1}": [
                "{column} = {value}".format(**row[way][i]) if i < len(row[way]) else ""
                for row in why
            ]
            for way, n in (("raises", self._n), ("lowers", 1))
            for i in range(n)
        }
        records = ranking.to_dict("records")
        return ranking.assign(**columns), [a | b for a, b in zip(records, why, strict=True)]


def reasons(
    model: Model, X: Sequence[Any], n: int, missing: Sequence[Collection[str]] | None = None
) -> Iterator[dict[str, list[dict[str, Any]]]]:
    """Yield the `n` columns that raise the score of a row most, and the one that lowers it most.

    Each has ``column``, ``value`` as text and ``contribution``. `missing` names the filled-in
    columns of each row.
    """
    spans, length = model.spans, max(1, _VALUES_AT_ONCE // model.n_features)

    def reason(i: int, features: Any, j: int, contribution: float) -> dict[str, Any]:
        column, span = spans[j]
        is_missing = missing is not None and column.name in missing[i]
        value = "(missing)" if is_missing else column.value_of(features[span])
        return {"column": column.name, "value": value, "contribution": contribution}

    for start in range(0, len(X), length):
        block = X[start : start + length]
        rows = np.stack(block) if isinstance(block[0], np.ndarray) else sparse.vstack(block).tocsr()
        values = model.explain(rows, n_jobs=-1).to_numpy()
        for i, (row, added) in enumerate(zip(rows, values, strict=True), start):
            least = _ROUNDING * np.abs(added).sum()
            order = np.argsort(-added, kind="stable")
            columns = {
                "raises": [int(j) for j in order[:n] if added[j] > least],
                "lowers": [int(j) for j in order[-1:] if added[j] < -least],
            }
            features = row if isinstance(row, np.ndarray) else row.toarray()[0]
            yield {
                way: [reason(i, features, j, float(added[j])) for j in js]
                for way, js in columns.items()
            }
