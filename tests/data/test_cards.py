"""Every card is valid; an invalid card is rejected with the name of the field."""

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


def test_names_are_in_a_fixed_order():
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
def test_every_card_is_valid(name):
    card = DATASETS[name]
    assert card.name == name
    assert card.citation
    assert card.licence
    assert card.train_rows is None or card.train_rows < card.rows
    for file in card.files:
        assert file.has_checksum or card.name in ("kdd08", "ppi")


def test_an_unknown_name_suggests_the_nearest_one():
    with pytest.raises(InputError, match=r"unknown data set 'ijcn1' \(did you mean 'ijcnn1'"):
        find_card("ijcn1")
    with pytest.raises(InputError, match="choose from a9a, adult"):
        find_card("zzz")


@pytest.mark.promise("R22")
@pytest.mark.parametrize(
    ("change", "what"),
    [
        ({"rowz": 3}, "rowz: unknown key (did you mean 'rows'?)"),
        ({"rows": "many"}, "rows: should be a valid integer"),
        ({"rows": "20000"}, "rows: should be a valid integer"),
        ({"positives": 20_000}, "positives: 20000 positives of 20000 rows leave no negatives"),
        ({"folder": "../letter"}, "folder: should hold letters, digits"),
        ({"folder": "C:\\letter"}, "folder: should hold letters, digits"),
        ({"folder": "lettеr"}, "folder: should hold letters, digits"),  # a Cyrillic е
        ({"label_column": None}, "label_column: is missing"),
        ({"gamma": 0.1}, "gamma: has no meaning here"),
        ({"non_linear": 0.0}, "non_linear: has no meaning here"),
        ({"name": "other"}, "name: should be the file's name, 'letter'"),
    ],
)
def test_invalid_cards(tmp_path, change, what):
    card = yaml.safe_load((shipped("datasets") / "letter.yaml").read_text())
    path = tmp_path / "letter.yaml"
    path.write_text(yaml.safe_dump(card | change))
    with pytest.raises(InputError, match=r"letter\.yaml:\d+:\d+: ") as caught:
        read_card(path)
    assert what in str(caught.value)


def test_synthetic_data_are_called_so():
    for card in DATASETS.values():
        if card.generator == "signal":
            assert card.title.startswith("Synthetic, ")
            assert card.name.startswith("synthetic-")


@pytest.mark.promise("R22")
@pytest.mark.parametrize(
    ("change", "what"),
    [
        ({"name": "../x"}, "files[0].name: should hold letters"),
        ({"name": "/etc/passwd"}, "files[0].name: should hold letters"),
        ({"name": "a\0b"}, "files[0].name: not allowed here: a control character"),
        ({"name": ".hidden"}, "files[0].name: should hold letters"),
        ({"urls": ["http://example.org/x"]}, "files[0].urls[0]: an official address must be https"),
        ({"urls": ["file:///etc/passwd"]}, "files[0].urls[0]: an official address must be https"),
        ({"sha256": "abc"}, "files[0].sha256: should be 64 lower-case"),
        ({"bytes": None}, "files[0]: needs either bytes or max_bytes"),
    ],
)
def test_invalid_files_of_a_card(tmp_path, change, what):
    card = yaml.safe_load((shipped("datasets") / "letter.yaml").read_text())
    card["files"][0] |= change
    path = tmp_path / "letter.yaml"
    path.write_text(yaml.safe_dump(card))
    with pytest.raises(InputError) as caught:
        read_card(path)
    assert what in str(caught.value)


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("a: [", r"letter\.yaml:2:1: did not find"),
        ("name: letter\nname: letter\n", r"letter\.yaml:2:1: name: duplicate key"),
        ("- letter\n", r"letter\.yaml:1:1: should be a mapping"),
    ],
)
def test_a_card_that_is_not_a_mapping(tmp_path, text, complaint):
    path = tmp_path / "letter.yaml"
    path.write_text(text)
    with pytest.raises(InputError, match=complaint):
        read_card(path)


def test_every_error_in_a_card_is_located(tmp_path):
    text = (shipped("datasets") / "letter.yaml").read_text()
    path = tmp_path / "letter.yaml"
    path.write_text(text.replace("positive: ", "positiv: ").replace("rows: ", "rows: -"))
    with pytest.raises(InputError) as caught:
        read_card(path)
    lines = text.splitlines()
    for key, found in (("positive: ", "positiv: unknown key"), ("rows: ", "rows: should be")):
        number = next(i for i, line in enumerate(lines, 1) if line.startswith(key))
        assert f"letter.yaml:{number}:1: {found}" in str(caught.value)
