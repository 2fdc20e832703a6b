"""The catalogue of metrics: its rules, its page, and the exposed metrics are those of the catalogue."""

from __future__ import annotations

import os
import re
from typing import Any

import pytest
from prometheus_client import generate_latest
from prometheus_client.parser import text_string_to_metric_families

from distributary.lake.optimize import Compacted
from distributary.maintain.schedule import Task
from distributary.observe.jvm import JvmState
from distributary.observe.metric import Kind, Metric
from distributary.observe.metrics import CATALOGUE, CHANGES, OPERATIONS, PHASES, PROCESSES, TASKS
from distributary.observe.recorder import Recorder, Stopwatch
from distributary.observe.stages import Stages
from distributary.observe.status import ServiceStatus
from distributary.observe.table_details import SchemaChange
from distributary.observe.table_status import Batch
from distributary.table_state import TableState

BATCH = Batch(at=1700000000.0, records=9, applied=7, quarantined=2, seconds=1.5)


@pytest.fixture
def recorder() -> Recorder:
    """One to which all has happened that can."""
    status = ServiceStatus()
    recorder = Recorder(status)
    recorder.add_table("s.t")
    recorder.retried("s.t")
    recorder.schema_changed("s.t", SchemaChange.between({}, {"id": "int"}, at=1.0))
    recorder.committed(
        "s.t",
        BATCH,
        freshness_seconds=3.5,
        phases=dict.fromkeys(PHASES, 0.3),
        operations=dict.fromkeys(OPERATIONS, 2),
        merged=dict.fromkeys(CHANGES, 4),
        reasons={"bad-value": 2},
        stages=Stages(to_connector=1.5, to_kafka=0.5, to_table=1.5),
    )
    for task in TASKS:
        recorder.maintained("s.t", task, 0.5, Compacted(1, 9, 900) if task == "compact" else None)
        recorder.maintenance_failed("s.t", task)
    offsets: dict[str, Any] = {"target_offsets": {"t": {0: 1}}, "next_offsets": {"t": {0: 0}}}
    status.update("s.t", state=TableState.UP_TO_DATE, orphaned_rows=1, source_ts=1, **offsets)
    status.update("s.t", compacted_at=1700000001.0, vacuumed_at=1700000002.0, remembered_keys=6, memory_bytes=512)
    recorder.jvm(JvmState(heap_used=1, heap_max=2, collection_seconds=0.5, threads=3))
    recorder.jvm_process(os.getpid())
    status.show_heartbeat(1_700_000_000_500)
    status.show_transactions({"complete": {"id": "1", "ts_ms": 1}, "pending": 3, "waiting_for": []})
    return recorder


def samples(recorder: Recorder) -> dict[tuple[str, tuple[tuple[str, str], ...]], float]:
    text = generate_latest(recorder.registry).decode()
    return {
        (sample.name, tuple(sorted(sample.labels.items()))): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


def test_what_is_exposed_is_the_catalogue(recorder: Recorder) -> None:
    labels = {name: frozenset(dict(at)) - {"le"} for name, at in samples(recorder)}
    assert labels == {name: frozenset(metric.labels) for metric in CATALOGUE for name in metric.series}
    text = generate_latest(recorder.registry).decode()
    for metric in CATALOGUE:
        name = metric.series[0] if metric.kind is Kind.COUNTER else metric.name
        assert f"# HELP {name} {metric.help}\n# TYPE {name} {metric.kind.value}\n" in text


@pytest.mark.parametrize("metric", CATALOGUE, ids=lambda metric: metric.name)
def test_names_follow_the_rules_of_prometheus(metric: Metric) -> None:
    assert re.fullmatch(r"distributary(_[a-z]+)+", metric.name)
    assert not re.search(r"_(total|count|sum|bucket)$", metric.name)
    assert (metric.unit == "seconds") == metric.name.endswith("_seconds")
    assert metric.help.endswith(".")
    assert set(metric.labels) <= {"table", "state", "op", "change", "phase", "reason", "stage", "task", "version"}


def test_what_counts_over_all_runs_is_not_there_before_it_is_known() -> None:
    status = ServiceStatus()
    recorder = Recorder(status)
    name, table = "distributary_table_quarantined_total", (("table", "s.t"),)
    status.update("s.t", state=TableState.RETRYING)
    assert (name, table) not in samples(recorder)
    status.update("s.t", next_offsets={"t": {}}, quarantined=7)
    assert samples(recorder)[name, table] == 7


def test_tries_of_maintenance_in_vain_count_until_one_is_not() -> None:
    recorder = Recorder(ServiceStatus())
    name, labels = "distributary_table_maintenance_failed_tries", (("table", "s.t"), ("task", "compact"))
    recorder.add_table("s.t")
    assert samples(recorder)[name, labels] == 0
    for _ in range(3):
        recorder.maintenance_failed("s.t", "compact")
    assert samples(recorder)[name, labels] == 3
    recorder.maintained("s.t", "compact", 1.0, None)
    assert samples(recorder)[name, labels] == 0
    recorder.maintenance_failed("s.t", "compact")
    recorder.forget("s.t")
    recorder.forget("s.never")
    assert (name, labels) not in samples(recorder)


def test_faults_of_the_config_are_counted() -> None:
    status = ServiceStatus()
    recorder = Recorder(status)
    assert samples(recorder)["distributary_config_faults", ()] == 0
    status.show_config({"faults": [{}, {}], "waiting": ["kafka"]})
    assert samples(recorder)["distributary_config_faults", ()] == 2


def test_a_commit_counts_once_and_in_all_its_parts(recorder: Recorder) -> None:
    found = samples(recorder)
    table = ("table", "s.t")
    assert found["distributary_table_commits_total", (table,)] == 1
    assert found["distributary_table_records_total", (("op", "update"), table)] == 2
    assert found["distributary_table_merged_rows_total", (("change", "deleted"), table)] == 4
    assert found["distributary_table_quarantined_by_reason_total", (("reason", "bad-value"), table)] == 2
    assert found["distributary_table_batch_duration_seconds_sum", (("phase", "write"), table)] == 0.3
    assert found["distributary_batch_duration_seconds_bucket", (("le", "0.25"), ("phase", "write"))] == 0
    assert found["distributary_batch_duration_seconds_bucket", (("le", "0.5"), ("phase", "write"))] == 1
    assert found["distributary_table_freshness_seconds", (table,)] == 3.5
    status = recorder.status.table("s.t")
    assert status is not None
    assert (status.last_batch, status.last_commit_at) == (BATCH, 1700000000.0)


def test_who_of_connector_kafka_and_table_takes_its_time_is_reported(recorder: Recorder) -> None:
    def stages() -> dict[str, float]:
        name = "distributary_table_stage_seconds"
        return {dict(labels)["stage"]: value for (one, labels), value in samples(recorder).items() if one == name}

    assert stages() == {"to_connector": 1.5, "to_kafka": 0.5, "to_table": 1.5}
    recorder.status.committed("s.t", BATCH, freshness_seconds=9.0)  # a snapshot's rows: nothing new is known
    assert stages() == {"to_connector": 1.5, "to_kafka": 0.5, "to_table": 1.5}
    recorder.status.committed("s.t", BATCH, 9.0, Stages(None, None, 2.0))  # rows without an envelope
    assert stages() == {"to_table": 2.0}


def test_the_connectors_heartbeat_is_there_as_long_as_it_is_known(recorder: Recorder) -> None:
    name = "distributary_connector_heartbeat_timestamp_seconds"
    assert samples(recorder)[name, ()] == 1_700_000_000.5 == recorder.status.snapshot()["heartbeat_at"]
    recorder.status.show_heartbeat(None)
    assert (name, ()) not in samples(recorder)
    assert "heartbeat_at" not in recorder.status.snapshot()


def test_how_fresh_batches_are_can_be_asked_for_by_share(recorder: Recorder) -> None:
    found = samples(recorder)
    assert found["distributary_freshness_seconds_bucket", (("le", "2.5"),)] == 0
    assert found["distributary_freshness_seconds_bucket", (("le", "5.0"),)] == 1
    assert found["distributary_freshness_seconds_count", ()] == 1


def test_the_processes_report_themselves(recorder: Recorder) -> None:
    found = samples(recorder)
    for prefix in PROCESSES:
        assert found[f"{prefix}_process_resident_memory_bytes", ()] > 2**20
        assert found[f"{prefix}_process_cpu_seconds_total", ()] > 0
    assert found["distributary_jvm_heap_used_bytes", ()] == 1
    assert found["distributary_jvm_collection_seconds_total", ()] == 0.5
    assert not [name for name, _ in samples(Recorder(ServiceStatus())) if "jvm" in name]


def test_counters_of_a_table_begin_at_0_so_that_the_first_event_is_an_increase() -> None:
    recorder = Recorder(ServiceStatus())
    recorder.add_table("s.t")
    found = samples(recorder)
    for name in ("commits", "retries", "schema_changes"):
        assert found[f"distributary_table_{name}_total", (("table", "s.t"),)] == 0


def test_a_watch_adds_up_what_belongs_to_a_phase_also_where_it_fails() -> None:
    watch = Stopwatch()
    for _ in range(2):
        with pytest.raises(ValueError, match="no"), watch.phase("check"):
            raise ValueError("no")
    with watch.phase("read"):
        pass
    assert list(watch.phases) == ["check", "read"]
    assert 0 < sum(watch.phases.values()) <= watch.seconds


def test_the_tasks_in_the_catalogue_are_those_that_are_done() -> None:
    assert list(TASKS) == [task.value for task in Task]
