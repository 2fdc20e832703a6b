"""Results of a batch's decode tasks are merged."""

from __future__ import annotations

from dataclasses import replace

from tests.support.decoding import SQLSERVER_SOURCE, plain_change, raw_table
from tests.support.learning import learn

from distributary.decode.decoder import Decoder
from distributary.decode.options import DecodeOptions
from distributary.ingest.decode_task import combine, findings_as_json
from distributary.types.record_schema import RecordSchema


def test_source_tables_and_columns_of_all_tasks_are_put_together() -> None:
    decoder = Decoder(DecodeOptions("sqlserver"))
    texts = []
    for table, row in (("a", {"id": 1, "x": 1}), ("b", {"id": 1, "y": "t"}), ("a", {"id": 1, "x": 1})):
        source = {**SQLSERVER_SOURCE, "db": "shop", "schema": "dbo", "table": table}
        texts.append(findings_as_json(decoder.decode(raw_table([plain_change(0, row, source=source)]), RecordSchema())))
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
            findings_as_json(replace(decoder.decode(raw, learn(decoder, raw)), has_too_many_large_values=has_too_many))
        )
    assert combine(texts).references == {"bucket|table=a/doc/after"}
    assert combine(texts).has_too_many_large_values
    assert not combine([texts[0], texts[2]]).has_too_many_large_values
    assert not combine([texts[0], texts[2]]).references
