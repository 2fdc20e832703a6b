"""Masked columns: in place of a value its keyed hash, or a constant. The value itself comes no further than decoding.

A hash is HMAC-SHA-256 (RFC 2104) of the value's text in UTF-8, as 64 hexadecimal digits, with the salt as its key:
equal values have equal hashes, in every table of the same salt, and without the salt nobody can try values out.
"""

from __future__ import annotations

import hashlib
import hmac
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from distributary.config.table import TableSettings
from distributary.decode import sql
from distributary.decode.renames import Renames
from distributary.decode.types import Codec
from distributary.errors import TableHalt

REDACTED = "***"
_BLOCK = 64  # bytes of a block of SHA-256
_OF = " of "  # in a mark, before what a hash is made of
_WHOLE = ("string", "tinyint", "smallint", "int", "bigint")
_NO_TEXT = ("array<", "map<", "struct<", "variant")


@dataclass(frozen=True)
class Masks:
    """How columns are masked: `how` by name, hash or redact. `salt` keys the hashes."""

    how: Mapping[str, str] = field(default_factory=dict)
    salt: str = field(default="", repr=False)

    def over(self, column: str, codec: Codec) -> Codec:
        """The codec of a column as it counts with its mask: the same where it has none."""
        how = self.how.get(column)
        if how is None:
            return codec
        if how == "hash":
            return replace(_hashed(codec, self.salt), mark=f"{self._told(column)}{_OF}{_spelled(codec.target)}")
        return replace(_redacted(codec), mark=how)

    def told(self, renames: Renames) -> dict[str, str]:
        """The masks as far as the config tells them, by the lake's names of the columns: the beginnings of marks."""
        return {renames.of(column): str(self._told(column)) for column in self.how}

    def _told(self, column: str) -> str | None:
        """Of the salt it says no more than whether it is another one."""
        if self.how.get(column) != "hash":
            return self.how.get(column)
        return f"hash {hmac.new(self.salt.encode(), b'distributary', hashlib.sha256).hexdigest()[:16]}"

    def check(self, kept: Mapping[str, str] | None, renames: Renames, columns: Iterable[str]) -> None:
        """Raises TableHalt where a table with these columns has rows that were masked otherwise than the config says
        now; `kept`: their marks. What the source calls a renamed column now, only its records show: see Marks."""
        marks = kept or {}
        if other := [
            name
            for name in columns
            if (marks[name].partition(_OF)[0] if name in marks else None)
            not in (self._told(name), self._told(renames.source(name)))
        ]:
            raise _changed(other)


class Marks:
    """How a table's columns are masked (see Codec.mark), with the lake's names: as its rows were written, and by all
    records since. A mark that does not say what hashes are made of takes any."""

    def __init__(self, kept: Mapping[str, str] | None, columns: Iterable[str]) -> None:
        self._now: dict[str, str | None] = {name: (kept or {}).get(name) for name in columns}

    def meet(self, row: Mapping[str, Codec], key: Mapping[str, Codec]) -> None:
        """Records with these codecs come next. Raises TableHalt where they are masked otherwise than rows that are
        there, or where hashes would be made of other texts: equal values would have other hashes."""
        for name, codec in {**row, **key}.items():
            before = self._now.get(name, codec.mark) or ""
            (was, _, of), (now, _, of_now) = (mark.partition(_OF) for mark in (before, codec.mark or ""))
            if was != now:
                raise _changed([name])
            if of and of != of_now:
                raise TableHalt(
                    "mask-changed",
                    f"the table's hashes of {name} were made of {of}, and would be made of {of_now} now: equal values"
                    " would not have equal hashes any more",
                    f"name the type that {name} had under `columns`; or name one that all its records have, and"
                    " `distributary resume -c FILE TABLE --rebuild` fills the table again",
                )
            self._now[name] = codec.mark

    def kept(self, told: Mapping[str, str]) -> dict[str, str]:
        """What a table keeps of them, with what is `told` of columns that may come."""
        return {name: mark for name, mark in {**told, **self._now}.items() if mark is not None}


def masks_of(settings: TableSettings) -> Masks:
    """The masks of a table. Raises TableHalt where there is no salt: it came to the config after the start."""
    salt = settings.salt.get_secret_value() if settings.salt is not None else ""
    if "hash" in settings.mask.values() and not salt:
        raise TableHalt(
            "no-salt",
            f"`mask` ({settings.where}) asks for hashes, and the service was started without masking.salt",
            "start the service again: a new salt counts from the next start on",
        )
    return Masks(settings.mask, salt)


def _changed(columns: Iterable[str]) -> TableHalt:
    return TableHalt(
        "mask-changed",
        f"the table's rows have {', '.join(columns)} masked otherwise (or not at all) than the config says now, by"
        " `mask` or by another salt",
        "set it back (under the source's name of the column, where `rename` gives it another one); or `distributary"
        " resume -c FILE TABLE --rebuild` fills the table again, and VACUUM removes the files with the older values",
    )


def key_redacted(columns: Iterable[str]) -> TableHalt:
    """The halt of a table whose rows could not be told apart."""
    return TableHalt(
        "key-redacted",
        f"`mask` redacts a column of the key: {', '.join(columns)}; rows could not be told apart",
        "write hash in its place",
    )


def _redacted(codec: Codec) -> Codec:
    constant = sql.text(REDACTED)
    return Codec(codec.wire, "string", lambda x: f"CASE WHEN {codec.there(x)} THEN {constant} END")


def _hashed(codec: Codec, salt: str) -> Codec:
    key = salt.encode()
    key = (hashlib.sha256(key).digest() if len(key) > _BLOCK else key).ljust(_BLOCK, b"\0")
    inner, outer = (f"X'{bytes(byte ^ pad for byte in key).hex()}'" for pad in (0x36, 0x5C))

    def read(x: str) -> str:
        text = f"CAST({_text('masked_', codec.target)} AS BINARY)"
        digest = f"sha2(concat({outer}, unhex(sha2(concat({inner}, {text}), 256))), 256)"
        return sql.let("masked_", codec.sql(x), digest)

    return Codec(codec.wire, "string", read)


def _spelled(kind: str) -> str:
    """What the text of a value depends on. Whole numbers are spelled alike, as numbers and as text; decimals by their
    scale, and without a schema as Base64."""
    if kind in _WHOLE:
        return "text or whole numbers"
    scale = re.fullmatch(r"decimal\(\d+,(\d+)\)", kind)
    return f"decimals of scale {scale[1]}" if scale else f"values of the type {kind}"


def _text(value: str, kind: str) -> str:
    if kind == "binary":
        return f"lower(hex({value}))"
    return f"to_json({value})" if kind.startswith(_NO_TEXT) else f"CAST({value} AS STRING)"
