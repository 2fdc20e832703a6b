"""A table's own view in a real Chromium: what it shows, the way there and back, and that updates disturb nobody."""

from __future__ import annotations

import time

import pytest
from selenium.webdriver import Chrome, Keys
from selenium.webdriver.common.by import By
from tests.support.browser import PHONE, prefer, size
from tests.support.page import HALT, commit, errors, luminance, six, text, until

from distributary.observe import http_server
from distributary.observe.stages import Stages
from distributary.observe.status import ServiceStatus
from distributary.observe.table_details import Commit, SchemaChange, StoredTable
from distributary.table_state import TableState

NAME = "dbo.customers"
STORED = StoredTable(
    version=41,
    columns={"id": "integer", "name": "string", "since": "date", "__op": "string"},
    key=("id",),
    added_by_service=("__op",),
    partitioned_by=("since",),
    files=12,
    bytes=3_400_000,
    rows=9_000,
    files_with_vectors=2,
    indexed_files=11,
)


def details(status: ServiceStatus, name: str = NAME, version: int = 41) -> None:
    taken = Commit(
        at=time.time(),
        version=version,
        records=1_200,
        applied=1_197,
        quarantined=3,
        seconds=2.5,
        phases={"check": 0.1, "read": 0.9, "quarantine": 0.0, "write": 1.5},
        rows={"inserted": 800, "updated": 300, "deleted": 97},
    )
    status.details.committed(name, taken, {"not-json": 3}, lambda: STORED)


def filled(status: ServiceStatus) -> None:
    six(status)
    status.update(
        NAME,
        next_offsets={f"p.{NAME}": {0: 1_000, 1: 500}},
        target_offsets={f"p.{NAME}": {0: 1_200, 1: 500, 2: 7}},
        position="0000002a:00000f00:0001",
        layout="vectors",
        remembered_keys=4,
        memory_bytes=2_100,
    )
    status.details.schema_changed(NAME, SchemaChange.between({}, {"id": "int", "name": "string"}, time.time() - 900))
    change = SchemaChange.between({"id": "smallint"}, {"id": "int", "since": "date"}, time.time() - 100)
    status.details.schema_changed(NAME, change)
    details(status)


def open_view(browser: Chrome, server: http_server.Server, name: str = NAME) -> None:
    browser.get("about:blank")
    browser.get(f"{server.url}/#table={name}")
    until(browser, lambda: text(browser, "#single-title") == name)


def panel(browser: Chrome, title: str) -> str:
    return browser.find_element(By.XPATH, f"//section[h3[text()='{title}']]").text


def test_a_table_has_a_view_of_its_own_with_all_that_is_known_of_it(
    browser: Chrome, server: http_server.Server, status: ServiceStatus
) -> None:
    filled(status)
    open_view(browser, server)
    until(browser, lambda: "1,200" in panel(browser, "Last commits"))
    assert "Throughput, last 30 minutes: at most 10 records/s" in text(browser, ".charts")
    assert "Freshness, last 30 minutes: at most 4.2 s" in text(browser, ".charts")
    partitions = panel(browser, "Partitions").splitlines()
    assert partitions[-3:] == ["0 1,000 1,200 200", "1 500 500 0", "2 – 7 7"]
    commits = panel(browser, "Last commits")
    for part in ("version 41", "3 to quarantine", "1,197", "800 inserted, 300 updated, 97 deleted", "2.5 s"):
        assert part in commits
    assert "check 0.1 s, read and decode 0.9 s, apply and commit 1.5 s" in commits
    columns = panel(browser, "Columns")
    for part in ("4 columns, key: id", "wider type", "id int", "added", "since date", "table made", "name string"):
        assert part in columns
    quarantine = panel(browser, "Quarantine")
    for part in ("not-json 3", f"distributary quarantine list -c FILE {NAME}", f"quarantine replay -c FILE {NAME}"):
        assert part in quarantine
    layout = panel(browser, "Layout and index")
    for part in (
        "vectors: deletion vectors mark the removed rows",
        "12, 3.4 MB, 9,000 rows",
        "2 files",
        "since",
        "11 of 12 files",
    ):
        assert part in layout
    assert "Partitioned by\nsince" in layout
    assert "4, 2.1 kB a commit" in layout
    assert "0000002a:00000f00:0001" in panel(browser, "Source")
    assert not browser.find_element(By.ID, "list").is_displayed()
    assert errors(browser) == []


def test_one_comes_to_a_table_and_back_to_where_one_was(
    browser: Chrome, server: http_server.Server, status: ServiceStatus
) -> None:
    for number in range(60):
        commit(status, f"dbo.t{number:02}")
    browser.get(f"{server.url}/#sort=table")
    until(browser, lambda: len(browser.find_elements(By.CSS_SELECTOR, "#rows tr")) == 60)
    link = browser.find_element(By.LINK_TEXT, "dbo.t45")
    browser.execute_script("arguments[0].scrollIntoView({ block: 'center' })", link)
    before = browser.execute_script("return scrollY")
    link.send_keys(Keys.ENTER)  # by keyboard
    until(browser, lambda: text(browser, "#single-title") == "dbo.t45")
    assert browser.switch_to.active_element == browser.find_element(By.ID, "single-title")
    assert browser.execute_script("return scrollY") == 0
    browser.find_element(By.ID, "back").click()
    until(browser, lambda: browser.find_element(By.ID, "list").is_displayed())
    assert browser.switch_to.active_element == link
    assert browser.execute_script("return scrollY") == before
    link.click()
    until(browser, lambda: browser.find_element(By.ID, "single").is_displayed())
    browser.switch_to.active_element.send_keys(Keys.ESCAPE)
    until(browser, lambda: browser.find_element(By.ID, "list").is_displayed())
    assert "sort=table" in browser.current_url
    link.click()
    until(browser, lambda: browser.find_element(By.ID, "single").is_displayed())
    browser.switch_to.active_element.send_keys("/")
    assert browser.switch_to.active_element == browser.find_element(By.ID, "filter")
    assert browser.find_element(By.ID, "list").is_displayed()


def test_the_view_follows_the_service_and_leaves_alone_what_somebody_has_opened_or_marked(
    browser: Chrome, server: http_server.Server, status: ServiceStatus
) -> None:
    filled(status)
    open_view(browser, server)
    until(browser, lambda: "not-json" in panel(browser, "Quarantine"))
    summary = browser.find_element(By.CSS_SELECTOR, "#single summary")
    summary.click()
    browser.execute_script("""
        const all = [...document.querySelectorAll("#single code")];
        getSelection().selectAllChildren(all.find((one) => one.textContent.includes("quarantine list")));
        scrollTo(0, 150);
    """)
    marked = browser.execute_script("return getSelection().toString()")
    assert marked == f"distributary quarantine list -c FILE {NAME}"
    for version in (42, 43):
        details(status, version=version)
        until(browser, lambda version=version: f"version {version}" in panel(browser, "Last commits"))
    assert browser.execute_script("return getSelection().toString()") == marked
    assert browser.execute_script("return scrollY") == 150
    assert browser.switch_to.active_element == summary
    assert "__op string added by the service" in panel(browser, "Columns")


def test_a_halted_table_shows_why_what_to_do_and_where_its_error_is_explained(
    browser: Chrome, server: http_server.Server, status: ServiceStatus
) -> None:
    filled(status)
    open_view(browser, server, "dbo.orders")
    until(browser, lambda: browser.find_elements(By.CSS_SELECTOR, "#single .card.halted"))
    card = browser.find_element(By.CSS_SELECTOR, "#single .card.halted")
    for part in ("Halted", *HALT.values(), "distributary resume -c FILE dbo.orders"):
        assert part in card.text
    card.find_element(By.LINK_TEXT, HALT["code"]).click()
    until(browser, lambda: browser.current_url.endswith("/errors#topic-gone"))
    target = browser.find_element(By.CSS_SELECTOR, "article:target")
    assert "does not exist any more" in target.text
    assert "What to do:" in target.text
    assert errors(browser) == []


def test_what_a_fix_names_is_shown_as_code_and_nothing_in_it_is_markup(
    browser: Chrome, server: http_server.Server, status: ServiceStatus
) -> None:
    filled(status)
    fix = "set `epoch: 1`, or <b>ask</b> `distributary resume`"
    status.update("dbo.orders", state=TableState.HALTED, error={**HALT, "fix": fix})
    open_view(browser, server, "dbo.orders")
    until(browser, lambda: browser.find_elements(By.CSS_SELECTOR, "#single .card.halted .fix code"))
    shown = browser.find_element(By.CSS_SELECTOR, "#single .card.halted .fix")
    assert shown.text == "What to do: set epoch: 1, or <b>ask</b> distributary resume"
    assert [code.text for code in shown.find_elements(By.TAG_NAME, "code")] == ["epoch: 1", "distributary resume"]
    assert errors(browser) == []


def test_a_paused_table_shows_why_and_how_it_continues(
    browser: Chrome, server: http_server.Server, status: ServiceStatus
) -> None:
    filled(status)
    commit(
        status,
        NAME,
        state=TableState.PAUSED,
        paused="distributary pause: a load",
        warnings=[{**HALT, "code": "unknown-column"}],
    )
    open_view(browser, server)
    until(browser, lambda: f"distributary unpause -c FILE {NAME}" in text(browser, "#single-body"))
    assert "distributary pause: a load" in text(browser, "#single-body")
    assert "unknown-column" in text(browser, "#single .warnings")
    status.update(NAME, paused="paused: true in the config")  # no command ends that
    until(browser, lambda: "paused: true in the config" in text(browser, "#single-body"))
    assert "unpause" not in text(browser, "#single-body")


def test_the_stages_of_a_change_and_the_heartbeat_tell_who_is_late(
    browser: Chrome, server: http_server.Server, status: ServiceStatus
) -> None:
    filled(status)
    open_view(browser, server)
    until(browser, lambda: "No change was streamed" in panel(browser, "Delay by stage"))
    status.update(NAME, stages=Stages(to_connector=3.0, to_kafka=None, to_table=71.0))
    status.show_heartbeat(int((time.time() - 130) * 1000))
    until(browser, lambda: "heartbeat" in panel(browser, "Delay by stage"))
    found = panel(browser, "Delay by stage")
    for label, value in (
        ("Source to connector", "3.0 s"),
        ("Connector to Kafka", "not known"),
        ("Kafka to table", "1 min"),
        ("Connector's last heartbeat", "2 min ago"),
    ):
        assert f"{label}\n{value}" in found
    assert "No change was streamed" not in found
    assert errors(browser) == []


def test_a_table_that_is_not_there_is_reported_and_one_that_comes_is_shown(
    browser: Chrome, server: http_server.Server, status: ServiceStatus
) -> None:
    six(status)
    open_view(browser, server, "dbo.new")
    until(browser, lambda: "has no table of this name" in text(browser, "#single-missing"))
    commit(status, "dbo.new")
    until(browser, lambda: "No commit since the service started." in panel(browser, "Last commits"))
    assert not browser.find_element(By.ID, "single-missing").is_displayed()


def test_names_are_text_in_the_view_too(browser: Chrome, server: http_server.Server, status: ServiceStatus) -> None:
    name = "dbo.<img src=x onerror=alert(1)> /%41&?#'"
    commit(status, name, state=TableState.HALTED, error=HALT)
    details(status, name)
    browser.get(f"{server.url}/")
    until(browser, lambda: len(browser.find_elements(By.CSS_SELECTOR, "#rows tr")) == 1)
    browser.find_element(By.CSS_SELECTOR, "#rows th a").click()
    until(browser, lambda: "version 41" in text(browser, "#single-body"))
    assert text(browser, "#single-title") == name
    assert browser.find_elements(By.CSS_SELECTOR, "main img") == []
    assert errors(browser) == []


@pytest.mark.parametrize("path", [f"#table={NAME}", "#table=dbo.orders", "errors"])
def test_a_phone_shows_it_without_scrolling_sideways(
    browser: Chrome, server: http_server.Server, status: ServiceStatus, path: str
) -> None:
    filled(status)
    details(status, "dbo.orders")
    size(browser, *PHONE)
    browser.get("about:blank")
    browser.get(f"{server.url}/{path}")
    if path.startswith("#"):
        until(browser, lambda: "version 41" in text(browser, "#single-body"))
        browser.find_element(By.CSS_SELECTOR, "#single summary").click()
    assert browser.execute_script("return document.documentElement.scrollWidth") <= PHONE[0]


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_light_and_dark_can_both_be_read(
    browser: Chrome, server: http_server.Server, status: ServiceStatus, scheme: str
) -> None:
    filled(status)
    details(status, "dbo.orders")
    prefer(browser, scheme)
    open_view(browser, server, "dbo.orders")
    until(browser, lambda: "version 41" in text(browser, "#single-body"))
    pairs = [(".crumbs a", "body"), (".state-of", "body"), (".panel small", ".panel"), (".panel thead th", ".panel")]
    pairs += [(".card .code", ".card"), (".card .fix", ".card"), (".card .what", ".card"), (".facts dt", ".panel")]
    for ink, paper in pairs:
        low, high = sorted([luminance(browser, ink, "color"), luminance(browser, paper, "background-color")])
        assert (high + 0.05) / (low + 0.05) >= 4.5, ink  # WCAG AA


@pytest.mark.parametrize("view", [(1360, 820), PHONE])
def test_a_screen_reader_finds_headings_tables_and_names_for_all(
    browser: Chrome, server: http_server.Server, status: ServiceStatus, view: tuple[int, int]
) -> None:
    filled(status)
    size(browser, *view)
    open_view(browser, server)
    until(browser, lambda: "version 41" in text(browser, "#single-body"))
    nodes = browser.execute_cdp_cmd("Accessibility.getFullAXTree", {})["nodes"]
    seen = [(node["role"]["value"], node.get("name", {}).get("value", "")) for node in nodes if not node["ignored"]]
    assert ("heading", NAME) in seen
    for title in (
        "Delay by stage",
        "Partitions",
        "Last commits",
        "Columns",
        "Quarantine",
        "Layout and index",
        "Source",
    ):
        assert ("heading", title) in seen
    tables = {name for role, name in seen if role == "table"}
    assert {"Partitions of the topic", "Last commits, the newest first", "Changes of the columns"} <= tables
    unnamed = [role for role, name in seen if role in ("button", "link", "image", "table", "region") and not name]
    assert unnamed == []
