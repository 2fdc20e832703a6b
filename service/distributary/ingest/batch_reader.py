"""From one table's raw records to decoded ones: learns their format as they come."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from threading import Event

from pyspark.sql import DataFrame
from structlog.typing import FilteringBoundLogger

from distributary.config.source import Source
from distributary.config.table import TableSettings
from distributary.consume.broker import Broker, Topic
from distributary.consume.fetch import raw_table
from distributary.consume.peek import Record
from distributary.decode.avro.framing import schema_addresses
from distributary.decode.avro.schema import AvroSchema, NotAnAvroSchema
from distributary.decode.decoder import Decoder
from distributary.decode.masks import NO_MASKS
from distributary.decode.observed_columns import ObservedColumns
from distributary.decode.options import DecodeOptions
from distributary.decode.record_schema import RecordSchema
from distributary.decode.renames import Renames, check_renames
from distributary.decode.source_block import BY_OFFSET
from distributary.decode.unwrapped import added_by
from distributary.errors import TableHalt
from distributary.evolve.diff import check_key_columns, taken_as
from distributary.evolve.masks import Marks, check_masks, configured_marks, masks_of
from distributary.evolve.unknown_columns import CODE, FIX, UnknownColumn, check_protected_columns, unknown_columns
from distributary.ingest.decode_options import decode_options
from distributary.ingest.merge_records import RecordColumns, with_carried
from distributary.ingest.raw_records import DecodedRecords, RawRecords
from distributary.merge.facts import Facts, facts
from distributary.merge.kept import let_go
from distributary.merge.mode import Wants
from distributary.merge.progress import Progress
from distributary.merge.queries import Queries
from distributary.merge.table import LakeTable
from distributary.operate.columns import TableColumns
from distributary.operate.limits import refuse_unbuilt
from distributary.operate.look import Known, Look, look_at
from distributary.operate.registry import Registry
from distributary.operate.wire import as_json


@dataclass(frozen=True)
class Read:
    """A batch that was read: decoded records (see merge_records), in memory or `held` by Spark, what facts() found in
    them, and whether the table was made or its columns changed for them."""

    records: DataFrame
    held: DataFrame | None
    found: Facts
    altered: bool

    def let_go(self) -> None:
        """Spark lets go of the records. Nothing that reads them may come after."""
        let_go(self.held)


class BatchReader:
    """Reads one table's batches, and remembers the schemas that it has met.

    `only` says which decoded records are kept. `announced` gives the types of columns that the connector tells beside
    its records; it is asked where records carry no schema.
    """

    def __init__(
        self,
        broker: Broker,
        source: Source,
        settings: TableSettings,
        lake: LakeTable,
        mode: Wants,
        log: FilteringBoundLogger,
        transactions: Event,
        registry: Registry | None,
        queries: Queries,
        announced: Callable[[], Mapping[str, str]] = dict,
        only: Callable[[DataFrame], DataFrame] = lambda records: records,
    ) -> None:
        self._broker = broker
        self._only = only
        self._registry = registry
        self._avro: dict[str, AvroSchema | NotAnAvroSchema] | None = None if registry is None else {}
        self._source = source
        self._settings = settings
        self._masks = NO_MASKS
        self._marks = Marks(None, ())
        self._renames = Renames(settings.rename)
        self.renamed: dict[str, str] = {}
        """The columns, of all records read so far, that the table calls otherwise than the source, with its names."""
        self._mode = mode
        self._log = log
        self._transactions = transactions
        self._table = TableColumns(lake, settings.schema_changes, mode.service_columns, log)
        self._observed: tuple[ObservedColumns, ...] = ()
        self._look: Look | None = None
        self._seen: set[str] = set()
        self.unknown_columns: list[UnknownColumn] = []
        """Names in the config that neither the table's columns nor the records read so far have."""
        self._queries = queries
        self._ask_announced = announced
        self._announced: Mapping[str, str] = {}
        self._has_asked = False
        self._decoder: Decoder | None = None

    @property
    def marks(self) -> dict[str, str]:
        """How columns are masked, with the table's names: those of the records read so far, and of columns that may
        come."""
        return self._marks.with_configured(configured_marks(self._masks, self._renames))

    @property
    def renames(self) -> Renames:
        """Which columns the table calls otherwise than the source."""
        return self._renames

    @property
    def columns(self) -> Mapping[str, str]:
        """The source's columns that the table has: name to Spark type."""
        return self._table.now

    def look(self, topic: Topic, start: Mapping[int, int], progress: Progress | None) -> Look | None:
        """The format of the table's records, learnt from the first ones from `start` on; None where there are none (of
        what was aborted offsets are left) and nothing is known of the table. Raises TableHalt."""
        if self._look is not None:
            return self._look
        self._masks = masks_of(self._settings)
        records = self._broker.head(topic, start)
        if not records and progress is None:
            return None
        look = self._looked_at(records, topic, progress)
        refuse_unbuilt(self._settings, look)
        self._look = look if look.tells_all else None
        if look.order == BY_OFFSET:
            self._log.warning(
                "rows without an envelope are ordered by their offsets: records that are sent again show older"
                " states until their end",
                fix="name the source's position under add.fields of ExtractNewRecordState",
            )
        self._table.look()
        if progress is not None:
            check_renames(progress.renames, self._renames, self._table.now)
            check_masks(self._masks, progress.masks, self._renames, self._table.now)
            self._marks = Marks(progress.masks, self._table.now)
        key = progress.key if progress is not None else self._renames.all_of(look.key or self._settings.key)
        self._learn(topic, records, look, key)
        if progress is None:
            check_protected_columns(self._settings, self._seen)
        return look

    def has_other_form(self, topic: Topic, start: Mapping[int, int], progress: Progress) -> bool:
        """Whether the records from there on, that this table can go on with, have an envelope where those so far had
        none, or the other way round."""
        try:
            look = self._looked_at(self._broker.head(topic, start), topic, progress)
        except TableHalt:
            return False
        return (look.unwrapped is not None) != progress.unwrapped

    def _looked_at(self, records: Sequence[Record], topic: Topic, progress: Progress | None) -> Look:
        known = Known(progress.connector, progress.unwrapped) if progress else None
        added = added_by(self._source.connector_properties)
        return look_at(self._as_json(records), topic.name, self._source.connector, added, known)

    def _as_json(self, records: Sequence[Record]) -> list[Record]:
        return [as_json(record, self._registry) for record in records]

    def _learn(self, topic: Topic, records: Sequence[Record], look: Look, key: tuple[str, ...]) -> None:
        """The columns of the first records."""
        options = self._options(look, key)
        raw = raw_table(topic.name, records)
        self._learn_avro(address for found in schema_addresses(raw).values() for address in found)
        decoded = Decoder(options).decode(raw, self._schema(key))
        if self._needs_announced(decoded.observed) and self._ask():
            decoded = Decoder(self._options(look, key)).decode(raw, self._schema(key))
        self._take(decoded.observed, decoded.conflict)

    def read(self, raw: RawRecords, look: Look, progress: Progress) -> Read:
        """Decodes Kafka's records and looks at them; the table is made, and its columns follow, on the way.

        Spark keeps the decoded records. Raises TableHalt where the table can't take them.
        """
        altered = self._table.follow(self._observed, progress.key)
        decoded = self._decode(raw, look, progress)
        while self._table.follow(decoded.observed, progress.key):
            altered = True
            let_go(decoded.held)
            decoded = self._decode(raw, look, progress)
        check_key_columns(progress.key, self._table.now, self._settings.where)
        found = facts(decoded.records, progress, self._queries)
        if found.bad and any(not one.has_schema for one in decoded.observed) and self._ask():
            # Nothing in a record without a schema shows that its columns' types changed, but values that do not fit.
            let_go(decoded.held)
            again = self.read(raw, look, progress)
            return replace(again, altered=altered or again.altered)
        self._warn_of_unknown_columns()
        self._observed = ()  # the table has them
        return Read(decoded.records, decoded.held, found, altered)

    def _decode(self, raw: RawRecords, look: Look, progress: Progress) -> DecodedRecords:
        """Decodes the records with the columns that the table has."""
        key = tuple(name for name in progress.key if name in self._table.now)
        options = self._options(look, key, progress=progress)
        if self._decoder is None or self._decoder.options != options:
            self._decoder = Decoder(options)
        schema = self._schema(key)
        columns = RecordColumns.of(
            schema.row, schema.key, before=options.before, transactions=options.tells_transactions
        )
        deleted = {p: last.deleted_key for p, last in progress.last.items() if last.deleted_key is not None}

        def finish(records: DataFrame) -> DataFrame:
            return self._only(with_carried(records, deleted) if deleted else records)

        decoded = raw.decode(self._decoder, schema, columns, finish)
        if self._learn_avro(decoded.unknown_schemas):
            let_go(decoded.held)
            return self._decode(raw, look, progress)
        if self._needs_announced(decoded.observed) and self._ask():
            let_go(decoded.held)
            return self._decode(raw, look, progress)
        self._take(decoded.observed, decoded.conflict)
        return decoded

    def _take(self, observed: Sequence[ObservedColumns], conflict: TableHalt | None) -> None:
        """Looks at the columns of records. Raises TableHalt where the table or the config contradicts them."""
        if conflict is not None:
            raise conflict
        for one in observed:
            self._marks.check(one.marks if one.is_key else self._table.heeded(one.marks))
            self.renamed.update(one.renames)
            self._seen |= one.names
        self._observed = tuple(observed)
        guessed = {name: kind for one in observed for name, kind in one.guessed.items() if name not in self._table.now}
        if guessed:
            self._log.warning(
                "columns typed by their values: records carry no schema",
                columns=guessed,
                fix="name their types under `columns` in the config",
            )

    def _warn_of_unknown_columns(self) -> None:
        """Warns once of each: a column may also come later."""
        columns = {*self._seen, *self._renames.as_source(self._table.now)}
        found = unknown_columns(self._settings, columns) if self._seen else []
        for unknown in found:
            if unknown not in self.unknown_columns:
                self._log.warning("a column in the config is unknown", code=CODE, detail=str(unknown), fix=FIX)
        self.unknown_columns = found

    def _learn_avro(self, addresses: Iterable[str]) -> bool:
        """Asks the registry for the schemas that are not known yet; whether there are some. Raises what
        Registry.schema raises."""
        if self._registry is None or self._avro is None:
            return False
        new = sorted(set(addresses) - self._avro.keys())
        self._avro.update({address: self._registry.schema(address) for address in new})
        return bool(new)

    def _needs_announced(self, observed: Sequence[ObservedColumns]) -> bool:
        return not self._has_asked and any(not one.has_schema for one in observed)

    def _ask(self) -> bool:
        """Asks for the types that the connector announces; whether they are others than before."""
        columns = self._renames.as_source(self._table.now)
        found = taken_as(self._ask_announced(), columns, self._source.connector_properties)
        is_new = found != self._announced
        self._announced, self._has_asked = found, True
        return is_new

    def _schema(self, key: Sequence[str]) -> RecordSchema:
        table = self._table.now
        return RecordSchema(dict(table), {name: table[name] for name in key if name in table})

    def _options(self, look: Look, key: tuple[str, ...], progress: Progress | None = None) -> DecodeOptions:
        options = decode_options(
            self._source, self._settings, look, key, masks=self._masks, reads_before=self._mode.reads_before
        )
        return replace(
            options,
            connector=progress.connector if progress is not None else look.order,
            types=replace(options.types, announced=self._announced),
            transactions=self._transactions.is_set(),
            avro=self._avro,
        )
