"""Compare the values of every solver and metric on small real data with those of an earlier run.

``make regression`` runs the configs of configs/regression and then
``python scripts/regression.py results``; with ``--published``, ``make check`` compares what it has
run of the papers, too. A value that got better differs as one that got worse. After a change that
is meant, ``make check`` as far as it goes and then ``--published --write`` writes the reference:

- results/reference/regression.csv: of each solver and metric, and of what tuning chose, the mean
  and the standard deviation over the splits, and the tolerance;
- results/reference/divisions.csv: of each part of each split, a hash of the row numbers and a sum
  over the scaled values.
"""

import argparse
import hashlib
import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import product
from pathlib import Path

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from precbench.data import Dataset
from precbench.data.splits import split_rows
from precbench.experiment import Experiment, Study, Trial, load_config
from precbench.experiment.division import divide_rows
from precbench.experiment.plan import make_plan
from precbench.experiment.samples import InMemory, Sample, sample, training

ROOT = Path(__file__).resolve().parents[1]
VALUES = ROOT / "results" / "reference" / "regression.csv"
DIVISIONS = VALUES.with_name("divisions.csv")
CONFIGS = [f"regression/{name}" for name in ("top", "push", "pairs", "streamed", "mixtures")]
PUBLISHED = [
    *("rudin2009/table-3-magic", "rudin2009/table-4-ionosphere", "rudin2009/table-5-housing"),
    *("letter", "kar2015/counterexample"),
]
"""Of the papers, what `make check` runs."""

KEYS = ["experiment", "dataset", "solver", "part", "metric"]
PARTS = ["experiment", "dataset", "features", "split", "part"]
EXACT = 1e-9
"""Relative: sums of logarithms and the like differ in the last digits from CPU to CPU."""
SHARE = 0.02
"""Of the standard deviation over the splits: by so much the values of `FOLLOWING` may differ."""
FOLLOWING = {
    *("ir-push", "pnorm-push", "rankboost", "bbr", "bbr-pairs", "lcbr"),
    *("ftrl", "logistic-regression", "linear-svm"),
}
"""Solvers whose last bits follow BLAS, the C library or scikit-learn."""
_SHOWN = 20
_FORMAT = {"index": False, "lineterminator": "\n", "float_format": "%.12g"}


def values(results: Path, configs: Sequence[str]) -> pd.DataFrame:
    """Gather what these configs measured, but on stand-ins."""
    tables = []
    for name in configs:
        config = load_config(name)
        measured = _of_study if isinstance(config, Study) else _of_experiment
        tables.append(measured(config, results / config.name))
    table = pd.concat(tables, ignore_index=True)
    exact = EXACT * table[["mean", "std"]].abs().max(axis=1) + 1e-12
    loose = SHARE * table["std"].fillna(0) + 1e-6 * table["mean"].abs()
    tolerance = exact + loose.where(table.pop("follows"), 0)
    return table.assign(tolerance=tolerance.map("{:.2g}".format).astype(float))


def _of_experiment(config: Experiment, folder: Path) -> pd.DataFrame:
    rows = pd.read_csv(folder / "results.csv", keep_default_na=False)
    rows = rows[(rows["final"].astype(str) != "False") & (rows["stand_in"].astype(str) == "False")]
    solvers = {label: entry.solver for label, entry in config.solvers.items()}
    follows = rows["solver"].map(solvers).isin(FOLLOWING)
    tuned = rows[(rows["chosen"] != "") & ~follows]  # where others tie, the last bit chooses
    tuned = tuned.drop_duplicates(["dataset", "solver", "split"])
    tuned = tuned.assign(metric="chosen " + tuned["chosen"], value=1.0, part="")  # n counts them
    rows = pd.concat([rows, tuned], ignore_index=True)
    groups = rows.assign(value=pd.to_numeric(rows["value"])).groupby(KEYS, sort=False)["value"]
    table = groups.agg(n="count", mean="mean", std="std").reset_index()
    return table.assign(follows=table["solver"].map(solvers).isin(FOLLOWING))


def _of_study(config: Study, folder: Path) -> pd.DataFrame:
    """Take the means over the repetitions; times and what follows from them have none."""
    table = pd.read_csv(folder / "values.csv").fillna({"pairs": 0, "share": 0.5})
    places = ["part", "components", "method", "pairs", "share", "measure"]
    wide = table.pivot_table("value", places, "statistic", sort=False).dropna(subset="mean")
    n, at = config.parameters["repetitions"], wide.index.to_frame(index=False)
    named = {
        "experiment": config.name,
        "dataset": at["components"].map("K = {:g}, ".format) + at["share"].map("{:g}".format),
        "solver": at["method"] + at["pairs"].map(", {:g} pairs".format),
        "part": at["part"],
        "metric": at["measure"],
    }
    std = wide["standard error"].to_numpy() * np.sqrt(n)
    return pd.DataFrame({**named, "n": n, "mean": wide["mean"].to_numpy(), "std": std}).assign(
        follows=True
    )


def divisions() -> pd.DataFrame:
    """Describe the parts of each split, as the first trial on it has them."""
    rows = []
    for name in CONFIGS:
        config = load_config(name)
        if isinstance(config, Study):
            continue
        plan, seen = make_plan(config), set()
        for trial, _ in plan.trials:
            dataset = plan.datasets[trial.dataset.name]
            features = "fourier" if trial.fourier else ""
            about = (config.name, dataset.name, features, trial.split.index)
            if about in seen or dataset.stand_in:
                continue
            seen.add(about)
            rows += [[*about, *described] for described in _parts(trial, dataset)]
        if name == CONFIGS[0]:
            rows += [[config.name, *rule] for rule in _rules(plan.datasets["german"])]
    return pd.DataFrame(rows, columns=[*PARTS, "rows", "positives", "sum", "numbers"])


def _rules(dataset: Dataset) -> Iterator[list]:
    """Divide the rows by every rule, also those that no config has, with groups and without."""
    groups = np.arange(len(dataset.y), dtype=np.int64) // 3
    for kind, stratified, grouped in product(("random", "kfold"), (False, True), (False, True)):
        of = replace(dataset, groups=groups if grouped else None)
        rule = " ".join([kind, *["stratified"] * stratified, *["groups"] * grouped])
        for index in range(2):
            split = split_rows(of, kind, index, n_splits=3, stratified=stratified)
            for part, rows in split._asdict().items():
                n_pos = int(np.sum(of.y[rows] > 0))
                yield [dataset.name, rule, index, part, len(rows), n_pos, 0.0, _hash(rows)]


def _hash(rows: NDArray[np.intp]) -> str:
    return hashlib.sha256(rows.astype("<i8").tobytes()).hexdigest()[:16]


def _parts(trial: Trial, dataset: Dataset) -> Iterator[tuple[str, int, int, float, str]]:
    whole = training(trial, dataset)
    parts = {"fitting": whole.fitting, "validation": whole.validation}
    parts["test"] = sample(trial, dataset, "test")
    hashes = dict.fromkeys(parts, "")
    if isinstance(whole.whole, InMemory):
        (train, test), n_fit = divide_rows(trial, dataset)
        for part, rows in zip(parts, (train[:n_fit], train[n_fit:], test), strict=True):
            hashes[part] = _hash(rows)
    for part, rows in parts.items():
        yield part, rows.n_rows, int(np.sum(rows.y > 0)), _weighted_mean(rows), hashes[part]


def _weighted_mean(rows: Sample) -> float:
    """Return the mean of the values, each with a weight that depends on its place."""
    blocks = [rows.X] if isinstance(rows, InMemory) else [X for X, _ in rows.stream]
    X = np.vstack([X if isinstance(X, np.ndarray) else X.toarray() for X in blocks]).ravel()
    return float(np.mean(X * (np.arange(1, X.size + 1) * 0.6180339887498949 % 1)))


def differences(measured: pd.DataFrame, reference: pd.DataFrame) -> list[str]:
    """Return a sentence for each row that differs, of the available data."""
    keys = [name for name in measured.columns if name in {*KEYS, *PARTS}]
    measured, reference = (
        {tuple(map(str, row)): rest for *row, rest in _keyed(table, keys)}
        for table in (measured, reference)
    )
    had = {key[:2] for key in measured}
    found = [f"{_named(key)}: not in the reference" for key in measured if key not in reference]
    for key, before in reference.items():
        if key[:2] not in had:
            continue
        now = measured.get(key, {})
        tolerance = before.get("tolerance", EXACT)
        changed = [
            f"{name} was {before[name]}, is {now.get(name, 'missing')}"
            for name in before
            if name != "tolerance" and not _agree(now.get(name), before[name], tolerance)
        ]
        if changed:
            found.append(f"{_named(key)}: {'; '.join(changed)}")
    return found


def _named(key: tuple[str, ...]) -> str:
    return ", ".join(filter(None, key))


def _keyed(table: pd.DataFrame, keys: list[str]) -> Iterator[tuple]:
    for row in table.to_dict("records"):
        yield *(row.pop(key) for key in keys), row


def _agree(now: str | float | None, before: str | float, tolerance: float) -> bool:
    if isinstance(before, str) or now is None:
        return now == before
    return bool(abs(now - before) <= tolerance or (np.isnan(now) and np.isnan(before)))


def read(path: Path) -> pd.DataFrame:
    """Read a reference."""
    return pd.read_csv(path, keep_default_na=False, na_values={"mean": "", "std": ""})


def main() -> None:
    """Run the script."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("results", type=Path)
    parser.add_argument("--published", action="store_true", help="compare those of the papers, too")
    parser.add_argument("--write", action="store_true", help="write the reference")
    arguments = parser.parse_args()
    configs = CONFIGS + PUBLISHED * arguments.published
    measured = {VALUES: values(arguments.results, configs), DIVISIONS: divisions()}
    complaints = []
    for path, table in measured.items():
        reference = read(path) if path.exists() else table[:0]
        if arguments.write:
            kept = reference[~reference["experiment"].isin(table["experiment"])]
            pd.concat([table, kept]).to_csv(path, **_FORMAT)
            continue
        found = differences(table, reference)
        complaints += found[:_SHOWN]
        if len(found) > _SHOWN:
            complaints.append(f"and {len(found) - _SHOWN} more of {path.name}")
        print(f"{path.name}: {len(found)} differences in {len(table):,} rows")
    sys.exit("\n".join(complaints) or None)


if __name__ == "__main__":
    main()
