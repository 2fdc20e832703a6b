"""What each mode can be asked for."""

from __future__ import annotations

from typing import Any

import pytest

from distributary.config.table import TableSettings
from distributary.errors import TableHalt
from distributary.operate.limits import refuse_unbuilt
from distributary.operate.look import Look

KEYED = Look("postgresql", ("id",), has_schema=False)
KEYLESS = Look("postgresql", (), has_schema=False)


@pytest.mark.parametrize("mode", ["history", "append"])
def test_modes_that_keep_every_row_have_no_use_for_soft_deletes_and_truncates(mode: Any) -> None:
    refuse_unbuilt(TableSettings("*.*", mode=mode, deletes="soft", truncate="soft"), KEYED)


def test_3_8_only_append_keeps_a_table_without_key() -> None:
    refuse_unbuilt(TableSettings("*.*", mode="append"), KEYLESS)
    for mode in ("upsert", "history"):
        with pytest.raises(TableHalt, match="no-key"):
            refuse_unbuilt(TableSettings("*.*", mode=mode), KEYLESS)
