"""Tables on a screen of any width."""

from textwrap import fill
from typing import TYPE_CHECKING, Any

from rich.box import SIMPLE_HEAD
from rich.cells import cell_len
from rich.console import Console
from rich.table import Table as Grid
from rich.text import Text

from precbench.cli.screen import screen
from precbench.core.text import one_line
from precbench.report.table import Cell, Table

if TYPE_CHECKING:
    from precbench.advice.length import Length

_SENTENCE = 32  # a longer cell may be broken, at its spaces
_NARROWEST = 20  # of a column with longer cells
_GAP = 2  # blanks between columns


def show_length(length: "Length", *, quiet: bool = False) -> None:
    """Print hits and profit by length of a list, and which length is best."""
    from precbench.advice.length import length_table, profit_text

    console = screen(quiet=quiet)
    print_table(length_table(length), console)
    if length.profit:
        console.print(one_line(profit_text(length)))


def print_table(table: Table, console: Console | None = None) -> None:
    """Print a table as wide as the screen, without empty columns.

    Columns that find no room follow below, with the names of the rows again. Where bold
    cannot be shown, as in a pipe, an asterisk marks bold text.
    """
    console = console or screen()
    asterisks = console.color_system is None  # whether an asterisk stands for bold
    columns = [
        _Column(one_line(header), [_text(cell, asterisks) for cell in cells])
        for header, *cells in zip(table.header, *table.rows, strict=True)
    ]
    n_names = _n_names(table)
    names = columns[:n_names]
    others = [column for column in columns[n_names:] if any(column.cells)]
    console.print(one_line(table.title), style="bold", soft_wrap=False)
    if table.warning:
        console.print(one_line(table.warning), style="bold yellow", soft_wrap=False)
    for i, block in enumerate(_blocks(names, others, console.width)):
        if i > 0:
            console.print()
        console.print(_grid(names, block, console.width), soft_wrap=False, crop=False)
    notes = [one_line(note) for note in table.notes]
    if asterisks and any(cell.bold for row in table.rows for cell in row):
        notes.append(f"*: {table.best}.")
    console.print(*notes, "", sep="\n", soft_wrap=False)


class _Column:
    """A column of texts, and the least width that splits no word or number."""

    def __init__(self, header: str, cells: list[Text]):
        self.cells = cells
        self.has_sentences = any(cell.cell_len > _SENTENCE for cell in cells)
        # A header may be broken between words; in a column with a long cell, so may all
        # cells.
        widths = [1, *map(cell_len, header.split())]
        for cell in cells:
            if self.has_sentences:
                widths += map(cell_len, cell.plain.split())
            else:
                widths.append(cell.cell_len)
        if self.has_sentences:
            widths.append(_NARROWEST)
        self.least = max(widths)
        self.header = fill(header, self.least, break_on_hyphens=False)


def _n_names(table: Table) -> int:
    """Return the least n such that the first n columns tell all rows apart, else 1."""
    for n in range(1, len(table.header)):  # the last column is not a name
        names = {tuple(cell.text for cell in row[:n]) for row in table.rows}
        if len(names) == len(table.rows):
            return n
    return 1


def _text(cell: Cell, asterisks: bool) -> Text:
    """Return the text of a cell; bold text has an asterisk if `asterisks`."""
    text = one_line(cell.text)
    if not cell.bold:
        return Text(text)
    return Text(f"{text} *" if asterisks else text, style="bold")


def _blocks(
    names: list[_Column], others: list[_Column], width: int
) -> list[list[_Column]]:
    """Divide the columns `others` into blocks that fit beside `names`."""
    names_width = sum(column.least + _GAP for column in names)
    block_width = width - names_width - 1  # the last place of a line stays free
    blocks: list[list[_Column]] = [[]]
    room = block_width
    for column in others:
        if blocks[-1] and column.least > room:
            blocks.append([])
            room = block_width
        blocks[-1].append(column)
        room -= column.least + _GAP
    return blocks


def _grid(names: list[_Column], others: list[_Column], width: int) -> Grid:
    """Lay out the names and a block, without rows that are empty in the block."""
    columns = [*names, *others]
    # No gap follows the last column, but one place that stays free.
    least = sum(column.least + _GAP for column in columns) - _GAP + 1
    grid = Grid(
        box=SIMPLE_HEAD,
        show_edge=False,
        pad_edge=False,
        # Top, right, bottom, left; the box adds one blank between columns.
        padding=(0, 0, 0, _GAP - 1),
        # Wider than the screen where words would break; None fits the content.
        width=least if least > width else None,
    )
    for i, column in enumerate(columns):
        is_name = i < len(names)
        justify: Any = "left" if is_name or column.has_sentences else "right"
        grid.add_column(
            Text(column.header),
            min_width=column.least,
            justify=justify,
            no_wrap=not column.has_sentences,
        )
    for row in zip(*(column.cells for column in columns), strict=True):
        has_entry = any(row[len(names) :])
        if has_entry or not others:
            grid.add_row(*row)
    return grid
