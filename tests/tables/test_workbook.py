"""What the cells of a workbook become, and workbooks that nobody should open."""

import datetime
import re
import time
import zipfile
from contextlib import contextmanager
from pathlib import Path

import pandas as pd
import pytest

from precbench.tables.layout import Layout
from precbench.tables.workbook import read_workbook
from tests.sentences import unreadable

pytestmark = [
    pytest.mark.extras("openpyxl", "python_calamine"),
    pytest.mark.usefixtures("work_folder"),
]

SHEET = "xl/worksheets/sheet1.xml"
STYLES = "xl/styles.xml"


def saved(lines, formats=None, *, from_1904=False):
    """Write a workbook of the lines, with formats of numbers by cell."""
    from openpyxl import Workbook
    from openpyxl.utils.datetime import CALENDAR_MAC_1904

    book = Workbook()
    if from_1904:
        book.epoch = CALENDAR_MAC_1904
    for line in lines:
        book.active.append(line)
    for cell, number_format in (formats or {}).items():
        book.active[cell].number_format = number_format
    book.save("mine.xlsx")
    return Path("mine.xlsx")


def edited(path, edit, part=SHEET):
    """Return a copy of a workbook whose sheet, or another part, was edited as text."""
    copy = Path("edited.xlsx")
    with zipfile.ZipFile(path) as source, zipfile.ZipFile(copy, "w") as target:
        for name in source.namelist():
            content = source.read(name)
            if name == part:
                content = edit(content.decode()).encode()
            target.writestr(name, content, zipfile.ZIP_DEFLATED)
    return copy


def with_blanks(sheet):
    """Return the XML of a sheet with 100,000 blanks, which take little when packed."""
    return sheet.replace("</row>", " " * 100_000 + "</row>", 1)


def frame_of(path, **layout):
    [(frame, _texts)] = read_workbook(path, Layout(**layout), [])
    return frame


def values_of(path):
    """Return the values of the column named x."""
    return frame_of(path)["x"].tolist()


DAY = datetime.datetime(2024, 2, 29)
MOMENT = datetime.datetime(2024, 2, 29, 13, 45, 10)


@pytest.mark.parametrize(
    ("value", "read"),
    [
        pytest.param(7, 7, id="integer"),
        pytest.param(0.25, 0.25, id="fraction"),
        pytest.param(True, True, id="true"),
        pytest.param(False, False, id="false"),
        pytest.param("007", "007", id="digits that are text"),
        pytest.param(" a & <b> ", " a & <b> ", id="text"),
        pytest.param("#N/A", "#N/A", id="error"),
        pytest.param(datetime.time(13, 45), datetime.time(13, 45), id="time"),
    ],
)
def test_values_of_cells(value, read):
    path = saved([["x", "y"], [value, 1], ["z", 2]])
    [first, _] = values_of(path)
    assert first == read
    assert type(first) is type(read)


def test_a_formula_that_was_never_computed_has_no_value():
    assert frame_of(saved([["x", "y"], ["=2*B2", 1]]))["x"].isna().all()


@pytest.mark.parametrize("from_1904", [False, True])
def test_days_and_moments_are_dates(from_1904):
    path = saved([["x"], [DAY.date()], [MOMENT], [DAY]], from_1904=from_1904)
    frame = frame_of(path)
    assert frame["x"].dtype.kind == "M"
    assert frame["x"].tolist() == [DAY, MOMENT, DAY]


def test_percents_are_fractions_and_a_day_of_another_notation_a_date():
    path = saved(
        [["share", "day"], [0.5, 45351], [1, 45352]],
        {"A2": "0.00%", "A3": "0%", "B2": "d. mmmm yyyy", "B3": "[$-407]dd/mm/yy"},
    )
    frame = frame_of(path)
    assert frame["share"].tolist() == [0.5, 1.0]
    assert frame["day"].tolist() == [DAY, DAY + datetime.timedelta(days=1)]


def test_a_column_of_integers_with_a_gap_and_numbers_beside_text():
    path = saved([["x", "y"], [1, 1], [None, 2.5], [3, "4"]])
    frame = frame_of(path)
    assert frame["x"].dtype.kind == "f"
    assert frame["x"].isna().tolist() == [False, True, False]
    assert frame["y"].tolist() == [1, 2.5, "4"]


def test_an_empty_text_is_no_value():
    path = edited(saved([["x", "y"], ["a", 1]]), lambda text: text.replace(">a<", "><"))
    assert values_of(path) == [None]


def test_formulas_have_the_values_that_were_saved():
    path = edited(
        saved([["x", "y"], ["=2*B2", 4], ["=B2&B3", 5]]),
        lambda text: re.sub("<v></v>|<v ?/>", "<v>8</v>", text, count=1),
    )
    assert values_of(path)[0] == 8


def test_a_far_dimension_that_is_not_true_does_no_harm():
    far = 'dimension ref="A1:XFD1048576"'
    path = edited(
        saved([["x"], [1], [2]]), lambda text: re.sub('dimension ref=".*?"', far, text)
    )
    assert values_of(path) == [1, 2]


@contextmanager
def within_a_second():
    start = time.perf_counter()
    yield
    assert time.perf_counter() - start < 1


@pytest.mark.parametrize(
    ("column", "row", "places"),
    [
        pytest.param("XFD", 1_048_576, "edited.xlsx CSV", id="the last cell"),
        pytest.param("A", 1_048_576, "edited.xlsx CSV", id="the last row"),
        pytest.param("XFD", 3, "row 3 names", id="the last column"),
    ],
)
def test_a_value_far_from_the_table_takes_no_memory(column, row, places):
    names = [f"c{i}" for i in range(10)]
    cell = f'<c r="{column}{row}"><v>1</v></c>'
    far = f'<row r="{row}">{cell}</row></sheetData>'
    path = edited(
        saved([names, [*range(10)]]), lambda text: text.replace("</sheetData>", far)
    )
    with within_a_second():
        unreadable(path, places, label="c0")


def test_a_cell_that_names_another_row_is_refused():
    path = edited(saved([["x"], [1]]), lambda text: text.replace('r="A2"', 'r="A7"'))
    unreadable(path, "edited.xlsx row 2 A7", label="x")


def test_a_sheet_that_unpacks_to_more_than_allowed_is_refused(monkeypatch):
    path = edited(saved([["x"], [1]]), with_blanks)
    assert path.stat().st_size < 20_000
    monkeypatch.setattr("precbench.tables.workbook._MOST_BYTES", 50_000)
    unreadable(path, f"edited.xlsx {SHEET} 50,000", label="x")


def test_an_archive_that_conceals_the_size_of_a_part_is_refused():
    path = edited(saved([["x"], [1]]), with_blanks)
    with zipfile.ZipFile(path) as archive:
        size = archive.getinfo(SHEET).file_size
    true_size = size.to_bytes(4, "little")
    concealed_size = (900).to_bytes(4, "little")
    content = path.read_bytes()
    assert content.count(true_size) == 2  # before the part, and in the list of parts
    path.write_bytes(content.replace(true_size, concealed_size))
    unreadable(path, "edited.xlsx cannot be read", label="x")


def with_growing_entities(text):
    """Return XML with thirty entities, each twice the one before it, in place of a."""
    entities = [f'<!ENTITY e{i} "&e{i - 1};&e{i - 1};">' for i in range(1, 30)]
    doctype = f'<!DOCTYPE x [<!ENTITY e0 "lol">{"".join(entities)}]>'
    without_declaration = re.sub(r"^<\?xml.*?\?>", "", text)
    return doctype + without_declaration.replace(">a<", ">&e29;<")


def test_a_sheet_with_entities_is_refused():
    path = edited(saved([["x", "y"], ["a", 1]]), with_growing_entities, SHEET)
    with within_a_second():
        unreadable(path, "edited.xlsx Excel", label="y")


@pytest.mark.parametrize("part", [STYLES, "xl/workbook.xml"])
def test_entities_that_no_cell_uses_do_no_harm(part):
    path = edited(saved([["x", "y"], ["a", 1]]), with_growing_entities, part)
    with within_a_second():
        assert frame_of(path)["y"].tolist() == [1]


def test_the_named_one_of_two_sheets_is_read():
    with pd.ExcelWriter("mine.xlsx") as book:
        pd.DataFrame({"x": [1]}).to_excel(book, sheet_name="Jan & Feb", index=False)
        pd.DataFrame({"x": [2]}).to_excel(book, sheet_name="März", index=False)
    path = Path("mine.xlsx")
    assert frame_of(path, sheet="März")["x"].tolist() == [2]
    assert frame_of(path, sheet="Jan & Feb")["x"].tolist() == [1]
