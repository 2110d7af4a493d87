"""Tables of the ledger of published numbers."""

import re
from collections import Counter
from collections.abc import Iterable, Sequence

from precbench.claims.ledger import Change, LedgerRow
from precbench.claims.verdicts import Verdict
from precbench.report.summary_tables import markdown_table
from precbench.report.table import Table, text_table

_NOTE = (
    "Here: the median of our repetitions, if there are several; spread: their"
    " quartiles."
)
_HEADER = ["id", "printed", "here", "spread", "runs", "verdict", "because"]


def counts_table(ledger: Sequence[LedgerRow]) -> Table:
    """Return the numbers of claims by verdict and place, and of all places."""
    verdicts_at: dict[tuple[str, str], list[Verdict]] = {}  # by paper and place
    for row in ledger:
        verdicts_at.setdefault((row.paper, row.place), []).append(row.verdict)
    rows = []
    for paper, place in sorted(verdicts_at, key=_in_reading_order):
        rows.append([paper, place, *_counts(verdicts_at[paper, place])])
    rows.append(["all", "", *_counts(row.verdict for row in ledger)])
    title = f"Ledger of {len(ledger)} published numbers and claims"
    return text_table(title, ["paper", "place", *Verdict], rows)


def _counts(verdicts: Iterable[Verdict]) -> list[str]:
    """Return how many verdicts there are of each kind, "" for none."""
    counts = Counter(verdicts)
    return [str(counts[verdict] or "") for verdict in Verdict]


def open_table(ledger: Iterable[LedgerRow]) -> Table:
    """Return the claims that were not plainly reproduced, the worst first."""
    verdicts = (
        Verdict.NOT_REPRODUCED,
        Verdict.TREND_ONLY,
        Verdict.NO_POWER,
        Verdict.INCONCLUSIVE,
        Verdict.WITH_DEVIATION,
    )
    rows = [row for verdict in verdicts for row in ledger if row.verdict is verdict]
    return claims_table(rows, f"Not plainly reproduced: {len(rows)}")


def missing_table(ledger: Iterable[LedgerRow]) -> Table:
    """Return the number of claims that were not measured, by reason."""
    missing = (Verdict.NO_DATA, Verdict.NO_CONFIG)
    counts = Counter(
        (row.paper, row.verdict, row.reason) for row in ledger if row.verdict in missing
    )
    rows = [
        [paper, verdict, reason, str(n)]
        for (paper, verdict, reason), n in counts.items()
    ]
    return text_table("Not measured", ["paper", "verdict", "because", "claims"], rows)


def change_table(changes: Iterable[Change]) -> Table:
    """Return the verdicts that have changed since the reference."""
    rows = [
        [change.id, change.before, change.after, "worse" if change.worse else ""]
        for change in changes
    ]
    header = ["id", "reference", "now", ""]
    return text_table("Changed against the reference", header, rows)


def claims_table(ledger: Iterable[LedgerRow], title: str) -> Table:
    rows = [[row.id, *_outcome(row)] for row in ledger]
    return text_table(title, _HEADER, rows, _NOTE)


def full_table(ledger: Iterable[LedgerRow], title: str) -> Table:
    """Return the table of claims, each with its place in the papers and its kind."""
    rows = [[row.id, *_outcome(row), row.where, row.kind] for row in ledger]
    return text_table(title, [*_HEADER, "where", "kind"], rows)


def ledger_markdown(ledger: Sequence[LedgerRow]) -> str:
    lines = [
        "# Published numbers",
        "",
        *markdown_table(counts_table(ledger)),
        *markdown_table(missing_table(ledger)),
        *markdown_table(open_table(ledger)),
        *markdown_table(full_table(ledger, "All claims")),
    ]
    return "\n".join(lines)


def _in_reading_order(paper_and_place: tuple[str, str]) -> list[str]:
    """Return a key that sorts "table-10" after "table-2", as 0010 after 0002."""
    words = []
    for text in paper_and_place:
        words += re.split(r"[-.]", text)
    return [word.zfill(4) for word in words]


def _outcome(row: LedgerRow) -> list[str]:
    """Return the cells of a claim after its id, as in `_HEADER`."""
    because = "; ".join(filter(None, (row.deviation, row.reason)))
    return [row.printed, row.measured, row.spread, str(row.runs), row.verdict, because]
