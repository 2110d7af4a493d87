"""Tables of the pages."""

from collections.abc import Iterable


def laid_out(header: Iterable[str], rows: Iterable[Iterable[object]], numbers: int = 0) -> str:
    """Lay out a table as Markdown, its last columns as numbers."""
    header = list(header)
    rule = ["---"] * (len(header) - numbers) + ["---:"] * numbers
    cells = [header, rule, *([str(cell).replace("|", r"\|") for cell in row] for row in rows)]
    return "".join("| " + " | ".join(row) + " |\n" for row in cells)
