"""Files reach the cache verified or not at all, whatever a source does."""

import bz2
import errno
import hashlib
import os
import shutil

import numpy as np
import pytest

from precbench.data.cards.fetch import add_files, fetch, info
from precbench.data.cards.parsers import parse
from precbench.errors import DataUnavailableError, InputError, PrecbenchError
from tests.helpers import TOY_SVM as TEXT
from tests.helpers import make_card
from tests.sentences import names, raises

PAGE = b"\n<!DOCTYPE html><html><body>Please log in</body></html>"


@pytest.fixture
def folder(tmp_path):
    folder = tmp_path / "mirror" / "toys"
    folder.mkdir(parents=True)
    return folder


def left_behind(cache):
    return {path.name for path in cache.rglob("*") if path.is_file()}


DONE = {"toy.svm"}


@pytest.mark.promise("R16")
def test_from_a_folder_then_from_the_cache(cache, folder):
    (folder / "toy.svm").write_bytes(TEXT)
    (file,) = fetch(make_card(), folder.parent)
    assert file.path == cache / "files" / "toys" / "toy.svm"
    assert file.path.read_bytes() == TEXT
    assert file.sha256 == hashlib.sha256(TEXT).hexdigest()
    shutil.rmtree(folder)
    assert fetch(make_card()) == (file,)
    assert left_behind(cache) == DONE


def test_compressed_with_bz2(cache, folder, monkeypatch):
    half = len(TEXT) // 2
    (folder / "toy.svm.bz2").write_bytes(bz2.compress(TEXT[:half]) + bz2.compress(TEXT[half:]))
    monkeypatch.setenv("PRECBENCH_MIRROR", str(folder.parent))
    (file,) = fetch(make_card())
    assert file.path.read_bytes() == TEXT
    assert left_behind(cache) == DONE


@pytest.mark.promise("R16")
@pytest.mark.parametrize("address", [
    "http://example.org/data", "ftp://example.org", "file:///x", "http://[",
    "http://localhost@x.org",
])  # fmt: skip
def test_other_mirrors_are_rejected(address):
    with raises(InputError, f"'{address}'"):
        fetch(make_card(), address)


@pytest.mark.promise("R16")
@pytest.mark.parametrize(("answer", "what"), [
    ((404, {}, b""), "404"), ((502, {}, b""), "502"),
    ((200, {"Content-Length": str(len(TEXT))}, TEXT[:100]), ""), (TEXT[:100], ""), (PAGE, ""),
    (TEXT + b"x", f"{len(TEXT):,}"), ((302, {"Location": "http://example.org/toy.svm"}, b""), ""),
    ((302, {"Location": "ftp://example.org/toy.svm"}, b""), ""),
    ((302, {"Location": "http://["}, b""), ""), ((200, {"Content-Length": "²"}, TEXT[:100]), ""),
    (bz2.compress(TEXT)[:-10], ""),
])  # fmt: skip
def test_server_errors(cache, server, answer, what):
    server.serve("/toys/toy.svm", answer)
    server.serve("/toys/toy.svm.bz2", answer)
    with raises(DataUnavailableError, f"{server.address}/toys/toy.svm {what}"):
        fetch(make_card(), server.address)
    assert left_behind(cache) == set()


def test_a_local_redirect_is_followed(cache, server):
    server.serve("/m/toys/toy.svm", (302, {"Location": f"{server.address}/elsewhere"}, b""))
    server.serve("/elsewhere", TEXT)
    assert fetch(make_card(), server.address + "/m/")[0].path.read_bytes() == TEXT
    assert left_behind(cache) == DONE
    assert server.encoding == "identity"


@pytest.mark.promise("R16")
def test_an_unreachable_server():
    card = make_card(file={"urls": ["https://localhost:9/toy.svm"]})
    with raises(DataUnavailableError, "localhost:9/toy.svm"):
        fetch(card, "http://127.0.0.1:9")


@pytest.mark.promise("R16")
def test_a_wrong_checksum_is_reported(cache, folder):
    (folder / "toy.svm").write_bytes(TEXT[::-1])
    (folder / "toy.svm.bz2").write_bytes(bz2.compress(TEXT))
    (file,) = fetch(make_card(), folder.parent)  # the next source has it
    assert file.path.read_bytes() == TEXT

    shutil.rmtree(cache)
    (folder / "toy.svm.bz2").unlink()
    with pytest.raises(DataUnavailableError) as caught:
        fetch(make_card(), folder.parent)
    for content in (TEXT, TEXT[::-1]):
        assert hashlib.sha256(content).hexdigest() in str(caught.value)
    names(str(caught.value), f"{folder}/toy.svm.bz2")


@pytest.mark.promise("R16")
def test_a_damaged_file_in_the_cache_is_replaced(folder):
    (folder / "toy.svm").write_bytes(TEXT)
    (file,) = fetch(make_card(), folder.parent)
    file.path.write_bytes(TEXT[:-1])
    assert fetch(make_card(), folder.parent)[0].path.read_bytes() == TEXT
    file.path.write_bytes(TEXT[:-1])
    with raises(DataUnavailableError, f"{file.path} {len(TEXT) - 1:,}"):
        fetch(make_card())


def test_md5_when_only_that_is_known(folder):
    (folder / "toy.svm").write_bytes(TEXT)
    md5 = hashlib.md5(TEXT, usedforsecurity=False).hexdigest()
    assert fetch(make_card(file={"sha256": None, "md5": md5}), folder.parent)
    with raises(DataUnavailableError, f"{md5} {'0' * 32}"):
        fetch(make_card(file={"sha256": None, "md5": "0" * 32}), folder.parent)


@pytest.mark.promise("R4")
@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EROFS])
def test_a_disk_that_cannot_be_written(folder, monkeypatch, code):
    (folder / "toy.svm").write_bytes(TEXT)

    def fail(*_, **__):
        raise OSError(code, os.strerror(code))

    monkeypatch.setattr("shutil.copyfile" if code == errno.ENOSPC else "pathlib.Path.mkdir", fail)
    with raises(PrecbenchError, "PRECBENCH_CACHE") as caught:
        fetch(make_card(), folder.parent)
    assert caught.value.exit_code == 1


def test_add_and_verify(tmp_path, add_card):
    add_card(make_card())
    brought = tmp_path / "toy.svm"
    brought.write_bytes(TEXT)
    assert [report.status for report in info("toy")] == ["missing"]
    (report,) = add_files("toy", [brought])
    assert (report.status, report.bytes) == ("verified", len(TEXT))
    assert report.sha256 == report.expected
    report.path.write_bytes(TEXT[::-1])
    (report,) = info("toy")
    assert report.status == "damaged" and report.sha256 != report.expected


# --- files that the user must provide, without a published checksum ---

ROWS, FEATURES, POSITIVES = 40, 5, 3


def pair_card():
    return make_card(
        name="pair", format="kdd08",
        files=[{"name": "Features.txt", "max_bytes": 10_000}, {"name": "Info.txt",
         "max_bytes": 10_000}],
        rows=ROWS, features=FEATURES, positives=POSITIVES,
    )  # fmt: skip


def write_pair(folder, rows=ROWS, positives=POSITIVES):
    folder.mkdir(parents=True, exist_ok=True)
    rng = np.random.default_rng(0)
    info = np.zeros((rows, 11))
    info[:, 0] = np.where(np.arange(rows) < positives, 1, -1)
    info[:, 4] = 100 + np.arange(rows) // 4
    np.savetxt(folder / "Features.txt", rng.standard_normal((rows, FEATURES)), fmt=" %.6e")
    np.savetxt(folder / "Info.txt", info, fmt="%g")
    return [folder / "Features.txt", folder / "Info.txt"]


def test_add_a_pair_without_checksums(tmp_path, add_card):
    card = add_card(pair_card())
    features, labels = write_pair(tmp_path / "brought")
    assert [r.status for r in add_files("pair", [features])] == ["as added", "missing"]
    assert [r.status for r in add_files("pair", [labels])] == ["as added", "as added"]
    arrays = parse(card, [file.path for file in fetch(card)])
    assert arrays.X.shape == (ROWS, FEATURES)
    assert np.array_equal(arrays.X, np.loadtxt(features))
    assert np.count_nonzero(arrays.y == 1) == POSITIVES
    assert np.array_equal(arrays.groups, np.arange(ROWS) // 4)

    write_pair(tmp_path / "other", positives=2)
    with raises(InputError, "Info.txt"):
        add_files("pair", [tmp_path / "other" / "Info.txt"])


@pytest.mark.promise("R16")
def test_of_files_added_together_all_or_none_are_kept(tmp_path, cache, add_card):
    add_card(pair_card())
    add_card(make_card(), "another file")
    right, other = write_pair(tmp_path / "right"), tmp_path / "other.txt"
    wrong = tmp_path / "toy.svm"
    other.write_bytes(PAGE)
    wrong.write_bytes(TEXT[:-1] + b" ")
    with raises(InputError, f"{other} Features.txt"):
        add_files("pair", [right[0], other])
    with raises(InputError, str(wrong)):
        add_files("toy", [wrong])
    assert wrong.exists() and left_behind(cache) == set()


@pytest.mark.promise("R16")
def test_contents_that_disagree_with_the_card_are_refused(tmp_path, cache, add_card):
    add_card(pair_card())
    with raises(InputError, "39 5 2 40"):
        add_files("pair", write_pair(tmp_path / "brought", rows=39, positives=2))
    assert left_behind(cache) == set()
    assert [r.status for r in add_files("pair", write_pair(tmp_path / "right"))] == ["as added"] * 2
