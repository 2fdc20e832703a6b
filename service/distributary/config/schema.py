"""The config's JSON Schema, for editors. `config/schema.json` is made from it."""

from __future__ import annotations

import json
from typing import Any

from pydantic.json_schema import GenerateJsonSchema
from pydantic_core import core_schema

from distributary.config.model import Config

_REFERENCE = {"type": "string", "pattern": r"\$\{(env|file):[^{}]+\}"}


class _Schema(GenerateJsonSchema):
    """Optional keys are left out, never null; any value but text may also be a reference such as ${env:PORT}."""

    def nullable_schema(self, schema: core_schema.NullableSchema) -> dict[str, Any]:
        return self.generate_inner(schema["schema"])

    def default_schema(self, schema: core_schema.WithDefaultSchema) -> dict[str, Any]:
        schema_of_default = super().default_schema(schema)
        if schema_of_default.get("default", ...) is None:
            del schema_of_default["default"]
        return schema_of_default


def json_schema() -> dict[str, Any]:
    """The JSON Schema of a config file, draft 2020-12, as a dict that `json` can write."""
    schema = Config.model_json_schema(by_alias=True, schema_generator=_Schema, mode="validation")
    _allow_references(schema)
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        **schema,
        "title": "distributary, config version 1",
        # An empty list of tables is refused by the service; here the files of `include` are out of sight.
        "anyOf": [{"required": ["tables"]}, {"required": ["include"]}],
    }


def text() -> str:
    """The JSON Schema, the text of `config/schema.json`."""
    return json.dumps(json_schema(), indent=2, ensure_ascii=False) + "\n"


def _allow_references(schema: Any) -> None:
    for definition in (schema, *schema.get("$defs", {}).values()):
        properties = definition.get("properties", {})
        for name, value in properties.items():
            value.pop("title", None)
            if "enum" in value or "pattern" in value or value.get("type") in ("integer", "number", "boolean"):
                annotations = {key: value.pop(key) for key in ("description", "default") if key in value}
                properties[name] = {**annotations, "anyOf": [value, _REFERENCE]}
