"""The rules of what a table must equal, each on a topic and a real Delta table. Names give the rule's number."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest
from deltalake import write_deltalake
from structlog.testing import capture_logs
from tests.support.changes import BOOLEAN, LONG, TEXT, Row, Topic, key, row
from tests.support.kafka import delete_records, produce
from tests.support.spark import Bench, rows_of

from distributary.consume.offsets import OffsetRange
from distributary.control.overview import overview
from distributary.errors import TableHalt, TransientError
from distributary.halt_actions import ResumeAction
from distributary.ingest import raw_records
from distributary.ingest.task_records import TaskRecords

FUTURE = 5_680_281_600_000
"""A source time in the year 2150."""


def test_1_1_and_1_2_records_are_told_apart_by_their_form_and_operation(bench: Bench) -> None:
    topic = Topic(bench.create().topic)
    for number in range(1, 5):
        topic.change("c", key(number), row(number, "bare"), at=number)
    envelope = Topic(bench.topic).change("c", key(5), row(5, "under payload"), at=5).value or b""
    topic.add(key(5), b'{"schema": null, "payload": ' + envelope + b"}")
    topic.add(key(1), b"null")
    topic.add(key(2), b'{"schema": null, "payload": null}')
    topic.tombstone(key(3))
    topic.change("m", key(4), at=6)  # a logical message: passed over
    topic.change("z", key(4), row(4, "what is that?"), at=7)
    worker = bench.take(topic.records)
    assert bench.rows() == [(4, "bare"), (5, "under payload")]
    assert rows_of(bench.quarantine, "offset", "reason") == [(9, "unknown-operation")]
    assert worker.lag() == 0


def test_3_5_a_key_change_that_db2_for_zos_sends_as_an_update_leaves_the_old_row(bench: Bench) -> None:
    topic = Topic(bench.create().topic, connector="db2")
    topic.change("c", key(1), row(1, "old key"), at=1)
    topic.change("u", key(2), row(2, "new key"), at=2)
    bench.take(topic.records)
    assert bench.rows() == [(1, "old key"), (2, "new key")]


def test_2_8_the_table_does_not_depend_on_how_records_were_cut(make_bench: Callable[..., Bench]) -> None:
    source = Topic("")
    _random_history(source, random.Random(7), changes=60)
    tables = []
    for at_most in (1_000, 20):
        bench = make_bench({"trigger": {"max_records": at_most}})
        bench.create().take(r._replace(topic=bench.topic) for r in source.records)
        tables.append(bench.rows())
    assert tables[0] == tables[1]
    assert tables[0]


def _random_history(topic: Topic, chance: random.Random, changes: int) -> None:
    alive: set[int] = set()
    for index in range(1, changes + 1):
        number = chance.randrange(8)
        if number in alive and chance.random() < 0.4:
            topic.change("d", key(number), at=index)
            topic.tombstone(key(number))
            alive.discard(number)
        else:
            topic.change("u" if number in alive else "c", key(number), row(number, index), at=index)
            alive.add(number)


def ambiguous_deletes(bench: Bench) -> int:
    """The output of `status`."""
    config = bench.config()
    [table] = overview(config, bench.client(config))
    return table.ambiguous_deletes


@pytest.mark.parametrize("cut", [0, 1, 2], ids=["one batch", "before the truncate", "after the truncate"])
@pytest.mark.parametrize("truncate", ["apply", "soft"])
@pytest.mark.parametrize("deletes", ["hard", "soft"])
def test_2_7_and_2_8_a_truncated_row_stays_away_when_another_passes_through_its_key(
    bench: Bench, deletes: str, truncate: str, cut: int
) -> None:
    bench.rule = {"deletes": deletes, "truncate": truncate}
    topic = Topic(bench.create().topic, connector="postgresql")
    topic.change("c", key(1), row(1, "before the truncate"), at=30)
    topic.change("t", None, at=50)
    topic.change("c", key(2), row(2, "moves"), at=60)
    for step, old in enumerate((2, 1), start=1):  # one transaction: id = 1, then id = 0
        topic.change("d", key(old), at=70, step=step, headers={"newkey": key(old - 1)})
        topic.tombstone(key(old))
        topic.change("c", key(old - 1), row(old - 1, "moves"), at=70, step=step, headers={"oldkey": key(old)})
    worker = bench.take(topic.records[:cut]) if cut else None
    bench.take(topic.records[cut:], worker)
    if deletes == "soft":
        expected = [(0, "moves", False), (1, "moves", True), (2, "moves", True)]
        assert bench.rows("id", "v", "__deleted") == expected
    else:
        assert bench.rows("id", "v") == [(0, "moves")]


@pytest.mark.parametrize("deletes", ["hard", "soft"])
@pytest.mark.parametrize("cut", [0, 2, 4, 6], ids=str)
def test_3_6_and_2_8_a_soft_truncate_marks_what_its_own_transaction_moved_before(
    bench: Bench, cut: int, deletes: str
) -> None:
    bench.rule = {"deletes": deletes, "truncate": "soft"}
    topic = Topic(bench.create().topic, connector="postgresql")
    for number in (1, 2):
        topic.change("c", key(number), row(number, f"row {number}"), at=1, step=number)
    for number in (1, 2):  # one transaction: UPDATE t SET id = id + 1; TRUNCATE t
        topic.move(number, number + 1, row(number + 1, f"row {number}"), at=20, step=number, tx=77)
    topic.change("t", None, at=20, step=3, tx=77)
    worker = bench.take(topic.records[:cut]) if cut else None
    bench.take(topic.records[cut:], worker)
    old = [(1, "row 1", True)] if deletes == "soft" else []
    assert bench.rows("id", "v", "__deleted") == [*old, (2, "row 1", True), (3, "row 2", True)]


def test_2_7_without_headers_deletes_that_nothing_decides_are_counted(bench: Bench) -> None:
    topic = Topic(bench.create().topic, connector="postgresql")
    for number in (1, 2, 3):
        topic.change("c", key(number), row(number, f"row {number}"), at=1, step=number)
    worker = bench.take(topic.records)
    moves = Topic(bench.topic, connector="postgresql")
    for number in (1, 2, 3):  # one transaction: UPDATE t SET id = id + 1
        moves.change("d", key(number), at=20, step=2 * number, tx=77)
        moves.change("c", key(number + 1), row(number + 1, f"row {number}"), at=20, step=2 * number + 1, tx=77)
    bench.take(moves.records, worker)
    assert bench.rows() == [(4, "row 3")]  # by their positions the deletes of 2 and 3 are the later ones
    assert ambiguous_deletes(bench) == 0  # more of the transaction may come
    other = Topic(bench.topic, connector="postgresql")
    for number in (7, 8):  # created and deleted in one transaction, there was no row before
        other.change("c", key(number), row(number, "short"), at=30, step=2 * number, tx=78)
        other.change("u", key(number), row(number, "life"), at=30, step=2 * number + 1, tx=78)
        other.change("d", key(number), at=30, step=2 * number + 2, tx=78)
    other.change("c", key(5), row(5, "old"), at=31)
    other.change("c", key(5), row(5, "new"), at=32, tx=80)
    other.change("u", key(5), row(5, "newer"), at=32, step=2, tx=80)
    other.change("d", key(5), at=32, step=3, tx=80)  # was a row before, in the same batch
    other.change("c", key(6), row(6, "one"), at=33)
    other.change("d", key(6), at=34)  # in another transaction
    bench.take(other.records, worker)
    assert ambiguous_deletes(bench) == 3
    bench.take([*topic.records, *moves.records, *other.records], worker)  # sent again
    bench.take([*moves.records, *other.records])
    assert ambiguous_deletes(bench) == 3
    assert bench.rows() == [(4, "row 3")]


def test_3_6_a_truncate_goes_by_position_not_by_arrival(bench: Bench) -> None:
    bench.create(partitions=2)
    topic = Topic(bench.topic, connector="postgresql")
    for number in (1, 2):
        topic.change("c", key(number), row(number, "before"), at=10, step=number)
    topic.change("c", key(3), row(3, "after"), at=30)  # arrives before the truncate, was written after it
    worker = bench.take(topic.records)
    truncate = Topic(bench.topic, connector="postgresql")
    truncate.change("t", None, at=20, partition=1)
    bench.take(truncate.records, worker)
    assert bench.rows() == [(3, "after")]
    late = Topic(bench.topic, connector="postgresql")
    late.change("u", key(2), row(2, "late"), at=15)
    late.change("u", key(3), row(3, "later"), at=40)
    bench.take([*late.records, *truncate.records])
    assert bench.rows() == [(3, "later")]


@pytest.mark.parametrize("rule", [{}, {"deletes": "soft"}], ids=["hard", "soft"])
def test_3_6_and_3_3_a_tombstone_after_a_delete_that_is_older_than_a_truncate_takes_nothing(
    bench: Bench, rule: dict[str, str]
) -> None:
    bench.rule = rule
    topic = Topic(bench.create().topic)
    for number in (1, 2):
        topic.change("c", key(number), row(number, "first"), at=number)
        topic.change("d", key(number), at=number + 2)
        topic.tombstone(key(number))
    topic.change("t", None, at=6)
    topic.change("c", key(1), row(1, "second"), at=7)
    worker = bench.take(topic.records)
    assert bench.rows() == [(1, "second")]
    again = Topic(bench.topic)
    again.change("t", None, at=8)
    again.change("c", key(2), row(2, "second"), at=9)
    bench.take([*again.records, *topic.records[1:3], *topic.records[4:]], worker)
    assert bench.rows() == [(2, "second")]


@pytest.mark.parametrize("together", [True, False])
def test_3_6_and_2_8_a_delete_after_a_truncate_keeps_no_row_that_the_truncate_took(
    bench: Bench, *, together: bool
) -> None:
    bench.rule = {"deletes": "soft"}
    topic = Topic(bench.create().topic)
    topic.change("c", key(1), row(1, "before"), at=1)
    worker = bench.take(topic.records)
    later = Topic(bench.topic)
    later.change("t", None, at=2)
    later.change("d", key(1), at=3)
    for part in [later.records] if together else [later.records[:1], later.records[1:]]:
        bench.take(part, worker)
    assert bench.rows() == []


def test_3_7_the_log_counts_values_that_were_never_sent(bench: Bench) -> None:
    topic = Topic(bench.create().topic, "postgresql")
    topic.change("u", key(1), {**row(1, "new"), "v": "__debezium_unavailable_value"}, at=2)
    with capture_logs() as logs:
        bench.take(topic.records)
    assert bench.rows() == [(1, None)]
    assert [log["values"] for log in logs if log["event"].startswith("no earlier record and no row has")] == [1]


def test_2_5_a_topic_that_grew_before_its_table_was_first_read_leaves_no_older_row(
    make_bench: Callable[..., Bench],
) -> None:
    """The delete of a row is in partition 1, its row of the snapshot in partition 0, behind many others."""
    bench = make_bench({"trigger": {"max_records": 4}}).create(partitions=2)
    topic = Topic(bench.topic)
    for number in range(10):
        topic.change("r", key(number), row(number, "old"), at=2, snapshot="true", partition=0)
    topic.change("d", key(9), at=20, before=row(9, "old"), partition=1)
    for number in range(5):
        topic.change("u", key(number), row(number, "new"), at=21 + number, partition=1)
    bench.take([one._replace(timestamp=1_800_000_000_000 + n) for n, one in enumerate(topic.records)])
    assert bench.rows() == sorted((number, "new" if number < 5 else "old") for number in range(9))


def test_3_6_a_soft_truncate_marks_what_is_older(bench: Bench) -> None:
    bench.rule = {"truncate": "soft"}
    bench.create(partitions=3)
    topic = Topic(bench.topic, "postgresql")
    topic.change("c", key(1), row(1, "before"), at=10)
    topic.change("c", key(3), row(3, "after"), at=30)
    worker = bench.take(topic.records)
    truncate = Topic(bench.topic, "postgresql")
    truncate.change("t", None, at=20, partition=1)
    bench.take(truncate.records, worker)
    late = Topic(bench.topic, "postgresql")
    late.change("c", key(2), row(2, "late"), at=15, partition=2)
    late.change("u", key(3), row(3, "later"), at=40)
    bench.take([*late.records, *truncate.records], worker)
    assert bench.rows("id", "v", "__deleted") == [(1, "before", True), (2, "late", True), (3, "later", False)]


@pytest.mark.parametrize("deletes", ["hard", "soft"])
def test_3_6_and_2_4_rows_that_moved_and_were_marked_by_a_truncate_stay_so_when_all_is_sent_again(
    bench: Bench, deletes: str
) -> None:
    bench.rule = {"deletes": deletes, "truncate": "soft"}
    topic = Topic(bench.create().topic, "postgresql")
    for number in (1, 2):
        topic.change("c", key(number), row(number, f"row {number}", big=f"big {number}"), at=1, step=number)
    worker = bench.take(topic.records)
    shift = Topic(bench.topic, "postgresql")
    for number in (1, 2):  # UPDATE t SET id = id + 1, without the large value
        moved = row(number + 1, f"row {number}", big="__debezium_unavailable_value")
        shift.move(number, number + 1, moved, at=20, step=number + 1, tx=77)
    truncate = Topic(bench.topic, "postgresql")
    truncate.change("t", None, at=30, tx=78)
    old = [(1, "row 1", "big 1", True)] if deletes == "soft" else []
    expected = [*old, (2, "row 1", "big 1", True), (3, "row 2", "big 2", True)]
    for records in (shift.records[:2], shift.records[2:], truncate.records):
        bench.take(records, worker)
    for start in (2, 0):  # sent again
        bench.take([*shift.records[start:], *truncate.records], worker)
    assert bench.rows("id", "v", "big", "__deleted") == expected


@pytest.mark.parametrize(("before", "now"), [({}, {"deletes": "soft"}), ({"truncate": "soft"}, {})])
def test_3_2_a_table_whose_deleted_rows_would_be_kept_otherwise_halts_until_it_is_filled_again(
    bench: Bench, before: Row, now: Row
) -> None:
    bench.rule = before
    topic = Topic(bench.create().topic)
    topic.change("c", key(1), row(1, "first"), at=1)
    bench.take(topic.records)
    topic.change("u", key(1), row(1, "second"), at=2)
    bench.rule = now
    with pytest.raises(TableHalt, match="deletes-changed"):
        bench.take(topic.records[1:])
    assert bench.rows() == [(1, "first")]
    worker = bench.worker()
    worker.resume(ResumeAction.REBUILD)
    bench.take([], worker)
    assert bench.rows("id", "v", *(["__deleted"] if now else [])) == [(1, "second", *([False] if now else []))]


def test_2_6_a_source_that_went_back_halts_and_a_higher_epoch_goes_on(bench: Bench) -> None:
    topic = Topic(bench.create().topic)
    topic.change("c", key(1), row(1, "first"), at=100)
    bench.take(topic.records)
    restored = Topic(bench.topic)
    restored.change("u", key(1), row(1, "after the restore"), at=50, ts_ms=1_700_000_999_000)
    with pytest.raises(TableHalt, match="source-went-back") as halt:
        bench.take(restored.records)
    assert "00000027:00000032" in str(halt.value)
    assert "epoch: 1" in halt.value.fix
    assert bench.rows() == [(1, "first")]
    bench.rule = {"epoch": 1}
    bench.take([])
    assert bench.rows() == [(1, "after the restore")]


def test_2_6_a_batch_in_which_the_source_went_back_is_taken_up_to_there(bench: Bench) -> None:
    """`epoch` is of a whole batch: it must not be that of what came before."""
    topic = Topic(bench.create(2).topic)
    later = 1_700_000_999_000
    for number in (1, 2):
        topic.change("c", key(number), row(number, "first"), at=100 + number, partition=number - 1)
        topic.change("u", key(number), row(number, "before the restore"), at=110 + number, partition=number - 1)
    topic.change("u", key(1), row(1, "after the restore"), at=50, ts_ms=later)
    topic.change("u", key(1), row(1, "last"), at=60, ts_ms=later + 10_000)
    topic.change("d", key(2), at=55, ts_ms=later + 5_000, partition=1)
    with pytest.raises(TableHalt, match="source-went-back") as halt:
        bench.take(topic.records)
    assert "offset 2 of" in str(halt.value)
    assert bench.rows() == [(1, "before the restore"), (2, "before the restore")]
    bench.rule = {"epoch": 1}
    bench.take([])
    assert bench.rows() == [(1, "last")]


def test_2_6_a_wrong_position_with_a_time_in_the_future_goes_to_quarantine_and_stays_there(bench: Bench) -> None:
    topic = Topic(bench.create().topic)
    for number in (1, 2):
        topic.change("c", key(number), row(number, "first"), at=98 + number)
    topic.change("d", key(1), at=101)
    bench.take(topic.records)
    wrong = Topic(bench.topic)
    wrong.change("u", key(1), row(1, "wrong"), at=50, ts_ms=FUTURE)
    worker = bench.take(wrong.records)
    assert worker.progress is not None
    assert worker.progress.quarantined == 1
    worker.resume(ResumeAction.REPLAY)  # it would bring back a deleted row
    later = Topic(bench.topic)
    later.change("u", key(2), row(2, "later"), at=110)
    bench.take(later.records, worker)
    assert bench.rows() == [(2, "later")]
    assert rows_of(bench.quarantine, "offset", "reason", "replayed_at") == [(3, "contradicted-position", None)]


def test_2_6_wrong_positions_have_no_effect_whatever_else_is_wrong(bench: Bench) -> None:
    bench.rule = {"columns": {"n": "int"}}
    topic = Topic(bench.create().topic)
    topic.change("c", key(1), row(1, "first", n=1), at=100)
    topic.change("c", key(2), row(2, "first", n=1), at=101)
    topic.change("u", key(1), row(1, "wrong", n="no number"), at=50, ts_ms=FUTURE)
    topic.change("d", key(2), at=51, ts_ms=FUTURE)
    topic.tombstone(key(2))
    topic.change("c", key(3), row(3, "later", n=1), at=110)
    bench.take(topic.records)
    assert bench.rows("id", "v") == [(1, "first"), (2, "first"), (3, "later")]
    reasons = [(2, "bad-value"), (3, "contradicted-position")]
    assert rows_of(bench.quarantine, "offset", "reason") == reasons


def test_2_6_a_wrong_position_before_a_source_that_went_back_is_not_taken_for_it(bench: Bench) -> None:
    topic = Topic(bench.create().topic)
    topic.change("c", key(1), row(1, "first"), at=100)
    topic.change("u", key(1), row(1, "wrong"), at=50, ts_ms=FUTURE)
    topic.change("u", key(1), row(1, "after the restore"), at=60, ts_ms=1_700_000_100_500)
    topic.change("c", key(2), row(2, "later"), at=110)
    with pytest.raises(TableHalt, match="offset 2 of"):
        bench.take(topic.records)
    assert rows_of(bench.quarantine, "offset", "reason") == [(1, "contradicted-position")]
    bench.rule = {"epoch": 1}
    bench.take([])
    assert bench.rows() == [(1, "after the restore"), (2, "later")]
    assert len(rows_of(bench.quarantine, "offset")) == 1


def test_2_6_a_wrong_position_behind_a_source_that_went_back_is_decided_after_it(bench: Bench) -> None:
    topic = Topic(bench.create().topic)
    topic.change("c", key(1), row(1, "first"), at=100)
    topic.change("u", key(1), row(1, "after the restore"), at=60, ts_ms=1_700_000_100_500)
    topic.change("u", key(1), row(1, "wrong"), at=50, ts_ms=FUTURE)
    topic.change("c", key(2), row(2, "later"), at=110)
    with pytest.raises(TableHalt, match="offset 1 of"):
        bench.take(topic.records)
    assert not bench.quarantine.exists()
    bench.rule = {"epoch": 1}
    bench.take([])
    assert bench.rows() == [(1, "after the restore"), (2, "later")]
    assert rows_of(bench.quarantine, "offset", "reason") == [(2, "contradicted-position")]


def test_2_6_a_delete_with_a_wrong_position_deletes_no_row_whose_key_has_a_null(bench: Bench) -> None:
    bench.rule = {"key": ["id", "v"]}
    topic = Topic(bench.create().topic)
    whole = {"id": 1, "v": None}
    topic.change("c", whole, {**whole, "n": 1}, at=100)
    topic.change("d", whole, at=50, ts_ms=FUTURE)
    topic.tombstone(whole)
    topic.change("c", {"id": 2, "v": "b"}, {"id": 2, "v": "b", "n": 2}, at=110)
    bench.take(topic.records)
    assert bench.rows("id", "v", "n") == [(1, None, 1), (2, "b", 2)]
    assert rows_of(bench.quarantine, "offset", "reason") == [(1, "contradicted-position")]


def test_1_6_a_row_of_another_key_than_its_records_replaces_no_row(bench: Bench) -> None:
    """Nor does a batch fail that has changes of both keys."""
    topic = Topic(bench.create().topic)
    topic.change("c", key(1), row(1, "first"), at=100)
    topic.change("c", key(2), row(2, "second"), at=101)
    topic.change("u", key(1), row(2, "of another key"), at=102)
    topic.change("d", key(2), at=103)
    topic.change("c", key(3), row(3, "third"), at=104)
    bench.take(topic.records)
    assert bench.rows() == [(1, "first"), (3, "third")]
    assert rows_of(bench.quarantine, "offset", "reason") == [(2, "other-key")]


def test_5_1_new_columns_are_added_and_a_type_that_does_not_fit_is_quarantined(bench: Bench) -> None:
    topic = Topic(bench.create().topic)
    topic.change("c", key(1), row(1, "a"), at=1)
    topic.change("c", key(2), {"id": 2, "v": "b", "n": 5, "with space": True}, at=2)
    topic.change("c", key(3), {"id": 3, "v": "c", "n": "not a number"}, at=3)
    topic.change("u", key(1), {"id": 1, "n": 7}, at=4)  # v is no longer sent
    for part in (topic.records[:1], topic.records[1:2], topic.records[2:]):
        bench.take(part)
    assert bench.rows("id", "v", "n", "with space") == [(1, None, 7, None), (2, "b", 5, True)]
    ((reason, message),) = rows_of(bench.quarantine, "reason", "message")
    assert reason == "bad-value"
    assert "n" in message


def test_5_1_a_column_that_is_ignored_puts_no_record_into_quarantine_and_halts_no_table(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SALT", "a salt of a good length for this")
    rule = {"schema_changes": "ignore", "columns": {"n": "int", "s": "struct<a:int>"}, "mask": {"m": "hash"}}
    bench.rule, bench.options = rule, {"masking": {"salt": "${env:SALT}"}}
    topic = Topic(bench.create().topic)
    topic.change("c", key(1), row(1, "before"), at=1)
    worker = bench.take(topic.records)
    ignored: list[Row] = [{"n": 1, "s": {"a": 1}}, {"n": "no number"}, {"s": "no struct"}, {"n": 2**40, "s": None}]
    for at, more in enumerate(ignored, start=2):
        topic.change("u", key(at), {**row(at, "after"), **more}, at=at)
    for at, kind in enumerate((LONG, BOOLEAN), start=10):
        topic.with_schema(
            topic.change("c", key(at), {**row(at, "after"), "m": 1}, at=at), {"id": LONG, "v": TEXT, "m": kind}
        )
    bench.take(topic.records[1:], worker)
    assert bench.rows() == sorted([(1, "before"), *((at, "after") for at in (2, 3, 4, 5, 10, 11))], key=repr)
    assert not bench.quarantine.exists()


def test_6_3_what_can_not_be_applied_lies_in_quarantine_once_and_its_neighbours_are_applied(bench: Bench) -> None:
    topic = Topic(bench.create().topic)
    topic.change("c", key(1), row(1, "good"), at=1)
    topic.add(key(1), b'{"op": "u", "after": {"id": 1')
    topic.add(key(1), b"\xff\xfe")
    topic.add(None, topic.change("c", key(5), row(5, "x"), at=2).value)
    topic.records[-2] = topic.records[-1]
    topic.change("z", key(1), row(1, "unknown operation"), at=3)
    topic.change("u", key(1), row(1, "better"), at=4)
    worker = bench.take(topic.records)
    assert bench.rows() == [(1, "better")]
    reasons = [reason for (reason,) in rows_of(bench.quarantine, "reason")]
    assert sorted(reasons) == ["no-key", "no-key", "not-json", "not-utf8", "unknown-operation"]
    values = [value for (value,) in rows_of(bench.quarantine, "value")]
    assert b"\xff\xfe" in values
    # The batch is taken again before its commit came about: nothing is in quarantine twice.
    assert worker.head is not None
    bench.context().quarantine.add("dbo.t", *_bad_again(bench))
    assert len(rows_of(bench.quarantine, "reason")) == 5


def _bad_again(bench: Bench) -> tuple[Any, Any]:
    raw = bench.context().records.fetch(OffsetRange(bench.topic, {0: 1}, {0: 2}), 10**6).records
    bad = pa.table({"partition": [0], "offset": [1], "reason": ["not-json"], "message": [""]})
    return lambda _: [raw], bad


def test_a_large_batch_is_decoded_by_spark_and_a_small_one_in_the_driver(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    topic = Topic(bench.create().topic)
    for number in range(1, 9):
        topic.change("c", key(number), row(number, number), at=number)
        topic.change("u", key(number), row(number, -number), at=number + 10)
    by_spark = []
    decode = TaskRecords.decode

    def counted(records: TaskRecords, *given: Any) -> Any:
        by_spark.append(records)
        return decode(records, *given)

    monkeypatch.setattr(raw_records, "LOCAL_RECORDS", 10)
    monkeypatch.setattr(TaskRecords, "decode", counted)
    worker = bench.take(topic.records)
    assert by_spark
    by_spark.clear()
    bench.take(topic.records[:10], worker)
    assert not by_spark
    assert bench.rows() == [(number, -number) for number in range(1, 9)]


def test_6_1_a_driver_that_starts_anew_skips_no_merge_and_applies_nothing_twice(bench: Bench) -> None:
    topic = Topic(bench.create().topic)
    for index in range(1, 5):
        topic.change("c" if index == 1 else "u", key(1), row(1, index), at=index)
    versions = []
    for record in topic.records:  # each time a new driver, whose batches would count from 0
        worker = bench.take([record])
        assert worker.head is not None
        versions.append(worker.head.version)
        assert bench.rows() == [(1, len(versions))]
    assert versions == sorted(set(versions))
    assert bench.worker().lag() == 0


def test_6_1_of_two_drivers_one_commits_and_the_other_starts_over_from_the_table(bench: Bench) -> None:
    topic = Topic(bench.create().topic)
    topic.change("c", key(1), row(1, "one"), at=1)
    first, second = bench.take(topic.records), bench.worker()
    second.start()
    more = Topic(bench.topic)
    more.change("c", key(2), row(2, "two"), at=2)
    stale = second.head
    assert stale is not None
    assert stale.progress is not None
    bench.take(more.records, first)
    # The second driver commits on what it read before: Delta would skip the write without a word.
    rows = second.lake.empty_commit()
    with pytest.raises(TransientError, match="commit-lost"):
        second.lake.commit(stale, stale.progress.next_commit(next={0: 99}), rows)
    bench.take([], second)
    assert bench.rows() == [(1, "one"), (2, "two")]
    assert second.next_offsets == first.next_offsets


def test_3_2_a_delete_remembered_before_a_failed_commit_still_deletes(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    topic = Topic(bench.create().topic)
    topic.change("c", key(1), row(1, "one"), at=1)
    topic.change("c", key(2), row(2, "two"), at=2)
    worker = bench.take(topic.records)
    deletes = Topic(bench.topic)
    deletes.change("d", key(1), at=3)
    deletes.change("u", key(2), row(2, "changed"), at=4)
    with monkeypatch.context() as patched:
        patched.setattr(worker.lake, "commit", _fails)
        with pytest.raises(TransientError):
            bench.take(deletes.records, worker)
    bench.take([], worker)
    assert bench.rows() == [(2, "changed")]


def _fails(*_: Any) -> None:
    raise TransientError("storage-or-network", "the storage did not answer")


def test_6_4_a_topic_created_again_halts_its_table(kafka_bench: Bench) -> None:
    topic = Topic(kafka_bench.create().topic)
    topic.change("c", key(1), row(1, "one"), at=1)
    kafka_bench.take(topic.records)
    kafka_bench.create_again()
    with pytest.raises(TableHalt, match="topic-recreated"):
        kafka_bench.take([*topic.records, *topic.records])
    assert kafka_bench.rows() == [(1, "one")]


def test_6_4_records_that_retention_removed_halt_the_table_and_are_named(kafka_bench: Bench) -> None:
    topic = Topic(kafka_bench.create().topic)
    for index in range(1, 7):
        topic.change("c", key(index), row(index, index), at=index)
    worker = kafka_bench.take(topic.records[:2])
    produce(kafka_bench.kafka, topic.records[2:])
    delete_records(kafka_bench.kafka, kafka_bench.topic, 4)
    with pytest.raises(TableHalt, match="offsets 2 to 3"):
        kafka_bench.take([], worker)
    assert kafka_bench.rows() == [(1, 1), (2, 2)]


def test_a_table_of_somebody_else_is_left_alone(bench: Bench) -> None:
    write_deltalake(bench.table, pa.table({"id": [7], "v": ["theirs"]}))
    topic = Topic(bench.create().topic)
    topic.change("c", key(1), row(1, "ours"), at=1)
    with pytest.raises(TableHalt, match="not-our-table"):
        bench.take(topic.records)
    assert bench.rows() == [(7, "theirs")]


def test_1_6_a_table_whose_records_have_no_key_halts(bench: Bench) -> None:
    topic = Topic(bench.create().topic)
    topic.change("c", None, row(1, "a"), at=1)
    with pytest.raises(TableHalt, match="no-key"):
        bench.take(topic.records)


def test_a_table_of_an_older_version_halts_until_it_is_filled_again(bench: Bench) -> None:
    topic = Topic(bench.create().topic)
    topic.change("c", key(1), row(1, "one"), at=1)
    worker = bench.take(topic.records)
    assert worker.head is not None
    assert worker.progress is not None
    older = worker.progress.next_commit(memory=None, recalled=None)
    worker.lake.commit(worker.head, older, worker.lake.empty_commit())
    topic.change("u", key(1), row(1, "two"), at=2)
    with pytest.raises(TableHalt, match="table-of-older-version"):
        bench.take(topic.records[1:], worker)
    assert bench.rows() == [(1, "one")]
    worker.resume(ResumeAction.REBUILD)
    bench.take([], worker)
    assert bench.rows() == [(1, "two")]


def test_3_6_a_truncate_that_is_a_bad_record_halts_a_table_that_is_to_halt(bench: Bench) -> None:
    bench.rule = {"truncate": "halt"}
    topic = Topic(bench.create().topic, connector="postgresql")
    topic.change("c", key(1), row(1, "one"), at=10)
    event = json.loads(topic.change("t", None, at=20).value or b"")
    event["source"]["connector"] = "mysql"
    topic.records[-1] = topic.records[-1]._replace(value=json.dumps(event).encode())
    with pytest.raises(TableHalt, match="truncated"):
        bench.take(topic.records)
    assert rows_of(bench.quarantine, "offset") == [(1,)]


def test_3_6_and_2_4_a_truncate_that_is_sent_again_halts_no_table_that_is_past_it(bench: Bench) -> None:
    bench.rule = {"truncate": "halt"}
    topic = Topic(bench.create().topic, connector="postgresql")
    topic.change("c", key(1), row(1, "one"), at=10)
    topic.change("t", None, at=20)
    with pytest.raises(TableHalt, match="truncated"):
        bench.take(topic.records)
    bench.rule = {"truncate": "apply"}
    bench.take([])
    assert bench.rows() == []
    bench.rule = {"truncate": "halt"}
    topic.change("c", key(2), row(2, "two"), at=30)
    again = [topic.records[1], topic.records[2]]
    bench.take(again)
    assert bench.rows() == [(2, "two")]
