"""MongoDB's documents: tables of `_id` and `document`."""

from __future__ import annotations

import json
from typing import Any

import pytest
from tests.support.decoding import compact, decode_all, rejections, struct_rows, with_schema
from tests.support.recorded import Record

from distributary.config.table import TableSettings
from distributary.consume.sample import SampledRecord
from distributary.decode.decoder import Decoded
from distributary.decode.document import DOCUMENT_COLUMNS
from distributary.decode.options import DecodeOptions, TypeSources
from distributary.decode.source_order import BUILT_IN
from distributary.decode.unwrapped import added_by
from distributary.errors import TableHalt
from distributary.ingest.supported import check_supported
from distributary.ingest.topic_format import TopicFormat, detect_format

ID = '{"$oid": "5f1d7f000000000000000001"}'
TEXT = {"type": "string", "optional": True}


def event(op: str, document: Any, at: int, ord_: int = 1, *, before: Any = None) -> dict[str, Any]:
    source = {"version": "3.6.1.Final", "connector": "mongodb", "name": "p", "ts_ms": at * 1000, "snapshot": "false"}
    source |= {"db": "shop", "collection": "orders", "rs": "rs0", "ord": ord_, "wallTime": 1}
    texts = [None if one is None else json.dumps(one) for one in (before, document)]
    return {"before": texts[0], "after": texts[1], "updateDescription": None, "source": source, "op": op, "ts_ms": 5}


def record(offset: int, id_: str, value: dict[str, Any] | None, *, has_schema: bool) -> Record:
    key: bytes = compact({"id": id_}).encode()
    data = None if value is None else compact(value).encode()
    if has_schema:
        fields = [{**TEXT, "field": name} for name in ("before", "after", "op")]
        key = with_schema({"type": "struct", "fields": [{**TEXT, "field": "id"}]}, key.decode())
        data = data and with_schema({"type": "struct", "fields": fields}, data.decode())
    return Record("t", 0, offset, 1_700_000_000_000, key, data, ())


def decoded(records: list[Record], **columns: str) -> Decoded:
    types = TypeSources({**DOCUMENT_COLUMNS, **columns})
    options = DecodeOptions("mongodb", documents=True, order=BUILT_IN["mongodb"], types=types)
    return decode_all(records, options)[0]


@pytest.mark.parametrize("has_schema", [False, True])
def test_1_1_a_document_is_a_row_of_its_id_and_itself(has_schema: bool) -> None:
    whole = {"_id": {"$oid": "5f1d7f000000000000000001"}, "n": {"$numberLong": "9"}, "t": 'a "b" ü'}
    changes = [event("r", whole, 1), event("u", {**whole, "n": 1}, 2, 7), event("d", None, 2, 8), None]
    records = [record(n, ID, one, has_schema=has_schema) for n, one in enumerate(changes)]
    records.append(record(4, '"text"', event("c", {"_id": "text"}, 3), has_schema=has_schema))
    found = decoded(records)
    assert rejections(found) == {}
    assert found.events["operation"].to_pylist() == ["r", "u", "d", "x", "c"]
    assert struct_rows(found.events["key"]) == [*([{"_id": ID}] * 4), {"_id": '"text"'}]
    rows = struct_rows(found.events["row"])
    assert [row and row["_id"] for row in rows] == [ID, ID, None, None, '"text"']
    assert [row and json.loads(row["document"]) for row in rows] == [
        whole,
        {**whole, "n": 1},
        None,
        None,
        {"_id": "text"},
    ]
    positions = [one for one in found.events["position"].to_pylist() if one]
    assert positions == sorted(positions)
    assert len(set(positions)) == 4


def test_6_3_an_update_without_its_document_is_rejected_and_what_is_no_document_too() -> None:
    changes = [event("u", None, 1), {**event("c", None, 2), "after": {"_id": 1}}, event("c", {"_id": 1}, 3)]
    found = decoded([record(n, "1", one, has_schema=False) for n, one in enumerate(changes)])
    assert rejections(found) == {0: "no-row"}
    assert found.events["offset"].to_pylist() in ([1, 2], [2])


def test_5_1_a_document_may_be_a_variant() -> None:
    found = decoded([record(0, "1", event("c", {"_id": 1}, 1), has_schema=False)], document="variant")
    assert rejections(found) == {}
    assert [one.types["document"] for one in found.observed if not one.is_key] == ["variant"]


def test_6_2_documents_are_taken_where_the_config_asks_for_them() -> None:
    one = record(0, ID, event("c", {"_id": 1}, 1), has_schema=True)
    seen = [SampledRecord(0, 0, one.key, one.value)]
    found = detect_format(seen, "p.shop.orders", "mongodb", added_by({}))
    assert (found.order, found.key, found.documents, found.unwrapped) == ("mongodb", ("_id",), True, None)
    row = SampledRecord(0, 0, b'{"id": "1"}', b'{"_id": 1, "v": "a"}')
    of_rows = detect_format([row], "p.shop.orders", "mongodb", added_by({}))
    assert (of_rows.documents, of_rows.key, of_rows.unwrapped is not None) == (False, ("id",), True)
    with pytest.raises(TableHalt, match="documents-not-rows") as halt:
        detect_format(seen, "p.shop.orders", None, added_by({}))
    assert "source.connector: mongodb" in halt.value.fix
    with pytest.raises(TableHalt, match="documents-in-avro"):
        check_supported(TableSettings("*.*"), TopicFormat("mongodb", ("_id",), True, documents=True), is_avro=True)
