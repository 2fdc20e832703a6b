"""The columns of the records of one schema: their types, and their names in the lake."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from distributary import reasons
from distributary.decode.envelope import ENVELOPE_FIELDS, has_rows
from distributary.decode.options import DecodeOptions
from distributary.errors import TableHalt
from distributary.reasons import Rejected
from distributary.types.base import ColumnType
from distributary.types.bounds import Bounds
from distributary.types.column_default import default_text
from distributary.types.connect_schema import ConnectType, NotAConnectSchema, SchemaBeyondLimits, parse_schema
from distributary.types.conversions import NoConversion, type_over
from distributary.types.from_name import UnknownColumnType, type_of_name
from distributary.types.from_schema import type_of_schema
from distributary.types.nested import fields_that_differ_in_case
from distributary.types.text import STRING


@dataclass(frozen=True)
class RowShape:
    """`types` by the source's names, and the lake's name of each in `lake`. `added` are fields of a row without an
    envelope that are no columns, with their meaning (see unwrapped.Unwrapped). `conflict` is the halt that these
    columns cause if they do not fit the config; until then their records are rejected. `names` are the source's names
    of all columns that were sent, also of those that are left out. `defaults` are the values that older rows have in
    the source (see column_default.py), by the lake's names."""

    types: Mapping[str, ColumnType]
    lake: Mapping[str, str]
    added: Mapping[str, str] = field(default_factory=dict)
    conflict: TableHalt | None = None
    names: frozenset[str] = frozenset()
    defaults: Mapping[str, str] = field(default_factory=dict)


def row_shape_of_schema(schema: bytes, options: DecodeOptions) -> RowShape:
    """The shape of rows with that schema. Raises Rejected if it is not the schema of a change event."""
    return row_shape_of_type(_parsed(schema, options), options)


def row_shape_of_type(struct: ConnectType, options: DecodeOptions) -> RowShape:
    """The shape of rows whose values have that Connect type. Raises Rejected for one that no change event has."""
    try:
        row = row_of_type(struct, unwrapped=options.unwrapped is not None)
    except NotAConnectSchema:
        raise Rejected(reasons.BAD_SCHEMA) from None
    meanings = {} if options.unwrapped is None else options.unwrapped.fields
    added = {part.name: meanings[part.name] for part in row.fields if part.name in meanings}
    sent = {part.name: part.type for part in row.fields if part.name not in added}
    shape = _shape({name: kind for name, kind in sent.items() if name not in options.exclude}, options, added)
    defaults = {
        shape.lake[part.name]: text
        for part in row.fields
        if part.name in shape.types
        and (text := default_text(part, shape.types[part.name], options.connector)) is not None
    }
    return replace(shape, names=frozenset(sent), defaults=defaults)


def key_shape_of_schema(schema: bytes, options: DecodeOptions) -> RowShape:
    """The shape of keys with that schema. Raises Rejected if it is not a schema of columns."""
    return key_shape_of_type(_parsed(schema, options), options)


def key_shape_of_type(struct: ConnectType, options: DecodeOptions) -> RowShape:
    """The shape of keys with that Connect type. Raises Rejected for one that is no struct."""
    if struct.kind != "struct":
        raise Rejected(reasons.BAD_SCHEMA)
    shape = _shape({part.name: part.type for part in struct.fields}, options, {})
    conflict = shape.conflict or key_conflict(shape.types, options)
    return replace(shape, conflict=conflict, names=frozenset(shape.types))


def shape_of_names(names: Iterable[str], table: Mapping[str, str], options: DecodeOptions) -> RowShape:
    """The shape of rows without a schema with these fields. Fields of unknown type are left out.

    `table` has the Spark types of the table's columns, by the lake's names.
    """
    meanings = {} if options.unwrapped is None else options.unwrapped.fields
    names = list(names)
    types = {}
    for name in names:
        if name not in meanings and name not in options.exclude and (kind := announced_type(name, table, options)):
            types[name] = kind
    added = {name: meanings[name] for name in names if name in meanings}
    lake, conflict = lake_names(types, options)
    return RowShape(types, lake, added, conflict)


def announced_type(column: str, table: Mapping[str, str], options: DecodeOptions) -> ColumnType | None:
    """The type of a column (the source's name) without a schema; None if no source of types knows it."""
    sources, bounds = options.types, options.bounds
    if column in options.masks.how:
        named = sources.configured.get(column)
        kind = STRING if named is None else type_of_name(named, sources.properties, bounds)
        return options.masks.over(column, kind)
    for types in (sources.configured, sources.announced):
        if column in types:
            kind = type_of_name(types[column], sources.properties, bounds)
            return sources.in_zone(kind, sources.configured.get(column))
    lake = options.lake_name(column)
    return type_of_name(table[lake], sources.properties, bounds) if lake in table else None


def _parsed(schema: bytes, options: DecodeOptions) -> ConnectType:
    try:
        return parse_schema(schema, options.bounds)
    except SchemaBeyondLimits as beyond:
        raise Rejected(reasons.BEYOND_LIMITS, f"its schema has {beyond}") from None
    except NotAConnectSchema:
        raise Rejected(reasons.BAD_SCHEMA) from None


def _is_envelope(struct: ConnectType) -> bool:
    """Whether a schema is an envelope's (see envelope.is_envelope)."""
    source, names = struct.field("source"), {part.name for part in struct.fields}
    if "op" not in names or source is None or source.kind != "struct":
        return False
    names_connector, has_no_other_field = source.field("connector") is not None, names <= ENVELOPE_FIELDS
    return (names_connector or has_no_other_field) if has_rows(names) else (names_connector and has_no_other_field)


def row_of_schema(schema: bytes, bounds: Bounds, *, unwrapped: bool) -> ConnectType:
    """The row's struct in the schema of an envelope, the type of `after`; without an envelope the whole schema.

    Raises NotAConnectSchema.
    """
    return row_of_type(parse_schema(schema, bounds), unwrapped=unwrapped)


def row_of_type(struct: ConnectType, *, unwrapped: bool) -> ConnectType:
    """As row_of_schema, of a parsed schema."""
    row = struct if unwrapped else struct.field("after") or struct.field("before")
    if row is None or row.kind != "struct" or (unwrapped and _is_envelope(struct)):
        raise NotAConnectSchema("not the schema of a row")
    return row


def _shape(sent: Mapping[str, ConnectType], options: DecodeOptions, added: Mapping[str, str]) -> RowShape:
    types: dict[str, ColumnType] = {}
    conflict = None
    for name, connect in sent.items():
        wanted = options.types.configured.get(name)
        try:
            own = type_of_schema(connect, options.bounds)
            kind = own if wanted is None else type_over(connect, wanted, options.types.properties, options.bounds)
        except NotAConnectSchema:
            raise Rejected(reasons.BAD_SCHEMA) from None
        except (NoConversion, UnknownColumnType) as refused:
            conflict = TableHalt(
                "no-conversion",
                f"the config has {wanted} for the column {name!r} under `columns`, and the source sends"
                f" {getattr(refused, 'sent', connect.kind)}, which can't be converted to that type",
                "name another type, or take the column out of `columns`",
            )
            continue
        # Masked values are texts here: `timestamps` does not change the texts of which hashes are made.
        types[name] = options.types.in_zone(options.masks.over(name, kind), wanted)
        conflict = conflict or _fields_conflict(name, types[name])
    lake, twins = lake_names(types, options)
    return RowShape(types, lake, added, conflict or twins)


def _fields_conflict(column: str, kind: ColumnType) -> TableHalt | None:
    """The halt that a column (the source's name) of that type causes; None if a table can have it."""
    twins = fields_that_differ_in_case(kind.arrow)
    if twins is None:
        return None
    first, second = twins
    return TableHalt(
        "columns-differ-in-case",
        f"the fields {first!r} and {second!r} of the column {column!r} differ only in case; a Delta table can't hold"
        " both",
        "leave the column out with `exclude`, or name its type under `columns`: string, or a struct with one of them",
    )


def rename_taken(name: str) -> TableHalt:
    """The halt of a table in which two columns would have this name."""
    return TableHalt(
        "rename-taken",
        f"by `rename` two columns of the source would be called {name!r}",
        "give one of them another name, or leave it out with `exclude`",
    )


def lake_names(columns: Iterable[str], options: DecodeOptions) -> tuple[dict[str, str], TableHalt | None]:
    """The lake's name of each of the source's columns, and the halt if a table can't have them all."""
    lake = {name: options.lake_name(name) for name in columns}
    count = Counter(lake.values())
    by_lower_name: dict[str, str] = {}
    for name in lake.values():
        twin = by_lower_name.setdefault(name.lower(), name)
        if count[name] > 1:
            return lake, rename_taken(name)
        if twin != name:
            return lake, TableHalt(
                "columns-differ-in-case",
                f"the columns {twin!r} and {name!r} differ only in case; a Delta table can't hold both",
                "leave one out with `exclude`, or give it another name with `rename`",
            )
    return lake, None


def key_conflict(columns: Iterable[str], options: DecodeOptions) -> TableHalt | None:
    """The halt if a key can't have these columns (the source's names)."""
    names = list(columns)
    if left_out := [name for name in names if name in options.exclude]:
        return TableHalt(
            "key-excluded", f"`exclude` names a column of the key: {', '.join(left_out)}", "remove it from `exclude`"
        )
    if redacted := [name for name in names if options.masks.how.get(name) == "redact"]:
        return TableHalt(
            "key-redacted",
            f"`mask` redacts a column of the key: {', '.join(redacted)}; all rows would have the same key",
            "use hash instead",
        )
    return None
