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
from typing import Any, NamedTuple

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
VALUES = REFERENCE / "regression.csv"
DIVISIONS = REFERENCE / "divisions.csv"
LEDGER = REFERENCE / "ledger.csv"
CONFIGS = [name for name in list_configs() if name.startswith("regression/")]
PUBLISHED = [
    "rudin2009/table-3-magic",
    "rudin2009/table-4-ionosphere",
    "rudin2009/table-5-housing",
    "letter",
    "kar2015/counterexample",
    "adult",
    "ijcnn1",
    "cod_rna",
    "covtype",
    "w8a",
]
"""Of the papers, what `make check` runs, and what else the README shows."""

KAR2015 = REFERENCE / "kar2015.csv"
SOLVERS = REFERENCE / "solvers.csv"
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
    "ir-push",
    "pnorm-push",
    "rankboost",
    "bbr",
    "bbr-pairs",
    "lcbr",
    "ftrl",
    "logistic-regression",
    "linear-svm",
    "hist-gradient-boosting",
    "lightgbm",
    "lightgbm-lambdarank",
    "random-forest",
    "extra-trees",
    "ensemble",
    "xgboost",
    "catboost",
    "mlp",
    "no-skill",
}
"""Solvers whose last bits follow BLAS, the C library or another library."""
_SHOWN = 20
_FORMAT = {"index": False, "lineterminator": "\n"}


def values(results: Path, configs: Sequence[str]) -> pd.DataFrame:
    """Gather what these configs measured, but on stand-ins."""
    tables = []
    for name in configs:
        config = load_config(name)
        folder = results / config.name
        if isinstance(config, Study):
            tables.append(_of_study(config, folder))
        else:
            tables.append(_of_experiment(config, folder))
    table = pd.concat(tables, ignore_index=True)
    exact = EXACT * table[["mean", "std"]].abs().max(axis=1) + 1e-12
    loose = SHARE * table["std"].fillna(0) + 1e-6 * table["mean"].abs()
    tolerance = exact + loose.where(table.pop("follows"), 0)
    return table.assign(tolerance=tolerance.map("{:.2g}".format).astype(float))


def _of_experiment(config: Experiment, folder: Path) -> pd.DataFrame:
    """Take means over the splits, and how often which parameters were chosen.

    What is chosen for solvers that follow other libraries is left out: where
    candidates tie, the last bit chooses.
    """
    results = pd.read_csv(folder / "results.csv", keep_default_na=False)
    is_final = results["final"].astype(str) != "False"
    is_real = results["stand_in"].astype(str) == "False"
    measured = results[is_final & is_real]
    solvers = {label: entry.solver for label, entry in config.solvers.items()}
    follows = measured["solver"].map(solvers).isin(FOLLOWING)
    tuned = measured[(measured["chosen"] != "") & ~follows]
    tuned = tuned.drop_duplicates(["dataset", "solver", "split"])
    # A row for each choice, so that n counts them.
    choices = tuned.assign(metric="chosen " + tuned["chosen"], value=1.0, part="")
    rows = pd.concat([measured, choices], ignore_index=True)
    rows["value"] = pd.to_numeric(rows["value"])
    groups = rows.groupby(KEYS, sort=False)["value"]
    table = groups.agg(n="count", mean="mean", std="std").reset_index()
    return table.assign(follows=table["solver"].map(solvers).isin(FOLLOWING))


def _of_study(config: Study, folder: Path) -> pd.DataFrame:
    """Take the means over the repetitions.

    Times and what follows from them have none.
    """
    table = pd.read_csv(folder / "values.csv").fillna({"pairs": 0, "share": 0.5})
    keys = ["part", "components", "method", "pairs", "share", "measure"]
    wide = table.pivot_table("value", keys, "statistic", sort=False)
    wide = wide.dropna(subset="mean").reset_index()
    n = config.parameters["repetitions"]
    components = wide["components"].map("K = {:g}, ".format)
    return pd.DataFrame(
        {
            "experiment": config.name,
            "dataset": components + wide["share"].map("{:g}".format),
            "solver": wide["method"] + wide["pairs"].map(", {:g} pairs".format),
            "part": wide["part"],
            "metric": wide["measure"],
            "n": n,
            "mean": wide["mean"],
            "std": wide["standard error"] * np.sqrt(n),
            "follows": True,
        }
    )


class Part(NamedTuple):
    """A part of a split, as a line of the reference describes it.

    Attributes
    ----------
    name : str
    rows, positives : int
    sum : float
        Of the scaled values, weighted.
    numbers : str
        A hash of the row numbers, empty for a stream, which has none.
    """

    name: str
    rows: int
    positives: int
    sum: float
    numbers: str


def divisions() -> pd.DataFrame:
    """Describe the parts of each split, as the first trial on it has them."""
    lines: list[list[object]] = []
    for config_name in CONFIGS:
        config = load_config(config_name)
        if isinstance(config, Study):
            continue
        plan = make_plan(config)
        described = set()
        for trial, _key in plan.trials:
            dataset = plan.datasets[trial.dataset.name]
            features = "fourier" if trial.fourier else ""
            split = (config.name, dataset.name, features, trial.split.index)
            if split in described or dataset.stand_in:
                continue
            described.add(split)
            first = {name: values[0] for name, values in trial.candidates.items()}
            for part in _parts(trial.with_features(first), dataset):
                lines.append([*split, *part])
        if config_name == "regression/top":
            lines += _rules(config.name, plan.datasets["german"])
    return pd.DataFrame(lines, columns=[*PARTS, "rows", "positives", "sum", "numbers"])


def _rules(experiment: str, dataset: Dataset) -> list[list[object]]:
    """Divide the rows by every rule, also those of no config, and by groups."""
    groups = np.arange(len(dataset.y), dtype=np.int64) // 3
    lines: list[list[object]] = []
    for kind, stratified, grouped in product(
        ("random", "kfold"), (False, True), (False, True)
    ):
        rule = kind
        if stratified:
            rule += " stratified"
        if grouped:
            rule += " groups"
        data = replace(dataset, groups=groups if grouped else None)
        for index in range(2):
            split = split_rows(data, kind, index, n_splits=3, stratified=stratified)
            for name, rows in split._asdict().items():
                n_pos = int(np.sum(data.y[rows] > 0))
                part = Part(name, len(rows), n_pos, sum=0.0, numbers=_hash(rows))
                lines.append([experiment, dataset.name, rule, index, *part])
    return lines


def _hash(rows: NDArray[np.intp]) -> str:
    return hashlib.sha256(rows.astype("<i8").tobytes()).hexdigest()[:16]


def _parts(trial: Trial, dataset: Dataset) -> Iterator[Part]:
    """Describe what candidates are fitted to and compared on, by fold, and the test."""
    rows = Rows(trial, dataset)
    places = {}  # among the training rows
    for fold, (fitting, validation) in enumerate(rows.divisions, start=1):
        number = "" if fold == 1 else f" {fold}"
        places[f"fitting{number}"] = fitting
        places[f"validation{number}"] = validation
    samples = {name: rows.training.part(place) for name, place in places.items()}
    samples["test"] = rows.test
    hashes = dict.fromkeys(samples, "")
    if isinstance(rows.training, InMemory):
        split, _n_fit = divide_rows(trial, dataset)
        for name, place in places.items():
            hashes[name] = _hash(split.train[place])
        hashes["test"] = _hash(split.test)
    for name, sample in samples.items():
        n_pos = int(np.sum(sample.y > 0))
        yield Part(name, sample.n_rows, n_pos, _weighted_mean(sample), hashes[name])


def _weighted_mean(rows: Sample) -> float:
    """Return the mean of the values, each with a weight that depends on its place."""
    blocks = [rows.X] if isinstance(rows, InMemory) else [X for X, _y in rows.X]
    dense = [X if isinstance(X, np.ndarray) else X.toarray() for X in blocks]
    values = np.vstack(dense).ravel()
    weights = np.arange(1, values.size + 1) * 0.6180339887498949 % 1
    return float(np.mean(values * weights))


def summaries(results: Path, names: Sequence[str]) -> pd.DataFrame:
    """Gather the summaries of these experiments, but on stand-ins."""
    parts = [pd.read_csv(results / name / "summary.csv") for name in names]
    return pd.concat(parts, ignore_index=True).query("not stand_in")[SUMMARY]


def differences(measured: pd.DataFrame, reference: pd.DataFrame) -> list[str]:
    """Return a sentence for each row that differs, of the available data."""
    names = [name for name in measured.columns if name in {*KEYS, *PARTS}]
    measured_rows = _by_key(measured, names)
    reference_rows = _by_key(reference, names)
    available = {_data(key) for key in measured_rows}
    sentences = []
    for key in measured_rows:
        if key not in reference_rows:
            sentences.append(f"{_named(key)}: not in the reference")
    for key, expected in reference_rows.items():
        if _data(key) not in available:
            continue
        texts = _changes(measured_rows.get(key, {}), expected)
        if texts:
            sentences.append(f"{_named(key)}: {'; '.join(texts)}")
    return sentences


def _by_key(
    table: pd.DataFrame, names: list[str]
) -> dict[tuple[str, ...], dict[str, Any]]:
    """Return the other columns of each row by its keys, the columns of these names."""
    rows = {}
    for row in table.to_dict("records"):
        key = tuple(str(row.pop(name)) for name in names)
        rows[key] = row
    return rows


def _data(key: tuple[str, ...]) -> tuple[str, ...]:
    """Return the experiment and the data set, with which all keys begin."""
    return key[:2]


def _named(key: tuple[str, ...]) -> str:
    return ", ".join(filter(None, key))


def _changes(measured: dict[str, Any], expected: dict[str, Any]) -> list[str]:
    """Say which columns of a row differ, by more than the tolerance of the row."""
    tolerance = expected.get("tolerance", EXACT)
    texts = []
    for name, value in expected.items():
        if name != "tolerance" and not _agree(measured.get(name), value, tolerance):
            texts.append(f"{name} was {value}, is {measured.get(name, 'missing')}")
    return texts


def _agree(
    measured: str | float | None, expected: str | float, tolerance: float
) -> bool:
    if isinstance(expected, str) or measured is None:
        return measured == expected
    if np.isnan(measured) and np.isnan(expected):
        return True
    return bool(abs(measured - expected) <= tolerance)


def better(results: Path, reference: Path = LEDGER) -> list[str]:
    """Return a sentence for each verdict that got better.

    `precbench check` reports the others.
    """
    ledger = results / "ledger.csv"
    if not ledger.exists():
        return []
    sentences = []
    for change in changes(read_ledger(ledger), read_ledger(reference)):
        if not change.worse:
            sentences.append(
                f"{change.id} was {change.before}, is {change.after}: if that is meant,"
                f" precbench check {results} --update-reference"
            )
    return sentences


def read(path: Path) -> pd.DataFrame:
    """Read a reference."""
    return pd.read_csv(path, keep_default_na=False, na_values={"mean": "", "std": ""})


def write_values(path: Path, table: pd.DataFrame) -> None:
    """Put a table into a reference in the place of the same experiments.

    New experiments come last.
    """
    written = read(path)
    others = written[~written["experiment"].isin(table["experiment"])]
    places = {name: place for place, name in enumerate(written["experiment"].unique())}
    whole = pd.concat([table, others]).sort_values(
        "experiment", key=lambda names: names.map(places), kind="stable"
    )
    whole.to_csv(path, float_format="%.12g", **_FORMAT)


def complaint(name: str, sentences: Sequence[str]) -> list[str]:
    """Return the first sentences, and how many more there are of a reference."""
    n_more = len(sentences) - _SHOWN
    if n_more > 0:
        return [*sentences[:_SHOWN], f"and {n_more} more of {name}"]
    return list(sentences)


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
            write_values(path, table)
        return
    sentences_of = {}
    for path, table in measured.items():
        sentences_of[path.name] = differences(table, read(path))
    if options.published:
        sentences_of[LEDGER.name] = better(results)
    complaints = []
    for name, sentences in sentences_of.items():
        print(f"{name}: {len(sentences)} differences")
        complaints += complaint(name, sentences)
    sys.exit("\n".join(complaints) or None)


if __name__ == "__main__":
    main()
