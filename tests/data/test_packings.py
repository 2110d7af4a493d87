"""A file is taken out of any packing, whole and of bounded size."""

import bz2
import gzip
import io
import lzma
import tarfile
import zipfile
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

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


def zipped(members):
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
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


def mirror_name(packing):
    """Return the name of the packed file in a mirror."""
    return f"toy.svm.{packing}" if packing in COMPRESS else f"data.{packing}"


def names_in(cache):
    """Return the names of all files in the cache."""
    return {path.name for path in cache.rglob("*") if path.is_file()}


@pytest.mark.promise("R16")
@pytest.mark.parametrize("packing", PACKINGS)
def test_a_file_comes_from_a_folder(cache, tmp_path, packing):
    (tmp_path / "toys").mkdir()
    path = tmp_path / "toys" / mirror_name(packing)
    path.write_bytes(packed(packing, TEXT))
    [file] = fetch(card_with(packing), tmp_path)
    assert file.path.read_bytes() == TEXT
    assert file.status == "verified"
    assert names_in(cache) == {"toy.svm"}


@pytest.mark.parametrize("packing", PACKINGS)
def test_a_file_comes_from_a_mirror_with_an_address(cache, server, packing):
    server.serve(f"/toys/{mirror_name(packing)}", packed(packing, TEXT))
    [file] = fetch(card_with(packing), server.address)
    assert file.path.read_bytes() == TEXT
    assert names_in(cache) == {"toy.svm"}


@pytest.mark.parametrize("packing", PACKINGS)
def test_a_file_comes_from_a_published_address(cache, server, packing):
    card = served_card(server, packing, packed(packing, TEXT))
    [file] = fetch(card)
    assert file.path.read_bytes() == TEXT
    assert names_in(cache) == {"toy.svm"}


@pytest.mark.parametrize("packing", PACKINGS)
def test_a_user_adds_a_packed_file(tmp_path, add_card, packing):
    add_card(card_with(packing))
    path = tmp_path / mirror_name(packing)
    path.write_bytes(packed(packing, TEXT))
    [file] = add_files("toy", [path])
    assert file.path.read_bytes() == TEXT


def test_the_identity_is_the_same_in_any_packing(cache, server):
    """The keys of trials have that of the content."""
    identities = set()
    for packing in PACKINGS:
        [file] = fetch(served_card(server, packing, packed(packing, TEXT)))
        identities.add(file.sha256)
        file.path.unlink()
    assert len(identities) == 1


# --- what is refused, in a sentence, with exit code 3 ---


@dataclass(frozen=True)
class Fault:
    """What is served in place of an archive, and the words of the refusal."""

    serve: Callable[[str], bytes]  # takes the packing
    words: str
    packings: tuple[str, ...] = tuple(PACKINGS)


# Each takes the packing of the archive, and returns what is served.


def bomb(packing):
    return packed(packing, TEXT + bytes(60_000_000))


def cut_in_half(packing):
    content = packed(packing, TEXT)
    return content[: len(content) // 2]


def other_text(packing):
    return packed(packing, TEXT[::-1])


def login_page(_packing):
    return b"<html>Please log in</html>"


def nothing(_packing):
    return b""


def other_member(packing):
    return packed(packing, TEXT, "toy.svm")


def folder_of_the_name(packing):
    return packed(packing, b"", f"{MEMBER}/")


def bomb_before_the_member(_packing):
    return tarred({"README": bytes(60_000_000), MEMBER: TEXT})


FAULTS = {
    "bomb": Fault(bomb, words="unpacks more than"),
    "cut": Fault(cut_in_half, words="archive"),
    "other text": Fault(other_text, words="checksum is wrong sha256"),
    "login page": Fault(login_page, words="archive"),
    "empty": Fault(nothing, words=""),
    "other member": Fault(
        other_member, words=f"no member {MEMBER}", packings=("zip", "tar.gz")
    ),
    "folder in place of the member": Fault(
        folder_of_the_name, words=f"no member {MEMBER}", packings=("zip",)
    ),
    "bomb before the member": Fault(
        bomb_before_the_member, words="50,000", packings=("tar.gz",)
    ),
}
FAULTY_ARCHIVES = [
    pytest.param(fault, packing, id=f"{name}-{packing}")
    for name, fault in FAULTS.items()
    for packing in fault.packings
]


@pytest.mark.promise("R16")
@pytest.mark.parametrize(("fault", "packing"), FAULTY_ARCHIVES)
def test_faults_of_an_archive(cache, server, add_card, fault, packing):
    add_card(served_card(server, packing, fault.serve(packing)))
    result = invoke("data", "fetch", "toy")
    assert result.exit_code == 3
    [line] = result.stderr.splitlines()
    names(line, f"{server.address}/files/5976039 {fault.words}")
    assert names_in(cache) == set()


@pytest.mark.promise("R16")
def test_an_archive_with_another_checksum_is_not_unpacked(cache, server, monkeypatch):
    content = packed("gz", TEXT)
    card = served_card(server, "gz", content, sha256="0" * 64)
    monkeypatch.setattr("precbench.data.cards.fetch.unpack", None)
    with raises(DataUnavailableError, f"{server.address}/files/5976039 {'0' * 64}"):
        fetch(card)
    assert names_in(cache) == set()


@pytest.mark.promise("R16")
def test_an_archive_larger_than_on_the_card(cache, server):
    card = served_card(server, "zip", packed("zip", TEXT) + bytes(200_000))
    with raises(DataUnavailableError, "100,000 bytes"):
        fetch(card)


@pytest.mark.parametrize("packing", PACKINGS)
def test_a_bomb_writes_no_byte_more_than_its_limit(tmp_path, packing):
    archive = tmp_path / "archive"
    archive.write_bytes(bomb(packing))
    target = tmp_path / "target"
    with raises(InputError, "1,000,000"):
        unpack(archive, packing, target, 1_000_000, member=MEMBER, stream_limit=10**9)
    assert target.stat().st_size <= 1_000_000


def encrypted():
    """Return a zip whose second member has the flag of encryption.

    The flag is set by hand, as zipfile writes no such members.
    """
    content = bytearray(packed("zip", TEXT))
    in_header = second_place(content, b"PK\3\4") + 6
    in_directory = second_place(content, b"PK\1\2") + 8
    content[in_header] |= 1
    content[in_directory] |= 1
    return content


def second_place(content, signature):
    first = content.index(signature)
    return content.index(signature, first + 1)


def test_an_encrypted_member_is_refused(tmp_path):
    (tmp_path / "archive").write_bytes(encrypted())
    with raises(InputError, "encrypted"):
        unpack(tmp_path / "archive", "zip", tmp_path / "out", 10_000, member=MEMBER)


@pytest.mark.parametrize("member", ["../../out", "/etc/out", "a/../../out"])
def test_a_member_is_looked_up_and_never_a_path(tmp_path, member):
    (tmp_path / "archive").write_bytes(zipped({member: TEXT}))
    unpack(tmp_path / "archive", "zip", tmp_path / "toy.svm", 10_000, member=member)
    assert {path.name for path in tmp_path.iterdir()} == {"archive", "toy.svm"}


# --- cards ---


@dataclass(frozen=True)
class InvalidArchive:
    """Fields of an archive of a card that are changed, and the words of the refusal."""

    packing: str
    words: str
    changes: dict[str, Any] = field(default_factory=dict)


INVALID_ARCHIVES = {
    "zip without a member": InvalidArchive(
        "zip", changes={"member": None}, words="member"
    ),
    "tar without a member": InvalidArchive(
        "tar.gz", changes={"member": None}, words="member"
    ),
    "gz with a member": InvalidArchive(
        "gz", changes={"member": "a"}, words="member gz"
    ),
    "tar without a bound": InvalidArchive(
        "tar.gz", changes={"max_unpacked_bytes": None}, words="tar.gz"
    ),
    "zip with a bound": InvalidArchive(
        "zip", changes={"max_unpacked_bytes": 5}, words="max_unpacked_bytes"
    ),
    "unknown packing": InvalidArchive("rar", words="'rar' zip"),
    "an address of http": InvalidArchive(
        "gz", changes={"url": "http://example.org/a.gz"}, words="https"
    ),
    "empty": InvalidArchive("gz", changes={"max_bytes": 0}, words="0"),
    "a short checksum": InvalidArchive("gz", changes={"sha256": "abc"}, words="64"),
}


@pytest.mark.promise("R17")
@pytest.mark.parametrize("case", INVALID_ARCHIVES.values(), ids=INVALID_ARCHIVES)
def test_invalid_archives(case):
    with pytest.raises(ValueError) as caught:
        Archive.model_validate(archive_fields(case.packing, **case.changes))
    names(str(caught.value), case.words)


def test_covertype_in_the_packing_of_the_mirror(cache, mirror):
    [file] = fetch(find_card("covtype"), mirror)
    assert file.status == "verified"
    assert file.name == "covtype.data"
    assert file.bytes == 75_169_317
