"""The catalogue of all metrics. Only metrics that are in it are exposed, and docs/metrics.md is made from it."""

from __future__ import annotations

from distributary.observe.metric import Kind, Metric

PHASES = {
    "check": "the table's progress, the topic's state, the format of the first records",
    "read": "records are read, decoded and counted, columns are added",
    "quarantine": "records that can't be applied are written to the quarantine table",
    "write": "changes are applied to the rows of their keys and committed to the table",
}
TASKS = {
    "compact": "small files are compacted into larger ones",
    "vacuum": "files that are no longer part of the table are removed",
}
STAGES = {
    "to_connector": "from the commit at the source until the connector processed the change",
    "to_kafka": "from there until Kafka had it",
    "to_table": "from there until the table's commit",
}
OPERATIONS = ("create", "update", "delete", "read", "truncate", "tombstone", "message")
CHANGES = ("inserted", "updated", "deleted")

STATE = Metric(
    "distributary_table_state", Kind.GAUGE, "1 for the state that the table is in, else 0.", ("table", "state")
)
LAG_RECORDS = Metric(
    "distributary_table_lag_records",
    Kind.GAUGE,
    "Records in Kafka that the table has not applied yet.",
    unit="records",
)
LAG_SECONDS = Metric(
    "distributary_table_lag_seconds",
    Kind.GAUGE,
    "Age, at the source, of the newest applied change; 0 if the table has applied all records.",
    unit="seconds",
)
FRESHNESS = Metric(
    "distributary_table_freshness_seconds",
    Kind.GAUGE,
    "Time from the commit at the source to the Delta commit, for the oldest streamed change of the last batch.",
    unit="seconds",
)
STAGE = Metric(
    "distributary_table_stage_seconds",
    Kind.GAUGE,
    "Time that the oldest streamed change of the last batch spent in each stage.",
    ("table", "stage"),
    unit="seconds",
)
SOURCE_TIME = Metric(
    "distributary_table_source_timestamp_seconds",
    Kind.GAUGE,
    "Time at which the source committed the newest applied change, in seconds since 1970.",
    unit="seconds",
)
LAST_COMMIT = Metric(
    "distributary_table_last_commit_timestamp_seconds",
    Kind.GAUGE,
    "Time of the last commit to the table, in seconds since 1970.",
    unit="seconds",
)
APPLIED = Metric(
    "distributary_table_records_applied",
    Kind.COUNTER,
    "Records that the table has applied, over all runs.",
    unit="records",
)
QUARANTINED = Metric(
    "distributary_table_quarantined",
    Kind.COUNTER,
    "Records of the table that went to quarantine, over all runs.",
    unit="records",
)
AMBIGUOUS_DELETES = Metric(
    "distributary_table_ambiguous_deletes",
    Kind.COUNTER,
    "Deletes that could apply to either of two rows of the same key (rule 2.7), over all runs.",
    unit="records",
)
UNDECIDED = AMBIGUOUS_DELETES.former("distributary_table_undecided")
ORPHANED_ROWS = Metric(
    "distributary_table_orphaned_rows",
    Kind.GAUGE,
    "Orphaned rows: rows of the table that its last complete snapshot does not have.",
    unit="rows",
)
GHOST_ROWS = ORPHANED_ROWS.former("distributary_table_ghost_rows")
REMEMBERED_KEYS = Metric(
    "distributary_table_remembered_keys",
    Kind.GAUGE,
    "Keys for which the table's memory has more than their row.",
)
MEMORY_BYTES = Metric(
    "distributary_table_memory_bytes",
    Kind.GAUGE,
    "Size of the table's memory in its last commit.",
    unit="bytes",
)
COMMITS = Metric(
    "distributary_table_commits", Kind.COUNTER, "Batches committed to the table since the start of the service."
)
RECORDS = Metric(
    "distributary_table_records",
    Kind.COUNTER,
    "Records applied since the start of the service, by operation.",
    ("table", "op"),
    unit="records",
)
MERGED = Metric(
    "distributary_table_merged_rows",
    Kind.COUNTER,
    "Rows that were inserted, updated or deleted since the start of the service, as Delta counts them.",
    ("table", "change"),
    unit="rows",
)
BY_REASON = Metric(
    "distributary_table_quarantined_by_reason",
    Kind.COUNTER,
    "Records that went to quarantine since the start of the service, by reason.",
    ("table", "reason"),
    unit="records",
)
RETRIES = Metric(
    "distributary_table_retries",
    Kind.COUNTER,
    "Batches since the start of the service that failed with a temporary error (lost commits included) and "
    "were tried again.",
)
SCHEMA_CHANGES = Metric(
    "distributary_table_schema_changes",
    Kind.COUNTER,
    "How often the table was created or got columns since the start of the service.",
)
COMPACTED_AT = Metric(
    "distributary_table_last_compaction_timestamp_seconds",
    Kind.GAUGE,
    "Time of the last compaction, in seconds since 1970.",
    unit="seconds",
)
VACUUMED_AT = Metric(
    "distributary_table_last_vacuum_timestamp_seconds",
    Kind.GAUGE,
    "Time of the last VACUUM, in seconds since 1970.",
    unit="seconds",
)
COMPACTED_FILES = Metric(
    "distributary_table_compacted_files",
    Kind.COUNTER,
    "Small files that were compacted since the start of the service.",
)
COMPACTED_BYTES = Metric(
    "distributary_table_compacted_bytes",
    Kind.COUNTER,
    "Bytes of the small files that were compacted since the start of the service.",
    unit="bytes",
)
MAINTENANCE = Metric(
    "distributary_table_maintenance_duration_seconds",
    Kind.SUMMARY,
    "Duration of maintenance, by task.",
    ("table", "task"),
    unit="seconds",
)
MAINTENANCE_FAILURES = Metric(
    "distributary_table_maintenance_failures",
    Kind.COUNTER,
    "Maintenance tasks that failed since the start of the service. They are tried again.",
    ("table", "task"),
)
MAINTENANCE_IN_VAIN = Metric(
    "distributary_table_maintenance_failed_tries",
    Kind.GAUGE,
    "Consecutive failures of a maintenance task.",
    ("table", "task"),
)
TABLE_BATCH = Metric(
    "distributary_table_batch_duration_seconds",
    Kind.SUMMARY,
    "Duration of the table's committed batches, by phase.",
    ("table", "phase"),
    unit="seconds",
)
BATCH = Metric(
    "distributary_batch_duration_seconds",
    Kind.HISTOGRAM,
    "Duration of the committed batches of all tables, by phase.",
    ("phase",),
    unit="seconds",
    # A table of its own in every label would be a dozen series per table and phase.
    buckets=(0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300, 600),
)
FRESHNESS_OF_BATCHES = Metric(
    "distributary_freshness_seconds",
    Kind.HISTOGRAM,
    "Time from the commit at the source to the Delta commit, for the oldest streamed change of each batch, all tables.",
    (),
    unit="seconds",
    buckets=(1, 2.5, 5, 10, 15, 30, 60, 120, 300, 600, 1800, 3600, 21600),
)
JVM_HEAP_USED = Metric("distributary_jvm_heap_used_bytes", Kind.GAUGE, "Used heap of Spark's JVM.", (), unit="bytes")
JVM_HEAP_MAX = Metric(
    "distributary_jvm_heap_max_bytes",
    Kind.GAUGE,
    "Maximum heap of Spark's JVM.",
    (),
    unit="bytes",
)
JVM_COLLECTIONS = Metric(
    "distributary_jvm_collection_seconds",
    Kind.COUNTER,
    "Time that Spark's JVM has spent in garbage collection.",
    (),
    unit="seconds",
)
JVM_THREADS = Metric("distributary_jvm_threads", Kind.GAUGE, "Threads of Spark's JVM.", ())
PROCESSES = {
    "distributary": "the service's Python process",
    "distributary_jvm": "Spark's JVM, if the service started it",
}
"""The processes that have metrics, by the prefix of their names."""
_OF_PROCESSES = (
    ("virtual_memory_bytes", Kind.GAUGE, "Virtual memory size in bytes.", "bytes"),
    ("resident_memory_bytes", Kind.GAUGE, "Resident memory size in bytes.", "bytes"),
    ("start_time_seconds", Kind.GAUGE, "Start time of the process since unix epoch in seconds.", "seconds"),
    ("cpu_seconds", Kind.COUNTER, "Total user and system CPU time spent in seconds.", "seconds"),
    ("max_fds", Kind.GAUGE, "Maximum number of open file descriptors.", ""),
    ("open_fds", Kind.GAUGE, "Number of open file descriptors.", ""),
)
"""As prometheus_client has them."""
OF_PROCESSES = tuple(
    Metric(f"{prefix}_process_{name}", kind, text, (), unit)
    for prefix in PROCESSES
    for name, kind, text, unit in _OF_PROCESSES
)
READY = Metric("distributary_ready", Kind.GAUGE, "1 once the service applies records, else 0.", ())
STARTED = Metric(
    "distributary_start_timestamp_seconds",
    Kind.GAUGE,
    "Start time of the service, in seconds since 1970.",
    (),
    unit="seconds",
)
LAST_TURN = Metric(
    "distributary_last_turn_timestamp_seconds",
    Kind.GAUGE,
    "Time at which the service's loop last ran, in seconds since 1970.",
    (),
    unit="seconds",
)
LAST_PLAN = Metric(
    "distributary_last_plan_timestamp_seconds",
    Kind.GAUGE,
    "Time at which the stream last planned everything that Kafka had, in seconds since 1970.",
    (),
    unit="seconds",
)
HEARTBEAT = Metric(
    "distributary_connector_heartbeat_timestamp_seconds",
    Kind.GAUGE,
    "Time at which Kafka got the connector's last heartbeat, in seconds since 1970.",
    (),
    unit="seconds",
)
CONFIG_FAULTS = Metric(
    "distributary_config_faults",
    Kind.GAUGE,
    "Faults in config files that changed since the start. Until they are fixed the previous contents apply.",
    (),
)
INFO = Metric(
    "distributary_build_info", Kind.GAUGE, "Always 1; the label has the version of the service.", ("version",)
)
COMPLETE = Metric(
    "distributary_complete_transaction_timestamp_seconds",
    Kind.GAUGE,
    "Commit time at the source of the last transaction up to which all tables are complete, in seconds since 1970.",
    (),
    unit="seconds",
)
PENDING = Metric(
    "distributary_pending_transactions",
    Kind.GAUGE,
    "Transactions that ended after the last one up to which all tables are complete.",
    (),
)

CATALOGUE = (
    STATE, LAG_RECORDS, LAG_SECONDS, FRESHNESS, STAGE, SOURCE_TIME, LAST_COMMIT, APPLIED, QUARANTINED,
    AMBIGUOUS_DELETES, UNDECIDED, ORPHANED_ROWS, GHOST_ROWS, REMEMBERED_KEYS, MEMORY_BYTES, COMMITS, RECORDS, MERGED,
    BY_REASON, RETRIES, SCHEMA_CHANGES, COMPACTED_AT, VACUUMED_AT, COMPACTED_FILES, COMPACTED_BYTES, MAINTENANCE,
    MAINTENANCE_FAILURES, MAINTENANCE_IN_VAIN, TABLE_BATCH, BATCH, FRESHNESS_OF_BATCHES, READY, STARTED, LAST_TURN,
    LAST_PLAN, HEARTBEAT, CONFIG_FAULTS, INFO, COMPLETE, PENDING, JVM_HEAP_USED, JVM_HEAP_MAX, JVM_COLLECTIONS,
    JVM_THREADS, *OF_PROCESSES,
)  # fmt: skip
