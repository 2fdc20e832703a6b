"""Deliberate faults of the rules: the gate and the unit tests of the rules must notice each (mutation_check.py)."""

from __future__ import annotations

from tests.model.mutations import Mutation


def rule(name: str, number: str, module: str, old: str, new: str) -> Mutation:
    """A fault of a module of the rules."""
    return Mutation(name, number, f"rules/{module}.py", old, new)


MUTATIONS = (
    rule(
        "a delete does not come first at an equal position", "2.2", "order", '(one.op != "d") - (other.op != "d")', "0"
    ),
    rule("the place inside a level is no order", "2.1", "order", "or _sign(one.inside, other.inside)", "or 0"),
    rule(
        "a binlog's file is no part of the order", "2.1", "position_text", "Position(parts[:2]", "Position(parts[1:2]"
    ),
    rule("an unknown level sorts lowest", "2.1", "order", "if one.level is None or other.level is None:", "if False:"),
    rule(
        "SQL Server's changes of one commit arrive in order", "2.1", "order", '("oracle", "sqlserver")', '("oracle",)'
    ),
    rule(
        "PostgreSQL's snapshot rows go by position",
        "2.3",
        "order",
        'return event.op == "r" and connector == "postgresql"',
        "return False",
    ),
    rule(
        "no snapshot row shows what a later change did",
        "2.3",
        "order",
        "return read.inside > change.inside",
        "return False",
    ),
    rule(
        "an equal position is before a truncate",
        "3.6",
        "order",
        "return compare(connector, place, truncate) < 0",
        "return compare(connector, place, truncate) <= 0",
    ),
    rule("nothing is seen", "2.4", "admit", "    if seen:\n        return True\n", ""),
    rule("an equal position is always seen", "2.4", "admit", "(sign == 0 and identity in mark.ties)", "sign == 0"),
    rule(
        "unknown transactions are always new",
        "2.4",
        "admit",
        "seen = position.time <= mark.time and position.inside <= mark.reach\n    else:",
        "seen = False\n    else:",
    ),
    rule(
        "a tombstone behind its delete counts",
        "3.3",
        "admit",
        "Verdict.SEEN if event.key in mark.awaiting_tombstone else Verdict.NEW",
        "Verdict.NEW",
    ),
    rule("a source never goes back", "2.6", "admit", "if event.position.time > mark.time and mark.time:", "if False:"),
    rule(
        "what another partition had read means that the source went back",
        "2.6",
        "admit",
        " and (grown or event.op",
        " and (False and event.op",
    ),
    rule(
        "snapshot rows that come again are new",
        "2.3",
        "admit",
        "if event.read is None or identity not in reads:",
        "if True:",
    ),
    rule("a deferred delete takes the top row", "2.7", "step", "line.alive.pop(0)", "line.alive.pop()"),
    rule(
        "a moved row replaces the living one",
        "2.7",
        "step",
        "(line.alive if event.is_move else line.alive[:-1])",
        "line.alive[:-1]",
    ),
    rule("rows of an earlier transaction stay under the top", "2.7", "step", "line.alive = line.alive[-1:]", "pass"),
    rule(
        "a lone tombstone deletes nothing",
        "3.3",
        "step",
        "        line.alive = []\n        _end_last(line)",
        "        pass",
    ),
    rule(
        "a truncate takes all rows",
        "3.6",
        "step",
        "[row for row in line.alive if precedes_truncate(connector, row.place, at)]",
        "list(line.alive)",
    ),
    rule("a delete tells no departure", "3.4", "step", "event.moved_to is not None and not line.incomplete", "False"),
    rule("a departure is told though a change before it waits", "6.3", "step", " and not line.incomplete", ""),
    rule("soft deletes do not mark rows", "3.2", "step", 'ended=line.last.ended or "d"', 'ended=line.last.ended or ""'),
    rule("a move is no reason to remember a key", "2.8", "step", "line.stacked = True", "pass"),
    rule(
        "an unsent value comes from the row's own record", "3.7", "pointers", "known.get(column, under.at)", "event.at"
    ),
    rule(
        "an unsent value comes from the last update only", "3.7", "pointers", "known.get(column, under.at)", "under.at"
    ),
    rule(
        "a moved row takes values of the row that it replaces",
        "3.4",
        "pointers",
        "if reference is not None:\n        return tuple",
        "if False:\n        return tuple",
    ),
    rule(
        "departures are not followed from key to key",
        "3.4",
        "pointers",
        "dict(row.origins).get(column, row.at)",
        "row.at",
    ),
    rule("late snapshot rows stand at the end", "2.3", "fold", "recent.insert(place, event)", "recent.append(event)"),
    rule(
        "copies are new where a topic has grown",
        "2.5",
        "fold",
        "        if _is_in_base(connector, key, event):\n            return False\n    elif",
        "        pass\n    elif",
    ),
    rule(
        "identities are not compared where a topic has grown",
        "2.5",
        "fold",
        "return one.change is not None and one.change == other.change",
        "return False",
    ),
    rule(
        "truncates come after all events",
        "3.6",
        "fold",
        "steps.append((after + 0.5, truncate, None))",
        "steps.append((len(events), truncate, None))",
    ),
    rule(
        "a truncate is remembered twice",
        "4.3",
        "truncate",
        "if known.change is not None and known.change == truncate.change:",
        "if False:",
    ),
    rule(
        "a row that a truncate ended does not come again",
        "3.6",
        "truncate",
        'return row.ended == "t" and any(',
        "return False and any(",
    ),
    rule(
        "truncates are forgotten at once",
        "3.6",
        "closing",
        "        if not is_passed(connector, state, truncate.position)\n        or any",
        "        if any",
    ),
    rule(
        "departures are forgotten at once",
        "3.4",
        "closing",
        "if name in asked or not is_passed(connector, state, departure.position)",
        "if name in asked",
    ),
    rule(
        "deletes are forgotten at once",
        "3.2",
        "closing",
        "if not is_passed(connector, state, known)\n        }",
        "if False\n        }",
    ),
    rule(
        "a key that waits is forgotten",
        "3.4",
        "closing",
        " or any(is_waiting(row, state.departures) for row in rows)",
        "",
    ),
    rule(
        "versions are closed while they wait for an event in quarantine",
        "4.2",
        "closing",
        'if has_quarantined and rules.mode == "history":',
        "if False:",
    ),
    rule(
        "a settled delete does not see a truncate that came early",
        "3.6",
        "closing",
        "fold(rules.connector, key, settled, truncates, remembered)",
        "fold(rules.connector, key, settled, truncates)",
    ),
    rule(
        "a row under a snapshot row asks for nothing",
        "3.4",
        "pointers",
        "references_of(row.covered) if row.covered is not None else set()",
        "set[tuple[str, str]]()",
    ),
    rule(
        "events in quarantine do not hold their key",
        "6.3",
        "closing",
        "or key.has_quarantined ",
        "",
    ),
    rule(
        "no change from before a snapshot comes after its row",
        "2.3",
        "closing",
        'return row.op == "r" and rules.connector',
        "return False and rules.connector",
    ),
    rule(
        "a growing topic makes no key special",
        "2.5",
        "closing",
        "state.grown or line.stacked",
        "line.stacked",
    ),
    rule("a transaction is parted", "2.7", "closing", "        count -= 1\n", "        break\n"),
    rule(
        "new partitions begin at nothing",
        "2.5",
        "watermark",
        "Mark() if lowest is None else replace(lowest.copy(), clock=0, awaiting_tombstone={})",
        "Mark()",
    ),
    rule(
        "a delete from before the growth awaits no tombstone",
        "3.3",
        "watermark",
        "state.awaiting_tombstone[key] = (*state.awaiting_tombstone.get(key, ()), *arrivals)",
        "pass",
    ),
    rule(
        "one partition's mark is enough",
        "2.8",
        "watermark",
        "for partition in range(state.partitions):\n        mark",
        "for partition in range(1):\n        mark",
    ),
    rule(
        "soft truncates remove rows", "3.6", "outcome", '(line.emptied and rules.truncate == "apply")', "line.emptied"
    ),
    rule("ignored truncates are applied", "3.6", "batch", 'if self._rules.truncate == "ignore":', "if False:"),
    rule("equal rows of one place are one row", "4.3", "keyless", "ordinal if state.partitions == 1 else 1", "1"),
    rule(
        "copies by another partition are appended",
        "4.3",
        "keyless",
        "    if identity in state.seen_changes:",
        "    if False:",
    ),
    rule("a run never ends", "4.3", "keyless", "or _place(run.place) != _place(event.position):", "or False:"),
    rule(
        "of keys that occur once a create over a living row is plain",
        "2.7",
        "plain_keys",
        "(found.alive & (operation == CREATE))",
        "(found.alive & False)",
    ),
    rule(
        "columns with two changes of one place are all new",
        "2.4",
        "admit_columns",
        "if bool(rises[rows].all()) and _is_above",
        "if _is_above",
    ),
    rule(
        "a key that is gone is plain",
        "3.2",
        "plain_keys",
        "plain[columns.codes_of(state.deleted_keys)] = False",
        "pass",
    ),
    rule("columns are above any mark", "2.4", "admit_columns", "    if not in_order.all() or", "    if False and"),
    rule("tombstones are appended", "4.3", "batch", " and event.op != TOMBSTONE:", ":"),
    rule(
        "values that recent events need are not kept",
        "3.7",
        "batch",
        "return found | {event.at for key in state.special.values() for event in key.recent}",
        "return found",
    ),
)
