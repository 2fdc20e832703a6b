"""Records with one fault each, between good ones: each is accepted with its values or rejected with its reason, and the
others are not touched."""

from __future__ import annotations

import json
from collections.abc import Mapping
from decimal import Decimal
from typing import Any

import pytest
from tests.support.decoding import SQLSERVER_SOURCE, compact, made_records, rejections, struct_rows, with_schema
from tests.support.learning import learn
from tests.support.sample_change import (
    CHANGE,
    ENVELOPE_SCHEMA,
    KEY_SCHEMA,
    TYPES,
    VALUES,
    change_json,
    envelope_json,
    row_json,
)

from distributary.decode.decoder import Decoder
from distributary.decode.options import DecodeOptions, TypeSources


def nested(depth: int) -> str:
    return change_json(extra="[" * depth + "]" * depth)


class Took(dict[str, Any]):
    """What a record that is taken has other than VALUES."""


# By each fault: the payload, and the reason, or what is taken; where the two forms differ, first with a schema.
CASES: dict[str, tuple[str | bytes, Any]] = {
    "as usual": (CHANGE, Took()),
    "text behind": (CHANGE + " and more", "text-after-json"),
    "an object behind": (CHANGE + "\n" + CHANGE, "text-after-json"),
    "an object right behind": (CHANGE + CHANGE, "text-after-json"),
    "a NUL behind": (CHANGE + "\x00", "text-after-json"),
    "a comma too many": (CHANGE.replace("true}", "true,}"), "not-json"),
    "a byte order mark": ("\ufeff" + CHANGE, "not-json"),
    "nothing": ("", "not-json"),
    "an array": (f"[{CHANGE}]", "not-json"),
    "single quotes": (change_json(text="'abc'"), "not-json"),
    "NaN": (change_json(rate="NaN"), "not-json"),
    "Infinity": (change_json(rate="Infinity"), "not-json"),
    "-Infinity": (change_json(rate="-Infinity"), "not-json"),
    "NaN as text": (change_json(rate='"NaN"'), Took(rate="nan")),
    "Infinity as text": (change_json(rate='"Infinity"'), Took(rate=float("inf"))),
    "a double beyond all": (change_json(rate="1e400"), "bad-value"),
    "1.0 for a whole number": (change_json(n="1.0"), "bad-value"),
    "1.5 for a whole number": (change_json(n="1.5"), "bad-value"),
    "1e2 for a whole number": (change_json(n="1e2"), "bad-value"),
    "a whole number as text": (change_json(n='"5"'), Took()),
    "true for a whole number": (change_json(n="true"), "bad-value"),
    "2 to the 63": (change_json(n=str(2**63)), "bad-value"),
    "-2 to the 63": (change_json(n=str(-(2**63))), Took(n=-(2**63))),
    "2 to the 64": (change_json(n=str(2**64)), "bad-value"),
    "31 digits": (change_json(n="1" * 31), "bad-value"),
    "100,000 digits": (change_json(n="1" * 100_000), "bad-value"),
    "100,000 digits of a double": (change_json(rate="1" * 100_000), "bad-value"),
    "2 to the 31 in 32 bits": (change_json(i32=str(2**31)), "bad-value"),
    "007": (change_json(n="007"), "not-json"),
    "-0": (change_json(n="-0"), Took(n=0)),
    "+5": (change_json(n="+5"), "not-json"),
    "a double as text": (change_json(rate='"1.5"'), Took()),
    "a double without a point": (change_json(rate="3"), Took(rate=3.0)),
    "a double of 16 digits": (change_json(rate="9007199254740993"), Took(rate=9007199254740992.0)),
    ".5": (change_json(rate=".5"), "not-json"),
    "5.": (change_json(rate="5."), "not-json"),
    "a boolean as text": (change_json(flag='"true"'), Took()),
    "1 for a boolean": (change_json(flag="1"), "bad-value"),
    "a number for a text": (change_json(text="5.10"), Took(text="5.10")),
    "an object for a text": (change_json(text='{"a": 1}'), Took(text='{"a":1}')),
    "bytes that are no UTF-8": (change_json(text='"a?c"').encode().replace(b"a?c", b"a\xffc"), "not-utf8"),
    "UTF-8 that is too long": (change_json(text='"a?c"').encode().replace(b"a?c", b"a\xc0\xafc"), "not-utf8"),
    "half a character in UTF-8": (change_json(text='"a?c"').encode().replace(b"a?c", b"a\xed\xa0\x80c"), "not-utf8"),
    "half a character": (change_json(text='"\\ud800"'), "ambiguous-json"),
    "the other half": (change_json(text='"\\uDE00 x"'), "ambiguous-json"),
    "half a character in an unknown field": (change_json(extra='"\\ud800"'), ("ambiguous-json", "ambiguous-json")),
    "a whole character": (change_json(text='"\\ud83d\\ude00"'), Took(text="😀")),
    "a NUL in a text": (change_json(text='"a\\u0000b"'), Took(text="a\x00b")),
    "a tab in a text": (change_json(text='"a\tb"'), "not-json"),
    "a line break in a text": (change_json(text='"a\nb"'), "not-json"),
    "an unknown escape": (change_json(text='"a\\xb"'), "not-json"),
    "a field twice": (change_json().replace('"n":5', '"n":4,"n":5'), (Took(), "ambiguous-json")),
    "a field twice, with blanks": (change_json().replace('"n":5', '"n" :4,"n"\t:5'), (Took(), "ambiguous-json")),
    "an unknown field twice": (change_json(extra="1").replace("true", 'true,"extra":2'), (Took(), "ambiguous-json")),
    "a field twice in an object for a text": (change_json(text='{"a": 1, "a": 2}'), ("bad-value", "ambiguous-json")),
    "a field twice in an array for a text": (change_json(text='[{"a":1,"a":2}]'), ("bad-value", "ambiguous-json")),
    "a field twice in an unknown field": (change_json(extra='[{"a":1,"a":2}]'), (Took(), "ambiguous-json")),
    "after twice": (CHANGE[:-1] + ',"after":null}', "no-row"),
    "an unknown field": (change_json(extra="1"), Took()),
    "a field that is left out": (change_json(n=None), Took(n=None)),
    "null": (change_json(n="null"), Took(n=None)),
    "no Base64": (change_json(price='"B*I="'), "bad-value"),
    "Base64 cut short": (change_json(price='"BOI"'), "bad-value"),
    "Base64 with bits behind its end": (change_json(price='"BOJ="'), Took()),
    "Base64 with a line break": (change_json(price='"BO\\nI="'), "bad-value"),
    "Base64 twice": (change_json(price='"AQ==AQ=="'), "bad-value"),
    "no bytes": (change_json(price='""'), "bad-value"),
    "a decimal as a number": (change_json(price="12.50"), Took()),
    "a decimal with an exponent": (change_json(price="1.25e1"), Took()),
    "a decimal that has to be rounded": (change_json(price="12.505"), "bad-value"),
    "a decimal of ten digits": (change_json(price='"AlQL4/8="'), Took(price=Decimal("99999999.99"))),
    "a decimal beyond its precision": (change_json(price='"AlQL5AA="'), "bad-value"),
    "an exponent of two thousand million": (change_json(price="1e2000000000"), "bad-value"),
    "after is a list": (envelope_json("[1]"), "wrong-json-type"),
    "after is a text": (envelope_json('"x"'), "wrong-json-type"),
    "source is a text": (CHANGE.replace(compact(SQLSERVER_SOURCE), '"x"'), "wrong-json-type"),
    "no operation": (CHANGE.replace('"op":"u"', '"o":"u"'), "unknown-operation"),
    "an unknown operation": (envelope_json(row_json(), '"q"'), "unknown-operation"),
    "no envelope": ("{}", "not-an-envelope"),
    "no row": (envelope_json("null"), "no-row"),
    "cut short": (CHANGE[:-3], "not-json"),
    "a comment": ("/*x*/" + CHANGE, "not-json"),
    "300 arrays in one another": (nested(300), (Took(), "beyond-limits")),
    "100,000 arrays in one another": (nested(100_000), "beyond-limits"),
    "20 MB of text": (change_json(text=f'"{"x" * 20_000_001}"'), Took(text="x" * 20_000_001)),
}


def options(**more: Any) -> DecodeOptions:
    return DecodeOptions("sqlserver", types=TypeSources(configured=TYPES), **more)


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
        good, data = begin + CHANGE.encode() + end, begin + data + end
    else:
        good = CHANGE.encode()
    decoder = Decoder(DecodeOptions("sqlserver", types=TypeSources(configured={} if has_schema else TYPES)))
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
        (with_schema(KEY_SCHEMA, key), with_schema(ENVELOPE_SCHEMA, CHANGE)) for key in faults
    ]
    records += [(None, with_schema(ENVELOPE_SCHEMA, CHANGE)), (b"\xff", with_schema(ENVELOPE_SCHEMA, CHANGE))]
    decoder = Decoder(options())
    schema = learn(decoder, made_records(records[:1]))
    found = rejections(decoder.decode(made_records(records), schema))
    expected = {index: reason for index, reason in enumerate(faults.values()) if reason}
    assert found == {**expected, len(faults): "no-key", len(faults) + 1: "not-utf8"}


def test_what_is_written_with_blanks_or_the_other_way_round_is_the_same() -> None:
    document = {"schema": ENVELOPE_SCHEMA, "payload": json.loads(CHANGE)}
    turned = dict(reversed(document.items()))
    values = [
        with_schema(ENVELOPE_SCHEMA, CHANGE),
        json.dumps(document).encode(),
        json.dumps(turned, indent=1).encode(),
    ]
    twice = compact(turned)[:-1].encode() + b',"payload":null}'
    records = [(with_schema(KEY_SCHEMA, '{"id":17}'), value) for value in [*values, twice]]
    decoder = Decoder(DecodeOptions("sqlserver"))
    decoded = decoder.decode(made_records(records), learn(decoder, made_records(records)))
    assert struct_rows(decoded.events["row"]) == [VALUES] * 3
    assert rejections(decoded) == {3: "ambiguous-json"}
