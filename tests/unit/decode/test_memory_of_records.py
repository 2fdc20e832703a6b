"""What decoding takes of the memory follows the bytes of its records, not their number."""

from __future__ import annotations

import tracemalloc
from collections.abc import Sequence

import pytest
from tests.support.decoding import made_records
from tests.support.sample_change import envelope_json

from distributary.decode import decoder as decoder_module
from distributary.decode.decoder import Decoder
from distributary.decode.options import DecodeOptions, TypeSources
from distributary.types.record_schema import RecordSchema


def peak_of(values: Sequence[bytes], types: dict[str, str]) -> int:
    """The most bytes that decoding has in memory as Python objects."""
    decoder = Decoder(DecodeOptions("sqlserver", types=TypeSources(configured=types)))
    raw, schema = made_records([(b'{"id":1}', value) for value in values]), RecordSchema(types, {"id": "int"})
    decoder.decode(raw.slice(0, 1), schema)
    tracemalloc.start()
    try:
        found = decoder.decode(raw, schema)
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
        assert found.events.num_rows == len(values)


@pytest.mark.thorough
def test_what_a_large_and_a_wide_record_take_of_memory_follows_their_bytes() -> None:
    large = envelope_json(f'{{"id":1,"text":"{"x" * 20_000_000}"}}').encode()
    assert peak_of([large], {"id": "int", "text": "string"}) < 5 * len(large)
    columns = [f"c{index}" for index in range(500)]
    wide = envelope_json("{" + ",".join(f'"{name}":{index + 1_000}' for index, name in enumerate(columns)) + "}")
    assert peak_of([wide.encode()] * 500, {"id": "int", **dict.fromkeys(columns, "int")}) < 6 * 500 * len(wide)


def test_many_small_records_take_the_memory_of_one_step(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(decoder_module, "_RECORDS", 200)
    small = [envelope_json('{"id":1,"text":"x"}').encode()] * 4_000
    types = {"id": "int", "text": "string"}
    assert peak_of(small, types) < 2 * peak_of(small[:200], types)
