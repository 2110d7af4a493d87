"""File formats, known by the suffix, and compressed text, known by its first bytes."""

import bz2
import gzip
import io
import lzma
import os
import re
import zlib
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import IO, Any, cast

from precbench.core.errors import InputError

Source = str | os.PathLike[str] | IO[bytes]

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
_PACKED = (".gz", ".bz2", ".xz")  # suffixes of compressed files
# By a pattern of the first bytes; a table may begin with the name BZh1.
_OPENERS: dict[bytes, Callable[..., Any]] = {
    rb"\x1f\x8b": gzip.open,
    rb"BZh[1-9](1AY&SY|\x17rE8P\x90)": bz2.open,
    rb"\xfd7zXZ\x00": lzma.open,
}
# What may be raised where compressed text is damaged
_DAMAGED = (EOFError, OSError, MemoryError, zlib.error, lzma.LZMAError)


def find_format(path: Path, name: str | None) -> str:
    """Return the format `name` if given, else that of the suffix: csv for .csv.gz.

    An unknown suffix is returned itself. Refuse what is not a regular file.
    """
    if not path.is_file():
        if path.is_fifo() or path.is_char_device() or path.is_socket():
            kind = "pipe" if path.is_fifo() else "device"
            raise InputError(
                f"{path} is a {kind}, and rows are read more than once; save them, and"
                " give the path of the file"
            )
        fault = "a folder, not a file" if path.is_dir() else "no such file"
        raise InputError(f"{path}: {fault}; give the path of a file")
    if name:
        return name
    suffixes = [suffix.lower() for suffix in path.suffixes]
    of_content = [suffix for suffix in suffixes if suffix not in _PACKED]
    if not of_content:
        return path.suffix
    return SUFFIXES.get(of_content[-1], path.suffix)


def opener(file: Any) -> Callable[..., Any] | None:
    """Return the function that opens compressed text in `file`, None for plain text."""
    head = file.peek(10)[:10]
    for pattern, open_packed in _OPENERS.items():
        if re.match(pattern, head):
            return open_packed
    return None


@contextmanager
def opened(source: Source) -> Iterator[IO[bytes]]:
    """Yield the file of a source, open for reading, decompressed if it is packed."""
    name = name_of(source)
    try:
        with ExitStack() as stack:
            file: Any = source
            if isinstance(source, (str, os.PathLike)):
                file = stack.enter_context(Path(source).open("rb"))
            elif not hasattr(source, "peek"):  # `opener` needs `peek`
                file = io.BufferedReader(cast("Any", source))
                # Else the buffer would close the caller's file.
                stack.callback(file.detach)
            open_packed = opener(file)
            if open_packed is not None:
                file = stack.enter_context(open_packed(file))
            yield file
    except _DAMAGED as error:
        reason = getattr(error, "strerror", None) or error
        raise InputError(
            f"{name}: cannot be read: {reason}; give a readable copy"
        ) from error


def name_of(source: Source) -> str:
    """Return the name of a source for messages."""
    if isinstance(source, (str, os.PathLike)):
        return os.fspath(source)
    return str(getattr(source, "name", "<stream>"))
