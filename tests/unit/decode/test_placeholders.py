"""Which values the placeholder may replace."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest
from tests.support.decoding import decode_all, plain_change, rejections

from distributary.decode.decoder import Decoded
from distributary.decode.masks import Masks
from distributary.decode.options import DEFAULT_PLACEHOLDER, DecodeOptions, TypeSources

SOURCE = {"connector": "postgresql", "sequence": '["1","2"]', "lsn": 2, "txId": 3}
BYTES = base64.b64encode(DEFAULT_PLACEHOLDER.encode()).decode()
FORMS: dict[str, Any] = {
    "text": DEFAULT_PLACEHOLDER,
    "texts": [DEFAULT_PLACEHOLDER],
    "bytes": [BYTES],
    "numbers": list(DEFAULT_PLACEHOLDER.encode()),
    "uuids": ["b68a35a7-17ad-35b3-af2a-ae46edb4545a"],
    "hstore": {DEFAULT_PLACEHOLDER: DEFAULT_PLACEHOLDER},
}


def decoded_values(kind: str, *values: Any, **more: Any) -> Decoded:
    """The values in a column `c` of that type, each a record's."""
    records = [plain_change(index, {"id": 1, "c": value}, source=SOURCE) for index, value in enumerate(values)]
    types = TypeSources(configured={"c": kind, "id": "int"})
    return decode_all(records, DecodeOptions("postgresql", types=types, **more))[0]


@pytest.mark.parametrize(
    ("kind", "form"),
    [
        *((kind, "text") for kind in ("string", "variant", "timestamp", "timestamp_ntz", "date")),
        *((kind, form) for kind in ("string", "variant") for form in FORMS),
        *(("date", form) for form in FORMS),
        *(("array<int>", "numbers"), ("array<bigint>", "numbers"), ("array<variant>", "texts")),
        *(("array<string>", form) for form in ("texts", "bytes", "uuids")),
        *(("map<string,int>", "hstore"), ("map<string,string>", "hstore"), ("array<timestamp_us>", "numbers")),
    ],
)
def test_texts_lists_and_maps_may_be_the_placeholder_whatever_they_are_read_as(kind: str, form: str) -> None:
    decoded = decoded_values(kind, FORMS[form])
    assert rejections(decoded) == {}
    [event] = decoded.events.select(["unavailable", "row"]).to_pylist()
    assert (event["unavailable"], event["row"]["c"]) == (["c"], None)


def test_bytes_are_the_placeholders_own() -> None:
    decoded = decoded_values("binary", BYTES)
    assert decoded.events["unavailable"].to_pylist() == [["c"]]


@pytest.mark.parametrize("kind", ["int", "bigint", "boolean", "timestamp_us", "decimal(10,2)"])
def test_where_a_number_is_usual_no_text_is_the_placeholder(kind: str) -> None:
    assert rejections(decoded_values(kind, DEFAULT_PLACEHOLDER)) == {0: "bad-value"}


@pytest.mark.parametrize("escaped", [True, False])
def test_a_placeholder_of_another_script_is_known_as_connectors_write_json(escaped: bool) -> None:
    text = "nicht verfügbar"
    value = json.dumps([text], ensure_ascii=escaped, separators=(",", ":"))
    record = plain_change(0, {"id": 1, "c": "?"}, source=SOURCE)
    assert record.value is not None
    sent = record.__class__(
        record.topic, 0, 0, 0, record.key, record.value.replace(b'"?"', value.encode()), record.headers
    )
    types = TypeSources(configured={"c": "string", "id": "int"})
    decoded, _ = decode_all([sent], DecodeOptions("postgresql", types=types, placeholder=text))
    assert decoded.events["unavailable"].to_pylist() == [["c"]]


@pytest.mark.parametrize("kind", ["string", "variant"])
@pytest.mark.parametrize("how", ["hash", "redact"])
@pytest.mark.parametrize("form", FORMS)
def test_a_mask_changes_nothing_about_the_placeholder(kind: str, how: str, form: str) -> None:
    decoded = decoded_values(kind, FORMS[form], "other", masks=Masks({"c": how}, "salt"))
    assert decoded.events["unavailable"].to_pylist()[0] == ["c"]
    assert decoded.events["row"].to_pylist()[0]["c"] is None


def test_a_source_that_leaves_no_values_out_has_no_placeholder() -> None:
    records = [plain_change(0, {"id": 1, "c": DEFAULT_PLACEHOLDER})]
    decoded, _ = decode_all(records, DecodeOptions("sqlserver"))
    assert decoded.events["row"].to_pylist() == [{"id": 1, "c": DEFAULT_PLACEHOLDER}]
    assert decoded.events["unavailable"].to_pylist() == [None]
