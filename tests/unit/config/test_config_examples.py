"""The configs that come with the project are right, and full.yaml leaves nothing out."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import get_args

import pytest
from pydantic import BaseModel

from distributary.config import Config, load

CONFIG = Path(__file__).parents[3] / "config"


@pytest.fixture
def full(monkeypatch: pytest.MonkeyPatch) -> Config:
    monkeypatch.setenv("KAFKA_PASSWORD", "x")
    monkeypatch.setenv("S3_SECRET_KEY", "x")
    monkeypatch.setenv("MASKING_SALT", "x")
    monkeypatch.delenv("KAFKA_BOOTSTRAP", raising=False)
    return load(CONFIG / "full.yaml")


def test_the_example_is_right() -> None:
    assert load(CONFIG / "example.yaml").settings_for("dbo", "customers") is not None


def test_the_full_config_is_right(full: Config) -> None:
    assert full.kafka_properties()["bootstrap.servers"] == "localhost:9092"
    orders = full.settings_for("sales", "orders")
    assert orders is not None
    assert orders.where.endswith("tables/orders.yaml:3")
    assert orders.exclude == ("card_number",)


def test_the_full_config_has_every_key() -> None:
    text = (CONFIG / "full.yaml").read_text(encoding="utf-8")
    missing = [key for key in keys(Config) if not re.search(rf"^[\s#-]*{re.escape(key)}:", text, re.MULTILINE)]
    assert missing == []


@pytest.mark.parametrize(
    ("section", "key"),
    [
        *(("source", "format"), ("target", "table"), ("quarantine", "max_ratio"), ("trigger", "interval")),
        *(("trigger", "max_records"), ("http", "enabled"), ("http", "host"), ("http", "port")),
    ],
)
def test_the_defaults_that_the_full_config_names_are_the_defaults(section: str, key: str) -> None:
    comment = comments_above(key)
    default = Config.model_fields[section].annotation
    assert isinstance(default, type)
    assert issubclass(default, BaseModel)
    value = default.model_fields[key].default
    expected = {True: "true", False: "false"}.get(value, str(value)) if isinstance(value, bool) else str(value)
    assert re.search(rf'Default: "?{re.escape(expected)}"?\.(?:\s|$)', comment), comment


def comments_above(key: str) -> str:
    lines = (CONFIG / "full.yaml").read_text(encoding="utf-8").splitlines()
    at = next(i for i, line in enumerate(lines) if re.match(rf"\s+{key}:", line))
    start = at
    while lines[start - 1].strip().startswith("#"):
        start -= 1
    return " ".join(line.strip().removeprefix("#").strip() for line in lines[start:at])


def keys(model: type[BaseModel]) -> Iterator[str]:
    for name, field in model.model_fields.items():
        yield field.alias or name
        for candidate in (field.annotation, *get_args(field.annotation)):
            if isinstance(candidate, type) and issubclass(candidate, BaseModel):
                yield from keys(candidate)
