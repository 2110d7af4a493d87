"""Which wrong implementations the printed rows of Tables 3 to 5 would detect.

After ``make reproduce``: ``python -m scripts.power results`` replaces our draws by
those of wrong implementations, judges the printed rows as ``precbench check`` does, one
table at a time, and writes results/reference/power.csv; ``make docs`` shows it in
docs/papers/rudin2009.md. Besides the printed rows, each of 100 of our draws is taken as
the printed one: the fraction of them that detects the error is the power of such a
table.

Most wrong draws are our columns under another name, or changed values; the others are
runs: rudin2009/derivative, wrong-p, wrong-scaling, ionosphere-labels and
housing-features.
"""

import argparse
from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from precbench.claims import Evidence, load_claims, read_evidence
from precbench.claims.evidence import MissingError
from precbench.claims.kinds.mean import MeanClaim
from precbench.claims.verdicts import LEVEL, place
from precbench.core.errors import InputError
from precbench.core.locations import shipped

REFERENCE = shipped("results/reference") / "power.csv"
TABLES = ("table-3", "table-4", "table-5")
FOLDS = ("table-4", "table-5")
COLUMNS = ["table", "error", "wrong", "draws", "rows", "rows_that_tell", "p", "power"]
PAPERS = 100
P = (1, 2, 4, 8, 16, 64)
Rows = list[pd.DataFrame]
Instead = Mapping[str, str | None]


class Wrong(NamedTuple):
    """A wrong implementation.

    Attributes
    ----------
    about, name : str
        Where the error is: p, the derivative, scaling, the data, the measure; what it
        does.
    tables : tuple of str
    columns : dict of str to str or None
        The solver instead of another; None leaves out a column that would equal
        another.
    experiment, dataset : str
        Where the solvers in `columns` were run, if not in the experiment of the table.
    part : str
    metrics : dict of str to str
        The metric instead of another.
    factors : dict of str to float
        What the values of a metric are multiplied by.
    """

    about: str
    name: str
    tables: Sequence[str] = TABLES
    columns: Instead = {}  # noqa: RUF012
    experiment: str = ""
    dataset: str = ""
    part: str = "test"
    metrics: Instead = {}  # noqa: RUF012
    factors: Mapping[str, float] = {}


def swapped(a: str, b: str) -> Instead:
    """Return two columns in the place of each other."""
    return {a: b, b: a}


AUC = "auc"
DCG = "dcg"
AVER = "average_reciprocal_rank"
R2 = "pnorm_risk(p=2)"
R4 = "pnorm_risk(p=4)"
R8 = "pnorm_risk(p=8)"
R16 = "pnorm_risk(p=16)"
ALL = {f"p={p}": f"p={p}" for p in P} | {"IR": "IR"}
HALVED = {"p=2": None, "p=4": "p=2", "p=8": "p=4", "p=16": "p=8"}
DOUBLED = {"p=2": "p=4", "p=4": "p=8", "p=8": "p=16"}
QUARTER = {"p=2": "p=1.5", "p=4": "p=3", "p=8": "p=6", "p=16": "p=12", "p=64": "p=48"}
SIGNED = {f"p={p}": f"p={p}, signed" for p in P}
RUN = "rudin2009-wrong-p"
WRONG = (
    Wrong("ours", "none"),
    Wrong("p", "p has no effect", columns=dict.fromkeys([f"p={p}" for p in P], "p=1")),
    Wrong("p", "p halved", ("table-3",), columns={**HALVED, "p=64": None}),
    Wrong("p", "p halved", FOLDS, columns={**HALVED, "p=64": "p=32"}, experiment=RUN),
    Wrong(
        "p",
        "p doubled",
        ("table-3",),
        columns={**DOUBLED, "p=16": None, "p=64": None},
    ),
    Wrong(
        "p",
        "p doubled",
        FOLDS,
        columns={**DOUBLED, "p=16": "p=32", "p=64": "p=128"},
        experiment=RUN,
    ),
    Wrong("p", "p smaller by a quarter", FOLDS, columns=QUARTER, experiment=RUN),
    Wrong(
        "p", "p = 32 in place of 64", FOLDS, columns={"p=64": "p=32"}, experiment=RUN
    ),
    Wrong("p", "columns p = 2 and 4 change places", columns=swapped("p=2", "p=4")),
    Wrong("p", "columns p = 8 and 16 change places", columns=swapped("p=8", "p=16")),
    Wrong("p", "columns p = 16 and 64 change places", columns=swapped("p=16", "p=64")),
    Wrong("p", "columns p = 64 and IR change places", columns=swapped("p=64", "IR")),
    Wrong(
        "derivative",
        "signed derivative",
        ("table-3",),
        columns=SIGNED,
        experiment="rudin2009-derivative",
    ),
    Wrong("derivative", "signed derivative", FOLDS, columns=SIGNED, experiment=RUN),
    Wrong(
        "scaling",
        "standardised features",
        FOLDS,
        columns=ALL,
        experiment="rudin2009-wrong-scaling",
    ),
    Wrong(
        "data",
        '"good" returns positive',
        ("table-4",),
        columns=ALL,
        experiment="rudin2009-ionosphere-labels",
        dataset="ionosphere-good",
    ),
    Wrong(
        "data",
        "without MEDV",
        ("table-5",),
        columns=ALL,
        experiment="rudin2009-housing-features",
        dataset="housing-without-medv",
    ),
    Wrong("measure", "measured on the training part", part="training"),
    Wrong("measure", "R_{4,1} and R_{8,1} change places", metrics=swapped(R4, R8)),
    Wrong("measure", "R_{p,1} halved", factors=dict.fromkeys((R2, R4, R8, R16), 0.5)),
    Wrong("measure", "AUC 1 % too high", factors={AUC: 1.01}),
    Wrong("measure", "AUC 5 % too high", factors={AUC: 1.05}),
    Wrong("measure", "DCG with the natural logarithm", factors={DCG: 1 / np.log(2)}),
    Wrong("measure", "AveR 10 % too high", factors={AVER: 1.1}),
)


def printed_rows(table: str) -> list[list[MeanClaim]]:
    """Return the cells of a table by row."""
    rows: dict[str, list[MeanClaim]] = {}
    for claim in load_claims():
        if isinstance(claim, MeanClaim) and claim.row.startswith(f"{table}/"):
            rows.setdefault(claim.row, []).append(claim)
    return list(rows.values())


def draws(wrong: Wrong, rows: Iterable[list[MeanClaim]], evidence: Evidence) -> Rows:
    """Return what the wrong implementation draws of each row.

    A column for each printed cell.
    """
    tables = []
    for row in rows:
        columns = {
            claim.solver: drawn(wrong, claim, evidence)
            for claim in row
            if wrong.columns.get(claim.solver, "") is not None
        }
        tables.append(pd.concat(columns, axis=1, join="inner"))
    return tables


def drawn(wrong: Wrong, claim: MeanClaim, evidence: Evidence) -> pd.Series:
    """Return the values in the place of a cell, on the scale of its distances."""
    solver = wrong.columns.get(claim.solver) or claim.solver
    metric = wrong.metrics.get(claim.metric) or claim.metric
    for experiment in filter(None, (wrong.experiment, claim.experiment)):
        try:
            values = evidence.outcomes[experiment].values(
                wrong.dataset or claim.dataset, solver, metric, wrong.part
            )
        except (KeyError, MissingError):
            continue
        values = values * wrong.factors.get(claim.metric, 1.0)
        return pd.Series(np.log(values) if claim.logarithm else values)
    raise InputError(f"{wrong.name}: no values of {solver} in these results")


def detected(
    papers: list[NDArray], wrong: Rows, rows: list[list[MeanClaim]]
) -> tuple[int, float]:
    """Return the number of rows that are not like these draws, and the least p."""
    compared = []
    for paper, ours, row in zip(papers, wrong, rows, strict=True):
        samples = ours.to_numpy()
        if row[0].logarithm and row[0].power_of_ten:  # a power of ten that we choose
            away = float(np.mean(paper - np.median(samples, axis=0)))
            samples = samples + np.log(10) * np.round(away / np.log(10))
        compared.append((paper, samples))
    p_values = [placement.p_of_all for placement in place(compared)]
    return sum(p <= LEVEL for p in p_values), min(p_values)


def collect(
    evidence: Evidence, tables: Sequence[str] = TABLES, names: Collection[str] = ()
) -> pd.DataFrame:
    """Judge the printed rows, and our draws instead, by each wrong implementation."""
    judged = []
    for table in tables:
        rows = printed_rows(table)
        ours = draws(WRONG[0], rows, evidence)
        for wrong in WRONG:
            if table not in wrong.tables or (names and wrong.name not in names):
                continue
            theirs = draws(wrong, rows, evidence)
            printed = [
                np.array([c.scaled(c.printed) for c in row if c.solver in columns])
                for row, columns in zip(rows, theirs, strict=True)
            ]
            rows_that_tell, p = detected(printed, theirs, rows)
            judged.append(
                {
                    "table": table,
                    "error": wrong.about,
                    "wrong": wrong.name,
                    "draws": len(theirs[0]),
                    "rows": len(rows),
                    "rows_that_tell": rows_that_tell,
                    "p": p,
                    "power": power(ours, theirs, rows),
                }
            )
    return pd.DataFrame(judged, columns=COLUMNS)


def power(ours: Rows, theirs: Rows, rows: list[list[MeanClaim]]) -> float:
    """Return the fraction of our draws that, as the printed one, reveal the error."""
    detections = 0
    papers = ours[0].index[:PAPERS]
    for i in papers:
        paper = [
            mine.loc[i, table.columns].to_numpy()
            for mine, table in zip(ours, theirs, strict=True)
        ]
        others = [table.drop(index=i, errors="ignore") for table in theirs]
        rows_that_tell, _ = detected(paper, others, rows)
        detections += rows_that_tell > 0
    return detections / len(papers)


def power_rows(figures: pd.DataFrame) -> list[list[str]]:
    """Return where each error is, what it is, and whether each table detects it."""
    cells: dict[tuple[str, str], str] = {}
    for row in figures.to_dict("records"):
        outcome = "**detected**" if row["rows_that_tell"] else "not detected"
        text = f"{outcome}, p = {row['p']:.2g}; {row['power']:.0%}"
        cells[row["wrong"], row["table"]] = text
    errors = {wrong.name: wrong.about for wrong in WRONG}
    rows = []
    for name, about in errors.items():
        texts = [cells.get((name, table), "") for table in TABLES]
        if any(texts):
            rows.append(["no error" if about == "ours" else about, name, *texts])
    return rows


def main() -> None:
    """Run the program."""
    parser = argparse.ArgumentParser(prog="python -m scripts.power")
    parser.add_argument("results", type=Path, nargs="+")
    try:
        figures = collect(read_evidence(parser.parse_args().results))
    except InputError as error:
        parser.error(str(error))
    figures.to_csv(REFERENCE, index=False, lineterminator="\n", float_format="%.4g")


if __name__ == "__main__":
    main()
