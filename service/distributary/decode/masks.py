"""Masked columns: in place of a value its keyed hash, or a constant. The value itself comes no further than decoding.

A hash is HMAC-SHA-256 (RFC 2104) of the value's text in UTF-8, as 64 hexadecimal digits, with the salt as its key:
equal values have equal hashes, in every table of the same salt, and without the salt nobody can try values out.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from distributary.config.table import TableSettings
from distributary.decode import sql
from distributary.decode.types import Codec
from distributary.errors import TableHalt

REDACTED = "***"
_BLOCK = 64  # bytes of a block of SHA-256
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
        return _hashed(codec, self.salt) if how == "hash" else _redacted(codec)

    def marks(self) -> dict[str, str]:
        """What a table keeps of the masks that its rows were written with, to notice other ones. Of the salt it says
        no more than whether it is another one."""
        salt = hmac.new(self.salt.encode(), b"distributary", hashlib.sha256).hexdigest()[:16]
        return {column: f"hash {salt}" if how == "hash" else how for column, how in sorted(self.how.items())}


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


def check_masks(kept: Mapping[str, str] | None, masks: Masks, columns: Mapping[str, str]) -> None:
    """Raises TableHalt where a table with these columns has rows that were masked otherwise; `kept` is what marks()
    was then."""
    before, now = kept or {}, masks.marks()
    if other := [name for name in columns if before.get(name) != now.get(name)]:
        raise TableHalt(
            "mask-changed",
            f"the table's rows have {', '.join(other)} masked otherwise (or not at all) than the config says now, by"
            " `mask` or by another salt",
            "set it back; or `distributary resume -c FILE TABLE --rebuild` fills the table again, and VACUUM removes"
            " the files with the older values",
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


def _text(value: str, kind: str) -> str:
    if kind == "binary":
        return f"lower(hex({value}))"
    return f"to_json({value})" if kind.startswith(_NO_TEXT) else f"CAST({value} AS STRING)"
