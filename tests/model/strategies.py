"""Hypothesis strategies of histories and deliveries: small ones whose changes often concern the same keys."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy
from tests.model.case import Case, Kept
from tests.model.delivery import Again, Delivery
from tests.model.encoding import POSITIONED, Form
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
from tests.model.source.layout import LAYOUTS

UPSERTED = Kept()
KEYS = 4
LARGEST = 2**16

T = TypeVar("T")
Script = tuple[Operation, ...]

keys = st.integers(0, KEYS - 1)
_places = st.integers(0, LARGEST)


@dataclass(frozen=True)
class Wanted:
    """The operations and steps that a history may have."""

    truncates: bool = True
    large: bool = True
    moves: bool = True
    many_moves: bool = True
    behind: bool = True
    reads: bool = True
    longest: int = 8

    @staticmethod
    def for_table(kept: Kept, *, compacted: bool) -> Wanted:
        """Leaves out most of the histories that Case.why_not_truth would reject."""
        wanted = COMPACTED if compacted else ALL
        return replace(wanted, moves=kept.truncate != "ignore", behind=kept.mode != "history")


ALL = Wanted()
COMPACTED = Wanted(truncates=False, large=False, many_moves=False)
"""Histories that a compacted topic can show (see Case.reaches_truth)."""


def weighted(*choices: tuple[int, SearchStrategy[T]]) -> SearchStrategy[T]:
    """One of the strategies, each as often as its weight says. (`one_of` counts a repeated strategy once.)"""
    numbers = [number for number, (weight, _) in enumerate(choices) for _ in range(weight)]
    return st.sampled_from(numbers).flatmap(lambda number: choices[number][1])


def scripts(wanted: Wanted) -> SearchStrategy[Script]:
    """The operations of a transaction: often several on one key."""
    big = ("keep", "keep", "long", "short", "null") if wanted.large else ("keep", "short", "null")
    on_one_key: SearchStrategy[list[Operation]] = keys.flatmap(
        lambda key: st.lists(_on_key(key, big), min_size=1, max_size=4)
    )
    renames = st.builds(Rename, st.lists(keys, min_size=1, max_size=3, unique=True).map(tuple))
    pairs: SearchStrategy[tuple[tuple[int, int], ...]] = st.lists(st.tuples(keys, keys), min_size=1, max_size=1).map(
        tuple
    )
    if wanted.many_moves:
        several = st.lists(st.tuples(keys, keys), min_size=2, max_size=3).map(tuple)
        shifts = st.integers(1, KEYS).map(lambda count: tuple((key, key + 1) for key in range(count)))
        swaps = st.tuples(keys, keys).map(lambda pair: (pair, pair[::-1]))
        pairs = st.one_of(pairs, several, shifts, swaps)
    one: SearchStrategy[list[Operation]] = (
        st.one_of(renames, st.builds(Move, pairs)) if wanted.moves else renames
    ).map(_alone)
    if wanted.moves and wanted.many_moves:
        replaces: SearchStrategy[list[Operation]] = st.builds(Replace, keys, keys).map(_alone)
        one = weighted((4, one), (1, replaces), (1, st.permutations(range(KEYS)).map(_by_way_of_another_key)))
    truncate: SearchStrategy[list[Operation]] = st.just([Truncate()])
    parts: SearchStrategy[list[Operation]] = weighted((10, on_one_key), (6, one), (int(wanted.truncates), truncate))
    return st.lists(parts, min_size=1, max_size=4).map(_joined)


def _on_key(key: int, big: Sequence[str]) -> SearchStrategy[Operation]:
    puts = st.sampled_from(big).map(lambda kind: Put(key, kind))
    return weighted((4, puts), (3, st.just(Delete(key))), (1, st.just(Touch(key))), (1, st.just(Rename((key,)))))


def _alone(operation: Operation) -> list[Operation]:
    return [operation]


def _by_way_of_another_key(numbers: Sequence[int]) -> list[Operation]:
    """Two rows swap their keys in three statements."""
    one, other, between = numbers[:3]
    return [Move(((one, between),)), Move(((other, one),)), Move(((between, other),))]


def _joined(parts: list[list[Operation]]) -> Script:
    return tuple(operation for part in parts for operation in part)


def histories(wanted: Wanted = ALL) -> SearchStrategy[History]:
    """A history of a few steps."""
    script = scripts(wanted)
    together = st.builds(
        Together,
        st.lists(script, min_size=2, max_size=3).map(tuple),
        st.lists(st.sampled_from((0, 0, 1, 1, 2, 2, *(READS if wanted.reads else ()))), max_size=12).map(tuple),
    )
    read = st.builds(
        Read,
        st.sampled_from(("incremental", "blocking")),
        st.none() | st.lists(keys, min_size=1, max_size=3, unique=True).map(tuple),
        st.integers(0, 2) if wanted.behind else st.just(0),
    )
    transaction = st.builds(Transaction, script)
    reads = 2 * wanted.reads
    steps: SearchStrategy[Step] = weighted((4, transaction), (3, together), (reads, read), (1, st.just(Restart())))
    rows = st.lists(keys, max_size=KEYS if wanted.reads else 0, unique=True).map(tuple)
    return st.builds(History, rows, st.lists(steps, min_size=2, max_size=wanted.longest).map(tuple))


def deliveries(*, compacted: bool = False) -> SearchStrategy[Delivery]:
    """A delivery."""
    back = st.integers(1, 60)
    restarts = st.builds(Again, _places, back, st.none(), st.booleans())
    repetitions = st.builds(Again, _places, back, st.integers(1, 3))
    one = restarts if compacted else weighted((2, restarts), (1, repetitions))
    again = weighted((1, st.just([])), (3, st.lists(one, min_size=1, max_size=3)))
    return st.builds(
        Delivery,
        again=again.map(tuple),
        tombstones=st.sampled_from((True, True, True, False)),
        partitions=st.integers(1, 3),
        more=st.integers(1, 4),
        grown=st.just(0) | _places,
        compacted=_places if compacted else st.just(0),
        pauses=st.lists(_places, max_size=3).map(tuple),
        held=st.none() | st.integers(0, 3),
        at_most=st.sampled_from((3, 7, 20, 1000)),
    )


def cases(flavour: str, kept: Kept = UPSERTED, *, compacted: bool = False) -> SearchStrategy[Case]:
    """A case of a flavour, in the envelope form, whose records can reach the truth."""
    wanted = Wanted.for_table(kept, compacted=compacted)
    built = st.builds(
        Case,
        flavour=st.just(flavour),
        history=histories(wanted),
        layout=st.sampled_from(sorted(LAYOUTS)),
        delivery=deliveries(compacted=compacted),
        form=st.builds(Form, st.booleans()),
        kept=st.just(kept),
    )
    return built.filter(Case.reaches_truth)


def unwrapped(flavour: str) -> SearchStrategy[Case]:
    """A case whose records are bare rows, with and without their positions."""
    added = POSITIONED[flavour.partition("_")[0]]
    modes = ("tombstone", "delete-to-tombstone", "rewrite", "rewrite-with-tombstone")
    forms = st.builds(Form, st.booleans(), st.sampled_from(modes), st.sampled_from(((), added)))
    wanted = replace(ALL, truncates=False, large=False)
    placed = st.builds(Case, st.just(flavour), histories(wanted), st.sampled_from(sorted(LAYOUTS)), deliveries(), forms)
    plain = st.builds(
        Case,
        st.just(flavour),
        histories(replace(wanted, many_moves=False)),
        st.sampled_from(sorted(LAYOUTS)),
        deliveries(compacted=True).map(lambda delivery: replace(delivery, compacted=0)),
        forms,
    )
    return (placed | plain).filter(Case.reaches_truth)
