"""What a source's log may say that its table can't go on with."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest
from tests.support.scenes import progress

from distributary.config.table import TableSettings
from distributary.consume.offsets import Slice
from distributary.errors import TableHalt
from distributary.operate.source_log import check_source_log

PART = Slice("p.s.t", {0: 0}, {0: 9})


def checked(key: tuple[str, ...], truncated: str | None = "000:1", **settings: Any) -> Slice:
    found = cast("Any", SimpleNamespace(truncated=truncated, suspect=False))
    settings = {"match": "*.*", **settings}
    return check_source_log(cast("Any", None), found, progress(0, key=key), TableSettings(**settings), PART)


@pytest.mark.parametrize("truncate", ["apply", "soft"])
@pytest.mark.parametrize("field", ["__physical_table", "__dbz__physicalTableIdentifier"])
def test_3_6_a_truncate_of_one_of_several_source_tables_empties_no_table(truncate: str, field: str) -> None:
    with pytest.raises(TableHalt, match="truncated-part") as halt:
        checked(("id", field), truncate=truncate)
    assert field in halt.value.fix


def test_3_6_other_truncates_are_taken() -> None:
    assert checked(("id",)) == PART
    assert checked(("id", "__shard"), truncated=None) == PART
    assert checked(("id", "__shard"), truncate="ignore") == PART
    assert checked(("id", "__shard"), mode="append") == PART
    with pytest.raises(TableHalt, match="truncate is halt"):
        checked(("id", "__shard"), truncate="halt")
