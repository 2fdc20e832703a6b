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
_WHOLE = ("tinyint", "smallint", "int", "bigint")
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

    def _told(self, column: str) -> str | None:
        """A column's mask as far as the config tells it: of the salt no more than whether it is another one."""
        if self.how.get(column) != "hash":
            return self.how.get(column)
        return f"hash {hmac.new(self.salt.encode(), b'distributary', hashlib.sha256).hexdigest()[:16]}"

    def differ(self, kept: Mapping[str, str], renames: Renames, columns: Iterable[str]) -> list[str]:
        """Those of a table's columns whose rows are masked otherwise than the config says now; `kept`: their marks (see
        Codec.mark). What the source calls a renamed column now, or did before, only its records show."""
        return [
            name
            for name in columns
            if (kept[name].partition(_OF)[0] if name in kept else None)
            not in (self._told(name), self._told(renames.source(name)))
        ]


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


def check_masks(kept: Mapping[str, str] | None, masks: Masks, renames: Renames, columns: Iterable[str]) -> None:
    """Raises TableHalt where a table with these columns has rows that were masked otherwise; `kept` are their marks."""
    if other := masks.differ(kept or {}, renames, columns):
        raise _changed(other)


def check_marks(kept: Mapping[str, str | None], codecs: Mapping[str, Codec]) -> None:
    """Raises TableHalt where the columns of records are masked otherwise than rows that the table has, or where hashes
    would be made of other texts: equal values would have other hashes. Columns have the lake's names in both."""
    for name, codec in codecs.items():
        was, now = (mark or "" for mark in (kept.get(name, codec.mark), codec.mark))
        (mask, _, kind), (mask_now, _, kind_now) = was.partition(_OF), now.partition(_OF)
        if mask != mask_now:
            raise _changed([name])
        if kind != kind_now:
            raise TableHalt(
                "mask-changed",
                f"the table's hashes of {name} were made of values as {kind}, and would be made of {kind_now} now:"
                " equal values would not have equal hashes any more",
                f"name the type that it had ({kind}) under `columns`; or `distributary resume -c FILE TABLE --rebuild`"
                " fills the table again",
            )


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
    """What the text of a value depends on: whole numbers of all sizes are spelled alike, decimals by their scale."""
    scale = re.fullmatch(r"decimal\(\d+,(\d+)\)", kind)
    if kind in _WHOLE or (scale and scale[1] == "0"):
        return "a whole number"
    return f"decimals of scale {scale[1]}" if scale else kind


def _text(value: str, kind: str) -> str:
    if kind == "binary":
        return f"lower(hex({value}))"
    return f"to_json({value})" if kind.startswith(_NO_TEXT) else f"CAST({value} AS STRING)"
