"""Avro records with their schemas in a registry, made into what slices.py makes of JSON: payload and schema as text.

The Avro bytes are read by Spark's from_avro with the schema that they were written with, without logical types, and
written as the JSON that JsonConverter would have written. From there on there is one decoder for both.
"""

from __future__ import annotations

import json
from collections.abc import Mapping

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.avro.functions import from_avro

from distributary.decode import envelope as e
from distributary.decode import sql
from distributary.decode.avro_schema import AvroSchema
from distributary.decode.framing import SIDES, Side, framed
from distributary.decode.slices import added_headers, key_headers
from distributary.decode.unwrapped import Unwrapped

Schemas = Mapping[Side, Mapping[str, AvroSchema]]
"""By address in the registry, for keys and for values."""

# from_avro gives a row of NULLs for what it can't read, and does not look at what comes after the value. With these
# bytes put behind the value, and read as part of it, both show.
_END = bytes.fromhex("9c5ae10db7f4263e")
_OPEN = '{"value":'
_REPLACEMENT = "\ufffd"
_TO_JSON = "map('ignoreNullFields', 'true')"


def addresses(raw: DataFrame) -> dict[Side, set[str]]:
    """The addresses of all schemas that the records name (one Spark job)."""
    named = raw.select(*framed("key"), *framed("value")).select("key_schema", "value_schema").distinct().collect()
    return {side: {row[f"{side}_schema"] for row in named} - {None} for side in SIDES}


def sliced_avro(raw: DataFrame, schemas: Schemas, unwrapped: Unwrapped | None = None) -> DataFrame:
    """What slices.sliced gives of JSON records, of Avro records in one pass, whichever schemas they have.

    A record with a schema that is not among `schemas` gets a signature that no shape has.
    """
    records = raw.select(
        "partition", "offset", "timestamp", *key_headers(), *added_headers(unwrapped), *framed("key"), *framed("value")
    )
    kept = [c for c in records.columns if not c.startswith(("key_", "value_"))]
    read = records.select("*", *(c for side in SIDES for c in _read(side, schemas[side])))
    text = read.select("*", *(F.expr(_json(side, schemas[side])).alias(f"{side}_json") for side in SIDES))
    told = text.select("*", *(F.expr(_fault(side, schemas[side])).alias(f"{side}_fault") for side in SIDES))
    payload = told.select(
        "*",
        F.expr("coalesce(value_fault, key_fault)").alias("fault"),
        F.expr(_payload("key", schemas["key"])).alias("k"),
        F.expr(_payload("value", schemas["value"])).alias("v"),
    )
    return payload.select(
        *kept,
        "fault",
        "k",
        "v",
        F.expr(_signature("key", "k", schemas["key"])).alias("ks"),
        F.expr(_signature("value", "v", schemas["value"])).alias("vs"),
    )


def _readable(schemas: Mapping[str, AvroSchema]) -> list[tuple[int, str, AvroSchema]]:
    return [(i, sql.text(address), schema) for i, (address, schema) in enumerate(schemas.items()) if schema.readable]


def _read(side: Side, schemas: Mapping[str, AvroSchema]) -> list[Column]:
    """STRUCT<value, end> for each schema, NULL for records with another."""
    bytes_ = F.concat(F.col(f"{side}_body"), F.lit(bytearray(_END)))
    return [
        F.when(
            F.expr(f"{side}_schema = {address}"), from_avro(bytes_, _with_end(schema), {"mode": "PERMISSIVE"})
        ).alias(f"{side}_{i}")
        for i, address, schema in _readable(schemas)
    ]


def _with_end(schema: AvroSchema) -> str:
    end = {"type": "fixed", "name": "mark", "size": len(_END)}
    fields = [{"name": "value", "type": schema.parsed}, {"name": "end", "type": end}]
    return json.dumps({"type": "record", "name": "whole", "fields": fields}, ensure_ascii=False)


def _case(whens: list[str], otherwise: str = "NULL") -> str:
    return f"CASE {' '.join(whens)} ELSE {otherwise} END" if whens else f"CAST({otherwise} AS STRING)"


def _json(side: Side, schemas: Mapping[str, AvroSchema]) -> str:
    return _case(
        [
            f"WHEN {side}_schema = {address} THEN to_json(named_struct('value', {side}_{i}.value), {_TO_JSON})"
            for i, address, _ in _readable(schemas)
        ]
    )


def _fault(side: Side, schemas: Mapping[str, AvroSchema]) -> str:
    """STRING: the code of the reason why key or value can't be read, NULL where it can."""
    cases = [f"WHEN {side}_body IS NULL THEN NULL", f"WHEN {side}_schema IS NULL THEN '{e.NO_SCHEMA_ID.code}'"]
    for i, address, schema in _readable(schemas):
        whole = f"{side}_{i}.end <=> X'{_END.hex()}'"
        # Text that is not UTF-8 turns up as replacement characters, which the source may also have sent itself.
        replaced = f"contains({side}_json, '{_REPLACEMENT}') AND NOT ({schema.valid_text(f'{side}_{i}.value')})"
        found = f"WHEN NOT ({whole}) THEN '{e.NOT_AVRO.code}' WHEN {replaced} THEN '{e.BAD_UTF8.code}'"
        cases.append(f"WHEN {side}_schema = {address} THEN CASE {found} END")
    unreadable = [sql.text(address) for address, schema in schemas.items() if not schema.readable]
    if unreadable:
        cases.append(f"WHEN {side}_schema IN ({', '.join(unreadable)}) THEN '{e.NOT_AN_AVRO_SCHEMA.code}'")
    return _case(cases)


def _payload(side: Side, schemas: Mapping[str, AvroSchema]) -> str:
    start = len(_OPEN) + 1
    inner = f"substring({side}_json, {start}, length({side}_json) - {start})"
    cases = [
        f"WHEN {side}_body IS NULL THEN NULL",
        f"WHEN {side}_fault IS NOT NULL THEN ''",
        *(
            f"WHEN {side}_schema = {address} THEN CASE WHEN {side}_json <> '{{}}' THEN {inner} END"
            for _, address, _ in _readable(schemas)
        ),
    ]
    return _case(cases, "'{}'")


def _signature(side: Side, payload: str, schemas: Mapping[str, AvroSchema]) -> str:
    cases = [
        f"WHEN {payload} IS NULL OR {side}_fault IS NOT NULL THEN NULL",
        *(f"WHEN {side}_schema = {address} THEN {sql.text(s.connect)}" for _, address, s in _readable(schemas)),
    ]
    return _case(cases, f"concat('{{\"not known yet\":\"', {side}_schema, '\"}}')")
