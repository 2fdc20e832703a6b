"""How far tables and Kafka are, and what is claimed of them: values, for complete.py."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from distributary.consume.offsets import Offsets


@dataclass(frozen=True)
class Frontier:
    """The change with the largest position of a partition: its transaction, and its place among that transaction's
    changes of its table, counted from 1."""

    transaction: str
    order: int | None = None


@dataclass(frozen=True)
class Standing:
    """How far a table has come: per partition of its topic the next offset, and the frontier where there is one;
    `version` is the Delta version that has it, None where there is no table."""

    next: Mapping[int, int]
    frontier: Mapping[int, Frontier] = field(default_factory=dict)
    version: int | None = None


@dataclass(frozen=True)
class Transaction:
    """A transaction that can be claimed; `next` is the offset after its END in the transaction topic."""

    id: str
    ts_ms: int | None
    next: int


@dataclass(frozen=True)
class Claim:
    """All tables are complete up to that transaction, as long as none is behind `held`: the next offsets that they had
    then, by topic and partition. `versions`: the Delta versions that they had then, by topic."""

    transaction: Transaction
    held: Mapping[str, Offsets]
    versions: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class Answer:
    """`complete` is the last transaction up to which all tables are complete, None where there is none or it can't be
    told now; `waiting_for` are the topics of the tables that hold up the next one of the `pending`. `versions`: Delta
    versions that have all up to `complete`, by topic."""

    complete: Transaction | None
    pending: int
    waiting_for: tuple[str, ...]
    versions: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class Kafka:
    """What Kafka says, asked after the standings were taken: the partitions of each topic, and for those that
    TransactionLedger.asks names the ends of their partitions."""

    partitions: Mapping[str, tuple[int, ...]]
    ends: Mapping[str, Offsets]


def offsets_of(standings: Mapping[str, Standing]) -> dict[str, Offsets]:
    """The next offsets of all tables, by topic and partition."""
    return {topic: dict(table.next) for topic, table in standings.items()}


def versions_of(standings: Mapping[str, Standing]) -> dict[str, int]:
    """The Delta versions of all tables that are there, by topic."""
    return {topic: table.version for topic, table in standings.items() if table.version is not None}


def with_live_versions(claim: Claim, standings: Mapping[str, Standing]) -> Claim:
    """The claim without the versions of tables that are behind it: those are filled again, and their versions may begin
    anew."""
    versions = {}
    for topic, version in claim.versions.items():
        table = standings.get(topic)
        if table is None or table.version is None or table.version < version:
            continue
        if passed(table, claim.held[topic], claim.held[topic]):
            versions[topic] = version
    return replace(claim, versions=versions)


def holds(claim: Claim, standings: Mapping[str, Standing], topics: Iterable[str]) -> bool:
    """Whether the claim is true of the tables as they are now; `topics` are those of all tables."""
    return all(
        topic in claim.held and topic in standings and passed(standings[topic], claim.held[topic], claim.held[topic])
        for topic in topics
    )


def passed(table: Standing, ends: Mapping[int, int], partitions: Iterable[int]) -> bool:
    """Whether the table has applied those partitions up to these ends."""
    return all(p in ends and table.next.get(p, 0) >= ends[p] for p in partitions)
