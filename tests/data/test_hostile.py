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
CSV = ROWS.to_csv(index=False)


def having(**columns):
    """Return the rows with other columns; a function makes one of the values of x."""
    made = {n: ROWS["x"].map(c).to_numpy() if callable(c) else c for n, c in columns.items()}
    return ROWS.assign(**made)


def text(**columns):
    return having(**columns).to_csv(index=False)


# What the column x holds where the file can be read, else words of the refusal.
TEXTS = {
    "bom": ("\ufeff" + CSV, "numbers"), "crlf": (CSV.replace("\n", "\r\n"), "numbers"),
    "cr": (CSV.replace("\n", "\r"), "numbers"), "utf-16": (CSV.encode("utf-16"), "numbers"),
    "packed without a suffix": (gzip.compress(CSV.encode()), "numbers"),
    "commas at the ends": (CSV.replace("\n", ",\n"), "numbers"),
    "a wide line": (CSV + "1,2,1,4\n", "62 4 3"), "a sum below": (CSV + "9.7,308,\n", "61 open"),
    "two tables": (CSV + "\nsummary,count\nrows,120\n", "'x' 'summary'"),
    "thousands by blanks": (text(x=lambda v: f"{v * 1234.56:,.2f}".replace(",", " ")),
     "numbers (.)"),
    "thousands by apostrophes": (text(x=lambda v: f"{v * 1234.56:,.1f}".replace(",", "'")),
     "numbers (.)"),
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
}  # fmt: skip
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


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(("suffix", "what"), [
    *(("csv", what) for what in TEXTS), *(("xlsx", what) for what in TABLES),
    *(("parquet", what) for what in TABLES | PARQUET if what != "a word among numbers"),
])  # fmt: skip
def test_tables_as_people_have_them(tmp_path, monkeypatch, suffix, what):
    monkeypatch.chdir(tmp_path)
    content, words = (TEXTS if suffix == "csv" else TABLES | PARQUET)[what]
    if suffix == "csv":
        (tmp_path / "f.csv").write_bytes(content.encode() if isinstance(content, str) else content)
    else:
        write = content.to_excel if suffix == "xlsx" else content.to_parquet
        write(f"f.{suffix}", index=False)
    done = invoke("profile", f"f.{suffix}", "--label", "y", "--json")
    said = done.stderr
    if done.exit_code != 2:
        table = json.loads(done.stdout)
        said = table["refusal"] or next(c["holds"] for c in table["columns"] if c["name"] == "x")
    if words.startswith(("numbers", "dates")):
        assert said == words
    else:
        assert all(word in said for word in words.split()), said
