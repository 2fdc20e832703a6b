"""Records cut into schema and payload: the quick way, by the bytes of known schemas, cuts as the thorough one does."""

from __future__ import annotations

import datetime as dt
import itertools
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from tests.spark.test_links import RAW

from distributary.decode.alike import alike
from distributary.decode.shapes import Shape, Signature
from distributary.decode.slices import shape_number, sliced

KEY_SCHEMA = '{"type":"struct","fields":[{"type":"int32","optional":false,"field":"id"}],"optional":false}'
SCHEMA = '{"type":"struct","fields":[{"type":"string","field":"ä,\\"payload\\""}],"optional":false,"name":"s.Envelope"}'
KEY = f'{{"schema":{KEY_SCHEMA},"payload":{{"id":1}}}}'.encode()
NOTHING = b'{"schema":null,"payload":null}'
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
    "null with a null schema": NOTHING,
    "tombstone": None,
}


# Of these the quick way says that it does not know them: they have another shape, or are written otherwise.
NOT_ALIKE = {
    "cut off",
    "schema alone",
    "with blanks",
    "other way round",
    "another schema",
    "no schema",
    "payload in a row",
}


def kafka(session: SparkSession, values: Iterable[tuple[bytes | None, bytes | None]]) -> DataFrame:
    rows = [
        {
            "key": key,
            "value": value,
            "partition": 0,
            "offset": number,
            "timestamp": dt.datetime(2026, 1, 1, tzinfo=dt.timezone.utc),
            "headers": [("__debezium.newkey", b"n"), ("other", None), ("__debezium.oldkey", None)],
        }
        for number, (key, value) in enumerate(values)
    ]
    return session.createDataFrame(pa.Table.from_pylist(rows, schema=RAW))


def cut(found: DataFrame) -> dict[str, dict[str, Any]]:
    # As bytes: of a value that is no text not even its payload is.
    rows = found.withColumn("v", F.col("v").cast("binary")).orderBy("offset").toArrow().to_pylist()
    return dict(zip(VALUES, rows, strict=True))


def shapes() -> Iterator[Shape]:
    """One with the records' schemas, and one that has them among others."""
    shape = Shape(Signature(KEY_SCHEMA, SCHEMA), {}, {})
    yield shape
    yield replace(shape, signature=Signature(KEY_SCHEMA, '{"type":"struct"}'), also=(shape.signature,))


def test_the_quick_way_cuts_as_the_thorough_one(session: SparkSession) -> None:
    raw = kafka(session, ((KEY, value) for value in VALUES.values()))
    thorough = cut(sliced(raw))
    for shape in shapes():
        quick = cut(alike(raw, shape))
        assert {name for name, row in quick.items() if not row["known"]} == NOT_ALIKE
        for name, row in quick.items():
            if row.pop("known"):
                assert row == {column: thorough[name][column] for column in row}, name
    usual = thorough["usual"]
    assert (usual["k"], usual["v"]) == ('{"id":1}', '{"op":"c","after":{"x":"ä"}}'.encode())
    assert (usual["ks"], usual["vs"]) == (KEY_SCHEMA, SCHEMA)
    assert (usual["old_key"], usual["new_key"]) == ("", "n")


def test_keys_are_cut_alike_too(session: SparkSession) -> None:
    others = [b'{"id":1}', KEY.replace(b"int32", b"int64"), b'{"schema":' + KEY_SCHEMA.encode()]
    keys = [KEY, None, b"no JSON", b"null", NOTHING, b"\xff", *others]
    raw = kafka(session, ((key, VALUES["usual"]) for key in keys))
    thorough = {row["offset"]: row for row in sliced(raw).collect()}
    for key_schema in (KEY_SCHEMA, None):
        known = alike(raw, Shape(Signature(key_schema, SCHEMA), {}, {})).where("known").collect()
        left_out = {key for key in keys if key not in [keys[row["offset"]] for row in known]}
        assert left_out == {*others, *((KEY,) if key_schema is None else ())}
        for row in known:
            assert (row["k"], row["fault"]) == (thorough[row["offset"]]["k"], thorough[row["offset"]]["fault"])


def test_only_null_is_a_tombstone(session: SparkSession) -> None:
    found = cut(sliced(kafka(session, ((KEY, value) for value in VALUES.values()))))
    assert {name for name, row in found.items() if row["v"] is None} == {
        "null",
        "null with blanks",
        "JSON's null",
        "null with a null schema",
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
