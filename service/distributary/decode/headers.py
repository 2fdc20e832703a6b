"""Reads Kafka's headers: those of a key change, and those that ExtractNewRecordState adds to rows without an
envelope."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc


def first_headers(headers: Sequence[tuple[str, bytes | None]]) -> dict[str, bytes]:
    """The headers of one record that have a value, by name. If a record has a header twice, the first one counts."""
    return {name: value for name, value in reversed(headers) if value is not None}


def find_headers(
    raw: pa.RecordBatch | pa.Table, names: Collection[str], *, with_value: bool = False
) -> dict[int, dict[str, bytes | None]]:
    """The values of the records' headers with these names, by the record's index. If a record has a header twice, the
    first one counts.

    The column `headers`, which `raw` may lack, is a list of structs of key and value. `with_value`: only headers that
    have a value count.
    """
    if "headers" not in raw.schema.names:
        return {}
    headers = raw["headers"]
    if isinstance(headers, pa.ChunkedArray):
        headers = pa.concat_arrays(headers.chunks) if headers.num_chunks else pa.nulls(0, headers.type)
    entries = pc.list_flatten(headers)
    if not len(entries):
        return {}
    keys = entries.field("key") if isinstance(entries, pa.StructArray) else pc.struct_field(entries, "key")
    known = np.asarray(pc.is_in(keys.cast(pa.string()), value_set=pa.array(sorted(names), pa.string())))
    indexes = np.flatnonzero(known)
    if not len(indexes):
        return {}
    owners = pc.list_parent_indices(headers).take(pa.array(indexes)).to_pylist()
    by_record: dict[int, dict[str, bytes | None]] = {}
    for owner, entry in zip(owners, entries.take(pa.array(indexes)).to_pylist(), strict=True):
        if not with_value or entry["value"] is not None:
            by_record.setdefault(owner, {}).setdefault(entry["key"], entry["value"])
    return by_record


def added_texts(headers: Mapping[str, bytes | None], names: Mapping[str, str]) -> dict[str, str]:
    """The values that were added as headers, by their meaning (see unwrapped.Unwrapped).

    SimpleHeaderConverter writes the bare text, JsonConverter JSON, perhaps with a schema beside it.
    """
    texts: dict[str, str] = {}
    if not headers:
        return texts
    for name, meaning in names.items():
        data = headers.get(name)
        text = None if data is None else _text(data)
        if text is not None:
            texts[meaning] = text
    return texts


def _text(data: bytes) -> str | None:
    text = data.decode(errors="replace")
    if text.startswith(('{"schema":', '"')):
        try:
            document = json.loads(text, parse_float=str, parse_int=str)
        except (ValueError, RecursionError):
            return None
        return _plain(document.get("payload") if isinstance(document, dict) else document)
    return None if text == "null" else text


def _plain(value: Any) -> str | None:
    if isinstance(value, bool):
        return "true" if value else "false"
    return value if isinstance(value, str) and _is_text(value) else None


def _is_text(value: str) -> bool:
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True
