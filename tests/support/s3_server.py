"""moto's S3 server, with conditional writes as S3 makes them: alone. moto looks whether a file is there and then writes
it, so that two of them at once would both succeed.

    python -m tests.support.s3_server PORT SECONDS

SECONDS: how long the request for a commit of a Delta table is on its way.
"""

from __future__ import annotations

import re
import sys
import threading
import time
from collections.abc import Callable, Iterable
from typing import Any

from moto.moto_server.werkzeug_app import DomainDispatcherApplication, create_backend_app
from werkzeug.serving import run_simple

_COMMIT = re.compile(r"/_delta_log/\d+\.json$")
Application = Callable[[dict[str, Any], Any], Iterable[bytes]]


def one_by_one(application: Application, seconds: float) -> Application:
    """The application, where a conditional write happens alone, and commits arrive late."""
    lock = threading.Lock()

    def answer(environment: dict[str, Any], start: Any) -> Iterable[bytes]:
        if environment["REQUEST_METHOD"] == "PUT" and _COMMIT.search(environment["PATH_INFO"]):
            time.sleep(seconds)
        if "HTTP_IF_NONE_MATCH" not in environment:
            return application(environment, start)
        with lock:
            return list(application(environment, start))

    return answer


if __name__ == "__main__":
    application = one_by_one(DomainDispatcherApplication(create_backend_app), float(sys.argv[2]))
    run_simple("127.0.0.1", int(sys.argv[1]), application, threaded=True)
