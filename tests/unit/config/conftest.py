"""A way to write configs for tests."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.support.config_files import Write

MINIMAL = """\
version: 1
kafka: {bootstrap.servers: "localhost:9092"}
source: {topic_prefix: server1}
target: {path: /data/lake}
checkpoint: /data/checkpoints
"""


@pytest.fixture
def write(tmp_path: Path) -> Write:
    """`write(text)` gives a config file of the minimal sections and `text`; `write(text, name)` any other file."""

    def write(text: str, name: str | None = None) -> Path:
        path = tmp_path / (name or "config.yaml")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text if name else MINIMAL + text, encoding="utf-8")
        return path

    return write
