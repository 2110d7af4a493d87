"""Make the committed reference of measured values, and the README's tables.

After ``make reproduce``: ``python scripts/reference.py results`` takes what is measured on real
data into results/reference/kar2015.csv, and that of all solvers and of unit rows into solvers.csv,
and rewrites the tables. Without an argument only the tables are made anew, from these files and
from ledger.csv (which ``precbench check --update-reference`` writes); a test fails when they drift
apart. ``make check`` compares what it has run with the reference: ``python scripts/reference.py
--compare results``.
"""

import argparse
import re
import sys
from collections import Counter, defaultdict
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pandas as pd

from precbench.claims import load_claims
from precbench.claims.ledger import LedgerRow, changes, read_ledger
from precbench.claims.verdicts import Verdict
from precbench.statistics import LEVEL
from precbench.survey.markdown import laid_out

ROOT = Path(__file__).resolve().parents[1]
REFERENCE = ROOT / "results" / "reference" / "kar2015.csv"
README = ROOT / "README.md"
EXPERIMENTS = ["letter", "adult", "ijcnn1", "cod_rna", "w8a"]
SOLVERS = REFERENCE.with_name("solvers.csv")
UNIT_NORM, ALL = "kar2015-unit-norm", "all-solvers"
METRIC = "precision_at_k(k=0.25)"
COLUMNS = ["experiment", "dataset", "solver", "metric", "n", "mean", "std", "p_best", "stopped"]
KEYS = ["experiment", "dataset", "solver", "metric"]
# Their last bits follow the BLAS and the CPU; all others give the same numbers everywhere.
OPTIMISERS = ("logistic-regression", "linear-svm")
LEDGER = REFERENCE.with_name("ledger.csv")
BENCH = REFERENCE.with_name("bench.csv")


def collect(results: Path, experiments: Sequence[str] = EXPERIMENTS) -> pd.DataFrame:
    """Gather the summaries of the experiments; synthetic data have no place in a reference."""
    parts = [pd.read_csv(results / name / "summary.csv") for name in experiments]
    summary = pd.concat(parts, ignore_index=True)
    return summary.loc[~summary["stand_in"], COLUMNS]


def differences(results: Path, reference: pd.DataFrame) -> list[str]:
    """Compare what was run at full size with the reference; a sentence for each difference."""
    paths = [results / name / "summary.csv" for name in EXPERIMENTS]
    measured = [pd.read_csv(path) for path in paths if path.exists()]
    if not measured:
        return [f"{results}: none of {', '.join(EXPERIMENTS)} was run"]
    rows = pd.concat(measured).query("not stand_in").merge(reference, on=KEYS, suffixes=("", "_"))
    found = []
    for _, row in rows.iterrows():
        solver, _, tuned = row["solver"].partition(", ")
        tolerance = (5e-2 if tuned else 5e-3) if solver in OPTIMISERS else 1e-12
        if not np.allclose(
            [row["mean"], row["std"]], [row["mean_"], row["std_"]], rtol=1e-7, atol=tolerance
        ):
            found.append(
                f"{row['experiment']}, {row['solver']}: {row['metric']} is {row['mean']} ± "
                f"{row['std']}, the reference has {row['mean_']} ± {row['std_']}"
            )
    return found


def better(results: Path, reference: Path = LEDGER) -> list[str]:
    """Return a sentence for each verdict that got better; `precbench check` reports the others."""
    ledger = results / "ledger.csv"
    changed = changes(read_ledger(ledger), read_ledger(reference)) if ledger.exists() else []
    return [
        f"{one.id} was {one.before}, is {one.after}: if that is meant, precbench check "
        f"{results} --update-reference"
        for one in changed
        if not one.worse
    ]


def table(reference: pd.DataFrame) -> str:
    """Lay out prec@0.25 as Markdown: solvers against data sets.

    The best mean is in bold; those not significantly different from it are marked.
    """
    main = reference[reference["metric"] == METRIC]
    best = main.groupby("dataset")["mean"].max()
    text = main["mean"].map("{:.3f}".format) + " ± " + main["std"].map("{:.3f}".format)
    bold = main["mean"] == main["dataset"].map(best)
    text += np.where(~bold & (main["p_best"] > LEVEL), " ≈", "")
    return _of_datasets(main.assign(cell=text.where(~bold, "**" + text + "**")))


def side_by_side(reference: pd.DataFrame, others: pd.DataFrame) -> str:
    """Lay out the means of prec@0.25 as the cards scale the rows, and with rows of norm 1."""
    unit = others[others["experiment"] == UNIT_NORM]
    both = reference.merge(unit, on=["dataset", "solver", "metric"], suffixes=("", "_unit"))
    main = both[both["metric"] == METRIC]
    text = main["mean"].map("{:.3f}".format) + " → " + main["mean_unit"].map("{:.3f}".format)
    return _of_datasets(main.assign(cell=text))


def _of_datasets(cells: pd.DataFrame) -> str:
    datasets = list(cells["dataset"].unique())
    wide = cells.pivot(index="solver", columns="dataset", values="cell")[datasets].fillna("–")
    rows = [[solver, *wide.loc[solver]] for solver in cells["solver"].unique()]
    return laid_out(["solver", *datasets], rows, numbers=len(datasets))


def ledger_table(ledger: list[LedgerRow]) -> str:
    """Count the verdicts of each paper as Markdown, our additional claims separately.

    A sentence counts once, however many rows it takes, by the worst of its decisions.
    """
    claims = {claim.id: claim for claim in load_claims()}
    given = defaultdict(list)
    for row in ledger:
        claim = claims[row.id]
        given[row.paper, claim.ours, claim.counted_as].append(row.verdict)
    verdicts = list(Verdict)
    counts = Counter(
        (paper, ours, max(found, key=lambda v: (v.rank is not None, v.rank, -verdicts.index(v))))
        for (paper, ours, _), found in given.items()
    )
    rows = Counter((row.paper, claims[row.id].ours) for row in ledger)
    header = ["paper", *Verdict, "rows"]
    lines = [" | ".join(header), " | ".join(["---"] + ["---:"] * (len(header) - 1))]
    for paper, ours in sorted(rows):
        cells = [f"{paper}, additional" if ours else paper]
        cells += [str(counts[paper, ours, verdict]) for verdict in Verdict]
        lines.append(" | ".join([*cells, str(rows[paper, ours])]))
    return "".join(f"| {line} |\n" for line in lines)


def readme_with(text: str, reference: pd.DataFrame, ledger: list[LedgerRow]) -> str:
    """Return the README with the tables of these references."""
    for name, made in (("reference", table(reference)), ("ledger", ledger_table(ledger))):
        marked = re.compile(rf"(<!-- {name} -->\n).*?(<!-- end -->)", re.DOTALL)
        text = marked.sub(lambda found, made=made: found[1] + made + found[2], text)
    return text


def main() -> None:
    """Run the script."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("results", type=Path, nargs="?")
    parser.add_argument(
        "--compare", action="store_true", help="write nothing, show the differences"
    )
    arguments = parser.parse_args()
    results = arguments.results
    if arguments.compare:
        found = differences(results, pd.read_csv(REFERENCE)) + better(results)
        sys.exit("\n".join(found) or None)
    if results is not None:
        collect(results).to_csv(REFERENCE, index=False, lineterminator="\n")
        others = collect(results, [UNIT_NORM, ALL])
        others.to_csv(SOLVERS, index=False, lineterminator="\n")
    text = readme_with(README.read_text(), pd.read_csv(REFERENCE), read_ledger(LEDGER))
    README.write_text(text)


if __name__ == "__main__":
    main()
