"""Untrusted input: results folders, records, models and texts."""

import io
import re
import sys
import tracemalloc
from xml.dom import minidom
from zipfile import ZipFile

import pytest
from matplotlib.figure import Figure

from precbench.cli.group import harmless_streams
from precbench.cli.screen import screen
from precbench.cli.screen_tables import print_table
from precbench.core.errors import InputError
from precbench.core.text import one_line, visible
from precbench.report.sheet import save_figure
from precbench.report.table import text_table
from precbench.results.store import Store
from precbench.tables.own_file import read_own_file
from precbench.tables.sheet_scan import SheetLimits
from tests.helpers import invoke
from tests.mutations import mistyped
from tests.sentences import refused, unreadable

pytestmark = pytest.mark.usefixtures("in_this_process")


# --- memory and order ---


N_TEXTS = 10


def write_sheet(path, folder, edit):
    """Write a workbook of texts and squares whose sheet is edited as text.

    Row 1 is the header; text i is in row i + 2.
    """
    from openpyxl import Workbook

    book = Workbook()
    book.active.append(["name", "a", "y"])
    for i in range(N_TEXTS):
        book.active.append([f"text {i}", i * i, i % 2])
    book.save(folder / "whole.xlsx")
    with ZipFile(folder / "whole.xlsx") as whole, ZipFile(path, "w") as edited:
        for name in whole.namelist():
            text = whole.read(name).decode()
            if name.endswith("sheet1.xml"):
                text = edit(text)
            edited.writestr(name, text)


def row_far_away(sheet):
    return sheet.replace('"9"', f'"{10**12}"')


def column_far_away(sheet):
    return sheet.replace('"A9"', '"ZZZ9"')


def long_text(sheet):
    return sheet.replace("<t>text 7</t>", f"<t>{'x' * 40_000}</t>")


def long_texts_together(sheet):
    return re.sub(r"text \d", "x" * 2_000, sheet)


def rows_in_disorder(sheet):
    return sheet.replace('"9"', '"4"')


def cell_twice(sheet):
    return sheet.replace('"B9"', '"A9"')


def cells_in_disorder(sheet):
    return re.sub(r'(<c r="A9".*?</c>)(<c r="B9".*?</c>)', r"\2\1", sheet)


@pytest.fixture
def few_characters(monkeypatch):
    """Sheets of at most 10,000 characters."""
    limits = SheetLimits(characters=10_000)
    monkeypatch.setattr("precbench.tables.workbook._LIMITS", limits)


@pytest.mark.promise("R14")
@pytest.mark.parametrize(
    ("edit", "words"),
    [
        pytest.param(
            row_far_away, "1,000,000,000,000 limits", id="a row that takes for ever"
        ),
        pytest.param(
            column_far_away, "row 9 limits", id="a column that takes for ever"
        ),
        pytest.param(long_text, "row 9 32,767", id="a text that is too long"),
        pytest.param(long_texts_together, "10,000", id="texts too long together"),
        pytest.param(
            rows_in_disorder, "row 4 comes after row 8", id="rows in disorder"
        ),
        pytest.param(cell_twice, "row 9 cell twice", id="a cell twice"),
    ],
)
@pytest.mark.extras("openpyxl", "python_calamine")
def test_sheets_that_excel_would_not_write(tmp_path, few_characters, edit, words):
    path = tmp_path / "mine.xlsx"
    write_sheet(path, tmp_path, edit)
    unreadable(path, f"mine.xlsx {words}", label="y", drop=["name"])


@pytest.mark.promise("R14")
@pytest.mark.extras("openpyxl", "python_calamine")
def test_a_sheet_with_cells_in_disorder_is_read(tmp_path, few_characters):
    path = tmp_path / "mine.xlsx"
    write_sheet(path, tmp_path, cells_in_disorder)
    dataset, _ = read_own_file(path, label="y", drop=["name"])
    assert dataset.X.ravel().tolist() == [i * i for i in range(N_TEXTS)]


def peak_of_refusal(function):
    """Return the most bytes that a call takes until it is refused."""
    tracemalloc.start()
    try:
        with pytest.raises(InputError):
            function()
        _current, peak = tracemalloc.get_traced_memory()
        return peak
    finally:
        tracemalloc.stop()


@pytest.mark.promise("R14")
@pytest.mark.parametrize(
    "text",
    [
        pytest.param("[" * 10**5, id="lists"),
        pytest.param('{"a":' * 10**5, id="objects"),
        pytest.param("9" * 10**5, id="digits"),
        pytest.param("[[]," * 10**5, id="lists in lists"),
    ],
)
def test_json_bombs_give_a_one_line_error(tmp_path, text):
    store = Store(tmp_path)
    store.write({"key": "a", "status": "ok"})
    (tmp_path / "trials" / "a.json").write_text(text)
    assert peak_of_refusal(lambda: store.read("a")) < 50 * len(text)


# --- texts ---


# What controls a terminal, reverses text, or is a mark of rich, Markdown, HTML or LaTeX
ODD = "\x1b]0;x\x07\x9b31m\u202e[red]|<script>$\\input{x}$&~"


@pytest.mark.parametrize(
    ("text", "harmless"),
    [
        pytest.param(
            "a\tb\n\x1b[0m\x85\u202e\udcff\r",
            "a\tb\n\\x1b[0m\\x85\\u202e\\udcff\\r",
            id="controls",
        ),
        pytest.param(
            "naïve ± – 中文 \u200f", "naïve ± – 中文 \u200f", id="letters and signs"
        ),
    ],
)
def test_visible_text(text, harmless):
    assert visible(text) == harmless


def test_text_on_one_line():
    assert one_line(" a\n b\t\x00") == "a b \x00"


@pytest.mark.promise("R13")
@pytest.mark.parametrize(
    "arguments",
    [
        pytest.param(["plot", ODD], id="plot"),
        pytest.param(["check", ODD], id="check"),
        pytest.param(["run", ODD], id="run"),
        pytest.param([ODD], id="no command"),
        pytest.param(["plot", "a", ODD], id="plot, second argument"),
        pytest.param(["fit", ODD, "--save", "x.npz"], id="fit"),
        pytest.param(["list", ODD], id="list"),
        pytest.param(["run", "a\udcff"], id="a byte that is not UTF-8"),
    ],
)
def test_arguments_do_not_steer_the_terminal(arguments, work_folder):
    output = invoke(*arguments).output
    assert output
    assert visible(output) == output


@pytest.mark.promise("R13")
@pytest.mark.parametrize("terminal", [False, True])
def test_untrusted_texts_are_shown_on_a_screen_as_they_are(terminal, monkeypatch):
    stream = io.StringIO()
    monkeypatch.setattr(sys, "stdout", stream)
    with harmless_streams():
        on_screen = screen(force_terminal=terminal, width=500)
        # Title, header, cell and note
        print_table(text_table(ODD, [ODD], [[ODD]], ODD), on_screen)
        on_screen.print(ODD, style="bold")
        print(ODD)
    without_styles = re.sub(r"\x1b\[[\d;]*m", "", stream.getvalue())  # those of rich
    assert visible(without_styles) == without_styles
    assert without_styles.count("\\x1b]0;x") == 6


def odd_figure():
    """Return a figure with odd texts in its title and at an axis."""
    figure = Figure()
    axes = figure.subplots()
    axes.set_title(ODD, parse_math=False)
    axes.set_xticks([0.5], [ODD], parse_math=False)
    return figure


def plain_figure():
    """Return a figure with an odd text and nothing else."""
    figure = Figure()
    figure.text(0, 0, ODD, parse_math=False)
    return figure


@pytest.mark.promise("R13")
@pytest.mark.filterwarnings("ignore:Glyph")  # while the axes are laid out
def test_a_figure_shows_untrusted_texts_as_they_are(drawn, tmp_path):
    save_figure(odd_figure, tmp_path / "odd.svg")
    svg = minidom.parse(str(tmp_path / "odd.svg"))
    texts = [text.firstChild.data for text in svg.getElementsByTagName("text")]
    assert texts.count(visible(ODD)) == 2


@pytest.mark.promise("R13")
def test_the_font_has_all_characters_of_an_untrusted_text(drawn, tmp_path, recwarn):
    save_figure(plain_figure, tmp_path / "odd.png")
    assert not recwarn.list


@pytest.mark.parametrize(
    ("key", "value"),
    [
        pytest.param("title", r'"a\e[2J"', id="in a value"),
        pytest.param("common", r'{"k\n": 1}', id="in a key"),
    ],
)
def test_control_characters_in_a_config_are_refused(small, key, value):
    refused(["run", small(**{key: value})], f"small.yaml {key}")


# --- mistyped configs ---


@pytest.mark.timeout(1800)
@pytest.mark.promise("R18")
def test_mistyped_configs_are_refused_with_line_and_hint(size, figure):
    n_mistakes, wrong_refusals = mistyped(size(150, None))
    assert not wrong_refusals
    figure(f"{n_mistakes} mistakes in the shipped configs")
