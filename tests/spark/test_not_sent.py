"""Values of every type that may not have been sent come back from the text that they are kept as."""

from __future__ import annotations

import pytest
from pyspark.sql import SparkSession

from distributary.merge.values import as_text, from_text

_MOMENT = "TIMESTAMP_NTZ'2026-01-31 10:11:12.123456'"
_DOCUMENT = r"""parse_json('{"b":[1,2.5,null,1.50,1e300],"a":"ü \\" \\\\"}')"""
VALUES = (
    ("string", "'a \u00fc'"),
    ("binary", "X'00ff'"),
    ("variant", _DOCUMENT),
    ("variant", "parse_json('null')"),
    ("variant", "parse_json('12345678901234567890123')"),
    ("array<string>", "array('a', NULL, '')"),
    ("array<int>", "array(1, NULL)"),
    ("array<variant>", f"array({_DOCUMENT}, parse_json('null'), NULL)"),
    ("array<timestamp_ntz>", f"array({_MOMENT}, NULL)"),
    ("array<array<timestamp_ntz>>", f"array(array({_MOMENT}), NULL)"),
    ("map<string,string>", "map('a', 'b', 'c', NULL)"),
    ("map<string,int>", "map('a', 1, 'c', NULL)"),
    ("map<string,variant>", f"map('a', {_DOCUMENT}, 'b', parse_json('null'), 'c', NULL)"),
    ("timestamp", "TIMESTAMP'9999-12-31 23:59:59.999999Z'"),
    ("timestamp", "TIMESTAMP'0001-01-01 00:00:00Z'"),
    ("timestamp", "timestamp_micros(9000000000000000000)"),  # a year of six digits
    ("timestamp_ntz", _MOMENT),
    ("date", "DATE'2026-01-31'"),
    ("float", "FLOAT(0.1)"),
)


@pytest.mark.parametrize(("kind", "value"), [*VALUES, *((kind, "NULL") for kind in dict(VALUES))])
def test_a_value_comes_back_from_its_text(session: SparkSession, kind: str, value: str) -> None:
    rows = session.range(1).selectExpr(f"CAST({value} AS {kind}) AS v").localCheckpoint()
    texts = rows.selectExpr("v", f"{as_text('v', kind)} AS t").localCheckpoint()
    again = texts.selectExpr("v", "t", f"{from_text('t', kind)} AS again")
    assert dict(again.dtypes)["again"] == kind
    equal = "true" if "map<" in kind or "variant" in kind else "v <=> again"
    [row] = again.selectExpr("t", f"{as_text('again', kind)} AS t_again", f"{equal} AS equal").collect()
    assert (row["t"] is None) == (value == "NULL")
    assert row["t_again"] == row["t"]
    assert row["equal"]
