"""Files written whole or not at all, and one-line messages for errors of the disk."""

import errno
import os
import shutil
import uuid
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path

from precbench.core.errors import InputError, PrecbenchError
from precbench.core.text import visible


@contextmanager
def temporary(target: Path) -> Iterator[Path]:
    """Yield a path ``.<name>.<random>.tmp`` beside `target`; remove it at the end."""
    path = target.with_name(f".{target.name}.{uuid.uuid4().hex}.tmp")
    try:
        yield path
    finally:
        if path.is_dir():
            shutil.rmtree(path, ignore_errors=True)
        else:
            path.unlink(missing_ok=True)


def write_whole(contents: Mapping[Path, bytes | str]) -> None:
    """Write files of one folder, each whole or not at all; text is made `visible`.

    The last file is removed first and put in place last: if present, all files are of
    one call.
    """
    *others, last_file = contents
    with ExitStack() as stack:
        # All files are written under temporary names before the first is put in place.
        paths = {}  # temporary ones, by target
        for target, content in contents.items():
            paths[target] = stack.enter_context(temporary(target))
            if isinstance(content, str):
                content = visible(content).encode()
            paths[target].write_bytes(content)
        if others:
            last_file.unlink(missing_ok=True)
        for target, path in paths.items():
            path.replace(target)


@contextmanager
def writing(
    place: Path | str, advice: str = "", refused: type[PrecbenchError] = PrecbenchError
) -> Iterator[None]:
    """Turn an `OSError` while writing to `place` into a one-line error with advice.

    The error has the type `refused`, but `PrecbenchError` if the disk is full, and
    `InputError` if the file's name is too long.
    """
    try:
        yield
    except OSError as error:
        if is_full(error):
            raise PrecbenchError(disk_full(place, advice)) from error
        reason = error.strerror or str(error)
        kind = InputError if error.errno == errno.ENAMETOOLONG else refused
        raise kind(
            f"cannot write to {place}: {reason};"
            f" {advice or 'check the path and its permissions'}"
        ) from error


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """Yield a temporary path; what is written there replaces `path`, whole or not."""
    target = Path(os.path.realpath(path))  # a link stays, its file is replaced
    with (
        writing(path, "choose another place", refused=InputError),
        temporary(target) as unfinished,
    ):
        if target.exists() and not target.is_file():  # `writing` reports the error
            raise OSError(
                "it is a folder" if target.is_dir() else "it is not a regular file"
            )
        yield unfinished
        unfinished.replace(target)


def is_full(error: OSError) -> bool:
    """Return whether the disk, or the user's quota, is full."""
    return error.errno in (errno.ENOSPC, errno.EDQUOT)


def disk_full(place: Path | str, advice: str = "") -> str:
    """Return the message for a disk without room, or without inodes."""
    remedies = "free space or remove files"
    if advice:
        remedies += f", or {advice}"
    return (
        f"disk full while writing to {place}; what is finished is kept; {remedies},"
        " then run the same command again"
    )
