"""What a record costs to decode: CPU time in one process, columns included. Run by hand:

    PYTHONPATH=.:service python -m tests.benchmarks.decoding

Each line is the lowest of several rounds, as other work on the machine only adds to it.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator

import pyarrow as pa
from tests.benchmarks.source import Source
from tests.support.decoding import options_of, raw_table
from tests.support.learning import learn
from tests.support.recorded import Record, Scenario

from distributary.decode.decoder import Decoder
from distributary.decode.options import DecodeOptions, TypeSources

RECORDS = 20_000
ROUNDS = 5


def sql_server(*, schema: bool) -> tuple[pa.Table, DecodeOptions]:
    """Snapshot rows, some 4 kB with their schema; without it the config names the types."""
    records = [
        Record("t", 0, index, 0, record.key, record.value, ())
        for index, record in enumerate(Source(schema=schema).snapshot(RECORDS))
    ]
    types = {"credit": "decimal(18,2)", "born": "io.debezium.time.Date", "created": "timestamp_us", "visits": "int"}
    configured = TypeSources(configured={} if schema else types)
    return raw_table(records), DecodeOptions("sqlserver", types=configured)


def recorded(scenario: str, table: str) -> tuple[pa.Table, DecodeOptions]:
    """The records of a recorded table, again and again."""
    recording = Scenario(scenario)
    truth = recording.tables[table]
    records = recording.topic(truth.schema, truth.name)
    count = RECORDS if len(truth.columns) < 20 else RECORDS // 10
    many = [records[index % len(records)] for index in range(count)]
    return raw_table(many), options_of(recording, truth)


CASES: dict[str, Callable[[], tuple[pa.Table, DecodeOptions]]] = {
    "SQL Server, 12 columns, with schema": lambda: sql_server(schema=True),
    "the same without schema": lambda: sql_server(schema=False),
    "PostgreSQL, 6 columns, with schema": lambda: recorded("pg_json_schema", "customers"),
    "PostgreSQL, 6 columns, without schema": lambda: recorded("pg_json_plain", "customers"),
    "PostgreSQL, 84 columns of all types, with schema": lambda: recorded("pg_types", "all_types"),
    "PostgreSQL, 84 columns of all types, without schema": lambda: recorded("pg_types_plain", "all_types"),
    "MariaDB, 48 columns, with schema": lambda: recorded("maria_json_schema", "all_types"),
}


def measure() -> Iterator[tuple[str, float, float, int]]:
    """Of each case: its name, microseconds a record, milliseconds of a first batch of one record, bytes a record."""
    for name, make in CASES.items():
        raw, options = make()
        start = time.process_time()
        schema = learn(Decoder(options), raw.slice(0, 1))
        first = time.process_time() - start
        schema = learn(Decoder(options), raw)
        decoder = Decoder(options)
        best = float("inf")
        for _ in range(ROUNDS):
            start = time.process_time()
            decoded = decoder.decode(raw, schema)
            best = min(best, time.process_time() - start)
        assert not decoded.rejected.num_rows
        yield name, best / raw.num_rows * 1e6, first * 1e3, raw["value"].nbytes // raw.num_rows


if __name__ == "__main__":
    for name, micros, first, size in measure():
        print(f"{name:<52}{micros:8.1f} µs a record  {first:8.1f} ms at first  {size:6d} bytes")  # noqa: T201
