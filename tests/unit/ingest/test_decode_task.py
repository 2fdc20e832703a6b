"""Results of a batch's decode tasks are merged."""

from __future__ import annotations

from tests.support.decoding import SQLSERVER_SOURCE, plain_change, raw_table

from distributary.decode.decoder import Decoder
from distributary.decode.options import DecodeOptions
from distributary.ingest.decode_task import _as_text, combine
from distributary.types.record_schema import RecordSchema


def test_source_tables_and_columns_of_all_tasks_are_put_together() -> None:
    decoder = Decoder(DecodeOptions("sqlserver"))
    texts = []
    for table, row in (("a", {"id": 1, "x": 1}), ("b", {"id": 1, "y": "t"}), ("a", {"id": 1, "x": 1})):
        source = {**SQLSERVER_SOURCE, "db": "shop", "schema": "dbo", "table": table}
        texts.append(_as_text(decoder.decode(raw_table([plain_change(0, row, source=source)]), RecordSchema())))
    found = combine(texts)
    assert found.source_tables == {"shop.dbo.a", "shop.dbo.b"}
    assert {name for one in found.observed for name in one.names} == {"id", "x", "y"}
    assert (found.conflict, found.unknown_schemas) == (None, frozenset())
