"""A proxy in front of an object store's HTTP API that makes chosen requests fail."""

from __future__ import annotations

import re
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from enum import Enum
from http.client import HTTPConnection, HTTPException
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import unquote, urlsplit

from tests.support.http_servers import serving

_CODES = {403: "AccessDenied", 500: "InternalError", 503: "SlowDown"}
# Of one connection alone: on the other side of the door there is another one.
_OF_A_CONNECTION = ("connection", "keep-alive", "expect", "transfer-encoding", "content-length")
_PATIENCE = 60.0  # seconds


class Deed(Enum):
    """The action on a request."""

    REFUSE = "answered with an error, and not passed on"
    CUT = "the connection ends, and nothing is passed on"
    LOSE_REPLY = "carried out, and the connection ends before the reply"
    DELAY = "passed on later"


@dataclass
class Fault:
    """An action on the first `times` requests whose method and decoded path, such as `PUT /bucket/a/b`, match the
    pattern `where`. `met` are the requests that it was applied to."""

    where: str
    does: Deed
    times: int = 1_000_000
    status: int = 503
    seconds: float = 0.0
    met: list[str] = field(default_factory=list)


class FaultyStore:
    """The proxy. Requests that match no fault are passed on unchanged."""

    def __init__(self, target: str) -> None:
        """`target`: the URL of the store behind it."""
        self.endpoint = ""
        self._target = str(urlsplit(target).netloc)
        self._faults: list[Fault] = []
        self._lock = threading.Lock()

    @contextmanager
    def failing(self, *faults: Fault) -> Iterator[None]:
        """Applies the faults inside the block; of two that match a request the first one counts."""
        with self._lock:
            self._faults += faults
        try:
            yield
        finally:
            with self._lock:
                self._faults = [fault for fault in self._faults if all(fault is not one for one in faults)]

    @contextmanager
    def standing(self) -> Iterator[FaultyStore]:
        """Serves requests inside the block, at `endpoint`."""
        server = _Server(("127.0.0.1", 0), _handler(self))
        self.endpoint = f"http://127.0.0.1:{server.server_address[1]}"
        with serving(server):
            yield self

    def fault_of(self, method: str, path: str) -> Fault | None:
        """The fault that matches a request; it is counted as met."""
        request = f"{method} {unquote(path)}"
        with self._lock:
            for fault in self._faults:
                if len(fault.met) < fault.times and re.search(fault.where, request):
                    fault.met.append(request)
                    return fault
        return None

    def carried_out(
        self, method: str, path: str, headers: list[tuple[str, str]], body: bytes
    ) -> tuple[int, str, list[tuple[str, str]], bytes]:
        """The store's answer: status, reason, headers, body."""
        store = HTTPConnection(self._target, timeout=_PATIENCE)
        try:
            store.putrequest(method, path, skip_host=True, skip_accept_encoding=True)
            for name, value in headers:
                if name.lower() not in _OF_A_CONNECTION:
                    store.putheader(name, value)
            store.putheader("Content-Length", str(len(body)))
            store.endheaders(body)
            answer = store.getresponse()
            return answer.status, answer.reason, answer.getheaders(), answer.read()
        finally:
            store.close()


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128

    def handle_error(self, *_: object) -> None:
        """Ignores clients that do not wait for an answer."""


def _handler(store: FaultyStore) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        wbufsize = -1  # an answer goes out in one piece
        disable_nagle_algorithm = True

        def do_GET(self) -> None:
            body = self._body()
            fault = store.fault_of(self.command, self.path)
            if fault is not None and fault.does is Deed.DELAY:
                time.sleep(fault.seconds)
            elif fault is not None and fault.does is Deed.REFUSE:
                self._refuse(fault.status)
                return
            elif fault is not None and fault.does is Deed.CUT:
                self._cut()
                return
            try:
                status, reason, headers, content = store.carried_out(
                    self.command, self.path, self.headers.items(), body
                )
            except (OSError, HTTPException):
                self._cut()
                return
            if fault is not None and fault.does is Deed.LOSE_REPLY:
                self._cut()
                return
            self._answer(status, reason, headers, content)

        do_HEAD = do_PUT = do_POST = do_DELETE = do_GET  # noqa: N815 - the names they have there

        def _body(self) -> bytes:
            if self.headers.get("Transfer-Encoding", "").lower() != "chunked":
                return self.rfile.read(int(self.headers.get("Content-Length") or 0))
            body = b""
            while size := int(self.rfile.readline().split(b";")[0], 16):
                body += self.rfile.read(size)
                self.rfile.readline()
            while self.rfile.readline().strip():
                pass
            return body

        def _refuse(self, status: int) -> None:
            text = f"<Error><Code>{_CODES[status]}</Code><Message>as the test wants it</Message></Error>"
            self._answer(status, _CODES[status], [("Content-Type", "application/xml")], text.encode())

        def _answer(self, status: int, reason: str, headers: list[tuple[str, str]], content: bytes) -> None:
            self.send_response_only(status, reason)
            length = str(len(content))
            for name, value in headers:
                if name.lower() == "content-length" and self.command == "HEAD":
                    length = value  # of what a GET would bring
                elif name.lower() not in _OF_A_CONNECTION:
                    self.send_header(name, value)
            if status != 204:
                self.send_header("Content-Length", length)
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(content)

        def _cut(self) -> None:
            self.close_connection = True
            with suppress(OSError):
                self.connection.shutdown(socket.SHUT_RDWR)

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the name it has there
            """Logs nothing."""

    return Handler
