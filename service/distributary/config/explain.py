"""Turns pydantic's errors into faults: with the place in the file, a message for users, and the nearest known name."""

from __future__ import annotations

from collections.abc import Iterator
from difflib import get_close_matches
from typing import Any, get_args

from pydantic import BaseModel, ValidationError

from distributary.config import secrets
from distributary.config.document import Document, Loc, Place, dotted
from distributary.config.model import Config
from distributary.errors import Fault

_PROPERTIES = ("kafka", "spark")
_LONGEST_ECHO = 60

_MAPPING = ("must be a mapping: keys with values", "write each as KEY: VALUE on a line of its own, indented below it")
_LIST = ("must be a list", "write [ONE, TWO], or each on a line of its own with a dash in front")
_TYPES = {
    "model_type": _MAPPING,
    "dict_type": _MAPPING,
    "list_type": _LIST,
    "tuple_type": _LIST,
    "string_type": ("must be text", "put it into quotes"),
}
_LIMITS = {
    "greater_than_equal": ("ge", "must be at least {:g}", "write {:g} or more"),
    "less_than_equal": ("le", "must be at most {:g}", "write {:g} or less"),
}
_REFERENCE = "docs/config.md has all keys and their values"


def explain(error: ValidationError, document: Document) -> Iterator[Fault]:
    """The faults in `error`. Values that have a fault already are skipped."""
    for problem in error.errors(include_url=False, include_input=False):
        loc: Loc = tuple(problem["loc"])
        if any(loc[: i + 1] in document.faulty for i in range(len(loc))):
            continue
        kind, context = problem["type"], problem.get("ctx", {})
        place, at = _place(document, loc)
        name = dotted((*place.loc, *loc[len(at) :])) or "the config"
        if kind == "extra_forbidden":
            message, fix = f"{name} is not a key that is known here", _nearest_key(loc)
            yield Fault(place.file, place.key_line, "unknown-key", message, fix)
        elif kind == "missing":
            yield Fault(place.file, place.key_line, "missing-key", f"{name} is missing", _missing_fix(loc))
        elif "fix" in context:
            line = place.key_line if kind in ("missing-key", "no-tables", "target-choice") else place.line
            message = f"{name}: {problem['msg']}{_echo(place, at, loc)}"
            yield Fault(place.file, line, kind, message, context["fix"])
        else:
            code, message, fix = _in_words(kind, problem["msg"], context, place)
            yield Fault(place.file, place.line, code, f"{name} {message}{_echo(place, at, loc)}", fix)


def _in_words(kind: str, text: str, context: dict[str, Any], place: Place) -> tuple[str, str, str]:
    if kind in _TYPES:
        return "wrong-type", *_TYPES[kind]
    if kind in _LIMITS:
        name, words, fix = _LIMITS[kind]
        return "bad-value", words.format(context[name]), fix.format(context[name])
    if kind == "literal_error":
        known = [choice.strip("'") for choice in context["expected"].replace(" or ", ", ").split(", ")]
        return (
            "bad-value",
            "must be one of " + ", ".join(known),
            _did_you_mean(place.written or "", known) or _REFERENCE,
        )
    return "bad-value", f"is not right: {text}", _REFERENCE


def _place(document: Document, loc: Loc) -> tuple[Place, Loc]:
    """The place of a value, or of the nearest enclosing one that is written in the file; and the location of that
    value."""
    for length in range(len(loc), -1, -1):
        if place := document.places.get(loc[:length]):
            return place, loc[:length]
    return Place((), document.path, 1, 1), ()


def _echo(place: Place, at: Loc, loc: Loc) -> str:
    """The value as the file has it, references and all, where it can't be a secret."""
    written = place.written
    if at != loc or not written or loc[0] in _PROPERTIES or len(written) > _LONGEST_ECHO:
        return ""
    if secrets.has_credentials(written) or any(secrets.is_secret(str(step)) for step in loc):
        return ""
    return f" (it is {written!r})"


def _nearest_key(loc: Loc) -> str:
    known = _keys(loc[:-1])
    name = str(loc[-1])
    if hint := _did_you_mean(name, known):
        return hint
    elsewhere = [way for way in _ways(Config) if way[-1] == name]
    if len(elsewhere) == 1:
        return f"it belongs under {'.'.join(elsewhere[0][:-1])}"
    if "." in name and len(loc) == 1:
        return f"Kafka's properties belong under kafka, Spark's under spark; known here: {', '.join(known)}"
    return f"known here: {', '.join(known)}"


def _did_you_mean(name: str, known: list[str]) -> str:
    close = get_close_matches(name, known, n=1, cutoff=0.6) or get_close_matches(name.lower(), known, n=1, cutoff=0.6)
    return f"did you mean {close[0]}?" if close else ""


def _missing_fix(loc: Loc) -> str:
    step = next((step for step in reversed(loc) if isinstance(step, str)), "")
    return {
        "version": "write version: 1 as the first line",
        "kafka": "add kafka: with bootstrap.servers: HOST:PORT under it",
        "source": "add source: with topic_prefix under it",
        "target": "add target: with path under it",
        "match": "add match: <schema>.<table>",
    }.get(step, "add it")


def _keys(loc: Loc) -> list[str]:
    """The keys that a mapping at `loc` may have."""
    model: type[BaseModel] | None = Config
    for step in loc:
        if isinstance(step, str):
            model = _models(model).get(step) if model else None
    return [field.alias or name for name, field in model.model_fields.items()] if model else []


def _ways(model: type[BaseModel], way: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    below = _models(model)
    for name, field in model.model_fields.items():
        key = field.alias or name
        yield (*way, key)
        if key in below:
            yield from _ways(below[key], (*way, key))


def _models(model: type[BaseModel]) -> dict[str, type[BaseModel]]:
    """The models right below `model`, by key."""
    candidates = {}
    for name, field in model.model_fields.items():
        for candidate in (field.annotation, *get_args(field.annotation)):
            if isinstance(candidate, type) and issubclass(candidate, BaseModel):
                candidates[field.alias or name] = candidate
    return candidates
