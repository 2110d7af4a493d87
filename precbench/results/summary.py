"""Summaries of each solver's trials: mean, spread, interval and times over splits."""

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from types import MappingProxyType

import numpy as np
import pandas as pd

from precbench.ranking.statistics import levels, resampled_interval, resampled_test

_POINT = ["dataset", "sweep"]  # columns that tell points of a sweep apart
_GROUP = [*_POINT, "metric", "solver"]  # columns that tell rows of a summary apart
TRIAL = ["split", "seed"]  # columns that tell the trials of a group apart
# Columns that are constant in all rows of a trial, and hold no numbers
_LABELS = ["stand_in", "status", "reason", "stopped", "timing", "machine", "chosen"]
_TRIAL_COLUMNS = [*_LABELS, "tuning_seconds", "key"]
# Columns that hold numbers, one of a trial and metric
_MEASURED = ["value", "seconds", "seconds_to_99", "tuning_seconds"]


def summarise(
    results: pd.DataFrame,
    losses: Collection[str] = (),
    test_shares: Mapping[str, float] = MappingProxyType({}),
) -> pd.DataFrame:
    """Summarise trials in a row per data set, point of the sweep, metric and solver.

    - ``trials`` (how many), ``n`` (how many are ok) and ``outcomes`` in words;
    - ``mean``, ``std`` (``ddof=1``, none for one trial), ``median``, ``q25`` and
      ``q75`` of the final values;
    - ``low`` and ``high``: 95 % confidence interval of the mean; ``p_best``: p-value of
      the difference from the best mean. Interval and p-value are corrected for splits
      that overlap, see `precbench.ranking.statistics`, and need `test_shares`, by data
      set the fraction of rows in the test set. The best solver has no p-value, nor has
      a solver with fewer trials than another;
    - ``seconds`` and ``seconds_to_99``: median wall times to the final weights, and to
      the first checkpoint within 1 % of the best value of the trial's own curve;
    - ``relative_time``: ``seconds`` as a multiple of the fastest solver's ``seconds``;
      none if that solver took no time, as where no feature varies, none for parallel
      trials beside sequential trials, and none for trials on several machines, unless
      the trials of each split ran on one machine;
    - ``chosen``: the tuned parameters, with how many trials chose them, and
      ``tuning_seconds``, the median wall time of tuning;
    - ``stopped`` (trials that a limit ended, which count as ok), ``failed`` (trials not
      ok), ``timing`` ("parallel" if any trial was) and ``stand_in``;
    - ``machines``: the kinds of machine, and ``same_machine``, whether all trials on a
      split ran on one kind.
    """
    return summarise_trials(final_values(results, losses), losses, test_shares)


def summarise_trials(
    trials: pd.DataFrame,
    losses: Collection[str] = (),
    test_shares: Mapping[str, float] = MappingProxyType({}),
) -> pd.DataFrame:
    """Return the table of `summarise` from the trials that `final_values` returns."""
    groups = trials.groupby(_GROUP, sort=False)
    # The rows of a group are taken from arrays, as a table would take three times as
    # long.
    columns = {name: trials[name].to_numpy(object) for name in _LABELS}
    columns |= {name: trials[name].to_numpy(float) for name in _MEASURED}
    rows = []
    for key in groups.size().index:
        places = groups.indices[key]
        columns_of_group = {name: column[places] for name, column in columns.items()}
        group = dict(zip(_GROUP, key, strict=True))
        rows.append(_summary_row(group, columns_of_group, test_shares))
    summary = pd.DataFrame(rows).join(_same_machine(trials), on=_POINT)
    p_values = _against_the_best(trials, losses, test_shares)
    groups_of_rows = pd.MultiIndex.from_frame(summary[_GROUP])
    summary["p_best"] = groups_of_rows.map(p_values.get).astype(float)
    summary["relative_time"] = _relative_times(summary)
    return summary


def _relative_times(summary: pd.DataFrame) -> pd.Series:
    """Return seconds as a multiple of the fastest solver's, NaN if not comparable."""
    point = [summary[name] for name in _POINT]
    sequential = summary["seconds"].where(summary["timing"] == "sequential")
    # Times of parallel trials compare only with each other: where a solver has
    # sequential times, they are left out.
    has_sequential = sequential.groupby(point).transform("any")  # NaN is skipped
    of_one_kind = sequential.where(has_sequential, summary["seconds"])
    comparable = of_one_kind.where(summary["same_machine"])
    fastest = comparable.groupby(point).transform("min")
    multiples = comparable / fastest
    return multiples.where(np.isfinite(multiples))


def final_values(results: pd.DataFrame, losses: Collection[str] = ()) -> pd.DataFrame:
    """Return a row for each trial and metric, with final value and times.

    ``value``, ``seconds`` and ``seconds_to_99`` are NaN where the trial failed.
    """
    rows = results[results["part"] == "test"].reset_index(drop=True)
    trial_and_metric = [*_GROUP, *TRIAL]
    # The number of a row's trial and metric, which rows of all its checkpoints share.
    number = rows.groupby(trial_and_metric, sort=False, dropna=False).ngroup()
    is_ok = (rows["status"] == "ok") & rows["value"].notna()

    final = rows[is_ok & rows["final"]].groupby(number)
    near_best = rows[_is_near_best(rows, is_ok, losses, number)]
    by_checkpoint = near_best.sort_values("checkpoint", kind="stable")
    seconds_near_best = by_checkpoint.groupby(number)["wall_seconds"]
    columns = rows.set_index(number)[[*trial_and_metric, *_TRIAL_COLUMNS]]
    last_rows = columns.groupby(level=0).tail(1).sort_index()
    # Like `last_rows`, the new columns are indexed by number, by which `assign` aligns
    # them, with NaN for failed trials.
    return last_rows.assign(
        value=final["value"].last(),
        seconds=final["wall_seconds"].last(),
        seconds_to_99=seconds_near_best.first(),
    )


def _is_near_best(
    rows: pd.DataFrame, is_ok: pd.Series, losses: Collection[str], number: pd.Series
) -> pd.Series:
    """Return whether the value of a row is within 1 % of the best of its trial.

    `number` tells trials and metrics apart.
    """
    is_loss = rows["metric"].isin(losses)
    gain = rows["value"].where(~is_loss, -rows["value"])  # larger is better
    gain = gain.where(is_ok & (rows["rows_seen"] > 0))  # before any row, all scores tie
    best = gain.groupby(number).transform("max")
    with np.errstate(invalid="ignore"):  # of values that have overflowed
        least = best - 0.01 * np.abs(best)
    return gain >= least  # False for NaN


def _same_machine(trials: pd.DataFrame) -> pd.Series:
    """Return by data set and point of the sweep if each split ran on one machine."""
    timed = trials["machine"].where(trials["seconds"].notna())
    machines = timed.groupby([trials[name] for name in [*_POINT, *TRIAL]]).nunique()
    return (machines <= 1).groupby(level=_POINT).all().rename("same_machine")


def _against_the_best(
    trials: pd.DataFrame, losses: Collection[str], test_shares: Mapping[str, float]
) -> dict[tuple, float]:
    """Return by `_GROUP` the p-values of the difference from the best mean.

    Only solvers with the most trials compete. The best solver has no p-value.
    """
    p_values = {}
    groups = trials.groupby([*_POINT, "metric"], sort=False)
    for (dataset, sweep, metric), rows in groups:
        # without a share, overlapping splits cannot be corrected for
        share = test_shares.get(str(dataset))
        if share is None:
            continue
        by_solver = rows.pivot(index=TRIAL, columns="solver", values="value")
        n_trials = by_solver.count()
        if n_trials.max() < 2:  # no variance
            continue
        competing = by_solver.loc[:, n_trials == n_trials.max()]
        best = _best_solver(competing, is_loss=metric in losses)
        for solver in competing.columns.drop(best):
            pairs = competing[[best, solver]].dropna().to_numpy()
            if len(pairs) > 1 and np.isfinite(pairs).all():
                best_values, values = pairs.T
                test = resampled_test(best_values, values, share)
                p_values[dataset, sweep, metric, solver] = test.p
    return p_values


def _best_solver(values: pd.DataFrame, is_loss: bool) -> str:
    """Return the column with the best mean, the first of equal ones."""
    with np.errstate(invalid="ignore"):  # of values that have overflowed
        means = [np.mean(values[name].dropna().to_numpy()) for name in values]
        mean_levels = levels(means)
    place = np.argmin(mean_levels) if is_loss else np.argmax(mean_levels)
    return str(values.columns[int(place)])


def _without_nan(column: np.ndarray) -> np.ndarray:
    return column[~np.isnan(column)]


def _median(column: np.ndarray) -> float:
    """Return the median of the numbers that are not NaN, NaN if there are none."""
    numbers = _without_nan(column)
    return float(np.median(numbers)) if len(numbers) else np.nan


def _statistics(values: np.ndarray, test_share: float | None) -> dict[str, float]:
    """Return mean, spread and interval of final values, NaN where there are too few."""
    names = ("mean", "std", "q25", "median", "q75", "low", "high")
    statistics = dict.fromkeys(names, np.nan)
    with np.errstate(invalid="ignore"):  # of values that have overflowed
        if len(values):
            statistics["mean"] = values.mean()
            q25, median, q75 = np.quantile(values, [0.25, 0.5, 0.75])
            statistics |= {"q25": q25, "median": median, "q75": q75}
        if len(values) > 1:
            statistics["std"] = values.std(ddof=1)
    if test_share is not None and len(values) and np.isfinite(values).all():
        interval = resampled_interval(values, test_share)
        statistics["low"] = interval.low
        statistics["high"] = interval.high
    return statistics


def _summary_row(
    group: Mapping[str, object],
    trials: Mapping[str, np.ndarray],
    test_shares: Mapping[str, float],
) -> dict[str, object]:
    """Return the row of the summary about the trials of one solver.

    `group` has the columns of `_GROUP`, `trials` those of `_LABELS` and `_MEASURED`.
    """
    values = _without_nan(trials["value"])
    labels = {name: trials[name].tolist() for name in _LABELS}
    chosen = Counter(filter(None, labels["chosen"]))
    return {
        **group,
        "stand_in": any(labels["stand_in"]),
        "trials": len(trials["value"]),
        "n": len(values),
        **_statistics(values, test_shares.get(str(group["dataset"]))),
        "p_best": None,  # set by the caller, from all solvers together
        "seconds": _median(trials["seconds"]),
        "relative_time": None,  # set by the caller, as ``p_best``
        "seconds_to_99": _median(trials["seconds_to_99"]),
        "chosen": ", ".join(f"{choice} ({n})" for choice, n in chosen.most_common()),
        "tuning_seconds": _median(trials["tuning_seconds"]),
        "stopped": sum(reason != "" for reason in labels["stopped"]),
        "failed": sum(status != "ok" for status in labels["status"]),
        "outcomes": _outcomes(labels["status"], labels["reason"]),
        "timing": "parallel" if "parallel" in labels["timing"] else "sequential",
        "machines": "; ".join(sorted(set(labels["machine"]) - {""})),
    }


def _outcomes(statuses: Sequence[str], reasons: Sequence[str]) -> str:
    """Return counts by status, ok first: ``3 ok, 2 timeout: reason; other reason``."""
    # The reasons of a status are the keys of a dict, as a set would lose their order.
    reasons_by_status: dict[str, dict[str, None]] = {status: {} for status in statuses}
    for status, reason in zip(statuses, reasons, strict=True):
        if status != "ok" and reason.strip():
            one_line = " ".join(reason.split())
            reasons_by_status[status][one_line] = None
    phrases = []
    # "ok" comes first, as False sorts before True
    in_order = sorted(reasons_by_status, key=lambda status: status != "ok")
    for status in in_order:
        phrase = f"{statuses.count(status)} {status}"
        if reasons_by_status[status]:
            phrase += f": {'; '.join(reasons_by_status[status])}"
        phrases.append(phrase)
    return ", ".join(phrases)
