"""What counts for one table: the first rule that matches, over the defaults."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.support.config_files import Write

from distributary.config import Config, TableSettings, load
from distributary.config.maintenance import Maintenance
from distributary.config.notices import keys_without_effect, notices

DAY = 86_400.0


def settings(config: Config, schema: str, table: str) -> TableSettings:
    found = config.settings_for(schema, table)
    assert found is not None
    return found


def test_without_a_word_everything_has_its_default(write: Write, tmp_path: Path) -> None:
    config = load(write('tables:\n  - match: "*.*"\n'))
    assert settings(config, "dbo", "customers") == TableSettings(
        match="*.*",
        where=f"{tmp_path}/config.yaml:7",
        mode="upsert",
        deletes="hard",
        truncate="apply",
        key=(),
        schema_changes="evolve",
        column_defaults="null",
        columns={},
        exclude=(),
        epoch=0,
        properties={},
        partition_by=(),
        cluster_by=(),
        mask={},
        salt=None,
        maintenance=Maintenance(compact_after=100, vacuum_every=DAY, keep=7 * DAY),
    )


def test_the_first_match_wins(write: Write) -> None:
    config = load(
        write("tables: [{match: dbo.customers, epoch: 1}, {match: 'dbo.*', epoch: 2}, {match: '*', epoch: 3}]\n")
    )
    assert settings(config, "dbo", "customers").epoch == 1
    assert settings(config, "dbo", "orders").epoch == 2
    assert settings(config, "sales", "orders").epoch == 3


def test_no_match_is_no_table(write: Write) -> None:
    assert load(write("tables: [{match: dbo.customers}]\n")).settings_for("dbo", "customers2") is None


def test_upper_and_lower_case_count(write: Write) -> None:
    config = load(write("tables: [{match: dbo.Customers}]\n"))
    assert config.settings_for("dbo", "customers") is None
    assert config.settings_for("DBO", "Customers") is None
    assert config.settings_for("dbo", "Customers") is not None


def test_a_table_name_may_have_dots(write: Write) -> None:
    config = load(write("tables: [{match: public.a.b}, {match: 'public.c.*'}]\n"))
    assert settings(config, "public", "a.b").match == "public.a.b"
    assert settings(config, "public", "c.d").match == "public.c.*"


def test_a_key_of_the_rule_counts_instead_of_the_default(write: Write) -> None:
    config = load(
        write(
            """
defaults: {mode: append, deletes: soft, truncate: halt, schema_changes: ignore, key: [a, b], epoch: 5}
tables:
  - match: a.plain
  - match: a.other
    mode: upsert
    deletes: hard
    truncate: apply
    schema_changes: evolve
    key: []
    epoch: 0
"""
        )
    )
    plain, other = settings(config, "a", "plain"), settings(config, "a", "other")
    assert (plain.mode, plain.deletes, plain.truncate) == ("append", "soft", "halt")
    assert (plain.schema_changes, plain.key, plain.epoch) == ("ignore", ("a", "b"), 5)
    assert (other.mode, other.deletes, other.truncate) == ("upsert", "hard", "apply")
    assert (other.schema_changes, other.key, other.epoch) == ("evolve", (), 0)


@pytest.mark.parametrize(("result", "counts"), [("null", "null"), ("'null'", "null"), ("fill", "fill")])
def test_null_is_a_word_where_it_says_what_older_rows_have(write: Write, result: str, counts: str) -> None:
    text = f"defaults: {{column_defaults: fill}}\ntables: [{{match: a.b, column_defaults: {result}}}, {{match: a.c}}]\n"
    config = load(write(text))
    assert settings(config, "a", "b").column_defaults == counts
    assert settings(config, "a", "c").column_defaults == "fill"


def test_tables_of_changes_keep_null(write: Write) -> None:
    config = load(write("tables: [{match: a.b, column_defaults: fill, mode: append}, {match: a.c}]\n"))
    assert not settings(config, "a", "b").fills_defaults
    assert settings(config, "a", "c").column_defaults == "null"


def test_each_key_of_the_maintenance_counts_by_itself(write: Write) -> None:
    config = load(
        write(
            """
defaults: {maintenance: {compact_after: 200, vacuum_every: 12h}}
tables:
  - {match: a.plain}
  - {match: a.other, maintenance: {compact_after: 0, vacuum_every: 0d, keep: 30d}}
"""
        )
    )
    assert settings(config, "a", "plain").maintenance == Maintenance(200, DAY / 2, 7 * DAY)
    assert settings(config, "a", "other").maintenance == Maintenance(0, 0.0, 30 * DAY)


def test_columns_and_exclude_add_to_the_defaults(write: Write) -> None:
    config = load(
        write(
            """
defaults: {columns: {created: timestamp_ms, id: int}, exclude: [ssn]}
tables: [{match: a.b, columns: {id: BIGINT, x: 'Decimal( 9 )'}, exclude: [card, ssn]}]
"""
        )
    )
    found = settings(config, "a", "b")
    assert found.columns == {"created": "timestamp_ms", "id": "bigint", "x": "decimal(9,0)"}
    assert found.exclude == ("ssn", "card")


def test_properties_add_to_the_defaults_and_a_rule_sets_its_layout_as_a_whole(write: Write) -> None:
    config = load(
        write(
            """
defaults: {properties: {delta.enableChangeDataFeed: true, delta.checkpointInterval: 20}, partition_by: [day]}
tables:
  - {match: a.b, properties: {delta.checkpointInterval: 30}, cluster_by: [id]}
  - {match: a.c, partition_by: []}
  - {match: a.d}
"""
        )
    )
    found = settings(config, "a", "b")
    assert found.properties == {"delta.enableChangeDataFeed": "true", "delta.checkpointInterval": "30"}
    assert (found.partition_by, found.cluster_by) == ((), ("id",))
    assert (settings(config, "a", "c").partition_by, settings(config, "a", "d").partition_by) == ((), ("day",))


def test_masks_add_to_the_defaults_and_the_salt_is_shown_nowhere(write: Write, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SALT", "hunter2")
    config = load(
        write(
            """
defaults: {mask: {ssn: hash, phone: hash}}
tables: [{match: a.b, mask: {phone: redact, email: redact}}]
masking: {salt: "${env:SALT}"}
"""
        )
    )
    found = settings(config, "a", "b")
    assert found.mask == {"ssn": "hash", "phone": "redact", "email": "redact"}
    assert found.salt is not None
    assert found.salt.get_secret_value() == "hunter2"
    assert "hunter2" not in f"{config!r} {found!r}"


@pytest.mark.parametrize(
    ("earlier", "later", "expected"),
    [
        ("*.*", "dbo.customers", True),
        ("*", "dbo.*", True),
        ("dbo.*", "dbo.cust*", True),
        ("dbo.cust*", "dbo.*", False),
        ("dbo.?", "dbo.*", False),
        ("dbo.customers", "dbo.orders", False),
        ("dbo.*", "DBO.customers", False),
    ],
)
def test_a_rule_that_never_counts_is_noticed(write: Write, earlier: str, later: str, expected: bool) -> None:
    config = load(write(f"tables:\n  - match: '{earlier}'\n  - match: '{later}'\n"))
    found = notices(config)
    assert len(found) == expected
    if expected:
        assert "config.yaml:8" in found[0]
        assert "config.yaml:7" in found[0]


def test_the_key_of_an_engine_that_is_gone_is_accepted_and_noticed(write: Write) -> None:
    config = load(
        write("defaults: {commit: auto}\ntables:\n  - match: a.old\n    commit: deltalake\n  - match: a.new\n")
    )
    first, second = keys_without_effect(config)
    assert first.startswith("defaults: `commit` has no effect")
    assert "config.yaml:8: `commit` has no effect" in second
    assert "take it out" in second
    assert notices(config) == []


def test_a_name_that_a_rule_gives_counts_before_the_defaults(write: Write) -> None:
    config = load(
        write(
            """
defaults: {rename: {ID: row_id, from: sender}}
tables:
  - {match: a.plain}
  - {match: a.own, rename: {Id: ROW_ID}}
"""
        )
    )
    assert settings(config, "a", "plain").rename == {"ID": "row_id", "from": "sender"}
    assert settings(config, "a", "own").rename == {"from": "sender", "Id": "ROW_ID"}
