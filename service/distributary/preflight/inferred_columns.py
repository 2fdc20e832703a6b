"""What a few records show of a table's columns, by the decoder that reads them later."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from distributary.consume.fetch import raw_table
from distributary.consume.peek import Record
from distributary.decode.decoder import Decoder
from distributary.decode.observed_columns import ObservedColumns
from distributary.decode.options import DecodeOptions
from distributary.decode.record_schema import RecordSchema
from distributary.decode.renames import Renames
from distributary.decode.unwrapped import Unwrapped
from distributary.ingest.record_form import is_envelope, opened
from distributary.preflight.type_guesses import guess


@dataclass(frozen=True)
class Cut:
    """A record with its key and value as objects (None for what is none), and the Connect schema beside its value.

    `row` is the row that tells the columns: the one after the change, else the one before it where that is wanted.
    """

    record: Record
    key: Mapping[str, Any] | None
    value: Mapping[str, Any] | None
    row: Mapping[str, Any] | None
    schema: Mapping[str, Any] | None

    @property
    def op(self) -> str | None:
        """The operation, of an envelope."""
        found = (self.value or {}).get("op")
        return found if isinstance(found, str) else None


@dataclass(frozen=True)
class Shown:
    """The columns of the records; of those whose types nothing but values tells, by the source's names, these types and
    what they may be beside (see guesses.guess); those whose type no value shows so far; and the tables that the
    changes are of."""

    observed: tuple[ObservedColumns, ...] = ()
    by_value: Mapping[str, str] = field(default_factory=dict)
    guesses: Mapping[str, str] = field(default_factory=dict)
    untyped: tuple[str, ...] = ()
    source_tables: frozenset[str] = frozenset()


def cuts(records: Iterable[Record], unwrapped: Unwrapped | None, *, before: bool = False) -> list[Cut]:
    """The records whose value is an object or nothing; others go to the quarantine table and show no columns."""
    return [cut for record in records if (cut := _cut(record, unwrapped, before=before)) is not None]


def _cut(record: Record, unwrapped: Unwrapped | None, *, before: bool) -> Cut | None:
    value, schema = opened(record.value)
    key, _ = opened(record.key)
    if value is not None and not isinstance(value, dict):
        return None
    row: Any = value
    if value is not None and unwrapped is None:
        row = value.get("after")
        row = value.get("before") if row is None and before else row
    elif value is not None and is_envelope(value):
        row = None
    row = row if isinstance(row, dict) else None
    return Cut(record, key if isinstance(key, dict) else None, value, row, schema if value is not None else None)


def shown(found: Sequence[Cut], schema: RecordSchema, options: DecodeOptions) -> Shown:
    """The columns of the records; `schema` has those of the table.

    Raises TableHalt where the table can't have such columns.
    """
    decoded = Decoder(options).decode(raw_table("", [cut.record for cut in found]), schema)
    if decoded.conflict is not None:
        raise decoded.conflict
    renames = Renames(options.renames)
    by_schema = {name for one in decoded.observed if one.has_schema and not one.is_key for name in one.types}
    guessed = {name: kind for one in decoded.observed for name, kind in one.guessed.items() if name not in by_schema}
    by_value = {renames.source(name): kind for name, kind in guessed.items()}
    values = _values(found, by_value)
    guesses = {name: said for name, kind in by_value.items() if (said := guess(kind, values[name])) is not None}
    typed = {renames.source(name) for one in decoded.observed for name in one.types}
    sent = dict.fromkeys(name for cut in found for name in (cut.row or {}))
    plain = {name for one in decoded.observed if not (one.has_schema or one.is_key) for name in one.names}
    left_out = {*typed, *options.exclude, *(options.unwrapped.fields if options.unwrapped else ())}
    untyped = tuple(name for name in sent if name in plain and name not in left_out)
    return Shown(decoded.observed, by_value, guesses, untyped, decoded.source_tables)


def _values(found: Iterable[Cut], wanted: Iterable[str]) -> dict[str, list[Any]]:
    """The values of such columns, in rows and keys."""
    values: dict[str, list[Any]] = {name: [] for name in sorted(wanted)}
    for cut in found:
        for part in (cut.row or {}, cut.key or {}):
            for name in values.keys() & part.keys():
                values[name].append(part[name])
    return values
