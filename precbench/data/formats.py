"""Formats of files with rows, and text packed as gz, bz2 or xz: unpacked to a limited size.

A format is known from the suffix, packed text from its first bytes. It may be `MOST_TIMES` times
as large as its file, and up to `ALWAYS` bytes in any case: a few bytes cannot fill the memory.
"""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import os
import re
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, Literal, cast

from precbench.errors import InputError

Source = str | os.PathLike[str] | IO[bytes]
Format = Literal["svmlight", "csv", "tsv", "parquet", "xlsx", "npz"]
"""Of files that are read whole."""
StreamFormat = Literal["svmlight", "npy"]
"""Of files that are read block by block in any order."""

MOST_TIMES = 200
ALWAYS = 1 << 22

SUFFIXES = {
    ".svm": "svmlight",
    ".libsvm": "svmlight",
    ".svmlight": "svmlight",
    ".txt": "svmlight",
    ".csv": "csv",
    ".tsv": "tsv",
    ".parquet": "parquet",
    ".xlsx": "xlsx",
    ".xlsm": "xlsx",
    ".npz": "npz",
    ".npy": "npy",
}
_PACKED = (".gz", ".bz2", ".xz")
_OPENERS: dict[str, Callable[..., Any]] = {
    r"\x1f\x8b": gzip.open,
    r"BZh[1-9](1AY&SY|\x17rE8P\x90)": bz2.open,  # a table may begin with the name BZh1
    r"\xfd7zXZ\x00": lzma.open,
}
# What reading packed text may raise where it is damaged.
_DAMAGED = (EOFError, OSError, MemoryError, zlib.error, lzma.LZMAError)


def find_format(path: Path, given: str | None) -> str:
    """Return the format of an existing file: as given, else from its suffix, else the suffix."""
    if not path.is_file():
        raise InputError(f"{path}: {'a folder, not a file' if path.is_dir() else 'no such file'}")
    suffixes = [suffix for suffix in map(str.lower, path.suffixes) if suffix not in _PACKED]
    return given or SUFFIXES.get(suffixes[-1] if suffixes else "", path.suffix)


def opener(file: Any) -> Callable[..., Any] | None:
    """Return what opens the packed text that a file holds; None if it holds plain text."""
    head = file.peek(10)[:10].decode("latin-1")
    return next((opens for magic, opens in _OPENERS.items() if re.match(magic, head)), None)


@contextmanager
def opened(source: Source) -> Iterator[IO[bytes]]:
    """Open a file, through the decompressor that its first bytes ask for.

    Raises
    ------
    InputError
        If the file cannot be opened; meanwhile, if the packed text is damaged or larger than the
        limits allow.
    """
    name = name_of(source)
    try:
        if isinstance(source, (str, os.PathLike)):
            with Path(source).open("rb") as file, _unpacked(file, name) as stream:
                yield stream
            return
        buffered: Any = source
        if not hasattr(source, "peek"):
            buffered = io.BufferedReader(cast("Any", source))
        try:
            with _unpacked(buffered, name) as stream:
                yield stream
        finally:
            if buffered is not source:
                buffered.detach()  # or closing it would close the caller's file
    except _DAMAGED as error:
        reason = getattr(error, "strerror", None) or error
        raise InputError(f"{name}: the file cannot be read: {reason}") from error


def name_of(source: Source) -> str:
    """Return the name of a source in messages."""
    if isinstance(source, (str, os.PathLike)):
        return os.fspath(source)
    return str(getattr(source, "name", "<stream>"))


@contextmanager
def _unpacked(file: Any, name: str) -> Iterator[Any]:
    open_packed = opener(file)
    if open_packed is None:
        yield file
        return
    packed = _Counted(file)
    with open_packed(packed) as text:
        yield io.BufferedReader(_Limited(text, packed, name))


class _Counted:
    """A file that counts the bytes read from it."""

    def __init__(self, file: Any) -> None:
        self.file = file
        self.n_bytes = 0

    def read(self, size: int = -1) -> bytes:
        piece = self.file.read(size)
        self.n_bytes += len(piece)
        return piece


class _Limited(io.RawIOBase):
    """Unpacked text, up to the limits."""

    def __init__(self, text: Any, packed: _Counted, name: str) -> None:
        self._text = text
        self._packed = packed
        self._name = name
        self._n_bytes = 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        n_read = self._text.readinto(buffer)
        self._n_bytes += n_read
        require_modest(self._n_bytes, self._packed.n_bytes, self._name)
        return n_read


def require_modest(n_bytes: int, n_packed: int, name: str) -> None:
    """Refuse what is unpacked beyond the limits."""
    if n_bytes > max(ALWAYS, MOST_TIMES * n_packed):
        raise InputError(
            f"{name}: the text is more than {MOST_TIMES} times as large as the packed "
            "file; unpack it first if you trust it"
        )
