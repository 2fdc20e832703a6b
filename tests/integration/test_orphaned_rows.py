"""Orphaned rows of an interrupted snapshot (rule 3.10): found, shown, and removed only on request."""

from __future__ import annotations

import json
from typing import Any

import pytest
from tests.support.changes import Topic, key, row
from tests.support.kafka import end_offsets, produce
from tests.support.spark import Bench

from distributary.errors import UsageError
from distributary.ingest.tables import ConfiguredTable, lake_path
from distributary.workers.reconcile import remove_orphaned_rows
from distributary.workers.table_worker import TableWorker


def snapshot(topic: Topic, at: int, *rows: tuple[int, int], ends: bool) -> list[Any]:
    """A snapshot's rows as (key, partition); `ends`: it was not interrupted."""
    marks = ["first", *["true"] * (len(rows) - 2), "last_in_data_collection" if ends else "true"]
    return [
        topic.change("r", key(n), row(n, f"read at {at}"), at=at, partition=p, snapshot=mark)
        for (n, p), mark in zip(rows, marks, strict=True)
    ]


def reconcile(bench: Bench, worker: TableWorker) -> int:
    config = bench.config()
    settings = config.settings_for("dbo", "t")
    assert settings is not None
    return remove_orphaned_rows(
        ConfiguredTable(worker.table, bench.topic, settings, lake_path(config, worker.table)), bench.session
    )


def shown(worker: TableWorker) -> int | None:
    status = worker.context.status.table("dbo.t")
    assert status is not None
    return status.orphaned_rows


@pytest.mark.parametrize(("connector", "deletes"), [("sqlserver", "hard"), ("postgresql", "soft")])
def test_3_10_what_an_interrupted_snapshot_left_over_is_shown_and_removed_on_request(
    bench: Bench, connector: str, deletes: str
) -> None:
    bench.rule = {"deletes": deletes}
    topic = Topic(bench.create(partitions=2).topic, connector)
    interrupted = snapshot(topic, 10, (1, 0), (2, 1), (3, 0), (4, 1), ends=False)
    long_before = 1_699_990_000_000
    interrupted.append(topic.change("u", key(3), row(3, "changed"), at=12, ts_ms=long_before))
    complete = snapshot(topic, 20, (1, 0), (2, 1), (5, 1), (6, 0), ends=True)
    changed = topic.change("c", key(7), row(7, "new"), at=25)
    worker = bench.take(interrupted)
    # The mark is in one partition, a row of the same snapshot in the other one: nothing is known yet.
    produce(bench.kafka, [*complete, changed])
    worker.set_target({0: end_offsets(bench.kafka, bench.topic)[0]})
    worker.step()
    assert shown(worker) is None
    with pytest.raises(UsageError, match="snapshot-not-taken-in"):
        reconcile(bench, worker)
    bench.take([], worker)
    assert shown(worker) == 2
    everything = [(1, "read at 20"), (2, "read at 20"), (3, "changed"), (4, "read at 10")]
    everything += [(5, "read at 20"), (6, "read at 20"), (7, "new")]
    alive = [r for r in everything if r[0] not in (3, 4)]

    def living() -> list[tuple[Any, ...]]:
        columns = ("id", "v", "__deleted") if deletes == "soft" else ("id", "v")
        return [tuple(r[:2]) for r in bench.rows(*columns) if deletes == "hard" or not r[2]]

    assert living() == everything  # nothing is removed by itself
    assert reconcile(bench, worker) == 2
    assert living() == alive
    assert len(bench.rows()) == (len(alive) if deletes == "hard" else len(everything))
    assert reconcile(bench, worker) == 0
    # Sent again, to the same worker: it goes on from the table's new head, and nothing comes back.
    bench.take([*interrupted, *complete], worker)
    assert living() == alive
    assert shown(worker) == 0
    # An incremental snapshot ends nothing, and a key that is inserted again is a row.
    again = Topic(bench.topic, connector)
    again.change("r", key(1), row(1, "read again"), at=40, snapshot="incremental")
    again.change("c", key(3), row(3, "back"), at=50)
    bench.take(again.records, worker)
    assert living() == sorted([*alive[1:], (1, "read again"), (3, "back")], key=repr)
    assert shown(worker) == 0


def test_3_10_a_row_of_a_transaction_that_was_open_at_the_snapshot_is_alive(bench: Bench) -> None:
    topic = Topic(bench.create().topic, "postgresql")
    snapshot(topic, 10, (1, 0), (2, 0), ends=False)
    snapshot(topic, 20, (2, 0), (3, 0), ends=True)
    # Written below the snapshot's lsn, committed after it; the snapshot may have been taken before its rows' time.
    topic.change("c", key(4), row(4, "written before"), at=15, ts_ms=1_700_000_021_000)
    topic.change("c", key(5), row(5, "written before"), at=16, ts_ms=1_700_000_019_000)
    worker = bench.take(topic.records)
    assert shown(worker) == 1
    assert reconcile(bench, worker) == 1
    assert [n for n, _ in bench.rows()] == [2, 3, 4, 5]
    bench.take(topic.records[:2], worker)  # sent again
    assert [n for n, _ in bench.rows()] == [2, 3, 4, 5]


def test_3_10_a_row_without_an_envelope_ends_a_snapshot_where_a_field_says_so(bench: Bench) -> None:
    topic = Topic(bench.create().topic)
    for number, at, mark in ((1, 10, "true"), (2, 10, "true"), (1, 20, "last")):
        place = {"__commit_lsn": f"00000027:{at:08x}:ffff", "__change_lsn": None}
        value = {**row(number, at), "__op": "r", "__snapshot": mark, **place}
        topic.add(key(number), json.dumps(value).encode())
    worker = bench.take(topic.records)
    assert bench.rows() == [(1, 20), (2, 10)]
    assert shown(worker) == 1


def test_2_4_and_3_10_snapshot_rows_that_are_sent_again_and_such_that_can_not_be_read(bench: Bench) -> None:
    topic = Topic(bench.create().topic)
    rows = snapshot(topic, 10, (1, 0), (2, 0), ends=True)
    worker = bench.take(rows)
    # 3.10: a first snapshot that was not interrupted costs neither a look at the table nor a commit of its own.
    assert shown(worker) == 0
    assert worker.head is not None
    assert worker.head.version == 1
    bench.take([topic.change("d", key(1), at=11)], worker)
    bench.take(rows[:1], worker)
    assert [n for n, _ in bench.rows()] == [2]
    # A row of the next snapshot can't be read: its key would be taken for one that the source does not have.
    again = Topic(bench.topic)
    snapshot(again, 20, (2, 0), (3, 0), ends=True)
    again.records[0] = again.records[0]._replace(value=b'{"op": "r"')
    bench.take(again.records, worker)
    assert shown(worker) is None
    with pytest.raises(UsageError, match="snapshot-incomplete"):
        reconcile(bench, worker)
    assert [n for n, _ in bench.rows()] == [2, 3]
