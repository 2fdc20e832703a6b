"""What a few records show of a table's columns, told without Spark by the rules that slices and discover follow."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from distributary.consume.peek import Record
from distributary.decode.discover import NO_FIELDS, combined, common
from distributary.decode.shapes import Shape, Signature, TypeSources, has_schema, shape_of
from distributary.decode.types import MAX_PRECISION, by_value
from distributary.decode.unwrapped import Unwrapped
from distributary.operate.look import is_envelope, opened
from distributary.survey.guesses import guess

_LONG = 2**63


@dataclass(frozen=True)
class Cut:
    """A record with its key and value as objects (None for what is none), and their signatures (see shapes.Signature).

    `row` is the row that tells the columns: the one after the change, else the one before it where that is wanted.
    """

    record: Record
    key: Mapping[str, Any] | None
    value: Mapping[str, Any] | None
    row: Mapping[str, Any] | None
    signature: Signature

    @property
    def op(self) -> str | None:
        """The operation, of an envelope."""
        found = (self.value or {}).get("op")
        return found if isinstance(found, str) else None


@dataclass(frozen=True)
class Shown:
    """The shapes of the records, the oldest first, and by column the types that values alone tell, with what they may
    be beside (see guesses.guess)."""

    shapes: tuple[Shape, ...] = ()
    by_value: Mapping[str, str] = field(default_factory=dict)
    guesses: Mapping[str, str] = field(default_factory=dict)

    @property
    def untyped(self) -> tuple[str, ...]:
        """The source's columns whose type no value shows so far."""
        known = {shape.renames.source(name) for shape in self.shapes for name in shape.row}
        return tuple(dict.fromkeys(n for shape in self.shapes for n in shape.untyped if n not in known))

    def wire(self) -> list[dict[str, str]]:
        """The columns of each shape: name to Spark type."""
        return [
            {name: codec.target for name, codec in {**shape.key, **shape.row}.items()}
            for shape in self.shapes
            if not shape.unreadable
        ]


def cuts(records: Iterable[Record], unwrapped: Unwrapped | None, *, before: bool = False) -> list[Cut]:
    """The records whose value is an object or nothing; others go to the quarantine table and show no columns."""
    return [cut for record in records if (cut := _cut(record, unwrapped, before=before)) is not None]


def _cut(record: Record, unwrapped: Unwrapped | None, *, before: bool) -> Cut | None:
    value, schema = opened(record.value)
    key, key_schema = opened(record.key)
    if value is not None and not isinstance(value, dict):
        return None
    row: Any = value
    if value is not None and unwrapped is None:
        row = value.get("after")
        row = value.get("before") if row is None and before else row
    elif value is not None and is_envelope(value):
        row = None
    row = row if isinstance(row, dict) else None
    names = None if value is None else _names(row)
    return Cut(
        record,
        key=key if isinstance(key, dict) else None,
        value=value,
        row=row,
        signature=Signature(
            key=_text(key_schema) if key_schema else _names(key) if isinstance(key, dict) else None,
            row=_text(schema) if schema and value is not None else names,
        ),
    )


def _names(row: Mapping[str, Any] | None) -> str:
    return _text(list(row)) if row else NO_FIELDS


def _text(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def shown(
    found: Sequence[Cut], types: TypeSources, exclude: Iterable[str] = (), unwrapped: Unwrapped | None = None
) -> Shown:
    """The shapes of the records; where neither a schema nor `types` tells a column's type, its values do.

    Raises TableHalt where the table can't have such columns.
    """
    left_out = frozenset(exclude)
    told = ((c.signature.key, c.signature.row, float(c.record.timestamp or 0)) for c in found)
    signatures = [seen.signature for seen in combined(told, types.renames, left_out)]
    shapes = [shape_of(signature, types, left_out, unwrapped) for signature in signatures]
    wanted = {name for shape in shapes for name in shape.untyped}
    wanted |= {n for s in signatures for n in s.key_names_without_schema() if types.codec(n) is None}
    if not wanted:
        return Shown(tuple(shapes))
    values = _values(found, wanted)
    types = replace(types, by_value=_types_of_values(values))
    shapes = [shape_of(signature, types, left_out, unwrapped) for signature in signatures]
    elsewhere = {s.renames.source(name) for s in shapes if has_schema(s.signature.row) for name in s.row}
    alone = {name: kind for name, kind in types.by_value.items() if name not in elsewhere}
    guesses = {name: said for name, kind in alone.items() if (said := guess(kind, values[name])) is not None}
    return Shown(tuple(shapes), alone, guesses)


def _values(found: Iterable[Cut], wanted: Iterable[str]) -> dict[str, list[Any]]:
    """The values of such columns, in rows and keys."""
    values: dict[str, list[Any]] = {name: [] for name in sorted(wanted)}
    for cut in found:
        for part in (cut.row or {}, cut.key or {}):
            for name in values.keys() & part.keys():
                values[name].append(part[name])
    return values


def _types_of_values(values: Mapping[str, Iterable[Any]]) -> dict[str, str]:
    types = {}
    for name, found in values.items():
        if kinds := {kind for value in found if (kind := by_value(_variant_type(value))) is not None}:
            types[name] = common(kinds)
    return types


def _variant_type(value: Any) -> str:
    """The name that Spark's schema_of_variant has for a JSON value, as far as by_value() tells names apart."""
    if value is None:
        return "VOID"
    if isinstance(value, bool):
        return "BOOLEAN"
    if isinstance(value, int):
        digits = len(str(abs(value)))
        beyond = f"DECIMAL({digits},0)" if digits <= MAX_PRECISION else "DOUBLE"
        return "BIGINT" if -_LONG <= value < _LONG else beyond
    return "DOUBLE" if isinstance(value, float) else "STRING"
