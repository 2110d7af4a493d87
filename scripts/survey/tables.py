"""Tables of README and docs.

Means of the committed reference, and verdicts of its ledger.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence

import numpy as np
import pandas as pd

from precbench.claims import Claim, load_claims, load_deviations
from precbench.claims.ledger import LedgerRow
from precbench.claims.verdicts import Verdict
from precbench.ranking.statistics import LEVEL

READING = "reproduced under a reading"
METRIC = "precision_at_k(k=0.25)"


def laid_out(
    header: Iterable[str], rows: Iterable[Iterable[object]], numbers: int = 0
) -> str:
    """Lay out a table as Markdown, its last columns as numbers."""
    header = list(header)
    rule = ["---"] * (len(header) - numbers) + ["---:"] * numbers
    cells = [
        header,
        rule,
        *([str(cell).replace("|", r"\|") for cell in row] for row in rows),
    ]
    return "".join("| " + " | ".join(row) + " |\n" for row in cells)


def means_table(reference: pd.DataFrame) -> str:
    """Lay out prec@0.25: solvers against data sets.

    The best mean is in bold; those not significantly different from it are marked, and
    so are those of which a limit stopped the training or tuning in any split.
    """
    main = reference[reference["metric"] == METRIC]
    best = main.groupby("dataset")["mean"].max()
    text = main["mean"].map("{:.3f}".format) + " ± " + main["std"].map("{:.3f}".format)
    bold = main["mean"] == main["dataset"].map(best)
    text += np.where(~bold & (main["p_best"] > LEVEL), " ≈", "")
    text += np.where(main["stopped"] > 0, " ‡", "")
    return _of_datasets(main.assign(cell=text.where(~bold, "**" + text + "**")))


def unit_norm_table(reference: pd.DataFrame, others: pd.DataFrame) -> str:
    """Lay out the means of prec@0.25, scaled as the cards say and to norm 1."""
    unit = others[others["experiment"] == "kar2015-unit-norm"]
    both = reference.merge(
        unit, on=["dataset", "solver", "metric"], suffixes=("", "_unit")
    )
    main = both[both["metric"] == METRIC]
    text = _means(main, "") + " → " + _means(main, "_unit")
    return _of_datasets(main.assign(cell=text))


def _means(table: pd.DataFrame, suffix: str) -> pd.Series:
    """Return the means of a reference, marked where a limit stopped a split."""
    marks = np.where(table[f"stopped{suffix}"] > 0, " ‡", "")
    return table[f"mean{suffix}"].map("{:.3f}".format) + marks


def _of_datasets(cells: pd.DataFrame) -> str:
    datasets = list(cells["dataset"].unique())
    wide = cells.pivot(index="solver", columns="dataset", values="cell")
    wide = wide[datasets].fillna("–")
    rows = [[solver, *wide.loc[solver]] for solver in cells["solver"].unique()]
    return laid_out(["solver", *datasets], rows, numbers=len(datasets))


def ledger_table(ledger: Sequence[LedgerRow]) -> str:
    """Count the verdicts of each paper; additional and second-hand claims apart.

    A sentence counts once, however many rows it takes, by the worst of its decisions.
    What was reproduced under readings of the text alone, where it allows several, is no
    departure and counts apart.
    """
    readings = {name for name, about in load_deviations().items() if about.reading}
    claims = {claim.id: claim for claim in load_claims()}
    given = defaultdict(list)
    for row in ledger:
        claim = claims[row.id]
        sentence = claim.sentence or claim.says or claim.id
        given[row.paper + apart(claim), sentence].append(_counted(row, readings))
    verdicts = [str(verdict) for verdict in Verdict]
    verdicts.insert(1, READING)
    decided = verdicts[: verdicts.index(Verdict.NO_POWER)]

    def worst(of_rows: list[str]) -> str:
        """Return the last verdict that decides, or the first of those that do not."""
        decisions = [verdict for verdict in of_rows if verdict in decided]
        if decisions:
            return max(decisions, key=verdicts.index)
        return min(of_rows, key=verdicts.index)

    counts = Counter((group, worst(of_rows)) for (group, _), of_rows in given.items())
    rows = Counter(row.paper + apart(claims[row.id]) for row in ledger)
    cells = [
        [group, *(counts[group, verdict] for verdict in verdicts), rows[group]]
        for group in sorted(rows)
    ]
    return laid_out(["paper", *verdicts, "rows"], cells, numbers=len(verdicts) + 1)


def apart(claim: Claim) -> str:
    """Return what stands behind the paper of a claim that was not read in it."""
    return ", second-hand" if claim.secondhand else ", additional" if claim.ours else ""


def _counted(row: LedgerRow, readings: set[str]) -> str:
    """Return the verdict, or that it was reproduced under readings alone."""
    departures = set(row.deviation.split()) - readings
    if row.verdict is Verdict.WITH_DEVIATION and not departures:
        return READING
    return str(row.verdict)


def optima_table(fits: pd.DataFrame, problems: Sequence[str]) -> str:
    """Lay out what the cutting plane finds, as `cutting_plane_minima` measures it."""
    header = [
        "data",
        "problem",
        "C",
        "minimum",
        "bound",
        "norm, best w",
        "norm, last w",
        "test: w = 0",
        "best w",
        "last w",
    ]
    rows = []
    for fit in fits[fits["problem"].isin(problems)].to_dict("records"):
        not_converged = "" if fit["converged"] else " ‡"
        rows.append(
            [
                fit["dataset"],
                fit["problem"],
                f"{fit['C']:g}",
                f"{fit['minimum']:.4f}{not_converged}",
                f"{fit['bound']:.4f}",
                _norm(fit["norm of the best w"]),
                _norm(fit["norm of the last w"]),
                f"{fit['measure of w = 0']:.3f}",
                f"{fit['measure of the best w']:.3f}",
                f"{fit['measure of the last w']:.3f}",
            ]
        )
    return laid_out(header, rows, numbers=8)


def _norm(norm: float) -> str:
    return "0" if norm == 0 else f"{norm:.3g}"
