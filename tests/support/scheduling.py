"""Distributes tests to the processes of a run: one by one to a free process, except files whose tests share something
that takes long to make. Those stay together: a module's fixture is a run of the service or a server, the cases of a
pack share a table, and what a file caches are recordings that were read and decoded.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

from xdist.scheduler import LoadScopeScheduling

_SHARING = ('scope="module"', "rule_case(", "\n@cache\n")
"""Marks of a file whose tests share something."""


@cache
def shares(path: str) -> bool:
    """Whether the tests of a file share something that takes long to make."""
    text = Path(path).read_text(encoding="utf-8")
    return any(sign in text for sign in _SHARING)


class OneByOne(LoadScopeScheduling):  # type: ignore[misc]  # xdist has no types
    """xdist's scheduler by groups, where a group is such a file, or a single test.

    xdist goes through all groups that a process ever had whenever a test ends: with thousands of groups that took the
    controlling process as long as some tests took. So groups that ended are forgotten."""

    def mark_test_complete(self, node: Any, item_index: int, duration: float = 0) -> None:
        super().mark_test_complete(node, item_index, duration)
        groups = self.assigned_work[node]
        ended = self._split_scope(self.registered_collections[node][item_index])
        if all(groups[ended].values()):
            del groups[ended]

    def _split_scope(self, nodeid: str) -> str:
        path = nodeid.partition("::")[0]
        return path if shares(path) else nodeid
