"""What the XML of a sheet says beyond values, and whether the sheet is too large.

calamine makes a whole sheet at once, of an error such as #N/A an empty cell, and of
every number a float; it does not tell which rows are hidden. So the XML is looked
through beforehand.
"""

import re
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
_LONG_INTEGER = re.compile(r"-?\d{16,400}")
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
        if tag == "si":
            self.lengths.append(0)
        self._is_in_text = tag == "t"

    def _end(self, name: str) -> None:
        self._is_in_text = False

    def _characters(self, text: str) -> None:
        if self._is_in_text:
            self.lengths[-1] += len(text)


class SheetScan:
    """Looks through the XML of a sheet, and refuses what is too large or damaged.

    Rows and columns count from 1. Rows that are skipped may be hidden.

    Parameters
    ----------
    path : pathlib.Path
        The workbook, as messages name it.
    limits : SheetLimits
    n_skipped : int
        Rows above the column names.
    string_lengths : list of int
        Characters of each shared text.
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
        self.n_hidden = 0  # rows with a value
        self.merged: list[str] = []  # ranges such as A2:A3
        # Errors such as #N/A, and integers that are no floats, by row and column
        self.exact_values: dict[tuple[int, int], str | int] = {}
        self._string_lengths = string_lengths
        self._n_characters = 0
        self._n_filled = 0  # cells
        self._last_row = 0  # with a value
        self._last_column = 0
        self._row = 0
        self._row_digits = "0"
        self._row_is_hidden = False
        self._row_has_value = False
        self._columns_of_row: set[int] = set()
        self._column = 0
        self._cell_type = "n"
        self._text = ""
        self._is_in_value = False
        self._parser = _xml_parser(path)
        self._parser.StartElementHandler = self._start
        self._parser.CharacterDataHandler = self._characters

    def feed(self, chunk: bytes) -> None:
        self._parser.Parse(chunk)

    def close(self) -> None:
        self._parser.Parse(b"", True)
        self._end_row()
        n_cells = self._last_row * self._last_column
        if n_cells > _MOST_EMPTY + _SPARSE * self._n_filled:
            raise InputError(
                f"{self.path}: most of {self._last_row:,} rows and "
                f"{self._last_column:,} columns are empty; delete what stands far from "
                "the table, or save the rows as CSV"
            )

    def _start(self, name: str, attributes: dict[str, str]) -> None:
        tag = _without_prefix(name)
        self._is_in_value = tag in ("v", "t")
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
            self._text += text
            if len(self._text) > self.limits.cell_characters:
                self._check_sizes(len(self._text))

    def _begin_row(self, attributes: dict[str, str]) -> None:
        previous = self._row
        self._row = int(attributes.get("r", previous + 1))
        self._check_sizes()
        if self._row <= previous:
            raise self._damaged(f"comes after row {previous}")
        self._row_digits = str(self._row)
        self._row_is_hidden = attributes.get("hidden") in ("1", "true")

    def _end_row(self) -> None:
        self._end_cell()
        if self._row_is_hidden and self._row_has_value and self._row > self.n_skipped:
            self.n_hidden += 1
        self._row_has_value = False
        self._columns_of_row = set()
        self._column = 0

    def _begin_cell(self, attributes: dict[str, str]) -> None:
        reference = attributes.get("r")  # such as B9
        if reference is None:
            self._column += 1
        else:
            letters = reference.rstrip("0123456789")
            if reference != letters + self._row_digits:
                raise self._damaged(f"has a cell of another row, {reference}")
            self._column = _column_number(letters)
        self._check_sizes()
        if self._column in self._columns_of_row:
            raise self._damaged("has a cell twice")
        self._columns_of_row.add(self._column)
        self._cell_type = attributes.get("t", "n")

    def _end_cell(self) -> None:
        """Count the characters of the cell, and keep what calamine would lose."""
        text = self._text
        if not text:
            return
        self._text = ""
        self._row_has_value = True
        self._n_filled += 1
        self._last_row = self._row
        self._last_column = max(self._last_column, self._column)
        place = (self._row, self._column)
        if self._cell_type == "n":
            if len(text) > _EXACT_DIGITS and _LONG_INTEGER.fullmatch(text.strip()):
                self.exact_values[place] = int(text)
            return
        if self._cell_type == "e":
            self.exact_values[place] = text.strip()
        length = len(text)
        if self._cell_type == "s":
            length = self._string_lengths[int(text)]
        self._n_characters += length
        self._check_sizes(length)

    def _check_sizes(self, n_cell_characters: int = 0) -> None:
        limits = self.limits
        if (
            self._row > limits.rows
            or self._column > limits.columns
            or n_cell_characters > limits.cell_characters
            or self._n_characters > limits.characters
        ):
            raise InputError(
                f"{self.path}: row {self._row:,} exceeds the limits of a sheet, "
                f"{limits.rows:,} rows of {limits.columns:,} cells of "
                f"{limits.cell_characters:,} characters, {limits.characters:,} in all; "
                "save as CSV"
            )

    def _damaged(self, fault: str) -> InputError:
        place = f"{self.path}: row {self._row}"
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
