"""Texts of variant columns: what the decoder takes can be written as Spark's documents and read again."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from distributary.delta import variant
from distributary.types.base import BadValue
from distributary.types.documents import document_text

_MB = 2**20
REFUSED = {
    "no JSON": "{",
    "nothing": "",
    "text behind": "1 2",
    "NaN": "NaN",
    "half a character": '"\\ud800"',
    "half a character in a name": '{"a":{"\\udc00":1}}',
    "a number beyond all others": "1e400",
    "a number beyond all others with a sign": "[-1e999999999]",
    "an integer of 5,000 digits": "1" * 5_000,
    "65 levels of arrays": "[" * 65 + "]" * 65,
    "300 levels of objects": '{"a":' * 300 + "1" + "}" * 300,
    "100,000 levels": "[" * 100_000,
    "a text of 17 MB": '"' + "x" * 17 * _MB + '"',
    "a name of 17 MB": json.dumps({"x" * 17 * _MB: 1}),
    "numbers of 17 MB": "[" + "1," * 4 * _MB + "1]",
}
TAKEN = {
    "64 levels": "[" * 64 + "]" * 64,
    "a field twice": '{"a":1,"a":2}',
    "a small number": "1e-400",
    "39 digits": "1" * 39,
    "a character in two halves": '"\\ud83d\\ude00"',
    "a NUL": '"\\u0000"',
    "brackets in a text": json.dumps("[" * 100),
    "a text of 15 MB": '"' + "x" * 15 * _MB + '"',
    "70,000 names": json.dumps({str(number): number for number in range(70_000)}),
    "100,000 numbers": json.dumps(list(range(100_000))),
    "small numbers of 512 kB": "[" + "1," * (_MB // 4) + "1]",
    "texts of 5 MB": json.dumps(["x" * 1_000] * 5_000),
}


LARGE = (
    "a text of 17 MB",
    "a name of 17 MB",
    "numbers of 17 MB",
    "a text of 15 MB",
    "70,000 names",
    "100,000 numbers",
    "small numbers of 512 kB",
)
"""What takes long, and is the same in small but for a limit."""


def names_of(texts: Iterable[str]) -> list[Any]:
    """The names as parameters; large texts are for thorough runs."""
    return [pytest.param(name, marks=pytest.mark.thorough if name in LARGE else ()) for name in texts]


@pytest.mark.parametrize("name", names_of(REFUSED))
def test_a_text_that_is_no_document_is_refused(name: str) -> None:
    with pytest.raises(BadValue):
        document_text(REFUSED[name])


@pytest.mark.parametrize("name", names_of(TAKEN))
def test_a_text_that_is_taken_can_be_written_and_read_again(name: str) -> None:
    again(document_text(TAKEN[name]))


def again(text: str) -> None:
    [found] = variant.decoded(variant.encoded(pa.array([text]))).to_pylist()
    json.loads(found, parse_constant=pytest.fail)
    assert variant.encoded(pa.array([found])).to_pylist()


_JSON: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(st.characters(codec=None)),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=20,
)


@settings(max_examples=300, deadline=None)
@given(_JSON)
@pytest.mark.thorough
def test_whatever_is_taken_can_be_written_and_read_again(value: Any) -> None:
    try:
        text = document_text(json.dumps(value))
    except BadValue:
        return
    again(text)
