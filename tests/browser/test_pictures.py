"""The pictures of the page in the documentation, made of the real page.

`make pictures` writes them anew; without that variable it is only seen that they can be made.
"""

from __future__ import annotations

import os
import random
import struct
import time
from pathlib import Path

import pytest
from selenium.webdriver import Chrome
from tests.support.browser import PHONE, prefer, size
from tests.support.clock import ManualClock
from tests.support.page import errors, text, until

from distributary.observe import http_server
from distributary.observe.status import ServiceStatus
from distributary.observe.table_details import Commit, SchemaChange, StoredTable
from distributary.observe.table_status import Batch
from distributary.table_state import TableState

FOLDER = os.environ.get("DISTRIBUTARY_PICTURES")
WENT_BACK = {
    "code": "source-went-back",
    "message": "offset 48120 of server1.shop.dbo.order_items partition 0 was committed at the source at"
    " 2026-11-22T02:14:07.120+00:00 with position 00000027:00000ac0:0002, lower than 00000031:00000b20:0004: the source"
    " was restored or failed over to an earlier position",
    "fix": "if the source's new log is the valid one, set `epoch: 1` for this table",
}
NAMES = ("dbo.order_items", "sales.payments", "dbo.customers", "dbo.orders", "hr.employees", "sales.invoices")


def half_an_hour(clock: ManualClock) -> ServiceStatus:
    """Six tables that have been at work since then; one halted, one that catches up."""
    choose = random.Random(7)
    status = ServiceStatus(wall=clock)
    end = clock.now + 1_800
    while clock.now < end:
        for number, name in enumerate(NAMES):
            if choose.random() < 0.4 and not (number == 0 and end - clock.now < 600):
                batch(status, name, choose, clock.now)
        clock.now += 10
    clock.now = time.time()
    for name in NAMES:
        update_details(status, name, clock.now)
    status.update("dbo.order_items", state=TableState.HALTED, error=WENT_BACK)
    status.update("sales.payments", state=TableState.BEHIND)
    status.update("dbo.customers", quarantined=3)
    status.show_transactions(
        {
            "complete": {"id": "00000031", "ts_ms": int((clock.now - 16) * 1000)},
            "pending": 4,
            "waiting_for": ["dbo.order_items"],
        }
    )
    status.mark_ready()
    return status


def batch(status: ServiceStatus, name: str, choose: random.Random, at: float) -> None:
    records, seconds = choose.randrange(100, 4_000), choose.uniform(0.5, 3)
    status.committed(name, Batch(at, records, records, 0, seconds), choose.uniform(1, 8))
    rows = {"inserted": records // 2, "updated": records // 3, "deleted": records // 50}
    phases = {"check": 0.05, "read": seconds * 0.3, "write": seconds * 0.6}
    commit = Commit(at, int(at) % 1_000, records, records, 0, seconds, phases, rows)
    columns = {"id": "integer", "name": "string", "email": "string", "since": "date", "__op": "string"}
    stored = StoredTable(int(at) % 1_000, columns, ("id",), ("__op",), (), 12, 340_000_000, 2_400_000, 3, 12)
    status.details.committed(name, commit, {}, lambda: stored)


def update_details(status: ServiceStatus, name: str, now: float) -> None:
    topic, lag = f"server1.shop.{name}", {"dbo.order_items": 18_234, "sales.payments": 1_204_511}.get(name, 0)
    status.details.schema_changed(
        name, SchemaChange.between({"id": "int"}, {"id": "int", "email": "string"}, now - 900)
    )
    status.update(
        name,
        topics=[topic],
        state=TableState.UP_TO_DATE,
        position="00000031:00000b20:0004",
        next_offsets={topic: {0: 48_120, 1: 47_002, 2: 51_377}},
        target_offsets={topic: {0: 48_120 + lag, 1: 47_002, 2: 51_377}},
        records_applied=2_400_000,
        source_ts=int((now - 90) * 1000),
        layout="auto",
        remembered_keys=0,
        memory_bytes=312,
        compacted_at=now - 7_200,
    )


@pytest.mark.parametrize(
    ("name", "view", "scheme", "fragment"),
    [
        ("page.png", (1200, 724), "light", ""),
        ("page-table.png", (1200, 900), "light", "#table=dbo.customers"),
        ("page-phone.png", PHONE, "dark", "#table=dbo.customers"),
    ],
)
def test_a_picture_of_the_page(
    browser: Chrome, tmp_path: Path, name: str, view: tuple[int, int], scheme: str, fragment: str
) -> None:
    clock = ManualClock(time.time() - 1_800)
    status = half_an_hour(clock)
    server = http_server.start(status, port=0)
    try:
        size(browser, *view)
        prefer(browser, scheme)
        browser.get(f"{server.url}/{fragment}")
        shown = "#single-body" if fragment else "#rows"
        until(browser, lambda: "dbo.customers" in text(browser, shown) or "version" in text(browser, shown))
        picture = (Path(FOLDER) if FOLDER else tmp_path) / name
        assert browser.save_screenshot(str(picture))
        assert struct.unpack(">II", picture.read_bytes()[16:24]) == view
        assert errors(browser) == []
    finally:
        server.stop()
