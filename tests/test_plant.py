"""The errors that tests/plant.py plants."""

from tests import plant
from tests.helpers import ROOT
from tests.sentences import raises


def test_each_error_is_planted_in_one_place():
    listed = plant.plants()
    assert len({error.name for error in listed}) == len(listed) >= 40
    for error in listed:
        assert error.text(ROOT) != plant.read(ROOT / error.file)
    with raises(ValueError, "0"):
        plant.Plant("lost", "README.md", "a text that is not there", "").text(ROOT)
