"""Records that an operator set aside with `distributary quarantine add`: the table skips them without decoding them.

Each is a small file beside the tables. The file stays, so that a rebuilt table skips the record, too.
"""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from functools import reduce
from typing import TYPE_CHECKING

import pyarrow as pa

from distributary.config import Config
from distributary.consume.kafka_client import KafkaClient
from distributary.consume.offsets import OffsetRange
from distributary.errors import UsageError
from distributary.ingest.tables import listed, named, own_path
from distributary.logs import get_logger
from distributary.storage.json_file import JsonFile, names_in
from distributary.storage.lake_files import newest_record
from distributary.storage.request_files import RegularRead, leave_file

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from distributary.consume.remaining import Places
    from distributary.consume.source import RecordSource
    from distributary.quarantine.table import Quarantine

REASON = "set-aside"
"""The reason of such records in quarantine."""
_PLACE = re.compile(r"(?P<topic>[A-Za-z0-9._-]+):(?P<partition>[0-9]{1,9}):(?P<offset>[0-9]{1,18})")
_FILE = re.compile(r"(?P<topic>[A-Za-z0-9._-]+)@(?P<partition>[0-9]{1,9})@(?P<offset>[0-9]{1,18})\.json")
_EVERY = 5.0  # seconds between two reads
_log = get_logger(__name__)


@dataclass(frozen=True)
class RecordPlace:
    """The topic, partition and offset of a record."""

    topic: str
    partition: int
    offset: int

    @staticmethod
    def of(text: str) -> RecordPlace:
        """Parses `topic:partition:offset`. Raises UsageError."""
        match = _PLACE.fullmatch(text)
        if match is None:
            fix = "write it as topic:partition:offset, such as server1.dbo.orders:0:4711"
            raise UsageError("bad-place", f"{text!r} does not name a record", fix)
        return RecordPlace(match["topic"], int(match["partition"]), int(match["offset"]))

    def __str__(self) -> str:
        return f"{self.topic}:{self.partition}:{self.offset}"

    @property
    def file(self) -> str:
        """The name of the file that sets the record aside."""
        return f"{self.topic}@{self.partition}@{self.offset}.json"


def set_aside_path(config: Config) -> str:
    """The files' directory. It has the prefix in its name, because several pipelines may fill one lake."""
    return own_path(config, "set-aside", config.source.topic_prefix)


def set_aside(config: Config, table: str, place: RecordPlace, reason: str) -> None:
    """Makes the table skip the record, which goes to quarantine instead.

    Raises UsageError if the topic is not the table's or has no such record, or if the table has applied it already;
    errors of Kafka; SetupError if the lake can't be read or written.
    """
    kafka = KafkaClient(config.kafka_properties())
    configured = named(table, listed(config, kafka))
    if configured.topic != place.topic:
        fix = f"write {configured.topic}:{place.partition}:{place.offset}"
        raise UsageError("other-topic", f"the topic of {table} is {configured.topic}, not {place.topic}", fix)
    topic = kafka.topics([configured.topic])[configured.topic]
    first, end = kafka.earliest(topic), kafka.latest(topic)
    if not first.get(place.partition, 0) <= place.offset < end.get(place.partition, 0):
        there = ", ".join(f"{p}: {first.get(p, 0)} to {offset - 1}" for p, offset in sorted(end.items()) if offset)
        raise UsageError(
            "no-such-record", f"there is no record {place}", f"the topic has, by partition: {there or 'nothing'}"
        )
    newest = newest_record(configured.path)
    if newest is not None and place.offset < newest.progress.next.get(place.partition, 0):
        raise UsageError(
            "already-taken",
            f"{table} has applied {place} already",
            "an applied record can't be set aside; `resume --rebuild` fills the table again and skips records that were"
            " set aside before",
        )
    leave_file(set_aside_path(config), place.file, {"reason": reason, "at": time.time()})


def put_aside(
    places: Mapping[RecordPlace, str],
    table: str,
    session: SparkSession,
    records: RecordSource,
    quarantine: Quarantine,
    redacted_columns: Collection[str],
) -> None:
    """Adds the records at these places, each with its reason, to quarantine. Raises errors of Spark and Kafka."""
    bad = pa.table(
        {
            "partition": pa.array([place.partition for place in places], pa.int32()),
            "offset": pa.array([place.offset for place in places], pa.int64()),
            "reason": pa.array([REASON] * len(places), pa.string()),
            "message": pa.array(list(places.values()), pa.string()),
        }
    )
    ranges = [OffsetRange(p.topic, {p.partition: p.offset}, {p.partition: p.offset + 1}) for p in places]

    def raw(_places: pa.Table) -> DataFrame:
        return reduce(lambda one, other: one.unionByName(other), (records.frame(session, part) for part in ranges))

    quarantine.add(table, raw, bad, redacted_columns)


class SetAside:
    """The records set aside, as the service last read them."""

    def __init__(self, session: SparkSession, config: Config) -> None:
        self._session = session
        self._folder = set_aside_path(config)
        self._found: dict[RecordPlace, str] = {}
        self._lock = threading.Lock()
        self.poll = RegularRead(self.read, _EVERY, "set aside")

    def read(self) -> None:
        """Reads the files now. Raises errors of the storage."""
        with self._lock:
            reasons = {}
            for name in names_in(self._session, self._folder):
                match = _FILE.fullmatch(name)
                if match is not None:
                    place = RecordPlace(match["topic"], int(match["partition"]), int(match["offset"]))
                    reasons[place] = self._found.get(place) or self._reason(name)
            self._found = reasons

    def places(self) -> Mapping[str, Places]:
        """The places by topic."""
        by_topic: dict[str, set[tuple[int, int]]] = {}
        for place in list(self._found):
            by_topic.setdefault(place.topic, set()).add((place.partition, place.offset))
        return {topic: frozenset(places) for topic, places in by_topic.items()}

    def within(self, batch: OffsetRange) -> dict[RecordPlace, str]:
        """The records set aside in an offset range, each with its reason."""
        return {
            place: reason
            for place, reason in list(self._found.items())
            if place.topic == batch.topic
            and batch.start.get(place.partition, 0) <= place.offset < batch.end.get(place.partition, 0)
        }

    def _reason(self, name: str) -> str:
        content = JsonFile(self._session, f"{self._folder}/{name}").read()
        reason = str(content.get("reason") or "") if isinstance(content, dict) else ""
        return f"set aside by an operator{': ' if reason else ''}{reason}"
