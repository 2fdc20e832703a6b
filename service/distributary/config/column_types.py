"""Checks the types in `columns`, without Spark.

A type is a Spark type (`decimal(18,2)`, `array<string>`), the unit of a bare number on the wire (`timestamp_ms`), or a
semantic name of Debezium or Kafka Connect (`io.debezium.time.Date`). The elements of arrays and the values of maps and
fields may be any of them, too. If records carry a schema, their values are read by it, and converted to the type in
`columns` (see types/conversions.py).
"""

from __future__ import annotations

import re
from difflib import get_close_matches

WIRE_UNITS = ("timestamp_ms", "timestamp_us", "timestamp_ns", "time_ms", "time_us", "time_ns")
"""The unit of a bare number: milliseconds, microseconds or nanoseconds, since 1970 or since midnight."""

SEMANTIC_NAMES = (
    *(
        f"io.debezium.time.{name}"
        for name in (
            *("Date", "IsoDate", "Timestamp", "MicroTimestamp", "NanoTimestamp", "IsoTimestamp", "ZonedTimestamp"),
            *("Time", "MicroTime", "NanoTime", "IsoTime", "ZonedTime"),
            *("Year", "Interval", "MicroDuration", "NanoDuration"),
        )
    ),
    *(
        f"io.debezium.data.{name}"
        for name in ("Json", "Xml", "Uuid", "Enum", "EnumSet", "Ltree", "Bits", "VariableScaleDecimal")
    ),
    *(f"io.debezium.data.geometry.{name}" for name in ("Geometry", "Geography", "Point")),
    *(f"org.apache.kafka.connect.data.{name}" for name in ("Date", "Time", "Timestamp")),
)
"""Semantic names that need no parameter."""

CONNECT_DECIMAL = "org.apache.kafka.connect.data.Decimal"
"""With precision and scale it is for numbers that decimal(p,s) can't hold: they become exact text."""

_SIMPLE = {
    "tinyint": "tinyint",
    "byte": "tinyint",
    "smallint": "smallint",
    "short": "smallint",
    "int": "int",
    "integer": "int",
    "bigint": "bigint",
    "long": "bigint",
    "float": "float",
    "real": "float",
    "double": "double",
    "boolean": "boolean",
    "string": "string",
    "binary": "binary",
    "date": "date",
    "timestamp": "timestamp",
    "timestamp_ntz": "timestamp_ntz",
    "variant": "variant",
    "decimal": "decimal(10,0)",
}
_TOKEN = re.compile(r"\s*(?:([A-Za-z_][A-Za-z0-9_]*(?:\.[A-Za-z]+)*|\d+)|`((?:[^`]|``)+)`|([<>(),:]))")

# Names of source types that users may write.
_ELSEWHERE = {
    "varchar": "string",
    "char": "string",
    "text": "string",
    "datetime": "timestamp_ntz",
    "datetime2": "timestamp_ntz",
    "timestamptz": "timestamp",
    "numeric": "decimal(p,s)",
    "number": "decimal(p,s)",
    "bit": "boolean",
    "bool": "boolean",
    "blob": "binary",
    "bytea": "binary",
    "bytes": "binary",
    "varbinary": "binary",
    "json": "variant",
    "time": "time_ms",
}


def parse(text: str) -> str:
    """The type that `text` names, in one spelling: Spark types in lower case with their short names.

    Raises ValueError with a message that does not repeat `text`.
    """
    parser = _Parser(text)
    type_name = parser.type()
    parser.end()
    return type_name


def nearest(text: str) -> str | None:
    """The known type that was perhaps meant by `text`, a single word with or without numbers in parentheses."""
    match = re.fullmatch(r"([a-z_0-9]+)(\([\d,\s]*\))?", text.strip().lower())
    if match is None or match.group(1) in _SIMPLE:
        return None
    word = match.group(1)
    close = get_close_matches(word, (*_SIMPLE, *WIRE_UNITS), n=1)
    return _ELSEWHERE.get(word) or (close[0] if close else None)


class _Parser:
    """Recursive descent over Spark's type grammar, as far as table columns need it."""

    def __init__(self, text: str) -> None:
        self._tokens: list[tuple[str, str]] = []
        at = 0
        text = text.rstrip()
        while at < len(text):
            match = _TOKEN.match(text, at)
            if match is None:
                raise ValueError(f"a type can't hold the character at position {at + 1}")
            word, quoted, sign = match.groups()
            self._tokens.append(("sign", sign) if sign else ("name", quoted) if quoted else ("word", word))
            at = match.end()
        self._at = 0

    def type(self) -> str:
        kind, word = self._next("a type is expected")
        name = word.lower()
        if kind != "word":
            raise ValueError("a type is expected")
        if "." in word:
            return self._semantic(word)
        if name == "decimal" and self._next_is("("):
            return self._decimal()
        if name == "array":
            self._expect("<")
            element = self.type()
            self._expect(">")
            return f"array<{element}>"
        if name == "map":
            return self._map()
        if name == "struct":
            return self._struct()
        if name in WIRE_UNITS:
            return name
        if name not in _SIMPLE:
            raise ValueError("no such type")
        return _SIMPLE[name]

    def end(self) -> None:
        if self._at < len(self._tokens):
            raise ValueError("something follows the end of the type")

    def _semantic(self, name: str) -> str:
        if name == CONNECT_DECIMAL and self._next_is("("):
            precision, scale = self._digits()
            return f"{name}({precision},{scale})"
        if name not in SEMANTIC_NAMES:
            raise ValueError("this semantic name is not known; Connect's Decimal is written as decimal(p,s)")
        return name

    def _decimal(self) -> str:
        precision, scale = self._digits()
        if not 1 <= precision <= 38 or scale > precision:
            raise ValueError(
                "a decimal has a precision of 1 to 38 and a scale of 0 up to its precision; "
                f"beyond, {CONNECT_DECIMAL}(p,s) reads it as exact text"
            )
        return f"decimal({precision},{scale})"

    def _digits(self) -> tuple[int, int]:
        self._expect("(")
        precision, scale = self._number(), 0
        if self._next_is(","):
            self._expect(",")
            scale = self._number()
        self._expect(")")
        return precision, scale

    def _map(self) -> str:
        self._expect("<")
        key = self.type()
        self._expect(",")
        value = self.type()
        self._expect(">")
        if key != "string":
            raise ValueError("a map's key is text on the wire: map<string,...>")
        return f"map<{key},{value}>"

    def _struct(self) -> str:
        self._expect("<")
        fields: dict[str, str] = {}
        while not self._next_is(">"):
            if fields:
                self._expect(",")
            kind, name = self._next("a field's name is expected")
            if kind == "word" and "." in name:
                raise ValueError("a field's name with a dot is written in backticks")
            if self._next_is(":"):
                self._expect(":")
            if name.lower() in {known.lower() for known in fields}:
                raise ValueError("a struct has two fields of one name")
            fields[name] = self.type()
        self._expect(">")
        if not fields:
            raise ValueError("a struct needs at least one field")
        return "struct<" + ",".join(f"{_quoted(name)}:{kind}" for name, kind in fields.items()) + ">"

    def _number(self) -> int:
        kind, word = self._next("a number is expected")
        if kind != "word" or not word.isdecimal():
            raise ValueError("a number is expected")
        return int(word)

    def _next_is(self, sign: str) -> bool:
        return self._at < len(self._tokens) and self._tokens[self._at] == ("sign", sign)

    def _expect(self, sign: str) -> None:
        if not self._next_is(sign):
            raise ValueError(f"`{sign}` is expected")
        self._at += 1

    def _next(self, otherwise: str) -> tuple[str, str]:
        if self._at == len(self._tokens) or self._tokens[self._at][0] == "sign":
            raise ValueError(otherwise)
        self._at += 1
        return self._tokens[self._at - 1]


def _quoted(name: str) -> str:
    return name if re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", name) else f"`{name}`"
