"""What the XML of a sheet says beyond values, and whether the sheet is too large.

calamine makes all cells of a sheet at once, however many there are. An error such as
#N/A becomes an empty cell, every number a float, and which rows are hidden is lost. So
the XML is looked through beforehand.
"""

import re
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple
from xml.parsers import expat

from precbench.core.errors import InputError


class SheetLimits(NamedTuple):
    """The size of the largest sheet that is read."""

    rows: int = 1_048_576  # this and the next two are Excel's
    columns: int = 16_384
    cell_characters: int = 32_767
    characters: int = 2**28  # of all cells


_EXACT_DIGITS = 15  # integers of so many digits are exact as floats
_LONG_INTEGER = re.compile(rf"-?\d{{{_EXACT_DIGITS + 1},400}}")
# calamine makes an object of each cell up to the last row and column with a value.
# There may be `_MOST_EMPTY` of them, and `_SPARSE` times as many as cells with a value.
_MOST_EMPTY = 2**22
_SPARSE = 8


class StringScan:
    """Counts the characters of each text that the cells of a workbook share."""

    def __init__(self, path: Path) -> None:
        self.lengths: list[int] = []
        self._is_in_text = False
        self._parser = _xml_parser(path)
        self._parser.StartElementHandler = self._start
        self._parser.EndElementHandler = self._end
        self._parser.CharacterDataHandler = self._characters

    def feed(self, chunk: bytes) -> None:
        self._parser.Parse(chunk)

    def close(self) -> None:
        self._parser.Parse(b"", True)

    def _start(self, name: str, attributes: dict[str, str]) -> None:
        tag = _without_prefix(name)
        if tag == "si":  # a shared text, of parts in <t>
            self.lengths.append(0)
        self._is_in_text = tag == "t"

    def _end(self, name: str) -> None:
        self._is_in_text = False

    def _characters(self, text: str) -> None:
        if self._is_in_text:
            self.lengths[-1] += len(text)


@dataclass(slots=True)
class _Row:
    """A row of the sheet, as far as it has been looked through."""

    number: int
    digits: str  # of the number, with which references of cells end
    is_hidden: bool = False
    has_value: bool = False
    last_column: int = 0  # of the last cell so far
    columns: set[int] = field(default_factory=set)  # of all cells so far


@dataclass(slots=True)
class _Cell:
    """A cell of the row, as far as it has been looked through."""

    column: int = 0
    kind: str = "n"  # n is a number, e an error, s the place of a shared text
    text: str = ""


class SheetScan:
    """Looks through the XML of a sheet, and refuses what is too large or damaged.

    Rows and columns count from 1.

    Parameters
    ----------
    path : pathlib.Path
        The workbook, as messages name it.
    limits : SheetLimits
    n_skipped : int
        Rows above the column names.
    string_lengths : list of int
        Characters of each shared text.

    Attributes
    ----------
    n_hidden : int
        Hidden rows with a value, those that are skipped aside.
    merged : list of str
        Ranges of merged cells, such as A2:A3.
    exact_values : dict
        Errors such as #N/A, and integers that are no floats, by row and column.
    """

    def __init__(
        self,
        path: Path,
        limits: SheetLimits,
        n_skipped: int,
        string_lengths: list[int],
    ) -> None:
        self.path = path
        self.limits = limits
        self.n_skipped = n_skipped
        self.n_hidden = 0
        self.merged: list[str] = []
        self.exact_values: dict[tuple[int, int], str | int] = {}
        self._string_lengths = string_lengths
        self._n_characters = 0  # of all cells so far, numbers aside
        self._n_filled = 0  # cells with a value
        self._last_filled_row = 0
        self._last_filled_column = 0
        self._row = _Row(0, digits="0")
        self._cell = _Cell()
        self._is_in_value = False
        self._parser = _xml_parser(path)
        self._parser.StartElementHandler = self._start
        self._parser.CharacterDataHandler = self._characters

    def feed(self, chunk: bytes) -> None:
        self._parser.Parse(chunk)

    def close(self) -> None:
        """End the last row, and refuse a sheet that is mostly empty."""
        self._parser.Parse(b"", True)
        self._end_row()
        n_cells = self._last_filled_row * self._last_filled_column
        if n_cells > _MOST_EMPTY + _SPARSE * self._n_filled:
            raise InputError(
                f"{self.path}: most of {self._last_filled_row:,} rows and "
                f"{self._last_filled_column:,} columns are empty; delete what stands "
                "far from the table, or save the rows as CSV"
            )

    def _start(self, name: str, attributes: dict[str, str]) -> None:
        tag = _without_prefix(name)
        self._is_in_value = tag in ("v", "t")  # a value, or text in the cell itself
        if tag == "c":
            self._end_cell()
            self._begin_cell(attributes)
        elif tag == "row":
            self._end_row()
            self._begin_row(attributes)
        elif tag == "mergeCell":
            self.merged.append(attributes.get("ref", ""))

    def _characters(self, text: str) -> None:
        if self._is_in_value:
            cell = self._cell
            cell.text += text
            if len(cell.text) > self.limits.cell_characters:
                raise self._too_large()

    def _begin_row(self, attributes: dict[str, str]) -> None:
        previous = self._row.number
        number = int(attributes.get("r", previous + 1))
        is_hidden = attributes.get("hidden") in ("1", "true")
        self._row = _Row(number, digits=str(number), is_hidden=is_hidden)
        if number > self.limits.rows:
            raise self._too_large()
        if number <= previous:
            raise self._damaged(f"comes after row {previous}")

    def _end_row(self) -> None:
        self._end_cell()
        self._cell = _Cell()
        row = self._row
        if row.is_hidden and row.has_value and row.number > self.n_skipped:
            self.n_hidden += 1

    def _begin_cell(self, attributes: dict[str, str]) -> None:
        row = self._row
        column = row.last_column + 1
        reference = attributes.get("r")  # such as B9
        if reference is not None:
            letters = reference.rstrip("0123456789")
            if reference != letters + row.digits:
                raise self._damaged(f"has a cell of another row, {reference}")
            column = _column_number(letters)
        if column > self.limits.columns:
            raise self._too_large()
        if column in row.columns:
            raise self._damaged("has a cell twice")
        row.last_column = column
        row.columns.add(column)
        self._cell = _Cell(column, kind=attributes.get("t", "n"))

    def _end_cell(self) -> None:
        """Count the characters of the cell, and keep what calamine would lose."""
        cell = self._cell
        if not cell.text:
            return
        self._row.has_value = True
        self._n_filled += 1
        self._last_filled_row = self._row.number
        self._last_filled_column = max(self._last_filled_column, cell.column)
        place = (self._row.number, cell.column)
        if cell.kind == "n":
            text = cell.text.strip()
            if len(text) > _EXACT_DIGITS and _LONG_INTEGER.fullmatch(text):
                self.exact_values[place] = int(text)
            return
        if cell.kind == "e":
            self.exact_values[place] = cell.text.strip()
        n_characters = len(cell.text)
        if cell.kind == "s":
            n_characters = self._string_lengths[int(cell.text)]
        self._n_characters += n_characters
        if n_characters > self.limits.cell_characters:
            raise self._too_large()
        if self._n_characters > self.limits.characters:
            raise self._too_large()

    def _too_large(self) -> InputError:
        limits = self.limits
        return InputError(
            f"{self.path}: row {self._row.number:,} exceeds the limits of a sheet, "
            f"{limits.rows:,} rows of {limits.columns:,} cells of "
            f"{limits.cell_characters:,} characters, {limits.characters:,} in all; "
            "save as CSV"
        )

    def _damaged(self, fault: str) -> InputError:
        place = f"{self.path}: row {self._row.number}"
        return InputError(f"{place} {fault}; save the file again with Excel")


def _xml_parser(path: Path) -> expat.XMLParserType:
    """Return a parser that refuses definitions of entities, which may grow."""

    def refuse_doctype(*_: object) -> None:
        raise InputError(
            f"{path}: a part of the workbook has a document type, which none needs; "
            "save the file again with Excel"
        )

    parser = expat.ParserCreate()
    parser.buffer_text = True
    parser.StartDoctypeDeclHandler = refuse_doctype
    return parser


def _without_prefix(name: str) -> str:
    return name.rpartition(":")[2]


@lru_cache(maxsize=2**15)
def _column_number(letters: str) -> int:
    """Return 1 for A, 26 for Z, 27 for AA."""
    number = 0
    for letter in letters[:8]:  # so many are beyond any sheet already
        number = 26 * number + ord(letter.upper()) - ord("A") + 1
    return number
