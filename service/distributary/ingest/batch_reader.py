"""Decodes the batches of one table, learns the format of its records, and has the table follow their columns."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from threading import Event

from structlog.typing import FilteringBoundLogger

from distributary.config.source import Source
from distributary.config.table import TableSettings
from distributary.consume.kafka_client import KafkaClient, Topic
from distributary.consume.offsets import OffsetRange
from distributary.consume.record_tables import raw_table
from distributary.consume.remaining import PartitionOffsets
from distributary.consume.sample import SampledRecord
from distributary.decode.decoder import Decoded, Decoder
from distributary.decode.observed_columns import ObservedColumns
from distributary.decode.options import DecodeOptions, TypeSources
from distributary.decode.source_block import BY_OFFSET, SOURCE_TABLE_COLUMN
from distributary.decode.source_order import order_of
from distributary.errors import TableHalt
from distributary.evolve.diff import check_key_columns, compatible_types
from distributary.ingest.batch_counts import count_batch
from distributary.ingest.decode_options import decode_options
from distributary.ingest.decoded_batch import ReadBatch, rejecting
from distributary.ingest.format_detector import FormatDetector
from distributary.ingest.large_values import LargeValueStore
from distributary.ingest.raw_records import RawRecords
from distributary.ingest.registry import KnownSchemas, Registry
from distributary.ingest.sent_columns import SentColumns
from distributary.ingest.service_columns import column_policy
from distributary.ingest.source_tables import filled_table, with_source_in_key
from distributary.ingest.stray_records import check_strays, without_strays
from distributary.ingest.table_columns import TableColumns
from distributary.ingest.topic_format import TopicFormat
from distributary.lake.table import LakeTable
from distributary.progress.record import AddedColumn, Progress
from distributary.rules.event import Pointer
from distributary.types.record_schema import RecordSchema


class BatchReader:
    """Reads the batches of one table, and remembers the schemas of its records.

    `announced` returns the column types of the connector's schema-change topic; it is called for records without a
    schema. `ignored` returns, by topic, the records that are left out when the format is detected. `large_values`:
    where values are that the connector stored outside of the records.
    """

    def __init__(
        self,
        kafka: KafkaClient,
        source: Source,
        settings: TableSettings,
        lake: LakeTable,
        log: FilteringBoundLogger,
        transactions: Event,
        registry: Registry | None,
        announced: Callable[[], Mapping[str, str]] = dict,
        ignored: Callable[[], Mapping[str, PartitionOffsets]] = dict,
        large_values: LargeValueStore | None = None,
    ) -> None:
        self._kafka = kafka
        self._ignored = ignored
        self._large_values = large_values
        self._avro = KnownSchemas(registry)
        self._formats = FormatDetector(source, settings, registry)
        self._source = source
        self.settings = settings
        self._log = log
        self._transactions = transactions
        policy = column_policy(source, settings)
        self.table_columns = TableColumns(lake, policy, log, fills=settings.fills_defaults)
        self.sent = SentColumns(settings, self.table_columns, log, 2 * policy.most)
        """The columns of the records so far."""
        self._observed: tuple[ObservedColumns, ...] = ()
        self.source_table: str | None = None
        """The source table of the records so far, see check_source_tables."""
        self._format: TopicFormat | None = None
        self._ask_announced = announced
        self._announced: Mapping[str, str] = {}
        self._has_asked = False
        self._decoder: Decoder | None = None
        self._decoded_with: tuple[DecodeOptions, RecordSchema]

    @property
    def columns(self) -> Mapping[str, str]:
        """The source's columns that the table has: name to Spark type."""
        return self.table_columns.columns

    @property
    def observed(self) -> tuple[ObservedColumns, ...]:
        """The columns of the first records, once their format was detected."""
        return self._observed

    @property
    def added(self) -> Mapping[str, AddedColumn]:
        """Columns whose defaults older rows have (see Progress)."""
        return self.table_columns.added

    def detect_format(self, topic: Topic, start: Mapping[int, int], progress: Progress | None) -> TopicFormat | None:
        """The format of the records from `start` on; None for a new table without records (aborted transactions leave
        offsets). Raises TableHalt."""
        if self._format is not None:
            return self._format
        self.sent.load_masks()
        records = self._head(topic, start)
        if not records and progress is None:
            return None
        self.table_columns.load(None if progress is None else progress.added)
        topic_format = self._formats.supported(records, topic, progress, has_columns=bool(self.table_columns.columns))
        topic_format = with_source_in_key(topic_format, self.settings)
        self._format = topic_format if topic_format.is_conclusive else None
        if topic_format.order == BY_OFFSET:
            self._log.warning(
                "rows without an envelope are ordered by their offsets: while records are sent again, the table has"
                " older states of their rows",
                fix="name the source's position under add.fields of ExtractNewRecordState",
            )
        if progress is not None:
            self.sent.check_table(progress)
        key = progress.key if progress is not None else self.sent.renames.all_of(topic_format.key or self.settings.key)
        self._learn(topic, records, topic_format, key, progress)
        if progress is None:
            self.sent.check_protected()
        return topic_format

    def range_of_one_form(
        self, first: Mapping[int, int], topic: Topic, batch: OffsetRange, progress: Progress
    ) -> OffsetRange:
        """The beginning of the batch, before a change of the connector's transforms gave its records an envelope or
        took it away; all of it without such a change. `first`: the first record of each partition that seems to have
        another form. Reads the topic only if there are some."""
        return batch.before(first) if first and self._has_other_form(topic, first, progress) else batch

    def _has_other_form(self, topic: Topic, start: Mapping[int, int], progress: Progress) -> bool:
        """Whether the records from `start` on have an envelope and earlier ones had none, or the reverse. False for
        records that halt the table."""
        try:
            records, has_columns = self._head(topic, start), bool(self.table_columns.columns)
            topic_format = self._formats.detect(records, topic, progress, has_columns=has_columns)
        except TableHalt:
            return False
        return (topic_format.unwrapped is not None) != progress.unwrapped

    def _head(self, topic: Topic, start: Mapping[int, int]) -> list[SampledRecord]:
        ignored = self._ignored().get(topic.name, frozenset())
        return [record for record in self._kafka.head(topic, start) if (record.partition, record.offset) not in ignored]

    def _learn(
        self,
        topic: Topic,
        records: Sequence[SampledRecord],
        topic_format: TopicFormat,
        key: tuple[str, ...],
        progress: Progress | None,
    ) -> None:
        """Learns the columns of the first records."""
        raw, schema = raw_table(topic.name, records), self._schema(key)
        decoder = Decoder(self.options_for(topic_format, key, progress))
        decoded = decoder.decode(raw, schema)
        while self._learns_more(decoded):
            decoder = Decoder(self.options_for(topic_format, key, progress))
            decoded = decoder.decode(raw, schema)
        if not self.table_columns.columns:
            policy = self.table_columns.policy
            decoded, decoder, schema = without_strays(decoded, decoder, raw, policy, schema, key, self.settings)
        if progress is None:  # else the whole batch shows whether a stray record is one
            self._check_strays(decoded, decoder, schema, topic.name, None, key)
        self.sent.add(decoded)
        self._observed = decoded.observed

    def _check_strays(
        self,
        decoded: Decoded,
        decoder: Decoder,
        schema: RecordSchema,
        topic: str,
        progress: Progress | None,
        key: tuple[str, ...],
    ) -> None:
        """Raises TableHalt if records show a change at the source, or if a new table has no others."""
        if decoded.conflict is not None and not self.table_columns.columns and not decoded.events.num_rows:
            raise decoded.conflict

        def decode_waiting(start: Mapping[int, int]) -> Decoded:
            raw = raw_table(topic, self._head(Topic(topic, "", tuple(start)), start))
            waiting = decoder.decode(raw, schema)
            while self._avro.learn(waiting.unknown_schemas):
                with_learnt = replace(decoder.options, avro=self._avro.by_address)
                waiting = Decoder(with_learnt).decode(raw, schema)
            return waiting

        known = (progress.source_table if progress else None) or self.source_table
        self.source_table = check_strays(decoded, known, topic, self.settings, key, progress, decode_waiting)

    def read_and_change_table(
        self, raw: RawRecords, topic_format: TopicFormat, progress: Progress, contradicted: Collection[Pointer] = ()
    ) -> ReadBatch:
        """Decodes a batch. Creates the table and changes its columns where the records need it. `contradicted`: the
        events at these places are rejected. Raises TableHalt if the table can't hold the records."""
        altered, decoded = self._follow(raw, topic_format, progress)
        decoded = rejecting(decoded, contradicted) if contradicted else decoded
        stats = count_batch(decoded, progress.connector)
        if stats.bad and any(not columns.has_schema for columns in decoded.observed) and self._has_new_announcement():
            # Values that do not fit are the only sign of changed types in records without a schema.
            again = self.read_and_change_table(raw, topic_format, progress, contradicted)
            return replace(again, altered=altered or again.altered)
        self.sent.warn_of_unknown()
        self._observed = ()  # the table has them
        return ReadBatch(decoded, stats, altered, *self._decoded_with)

    def _follow(self, raw: RawRecords, topic_format: TopicFormat, progress: Progress) -> tuple[bool, Decoded]:
        """Decodes a batch, again if the table had to get new columns for it. Returns whether the table was changed, and
        the decoded batch."""
        altered = self._follow_columns(self._observed, progress)
        decoded = self._decode(raw, topic_format, progress)
        while self._follow_columns(decoded.observed, progress):
            altered = True
            decoded = self._decode(raw, topic_format, progress)
        check_key_columns(progress.key, self.table_columns.columns, self.settings.where)
        if decoded.references and self._large_values is not None:
            decoded = self._decode(raw, topic_format, progress, self._large_values)
        return altered, decoded

    def _follow_columns(self, observed: Sequence[ObservedColumns], progress: Progress) -> bool:
        if progress.is_new:
            self.table_columns.note_defaults(observed, progress.connector)
        return self.table_columns.follow(observed, progress.key, progress.connector)

    def _decode(
        self, raw: RawRecords, topic_format: TopicFormat, progress: Progress, store: LargeValueStore | None = None
    ) -> Decoded:
        """Decodes the records with the table's columns, and with the large values of the store."""
        key = tuple(name for name in progress.key if name in self.table_columns.columns)
        options = self.options_for(topic_format, key, progress=progress)
        if self._decoder is None or self._decoder.options != options:
            self._decoder = Decoder(options)
        schema = self._schema(key)
        self._decoded_with = (options, schema)
        decoded = raw.decode(self._decoder, schema, store)
        if self._learns_more(decoded):
            return self._decode(raw, topic_format, progress, store)
        self._check_strays(decoded, self._decoder, schema, progress.topic, progress, progress.key)
        self.sent.add(decoded)
        return decoded

    def _learns_more(self, decoded: Decoded) -> bool:
        """Asks the registry for unknown schemas, and once the connector's announcements for types; whether something
        is new, so that the records have to be decoded again."""
        if decoded.unknown_schemas:
            return self._avro.learn(decoded.unknown_schemas)
        needs_types = not self._has_asked and any(not observed.has_schema for observed in decoded.observed)
        return needs_types and self._has_new_announcement()

    def _has_new_announcement(self) -> bool:
        """Whether the connector announces other types than before."""
        columns = self.sent.renames.as_source(self.table_columns.columns)
        sources = TypeSources(self.settings.columns, {}, self._source.connector_properties, self.settings.timestamps)
        compatible = compatible_types(self._ask_announced(), columns, sources)
        is_new = compatible != self._announced
        self._announced, self._has_asked = compatible, True
        return is_new

    def _schema(self, key: Sequence[str]) -> RecordSchema:
        table = self.table_columns.columns
        return RecordSchema(dict(table), {name: table[name] for name in key if name in table})

    def options_for(
        self, topic_format: TopicFormat, key: tuple[str, ...], progress: Progress | None = None
    ) -> DecodeOptions:
        options = decode_options(
            self._source,
            self.settings,
            topic_format,
            key,
            masks=self.sent.masks,
            reads_before=self.settings.mode == "append",
            added=self.table_columns.added,
        )
        # Truncates have no key, so the key of a filled table is taken from the table.
        known_key = progress.key if progress is not None else ()
        connector = progress.connector if progress is not None else topic_format.order
        return replace(
            options,
            order=order_of(connector, self._source.order_fields),
            source_in_key=options.source_in_key or SOURCE_TABLE_COLUMN in known_key,
            connector=connector,
            filled=None if progress is None else filled_table(self.settings, known_key),
            types=replace(options.types, announced=self._announced),
            transactions=self._transactions.is_set() or self.settings.has_transactions,
            avro=self._avro.by_address,
        )
