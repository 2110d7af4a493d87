"""Cards: valid, or refused with the name of the field; stand-ins as their cards say."""

from dataclasses import dataclass
from typing import Any, NamedTuple

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
    shipped_names = [path.stem for path in shipped("datasets").glob("*.yaml")]
    assert list(DATASETS) == sorted(shipped_names)
    assert len(DATASETS) == len(list(DATASETS))
    assert "nope" not in DATASETS


@pytest.mark.parametrize("name", sorted(PUBLISHED))
def test_a_card_has_the_published_sizes(name):
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


@pytest.mark.parametrize(
    ("name", "words"),
    [
        pytest.param("ijcn1", "'ijcn1' 'ijcnn1'", id="near a name"),
        pytest.param("zzz", "'zzz'", id="far from all"),
    ],
)
def test_an_unknown_name_suggests_the_nearest_one(name, words):
    with raises(InputError, words):
        find_card(name)


@dataclass(frozen=True)
class Invalid:
    """Fields of a card that are changed, and the words that the refusal has."""

    changes: dict[str, Any]
    words: str


def require_refusal(tmp_path, card, words):
    """See that the card is refused by the name of its file, and by these words."""
    path = tmp_path / "letter.yaml"
    path.write_text(yaml.safe_dump(card))
    with raises(InputError, f"letter.yaml {words}"):
        read_card(path)


def letter_card():
    return yaml.safe_load((shipped("datasets") / "letter.yaml").read_text())


INVALID_CARDS = {
    "misspelt field": Invalid({"rowz": 3}, words="rowz 'rows'"),
    "a word for a number": Invalid({"rows": "many"}, words="rows"),
    "a number in quotes": Invalid({"rows": "20000"}, words="rows"),
    "as many positives as rows": Invalid(
        {"positives": 20_000}, words="positives 20000"
    ),
    "folder above the others": Invalid({"folder": "../letter"}, words="folder"),
    "folder of a drive": Invalid({"folder": "C:\\letter"}, words="folder"),
    "folder with a Cyrillic letter": Invalid(
        {"folder": "lett\N{CYRILLIC SMALL LETTER IE}r"}, words="folder"
    ),
    "no column of labels": Invalid({"label_column": None}, words="label_column"),
    "a gamma": Invalid({"gamma": 0.1}, words="gamma"),
    "non_linear of 0": Invalid({"non_linear": 0.0}, words="non_linear"),
    "another name": Invalid({"name": "other"}, words="name 'letter'"),
}


@pytest.mark.promise("R17")
@pytest.mark.parametrize("case", INVALID_CARDS.values(), ids=INVALID_CARDS)
def test_invalid_cards(tmp_path, case):
    require_refusal(tmp_path, letter_card() | case.changes, case.words)


INVALID_FILES = {
    "a file above its folder": Invalid({"name": "../x"}, words="files[0].name"),
    "a file from the root": Invalid({"name": "/etc/passwd"}, words="files[0].name"),
    "a NUL in the name": Invalid({"name": "a\0b"}, words="files[0].name"),
    "a hidden file": Invalid({"name": ".hidden"}, words="files[0].name"),
    "an address of http": Invalid(
        {"urls": ["http://example.org/x"]}, words="files[0].urls[0]"
    ),
    "an address of a file": Invalid(
        {"urls": ["file:///etc/passwd"]}, words="files[0].urls[0]"
    ),
    "a short checksum": Invalid({"sha256": "abc"}, words="files[0].sha256 64"),
    "no size": Invalid({"bytes": None}, words="files[0] max_bytes"),
}


@pytest.mark.promise("R17")
@pytest.mark.parametrize("case", INVALID_FILES.values(), ids=INVALID_FILES)
def test_invalid_files_of_a_card(tmp_path, case):
    card = letter_card()
    card["files"] = [card["files"][0] | case.changes]
    require_refusal(tmp_path, card, case.words)


# --- stand-ins have the published sizes of the card, and labels that can be learnt ---


NAMES = [name for name in DATASETS if DATASETS[name].stand_in]


def small_card(name):
    return DATASETS[name].model_copy(update={"rows": 5000, "positives": 200})


def best_correlation(X, y):
    """Return how well a linear function of the rows follows the labels."""
    X = X.toarray() if issparse(X) else X
    centred = X - X.mean(axis=0)
    w = np.linalg.lstsq(centred, y, rcond=None)[0]
    return np.corrcoef(centred @ w, y)[0, 1]


@pytest.mark.parametrize("name", NAMES)
def test_a_stand_in_has_the_sizes_and_the_density_of_its_card(name):
    card = small_card(name)
    arrays = generate_stand_in(card)
    X = arrays.X
    assert X.shape == (5000, card.features)
    assert np.count_nonzero(arrays.y == 1) == 200
    assert np.count_nonzero(arrays.y == -1) == 4800
    n_nonzero = X.nnz if issparse(X) else np.count_nonzero(X)
    density = n_nonzero / (5000 * card.features)
    assert density == pytest.approx(card.stand_in.density, rel=0.03)


@pytest.mark.parametrize("name", NAMES)
def test_a_stand_in_of_a_sparse_format_is_binary_in_csr(name):
    card = small_card(name)
    X = generate_stand_in(card).X
    expects_csr = card.format == "svmlight" and card.stand_in.density <= 0.5
    assert issparse(X) == expects_csr
    if expects_csr:
        assert X.indices.dtype == np.int32
        assert X.indptr.dtype == np.int32
        assert set(X.data) == {1.0}


def test_the_name_determines_the_seed():
    kdd08 = generate_stand_in(small_card("kdd08"))
    again = generate_stand_in(small_card("kdd08"))
    ppi = generate_stand_in(small_card("ppi"))
    assert np.array_equal(again.X, kdd08.X)
    assert np.array_equal(again.y, kdd08.y)
    assert not np.array_equal(ppi.X, kdd08.X[:, :85])


# w8a has 300 features, which take long.
@pytest.mark.parametrize("name", [name for name in NAMES if name != "w8a"])
def test_the_noise_is_that_of_the_card(name):
    """The signal has unit variance, and noise takes its share of the correlation with
    the label.
    """
    card = DATASETS[name].model_copy(update={"rows": 20_000, "positives": 10_000})
    without_noise = card.stand_in.model_copy(update={"noise": 0.0})
    clean = generate_stand_in(card.model_copy(update={"stand_in": without_noise}))
    noisy = generate_stand_in(card)
    share = best_correlation(noisy.X, noisy.y) / best_correlation(clean.X, clean.y)
    assert share == pytest.approx(1 / np.sqrt(1 + card.stand_in.noise**2), rel=0.03)


def test_frequencies_of_binary_columns_fall_as_zipf_says():
    """They go with 1 / rank, but none is above 0.9."""
    card = DATASETS["w8a"].model_copy(update={"rows": 40_000, "positives": 99})
    X = generate_stand_in(card).X
    frequency_by_rank = np.sort(np.asarray(X.mean(axis=0)).ravel())[::-1]
    assert frequency_by_rank[0] == pytest.approx(0.9, abs=0.01)
    ranks = np.arange(4, 40)
    products = frequency_by_rank[ranks - 1] * ranks
    assert products == pytest.approx(frequency_by_rank[99] * 100, rel=0.15)
