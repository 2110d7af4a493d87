"""Download a file over https: with limits, redirects that stay secure, and some patience."""

from __future__ import annotations

import contextlib
import ipaddress
import queue
import re
import sys
import threading
import time
from collections.abc import Iterable, Iterator
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING
from urllib.parse import urljoin, urlsplit

from precbench.files import writing

if TYPE_CHECKING:
    import requests

CHUNK = 1 << 14  # bytes
ATTEMPTS = 3
FIRST_WAIT = 0.5  # seconds, doubled before each further attempt
TIMEOUTS = (10.0, 60.0)  # seconds to connect, and between two packets
LEAST, PERIOD = 60_000, 60.0  # bytes that must arrive within these seconds, unless they are all
DEADLINE = 4 * 3600.0  # seconds for a file


class Rejected(Exception):  # noqa: N818 (not an error: the next source is tried)
    """Why a source does not give the file.

    Parameters
    ----------
    reason : str
    transient : bool
        Whether another attempt may succeed.
    """

    def __init__(self, reason: str, *, transient: bool = False) -> None:
        super().__init__(reason)
        self.transient = transient


def save(chunks: Iterable[bytes], path: Path, limit: int) -> None:
    """Write chunks to a file of at most `limit` bytes.

    Parameters
    ----------
    chunks : iterable of bytes
        Raises nothing but `Rejected`.
    path : pathlib.Path
    limit : int

    Raises
    ------
    Rejected
        If there are more bytes.
    PrecbenchError
        If the disk is full or cannot be written, which no other source mends.
    """
    size = 0
    with (
        writing(path.parent, "name another folder in PRECBENCH_CACHE"),
        path.open("wb") as file,
    ):
        for chunk in chunks:
            size += len(chunk)
            if size > limit:
                raise Rejected(f"larger than the {limit:,} bytes that the card allows")
            file.write(chunk)


def download(address: str, path: Path, limit: int) -> None:
    """Save what an address serves; a transient failure is tried again.

    Parameters
    ----------
    address : str
        https, or http on this machine.
    path : pathlib.Path
    limit : int
        Largest number of bytes to accept.

    Raises
    ------
    Rejected
        If the server has no such file, serves more bytes, cannot be reached, or is too slow.
    PrecbenchError
        If the disk is full or cannot be written.
    """
    for attempt in range(1, ATTEMPTS + 1):
        try:
            save(_in_time(_received(address)), path, limit)
            return
        except Rejected as reason:
            if not reason.transient or attempt == ATTEMPTS:
                raise
            time.sleep(FIRST_WAIT * 2 ** (attempt - 1))


def is_plain_loopback(address: str) -> bool:
    """Whether an address is http on this machine."""
    try:
        parts = urlsplit(address)
        if parts.scheme != "http":
            return False
        host = parts.hostname or ""
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _in_time(chunks: Iterator[bytes]) -> Iterator[bytes]:
    """Pass chunks on while they come fast enough.

    They are received in a thread of their own: no timeout of a socket ends an answer, or its
    headers, that come byte by byte.
    """
    arrived: queue.Queue[bytes | BaseException] = queue.Queue(1)
    left = threading.Event()

    def receive() -> None:
        try:
            for chunk in chunks:
                arrived.put(chunk)
                if left.is_set():
                    return
            arrived.put(b"")
        except BaseException as error:
            arrived.put(error)

    threading.Thread(target=receive, daemon=True).start()
    started = period = time.monotonic()
    n_bytes = 0
    try:
        while True:
            wait = min(period + PERIOD, started + DEADLINE) - time.monotonic()
            try:
                chunk = arrived.get(timeout=max(wait, 0.0))
            except queue.Empty:
                raise Rejected(
                    f"too slow: less than {LEAST:,} bytes in {PERIOD:g} s, or not done after "
                    f"{DEADLINE / 3600:g} hours"
                ) from None
            if isinstance(chunk, BaseException):
                raise chunk
            if not chunk:
                return
            yield chunk
            n_bytes += len(chunk)
            if n_bytes >= LEAST:
                period, n_bytes = time.monotonic(), 0
    finally:
        left.set()
        with contextlib.suppress(queue.Empty):  # room for a chunk that waits
            arrived.get_nowait()


def _received(address: str) -> Iterator[bytes]:
    import requests
    from urllib3.exceptions import MaxRetryError

    try:
        with requests.get(
            address,
            stream=True,
            timeout=TIMEOUTS,
            headers={"Accept-Encoding": "identity"},  # or a .gz might arrive unpacked
            hooks={"response": _stay_secure},
        ) as answer:
            answer.raise_for_status()
            size = answer.headers.get("Content-Length", "")
            if size and not re.fullmatch("[0-9]{1,18}", size):
                raise ValueError(f"a Content-Length of {size!r}")
            name = PurePosixPath(urlsplit(address).path).name
            yield from _with_progress(
                answer.iter_content(CHUNK), f"fetching {name}", int(size) if size else None
            )
    except requests.HTTPError as error:
        assert error.response is not None
        status = error.response.status_code
        raise Rejected(
            f"the server answers {status} {error.response.reason}",
            transient=status >= 500 or status == 429,
        ) from error
    except requests.RequestException as error:
        cause = error.args[0] if error.args else error
        if isinstance(cause, MaxRetryError):  # not even a connection
            raise Rejected(f"no connection: {cause.reason}") from error
        raise Rejected(f"the connection broke: {cause}", transient=True) from error
    except ValueError as error:
        raise Rejected(f"the address or the answer is malformed: {error}") from error


def _stay_secure(response: requests.Response, **_: object) -> None:
    """Refuse a redirect from https to http before it is followed."""
    if not response.is_redirect:
        return
    target = urljoin(response.url, response.headers["location"])
    both_here = is_plain_loopback(response.url) and is_plain_loopback(target)
    if urlsplit(target).scheme != "https" and not both_here:
        response.close()
        raise Rejected(f"it redirects to {target}, which is not https")


def _with_progress(
    chunks: Iterable[bytes], description: str, n_bytes: int | None
) -> Iterator[bytes]:
    """Pass chunks on; on a terminal, draw a progress bar."""
    if not sys.stderr.isatty():
        yield from chunks
        return
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        DownloadColumn(),
        TimeRemainingColumn(),
    )
    console = Console(stderr=True)
    with Progress(*columns, console=console, transient=True, redirect_stderr=False) as progress:
        task = progress.add_task(description, total=n_bytes)
        for chunk in chunks:
            progress.advance(task, len(chunk))
            yield chunk
