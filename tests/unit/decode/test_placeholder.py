"""In place of which values the placeholder may come."""

from __future__ import annotations

import pytest

from distributary import sql
from distributary.decode.masks import Masks
from distributary.decode.placeholder import DEFAULT_PLACEHOLDER, is_placeholder
from distributary.decode.type_names import codec_named
from distributary.decode.types import STRING


@pytest.mark.parametrize(
    "kind",
    ["string", "binary", "variant", "timestamp", "date", "array<int>", "array<variant>", "map<string,int>"],
)
def test_texts_lists_and_maps_may_be_the_placeholder_whatever_they_are_read_as(kind: str) -> None:
    assert "__debezium_unavailable_value" in (is_placeholder("v", codec_named(kind, {}), DEFAULT_PLACEHOLDER) or "")


@pytest.mark.parametrize("kind", ["int", "bigint", "double", "boolean", "timestamp_us", "decimal(10,2)"])
def test_where_a_number_is_usual_no_text_is_the_placeholder(kind: str) -> None:
    codec = codec_named(kind, {})
    assert is_placeholder("v", codec, DEFAULT_PLACEHOLDER) is None
    assert codec.usual is None or is_placeholder("v", codec.usual, DEFAULT_PLACEHOLDER) is None


@pytest.mark.parametrize("kind", ["string", "variant", "date"])
@pytest.mark.parametrize(
    "sent",
    [
        *('["__debezium_unavailable_value"]', '["X19kZWJleml1bV91bmF2YWlsYWJsZV92YWx1ZQ=="]'),
        "[95,95,100,101,98,101,122,105,117,109,95,117,110,97,118,97,105,108,97,98,108,101,95,118,97,108,117,101]",
        '["b68a35a7-17ad-35b3-af2a-ae46edb4545a"]',
        '{"__debezium_unavailable_value":"__debezium_unavailable_value"}',
    ],
    ids=["texts", "bytes", "numbers", "uuids", "hstore"],
)
def test_what_stands_for_a_list_or_a_map_is_known_where_it_is_read_as_text(kind: str, sent: str) -> None:
    assert sql.text(sent) in (is_placeholder("v", codec_named(kind, {}), DEFAULT_PLACEHOLDER) or "")


def test_a_placeholder_of_another_script_is_looked_for_as_connectors_write_json() -> None:
    assert sql.text('["nicht verfügbar"]') in (is_placeholder("v", STRING, "nicht verfügbar") or "")


def test_a_mask_changes_nothing_about_texts() -> None:
    masked = Masks({"doc": "hash"}, "salt").over("doc", codec_named("variant", {}))
    assert is_placeholder("v", masked, DEFAULT_PLACEHOLDER) is not None
