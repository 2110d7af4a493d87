"""One way of writing files, and one-line messages for what the disk refuses."""

import errno
import os

import pytest

from precbench.errors import InputError, PrecbenchError
from precbench.files import temporary, write_whole, writing
from tests.sentences import raises


def full(*_):
    raise OSError(errno.ENOSPC, "No space left on device")


@pytest.mark.promise("R1")
def test_files_are_replaced_together(tmp_path):
    data, mark = tmp_path / "a.npz", tmp_path / "a.json"
    for content in (b"1", b"2"):
        write_whole({data: content, mark: content})
        assert (data.read_bytes(), mark.read_bytes()) == (content, content)
    assert sorted(tmp_path.iterdir()) == [mark, data]


@pytest.mark.promise("R1")
def test_the_mark_is_absent_while_the_others_are_replaced(tmp_path, monkeypatch):
    data, mark = tmp_path / "a.npz", tmp_path / "a.json"
    write_whole({data: b"1", mark: b"1"})
    replace, states = type(data).replace, []

    def watched(path, target):
        states.append((target.name, mark.exists()))
        return replace(path, target)

    monkeypatch.setattr(type(data), "replace", watched)
    write_whole({data: b"2", mark: b"2"})
    assert states == [("a.npz", False), ("a.json", False)]


@pytest.mark.promise("R1")
def test_a_failed_write_leaves_nothing_behind(tmp_path, monkeypatch):
    target = tmp_path / "a"
    target.write_bytes(b"old")
    monkeypatch.setattr(os, "replace", full)
    with raises(PrecbenchError), writing(target):
        write_whole({target: b"new"})
    assert target.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [target]


@pytest.mark.promise("R1")
def test_a_folder_is_published_as_one(tmp_path):
    target = tmp_path / "folder"
    with pytest.raises(KeyError), temporary(target) as path:
        path.mkdir()
        (path / "part").write_bytes(b"1")
        raise KeyError
    assert not list(tmp_path.iterdir())
    with temporary(target) as path:
        path.mkdir()
        (path / "part").write_bytes(b"1")
        path.replace(target)
    assert list(tmp_path.iterdir()) == [target]
    assert (target / "part").read_bytes() == b"1"


@pytest.mark.parametrize(("number", "kind"), [(errno.EDQUOT, PrecbenchError), (5, InputError)])
def test_the_advice_is_in_the_message(number, kind):
    with raises(kind) as caught, writing("here", "choose another place", refused=InputError):
        raise OSError(number, "what the system says")
    assert ("what the system says" in str(caught.value)) == (kind is InputError)
