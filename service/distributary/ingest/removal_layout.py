"""How rows are removed from the files of a table: deletion vectors or rewritten files."""

from __future__ import annotations

from distributary.config.table import TableSettings
from distributary.delta.plan_write import Layout
from distributary.delta.table_features import VECTORS


def removal_layout(settings: TableSettings) -> Layout:
    """The layout in force: the config's `layout`, but never vectors where a property says that the table has none."""
    said = {name.lower(): value.lower() for name, value in settings.properties.items()}
    return Layout.REWRITE if said.get(VECTORS.lower()) == "false" else Layout(settings.layout)
