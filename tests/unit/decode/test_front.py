"""Framing of JSON keys and values by other writers, beside Connect's schema."""

from __future__ import annotations

import tracemalloc
import zlib
from typing import Any

import pytest
from tests.support.decoding import SQLSERVER_SOURCE, compact, made_records, rejections, struct_schema, with_schema
from tests.support.learning import learn

from distributary.decode.decoder import Decoded, Decoder
from distributary.decode.options import DecodeOptions
from distributary.decode.unwrapped import added_by
from distributary.types.bounds import Bounds

ENVELOPE = {"op": "c", "after": {"id": 1, "v": "a"}, "source": SQLSERVER_SOURCE}
ID_OF_BAD_UTF8 = b"\x00\x00\x01\x86\xff"


def decoded(*pairs: tuple[bytes | None, bytes | None], **more: Any) -> Decoded:
    decoder = Decoder(DecodeOptions("sqlserver", **more))
    raw = made_records(pairs)
    return decoder.decode(raw, learn(decoder, raw))


def written(value: object) -> bytes:
    return compact(value).encode()


def test_1_1_json_behind_the_number_of_its_schema_is_read_as_without() -> None:
    """Confluent's JsonSchemaConverter writes a zero byte and four bytes in front, Apicurio's eight."""
    key, value = written({"id": 1}), written(ENVELOPE)
    with_connect = with_schema(struct_schema({"id": {"type": "int64"}}), compact({"id": 1}))
    pairs = [(key, value), (with_connect, value), (key, None), (None, value), (key, b"{"), (key, b"")]
    for begin in (b"\x00\x00\x00\x00\x07", ID_OF_BAD_UTF8, bytes(8) + b"{"):
        framed = [tuple(None if part is None else begin + part for part in pair) for pair in pairs]
        plain, found = decoded(*pairs), decoded(*framed)  # type: ignore[arg-type]
        assert found.events.drop_columns(["size"]).equals(plain.events.drop_columns(["size"]))
        assert rejections(found) == rejections(plain) == {3: "no-key", 4: "not-json", 5: "not-json"}


def glue(data: bytes, *, compressed: bool) -> bytes:
    return (
        (b"\x03\x05" if compressed else b"\x03\x00") + bytes(range(16)) + (zlib.compress(data) if compressed else data)
    )


@pytest.mark.parametrize("compressed", [False, True])
def test_1_1_json_behind_the_header_of_aws_glue_is_read_as_without(compressed: bool) -> None:
    pairs = [(written({"id": number}), written({**ENVELOPE, "after": {"id": number, "v": "a"}})) for number in range(3)]
    framed = [tuple(glue(part, compressed=compressed) for part in pair) for pair in pairs[:2]]
    found = decoded(*framed, pairs[2], (framed[0][0], None))  # type: ignore[arg-type]
    assert found.events["row"].to_pylist()[:3] == [{"id": number, "v": "a"} for number in range(3)]
    assert found.events["key"].to_pylist() == [{"id": number} for number in (0, 1, 2, 0)]


@pytest.mark.thorough
def test_6_3_what_zlib_can_not_inflate_or_inflates_beyond_a_record_is_no_json() -> None:
    key, value = written({"id": 1}), written(ENVELOPE)
    whole = glue(value, compressed=True)
    bomb = glue(b" " * (Bounds().record_bytes + 1) + value, compressed=True)
    faulty = (whole[:-5], whole[:18], whole[:18] + b"no zlib", whole + b"x", whole + whole[18:], bomb)
    found = decoded((key, whole), *((key, data) for data in faulty))
    assert rejections(found) == dict.fromkeys(range(1, 7), "not-json")


def test_1_1_records_with_and_without_such_a_number_may_follow_each_other() -> None:
    found = decoded(
        (written({"id": 1}), b"\x00\x00\x00\x00\x07" + written(ENVELOPE)), (written({"id": 1}), written(ENVELOPE))
    )
    assert found.events["row"].to_pylist() == [{"id": 1, "v": "a"}] * 2


@pytest.mark.parametrize("blank", [b"", b" "])
def test_1_1_keys_and_values_under_payload_alone_are_read(blank: bytes) -> None:
    def under(value: object) -> bytes:
        return b'{"payload":' + blank + written(value) + blank + b"}"

    inner = {**ENVELOPE, "after": {"id": 1, "payload": "x"}}
    found = decoded(
        (under({"id": 1}), under(inner)),
        (written({"id": 1}), written(inner)),
        (under({"id": 1}), under(None)),
        (under({"id": 1}), None),
        (under({"id": 1}), b'{"payload":{},"payload":{}}'),
        (under({"id": 1}), b'{"payload":{"op":"c"}'),
        in_payload_object=True,
    )
    assert found.events["operation"].to_pylist() == ["c", "c", "x", "x"]
    assert found.events["key"].to_pylist() == [{"id": 1}] * 4
    assert found.events["row"].to_pylist()[:2] == [{"id": 1, "payload": "x"}] * 2
    assert rejections(found) == {4: "not-an-envelope", 5: "not-json"}


def test_1_1_what_is_in_front_of_the_json_is_there_once() -> None:
    """What it would inflate to a second time is not counted among the bytes of the batch."""
    key, value = written({"id": 1}), written({"payload": ENVELOPE})
    for front in (b"\x00\x00\x00\x00\x07", glue(b"", compressed=False)):
        assert not rejections(decoded((key, front + value), in_payload_object=True))
        assert rejections(decoded((key, 2 * front + value), in_payload_object=True)) == {0: "not-json"}


def test_1_1_rows_under_payload_alone_are_read() -> None:
    row = {"payload": {"id": 1, "v": "a", "__op": "u", "__commit_lsn": SQLSERVER_SOURCE["commit_lsn"]}}
    found = decoded((written({"id": 1}), written(row)), in_payload_object=True, unwrapped=added_by({}))
    assert found.events["row"].to_pylist() == [{"id": 1, "v": "a"}]
    assert found.events["operation"].to_pylist() == ["u"]


@pytest.mark.thorough
def test_6_3_small_records_that_inflate_to_much_are_taken_in_parts() -> None:
    value = glue(b" " * 2**16 + written(ENVELOPE), compressed=True)
    assert len(value) < 500
    raw = made_records([(written({"id": 1}), value)] * 500)  # 33 MB together
    decoder = Decoder(DecodeOptions("sqlserver", bounds=Bounds(record_bytes=2**18)))
    schema = learn(decoder, raw.slice(0, 1))
    tracemalloc.start()
    try:
        found = decoder.decode(raw, schema)
        assert tracemalloc.get_traced_memory()[1] < 8_000_000
    finally:
        tracemalloc.stop()
    assert found.events["row"].to_pylist() == [{"id": 1, "v": "a"}] * 500


def test_6_3_the_limit_of_a_record_holds_for_what_is_compressed() -> None:
    key, value = written({"id": 1}), glue(b" " * 10_000 + written(ENVELOPE), compressed=True)
    assert rejections(decoded((key, value), (key, value), bounds=Bounds(record_bytes=5_000))) == {
        0: "not-json",
        1: "not-json",
    }
    inflated = 10_000 + len(written(ENVELOPE))
    assert not rejections(decoded((key, value), (key, value), bounds=Bounds(record_bytes=inflated)))
    assert rejections(decoded((key, value), bounds=Bounds(record_bytes=inflated - 1)))
