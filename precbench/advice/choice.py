"""Recommend a method for the first k rows of a list, from the results of a run."""

from collections.abc import Callable
from dataclasses import asdict, dataclass, fields, replace
from functools import partial
from typing import Any, Literal

import numpy as np
import pandas as pd
from scipy.special import stdtrit

from precbench.advice.length import Length
from precbench.core.errors import InputError
from precbench.core.text import count
from precbench.ranking.statistics import (
    LEVEL,
    NO_WIDTH,
    PairedTest,
    binomial_interval,
    distinct_rows,
    levels,
    resampled_test,
)
from precbench.ranking.topk import TopK, resolve_k
from precbench.report.summary_tables import three_digits
from precbench.report.table import Cell, Table
from precbench.results.read import Run
from precbench.results.summary import final_values, summarise_trials

REFERENCE = "logistic-regression"  # what most people would take
# The measure that picks the best method of a run without an ensemble: all positives
# count, and the higher a positive stands, the more. An ensemble, which weighs its
# members, comes first: where positives are few, picking a single method loses more
# hits, see docs/advice.md.
CHOSEN_BY = "dcg"
# The measure of the whole list that decides before simplicity does, where the hits at
# the top cannot tell methods apart, see `_cannot_tell`.
DECIDED_BY = "average_precision"
# No difference in practice: this share of the best method's hits, or one hit in a list
# of all rows.
MARGIN = 0.05

_VERDICTS = ("equivalent", "undecided", "worse", "incomplete")
_SIMPLEST_FIRST = ("linear", "random features", "nonlinear", "ensemble")
# share of the hits: a difference that `Choice.needed` positives would show
_DETECTABLE = 0.1
# share of the hits that the recommended method may lose in a file that decides
_MOST_LOST = 0.25
# if none of n rows differs, at most 3 / n of all do, with 95 % confidence
_RULE_OF_THREE = 3.0


@dataclass(frozen=True)
class Expected:
    """What the recommended method is expected to find in a list of new rows.

    Attributes
    ----------
    rows : int
        Number of rows in the list.
    k : int
        Number of rows at the top.
    hits, low, high : float
        Expected positives among the first `k` rows, and the ends of the 95 % interval
        of their number in one list, as by ``precbench score``.
    lift : float
        `hits` divided by the hits of a random order.
    """

    rows: int
    k: int
    hits: float
    low: float
    high: float
    lift: float


@dataclass(frozen=True)
class Choice:
    """The methods of a run, compared by their hits among the first k rows of a held-out list.

    Attributes
    ----------
    decided : bool
        Whether the recommended method is significantly better than chance, and no other
        method may find over a quarter more hits.
    recommended : str
        The simplest among `best` and its equivalents: logistic regression, then other
        linear methods, random features, other methods, an ensemble last; among equally
        simple methods the better mean. Where nearly all rows at the top are hits, or
        few are, a method must also be behind `best` by no more than the standard error
        of this difference in average precision, as far as the run has this measure. If
        simple methods are preferred, see `choose_method`.
    best : str
        An ensemble, else the method with the best mean of `CHOSEN_BY` (of prec@k where
        a run lacks this measure); but if some method has significantly more hits, that
        method.
    equivalent : list of str
        Methods that are significantly better than chance, and whose difference from the
        recommended method lies within `margin` with its whole 95 % interval.
    worse : list of str
        Methods significantly worse than the recommended one, and not equivalent.
    undecided : list of str
        All other methods that have results on all splits.
    values : pandas.DataFrame
        A row for each method, the recommended one first, then by the mean: ``solver``,
        ``form`` (linear, random features, nonlinear or ensemble), ``n`` splits,
        ``mean`` of prec@k with ``low`` and ``high``, the ends of its 95 % confidence
        interval, ``behind``, the mean of the recommended method minus this mean, with
        ``behind_low`` and ``behind_high``, the ``p`` and the standard ``error`` of this
        difference, ``verdict`` (recommended, equivalent, undecided, worse or, without
        results on all splits, incomplete), ``seconds`` to tune and train, ``chosen``
        parameters, and ``outcomes`` in words.
    k : int
        Rows at the top of a held-out list, approximately; `expected` has the `k` of a
        new list.
    rows, positives : int
        Numbers of rows and of positives in a held-out list, approximately.
    splits, splits_asked : int
        Splits with a result of the recommended method, and all splits of the run.
    margin : float
        How many hits make no difference in practice.
    n_pos : int
        Positives in the file.
    needed : int or None
        About how many positives the file should have so that a difference of 10 % of
        the hits shows; None if the file decides, or if the number cannot be told.
    length : Length or None
        Forecast of `precbench.compare` for new lists: hits by length.
    expected : Expected or None
        What the recommended method finds in a new list, from `length`.
    """

    decided: bool
    recommended: str
    best: str
    equivalent: list[str]
    undecided: list[str]
    worse: list[str]
    values: pd.DataFrame
    k: int
    rows: int
    positives: int
    splits: int
    splits_asked: int
    margin: float
    n_pos: int
    needed: int | None
    length: Length | None = None
    expected: Expected | None = None

    def with_length(self, length: Length) -> "Choice":
        """Return the choice with a forecast for a new list."""
        row = length.table.set_index("length").loc[
            length.k[0], ["hits", "low", "high", "lift"]
        ]
        expected = Expected(length.rows, length.k[0], *map(float, row))  # k[0] decides
        return replace(self, length=length, expected=expected)

    @property
    def card(self) -> list[str]:
        """Sentences that say what to use, what hits to expect, and how sure the advice is."""
        return [f"{sentence}." for sentence in _sentences(self) if sentence]

    @property
    def text(self) -> str:
        """The sentences of `card` as a paragraph."""
        return " ".join(self.card)

    @property
    def methods(self) -> dict[str, dict[str, Any]]:
        """The rows of `values` as dictionaries, by method."""
        records: list[dict[Any, Any]] = self.values.to_dict("records")
        return {record["solver"]: record for record in records}

    @property
    def by_chance(self) -> float:
        """The precision of a list in random order."""
        return self.positives / self.rows

    def to_dict(self) -> dict[str, Any]:
        """Return all attributes as values of JSON; ``list`` holds `expected`."""
        rows = (
            self.values.astype(object)
            .where(self.values.notna(), None)
            .to_dict("records")
        )
        attributes = {
            f.name: getattr(self, f.name)
            for f in fields(Choice)
            if f.name != "expected"
        }
        return {
            **attributes,
            "text": self.text,
            "by_chance": self.by_chance,
            "values": rows,  # NaN as None
            "list": self.expected and asdict(self.expected),
            "length": self.length and self.length.model_dump(),
        }


def choose_method(
    run: Run, dataset: str | None = None, *, prefer: Literal["best", "simple"] = "best"
) -> Choice:
    """Compare the methods of a run by its first metric, and recommend one.

    Parameters
    ----------
    run : Run
        Its first metric is ``precision_at_k``.
    dataset : str, optional
        By default the first of the run.
    prefer : {"best", "simple"}
        "simple" recommends the simplest method that is behind the best by no more than
        the standard error of this difference.

    Raises
    ------
    InputError
        If no method has a result, the first metric is not prec@k, or the run has a
        sweep.
    """
    dataset, metric = dataset or run.datasets[0], run.metrics[0]
    measure = run.measures[metric]
    if run.sweep is not None or measure.name != "precision_at_k":
        fault = "the run has a sweep" if run.sweep else f"the first metric is {metric}"
        raise InputError(
            f"{run.name}: {fault}; give a run without a sweep whose first metric is"
            " precision_at_k"
        )
    # 1: one test set
    data, test_share = run.data[dataset], run.test_shares.get(dataset, 1.0)
    held_rows, held_pos = (
        round(data.rows * test_share),
        round(data.positives * test_share),
    )
    k = resolve_k(measure.parameters["k"], held_pos, held_rows)
    results = run.results[run.results["dataset"] == dataset]
    trials = final_values(results)
    summary = _summary(run, trials, metric)
    of_whole_list = trials[trials["metric"] == DECIDED_BY]
    # only now: the summary also needs `CHOSEN_BY`
    trials = trials[trials["metric"] == metric]
    # of a `reference` method
    against = partial(_against, summary=summary, run=run, trials=trials)
    best = _best(run, summary, against)
    chance = held_pos / held_rows
    values = against(best)  # the first row is that of `best`
    if values["mean"].isna().all():
        reasons = "; ".join(values["solver"] + ": " + values["outcomes"])
        raise InputError(
            f"{run.name}: no method has a result on {dataset} ({reasons}); mend the"
            " causes, then run the experiment again"
        )
    # in hits
    margin = _margin(measure.parameters["k"], k * values["mean"].iloc[0], test_share)
    splits = int(values["n"].max())
    # Different rows among the first k of all held-out lists; with a share of 1 these
    # are one list.
    n_tested = k if test_share == 1 else round(distinct_rows(splits, k, test_share))
    judged = partial(_judged, k=k, n_tested=n_tested, margin=margin, by_chance=chance)
    values = judged(values)
    alike = _alike(values, prefer)
    if len(of_whole_list) and _cannot_tell(
        k * values["mean"].iloc[0], min(k, held_pos), margin
    ):
        differences = _against(best, summary=summary, run=run, trials=of_whole_list)
        is_behind = differences["behind"] > differences["error"]
        alike = alike[~alike["solver"].isin(differences["solver"][is_behind])]
    recommended = _simplest(alike)
    if recommended != best:
        values = judged(against(recommended))
    by_verdict = {
        verdict: values["solver"][values["verdict"] == verdict] for verdict in _VERDICTS
    }
    decided, undecided = (
        _decides(values, chance),
        values[values["verdict"] == "undecided"],
    )
    return Choice(
        decided=decided,
        recommended=recommended,
        best=best,
        equivalent=by_verdict["equivalent"].tolist(),
        undecided=by_verdict["undecided"].tolist(),
        worse=by_verdict["worse"].tolist(),
        values=values,
        k=k,
        rows=held_rows,
        positives=held_pos,
        splits=splits,
        splits_asked=len(results[["split", "seed"]].drop_duplicates()),
        margin=margin,
        n_pos=data.positives,
        needed=(
            None
            if decided
            else _needed(undecided, values["mean"].iloc[0], data.positives)
        ),
    )


def _margin(k: TopK, best_hits: float, test_share: float) -> float:
    """Return how many hits make no difference in practice.

    The share `MARGIN` of `best_hits`, but at least one hit in a list as long as the
    file. If k is a share, the top of a held-out list is shorter by the factor
    `test_share`, and the one hit becomes `test_share` hits.
    """
    return max(1.0 if isinstance(k, int) else test_share, MARGIN * best_hits)


def _decides(values: pd.DataFrame, chance: float) -> bool:
    # Return whether the first method, the recommended one, is better than chance and no
    # other one may find many more hits. One split has no interval: NaN compares as
    # false, nothing is decided.
    first, others = values.iloc[0], values[values["verdict"] != "incomplete"].iloc[1:]
    loses_little = others["behind_low"] >= -_MOST_LOST * first["mean"]
    # or the methods differ equally on all splits
    loses_little |= others["error"] <= NO_WIDTH
    return bool(first["low"] > chance and loses_little.all())


def _cannot_tell(best_hits: float, most_hits: int, margin: float) -> bool:
    """Return whether the hits at the top cannot tell methods apart.

    Either the best method finds nearly all of the most possible hits, as any other good
    method does, or it finds so few that one hit is more than the share `MARGIN` of
    them.
    """
    return best_hits > most_hits - margin or margin > MARGIN * best_hits


def _alike(values: pd.DataFrame, prefer: Literal["best", "simple"]) -> pd.DataFrame:
    """Return the rows of methods that are as good as the best, which is the first.

    These are its equivalents, or if `prefer` is "simple" the methods behind by at most
    the standard error of this difference.
    """
    is_alike = values["verdict"].isin(["recommended", "equivalent"])
    if prefer == "simple":
        is_near = (values["behind"] <= values["error"]) & ~values["verdict"].eq(
            "incomplete"
        )
        is_alike = is_near | values["verdict"].eq("recommended")
    return values[is_alike]


def _simplest(alike: pd.DataFrame) -> str:
    """Return the simplest of methods that are as good as each other."""
    # the least wins: `REFERENCE` if it is alike, else the simplest form that comes
    # first
    keys = [
        (name != REFERENCE, _SIMPLEST_FIRST.index(form))
        for name, form in zip(alike["solver"], alike["form"], strict=True)
    ]
    return str(alike["solver"].iloc[keys.index(min(keys))])


def _judged(
    values: pd.DataFrame, k: int, n_tested: int, margin: float, by_chance: float
) -> pd.DataFrame:
    """Return the table with a ``verdict`` on each method against the first, the recommended one.

    An interval is at least that of `n_tested` rows: values of few splits may agree by
    chance.
    """
    values = values.copy()
    values["low"], values["high"] = (
        values["low"].clip(lower=0),
        values["high"].clip(upper=1),
    )
    for i in values.index[values["mean"].notna()]:
        # rounding may leave [0, 1]
        mean = min(max(float(values.loc[i, "mean"]), 0.0), 1.0)
        low, high = binomial_interval(mean, n_tested)
        # The ends of one split are NaN, which these functions ignore.
        values.loc[i, "low"] = np.fmin(values.loc[i, "low"], low)
        values.loc[i, "high"] = np.fmax(values.loc[i, "high"], high)
    # equal on all splits
    is_constant = values["behind_high"] - values["behind_low"] <= NO_WIDTH
    values.loc[is_constant, "behind_low"] -= _RULE_OF_THREE / n_tested
    values.loc[is_constant, "behind_high"] += _RULE_OF_THREE / n_tested
    is_complete = values["n"] == values["n"].max()
    # Equivalent: the whole interval of the difference, in hits, lies within the margin.
    is_close = (values[["behind_low", "behind_high"]].abs() * k <= margin).all(axis=1)
    is_close &= values["low"] > by_chance  # and the method is better than chance
    is_worse = (values["p"] <= LEVEL) & (values["behind"] > 0)
    # The first condition that holds is the verdict.
    conditions = {"incomplete": ~is_complete, "equivalent": is_close, "worse": is_worse}
    verdict = np.select([*conditions.values()], [*conditions], "undecided").tolist()
    verdict[0] = "recommended"
    return values.assign(verdict=verdict)


def _needed(undecided: pd.DataFrame, mean: float, n_pos: int) -> int | None:
    """Return how many positives are needed to decide, where the file has `n_pos`.

    So many that the interval of an undecided difference is plus or minus the share
    `_DETECTABLE` of `mean`, prec@k of the recommended method. None if no method is
    undecided, or there are no hits.
    """
    half_widths = ((undecided["behind_high"] - undecided["behind_low"]) / 2).dropna()
    if half_widths.empty or mean <= 0:
        return None
    # Widths shrink with the square root of the positives; the median width has to be
    # small enough.
    needed = round(n_pos * (half_widths.median() / (_DETECTABLE * mean)) ** 2)
    # at the end: two significant digits are left
    n_zeros = max(len(str(needed)) - 2, 0)
    return max(round(needed, -n_zeros), n_pos)  # never fewer than the file has


def _summary(run: Run, trials: pd.DataFrame, metric: str) -> pd.DataFrame:
    """Return a row for each method, its summary of `metric`, the best mean first.

    ``level`` is the rank by this mean, ``place`` the rank by the mean of `CHOSEN_BY`: 0
    for the worst method, NaN for a method without results on all splits.
    """
    chosen_by = CHOSEN_BY if CHOSEN_BY in run.metrics else metric
    trials = trials[trials["metric"].isin([metric, chosen_by])]
    summaries = summarise_trials(trials, test_shares=run.test_shares).set_index(
        "solver"
    )
    summary = summaries[summaries["metric"] == metric]
    # run's order
    summary = summary.loc[[name for name in run.solvers if name in summary.index]]
    means = summaries["mean"][summaries["metric"] == chosen_by].reindex(summary.index)
    is_complete = summary["n"] == summary["n"].max()
    summary = summary.assign(
        is_complete=is_complete,
        level=levels(summary["mean"].where(is_complete)),  # where: NaN for the others
        place=levels(means.where(is_complete)),
    )
    return summary.sort_values("level", ascending=False, kind="stable")


def _best(
    run: Run, summary: pd.DataFrame, against: Callable[[str], pd.DataFrame]
) -> str:
    """Return an ensemble, else the first method by `CHOSEN_BY` (see there).

    If another method has significantly more hits, return that method. `against(name)`
    compares all methods with `name`.
    """
    complete = summary.index[summary["is_complete"]]
    ensembles = [name for name in complete if run.forms.get(name) == "ensemble"]
    by_place = summary["place"].sort_values(ascending=False, kind="stable").index
    best = str([*ensembles, *by_place][0])
    values = against(best)
    # more hits
    better = values["solver"][(values["p"] <= LEVEL) & (values["behind"] < 0)]
    return str(better.iloc[0]) if len(better) else best


def _against(
    reference: str, summary: pd.DataFrame, run: Run, trials: pd.DataFrame
) -> pd.DataFrame:
    """Return `Choice.values` without verdicts.

    `reference` first, and how far others are behind.
    """
    share = run.test_shares.get(str(trials["dataset"].iloc[0]))
    by_split = trials.pivot(index=["split", "seed"], columns="solver", values="value")
    table = []
    # reference first
    for solver in sorted(summary.index, key=lambda solver: solver != reference):
        # not tested
        row, test, error = summary.loc[solver], PairedTest(*[np.nan] * 4), np.nan
        # Values on the splits where both methods have one; no test if all splits share
        # test rows
        of_reference, of_solver = by_split[[reference, solver]].dropna().to_numpy().T
        if solver != reference and len(of_solver) and share is not None:
            test = resampled_test(of_reference, of_solver, share)
            # Half the interval is the standard error times this quantile of Student's
            # t.
            error = (test.high - test.mean) / stdtrit(len(of_solver) - 1, 1 - LEVEL / 2)
        table.append(
            {
                "solver": str(solver),
                # unknown: last
                "form": run.forms.get(str(solver), _SIMPLEST_FIRST[-1]),
                **row[["n", "mean", "low", "high"]],
                **dict(
                    zip(("behind", "behind_low", "behind_high", "p"), test, strict=True)
                ),
                "error": error,
                "seconds": row[["tuning_seconds", "seconds"]].fillna(0).sum(),
                **row[["chosen", "outcomes"]],
            }
        )
    return pd.DataFrame(table)


def _sentences(choice: Choice) -> list[str]:
    """Return the sentences that recommend a method, without full stops.

    "" for omitted ones.
    """
    measured, new_list = choice.methods[choice.recommended], choice.expected
    if new_list is None:  # no forecast: say what was measured
        lift, hits = (
            measured["mean"] / choice.by_chance,
            _hits(choice, measured["mean"]),
        )
        hits += (
            " hits in"
            f" {choice.k:,}{_interval(choice, measured['low'], measured['high'])}"
        )
    else:
        lift, hits = new_list.lift, f"{new_list.hits:,.0f} hits in {new_list.k:,}"
        hits += f" ({new_list.low:,.0f} to {new_list.high:,.0f})"
    use = f"{choice.recommended}: about {hits}, {lift:.3g} times chance"
    size = f"with {count(choice.positives, 'positive')} in each held-out list"
    partial_results = f"{choice.recommended} has results on {_splits(choice)} only"
    detect = f"To detect a difference of {100 * _DETECTABLE:.0f} % you need about "
    # the file has none
    needs_a_reason = measured["form"] == "ensemble" and not choice.decided
    return [
        (
            ""
            if choice.decided
            else f"This file cannot decide: {size}, {_undecided_because(choice)}"
        ),
        f"Use {use}" if choice.decided else f"If you have to choose, use {use}",
        (
            "It came closest to the best method on our test lists"
            if needs_a_reason
            else ""
        ),
        _compared(choice) if choice.splits > 1 else "",
        (
            f"{detect}{choice.needed:,} positives; you have {choice.n_pos:,}"
            if choice.needed
            else ""
        ),
        partial_results if choice.splits < choice.splits_asked else "",
    ]


def _compared(choice: Choice) -> str:
    # Return a sentence that compares the recommended method with the best or, if the
    # best is recommended, with `REFERENCE`; "" if `REFERENCE` is recommended or lacks
    # results.
    reference = choice.methods.get(REFERENCE)
    rows = f"in {choice.k:,} of {choice.rows:,} held-out rows"
    if choice.recommended != choice.best:
        if choice.best not in choice.equivalent:  # only if `prefer` is "simple"
            return f"It is within one standard error of {choice.best}, and simpler"
        return (
            f"It is as good as {choice.best} {rows} (within {choice.margin:.1f} hits),"
            " and simpler"
        )
    if (
        reference is None
        or choice.recommended == REFERENCE
        or reference["n"] < choice.splits
    ):
        return ""
    ends = _ends(
        choice, reference["behind_low"], reference["behind_high"], is_difference=True
    )
    if reference["verdict"] == "worse":
        hits = _hits(choice, reference["behind"], is_difference=True)
        return f"{REFERENCE} finds {hits} hits fewer {rows} ({ends})"
    return (
        f"{REFERENCE} is not measurably worse {rows} (95 % interval: {ends} hits fewer)"
    )


def _undecided_because(choice: Choice) -> str:
    """Return why the file cannot decide, as a clause."""
    if choice.splits < 2:
        return "differences between methods cannot be tested on one split"
    if choice.methods[choice.recommended]["low"] <= choice.by_chance:
        new_list = choice.expected
        if new_list is not None and new_list.low > choice.by_chance * new_list.k:
            return (
                f"the hits of {choice.recommended} differ too much between these lists"
            )
        return "no method is measurably better than chance"
    return "another method may find a quarter more hits"  # `_MOST_LOST`, see `_decides`


def _splits(choice: Choice) -> str:  # such as "8 of 10 splits"
    some = f"{choice.splits} of " if choice.splits < choice.splits_asked else ""
    return f"{some}{count(choice.splits_asked, 'split')}"


def _interval(
    choice: Choice, low: float, high: float, is_difference: bool = False
) -> str:
    """Format an interval of precision as hits, such as " (1.0 to 2.0)".

    "" if an end is not finite.
    """
    ends = _ends(choice, low, high, is_difference)
    return f" ({ends})" if ends else ""


def _ends(choice: Choice, low: float, high: float, is_difference: bool) -> str:
    """Format the ends of an interval of precision as hits.

    "" if an end is not finite.
    """
    if not np.isfinite([low, high]).all():
        return ""
    return (
        f"{_hits(choice, low, is_difference)} to {_hits(choice, high, is_difference)}"
    )


def _hits(choice: Choice, precision: float, is_difference: bool = False) -> str:
    """Format a precision, or a difference of two precisions, as hits in the first k.

    The hits of a precision are limited to the range from 0 to k.
    """
    hits = choice.k * precision
    if not is_difference:
        hits = min(max(hits, 0.0), choice.k)
    # tenths only in a short list
    return f"{hits:.1f}" if choice.k <= 1000 else f"{hits:,.0f}"


def choice_table(choice: Choice, title: str) -> Table:
    """Return the comparison as a table, the recommended method first."""
    header = ["method", f"hits in {choice.k:,} of {choice.rows:,}", "fewer", "seconds"]
    rows = []
    for solver, row in choice.methods.items():
        if not np.isfinite(row["mean"]):
            # no result, see the last note
            rows.append([Cell(solver), *[Cell("–")] * 3])
            continue
        is_first = solver == choice.recommended
        mark = {"equivalent": " ≈", "incomplete": " †"}.get(row["verdict"], "")
        hits = _hits(choice, row["mean"]) + _interval(choice, row["low"], row["high"])
        fewer = _hits(choice, row["behind"], is_difference=True)
        fewer += (
            _interval(choice, row["behind_low"], row["behind_high"], is_difference=True)
            + mark
        )
        cells = [hits, "" if is_first else fewer, three_digits(row["seconds"])]
        rows.append([Cell(solver, bold=is_first), *map(Cell, cells)])
    new_list, like_new_list = choice.expected, ""
    if new_list is not None:
        # Held-out lists are cut at the share of the new list's top, rounded up to whole
        # rows. Rounding at most doubles a share, unless the share is below half a row:
        # then say "larger".
        is_larger = choice.k * new_list.rows > 2 * new_list.k * choice.rows
        how = "a larger share than" if is_larger else "as large a share as"
        like_new_list = f", {how} {new_list.k:,} of {new_list.rows:,}"
    notes = [
        (
            f"Means over {_splits(choice)} of the hits in the first {choice.k:,} of"
            f" {choice.rows:,} held-out rows{like_new_list}, with {choice.positives:,}"
            " positives and 95 % intervals; fewer: hits below the first method;"
            " seconds: to tune and train once."
        ),
    ]
    if choice.equivalent:
        notes.append(
            f"≈: as good as the first (the difference is within {choice.margin:.1f}"
            " hits)."
        )
    if any("†" in fewer.text for _, _, fewer, _ in rows):
        notes.append("†: mean over fewer splits; do not compare it with the others.")
    without_result = [
        f"{name} ({row['outcomes']})"
        for name, row in choice.methods.items()
        if not np.isfinite(row["mean"])
    ]
    if without_result:
        notes.append(f"Without a result: {'; '.join(without_result)}.")
    return Table(title, header, rows, notes, best="recommended")
