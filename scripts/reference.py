"""Compare what was measured with the committed reference, or write that.

``make regression`` runs the configs of configs/regression, every solver and metric on
small real data, and then ``python -m scripts.reference results``; with ``--published``,
``make check`` compares what it has run of the papers, too, and verdicts. What got
better differs as what got worse. After a change that is meant, ``make check`` as far as
it goes and then ``--published --write`` writes

- results/reference/regression.csv: of each solver and metric, and of what tuning
  chose, the mean and the standard deviation over the splits, and the tolerance;
- results/reference/divisions.csv: of each part of each split, a hash of the row numbers
  and a sum over the scaled values;

and after ``make reproduce`` ``--summaries`` writes the means that the pages show:
kar2015.csv of what is measured on real data, and solvers.csv of all solvers and of unit
rows.
"""

import argparse
import hashlib
import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from precbench.claims.ledger import changes, read_ledger
from precbench.data import Dataset
from precbench.data.splits import split_rows
from precbench.experiment import Experiment, Study, Trial, list_configs, load_config
from precbench.experiment.division import divide_rows
from precbench.experiment.plan import make_plan
from precbench.experiment.samples import InMemory, Rows, Sample

ROOT = Path(__file__).resolve().parents[1]
REFERENCE = ROOT / "results" / "reference"
VALUES, DIVISIONS = REFERENCE / "regression.csv", REFERENCE / "divisions.csv"
LEDGER = REFERENCE / "ledger.csv"
CONFIGS = [name for name in list_configs() if name.startswith("regression/")]
PUBLISHED = [
    *(
        "rudin2009/table-3-magic",
        "rudin2009/table-4-ionosphere",
        "rudin2009/table-5-housing",
    ),
    *(
        "letter",
        "kar2015/counterexample",
        "adult",
        "ijcnn1",
        "cod_rna",
        "covtype",
        "w8a",
    ),
]
"""Of the papers, what `make check` runs, and what else the README shows."""

KAR2015, SOLVERS = REFERENCE / "kar2015.csv", REFERENCE / "solvers.csv"
SUMMARIES = {
    KAR2015: ["letter", "adult", "ijcnn1", "cod_rna", "covtype", "w8a"],
    SOLVERS: ["kar2015-unit-norm", "all-solvers"],
}
SUMMARY = [
    "experiment",
    "dataset",
    "solver",
    "metric",
    "n",
    "mean",
    "std",
    "p_best",
    "stopped",
]

KEYS = ["experiment", "dataset", "solver", "part", "metric"]
PARTS = ["experiment", "dataset", "features", "split", "part"]
EXACT = 1e-9
"""Relative: sums of logarithms differ in the last digits from CPU to CPU."""
SHARE = 0.02
"""The share of the standard deviation by which values of `FOLLOWING` may differ."""
FOLLOWING = {
    *("ir-push", "pnorm-push", "rankboost", "bbr", "bbr-pairs", "lcbr"),
    *("ftrl", "logistic-regression", "linear-svm"),
    *("hist-gradient-boosting", "lightgbm", "lightgbm-lambdarank", "random-forest"),
    *("extra-trees", "ensemble", "xgboost", "catboost", "mlp", "no-skill"),
}
"""Solvers whose last bits follow BLAS, the C library or another library."""
_SHOWN = 20
_FORMAT = {"index": False, "lineterminator": "\n"}


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
    rows = rows[
        (rows["final"].astype(str) != "False")
        & (rows["stand_in"].astype(str) == "False")
    ]
    solvers = {label: entry.solver for label, entry in config.solvers.items()}
    follows = rows["solver"].map(solvers).isin(FOLLOWING)
    # where others tie, the last bit chooses
    tuned = rows[(rows["chosen"] != "") & ~follows]
    tuned = tuned.drop_duplicates(["dataset", "solver", "split"])
    # n counts them
    tuned = tuned.assign(metric="chosen " + tuned["chosen"], value=1.0, part="")
    rows = pd.concat([rows, tuned], ignore_index=True)
    groups = rows.assign(value=pd.to_numeric(rows["value"])).groupby(KEYS, sort=False)[
        "value"
    ]
    table = groups.agg(n="count", mean="mean", std="std").reset_index()
    return table.assign(follows=table["solver"].map(solvers).isin(FOLLOWING))


def _of_study(config: Study, folder: Path) -> pd.DataFrame:
    """Take the means over the repetitions.

    Times and what follows from them have none.
    """
    table = pd.read_csv(folder / "values.csv").fillna({"pairs": 0, "share": 0.5})
    places = ["part", "components", "method", "pairs", "share", "measure"]
    wide = table.pivot_table("value", places, "statistic", sort=False).dropna(
        subset="mean"
    )
    n, at = config.parameters["repetitions"], wide.index.to_frame(index=False)
    named = {
        "experiment": config.name,
        "dataset": (
            at["components"].map("K = {:g}, ".format) + at["share"].map("{:g}".format)
        ),
        "solver": at["method"] + at["pairs"].map(", {:g} pairs".format),
        "part": at["part"],
        "metric": at["measure"],
    }
    std = wide["standard error"].to_numpy() * np.sqrt(n)
    return pd.DataFrame(
        {**named, "n": n, "mean": wide["mean"].to_numpy(), "std": std}
    ).assign(follows=True)


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
            trial = trial.with_features(
                {name: of[0] for name, of in trial.candidates.items()}
            )
            rows += [[*about, *described] for described in _parts(trial, dataset)]
        if name == "regression/top":
            rows += [[config.name, *rule] for rule in _rules(plan.datasets["german"])]
    return pd.DataFrame(rows, columns=[*PARTS, "rows", "positives", "sum", "numbers"])


def _rules(dataset: Dataset) -> Iterator[list]:
    """Divide the rows by every rule, also those of no config, and by groups."""
    groups = np.arange(len(dataset.y), dtype=np.int64) // 3
    for kind, stratified, grouped in product(
        ("random", "kfold"), (False, True), (False, True)
    ):
        of = replace(dataset, groups=groups if grouped else None)
        words = {kind: True, "stratified": stratified, "groups": grouped}
        rule = " ".join(word for word, holds in words.items() if holds)
        for index in range(2):
            split = split_rows(of, kind, index, n_splits=3, stratified=stratified)
            for part, rows in split._asdict().items():
                n_pos = int(np.sum(of.y[rows] > 0))
                yield [
                    dataset.name,
                    rule,
                    index,
                    part,
                    len(rows),
                    n_pos,
                    0.0,
                    _hash(rows),
                ]


def _hash(rows: NDArray[np.intp]) -> str:
    return hashlib.sha256(rows.astype("<i8").tobytes()).hexdigest()[:16]


def _parts(
    trial: Trial, dataset: Dataset
) -> Iterator[tuple[str, int, int, float, str]]:
    whole = Rows(trial, dataset)
    rows = {
        f"{name} {fold}".removesuffix(" 1"): part
        for fold, division in enumerate(whole.divisions, start=1)
        for name, part in zip(("fitting", "validation"), division, strict=True)
    }
    parts = {name: whole.training.part(part) for name, part in rows.items()}
    parts["test"] = Rows(trial, dataset).test
    hashes = dict.fromkeys(parts, "")
    if isinstance(whole.training, InMemory):
        train, test = divide_rows(trial, dataset)[0]
        hashes = {name: _hash(train[part]) for name, part in rows.items()} | {
            "test": _hash(test)
        }
    for name, part in parts.items():
        yield (
            name,
            part.n_rows,
            int(np.sum(part.y > 0)),
            _weighted_mean(part),
            hashes[name],
        )


def _weighted_mean(rows: Sample) -> float:
    """Return the mean of the values, each with a weight that depends on its place."""
    blocks = [rows.X] if isinstance(rows, InMemory) else [X for X, _ in rows.X]
    X = np.vstack(
        [X if isinstance(X, np.ndarray) else X.toarray() for X in blocks]
    ).ravel()
    return float(np.mean(X * (np.arange(1, X.size + 1) * 0.6180339887498949 % 1)))


def summaries(results: Path, names: Sequence[str]) -> pd.DataFrame:
    """Gather the summaries of these experiments.

    A stand-in has no place in a reference.
    """
    parts = [pd.read_csv(results / name / "summary.csv") for name in names]
    return pd.concat(parts, ignore_index=True).query("not stand_in")[SUMMARY]


def differences(measured: pd.DataFrame, reference: pd.DataFrame) -> list[str]:
    """Return a sentence for each row that differs, of the available data."""
    keys = [name for name in measured.columns if name in {*KEYS, *PARTS}]
    now = _by_key(measured, keys)
    before = _by_key(reference, keys)
    available = {key[:2] for key in now}  # experiments and their data sets
    sentences = []
    for key in now:
        if key not in before:
            sentences.append(f"{_named(key)}: not in the reference")
    for key, old in before.items():
        if key[:2] not in available:
            continue
        tolerance = old.pop("tolerance", EXACT)
        new = now.get(key, {})
        changed = [
            f"{name} was {value}, is {new.get(name, 'missing')}"
            for name, value in old.items()
            if not _agree(new.get(name), value, tolerance)
        ]
        if changed:
            sentences.append(f"{_named(key)}: {'; '.join(changed)}")
    return sentences


def _named(key: tuple[str, ...]) -> str:
    return ", ".join(filter(None, key))


def _by_key(
    table: pd.DataFrame, keys: list[str]
) -> dict[tuple[str, ...], dict[str, Any]]:
    """Return the other columns of each row by its keys."""
    rows = {}
    for row in table.to_dict("records"):
        key = tuple(str(row.pop(name)) for name in keys)
        rows[key] = row
    return rows


def _agree(now: str | float | None, before: str | float, tolerance: float) -> bool:
    if isinstance(before, str) or now is None:
        return now == before
    return bool(abs(now - before) <= tolerance or (np.isnan(now) and np.isnan(before)))


def better(results: Path, reference: Path = LEDGER) -> list[str]:
    """Return a sentence for each verdict that got better.

    `precbench check` reports the others.
    """
    ledger = results / "ledger.csv"
    changed = (
        changes(read_ledger(ledger), read_ledger(reference)) if ledger.exists() else []
    )
    return [
        f"{one.id} was {one.before}, is {one.after}: if that is meant, precbench check "
        f"{results} --update-reference"
        for one in changed
        if not one.worse
    ]


def read(path: Path) -> pd.DataFrame:
    """Read a reference."""
    return pd.read_csv(path, keep_default_na=False, na_values={"mean": "", "std": ""})


def main() -> None:
    """Run the script."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("results", type=Path)
    parser.add_argument(
        "--published", action="store_true", help="compare those of the papers, too"
    )
    parser.add_argument("--write", action="store_true", help="write the reference")
    parser.add_argument(
        "--summaries", action="store_true", help="write the means of the pages"
    )
    options = parser.parse_args()
    results = options.results
    if options.summaries:
        for path, names in SUMMARIES.items():
            summaries(results, names).to_csv(path, **_FORMAT)
        return
    configs = list(CONFIGS)
    if options.published:
        ran = {path.parent.name for path in results.glob("*/results.csv")}
        configs += [name for name in PUBLISHED if load_config(name).name in ran]
    measured = {VALUES: values(results, configs), DIVISIONS: divisions()}
    if options.write:
        for path, table in measured.items():
            reference = read(path)
            kept = reference[~reference["experiment"].isin(table["experiment"])]
            place = {name: i for i, name in enumerate(reference["experiment"].unique())}
            table = pd.concat([table, kept]).sort_values(  # new experiments come last
                "experiment", key=lambda names: names.map(place), kind="stable"
            )
            table.to_csv(path, float_format="%.12g", **_FORMAT)
        return
    found = {
        path.name: differences(table, read(path)) for path, table in measured.items()
    }
    if options.published:
        found[LEDGER.name] = better(results)
    complaints = []
    for name, sentences in found.items():
        print(f"{name}: {len(sentences)} differences")
        complaints += sentences[:_SHOWN]
        if len(sentences) > _SHOWN:
            complaints.append(f"and {len(sentences) - _SHOWN} more of {name}")
    sys.exit("\n".join(complaints) or None)


if __name__ == "__main__":
    main()
