"""The text of a first config: its tables and types, and that it has no secret."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from click.testing import CliRunner
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from tests.support.table_contexts import envelope, plan_of, records, sample

from distributary.cli import main
from distributary.config import Config, load
from distributary.preflight import first_config
from distributary.preflight.config_text import ConfigChoices, DiscoveredTopics, config_text
from distributary.preflight.plan import Plan
from distributary.preflight.prefixes import named_by
from distributary.preflight.table_plan import HALT, TablePlan

CHOICES = ConfigChoices({"bootstrap.servers": "localhost:9092"}, "lake", "s3a://bucket/check points")


def table(name: str, **more: object) -> TablePlan:
    plan = {"table": name, "topic": f"p.{name}", "path": "", "entry": "*.*", "where": "", "mode": "upsert", **more}
    return TablePlan(**plan)  # type: ignore[arg-type]


def written(folder: Path, choices: ConfigChoices, found: DiscoveredTopics) -> tuple[str, Config]:
    text = config_text(choices, found)
    file = folder / "config.yaml"
    file.write_text(text, encoding="utf-8")
    return text, load(file)


def test_the_config_says_what_was_found(tmp_path: Path) -> None:
    halt = {"code": "column-name-taken", "message": "the source has\na column\x07", "fix": "leave it out"}
    tables = (
        table("dbo.customers"),
        table("dbo.log", mode="append", by_value={"a: b": "bigint", "line\nbreak": "string"}),
        table("dbo.odd", action=HALT, error=halt),
        table(
            "dbo.plain",
            by_value={"price": "double"},
            possible_types={"price": "or another"},
            untyped=("gone", "no\nline"),
        ),
        table("dbo.kept", mode="append"),
    )
    text, config = written(tmp_path, CHOICES, DiscoveredTopics("server1", "mysql", tables))
    assert config.defaults.keyless == "append"
    assert [(rule.match, rule.columns) for rule in config.tables] == [
        ("dbo.log", {"a: b": "bigint", "line\nbreak": "string"}),
        ("dbo.plain", {"price": "double"}),
        ("*.*", None),
    ]
    assert (config.source.topic_prefix, config.source.connector) == ("server1", "mysql")
    assert (config.target.path, config.checkpoint) == (str(tmp_path / "lake"), "s3a://bucket/check points")
    lines = text.splitlines()
    assert lines[(at := lines.index("      price: double  # or another")) - 1] == "    columns:"
    assert lines[at + 1] == '    # Only nulls so far, which show no type: gone, "no\\nline"'
    assert lines[lines.index("  keyless: append") + 1 :][:2] == ["  #   dbo.log", "  #   dbo.kept"]
    assert "  #   dbo.customers" in lines
    assert "  # dbo.odd would halt: the source has a column\\u0007" in lines


def test_types_are_named_where_values_alone_show_them(tmp_path: Path) -> None:
    text, config = written(
        tmp_path, CHOICES, DiscoveredTopics("server1", tables=(table("dbo.t"), table("dbo.u", untyped=("a",))))
    )
    assert [rule.columns for rule in config.tables] == [None, None]
    assert "    # Only nulls so far, which show no type: a\n" in text
    assert "carry no schema" not in text


NAMES = st.text(
    st.characters(codec="utf-8") | st.sampled_from("#:'\"\\\n\r\t\0\x7f\x85\u2028\ufeff\ufffe${}[]?&*!|>%@`,-~")
)


@pytest.mark.thorough
@settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@example(
    ("null", "yes", "1", "~", "", " ", "a.b", "a: b", "- a", "<<", "*", "# a", "=", "1.5", "2026-01-01", "🙂", "%")
)
@example(
    (
        "${env:HOME}",
        "$${",
        "${",
        "'",
        '"',
        "\\",
        "a\nb",
        "\u0085",
        "\u2028",
        "\ufeff",
        "\ufffe",
        "\ud800",
        "On",
        "x" * 5000,
    )
)
@given(st.lists(NAMES, max_size=8).map(tuple))
def test_columns_of_any_name_are_read_as_they_were_found(tmp_path: Path, names: tuple[str, ...]) -> None:
    found = dict.fromkeys(names, "bigint")
    guesses = {name: f"or {name}" for name in names}
    error = {"code": "columns-differ-in-case", "message": f"{names}", "fix": f"{names}"}
    tables = (table("dbo.t", by_value=found, possible_types=guesses), table("dbo.u", untyped=names, error=error))
    _, config = written(tmp_path, CHOICES, DiscoveredTopics("server1", tables=tables))
    assert (config.tables[0].columns or {}) == found
    for rule in config.tables[1:]:
        assert rule.columns is None


def test_an_entry_for_the_tables_of_several_databases_names_what_all_of_them_show(tmp_path: Path) -> None:
    one = {"same": "bigint", "other": "bigint", "null": "string", "told": "bigint", "lone": "double"}
    tables = (
        table("dbo.t", by_value=one, columns=one),
        table("dbo.t", by_value={"same": "bigint", "other": "string"}, columns={"told": "date"}, untyped=("null",)),
    )
    text, config = written(tmp_path, CHOICES, DiscoveredTopics("server1", tables=tables, by_database=True))
    assert config.tables[0].columns == {"same": "bigint", "lone": "double"}
    assert '    # Different types in different databases: other, "null", told\n' in text
    assert [rule.match for rule in config.tables] == ["dbo.t", "*.*"]


def test_no_value_of_a_record_is_written(tmp_path: Path) -> None:
    row = {"day": 19876, "amount": 48151623.42, "mail": "someone@example.com", "code": "AAECAwQ=", "doc": {"secret": 1}}
    key, value = envelope("c", {"id": 7134, **row})
    plan = plan_of(sample((key, value)))
    text, config = written(tmp_path, CHOICES, DiscoveredTopics("server1", tables=(plan,)))
    assert config.tables[0].columns == plan.columns
    for shown in ("7134", "19876", "48151623", "someone", "AAEC", "secret"):
        assert shown not in text


def test_tables_of_several_databases_get_places_of_their_own(tmp_path: Path) -> None:
    _, config = written(tmp_path, CHOICES, DiscoveredTopics("server1", by_database=True))
    assert config.target.table == "{database}/{schema}/{table}"


def discovered(folder: Path, monkeypatch: pytest.MonkeyPatch, topics: dict[str, str]) -> str:
    """The text of the config for a Kafka with these topics, by the table that each would become."""

    def plan(config: Config) -> Plan:
        by_database = "{database}" in config.target.table
        twice = len(set(topics.values())) < len(topics) and not by_database
        error = {"code": "two-topics-one-table", "message": "", "fix": ""} if twice else None
        return Plan(tuple(table(name, topic=topic, error=error) for topic, name in topics.items()), (), ())

    monkeypatch.setattr(first_config, "plan", plan)
    file = folder / "config.yaml"
    first_config.write_first_config(CHOICES, "server1", file, force=False)
    return file.read_text(encoding="utf-8")


def test_the_database_is_in_the_path_only_where_tables_share_a_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "one").mkdir()
    one = {"server1.dbo.customers": "dbo.customers", "server1.dbo.orders": "dbo.orders"}
    assert "{database}" not in discovered(tmp_path / "one", monkeypatch, one)
    two = {"server1.a.dbo.customers": "dbo.customers", "server1.b.dbo.customers": "dbo.customers"}
    assert 'table: "{database}/{schema}/{table}"' in discovered(tmp_path, monkeypatch, two)


JAAS = 'org.apache.kafka.common.security.plain.PlainLoginModule required username="u" password="geheim";'


@pytest.mark.parametrize(
    ("name", "value", "variable"),
    [
        ("sasl.password", "geheim", "KAFKA_SASL_PASSWORD"),
        ("ssl.key.password", "geheim", "KAFKA_SSL_KEY_PASSWORD"),
        ("sasl.jaas.config", JAAS, "KAFKA_SASL_JAAS_CONFIG"),
    ],
)
def test_no_secret_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, value: str, variable: str
) -> None:
    outside = value.replace("geheim", "from outside")
    monkeypatch.setenv(variable, outside)
    given = {**CHOICES.kafka, "sasl.username": "me", "sasl.password": "${env:PW}", name: value}
    monkeypatch.setenv("PW", "another one")
    text, config = written(tmp_path, ConfigChoices(given, "lake", "checkpoints"), DiscoveredTopics("server1"))
    assert "geheim" not in text
    assert config.kafka_properties()[name] == outside


def test_references_and_plain_properties_stay_as_they_were_given(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PW", "from outside")
    login = {"sasl.username": "me", "sasl.password": "${env:PW}"}
    given = {**CHOICES.kafka, **login, "client.id": "null", "retries": "0x1F"}
    text, config = written(tmp_path, ConfigChoices(given, "lake", "checkpoints"), DiscoveredTopics("server1"))
    assert "${env:PW}" in text
    assert config.kafka_properties() == {**given, "sasl.password": "from outside"}


def test_a_prefix_is_what_the_source_block_names_if_the_topic_begins_with_it() -> None:
    key, value = envelope("c", {"id": 1})
    value["source"]["name"] = "my.server"
    told = records([(None, {"id": 1}), (key, value)])
    assert named_by("my.server.dbo.t", told) == "my.server"
    assert named_by("renamed.dbo.t", told) is None
    assert named_by("my.server.dbo.t", records([(None, {"source": {"name": "my.server"}})])) is None


def test_a_file_that_is_there_is_not_replaced(tmp_path: Path) -> None:
    file = tmp_path / "config.yaml"
    file.write_text("mine")
    before = dict(os.environ)
    result = CliRunner().invoke(main, ["init", "--bootstrap-servers", "127.0.0.1:1", "-c", str(file)])
    assert (result.exit_code, "[file-exists]" in result.stderr) == (2, True)
    assert (file.read_text(), dict(os.environ)) == ("mine", before)


@pytest.mark.parametrize("given", ["sasl.password", "=x"])
def test_a_property_has_a_name_and_a_value(given: str) -> None:
    result = CliRunner().invoke(main, ["init", "--bootstrap-servers", "127.0.0.1:1", "--property", given])
    assert result.exit_code == 2
    assert "NAME=VALUE" in result.stderr
