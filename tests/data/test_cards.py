"""Every card obeys the laws of cards; a bad card is refused with the field's name."""

import pytest
import yaml

from precbench.data import DATASETS, find_card
from precbench.data.cards.card import read_card
from precbench.errors import InputError
from precbench.locations import shipped

PUBLISHED = {
    "kdd08": (102_294, 117, 623),
    "ppi": (240_249, 85, 2_865),
    "letter": (20_000, 16, 783),
    "letter-q": (20_000, 16, 783),
    "adult": (48_842, 123, 11_687),
    "a9a": (48_842, 123, 11_687),
    "ijcnn1": (141_691, 22, 13_565),
    "covtype": (581_012, 54, 9_493),
    "cod-rna": (488_565, 8, 162_855),
    "cod-rna-2": (331_152, 8, 110_384),
    "w8a": (64_700, 300, 1_933),
}


def test_the_names_come_in_a_fixed_order():
    assert list(DATASETS) == sorted(path.stem for path in shipped("datasets").glob("*.yaml"))
    assert len(DATASETS) == len(list(DATASETS))
    assert PUBLISHED.keys() <= DATASETS.keys()
    assert "nope" not in DATASETS
    assert DATASETS.get("nope") is None


@pytest.mark.parametrize("name", sorted(PUBLISHED))
def test_published_sizes(name):
    card = DATASETS[name]
    assert (card.rows, card.features, card.positives) == PUBLISHED[name]


@pytest.mark.parametrize("name", DATASETS)
def test_every_card(name):
    card = DATASETS[name]
    assert card.name == name
    assert card.citation
    assert card.licence
    assert card.train_rows is None or card.train_rows < card.rows
    for file in card.files:
        assert file.has_checksum or card.name in ("kdd08", "ppi")


def test_an_unknown_name_gets_the_nearest_one():
    with pytest.raises(InputError, match="unknown data set 'ijcn1'; did you mean 'ijcnn1'"):
        find_card("ijcn1")
    with pytest.raises(InputError, match="choose one of a9a, adult"):
        find_card("zzz")


@pytest.mark.parametrize(
    ("change", "what"),
    [
        ({"rowz": 3}, "rowz: Extra inputs"),
        ({"rows": "many"}, "rows: Input should be a valid integer"),
        ({"rows": "20000"}, "rows: Input should be a valid integer"),
        ({"positives": 20_000}, "leave one class"),
        ({"folder": "../letter"}, "folder: String should match"),
        ({"folder": "C:\\letter"}, "folder: String should match"),
        ({"folder": "lettеr"}, "folder: String should match"),  # a Cyrillic е
        ({"label_column": None}, "label_column is missing"),
        ({"gamma": 0.1}, "gamma has no meaning"),
        ({"name": "other"}, "its file 'letter'"),
    ],
)
def test_a_bad_card(tmp_path, change, what):
    card = yaml.safe_load((shipped("datasets") / "letter.yaml").read_text())
    path = tmp_path / "letter.yaml"
    path.write_text(yaml.safe_dump(card | change))
    with pytest.raises(InputError, match=r"letter\.yaml: ") as caught:
        read_card(path)
    assert what in str(caught.value)


@pytest.mark.parametrize(
    ("change", "what"),
    [
        ({"name": "../x"}, "files.0.name"),
        ({"name": "/etc/passwd"}, "files.0.name"),
        ({"name": "a\0b"}, "files.0.name"),
        ({"name": ".hidden"}, "files.0.name"),
        ({"urls": ["http://example.org/x"]}, "must be https"),
        ({"urls": ["file:///etc/passwd"]}, "must be https"),
        ({"sha256": "abc"}, "files.0.sha256"),
        ({"bytes": None}, "either bytes or max_bytes"),
    ],
)
def test_a_bad_file_of_a_card(tmp_path, change, what):
    card = yaml.safe_load((shipped("datasets") / "letter.yaml").read_text())
    card["files"][0] |= change
    path = tmp_path / "letter.yaml"
    path.write_text(yaml.safe_dump(card))
    with pytest.raises(InputError) as caught:
        read_card(path)
    assert what in str(caught.value)


def test_no_yaml(tmp_path):
    path = tmp_path / "letter.yaml"
    path.write_text("a: [")
    with pytest.raises(InputError, match="not a YAML file"):
        read_card(path)
