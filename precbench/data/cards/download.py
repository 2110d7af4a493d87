"""Downloads of bounded size.

The error of one that fails names the cause and what to do.
"""

import contextlib
import http.client
import re
import socket
import ssl
import sys
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import urljoin

from precbench.core.errors import InputError

CONNECT_SECONDS = 10.0
SILENT_SECONDS = 60.0  # between two packets
_SAFE = r"https://|http://(localhost|127\.0\.0\.1|\[::1\])(:\d+)?(/|$)"
_CHUNK = 1 << 14
# Codes of OpenSSL for a certificate that nobody vouches for who is trusted here
_UNTRUSTED = {2, 18, 19, 20, 21}

_Error = TypeVar("_Error", bound=BaseException)


class NotServedError(InputError):
    """A server answers, but does not give the file."""


class UnreachableError(InputError):
    """A server does not answer.

    Asking it for another file would fail in the same way.
    """


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
    except requests.TooManyRedirects as error:
        raise NotServedError("it redirects without end") from error
    except requests.RequestException as error:
        raise UnreachableError(_why_unreachable(error, address)) from error
    except OSError as error:
        if error.errno is not None:
            raise  # of the disk
        raise InputError(
            f"{error}; check REQUESTS_CA_BUNDLE and CURL_CA_BUNDLE"
        ) from error


def _refuse_unsafe_redirect(answer: Any, **_: object) -> None:
    """Refuse to follow a redirect to http; requests calls this with every answer."""
    target = answer.headers.get("location", "")
    with contextlib.suppress(ValueError):  # "http://[" is no address, thus not safe
        target = urljoin(answer.url, target)
    if not is_safe(target):
        answer.close()
        raise InputError(
            f"{answer.url} redirects to {target}, not https; use another address"
        )


def _write(answer: Any, path: Path, limit: int) -> None:
    """Write the body of an answer to a file."""
    import urllib3

    n_bytes = 0
    with path.open("wb") as file:
        try:
            # `read1` returns what is there, so that no byte is lost when no more comes.
            while chunk := answer.raw.read1(_CHUNK, decode_content=True):
                n_bytes += len(chunk)
                if n_bytes > limit:
                    raise InputError(
                        f"the file has more than {limit:,} bytes, which the card does"
                        " not allow"
                    )
                file.write(chunk)
        except urllib3.exceptions.HTTPError as error:
            raise InputError(_why_cut(error, answer)) from error


def _why_cut(error: Exception, answer: Any) -> str:
    """Say where a transfer ended."""
    import urllib3

    so_far = f"{answer.raw.tell():,} bytes"  # as transferred, which may be compressed
    length = answer.headers.get("content-length", "")
    if length.isascii() and length.isdigit():
        so_far = f"{answer.raw.tell():,} of {int(length):,} bytes"
    if isinstance(error, urllib3.exceptions.DecodeError):
        return f"what came is damaged after {so_far}; try again"
    if isinstance(error, urllib3.exceptions.ReadTimeoutError):
        return (
            f"the transfer ended after {so_far}: nothing more came for"
            f" {SILENT_SECONDS:g} s"
        )
    return f"the transfer ended after {so_far}; try again"


def _why_unreachable(error: Any, address: str) -> str:
    """Say why there is no answer."""
    import requests
    import urllib3

    if isinstance(error, requests.exceptions.InvalidURL):
        return f"the address, or that of a proxy, is not valid ({error})"
    url = error.request.url if error.request is not None else None
    url = url or address  # that of the last redirect, if any
    server = url.split("/")[2].rpartition("@")[2]  # without a password
    has_no_connection = _cause(error, urllib3.exceptions.NewConnectionError)
    if proxy := _proxy(url):
        if has_no_connection or isinstance(error, requests.exceptions.ProxyError):
            return _why_no_proxy(error, f"the proxy {proxy}")
        server = f"{server} (through the proxy {proxy})"
    if isinstance(error, requests.exceptions.SSLError):
        return _why_not_secure(error, server)
    if isinstance(error, requests.ReadTimeout):
        return f"{server} sends nothing for {SILENT_SECONDS:g} s; try again later"
    if isinstance(error, requests.ConnectTimeout):
        return f"{server} does not answer within {CONNECT_SECONDS:g} s; try again later"
    if _cause(error, socket.gaierror):
        return f"the name {server} is not known; check the address and the network"
    if has_no_connection:
        return f"no connection to {server} ({_reason(error)})"
    if _cause(error, ConnectionError):
        return f"{server} closes the connection without an answer; try again later"
    if _cause(error, http.client.HTTPException):
        return f"the answer of {server} is not that of a web server"
    return f"no connection to {server} ({error})"


def _why_no_proxy(error: Exception, proxy: str) -> str:
    if _cause(error, ssl.SSLError):
        return _why_not_secure(error, proxy)
    reason = _reason(error)
    _, is_refusal, refusal = reason.partition("Tunnel connection failed: ")
    if is_refusal:
        return f"{proxy} refuses the connection ({refusal}); check HTTPS_PROXY"
    return f"{proxy} does not answer ({reason}); check HTTPS_PROXY"


def _why_not_secure(error: Exception, server: str) -> str:
    """Say what is wrong with a server's certificate, or with those to compare it."""
    reason = _reason(error)
    certificate = _cause(error, ssl.SSLCertVerificationError)
    if certificate is None:
        if "NO_CERTIFICATE_OR_CRL_FOUND" in reason:
            return (
                "the file that REQUESTS_CA_BUNDLE or CURL_CA_BUNDLE names holds no"
                " certificate"
            )
        return f"{server} makes no secure connection ({reason})"
    if certificate.verify_code not in _UNTRUSTED:
        return (
            f"the certificate of {server} is not valid ({certificate.verify_message})"
        )
    return (
        f"the certificate of {server} is not trusted ({certificate.verify_message});"
        " where a proxy of your organisation signs connections, name the file with its"
        " certificates in REQUESTS_CA_BUNDLE"
    )


def _proxy(url: str) -> str:
    """Return host and port of the proxy for an address, "" without one."""
    import requests

    proxies = requests.utils.get_environ_proxies(url)
    address = requests.utils.select_proxy(url, proxies) or ""
    # without a password
    return address.rpartition("://")[2].rpartition("@")[2].rstrip("/")


def _reason(error: BaseException) -> str:
    """Return the words of the operating system for a failure."""
    cause = _cause(error, OSError)
    return str(error) if cause is None else cause.strerror or str(cause)


def _cause(error: BaseException, kind: type[_Error]) -> _Error | None:
    """Return the innermost error of a kind among those that led to an error."""
    cause = None
    link: BaseException | None = error
    while link is not None:
        if isinstance(link, kind):
            cause = link
        link = link.__cause__ or link.__context__
    return cause
