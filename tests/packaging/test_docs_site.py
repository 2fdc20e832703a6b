"""The docs as a site: built strictly, complete without a network, and searchable."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The built site. A link that leads nowhere, or a page that the menu lacks, fails the build."""
    folder = tmp_path_factory.mktemp("site")
    run = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(folder)],
        cwd=ROOT,
        env={**os.environ, "NO_MKDOCS_2_WARNING": "1"},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert run.returncode == 0, run.stdout + run.stderr
    return folder


def test_every_page_is_in_the_site(site: Path) -> None:
    pages = {path.stem for path in (ROOT / "docs").glob("*.md")}
    assert pages == {path.stem for path in site.glob("*.html")} - {"404"}


def test_the_site_needs_no_other_server(site: Path) -> None:
    loaded = re.compile(r"<(?:script|img|iframe|link(?! rel=\"canonical\"))[^>]*?(?:src|href)=\"?(https?:[^\"> ]+)")
    assert {url for page in site.glob("*.html") for url in loaded.findall(page.read_text())} == set()


def test_files_that_pages_link_to_are_in_the_site(site: Path) -> None:
    for page in set(site.glob("*.html")) - {site / "404.html"}:  # its links are absolute
        for target in re.findall(r"href=\"?([^\"> #]+)", page.read_text()):
            if not re.match(r"[a-z]+:", target):
                assert (site / target).exists(), f"{page.name}: {target}"
    full = "config/full.yaml"
    assert (site / "repository" / full).read_text() == (ROOT / full).read_text()


def test_links_to_pages_have_their_titles(site: Path) -> None:
    assert not [page.name for page in site.glob("*.html") if re.search(r">[\w-]+\.md</a>", page.read_text())]
    assert "Replay rejected records</a>" in (site / "halts.html").read_text()


def test_drawings_are_part_of_their_pages(site: Path) -> None:
    for name, drawing in (("index", "change"), ("model", "model")):
        page = (site / f"{name}.html").read_text()
        assert (ROOT / "docs" / f"{drawing}.svg").read_text() in page
        assert f'src="{drawing}.svg"' not in page


@pytest.mark.parametrize("drawing", sorted((ROOT / "docs").glob("*.svg")), ids=lambda path: path.stem)
def test_drawings_have_a_title_and_colours_for_light_and_dark(drawing: Path) -> None:
    text = drawing.read_text()
    assert re.search(r"<title id=\"[\w-]+\">.+</title>", text)
    assert "prefers-color-scheme: dark" in text
    _, _, drawn = text.partition("</style>")
    assert not re.search(r"(?:fill|stroke)=\"#", drawn), "a colour that does not follow light and dark"


@pytest.mark.parametrize(
    ("words", "page"),
    [
        ("deletion vectors duckdb", "reader-features"),
        ("records-lost accept-loss", "halts"),
        ("orphaned rows snapshot", "orphaned-rows"),
        ("out-of-memory heap", "sizing"),
        ("execute-snapshot signal", "snapshots"),
        ("rename a column", "faq"),
        ("records lost kafka", "faq"),
        ("micro batch offset glossary", "glossary"),
        ("certificate truststore", "kafka"),
        ("helm install", "kubernetes"),
        ("freshness seconds gauge", "metrics"),
        ("replica identity", "quickstart-postgresql"),
    ],
)
def test_questions_are_answered_by_search(site: Path, words: str, page: str) -> None:
    """The index that the site's search reads holds all of the words on the page that answers."""
    index: dict[str, Any] = json.loads((site / "search/search_index.json").read_text())
    text = " ".join(
        f"{entry['title']} {entry['text']}" for entry in index["docs"] if entry["location"].startswith(f"{page}.html")
    ).lower()
    assert [word for word in words.split() if word.lower() not in text] == []
