"""Get the files of a card: from the cache, a mirror, or their official addresses.

A file gets its name in the cache only after its checksum has been verified. A file without a
published checksum is checked by what comes out of it (see `precbench.data.cards.parsers`).
"""

from __future__ import annotations

import atexit
import bz2
import contextlib
import filecmp
import hashlib
import ipaddress
import json
import os
import shutil
import sys
import tempfile
import time
import zipfile
import zlib
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path, PurePosixPath
from typing import IO, TYPE_CHECKING, Any, Literal, NamedTuple, Self
from urllib.parse import unquote, urljoin, urlsplit

from precbench.data.cards.parsers import parse
from precbench.data.cards.registry import find_card
from precbench.data.dataset import Arrays
from precbench.errors import DataUnavailableError, InputError
from precbench.files import publish, temporary, write_whole, writing
from precbench.locations import cache_folder

if TYPE_CHECKING:
    import requests

    from precbench.data.cards.card import Card, File

CHUNK = 1 << 18
ATTEMPTS = 3
FIRST_WAIT = 0.5  # seconds, doubled before each further attempt
TIMEOUTS = (10.0, 60.0)  # seconds to connect, and between two pieces

_HTML = (b"<!doctype html", b"<html")

Status = Literal["verified", "as added", "damaged", "missing"]


@dataclass(frozen=True)
class FileReport:
    """What the cache holds of one file of a card.

    Attributes
    ----------
    name : str
    status : {"verified", "as added", "damaged", "missing"}
        ``verified``: it has the published checksum; ``as added``: none is published, and it has
        not changed since it came; ``damaged``: it has another checksum.
    expected : str or None
        The published sha256, else the published MD5, else the sha256 with which it came.
    path : str or None
    sha256 : str or None
        Of the file in the cache.
    bytes : int or None
    """

    name: str
    status: Status
    expected: str | None = None
    path: str | None = None
    sha256: str | None = None
    bytes: int | None = None


class CachedFile(NamedTuple):
    """A verified file."""

    path: Path
    sha256: str


def fetch(card: Card, mirror: str | os.PathLike[str] | None = None) -> tuple[CachedFile, ...]:
    """Return the files of a card, after getting those that are not in the cache.

    Parameters
    ----------
    card : Card
    mirror : str or path, optional
        A folder, or a file, https or (on this machine only) http address, holding
        ``<folder of the card>/<file name>``, plain or wrapped as ``.bz2``; by default
        ``$PRECBENCH_MIRROR``.

    Returns
    -------
    tuple of CachedFile
        In the order of the card.

    Raises
    ------
    DataUnavailableError
        No source has a file; the sentence lists each one tried, and why it failed.
    InputError
        A mirror that is neither a folder nor such an address.
    PrecbenchError
        The disk is full.
    """
    found = []
    for file in card.files:
        failures: list[str] = []
        cached = _cached(card, file, failures)
        if cached is None:
            _obtain(card, file, mirror, failures)
            cached = _cached(card, file, failures)
        if cached is None:
            raise DataUnavailableError(
                f"{card.title}: {file.name} is not to be had; tried {'; '.join(failures)}. Bring "
                f"the files yourself: precbench data add {card.name} FILES, with {_wanted(card)}"
            )
        found.append(cached)
    return tuple(found)


def add_files(name: str, paths: Iterable[str | os.PathLike[str]]) -> tuple[FileReport, ...]:
    """Put files that somebody brings into the cache, after verifying them.

    Parameters
    ----------
    name : str
        A data set.
    paths : iterable of paths
        Files named as in the card (or wrapped as ``.bz2``), or its zip archive.

    Returns
    -------
    tuple of FileReport
        One per file of the card.

    Raises
    ------
    InputError
        A file that does not exist, has another name, or is not what the card describes.
    """
    card = find_card(name)
    if not card.files:
        raise InputError(f"{name} is generated: it takes no files")
    by_name = {file.name: file for file in card.files}
    for path in map(Path, paths):
        if not path.is_file():
            raise InputError(f"{path}: no such file")
        kind: Kind = "plain"
        file = by_name.get(path.name)
        if card.archive and zipfile.is_zipfile(path):
            kind, file = "archive", by_name[card.archive.members[0]]
        elif file is None and path.suffix == ".bz2":
            kind, file = "bz2", by_name.get(path.stem)
        if file is None:
            raise InputError(f"{path}: {name} has no file of that name; it takes {_wanted(card)}")
        try:
            _take(card, file, _Source(str(path), kind))
        except _Rejected as reason:
            raise InputError(f"{path}: {reason}") from None
    cached = [_cached(card, file, []) for file in card.files]
    if all(cached) and not all(file.has_checksum for file in card.files):
        parse_cached(card, [file for file in cached if file])
    return info(name)


def verify(name: str) -> tuple[FileReport, ...]:
    """Take the checksums of the cached files of a data set anew.

    Parameters
    ----------
    name : str

    Returns
    -------
    tuple of FileReport
        One per file of the card.
    """
    card = find_card(name)
    return tuple(_inspected(card, file, anew=True) for file in card.files)


def info(name: str) -> tuple[FileReport, ...]:
    """Return what the cache holds of a data set, without reading unchanged files again.

    Parameters
    ----------
    name : str

    Returns
    -------
    tuple of FileReport
        One per file of the card.
    """
    card = find_card(name)
    return tuple(_inspected(card, file) for file in card.files)


def parse_cached(card: Card, files: Iterable[CachedFile]) -> Arrays:
    """Parse the files of a card; on failure, set aside those that no checksum vouches for.

    Parameters
    ----------
    card : Card
    files : iterable of CachedFile
        All files of the card, in its order.

    Returns
    -------
    Arrays

    Raises
    ------
    InputError
        As `precbench.data.cards.parsers.parse`.
    """
    paths = [file.path for file in files]
    try:
        return parse(card, paths)
    except InputError:
        for file, path in zip(card.files, paths, strict=True):
            if not file.has_checksum:
                _set_aside(path, path)
        raise


# --- what is in the cache ---


@dataclass(frozen=True)
class _Checksums:
    """Checksums of a file, with the size and time that tell whether it has changed since."""

    sha256: str
    md5: str
    bytes: int
    mtime_ns: int

    def fit(self, file: File) -> bool:
        """Whether they are the published ones, as far as any are."""
        return file.sha256 in (None, self.sha256) and file.md5 in (None, self.md5)

    def are_of(self, path: Path) -> bool:
        """Whether the file still has the size and time at which they were taken."""
        now = path.stat()
        return (self.bytes, self.mtime_ns) == (now.st_size, now.st_mtime_ns)


def _folders(card: Card) -> tuple[Path, ...]:
    """Return where files are looked for; new ones go to the last, which can be written."""
    folder = cache_folder() / "files" / card.folder
    with contextlib.suppress(OSError):
        folder.mkdir(parents=True, exist_ok=True)
    if os.access(folder, os.W_OK):
        return (folder,)
    instead = _process_folder() / card.folder
    instead.mkdir(exist_ok=True)
    return (folder, instead)


@cache
def _process_folder() -> Path:
    """Make a folder that lives as long as the process, for a cache that cannot be written."""
    folder = Path(tempfile.mkdtemp(prefix="precbench-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


def _inspected(card: Card, file: File, *, anew: bool = False) -> FileReport:
    """Compare a cached file with its checksum; it is read only if it has changed or `anew`."""
    paths = [folder / file.name for folder in _folders(card)]
    path = next((path for path in paths if path.is_file()), None)
    if path is None:
        return FileReport(file.name, "missing", file.sha256 or file.md5)
    earlier = _remembered(path)
    unchanged = not anew and earlier is not None and earlier.are_of(path)
    now = earlier if earlier and unchanged else _checksums(path)
    came_with = earlier.sha256 if earlier else now.sha256
    status: Status
    if file.has_checksum:
        status = "verified" if now.fit(file) else "damaged"
    else:
        status = "as added" if now.sha256 == came_with else "damaged"
    if status != "damaged" and now != earlier:
        _remember(path, now)
    expected = file.sha256 or file.md5 or came_with
    return FileReport(file.name, status, expected, str(path), now.sha256, now.bytes)


def _cached(card: Card, file: File, failures: list[str]) -> CachedFile | None:
    """Return the file if the cache has it; a damaged one is set aside."""
    report = _inspected(card, file)
    if report.path is None or report.sha256 is None:
        return None
    path = Path(report.path)
    if report.status == "damaged":
        aside = _set_aside(path, path)
        failures.append(
            f"{path}: wrong checksum, found sha256 {report.sha256}, expected {report.expected}; "
            f"set aside as {aside.name}"
        )
        return None
    return CachedFile(path, report.sha256)


def _checksums(path: Path) -> _Checksums:
    sha256, md5 = hashlib.sha256(), hashlib.md5(usedforsecurity=False)
    with path.open("rb") as file:
        status = os.fstat(file.fileno())
        while chunk := file.read(CHUNK):
            sha256.update(chunk)
            md5.update(chunk)
    return _Checksums(sha256.hexdigest(), md5.hexdigest(), status.st_size, status.st_mtime_ns)


def _notes(path: Path) -> Path:
    return path.with_name(f".{path.name}.json")


def _remember(path: Path, checksums: _Checksums) -> None:
    """Note the checksums beside the file; without a note it is read again next time."""
    with contextlib.suppress(OSError):
        write_whole({_notes(path): json.dumps(asdict(checksums)).encode()})


def _remembered(path: Path) -> _Checksums | None:
    try:
        return _Checksums(**json.loads(_notes(path).read_text(encoding="ascii")))
    except (OSError, ValueError, TypeError):
        return None


def _set_aside(path: Path, target: Path) -> Path:
    """Rename a bad file; neither the `target` nor another rejected file is touched."""
    aside, number = target.with_name(f"{target.name}.rejected"), 1
    while aside.exists() and not filecmp.cmp(path, aside, shallow=False):
        number += 1
        aside = target.with_name(f"{target.name}.rejected-{number}")
    path.replace(aside)
    if path == target:
        _notes(path).unlink(missing_ok=True)
    return aside


# --- where files come from ---


Kind = Literal["plain", "bz2", "archive"]


class _Source(NamedTuple):
    """A path or an http(s) address."""

    address: str
    kind: Kind

    @property
    def is_remote(self) -> bool:
        return self.address.startswith(("https://", "http://"))


class _Rejected(Exception):  # noqa: N818 (not an error: the next source is tried)
    """Why a source does not give the file."""

    def __init__(self, reason: str, *, transient: bool = False) -> None:
        super().__init__(reason)
        self.transient = transient


def _obtain(
    card: Card, file: File, mirror: str | os.PathLike[str] | None, failures: list[str]
) -> None:
    """Take the file from the first source that gives it; note why the others do not."""
    for source in _sources(card, file, mirror):
        try:
            _take(card, file, source)
            return
        except _Rejected as reason:
            failures.append(f"{source.address}: {reason}")


def _sources(card: Card, file: File, mirror: str | os.PathLike[str] | None) -> Iterator[_Source]:
    archive = card.archive if card.archive and file.name in card.archive.members else None
    base = _mirror_address(mirror)
    if base is not None:
        yield _Source(f"{base}/{card.folder}/{file.name}", "plain")
        yield _Source(f"{base}/{card.folder}/{file.name}.bz2", "bz2")
        if archive:
            yield _Source(f"{base}/{card.folder}/{archive.name}", "archive")
    for address in file.urls:
        yield _Source(address, "plain")
    for address in archive.urls if archive else ():
        yield _Source(address, "archive")


def _mirror_address(mirror: str | os.PathLike[str] | None) -> str | None:
    text = os.fspath(mirror) if mirror is not None else os.environ.get("PRECBENCH_MIRROR", "")
    if not text:
        return None
    if "://" not in text:
        return str(Path(text).expanduser())
    parts = urlsplit(text)
    if parts.scheme == "file" and parts.netloc in ("", "localhost"):
        return unquote(parts.path)
    if parts.scheme == "https" or _is_plain_loopback(text):
        return text.rstrip("/")
    raise InputError(
        f"the mirror {text!r} must be a folder, or an address with file:// or https:// (http:// "
        "only on this machine)"
    )


def _is_plain_loopback(address: str) -> bool:
    parts = urlsplit(address)
    if parts.scheme != "http":
        return False
    try:
        return (
            parts.hostname == "localhost" or ipaddress.ip_address(parts.hostname or "").is_loopback
        )
    except ValueError:
        return False


def _wanted(card: Card) -> str:
    names = " and ".join(file.name for file in card.files)
    return f"{names}, or {card.archive.name}" if card.archive else names


def _take(card: Card, file: File, source: _Source) -> None:
    """Put the file (or all members of the archive) into the cache."""
    target = _folders(card)[-1] / file.name
    with temporary(target) as downloaded:
        path = Path(source.address)
        if source.is_remote:
            path = downloaded
            limit = 2 * file.limit  # a bz2 wrapper may add a little
            if source.kind == "archive" and card.archive is not None:
                limit = card.archive.max_bytes
            _download(source.address, path, limit)
        try:
            if source.kind == "archive":
                assert card.archive is not None
                by_name = {member.name: member for member in card.files}
                with zipfile.ZipFile(path) as archive:
                    for name in card.archive.members:
                        with archive.open(_member(archive, name)) as stream:
                            _accept(stream, by_name[name], target.with_name(name))
            else:
                with bz2.open(path) if source.kind == "bz2" else path.open("rb") as stream:
                    _accept(stream, file, target)
        except FileNotFoundError:
            raise _Rejected("no such file") from None
        except (OSError, EOFError, zlib.error, zipfile.BadZipFile, RuntimeError) as error:
            raise _Rejected(f"cannot be read: {error}") from error


def _member(archive: zipfile.ZipFile, name: str) -> zipfile.ZipInfo:
    """Find the one member with this name, in whatever folder."""
    members = [
        member for member in archive.infolist() if PurePosixPath(member.filename).name == name
    ]
    if len(members) != 1:
        raise _Rejected(f"{len(members)} members of the archive are named {name}, expected one")
    return members[0]


def _accept(stream: IO[bytes], file: File, target: Path) -> None:
    """Write what the stream holds under the file's name, if it is the file."""
    with temporary(target) as unfinished:
        with _NewFile(unfinished, file.limit) as copy:
            head = b""
            while chunk := stream.read(CHUNK):
                head = head or chunk[:100]
                copy.write(chunk)
        if head.lstrip().lower().startswith(_HTML):
            raise _Rejected("a web page instead of the file")
        found = _checksums(unfinished)
        if not found.fit(file):
            aside = _set_aside(unfinished, target)
            raise _Rejected(
                f"wrong checksum, found sha256 {found.sha256} (MD5 {found.md5}), expected "
                f"{file.sha256 or f'MD5 {file.md5}'}; set aside as {aside}"
            )
        if not file.has_checksum and target.exists():
            present = _checksums(target).sha256
            if present != found.sha256:
                raise _Rejected(
                    f"the cache already holds another {file.name}; it has sha256 {present}, this "
                    f"one {found.sha256}; remove {target} to replace it"
                )
        publish(unfinished, target)
        _remember(target, found)


class _NewFile:
    """A new file of at most `limit` bytes; a full disk is an error that no other source mends."""

    def __init__(self, path: Path, limit: int) -> None:
        self._path = path
        self._limit = limit
        self._size = 0
        with self._disk_errors():
            self._file = path.open("wb")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        with self._disk_errors():
            self._file.close()

    def write(self, piece: bytes) -> None:
        self._size += len(piece)
        if self._size > self._limit:
            raise _Rejected(f"larger than the {self._limit:,} bytes that the card allows")
        with self._disk_errors():
            self._file.write(piece)

    def flush(self) -> None:
        """Do nothing: pooch asks for it after every piece."""

    def _disk_errors(self) -> AbstractContextManager[None]:
        return writing(self._path.parent, "name another folder in PRECBENCH_CACHE")


# --- download ---


def _download(address: str, path: Path, limit: int) -> None:
    """Download with some patience: a transient failure is tried again."""
    for attempt in range(1, ATTEMPTS + 1):
        try:
            with _NewFile(path, limit) as file, _progress_bar(address) as bar:
                _request(address, file, bar)
            return
        except _Rejected as reason:
            if not reason.transient or attempt == ATTEMPTS:
                raise
            time.sleep(FIRST_WAIT * 2 ** (attempt - 1))


def _request(address: str, file: _NewFile, bar: _Bar | None) -> None:
    import pooch
    import requests
    from urllib3.exceptions import MaxRetryError

    downloader = pooch.HTTPDownloader(
        progressbar=bar or False,
        chunk_size=CHUNK,
        timeout=TIMEOUTS,
        headers={"Accept-Encoding": "identity"},  # or a .gz might arrive unpacked
        hooks={"response": _stay_secure},
    )
    try:
        downloader(address, file, None)
    except requests.HTTPError as error:
        answer = error.response
        assert answer is not None
        raise _Rejected(
            f"the server answers {answer.status_code} {answer.reason}",
            transient=answer.status_code >= 500 or answer.status_code == 429,
        ) from error
    except requests.RequestException as error:
        cause = error.args[0] if error.args else error
        if isinstance(cause, MaxRetryError):  # not even a connection
            raise _Rejected(f"no connection: {cause.reason}") from error
        raise _Rejected(f"the connection broke: {cause}", transient=True) from error


def _stay_secure(response: requests.Response, **_: object) -> None:
    """Refuse a redirect from https to http before it is followed."""
    if not response.is_redirect:
        return
    target = urljoin(response.url, response.headers["location"])
    both_here = _is_plain_loopback(response.url) and _is_plain_loopback(target)
    if urlsplit(target).scheme != "https" and not both_here:
        raise _Rejected(f"it redirects to {target}, which is not https")


class _Bar:
    """What pooch expects of a progress bar, drawn by rich."""

    def __init__(self, progress: Any, description: str) -> None:
        self._progress = progress
        self._task = progress.add_task(description, total=None)

    @property
    def total(self) -> float | None:
        return self._progress.tasks[0].total

    @total.setter
    def total(self, n_bytes: int) -> None:
        self._progress.update(self._task, total=n_bytes or None)

    def update(self, n_bytes: int) -> None:
        self._progress.advance(self._task, n_bytes)

    def reset(self) -> None:
        self._progress.reset(self._task)

    def close(self) -> None:
        """Do nothing: leaving the context stops the bar."""


@contextmanager
def _progress_bar(address: str) -> Iterator[_Bar | None]:
    if not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        DownloadColumn(),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        yield _Bar(progress, f"fetching {PurePosixPath(urlsplit(address).path).name}")
