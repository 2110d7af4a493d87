"""Untrusted input: results folders, records, models and texts."""

import io
import re
import sys
import tracemalloc
from functools import partial
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


@pytest.fixture
def results(tmp_path, small):
    """A results folder, and the command that has made it."""
    config = small(
        solvers="{perceptron-avg: }",
        protocol="{n_splits: 1}",
        plots="[roc, precision-k]",
    )
    arguments = ["run", config, "--out", tmp_path / "out"]
    assert invoke(*arguments).exit_code == 0
    return tmp_path / "out" / "small", arguments


# Memory and order


@pytest.mark.promise("R14")
@pytest.mark.parametrize(
    ("edit", "words"),
    [
        (lambda t: t.replace('"9"', f'"{10**12}"'), "1,000,000,000,000 limits"),
        (lambda t: t.replace('"A9"', '"ZZZ9"'), "row 9 limits"),
        (
            lambda t: t.replace("<t>text 7</t>", f"<t>{'x' * 40_000}</t>"),
            "row 9 32,767",
        ),
        (lambda t: re.sub(r"text \d", "x" * 2_000, t), "10,000"),  # less in each row
        (lambda t: t.replace('"9"', '"4"'), "row 4 comes after row 8"),
        (lambda t: t.replace('"B9"', '"A9"'), "row 9 cell twice"),
        (lambda t: re.sub(r'(<c r="A9".*?</c>)(<c r="B9".*?</c>)', r"\2\1", t), ""),
    ],
)
@pytest.mark.extras("openpyxl", "python_calamine")
def test_sheets_that_excel_would_not_write(tmp_path, monkeypatch, edit, words):
    """Rows and columns that take for ever, a text that stands in many cells, cells in
    disorder.
    """
    from openpyxl import Workbook

    limits = SheetLimits(characters=10_000)
    monkeypatch.setattr("precbench.tables.workbook._LIMITS", limits)
    book, path = Workbook(), tmp_path / "mine.xlsx"
    for line in [["name", "a", "y"], *([f"text {i}", i * i, i % 2] for i in range(10))]:
        book.active.append(line)
    book.save(tmp_path / "whole.xlsx")
    with ZipFile(tmp_path / "whole.xlsx") as whole, ZipFile(path, "w") as edited:
        for name in whole.namelist():
            text = whole.read(name).decode()
            edited.writestr(name, edit(text) if name.endswith("sheet1.xml") else text)
    if words:
        unreadable(path, f"mine.xlsx {words}", label="y", drop=["name"])
    else:
        dataset, _ = read_own_file(path, label="y", drop=["name"])
        assert dataset.X.ravel().tolist() == [i * i for i in range(10)]


def peak(function):
    tracemalloc.start()
    try:
        with pytest.raises(InputError):
            function()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@pytest.mark.promise("R14")
@pytest.mark.parametrize(
    "text", ["[" * 10**5, '{"a":' * 10**5, "9" * 10**5, "[[]," * 10**5]
)
def test_json_bombs_give_a_one_line_error(tmp_path, text):
    store = Store(tmp_path)
    store.write({"key": "a", "status": "ok"})
    (tmp_path / "trials" / "a.json").write_text(text)
    assert peak(lambda: store.read("a")) < 50 * len(text)


# Texts


ODD = "\x1b]0;x\x07\x9b31m\u202e[red]|<script>$\\input{x}$&~"


def test_visible_text():
    assert (
        visible("a\tb\n\x1b[0m\x85\u202e\udcff\r")
        == "a\tb\n\\x1b[0m\\x85\\u202e\\udcff\\r"
    )
    assert one_line(" a\n b\t\x00") == "a b \x00"
    assert visible("naïve ± – 中文 \u200f") == "naïve ± – 中文 \u200f"


@pytest.mark.promise("R13")
@pytest.mark.parametrize(
    "arguments",
    [
        ["plot", ODD],
        ["check", ODD],
        ["run", ODD],
        [ODD],
        ["plot", "a", ODD],
        ["fit", ODD, "--save", "x.npz"],
        ["list", ODD],
        ["run", "a\udcff"],
    ],
)
def test_arguments_do_not_steer_the_terminal(arguments, work_folder):
    output = invoke(*arguments).output
    assert visible(output) == output and output


@pytest.mark.promise("R13")
@pytest.mark.parametrize("terminal", [False, True])
def test_untrusted_texts_are_shown_on_a_screen_as_they_are(terminal, monkeypatch):
    stream = io.StringIO()
    monkeypatch.setattr(sys, "stdout", stream)
    with harmless_streams():
        on_screen = screen(force_terminal=terminal, width=500)
        print_table(text_table(ODD, [ODD], [[ODD]], ODD), on_screen)
        on_screen.print(ODD, style="bold")
        print(ODD)
    shown = re.sub(r"\x1b\[[\d;]*m", "", stream.getvalue())  # the looks that rich gives
    assert visible(shown) == shown and shown.count("\\x1b]0;x") == 6


@pytest.mark.promise("R13")
def test_a_figure_shows_untrusted_texts_as_they_are(drawn, tmp_path, recwarn):
    def odd():
        figure = Figure()
        axes = figure.subplots()
        axes.set_title(ODD, parse_math=False)
        axes.set_xticks([0.5], [ODD], parse_math=False)
        return figure

    save_figure(odd, tmp_path / "odd.svg")
    svg = minidom.parse(str(tmp_path / "odd.svg")).getElementsByTagName("text")
    assert [text.firstChild.data for text in svg].count(visible(ODD)) == 2
    recwarn.clear()
    save_figure(partial(plain_figure, ODD), tmp_path / "odd.png")
    assert not recwarn.list, "a character that the font lacks"


def plain_figure(text):
    figure = Figure()
    figure.text(0, 0, text, parse_math=False)
    return figure


@pytest.mark.parametrize("changes", [{"title": r'"a\e[2J"'}, {"common": r'{"k\n": 1}'}])
def test_control_characters_in_a_config_are_refused(small, changes):
    refused(["run", small(**changes)], f"small.yaml {next(iter(changes))}")


# Mistyped


@pytest.mark.timeout(1800)
@pytest.mark.promise("R18")
def test_mistyped_configs_are_refused_with_line_and_hint(size, figure):
    n, wrong = mistyped(size(150, None))
    assert not wrong
    figure(f"{n} mistakes in the shipped configs")
