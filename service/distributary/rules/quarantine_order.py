"""Rule 6.3: how long a record in quarantine keeps its order among the changes of its key.

Until it is replayed, the changes behind it are remembered. At a bound it loses its order. From then on a replay applies
it only if no newer change of its key was applied. Newer changes lack the unavailable values and the moved row that they
would have had from this record. A record whose position could not be read has no order from the start.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from distributary.rules.event import Event, Pointer
from distributary.rules.state import KeyState, RuleSettings, RulesState

MOST_BEHIND = 10_000
"""The bound of each of these: the changes that are remembered for one key with a record in quarantine; the key changes
and truncates of a table with such records; the records without a position in `RulesState.without_order`. Each commit
writes all of them, and each change of a key folds all that are remembered for the key."""
MOST_IN_ALL = 100_000
"""Changes of all such keys: about 65 MB, and 18 MB of the state's text."""


def give_up_order(state: RulesState, keys: Mapping[str, KeyState]) -> int:
    """Removes from the memory the events in quarantine behind which too much is remembered. The records stay in
    quarantine, without their order. Returns their number. `keys`: all special keys."""
    waiting = {name: key for name, key in keys.items() if key.has_quarantined}
    if not waiting and not any(truncate.quarantined for truncate in state.truncates):
        return 0
    in_all = sum(len(key.recent) for key in waiting.values())
    is_over = in_all > MOST_IN_ALL or len(state.departures) + len(state.truncates) > MOST_BEHIND
    count = 0
    for name, key in waiting.items():
        if is_over or len(key.recent) > MOST_BEHIND:
            applicable = [event for event in key.recent if not event.quarantined]
            count += len(key.recent) - len(applicable)
            lost = tuple(event.at for event in key.recent if event.quarantined)
            state.without_order[name] = (*state.without_order.get(name, ()), *lost)
            key.recent = applicable
    if is_over:
        known = state.applicable_truncates
        count += len(state.truncates) - len(known)
        state.truncates = known
    return count


def note_without_order(state: RulesState, records: Iterable[tuple[str, Pointer]]) -> int:
    """Notes records that are in quarantine because their position could not be read, each with its key. Past the bound
    as many are forgotten as are new, first those whose keys were noted longest ago: they may be replayed or purged long
    since. Returns the number of forgotten records."""
    new: dict[str, dict[Pointer, None]] = {}
    for key, pointer in records:
        new.setdefault(key, {})[pointer] = None
    added = 0
    for key, pointers in new.items():
        noted = dict.fromkeys(state.without_order.pop(key, ()))
        added += len(pointers.keys() - noted.keys())
        state.without_order[key] = (*noted, *(pointer for pointer in pointers if pointer not in noted))
    forgotten = min(added, max(0, sum(map(len, state.without_order.values())) - MOST_BEHIND))
    left = forgotten
    while left:
        key = next(iter(state.without_order))
        noted_before = state.without_order.pop(key)
        if rest := noted_before[left:]:
            state.without_order = {key: rest, **state.without_order}
        left -= len(noted_before) - len(rest)
    return forgotten


def note_events_without_order(rules: RuleSettings, state: RulesState, events: Iterable[Event]) -> int:
    """As note_without_order, of events in quarantine whose position is wrong (rule 2.6)."""
    keyed = [(event.key, event.at) for event in events if event.key is not None]
    return note_without_order(state, keyed) if rules.mode != "append" else 0


def note_replayed(state: RulesState, event: Event) -> None:
    """Notes that a record without order was replayed."""
    if event.key in state.without_order:
        rest = tuple(pointer for pointer in state.without_order.pop(event.key) if pointer != event.at)
        if rest:
            state.without_order[event.key] = rest
