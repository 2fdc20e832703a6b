"""The Arrow decoder against the decoder in Spark's SQL, on recorded records: the same are rejected, for the same
reason, and of the others all is the same, value by value. Not compared is `snapshot_identity`: it is another text,
which tells snapshot rows apart as the hash of their source block does.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F
from tests.support.comparable import column_values, identical
from tests.support.decoding import decode_all, events_by_place, options_of
from tests.support.recorded import Record, Scenario

from distributary.decode.alike import with_known
from distributary.decode.discover import signatures
from distributary.decode.reading import Reading
from distributary.decode.records import decoded
from distributary.decode.shapes import TypeSources, shape_of
from distributary.decode.slices import sliced
from distributary.decoding.options import DecodeOptions
from distributary.decoding.record_schema import RecordSchema

RAW = pa.schema(
    {
        "key": pa.binary(),
        "value": pa.binary(),
        "partition": pa.int32(),
        "offset": pa.int64(),
        "timestamp": pa.timestamp("us", tz="UTC"),
        "headers": pa.list_(pa.struct({"key": pa.string(), "value": pa.binary()})),
    }
)
RECORDED = (
    *(("pg_json_schema", "customers"), ("pg_json_schema", "num_keys"), ("pg_types", "special")),
    *(("pg_types_plain", "special"), ("pg_toast", "toasty"), ("maria_json_schema", "all_types")),
    ("maria_json_schema", "special"),
)
Found = dict[tuple[int, int], dict[str, Any]]


def by_sql(session: SparkSession, records: Sequence[Record], options: DecodeOptions, schema: RecordSchema) -> Found:
    """What the decoder in SQL makes of records, by partition and offset; `bad` is the reason."""
    rows = [
        {
            "key": record.key,
            "value": record.value,
            "partition": record.partition,
            "offset": record.offset,
            "timestamp": dt.datetime.fromtimestamp(record.timestamp / 1000, dt.timezone.utc),
            "headers": [{"key": name, "value": value} for name, value in record.headers],
        }
        for record in records
    ]
    raw = session.createDataFrame(pa.Table.from_pylist(rows, schema=RAW))
    types = TypeSources(options.types.configured, dict(schema.row), {}, options.types.properties)
    cut = sliced(raw).localCheckpoint()
    reading = Reading(options.connector, 0, schema.row, schema.key, options.placeholder, missing=True, links=True)
    found: Found = {}
    for seen in signatures(cut):
        shape = shape_of(seen.signature, types)
        known = decoded(with_known(cut, shape), shape, reading).where("known")
        columns = (
            "partition",
            "offset",
            "kind",
            "pos",
            "tx",
            "ts_ms",
            "ends",
            "moved_in",
            "moved_out",
            "missing",
            "row",
        )
        table = known.select(*columns, "k", "old_k", "new_k", F.col("bad.code").alias("bad")).toArrow()
        values = {name: column_values(table.column(name)) for name in table.column_names}
        for place in range(table.num_rows):
            one = {name: column[place] for name, column in values.items()}
            found.setdefault((one["partition"], one["offset"]), one)
    return found


def by_arrow(records: Sequence[Record], options: DecodeOptions) -> tuple[Found, RecordSchema]:
    """The same by the Arrow decoder."""
    made, schema = decode_all(records, options)
    found = events_by_place(made, "key", "row", "old_key", "new_key")
    places = zip(made.rejected["partition"].to_pylist(), made.rejected["offset"].to_pylist(), strict=True)
    for place, reason in zip(places, made.rejected["reason"].to_pylist(), strict=True):
        found[place] = {"bad": reason}
    return found, schema


def differences(sql: Mapping[str, Any], arrow: Mapping[str, Any], schema: RecordSchema) -> list[str]:
    """In what the two decoded records differ, by name."""
    if sql["bad"] is not None or "bad" in arrow:
        return [] if sql["bad"] == arrow.get("bad") else [f"{sql['bad']} / {arrow.get('bad')}"]
    pairs: list[tuple[str, Any, Any]] = [
        (name, sql[other], arrow[name])
        for name, other in (
            *(("operation", "kind"), ("position", "pos"), ("transaction", "tx"), ("source_time", "ts_ms")),
            *(("snapshot_end", "ends"), ("moved_in", "moved_in"), ("moved_out", "moved_out")),
        )
    ]
    names = list(schema.row)
    missing = [names[place] for place in sql["missing"] or ()]
    pairs.append(("unavailable", sorted(missing), sorted(arrow["unavailable"] or ())))
    for name, other, columns in (
        ("row", "row", schema.row),
        *(("key", "k", schema.key), ("old_key", "old_k", schema.key), ("new_key", "new_k", schema.key)),
    ):
        one = None if sql[other] is None else dict(zip(columns, sql[other].values(), strict=True))
        if one is None or arrow[name] is None:
            is_no_key = name == "key" and (one is None or not any(value is not None for value in one.values()))
            pairs.append((name, None if is_no_key else one, arrow[name]))
        else:
            pairs += [(f"{name}.{column}", value, arrow[name][column]) for column, value in one.items()]
    return [f"{name}: {one!r} / {other!r}" for name, one, other in pairs if not identical(one, other)]


@pytest.mark.parametrize(("scenario", "table"), RECORDED)
def test_recorded_records_are_decoded_alike(session: SparkSession, scenario: str, table: str) -> None:
    recording = Scenario(scenario)
    truth = recording.tables[table]
    records = recording.topic(truth.schema, truth.name)
    options = options_of(recording, truth)
    arrow, schema = by_arrow(records, options)
    sql = by_sql(session, records, options, schema)
    assert set(sql) == set(arrow)
    found = [(place, differences(sql[place], arrow[place], schema)) for place in sorted(sql)]
    assert [entry for entry in found if entry[1]] == []
