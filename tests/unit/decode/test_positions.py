"""Positions of all connectors and of old versions sort as texts in the source's order."""

from __future__ import annotations

from typing import Any

import pytest
from tests.support.decoding import decode_all, plain_change, positions, rejections

from distributary.decode.options import DecodeOptions
from distributary.decode.position import offset_position

Source = dict[str, Any]


def test_2_1_oracle_positions_sort_as_numbers() -> None:
    found = positions(
        "oracle",
        [
            {"commit_scn": None, "scn": "999"},  # a row that a snapshot read as of this scn
            {"commit_scn": 1000, "scn": 990},
            {"commit_scn": "1000", "scn": "999"},
            {"commit_scn": "1000", "scn": "1000", "rs_id": " 0x000112.00001d96.0010 ", "ssn": 0},
            {"commit_scn": "1000", "scn": "1000", "rs_id": "0x000112.00001D96.0010", "ssn": 1},
            {"commit_scn": "1000", "scn": "1000", "rs_id": "0x000112.00001d97.0010", "ssn": 0},
            {"commit_scn": "18446744073709551614", "scn": "10"},
        ],
    )
    assert None not in found
    assert found == sorted(found, key=str)
    assert len(set(found)) == len(found)
    assert positions("oracle", [{"commit_scn": None, "scn": None}, {"commit_scn": "x", "scn": None}]) == [
        None,
        None,
    ]


def test_2_1_sqlservers_nulls_sort_lowest_and_its_numbers_as_numbers() -> None:
    commit, change = "00000027:00000758:0003", "00000027:00000758:0001"
    found = positions(
        "sqlserver",
        [
            {"commit_lsn": commit},
            {"commit_lsn": commit, "change_lsn": change, "event_serial_no": 9},
            {"commit_lsn": commit, "change_lsn": change, "event_serial_no": 10},
            {"commit_lsn": "00000027:00000758:000A", "change_lsn": "00000027:00000757:0001"},
        ],
    )
    assert found == sorted(found, key=str)
    assert len(set(found)) == 4


def test_2_1_binlog_positions_sort_by_the_files_number() -> None:
    places = ((9, 99, 0), (10, 4, 0), (10, 4, 1))
    found = positions("mysql", [{"file": f"b.{file}", "pos": pos, "row": row} for file, pos, row in places])
    assert found == sorted(found, key=str)
    assert len(set(found)) == 3


def test_2_1_postgresqls_commit_levels_sort_as_numbers() -> None:
    found = positions("postgresql", [{"sequence": f'["{at}","{lsn}"]'} for at, lsn in ((9, 100), (10, 50), (10, 60))])
    assert found == sorted(found, key=str)
    assert positions("postgresql", [{"sequence": '[null,"55"]'}]) == [f"000:{55:020}?{55:020}@{0:013}"]


def test_1_3_offsets_order_a_partition_and_timestamps_two() -> None:
    first, other, second = offset_position(1_000, 0, 6), offset_position(1_500, 1, 1), offset_position(2_000, 0, 5)
    assert first < other < second
    assert offset_position(-5, 0, 0) == offset_position(0, 0, 0)


def test_1_4_old_versions_write_numbers_as_text_and_leave_fields_out() -> None:
    lsns = {"commit_lsn": "00000027:00000758:0003", "change_lsn": "00000027:00000758:0001"}
    number, text, missing = positions(
        "sqlserver", [{**lsns, "event_serial_no": 2}, {**lsns, "event_serial_no": "2"}, {**lsns}]
    )
    assert number == text
    assert str(missing) < str(number)
    flags = positions("sqlserver", [{**lsns, "snapshot": flag} for flag in (False, "false", None, True)])
    assert len(set(flags)) == 1


LSN, LONG_LSN = "00000027:00000758:0003", "00000027:00000ac0:0000000000000002"
LAST_LONG_LSN = "ffffffff:ffffffff:ffffffffffffffff"
WELL_FORMED: dict[str, list[Source]] = {
    "sqlserver": [
        {"commit_lsn": LSN, "change_lsn": "FFFFFFFF:ffffffff:FFFE", "event_serial_no": str(2**63 - 1)},
        {"commit_lsn": LSN, "change_lsn": "NULL"},
    ],
    "db2": [{"commit_lsn": LONG_LSN, "change_lsn": LONG_LSN}],
    "postgresql": [
        {"sequence": f'["0", "{2**63 - 2}"]', "lsn": 2**63 - 2},
        {"sequence": "[null,7]", "lsn": "7"},
        {"sequence": None, "lsn": 7},
    ],
    "mysql": [{"file": "mysql-bin.2147483647", "pos": 2**63 - 1, "row": 2**31 - 1}, {"file": "b.1", "pos": 4}],
    "oracle": [{"commit_scn": str(2**64 - 2), "scn": "1", "rs_id": " 0x000112.00001d96.0010 ", "ssn": 1}],
}
MALFORMED: dict[str, list[Source]] = {
    "sqlserver": [
        *({"commit_lsn": lsn} for lsn in ("zzzz", "", LSN + "\n", f" {LSN}", LSN + "0", LONG_LSN, "1:2:3", "é" * 22)),
        *({"commit_lsn": LSN, "change_lsn": lsn} for lsn in ("zzzzzzzz:zzzzzzzz:zzzz", "~", LONG_LSN)),
        *({"commit_lsn": lsn} for lsn in ("ffffffff:ffffffff:ffff", "FFFFFFFF:FFFFFFFF:FFFF")),
        *({"commit_lsn": LSN, "event_serial_no": n} for n in (-1, "x", "9" * 19, "1" * 30, "1\n")),
    ],
    "db2": [
        *({"commit_lsn": lsn} for lsn in ("zzzz", LSN, LAST_LONG_LSN)),
        {"commit_lsn": LONG_LSN, "change_lsn": "~"},
    ],
    "postgresql": [
        *({"sequence": text, "lsn": 7} for text in ("", "zz", '["zz","7"]', "[7]", '["1","2","3"]', '["1","2"]\n')),
        *({"sequence": f'["1","{n}"]', "lsn": 7} for n in (2**63 - 1, 2**63, 2**64, "9" * 20, -1)),
        *({"sequence": f'["{n}","7"]', "lsn": 7} for n in (2**63 - 1, 2**64)),
        *({"sequence": '["1","7"]', "lsn": n} for n in (2**63 - 1, 2**64, "z", -1)),
        *({"sequence": None, "lsn": 7, "ts_ms": time} for time in ("zzzz", -1, 253_402_300_800_000)),
    ],
    "mysql": [
        *({"file": name, "pos": 4} for name in ("zzzz", "b.2147483648", "b." + "9" * 20, "b.1x", "b.1\n")),
        *({"file": "b.1", "pos": n} for n in (2**63, "z", -1, "1.5")),
        *({"file": "b.1", "pos": 4, "row": n} for n in (2**31, "z", -1)),
    ],
    "oracle": [
        *({"commit_scn": n, "scn": "1"} for n in ("z", 2**64 - 1, 2**64, "9" * 20, -1)),
        *({"commit_scn": "1", "scn": n} for n in ("z", 2**64 - 1, 2**64)),
        *({"commit_scn": "1", "scn": "1", **more} for more in ({"ssn": "z"}, {"rs_id": "~~~"}, {"rs_id": "0" * 100})),
    ],
}


NOWHERE: dict[str, list[Source]] = {
    "sqlserver": [{"commit_lsn": "00000000:00000000:0000", "change_lsn": LSN}],
    "db2": [{"commit_lsn": "00000000:00000000:0000000000000000", "change_lsn": LONG_LSN}],
    "postgresql": [{"sequence": '["1","0"]', "lsn": 0}, {"sequence": '[null,"0"]'}, {"sequence": None, "lsn": 0}],
}
"""What stands for no place: a change there would lie before all that was read, as if the source had gone back."""


@pytest.mark.parametrize("connector", NOWHERE)
def test_2_1_zero_is_no_place_of_a_change(connector: str) -> None:
    records = [
        plain_change(index, {"id": 1}, source={"connector": connector, **source})
        for index, source in enumerate(NOWHERE[connector])
    ]
    decoded, _ = decode_all(records, DecodeOptions(connector))
    assert rejections(decoded) == dict.fromkeys(range(len(records)), "bad-position")
    assert None not in positions(connector, NOWHERE[connector], "r")


@pytest.mark.parametrize("connector", MALFORMED)
@pytest.mark.parametrize("op", ["u", "r"])
def test_2_1_a_malformed_position_is_none(connector: str, op: str) -> None:
    good, bad = WELL_FORMED[connector], MALFORMED[connector]
    assert None not in positions(connector, good, op)
    found = positions(connector, bad, op)
    assert [source for source, position in zip(bad, found, strict=True) if position is not None] == []


@pytest.mark.parametrize("connector", MALFORMED)
def test_2_1_a_record_with_a_malformed_position_is_rejected_by_itself(connector: str) -> None:
    sources = [WELL_FORMED[connector][0], *MALFORMED[connector], {}]
    records = [
        plain_change(index, {"id": 1}, source={"connector": connector, **source})
        for index, source in enumerate(sources)
    ]
    decoded, _ = decode_all(records, DecodeOptions(connector))
    last = len(sources) - 1
    assert rejections(decoded) == {**dict.fromkeys(range(1, last), "bad-position"), last: "no-position"}
    assert decoded.events["offset"].to_pylist() == [0]


def test_2_1_a_gtid_that_is_none_leaves_the_place_in_the_file() -> None:
    place = {"server_id": 1, "file": "b.000010", "pos": 4, "row": 0}
    tagged = "3e11fa47-71ca-11e1-9e33-c80aa9429562:tag:7"
    found = positions("mysql", [{**place, "gtid": g} for g in (None, "a/b/c:9", "zzzz", tagged)])
    assert found[0] == found[1] == found[2]
    assert str(found[3]).startswith(str(found[0]) + "/1/")
    assert positions("mysql", [{**place, "server_id": "1/2", "gtid": tagged}]) == found[:1]
