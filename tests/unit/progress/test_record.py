"""The progress record."""

from __future__ import annotations

import json

import pytest

from distributary.errors import TableHalt
from distributary.progress.record import (
    InTransaction,
    Last,
    Progress,
    SourceSnapshot,
    committed_at,
    first_progress,
    later,
    user_metadata,
)


def test_a_record_survives_the_commit_it_travels_in() -> None:
    first = first_progress("p.s.t", "topic-id", "sqlserver", "upsert", ("id",))
    record = first.next_commit(next={0: 7}, last={0: Last(position="000:a", ts_ms=5)}, recent=((7, 1),))
    line = json.dumps({"commitInfo": {"operation": "MERGE", "userMetadata": record.to_json()}})
    assert Progress.from_json(user_metadata(line)) == record


def test_each_commit_has_a_number_and_an_identity_of_its_own() -> None:
    first = first_progress("p.s.t", "topic-id", "sqlserver", "upsert", ("id",)).next_commit()
    second = first.next_commit()
    assert (first.sequence, second.sequence) == (1, 2)
    assert first.commit != second.commit


@pytest.mark.parametrize("text", [None, "", "a note of somebody", '{"other": 1}', '{"distributary', '["distributary"]'])
def test_what_others_write_into_a_commit_is_none_of_ours(text: str | None) -> None:
    assert Progress.from_json(text) is None


def test_a_record_of_a_newer_version_halts_instead_of_being_guessed() -> None:
    with pytest.raises(TableHalt, match="progress-unreadable"):
        Progress.from_json('{"distributary": {"format": 9}}')


@pytest.mark.parametrize("format_", [3, 9])
def test_a_record_of_a_format_that_is_not_known_halts_though_all_that_is_known_is_there(format_: int) -> None:
    record = json.loads(first_progress("p.s.t", "id", "sqlserver", "upsert", ("id",)).to_json())
    record["distributary"]["format"] = format_
    with pytest.raises(TableHalt, match="progress-unreadable"):
        Progress.from_json(json.dumps(record))


def test_versions_that_know_of_no_memory_refuse_the_record_and_theirs_is_still_read() -> None:
    now = first_progress("p.s.t", "id", "sqlserver", "upsert", ("id",))
    record = json.loads(now.to_json())
    assert record["distributary"]["format"] == 2
    record["distributary"]["format"] = 1
    assert Progress.from_json(json.dumps(record)) == now.model_copy(update={"format": 1})


def test_what_a_later_version_added_is_kept_over_commits_of_this_one() -> None:
    last = Last(position="000:a", ts_ms=5, transaction=InTransaction(position="000:a", id="t"))
    now = first_progress("p.s.t", "id", "sqlserver", "upsert", ("id",)).next_commit(
        next={0: 7}, last={0: last}, snapshot=SourceSnapshot(position="000:a")
    )
    record = json.loads(now.to_json())
    later = record["distributary"]
    later["watermark"] = {"a": [1, None]}
    later["last"]["0"]["hint"] = "x"
    later["last"]["0"]["transaction"]["hint"] = "y"
    later["snapshot"]["hint"] = "z"
    read = Progress.from_json(json.dumps(record))
    assert read is not None
    written = json.loads(read.next_commit(next={0: 8}).model_copy(update={"records": 9}).to_json())["distributary"]
    assert written["watermark"] == {"a": [1, None]}
    assert written["last"]["0"] == later["last"]["0"]
    assert written["snapshot"] == later["snapshot"]
    assert (written["next"], written["records"]) == ({"0": 8}, 9)


def test_of_two_places_the_one_with_the_larger_position_is_later_whichever_came_last() -> None:
    low, high = InTransaction(position="1", id="a", order=9), InTransaction(position="2", id="b", order=1)
    half = InTransaction(position="2", id="b", order=2)  # a delete and a create of one position
    assert later("db2", low, high) == later("db2", high, low) == high
    assert later("db2", half, high) == later("db2", high, half) == half
    assert later("db2", None, low) == later("db2", low, None) == low
    assert later("db2", None, None) is None


def test_a_place_of_a_server_that_took_over_is_later_though_its_files_are_counted_anew() -> None:
    before = InTransaction(position=f"000:{9:020d}/{5:020d}/{0:010d}/1/a/{7:020d}", id="a:7", order=1)
    after = InTransaction(position=f"000:{1:020d}/{4:020d}/{0:010d}/2/a/{8:020d}", id="a:8", order=1)
    assert later("mysql", before, after) == later("mysql", after, before) == after


def test_a_commit_tells_its_time_where_delta_has_written_it_down() -> None:
    assert committed_at(json.dumps({"commitInfo": {"timestamp": 1500, "operation": "MERGE"}})) == 1.5
    assert committed_at('{"commitInfo": {}}') is None
