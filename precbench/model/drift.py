"""Whether new rows still look like the training rows, counted block by block."""

from collections.abc import Sequence
from typing import Annotated, Any, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from pydantic import Field, model_validator
from scipy.special import chdtri

from precbench.core.strict_json import Count, Fields, Number
from precbench.core.text import count
from precbench.data.dataset import Imputed
from precbench.ranking.topk import ceil_share
from precbench.tables.encoding import Column, Encoding, Gaps
from precbench.tables.problems import listed

_BINS = 10  # of numbers
_MOST_CATEGORIES = 20  # with a bin for themselves
# Training rows of a category with a bin, so that its share is known well enough.
_FEWEST = 10
# The usual limits of the stability index, see `psi`.
_SOME = 0.1
_DRIFT = 0.25
_CHANCE = 0.001  # significance level over all columns and the scores
# Share of the rows up to which new values, gaps or categories are not reported.
_OUTSIDE = 0.01
# The index of scores may exceed `Profile.between` by this factor without drift: the
# saved model is fitted to more rows than the models of the lists (chosen).
_MODELS = 2
_MEND = "fit and save the model again"
_MOST_DAYS = 1e8  # since the origin of dates: NumPy can still format such dates
# Names of bins.
_NEW = "new categories"
_GAPS = "gaps"


def psi(before: ArrayLike, now: ArrayLike) -> float:
    """Return the population stability index of counts in the same bins.

    Parameters
    ----------
    before, now : array-like of shape (n_bins,)
        Counts by bin of two samples, of n and m rows. Within the logarithm (1 / n + 1 /
        m) / 2 is added to all shares, half a row of each sample; else an empty bin
        would weigh infinitely.

    Returns
    -------
    float
        For one distribution about 1 / n + 1 / m times chi-square of n_bins - 1 degrees
        of freedom.
    """
    old_counts = np.asarray(before, dtype=np.float64)
    new_counts = np.asarray(now, dtype=np.float64)
    half = (1 / old_counts.sum() + 1 / new_counts.sum()) / 2
    old = old_counts / old_counts.sum()
    new = new_counts / new_counts.sum()
    return float(((new - old) * np.log((new + half) / (old + half))).sum())


class _Bins(Fields):
    """Counts of the training rows of a column, or of their scores, by bin.

    The `edges` of numbers are the minimum, some deciles and the maximum; the first of
    `counts` is of rows below the minimum, the last of rows above the maximum.
    Categories have no edges, and a bin each. `gaps` counts missing values, which are in
    no bin.
    """

    counts: list[Annotated[Number, Field(ge=0, le=2**53)]]
    edges: Annotated[list[Number], Field(min_length=2)] | None = None
    gaps: Count = 0

    @model_validator(mode="after")
    def _require_whole(self) -> Self:
        """Require ascending edges, one edge less than counts, and at least one row."""
        if self.edges is not None:
            if len(self.edges) != len(self.counts) - 1:
                raise ValueError(f"profile: edges do not fit counts; {_MEND}")
            if (np.diff(self.edges) < 0).any():
                raise ValueError(f"profile: edges do not ascend; {_MEND}")
        if sum(self.counts) < 1:
            raise ValueError(f"profile: no row is counted; {_MEND}")
        return self

    @classmethod
    def learn(
        cls, values: NDArray[np.float64], column: Column, missing: ArrayLike = ()
    ) -> Self:
        """Return the bins, with their counts, of a column's features or of scores.

        `missing` holds the rows whose value was filled in; these rows are in no bin.
        """
        n_gaps = np.size(missing)
        edges: list[float] | None = None
        if column.categories is None:
            filled = np.asarray(missing, dtype=np.intp)
            edges = _edges(np.delete(values[:, 0], filled))
            n_bins = len(edges) + 1  # with those below the first and above the last
        else:
            n_bins = len(column.categories)
        # The counts of 1 hold the place of those that these bins then count.
        uncounted = cls(counts=[1.0] * n_bins, edges=edges, gaps=n_gaps)
        counts = uncounted.without_fills(uncounted.counted(values), column, n_gaps)
        return uncounted.model_copy(update={"counts": counts.tolist()})

    def counted(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return counts by bin of a column of numbers, or of 0 and 1 per category."""
        if self.edges is None:
            # A further feature, the indicator of gaps, has no bin.
            return values[:, : len(self.counts)].sum(axis=0)
        cuts = np.array(self.edges)
        # The minimum itself is not below the range.
        cuts[0] = np.nextafter(cuts[0], -np.inf)
        places = np.searchsorted(cuts, values[:, 0])
        return np.bincount(places, minlength=len(cuts) + 1).astype(np.float64)

    def without_fills(
        self, counts: NDArray[np.float64], column: Column, n_gaps: int
    ) -> NDArray[np.float64]:
        """Return counts less `n_gaps` filled-in values, all in the fill value's bin."""
        if not n_gaps:
            return counts
        # `filled_row` has the features of a row whose value is filled in.
        if column.categories is None:
            filled_row = [column.fill]
        else:
            filled_row = [category == column.fill for category in column.categories]
        return counts - n_gaps * self.counted(np.array([filled_row], dtype=np.float64))


def _edges(values: NDArray[np.float64]) -> list[float]:
    """Return the minimum, some deciles and the maximum of numbers."""
    ordered = np.sort(values)
    minimum = float(ordered[0])
    maximum = float(ordered[-1])
    if minimum == maximum:
        return [minimum, maximum]
    deciles = [
        ordered[ceil_share(i / _BINS, len(ordered)) - 1] for i in range(1, _BINS)
    ]
    # All deciles stay below the maximum: a frequent maximum has a bin for itself.
    below_maximum = ordered[np.searchsorted(ordered, maximum) - 1]
    inner = np.unique(np.minimum(deciles, below_maximum)).tolist()
    return [minimum, *inner, maximum]


class Profile(Fields):
    """The distribution of the training rows, column by column, and of held-out scores.

    Attributes
    ----------
    rows : int
    columns : list
        Bins of each column of the encoding, or each unnamed feature; none for sparse
        rows.
    scores : bins
        Counts are means over the held-out lists.
    between : float
        The largest `psi` of the scores of one list against the scores of all other
        lists: how far the scores differ of models that were fitted to different rows of
        one kind.
    """

    rows: Count
    columns: list[_Bins]
    scores: _Bins
    between: Annotated[Number, Field(ge=0)]

    @classmethod
    def learn(
        cls,
        X: Any,
        encoding: Encoding,
        imputed: Imputed | None,
        lists: Sequence[NDArray],
    ) -> Self:
        """Describe encoded training rows, and the scores of held-out lists."""
        # Rows whose value was filled in, by the first feature of the column.
        gap_rows: dict[int, NDArray[np.int64]] = {}
        if imputed is not None:
            gap_rows = {column.start: column.rows for column in imputed.columns}
        columns = [
            _Bins.learn(X[:, features], column, gap_rows.get(features.start, ()))
            for column, features in _columns(encoding)
        ]
        pooled = _Bins.learn(np.concatenate(lists)[:, np.newaxis], Column("scores"))
        by_list = np.array([pooled.counted(scores[:, np.newaxis]) for scores in lists])
        between = 0.0
        if len(lists) > 1:
            total = by_list.sum(axis=0)
            between = max(psi(total - own, own) for own in by_list)
        scores = pooled.model_copy(update={"counts": by_list.mean(axis=0).tolist()})
        return cls(rows=X.shape[0], columns=columns, scores=scores, between=between)

    def check(self, encoding: Encoding | None) -> None:
        """Raise a `ValueError` if the profile is not of rows with this encoding."""
        if self.scores.edges is None:
            raise ValueError(f"profile: the bins of scores have no edges; {_MEND}")
        if encoding is None:
            raise ValueError(f"profile: the model has no encoding; {_MEND}")
        columns = [column for column, _features in _columns(encoding)]
        if len(columns) != len(self.columns):
            raise ValueError(f"profile: not every column has bins; {_MEND}")
        for column, bins in zip(columns, self.columns, strict=True):
            if not _fits(bins, column):
                raise ValueError(
                    f"profile: the bins of {column.name} do not fit it; {_MEND}"
                )


def _fits(bins: _Bins, column: Column) -> bool:
    """Return whether bins may be those of a column."""
    if column.categories is not None:
        has_bins = bins.edges is None and len(bins.counts) == len(column.categories)
        # Without a fill value no gaps are allowed.
        has_fill = column.fill is None or column.fill in column.categories
        return has_bins and has_fill
    if bins.edges is None:
        return False
    # Dates, which are numbers of days, are shown as dates.
    return not column.origin or max(map(abs, bins.edges)) < _MOST_DAYS


def _columns(encoding: Encoding) -> list[tuple[Column, slice]]:
    """Return the columns to compare, with the slices of their features.

    Sparse rows have none.
    """
    return encoding.spans() if encoding.dense else []


class _BinnedColumn(NamedTuple):
    """The bins that the summary shows of a column, without the bin of its gaps.

    Attributes
    ----------
    names : list of str
    training, new : ndarray
        Training rows, and new rows, in each bin.
    facts : dict
        Further entries of the summary.
    has_left_range : bool
        Whether too many new rows lie beyond all training rows.
    """

    names: list[str]
    training: NDArray[np.float64]
    new: NDArray[np.float64]
    facts: dict[str, Any]
    has_left_range: bool


class Drift:
    """Counts of new rows in the bins of a profile; `Encoding.encode` fills `gaps`."""

    def __init__(self, profile: Profile, encoding: Encoding) -> None:
        self.gaps = Gaps()
        self._rows = 0
        self._profile = profile
        self._columns = _columns(encoding)
        # Rows by bin: of each column, and last of the scores.
        self._counts = [
            np.zeros(len(bins.counts)) for bins in (*profile.columns, profile.scores)
        ]

    def add(self, X: Any, scores: NDArray[np.float64]) -> None:
        """Count a block of encoded rows, and the scores of the rows, in the bins."""
        self._rows += len(scores)
        for i, (_column, features) in enumerate(self._columns):
            self._counts[i] += self._profile.columns[i].counted(X[:, features])
        self._counts[-1] += self._profile.scores.counted(scores[:, np.newaxis])

    def summary(self) -> dict[str, Any]:
        """Return the comparison of each column and of the scores, as values of JSON."""
        columns = []
        for i, (column, _features) in enumerate(self._columns):
            bins = self._profile.columns[i]
            n_gaps = self.gaps.filled[column.name]
            columns.append(self._compared(column, bins, self._counts[i], n_gaps))
        scores = self._compared(
            Column("scores"),
            self._profile.scores,
            self._counts[-1],
            between=self._profile.between,
        )
        return {
            "rows": self._rows,
            "training_rows": self._profile.rows,
            "drift": any(compared["drift"] for compared in (*columns, scores)),
            "columns": columns,
            "scores": scores,
        }

    def _compared(
        self,
        column: Column,
        bins: _Bins,
        counts: NDArray[np.float64],
        n_gaps: int = 0,
        between: float = 0.0,
    ) -> dict[str, Any]:
        """Return PSI, verdicts and bins of a column, or of the scores.

        `counts` of new rows by bin, of which `n_gaps` are filled in, are compared with
        the training rows in `bins`. `between` is `Profile.between` for the scores: how
        far they differ between models without drift.
        """
        training = np.array(bins.counts)
        new = bins.without_fills(counts, column, n_gaps)
        alpha = _CHANCE / len(self._counts)  # level of a single test, by Bonferroni
        if bins.edges is None:
            shown = self._bin_categories(column, training, new)
        else:
            shown = self._bin_numbers(column, bins.edges, training, new, alpha)
        names = [*shown.names, _GAPS]
        training_counts = np.append(shown.training, bins.gaps)
        new_counts = np.append(shown.new, n_gaps)
        index = psi(training_counts, new_counts)
        chance = _psi_by_chance(training_counts, new_counts, alpha)
        # Scores differ by so much because the models do, without drift.
        by_models = _MODELS * between
        has_drifted = bool(index > max(_DRIFT, chance) + by_models)
        shares = zip(
            names,
            (training_counts / training_counts.sum()).tolist(),
            (new_counts / new_counts.sum()).tolist(),
            strict=True,
        )
        return {
            "name": column.name,
            "psi": index,
            "by_chance": chance + by_models,
            "some": bool(index > max(_SOME, chance) + by_models),
            "drift": has_drifted or shown.has_left_range,
            **shown.facts,
            "bins": [
                {"values": name, "training": training_share, "new": new_share}
                for name, training_share, new_share in shares
            ],
        }

    def _bin_categories(
        self,
        column: Column,
        training: NDArray[np.float64],
        new: NDArray[np.float64],
    ) -> _BinnedColumn:
        """Make a bin for each frequent category, one for others, one for new ones."""
        n_frequent = int(np.count_nonzero(training >= _FEWEST))
        n_shown = min(_MOST_CATEGORIES, n_frequent)
        order = np.argsort(-training, kind="stable")
        shown = order[:n_shown]
        others = order[n_shown:]
        # Good-Turing: the share of rows in new categories is estimated by the share of
        # the training rows whose category occurs once. So these rows, which are all
        # among `others`, count as new.
        n_single = np.count_nonzero(training == 1)
        n_others = training[others].sum() - n_single
        n_new_categories = self.gaps.uncategorised[column.name]  # rows
        return _BinnedColumn(
            names=[
                *np.array(column.categories)[shown].tolist(),
                "other categories",
                _NEW,
            ],
            training=np.array([*training[shown], n_others, n_single]),
            new=np.array([*new[shown], new[others].sum(), n_new_categories]),
            facts={"new_categories": sorted(self.gaps.unseen[column.name])},
            has_left_range=False,  # categories have no range
        )

    def _bin_numbers(
        self,
        column: Column,
        edges: list[float],
        training: NDArray[np.float64],
        new: NDArray[np.float64],
        alpha: float,
    ) -> _BinnedColumn:
        """Make bins of numbers, and test whether new rows have left the range.

        The first and the last count are of rows beyond the range.
        """
        minimum, *ends = (_shown(edge, column) for edge in edges)
        n_training = training.sum()
        n_new = new.sum()
        n_beyond = float(max(new[0], new[-1]))  # on the side with more of them
        # Chance that the `n_beyond` most extreme of all rows are new, without drift.
        by_chance = (n_new / (n_new + n_training)) ** n_beyond
        # Half of alpha for each of the two sides.
        has_left_range = bool(n_beyond > _OUTSIDE * n_new and by_chance < alpha / 2)
        # The bins of sums start here: the first bin, which is beyond the range, joins
        # the second, and the last the one before.
        starts = np.r_[0, 2 : len(new) - 1]
        return _BinnedColumn(
            names=[f"to {listed([end])}" for end in ends],
            training=np.add.reduceat(training, starts),
            new=np.add.reduceat(new, starts),
            facts={
                "low": minimum,
                "high": ends[-1],
                "outside": (new[0] + new[-1]) / self._rows,
            },
            has_left_range=has_left_range,
        )


def _psi_by_chance(
    training: NDArray[np.float64], new: NDArray[np.float64], alpha: float
) -> float:
    """Return the index that samples of one distribution exceed with chance `alpha`.

    Their index is about (1 / n + 1 / m) times chi-square, see `psi`.
    """
    n_filled_bins = np.count_nonzero(training + new)
    if n_filled_bins <= 1:
        return 0.0
    quantile = float(chdtri(n_filled_bins - 1, alpha))
    return float((1 / training.sum() + 1 / new.sum()) * quantile)


def _shown(value: float, column: Column) -> float | str:
    """Return a number with six digits, or as a date in a column of dates."""
    if column.origin is None:
        return float(f"{value:.6g}")
    days = np.timedelta64(int(np.floor(value)), "D")
    return str(np.datetime64(column.origin) + days)


def describe_drift(summary: dict[str, Any]) -> str:
    """Return the result of `Drift.summary` in a sentence."""
    drifted: list[str] = []
    some_drift: list[str] = []
    for compared in [*summary["columns"], summary["scores"]]:
        if compared["drift"]:
            drifted.append(_described(compared))
        elif compared["some"]:
            some_drift.append(f"{compared['name']} (PSI {compared['psi']:.2f})")
    n_columns = len(summary["columns"])
    if drifted:
        text = f"drift: {listed(drifted)}"
    elif n_columns:
        text = f"no drift in {count(n_columns, 'column')} and the scores"
    else:
        text = "no drift in the scores"
    if some_drift:
        text += f"; some in {listed(some_drift)}"
    return text


def _described(compared: dict[str, Any]) -> str:
    """Return a column's name and PSI, and its rows outside, new categories and gaps."""
    parts = [f"PSI {compared['psi']:.2f}"]
    if compared.get("outside", 0) > _OUTSIDE:
        low = listed([compared["low"]])
        high = listed([compared["high"]])
        parts.append(f"{compared['outside']:.1%} outside {low} to {high}")
    # The last bin is of gaps, the one before it of new categories if there are any.
    for shown in compared["bins"][-2:]:
        is_extra = shown["values"] in (_NEW, _GAPS)
        if is_extra and shown["new"] - shown["training"] > _OUTSIDE:
            parts.append(f"{shown['new']:.1%} {shown['values']}")
    return f"{compared['name']} ({', '.join(parts)})"
