"""Rule 3.9 through the service: real topics, real tables, and what is shown of both together."""

from __future__ import annotations

import json
import random
import signal
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml
from pyspark.sql import SparkSession
from tests.support.changes import Topic
from tests.support.kafka import Record, committed_offsets, create_topic, produce
from tests.support.spark import rows_of

from distributary.config import load
from distributary.consume.broker import Broker
from distributary.job import Service
from distributary.operate.recorder import Recorder
from distributary.operate.status import ServiceStatus


@pytest.fixture(autouse=True)
def handlers() -> Iterator[None]:
    """The service listens for signals: afterwards they do again what they did before."""
    before = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


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
        bounds: list[Mapping[str, Any]] = [{"status": "BEGIN", "id": id_}, {"status": "END", "id": id_, **end}]
        topic_name = f"{self.prefix}.transaction"
        records["bounds"] = [Record(topic_name, 0, None, json.dumps(value).encode()) for value in bounds]
        return records

    def send(self, records: Mapping[str, list[Record]], *, without: str = "") -> None:
        """Produces a transaction's records, those of one table left out."""
        produce(self.kafka, [record for name, some in records.items() if name != without for record in some])


def shown_after_a_run(session: SparkSession, source: Source, folder: Path) -> Any:
    """What /status shows of transactions after all that is in Kafka was taken in, by a service that starts anew."""
    config = {
        "version": 1,
        "kafka": {"bootstrap.servers": source.kafka},
        "source": {"topic_prefix": source.prefix},
        "target": {"path": str(folder / "lake")},
        "checkpoint": str(folder / "checkpoint"),
        "tables": [{"match": "*.*"}],
    }
    file = folder / "config.yaml"
    file.write_text(yaml.safe_dump(config), encoding="utf-8")
    loaded = load(file)
    status = ServiceStatus()
    assert Service(loaded, session, Broker(loaded.kafka_properties()), Recorder(status)).run(once=True) == 0
    lag_tools_see(source, status)
    return status.snapshot().get("transactions")


def lag_tools_see(source: Source, status: ServiceStatus) -> None:
    """What the tables have taken in stands in the consumer group, at the end of a run with `--once` too."""
    told = committed_offsets(source.kafka, f"distributary-{source.prefix}")
    taken = [offsets for table in status.tables() for offsets in table.next_offsets.items()]
    assert told == {(topic, p): offset for topic, partitions in taken for p, offset in partitions.items()}
    assert len(told) == 2


def test_3_9_up_to_which_transaction_all_tables_are_complete(session: SparkSession, kafka: str, tmp_path: Path) -> None:
    source = Source(kafka)
    source.send(source.transaction(one=1, two=2))
    first = {"id": "00000027:00000001:ffff", "ts_ms": 1000}
    shown = shown_after_a_run(session, source, tmp_path)
    assert shown == {"complete": first, "pending": 0, "waiting_for": []}

    # The next one's END is there before the changes of one table: the broker of its partition is slow.
    second = source.transaction(one=2, two=1)
    source.send(second, without="two")
    shown = shown_after_a_run(session, source, tmp_path)
    assert shown == {"complete": first, "pending": 1, "waiting_for": ["dbo.two"]}
    assert len(rows_of(tmp_path / "lake" / "dbo" / "one")) == 3
    note = tmp_path / "lake" / "_distributary" / "transactions" / f"{source.prefix}.json"
    noted = json.loads(note.read_text(encoding="utf-8"))
    assert (noted["next"], noted["complete"]) == (2, first)

    # The note says where to go on, but nothing depends on it.
    note.write_text("{half of", encoding="utf-8")
    produce(kafka, second["two"])
    source.send(source.transaction(one=1))
    third = {"id": "00000027:00000003:ffff", "ts_ms": 3000}
    shown = shown_after_a_run(session, source, tmp_path)
    assert shown == {"complete": third, "pending": 0, "waiting_for": []}
    assert json.loads(note.read_text(encoding="utf-8"))["next"] == 6
