"""`mode: history`: every version of a row, from `__start_at` to `__end_at`, written in one commit.

Usually the changes of a slice are newer than all that the table has: then only the current versions of their keys are
looked at. Where some may be older (late ones, snapshot rows, a new key's row with values that the old key's has) all
versions of the keys are, with the deletes and truncates that are remembered: together they tell what happened, and the
versions are made anew from it. Only those that differ are written.

Spark jobs of a slice: the versions, the remembered deletes (where there are some), the MERGE; the first slice of a
table needs no MERGE. Late slices have one more for each step of a chain of key changes with values that were not sent.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timezone

from delta.tables import DeltaMergeBuilder
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from distributary import sql
from distributary.config.table import TableSettings
from distributary.decode.options import CONNECTORS_WITH_PLACEHOLDER
from distributary.merge.events import SAME_TYPE, TRACE_TYPE, Events
from distributary.merge.kept import kept
from distributary.merge.mode import ORIGIN_COLUMNS, DecodedSlice, Destination, Prepared
from distributary.merge.past import Past
from distributary.merge.unsent import filled
from distributary.merge.versions import placed, versions, with_key_changes

SERVICE_COLUMNS: Mapping[str, str] = {
    "__start_at": "string",
    "__end_at": "string",
    "__current": "boolean",
    **ORIGIN_COLUMNS,
    "__moved_from": "string",
    "__trace": TRACE_TYPE,
}


class HistoryMode:
    """`mode: history`: a version for each state of a row."""

    def __init__(self, settings: TableSettings) -> None:
        self._truncates = settings.truncate in ("apply", "soft")

    @property
    def service_columns(self) -> Mapping[str, str]:
        """When a version counted, where it comes from, the key it had before, and what late changes must know."""
        return SERVICE_COLUMNS

    @property
    def reads_before(self) -> bool:
        """Versions are told by the rows after the changes."""
        return False

    def write(self, to: Destination, part: DecodedSlice) -> Prepared:
        """Makes the versions anew and merges those that differ; deletes and truncates are remembered before."""
        found = part.found
        truncated = found.truncated is not None and self._truncates
        if not (found.reads or found.changes or found.deletes or truncated):
            return Prepared(to.lake.nothing())
        late = bool(found.late or found.reads or (found.moved and found.placeholders))
        past = Past(to, part, truncated=truncated, late=late and not part.first)
        made = made_anew(to, part, past)
        if part.first:
            to.deletes.forget_all()
        else:
            made = kept(made, eager=True)  # two jobs read the versions
        if found.deletes or truncated:
            to.deletes.remember_changes(past.to_remember(), datetime.now(timezone.utc).date())
        if part.first:
            return Prepared(to.lake.append(as_rows(to, made)))
        return Prepared(to.lake.merge(_merge(to, made)))


def made_anew(to: Destination, part: DecodedSlice, past: Past) -> DataFrame:
    """The versions that differ from what the table has, with what is to be done (see versions.versions)."""
    events = kept(placed(past.events(), to.connector, past.truncates()), eager=False)
    moved = part.found.moved > 0 or past.late
    events = with_key_changes(events, to.connector, moved=moved)
    if to.connector in CONNECTORS_WITH_PLACEHOLDER and (part.found.placeholders or past.late):
        events = filled(events, to.columns, Events(to).key_text("k"), linked=moved)
    else:
        events = events.withColumn("filled", F.lit(False))
    return versions(events, to.columns, whole=past.late or part.first)


def _merge(to: Destination, made: DataFrame) -> DeltaMergeBuilder:
    key = " AND ".join(f"t.{sql.name(name)} <=> s.k.k{i}" for i, name in enumerate(to.key))
    on = f"{key} AND t.__start_at = s.start AND t.__op = s.kind AND t.__trace.read_id <=> s.read_id"
    values: dict[str, str | Column] = {sql.name(name): value for name, value in _values(to, "s.").items()}
    return (
        to.lake.delta()
        .alias("t")
        .merge(made.alias("s"), on)
        .whenMatchedDelete("s.act = 'delete'")
        .whenMatchedUpdate(None, values)
        .whenNotMatchedInsert("s.act = 'insert'", values)
    )


def as_rows(to: Destination, made: DataFrame) -> DataFrame:
    """Versions with the columns of the table."""
    return made.select(*(value.alias(name) for name, value in _values(to, "").items()))


def _values(to: Destination, s: str) -> dict[str, Column]:
    same = f"CASE WHEN size({s}same) > 0 THEN {s}same END"
    trace = (
        f"named_struct('pos', CASE WHEN {s}pos <> {s}own THEN {s}pos END, 'read_id', {s}read_id,"
        f" 'tx', CASE WHEN {s}moved_in THEN {s}tx END, 'over', CASE WHEN {s}over THEN true END,"
        f" 'unsent', CASE WHEN size({s}unsent) > 0 THEN {s}unsent END, 'same', CAST({same} AS ARRAY<{SAME_TYPE}>))"
    )
    return {
        **{name: F.expr(f"{s}row.c{i}") for i, name in enumerate(to.columns)},
        "__start_at": F.expr(f"{s}start"),
        "__end_at": F.expr(f"{s}end"),
        "__current": F.expr(f"{s}end IS NULL"),
        "__op": F.expr(f"{s}kind"),
        "__source_ts": F.expr(f"timestamp_millis({s}ts_ms)"),
        "__position": F.expr(f"{s}own"),
        "__topic": F.lit(to.topic),
        "__partition": F.expr(f"{s}partition"),
        "__offset": F.expr(f"{s}offset"),
        "__moved_from": F.expr(f"{s}old_key"),
        "__trace": F.expr(f"CAST({trace} AS {TRACE_TYPE})"),
    }
