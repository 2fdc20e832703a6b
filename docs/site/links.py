"""Links of the pages, as the site has them.

Files of the repository that pages link to (`../config/full.yaml`) become files of the site, so that it is whole. A link
to another page that is named by its file (`[halts.md](halts.md)`) gets that page's title. Drawings (SVG) become part of
their page, so that they follow the page's switch between light and dark.
"""

from __future__ import annotations

import re
from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

FOLDER = "repository"
"""Where the files are in the site."""

# [text](../path) or [text](../path#anchor), from a page of docs/.
_LINK = re.compile(r"\[(?P<text>[^\]]+)\]\(\.\./(?P<path>[^)#]+)(?P<anchor>#[^)]*)?\)")

_DRAWING = re.compile(r"<img [^>]*src=\"(?P<name>[\w-]+\.svg)\"[^>]*>")
_PAGE = re.compile(r"\[(?P<name>[\w-]+\.md)\]\((?P=name)(?P<anchor>#[^)]*)?\)")


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Adds the linked files to those of the site."""
    root = Path(config.config_file_path).parent
    linked = {path for page in Path(config.docs_dir).glob("*.md") for path in _linked(page.read_text(encoding="utf-8"))}
    for path in sorted(linked):
        if _is_served(root / path):
            files.append(File.generated(config, f"{FOLDER}/{path}", abs_src_path=str(root / path)))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Links to the copies. A folder, or a page of the repository that is none of the site, is only named."""
    root = Path(config.config_file_path).parent
    del page, files

    def replaced(link: re.Match[str]) -> str:
        if _is_served(root / link["path"]):
            return f"[{link['text']}]({FOLDER}/{link['path']})"
        named = "" if link["path"] in link["text"] else f" (`{link['path']}`)"
        return f"{link['text']}{named}"

    def titled(link: re.Match[str]) -> str:
        page = Path(config.docs_dir, link["name"])
        if not page.exists():  # the strict build names it
            return link[0]
        title = page.read_text(encoding="utf-8").partition("\n")[0].removeprefix("# ")
        return f"[{title}]({link['name']}{link['anchor'] or ''})"

    return _PAGE.sub(titled, _LINK.sub(replaced, markdown))


def on_page_content(html: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Puts drawings into the page in place of the images that show them."""
    del page, files

    def drawn(image: re.Match[str]) -> str:
        drawing = Path(config.docs_dir, image["name"]).read_text(encoding="utf-8")
        return f'<div class="drawn" tabindex="0">{drawing}</div>'

    return _DRAWING.sub(drawn, html)


def _linked(markdown: str) -> set[str]:
    return {link["path"] for link in _LINK.finditer(markdown)}


def _is_served(path: Path) -> bool:
    return path.is_file() and path.suffix != ".md"
