"""A browser, a service's status, and the server that shows it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from selenium.webdriver import Chrome
from tests.support.browser import DESKTOP, prefer, running_browser, size
from tests.support.page import errors

from distributary.observe import http_server
from distributary.observe.status import ServiceStatus


@pytest.fixture(scope="module")
def chromium() -> Iterator[Chrome]:
    with running_browser() as browser:
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
