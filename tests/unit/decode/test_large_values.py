"""Values that the connector stores elsewhere and the caller has fetched: what stands in the row in place of a
reference."""

from __future__ import annotations

import base64
from typing import Any

import pytest
from tests.support.decoding import compact, plain_change, raw_table, rejections, struct_schema
from tests.support.learning import learn
from tests.support.recorded import Record

from distributary.decode.decoder import Decoded, Decoder
from distributary.decode.large_values import NO_LARGE_VALUES, LargeValues, Unreadable
from distributary.decode.masks import Masks
from distributary.decode.options import DecodeOptions, TypeSources

KEY = "connector=sqlserver/name=s%2F1/doc/after"
PLACE = f"bucket|{KEY}"
REFERENCE = f"__debezium:s3:ref:v1:{PLACE}"
BASE64 = base64.b64encode(REFERENCE.encode()).decode()


def decoded(records: list[Record], values: LargeValues = NO_LARGE_VALUES, **more: Any) -> Decoded:
    raw = raw_table(records)
    decoder = Decoder(DecodeOptions("sqlserver", **more))
    return decoder.decode(raw, learn(decoder, raw), values)


def of_doc(value: str, content: bytes | Unreadable | None, kind: str | None = None, **more: Any) -> Decoded:
    values = NO_LARGE_VALUES if content is None else {PLACE: content}
    types = TypeSources({} if kind is None else {"doc": kind})
    return decoded([plain_change(0, {"id": 1, "doc": value})], values, types=types, **more)


def doc(found: Decoded) -> Any:
    assert rejections(found) == {}
    return found.events["row"].to_pylist()[0]["doc"]


def test_the_caller_learns_which_values_to_fetch_and_gets_them_into_the_rows() -> None:
    first = of_doc(REFERENCE, None)
    assert first.references == (frozenset((PLACE,)),)
    assert rejections(first) == {0: "value-by-reference"}
    second = of_doc(REFERENCE, "a \N{SNOWMAN}".encode())
    assert doc(second) == "a \N{SNOWMAN}"
    assert second.references == ()


@pytest.mark.parametrize(
    ("value", "kind", "content", "expected"),
    [
        (REFERENCE, "string", b"", ""),
        (REFERENCE, "string", REFERENCE.encode(), REFERENCE),
        (BASE64, "binary", b"\xff\x00", b"\xff\x00"),
        (BASE64, None, b"\xff\x00", "/wA="),
        (REFERENCE, "variant", b'{"a":[1]}', '{"a":[1]}'),
    ],
)
def test_the_value_has_the_form_that_the_reference_had(value: str, kind: str, content: bytes, expected: Any) -> None:
    found = doc(of_doc(value, content, kind))
    assert (found == expected) if kind != "variant" else found


def test_with_a_schema_bytes_are_read_as_bytes_and_the_size_counts() -> None:
    row = {"id": {"type": "int32"}, "doc": {"type": "bytes"}}
    fields = [struct_schema(row, field="after"), struct_schema({}, field="source"), {"type": "string", "field": "op"}]
    schema = {"type": "struct", "fields": fields}
    plain = plain_change(0, {"id": 1, "doc": BASE64})
    data = f'{{"schema":{compact(schema)},"payload":{(plain.value or b"").decode()}}}'.encode()
    records = [Record("t", 0, 0, 0, plain.key, data, ())]
    content = b"\x00\xff" * 1_000
    found = decoded(records, {PLACE: content})
    assert doc(found) == content
    assert found.events["size"].to_pylist()[0] == len(plain.value or b"") + len(content)


def test_a_mask_hashes_the_value_and_not_the_reference() -> None:
    masks = Masks({"doc": "hash"}, "salt")
    assert doc(of_doc(REFERENCE, b"a text", masks=masks)) == doc(of_doc("a text", None, masks=masks))


def test_what_can_not_be_read_is_rejected_with_the_column_and_the_cause() -> None:
    for content, result in (
        (Unreadable("its object is gone"), "doc: its object is gone"),
        (b"\xff", "doc: its object is no text in UTF-8"),
    ):
        found = of_doc(REFERENCE, content)
        assert rejections(found) == {0: "large-value-unreadable"}
        assert found.rejected["message"].to_pylist()[0].endswith(result)
        assert found.references == ()


@pytest.mark.parametrize(
    "form",
    [
        "__debezium:s3:ref:v2:bucket|a/b/after",
        "__debezium:gcs:ref:v1:bucket|a/b/after",
        "__debezium:s3:ref:v1:bucket",
        "__debezium:s3:ref:v1:|a/b/after",
        "__debezium:s3:ref:v1:bucket|",
        "__debezium:s3:ref:v1:bucket|a/../../other/after",
        "__debezium:s3:ref:v1:buc/ket|a/after",
        "__debezium:s3:ref:v1:bucket|a//after",
        f"__debezium:s3:ref:v1:bucket|{'a' * 1025}",
        REFERENCE.encode().hex(),
        '{"__debezium_claim_check":true,"version":1}',
    ],
)
def test_what_is_no_reference_of_the_post_processor_is_not_asked_for(form: str) -> None:
    found = of_doc(form, b"content")
    assert rejections(found) == {0: "value-by-reference"}
    assert found.references == ()


def test_only_rows_that_are_kept_are_asked_for() -> None:
    old = f"__debezium:s3:ref:v1:bucket|{KEY[:-5]}before"
    update = plain_change(0, {"id": 1, "doc": "new"}, op="u", before={"id": 1, "doc": old})
    delete = plain_change(1, None, op="d", before={"id": 1, "doc": old})
    assert decoded([update, delete]).references == ()
    found = decoded([update, delete], before=True)
    assert found.references == (frozenset((f"bucket|{KEY[:-5]}before",)),)
    again = decoded([update, delete], {f"bucket|{KEY[:-5]}before": b"old"}, before=True)
    assert rejections(again) == {}
    assert again.events["before"].to_pylist()[1] == {"id": 1, "doc": "old"}
    assert decoded([plain_change(0, {"id": 1, "doc": REFERENCE})], exclude=frozenset(("doc",))).references == ()


def test_several_columns_of_one_record_come_together() -> None:
    other = f"__debezium:s3:ref:v1:bucket|{KEY}/2/after"
    records = [plain_change(0, {"id": 1, "doc": REFERENCE, "more": other}), plain_change(1, {"id": 2, "doc": "x"})]
    assert decoded(records).references == (
        frozenset(
            (
                PLACE,
                f"bucket|{KEY}/2/after",
            )
        ),
    )
    half = decoded(records, {PLACE: b"one"})
    assert rejections(half) == {0: "value-by-reference"}
    assert half.references == (frozenset((f"bucket|{KEY}/2/after",)),)
    found = decoded(records, {PLACE: b"one", f"bucket|{KEY}/2/after": b"two"})
    assert rejections(found) == {}
    assert found.events["row"].to_pylist()[0] == {"id": 1, "doc": "one", "more": "two"}
