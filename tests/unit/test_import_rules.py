"""Which packages may import which: the config and the pure rules import no Spark."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

SERVICE = Path(__file__).parents[2] / "service" / "distributary"
PATTERNS = (
    *(
        "errors.py",
        "sql.py",
        "cli/*.py",
        "config/*.py",
        "apply/*.py",
        "decode/**/*.py",
        "evolve/*.py",
        "rules/**/*.py",
        "types/*.py",
    ),
)
WITHOUT_SPARK = sorted(path for pattern in PATTERNS for path in SERVICE.glob(pattern))
SPARK = {"pyspark", "delta", "py4j"}

LAYERS = (
    "errors arrow_errors",
    "reasons",
    "types",
    "config decode rules",
    "launch logs controls wrapping sql evolve apply",
    "consume delta",
    "progress",
    "lake",
    "failpoints error_mapping former_names halt_actions storage table_state",
    "ingest",
    "quarantine",
    "observe",
    "control",
    "maintain",
    "workers",
    "transactions verify preflight demo",
    "job",
    "cli",
    "reference",
)
"""From the lowest one up: what lies in one of them imports what lies in lower ones, and its neighbours."""

HEIGHT = {name: height for height, names in enumerate(LAYERS) for name in names.split()}


def imported(source: str) -> Iterator[str]:
    """The top-level names of all that a module imports, inside of functions too."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            yield from (alias.name.partition(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module.partition(".")[0]


@pytest.mark.parametrize("path", WITHOUT_SPARK, ids=lambda path: str(path.relative_to(SERVICE)))
def test_imports_no_spark(path: Path) -> None:
    assert SPARK.isdisjoint(imported(path.read_text(encoding="utf-8")))


DELTA = sorted((SERVICE / "delta").glob("*.py"))
RULES = sorted((SERVICE / "rules").glob("*.py"))


def imported_packages(source: str) -> Iterator[str]:
    """The packages of the service that a module imports, as `merge` of `distributary.lake.log`."""
    for node in ast.walk(ast.parse(source)):
        modules = [node.module or ""] if isinstance(node, ast.ImportFrom) else []
        modules += [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
        if isinstance(node, ast.ImportFrom) and node.module == "distributary":
            modules = [f"distributary.{alias.name}" for alias in node.names]
        yield from (name.split(".")[1] for name in modules if name.startswith("distributary."))


@pytest.mark.parametrize("path", DELTA, ids=lambda path: path.name)
def test_delta_knows_nothing_of_topics_and_rules(path: Path) -> None:
    assert set(imported_packages(path.read_text(encoding="utf-8"))) <= {"delta", "arrow_errors", "errors", "launch"}


def test_delta_asks_spark_for_commits_and_checkpoints_alone() -> None:
    with_spark = {path.name for path in DELTA if SPARK & set(imported(path.read_text(encoding="utf-8")))}
    assert with_spark == {"transaction.py", "checkpoint.py", "table_storage.py", "variant.py"}


@pytest.mark.parametrize("path", RULES, ids=lambda path: path.name)
def test_the_rules_import_no_other_folder_and_nothing_that_does_io(path: Path) -> None:
    allowed = {*sys.stdlib_module_names, "numpy", "pyarrow"} - {"io", "os", "pathlib", "socket", "subprocess"}
    source = path.read_text(encoding="utf-8")
    assert set(imported(source)) <= {*allowed, "distributary"}
    assert set(imported_packages(source)) <= {"rules"}


@pytest.mark.parametrize("path", sorted(SERVICE.rglob("*.py")), ids=lambda path: str(path.relative_to(SERVICE)))
def test_no_module_has_more_than_300_lines(path: Path) -> None:
    assert len(path.read_text(encoding="utf-8").splitlines()) <= 300


def test_the_check_sees_packages_everywhere() -> None:
    source = "import distributary.a.b\nfrom distributary import c\ndef f():\n    from distributary.d.e import x\n"
    assert set(imported_packages(source)) == {"a", "c", "d"}


def test_each_package_has_its_layer() -> None:
    packages = {path.stem for path in SERVICE.glob("*.py")} | {
        path.parent.name for path in SERVICE.glob("*/__init__.py")
    }
    assert packages - {"__init__", "__main__"} == set(HEIGHT)


def test_no_folder_has_more_than_an_eighth_of_the_lines() -> None:
    lines: Counter[str] = Counter()
    for path in SERVICE.rglob("*.py"):
        lines[path.relative_to(SERVICE).parts[0]] += len(path.read_text(encoding="utf-8").splitlines())
    assert {name: count for name, count in lines.items() if count > lines.total() / 8} == {}


@pytest.mark.parametrize("path", sorted(SERVICE.glob("*/__init__.py")), ids=lambda path: path.parent.name)
def test_the_face_of_a_folder_says_what_comes_in_and_out_and_what_it_imports(path: Path) -> None:
    text = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or ""
    assert [word for word in ("\n\nIn: ", " Out: ", "mport") if word not in text.replace("\nOut: ", " Out: ")] == []


@pytest.mark.parametrize("name", HEIGHT)
def test_imports_go_down(name: str) -> None:
    paths = [path for path in SERVICE.rglob("*.py") if path.relative_to(SERVICE).with_suffix("").parts[0] == name]
    found = {one for path in paths for one in imported_packages(path.read_text(encoding="utf-8"))}
    imports = found - {"__version__"}
    assert paths
    assert {one for one in imports if HEIGHT[one] > HEIGHT[name]} == set()


def test_the_check_sees_imports_everywhere() -> None:
    assert set(imported("import a.b\ndef f():\n    from c.d import e\n    class X:\n        import f\n")) == {
        "a",
        "c",
        "f",
    }


# The config's library takes as long to import as all else that a task needs, in each of its processes.
UNNEEDED = {"distributary.config": SPARK, "distributary.cli": SPARK, "distributary.ingest.decode_task": {"pydantic"}}


@pytest.mark.parametrize("module", UNNEEDED)
def test_works_where_there_is_no_spark_and_a_task_where_there_is_no_config(module: str) -> None:
    program = f"""
import sys
sys.modules.update(dict.fromkeys({sorted(UNNEEDED[module])!r}))  # None there makes every import of it fail
import {module}
"""
    result = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=False)
    assert result.returncode == 0, result.stderr


def test_no_test_imports_from_another_test() -> None:
    """What tests share is in tests/support or tests/model."""
    tests = Path(__file__).parents[1]
    kinds = "|".join(("browser", "e2e", "integration", "packaging", "spark", "unit"))
    pattern = re.compile(rf"^\s*(?:from|import) tests\.(?:(?:{kinds})\b|\w+\.test_)", re.MULTILINE)
    found = [str(path.relative_to(tests)) for path in tests.rglob("*.py") if pattern.search(path.read_text("utf-8"))]
    assert found == []
