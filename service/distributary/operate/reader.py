"""From one table's raw records to decoded ones: learns their format as they come."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from threading import Event

import pyarrow as pa
from pyspark.sql import DataFrame
from structlog.typing import FilteringBoundLogger

from distributary.config.connector import PLACEHOLDER
from distributary.config.source import Source
from distributary.config.table import TableSettings
from distributary.consume.broker import Broker, Topic
from distributary.consume.peek import Record
from distributary.decode.alike import with_known
from distributary.decode.discover import signatures, types_by_value
from distributary.decode.keys import with_whole_updates
from distributary.decode.masks import Marks, Masks, masks_of
from distributary.decode.placeholder import DEFAULT_PLACEHOLDER
from distributary.decode.position import BY_OFFSET
from distributary.decode.queries import Queries
from distributary.decode.records import Reading, decoded, with_carried
from distributary.decode.renames import Renames, check_renames
from distributary.decode.shapes import Shape, Signature, TypeSources, has_schema, joined, shape_of
from distributary.decode.slices import shape_number
from distributary.decode.unwrapped import Unwrapped, added_by
from distributary.errors import TableHalt
from distributary.evolve.diff import check_key_columns, taken_as
from distributary.evolve.unknown_columns import (
    CODE,
    FIX,
    UnknownColumn,
    check_protected_columns,
    column_names,
    unknown_columns,
)
from distributary.merge.facts import Facts, facts
from distributary.merge.kept import kept, let_go
from distributary.merge.mode import Wants
from distributary.merge.progress import Progress
from distributary.merge.table import LakeTable
from distributary.operate.columns import TableColumns
from distributary.operate.limits import refuse_unbuilt
from distributary.operate.look import Known, Look, look_at
from distributary.operate.wire import Wire

# A topic with a record now and then that is written otherwise than usual is not to be read twice all the time.
_CAREFUL_SLICES = 50
_HEADERS = pa.list_(pa.struct({"key": pa.string(), "value": pa.binary()}))


@dataclass(frozen=True)
class Read:
    """A slice that was read: decoded records (see records.decoded), what facts() found in them, and whether the table
    was made or its columns changed for them."""

    records: DataFrame
    found: Facts
    altered: bool


class TableReader:
    """Reads one table's slices. It remembers the shapes it has met, so that a usual slice is decoded in one pass.

    `only` says which decoded records are kept; those of a shape that is not known yet have to be among them. `told`
    gives the types of columns that the connector tells beside its records; it is asked where records carry no schema.
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
        wire: Wire,
        queries: Queries,
        told: Callable[[], Mapping[str, str]] = dict,
        only: Callable[[DataFrame], DataFrame] = lambda records: records,
    ) -> None:
        self._broker = broker
        self._only = only
        self._wire = wire
        self._source = source
        self._settings = settings
        self._masks = Masks()
        self._marks = Marks(None, ())
        self._renames = Renames(settings.rename)
        self.renamed: dict[str, str] = {}
        """The columns, of all records read so far, that the table calls otherwise than the source, with its names."""
        self._lake = lake
        self._mode = mode
        self._log = log
        self._transactions = transactions
        self._details = mode.wants(None)
        self._table = TableColumns(lake, settings.schema_changes, mode.service_columns, log)
        self._shapes: list[Shape] = []
        self._careful = 0
        self._look: Look | None = None
        self._seen: set[str] = set()
        self.unknown_columns: list[UnknownColumn] = []
        """Names in the config that neither the table's columns nor the records read so far have."""
        self._unwrapped: Unwrapped | None = None
        self._key_from_row = False
        self._queries = queries
        self._ask_told = told
        self._told: Mapping[str, str] = {}

    @property
    def marks(self) -> dict[str, str]:
        """How columns are masked, with the table's names (see Codec.mark): those of the records read so far, and of
        columns that may come."""
        return self._marks.kept(self._masks.told(self._renames))

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
        self._unwrapped = look.unwrapped
        self._key_from_row = bool(self._settings.key) and not look.key
        if look.order == BY_OFFSET:
            self._log.warning(
                "rows without an envelope are ordered by their offsets: records that are sent again show older"
                " states until their end",
                fix="name the source's position under add.fields of ExtractNewRecordState",
            )
        self._table.look()
        if progress is not None:
            check_renames(progress.renames, self._renames, self._table.now)
            self._masks.check(progress.masks, self._renames, self._table.now)
            self._marks = Marks(progress.masks, self._table.now)
        first = self._wire.told(records)
        if first is None:
            self._learn(self._sliced(self._as_raw(records)))
        elif first:
            self._take_shapes([self._shape(seen.signature, {}) for seen in first])
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
        return (look.unwrapped is None) != (self._unwrapped is None)

    def _looked_at(self, records: Sequence[Record], topic: Topic, progress: Progress | None) -> Look:
        known = Known(progress.connector, progress.unwrapped) if progress else None
        added = added_by(self._source.connector_properties)
        return look_at(self._wire.as_json(records), topic.name, self._source.connector, added, known)

    def read(self, raw: DataFrame, progress: Progress) -> Read:
        """Decodes Kafka's records (see slices.sliced) and looks at them; new shapes are learnt on the way.

        The decoded records are kept in memory and on disk. Raises TableHalt where the table can't take them.
        """
        self._careful = max(0, self._careful - 1)
        cut = None
        if len(self._shapes) != 1 or self._shapes[0].untyped:
            cut = self._learnt(raw)
        read = self._decoded(raw, cut, progress)
        altered = read.altered
        told_anew = read.found.unknown + read.found.bad > 0 and self._told_anew()
        if read.found.unknown or told_anew:
            let_go(read.records, cut)
            known = [] if cut is not None or told_anew else self._shapes
            cut = self._learnt(raw)
            if known and all(any(one.fits(shape.signature) for one in known) for shape in self._shapes):
                self._shapes, self._careful = known, _CAREFUL_SLICES
            read = self._decoded(raw, cut, progress)
            altered = altered or read.altered
        if (wanted := self._mode.wants(read.found)) != self._details:
            # What the mode asks for now it will most likely need for the next slices too.
            self._details = wanted
            let_go(read.records)
            read = self._decoded(raw, cut, progress)
        let_go(cut)  # whatever is read from now on is read from the records
        self._warn_of_unknown_columns()
        self._shapes = self._shapes[-1:]  # the newest; what comes next most likely looks like it
        if self._key_from_row and read.found.bad:
            records = kept(with_whole_updates(read.records), eager=True)
            let_go(read.records)
            read = Read(records, facts(records, progress, self._queries), altered)
        return Read(read.records, read.found, altered)

    def _warn_of_unknown_columns(self) -> None:
        """Warns once of each: a column may also come later."""
        columns = {*self._seen, *self._renames.as_source(self._table.now)}
        found = unknown_columns(self._settings, columns) if self._seen else []
        for unknown in found:
            if unknown not in self.unknown_columns:
                self._log.warning("a column in the config is unknown", code=CODE, detail=str(unknown), fix=FIX)
        self.unknown_columns = found

    def _as_raw(self, records: Sequence[Record]) -> DataFrame:
        rows = {name: [getattr(r, name) for r in records] for name in ("key", "value")}
        headers = [[{"key": name, "value": value} for name, value in r.headers] for r in records]
        schema = pa.schema({"key": pa.binary(), "value": pa.binary(), "headers": _HEADERS})
        head = self._lake.session.createDataFrame(pa.table({**rows, "headers": headers}, schema=schema))
        return head.selectExpr(
            "key", "value", "headers", "0 AS partition", "0L AS offset", "current_timestamp() AS timestamp"
        )

    def _sliced(self, raw: DataFrame) -> DataFrame:
        return self._wire.sliced(raw, self._unwrapped, before=self._details.before)

    def _cut(self, raw: DataFrame, shape: Shape, *, usual: bool) -> DataFrame:
        """Sliced records with known BOOLEAN. What is written otherwise than usual is not known the quick way, so that a
        slice that is read with care is cut with care too."""
        if usual:
            return self._wire.alike(raw, shape, self._unwrapped, before=self._details.before)
        return with_known(self._sliced(raw), shape)

    def _learnt(self, raw: DataFrame) -> DataFrame:
        """Sliced records of which all schemas and shapes are known."""
        self._wire.learn(raw)
        cut = kept(self._sliced(raw), eager=False)
        self._learn(cut)
        return cut

    def _learn(self, cut: DataFrame) -> None:
        """The shapes of sliced records; types of values without schema are looked up or taken from the values."""
        found = [s.signature for s in signatures(cut, self._renames, self._settings.exclude)]
        if not found:
            return
        if any(not has_schema(s.row) for s in found if s.row is not None):
            self._told = self._asked()
        shapes = [self._shape(s, {}) for s in found]
        untyped = {name for shape in shapes for name in shape.untyped} | self._untyped_keys(found)
        if untyped:
            unwrapped = self._unwrapped is not None
            shown = types_by_value(cut, untyped, unwrapped=unwrapped, before=self._details.before)
            shapes = [self._shape(s, shown) for s in found]
            if shown:
                self._log.warning(
                    "columns typed by their values: records carry no schema",
                    columns=dict(shown),
                    fix="name their types under `columns` in the config",
                )
        self._take_shapes(shapes)

    def _take_shapes(self, shapes: list[Shape]) -> None:
        for shape in shapes:
            for signature in shape.signatures:
                self._seen |= column_names(signature, unwrapped=self._unwrapped is not None)
            self._marks.meet(self._table.heeded(shape.row), shape.key)
            self.renamed.update(shape.renames.lake)
        self._shapes = shapes

    def _told_anew(self) -> bool:
        """Whether the connector tells other types than those that the records were read by. Without a schema nothing in
        a record shows that its columns' types changed, but values that no longer fit."""
        if all(has_schema(shape.signature.row) for shape in self._shapes):
            return False
        return self._asked() != self._told

    def _asked(self) -> Mapping[str, str]:
        columns = self._renames.as_source(self._table.now)
        return taken_as(self._ask_told(), columns, self._source.connector_properties)

    def _shape(self, signature: Signature, shown: Mapping[str, str]) -> Shape:
        return shape_of(signature, self._types(shown), frozenset(self._settings.exclude), self._unwrapped)

    def _types(self, shown: Mapping[str, str]) -> TypeSources:
        properties = self._source.connector_properties
        table = self._renames.as_source(self._table.now)
        return TypeSources(self._settings.columns, table, shown, properties, self._masks, self._told, self._renames)

    def _untyped_keys(self, found: Sequence[Signature]) -> set[str]:
        types = self._types({})
        names = {name for s in found for name in s.key_names_without_schema()}
        return {name for name in names if types.codec(name) is None}

    def _decoded(self, raw: DataFrame, cut: DataFrame | None, progress: Progress) -> Read:
        """Decodes the records: as they come, where all have the one known shape, else those that were `cut` before,
        which are read with all care."""
        altered = self._table.follow(self._shapes, progress.key)
        if altered:
            self._shapes = [self._retyped(shape) for shape in self._shapes]
        reading = self._reading(progress)
        if cut is None:
            [shape] = self._shapes
            usual = not self._careful
            order = (*reading.columns, *reading.key)  # which mappings that are equal do not tell
            records = self._queries.over(
                raw,
                (shape, reading, order, self._wire.known, usual),
                lambda rows: decoded(self._cut(rows, shape, usual=usual), shape, reading, usual=usual),
            )
        else:
            records = self._of_shapes(cut, reading)
        deleted = {p: last.deleted_key for p, last in progress.last.items() if last.deleted_key is not None}
        if deleted:
            records = with_carried(records, deleted)
        records = kept(self._only(records), eager=False)
        return Read(records, facts(records, progress, self._queries), altered)

    def _of_shapes(self, cut: DataFrame, reading: Reading) -> DataFrame:
        # Where none of the records can be read, none tells a shape: all that is left of them is why.
        shapes = joined(self._shapes) or [Shape(Signature(None, None), {}, {})]
        if len(shapes) == 1:
            return decoded(with_known(cut, shapes[0]), shapes[0], reading)
        number = shape_number(shapes)
        parts = [decoded(with_known(cut.where(number == i), shape), shape, reading) for i, shape in enumerate(shapes)]
        return reduce(DataFrame.unionByName, parts)

    def _reading(self, progress: Progress) -> Reading:
        check_key_columns(progress.key, self._table.now, self._settings.where)
        return Reading(
            connector=progress.connector,
            epoch=self._settings.epoch,
            columns=self._table.now,
            key={name: self._table.now[name] for name in progress.key},
            placeholder=self._source.connector_properties.get(PLACEHOLDER, DEFAULT_PLACEHOLDER),
            keyless=self._settings.mode == "append" and not progress.key,
            before=self._details.before,
            links=self._details.links,
            missing=self._details.missing,
            unwrapped=self._unwrapped,
            key_from_row=self._key_from_row,
            transactions=self._transactions.is_set(),
        )

    def _retyped(self, shape: Shape) -> Shape:
        """Without schema a column's type is the table's from now on."""
        return shape if not shape.untyped else self._shape(shape.signature, {})
