"""The comparison with the truth detects each kind of difference: a cell, a row, a type, a column, a limit."""

from __future__ import annotations

import math
from collections.abc import Iterable
from datetime import date, datetime, timezone
from decimal import Decimal

import pyarrow as pa
import pytest
from tests.support.comparable import Value, identical
from tests.support.instants import FIRST_INSTANT, LAST_INSTANT, days, instant
from tests.support.limit import CellLimit, KeptColumn, Limit, MissingColumn, MissingRow
from tests.support.mariadb_types import mariadb_type
from tests.support.postgres_types import postgres_type
from tests.support.recorded import EVENTS, Column, Scenario, TruthTable
from tests.support.truth import Difference, compare_table, missing_service_columns
from tests.support.wire_limits import limits

TRUTH = TruthTable(
    "public",
    "customers",
    (
        Column("id", "integer", True),
        Column("balance", "numeric(12,2)", False),
        Column("active", "boolean", False),
        Column("updated_at", "timestamp with time zone", False),
    ),
    (
        {"id": "1", "balance": "1.50", "active": "true", "updated_at": "2024-02-29 12:00:00.5+00"},
        {"id": "2", "balance": None, "active": None, "updated_at": None},
    ),
)
NOON = datetime(2024, 2, 29, 12, 0, 0, 500_000, tzinfo=timezone.utc)
LAKE: dict[str, tuple[pa.DataType, list[object]]] = {
    "id": (pa.int32(), [1, 2]),
    "balance": (pa.decimal128(12, 2), [Decimal("1.50"), None]),
    "active": (pa.bool_(), [True, None]),
    "updated_at": (pa.timestamp("us", tz="UTC"), [NOON, None]),
    "__op": (pa.string(), ["c", "u"]),
}


def lake(**columns: tuple[pa.DataType, list[object]]) -> pa.Table:
    """The right table, but for the columns given."""
    arrays = {name: pa.array(values, kind) for name, (kind, values) in (LAKE | columns).items()}
    return pa.table(arrays)


def compare(table: pa.Table, accepted: Iterable[Limit] = (), truth: TruthTable = TRUTH) -> Difference:
    return compare_table(table, truth, postgres_type, accepted)


def test_the_right_table_is_equal() -> None:
    difference = compare(lake())
    assert not difference
    assert str(difference) == "customers: equal"


def test_a_wrong_cell_is_reported_with_both_values() -> None:
    difference = compare(lake(balance=(pa.decimal128(12, 2), [Decimal("1.51"), None])))
    assert difference.cells == ["id='1' balance: truth '1.50', lake Decimal('1.51')"]
    assert "id='1' balance: truth '1.50', lake Decimal('1.51')" in str(difference)


@pytest.mark.parametrize(
    ("column", "kind", "values"),
    [
        ("active", pa.bool_(), [None, None]),
        ("active", pa.bool_(), [True, False]),
        ("balance", pa.decimal128(12, 2), [Decimal("1.50"), Decimal("0.00")]),
        ("updated_at", pa.timestamp("us", tz="UTC"), [NOON.replace(microsecond=500_001), None]),
    ],
)
def test_null_and_the_last_digit_count(column: str, kind: pa.DataType, values: list[object]) -> None:
    assert len(compare(lake(**{column: (kind, values)})).cells) == 1


@pytest.mark.parametrize(
    ("column", "kind", "values"),
    [
        ("id", pa.int64(), [1, 2]),
        ("balance", pa.decimal128(38, 2), [Decimal("1.50"), None]),
        ("balance", pa.float64(), [1.5, None]),
        ("updated_at", pa.timestamp("us"), [NOON.replace(tzinfo=None), None]),
        ("updated_at", pa.string(), ["2024-02-29T12:00:00.500000Z", None]),
    ],
)
def test_a_wrong_type_is_reported_though_the_values_look_right(
    column: str, kind: pa.DataType, values: list[object]
) -> None:
    difference = compare(lake(**{column: (kind, values)}))
    assert len(difference.columns) == 1
    assert difference.columns[0].startswith(f"{column} (")


def test_a_missing_an_extra_and_a_doubled_row_are_reported() -> None:
    difference = compare(lake().slice(0, 1))
    assert difference.missing == ["id='2'"]
    difference = compare(lake(id=(pa.int32(), [1, 3])))
    assert (difference.missing, difference.extra) == (["id='2'"], ["id=3"])
    difference = compare(pa.concat_tables([lake(), lake().slice(0, 1)]))
    assert difference.extra == ["id=1 a second time"]


def test_a_missing_and_an_unknown_column_are_reported() -> None:
    assert compare(lake().drop_columns(["active"])).columns == ["active (boolean) is missing"]
    assert compare(lake(surplus=(pa.int32(), [1, 2]))).columns == ["surplus is not a column of the source"]


def test_an_empty_table_still_needs_its_columns() -> None:
    empty = TruthTable(TRUTH.schema, TRUTH.name, TRUTH.columns, ())
    assert not compare(lake().slice(0, 0), truth=empty)
    assert compare(lake().slice(0, 0).drop_columns(["active"]), truth=empty).columns == ["active (boolean) is missing"]
    assert compare(lake(), truth=empty).extra == ["id=1", "id=2"]


def test_without_a_key_rows_are_counted() -> None:
    columns = (Column("level", "integer", False), Column("msg", "text", False))
    row: dict[str, str | None] = {"level": "1", "msg": None}
    truth = TruthTable("public", "audit_log", columns, (row, row))
    one = pa.table({"level": pa.array([1], pa.int32()), "msg": pa.array([None], pa.string())})
    assert not compare(pa.concat_tables([one, one]), truth=truth)
    assert len(compare(one, truth=truth).missing) == 1
    assert len(compare(pa.concat_tables([one, one, one]), truth=truth).extra) == 1


class TestLimits:
    NULL_AS_TRUE = CellLimit("customers", "active", None, True, "the default")

    def test_a_limit_excuses_its_own_cell_alone(self) -> None:
        assert not compare(lake(active=(pa.bool_(), [True, True])), [self.NULL_AS_TRUE])
        assert compare(lake(active=(pa.bool_(), [True, False])), [self.NULL_AS_TRUE]).cells
        assert compare(lake(active=(pa.bool_(), [None, True])), [self.NULL_AS_TRUE]).cells

    def test_a_limit_of_another_table_excuses_nothing(self) -> None:
        other = CellLimit("orders", "active", None, True, "the default")
        assert compare(lake(active=(pa.bool_(), [True, True])), [other]).cells

    @pytest.mark.parametrize(
        "limit",
        [
            NULL_AS_TRUE,
            MissingColumn("customers", "active", "not sent"),
            KeptColumn("customers", "gone", "dropped"),
            MissingRow("customers", ("1",), "in quarantine"),
        ],
    )
    def test_a_limit_that_nothing_needs_is_a_difference(self, limit: Limit) -> None:
        assert compare(lake(), [limit]).unused == [str(limit)]

    def test_columns_and_rows_can_be_excused_by_name(self) -> None:
        assert not compare(lake().drop_columns(["active"]), [MissingColumn("customers", "active", "not sent")])
        assert not compare(lake(gone=(pa.int32(), [1, 2])), [KeptColumn("customers", "gone", "dropped")])
        assert not compare(lake().slice(0, 1), [MissingRow("customers", ("2",), "in quarantine")])

    def test_a_key_that_the_wire_changes_is_matched(self) -> None:
        truth = TruthTable("shop", "big_ids", (Column("id", "bigint(20) unsigned", True),), ({"id": str(2**64 - 1)},))
        wrapped = CellLimit("big_ids", "id", str(2**64 - 1), -1, "wraps")
        table = pa.table({"id": pa.array([-1], pa.int64())})
        assert not compare_table(table, truth, mariadb_type, [wrapped])
        assert compare_table(table, truth, mariadb_type).missing


def test_service_columns_are_asked_for_by_name_type_and_content() -> None:
    instants = pa.array([NOON], pa.timestamp("us", tz="UTC"))
    texts, numbers = pa.array(["x"]), pa.array([1], pa.int64())
    whole = pa.table(
        {
            "__op": texts,
            "__source_ts": instants,
            "__position": texts,
            "__topic": texts,
            "__partition": pa.array([0], pa.int32()),
            "__offset": numbers,
        }
    )
    assert missing_service_columns(whole) == []
    assert missing_service_columns(whole.drop_columns(["__topic"])) == ["__topic is missing"]
    by_name = whole.set_column(2, "__position", numbers)
    assert missing_service_columns(by_name) == ["__position is int64"]
    empty = whole.set_column(5, "__offset", pa.array([None], pa.int64()))
    assert missing_service_columns(empty) == ["__offset is NULL in 1 rows"]
    assert missing_service_columns(empty, unknown=["__offset"]) == []
    assert missing_service_columns(whole, unknown=["__offset"]) == ["__offset is not NULL in 1 rows"]


@pytest.mark.parametrize(
    ("type_name", "text", "kind", "value"),
    [
        ("numeric(12,2)", "-0.01", pa.decimal128(12, 2), Decimal("-0.01")),
        ("numeric(60,20)", "1.00000000000000000000", pa.string(), "1.00000000000000000000"),
        ("money", "-$1,234.50", pa.decimal128(38, 2), Decimal("-1234.50")),
        ("character(5)", "ab", pa.string(), "ab   "),
        ("bytea", "\\x00ff", pa.binary(), b"\x00\xff"),
        ("date", "1970-01-02", pa.date32(), 1),
        ("date", "infinity", pa.date32(), (date(9999, 12, 31) - date(1970, 1, 1)).days),
        ("date", "0001-12-31 BC", pa.date32(), (date(1, 1, 1) - date(1970, 1, 1)).days - 1),
        ("time(3) without time zone", "12:34:56.5", pa.string(), "12:34:56.500"),
        ("time without time zone", "24:00:00", pa.string(), "24:00:00.000000"),
        ("timestamp without time zone", "1969-12-31 23:59:59.999999", pa.timestamp("us"), -1),
        ("timestamp(3) without time zone", "-infinity", pa.timestamp("us"), FIRST_INSTANT),
        ("timestamp with time zone", "1970-01-01 05:30:00+05:30", pa.timestamp("us", tz="UTC"), 0),
        ("timestamp with time zone", "infinity", pa.timestamp("us", tz="UTC"), LAST_INSTANT),
        ("interval", "1 mon -1 days", pa.int64(), 2_543_400_000_000),
        ("interval", "-1 days +02:03:00", pa.int64(), -79_020_000_000),
        ("bit(1)", "1", pa.bool_(), True),
        ("bit(8)", "10110001", pa.binary(), b"\xb1"),
        ("bit varying(20)", "", pa.binary(), b""),
        ("inet", "::1/128", pa.string(), "::1"),
        ("integer[]", "[0:2]={1,NULL,3}", pa.list_(pa.int32()), [1, None, 3]),
        ("text[]", '{a,"b,c","q\\"q",NULL,"NULL",""}', pa.list_(pa.string()), ["a", "b,c", 'q"q', None, "NULL", ""]),
        ("numeric(10,2)[]", "{1.25,NULL}", pa.list_(pa.decimal128(10, 2)), [Decimal("1.25"), None]),
    ],
)
def test_postgres_text_becomes_the_lakes_value(type_name: str, text: str, kind: pa.DataType, value: Value) -> None:
    source_type = postgres_type(type_name)
    assert source_type.arrow.equals(kind)
    assert identical(source_type.read(text), value)
    assert source_type.same(source_type.read(text), value)


@pytest.mark.parametrize(
    ("type_name", "text", "kind", "value"),
    [
        ("tinyint(3) unsigned", "255", pa.int16(), 255),
        ("smallint(5) unsigned", "65535", pa.int32(), 65535),
        ("int(8) unsigned zerofill", "00000042", pa.int64(), 42),
        ("decimal(65,30)", "1.000000000000000000000000000000", pa.string(), "1.000000000000000000000000000000"),
        ("bit(64)", "0x1", pa.binary(), b"\x01" + bytes(7)),
        ("time", "-838:59:59", pa.string(), "-838:59:59.000000"),
        ("datetime(3)", "2024-02-29 12:34:56.789", pa.timestamp("us"), instant("2024-02-29 12:34:56.789")),
        ("timestamp", "1970-01-01 00:00:01", pa.timestamp("us", tz="UTC"), 1_000_000),
        ("varbinary(16)", "0xFF00", pa.binary(), b"\xff\x00"),
        ("enum('a','b,c')", "b,c", pa.string(), "b,c"),
        ("year(4)", "2155", pa.int32(), 2155),
    ],
)
def test_mariadb_text_becomes_the_lakes_value(type_name: str, text: str, kind: pa.DataType, value: Value) -> None:
    source_type = mariadb_type(type_name)
    assert source_type.arrow.equals(kind)
    assert identical(source_type.read(text), value)


def test_exact_text_may_differ_in_zeros_at_the_end_only() -> None:
    numeric = postgres_type("numeric")
    assert numeric.same("1.000", "1")
    assert not numeric.same("1.000", "1.001")
    assert not numeric.same("1000", "1E+3")


def test_values_of_two_types_are_never_identical() -> None:
    assert not identical(1, True)
    assert not identical(Decimal("1.0"), Decimal("1.00"))
    assert not identical(0.0, -0.0)
    assert not identical([1], [1.0])
    assert identical(math.nan, math.nan)


def test_a_day_that_does_not_exist_is_refused() -> None:
    with pytest.raises(ValueError, match="no such day"):
        days("2024-02-30")


@pytest.mark.parametrize("scenario", sorted(folder.name for folder in EVENTS.iterdir() if folder.is_dir()))
def test_limits_name_tables_and_columns_that_exist_and_why(scenario: str) -> None:
    tables = Scenario(scenario).tables
    for limit in limits(scenario):
        assert limit.reason
        if isinstance(limit, CellLimit | MissingColumn):
            assert limit.column in [column.name for column in tables[limit.table].columns]
        if isinstance(limit, CellLimit):
            assert any(row[limit.column] == limit.truth for row in tables[limit.table].rows)
        if isinstance(limit, MissingRow):
            truth = tables[limit.table]
            assert limit.key in [tuple(row[name] for name in truth.key) for row in truth.rows]
