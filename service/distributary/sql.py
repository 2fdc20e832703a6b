"""Spark SQL text: quoting of names and strings that come from outside."""

from __future__ import annotations


def name(identifier: str) -> str:
    """The identifier in backticks, with any backticks in it escaped."""
    return "`" + identifier.replace("`", "``") + "`"


def text(value: str) -> str:
    """A string literal with quotes and backslashes escaped: Spark reads a backslash as an escape."""
    return "'" + value.replace("\\", "\\\\").replace("'", "\\'") + "'"


def let(variable: str, value: str, body: str) -> str:
    """`body` with `variable` bound to `value`: evaluated once, and once in the plan, however often it is named.

    Variables end in an underscore, so that none hides a column. SQL text that repeats a long expression grows as its
    product, and Spark spends seconds on planning it.
    """
    return f"element_at(transform(array({value}), {variable} -> {body}), 1)"
