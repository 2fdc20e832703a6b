"""Small HTTP servers of the tests, in this process."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import HTTPServer

_POLL = 0.05
"""Seconds between two checks whether the server must stop: the default is half a second, which each test would wait."""


@contextmanager
def serving(server: HTTPServer) -> Iterator[None]:
    """Serves requests in a thread inside the block; closed at its end."""
    thread = threading.Thread(target=server.serve_forever, args=(_POLL,), daemon=True)
    thread.start()
    try:
        yield
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
