"""Values for the ledger: progress of tables and Kafka, transactions, and claims of completeness."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from distributary.consume.offsets import Offsets


@dataclass(frozen=True)
class Frontier:
    """The change with the largest position of a partition: its transaction, and its ordinal (1, 2, …) among that
    transaction's changes of its table."""

    transaction: str
    order: int | None = None


@dataclass(frozen=True)
class TableProgress:
    """A table's progress: per partition of its topic the next offset, and the frontier if there is one; `version`: the
    Delta version that has it, None if there is no table. `snapshot_ts_ms`: when the source committed the newest row
    that a snapshot read, in milliseconds since 1970."""

    next: Mapping[int, int]
    frontier: Mapping[int, Frontier] = field(default_factory=dict)
    version: int | None = None
    snapshot_ts_ms: int | None = None


@dataclass(frozen=True)
class Transaction:
    """A transaction whose END was read; `next` is the offset after the END in the transaction topic."""

    id: str
    ts_ms: int | None
    next: int


@dataclass(frozen=True)
class Claim:
    """The claim that all tables are complete up to `transaction`. It holds while no table is behind `offsets`: the next
    offsets at the time of the claim, by topic and partition. `versions`: the Delta versions at that time,
    by topic; `exact`: none of them has a change of a later transaction."""

    transaction: Transaction
    offsets: Mapping[str, Offsets]
    versions: Mapping[str, int] = field(default_factory=dict)
    exact: bool = False


@dataclass(frozen=True)
class Answer:
    """`complete`: the last transaction up to which all tables are complete; None if there is none or it is unknown.
    `pending`: the number of later transactions. `waiting_for`: topics of the tables that the next one waits for.
    `versions`: Delta versions that have all changes up to `complete`, by topic; `exact`: they have no later change."""

    complete: Transaction | None
    pending: int
    waiting_for: tuple[str, ...]
    versions: Mapping[str, int] = field(default_factory=dict)
    exact: bool = False


@dataclass(frozen=True)
class Kafka:
    """Kafka's state, read after the tables' progress: the partitions of each topic, and the end offsets of the topics
    in TransactionLedger.asks."""

    partitions: Mapping[str, tuple[int, ...]]
    ends: Mapping[str, Offsets]


def offsets_of(progress: Mapping[str, TableProgress]) -> dict[str, Offsets]:
    """The next offsets of all tables, by topic and partition."""
    return {topic: dict(table.next) for topic, table in progress.items()}


def versions_of(progress: Mapping[str, TableProgress]) -> dict[str, int]:
    """The Delta versions of all tables that are there, by topic."""
    return {topic: table.version for topic, table in progress.items() if table.version is not None}


def with_live_versions(claim: Claim, progress: Mapping[str, TableProgress]) -> Claim:
    """The claim without the versions of tables that are behind it: those are filled again, and their versions may begin
    anew."""
    versions = {}
    for topic, version in claim.versions.items():
        table = progress.get(topic)
        if table is None or table.version is None or table.version < version:
            continue
        if passed(table, claim.offsets[topic], claim.offsets[topic]):
            versions[topic] = version
    return replace(claim, versions=versions)


def holds(claim: Claim, progress: Mapping[str, TableProgress], topics: Iterable[str]) -> bool:
    """Whether the claim still holds for the tables' progress; `topics`: those of all tables."""
    return all(
        topic in claim.offsets
        and topic in progress
        and passed(progress[topic], claim.offsets[topic], claim.offsets[topic])
        for topic in topics
    )


def passed(table: TableProgress, ends: Mapping[int, int], partitions: Iterable[int]) -> bool:
    """Whether the table has applied those partitions up to these ends."""
    return all(p in ends and table.next.get(p, 0) >= ends[p] for p in partitions)
