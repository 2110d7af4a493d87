"""A separate cache for every test, and a loopback server."""

import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest


@pytest.fixture(autouse=True)
def cache(cache):
    return cache


@pytest.fixture
def server():
    """A loopback server.

    ``serve(path, answer)``, a body, or status, headers and body.
    """

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self):
            server.encoding = self.headers["Accept-Encoding"]
            server.asked.append(self.path)
            status, headers, body = answers.get(self.path, (404, {}, b""))
            self.send_response(status)
            for name, value in {"Content-Length": str(len(body)), **headers}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_):
            pass

    def serve(path, answer):
        answers[path] = answer if isinstance(answer, tuple) else (200, {}, answer)

    answers = {}
    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        server.serve = serve
        server.asked = []  # paths, in order
        server.address = f"http://127.0.0.1:{server.server_address[1]}"
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        yield server
        server.shutdown()
