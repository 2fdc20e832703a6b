"""Detects the format of a table's records from the first of them, the config and the table's progress."""

from __future__ import annotations

from collections.abc import Sequence

from distributary.config.source import Source
from distributary.config.table import TableSettings
from distributary.consume.kafka_client import Topic
from distributary.consume.sample import SampledRecord
from distributary.decode.unwrapped import added_by
from distributary.ingest.bare_keys import with_bare_keys
from distributary.ingest.framing import check_framing
from distributary.ingest.json_records import as_json, check_schemas
from distributary.ingest.keyless import without_late_key
from distributary.ingest.registry import Registry
from distributary.ingest.supported import check_supported
from distributary.ingest.topic_format import KnownFormat, TopicFormat, detect_format
from distributary.progress.record import Progress


class FormatDetector:
    """Detects the format of one table's records. `progress` is the table's record, None if it has applied nothing;
    `has_columns`: the table is there. The methods raise TableHalt for records that can't be applied, and what
    Registry.schema raises."""

    def __init__(self, source: Source, settings: TableSettings, registry: Registry | None) -> None:
        self._source = source
        self._settings = settings
        self._registry = registry
        self._added = added_by(source.connector_properties)

    def supported(
        self, records: Sequence[SampledRecord], topic: Topic, progress: Progress | None, *, has_columns: bool
    ) -> TopicFormat:
        """The format of the records. Raises TableHalt for one that the config rules out, too."""
        topic_format = self.detect(records, topic, progress, has_columns=has_columns)
        check_supported(self._settings, topic_format, is_avro=self._registry is not None)
        return topic_format

    def detect(
        self, records: Sequence[SampledRecord], topic: Topic, progress: Progress | None, *, has_columns: bool
    ) -> TopicFormat:
        """The format of the records."""
        known = KnownFormat(progress.connector, progress.unwrapped) if progress else None
        has_order = bool(self._source.order)
        records = self._as_json(records, progress)
        check_framing(records, topic.name, self._source.format)
        topic_format = detect_format(records, topic.name, self._source.connector, self._added, known, has_order)
        topic_format = without_late_key(topic_format, records, self._settings, progress, has_columns=has_columns)
        return with_bare_keys(topic_format, records, self._settings)

    def _as_json(self, records: Sequence[SampledRecord], progress: Progress | None) -> list[SampledRecord]:
        """Raises TableHalt where a new table's records all name schemas that the registry does not know."""
        json_records = [as_json(record, self._registry) for record in records]
        if progress is None and self._registry is not None:
            check_schemas(json_records, self._registry)
        return json_records
