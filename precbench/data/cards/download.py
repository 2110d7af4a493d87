"""Download a file over https with pooch, and with limits that pooch does not have."""

from __future__ import annotations

import contextlib
import ipaddress
import re
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future, wait
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Self
from urllib.parse import urljoin, urlsplit

from precbench.files import writing

if TYPE_CHECKING:
    import requests

CHUNK = 1 << 14  # bytes: less than LEAST, as a file grows by chunks
FIRST_WAIT = 0.5  # seconds before the second attempt of three, doubled before the last
TIMEOUTS = (10.0, 60.0)  # seconds to connect, and between two packets
LEAST, PERIOD = 60_000, 60.0  # bytes that must arrive in each period of so many seconds
DEADLINE = 4 * 3600.0  # seconds for a file


class Rejected(Exception):  # noqa: N818 (not an error: the next source is tried)
    """Why a source does not give the file."""


class _Transient(Rejected):
    """A failure after which another attempt may succeed."""


class LimitedFile:
    """A new file, open for writing, that rejects more than `limit` bytes.

    An error of the disk is a `PrecbenchError`: no other source mends it.
    """

    def __init__(self, path: Path, limit: int) -> None:
        self.n_bytes = 0
        self._limit, self._folder = limit, path.parent
        with self._writing():
            self._file = path.open("wb")

    def _writing(self) -> contextlib.AbstractContextManager[None]:
        return writing(self._folder, "name another folder in PRECBENCH_CACHE")

    def write(self, chunk: bytes) -> None:
        """Add a chunk."""
        self.n_bytes += len(chunk)
        if self.n_bytes > self._limit:
            raise Rejected(f"larger than the {self._limit:,} bytes that the card allows")
        with self._writing():
            self._file.write(chunk)

    def flush(self) -> None:
        """Leave it to `close`: pooch asks after every chunk."""

    def close(self) -> None:
        """Write what is left."""
        with self._writing():
            self._file.close()


def download(address: str, path: Path, limit: int) -> None:
    """Save what an address (https, or http on this machine) serves.

    Raises
    ------
    Rejected
        If the server has no such file, serves more than `limit` bytes, cannot be reached, or is
        too slow.
    PrecbenchError
        If the disk is full or cannot be written.
    """
    for pause in (FIRST_WAIT, 2 * FIRST_WAIT, None):  # pooch would ask again after a 404, too
        try:
            with _Bar(address) as bar, contextlib.closing(LimitedFile(path, limit)) as file:
                _in_time(partial(_receive, address, file, bar), file)
            return
        except _Transient:
            if pause is None:
                raise
            time.sleep(pause)


def is_plain_loopback(address: str) -> bool:
    """Whether an address is http on this machine."""
    try:
        parts = urlsplit(address)
        host = parts.hostname or ""
        is_here = host == "localhost" or ipaddress.ip_address(host).is_loopback
        return parts.scheme == "http" and is_here
    except ValueError:
        return False


def _in_time(receive: Callable[[], None], file: LimitedFile) -> None:
    """Wait for a file as long as it grows fast enough.

    It is received in a thread of its own: no timeout of a socket ends an answer, or its headers,
    that come byte by byte. Once the file is closed, the thread ends with the next chunk.
    """
    outcome: Future[None] = Future()

    def run() -> None:
        try:
            receive()
            outcome.set_result(None)
        except BaseException as error:
            outcome.set_exception(error)

    threading.Thread(target=run, daemon=True).start()
    deadline = time.monotonic() + DEADLINE
    enough = LEAST
    while not wait([outcome], min(PERIOD, deadline - time.monotonic())).done:
        if file.n_bytes < enough or time.monotonic() >= deadline:
            raise Rejected(
                f"too slow: less than {LEAST:,} bytes in {PERIOD:g} s, or not done after "
                f"{DEADLINE / 3600:g} hours"
            )
        enough = file.n_bytes + LEAST
    outcome.result()


def _receive(address: str, file: LimitedFile, bar: _Bar) -> None:
    import pooch
    import requests
    from urllib3.exceptions import MaxRetryError

    answers: list[requests.Response] = []  # pooch leaves them open

    def check(answer: requests.Response, **_: object) -> None:
        """Refuse a redirect to plain http before it is followed, and a size that is none."""
        answers.append(answer)
        size = answer.headers.get("Content-Length", "0")
        if answer.is_redirect:
            target = urljoin(answer.url, answer.headers["location"])
            both_here = is_plain_loopback(answer.url) and is_plain_loopback(target)
            if urlsplit(target).scheme != "https" and not both_here:
                raise Rejected(f"it redirects to {target}, which is not https")
        elif answer.ok and not re.fullmatch("[0-9]{1,18}", size):
            raise ValueError(f"a Content-Length of {size!r}")

    fetch = pooch.HTTPDownloader(
        progressbar=bar,
        chunk_size=CHUNK,
        timeout=TIMEOUTS,
        headers={"Accept-Encoding": "identity"},  # or a .gz might arrive unpacked
        hooks={"response": check},
    )
    try:
        fetch(address, file, None)
    except requests.HTTPError as error:
        assert error.response is not None
        status = error.response.status_code
        kind = _Transient if status >= 500 or status == 429 else Rejected
        raise kind(f"the server answers {status} {error.response.reason}") from error
    except requests.RequestException as error:
        cause = error.args[0] if error.args else error
        if isinstance(cause, MaxRetryError):  # not even a connection
            raise Rejected(f"no connection: {cause.reason}") from error
        raise _Transient(f"the connection broke: {cause}") from error
    except ValueError as error:
        raise Rejected(f"the address or the answer is malformed: {error}") from error
    finally:
        for answer in answers:
            answer.close()


class _Bar:
    """A progress bar of rich, drawn on a terminal only, as pooch asks for one."""

    def __init__(self, address: str) -> None:
        from rich import progress
        from rich.console import Console

        self._bars = progress.Progress(
            progress.TextColumn("{task.description}"),
            progress.BarColumn(),
            progress.DownloadColumn(),
            progress.TimeRemainingColumn(),
            console=Console(stderr=True),
            transient=True,
            redirect_stderr=False,
            disable=not sys.stderr.isatty(),
        )
        name = address.rpartition("/")[2]
        self._bar = self._bars.add_task(f"fetching {name}", total=None)
        self.total = 0

    def __enter__(self) -> Self:
        self._bars.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._bars.stop()

    def update(self, n_bytes: int) -> None:
        self._bars.update(self._bar, advance=n_bytes, total=self.total or None)

    def reset(self) -> None:
        self._bars.reset(self._bar)

    def close(self) -> None:
        """Leave it to `__exit__`, which comes after a failure, too."""
