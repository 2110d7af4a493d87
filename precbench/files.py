"""Files that appear whole or not at all, and one-line messages for errors of the disk."""

import errno
import os
import shutil
import uuid
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from contextvars import ContextVar
from pathlib import Path

from precbench.errors import InputError, PrecbenchError
from precbench.text import visible


@contextmanager
def temporary(target: Path) -> Iterator[Path]:
    """Give a hidden name beside `target` for a file or folder in the making.

    Parameters
    ----------
    target : pathlib.Path

    Yields
    ------
    pathlib.Path
        ``.<name>.<random>.tmp``; removed at the end if it still has this name.
    """
    path = target.with_name(f".{target.name}.{uuid.uuid4().hex}.tmp")
    try:
        yield path
    finally:
        if path.is_dir():
            shutil.rmtree(path, ignore_errors=True)
        else:
            path.unlink(missing_ok=True)


def publish(path: Path, target: Path) -> None:
    """Rename a finished file, or a folder of files, once it is safely on the disk.

    Parameters
    ----------
    path : pathlib.Path
        A name from `temporary`.
    target : pathlib.Path
        A file is replaced; a folder must not exist.
    """
    for part in path.iterdir() if path.is_dir() else ():
        _sync(part)
    _sync(path)
    path.replace(target)
    _sync(target.parent)


def write_whole(contents: Mapping[Path, bytes | str]) -> None:
    """Write files of one folder; when this returns, they survive a crash of the machine.

    None gets its name before the contents of all are safely on the disk.

    Parameters
    ----------
    contents : mapping of pathlib.Path to bytes or str
        Text is made `visible`. The last file is the commit mark of the others: it is absent while
        they are replaced.
    """
    *others, mark = contents
    with ExitStack() as stack:
        paths = {target: stack.enter_context(temporary(target)) for target in contents}
        for target, content in contents.items():
            with paths[target].open("wb") as stream:
                stream.write(content if isinstance(content, bytes) else visible(content).encode())
            _sync(paths[target])
        if others:
            mark.unlink(missing_ok=True)
        for target, path in paths.items():
            path.replace(target)
        _sync(mark.parent)


@contextmanager
def writing(
    place: Path | str,
    advice: str = "",
    refused: type[PrecbenchError] = PrecbenchError,
) -> Iterator[None]:
    """Report an error of the operating system in one line.

    Parameters
    ----------
    place : path or str
        What is being written.
    advice : str
        What to do besides freeing space.
    refused : type
        The error for any other cause than a full disk or too long a name.

    Raises
    ------
    PrecbenchError
        If the disk is full; an `InputError` if the name is too long.
    """
    try:
        yield
    except OSError as error:
        if is_full(error):
            raise PrecbenchError(disk_full(place, advice)) from error
        reason = error.strerror or str(error)
        kind = InputError if error.errno == errno.ENAMETOOLONG else refused
        raise kind(f"cannot write to {place}: {reason}{advice and f'; {advice}'}") from error


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """Write a file of the user's choice, whole or not at all.

    Parameters
    ----------
    path : pathlib.Path
        An existing file is replaced; through a symbolic link, the file that it leads to.

    Yields
    ------
    pathlib.Path
        Where to write; it gets the name `path` at the end.

    Raises
    ------
    InputError
        If the file cannot be written, or what exists is no file.
    PrecbenchError
        If the disk is full.
    """
    target = Path(os.path.realpath(path))  # a link stays
    with writing(path, "choose another place", InputError), temporary(target) as unfinished:
        if target.exists() and not target.is_file():
            raise OSError("it is a folder" if target.is_dir() else "it is not a regular file")
        yield unfinished
        publish(unfinished, target)


def refuse_links(folder: Path) -> None:
    """Refuse an untrusted folder that leads elsewhere when read or written.

    Parameters
    ----------
    folder : pathlib.Path
        May be a link itself, or absent.

    Raises
    ------
    InputError
        If something in it is neither a file nor a folder.
    """
    waiting = [folder] if folder.is_dir() else []
    while waiting:
        with os.scandir(waiting.pop()) as entries:
            for entry in entries:
                if entry.is_dir(follow_symlinks=False):
                    waiting.append(Path(entry))
                elif not entry.is_file(follow_symlinks=False):
                    kind = "a symbolic link" if entry.is_symlink() else "not a regular file"
                    raise InputError(
                        f"{entry.path} is {kind}: a results folder holds files only; remove it, "
                        "or copy what it leads to"
                    )


def is_full(error: OSError) -> bool:
    """Whether the disk, or the user's share of it, is full."""
    return error.errno in (errno.ENOSPC, errno.EDQUOT)


def disk_full(place: Path | str, advice: str = "") -> str:
    """Return the message for a full disk, or for one that has no room for another file."""
    what, remedy = "disk full", "free space"
    with suppress(OSError):
        disk = os.statvfs(next(at for at in (Path(place), *Path(place).parents) if at.exists()))
        if disk.f_files and not disk.f_favail and disk.f_bavail:
            what, remedy = "no inodes left on the disk (too many files)", "remove files"
    return (
        f"{what} while writing to {place}; what is finished is kept; {remedy}"
        f"{advice and f' or {advice}'}, then run the same command again"
    )


_lasts = ContextVar("_lasts", default=True)


@contextmanager
def passing() -> Iterator[None]:
    """Do not wait for the disk meanwhile: for files that are read at once and removed."""
    before = _lasts.set(False)
    try:
        yield
    finally:
        _lasts.reset(before)


def _sync(path: Path) -> None:
    """Wait until a file, or the names in a folder, would survive a power cut."""
    if not _lasts.get():
        return
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
