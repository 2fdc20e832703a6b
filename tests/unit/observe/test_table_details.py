"""What is known of a single table beside its status."""

from __future__ import annotations

import json

from distributary.observe.recorder import Recorder
from distributary.observe.status import ServiceStatus
from distributary.observe.table_details import KEPT, SchemaChange, StoredTable
from distributary.observe.table_status import Batch

STORED = StoredTable(
    version=7,
    columns={"id": "integer", "__op": "string"},
    key=("id",),
    added_by_service=("__op",),
    partitioned_by=(),
    files=3,
    bytes=900,
    rows=12,
    files_with_vectors=1,
    indexed_files=2,
)


def commit(recorder: Recorder, at: float, version: int = 1, reasons: dict[str, int] | None = None) -> None:
    batch = Batch(at=at, records=9, applied=7, quarantined=2, seconds=1.5)
    recorder.committed(
        "s.t",
        batch,
        freshness_seconds=3.5,
        phases={"read": 0.50004, "write": 1.0},
        operations={},
        merged={"inserted": 4, "updated": 2, "deleted": 1},
        reasons=reasons or {},
        version=version,
        stored=lambda: STORED,
    )


def test_the_last_commits_are_kept_with_their_sizes_and_phases_and_the_newest_comes_first() -> None:
    recorder = Recorder(ServiceStatus())
    for number in range(KEPT + 5):
        commit(recorder, float(number), number)
    found = recorder.status.details.as_json("s.t")["commits"]
    assert [one["version"] for one in found] == list(range(KEPT + 4, 4, -1))
    assert found[0] == {
        "at": 24.0,
        "version": 24,
        "records": 9,
        "applied": 7,
        "quarantined": 2,
        "seconds": 1.5,
        "phases": {"read": 0.5, "write": 1.0},
        "rows": {"inserted": 4, "updated": 2, "deleted": 1},
    }


def test_what_came_to_the_columns_is_shown_and_when() -> None:
    made = SchemaChange.between({}, {"id": "int"}, at=1.0)
    changed = SchemaChange.between({"id": "int"}, {"id": "bigint", "name": "string"}, at=2.0)
    recorder = Recorder(ServiceStatus())
    recorder.schema_changed("s.t", made)
    recorder.schema_changed("s.t", changed)
    assert recorder.status.details.as_json("s.t")["schema_changes"] == [
        {"at": 2.0, "made": False, "added": {"name": "string"}, "widened": {"id": "bigint"}},
        {"at": 1.0, "made": True, "added": {"id": "int"}, "widened": {}},
    ]


def test_records_in_quarantine_are_counted_by_reason() -> None:
    recorder = Recorder(ServiceStatus())
    commit(recorder, 1.0, reasons={"not-json": 2, "no-key": 0})
    commit(recorder, 2.0, reasons={"not-json": 1, "bad-value": 1})
    assert recorder.status.details.as_json("s.t")["quarantined_by_reason"] == {"bad-value": 1, "not-json": 3}


def test_a_table_with_its_details_is_the_same_after_json() -> None:
    status = ServiceStatus()
    commit(Recorder(status), 1.0)
    found = status.table_as_json("s.t")
    assert found is not None
    assert json.loads(json.dumps(found)) == found
    assert found["stored"]["columns"] == {"id": "integer", "__op": "string"}
    assert found["stored"]["indexed_files"] == 2
    assert found["last_batch"]["records"] == 9


def test_a_table_that_has_committed_nothing_yet_has_empty_details_and_an_unknown_one_none() -> None:
    status = ServiceStatus()
    status.update("s.t")
    found = status.table_as_json("s.t")
    assert found is not None
    assert (found["commits"], found["schema_changes"], found["quarantined_by_reason"]) == ([], [], {})
    assert found["stored"] is None
    assert status.table_as_json("s.other") is None


def test_nothing_is_kept_of_a_table_that_is_gone() -> None:
    status = ServiceStatus()
    commit(Recorder(status), 1.0)
    status.forget("s.t")
    status.update("s.t")
    found = status.table_as_json("s.t")
    assert found is not None
    assert found["commits"] == []
