"""Recommend a method for the first k rows of a list, from the results of a run."""

from collections.abc import Iterable
from dataclasses import asdict, dataclass, fields, replace
from typing import Any, Literal

import numpy as np
import pandas as pd
from scipy.special import stdtrit

from precbench.advice.length import Length
from precbench.errors import InputError
from precbench.report.table import Cell, Table
from precbench.report.tables import final_values, summarise_trials, three_digits
from precbench.results import Run
from precbench.statistics import (
    LEVEL,
    NO_WIDTH,
    binomial_interval,
    levels,
    resampled_test,
)
from precbench.text import count
from precbench.topk import resolve_k

__all__ = ["Choice", "Expected", "choice_table", "choose_method"]

REFERENCE = "logistic-regression"
"""What most people would take."""
CHOSEN_BY = "dcg"
"""Takes the best method where there is no ensemble, and a run has this measure: all positives
count, those at the top most. An ensemble has chosen among its members already: where positives are
few, every choice among methods loses more hits than it does, see docs/advice.md."""
MARGIN = 0.05
"""Share of the best's hits, but at least one hit, that makes no difference in practice."""

_VERDICTS = ("best", "equivalent", "undecided", "worse", "incomplete")
_SIMPLEST_FIRST = ("linear", "random features", "nonlinear", "ensemble")
_WANTED = 0.1  # difference that a list should show, as a share of the best's hits
_RULE_OF_THREE = 3.0  # rows, of a list on which two methods never differed: 95 % bound


@dataclass(frozen=True)
class Expected:
    """What the recommended method is expected to find in a list of new rows.

    Attributes
    ----------
    rows : int
        Of the list.
    k : int
        Number of rows at the top.
    hits, low, high : float
        Positives among these, and the ends of the 95 % interval of those in one list, as
        ``precbench score`` expects them.
    """

    rows: int
    k: int
    hits: float
    low: float
    high: float


@dataclass(frozen=True)
class Choice:
    """The methods of a run, compared by their hits among the first k rows of a held-out list.

    Attributes
    ----------
    decided : bool
        Whether the list can decide: the best is significantly better than chance, some other method
        is equivalent or significantly worse, and logistic regression is not undecided.
    recommended : str
        The simplest, or the best if nothing is decided, unless simple methods are preferred.
    best : str
        An ensemble of several kinds, else the method with the best mean of `CHOSEN_BY`, or of
        prec@k where a run lacks that measure; but another one if it has significantly more hits.
    equivalent : list of str
        Those whose difference from the best lies within `margin`, with its whole 95 % interval, and
        which are significantly better than chance.
    worse : list of str
        Those significantly worse than the best, and not equivalent.
    undecided : list of str
        All others that have results on all splits.
    simplest : str
        Of the best and its equivalents: logistic regression before other linear methods, these
        before random features, these before other methods, an ensemble of several kinds last,
        among equals the better mean.
    fastest : str
        Of the best and its equivalents: the least time to tune and train.
    values : pandas.DataFrame
        A row for each method, the best first: ``solver``, ``form`` (linear, random features,
        nonlinear or ensemble), ``n`` splits, ``mean`` of prec@k with ``low`` and ``high``, the ends
        of its 95 % confidence interval, ``behind``, the best minus this one, with ``behind_low``
        and ``behind_high``, the ``p`` and the standard ``error`` of that difference, ``verdict``
        (best, equivalent, undecided, worse or, without results on all splits, incomplete),
        ``tied`` (best, equivalent or undecided), ``seconds`` to tune and train, ``chosen``
        parameters, and ``outcomes`` in words.
    k : int
        Number of rows at the top; about, for a share.
    rows, positives : int
        Of the held-out list, about.
    splits : int
        With a result of the best method.
    splits_asked : int
    margin : float
        In hits.
    needed : int or None
        About how many positives the file should have for a difference of 10 % of the hits to show;
        None if that is decided, or cannot be told.
    text : str
        A paragraph that recommends a method, and says how certain that is.
    length : Length or None
        Of `precbench.compare`: what a new list holds by its length.
    expected : Expected or None
        What the recommended method finds in a new list, from `length`.
    """

    decided: bool
    recommended: str
    best: str
    equivalent: list[str]
    undecided: list[str]
    worse: list[str]
    simplest: str
    fastest: str
    values: pd.DataFrame
    k: int
    rows: int
    positives: int
    splits: int
    splits_asked: int
    margin: float
    needed: int | None
    text: str
    length: Length | None = None
    expected: Expected | None = None

    def with_length(self, length: Length) -> "Choice":
        """Return the choice with what a new list holds, by its length and in the paragraph."""
        row = length.table.set_index("length").loc[length.k[0], ["hits", "low", "high"]]
        expected = Expected(length.rows, length.k[0], *map(float, row))
        choice = replace(self, length=length, expected=expected)
        return replace(choice, text=_paragraph(choice))

    @property
    def methods(self) -> dict[str, dict[str, Any]]:
        """The rows of `values` by method."""
        records: list[dict[Any, Any]] = self.values.to_dict("records")
        return {record["solver"]: record for record in records}

    @property
    def ties(self) -> list[str]:
        """The methods that may be as good as the best, equivalent or undecided, in their order."""
        return [name for name in self.methods if name in {*self.equivalent, *self.undecided}]

    @property
    def incomplete(self) -> dict[str, int]:
        """Methods with results on some splits only, and on how many; none of them is the best."""
        numbers = {name: int(row["n"]) for name, row in self.methods.items()}
        return {name: n for name, n in numbers.items() if 0 < n < self.splits}

    @property
    def by_chance(self) -> float:
        """The precision of a list in random order."""
        return self.positives / self.rows

    def to_dict(self) -> dict[str, Any]:
        """Return everything as values of JSON."""
        rows = self.values.astype(object).where(self.values.notna(), None).to_dict("records")
        known = {f.name: getattr(self, f.name) for f in fields(Choice)}
        del known["expected"], known["length"]
        of_list = None if self.expected is None else asdict(self.expected)
        derived = {"ties": self.ties, "by_chance": self.by_chance, "values": rows, "list": of_list}
        return {**known, **derived, "length": self.length and self.length.model_dump()}


def choose_method(
    run: Run,
    dataset: str | None = None,
    *,
    prefer: Literal["best", "simple"] = "best",
) -> Choice:
    """Compare the methods of a run by its first metric, and recommend one.

    Parameters
    ----------
    run : Run
        Its first metric is ``precision_at_k``.
    dataset : str, optional
        Default: the first.
    prefer : {"best", "simple"}
        "simple" recommends the simplest method that is behind the best by no more than the standard
        error of this difference.

    Raises
    ------
    InputError
        If no method has a result, or the metric is another.
    """
    dataset, metric = dataset or run.datasets[0], run.metrics[0]
    measure = run.measures[metric]
    if run.sweep is not None or measure.name != "precision_at_k":
        raise InputError(f"{run.name} does not compare methods by one prec@k")
    data, tested = run.data[dataset], run.test_shares.get(dataset, 1.0)
    n_rows, n_pos = round(data.rows * tested), round(data.positives * tested)
    k = resolve_k(measure.parameters["k"], n_pos, n_rows)
    results = run.results[run.results["dataset"] == dataset]
    trials = final_values(results)
    values = _values(run, trials, metric)
    if values["mean"].isna().all():
        reasons = "; ".join(values["solver"] + ": " + values["outcomes"])
        raise InputError(f"no method has a result ({reasons})")
    margin = max(1.0, MARGIN * k * values["mean"].iloc[0])
    values = _judged(values, k, margin, n_pos / n_rows)
    rows = {verdict: values[values["verdict"] == verdict] for verdict in _VERDICTS}
    names = {verdict: rows[verdict]["solver"].tolist() for verdict in _VERDICTS}
    alike = pd.concat([rows["best"], rows["equivalent"]])
    simplest = _simplest(alike)
    best = rows["best"].iloc[0]
    decided = bool(
        best["low"] > n_pos / n_rows
        and (names["equivalent"] or names["worse"])
        and REFERENCE not in names["undecided"]
    )
    recommended = simplest if decided else best["solver"]
    if prefer == "simple":
        is_near = (values["behind"] <= values["error"]) & ~values["verdict"].eq("incomplete")
        recommended = _simplest(values[is_near | values["verdict"].eq("best")])
    fields_of_choice: dict[str, Any] = {
        "decided": decided,
        "recommended": recommended,
        "best": best["solver"],
        "simplest": simplest,
        **{verdict: names[verdict] for verdict in ("equivalent", "undecided", "worse")},
        "fastest": alike["solver"].iloc[int(alike["seconds"].argmin())],
        "values": values,
        "k": k,
        "rows": n_rows,
        "positives": n_pos,
        "splits": int(values["n"].max()),
        "splits_asked": len(results[["split", "seed"]].drop_duplicates()),
        "margin": margin,
        "needed": None if decided else _needed(rows["undecided"], best["mean"], data.positives),
    }
    return Choice(**fields_of_choice, text=_paragraph(Choice(**fields_of_choice, text="")))


def _simplest(methods: pd.DataFrame) -> str:
    simple = [
        (name != REFERENCE, _SIMPLEST_FIRST.index(form))
        for name, form in zip(methods["solver"], methods["form"], strict=True)
    ]
    return str(methods["solver"].iloc[simple.index(min(simple))])


def _judged(values: pd.DataFrame, k: int, margin: float, by_chance: float) -> pd.DataFrame:
    """Give each method its verdict, and each interval without width the one of a single list."""
    values = values.copy()
    values["low"], values["high"] = values["low"].clip(lower=0), values["high"].clip(upper=1)
    vanishing = values["mean"].notna() & ~(values["high"] - values["low"] > NO_WIDTH)
    for i in values.index[vanishing]:
        mean = min(max(float(values.loc[i, "mean"]), 0.0), 1.0)
        values.loc[i, ["low", "high"]] = binomial_interval(mean, k)
    equal = values["behind_high"] - values["behind_low"] <= NO_WIDTH
    values.loc[equal, "behind_low"] -= _RULE_OF_THREE / k
    values.loc[equal, "behind_high"] += _RULE_OF_THREE / k
    is_whole = values["n"] == values["n"].max()
    is_close = (values[["behind_low", "behind_high"]].abs() * k <= margin).all(axis=1)
    is_close &= values["low"] > by_chance
    is_worse = (values["p"] <= LEVEL) & (values["behind"] > 0)
    others = {"incomplete": ~is_whole, "equivalent": is_close, "worse": is_worse}
    verdict = np.select([*others.values()], [*others], "undecided")
    verdict[0] = "best"
    return values.assign(
        verdict=verdict, tied=np.isin(verdict, ["best", "equivalent", "undecided"])
    )


def _needed(undecided: pd.DataFrame, best: float, n_pos: int) -> int | None:
    """Return with about how many positives half an interval would be `_WANTED` of the hits."""
    half = ((undecided["behind_high"] - undecided["behind_low"]) / 2).dropna()
    if half.empty or best <= 0:
        return None
    times = (half.median() / (_WANTED * best)) ** 2  # widths shrink with the root of the number
    needed = round(n_pos * times)
    return max(round(needed, min(2 - len(str(needed)), 0)), n_pos)  # to two digits


def _values(run: Run, trials: pd.DataFrame, metric: str) -> pd.DataFrame:
    chosen_by = CHOSEN_BY if CHOSEN_BY in run.metrics else metric
    both = trials[trials["metric"].isin([metric, chosen_by])]
    both = summarise_trials(both, test_shares=run.test_shares)
    deciding = both[both["metric"] == chosen_by]
    summary = both[both["metric"] == metric].set_index("solver")
    summary = summary.loc[[solver for solver in run.solvers if solver in summary.index]]
    complete = summary["n"] == summary["n"].max()  # the others failed on some splits
    means = pd.Series(levels(summary["mean"].where(complete)), summary.index)
    means = means.sort_values(ascending=False, kind="stable")
    by_solver = deciding.set_index("solver")["mean"].reindex(means.index)
    order = pd.Series(levels(by_solver.where(complete)), means.index)
    best = str(order.sort_values(ascending=False, kind="stable").index[0])
    stacks = [name for name in means.index if run.forms.get(name) == "ensemble" and complete[name]]
    best = str(stacks[0]) if stacks else best
    trials = trials[trials["metric"] == metric]
    table = _against(best, means.index, summary, run, trials)
    better = table["solver"][(table["p"] <= LEVEL) & (table["behind"] < 0)]
    if len(better):  # beyond noise, on the list of this length
        best = str(better.iloc[0])
        table = _against(best, means.index, summary, run, trials)
    return table.sort_values("solver", key=lambda names: names != best, kind="stable").reset_index(
        drop=True
    )


def _against(
    best: str, solvers: Iterable[str], summary: pd.DataFrame, run: Run, trials: pd.DataFrame
) -> pd.DataFrame:
    """Return a row for each method, with its difference from one of them."""
    share = run.test_shares.get(str(trials["dataset"].iloc[0]))
    of_trials = trials.pivot(index=["split", "seed"], columns="solver", values="value")
    table = []
    for solver in solvers:
        row = summary.loc[solver]
        pair = of_trials[[best, solver]].dropna().to_numpy() if solver != best else np.empty((0, 2))
        gap, error = [np.nan] * 4, np.nan
        if len(pair) and share is not None:
            gap = list(resampled_test(pair[:, 0], pair[:, 1], share))
            error = (gap[2] - gap[0]) / stdtrit(len(pair) - 1, 1 - LEVEL / 2)
        table.append(
            {
                "solver": str(solver),
                "form": run.forms.get(str(solver), _SIMPLEST_FIRST[-1]),
                **row[["n", "mean", "low", "high"]],
                **dict(zip(("behind", "behind_low", "behind_high", "p"), gap, strict=True)),
                "error": error,
                "seconds": row[["tuning_seconds", "seconds"]].fillna(0).sum(),
                **row[["chosen", "outcomes"]],
            }
        )
    return pd.DataFrame(table)


def _paragraph(choice: Choice) -> str:
    methods, new = choice.methods, choice.expected
    taken, best = methods[choice.recommended], methods[choice.best]
    reference = methods.get(REFERENCE)
    hits = (
        f"{choice.recommended} with about {_hits(choice, taken['mean'])} hits"
        f"{_interval(choice, taken['low'], taken['high'])} among the first {choice.k:,} of "
        f"{choice.rows:,} rows, against {_hits(choice, choice.by_chance)} by chance"
    )
    if reference and reference is not taken and reference["n"] == choice.splits:
        hits += f" and {_hits(choice, reference['mean'])} by {REFERENCE}"
        if reference["verdict"] == "worse":
            ends = _interval(choice, reference["behind_low"], reference["behind_high"], False)
            hits += f", {_hits(choice, reference['behind'], False)} fewer{ends}"
    is_equivalent = choice.recommended in choice.equivalent
    near = "as good as the best" if is_equivalent else "within one standard error of the best"
    is_ensemble = taken["form"] == "ensemble"
    why = (
        "on other lists it has lost fewest hits"
        if is_ensemble
        else "it has ranked best, maybe by luck"
    )
    margin = f"{choice.margin:.1f} hits" if choice.margin > 1 else "one hit"
    others = [name for name in (choice.best, *choice.equivalent) if name != choice.recommended]
    losses = (
        f"{name} (may be up to {_hits(choice, methods[name]['behind_high'], False)} hits worse)"
        for name in choice.undecided
    )
    incomplete = (f"{name} ({n} of {choice.splits})" for name, n in choice.incomplete.items())
    sentences = [
        choice.decided and f"Recommended: {hits}",
        not choice.decided
        and f"This file cannot decide: {count(choice.positives, 'positive')} in each held-out "
        f"list, {_undecided_because(choice)}. If you have to take one: {hits}; {why}",
        choice.needed
        and f"A difference of {100 * _WANTED:.0f} % would show with about {choice.needed:,} "
        "positives in the file",
        new
        and f"Among the first {new.k:,} of {count(new.rows, 'new row')} expect about "
        f"{new.hits:,.0f} hits, {new.low:,.0f} to {new.high:,.0f} in 95 % of such lists",
        choice.splits < choice.splits_asked
        and f"{choice.best} has results on {_splits(choice)} only",
        choice.recommended != choice.best
        and f"It is the simplest that is {near}; {choice.best} has found "
        f"{_hits(choice, best['mean'])}",
        choice.equivalent
        and f"Equivalent, within {margin}: {', '.join(others)}. The fastest of these is "
        f"{choice.fastest}",
        choice.undecided and choice.splits > 1 and f"Undecided: {', '.join(losses)}",
        choice.worse and f"Worse: {', '.join(choice.worse)}",
        choice.incomplete
        and f"Not compared, with results on some splits only: {', '.join(incomplete)}",
    ]
    return " ".join(f"{sentence}." for sentence in sentences if sentence)


def _undecided_because(choice: Choice) -> str:
    if choice.splits < 2:
        return "and differences between methods cannot be tested on one split"
    if choice.methods[choice.best]["low"] <= choice.by_chance:
        return "and no method is significantly better than chance"
    if REFERENCE in choice.undecided:
        return f"and no method is significantly better than {REFERENCE}"
    return "and no difference between methods is significant"


def _splits(choice: Choice) -> str:
    some = f"{choice.splits} of " if choice.splits < choice.splits_asked else ""
    return f"{some}{count(choice.splits_asked, 'split')}"


def _interval(choice: Choice, low: float, high: float, bounded: bool = True) -> str:
    ends = _ends(choice, low, high, bounded)
    return f" (95 % interval {ends})" if ends else ""


def _ends(choice: Choice, low: float, high: float, bounded: bool) -> str:
    if not np.isfinite([low, high]).all():
        return ""
    return f"{_hits(choice, low, bounded)} to {_hits(choice, high, bounded)}"


def _hits(choice: Choice, precision: float, bounded: bool = True) -> str:
    hits = choice.k * precision
    if bounded:
        hits = min(max(hits, 0.0), choice.k)
    return f"{hits:.1f}" if choice.k <= 1000 else f"{hits:,.0f}"


_MARKS = {"equivalent": " ≈", "undecided": " ?", "incomplete": " †"}


def choice_table(choice: Choice, title: str) -> Table:
    """Lay out the comparison, the best method first."""
    header = ["method", f"hits in {choice.k:,}", "95 % interval", "behind", "95 % interval"]
    header += [f"prec@{choice.k:,}", "seconds"]
    rows = []
    for solver, row in choice.methods.items():
        if not np.isfinite(row["mean"]):
            rows.append([Cell(solver), Cell("–"), *[Cell("")] * 5])
            continue
        is_best = solver == choice.best
        hits = _hits(choice, row["mean"]) + _MARKS.get(row["verdict"], "")
        texts = [
            _ends(choice, row["low"], row["high"], True),
            "" if is_best else _hits(choice, row["behind"], False),
            "" if is_best else _ends(choice, row["behind_low"], row["behind_high"], False),
            f"{row['mean']:.4f}",
            three_digits(row["seconds"]),
        ]
        rows.append([Cell(solver), Cell(hits, bold=is_best), *map(Cell, texts)])
    notes = [
        f"Means over {_splits(choice)} of held-out lists of about {choice.rows:,} rows with "
        f"{choice.positives:,} positives.",
        f"≈: equivalent, the interval of the difference lies within {choice.margin:.1f} hits; "
        "?: undecided; without a mark: significantly worse (paired t test at 5 %). "
        "Intervals and tests are corrected for the rows that splits share.",
        "Seconds to tune and train once, beside other trials.",
    ]
    if choice.incomplete:
        notes.append("†: mean over the splits with a result, not to be compared with the others.")
    without = [name for name, row in choice.methods.items() if not np.isfinite(row["mean"])]
    if without:
        reasons = (f"{name} ({choice.methods[name]['outcomes']})" for name in without)
        notes.append(f"Without a result: {'; '.join(reasons)}.")
    return Table(title, header, rows, notes)
