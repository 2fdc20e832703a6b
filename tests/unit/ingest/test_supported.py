"""The settings that each mode supports."""

from __future__ import annotations

import pytest

from distributary.config.table import TableSettings
from distributary.errors import TableHalt
from distributary.ingest.supported import check_supported
from distributary.ingest.topic_format import TopicFormat

KEYED = TopicFormat("postgresql", ("id",), has_schema=False)
KEYLESS = TopicFormat("postgresql", (), has_schema=False)


def test_append_has_no_use_for_soft_deletes_and_truncates_and_takes_them() -> None:
    check_supported(TableSettings("*.*", mode="append", deletes="soft", truncate="soft"), KEYED)


def test_3_8_only_append_keeps_a_table_without_key() -> None:
    check_supported(TableSettings("*.*", mode="append"), KEYLESS)
    with pytest.raises(TableHalt, match="no-key"):
        check_supported(TableSettings("*.*"), KEYLESS)


def test_3_8_a_key_in_the_config_is_for_records_without_one() -> None:
    settings = TableSettings(match="*.*", key=("id",))
    check_supported(settings, TopicFormat("db2", (), has_schema=False))
    check_supported(settings, TopicFormat("db2", ("id",), has_schema=False))
    with pytest.raises(TableHalt, match="key-not-needed"):
        check_supported(settings, TopicFormat("db2", ("other",), has_schema=False))
    with pytest.raises(TableHalt, match="no-key"):
        check_supported(TableSettings(match="*.*"), TopicFormat("db2", (), has_schema=False))
    with pytest.raises(TableHalt, match="key-excluded"):
        check_supported(
            TableSettings(match="*.*", key=("id",), exclude=("id",)), TopicFormat("db2", (), has_schema=False)
        )
