"""The profile of a table: what it holds by hand, and what would be done with it."""

import json

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import roc_auc_score

from precbench.data.own.profile import profile_table
from tests.helpers import invoke
from tests.sentences import refused


@pytest.fixture
def table(tmp_path, monkeypatch):
    """A table with an identifier, gaps, dates, codes, text, a leak and repeated rows."""
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    y = rng.random(200) < 0.2
    rows = pd.DataFrame({
        "age": rng.integers(20, 60, 200),
        "paid": np.where(rng.random(200) < 0.1, np.nan, rng.normal(size=200).round(2)),
        "since": pd.Timestamp("2024-01-01") + pd.to_timedelta(rng.integers(0, 99, 200), "D"),
        "plan": rng.choice(["a", "b", "c"], 200, p=[0.6, 0.3, 0.1]),
        "closed": y + 0.1 * rng.random(200).round(3), "none": np.nan,
        "left": np.where(y, "yes", "no"),
    })  # fmt: skip
    rows = pd.concat([rows, rows.head(3)], ignore_index=True)
    rows.to_csv("mine.csv", index=False)
    return rows


def test_what_columns_hold_by_hand(table, tmp_path):
    found = profile_table(tmp_path / "mine.csv", {"label": "left", "positive": "yes"})
    assert (found["rows"], found["duplicates"]) == (203, 3)
    assert found["positives"] == (table["left"] == "yes").sum()
    columns = {column["name"]: column for column in found["columns"]}
    holds = {name: column["holds"] for name, column in columns.items()}
    assert holds == {
        **dict.fromkeys(["age", "paid", "closed"], "numbers"), "since": "dates", "plan": "text",
        "none": "nothing",
    }  # fmt: skip
    for name, column in columns.items():
        assert column["distinct"] == table[name].nunique(), name
        assert column["missing"] == table[name].isna().sum(), name
    assert (columns["age"]["low"], columns["age"]["high"]) == (
        *(f"{table['age'].min()}", f"{table['age'].max()}"),
    )
    assert columns["since"]["low"] == f"{table['since'].min():%Y-%m-%d}"
    assert columns["plan"]["low"] == "a"
    auc = roc_auc_score(table["left"] == "yes", table["closed"])
    assert columns["closed"]["auc"] == pytest.approx(auc) and columns["none"]["auc"] is None
    assert "'closed' has an AUC" in str(found["refusal"]) and "'paid'" in str(found["refusal"])


def test_without_labels_no_column_is_judged(table, tmp_path):
    found = profile_table(tmp_path / "mine.csv", {})
    assert found["positives"] is None and all(column["auc"] is None for column in found["columns"])
    assert "left" in [column["name"] for column in found["columns"]]


def test_the_profile_tells_the_command_that_works(table, tmp_path):
    done = invoke("profile", "mine.csv", "--label", "left", "--positive", "yes")
    assert done.exit_code == 0 and "3 duplicates of an earlier row" in done.stdout
    [told] = [line for line in done.stdout.splitlines() if "this would do" in line]
    options = told.partition("precbench compare ")[2].split()
    again = invoke("profile", *options)
    assert "compare refuses" not in again.stdout and "compare would train" in again.stdout
    found = json.loads(invoke("profile", *options, "--json").stdout)
    assert found["refusal"] is None and found["rows"] == 203
    assert [column["name"] for column in found["columns"]] == list(table.columns[:-1])


def test_what_is_no_table_is_refused(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.svm").write_text("1 1:2\n-1 1:3\n")
    refused(["profile", "mine.svm"], "mine.svm")
    refused(["profile", "none.csv", "--label", "y"], "none.csv")
