"""A record that stops its table is set aside, and the table continues with the next one."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from tests.support.ahead import Begun
from tests.support.changes import Topic
from tests.support.kafka import end_offsets, produce
from tests.support.spark import Bench, rows_of

from distributary.consume.kafka_errors import OFFSETS_GONE
from distributary.consume.offsets import OffsetRange
from distributary.consume.remaining import RemainingRecords
from distributary.consume.topics import TableId
from distributary.decode.decoder import Decoded, Decoder
from distributary.errors import TableHalt, TransientError
from distributary.halt_actions import ResumeAction
from distributary.ingest import raw_records
from distributary.quarantine.coordinates import RecordCoordinates
from distributary.quarantine.set_aside import SetAside, file_name, set_aside_path
from distributary.quarantine.table import Quarantine
from distributary.types.record_schema import RecordSchema
from distributary.workers.table_worker import TableWorker


@pytest.fixture
def aside(bench: Bench) -> SetAside:
    return SetAside(bench.session, bench.config())


def worker_with(bench: Bench, aside: SetAside) -> TableWorker:
    """A worker that passes over the records that are set aside."""
    context = bench.context()
    context = replace(context, set_aside=aside, records=RemainingRecords(context.records, aside.offsets))
    settings = context.config.settings_for("dbo", "t")
    assert settings is not None
    return TableWorker(context, TableId("dbo", "t"), bench.topic, settings, str(bench.table))


def set_aside(bench: Bench, aside: SetAside, offset: int, reason: str) -> None:
    """What the command writes, and what the service does now and then."""
    folder = Path(set_aside_path(bench.config()))
    folder.mkdir(parents=True)
    (folder / file_name(RecordCoordinates(bench.topic, 0, offset))).write_text(json.dumps({"reason": reason}))
    aside.read()


def test_6_3_a_record_that_is_set_aside_is_in_quarantine_and_the_table_is_past_it(
    bench: Bench, aside: SetAside, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench.create()
    decode = Decoder.decode

    def crashes(self: Decoder, raw: pa.Table, schema: RecordSchema) -> Decoded:
        if 1 in raw["offset"].to_pylist():
            raise RuntimeError("nobody thought of it")
        return decode(self, raw, schema)

    monkeypatch.setattr(Decoder, "decode", crashes)
    bench.rule = {"exclude": ["secret"]}
    worker = worker_with(bench, aside)
    topic = Topic(bench.topic)
    for index in range(3):
        topic.change("c", {"id": index}, {"id": index, "secret": "hidden"}, at=index + 1)
    produce(bench.kafka, topic.records)
    worker.set_target(end_offsets(bench.kafka, bench.topic))
    with pytest.raises(TableHalt, match="at these offsets"):
        worker.step()

    set_aside(bench, aside, 1, "it crashes")
    worker.resume(ResumeAction.RETRY)
    while worker.has_to_step():
        worker.step()
    assert bench.rows("id") == [(0,), (2,)]
    [(offset, reason, message, value)] = rows_of(bench.quarantine, "offset", "reason", "message", "value")
    assert (offset, reason, message) == (1, "set-aside", "set aside by an operator: it crashes")
    assert b"hidden" not in (value or b"")
    assert worker.progress is not None
    assert (dict(worker.progress.next), worker.progress.quarantined) == ({0: 3}, 1)

    worker.resume(ResumeAction.REPLAY)  # it is not to come back
    while worker.has_to_step():
        worker.step()
    worker.resume(ResumeAction.REBUILD)
    while worker.has_to_step():
        worker.step()
    assert bench.rows("id") == [(0,), (2,)]
    assert len(rows_of(bench.quarantine, "offset")) == 1


def test_an_error_while_a_batch_is_taken_names_its_offsets(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    bench.create()
    worker = bench.worker()

    def crashes(*_: object) -> None:
        raise RuntimeError("nobody thought of it")

    topic = Topic(bench.topic)
    topic.change("c", {"id": 1}, {"id": 1}, at=1)
    produce(bench.kafka, topic.records)
    worker.set_target(end_offsets(bench.kafka, bench.topic))
    monkeypatch.setattr(worker._parts.processor, "_process", crashes)
    with pytest.raises(TableHalt, match=rf"at these offsets of {bench.topic} by partition: 0: 0 to 0"):
        worker.step()


def test_6_3_a_record_that_is_set_aside_while_it_is_rejected_is_in_quarantine(
    bench: Bench, aside: SetAside, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Tasks do not keep records: rejected ones are read again, and this one can't be read any more."""
    monkeypatch.setattr(raw_records, "LOCAL_RECORDS", 1)
    bench.create()
    worker = worker_with(bench, aside)
    topic = Topic(bench.topic)
    for index in range(3):
        topic.change("c", {"id": index}, {"id": index}, at=index + 1)
    topic.add({"id": 3}, b"no JSON")
    produce(bench.kafka, topic.records)
    worker.set_target(end_offsets(bench.kafka, bench.topic))
    add = Quarantine.add

    def meanwhile(*given: Any) -> dict[str, int]:
        monkeypatch.setattr(Quarantine, "add", add)
        set_aside(bench, aside, 3, "as it came")
        return add(*given)

    monkeypatch.setattr(Quarantine, "add", meanwhile)
    with pytest.raises(TransientError, match="1 of 1 records of the batch are gone") as raised:
        worker.step()
    assert raised.value.code == OFFSETS_GONE
    while worker.has_to_step():
        worker.step()
    assert bench.rows("id") == [(0,), (1,), (2,)]
    assert rows_of(bench.quarantine, "offset", "reason") == [(3, "set-aside")]
    assert worker.progress is not None
    assert worker.progress.quarantined == 1


def test_6_3_a_record_that_is_set_aside_after_its_batch_began_is_in_quarantine(
    bench: Bench, aside: SetAside, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench.create()
    worker = worker_with(bench, aside)
    topic = Topic(bench.topic)
    for index in range(3):
        topic.change("c", {"id": index}, {"id": index}, at=index + 1)
    produce(bench.kafka, topic.records)
    worker.set_target(end_offsets(bench.kafka, bench.topic))
    within = SetAside.within

    def before_it_is_read(self: SetAside, batch: OffsetRange) -> dict[RecordCoordinates, str]:
        found = within(self, batch)
        monkeypatch.setattr(SetAside, "within", within)
        set_aside(bench, aside, 1, "while the batch is taken")
        return found

    monkeypatch.setattr(SetAside, "within", before_it_is_read)
    while worker.has_to_step():
        worker.step()
    assert bench.rows("id") == [(0,), (2,)]
    assert rows_of(bench.quarantine, "offset", "reason") == [(1, "set-aside")]
    assert worker.progress is not None
    assert worker.progress.quarantined == 1


@pytest.mark.bench(options={"trigger": {"max_records": 12}})
def test_6_3_a_record_set_aside_after_it_was_decoded_ahead_is_not_applied(
    bench: Bench, aside: SetAside, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(raw_records, "LOCAL_RECORDS", 0)
    begun = Begun(monkeypatch)
    bench.create()
    worker = worker_with(bench, aside)
    topic = Topic(bench.topic)
    for number in range(30):
        topic.change("c", {"id": number}, {"id": number}, at=number + 1)
    produce(bench.kafka, topic.records)
    worker.set_target(end_offsets(bench.kafka, bench.topic))
    worker.step()
    assert begun.begun == 1
    set_aside(bench, aside, 15, "unwanted")
    while worker.has_to_step():
        worker.step()
    assert bench.rows("id") == sorted(((number,) for number in range(30) if number != 15), key=repr)
    assert rows_of(bench.quarantine, "offset", "reason") == [(15, "set-aside")]
