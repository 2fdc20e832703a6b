"""What `load` makes of a right config."""

from __future__ import annotations

from pathlib import Path

import pytest
from pydantic import ValidationError
from tests.support.config_files import Write

from distributary.config import Config, load
from distributary.errors import ConfigError

EVERYTHING = 'tables: [{match: "*.*"}]\n'


def test_the_smallest_config_has_the_documented_defaults(write: Write) -> None:
    config = load(write(EVERYTHING))
    assert config.kafka_properties() == {"bootstrap.servers": "localhost:9092"}
    assert config.spark_properties() == {}
    assert (config.source.topic_prefix, config.source.connector, config.source.format) == ("server1", None, "json")
    assert (config.target.path, config.target.table) == ("/data/lake", "{schema}/{table}")
    assert config.quarantine_path() == "/data/lake/_quarantine"
    assert config.quarantine.max_ratio == 0.1
    assert (config.trigger.interval_seconds(), config.trigger.max_records) == (1.0, 500_000)
    assert (config.http.enabled, config.http.host, config.http.port) == (True, "127.0.0.1", 8080)


def test_properties_reach_their_owner_as_they_were_written(write: Write) -> None:
    config = load(
        write(
            EVERYTHING
            + """
spark:
  spark.a: true
  spark.b: yes
  spark.c: 0123
  spark.d: 1.50
  spark.e: 2026-01-01
  spark.f: 1_000
  spark.g: "null"
  spark.h: off
"""
        )
    )
    assert list(config.spark_properties().values()) == [
        "true",
        "yes",
        "0123",
        "1.50",
        "2026-01-01",
        "1_000",
        "null",
        "off",
    ]


def test_a_columns_name_may_hold_what_looks_like_a_reference(write: Write) -> None:
    config = load(write('tables: [{match: "*.*", columns: {"$${env:HOME}": date}}]\n'))
    assert config.tables[0].columns == {"${env:HOME}": "date"}


def test_a_config_made_in_python_spells_values_as_yaml_does() -> None:
    config = Config.model_validate(
        {
            "version": 1,
            "kafka": {"bootstrap.servers": "localhost:9092", "a": True, "b": 5},
            "source": {"topic_prefix": "server1"},
            "target": {"path": "/data/lake"},
            "checkpoint": "/data/checkpoints",
            "tables": [{"match": "dbo.*"}],
            "http": {"port": 0},
        }
    )
    assert config.kafka_properties() == {"bootstrap.servers": "localhost:9092", "a": "true", "b": "5"}
    settings = config.settings_for("dbo", "customers")
    assert settings is not None
    assert settings.where == ""


@pytest.mark.parametrize(
    ("interval", "seconds"), [("500ms", 0.5), ("10s", 10.0), ("1m", 60.0), ("2h", 7200.0), ("0s", 0.0)]
)
def test_intervals_are_given_in_seconds(write: Write, interval: str, seconds: float) -> None:
    assert load(write(EVERYTHING + f"trigger: {{interval: {interval}}}\n")).trigger.interval_seconds() == seconds


def test_a_config_can_not_be_changed(write: Write) -> None:
    config = load(write(EVERYTHING))
    with pytest.raises(ValidationError):
        config.checkpoint = "/elsewhere"  # type: ignore[misc]
    with pytest.raises(ValidationError):
        config.http.port = 1  # type: ignore[misc]


def test_a_section_whose_lines_are_all_commented_out_is_left_out(write: Write) -> None:
    config = load(write(EVERYTHING + "spark:\n  # spark.a: 1\nhttp:\n"))
    assert config.spark_properties() == {}
    assert config.http.port == 8080


def test_relative_paths_start_at_the_config_file(tmp_path: Path) -> None:
    path = tmp_path / "config.yaml"
    path.write_text(
        "version: 1\nkafka: {bootstrap.servers: 'a:1'}\nsource: {topic_prefix: p}\n"
        "target: {path: lake}\ncheckpoint: ./checkpoints\ntables: [{match: '*.*'}]\nquarantine: {path: bad/records}\n"
    )
    config = load(path)
    assert config.target.path == f"{tmp_path}/lake"
    assert config.checkpoint == f"{tmp_path}/checkpoints"
    assert config.quarantine_path() == f"{tmp_path}/bad/records"


@pytest.mark.parametrize(
    "path", ["s3a://bucket/lake", "abfss://container@account.dfs.core.windows.net/lake", "file:/x"]
)
def test_paths_of_other_file_systems_stay_as_they_are(tmp_path: Path, path: str) -> None:
    file = tmp_path / "config.yaml"
    file.write_text(
        "version: 1\nkafka: {bootstrap.servers: 'a:1'}\nsource: {topic_prefix: p}\n"
        f"target: {{path: '{path}'}}\ncheckpoint: {path}/_checkpoints\ntables: [{{match: '*.*'}}]\n"
    )
    config = load(file)
    assert config.target.path == path
    assert config.quarantine_path() == f"{path}/_quarantine"


def test_included_tables_come_after_the_main_file_in_the_order_of_their_paths(write: Write) -> None:
    write("tables: [{match: b.1}, {match: b.2}]", "tables/b.yaml")
    write("tables: [{match: a.1}]", "tables/a.yaml")
    write("tables: [{match: first.1}]", "first/z.yaml")
    config = load(write("include: [first/z.yaml, 'tables/*.yaml']\ntables: [{match: main.1}]\n"))
    assert [rule.match for rule in config.tables] == ["main.1", "first.1", "a.1", "b.1", "b.2"]


def test_all_tables_may_be_included(write: Write, tmp_path: Path) -> None:
    write("# none yet\n", "tables/a.yaml")
    write("\n\ntables:\n  - match: a.1\n  - epoch: 2\n    match: a.2\n", "tables/b.yaml")
    settings = load(write("include: ['tables/*.yaml']\n")).settings_for("a", "2")
    assert settings is not None
    assert settings.where == f"{tmp_path}/tables/b.yaml:5"
    assert settings.epoch == 2


def test_a_file_that_two_patterns_name_counts_once(write: Write) -> None:
    write("tables: [{match: a.1}]", "tables/a.yaml")
    config = load(write("include: ['tables/*.yaml', tables/a.yaml, '**/*.yaml']\n"))
    assert [rule.match for rule in config.tables] == ["a.1"]


def test_hidden_files_are_no_part_of_a_glob(write: Write) -> None:
    # What a ConfigMap is mounted as: the real files lie in a hidden directory, the visible ones are links to them.
    real = write("tables: [{match: a.1}]", "tables/..data/a.yaml")
    (real.parent.parent / "a.yaml").symlink_to("..data/a.yaml")
    write("tables: [{match: b.1}]", "tables/.b.yaml.swp.yaml")
    config = load(write("include: ['tables/**/*.yaml']\n"))
    assert [rule.match for rule in config.tables] == ["a.1"]


def test_a_glob_may_match_nothing(write: Write) -> None:
    assert len(load(write(EVERYTHING + "include: ['tables/*.yaml']\n")).tables) == 1


@pytest.mark.parametrize(
    "reference", ["${file:secret.txt}", "${env:HOME}", "${env:NOT_SET:-x}", "a ${file:secret.txt}"]
)
@pytest.mark.parametrize(
    "key", ["match: {}", "match: a.1, rename: {{id: {}}}", "match: a.1, properties: {{delta.x: {}}}"]
)
def test_nothing_that_is_said_of_tables_comes_from_elsewhere(write: Write, reference: str, key: str) -> None:
    """Whoever may onboard a table would read the service's secrets where tables are shown."""
    write("hidden\n", "secret.txt")
    entry = "{" + key.format(f"'{reference}'") + "}"
    write(f"tables: [{entry}]", "tables/a.yaml")
    for text in ("include: [tables/a.yaml]\n", f"tables: [{entry}]\n"):
        path = write(text)
        with pytest.raises(ConfigError) as caught:
            load(path)
        assert {fault.code for fault in caught.value.faults} == {"interpolation-in-tables"}
        assert "hidden" not in str(caught.value)


def test_a_sign_that_begins_a_reference_elsewhere_is_written_twice(write: Write) -> None:
    write("tables: [{match: 'a.$${b}'}]", "tables/a.yaml")
    assert load(write("include: [tables/a.yaml]\n")).settings_for("a", "${b}") is not None


def test_a_file_that_is_not_there_is_a_fault_of_its_own(tmp_path: Path) -> None:
    with pytest.raises(ConfigError) as caught:
        load(tmp_path / "nothing.yaml")
    assert [fault.code for fault in caught.value.faults] == ["config-unreadable"]


@pytest.mark.parametrize("byte", [b"\xff", b"\x00"], ids=["no text", "control character"])
def test_bytes_that_yaml_does_not_have_are_named_with_their_line(tmp_path: Path, byte: bytes) -> None:
    path = tmp_path / "config.yaml"
    path.write_bytes(b"version: 1\nkafka:\n  a: " + byte + b"\n")
    with pytest.raises(ConfigError) as caught:
        load(path)
    assert [(fault.code, fault.line) for fault in caught.value.faults] == [("yaml-syntax", 3)]


@pytest.mark.thorough
def test_a_bottomless_file_is_a_fault_and_no_crash(tmp_path: Path) -> None:
    path = tmp_path / "config.yaml"
    path.write_text("[" * 5000)
    with pytest.raises(ConfigError) as caught:
        load(path)
    assert [fault.code for fault in caught.value.faults] == ["yaml-syntax"]


def test_a_byte_order_mark_is_no_part_of_the_first_key(write: Write) -> None:
    path = write(EVERYTHING)
    path.write_bytes(b"\xef\xbb\xbf" + path.read_bytes())
    assert load(path).version == 1
