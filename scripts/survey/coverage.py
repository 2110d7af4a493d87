"""How often the 95 % intervals of `precbench compare` hold the value that they are for.

Lists are drawn from a known distribution: normal features, and positives where a linear
score with noise is high. In each repetition a new list is split as `precbench compare`
does, and the interval of the mean prec@k is its interval. What it should hold is the
mean over new lists: of models that are trained on as many new rows, and measured on as
many others. ``python -m scripts.survey.coverage`` writes
results/reference/coverage.csv, which docs/own-data.md shows; it takes some minutes.
"""

import argparse
import warnings
from collections.abc import Sequence
from statistics import NormalDist
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from precbench.core.locations import shipped
from precbench.data import Dataset
from precbench.data.splits import split_rows
from precbench.ranking.metrics import precision_at_k
from precbench.ranking.statistics import Interval, resampled_interval
from precbench.solvers import SOLVERS
from scripts.survey.tables import laid_out

REFERENCE = shipped("results/reference") / "coverage.csv"
TEST_SIZE = 0.3
FRESH = 4  # new lists for each repetition, whose mean is the value to cover
PARAMETERS: dict[str, dict[str, Any]] = {
    "logistic-regression": {"C": 0.1},
    "sgd-avg": {"k": 0.25, "eta0": 0.1, "epochs": 10},
    "hist-gradient-boosting": {"max_iter": 20, "max_leaf_nodes": 7},
}


class Case(NamedTuple):
    """Lists of a kind, and how they are ranked and measured.

    `positives` is their share of the rows.
    """

    solver: str
    rows: int
    features: int
    positives: float
    k: int
    splits: int = 10
    noise: float = 2.0

    def draw(self, rng: np.random.Generator) -> Dataset:
        """Draw a list."""
        w = np.array([2.0, 1.0, 1.0, 1.0])
        X = rng.standard_normal((self.rows, self.features))
        scores = X[:, : len(w)] @ w + self.noise * rng.standard_normal(self.rows)
        deviation = np.sqrt(w @ w + self.noise**2)
        limit = deviation * NormalDist().inv_cdf(1 - self.positives)
        return Dataset("list", "list", X, np.where(scores > limit, 1.0, -1.0), "")

    def measure(
        self, dataset: Dataset, train: NDArray[Any], test: NDArray[Any]
    ) -> float:
        """Return the prec@k, on some rows of a list, of a model of others."""
        X = np.asarray(dataset.X)
        solver = SOLVERS[self.solver](**PARAMETERS[self.solver])
        solver.fit(X[train], dataset.y[train])
        scores = solver.decision_function(X[test])
        return precision_at_k(dataset.y[test], scores, self.k)

    def interval(self, dataset: Dataset, stratified: bool, seed: int) -> Interval:
        """Return the interval of the mean over splits."""
        values = []
        for index in range(self.splits):
            split = split_rows(
                dataset,
                "random",
                index,
                n_splits=self.splits,
                test_size=TEST_SIZE,
                stratified=stratified,
                seed=seed,
            )
            values.append(self.measure(dataset, split.train, split.test))
        return resampled_interval(values, TEST_SIZE)


_LOGISTIC = "logistic-regression"
CASES = [
    Case(_LOGISTIC, rows=2000, features=10, positives=0.1, k=100),
    Case(_LOGISTIC, rows=1000, features=10, positives=0.05, k=15),
    Case(_LOGISTIC, rows=5000, features=20, positives=0.01, k=15),
    Case(_LOGISTIC, rows=5000, features=20, positives=0.02, k=50, noise=1.0),
    Case(_LOGISTIC, rows=5000, features=20, positives=0.02, k=50, noise=1.0, splits=5),
    Case("sgd-avg", rows=2000, features=10, positives=0.1, k=30),
    Case("hist-gradient-boosting", rows=2000, features=10, positives=0.1, k=30),
]


def covered(case: Case, repetitions: int) -> dict[str, object]:
    """Return how often the intervals of a case hold the mean over new lists."""
    test, train = np.split(np.arange(case.rows), [round(TEST_SIZE * case.rows)])
    plain = []
    stratified = []
    values_of_new_lists = []
    for repetition in range(repetitions):
        rng = np.random.default_rng([case.rows, case.k, case.splits, repetition])
        dataset = case.draw(rng)
        plain.append(case.interval(dataset, stratified=False, seed=repetition))
        stratified.append(case.interval(dataset, stratified=True, seed=repetition))
        for _ in range(FRESH):
            value = case.measure(case.draw(rng), train, test)
            values_of_new_lists.append(value)
    mean = float(np.mean(values_of_new_lists))
    width = float(np.mean([interval.high - interval.low for interval in plain]))
    return {
        "solver": case.solver,
        "rows": case.rows,
        "positives": case.positives,
        "k": case.k,
        "splits": case.splits,
        "repetitions": repetitions,
        "mean": round(mean, 4),
        "width": round(width, 4),
        "covered": share_that_holds(plain, mean),
        "covered_stratified": share_that_holds(stratified, mean),
    }


def share_that_holds(intervals: Sequence[Interval], value: float) -> float:
    """Return the share of intervals that hold a value."""
    holds = [interval.low <= value <= interval.high for interval in intervals]
    return round(float(np.mean(holds)), 4)


def coverage_table(rows: pd.DataFrame) -> str:
    """Lay out how often the intervals of each case hold the mean."""
    cells = [
        [
            row.solver,
            f"{row.rows:,}",
            f"{row.positives:.0%}",
            row.k,
            row.splits,
            f"{row.covered:.1%}",
        ]
        for row in rows.itertuples()
    ]
    header = ["method", "rows", "positives", "k", "splits", "covered"]
    return laid_out(header, cells, numbers=5)


def main() -> None:
    """Measure all cases."""
    parser = argparse.ArgumentParser(prog="python -m scripts.survey.coverage")
    parser.add_argument("--repetitions", type=int, default=200)
    repetitions = parser.parse_args().repetitions
    warnings.simplefilter("ignore")
    rows = [covered(case, repetitions) for case in CASES]
    pd.DataFrame(rows).to_csv(REFERENCE, index=False, lineterminator="\n")


if __name__ == "__main__":
    main()
