"""Text that may be packed as gz, bz2 or xz: unpacked piece by piece, to a limited size.

Packed text is recognised by its first bytes. It may be `MOST_TIMES` times as large as its file, and
up to `ALWAYS` bytes in any case: a few bytes cannot fill the memory.
"""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, cast

from precbench.errors import InputError

Source = str | os.PathLike[str] | IO[bytes]

MOST_TIMES = 200
ALWAYS = 1 << 22

_OPENERS: dict[str, Any] = {
    r"\x1f\x8b": gzip.open,
    r"BZh[1-9](1AY&SY|\x17rE8P\x90)": bz2.open,  # a table may begin with the name BZh1
    r"\xfd7zXZ\x00": lzma.open,
}


@contextmanager
def opened(source: Source) -> Iterator[IO[bytes]]:
    """Open a file, through the decompressor that its first bytes ask for.

    Parameters
    ----------
    source : path or binary file object

    Yields
    ------
    binary file object
        Where the packed text is damaged, it raises `EOFError`, `OSError`, `zlib.error` or
        `lzma.LZMAError`.

    Raises
    ------
    InputError
        If the file cannot be opened; later, if the text is larger than the limits allow.
    """
    if isinstance(source, (str, os.PathLike)):
        try:
            with Path(source).open("rb") as file, _unpacked(file, os.fspath(source)) as stream:
                yield stream
        except OSError as error:
            reason = error.strerror or error
            raise InputError(f"{source}: the file cannot be read: {reason}") from error
        return
    buffered = source if hasattr(source, "peek") else io.BufferedReader(cast("Any", source))
    try:
        with _unpacked(buffered, name_of(source)) as stream:
            yield stream
    finally:
        if buffered is not source:
            cast("Any", buffered).detach()  # or closing it would close the caller's file


def name_of(source: Source) -> str:
    """Return the name of a source in messages."""
    if isinstance(source, (str, os.PathLike)):
        return os.fspath(source)
    return str(getattr(source, "name", "<stream>"))


@contextmanager
def _unpacked(file: Any, name: str) -> Iterator[Any]:
    head = file.peek(10)[:10].decode("latin-1")
    for pattern, open_packed in _OPENERS.items():
        if re.match(pattern, head):
            packed = _Counted(file)
            with open_packed(packed) as text:
                yield io.BufferedReader(_Limited(text, packed, name))
            return
    yield file


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
        if self._n_bytes > max(ALWAYS, MOST_TIMES * self._packed.n_bytes):
            raise InputError(
                f"{self._name}: the text is more than {MOST_TIMES} times as large as the packed "
                "file; unpack it first if you trust it"
            )
        return n_read
