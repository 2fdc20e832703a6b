"""The page of rules and the tests of rules name the same rules."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "rules.md").read_text(encoding="utf-8")
NUMBER = r"\d+\.\d+"
TEST = re.compile(r"def test_(\d+_\d+(?:(?:_and|_to)_\d+_\d+)*)_")

HELD_BY_UNNUMBERED = {"5.5"}
"""Rules that whole recorded scenarios and tests of single modules hold, which name none of them."""


def of_page() -> dict[str, bool]:
    """Each rule of the page, and whether it is built."""
    entries = re.findall(rf"^- \*\*\[({NUMBER})\]\(\S+\)\*\* (.*?)(?=^- |^#|\Z)", PAGE, re.DOTALL | re.MULTILINE)
    return {number: not re.search(r"Not (built|released)[^*]*\*\s*$", text.strip()) for number, text in entries}


def of_tests() -> set[str]:
    """All rules in the names of tests."""
    named = set()
    for path in (ROOT / "tests").rglob("test_*.py"):
        for found in TEST.findall(path.read_text(encoding="utf-8")):
            named |= {number.replace("_", ".") for number in re.findall(r"\d+_\d+", found)}
    return named


def test_tests_name_rules_that_the_page_has() -> None:
    assert of_tests() <= set(of_page())


def test_each_rule_that_is_built_is_held_by_a_test() -> None:
    built = {number for number, is_built in of_page().items() if is_built}
    assert len(built) > 20
    assert built - of_tests() == HELD_BY_UNNUMBERED


def test_rules_are_numbered_without_a_gap() -> None:
    numbers = [tuple(map(int, number.split("."))) for number in of_page()]
    assert numbers == sorted(numbers)
    for part in {part for part, _ in numbers}:
        of_part = [number for one, number in numbers if one == part]
        assert of_part == list(range(1, len(of_part) + 1))


def test_each_rule_leads_to_the_module_that_decides_it() -> None:
    modules = dict(re.findall(rf"^- \*\*\[({NUMBER})\]\(\.\./service/distributary/(\S+?)\)\*\* ", PAGE, re.MULTILINE))
    assert modules.keys() == of_page().keys()
    for number, module in modules.items():
        text = (ROOT / "service" / "distributary" / module).read_text(encoding="utf-8")
        if module.startswith("rules/"):
            assert re.search(rf"(?<![\d.]){re.escape(number)}(?!\d)", text), f"{module} does not name rule {number}"
