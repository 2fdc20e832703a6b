"""Positions of the connectors and of old versions, and which of two comes later."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import pyarrow as pa
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from distributary.decode.envelope import source_fields
from distributary.decode.position import BY_OFFSET, is_later, position_sql

Source = dict[str, Any]


def positions(session: SparkSession, connector: str, sources: Sequence[Source], op: str = "u") -> list[str | None]:
    """The positions of records with these source blocks, as they are written in JSON."""
    texts = [json.dumps({"op": op, "source": source}) for source in sources]
    ddl = f"op STRING, source STRUCT<{', '.join(f'{n}: STRING' for n in source_fields(connector))}>"
    frame = session.createDataFrame(pa.table({"j": texts})).select(F.from_json("j", ddl).alias("p"))
    found = frame.select(F.expr(position_sql(connector, "p.source", "p.op", 0)).alias("pos")).toArrow()
    return list(found.column("pos").to_pylist())


def later(session: SparkSession, connector: str, pairs: Sequence[tuple[str | None, str | None]]) -> list[bool]:
    """Whether the first of each pair comes after the second."""
    frame = session.createDataFrame(pa.table({"a": [a for a, _ in pairs], "b": [b for _, b in pairs]}))
    return list(frame.select(F.expr(is_later(connector, "a", "b")).alias("x")).toArrow().column("x").to_pylist())


def test_2_1_oracle_positions_sort_as_numbers(session: SparkSession) -> None:
    found = positions(
        session,
        "oracle",
        [
            {"commit_scn": None, "scn": "999"},  # a row that a snapshot read as of this scn
            {"commit_scn": 1000, "scn": 990},
            {"commit_scn": "1000", "scn": "999"},
            {"commit_scn": "1000", "scn": "1000", "rs_id": " 0x000112.00001d96.0010 ", "ssn": 0},
            {"commit_scn": "1000", "scn": "1000", "rs_id": "0x000112.00001D96.0010", "ssn": 1},
            {"commit_scn": "1000", "scn": "1000", "rs_id": "0x000112.00001d97.0010", "ssn": 0},
            {"commit_scn": "18446744073709551615", "scn": "10"},
        ],
    )
    assert None not in found
    assert found == sorted(found, key=str)
    assert len(set(found)) == len(found)
    assert positions(session, "oracle", [{"commit_scn": None, "scn": None}, {"commit_scn": "x", "scn": None}]) == [
        None,
        None,
    ]


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
    pos = dict(zip(sources, positions(session, "mysql", list(sources.values())), strict=True))
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
    maria = positions(session, "mariadb", [at(1, "b.000010", 4, "0-1-270"), at(2, "b.000003", 4, "0-2-1271")])
    assert later(session, "mariadb", [(maria[1], maria[0]), (maria[0], maria[1])]) == [True, False]


def test_1_3_offsets_order_a_partition_and_timestamps_two(session: SparkSession) -> None:
    frame = session.range(1).selectExpr("CAST(NULL AS STRUCT<op: STRING>) AS p", "*")
    records = [(2000, 0, 5), (1000, 0, 6), (1500, 1, 1)]
    first, second, other = (
        frame.selectExpr(f"timestamp_millis({ms}) AS timestamp", f"{p} AS partition", f"{o}L AS offset")
        .select(F.expr(position_sql(BY_OFFSET, "p", "p.op", epoch)))
        .collect()[0][0]
        for (ms, p, o), epoch in zip(records, (0, 0, 0), strict=True)
    )
    raised = "001" + first[3:]
    pairs = [(second, first), (first, second), (other, second), (first, other), (raised, second), (second, raised)]
    assert later(session, BY_OFFSET, pairs) == [True, False, True, True, True, False]


def test_1_4_old_versions_write_numbers_as_text_and_leave_fields_out(session: SparkSession) -> None:
    lsns = {"commit_lsn": "00000027:00000758:0003", "change_lsn": "00000027:00000758:0001"}
    number, text, missing = positions(
        session, "sqlserver", [{**lsns, "event_serial_no": 2}, {**lsns, "event_serial_no": "2"}, {**lsns}]
    )
    assert number == text
    assert str(missing) < str(number)
    flags = positions(session, "sqlserver", [{**lsns, "snapshot": flag} for flag in (False, "false", None, True)])
    assert len(set(flags)) == 1
    # Debezium 1.0 for PostgreSQL has no sequence: the lsn is all there is.
    older, newer = positions(session, "postgresql", [{"lsn": 99, "snapshot": False}, {"lsn": 100, "txId": 7}])
    assert later(session, "postgresql", [(newer, older), (older, newer)]) == [True, False]
    with_sequence = positions(session, "postgresql", [{"lsn": 120, "sequence": '["110","120"]'}])[0]
    assert later(session, "postgresql", [(with_sequence, newer), (newer, with_sequence)]) == [True, False]
