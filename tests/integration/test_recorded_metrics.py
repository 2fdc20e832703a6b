"""The metrics of a table's batches, with real records, real commits and Delta's own counts."""

from __future__ import annotations

import time

from tests.support.changes import Topic
from tests.support.spark import Bench

from distributary.observe.metrics import PHASES


def test_a_tables_batches_are_counted_by_what_they_did(bench: Bench) -> None:
    topic = Topic(bench.create().topic)
    now = int(time.time() * 1000)
    worker = bench.take(
        [
            topic.change("r", {"id": 1}, {"id": 1, "v": "a"}, at=1, snapshot="true"),
            topic.change("r", {"id": 2}, {"id": 2, "v": "b"}, at=1, snapshot="last"),
            topic.change("c", {"id": 3}, {"id": 3, "v": "c"}, at=2),
            topic.add({"id": 4}, b"not json at all"),
            topic.add({"id": 5}, b"nor this"),
        ]
    )
    worker = bench.take(
        [
            topic.change("u", {"id": 1}, {"id": 1, "v": "a2", "w": 1}, at=3, ts_ms=now - 5_000),
            topic.change("d", {"id": 3}, at=4, before={"id": 3}, ts_ms=now - 4_000),
            topic.tombstone({"id": 3}),
            topic.change("c", {"id": 6}, {"id": 6, "v": "d", "w": 2}, at=5, ts_ms=now - 3_000),
        ],
        worker,
    )
    registry = worker.context.recorder.registry

    def value(name: str, **labels: str) -> float | None:
        return registry.get_sample_value(f"distributary_table_{name}", {"table": "dbo.t", **labels})

    operations = {op: value("records_total", op=op) for op in ("create", "update", "delete", "read", "tombstone")}
    assert operations == {"create": 2, "update": 1, "delete": 1, "read": 2, "tombstone": 1}
    assert value("records_total", op="truncate") == value("records_total", op="message") == 0
    merged = {change: value("merged_rows_total", change=change) for change in ("inserted", "updated", "deleted")}
    assert merged == {"inserted": 4, "updated": 1, "deleted": 1}
    assert value("quarantined_by_reason_total", reason="not-json") == 2
    assert value("commits_total") == 2
    assert value("schema_changes_total") == 2  # made, then the column w
    assert value("retries_total") == 0
    for phase in PHASES:
        assert value("batch_duration_seconds_count", phase=phase) == (1 if phase == "quarantine" else 2)
    freshness, last = value("freshness_seconds"), worker.context.status.table("dbo.t")
    assert freshness is not None
    assert 5 <= freshness < 5 + time.time() - now / 1000
    assert last is not None
    assert last.stages is not None
    assert value("stage_seconds", stage="to_table") == last.stages.to_table > 0
    assert value("stage_seconds", stage="to_connector") is None  # these envelopes do not tell it
    assert last.last_batch is not None
    assert (last.last_batch.records, last.last_batch.quarantined) == (4, 0)
    assert last.last_commit_at is not None
    assert now / 1000 < last.last_commit_at < time.time()

    details = worker.context.status.table_as_json("dbo.t")
    assert details is not None
    newest, first = details["commits"]
    assert newest["version"] > first["version"]
    assert (newest["records"], newest["rows"]) == (4, {"inserted": 1, "updated": 1, "deleted": 1})
    assert set(newest["phases"]) == set(PHASES) - {"quarantine"}
    assert details["quarantined_by_reason"] == {"not-json": 2}
    changed, made = details["schema_changes"]
    assert (made["made"], list(made["added"])) == (True, ["id", "v"])
    assert (changed["made"], list(changed["added"])) == (False, ["w"])
    stored = details["stored"]
    assert (stored["version"], stored["rows"], stored["key"]) == (newest["version"], 3, ["id"])
    assert list(stored["columns"])[:2] == ["id", "v"]
    assert "__position" in stored["added_by_service"]
    assert stored["indexed_files"] == stored["files"]
    assert details["layout"] == "auto"
    assert details["memory_bytes"] > 0
    assert value("memory_bytes") == details["memory_bytes"]

    again = bench.worker()
    again.start()
    status = again.context.status.table("dbo.t")
    assert status is not None
    assert status.last_commit_at == last.last_commit_at  # also where this run has not committed yet
