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
    places = sorted({(row.paper, row.place) for row in ledger}, key=_in_reading_order)
    counts = Counter((row.paper, row.place, row.verdict) for row in ledger)
    rows = [
        [
            paper,
            place,
            *(str(counts[paper, place, verdict] or "") for verdict in Verdict),
        ]
        for paper, place in places
    ]
    total = Counter(row.verdict for row in ledger)
    rows.append(["all", "", *(str(total[verdict] or "") for verdict in Verdict)])
    title = f"Ledger of {len(ledger)} published numbers and claims"
    return text_table(title, ["paper", "place", *Verdict], rows)


def open_table(ledger: Iterable[LedgerRow]) -> Table:
    """Return the claims that were not plainly reproduced, the worst first."""
    verdicts = (
        *(Verdict.NOT_REPRODUCED, Verdict.TREND_ONLY, Verdict.NO_POWER),
        *(Verdict.INCONCLUSIVE, Verdict.WITH_DEVIATION),
    )
    rows = [row for verdict in verdicts for row in ledger if row.verdict is verdict]
    return claims_table(rows, f"Not plainly reproduced: {len(rows)}")


def missing_table(ledger: Iterable[LedgerRow]) -> Table:
    """Return the number of claims that were not measured, by reason."""
    counts = Counter(
        (row.paper, row.verdict, row.reason)
        for row in ledger
        if row.verdict in (Verdict.NO_DATA, Verdict.NO_CONFIG)
    )
    rows = [
        (paper, verdict, why, str(n)) for (paper, verdict, why), n in counts.items()
    ]
    return text_table("Not measured", ["paper", "verdict", "because", "claims"], rows)


def change_table(changes: Iterable[Change]) -> Table:  # of verdicts, since a reference
    rows = [[c.id, c.before, c.after, "worse" if c.worse else ""] for c in changes]
    return text_table(
        "Changed against the reference", ["id", "reference", "now", ""], rows
    )


def claims_table(ledger: Iterable[LedgerRow], title: str) -> Table:
    return text_table(
        title, _HEADER, [[row.id, *_outcome(row)] for row in ledger], _NOTE
    )


def full_table(ledger: Iterable[LedgerRow], title: str) -> Table:
    """Return the table of claims, each with its place in the papers and its kind."""
    rows = [[row.id, *_outcome(row), row.where, row.kind] for row in ledger]
    return text_table(title, [*_HEADER, "where", "kind"], rows)


def ledger_markdown(ledger: Sequence[LedgerRow]) -> str:
    tables = [make(ledger) for make in (counts_table, missing_table, open_table)]
    tables.append(full_table(ledger, "All claims"))
    lines = [line for table in tables for line in markdown_table(table)]
    return "\n".join(["# Published numbers", "", *lines])


def _in_reading_order(place: tuple[str, str]) -> list[str]:
    """Return a sort key.

    "table-10" comes after "table-2", since 0010 comes after 0002.
    """
    return [part.zfill(4) for text in place for part in re.split(r"[-.]", text)]


def _outcome(row: LedgerRow) -> list[str]:
    """Return the cells of a claim after its id, as in `_HEADER`."""
    because = "; ".join(filter(None, (row.deviation, row.reason)))
    return [row.printed, row.measured, row.spread, str(row.runs), row.verdict, because]
