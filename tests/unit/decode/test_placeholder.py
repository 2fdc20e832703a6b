"""In place of which values the placeholder may come."""

from __future__ import annotations

import pytest

from distributary.decode.masks import Masks
from distributary.decode.placeholder import DEFAULT_PLACEHOLDER, is_placeholder
from distributary.decode.type_names import codec_named


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


def test_a_mask_changes_nothing_about_texts() -> None:
    masked = Masks({"doc": "hash"}, "salt").over("doc", codec_named("variant", {}))
    assert is_placeholder("v", masked, DEFAULT_PLACEHOLDER) is not None
