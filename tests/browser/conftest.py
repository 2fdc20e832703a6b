"""A browser, a service's status, and the server that shows it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from selenium.webdriver import Chrome
from tests.support.browser import DESKTOP, prefer, running_browser, size
from tests.support.page import errors

from distributary.observe import http_server
from distributary.observe.status import ServiceStatus

_SHORTER_PAUSES = "const ours = setTimeout; setTimeout = (act, pause, ...more) => ours(act, pause / 4, ...more);"
"""The page asks the service every three seconds, and half of the tests' time was spent waiting for that."""


@pytest.fixture(scope="session")
def chromium() -> Iterator[Chrome]:
    with running_browser() as browser:
        browser.execute_cdp_cmd("Page.addScriptToEvaluateOnNewDocument", {"source": _SHORTER_PAUSES})
        yield browser


@pytest.fixture
def browser(chromium: Chrome) -> Iterator[Chrome]:
    size(chromium, *DESKTOP)
    prefer(chromium, "light")
    errors(chromium)  # what another test left
    yield chromium
    chromium.get("about:blank")


@pytest.fixture
def status() -> ServiceStatus:
    status = ServiceStatus()
    status.mark_ready()
    return status


@pytest.fixture
def server(status: ServiceStatus) -> Iterator[http_server.Server]:
    server = http_server.start(status, port=0)
    yield server
    server.stop()
