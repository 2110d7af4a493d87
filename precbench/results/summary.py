"""Summaries of the trials of each solver.

Mean, spread, interval and times over splits.
"""

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from types import MappingProxyType

import numpy as np
import pandas as pd

from precbench.ranking.statistics import levels, resampled_interval, resampled_test

# Columns that tell apart points of sweeps, rows of a summary, and the trials behind a
# row
_POINT = ["dataset", "sweep"]
_GROUP = [*_POINT, "metric", "solver"]
TRIAL = ["split", "seed"]
# Columns that are constant in all rows of a trial; the columns of `_LABELS` hold no
# numbers
_LABELS = ["stand_in", "status", "reason", "stopped", "timing", "machine", "chosen"]
_TRIAL_COLUMNS = [*_LABELS, "tuning_seconds", "key"]
_MEASURED = ["value", "seconds", "seconds_to_99", "tuning_seconds"]


def summarise(
    results: pd.DataFrame,
    losses: Collection[str] = (),
    test_shares: Mapping[str, float] = MappingProxyType({}),
) -> pd.DataFrame:
    """Summarise the trials of each solver, with one row per data set, sweep, metric and solver.

    - ``trials`` (how many), ``n`` (how many are ok) and ``outcomes`` in words;
    - ``mean``, ``std`` (``ddof=1``, none for one trial), ``median``, ``q25`` and ``q75`` of the
      final values;
    - ``low`` and ``high``: 95 % confidence interval of the mean; ``p_best``: p-value of the
      difference from the best mean. Interval and p-value are corrected for splits that
      overlap, see `precbench.ranking.statistics`, and need `test_shares`, by data set
      the fraction of rows in the test set. The best solver has no p-value, nor has a
      solver with fewer trials than another;
    - ``seconds`` and ``seconds_to_99``: median wall times to the final weights, and to the first
      checkpoint within 1 % of the best value of the trial's own curve;
    - ``relative_time``: ``seconds`` as a multiple of the fastest solver's ``seconds``; none if
      that solver took no time, as where no feature varies, none for parallel trials
      beside sequential trials, and none for trials on several machines, unless the
      trials of each split ran on one machine;
    - ``chosen``: the tuned parameters, with how many trials chose them, and ``tuning_seconds``, the
      median wall time of tuning;
    - ``stopped`` (trials that a limit ended, which count as ok), ``failed`` (trials not ok),
      ``timing`` ("parallel" if any trial was) and ``stand_in``;
    - ``machines``: the kinds of machine, and ``same_machine``, whether all trials on a split ran on
      one kind.
    """
    return summarise_trials(final_values(results, losses), losses, test_shares)


def summarise_trials(
    trials: pd.DataFrame,
    losses: Collection[str] = (),
    test_shares: Mapping[str, float] = MappingProxyType({}),
) -> pd.DataFrame:
    """Return the table of `summarise` from the trials that `final_values` returns."""
    # data set, point of the sweep, metric, solver
    groups = trials.groupby(_GROUP, sort=False)
    columns = {name: trials[name].to_numpy(object) for name in _LABELS}
    columns |= {name: trials[name].to_numpy(float) for name in _MEASURED}
    rows = [
        _summary_of(
            key,
            {name: c[groups.indices[key]] for name, c in columns.items()},
            test_shares,
        )
        for key in groups.size().index  # `indices` has the row numbers of each group
    ]
    summary = pd.DataFrame(rows).join(_same_machine(trials), on=_POINT)
    p_best = _against_the_best(trials, losses, test_shares)  # p-values by group
    summary["p_best"] = (
        pd.MultiIndex.from_frame(summary[_GROUP]).map(p_best.get).astype(float)
    )
    point = [summary[name] for name in _POINT]  # what times are compared at
    sequential = summary["seconds"].where(summary["timing"] == "sequential")
    # Times of parallel trials compare only with each other, so sequential times exclude
    # them.
    has_sequential = sequential.groupby(point).transform("any")  # NaN is skipped
    comparable = sequential.where(has_sequential, summary["seconds"])
    comparable = comparable.where(summary["same_machine"])  # NaN elsewhere
    fastest = comparable.groupby(point).transform("min")
    multiples = comparable / fastest
    return summary.assign(relative_time=multiples.where(np.isfinite(multiples)))


def final_values(results: pd.DataFrame, losses: Collection[str] = ()) -> pd.DataFrame:
    """Return the final value and the times of each trial and metric, NaN where the trial failed."""
    rows = results[results["part"] == "test"].reset_index(drop=True)
    of_trial = [*_GROUP, *TRIAL]
    # by trial and metric
    trial = rows.groupby(of_trial, sort=False, dropna=False).ngroup()
    ok = (rows["status"] == "ok") & rows["value"].notna()
    # larger is better
    gain = rows["value"].where(~rows["metric"].isin(losses), -rows["value"])
    gain = gain.where(ok & (rows["rows_seen"] > 0))  # before any row, all scores tie
    best = gain.groupby(trial).transform("max")
    with np.errstate(invalid="ignore"):  # of values that have overflowed
        # within 1 % of the trial's best; NaN is not within
        least = best - 0.01 * np.abs(best)
    reached = (
        rows[gain >= least].sort_values("checkpoint", kind="stable").groupby(trial)
    )
    final = rows[ok & rows["final"]].groupby(trial)
    last_rows = (
        rows.set_index(trial)[[*of_trial, *_TRIAL_COLUMNS]].groupby(level=0).tail(1)
    )
    # aligned by trial, with NaN for failed trials
    return last_rows.sort_index().assign(
        value=final["value"].last(),
        seconds=final["wall_seconds"].last(),
        seconds_to_99=reached["wall_seconds"].first(),
    )


def _same_machine(trials: pd.DataFrame) -> pd.Series:
    """Return by data set and point of the sweep whether each split was run on one machine."""
    timed = trials["machine"].where(trials["seconds"].notna())
    machines = timed.groupby([trials[name] for name in [*_POINT, *TRIAL]]).nunique()
    return (machines <= 1).groupby(level=_POINT).all().rename("same_machine")


def _against_the_best(
    trials: pd.DataFrame, losses: Collection[str], test_shares: Mapping[str, float]
) -> dict[tuple, float]:
    """Return p-values of the difference from the best mean, by (dataset, sweep, metric, solver)."""
    # Only solvers with the most trials compete. The best solver has no p-value.
    p_values = {}
    for (dataset, sweep, metric), rows in trials.groupby(
        [*_POINT, "metric"], sort=False
    ):
        # a row for each trial
        wide = rows.pivot(index=TRIAL, columns="solver", values="value")
        n_trials, share = wide.count(), test_shares.get(str(dataset))
        # no correction for overlap, or no variance
        if share is None or n_trials.max() < 2:
            continue
        competing = n_trials.index[n_trials == n_trials.max()]
        with np.errstate(invalid="ignore"):  # of values that have overflowed
            places = levels(
                [np.mean(wide[solver].dropna().to_numpy()) for solver in competing]
            )
        best = competing[
            int(np.argmin(places) if metric in losses else np.argmax(places))
        ]
        for solver in competing.drop(best):
            first, second = wide[[best, solver]].dropna().to_numpy().T
            if len(first) > 1 and np.isfinite([first, second]).all():
                p_values[dataset, sweep, metric, solver] = resampled_test(
                    first, second, share
                ).p
    return p_values


def _summary_of(
    key: tuple, trials: Mapping[str, np.ndarray], test_shares: Mapping[str, float]
) -> dict[str, object]:
    """Return the row of the summary about the trials of one solver.

    `key` is by `_GROUP`.
    """
    # `trials` has the columns of `_LABELS` and of `_MEASURED`, which are the value and
    # then times.
    values, *times = (trials[name][~np.isnan(trials[name])] for name in _MEASURED)
    seconds, to_99, tuning = (
        np.median(column) if len(column) else np.nan for column in times
    )
    dataset, low, high = key[0], np.nan, np.nan  # `_GROUP` begins with the data set
    if dataset in test_shares and len(values) and np.isfinite(values).all():
        _, low, high = resampled_interval(values, test_shares[dataset])
    with np.errstate(invalid="ignore"):  # of values that have overflowed
        quartiles = (
            np.quantile(values, [0.25, 0.5, 0.75]) if len(values) else [np.nan] * 3
        )
        mean = values.mean() if len(values) else np.nan
        std = values.std(ddof=1) if len(values) > 1 else np.nan
    labels = {name: trials[name].tolist() for name in _LABELS}
    chosen = Counter(filter(None, labels["chosen"]))
    return {
        **dict(zip(_GROUP, key, strict=True)),
        "stand_in": any(labels["stand_in"]),
        "trials": len(trials["value"]),
        "n": len(values),
        "mean": mean,
        "std": std,
        **dict(zip(("q25", "median", "q75"), quartiles, strict=True)),
        "low": low,
        "high": high,
        "p_best": None,  # set by the caller, from all solvers together
        "seconds": seconds,
        "relative_time": None,  # set by the caller, as ``p_best``
        "seconds_to_99": to_99,
        "chosen": ", ".join(f"{choice} ({n})" for choice, n in chosen.most_common()),
        "tuning_seconds": tuning,
        "stopped": sum(why != "" for why in labels["stopped"]),
        "failed": sum(status != "ok" for status in labels["status"]),
        "outcomes": _outcomes(labels["status"], labels["reason"]),
        "timing": "parallel" if "parallel" in labels["timing"] else "sequential",
        "machines": "; ".join(sorted(set(labels["machine"]) - {""})),
    }


def _outcomes(statuses: Sequence[str], reasons: Sequence[str]) -> str:
    """Return counts of trials by status, ok first: ``3 ok, 2 timeout: reason.

    Other reason``.
    """
    # The reasons of a status are the keys of a dict, which is a set that keeps an
    # order.
    by_status: dict[str, dict[str, None]] = {status: {} for status in statuses}
    for status, reason in zip(statuses, reasons, strict=True):
        if status != "ok" and reason.strip():
            by_status[status][" ".join(reason.split())] = None
    return ", ".join(
        f"{statuses.count(status)} {status}{': ' if by_status[status] else ''}"
        f"{'; '.join(by_status[status])}"
        # false before true
        for status in sorted(by_status, key=lambda status: status != "ok")
    )
