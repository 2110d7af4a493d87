"""Get the files of a card: from the cache, a mirror, or their official addresses.

A file gets its name in the cache only after its checksum has been verified. A file without a
published checksum is checked by the arrays that it gives (see `precbench.data.cards.parsers`).
"""

from __future__ import annotations

import bz2
import contextlib
import os
import zipfile
from collections.abc import Iterable, Iterator
from functools import partial
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Literal, NamedTuple
from urllib.parse import unquote, urlsplit

from precbench.data.cards.download import CHUNK, Rejected, download, is_plain_loopback, save
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
from precbench.errors import DataUnavailableError, InputError
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
    found = []
    for file in card.files:
        failures: list[str] = []
        cached = _cached(card, file, failures)
        if cached is None:
            _obtain(card, file, mirror, failures)
            cached = _cached(card, file, failures)
        if cached is None:
            raise DataUnavailableError(
                f"{card.title}: {file.name} cannot be obtained; tried {'; '.join(failures)}. To "
                f"bring the files yourself: precbench data add {card.name} FILES, with "
                f"{_wanted(card)}"
            )
        found.append(cached)
    return tuple(found)


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
    by_name = {file.name: file for file in card.files}
    with contextlib.ExitStack() as stack:
        accepted: list[_Accepted] = []
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
                raise InputError(
                    f"{path}: {name} has no file of that name; it takes {_wanted(card)}"
                )
            try:
                accepted += _accepted(card, file, _Source(str(path), kind), stack)
            except Rejected as reason:
                raise InputError(f"{path}: {reason}") from None
        _publish(accepted)
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
    """Parse the files of a card; on failure, set aside those without a published checksum.

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
                set_aside(path, path)
        raise


def _cached(card: Card, file: File, failures: list[str]) -> CachedFile | None:
    """Return the file if the cache has it; a damaged one is set aside."""
    report = inspect(card, file)
    if report.path is None or report.sha256 is None:
        return None
    path = Path(report.path)
    if report.status == "damaged":
        aside = set_aside(path, path)
        failures.append(
            f"{path}: wrong checksum, found sha256 {report.sha256}, expected {report.expected}; "
            f"set aside as {aside.name}"
        )
        return None
    return CachedFile(path, report.sha256)


# --- sources ---

Kind = Literal["plain", "bz2", "archive"]


class _Source(NamedTuple):
    """A path or an http(s) address."""

    address: str
    kind: Kind

    @property
    def is_remote(self) -> bool:
        return self.address.startswith(("https://", "http://"))


def _obtain(
    card: Card, file: File, mirror: str | os.PathLike[str] | None, failures: list[str]
) -> None:
    """Take the file from the first source that gives it; note why the others do not."""
    for source in _sources(card, file, mirror):
        try:
            with contextlib.ExitStack() as stack:
                _publish(_accepted(card, file, source, stack))
            return
        except Rejected as reason:
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


def _wanted(card: Card) -> str:
    names = " and ".join(file.name for file in card.files)
    return f"{names}, or {card.archive.name}" if card.archive else names


class _Accepted(NamedTuple):
    """A file that is what the card describes, under a temporary name."""

    path: Path
    target: Path
    checksums: Checksums


def _accepted(
    card: Card, file: File, source: _Source, stack: contextlib.ExitStack
) -> list[_Accepted]:
    """Take the file (or all members of the archive); the stack removes what is not published."""
    folder = folders(card)[-1]
    names: tuple[str, ...] = (file.name,)
    limit = 2 * file.limit  # a bz2 wrapper may add a little
    if source.kind == "archive" and card.archive is not None:
        names, limit = card.archive.members, card.archive.max_bytes
    with temporary(folder / file.name) as downloaded:
        path = downloaded if source.is_remote else Path(source.address)
        if source.is_remote:
            download(source.address, path, limit)
        accepted = []
        for wanted in card.files:
            if wanted.name in names:
                target = folder / wanted.name
                unfinished = stack.enter_context(temporary(target))
                save(_contents(path, source.kind, wanted.name), unfinished, wanted.limit)
                checksums = _verified(unfinished, wanted, target)
                accepted.append(_Accepted(unfinished, target, checksums))
        return accepted


def _publish(accepted: Iterable[_Accepted]) -> None:
    """Give files their names in the cache."""
    for path, target, checksums in accepted:
        with writing(target.parent):
            publish(path, target)
        remember(target, checksums)


def _contents(path: Path, kind: Kind, name: str) -> Iterator[bytes]:
    """Yield the chunks of a file, unwrapped."""
    try:
        if kind == "archive":
            with zipfile.ZipFile(path) as archive, archive.open(_member(archive, name)) as member:
                yield from iter(partial(member.read, CHUNK), b"")
        else:
            with bz2.open(path) if kind == "bz2" else path.open("rb") as file:
                yield from iter(partial(file.read, CHUNK), b"")
    except Rejected:
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
    found = Checksums.of(path)
    if not found.match(file):
        aside = set_aside(path, target)
        raise Rejected(
            f"wrong checksum, found sha256 {found.sha256} (MD5 {found.md5}), expected "
            f"{file.sha256 or f'MD5 {file.md5}'}; set aside as {aside}"
        )
    if not file.has_checksum and target.exists():
        present = Checksums.of(target).sha256
        if present != found.sha256:
            raise Rejected(
                f"the cache already holds another {file.name}; it has sha256 {present}, this "
                f"one {found.sha256}; remove {target} to replace it"
            )
    return found
