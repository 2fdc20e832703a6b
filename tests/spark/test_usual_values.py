"""What from_json makes of values by itself is what careful reading makes of them, or it is refused and read anew."""

from __future__ import annotations

import base64
import itertools
import json
import random
from collections.abc import Iterable

import pyarrow as pa
import pytest
from pyspark.sql import Column, SparkSession
from pyspark.sql import functions as F

from distributary.decode import strict
from distributary.decode.type_names import codec_named
from distributary.decode.types import SEMANTIC, Codec

NAMES = (
    *("tinyint", "smallint", "int", "bigint", "double", "boolean"),
    *("decimal(6,2)", "decimal(18,0)", "decimal(38,10)", "org.apache.kafka.connect.data.Decimal(50,3)"),
    *sorted(name for name, codec in SEMANTIC.items() if codec.usual),
)


def numbers() -> Iterable[str]:
    edges = (7, 8, 15, 16, 31, 32, 53, 63, 64, 100)
    for sign, bits, more in itertools.product((1, -1), edges, (-1, 0, 1)):
        yield str(sign * 2**bits + more)
    # Days and times that PostgreSQL's infinities are written as.
    yield from ("-2147472692", "-622191234", "9223372036825200", "9223372036825200000", "-9223372036832400000")
    yield from ("0", "-0", "1.0", "1.5", "-0.0", "1e3", "1E400", "1e-400", "1.00000000000000000000001", "0.1")
    yield from ("01", "+1", "1.", ".5", "NaN", "Infinity", "-Infinity", "0x1", "1_0", "9" * 400)


def texts() -> Iterable[str]:
    chance = random.Random(7)
    for length in range(40):
        yield base64.b64encode(chance.randbytes(length)).decode()
    yield from (base64.b64encode(bytes([first])).decode() for first in (0, 1, 0x7F, 0x80, 0xFF))
    yield from ("", " ", "AQ", "AQ=", "AQ===", "A Q==", " AQ==", "AQ==\n", "AQ\n==", "AR==", "-_-_", "AQ==AQ==", "é")
    yield from ("1", "1.5", "-1", " 1", "1 ", "NaN", "Infinity", "true", "TRUE", "null", "2024-01-01", "1e3")
    yield from ("__debezium_unavailable_value", base64.b64encode(b"__debezium_unavailable_value").decode())


OTHERS = ("null", "true", "false", "True", "{}", '{"a":1}', "[]", "[1]", '["AQ=="]', "", "1 2")
VALUES = [*numbers(), *(json.dumps(text) for text in texts()), r'"\u0041Q=="', r'"\/w=="', *OTHERS]


def as_read(codec: Codec, label: str) -> list[Column]:
    frame = f"{label}_frame"
    value = f"get({frame}.values, 0).after.v"
    seen = f"struct(CAST({codec.sql(value)} AS STRING) AS value, {codec.lost(value)} AS lost)"
    refused = f"{strict.broken(frame)} OR {codec.doubt(value, 'v', 'v') or 'false'}"
    return [F.expr(seen).alias(label), F.expr(refused).alias(f"{label}_refused")]


@pytest.mark.parametrize("name", NAMES)
def test_what_is_not_refused_is_the_same(session: SparkSession, name: str) -> None:
    codec = codec_named(name, {})
    assert codec.usual is not None
    assert codec.usual.target == codec.target
    given = [f'{{"op":"c","after":{{"v":{value}}}}}' for value in VALUES]
    of = {"careful": codec, "usual": codec.usual}
    records = session.createDataFrame(pa.table({"v": given}))
    framed = records.select(
        "v", *(strict.framed("v", f"op STRING, after STRUCT<v: {c.wire}>").alias(f"{n}_frame") for n, c in of.items())
    )
    rows = framed.select(*itertools.chain.from_iterable(as_read(c, n) for n, c in of.items())).collect()
    for value, row in zip(VALUES, rows, strict=True):
        assert row.usual_refused or not row.careful_refused, value
        assert row.usual_refused or row.usual == row.careful, value
    read = [json.loads(value) for value, row in zip(VALUES, rows, strict=True) if not row.usual_refused]
    assert None in read
    assert len(read) > 2, "what is refused is all that there is"
