"""The read-only HTTP server for probes, dashboards and operators.

`/` is the page for people, which asks `/status` and `/history` again and again; `/livez` and `/readyz` are for
Kubernetes, `/metrics` for Prometheus. Nothing can be changed through it and no user's data passes through it: table
names, counts, offsets and positions only.
"""

from __future__ import annotations

import errno
import json
import socket
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from socketserver import TCPServer
from typing import Any

import structlog
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4

from distributary.errors import UsageError
from distributary.operate.page import page
from distributary.operate.recorder import Recorder
from distributary.operate.status import ServiceStatus

logger = structlog.get_logger(__name__)

# A loop that waits for one large merge makes no turn meanwhile, and that takes minutes on a small machine: a shorter
# limit makes Kubernetes kill a service that works.
MAX_SILENCE_SECONDS = 600.0

PLAIN_TEXT = "text/plain; charset=utf-8"
JSON = "application/json; charset=utf-8"
HTML = "text/html; charset=utf-8"
INDEX = "distributary: / /livez /readyz /status /history /metrics\n"
# What every answer carries. Only the page itself may do more than nothing, see page().
HEADERS = {
    "Cache-Control": "no-store",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'",
}


class Server:
    """A running HTTP server; `stop` ends it and may be called twice."""

    def __init__(self, http: _HTTPServer) -> None:
        self._http = http
        # Asked often, so that stop() returns at once and not after half a second.
        self._thread = threading.Thread(target=http.serve_forever, args=(0.05,), name="http", daemon=True)
        self._thread.start()

    @property
    def host(self) -> str:
        return str(self._http.server_address[0])

    @property
    def port(self) -> int:
        """The port it really has, also where any free one was asked for."""
        return int(self._http.server_address[1])

    @property
    def url(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"http://{host}:{self.port}"

    def stop(self) -> None:
        if self._thread.is_alive():
            self._http.shutdown()
            self._thread.join()
        self._http.server_close()


def start(
    status: ServiceStatus,
    host: str = "127.0.0.1",
    port: int = 8080,
    max_silence_seconds: float = MAX_SILENCE_SECONDS,
    recorder: Recorder | None = None,
) -> Server:
    """Serve `status` on `host` and `port` (0: any free port) until the server is stopped.

    `recorder` counts what happens to the same tables, for /metrics; without one only what the status knows is there.
    `/livez` fails when the service's loop made no turn for `max_silence_seconds`.
    Raises UsageError: `http-port-taken`, or `http-address-unusable` where this machine can't listen on that address.
    """
    try:
        family, _, _, _, _ = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)[0]
        http = _HTTPServer(
            (host, port), family, _Pages(status, max_silence_seconds, (recorder or Recorder(status)).registry)
        )
    except OSError as error:
        raise _unusable(host, port, error) from error
    server = Server(http)
    logger.info("http server listens", url=server.url)
    return server


def _unusable(host: str, port: int, error: OSError) -> UsageError:
    if error.errno == errno.EADDRINUSE:
        return UsageError(
            "http-port-taken",
            f"port {port} on {host} is used by another process, the status pages can't be served there",
            "end the other process, or set http.port to another port (0: any free one), or http.enabled: false",
        )
    return UsageError(
        "http-address-unusable",
        f"can't listen on {host}, port {port}: {error.strerror or error}",
        "set http.host to an address of this machine (0.0.0.0: all of them) and http.port to 0 or 1024 to 65535",
    )


@dataclass(frozen=True)
class _Answer:
    body: bytes
    content_type: str = PLAIN_TEXT
    status: HTTPStatus = HTTPStatus.OK
    headers: Mapping[str, str] = field(default_factory=dict)


class _Pages:
    """What each path answers."""

    def __init__(self, status: ServiceStatus, max_silence_seconds: float, registry: CollectorRegistry) -> None:
        self._status = status
        self._max_silence_seconds = max_silence_seconds
        self._pages: dict[str, Callable[[], _Answer]] = {
            "/": self._page,
            "/livez": self._livez,
            "/readyz": self._readyz,
            "/status": lambda: _json(status.snapshot()),
            "/history": lambda: _json(status.history.as_json(), indent=None),
            "/metrics": lambda: _Answer(generate_latest(registry), CONTENT_TYPE_PLAIN_0_0_4),
        }

    def answer(self, path: str) -> _Answer:
        answer = self._pages.get(path.partition("?")[0])
        if answer is None:
            return _Answer(f"there is no such page\n{INDEX}".encode(), status=HTTPStatus.NOT_FOUND)
        return answer()

    @staticmethod
    def _page() -> _Answer:
        found = page()
        return _Answer(found.body, HTML, headers={"Content-Security-Policy": found.policy})

    def _livez(self) -> _Answer:
        if self._status.live(self._max_silence_seconds):
            return _Answer(b"live\n")
        silence = self._status.seconds_since_beat()
        text = f"the service's loop made no turn for {silence:.0f} s (limit {self._max_silence_seconds:g} s)\n"
        return _Answer(text.encode(), status=HTTPStatus.SERVICE_UNAVAILABLE)

    def _readyz(self) -> _Answer:
        if self._status.ready:
            return _Answer(b"ready\n")
        return _Answer(b"the service is starting\n", status=HTTPStatus.SERVICE_UNAVAILABLE)


def _json(value: object, indent: int | None = 2) -> _Answer:
    return _Answer(f"{json.dumps(value, indent=indent, ensure_ascii=False)}\n".encode(), JSON)


class _HTTPServer(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, address: tuple[str, int], family: int, pages: _Pages) -> None:
        self.address_family = socket.AddressFamily(family)
        self.pages = pages
        super().__init__(address, _Handler)

    def server_bind(self) -> None:
        # HTTPServer's own asks the DNS for this machine's full name, which takes many seconds where there is no DNS.
        TCPServer.server_bind(self)
        self.server_name, self.server_port = str(self.server_address[0]), int(self.server_address[1])

    def handle_error(self, request: Any, client_address: Any) -> None:  # noqa: ARG002
        logger.debug("http request failed", exc_info=True)


class _Handler(BaseHTTPRequestHandler):
    server: _HTTPServer
    server_version = "distributary"
    sys_version = ""
    timeout = 10  # seconds; else a client that connects and says nothing holds its thread for ever

    def do_GET(self) -> None:
        self._send(self.server.pages.answer(self.path))

    do_HEAD = do_GET  # noqa: N815 - the name that http.server asks for

    def _refuse(self) -> None:
        text = b"only GET and HEAD: nothing can be changed here\n"
        self._send(_Answer(text, status=HTTPStatus.METHOD_NOT_ALLOWED, headers={"Allow": "GET, HEAD"}))

    do_POST = do_PUT = do_PATCH = do_DELETE = do_OPTIONS = do_TRACE = do_CONNECT = _refuse  # noqa: N815

    def _send(self, answer: _Answer) -> None:
        self.send_response(answer.status)
        self.send_header("Content-Type", answer.content_type)
        self.send_header("Content-Length", str(len(answer.body)))
        for name, value in {**HEADERS, **answer.headers}.items():
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(answer.body)

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
        # Probes come every few seconds: they have no place in the log of a service.
        logger.debug("http request", line=format % args)
