"""What a batch commits, as readable JSON: for each kind of batch its records, the actions in Delta's log, and the rows.

`python -m tests.support.golden` writes the files in tests/golden anew. They are made without Java: the log is written
by hand (see delta_log.py), and the rows are read by another reader.
"""

from __future__ import annotations

import json
import re
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
from tests.support import delta_log
from tests.support.decoding import raw_table
from tests.support.delta_log import HandCommitter, HandMadeTable
from tests.support.delta_readers import read_by_deltalake
from tests.support.recorded import Record

from distributary.apply.apply_events import apply_events
from distributary.apply.memory import TableSpec, first_memory
from distributary.config.table import TableSettings
from distributary.decode.decoder import Decoder
from distributary.decode.options import DecodeOptions
from distributary.delta.commit import CommitPayload
from distributary.delta.compaction import next_file_group
from distributary.delta.index_cache import IndexCache
from distributary.delta.plan_write import RemovalLayout
from distributary.delta.storage import TableFiles
from distributary.delta.writer import TableWriter
from distributary.ingest.applied_writer import AppliedWriter
from distributary.ingest.service_columns import service_columns_of
from distributary.rules.state import RuleSettings
from distributary.types.record_schema import RecordSchema, arrow_of

FOLDER = Path(__file__).parents[1] / "golden"
COLUMNS = {"id": "bigint", "name": "string", "note": "string"}
_LOG_TYPES: Mapping[str, Any] = {
    "bigint": "long",
    "int": "integer",
    "array<string>": delta_log.array_of("string"),
}
_UNAVAILABLE = "__debezium_unavailable_value"
_HIDDEN = ("__source_ts", "__topic", "__partition")  # the same in all rows
Change = Mapping[str, Any]


def change(op: str, at: int, key: int | None = None, **columns: Any) -> Change:
    """A record of PostgreSQL's connector: its operation, its position, its key and the row after it. `old_key` and
    `new_key` are the headers of a key change, `tx` is the transaction if it is not the position."""
    return {"op": op, "at": at, **({} if key is None else {"key": key}), **columns}


@dataclass(frozen=True)
class Kind:
    """A kind of batch: what a batch does that comes after the batches `before`. `compacts`: it is followed by a
    compaction, whose commit is shown instead."""

    about: str
    batch: Sequence[Change]
    before: Sequence[Sequence[Change]] = ()
    settings: TableSettings = field(default_factory=lambda: TableSettings("public.t"))
    layout: RemovalLayout = RemovalLayout.VECTORS
    properties: Mapping[str, str] = field(default_factory=dict)
    partition_by: Sequence[str] = ()
    has_key: bool = True
    compacts: bool = False


_TWO_ROWS = (
    change("c", 10, 1, name="Ada", note="first"),
    change("c", 11, 2, name="Bob", note="second"),
)
_HISTORY = TableSettings("public.t", mode="history")
_APPEND = TableSettings("public.t", mode="append")

KINDS: Mapping[str, Kind] = {
    "insert": Kind("New rows: one new file.", _TWO_ROWS),
    "snapshot": Kind(
        "Rows of a snapshot are inserted like others.",
        [change("r", 5, 1, name="Ada", note="first"), change("r", 5, 2, name="Bob", note="second")],
    ),
    "update_and_delete": Kind(
        "The old rows of both keys are marked by a deletion vector; the new row is in a new file.",
        [change("u", 20, 1, name="Ada L.", note="first"), change("d", 21, 2)],
        [(*_TWO_ROWS, change("c", 12, 3, name="Cy", note="third"))],
    ),
    "update_by_rewrite": Kind(
        "`layout: rewrite`: the file of the old row is written again without it.",
        [change("u", 20, 1, name="Ada L.", note="first")],
        [_TWO_ROWS],
        layout=RemovalLayout.REWRITE,
    ),
    "delete_of_a_whole_file": Kind(
        "A file without live rows is removed; no file is written.",
        [change("d", 20, 1), change("d", 21, 2)],
        [_TWO_ROWS],
    ),
    "soft_delete": Kind(
        "`deletes: soft`: the deleted row stays, with __deleted = true.",
        [change("d", 20, 1)],
        [_TWO_ROWS],
        TableSettings("public.t", deletes="soft"),
    ),
    "unavailable_value": Kind(
        "A value that the source did not send is taken from the old row.",
        [change("u", 20, 1, name="Ada L.", note=_UNAVAILABLE)],
        [_TWO_ROWS],
    ),
    "key_change": Kind(
        "A delete of the old key and a create of the new one, which takes the unavailable value along.",
        [
            change("d", 20, 1, tx=20, new_key=7),
            change("c", 20, 7, tx=20, old_key=1, name="Ada", note=_UNAVAILABLE),
        ],
        [_TWO_ROWS],
    ),
    "sent_again": Kind(
        "Records that were applied before change no row: the commit has the progress record alone.",
        _TWO_ROWS,
        [_TWO_ROWS],
    ),
    "several_changes_of_a_key": Kind(
        "Only the last state of a key is written.",
        [
            change("c", 10, 1, name="Ada", note="first"),
            change("u", 11, 1, name="Ada L.", note="first"),
            change("c", 12, 2, name="Bob", note="second"),
            change("d", 13, 2),
        ],
    ),
    "truncate": Kind(
        "`truncate: apply`: all older rows go; the row after the truncate stays.",
        [change("t", 20), change("c", 21, 3, name="Cy", note="third")],
        [_TWO_ROWS],
    ),
    "soft_truncate": Kind(
        "`truncate: soft`: all older rows stay, with __deleted = true.",
        [change("t", 20)],
        [_TWO_ROWS],
        TableSettings("public.t", truncate="soft"),
    ),
    "partitioned": Kind(
        "`partition_by`: one new file for each partition.",
        _TWO_ROWS,
        partition_by=["name"],
    ),
    "change_data_feed": Kind(
        "`delta.enableChangeDataFeed`: the changed rows are written beside the data.",
        [change("u", 20, 1, name="Ada L.", note="first"), change("d", 21, 2)],
        [_TWO_ROWS],
        properties={"delta.enableChangeDataFeed": "true"},
    ),
    "compaction": Kind(
        "Small files are made into one, by a commit that changes no row (dataChange: false).",
        [change("u", 20, 1, name="Ada L.", note="first")],
        [_TWO_ROWS],
        compacts=True,
    ),
    "history_insert": Kind(
        "`mode: history`: each row is a version, open until the next change.", _TWO_ROWS, (), _HISTORY
    ),
    "history_update_and_delete": Kind(
        "`mode: history`: the current versions are replaced by ended ones; an update opens a new version.",
        [change("u", 20, 1, name="Ada L.", note="first"), change("d", 21, 2)],
        [_TWO_ROWS],
        _HISTORY,
    ),
    "history_truncate": Kind(
        "`mode: history`: a truncate ends all current versions.", [change("t", 20)], [_TWO_ROWS], _HISTORY
    ),
    "append": Kind(
        "`mode: append`: each change is a row; unavailable values are NULL and named in __unavailable.",
        [
            change("u", 20, 1, name="Ada L.", note=_UNAVAILABLE),
            change("d", 21, 2),
            change("t", 22),
        ],
        [_TWO_ROWS],
        _APPEND,
    ),
    "append_with_transactions": Kind(
        "`transaction_columns: true`: rows have the transaction of their change.",
        [change("c", 10, 1, tx=7, name="Ada", note="first"), change("u", 11, 1, tx=7, name="Ada L.", note="first")],
        (),
        TableSettings("public.t", mode="append", transaction_columns=True),
    ),
    "append_sent_again": Kind(
        "`mode: append`: records that were applied before add no row.",
        [*_TWO_ROWS, change("c", 12, 3, name="Cy", note="third")],
        [_TWO_ROWS],
        _APPEND,
    ),
    "keyless": Kind(
        "`keyless: append`: records without a key, each kept as a row; equal rows are different changes.",
        [change("c", 10, name="Ada", note="first"), change("c", 11, name="Ada", note="first")],
        (),
        _APPEND,
        has_key=False,
    ),
}


class GoldenTable:
    """The table of one kind of batch, in an empty directory."""

    def __init__(self, kind: Kind, path: Path) -> None:
        settings, mode = kind.settings, kind.settings.mode
        self._path, self._kind = path / "table", kind
        key = {"id": COLUMNS["id"]} if kind.has_key else {}
        self._schema = RecordSchema(COLUMNS, key)
        row, keys = (pa.struct([(n, arrow_of(t)) for n, t in part.items()]) for part in (self._schema.row, key))
        rules = RuleSettings("postgresql", mode, settings.deletes, settings.truncate, keyless=not kind.has_key)
        self._spec = TableSpec(rules, "server1.public.t", row, keys, transactions=settings.has_transactions)
        self._memory = first_memory(self._spec, 1)
        options = DecodeOptions(
            "postgresql", before=mode == "append", transactions=settings.has_transactions, keyless=not kind.has_key
        )
        self._decoder = Decoder(options)
        columns = {**COLUMNS, **service_columns_of(settings)}
        fields = [delta_log.field(name, _LOG_TYPES.get(of, of)) for name, of in columns.items()]
        protocol = delta_log.PROTOCOL_OF_VECTORS
        if kind.properties:
            features = [*protocol["writerFeatures"], "changeDataFeed"]
            protocol = {**protocol, "writerFeatures": features}
        table = HandMadeTable(self._path).create(
            *fields, partition_by=kind.partition_by, properties=kind.properties, protocol=protocol
        )
        self._writer = TableWriter(
            TableFiles(str(self._path)),
            list(key),
            HandCommitter(table),
            IndexCache(path / "cache", 2**20, 2**20),
            layout=kind.layout,
        )
        self._offset = 0

    def commit(self, changes: Sequence[Change]) -> None:
        """Applies a batch and commits it."""
        events = self._decoder.decode(raw_table([self._record(one) for one in changes]), self._schema).events
        located = AppliedWriter(self._writer, self._spec)
        applied = apply_events(self._spec, self._memory, events, located)
        located.write(applied, self._record_of_progress())

    def compact(self) -> None:
        """Commits a compaction of all files."""
        piece = next_file_group(self._writer.snapshot.files.values(), 2**20)
        assert piece
        self._writer.compact(piece, self._record_of_progress())

    def actions(self) -> list[Any]:
        """The actions of the newest commit, without values that differ from run to run."""
        log = sorted((self._path / "_delta_log").glob("*.json"))
        names = _Names()
        found = [json.loads(line) for path in log for line in path.read_text(encoding="utf-8").splitlines()]
        for action in found:
            names.learn(action)
        newest = [json.loads(line) for line in log[-1].read_text(encoding="utf-8").splitlines()]
        return [names.shown(action) for action in newest if "commitInfo" not in action]

    def rows(self) -> list[dict[str, Any]]:
        """All rows, read by another reader."""
        rows = read_by_deltalake(self._path)
        shown = [{n: v for n, v in row.items() if n not in _HIDDEN} for row in rows]
        return sorted(shown, key=lambda row: json.dumps(row, default=str, sort_keys=True))

    def _record_of_progress(self) -> CommitPayload:
        return CommitPayload("progress", "distributary", self._offset)

    def _record(self, one: Change) -> Record:
        at, tx, op, key = one["at"], one.get("tx", one["at"]), one["op"], one.get("key")
        values = {name: one.get(name) for name in ("name", "note")}
        after = None if op in "dt" else {"id": key, **values}
        sequence = json.dumps([str(tx), str(at)])
        source = {"connector": "postgresql", "lsn": at, "txId": tx, "ts_ms": 1000 * at, "sequence": sequence}
        envelope: dict[str, Any] = {"op": op, "after": after, "source": source}
        if op != "r":
            envelope["transaction"] = {"id": f"{tx}:{at}", "total_order": at, "data_collection_order": 1}
        headers = tuple(
            (f"__debezium.{header}", json.dumps({"id": one[name]}).encode())
            for name, header in (("old_key", "oldkey"), ("new_key", "newkey"))
            if name in one
        )
        self._offset += 1
        raw_key = json.dumps({"id": key}).encode() if self._kind.has_key and key is not None else None
        return Record("t", 0, self._offset - 1, 1000 * at, raw_key, json.dumps(envelope).encode(), headers)


class _Names:
    """Names for files and vectors in the order of the log, instead of those that differ from run to run."""

    _VARYING = ("modificationTime", "deletionTimestamp", "size", "sizeInBytes", "offset")

    def __init__(self) -> None:
        self._names: dict[str, str] = {}

    def learn(self, action: Mapping[str, Any]) -> None:
        for kind, details in action.items():
            if kind in ("add", "cdc"):
                word = "changes" if kind == "cdc" else "file"
                folder = re.sub(r"[^/]*$", "", details["path"])
                count = sum(1 for name in self._names.values() if name.endswith(".parquet") and word in name)
                self._names.setdefault(details["path"], f"{folder}{word}-{count + 1}.parquet")

    def shown(self, action: Mapping[str, Any]) -> Any:
        """The action with these names, and its statistics as JSON."""
        [(kind, details)] = action.items()
        found = {name: value for name, value in details.items() if name not in self._VARYING}
        if "path" in found:
            found["path"] = self._names[found["path"]]
        if isinstance(found.get("stats"), str):
            found["stats"] = _of_the_source(json.loads(found["stats"]))
        if found.get("deletionVector"):
            found["deletionVector"] = {"cardinality": found["deletionVector"]["cardinality"]}
        return {kind: found}


def _of_the_source(statistics: Mapping[str, Any]) -> dict[str, Any]:
    """The statistics of a file, of the source's columns alone."""
    return {
        name: {column: one for column, one in value.items() if column in COLUMNS} if isinstance(value, dict) else value
        for name, value in statistics.items()
    }


def golden(kind: Kind) -> str:
    """The text of the kind's file."""
    with tempfile.TemporaryDirectory() as folder:
        table = GoldenTable(kind, Path(folder))
        for batch in kind.before:
            table.commit(batch)
        before = table.rows() if kind.before else []
        table.commit(kind.batch)
        if kind.compacts:
            table.compact()
        shown = {
            "about": kind.about,
            "rows_before": before,
            "batch": list(kind.batch),
            "commit": table.actions(),
            "rows_after": table.rows(),
        }
    return _text(shown)


def _text(shown: Mapping[str, Any]) -> str:
    """JSON with one line for each row, record and action, so that differences are readable."""
    parts = []
    for name, value in shown.items():
        lines = [json.dumps(one, default=str) for one in value] if isinstance(value, list) else []
        inside = ",\n    ".join(lines)
        text = f"[\n    {inside}\n  ]" if lines else json.dumps(value)
        parts.append(f"  {json.dumps(name)}: {text}")
    return "{\n" + ",\n".join(parts) + "\n}\n"


if __name__ == "__main__":
    for name, kind in KINDS.items():
        (FOLDER / f"{name}.json").write_text(golden(kind), encoding="utf-8")
