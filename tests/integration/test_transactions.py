"""Transactions through the service, with real topics and real tables: those of the source (rule 3.9), whose progress is
shown, and those of Kafka, of which aborted ones are no part of any table."""

from __future__ import annotations

import json
import os
import random
import signal
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
import yaml
from confluent_kafka import Producer
from deltalake import DeltaTable
from pyspark.sql import SparkSession
from tests.support.changes import Topic
from tests.support.kafka import Record, committed_offsets, create_topic, produce
from tests.support.spark import Bench, rows_of
from tests.support.waiting import wait_until

from distributary.config import load
from distributary.consume.kafka_client import KafkaClient
from distributary.errors import TableHalt
from distributary.job import Service
from distributary.observe.recorder import Recorder
from distributary.observe.status import ServiceStatus

pytestmark = pytest.mark.usefixtures("signal_handlers")


class Source:
    """Two tables in one database, SQL Server's, and its transactions."""

    def __init__(self, kafka: str) -> None:
        self.kafka = kafka
        self.prefix = f"whole{random.randrange(10**9)}"
        self._at = 0
        for topic, partitions in (("dbo.one", 1), ("dbo.two", 1), ("transaction", 1)):
            create_topic(kafka, f"{self.prefix}.{topic}", partitions)

    def transaction(self, **changes: int) -> dict[str, list[Record]]:
        """The records of a transaction with so many changes of each table, by table, and those of its bounds."""
        self._at += 1
        id_ = f"00000027:{self._at:08x}:ffff"
        records: dict[str, list[Record]] = {}
        for table, count in changes.items():
            topic = Topic(f"{self.prefix}.dbo.{table}")
            for order in range(1, count + 1):
                row = {"id": self._at * 100 + order, "v": id_}
                topic.change("c", {"id": row["id"]}, row, at=self._at, step=order, transaction=(id_, order))
            records[table] = topic.records
        counts = [{"data_collection": f"db.dbo.{table}", "event_count": count} for table, count in changes.items()]
        end = {"event_count": sum(changes.values()), "ts_ms": self._at * 1000, "data_collections": counts}
        bounds: list[Mapping[str, Any]] = [{"status": "BEGIN", "id": id_, "ts_ms": self._at * 1000}]
        bounds.append({"status": "END", "id": id_, **end})
        topic_name = f"{self.prefix}.transaction"
        records["bounds"] = [Record(topic_name, 0, None, json.dumps(value).encode()) for value in bounds]
        return records

    def send(self, records: Mapping[str, list[Record]], *, without: str = "") -> None:
        """Produces a transaction's records, those of one table left out."""
        produce(self.kafka, [record for name, some in records.items() if name != without for record in some])


def service(session: SparkSession, kafka: str, prefix: str, folder: Path, status: ServiceStatus) -> Service:
    """A service for all tables with this prefix."""
    config = {
        "version": 1,
        "kafka": {"bootstrap.servers": kafka},
        "source": {"topic_prefix": prefix},
        "target": {"path": str(folder / "lake"), "consistent_every": "1s"},
        "checkpoint": str(folder / "checkpoint"),
        "trigger": {"interval": "500ms"},
        "tables": [{"match": "*.*"}],
    }
    file = folder / "config.yaml"
    file.write_text(yaml.safe_dump(config), encoding="utf-8")
    loaded = load(file)
    return Service(loaded, session, KafkaClient(loaded.kafka_properties()), Recorder(status))


def shown_after_a_run(session: SparkSession, source: Source, folder: Path) -> Any:
    """What /status shows of transactions after all that is in Kafka was applied, by a service that starts anew."""
    status = ServiceStatus()
    assert service(session, source.kafka, source.prefix, folder, status).run(once=True) == 0
    lag_tools_see(source, status)
    return status.snapshot().get("transactions")


def consistent_rows(folder: Path) -> list[tuple[Any, ...]]:
    """What readers find of complete transactions."""
    place = folder / "lake" / "_distributary" / "consistent"
    return rows_of(place, "transaction_id", "table", "version", "exact")


def newest_versions(folder: Path) -> dict[str, int]:
    """The Delta versions of both tables."""
    return {f"dbo.{name}": DeltaTable(str(folder / "lake" / "dbo" / name)).version() for name in ("one", "two")}


def lag_tools_see(source: Source, status: ServiceStatus) -> None:
    """What the tables have applied stands in the consumer group, at the end of a run with `--once` too."""
    found = committed_offsets(source.kafka, f"distributary-{source.prefix}")
    taken = [offsets for table in status.tables() for offsets in table.next_offsets.items()]
    assert found == {(topic, p): offset for topic, partitions in taken for p, offset in partitions.items()}
    assert len(found) == 2


def test_3_9_up_to_which_transaction_all_tables_are_complete(session: SparkSession, kafka: str, tmp_path: Path) -> None:
    source = Source(kafka)
    source.send(source.transaction(one=1, two=2))
    first = {"id": "00000027:00000001:ffff", "ts_ms": 1000}
    shown = shown_after_a_run(session, source, tmp_path)
    versions = newest_versions(tmp_path)
    exact = {"versions": versions, "exact": True}
    assert shown == {"complete": {**first, **exact}, "pending": 0, "waiting_for": []}
    written = [(first["id"], f"dbo.{name}", versions[f"dbo.{name}"], True) for name in ("one", "two")]
    assert consistent_rows(tmp_path) == written

    # The next one's END is there before the changes of one table: the broker of its partition is slow.
    second = source.transaction(one=2, two=1)
    source.send(second, without="two")
    shown = shown_after_a_run(session, source, tmp_path)
    # One table has moved on: whether its older version was exact is not known any more.
    assert shown == {"complete": {**first, **exact, "exact": False}, "pending": 1, "waiting_for": ["dbo.two"]}
    assert consistent_rows(tmp_path) == written  # nothing new is complete
    assert len(rows_of(tmp_path / "lake" / "dbo" / "one")) == 3
    note = tmp_path / "lake" / "_distributary" / "transactions" / f"{source.prefix}.json"
    noted = json.loads(note.read_text(encoding="utf-8"))
    assert (noted["next"], noted["complete"]) == (2, first)
    assert versions != newest_versions(tmp_path)

    # The note says where to go on, but nothing depends on it.
    note.write_text("{half of", encoding="utf-8")
    produce(kafka, second["two"])
    source.send(source.transaction(one=1))
    third = {"id": "00000027:00000003:ffff", "ts_ms": 3000}
    shown = shown_after_a_run(session, source, tmp_path)
    versions = newest_versions(tmp_path)
    assert shown == {"complete": {**third, "versions": versions, "exact": True}, "pending": 0, "waiting_for": []}
    # A reader of the newest one sees both tables with all transactions up to it and nothing else.
    assert [row for row in consistent_rows(tmp_path) if row[0] == third["id"]] == [
        (third["id"], f"dbo.{name}", versions[f"dbo.{name}"], True) for name in ("one", "two")
    ]
    assert json.loads(note.read_text(encoding="utf-8"))["next"] == 6


def test_a_batch_of_aborted_transactions_alone_leaves_a_table_as_it_is_and_the_service_goes_on(
    session: SparkSession, kafka: str, tmp_path: Path
) -> None:
    topic = Topic(f"aborted{random.randrange(10**9)}.dbo.t")
    create_topic(kafka, topic.name)
    producer = Producer({"bootstrap.servers": kafka, "transactional.id": topic.name})
    producer.init_transactions(30)
    status = ServiceStatus()

    def send(values: Mapping[int, str], end: Callable[[float], object]) -> None:
        producer.begin_transaction()
        for number, value in values.items():
            record = topic.change("u", {"id": number}, {"id": number, "v": value}, at=len(topic.records))
            producer.produce(topic.name, record.value, record.key)
        producer.flush(30)
        end(30)

    def taken_in_becomes(rows: dict[int, str], end: int) -> None:
        """All of the topic up to a marker, which may be written only after the end of its transaction was confirmed."""
        ends = {topic.name: {0: end}}

        def is_there() -> bool:
            table = status.table("dbo.t")
            return table is not None and table.next_offsets == ends

        wait_until(is_there, 240, lambda: f"{ends}, still {status.table('dbo.t')}")
        table = status.table("dbo.t")
        assert table is not None
        assert (table.state.value, table.error) == ("up_to_date", None)
        assert dict(rows_of(tmp_path / "lake" / "dbo" / "t", "id", "v")) == rows

    def play() -> None:
        try:
            send({1: "kept", 2: "kept"}, producer.commit_transaction)
            taken_in_becomes({1: "kept", 2: "kept"}, 3)
            for _ in range(2):
                send({1: "aborted", 3: "aborted"}, producer.abort_transaction)
            taken_in_becomes({1: "kept", 2: "kept"}, 9)
            send({2: "aborted"}, producer.abort_transaction)
            send({2: "later", 4: "later"}, producer.commit_transaction)
            taken_in_becomes({1: "kept", 2: "later", 4: "later"}, 14)
        finally:
            os.kill(os.getpid(), signal.SIGTERM)

    running = service(session, kafka, topic.name.split(".")[0], tmp_path, status)
    with ThreadPoolExecutor(1) as beside:
        played = beside.submit(play)
        assert running.run(once=False) == 0
    played.result()


@pytest.mark.parametrize("mode", ["history", "append"])
def test_3_9_rows_tell_the_transaction_of_their_change_in_all_batches(bench: Bench, mode: str) -> None:
    bench.rule = {"mode": mode, "transaction_columns": True}
    topic = Topic(bench.create().topic)
    topic.change("r", {"id": 1}, {"id": 1, "v": "a"}, at=1)
    topic.change("u", {"id": 1}, {"id": 1, "v": "b"}, at=2, transaction=("7", 3))
    bench.take(topic.records)
    bench.take([topic.change("u", {"id": 1}, {"id": 1, "v": "c"}, at=3, transaction=("8", 1))])
    assert rows_of(bench.table, "v", "__transaction_id", "__transaction_order") == [
        ("a", None, None),
        ("b", "7", 3),
        ("c", "8", 1),
    ]
    bench.rule = {"mode": mode}
    with pytest.raises(TableHalt, match="transactions-changed"):
        bench.take([topic.change("u", {"id": 1}, {"id": 1, "v": "d"}, at=4)])
