"""What the commands show of records that nobody could read: as they stand, whatever is in them."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from datetime import datetime, timezone
from pathlib import Path

import pyarrow as pa
import pytest
from click.testing import CliRunner
from deltalake import DeltaTable, write_deltalake
from rich.text import Text
from tests.support.config_files import write_config

from distributary.cli import main
from distributary.config.load import load
from distributary.control.overview import TableOverview, with_quarantine
from distributary.quarantine.listing import BadRecord, Summary, as_text, without_schema
from distributary.table_state import TableState

_AT = datetime(2024, 5, 1, tzinfo=timezone.utc)
_HEADERS = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))
_KEYS = {
    b'{"tag":"[/b]"}': '{"tag":"[/b]"}',
    b'{"code":"[draft] A1"}': '{"code":"[draft] A1"}',
    b"a:x:b": "a:x:b",
    b"\x1b[2Jgone\x07": r"\x1b[2Jgone\x07",
    b"two\nlines": r"two\x0alines",
    "é".encode(): "é",
}


@pytest.fixture
def config(tmp_path: Path) -> str:
    """A config whose quarantine table has one record of each key."""
    count = len(_KEYS)
    columns = {
        "topic": pa.array(["p.dbo.t"] * count),
        "partition": pa.array([0] * count, pa.int32()),
        "offset": pa.array(range(count), pa.int64()),
        "timestamp": pa.array([_AT] * count),
        "key": pa.array([*_KEYS], pa.binary()),
        "value": pa.array([b"a\tb\n\x1b[31mred"] * count, pa.binary()),
        "headers": pa.array([[{"key": "h", "value": b"\x1b]0;x"}]] * count, _HEADERS),
        "table": pa.array(["dbo.t"] * count),
        "reason": pa.array(["not-json"] * count),
        "message": pa.array(["it is no [bold]JSON"] * count),
        "quarantined_at": pa.array([_AT] * count),
        "replayed_at": pa.array([None] * count, pa.timestamp("us", "UTC")),
    }
    write_deltalake(tmp_path / "lake" / "_quarantine", pa.table(columns))
    return str(write_config(tmp_path, tables=[{"match": "*.*"}]))


def test_list_shows_keys_as_they_stand_on_a_line_each(config: str) -> None:
    result = CliRunner().invoke(main, ["quarantine", "list", "-c", config])
    assert result.exit_code == 0, result.output
    lines = [line for line in result.stdout.splitlines() if line.startswith("p.dbo.t")]
    assert len(lines) == len(_KEYS)
    for shown in _KEYS.values():
        assert any(f" {shown} " in line for line in lines), shown
    assert all("it is no [bold]JSON" in line for line in lines)
    assert "\x1b" not in result.stdout


def test_a_table_without_records_is_named_beside_those_that_have_some(config: str) -> None:
    result = CliRunner().invoke(main, ["quarantine", "list", "-c", config, "dbo.nope"])
    assert result.stdout == "no record of dbo.nope is in quarantine; there are some of dbo.t\n"
    asked = CliRunner().invoke(main, ["quarantine", "list", "-c", config, "dbo.nope", "--output", "json"])
    assert json.loads(asked.stdout) == {"counts": [], "records": []}


def test_on_a_narrow_terminal_each_record_has_its_coordinates_reason_and_key_in_full(
    config: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("distributary.cli.output.terminal_width", lambda: 60)
    result = CliRunner().invoke(main, ["quarantine", "list", "-c", config])
    assert result.exit_code == 0, result.output
    for number, shown in enumerate(_KEYS.values()):
        lines = f"p.dbo.t:0:{number}  [not-json]\n    it is no [bold]JSON\n    key: {shown}\n"
        assert lines in result.stdout


def test_records_that_were_all_applied_since_are_counted_and_the_option_that_lists_them_is_named(
    config: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    counted = Summary("dbo.t", "not-json", records=2, waiting=0)
    monkeypatch.setattr("distributary.quarantine.listing.summary", lambda _config: [counted])
    monkeypatch.setattr("distributary.quarantine.listing.newest_records", lambda *_, replayed: [])  # noqa: ARG005
    *_, last = CliRunner().invoke(main, ["quarantine", "list", "-c", config, "dbo.t"]).stdout.splitlines()
    assert last.endswith(f"quarantine list -c {config} dbo.t --all   # no record is waiting; these were applied since")


def test_an_overview_counts_the_records_that_are_still_there_and_wait(config: str, tmp_path: Path) -> None:
    tables = [TableOverview(name, name, "", TableState.UP_TO_DATE, 0, 0.0) for name in ("dbo.t", "dbo.u")]
    assert with_quarantine(tables, load(Path(config))) == tables  # nothing ever went there, so nothing is read
    tables[0] = replace(tables[0], quarantined=50)
    assert [table.in_quarantine for table in with_quarantine(tables, load(Path(config)))] == [len(_KEYS), 0]
    shutil.rmtree(tmp_path / "lake" / "_quarantine")
    assert [table.in_quarantine for table in with_quarantine(tables, load(Path(config)))] == [0, 0]
    (tmp_path / "lake" / "_quarantine" / "_delta_log").mkdir(parents=True)
    (tmp_path / "lake" / "_quarantine" / "_delta_log" / f"{0:020}.json").write_text("broken")
    assert [table.in_quarantine for table in with_quarantine(tables, load(Path(config)))] == [50, 0]


@pytest.mark.parametrize("width", [60, 80])
def test_on_a_narrow_terminal_the_counts_are_whole_and_long_names_are_folded(
    config: str, monkeypatch: pytest.MonkeyPatch, width: int
) -> None:
    name = "finance_reporting.monthly_statement_positions"
    counted = Summary(name, "column-name-taken-by-the-service", 1_204_511, 1_204_510)
    monkeypatch.setattr("distributary.quarantine.listing.summary", lambda _config: [counted])
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("COLUMNS", str(width))
    result = CliRunner().invoke(main, ["quarantine", "list", "-c", config])
    shown = Text.from_ansi(result.stdout).plain
    head, *lines = shown.partition("\n\n")[0].splitlines()
    assert head.split() == ["table", "reason", "records", "waiting"]
    assert lines[0].split()[-2:] == ["1204511", "1204510"]
    assert max(map(len, lines)) <= width
    assert "…" not in shown


def test_names_that_others_gave_steer_no_terminal(config: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A topic's name is bound by Kafka; table, reason and message are the service's, from what a record holds."""
    place = Path(config).parent / "lake" / "_quarantine"
    rows = DeltaTable(place).to_pyarrow_table().slice(0, 1)
    hostile = "\x1b]0;owned\x07\x1b[2J\u202egnp"
    for name in ("table", "reason", "message"):
        rows = rows.set_column(rows.column_names.index(name), name, pa.array([hostile]))
    headers = pa.array([[{"key": hostile, "value": None}, {"key": "h" * 1_000_000, "value": b"v"}]], _HEADERS)
    rows = rows.set_column(rows.column_names.index("headers"), "headers", headers)
    rows = rows.set_column(rows.column_names.index("offset"), "offset", pa.array([102], pa.int64()))
    write_deltalake(place, rows, mode="append")
    for terminal in (False, True):
        if terminal:
            monkeypatch.setattr("distributary.cli.output.terminal_width", lambda: 80)
        for words in (["list"], ["show", "p.dbo.t:0:102"], ["show", "p.dbo.t:0:102", "--output", "json"]):
            result = CliRunner().invoke(main, ["quarantine", words[0], "-c", config, *words[1:]])
            assert result.exit_code == 0, result.output
            assert not {"\x1b", "\x07", "\u202e"} & set(result.stdout), words
    assert (
        "header \\x1b]0;owned" in CliRunner().invoke(main, ["quarantine", "show", "-c", config, "p.dbo.t:0:102"]).stdout
    )


def test_all_commands_print_a_record_as_they_take_it(config: str) -> None:
    listed = CliRunner().invoke(main, ["quarantine", "list", "-c", config])
    assert "p.dbo.t:0:3 " in listed.stdout
    next_step = [line for line in listed.stdout.splitlines() if line.startswith("next: ")]
    assert next_step == [f"next: distributary quarantine show -c {config} p.dbo.t:0:0   # the whole record"]
    for coordinates in (["p.dbo.t:0:3"], ["p.dbo.t", "0", "3"]):
        shown = CliRunner().invoke(main, ["quarantine", "show", "-c", config, *coordinates, "--output", "json"])
        assert shown.exit_code == 0, shown.output
        record = json.loads(shown.stdout)
        assert (record["record"], record["topic"], record["offset"]) == ("p.dbo.t:0:3", "p.dbo.t", 3)
    in_lines = CliRunner().invoke(main, ["quarantine", "show", "-c", config, "p.dbo.t:0:3"])
    assert "record: p.dbo.t:0:3\n" in in_lines.stdout


@pytest.mark.parametrize(
    ("coordinates", "error"),
    [
        (["p.dbo.t:0:99"], "p.dbo.t:0:99 is not in quarantine"),
        (["p.dbo.t:0"], "'p.dbo.t:0' does not name a record"),
        (["p.dbo.t", "0", "x"], "'p.dbo.t 0 x' does not name a record"),
    ],
)
def test_show_refuses_what_names_no_record_in_quarantine(config: str, coordinates: list[str], error: str) -> None:
    result = CliRunner().invoke(main, ["quarantine", "show", "-c", config, *coordinates])
    assert result.exit_code == 2
    assert error in result.output


def test_a_header_without_a_value_is_shown_as_such(config: str) -> None:
    place = Path(config).parent / "lake" / "_quarantine"
    rows = DeltaTable(place).to_pyarrow_table().slice(0, 1)
    headers = pa.array([[{"key": "h", "value": None}]], _HEADERS)
    rows = rows.set_column(rows.column_names.index("headers"), "headers", headers)
    rows = rows.set_column(rows.column_names.index("offset"), "offset", pa.array([103], pa.int64()))
    write_deltalake(place, rows, mode="append")
    result = CliRunner().invoke(main, ["quarantine", "show", "-c", config, "p.dbo.t:0:103"])
    assert "header h without a value\n" in result.stdout


@pytest.mark.parametrize(
    ("reason", "replayed", "expected"),
    [
        ("not-json", None, "quarantine replay -c {} dbo.t   # apply it, after the cause is fixed"),
        ("bad-value", None, "quarantine replay -c {} dbo.t   # apply it, after the cause is fixed"),
        ("set-aside", None, "snapshot -c {} dbo.t   # have the row sent again"),
        ("not-json", _AT, ""),
    ],
)
def test_show_names_the_next_step(
    config: str, monkeypatch: pytest.MonkeyPatch, reason: str, replayed: datetime | None, expected: str
) -> None:
    record = BadRecord("dbo.t", "p.dbo.t", 0, 1, reason, "message", None, _AT, replayed)
    monkeypatch.setattr("distributary.quarantine.listing.find_record", lambda *_: record)
    result = CliRunner().invoke(main, ["quarantine", "show", "-c", config, "p.dbo.t:0:1"])
    found = [line for line in result.stdout.splitlines() if line.startswith("next: ")]
    assert found == ([f"next: distributary {expected.format(config)}"] if expected else [])
    assert ("belongs to no row" in result.stdout) == (reason == "not-json" and replayed is None)


def test_the_schema_of_a_key_is_left_out() -> None:
    schema = {"type": "struct", "fields": [{"type": "int32", "field": "id"}]}
    payload = '{"id":2,"price":1.10,"name":"Zo\\u00eb"}'
    assert without_schema(f'{{"schema":{json.dumps(schema)},"payload":{payload}}}'.encode()) == payload
    for text in ('{"id": 2}', '{"schema": 1}', "no JSON", '["schema","payload"]'):
        assert without_schema(text.encode()) == text
    assert without_schema(b"\xff\x00") == as_text(b"\xff\x00")
    assert without_schema(None) == ""


def test_a_record_is_shown_without_its_schemas_and_whole_as_json(config: str) -> None:
    place = Path(config).parent / "lake" / "_quarantine"
    rows = DeltaTable(place).to_pyarrow_table().slice(0, 1)
    value = '{"schema":{"type":"struct","fields":[]},"payload":{"op":"u"}}'
    for name, values in (("value", pa.array([value.encode()])), ("offset", pa.array([104], pa.int64()))):
        rows = rows.set_column(rows.column_names.index(name), name, values)
    write_deltalake(place, rows, mode="append")
    words = ["quarantine", "show", "-c", config, "p.dbo.t:0:104"]
    assert 'value: {"op":"u"}\n' in CliRunner().invoke(main, words).stdout
    assert json.loads(CliRunner().invoke(main, [*words, "--output", "json"]).stdout)["value"] == value


def test_show_leaves_lines_as_they_are_and_steers_no_terminal(config: str) -> None:
    result = CliRunner().invoke(main, ["quarantine", "show", "-c", config, "p.dbo.t:0:0"])
    assert result.exit_code == 0, result.output
    assert "value: a\tb\n\\x1b[31mred" in result.stdout.replace("        b", "\tb")
    assert "header h: \\x1b]0;x" in result.stdout
    assert "\x1b" not in result.stdout


@pytest.mark.parametrize("microseconds", [2**63 - 1, -(2**63) + 1])
def test_a_record_of_a_time_that_python_does_not_have_is_shown(config: str, microseconds: int) -> None:
    """Producers name the time, and Kafka before 4.0 takes any."""
    place = Path(config).parent / "lake" / "_quarantine"
    rows = DeltaTable(place).to_pyarrow_table().slice(0, 1)
    far = pa.array([microseconds], pa.int64()).view(pa.timestamp("us", "UTC"))
    for name, values in (("timestamp", far), ("offset", pa.array([100], pa.int64()))):
        rows = rows.set_column(rows.column_names.index(name), name, values)
    write_deltalake(place, rows, mode="append")
    for words in (["list"], ["show", "p.dbo.t:0:100"], ["show", "p.dbo.t:0:100", "--output", "json"]):
        result = CliRunner().invoke(main, ["quarantine", words[0], "-c", config, *words[1:]])
        assert result.exit_code == 0, result.output
    assert json.loads(result.stdout)["timestamp"].startswith(("9999", "0001"))


def test_keys_and_values_without_end_do_not_flood_the_list(config: str) -> None:
    place = Path(config).parent / "lake" / "_quarantine"
    rows = DeltaTable(place).to_pyarrow_table().slice(0, 1)
    for name, values in (("key", pa.array([b"k" * 1_000_000], pa.binary())), ("offset", pa.array([101], pa.int64()))):
        rows = rows.set_column(rows.column_names.index(name), name, values)
    write_deltalake(place, rows, mode="append")
    result = CliRunner().invoke(main, ["quarantine", "list", "-c", config])
    assert result.exit_code == 0, result.output
    assert len(result.stdout) < 10_000
