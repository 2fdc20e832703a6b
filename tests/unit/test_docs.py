"""The docs are right: configs load, links resolve, command lines are valid."""

from __future__ import annotations

import ast
import re
import shlex
from pathlib import Path
from typing import NamedTuple

import pytest
from click.testing import CliRunner

from distributary.cli import main
from distributary.config import load
from distributary.failpoints import POINTS

ROOT = Path(__file__).parents[2]
PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")])

# ```language … ```, with what stands in an HTML comment right above it.
BLOCK = re.compile(r"(?:<!-- (?P<mark>[^>]*) -->\n)?```(?P<language>\w*)\n(?P<text>.*?)^```$", re.DOTALL | re.MULTILINE)
LINK = re.compile(r"\[[^\]]+\]\((?P<target>[^)\s]+)\)")
INLINE = re.compile(r"(?<!`)`(?P<text>[^`\n]+)`(?!`)")
# Where a command line of ours begins within a line: the command, the module, spark-submit's entry point.
COMMAND = re.compile(r"^(?:\$ )?(?:.*\s)?(?:distributary|main\.py) (?P<arguments>(?!distributary )\S.*)$")


class Block(NamedTuple):
    page: str
    mark: str
    language: str
    text: str


def blocks() -> list[Block]:
    return [
        Block(path.name, found["mark"] or "", found["language"], found["text"])
        for path in PAGES
        for found in BLOCK.finditer(path.read_text())
    ]


CONFIGS = [block for block in blocks() if block.mark.startswith("config")]


def command_lines() -> list[tuple[str, str]]:
    """Page and arguments of every command line of ours, in shell blocks and in running text."""
    lines = [
        (block.page, line)
        for block in blocks()
        if block.language == "sh"
        for line in block.text.replace("\\\n", " ").splitlines()
    ]
    for path in PAGES:
        prose = BLOCK.sub("", path.read_text())
        lines += [(path.name, found["text"]) for found in INLINE.finditer(prose)]
    found = ((page, COMMAND.match(line.split(" #")[0].strip())) for page, line in lines)
    return sorted(
        {
            (page, match["arguments"])
            for page, match in found
            if match and not re.search(r"\b(docker|helm) ", match.group())
        }
    )


@pytest.mark.parametrize("block", CONFIGS, ids=lambda block: f"{block.page}: {block.mark}")
def test_configs_in_the_docs_load(block: Block, tmp_path: Path) -> None:
    file = tmp_path / "config.yaml"
    file.write_text(block.text)
    assert load(file).version == 1


def test_the_readme_shows_the_example_config_as_it_is() -> None:
    [block] = [block for block in CONFIGS if block.page == "README.md"]
    assert block.mark == "config: config/example.yaml"
    comment, first_key, rest = (ROOT / "config/example.yaml").read_text().partition("version:")
    assert all(line.startswith("#") for line in comment.splitlines())
    assert block.text == first_key + rest


def test_every_whole_config_in_the_docs_is_marked_as_one() -> None:
    whole = [block for block in blocks() if block.language == "yaml" and re.search(r"^version:", block.text, re.M)]
    assert whole
    assert whole == CONFIGS


def links() -> list[tuple[str, str]]:
    """Page and target of every link within the repository."""
    found = ((path, match["target"]) for path in PAGES for match in LINK.finditer(path.read_text()))
    inside = {(str(path.relative_to(ROOT)), target) for path, target in found if not re.match(r"[a-z]+:", target)}
    return sorted(inside)


@pytest.mark.parametrize(("page", "target"), links())
def test_links_lead_somewhere(page: str, target: str) -> None:
    file, _, anchor = target.partition("#")
    path = (ROOT / page).parent / file if file else ROOT / page
    assert path.exists()
    if anchor:
        headings = re.findall(r"^#+ (.*)$", path.read_text(), re.MULTILINE)
        assert anchor in {re.sub(r"[^\w -]", "", heading).lower().replace(" ", "-") for heading in headings}


def test_command_lines_are_found() -> None:
    assert ("README.md", "plan -c config.yaml") in command_lines()


@pytest.mark.parametrize(("page", "arguments"), command_lines())
def test_command_lines_are_understood(page: str, arguments: str) -> None:
    result = CliRunner().invoke(main, [*shlex.split(arguments), "--help"])
    assert result.exit_code == 0, f"{page}: {result.output}"


def test_every_make_target_in_the_docs_exists() -> None:
    targets = set(re.findall(r"^([a-z-]+):.*## ", (ROOT / "Makefile").read_text(), re.MULTILINE))
    named = {name for path in PAGES for name in re.findall(r"(?:^|`)make ([a-z-]+)", path.read_text(), re.MULTILINE)}
    assert {"demo", "test"} <= named
    assert named <= targets


def test_the_layout_in_contributing_is_the_layout_of_the_package() -> None:
    text = (ROOT / "CONTRIBUTING.md").read_text()
    package = ROOT / "service/distributary"
    named = set(re.findall(r"^ ([a-z]+/|[a-z_]+\.py) ", text, re.MULTILINE))
    folders = {f"{path.name}/" for path in package.iterdir() if path.is_dir() and list(path.glob("*.py"))}
    assert {name for name in named if name.endswith("/")} == folders
    assert {name for name in named if name.endswith(".py")} == {
        path.name for path in package.glob("*.py") if not path.name.startswith("__")
    }
    for directory in re.findall(r"^\| `([^`]+/)` ", text, re.MULTILINE):
        assert (ROOT / directory).is_dir(), directory


def failure_cases(page: str) -> list[str]:
    """The first cells of the tables of cases, in order."""
    _, _, cases = (ROOT / page).read_text().partition("## Crashes")
    return [case for case in re.findall(r"^\| (.+?) \| ", cases, re.MULTILINE) if case not in {"case", "---"}]


def test_the_tests_that_hold_the_failures_are_there() -> None:
    named = set(re.findall(r"`(test_\w+)`", (ROOT / "docs/failure-tests.md").read_text()))
    tests = "".join(path.read_text() for path in (ROOT / "tests").rglob("test_*.py"))
    assert len(named) > 30
    assert named <= set(re.findall(r"def (test_\w+)\(", tests))


def test_each_failure_has_a_line_that_says_how_it_was_tested() -> None:
    assert len(failure_cases("docs/failure-cases.md")) > 50
    assert failure_cases("docs/failure-cases.md") == failure_cases("docs/failure-tests.md")


def test_the_failpoints_in_the_docs_are_those_of_the_service() -> None:
    page = (ROOT / "docs/failures.md").read_text()
    assert dict(re.findall(r"^\| `([a-z-]+)` \| (.*) \|$", page, re.MULTILINE)) == POINTS


def test_the_files_on_the_way_of_a_record_are_there() -> None:
    page = (ROOT / "docs/follow-a-record.md").read_text()
    named = set(re.findall(r"`((?:[a-z_]+/)*[a-z_]+\.py)`", page))
    assert len(named) > 30
    paths = {name: ROOT / name if name.startswith("tests/") else ROOT / "service/distributary" / name for name in named}
    assert [name for name, path in sorted(paths.items()) if not path.is_file()] == []


def test_the_calls_on_the_way_of_a_record_are_there() -> None:
    page = (ROOT / "docs/follow-a-record.md").read_text()
    [calls] = re.findall(r"^```\n(OffsetPlanner\._batch > .*?)^```", page, re.MULTILINE | re.DOTALL)
    named = re.findall(r"\b([A-Z][A-Za-z]+)\.([a-z_]+)", calls)
    assert len(named) > 8
    classes: dict[str, set[str]] = {}
    for path in (ROOT / "service/distributary").rglob("*.py"):
        for node in ast.parse(path.read_text()).body:
            if isinstance(node, ast.ClassDef):
                methods = {one.name for one in node.body if isinstance(one, ast.FunctionDef)}
                fields = {ast.unparse(one.target) for one in node.body if isinstance(one, ast.AnnAssign)}
                classes.setdefault(node.name, set()).update(methods | fields)
    assert [name for name in named if name[1] not in classes.get(name[0], ())] == []


def test_numbers_in_the_readme_stand_on_the_page_of_measurements() -> None:
    [table] = re.findall(r"^\| workload .*?(?=\n\n)", (ROOT / "README.md").read_text(), re.MULTILINE | re.DOTALL)
    measured = (ROOT / "docs/performance.md").read_text()
    numbers = {number for row in table.splitlines()[2:] for number in re.findall(r"[\d.]+", row.split(" | ", 1)[1])}
    assert len(numbers) > 10
    assert {
        number for number in numbers if not re.search(rf"(?<![\d.]){re.escape(number)}(?![\d.])", measured)
    } == set()


OTHER_WORDS = re.compile(
    r"\b(slices?|tak(?:e|es|en|ing) in|tak(?:e|es|en) up|go(?:es)? on|went on|mend(?:ed)?|look(?:s|ed)? after)\b"
)
"""Words for which the glossary has others: batch, apply, pick up, continue, fix, maintain."""


def test_pages_use_the_words_of_the_glossary() -> None:
    found = []
    for path in ROOT.glob("docs/*.md"):
        text = "" if path.name == "glossary.md" else path.read_text()
        points = "|".join(POINTS)  # what a failpoint means is said by the code
        prose = re.sub(rf"(?m)^\| `(?:{points})` .*|A \*slice\* in this table.*", "", BLOCK.sub("", text))
        prose = INLINE.sub("", re.sub(r"\]\([^)]*\)", "]", prose))
        found += [(path.name, word) for word in OTHER_WORDS.findall(prose)]
    assert found == []
