"""Tables without a key, with a config that sets a mode for all of them."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from tests.support.table_contexts import envelope, plan_of, progress, sample

from distributary.config.table import TableSettings, resolve
from distributary.config.table_rule import TableDefaults, TableRule
from distributary.consume.sample import SampledRecord
from distributary.errors import TableHalt
from distributary.ingest.keyless import settings_after_halt, settings_by_records, settings_of_filled, without_late_key
from distributary.ingest.topic_format import TopicFormat
from distributary.progress.record import Progress

APPEND, HALT = TableSettings("*.*", keyless="append"), TableSettings("*.*")
KEYED = TopicFormat("mysql", ("id",), has_schema=False)
KEYLESS = TopicFormat("mysql", (), has_schema=False)
TRUNCATES = TopicFormat("mysql", (), has_schema=False, only_truncates=True)


def test_3_8_a_rule_counts_over_the_defaults_and_a_table_halts_where_neither_says_anything() -> None:
    defaults = TableDefaults(keyless="append")
    assert resolve(TableRule(match="*.*"), TableDefaults()).keyless == "halt"
    assert resolve(TableRule(match="*.*"), defaults).keyless == "append"
    assert resolve(TableRule(match="*.*", keyless="halt"), defaults).keyless == "halt"


def test_3_8_records_without_a_key_make_a_table_of_changes_where_the_config_says_so() -> None:
    assert settings_by_records(APPEND, KEYLESS, None).mode == "append"
    assert settings_by_records(APPEND, KEYED, None).mode == "upsert"
    assert settings_by_records(APPEND, TRUNCATES, None).mode == "upsert"
    assert settings_by_records(HALT, KEYLESS, None).mode == "upsert"
    assert settings_by_records(TableSettings("*.*", keyless="append", key=("id",)), KEYLESS, None).mode == "upsert"
    assert settings_by_records(TableSettings("*.*", keyless="append", mode="history"), KEYLESS, None).mode == "append"


def test_3_8_a_table_stays_as_it_was_filled() -> None:
    filled = progress(1, key=(), mode="append", records=1)
    assert settings_of_filled(APPEND, filled).mode == "append"
    assert settings_of_filled(HALT, filled).mode == "upsert"
    assert settings_of_filled(APPEND, progress(1, key=(), records=1)).mode == "upsert"
    assert (
        settings_of_filled(APPEND, progress(1, mode="append", records=1)).mode == "upsert"
    )  # somebody's own choice, or by now keyed
    assert settings_of_filled(APPEND, filled.cleared()).mode == "upsert"
    assert settings_of_filled(APPEND, None).mode == "upsert"


def test_3_8_a_table_of_changes_without_a_key_has_none_when_the_source_gets_one() -> None:
    keyed, keyless = sample(envelope("c", {"id": 1})).newest, sample(envelope("c", {"id": 1}, key=None)).newest
    truncate = sample(envelope("t", None, key=None)).newest
    of_changes = TableSettings("*.*", mode="append")
    filled = progress(1, key=(), mode="append", records=1)

    def key_of(records: Sequence[SampledRecord], known: Progress | None, settings: TableSettings = of_changes) -> bool:
        has_columns = known is not None and known is not truncated
        return bool(without_late_key(KEYED, records, settings, known, has_columns=has_columns).key)

    truncated = progress(1, key=(), mode="append", records=2)
    assert key_of(keyed, None)
    assert not key_of([*keyed, *keyless], None)  # all of it is read at once
    assert key_of([*keyed, *truncate], None)
    assert not key_of(keyed, filled)
    assert key_of(keyed, truncated)  # truncates alone tell no key
    assert key_of([*keyed, *keyless], progress(1, mode="append", records=1))  # keyed from its start
    assert key_of([*keyed, *keyless], None, TableSettings("*.*"))


def test_3_8_a_table_with_keys_whose_records_lose_them_halts() -> None:
    halt = TableHalt("no-key", "")
    assert settings_after_halt(APPEND, halt, None).mode == "append"
    assert settings_after_halt(APPEND, halt, progress(1, key=())).mode == "append"  # truncates so far
    assert settings_after_halt(APPEND, halt, progress(1)).mode == "upsert"
    assert settings_after_halt(HALT, halt, None).mode == "upsert"
    assert settings_after_halt(APPEND, TableHalt("other", ""), None).mode == "upsert"


@pytest.mark.parametrize(("keyless", "mode", "code"), [("append", "append", None), ("halt", "upsert", "no-key")])
def test_3_8_plan_tells_what_becomes_of_such_a_table(keyless: str, mode: str, code: str | None) -> None:
    found = plan_of(sample(envelope("c", {"n": 1}, key=None)), {"keyless": keyless})
    assert (found.mode, found.error and found.error["code"]) == (mode, code)
