"""A separate cache for every test, and a loopback server."""

import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest


@pytest.fixture(autouse=True)
def cache(cache):
    return cache


@dataclass(frozen=True)
class Answer:
    """What a server answers; the length of the body is a header unless given."""

    body: bytes = b""
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)


NOT_FOUND = Answer(status=404)


@pytest.fixture
def server():
    """A loopback server: ``serve(path, body, status, headers)`` sets an answer.

    The attribute `asked` lists the paths of the requests, in order; `encoding` is what
    the last request accepts.
    """
    answers = {}

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self):
            server.encoding = self.headers["Accept-Encoding"]
            server.asked.append(self.path)
            answer = answers.get(self.path, NOT_FOUND)
            headers = {"Content-Length": str(len(answer.body)), **answer.headers}
            self.send_response(answer.status)
            for name, value in headers.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(answer.body)

        def log_message(self, *_):
            pass

    def serve(path, body=b"", **options):
        answers[path] = Answer(body, **options)

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        server.serve = serve
        server.asked = []
        server.address = f"http://127.0.0.1:{server.server_address[1]}"
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        yield server
        server.shutdown()
