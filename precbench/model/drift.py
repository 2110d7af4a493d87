"""Whether new rows still look like those that a model was fitted to, counted block by block."""

from collections.abc import Sequence
from typing import Annotated, Any, Self

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

_BINS, _MOST_KEPT = 10, 20  # bins of numbers; categories with a bin for themselves
# training rows of a category with a bin, so that its share is known well enough
_FEWEST = 10
_SOME, _DRIFT = 0.1, 0.25  # the usual limits of the stability index, see `psi`
_CHANCE = 0.001  # significance level over all columns and the scores
# share of the rows up to which new values, gaps or categories are not reported
_OUTSIDE = 0.01
# times `Profile.between`: the saved model has more rows than the lists' models
_MODELS = 2
_MOST_DAYS = 1e8  # since the origin of dates: NumPy can still format such dates
_NEW, _GAPS = "new categories", "gaps"


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
    old, new = np.asarray(before, dtype=np.float64), np.asarray(now, dtype=np.float64)
    half = (1 / old.sum() + 1 / new.sum()) / 2  # added to all shares
    old, new = old / old.sum(), new / new.sum()
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
        edges = self.edges
        fit = edges is None or (
            len(edges) == len(self.counts) - 1 and (np.diff(edges) >= 0).all()
        )
        if not fit or sum(self.counts) < 1:
            raise ValueError(
                "profile: edges do not fit counts; fit and save the model again"
            )
        return self

    @classmethod
    def learn(
        cls, values: NDArray[np.float64], column: Column, missing: ArrayLike = ()
    ) -> Self:
        """Return bins, with their counts, of `values`.

        The features of a column, or scores.

        `missing` holds the rows whose value was filled in; these rows are in no bin.
        """
        edges, n_gaps, n_bins = None, np.size(missing), len(column.categories or ())
        if column.categories is None:
            ordered = np.sort(
                np.delete(values[:, 0], np.asarray(missing, dtype=np.intp))
            )
            deciles = ordered[
                [ceil_share(i / _BINS, len(ordered)) - 1 for i in range(1, _BINS)]
            ]
            edges = [float(ordered[0]), float(ordered[-1])]  # minimum and maximum
            if edges[0] < edges[1]:
                # All deciles are below the maximum: a frequent maximum has a bin for
                # itself. largest but the maximum
                second = ordered[np.searchsorted(ordered, edges[1]) - 1]
                # between the two
                edges[1:1] = np.unique(np.minimum(deciles, second)).tolist()
            n_bins = len(edges) + 1
        # these counts are replaced
        bins = cls(counts=[1.0] * n_bins, edges=edges, gaps=n_gaps)
        counts = bins.without_fills(bins.counted(values), column, n_gaps)
        return bins.model_copy(update={"counts": counts.tolist()})

    def counted(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return counts by bin of `values`.

        A column of numbers, or of 0 and 1 per category.
        """
        if self.edges is None:
            # without the indicator of gaps
            return values[:, : len(self.counts)].sum(axis=0)
        cuts = np.array(self.edges)
        # else the minimum itself would count as below
        cuts[0] = np.nextafter(cuts[0], -np.inf)
        places = np.searchsorted(cuts, values[:, 0])
        return np.bincount(places, minlength=len(cuts) + 1).astype(np.float64)

    def without_fills(
        self, counts: NDArray[np.float64], column: Column, n_gaps: int
    ) -> NDArray[np.float64]:
        """Return counts less the `n_gaps` filled-in values, all in the bin of the fill value."""
        if not n_gaps:
            return counts
        # None for numbers; each category is a feature, 0 or 1
        texts = column.categories
        fill_row = (
            [column.fill] if texts is None else [text == column.fill for text in texts]
        )
        return counts - n_gaps * self.counted(np.array([fill_row], dtype=np.float64))


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
        # Rows whose value was filled in, by the first feature of the column
        gap_rows = {
            start: rows for start, _stop, rows in (imputed.columns if imputed else ())
        }
        columns = [
            _Bins.learn(X[:, features], column, gap_rows.get(features.start, ()))
            for column, features in _columns(encoding)
        ]
        scores = _Bins.learn(np.concatenate(lists)[:, np.newaxis], Column("scores"))
        counts = np.array(
            [scores.counted(list_scores[:, np.newaxis]) for list_scores in lists]
        )
        # Each list against all others
        between = (
            max(map(psi, counts.sum(axis=0) - counts, counts))
            if len(lists) > 1
            else 0.0
        )
        scores = scores.model_copy(update={"counts": counts.mean(axis=0).tolist()})
        return cls(rows=X.shape[0], columns=columns, scores=scores, between=between)

    def check(self, encoding: Encoding | None) -> None:
        """Raise a `ValueError` if the profile is not of rows with this encoding."""
        columns = (
            [] if encoding is None else [column for column, _ in _columns(encoding)]
        )
        is_whole = encoding is not None and len(columns) == len(self.columns)
        # unequal: refused below
        for column, bins in zip(columns, self.columns, strict=is_whole):
            texts, edges = column.categories, bins.edges or []
            is_whole &= (
                (bins.edges is None) == (texts is not None)  # only numbers have edges
                # a bin for each category
                and (texts is None or len(bins.counts) == len(texts))
                # None: no gaps allowed
                and (texts is None or column.fill in (None, *texts))
                # dates
                and (not column.origin or max(map(abs, edges), default=0) < _MOST_DAYS)
            )
        if not is_whole or self.scores.edges is None:
            raise ValueError(
                "profile: bins do not fit encoding; fit and save the model again"
            )


def _columns(encoding: Encoding) -> list[tuple[Column, slice]]:
    """Return the columns to compare, with the slices of their features.

    None of sparse rows.
    """
    return encoding.spans() if encoding.dense else []


class Drift:
    """Counts of new rows in the bins of a profile; `Encoding.encode` fills `gaps`."""

    def __init__(self, profile: Profile, encoding: Encoding) -> None:
        self.gaps, self._rows, self._profile = Gaps(), 0, profile
        self._columns = _columns(encoding)
        self._counts = [
            np.zeros(len(bins.counts)) for bins in (*profile.columns, profile.scores)
        ]

    def add(self, X: Any, scores: NDArray[np.float64]) -> None:
        """Count a block of encoded rows, and the scores of the rows, in the bins."""
        self._rows += len(scores)
        for i, (_, features) in enumerate(self._columns):
            self._counts[i] += self._profile.columns[i].counted(X[:, features])
        self._counts[-1] += self._profile.scores.counted(scores[:, np.newaxis])

    def summary(self) -> dict[str, Any]:
        """Return the comparison of each column and of the scores, as values of JSON."""
        # Parallel lists, with an entry for each column and the last for the scores
        named = [*(column for column, _ in self._columns), Column("scores")]
        bins = [*self._profile.columns, self._profile.scores]
        gaps = [*(self.gaps.filled[column.name] for column, _ in self._columns), 0]
        # 0 except for scores
        between = [0.0] * len(self._columns) + [self._profile.between]
        *columns, scores = map(self._compared, named, bins, self._counts, gaps, between)
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
        n_gaps: int,
        between: float,
    ) -> dict[str, Any]:
        """Return PSI, verdicts and bins of a column, or of the scores.

        `counts` of new rows by bin against the training rows in `bins`. `between` is
        `Profile.between`, 0 for a column.
        """
        before, now = np.array(bins.counts), bins.without_fills(counts, column, n_gaps)
        alpha = _CHANCE / len(self._counts)  # level of a single test, by Bonferroni
        if bins.edges is None:
            names, before, now, facts, has_left = self._of_categories(
                column, before, now
            )
        else:
            names, before, now, facts, has_left = self._of_numbers(
                column, bins, before, now, alpha
            )
        names, before, now = (
            [*names, _GAPS],
            np.append(before, bins.gaps),
            np.append(now, n_gaps),
        )
        n_before, n_now, n_bins = (
            before.sum(),
            now.sum(),
            np.count_nonzero(before + now),
        )
        # The index of samples of one distribution exceeds `chance` with probability
        # `alpha`.
        chance = (
            (1 / n_before + 1 / n_now) * float(chdtri(n_bins - 1, alpha))
            if n_bins > 1
            else 0
        )
        # of_models: without drift
        index, of_models = psi(before, now), _MODELS * between
        shares = zip(
            names, (before / n_before).tolist(), (now / n_now).tolist(), strict=True
        )
        return {
            "name": column.name,
            "psi": index,
            "by_chance": float(chance) + of_models,
            "some": bool(index > max(_SOME, chance) + of_models),
            "drift": bool(index > max(_DRIFT, chance) + of_models) or has_left,
            **facts,
            "bins": [
                {"values": name, "training": a, "new": b} for name, a, b in shares
            ],
        }

    def _of_categories(
        self, column: Column, before: NDArray[np.float64], now: NDArray[np.float64]
    ) -> "_Compared":
        """Make bins.

        One for each frequent category, one for all other and one for new categories.
        """
        order = np.argsort(-before, kind="stable")
        n_kept = min(_MOST_KEPT, int(np.count_nonzero(before >= _FEWEST)))
        shown, others = order[:n_kept], order[n_kept:]
        # Good-Turing: the share of rows in new categories is estimated by the share of
        # the training rows whose category occurs once, so these training rows count as
        # new. all in `others`, as they have few rows
        n_single = np.count_nonzero(before == 1)
        return (
            [*np.array(column.categories)[shown].tolist(), "other categories", _NEW],
            np.array([*before[shown], before[others].sum() - n_single, n_single]),
            np.array(
                [*now[shown], now[others].sum(), self.gaps.uncategorised[column.name]]
            ),
            {"new_categories": sorted(self.gaps.unseen[column.name])},
            False,  # categories have no range
        )

    def _of_numbers(
        self,
        column: Column,
        bins: _Bins,
        before: NDArray[np.float64],
        now: NDArray[np.float64],
        alpha: float,
    ) -> "_Compared":
        # Make bins of numbers, and test if too many new rows lie beyond all training
        # rows. ends of the bins
        minimum, *ends = (_shown(edge, column) for edge in bins.edges or ())
        # The first and the last bin count rows beyond the range; `n_beyond` is the
        # larger count.
        n_now, n_before, n_beyond = now.sum(), before.sum(), float(max(now[0], now[-1]))
        # The chance that the `n_beyond` most extreme of all rows are new, without any
        # drift
        by_chance = (n_now / (n_now + n_before)) ** n_beyond
        # of sums: a bin beyond the range joins its neighbour
        starts = np.r_[0, 2 : len(now) - 1]
        return (
            [f"to {listed([end])}" for end in ends],
            np.add.reduceat(before, starts),
            np.add.reduceat(now, starts),
            {
                "low": minimum,
                "high": ends[-1],
                "outside": (now[0] + now[-1]) / self._rows,
            },
            # half: of two sides
            bool(n_beyond > _OUTSIDE * n_now and by_chance < alpha / 2),
        )


# Names of bins, training rows in each, new rows in each; further entries of the
# summary; whether new rows have left the range of the training rows
_Compared = tuple[
    list[str], NDArray[np.float64], NDArray[np.float64], dict[str, Any], bool
]


def _shown(value: float, column: Column) -> float | str:
    """Return a number with six digits.

    For a column of dates (numbers of days) the date.
    """
    if column.origin is None:
        return float(f"{value:.6g}")
    return str(np.datetime64(column.origin) + np.timedelta64(int(np.floor(value)), "D"))


def describe_drift(summary: dict[str, Any]) -> str:
    """Return the result of `Drift.summary` in a sentence."""
    compared = [*summary["columns"], summary["scores"]]
    some_drift = [
        f"{column['name']} (PSI {column['psi']:.2f})"
        for column in compared
        if column["some"] and not column["drift"]
    ]
    drifted = [_described(column) for column in compared if column["drift"]]
    n_columns = len(summary["columns"])
    places = (
        f"{count(n_columns, 'column')} and the scores" if n_columns else "the scores"
    )
    text = f"drift: {listed(drifted)}" if drifted else f"no drift in {places}"
    return f"{text}; some in {listed(some_drift)}" if some_drift else text


def _described(column: dict[str, Any]) -> str:
    """Return a column's name and drift.

    PSI, rows outside the range, new categories and gaps.
    """
    parts = [f"PSI {column['psi']:.2f}"]
    if column.get("outside", 0) > _OUTSIDE:
        # as a date or number
        ends = f"{listed([column['low']])} to {listed([column['high']])}"
        parts.append(f"{column['outside']:.1%} outside {ends}")
    parts += [
        f"{added['new']:.1%} {added['values']}"
        for added in column["bins"][-2:]  # of categories the new ones, and always gaps
        if added["values"] in (_NEW, _GAPS)
        and added["new"] - added["training"] > _OUTSIDE
    ]
    return f"{column['name']} ({', '.join(parts)})"
