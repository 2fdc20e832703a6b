"""The text of a first config: what it says of tables, and that no secret is in it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from click.testing import CliRunner
from tests.support.scenes import envelope, records

from distributary.cli import main
from distributary.config import Config, load
from distributary.survey.config_text import Found, Wishes, config_text
from distributary.survey.prefixes import named_by
from distributary.survey.table_plan import HALT, TablePlan

WISHES = Wishes({"bootstrap.servers": "localhost:9092"}, "lake", "s3a://bucket/check points")


def table(name: str, **more: object) -> TablePlan:
    plan = {"table": name, "topic": f"p.{name}", "path": "", "entry": "*.*", "where": "", "mode": "upsert", **more}
    return TablePlan(**plan)  # type: ignore[arg-type]


def written(folder: Path, wishes: Wishes, found: Found) -> tuple[str, Config]:
    text = config_text(wishes, found)
    file = folder / "config.yaml"
    file.write_text(text, encoding="utf-8")
    return text, load(file)


def test_the_config_says_what_was_found(tmp_path: Path) -> None:
    halt = {"code": "column-name-taken", "message": "the source has\na column", "fix": "leave it out"}
    tables = (
        table("dbo.customers"),
        table("dbo.log", mode="append", by_value={"a: b": "bigint", "line\nbreak": "string"}),
        table("dbo.odd", action=HALT, error=halt),
        table("dbo.plain", by_value={"price": "double"}),
    )
    text, config = written(tmp_path, WISHES, Found("server1", "mysql", tables))
    assert [(rule.match, rule.mode) for rule in config.tables] == [
        ("dbo.log", "append"),
        ("dbo.plain", None),
        ("*.*", None),
    ]
    assert (config.source.topic_prefix, config.source.connector) == ("server1", "mysql")
    assert (config.target.path, config.checkpoint) == (str(tmp_path / "lake"), "s3a://bucket/check points")
    for comment in ('#   "a: b": bigint', '#   "line break": string', "#   price: double", "#   dbo.customers"):
        assert comment in text
    assert "# dbo.odd would halt: the source has a column\n" in text
    # With the comment marks of a table's columns taken away it is still a config.
    lines = text.splitlines()
    at = lines.index("    #   price: double")
    lines[at - 1 : at + 1] = ["    columns:", "      price: double"]
    (tmp_path / "config.yaml").write_text("\n".join(lines), encoding="utf-8")
    assert load(tmp_path / "config.yaml").tables[1].columns == {"price": "double"}


def test_tables_of_several_databases_get_places_of_their_own(tmp_path: Path) -> None:
    _, config = written(tmp_path, WISHES, Found("server1", by_database=True))
    assert config.target.table == "{database}/{schema}/{table}"


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
    monkeypatch.setenv(variable, "from outside")
    text, config = written(tmp_path, Wishes({**WISHES.kafka, name: value}, "lake", "checkpoints"), Found("server1"))
    assert "geheim" not in text
    assert config.kafka_properties()[name] == "from outside"


def test_references_and_plain_properties_stay_as_they_were_given(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PW", "from outside")
    given = {**WISHES.kafka, "sasl.password": "${env:PW}", "client.id": "null", "retries": "0x1F"}
    text, config = written(tmp_path, Wishes(given, "lake", "checkpoints"), Found("server1"))
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
