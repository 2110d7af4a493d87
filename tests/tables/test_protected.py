"""Which columns are named as attributes of people that laws often protect."""

import numpy as np
import pandas as pd
import pytest

import precbench
from precbench.tables.protected import protected_columns
from tests.sentences import warns


@pytest.mark.parametrize(
    "name",
    [
        "sex",
        "Gender",
        "race",
        "maritalStatus",
        "applicant_age",
        "AGE",
        "age_in_years",
        "date of birth dob",
    ],
)
def test_protected(name):
    assert protected_columns([name]) == [name]


@pytest.mark.parametrize(
    "name",
    ["page", "average", "account_age", "age_of_car", "usage", "trace", "sextant"],
)
def test_not_protected(name):
    assert protected_columns([name]) == []


OPTIONS = {"label": "left", "k": 10, "n_splits": 1}


def customers():
    rng = np.random.default_rng(0)
    table = pd.DataFrame(
        {"bill": rng.normal(size=200), "age": rng.integers(20, 70, 200)}
    )
    table["left"] = table["bill"] + rng.normal(size=200) > 1
    return table


def test_a_model_for_people_is_fitted_with_a_word_of_advice():
    with warns(UserWarning, "age protect drop allow"):
        model = precbench.fit(customers(), **OPTIONS)
    assert [column.name for column in model.encoding.columns] == ["bill", "age"]


@pytest.mark.parametrize("option", ["allow", "drop"])
def test_whoever_has_decided_about_the_column_is_not_warned(option):
    precbench.fit(customers(), **OPTIONS, **{option: ["age"]})
