"""The operator's page: one HTML document with its style and script in it, so that a browser needs nothing else."""

from __future__ import annotations

import base64
import hashlib
from dataclasses import dataclass
from functools import cache
from importlib.resources import files


@dataclass(frozen=True)
class Page:
    """A document and the Content-Security-Policy that it is sent with."""

    body: bytes
    policy: str


@cache
def page() -> Page:
    """The page as it is shipped. The policy allows its own style and script, and asking this server; nothing else."""
    folder = files("distributary.observe") / "web"
    html, style, script = ((folder / f"page.{kind}").read_text(encoding="utf-8") for kind in ("html", "css", "js"))
    body = html.replace("/* page.css */", style).replace("/* page.js */", script)
    policy = (
        "default-src 'none'",
        f"style-src {_hash(style)}",
        f"script-src {_hash(script)}",
        "connect-src 'self'",
        "img-src data:",
        "base-uri 'none'",
        "form-action 'none'",
        "frame-ancestors 'none'",
        "require-trusted-types-for 'script'",
    )
    return Page(body.encode(), "; ".join(policy))


def _hash(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"
