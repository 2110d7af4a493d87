"""The files of cards in the cache, with their checksums.

Beside each file a hidden note keeps its checksums, so that an unchanged file is not read again.
"""

from __future__ import annotations

import atexit
import contextlib
import filecmp
import json
import os
import shutil
import tempfile
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from precbench.files import write_whole
from precbench.locations import cache_folder

if TYPE_CHECKING:
    from precbench.data.cards.card import Card, File

Status = Literal["verified", "as added", "damaged", "missing"]


@dataclass(frozen=True)
class FileReport:
    """State of one file of a card in the cache.

    Attributes
    ----------
    name : str
    status : {"verified", "as added", "damaged", "missing"}
        ``verified``: it has the published checksum; ``as added``: none is published, and the file
        has not changed since it was added; ``damaged``: it has another checksum.
    expected : str or None
        The published sha256, else the published MD5, else the sha256 of the file as added.
    path : str or None
    sha256 : str or None
        Checksum of the file in the cache.
    bytes : int or None
    """

    name: str
    status: Status
    expected: str | None = None
    path: str | None = None
    sha256: str | None = None
    bytes: int | None = None


@dataclass(frozen=True)
class Checksums:
    """Checksums of a file, and its size and time of modification when they were computed."""

    sha256: str
    md5: str
    bytes: int
    mtime_ns: int

    @classmethod
    def of(cls, path: Path) -> Checksums:
        """Compute the checksums of a file."""
        import pooch

        status = path.stat()  # first: if the file changes meanwhile, it is read again next time
        sha256, md5 = (pooch.file_hash(str(path), algorithm) for algorithm in ("sha256", "md5"))
        return cls(sha256, md5, status.st_size, status.st_mtime_ns)

    def match(self, file: File) -> bool:
        """Whether they are the published ones, as far as any are."""
        return file.sha256 in (None, self.sha256) and file.md5 in (None, self.md5)

    def are_current(self, path: Path) -> bool:
        """Whether the file still has the size and time of modification."""
        now = path.stat()
        return (self.bytes, self.mtime_ns) == (now.st_size, now.st_mtime_ns)


def folders(card: Card) -> tuple[Path, ...]:
    """Return the folders that may hold files of a card; the last one can be written."""
    folder = cache_folder() / "files" / card.folder
    with contextlib.suppress(OSError):
        folder.mkdir(parents=True, exist_ok=True)
    if os.access(folder, os.W_OK):
        return (folder,)
    writable = _process_folder() / card.folder
    writable.mkdir(exist_ok=True)
    return (folder, writable)


def inspect(card: Card, file: File, *, anew: bool = False) -> FileReport:
    """Compare a cached file with its checksum; `anew` even if it seems unchanged."""
    paths = [folder / file.name for folder in folders(card)]
    path = next(filter(Path.is_file, paths), None)
    if path is None:
        return FileReport(file.name, "missing", file.sha256 or file.md5)
    earlier = _remembered(path)
    unchanged = not anew and earlier is not None and earlier.are_current(path)
    now = earlier if earlier and unchanged else Checksums.of(path)
    as_added = earlier.sha256 if earlier else now.sha256
    status: Status
    if file.has_checksum:
        status = "verified" if now.match(file) else "damaged"
    else:
        status = "as added" if now.sha256 == as_added else "damaged"
    if status != "damaged" and now != earlier:
        remember(path, now)
    expected = file.sha256 or file.md5 or as_added
    return FileReport(file.name, status, expected, str(path), now.sha256, now.bytes)


def remember(path: Path, checksums: Checksums) -> None:
    """Note the checksums beside the file; without a note it is read again next time."""
    with contextlib.suppress(OSError):
        write_whole({_note(path): json.dumps(asdict(checksums))})


def set_aside(path: Path, target: Path) -> Path:
    """Rename a bad file to ``<target>.rejected``, with a number if another file has that name."""
    aside, number = target.with_name(f"{target.name}.rejected"), 1
    while aside.exists() and not filecmp.cmp(path, aside, shallow=False):
        number += 1
        aside = target.with_name(f"{target.name}.rejected-{number}")
    path.replace(aside)
    if path == target:
        _note(path).unlink(missing_ok=True)
    return aside


@cache
def _process_folder() -> Path:
    """Make a folder that lives as long as the process, for a cache that cannot be written."""
    folder = Path(tempfile.mkdtemp(prefix="precbench-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


def _note(path: Path) -> Path:
    return path.with_name(f".{path.name}.json")


def _remembered(path: Path) -> Checksums | None:
    try:
        return Checksums(**json.loads(_note(path).read_text(encoding="ascii")))
    except (OSError, ValueError, TypeError):
        return None
