"""Further instances of snapshots: late ones, incremental ones, and rows that come as creates."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from tests.model.source_instance import Change, Instance, check_instance
from tests.support.changes import Row
from tests.support.random_share import thorough_but
from tests.support.source_blocks import change, db2, mysql, oracle, postgresql, sqlserver


def late_snapshot(at: Callable[..., Row], **read: Any) -> Instance:
    """Snapshot rows behind newer changes of their keys."""
    records = [
        Change({"id": 1}, change("u", at(50), {"id": 1, "v": "new"})),
        Change({"id": 2}, change("d", at(51), None, {"id": 2, "v": "old"})),
        Change({"id": 1}, change("r", at(40, snapshot="true", **read), {"id": 1, "v": "old"})),
        Change({"id": 2}, change("r", at(40, snapshot="true", **read), {"id": 2, "v": "old"})),
    ]
    return Instance(
        records,
        [(1, "new")],
    )


def snapshot_window(at: Callable[..., Row], **read: Any) -> Instance:
    """An incremental snapshot's window between changes, sent again behind a later change and a delete."""
    window = [
        Change({"id": number}, change("r", at(4, snapshot="incremental", **read), {"id": number, "v": text}))
        for number, text in ((1, "b"), (2, "a"))
    ]
    records = [
        *(Change({"id": number}, change("c", at(number), {"id": number, "v": "a"})) for number in (1, 2, 3)),
        Change({"id": 1}, change("u", at(4), {"id": 1, "v": "b"})),
        Change({"id": 3}, change("d", at(5), None, {"id": 3, "v": "a"})),
        *window,
        Change({"id": 2}, change("u", at(7), {"id": 2, "v": "later"})),
        Change({"id": 1}, change("d", at(8), None, {"id": 1, "v": "b"})),
        *window,
    ]
    return Instance(records, [(2, "later")])


INSTANCES: Mapping[str, Instance] = {
    "snapshot rows as creates: PostgreSQL": Instance(
        [
            Change({"id": 1}, change("u", postgresql(9), {"id": 1, "v": "old"})),
            Change({"id": 1}, change("c", postgresql(5, snapshot="incremental"), {"id": 1, "v": "new"})),
        ],
        [(1, "new")],
    ),
    "snapshot rows late: SQL Server": late_snapshot(sqlserver, change_lsn=None, event_serial_no=None),
    "snapshot rows late: Db2": late_snapshot(db2, change_lsn=None),
    "snapshot rows late: MySQL": late_snapshot(mysql),
    "incremental snapshots: SQL Server": snapshot_window(sqlserver, change_lsn=None, event_serial_no=None),
    "incremental snapshots: Db2": snapshot_window(db2, change_lsn=None),
    "incremental snapshots: MySQL": snapshot_window(mysql),
    "incremental snapshots: Oracle": snapshot_window(oracle),
    "incremental snapshots: PostgreSQL": snapshot_window(postgresql),
}


@pytest.mark.parametrize("instance", thorough_but(4, INSTANCES.values()), ids=INSTANCES)
def test_2_3_a_snapshot_replaces_no_newer_row(tmp_path: Path, instance: Instance) -> None:
    check_instance(tmp_path, instance)
