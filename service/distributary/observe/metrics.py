"""The catalogue of all metrics. Only metrics that are in it are exposed, and docs/metrics.md is made from it."""

from __future__ import annotations

from distributary.observe.metric import Kind, Metric

PHASES = {
    "look": "where the table and its topic are, and the format of the first records",
    "read": "records are read, decoded and counted, columns are added",
    "quarantine": "records that can't be applied are put aside",
    "write": "changes are applied to the rows of their keys and committed to the table",
}
TASKS = {
    "compact": "small files are made into larger ones",
    "vacuum": "files that are no longer part of the table are removed",
}
STAGES = {
    "to_connector": "from the source's commit until the connector got to it",
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
    "Records in Kafka that the table has not processed yet.",
    unit="records",
)
LAG_SECONDS = Metric(
    "distributary_table_lag_seconds",
    Kind.GAUGE,
    "Age at the source of the newest processed change while the table is behind, 0 while it is not.",
    unit="seconds",
)
FRESHNESS = Metric(
    "distributary_table_freshness_seconds",
    Kind.GAUGE,
    "Time from the source's commit of the oldest streamed change of the last batch to the batch's commit.",
    unit="seconds",
)
STAGE = Metric(
    "distributary_table_stage_seconds",
    Kind.GAUGE,
    "Time that the oldest streamed change of the last batch took on each part of its way to the table.",
    ("table", "stage"),
    unit="seconds",
)
SOURCE_TIME = Metric(
    "distributary_table_source_timestamp_seconds",
    Kind.GAUGE,
    "When the source committed the newest processed change, in seconds since 1970.",
    unit="seconds",
)
LAST_COMMIT = Metric(
    "distributary_table_last_commit_timestamp_seconds",
    Kind.GAUGE,
    "When the service last committed to the table, in seconds since 1970.",
    unit="seconds",
)
APPLIED = Metric(
    "distributary_table_records_applied",
    Kind.COUNTER,
    "Records that the table has processed, over all runs.",
    unit="records",
)
QUARANTINED = Metric(
    "distributary_table_quarantined",
    Kind.COUNTER,
    "Records of the table put into quarantine, over all runs.",
    unit="records",
)
UNDECIDED = Metric(
    "distributary_table_undecided",
    Kind.COUNTER,
    "Deletes that could apply to either of two rows of the same key (rule 2.7), over all runs.",
    unit="records",
)
GHOSTS = Metric(
    "distributary_table_ghost_rows",
    Kind.GAUGE,
    "Rows of the table that its last complete snapshot does not have.",
    unit="rows",
)
REMEMBERED_KEYS = Metric(
    "distributary_table_remembered_keys",
    Kind.GAUGE,
    "Keys of which the table remembers more than their row: changes that another one may still contradict.",
)
MEMORY_BYTES = Metric(
    "distributary_table_memory_bytes",
    Kind.GAUGE,
    "Bytes that a commit writes of what the table remembers beside its rows.",
    unit="bytes",
)
COMMITS = Metric("distributary_table_commits", Kind.COUNTER, "Batches committed to the table since the start.")
RECORDS = Metric(
    "distributary_table_records",
    Kind.COUNTER,
    "Records processed since the start by operation, without those put into quarantine.",
    ("table", "op"),
    unit="records",
)
MERGED = Metric(
    "distributary_table_merged_rows",
    Kind.COUNTER,
    "Rows that commits to the table changed since the start, as Delta counted them.",
    ("table", "change"),
    unit="rows",
)
BY_REASON = Metric(
    "distributary_table_quarantined_by_reason",
    Kind.COUNTER,
    "Records put into quarantine since the start by reason.",
    ("table", "reason"),
    unit="records",
)
RETRIES = Metric(
    "distributary_table_retries",
    Kind.COUNTER,
    "Batches since the start that failed in a way that may pass and were tried again, lost commits among them.",
)
SCHEMA_CHANGES = Metric(
    "distributary_table_schema_changes",
    Kind.COUNTER,
    "Times since the start that the table was made or got columns.",
)
COMPACTED_AT = Metric(
    "distributary_table_last_compaction_timestamp_seconds",
    Kind.GAUGE,
    "When the table's small files were last made into larger ones, in seconds since 1970.",
    unit="seconds",
)
VACUUMED_AT = Metric(
    "distributary_table_last_vacuum_timestamp_seconds",
    Kind.GAUGE,
    "When files that are no longer part of the table were last removed, in seconds since 1970.",
    unit="seconds",
)
COMPACTED_FILES = Metric(
    "distributary_table_compacted_files",
    Kind.COUNTER,
    "Small files of the table that compactions since the start have made into larger ones.",
)
COMPACTED_BYTES = Metric(
    "distributary_table_compacted_bytes",
    Kind.COUNTER,
    "Bytes of these files.",
    unit="bytes",
)
MAINTENANCE = Metric(
    "distributary_table_maintenance_duration_seconds",
    Kind.SUMMARY,
    "Time that maintenance of the table's files took, by task.",
    ("table", "task"),
    unit="seconds",
)
MAINTENANCE_FAILURES = Metric(
    "distributary_table_maintenance_failures",
    Kind.COUNTER,
    "Tasks of maintenance since the start that failed; they are tried again later.",
    ("table", "task"),
)
MAINTENANCE_IN_VAIN = Metric(
    "distributary_table_maintenance_failed_tries",
    Kind.GAUGE,
    "How often in a row a task of maintenance has failed since it was done last.",
    ("table", "task"),
)
TABLE_BATCH = Metric(
    "distributary_table_batch_duration_seconds",
    Kind.SUMMARY,
    "Time that the table's committed batches took, by phase.",
    ("table", "phase"),
    unit="seconds",
)
BATCH = Metric(
    "distributary_batch_duration_seconds",
    Kind.HISTOGRAM,
    "Time that committed batches of all tables took, by phase.",
    ("phase",),
    unit="seconds",
    # A table of its own in every label would be a dozen series per table and phase.
    buckets=(0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300, 600),
)
FRESHNESS_OF_BATCHES = Metric(
    "distributary_freshness_seconds",
    Kind.HISTOGRAM,
    "Time from the source's commit of the oldest streamed change of a batch to the batch's commit, of all tables.",
    (),
    unit="seconds",
    buckets=(1, 2.5, 5, 10, 15, 30, 60, 120, 300, 600, 1800, 3600, 21600),
)
JVM_HEAP_USED = Metric(
    "distributary_jvm_heap_used_bytes", Kind.GAUGE, "Bytes of the heap of Spark's JVM that are used.", (), unit="bytes"
)
JVM_HEAP_MAX = Metric(
    "distributary_jvm_heap_max_bytes",
    Kind.GAUGE,
    "Bytes that the heap of Spark's JVM may have at most.",
    (),
    unit="bytes",
)
JVM_COLLECTIONS = Metric(
    "distributary_jvm_collection_seconds",
    Kind.COUNTER,
    "Time that Spark's JVM has spent in garbage collections since its start.",
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
READY = Metric("distributary_ready", Kind.GAUGE, "1 once the service takes records in, else 0.", ())
STARTED = Metric(
    "distributary_start_timestamp_seconds",
    Kind.GAUGE,
    "When the service started, in seconds since 1970.",
    (),
    unit="seconds",
)
LAST_TURN = Metric(
    "distributary_last_turn_timestamp_seconds",
    Kind.GAUGE,
    "When the service's loop made its last turn, in seconds since 1970.",
    (),
    unit="seconds",
)
LAST_PLAN = Metric(
    "distributary_last_plan_timestamp_seconds",
    Kind.GAUGE,
    "When the stream last had planned all that Kafka had at its turn, in seconds since 1970.",
    (),
    unit="seconds",
)
HEARTBEAT = Metric(
    "distributary_connector_heartbeat_timestamp_seconds",
    Kind.GAUGE,
    "When Kafka got the connector's last heartbeat, in seconds since 1970.",
    (),
    unit="seconds",
)
CONFIG_FAULTS = Metric(
    "distributary_config_faults",
    Kind.GAUGE,
    "Faults in the config's files, changed since the start: what they said before counts until the next one.",
    (),
)
INFO = Metric("distributary_build_info", Kind.GAUGE, "1, with the version of the service.", ("version",))
COMPLETE = Metric(
    "distributary_complete_transaction_timestamp_seconds",
    Kind.GAUGE,
    "Commit time of the last transaction up to which all tables are complete, in seconds since 1970.",
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
    STATE, LAG_RECORDS, LAG_SECONDS, FRESHNESS, STAGE, SOURCE_TIME, LAST_COMMIT, APPLIED, QUARANTINED, UNDECIDED,
    GHOSTS, REMEMBERED_KEYS, MEMORY_BYTES, COMMITS, RECORDS, MERGED, BY_REASON, RETRIES, SCHEMA_CHANGES, COMPACTED_AT,
    VACUUMED_AT, COMPACTED_FILES, COMPACTED_BYTES, MAINTENANCE, MAINTENANCE_FAILURES, MAINTENANCE_IN_VAIN,
    TABLE_BATCH, BATCH, FRESHNESS_OF_BATCHES, READY, STARTED, LAST_TURN, LAST_PLAN, HEARTBEAT, CONFIG_FAULTS, INFO,
    COMPLETE, PENDING, JVM_HEAP_USED, JVM_HEAP_MAX, JVM_COLLECTIONS, JVM_THREADS, *OF_PROCESSES,
)  # fmt: skip
