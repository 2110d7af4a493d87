"""Downloads of bounded size; what fails says which of the causes it was."""

import re
import sys
from pathlib import Path
from typing import Any
from urllib.parse import urljoin

from precbench.errors import InputError

CONNECT_SECONDS = 10.0
SILENT_SECONDS = 60.0  # between two packets
_SAFE = r"https://|http://(localhost|127\.0\.0\.1|\[::1\])(:\d+)?(/|$)"
_CHUNK = 1 << 16


class NotServedError(InputError):
    """A server answers, but does not give the file."""


class UnreachableError(InputError):
    """A server does not answer; asking it for another file would fail in the same way."""


def is_safe(address: str) -> bool:
    """Return whether an address is https, or of this machine."""
    return re.match(_SAFE, address, re.IGNORECASE) is not None


def download(address: str, path: Path, limit: int) -> None:
    """Download a file as it is stored, of at most `limit` bytes."""
    import requests

    if sys.stderr.isatty():
        print(f"fetching {address}", file=sys.stderr)
    try:
        with requests.get(
            address,
            stream=True,
            timeout=(CONNECT_SECONDS, SILENT_SECONDS),
            headers={"Accept-Encoding": "identity"},  # else a .gz might arrive unpacked
            hooks={"response": _refuse_unsafe_redirect},
        ) as answer:
            answer.raise_for_status()
            _write(answer, path, limit)
    except requests.HTTPError as error:
        refusal: Any = error.response  # always there
        raise NotServedError(f"{refusal.status_code} {refusal.reason}") from error
    except requests.RequestException as error:
        raise UnreachableError("no connection") from error


def _refuse_unsafe_redirect(answer: Any, **_: object) -> None:
    """Refuse to follow a redirect to http; requests calls this with every answer."""
    target = urljoin(answer.url, answer.headers.get("location", ""))
    if not is_safe(target):
        answer.close()
        raise InputError(f"{answer.url} redirects to {target}, not https; use another address")


def _write(answer: Any, path: Path, limit: int) -> None:
    n_bytes = 0
    with path.open("wb") as file:
        for chunk in answer.iter_content(_CHUNK):
            n_bytes += len(chunk)
            if n_bytes > limit:
                raise InputError(f"the file has more than {limit:,} bytes, as the card allows")
            file.write(chunk)
