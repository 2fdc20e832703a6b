"""docs/config.md: every key of the config, from the JSON Schema that is made from its models."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from distributary.config.properties import KAFKA_CODE, KAFKA_OWNED, SPARK_OWNED
from distributary.config.schema import json_schema
from distributary.reference.config_examples import EXAMPLES

_HEAD = """\
# Config

Every key of a config file. `make docs` writes this page from the code.
[full.yaml](../config/full.yaml) is an example with all keys, [schema.json](../config/schema.json) the JSON Schema for
editors (`distributary schema` prints it). `distributary validate -c FILE` shows every fault with its line.

`${env:NAME}`, `${env:NAME:-default}` and `${file:PATH}` are allowed in any value outside of `tables` and `defaults`,
and required for secrets. Settings of tables are shown by commands and pages, so they can't contain secrets.
Durations are a number with `ms`, `s`, `m`, `h` or `d`. Keys in **bold** are required.
"""
_SECTIONS = {
    "": ("The file", ""),
    "source": ("source", "Source"),
    "source.schema_registry": ("source.schema_registry", "SchemaRegistry"),
    "source.limits": ("source.limits", "Limits"),
    "large_messages": ("large_messages", "LargeMessages"),
    "target": ("target", "Target"),
    "tables": ("tables, and defaults", "TableRule"),
    "maintenance": ("maintenance, of a table or of defaults", "MaintenanceKeys"),
    "quarantine": ("quarantine", "Quarantine"),
    "trigger": ("trigger", "Trigger"),
    "http": ("http", "Http"),
    "consumer_group": ("consumer_group", "ConsumerGroup"),
    "masking": ("masking", "Masking"),
}
"""By path: the heading, and the name of the keys' definition in the schema."""

_REFUSED = """\
## Properties that are refused

`kafka` accepts any other property of Kafka's clients, `spark` any other property that begins with `spark.`.

| property | why |
| --- | --- |"""
_NAMES = {"string": "text", "integer": "whole number", "number": "number", "boolean": "true or false"}


def as_markdown() -> str:
    """The page. Raises KeyError if the page lacks a definition of the schema."""
    schema = json_schema()
    definitions = dict(schema["$defs"])
    del definitions["TableDefaults"]  # the keys of a table
    lines = [_HEAD]
    for title, name in _SECTIONS.values():
        section = definitions.pop(name) if name else schema
        lines += [f"## {title}", "", section["description"], "", "| key | value | default | meaning |"]
        lines += ["| --- | --- | --- | --- |", *_rows(section), ""]
        if title in EXAMPLES:
            sentence, text = EXAMPLES[title]
            lines += [sentence, "", "```yaml", text + "```", ""]
    if definitions:
        raise KeyError(f"no heading for {', '.join(definitions)}")
    lines.append(_REFUSED)
    for properties in (KAFKA_OWNED, KAFKA_CODE, SPARK_OWNED):
        lines += [_row(f"`{name}`", why) for name, why in properties.items()]
    return "\n".join(lines).rstrip() + "\n"


def _rows(section: Mapping[str, Any]) -> Iterator[str]:
    for key, value in section["properties"].items():
        name = f"**`{key}`**" if key in section.get("required", ()) else f"`{key}`"
        # A default that depends on other keys stands in the description, as a sentence of its own.
        named = re.search(r" Default: (.+?)\.(?= |$)", value["description"])
        text = value["description"].replace(named[0], "") if named else value["description"]
        default = value.get("default")
        default_text = f"`{_written(default)}`" if default not in (None, []) else named[1] if named else ""
        yield _row(name, _value(value), default_text, text)


def _written(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _value(value: Mapping[str, Any]) -> str:
    if "$ref" in value:
        return "keys below"
    if "anyOf" in value:
        return _value(value["anyOf"][0])
    if "const" in value:
        return f"`{value['const']}`"
    if "enum" in value:
        return ", ".join(f"`{choice}`" for choice in value["enum"] if choice is not None)
    if value.get("writeOnly"):
        return "secret"
    if "pattern" in value:
        return "duration"
    if value["type"] == "array":
        return f"list of {'entries' if '$ref' in value['items'] else 'texts'}"
    if value["type"] == "object":
        return "mapping"
    limits = [f"{words} {value[name]}" for name, words in (("minimum", "from"), ("maximum", "to")) if name in value]
    return " ".join([_NAMES[value["type"]], *limits])


def _escaped(cell: str) -> str:
    return cell.replace("|", "&#124;").replace("<", "&lt;")


def _row(*cells: str) -> str:
    return f"| {' | '.join(_escaped(cell) for cell in cells)} |"
