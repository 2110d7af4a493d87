"""Downloads of bounded size, whose errors name the cause and what to do."""

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
# Codes of OpenSSL for a certificate for which nobody vouches who is trusted here
_UNTRUSTED = {
    2,  # unable to get the issuer's certificate
    18,  # self-signed
    19,  # self-signed certificate in the chain
    20,  # unable to get the issuer's certificate on this machine
    21,  # unable to verify the first certificate
}

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
    # Without a redirect the target is the address of the answer itself, which is safe.
    target = answer.headers.get("location", "")
    with contextlib.suppress(ValueError):  # "http://[" stays, and is not safe
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
            # `read1` returns what has come. `read` would wait for a whole chunk, and
            # lose its beginning if the transfer ends before.
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

    n_bytes = answer.raw.tell()  # as transferred, which may be compressed
    so_far = f"{n_bytes:,} bytes"
    length = answer.headers.get("content-length", "")
    if length.isascii() and length.isdigit():
        so_far = f"{n_bytes:,} of {int(length):,} bytes"
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
    url = address
    if error.request is not None and error.request.url:
        url = error.request.url  # of the last redirect
    server = _host(url)
    proxy = _proxy(url)
    has_no_connection = _cause(error, urllib3.exceptions.NewConnectionError) is not None
    if proxy:
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
    """Say why a proxy gives no connection."""
    if _cause(error, ssl.SSLError):
        return _why_not_secure(error, proxy)
    reason = _reason(error)
    _, tunnel_failed, answer = reason.partition("Tunnel connection failed: ")
    if tunnel_failed:
        return f"{proxy} refuses the connection ({answer}); check HTTPS_PROXY"
    return f"{proxy} does not answer ({reason}); check HTTPS_PROXY"


def _why_not_secure(error: Exception, server: str) -> str:
    """Say what is wrong with a server's certificate, or with the user's bundle."""
    refused_certificate = _cause(error, ssl.SSLCertVerificationError)
    if refused_certificate is not None:
        fault = refused_certificate.verify_message
        if refused_certificate.verify_code in _UNTRUSTED:
            return (
                f"the certificate of {server} is not trusted ({fault});"
                " where a proxy of your organisation signs connections, name the file"
                " with its certificates in REQUESTS_CA_BUNDLE"
            )
        return f"the certificate of {server} is not valid ({fault})"
    reason = _reason(error)
    if "NO_CERTIFICATE_OR_CRL_FOUND" in reason:
        return (
            "the file that REQUESTS_CA_BUNDLE or CURL_CA_BUNDLE names holds no"
            " certificate"
        )
    return f"{server} makes no secure connection ({reason})"


def _proxy(url: str) -> str:
    """Return host and port of the proxy for an address, "" without one."""
    import requests

    proxies = requests.utils.get_environ_proxies(url)
    proxy = requests.utils.select_proxy(url, proxies)
    if proxy is None:
        return ""
    _, _, after_scheme = proxy.rpartition("://")
    return _without_password(after_scheme).rstrip("/")


def _host(url: str) -> str:
    """Return host and port of an address."""
    return _without_password(url.split("/")[2])


def _without_password(server: str) -> str:
    """Return host and port from ``user:password@host:port``."""
    _, _, host = server.rpartition("@")
    return host


def _reason(error: BaseException) -> str:
    """Return the words of the operating system for a failure."""
    cause = _cause(error, OSError)
    if cause is None:
        return str(error)
    return cause.strerror or str(cause)


def _cause(error: BaseException, kind: type[_Error]) -> _Error | None:
    """Return the innermost error of a kind among those that led to an error."""
    cause = None
    link: BaseException | None = error
    while link is not None:
        if isinstance(link, kind):
            cause = link
        link = link.__cause__ or link.__context__
    return cause
