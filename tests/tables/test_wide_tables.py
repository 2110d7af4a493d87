"""CSV files with lines and values of any length: what pandas reads, precbench reads."""

import csv
import threading
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import precbench
from precbench.core.errors import InputError
from precbench.tables import layout
from precbench.tables.own_file import read_own_file
from precbench.tables.own_table import open_table, read_blocks
from tests.helpers import succeed
from tests.sentences import raises

N_ROWS = 40
USUAL_LIMIT = 131_072  # characters of a value, in the module csv
WIDE = ["--label", "y", "--k", 5, "--solver", "sgd-avg"]


LONG = 2_000 * "n"


def genes(n=100, name=LONG + "{}"):
    """Return a table whose names alone have more characters than the usual limit."""
    X = np.random.default_rng(0).standard_normal((N_ROWS, n)).round(2)
    frame = pd.DataFrame(X, columns=[name.format(i) for i in range(n)])
    assert sum(map(len, frame)) > USUAL_LIMIT
    return frame.assign(y=np.arange(N_ROWS) % 2)


def letters(length):
    """Return a table with texts, two of them long, with commas and quotation marks."""
    text = 'She said "no", twice | and then; more. '
    long = (text * (length // len(text) + 1))[:length]
    texts = [long, "short", long, *(f"text {i}" for i in range(3, N_ROWS))]
    amounts = np.arange(N_ROWS) / 4
    return pd.DataFrame(
        {"amount": amounts, "letter": texts, "y": np.arange(N_ROWS) % 2}
    )


@pytest.fixture(autouse=True)
def same_limit():
    """See that the limit of the caller's process is what it was."""
    before = csv.field_size_limit()
    yield
    assert csv.field_size_limit() == before


CASES = {
    "comma": (genes, {}),
    "semicolon": (genes, {"sep": ";"}),
    "tab": (genes, {"sep": "\t"}),
    "bar": (genes, {"sep": "|"}),
    "quoted": (genes, {"quoting": csv.QUOTE_ALL}),
    "crlf": (genes, {"lineterminator": "\r\n"}),
    "utf-16": (genes, {"encoding": "utf-16"}),
    "a-longer-name": (lambda: genes(1, "x{}" + 200_000 * "n"), {}),
    "other-separators": (lambda: genes(name=LONG + "|{}"), {"sep": ";"}),
    "names-with-separators": (lambda: genes(name=LONG + ",{}"), {}),
    "letters": (lambda: letters(200_000), {}),
    "letters-semicolon": (lambda: letters(200_000), {"sep": ";"}),
}


@pytest.mark.parametrize("name", CASES)
def test_a_file_of_any_width_is_read(name, work_folder):
    make, how = CASES[name]
    frame = make()
    frame.to_csv("wide.csv", index=False, **how)
    read = open_table("wide.csv", {}).frame
    pd.testing.assert_frame_equal(read, frame, check_dtype=False)


def test_a_wide_file_may_have_decimal_commas(work_folder):
    frame = genes()
    frame.to_csv("wide.csv", index=False, sep=";", decimal=",")
    dataset, _ = read_own_file("wide.csv", label="y")
    np.testing.assert_array_equal(dataset.X, frame.drop(columns="y"))


def test_blank_rows_of_a_wide_file_are_left_out(work_folder):
    frame = letters(200_000)
    lines = frame.to_csv(index=False).splitlines(keepends=True)
    Path("wide.csv").write_text("".join([*lines[:3], ",,\n", "\n", *lines[3:]]))
    read = open_table("wide.csv", {}).frame
    assert read.index.tolist() == [0, 1, *range(4, N_ROWS + 2)]
    pd.testing.assert_frame_equal(read.reset_index(drop=True), frame, check_dtype=False)


def test_a_single_wide_row_is_read(work_folder):
    genes().head(1).to_csv("wide.csv", index=False)
    [(rows, _)] = read_blocks(Path("wide.csv"), "csv", layout.Layout())
    assert rows.shape == (1, 101)


@pytest.mark.filterwarnings("ignore")
def test_commands_read_wide_files(work_folder, in_this_process):
    genes().to_csv("genes.csv", index=False)
    succeed("fit", "genes.csv", *WIDE, "--save", "m.npz")
    succeed("score", "m.npz", "genes.csv", "--top", 5, "--out", "top.csv")
    assert len(pd.read_csv("top.csv")) == 5
    small = letters(200_000)
    small.to_csv("letters.csv", index=False)
    assert "letter" in succeed("profile", "letters.csv", "--label", "y").output
    model = precbench.fit("letters.csv", label="y", k=5, drop=["letter"], n_splits=1)
    assert np.isfinite(model.rank(small)["score"]).all()


def test_too_many_columns_are_refused(work_folder):
    names = [f"a{i}" for i in range(layout.MOST_COLUMNS + 1)]
    Path("wide.csv").write_text(
        ",".join(names) + "\n" + "1," * (len(names) - 1) + "1\n"
    )
    with raises(InputError, "wide.csv 100,000"):
        read_own_file("wide.csv", label="a0")


def test_a_limit_that_the_user_has_set_holds_outside(work_folder):
    """Also where several threads read at the same time."""
    genes().to_csv("wide.csv", index=False)
    usual = csv.field_size_limit(1_000)
    failures = []

    def read():
        try:
            open_table("wide.csv", {})
        except Exception as error:
            failures.append(error)

    try:
        threads = [threading.Thread(target=read) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert csv.field_size_limit() == 1_000
    finally:
        csv.field_size_limit(usual)
    assert not failures
