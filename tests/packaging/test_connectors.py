"""The quickstarts' connectors: the connectors know the settings, and the service's requirements are met."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.support.connect import DEBEZIUM
from tests.support.debezium import CONVERTERS, properties_of

from distributary.config import load
from distributary.demo.broker import KAFKA

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "deploy/debezium"
CONNECTORS = sorted(path.name for path in FOLDER.glob("*.json"))
PAGES = sorted((ROOT / "docs").glob("quickstart-*.md"))
SHOWN = re.compile(
    r"<!-- connector: deploy/debezium/(?P<file>[\w.]+)(?P<part>, .*)? -->\n```json\n(?P<text>.*?)^```$",
    re.DOTALL | re.MULTILINE,
)


def connector(name: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((FOLDER / name).read_text())
    return found


@pytest.mark.parametrize("name", CONNECTORS)
def test_every_setting_is_one_that_the_connector_knows(name: str) -> None:
    config = connector(name)
    known = properties_of(config["connector.class"])
    unknown = {key for key in config if key not in known and not key.startswith(CONVERTERS)}
    assert unknown == set()


@pytest.mark.parametrize("name", CONNECTORS)
def test_records_come_as_the_service_needs_them(name: str) -> None:
    config = connector(name)
    assert all(isinstance(value, str) for value in config.values())
    assert config["value.converter.replace.null.with.default"] == "false"
    assert config["value.converter.schemas.enable"] == "true"
    assert config.get("tombstones.on.delete", "true") == "true"
    assert "transforms" not in config


def test_the_pages_show_the_connectors_as_they_are() -> None:
    shown = [
        (match["file"], match["part"], match["text"]) for page in PAGES for match in SHOWN.finditer(page.read_text())
    ]
    assert {file for file, _, _ in shown} == set(CONNECTORS)
    for file, part, text in shown:
        if part:
            assert {**connector("mysql.json"), **json.loads(text)} == connector(file)
        else:
            assert text == (FOLDER / file).read_text()


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_page_and_connector_speak_of_the_same_source(page: Path, tmp_path: Path) -> None:
    text = page.read_text()
    [config_text] = re.findall(r"<!-- config -->\n```yaml\n(.*?)^```$", text, re.DOTALL | re.MULTILINE)
    (tmp_path / "config.yaml").write_text(config_text)
    config = load(tmp_path / "config.yaml")
    [file, *_] = [match["file"] for match in SHOWN.finditer(text)]
    shown = connector(file)
    assert config.source.topic_prefix == shown["topic.prefix"]
    assert config.source.connector is not None
    assert f".connector.{config.source.connector}." in shown["connector.class"]
    assert f"--data-binary @deploy/debezium/{file}" in text
    assert f"{shown['topic.prefix']}." in text


SHOWN_BY_NO_RECORD = ("skipped.operations", "value.converter.replace.null.with.default")
"""Settings whose effect no record shows: `plan` warns of their defaults unless the config names them."""


def settings_shown_by_no_record(connector: dict[str, Any]) -> dict[str, Any]:
    return {name: connector[name] for name in SHOWN_BY_NO_RECORD if name in connector}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_the_config_names_the_settings_that_no_record_shows(page: Path, tmp_path: Path) -> None:
    text = page.read_text()
    [config_text] = re.findall(r"<!-- config -->\n```yaml\n(.*?)^```$", text, re.DOTALL | re.MULTILINE)
    (tmp_path / "config.yaml").write_text(config_text)
    [file, *_] = [match["file"] for match in SHOWN.finditer(text)]
    named = load(tmp_path / "config.yaml").source.connector_properties
    assert named
    assert named == settings_shown_by_no_record(connector(file))


def test_the_config_of_compose_names_them() -> None:
    named = load(ROOT / "deploy/compose/config.yaml").source.connector_properties
    assert named == settings_shown_by_no_record(connector("connector.json"))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_settings_that_a_page_explains_are_known(page: Path) -> None:
    text = page.read_text()
    known = {
        key for match in SHOWN.finditer(text) for key in properties_of(connector(match["file"])["connector.class"])
    }
    rows = re.findall(r"^\| (`[^|]*`) \| ", text, re.MULTILINE)
    names = {
        name.partition(":")[0] for row in rows for name in re.findall(r"`([^`]+)`", row) if not name.startswith("…")
    }
    assert names
    unknown = {name for name in names if name not in known and not name.startswith(CONVERTERS) and "…" not in name}
    assert unknown == set()


def test_json_of_the_pages_is_json() -> None:
    for page in (ROOT / "docs").glob("*.md"):
        for block in re.findall(r"^```json\n(.*?)^```$", page.read_text(), re.DOTALL | re.MULTILINE):
            assert json.loads(block), page.name


def test_signals_of_the_page_are_json_and_their_settings_known() -> None:
    page = (ROOT / "docs/snapshots.md").read_text()
    [settings] = re.findall(r"^```json\n(.*?)^```$", page, re.DOTALL | re.MULTILINE)
    known = properties_of("io.debezium.connector.postgresql.PostgresConnector")
    # Those of the Kafka channel are read by the channel itself.
    assert {key for key in json.loads(settings) if not key.startswith("signal.kafka.")} <= known
    [by_sql] = re.findall(r"^  '(\{.*\})'$", page, re.MULTILINE)
    [by_kafka] = re.findall(r"^echo 'server1;(\{.*\})'", page, re.MULTILINE)
    assert json.loads(by_kafka) == {"type": "execute-snapshot", "data": json.loads(by_sql)}


def test_yaml_of_the_pages_is_yaml() -> None:
    for page in (ROOT / "docs").glob("*.md"):
        for block in re.findall(r"^```yaml\n(.*?)^```$", page.read_text(), re.DOTALL | re.MULTILINE):
            assert yaml.safe_load(block) is not None, page.name


def test_the_archives_of_the_quickstart_are_those_that_the_tests_run() -> None:
    page = (ROOT / "docs/quickstart-postgresql.md").read_text()
    assert f"https://archive.apache.org/dist/kafka/{KAFKA}/kafka_2.13-{KAFKA}.tgz" in page
    assert f"connector=debezium-connector-postgres-{DEBEZIUM}-plugin.tar.gz" in page
    assert f"/io/debezium/debezium-connector-postgres/{DEBEZIUM}/$connector" in page
    assert set(re.findall(r"kafka_2\.13-(\d+\.\d+\.\d+)", page)) == {KAFKA}
