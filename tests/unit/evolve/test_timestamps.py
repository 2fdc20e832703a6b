"""A table keeps its points in time as they are until it is filled again."""

from __future__ import annotations

import pytest

from distributary.config.table import TableSettings
from distributary.errors import TableHalt
from distributary.evolve.timestamps import check_timestamps

COLUMNS = {"id": "bigint", "at": "timestamp_ntz", "times": "array<timestamp_ntz>", "zoned": "timestamp"}
UTC = TableSettings("dbo.t", "config.yaml:7", timestamps="utc")


def test_a_table_with_points_in_time_without_a_zone_halts_when_they_are_to_be_instants() -> None:
    with pytest.raises(TableHalt, match="timestamps-changed") as halt:
        check_timestamps(None, UTC, COLUMNS)
    assert "timestamps: ntz, and the config (config.yaml:7) has timestamps: utc" in halt.value.message
    assert halt.value.message.endswith("Columns: at, times")
    assert "set timestamps: ntz for this table" in halt.value.fix


def test_a_table_with_instants_halts_when_they_are_to_lose_their_zone() -> None:
    with pytest.raises(TableHalt, match="Columns: zoned"):
        check_timestamps("utc", TableSettings("dbo.t"), {"zoned": "timestamp"})


@pytest.mark.parametrize("known", [None, "ntz", "utc"])
def test_a_table_without_such_columns_continues(known: str | None) -> None:
    for settings in (UTC, TableSettings("dbo.t")):
        check_timestamps(known, settings, {"id": "bigint", "v": "struct<timestamp:string>"})


def test_a_column_whose_type_the_config_names_continues() -> None:
    named = TableSettings("dbo.t", timestamps="utc", columns={"At": "timestamp_ntz"}, rename={"At": "at"})
    check_timestamps("ntz", named, {"id": "bigint", "at": "timestamp_ntz"})
