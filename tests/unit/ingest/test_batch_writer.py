"""What the config says of how a table's rows are written."""

from __future__ import annotations

import pytest

from distributary.config.table import FileLayout, TableSettings
from distributary.delta.plan_write import Layout
from distributary.ingest.batch_writer import removal_layout


@pytest.mark.parametrize(
    ("layout", "properties", "expected"),
    [
        ("auto", {}, Layout.AUTO),
        ("rewrite", {}, Layout.REWRITE),
        ("vectors", {}, Layout.VECTORS),
        ("auto", {"delta.enableDeletionVectors": "true"}, Layout.AUTO),
        ("vectors", {"delta.enableDeletionVectors": "false"}, Layout.REWRITE),
        ("auto", {"delta.enabledeletionvectors": "False"}, Layout.REWRITE),
    ],
)
def test_rows_leave_a_table_s_files_as_the_config_says(
    layout: FileLayout, properties: dict[str, str], expected: Layout
) -> None:
    assert removal_layout(TableSettings("dbo.t", layout=layout, properties=properties)) is expected
