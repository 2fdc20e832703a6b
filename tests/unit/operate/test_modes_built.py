"""What each mode can be asked for."""

from __future__ import annotations

import pytest

from distributary.config.table import TableSettings
from distributary.errors import TableHalt
from distributary.operate.limits import refuse_unbuilt
from distributary.operate.look import Look

KEYED = Look("postgresql", ("id",), has_schema=False)
KEYLESS = Look("postgresql", (), has_schema=False)


def test_append_has_no_use_for_soft_deletes_and_truncates_and_takes_them() -> None:
    refuse_unbuilt(TableSettings("*.*", mode="append", deletes="soft", truncate="soft"), KEYED)


def test_3_8_only_append_keeps_a_table_without_key() -> None:
    refuse_unbuilt(TableSettings("*.*", mode="append"), KEYLESS)
    with pytest.raises(TableHalt, match="no-key"):
        refuse_unbuilt(TableSettings("*.*"), KEYLESS)
