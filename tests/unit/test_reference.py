"""Pages that are made from the code are up to date and complete."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from distributary.config import load
from distributary.config.schema import json_schema
from distributary.reference import config, errors
from distributary.reference.config_examples import EXAMPLES
from distributary.reference.pages import PAGES

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("name", PAGES)
def test_pages_equal_the_code(name: str) -> None:
    assert (ROOT / name).read_text(encoding="utf-8") == PAGES[name](), "run `make docs`"


def test_every_error_has_a_way_out() -> None:
    found = errors.raised_by_service()
    assert len(found) > 100
    assert [error for error in found if not error.message or not error.fix] == []


def test_errors_are_read_from_where_they_are_raised(tmp_path: Path) -> None:
    (tmp_path / "module.py").write_text(
        "_FIX = 'mend ' + 'it'\n"
        "def f(topic, n):\n"
        "    raise TableHalt('gone', f'{topic} is gone: {n + 1:,} left', _FIX)\n"
        "    raise UsageError('typed', 'so', fix=f'write {_NAME}')\n"
        "    raise TableHalt(error.code, 'handed on')\n"
        "    raise ValueError('no error of ours')\n"
        "    raise Faster('overtaken', 'by another', 'wait')\n"
        "class Faster(TransientError): ...\n"
    )
    for folder in ("verify", "demo"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "one.py").write_text("raise TableHalt('nothing', 'to compare', 'run it')\n")
    assert set(errors.raised(tmp_path)) == {
        errors.Raised("nothing", "to compare", "run it", "verify"),
        errors.Raised("gone", "{topic} is gone: {…} left", "mend it", "TableHalt"),
        errors.Raised("overtaken", "by another", "wait", "TransientError"),
        errors.Raised("typed", "so", "write {name}", "UsageError"),
    }


@pytest.mark.parametrize("title", EXAMPLES)
def test_examples_of_the_config_load(title: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REGISTRY_USER", "reader:secret")
    (tmp_path / "salt").write_text("a long random text")
    least = yaml.safe_load((ROOT / "config/example.yaml").read_text())
    text = EXAMPLES[title][1].replace("/run/secrets/masking-salt", str(tmp_path / "salt"))
    (tmp_path / "config.yaml").write_text(yaml.safe_dump({**least, **yaml.safe_load(text)}))
    load(tmp_path / "config.yaml")


def test_every_key_of_the_config_is_reported() -> None:
    page = config.as_markdown()
    schema = json_schema()
    keys = {key for part in (schema, *schema["$defs"].values()) for key in part["properties"]}
    assert not [key for key in keys if f"`{key}`" not in page]
    assert (
        "| `name` | text | distributary-&lt;source.topic_prefix> | Name of the group. Two services need two names. |"
        in page
    )
