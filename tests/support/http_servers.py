"""Small HTTP servers of the tests, in this process."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import HTTPServer

_POLL = 0.05
"""Seconds between two looks at whether the server is to stop: by default half a second, which each test would wait."""


@contextmanager
def serving(server: HTTPServer) -> Iterator[None]:
    """The server takes requests inside of this, in a thread; at the end it is closed."""
    thread = threading.Thread(target=server.serve_forever, args=(_POLL,), daemon=True)
    thread.start()
    try:
        yield
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
