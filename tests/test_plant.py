"""The errors that tests/plant.py plants."""

import pytest

from tests import plant
from tests.helpers import ROOT


def test_each_error_is_planted_in_one_place():
    listed = plant.plants()
    assert len({error.name for error in listed}) == len(listed) >= 40
    for error in listed:
        assert error.text(ROOT) != (ROOT / error.file).read_text()
    with pytest.raises(ValueError, match="has its text 0 times"):
        plant.Plant("lost", "README.md", "a text that is not there", "").text(ROOT)
