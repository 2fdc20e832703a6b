"""Malformed records: mutated ones of every form, with hostile values in every field."""

from __future__ import annotations

import copy
import json
import random
import zlib
from collections.abc import Iterator
from typing import Any

from tests.support.avro import AvroWriter
from tests.support.changes import VARIABLE_SCALE
from tests.support.decoding import LocalRegistry, compact, struct_schema
from tests.support.recorded import Record

from distributary.decode.avro.schema import AvroSchema

SOURCE = {"connector": "postgresql", "sequence": '["1","2"]', "lsn": 2, "txId": 3, "ts_ms": 1_700_000_000_000}
DAY = {"type": "int32", "optional": True, "name": "io.debezium.time.Date"}
COLUMNS: dict[str, dict[str, Any]] = {
    "id": {"type": "int64", "optional": True},
    "n": {"type": "int32", "optional": True},
    "text": {"type": "string", "optional": True},
    "price": {
        "type": "bytes",
        "optional": True,
        "name": "org.apache.kafka.connect.data.Decimal",
        "parameters": {"scale": "2", "connect.decimal.precision": "10"},
    },
    "when": {"type": "string", "optional": True, "name": "io.debezium.time.ZonedTimestamp"},
    "day": DAY,
    "days": {"type": "array", "optional": True, "items": DAY},
    "any": {**VARIABLE_SCALE, "optional": True},
}
TYPES = {
    "id": "bigint",
    "n": "int",
    "text": "string",
    "price": "decimal(10,2)",
    "when": "timestamp",
    "day": "date",
    "days": "array<date>",
    "any": "string",
}
"""The table's."""
ROW = {"id": 1, "n": 2, "text": "ü", "price": "BOI=", "when": "2024-01-01T00:00:00Z", "day": 1, "days": [1, None]}
_VALUES: tuple[Any, ...] = (
    *(
        None,
        True,
        "",
        "x",
        "\x00\x1b]0;x\x07\u202e",
        "9" * 5_000,
        "NaN",
        "1e999999",
        -1,
        0,
        2**31,
        2**63,
        2**64,
        -(2**70),
    ),
    *(1.5, 1e300, [], {}, [[]], {"": None}, {"scale": 2**31, "value": "AQ=="}, "294247-01-10T04:00:54.775807Z", "////"),
    *(
        "__debezium_unavailable_value",
        "-infinity",
        '["9999999999999999999999","1"]',
        "\U0010ffff",
        "'; DROP TABLE t; --",
    ),
)
_FIELDS: tuple[tuple[str, ...], ...] = (
    *((name,) for name in ("op", "before", "after", "source", "ts_ms", "transaction")),
    *(("after", name) for name in (*ROW, "any", "new", "ID", "__op", "__deleted")),
    *(("source", name) for name in (*SOURCE, "snapshot", "db", "schema", "table", "ts_us", "xmin", "query")),
    *(("transaction", name) for name in ("id", "total_order", "data_collection_order")),
)
_HEADERS = ("__debezium.oldkey", "__debezium.newkey", "__op", "__key_schema_id", "__value_schema_id", "", "\u202e")


_INSERTED = (b"{", b"}", b'"', b"\\", b",", b":", b"0", b"e9", b"-", b".5", b" ", b"\n", b"null", b"'", b"[")


def mutated(data: bytes, chance: random.Random) -> bytes:
    """The bytes with one to three small faults."""
    for _ in range(chance.choice((1, 1, 1, 2, 3))):
        at = chance.randrange(len(data) + 1)
        to = min(len(data), at + chance.randrange(1, 12))
        fault = chance.choice(
            (
                b"",
                data[at:to] * 2,
                bytes([chance.randrange(256)]) + data[at:to],
                chance.choice(_INSERTED) + data[at:to],
                data[at:to][::-1],
                data[at:to].swapcase(),
                bytes([chance.randrange(128)]) + data[at + 1 : to],
            )
        )
        data = data[:at] + fault + data[to:]
    return data


class HostileRecords:
    """Makes such records of a topic, from a seed: every record of the same seed is the same. One in eight is good."""

    def __init__(self, seed: int) -> None:
        self._chance = random.Random(seed)
        self._registry = LocalRegistry()
        self._avro = AvroWriter(self._registry)
        self._schemas = self._wrapped(compact(self._payload(0)).encode()), self._with_key_schema(0)
        self.avro(0)  # so that the schemas are known

    @property
    def schemas(self) -> dict[str, AvroSchema]:
        """Those of the Avro records."""
        return self._registry.schemas

    def records(self, count: int, first: int = 0, *, avro: bool = False) -> Iterator[Record]:
        """So many records, from an offset on."""
        for offset in range(first, first + count):
            yield self._avro_record(offset) if avro else self._json_record(offset)

    def _json_record(self, offset: int) -> Record:
        chance = self._chance
        number = offset % 50
        key, payload = b'{"id":%d}' % number, self._payload(number)
        kind = chance.randrange(8)
        if kind in (1, 2):
            self._set_field(payload)
        value: bytes | None = json.dumps(payload).encode() if kind % 2 else compact(payload).encode()
        if chance.random() < 0.5:
            value, key = self._wrapped(value or b""), self._with_key_schema(number)
        if kind in (3, 4):
            value = mutated(value or b"", chance)
        if kind == 5:
            key = mutated(key, chance)
        if kind == 6:
            value = chance.choice((None, b"", b"\x00\x00\x00\x00\x07" + (value or b""), _glued(value or b"", chance)))
        if kind == 7:
            value = (value or b"")[: chance.randrange(len(value or b"") + 1)]
        return self._record(offset, chance.choice((key,) * 30 + (None,)), value)

    def _avro_record(self, offset: int) -> Record:
        chance = self._chance
        key, value = self.avro(offset % 50)
        kind = chance.randrange(6)
        if kind in (1, 2):
            value = mutated(value, chance)
        if kind == 3:
            key = mutated(key, chance)
        if kind == 4:
            value = value[:5] + chance.randbytes(chance.randrange(40))
        if kind == 5:
            value = value[: chance.randrange(len(value) + 1)]
        return self._record(offset, key, value)

    def avro(self, number: int) -> tuple[bytes, bytes]:
        """A good key and value."""
        payload = compact(self._payload(number)).encode()
        key, value = self._with_key_schema(number), self._wrapped(payload)
        return self._avro.written(key, "key") or b"", self._avro.written(value, "value") or b""

    def _payload(self, number: int) -> dict[str, Any]:
        lsn = self._chance.randrange(1, 10_000)
        source = {**SOURCE, "sequence": json.dumps([str(lsn), str(lsn)]), "lsn": lsn}
        row = {**copy.deepcopy(ROW), "id": number}
        return {"before": None, "after": row, "source": source, "op": self._chance.choice("ccuuuur")}

    def _set_field(self, payload: dict[str, Any]) -> None:
        *outer, name = self._chance.choice(_FIELDS)
        inside = payload
        for part in outer:
            inside = inside.setdefault(part, {})
        inside[name] = copy.deepcopy(self._chance.choice(_VALUES))

    def _wrapped(self, payload: bytes) -> bytes:
        return b'{"schema":' + _SCHEMA + b',"payload":' + payload + b"}"

    def _with_key_schema(self, number: int) -> bytes:
        return b'{"schema":' + _KEY_SCHEMA + b',"payload":{"id":%d}}' % number

    def _record(self, offset: int, key: bytes | None, value: bytes | None) -> Record:
        chance = self._chance
        headers: tuple[tuple[str, bytes | None], ...] = ()
        if chance.random() < 0.1:
            data = chance.choice(
                (None, b"", b'{"id":1}', b"\xff", mutated(b'{"schema":{},"payload":{"id":1}}', chance))
            )
            headers = ((chance.choice(_HEADERS), data),)
        time = chance.choice((1_700_000_000_000 + offset,) * 9 + (2**63 - 1,))
        return Record("t", 0, offset, time, key, value, headers)


def _glued(value: bytes, chance: random.Random) -> bytes:
    packed = b"\x03\x05" + bytes(16) + zlib.compress(value)
    return chance.choice((packed, mutated(packed, chance)))


_KINDS = {"lsn": "int64", "txId": "int64", "ts_ms": "int64"}
_SCHEMA = compact(
    {
        "type": "struct",
        "fields": [
            struct_schema(COLUMNS, field="before", optional=True),
            struct_schema(COLUMNS, field="after", optional=True),
            struct_schema({name: {"type": _KINDS.get(name, "string")} for name in SOURCE}, field="source"),
            {"type": "string", "field": "op"},
        ],
    }
).encode()
_KEY_SCHEMA = compact({"type": "struct", "fields": [{"type": "int64", "field": "id"}]}).encode()
