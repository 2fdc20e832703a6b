"""The tables in a terminal: narrow and wide, without colour, and what is to be done about them."""

from __future__ import annotations

import io
from dataclasses import replace

import pytest
from rich.console import Console

from distributary.cli.output import Harmless
from distributary.cli.tables_view import grid, remarks
from distributary.cli.watching import View
from distributary.control.overview import TableOverview
from distributary.table_state import TableState

NOW = 1_700_000_000.0
LONG = "finance_reporting.monthly_statement_positions"
HALT = {"code": "records-lost", "message": "offsets 5 to 9 are gone", "fix": "accept the loss"}
TABLES = [
    TableOverview("dbo.customers", "t", "/l", TableState.UP_TO_DATE, 0, 0.0, "0000002a:01", NOW - 5, in_quarantine=3,
                  remembered_keys=2, memory_bytes=2_100),
    TableOverview("dbo.orders", "t", "/l", TableState.HALTED, 18_234, 720.0, "00000031:02", NOW - 700, error=HALT),
    TableOverview(LONG, "t", "/l", TableState.BEHIND, 1_204_511, 95.0, "00000031:03", NOW - 61, orphaned_rows=2,
                  layout="rewrite"),
]  # fmt: skip


def lines_of(shown: object, width: int, height: int = 40) -> list[str]:
    text = io.StringIO()
    Console(file=text, width=width, height=height, highlight=False, no_color=True).print(shown)
    return [line.rstrip() for line in text.getvalue().splitlines()]


def test_a_wide_terminal_has_all_columns() -> None:
    head, *rows = lines_of(grid(TABLES, width=200, now=NOW), 200)
    assert head.split("  ")[0] == "table"
    for name in (
        "state",
        "lag",
        "behind by",
        "last commit",
        "in quarantine",
        "orphaned",
        "layout",
        "memory",
        "position",
    ):
        assert name in head
    assert len(rows) == 3
    assert rows[0].split() == [
        *("dbo.customers", "up", "to", "date", "0", "5.0", "s", "ago", "3", "auto"),
        *("2", "keys,", "2.1", "kB", "0000002a:01"),
    ]
    for text in ("1,204,511", "1 min", "rewrite"):
        assert text in rows[2]


def test_a_narrow_terminal_has_the_first_columns_whole_and_folds_long_names() -> None:
    head, *rows = lines_of(grid(TABLES, width=80, now=NOW), 80)
    assert head.split() == ["table", "state", "lag", "behind", "by", "last", "commit"]
    assert max(map(len, (head, *rows))) <= 80
    assert "…" not in "".join(rows)
    assert "".join(line[:32].strip() for line in rows[2:]) == LONG
    assert "12 min" in rows[1]


@pytest.mark.parametrize("width", [40, 60])
def test_name_and_state_are_always_there(width: int) -> None:
    head, *_ = lines_of(grid(TABLES, width=width, now=NOW), width)
    assert head.split()[:2] == ["table", "state"]


def test_what_goes_into_a_file_has_everything_on_one_line_each() -> None:
    head, *rows = lines_of(grid(TABLES, now=NOW), 1000)
    assert len(rows) == 3
    assert "position" in head


def test_each_remark_names_the_command_with_the_config_that_was_given() -> None:
    paused = replace(TABLES[0], state=TableState.PAUSED, paused="distributary pause since 2026-01-01: load")
    by_config = replace(TABLES[0], state=TableState.PAUSED, paused="paused: true in the config")
    everything = replace(TABLES[0], state=TableState.PAUSED, paused="distributary pause of all tables")
    found = remarks([*TABLES, paused, by_config, everything], "my config.yaml")
    assert [remark.command for remark in found] == [
        "distributary resume -c 'my config.yaml' dbo.orders --accept-loss",
        f"distributary resume -c 'my config.yaml' {LONG} --reconcile",
        "distributary unpause -c 'my config.yaml' dbo.customers",
        "",
        "distributary unpause -c 'my config.yaml'",
    ]


def test_the_live_view_says_what_it_has_no_room_for() -> None:
    many = [replace(TABLES[0], table=f"dbo.t{number:04}") for number in range(500)]
    lines = lines_of(Harmless(View([*many, TABLES[1]], {})), 80, height=24)
    assert len(lines) <= 24
    assert lines[0].startswith("501 tables: 1 halted, 500 up to date")
    assert any("dbo.orders" in line and "halted" in line for line in lines)
    shown = sum("up to date" in line for line in lines[1:])
    assert lines[-1] == f"… and {500 - shown} more tables"


def test_remarks_leave_room_for_the_tables() -> None:
    halted = [replace(TABLES[1], table=f"dbo.h{number:02}") for number in range(40)]
    lines = lines_of(Harmless(View([*halted, TABLES[0]], {})), 80, height=24)
    assert len(lines) <= 24
    assert any(line.startswith("… more below") for line in lines)
    assert sum("18,234" in line for line in lines) >= 5


def test_an_unknown_lag_is_no_number_and_its_remark_says_why() -> None:
    table = replace(TABLES[0], state=TableState.BEHIND, lag_records=None, lag_seconds=None)
    _, row = lines_of(grid([table], width=200, now=NOW), 200)
    assert "unknown" in row
    [remark] = remarks([table])
    assert "beyond the topic's end" in remark.text
    assert [one.text for one in remarks([replace(table, error=HALT)])] != [remark.text]
    assert "unknown" in "\n".join(lines_of(View([table, TABLES[1]], {}), 200))
