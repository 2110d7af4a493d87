"""A failed download says which cause it had, in a sentence.

Local servers have each of them.
"""

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
OK = b"HTTP/1.1 200 OK\r\n"
PROXIES = ["http_proxy", "https_proxy", "all_proxy"]
BUNDLES = ["REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE"]


@pytest.fixture(autouse=True)
def plain_network(monkeypatch):
    """No proxy, and no patience."""
    for name in PROXIES:
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)
    for name in BUNDLES:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(module, "CONNECT_SECONDS", 0.5)
    monkeypatch.setattr(module, "SILENT_SECONDS", 0.5)


@pytest.fixture
def listen():
    """Return a function that lets a port behave.

    ``behave(connection)``, after the request.
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


def fail(address, path, kind=UnreachableError, *, says):
    with raises(kind, says) as caught:
        download(address, path, 10_000)
    return str(caught.value)


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


# --- servers ---


@dataclass(frozen=True)
class Behaviour:
    act: Callable
    says: str
    kind: type[Exception] = UnreachableError


def reset(connection):
    """Close with a reset in place of an ordinary end."""
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")


def stall(connection):
    connection.sendall(OK + b"Content-Length: 1000" + 2 * LINE + b"x" * 400)
    time.sleep(2)


def damage(connection):
    connection.sendall(
        OK + b"Content-Encoding: gzip" + LINE + b"Content-Length: 9" + 2 * LINE
    )
    connection.sendall(b"no gzip..")


def too_many(connection):
    connection.sendall(OK + b"Content-Length: 20000" + 2 * LINE + b"x" * 20_000)


def in_chunks(connection):
    connection.sendall(
        OK + b"Transfer-Encoding: chunked" + 2 * LINE + b"190\r\n" + b"x" * 400
    )


BEHAVIOURS = {
    "closes": Behaviour(lambda _: None, "closes without an answer"),
    "resets": Behaviour(reset, "closes without an answer"),
    "is silent": Behaviour(lambda _: time.sleep(2), "sends nothing 0.5 s"),
    "is no web server": Behaviour(
        lambda connection: connection.sendall(b"SSH-2.0-OpenSSH\r\n"), "web server"
    ),
    "ends half-way": Behaviour(
        lambda connection: connection.sendall(
            OK + b"Content-Length: 1000" + 2 * LINE + b"x" * 400
        ),
        "ended after 400 of 1,000 bytes",
        InputError,
    ),
    "ends in a chunk": Behaviour(in_chunks, "ended after 400 bytes", InputError),
    "stalls": Behaviour(stall, "ended after 400 of 1,000 bytes 0.5 s", InputError),
    "sends damaged gzip": Behaviour(damage, "damaged", InputError),
    "sends too much": Behaviour(too_many, "10,000 bytes", InputError),
    "forbids": Behaviour(
        lambda connection: connection.sendall(b"HTTP/1.1 403 Forbidden\r\n\r\n"),
        "403 Forbidden",
        NotServedError,
    ),
    "redirects to itself": Behaviour(
        lambda connection: connection.sendall(
            b"HTTP/1.1 302 Found\r\nLocation: /x\r\nConnection: close\r\n\r\n"
        ),
        "redirects without end",
        NotServedError,
    ),
}


@pytest.mark.promise("R16")
@pytest.mark.parametrize("name", BEHAVIOURS)
def test_a_server_that(listen, tmp_path, name):
    behaviour = BEHAVIOURS[name]
    port = listen(behaviour.act)
    with raises(behaviour.kind, behaviour.says):
        download(f"http://127.0.0.1:{port}/x", tmp_path / "x", 10_000)


def test_a_port_without_a_server(tmp_path):
    port = free_port()
    fail(f"http://127.0.0.1:{port}/x", tmp_path / "x", says=f"127.0.0.1:{port} refused")


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
        fail(
            f"http://127.0.0.1:{port}/x", tmp_path / "x", says=f"127.0.0.1:{port} 0.5 s"
        )
    for caller in waiting:
        caller.close()


def test_a_name_that_nobody_knows(tmp_path, monkeypatch):
    def unknown(*_, **__):
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

    monkeypatch.setattr(socket, "getaddrinfo", unknown)
    fail("https://exmaple.org/x", tmp_path / "x", says="exmaple.org name")


@pytest.mark.parametrize("address", ["https://[/x", "https:///x"])
def test_an_address_that_is_none(tmp_path, address):
    fail(address, tmp_path / "x", says="address valid")


# --- proxies ---


def test_a_proxy_without_a_server(tmp_path, monkeypatch):
    port = free_port()
    monkeypatch.setenv("HTTPS_PROXY", f"http://user:secret@127.0.0.1:{port}/")
    says = f"proxy 127.0.0.1:{port} refused HTTPS_PROXY"
    assert "secret" not in fail("https://example.org/x", tmp_path / "x", says=says)


def test_a_proxy_that_nobody_knows(tmp_path, monkeypatch):
    def unknown(*_, **__):
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

    monkeypatch.setattr(socket, "getaddrinfo", unknown)
    monkeypatch.setenv("https_proxy", "http://proxy.invalid:3128")
    fail(
        "https://example.org/x",
        tmp_path / "x",
        says="proxy.invalid:3128 not known HTTPS_PROXY",
    )


def test_a_proxy_that_asks_for_a_password(tmp_path, monkeypatch, listen):
    refusal = b"HTTP/1.1 407 Proxy Authentication Required\r\n\r\n"
    port = listen(lambda connection: connection.sendall(refusal))
    monkeypatch.setenv("HTTPS_PROXY", f"http://127.0.0.1:{port}")
    says = f"proxy 127.0.0.1:{port} 407 Authentication HTTPS_PROXY"
    fail("https://example.org/x", tmp_path / "x", says=says)


def test_a_silent_proxy(tmp_path, monkeypatch, listen):
    port = listen(lambda _: time.sleep(2))
    monkeypatch.setenv("HTTPS_PROXY", f"127.0.0.1:{port}")
    says = f"example.org proxy 127.0.0.1:{port} nothing"
    fail("https://example.org/x", tmp_path / "x", says=says)


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
        options = ["-subj", f"/CN={name}", "-addext", f"subjectAltName=DNS:{name}"]
        if not path.exists():
            key = ["-newkey", "rsa:2048", "-nodes", "-keyout", path.with_suffix(".key")]
            command = [
                "openssl",
                "req",
                "-x509",
                "-days",
                "2",
                *key,
                "-out",
                path,
                *options,
            ]
            subprocess.run(command, check=True, capture_output=True)
        return path

    return make


def context_of(certificate):
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, certificate.with_suffix(".key"))
    return context


def send_five_bytes(connection):
    connection.sendall(OK + b"Content-Length: 5" + 2 * LINE + b"bytes")


def test_a_certificate_that_is_not_trusted(tmp_path, monkeypatch, listen, certificate):
    """The advice of the sentence helps."""
    port = listen(send_five_bytes, context_of(certificate("localhost")))
    address = f"https://localhost:{port}/x"
    fail(
        address,
        tmp_path / "x",
        says=f"certificate localhost:{port} trusted REQUESTS_CA_BUNDLE",
    )
    monkeypatch.setenv("REQUESTS_CA_BUNDLE", str(certificate("localhost")))
    download(address, tmp_path / "x", 5)
    assert (tmp_path / "x").read_bytes() == b"bytes"


def test_a_certificate_of_another_name(tmp_path, monkeypatch, listen, certificate):
    other = certificate("example.org")
    port = listen(send_five_bytes, context_of(other))
    monkeypatch.setenv("REQUESTS_CA_BUNDLE", str(other))
    fail(
        f"https://localhost:{port}/x",
        tmp_path / "x",
        says=f"localhost:{port} certificate valid",
    )


def test_a_bundle_of_certificates_that_is_missing(tmp_path, monkeypatch):
    monkeypatch.setenv("REQUESTS_CA_BUNDLE", str(tmp_path / "none.pem"))
    says = f"{tmp_path / 'none.pem'} REQUESTS_CA_BUNDLE"
    fail("https://localhost:9/x", tmp_path / "x", InputError, says=says)


def test_a_bundle_without_certificates(tmp_path, monkeypatch, listen, certificate):
    port = listen(send_five_bytes, context_of(certificate("localhost")))
    (tmp_path / "bundle.pem").write_text("no certificate")
    monkeypatch.setenv("REQUESTS_CA_BUNDLE", str(tmp_path / "bundle.pem"))
    fail(
        f"https://localhost:{port}/x",
        tmp_path / "x",
        InputError,
        says="REQUESTS_CA_BUNDLE",
    )


def test_a_server_without_tls(tmp_path, listen):
    port = listen(send_five_bytes)
    fail(f"https://localhost:{port}/x", tmp_path / "x", says=f"localhost:{port} secure")


# --- from the command line ---


@pytest.mark.promise("R16")
def test_the_command_names_the_cause(cache, listen, add_card):
    half = OK + b"Content-Length: 650" + 2 * LINE + b"x" * 300
    port = listen(lambda connection: connection.sendall(half))
    add_card(make_card())
    done = invoke("data", "fetch", "toy", "--mirror", f"http://127.0.0.1:{port}")
    assert done.exit_code == 3
    (line,) = done.stderr.splitlines()
    names(line, f"http://127.0.0.1:{port}/toys/toy.svm ended 300 of 650 bytes")


def test_an_unreachable_mirror_is_asked_once(cache, listen):
    asked = []
    port = listen(asked.append)
    with raises(DataUnavailableError, "closes"):
        fetch(make_card(), f"http://127.0.0.1:{port}")
    assert len(asked) == 1
