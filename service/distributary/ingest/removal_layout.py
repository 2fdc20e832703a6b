"""How rows are removed from the files of a table: deletion vectors or rewritten files."""

from __future__ import annotations

from distributary.config.table import TableSettings
from distributary.delta.plan_write import RemovalLayout
from distributary.delta.table_features import VECTORS


def removal_layout(settings: TableSettings) -> RemovalLayout:
    """The layout in force: the config's `layout`, but without vectors if a property of the table forbids them."""
    properties = {name.lower(): value.lower() for name, value in settings.properties.items()}
    return RemovalLayout.REWRITE if properties.get(VECTORS.lower()) == "false" else RemovalLayout(settings.layout)
