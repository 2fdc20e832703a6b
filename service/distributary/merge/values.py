"""Values that the source did not send, followed through the changes of a slice.

PostgreSQL leaves unchanged TOAST values out of an update, and out of the new row of a changed key. What belongs there
is the value of the newest older change that has it: of the same key, or of the key that the row had before. A slice in
which values are missing is folded with a *life* beside each key's last word: what is known of the row since it was
created, read or moved to this key. What the slice alone can't tell is asked of the table and of the memory of
departures, see fill.py.

* vals MAP<STRING, STRUCT<pos: STRING, value: STRING>>: column to the newest value known, as text, with the position of
  the change that brought it
* base: what a column that is not in `vals` holds: 'table' (what the table's row holds; with left_tx and left_at only if
  that stays after the key's delete, see standing.stays), 'link' (what the row held under its old key), 'none' (nothing
  is known)
* waits MAP<STRING, STRING>: column to the departure (see link) whose value it waits for
* link STRING: the departure of the row from its old key, the same text on both halves of a key change
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pyspark.sql import Column
from pyspark.sql import functions as F

from distributary import sql
from distributary.config.table import TableSettings
from distributary.decode.bounds import Bounds
from distributary.decode.renames import Renames
from distributary.decode.types.from_name import type_of_name
from distributary.merge.position_sql import is_later, lsn_of

if TYPE_CHECKING:
    from distributary.merge.fold import Folding

VALS = "MAP<STRING, STRUCT<pos: STRING, value: STRING>>"
WAITS = "MAP<STRING, STRING>"
_LEFT = "left_tx: STRING, left_at: STRING"
LIFE = f"STRUCT<vals: {VALS}, base: STRING, link: STRING, begin: STRING, {_LEFT}>"
# `if_there`: whether the departure counts only with a row of that key in the table (that stays after the delete before,
# left_tx and left_at), only without, or in any case. `tx`: the transaction of the delete; NULL of a row that has not
# left yet, see departures().
DEPARTURE = f"STRUCT<id: STRING, pos: STRING, tx: STRING, if_there: BOOLEAN, life: {LIFE}, {_LEFT}>"
NO_VALS = f"CAST(map() AS {VALS})"
_LEFT_NOW = "'left_tx', s.left_tx, 'left_at', s.left_at"
_NOT_LEFT = "'left_tx', NULL, 'left_at', NULL"
_ARRAY, _MAP, _STRUCT = "array<", "map<string,", "struct<"
_FILLABLE = ("string", "binary", "variant")
_FILLABLE_PREFIXES = (_ARRAY, _MAP)
# JSON has timestamps to the millisecond, and one null for that of a variant and that of SQL.
_NOT_IN_JSON = ("timestamp", "variant")


@dataclass(frozen=True)
class Fillable:
    """The columns whose value may be missing: name to Spark type, and their places in the decoded row."""

    types: Mapping[str, str]
    places: Mapping[str, int]

    @staticmethod
    def of(columns: Mapping[str, str], key: Mapping[str, str], settings: TableSettings) -> Fillable:
        """Those of a table's columns that can hold a placeholder on the wire. Which ones are texts there although their
        type is another one, `settings` tell."""
        texts = _called_otherwise(settings)
        found = {n: t for n, t in columns.items() if n not in key and (n in texts or _can_be_missing(t))}
        places = {name: i for i, name in enumerate(columns)}
        return Fillable(found, {name: places[name] for name in found})


def _can_be_missing(kind: str) -> bool:
    return kind in _FILLABLE or kind.startswith(_FILLABLE_PREFIXES)


def _called_otherwise(settings: TableSettings) -> Collection[str]:
    """The columns that the config gives a type whose values may be texts on the wire, as the lake calls them. Without
    that a timestamp, say, is no text in the source, and always sent."""
    named = (name for name, kind in settings.columns.items() if type_of_name(kind, {}, Bounds()).may_be_unavailable)
    return set(Renames(settings.rename).all_of(named))


def as_text(value: str, kind: str) -> str:
    """STRING: a value of a fillable type as text, from which `from_text` makes it again."""
    if kind == "string":
        return value
    if kind == "binary":
        return f"base64({value})"
    if _is_json(kind):
        return f"to_json({value})"
    if kind.startswith(_ARRAY):
        return f"to_json(transform({value}, part_ -> {as_text('part_', _part(kind))}))"
    if kind.startswith(_MAP):
        return f"to_json(transform_values({value}, (name_, part_) -> {as_text('part_', _part(kind))}))"
    return f"CAST({value} AS STRING)"


def from_text(text: str, kind: str) -> str:
    """The value that `as_text` wrote."""
    if kind == "string":
        return text
    if kind == "binary":
        return f"unbase64({text})"
    if kind == "variant":
        return f"parse_json({text})"
    if _is_json(kind):
        return f"from_json({text}, {sql.text(kind)})"
    if kind.startswith(_ARRAY):
        return f"transform(from_json({text}, 'array<string>'), part_ -> {from_text('part_', _part(kind))})"
    if kind.startswith(_MAP):
        parts = f"from_json({text}, 'map<string,string>')"
        return f"transform_values({parts}, (name_, part_) -> {from_text('part_', _part(kind))})"
    return f"CAST({text} AS {kind})"


def _is_json(kind: str) -> bool:
    """Whether the type's values are the same again when they come back from JSON."""
    if kind.startswith((_ARRAY, _MAP)):
        return not any(inside in kind for inside in _NOT_IN_JSON)
    return kind == "variant" or kind.startswith(_STRUCT)


def _part(kind: str) -> str:
    """The type of an array's elements or of a map's values."""
    return kind[len(_ARRAY if kind.startswith(_ARRAY) else _MAP) : -1]


def entry(column: str, position: str, text: str) -> str:
    """STRUCT: an entry of VALS, for map_from_entries."""
    value = f"named_struct('pos', {position}, 'value', {text})"
    return f"named_struct('key', {sql.text(column)}, 'value', {value})"


def element_fields(folding: Folding) -> tuple[Column, ...]:
    """What the walk needs of a record beyond its usual fields; nothing for most slices."""
    if folding.values is None:
        return ()
    entries = ", ".join(
        f"CASE WHEN NOT coalesce(array_contains(missing, {place}), false)"
        f" THEN {entry(name, 'pos', as_text(f'row.c{place}', folding.values.types[name]))} END"
        for name, place in folding.values.places.items()
    )
    known = f"map_from_entries(array_compact(array({entries})))" if entries else NO_VALS
    vals = f"CAST(CASE WHEN row IS NOT NULL THEN {known} ELSE map() END AS {VALS})"
    return (
        F.expr(vals).alias("vals"),
        F.expr(departure_id("old_k", "pos", folding.connector)).alias("link_in"),
        F.expr(departure_id("k", "pos", folding.connector)).alias("link_out"),
    )


def departure_id(key: str, position: str, connector: str) -> str:
    """STRING: a row's departure from a key. Both halves of a key change have the same lsn (PostgreSQL) or position;
    the whole position may differ when one half is sent again without its commit level. As text a key stays the
    same when its column is widened."""
    place = lsn_of(position) if connector == "postgresql" else position
    return f"CASE WHEN {key} IS NOT NULL THEN concat(hex(xxhash64(to_json({key}))), '@', {place}) END"


def under_id(key: str, position: str, connector: str) -> str:
    """STRING: the row over which a key change put the one that has come to the key at `position`."""
    return f"concat('under ', {departure_id(key, position, connector)})"


def departures(connector: str) -> str:
    """ARRAY<STRUCT>: the departures of a walked key with state `s`. Where the slice ends before the row below has left,
    what it holds is overwritten by then: it is remembered as if it left now."""
    if_there = "CASE WHEN s.over = 'ask' THEN true END"
    now = (
        f"named_struct('id', {under_id('k', 's.pos', connector)}, 'pos', s.pos, 'tx', CAST(NULL AS STRING),"
        f" 'if_there', {if_there}, 'life', s.under, {_LEFT_NOW})"
    )
    return f"CASE WHEN s.over IN ('yes', 'ask') THEN concat(s.departures, array({now})) ELSE s.departures END"


def state(
    connector: str, lived: str, may_stay: str, same: str, *, keeps_deleted: bool
) -> Mapping[str, tuple[str, str, str]]:
    """The fields that the walk keeps beside its own: type, start, step (see fold._walk). `lived`, `may_stay` and `same`
    are the walk's own expressions of whether the key had a living row, whether its last delete may have left the
    table's row, and whether the record is the newest one, sent again; with `keeps_deleted` a deleted row stays and
    keeps its values."""
    gone = "role_ = 'lone' OR (role_ = 'newer' AND e.kind = 'd')" if not keeps_deleted else "false"

    def life_of(vals: str, rest: str, left: str = _NOT_LEFT) -> str:
        return f"CAST(named_struct('vals', {vals}, {rest}, {left}) AS {LIFE})"

    fresh = life_of(NO_VALS, "'base', 'none', 'link', NULL, 'begin', e.pos")
    full = life_of("e.vals", "'base', 'none', 'link', NULL, 'begin', e.pos")
    moved = life_of("e.vals", "'base', 'link', 'link', e.link_in, 'begin', e.pos")

    def with_vals(vals: str) -> str:
        left = "'left_tx', s.life.left_tx, 'left_at', s.life.left_at"
        return life_of(vals, "'base', s.life.base, 'link', s.life.link, 'begin', s.life.begin", left)

    # After such a delete the key has the table's row, or none.
    stays = "'base', 'table', 'link', NULL, 'begin', s.left_at"
    now = f"CASE WHEN {may_stay} THEN {life_of(NO_VALS, stays, _LEFT_NOW)} ELSE s.life END"
    updated = with_vals("map_zip_with(s.life.vals, e.vals, (n_, a_, b_) -> coalesce(b_, a_))")
    if not keeps_deleted:
        updated = f"CASE WHEN {may_stay} THEN {life_of('e.vals', stays, _LEFT_NOW)} ELSE {updated} END"

    # A change that is not the newest (it came late, from another partition) still knows more than an older one.
    newest = (
        "map_zip_with(s.life.vals, e.vals, (n_, a_, b_) -> CASE WHEN b_ IS NULL THEN a_ WHEN a_ IS NULL THEN b_"
        f" WHEN {is_later(connector, 'b_.pos', 'a_.pos')} THEN b_ ELSE a_ END)"
    )
    in_life = f"(s.life.begin IS NULL OR {is_later(connector, 'e.pos', 's.life.begin')})"
    life = f"""CASE
        WHEN {gone} THEN {fresh}
        WHEN role_ = 'read' THEN {full}
        WHEN role_ = 'newer' AND e.kind IN ('c', 'r') THEN CASE WHEN e.moved_in THEN {moved} ELSE {full} END
        WHEN role_ = 'newer' AND e.kind = 'u' THEN {updated}
        WHEN role_ = '' AND e.kind IN ('c', 'u') AND {in_life} THEN {with_vals(newest)}
        ELSE s.life END"""
    under = (
        f"CASE WHEN role_ = 'newer' AND e.moved_in AND {same} THEN s.under"
        f" WHEN role_ = 'newer' AND e.moved_in AND {lived} <> 'no' THEN {now}"
        f" WHEN role_ IN ('newer', 'kept', 'lone') THEN CAST(NULL AS {LIFE}) ELSE s.under END"
    )

    def departure(if_there: str, life: str) -> str:
        return (
            f"CAST(named_struct('id', e.link_out, 'pos', e.pos, 'tx', e.tx, 'if_there', {if_there}, 'life', {life},"
            f" {_LEFT_NOW}) AS {DEPARTURE})"
        )

    departures = f"""CASE
        WHEN role_ = 'newer' AND e.kind = 'd' AND e.moved_out AND NOT ({same})
        THEN concat(s.departures, array({departure("NULL", now)}))
        WHEN role_ = 'kept' AND NOT e.moved_out THEN s.departures
        WHEN role_ = 'kept' AND s.over = 'ask'
        THEN concat(s.departures, array({departure("true", "s.under")}, {departure("false", "s.life")}))
        WHEN role_ = 'kept' THEN concat(s.departures, array({departure("NULL", "s.under")}))
        ELSE s.departures END"""
    start = life_of(NO_VALS, "'base', 'table', 'link', NULL, 'begin', NULL")
    return {
        "life": (LIFE, start, life),
        "under": (LIFE, f"CAST(NULL AS {LIFE})", under),
        "departures": (f"ARRAY<{DEPARTURE}>", "array()", departures),
    }
