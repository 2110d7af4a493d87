"""Every card is valid; an invalid card is rejected with the name of the field."""

import pytest
import yaml

from precbench.data import DATASETS, find_card
from precbench.data.cards.card import read_card
from precbench.errors import InputError
from precbench.locations import shipped
from tests.sentences import raises

PUBLISHED = {
    "kdd08": (102_294, 117, 623), "ppi": (240_249, 85, 2_865), "letter": (20_000, 16, 783),
    "letter-q": (20_000, 16, 783), "adult": (48_842, 123, 11_687), "a9a": (48_842, 123, 11_687),
    "ijcnn1": (141_691, 22, 13_565), "covtype": (581_012, 54, 9_493),
    "cod-rna": (488_565, 8, 162_855), "cod-rna-2": (331_152, 8, 110_384),
    "w8a": (64_700, 300, 1_933),
}  # fmt: skip


def test_names_are_in_a_fixed_order():
    assert list(DATASETS) == sorted(path.stem for path in shipped("datasets").glob("*.yaml"))
    assert len(DATASETS) == len(list(DATASETS)) and "nope" not in DATASETS


@pytest.mark.parametrize("name", sorted(PUBLISHED))
def test_published_sizes(name):
    card = DATASETS[name]
    assert (card.rows, card.features, card.positives) == PUBLISHED[name]


@pytest.mark.parametrize("name", DATASETS)
def test_every_card_is_valid(name):
    card = DATASETS[name]
    assert card.name == name and card.citation and card.licence
    assert card.train_rows is None or card.train_rows < card.rows
    for file in card.files:
        assert file.checksum or card.name in ("kdd08", "ppi")


def test_an_unknown_name_suggests_the_nearest_one():
    with raises(InputError, "'ijcn1' 'ijcnn1'"):
        find_card("ijcn1")
    with raises(InputError, "'zzz'"):
        find_card("zzz")


@pytest.mark.promise("R17")
@pytest.mark.parametrize(
    ("change", "what"),
    [
        ({"rowz": 3}, "rowz 'rows'"),
        ({"rows": "many"}, "rows"),
        ({"rows": "20000"}, "rows"),
        ({"positives": 20_000}, "positives 20000"),
        ({"folder": "../letter"}, "folder"),
        ({"folder": "C:\\letter"}, "folder"),
        ({"folder": "lettеr"}, "folder"),  # a Cyrillic е
        ({"label_column": None}, "label_column"),
        ({"gamma": 0.1}, "gamma"),
        ({"non_linear": 0.0}, "non_linear"),
        ({"name": "other"}, "name 'letter'"),
        ({"files": {"name": "../x"}}, "files[0].name"),
        ({"files": {"name": "/etc/passwd"}}, "files[0].name"),
        ({"files": {"name": "a\0b"}}, "files[0].name"),
        ({"files": {"name": ".hidden"}}, "files[0].name"),
        ({"files": {"urls": ["http://example.org/x"]}}, "files[0].urls[0]"),
        ({"files": {"urls": ["file:///etc/passwd"]}}, "files[0].urls[0]"),
        ({"files": {"sha256": "abc"}}, "files[0].sha256 64"),
        ({"files": {"bytes": None}}, "files[0] max_bytes"),
    ],
)
def test_invalid_cards(tmp_path, change, what):
    """A change of `files` is one of the first file."""
    card = yaml.safe_load((shipped("datasets") / "letter.yaml").read_text())
    if "files" in change:
        change = {"files": [card["files"][0] | change["files"]]}
    path = tmp_path / "letter.yaml"
    path.write_text(yaml.safe_dump(card | change))
    with raises(InputError, f"letter.yaml {what}"):
        read_card(path)
