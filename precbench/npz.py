"""Arrays in an untrusted npz file: no pickle, and no more memory than the file takes."""

import functools
import io
import math
import zipfile
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["DamagedError", "pack", "unpack"]

_HEADERS = {
    (1, 0): (np.lib.format.read_array_header_1_0, 2),
    (2, 0): (np.lib.format.read_array_header_2_0, 4),
}
"""Of each version, the reader of the header and how many bytes hold its length."""
_LARGEST_RATIO = 1100
"""Deflate packs at most 1,032 bytes into one."""
_PIECE = 2**20
"""Bytes that are read at a time: a zip archive copies what it reads, twice."""


class DamagedError(ValueError):
    """The content of a file is not what its reader wants."""


def pack(arrays: Mapping[str, Any]) -> bytes:
    """Return the content of an npz file, the same for the same arrays.

    Parameters
    ----------
    arrays : mapping of str to array-like
        No objects.
    """
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w") as archive:
        for name, array in arrays.items():
            with archive.open(f"{name}.npy", "w", force_zip64=True) as member:
                np.lib.format.write_array(member, np.asarray(array), allow_pickle=False)
    return content.getvalue()


def unpack(
    path: Path, names: Iterable[str] | None = None, *, kinds: str = "fiu", packed: bool = False
) -> dict[str, NDArray[Any]]:
    """Read arrays of an npz file.

    Parameters
    ----------
    path : pathlib.Path
    names : iterable of str, optional
        Default all.
    kinds : str
        Kinds of ``numpy.dtype`` that may occur; complex numbers, times and objects do not pass
        for numbers.
    packed : bool, default=False
        Accept compressed arrays, which may take up to 1,100 times the size of the file. Without
        it, arrays take no more memory than the file.

    Raises
    ------
    FileNotFoundError
        If there is no such file.
    DamagedError
        If the file is not an npz file, lacks an array, or an array is not what is accepted.
    """
    try:
        with path.open("rb") as stream, zipfile.ZipFile(stream) as archive:
            members = {member.filename.removesuffix(".npy"): member for member in archive.filelist}
            wanted = list(members) if names is None else list(names)
            missing = [name for name in wanted if name not in members]
            if missing:
                raise DamagedError(f"it has no array {', '.join(missing)}")
            if sum(member.compress_size for member in archive.filelist) > path.stat().st_size:
                raise DamagedError("its arrays overlap")
            return {name: _array(archive, members[name], kinds, packed) for name in wanted}
    except (FileNotFoundError, DamagedError):
        raise
    except Exception as error:  # a damaged archive has many ways to fail
        raise DamagedError(str(error) or type(error).__name__) from error


def _header(stream: IO[bytes]) -> tuple[tuple[int, ...], bool, np.dtype[Any]]:
    version = np.lib.format.read_magic(stream)
    length = stream.read(_HEADERS[version][1])
    return _parsed(version, length + stream.read(int.from_bytes(length, "little")))


@functools.lru_cache(maxsize=256)
def _parsed(version: tuple[int, int], header: bytes) -> Any:
    """Parse a header; of many records few differ, and NumPy compiles each as an expression."""
    return _HEADERS[version][0](io.BytesIO(header))


def _array(
    archive: zipfile.ZipFile, member: zipfile.ZipInfo, kinds: str, packed: bool
) -> NDArray[Any]:
    name = member.filename
    accepted = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED) if packed else (zipfile.ZIP_STORED,)
    if member.compress_type not in accepted or member.flag_bits & 1:
        raise DamagedError(f"{name} is compressed or encrypted")
    if member.file_size > _LARGEST_RATIO * member.compress_size:
        raise DamagedError(f"{name} cannot be as long as it says")
    with archive.open(member) as stream:
        shape, by_columns, dtype = _header(stream)
        if dtype.kind not in kinds:
            raise DamagedError(f"{name} holds values of type {dtype}")
        if math.prod(shape) * dtype.itemsize != member.file_size - stream.tell():
            raise DamagedError(f"{name} is not as long as its shape says")
        content = bytearray(member.file_size - stream.tell())
        view, start = memoryview(content), 0
        while start < len(content):
            n_read = stream.readinto(view[start : start + _PIECE])  # type: ignore[attr-defined]
            if not n_read:
                raise DamagedError(f"{name} ends early")
            start += n_read
        if stream.read(1):  # also checks the checksum of the member
            raise DamagedError(f"{name} is longer than it says")
    flat = np.frombuffer(content, dtype) if content else np.empty(0, dtype)
    array = flat.reshape(shape, order="F" if by_columns else "C")
    return array.astype(dtype.newbyteorder("="), copy=False)
