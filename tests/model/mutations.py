"""Deliberate faults of the service, as patches of its source: the tests must notice each.

A patch names a file of the package, a text that occurs in it exactly once, and the text that replaces it.
"""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from pathlib import Path

SERVICE = Path(__file__).parents[2] / "service"


@dataclass(frozen=True)
class Mutation:
    """A fault: which rule it breaks, and how. `tests`: files or folders of tests that must notice it; none for those
    that have the rule in their names, and random histories."""

    name: str
    rule: str
    file: str
    old: str
    new: str
    tests: tuple[str, ...] = ()

    def patched(self, service: Path = SERVICE) -> str:
        """The file with the fault; `service` is the package's parent. Raises ValueError if the text does not occur
        exactly once."""
        text = self._path(service).read_text(encoding="utf-8")
        if text.count(self.old) != 1:
            raise ValueError(f"{self.name}: the text is {text.count(self.old)} times in {self.file}")
        return text.replace(self.old, self.new)

    def apply(self, service: Path) -> None:
        """Patches a copy of the package's parent. Raises ValueError as `patched` does."""
        self._path(service).write_text(self.patched(service), encoding="utf-8")

    def _path(self, service: Path) -> Path:
        return service / "distributary" / self.file


def mutated(mutation: Mutation, folder: Path) -> Path:
    """A copy of the service with the fault; returns the path with which PYTHONPATH must begin."""
    copy = folder / "service"
    shutil.copytree(SERVICE, copy, ignore=shutil.ignore_patterns("__pycache__", "*.egg-info"))
    mutation.apply(copy)
    return copy


MUTATIONS = (
    Mutation(
        "changes go by offset alone",
        "2.1",
        "verify/position_sql.py",
        'return f"({a} > {b})"',
        'return "true"',
    ),
    Mutation(
        "the change number is left out of SQL Server's order",
        "2.1",
        "decode/position.py",
        'return f"{commit}/{change}/{serial}" if commit or op == "r" else None',
        'return f"{commit}//{serial}" if commit or op == "r" else None',
    ),
    Mutation(
        "an unknown commit sorts lowest",
        "2.1",
        "verify/position_sql.py",
        "AND left({a}, 3) = left({b}, 3)",
        "AND false",
    ),
    Mutation(
        "binlog files are ordered as text",
        "2.1",
        "decode/position.py",
        'return f"{number}/{pos}/',
        """return f"{(source.file or str()).rpartition('.')[2]}/{pos}/""",
    ),
    Mutation(
        "the placeholder is stored as if it were a value",
        "3.7",
        "decode/options.py",
        'CONNECTORS_WITH_PLACEHOLDER = ("postgresql", "oracle")',
        "CONNECTORS_WITH_PLACEHOLDER = ()",
    ),
    Mutation(
        "the first of two partitions' batches is taken twice",
        "6.1",
        "progress/advance.py",
        "next={**first, **progress.next, **end}",
        "next={**first, **end, **progress.next}",
    ),
    Mutation(
        "offsets that come again are not noticed",
        "6.4",
        "apply/repeated_offsets.py",
        "sent[partition, offset] not in (key, None)",
        "False",
        ("tests/unit/apply",),
    ),
    Mutation(
        "a record of another partition counts as the one that a row names",
        "6.4",
        "apply/repeated_offsets.py",
        'places = zip(near["partition"].to_pylist(), near',
        "places = zip([0] * near.num_rows, near",
        ("tests/unit/apply",),
    ),
    Mutation(
        "a kept row gets the default of a column that is older",
        "5.1",
        "apply/values.py",
        "is_older = pc.or_(positions.is_null(), pa.array(precede(connector, positions, default.before)))",
        "is_older = positions.is_valid()",
        ("tests/unit/apply",),
    ),
    Mutation(
        "the place in the topic of transactions proves that tables are complete",
        "3.9",
        "transactions/ledger.py",
        "        if not not_later:\n            return True\n",
        "        return True\n",
        ("tests/unit/transactions",),
    ),
    Mutation(
        "counts of a transaction that was sent again prove something",
        "3.9",
        "transactions/order.py",
        "seq, counted = known.seq, known.begins == 1",
        "seq, counted = known.seq, True",
        ("tests/unit/transactions",),
    ),
    Mutation(
        "the frontier of before a start counts",
        "3.9",
        "transactions/ledger.py",
        " or self._old.get((topic, partition)) == frontier.transaction:",
        ":",
        ("tests/unit/transactions",),
    ),
    Mutation(
        "a claim holds for tables that are filled again",
        "3.9",
        "transactions/frontier.py",
        "\n        and passed(progress[topic], claim.offsets[topic], claim.offsets[topic])\n        for",
        "\n        for",
        ("tests/unit/transactions",),
    ),
    Mutation(
        "a claim is not saved again where its versions change",
        "3.9",
        "transactions/follower.py",
        "if claim is None or claim == self._saved:",
        "if claim is None or (self._saved is not None and claim.transaction == self._saved.transaction):",
        ("tests/unit/transactions",),
    ),
    Mutation(
        "a compaction brings dead rows back",
        "6.1",
        "delta/writer.py",
        "tuple((one, one.dead) for one in touched)",
        "tuple((one, BitMap64()) for one in touched)",
        ("tests/unit/delta",),
    ),
    Mutation(
        "a compaction counts as a change of rows",
        "6.1",
        "delta/writer.py",
        "plan, record, changes_rows=False)",
        "plan, record, changes_rows=True)",
        ("tests/unit/delta",),
    ),
    Mutation(
        "files of several partitions are joined",
        "6.1",
        "delta/compaction.py",
        "by_partition.setdefault(_values(file.partition_values), [])",
        "by_partition.setdefault((), [])",
        ("tests/unit/delta",),
    ),
    Mutation(
        "another job's commits during a take-over are not noticed",
        "6.1",
        "workers/adopt.py",
        " or not self._lake.are_tagged(head, now, signature):",
        ":",
        ("tests/integration/test_adopt.py",),
    ),
)
