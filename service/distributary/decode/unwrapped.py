"""Rows without an envelope, as Debezium's ExtractNewRecordState leaves them.

What the envelope said is lost but for what `add.fields` and `add.headers` put into the row or beside it, under names
with a prefix. Here such a row is made into what the envelope would have held, as far as it is known.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field

from pyspark.sql import Column
from pyspark.sql import functions as F

from distributary.decode import envelope as e
from distributary.decode import sql
from distributary.decode.position import BY_OFFSET, needed_for_order

DELETED_FIELD = "__deleted"
"""Added by `rewrite`, whatever the prefix."""

_DEFAULT_PREFIX = "__"
_SOURCE = (
    "version", "connector", "name", "ts_ms", "ts_us", "ts_ns", "snapshot", "db", "schema", "table", "sequence",
    "lsn", "txId", "xmin", "origin", "origin_lsn", "commit_lsn", "change_lsn", "event_serial_no",
    "file", "pos", "row", "server_id", "gtid", "thread", "query",
    "scn", "commit_scn", "rs_id", "ssn", "redo_thread", "lcr_position", "user_name", "redo_sql", "row_id",
    "commit_ts_ms", "start_scn", "start_ts_ms", "txSeq",
)  # fmt: skip
_ENVELOPE = ("op", "ts_ms", "ts_us", "ts_ns")
_TRANSACTION = ("id", "total_order", "data_collection_order")
_READ_BY_SNAPSHOT = (
    *("true", "first", "last", "first_in_data_collection", "last_in_data_collection", "incremental"),
    "blocking_snapshot",
)
_UNUSED = ""


@dataclass(frozen=True)
class Unwrapped:
    """How a topic's rows without envelope are read.

    `fields` and `headers` say what ExtractNewRecordState added: the name it has there, and what it is: `op`,
    `deleted`, a field of the source block, or empty where nothing asks for it. `connector` wrote the records, None
    where nothing tells which.
    """

    fields: Mapping[str, str]
    headers: Mapping[str, str] = field(default_factory=dict)
    connector: str | None = None

    def present(self, names: Iterator[str]) -> dict[str, str]:
        """Those of a row's fields that were added: name and what it is."""
        return {name: self.fields[name] for name in names if name in self.fields}


def added_by(properties: Mapping[str, str]) -> Unwrapped:
    """What ExtractNewRecordState adds, by its own settings where the config has them, else all that it may add.

    `properties` are the connector's settings (`add.fields`, `add.fields.prefix` and the same for headers, also as
    `transforms.unwrap.add.fields` and so on).
    """
    return Unwrapped({DELETED_FIELD: "deleted", **_names(properties, "add.fields")}, _names(properties, "add.headers"))


def _names(properties: Mapping[str, str], named: str) -> dict[str, str]:
    prefix = setting(properties, f"{named}.prefix")
    prefix = _DEFAULT_PREFIX if prefix is None else prefix
    listed = setting(properties, named)
    if listed is not None:
        return dict(_listed(item.strip(), prefix) for item in listed.split(",") if item.strip())
    if not prefix:
        return {}  # any column of the source could have such a name
    names = {f"{prefix}{name}": name for name in _SOURCE}
    names |= {f"{prefix}{name}": _UNUSED for name in (*_ENVELOPE, *_TRANSACTION[1:])}
    names |= {f"{prefix}source_{name}": name for name in _SOURCE}
    names |= {f"{prefix}transaction_{name}": _UNUSED for name in _TRANSACTION}
    return {**names, f"{prefix}op": "op"}


def setting(properties: Mapping[str, str], named: str) -> str | None:
    """What the connector's settings say under that name, be it a transform's (`transforms.unwrap.add.fields`)."""
    found = (value for name, value in properties.items() if name == named or name.endswith(f".{named}"))
    return next(found, None)


def _listed(item: str, prefix: str) -> tuple[str, str]:
    """One entry of `add.fields`: `op`, `source.lsn`, `lsn:NEW_NAME`."""
    place, _, renamed = item.partition(":")
    struct, _, name = place.rpartition(".")
    of_source = struct == "source" or (not struct and name not in _ENVELOPE)
    meaning = name if of_source else "op" if (struct, name) == ("", "op") else _UNUSED
    return prefix + (renamed or place.replace(".", "_")), meaning


def header_texts(headers: Column, names: Mapping[str, str]) -> Column:
    """STRUCT of STRING: what was added as headers, by what it is.

    SimpleHeaderConverter writes the bare text, JsonConverter JSON, perhaps with a schema beside it.
    """
    texts = []
    for name, meaning in names.items():
        found = F.try_element_at(F.filter(headers, _is_named(name)), F.lit(1))
        text = found["value"].cast("string")
        quoted = F.get_json_object(F.concat(F.lit('{"text":'), text, F.lit("}")), "$.text")
        plain = F.when(F.startswith(text, F.lit('{"schema":')), F.get_json_object(text, "$.payload"))
        plain = plain.when(F.startswith(text, F.lit('"')), quoted).otherwise(F.nullif(text, F.lit("null")))
        texts.append(plain.alias(meaning))
    return F.struct(*texts)


def _is_named(name: str) -> Callable[[Column], Column]:
    return lambda header: header["key"] == name


def row_signature(value: str) -> str:
    """STRING: the names of a row's fields, as JSON; an envelope among rows has none."""
    wrapped = (
        f"get_json_object({value}, '$.op') IS NOT NULL AND get_json_object({value}, '$.source.connector') IS NOT NULL"
    )
    return f"CASE WHEN {wrapped} THEN '[]' ELSE to_json(json_object_keys({value})) END"


def as_envelope(order: str, added: Mapping[str, str], headers: Mapping[str, str]) -> str:
    """STRUCT<op, source, before, after> of a parsed row, as if it came in an envelope.

    The row lies in the column `raw`, what came in headers in `h`. `order` is the connector
    by whose positions the table is ordered, or BY_OFFSET; `added` are the row's added fields.

    A null value is a delete: one with a position where that is known (by offset always), so that `op` is `d`, else a
    tombstone, of which `op` is NULL.
    """
    at: dict[str, list[str]] = {}
    for name, meaning in added.items():
        at.setdefault(meaning, []).append(f"raw.{sql.name(name)}")
    for meaning in headers.values():
        at.setdefault(meaning, []).append(f"h.{sql.name(meaning)}")

    def known(meaning: str) -> str:
        return f"coalesce({', '.join([*at.get(meaning, ()), 'CAST(NULL AS STRING)'])})"

    deleted = f"(coalesce(lower({known('deleted')}) = 'true', false) OR coalesce({known('op')} = 'd', false))"
    placed = "true" if order == BY_OFFSET else " AND ".join(f"{known(n)} IS NOT NULL" for n in needed_for_order(order))
    read = ", ".join(map(sql.text, _READ_BY_SNAPSHOT))
    op = (
        f"CASE WHEN v IS NULL THEN CASE WHEN {placed} THEN 'd' END WHEN {deleted} THEN 'd'"
        f" WHEN {known('op')} IS NOT NULL THEN {known('op')} WHEN lower({known('snapshot')}) IN ({read}) THEN 'r'"
        " WHEN old_key IS NOT NULL THEN 'c' ELSE 'u' END"
    )
    # The order is not that of a connector: no connector's name can contradict it.
    of_source = {
        name: "CAST(NULL AS STRING)" if name == "connector" and order == BY_OFFSET else known(name)
        for name in e.source_fields(order)
    }
    source = ", ".join(f"'{name}', {value}" for name, value in of_source.items())
    return (
        f"named_struct('op', {op}, 'source', named_struct({source}),"
        f" 'before', CASE WHEN {deleted} THEN raw END, 'after', CASE WHEN NOT {deleted} THEN raw END)"
    )
