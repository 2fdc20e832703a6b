"""`config/schema.json` accepts what `load` accepts."""

from __future__ import annotations

import importlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.support import broken_configs

from distributary.config import schema

CONFIG = Path(__file__).parents[3] / "config"


@pytest.fixture(scope="module")
def jsonschema() -> Any:
    """The library. Its import takes 2 seconds: only the process of these tests waits for it, and no quick run."""
    return importlib.import_module("jsonschema")


@pytest.fixture(scope="module")
def validator(jsonschema: Any) -> Any:
    """Made once: to make it takes longer than to use it."""
    return jsonschema.Draft202012Validator(schema.json_schema())


@pytest.mark.thorough
def test_it_is_a_json_schema(jsonschema: Any) -> None:
    jsonschema.Draft202012Validator.check_schema(schema.json_schema())


@pytest.mark.thorough
@pytest.mark.parametrize("name", ["example.yaml", "full.yaml"])
def test_it_accepts_the_examples(name: str, validator: Any) -> None:
    validator.validate(yaml.safe_load((CONFIG / name).read_text(encoding="utf-8")))


@pytest.mark.thorough
def test_it_accepts_references_in_place_of_numbers(validator: Any) -> None:
    config = yaml.safe_load((CONFIG / "example.yaml").read_text(encoding="utf-8"))
    config["http"] = {"port": "${env:PORT:-8080}", "enabled": "${env:HTTP}"}
    config["trigger"] = {"interval": "${env:INTERVAL}"}
    validator.validate(config)


@pytest.mark.thorough
@pytest.mark.parametrize(
    "name",
    [
        *("unknown-key", "unknown-key-nested", "unknown-key-in-a-table", "missing-keys", "missing-nested-keys"),
        *("bad-choices", "bad-numbers", "bad-durations", "version", "wrong-types", "target-both", "target-neither"),
        *("empty-text", "property-that-is-a-list", "match-in-defaults"),
    ],
)
def test_it_refuses_what_an_editor_can_see(name: str, jsonschema: Any, validator: Any) -> None:
    config = yaml.safe_load((broken_configs.DIRECTORY / f"{name}.yaml").read_text(encoding="utf-8"))
    with pytest.raises(jsonschema.ValidationError):
        validator.validate(config)


@pytest.mark.thorough
@pytest.mark.parametrize("table", [{"epoch": -1}, {"maintenance": {"compact_after": -1}}])
def test_it_refuses_numbers_below_zero_where_there_is_none(
    table: dict[str, Any], jsonschema: Any, validator: Any
) -> None:
    config = yaml.safe_load((CONFIG / "example.yaml").read_text(encoding="utf-8"))
    config["tables"] = [{"match": "dbo.*", **table}]
    with pytest.raises(jsonschema.ValidationError):
        validator.validate(config)


def test_every_key_is_explained() -> None:
    unexplained = [name for name, value in keys(schema.json_schema()) if not value.get("description")]
    assert unexplained == []


def test_no_key_may_be_null() -> None:
    assert '"type": "null"' not in json.dumps(schema.json_schema())


def keys(made: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    for title, definition in {"": made, **made["$defs"]}.items():
        for name, value in definition["properties"].items():
            yield f"{title}.{name}", value
