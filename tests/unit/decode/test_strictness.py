"""Records with one fault each, between good ones: each is taken for what it says or rejected with its reason, and the
others are not touched."""

from __future__ import annotations

import json
from collections.abc import Mapping
from decimal import Decimal
from typing import Any

import pytest
from tests.support.decoding import compact, made_records, rejections, struct_rows, struct_schema, with_schema
from tests.support.learning import learn

from distributary.decode.decoder import Decoder
from distributary.decode.options import DecodeOptions, TypeSources

COLUMNS: dict[str, dict[str, Any]] = {
    "id": {"type": "int64"},
    "n": {"type": "int64"},
    "i32": {"type": "int32"},
    "text": {"type": "string"},
    "price": {
        "type": "bytes",
        "name": "org.apache.kafka.connect.data.Decimal",
        "parameters": {"scale": "2", "connect.decimal.precision": "10"},
    },
    "rate": {"type": "double"},
    "flag": {"type": "boolean"},
}
NAMED = {
    "id": "bigint",
    "n": "bigint",
    "i32": "int",
    "text": "string",
    "price": "decimal(10,2)",
    "rate": "double",
    "flag": "boolean",
}
ROW = {"id": "17", "n": "5", "i32": "7", "text": '"abc"', "price": '"BOI="', "rate": "1.5", "flag": "true"}
VALUES = {"id": 17, "n": 5, "i32": 7, "text": "abc", "price": Decimal("12.50"), "rate": 1.5, "flag": True}
SOURCE = {
    "connector": "sqlserver",
    "ts_ms": 1_700_000_000_000,
    "snapshot": "false",
    "commit_lsn": "00000027:00000758:0003",
    "change_lsn": "00000027:00000758:0001",
    "event_serial_no": 2,
}
ENVELOPE_SCHEMA = {
    "type": "struct",
    "fields": [
        struct_schema(COLUMNS, field="before"),
        struct_schema(COLUMNS, field="after"),
        struct_schema({name: {"type": "string"} for name in SOURCE}, field="source"),
        {"type": "string", "field": "op"},
    ],
}
KEY_SCHEMA = struct_schema({"id": {"type": "int64"}})


def row(**changed: str | None) -> str:
    """The row's JSON with some values written otherwise; None leaves a field out."""
    return "{" + ",".join(f'"{name}":{text}' for name, text in {**ROW, **changed}.items() if text is not None) + "}"


def envelope(after: str, op: str = '"u"') -> str:
    return f'{{"before":null,"after":{after},"source":{compact(SOURCE)},"op":{op}}}'


GOOD = envelope(row())


def nested(depth: int) -> str:
    return envelope(row(extra="[" * depth + "]" * depth))


class Took(dict[str, Any]):
    """What a record that is taken has other than VALUES."""


# By each fault: the payload, and the reason, or what is taken; where the two forms differ, first with a schema.
CASES: dict[str, tuple[str | bytes, Any]] = {
    "as usual": (GOOD, Took()),
    "text behind": (GOOD + " and more", "text-after-json"),
    "an object behind": (GOOD + "\n" + GOOD, "text-after-json"),
    "an object right behind": (GOOD + GOOD, "text-after-json"),
    "a NUL behind": (GOOD + "\x00", "text-after-json"),
    "a comma too many": (GOOD.replace("true}", "true,}"), "not-json"),
    "a byte order mark": ("\ufeff" + GOOD, "not-json"),
    "nothing": ("", "not-json"),
    "an array": (f"[{GOOD}]", "not-json"),
    "single quotes": (envelope(row(text="'abc'")), "not-json"),
    "NaN": (envelope(row(rate="NaN")), "not-json"),
    "Infinity": (envelope(row(rate="Infinity")), "not-json"),
    "-Infinity": (envelope(row(rate="-Infinity")), "not-json"),
    "NaN as text": (envelope(row(rate='"NaN"')), Took(rate="nan")),
    "Infinity as text": (envelope(row(rate='"Infinity"')), Took(rate=float("inf"))),
    "a double beyond all": (envelope(row(rate="1e400")), "bad-value"),
    "1.0 for a whole number": (envelope(row(n="1.0")), "bad-value"),
    "1.5 for a whole number": (envelope(row(n="1.5")), "bad-value"),
    "1e2 for a whole number": (envelope(row(n="1e2")), "bad-value"),
    "a whole number as text": (envelope(row(n='"5"')), Took()),
    "true for a whole number": (envelope(row(n="true")), "bad-value"),
    "2 to the 63": (envelope(row(n=str(2**63))), "bad-value"),
    "-2 to the 63": (envelope(row(n=str(-(2**63)))), Took(n=-(2**63))),
    "2 to the 64": (envelope(row(n=str(2**64))), "bad-value"),
    "31 digits": (envelope(row(n="1" * 31)), "bad-value"),
    "100,000 digits": (envelope(row(n="1" * 100_000)), "bad-value"),
    "100,000 digits of a double": (envelope(row(rate="1" * 100_000)), "bad-value"),
    "2 to the 31 in 32 bits": (envelope(row(i32=str(2**31))), "bad-value"),
    "007": (envelope(row(n="007")), "not-json"),
    "-0": (envelope(row(n="-0")), Took(n=0)),
    "+5": (envelope(row(n="+5")), "not-json"),
    "a double as text": (envelope(row(rate='"1.5"')), Took()),
    "a double without a point": (envelope(row(rate="3")), Took(rate=3.0)),
    "a double of 16 digits": (envelope(row(rate="9007199254740993")), Took(rate=9007199254740992.0)),
    ".5": (envelope(row(rate=".5")), "not-json"),
    "5.": (envelope(row(rate="5.")), "not-json"),
    "a boolean as text": (envelope(row(flag='"true"')), Took()),
    "1 for a boolean": (envelope(row(flag="1")), "bad-value"),
    "a number for a text": (envelope(row(text="5.10")), Took(text="5.10")),
    "an object for a text": (envelope(row(text='{"a": 1}')), Took(text='{"a":1}')),
    "bytes that are no UTF-8": (envelope(row(text='"a?c"')).encode().replace(b"a?c", b"a\xffc"), "not-utf8"),
    "UTF-8 that is too long": (envelope(row(text='"a?c"')).encode().replace(b"a?c", b"a\xc0\xafc"), "not-utf8"),
    "half a character in UTF-8": (envelope(row(text='"a?c"')).encode().replace(b"a?c", b"a\xed\xa0\x80c"), "not-utf8"),
    "half a character": (envelope(row(text='"\\ud800"')), "ambiguous-json"),
    "the other half": (envelope(row(text='"\\uDE00 x"')), "ambiguous-json"),
    "half a character in an unknown field": (envelope(row(extra='"\\ud800"')), ("ambiguous-json", "ambiguous-json")),
    "a whole character": (envelope(row(text='"\\ud83d\\ude00"')), Took(text="😀")),
    "a NUL in a text": (envelope(row(text='"a\\u0000b"')), Took(text="a\x00b")),
    "a tab in a text": (envelope(row(text='"a\tb"')), "not-json"),
    "a line break in a text": (envelope(row(text='"a\nb"')), "not-json"),
    "an unknown escape": (envelope(row(text='"a\\xb"')), "not-json"),
    "a field twice": (envelope(row()).replace('"n":5', '"n":4,"n":5'), (Took(), "ambiguous-json")),
    "a field twice, with blanks": (envelope(row()).replace('"n":5', '"n" :4,"n"\t:5'), (Took(), "ambiguous-json")),
    "an unknown field twice": (envelope(row(extra="1")).replace("true", 'true,"extra":2'), (Took(), "ambiguous-json")),
    "after twice": (GOOD[:-1] + ',"after":null}', "no-row"),
    "an unknown field": (envelope(row(extra="1")), Took()),
    "a field that is left out": (envelope(row(n=None)), Took(n=None)),
    "null": (envelope(row(n="null")), Took(n=None)),
    "no Base64": (envelope(row(price='"B*I="')), "bad-value"),
    "Base64 cut short": (envelope(row(price='"BOI"')), "bad-value"),
    "Base64 with bits behind its end": (envelope(row(price='"BOJ="')), Took()),
    "Base64 with a line break": (envelope(row(price='"BO\\nI="')), "bad-value"),
    "Base64 twice": (envelope(row(price='"AQ==AQ=="')), "bad-value"),
    "no bytes": (envelope(row(price='""')), "bad-value"),
    "a decimal as a number": (envelope(row(price="12.50")), Took()),
    "a decimal with an exponent": (envelope(row(price="1.25e1")), Took()),
    "a decimal that has to be rounded": (envelope(row(price="12.505")), "bad-value"),
    "a decimal of ten digits": (envelope(row(price='"AlQL4/8="')), Took(price=Decimal("99999999.99"))),
    "a decimal beyond its precision": (envelope(row(price='"AlQL5AA="')), "bad-value"),
    "an exponent of two thousand million": (envelope(row(price="1e2000000000")), "bad-value"),
    "after is a list": (envelope("[1]"), "wrong-json-type"),
    "after is a text": (envelope('"x"'), "wrong-json-type"),
    "source is a text": (GOOD.replace(compact(SOURCE), '"x"'), "wrong-json-type"),
    "no operation": (GOOD.replace('"op":"u"', '"o":"u"'), "unknown-operation"),
    "an unknown operation": (envelope(row(), '"q"'), "unknown-operation"),
    "no envelope": ("{}", "not-an-envelope"),
    "no row": (envelope("null"), "no-row"),
    "cut short": (GOOD[:-3], "not-json"),
    "a comment": ("/*x*/" + GOOD, "not-json"),
    "300 arrays in one another": (nested(300), (Took(), "beyond-limits")),
    "100,000 arrays in one another": (nested(100_000), "beyond-limits"),
    "20 MB of text": (envelope(row(text=f'"{"x" * 20_000_001}"')), Took(text="x" * 20_000_001)),
}


def options(**more: Any) -> DecodeOptions:
    return DecodeOptions("sqlserver", types=TypeSources(configured=NAMED), **more)


@pytest.mark.parametrize("has_schema", [True, False], ids=["with schema", "without"])
@pytest.mark.parametrize("name", CASES)
def test_each_fault_is_one_records_own(name: str, has_schema: bool) -> None:
    payload, wanted = CASES[name]
    if isinstance(wanted, tuple):
        wanted = wanted[0 if has_schema else 1]
    data = payload if isinstance(payload, bytes) else payload.encode()
    key = b'{"id":17}'
    if has_schema:
        key = with_schema(KEY_SCHEMA, key.decode())
        begin, end = with_schema(ENVELOPE_SCHEMA, "\x01").split(b"\x01")
        good, data = begin + GOOD.encode() + end, begin + data + end
    else:
        good = GOOD.encode()
    decoder = Decoder(DecodeOptions("sqlserver", types=TypeSources(configured={} if has_schema else NAMED)))
    schema = learn(decoder, made_records([(key, good)]))
    decoded = decoder.decode(made_records([(key, good), (key, data), (key, good)]), schema)
    rows = struct_rows(decoded.events["row"])
    if isinstance(wanted, str):
        assert rejections(decoded) == {1: wanted}
        assert rows == [VALUES, VALUES]
    else:
        assert rejections(decoded) == {}
        assert rows[0] == rows[2] == VALUES
        assert shown(rows[1]) == shown({**VALUES, **wanted})


def shown(values: Mapping[str, Any] | None) -> dict[str, Any]:
    """NaN is no number that equals itself."""
    return {name: "nan" if value != value else value for name, value in (values or {}).items()}


def test_a_key_has_its_own_faults() -> None:
    faults = {
        '{"id":17}': None,
        ' {"id": "17"}\n': None,
        '{"id":17,"id":18}': "ambiguous-json",
        '{"id":17}x': "text-after-json",
        '{"id":1.5}': "bad-key",
        '{"id":null}': "bad-key",
        "{}": "bad-key",
        '"17"': "bad-key",
        "[17]": "bad-key",
        '{"id":99999999999999999999}': "bad-key",
        "null": "no-key",
        '{"id":"\\ud800"}': "ambiguous-json",
    }
    records: list[tuple[bytes | None, bytes]] = [
        (with_schema(KEY_SCHEMA, key), with_schema(ENVELOPE_SCHEMA, GOOD)) for key in faults
    ]
    records += [(None, with_schema(ENVELOPE_SCHEMA, GOOD)), (b"\xff", with_schema(ENVELOPE_SCHEMA, GOOD))]
    decoder = Decoder(options())
    schema = learn(decoder, made_records(records[:1]))
    found = rejections(decoder.decode(made_records(records), schema))
    expected = {place: reason for place, reason in enumerate(faults.values()) if reason}
    assert found == {**expected, len(faults): "no-key", len(faults) + 1: "not-utf8"}


def test_what_is_written_with_blanks_or_the_other_way_round_is_the_same() -> None:
    document = {"schema": ENVELOPE_SCHEMA, "payload": json.loads(GOOD)}
    turned = dict(reversed(document.items()))
    values = [with_schema(ENVELOPE_SCHEMA, GOOD), json.dumps(document).encode(), json.dumps(turned, indent=1).encode()]
    twice = compact(turned)[:-1].encode() + b',"payload":null}'
    records = [(with_schema(KEY_SCHEMA, '{"id":17}'), value) for value in [*values, twice]]
    decoder = Decoder(DecodeOptions("sqlserver"))
    decoded = decoder.decode(made_records(records), learn(decoder, made_records(records)))
    assert struct_rows(decoded.events["row"]) == [VALUES] * 3
    assert rejections(decoded) == {3: "ambiguous-json"}
