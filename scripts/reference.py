"""Make the committed reference of measured values, and the README's table of them.

After ``make reproduce``: ``python scripts/reference.py results`` takes what is measured on real
data into results/reference/kar2015.csv and rewrites the table. Without an argument only the table
is made anew from the committed file; a test fails when the two drift apart.
"""

import argparse
import re
from pathlib import Path

import pandas as pd

ROOT = Path(__file__).resolve().parents[1]
REFERENCE = ROOT / "results" / "reference" / "kar2015.csv"
README = ROOT / "README.md"
EXPERIMENTS = ["letter", "adult", "ijcnn1", "cod_rna", "w8a"]
METRIC = "precision_at_k(k=0.25)"
COLUMNS = ["experiment", "dataset", "solver", "metric", "n", "mean", "std"]
MARKED = re.compile(r"(<!-- reference -->\n).*(<!-- end -->)", re.DOTALL)


def collect(results: Path) -> pd.DataFrame:
    """Gather the summaries of the experiments; synthetic data have no place in a reference."""
    parts = [pd.read_csv(results / name / "summary.csv") for name in EXPERIMENTS]
    summary = pd.concat(parts, ignore_index=True)
    return summary.loc[~summary["stand_in"], COLUMNS]


def table(reference: pd.DataFrame) -> str:
    """Lay out prec@0.25 as Markdown: solvers against data sets, the best mean in bold."""
    main = reference[reference["metric"] == METRIC]
    datasets = list(main["dataset"].unique())
    lines = ["| solver | " + " | ".join(datasets) + " |", "| --- |" + " ---: |" * len(datasets)]
    best = main.groupby("dataset")["mean"].max()
    for solver in main["solver"].unique():
        row = main[main["solver"] == solver].set_index("dataset")
        cells = []
        for dataset in datasets:
            mean, std = row.loc[dataset, ["mean", "std"]]
            text = f"{mean:.3f} ± {std:.3f}"
            cells.append(f"**{text}**" if mean == best[dataset] else text)
        lines.append(f"| {solver} | " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"


def readme_with(text: str, reference: pd.DataFrame) -> str:
    """Return the README with the table of this reference."""
    return MARKED.sub(lambda found: found[1] + table(reference) + found[2], text)


def main() -> None:
    """Run the script."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("results", type=Path, nargs="?")
    results = parser.parse_args().results
    if results is not None:
        collect(results).to_csv(REFERENCE, index=False, lineterminator="\n")
    README.write_text(readme_with(README.read_text(), pd.read_csv(REFERENCE)))


if __name__ == "__main__":
    main()
