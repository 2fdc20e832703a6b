"""Config files that tests write."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import yaml

from distributary.config import Config, load

Write = Callable[..., Path]
"""What the fixture `write` gives; see tests/unit/config/conftest.py."""


def write_config(folder: Path, **more: Any) -> Path:
    """A valid config file in that folder, with lake and checkpoints there; `more` are its sections."""
    sections = {
        "version": 1,
        "kafka": {"bootstrap.servers": "localhost:9"},
        "source": {"topic_prefix": "p"},
        "target": {"path": str(folder / "lake")},
        "checkpoint": str(folder / "checkpoint"),
        "tables": [{"match": "dbo.*"}],
        **more,
    }
    path = folder / "config.yaml"
    path.write_text(yaml.safe_dump(sections), encoding="utf-8")
    return path


def config_in(folder: Path, **more: Any) -> Config:
    """The same, loaded."""
    return load(write_config(folder, **more))
