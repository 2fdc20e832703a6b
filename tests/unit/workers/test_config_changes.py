"""A change of the config's files reaches the tables, the planner and the transactions of the running service."""

from __future__ import annotations

from pathlib import Path
from typing import Any, cast
from unittest.mock import MagicMock

import pytest

from distributary.config import Config
from distributary.config.watch import Change, ConfigWatcher
from distributary.errors import Fault
from distributary.observe.status import ServiceStatus
from distributary.workers import config_changes
from distributary.workers.config_changes import ConfigChanges

CONFIG = cast(Config, MagicMock(tables=()))
FAULT = Fault(Path("config.yaml"), 3, "yaml-syntax", "this is no YAML")


@pytest.fixture(autouse=True)
def at_each_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    """The files are polled at each turn."""
    monkeypatch.setattr(config_changes, "_EVERY", 0.0)


class Service:
    """The parts that a change reaches, and the calls that they get."""

    def __init__(self, *changes: Change | None) -> None:
        self.calls = MagicMock()
        self.status = ServiceStatus()
        found = iter(changes)
        watch = cast(ConfigWatcher, MagicMock(poll=lambda: next(found, None)))
        self.changes = ConfigChanges(
            watch, self.status, self.calls.tables, self.calls.planner, self.calls.transactions.follow
        )

    def names(self) -> list[Any]:
        """The calls of the last turn."""
        found = [name for name, _, _ in self.calls.mock_calls]
        self.calls.reset_mock()
        return found


def test_a_change_reaches_all_parts_and_new_tables_get_a_target_at_once() -> None:
    service = Service(Change(CONFIG))
    service.changes.follow()
    assert service.names() == [
        *("tables.replace_outdated", "transactions.follow", "tables.follow", "tables.replace_outdated"),
        *("planner.follow", "planner.plan_newest"),
    ]
    service.changes.follow()
    assert service.names() == ["tables.replace_outdated"]


def test_targets_that_could_not_be_planned_are_planned_at_the_next_turn() -> None:
    service = Service(Change(CONFIG))
    service.calls.planner.plan_newest.side_effect = [OSError("no storage"), None]
    service.changes.follow()
    service.names()
    service.changes.follow()
    assert service.names() == ["tables.replace_outdated", "planner.plan_newest"]


def test_a_fault_is_shown_and_the_tables_stay_as_they_are() -> None:
    service = Service(Change(None, (FAULT,)), Change(CONFIG))
    service.changes.follow()
    assert service.names() == ["tables.replace_outdated"]
    assert [fault["code"] for fault in (service.status.config or {})["faults"]] == ["yaml-syntax"]
    service.changes.follow()
    assert service.status.config is None
