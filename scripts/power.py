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
PAPERS = 100  # of our draws that are taken as the printed one
P = (1, 2, 4, 8, 16, 64)
Draws = list[pd.DataFrame]
"""Of each printed row a table: a line for each draw, a column for each cell."""
Instead = Mapping[str, str | None]
"""A name in place of another, or None for neither."""


class Wrong(NamedTuple):
    """A wrong implementation.

    Attributes
    ----------
    where : str
        Where the error is: p, the derivative, scaling, the data, the measure.
    name : str
        What it does.
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

    where: str
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


def draws(wrong: Wrong, rows: Iterable[list[MeanClaim]], evidence: Evidence) -> Draws:
    """Return what a wrong implementation draws in the place of each row."""
    tables = []
    for row in rows:
        columns = {}
        for claim in row:
            solver = wrong.columns.get(claim.solver, claim.solver)
            if solver is not None:
                columns[claim.solver] = draws_of_cell(wrong, claim, solver, evidence)
        tables.append(pd.concat(columns, axis=1, join="inner"))
    return tables


def draws_of_cell(
    wrong: Wrong, claim: MeanClaim, solver: str, evidence: Evidence
) -> pd.Series:
    """Return the values in the place of a cell, on the scale of its distances.

    They are of the experiment of the error, if that has them, or of the table.
    """
    metric = wrong.metrics.get(claim.metric) or claim.metric
    for experiment in (wrong.experiment, claim.experiment):
        if not experiment:
            continue
        try:
            values = evidence.outcomes[experiment].values(
                wrong.dataset or claim.dataset, solver, metric, wrong.part
            )
        except (KeyError, MissingError):
            continue
        values = values * wrong.factors.get(claim.metric, 1.0)
        return pd.Series(np.log(values) if claim.logarithm else values)
    raise InputError(f"{wrong.name}: no values of {solver} in these results")


class Detection(NamedTuple):
    """How many printed rows are not like some draws, and the least p of a row."""

    rows: int
    p: float


def detected(
    printed: list[NDArray], wrong: Draws, rows: list[list[MeanClaim]]
) -> Detection:
    """Compare printed values, an array for each row, with draws."""
    compared = []
    for values, table, row in zip(printed, wrong, rows, strict=True):
        samples = table.to_numpy()
        if row[0].logarithm and row[0].power_of_ten:  # a power of ten that we choose
            away = float(np.mean(values - np.median(samples, axis=0)))
            samples = samples + np.log(10) * np.round(away / np.log(10))
        compared.append((values, samples))
    p_values = [placement.p_of_all for placement in place(compared)]
    return Detection(sum(p <= LEVEL for p in p_values), min(p_values))


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
            printed = []
            for row, columns in zip(rows, theirs, strict=True):
                cells = [claim for claim in row if claim.solver in columns]
                values = [claim.scaled(claim.printed) for claim in cells]
                printed.append(np.array(values))
            detection = detected(printed, theirs, rows)
            judged.append(
                {
                    "table": table,
                    "error": wrong.where,
                    "wrong": wrong.name,
                    "draws": len(theirs[0]),
                    "rows": len(rows),
                    "rows_that_tell": detection.rows,
                    "p": detection.p,
                    "power": power(ours, theirs, rows),
                }
            )
    return pd.DataFrame(judged, columns=COLUMNS)


def power(ours: Draws, theirs: Draws, rows: list[list[MeanClaim]]) -> float:
    """Return the fraction of our draws that, as the printed one, reveal the error."""
    n_detected = 0
    as_printed = ours[0].index[:PAPERS]
    for i in as_printed:
        values = []
        for our_table, their_table in zip(ours, theirs, strict=True):
            values.append(our_table.loc[i, their_table.columns].to_numpy())
        # The draw that is taken as the printed one is not compared with itself.
        others = [table.drop(index=i, errors="ignore") for table in theirs]
        if detected(values, others, rows).rows > 0:
            n_detected += 1
    return n_detected / len(as_printed)


def power_rows(figures: pd.DataFrame) -> list[list[str]]:
    """Return where each error is, what it is, and whether each table detects it."""
    cells: dict[tuple[str, str], str] = {}
    for row in figures.to_dict("records"):
        outcome = "**detected**" if row["rows_that_tell"] else "not detected"
        text = f"{outcome}, p = {row['p']:.2g}; {row['power']:.0%}"
        cells[row["wrong"], row["table"]] = text
    places = {wrong.name: wrong.where for wrong in WRONG}
    rows = []
    for name, where in places.items():
        texts = [cells.get((name, table), "") for table in TABLES]
        if any(texts):
            rows.append(["no error" if where == "ours" else where, name, *texts])
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
