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
LONG = 2_000 * "n"


def genes(n_columns=100, name=LONG + "{}"):
    """Return a table whose names alone have more characters than the usual limit."""
    X = np.random.default_rng(0).standard_normal((N_ROWS, n_columns)).round(2)
    frame = pd.DataFrame(X, columns=[name.format(i) for i in range(n_columns)])
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
    limit = csv.field_size_limit()
    yield
    assert csv.field_size_limit() == limit


def expect_as_written(frame, **options):
    """Write a table with options of pandas, and expect that it is read as it was."""
    frame.to_csv("wide.csv", index=False, **options)
    table = open_table("wide.csv", {}).frame
    pd.testing.assert_frame_equal(table, frame, check_dtype=False)


@pytest.mark.parametrize(
    "options",
    [
        pytest.param({}, id="comma"),
        pytest.param({"sep": ";"}, id="semicolon"),
        pytest.param({"sep": "\t"}, id="tab"),
        pytest.param({"sep": "|"}, id="bar"),
        pytest.param({"quoting": csv.QUOTE_ALL}, id="quoted"),
        pytest.param({"lineterminator": "\r\n"}, id="crlf"),
        pytest.param({"encoding": "utf-16"}, id="utf-16"),
    ],
)
def test_a_file_of_long_names_is_read(work_folder, options):
    expect_as_written(genes(), **options)


def test_a_name_longer_than_the_usual_limit_is_read(work_folder):
    expect_as_written(genes(n_columns=1, name="x{}" + 200_000 * "n"))


def test_long_names_may_hold_another_separator(work_folder):
    expect_as_written(genes(name=LONG + "|{}"), sep=";")


def test_long_names_may_hold_the_separator(work_folder):
    expect_as_written(genes(name=LONG + ",{}"))


@pytest.mark.parametrize("separator", [",", ";"])
def test_values_longer_than_the_usual_limit_are_read(work_folder, separator):
    expect_as_written(letters(200_000), sep=separator)


def test_a_wide_file_may_have_decimal_commas(work_folder):
    frame = genes()
    frame.to_csv("wide.csv", index=False, sep=";", decimal=",")
    dataset, _ = read_own_file("wide.csv", label="y")
    np.testing.assert_array_equal(dataset.X, frame.drop(columns="y"))


def test_blank_rows_of_a_wide_file_are_left_out(work_folder):
    frame = letters(200_000)
    lines = frame.to_csv(index=False).splitlines(keepends=True)
    Path("wide.csv").write_text("".join([*lines[:3], ",,\n", "\n", *lines[3:]]))
    table = open_table("wide.csv", {}).frame
    assert table.index.tolist() == [0, 1, *range(4, N_ROWS + 2)]
    rows = table.reset_index(drop=True)
    pd.testing.assert_frame_equal(rows, frame, check_dtype=False)


def test_a_single_wide_row_is_read(work_folder):
    genes().head(1).to_csv("wide.csv", index=False)
    [(rows, _)] = read_blocks(Path("wide.csv"), "csv", layout.Layout())
    assert rows.shape == (1, 101)


@pytest.mark.filterwarnings("ignore")
def test_a_model_of_a_wide_file_ranks_its_rows(work_folder, in_this_process):
    genes().to_csv("genes.csv", index=False)
    fit = ["fit", "genes.csv", "--label", "y", "--k", 5, "--solver", "sgd-avg"]
    succeed(*fit, "--save", "m.npz")
    succeed("score", "m.npz", "genes.csv", "--top", 5, "--out", "top.csv")
    assert len(pd.read_csv("top.csv")) == 5


@pytest.mark.filterwarnings("ignore")
def test_a_table_with_long_values_is_described_and_fitted(work_folder, in_this_process):
    table = letters(200_000)
    table.to_csv("letters.csv", index=False)
    assert "letter" in succeed("profile", "letters.csv", "--label", "y").output
    model = precbench.fit("letters.csv", label="y", k=5, drop=["letter"], n_splits=1)
    assert np.isfinite(model.rank(table)["score"]).all()


def test_too_many_columns_are_refused(work_folder):
    names = [f"a{i}" for i in range(layout.MOST_COLUMNS + 1)]
    values = ["1"] * len(names)
    Path("wide.csv").write_text(",".join(names) + "\n" + ",".join(values) + "\n")
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
