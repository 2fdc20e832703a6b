"""What is remembered of deletes is looked after each day, and halts no table whatever comes of it."""

from __future__ import annotations

from datetime import date, timedelta
from types import SimpleNamespace
from typing import Any, cast

import pytest

from distributary.operate import tending
from distributary.operate.tending import Tending


class Deletes:
    def __init__(self) -> None:
        self.done: list[str] = []

    def forget_old(self, today: date) -> None:
        self.done.append(f"forgot {today}")

    def gather(self, key: dict[str, str], *, of_changes: bool) -> None:
        self.done.append(f"gathered by {key}, {of_changes}")
        raise OSError("the storage fails")


class Lake:
    """A table that is not there can't be asked for its columns."""

    def __init__(self, *, there: bool) -> None:
        self.there = there

    def columns(self) -> dict[str, str]:
        if not self.there:
            raise ValueError("no Delta table")
        return {"id": "int", "v": "string"}


@pytest.mark.parametrize("there", [True, False])
def test_once_a_day(monkeypatch: pytest.MonkeyPatch, there: bool) -> None:
    deletes, today = Deletes(), date(2024, 5, 1)
    place = SimpleNamespace(progress=SimpleNamespace(key=("id",)) if there else None)
    found = Tending(cast(Any, Lake(there=there)), cast(Any, deletes), cast(Any, place), "upsert", "dbo.t")
    monkeypatch.setattr(tending, "_today", lambda: today)
    found.forget_old_deletes()
    found.see_to_deletes()
    assert deletes.done == ["forgot 2024-05-01"]
    today += timedelta(1)
    for _ in range(2):
        found.see_to_deletes()
    gathered = ["gathered by {'id': 'int'}, False"] if there else []
    assert deletes.done == ["forgot 2024-05-01", "forgot 2024-05-02", *gathered]
