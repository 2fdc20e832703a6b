"""A table's memory is the same when it is read back; what is no memory is refused."""

from __future__ import annotations

import json

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from distributary.apply.memory import Memory
from distributary.apply.memory_file import (
    FORMAT,
    UnreadableMemory,
    read_memory,
    read_text,
    short_text,
    write_memory,
)
from distributary.apply.values import SERVICE
from distributary.rules.event import Position
from distributary.rules.high_water_mark import Mark
from distributary.rules.state import RulesState

ROW = pa.struct([("id", pa.int64()), ("text", pa.string())])
VALUES = pa.table(
    {
        **{name: pa.array([None, None], kind) for name, kind in SERVICE.items()},
        "partition": pa.array([0, 1], pa.int32()),
        "offset": pa.array([5, 2**40], pa.int64()),
        "row": pa.array([{"id": 1, "text": "a"}, None], ROW),
    }
)


def test_a_memory_is_read_as_it_was_written() -> None:
    at = Position(("0a",), ("1", "2"), "0a", time=5)
    memory = Memory(RulesState(3, {1: Mark(at, {"c 1"}, time=5)}, deleted_keys={"k": at}), VALUES, {(0, 5): (1, 7)})
    assert read_memory(write_memory(memory)) == memory


def test_a_small_memory_without_values_is_a_text() -> None:
    at = Position(("0a",), ("1", "2"), "0a", time=5)
    memory = Memory(RulesState(3, {1: Mark(at, {"c 1"}, time=5)}, deleted_keys={"k": at}), VALUES.slice(0, 0))
    text = short_text(memory)
    assert text is not None
    assert read_text(text, ROW) == memory
    assert short_text(Memory(memory.state, VALUES)) is None
    many = {f"{number} {hash(str(number))}": at for number in range(10_000)}
    assert short_text(Memory(RulesState(1, deleted_keys=many), memory.values)) is None
    for other in ("", "no text", text[:40]):
        with pytest.raises(UnreadableMemory):
            read_text(other, ROW)


@pytest.mark.parametrize("data", [b"", b"PAR1", b"text" * 100])
def test_other_bytes_are_refused(data: bytes) -> None:
    with pytest.raises(UnreadableMemory):
        read_memory(data)


def test_a_file_that_was_cut_is_refused() -> None:
    data = write_memory(Memory(RulesState(1), VALUES))
    for length in (10, len(data) // 2, len(data) - 1):
        with pytest.raises(UnreadableMemory):
            read_memory(data[:length])


@pytest.mark.parametrize(
    "metadata", [None, {"distributary": "{"}, {"distributary": json.dumps({"format": FORMAT + 1})}]
)
def test_a_file_without_a_state_of_this_format_is_refused(metadata: dict[str, str] | None) -> None:
    sink = pa.BufferOutputStream()
    pq.write_table(VALUES.replace_schema_metadata(metadata), sink)
    with pytest.raises(UnreadableMemory):
        read_memory(bytes(sink.getvalue()))
