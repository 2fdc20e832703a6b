"""Values that the connector stores elsewhere: the record goes to quarantine for every form of reference."""

from __future__ import annotations

import base64
from typing import Any

import pytest
from tests.support.decoding import compact, decode_all, plain_change, rejections, struct_schema
from tests.support.recorded import Record

from distributary.decode.decoder import Decoded
from distributary.decode.masks import Masks
from distributary.decode.options import DecodeOptions, TypeSources

REFERENCE = "__debezium:s3:ref:v1:bucket|connector=sqlserver/name=s%2F1/doc/after"
BYTES = REFERENCE.encode()
CLAIM = '{"__debezium_claim_check":true,"version":1,"storage":"s3","uri":"s3://b/k","column":"doc","size_bytes":9}'
BASE64, URL_SAFE = base64.b64encode(BYTES + b"??>").decode(), base64.urlsafe_b64encode(BYTES + b"??>").decode()
FORMS = [
    *(REFERENCE, BASE64, URL_SAFE, BYTES.hex(), BYTES.hex().upper(), "__debezium:gcs:ref:v2:b|k"),
    *(CLAIM, base64.b64encode(CLAIM.encode()).decode(), CLAIM.encode().hex()),
]
GENUINE = ["__debezium", "__debezium:s3", "__debezium_unavailable_value", f" {REFERENCE}", BASE64[:14], "5f5f6465", ""]
GENUINE += ['{"__debezium_claim_check":false}', '{"a":1,"__debezium_claim_check":true}', CLAIM[:12]]


def decoded(*values: Any, kind: str | None = None, **more: Any) -> Decoded:
    records = [plain_change(index, {"id": index, "doc": value}) for index, value in enumerate(values)]
    types = TypeSources({} if kind is None else {"doc": kind})
    return decode_all(records, DecodeOptions("sqlserver", types=types, **more))[0]


def messages(found: Decoded) -> list[str]:
    return list(found.rejected["message"].to_pylist())


@pytest.mark.parametrize("form", FORMS)
def test_6_3_a_reference_in_a_text_is_no_value(form: str) -> None:
    found = decoded("a", form, None)
    assert rejections(found) == {1: "value-by-reference"}
    assert messages(found)[0].endswith(": doc")
    assert found.events["row"].to_pylist() == [{"id": 0, "doc": "a"}, {"id": 2, "doc": None}]


def test_6_3_texts_that_only_look_alike_are_values() -> None:
    found = decoded(*GENUINE)
    assert rejections(found) == {}
    assert [row["doc"] for row in found.events["row"].to_pylist()] == GENUINE


@pytest.mark.parametrize("kind", ["binary", "variant"])
def test_6_3_a_reference_in_place_of_bytes_or_of_json_is_named_as_one(kind: str) -> None:
    value = "AQ==" if kind == "binary" else '{"a":1}'
    forms = [BASE64, base64.b64encode(CLAIM.encode()).decode()] if kind == "binary" else [REFERENCE, CLAIM]
    assert rejections(decoded(value, *forms, kind=kind)) == dict.fromkeys((1, 2), "value-by-reference")


def test_6_3_a_masked_or_renamed_column_is_reported_as_well_and_an_excluded_one_does_not_count() -> None:
    for how in ("hash", "redact"):
        found = decoded("a", REFERENCE, masks=Masks({"doc": how}, "salt"))
        assert rejections(found) == {1: "value-by-reference"}
    assert messages(decoded(REFERENCE, renames={"doc": "text"}))[0].endswith(": text (source: doc)")
    assert rejections(decoded(REFERENCE, exclude=frozenset(("doc",)))) == {}


def test_6_3_the_row_before_counts_where_the_change_keeps_it() -> None:
    gone = plain_change(1, None, op="d", before={"id": 1, "doc": REFERENCE})
    update = plain_change(2, {"id": 2, "doc": "a"}, op="u", before={"id": 2, "doc": REFERENCE})
    first = plain_change(0, {"id": 0, "doc": "a"})
    for before, rejected in ((True, {1: "value-by-reference"}), (False, {})):
        found, _ = decode_all([first, gone, update], DecodeOptions("sqlserver", before=before))
        assert rejections(found) == rejected


def test_6_3_with_a_schema_bytes_are_read_as_bytes() -> None:
    row = {"id": {"type": "int32"}, "doc": {"type": "bytes"}, "n": {"type": "int64"}}
    schema = {
        "type": "struct",
        "fields": [
            struct_schema(row, field="after"),
            struct_schema({}, field="source"),
            {"type": "string", "field": "op"},
        ],
    }
    records = []
    for index, value in enumerate((base64.b64encode(b"__debezium").decode(), BASE64)):
        plain = plain_change(index, {"id": index, "doc": value, "n": 1})
        data = f'{{"schema":{compact(schema)},"payload":{(plain.value or b"").decode()}}}'
        records.append(Record("t", 0, index, 0, plain.key, data.encode(), ()))
    found, _ = decode_all(records, DecodeOptions("sqlserver"))
    assert rejections(found) == {1: "value-by-reference"}
    assert found.events["row"].to_pylist() == [{"id": 0, "doc": b"__debezium", "n": 1}]
