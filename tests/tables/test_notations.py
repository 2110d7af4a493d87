"""Tables as people have them.

The same rows in any notation, and nothing wrong without a word.
"""

import gzip
import io
import json
import re
import shlex
import zipfile
from datetime import time
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import roc_auc_score

import precbench
from precbench import Model
from precbench.core.errors import InputError
from precbench.model.training_rows import TrainingRows
from precbench.tables import detectors
from precbench.tables.detectors import PANDAS_IS_EXACT, as_numbers, content_of
from precbench.tables.own_file import read_new_blocks, read_own_file
from precbench.tables.roles import canonical
from tests.helpers import invoke, read_new_rows, succeed
from tests.sentences import naming, raises, refused, unreadable, warns

pytestmark = pytest.mark.frames

N = 120


@pytest.fixture
def rows(work_folder):
    """Rows of every kind: numbers with gaps, integers, dates, text and groups."""
    rng = np.random.default_rng(0)
    y = rng.permutation([0, 0, 1] * (N // 3))
    is_gap = rng.random(N) < 0.1
    amounts = (y * 1e3 + rng.normal(0, 1e3, N)).round(2)
    visits = rng.integers(0, 2000, N)
    n_days = rng.integers(0, 900, N)
    return pd.DataFrame(
        {
            "spent": np.where(is_gap, np.nan, amounts),
            "visits": visits,
            "since": pd.Timestamp("2020-05-30") + pd.to_timedelta(n_days, "D"),
            "city": rng.choice(["Zürich", "Oslo", "Bern"], N),
            "y": y,
        }
    )


def written(table, name, **options):
    """Write a table as CSV, with options of pandas, and return the name of the file."""
    table.to_csv(name, index=False, **options)
    return name


def written_in_german(rows):
    table = rows.assign(since=rows["since"].dt.strftime("%d.%m.%Y"))
    return written(table, "german.csv", sep=";", decimal=",", encoding="cp1252")


def written_in_english(rows):
    table = rows.assign(
        since=rows["since"].dt.strftime("%m/%d/%Y"),
        spent=rows["spent"].map("$ {:,.2f}".format, na_action="ignore"),
        visits=rows["visits"].map("{:,}".format),
    )
    return written(table, "english.csv", lineterminator="\r\n", encoding="utf-8-sig")


def fitted(source, **layout):
    return precbench.fit(
        source,
        label="y",
        categorical="one-hot",
        missing="median",
        solver="logistic-regression",
        n_splits=1,
        k=10,
        **layout,
    )


def scores_of_file(model, path, **layout):
    blocks = read_new_blocks(path, model.encoding, **layout)
    return np.concatenate([model.decision_function(X) for X, _ in blocks])


@pytest.mark.filterwarnings("ignore:.*(Windows-1252|filled in|mixed type)")
@pytest.mark.extras("openpyxl", "pyarrow", "python_calamine")
def test_one_table_in_any_format_gives_one_model_and_one_list(rows):
    """CSV in six dialects, XLSX, Parquet and a frame, bit for bit."""
    plain = written(rows, "plain.csv")
    first_model = fitted(plain)
    first_scores = scores_of_file(first_model, plain)
    with_odd_names = rows.rename(columns={"spent": 1, "city": ("a", 2)})
    rows.to_excel("mine.xlsx", index=False)
    rows.to_parquet("mine.parquet")
    with_odd_names.to_parquet("odd.parquet")
    files = [
        written_in_german(rows),
        written_in_english(rows),
        written(rows, "unicode.tsv", sep="\t", encoding="utf-16"),
        written(rows, "bars.csv", sep="|"),
        "mine.xlsx",
        "mine.parquet",
        "odd.parquet",
    ]
    for path in files:
        model = fitted(path)
        assert model.coef.tobytes() == first_model.coef.tobytes()
        assert scores_of_file(model, path).tobytes() == first_scores.tobytes()

    Path("titled.csv").write_text("A report\n,,\n" + rows.to_csv(index=False))
    model = fitted("titled.csv", skip_rows=2)
    scores = scores_of_file(model, "titled.csv", skip_rows=2)
    assert model.coef.tobytes() == first_model.coef.tobytes()
    assert scores.tobytes() == first_scores.tobytes()

    for frame in (rows, with_odd_names):
        model = fitted(frame)
        assert model.coef.tobytes() == first_model.coef.tobytes()
        assert model.decision_function(frame).tobytes() == first_scores.tobytes()


@pytest.mark.filterwarnings("ignore:.*(Windows-1252|filled in)")
@pytest.mark.parametrize(
    ("write", "decimal", "date_format"),
    [
        pytest.param(written_in_german, ",", "%d.%m.%Y", id="German"),
        pytest.param(written_in_english, ".", "%m/%d/%Y", id="English"),
    ],
)
def test_a_model_takes_rows_in_another_notation_if_it_is_named(
    rows, write, decimal, date_format
):
    plain = written(rows, "plain.csv")
    model = fitted(plain)
    path = write(rows)
    with pytest.raises(InputError):
        scores_of_file(model, path)
    scores = scores_of_file(model, path, decimal=decimal, date_format=date_format)
    assert scores.tobytes() == scores_of_file(model, plain).tobytes()


@pytest.mark.parametrize(
    ("texts", "numbers", "notation"),
    [
        pytest.param(
            "7,200.00 1,571.50 12", [7200, 1571.5, 12], ".", id="comma for thousands"
        ),
        pytest.param(
            "7.200,00 1.571,50 12", [7200, 1571.5, 12], ",", id="point for thousands"
        ),
        pytest.param(
            "1'200 900 31'571.25",
            [1200, 900, 31571.25],
            ".",
            id="apostrophe for thousands",
        ),
        pytest.param(
            "\u22121.5% 2%", [-1.5e-2, 2e-2], ".", id="typeset minus before percent"
        ),
        pytest.param(
            "$7,200 -$15.5 +$3", [7200, -15.5, 3], ".", id="dollars with signs"
        ),
        pytest.param(
            "5€ 1.234,5€ 7€", [5, 1234.5, 7], ",", id="euros behind the amount"
        ),
        pytest.param("8.9% 11.25% 3%", [8.9e-2, 11.25e-2, 3e-2], ".", id="percent"),
        pytest.param(
            "0.125 $1.250", [0.125, 1.25], ".", id="digits behind a leading zero"
        ),
    ],
)
def test_amounts_are_numbers(texts, numbers, notation):
    content = content_of(pd.Series(texts.split()), "t")
    assert content.holds == "numbers"
    assert content.notation == notation
    assert content.others == ()
    assert content.numbers.tolist() == numbers


@pytest.mark.parametrize(
    "text",
    [
        "1_1",
        "Nan",
        "١٢",
        "12-3",
        "1,23",
        "1,2345.0",
        "$",
        "5more",
        "1..2",
        "--1",
        "0x1F",
    ],
)
def test_what_no_person_writes_for_a_number_is_text(text):
    assert content_of(pd.Series(["1,000.5", text]), "t").holds == "text"
    assert np.isnan(as_numbers(pd.Series([text, "1,000.5"]), ".")[0])
    assert canonical(text) == text


@pytest.mark.parametrize(
    ("unit", "other_unit"),
    [
        pytest.param("{} %", "{}", id="percent, then none"),
        pytest.param("$ {}", "{} €", id="dollars, then euros"),
        pytest.param("{},0", "{} %", id="none, then percent"),
    ],
)
def test_new_rows_have_the_unit_of_the_training_rows(rows, unit, other_unit):
    table = rows[["y"]].copy()
    # A 0 may have any unit.
    table["cost"] = ["0", *rows["visits"][1:].map(unit.format)]
    _, encoding = read_own_file(written(table, "mine.csv"), label="y")
    table["cost"] = ["0", *rows["visits"][1:].map(other_unit.format)]
    new = written(table, "new.csv")
    first_amount = other_unit.format(rows["visits"][1])
    with raises(InputError, f"new.csv 'cost' 2 '{first_amount}'"):
        read_new_rows(new, encoding)


@pytest.mark.extras("pyarrow")
def test_exponents_are_numbers_where_the_file_has_no_types(rows):
    table = rows[["visits", "y"]].copy()
    table.insert(0, "code", np.where(rows["y"] > 0, "3E5", "2E1"))
    dataset, _ = read_own_file(written(table, "mine.csv"), label="y")
    assert dataset.X[:, 0].max() == 3e5
    table.to_parquet("mine.parquet")
    unreadable("mine.parquet", "'code' '3E5' categorical", label="y")


# --- what can be read in two ways is refused with both, and an option decides ---


@pytest.fixture
def thousands(rows):
    """Rows whose column ``paid`` may hold thousands, or three decimals."""
    return rows.assign(paid=[f"{i % 9 + 1},000" for i in range(N)])


def test_a_comma_before_three_digits_may_be_either(thousands):
    path = written(thousands[["visits", "paid", "y"]], "paid.csv")
    unreadable(path, "'paid' '1,000' 1000 (decimal .) 1 (decimal ,)", label="y")


@pytest.mark.parametrize(
    ("decimal", "first_amount"),
    [pytest.param(".", 1000, id="point"), pytest.param(",", 1, id="comma")],
)
def test_the_decimal_mark_says_what_a_comma_is(thousands, decimal, first_amount):
    """Here and in new rows."""
    path = written(thousands[["visits", "paid", "y"]], "paid.csv")
    dataset, encoding = read_own_file(path, label="y", decimal=decimal)
    assert dataset.X[0, 1] == first_amount
    assert read_new_rows(path, encoding).tobytes() == dataset.X.tobytes()


@pytest.fixture
def with_text_beside_numbers(rows):
    """Write a workbook whose column ``paid`` ends with the text 1.000."""
    table = pd.DataFrame({"paid": [*range(N - 1), "1.000"], "y": rows["y"]})
    table.to_excel("mine.xlsx", index=False)
    return "mine.xlsx"


@pytest.mark.extras("openpyxl", "python_calamine")
def test_a_point_before_three_digits_may_be_either_in_a_text_beside_numbers(
    with_text_beside_numbers,
):
    unreadable(with_text_beside_numbers, f"'paid' {N} '1.000' 1 1000", label="y")


@pytest.mark.parametrize(
    ("decimal", "last_amount"),
    [pytest.param(".", 1, id="point"), pytest.param(",", 1000, id="comma")],
)
@pytest.mark.extras("openpyxl", "python_calamine")
def test_the_decimal_mark_says_what_a_point_is_in_a_text_beside_numbers(
    with_text_beside_numbers, decimal, last_amount
):
    path = with_text_beside_numbers
    dataset, encoding = read_own_file(path, label="y", decimal=decimal)
    assert dataset.X[-1, 0] == last_amount
    assert read_new_rows(path, encoding)[-1, 0] == last_amount


def test_a_column_with_points_decides_what_a_comma_is(thousands):
    table = thousands.assign(rate=np.arange(N) / 8)[["paid", "rate", "y"]]
    dataset, _ = read_own_file(written(table, "point.csv"), label="y")
    assert dataset.X[0, 0] == 1000


def test_a_comma_may_be_either_beside_columns_with_points_and_with_commas(thousands):
    table = thousands.assign(
        rate=np.arange(N) / 8, share=[f"{i % 9},5" for i in range(N)]
    )
    path = written(table[["paid", "rate", "y", "share"]], "both.csv")
    unreadable(path, "'paid' decimal", label="y")


@pytest.fixture
def due(rows):
    """Write a column ``due`` of days that may be in May or in June."""
    table = rows.assign(due="05/06/2024")
    return written(table[["visits", "due", "y"]], "due.csv")


def test_a_date_may_begin_with_the_month_or_the_day(due):
    unreadable(due, "'due' 2024-05-06 %m/%d/%Y 2024-06-05 %d/%m/%Y", label="y")


@pytest.mark.parametrize(
    ("date_format", "first_day"),
    [
        pytest.param("%m/%d/%Y", "2024-05-06", id="month first"),
        pytest.param("%d/%m/%Y", "2024-06-05", id="day first"),
    ],
)
def test_the_format_of_dates_says_what_comes_first(due, date_format, first_day):
    _, encoding = read_own_file(due, label="y", date_format=date_format)
    assert encoding.columns[1].origin == first_day


@pytest.fixture
def german(rows):
    """Numbers with a decimal comma, points for thousands, and decimal points."""
    counts = range(1, N + 1)
    return pd.DataFrame(
        {
            "spent": [f"{i},5" for i in counts],
            "visits": [f"{i}.000" for i in counts],
            "share": [f"{i}.5" for i in counts],
            "y": rows["y"],
        }
    )


@pytest.mark.parametrize(
    "columns",
    [
        pytest.param(["spent", "visits", "y"], id="beside decimal commas"),
        pytest.param(["visits", "y"], id="alone"),
    ],
)
def test_a_point_among_semicolons_may_be_either(german, columns):
    path = written(german[columns], "mixed.csv", sep=";")
    unreadable(path, "'visits' 1.000 thousands decimal", label="y")
    dataset, _ = read_own_file(path, label="y", decimal=",")
    assert dataset.X[3, -1] == 4000


@pytest.mark.parametrize(
    ("columns", "separator"),
    [
        pytest.param(["visits", "y"], ",", id="commas separate"),
        pytest.param(["visits", "share", "y"], ";", id="beside decimal points"),
    ],
)
def test_a_point_is_decimal(german, columns, separator):
    path = written(german[columns], "point.csv", sep=separator)
    dataset, _ = read_own_file(path, label="y")
    assert dataset.X[3, 0] == 4


def test_a_point_of_half_the_rows_may_be_either(german):
    german.loc[N // 2 :, "visits"] = "824"  # beside 1.000
    path = written(german[["visits", "y"]], "few.csv", sep="\t")
    unreadable(path, "1.000", label="y")


# --- options, and words for nothing ---


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("date_format", "%Q"),
        ("date_format", "foo"),
        ("separator", ";;"),
        ("encoding", "é"),
        ("sheet", "s"),
        ("decimal", ";"),
    ],
)
def test_an_impossible_notation_is_refused(rows, option, value):
    path = written(rows, "mine.csv")
    unreadable(path, value, label="y", **{option: value})


def test_an_unknown_option_is_an_error(rows):
    with pytest.raises(TypeError, match="seperator"):
        read_own_file(written(rows, "mine.csv"), label="y", seperator=";")


@pytest.fixture
def countries(rows):
    """Write a column ``country`` where NA may be Namibia, and None a tariff."""
    country = rows["city"].map({"Bern": "NA", "Oslo": "None", "Zürich": "x"})
    table = rows.assign(country=country)
    return written(table[["visits", "country", "y"]], "mine.csv")


def test_words_for_nothing_may_be_values(countries):
    unreadable(
        countries, "'country' 1 'None' categorical", label="y", categorical="one-hot"
    )


def test_words_for_nothing_are_values_of_named_categories(countries):
    dataset, encoding = read_own_file(countries, label="y", categorical=["country"])
    assert encoding.columns[1].categories == ("NA", "None", "x")
    assert read_new_rows(countries, encoding).tobytes() == dataset.X.tobytes()


def test_words_for_nothing_are_groups(countries):
    dataset, _ = read_own_file(countries, label="y", groups="country")
    assert len(set(dataset.groups)) == 3


def test_words_for_nothing_are_labels(rows, countries):
    with warns(UserWarning, "NA x"):
        dataset, _ = read_own_file(
            countries, label="country", positive="None", drop=["y"]
        )
    assert dataset.n_pos == (rows["city"] == "Oslo").sum()


def test_words_for_nothing_may_be_missing_values(countries):
    _, encoding = read_own_file(
        countries, label="y", categorical="one-hot", missing="most-frequent"
    )
    assert encoding.columns[1].categories == ("x",)


@pytest.mark.extras("openpyxl", "pyarrow", "python_calamine")
def test_groups_are_the_same_in_any_format(rows):
    """A number stored as text, blanks at its ends, 7.0 beside a gap."""
    number_of_group = [i % 7 for i in range(N)]
    who = [f" {i % 7}" if i % 2 else i % 7 for i in range(N)]
    table = rows[["visits", "y"]].assign(who=who)
    table.to_excel("mine.xlsx", index=False)
    table.astype({"who": str}).to_parquet("mine.parquet")
    for path in ("mine.xlsx", "mine.parquet", written(table, "mine.csv")):
        dataset, _ = read_own_file(path, label="y", groups="who")
        assert dataset.groups.tolist() == number_of_group


def test_groups_may_be_integers_that_no_float_holds(rows):
    table = rows[["visits", "y"]].assign(who=2**60 + np.arange(N) % 9)
    path = written(table, "mine.csv")
    dataset, _ = read_own_file(path, label="y", groups="who")
    assert len(set(dataset.groups)) == 9


@pytest.mark.parametrize("dtype", ["object", "category", "string"])
@pytest.mark.extras("pyarrow")
def test_a_column_that_is_declared_text_is_no_number(rows, dtype):
    digits = (rows["visits"] % 5).astype(str).astype(dtype)
    table = rows.assign(branch=digits)[["branch", "visits", "y"]]
    table.to_parquet("mine.parquet")
    for source in (table, "mine.parquet"):
        unreadable(source, "'branch' categorical", label="y")
        _, encoding = read_own_file(source, label="y", categorical="one-hot")
        assert encoding.columns[0].categories == ("0", "1", "2", "3", "4")
        with_numbers, _ = read_own_file(source, label="y", numeric=["branch"])
        assert with_numbers.X[:, 0].max() == 4


@pytest.mark.extras("openpyxl", "python_calamine")
def test_percentages_that_a_workbook_declares_as_text_are_numbers(rows):
    percentages = [i - 50 + 0.5 for i in range(N)]
    table = rows[["visits", "y"]].assign(share=[f"{p}%" for p in percentages])
    table.to_excel("mine.xlsx", index=False)
    dataset, _ = read_own_file("mine.xlsx", label="y", numeric=["share"])
    np.testing.assert_allclose(dataset.X[:, 1], np.array(percentages) / 100)


def test_records_may_be_categories(rows):
    table = rows[["visits", "y"]].assign(record=[{"a": i % 2} for i in range(N)])
    dataset, _ = read_own_file(table, label="y", categorical=["record"])
    assert dataset.feature_names[1:] == ("record={'a': 0}", "record={'a': 1}")


@pytest.mark.parametrize("notation", ["1{}", "{},5", "1,{}.00"])
def test_new_rows_have_the_decimal_mark_of_the_training_rows(rows, notation):
    digits = range(101, 101 + N)
    old = rows[["y"]].assign(cost=[notation.format(number) for number in digits])
    new = rows[["y"]].assign(cost=[f"1.{number}" for number in digits])
    _, encoding = read_own_file(written(old, "old.csv"), label="y")
    path = written(new, "new.csv", sep="\t")
    with raises(InputError, "'cost' 1 '1.101' 1101 (decimal ,)"):
        read_new_rows(path, encoding)
    with raises(InputError, "'1.101'"):
        encoding.encode(new)
    [(X, _)] = read_new_blocks(path, encoding, decimal=",")
    assert X[0, 0] == 1101


N_NUMBERED = 20


@pytest.fixture
def numbered(rows):
    """Rows with an id each."""
    ids = [f"r{i}" for i in range(N_NUMBERED)]
    return rows[["visits", "y"]].head(N_NUMBERED).assign(id=ids)


def with_blank_rows(table):
    """Return the lines of a table with one blank row before r3, and two before r9."""
    names, *lines = table.to_csv(index=False).splitlines()
    return [names, *lines[:3], " \t", *lines[3:9], "", ',"",', *lines[9:]]


# of the rows of `with_blank_rows`
NUMBERS = [*range(1, 4), *range(5, 11), *range(13, 24)]


def expect_row_numbers(table, path, *layout):
    """Expect that the list of a file's own rows numbers them by `NUMBERS`."""
    model = ["--solver", "logistic-regression", "--splits", "1", "--save", "m.npz"]
    succeed("fit", path, "--label", "y", "--id", "id", *model, *layout)
    text = succeed("score", "m.npz", path, "--id", "id", *layout).stdout
    ranking = pd.read_csv(io.StringIO(text)).sort_values("row")
    assert ranking["row"].tolist() == NUMBERS
    assert ranking["id"].tolist() == table["id"].tolist()


def test_blank_rows_of_csv_count(numbered):
    """Also before the names; the last one has no line end."""
    lines = [" ", *with_blank_rows(numbered), "", "  "]
    Path("mine.csv").write_text("\n".join(lines))
    expect_row_numbers(numbered, "mine.csv")


def test_blank_rows_of_a_file_with_old_line_ends_and_titles_count(numbered):
    titles = '"My\rbook",,\rsize: 3"\r\r,,\r'
    lines = [*with_blank_rows(numbered), ",,", ""]
    Path("mac.csv").write_text(titles + "\r".join(lines))
    expect_row_numbers(numbered, "mac.csv", "--skip-rows", "3")


@pytest.mark.extras("openpyxl", "python_calamine")
def test_blank_rows_of_a_workbook_count(numbered):
    from openpyxl import Workbook

    book = Workbook()
    for line in with_blank_rows(numbered):
        is_blank = len(line) <= 4
        cells = [] if is_blank else line.split(",")
        book.active.append([int(t) if t.isdigit() else t for t in cells])
    book.save("mine.xlsx")
    expect_row_numbers(numbered, "mine.xlsx")


def test_blank_rows_count_in_messages(numbered):
    lines = [*with_blank_rows(numbered), "", "", "?,1,r20"]
    Path("mine.csv").write_text("\n".join(lines))
    row = NUMBERS[-1] + 3
    unreadable("mine.csv", f"'visits' {row} '?'", label="y", drop=["id"])


@pytest.mark.parametrize(
    ("place", "n_lines"),
    [
        pytest.param(0, 41, id="many rows"),
        pytest.param(0, 3, id="three rows, first column"),
        pytest.param(1, 2, id="two rows, second column"),
        pytest.param(2, 2, id="two rows, last column"),
    ],
)
def test_a_quotation_mark_that_swallows_rows_is_named(rows, place, n_lines):
    table = rows[["visits", "y"]].copy()
    table.insert(place, "note", "fine")
    table.loc[[20, 19 + n_lines], "note"] = '"3'
    table.loc[5, "note"] = '"Hello,\nthanks, dear,\nall"'  # is no mistake
    lines = [",".join(map(str, row)) for row in [[*table], *table.to_numpy()]]
    Path("mine.csv").write_text("\n".join(lines))
    with warns(UserWarning, f"mine.csv 21 'note' {n_lines} lines"):
        dataset, encoding = read_own_file("mine.csv", label="y", drop=["note"])
    assert len(dataset.y) == N + 1 - n_lines
    with warns(UserWarning, "21 'note'"):
        read_new_rows("mine.csv", encoding)


@pytest.fixture
def workbook_of_sheets(rows):
    """Write a workbook of the sheets old and new, below three lines, and a chart."""
    from openpyxl.chart import BarChart

    with pd.ExcelWriter("mine.xlsx") as book:
        rows.to_excel(book, sheet_name="old", index=False)
        rows.to_excel(book, sheet_name="new", index=False, startrow=3)
        book.book.create_chartsheet("bars").add_chart(BarChart())
    return "mine.xlsx"


@pytest.mark.extras("openpyxl", "python_calamine")
def test_a_sheet_is_read_below_empty_lines(workbook_of_sheets):
    dataset, _ = read_own_file(
        workbook_of_sheets,
        label="y",
        missing="median",
        categorical="one-hot",
        sheet="new",
    )
    assert len(dataset.y) == N


@pytest.mark.parametrize(
    ("options", "places"),
    [
        pytest.param({}, "2 sheet old new", id="no name"),
        pytest.param({"sheet": "nwe"}, "'nwe' old new", id="unknown name"),
        pytest.param({"sheet": "bars"}, "'bars' old new", id="chart"),
        pytest.param(
            {"sheet": "new", "skip_rows": 1000}, "1,000 skip_rows", id="no rows below"
        ),
    ],
)
@pytest.mark.extras("openpyxl", "python_calamine")
def test_a_sheet_that_is_not_there_is_refused(workbook_of_sheets, options, places):
    unreadable(workbook_of_sheets, f"mine.xlsx {places}", label="y", **options)


def book_of_branches():
    """Return a workbook in memory whose second row has no branch."""
    from openpyxl import Workbook

    book = Workbook()
    for line in [["branch", "sum", "y"], ["a", 1, 0], [None, 2, 1], ["b", 3, 1]]:
        book.active.append(line)
    return book


@pytest.mark.extras("openpyxl", "python_calamine")
def test_hidden_rows_are_named_and_formulas_without_values_refused(work_folder):
    book = book_of_branches()
    book.active["D1"] = "twice"
    book.active["D2"] = "=2*B2"
    book.active.row_dimensions[3].hidden = True
    book.save("formula.xlsx")
    with warns(UserWarning, "formula.xlsx 1 hidden"):
        unreadable("formula.xlsx", "'twice' formulas Excel", label="y", drop=["branch"])


@pytest.mark.extras("openpyxl", "python_calamine")
def test_cells_that_are_merged_over_rows_are_refused(work_folder):
    book = book_of_branches()
    book.active.merge_cells("A2:A3")
    book.save("merged.xlsx")
    unreadable("merged.xlsx", "merged.xlsx A2:A3 merged", label="y")


def test_text_is_no_workbook(rows):
    path = Path(written(rows, "text.csv")).rename("text.xlsx")
    unreadable(path, "text xlsx suffix", label="y")


@pytest.fixture
def loans(rows):
    """Write 30 rows of each of four labels, two of which differ in their case."""
    labels = np.resize(["Charged Off", "Late", "Paid", "paid "], N)
    table = rows[["visits"]].assign(y=labels)
    return written(table, "loans.csv")


def test_several_labels_may_be_positive(loans):
    with warns(UserWarning, "Paid (30) paid (30)"):
        dataset, _ = read_own_file(loans, label="y", positive=["Charged Off", "Late"])
    assert dataset.n_pos == N / 2


def test_each_of_several_positive_labels_must_be_there(loans):
    unreadable(loans, "'late' Late", label="y", positive=["Charged Off", "late"])


def test_not_all_labels_may_be_positive(loans):
    labels = ["Charged Off", "Late", "Paid", "paid "]
    unreadable(loans, "one class", label="y", positive=labels)


@pytest.fixture
def with_new_gaps(rows):
    """Write rows without a gap, and the same with three in ``visits``."""
    table = rows.fillna({"spent": 1.0})[["spent", "visits", "y"]]
    written(table, "mine.csv")
    visits = table["visits"].where(table.index >= 3)
    written(table.assign(visits=visits), "new.csv")
    return table


def test_gaps_that_training_rows_never_had_get_the_median(with_new_gaps):
    dataset, encoding = read_own_file("mine.csv", label="y")
    with warns(UserWarning, "3 filled visits"):
        X = read_new_rows("new.csv", encoding)
    assert (X[:3, 1] == with_new_gaps["visits"].median()).all()
    assert X[3:].tobytes() == dataset.X[3:].tobytes()


@pytest.mark.usefixtures("with_new_gaps")
def test_gaps_are_refused_if_that_is_asked_for():
    succeed("fit", "mine.csv", "--label", "y", "--save", "m.npz", "--splits", "1")
    refused(["score", "m.npz", "new.csv", "--refuse-gaps"], "new.csv 'visits' 1")


@pytest.fixture
def windows_text(rows):
    return written(rows[["visits", "city", "y"]], "mine.csv", encoding="cp1252")


def test_text_that_is_not_utf8_is_read_with_a_warning(windows_text):
    with warns(UserWarning, "mine.csv Windows-1252"):
        _, encoding = read_own_file(windows_text, label="y", categorical="one-hot")
    assert encoding.columns[1].categories == ("Bern", "Oslo", "Zürich")


def test_text_in_the_encoding_that_is_named_is_read_without_a_warning(windows_text):
    options = {"label": "y", "categorical": "one-hot"}
    read_own_file(windows_text, **options, encoding="cp1252")
    unreadable(windows_text, "mine.csv utf-8", **options, encoding="utf-8")


LIST_OPTIONS = ["--id", "customer", "--keep", "phone,city", "--top", "5"]


@pytest.fixture
def customers(rows):
    """Write rows with customers and phones in three formats, and fit a model."""
    table = rows.fillna({"spent": 1.0})[["spent", "visits", "city", "y"]]
    table["customer"] = [f"0{i}" for i in range(N)]
    table["phone"] = range(700, 700 + N)
    table.to_csv("mine.csv", index=False)
    table.to_excel("mine.xlsx", index=False)
    table.to_parquet("mine.parquet")
    columns = ["--label", "y", "--drop", "city", "--drop", "phone", "--id", "customer"]
    model = ["--solver", "logistic-regression", "--splits", "1", "--save", "m.npz"]
    succeed("fit", "mine.csv", *columns, *model)
    return table


@pytest.fixture
def best(customers):
    """The list of the CSV file, as text."""
    return succeed("score", "m.npz", "mine.csv", *LIST_OPTIONS).stdout


def table_of_list(text):
    return pd.read_csv(io.StringIO(text), dtype={"customer": str})


@pytest.mark.extras("openpyxl", "pyarrow", "python_calamine")
def test_the_list_has_the_columns_that_are_asked_for(best):
    table = table_of_list(best)
    names = ["rank", "row", "customer", "phone", "city", "score"]
    assert table.columns.tolist() == names
    assert table["phone"].tolist() == [699 + row for row in table["row"]]


@pytest.mark.parametrize(
    ("source", "target"),
    [
        pytest.param("mine.csv", "list.xlsx", id="CSV to a workbook"),
        pytest.param("mine.xlsx", "list.parquet", id="a workbook to Parquet"),
        pytest.param("mine.parquet", "list.csv", id="Parquet to CSV"),
    ],
)
@pytest.mark.extras("openpyxl", "pyarrow", "python_calamine")
def test_the_list_is_the_same_in_any_format(best, source, target):
    """With numbers as numbers; of text, Parquet keeps the type."""
    succeed("score", "m.npz", source, *LIST_OPTIONS, "--out", target)
    expected = table_of_list(best)
    match Path(target).suffix:
        case ".csv":
            assert Path(target).read_text() == best
        case ".xlsx":
            table = pd.read_excel(target, dtype={"customer": str}, engine="openpyxl")
            pd.testing.assert_frame_equal(table, expected)
        case ".parquet":
            table = pd.read_parquet(target).astype({"phone": int})
            pd.testing.assert_frame_equal(table, expected, check_dtype=False)


@pytest.mark.extras("openpyxl", "pyarrow", "python_calamine")
def test_the_list_is_the_same_as_json(best):
    text = succeed("score", "m.npz", "mine.xlsx", *LIST_OPTIONS, "--json").stdout
    assert json.loads(text) == table_of_list(best).to_dict("records")


@pytest.mark.extras("openpyxl", "pyarrow", "python_calamine")
def test_the_list_is_the_same_from_a_pipe(best):
    rows = Path("mine.csv").read_bytes()
    assert invoke("score", "m.npz", "-", *LIST_OPTIONS, input=rows).stdout == best


@pytest.mark.extras("openpyxl", "pyarrow", "python_calamine")
def test_the_list_may_have_all_columns(customers):
    text = succeed("score", "m.npz", "mine.csv", "--keep", "all", "--top", "1").stdout
    assert text.startswith("rank,row,spent,visits,city,y,customer,phone,score\n")


@pytest.mark.extras("openpyxl", "pyarrow", "python_calamine")
def test_columns_that_a_list_cannot_have_are_refused(customers):
    refused(["score", "m.npz", "mine.csv", "--keep", "fone"], "'fone' 'phone'")
    written(customers.rename(columns={"phone": "score"}), "taken.csv")
    refused(["score", "m.npz", "taken.csv", "--keep", "score"], "'score'")


def answer_to(message):
    """Return the arguments of the command that a message proposes."""
    _, found, command = message.rpartition("this would be accepted: ")
    assert found, message
    _, *arguments = shlex.split(command)
    return arguments


def with_two_spellings(rows):
    labels = np.where(rows["y"] > 0, "yes", "no")
    is_loud = np.arange(N) % 5 == 0
    return rows.assign(y=np.where(is_loud, np.char.upper(labels), labels))


def with_identifiers_beside_gaps(rows):
    numbers = np.where(np.arange(N) < 3, np.nan, np.arange(N))
    tickets = [None, None, *(f"K{i:03}" for i in range(2, N))]
    return rows.assign(customer=numbers, ticket=tickets)


def with_a_slip(rows):
    visits = rows["visits"].astype(str)
    visits[7] = "1O"
    return rows.assign(visits=visits)


def with_amounts(rows):
    amounts = rows["visits"].map("{:,}".format)
    digits = amounts.str.replace(",", "")
    return rows.assign(total=amounts, share="9.75%", paid=digits)


def with_one_column(name, values):
    """Return a function that adds a column, whose values are repeated, to rows."""
    return lambda rows: rows.assign(**{name: np.resize(values, N)})


def with_other_names(**names):
    """Return a function that renames columns of rows."""
    return lambda rows: rows.rename(columns=names)


# Tables that need a decision, each made of the rows
MESSES = {
    "spellings": with_two_spellings,
    "three labels": with_one_column("y", ["0", "1", "-1", "0", "1"]),
    "label by another name": with_other_names(y="Churned"),
    "text and gaps": with_other_names(),
    "words": with_one_column("country", ["NA", "DE", "None", "NO"]),
    "identifier": with_one_column("customer", [f"K{i:03}" for i in range(N)]),
    "identifiers with gaps": with_identifiers_beside_gaps,
    "codes": with_one_column("zip", [f"0{i}150" for i in range(7)]),
    "a slip": with_a_slip,
    "mixed": with_one_column("doors", ["2", "3", "4", "5more"]),
    "free text": with_one_column("note", [f"note {i} of {i % 90}" for i in range(N)]),
    "amounts": with_amounts,
    "a leak": lambda rows: rows.assign(closed=rows["y"] + np.arange(N) / 1e4),
    "names": with_other_names(city="city, or town", spent="spent (in $)"),
    "empty column": with_one_column("empty", [np.nan]),
    "a name like an option's word": with_other_names(city="error"),
}
# whose columns have types
TYPED_MESSES = ["text and gaps", "codes", "amounts"]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("mess", MESSES)
def test_the_command_that_is_proposed_for_a_messy_csv_file_works(rows, mess):
    MESSES[mess](rows).to_csv("mine.csv", index=False)
    expect_fit_as_proposed("mine.csv", mess)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("mess", TYPED_MESSES)
@pytest.mark.extras("openpyxl", "python_calamine")
def test_the_command_that_is_proposed_for_a_messy_workbook_works(rows, mess):
    MESSES[mess](rows).to_excel("mine.xlsx", index=False)
    expect_fit_as_proposed("mine.xlsx", mess)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("mess", TYPED_MESSES)
@pytest.mark.extras("pyarrow")
def test_the_command_that_is_proposed_for_a_messy_parquet_file_works(rows, mess):
    MESSES[mess](rows).to_parquet("mine.parquet", index=False)
    expect_fit_as_proposed("mine.parquet", mess)


def expect_fit_as_proposed(path, mess):
    """Expect a model at once, or by the command that is proposed.

    It has no amounts as categories, and drops no column that can be read.
    """
    label = [] if mess == "label by another name" else ["--label", "y"]
    model = ["--save", "m.npz", "--solver", "logistic-regression", "--splits", "1"]
    done = invoke("fit", path, *label, *model)
    if done.exit_code != 0:
        done = invoke(*answer_to(done.stderr))
    assert done.exit_code == 0, done.stderr
    columns = Model.load("m.npz").encoding.columns
    names = [column.name for column in columns]
    assert "since" in names
    if mess != "a slip":
        assert "visits" in names
    assert max(len(column.features) for column in columns) < 10


N_LABELLED = 90
LIST_IDS = {
    "customer": [f"K{i}" for i in range(N - 4)] + ["#N/A", "=1+1", "1.50", "1e208"],
    "zeros": [f"{i:05}" for i in range(N)],
    "long": [f"{10**16 + i}" for i in range(N)],
    "infinite": [f"{i}.5" if i - 90 else "inf" for i in range(N)],
    "gap": [f"{i}" if i - 90 else "" for i in range(N)],
    "short": [f"{i}" for i in range(N)],
}
MODEL_OPTIONS = [
    "--label",
    "y",
    "--positive",
    "yes",
    "--id",
    ",".join(LIST_IDS),
    "--k",
    "5",
    "--solver",
    "logistic-regression",
]


@pytest.fixture
def partly_labelled(rows, in_this_process):
    """Write rows with ids, of which the last thirty have no label."""
    table = rows.drop(columns=["since", "city"]).fillna({"spent": 1.0})
    labels = table["y"].map({0: "no", 1: "yes"})
    table = table.assign(y=labels.where(table.index < N_LABELLED), **LIST_IDS)
    return written(table, "both.csv")


@pytest.fixture
def labelled(partly_labelled):
    """Write the rows with a label alone."""
    table = pd.read_csv(partly_labelled, dtype="str", keep_default_na=False)
    return written(table[:N_LABELLED], "known.csv")


def fit_with_list(path, list_path):
    return ["fit", path, *MODEL_OPTIONS, "--save", "m.npz", "--open", list_path]


def compare_with_list(path, list_path, folder="results"):
    options = ["--out", folder, "--splits", "2", "--open", list_path]
    return ["compare", path, *MODEL_OPTIONS, *options]


def test_rows_without_a_label_may_be_ranked_by_the_command_that_is_proposed(
    partly_labelled,
):
    fit = ["fit", partly_labelled, *MODEL_OPTIONS, "--save", "m.npz"]
    message = refused(fit, "91 label 29 open both-ranked.csv")
    succeed(*answer_to(message))
    assert Path("both-ranked.csv").is_file()


@pytest.fixture
def ranked_alone(partly_labelled, labelled):
    """Return the list of the rows without a label, by a model of the others."""
    succeed("fit", labelled, *MODEL_OPTIONS, "--save", "alone.npz")
    table = pd.read_csv(partly_labelled, dtype="str", keep_default_na=False)
    path = written(table[N_LABELLED:].drop(columns="y"), "open.csv")
    options = ["--id", ",".join(LIST_IDS), "--probability"]
    text = succeed("score", "alone.npz", path, *options).stdout
    ranking = pd.read_csv(io.StringIO(text), dtype="str", keep_default_na=False)
    place_in_whole_file = ranking["row"].astype(int) + N_LABELLED
    return ranking.assign(row=place_in_whole_file.astype(str))


def test_ids_like_infinity_are_text_in_json(ranked_alone):
    options = ["--id", ",".join(LIST_IDS), "--probability", "--json"]
    text = succeed("score", "alone.npz", "open.csv", *options).stdout
    json.loads(text, parse_constant=pytest.fail)  # Infinity is no JSON


def test_rows_without_a_label_are_the_list(partly_labelled, ranked_alone):
    text = succeed(*fit_with_list(partly_labelled, "ranked.csv")).stdout
    assert "30 rows without a label, ranked" in text
    assert "hits among the first 5 (" in text
    ranking = pd.read_csv("ranked.csv", dtype="str", keep_default_na=False)
    pd.testing.assert_frame_equal(ranking.iloc[:, :10], ranked_alone.iloc[:, :10])


@pytest.mark.extras("openpyxl")
def test_rows_without_a_label_are_the_list_in_a_workbook(partly_labelled, ranked_alone):
    from openpyxl import load_workbook

    text = succeed(*fit_with_list(partly_labelled, "ranked.xlsx")).stdout
    assert "30 rows without a label, ranked" in text
    assert "hits among the first 5 (" in text
    ranking = pd.read_excel(
        "ranked.xlsx", dtype="str", keep_default_na=False, engine="openpyxl"
    )
    pd.testing.assert_frame_equal(ranking.iloc[:, :8], ranked_alone.iloc[:, :8])
    types_of_columns = []
    for cells in load_workbook("ranked.xlsx").active.iter_cols(min_row=2, max_col=8):
        types_of_columns.append({cell.data_type for cell in cells if cell.value})
    number = {"n"}
    text = {"s"}
    assert types_of_columns == [number, number, text, text, text, text, text, number]


@pytest.mark.extras("pyarrow")
def test_rows_without_a_label_are_the_list_of_a_comparison(partly_labelled):
    command = compare_with_list(partly_labelled, "compared.parquet")
    assert "30 rows" in succeed(*command).stdout
    assert len(pd.read_parquet("compared.parquet")) == 30


def test_a_comparison_that_is_only_written_as_config_has_no_list(partly_labelled):
    command = compare_with_list(partly_labelled, "compared.csv")
    refused([*command, "--config", "c.yaml"], "--open --config")


@pytest.mark.extras("openpyxl")
def test_a_list_of_more_rows_than_a_sheet_has_is_refused(partly_labelled, monkeypatch):
    monkeypatch.setattr("precbench.tables.list_file._MOST_ROWS", 29)
    command = compare_with_list(partly_labelled, "list.xlsx", folder="none")
    refused(command, "list.xlsx 30 CSV")
    assert not Path("none").exists()
    assert not Path("list.xlsx").exists()


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("\a", id="control character"),
        pytest.param("long" * 9999, id="longer than a cell"),
    ],
)
@pytest.mark.extras("openpyxl")
def test_texts_that_a_sheet_cannot_hold_are_refused(labelled, text):
    succeed("fit", labelled, *MODEL_OPTIONS, "--save", "m.npz")
    new = written(pd.read_csv(labelled).assign(zeros=text), "bell.csv")
    score = ["score", "m.npz", new, "--id", "zeros", "--top", "9"]
    refused([*score, "--out", "list.xlsx"], "list.xlsx 'zeros'")
    assert not Path("list.xlsx").exists()


@pytest.mark.parametrize(
    ("list_path", "places"),
    [
        pytest.param("list.txt", "list.txt .csv .xlsx", id="no format of lists"),
        pytest.param("both.csv", "both.csv the file of the rows", id="the file itself"),
    ],
)
def test_a_list_that_cannot_be_written_is_refused(partly_labelled, list_path, places):
    refused(fit_with_list(partly_labelled, list_path), places)


def test_rows_without_any_label_are_refused(partly_labelled):
    table = pd.read_csv(partly_labelled, dtype="str", keep_default_na=False)
    path = written(table.assign(y=None), "none.csv")
    refused(fit_with_list(path, "open.csv"), "label missing")


def test_without_a_row_to_be_ranked_there_is_no_list(labelled):
    assert "no list" in succeed(*fit_with_list(labelled, "none.csv")).stdout


def test_a_file_that_is_cut_off_is_refused(rows):
    table = rows[["spent", "visits", "y"]].fillna({"spent": 1.0})
    options = ["--label", "y", "--missing", "median", "--solver", "logistic-regression"]
    succeed("fit", written(table, "mine.csv"), *options, "--save", "m.npz")
    whole = Path("mine.csv").read_text()
    *lines, last_line = whole.splitlines()
    first_value, *_ = last_line.split(",")
    Path("cut.csv").write_text("\n".join([*lines, first_value]))
    refused(["score", "m.npz", "cut.csv"], "cut.csv last 1 3 cut")
    fit = ["fit", "cut.csv", *options, "--save", "n.npz"]
    refused(fit, "cut.csv last 1 3 cut")
    Path("unended.csv").write_text(whole.rstrip("\n"))
    succeed("score", "m.npz", "unended.csv", "--top", "1")


@pytest.mark.filterwarnings("ignore")
def test_what_is_missing_among_lists_is_missing(rows):
    """In rows of float32, too, hashed as numbers of twice the length."""
    lists = [[i % 2] for i in range(1, N)]
    table = rows[["visits", "y"]].assign(tags=[None, *lists])
    dataset, encoding = read_own_file(
        table, label="y", categorical=["tags"], missing="most-frequent", dtype="float32"
    )
    assert dataset.feature_names == (
        "visits",
        "tags=[0]",
        "tags=[1]",
        "tags is missing",
    )
    assert dataset.X[0].tolist()[1:] == [0, 1, 1]
    assert TrainingRows.learn(dataset.X).count(encoding.encode(table)) == N


# --- the profile of a table: what it holds by hand, and what would be done with it ---


@pytest.fixture
def table(work_folder):
    """A table with an identifier, gaps, dates, codes, text, a leak and copies."""
    rng = np.random.default_rng(0)
    y = rng.random(200) < 0.2
    ages = rng.integers(20, 60, 200)
    is_gap = rng.random(200) < 0.1
    amounts = rng.normal(size=200).round(2)
    n_days = rng.integers(0, 99, 200)
    rows = pd.DataFrame(
        {
            "age": ages,
            "paid": np.where(is_gap, np.nan, amounts),
            "since": pd.Timestamp("2024-01-01") + pd.to_timedelta(n_days, "D"),
            "plan": rng.choice(["a", "b", "c"], 200, p=[0.6, 0.3, 0.1]),
            "closed": y + 0.1 * rng.random(200).round(3),
            "none": np.nan,
            "left": np.where(y, "yes", "no"),
        }
    )
    rows = pd.concat([rows, rows.head(3)], ignore_index=True)
    rows.to_csv("mine.csv", index=False)
    return rows


def profiled_columns(path, **options):
    """Return what each column holds, by its name."""
    profile = precbench.profile(path, **options)
    return {column.name: column for column in profile.columns}


def test_rows_of_a_table_are_counted(table):
    profile = precbench.profile("mine.csv", label="left", positive="yes")
    assert profile.rows == 203
    assert profile.duplicates == 3
    assert profile.positives == (table["left"] == "yes").sum()


def test_a_table_that_cannot_be_compared_has_a_refusal(table):
    profile = precbench.profile("mine.csv", label="left", positive="yes")
    assert "'closed' has an AUC" in str(profile.refusal)
    assert "'paid'" in str(profile.refusal)
    assert profile.outlook is None


def test_columns_are_described_as_by_hand(table):
    columns = profiled_columns("mine.csv", label="left", positive="yes")
    assert {name: column.holds for name, column in columns.items()} == {
        "age": "numbers",
        "paid": "numbers",
        "since": "dates",
        "plan": "text",
        "closed": "numbers",
        "none": "nothing",
    }
    for name, column in columns.items():
        assert column.distinct == table[name].nunique()
        assert column.missing == table[name].isna().sum()
    assert columns["age"].low == str(table["age"].min())
    assert columns["age"].high == str(table["age"].max())
    assert columns["since"].low == f"{table['since'].min():%Y-%m-%d}"
    assert columns["plan"].low == "a"
    auc = roc_auc_score(table["left"] == "yes", table["closed"])
    assert columns["closed"].auc == pytest.approx(auc)
    assert columns["none"].auc is None


def test_a_profile_as_a_frame_has_a_row_for_each_column(table):
    profile = precbench.profile("mine.csv", label="left", positive="yes")
    assert profile.frame["name"].tolist() == [c for c in table.columns if c != "left"]


def test_without_labels_no_column_is_judged(table):
    profile = precbench.profile("mine.csv")
    assert profile.positives is None
    assert "left" in [column.name for column in profile.columns]
    assert {column.auc for column in profile.columns} == {None}


def test_the_profile_proposes_a_command_that_works(table):
    done = invoke("profile", "mine.csv", "--label", "left", "--positive", "yes")
    assert done.exit_code == 0
    assert "3 duplicates of an earlier row" in done.stdout
    [sentence] = naming(done.stdout, "this would be accepted")
    _, _, options = sentence.partition("precbench compare ")
    as_proposed = ["profile", *options.split()]
    text = succeed(*as_proposed).stdout
    assert "compare refuses" not in text
    assert "compare would train" in text
    profile = json.loads(succeed(*as_proposed, "--json").stdout)
    assert profile["refusal"] is None
    assert profile["rows"] == 203
    assert [column["name"] for column in profile["columns"]] == list(table.columns[:-1])


def test_what_is_no_table_is_refused(work_folder):
    (work_folder / "mine.svm").write_text("1 1:2\n-1 1:3\n")
    refused(["profile", "mine.svm"], "mine.svm")
    refused(["profile", "none.csv", "--label", "y"], "none.csv")


# --- files of each format as people have them: read right, or refused ---


N_ROWS = 60
RNG = np.random.default_rng(0)
ROWS = pd.DataFrame(
    {"x": RNG.standard_normal(N_ROWS).round(3), "z": RNG.integers(0, 50, N_ROWS)}
)
ROWS["y"] = np.resize([0, 1, 1], N_ROWS)
CSV = ROWS.to_csv(index=False)


class Case(NamedTuple):
    """A file, or the table in it, and what becomes of it."""

    content: str | bytes | pd.DataFrame
    holds: str = ""  # what is in column x, if the file can be read
    refusal: str = ""  # some words of it, if the file cannot be read


def params(cases):
    return [pytest.param(case, id=name) for name, case in cases.items()]


def rows_with(**columns):
    """Return the rows with other columns; a function makes one of the values of x."""
    table = ROWS.copy()
    for name, values in columns.items():
        table[name] = ROWS["x"].map(values).to_numpy() if callable(values) else values
    return table


def csv_with(**columns):
    return rows_with(**columns).to_csv(index=False)


POINT = "numbers (decimal point)"
COMMA = "numbers (decimal comma)"


def first_is(value):
    """Return the values of x with another first one."""
    return [value, *ROWS["x"][1:]]


def absolute(form):
    """Return a function that writes a value without its sign in a form."""
    return lambda value: form.format(abs(value))


def in_thousands(mark):
    """Return the rows with thousands in x, grouped by a mark."""
    return csv_with(x=lambda v: f"{v * 1234.56:,.2f}".replace(",", mark))


TEXTS = {
    "bom": Case("\ufeff" + CSV, holds="numbers"),
    "crlf": Case(CSV.replace("\n", "\r\n"), holds="numbers"),
    "cr": Case(CSV.replace("\n", "\r"), holds="numbers"),
    "utf-32": Case(CSV.encode("utf-32"), holds="numbers"),
    "blanks": Case(
        " \n" + CSV.replace("\n", "\n\t\n", 9).replace(",", ";") + "  ", holds="numbers"
    ),
    "a comma in a name": Case(
        CSV.replace(",", ";").replace("z", "z, km").replace(".", ","), holds=COMMA
    ),
    "a short row among semicolons": Case(
        f"x;z;y\n1;2\n{CSV[6:]}".replace(",", ";"), refusal="1 open"
    ),
    "utf-16": Case(CSV.encode("utf-16"), holds="numbers"),
    "no mark": Case(CSV.encode("utf-16-be"), holds="numbers"),
    "packed without a suffix": Case(gzip.compress(CSV.encode()), holds="numbers"),
    "commas at the ends": Case(CSV.replace("\n", ",\n"), holds="numbers"),
    "a wide line": Case(CSV + "1,2,1,4\n", refusal="61 4 3"),
    "a sum": Case(CSV + "9.7,308,\n", refusal="61 open totals"),
    "a workbook": Case(b"PK\3\4\x14\0", refusal="xlsx suffix"),
    "Parquet": Case(b"PAR1\x15\0", refusal="parquet, suffix"),
    "names again": Case(CSV + CSV, refusal="only: names, units totals 'x' 61 'z'"),
    "units below the names": Case(
        CSV.replace("y", "y\nkm,s,"), refusal="only: 'x' 1 'km' 'z' 's' 'y'"
    ),
    "two tables": Case(CSV + "\nsummary,count\nrows,120\n", refusal="'x' 'summary'"),
    "thousands by a blank": Case(in_thousands(" "), holds=POINT),
    "thousands by an apostrophe": Case(in_thousands("'"), holds=POINT),
    "thousands by a thin space": Case(in_thousands("\u2009"), holds=POINT),
    "CHF {:.2f}": Case(csv_with(x=absolute("CHF {:.2f}")), holds=POINT),
    "{:.2f} €": Case(csv_with(x=absolute("{:.2f} €")), holds=POINT),
    "({:.2f})": Case(csv_with(x=absolute("({:.2f})")), holds=POINT),
    "{:.2f}-": Case(csv_with(x=absolute("{:.2f}-")), holds=POINT),
    "- {:.2f}": Case(csv_with(x=absolute("- {:.2f}")), holds=POINT),
    "{:.2f} EUR": Case(csv_with(x=absolute("{:.2f} EUR")), holds=POINT),
    "exponents": Case(csv_with(x=lambda v: f"{v:.3E}".replace(".", ",")), holds=COMMA),
    "grades": Case(
        csv_with(x=np.resize(["1-", "2", "2-", "3"], N_ROWS)), refusal="'x' categorical"
    ),
    "-": Case(csv_with(x=first_is("-")), refusal="'x' 1 empty"),
    "\\N": Case(csv_with(x=first_is("\\N")), refusal="'x' 1 empty"),
    "a typeset minus": Case(
        csv_with(x=lambda v: f"{v}".replace("-", "\u2212")), holds=POINT
    ),
    "units": Case(csv_with(x=lambda v: f"{v:.1f} kg"), refusal="'x' drop"),
    "percent signs": Case(
        csv_with(x=lambda v: f"{v:.2%}" if v > 0 else "0"), holds=POINT
    ),
    "some percent signs": Case(csv_with(x=first_is("5%")), refusal="'x' 1 '5%' none"),
    "most percent signs": Case(
        csv_with(x=["5", *map("{:.2%}".format, ROWS["x"][1:])]), refusal="'x' 1 '5' (%)"
    ),
    "two currencies": Case(
        csv_with(x=["€ 5", *map("$ {}".format, ROWS["x"][1:])]),
        refusal="'x' 1 '€ 5' ($)",
    ),
    "hexadecimal": Case(
        csv_with(x=[hex(i % 9) for i in range(N_ROWS)]), refusal="'x' categorical"
    ),
    "two-digit years": Case(
        csv_with(x=[f"{1 + i % 28:02}.05.24" for i in range(N_ROWS)]),
        refusal="'x' date",
    ),
    "an error of Excel": Case(
        csv_with(x=first_is("#DIV/0!")), refusal="'x' 1 '#DIV/0!'"
    ),
    "infinity": Case(csv_with(x=first_is("inf")), refusal="'x' 1 'inf'"),
    "a nul": Case(
        CSV.replace("0.", "0\0.", 1), refusal="'x' 1" if PANDAS_IS_EXACT else "NUL"
    ),
    "shift-jis": Case(
        csv_with(x=np.resize(["東京", "大阪"], N_ROWS)).encode("shift-jis"),
        refusal="encoding",
    ),
    "a page": Case("<html><table><tr><td>x</td></tr></table></html>\n", refusal="rows"),
    "X or nothing": Case(
        csv_with(y=np.resize(["X", None], N_ROWS)), refusal="2 0 blank X,"
    ),
    "no or nothing": Case(
        csv_with(y=np.resize(["no", None], N_ROWS)), refusal="2 0 blank no,"
    ),
    "labels in words": Case(
        csv_with(y=np.resize(["No", "Yes"], N_ROWS)), refusal="positive No Yes"
    ),
}
TABLES = {
    "as it is": Case(ROWS, holds="numbers"),
    "truth": Case(rows_with(x=lambda v: v > 0), holds="numbers"),
    "numbers as text": Case(rows_with(x=str), refusal="'x' numeric categorical"),
    "percent as text": Case(
        rows_with(x="{:.2%}".format), refusal="'x' numeric categorical"
    ),
    "a gap": Case(rows_with(x=first_is(None)), refusal="'x' 1 missing"),
    "nothing": Case(rows_with(x=None), refusal="'x' drop"),
    "no labels": Case(rows_with(y=None), refusal="1 label Excel"),
    "dates": Case(
        rows_with(x=pd.date_range("2024-01-01", periods=N_ROWS).repeat(2)[:N_ROWS]),
        holds="dates",
    ),
    "times of day": Case(
        rows_with(x=[time(i % 24) for i in range(N_ROWS)]), refusal="'x' categorical"
    ),
    "an identifier": Case(rows_with(x=np.arange(N_ROWS)), refusal="'x' --id"),
    "a number as a name": Case(ROWS.rename(columns={"z": "3"}), holds="numbers"),
    "a sum below": Case(
        pd.concat([ROWS, ROWS.iloc[:1].assign(y=None)]), refusal="61 open"
    ),
}
# a column of a workbook may have values of several types
WORKBOOKS = {
    "a word among numbers": Case(rows_with(x=first_is("n/a")), refusal="'x' 1"),
}
PARQUET = {
    "lists": Case(rows_with(x=[[i] for i in range(N_ROWS)]), refusal="'x'"),
    "records": Case(
        rows_with(x=[{"a": i % 2} for i in range(N_ROWS)]), refusal="'x' categorical"
    ),
    "durations": Case(
        rows_with(x=pd.to_timedelta(np.arange(N_ROWS), unit="D")), refusal="'x'"
    ),
    "large integers": Case(rows_with(x=2**60 + np.arange(N_ROWS)), refusal="'x' --id"),
    "integers with gaps": Case(
        rows_with(x=pd.array([None, *range(1, N_ROWS)], "Int64")),
        refusal="'x' 1 missing",
    ),
}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("case", params(TEXTS))
def test_texts_as_people_have_them(work_folder, case):
    content = case.content
    Path("f.csv").write_bytes(content.encode() if isinstance(content, str) else content)
    expect_profile("f.csv", case)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("case", params(TABLES | WORKBOOKS))
@pytest.mark.extras("openpyxl", "python_calamine")
def test_workbooks_as_people_have_them(work_folder, case):
    case.content.to_excel("f.xlsx", index=False)
    expect_profile("f.xlsx", case)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("case", params(TABLES | PARQUET))
@pytest.mark.extras("pyarrow")
def test_parquet_as_people_have_it(work_folder, case):
    case.content.to_parquet("f.parquet", index=False)
    expect_profile("f.parquet", case)


def expect_profile(path, case):
    """Expect what the column x holds, or a refusal with the words of the case."""
    done = invoke("profile", path, "--label", "y", "--json")
    refusal = done.stderr
    holds = ""
    if done.exit_code != 2:
        profile = json.loads(done.stdout)
        refusal = profile["refusal"] or ""
        [holds] = [c["holds"] for c in profile["columns"] if c["name"] == "x"]
    if case.refusal:
        for word in case.refusal.split():
            assert word in refusal
    else:
        assert refusal == ""
        assert holds == case.holds


SHEET = "xl/worksheets/sheet1.xml"
RELATIONS = "xl/_rels/workbook.xml.rels"
TYPES = "[Content_Types].xml"


@pytest.fixture
def parts(rows):
    """The parts of a workbook as text, by their names in the archive."""
    rows[["visits", "y"]].to_excel("whole.xlsx", index=False)
    with zipfile.ZipFile("whole.xlsx") as archive:
        return {name: archive.read(name).decode() for name in archive.namelist()}


def packed(parts):
    """Write a workbook of these parts, and return the name of the file."""
    with zipfile.ZipFile("mine.xlsx", "w") as archive:
        for name, text in parts.items():
            archive.writestr(name, text)
    return "mine.xlsx"


@pytest.mark.parametrize(
    ("target", "place"),
    [
        pytest.param("worksheets/sheet1.xml", SHEET, id="relative"),
        pytest.param(f"/{SHEET}", SHEET, id="from the root"),
        pytest.param("./worksheets/sheet1.xml", SHEET, id="relative with a dot"),
        pytest.param("/data/rows.xml", "data/rows.xml", id="outside xl"),
        pytest.param("../data/rows.xml", "data/rows.xml", id="above the folder"),
    ],
)
@pytest.mark.extras("openpyxl", "python_calamine")
def test_a_sheet_is_read_wherever_the_workbook_has_it(rows, parts, target, place):
    parts[RELATIONS] = parts[RELATIONS].replace(f"/{SHEET}", target)
    parts[TYPES] = parts[TYPES].replace(SHEET, place)
    parts[place] = parts.pop(SHEET)
    dataset, _ = read_own_file(packed(parts), label="y")
    assert dataset.X[:, 0].tolist() == rows["visits"].tolist()


@pytest.mark.parametrize(
    ("relation", "other"),
    [
        pytest.param(f"/{SHEET}", "/xl/worksheets/none.xml", id="missing part"),
        pytest.param(f"/{SHEET}", "nowhere/none.xml", id="missing folder"),
        pytest.param(
            f'"/{SHEET}"',
            '"http://example.org/a.xml" TargetMode="External"',
            id="an address of the web",
        ),
        pytest.param('Id="rId1"', 'Id="rId77"', id="no such relation"),
    ],
)
@pytest.mark.extras("openpyxl", "python_calamine")
def test_a_workbook_that_names_another_sheet_is_refused(parts, relation, other):
    assert relation in parts[RELATIONS]
    parts[RELATIONS] = parts[RELATIONS].replace(relation, other)
    unreadable(packed(parts), "mine.xlsx sheet CSV", label="y")


@pytest.mark.parametrize("part", [SHEET, RELATIONS])
@pytest.mark.extras("openpyxl", "python_calamine")
def test_a_workbook_without_a_part_is_refused(parts, part):
    del parts[part]
    unreadable(packed(parts), "mine.xlsx sheet CSV", label="y")


@pytest.mark.extras("openpyxl", "python_calamine")
def test_a_workbook_of_charts_alone_is_refused(work_folder):
    from openpyxl import Workbook
    from openpyxl.chart import BarChart

    book = Workbook()
    book.create_chartsheet("Sales").add_chart(BarChart())
    del book["Sheet"]
    book.save("charts.xlsx")
    unreadable("charts.xlsx", "sheet rows CSV", label="y")


LONG_IDS = {
    "16 digits": [2**53 + 1 + 2 * i for i in range(N)],
    "17 digits": [10**16 + i for i in range(N)],
    "18 digits": [123456789012345678 + i for i in range(N)],
    "negative": [-(10**17) - i for i in range(N)],
    "few are long": [*range(N - 2), 2**53, 2**53 + 1],
    "20 digits": [10**19 + i for i in range(N)],
}
WIDE_IDS = {
    "25 digits": [10**24 + i for i in range(N)],
    "both signs": [(-1) ** i * (10**19 + i) for i in range(N)],
}
LONG_IDS_OF_FILES = [
    *(
        (suffix, name)
        for suffix in (".csv", ".tsv", ".csv.gz")
        for name in LONG_IDS | WIDE_IDS
    ),
    *(
        pytest.param(
            ".xlsx", name, marks=pytest.mark.extras("openpyxl", "python_calamine")
        )
        for name in LONG_IDS
    ),
    *(
        pytest.param(".parquet", name, marks=pytest.mark.extras("pyarrow"))
        for name in LONG_IDS
    ),
]


def write_integers(table, name):
    """Write a workbook whose column ``id`` has integers in full.

    openpyxl would round them, and so writes their places first.
    """
    places = [
        None if number is None else f"number {place}"
        for place, number in enumerate(table["id"])
    ]
    table.assign(id=places).to_excel("places.xlsx", index=False)
    with zipfile.ZipFile("places.xlsx") as source, zipfile.ZipFile(name, "w") as target:
        for member in source.namelist():
            text = source.read(member)
            if member == SHEET:
                text = re.sub(
                    rb't="inlineStr"><is><t>number (\d+)</t></is>',
                    lambda place: b't="n"><v>%d</v>' % table["id"][int(place[1])],
                    text,
                )
            target.writestr(member, text)


@pytest.fixture
def long_ids(suffix, case):
    return pd.Series((LONG_IDS | WIDE_IDS)[case], dtype=object)


@pytest.fixture
def file_of_ids(rows, suffix, long_ids):
    """Write the ids, of which the fourth is missing, in a format."""
    name = f"ids{suffix}"
    table = rows[["visits", "y"]].assign(id=long_ids)
    table.loc[3, "id"] = None
    if suffix == ".parquet":
        are_unsigned = long_ids.max() >= 2**63
        table["id"] = table["id"].astype("UInt64" if are_unsigned else "Int64")
        table.to_parquet(name)
    elif suffix == ".xlsx":
        write_integers(table, name)
    else:
        table.to_csv(name, index=False, sep="\t" if suffix == ".tsv" else ",")
    return name


# A gap turns integers into floats, of which neighbours would be equal.
in_each_format = pytest.mark.parametrize(("suffix", "case"), LONG_IDS_OF_FILES)


@in_each_format
def test_long_ids_beside_a_gap_are_distinct(file_of_ids):
    with warns(UserWarning, f"{file_of_ids} 'id' row 4 missing"):
        read_own_file(file_of_ids, label="y", id=["id"])
    column = profiled_columns(file_of_ids, label="y")["id"]
    assert column.distinct == N - 1
    assert column.missing == 1


@pytest.mark.filterwarnings("ignore:.*filled in")
@in_each_format
def test_long_ids_beside_a_gap_are_exact_as_categories(file_of_ids, long_ids):
    dataset, encoding = read_own_file(
        file_of_ids,
        label="y",
        categorical=["id"],
        missing="most-frequent",
        drop=["visits"],
    )
    known = long_ids.drop(3).map(str)
    assert sorted(encoding.columns[0].categories) == sorted(known)
    assert np.array_equal(read_new_rows(file_of_ids, encoding), dataset.X)


@pytest.mark.filterwarnings("ignore:.*filled in")
@in_each_format
def test_long_ids_beside_a_gap_are_the_nearest_numbers(file_of_ids, long_ids):
    dataset, encoding = read_own_file(
        file_of_ids, label="y", numeric=["id"], missing="median", drop=["visits"]
    )
    assert dataset.X[5, 0] == float(long_ids[5])
    assert np.array_equal(read_new_rows(file_of_ids, encoding), dataset.X)


def written_ids(rows, texts):
    table = rows[["visits"]].iloc[:3].assign(id=texts, y=[0, 1, 1])
    return written(table, "ids.csv")


@pytest.mark.parametrize(
    "texts",
    [
        pytest.param(["7", "007", "07"], id="leading zeros"),
        pytest.param(["1.10", "1.1", "1.100"], id="trailing zeros"),
        pytest.param(["1e5", "100000", "1E5"], id="exponents"),
        pytest.param(["NO", "N0", "no"], id="letters and digits"),
    ],
)
def test_ids_that_are_written_differently_are_different(rows, texts):
    read_own_file(written_ids(rows, texts), label="y", id=["id"])


@pytest.mark.parametrize(
    "texts",
    [
        pytest.param(["7", "7", "07"], id="two equal integers"),
        pytest.param(["0.1", "0.1", "0.10"], id="two equal decimals"),
    ],
)
def test_ids_that_are_written_alike_are_refused(rows, texts):
    path = written_ids(rows, texts)
    unreadable(path, "'id' 2 3 groups", label="y", id=["id"])


@pytest.mark.parametrize("gap", ["", "NA", "None", "nan"])
def test_a_missing_id_is_named(rows, gap):
    table = rows[["visits", "y"]].assign(id=[f"c{i}" for i in range(N)])
    table.loc[[6, 8], "id"] = gap
    path = written(table, "ids.csv")
    with warns(UserWarning, "ids.csv 'id' row 7 missing 1 other row"):
        read_own_file(path, label="y", id=["id"])


@pytest.mark.parametrize("gap", ["", "NA", "None", "nan"])
def test_two_equal_ids_are_refused_beside_missing_ones(rows, gap):
    table = rows[["visits", "y"]].assign(id=[f"c{i}" for i in range(N)])
    table.loc[[6, 8], "id"] = gap
    table.loc[3, "id"] = table.loc[4, "id"]
    path = written(table, "ids.csv")
    unreadable(path, f"'id' {N - 3} {N - 2} groups", label="y", id=["id"])


class Codes(NamedTuple):
    """Codes of training rows and of new rows."""

    old: list[str]
    new: list[str]
    places: list[int]  # of the new codes among the old ones, sorted; -1 if unseen


CODES = {
    "new floats": Codes(
        old=["1", "2", "3"], new=["1.0", "3.0", "2.0"], places=[0, 2, 1]
    ),
    "old floats": Codes(
        old=["1.0", "2.0", "3.0"], new=["3", "1", "2"], places=[2, 0, 1]
    ),
    "more zeros": Codes(old=["1", "2"], new=["2.000", "1.00"], places=[1, 0]),
    "negative": Codes(old=["-1", "1"], new=["1.0", "-1.0"], places=[1, 0]),
    "zero": Codes(old=["0", "1"], new=["0.0", "-0.0", "1.0"], places=[0, 0, 1]),
    "ten and more": Codes(
        old=["1", "10", "2"], new=["10.0", "2.0", "1.0"], places=[1, 2, 0]
    ),
    "leading zeros": Codes(
        old=["01", "1"], new=["1.0", "01", "01.0", "001"], places=[1, 0, -1, -1]
    ),
    "only leading zeros": Codes(
        old=["01", "02"], new=["1", "1.0", "2"], places=[-1, -1, -1]
    ),
    "no whole numbers": Codes(
        old=["1.5", "2"], new=["1.5", "1.50", "2.0", "15"], places=[0, -1, 1, -1]
    ),
    "versions": Codes(
        old=["1.0", "1.0.1", "1.1"],
        new=["1", "1.0", "1.0.1", "1.1", "11"],
        places=[0, 0, 1, 2, -1],
    ),
    "words": Codes(old=["a", "a.0", "b"], new=["a", "a.0", "b.0"], places=[0, 1, -1]),
    "a decimal comma": Codes(old=["1", "2"], new=["1,0", "2,0"], places=[0, 1]),
    "thousands": Codes(old=["1", "2"], new=["1,000", "2,00"], places=[-1, -1]),
    "long": Codes(
        old=["9007199254740993", "5"],
        new=["9007199254740993.0", "9007199254740992.0"],
        places=[1, -1],
    ),
}


@pytest.mark.filterwarnings("ignore:.*(unseen|seen in training)")
@pytest.mark.parametrize("codes", params(CODES))
def test_one_code_may_be_written_as_whole_number_and_as_float(work_folder, codes):
    y = np.arange(12) // 3 % 2
    old_rows = pd.DataFrame({"code": np.resize(codes.old, 12), "y": y})
    new_rows = pd.DataFrame({"code": codes.new})
    path = written(old_rows, "old.csv")
    _, encoding = read_own_file(path, label="y", categorical=["code"])
    assert [*encoding.columns[0].categories] == sorted(codes.old)
    X = read_new_rows(written(new_rows, "new.csv"), encoding)
    for row, place in zip(X, codes.places, strict=True):
        expected = np.arange(len(codes.old)) == place
        assert row.tolist() == expected.tolist()


@pytest.mark.parametrize(
    ("codes", "categories"),
    [
        pytest.param(["1", "1.0", "2", "2.0"], ("1", "2"), id="each both ways"),
        pytest.param(
            ["1", "1.0", "1.00", "x"], ("1", "x"), id="one both ways beside a word"
        ),
        pytest.param(
            ["1.0", "1.00", "01", "x"], ("01", "1", "x"), id="not a leading zero"
        ),
        pytest.param(["0", "-0.0", "1.0"], ("0", "1.0"), id="zeros"),
    ],
)
def test_codes_of_training_rows_are_merged(rows, codes, categories):
    table = pd.DataFrame({"code": np.resize(codes, 12), "y": np.arange(12) // 5 % 2})
    dataset, encoding = read_own_file(
        written(table, "codes.csv"), label="y", categorical=["code"]
    )
    assert encoding.columns[0].categories == categories
    assert (dataset.X.sum(axis=1) == 1).all()


@pytest.mark.extras("openpyxl", "pyarrow", "python_calamine")
@pytest.mark.filterwarnings("ignore:.*filled in")
def test_codes_are_the_same_in_any_type_and_format(rows):
    numbers = np.resize([3, 1, -2, 10], 24)
    y = np.arange(24) // 4 % 2
    columns = {
        "integers": numbers,
        "floats": numbers.astype(float),
        "texts": numbers.astype(str),
        "texts of floats": numbers.astype(float).astype(str),
    }
    paths = []
    for kind, codes in columns.items():
        table = pd.DataFrame({"code": codes, "y": y})
        table.to_csv(f"{kind}.csv", index=False)
        table.to_parquet(f"{kind}.parquet", index=False)
        table.to_excel(f"{kind}.xlsx", index=False)
        paths += [f"{kind}.csv", f"{kind}.parquet", f"{kind}.xlsx"]
    for path in paths:
        dataset, encoding = read_own_file(path, label="y", categorical=["code"])
        for other_path in paths:
            assert np.array_equal(read_new_rows(other_path, encoding), dataset.X)


class Dotted(NamedTuple):
    """How dates of two parts are written, and the format that a command proposes."""

    texts: list[str]
    date_format: str | None


MONTHS = [(year, month) for year in (2020, 2023, 2024) for month in range(1, 13)]
DAYS = [(day, month) for month in (1, 6, 10) for day in (1, 2, 20, 30)]
DOTTED_WITH_FORMAT = {
    "month.year": Dotted([f"{m:02}.{y}" for y, m in MONTHS], "%m.%Y"),
    "month.year without zeros": Dotted([f"{m}.{y}" for y, m in MONTHS], "%m.%Y"),
    "the last months": Dotted([f"{m}.{y}" for y, m in MONTHS if m > 9], "%m.%Y"),
    "year.month": Dotted([f"{y}.{m:02}" for y, m in MONTHS], "%Y.%m"),
    "year.month without zeros": Dotted([f"{y}.{m}" for y, m in MONTHS], "%Y.%m"),
    "day.month": Dotted([f"{d:02}.{m:02}" for d, m in DAYS], "%d.%m"),
    "month.day": Dotted([f"{m:02}.{d:02}" for d, m in DAYS], "%m.%d"),
}
DOTTED_WITHOUT_FORMAT = {
    "week.year": Dotted([f"{w:02}.2023" for w in range(1, 53)], None),
    "year.week": Dotted([f"2023.{w:02}" for w in range(1, 53)], None),
    "day.month or month.day": Dotted(["02.01", "01.10", "10.02", "03.12"], None),
    "a leap day": Dotted(["02.01", "29.02", "10.02", "03.12"], None),
}
DOTTED = DOTTED_WITH_FORMAT | DOTTED_WITHOUT_FORMAT


def written_dates(rows, texts, *, with_gap=False):
    """Write dates in the column ``when``, of which the sixth may be missing."""
    when = pd.Series(np.resize(texts, N).astype(object))
    if with_gap:
        when[5] = None
    return written(rows[["visits", "y"]].assign(when=when), "dotted.csv")


@pytest.mark.parametrize("dotted", params(DOTTED))
def test_times_of_two_parts_are_no_decimals(rows, dotted):
    path = written_dates(rows, dotted.texts)
    with raises(InputError, f"'when' row 1 {dotted.texts[0]!r} date") as caught:
        read_own_file(path, label="y", time="when")
    remedies = []
    if dotted.date_format is not None:
        remedies.append(("date_format", dotted.date_format))
    assert caught.value.remedies == remedies


@pytest.mark.parametrize("dotted", params(DOTTED_WITH_FORMAT))
def test_times_of_two_parts_are_read_with_their_format(rows, dotted):
    path = written_dates(rows, dotted.texts)
    date_format = dotted.date_format
    dataset, _ = read_own_file(path, label="y", time="when", date_format=date_format)
    dates = pd.to_datetime(np.resize(dotted.texts, N), format=date_format)
    assert np.array_equal(dataset.time, dates.as_unit("us").asi8)


@pytest.mark.filterwarnings("ignore:.*filled in")
@pytest.mark.parametrize("with_gap", [False, True])
@pytest.mark.parametrize("dotted", params(DOTTED))
def test_dates_of_two_parts_are_no_decimals(rows, dotted, with_gap):
    path = written_dates(rows, dotted.texts, with_gap=with_gap)
    options = {"label": "y", "missing": "median"}
    unreadable(path, f"{dotted.texts[0]!r} 'when' row 1 date numeric", **options)
    read_own_file(path, **options, numeric=["when"])
    read_own_file(path, **options, categorical=["when"])
    read_own_file(path, **options, drop=["when"])


@pytest.mark.filterwarnings("ignore:.*filled in")
@pytest.mark.parametrize("with_gap", [False, True])
@pytest.mark.parametrize("dotted", params(DOTTED_WITH_FORMAT))
def test_dates_of_two_parts_are_read_with_their_format(rows, dotted, with_gap):
    path = written_dates(rows, dotted.texts, with_gap=with_gap)
    date_format = dotted.date_format
    dataset, encoding = read_own_file(
        path, label="y", missing="median", date_format=date_format
    )
    dates = pd.to_datetime(np.resize(dotted.texts, N), format=date_format)
    is_known = np.arange(N) != 5 if with_gap else np.ones(N, dtype=bool)
    known_dates = dates[is_known]
    days = (known_dates - known_dates.min()).days
    assert np.array_equal(dataset.X[is_known, 1], days)
    assert np.array_equal(read_new_rows(path, encoding), dataset.X)


DECIMALS = {
    "prices": ["1.25", "10.50", "3.99", "12.10"],
    "cents": ["1.05", "2.10", "3.12", "0.07"],
    "quarters": ["2023.00", "2023.25", "2023.50", "2023.75"],
    "halves": ["2023.5", "2024.5"],
    "years": ["2021", "2022.0", "2023"],
    "four digits": ["1.2023", "2.5", "3.1999"],
    "small": ["0.01", "0.12", "0.05"],
    "negative": ["-1.05", "-2.10"],
    "large": ["123.01", "31.12", "1.05"],
    "heights": ["1.60", "1.72", "1.85"],
    "hours": ["01.30", "02.45", "11.15"],
    "one value": ["01.2023"],
}
DECIMALS_WITH_THOUSANDS = {"thousands": ["1.234,50", "2.345,75"]}


@pytest.mark.parametrize("texts", params(DECIMALS | DECIMALS_WITH_THOUSANDS))
def test_decimals_are_no_dates(rows, texts):
    dataset, _ = read_own_file(written_dates(rows, texts), label="y")
    assert dataset.feature_names == ("visits", "when")


@pytest.mark.parametrize("texts", params(DECIMALS))
def test_decimals_may_be_times(rows, texts):
    read_own_file(written_dates(rows, texts), label="y", time="when")


def sources_with_types(table):
    """Return a frame, and the names of a Parquet file and a workbook of its rows."""
    table.to_parquet("dotted.parquet", index=False)
    table.to_excel("dotted.xlsx", index=False)
    return [table, "dotted.parquet", "dotted.xlsx"]


TYPED = {name: DOTTED[name] for name in ("month.year", "week.year", "year.month")}


@pytest.mark.extras("openpyxl", "pyarrow", "python_calamine")
@pytest.mark.parametrize("dtype", [str, float])
@pytest.mark.parametrize("dotted", params(TYPED))
def test_dates_of_two_parts_are_no_decimals_in_files_with_types(rows, dotted, dtype):
    when = np.resize(np.array(dotted.texts).astype(dtype), N)
    table = rows[["visits", "y"]].assign(when=pd.Series(when).astype(dtype))
    for source in sources_with_types(table):
        unreadable(source, "'when' row 1 date", label="y", time="when")
        unreadable(source, "'when' row 1 date numeric", label="y")


@pytest.mark.extras("openpyxl", "pyarrow", "python_calamine")
@pytest.mark.parametrize("name", ["month.year", "year.month"])
def test_texts_of_two_parts_are_dates_in_files_with_types(rows, name):
    dotted = DOTTED_WITH_FORMAT[name]
    when = pd.Series(np.resize(dotted.texts, N)).astype(str)
    table = rows[["visits", "y"]].assign(when=when)
    for source in sources_with_types(table):
        options = {"label": "y", "date_format": dotted.date_format}
        read_own_file(source, **options, time="when")
        read_own_file(source, **options)


NUMBERS_AS_TEXT = [
    "-100000000000000009",
    "123456789012345678",
    "0.1234567890123456789",
    " 12 ",
    "1e5",
    "1.",
    ".5",
    "1E-400",
    "1e400",
    "-inf",
    "1_0",
    "0x10",
    "٣",
    "0\0.5",
    "+7",
    "1 2",
    "",
    "nan",
    "--1",
    "1e",
]


def test_text_is_the_nearest_number_with_any_pandas(monkeypatch):
    """Before 3.1, pandas takes the first three for neighbours, and 1e400 for a gap."""
    values = pd.Series(NUMBERS_AS_TEXT, dtype=object)
    numbers_of_pandas = as_numbers(values)
    monkeypatch.setattr(detectors, "PANDAS_IS_EXACT", False)
    numbers = as_numbers(values)
    nearest = [-100000000000000009.0, 123456789012345678.0, 0.1234567890123456789]
    assert numbers[:3].tolist() == nearest
    if PANDAS_IS_EXACT:
        assert np.array_equal(numbers, numbers_of_pandas, equal_nan=True)
