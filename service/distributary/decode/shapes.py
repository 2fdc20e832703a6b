"""The shape of a record: which columns its key and its row have, and of which types.

With a Connect schema the schema's own text tells it; without one the names of the JSON fields do, and the types come
from the config, from the existing table or from the values. Records of one topic have one shape until the source
table changes, so shapes are looked at once and then recognised by comparing text.
"""

from __future__ import annotations

import json
from collections.abc import Container, Iterable, Mapping
from dataclasses import dataclass, field, replace

from distributary.decode import sql
from distributary.decode.connect import ConnectType, NotAConnectSchema, parse_schema
from distributary.decode.conversions import NoConversion, codec_over
from distributary.decode.masks import Masks, key_redacted
from distributary.decode.renames import Renames
from distributary.decode.type_names import codec_named
from distributary.decode.types import STRING, Codec, codec_of
from distributary.decode.unwrapped import Unwrapped
from distributary.errors import TableHalt


@dataclass(frozen=True)
class Signature:
    """What tells shapes apart: the schema text, or the JSON list of field names where there is no schema.

    None where the record has no key, or no row (a tombstone).
    """

    key: str | None
    row: str | None

    def key_names_without_schema(self) -> list[str]:
        """The names of a key's fields where no schema tells their types."""
        if self.key is None or has_schema(self.key):
            return []
        names: list[str] = json.loads(self.key)
        return names


@dataclass(frozen=True)
class Shape:
    """The columns of the records with that signature: codecs by column name, in the source's order.

    `also` are other signatures whose records are read by the same codecs (see joined).
    `untyped` are columns of a row without schema whose type is not known yet, as every value so far was null, by the
    source's names; columns have the lake's. `renames` says which differ.
    `added` are fields of a row without envelope that are no columns (see unwrapped.Unwrapped).
    `unreadable`: the signature is no schema of change events; such records go to the quarantine table.
    """

    signature: Signature
    key: Mapping[str, Codec]
    row: Mapping[str, Codec]
    untyped: tuple[str, ...] = ()
    added: Mapping[str, str] = field(default_factory=dict)
    unreadable: bool = False
    also: tuple[Signature, ...] = ()
    renames: Renames = field(default_factory=Renames)

    @property
    def signatures(self) -> tuple[Signature, ...]:
        """All signatures of its records."""
        return (self.signature, *self.also)

    def usual(self) -> Shape:
        """The same for rows whose values all come as they usually do (see types.Codec)."""
        return replace(self, row={name: codec.usual or codec for name, codec in self.row.items()})

    def within(self, columns: Container[str]) -> Shape:
        """The same without the row's columns that are not among these, by the lake's names."""
        return replace(self, row={name: codec for name, codec in self.row.items() if name in columns})

    def fits(self, signature: Signature) -> bool:
        """Whether its records may have that signature: see slices.shape_number, which asks the same of records."""
        return any(_fits(known, signature) for known in self.signatures)

    def sent(self, columns: Mapping[str, Codec]) -> str:
        """Some of its columns as fields of a struct in DDL, as the source sends them."""
        return _ddl({self.renames.source(name): codec for name, codec in columns.items()})

    def called(self, columns: Mapping[str, Codec]) -> str:
        """The same as the lake calls them."""
        return _ddl(columns)

    def as_lake(self, struct: str, called: str) -> str:
        """SQL of a struct of what is sent, with the lake's names in the places of the source's: those of `called`."""
        return f"CAST({struct} AS STRUCT<{called}>)" if self.renames.lake else struct


def _fits(known: Signature, other: Signature) -> bool:
    if other.key is not None and other.key != known.key:
        return False
    if other.row in (None, "[]", known.row):
        return True
    if known.row is None or has_schema(known.row) or has_schema(other.row):
        return False
    return set(json.loads(other.row)) <= set(json.loads(known.row))


@dataclass(frozen=True)
class TypeSources:
    """Where the types of values without schema come from, in this order; `properties` are the connector's settings.
    Those `configured` count with a schema too, which then tells how values are read (see conversions.codec_over).

    All have the source's names of columns; `renames` gives the lake's.

    `told` are those of the connector's schema-change topic, as far as the table's columns take them (see
    evolve.diff.taken_as): unlike the table's, before which they count, they say in which unit a number stands for a
    time. `masks` are over all of them. The type of a masked column in the table is that of the mask: without a schema
    it is read as text, unless the config names another type.
    """

    configured: Mapping[str, str]
    table: Mapping[str, str]
    by_value: Mapping[str, str]
    properties: Mapping[str, str]
    masks: Masks = field(default_factory=Masks)
    told: Mapping[str, str] = field(default_factory=dict)
    renames: Renames = field(default_factory=Renames)

    def codec(self, column: str) -> Codec | None:
        """The codec of a column, or None where nothing tells its type yet."""
        if column in self.masks.how:
            named = self.configured.get(column)
            return self.masks.over(column, STRING if named is None else codec_named(named, self.properties))
        for types in (self.configured, self.told, self.table, self.by_value):
            if column in types:
                return codec_named(types[column], self.properties)
        return None


def renames_of(shapes: Iterable[Shape]) -> Renames:
    """Those of all the shapes."""
    return Renames({source: lake for shape in shapes for source, lake in shape.renames.lake.items()})


def _ddl(columns: Mapping[str, Codec]) -> str:
    return ", ".join(f"{sql.name(name)}: {codec.wire}" for name, codec in columns.items())


def has_schema(signature: str | None) -> bool:
    """Whether a signature is a Connect schema (an object) and not a list of field names."""
    return signature is not None and signature.startswith("{")


def row_fields(signature: str, *, unwrapped: bool = False) -> ConnectType:
    """The row's struct within the schema of an envelope: the type of `after`; without an envelope all of it.

    Raises NotAConnectSchema.
    """
    envelope = parse_schema(signature)
    source = envelope.field("source")
    is_envelope = envelope.field("op") is not None and source is not None and source.kind == "struct"
    if unwrapped:
        if is_envelope or envelope.kind != "struct":
            raise NotAConnectSchema("the schema is not that of a row")
        return envelope
    row = envelope.field("after") or envelope.field("before")
    if row is None:
        raise NotAConnectSchema("the schema has no `after`")
    return row


def shape_of(
    signature: Signature,
    types: TypeSources,
    exclude: frozenset[str] = frozenset(),
    unwrapped: Unwrapped | None = None,
) -> Shape:
    """The shape that a signature stands for; `unwrapped` where rows come without an envelope.

    Raises TableHalt (two columns that differ only in case, a key column that is excluded or redacted, a configured type
    that nothing makes of what the schema tells).
    """
    try:
        return _shape_of(signature, types, exclude, unwrapped)
    except NotAConnectSchema:
        return Shape(signature, {}, {}, unreadable=True)


def _shape_of(signature: Signature, types: TypeSources, exclude: frozenset[str], unwrapped: Unwrapped | None) -> Shape:
    added: dict[str, str] = {}
    untyped: list[str] = []
    row: dict[str, Codec] = {}
    if has_schema(signature.row):
        assert signature.row is not None
        struct = row_fields(signature.row, unwrapped=unwrapped is not None)
        added = unwrapped.present(f.name for f in struct.fields) if unwrapped else {}
        for field_ in struct.fields:
            if field_.name not in added and field_.name not in exclude:
                row[field_.name] = _configured(field_.name, field_.type, types)
    elif signature.row is not None:
        names: list[str] = json.loads(signature.row)
        added = unwrapped.present(iter(names)) if unwrapped else {}
        for name in names:
            if name in added:
                continue
            if (codec := types.codec(name)) is None:
                untyped.append(name)
            else:
                row[name] = codec
    key = _key_codecs(signature.key, row, types)
    row = {name: codec for name, codec in row.items() if name not in exclude}
    untyped = [name for name in untyped if name not in exclude]
    _refuse_case_twins([types.renames.of(name) for name in (*row, *untyped)])
    if left_out := [name for name in key if name in exclude]:
        raise TableHalt("key-excluded", f"`exclude` names a column of the key: {', '.join(left_out)}", "keep it")
    if redacted := [name for name in key if types.masks.how.get(name) == "redact"]:
        raise key_redacted(redacted)
    renames = types.renames.among((*key, *row, *untyped))
    renames.as_lake(dict.fromkeys((*row, *untyped)))
    return Shape(signature, renames.as_lake(key), renames.as_lake(row), tuple(untyped), added, renames=renames)


def joined(shapes: Iterable[Shape]) -> list[Shape]:
    """As few shapes as read the records of all: with a schema, those whose columns of one name are read alike are one,
    that has the columns of all. What a record has no field for is NULL in it either way.

    Each shape is a plan of its own over all records, and a table that changes often has many in one slice.
    """
    found: list[Shape] = []
    for shape in shapes:
        at = next((i for i, other in enumerate(found) if _read_alike(other, shape)), None)
        if at is None:
            found.append(shape)
        else:
            other = found[at]
            found[at] = replace(
                other,
                row={**other.row, **shape.row},
                also=(*other.also, *shape.signatures),
                renames=Renames({**other.renames.lake, **shape.renames.lake}),
            )
    return found


def _read_alike(one: Shape, other: Shape) -> bool:
    return (
        has_schema(one.signature.row)
        and has_schema(other.signature.row)
        and not (one.unreadable or other.unreadable)
        and one.added == other.added
        and list(one.key) == list(other.key)
        and _same_codecs(one.key, other.key)
        and _same_codecs(one.row, other.row)
        # Of two schemas the older may have had the column by the lake's own name.
        and all(one.renames.source(n) == other.renames.source(n) for n in (*one.key, *one.row) if n in other.row)
        and len({name.lower() for name in (*one.row, *other.row)}) == len({*one.row, *other.row})
    )


def _same_codecs(one: Mapping[str, Codec], other: Mapping[str, Codec]) -> bool:
    return all(codec.reads_like(other[name]) for name, codec in one.items() if name in other)


def _configured(column: str, sent: ConnectType, types: TypeSources) -> Codec:
    """The codec of a column that a schema tells: its own, or the configured type over it. A mask is over both."""
    wanted = types.configured.get(column)
    try:
        codec = codec_of(sent) if wanted is None else codec_over(sent, wanted, types.properties)
    except NoConversion as refused:
        told = refused.sent
        raise TableHalt(
            "no-conversion",
            f"the config has {wanted} for the column {column!r} under `columns`, and the source sends {told}, of which"
            " nothing makes that type",
            "name another type, or take the column out of `columns`",
        ) from refused
    return types.masks.over(column, codec)


def _key_codecs(signature: str | None, row: Mapping[str, Codec], types: TypeSources) -> dict[str, Codec]:
    if signature is None:
        return {}
    if has_schema(signature):
        return {f.name: _configured(f.name, f.type, types) for f in parse_schema(signature).fields}
    return {name: row.get(name) or types.codec(name) or STRING for name in json.loads(signature)}


def _refuse_case_twins(names: list[str]) -> None:
    seen: dict[str, str] = {}
    for name in names:
        if (twin := seen.get(name.lower())) and twin != name:
            raise TableHalt(
                "columns-differ-in-case",
                f"the columns {twin!r} and {name!r} differ only in case; a Delta table can't hold both",
                "leave one out with `exclude`, or give it another name with `rename`",
            )
        seen[name.lower()] = name
