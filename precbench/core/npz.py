"""Arrays in npz files, of untrusted origin: numbers, no pickle, bounded memory."""

import io
import zipfile
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

_AGAIN = "make the file again with the command that made it, or with numpy.savez"


class DamagedError(ValueError):
    """A file does not hold what its reader asks for."""


def pack(arrays: Mapping[str, Any]) -> bytes:
    """Return the content of an npz file, equal for equal arrays (no date is stored)."""
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w") as archive:
        for name, array in arrays.items():
            # zip64: an array may exceed 2 GiB
            with archive.open(f"{name}.npy", "w", force_zip64=True) as member:
                np.lib.format.write_array(member, np.asarray(array), allow_pickle=False)
    return content.getvalue()


def unpack(
    path: Path,
    names: Iterable[str] | None = None,
    *,
    kinds: str = "fiu",
    packed: bool = False,
) -> dict[str, NDArray[Any]]:
    """Return arrays of an npz file by name, by default all; raise if one is damaged.

    `kinds` are the accepted kinds of ``numpy.dtype``. Compressed arrays are accepted
    only with `packed`, because they may take far more memory than the file.
    """
    arrays: dict[str, NDArray[Any]] = {}
    try:
        with path.open("rb") as file, zipfile.ZipFile(file) as archive:
            members = {
                member.filename.removesuffix(".npy"): member
                for member in archive.filelist
            }
            for name in members if names is None else names:
                if name not in members:
                    raise DamagedError(f"the array {name} is missing; {_AGAIN}")
                if members[name].compress_type != zipfile.ZIP_STORED and not packed:
                    raise DamagedError(f"the array {name} is compressed; {_AGAIN}")
                with archive.open(members[name]) as stream:
                    arrays[name] = _read_array(stream, name, kinds)
    except (FileNotFoundError, DamagedError):
        raise
    except Exception as error:  # a damaged archive has many ways to fail
        raise DamagedError(str(error) or type(error).__name__) from error
    return arrays


def _read_array(stream: IO[bytes], name: str, kinds: str) -> NDArray[Any]:
    """Return a stream's only array in native byte order; `name` is for messages."""
    array = np.lib.format.read_array(stream, allow_pickle=False)
    if stream.read(1):  # reading at the end checks the checksum
        raise DamagedError(f"there are further bytes after the array {name}; {_AGAIN}")
    kind = array.dtype.kind
    if kind not in kinds:
        raise DamagedError(
            f"the array {name} has the type {array.dtype} of kind {kind}; convert it to"
            f" a type of kind {', '.join(kinds)} (see numpy.dtype.kind)"
        )
    return array.astype(array.dtype.newbyteorder("native"), copy=False)
