"""Which wrong implementations the printed rows of rudin2009's Tables 3 to 5 would detect.

After ``make reproduce``: ``python scripts/power.py results`` replaces our draws by those of wrong
implementations, judges the printed rows as ``precbench check`` does, one table at a time, and
writes results/reference/power.csv; ``make docs`` shows it in docs/papers/rudin2009.md. Besides the
printed rows, each of 100 of our draws is taken as the printed one: the fraction of them that
detects the error is the power of such a table.

Most wrong draws are our columns under another name, or changed values; the others are runs:
rudin2009/wrong-p, wrong-scaling, ionosphere-labels and housing-features.
"""

import argparse
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from precbench.claims import Evidence, load_claims, read_evidence
from precbench.claims.evidence import MissingError
from precbench.claims.kinds.mean import MeanClaim
from precbench.claims.verdicts import LEVEL, place

POWER = Path(__file__).resolve().parents[1] / "results" / "reference" / "power.csv"
TABLES = ("table-3", "table-4", "table-5")
FOLDS = ("table-4", "table-5")
PAPERS = 100
_ERRORS = {"ours": "no error"}  # as the table calls them
P = (1, 2, 4, 8, 16, 64)
Rows = list[pd.DataFrame]


@dataclass(frozen=True)
class Wrong:
    """A wrong implementation.

    Attributes
    ----------
    name, about : str
        What it does, and where the error is: p, the derivative, scaling, the data, the measure.
    tables : tuple of str
    columns : dict of str to str or None
        The solver instead of another; None leaves out a column that would equal another.
    experiment, dataset : str
        Where the solvers in `columns` were run, if not in the experiment of the table.
    part : str
    metrics : dict of str to str
        The metric instead of another.
    factors : dict of str to float
        What the values of a metric are multiplied by.
    """

    name: str
    about: str
    tables: tuple[str, ...] = TABLES
    columns: Mapping[str, str | None] = field(default_factory=dict)
    experiment: str = ""
    dataset: str = ""
    part: str = "test"
    metrics: Mapping[str, str] = field(default_factory=dict)
    factors: Mapping[str, float] = field(default_factory=dict)


def swapped(a: str, b: str) -> dict[str, str | None]:
    """Return two columns in the place of each other."""
    return {a: b, b: a}


AUC, DCG, AVER = "auc", "dcg", "average_reciprocal_rank"
R2, R4, R8, R16 = (f"pnorm_risk(p={p})" for p in (2, 4, 8, 16))
ALL = {f"p={p}": f"p={p}" for p in P} | {"IR": "IR"}
OF_WRONG_P = {"tables": FOLDS, "experiment": "rudin2009-wrong-p"}
HALVED = {"p=2": None, "p=4": "p=2", "p=8": "p=4", "p=16": "p=8"}
DOUBLED = {"p=2": "p=4", "p=4": "p=8", "p=8": "p=16"}
QUARTER = dict(zip(list(ALL)[1:], ("p=1.5", "p=3", "p=6", "p=12", "p=48"), strict=False))
WRONG = (
    Wrong("none", "ours"),
    Wrong("p has no effect", "p", columns=dict.fromkeys([f"p={p}" for p in P], "p=1")),
    Wrong("p halved", "p", ("table-3",), HALVED | {"p=64": None}),
    Wrong("p halved", "p", columns=HALVED | {"p=64": "p=32"}, **OF_WRONG_P),
    Wrong("p doubled", "p", ("table-3",), DOUBLED | {"p=16": None, "p=64": None}),
    Wrong("p doubled", "p", columns=DOUBLED | {"p=16": "p=32", "p=64": "p=128"}, **OF_WRONG_P),
    Wrong("p smaller by a quarter", "p", columns=QUARTER, **OF_WRONG_P),
    Wrong("p = 32 in place of 64", "p", columns={"p=64": "p=32"}, **OF_WRONG_P),
    Wrong("columns p = 2 and 4 change places", "p", columns=swapped("p=2", "p=4")),
    Wrong("columns p = 8 and 16 change places", "p", columns=swapped("p=8", "p=16")),
    Wrong("columns p = 16 and 64 change places", "p", columns=swapped("p=16", "p=64")),
    Wrong("columns p = 64 and IR change places", "p", columns=swapped("p=64", "IR")),
    Wrong(
        "signed derivative",
        "derivative",
        columns={f"p={p}": f"p={p}, signed" for p in P},
        **OF_WRONG_P,
    ),
    Wrong("standardised features", "scaling", FOLDS, ALL, "rudin2009-wrong-scaling"),
    Wrong(
        '"good" returns positive',
        "data",
        ("table-4",),
        ALL,
        "rudin2009-ionosphere-labels",
        "ionosphere-good",
    ),
    Wrong(
        "without MEDV",
        "data",
        ("table-5",),
        ALL,
        "rudin2009-housing-features",
        "housing-without-medv",
    ),
    Wrong("measured on the training part", "measure", part="training"),
    Wrong("R_{4,1} and R_{8,1} change places", "measure", metrics=swapped(R4, R8)),
    Wrong("R_{p,1} halved", "measure", factors=dict.fromkeys((R2, R4, R8, R16), 0.5)),
    Wrong("AUC 1 % too high", "measure", factors={AUC: 1.01}),
    Wrong("AUC 5 % too high", "measure", factors={AUC: 1.05}),
    Wrong("DCG with the natural logarithm", "measure", factors={DCG: 1 / np.log(2)}),
    Wrong("AveR 10 % too high", "measure", factors={AVER: 1.1}),
)


def printed_rows(table: str) -> list[list[MeanClaim]]:
    """Return the cells of a table by row."""
    rows: dict[str, list[MeanClaim]] = {}
    for claim in load_claims():
        if isinstance(claim, MeanClaim) and claim.row.startswith(f"{table}/"):
            rows.setdefault(claim.row, []).append(claim)
    return list(rows.values())


def draws(wrong: Wrong, rows: Iterable[list[MeanClaim]], evidence: Evidence) -> Rows:
    """Return what the wrong implementation draws of each row: a column for each printed cell."""
    kept = [[c for c in row if wrong.columns.get(c.solver, "") is not None] for row in rows]
    return [
        pd.concat({c.solver: drawn(wrong, c, evidence) for c in row}, axis=1, join="inner")
        for row in kept
    ]


def drawn(wrong: Wrong, claim: MeanClaim, evidence: Evidence) -> pd.Series:
    """Return the values in the place of a cell, on the scale on which distances are taken."""
    solver = wrong.columns.get(claim.solver) or claim.solver
    metric = wrong.metrics.get(claim.metric) or claim.metric
    for experiment in filter(None, (wrong.experiment, claim.experiment)):
        try:
            values = evidence.outcomes[experiment].values(
                wrong.dataset or claim.dataset, solver, metric, wrong.part
            )
        except MissingError:
            continue
        values = values * wrong.factors.get(claim.metric, 1.0)
        return pd.Series(np.log(values) if claim.logarithm else values)
    raise SystemExit(f"{wrong.name}: no values of {solver} in these results")


def detected(papers: list[NDArray], wrong: Rows, rows: list[list[MeanClaim]]) -> tuple[int, float]:
    """Return the number of rows that are not like these draws, and the least p."""
    compared = []
    for paper, ours, row in zip(papers, wrong, rows, strict=True):
        samples = ours.to_numpy()
        if row[0].logarithm and row[0].power_of_ten:  # a power of ten that we choose
            away = float(np.mean(paper - np.median(samples, axis=0)))
            samples = samples + np.log(10) * np.round(away / np.log(10))
        compared.append((paper, samples))
    found = [placement.p_of_all for placement in place(compared)]
    return sum(p <= LEVEL for p in found), min(found)


def collect(
    evidence: Evidence, tables: Sequence[str] = TABLES, names: Collection[str] = ()
) -> pd.DataFrame:
    """Judge the printed rows, and our draws in their place, by each wrong implementation."""
    found = []
    for table in tables:
        rows = printed_rows(table)
        ours = draws(WRONG[0], rows, evidence)
        for wrong in WRONG:
            if table not in wrong.tables or (names and wrong.name not in names):
                continue
            theirs = draws(wrong, rows, evidence)
            printed = [
                np.array([c.scaled(c.printed) for c in row if c.solver in of])
                for row, of in zip(rows, theirs, strict=True)
            ]
            n, p = detected(printed, theirs, rows)
            found.append(
                {
                    "table": table,
                    "error": wrong.about,
                    "wrong": wrong.name,
                    "draws": len(theirs[0]),
                    "rows": len(rows),
                    "rows_that_tell": n,
                    "p": p,
                    "power": power(ours, theirs, rows),
                }
            )
            print(f"{table}, {wrong.name}: detected by {n} of {len(rows)} rows", flush=True)
    return pd.DataFrame(found)


def power(ours: Rows, theirs: Rows, rows: list[list[MeanClaim]]) -> float:
    """Return the fraction of our draws, each taken as the printed one, that reveal the error."""
    detections = 0
    papers = ours[0].index[:PAPERS]
    for i in papers:
        paper = [mine.loc[i, of.columns].to_numpy() for mine, of in zip(ours, theirs, strict=True)]
        others = [of.drop(index=i, errors="ignore") for of in theirs]
        detections += detected(paper, others, rows)[0] > 0
    return detections / len(papers)


def power_table(found: pd.DataFrame) -> str:
    """Lay out as Markdown which errors each table detects."""
    lines = ["| error in | wrong | " + " | ".join(f"Table {t[-1]}" for t in TABLES) + " |"]
    lines.append("| --- | --- |" + " ---: |" * len(TABLES))
    of_wrong = dict(list(found.groupby("wrong")))
    for wrong, error in {w.name: w.about for w in WRONG if w.name in of_wrong}.items():
        cells, of = [_ERRORS.get(error, error), wrong], of_wrong[wrong]
        for table in TABLES:
            here = of[of["table"] == table]
            found_here = [
                ("**detected**" if r.rows_that_tell else "not detected", r.p, r.power)
                for r in here.itertuples()
            ]
            cells += [f"{how}, p = {p:.2g}; {of_100:.0%}" for how, p, of_100 in found_here] or [""]
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"


def main() -> None:
    """Run the script."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("results", type=Path, nargs="+")
    found = collect(read_evidence(parser.parse_args().results))
    found.to_csv(POWER, index=False, lineterminator="\n", float_format="%.4g")
    print(power_table(found), end="")


if __name__ == "__main__":
    main()
