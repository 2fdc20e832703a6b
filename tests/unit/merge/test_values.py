"""Which columns are followed through values that were not sent; that these come back exactly is told in tests/spark."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from distributary.config.table import TableSettings
from distributary.merge.values import Fillable

COLUMNS: Mapping[str, str] = {
    "id": "string",
    "n": "bigint",
    "text": "string",
    "bytes": "binary",
    "doc": "variant",
    "docs": "array<variant>",
    "tags": "map<string,int>",
    "at": "timestamp",
    "counted": "timestamp_ntz",
    "day": "date",
    "price": "decimal(10,2)",
    "place": "struct<x:double,y:double>",
}
BY_THEIR_TYPES = ["text", "bytes", "doc", "docs", "tags"]


@pytest.mark.parametrize(
    ("settings", "others"),
    [
        (TableSettings("s.t"), []),
        # What comes as a number, or as an object, has no placeholder.
        (TableSettings("s.t", columns={n: k for n, k in COLUMNS.items() if n in ("n", "price", "place")}), []),
        (TableSettings("s.t", columns={"at": "timestamp", "counted": "timestamp_us", "lacking": "date"}), ["at"]),
        (TableSettings("s.t", columns={"created": "date"}, rename={"created": "day"}), ["day"]),
    ],
)
def test_columns_whose_values_may_be_texts_on_the_wire_are_followed(settings: TableSettings, others: list[str]) -> None:
    found = Fillable.of(COLUMNS, {"id": "string"}, settings)
    assert sorted(found.types) == sorted([*BY_THEIR_TYPES, *others])
    assert found.places == {name: list(COLUMNS).index(name) for name in found.types}
    assert dict(found.types) == {name: COLUMNS[name] for name in found.types}
