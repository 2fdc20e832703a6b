"""What the config says of how a table's rows are written."""

from __future__ import annotations

import gc
import tempfile
from pathlib import Path

import pytest

from distributary.config.table import TableSettings
from distributary.delta.plan_write import Layout
from distributary.ingest.batch_writer import new_index_cache, removal_layout


@pytest.mark.parametrize(
    ("properties", "expected"),
    [
        ({}, Layout.AUTO),
        ({"delta.enableDeletionVectors": "true"}, Layout.AUTO),
        ({"delta.enableDeletionVectors": "false"}, Layout.REWRITE),
        ({"delta.enabledeletionvectors": "False"}, Layout.REWRITE),
    ],
)
def test_a_table_gets_no_deletion_vectors_where_the_config_says_so(
    properties: dict[str, str], expected: Layout
) -> None:
    assert removal_layout(TableSettings("dbo.t", properties=properties)) is expected


def test_indexes_of_keys_leave_no_directory_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    cache = new_index_cache()
    assert len(list(tmp_path.iterdir())) == 1
    del cache
    gc.collect()
    assert list(tmp_path.iterdir()) == []
