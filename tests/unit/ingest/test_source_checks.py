"""Changes of the source's log with which a table can't continue."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest
from tests.support.table_contexts import progress

from distributary.config.table import TableSettings
from distributary.errors import TableHalt
from distributary.ingest.source_checks import check_truncates


def check(key: tuple[str, ...], truncated: str | None = "000:1", **settings: Any) -> None:
    found = cast("Any", SimpleNamespace(truncated=truncated))
    settings = {"match": "*.*", **settings}
    check_truncates(found, progress(0, key=key), TableSettings(**settings), "p.s.t")


@pytest.mark.parametrize("truncate", ["apply", "soft"])
def test_3_6_a_truncate_of_one_of_several_source_tables_empties_no_table(truncate: str) -> None:
    field = "__dbz__physicalTableIdentifier"
    with pytest.raises(TableHalt, match="truncated-part") as halt:
        check(("id", field), truncate=truncate)
    assert field in halt.value.fix


def test_3_6_other_truncates_are_taken() -> None:
    check(("id",))
    check(("id", "__shard"), truncated=None)
    check(("id", "__shard"), truncate="ignore")
    check(("id", "__shard"), mode="append")
    check(("id", "__physical_table"))
    with pytest.raises(TableHalt, match="truncate is halt"):
        check(("id", "__shard"), truncate="halt")
