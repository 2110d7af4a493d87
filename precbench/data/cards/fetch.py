"""Files of a card: fetched from a mirror or the web, kept in the cache, and cleaned away.

A file enters the cache only if its size and its published checksum are right. Files without a
published checksum must parse to the sizes on the card.
"""

import hashlib
import os
import re
import shutil
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal
from urllib.parse import urljoin

from precbench.data.cards.card import Card, File
from precbench.data.cards.parsers import parse
from precbench.data.cards.registry import find_card
from precbench.errors import DataUnavailableError, InputError
from precbench.files import is_full, temporary, writing
from precbench.locations import cache_folder

TIMEOUTS = (10.0, 60.0)  # seconds to connect, and between two packets
_SAFE = r"https://|http://(localhost|127\.0\.0\.1|\[::1\])(:\d+)?(/|$)"


@dataclass(frozen=True)
class FileReport:
    """State of one file of the cache; "as added": present, but no checksum is published."""

    name: str
    status: Literal["verified", "as added", "damaged", "missing"]
    path: Path
    expected: str | None  # the published checksum
    sha256: str | None = None  # of the file in the cache
    bytes: int | None = None


class _SourceError(InputError):
    """A source that does not give a file; the next source is tried."""


def fetch(card: Card, mirror: str | os.PathLike[str] | None = None) -> tuple[FileReport, ...]:
    """Fetch missing and damaged files of a card into the cache; return a report on each file.

    A mirror (default ``$PRECBENCH_MIRROR``) is a folder or an address with
    ``<folder of the card>/<file name>``, plain or compressed as ``.bz2``.
    """
    return tuple(_fetch_file(card, file, mirror) for file in card.files)


def _fetch_file(card: Card, file: File, mirror: str | os.PathLike[str] | None) -> FileReport:
    """Fetch a file from the first source that works, unless cached; return the report on it."""
    report = _inspect(card, file)
    if report.status not in ("missing", "damaged"):
        return report  # the file is in the cache
    failures = [] if report.status == "missing" else [f"{report.path}: {_fault(file, report.path)}"]
    # `name` is the file's name at the address, where it may end with .bz2.
    for address, name in _sources(card, file, _mirror_address(mirror)):
        try:
            _accept_all(card, [(address, name)])  # into the cache, if the card matches
            return _inspect(card, file)
        except _SourceError as reason:
            failures.append(str(reason))
    raise DataUnavailableError(
        f"{card.title}: {file.name} cannot be obtained: "
        f"{'; '.join(failures) or 'the card has no address'}; to add the files yourself, run "
        f"precbench data add {card.name} FILES, where FILES are {_file_names(card)}"
    )


def add_files(name: str, paths: Iterable[str | os.PathLike[str]]) -> tuple[FileReport, ...]:
    """Copy the user's files, named as on the card, to the cache (all or none); return `info`."""
    card = find_card(name)
    if not card.files:
        raise InputError(f"{name} is generated and has no files; use {name} without adding files")
    _accept_all(card, [(os.fspath(path), Path(path).name) for path in paths])
    return info(name)


def info(name: str) -> tuple[FileReport, ...]:
    """Return a report on each file of the card of a data set."""
    card = find_card(name)
    return tuple(_inspect(card, file) for file in card.files)


def _inspect(card: Card, file: File) -> FileReport:
    """Check the size and, if published, the checksum of a file in the cache; report on it."""
    path = cache_folder() / "files" / card.folder / file.name
    if not path.is_file():
        return FileReport(file.name, "missing", path, file.checksum)
    # "as added": no checksum is published, but the size is right.
    status: Any = "damaged" if _fault(file, path) else "verified" if file.checksum else "as added"
    return FileReport(file.name, status, path, file.checksum, _digest(path), path.stat().st_size)


def _digest(path: Path, algorithm: str = "sha256") -> str:
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, algorithm).hexdigest()


def _fault(file: File, path: Path) -> str:
    """Describe what is wrong with the size or checksum of a file; return "" if nothing is."""
    size, algorithm = path.stat().st_size, "sha256" if file.sha256 else "md5"
    if size > file.limit or size < (file.bytes or 0):  # `limit` is `bytes`, else `max_bytes`
        return (
            f"the file has {size:,} bytes, and the card says "
            f"{'' if file.bytes else 'at most '}{file.limit:,}"
        )
    if file.checksum is None or (actual := _digest(path, algorithm)) == file.checksum:
        return ""  # the checksum is not published, or is right
    return f"the checksum is wrong: found {algorithm} {actual}, expected {file.checksum}"


def _file_names(card: Card) -> str:
    return " and ".join(file.name for file in card.files)


def _sources(card: Card, file: File, mirror: str) -> list[tuple[str, str]]:
    """Return (address, name of the file there) of each source: the mirror, then the card's."""
    names = (file.name, f"{file.name}.bz2") if mirror else ()
    mirrored = [(f"{mirror}/{card.folder}/{name}", name) for name in names]
    return mirrored + [(address, file.name) for address in file.urls]


def _mirror_address(mirror: str | os.PathLike[str] | None) -> str:
    # Return the folder or address of the mirror, "" without one; refuse an unsafe address.
    text = os.fspath(mirror) if mirror is not None else os.environ.get("PRECBENCH_MIRROR", "")
    if "://" not in text:
        return text and str(Path(text).expanduser())  # a folder; "" if no mirror
    if not _is_safe(text):
        raise InputError(
            f"the mirror {text!r} must be a folder, or an address with https:// (http:// only on "
            "this machine)"
        )
    return text.rstrip("/")


def _is_safe(address: str) -> bool:
    return re.match(_SAFE, address, re.IGNORECASE) is not None  # https, or this machine


def _accept_all(card: Card, sources: Iterable[tuple[str, str]]) -> None:
    # Move files into the cache if all of them match the card, else raise an error. A source is the
    # address or path of a file, and the file's name there.
    folder, accepted = cache_folder() / "files" / card.folder, dict[str, Path]()  # files by name
    advice = "name another folder in PRECBENCH_CACHE"  # if `folder` cannot be written
    with writing(folder, advice), temporary(folder / "new") as place:
        place.mkdir(parents=True)
        for address, name in sources:
            try:
                path = _obtain(card, address, place / name)
            except Exception as error:  # a damaged file or answer has many ways to fail
                if isinstance(error, OSError) and is_full(error):
                    raise  # another source would not help
                reason = "no such file" if isinstance(error, FileNotFoundError) else error
                raise _SourceError(f"{address} cannot be used: {reason}") from error
            accepted[path.name] = path
        # If a checksum is missing, the files, once all are there, must parse to the card's sizes.
        paths = [accepted.get(file.name, folder / file.name) for file in card.files]
        if not all(file.checksum for file in card.files) and all(map(Path.is_file, paths)):
            try:
                parse(card, paths)
            except InputError as error:  # the text names files in the temporary folder
                raise InputError(str(error).replace(f"{place}/", "")) from error
        for name, path in accepted.items():
            path.replace(folder / name)


def _obtain(card: Card, address: str, path: Path) -> Path:
    # Copy or download a file to `path`, decompress and check it; return the result's path.
    import pooch

    pooch.get_logger().setLevel("WARNING")
    if address.startswith(("https://", "http://")):
        _download(address, path)
    else:
        shutil.copyfile(address, path)
    files = {file.name: file for file in card.files}
    if path.name not in files and path.suffix == ".bz2":
        # Called as pooch does it: with path, action, and the Pooch object, which is not used.
        path = Path(pooch.Decompress(name=path.stem)(str(path), "download", None))
    if path.name not in files:
        raise InputError(f"{path.name} is not a file of {card.name}; give {_file_names(card)}")
    if fault := _fault(files[path.name], path):
        raise InputError(fault)
    return path


def _download(address: str, path: Path) -> None:
    # Download a file as stored, not unpacked; refuse a redirect to an unsafe address.
    import pooch
    import requests

    def check(answer: Any, **_: object) -> None:  # called with every answer, also a redirect
        target = urljoin(answer.url, answer.headers.get("location", ""))
        if not _is_safe(target):  # the hook runs before a redirect is followed
            raise InputError(f"{answer.url} redirects to {target}, not https; use another address")

    as_stored = {"Accept-Encoding": "identity"}  # else a .gz might arrive unpacked
    download = pooch.HTTPDownloader(timeout=TIMEOUTS, headers=as_stored, hooks={"response": check})
    if sys.stderr.isatty():
        print(f"fetching {address}", file=sys.stderr)
    try:
        download(address, path, None)
    except requests.RequestException as error:
        answer = error.response
        raise InputError(
            "no connection" if answer is None else f"{answer.status_code} {answer.reason}"
        ) from error


def clean(names: Iterable[str] = (), *, dry_run: bool = False) -> dict[str, int]:
    """Remove prepared arrays, unfinished files and the files of named data sets from the cache.

    Return the sizes in bytes by path, relative to the cache; `dry_run` removes nothing.
    """
    root = cache_folder()
    targets = {*(root / "prepared").glob("*"), *(root / "files").rglob(".*.tmp")}  # unfinished
    for card in map(find_card, names):
        paths = [root / "files" / card.folder / file.name for file in card.files]
        targets |= {path for path in paths if path.is_file()}
    removed = {}
    for path in sorted(targets):
        files = [path] if path.is_file() else [p for p in path.rglob("*") if p.is_file()]
        removed[path.relative_to(root).as_posix()] = sum(file.stat().st_size for file in files)
        if not dry_run and path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        elif not dry_run:  # a file, or a link to a folder that stays
            path.unlink()
    return removed
