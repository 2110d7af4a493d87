"""The errors that tests/plant.py plants."""

from types import SimpleNamespace

from tests import plant
from tests.helpers import ROOT
from tests.sentences import raises


def test_each_error_is_planted_in_one_place():
    listed = plant.plants()
    assert len({error.name for error in listed}) == len(listed) >= 40
    for error in listed:
        assert error.text(ROOT) != (ROOT / error.file).read_text()
    with raises(ValueError, "0"):
        plant.Plant("lost", "README.md", "a text that is not there", "").text(ROOT)


def test_nothing_of_an_error_stays(tmp_path):
    """Nor what was compiled of it, which the next build would take for newer."""
    (tmp_path / "a.pyx").write_text("x = 1\n")
    (tmp_path / "a.so").write_text("of 1")

    def build(file):
        (tmp_path / "a.c").write_text("of 2")
        (tmp_path / "a.so").write_text("of 2")

    copy = SimpleNamespace(
        tree=tmp_path, build=build, restore=lambda: None, run=lambda *_: "a difference"
    )
    error = plant.Plant("of ours", "a.pyx", "x = 1", "x = 2")
    known = {}
    assert list(plant.examine(error, copy, known, ["values"])) == ["values finds it"]
    assert known == {"values": "a difference"}
    left = {path.name: path.read_text() for path in tmp_path.iterdir()}
    assert left == {"a.pyx": "x = 1\n", "a.so": "of 1"}
