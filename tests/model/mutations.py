"""Deliberate faults of the service, as patches of its source: the tests must notice each.

A patch names a file of the package, a text that is in it exactly once, and what stands there instead.
"""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from pathlib import Path

SERVICE = Path(__file__).parents[2] / "service"


@dataclass(frozen=True)
class Mutation:
    """A fault: which rule it breaks, and how."""

    name: str
    rule: str
    file: str
    old: str
    new: str

    def apply(self, service: Path) -> None:
        """Patches a copy of the package's parent. Raises ValueError where the text is not there exactly once."""
        path = service / "distributary" / self.file
        text = path.read_text(encoding="utf-8")
        if text.count(self.old) != 1:
            raise ValueError(f"{self.name}: the text is {text.count(self.old)} times in {self.file}")
        path.write_text(text.replace(self.old, self.new), encoding="utf-8")


def mutated(mutation: Mutation, folder: Path) -> Path:
    """A copy of the service with the fault; what PYTHONPATH must begin with."""
    copy = folder / "service"
    shutil.copytree(SERVICE, copy, ignore=shutil.ignore_patterns("__pycache__", "*.egg-info"))
    mutation.apply(copy)
    return copy


MUTATIONS = (
    Mutation(
        "changes go by offset alone",
        "2.1",
        "merge/position_sql.py",
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
        "merge/position_sql.py",
        "AND left({a}, 3) = left({b}, 3)",
        "AND false",
    ),
    Mutation(
        "binlog files are ordered as text",
        "2.1",
        "decode/position.py",
        'return f"{number}/{pos}/',
        'return f"{(source.file or str()).rpartition(".")[2]}/{pos}/',
    ),
    Mutation(
        "a delete at an equal position wins",
        "2.2",
        "merge/fold.py",
        "\"CASE WHEN e.kind = 'd' THEN 0 ELSE 1 END\"",
        "\"CASE WHEN e.kind = 'd' THEN 2 ELSE 1 END\"",
    ),
    Mutation(
        "PostgreSQL's snapshot rows are ordered like changes",
        "2.3",
        "merge/fold.py",
        'beside = "e.kind = \'r\'" if _has_reads(folding) else "false"',
        'beside = "false"',
    ),
    Mutation(
        "a stale change is accepted",
        "2.4",
        "merge/clauses.py",
        'return f"(s.kind IS NOT NULL AND ({is_later(self._connector, pos, held)} OR ({equal})))"',
        'return "(s.kind IS NOT NULL)"',
    ),
    Mutation(
        "deletes are not remembered",
        "3.2",
        "merge/deletes.py",
        "        if not self._exists():\n            nothing =",
        "        if True:\n            nothing =",
    ),
    Mutation(
        "a tombstone deletes whatever came before it",
        "3.3",
        "merge/fold.py",
        "s.last NOT IN {_DELETES} AND NOT (s.i = 0 AND e.carried)",
        "true",
    ),
    Mutation(
        "the tombstone of a delete that a truncate overtook counts as a lone one",
        "3.3",
        "merge/fold.py",
        " OR kind = 'd'\"",
        '"',
    ),
    Mutation(
        "a tombstone's delete in an earlier slice is forgotten",
        "3.3",
        "merge/fold.py",
        "AND NOT (s.i = 0 AND e.carried)",
        "AND true",
    ),
    Mutation(
        "the delete of a moved row takes the row that came in its place",
        "2.7",
        "merge/fold.py",
        "{lies_over}, false)",
        "false, false)",
    ),
    Mutation(
        "a moved row's delete in a later slice takes the row that came in its place",
        "2.7",
        "merge/clauses.py",
        's.out_tx IS NOT NULL AND t.__moved = s.out_tx AND {newer}"',
        'false AND {newer}"',
    ),
    Mutation(
        "a delete hides the row that lies over the deleted one",
        "2.7",
        "merge/fold.py",
        "CASE WHEN {may_stay} THEN 'ask' ELSE {lived} END",
        "{lived}",
    ),
    Mutation(
        "what is sent again is counted as undecided again",
        "2.7",
        "merge/doubts.py",
        'new = F.when(F.col("partition") == partition, later).otherwise(new)',
        "pass",
    ),
    Mutation(
        "a truncate takes the rows written after it",
        "3.6",
        "merge/standing.py",
        'older = is_later(connector, at, f"{row}position")',
        'older = "true"',
    ),
    Mutation(
        "a late record older than a truncate comes back",
        "3.6",
        "merge/fold.py",
        "    if folding.truncated is not None:\n",
        "    if False:\n",
    ),
    Mutation(
        "the placeholder is stored as if it were a value",
        "3.7",
        "decode/options.py",
        'CONNECTORS_WITH_PLACEHOLDER = ("postgresql", "oracle")',
        "CONNECTORS_WITH_PLACEHOLDER = ()",
    ),
    Mutation(
        "a new key takes nothing from the old one's row",
        "3.4",
        "merge/values.py",
        "'base', 'link', 'link', e.link_in",
        "'base', 'none', 'link', NULL",
    ),
    Mutation(
        "a snapshot row that is sent again is another version",
        "2.3",
        "merge/versions.py",
        'stays = "nth = 1 AND NOT',
        'stays = "NOT',
    ),
    Mutation(
        "a change that leaves the row as it was opens a version",
        "4.2",
        "merge/versions.py",
        "was IS NOT NULL AND now <=> was",
        "false",
    ),
    Mutation(
        "a record that is sent again is appended again",
        "4.3",
        "merge/repeats.py",
        '.where("nth = 1")',
        '.where("true")',
    ),
    Mutation(
        "the first of two partitions' slices is taken twice",
        "6.1",
        "merge/advance.py",
        "next={**first, **progress.next, **end}",
        "next={**first, **end, **progress.next}",
    ),
)
