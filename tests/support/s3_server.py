"""moto's S3 server, with conditional writes one at a time, as in S3. moto checks whether a file exists and then writes
it, so that two writes at once would both succeed.

    python -m tests.support.s3_server PORT SECONDS

SECONDS: the delay of a request that commits to a Delta table.
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
    """The application with one conditional write at a time, and late commits."""
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
