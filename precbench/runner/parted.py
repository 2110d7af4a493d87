"""Rows that the workers of a cluster hold, for solvers that ask sums over partitions of them."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from precbench.data.formats import Format
from precbench.data.own.encoding import MOST_CATEGORIES, Column, Encoding, signs
from precbench.data.own.encoding import canonical as plain
from precbench.data.parts import Part
from precbench.data.preprocess import ROWS_AT_ONCE, Scaler, Scaling
from precbench.errors import InputError
from precbench.solvers.rows import PartedRows, Rows, as_rows, canonical, weighted_sum

if TYPE_CHECKING:
    from precbench.runner.cluster import Cluster

__all__ = ["ClusterRows"]

_EPS = float(np.finfo(np.float64).eps)


class ClusterRows(PartedRows):
    """Rows held by the workers of a cluster, see `precbench.runner.cluster.Cluster.rows`.

    Attributes
    ----------
    y : ndarray of shape (n_rows,), int8
        -1 or +1.
    shape : tuple of int
    encoding : Encoding
        How rows of such files become features.

    Examples
    --------
    >>> import numpy as np
    >>> from precbench import BBR
    >>> from precbench.runner.cluster import Cluster
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((300, 3))
    >>> y = X[:, 0] + rng.standard_normal(300) > 1.5
    >>> with Cluster("local:2", trials=False) as cluster:
    ...     rows = cluster.rows([(X[:100], y[:100]), (X[100:], y[100:])])
    ...     parted = BBR().fit(rows, rows.y)
    >>> bool(np.allclose(parted.coef_, BBR().fit(X, y).coef_))
    True
    """

    def __init__(
        self,
        cluster: "Cluster",
        parts: Sequence[Any],
        held: Sequence[Any],
        labels: Sequence[NDArray[np.int8]],
        encoding: Encoding,
    ):
        self._cluster, self._parts, self._held, self._labels = cluster, parts, held, labels
        self.encoding = encoding
        self.y = np.concatenate(labels)
        self.shape = len(self.y), encoding.n_features
        self._ends = np.cumsum([0, *map(len, labels)]).tolist()

    @classmethod
    def of(cls, cluster: "Cluster", parts: Sequence[Any], positive: str | float | None) -> Self:
        """Have workers read partitions, check them, and find which rows are positive."""
        target = plain(1 if positive is None else positive)
        held = cluster.hold(_Held, parts, None)
        found = cluster.call(_told, held, [(target,)] * len(parts))
        names = [_name(part, f"partition {i}") for i, part in enumerate(parts, 1)]
        for name, (_, _, width, _) in zip(names, found, strict=True):
            if width != found[0][2]:
                raise InputError(
                    f"{name} has rows of {width} features, and {names[0]} of {found[0][2]}"
                )
        distinct = {label for _, labels, _, _ in found for label in labels}
        signs(Path(names[0]), sorted(distinct, key=str), positive)
        named = parts[0].columns if isinstance(parts[0], Part) else ()
        columns = tuple(Column(name) for name in named)
        kind: Format = "parquet" if columns else "npz"
        encoding = Encoding(kind, found[0][2], dense=found[0][3], columns=columns)
        return cls(cluster, parts, held, [labels for labels, *_ in found], encoding)

    @property
    def n_parts(self) -> int:
        """Number of partitions."""
        return len(self._parts)

    def each(self, function: Callable[..., Any], *by_row: Any, shared: Sequence[Any] = ()) -> list:
        """Call a function for each partition, see `PartedRows.each`."""
        stretches = zip(self._ends, self._ends[1:], strict=False)
        arguments = [(*(v[start:stop] for v in by_row), *shared) for start, stop in stretches]
        return self._cluster.call(_applied, self._held, [(function, *a) for a in arguments])

    def some(self, numbers: Sequence[int]) -> "ClusterRows":
        """Return the rows of some partitions, by their numbers from 0."""
        parts, held, labels = (
            [of[i] for i in numbers] for of in (self._parts, self._held, self._labels)
        )
        return ClusterRows(self._cluster, parts, held, labels, self.encoding)

    def mean(self, axis: int = 0) -> NDArray[np.float64]:
        """Return the mean of each feature."""
        return weighted_sum(as_rows(self), np.ones(len(self.y)), self.shape[1]) / len(self.y)

    def scaled(self, kind: Scaling) -> tuple[Scaler, "ClusterRows"]:
        """Return a scaler that is fitted to the rows, and rows that it has scaled, in memory."""
        scaler = Scaler(kind)
        if kind == "none":
            return scaler, self
        if kind == "unit":
            raise InputError("scaling 'unit' is not made for partitions: take 'standardise'")
        if scaler.learns:
            n, mean = len(self.y), self.mean()
            variance = sum(self.each(_squares, shared=[mean])) / n
            # As scikit-learn tells a constant from rounding.
            varies = variance > n * _EPS * variance + (n * mean * _EPS) ** 2
            scaler.shift, scaler.scale = mean, np.where(varies, np.sqrt(variance), 1.0)
        held = self._cluster.hold(_Held, self._parts, scaler)
        parts, labels = self._parts, self._labels
        return scaler, ClusterRows(self._cluster, parts, held, labels, self.encoding)


def _name(part: Any, otherwise: str) -> str:
    return part.path if isinstance(part, Part) else otherwise


# --- on a worker ---


class _Held:
    """Rows of a partition; they are small for Dask, since to move them is to read them again."""

    def __init__(self, part: Any, scaler: Scaler | None):
        self.labels: NDArray[Any]
        X, self.labels = part.read() if isinstance(part, Part) else part
        X = sparse.csr_matrix(X) if sparse.issparse(X) else np.ascontiguousarray(X)
        if X.dtype not in (np.float32, np.float64):
            X = X.astype(np.float64)
        if not np.isfinite(X.data if sparse.issparse(X) else X).all():
            raise InputError(f"{_name(part, 'a partition')}: a value is not a finite number")
        X = canonical(X) if scaler is None else scaler.transform_in_place(canonical(X).copy())
        self.rows = as_rows(X)
        self._made_of = part, scaler

    def __reduce__(self) -> Any:
        return type(self), self._made_of


def _applied(held: _Held, function: Callable[..., Any], *arguments: Any) -> Any:
    return function(held.rows, *arguments)


def _told(held: _Held, target: object) -> tuple[NDArray[np.int8], list[Any], int, bool]:
    """Return the labels as -1 and +1, those that occur, and the form of the rows."""
    distinct = np.unique(np.asarray(held.labels)).tolist()
    if len(distinct) > MOST_CATEGORIES:
        raise InputError(f"more than {MOST_CATEGORIES:,} different labels in a partition")
    positive = [label for label in distinct if plain(label) == target]
    labels = np.where(np.isin(held.labels, positive), 1, -1).astype(np.int8)
    return labels, distinct, held.rows.n_features, not len(held.rows.indptr)


def _squares(rows: Rows, mean: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the sum of the squares of each feature about its mean."""
    if len(rows.indptr):
        raise InputError(
            "sparse data cannot be standardised, the shift would fill the zeros; use scaling "
            "'unit-norm' or 'none'"
        )
    X, total = rows.matrix, np.zeros(len(mean))
    for start in range(0, rows.n_rows, ROWS_AT_ONCE):
        total += np.square(X[start : start + ROWS_AT_ONCE] - mean).sum(axis=0)
    return total
