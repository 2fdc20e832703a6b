"""Single values: text, numbers, durations, places. A YAML scalar arrives as text and is turned into its type here."""

from __future__ import annotations

import re
from pathlib import PurePosixPath
from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, ValidationInfo, WithJsonSchema

from distributary.config import secrets
from distributary.config.problem import Problem

_WHOLE = re.compile(r"[+-]?\d+")
_NUMBER = re.compile(r"[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d+)?")
_DURATION = re.compile(r"(\d{1,9})(ms|s|m|h|d)")
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:")
_SECONDS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
DURATION_PATTERN = r"^\d{1,9}(ms|s|m|h|d)$"


class Section(BaseModel):
    """A mapping of the config: frozen, without unknown keys, and silent about values in its errors."""

    model_config = ConfigDict(frozen=True, extra="forbid", hide_input_in_errors=True)


def _text(value: Any) -> Any:
    if not isinstance(value, str):
        raise Problem("wrong-type", "must be text").error()
    if not value:
        raise Problem("bad-value", "must not be empty").error()
    return str(value)


def _whole(value: Any) -> Any:
    if isinstance(value, str) and _WHOLE.fullmatch(value):
        return int(value)
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    raise Problem("wrong-type", "must be a whole number").error()


def _number(value: Any) -> Any:
    if isinstance(value, str) and _NUMBER.fullmatch(value):
        return float(value)
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return float(value)
    raise Problem("wrong-type", "must be a number").error()


def _flag(value: Any) -> Any:
    if isinstance(value, bool):
        return value
    if value in ("true", "false"):
        return value == "true"
    raise Problem("wrong-type", "must be true or false").error()


def _duration(value: str) -> str:
    if not _DURATION.fullmatch(value):
        raise Problem(
            "bad-duration", "must be a duration", "write a number and ms, s, m, h or d: 500ms, 10s, 1m"
        ).error()
    return value


def _location(value: str, info: ValidationInfo) -> str:
    if secrets.has_credentials(value):
        fix = "give credentials as properties under `spark`, with ${env:NAME} or ${file:PATH}"
        raise Problem("inline-secret", "a path must not contain a password", fix).error()
    directory = (info.context or {}).get("directory")
    if directory is None or value.startswith("/") or _SCHEME.match(value):
        return value
    return str(PurePosixPath(directory) / value)


GLOB = re.compile(r"[*?\[]")
"""Matches a pattern, but no plain name."""

Text = Annotated[str, BeforeValidator(_text), Field(min_length=1)]
WholeNumber = Annotated[int, BeforeValidator(_whole)]
Count = Annotated[int, Field(ge=0), BeforeValidator(_whole)]
"""A whole number that is not negative. The bound stands before the validator: after it, where None is allowed as well,
pydantic writes it into the JSON Schema under a name that is none of JSON Schema's."""
Number = Annotated[float, BeforeValidator(_number)]
Flag = Annotated[bool, BeforeValidator(_flag)]
Duration = Annotated[
    Text, AfterValidator(_duration), WithJsonSchema({"type": "string", "pattern": DURATION_PATTERN, "minLength": 2})
]
Location = Annotated[Text, AfterValidator(_location)]
"""A directory of a file system that Spark knows. Relative ones start at the config file's directory."""


def seconds(duration: str) -> float:
    """`10s` → 10.0, `500ms` → 0.5, `2h` → 7200.0, `1d` → 86400.0. Raises ValueError for anything else."""
    match = _DURATION.fullmatch(duration)
    if match is None:
        raise ValueError("not a duration")
    return int(match.group(1)) * _SECONDS[match.group(2)]


def inside(location: str, directory: str) -> tuple[str, ...] | None:
    """The way from `directory` down to `location`: () where they are the same, None if it does not lie in it."""
    scheme, parts = _split(location)
    other_scheme, other = _split(directory)
    if scheme != other_scheme or parts[: len(other)] != other:
        return None
    return parts[len(other) :]


def _split(location: str) -> tuple[str, tuple[str, ...]]:
    scheme = _SCHEME.match(location)
    path = location[scheme.end() :] if scheme else location
    name = scheme.group().lower() if scheme else "file:"
    parts: list[str] = []
    for part in path.split("/"):
        if part == ".." and parts:
            parts.pop()
        elif part not in ("", ".", ".."):
            parts.append(part)
    return name, tuple(parts)


def without_credentials(url: str, beginnings: tuple[str, ...], fix: str) -> str:
    """The URL; refused if it holds a user and a password (`fix`: where they belong), or does not begin like one."""
    if secrets.has_credentials(url):
        raise Problem("inline-secret", "the URL must not contain a user and a password", fix).error()
    if not url.startswith(beginnings):
        raise Problem("bad-value", "must be a URL", "write http://HOST:PORT").error()
    return url
