"""How connectors' logs differ in what the rules need to know of them, beside the order of positions (order.py)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

BINLOG_CONNECTORS = ("mysql", "mariadb")
"""Connectors whose positions are places in binlog files, and GTIDs where the server writes them."""


@dataclass(frozen=True)
class LogTraits:
    """The traits of one connector's log.

    - `snapshot_rows_by_arrival` (rule 2.3): a snapshot row's position is where the log was when the row was read. A
      transaction that committed later may have positions below it, so the row is ordered by its arrival.
    - `truncates_by_sub_position` (rule 3.6): a row is older than a truncate if its `sub_position` is lower, whatever
      its level. This is exact: a truncate locks the whole table until its commit.
    - `level_may_be_unknown`: after a restart the connector sends the first transaction without its commit level.
    - `inserts_share_positions`: rows that one statement inserts (COPY) may have one position.
    - `ties_by_arrival`: changes of one row may share a position in any order. For all others a delete comes first
      (rule 2.2): SQL Server logs an update of a unique column as `d` and `c` of one key with the same three numbers.
    - `grouped_by_level`: the changes of one level may arrive in any order: several Oracle transactions may share a
      commit SCN, and SQL Server's change tables, read directly, give a statement's deletes before its inserts.
    - `times_follow_positions`: source times rise with the positions, because they are those of commits. Where they are
      those of statements, they do not.
    """

    snapshot_rows_by_arrival: bool = False
    truncates_by_sub_position: bool = False
    level_may_be_unknown: bool = False
    inserts_share_positions: bool = False
    ties_by_arrival: bool = False
    grouped_by_level: bool = False
    times_follow_positions: bool = True


_POSTGRESQL = LogTraits(
    snapshot_rows_by_arrival=True,
    truncates_by_sub_position=True,
    level_may_be_unknown=True,
    inserts_share_positions=True,
)
_TRAITS: Mapping[str, LogTraits] = MappingProxyType(
    {
        "postgresql": _POSTGRESQL,
        "mysql": LogTraits(times_follow_positions=False),
        "mariadb": LogTraits(times_follow_positions=False),
        "oracle": LogTraits(ties_by_arrival=True, grouped_by_level=True, times_follow_positions=False),
        "sqlserver": LogTraits(grouped_by_level=True),
    }
)
_NO_TRAITS = LogTraits()


def log_traits(connector: str) -> LogTraits:
    """The traits of a connector's log; of a connector without a line of its own, the defaults."""
    return _TRAITS.get(connector, _NO_TRAITS)
