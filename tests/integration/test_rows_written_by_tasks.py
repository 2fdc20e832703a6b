"""A table is the same whether Spark's tasks write rows of its batches into data files, or the driver writes all."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any

import pyarrow as pa
import pytest
from tests.support import spark
from tests.support.changes import Topic, key
from tests.support.lake import read_table
from tests.support.spark import Bench

from distributary.delta.live_file import LiveFile
from distributary.ingest import raw_records, task_writer
from distributary.ingest.task_files import WrittenFiles

Batch = Callable[[Topic], None]


def snapshot(topic: Topic) -> None:
    """Rows of a snapshot, a record that is none, and a row twice."""
    for number in range(1, 41):
        topic.change("r", key(number), values(number, "read"), at=1)
    topic.add(key(50), b"no json")
    topic.change("r", key(7), values(7, "read"), at=1)


def snapshot_and_changes(topic: Topic) -> None:
    """The rest of the snapshot in both partitions, then changes of some of its rows."""
    for number in range(51, 81):
        topic.change("r", key(number), values(number, "read"), at=1, partition=1)
    for index, number in enumerate((60, 61, 60), 10):
        topic.change("u", key(number), values(number, f"changed {index}"), at=index, partition=1)
    for index, number in enumerate((3, 4), 20):
        topic.change("u", key(number), values(number, "changed"), at=index)
    for index, number in enumerate((5, 6), 30):
        topic.change("d", key(number), at=index)
        topic.tombstone(key(number))


def inserts(topic: Topic) -> None:
    """Nothing but inserts."""
    for number in range(100, 140):
        topic.change("c", key(number), values(number, "made"), at=number)


def second_snapshot(topic: Topic) -> None:
    """All rows are read once more; most are as they were."""
    for number in [*range(1, 5), *range(7, 41), *range(51, 81)]:
        topic.change("r", key(number), values(number, "read again"), at=200, partition=int(number > 50))


def truncate(topic: Topic) -> None:
    """Rows of a snapshot, a truncate, and rows after it."""
    for number in range(300, 330):
        topic.change("r", key(number), values(number, "read"), at=250)
    topic.change("t", None, at=260)
    for number in range(400, 430):
        topic.change("c", key(number), values(number, "made"), at=number)


BATCHES: Sequence[Batch] = (snapshot, snapshot_and_changes, inserts, second_snapshot, truncate)


def values(number: int, text: str) -> dict[str, Any]:
    return {"id": number, "v": text, "secret": f"s{number}", "more": {"a": number / 7}, "group": number % 2}


COLUMNS = {"id": "bigint", "v": "string", "secret": "string", "more": "struct<a: double>", "group": "int"}
RULES: Mapping[str, tuple[Mapping[str, Any], bool]] = {
    "plain": ({}, True),
    "rewritten files": ({"layout": "rewrite"}, True),
    "vectors": ({"layout": "vectors"}, True),
    "soft deletes": ({"deletes": "soft", "truncate": "soft"}, True),
    "other columns": ({"exclude": ["more"], "rename": {"v": "text"}, "mask": {"secret": "redact"}}, True),
    "mapped columns": ({"properties": {"delta.columnMapping.mode": "name"}}, True),
    "change data feed": ({"properties": {"delta.enableChangeDataFeed": "true"}}, True),
    "partitions": ({"partition_by": ["group"]}, False),
    "history": ({"mode": "history"}, False),
    "append": ({"mode": "append"}, False),
}
"""By name the table's settings, and whether tasks may write its rows."""


class Seen:
    """How many files tasks wrote, and how many of them came into the table."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.written = self.used = 0
        committing = WrittenFiles.committing

        def counted(files: WrittenFiles, used: Sequence[int]) -> AbstractContextManager[list[LiveFile]]:
            self.written += len(files.files)
            self.used += len(used)
            return committing(files, used)

        monkeypatch.setattr(WrittenFiles, "committing", counted)


@pytest.fixture
def seen(monkeypatch: pytest.MonkeyPatch) -> Seen:
    """All batches are decoded by tasks, and all that a task may write is enough for a file."""
    monkeypatch.setattr(raw_records, "LOCAL_RECORDS", 0)
    monkeypatch.setattr(task_writer, "LEAST_BYTES", 1)
    return Seen(monkeypatch)


def play(bench: Bench, batches: Sequence[Batch]) -> list[tuple[Any, ...]]:
    """What the table holds after each batch, by a reader that is not ours."""
    bench.create(partitions=2)
    topic, worker, tables = Topic(bench.topic), None, []
    for batch in batches:
        topic.records.clear()
        batch(topic)
        worker = bench.take(topic.records, worker)
        tables.append(rows_of(bench))
    return tables


def rows_of(bench: Bench) -> tuple[Any, ...]:
    table = read_table(bench.table)
    assert isinstance(table, pa.Table)
    columns = [name for name in table.column_names if name != "__topic"]
    return tuple(sorted(json.dumps(row, default=str) for row in table.select(columns).to_pylist()))


def test_tasks_stop_writing_rows_of_a_table_once_most_had_to_be_read_back(
    make_bench: Callable[..., Bench], seen: Seen
) -> None:
    bench = make_bench(columns=COLUMNS).create(partitions=2)
    topic = Topic(bench.topic)
    snapshot(topic)
    worker = bench.take(topic.records)
    written = seen.written
    assert 0 < seen.used < written
    topic.records.clear()
    snapshot_and_changes(topic)
    bench.take(topic.records, worker)
    assert seen.written > written
    written = seen.written
    topic.records.clear()
    inserts(topic)
    bench.take(topic.records, worker)
    assert seen.written == written
    # A new process tries again.
    topic.records.clear()
    for number in range(500, 520):
        topic.change("c", key(number), values(number, "made"), at=number)
    bench.take(topic.records)
    assert seen.written > written


def test_a_record_with_a_wrong_position_is_not_in_the_table_though_a_task_wrote_its_row(
    make_bench: Callable[..., Bench], seen: Seen
) -> None:
    bench = make_bench(columns=COLUMNS).create()
    topic = Topic(bench.topic)
    topic.change("c", key(1), values(1, "made"), at=100)
    topic.change("c", key(2), values(2, "wrong"), at=50, ts_ms=5_680_281_600_000)
    topic.change("c", key(3), values(3, "made"), at=110)
    bench.take(topic.records)
    assert seen.written > seen.used
    assert bench.rows("id", "v") == [(1, "made"), (3, "made")]
    assert spark.rows_of(bench.quarantine, "offset", "reason") == [(1, "contradicted-position")]


@pytest.mark.parametrize("name", RULES)
def test_tables_are_the_same_whoever_writes_their_rows(
    make_bench: Callable[..., Bench], seen: Seen, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    rule, may_write = RULES[name]
    by_tasks = make_bench(columns=COLUMNS, **rule)
    tables = play(by_tasks, BATCHES)
    assert (seen.written > 0, seen.used > 0) == (may_write, may_write)
    files = {path.name for path in by_tasks.table.rglob("*.parquet") if "_delta_log" not in str(path)}
    written = seen.written

    monkeypatch.setattr(task_writer, "LEAST_BYTES", 2**40)
    assert play(make_bench(columns=COLUMNS, **rule), BATCHES) == tables
    assert seen.written == written
    # Files that did not come into the table are not left behind.
    assert files == {name for name in files if name in logged(by_tasks)}


def logged(bench: Bench) -> str:
    """All that the table's log says."""
    return "\n".join(path.read_text("utf-8") for path in sorted((bench.table / "_delta_log").glob("*.json")))
