"""Positions of the connectors and of old versions, and which of two comes later."""

from __future__ import annotations

import itertools
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable, QueryBuilder, write_deltalake
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


LSN, LONG_LSN = "00000027:00000758:0003", "00000027:00000ac0:0000000000000002"
WELL_FORMED: dict[str, list[Source]] = {
    "sqlserver": [
        {"commit_lsn": LSN, "change_lsn": "FFFFFFFF:ffffffff:FFFF", "event_serial_no": str(2**63 - 1)},
        {"commit_lsn": LSN, "change_lsn": "NULL"},
    ],
    "db2": [{"commit_lsn": LONG_LSN, "change_lsn": LONG_LSN}],
    "postgresql": [
        {"sequence": '["0", "18446744073709551615"]', "lsn": 2**64 - 1},
        {"sequence": "[null,7]", "lsn": "7"},
        {"sequence": None, "lsn": 7},
    ],
    "mysql": [{"file": "mysql-bin.2147483647", "pos": 2**63 - 1, "row": 2**31 - 1}, {"file": "b.1", "pos": 4}],
    "oracle": [{"commit_scn": str(2**64 - 1), "scn": "1", "rs_id": " 0x000112.00001d96.0010 ", "ssn": 1}],
}
MALFORMED: dict[str, list[Source]] = {
    "sqlserver": [
        *({"commit_lsn": lsn} for lsn in ("zzzz", "", LSN + "\n", f" {LSN}", LSN + "0", LONG_LSN, "1:2:3", "é" * 22)),
        *({"commit_lsn": LSN, "change_lsn": lsn} for lsn in ("zzzzzzzz:zzzzzzzz:zzzz", "~", LONG_LSN)),
        *({"commit_lsn": LSN, "event_serial_no": n} for n in (-1, "x", "9" * 19, "1" * 30, "1\n")),
    ],
    "db2": [{"commit_lsn": "zzzz"}, {"commit_lsn": LSN}, {"commit_lsn": LONG_LSN, "change_lsn": "~"}],
    "postgresql": [
        *({"sequence": text, "lsn": 7} for text in ("", "zz", '["zz","7"]', "[7]", '["1","2","3"]', '["1","2"]\n')),
        *({"sequence": f'["1","{n}"]', "lsn": 7} for n in (2**64, "9" * 20, -1)),
        {"sequence": f'["{2**64}","7"]', "lsn": 7},
        *({"sequence": '["1","7"]', "lsn": n} for n in (2**64, "z", -1)),
    ],
    "mysql": [
        *({"file": name, "pos": 4} for name in ("zzzz", "b.2147483648", "b." + "9" * 20, "b.1x", "b.1\n")),
        *({"file": "b.1", "pos": n} for n in (2**63, "z", -1, "1.5")),
        *({"file": "b.1", "pos": 4, "row": n} for n in (2**31, "z", -1)),
    ],
    "oracle": [
        *({"commit_scn": n, "scn": "1"} for n in ("z", 2**64, "9" * 20, -1)),
        *({"commit_scn": "1", "scn": n} for n in ("z", 2**64)),
        *({"commit_scn": "1", "scn": "1", **more} for more in ({"ssn": "z"}, {"rs_id": "~~~"}, {"rs_id": "0" * 100})),
    ],
}


@pytest.mark.parametrize("connector", MALFORMED)
@pytest.mark.parametrize("op", ["u", "r"])
def test_2_1_a_malformed_position_is_none(session: SparkSession, connector: str, op: str) -> None:
    good, bad = WELL_FORMED[connector], MALFORMED[connector]
    assert None not in positions(session, connector, good, op)
    found = positions(session, connector, bad, op)
    assert [source for source, position in zip(bad, found, strict=True) if position is not None] == []


def test_2_1_a_gtid_that_is_none_leaves_the_place_in_the_file(session: SparkSession) -> None:
    place = {"server_id": 1, "file": "b.000010", "pos": 4, "row": 0}
    tagged = "3e11fa47-71ca-11e1-9e33-c80aa9429562:tag:7"
    found = positions(session, "mysql", [{**place, "gtid": g} for g in (None, "a/b/c:9", "zzzz", tagged)])
    assert found[0] == found[1] == found[2]
    assert str(found[3]).startswith(str(found[0]) + "/1/")
    assert positions(session, "mysql", [{**place, "server_id": "1/2", "gtid": tagged}]) == found[:1]


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


@pytest.mark.parametrize("connector", [*WIRE, BY_OFFSET])
def test_2_1_the_library_that_commits_small_slices_orders_positions_as_spark_does(
    session: SparkSession, connector: str, tmp_path: Path
) -> None:
    if connector == BY_OFFSET:
        found = [f"000:@{at:015}/{partition:010}/{at:020}" for at, partition in itertools.product((1, 9, 10), range(2))]
    else:
        ops = "ur" if connector == "postgresql" else "u"
        found = [p for op in ops for p in positions(session, connector, WIRE[connector], op) if p is not None]
    found += [position.replace("000:", "001:", 1) for position in found]
    pairs = list(itertools.product(found, found))
    write_deltalake(tmp_path, pa.table({"a": [a for a, _ in pairs], "b": [b for _, b in pairs]}))
    query = f"SELECT a, b, {is_later(connector, 'a', 'b')} AS later FROM pairs"
    by_library = pa.table(QueryBuilder().register("pairs", DeltaTable(tmp_path)).execute(query).read_all())
    rows = by_library.to_pylist()
    assert [row["later"] for row in rows] == later(session, connector, [(row["a"], row["b"]) for row in rows])
    assert len(set(found)) > 4
    assert {row["later"] for row in rows} == {True, False}
