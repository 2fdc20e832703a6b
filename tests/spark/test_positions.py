"""The SQL that compares positions gives what the rules give."""

from __future__ import annotations

import itertools
import json
from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F
from tests.support.decoding import positions

from distributary.decode.position import offset_position
from distributary.decode.source_block import BY_OFFSET
from distributary.rules.order import compare
from distributary.rules.position_text import read_position
from distributary.verify.position_sql import is_later

Source = dict[str, Any]


def later(session: SparkSession, connector: str, pairs: Sequence[tuple[str | None, str | None]]) -> list[bool]:
    """Whether the first of each pair comes after the second."""
    frame = session.createDataFrame(pa.table({"a": [a for a, _ in pairs], "b": [b for _, b in pairs]}))
    return list(frame.select(F.expr(is_later(connector, "a", "b")).alias("x")).toArrow().column("x").to_pylist())


def test_2_1_binlog_positions_and_the_gtid_where_the_server_changes(session: SparkSession) -> None:
    def at(server: int, file: str, pos: int, gtid: str | None = None, row: int | None = 0) -> Source:
        return {"server_id": server, "file": file, "pos": pos, "row": row, "gtid": gtid}

    uuid, other = "3e11fa47-71ca-11e1-9e33-c80aa9429562", "4e11fa47-71ca-11e1-9e33-c80aa9429562"
    sources = {
        "first": at(1, "b.000009", 99, f"{uuid}:99"),
        "next file": at(1, "b.000010", 4, f"{uuid}:100"),
        "its second row": at(1, "b.000010", 4, f"{uuid}:100", row=1),
        "same origin, other server": at(2, "b.000003", 4, f"{uuid}:101"),
        "other origin": at(2, "b.000003", 9, f"{other}:1"),
        "no gtid": at(1, "b.000010", 4, None),
    }
    pos = dict(zip(sources, positions("mysql", list(sources.values())), strict=True))
    cases = [
        ("next file", "first", True),
        ("its second row", "next file", True),
        ("same origin, other server", "its second row", True),
        ("its second row", "same origin, other server", False),
        # Nothing orders two servers' transactions of two origins: their files decide, and a lower one halts (2.6).
        ("other origin", "its second row", False),
        ("no gtid", "next file", False),
        ("next file", "no gtid", False),
    ]
    assert later(session, "mysql", [(pos[a], pos[b]) for a, b, _ in cases]) == [expected for *_, expected in cases]
    maria = positions("mariadb", [at(1, "b.000010", 4, "0-1-270"), at(2, "b.000003", 4, "0-2-1271")])
    assert later(session, "mariadb", [(maria[1], maria[0]), (maria[0], maria[1])]) == [True, False]


def test_1_3_offsets_order_a_partition_and_timestamps_two(session: SparkSession) -> None:
    places = [(2000, 0, 5), (1000, 0, 6), (1500, 1, 1)]
    first, second, other = (f"000:{offset_position(*place)}" for place in places)
    raised = "001" + first[3:]
    pairs = [(second, first), (first, second), (other, second), (first, other), (raised, second), (second, raised)]
    assert later(session, BY_OFFSET, pairs) == [True, False, True, True, True, False]


def test_1_4_positions_of_old_versions_are_compared_by_the_lsn(session: SparkSession) -> None:
    # Debezium 1.0 for PostgreSQL has no sequence: the lsn is all there is.
    older, newer, with_sequence = positions(
        "postgresql",
        [{"lsn": 99, "snapshot": False}, {"lsn": 100, "txId": 7}, {"lsn": 120, "sequence": '["110","120"]'}],
    )
    pairs = [(newer, older), (older, newer), (with_sequence, newer), (newer, with_sequence)]
    assert later(session, "postgresql", pairs) == [True, False, True, False]


def test_2_1_a_commit_level_that_is_not_known_is_not_the_lowest(session: SparkSession) -> None:
    """That of a connector's first transaction: its lsn decides."""
    low, high, unknown = positions(
        "postgresql", [{"sequence": text} for text in ('["10","50"]', '["10","60"]', '[null,"55"]')]
    )
    assert later(session, "postgresql", [(unknown, low), (high, unknown)]) == [True, True]


WIRE: dict[str, list[Source]] = {
    "sqlserver": [
        {"commit_lsn": f"00000027:00000{a}b8:0005", "change_lsn": change, "event_serial_no": serial}
        for a in "0af" for change in (None, "00000027:00000ab8:0002") for serial in (None, 1, "12")
    ],
    "db2": [
        {"commit_lsn": f"00000027:00000ac0:{a:016x}", "change_lsn": change}
        for a in (9, 10, 255) for change in (None, f"00000027:00000ac0:{a:016x}")
    ],
    "oracle": [{"commit_scn": a, "scn": b, "rs_id": " 0x0001.0A ", "ssn": b} for a in (None, 9, 10) for b in (1, 2)],
    "mysql": [
        {"server_id": server, "file": f"b.0000{number:02}", "pos": pos, "row": 0, "gtid": gtid}
        for server in (1, 2) for number in (9, 10) for pos in (4, 99) for gtid in (None, "a-b:1", "a-b:2", "c:10")
    ],
    "mariadb": [
        {"server_id": server, "file": f"b.0000{number:02}", "pos": 4, "row": None, "gtid": gtid}
        for server in (1, 2) for number in (9, 10) for gtid in (None, "0-1-9", "0-1-10", "1-1-9")
    ],
    "postgresql": [
        {"sequence": json.dumps(sequence), "lsn": 50, "ts_ms": time}
        for sequence in ([None, "40"], ["40", "45"], ["40", "9"], ["100", "41"]) for time in (None, 5, 10)
    ],
}  # fmt: skip


@pytest.mark.parametrize("connector", WIRE)
def test_2_1_sql_orders_positions_as_the_rules_do(session: SparkSession, connector: str) -> None:
    found = [p for p in positions(connector, WIRE[connector]) if p is not None]
    found += [position.replace("000:", "001:", 1) for position in found]
    pairs = list(itertools.product(found, found))
    read = {text: read_position(connector, text) for text in found}
    expected = []
    for a, b in pairs:
        one, other = read[a], read[b]
        assert one is not None
        assert other is not None
        expected.append(compare(connector, one, other) > 0)
    assert later(session, connector, pairs) == expected
    assert len(set(found)) > 4
    assert set(expected) == {True, False}
