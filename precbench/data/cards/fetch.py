"""Get the files of a card: from the cache, a mirror, or their official addresses.

A file gets its name in the cache only after its checksum has been verified. A file without a
published checksum is checked by the arrays that it gives (see `precbench.data.cards.parsers`).
"""

from __future__ import annotations

import bz2
import contextlib
import os
import shutil
import zipfile
from collections.abc import Collection, Iterable, Iterator
from pathlib import Path, PurePosixPath
from typing import IO, TYPE_CHECKING, Literal, NamedTuple
from urllib.parse import unquote, urlsplit

from precbench.data.cards.download import LimitedFile, Rejected, download, is_plain_loopback
from precbench.data.cards.file_cache import (
    Checksums,
    FileReport,
    folders,
    inspect,
    remember,
    set_aside,
)
from precbench.data.cards.parsers import parse
from precbench.data.cards.registry import find_card
from precbench.data.dataset import Arrays
from precbench.errors import DataUnavailableError, InputError, PrecbenchError
from precbench.files import publish, temporary, writing

if TYPE_CHECKING:
    from precbench.data.cards.card import Card, File

__all__ = ["CachedFile", "FileReport", "add_files", "fetch", "info", "parse_cached"]

_HTML = (b"<!doctype html", b"<html")


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
        No source has a file; the message lists each one tried, and why it failed.
    InputError
        A mirror that is neither a folder nor such an address.
    PrecbenchError
        The disk is full or cannot be written.
    """
    files = []
    for file in card.files:
        failures: list[str] = []
        cached = _cached(card, file, failures)
        for source in _sources(card, file, mirror) if cached is None else ():
            try:
                _take(card, [(file, source)])
                cached = _cached(card, file, failures)
                break
            except Rejected as reason:
                failures.append(str(reason))
        if cached is None:
            raise DataUnavailableError(
                f"{card.title}: {file.name} cannot be obtained; tried {'; '.join(failures)}. To "
                f"bring the files yourself: precbench data add {card.name} FILES, with "
                f"{_wanted(card)}"
            )
        files.append(cached)
    return tuple(files)


def add_files(name: str, paths: Iterable[str | os.PathLike[str]]) -> tuple[FileReport, ...]:
    """Put files of the user into the cache, after verifying them.

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
        A file that does not exist, has another name, or is not what the card describes; none of
        the files is then in the cache.
    """
    card = find_card(name)
    if not card.files:
        raise InputError(f"{name} is generated: it takes no files")
    try:
        _take(card, (_brought(card, Path(path)) for path in paths))
    except Rejected as reason:
        raise InputError(str(reason)) from None
    cached = [_cached(card, file, []) for file in card.files]
    if all(cached) and not all(file.has_checksum for file in card.files):
        parse_cached(card, [file for file in cached if file])
    return info(name)


def info(name: str, *, anew: bool = False) -> tuple[FileReport, ...]:
    """Return the state of the cached files of a data set.

    Parameters
    ----------
    name : str
    anew : bool, default=False
        Whether to compute also the checksums of files that have not changed since the last time.

    Returns
    -------
    tuple of FileReport
        One per file of the card.
    """
    card = find_card(name)
    return tuple(inspect(card, file, anew=anew) for file in card.files)


def parse_cached(card: Card, files: Iterable[CachedFile]) -> Arrays:
    """Parse the files of a card; on failure, set aside those without a published checksum."""
    paths = [file.path for file in files]
    try:
        return parse(card, paths)
    except InputError:
        for file, path in zip(card.files, paths, strict=True):
            if not file.has_checksum:
                set_aside(path, path)
        raise


def _cached(card: Card, file: File, failures: list[str]) -> CachedFile | None:
    """Return the file if the cache has it; a damaged one is set aside."""
    report = inspect(card, file)
    if report.path is None or report.sha256 is None:
        return None
    path = Path(report.path)
    if report.status != "damaged":
        return CachedFile(path, report.sha256)
    aside = set_aside(path, path)
    failures.append(
        f"{path}: wrong checksum, found sha256 {report.sha256}, expected {report.expected}; "
        f"set aside as {aside.name}"
    )
    return None


def _wanted(card: Card) -> str:
    names = " and ".join(file.name for file in card.files)
    return f"{names}, or {card.archive.name}" if card.archive else names


# --- sources ---

Kind = Literal["plain", "bz2", "archive"]


class _Source(NamedTuple):
    """A path or an http(s) address."""

    address: str
    kind: Kind


def _sources(card: Card, file: File, mirror: str | os.PathLike[str] | None) -> Iterator[_Source]:
    archive = card.archive if card.archive and file.name in card.archive.members else None
    base = _mirror_address(mirror)
    if base is not None:
        yield _Source(f"{base}/{card.folder}/{file.name}", "plain")
        yield _Source(f"{base}/{card.folder}/{file.name}.bz2", "bz2")
        if archive:
            yield _Source(f"{base}/{card.folder}/{archive.name}", "archive")
    yield from (_Source(address, "plain") for address in file.urls)
    yield from (_Source(address, "archive") for address in (archive.urls if archive else ()))


def _brought(card: Card, path: Path) -> tuple[File, _Source]:
    """Return which file of the card the user brings, for an archive the first in it."""
    if not path.is_file():
        raise InputError(f"{path}: no such file")
    by_name = {file.name: file for file in card.files}
    kind: Kind = "plain"
    file = by_name.get(path.name)
    if card.archive and zipfile.is_zipfile(path):
        kind, file = "archive", by_name[card.archive.members[0]]
    elif file is None and path.suffix == ".bz2":
        kind, file = "bz2", by_name.get(path.stem)
    if file is None:
        raise InputError(f"{path}: {card.name} has no file of that name; it takes {_wanted(card)}")
    return file, _Source(str(path), kind)


def _mirror_address(mirror: str | os.PathLike[str] | None) -> str | None:
    text = os.fspath(mirror) if mirror is not None else os.environ.get("PRECBENCH_MIRROR", "")
    if not text:
        return None
    if "://" not in text:
        return str(Path(text).expanduser())
    with contextlib.suppress(ValueError):  # of an address that is none
        parts = urlsplit(text)
        if parts.scheme == "file" and parts.netloc in ("", "localhost"):
            return unquote(parts.path)
        if parts.scheme == "https" or is_plain_loopback(text):
            return text.rstrip("/")
    raise InputError(
        f"the mirror {text!r} must be a folder, or an address with file:// or https:// (http:// "
        "only on this machine)"
    )


# --- from a source into the cache ---


_Accepted = tuple[Path, Path, Checksums]
"""A file that is what the card describes: its temporary name, its name, and its checksums."""


def _take(card: Card, sources: Iterable[tuple[File, _Source]]) -> None:
    """Put files into the cache once all of them are what the card describes."""
    with contextlib.ExitStack() as stack:  # removes what does not get its name
        accepted: list[_Accepted] = []
        for file, source in sources:
            try:
                accepted += _accepted(card, file, source, stack)
            except Rejected as reason:
                raise Rejected(f"{source.address}: {reason}") from None
        for unfinished, target, checksums in accepted:
            with writing(target.parent):
                publish(unfinished, target)
            remember(target, checksums)


def _accepted(
    card: Card, file: File, source: _Source, stack: contextlib.ExitStack
) -> Iterator[_Accepted]:
    """Yield the file, or all members of the archive."""
    folder = folders(card)[-1]
    names: Collection[str] = [file.name]
    limit = 2 * file.limit  # a bz2 wrapper may add a little
    if source.kind == "archive" and card.archive:
        names, limit = card.archive.members, card.archive.max_bytes
    path = Path(source.address)
    if source.address.startswith(("https://", "http://")):
        path = stack.enter_context(temporary(folder / file.name))
        download(source.address, path, limit)
    for member in card.files:
        if member.name in names:
            target = folder / member.name
            unfinished = stack.enter_context(temporary(target))
            _unwrap(path, source.kind, member, unfinished)
            yield unfinished, target, _verified(unfinished, member, target)


def _unwrap(path: Path, kind: Kind, file: File, target: Path) -> None:
    """Copy a file, unpacked to no more than the card allows.

    The processors of pooch have no limit, and make folders that the archive names.
    """
    try:
        with contextlib.ExitStack() as stack:
            if kind == "archive":
                archive = stack.enter_context(zipfile.ZipFile(path))
                packed: IO[bytes] = archive.open(_member(archive, file.name))
            else:
                packed = (bz2.open if kind == "bz2" else open)(path, "rb")
            with packed, contextlib.closing(LimitedFile(target, file.limit)) as unpacked:
                shutil.copyfileobj(packed, unpacked)
    except (Rejected, PrecbenchError):
        raise
    except FileNotFoundError:
        raise Rejected("no such file") from None
    except Exception as error:  # a damaged archive has many ways to fail
        raise Rejected(f"cannot be read: {error}") from error


def _member(archive: zipfile.ZipFile, name: str) -> zipfile.ZipInfo:
    """Find the one member with this name, in any folder of the archive."""
    members = [
        member for member in archive.infolist() if PurePosixPath(member.filename).name == name
    ]
    if len(members) != 1:
        raise Rejected(f"{len(members)} members of the archive are named {name}, expected one")
    return members[0]


def _verified(path: Path, file: File, target: Path) -> Checksums:
    """Return the checksums of the file, if they are those of the card."""
    with path.open("rb") as stream:
        if stream.read(100).lstrip().lower().startswith(_HTML):
            raise Rejected("a web page instead of the file")
    checksums = Checksums.of(path)
    if not checksums.match(file):
        raise Rejected(
            f"wrong checksum, found sha256 {checksums.sha256} (MD5 {checksums.md5}), expected "
            f"{file.sha256 or f'MD5 {file.md5}'}; set aside as {set_aside(path, target)}"
        )
    if not file.has_checksum and target.exists():
        present = Checksums.of(target).sha256
        if present != checksums.sha256:
            raise Rejected(
                f"the cache already holds another {file.name}; it has sha256 {present}, this "
                f"one {checksums.sha256}; remove {target} to replace it"
            )
    return checksums
