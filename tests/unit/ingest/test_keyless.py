"""Tables without a key, with a config that sets a mode for all of them."""

from __future__ import annotations

import pytest
from tests.support.table_contexts import envelope, plan_of, progress, sample

from distributary.config.table import TableSettings, resolve
from distributary.config.table_rule import TableDefaults, TableRule
from distributary.errors import TableHalt
from distributary.ingest.keyless import as_halt_tells, as_kept, as_records_tell
from distributary.ingest.topic_format import TopicFormat

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
    assert as_records_tell(APPEND, KEYLESS, None).mode == "append"
    assert as_records_tell(APPEND, KEYED, None).mode == "upsert"
    assert as_records_tell(APPEND, TRUNCATES, None).mode == "upsert"
    assert as_records_tell(HALT, KEYLESS, None).mode == "upsert"
    assert as_records_tell(TableSettings("*.*", keyless="append", key=("id",)), KEYLESS, None).mode == "upsert"
    assert as_records_tell(TableSettings("*.*", keyless="append", mode="history"), KEYLESS, None).mode == "append"


def test_3_8_a_table_stays_as_it_was_filled() -> None:
    filled = progress(1, key=(), mode="append", records=1)
    assert as_kept(APPEND, filled).mode == "append"
    assert as_kept(HALT, filled).mode == "upsert"
    assert as_kept(APPEND, progress(1, key=(), records=1)).mode == "upsert"
    assert (
        as_kept(APPEND, progress(1, mode="append", records=1)).mode == "upsert"
    )  # somebody's own choice, or by now keyed
    assert as_kept(APPEND, filled.cleared()).mode == "upsert"
    assert as_kept(APPEND, None).mode == "upsert"


def test_3_8_a_table_with_keys_whose_records_lose_them_halts() -> None:
    halt = TableHalt("no-key", "")
    assert as_halt_tells(APPEND, halt, None).mode == "append"
    assert as_halt_tells(APPEND, halt, progress(1, key=())).mode == "append"  # truncates so far
    assert as_halt_tells(APPEND, halt, progress(1)).mode == "upsert"
    assert as_halt_tells(HALT, halt, None).mode == "upsert"
    assert as_halt_tells(APPEND, TableHalt("other", ""), None).mode == "upsert"


@pytest.mark.parametrize(("keyless", "mode", "code"), [("append", "append", None), ("halt", "upsert", "no-key")])
def test_3_8_plan_tells_what_becomes_of_such_a_table(keyless: str, mode: str, code: str | None) -> None:
    found = plan_of(sample(envelope("c", {"n": 1}, key=None)), {"keyless": keyless})
    assert (found.mode, found.error and found.error["code"]) == (mode, code)
