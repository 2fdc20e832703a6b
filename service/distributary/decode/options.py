"""Options of decoding: the table's settings, and which columns events have beside the row."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from distributary.decode.avro.schema import AvroSchemas
from distributary.decode.masks import NO_MASKS, Masks
from distributary.decode.order_fields import Order
from distributary.decode.position import CONNECTORS
from distributary.decode.source_block import BY_OFFSET
from distributary.decode.unwrapped import Unwrapped
from distributary.rules.log_traits import BINLOG_CONNECTORS
from distributary.types.base import ColumnType
from distributary.types.bounds import Bounds
from distributary.types.column_default import ColumnDefault
from distributary.types.zones import has_no_zone, in_utc

DEFAULT_PLACEHOLDER = "__debezium_unavailable_value"
CONNECTORS_WITH_PLACEHOLDER = ("postgresql", "oracle")
"""All other databases send every value: there the placeholder is a text like any other."""


@dataclass(frozen=True)
class TypeSources:
    """Types by name (see types.from_name), by the source's names of columns.

    Without a schema the first that knows a column counts: `configured` by the config, `announced` by the connector's
    schema-change topic, and then the table's own. With a schema, values are read by the schema and converted to the
    type in `configured`. `properties` are the connector's settings. `timestamps`: whether timestamps without a zone
    stay so (ntz) or become instants (utc), unless `configured` names timestamp_ntz itself.
    """

    configured: Mapping[str, str] = field(default_factory=dict)
    announced: Mapping[str, str] = field(default_factory=dict)
    properties: Mapping[str, str] = field(default_factory=dict)
    timestamps: Literal["ntz", "utc"] = "ntz"

    def in_zone(self, kind: ColumnType, configured: str | None) -> ColumnType:
        """The type with the setting `timestamps` applied. `configured`: the column's type in the config, if it has
        one."""
        if self.timestamps == "ntz" or has_no_zone(configured or ""):
            return kind
        return in_utc(kind)


@dataclass(frozen=True)
class FilledTable:
    """A table that has rows, with the `key` of these rows, by the lake's names. `reserved` are the names of the
    service's own columns, in lower case."""

    key: tuple[str, ...]
    reserved: frozenset[str]


@dataclass(frozen=True)
class BareKey:
    """Keys that are the bare values of `column` (the source's name). `schema` is the Connect schema that this column
    has in rows, as JSON; None if rows have no schema."""

    column: str
    schema: str | None = None


@dataclass(frozen=True)
class DecodeOptions:
    """`connector` is the one by whose positions the table is ordered, or source_block.BY_OFFSET; `epoch` begins all
    positions. `renames` has the lake's name by the source's; `exclude` and `masks` have the source's names.
    `placeholder` is Debezium's `unavailable.value.placeholder`.

    `keyless`: the table has no key, and its records need none. `key_from_row`: the records have no key, and these
    columns of the row (the lake's names) are used instead; an update that changes them becomes a delete and a create.
    `key_from_rows_without_key`: the same for the records without a key of a topic whose other records have one.
    `bare_key`: the keys are bare values of a column. `unwrapped`: the records are rows without an envelope. `before`,
    `transactions`: the events get the row before the change, and the change's number in its transaction. `avro`: the
    records are Avro, and these are the known schemas, by their addresses in the registry; the caller may add schemas
    between two batches. `defaults`: what older rows get in columns that were added after them, by the lake's names;
    None if they keep NULL. `in_payload_object`: keys and values are inside of objects with the one field `payload`.
    `cloud_events`: values are Debezium's CloudEvents. `documents`: values are MongoDB's. `adds_columns`: columns of
    records that the table lacks are added to the table. `filled` is the table that the records are for, if it has rows:
    records that do not fit it halt the table. `source_in_key`: the key has the name of the source table
    (SOURCE_TABLE_COLUMN), as the topic has several. `order` are the fields from which positions are made, if the
    connector has no rules of its own. `long_ids`: ids of schemas in eight bytes are Apicurio's content ids.
    """

    connector: str
    epoch: int = 0
    types: TypeSources = field(default_factory=TypeSources)
    exclude: frozenset[str] = frozenset()
    renames: Mapping[str, str] = field(default_factory=dict)
    masks: Masks = NO_MASKS
    placeholder: str = DEFAULT_PLACEHOLDER
    keyless: bool = False
    key_from_row: tuple[str, ...] = ()
    key_from_rows_without_key: tuple[str, ...] = ()
    bare_key: BareKey | None = None
    before: bool = False
    transactions: bool = False
    unwrapped: Unwrapped | None = None
    avro: AvroSchemas | None = None
    in_payload_object: bool = False
    cloud_events: bool = False
    documents: bool = False
    filled: FilledTable | None = None
    source_in_key: bool = False
    order: Order = ()
    long_ids: bool = False
    adds_columns: bool = True
    defaults: Mapping[str, ColumnDefault] | None = None
    bounds: Bounds = field(default_factory=Bounds)

    @property
    def reads_before(self) -> bool:
        """Whether the row before the change has to be read."""
        return self.before or bool(self.key_from_row or self.key_from_rows_without_key)

    @property
    def reads_transactions(self) -> bool:
        """Whether each change's number in its transaction is read. Rows without an envelope have none."""
        return self.transactions and self.unwrapped is None

    @property
    def has_placeholders(self) -> bool:
        """Whether the source may leave values out. True also if the connector is unknown, as it may be for rows without
        an envelope."""
        if self.unwrapped is not None:
            return self.unwrapped.connector is None or self.unwrapped.connector in CONNECTORS_WITH_PLACEHOLDER
        return self.connector in CONNECTORS_WITH_PLACEHOLDER

    @property
    def family(self) -> frozenset[str | None]:
        """The names that `source.connector` may have. The MySQL connector also read MariaDB before MariaDB had
        its own."""
        if self.connector == BY_OFFSET:
            return frozenset((None, *CONNECTORS))
        return frozenset(BINLOG_CONNECTORS if self.connector in BINLOG_CONNECTORS else (self.connector,))

    def source_names(self, column: str) -> tuple[str, ...]:
        """The source's possible names of a column of the lake: those that `rename` maps to it, and the lake's name
        itself, unless `rename` maps that to another column. The source may rename the column to it, or from it."""
        renamed = tuple(sent for sent, lake in self.renames.items() if lake == column)
        return renamed if column in self.renames else (*renamed, column)

    def lake_name(self, column: str) -> str:
        """The lake's name of a column of the source."""
        return self.renames.get(column, column)
