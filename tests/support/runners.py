"""Records that both runners, the driver and Spark's tasks, have to decode alike."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc
from tests.support.decoding import in_avro, options_of
from tests.support.hostile import TYPES, HostileRecords
from tests.support.learning import learn
from tests.support.recorded import Record, Scenario

from distributary.consume.offsets import OffsetRange
from distributary.consume.record_tables import raw_table
from distributary.consume.sample import SampledRecord
from distributary.decode.decoder import Decoded, Decoder
from distributary.decode.options import DecodeOptions, TypeSources
from distributary.types.record_schema import RecordSchema

TOPIC = "t"
_HOSTILE = 1_000


@dataclass(frozen=True)
class RunnerCase:
    """Records as Kafka's client gives them, how they are decoded, and the columns of their table."""

    raw: pa.Table
    options: DecodeOptions
    schema: RecordSchema

    @property
    def range(self) -> OffsetRange:
        """The offset range of all records."""
        places = self.raw.group_by("partition").aggregate([("offset", "min"), ("offset", "max")]).to_pylist()
        start = {place["partition"]: place["offset_min"] for place in places}
        return OffsetRange(TOPIC, start, {place["partition"]: place["offset_max"] + 1 for place in places})

    @property
    def fetch_pieces(self) -> FetchListed:
        """What gives ranges of the records in pieces, in Spark's tasks, too."""
        return FetchListed(self.raw)


@dataclass(frozen=True)
class FetchListed:
    """As consume.fetch.FetchPieces, of records that are there already."""

    raw: pa.Table

    def __call__(self, part: OffsetRange, most_records: int, most_bytes: int) -> Iterator[pa.Table]:
        del most_bytes
        for partition, end in part.end.items():
            offsets = pc.field("offset")
            is_within = (pc.field("partition") == partition) & (offsets >= part.start[partition]) & (offsets < end)
            found = self.raw.filter(is_within)
            for begin in range(0, found.num_rows, most_records):
                yield found.slice(begin, most_records)


def _raw(records: Iterable[Record]) -> pa.Table:
    return raw_table(
        TOPIC,
        [SampledRecord(one.partition, one.offset, one.key, one.value, one.headers, one.timestamp) for one in records],
    )


def _recorded(scenario: str, table: str, *, avro: bool = False) -> RunnerCase:
    recording = Scenario(scenario)
    truth = recording.tables[table]
    records = list(recording.topic(truth.schema, truth.name))
    schemas = None
    if avro:
        records, schemas = in_avro(records)
    faults = (b"\xff", b"{", b'{"op":"c"}', b"\x00\x00\x00\x00\x01")
    records += [Record(TOPIC, 0, 10**6 + number, 1, b"{}", value, ()) for number, value in enumerate(faults)]
    raw, options = _raw(records), options_of(recording, truth, before=True, avro=schemas)
    return RunnerCase(raw, options, learn(Decoder(options), raw))


def _hostile(*, avro: bool) -> RunnerCase:
    made = HostileRecords(5)
    types = TypeSources(configured={} if avro else TYPES)
    options = DecodeOptions("postgresql", types=types, before=True, avro=made.schemas if avro else None)
    return RunnerCase(_raw(made.records(_HOSTILE, avro=avro)), options, RecordSchema(TYPES, {"id": "bigint"}))


RUNNER_CASES: Mapping[str, Callable[[], RunnerCase]] = {
    "PostgreSQL with schema": lambda: _recorded("pg_json_schema", "customers"),
    "special values with schema": lambda: _recorded("pg_types", "special"),
    "special values without": lambda: _recorded("pg_types_plain", "special"),
    "special values in Avro": lambda: _recorded("pg_types", "special", avro=True),
    "values not sent": lambda: _recorded("pg_toast", "toasty"),
    "MariaDB": lambda: _recorded("maria_json_schema", "all_types"),
    "rows without envelope": lambda: _recorded("pg_unwrap_rewrite", "customers"),
    "rows without envelope in Avro": lambda: _recorded("pg_unwrap_rewrite", "customers", avro=True),
    "hostile": lambda: _hostile(avro=False),
    "hostile Avro": lambda: _hostile(avro=True),
}


def assert_decoded_alike(one: Decoded, other: Decoded) -> None:
    """The same events, rejected records and findings."""
    for left, right in ((one.events, other.events), (one.rejected, other.rejected)):
        assert left.schema.equals(right.schema)
        assert left.num_rows == right.num_rows
        everything = {"window": left.num_rows, "container_window": 10**6, "element_size_limit": 10**9}
        for name in left.column_names:  # as texts: NaN equals NaN there
            texts = (pa.concat_arrays(column.chunks).to_string(**everything) for column in (left[name], right[name]))
            assert next(texts) == next(texts), name
    names = [{name for found in decoded.observed for name in found.names} for decoded in (one, other)]
    assert names[0] == names[1]
    conflicts = [None if decoded.conflict is None else decoded.conflict.code for decoded in (one, other)]
    assert conflicts[0] == conflicts[1]
    assert one.unknown_schemas == other.unknown_schemas
    assert one.source_tables == other.source_tables
