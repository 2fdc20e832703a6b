"""A table is made once: one that another driver has made meanwhile is left alone."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from distributary.errors import TransientError
from distributary.lake.layout import Layout
from distributary.lake.table import LakeTable


@pytest.mark.parametrize(
    ("there", "made"), [(None, "create"), ({}, "replace"), ({"id": "int"}, None)], ids=["none", "cleared", "filled"]
)
def test_6_1_a_table_that_another_driver_has_made_meanwhile_is_not_replaced(
    monkeypatch: pytest.MonkeyPatch, there: Mapping[str, str] | None, made: str | None
) -> None:
    """It may have rows already, and its progress record has them as applied."""
    lake = object.__new__(LakeTable)
    lake.path, lake._layout, lake._service_columns = "lake/dbo/t", Layout(), {}
    calls = []
    monkeypatch.setattr(lake, "exists", lambda: there is not None)
    monkeypatch.setattr(lake, "columns", lambda: there)
    monkeypatch.setattr(lake, "_build", lambda make, *_: calls.append(make.__name__))
    if made is None:
        with pytest.raises(TransientError):
            lake.create({"id": "int"})
    else:
        lake.create({"id": "int"})
    assert calls == ([] if made is None else [made])
