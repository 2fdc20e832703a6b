"""The first look at a topic, and the limit on bad records."""

from __future__ import annotations

import json

import pytest

from distributary.consume.broker import Record
from distributary.errors import TableHalt
from distributary.operate.limits import too_many_bad
from distributary.operate.look import look_at


def record(value: object, key: object = None) -> Record:
    encoded = [None if part is None else json.dumps(part).encode() for part in (key, value)]
    return Record(0, 0, encoded[0], encoded[1])


def test_a_first_look_tells_connector_and_key() -> None:
    envelope = {"op": "c", "source": {"connector": "db2"}, "after": {}}
    wrapped = {"schema": {"type": "struct"}, "payload": envelope}
    look = look_at(
        [record(None, {"id": 1}), record(wrapped, {"schema": {"type": "struct"}, "payload": {"id": 1}})], "t", None
    )
    assert (look.connector, look.key, look.has_schema) == ("db2", ("id",), True)


def test_columns_called_schema_and_payload_are_not_taken_for_a_schema() -> None:
    envelope = {"op": "c", "source": {"connector": "postgresql"}, "after": {}}
    look = look_at([record(envelope, {"schema": 1, "payload": "x"})], "t", None)
    assert look.key == ("schema", "payload")


def test_a_topic_of_truncates_alone_tells_no_key_yet() -> None:
    truncate = {"op": "t", "source": {"connector": "postgresql"}}
    assert look_at([record(truncate)], "t", None).only_truncates


def test_unwrapped_rows_halt() -> None:
    with pytest.raises(TableHalt, match="not-an-envelope"):
        look_at([record({"id": 1, "name": "x"}, {"id": 1})], "t", "postgresql")


def test_too_many_bad_records_are_counted_over_the_last_thousand() -> None:
    recent = [(600, 0), (500, 90), (600, 30)]
    assert too_many_bad(recent, 0.1) == (((500, 90), (600, 30)), 120)
    assert too_many_bad(recent, 0.2)[1] is None
    assert too_many_bad([(50, 50)], 0.1)[1] is None  # fewer than 100 bad ones are no pattern yet
