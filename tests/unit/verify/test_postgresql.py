"""Which types of PostgreSQL can be compared, and how its rows are read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import psycopg
import pyarrow.parquet as pq
import pytest

from distributary.errors import UsageError
from distributary.verify.check import VerifyOptions
from distributary.verify.postgresql import PostgresTable, connected
from distributary.verify.source import write_chunks
from distributary.verify.source_check import source_of


class Source(PostgresTable):
    """A table that nothing is read of."""

    def __init__(self, types: Mapping[str, str], enums: Sequence[str] = ()) -> None:
        self.types = types
        self.enums = list(enums)


def test_columns_are_compared_whose_text_says_the_same() -> None:
    lake = {"id": "bigint", "n": "decimal(8,2)", "e": "string", "c": "string", "gone": "string", "at": "string"}
    lake["x"] = "string"
    source = {
        "id": "integer",
        "n": "numeric",
        "e": "mood",
        "c": "character",
        "x": "xml",
        "at": "time without time zone",
    }
    found = Source(source, ["e"]).comparable(lake)
    assert found.types == {"id": "integer", "n": "numeric", "e": "mood", "c": "character"}
    assert found.left_out == {
        "x": "xml can't be compared with string",
        "gone": "the source does not have it",
        "at": "time without time zone can't be compared with string",
    }


def test_masked_columns_are_not_compared() -> None:
    found = Source({"id": "integer", "ssn": "text"}).comparable({"id": "int", "ssn": "string"}, {"ssn": "hash"})
    assert "ssn" not in found.types
    assert found.left_out["ssn"] == "it is masked"


def test_rows_are_kept_as_texts(tmp_path: Path) -> None:
    write_chunks([[("1", None), ("2", "b")], [("3", "c")]], 2, tmp_path)
    assert pq.read_table(tmp_path).to_pydict() == {"c0": ["1", "2", "3"], "c1": [None, "b", "c"]}


def test_an_empty_table_has_columns(tmp_path: Path) -> None:
    write_chunks([[]], 1, tmp_path)
    assert pq.read_table(tmp_path).to_pydict() == {"c0": []}


@pytest.mark.parametrize("dsn", ["postgresql://h/d", "postgres://h/d", "host=h dbname=d"])
def test_postgresql_is_known_by_its_dsn(dsn: str) -> None:
    assert source_of(dsn).name == "PostgreSQL"


@pytest.mark.parametrize("dsn", ["informix://u:hidden@h/d", "mongodb://u:hidden@h/d"])
def test_other_databases_are_refused_without_their_dsn(dsn: str) -> None:
    with pytest.raises(UsageError, match="source-not-built") as raised:
        source_of(dsn)
    assert "hidden" not in str(raised.value)


def test_a_password_is_in_no_error() -> None:
    dsn = "postgresql://somebody:hidden@127.0.0.1:1/nowhere"
    with pytest.raises(UsageError, match="source-unreachable") as raised, connected(dsn):
        pass
    assert "hidden" not in str(raised.value)
    assert "hidden" not in repr(VerifyOptions(source_dsn=dsn))
    assert isinstance(raised.value.__cause__, psycopg.Error)
