"""Reader of workbooks (XLSX)."""

import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from precbench.core.errors import InputError
from precbench.core.text import count
from precbench.tables.layout import (
    Block,
    Layout,
    as_text,
    check_header,
    columns_to_keep,
    named,
    with_exact_integers,
)
from precbench.tables.problems import listed

# Rows, columns and characters of a cell, as in Excel; characters of all cells
_SHEET_LIMITS = (1_048_576, 16_384, 32_767, 2**28)


def read_workbook(path: Path, layout: Layout, keep: Sequence[str]) -> Iterator[Block]:
    # Yield all rows of a sheet, at most a million, as one block.
    with closing(_open_workbook(path)) as book:
        sheets = book.worksheets  # without those of charts
        if not sheets:  # or all are elsewhere than the workbook says
            raise InputError(
                f"{path}: the workbook names no sheet with rows that can be read; save the file "
                "again with Excel, or save the rows as CSV"
            )
        chosen = [sheet for sheet in sheets if layout.sheet in (None, sheet.title)]
        if len(chosen) != 1:
            fault = f"no sheet {layout.sheet!r}" if layout.sheet else f"{len(sheets)} sheets"
            raise InputError(
                f"{path}: {fault}; name one (sheet) of {listed(sheet.title for sheet in sheets)}"
            )
        lines = _sheet_rows(path, chosen[0], layout.skip_rows)
        # The first row with a value holds the column names; columns count from 1.
        filled_rows = ((n, cells) for n, cells in lines if set(cells.values()) - {None})
        top, titles = next(filled_rows, (0, {}))  # the number of that row, and its names by column
        names = [titles.get(i + 1) for i in range(max(titles, default=0))]
        header = named(["" if name is None else str(name) for name in names])
        check_header(path, header)
        rows = {}  # the values of each row, by the place of the row below the header
        for number, line in lines:  # the other rows, as those up to the names are used up
            filled = {column for column, value in line.items() if value is not None}
            if max(filled, default=0) > len(header):
                raise InputError(
                    f"{path}: row {number} has more values than there are column names; if other "
                    "lines precede the names, skip them (skip_rows)"
                )
            if filled:
                rows[number - top - 1] = [line.get(i + 1) for i in range(len(header))]
    frame = pd.DataFrame([*rows.values()], columns=header, index=[*rows])
    frame = with_exact_integers(frame, partial(_cells_of, [*rows.values()], header))
    places = {name: header.index(name) for name in columns_to_keep(keep, header, path)}
    yield frame, as_text({n: [row[i] for row in rows.values()] for n, i in places.items()})


def _cells_of(
    rows: Sequence[Sequence[Any]], header: Sequence[str], names: list[str]
) -> Mapping[str, Any]:
    """Return columns of a sheet as arrays of the values of cells."""
    places = {name: header.index(name) for name in names}
    return {n: np.array([row[i] for row in rows], dtype=object) for n, i in places.items()}


def _open_workbook(path: Path) -> Any:
    """Open a workbook with openpyxl, which raises a KeyError where a part is missing."""
    from openpyxl import load_workbook

    try:
        return load_workbook(path, read_only=True, data_only=True)
    except KeyError as error:
        raise InputError(
            f"{path}: the file lacks a part that a workbook needs, such as a sheet; save it again "
            "with Excel, or save the rows as CSV"
        ) from error


def _sheet_rows(path: Path, sheet: Any, skipped: int) -> Iterator[tuple[int, dict[int, Any]]]:
    # Yield the number of each row below the first `skipped`, and the values by column, from 1.
    # Refuse a sheet that is too large (see `_SHEET_LIMITS`) or damaged, or that has merged rows.
    # `iter_rows` of openpyxl makes all rows up to a wrong number, and drops cells out of order.
    from openpyxl.worksheet._reader import WorkSheetParser

    book, previous_number, n_characters, n_hidden = sheet.parent, 0, 0, 0
    with sheet._get_source() as source:
        formats = book._date_formats, book._timedelta_formats  # True below: values, not formulas
        parser = WorkSheetParser(source, sheet._shared_strings, True, book.epoch, *formats)
        for number, cells in parser.parse():
            line = {cell["column"]: cell["value"] for cell in cells}
            lengths = [len(value) for value in line.values() if isinstance(value, str)]
            n_characters += sum(lengths)
            # As the limits: number and last column of the row, its longest text, all characters.
            sizes = number, max(line, default=0), max(lengths, default=0), n_characters
            if any(n > most for n, most in zip(sizes, _SHEET_LIMITS, strict=True)):
                raise InputError(
                    "{}: row {:,} exceeds the limits of a sheet, {:,} rows of {:,} cells of {:,} "
                    "characters, {:,} in all; save as CSV".format(path, number, *_SHEET_LIMITS)
                )
            if number <= previous_number or len(line) < len(cells):  # fewer: a column came twice
                has_moved = number <= previous_number
                fault = f"comes after row {previous_number}" if has_moved else "has a cell twice"
                raise InputError(f"{path}: row {number} {fault}; save the file again with Excel")
            previous_number = number
            if number > skipped:
                is_hidden = parser.row_dimensions.get(str(number), {}).get("hidden") == "1"
                n_hidden += is_hidden and any(value is not None for value in line.values())
                yield number, line
    for cells in parser.merged_cells.mergeCell if parser.merged_cells else ():
        if max(cells.min_row, skipped + 1) < cells.max_row:  # more than one row is not skipped
            raise InputError(
                f"{path}: the cells {cells.coord} are merged, so only the first row has "
                "a value; unmerge them, and fill in the other rows"
            )
    if n_hidden:
        hidden = count(n_hidden, "hidden row")
        warnings.warn(f"{path}: {hidden} will be used; delete unwanted rows", stacklevel=7)
