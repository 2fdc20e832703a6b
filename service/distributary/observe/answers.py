"""The answers of the HTTP server: its pages, and who may see them."""

from __future__ import annotations

import base64
import binascii
import hmac
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from http import HTTPStatus
from ipaddress import ip_address

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4

from distributary.observe.error_page import error_page
from distributary.observe.page import Page, page
from distributary.observe.status import ServiceStatus

PLAIN_TEXT = "text/plain; charset=utf-8"
JSON = "application/json; charset=utf-8"
HTML = "text/html; charset=utf-8"
INDEX = "distributary: / /livez /readyz /status /tables /tables/NAME /errors /history /metrics\n"
TABLES = "/tables/"
_FOR_PROBES = ("/livez", "/readyz")
"""Answered without a token, because kubelet has none. These pages only show whether the service is alive."""
# Headers of every answer. Only the page itself may load or run anything, see page().
HEADERS = {
    "Cache-Control": "no-store",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'",
}


@dataclass(frozen=True)
class Answer:
    """An answer, with the headers that it has beside HEADERS."""

    body: bytes
    content_type: str = PLAIN_TEXT
    status: HTTPStatus = HTTPStatus.OK
    headers: Mapping[str, str] = field(default_factory=dict)

    def all_headers(self) -> list[tuple[str, str]]:
        """Every header that it is sent with."""
        headers = {"Content-Type": self.content_type, "Content-Length": str(len(self.body)), **HEADERS, **self.headers}
        return list(headers.items())


@dataclass(frozen=True)
class Request:
    """A request: `path` without its query, `host` and `authorization` as the headers have them, or empty."""

    method: str
    path: str
    host: str = ""
    authorization: str = ""


class Access:
    """Who may see the pages.

    `names` are the allowed host names in requests, beside `localhost` and bare addresses: any other name may be that of
    a site which makes a browser read from this server (DNS rebinding). `*` allows all. With a `token` all paths but the
    probes require it, as a bearer token or, for browsers, as the password of any user.
    """

    def __init__(self, names: Sequence[str] = (), token: str | None = None) -> None:
        self._names = {"localhost", *(name.lower().rstrip(".") for name in names)}
        self._token = token

    def refused(self, request: Request) -> Answer | None:
        """The answer to who may not see the page; None to all others."""
        if not self._is_known(request.host):
            text = "this server does not know itself by that name: ask by its address, or add the name to http.names\n"
            return Answer(text.encode(), status=HTTPStatus.MISDIRECTED_REQUEST)
        if self._token is None or request.path in _FOR_PROBES or self._has_token(request.authorization, self._token):
            return None
        text = "this page asks for the token of http.token: as a bearer token, or as the password of any user\n"
        challenge = {"WWW-Authenticate": 'Basic realm="distributary", charset="UTF-8"'}
        return Answer(text.encode(), status=HTTPStatus.UNAUTHORIZED, headers=challenge)

    def _is_known(self, host: str) -> bool:
        name = _without_port(host.strip().lower())
        return not name or "*" in self._names or name.rstrip(".") in self._names or _is_address(name)

    @staticmethod
    def _has_token(authorization: str, token: str) -> bool:
        scheme, _, given = authorization.partition(" ")
        if scheme.lower() == "basic":
            try:
                _, _, given = base64.b64decode(given, validate=True).decode().partition(":")
            except (binascii.Error, ValueError):
                return False
        elif scheme.lower() != "bearer":
            return False
        return hmac.compare_digest(given.strip().encode(), token.encode())


class Answers:
    """The answers of all paths, for clients that may see them."""

    def __init__(
        self, status: ServiceStatus, max_silence_seconds: float, registry: CollectorRegistry, access: Access
    ) -> None:
        self._status = status
        self._max_silence_seconds = max_silence_seconds
        self._access = access
        self._pages: dict[str, Callable[[], Answer]] = {
            "/": lambda: _html(page()),
            "/errors": lambda: _html(error_page()),
            "/livez": self._livez,
            "/readyz": self._readyz,
            "/status": lambda: _json(status.snapshot()),
            "/tables": lambda: _json(status.overview(), indent=None),
            "/history": lambda: _json(status.history.as_json(), indent=None),
            "/metrics": lambda: Answer(generate_latest(registry), CONTENT_TYPE_PLAIN_0_0_4),
        }

    def answer(self, request: Request) -> Answer:
        """The answer to any request. Requests can't change anything."""
        refused = self._access.refused(request)
        if refused is not None:
            return refused
        if request.method not in ("GET", "HEAD"):
            text = b"only GET and HEAD: nothing can be changed here\n"
            return Answer(text, status=HTTPStatus.METHOD_NOT_ALLOWED, headers={"Allow": "GET, HEAD"})
        if request.path.startswith(TABLES):
            return self._table(request.path[len(TABLES) :])
        make_answer = self._pages.get(request.path)
        if make_answer is None:
            return Answer(f"there is no such page\n{INDEX}".encode(), status=HTTPStatus.NOT_FOUND)
        return make_answer()

    def _table(self, name: str) -> Answer:
        table = self._status.table_as_json(name)
        if table is None:
            text = b"there is no such table: /status names all of them\n"
            return Answer(text, status=HTTPStatus.NOT_FOUND)
        return _json(table)

    def _livez(self) -> Answer:
        if self._status.live(self._max_silence_seconds):
            return Answer(b"live\n")
        silence = self._status.seconds_since_beat()
        text = f"the service's loop has not run for {silence:.0f} s (limit {self._max_silence_seconds:g} s)\n"
        return Answer(text.encode(), status=HTTPStatus.SERVICE_UNAVAILABLE)

    def _readyz(self) -> Answer:
        if self._status.ready:
            return Answer(b"ready\n")
        return Answer(b"the service is starting\n", status=HTTPStatus.SERVICE_UNAVAILABLE)


def _html(page: Page) -> Answer:
    return Answer(page.body, HTML, headers={"Content-Security-Policy": page.policy})


def _json(value: object, indent: int | None = 2) -> Answer:
    return Answer(f"{json.dumps(value, indent=indent, ensure_ascii=False)}\n".encode(), JSON)


def _without_port(host: str) -> str:
    if host.startswith("["):
        return host[1:].partition("]")[0]
    return host.partition(":")[0]


def _is_address(name: str) -> bool:
    try:
        ip_address(name)
    except ValueError:
        return False
    return True
