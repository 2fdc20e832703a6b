"""An identity provider: gives signed tokens for a client's name and secret (OAuth's client credentials), over TLS."""

from __future__ import annotations

import base64
import json
import ssl
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import parse_qs

import trustme
from joserfc import jwt
from joserfc.jwk import KeySet, RSAKey
from tests.support.http_servers import serving

AUDIENCE = "kafka"
SCOPE = "read-changes"
_ALGORITHM = "RS256"
_SECONDS = 300
"""Seconds for which a token is valid."""


@dataclass(frozen=True)
class IdentityProvider:
    """`token_url` gives tokens to `client` with its `secret`; `keys` is the file with the keys that sign them. `served`
    has the User-Agent of each client that got a token."""

    token_url: str
    keys: Path
    served: list[str] = field(default_factory=list)


@contextmanager
def running_identity_provider(
    directory: Path, authority: trustme.CA, client: str, secret: str
) -> Iterator[IdentityProvider]:
    """A provider on this machine's loopback address; a token's subject is the client."""
    key = RSAKey.generate_key(2048, {"kid": "one", "use": "sig", "alg": _ALGORITHM})
    keys = directory / "jwks.json"
    keys.write_text(json.dumps(KeySet([key]).as_dict(private=False)), "utf-8")
    expected = base64.b64encode(f"{client}:{secret}".encode()).decode()
    served: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:  # the name is http.server's
            body = self.rfile.read(int(self.headers.get("Content-Length", 0))).decode()
            asked = {name: values[0] for name, values in parse_qs(body).items()}
            if self.headers.get("Authorization") != f"Basic {expected}":
                self._answer(401, {"error": "invalid_client"})
            elif asked != {"grant_type": "client_credentials", "scope": SCOPE}:
                self._answer(400, {"error": "invalid_request"})
            else:
                served.append(self.headers.get("User-Agent", ""))
                now = int(time.time())
                claims = {"sub": client, "aud": AUDIENCE, "scope": SCOPE, "iat": now, "exp": now + _SECONDS}
                token = jwt.encode({"alg": _ALGORITHM, "kid": "one"}, claims, key)
                self._answer(200, {"access_token": token, "token_type": "Bearer", "expires_in": _SECONDS})

        def _answer(self, status: int, body: dict[str, object]) -> None:
            content = json.dumps(body).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, *_: object) -> None:
            """Keeps requests out of the tests' output."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("127.0.0.1").configure_cert(context)
    server.socket = context.wrap_socket(server.socket, server_side=True)
    with serving(server):
        yield IdentityProvider(f"https://127.0.0.1:{server.server_address[1]}/token", keys, served)
