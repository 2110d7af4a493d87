"""A file is what it holds.

It is taken out of any packing, whole and of bounded size.
"""

import bz2
import gzip
import io
import lzma
import tarfile
import zipfile
from dataclasses import dataclass

import pytest

from precbench.core.errors import DataUnavailableError, InputError
from precbench.data import find_card
from precbench.data.cards.card import Archive
from precbench.data.cards.fetch import add_files, fetch
from precbench.data.cards.unpack import unpack
from tests.helpers import TOY_SVM as TEXT
from tests.helpers import invoke, make_card
from tests.sentences import names, raises

MEMBER = "training_data/toy.svm"
COMPRESS = {"gz": gzip.compress, "bz2": bz2.compress, "xz": lzma.compress}


def zipped(members, **options):
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED, **options) as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return file.getvalue()


def tarred(members):
    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode="w:gz") as archive:
        for name, content in members.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(content)
            archive.addfile(entry, io.BytesIO(content))
    return file.getvalue()


ARCHIVE = {"zip": zipped, "tar.gz": tarred}
PACKINGS = [*COMPRESS, *ARCHIVE]


def packed(packing, content, member=MEMBER):
    """Return the bytes of an archive with the content, beside another file if it holds
    several.
    """
    if packing in COMPRESS:
        return COMPRESS[packing](content)
    return ARCHIVE[packing]({"README": b"read me", member: content})


def archive_fields(packing, **changes):
    """Return what a card says of an archive of the file."""
    fields = {
        "url": f"https://example.org/data.{packing}",
        "packing": packing,
        "max_bytes": 100_000,
    }
    if packing in ARCHIVE:
        fields["member"] = MEMBER
    if packing == "tar.gz":
        fields["max_unpacked_bytes"] = 50_000
    return fields | changes


def card_with(packing, **changes):
    return make_card(file={"archives": [archive_fields(packing, **changes)]})


def served_card(server, packing, content, **changes):
    """Return a card whose archive is at an address without a suffix, and serve it
    there.
    """
    server.serve("/files/5976039", content)
    card = card_with(packing, **changes)
    url = f"{server.address}/files/5976039"
    archive = card.files[0].archives[0].model_copy(update={"url": url})
    file = card.files[0].model_copy(update={"archives": (archive,)})
    return card.model_copy(update={"files": (file,)})


def left_behind(cache):
    return {path.name for path in cache.rglob("*") if path.is_file()}


@pytest.mark.promise("R16")
@pytest.mark.parametrize("packing", PACKINGS)
def test_from_a_folder(cache, tmp_path, packing):
    (tmp_path / "toys").mkdir()
    name = f"toy.svm.{packing}" if packing in COMPRESS else f"data.{packing}"
    (tmp_path / "toys" / name).write_bytes(packed(packing, TEXT))
    (file,) = fetch(card_with(packing), tmp_path)
    assert file.path.read_bytes() == TEXT
    assert file.status == "verified"
    assert left_behind(cache) == {"toy.svm"}


@pytest.mark.parametrize("packing", PACKINGS)
def test_from_a_mirror_with_an_address(cache, server, packing):
    name = f"toy.svm.{packing}" if packing in COMPRESS else f"data.{packing}"
    server.serve(f"/toys/{name}", packed(packing, TEXT))
    (file,) = fetch(card_with(packing), server.address)
    assert file.path.read_bytes() == TEXT
    assert left_behind(cache) == {"toy.svm"}


@pytest.mark.parametrize("packing", PACKINGS)
def test_from_a_published_address(cache, server, packing):
    card = served_card(server, packing, packed(packing, TEXT))
    (file,) = fetch(card)
    assert file.path.read_bytes() == TEXT
    assert left_behind(cache) == {"toy.svm"}


@pytest.mark.parametrize("packing", PACKINGS)
def test_files_that_a_user_adds(tmp_path, add_card, packing):
    add_card(card_with(packing))
    name = f"toy.svm.{packing}" if packing in COMPRESS else f"data.{packing}"
    (tmp_path / name).write_bytes(packed(packing, TEXT))
    (file,) = add_files("toy", [tmp_path / name])
    assert file.path.read_bytes() == TEXT


def test_the_data_are_the_same_in_any_packing(cache, tmp_path, server):
    """The identity in keys of trials is that of the content."""
    seen = set()
    for packing in PACKINGS:
        (file,) = fetch(served_card(server, packing, packed(packing, TEXT)))
        seen.add(file.sha256)
        file.path.unlink()
    assert len(seen) == 1


# --- what is refused, in a sentence, with exit code 3 ---


@dataclass(frozen=True)
class Fault:
    change: object  # of packing and text to what is served
    says: str
    packings: tuple[str, ...] = tuple(PACKINGS)


def bomb(packing, text):
    return packed(packing, text + bytes(60_000_000))


def cut(packing, text):
    whole = packed(packing, text)
    return whole[: len(whole) // 2]


def other_text(packing, text):
    return packed(packing, text[::-1])


FAULTS = {
    "bomb": Fault(bomb, "unpacks more than"),
    "cut": Fault(cut, "archive"),
    "other text": Fault(other_text, "checksum is wrong sha256"),
    "login page": Fault(lambda *_: b"<html>Please log in</html>", "archive"),
    "empty": Fault(lambda *_: b"", ""),
    "other member": Fault(
        lambda packing, text: packed(packing, text, "toy.svm"),
        f"no member {MEMBER}",
        ("zip", "tar.gz"),
    ),
    "folder in place of the member": Fault(
        lambda packing, _: packed(packing, b"", f"{MEMBER}/"),
        f"no member {MEMBER}",
        ("zip",),
    ),
    "bomb before the member": Fault(
        lambda *_: tarred({"README": bytes(60_000_000), MEMBER: TEXT}),
        "50,000",
        ("tar.gz",),
    ),
}
CASES = [
    pytest.param(fault, packing, id=f"{name}-{packing}")
    for name, fault in FAULTS.items()
    for packing in fault.packings
]


@pytest.mark.promise("R16")
@pytest.mark.parametrize(("fault", "packing"), CASES)
def test_faults_of_an_archive(cache, server, add_card, fault, packing):
    add_card(served_card(server, packing, fault.change(packing, TEXT)))
    done = invoke("data", "fetch", "toy")
    assert done.exit_code == 3
    (line,) = done.stderr.splitlines()
    names(line, f"{server.address}/files/5976039 {fault.says}")
    assert left_behind(cache) == set()


@pytest.mark.promise("R16")
def test_an_archive_with_another_checksum_is_not_unpacked(cache, server, monkeypatch):
    content = packed("gz", TEXT)
    card = served_card(server, "gz", content, sha256="0" * 64)
    monkeypatch.setattr("precbench.data.cards.fetch.unpack", None)
    with raises(DataUnavailableError, f"{server.address}/files/5976039 {'0' * 64}"):
        fetch(card)
    assert left_behind(cache) == set()


@pytest.mark.promise("R16")
def test_an_archive_larger_than_on_the_card(cache, server):
    card = served_card(server, "zip", packed("zip", TEXT) + bytes(200_000))
    with raises(DataUnavailableError, "100,000 bytes"):
        fetch(card)


@pytest.mark.parametrize("packing", PACKINGS)
def test_a_bomb_writes_no_more_than_its_limit(tmp_path, packing):
    """No more than the limit is written, to the byte, before the error."""
    archive = tmp_path / "archive"
    archive.write_bytes(bomb(packing, b""))
    target = tmp_path / "target"
    with raises(InputError, "1,000,000"):
        unpack(archive, packing, target, 1_000_000, member=MEMBER, stream_limit=10**9)
    assert target.stat().st_size <= 1_000_000


def test_an_encrypted_member(tmp_path):
    """The flag of encryption is set by hand, as zipfile writes no such members."""
    content = bytearray(packed("zip", TEXT))
    for signature, offset in ((b"PK\3\4", 6), (b"PK\1\2", 8)):
        # of the second member
        start = content.index(signature, content.index(signature) + 1)
        content[start + offset] |= 1
    (tmp_path / "archive").write_bytes(content)
    with raises(InputError, "encrypted"):
        unpack(tmp_path / "archive", "zip", tmp_path / "out", 10_000, member=MEMBER)


@pytest.mark.parametrize("member", ["../../out", "/etc/out", "a/../../out"])
def test_a_member_is_looked_up_and_never_a_path(tmp_path, member):
    (tmp_path / "archive").write_bytes(zipped({member: TEXT}))
    unpack(tmp_path / "archive", "zip", tmp_path / "toy.svm", 10_000, member=member)
    assert {path.name for path in tmp_path.iterdir()} == {"archive", "toy.svm"}


# --- cards ---


@pytest.mark.promise("R17")
@pytest.mark.parametrize(
    ("packing", "change", "places"),
    [
        pytest.param("zip", {"member": None}, "member", id="zip without a member"),
        pytest.param("tar.gz", {"member": None}, "member", id="tar without a member"),
        pytest.param("gz", {"member": "a"}, "member gz", id="gz with a member"),
        pytest.param(
            "tar.gz", {"max_unpacked_bytes": None}, "tar.gz", id="tar without a bound"
        ),
        pytest.param(
            "zip",
            {"max_unpacked_bytes": 5},
            "max_unpacked_bytes",
            id="a bound below the size",
        ),
        pytest.param("rar", {}, "'rar' zip", id="unknown packing"),
        pytest.param(
            "gz", {"url": "http://example.org/a.gz"}, "https", id="an address of http"
        ),
        pytest.param("gz", {"max_bytes": 0}, "0", id="empty"),
        pytest.param("gz", {"sha256": "abc"}, "64", id="a short checksum"),
    ],
)
def test_invalid_archives(packing, change, places):
    with pytest.raises(ValueError) as caught:
        Archive.model_validate(archive_fields(packing, **change))
    names(str(caught.value), places)


def test_covertype_in_the_packing_of_the_mirror(cache, mirror):
    (file,) = fetch(find_card("covtype"), mirror)
    assert file.status == "verified"
    assert file.name == "covtype.data"
    assert file.bytes == 75_169_317
