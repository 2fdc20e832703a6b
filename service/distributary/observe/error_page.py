"""The page of all errors, with the text of docs/errors.md, for operators who can't reach the documentation."""

from __future__ import annotations

import json
from functools import cache
from html import escape

from distributary.observe.page import Page, policy, web_file


@cache
def error_page() -> Page:
    """Every error with its code, which is its place in the page; made of errors.json, which is made from the code."""
    style = web_file("errors.css")
    groups = json.loads(web_file("errors.json"))
    anchors: set[str] = set()
    content = "".join(_group(group, anchors) for group in groups)
    body = web_file("errors.html").replace("/* errors.css */", style).replace("<!-- errors -->", content)
    return Page(body.encode(), policy(style))


def _group(group: dict[str, object], anchors: set[str]) -> str:
    errors = group["errors"]
    assert isinstance(errors, dict)
    articles = "".join(_error(code, forms, anchors) for code, forms in errors.items())
    return f"<section><h2>{_text(str(group['title']))}</h2><p>{_text(str(group['text']))}</p>{articles}</section>"


def _error(code: str, forms: list[dict[str, str]], anchors: set[str]) -> str:
    # The anchor of a code in two groups is in the first one.
    place = "" if code in anchors else f' id="{escape(code)}"'
    anchors.add(code)
    paragraphs = "".join(
        f"<p>{_text(form['message'])}</p>"
        + (f'<p class="fix"><b>What to do:</b> {_text(form["fix"])}</p>' if form["fix"] else "")
        for form in forms
    )
    return f'<article{place}><h3><a href="#{escape(code)}">{escape(code)}</a></h3>{paragraphs}</article>'


def _text(text: str) -> str:
    """Text with its `code`."""
    parts = escape(text).split("`")
    return "".join(f"<code>{part}</code>" if number % 2 else part for number, part in enumerate(parts))
