"""The last complete transaction of all tables, with a simulated connector, Kafka and tables."""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import dataclass, field

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from distributary.consume.transactions import Begin, End
from distributary.transactions.frontier import Answer, Claim, Frontier, Kafka, TableProgress, Transaction
from distributary.transactions.ledger import TransactionLedger
from distributary.transactions.order import SETTLED_MS

TOPICS = ("p.s.one", "p.s.two", "p.s.three")
Lane = tuple[str, int]


def topic_of(name: str) -> str | None:
    topic = f"p.{name}"
    return topic if topic in TOPICS else None


@dataclass(frozen=True)
class Change:
    """A change in a table's topic; `place` is its position in the source's log."""

    place: int
    transaction: str
    order: int


Sent = tuple[Lane | None, Begin | End | Change]


@dataclass
class World:
    """A connector that sends at least once, a Kafka that keeps order within partitions only, tables that apply."""

    chance: random.Random
    partitions_of_three: int
    sent: list[tuple[str, list[Lane]]] = field(default_factory=list)
    boundaries: list[tuple[Begin | End, int]] = field(default_factory=list)
    topics: dict[Lane, list[Change]] = field(default_factory=dict)
    taken: dict[Lane, int] = field(default_factory=dict)
    commits: dict[str, list[dict[Lane, int]]] = field(default_factory=dict)
    partitions: dict[str, tuple[int, ...]] = field(default_factory=dict)
    in_flight: list[tuple[Lane | None, Begin | End | Change, int, int]] = field(default_factory=list)
    log: list[Sent] = field(default_factory=list)
    next: int = 0
    anew: dict[int, list[Sent]] = field(default_factory=dict)
    place: int = 0
    now_ms: int = 0
    read: int = 0
    first: int = 0
    ledger: TransactionLedger = field(default_factory=lambda: TransactionLedger(topic_of))
    answer: Answer = field(default_factory=lambda: Answer(None, 0, ()))

    def __post_init__(self) -> None:
        self.partitions = dict.fromkeys(TOPICS, (0,)) | {"p.s.three": tuple(range(self.partitions_of_three))}
        lanes = [(topic, p) for topic, numbers in self.partitions.items() for p in numbers]
        self.topics = {lane: [] for lane in lanes}
        self.taken = dict.fromkeys(lanes, 0)
        self.commits = {topic: [] for topic in TOPICS}

    def transact(self) -> None:
        """The source commits a transaction, the connector is going to send it."""
        id_ = f"t{len(self.sent)}"
        lanes = [self.chance.choice(list(self.topics)) for _ in range(self.chance.choice((0, 1, 1, 2, 3)))]
        self.sent.append((id_, lanes))
        counts = {f"{topic[2:]}": sum(t == topic for t, _ in lanes) for topic in {t for t, _ in lanes}}
        counts["s.not_of_the_config"] = 1
        self.log.append((None, Begin(id_, self.now_ms)))
        orders: dict[str, int] = {}
        for lane in lanes:
            self.place += 1
            orders[lane[0]] = orders.get(lane[0], 0) + 1
            self.log.append((lane, Change(self.place, id_, orders[lane[0]])))
        self.log.append((None, End(id_, self.now_ms, counts)))

    def send(self) -> None:
        """The connector hands the next record to its producer."""
        if self.next < len(self.log):
            self.now_ms += 1
            for lane, record in self.anew.get(self.next, [self.log[self.next]]):
                self.in_flight.append((lane, record, self.now_ms, self.next))
            self.next += 1

    def deliver(self) -> None:
        """The oldest record in flight of some partition gets into Kafka."""
        if self.in_flight:
            lane = self.chance.choice(self.in_flight)[0]
            entry = next(e for e in self.in_flight if e[0] == lane)
            self.in_flight.remove(entry)
            if lane is None:
                assert not isinstance(entry[1], Change)
                self.boundaries.append((entry[1], entry[2]))
            else:
                assert isinstance(entry[1], Change)
                self.topics[lane].append(entry[1])

    def crash(self) -> None:
        """What is in flight is lost; the connector goes back to before it, perhaps into the middle of a transaction."""
        first_lost = min((number for *_, number in self.in_flight), default=self.next)
        self.in_flight.clear()
        self.next = max(0, first_lost - self.chance.choice((0, 0, 1, 2, 5, 20)))
        self.anew = self._counted_anew() if self.chance.random() < 0.5 else {}
        if self.chance.random() < 0.3:
            self.now_ms += 2 * SETTLED_MS

    def _counted_anew(self) -> dict[int, list[Sent]]:
        """PostgreSQL's connector sends another BEGIN and counts only what it sends after that."""
        again: dict[int, list[Sent]] = {}
        counts: dict[str, int] = {}
        for number in range(self.next, len(self.log)):
            lane, record = self.log[number]
            if isinstance(record, Begin):
                return again
            if isinstance(record, End):
                again[number] = [(None, End(record.id, record.ts_ms, counts))]
            else:
                assert lane is not None
                counts[lane[0][2:]] = counts.get(lane[0][2:], 0) + 1
                again[number] = [(lane, Change(record.place, record.transaction, counts[lane[0][2:]]))]
            if number == self.next:
                again[number].insert(0, (None, self._begin_of(number)))
        return again

    def _begin_of(self, number: int) -> Begin:
        return next(record for _, record in reversed(self.log[:number]) if isinstance(record, Begin))

    def pause(self) -> None:
        """Nothing happens for a while, and what was in flight arrives."""
        while self.in_flight:
            self.deliver()
        self.now_ms += 2 * SETTLED_MS

    def take(self) -> None:
        """A table applies some more of a partition."""
        lane = self.chance.choice(list(self.topics))
        more = len(self.topics[lane]) - self.taken[lane]
        self.taken[lane] += self.chance.randint(0, more)

    def retain(self) -> None:
        """Kafka removes the beginning of the transaction topic: what is so old is in Kafka as a whole."""
        there = {change.place for changes in self.topics.values() for change in changes}
        lost = next((r.transaction for _, r in self.log if isinstance(r, Change) and r.place not in there), None)
        bounds = [record.id for record, _ in self.boundaries]
        whole = bounds.index(lost) if lost in bounds else len(bounds)
        self.first = max(self.first, min(self.read, self.chance.randint(0, whole)))

    def fill_again(self) -> None:
        """A table's directory was deleted: it begins at the beginning."""
        topic = self.chance.choice(TOPICS)
        for p in self.partitions[topic]:
            self.taken[topic, p] = 0
        self.commits[topic].clear()
        self.look()

    def follow(self) -> None:
        """The tracker reads on."""
        for _ in range(self.chance.randint(0, 8)):
            if self.read < len(self.boundaries):
                record, sent_ms = self.boundaries[self.read]
                self.ledger.add(record, self.read, sent_ms)
                self.read += 1

    def restart(self) -> None:
        """The service starts anew, perhaps without the note of what was claimed."""
        claim = self.ledger.claim if self.chance.random() < 0.7 else None
        self.ledger = TransactionLedger(topic_of, claim, at_most=self.chance.choice((2, 1000)))
        self.read = max(claim.transaction.next if claim else 0, self.first)

    def look(self) -> None:
        """The tracker looks at tables and Kafka, which may go on in between."""
        progress = {topic: self._table_progress(topic, numbers) for topic, numbers in self.partitions.items()}
        for _ in range(self.chance.randint(0, 4)):
            self.chance.choice((self.send, self.deliver, self.take))()
        ends = {topic: {p: len(self.topics[topic, p]) for p in numbers} for topic, numbers in self.partitions.items()}
        if self.ledger.overflows() or not self.ledger.knows(self.partitions):
            self.ledger.start(ends)
        self.answer = self.ledger.answer(progress, Kafka(self.partitions, {t: ends[t] for t in self.ledger.asks}))
        self._check(progress)

    def _table_progress(self, topic: str, numbers: tuple[int, ...]) -> TableProgress:
        frontier = {}
        for p in numbers:
            if seen := self.topics[topic, p][: self.taken[topic, p]]:
                last = max(seen, key=lambda change: (change.place, change.order))
                frontier[p] = Frontier(last.transaction, last.order)
        self.commits[topic].append(dict(self.taken))
        return TableProgress({p: self.taken[topic, p] for p in numbers}, frontier, len(self.commits[topic]) - 1)

    def _check(self, progress: Mapping[str, TableProgress]) -> None:
        """The claim, against what the tables have: every change of every transaction up to it."""
        claimed = self.answer.complete
        if claimed is None:
            return
        upto = [id_ for id_, _ in self.sent].index(claimed.id)
        for topic, exact_at in self.answer.versions.items() if self.answer.exact else ():
            for (of, partition), count in self.commits[topic][exact_at].items():
                there = self.topics[of, partition][:count] if of == topic else []
                later = [change for change in there if int(change.transaction[1:]) > upto]
                assert not later, f"{claimed.id} claimed to be exact, and {topic} has {later[0].transaction}"
        for number in range(upto + 1):
            id_, lanes = self.sent[number]
            for lane in set(lanes):
                there = self.topics[lane][: progress[lane[0]].next[lane[1]]]
                places = {change.place for change in there if change.transaction == id_}
                assert len(places) == lanes.count(lane), f"{claimed.id} claimed, but {id_} is not whole in {lane}"
                if (version := self.answer.versions.get(lane[0])) is not None:
                    there = self.topics[lane][: self.commits[lane[0]][version][lane]]
                    assert len({change.place for change in there if change.transaction == id_}) == len(places)

    def settle(self) -> None:
        """One more transaction; all is sent, applied and looked at, then time goes by."""
        self.transact()
        while self.next < len(self.log):
            self.send()
        while self.in_flight:
            self.deliver()
        while self.read < len(self.boundaries):
            self.follow()
        self.taken = {lane: len(changes) for lane, changes in self.topics.items()}
        for _ in range(3):
            self.look()
        self.pause()


STEPS = {
    "transact": 4, "send": 12, "deliver": 12, "crash": 1, "take": 6, "follow": 4, "look": 6, "restart": 1, "pause": 1,
    "fill_again": 1, "retain": 2,
}  # fmt: skip


@settings(max_examples=400, deadline=None)
@given(st.integers(min_value=0, max_value=2**32), st.integers(min_value=10, max_value=400), st.sampled_from((1, 2)))
@pytest.mark.thorough
def test_3_9_a_claim_is_never_wrong_and_reaches_the_end(seed: int, steps: int, partitions: int) -> None:
    world = World(random.Random(seed), partitions)
    for name in world.chance.choices(list(STEPS), list(STEPS.values()), k=steps):
        getattr(world, name)()
    for _ in range(4):
        world.settle()
    assert world.answer.complete is not None
    assert world.answer.versions.keys() == set(TOPICS)
    # With several partitions the last transaction may have to wait until the connector has gone on for a while.
    assert len(world.sent) - 1 - int(world.answer.complete.id[1:]) <= partitions - 1
    assert partitions > 1 or world.answer.waiting_for == ()


def test_3_9_what_is_sent_again_after_a_restart_is_not_later_than_what_is_new() -> None:
    """The transaction at which the table stands was read by an earlier run; it comes again behind a new one."""
    one = {"p.s.one": (0,)}
    ends = {"p.s.one": {0: 1}}
    at_first = {"p.s.one": TableProgress({0: 1}, {0: Frontier("first", 1)})}
    claim = Claim(Transaction("first", None, 2), ends)
    ledger = TransactionLedger(topic_of, claim)
    ledger.start(ends)
    assert ledger.answer(at_first, Kafka(one, {})) == Answer(claim.transaction, 0, ())
    for offset, id_ in enumerate(("second", "first"), start=1):
        ledger.add(Begin(id_, 0), 2 * offset, 0)
        ledger.add(End(id_, 0, {"s.one": 1}), 2 * offset + 1, 0)
    assert ledger.answer(at_first, Kafka(one, {})) == Answer(claim.transaction, 2, ("p.s.one",))
    at_second = {"p.s.one": TableProgress({0: 2}, {0: Frontier("second", 1)})}
    complete = ledger.answer(at_second, Kafka(one, {})).complete
    assert complete is not None
    assert complete.id == "second"


def test_3_9_a_single_change_of_the_last_transaction_says_nothing_of_the_earlier_ones_in_other_partitions() -> None:
    two = {"p.s.one": (0, 1)}
    ledger = TransactionLedger(topic_of)
    for offset, id_ in enumerate(("first", "second")):
        ledger.add(Begin(id_, 0), 2 * offset, 0)
        ledger.add(End(id_, 0, {"s.one": 1}), 2 * offset + 1, 0)
    ledger.start({"p.s.one": {0: 1, 1: 0}})
    # The first one's change is still on its way into partition 1.
    without_first = {"p.s.one": TableProgress({0: 1, 1: 0}, {0: Frontier("second", 1)})}
    assert ledger.answer(without_first, Kafka(two, {})) == Answer(None, 1, ("p.s.one",))
    # Long after that it is there, or it was never sent.
    ledger.add(Begin("third", SETTLED_MS), 4, SETTLED_MS)
    assert ledger.answer(without_first, Kafka(two, {"p.s.one": {0: 1, 1: 1}})).complete is None
    complete = ledger.answer(without_first, Kafka(two, {"p.s.one": {0: 1, 1: 0}})).complete
    assert complete is not None
    assert complete.id == "second"


def test_3_9_a_new_table_withholds_the_claim_until_it_has_come_as_far_as_the_others() -> None:
    claim = Claim(Transaction("first", None, 2), {"p.s.one": {0: 1}})
    ledger = TransactionLedger(topic_of, claim)
    both = {"p.s.one": (0,), "p.s.two": (0,)}
    progress = {"p.s.one": TableProgress({0: 1})}
    assert not ledger.knows(both)
    ledger.start({"p.s.one": {0: 1}, "p.s.two": {0: 5}})
    assert ledger.knows(both)
    assert ledger.answer(progress, Kafka(both, {})) == Answer(None, 0, ("p.s.two",))
    progress["p.s.two"] = TableProgress({0: 4})
    assert ledger.answer(progress, Kafka(both, {})) == Answer(None, 0, ("p.s.two",))
    progress["p.s.two"] = TableProgress({0: 5})
    assert ledger.answer(progress, Kafka(both, {})) == Answer(claim.transaction, 0, ())


def test_3_9_versions_are_exact_where_no_table_has_a_change_of_a_later_transaction() -> None:
    both = Kafka({"p.s.one": (0,), "p.s.two": (0,)}, {})

    def read(ledger: TransactionLedger, number: int, *tables: str) -> None:
        id_, ts_ms = f"t{number}", 1_000 * number
        ledger.add(Begin(id_, ts_ms), 2 * number, ts_ms)
        ledger.add(End(id_, ts_ms, dict.fromkeys(tables, 1)), 2 * number + 1, ts_ms)

    def at(one: int, two: int) -> dict[str, TableProgress]:
        tables = (("p.s.one", one), ("p.s.two", two))
        return {topic: TableProgress({0: n}, {0: Frontier(f"t{n}", 1)} if n else {}, n) for topic, n in tables}

    ledger = TransactionLedger(topic_of)
    ledger.start({"p.s.one": {0: 0}, "p.s.two": {0: 0}})
    assert ledger.answer(at(0, 0), both).complete is None
    read(ledger, 1, "s.one", "s.two")
    answer = ledger.answer(at(1, 1), both)
    assert (answer.complete and answer.complete.id, answer.exact) == ("t1", True)
    read(ledger, 2, "s.two")
    answer = ledger.answer(at(1, 2), both)
    assert (answer.complete and answer.complete.id, answer.exact) == ("t2", True)
    read(ledger, 3, "s.one", "s.two")
    read(ledger, 4, "s.two")
    # Table two is ahead: it has t4, of which nothing is claimed yet.
    ledger.add(Begin("t5", 5_000), 10, 5_000)
    ahead = at(3, 5)
    answer = ledger.answer(ahead, both)
    assert (answer.complete and answer.complete.id, answer.exact) == ("t4", False)
    # After a restart a table that stands still has what it had.
    claim = Claim(Transaction("t2", 2_000, 6), {"p.s.one": {0: 1}, "p.s.two": {0: 2}}, {}, exact=True)
    for moved in (False, True):
        again = TransactionLedger(topic_of, claim)
        again.start({"p.s.one": {0: 1}, "p.s.two": {0: 2}})
        now = at(1, 2)
        if moved:
            now["p.s.one"] = TableProgress({0: 2}, {0: Frontier("of no BEGIN", 1)}, 9)
        again.answer(now, both)
        read(again, 3, "s.two")
        now["p.s.two"] = at(1, 3)["p.s.two"]
        answer = again.answer(now, both)
        assert (answer.complete and answer.complete.id, answer.exact) == ("t3", not moved)


@pytest.mark.parametrize(("read_ms", "exact"), [(None, True), (1_999, True), (2_000, False), (9_000, False)])
def test_3_9_versions_with_rows_of_a_later_snapshot_are_not_exact(read_ms: int | None, exact: bool) -> None:
    """A blocking snapshot reads what later transactions did, whose changes come after its rows."""
    ledger = TransactionLedger(topic_of)
    ledger.start({"p.s.one": {0: 0}})
    ledger.add(Begin("t1", 2_000), 0, 2_000)
    ledger.add(End("t1", 2_000, {"s.one": 1}), 1, 2_000)
    table = TableProgress({0: 5}, {0: Frontier("t1", 1)}, 3, read_ms)
    answer = ledger.answer({"p.s.one": table}, Kafka({"p.s.one": (0,)}, {}))
    assert (answer.complete and answer.complete.id, answer.exact) == ("t1", exact)
