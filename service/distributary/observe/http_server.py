"""The read-only HTTP server for probes, dashboards and operators.

`/` is the page for people, which asks `/tables`, `/history` and `/tables/NAME` again and again; `/livez` and `/readyz`
are for Kubernetes, `/metrics` for Prometheus. Nothing can be changed through it and no user's data passes through it:
names of tables and columns, counts, offsets and positions only.
"""

from __future__ import annotations

import errno
import socket
import threading
from collections.abc import Callable, Iterable
from typing import Any

import structlog
from waitress import wasyncore
from waitress.channel import HTTPChannel
from waitress.server import create_server

from distributary.errors import UsageError
from distributary.observe.answers import Access, Answers, Request
from distributary.observe.recorder import Recorder
from distributary.observe.status import ServiceStatus

logger = structlog.get_logger(__name__)

# The loop does not run while it waits for one large merge, which takes minutes on a small machine: a shorter
# limit makes Kubernetes kill a service that works.
MAX_SILENCE_SECONDS = 600.0
CLIENT_SECONDS = 10
"""How long a client may take to ask, from when it connects or was answered; then its connection is closed."""
_LIMITS = {
    # Each takes a part of the driver's processors: a page of many tables costs far more than a probe.
    "threads": 4,
    "connection_limit": 100,
    "channel_timeout": CLIENT_SECONDS,
    "cleanup_interval": 1,
    "max_request_header_size": 16_384,
    "max_request_body_size": 1,  # the least that waitress takes: no page has a use for a body
}


class Server:
    """A running HTTP server; `stop` ends it and may be called twice."""

    def __init__(self, wsgi: Any, sockets: dict[int, Any]) -> None:
        self._wsgi = wsgi
        self._sockets = sockets
        self.host, port = str(wsgi.effective_host), int(wsgi.effective_port)
        self.port = port
        """The real port, also if any free port was requested."""
        self._ending = threading.Event()
        self._thread = threading.Thread(target=self._serve, name="http", daemon=True)
        self._thread.start()

    @property
    def url(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"http://{host}:{self.port}"

    def stop(self) -> None:
        if self._ending.is_set():
            return
        self._ending.set()
        self._wsgi.pull_trigger()
        self._thread.join()
        # Opened here and not by the thread, which may end first: pull_trigger needs it open.
        wasyncore.close_all(self._sockets)

    def _serve(self) -> None:
        while not self._ending.is_set():
            wasyncore.loop(timeout=1.0, map=self._sockets, count=1)
        self._wsgi.task_dispatcher.shutdown()


def start(
    status: ServiceStatus,
    host: str = "127.0.0.1",
    port: int = 8080,
    max_silence_seconds: float = MAX_SILENCE_SECONDS,
    recorder: Recorder | None = None,
    access: Access | None = None,
) -> Server:
    """Serve `status` on `host` and `port` (0: any free port) until the server is stopped.

    `recorder` counts what happens to the same tables, for /metrics; without one only what the status knows is there.
    `/livez` fails if the service's loop has not run for `max_silence_seconds`. `access` defines who may see the pages;
    without it all clients that use an address or localhost. Raises UsageError: `http-port-taken`, or
    `http-address-unusable` where this machine can't listen on that address.
    """
    registry = (recorder or Recorder(status)).registry
    answers = Answers(status, max_silence_seconds, registry, access or Access((host,)))
    sockets: dict[int, Any] = {}
    try:
        listening = _listening(host, port)
        wsgi = create_server(_application(answers), map=sockets, sockets=[listening], ident="distributary", **_LIMITS)
    except OSError as error:
        raise _unusable(host, port, error) from error
    wsgi.channel_class = _Channel
    server = Server(wsgi, sockets)
    logger.info("http server listens", url=server.url)
    return server


def _listening(host: str, port: int) -> socket.socket:
    family, kind, protocol, _, address = socket.getaddrinfo(
        host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
    )[0]
    listening = socket.socket(family, kind, protocol)
    try:
        # Otherwise a port stays in use for a minute after a service that had clients.
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind(address)
        listening.listen()
    except OSError:
        listening.close()
        raise
    return listening


class _Channel(HTTPChannel):  # type: ignore[misc]
    """A connection. Bytes of an incomplete request do not keep it alive: otherwise a client that sends a byte now and
    then would hold its connection for ever, and a hundred such clients would block all others."""

    last_activity: float

    def handle_read(self) -> None:
        before = self.last_activity
        super().handle_read()
        if self.request is not None:
            self.last_activity = before


def _application(answers: Answers) -> Callable[[dict[str, Any], Callable[..., Any]], Iterable[bytes]]:
    """The pages as a WSGI application."""

    def application(environment: dict[str, Any], begin: Callable[..., Any]) -> Iterable[bytes]:
        request = Request(
            method=environment["REQUEST_METHOD"],
            path=_as_sent(environment["PATH_INFO"]),
            host=environment.get("HTTP_HOST", ""),
            authorization=environment.get("HTTP_AUTHORIZATION", ""),
        )
        answer = answers.answer(request)
        # Probes come every few seconds: they have no place in the log of a service.
        logger.debug("http request", method=request.method, path=request.path, status=int(answer.status))
        begin(f"{answer.status.value} {answer.status.phrase}", answer.all_headers())
        return [] if request.method == "HEAD" else [answer.body]

    return application


def _as_sent(path: str) -> str:
    """WSGI hands on the bytes of a path one by one, as Latin-1; they are UTF-8, or no page's."""
    return path.encode("latin-1").decode("utf-8", errors="replace")


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
