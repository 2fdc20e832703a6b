"""Pages of the menu's parts "Get started" and "How-to": short enough to read at once, and each names the next step."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).parents[2]
LINES = 150  # two screens of text, with tables and commands


def _pages(part: object) -> Iterator[str]:
    if isinstance(part, str):
        yield part
    elif isinstance(part, dict):
        for below in part.values():
            yield from _pages(below)
    elif isinstance(part, list):
        for below in part:
            yield from _pages(below)


def steps() -> list[str]:
    """File names of the pages that a reader follows step by step."""
    menu = yaml.safe_load((ROOT / "mkdocs.yml").read_text(encoding="utf-8"))["nav"]
    return [page for part in menu if part.keys() & {"Get started", "How-to"} for page in _pages(part)]


def test_pages_are_found() -> None:
    assert {"start-demo.md", "quickstart-db2.md", "halts.md"} <= set(steps())


@pytest.mark.parametrize("page", steps())
def test_a_page_is_one_or_two_screens(page: str) -> None:
    assert len((ROOT / "docs" / page).read_text(encoding="utf-8").splitlines()) <= LINES


@pytest.mark.parametrize("page", steps())
def test_a_page_ends_with_the_next_step(page: str) -> None:
    last = (ROOT / "docs" / page).read_text(encoding="utf-8").rstrip("\n").rpartition("\n\n")[2]
    assert re.search(r"(?:^|\. )Next: .*\[[^\]]+\]\([\w-]+\.md(?:#[\w-]+)?\)", last.replace("\n", " "))
