"""Shapes that are not known yet: which signatures a slice has, and which types its values show."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from distributary.decode.renames import NO_RENAMES, Renames
from distributary.decode.shapes import Signature, has_schema
from distributary.decode.slices import CUT, OPEN
from distributary.decode.types import by_value

NO_FIELDS = "[]"


@dataclass(frozen=True)
class Seen:
    """A signature with the timestamp of the newest record that has it (seconds since 1970)."""

    signature: Signature
    newest: float


def signatures(records: DataFrame, renames: Renames = NO_RENAMES, exclude: Iterable[str] = ()) -> list[Seen]:
    """The signatures of sliced records, oldest first (one Spark job), see combined."""
    rows = (
        records.where("fault IS NULL AND (v IS NULL OR startswith(ltrim(v), '{'))")
        .groupBy("ks", "vs")
        .agg(F.expr("max(timestamp)").cast("double").alias("newest"))
        .collect()
    )
    return combined(((row["ks"], row["vs"], row["newest"] or 0.0) for row in rows), renames, exclude)


def told_by_schemas(records: Iterable[tuple[bytes | None, bytes | None, int]]) -> list[Seen] | None:
    """What signatures() would say of some records (key, value, and timestamp in milliseconds), without any job; None
    where one of them is not as JsonConverter writes it with its schema."""
    found: list[tuple[str | None, str | None, float]] = []
    for key, value, timestamp in records:
        of_key, of_row = (None if data is None else _schema_beside(data) for data in (key, value))
        if (key is not None and of_key is None) or (value is not None and of_row is None):
            return None
        found.append((of_key, of_row, timestamp / 1000))
    return combined(found)


def _schema_beside(data: bytes) -> str | None:
    """The schema before a payload that is an object or null, cut as slices.sliced cuts it; None of all else."""
    try:
        schema, _, behind = data.decode().partition(CUT)
    except UnicodeDecodeError:
        return None
    is_payload = (behind.startswith("{") and behind.endswith("}")) or behind == "null}"
    return schema.removeprefix(OPEN) if is_payload and schema.startswith(OPEN + "{") else None


def combined(
    seen: Iterable[tuple[str | None, str | None, float]], renames: Renames = NO_RENAMES, exclude: Iterable[str] = ()
) -> list[Seen]:
    """Pairs of key and row signatures, as few as cover all: tombstones have no row, truncates no key.

    Rows without schema give one, of the fields of all, as long as the lake has a name for each of them: those from
    before and after the source renamed a column may not be read as one, see renames.Renames.clash. Fields that are
    left out (`exclude`) need no name.
    """
    found = sorted(seen, key=lambda s: s[2])
    left_out = frozenset(exclude)
    whole: dict[Signature, float] = {}
    free: dict[str | None, list[tuple[set[str], float]]] = {}
    for key, row, newest in found:
        if row is None or row == NO_FIELDS:
            continue
        if has_schema(row):
            whole[Signature(key, row)] = newest
        else:
            groups = free.setdefault(key, [])
            names = set(json.loads(row))
            # The youngest first: what fits several is most likely written as the next records are.
            for at, (fields, _) in reversed(list(enumerate(groups))):
                if not renames.clash((fields | names) - left_out):
                    groups[at] = (fields | names, newest)
                    break
            else:
                groups.append((names, newest))
    for key, groups in free.items():
        for fields, newest in groups:
            row = json.dumps(_stable(fields, found), ensure_ascii=False, separators=(",", ":"))
            whole[Signature(key, row)] = newest
    keyed_rows = {s.row: s for s in whole if s.key is not None}
    for signature in list(whole):  # a truncate's row has the same schema as the others', but no key
        if signature.key is None and signature.row in keyed_rows:
            del whole[signature]
    known_keys = {s.key for s in whole}
    for key, _row, newest in found:
        if key is not None and key not in known_keys:
            whole[Signature(key, None)] = newest
    return [Seen(s, newest) for s, newest in sorted(whole.items(), key=lambda item: item[1])]


def _stable(fields: set[str], found: list[tuple[str | None, str | None, float]]) -> list[str]:
    """The fields in the order in which the records have them, the oldest first."""
    order: dict[str, None] = {}
    for _, row, _ in found:
        if row is not None and not has_schema(row):
            order.update(dict.fromkeys(json.loads(row)))
    return [name for name in order if name in fields]


def types_by_value(
    records: DataFrame, columns: Iterable[str], *, unwrapped: bool = False, before: bool = False
) -> Mapping[str, str]:
    """The types that the values of such columns show, in rows and keys without schema (one Spark job).

    A column of which all values are null is left out. `before`: where there is no row after the change, the one before
    it counts.
    """
    wanted = list(columns)
    rows = "get_json_object(v, '$.after')" + (", get_json_object(v, '$.before')" if before else "")
    row = "v" if unwrapped else f"coalesce({rows})"
    parsed = records.where("fault IS NULL").select(
        F.expr(f"array(try_parse_json({row}), try_parse_json(k))").alias("parsed")
    )
    values = (
        parsed.select(F.explode("parsed").alias("object"))
        .where("startswith(schema_of_variant(object), 'OBJECT')")
        .select(F.expr("explode(CAST(object AS MAP<STRING, VARIANT>))"))
        .where(F.col("key").isin(wanted))
    )
    shown = values.groupBy("key").agg(F.collect_set(F.expr("schema_of_variant(value)")).alias("types")).collect()
    types = {}
    for column in shown:
        kinds = {kind for kind in (by_value(t) for t in column["types"]) if kind is not None}
        if kinds:
            types[column["key"]] = common(kinds)
    return types


def common(kinds: Collection[str]) -> str:
    """The one type of a column whose values show several."""
    kinds = set(kinds)
    if len(kinds) == 1:
        return kinds.pop()
    return "double" if kinds == {"bigint", "double"} else "string"
