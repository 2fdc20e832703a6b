"""Spark SQL text: quoting of names and strings that come from outside."""

from __future__ import annotations


def name(identifier: str) -> str:
    """The identifier in backticks, safe whatever it holds."""
    return "`" + identifier.replace("`", "``") + "`"


def text(value: str) -> str:
    """A string literal, safe whatever it holds (Spark reads backslashes as escapes)."""
    return "'" + value.replace("\\", "\\\\").replace("'", "\\'") + "'"
