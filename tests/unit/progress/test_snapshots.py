"""What a batch shows of a table's complete snapshots (rule 3.10)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from distributary.decode.source_block import BY_OFFSET
from distributary.errors import UsageError
from distributary.progress.batch_stats import BatchStats
from distributary.progress.record import Progress, SourceSnapshot, first_progress
from distributary.progress.snapshots import after_batch, after_loss, complete_snapshot, is_countable, not_for_mode

NOTHING = BatchStats(
    connector="sqlserver",
    records=0,
    applied=0,
    bad=0,
    snapshot_rows=0,
    changes=0,
    deletes=0,
    truncated=None,
    newest_ts_ms=None,
    snapshot_ts_ms=None,
    partitions={},
)


def progress(**changes: Any) -> Progress:
    start = first_progress("p.dbo.t", "id", str(changes.pop("connector", "sqlserver")), "upsert", ("id",))
    return start.model_copy(update=changes)


def facts(**found: Any) -> BatchStats:
    return replace(NOTHING, **found)


def after(
    before: Progress, found: BatchStats, taken: Mapping[int, int], ends: Mapping[int, int] | None = None
) -> Progress:
    """The record after the batch. Without `ends` Kafka must not be asked."""

    def latest() -> Mapping[int, int]:
        assert ends is not None, "Kafka is asked for a batch that ends a snapshot alone"
        return ends

    changes = after_batch(before, found, taken, latest)
    return before.next_commit(**changes, next=taken, records=before.records + 1)


ENDED = facts(snapshot="000:20", snapshot_row="000:20", lowest="000:10", snapshot_rows=3)


def test_3_10_rows_are_counted_once_every_partition_is_read_to_its_end_at_the_mark() -> None:
    record = after(progress(), ENDED, {0: 5, 1: 2}, {0: 5, 1: 4, 2: 0})
    assert record.snapshot == SourceSnapshot(position="000:20", open={1: 4})
    assert not is_countable(record)
    record = after(record, facts(lowest="000:20"), {0: 9, 1: 3})
    assert not is_countable(record)
    record = after(record, facts(lowest="000:20"), {0: 9, 1: 4})
    assert is_countable(record)
    assert Progress.from_json(record.to_json()) == record


def test_3_10_a_table_that_never_had_an_older_row_has_no_orphaned_rows_and_is_not_read() -> None:
    record = after(progress(), facts(snapshot="000:20", snapshot_row="000:20", lowest="000:20"), {0: 5}, {0: 5})
    assert record.snapshot == SourceSnapshot(position="000:20", orphaned_rows=0)
    assert not is_countable(record)


def test_3_10_rows_of_another_writer_may_be_older() -> None:
    before = progress(adopted={0: 3}, next={0: 3})
    first = after(before, facts(snapshot="000:20", snapshot_row="000:20", lowest="000:20"), {0: 9}, {0: 9})
    assert is_countable(first)
    later = after(first.model_copy(update={"records": 6}), facts(snapshot="000:30", lowest="000:30"), {0: 12}, {0: 12})
    assert is_countable(later)


def test_3_10_what_an_older_version_took_in_may_be_older() -> None:
    before = progress(records=7, next={0: 7})
    assert is_countable(after(before, facts(snapshot="000:20", snapshot_row="000:20", lowest="000:20"), {0: 9}, {0: 9}))


def test_3_10_a_mark_that_is_sent_again_starts_nothing() -> None:
    known = progress(snapshot=SourceSnapshot(position="000:20", orphaned_rows=2), lowest="000:10", records=9)
    assert after(known, ENDED, {0: 9}).snapshot == known.snapshot
    newer = after(known, facts(snapshot="000:30", snapshot_row="000:30", lowest="000:30"), {0: 12}, {0: 12})
    assert newer.snapshot == SourceSnapshot(position="000:30")
    assert is_countable(newer)


def test_3_10_without_a_mark_nothing_is_remembered() -> None:
    assert after(progress(), facts(snapshot_rows=3, snapshot_row="000:20", lowest="000:20"), {0: 3}).snapshot is None


@pytest.mark.parametrize("changes", [{"connector": BY_OFFSET}, {"mode": "append"}, {"mode": "history"}])
def test_3_10_tables_whose_rows_can_not_be_compared_with_a_snapshot_remember_none(changes: dict[str, Any]) -> None:
    assert after(progress(**changes), ENDED, {0: 5}).snapshot is None


@pytest.mark.parametrize("bad_first", [True, False])
def test_3_10_bad_records_among_a_snapshots_rows_make_its_end_worth_nothing(bad_first: bool) -> None:
    bad = facts(bad=1, bad_snapshot_rows=1, snapshot_row="000:20", lowest="000:20")
    record = after(progress(), bad, {0: 1}) if bad_first else progress()
    record = after(record, ENDED, {0: 5}, {0: 6})
    record = after(record, facts(lowest="000:25") if bad_first else bad, {0: 6})
    assert not is_countable(record)
    with pytest.raises(UsageError, match="snapshot-incomplete"):
        complete_snapshot("dbo.t", record)
    # The next one that is read as a whole counts again.
    record = after(record, facts(snapshot="000:30", snapshot_row="000:30", lowest="000:30"), {0: 9}, {0: 9})
    assert is_countable(record)
    assert complete_snapshot("dbo.t", record).position == "000:30"


def test_3_10_a_record_that_can_not_be_read_spoils_the_snapshot_that_it_may_be_of_and_no_other() -> None:
    begun = after(progress(), facts(snapshot_row="000:20", lowest="000:20", snapshot_rows=1), {0: 1})
    garbage = facts(bad=1, bad_snapshot_rows=1)
    within = after(after(begun, garbage, {0: 2}), ENDED, {0: 5}, {0: 5})
    assert not is_countable(within)
    later = after(after(begun, ENDED, {0: 5}, {0: 5}), garbage, {0: 6})
    assert complete_snapshot("dbo.t", later).position == "000:20"


@pytest.mark.parametrize("begun", [True, False])
def test_3_10_a_snapshot_that_may_have_lost_rows_to_kafkas_retention_is_worth_nothing(begun: bool) -> None:
    before = (
        after(progress(), facts(snapshot_row="000:20", lowest="000:10", snapshot_rows=1), {0: 1})
        if begun
        else progress()
    )
    held = before.next_commit(next={0: 4}, **after_loss(before, {0: 9, 1: 2}))
    within = after(held, ENDED, {0: 9}, {0: 9, 1: 2})
    assert within.lost == {1: 2}
    passed = after(within, facts(lowest="000:25"), {0: 9, 1: 2})
    assert passed.lost is None
    assert not is_countable(passed)
    with pytest.raises(UsageError, match="snapshot-incomplete"):
        complete_snapshot("dbo.t", passed)
    # The one that the operator has the connector send then is whole.
    again = after(passed, facts(snapshot="000:30", snapshot_row="000:30", lowest="000:30"), {0: 12, 1: 2}, {0: 12})
    assert complete_snapshot("dbo.t", again).position == "000:30"
    assert is_countable(again)


def test_3_10_rows_of_a_complete_snapshot_that_were_unread_may_be_among_what_is_lost() -> None:
    ended = after(progress(), ENDED, {0: 5, 1: 2}, {0: 5, 1: 9})
    held = ended.next_commit(next={0: 5, 1: 9}, **after_loss(ended, {0: 5, 1: 12}))
    passed = after(held, facts(lowest="000:25"), {0: 5, 1: 12})
    assert not is_countable(passed)
    complete = after(ended, facts(lowest="000:25"), {0: 5, 1: 9})
    assert is_countable(complete.next_commit(**after_loss(complete, {0: 5, 1: 12})))  # nothing of it was unread


def test_3_10_bad_changes_spoil_no_snapshot() -> None:
    record = after(progress(), facts(bad=3, lowest="000:10"), {0: 3})
    assert is_countable(after(record, ENDED, {0: 5}, {0: 5}))


@pytest.mark.parametrize(
    ("record", "code"),
    [
        (progress(), "no-complete-snapshot"),
        (progress(connector=BY_OFFSET), "no-complete-snapshot"),
        (progress(snapshot=SourceSnapshot(position="000:20", open={1: 4})), "snapshot-not-taken-in"),
        (progress(mode="append"), "not-for-this-mode"),
    ],
)
def test_3_10_nothing_is_removed_before_it_is_sure(record: Progress, code: str) -> None:
    with pytest.raises(UsageError, match=code) as refused:
        complete_snapshot("dbo.t", record)
    assert "dbo.t" in refused.value.message
    assert refused.value.fix


@pytest.mark.parametrize("mode", ["append", "history"])
def test_3_10_other_modes_are_refused_by_their_name(mode: str) -> None:
    assert f"mode: {mode}" in not_for_mode("dbo.t", mode).message
    assert not_for_mode("dbo.t", mode).fix
