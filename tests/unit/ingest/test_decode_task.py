"""What Spark's tasks run decodes as the driver does, and results of a batch's tasks are merged."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pyarrow as pa
import pytest
from confluent_kafka import KafkaError, KafkaException
from pyspark.accumulators import Accumulator
from tests.support.decoding import SQLSERVER_SOURCE, plain_change, raw_table, struct_rows
from tests.support.learning import learn
from tests.support.random_share import thorough_but
from tests.support.runners import RUNNER_CASES, TOPIC, assert_decoded_alike

from distributary.consume.record_tables import RAW
from distributary.consume.source import ranges
from distributary.decode.decoder import Decoder
from distributary.decode.options import DecodeOptions
from distributary.errors import TransientError
from distributary.ingest.decode_task import DecodeTask, FetchRanges, UnionOfTexts, combine, decoded_of, findings_as_json
from distributary.ingest.task_results import read_results
from distributary.types.record_schema import RecordSchema


@pytest.mark.parametrize("name", thorough_but(3, RUNNER_CASES))
def test_records_in_pieces_are_decoded_as_all_at_once(name: str) -> None:
    """As in tests/spark/test_raw_records.py, without Spark: two tasks, each with one decoder for its pieces."""
    case = RUNNER_CASES[name]()
    findings = Accumulator(0, frozenset[str](), UnionOfTexts())
    gathered = []
    parts = ranges(case.range, 4)
    for numbers in (range(0, len(parts), 2), range(1, len(parts), 2)):
        task = DecodeTask(case.options, case.schema, findings, FetchRanges(case.fetch_pieces, TOPIC, parts, 37, 2**20))
        given = pa.RecordBatch.from_arrays([pa.array(numbers, pa.int64())], names=["id"])
        gathered += list(task(iter([given])))
    nothing = Decoder(case.options).decode(RAW.empty_table(), case.schema)
    in_pieces = decoded_of(read_results(pa.Table.from_batches(gathered)), findings.value, nothing)
    assert_decoded_alike(in_pieces, Decoder(case.options).decode(case.raw, case.schema))
    assert in_pieces.rejected.num_rows
    assert in_pieces.events.num_rows


def test_results_are_read_from_any_part_of_a_column_and_hold_nothing_of_it() -> None:
    decoder, schema = Decoder(DecodeOptions("sqlserver")), RecordSchema({"id": "int"}, {"id": "int"})
    findings = Accumulator(0, frozenset[str](), UnionOfTexts())
    raw = [raw_table([plain_change(number, {"id": number})]).combine_chunks().to_batches()[0] for number in range(4)]
    batches = list(DecodeTask(decoder.options, schema, findings)(iter(raw)))
    column = pa.Table.from_batches(batches).combine_chunks().slice(2, 4)
    found = decoded_of(read_results(column), findings.value, decoder.decode(raw[0].slice(0, 0), schema))
    assert found.events["offset"].to_pylist() == [1, 2]
    assert struct_rows(found.events["row"]) == [{"id": 1}, {"id": 2}]
    assert {chunked.num_chunks for chunked in found.events.columns} == {1}


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (MemoryError(), "python-out-of-memory"),
        (KafkaException(KafkaError(KafkaError._TRANSPORT)), "kafka-unreachable"),
        (OSError("AWS Error SLOW_DOWN during GetObject operation"), "storage-or-network"),
        (ValueError("no fault of the surroundings"), None),
    ],
)
def test_a_fault_that_passes_is_one_for_the_driver_too(error: Exception, code: str | None) -> None:
    def fetch(*_: object) -> Iterator[pa.Table]:
        raise error

    schema = RecordSchema({"id": "int"}, {"id": "int"})
    findings = Accumulator(0, frozenset[str](), UnionOfTexts())
    task = DecodeTask(DecodeOptions("sqlserver"), schema, findings, FetchRanges(fetch, "t", [(0, 0, 1)], 1, 1))
    numbers = pa.RecordBatch.from_arrays([pa.array([0], pa.int64())], names=["id"])
    with pytest.raises(type(error) if code is None else TransientError) as failed:
        list(task(iter([numbers])))
    assert getattr(failed.value, "code", None) == code


def test_source_tables_and_columns_of_all_tasks_are_put_together() -> None:
    decoder = Decoder(DecodeOptions("sqlserver"))
    texts = []
    for table, row in (("a", {"id": 1, "x": 1}), ("b", {"id": 1, "y": "t"}), ("a", {"id": 1, "x": 1})):
        source = {**SQLSERVER_SOURCE, "db": "shop", "schema": "dbo", "table": table}
        texts.append(
            findings_as_json(decoder.decode(raw_table([plain_change(0, row, source=source)]), RecordSchema()), set())
        )
    found = combine(texts)
    assert found.source_tables == {"shop.dbo.a", "shop.dbo.b"}
    assert {name for one in found.observed for name in one.names} == {"id", "x", "y"}
    assert (found.conflict, found.unknown_schemas) == (None, frozenset())


def test_a_task_with_large_values_is_enough_for_the_batch() -> None:
    decoder = Decoder(DecodeOptions("sqlserver"))
    texts = []
    for value, has_too_many in (("a", False), ("__debezium:s3:ref:v1:bucket|table=a/doc/after", True), ("b", False)):
        raw = raw_table([plain_change(0, {"id": 1, "doc": value})])
        texts.append(
            findings_as_json(
                replace(decoder.decode(raw, learn(decoder, raw)), has_too_many_large_values=has_too_many), set()
            )
        )
    assert combine(texts).references == (frozenset(("bucket|table=a/doc/after",)),)
    assert combine(texts).has_too_many_large_values
    assert not combine([texts[0], texts[2]]).has_too_many_large_values
    assert not combine([texts[0], texts[2]]).references
