"""Recommend a method for the first k rows of a list, from the results of a run."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from precbench.errors import InputError
from precbench.report.table import Cell, Table
from precbench.report.tables import final_values, summarise, three_digits
from precbench.results import Run
from precbench.statistics import LEVEL, levels, resampled_test
from precbench.text import count
from precbench.topk import resolve_k

__all__ = ["Choice", "choice_table", "choose_method"]

REFERENCE = "logistic-regression"
"""What most people would take."""

_SIMPLEST_FIRST = ("linear", "random features", "nonlinear")


@dataclass(frozen=True)
class Choice:
    """The methods of a run, compared by their hits among the first k rows of a held-out list.

    Attributes
    ----------
    best : str
        The method with the best mean.
    ties : list of str
        Those not significantly different from it, the best mean first.
    simplest : str
        Of the best and its ties: linear before random features before other methods, among equals
        the better mean.
    fastest : str
        Of the best and its ties: the least time to tune and train.
    values : pandas.DataFrame
        A row for each method, the best first: ``solver``, ``form`` (linear, random features or
        nonlinear), ``n`` splits, ``mean`` of prec@k with ``low`` and ``high``, the ends of its 95 %
        confidence interval, ``behind``, the best minus this one, with ``behind_low`` and
        ``behind_high``, the ``p`` of that difference, ``tied``, ``seconds`` to tune and train,
        ``chosen`` parameters, and ``outcomes`` in words.
    k : int
        Number of rows at the top; about, for a share.
    rows, positives : int
        Of the held-out list, about.
    splits : int
        With a result of the best method.
    splits_asked : int
    text : str
        A paragraph that recommends a method, and says how certain that is.
    """

    best: str
    ties: list[str]
    simplest: str
    fastest: str
    values: pd.DataFrame
    k: int
    rows: int
    positives: int
    splits: int
    splits_asked: int
    text: str

    @property
    def methods(self) -> dict[str, dict[str, Any]]:
        """The rows of `values` by method."""
        records: list[dict[Any, Any]] = self.values.to_dict("records")
        return {record["solver"]: record for record in records}

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
        return {**vars(self), "by_chance": self.by_chance, "values": rows}


def choose_method(run: Run, dataset: str | None = None) -> Choice:
    """Compare the methods of a run by its first metric, and recommend one.

    Parameters
    ----------
    run : Run
        Its first metric is ``precision_at_k``.
    dataset : str, optional
        Default: the first.

    Raises
    ------
    InputError
        If no method has a result, or the metric is another.
    """
    dataset, metric = dataset or run.datasets[0], run.metrics[0]
    measure = run.measures[metric]
    if run.sweep is not None or measure["name"] != "precision_at_k":
        raise InputError(f"{run.name} does not compare methods by one prec@k")
    values = _values(run, dataset, metric)
    if values["mean"].isna().all():
        reasons = "; ".join(values["solver"] + ": " + values["outcomes"])
        raise InputError(f"no method has a result ({reasons})")
    equals = values[values["tied"]]
    form = equals["form"].map(_SIMPLEST_FIRST.index).to_numpy()
    data = run.data[dataset]
    tested = run.test_shares.get(dataset, 1.0)
    n_rows, n_pos = round(data["rows"] * tested), round(data["positives"] * tested)
    fields: dict[str, Any] = {
        "best": equals["solver"].iloc[0],
        "ties": equals["solver"].tolist()[1:],
        "simplest": equals["solver"].iloc[int(form.argmin())],
        "fastest": equals["solver"].iloc[int(equals["seconds"].argmin())],
        "values": values,
        "k": resolve_k(measure["parameters"]["k"], n_pos, n_rows),
        "rows": n_rows,
        "positives": n_pos,
        "splits": int(values["n"].max()),
        "splits_asked": _n_asked(run, dataset),
    }
    return Choice(**fields, text=_paragraph(Choice(**fields, text="")))


def _n_asked(run: Run, dataset: str) -> int:
    results = run.results[run.results["dataset"] == dataset]
    return len(results[["split", "seed"]].drop_duplicates())


def _values(run: Run, dataset: str, metric: str) -> pd.DataFrame:
    results = run.results[(run.results["dataset"] == dataset) & (run.results["metric"] == metric)]
    summary = summarise(results, test_shares=run.test_shares).set_index("solver")
    summary = summary.loc[[solver for solver in run.solvers if solver in summary.index]]
    complete = summary["n"] == summary["n"].max()  # the others failed on some splits
    means = pd.Series(levels(summary["mean"].where(complete)), summary.index)
    means = means.sort_values(ascending=False, kind="stable")
    best, share = str(means.index[0]), run.test_shares.get(dataset)
    trials = final_values(results)
    of_trials = trials.pivot(index=["split", "seed"], columns="solver", values="value")
    table = []
    for solver, row in summary.loc[means.index].iterrows():
        pair = of_trials[[best, solver]].dropna().to_numpy() if solver != best else np.empty((0, 2))
        gap = [np.nan] * 4
        if len(pair) and share is not None:
            gap = list(resampled_test(pair[:, 0], pair[:, 1], share))
        table.append(
            {
                "solver": str(solver),
                "form": run.forms.get(str(solver), _SIMPLEST_FIRST[-1]),
                **row[["n", "mean", "low", "high"]],
                **dict(zip(("behind", "behind_low", "behind_high", "p"), gap, strict=True)),
                "tied": solver == best or bool(complete[solver] and gap[-1] > LEVEL),
                "seconds": row[["tuning_seconds", "seconds"]].fillna(0).sum(),
                **row[["chosen", "outcomes"]],
            }
        )
    return pd.DataFrame(table)


def _paragraph(choice: Choice) -> str:
    best, reference = (choice.methods.get(name) for name in (choice.best, REFERENCE))
    assert best is not None
    sentences = [
        f"Recommended: {choice.best} with about {_hits(choice, best['mean'])} hits"
        f"{_interval(choice, best['low'], best['high'])} among the first {choice.k:,} of "
        f"{choice.rows:,} rows, against {_hits(choice, choice.by_chance)} by chance"
    ]
    if choice.best != REFERENCE and reference and reference["n"] == choice.splits:
        sentences[0] += f" and {_hits(choice, reference['mean'])} by {REFERENCE}"
        if not reference["tied"]:
            ends = _interval(choice, reference["behind_low"], reference["behind_high"], False)
            fewer = _hits(choice, reference["behind"], False)
            sentences[0] += f", {fewer} fewer{ends}"
    if best["mean"] <= choice.by_chance:
        sentences.append("That is no better than chance")
    if choice.splits < choice.splits_asked:
        sentences.append(f"{choice.best} has results on {_splits(choice)} only")
    if choice.splits < 2:
        sentences.append("Differences between methods cannot be tested on one split")
    elif choice.ties:
        sentences.append(f"As good within noise: {', '.join(choice.ties)}")
        forms = {choice.methods[name]["form"] for name in (choice.best, *choice.ties)}
        if len(forms) == 1:
            least = f"the fastest is {choice.fastest}"
        elif choice.simplest == choice.fastest:
            least = f"the simplest and the fastest is {choice.simplest}"
        else:
            least = f"the simplest is {choice.simplest}, the fastest {choice.fastest}"
        sentences.append(f"Of all these {least}")
    elif (choice.values["n"] == choice.splits).sum() > 1:
        sentences.append("No other is as good, beyond noise")
    if choice.incomplete:
        names = (f"{name} ({n} of {choice.splits})" for name, n in choice.incomplete.items())
        sentences.append(f"Not compared, with results on some splits only: {', '.join(names)}")
    return ". ".join([*sentences, ""]).rstrip()


def _splits(choice: Choice) -> str:
    some = f"{choice.splits} of " if choice.splits < choice.splits_asked else ""
    return f"{some}{count(choice.splits_asked, 'split')}"


def _interval(choice: Choice, low: float, high: float, bounded: bool = True) -> str:
    if not np.isfinite([low, high]).all() or low == high:  # equal values show no variance
        return ""
    ends = (_hits(choice, end, bounded) for end in (low, high))
    return f" (95 % interval {' to '.join(ends)})"


def _hits(choice: Choice, precision: float, bounded: bool = True) -> str:
    hits = choice.k * precision
    if bounded:
        hits = min(max(hits, 0.0), choice.k)
    return f"{hits:.1f}" if choice.k <= 1000 else f"{hits:,.0f}"


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
        hits = _hits(choice, row["mean"])
        if row["tied"] and not is_best:
            hits += " ≈"
        if solver in choice.incomplete:
            hits += " †"
        behind = ["", ""]
        if not is_best:
            behind = [_hits(choice, row["behind"], False)]
            behind += [_ends(choice, row["behind_low"], row["behind_high"], False)]
        texts = [_ends(choice, row["low"], row["high"], True), *behind]
        texts += [f"{row['mean']:.4f}", three_digits(row["seconds"])]
        rows.append([Cell(solver), Cell(hits, bold=is_best), *map(Cell, texts)])
    notes = [
        f"Means over {_splits(choice)} of held-out lists of about {choice.rows:,} rows with "
        f"{choice.positives:,} positives.",
        "≈: as good as the best within noise (paired t test at 5 %). Intervals and tests are "
        "corrected for the rows that splits share.",
        "Seconds to tune and train once, beside other trials.",
    ]
    if choice.incomplete:
        notes.append("†: mean over the splits with a result, not to be compared with the others.")
    without = [name for name, row in choice.methods.items() if not np.isfinite(row["mean"])]
    if without:
        reasons = (f"{name} ({choice.methods[name]['outcomes']})" for name in without)
        notes.append(f"Without a result: {'; '.join(reasons)}.")
    return Table(title, header, rows, notes)


def _ends(choice: Choice, low: float, high: float, bounded: bool) -> str:
    text = _interval(choice, low, high, bounded)
    return text.removeprefix(" (95 % interval ").removesuffix(")")
