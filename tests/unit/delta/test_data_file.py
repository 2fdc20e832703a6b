"""Data files: rows that are written are read again, and the statistics in the log are true."""

from __future__ import annotations

import json
import math
import re
from datetime import date, datetime, timedelta, timezone
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.delta_log import HandMadeTable, array_of, field, struct

from distributary.delta.data_file import FileOptions, NewFile, fitted, write_files
from distributary.delta.data_reader import DataReader
from distributary.delta.live_file import LiveFile
from distributary.delta.log_reader import LogReader
from distributary.delta.partitions import constant
from distributary.delta.snapshot import DeltaSnapshot
from distributary.delta.statistics import file_statistics, indexed_columns
from distributary.delta.storage import TableFiles
from distributary.delta.table_schema import TableSchema
from distributary.errors import TableHalt

UTC = timezone.utc


def statistics(column: pa.Array) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(file_statistics(pa.table({"x": column}), {"x"}), parse_float=Decimal)
    assert found["numRecords"] == len(column)
    return {"min": found["minValues"].get("x"), "max": found["maxValues"].get("x"), "nulls": found["nullCount"]["x"]}


@pytest.mark.parametrize(
    ("values", "kind", "low", "high"),
    [
        ([3, None, -(2**63)], pa.int64(), -(2**63), 3),
        ([True, False], pa.bool_(), None, None),
        ([b"a"], pa.binary(), None, None),
        ([None], pa.int32(), None, None),
        ([1.5, -2.0], pa.float64(), Decimal("-2.0"), Decimal("1.5")),
        ([1.5, math.nan], pa.float64(), Decimal("1.5"), None),
        ([math.nan], pa.float32(), None, None),
        ([-math.inf, 2.0, math.inf], pa.float64(), None, None),
        (["b", "ä", "a"], pa.string(), "a", "ä"),
        (["x" * 33], pa.string(), "x" * 32, "x" * 32 + "\U0010ffff"),
        (["x" * 32 + "\U0010ffff" * 2], pa.string(), "x" * 32, None),
        ([date(1, 1, 1), date(9999, 12, 31)], pa.date32(), "0001-01-01", "9999-12-31"),
        (
            [Decimal("12345678901234567890123456789.123456789"), Decimal("-0.000000001")],
            pa.decimal128(38, 9),
            Decimal("-0.000000001"),
            Decimal("12345678901234567890123456789.123456789"),
        ),
        (
            [datetime(2020, 1, 2, 3, 4, 5, 123_001, UTC), datetime(1969, 12, 31, 23, 59, 59, 999_999, UTC)],
            pa.timestamp("us", "UTC"),
            "1969-12-31T23:59:59.999Z",
            "2020-01-02T03:04:05.124Z",
        ),
        ([datetime.fromisoformat("2020-01-02")], pa.timestamp("us"), *["2020-01-02T00:00:00.000"] * 2),
        ([{"a": 1}, None], pa.struct({"a": pa.int64()}), {"a": 1}, {"a": 1}),
    ],
)
def test_bounds_are_as_delta_has_them(values: list[Any], kind: pa.DataType, low: Any, high: Any) -> None:
    found = statistics(pa.array(values, kind))
    assert (found["min"], found["max"]) == (low, high)
    nulls = sum(value is None for value in values)
    assert found["nulls"] == ({"a": 1} if pa.types.is_struct(kind) else nulls)


def test_times_that_have_no_text_have_no_bound() -> None:
    days = pa.array([-(2**31), 2**31 - 1], pa.int32()).view(pa.date32())
    times = pa.array([-(2**62), 2**62], pa.int64()).view(pa.timestamp("us"))
    for column in (days, times):
        assert statistics(column) == {"min": None, "max": None, "nulls": 0}


@given(st.lists(st.text(alphabet=st.sampled_from("a\U0010ffff\ud7ff "), max_size=40), min_size=1))
def test_bounds_of_texts_hold_all_of_them(texts: list[str]) -> None:
    found = statistics(pa.array(texts))
    assert all(found["min"].encode() <= text.encode() for text in texts)
    assert found["max"] is None or all(text.encode() <= found["max"].encode() for text in texts)


@given(st.lists(st.datetimes(max_value=datetime.fromisoformat("9999-12-31")), min_size=1))
def test_bounds_of_times_hold_all_of_them(times: list[datetime]) -> None:
    found = statistics(pa.array(times, pa.timestamp("us")))
    low, high = (datetime.fromisoformat(found[end]) for end in ("min", "max"))
    assert low <= min(times) < low + timedelta(milliseconds=1)
    assert max(times) <= high < max(times) + timedelta(milliseconds=1)


def test_statistics_are_of_the_columns_that_the_properties_name() -> None:
    fields = [field(f"c{i}", "long") for i in range(40)]
    fields[1] = field("c1", struct(field("a", "long"), field("b", "long")))
    columns = TableSchema.of(struct(*fields, field("x.y", "long"))).columns
    assert indexed_columns(columns, {}, ["c39"]) == {*(f"c{i}" for i in range(31)), "c39"}
    assert indexed_columns(columns, {"delta.dataSkippingNumIndexedCols": "2"}, []) == {"c0", "c1"}
    assert indexed_columns(columns, {"delta.dataSkippingNumIndexedCols": "0"}, []) == set()
    assert len(indexed_columns(columns, {"delta.dataSkippingNumIndexedCols": "-1"}, [])) == 41
    named = {"delta.dataSkippingStatsColumns": "c3, c1.a,`x.y`", "delta.dataSkippingNumIndexedCols": "9"}
    assert indexed_columns(columns, named, ["c9"]) == {"c1", "c3", "c9", "x.y"}


def snapshot_of(path: Path) -> tuple[TableFiles, DeltaSnapshot]:
    files = TableFiles(str(path))
    return files, LogReader(files).newest().snapshot


MAPPED = [
    field("id", "long", number=1),
    field("a b", array_of(struct(field("v", "integer", number=3))), number=2),
    field("day", "date", number=4),
    field("who", "string", number=5),
    field("amount", "decimal(12,2)", number=6),
]
ROWS = pa.table(
    {
        "id": [5, 3, 9, 1],
        "a b": pa.array([[{"v": 1}, None], None, [], [{"v": None}]], pa.list_(pa.struct({"v": pa.int32()}))),
        "day": pa.array([date(2020, 1, 1), date(2020, 1, 1), None, date(2020, 1, 1)]),
        "who": ["a/b=c%", "a/b=c%", "", "x" * 300],
        "amount": pa.array([Decimal("1.10"), None, Decimal("-3.00"), Decimal("0.00")], pa.decimal128(12, 2)),
    }
)


def test_partitioned_and_mapped_rows_come_back(tmp_path: Path) -> None:
    HandMadeTable(tmp_path).create(*MAPPED, partition_by=["day", "who"])
    files, table = snapshot_of(tmp_path)
    written = write_files(files, table, fitted(ROWS, table.schema), ["id"], FileOptions(group_rows=1))
    assert len(written) == 3
    reader, names = DataReader(files, table.schema), ROWS.column_names
    back = pa.concat_tables([piece for new in written for piece in reader.pieces(new.file, names)])
    expected = sorted(ROWS.to_pylist(), key=repr)
    expected[-1 if expected[-1]["id"] == 9 else [row["id"] for row in expected].index(9)]["who"] = None
    assert sorted(back.to_pylist(), key=repr) == sorted(expected, key=repr)
    by_id = {new.rows.column("id")[0].as_py(): new for new in written}
    assert by_id[3].rows.column("id").to_pylist() == [3, 5]  # sorted by key
    assert by_id[3].file.partition_values == {"col-4": "2020-01-01", "col-5": "a/b=c%"}
    assert by_id[9].file.partition_values == {"col-4": None, "col-5": None}
    assert by_id[3].file.stats["minValues"] == {"col-1": 3, "col-6": 1.1}
    stored = pq.read_schema(files.filesystem_path(by_id[3].file.path))
    assert stored.names == ["col-1", "col-2", "col-6"]
    assert stored.field("col-2").metadata[b"PARQUET:field_id"] == b"2"
    assert stored.field("col-2").type.value_type.field(0).name == "col-3"
    assert by_id[3].file.size == Path(files.filesystem_path(by_id[3].file.path)).stat().st_size


def test_large_batches_become_several_files(tmp_path: Path) -> None:
    HandMadeTable(tmp_path).create(field("id", "long"))
    files, table = snapshot_of(tmp_path)
    rows = pa.table({"id": np.random.default_rng(1).permutation(10_000)})
    written = write_files(files, table, rows, ["id"], FileOptions(target_bytes=30_000, group_rows=1_000))
    assert [new.file.row_count for new in written] == [3334, 3334, 3332]
    assert [(new.file.stats["minValues"]["id"], new.file.stats["maxValues"]["id"]) for new in written] == [
        (0, 3333),
        (3334, 6667),
        (6668, 9999),
    ]
    assert pq.ParquetFile(files.filesystem_path(written[0].file.path)).num_row_groups == 4


@pytest.mark.parametrize(("cores", "files_written"), [(1, 1), (2, 2), (64, 3)])
def test_each_core_writes_a_file_if_there_is_enough_for_all(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cores: int, files_written: int
) -> None:
    monkeypatch.setattr(pa, "cpu_count", lambda: cores)
    HandMadeTable(tmp_path).create(field("id", "long"))
    files, table = snapshot_of(tmp_path)
    rows = pa.table({"id": range(10_000)})
    written = write_files(files, table, rows, ["id"], FileOptions(thread_bytes=25_000))
    assert len(written) == files_written
    found = [one for new in written for one in pq.read_table(files.filesystem_path(new.file.path))["id"].to_pylist()]
    assert found == list(range(10_000))
    assert [one for new in written for one in new.rows["id"].to_pylist()] == found


def test_no_rows_make_no_file(tmp_path: Path) -> None:
    HandMadeTable(tmp_path).create(field("id", "long"))
    files, table = snapshot_of(tmp_path)
    assert write_files(files, table, pa.table({"id": pa.array([], pa.int64())}), ["id"], FileOptions()) == []


@pytest.mark.parametrize(
    ("rows", "code", "named"),
    [
        ({"id": [1]}, "columns-differ", "lacks x"),
        ({"id": [1], "x": ["a"], "y": [1]}, "columns-differ", "the table lacks y"),
        ({"id": [1], "x": ["a"]}, "type-differs", "column x"),
        ({"id": [1, None], "x": [1, 2]}, "null-not-allowed", "column id must not be NULL, and is NULL in row 1"),
    ],
)
def test_rows_that_do_not_fit_are_refused(tmp_path: Path, rows: dict[str, Any], code: str, named: str) -> None:
    HandMadeTable(tmp_path).create(field("id", "long", nullable=False), field("x", "integer"))
    _, table = snapshot_of(tmp_path)
    with pytest.raises(TableHalt, match=named) as caught:
        fitted(pa.table(rows), table.schema)
    assert caught.value.code == code


def test_nothing_stays_of_a_write_that_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    HandMadeTable(tmp_path).create(field("id", "long"))
    files, table = snapshot_of(tmp_path)
    written = []

    def fail_at_the_second(path: str) -> int:
        written.append(path)
        if len(written) == 2:
            raise OSError(28, "No space left on device")
        return 1

    monkeypatch.setattr(files, "size", fail_at_the_second)
    with pytest.raises(OSError, match="No space"):
        write_files(files, table, pa.table({"id": range(10_000)}), ["id"], FileOptions(target_bytes=40_000))
    assert len(written) == 2
    assert not list(tmp_path.glob("*.parquet"))


def old_file(path: Path) -> tuple[DataReader, NewFile]:
    """A file that was written before columns were added, widened and nested fields added."""
    HandMadeTable(path).create(field("id", "integer"), field("n", struct(field("a", "integer"))))
    files, table = snapshot_of(path)
    rows = pa.table({"id": pa.array(range(100), pa.int32()), "n": [{"a": i} for i in range(100)]})
    (new,) = write_files(files, table, rows, ["id"], FileOptions(group_rows=7))
    now = TableSchema.of(
        struct(field("id", "long"), field("n", struct(field("b", "string"), field("a", "long"))), field("z", "date"))
    )
    return DataReader(files, now), new


def test_rows_are_read_by_their_numbers_as_the_table_is_now(tmp_path: Path) -> None:
    reader, new = old_file(tmp_path)
    wanted = [93, 0, 7, 6, 93]
    found = reader.rows(new.file, np.array(wanted), ["z", "n", "id"])
    assert found.to_pylist() == [{"z": None, "n": {"b": None, "a": i}, "id": i} for i in wanted]
    assert found.schema == reader.schema_of(["z", "n", "id"])
    assert reader.rows(new.file, np.array([], np.int64), ["id"]).num_rows == 0
    gone = np.array([*range(3, 99)])
    assert pa.concat_tables(reader.survivors(new.file, gone)).column("id").to_pylist() == [0, 1, 2, 99]


def test_rows_and_files_that_are_not_there_are_reported(tmp_path: Path) -> None:
    reader, new = old_file(tmp_path)
    with pytest.raises(TableHalt, match="is damaged"):
        reader.rows(new.file, np.array([100]), ["id"])
    path = tmp_path / new.file.path
    content = path.read_bytes()
    path.write_bytes(content[:-9])
    with pytest.raises(TableHalt, match="is damaged"):
        reader.rows(new.file, np.array([1]), ["id"])
    path.unlink()
    with pytest.raises(TableHalt, match="not there"):
        reader.rows(new.file, np.array([1]), ["id"])


@pytest.mark.parametrize("int96", [False, True])
def test_times_of_other_writers_are_read(tmp_path: Path, int96: bool) -> None:
    HandMadeTable(tmp_path).create(field("t", "timestamp"))
    files, table = snapshot_of(tmp_path)
    times = pa.array([datetime(3000, 1, 2, 3, 4, 5, 678_901, UTC), None], pa.timestamp("us", "UTC"))
    pq.write_table(pa.table({"t": times}), tmp_path / "x.parquet", use_deprecated_int96_timestamps=int96)
    file = LiveFile({"path": "x.parquet", "size": 1, "partitionValues": {}})
    assert (
        DataReader(files, table.schema).rows(file, np.array([0, 1]), ["t"]).column("t").to_pylist() == times.to_pylist()
    )


def test_a_file_with_other_types_than_the_table_is_reported(tmp_path: Path) -> None:
    HandMadeTable(tmp_path).create(field("n", "integer"))
    files, table = snapshot_of(tmp_path)
    pq.write_table(pa.table({"n": [2**40]}), tmp_path / "x.parquet")
    file = LiveFile({"path": "x.parquet", "size": 1, "partitionValues": {}})
    with pytest.raises(TableHalt, match="damaged"):
        DataReader(files, table.schema).rows(file, np.array([0]), ["n"])


@pytest.mark.parametrize(
    ("text", "kind", "value"),
    [
        ("2020-01-02 03:04:05", "timestamp", datetime(2020, 1, 2, 3, 4, 5, tzinfo=UTC)),
        ("2020-01-02T03:04:05.000006Z", "timestamp", datetime(2020, 1, 2, 3, 4, 5, 6, UTC)),
        ("2020-01-02 03:04:05.5", "timestamp_ntz", datetime.fromisoformat("2020-01-02T03:04:05.500")),
        ("-7", "short", -7),
        ("1.50", "decimal(5,2)", Decimal("1.50")),
        ("false", "boolean", False),
        ("", "string", None),
        (None, "date", None),
        ("0001-01-02", "date", date(1, 1, 2)),
    ],
)
def test_values_of_a_partition_are_read(text: str | None, kind: str, value: Any) -> None:
    (column,) = TableSchema.of(struct(field("p", kind))).columns
    assert constant(text, column, 2).to_pylist() == [value, value]


@pytest.mark.parametrize("kind", ["timestamp", "timestamp_ntz", "date"])
@pytest.mark.parametrize("year", [-290_000, -43, 0, 1, 9_999, 10_000, 290_000])
def test_partitions_by_any_year_come_back(tmp_path: Path, kind: str, year: int) -> None:
    """Records may have dates that few readers know; one that can't be read again would stop the table."""
    HandMadeTable(tmp_path).create(field("id", "long"), field("p", kind), partition_by=["p"])
    files, table = snapshot_of(tmp_path)
    column = table.schema.by_name["p"].logical.type
    day = int((year - 1970) * 365.2425)
    numbers = pa.array([day], pa.int32()) if kind == "date" else pa.array([86_400_000_000 * day + 5], pa.int64())
    rows = pa.table({"id": pa.array([1], pa.int64()), "p": numbers.view(column)})
    [written] = write_files(files, table, rows, ["id"], FileOptions())
    [text] = written.file.action["partitionValues"].values()
    assert re.fullmatch(r"([0-9]{4}|[+-][0-9]{4,6})-[0-9]{2}-[0-9]{2}([ T].*)?", text)
    [back] = DataReader(files, table.schema).pieces(written.file, ["id", "p"])
    assert back["p"].cast(numbers.type).to_pylist() == numbers.to_pylist()


@pytest.mark.parametrize("kind", ["timestamp", "timestamp_ntz", "boolean", "decimal(5,2)", "byte", "date"])
def test_partitions_by_each_type_come_back(tmp_path: Path, kind: str) -> None:
    HandMadeTable(tmp_path).create(field("id", "long"), field("p", kind), partition_by=["p"])
    files, table = snapshot_of(tmp_path)
    column = table.schema.by_name["p"].logical.type
    numbers = pa.array([0, 1, -1, None, 1], pa.int64())
    values = pa.array([False, True, None, None, True]) if kind == "boolean" else (
        numbers.cast(pa.decimal128(19, 0)).cast(column) if kind.startswith("decimal")
        else numbers.view(column) if pa.types.is_timestamp(column)
        else numbers.cast(pa.int32()).view(column) if kind == "date" else numbers.cast(column)
    )  # fmt: skip
    rows = pa.table({"id": range(5), "p": values})
    written = write_files(files, table, rows, ["id"], FileOptions())
    reader = DataReader(files, table.schema)
    back = pa.concat_tables([piece for new in written for piece in reader.pieces(new.file, ["id", "p"])])
    assert back.sort_by("id").equals(rows.cast(back.schema))
