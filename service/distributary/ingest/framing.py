"""Halts a table whose records name their schemas in an unsupported form, before they fill the quarantine."""

from __future__ import annotations

from collections.abc import Sequence

from distributary.consume.sample import SampledRecord
from distributary.decode.avro.framing import unread_form
from distributary.decode.front import without_schema_id
from distributary.decode.headers import first_headers
from distributary.errors import TableHalt

_FIXES = {
    "Apicurio": "set apicurio.registry.as-confluent: true and apicurio.registry.use-id: contentId in the connector's"
    " converters; where ids of eight bytes are content ids already, set apicurio.registry.use-id: contentId under"
    " source.schema_registry",
    "AWS Glue": "have the connector use Confluent's or Apicurio's converter and a registry with Confluent's API, or"
    " Glue's JSON Schema converter and format: json",
}
_AVRO = "set source.format: avro and source.schema_registry, or a JSON converter in the connector"


def check_framing(records: Sequence[SampledRecord], topic: str, source_format: str) -> None:
    """Raises TableHalt if all values name their schema in a form that is not supported. Values in supported forms are
    JSON at this point (see json_records.py)."""
    forms = {_form(record, source_format) for record in records if record.value}
    if len(forms) != 1 or (form := forms.pop()) is None:
        return
    fix = next((fix for name, fix in _FIXES.items() if name in form), _AVRO)
    raise TableHalt("schema-id-not-read", f"the values of {topic} have {form}, which this version can't read", fix)


def _form(record: SampledRecord, source_format: str) -> str | None:
    value = record.value or b""
    if source_format == "json":
        inner = without_schema_id(value)
        if inner is value or inner.lstrip()[:1] in (b"{", b"n", b""):
            return None
        glue = unread_form(value, {}, "value")
        return glue if glue and "Glue" in glue else "the number of a schema in front, and no JSON behind it"
    return unread_form(value, first_headers(record.headers), "value")
