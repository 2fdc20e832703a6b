"""No table is in a directory that is reserved for the service, whatever `target.table` is."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.support.config_files import config_in

from distributary.config import Config
from distributary.consume.topics import TableId
from distributary.ingest.tables import settings_of
from distributary.preflight.skipped_topics import skipped_topics


def config(folder: Path, place: str, match: str) -> Config:
    return config_in(
        folder,
        source={"topic_prefix": "p", "connector": "sqlserver"},
        target={"path": "lake", "table": place},
        tables=[{"match": match}],
    )


@pytest.mark.parametrize(
    ("place", "table", "is_table"),
    [
        ("{table}", TableId("dbo", "_quarantine"), False),
        ("{table}", TableId("dbo", "_Distributary"), False),
        ("{table}", TableId("dbo", "_migrations"), True),
        ("{database}/{schema}/{table}", TableId("dbo", "t", "_distributary"), False),
        ("{database}/{schema}/{table}", TableId("dbo", "_quarantine", "shop"), True),
        ("{schema}/{table}", TableId("_QUARANTINE", "t"), False),
        ("{schema}/{table}", TableId("dbo", "_quarantine"), True),
        ("{schema}/{table}", TableId("public", "_delta_log"), False),
        ("{schema}/{table}", TableId("_Delta_Log", "t"), False),
        ("{schema}_{table}", TableId("public", "_delta_log"), True),
        *(
            ("{schema}/{table}", TableId("public", name), True)
            for name in (
                "_prisma_migrations",
                "__EFMigrationsHistory",
                "_orders_gho",
                "~orders",
                ".hidden",
                "_change_data",
            )
        ),
        ("cdc/{table}", TableId("dbo", "_quarantine"), True),
    ],
)
def test_a_table_by_its_name_and_its_place(tmp_path: Path, place: str, table: TableId, is_table: bool) -> None:
    found = config(tmp_path, place, "dbo.*" if table.schema == "dbo" else "*.*")
    assert (settings_of(table, found) is not None) == is_table
    topic = f"p.{table.database or 'shop'}.{table.schema}.{table.table}"
    codes = [one.code for one in skipped_topics(found, [topic], [] if not is_table else [topic])]
    assert codes == ([] if is_table else ["reserved-name"])
