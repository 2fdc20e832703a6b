"""Records cut into schema and payload: the quick way, by the bytes of a known schema, cuts as the thorough one does."""

from __future__ import annotations

import datetime as dt
import itertools
from typing import Any

import pyarrow as pa
from pyspark.sql import SparkSession
from pyspark.sql import functions as F
from tests.spark.test_links import RAW

from distributary.decode.shapes import Shape, Signature
from distributary.decode.slices import shape_number, sliced

KEY_SCHEMA = '{"type":"struct","fields":[{"type":"int32","optional":false,"field":"id"}],"optional":false}'
SCHEMA = '{"type":"struct","fields":[{"type":"string","field":"ä,\\"payload\\""}],"optional":false,"name":"s.Envelope"}'
KEY = f'{{"schema":{KEY_SCHEMA},"payload":{{"id":1}}}}'.encode()
VALUES: dict[str, bytes | None] = {
    "usual": f'{{"schema":{SCHEMA},"payload":{{"op":"c","after":{{"x":"ä"}}}}}}'.encode(),
    "null": f'{{"schema":{SCHEMA},"payload":null}}'.encode(),
    "null with blanks": f'{{"schema":{SCHEMA},"payload": null }}'.encode(),
    "nothing": f'{{"schema":{SCHEMA},"payload":}}'.encode(),
    "blank": f'{{"schema":{SCHEMA},"payload":  }}'.encode(),
    "cut off": f'{{"schema":{SCHEMA},"payload":{{"op":"c"'.encode(),
    "schema alone": f'{{"schema":{SCHEMA},"payload":'.encode(),
    "no text": f'{{"schema":{SCHEMA},"payload":{{"op":"'.encode() + b'\xff"}}',
    "with blanks": f'{{"schema": {SCHEMA}, "payload": {{"op":"c"}}}}'.encode(),
    "other way round": f'{{"payload":{{"op":"c"}},"schema":{SCHEMA}}}'.encode(),
    "another schema": b'{"schema":{"type":"struct","fields":[],"optional":true},"payload":{"op":"u"}}',
    "no schema": b'{"op":"u","after":{"y":1}}',
    "payload in a row": b'{"op":"u","after":{"schema":"s","payload":"p"}}',
    "no JSON": b"no JSON",
    "empty": b"",
    "blanks alone": b"  ",
    "JSON's null": b"null",
    "tombstone": None,
}


def cut(session: SparkSession, *known: Signature) -> dict[str, dict[str, Any]]:
    rows = [
        {
            "key": KEY,
            "value": value,
            "partition": 0,
            "offset": number,
            "timestamp": dt.datetime(2026, 1, 1, tzinfo=dt.timezone.utc),
            "headers": [("__debezium.newkey", b"n"), ("other", None), ("__debezium.oldkey", None)],
        }
        for number, value in enumerate(VALUES.values())
    ]
    raw = session.createDataFrame(pa.Table.from_pylist(rows, schema=RAW))
    # As bytes: of a value that is no text not even its payload is.
    found = sliced(raw, known=known).withColumn("v", F.col("v").cast("binary"))
    rows = found.orderBy("offset").toArrow().to_pylist()
    return dict(zip(VALUES, rows, strict=True))


def test_known_schemas_make_no_difference(session: SparkSession) -> None:
    thorough = cut(session)
    assert cut(session, Signature(KEY_SCHEMA, SCHEMA)) == thorough
    assert cut(session, Signature(None, '{"type":"struct"}'), Signature(KEY_SCHEMA, SCHEMA)) == thorough
    usual = thorough["usual"]
    assert (usual["k"], usual["v"]) == ('{"id":1}', '{"op":"c","after":{"x":"ä"}}'.encode())
    assert (usual["ks"], usual["vs"]) == (KEY_SCHEMA, SCHEMA)
    assert (usual["old_key"], usual["new_key"]) == ("", "n")


def test_only_null_is_a_tombstone(session: SparkSession) -> None:
    found = cut(session, Signature(KEY_SCHEMA, SCHEMA))
    assert {name for name, row in found.items() if row["v"] is None} == {
        "null",
        "null with blanks",
        "JSON's null",
        "tombstone",
    }
    assert {name for name, row in found.items() if row["fault"] is not None} == {"no text"}


def test_a_signature_fits_a_shape_where_a_record_with_it_does(session: SparkSession) -> None:
    keys = [None, '["id"]', KEY_SCHEMA]
    rows = [None, "[]", '["a"]', '["b","a"]', SCHEMA, SCHEMA.replace("s.Envelope", "t.Envelope")]
    every = [Signature(key, row) for key, row in itertools.product(keys, rows)]
    text = pa.table({"ks": [s.key for s in every], "vs": [s.row for s in every], "v": ["{}"] * len(every)})
    records = session.createDataFrame(text).withColumn("fault", F.lit(None).cast("string"))
    for known in every:
        shape = Shape(known, {}, {})
        numbers = records.select(shape_number([shape]).alias("n")).toArrow().column("n").to_pylist()
        assert [shape.fits(other) for other in every] == [number == 0 for number in numbers], known
