"""Files of a card: fetched from a mirror or the web, kept in the cache, cleaned away.

A file is what it holds, not how it was packed: a source may have it as it is,
compressed, or in an archive. It enters the cache, unpacked, only if its size and its
published checksum are right. Files without a published checksum must parse to the sizes
on the card.
"""

import hashlib
import os
import shutil
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from precbench.core.errors import DataUnavailableError, InputError
from precbench.core.files import is_full, temporary, writing
from precbench.core.locations import cache_folder
from precbench.data.cards.card import Archive, Card, File, Packing
from precbench.data.cards.catalogue import find_card
from precbench.data.cards.download import (
    NotServedError,
    UnreachableError,
    download,
    is_safe,
)
from precbench.data.cards.parsers import parse
from precbench.data.cards.unpack import unpack

# A folder may have a file compressed, with one of these added to its name.
_COMPRESSED: tuple[Packing, ...] = ("gz", "bz2", "xz")


@dataclass(frozen=True)
class FileReport:
    """State of one file of the cache."""

    name: str
    # "as added": of the right size, but no checksum is published
    status: Literal["verified", "as added", "damaged", "missing"]
    path: Path
    expected: str | None  # the published checksum
    sha256: str | None = None  # of the file in the cache
    bytes: int | None = None


@dataclass(frozen=True)
class _Source:
    """A place that may have a file of a card, as it is or packed."""

    address: str  # a path, or https://
    packing: Packing | None = None
    archive: Archive | None = None  # what the card says of the packed file

    @property
    def server(self) -> str | None:
        """Host and port, None for a path."""
        if self.address.startswith(("https://", "http://")):
            return self.address.split("/")[2]
        return None

    @property
    def is_optional(self) -> bool:
        """Whether it is a packed file of a mirror that the card does not name."""
        return self.packing is not None and self.archive is None


class _SourceError(InputError):
    """A source that does not give a file."""


def fetch(
    card: Card,
    mirror: str | os.PathLike[str] | None = None,
    *,
    accept_terms: bool = False,
) -> tuple[FileReport, ...]:
    """Fetch missing and damaged files of a card into the cache; report on each file.

    A mirror (default ``$PRECBENCH_MIRROR``) is a folder or an address with ``<folder of
    the card>/<file name>``. There the file may also be compressed, with ``.gz``,
    ``.bz2`` or ``.xz`` after its name, or be a member of the archive that the card
    names. The addresses of a card with terms are used only if these are accepted.
    """
    reports = tuple(_inspect(card, file) for file in card.files)
    to_fetch = [
        file
        for file, report in zip(card.files, reports, strict=True)
        if report.status in ("missing", "damaged")
    ]
    if not to_fetch:
        return reports
    address = _mirror_address(mirror)
    is_allowed = accept_terms or card.terms is None
    unverified: dict[str, Path] = {}  # by the name of the file
    with _receiving(card) as folder:
        for file in to_fetch:
            path = _obtain_somewhere(card, file, address, folder, is_allowed)
            if file.checksum:  # stays in the cache, even if a later file cannot be had
                path.replace(_cached(card, file))
            else:
                unverified[file.name] = path
        _accept(card, unverified)
    return tuple(_inspect(card, file) for file in card.files)


def add_files(
    name: str, paths: Iterable[str | os.PathLike[str]]
) -> tuple[FileReport, ...]:
    """Copy the user's files to the cache, all or none; report on all files of the card.

    They are named as on the card, or packed as those of a mirror.
    """
    card = find_card(name)
    if not card.files:
        raise InputError(
            f"{name} is generated and has no files; use {name} without adding files"
        )
    with _receiving(card) as folder:
        new: dict[str, Path] = {}  # by the name of the file
        for path in map(Path, paths):
            for file, source in _recognise(card, path):
                new[file.name] = _obtain(file, source, folder)
        _accept(card, new)
    return info(name)


def _recognise(card: Card, path: Path) -> list[tuple[File, _Source]]:
    """Return the files of a card that a user's file holds, by its name."""
    recognised = []
    for file in card.files:
        for source in _sources_in(str(path.parent), file):
            if Path(source.address) == path:
                recognised.append((file, source))
    if not recognised:
        raise _SourceError(
            f"{path} cannot be used: {path.name} is not a file of {card.name}; give "
            f"{_file_names(card)}"
        )
    return recognised


def info(name: str) -> tuple[FileReport, ...]:
    """Return a report on each file of the card of a data set."""
    card = find_card(name)
    return tuple(_inspect(card, file) for file in card.files)


def _inspect(card: Card, file: File) -> FileReport:
    """Report on a file in the cache: its size and, if published, its checksum."""
    path = _cached(card, file)
    if not path.is_file():
        return FileReport(
            name=file.name, status="missing", path=path, expected=file.checksum
        )
    status: Literal["verified", "as added", "damaged"] = "as added"
    if _fault(file, path):
        status = "damaged"
    elif file.checksum:
        status = "verified"
    return FileReport(
        name=file.name,
        status=status,
        path=path,
        expected=file.checksum,
        sha256=_digest(path),
        bytes=path.stat().st_size,
    )


def _folder(card: Card) -> Path:
    return cache_folder() / "files" / card.folder


def _cached(card: Card, file: File) -> Path:
    return _folder(card) / file.name


def _digest(path: Path, algorithm: str = "sha256") -> str:
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, algorithm).hexdigest()


def _fault(file: File, path: Path) -> str:
    """Say what is wrong with the size or checksum of a file, "" if nothing is."""
    size = path.stat().st_size
    if file.bytes is not None and size != file.bytes:
        return f"the file has {size:,} bytes, and the card says {file.bytes:,}"
    if size > file.limit:
        return f"the file has {size:,} bytes, and the card says at most {file.limit:,}"
    return _wrong_checksum(file, path)


def _wrong_checksum(expected: File | Archive, path: Path) -> str:
    """Say how a file's checksum differs from the published one, "" if it does not."""
    if expected.sha256 is not None:
        algorithm = "sha256"
        checksum = expected.sha256
    elif expected.md5 is not None:
        algorithm = "md5"
        checksum = expected.md5
    else:
        return ""
    actual = _digest(path, algorithm)
    if actual == checksum:
        return ""
    return f"the checksum is wrong: found {algorithm} {actual}, expected {checksum}"


def _file_names(card: Card) -> str:
    return " and ".join(file.name for file in card.files)


# --- sources ---


def _sources_in(folder: str, file: File) -> list[_Source]:
    """Return the places in a folder, or a mirror's address, that may have a file."""
    path = f"{folder}/{file.name}"
    sources = [_Source(path)]
    sources += [_Source(f"{path}.{packing}", packing) for packing in _COMPRESSED]
    sources += [
        _Source(f"{folder}/{archive.name}", archive.packing, archive)
        for archive in file.archives
        if archive.member is not None
    ]
    return sources


def _published_sources(file: File) -> list[_Source]:
    sources = [_Source(address) for address in file.urls]
    sources += [
        _Source(archive.url, archive.packing, archive) for archive in file.archives
    ]
    return sources


def download_limit(files: Iterable[File]) -> int:
    """Return the most bytes that files take as downloads; 0 if they have no address."""
    limits: dict[str, int] = {}  # by address, as an archive may hold several files
    for file in files:
        if file.urls:
            limits[file.urls[0]] = file.limit
        elif file.archives:
            limits[file.archives[0].url] = file.archives[0].max_bytes
    return sum(limits.values())


def _mirror_address(mirror: str | os.PathLike[str] | None) -> str:
    """Return the folder or address of the mirror, "" without one."""
    if mirror is None:
        mirror = os.environ.get("PRECBENCH_MIRROR", "")
    text = os.fspath(mirror)
    if text == "":
        return ""
    if "://" not in text:
        return str(Path(text).expanduser())
    if not is_safe(text):
        raise InputError(
            f"the mirror {text!r} must be a folder, or an address with https://"
            " (http:// only on this machine)"
        )
    return text.rstrip("/")


def _obtain_somewhere(
    card: Card, file: File, mirror: str, folder: Path, is_allowed: bool
) -> Path:
    """Write a file to a folder, from the first source that has it; return its path.

    `mirror` is a folder or an address, "" for none. The published addresses of the file
    are sources if that `is_allowed`.
    """
    sources = []
    if mirror:
        sources += _sources_in(f"{mirror}/{card.folder}", file)
    if is_allowed:
        sources += _published_sources(file)
    failures = []
    cached = _cached(card, file)
    if cached.is_file():
        failures.append(f"{cached}: {_fault(file, cached)}")
    unreachable: set[str | None] = set()
    absent: list[str] = []  # packings that a mirror could have, and has not
    for source in sources:
        if source.server in unreachable:
            continue
        try:
            return _obtain(file, source, folder)
        except _SourceError as error:
            cause = error.__cause__
            is_absent = isinstance(cause, FileNotFoundError | NotServedError)
            if is_absent and source.is_optional:
                absent.append(f".{source.packing}")
            else:
                failures.append(str(error))
            if isinstance(cause, UnreachableError):
                unreachable.add(source.server)
    if absent:
        failures.append(
            f"the mirror has no {file.name} with {', '.join(absent)} either"
        )
    if not is_allowed:
        failures.append(
            f"{card.fetch_command} downloads it, if you accept the terms that precbench"
            f" data info {card.name} shows"
        )
    if not failures:
        failures.append("the card has no address")
    raise DataUnavailableError(
        f"{card.title}: {file.name} cannot be obtained: {'; '.join(failures)}; to add"
        f" the files yourself, run precbench data add {card.name} FILES, where FILES"
        f" are {_file_names(card)}"
    )


def _obtain(file: File, source: _Source, folder: Path) -> Path:
    """Write a file to a folder, unpacked, and check it; return its path."""
    path = folder / file.name
    try:
        if source.packing is not None:
            _take_out(file, source, source.packing, path)
        elif source.server is not None:
            download(source.address, path, file.limit)
        else:
            shutil.copyfile(source.address, path)
        fault = _fault(file, path)
        if fault:
            raise InputError(fault)
    except Exception as error:  # a damaged file or answer has many ways to fail
        if isinstance(error, OSError) and is_full(error):
            raise  # another source would not help
        reason = "no such file" if isinstance(error, FileNotFoundError) else error
        raise _SourceError(f"{source.address} cannot be used: {reason}") from error
    return path


def _take_out(file: File, source: _Source, packing: Packing, path: Path) -> None:
    """Write a file to `path` from a packed file, with the bounds of the card."""
    packed = Path(source.address)
    if source.server is not None:
        packed = _downloaded(file, source, path.parent)
    if source.archive is None:
        unpack(packed, packing, path, file.limit)
        return
    fault = _wrong_checksum(source.archive, packed)
    if fault:
        raise InputError(fault)
    unpack(
        packed,
        packing,
        path,
        file.limit,
        member=source.archive.member,
        stream_limit=source.archive.max_unpacked_bytes,
    )


def _downloaded(file: File, source: _Source, folder: Path) -> Path:
    """Return the path of a packed file from elsewhere, downloaded once.

    It is beside the files of the card, which never have its name: theirs begin with a
    letter or digit, not a dot.
    """
    name = hashlib.sha256(source.address.encode()).hexdigest()
    path = folder / f".{name}"
    if path.is_file():  # an earlier file of the card is in it, too
        return path
    limit = 2 * file.limit + 1024  # packing adds a little at worst
    if source.archive is not None:
        limit = source.archive.max_bytes
    with temporary(path) as unfinished:
        download(source.address, unfinished, limit)
        unfinished.replace(path)
    return path


@contextmanager
def _receiving(card: Card) -> Iterator[Path]:
    """Yield an empty folder for new files of a card, beside its files in the cache."""
    folder = _folder(card)
    advice = "name another folder in PRECBENCH_CACHE"  # if `folder` cannot be written
    with writing(folder, advice), temporary(folder / "new") as new_folder:
        new_folder.mkdir(parents=True)
        yield new_folder


def _accept(card: Card, new: Mapping[str, Path]) -> None:
    """Move new files, given by name, into the cache, unless they are wrong.

    If a checksum is missing, the files, once all are there, must parse to the card's
    sizes.
    """
    paths = [new.get(file.name, _cached(card, file)) for file in card.files]
    are_verified = all(file.checksum for file in card.files)
    are_complete = all(path.is_file() for path in paths)
    if are_complete and not are_verified:
        try:
            parse(card, paths)
        except InputError as error:
            text = str(error)
            for path in new.values():  # the text names files in the temporary folder
                text = text.replace(str(path), path.name)
            raise InputError(text) from error
    for name, path in new.items():
        path.replace(_folder(card) / name)


def clean(names: Iterable[str] = (), *, dry_run: bool = False) -> dict[str, int]:
    """Remove prepared arrays, unfinished files and named data sets from the cache.

    Return the sizes in bytes by path, relative to the cache; `dry_run` removes nothing.
    """
    root = cache_folder()
    targets = {*(root / "prepared").glob("*")}
    targets |= {*(root / "files").rglob(".*.tmp")}  # unfinished
    for card in map(find_card, names):
        paths = [_cached(card, file) for file in card.files]
        targets |= {path for path in paths if path.is_file()}
    sizes = {}
    for path in sorted(targets):
        sizes[path.relative_to(root).as_posix()] = _size_of(path)
        if not dry_run:
            _remove(path)
    return sizes


def _size_of(path: Path) -> int:
    """Return the bytes of a file, or of all files in a folder."""
    if path.is_file():
        return path.stat().st_size
    return sum(file.stat().st_size for file in path.rglob("*") if file.is_file())


def _remove(path: Path) -> None:
    """Remove a file or a folder; of a link, only the link."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink()
