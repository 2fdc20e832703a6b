"""A table's columns, inferred from a few records by the decoder that reads them later."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from distributary.config.table import TableSettings
from distributary.consume.record_tables import RAW, raw_table
from distributary.consume.sample import SampledRecord
from distributary.decode.decoder import Decoder
from distributary.decode.envelope import is_envelope
from distributary.decode.observed_columns import ObservedColumns
from distributary.decode.options import DecodeOptions
from distributary.decode.renames import Renames
from distributary.decode.source_block import BY_OFFSET
from distributary.decode.unwrapped import Unwrapped
from distributary.errors import TableHalt
from distributary.evolve.policy import ColumnPolicy
from distributary.ingest.record_form import parse_payload
from distributary.ingest.source_tables import filled_table
from distributary.ingest.stray_records import show_change, without_strays
from distributary.preflight.type_guesses import guess
from distributary.progress.record import Progress
from distributary.types.record_schema import RecordSchema

_NOTHING = Decoder(DecodeOptions(BY_OFFSET)).decode(RAW.empty_table(), RecordSchema())


@dataclass(frozen=True)
class ParsedRecord:
    """A record with its key and value as JSON objects (None for anything else) and the Connect schema of its value.

    `row` is the row that shows the columns: the one after the change, else, on request, the one before it.
    """

    record: SampledRecord
    key: Mapping[str, Any] | None
    value: Mapping[str, Any] | None
    row: Mapping[str, Any] | None
    schema: Mapping[str, Any] | None

    @property
    def op(self) -> str | None:
        """The operation of an envelope, else None."""
        operation = (self.value or {}).get("op")
        return operation if isinstance(operation, str) else None


@dataclass(frozen=True)
class InferredColumns:
    """The columns that records show.

    `by_value`: types that were inferred from values, by the source's names; `possible_types`: other possible types of
    these columns (see type_guesses); `untyped`: columns whose type no value shows yet; `source_tables`: the tables that
    the records name; `conflict`: the halt, if the records do not fit the table.
    """

    observed: tuple[ObservedColumns, ...] = ()
    by_value: Mapping[str, str] = field(default_factory=dict)
    possible_types: Mapping[str, str] = field(default_factory=dict)
    untyped: tuple[str, ...] = ()
    source_tables: frozenset[str] = frozenset()
    conflict: TableHalt | None = None


def parse_records(
    records: Iterable[SampledRecord], unwrapped: Unwrapped | None, *, before: bool = False
) -> list[ParsedRecord]:
    """The records whose value is an object or missing. Others would go to the quarantine table and show no columns."""
    return [parsed for record in records if (parsed := _parse(record, unwrapped, before=before)) is not None]


def _parse(record: SampledRecord, unwrapped: Unwrapped | None, *, before: bool) -> ParsedRecord | None:
    value, schema = parse_payload(record.value)
    key, _ = parse_payload(record.key)
    if value is not None and not isinstance(value, dict):
        return None
    row: Any = value
    if value is not None and unwrapped is None:
        row = value.get("after")
        row = value.get("before") if row is None and before else row
    elif value is not None and is_envelope(value):
        row = None
    row = row if isinstance(row, dict) else None
    return ParsedRecord(
        record, key if isinstance(key, dict) else None, value, row, schema if value is not None else None
    )


def infer_columns(
    records: Sequence[ParsedRecord],
    schema: RecordSchema,
    options: DecodeOptions,
    policy: ColumnPolicy,
    key: tuple[str, ...],
    settings: TableSettings,
    progress: Progress | None,
) -> InferredColumns:
    """The columns that the records show; `schema` has those of the table, `key` its key's. Single records that the
    table can't have show none, as they would go to quarantine (see ingest/stray_records.py)."""
    raw = raw_table("", [parsed.record for parsed in records])
    options = replace(options, filled=filled_table(settings, key) if schema.row else None)
    decoder = Decoder(options)
    decoded, _, _ = without_strays(decoder.decode(raw, schema), decoder, raw, policy, schema, key, settings)
    conflict = decoded.conflict
    has_no_row = not (schema.row or decoded.events.num_rows)
    # The sample includes the newest records of each partition: there are no records behind it.
    if conflict is not None and not has_no_row and not show_change(decoded, progress, lambda _start: _NOTHING):
        conflict = None
    renames = Renames(options.renames)
    by_schema = {
        name for column in decoded.observed if column.has_schema and not column.is_key for name in column.types
    }
    guessed = {
        name: kind for column in decoded.observed for name, kind in column.guessed.items() if name not in by_schema
    }
    by_value = {renames.source(name): kind for name, kind in guessed.items()}
    values = _values(records, by_value)
    possible_types = {name: text for name, kind in by_value.items() if (text := guess(kind, values[name])) is not None}
    typed = {renames.source(name) for column in decoded.observed for name in column.types}
    sent = dict.fromkeys(name for parsed in records for name in (parsed.row or {}))
    plain = {name for column in decoded.observed if not (column.has_schema or column.is_key) for name in column.names}
    left_out = {*typed, *options.exclude, *(options.unwrapped.fields if options.unwrapped else ())}
    untyped = tuple(name for name in sent if name in plain and name not in left_out)
    return InferredColumns(decoded.observed, by_value, possible_types, untyped, decoded.source_tables, conflict)


def _values(records: Iterable[ParsedRecord], wanted: Iterable[str]) -> dict[str, list[Any]]:
    """The values of the wanted columns in rows and keys."""
    values: dict[str, list[Any]] = {name: [] for name in sorted(wanted)}
    for parsed in records:
        for part in (parsed.row or {}, parsed.key or {}):
            for name in values.keys() & part.keys():
                values[name].append(part[name])
    return values
