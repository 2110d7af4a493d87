"""Files taken out of compressed files and archives, up to a limit of size."""

import bz2
import gzip
import lzma
import tarfile
import zipfile
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

from precbench.core.errors import InputError
from precbench.data.cards.card import Packing

_COMPRESSED: dict[str, Callable[..., Any]] = {
    "gz": gzip.open,
    "bz2": bz2.open,
    "xz": lzma.open,
}
_CHUNK = 1 << 20

# What the readers of archives raise for bytes that make no sense
_UNREADABLE = (
    OSError,
    RuntimeError,  # a member of a zip needs a password
    lzma.LZMAError,
    tarfile.TarError,
    zipfile.BadZipFile,
    zlib.error,
)


def unpack(
    archive: Path,
    packing: Packing,
    target: Path,
    limit: int,
    *,
    member: str | None = None,
    stream_limit: int | None = None,
) -> None:
    """Write one file of an archive to `target`, of at most `limit` bytes.

    `member` is its path in a zip or tar.gz, which is looked up and never written to. A
    tar.gz is unpacked from its start to that member, in memory, and to at most
    `stream_limit` bytes.
    """
    try:
        with _opened(archive, packing, member, stream_limit) as content:
            _copy(content, target, limit)
    except EOFError as error:
        raise InputError(f"the {packing} archive is cut short; get it again") from error
    except _UNREADABLE as error:
        if getattr(error, "errno", None) is not None:
            raise  # of the disk, not of the archive
        raise InputError(
            f"it is not a whole {packing} archive ({error}); get it again"
        ) from error


@contextmanager
def _opened(
    archive: Path, packing: Packing, member: str | None, stream_limit: int | None
) -> Iterator[IO[bytes]]:
    """Open the content of a compressed file, or a member of an archive."""
    if packing == "zip":
        assert member is not None
        with zipfile.ZipFile(archive) as folder:
            if member not in folder.namelist():
                raise _no_member(member, folder.namelist())
            with folder.open(member) as content:
                yield content
    elif packing == "tar.gz":
        assert member is not None and stream_limit is not None
        with gzip.open(archive) as stream:
            # It has `read`, which is all that tarfile needs.
            limited: Any = _Limited(stream, stream_limit)
            with tarfile.open(fileobj=limited, mode="r|") as tar:
                yield _find_member(tar, member)
    else:
        with _COMPRESSED[packing](archive) as content:
            yield content


def _find_member(tar: tarfile.TarFile, member: str) -> IO[bytes]:
    """Return the content of a member, the tar being read from its start to there."""
    for entry in tar:
        if entry.name == member and entry.isfile():
            content = tar.extractfile(entry)
            assert content is not None  # as it is a file
            return content
    raise _no_member(member, tar.getnames())


def _no_member(member: str, names: Sequence[str]) -> InputError:
    listed = ", ".join(names[:5])
    if not names:
        listed = "none at all"
    elif len(names) > 5:
        listed += f" and {len(names) - 5:,} more"
    return InputError(f"the archive has no member {member}, but {listed}")


def _copy(content: IO[bytes], target: Path, limit: int) -> None:
    """Write the content to `target`; refuse more than `limit` bytes."""
    n_bytes = 0
    with target.open("wb") as file:
        # To ask for one byte more than allowed also reads the checksum at the end.
        while chunk := content.read(min(_CHUNK, limit + 1 - n_bytes)):
            n_bytes += len(chunk)
            if n_bytes > limit:
                raise _too_much(limit)
            file.write(chunk)


def _too_much(limit: int) -> InputError:
    return InputError(
        f"it unpacks to more than {limit:,} bytes, which the card does not allow"
    )


class _Limited:
    """A stream that refuses to give more than a number of bytes."""

    def __init__(self, stream: gzip.GzipFile, limit: int) -> None:
        self.stream = stream
        self.limit = limit
        self.n_bytes = 0

    def read(self, size: int) -> bytes:
        data = self.stream.read(size)
        self.n_bytes += len(data)
        if self.n_bytes > self.limit:
            raise _too_much(self.limit)
        return data
