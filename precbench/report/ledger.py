"""Tables of the ledger of published numbers."""

import re
from collections import Counter
from collections.abc import Iterable, Sequence

from precbench.claims.ledger import Change, LedgerRow
from precbench.claims.verdicts import Verdict
from precbench.report.table import Table, text_table
from precbench.report.tables import markdown_table

_NOTE = "Here: the median of our repetitions, if there are several; spread: their quartiles."


def counts_table(ledger: Sequence[LedgerRow]) -> Table:
    places = sorted({(row.paper, row.place) for row in ledger}, key=_in_reading_order)
    counts = Counter((row.paper, row.place, row.verdict) for row in ledger)
    rows = [
        [paper, place, *(_count(counts[paper, place, verdict]) for verdict in Verdict)]
        for paper, place in places
    ]
    total = Counter(row.verdict for row in ledger)
    rows.append(["all", "", *(_count(total[verdict]) for verdict in Verdict)])
    title = f"Ledger of {len(ledger)} published numbers and claims"
    return text_table(title, ["paper", "place", *Verdict], rows)


def open_tables(ledger: Sequence[LedgerRow]) -> list[Table]:
    """Return the measured claims not plainly reproduced, by verdict, the worst last."""
    verdicts = (
        *(Verdict.WITH_DEVIATION, Verdict.INCONCLUSIVE, Verdict.NO_POWER),
        *(Verdict.TREND_ONLY, Verdict.NOT_REPRODUCED),
    )
    tables: list[Table] = []
    for verdict in verdicts:
        rows = [
            [row.id, row.printed, row.measured, row.spread, _because(row)]
            for row in ledger
            if row.verdict is verdict
        ]
        if rows:
            header = ["id", "printed", "here", "spread", "because"]
            title = f"{verdict.capitalize()}: {len(rows)}"
            tables.append(text_table(title, header, rows, *([] if tables else [_NOTE])))
    return tables


def missing_table(ledger: Iterable[LedgerRow]) -> Table:
    """Return the number of claims that were not measured, by reason."""
    missing = (Verdict.NO_DATA, Verdict.NO_CONFIG)
    counts = Counter(
        (row.paper, row.verdict, row.reason) for row in ledger if row.verdict in missing
    )
    rows = [(*case, str(n)) for case, n in counts.items()]
    return text_table("Not measured", ["paper", "verdict", "because", "claims"], rows)


def change_table(changes: Iterable[Change]) -> Table:
    rows = [
        [change.id, change.before, change.after, "worse" if change.worse else ""]
        for change in changes
    ]
    return text_table("Changed against the reference", ["id", "reference", "now", ""], rows)


def claims_table(ledger: Iterable[LedgerRow], title: str) -> Table:
    rows = [(row.id, *_outcome(row)) for row in ledger]
    return text_table(title, ["id", "printed", "here", "runs", "verdict", "because"], rows)


def full_table(ledger: Iterable[LedgerRow], title: str) -> Table:
    """Return the claims with their places in the papers and the spread of our repetitions."""
    header = ["id", "where", "kind", "printed", "here", "runs", "verdict", "because", "spread"]
    rows = [(row.id, row.where, row.kind, *_outcome(row), row.spread) for row in ledger]
    return text_table(title, header, rows)


def ledger_markdown(ledger: Sequence[LedgerRow]) -> str:
    tables = (
        *(counts_table(ledger), missing_table(ledger)),
        *(*reversed(open_tables(ledger)), full_table(ledger, "All claims")),
    )
    lines = [line for table in tables for line in markdown_table(table)]
    return "\n".join(["# Published numbers", "", *lines])


def _in_reading_order(place: tuple[str, str]) -> list[str]:
    """Sort ``table-10`` after ``table-2``."""
    return [part.zfill(4) for text in place for part in re.split(r"[-.]", text)]


def _count(n: int) -> str:
    return str(n) if n else ""


def _outcome(row: LedgerRow) -> list[str]:
    return [row.printed, row.measured, str(row.runs), row.verdict, _because(row)]


def _because(row: LedgerRow) -> str:
    return "; ".join(text for text in (row.deviation, row.reason) if text)
