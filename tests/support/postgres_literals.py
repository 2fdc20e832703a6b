"""The text forms of PostgreSQL's composite values: arrays and hstore."""

from __future__ import annotations

import re
from collections.abc import Callable

from tests.support.comparable import Value

_ARRAY_TOKEN = re.compile(r'([{},])|"((?:[^"\\]|\\.)*)"|([^{},"]+)', re.DOTALL)
_HSTORE_PAIR = re.compile(r'"((?:[^"\\]|\\.)*)"=>(?:"((?:[^"\\]|\\.)*)"|NULL)(?:, |$)', re.DOTALL)


def array(text: str, read: Callable[[str], Value]) -> list[Value]:
    """`{1,NULL,"a b"}`, also nested and with bounds before it: `[0:2]={1,2,3}`. Raises ValueError for anything else."""
    _, _, literal = text.rpartition("]=") if text.startswith("[") else ("", "", text)
    outermost: list[Value] = []
    open_lists = [outermost]
    at = 0
    while at < len(literal):
        match = _ARRAY_TOKEN.match(literal, at)
        if match is None:
            raise ValueError(f"not an array: {text}")
        at = match.end()
        sign, quoted, bare = match.groups()
        if sign == "{":
            inner: list[Value] = []
            open_lists[-1].append(inner)
            open_lists.append(inner)
        elif sign == "}":
            open_lists.pop()
        elif sign is None:
            open_lists[-1].append(None if bare == "NULL" else read(_unescaped(quoted) if bare is None else bare))
    if len(outermost) != 1 or len(open_lists) != 1:
        raise ValueError(f"not an array: {text}")
    whole: list[Value] = outermost[0]
    return whole


def hstore(text: str) -> dict[str, str | None]:
    """`"a"=>"1", "n"=>NULL` as a dict. Raises ValueError when it is not one."""
    pairs: dict[str, str | None] = {}
    at = 0
    while at < len(text):
        match = _HSTORE_PAIR.match(text, at)
        if match is None:
            raise ValueError(f"not an hstore: {text}")
        at = match.end()
        name, value = match.groups()
        pairs[_unescaped(name)] = None if value is None else _unescaped(value)
    return pairs


def _unescaped(text: str) -> str:
    return re.sub(r"\\(.)", r"\1", text, flags=re.DOTALL)
