"""The recipes of docs/read-tables.md that need no Java, on a small table; those of Spark are in tests/spark."""

from __future__ import annotations

import datetime
import re
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import write_deltalake
from tests.support.readers import READERS, duckdb_connection
from tests.support.recipes import PAGES, recipes

CREATED = datetime.datetime.fromisoformat("2026-01-02T03:04:05.123456")
ROWS = [(1, "Ada", CREATED), (2, "Grace", None)]


@pytest.fixture
def lake(tmp_path: Path) -> Path:
    """A lake with the table of the page, as the service would make it: with a column of TIMESTAMP_NTZ."""
    columns: dict[str, Any] = dict(zip(("id", "name", "created_at"), zip(*ROWS, strict=True), strict=True))
    columns["created_at"] = pa.array(columns["created_at"], pa.timestamp("us"))
    write_deltalake(tmp_path / "lake/dbo/customers", pa.table({**columns, "__op": ["c", "u"]}))
    return tmp_path / "lake"


def run(recipe: str, lake: Path) -> Any:
    """What a recipe in Python leaves as `frame`."""
    names: dict[str, Any] = {}
    exec(recipes(lake)[recipe], names)  # what the page has its readers type
    return names["frame"]


def test_deltalake_and_pandas(lake: Path) -> None:
    frame = run("deltalake", lake)
    assert list(frame.columns) == ["id", "name", "created_at"]
    assert frame["id"].tolist() == [1, 2]
    assert frame["created_at"].iloc[0].to_pydatetime() == CREATED


def test_deltalakes_own_queries(lake: Path) -> None:
    assert run("deltalake-query", lake)["name"].tolist() == ["Ada", "Grace"]


def test_polars(lake: Path) -> None:
    assert run("polars", lake).rows() == ROWS


def test_duckdb(lake: Path) -> None:
    with duckdb_connection() as connection:
        assert sorted(connection.execute(recipes(lake)["duckdb"]).fetchall()) == ROWS


def test_duckdb_with_its_extension_as_a_package(lake: Path) -> None:
    frame = run("duckdb-package", lake)
    assert sorted(frame["id"]) == [1, 2]
    assert list(frame.columns) == ["id", "name", "created_at"]


NEEDS = {
    r"\.to_pandas\(": {"pandas", "pyarrow"},
    r"\.df\(": {"pandas"},
    r"scan_delta\(": {"deltalake"},
}
"""What a call needs beside the packages that a recipe imports."""


def test_the_pip_line_of_a_section_has_all_that_its_recipes_need() -> None:
    checked = 0
    for section in PAGES.split("\n## "):
        installed = re.findall(r"^pip install (.*)$", section, re.MULTILINE)
        for recipe in re.findall(r"^```python\n(.*?)^```$", section, re.DOTALL | re.MULTILINE):
            needed = set(re.findall(r"^(?:import|from) (\w+)", recipe, re.MULTILINE))
            needed |= {package for call, packages in NEEDS.items() if re.search(call, recipe) for package in packages}
            packages = set(re.findall(r"[a-z_]\w*", " ".join(installed).replace("-", "_")))
            assert needed <= packages, section.splitlines()[0]
            checked += 1
    assert checked == 4


def test_no_recipe_is_left_out(lake: Path) -> None:
    here = {"deltalake", "deltalake-query", "polars", "duckdb", "duckdb-package"}
    of_spark = {name for name in recipes(lake) if name.startswith("spark")}
    assert set(recipes(lake)) == here | of_spark
    assert len(READERS) == len(here - {"duckdb-package"})
