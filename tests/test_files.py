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
def test_the_mark_is_absent_while_the_others_are_replaced(tmp_path, monkeypatch):
    data, mark = tmp_path / "a.npz", tmp_path / "a.json"
    replace, states = type(data).replace, []

    def watched(path, target):
        states.append((target.name, mark.exists()))
        return replace(path, target)

    monkeypatch.setattr(type(data), "replace", watched)
    for content in (b"1", b"2"):
        write_whole({data: content, mark: content})
        assert (data.read_bytes(), mark.read_bytes()) == (content, content)
    assert states == [("a.npz", False), ("a.json", False)] * 2
    assert sorted(tmp_path.iterdir()) == [mark, data]


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
def test_an_unfinished_folder_is_removed(tmp_path):
    with pytest.raises(KeyError), temporary(tmp_path / "folder") as path:
        path.mkdir()
        (path / "part").write_bytes(b"1")
        raise KeyError
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(("number", "kind"), [(errno.EDQUOT, PrecbenchError), (5, InputError)])
def test_the_advice_is_in_the_message(number, kind):
    with raises(kind) as caught, writing("here", "choose another place", refused=InputError):
        raise OSError(number, "what the system says")
    assert ("what the system says" in str(caught.value)) == (kind is InputError)
