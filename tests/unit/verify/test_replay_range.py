"""The offsets that are replayed for a comparison, key ranges, and the report."""

from __future__ import annotations

from typing import Any

import pytest

from distributary.config.table import TableSettings
from distributary.consume.topics import TableId
from distributary.errors import TableHalt, UsageError
from distributary.ingest.tables import ConfiguredTable
from distributary.progress.record import Progress, first_progress
from distributary.verify.key_range import KeyRange
from distributary.verify.replay_range import lost_records_note, replay_range
from distributary.verify.report import FAULTS, Counts, Difference, Event, State, TableReport, Value


def table(**settings: Any) -> ConfiguredTable:
    return ConfiguredTable(
        TableId("dbo", "t"), "p.dbo.t", TableSettings("dbo.t", "config.yaml:9", **settings), "/lake/dbo/t"
    )


def progress(**next_offsets: int) -> Progress:
    start = first_progress("p.dbo.t", "id", "sqlserver", "upsert", ("id",))
    return start.model_copy(update={"next": {int(name[1:]): offset for name, offset in next_offsets.items()}})


def test_all_records_that_kafka_has_and_the_table_has_applied_are_replayed() -> None:
    part = replay_range(table(), progress(p0=10, p1=4, p2=7), {0: 0, 1: 4, 2: 5, 3: 0})
    assert (part.start, part.end, part.records) == ({0: 0, 2: 5}, {0: 10, 2: 7}, 12)


def test_of_an_adopted_table_nothing_is_read_that_the_other_writer_applied() -> None:
    adopted = progress(p0=10, p1=4, p2=7).model_copy(update={"adopted": {0: 6, 1: 4, 2: 1}})
    part = replay_range(table(), adopted, {0: 0, 1: 0, 2: 5, 3: 0})
    assert (part.start, part.end) == ({0: 6, 2: 5}, {0: 10, 2: 7})
    assert "adopted" in str(lost_records_note(4, 4, adopted=True))


def test_a_topic_that_can_not_produce_the_table_is_refused() -> None:
    with pytest.raises(TableHalt, match="no-records-left"):
        replay_range(table(), progress(p0=10), {0: 10})
    with pytest.raises(TableHalt, match="epoch-raised"):
        replay_range(table(epoch=1), progress(p0=10), {0: 0})


def test_a_topic_with_fewer_records_than_were_applied_has_lost_some() -> None:
    assert lost_records_note(10, 9) is not None
    assert lost_records_note(10, 10) is None
    assert lost_records_note(10, 11) is None


@pytest.mark.parametrize(("text", "low", "high"), [("1..9", "1", "9"), ("a b..", "a b", None), ("..9", None, "9")])
def test_a_range_of_keys_has_two_ends_of_which_one_may_be_open(text: str, low: str | None, high: str | None) -> None:
    assert KeyRange.parse(text) == KeyRange(low, high)
    assert str(KeyRange.parse(text)) == text


@pytest.mark.parametrize("text", ["", "5", "..", "5-9"])
def test_what_is_no_range_of_keys_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="bad-key-range"):
        KeyRange.parse(text)


def test_a_report_has_json_types_only() -> None:
    difference = Difference('{"id":1}', "different", (Value("v", None, "x"),), Event(0, 7, "000:1", "u"))
    counts = Counts(3, 3, 2, {**dict.fromkeys(FAULTS, 0), "different": 1})
    found = TableReport(
        "dbo.t", "p.dbo.t", "/lake/dbo/t", "upsert", State.DIFFERENT, offsets={0: (0, 9)}, counts=counts,
        differences=(difference,),
    ).as_json()  # fmt: skip
    assert counts.different == 1
    assert found["state"] == "different"
    assert found["offsets"] == {"0": [0, 9]}
    assert found["counts"]["faults"] == {"missing": 0, "unexpected": 0, "different": 1, "repeated": 0}
    assert found["differences"][0]["values"] == ({"column": "v", "lake": None, "expected": "x"},)
    assert found["differences"][0]["decided_by"] == {"partition": 0, "offset": 7, "position": "000:1", "op": "u"}
