"""The fields that quarantine does not keep of a table with masked or excluded columns."""

from __future__ import annotations

import pytest

from distributary.config.table import TableSettings
from distributary.quarantine.redaction import redacted_columns

SETTINGS = TableSettings("dbo.t", exclude=("ssn",), mask={"email": "redact"})


def test_a_table_that_withholds_nothing_keeps_all() -> None:
    assert redacted_columns(TableSettings("dbo.t"), {"add.fields": "source.query"}) == ()


def test_statements_go_with_the_columns_whose_values_they_have() -> None:
    found = set(redacted_columns(SETTINGS, {}))
    statements = {"query", "redo_sql", "__query", "__source_query", "__source_redo_sql", "iodebeziumredosql"}
    assert {"ssn", "email", *statements} <= found


def test_mongodbs_documents_are_redacted_under_the_names_that_they_come_under() -> None:
    settings = TableSettings("shop.orders", mask={"document": "redact"})
    assert {"document", "before", "after", "id"} <= set(redacted_columns(settings, {}, "mongodb"))
    assert "after" not in redacted_columns(settings, {}, "postgresql")


@pytest.mark.parametrize(
    ("properties", "field"),
    [
        ({"transforms.unwrap.add.fields": "op,source.query:sql_text"}, "__sql_text"),
        ({"add.fields": "source.redo_sql", "add.fields.prefix": "meta_"}, "meta_source_redo_sql"),
        ({"add.fields.prefix": "cdc."}, "cdc.source_query"),
        ({"transforms.x.add.headers": "query", "transforms.x.add.headers.prefix": ""}, "query"),
        ({"transforms.x.add.headers": "source.query:statement"}, "__statement"),
    ],
)
def test_the_connectors_own_names_of_statements_count(properties: dict[str, str], field: str) -> None:
    assert field in redacted_columns(SETTINGS, properties)
