"""Thousands of seeded random cases: small histories whose changes often concern the same keys.

Hypothesis (strategies.py) draws from the same histories, but only a case that depends on flavour and seed alone can be
named in a report and run again.
"""

from __future__ import annotations

from dataclasses import replace
from random import Random

from tests.model.case import Case, Kept
from tests.model.delivery import Again, Delivery
from tests.model.source.history import (
    READS,
    Delete,
    History,
    Move,
    Operation,
    Put,
    Read,
    Rename,
    Replace,
    Restart,
    Step,
    Together,
    Touch,
    Transaction,
    Truncate,
)
from tests.model.strategies import ALL, KEYS, LARGEST, Wanted

from distributary.rules.log_traits import log_traits

MODES = (
    Kept(),
    Kept(deletes="soft"),
    Kept(deletes="soft", truncate="soft"),
    Kept(truncate="ignore"),
    Kept(deletes="soft", truncate="ignore"),
    Kept(truncate="soft"),
    Kept("history"),
    Kept("append"),
)
"""All modes with all settings that change the result."""

_COMPACTED_SHARE = 0.15
_RESTING_SHARE = 0.3
_READ_LATE_SHARE = 0.3


def random_case(flavour: str, seed: int, kept: Kept) -> Case:
    """The case of a flavour and a seed; the same ones give the same case."""
    random = Random(f"{flavour} {seed}")
    compacted = random.random() < _COMPACTED_SHARE and kept.mode == "upsert" and kept.deletes == "hard"
    wanted = Wanted.for_table(kept, compacted=compacted)
    if not compacted and kept.truncate == "ignore" and random.random() < 0.5:
        wanted = replace(wanted, moves=True, truncates=False)
    history = random_history(random, wanted)
    delivery = random_delivery(random, compacted=compacted)
    others = Random(f"rests {flavour} {seed}")
    if not compacted and others.random() < _RESTING_SHARE:
        delivery = replace(delivery, rests=tuple(others.randrange(LARGEST) for _ in range(others.randint(2, 8))))
    if others.random() < _READ_LATE_SHARE:
        again = _by_new_partitions(flavour, delivery.again) if delivery.grown else delivery.again
        delivery = replace(delivery, first_read=others.randrange(LARGEST), again=again)
    return Case(flavour, history, "whole", delivery, kept=kept)


def _by_new_partitions(flavour: str, again: tuple[Again, ...]) -> tuple[Again, ...]:
    """The repetitions that are allowed if the topic grew before the table was first read. A producer repeats a batch in
    its own partition. A copy by a partition that has not had the first one may look like a change of a restored source,
    if times do not rise."""
    if not log_traits(flavour.partition("_")[0]).times_follow_positions:
        return ()
    return tuple(one for one in again if one.only is None)


def random_history(random: Random, wanted: Wanted = ALL) -> History:
    """A history of a few steps."""
    rows = tuple(random.sample(range(KEYS), random.randint(0, KEYS))) if wanted.reads else ()
    long_share = random.choice((0.15, 0.6))
    steps = (_step(random, wanted, long_share) for _ in range(random.randint(2, wanted.longest)))
    return History(rows, tuple(steps))


def _step(random: Random, wanted: Wanted, long_share: float) -> Step:
    kinds = ("transaction", "together", "read", "restart")
    kind = random.choices(kinds, (4, 3, 2 * wanted.reads, 1))[0]
    if kind == "restart":
        return Restart()
    if kind == "read":
        keys = None if random.random() < 0.5 else tuple(random.sample(range(KEYS), random.randint(1, 3)))
        behind = random.randint(0, 2) if wanted.behind else 0
        return Read(random.choice(("incremental", "blocking")), keys, behind)
    if kind == "transaction":
        return Transaction(_script(random, wanted, long_share))
    scripts = tuple(_script(random, wanted, long_share) for _ in range(random.randint(2, 3)))
    choices = (0, 0, 1, 1, 2, 2, *(READS if wanted.reads else ()))
    return Together(scripts, tuple(random.choice(choices) for _ in range(random.randint(0, 12))))


def _script(random: Random, wanted: Wanted, long_share: float) -> tuple[Operation, ...]:
    """The operations of a transaction: often several on one key."""
    operations: list[Operation] = []
    for _ in range(random.randint(1, 4)):
        part = random.choices(("key", "move", "truncate"), (10, 6, int(wanted.truncates)))[0]
        if part == "truncate":
            operations.append(Truncate())
        elif part == "key":
            key = random.randrange(KEYS)
            operations += (_on_key(random, key, wanted, long_share) for _ in range(random.randint(1, 4)))
        else:
            operations += _moves(random, wanted)
    return tuple(operations)


def _on_key(random: Random, key: int, wanted: Wanted, long_share: float) -> Operation:
    kind = random.choices(("put", "delete", "touch", "rename"), (4, 3, 1, 1))[0]
    if kind == "put":
        if wanted.large and random.random() < long_share:
            return Put(key, "long")
        return Put(key, random.choice(("keep", "keep", "keep", "short", "null")))
    others: dict[str, Operation] = {"delete": Delete(key), "touch": Touch(key), "rename": Rename((key,))}
    return others[kind]


def _moves(random: Random, wanted: Wanted) -> list[Operation]:
    """One statement, or a few, that change keys."""
    renames = Rename(tuple(random.sample(range(KEYS), random.randint(1, 3))))
    if not wanted.moves or random.random() < 0.3:
        return [renames]
    if not wanted.many_moves:
        return [Move(((random.randrange(KEYS), random.randrange(KEYS)),))]
    kind = random.choice(("one", "one", "several", "shift", "swap", "replace", "replace", "by way"))
    if kind == "shift":
        return [Move(tuple((key, key + 1) for key in range(random.randint(1, KEYS))))]
    one, other, between = random.sample(range(KEYS), 3)
    if kind == "swap":
        return [Move(((one, other), (other, one)))]
    if kind == "replace":
        return [Replace(one, other)]
    if kind == "by way":
        return [Move(((one, between),)), Move(((other, one),)), Move(((between, other),))]
    count = 1 if kind == "one" else random.randint(2, 3)
    return [Move(tuple((random.randrange(KEYS), random.randrange(KEYS)) for _ in range(count)))]


def random_delivery(random: Random, *, compacted: bool = False) -> Delivery:
    """A delivery."""
    again = []
    for _ in range(random.choice((0, 1, 1, 2, 3))):
        after, back = random.randrange(LARGEST), random.randint(1, 60)
        if compacted or random.random() < 0.67:
            again.append(Again(after, back, unknowing=random.random() < 0.5))
        else:
            again.append(Again(after, back, random.randint(1, 3)))
    partitions = random.randint(1, 3)
    grows = random.random() < 0.4
    return Delivery(
        again=tuple(again),
        tombstones=random.random() < 0.75,
        partitions=partitions,
        more=partitions + random.randint(1, 3) if grows else partitions,
        grown=random.randint(1, LARGEST) if grows else 0,
        compacted=random.randrange(LARGEST) if compacted else 0,
    )
