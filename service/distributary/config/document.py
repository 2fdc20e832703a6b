"""Reads a YAML file, with the line of every value.

Only mappings, lists and scalars are allowed. Anchors, aliases, merge keys and tags are refused, because each value must
be written where it is used; duplicate keys are refused, because YAML would silently use the last one. Scalars stay
text: so `yes`, `0123` and `2026-01-01` are not converted by surprise, and a Kafka property reaches Kafka as the user
wrote it. The model converts text to numbers where it needs numbers.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml
from yaml.events import AliasEvent, Event, MappingStartEvent, ScalarEvent, SequenceStartEvent
from yaml.nodes import MappingNode, Node, ScalarNode

from distributary.config.interpolate import InterpolationError, interpolate, unescaped
from distributary.errors import Fault

Loc = tuple[str | int, ...]
"""The way to a value: keys of mappings and indexes of lists, as in pydantic's errors."""

_FIX_REFERENCE = "write the value out; write $${ for a literal ${"
_NOTHING = ("", "~", "null", "Null", "NULL")
_NULL_IS_A_WORD = ("column_defaults",)
"""Keys that have `null` among their values."""


@dataclass(frozen=True)
class Place:
    """The place of a value: lines counted from 1; `written` is the text of a scalar before interpolation.

    `loc` is the way to it in its own file, which for the tables of an included file is not the way in the config.
    """

    loc: Loc
    file: Path
    key_line: int
    line: int
    written: str | None = None


@dataclass
class Document:
    """A file's content as dicts, lists and strings, the place of each value, and the faults of the YAML."""

    path: Path
    data: Any = None
    places: dict[Loc, Place] = field(default_factory=dict)
    faults: list[Fault] = field(default_factory=list)
    faulty: set[Loc] = field(default_factory=set)
    """Values that have a fault already: the model's faults of these values are not reported."""
    without_references: frozenset[str] = frozenset()
    """The keys of the file below which no value may come from the environment or a file."""


def read(path: Path, content: bytes | None = None, without_references: Collection[str] = ()) -> Document:
    """The document at `path`, or with `content` instead of the file's; below the keys `without_references`, `${…}` is
    not resolved. Never raises: errors are in `faults`; a file that is no YAML has no data."""
    document = Document(path, without_references=frozenset(without_references))
    try:
        text = (path.read_bytes() if content is None else content).decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = error.object.count(b"\n", 0, error.start) + 1
        document.faults.append(Fault(path, line, "yaml-syntax", "this is not UTF-8 text"))
        return document
    except OSError as error:
        fault = Fault(path, 1, "config-unreadable", f"the file can't be read: {error.strerror}", "check the path")
        document.faults.append(fault)
        return document
    try:
        node = _Loader(text, document).get_single_node()
        if node is not None:
            document.data = _Reader(document).value((), node, _line(node))
    except yaml.MarkedYAMLError as error:
        document.faults.append(_syntax_fault(path, error))
    except yaml.reader.ReaderError as error:
        line = text.count("\n", 0, int(error.position)) + 1
        document.faults.append(Fault(path, line, "yaml-syntax", "this character is not allowed in YAML"))
    except RecursionError:
        document.faults.append(Fault(path, 1, "yaml-syntax", "nested too deeply"))
    return document


class _Loader(yaml.SafeLoader):
    """PyYAML's composer, except that it notes anchors, aliases and tags as faults and continues without them."""

    def __init__(self, text: str, document: Document) -> None:
        super().__init__(text)
        self._document = document

    def compose_node(self, parent: Node | None, index: Any) -> Node | None:
        event: Event = self.peek_event()  # type: ignore[no-untyped-call]
        start: Any = event.start_mark
        line = start.line + 1
        if isinstance(event, AliasEvent):
            self.get_event()  # type: ignore[no-untyped-call]
            if not _is_merge(index):
                self._refuse(line, "yaml-alias", "an alias (*) is refused")
            # A placeholder value, so that the rest of the file is read, too.
            return ScalarNode("refused", "", start, start, style="'")
        if isinstance(event, (ScalarEvent, SequenceStartEvent, MappingStartEvent)):
            if event.anchor is not None:
                self._refuse(line, "yaml-anchor", "an anchor (&) is refused")
                event.anchor = None
            if event.tag is not None:
                self._refuse(line, "yaml-tag", "a tag (!) is refused")
                event.tag = None
                event.implicit = (True, False) if isinstance(event, ScalarEvent) else True
        node: Node | None = super().compose_node(parent, index)
        return node

    def _refuse(self, line: int, code: str, message: str) -> None:
        # The message does not repeat the name: it may be a password that begins with this sign.
        fix = "write the value out where it counts, in quotes if it begins with that sign"
        self._document.faults.append(Fault(self._document.path, line, code, message, fix))


@dataclass(frozen=True)
class _Reader:
    """Turns nodes into values, and notes places and faults on the way."""

    document: Document

    def value(self, loc: Loc, node: Node, key_line: int) -> Any:
        written = node.value if isinstance(node, ScalarNode) else None
        self.document.places[loc] = Place(loc, self.document.path, key_line, _line(node), written)
        if isinstance(node, MappingNode):
            return {key: self.value((*loc, key), child, line) for key, child, line in self._items(loc, node)}
        if isinstance(node, ScalarNode):
            return self._scalar(loc, node, key_line)
        return [self.value((*loc, i), child, _line(child)) for i, child in enumerate(node.value)]

    def _scalar(self, loc: Loc, node: ScalarNode, key_line: int) -> str | None:
        if node.tag == "refused":
            self.document.faulty.add(loc)
            return ""
        if node.style is None and node.value in _NOTHING:
            if node.value and loc[-1:] and loc[-1] in _NULL_IS_A_WORD:
                return "null"
            # A section whose lines are all commented out is as good as left out. Deeper down an empty value is a slip.
            if len(loc) > 1:
                fix = "write a value, or take the key out"
                self._fault(loc, key_line, "missing-value", f"{dotted(loc)} has no value", fix)
            return None
        text: str = node.value
        if loc and loc[0] in self.document.without_references:
            plain = unescaped(text)
            if plain is None:
                message = f"{dotted(loc)} can't hold ${{…}}: settings of tables are shown, and a secret would be, too"
                self._fault(loc, _line(node), "interpolation-in-tables", message, _FIX_REFERENCE)
            return text if plain is None else plain
        try:
            return interpolate(text, self.document.path.parent)
        except InterpolationError as error:
            self._fault(loc, _line(node), error.code, f"{dotted(loc)}: {error.message}", error.fix)
            return text

    def _items(self, loc: Loc, node: MappingNode) -> Iterator[tuple[str, Node, int]]:
        line_of_key: dict[str, int] = {}
        for key_node, child in node.value:
            line, written = _line(key_node), key_node.value
            if not isinstance(key_node, ScalarNode):
                self._fault((*loc, ""), line, "yaml-key", "a key must be plain text, not a list or a mapping")
            elif _is_merge(key_node):
                fix = "write the keys out where they count"
                self._fault((*loc, written), line, "yaml-merge", "the merge key << is refused", fix)
            elif (key := unescaped(written)) is None:
                fix = "only values may hold ${…}; write $${ for a literal ${"
                self._fault((*loc, written), line, "interpolation-in-key", "a key can't hold ${…}", fix)
            elif key in line_of_key:
                message = f"{dotted((*loc, key))} is already given in line {line_of_key[key]}"
                self.document.faults.append(
                    Fault(self.document.path, line, "duplicate-key", message, "keep one of the two")
                )
            else:
                line_of_key[key] = line
                yield key, child, line

    def _fault(self, loc: Loc, line: int, code: str, message: str, fix: str = "") -> None:
        self.document.faults.append(Fault(self.document.path, line, code, message, fix))
        self.document.faulty.add(loc)


def dotted(loc: Loc) -> str:
    """`tables[0].match`: how messages name a value."""
    if loc[:1] == ("spark",) and len(loc) > 1:
        loc = loc[1:]  # Spark's names contain it themselves
    text = ""
    for step in loc:
        text += f"[{step}]" if isinstance(step, int) else f".{step}" if text else step
    return text


def _syntax_fault(path: Path, error: yaml.MarkedYAMLError) -> Fault:
    problem, context = error.problem or "", error.context or ""
    at, since = error.problem_mark, error.context_mark
    if "tag" in problem:  # PyYAML repeats the tag, which may be a password that begins with `!`
        problem, context = "this looks like a tag, but is none", ""
    line = at.line + 1 if at else 1
    if since and since.line + 1 != line:
        if "stream end" in problem:
            line, problem = since.line + 1, "it has no end"
        else:
            context = f"{context} that begins in line {since.line + 1}"
    reason = ", ".join(part for part in (context, problem) if part)
    return Fault(path, line, "yaml-syntax", reason, "check indentation, quotes and brackets")


def _is_merge(key: object) -> bool:
    return isinstance(key, ScalarNode) and key.style is None and key.value == "<<"


def _line(node: Node) -> int:
    return int(node.start_mark.line) + 1
