"""A dozen files of each format as people have them: read right, or refused with what to do."""

import gzip
import json
from datetime import time

import numpy as np
import pandas as pd
import pytest

from tests.helpers import invoke

N = 60
RNG = np.random.default_rng(0)
ROWS = pd.DataFrame({"x": RNG.standard_normal(N).round(3), "z": RNG.integers(0, 50, N)})
ROWS["y"] = np.resize([0, 1, 1], N)
X, Y = ROWS[["x", "z"]].to_numpy(), ROWS["y"].to_numpy()
CSV = ROWS.to_csv(index=False)
SVM = "".join(f"{y} 1:{x} 2:{z:g}\n" for (x, z), y in zip(X, Y, strict=True))


def having(**columns):
    """Return the rows with other columns; a function makes one of the values of x."""
    made = {n: ROWS["x"].map(c).to_numpy() if callable(c) else c for n, c in columns.items()}
    return ROWS.assign(**made)


def text(**columns):
    return having(**columns).to_csv(index=False)


# What the column x holds where the file can be read, else words of the refusal.
TEXTS = {
    "bom": ("\ufeff" + CSV, "numbers"),
    "crlf": (CSV.replace("\n", "\r\n"), "numbers"),
    "cr": (CSV.replace("\n", "\r"), "numbers"),
    "utf-16": (CSV.encode("utf-16"), "numbers"),
    "packed without a suffix": (gzip.compress(CSV.encode()), "numbers"),
    "commas at the ends": (CSV.replace("\n", ",\n"), "numbers"),
    "a wide line": (CSV + "1,2,1,4\n", "62 4 3"),
    "a sum below": (CSV + "9.7,308,\n", "61 open"),
    "two tables": (CSV + "\nsummary,count\nrows,120\n", "'x' 'summary'"),
    "thousands by blanks": (
        text(x=lambda v: f"{v * 1234.56:,.2f}".replace(",", " ")),
        "numbers (.)",
    ),
    "thousands by apostrophes": (
        text(x=lambda v: f"{v * 1234.56:,.1f}".replace(",", "'")),
        "numbers (.)",
    ),
    "euros": (text(x=lambda v: f"{v:.2f} €"), "numbers (.)"),
    "a typeset minus": (text(x=lambda v: f"{v}".replace("-", "\u2212")), "numbers (.)"),
    "units": (text(x=lambda v: f"{v:.1f} kg"), "'x' drop"),
    "hexadecimal": (text(x=[hex(i % 9) for i in range(N)]), "'x' categorical"),
    "two-digit years": (text(x=[f"{1 + i % 28:02}.05.24" for i in range(N)]), "'x' date"),
    "an error of Excel": (text(x=["#DIV/0!", *ROWS["x"][1:]]), "'x' 1 '#DIV/0!'"),
    "infinity": (text(x=["inf", *ROWS["x"][1:]]), "'x' 1 'inf'"),
    "a nul": (CSV.replace("0.", "0\0.", 1), "'x' 1"),
    "shift-jis": (text(x=np.resize(["東京", "大阪"], N)).encode("shift-jis"), "encoding"),
    "a page": ("<html><table><tr><td>x</td></tr></table></html>\n", "rows"),
    "labels in words": (text(y=np.resize(["No", "Yes"], N)), "positive No Yes"),
}
TABLES = {
    "as it is": (ROWS, "numbers"),
    "truth": (having(x=lambda v: v > 0), "numbers"),
    "numbers as text": (having(x=str), "'x' numeric categorical"),
    "percent as text": (having(x="{:.2%}".format), "'x' numeric categorical"),
    "a word among numbers": (having(x=["n/a", *ROWS["x"][1:]]), "'x' 1"),
    "a gap": (having(x=[None, *ROWS["x"][1:]]), "'x' 1 missing"),
    "nothing": (having(x=None), "'x' drop"),
    "dates": (having(x=pd.date_range("2024-01-01", periods=N).repeat(2)[:N]), "dates"),
    "times of day": (having(x=[time(i % 24) for i in range(N)]), "'x' categorical"),
    "an identifier": (having(x=np.arange(N)), "'x' --id"),
    "a number as a name": (ROWS.rename(columns={"z": "3"}), "numbers"),
    "a sum below": (pd.concat([ROWS, ROWS.iloc[:1].assign(y=None)]), "61 open"),
}
PARQUET = {
    "lists": (having(x=[[i] for i in range(N)]), "'x'"),
    "records": (having(x=[{"a": i % 2} for i in range(N)]), "'x' categorical"),
    "durations": (having(x=pd.to_timedelta(np.arange(N), unit="D")), "'x'"),
    "large integers": (having(x=2**60 + np.arange(N)), "'x' --id"),
    "integers with gaps": (having(x=pd.array([None, *range(1, N)], "Int64")), "'x' 1 missing"),
}
ARRAYS = {
    "as they are": ({"X": X, "y": Y}, None),
    "truth": ({"X": X > 0, "y": Y > 0}, None),
    "labels in a column": ({"X": X, "y": Y[:, None]}, "y (60,) (60, 1)"),
    "rows as columns": ({"X": X.T, "y": Y}, "y (2,) (60,)"),
    "a gap": ({"X": np.vstack([[np.nan, 1], X[1:]]), "y": Y}, "1 finite"),
    "complex": ({"X": X * 1j, "y": Y}, "X complex128"),
    "objects": ({"X": X.astype(object), "y": Y}, "allow_pickle"),
    "days": ({"X": np.full((N, 1), "2024-01-01", "datetime64[D]"), "y": Y}, "X"),
    "text": ({"X": X.astype(str), "y": Y}, "X"),
    "other names": ({"data": X, "target": Y}, "X data target"),
    "labels in words": ({"X": X, "y": np.resize(["a", "b"], N)}, "positive a b"),
    "labels of one kind": ({"X": X, "y": np.ones(N)}, "1"),
}
SVMLIGHT = {
    "as it is": (SVM, None),
    "tabs": (SVM.replace(" ", "\t"), None),
    "comments": ("# rows\n" + SVM.replace("\n", " # a note\n"), None),
    "indices from 0": (SVM.replace("2:", "0:"), ":1: 0"),
    "falling indices": (SVM.replace("1:", "3:"), ":1:"),
    "an index twice": (SVM.replace("2:", "1:"), ":1:"),
    "an index beyond all": (SVM + "1 99999999999:1\n", ":61:3"),
    "queries": (SVM.replace(" 1:", " qid:3 1:"), ":1:3 qid:3"),
    "labels of two": (SVM.replace("1 1:", "1,2 1:"), ":2:1 1,2"),
    "no labels": ("".join(f"{line[2:]}\n" for line in SVM.splitlines()), ":1:1"),
    "not a number": (SVM.replace("1:", "1:nan 3:", 1), ":1:5 nan"),
    "a table": (CSV, ":1:1 x,z,y"),
}


def profiled(name):
    """Return what the column x holds, or the refusal."""
    done = invoke("profile", name, "--label", "y", "--json")
    if done.exit_code == 2:
        return done.stderr
    assert done.exit_code == 0, done.output
    table = json.loads(done.stdout)
    return table["refusal"] or next(c["holds"] for c in table["columns"] if c["name"] == "x")


def is_said(words, text):
    """Whether a text is what a column holds, or has all words of a refusal."""
    if words.startswith(("numbers", "dates")):
        return text == words
    return all(word in text for word in words.split())


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("what", TEXTS)
def test_texts(tmp_path, what):
    content, words = TEXTS[what]
    (tmp_path / "f.csv").write_bytes(content.encode() if isinstance(content, str) else content)
    said = profiled("f.csv")
    assert is_said(words, said), said


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    ("suffix", "what"),
    [
        *(("xlsx", what) for what in TABLES),
        *(("parquet", what) for what in TABLES | PARQUET if what != "a word among numbers"),
    ],
)
def test_typed_tables(suffix, what):
    table, words = (TABLES | PARQUET)[what]
    write = table.to_excel if suffix == "xlsx" else table.to_parquet
    write(f"f.{suffix}", index=False)
    said = profiled(f"f.{suffix}")
    assert is_said(words, said), said


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    ("kind", "what"), [*(("npz", w) for w in ARRAYS), *(("svm", w) for w in SVMLIGHT)]
)
def test_files_without_names(tmp_path, kind, what):
    content, words = (ARRAYS if kind == "npz" else SVMLIGHT)[what]
    if kind == "npz":
        np.savez("f.npz", **content)
    else:
        (tmp_path / "f.svm").write_text(content)
    fit = ["--solver", "sgd-avg", "--k", "5", "--splits", "1", "--save", "m.npz"]
    done = invoke("fit", f"f.{kind}", *fit)
    assert done.exit_code == (0 if words is None else 2), done.output
    assert is_said(words or "", done.stderr), done.stderr
