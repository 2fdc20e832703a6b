"""Reads a file into a `Config`, or raises all of its faults at once."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

from pydantic import ValidationError

from distributary.config.document import Document, Loc, dotted, read
from distributary.config.explain import explain
from distributary.config.model import Config
from distributary.config.scalars import GLOB
from distributary.config.table import named_columns
from distributary.config.table_rule import TableDefaults
from distributary.errors import ConfigError, Fault

_OF_TABLES = ("defaults", "tables")
"""Users who may only add tables write these keys, and see their effects: names of columns, properties, the log."""


def load(path: Path, previous: Mapping[Path, bytes | None] = MappingProxyType({})) -> Config:
    """The config at `path`, with the tables of the files that it includes.

    `previous`: contents to use instead of those of the included files; None leaves a file out. Raises `ConfigError`
    with every fault of all files, each with file and line.
    """
    main = read(path, without_references=_OF_TABLES)
    if any(fault.code in ("config-unreadable", "yaml-syntax") for fault in main.faults):
        raise ConfigError(main.faults)
    if main.data is None:
        main.data = {}
    if isinstance(main.data, dict):
        _drop_empty_sections(main)
        for included in _included(main, previous):
            _append_tables(main, included)
    try:
        config = Config.model_validate(main.data, context={"directory": path.parent.absolute()})
    except ValidationError as error:
        main.faults += explain(error, main)
        raise ConfigError(main.faults) from None
    if main.faults:
        raise ConfigError(main.faults)
    places = (main.places["tables", i] for i in range(len(config.tables)))
    names: dict[int | None, Mapping[tuple[str, str], str]] = {None: _name_places(main, ("defaults",), config.defaults)}
    names.update((i, _name_places(main, ("tables", i), rule)) for i, rule in enumerate(config.tables))
    return config.with_places(tuple(f"{place.file}:{place.line}" for place in places), names)


def _name_places(main: Document, loc: Loc, rule: TableDefaults) -> dict[tuple[str, str], str]:
    """The `file:line` of each column that an entry names."""
    excluded = {name: i for i, name in enumerate(rule.exclude or ())}
    places = {
        (key, name): (*loc, key, excluded[name] if key == "exclude" else name) for key, name in named_columns(rule)
    }
    key_places = {named: main.places[place] for named, place in places.items() if place in main.places}
    return {named: f"{place.file}:{place.key_line}" for named, place in key_places.items()}


def _drop_empty_sections(main: Document) -> None:
    main.data = {key: value for key, value in main.data.items() if value is not None}


def included_files(path: Path, patterns: Iterable[str]) -> list[Path]:
    """The files that the config at `path` includes by these patterns, each once."""
    files = (file for pattern in patterns for file in _files(path.parent, pattern))
    return list({file.resolve(): file for file in files}.values())


def _included(main: Document, previous: Mapping[Path, bytes | None]) -> Iterator[Document]:
    """The included files in the order of their patterns, each once, those of one pattern sorted by path."""
    patterns = main.data.get("include", [])
    loaded = {main.path.resolve()}
    for i, pattern in enumerate(patterns if isinstance(patterns, list) else []):
        loc: Loc = ("include", i)
        if not isinstance(pattern, str) or not pattern or loc in main.faulty:
            continue
        try:
            paths = _files(main.path.parent, pattern)
        except ValueError:
            _fault(main, loc, "bad-include", "this is not a pattern", "`**` must stand alone between two slashes")
            continue
        if not paths and not GLOB.search(pattern):
            _fault(main, loc, "include-missing", "there is no such file", "paths start at this file's directory")
        for path in paths:
            if path.resolve() not in loaded:
                loaded.add(path.resolve())
                if previous.get(path, b"") is not None:
                    yield read(path, previous.get(path), _OF_TABLES)


def _files(directory: Path, pattern: str) -> list[Path]:
    """The files that match `pattern`. As in a shell, names that start with a dot match only if the pattern has the dot.
    Raises ValueError for an invalid pattern."""
    parts = Path(pattern).parts
    if any("**" in part and part != "**" for part in parts):
        raise ValueError("** must stand alone")  # newer Pythons take it for *
    fixed = next((i for i, part in enumerate(parts) if GLOB.search(part)), len(parts))
    base = directory.joinpath(*parts[:fixed])
    if fixed == len(parts):
        return [base] if base.is_file() else []
    wanted = "/".join(parts[fixed:])
    hidden = any(part.startswith(".") for part in parts[fixed:])
    matching_files = (path for path in base.glob(wanted) if path.is_file())
    return sorted(path for path in matching_files if hidden or not _is_hidden(path.relative_to(base)))


def _is_hidden(path: Path) -> bool:
    return any(part.startswith(".") for part in path.parts)


def _append_tables(main: Document, included: Document) -> None:
    """Puts the tables of an included file behind those that are there, with their places and faults."""
    main.faults += included.faults
    if included.data is None:
        return
    rules = included.data.get("tables") if isinstance(included.data, dict) else None
    for key in included.data if isinstance(included.data, dict) else ():
        if key != "tables":
            message = f"an included file holds only `tables`, not {key}"
            line = included.places[(key,)].key_line
            main.faults.append(Fault(included.path, line, "include-content", message, "move it to the main file"))
    if not isinstance(rules, list):
        if rules is not None or not isinstance(included.data, dict):
            message = "an included file holds `tables:` and a list under it"
            line = included.places[("tables",) if rules is not None else ()].line
            main.faults.append(Fault(included.path, line, "include-content", message, "write `tables:` first"))
        return
    tables: Any = main.data.setdefault("tables", [])
    if not isinstance(tables, list):
        return
    shift = len(tables)
    tables += rules
    for loc, place in included.places.items():
        if len(loc) > 1 and isinstance(loc[1], int):
            new_loc: Loc = ("tables", loc[1] + shift, *loc[2:])
            main.places[new_loc] = place
            if loc in included.faulty:
                main.faulty.add(new_loc)


def _fault(main: Document, loc: Loc, code: str, message: str, fix: str) -> None:
    place = main.places[loc]
    written = f" ({place.written!r})" if place.written else ""
    main.faults.append(Fault(place.file, place.line, code, f"{dotted(loc)}: {message}{written}", fix))
    main.faulty.add(loc)
