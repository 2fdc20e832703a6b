"""Whether a table can go on from where it is."""

from __future__ import annotations

import pytest

from distributary.config.table import TableSettings
from distributary.consume.broker import Topic
from distributary.errors import TableHalt
from distributary.merge.progress import first_progress
from distributary.operate.continuity import check_continuity

TOPIC = Topic("p.dbo.t", "first", (0, 1))
TAKEN = first_progress("p.dbo.t", "first", "sqlserver", "upsert", ("id",)).model_copy(update={"next": {0: 5, 1: 7}})
UPSERT = TableSettings("dbo.t")


@pytest.mark.parametrize("first", [{}, {0: 0, 1: 0}, {0: 5, 1: 7}, {0: 5, 1: 7, 2: 9}])
def test_6_4_a_table_goes_on_where_kafka_has_what_comes_next(first: dict[int, int]) -> None:
    check_continuity(TAKEN, TOPIC, first, UPSERT, "/lake/dbo/t")


def test_6_4_lost_records_are_named() -> None:
    with pytest.raises(TableHalt, match=r"offsets 7 to 8 of p\.dbo\.t partition 1") as raised:
        check_continuity(TAKEN, TOPIC, {0: 5, 1: 9}, UPSERT, "/lake/dbo/t")
    assert raised.value.code == "records-lost"


@pytest.mark.parametrize(
    ("topic", "settings", "code"),
    [
        (Topic("p.other.t", "first", (0,)), UPSERT, "other-topic"),
        (TOPIC, TableSettings("dbo.t", mode="history"), "mode-changed"),
        (Topic("p.dbo.t", "second", (0, 1)), UPSERT, "topic-recreated"),
    ],
)
def test_6_4_a_table_is_filled_from_one_topic_in_one_mode(topic: Topic, settings: TableSettings, code: str) -> None:
    with pytest.raises(TableHalt) as raised:
        check_continuity(TAKEN, topic, {0: 0}, settings, "/lake/dbo/t")
    assert raised.value.code == code
