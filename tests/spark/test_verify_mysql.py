"""Spark's part of a comparison with MySQL: values that MariaDB does not have, and order of positions."""

from __future__ import annotations

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from distributary import sql
from distributary.verify.mysql import MysqlTable
from distributary.verify.mysql_log import read_point

FILE, POS, ROW = "0" * 17 + "012", "0" * 17 + "500", "0" * 10


class Source(MysqlTable):
    """A table of one column, that nothing is read of."""

    def __init__(self, kind: str) -> None:
        self.types = {"c": kind}


def asked(session: SparkSession, **expressions: str) -> dict[str, object]:
    row = session.range(1).select(*(F.expr(told).alias(name) for name, told in expressions.items())).head()
    assert row is not None
    return row.asDict()


@pytest.mark.parametrize(
    ("kind", "text", "lake", "spark"),
    [
        ("json", '{"b": 1, "a": [1.50, null, "x"]}', '{"a":[1.5,null,"x"],"b":1}', "string"),
        ("json", "null", "null", "string"),
        ("json", '"é \\\\ \\""', '"é \\\\ \\""', "string"),
        ("json", '{"a": 1e20}', '{"a":1.0E20}', "string"),
        ("enum('b,c')", "b,c", "b\\,c", "string"),
        ("float", "1234565", "1234560", "float"),  # a snapshot has six digits, and rounds to the even one
        ("float", "1000.125", "1000.12", "float"),
        ("float(7,3)", "1.2339999675750732", "1.2339999675750732", "double"),
        ("float", "0", "0", "float"),
        ("float", "-3.3999999521443642e38", "-3.4e38", "float"),
        ("bigint(20) unsigned", "18446744073709551615", "-1", "bigint"),
        ("bigint unsigned", "18446744073709551615", "18446744073709551615", "decimal(20,0)"),
        ("int(8) unsigned zerofill", "00000042", "42", "bigint"),
    ],
)
def test_what_is_sent_in_another_form_is_equal(
    session: SparkSession, kind: str, text: str, lake: str, spark: str
) -> None:
    source = Source(kind)
    assert source.is_comparable("c", spark)
    value = source.value("c", sql.text(text), spark)
    kept = source.lake_value("c", f"CAST({sql.text(lake)} AS {spark})", spark)
    found = asked(session, same=f"{value} <=> {kept}", source=value, lake=kept)
    assert found["same"], found
    assert found["source"] is not None


@pytest.mark.parametrize(
    ("kind", "one", "other"), [("json", '{"a": 1}', '{"a":2}'), ("float", "1.23456", "1.23457"), ("enum", "b,c", "bc")]
)
def test_what_differs_does(session: SparkSession, kind: str, one: str, other: str) -> None:
    spark = "float" if kind == "float" else "string"
    source = Source(kind)
    kept = source.lake_value("c", f"CAST({sql.text(other)} AS {spark})", spark)
    assert not asked(session, same=f"{source.value('c', sql.text(one), spark)} <=> {kept}")["same"]


def test_positions_are_compared_by_gtid_or_by_file_and_pos(session: SparkSession) -> None:
    def later(at: str, end: tuple[str, int] | None, gtids: str) -> object:
        return asked(session, later=read_point(end, gtids).is_later(sql.text(at)))["later"]

    plain = f"000:{FILE}/{POS}/{ROW}"
    of_domain, of_uuid = f"{plain}/1/0/{12:020}", f"001:{FILE}/{POS}/{ROW}/1/a-b/{12:020}"
    assert [later(plain, (f"log.0000{n}", pos), "0-1-99") for n, pos in ((11, 900), (12, 499), (12, 500), (13, 4))] == [
        True,
        True,
        False,
        False,
    ]
    far = ("log.000099", 4)
    assert [later(of_domain, far, gtids) for gtids in ("0-1-11", "0-2-12", "1-1-99", "")] == [True, False, True, False]
    assert [later(of_uuid, far, gtids) for gtids in ("a-b:1-11", "c:1-3,\na-b:1-12")] == [True, False]
    assert not later(plain, None, "0-1-99")
