"""The operator's pages: HTML documents with their style and script in them, so that a browser needs nothing else."""

from __future__ import annotations

import base64
import hashlib
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

_STYLES = ("page.css", "table_view.css")
_SCRIPTS = ("words.js", "nodes.js", "curves.js", "table_list.js", "attention.js", "table_view.js", "page.js")
"""They share one scope, which the last one starts."""


@dataclass(frozen=True)
class Page:
    """A document and the Content-Security-Policy that it is sent with."""

    body: bytes
    policy: str


@cache
def page() -> Page:
    """The page of the tables as it is shipped. The policy allows only its own style and script, and requests to this
    server."""
    style = "".join(map(web_file, _STYLES))
    script = f'"use strict";\n(() => {{\n{"".join(map(web_file, _SCRIPTS))}}})();\n'
    body = web_file("page.html").replace("/* page.css */", style).replace("/* page.js */", script)
    return Page(body.encode(), policy(style, script))


def web_file(name: str) -> str:
    """The text of a file of the pages."""
    return (files("distributary.observe") / "web" / name).read_text(encoding="utf-8")


def policy(style: str, script: str | None = None) -> str:
    """The policy for a page with this style and script. Without a script the page may make no requests."""
    scripts = () if script is None else (f"script-src {_hash(script)}", "connect-src 'self'")
    return "; ".join(
        (
            "default-src 'none'",
            f"style-src {_hash(style)}",
            *scripts,
            "img-src data:",
            "base-uri 'none'",
            "form-action 'none'",
            "frame-ancestors 'none'",
            "require-trusted-types-for 'script'",
        )
    )


def _hash(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"
