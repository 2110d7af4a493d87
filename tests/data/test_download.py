"""A failed download says its cause in a sentence; local servers have each cause."""

import shutil
import socket
import ssl
import subprocess
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass

import pytest

from precbench.core.errors import DataUnavailableError, InputError
from precbench.data.cards import download as module
from precbench.data.cards.download import NotServedError, UnreachableError, download
from precbench.data.cards.fetch import fetch
from tests.helpers import invoke, make_card
from tests.sentences import names, raises

LINE = b"\r\n"
OK = b"HTTP/1.1 200 OK"
PROXIES = ["http_proxy", "https_proxy", "all_proxy"]
BUNDLES = ["REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE"]


@pytest.fixture(autouse=True)
def plain_network(monkeypatch):
    """No proxy, no bundle of certificates, and no patience."""
    for name in PROXIES:
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)
    for name in BUNDLES:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(module, "CONNECT_SECONDS", 0.5)
    monkeypatch.setattr(module, "SILENT_SECONDS", 0.5)


@pytest.fixture
def listen():
    """Return a function that lets a port behave, and returns its number.

    ``behave(connection)`` is called after the request.
    """
    sockets = []

    def start(behave, context=None):
        listener = socket.socket()
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        sockets.append(listener)
        threading.Thread(
            target=answer, args=(listener, behave, context), daemon=True
        ).start()
        return listener.getsockname()[1]

    yield start
    for listener in sockets:
        listener.shutdown(socket.SHUT_RDWR)
        listener.close()


def answer(listener, behave, context):
    while True:
        try:
            connection, _ = listener.accept()
        except OSError:  # the test is over
            return
        with connection:
            try:
                if context is not None:
                    connection = context.wrap_socket(connection, server_side=True)
                connection.recv(10_000)
                behave(connection)
                connection.close()
            except OSError:  # the other end has left
                pass


def require_failure(address, path, words, kind=UnreachableError):
    """See that a download fails with a sentence that has these words; return it."""
    with raises(kind, words) as caught:
        download(address, path, 10_000)
    return str(caught.value)


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


# --- servers ---


@dataclass(frozen=True)
class Behaviour:
    """What a server does with a connection, and the error that follows."""

    act: Callable[[socket.socket], None]
    words: str  # of the error
    kind: type[Exception] = UnreachableError


def close(connection):
    """Do nothing; then the connection is closed."""


def reset(connection):
    """Close with a reset in place of an ordinary end."""
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")


def be_silent(_connection):
    time.sleep(2)


def send(*lines, body=b""):
    """Return a behaviour: the lines of an answer, an empty line, and the body."""
    content = LINE.join([*lines, b"", body])
    return lambda connection: connection.sendall(content)


def stall(connection):
    """Send 400 of 1,000 bytes, and nothing more."""
    send(OK, b"Content-Length: 1000", body=b"x" * 400)(connection)
    time.sleep(2)


BEHAVIOURS = {
    "closes": Behaviour(close, words="closes without an answer"),
    "resets": Behaviour(reset, words="closes without an answer"),
    "is silent": Behaviour(be_silent, words="sends nothing 0.5 s"),
    "is no web server": Behaviour(send(b"SSH-2.0-OpenSSH"), words="web server"),
    "ends half-way": Behaviour(
        send(OK, b"Content-Length: 1000", body=b"x" * 400),
        words="ended after 400 of 1,000 bytes",
        kind=InputError,
    ),
    "ends in a chunk": Behaviour(
        send(OK, b"Transfer-Encoding: chunked", body=b"190\r\n" + b"x" * 400),
        words="ended after 400 bytes",
        kind=InputError,
    ),
    "stalls": Behaviour(
        stall, words="ended after 400 of 1,000 bytes 0.5 s", kind=InputError
    ),
    "sends damaged gzip": Behaviour(
        send(OK, b"Content-Encoding: gzip", b"Content-Length: 9", body=b"no gzip.."),
        words="damaged",
        kind=InputError,
    ),
    "sends too much": Behaviour(
        send(OK, b"Content-Length: 20000", body=b"x" * 20_000),
        words="10,000 bytes",
        kind=InputError,
    ),
    "forbids": Behaviour(
        send(b"HTTP/1.1 403 Forbidden"), words="403 Forbidden", kind=NotServedError
    ),
    "redirects to itself": Behaviour(
        send(b"HTTP/1.1 302 Found", b"Location: /x", b"Connection: close"),
        words="redirects without end",
        kind=NotServedError,
    ),
}


@pytest.mark.promise("R16")
@pytest.mark.parametrize("case", BEHAVIOURS.values(), ids=BEHAVIOURS)
def test_a_server_that(listen, tmp_path, case):
    port = listen(case.act)
    require_failure(f"http://127.0.0.1:{port}/x", tmp_path / "x", case.words, case.kind)


def test_a_port_without_a_server(tmp_path):
    port = free_port()
    require_failure(
        f"http://127.0.0.1:{port}/x", tmp_path / "x", f"127.0.0.1:{port} refused"
    )


def test_a_server_that_never_accepts(tmp_path):
    """Linux does not answer once the queue of the port is full."""
    waiting = []
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen(0)
        port = listener.getsockname()[1]
        for _ in range(4):
            caller = socket.socket()
            caller.setblocking(False)
            caller.connect_ex(("127.0.0.1", port))
            waiting.append(caller)
        require_failure(
            f"http://127.0.0.1:{port}/x", tmp_path / "x", f"127.0.0.1:{port} 0.5 s"
        )
    for caller in waiting:
        caller.close()


@pytest.fixture
def no_names(monkeypatch):
    """No name of a server is known."""

    def unknown(*_, **__):
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

    monkeypatch.setattr(socket, "getaddrinfo", unknown)


def test_a_name_that_nobody_knows(tmp_path, no_names):
    require_failure("https://exmaple.org/x", tmp_path / "x", "exmaple.org name")


@pytest.mark.parametrize(
    "address",
    [
        pytest.param("https://[/x", id="a bracket"),
        pytest.param("https:///x", id="no server"),
    ],
)
def test_an_address_that_is_none(tmp_path, address):
    require_failure(address, tmp_path / "x", "address valid")


# --- proxies ---


def test_a_proxy_without_a_server(tmp_path, monkeypatch):
    port = free_port()
    monkeypatch.setenv("HTTPS_PROXY", f"http://user:secret@127.0.0.1:{port}/")
    words = f"proxy 127.0.0.1:{port} refused HTTPS_PROXY"
    sentence = require_failure("https://example.org/x", tmp_path / "x", words)
    assert "secret" not in sentence


def test_a_proxy_that_nobody_knows(tmp_path, monkeypatch, no_names):
    monkeypatch.setenv("https_proxy", "http://proxy.invalid:3128")
    words = "proxy.invalid:3128 not known HTTPS_PROXY"
    require_failure("https://example.org/x", tmp_path / "x", words)


def test_a_proxy_that_asks_for_a_password(tmp_path, monkeypatch, listen):
    port = listen(send(b"HTTP/1.1 407 Proxy Authentication Required"))
    monkeypatch.setenv("HTTPS_PROXY", f"http://127.0.0.1:{port}")
    words = f"proxy 127.0.0.1:{port} 407 Authentication HTTPS_PROXY"
    require_failure("https://example.org/x", tmp_path / "x", words)


def test_a_silent_proxy(tmp_path, monkeypatch, listen):
    port = listen(be_silent)
    monkeypatch.setenv("HTTPS_PROXY", f"127.0.0.1:{port}")
    words = f"example.org proxy 127.0.0.1:{port} nothing"
    require_failure("https://example.org/x", tmp_path / "x", words)


# --- certificates ---


@pytest.fixture(scope="module")
def certificate(tmp_path_factory):
    """Return a function that makes a certificate of this machine for a name, with its
    key.
    """
    if shutil.which("openssl") is None:
        pytest.skip("needs openssl, which makes certificates")
    folder = tmp_path_factory.mktemp("certificates")

    def make(name):
        path = folder / f"{name}.pem"
        if path.exists():
            return path
        key = ["-newkey", "rsa:2048", "-nodes", "-keyout", path.with_suffix(".key")]
        names = ["-subj", f"/CN={name}", "-addext", f"subjectAltName=DNS:{name}"]
        command = ["openssl", "req", "-x509", "-days", "2", *key, "-out", path, *names]
        subprocess.run(command, check=True, capture_output=True)
        return path

    return make


def context_of(certificate):
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, certificate.with_suffix(".key"))
    return context


send_five_bytes = send(OK, b"Content-Length: 5", body=b"bytes")


def test_a_certificate_is_trusted_once_the_bundle_names_it(
    tmp_path, monkeypatch, listen, certificate
):
    port = listen(send_five_bytes, context_of(certificate("localhost")))
    address = f"https://localhost:{port}/x"
    words = f"certificate localhost:{port} trusted REQUESTS_CA_BUNDLE"
    require_failure(address, tmp_path / "x", words)
    monkeypatch.setenv("REQUESTS_CA_BUNDLE", str(certificate("localhost")))
    download(address, tmp_path / "x", 5)
    assert (tmp_path / "x").read_bytes() == b"bytes"


def test_a_certificate_of_another_name(tmp_path, monkeypatch, listen, certificate):
    other = certificate("example.org")
    port = listen(send_five_bytes, context_of(other))
    monkeypatch.setenv("REQUESTS_CA_BUNDLE", str(other))
    words = f"localhost:{port} certificate valid"
    require_failure(f"https://localhost:{port}/x", tmp_path / "x", words)


def test_a_bundle_of_certificates_that_is_missing(tmp_path, monkeypatch):
    bundle = tmp_path / "none.pem"
    monkeypatch.setenv("REQUESTS_CA_BUNDLE", str(bundle))
    words = f"{bundle} REQUESTS_CA_BUNDLE"
    require_failure("https://localhost:9/x", tmp_path / "x", words, InputError)


def test_a_bundle_without_certificates(tmp_path, monkeypatch, listen, certificate):
    port = listen(send_five_bytes, context_of(certificate("localhost")))
    bundle = tmp_path / "bundle.pem"
    bundle.write_text("no certificate")
    monkeypatch.setenv("REQUESTS_CA_BUNDLE", str(bundle))
    address = f"https://localhost:{port}/x"
    require_failure(address, tmp_path / "x", "REQUESTS_CA_BUNDLE", InputError)


def test_a_server_without_tls(tmp_path, listen):
    port = listen(send_five_bytes)
    words = f"localhost:{port} secure"
    require_failure(f"https://localhost:{port}/x", tmp_path / "x", words)


# --- from the command line ---


@pytest.mark.promise("R16")
def test_the_command_names_the_cause(cache, listen, add_card):
    port = listen(send(OK, b"Content-Length: 650", body=b"x" * 300))
    add_card(make_card())
    result = invoke("data", "fetch", "toy", "--mirror", f"http://127.0.0.1:{port}")
    assert result.exit_code == 3
    [line] = result.stderr.splitlines()
    names(line, f"http://127.0.0.1:{port}/toys/toy.svm ended 300 of 650 bytes")


def test_an_unreachable_mirror_is_asked_once(cache, listen):
    connections = []
    port = listen(connections.append)
    with raises(DataUnavailableError, "closes"):
        fetch(make_card(), f"http://127.0.0.1:{port}")
    assert len(connections) == 1
