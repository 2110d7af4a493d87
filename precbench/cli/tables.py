"""Tables on a screen of any width."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from rich.box import SIMPLE_HEAD
from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, RenderableType
from rich.table import Table as Grid
from rich.text import Text

from precbench.cli.screen import screen, wrapped
from precbench.report.table import STAND_IN, Cell, Table
from precbench.text import one_line

if TYPE_CHECKING:
    from precbench.advice.length import Length

_SENTENCE = 32  # a longer cell may be broken, at its spaces
_NARROWEST = 20  # of a column with such cells
_GAP = 2


def show_length(length: "Length", *, groups: bool = False, quiet: bool = False) -> None:
    """Print what a list holds by its length, profit and days in words, maybe the gain table."""
    from precbench.advice.length import by_day_lines, gain_table, length_table, profit_text

    console = screen(quiet=quiet)
    for table in (length_table(length), *([gain_table(length)] if groups else [])):
        console.print(OnScreen(table))
    for text in filter(None, (profit_text(length), *by_day_lines(length))):
        console.print(one_line(text))


@dataclass(frozen=True)
class OnScreen:
    """A table as wide as the screen, in which no word is split and nothing is cut.

    Of a wider one, the columns that find no room follow below, with the names of the rows again;
    where cells are sentences, each row is a paragraph. Empty columns are left out. Where bold
    cannot be shown, as in a pipe, an asterisk marks it.
    """

    table: Table

    def __rich_console__(
        self, console: Console, options: ConsoleOptions
    ) -> Iterator[RenderableType]:
        """Render for rich."""
        table, width = self.table, options.max_width
        marks = console.color_system is None
        columns = [
            _Column(one_line(header), [_text(cell, marks) for cell in cells])
            for header, *cells in zip(table.header, *table.rows, strict=True)
        ]
        n_names = _n_names(columns)
        names, others = columns[:n_names], columns[n_names:]
        others = [column for column in others if any(column.cells)]
        yield Text(wrapped(one_line(table.title), width), style="bold")
        if table.stand_in:
            yield Text(STAND_IN, style="bold yellow")
        blocks = _blocks(names, others, width)
        for i, block in enumerate(blocks):
            if i > 0:
                yield Text()
            yield _grid(names, block, width)
        if not blocks:
            yield from _paragraphs(names, others, width)
        notes = [*map(one_line, table.notes)]
        if marks and any(cell.bold for row in table.rows for cell in row):
            notes.append("*: best value (bold in the report).")
        for note in notes:
            yield Text(wrapped(note, width))
        yield Text()


@dataclass(frozen=True)
class _Column:
    header: str
    cells: Sequence[Text]

    @property
    def has_sentences(self) -> bool:
        return any(cell.cell_len > _SENTENCE for cell in self.cells)

    @property
    def least(self) -> int:
        """The width in which no word is split, and no number from its deviation."""
        cells = [cell.plain for cell in self.cells]
        if not self.has_sentences:
            return _widest([*self.header.split(), *cells])
        words = (word for text in (self.header, *cells) for word in text.split())
        return max(_NARROWEST, _widest(words))

    @property
    def most(self) -> int:
        return _widest([self.header, *(cell.plain for cell in self.cells)])


def _n_names(columns: Sequence[_Column]) -> int:
    """Return how many columns it takes to identify each row."""
    for n in range(1, len(columns)):
        names = [
            *zip(*([cell.plain for cell in column.cells] for column in columns[:n]), strict=True)
        ]
        if len({*names}) == len(names):
            return n
    return 1


def _widest(texts: Iterable[str]) -> int:
    return max(map(cell_len, texts), default=0)


def _text(cell: Cell, marks: bool) -> Text:
    text = one_line(cell.text)
    return Text(f"{text} *" if marks else text, style="bold") if cell.bold else Text(text)


def _blocks(names: Sequence[_Column], others: Sequence[_Column], width: int) -> list[list[_Column]]:
    """Divide columns into as many as fit beside the names; none where that cannot be read."""
    beside = width - sum(column.least + _GAP for column in names)
    blocks: list[list[_Column]] = [[]]
    room = beside
    for column in others:
        if blocks[-1] and column.least > room:
            blocks.append([])
            room = beside
        blocks[-1].append(column)
        room -= column.least + _GAP
    has_sentences = any(column.has_sentences for column in others)
    is_too_wide = any(column.least > beside for column in others)
    return [] if is_too_wide or (has_sentences and len(blocks) > 1) else blocks


def _grid(names: Sequence[_Column], others: Sequence[_Column], width: int) -> Grid:
    columns = [*names, *others]
    spare = width - sum(column.least + _GAP for column in columns) + _GAP
    widths = {}
    wishes = sorted((column.most - column.least, i) for i, column in enumerate(columns))
    for n_before, (wish, i) in enumerate(wishes):
        more = min(wish, max(0, spare) // (len(columns) - n_before))
        widths[i] = columns[i].least + more
        spare -= more
    grid = Grid(box=SIMPLE_HEAD, show_edge=False, pad_edge=False, padding=(0, 0, 0, _GAP - 1))
    for i, column in enumerate(columns):
        to_the_left = i < len(names) or column.has_sentences
        grid.add_column(
            Text(column.header), width=widths[i], justify="left" if to_the_left else "right"
        )
    for row in zip(*(column.cells for column in columns), strict=True):
        if any(row[len(names) :]) or not others:
            grid.add_row(*row)
    return grid


def _paragraphs(names: Sequence[_Column], others: Sequence[_Column], width: int) -> Iterator[Text]:
    for i in range(len(names[0].cells)):
        yield Text(" ".join(column.cells[i].plain for column in names))
        told = [f"{column.header}: {column.cells[i]}" for column in others if column.cells[i]]
        yield Text(wrapped(f"    {'; '.join(told)}", width, indent="    "))
