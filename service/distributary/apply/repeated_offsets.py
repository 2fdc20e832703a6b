"""Detects new records with the offsets of older records that rows of the table name.

That happens after a topic was created again and the table continued over it (`--accept-reset`). Values are found by the
records that hold them, so a row could get the values of another one.
"""

from __future__ import annotations

from collections.abc import Iterable

import pyarrow as pa
import pyarrow.compute as pc

from distributary.apply.key_text import key_texts
from distributary.errors import TableHalt
from distributary.rules.columns import one_array


def check_offsets(rows: pa.Table, keys: pa.Array, events: Iterable[pa.Table]) -> None:
    """Raises TableHalt if a row of the table (`keys` has its key) and an event of another key name the same record."""
    offsets = one_array(rows["__offset"]).cast(pa.int64())
    for batch in events:
        near = batch.filter(pc.is_in(batch["offset"], offsets.drop_null()))
        if not near.num_rows:
            continue
        places = zip(near["partition"].to_pylist(), near["offset"].to_pylist(), strict=True)
        sent = dict(zip(places, key_texts(one_array(near["key"])).to_pylist(), strict=True))
        stored = zip(rows["__partition"].to_pylist(), offsets.to_pylist(), keys.to_pylist(), strict=True)
        for partition, offset, key in stored:
            if (partition, offset) in sent and sent[partition, offset] not in (key, None):
                raise TableHalt(
                    "offsets-repeat",
                    f"a row of the table names the record at partition {partition}, offset {offset}, and the topic has"
                    " another one there: the topic was created again, and old and new values can't be distinguished",
                    "fill the table again: `distributary resume -c FILE TABLE --rebuild`",
                )
