"""A real Chromium without a window, for tests of the status page."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager

from selenium.webdriver import Chrome, ChromeOptions, ChromeService

DESKTOP = (1360, 820)
PHONE = (390, 844)


@contextmanager
def running_browser() -> Iterator[Chrome]:
    """Chromium and its driver as the system has them; CHROMIUM and CHROMEDRIVER name others."""
    options = ChromeOptions()
    options.binary_location = _program("CHROMIUM", "chromium", "chromium-browser", "google-chrome")
    # No sandbox: CI runs as root. No shared memory: containers have little of it.
    for argument in ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--hide-scrollbars"):
        options.add_argument(argument)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    browser = Chrome(options=options, service=ChromeService(_program("CHROMEDRIVER", "chromedriver")))
    try:
        yield browser
    finally:
        browser.quit()


def _program(variable: str, *names: str) -> str:
    found = os.environ.get(variable) or next(filter(None, map(shutil.which, names)), None)
    assert found is not None, f"none of {', '.join(names)} is installed, and {variable} is not set"
    return found


def size(browser: Chrome, width: int, height: int) -> None:
    """Sets the size of the page's view; below 600 pixels it is a phone's."""
    metrics = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 600}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)


def prefer(browser: Chrome, scheme: str) -> None:
    """`light` or `dark`, as the person has set it for the whole system."""
    features = [{"name": "prefers-color-scheme", "value": scheme}]
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})
