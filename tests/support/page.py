"""The page under test: tables for it, and what a browser shows of it."""

from __future__ import annotations

import time
from typing import Any

from selenium.webdriver import Chrome
from selenium.webdriver.common.by import By
from selenium.webdriver.support.ui import WebDriverWait

from distributary.observe.status import ServiceStatus
from distributary.observe.table_status import Batch
from distributary.table_state import TableState

SOON = 60  # seconds; the page asks every three, but other tests may have the machine
HALT = {"code": "topic-gone", "message": "the topic p.dbo.orders does not exist any more", "fix": "create it again"}


def commit(status: ServiceStatus, table: str, lag: int = 0, **changes: Any) -> None:
    """A table that has just committed a batch of 300 records."""
    now = time.time()
    status.committed(table, Batch(at=now, records=300, applied=300, quarantined=0, seconds=2.5), freshness_seconds=4.2)
    status.update(
        table,
        **{
            "topics": [f"p.{table}"],
            "state": TableState.UP_TO_DATE,
            "target_offsets": {f"p.{table}": {0: lag}},
            "source_ts": int((now - 90) * 1000),
            **changes,
        },
    )


def six(status: ServiceStatus) -> None:
    commit(status, "dbo.customers", quarantined=3)
    commit(status, "dbo.orders", lag=70, state=TableState.HALTED, error=HALT)
    commit(status, "dbo.order_items", lag=1_500_000, state=TableState.BEHIND)
    commit(status, "hr.employees")
    commit(status, "sales.invoices", lag=9)
    commit(status, "sales.payments", orphaned_rows=2)


def until(browser: Chrome, holds: Any) -> None:
    WebDriverWait(browser, SOON, poll_frequency=0.1).until(lambda _: holds())


def text(browser: Chrome, selector: str) -> str:
    return browser.find_element(By.CSS_SELECTOR, selector).text


def errors(browser: Chrome) -> list[str]:
    """The new lines of the browser's console."""
    entries: list[dict[str, str]] = browser.get_log("browser")  # type: ignore[no-untyped-call]
    return [entry["message"] for entry in entries if entry["level"] in ("SEVERE", "WARNING")]


def luminance(browser: Chrome, selector: str, style: str) -> float:
    colour = browser.find_element(By.CSS_SELECTOR, selector).value_of_css_property(style)
    red, green, blue = (float(part) / 255 for part in colour.partition("(")[2].rstrip(")").split(",")[:3])
    parts = (c / 12.92 if c <= 0.03928 else ((c + 0.055) / 1.055) ** 2.4 for c in (red, green, blue))
    return sum(weight * part for weight, part in zip((0.2126, 0.7152, 0.0722), parts, strict=True))
