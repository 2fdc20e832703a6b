"""Records that an operator set aside with `distributary quarantine add`: the table skips them without decoding them.

Each is a small file beside the tables. The file stays, so that a rebuilt table skips the record, too.
"""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import pyarrow as pa

from distributary.config import Config
from distributary.consume.kafka_client import KafkaClient
from distributary.consume.offsets import OffsetRange
from distributary.consume.sample import SampledRecord
from distributary.errors import UsageError
from distributary.ingest.tables import find_table, list_tables, own_path
from distributary.logs import get_logger
from distributary.quarantine.coordinates import RecordCoordinates
from distributary.reasons import CONTRADICTED_POSITION
from distributary.storage.json_file import JsonFile, names_in
from distributary.storage.lake_files import newest_record
from distributary.storage.request_files import RegularRead, leave_file

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from distributary.consume.remaining import PartitionOffsets
    from distributary.consume.source import RecordSource
    from distributary.quarantine.table import Quarantine

REASON = "set-aside"
"""The reason of such records in quarantine."""
NEVER_REPLAYED = (REASON, CONTRADICTED_POSITION.code)
"""The reasons of records that a replay leaves in quarantine: one whose position is wrong has no place among the changes
of its key, and would bring back a row that was deleted long ago."""
_FILE = re.compile(r"(?P<topic>[A-Za-z0-9._-]+)@(?P<partition>[0-9]{1,9})@(?P<offset>[0-9]{1,18})\.json")
_EVERY = 5.0  # seconds between two reads
_log = get_logger(__name__)


def file_name(record: RecordCoordinates) -> str:
    """The name of the file that sets the record aside."""
    return f"{record.topic}@{record.partition}@{record.offset}.json"


def set_aside_path(config: Config) -> str:
    """The files' directory. It has the prefix in its name, because several pipelines may fill one lake."""
    return own_path(config, "set-aside", config.source.topic_prefix)


def set_aside(config: Config, table: str, record: RecordCoordinates, reason: str) -> RecordCoordinates | None:
    """Makes the table skip the record, which goes to quarantine instead. Returns the tombstone directly after it, if
    its key has one in Kafka: if the record is a delete, the tombstone alone deletes the row.

    Raises UsageError if the topic is not the table's or has no such record, or if the table has applied it already;
    errors of Kafka; SetupError if the lake can't be read or written.
    """
    kafka = KafkaClient(config.kafka_properties())
    configured = find_table(table, list_tables(config, kafka))
    if configured.topic != record.topic:
        fix = f"write {replace(record, topic=configured.topic)}"
        raise UsageError("other-topic", f"the topic of {table} is {configured.topic}, not {record.topic}", fix)
    topic = kafka.topics([configured.topic])[configured.topic]
    first, end = kafka.earliest(topic), kafka.latest(topic)
    if not first.get(record.partition, 0) <= record.offset < end.get(record.partition, 0):
        there = ", ".join(f"{p}: {first.get(p, 0)} to {offset - 1}" for p, offset in sorted(end.items()) if offset)
        raise UsageError(
            "no-such-record", f"there is no record {record}", f"the topic has, by partition: {there or 'nothing'}"
        )
    newest = newest_record(configured.path)
    if newest is not None and record.offset < newest.progress.next.get(record.partition, 0):
        raise UsageError(
            "already-applied",
            f"{table} has applied {record} already",
            "an applied record can't be set aside; `resume --rebuild` fills the table again and skips records that were"
            " set aside before",
        )
    following = _following_tombstone(record, kafka.records(topic, {record.partition: record.offset}, 2))
    leave_file(set_aside_path(config), file_name(record), {"reason": reason, "at": time.time()})
    return following


def _following_tombstone(record: RecordCoordinates, records: Sequence[SampledRecord]) -> RecordCoordinates | None:
    """The tombstone of the record's key, if it is the next one. `records`: those from the record's offset on."""
    if len(records) < 2 or records[0].offset != record.offset:
        return None
    found, following = records[0], records[1]
    is_tombstone = following.value is None and following.key is not None and following.key == found.key
    return replace(record, offset=following.offset) if is_tombstone and found.value is not None else None


def quarantine_set_aside(
    reasons: Mapping[RecordCoordinates, str],
    table: str,
    session: SparkSession,
    records: RecordSource,
    quarantine: Quarantine,
    redacted_columns: Collection[str],
) -> None:
    """Adds records, each with its reason, to quarantine. Raises errors of Spark, Kafka and the storage."""
    bad = pa.table(
        {
            "partition": pa.array([record.partition for record in reasons], pa.int32()),
            "offset": pa.array([record.offset for record in reasons], pa.int64()),
            "reason": pa.array([REASON] * len(reasons), pa.string()),
            "message": pa.array(list(reasons.values()), pa.string()),
        }
    )
    ranges = [OffsetRange(p.topic, {p.partition: p.offset}, {p.partition: p.offset + 1}) for p in reasons]

    def raw(_records: pa.Table) -> Iterator[pa.Table]:
        return (records.frame(session, part).toArrow() for part in ranges)

    quarantine.add(table, raw, bad, redacted_columns)
    _log.warning("records that were set aside went to quarantine", table=table, records=sorted(map(str, reasons)))


class SetAside:
    """The records set aside, as the service last read them."""

    def __init__(self, session: SparkSession, config: Config) -> None:
        self._session = session
        self._folder = set_aside_path(config)
        self._found: dict[RecordCoordinates, str] = {}
        self._lock = threading.Lock()
        self.poll = RegularRead(self.read, _EVERY, "the list of records set aside")

    def read(self) -> None:
        """Reads the files now. Raises errors of the storage."""
        with self._lock:
            reasons = {}
            for name in names_in(self._session, self._folder, had_files=bool(self._found)):
                match = _FILE.fullmatch(name)
                if match is not None:
                    record = RecordCoordinates(match["topic"], int(match["partition"]), int(match["offset"]))
                    reasons[record] = self._found.get(record) or self._reason(name)
            self._found = reasons

    def offsets(self) -> Mapping[str, PartitionOffsets]:
        """The partition and offset of each record, by topic."""
        by_topic: dict[str, set[tuple[int, int]]] = {}
        for record in list(self._found):
            by_topic.setdefault(record.topic, set()).add((record.partition, record.offset))
        return {topic: frozenset(offsets) for topic, offsets in by_topic.items()}

    def within(self, batch: OffsetRange) -> dict[RecordCoordinates, str]:
        """The records set aside in an offset range, each with its reason."""
        return {
            record: reason
            for record, reason in list(self._found.items())
            if record.topic == batch.topic and batch.has(record.partition, record.offset)
        }

    def _reason(self, name: str) -> str:
        content = JsonFile(self._session, f"{self._folder}/{name}").read()
        reason = str(content.get("reason") or "") if isinstance(content, dict) else ""
        return f"set aside by an operator{': ' if reason else ''}{reason}"
