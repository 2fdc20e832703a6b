"""How the service starts."""

from __future__ import annotations

from pathlib import Path

import pytest

from distributary import job
from distributary.config.load import load

ROOT = Path(__file__).parents[2]


def test_a_config_that_is_changed_while_the_service_starts_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    """What the watch compares with is read before anything that takes time."""
    seen: list[str] = []

    class Watch:
        def __init__(self, *_: object) -> None:
            seen.append("watch")

    def broker(*_: object) -> None:
        seen.append("kafka")
        raise RuntimeError("no further")

    monkeypatch.setattr(job, "Watch", Watch)
    monkeypatch.setattr(job, "Broker", broker)
    file = ROOT / "config/example.yaml"
    with pytest.raises(RuntimeError, match="no further"):
        job.run(load(file), once=False, file=file)
    assert seen == ["watch", "kafka"]
