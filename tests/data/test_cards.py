"""Cards: valid, or rejected with the name of the field.

Stand-ins of the sizes of their card.
"""

from typing import NamedTuple

import numpy as np
import pytest
import yaml
from scipy.sparse import issparse

from precbench.core.errors import InputError
from precbench.core.locations import shipped
from precbench.data import DATASETS, find_card
from precbench.data.cards.card import read_card
from precbench.data.cards.generated import generate_stand_in
from tests.sentences import raises


class Size(NamedTuple):
    rows: int
    features: int
    positives: int


PUBLISHED = {
    "kdd08": Size(rows=102_294, features=117, positives=623),
    "ppi": Size(rows=240_249, features=85, positives=2_865),
    "letter": Size(rows=20_000, features=16, positives=783),
    "letter-q": Size(rows=20_000, features=16, positives=783),
    "adult": Size(rows=48_842, features=123, positives=11_687),
    "a9a": Size(rows=48_842, features=123, positives=11_687),
    "ijcnn1": Size(rows=141_691, features=22, positives=13_565),
    "covtype": Size(rows=581_012, features=54, positives=9_493),
    "covtype-4": Size(rows=581_012, features=54, positives=2_747),
    "cod-rna": Size(rows=488_565, features=8, positives=162_855),
    "cod-rna-2": Size(rows=331_152, features=8, positives=110_384),
    "w8a": Size(rows=64_700, features=300, positives=1_933),
}


def test_names_are_in_a_fixed_order():
    assert list(DATASETS) == sorted(
        path.stem for path in shipped("datasets").glob("*.yaml")
    )
    assert len(DATASETS) == len(list(DATASETS))
    assert "nope" not in DATASETS


@pytest.mark.parametrize("name", sorted(PUBLISHED))
def test_published_sizes(name):
    card = DATASETS[name]
    assert Size(card.rows, card.features, card.positives) == PUBLISHED[name]


@pytest.mark.parametrize("name", DATASETS)
def test_every_card_is_valid(name):
    card = DATASETS[name]
    assert card.name == name
    assert card.citation
    assert card.licence
    assert card.train_rows is None or card.train_rows < card.rows
    for file in card.files:
        assert file.checksum or card.name in ("kdd08", "ppi")


def test_an_unknown_name_suggests_the_nearest_one():
    for name, places in (("ijcn1", "'ijcn1' 'ijcnn1'"), ("zzz", "'zzz'")):
        with raises(InputError, places):
            find_card(name)


@pytest.mark.promise("R17")
@pytest.mark.parametrize(
    ("change", "places"),
    [
        pytest.param({"rowz": 3}, "rowz 'rows'", id="misspelt field"),
        pytest.param({"rows": "many"}, "rows", id="a word for a number"),
        pytest.param({"rows": "20000"}, "rows", id="a number in quotes"),
        pytest.param(
            {"positives": 20_000}, "positives 20000", id="as many positives as rows"
        ),
        pytest.param({"folder": "../letter"}, "folder", id="folder above the others"),
        pytest.param({"folder": "C:\\letter"}, "folder", id="folder of a drive"),
        pytest.param(
            {"folder": "lettеr"}, "folder", id="folder with a Cyrillic letter"
        ),  # a Cyrillic е
        pytest.param({"label_column": None}, "label_column", id="no column of labels"),
        pytest.param({"gamma": 0.1}, "gamma", id="a gamma"),
        pytest.param({"non_linear": 0.0}, "non_linear", id="non_linear of 0"),
        pytest.param({"name": "other"}, "name 'letter'", id="another name"),
        pytest.param(
            {"files": {"name": "../x"}}, "files[0].name", id="a file above its folder"
        ),
        pytest.param(
            {"files": {"name": "/etc/passwd"}},
            "files[0].name",
            id="a file from the root",
        ),
        pytest.param(
            {"files": {"name": "a\0b"}},
            "files[0].name",
            id="a NUL in the name of a file",
        ),
        pytest.param(
            {"files": {"name": ".hidden"}}, "files[0].name", id="a hidden file"
        ),
        pytest.param(
            {"files": {"urls": ["http://example.org/x"]}},
            "files[0].urls[0]",
            id="an address of http",
        ),
        pytest.param(
            {"files": {"urls": ["file:///etc/passwd"]}},
            "files[0].urls[0]",
            id="an address of a file",
        ),
        pytest.param(
            {"files": {"sha256": "abc"}}, "files[0].sha256 64", id="a short checksum"
        ),
        pytest.param(
            {"files": {"bytes": None}}, "files[0] max_bytes", id="no size of a file"
        ),
    ],
)
def test_invalid_cards(tmp_path, change, places):
    """A change of `files` is one of the first file."""
    card = yaml.safe_load((shipped("datasets") / "letter.yaml").read_text())
    if "files" in change:
        change = {"files": [card["files"][0] | change["files"]]}
    path = tmp_path / "letter.yaml"
    path.write_text(yaml.safe_dump(card | change))
    with raises(InputError, f"letter.yaml {places}"):
        read_card(path)


# --- stand-ins have the published sizes of the card, and labels that can be learnt ---


NAMES = [name for name in DATASETS if DATASETS[name].stand_in]
SMALL = {"rows": 5000, "positives": 200}


def small(name):
    return DATASETS[name].model_copy(update=SMALL)


@pytest.mark.parametrize("name", NAMES)
def test_rows_features_positives_and_density(name):
    card = small(name)
    X, y, _, _ = generate_stand_in(card)
    assert X.shape == (5000, card.features)
    assert np.count_nonzero(y == 1) == 200
    assert np.count_nonzero(y == -1) == 4800
    sparse = card.format == "svmlight" and card.stand_in.density <= 0.5
    assert issparse(X) == sparse
    n_nonzero = X.nnz if sparse else np.count_nonzero(X)
    assert n_nonzero / (5000 * card.features) == pytest.approx(
        card.stand_in.density, rel=0.03
    )
    if sparse:
        assert X.indices.dtype == X.indptr.dtype == np.int32
        assert set(X.data) == {1.0}


def test_the_name_determines_the_seed():
    one, same, other = (
        generate_stand_in(small(name)) for name in ("kdd08", "kdd08", "ppi")
    )
    assert np.array_equal(one.X, same.X)
    assert np.array_equal(one.y, same.y)
    assert not np.array_equal(one.X[:, :85], other.X)


# 300 features: slow
@pytest.mark.parametrize("name", [name for name in NAMES if name != "w8a"])
def test_the_noise_is_that_of_the_card(name):
    """The signal has unit variance, and noise takes its share of the correlation with
    the label.
    """
    card, seen = DATASETS[name], {}
    for noise in (0.0, card.stand_in.noise):
        changes = {"rows": 20_000, "positives": 10_000}
        changes["stand_in"] = card.stand_in.model_copy(update={"noise": noise})
        X, y, _, _ = generate_stand_in(card.model_copy(update=changes))
        X = X.toarray() if issparse(X) else X
        X = X - X.mean(axis=0)
        seen[noise] = np.corrcoef(X @ np.linalg.lstsq(X, y, rcond=None)[0], y)[0, 1]
    share = seen[card.stand_in.noise] / seen[0.0]
    assert share == pytest.approx(1 / np.sqrt(1 + card.stand_in.noise**2), rel=0.03)


def test_frequencies_of_binary_columns_fall_as_zipf_says():
    """They go with 1 / rank, but none is above 0.9."""
    X = generate_stand_in(
        DATASETS["w8a"].model_copy(update={"rows": 40_000, "positives": 99})
    ).X
    frequency = np.sort(np.asarray(X.mean(axis=0)).ravel())[::-1]
    assert frequency[0] == pytest.approx(0.9, abs=0.01)
    ranks = np.arange(4, 40)
    assert frequency[ranks - 1] * ranks == pytest.approx(frequency[99] * 100, rel=0.15)
