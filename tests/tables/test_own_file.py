"""Users' own files: formats, errors, and new rows encoded like the training rows."""

import gzip
import io
import json
import math
import tracemalloc
import warnings
from dataclasses import replace
from decimal import Decimal
from importlib import import_module
from importlib.util import find_spec

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_matrix, issparse, save_npz
from sklearn.impute import SimpleImputer

from precbench.core.errors import InputError
from precbench.tables.detectors import PANDAS_IS_EXACT
from precbench.tables.encoding import Column, Encoding, Gaps
from precbench.tables.own_file import read_new_blocks, read_own_file
from precbench.tables.own_table import table_of
from precbench.tables.problems import Problems, TableError
from precbench.tables.suspects import look_for_suspects
from tests.helpers import read_new_rows
from tests.sentences import mistakes, names, raises, unreadable, warns

pytestmark = [
    pytest.mark.frames,
    pytest.mark.filterwarnings("ignore:.*(filled in|unseen category)"),
]

TABLE = pd.DataFrame(
    {
        "age": [30.0, 40.0, 50.0, 60.0],
        "city": ["Rome", "Oslo", "Rome", "Bern"],
        "ok": [True, False, True, True],
        "patient": ["p2", "p1", "p2", "p3"],
        "y": ["yes", "no", "no", "yes"],
    }
)
OPTIONS = {
    "label": "y",
    "positive": "yes",
    "groups": "patient",
    "categorical": "one-hot",
}
EXPECTED = [[30, 0, 0, 1, 1], [40, 0, 1, 0, 0], [50, 0, 0, 1, 1], [60, 1, 0, 0, 1]]
WRITERS = {
    ".csv": lambda table, path: table.to_csv(path, index=False),
    ".csv.gz": lambda table, path: table.to_csv(path, index=False),
    ".tsv": lambda table, path: table.to_csv(path, index=False, sep="\t"),
    ".parquet": lambda table, path: table.to_parquet(path),
}


def csv(tmp_path, text, name="own.csv"):
    path = tmp_path / name
    path.write_text(text)
    return path


@pytest.mark.parametrize(
    "suffix", [*WRITERS, ".tsv.gz", ".csv.bz2", ".csv.xz", ".CSV.GZ"]
)
def test_tables(tmp_path, suffix):
    write = WRITERS[suffix if suffix in WRITERS else suffix.lower()[:4]]
    write(TABLE, path := tmp_path / f"own{suffix.lower()}")
    path = path.rename(tmp_path / f"own{suffix}")
    dataset, encoding = read_own_file(path, **OPTIONS)
    assert dataset.name == dataset.title == "own"
    assert dataset.X.tolist() == EXPECTED
    assert dataset.X.flags.c_contiguous
    assert dataset.y.tolist() == [1, -1, -1, 1]
    assert dataset.groups.tolist() == [0, 1, 0, 2]
    assert dataset.feature_names == ("age", "city=Bern", "city=Oslo", "city=Rome", "ok")
    assert encoding.feature_names == dataset.feature_names


@pytest.mark.extras("pyarrow")
def test_times(tmp_path):
    """Equal in any format and zone; in microseconds, whatever the file says."""
    texts = ["2024-03-01 12:00", "1969-12-31", "2024-03-01", "2024-02-29"]
    dates = pd.to_datetime(texts, format="ISO8601")
    expected = dates.as_unit("us").astype(np.int64).tolist()
    columns = {
        "text": dates.astype(str),
        "zone": (dates.tz_localize("UTC").tz_convert("Asia/Tokyo")).map(
            lambda t: t.isoformat()
        ),
        "stamp": dates,
        "milli": dates.as_unit("ms"),
        "tokyo": dates.tz_localize("UTC").tz_convert("Asia/Tokyo"),
        "whole": dates.as_unit("us").astype(np.int64),
        "nullable": pd.array(expected, dtype="Int64"),
        "real": np.array(expected) / 1e6,
    }
    table = TABLE.drop(columns=["city", "patient"]).assign(**columns)
    for suffix, write in WRITERS.items():
        write(table, path := tmp_path / f"own{suffix}")
        for name in columns:
            drop = [other for other in columns if other != name]
            options = {"label": "y", "positive": "yes", "time": name, "drop": drop}
            dataset, encoding = read_own_file(path, **options)
            assert encoding.feature_names == ("age", "ok")
            assert (dataset.time * (1e6 if name == "real" else 1)).tolist() == expected
            assert dataset.time.dtype == (np.float64 if name == "real" else np.int64)
    y = [0, 1, 0, 1]
    np.savez(
        tmp_path / "own.npz",
        X=np.eye(4),
        y=y,
        text=list(columns["text"]),
        whole=expected,
    )
    for name in ("text", "whole"):
        assert (
            read_own_file(tmp_path / "own.npz", time=name)[0].time.tolist() == expected
        )
    assert read_own_file(tmp_path / "own.npz")[0].time is None


@pytest.mark.parametrize(
    ("texts", "form", "origin"),
    [
        pytest.param(
            "03112024 05062023 31052024", "%d%m%Y", "2023-06-05", id="day month year"
        ),
        # a spreadsheet drops the zero
        pytest.param(
            "3112024 5062023 31052024",
            "%d%m%Y",
            "2023-06-05",
            id="the zero dropped by a spreadsheet",
        ),
        pytest.param(
            "3112024.0 5062023 31052024",
            "%d%m%Y",
            "2023-06-05",
            id="the zero dropped, as floats",
        ),
        pytest.param(
            "20241103 20230605 20240531", "%Y%m%d", "2023-06-05", id="year month day"
        ),
        # dates only as times: salaries may look like them
        pytest.param(
            "112024 62023 52024",
            "%m%Y",
            None,
            id="dates only as times: salaries may look like them",
        ),
    ],
)
def test_digits_in_the_format_of_dates_are_dates(tmp_path, texts, form, origin):
    lines = [f"{t},{i},{i % 2}\n" for i, t in enumerate(texts.split())]
    path = csv(tmp_path, "t,x,y\n" + "".join(lines))
    timed, _ = read_own_file(path, label="y", time="t", date_format=form)
    assert np.argsort(timed.time).tolist() == [1, 2, 0]
    dataset, encoding = read_own_file(path, label="y", date_format=form)
    assert encoding.columns[0].origin == origin
    assert (read_new_rows(path, encoding) == dataset.X).all()


@pytest.mark.parametrize(
    ("times", "places"),
    [
        pytest.param(
            "01012024 02012024", "1 '1012024' %d%m%Y", id="digits without a format"
        ),
        pytest.param("1 2 x 4", "'t' 3 'x'", id="a word among numbers"),
        pytest.param(
            "2024-01-01 2024-01-02 5 2024-01-03", "3 '5'", id="a number among dates"
        ),
        pytest.param(
            "11/05/2024 01/06/2024",
            "'11/05/2024' 2024-11-05 %m/%d/%Y 2024-05-11 %d/%m/%Y",
            id="day and month in either order",
        ),
        pytest.param(
            "31/05/2024 01/06/2024 1/32/2024", "1 '31/05/2024'", id="no such day"
        ),
        pytest.param("1 inf 3", "2 'inf'", id="infinity"),
        pytest.param("2024-01-01 ? 2024-01-03", "own.csv 't' 2", id="a gap"),
        pytest.param(
            "20240101 20240102 20241301",
            "3 '20241301'",
            id="no such month in the format",
        ),
    ],
)
def test_invalid_times(tmp_path, times, places):
    lines = [f"{i},{t.replace('?', '')},{i % 2}" for i, t in enumerate(times.split())]
    path = csv(tmp_path, "\n".join(["x,t,y", *lines]))
    unreadable(
        path,
        places,
        label="y",
        time="t",
        date_format="%Y%m%d" if "13" in places else None,
    )


@pytest.mark.parametrize(
    ("missing", "fill"), [("mean", 50), ("median", 40), ("most-frequent", 30)]
)
def test_imputation(tmp_path, missing, fill):
    path = csv(tmp_path, "x,c,y\n30,a,1\n30,b,0\n40,,0\n50,b,1\n100,b,1\n,b,0\n")
    dataset, encoding = read_own_file(
        path, label="y", missing=missing, categorical="one-hot"
    )
    assert dataset.feature_names == ("x", "x is missing", "c=a", "c=b", "c is missing")
    assert dataset.X[5].tolist() == [fill, 1, 0, 1, 0]
    assert dataset.X[2].tolist() == [40, 0, 0, 1, 1]
    new = csv(tmp_path, "x,c,id\n,,r1\n1,a,r2\n", "new.csv")
    assert read_new_rows(new, encoding).tolist() == [
        [fill, 1, 0, 1, 1],
        [1, 0, 1, 0, 0],
    ]
    values = [column.value_of(dataset.X[5, span]) for column, span in encoding.spans()]
    assert values == ["(missing)", "b"]


@pytest.mark.parametrize("missing", ["mean", "median", "most-frequent"])
def test_gaps_of_a_split_are_filled_in_from_its_training_rows(tmp_path, missing):
    """As an imputer that knows no other row.

    What held-out rows hold changes no training row.
    """
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"x": rng.poisson(3, 200), "z": rng.standard_normal(200)})
    table["city"] = rng.choice(["Bern", "Oslo", "Rome"], 200)
    table = table.mask(rng.random(table.shape) < 0.3)
    table["late"] = np.where(np.arange(200) < 150, None, 5.0)
    table["y"] = np.arange(200) % 2
    train, test = np.split(rng.permutation(150), [100])[0], np.arange(150, 200)
    options = {"label": "y", "missing": missing, "categorical": "one-hot"}
    training_rows = []
    for shift in (0, 7):
        changed = table.copy()
        changed.loc[150:, ["x", "z"]] += shift
        changed.loc[150:, "city"] = np.where(shift, "Rome", changed.loc[150:, "city"])
        changed.to_csv(path := tmp_path / "own.csv", index=False)
        dataset, _ = read_own_file(path, **options)
        training_rows.append(dataset.gathered(train, train))
        fit = SimpleImputer(strategy=missing.replace("-", "_")).fit(
            table[["x", "z"]].iloc[train]
        )
        city = table["city"].iloc[train].mode()[0]
        for rows in (train, test):
            X = dataset.gathered(rows, train)
            numbers = fit.transform(changed[["x", "z"]].iloc[rows])
            np.testing.assert_allclose(X[:, [0, 2]], numbers, rtol=1e-15)
            cities = changed["city"].iloc[rows].fillna(city).str[0]
            assert (X[:, 4:7] == np.column_stack([cities == c for c in "BOR"])).all()
            assert (X[:, [1, 3, 7, 9]] == changed.iloc[rows, :4].isna()).all(axis=None)
        assert (dataset.gathered(train, train)[:, 8] == 0).all()  # nothing is known
        some = np.flatnonzero(rng.random(200) < 0.5)
        part = replace(dataset, X=dataset.X[some], imputed=dataset.imputed.select(some))
        known = np.flatnonzero(np.isin(some, train))
        expected = dataset.gathered(some[known], some[known])
        np.testing.assert_array_equal(part.gathered(known, known), expected)
    assert training_rows[0].tobytes() == training_rows[1].tobytes()
    assert training_rows[0].tobytes() != dataset.X.tobytes()


@pytest.mark.extras("pyarrow")
def test_decimals_with_gaps_are_numbers(tmp_path):
    table = pd.DataFrame({"x": [Decimal("1.5"), Decimal("2.5"), None], "y": [0, 1, 0]})
    table.to_parquet(tmp_path / "own.parquet")
    dataset, _ = read_own_file(tmp_path / "own.parquet", label="y", missing="mean")
    assert dataset.X.tolist() == [[1.5, 0], [2.5, 0], [2.0, 1]]


@pytest.mark.parametrize("rows_at_once", [256, 2])
@pytest.mark.extras("pyarrow")
def test_names_of_rows_are_text(tmp_path, monkeypatch, rows_at_once):
    def names(path, column="id"):
        encoding = Encoding("csv", 1, dense=True, columns=(Column("x"),))
        blocks = list(read_new_blocks(path, encoding, keep=[column]))
        assert np.concatenate([X for X, _ in blocks]).ravel().tolist() == list(
            range(len(expected))
        )
        return [name for _, some in blocks for name in some[column]]

    monkeypatch.setattr("precbench.tables.own_file._MOST_ROWS", rows_at_once)
    monkeypatch.setattr("precbench.tables.own_file._FEWEST_ROWS", 1)
    expected = ["007", "NA", "9007199254740993", "", "1.10", " a "]
    path = csv(tmp_path, 'id,x\n007,0\nNA,1\n9007199254740993,2\n,3\n1.10,4\n" a ",5\n')
    assert names(path) == expected
    with raises(InputError, "'ID' 'id'"):
        names(path, "ID")
    expected = ["7", "", "9007199254740993"]
    ids = pd.array([7, None, 9007199254740993], dtype="Int64")
    pd.DataFrame({"id": ids, "x": [0, 1, 2]}).to_parquet(tmp_path / "own.parquet")
    assert names(tmp_path / "own.parquet") == expected


@pytest.mark.parametrize(
    ("labels", "positive", "expected"),
    [
        pytest.param("0 1", None, [-1, 1], id="0 and 1"),
        pytest.param("-1 1", None, [-1, 1], id="minus 1 and 1"),
        pytest.param("+1 -1", None, [1, -1], id="signs"),
        pytest.param("True False", None, [1, -1], id="truth"),
        pytest.param("1 2", 2, [-1, 1], id="two numbers"),
        pytest.param("1.0 2.0", "2", [-1, 1], id="two floats, positive as an integer"),
        pytest.param("a b", "a", [1, -1], id="two words"),
        pytest.param("01 1", "01", [1, -1], id="a leading zero and without"),
        pytest.param(
            "250.1 250.10", "250.10", [-1, 1], id="decimals that differ in a zero"
        ),
        pytest.param("00 0", "00", [1, -1], id="two zeros and one"),
        pytest.param("-0 1", "0", [1, -1], id="minus zero"),
        pytest.param("1.00 0", 1, [1, -1], id="positive 1 written 1.00"),
        pytest.param("a 1", "1.0", [-1, 1], id="positive 1.0 written 1"),
        pytest.param(".5 7", "0.5", [1, -1], id="a half without its zero"),
    ],
)
def test_labels(tmp_path, labels, positive, expected):
    rows = [f"{i},{label}\n" for i, label in enumerate(labels.split())]
    dataset, _ = read_own_file(
        csv(tmp_path, "x,y\n" + "".join(rows)), label="y", positive=positive
    )
    assert dataset.y.tolist() == expected


def test_labels_of_three_kinds_need_a_positive_one(tmp_path):
    """0 or -1 may mean that a row has no label."""
    path = csv(tmp_path, "1 1:1\n0 1:2\n-1 1:3", "rows.svm")
    unreadable(path, "rows.svm positive -1")
    with warns(UserWarning, "rows.svm 0 (1) -1 (1)"):
        dataset, _ = read_own_file(path, positive=1)
    assert dataset.y.tolist() == [1, -1, -1]
    path = csv(tmp_path, "x,y\n1,yes\n1,no\n1,Yes\n1,no\n")
    with warns(UserWarning, f"{path} no (2) Yes (1) case yes"):
        read_own_file(path, label="y", positive="yes")
    with raises(TableError, "'no,Yes'") as caught:
        read_own_file(path, label="y", positive="no,Yes")
    assert caught.value.remedies == [("positive", ["no", "Yes"])]
    with warns(UserWarning, "'y' TRUE 1 FALSE 0"):
        read_own_file(csv(tmp_path, "x,y\n1,TRUE\n1,1\n1,FALSE\n"), label="y")


@pytest.mark.extras("pyarrow")
def test_the_index_of_a_frame_is_among_its_columns(tmp_path, monkeypatch):
    """As in the CSV of the frame; by blocks, too."""
    frame = pd.DataFrame(
        {"a": range(300), "y": [0, 1] * 150, "region": [1, 2, 3] * 100}
    )
    frame.set_index("region").to_parquet(tmp_path / "mine.parquet")
    frame.set_index("region").to_csv(tmp_path / "mine.csv")
    tables = [
        read_own_file(tmp_path / f"mine.{kind}", label="y")
        for kind in ("parquet", "csv")
    ]
    assert tables[0][1].feature_names == tables[1][1].feature_names == ("region", "a")
    np.testing.assert_array_equal(tables[0][0].X, tables[1][0].X)
    monkeypatch.setattr("precbench.tables.own_file._MOST_ROWS", 256)
    rows = read_new_rows(tmp_path / "mine.parquet", tables[0][1])
    np.testing.assert_array_equal(rows, tables[0][0].X)


@pytest.mark.extras("openpyxl", "python_calamine")
def test_columns_with_neither_name_nor_value_do_not_count(tmp_path):
    """As Excel leaves them behind a table.

    A column with values counts, whatever its name.
    """
    frame = pd.DataFrame({"a": [1.0, 2.0, 3.0], "y": [0, 1, 1]})
    frame.to_csv(tmp_path / "mine.csv", index=False)
    lines = (tmp_path / "mine.csv").read_text().splitlines()
    (tmp_path / "mine.csv").write_text("\n".join(f"{line},,," for line in lines))
    wide = frame.assign(b=None, c=None)
    wide.to_excel(tmp_path / "mine.xlsx", index=False, header=["a", "y", None, None])
    with warns(UserWarning, "mine.csv 3"):
        from_csv = read_own_file(tmp_path / "mine.csv", label="y")
    # The cells of the workbook have a format, and nothing else: nobody sees them.
    from_workbook = read_own_file(tmp_path / "mine.xlsx", label="y")
    for kind, (dataset, encoding) in (("csv", from_csv), ("xlsx", from_workbook)):
        assert encoding.feature_names == ("a",)
        assert dataset.X.tolist() == [[1.0], [2.0], [3.0]]
        rows = read_new_rows(tmp_path / f"mine.{kind}", encoding)
        assert rows.tolist() == dataset.X.tolist()
    frame.to_csv(tmp_path / "index.csv")
    assert read_own_file(tmp_path / "index.csv", label="y")[1].feature_names == (
        "Unnamed: 0",
        "a",
    )


GOOD = "x,z,y\n1,2,0\n3,4,1\n"
REFUSED = [
    pytest.param(GOOD, {}, "", id="no label named"),
    pytest.param(GOOD, {"label": "Y"}, "'Y' 'y'", id="label in other case"),
    pytest.param(
        GOOD, {"label": "y", "drop": ["x,zz"]}, "'zz' 'z'", id="unknown column dropped"
    ),
    pytest.param(
        GOOD,
        {"label": "y", "groups": "patient"},
        "'patient'",
        id="unknown column of groups",
    ),
    pytest.param(
        GOOD, {"label": "y", "time": "seen"}, "'seen'", id="unknown column of times"
    ),
    pytest.param(GOOD, {"label": "y", "drop": ["x", "z"]}, "", id="no feature left"),
    pytest.param(GOOD, {"label": "y", "positive": 7}, "7 0 1", id="no such positive"),
    pytest.param(
        "x,y\n1,a\n2,b\n", {"label": "y"}, "", id="labels in words without a positive"
    ),
    pytest.param("x,y\n1,1\n2,1\n", {"label": "y"}, "1", id="one label"),
    pytest.param("x,y\n1,1\n2,\n", {"label": "y"}, "2", id="a label missing"),
    pytest.param(
        "x,g,y\n1,,1\n2,1,0\n", {"label": "y", "groups": "g"}, "1", id="a group missing"
    ),
    pytest.param(
        "x,y\n1,1\nred,0\n", {"label": "y"}, "'x' 2 'red'", id="a word among numbers"
    ),
    pytest.param(
        "x,y\n1,1\n2,0\n3,0\n1O,0\n",
        {"label": "y", "categorical": "one-hot"},
        "'x' 4 '1O'",
        id="a letter among digits",
    ),
    pytest.param("x,y\n1,1\n,0\n", {"label": "y"}, "'x' 2", id="a number missing"),
    pytest.param(
        "x,y\na,1\n,0\n",
        {"label": "y", "categorical": "one-hot"},
        "'x' 2",
        id="a category missing",
    ),
    pytest.param(
        "x,y\n,1\n,0\n", {"label": "y", "missing": "mean"}, "'x'", id="a column of gaps"
    ),
    pytest.param("x,y\n1,1\ninf,0\n", {"label": "y"}, "'x' 2 'inf'", id="infinity"),
    pytest.param(
        f"x,y\n1,1\n{10**400},0\n",
        {"label": "y"},
        "",
        id="a feature too large for a double",
    ),
    pytest.param(
        f"x,y\n1,1\n2,{10**400}\n",
        {"label": "y"},
        "",
        id="a label too large for a double",
    ),
    pytest.param(
        "x,y\n1,1\n-inf,0\n",
        {"label": "y", "missing": "mean"},
        "'-inf'",
        id="minus infinity",
    ),
    pytest.param("", {"label": "y"}, "own.csv", id="an empty file"),
    pytest.param("x,y\n", {"label": "y"}, "", id="no rows"),
    pytest.param("x,y\n1,2\n3,4,5\n", {"label": "y"}, "2 3", id="a row too long"),
    pytest.param(
        "x,y\n1,2,3\n3,4,5\n", {"label": "y"}, "", id="rows longer than the header"
    ),
    pytest.param("1,0\n2,1\n", {"label": "y"}, "1 0", id="no header"),
    pytest.param("x,x,y\n1,2,0\n3,4,1\n", {"label": "y"}, "'x'", id="a column twice"),
    pytest.param('"x";"y"\n1;0\n3;1\n', {}, "x y", id="semicolons"),
    pytest.param(
        "x,y\n1,0\n3,1\n", {"format": "tsv"}, "x y", id="commas in a TSV file"
    ),
    pytest.param(
        GOOD,
        {"label": "y", "encoding": "utf8x"},
        "utf8x (encoding)",
        id="no such encoding",
    ),
    pytest.param(
        GOOD,
        {"label": "y", "encoding": "hex"},
        "hex (encoding)",
        id="encoding of bytes",
    ),
    pytest.param(
        GOOD,
        {"label": "y", "skip_rows": 3},
        "3 no rows skip_rows",
        id="all rows skipped",
    ),
    pytest.param(
        GOOD,
        {"label": "y", "skip_rows": 1000},
        "1,000 no rows skip_rows",
        id="more rows skipped than there are",
    ),
    pytest.param(
        f"head\n{GOOD[:6]}",
        {"label": "y", "skip_rows": 1},
        "1 skip_rows",
        id="header alone behind a title",
    ),
    pytest.param(
        '\n"x\n",y,"x\n"\n1,0,2\n',
        {"label": "y"},
        "'x\\n'",
        id="a line end in two names",
    ),
]


@pytest.mark.parametrize(("text", "options", "places"), REFUSED)
def test_invalid_tables(tmp_path, text, options, places):
    path = csv(tmp_path, text)
    with raises(InputError, places) as caught:
        read_own_file(path, **options)
    assert str(caught.value).startswith(f"{path}: ")
    assert "\n" not in str(caught.value)


MIXED = ["2", "3", "4", "5more"] * 10


@settings(max_examples=10)
@given(st.permutations(range(len(MIXED))), st.integers(0, 40))
def test_what_a_column_holds_does_not_depend_on_the_order_of_its_rows(order, n_text):
    """A column of digits, of digits and text, of text: alike from each first row."""
    texts = np.array(
        ["Oslo"] * n_text + [str(i % 3) for i in range(40 - n_text)], dtype=object
    )
    for values in (np.array(MIXED, dtype=object), texts):
        for categorical in ("error", "one-hot", ["x"]):
            learnt = []
            for some in (values, values[list(order)]):
                table = pd.DataFrame({"x": some})
                try:
                    learnt.append(Encoding.learn(table_of(table), None, categorical))
                except TableError as error:
                    learnt.append([(p.kind, p.remedy) for p in error.problems])
            assert learnt[0] == learnt[1]


@pytest.mark.parametrize("suffix", WRITERS)
def test_columns_named_as_categories(tmp_path, suffix):
    """Digits, also beside missing values, and mixed values.

    The same in new rows of any format.
    """
    table = pd.DataFrame(
        {"zip": [7, 12, None, 7], "doors": MIXED[:4], "ok": [1, 2, 3, 4]}
    )
    options = {"label": "y", "categorical": ["zip, doors"], "missing": "most-frequent"}
    if suffix == ".parquet":
        table.assign(y=[0, 1, 0, 1]).to_parquet(path := tmp_path / "own.parquet")
    else:
        whole = table.assign(zip=["007", "12", None, "007"], y=[0, 1, 0, 1])
        WRITERS[suffix](whole, path := tmp_path / f"own{suffix}")
    dataset, encoding = read_own_file(path, **options)
    zips, doors = (column.categories for column in encoding.columns[:2])
    assert zips == (("12", "7") if suffix == ".parquet" else ("007", "12"))
    assert doors == ("2", "3", "4", "5more")
    assert read_new_rows(path, encoding).tolist() == dataset.X.tolist()
    if suffix == ".parquet":
        table.assign(zip=pd.to_datetime(["2024-01-01"] * 4), y=[0, 1, 0, 1]).to_parquet(
            path
        )
        unreadable(path, "'zip'", **options)


def test_columns_named_as_numbers_and_ids(tmp_path):
    path = csv(tmp_path, "id,x,z,y\na,1,1,0\nb,2,2,1\nc,2,1,0\n")
    dataset, encoding = read_own_file(path, label="y", id=["id"], numeric=["x,z"])
    assert encoding.feature_names == ("x", "z")
    assert dataset.X.shape == (3, 2)
    for options, places in [
        ({"id": ["x"], "drop": ["id"]}, "'x' 2 3 groups"),
        ({"id": ["idd"], "drop": ["id"]}, "'idd' 'id'"),
        ({"numeric": ["id"], "id": []}, "'id' 1 'a'"),
        ({"categorical": ["x"], "numeric": ["x"]}, "'x'"),
        ({"categorical": ["onehot"]}, "'onehot'"),
        ({"numeric": ["zz"]}, "numeric 'zz' 'z'"),
    ]:
        unreadable(path, places, **{"label": "y", "id": ["id"]} | options)


def test_all_problems_of_a_table_are_told_at_once(tmp_path):
    lines = [f"{i},{'ab'[i % 2]},{'uv'[i % 2]},{MIXED[i % 4]},{i}" for i in range(40)]
    text = "\n".join(["n,city,plan,doors,x", *lines, ",,u,3,inf", "9,a,u,3,4"]) + "\n"
    path = csv(tmp_path, text)
    sentences = mistakes(lambda: read_own_file(path, groups="patient", time="x"))
    assert sentences[0].startswith(f"{path}: ")
    expected = [
        "label city plan",
        "u v",
        "'patient'",
        "'x' 41 'inf'",
        "2 'n' 41 'city' 41",
        "'city' 1 'a'",
        "'doors' 4",
    ]
    for line, places in zip(sentences[1:], expected, strict=True):
        assert line.startswith("  ")
        names(line, places)


def write_suspects(tmp_path, n_rows=600):
    """Write leaks, identifiers and codes beside columns that are none of these."""
    rng = np.random.default_rng(0)
    y = rng.random(n_rows) < 0.1
    numbers = np.arange(n_rows)
    is_row_7 = numbers == 7
    columns = {
        "x": (rng.standard_normal(n_rows) + y).round(3),
        "n": rng.poisson(20_000, n_rows),
        "when": pd.Timestamp("2024-01-01") + pd.to_timedelta(numbers, "D"),
        "city": rng.choice(["Oslo", "Rome", "Bern"], n_rows),
        "many": [f"k{i // 3}" for i in numbers],
    }
    columns |= {  # leaks, which rank the rows
        "leak": np.where(y, 5, 0) + rng.random(n_rows),
        "cancelled": np.where(y, "2024-05-05", None),
        "status": np.where(y, "gone", rng.choice(["new", "old"], n_rows)),
        "flag": np.where(y, 1, rng.choice([0, 2], n_rows)),
    }
    has_reason = rng.random(n_rows) < np.where(y, 0.98, 0.03)
    columns["reason"] = np.where(has_reason, 1 + rng.random(n_rows), np.nan)
    columns |= {
        "id": [f"c{i:05d}" for i in numbers],
        "number": rng.permutation(n_rows),
    }
    columns |= {  # codes
        "zip": rng.integers(20, 190, n_rows) * 500 + 1,
        "padded": [f"{v:02d}" for v in rng.integers(0, 50, n_rows)],
        "bin": [
            f"{v % 7}{'E' if v > 40 else ''}{v % 5}"
            for v in rng.integers(10, 50, n_rows)
        ],
    }
    columns |= {  # identifiers but for row 7, and no identifier because of row 7
        "gap": np.where(is_row_7, np.nan, rng.permutation(n_rows)),
        "entry": [f"{9000 - (3 if i == 7 else 2 * i):,}" for i in numbers],
        "income": np.where(is_row_7, 3, rng.permutation(n_rows)),
    }
    table = pd.DataFrame(columns).assign(y=y.astype(int))
    return csv(tmp_path, table.to_csv(index=False))


def suspects_by_kind(path, allow=()):
    """Return the columns for which a file is refused, by the kind of problem."""
    suspects = {"leak": [], "identifier": [], "codes": []}
    with pytest.raises(TableError) as caught:
        read_own_file(path, label="y", allow=allow)
    for problem in caught.value.problems:
        if problem.kind in suspects:
            suspects[problem.kind].append(problem.column)
    return suspects


LEAKS = ["leak", "cancelled", "status", "flag", "reason"]
USES_OF_SUSPECTS = {
    "label": "y",
    "numeric": ["n,number"],
    "categorical": ["zip", "padded", "bin", "one-hot"],
    "id": ["id"],
    "drop": [*LEAKS, "many", "gap", "entry"],
}


def test_leaks_identifiers_and_codes_are_named(tmp_path):
    assert suspects_by_kind(write_suspects(tmp_path)) == {
        "leak": LEAKS,
        "identifier": ["id", "number", "gap", "entry"],
        "codes": ["n", "zip", "padded", "bin"],
    }


def test_allowed_columns_are_no_suspects(tmp_path):
    path = write_suspects(tmp_path)
    assert suspects_by_kind(path, allow=["flag,n", "id"]) == {
        "leak": ["leak", "cancelled", "status", "reason"],
        # of the id, too many texts for a feature each
        "identifier": ["id", "number", "gap", "entry"],
        "codes": ["zip", "padded", "bin"],
    }


def test_columns_of_few_rows_are_neither_leaks_nor_identifiers(tmp_path):
    assert suspects_by_kind(write_suspects(tmp_path, n_rows=40)) == {
        "leak": [],
        "identifier": [],
        "codes": ["padded", "bin"],
    }


def test_columns_whose_use_is_named_are_no_suspects(tmp_path):
    path = write_suspects(tmp_path)
    dataset, encoding = read_own_file(path, **USES_OF_SUSPECTS, allow=[])
    assert [column.name for column in encoding.columns] == [
        "x",
        "n",
        "when",
        "city",
        "number",
        "zip",
        "padded",
        "bin",
        "income",
    ]
    assert dataset.X.shape[1] > 200


def test_an_unknown_column_to_allow_is_refused(tmp_path):
    path = write_suspects(tmp_path)
    with raises(InputError, "'flak' 'flag'"):
        read_own_file(path, **USES_OF_SUSPECTS, allow=["flak"])


def test_without_a_list_of_allowed_columns_leaks_are_read(tmp_path):
    path = write_suspects(tmp_path)
    uses = USES_OF_SUSPECTS | {"drop": ["many", "gap"], "missing": "median"}
    _, encoding = read_own_file(path, **uses, allow=None)
    names_of_columns = [column.name for column in encoding.columns]
    assert set(LEAKS) < set(names_of_columns)


PAID = pd.DataFrame(
    {"paid": np.arange(150) * 911 % 4001, "y": np.arange(150) % 2, "x": 1}
)


@pytest.mark.parametrize(
    ("rows", "groups", "n"),
    [
        pytest.param(pd.concat([PAID] * 2), None, 150, id="each row twice"),
        pytest.param(pd.concat([PAID] * 2), "paid", 0, id="each row twice, grouped"),
        pytest.param(pd.concat([PAID, PAID[:10]]), None, 0, id="few copies"),
        pytest.param(
            pd.DataFrame(
                np.random.default_rng(0).integers([18, 0, 0], [90, 5, 2], (300, 3)),
                columns=["age", "z", "y"],
            ),
            None,
            0,
            id="rows of few values",
        ),
    ],
)
def test_many_copies_are_told_unless_they_may_be_chance(tmp_path, rows, groups, n):
    with (
        warns(UserWarning, f"{n} {len(rows)} groups")
        if n
        else warnings.catch_warnings()
    ):
        read_own_file(csv(tmp_path, rows.to_csv(index=False)), label="y", groups=groups)


def test_what_chance_does_is_no_leak():
    """Columns of noise, of any kind, for labels as rare as the check takes."""
    rng = np.random.default_rng(1)
    for n, n_pos in ((50, 5), (1000, 8)):
        y = np.where(rng.permutation(n) < n_pos, 1.0, -1.0)
        columns = {f"x{i}": rng.standard_normal(n) for i in range(100)}
        columns |= {f"c{i}": rng.integers(0, n // 3, n).astype(str) for i in range(30)}
        columns |= {f"b{i}": rng.integers(0, 3, n) for i in range(30)}
        look_for_suspects(
            table_of(pd.DataFrame(columns)), [*columns], y, problems := Problems("t")
        )
        assert not problems.errors


def test_odd_names_of_columns(tmp_path):
    path = csv(tmp_path, "error,one-hot,y\n1,5,0\n2,6,1\n")
    for named, width in (
        ({}, 2),
        ({"categorical": "one-hot"}, 2),
        ({"categorical": ["error"]}, 3),
        ({"categorical": ["error,one-hot"]}, 4),
        ({"numeric": "one-hot"}, 2),
    ):
        assert read_own_file(path, label="y", **named)[0].X.shape == (2, width)
    # the signature of a bzip2 file
    packed_name, _ = read_own_file(csv(tmp_path, "BZh9,y\n1,0\n2,1\n"), label="y")
    assert packed_name.X.tolist() == [[1], [2]]
    path = csv(tmp_path, "a;b\n1\n3\n", "new.csv")
    _, encoding = read_own_file(csv(tmp_path, "a;b,y\n1,0\n3,1\n"), label="y")
    assert read_new_rows(path, encoding).tolist() == [[1], [3]]


def test_invalid_new_rows(tmp_path):
    _, encoding = read_own_file(csv(tmp_path, GOOD), label="y")
    for text, places in [
        ("x\n1\n", "'z'"),
        ("x,z\n1,red\n", "'z' 1 'red'"),
        ("x,z\n1,inf\n", ""),
    ]:
        with raises(InputError, places):
            read_new_rows(csv(tmp_path, text, "new.csv"), encoding)
    with raises(InputError, "new.svm csv svmlight"):
        read_new_rows(csv(tmp_path, "1 1:1\n", "new.svm"), encoding)


DAYS = pd.to_datetime(["2024-01-01", "2024-01-02"])


@pytest.mark.parametrize(
    "values",
    [DAYS, DAYS.tz_localize("UTC"), DAYS - DAYS[0], DAYS.to_period("M"), DAYS.date],
    ids=["time", "zone", "duration", "period", "date"],
)
@pytest.mark.extras("pyarrow")
def test_a_number_that_became_a_date_is_rejected(tmp_path, values):
    _, encoding = read_own_file(csv(tmp_path, GOOD), label="y", missing="mean")
    path = tmp_path / "new.parquet"
    pd.DataFrame({"x": [1, 2], "z": values}).to_parquet(path)
    with raises(InputError, "new.parquet 'z' 1"):
        read_new_rows(path, encoding)
    with raises(InputError, "'z' 1"):
        encoding.encode(pd.DataFrame({"x": [1, 2], "z": pd.Categorical(values)}))


def test_gaps_of_new_rows_are_counted(tmp_path, monkeypatch):
    """In all blocks of the file together."""
    monkeypatch.setattr("precbench.tables.own_file._MOST_ROWS", 2)
    monkeypatch.setattr("precbench.tables.own_file._FEWEST_ROWS", 1)
    path = csv(tmp_path, "x,z,a,b,y\n1,2,r,s,0\n3,4,t,u,1\n")
    _, encoding = read_own_file(path, label="y", missing="mean", categorical="one-hot")

    def warned(text):
        new = csv(tmp_path, f"x,z,a,b\n{text}", "new.csv")
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            assert read_new_rows(new, encoding).shape == (text.count("\n"), 6)
        start = f"{new}: check the new rows: "
        return [str(warning.message).removeprefix(start) for warning in caught]

    assert warned(",1,,S\n,2,,s\n") == [
        "no row has a value of x, a; the fill value of training is used",
        "1 unseen category in b (S)",
    ]
    assert warned(",1,R,S\n3,2,T,U\n4,,R,V\n") == [
        "no value of a, b was seen in training; all count as unknown",
        "1 value filled in x, 1 value filled in z",
    ]
    assert warned("1,,r,S\n2,1,r,S\n3,,,T\n4,1,r,s\n") == [
        "2 unseen categories in b (S, T), 2 values filled in z, 1 value filled in a"
    ]
    gaps = Gaps()
    for start in (0, 900, 1800):
        names = [f"new {i}" for i in range(start, start + 900)] + ["r"]
        encoding.encode(pd.DataFrame({"x": 1, "z": 1, "a": names, "b": "s"}), gaps=gaps)
    [sentence] = gaps.sentences()
    assert (
        sentence
        == "more than 1,000 unseen categories in a (new 0, new 1, new 10 and 998 more)"
    )
    with raises(InputError, "new.csv 'z' 4 '?'"):
        warned("1,2,r,s\n" * 3 + "1,?,r,s\n")


@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
def test_a_table_is_never_in_memory_as_a_whole(tmp_path, monkeypatch, suffix):
    monkeypatch.setattr("precbench.tables.own_file._MOST_ROWS", 500)
    values = np.random.default_rng(0).standard_normal((20_000, 5))
    table = pd.DataFrame(values, columns=list("abcde")).assign(id="x" * 200)
    path = tmp_path / f"own{suffix}"
    if suffix == ".csv":
        table.to_csv(path, index=False)
    else:
        table.to_parquet(path, row_group_size=500)
    encoding = Encoding("csv", 5, dense=True, columns=tuple(map(Column, "abcde")))
    arrow = find_spec("pyarrow") and import_module("pyarrow")
    in_arrow = arrow.total_allocated_bytes if arrow else lambda: 0
    before = in_arrow()
    tracemalloc.start()
    held = []
    for X, ids in read_new_blocks(path, encoding, keep=["id"]):
        assert X.shape == (500, 5)
        assert len(ids) == 500
        assert (ids["id"] == "x" * 200).all()
        held.append(tracemalloc.get_traced_memory()[0] + in_arrow() - before)
    tracemalloc.stop()
    assert len(held) == 40
    assert max(held) < path.stat().st_size / 2


@pytest.mark.extras("pyarrow")
def test_bytes_and_unknown_records_are_rejected(tmp_path):
    path = tmp_path / "own.parquet"
    pd.DataFrame({"x": [b"\xff", b"a"], "y": [0, 1]}).to_parquet(path)
    unreadable(path, "'x'", label="y", categorical="one-hot")
    pd.DataFrame({"x": [1, 2], "y": [{"a": 1}, {"a": 2}]}).to_parquet(path)
    unreadable(path, "own.parquet", label="y", positive="{'a': 3}")


def test_too_many_columns(tmp_path, monkeypatch):
    monkeypatch.setattr("precbench.tables.layout.MOST_COLUMNS", 2)
    unreadable(csv(tmp_path, GOOD), "3 2", label="y")


@pytest.mark.extras("pyarrow")
def test_dates_count_in_days(tmp_path):
    """The same in any format.

    Text with and without a time, a zone, dates, timestamps, periods.
    """
    texts = ["2024-03-01 12:00", None, "2023-12-31", "2024-02-29"]
    stamps = pd.Series(pd.to_datetime(texts, format="ISO8601"))
    days, whole = [61.5, 60, 0, 60], [61.0, 60, 0, 60]
    zoned = stamps.dt.tz_localize("UTC").dt.tz_convert("Asia/Tokyo")
    # the values of each column, and the days since its first
    columns = {
        "text": (stamps.astype(str).replace("NaT", None), days),
        "zoned": (zoned.map(lambda t: t.isoformat(), na_action="ignore"), days),
        "stamp": (stamps, days),
        "tokyo": (zoned, days),
        "date": (stamps.dt.date, whole),
        "category": (stamps.astype("category"), days),
    }
    table = pd.DataFrame({name: values for name, (values, _) in columns.items()})
    expected = np.column_stack([numbers for _, numbers in columns.values()])
    y = [0, 1, 1, 0]
    for suffix, write in WRITERS.items():
        write(table.assign(y=y), path := tmp_path / f"own{suffix}")
        dataset, encoding = read_own_file(path, label="y", missing="median")
        assert dataset.X[:, ::2].tolist() == expected.tolist()
        assert dataset.X[:, 1::2].tolist() == [
            [i == 1] * len(columns) for i in range(4)
        ]
        assert {column.origin for column in encoding.columns} == {"2023-12-31"}
        assert dataset.feature_names[::2] == tuple(columns)
        encoding = Encoding.from_dict(json.loads(json.dumps(encoding.to_dict())))
        assert (
            read_new_rows(path, encoding)[::-1, ::2].tolist() == expected[::-1].tolist()
        )
    months = table_of(pd.DataFrame({"month": stamps.dt.to_period("M")}))
    learnt = Encoding.learn(months, None, "error", "mean").columns
    assert learnt == (Column("month", fill=51.0, origin="2023-12-01", indicator=True),)
    assert (
        encoding.encode(table.assign(text="2025-01-01"))[:, 0].tolist() == [367.0] * 4
    )
    for wrong in ("yesterday", 7, pd.Timedelta("1 day")):
        with raises(InputError, "'stamp' 1"):
            encoding.encode(table.assign(stamp=wrong))


@pytest.mark.parametrize("fill", [math.nan, math.inf, "text"])
def test_a_fill_value_of_an_untrusted_encoding_is_a_finite_number(fill):
    column = Column("amount", fill=fill)
    description = Encoding("csv", 1, dense=True, columns=(column,)).to_dict()
    with pytest.raises(ValueError, match="'amount' has a wrong fill value"):
        Encoding.from_dict(description)


def test_texts_with_points_are_no_dates(tmp_path):
    path = csv(
        tmp_path, "version,y\n1.2.30,0\n10.12.2,1\n192.168.0.1,1\n1/2/2024 or so,1\n"
    )
    _, encoding = read_own_file(path, label="y", categorical="one-hot")
    assert encoding.columns[0].categories == (
        "1.2.30",
        "1/2/2024 or so",
        "10.12.2",
        "192.168.0.1",
    )


@pytest.mark.extras("pyarrow")
def test_what_is_neither_number_nor_date_nor_few_categories_is_rejected(tmp_path):
    def reject(values, places, **options):
        path = tmp_path / "own.parquet"
        pd.DataFrame({"c": values, "y": np.arange(len(values)) % 2}).to_parquet(path)
        unreadable(
            path, f"'c' {places}", **{"label": "y", "categorical": "one-hot"} | options
        )

    reject([*(f"2024-01-{day}" for day in range(10, 20)), "soon"], "11 'soon'")
    for other in (
        "31/05/2024",
        "31.5.2024 12:00",
        "2024/05/31",
        "31-MAY-24",
        "May 31, 2024",
    ):
        for categorical in ("error", "one-hot"):
            values = [other, other.replace("31", "30"), other.replace("31", "32")]
            reject(values, f"1 '{other}'", categorical=categorical)
    reject([f"id {i % 1001}" for i in range(3003)], "1,001 3,003 'id 0' --drop")
    reject([f"id {i % 101}" for i in range(200)], "101 200 'id 0' --drop")
    reject([f"K {i}" for i in range(200)], "'K 0' --id --drop")


@pytest.mark.extras("pyarrow")
def test_the_same_rows_are_the_same_numbers(tmp_path):
    rng = np.random.default_rng(0)
    n = 60
    table = pd.DataFrame(
        {
            "x": rng.standard_normal(n) * 10.0 ** rng.integers(-9, 9, n),
            "n": pd.array(rng.integers(-5, 5, n), dtype="Int64"),
            "big": rng.integers(-(2**53), 2**53, n),
            "flag": rng.random(n) < 0.5,
            "maybe": pd.array(rng.random(n) < 0.5, dtype="boolean"),
            "city": rng.choice(["Oslo", "Rome", "1"], n),
            "kind": pd.Categorical(rng.choice(["a", "b"], n)),
            "seen": pd.Timestamp("2024-01-01")
            + pd.to_timedelta(rng.integers(0, 10**6, n), "s"),
        }
    )
    table.loc[rng.random(n) < 0.2, ["x", "n", "maybe", "city", "seen"]] = pd.NA
    y = np.arange(n) % 2
    features = {}
    for suffix, write in WRITERS.items():
        write(table.assign(y=y), path := tmp_path / f"own{suffix}")
        options = {"label": "y", "categorical": "one-hot", "missing": "mean"}
        dataset, encoding = read_own_file(path, **options)
        features[suffix] = dataset.X
        features[f"new {suffix}"] = read_new_rows(path, encoding)
        features[f"frame {suffix}"] = encoding.encode(table)
        assert (
            Encoding.learn(table_of(table), None, "one-hot", "mean").columns
            == encoding.columns
        )
    np.savez(tmp_path / "own.npz", X=dataset.X, y=y)
    features["npz"] = read_own_file(tmp_path / "own.npz")[0].X
    for X in features.values():
        assert X.tobytes() == dataset.X.tobytes()


@pytest.mark.parametrize(
    "name", ["own.svm", "own.libsvm", "own.txt", "own.svmlight.gz"]
)
def test_svmlight(tmp_path, name):
    path = tmp_path / name
    text = b"2 1:1 9:3\n1 4:1\n2 2:1\n"
    path.write_bytes(gzip.compress(text) if name.endswith("gz") else text)
    dataset, encoding = read_own_file(path, positive=2)
    assert issparse(dataset.X)
    assert dataset.X.shape == (3, 9)
    assert dataset.y.tolist() == [1, -1, 1]
    assert read_new_rows(csv(tmp_path, "0 3:1\n", "new.svm"), encoding).shape == (1, 9)
    full, encoding = read_own_file(csv(tmp_path, "1 1:1 2:2\n0 1:3 2:4\n", "full.svm"))
    new = read_new_rows(csv(tmp_path, "0 1:1\n", "new.svm"), encoding)
    assert isinstance(full.X, np.ndarray)
    assert isinstance(new, np.ndarray)
    unreadable(
        path, "own label missing svmlight --format tsv", label="y", missing="mean"
    )


def test_npz(tmp_path):
    X, y = np.arange(6.0).reshape(3, 2), np.array([0, 1, 1])
    np.savez(tmp_path / "own.npz", X=X, y=y, patient=np.array(["a", "b", "a"]))
    dataset, encoding = read_own_file(tmp_path / "own.npz", groups="patient")
    assert np.array_equal(dataset.X, X)
    assert dataset.y.tolist() == [-1, 1, 1]
    assert dataset.groups.tolist() == [0, 1, 0]
    assert np.array_equal(read_new_rows(tmp_path / "own.npz", encoding), X)
    np.savez(tmp_path / "new.npz", X=X[:1, :1])
    with raises(InputError, "2 1"):
        read_new_rows(tmp_path / "new.npz", encoding)


def test_a_matrix_of_scipy_is_read_as_it_is_stored(tmp_path):
    values = np.random.default_rng(0).standard_normal((20, 20))
    matrix = csr_matrix(np.where(np.abs(values) > 1, values, 0))
    y = np.arange(20) % 2
    for kind in ("csr", "csc", "bsr"):
        save_npz(tmp_path / "X.npz", matrix.asformat(kind))
        with np.load(tmp_path / "X.npz") as stored:
            parts = {
                name: stored[name]
                for name in stored
                if kind != "csr" or name != "format"
            }
            parts |= {
                name: parts[name].astype(np.int64) for name in ("indices", "indptr")
            }
            np.savez(tmp_path / "mine.npz", **parts, y=y)
        if kind == "bsr":
            unreadable(tmp_path / "mine.npz", "mine.npz")
        else:
            X = read_own_file(tmp_path / "mine.npz")[0].X
            np.testing.assert_array_equal(X.toarray(), matrix.toarray())
            assert X.indices.dtype == X.indptr.dtype == np.int32


@pytest.mark.parametrize(
    ("arrays", "places"),
    [
        pytest.param({"X": [[1.0], [2.0]]}, "'y'", id="no labels"),
        pytest.param({"X": [[1.0], [2.0]], "y": [1]}, "y 2 1", id="fewer labels"),
        pytest.param({"X": [1.0, 2.0], "y": [0, 1]}, "2", id="one-dimensional X"),
        pytest.param(
            {"X": [[1.0], [2.0]], "y": [[0], [1]]},
            "y (2,) (2, 1)",
            id="two-dimensional y",
        ),
        pytest.param(
            {"X": [[1.0], [2.0]], "y": ["a", "b"]}, "positive a b", id="labels in words"
        ),
        pytest.param(
            {"data": [[1.0], [2.0]], "target": [0, 1]},
            "X data target",
            id="arrays of other names",
        ),
        pytest.param({"X": [[1.0], [np.nan]], "y": [0, 1]}, "2 1", id="NaN"),
        pytest.param({"A": [1]}, "", id="neither X nor y"),
        pytest.param({"X": np.array([[object()]]), "y": [1]}, "", id="objects"),
        pytest.param({"X": [["a"]], "y": [1]}, "", id="words"),
        pytest.param({"X": [[1j], [2]], "y": [0, 1]}, "X", id="complex numbers"),
        pytest.param(
            {"X": np.array([[1], [2]], "m8[s]"), "y": [0, 1]}, "X", id="durations"
        ),
        pytest.param(
            {"X": np.array([["1_1"], ["2"]]), "y": [0, 1]},
            "X text",
            id="digits as text",
        ),
        pytest.param(
            {
                "data": [1j, 1],
                "indices": [0, 1],
                "indptr": [0, 1, 2],
                "shape": [2, 3],
                "y": [0, 1],
            },
            "data",
            id="complex sparse",
        ),
        pytest.param(
            {
                "data": [1.0],
                "indices": [2**32],
                "indptr": [0, 1, 1],
                "shape": [2, 2**33],
                "y": [0, 1],
            },
            "2,147,483,647",
            id="sparse and too wide",
        ),
        pytest.param(
            {
                "data": [1.0],
                "indices": [9],
                "indptr": [0, 1, 1],
                "shape": [2, 3],
                "y": [0, 1],
            },
            "",
            id="an index beyond the columns",
        ),
        pytest.param(
            {
                "data": [1, np.inf],
                "indices": [0, 2],
                "indptr": [0, 1, 2],
                "shape": [2, 3],
                "y": [0, 1],
            },
            "2 3",
            id="infinity in a sparse matrix",
        ),
        pytest.param(
            {
                "data": ["1"],
                "indices": ["0"],
                "indptr": ["0", "1", "1"],
                "shape": ["2", "3"],
                "y": [0, 1],
            },
            "array data holds text",
            id="several arrays of text",
        ),
    ],
)
def test_invalid_npz(tmp_path, arrays, places):
    np.savez(tmp_path / "own.npz", **arrays)
    unreadable(tmp_path / "own.npz", f"own.npz {places}")


@pytest.mark.promise("R14")
@pytest.mark.parametrize("save", [np.savez, np.savez_compressed])
@given(place=st.integers(0, 10**6), bits=st.integers(1, 255))
def test_a_damaged_byte_is_reported_or_harmless(tmp_path_factory, save, place, bits):
    content = io.BytesIO()
    save(
        content, data=[1.0, 2], indices=[0, 2], indptr=[0, 1, 2], shape=[2, 3], y=[0, 1]
    )
    damaged = bytearray(content.getvalue())
    damaged[place % len(damaged)] ^= bits
    path = tmp_path_factory.getbasetemp() / "damaged.npz"
    path.write_bytes(damaged)
    try:
        dataset, _ = read_own_file(path)
    except InputError as error:
        assert "\n" not in str(error)
    else:
        assert dataset.X.toarray().tolist() == [[1, 0, 0], [0, 0, 2]]


@pytest.mark.promise("R14")
@pytest.mark.parametrize("suffix", [".csv", ".parquet", ".npz", ".svm", ".csv.gz"])
def test_arbitrary_bytes_are_rejected(tmp_path, suffix):
    path = tmp_path / f"own{suffix}"
    path.write_bytes(bytes(range(256)))
    unreadable(path, path.name, **{} if suffix in (".npz", ".svm") else {"label": "y"})


def test_the_hash_covers_file_and_options(tmp_path):
    path = csv(tmp_path, GOOD)
    one = read_own_file(path, label="y")[0].sha256
    assert one == read_own_file(path, label="y")[0].sha256
    assert one != read_own_file(path, label="y", positive=0)[0].sha256
    assert one != read_own_file(csv(tmp_path, GOOD + "5,6,0\n"), label="y")[0].sha256


COUNTS = {
    "from 0": np.arange(600),
    "from 1": np.arange(1, 601),
    "backwards": np.arange(600)[::-1],
    "two frames": [*range(139), *range(461)],
    "two frames from 1": [*range(1, 140), *range(1, 462)],
    "nine frames": [i for n in range(62, 71) for i in range(n)],
    "many frames of few rows": np.resize(np.arange(40), 600),
    "frames of unequal length": [*range(30), *range(250), *range(20), *range(300)],
    "dropped rows": np.flatnonzero(np.random.default_rng(0).random(1200) < 0.5)[:560],
    "two frames with dropped rows": [*range(0, 900, 3), *range(0, 700, 2)],
    "shuffled": np.random.default_rng(0).permutation(600),
    "two frames, shuffled": np.random.default_rng(0).permutation(
        [*range(139), *range(461)]
    ),
    "ten frames, shuffled": np.random.default_rng(0).permutation(
        np.resize(np.arange(60), 600)
    ),
    "two frames with dropped rows, shuffled": np.random.default_rng(0).permutation(
        [*range(0, 900, 3), *range(0, 700, 2)]
    ),
    "with a gap": [None, *range(1, 600)],
    "few rows": np.arange(12),
    "few rows, two frames": [*range(7), *range(5)],
}


@pytest.mark.parametrize("case", COUNTS)
@pytest.mark.parametrize("name", ["", "Unnamed: 0", "Unnamed: 0.1", "index", "level_0"])
def test_a_column_without_a_name_that_counts_rows_is_no_feature(tmp_path, case, name):
    counts = COUNTS[case]
    y = np.arange(len(counts)) % 3 == 0
    table = pd.DataFrame(
        {name: counts, "x": np.sin(np.arange(len(y))), "y": y.astype(int)}
    )
    path = csv(tmp_path, table.to_csv(index=False))
    column = name or "Unnamed: 0"
    options = {"label": "y", "missing": "median"}
    with raises(TableError, f"{column!r} --allow") as caught:
        read_own_file(path, **options, allow=[])
    assert caught.value.is_enough
    assert [kind in ("drop", "id") for kind, _ in caught.value.remedies] == [True]
    for answer in ({"drop": [column], "allow": []}, {"allow": [column]}, {}):
        read_own_file(path, **options, **answer)
    read_own_file(path, **options, numeric=[column], allow=[])


NO_COUNTS = {
    "ages": np.random.default_rng(0).integers(18, 90, 600),
    "small counts": np.random.default_rng(0).poisson(1, 600),
    "large counts": np.random.default_rng(0).poisson(300, 600),
    "truth": np.arange(600) % 2,
    "days of the week": np.arange(600) % 7,
    "decimals": np.arange(600) / 8 % 3,
    "negative": np.random.default_rng(0).integers(-20, 20, 600),
    "one value": np.full(600, 3),
}


@pytest.mark.parametrize("case", NO_COUNTS)
def test_a_column_without_a_name_that_counts_nothing_is_a_feature(tmp_path, case):
    values = NO_COUNTS[case]
    table = pd.DataFrame(
        {"": values, "x": np.sin(np.arange(600)), "y": np.arange(600) % 11 == 0}
    )
    dataset, _ = read_own_file(
        csv(tmp_path, table.to_csv(index=False)), label="y", allow=[]
    )
    assert dataset.feature_names == ("Unnamed: 0", "x")


def test_a_named_column_may_count(tmp_path):
    hour = np.resize(np.arange(24), 600)
    table = pd.DataFrame({"hour": hour, "y": np.arange(600) % 11 == 0})
    dataset, _ = read_own_file(
        csv(tmp_path, table.to_csv(index=False)), label="y", allow=[]
    )
    assert dataset.feature_names == ("hour",)


@pytest.mark.parametrize(
    ("header", "names_read"),
    [
        pytest.param(
            ",Unnamed: 0,a,b",
            ["Unnamed: 0.1", "Unnamed: 0", "a", "b"],
            id="saved twice",
        ),
        pytest.param(
            ",Unnamed: 0.1,Unnamed: 0,a",
            ["Unnamed: 0.2", "Unnamed: 0.1", "Unnamed: 0", "a"],
            id="saved three times",
        ),
        pytest.param(
            ",Unnamed: 0.2,Unnamed: 0.1,Unnamed: 0",
            ["Unnamed: 0.3", "Unnamed: 0.2", "Unnamed: 0.1", "Unnamed: 0"],
            id="saved four times",
        ),
        pytest.param(
            "a,,Unnamed: 1,b",
            ["a", "Unnamed: 1.1", "Unnamed: 1", "b"],
            id="empty name second",
        ),
        pytest.param(
            "Unnamed: 1,,a,b",
            ["Unnamed: 1", "Unnamed: 1.1", "a", "b"],
            id="empty name behind its own",
        ),
        pytest.param(
            ",,a,b", ["Unnamed: 0", "Unnamed: 1", "a", "b"], id="two empty names"
        ),
        pytest.param(
            ",Unnamed: 0,,Unnamed: 2",
            ["Unnamed: 0.1", "Unnamed: 0", "Unnamed: 2.1", "Unnamed: 2"],
            id="two empty names and theirs",
        ),
        pytest.param(
            '"","Unnamed: 0",a,b',
            ["Unnamed: 0.1", "Unnamed: 0", "a", "b"],
            id="quoted empty name",
        ),
    ],
)
@pytest.mark.parametrize(
    "suffix",
    [
        ".csv",
        ".tsv",
        pytest.param(".xlsx", marks=pytest.mark.extras("openpyxl", "python_calamine")),
    ],
)
def test_a_table_saved_twice_with_its_index_is_read(
    tmp_path, header, names_read, suffix
):
    header = header.replace('"', "").split(",")
    values = np.random.default_rng(0).random((9, 4)).round(3)
    table = pd.DataFrame(values).assign(y=np.arange(9) % 2)
    path = tmp_path / f"twice{suffix}"
    if suffix == ".xlsx":
        table.to_excel(
            path, index=False, header=[*(name or None for name in header), "y"]
        )
    else:
        separator = "," if suffix == ".csv" else "\t"
        table.to_csv(path, index=False, header=[*header, "y"], sep=separator)
    dataset, encoding = read_own_file(path, label="y")
    assert [*dataset.feature_names] == names_read
    assert np.array_equal(dataset.X, values)
    if suffix != ".xlsx":
        assert [*pd.read_csv(path, sep=separator)] == [*names_read, "y"]
    assert np.array_equal(read_new_rows(path, encoding), values)
    dataset, _ = read_own_file(path, label="y", drop=[names_read[0]])
    assert [*dataset.feature_names] == names_read[1:]


@pytest.mark.parametrize("header", ["Unnamed: 0,Unnamed: 0,a", "a,a,b", ",a,a"])
def test_two_columns_of_one_name_are_refused(tmp_path, header):
    repeated = max(header.split(","), key=header.split(",").count)
    unreadable(
        csv(tmp_path, f"{header},y\n1,2,3,0\n2,3,4,1\n"),
        f"{repeated!r} rename",
        label="y",
    )


UNSEEN_FEATURES = {  # rows, what the model takes of them, and words of the warning
    "a new word": ("0 1:1 3:2 4:5\n1 2:1\n", [[1, 0, 2], [0, 1, 0]], "1 4 1"),
    "in all rows": ("0 1:1 9:1\n1 2:1 12:1\n", [[1, 0, 0], [0, 1, 0]], "2 9, 12 2"),
    "only new words": ("0 4:1\n1 5:1\n", [[0, 0, 0], [0, 0, 0]], "2 4, 5"),
    "many": (
        f"0 1:1 {' '.join(f'{i}:1' for i in range(4, 99))}\n",
        [[1, 0, 0]],
        "95 4, 5, 6 92 1",
    ),
    "the largest index": ("0 2:1 2147483647:1\n", [[0, 1, 0]], "1 2147483647"),
    "zeros": ("0 2:1 7:0\n", [[0, 1, 0]], "1 7"),
    "a row without features": ("0\n1 8:2\n", [[0, 0, 0], [0, 0, 0]], "1 8"),
    "none": ("0 2:1\n1 3:1\n", [[0, 1, 0], [0, 0, 1]], ""),
    "fewer": ("0 1:1\n", [[1, 0, 0]], ""),
    "no features": ("0\n1\n", [[0, 0, 0], [0, 0, 0]], ""),
}


@pytest.mark.parametrize("case", UNSEEN_FEATURES)
@pytest.mark.parametrize("is_dense", [False, True])
def test_features_that_no_training_row_had_are_ignored_with_a_count(
    tmp_path, case, is_dense
):
    text, expected, places = UNSEEN_FEATURES[case]
    training = "1 1:1 2:1 3:1\n0 1:2 2:2 3:2\n" if is_dense else "1 1:1\n0 3:1\n"
    _, encoding = read_own_file(csv(tmp_path, training, "old.svm"))
    assert encoding.dense == is_dense
    new = csv(tmp_path, text, "new.svm")
    with (
        warns(UserWarning, f"new.svm {places}") if places else warnings.catch_warnings()
    ):
        X = read_new_rows(new, encoding)
    assert issparse(X) != is_dense
    assert (X.toarray() if issparse(X) else X).tolist() == expected


LARGEST_DOUBLE = np.finfo(np.float64).max
LARGEST_SINGLE = float(np.finfo(np.float32).max)
# Earlier versions of pandas leave the text as it is.
INFINITE = "inf" if PANDAS_IS_EXACT else "1.79769313486232e+308"
NO_QUANTITIES = {  # text, and how a message shows it if otherwise
    "largest double": ("1.7976931348623157e+308", ""),
    "largest double with fewer digits": ("1.79769313486e+308", ""),
    "largest double rounded up": ("1.79769313486232e+308", INFINITE),
    "smallest double": ("-1.7976931348623157e+308", ""),
    "largest single": ("3.4028234663852886e+38", ""),
    "largest single with fewer digits": ("3.40282e+38", ""),
    "smallest single": ("-3.40282347e+38", ""),
    "power of ten": ("1e200", "1e+200"),
    "infinity": ("inf", ""),
    "integer": ("9" * 39, "1e+39"),
    "with a decimal comma": ("1,79769313486e+308", ""),
}


@pytest.mark.parametrize("case", NO_QUANTITIES)
def test_a_number_too_large_for_a_quantity_is_refused_with_its_place(tmp_path, case):
    text, shown = NO_QUANTITIES[case]
    shown = shown or text
    mark = "," if "," in text else "."
    amounts = [f"{i}{mark}5" for i in range(20)]
    amounts[6] = text
    table = pd.DataFrame({"x": np.sin(range(20)), "c": amounts, "y": np.arange(20) % 2})
    path = csv(tmp_path, table.to_csv(index=False, sep=";"))
    with raises(TableError, f"'c' row 7 {shown!r} missing value") as caught:
        read_own_file(path, label="y")
    assert caught.value.remedies == [("drop", "c")]
    read_own_file(path, label="y", drop=["c"])
    table.loc[6, "c"] = None
    path = csv(tmp_path, table.to_csv(index=False, sep=";"))
    dataset, encoding = read_own_file(path, label="y", missing="median")
    assert dataset.X[6, 1] == 10.5
    table.loc[6, "c"] = text
    new = csv(tmp_path, table.to_csv(index=False, sep=";"), "new.csv")
    with raises(TableError, f"'c' row 7 {shown!r} missing value"):
        read_new_rows(new, encoding)


@pytest.mark.parametrize(
    "value", [LARGEST_DOUBLE, -LARGEST_DOUBLE, LARGEST_SINGLE, 1e200]
)
@pytest.mark.parametrize("suffix", [".npz", ".svm", "sparse.npz"])
def test_a_number_too_large_for_a_quantity_is_refused_in_files_without_columns(
    tmp_path, value, suffix
):
    X = np.arange(12.0).reshape(4, 3)
    X[2, 1] = value
    path = tmp_path / f"rows{suffix}"
    if suffix == ".svm":
        rows = [
            " ".join(f"{j + 1}:{x!r}" for j, x in enumerate(row)) for row in X.tolist()
        ]
        path.write_text("".join(f"{i % 2} {row}\n" for i, row in enumerate(rows)))
    elif suffix == ".npz":
        np.savez(path, X=X, y=np.arange(4) % 2)
    else:
        save_npz(path, csr_matrix(X))
    with raises(InputError, f"row 3 column 2 {value:.3g} too large"):
        read_own_file(path)
