"""What the quick reader makes of a JSON value is what careful reading makes of it, or it refuses the value.

msgspec reads most values by their types alone; what it refuses is read again with care, field by field.
"""

from __future__ import annotations

import base64
import itertools
import json
import random
from collections.abc import Iterable

import msgspec
import pytest
from tests.support.changes import DAY, INSTANT, VARIABLE_SCALE, Row, decimal
from tests.support.comparable import identical
from tests.support.decoding import read_json, type_converted, type_named, values_of

from distributary.types.base import BadValue, ColumnType, WrongKind
from distributary.types.from_schema import SEMANTIC
from distributary.types.nested import optional

NAMES = (
    *("tinyint", "smallint", "int", "bigint", "float", "double", "boolean", "string", "binary", "date", "timestamp"),
    *("timestamp_ntz", "variant", "timestamp_ms", "timestamp_us", "timestamp_ns", "time_ms", "time_us", "time_ns"),
    *("decimal(6,2)", "decimal(18,0)", "decimal(38,10)", "org.apache.kafka.connect.data.Decimal(50,3)"),
    *("array<int>", "array<string>", "map<string,bigint>", "io.debezium.data.VariableScaleDecimal"),
    *sorted(SEMANTIC),
)
PAIRS = [
    *itertools.product(
        (decimal(6, 2), decimal(38, 10), decimal(50, 3), VARIABLE_SCALE),
        ("decimal(20,4)", "bigint", "double", "string"),
    ),
    *((decimal(18, 0), wanted) for wanted in ("decimal(6,0)", "int")),
    *((INSTANT, wanted) for wanted in ("date", "timestamp")),
    *((DAY, wanted) for wanted in ("timestamp_ntz", "timestamp")),
]


def numbers() -> Iterable[str]:
    edges = (7, 8, 15, 16, 31, 32, 53, 63, 64, 100)
    for sign, bits, more in itertools.product((1, -1), edges, (-1, 0, 1)):
        yield str(sign * 2**bits + more)
    # Days and times that PostgreSQL's infinities are written as.
    yield from ("-2147472692", "-622191234", "9223372036825200", "9223372036825200000", "-9223372036832400000")
    yield from ("0", "-0", "1.0", "1.5", "-0.0", "1e3", "1E400", "1e-400", "1.00000000000000000000001", "0.1")
    yield "9" * 400


def texts() -> Iterable[str]:
    chance = random.Random(7)
    for length in range(40):
        yield base64.b64encode(chance.randbytes(length)).decode()
    yield from (base64.b64encode(bytes([first])).decode() for first in (0, 1, 0x7F, 0x80, 0xFF))
    yield from ("", " ", "AQ", "AQ=", "AQ===", "A Q==", " AQ==", "AQ==\n", "AQ\n==", "AR==", "-_-_", "AQ==AQ==", "é")
    yield from ("1", "1.5", "-1", " 1", "1 ", "NaN", "Infinity", "true", "TRUE", "null", "2024-01-01", "1e3", "1_0")
    yield from ("__debezium_unavailable_value", base64.b64encode(b"__debezium_unavailable_value").decode())
    yield from ("2024-02-29T12:00:00Z", "2024-02-29 12:00:00.123456789+05:30", "12:34:56Z", "\u0663", "0x1", "+1")


OTHERS = (
    "null",
    "true",
    "false",
    "{}",
    '{"a":1}',
    "[]",
    "[1]",
    '["AQ=="]',
    *(f'{{"scale":{scale},"value":"BQ=="}}' for scale in (0, 1)),
)
VALUES = [*numbers(), *(json.dumps(text) for text in texts()), r'"\u0041Q=="', r'"\/w=="', *OTHERS]


def assert_that_both_ways_agree(kind: ColumnType) -> None:
    quick_reader = msgspec.json.Decoder(optional(kind.wire))
    taken = 0
    for text in VALUES:
        try:
            wire = quick_reader.decode(text)
        except msgspec.DecodeError:
            continue
        [quick] = values_of(kind, [wire])
        value = read_json(text)
        try:
            restated = None if value is None else kind.restate(value)
        except (BadValue, WrongKind):
            assert quick == "bad", text
            continue
        [careful] = values_of(kind, [restated])
        is_zero = quick == careful == 0  # of `-0` msgspec makes a zero without a sign
        assert is_zero or identical(quick, careful), (text, quick, careful)
        taken += quick != "bad"
    assert taken > 1, "what is refused is all that there is"


def instants() -> Iterable[str]:
    """ISO texts with a zone, and such ones with a fault."""
    chance = random.Random(3)
    for zone in ("Z", "+05:30", "-18:01", "+23:59", "-24:00", "+20", "+0560", "-1808", " +02:00", "UTC"):
        for begin in ("2024-02-29T12:34:56.123456", "1969-12-31 23:59:59.9", "0001-01-01T00:00", "2024-02-29T12"):
            text = begin + zone
            yield text
            for _ in range(20):
                place = chance.randrange(len(text))
                yield text[:place] + chance.choice("0129:-+TZ. ") + text[place + chance.choice((0, 1)) :]


def test_an_instant_is_the_same_whatever_stands_beside_it() -> None:
    """Arrow reads whole columns; where it refuses a text, the column is read text by text."""
    for name in ("timestamp", "io.debezium.time.IsoTimestamp"):
        kind = type_named(name)
        for text in instants():
            [alone], [beside, _] = values_of(kind, [text]), values_of(kind, [text, "no instant"])
            assert alone == beside, text


@pytest.mark.parametrize("name", NAMES)
def test_a_value_is_the_same_both_ways(name: str) -> None:
    assert_that_both_ways_agree(type_named(name))


@pytest.mark.parametrize(("sent", "wanted"), PAIRS, ids=str)
def test_a_converted_value_is_the_same_both_ways(sent: Row, wanted: str) -> None:
    assert_that_both_ways_agree(type_converted(sent, wanted))
