"""Whether a table can continue from its offsets."""

from __future__ import annotations

import pytest

from distributary.config.table import TableSettings
from distributary.consume.kafka_client import Topic
from distributary.decode.source_block import BY_OFFSET
from distributary.errors import TableHalt
from distributary.halt_actions import NEEDED_ACTIONS, ResumeAction
from distributary.ingest.continuity import check_continuity, lost_ends, nearer_target, record_after
from distributary.progress.record import Last, SourceSnapshot, first_progress

TOPIC = Topic("p.dbo.t", "first", (0, 1))
TAKEN = first_progress("p.dbo.t", "first", "sqlserver", "upsert", ("id",)).model_copy(
    update={"next": {0: 5, 1: 7}, "marks_deleted": False}
)
UPSERT = TableSettings("dbo.t")
END = {0: 20, 1: 30}


@pytest.mark.parametrize("first", [{}, {0: 0, 1: 0}, {0: 5, 1: 7}, {0: 5, 1: 7, 2: 9}])
def test_6_4_a_table_continues_where_kafka_has_what_comes_next(first: dict[int, int]) -> None:
    check_continuity(TAKEN, TOPIC, first, UPSERT, "/lake/dbo/t")


def test_6_4_lost_records_are_named() -> None:
    with pytest.raises(TableHalt, match=r"offsets 7 to 8 of p\.dbo\.t partition 1") as raised:
        check_continuity(TAKEN, TOPIC, {0: 5, 1: 9}, UPSERT, "/lake/dbo/t")
    assert raised.value.code == "records-lost"


@pytest.mark.parametrize(
    ("topic", "settings", "code"),
    [
        (Topic("p.other.t", "first", (0,)), UPSERT, "other-topic"),
        (TOPIC, TableSettings("dbo.t", mode="history"), "mode-changed"),
        (TOPIC, TableSettings("dbo.t", deletes="soft"), "deletes-changed"),
        (TOPIC, TableSettings("dbo.t", truncate="soft"), "deletes-changed"),
        (Topic("p.dbo.t", "second", (0, 1)), UPSERT, "topic-recreated"),
    ],
)
def test_6_4_a_table_is_filled_from_one_topic_in_one_mode(topic: Topic, settings: TableSettings, code: str) -> None:
    with pytest.raises(TableHalt) as raised:
        check_continuity(TAKEN, topic, {0: 0}, settings, "/lake/dbo/t")
    assert raised.value.code == code


def test_6_4_an_accepted_loss_passes_over_what_is_gone_and_nothing_else() -> None:
    held = TAKEN.model_copy(update={"recent": ((10, 0),)})
    after = record_after(ResumeAction.LOSS, held, TOPIC, {0: 5, 1: 9}, END, "upsert")
    assert after is not None
    assert after.next == {0: 5, 1: 9}
    assert (after.sequence, after.recent) == (held.sequence + 1, held.recent)
    assert after.lost == END  # up to where a snapshot may lack rows
    assert record_after(ResumeAction.LOSS, held, TOPIC, {0: 5, 1: 7}, END, "upsert") is None


def test_3_10_a_snapshot_whose_rows_may_be_lost_shows_no_rows_that_are_left_over() -> None:
    complete = SourceSnapshot(position="00000027:00000005:0001", open={1: 9}, orphaned_rows=None)
    held = TAKEN.model_copy(update={"snapshot": complete, "records": 9})
    for action, first in ((ResumeAction.LOSS, {0: 5, 1: 9}), (ResumeAction.RESET, {0: 0, 1: 3})):
        after = record_after(action, held, Topic("p.dbo.t", "second", (0, 1)), first, END, "upsert")
        assert after is not None
        assert (after.lost, after.incomplete_snapshot) == (END, complete.position)
    whole = record_after(ResumeAction.RESET, held, Topic("p.dbo.t", "second", (0, 1)), {0: 0, 1: 0}, END, "upsert")
    assert whole is not None
    assert (whole.lost, whole.incomplete_snapshot) == (None, None)


def test_3_10_what_was_there_at_a_loss_shares_no_batch_with_what_came_after() -> None:
    goal = {0: 50, 1: 50, 2: 4}
    assert nearer_target(goal, {0: 5, 1: 9, 2: 0}, END) == {0: 20, 1: 30, 2: 0}
    assert nearer_target(goal, {0: 20, 1: 9, 2: 0}, END) == {0: 20, 1: 30, 2: 0}
    assert nearer_target(goal, {0: 25, 1: 9, 2: 0}, END) == {0: 25, 1: 30, 2: 0}
    assert nearer_target({0: 10, 1: 9}, {0: 5, 1: 9}, END) == {0: 10, 1: 9}


@pytest.mark.parametrize("change", [{"topic_id": "other"}, {"short": {1: 4}}])
def test_2_8_rows_that_are_ordered_by_offsets_outlive_no_topic(change: dict[str, object]) -> None:
    held = TAKEN.model_copy(update={"connector": BY_OFFSET, **change})
    with pytest.raises(TableHalt) as raised:
        check_continuity(held, TOPIC, {0: 0}, UPSERT, "/lake/dbo/t")
    assert raised.value.code == "offsets-began-anew"
    assert record_after(ResumeAction.RESET, held, TOPIC, {0: 0}, END, "upsert") is None
    # Where all changes are kept none has to be newer than another one, and none must go.
    appends = held.model_copy(update={"mode": "append"})
    with pytest.raises(TableHalt) as raised:
        check_continuity(appends, TOPIC, {0: 0}, TableSettings("dbo.t", mode="append"), "/lake/dbo/t")
    after = record_after(NEEDED_ACTIONS[raised.value.code], appends, TOPIC, {0: 0}, END, "append")
    assert after is not None
    assert (after.next, after.topic_id, after.short) == ({}, TOPIC.topic_id, None)
    rebuilt = record_after(NEEDED_ACTIONS["offsets-began-anew"], held, TOPIC, {0: 0}, END, "upsert")
    assert rebuilt is not None
    assert (rebuilt.is_new, rebuilt.short, rebuilt.topic_id) == (True, None, TOPIC.topic_id)


def test_6_4_an_accepted_topic_is_read_from_its_start_with_what_is_known_of_the_source() -> None:
    last = Last(position="00000027:00000005:0001", ts_ms=7)
    held = TAKEN.model_copy(
        update={"position": last.position, "truncated": "00000027:00000003:0001", "last": {0: last}}
    )
    after = record_after(ResumeAction.RESET, held, Topic("p.dbo.t", "second", (0,)), {0: 0}, END, "upsert")
    assert after is not None
    assert (after.topic_id, dict(after.next), after.key) == ("second", {}, ("id",))
    assert (after.position, after.truncated) == (held.position, held.truncated)
    assert after.last == {0: Last(position=last.position, ts_ms=7)}  # by which a restored source shows (2.6)
    assert record_after(ResumeAction.RESET, held, TOPIC, {0: 0}, END, "upsert") is None


def test_6_4_a_topic_that_ends_before_what_was_taken_in_halts_its_table_and_can_be_read_again() -> None:
    for end in ({0: 5, 1: 7}, {0: 9}, {0: 5, 1: 8, 2: 0}):
        assert not lost_ends(TAKEN, end)
    assert lost_ends(TAKEN, {0: 5, 1: 4}) == {1: 4}
    short = TAKEN.model_copy(update={"short": {1: 4}})
    with pytest.raises(TableHalt, match="offsets 4 to 6 of partition 1") as raised:
        check_continuity(short, TOPIC, {0: 0}, UPSERT, "/lake/dbo/t")
    assert raised.value.code == "topic-shorter"
    after = record_after(NEEDED_ACTIONS["topic-shorter"], short, TOPIC, {0: 0}, END, "upsert")
    assert after is not None
    assert (dict(after.next), after.short) == ({}, None)
    # Done by a driver that a crash cut short, it is not done again.
    assert (
        record_after(ResumeAction.RESET, after.model_copy(update={"next": {0: 3}}), TOPIC, {0: 0}, END, "upsert")
        is None
    )
    rebuilt = record_after(ResumeAction.REBUILD, short, TOPIC, {0: 0}, END, "upsert")
    assert rebuilt is not None
    assert rebuilt.short is None


def test_5_4_a_rebuilt_table_knows_nothing_but_its_number() -> None:
    after = record_after(
        ResumeAction.REBUILD, TAKEN.model_copy(update={"sequence": 8, "records": 12}), TOPIC, {}, END, "history"
    )
    assert after is not None
    assert (after.sequence, after.mode, after.key, after.is_new) == (9, "history", (), True)
    assert not TAKEN.is_new


def test_6_3_a_table_that_is_tried_again_counts_bad_records_anew() -> None:
    after = record_after(ResumeAction.RETRY, TAKEN.model_copy(update={"recent": ((10, 9),)}), TOPIC, {}, END, "upsert")
    assert after is not None
    assert after.recent == ()
    assert record_after(ResumeAction.RETRY, TAKEN, TOPIC, {}, END, "upsert") is None
