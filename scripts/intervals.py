"""Measure how often the 95 % intervals of `precbench compare` hold the value that they are for.

Lists are drawn from a known distribution: normal features, and positives where a linear score with
noise is high. In each repetition a new list is split as `precbench compare` does, and the interval
of the mean prec@k is its interval. What it should hold is the mean over new lists: of models that
are trained on as many new rows, and measured on as many others. ``python scripts/intervals.py``
writes results/reference/coverage.csv, which docs/own-data.md shows; it takes some minutes.
"""

import argparse
import warnings
from statistics import NormalDist

import numpy as np
import pandas as pd
from reference import REFERENCE

from precbench.data import Dataset
from precbench.data.splits import split_rows
from precbench.metrics import precision_at_k
from precbench.solvers import SOLVERS
from precbench.statistics import resampled_interval
from precbench.survey.markdown import laid_out

COVERAGE = REFERENCE.with_name("coverage.csv")
TEST_SIZE = 0.3
FRESH = 4  # new lists for each repetition, whose mean is the value to cover
CASES = [  # solver, rows, features, fraction of positives, noise, k, splits
    ("logistic-regression", 2000, 10, 0.1, 2.0, 100, 10),
    ("logistic-regression", 1000, 10, 0.05, 2.0, 15, 10),
    ("logistic-regression", 5000, 20, 0.01, 2.0, 15, 10),
    ("logistic-regression", 5000, 20, 0.02, 1.0, 50, 10),
    ("logistic-regression", 5000, 20, 0.02, 1.0, 50, 5),
    ("sgd-avg", 2000, 10, 0.1, 2.0, 30, 10),
    ("hist-gradient-boosting", 2000, 10, 0.1, 2.0, 30, 10),
]
PARAMETERS = {
    "logistic-regression": {"C": 0.1},
    "sgd-avg": {"k": 0.25, "eta0": 0.1, "epochs": 10},
    "hist-gradient-boosting": {"max_iter": 20, "max_leaf_nodes": 7},
}


def draw(rng: np.random.Generator, n: int, d: int, share: float, noise: float) -> Dataset:
    """Draw a list."""
    w = np.array([2.0, 1.0, 1.0, 1.0])
    X = rng.standard_normal((n, d))
    scores = X[:, : len(w)] @ w + noise * rng.standard_normal(n)
    limit = np.sqrt(w @ w + noise**2) * NormalDist().inv_cdf(1 - share)
    return Dataset("list", "list", X, np.where(scores > limit, 1.0, -1.0), "")


def measured(solver: str, train: Dataset, test: Dataset, k: int) -> float:
    """Return the prec@k of a model on a list."""
    fitted = SOLVERS[solver](**PARAMETERS[solver]).fit(train.X, train.y)
    return precision_at_k(test.y, fitted.decision_function(test.X), k)


def part(dataset: Dataset, rows: np.ndarray) -> Dataset:
    """Return some rows of a list."""
    return Dataset("part", "part", dataset.X[rows], dataset.y[rows], "")


def interval(solver: str, dataset: Dataset, k: int, n_splits: int, stratified: bool, seed: int):
    """Return the interval of the mean over splits."""
    values = []
    for index in range(n_splits):
        options = {"test_size": TEST_SIZE, "stratified": stratified, "seed": seed}
        split = split_rows(dataset, "random", index, n_splits=n_splits, **options)
        values.append(measured(solver, *(part(dataset, rows) for rows in split), k))
    return resampled_interval(values, TEST_SIZE)


def covered(case: tuple, repetitions: int) -> dict[str, object]:
    """Return how often the intervals of a case hold the mean over new lists."""
    solver, n, d, share, noise, k, n_splits = case
    n_test = round(TEST_SIZE * n)
    fresh, intervals = [], {False: [], True: []}
    for repetition in range(repetitions):
        rng = np.random.default_rng([n, k, n_splits, repetition])
        dataset = draw(rng, n, d, share, noise)
        for stratified, found in intervals.items():
            found.append(interval(solver, dataset, k, n_splits, stratified, repetition))
        for _ in range(FRESH):
            new = draw(rng, n, d, share, noise)
            halves = part(new, np.arange(n_test, n)), part(new, np.arange(n_test))
            fresh.append(measured(solver, *halves, k))
    mean = float(np.mean(fresh))
    holds = {
        stratified: np.mean([low <= mean <= high for _, low, high in found])
        for stratified, found in intervals.items()
    }
    return {
        "solver": solver,
        "rows": n,
        "positives": share,
        "k": k,
        "splits": n_splits,
        "repetitions": repetitions,
        "mean": round(mean, 4),
        "width": round(float(np.mean([high - low for _, low, high in intervals[False]])), 4),
        "covered": round(float(holds[False]), 4),
        "covered_stratified": round(float(holds[True]), 4),
    }


def coverage_table(rows: pd.DataFrame) -> str:
    """Lay out the committed figures."""
    header = ["method", "rows", "positives", "k", "splits", "mean prec@k", "mean width", "covered"]
    listed = [
        [
            row.solver,
            f"{row.rows:,}",
            f"{row.positives:.0%}",
            str(row.k),
            str(row.splits),
            f"{row.mean:.3f}",
            f"{row.width:.3f}",
            f"{row.covered:.1%}",
            f"{row.covered_stratified:.1%}",
        ]
        for row in rows.itertuples()
    ]
    return laid_out([*header, "were the splits stratified"], listed, numbers=8)


def main() -> None:
    """Measure all cases."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repetitions", type=int, default=200)
    repetitions = parser.parse_args().repetitions
    warnings.simplefilter("ignore")
    rows = []
    for case in CASES:
        rows.append(covered(case, repetitions))
        print(rows[-1], flush=True)
    pd.DataFrame(rows).to_csv(COVERAGE, index=False, lineterminator="\n")


if __name__ == "__main__":
    main()
