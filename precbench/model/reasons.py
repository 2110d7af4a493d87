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
    """The rows that `Model.rank_blocks` lists, and why they are listed.

    Parameters
    ----------
    model : Model
    n : int
        See `reasons`.

    Attributes
    ----------
    rows : dict of int to row
        For `Model.rank_blocks` to fill.

    Raises
    ------
    InputError
        See `Model.explain`.
    """

    def __init__(self, model: Model, n: int):
        model.explain(np.zeros((1, model.n_features)))  # refuses before a file is read
        self._model, self._n = model, min(n, len(model.spans))
        self.rows: dict[int, Any] = {}
        self._missing: dict[int, frozenset[str]] = {}

    def noting(self, blocks: Iterable[tuple[Any, Any]], gaps: Gaps) -> Iterator[tuple[Any, Any]]:
        """Yield blocks of rows for `Model.rank_blocks`, and note what those that it lists lack.

        Parameters
        ----------
        blocks : iterable of (X, names)
        gaps : Gaps
            Learns what each block lacks.
        """
        n_rows = 0
        for X, names in blocks:
            yield X, names
            for row in self.rows.keys() - self._missing.keys():
                self._missing[row] = frozenset(
                    name for name, rows in gaps.missing.items() if rows[row - n_rows - 1]
                )
            n_rows += X.shape[0]

    def explained(self, ranking: pd.DataFrame) -> tuple[pd.DataFrame, list[dict[Any, Any]]]:
        """Return a ranking with columns of reasons as text, and its rows with lists of them."""
        numbers = ranking["row"].tolist()
        missing = [self._missing[row] for row in numbers]
        why = [*reasons(self._model, [self.rows[row] for row in numbers], self._n, missing)]
        said = {
            f"{way}_{i + 1}": [
                "{column} = {value}".format(**of[way][i]) if i < len(of[way]) else "" for of in why
            ]
            for way, n in (("raises", self._n), ("lowers", 1))
            for i in range(n)
        }
        records = ranking.to_dict("records")
        return ranking.assign(**said), [row | of for row, of in zip(records, why, strict=True)]


def reasons(
    model: Model, X: Sequence[Any], n: int, missing: Sequence[Collection[str]] | None = None
) -> Iterator[dict[str, list[dict[str, Any]]]]:
    """Yield the columns that raise the score of a row most, and the one that lowers it most.

    Parameters
    ----------
    model : Model
    X : sequence of rows
        Encoded, dense or sparse.
    n : int
        Number of columns that raise it.
    missing : sequence of collections of str, optional
        Columns of each row whose values are filled in.

    Yields
    ------
    dict
        ``raises`` and ``lowers``, each a list of ``column``, ``value`` as text and
        ``contribution``, the most important one first; fewer where fewer columns do.
    """
    spans, length = model.spans, max(1, _VALUES_AT_ONCE // model.n_features)

    def described(i: int, features: Any, j: int, contribution: float) -> dict[str, Any]:
        column, span = spans[j]
        is_missing = missing is not None and column.name in missing[i]
        value = "(missing)" if is_missing else column.value_of(features[span])
        return {"column": column.name, "value": value, "contribution": contribution}

    for start in range(0, len(X), length):
        some = X[start : start + length]
        rows = np.stack(some) if isinstance(some[0], np.ndarray) else sparse.vstack(some).tocsr()
        values = model.explain(rows, n_jobs=-1).to_numpy()
        for i, (row, added) in enumerate(zip(rows, values, strict=True), start):
            least = _ROUNDING * np.abs(added).sum()
            order = np.argsort(-added, kind="stable")
            found = {
                "raises": [int(j) for j in order[:n] if added[j] > least],
                "lowers": [int(j) for j in order[-1:] if added[j] < -least],
            }
            features = row if isinstance(row, np.ndarray) else row.toarray()[0]
            yield {
                way: [described(i, features, j, float(added[j])) for j in js]
                for way, js in found.items()
            }
