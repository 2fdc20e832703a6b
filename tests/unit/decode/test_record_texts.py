"""Schemas are cut off whole columns: each text ends up with the reader and the payload that it has when read alone."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from distributary import reasons
from distributary.decode.record_texts import texts_without_schema
from distributary.decode.wrapping import unwrap
from distributary.reasons import Rejected
from distributary.types.bounds import Bounds


@dataclass(frozen=True)
class Reader:
    begin: bytes | None
    reads_all_without_schema: bool


class Finder:
    """Finds readers as decode.readers does, one for each schema; the schema `{"bad":1}` has none."""

    def __init__(self) -> None:
        self.readers: dict[bytes | None, Reader] = {}

    def __call__(self, text: bytes) -> tuple[Reader, bytes]:
        schema, payload, begin = unwrap(text, Bounds())
        if schema == b'{"bad":1}':
            raise Rejected(reasons.BAD_SCHEMA)
        return self.readers.setdefault(schema, Reader(begin, schema is None)), payload


SCHEMAS = st.sampled_from([f'{{"n":{number}}}' for number in range(12)] + ['{"bad":1}', "null", "{}"])
PAYLOADS = st.sampled_from(["1", "null", "", '{"a":"}"}', '"ä"', '{"payload":2}', ',"payload":3'])
WRAPPED = st.builds('{{"schema":{},"payload":{}}}{}'.format, SCHEMAS, PAYLOADS, st.sampled_from(["", " ", "\n"]))
OTHERS = (
    *('{"schema":{"n":1},"payload":', '{"payload":1,"schema":{"n":1}}', ' {"schema":{"n":1},"payload":1}'),
    *('{"schema":{"n":1}, "payload":1}', '{"sc":1}', '{"pay":1}', '{"before":null}', '{"after":1,"schema":{}}', "[]"),
)
TEXTS = st.none() | WRAPPED | PAYLOADS | st.sampled_from(OTHERS)


@given(st.lists(TEXTS, max_size=40), st.integers(1, 7))
def test_each_text_is_read_as_it_is_alone(texts: list[str | None], size: int) -> None:
    data = [None if text is None else text.encode() for text in texts]
    chunks = [pa.array(data[index : index + size], pa.binary()) for index in range(0, len(data), size)]
    find = Finder()
    found = texts_without_schema(pa.chunked_array(chunks, pa.binary()), find)
    assert len(found.data) == len(found.readers) == len(data)
    for whole, text, reader in zip(data, found.data, found.readers, strict=True):
        if reader is None:
            assert text == whole
        else:
            assert whole is not None
            assert (reader, text) == find(whole)


def test_texts_without_a_schema_get_their_reader_all_at_once() -> None:
    data = [f'{{"before":{index}}}'.encode() for index in range(9)]
    found = texts_without_schema(pa.chunked_array([pa.array(data)]), Finder())
    assert found.data == data
    assert None not in found.readers


def test_schemas_that_differ_are_cut_too() -> None:
    data = [f'{{"schema":{{"n":{index % 3}}},"payload":{index}}}'.encode() for index in range(9)]
    found = texts_without_schema(pa.chunked_array([pa.array(data)]), Finder())
    assert found.data == [str(index).encode() for index in range(9)]
    assert len(set(map(id, found.readers))) == 3
