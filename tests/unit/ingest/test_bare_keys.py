"""Whether a topic's keys are bare values of a column, by its first records."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from distributary.config.table import TableSettings
from distributary.consume.sample import SampledRecord
from distributary.decode.options import BareKey
from distributary.ingest.bare_keys import with_bare_keys
from distributary.ingest.topic_format import TopicFormat

FORMAT = TopicFormat("postgresql", (), has_schema=False)


def record(key: object, value: object, *, as_text: bool = False) -> SampledRecord:
    data = None if key is None else (str(key) if as_text else json.dumps(key)).encode()
    return SampledRecord(0, 0, data, None if value is None else json.dumps(value).encode())


@pytest.mark.parametrize(
    ("records", "is_bare"),
    [
        ([record(1, {"id": 1}), record(2, {"id": 2}), record(2, None)], True),
        ([record(1, {"id": 1}), record(7, {"id": 2})], False),  # keys of another column
        ([record("a", {"op": "c", "source": {}, "after": {"id": "a"}})], True),
        ([record("a", {"op": "d", "source": {}, "before": {"id": "a"}, "after": None})], True),
        ([record("Struct{id=5}", {"id": 5}, as_text=True)], True),
        ([record("x y", {"id": "x y"}, as_text=True)], True),
        ([record(1.5, {"id": 1.5})], True),
        ([record("1e+22", {"id": 1e22}, as_text=True)], True),
        ([record(2**63, {"id": 2**63})], True),
        ([record(None, {"id": 1})], False),
        ([record(1, None)], False),  # nothing tells
        ([], False),
        ([record([1], {"id": 1})], False),
        ([record(1, {"id": None})], False),
        ([record(1, {"v": 1})], False),
    ],
)
def test_1_6_keys_are_those_of_a_column_where_the_rows_have_the_same_values(
    records: list[SampledRecord], is_bare: bool
) -> None:
    of_config = replace(TableSettings("dbo.t"), key=("id",))
    assert with_bare_keys(FORMAT, records, of_config).bare_key == (BareKey("id") if is_bare else None)


def test_1_6_a_key_of_several_columns_or_one_that_the_records_have_is_not_bare() -> None:
    records = [record(1, {"id": 1})]
    assert with_bare_keys(FORMAT, records, replace(TableSettings("dbo.t"), key=("id", "v"))).bare_key is None
    assert with_bare_keys(FORMAT, records, TableSettings("dbo.t")).bare_key is None
    assert (
        with_bare_keys(replace(FORMAT, key=("id",)), records, replace(TableSettings("dbo.t"), key=("id",))).bare_key
        is None
    )


TIME = {"type": "int64", "name": "io.debezium.time.MicroTime"}


@pytest.mark.parametrize("form", ["row", "created", "deleted"])
def test_1_6_bare_keys_have_the_schema_of_their_column_in_rows(form: str) -> None:
    row, struct = {"id": 5}, {"type": "struct", "fields": [{"field": "id", **TIME}]}
    value: object = {"schema": struct, "payload": row}
    if form != "row":
        fields = [{"field": side, **struct} for side in ("before", "after")]
        change: dict[str, object] = {"op": form[0], "source": {}, "before": None, "after": None}
        change["after" if form == "created" else "before"] = row
        value = {"schema": {"type": "struct", "fields": fields}, "payload": change}
    for key in (5, {"schema": TIME, "payload": 5}):
        records = [record(key, None), record(key, value)]
        found = with_bare_keys(FORMAT, records, replace(TableSettings("dbo.t"), key=("id",))).bare_key
        assert found is not None
        assert found.column == "id"
        assert json.loads(found.schema or "") == {"field": "id", **TIME}
