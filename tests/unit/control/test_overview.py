"""The overview of a table in `status`, from its record and Kafka's offsets."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from deltalake import CommitProperties, DeltaTable, write_deltalake
from pyarrow import table as arrow

from distributary.config.table import TableSettings
from distributary.consume.topics import TableId
from distributary.control.overview import TableOverview, table_overview, without_topic
from distributary.errors import TableHalt
from distributary.ingest.tables import ConfiguredTable
from distributary.progress.record import Progress, SourceSnapshot, first_progress
from distributary.storage.lake_files import Newest, newest_record, plain
from distributary.table_state import TableState

ONE = ConfiguredTable(TableId("dbo", "t"), "p.dbo.t", TableSettings(match="*.*"), "/lake/dbo/t")
NOW = 1_700_000_100.0


def record(**changes: object) -> Progress:
    return first_progress("p.dbo.t", "id", "sqlserver", "upsert", ("id",)).next_commit(**changes)


def of(progress: Progress | None, end: dict[int, int], halt: dict[str, str] | None = None) -> TableOverview:
    newest = Newest(progress, 1_700_000_050.0) if progress else None
    return table_overview(ONE, newest, {0: 10, 1: 0}, end, halt, NOW)


def test_a_table_that_took_in_everything_has_no_lag() -> None:
    table = of(record(next={0: 20, 1: 5}, source_ts_ms=1_600_000_000_000, quarantined=2), {0: 20, 1: 5})
    assert (table.state, table.lag_records, table.lag_seconds, table.quarantined) == (TableState.UP_TO_DATE, 0, 0.0, 2)
    assert table.last_commit_at == 1_700_000_050.0
    assert json.loads(json.dumps(table.as_json())) == table.as_json()


def test_a_table_is_behind_by_records_and_by_the_age_of_its_newest_change() -> None:
    table = of(record(next={0: 15}, source_ts_ms=1_700_000_000_000), {0: 20, 1: 2})
    assert (table.state, table.lag_records, table.lag_seconds) == (TableState.BEHIND, 5 + 2, 100.0)


def test_the_lag_is_unknown_where_the_offsets_are_those_of_another_topic_or_beyond_its_end() -> None:
    halt = {"code": "topic-recreated", "message": "m", "fix": "f"}
    beyond = of(record(next={0: 20, 1: 5}), {0: 3, 1: 9})
    assert (beyond.state, beyond.lag_records, beyond.lag_seconds) == (TableState.BEHIND, None, None)
    assert of(record(next={0: 20}, short={0: 15}), {0: 25}, halt).lag_records is None
    newest = Newest(record(next={0: 20}), NOW)
    again = table_overview(ONE, newest, {0: 0}, {0: 90}, halt, NOW, None, "another id")
    assert (again.state, again.lag_records) == (TableState.HALTED, None)
    assert table_overview(ONE, newest, {0: 0}, {0: 90}, None, NOW, None, "id").lag_records == 70


def test_a_table_without_a_record_is_new_and_behind_what_kafka_still_has() -> None:
    table = of(None, {0: 20, 1: 0})
    assert (table.state, table.lag_records, table.lag_seconds, table.orphaned_rows) == (TableState.NEW, 10, None, None)


def test_a_table_says_its_layout_in_force_and_how_much_it_remembers() -> None:
    table = of(record(next={0: 20}, remembered_keys=3, memory_bytes=900), {0: 20})
    assert (table.layout, table.remembered_keys, table.memory_bytes) == ("auto", 3, 900)
    kept = TableSettings(match="*.*", layout="vectors", properties={"delta.enableDeletionVectors": "false"})
    assert table_overview(replace(ONE, settings=kept), None, {}, {}, None, NOW).layout == "rewrite"


def test_a_halted_table_shows_why() -> None:
    halt = {"code": "topic-gone", "message": "m", "fix": "f"}
    table = of(record(next={0: 20}), {0: 20, 1: 0}, halt)
    assert (table.state, table.error) == (TableState.HALTED, halt)


def test_a_halted_table_whose_topic_is_gone_is_shown() -> None:
    halt = {"code": "topic-gone", "message": "m", "fix": "f"}
    halts = {f"p.{name}": {"table": name, **halt} for name in ("dbo.t", "dbo.gone")}
    shown = without_topic(halts, ["p.dbo.t"])
    assert [(table.table, table.state, table.error) for table in shown] == [("dbo.gone", TableState.HALTED, halt)]


@pytest.mark.parametrize(
    ("snapshot", "orphaned_rows"),
    [(None, None), (SourceSnapshot(position="a"), None), (SourceSnapshot(position="a", orphaned_rows=3), 3)],
)
def test_3_10_orphaned_rows_are_shown_once_they_are_counted(
    snapshot: SourceSnapshot | None, orphaned_rows: int | None
) -> None:
    assert of(record(snapshot=snapshot), {}).orphaned_rows == orphaned_rows


def test_the_record_is_found_under_the_commits_of_others(tmp_path: Path) -> None:
    place = str(tmp_path / "t")
    assert newest_record(place) is None
    rows = arrow({"id": [1]})
    write_deltalake(place, rows)
    assert newest_record(place) is None  # somebody else's table
    ours = record(next={0: 7})
    metadata = CommitProperties(custom_metadata={"userMetadata": ours.to_json()})
    write_deltalake(place, rows, mode="append", commit_properties=metadata)
    for _ in range(12):
        write_deltalake(place, rows, mode="append")
    found = newest_record(place)
    assert found is not None
    assert found.progress == ours
    assert DeltaTable(place).version() == 13


def test_after_a_restore_it_is_the_record_of_the_version_that_was_gone_back_to(tmp_path: Path) -> None:
    place = str(tmp_path / "t")
    records = [record(next={0: number}) for number in range(4)]
    for one in records:
        metadata = CommitProperties(custom_metadata={"userMetadata": one.to_json()})
        write_deltalake(place, arrow({"id": [1]}), mode="append", commit_properties=metadata)
    DeltaTable(place).restore(2)
    DeltaTable(place).restore(1)
    found = newest_record(place)
    assert found is not None
    assert found.progress == records[1]


def test_a_record_of_a_newer_version_is_reported_and_not_guessed(tmp_path: Path) -> None:
    place = str(tmp_path / "t")
    metadata = CommitProperties(custom_metadata={"userMetadata": '{"distributary": {"format": 9}}'})
    write_deltalake(place, arrow({"id": [1]}), commit_properties=metadata)
    with pytest.raises(TableHalt, match="progress-unreadable"):
        newest_record(place)


@pytest.mark.parametrize(
    ("path", "spelled"),
    [
        ("/data/lake", "/data/lake"),
        ("file:///data/lake", "/data/lake"),
        ("s3a://bucket/lake", "s3://bucket/lake"),
        ("abfss://box@account.dfs.core.windows.net/lake", "abfss://box@account.dfs.core.windows.net/lake"),
    ],
)
def test_readers_without_hadoop_spell_places_in_their_own_way(path: str, spelled: str) -> None:
    assert plain(path) == spelled
