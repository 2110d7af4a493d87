"""Tables of README and docs: committed means, and verdicts of the ledger."""

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
# The verdicts as they are counted, from the best on, then those that decide nothing.
_COUNTED = [str(verdict) for verdict in Verdict]
_COUNTED.insert(1, READING)
_DECIDING = _COUNTED[: _COUNTED.index(Verdict.NO_POWER)]


def laid_out(
    header: Iterable[str], rows: Iterable[Iterable[object]], numbers: int = 0
) -> str:
    """Lay out a table as Markdown, its last columns as numbers."""
    header = list(header)
    rule = ["---"] * (len(header) - numbers) + ["---:"] * numbers
    lines = [header, rule]
    for row in rows:
        lines.append([str(cell).replace("|", r"\|") for cell in row])
    return "".join("| " + " | ".join(line) + " |\n" for line in lines)


def means_table(reference: pd.DataFrame) -> str:
    """Lay out prec@0.25: solvers against data sets.

    The best mean is in bold; ≈ marks those not significantly different from it, and ‡
    those of which a limit stopped the training or tuning in any split.
    """
    main = reference[reference["metric"] == METRIC]
    best = main.groupby("dataset")["mean"].max()
    is_best = main["mean"] == main["dataset"].map(best)
    is_near_best = ~is_best & (main["p_best"] > LEVEL)
    text = main["mean"].map("{:.3f}".format) + " ± " + main["std"].map("{:.3f}".format)
    text += np.where(is_near_best, " ≈", "")
    text += np.where(main["stopped"] > 0, " ‡", "")
    text = text.where(~is_best, "**" + text + "**")
    return _by_dataset(main.assign(cell=text))


def unit_norm_table(reference: pd.DataFrame, others: pd.DataFrame) -> str:
    """Lay out the means of prec@0.25, scaled as the cards say and to norm 1."""
    unit = others[others["experiment"] == "kar2015-unit-norm"]
    both = reference.merge(
        unit, on=["dataset", "solver", "metric"], suffixes=("", "_unit")
    )
    main = both[both["metric"] == METRIC]
    text = _means(main, "") + " → " + _means(main, "_unit")
    return _by_dataset(main.assign(cell=text))


def _means(table: pd.DataFrame, suffix: str) -> pd.Series:
    """Return the means of a reference, marked where a limit stopped a split."""
    marks = np.where(table[f"stopped{suffix}"] > 0, " ‡", "")
    return table[f"mean{suffix}"].map("{:.3f}".format) + marks


def _by_dataset(cells: pd.DataFrame) -> str:
    """Lay out the column ``cell``, solvers against data sets."""
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
    deviations = load_deviations()
    readings = {name for name, deviation in deviations.items() if deviation.reading}
    claims = {claim.id: claim for claim in load_claims()}
    n_rows: Counter[str] = Counter()
    verdicts_by_sentence = defaultdict(list)
    for row in ledger:
        claim = claims[row.id]
        group = row.paper + apart(claim)
        n_rows[group] += 1
        sentence = claim.sentence or claim.says or claim.id
        verdicts_by_sentence[group, sentence].append(_counted(row, readings))
    counts: Counter[tuple[str, str]] = Counter()
    for (group, _sentence), verdicts in verdicts_by_sentence.items():
        counts[group, _worst(verdicts)] += 1
    lines = []
    for group in sorted(n_rows):
        numbers = [counts[group, verdict] for verdict in _COUNTED]
        lines.append([group, *numbers, n_rows[group]])
    header = ["paper", *_COUNTED, "rows"]
    return laid_out(header, lines, numbers=len(_COUNTED) + 1)


def _worst(verdicts: Sequence[str]) -> str:
    """Return the last verdict that decides, or the first of those that do not."""
    decisions = [verdict for verdict in verdicts if verdict in _DECIDING]
    if decisions:
        return max(decisions, key=_COUNTED.index)
    return min(verdicts, key=_COUNTED.index)


def apart(claim: Claim) -> str:
    """Return what stands behind the paper of a claim that was not read in it."""
    if claim.secondhand:
        return ", second-hand"
    if claim.ours:
        return ", additional"
    return ""


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
