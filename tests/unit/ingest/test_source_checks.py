"""Changes of the source's log with which a table can't continue."""

from __future__ import annotations

import pytest

from distributary.config.table import TableSettings
from distributary.errors import TableHalt
from distributary.ingest.source_checks import check_scopes
from distributary.rules.event import Event, Scope

ROUTED = "__dbz__physicalTableIdentifier"


def scoped(scope: Scope | None, column: str = ROUTED, *, merges: bool = False) -> None:
    truncate = Event("t", None, 0, 1, scope=scope)
    settings = TableSettings("*.*", merge_sources=merges)
    check_scopes([truncate], ("id", column), "p.s.t", settings, lambda *known: known == (ROUTED, "p.s.one"))


def test_3_6_a_truncate_of_a_source_table_that_no_row_names_halts() -> None:
    scoped(None)
    scoped((1, "p.s.one"))
    scoped((1, "p.s.two"), "__physical_table")  # the service's own names
    for unknown in ("p.s.two", ""):
        with pytest.raises(TableHalt, match="truncated-part") as halt:
            scoped((1, unknown))
        assert ROUTED in halt.value.fix


def test_3_6_a_truncate_of_merged_tables_without_a_name_halts() -> None:
    """The config renames the column that a router added: it looks like one of the source's own."""
    scoped((1, "p.s.one"), merges=True)
    with pytest.raises(TableHalt, match="truncated-part"):
        scoped(None, "routed_from", merges=True)
