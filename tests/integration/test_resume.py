"""`distributary resume`: a halted table continues with the action that its halt needs. Names give the rule's number."""

from __future__ import annotations

import json
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any
from urllib.error import URLError
from urllib.request import urlopen

import pytest
from click.testing import CliRunner, Result
from tests.support.changes import INT, Topic, row
from tests.support.kafka import create_topic, delete_records, produce
from tests.support.spark import Bench
from tests.support.waiting import wait_until

from distributary.cli import main
from distributary.control.halts import Halts
from distributary.control.resume_requests import Requests
from distributary.demo.process import free_ports
from distributary.errors import TableHalt, UsageError
from distributary.halt_actions import ResumeAction
from distributary.progress.snapshots import complete_snapshot
from distributary.workers.resume import ResumePoller
from distributary.workers.table_worker import TableWorker

# On a real Kafka: `resume` connects to it.
pytestmark = pytest.mark.bench(on_kafka=True)


def changes(bench: Bench, first: int, last: int) -> Topic:
    """A row for each number, at the place of that number."""
    topic = Topic(bench.topic)
    for number in range(first, last + 1):
        topic.change("c", {"id": number}, row(number, number), at=number)
    return topic


def lose(bench: Bench, before: int, partition: int = 0) -> None:
    """Kafka's retention, at once."""
    delete_records(bench.kafka, bench.topic, before, partition)


def halted(bench: Bench, topic: Topic, worker: TableWorker) -> TableHalt:
    """The halt that the records lead to, noted as the service does it."""
    with pytest.raises(TableHalt) as raised:
        bench.take(topic.records, worker)
    Halts(bench.session, bench.config()).add(bench.topic, "dbo.t", raised.value)
    return raised.value


def resume(bench: Bench, *options: str) -> Result:
    """The command."""
    return CliRunner().invoke(main, ["resume", "-c", str(bench.folder / "config.yaml"), "dbo.t", *options])


def asked(bench: Bench) -> ResumeAction:
    """What the command left for the service, which takes it away."""
    requests = Requests(bench.session, bench.config())
    [request] = requests.waiting()
    requests.done(request)
    assert (request.topic, requests.waiting()) == (bench.topic, [])
    return request.action


def test_6_4_lost_records_are_passed_over_when_an_operator_accepts_it(bench: Bench) -> None:
    worker = bench.create().take(changes(bench, 1, 2).records)
    produce(bench.kafka, changes(bench, 3, 6).records)
    lose(bench, 4)
    assert halted(bench, Topic(bench.topic), worker).code == "records-lost"
    refused = resume(bench)
    assert refused.exit_code == 2
    assert "offsets 2 to 3" in refused.output
    assert "--accept-loss" in refused.output
    assert "not-asked-for" in resume(bench, "--accept-reset").output
    assert resume(bench, "--accept-loss").exit_code == 0
    worker.resume(asked(bench))
    bench.take(changes(bench, 7, 7).records, worker)
    assert bench.rows() == [(n, n) for n in (1, 2, 5, 6, 7)]
    assert bench.take([]).next_offsets == {0: 7}  # a new driver goes on from there


def test_3_10_rows_whose_snapshot_was_partly_lost_are_not_taken_for_left_over(bench: Bench) -> None:
    worker = bench.create().take(changes(bench, 1, 4).records)

    def snapshot(at: int) -> Topic:
        topic = Topic(bench.topic)
        for number in range(1, 5):
            mark = "last_in_data_collection" if number == 4 else "true"
            topic.change("r", {"id": number}, row(number, at), at=at, snapshot=mark)
        return topic

    produce(bench.kafka, snapshot(50).records)
    lose(bench, 6)  # those of rows 1 and 2
    assert halted(bench, Topic(bench.topic), worker).code == "records-lost"
    assert resume(bench, "--accept-loss").exit_code == 0
    worker.resume(asked(bench))
    bench.take([], worker)
    assert bench.rows() == [(1, 1), (2, 2), (3, 50), (4, 50)]
    assert worker.progress is not None
    with pytest.raises(UsageError, match="snapshot-incomplete"):
        complete_snapshot("dbo.t", worker.progress)  # what `resume --reconcile` asks first
    # The next one is whole, also where it waits together with what was there at the loss.
    produce(bench.kafka, snapshot(60).records)
    worker = bench.take([])
    assert bench.rows() == [(n, 60) for n in range(1, 5)]
    assert worker.progress is not None
    assert worker.progress.snapshot is not None
    assert (worker.progress.snapshot.orphaned_rows, worker.progress.lost) == (0, None)


def test_2_8_rows_that_are_ordered_by_offsets_are_filled_again_from_another_topic(bench: Bench) -> None:
    def rows(*values: int) -> Topic:
        topic = Topic(bench.topic)
        for value in values:
            topic.add({"id": 1}, json.dumps(row(1, value)).encode())
        return topic

    worker = bench.create().take(rows(1, 2, 3).records)
    bench.create_again()
    found = halted(bench, rows(4), worker)
    assert found.code == "offsets-began-anew"
    assert "--rebuild" in found.fix
    assert "more-is-asked" in resume(bench).output
    assert "not-asked-for" in resume(bench, "--accept-reset").output
    assert resume(bench, "--rebuild").exit_code == 0
    worker.resume(asked(bench))
    bench.take([], worker)
    assert bench.rows() == [(1, 4)]


def test_6_4_a_table_goes_on_from_another_topic_where_an_operator_has_it_filled_again(bench: Bench) -> None:
    bench.create().take(changes(bench, 1, 3).records)
    moved = replace(bench, topic=f"moved{bench.topic}").create()
    worker = moved.worker()
    assert halted(moved, changes(moved, 7, 8), worker).code == "other-topic"
    assert resume(moved, "--rebuild").exit_code == 0
    worker.resume(asked(moved))
    moved.take([], worker)
    assert moved.rows() == [(7, 7), (8, 8)]


def test_6_2_a_request_that_comes_while_another_one_is_done_is_done_after_it(bench: Bench) -> None:
    worker = bench.create().take(changes(bench, 1, 2).records)
    config = bench.config()
    requests, handed = Requests(bench.session, config), []
    resuming = ResumePoller(
        bench.session, config, Halts(bench.session, config), lambda _table: handed.append(worker.resume_action)
    )
    assert resume(bench).exit_code == 0
    resuming.poll([worker], now=True)
    # Others come while the table is at work: what asks for the same again is another request, too.
    assert resume(bench, "--rebuild").exit_code == 0
    assert resume(bench).exit_code == 0
    resuming.poll([worker], now=True)
    assert handed == [ResumeAction.RETRY]
    for left in ([ResumeAction.RETRY, ResumeAction.REBUILD], [ResumeAction.REBUILD], []):
        worker.step()
        resuming.finish_request(worker)
        assert [request.action for request in requests.waiting()] == left
        resuming.poll([worker], now=True)
    assert handed == [ResumeAction.RETRY, ResumeAction.RETRY, ResumeAction.REBUILD]
    bench.take([], worker)
    assert bench.rows() == [(1, 1), (2, 2)]


def test_6_4_lost_records_of_a_partition_that_had_none_so_far_are_named(bench: Bench) -> None:
    worker = bench.create(2).take(changes(bench, 1, 2).records)
    topic = Topic(bench.topic)
    for number in range(3, 7):
        topic.change("c", {"id": number}, row(number, number), at=number, partition=1)
    produce(bench.kafka, topic.records)
    lose(bench, 2, partition=1)
    found = halted(bench, Topic(bench.topic), worker)
    assert found.code == "records-lost"
    assert "offsets 0 to 1" in found.message
    assert "partition 1" in found.message
    assert resume(bench, "--accept-loss").exit_code == 0
    worker.resume(asked(bench))
    bench.take([], worker)
    assert bench.rows() == [(n, n) for n in (1, 2, 5, 6)]


def test_2_6_a_source_that_was_restored_together_with_its_topic_halts(bench: Bench) -> None:
    worker = bench.create().take(changes(bench, 1, 9).records)
    bench.create_again()
    restored = Topic(bench.topic)
    restored.change("u", {"id": 9}, row(9, 90), at=5, ts_ms=1_700_000_999_000)
    assert halted(bench, restored, worker).code == "topic-recreated"
    assert resume(bench, "--accept-reset").exit_code == 0
    worker.resume(asked(bench))
    with pytest.raises(TableHalt, match="source-went-back"):
        bench.take([], worker)
    bench.rule = {"epoch": 1}
    bench.take([])
    assert bench.rows()[-1] == (9, 90)


def test_6_4_a_topic_that_was_created_again_is_read_on_top_of_the_rows_or_they_go(bench: Bench) -> None:
    worker = bench.create(2).take(changes(bench, 1, 4).records)
    bench.create_again()
    again = changes(bench, 3, 3)
    again.change("u", {"id": 4}, row(4, 40), at=9)
    again.change("u", {"id": 2}, row(2, 20), at=1)
    assert halted(bench, again, worker).code == "topic-recreated"
    assert resume(bench, "--accept-reset").exit_code == 0
    worker.resume(asked(bench))
    bench.take([], worker)
    assert bench.rows() == [(1, 1), (2, 2), (3, 3), (4, 40)]
    bench.create_again()
    assert halted(bench, changes(bench, 8, 9), worker).code == "topic-recreated"
    assert resume(bench, "--rebuild").exit_code == 0
    worker.resume(asked(bench))
    bench.take([], worker)
    assert bench.rows() == [(8, 8), (9, 9)]


@pytest.mark.parametrize("how", ["rebuild", "deleted"])
def test_5_1_a_table_that_is_filled_again_with_its_columns_in_another_order_has_each_value_in_its_own(
    bench: Bench, how: str
) -> None:
    def batches(first: int, columns: str) -> list[Topic]:
        made = [Topic(bench.topic), Topic(bench.topic)]
        for number, topic in enumerate(made, first):
            values = {name: 10 * number + index for index, name in enumerate("abc")}
            after = {"id": number, **{name: values[name] for name in columns}}
            topic.with_schema(topic.change("c", {"id": number}, after, at=number), dict.fromkeys(after, INT))
        return made

    worker = bench.create().worker()
    for topic in (*batches(1, "ab"), *batches(3, "acb")):  # the last ones' plans are kept
        bench.take(topic.records, worker)
    assert bench.rows("id", "a", "b", "c")[-1] == (4, 40, 41, 42)
    lose(bench, 4)
    if how == "rebuild":
        assert resume(bench, "--rebuild").exit_code == 0
        worker.resume(asked(bench))
    else:
        shutil.rmtree(bench.table)
    for topic in (*batches(5, "acb"), *batches(7, "acb")):
        bench.take(topic.records, worker)
    assert bench.rows("id", "a", "b", "c") == [(n, 10 * n, 10 * n + 1, 10 * n + 2) for n in range(5, 9)]


@pytest.mark.parametrize("mode", ["upsert", "history", "append"])
def test_5_4_a_changed_key_needs_a_table_that_is_filled_again(bench: Bench, mode: str) -> None:
    bench.rule = {"mode": mode}
    worker = bench.create().take(changes(bench, 1, 3).records)
    other = Topic(bench.topic, key=("id", "part"))
    for number in (4, 5, 4):
        other.change("c", {"id": number, "part": "a"}, {**row(number, number), "part": "a"}, at=10 + number)
    assert halted(bench, other, worker).code == "key-changed"
    lose(bench, 3)  # what came under the old key can't be part of the new table
    assert resume(bench).exit_code == 0
    worker.resume(asked(bench))
    with pytest.raises(TableHalt, match="--rebuild"):
        bench.take([], worker)
    assert resume(bench, "--rebuild", "--output", "json").exit_code == 0
    worker.resume(asked(bench))
    bench.take([], worker)
    assert bench.rows("id", "part") == [(4, "a"), (5, "a")]
    more = Topic(bench.topic)
    more.change("u", {"id": 4, "part": "a"}, {**row(4, 40), "part": "a"}, at=30)
    more.change("d", {"id": 5, "part": "a"}, at=31)
    bench.take([*more.records, *more.records])
    expected: dict[str, list[tuple[int | None]]] = {
        "upsert": [(40,)],
        "history": [(4,), (40,), (5,)],
        "append": [(4,), (40,), (5,), (None,)],
    }
    assert bench.rows("v") == sorted(expected[mode], key=repr)


def test_6_3_bad_records_that_were_looked_at_do_not_halt_again(bench: Bench) -> None:
    bench.options = {"quarantine": {"max_ratio": 0.1}}
    topic = changes(bench.create(), 1, 20)
    for _ in range(120):
        topic.add({"id": 1}, b"no JSON")
    worker = bench.worker()
    assert halted(bench, topic, worker).code == "too-many-bad-records"
    assert json.loads(resume(bench, "--output", "json").stdout)["was"]["code"] == "too-many-bad-records"
    worker.resume(asked(bench))
    bench.take(changes(bench, 21, 22).records, worker)
    assert bench.rows() == sorted(((n, n) for n in range(1, 23)), key=repr)


@dataclass(frozen=True)
class Service:
    """A running service and where its status is."""

    status: str
    process: subprocess.Popen[bytes]


@pytest.fixture
def service(bench: Bench) -> Iterator[Service]:
    """The service as a process of its own."""
    [port] = free_ports(1)
    bench.options = {
        "http": {"port": port},
        "trigger": {"interval": "1s"},
        "tables": [{"match": "dbo.*"}],
        "spark": {"spark.driver.memory": "1g", "spark.master": "local[2]"},
    }
    bench.create().config()
    create_topic(bench.kafka, bench.topic.replace(".t", ".other"))
    command = [sys.executable, "-m", "distributary", "run", "-c", str(bench.folder / "config.yaml")]
    with (bench.folder / "log").open("wb") as log:
        running = subprocess.Popen(command, stdout=log, stderr=log)
    yield Service(f"http://127.0.0.1:{port}/status", running)
    running.send_signal(signal.SIGTERM)
    assert running.wait(120) == 0


def table_when(service: Service, **wanted: Any) -> dict[str, Any]:
    """The table's status, once it is so."""
    table: dict[str, Any] = {}

    def is_so() -> bool:
        with suppress(URLError, OSError), urlopen(service.status, timeout=10) as answer:
            table.clear()
            table.update(json.loads(answer.read())["tables"].get("dbo.t", {}))
        return wanted.items() <= table.items()

    wait_until(is_so, 600, lambda: f"{wanted}, still {table}", every=0.5, alive=lambda: service.process.poll() is None)
    return table


def test_6_2_a_running_service_takes_a_halted_table_up_again(bench: Bench, service: Service) -> None:
    produce(bench.kafka, changes(bench, 1, 2).records)
    table_when(service, records_applied=2)
    service.process.send_signal(signal.SIGSTOP)  # else it may see the moment without a topic
    bench.create_again()
    produce(bench.kafka, changes(bench, 5, 5).records)
    service.process.send_signal(signal.SIGCONT)
    assert table_when(service, state="halted")["error"]["code"] == "topic-recreated"
    assert resume(bench, "--accept-reset").exit_code == 0
    table_when(service, state="up_to_date", records_applied=3, error=None)
    assert bench.rows() == [(1, 1), (2, 2), (5, 5)]
    status = CliRunner().invoke(main, ["status", "-c", str(bench.folder / "config.yaml"), "--output", "json"])
    assert status.exit_code == 0, status.output
