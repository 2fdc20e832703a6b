"""The state as plain lists and dicts, which JSON can hold, and back."""

from __future__ import annotations

from typing import Any

from distributary.rules.event import Arrival, Event, JsonValue, Position
from distributary.rules.high_water_mark import Mark
from distributary.rules.state import CaughtUp, Departure, EqualRows, KeyState, Origin, Row, RulesState


def to_json_value(state: RulesState) -> JsonValue:
    """The state as from_json_value reads it."""
    return {
        "partitions": state.partitions,
        "marks": [[partition, *_mark(mark)] for partition, mark in state.marks.items()],
        "special": [
            [
                name,
                _optional(key.base, _row),
                _optional(key.highest_position, _position),
                [_event(event) for event in key.recent],
            ]
            for name, key in state.special.items()
        ],
        "deleted_keys": [[name, _position(known)] for name, known in state.deleted_keys.items()],
        "truncates": [_event(truncate) for truncate in state.truncates],
        "departures": [
            [*name, _optional(departure.position, _position), _optional(departure.row, _row), departure.provisional]
            for name, departure in state.departures.items()
        ],
        "reads": list(state.snapshot_rows),  # the stored name, which older versions read
        "grown": state.partitions_changed,
        "growth_ends": None
        if state.partition_change_ends is None
        else [_position(state.partition_change_ends[0]), state.partition_change_ends[1]],
        "awaiting_tombstone": state.awaiting_tombstone,
        "equal_rows": [
            [name, _optional(equal.position, _position), equal.counts] for name, equal in state.equal_rows.items()
        ],
        "seen_changes": [[name, _position(at)] for name, at in state.seen_changes.items()],
        "compacted_until": state.compacted_until,
        "caught_up": _optional(state.caught_up, _caught_up),
        "caught_up_later": _optional(state.caught_up_later, _caught_up),
        "quiet": _optional(state.settled_until, _caught_up),
        "likely_times": {str(partition): mark.likely_time for partition, mark in state.marks.items()},
        "without_place": state.without_order,  # the stored name, which older versions read
    }


def from_json_value(plain: JsonValue) -> RulesState:
    """The inverse of to_json_value."""
    ends = plain["growth_ends"]
    likely_times = plain.get("likely_times", {})  # older versions wrote none
    return RulesState(
        partitions=plain["partitions"],
        marks={partition: _to_mark(rest, likely_times.get(str(partition), 0)) for partition, *rest in plain["marks"]},
        special={
            name: KeyState(_optional(base, _to_row), _optional(known, _to_position), [_to_event(one) for one in recent])
            for name, base, known, recent in plain["special"]
        },
        deleted_keys={name: _to_position(known) for name, known in plain["deleted_keys"]},
        truncates=[_to_event(truncate) for truncate in plain["truncates"]],
        departures={
            (key, change): Departure(_optional(position, _to_position), _optional(row, _to_row), provisional)
            for key, change, position, row, provisional in plain["departures"]
        },
        snapshot_rows=dict.fromkeys(plain["reads"]),
        partitions_changed=plain["grown"],
        partition_change_ends=None if ends is None else (_to_position(ends[0]), ends[1]),
        awaiting_tombstone=_to_arrivals(plain["awaiting_tombstone"]),
        equal_rows={name: EqualRows(_optional(at, _to_position), counts) for name, at, counts in plain["equal_rows"]},
        seen_changes={name: _to_position(at) for name, at in plain["seen_changes"]},
        compacted_until=plain["compacted_until"],
        caught_up=_optional(plain.get("caught_up"), _to_caught_up),
        caught_up_later=_optional(plain.get("caught_up_later"), _to_caught_up),
        settled_until=_optional(plain.get("quiet"), _to_caught_up),
        without_order={
            key: tuple((at[0], at[1]) for at in records) for key, records in plain.get("without_place", {}).items()
        },
    )


def _caught_up(moment: CaughtUp) -> JsonValue:
    return [_position(moment.position), moment.kafka_time]


def _to_caught_up(plain: JsonValue) -> CaughtUp:
    return CaughtUp(_to_position(plain[0]), plain[1])


def _optional(value: Any, convert: Any) -> Any:
    return None if value is None else convert(value)


def _position(at: Position) -> JsonValue:
    level = None if at.level is None else list(at.level)
    return [level, list(at.sub_position), at.transaction, at.time, at.epoch, at.server]


def _to_position(plain: JsonValue) -> Position:
    level, sub_position, *rest = plain
    return Position(None if level is None else tuple(level), tuple(sub_position), *rest)


def _to_arrivals(plain: JsonValue) -> dict[str, tuple[Arrival, ...]]:
    return {key: tuple((at[0], at[1], at[2]) for at in arrivals) for key, arrivals in plain.items()}


def _event(event: Event) -> JsonValue:
    return [
        *(event.op, event.key, event.partition, event.offset, event.timestamp),
        _optional(event.position, _position),
        *(event.change, event.snapshot_identity, event.moved_from, event.moved_to),
        *(
            list(event.unavailable),
            event.quarantined,
            event.is_duplicate,
            list(event.arrival),
            event.content,
            _optional(event.scope, list),
        ),
    ]


def _to_event(plain: JsonValue) -> Event:
    at, arrival, unavailable = _optional(plain[5], _to_position), tuple(plain[13]), tuple(plain[10])
    op, key, partition, offset, timestamp = plain[:5]
    change, read, moved_from, moved_to = plain[6:10]
    quarantined, is_duplicate, content = plain[11], plain[12], plain[14]
    scope = plain[15] if len(plain) > 15 else None  # older versions wrote none
    more = content, None if scope is None else (scope[0], scope[1])
    names = change, read, moved_from, moved_to
    return Event(
        op, key, partition, offset, timestamp, at, *names, unavailable, quarantined, is_duplicate, arrival, *more
    )


def _row(row: Row) -> JsonValue:
    positions = [_optional(at, _position) for at in (row.position, row.effective_position, row.highest_position)]
    origins = [[column, None if origin is None else list(origin)] for column, origin in row.origins]
    return [
        list(row.at),
        row.op,
        *positions,
        origins,
        row.ended,
        _optional(row.ended_at, _position),
        _optional(row.replaced_row, _row),
    ]


def _to_row(plain: JsonValue) -> Row:
    at, op, *positions, origins, ended, ended_at, covered = plain
    position, effective_position, known = (_optional(one, _to_position) for one in positions)
    named = tuple((column, _to_origin(origin)) for column, origin in origins)
    return Row(
        tuple(at),
        op,
        position,
        effective_position,
        known,
        named,
        ended,
        _optional(ended_at, _to_position),
        _optional(covered, _to_row),
    )


def _to_origin(plain: JsonValue) -> Origin:
    return None if plain is None else (plain[0], plain[1])


def _mark(mark: Mark) -> list[JsonValue]:
    unknown = [[name, _position(at), sorted(ties)] for name, (at, ties) in mark.unknown.items()]
    position = _optional(mark.position, _position)
    return [
        position,
        sorted(mark.ties),
        unknown,
        mark.time,
        list(mark.reach),
        mark.kafka_time,
        mark.awaiting_tombstone,
        sorted(mark.cleared),
    ]


def _to_mark(plain: list[JsonValue], likely_time: int) -> Mark:
    position, ties, unknown, time, reach, kafka_time, awaiting, cleared = plain
    newest = {name: (_to_position(at), set(tied)) for name, at, tied in unknown}
    return Mark(
        _optional(position, _to_position),
        set(ties),
        newest,
        time,
        tuple(reach),
        kafka_time,
        _to_arrivals(awaiting),
        set(cleared),
        likely_time,
    )
