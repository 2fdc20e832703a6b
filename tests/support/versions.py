"""A history table in memory: the versions that slices make, without a broker and without Delta between them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from distributary.config.table import TableSettings
from distributary.merge.facts import Facts
from distributary.merge.history import as_rows, made_anew
from distributary.merge.mode import DecodedSlice, Destination
from distributary.merge.past import Past
from distributary.merge.progress import Head
from distributary.merge.queries import Queries
from distributary.merge.slice_keys import SliceKeys


def _quiet(_event: str, _count: int) -> None:
    """Takes what a slice would tell a person."""


def _unheard(_reason: str) -> None:
    """Takes why a slice is committed as it is."""


COLUMNS = {"id": "bigint", "v": "string"}
_SAME = "t.id = s.k.k0 AND t.__start_at = s.start AND t.__op = s.kind AND t.__trace.read_id <=> s.read_id"


@dataclass(frozen=True)
class Change:
    """A decoded record; `missing`: its value was not sent."""

    kind: str
    key: int | None
    pos: str | None
    value: str | None = None
    tx: str | None = None
    old: int | None = None
    new: int | None = None
    read_id: str | None = None
    partition: int = 0
    missing: bool = False


@dataclass
class HistoryTable:
    """Takes slices in; `offset` and `newest` are what the progress record has."""

    session: SparkSession
    connector: str
    rows: DataFrame | None = None
    remembered: DataFrame | None = None
    offset: int = 0
    newest: str = ""
    truncated: str | None = None

    def take(self, changes: Sequence[Change]) -> None:
        """One slice."""
        records = self._records(changes)
        found = self._facts(changes)
        self.truncated = max(filter(None, (self.truncated, found.truncated)), default=None)
        first = self.rows is None
        part = DecodedSlice(
            records,
            found,
            SliceKeys(records, Queries()),
            found.truncated,
            self.truncated,
            first=first,
            reads_lately=True,
            reached={},
            head=Head(0, None),
        )
        lake: Any = SimpleNamespace(session=self.session, path="", rows=lambda: self.rows)
        deletes: Any = SimpleNamespace(changes=lambda _key: self.remembered)
        settings = TableSettings("*.*", mode="history")
        to = Destination(
            lake, deletes, "t", self.connector, COLUMNS, {"id": "bigint"}, settings, _quiet, _unheard, Queries()
        )
        late = bool(found.late or found.reads or (found.moved and found.placeholders)) and not first
        past = Past(to, part, truncated=found.truncated is not None, late=late)
        made = made_anew(to, part, past).localCheckpoint()
        told = past.to_remember().localCheckpoint()
        self.remembered = told if self.remembered is None else self.remembered.unionByName(told).localCheckpoint()
        written = as_rows(to, made.where("act <> 'delete'"))
        if self.rows is not None:
            kept = self.rows.alias("t").join(made.where("act <> 'insert'").alias("s"), F.expr(_SAME), "left_anti")
            written = kept.unionByName(written)
        self.rows = written.localCheckpoint()

    def versions(self) -> list[tuple[Any, ...]]:
        """key, value, from, to of every version, as text, in order."""
        assert self.rows is not None
        found = self.rows.select("id", "v", "__start_at", "__end_at", "__current").collect()
        assert all(row["__current"] == (row["__end_at"] is None) for row in found)
        return sorted(((row[0], row[1], row[2], row[3]) for row in found), key=lambda v: (v[0], v[2], v[3] or "~"))

    def _records(self, changes: Sequence[Change]) -> DataFrame:
        start, self.offset = self.offset, self.offset + len(changes)
        columns = {
            name: [getattr(c, name) for c in changes] for name in ("kind", "key", "pos", "value", "tx", "read_id")
        }
        columns |= {name: [getattr(c, name) for c in changes] for name in ("old", "new", "partition", "missing")}
        columns["offset"] = list(range(start, self.offset))
        types = {
            "partition": pa.int32(),
            "missing": pa.bool_(),
            **dict.fromkeys(("key", "old", "new", "offset"), pa.int64()),
        }
        schema = pa.schema({name: types.get(name, pa.string()) for name in columns})
        return self.session.createDataFrame(pa.table(columns, schema=schema)).selectExpr(
            "partition", "offset", "timestamp_millis(offset) AS timestamp", "kind",
            "CAST(NULL AS STRUCT<code: STRING, message: STRING>) AS bad", "named_struct('k0', key) AS k", "pos",
            "coalesce(tx, pos) AS tx", "read_id", "offset AS ts_ms",
            "old IS NOT NULL AS moved_in", "new IS NOT NULL AS moved_out", "false AS carried",
            "CASE WHEN old IS NOT NULL THEN named_struct('k0', old) END AS old_k",
            "CASE WHEN missing THEN array(1) END AS missing",
            "CASE WHEN kind IN ('c', 'u', 'r') THEN named_struct('c0', key, 'c1', value) END AS row",
        ).localCheckpoint()  # fmt: skip

    def _facts(self, changes: Sequence[Change]) -> Facts:
        streamed = [c.pos for c in changes if c.kind in "cudt" and c.pos is not None]
        late = any(pos <= self.newest or "?" in pos for pos in streamed)
        self.newest = max([self.newest, *streamed])
        moved = sum(c.old is not None or c.new is not None for c in changes)
        return Facts(
            connector=self.connector, records=len(changes), applied=len(changes), bad=0,
            reads=sum(c.kind == "r" for c in changes), changes=sum(c.kind in "cud" for c in changes),
            deletes=sum(c.kind in "dx" for c in changes), moved=moved, lone=any(c.kind == "x" for c in changes),
            truncated=max((c.pos for c in changes if c.kind == "t" and c.pos), default=None), late=late,
            placeholders=sum(c.missing for c in changes), filled=True, suspect=False,
            newest_ts_ms=None, read_ts_ms=None,
            partitions=dict.fromkeys({c.partition for c in changes}, None),  # type: ignore[arg-type]
        )  # fmt: skip
