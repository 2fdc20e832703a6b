"""The keys in the headers of a key change, as converters really wrote them: they must be the keys of the records."""

from __future__ import annotations

import json
from collections.abc import Sequence

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F
from tests.support.recorded import Record, Scenario

from distributary.decode.alike import with_known
from distributary.decode.discover import signatures
from distributary.decode.records import Reading, decoded
from distributary.decoding.renames import Renames
from distributary.decode.shapes import Shape, TypeSources, shape_of
from distributary.decode.slices import sliced

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
LINKS = ("__debezium.oldkey", "__debezium.newkey")


def links(
    session: SparkSession, records: Sequence[Record], columns: dict[str, str], connector: str
) -> tuple[set[str], set[str]]:
    """(old key, new key) as the creates of key changes tell them, and as the deletes do."""
    rows = [
        {
            "key": r.key,
            "value": r.value,
            "partition": r.partition,
            "offset": r.offset,
            "timestamp": r.timestamp * 1000,
            "headers": [{"key": name, "value": value} for name, value in r.headers],
        }
        for r in records
        if r.value is not None and (r.key is not None) and any(name in LINKS for name, _ in r.headers)
    ]
    cut = sliced(session.createDataFrame(pa.Table.from_pylist(rows, schema=RAW)))
    types = TypeSources(columns, {}, {}, {})
    (shape,) = [shape_of(seen.signature, types) for seen in signatures(cut)]
    found = decoded(with_known(cut, shape), shape, reading(shape, connector)).where("kind IN ('c', 'd')")
    pairs = found.select(
        "kind",
        F.to_json(F.expr("CASE kind WHEN 'c' THEN struct(old_k AS a, k AS b) ELSE struct(k AS a, new_k AS b) END")),
    ).collect()
    created, deleted = ({text for kind, text in pairs if kind == wanted} for wanted in "cd")
    return created, deleted


def reading(shape: Shape, connector: str) -> Reading:
    columns = {name: codec.target for name, codec in shape.row.items()}
    return Reading(connector, 0, columns, {n: columns[n] for n in shape.key}, "", links=True)


@pytest.mark.parametrize(
    ("scenario", "table", "columns"),
    [
        ("pg_json_schema", "num_keys", {}),  # the key has base64, the header a number
        ("pg_json_schema", "text_keys", {}),
        ("pg_json_plain", "num_keys", {"k": "decimal(24,3)", "v": "string"}),  # in the key's own form
        ("pg_extra", "reserved", {}),  # columns called schema and payload
        ("maria_json_schema", "dt_keys", {}),
        ("maria_json_schema", "num_keys", {}),
    ],
)
def test_3_4_the_headers_of_a_key_change_name_the_other_records_key(
    session: SparkSession, scenario: str, table: str, columns: dict[str, str]
) -> None:
    source = Scenario(scenario)
    schema, connector = ("shop", "mariadb") if scenario.startswith("maria") else ("public", "postgresql")
    created, deleted = links(session, source.topic(schema, table), columns, connector)
    assert created
    assert created == deleted


@pytest.mark.parametrize("renames", [{}, {"k": "a `key`"}], ids=["the source's name", "renamed"])
def test_3_4_header_texts_with_line_breaks_and_in_every_form(session: SparkSession, renames: dict[str, str]) -> None:
    texts = ["a\nb", 'q"\\', "\t", "plain"]
    rows = []
    for number, text in enumerate(texts):
        lsn = "00000027:00000ac0:0000000000000002"
        value = {"op": "c", "after": {"k": "x"}, "source": {"connector": "db2", "commit_lsn": lsn, "change_lsn": lsn}}
        escaped = text.replace("\\", "\\\\").replace('"', '\\"')  # all that SimpleHeaderConverter escapes
        bare = f'{{"k":"{escaped}"}}'
        wrapped = json.dumps({"schema": {"type": "struct"}, "payload": {"k": text}}, separators=(",", ":"))
        for form, header in enumerate((bare, json.dumps({"k": text}), wrapped)):
            rows.append(
                {
                    "key": b'{"k":"x"}',
                    "value": json.dumps(value).encode(),
                    "partition": 0,
                    "offset": number * 10 + form,
                    "timestamp": 0,
                    "headers": [{"key": LINKS[0], "value": header.encode()}],
                }
            )
    cut = sliced(session.createDataFrame(pa.Table.from_pylist(rows, schema=RAW)))
    types = TypeSources({"k": "string"}, {}, {}, {}, renames=Renames(renames))
    (shape,) = [shape_of(seen.signature, types) for seen in signatures(cut)]
    found = (
        decoded(with_known(cut, shape), shape, reading(shape, "db2"))
        .selectExpr("offset", "old_k.k0 AS k")
        .toArrow()
        .to_pylist()
    )
    assert {row["offset"]: row["k"] for row in found} == {
        number * 10 + form: text for number, text in enumerate(texts) for form in range(3)
    }
