from __future__ import annotations

import base64
import hashlib
import http.client
import json
import re
import socket
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import NamedTuple
from urllib.parse import quote

import pytest
from prometheus_client.parser import text_string_to_metric_families
from tests.support.clock import ManualClock
from tests.support.waiting import wait_until

from distributary import __version__
from distributary.errors import UsageError
from distributary.observe import http_server
from distributary.observe.answers import Access
from distributary.observe.status import ServiceStatus
from distributary.observe.table_status import Batch
from distributary.table_state import TableState


class Answer(NamedTuple):
    status: int
    headers: http.client.HTTPMessage
    text: str


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def status(clock: ManualClock) -> ServiceStatus:
    return ServiceStatus(clock=clock, wall=lambda: 1700000100.0)


@pytest.fixture
def server(status: ServiceStatus) -> Iterator[http_server.Server]:
    server = http_server.start(status, "127.0.0.1", 0, max_silence_seconds=60)
    yield server
    server.stop()


def ask(
    server: http_server.Server,
    path: str,
    method: str = "GET",
    headers: Mapping[str, str] | None = None,
) -> Answer:
    connection = http.client.HTTPConnection(server.host, server.port, timeout=5)
    try:
        connection.request(method, path, headers=dict(headers or {}))
        response = connection.getresponse()
        return Answer(response.status, response.headers, response.read().decode())
    finally:
        connection.close()


def test_port_0_is_any_free_port_and_loopback_is_the_default(status: ServiceStatus) -> None:
    server = http_server.start(status, port=0)
    try:
        assert server.host == "127.0.0.1"
        assert server.port > 0
        assert server.url == f"http://127.0.0.1:{server.port}"
        assert ask(server, "/").status == 200
    finally:
        server.stop()


def test_livez_fails_when_the_loop_is_silent_for_too_long(
    server: http_server.Server, status: ServiceStatus, clock: ManualClock
) -> None:
    clock.now = 60
    assert ask(server, "/livez")[::2] == (200, "live\n")
    clock.now = 61
    answer = ask(server, "/livez")
    assert answer.status == 503
    assert "has not run for 61 s (limit 60 s)" in answer.text
    status.heartbeat()
    assert ask(server, "/livez").status == 200


def test_livez_outlives_a_storage_that_does_not_answer(
    server: http_server.Server, status: ServiceStatus, clock: ManualClock
) -> None:
    with status.waiting():
        clock.now = 3600
        assert ask(server, "/livez").status == 200
    assert ask(server, "/livez").status == 503
    status.heartbeat()
    assert ask(server, "/livez").status == 200


def test_readyz_follows_the_service(server: http_server.Server, status: ServiceStatus) -> None:
    assert ask(server, "/readyz").status == 503
    status.mark_ready()
    assert ask(server, "/readyz")[::2] == (200, "ready\n")


def test_status_is_the_snapshot_as_json(server: http_server.Server, status: ServiceStatus) -> None:
    status.update("público.año", state=TableState.BEHIND, next_offsets={"t": {0: 5}}, target_offsets={"t": {0: 9}})
    answer = ask(server, "/status?pretty")
    assert answer.status == 200
    assert answer.headers["Content-Type"] == "application/json; charset=utf-8"
    assert json.loads(answer.text) == status.snapshot()
    assert json.loads(answer.text)["tables"]["público.año"]["lag_records"] == 4


def test_the_time_of_the_last_complete_transaction_is_a_metric_where_it_is_known(
    server: http_server.Server, status: ServiceStatus
) -> None:
    name = "distributary_complete_transaction_timestamp_seconds"
    for complete in (None, {"id": "t1", "ts_ms": None}):
        status.show_transactions({"complete": complete, "pending": 0, "waiting_for": []})
        assert name not in ask(server, "/metrics").text
    status.show_transactions({"complete": {"id": "t1", "ts_ms": 1500}, "pending": 0, "waiting_for": []})
    assert f"\n{name} 1.5\n" in ask(server, "/metrics").text


def test_metrics_equal_the_status(server: http_server.Server, status: ServiceStatus, clock: ManualClock) -> None:
    status.update(
        'dbo.odd"name',
        state=TableState.HALTED,
        target_offsets={"t": {0: 9}},
        next_offsets={"t": {}},
        records_applied=1234,
        quarantined=2,
        ambiguous_deletes=1,
        last_commit_at=1700000000.5,
        orphaned_rows=3,
        source_ts=1700000010000,
    )
    status.update("dbo.new")
    clock.now = 7
    answer = ask(server, "/metrics")
    assert answer.status == 200
    assert answer.headers["Content-Type"].startswith("text/plain; version=0.0.4")
    samples: dict[tuple[str, tuple[tuple[str, str], ...]], float] = {
        (sample.name, tuple(sorted(sample.labels.items()))): sample.value
        for family in text_string_to_metric_families(answer.text)
        for sample in family.samples
        # What is told of processes and batches, and not of the status.
        if not sample.name.startswith(("distributary_process_", "distributary_freshness_"))
    }
    odd = ("table", 'dbo.odd"name')
    new = ("table", "dbo.new")
    names = [state.value for state in TableState]
    states = {name: float(name == "halted") for name in names}
    expected: dict[tuple[str, tuple[tuple[str, str], ...]], float] = {
        ("distributary_table_lag_records", (odd,)): 9,
        ("distributary_table_lag_records", (new,)): 0,
        ("distributary_table_records_applied_total", (odd,)): 1234,
        ("distributary_table_quarantined_total", (odd,)): 2,
        ("distributary_table_ambiguous_deletes_total", (odd,)): 1,
        ("distributary_table_undecided_total", (odd,)): 1,  # a former name
        ("distributary_table_last_commit_timestamp_seconds", (odd,)): 1700000000.5,
        ("distributary_table_ghost_rows", (odd,)): 3,  # a former name
        ("distributary_table_orphaned_rows", (odd,)): 3,  # of the other table it is not known
        ("distributary_table_lag_seconds", (odd,)): 90,
        ("distributary_table_lag_seconds", (new,)): 0,
        ("distributary_table_source_timestamp_seconds", (odd,)): 1700000010,
        ("distributary_ready", ()): 0,
        ("distributary_start_timestamp_seconds", ()): 1700000100,
        ("distributary_last_turn_timestamp_seconds", ()): 1700000093,
        ("distributary_last_plan_timestamp_seconds", ()): 1700000100,
        ("distributary_config_faults", ()): 0,
        ("distributary_build_info", (("version", __version__),)): 1,
        **{("distributary_table_state", (("state", name), odd)): value for name, value in states.items()},
        **{("distributary_table_state", (("state", name), new)): float(name == "starting") for name in states},
    }
    assert samples == expected


def test_the_first_page_points_to_the_others(server: http_server.Server) -> None:
    answer = ask(server, "/")
    assert answer.headers["Content-Type"] == "text/html; charset=utf-8"
    for path in ("/livez", "/readyz", "/status", "/history", "/errors", "/metrics"):
        assert path in answer.text
        assert ask(server, path).status in (200, 503)


def test_head_has_the_headers_of_get_and_no_body(server: http_server.Server) -> None:
    answer = ask(server, "/", "HEAD")
    assert answer.status == 200
    assert answer.text == ""
    assert answer.headers["Content-Length"] == ask(server, "/").headers["Content-Length"]


@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH", "DELETE", "OPTIONS"])
def test_nothing_can_be_changed(server: http_server.Server, method: str) -> None:
    answer = ask(server, "/status", method)
    assert answer.status == 405
    assert answer.headers["Allow"] == "GET, HEAD"


def test_an_unknown_page_is_404_and_says_which_there_are(server: http_server.Server) -> None:
    answer = ask(server, "/../etc/passwd")
    assert answer.status == 404
    assert "/status" in answer.text


def test_a_client_that_says_nothing_holds_nobody_up(server: http_server.Server) -> None:
    with socket.create_connection((server.host, server.port)):
        started = time.monotonic()
        assert ask(server, "/livez").status == 200
        assert time.monotonic() - started < 2


@pytest.mark.parametrize(
    "host", ["127.0.0.1:8080", "localhost", "LOCALHOST:80", "[::1]:8080", "10.1.2.3", "status.example.com", ""]
)
def test_who_asks_by_an_address_or_a_known_name_is_answered(status: ServiceStatus, host: str) -> None:
    server = http_server.start(status, port=0, access=Access(["Status.example.com"]))
    try:
        assert ask(server, "/status", headers={"Host": host}).status == 200
    finally:
        server.stop()


@pytest.mark.parametrize("host", ["evil.example.com", "localhost.evil.example.com", "127.0.0.1.evil.example.com:80"])
@pytest.mark.parametrize("path", ["/", "/status", "/livez"])
def test_a_name_of_another_site_leads_to_nothing(server: http_server.Server, host: str, path: str) -> None:
    """A page there could have a browser read what only the browser can reach."""
    answer = ask(server, path, headers={"Host": host})
    assert answer.status == 421
    assert "http.names" in answer.text


def basic(password: str) -> str:
    return "Basic " + base64.b64encode(f"me:{password}".encode()).decode()


def test_where_there_is_a_token_all_but_the_probes_ask_for_it(status: ServiceStatus) -> None:
    token = "a:token-of-sufficient-length"
    server = http_server.start(status, port=0, access=Access(token=token))
    status.mark_ready()
    try:
        for path in ("/livez", "/readyz"):
            assert ask(server, path).status == 200
        for path in ("/", "/status", "/tables", "/tables/s.t", "/history", "/metrics", "/nothing"):
            for given in (
                "",
                "Bearer",
                "Bearer ",
                "Bearer other",
                basic("other"),
                "Basic ###",
                f"Digest {token}",
                token,
            ):
                refused = ask(server, path, headers={"Authorization": given})
                assert refused.status == 401, given
                assert refused.headers["WWW-Authenticate"].startswith("Basic")
            for given in (f"Bearer {token}", f"bearer {token}", basic(token)):
                answer = ask(server, path, headers={"Authorization": given})
                assert answer.status == (404 if path in ("/nothing", "/tables/s.t") else 200), given
    finally:
        server.stop()


def test_clients_that_never_finish_a_request_keep_nobody_out(
    status: ServiceStatus, monkeypatch: pytest.MonkeyPatch
) -> None:
    """More of them than the server has connections, each of which sends a byte now and then."""
    monkeypatch.setitem(http_server._LIMITS, "channel_timeout", 1)
    server = http_server.start(status, port=0)
    clients = []
    try:
        for _ in range(150):
            client = socket.create_connection((server.host, server.port))
            client.sendall(b"GET / HTTP/1.1\r\nX: ")
            clients.append(client)
        ended = threading.Event()

        def drip() -> None:
            while not ended.wait(0.2):
                for client in clients:
                    with suppress(OSError):
                        client.sendall(b"x")

        dripping = threading.Thread(target=drip)
        dripping.start()
        try:
            wait_until(lambda: answers(server), 60)
        finally:
            ended.set()
            dripping.join()
    finally:
        for client in clients:
            client.close()
        server.stop()


def answers(server: http_server.Server) -> bool:
    try:
        return ask(server, "/livez").status == 200
    except OSError:
        return False


def test_a_server_takes_so_many_threads_and_no_more(server: http_server.Server) -> None:
    before = threading.active_count()
    clients = [socket.create_connection((server.host, server.port)) for _ in range(50)]
    try:
        assert ask(server, "/livez").status == 200
        assert threading.active_count() == before
    finally:
        for client in clients:
            client.close()


def test_what_is_too_large_is_refused(server: http_server.Server) -> None:
    assert ask(server, "/status", headers={"X": "x" * 20_000}).status == 431
    with socket.create_connection((server.host, server.port), timeout=10) as client:
        client.sendall(b"POST /status HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000000\r\n\r\n")
        assert b" 413 " in client.recv(1000)


def test_a_taken_port_is_reported_with_the_way_out(server: http_server.Server, status: ServiceStatus) -> None:
    with pytest.raises(UsageError) as raised:
        http_server.start(status, "127.0.0.1", server.port)
    assert raised.value.code == "http-port-taken"
    assert str(server.port) in raised.value.message
    assert "http.port" in raised.value.fix


@pytest.mark.parametrize("host", ["192.0.2.1", "no-such-host.invalid"])
def test_an_address_of_another_machine_is_reported_with_the_way_out(status: ServiceStatus, host: str) -> None:
    with pytest.raises(UsageError) as raised:
        http_server.start(status, host, 0)
    assert raised.value.code == "http-address-unusable"
    assert host in raised.value.message
    assert "http.host" in raised.value.fix


def test_a_server_whose_loop_sees_the_end_first_stops_as_well(
    status: ServiceStatus, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = http_server.start(status, port=0)
    wake = server._wsgi.pull_trigger

    def late() -> None:
        server._thread.join()
        wake()

    monkeypatch.setattr(server._wsgi, "pull_trigger", late)
    server.stop()


def test_a_stopped_server_frees_its_port_and_may_be_stopped_again(status: ServiceStatus) -> None:
    first = http_server.start(status, "127.0.0.1", 0)
    port = first.port
    first.stop()
    first.stop()
    second = http_server.start(status, "127.0.0.1", port)
    assert ask(second, "/livez").status == 200
    second.stop()


def test_the_page_is_whole_and_its_policy_names_what_is_in_it(server: http_server.Server) -> None:
    answer = ask(server, "/")
    assert "/* page." not in answer.text  # style and script are in their places
    [style] = re.findall(r"<style>(.*?)</style>", answer.text, re.DOTALL)
    [script] = re.findall(r"<script>(.*?)</script>", answer.text, re.DOTALL)
    policy = answer.headers["Content-Security-Policy"].split("; ")
    for kind, content in (("style-src", style), ("script-src", script)):
        digest = base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()
        assert f"{kind} 'sha256-{digest}'" in policy
    assert policy[0] == "default-src 'none'"
    assert not any("unsafe" in rule or "*" in rule for rule in policy)
    assert re.findall(r"""(?:src|href)=["'](?!data:|#)[^"']*[:/]""", answer.text) == []  # nothing from elsewhere


@pytest.mark.parametrize(
    "path", ["/", "/status", "/tables", "/tables/s.t", "/errors", "/history", "/metrics", "/livez", "/nothing"]
)
def test_no_answer_is_kept_guessed_at_or_framed(server: http_server.Server, path: str) -> None:
    headers = ask(server, path).headers
    assert headers["Cache-Control"] == "no-store"
    assert headers["X-Content-Type-Options"] == "nosniff"
    assert "frame-ancestors 'none'" in headers["Content-Security-Policy"]


def test_the_history_of_the_tables_is_reported_as_json(server: http_server.Server, status: ServiceStatus) -> None:
    status.committed("s.t", Batch(at=1.0, records=9, applied=8, quarantined=1, seconds=0.5), freshness_seconds=3.0)
    history = json.loads(ask(server, "/history").text)
    assert history["tables"]["s.t"]["records"][-1] == 8
    assert history["tables"]["s.t"]["freshness"][-1] == 3.0
    assert history["until"] - 1700000100.0 <= history["step_seconds"]


@pytest.mark.parametrize("name", ["s.t", "s.größe 1", "s.a/b", "s.%41", "s.?#"])
def test_a_table_is_reported_with_its_details_whatever_its_name_is(
    server: http_server.Server, status: ServiceStatus, name: str
) -> None:
    status.committed(name, Batch(at=1.0, records=9, applied=8, quarantined=1, seconds=0.5), freshness_seconds=3.0)
    answer = ask(server, f"/tables/{quote(name, safe='')}")
    assert answer.headers["Content-Type"] == "application/json; charset=utf-8"
    found = json.loads(answer.text)
    assert (found["table"], found["last_batch"]["records"], found["commits"]) == (name, 9, [])


def test_an_unknown_table_is_404_and_so_is_one_whose_name_is_no_text(server: http_server.Server) -> None:
    for path in ("/tables/s.nothing", "/tables/", "/tables/%ff"):
        answer = ask(server, path)
        assert answer.status == 404
        assert "/status" in answer.text


def test_the_page_of_errors_has_each_code_as_a_place_and_runs_nothing(server: http_server.Server) -> None:
    answer = ask(server, "/errors")
    assert answer.headers["Content-Type"] == "text/html; charset=utf-8"
    for code in ("topic-gone", "kafka-unreachable", "not-json"):
        assert answer.text.count(f'<article id="{code}">') == 1
    assert "script" not in answer.headers["Content-Security-Policy"].replace("require-trusted-types-for 'script'", "")
    [style] = re.findall(r"<style>(.*?)</style>", answer.text, re.DOTALL)
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    assert f"style-src 'sha256-{digest}'" in answer.headers["Content-Security-Policy"]
    assert "<!-- errors -->" not in answer.text
