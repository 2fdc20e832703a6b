"""Rows without an envelope, as Debezium's ExtractNewRecordState leaves them.

Only those fields of the envelope remain that `add.fields` and `add.headers` copy into the row or into headers, under
names with a prefix. A row is read as if it was the envelope that these fields describe.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from distributary.decode.envelope import Change
from distributary.decode.position import CONNECTORS
from distributary.decode.source_block import BY_OFFSET, SNAPSHOT_READS, SOURCE_FIELDS, Source

DELETED_FIELD = "__deleted"
"""The field that `rewrite` adds, under any prefix."""

_DEFAULT_PREFIX = "__"
_BLOCK = (
    *("version", "connector", "name", "ts_ms", "ts_us", "ts_ns", "snapshot", "db", "schema", "table", "sequence"),
    *("lsn", "txId", "xmin", "origin", "origin_lsn", "commit_lsn", "change_lsn", "event_serial_no", "file", "pos"),
    *("row", "server_id", "gtid", "thread", "query", "scn", "commit_scn", "rs_id", "ssn", "redo_thread"),
    *("lcr_position", "user_name", "redo_sql", "row_id", "commit_ts_ms", "start_scn", "start_ts_ms", "txSeq"),
)
_ENVELOPE = ("op", "ts_ms", "ts_us", "ts_ns")
_TRANSACTION = ("id", "total_order", "data_collection_order")
_UNUSED = ""


@dataclass(frozen=True)
class Unwrapped:
    """How a topic's rows without envelope are read.

    `fields` and `headers` map the names that ExtractNewRecordState added to their meaning: `op`, `deleted`, a field of
    the source block, or empty if it is not used. `connector` wrote the records; None if it is unknown.
    `has_delete_rows`: a delete has a row, whether a null follows or not.
    """

    fields: Mapping[str, str]
    headers: Mapping[str, str] = field(default_factory=dict)
    connector: str | None = None
    has_delete_rows: bool = False

    def present(self, names: Iterable[str]) -> dict[str, str]:
        """The added ones among a row's fields, with their meaning."""
        return {name: self.fields[name] for name in names if name in self.fields}


def added_by(properties: Mapping[str, str], connector: str | None = None) -> Unwrapped:
    """The fields that ExtractNewRecordState adds, by its own settings if the config has them, else all that it may add.

    `properties` are the connector's settings (`add.fields`, `add.fields.prefix` and the same for headers, also as
    `transforms.unwrap.add.fields` and so on).
    """
    fields = {DELETED_FIELD: "deleted", **_names(properties, "add.fields")}
    return Unwrapped(fields, _names(properties, "add.headers"), connector)


def _names(properties: Mapping[str, str], named: str) -> dict[str, str]:
    prefix = setting(properties, f"{named}.prefix")
    prefix = _DEFAULT_PREFIX if prefix is None else prefix
    listed = setting(properties, named)
    if listed is not None:
        return dict(_listed(item.strip(), prefix) for item in listed.split(",") if item.strip())
    if not prefix:
        return {}  # any column of the source could have such a name
    names = {f"{prefix}{name}": name for name in _BLOCK}
    names |= {f"{prefix}{name}": _UNUSED for name in (*_ENVELOPE, *_TRANSACTION[1:])}
    names |= {f"{prefix}source_{name}": name for name in _BLOCK}
    names |= {f"{prefix}transaction_{name}": _UNUSED for name in _TRANSACTION}
    return {**names, f"{prefix}op": "op"}


def setting(properties: Mapping[str, str], named: str) -> str | None:
    """The connector's setting of that name, also a transform's (`transforms.unwrap.add.fields`)."""
    values = (value for name, value in properties.items() if name == named or name.endswith(f".{named}"))
    return next(values, None)


def _listed(item: str, prefix: str) -> tuple[str, str]:
    """Name and meaning of one entry of `add.fields`: `op`, `source.lsn`, `lsn:NEW_NAME`."""
    place, _, renamed = item.partition(":")
    struct, _, name = place.rpartition(".")
    of_source = struct == "source" or (not struct and name not in _ENVELOPE)
    meaning = name if of_source else "op" if (struct, name) == ("", "op") else _UNUSED
    return prefix + (renamed or place.replace(".", "_")), meaning


def change_of_row(row: Any, added: Mapping[str, Any], order: str, *, has_value: bool, has_old_key: bool) -> Change:
    """The change that a row describes. `added` are the added values, by their meaning; `order` is the connector by
    whose positions the table is ordered, or BY_OFFSET.

    A null value is a delete if its position is known (it always is by offset), else a tombstone, with None as `op`.
    """
    op = added.get("op")
    op = None if op is None else str(op)
    deleted = str(added.get("deleted")).lower() == "true" or op == "d"
    if not has_value:
        is_placed = order == BY_OFFSET or all(added.get(name) is not None for name in CONNECTORS[order].needed)
        op = "d" if is_placed else None
    elif deleted:
        op = "d"
    elif op is None:
        is_read = str(added.get("snapshot")).lower() in SNAPSHOT_READS
        op = "r" if is_read else "c" if has_old_key else "u"
    # If the table is ordered by offset, no connector's name can contradict the order.
    block = {name: added[name] for name in SOURCE_FIELDS if added.get(name) is not None}
    if order == BY_OFFSET:
        block.pop("connector", None)
    change = Change(op, Source(**block))
    if deleted:
        change.before = row
    else:
        change.after = row
    return change
