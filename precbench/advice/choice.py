"""Recommend a method for the first k rows of a list, from the results of a run."""

from dataclasses import asdict, dataclass, fields, replace
from functools import partial
from typing import Any, Literal, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.special import stdtrit

from precbench.advice.length import Length
from precbench.core.errors import InputError
from precbench.core.text import count
from precbench.ranking.statistics import (
    LEVEL,
    NO_WIDTH,
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

# With two splits, a 95 % interval is 12.7 standard errors to each side.
_LEAST_SPLITS = 3

_SIMPLEST_FIRST = ("linear", "random features", "nonlinear", "ensemble")
# Share of the hits: a difference that `Choice.needed` positives would show (chosen).
_DETECTABLE = 0.1
# Share of the hits that the recommended method may lose in a file that decides
# (chosen).
_MOST_LOST = 0.25
# If none of n rows differs, at most 3 / n of all do, with 95 % confidence.
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
    """The methods of a run, compared by their hits in the first k held-out rows.

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
        All other methods without a failed trial.
    values : pandas.DataFrame
        A row for each method, the recommended one first, then by the mean: ``solver``,
        ``form`` (linear, random features, nonlinear or ensemble), ``n`` splits with a
        result of the ``trials``,
        ``mean`` of prec@k with ``low`` and ``high``, the ends of its 95 % confidence
        interval, ``behind``, the mean of the recommended method minus this mean, with
        ``behind_low`` and ``behind_high``, the ``p`` and the standard ``error`` of this
        difference, both on the splits that the two have in common, ``verdict``
        (recommended, equivalent, undecided, worse or, if a trial has failed,
        incomplete), ``seconds`` to tune and train, ``chosen`` parameters, and
        ``outcomes`` in words.
    k : int
        Rows at the top of a held-out list, approximately; `expected` has the `k` of a
        new list.
    rows, positives : int
        Numbers of rows and of positives in a held-out list, approximately.
    splits, splits_asked : int
        Splits with a result of the recommended method, and all splits on which it was
        trained.
    margin : float
        How many hits make no difference in practice.
    n_pos : int
        Positives in the file.
    needed : int or None
        About how many positives the file should have so that a difference of 10 % of
        the hits shows; None if the file decides, or if the number cannot be told.
    left_out : list of str
        Methods of the run that were not trained.
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
    left_out: list[str]
    length: Length | None = None
    expected: Expected | None = None

    def with_length(self, length: Length) -> "Choice":
        """Return the choice with `length`, the forecast for a new list.

        `expected` is what it forecasts at its first k.
        """
        k = length.k[0]
        curve = length.curve
        place = curve["length"].index(k)
        expected = Expected(
            rows=length.rows,
            k=k,
            hits=float(curve["hits"][place]),
            low=float(curve["low"][place]),
            high=float(curve["high"][place]),
            lift=float(curve["lift"][place]),
        )
        return replace(self, length=length, expected=expected)

    @property
    def card(self) -> list[str]:
        """Sentences: what to use, what hits to expect, and how sure the advice is."""
        return [f"{sentence}." for sentence in _sentences(self)]

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
        content = {field.name: getattr(self, field.name) for field in fields(Choice)}
        del content["expected"]
        # NaN becomes None.
        values = self.values.astype(object).where(self.values.notna(), None)
        content["values"] = values.to_dict("records")
        content["length"] = None if self.length is None else self.length.model_dump()
        content["text"] = self.text
        content["by_chance"] = self.by_chance
        content["list"] = None if self.expected is None else asdict(self.expected)
        return content


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
    dataset = dataset or run.datasets[0]
    metric = run.metrics[0]
    measure = run.measures[metric]
    _require_prec_at_k(run)
    data = run.data[dataset]
    test_share = run.test_shares.get(dataset, 1.0)  # 1: one test set
    held_rows = round(data.rows * test_share)
    held_pos = round(data.positives * test_share)
    k = resolve_k(measure.parameters["k"], held_pos, held_rows)
    by_chance = held_pos / held_rows
    results = run.results[run.results["dataset"] == dataset]
    all_trials = final_values(results)
    summary = _summary(run, all_trials, metric)
    trials = all_trials[all_trials["metric"] == metric]
    best = _best(run, summary, trials)
    compared = _compare_with(best, summary, run, trials)  # the first row is of `best`
    if compared["mean"].isna().all():
        reasons = "; ".join(compared["solver"] + ": " + compared["outcomes"])
        raise InputError(
            f"{run.name}: no method has a result on {dataset} ({reasons}); mend the"
            " causes, then run the experiment again"
        )
    best_hits = k * compared["mean"].iloc[0]
    margin = _margin(measure.parameters["k"], best_hits, test_share)
    judge = partial(
        _judged, k=k, test_share=test_share, margin=margin, by_chance=by_chance
    )
    values = judge(compared)
    alike = _alike(values, prefer)
    of_whole_list = all_trials[all_trials["metric"] == DECIDED_BY]
    if len(of_whole_list) and _cannot_tell(best_hits, min(k, held_pos), margin):
        on_whole_list = _compare_with(best, summary, run, of_whole_list)
        is_behind = on_whole_list["behind"] > on_whole_list["error"]
        alike = alike[~alike["solver"].isin(on_whole_list["solver"][is_behind])]
    recommended = _simplest(alike)
    if recommended != best:
        values = judge(_compare_with(recommended, summary, run, trials))
    first = values.iloc[0]
    decided = _decides(values, by_chance)
    undecided = values[values["verdict"] == "undecided"]
    needed = None
    if not decided:
        needed = _needed(undecided, first["mean"], data.positives)
    return Choice(
        decided=decided,
        recommended=recommended,
        best=best,
        equivalent=values["solver"][values["verdict"] == "equivalent"].tolist(),
        undecided=undecided["solver"].tolist(),
        worse=values["solver"][values["verdict"] == "worse"].tolist(),
        values=values,
        k=k,
        rows=held_rows,
        positives=held_pos,
        splits=int(first["n"]),
        splits_asked=int(first["trials"]),
        margin=margin,
        n_pos=data.positives,
        needed=needed,
        left_out=[name for name in run.solvers if name not in {*values["solver"]}],
    )


def _require_prec_at_k(run: Run) -> None:
    """Require a run without a sweep whose first metric is prec@k."""
    metric = run.metrics[0]
    if run.sweep is not None:
        fault = "the run has a sweep"
    elif run.measures[metric].name != "precision_at_k":
        fault = f"the first metric is {metric}"
    else:
        return
    raise InputError(
        f"{run.name}: {fault}; give a run without a sweep whose first metric is"
        " precision_at_k"
    )


def _margin(k: TopK, best_hits: float, test_share: float) -> float:
    """Return how many hits make no difference in practice.

    The share `MARGIN` of `best_hits`, but at least one hit in a list as long as the
    file. If k is a share, the top of a held-out list is shorter by the factor
    `test_share`, and the one hit becomes `test_share` hits.
    """
    one_hit = 1.0 if isinstance(k, int) else test_share
    return max(one_hit, MARGIN * best_hits)


def _decides(values: pd.DataFrame, by_chance: float) -> bool:
    """Return whether the file decides for the first method, the recommended one.

    It is better than chance, and no other method may find many more hits. One split has
    no interval: NaN compares as false, nothing is decided.
    """
    first = values.iloc[0]
    others = values[values["verdict"] != "incomplete"].iloc[1:]
    loses_little = others["behind_low"] >= -_MOST_LOST * first["mean"]
    differs_equally_on_all_splits = others["error"] <= NO_WIDTH
    is_safe = loses_little | differs_equally_on_all_splits
    return bool(first["low"] > by_chance and is_safe.all())


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
    is_recommended = values["verdict"] == "recommended"
    if prefer == "simple":
        is_complete = values["verdict"] != "incomplete"
        is_near = values["behind"] <= values["error"]
        return values[is_recommended | (is_complete & is_near)]
    return values[is_recommended | (values["verdict"] == "equivalent")]


def _simplest(alike: pd.DataFrame) -> str:
    """Return the simplest of methods that are as good as each other.

    `REFERENCE` if it is among them, else the first method of the simplest form.
    """
    names = alike["solver"].tolist()
    if REFERENCE in names:
        return REFERENCE
    complexities = [_SIMPLEST_FIRST.index(form) for form in alike["form"]]
    return str(names[complexities.index(min(complexities))])


def _judged(
    values: pd.DataFrame, k: int, test_share: float, margin: float, by_chance: float
) -> pd.DataFrame:
    """Return the table with a ``verdict`` on each method against the recommended one.

    The recommended method is the first. Intervals are widened, see `_widened`.
    """
    judged = _widened(values, k, test_share)
    is_incomplete = judged["n"] < judged["trials"]
    # Equivalent: the whole interval of the difference, in hits, lies within the margin,
    # and the method is better than chance.
    is_close = (judged[["behind_low", "behind_high"]].abs() * k <= margin).all(axis=1)
    is_equivalent = is_close & (judged["low"] > by_chance)
    is_worse = (judged["p"] <= LEVEL) & (judged["behind"] > 0)
    # A later line overrules an earlier one.
    judged["verdict"] = "undecided"
    judged.loc[is_worse, "verdict"] = "worse"
    judged.loc[is_equivalent, "verdict"] = "equivalent"
    judged.loc[is_incomplete, "verdict"] = "incomplete"
    judged.loc[judged.index[0], "verdict"] = "recommended"
    return judged


def _widened(values: pd.DataFrame, k: int, test_share: float) -> pd.DataFrame:
    """Return the table with intervals at least as wide as those of the rows tested.

    These are the different rows among the first `k` of all held-out lists. Values of
    few splits may agree by chance.
    """
    widened = values.copy()
    widened["low"] = widened["low"].clip(lower=0)
    widened["high"] = widened["high"].clip(upper=1)
    for i in widened.index[widened["mean"].notna()]:
        n_splits = int(widened.loc[i, "n"])
        # With a share of 1, all held-out lists are one list.
        n_tested = k
        if test_share < 1:
            n_tested = round(distinct_rows(n_splits, k, test_share))
        # By rounding, a mean may leave [0, 1].
        mean = min(max(float(widened.loc[i, "mean"]), 0.0), 1.0)
        low, high = binomial_interval(mean, n_tested)
        # The ends of one split are NaN, which fmin and fmax ignore.
        widened.loc[i, "low"] = np.fmin(widened.loc[i, "low"], low)
        widened.loc[i, "high"] = np.fmax(widened.loc[i, "high"], high)
        # A method that differs equally on all splits has an interval without a width.
        width = widened.loc[i, "behind_high"] - widened.loc[i, "behind_low"]
        if width <= NO_WIDTH:
            widened.loc[i, "behind_low"] -= _RULE_OF_THREE / n_tested
            widened.loc[i, "behind_high"] += _RULE_OF_THREE / n_tested
    return widened


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
    # Two significant digits.
    n_zeros = max(len(str(needed)) - 2, 0)
    # Never fewer than the file has.
    return max(round(needed, -n_zeros), n_pos)


def _summary(run: Run, trials: pd.DataFrame, metric: str) -> pd.DataFrame:
    """Return a row for each method, its summary of `metric`, the best mean first.

    ``level`` is the rank by this mean, ``place`` the rank by the mean of `CHOSEN_BY`.
    Ranks ascend from 0 for the worst method; they are NaN for methods without results
    on all splits, which are not ``is_complete``.
    """
    chosen_by = CHOSEN_BY if CHOSEN_BY in run.metrics else metric
    summaries = summarise_trials(
        trials[trials["metric"].isin([metric, chosen_by])],
        test_shares=run.test_shares,
    ).set_index("solver")
    of_metric = summaries[summaries["metric"] == metric]
    # In the order of the run.
    summary = of_metric.loc[[name for name in run.solvers if name in of_metric.index]]
    of_chooser = summaries[summaries["metric"] == chosen_by].reindex(summary.index)
    is_complete = summary["n"] == summary["n"].max()
    ranked = summary.assign(
        is_complete=is_complete,
        level=levels(summary["mean"].where(is_complete)),  # where: NaN for the others
        place=levels(of_chooser["mean"].where(is_complete)),
    )
    return ranked.sort_values("level", ascending=False, kind="stable")


def _best(run: Run, summary: pd.DataFrame, trials: pd.DataFrame) -> str:
    """Return the favourite, or a method that has significantly more hits."""
    favourite = _favourite(run, summary)
    values = _compare_with(favourite, summary, run, trials)
    has_more_hits = (values["p"] <= LEVEL) & (values["behind"] < 0)
    better = values["solver"][has_more_hits]
    return str(better.iloc[0]) if len(better) else favourite


def _favourite(run: Run, summary: pd.DataFrame) -> str:
    """Return the first ensemble, else the first method by `CHOSEN_BY` (see there)."""
    for name in summary.index[summary["is_complete"]]:
        if run.forms.get(name) == "ensemble":
            return str(name)
    by_place = summary["place"].sort_values(ascending=False, kind="stable").index
    return str(by_place[0])


class _Lag(NamedTuple):
    """How far a method is behind the reference, as columns of `Choice.values`."""

    behind: float = np.nan
    behind_low: float = np.nan
    behind_high: float = np.nan
    p: float = np.nan
    error: float = np.nan


def _lag(pairs: NDArray[np.float64], test_share: float | None) -> _Lag:
    """Return how far the second method is behind the first.

    `pairs` has the values of both on each split that has both. If `test_share` is
    None, all splits hold out the same rows, and the difference cannot be tested.
    """
    if test_share is None or not len(pairs):
        return _Lag()
    test = resampled_test(pairs[:, 0], pairs[:, 1], test_share)
    # Half the interval is the standard error times this quantile of Student's t.
    quantile = stdtrit(len(pairs) - 1, 1 - LEVEL / 2)
    error = (test.high - test.mean) / quantile
    return _Lag(test.mean, test.low, test.high, test.p, error)


def _compare_with(
    reference: str, summary: pd.DataFrame, run: Run, trials: pd.DataFrame
) -> pd.DataFrame:
    """Return `Choice.values` without verdicts.

    `reference` comes first, and the others say how far they are behind.
    """
    others = [solver for solver in summary.index if solver != reference]
    test_share = run.test_shares.get(str(trials["dataset"].iloc[0]))
    by_split = trials.pivot(index=["split", "seed"], columns="solver", values="value")
    table = []
    for solver in [reference, *others]:
        row = summary.loc[solver]
        lag = _Lag()
        if solver != reference:
            pairs = by_split[[reference, solver]].dropna()
            lag = _lag(pairs.to_numpy(), test_share)
        table.append(
            {
                "solver": str(solver),
                # An unknown form counts as the least simple.
                "form": run.forms.get(str(solver), _SIMPLEST_FIRST[-1]),
                "n": row["n"],
                "trials": row["trials"],
                "mean": row["mean"],
                "low": row["low"],
                "high": row["high"],
                **lag._asdict(),
                "seconds": row[["tuning_seconds", "seconds"]].fillna(0).sum(),
                "chosen": row["chosen"],
                "outcomes": row["outcomes"],
            }
        )
    return pd.DataFrame(table)


def _sentences(choice: Choice) -> list[str]:
    """Return the sentences that recommend a method, without full stops."""
    sentences = []
    sentences.append(f"Use {choice.recommended}: about {_hits_to_expect(choice)}")
    if not choice.decided:
        sentences.append(_undecided_because(choice))
        if choice.methods[choice.recommended]["form"] == "ensemble":
            sentences.append(
                "An ensemble came closest to the best method on our test lists"
            )
    comparison = _compared(choice) if choice.splits >= _LEAST_SPLITS else ""
    if comparison:
        sentences.append(comparison)
    if choice.needed:
        sentences.append(
            f"To detect a difference of {100 * _DETECTABLE:.0f} % you need about"
            f" {choice.needed:,} positives; you have {choice.n_pos:,}"
        )
    if choice.splits < choice.splits_asked:
        sentences.append(
            f"{choice.recommended} has results on {splits_in_words(choice)} only"
        )
    return sentences


def _hits_to_expect(choice: Choice) -> str:
    """Return the hits of the recommended method in words, with their lift.

    Without a forecast for a new list, these are the hits of held-out lists.
    """
    expected = choice.expected
    if expected is None:
        measured = choice.methods[choice.recommended]
        lift = measured["mean"] / choice.by_chance
        interval = _interval(choice, measured["low"], measured["high"])
        hits = f"{_hits(choice, measured['mean'])} hits in {choice.k:,}{interval}"
    else:
        lift = expected.lift
        hits = (
            f"{expected.hits:,.0f} hits in {expected.k:,}"
            f" ({expected.low:,.0f} to {expected.high:,.0f})"
        )
    return f"{hits}, {lift:.3g} times chance"


def _compared(choice: Choice) -> str:
    """Return a sentence that compares the recommended method with another one.

    The other one is the best or, if the best is recommended, `REFERENCE`. "" if
    `REFERENCE` is recommended or lacks results.
    """
    rows = f"in {choice.k:,} of {choice.rows:,} held-out rows"
    if choice.recommended != choice.best:
        if choice.best not in choice.equivalent:  # only if `prefer` is "simple"
            return f"It is within one standard error of {choice.best}, and simpler"
        return (
            f"It is as good as {choice.best} {rows} (within {choice.margin:.1f} hits),"
            " and simpler"
        )
    reference = choice.methods.get(REFERENCE)
    if reference is None or choice.recommended == REFERENCE:
        return ""
    if reference["n"] < choice.splits:
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
    """Return why the file does not decide between the methods, as a sentence."""
    if choice.splits < _LEAST_SPLITS:
        return f"{count(choice.splits, 'split')} cannot show whether methods differ"
    size = f"With {count(choice.positives, 'positive')} in each held-out list"
    if choice.methods[choice.recommended]["low"] <= choice.by_chance:
        new_list = choice.expected
        if new_list is not None and new_list.low > choice.by_chance * new_list.k:
            return (
                f"{size}, the hits of {choice.recommended} differ too much between the"
                " lists to compare methods"
            )
        return f"{size}, no method is measurably better than chance"
    rival = _strongest_rival(choice)
    mean = choice.methods[choice.recommended]["mean"]
    most = _hits(choice, min(-rival["behind_low"], 1 - mean), is_difference=True)
    return (
        f"{size}, this file does not show whether another method is better:"
        f" {rival['solver']} might find up to {most} hits more in {choice.k:,} of"
        f" {choice.rows:,}"
    )


def _strongest_rival(choice: Choice) -> dict[str, Any]:
    """Return the method that may find most hits more than the recommended one."""
    rivals = [
        method
        for method in choice.methods.values()
        if method["verdict"] not in ("recommended", "incomplete")
    ]
    return min(rivals, key=lambda method: method["behind_low"])


def splits_in_words(choice: Choice) -> str:
    """Return the splits with results, such as "8 of 10 splits"."""
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
    fewest = _hits(choice, low, is_difference)
    most = _hits(choice, high, is_difference)
    return f"{fewest} to {most}"


def _hits(choice: Choice, precision: float, is_difference: bool = False) -> str:
    """Format a precision, or a difference of two precisions, as hits in the first k.

    The hits of a precision are limited to the range from 0 to k.
    """
    hits = choice.k * precision
    if not is_difference:
        hits = min(max(hits, 0.0), choice.k)
    # Tenths are shown only of a short list.
    return f"{hits:.1f}" if choice.k <= 1000 else f"{hits:,.0f}"


def choice_table(choice: Choice, title: str) -> Table:
    """Return the comparison as a table, the recommended method first."""
    header = ["method", f"hits in {choice.k:,} of {choice.rows:,}", "fewer", "seconds"]
    rows = [_method_cells(choice, solver) for solver in choice.methods]
    notes = [
        f"Means over {splits_in_words(choice)} of the hits in the first {choice.k:,} of"
        f" {choice.rows:,} held-out rows{_like_new_list(choice)}, with"
        f" {choice.positives:,} positives and 95 % intervals; fewer: hits below the"
        " first method; seconds: to tune and train once."
    ]
    if choice.equivalent:
        notes.append(
            f"≈: as good as the first (the difference is within {choice.margin:.1f}"
            " hits)."
        )
    without_result = []
    is_some_on_fewer_splits = False
    for solver, method in choice.methods.items():
        if not np.isfinite(method["mean"]):
            without_result.append(f"{solver} ({method['outcomes']})")
        elif method["n"] < choice.splits:
            is_some_on_fewer_splits = True
    if is_some_on_fewer_splits:
        notes.append(
            "†: on fewer splits; only the column fewer, which is of the same splits,"
            " compares it with the first."
        )
    if without_result:
        notes.append(f"Without a result: {'; '.join(without_result)}.")
    if choice.left_out:
        notes.append(f"Not trained: {', '.join(choice.left_out)}.")
    return Table(title, header, rows, notes, best="recommended")


def _method_cells(choice: Choice, solver: str) -> list[Cell]:
    """Return a method's row of the table: name, hits, hits fewer and seconds."""
    method = choice.methods[solver]
    if not np.isfinite(method["mean"]):  # a note says why
        return [Cell(solver), Cell("–"), Cell("–"), Cell("–")]
    hits = _hits(choice, method["mean"])
    hits += _interval(choice, method["low"], method["high"])
    is_first = solver == choice.recommended
    fewer = ""
    if not is_first:
        fewer = _hits(choice, method["behind"], is_difference=True)
        fewer += _interval(
            choice, method["behind_low"], method["behind_high"], is_difference=True
        )
    if method["verdict"] == "equivalent":
        fewer += " ≈"
    if method["n"] < choice.splits:
        fewer += " †"
    seconds = three_digits(method["seconds"])
    return [Cell(solver, bold=is_first), Cell(hits), Cell(fewer), Cell(seconds)]


def _like_new_list(choice: Choice) -> str:
    """Return a clause that compares the top of held-out lists with that of a new list.

    Held-out lists are cut at the share of the new list's top, rounded up to whole rows.
    Rounding at most doubles a share, unless the share is below half a row.
    """
    expected = choice.expected
    if expected is None:
        return ""
    is_doubled = choice.k * expected.rows > 2 * expected.k * choice.rows
    how = "a larger share than" if is_doubled else "as large a share as"
    return f", {how} {expected.k:,} of {expected.rows:,}"
