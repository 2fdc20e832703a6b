"""A proxy in front of a real HTTP server: with TLS, with a login, or closed."""

from __future__ import annotations

import ssl
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from tests.support.http_servers import serving


@dataclass
class Gate:
    """`expected`: the header Authorization that requests must have. `shut`: every request is answered as if the server
    were down."""

    target: str
    expected: str | None = None
    shut: bool = False
    asked: int = 0
    port: int = 0

    def handler(self) -> type[BaseHTTPRequestHandler]:
        """Passes allowed requests on."""
        gate = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                gate.asked += 1
                if gate.shut:
                    self._answer(503, b"{}")
                elif gate.expected is not None and self.headers.get("Authorization") != gate.expected:
                    self._answer(401, b"{}")
                else:
                    self._answer(*gate.passed_on(self.path))

            def _answer(self, status: int, body: bytes) -> None:
                self.send_response(status)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the name it has there
                """Logs nothing."""

        return Handler

    def passed_on(self, path: str) -> tuple[int, bytes]:
        """The answer of the server behind it."""
        try:
            with urllib.request.urlopen(self.target + path, timeout=30) as answer:
                return answer.status, answer.read()
        except urllib.error.HTTPError as error:
            return error.code, error.read()


@contextmanager
def standing(gate: Gate, tls: ssl.SSLContext | None = None) -> Iterator[Gate]:
    """The proxy while it serves requests on `port`."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), gate.handler())
    if tls is not None:
        server.socket = tls.wrap_socket(server.socket, server_side=True)
    gate.port = server.server_address[1]
    with serving(server):
        yield gate
