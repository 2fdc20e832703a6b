"""Positions as texts sort in the source's order, and do not change when they are written again."""

from __future__ import annotations

import itertools
from typing import Any

import pytest

from distributary.decode.position import position_of
from distributary.decode.source_block import Source
from distributary.rules.event import Position
from distributary.rules.order import compare, sort_key
from distributary.rules.position_text import position_order, read_position, write_position

LSN = "0000002a:{:08x}:0001"
DB2_LSN = "00000000:0000000{}:0000000000000001"
ASCENDING: dict[str, list[dict[str, Any]]] = {
    "sqlserver": [
        {"commit_lsn": LSN.format(1), "change_lsn": LSN.format(2), "event_serial_no": "2"},
        {"commit_lsn": LSN.format(1), "change_lsn": LSN.format(2), "event_serial_no": "10"},
        {"commit_lsn": LSN.format(10), "change_lsn": LSN.format(1), "event_serial_no": 1},
    ],
    "db2": [
        {"commit_lsn": DB2_LSN.format(1), "change_lsn": DB2_LSN.format(2)},
        {"commit_lsn": DB2_LSN.format(2), "change_lsn": DB2_LSN.format(1)},
    ],
    "postgresql": [{"sequence": '["9","30"]', "ts_ms": 7}, {"sequence": '["10","20"]', "ts_ms": 5}],
    "mysql": [
        {"file": "b.999999", "pos": 9},
        {"file": "b.1000000", "pos": 4, "row": 1},
        {"file": "b.1000000", "pos": 4, "row": 10},
        {"file": "b.1000000", "pos": 10, "gtid": "uuid:12", "server_id": 1},
        {"file": "b.000001", "pos": 4, "gtid": "uuid:13", "server_id": 2},
    ],
    "mariadb": [
        {"file": "b.9", "pos": 9, "gtid": "0-1-7", "server_id": 1},
        {"file": "b.1", "pos": 9, "gtid": "0-2-10", "server_id": 2},
    ],
    "oracle": [
        {"scn": "20", "commit_scn": "99"},
        {"scn": "10", "commit_scn": "100", "rs_id": " 0x0001.0002.0010 ", "ssn": 0},
        {"scn": "10", "commit_scn": "100", "rs_id": "0x0001.0002.0010", "ssn": 1},
    ],
}


def text_of(connector: str, source: dict[str, Any], op: str = "u", epoch: int = 0) -> str:
    text = position_of(connector)(Source(**source), op)
    assert text is not None
    return f"{epoch:03d}:{text}"


def read(connector: str, source: dict[str, Any], op: str = "u", epoch: int = 0) -> Position:
    at = read_position(connector, text_of(connector, source, op, epoch))
    assert at is not None
    return at


@pytest.mark.parametrize("connector", ASCENDING)
def test_2_1_each_connector_orders_by_its_own_fields(connector: str) -> None:
    positions = [read(connector, source) for source in ASCENDING[connector]]
    for one, other in itertools.pairwise(positions):
        assert compare(connector, one, other) < 0 < compare(connector, other, one)
        if one.server == other.server:
            assert sort_key(connector, one) <= sort_key(connector, other)


@pytest.mark.parametrize("connector", ASCENDING)
def test_a_position_is_written_as_it_was_read(connector: str) -> None:
    for source in ASCENDING[connector]:
        text = text_of(connector, source, epoch=12)
        at = read_position(connector, text)
        assert at is not None
        assert write_position(connector, at) == text


def test_2_6_an_epoch_sorts_before_all_else() -> None:
    low, high = ASCENDING["sqlserver"][0], ASCENDING["sqlserver"][-1]
    assert compare("sqlserver", read("sqlserver", high), read("sqlserver", low, epoch=1)) < 0


def test_2_3_a_snapshot_row_of_postgresql_says_whether_the_connector_had_streamed_before() -> None:
    first = {"sequence": '[null,"34"]', "lsn": 34, "ts_ms": 5}
    later = {"sequence": '["30","34"]', "lsn": 34, "ts_ms": 5}
    assert read("postgresql", first, "r").level is None
    assert read("postgresql", later, "r").level is not None
    assert read("postgresql", first, "r").sub_position == read("postgresql", later, "r").sub_position
    assert read_position("postgresql", text_of("postgresql", {"ts_ms": 5}, "r")) is None


def test_a_first_transaction_of_postgresql_has_no_level() -> None:
    text = text_of("postgresql", {"sequence": '[null,"34"]', "lsn": 34, "ts_ms": 5})
    at = read_position("postgresql", text, "17")
    assert at is not None
    assert (at.level, at.transaction, at.time) == (None, "17", 5000)
    assert write_position("postgresql", at) == text


def test_1_3_kafkas_own_position_is_none_of_the_source() -> None:
    assert read_position("mysql", "000:@000000000000005/0000000001/00000000000000000007") is None


def test_other_texts_are_refused() -> None:
    with pytest.raises(ValueError, match="no position of PostgreSQL"):
        read_position("postgresql", "000:12")


def test_2_1_a_snapshot_row_without_an_lsn_comes_first_and_kafkas_own_position_last() -> None:
    nowhere = f"000:{0:020d}r{0:020d}@1700000000000"
    change = f"000:{5:020d}.{6:020d}@1700000000000"
    kafkas = "000:@000001700000000/0000000000/00000000000000000001"
    assert sorted([kafkas, change, nowhere], key=position_order("postgresql")) == [nowhere, change, kafkas]
