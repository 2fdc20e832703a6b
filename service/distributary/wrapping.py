"""Wraps long lines on a terminal, with the rest indented."""

from __future__ import annotations

from collections.abc import Iterable
from textwrap import wrap

from rich.cells import cell_len
from rich.text import Text

_HANG = 4  # spaces before the rest of a wrapped line


def hanging(text: Text, width: int, indent: int | None = None) -> list[Text]:
    """The text as lines of at most `width`. All but the first begin at `indent`, by default further in than the first;
    a word that is longer stays whole."""
    lead = len(text.plain) - len(text.plain.lstrip(" "))
    start = min(lead + _HANG if indent is None else indent, width // 2)
    if text.cell_len <= width:
        return [text]
    # The text before the indent counts only in the first line.
    begin = lead if indent is None else start
    plain, at, lines = text.plain, begin, [text[:begin]]
    parts = wrap(
        plain[begin:],
        width - start,
        break_long_words=False,
        break_on_hyphens=False,
        replace_whitespace=False,
        expand_tabs=False,
    )
    for part in parts:
        at = plain.index(part, at)
        lines[-1].append_text(text[at : at + len(part)])
        at += len(part)
        lines.append(Text(" " * start))
    return lines[:-1] or [text]


def filled(head: str, items: Iterable[str], width: int | None) -> list[str]:
    """`head` and the items with commas between them, as lines of at most `width` characters (None: as one line).
    An item stays whole, also if it is wider; all lines but the first are indented."""
    lines = [head.rstrip(" ")]
    space = " "
    for item in items:
        if width is not None and cell_len(f"{lines[-1]}{space}{item},") > width:
            lines.append(" " * (len(head) - len(head.lstrip(" ")) + _HANG))
            space = ""
        lines[-1] += f"{space}{item},"
        space = " "
    lines[-1] = lines[-1].removesuffix(",")
    return lines
