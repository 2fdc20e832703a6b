"""How a table's records are to be read: what the table has, and what is asked for beside the row."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from distributary.decode.shapes import Shape
from distributary.decode.types import Codec
from distributary.decode.unwrapped import Unwrapped


@dataclass(frozen=True)
class Reading:
    """How a table's records are to be read.

    `connector` is the one by whose positions the table is ordered, or position.BY_OFFSET. `columns` are the table's
    columns (name to Spark type) that a decoded row has, `key` those of its key. `keyless`: the table has no key, and
    its records need none. What only some slices need is read on request: `before` the row before the change, `links`
    the keys that the headers of a key change name, `missing` the columns whose value the source did not send.

    `unwrapped`: the records are rows without an envelope. `key_from_row`: the records have no key, the row's columns
    stand for it; an update that changes them is then read as two changes, as for a record with a key: the delete of
    the old one and the create of the new one. `transactions`: each change's place in its transaction is read.
    """

    connector: str
    epoch: int
    columns: Mapping[str, str]
    key: Mapping[str, str]
    placeholder: str
    keyless: bool = False
    before: bool = False
    links: bool = False
    missing: bool = False
    unwrapped: Unwrapped | None = None
    key_from_row: bool = False
    transactions: bool = False

    @property
    def parses_before(self) -> bool:
        """Whether the row before the change has to be read."""
        return self.before or self.key_from_row

    def key_codecs(self, shape: Shape) -> Mapping[str, Codec]:
        """How the columns of a record's key are read; those of the row where it stands for the key."""
        if not self.key_from_row:
            return shape.key
        return {name: shape.row[name] for name in self.key if name in shape.row}
