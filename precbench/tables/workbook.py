"""Reader of workbooks (XLSX).

python-calamine makes the values of the cells. It is given a copy of the workbook with
the one sheet that is read, whose XML has been looked through by `SheetScan`.
"""

import posixpath
import re
import tempfile
import warnings
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from functools import partial
from pathlib import Path
from typing import Any, Literal, NamedTuple
from xml.etree import ElementTree

import numpy as np
import pandas as pd
from numpy.typing import NDArray

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
from precbench.tables.sheet_scan import SheetLimits, SheetScan, StringScan

_LIMITS = SheetLimits()
_MOST_BYTES = 2**31 - 1  # of an unpacked sheet, or of all shared texts
_MOST_BYTES_OF_INDEX = 2**24  # of a part that names others
_CHUNK_BYTES = 2**20

# Where calamine looks for the parts, and what names them
_SHEET_PART = "xl/worksheets/sheet1.xml"
_STRINGS_PART = "xl/sharedStrings.xml"
_STYLES_PART = "xl/styles.xml"
_NAMESPACE = "http://schemas.openxmlformats.org"
_TYPE = f"{_NAMESPACE}/officeDocument/2006/relationships"
_INDEX = f"""<Relationships xmlns="{_NAMESPACE}/package/2006/relationships">
<Relationship Id="workbook" Target="xl/workbook.xml" Type="{_TYPE}/officeDocument"/>
</Relationships>"""
_INDEX_OF_PARTS = f"""<Relationships xmlns="{_NAMESPACE}/package/2006/relationships">
<Relationship Id="sheet" Target="worksheets/sheet1.xml" Type="{_TYPE}/worksheet"/>
<Relationship Id="strings" Target="sharedStrings.xml" Type="{_TYPE}/sharedStrings"/>
<Relationship Id="styles" Target="styles.xml" Type="{_TYPE}/styles"/>
</Relationships>"""
_WORKBOOK = f"""<workbook
xmlns="{_NAMESPACE}/spreadsheetml/2006/main" xmlns:r="{_TYPE}">
<workbookPr date1904="{{date1904}}"/>
<sheets><sheet name="sheet" sheetId="1" r:id="sheet"/></sheets>
</workbook>"""


class _Part(NamedTuple):
    """A part of a workbook that another part names."""

    kind: str  # such as worksheet
    name: str  # in the archive


@dataclass(frozen=True)
class _Contents:
    """The parts of a workbook that are read."""

    sheets: dict[str, str]  # the part of each sheet with rows, by its title
    strings: str | None
    styles: str | None
    date1904: Literal["0", "1"]  # "1" if days count from 1904, not from 1900


def read_workbook(path: Path, layout: Layout, keep: Sequence[str]) -> Iterator[Block]:
    """Yield all rows of a sheet, at most a million, as one block."""
    lines = _sheet_lines(path, layout)
    n_above = _count_lines_above_names(lines, layout.skip_rows)
    titles = [] if n_above == len(lines) else _without_empty_end(lines[n_above])
    header = named(["" if title is None else str(title) for title in titles])
    check_header(path, header)
    n_columns = len(header)
    places = []  # of the rows with a value, below the column names
    rows = []
    for place, line in enumerate(lines[n_above + 1 :]):
        values = _without_empty_end(line)
        if len(values) > n_columns:
            number = n_above + 2 + place  # in the sheet, from 1
            raise InputError(
                f"{path}: row {number} has more values than there are "
                "column names; if other lines precede the names, skip them (skip_rows)"
            )
        if values:
            places.append(place)
            rows.append(values + [None] * (n_columns - len(values)))
    frame = pd.DataFrame(rows, columns=header, index=places)
    frame = with_exact_integers(frame, partial(_cells_of, rows, header))
    kept = columns_to_keep(keep, header, path)
    yield frame, as_text(_cells_of(rows, header, kept))


def _count_lines_above_names(lines: Sequence[list[Any]], n_skipped: int) -> int:
    """Return the number of lines above the column names; without names, of all lines.

    The names are the first line with a value, those that are skipped aside.
    """
    for place in range(n_skipped, len(lines)):
        if _without_empty_end(lines[place]):
            return place
    return len(lines)


def _cells_of(
    rows: Sequence[Sequence[Any]], header: Sequence[str], names: Sequence[str]
) -> Mapping[str, NDArray[np.object_]]:
    """Return columns of a sheet by name, as arrays of the values of cells."""
    columns = {}
    for name in names:
        place = header.index(name)
        columns[name] = np.array([row[place] for row in rows], dtype=object)
    return columns


def _without_empty_end(line: list[Any]) -> list[Any]:
    """Return the values up to the last one that is not None."""
    n_values = len(line)
    while n_values and line[n_values - 1] is None:
        n_values -= 1
    return line[:n_values]


def _sheet_lines(path: Path, layout: Layout) -> list[list[Any]]:
    """Return the values of all rows of a sheet, from its first row and column."""
    from python_calamine import CalamineWorkbook

    with (
        zipfile.ZipFile(path) as archive,
        tempfile.NamedTemporaryFile(suffix=".xlsx") as copy,
    ):
        contents = _contents(path, archive)
        part = contents.sheets[_chosen_sheet(path, contents, layout.sheet)]
        scan = _copy_sheet(path, archive, contents, part, layout.skip_rows, copy.name)
        _check_merged(path, scan)
        sheet = CalamineWorkbook.from_path(copy.name).get_sheet_by_index(0)
        lines = sheet.to_python(skip_empty_area=False)
    if scan.n_hidden:
        hidden = count(scan.n_hidden, "hidden row")
        message = f"{path}: {hidden} will be used; delete unwanted rows"
        warnings.warn(message, stacklevel=7)
    for line in lines:
        line[:] = map(_cell_value, line)
    for (row, column), value in scan.exact_values.items():
        lines[row - 1][column - 1] = value
    return lines


def _cell_value(value: Any) -> Any:
    """Return a value as a frame has it: None for nothing, 7 in place of 7.0."""
    if value == "":
        return None
    if isinstance(value, float) and value.is_integer() and abs(value) < 2**53:
        return int(value)
    if type(value) is date:  # and not datetime, a subclass
        return datetime(value.year, value.month, value.day)
    return value


def _check_merged(path: Path, scan: SheetScan) -> None:
    """Refuse merged cells of several rows, as only the first of these has a value."""
    for cells in scan.merged:
        rows = [int(row) for row in re.findall(r"\d+", cells)]  # of A2:A3, 2 and 3
        if not rows:
            continue
        first_read = max(rows[0], scan.n_skipped + 1)
        last = rows[-1]
        if first_read < last:
            raise InputError(
                f"{path}: the cells {cells} are merged, so only the first row has a "
                "value; unmerge them, and fill in the other rows"
            )


def _chosen_sheet(path: Path, contents: _Contents, sheet: str | None) -> str:
    """Return the title of the sheet to read: the one named, or the only one."""
    titles = list(contents.sheets)
    if not titles:  # or all are elsewhere than the workbook says
        raise InputError(
            f"{path}: the workbook names no sheet with rows that can be read; save the "
            "file again with Excel, or save the rows as CSV"
        )
    if sheet is None and len(titles) == 1:
        return titles[0]
    if sheet in titles:
        return sheet
    fault = f"no sheet {sheet!r}" if sheet else f"{len(titles)} sheets"
    raise InputError(f"{path}: {fault}; name one (sheet) of {listed(titles)}")


def _contents(path: Path, archive: zipfile.ZipFile) -> _Contents:
    """Return which parts hold the sheets, the shared texts and the formats of cells."""
    try:
        main = _main_part(path, archive)
        workbook = _index(path, archive, main)
        parts = _named_parts(path, archive, main)
    except KeyError as error:
        raise InputError(
            f"{path}: the file lacks a part that a workbook needs, such as a sheet; "
            "save it again with Excel, or save the rows as CSV"
        ) from error
    sheets = {}
    date1904: Literal["0", "1"] = "0"
    for element in workbook.iter():
        tag = _local(element.tag)
        attributes = {_local(name): value for name, value in element.attrib.items()}
        if tag == "sheet":
            part = parts.get(attributes.get("id", ""))
            if part is not None and part.kind == "worksheet":
                sheets[attributes.get("name", "")] = part.name
        elif tag == "workbookPr" and attributes.get("date1904") in ("1", "true"):
            date1904 = "1"
    by_kind = {part.kind: part.name for part in parts.values()}
    return _Contents(
        sheets=sheets,
        strings=by_kind.get("sharedStrings"),
        styles=by_kind.get("styles"),
        date1904=date1904,
    )


def _main_part(path: Path, archive: zipfile.ZipFile) -> str:
    """Return the name of the part that lists the sheets; raise a KeyError for none."""
    for part in _named_parts(path, archive, "").values():
        if part.kind == "officeDocument":
            return part.name
    raise KeyError("officeDocument")


def _named_parts(path: Path, archive: zipfile.ZipFile, part: str) -> dict[str, _Part]:
    """Return the parts that a part of the archive names, by its names for them."""
    folder, name = posixpath.split(part)
    index = _index(path, archive, posixpath.join(folder, "_rels", f"{name}.rels"))
    present = set(archive.namelist())
    parts = {}
    for relation in index:
        kind = relation.get("Type", "").rpartition("/")[2]
        # relative to the folder, or, with a leading slash, to the archive
        place = posixpath.join("/", folder, relation.get("Target", ""))
        target = posixpath.normpath(place).lstrip("/")
        if target in present and relation.get("TargetMode") != "External":
            parts[relation.get("Id", "")] = _Part(kind, target)
    return parts


def _index(path: Path, archive: zipfile.ZipFile, part: str) -> ElementTree.Element:
    """Return the XML of a part that names others; raise a KeyError if it is missing."""
    if archive.getinfo(part).file_size > _MOST_BYTES_OF_INDEX:
        raise _too_large(path, part, _MOST_BYTES_OF_INDEX)
    return ElementTree.fromstring(archive.read(part))


def _local(name: str) -> str:
    """Return a name of ElementTree without its namespace."""
    return name.rpartition("}")[2]


def _copy_sheet(
    path: Path,
    archive: zipfile.ZipFile,
    contents: _Contents,
    part: str,
    n_skipped: int,
    copy: str,
) -> SheetScan:
    """Write a workbook of one sheet to `copy`; return what its XML says beyond values.

    `part` is the name of the sheet in the archive.
    """
    strings = StringScan(path)
    with zipfile.ZipFile(copy, "w") as target:
        target.writestr("_rels/.rels", _INDEX)
        target.writestr("xl/workbook.xml", _WORKBOOK.format(date1904=contents.date1904))
        target.writestr("xl/_rels/workbook.xml.rels", _INDEX_OF_PARTS)
        if contents.styles is not None:
            _copy_part(path, archive, contents.styles, target, _STYLES_PART)
        if contents.strings is not None:
            _copy_part(path, archive, contents.strings, target, _STRINGS_PART, strings)
        sheet = SheetScan(path, _LIMITS, n_skipped, strings.lengths)
        _copy_part(path, archive, part, target, _SHEET_PART, sheet)
    return sheet


def _copy_part(
    path: Path,
    archive: zipfile.ZipFile,
    part: str,
    target: zipfile.ZipFile,
    name: str,
    scan: StringScan | SheetScan | None = None,
) -> None:
    """Write a part into another archive under a name, and feed it to `scan`.

    Refuse a huge one.
    """
    n_bytes = archive.getinfo(part).file_size  # as the archive says
    if n_bytes > _MOST_BYTES:
        raise _too_large(path, part, _MOST_BYTES)
    with archive.open(part) as source, target.open(name, "w") as destination:
        while chunk := source.read(_CHUNK_BYTES):
            if scan is not None:
                scan.feed(chunk)
            destination.write(chunk)
    if scan is not None:
        scan.close()


def _too_large(path: Path, part: str, most: int) -> InputError:
    fault = f"{part} exceeds {most:,} bytes when unpacked"
    return InputError(f"{path}: {fault}; save the rows as CSV")
