"""Source blocks of the connectors, and envelopes around them, written by hand."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

from tests.support.changes import Row


def source(connector: str, **fields: Any) -> Row:
    """The block of any connector."""
    named = {"connector": connector, "ts_ms": 1, "snapshot": "false", "db": "d", "schema": "dbo", "table": "t"}
    return {**named, **fields}


def postgresql(at: int, **more: Any) -> Row:
    """A change at this position of the log."""
    return source("postgresql", sequence=json.dumps([str(at - 1), str(at)]), lsn=at, txId=at, **more)


def sqlserver(at: int, **more: Any) -> Row:
    """A change at this position of the log."""
    place = {"commit_lsn": f"00000027:{at:08x}:0003", "change_lsn": f"00000027:{at:08x}:0002", "event_serial_no": 1}
    return source("sqlserver", **{**place, **more})


def mysql(at: int, **more: Any) -> Row:
    """A change at this position of the log."""
    return source("mysql", file="binlog.000001", pos=at, row=0, server_id=1, gtid=None, **more)


def oracle(at: int, **more: Any) -> Row:
    """A change at this position of the log."""
    return source("oracle", scn=str(at), commit_scn=str(at), **more)


def db2(at: int, **more: Any) -> Row:
    """A change at this position of the log."""
    place = {"commit_lsn": f"00000027:{at:08x}:{3:016x}", "change_lsn": f"00000027:{at:08x}:{2:016x}"}
    return source("db2", **{**place, **more})


CONNECTORS: Mapping[str, Callable[..., Row]] = {
    "postgresql": postgresql,
    "sqlserver": sqlserver,
    "mysql": mysql,
    "oracle": oracle,
    "db2": db2,
}


def change(op: str, block: Row, after: Row | None = None, before: Row | None = None) -> Row:
    """A whole envelope."""
    return {"op": op, "source": block, "before": before, "after": after, "ts_ms": 1}


def slim(op: str, block: Row, after: Row | None = None) -> Row:
    """An envelope after ReplaceField: no row before, no times."""
    return {"op": op, "source": block, **({} if after is None else {"after": after})}
