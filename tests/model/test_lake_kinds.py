"""Further instances of other writers' changes of a table: rows and columns that they add."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable, Field, write_deltalake
from deltalake.schema import PrimitiveType
from tests.model.source_instance import Change, Instance, check_instance
from tests.support.changes import Row
from tests.support.random_share import thorough_but
from tests.support.source_blocks import CONNECTORS, change


def added(*rows: Row) -> Callable[[Path], None]:
    """Rows with none of the service's own columns."""

    def write(path: Path) -> None:
        schema = pa.schema(DeltaTable(path).schema().to_arrow())
        columns = [pa.array([row.get(field.name) for row in rows], field.type) for field in schema]
        write_deltalake(path, pa.table(columns, schema=schema), mode="append")

    return write


def updated(condition: str, **values: str) -> Callable[[Path], None]:
    """An UPDATE."""

    def update(path: Path) -> None:
        DeltaTable(path).update(predicate=condition, updates=values)

    return update


def deleted(condition: str) -> Callable[[Path], None]:
    """A DELETE."""

    def delete(path: Path) -> None:
        DeltaTable(path).delete(condition)

    return delete


def with_column(path: Path) -> None:
    """A column that the source does not have, with a value in every row."""
    DeltaTable(path).alter.add_columns([Field("note", PrimitiveType("string"))])
    DeltaTable(path).update(updates={"note": "'seen'"})


def changes(at: Callable[..., Row]) -> list[Change]:
    """Three rows; then the first one is changed, the second deleted, a fourth and a fifth come."""
    row = {number: {"id": number, "v": f"v{number}"} for number in range(1, 6)}
    return [
        *(Change({"id": number}, change("c", at(number), row[number])) for number in (1, 2, 3)),
        Change({"id": 1}, change("u", at(4), {"id": 1, "v": "new"})),
        Change({"id": 2}, change("d", at(5), None, row[2])),
        *(Change({"id": number}, change("c", at(2 + number), row[number])) for number in (4, 5)),
    ]


def by_hand(name: str, what: Callable[[Path], None], *rows: tuple[Any, ...], **more: Any) -> Instance:
    left = [(1, "new"), (3, "v3"), (4, "v4"), (5, "v5")]
    return Instance(changes(CONNECTORS[name]), rows or left, by_hand={3: what}, **more)


SOFT = {"deletes": "soft", "truncate": "soft"}
HISTORY = {"mode": "history"}
INSTANCES: Mapping[str, Instance] = {
    **{
        f"a row of a key that comes later: {name}": by_hand(name, added({"id": 4, "v": "by hand"}))
        for name in CONNECTORS
    },
    "a row of a key that is changed": by_hand("mysql", updated("id = 1", v="'patched'")),
    "a row of a key that is deleted": by_hand("mysql", updated("id = 2", v="'patched'")),
    "rows of which the service's own columns are gone": by_hand(
        "sqlserver", updated("true", __op="NULL", __position="NULL", __partition="NULL", __offset="NULL")
    ),
    "a row of a key that has one": by_hand("postgresql", added({"id": 1, "v": "twice"})),
    "a row of a key that has one and is deleted": by_hand("postgresql", added({"id": 2, "v": "twice"})),
    "rows that were deleted": by_hand("oracle", deleted("id < 3")),
    "soft deletes": by_hand(
        "mysql",
        added({"id": 4, "v": "by hand"}),
        *((1, "new", False), (2, "v2", True), (3, "v3", False), (4, "v4", False), (5, "v5", False)),
        rules=SOFT,
        columns=("id", "v", "__deleted"),
    ),
    "history": by_hand(
        "mysql",
        added({"id": 4, "v": "by hand"}),
        *((1, "v1", False), (1, "new", True), (2, "v2", False), (3, "v3", True), (4, "v4", True), (5, "v5", True)),
        (4, "by hand", None),  # no version of the service's
        rules=HISTORY,
        columns=("id", "v", "__current"),
    ),
    **{
        f"a column that the source lacks: {name}": by_hand(
            name,
            with_column,
            *((1, "new", None), (3, "v3", "seen"), (4, "v4", None), (5, "v5", None)),
            columns=("id", "v", "note"),
        )
        for name in CONNECTORS
    },
}


@pytest.mark.parametrize("instance", thorough_but(6, INSTANCES.values()), ids=INSTANCES)
def test_2_8_a_table_that_others_wrote_to_comes_to_equal_its_source(tmp_path: Path, instance: Instance) -> None:
    check_instance(tmp_path, instance)
