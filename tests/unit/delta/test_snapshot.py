"""Versions of a table from its log, and tables that are refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.support.delta_log import PROTOCOL_OF_VECTORS, HandMadeTable, array_of, field, map_to, metadata, struct

from distributary.delta.log_reader import LogReader
from distributary.delta.snapshot import first_snapshot
from distributary.delta.storage import TableFiles
from distributary.delta.table_schema import TableSchema, fitted_column, renamed, stored_column
from distributary.errors import TableHalt

VECTOR = {"storageType": "i", "pathOrInlineDv": "a", "sizeInBytes": 1, "cardinality": 1}
OTHER_VECTOR = {**VECTOR, "pathOrInlineDv": "b"}


def add(path: str, vector: dict[str, Any] | None = None, **more: Any) -> dict[str, Any]:
    action: dict[str, Any] = {"path": path, "size": 1, "partitionValues": {}, "modificationTime": 0, "dataChange": True}
    return {"add": action | ({"deletionVector": vector} if vector else {}) | more}


def remove(path: str, vector: dict[str, Any] | None = None) -> dict[str, Any]:
    return {"remove": {"path": path, "dataChange": True} | ({"deletionVector": vector} if vector else {})}


def table_at(path: Path) -> HandMadeTable:
    return HandMadeTable(path).create(field("id", "long"))


def reader_of(path: Path) -> LogReader:
    return LogReader(TableFiles(str(path)))


def test_versions_are_read_from_the_first_and_from_a_known_one_alike(tmp_path: Path) -> None:
    table, reader = table_at(tmp_path), reader_of(tmp_path)
    known = reader.newest()
    assert (known.snapshot.version, dict(known.snapshot.files)) == (0, {})
    for actions in (
        [add("a"), add("b")],
        [add("a", VECTOR), remove("a")],  # an entry goes before another of the same file comes
        [remove("b"), add("c")],
        [remove("a"), add("d")],  # not the live entry of a: it stays
        [add("c", tags={"x": "y"})],  # the same entry once more, with other details
    ):
        table.commit(*actions)
        known = reader.newest(known)
        assert known == reader.newest()
    assert sorted(known.snapshot.files) == ["a", "c", "d"]
    assert known.snapshot.version == 5
    vector = known.snapshot.files["a"].vector
    assert vector is not None
    assert vector.place == "a"
    assert known.snapshot.files["c"].action["tags"] == {"x": "y"}


def test_the_schema_follows_the_log(tmp_path: Path) -> None:
    table, reader = table_at(tmp_path), reader_of(tmp_path)
    known = reader.newest()
    assert known.snapshot.schema.arrow.names == ["id"]
    table.commit(metadata([field("id", "long"), field("x", "string")]))
    known = reader.newest(known)
    assert known.snapshot.schema.arrow == pa.schema({"id": pa.int64(), "x": pa.string()})
    assert not known.snapshot.allows_vectors


def test_a_file_that_is_live_twice_is_refused(tmp_path: Path) -> None:
    table = table_at(tmp_path)
    table.commit(add("a"))
    table.commit(add("a", VECTOR))
    with pytest.raises(TableHalt, match="the file a twice in one version"):
        reader_of(tmp_path).newest()


def test_a_table_made_anew_is_noticed(tmp_path: Path) -> None:
    table, reader = table_at(tmp_path / "t"), reader_of(tmp_path / "t")
    table.commit(add("a"))
    known = reader.newest()
    (tmp_path / "t").rename(tmp_path / "old")
    other = table_at(tmp_path / "t")
    other.commit(add("b", modificationTime=7))
    other.commit(add("c"))
    assert sorted(reader.newest(known).snapshot.files) == ["b", "c"]


def test_no_table_and_a_hole_in_the_log_are_reported(tmp_path: Path) -> None:
    with pytest.raises(TableHalt, match="no Delta table at"):
        reader_of(tmp_path / "nothing").newest()
    table = table_at(tmp_path / "t")
    table.commit(add("a"))
    table.commit(add("b"))
    (tmp_path / "t/_delta_log/00000000000000000001.json").unlink()
    with pytest.raises(TableHalt, match="lacks the commit of version 1"):
        reader_of(tmp_path / "t").newest()


def test_a_damaged_commit_is_reported(tmp_path: Path) -> None:
    table_at(tmp_path)
    path = tmp_path / "_delta_log/00000000000000000000.json"
    path.write_bytes(path.read_bytes()[:-9])
    with pytest.raises(TableHalt, match="damaged"):
        reader_of(tmp_path).newest()


def checkpoint_rows(*actions: dict[str, Any]) -> pa.Table:
    vector = pa.struct({"storageType": pa.string(), "pathOrInlineDv": pa.string(), "offset": pa.int32(),
                        "sizeInBytes": pa.int32(), "cardinality": pa.int64()})  # fmt: skip
    schema = pa.schema({
        "add": pa.struct({"path": pa.string(), "size": pa.int64(), "partitionValues": pa.map_(pa.string(), pa.string()),
                          "stats": pa.string(), "stats_parsed": pa.struct({"numRecords": pa.int64()}),
                          "deletionVector": vector}),
        "metaData": pa.struct({"schemaString": pa.string(), "partitionColumns": pa.list_(pa.string()),
                               "configuration": pa.map_(pa.string(), pa.string())}),
        "protocol": pa.struct({"minReaderVersion": pa.int32(), "minWriterVersion": pa.int32(),
                               "readerFeatures": pa.list_(pa.string()), "writerFeatures": pa.list_(pa.string())}),
        "sidecar": pa.struct({"path": pa.string()}),
        "txn": pa.struct({"appId": pa.string()}),
    })  # fmt: skip
    return pa.Table.from_pylist(list(actions), schema)


HEAD: list[dict[str, Any]] = [
    {"protocol": PROTOCOL_OF_VECTORS},
    {"metaData": {"schemaString": json.dumps(struct(field("id", "long"))), "partitionColumns": [],
                  "configuration": [("delta.enableDeletionVectors", "true")]}},
    {"txn": {"appId": "x"}},
]  # fmt: skip
FILE = {
    "path": "a",
    "size": 3,
    "partitionValues": [("p", None)],
    "stats": '{"numRecords":4}',
    "stats_parsed": {"numRecords": 4},
    "deletionVector": {**VECTOR, "offset": None},
}


@pytest.mark.parametrize("form", ["one file", "two parts", "sidecar", "sidecar and json"])
def test_every_form_of_checkpoint_is_read(tmp_path: Path, form: str) -> None:
    table = table_at(tmp_path)
    for number in range(3):
        table.commit(add(f"before {number}"))
    log, start = tmp_path / "_delta_log", f"{2:020d}.checkpoint"
    (log / "_sidecars").mkdir()
    files = [{"add": FILE}, {"add": {**FILE, "path": "b", "deletionVector": None}}]
    if form == "one file":
        pq.write_table(checkpoint_rows(*HEAD, *files), log / f"{start}.parquet")
    elif form == "two parts":
        pq.write_table(checkpoint_rows(*HEAD, files[0]), log / f"{start}.{1:010d}.{2:010d}.parquet")
        pq.write_table(checkpoint_rows(files[1]), log / f"{start}.{2:010d}.{2:010d}.parquet")
        pq.write_table(checkpoint_rows(*HEAD), log / f"{3:020d}.checkpoint.{1:010d}.{2:010d}.parquet")  # not complete
    else:
        pq.write_table(checkpoint_rows(*files), log / "_sidecars/s.parquet")
        name = f"{start}.80a083e8-7026-4e79-81be-64bd76c43a11"
        top = [*HEAD, {"sidecar": {"path": "s.parquet"}}]
        if form == "sidecar":
            pq.write_table(checkpoint_rows(*top), log / f"{name}.parquet")
        else:
            plain = {"metaData": {**HEAD[1]["metaData"], "configuration": {"delta.enableDeletionVectors": "true"}}}
            lines = [json.dumps(action) for action in ({"protocol": PROTOCOL_OF_VECTORS}, plain, top[-1])]
            (log / f"{name}.json").write_text("\n".join(lines))
    for version in (0, 1):
        (log / f"{version:020d}.json").unlink()
    found = reader_of(tmp_path).newest().snapshot
    assert found.version == 3
    assert sorted(found.files) == ["a", "b", "before 2"]
    assert found.allows_vectors
    assert found.schema.arrow.names == ["id"]
    one = found.files["a"]
    assert one.entry == ("a", "ia")
    assert (one.row_count, dict(one.partition_values), found.files["b"].vector) == (4, {"p": None}, None)
    assert "stats_parsed" not in one.action


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"protocol": {"minReaderVersion": 4, "minWriterVersion": 7}}, "its protocol has the versions 4 and 7"),
        ({"feature": "rowTracking"}, "the table feature rowTracking"),
        ({"feature": "icebergCompatV2"}, "the table feature icebergCompatV2"),
        ({"feature": "catalogManaged"}, "the table feature catalogManaged"),
        ({"feature": "neverHeardOf"}, "the table feature neverHeardOf"),
        ({"properties": {"delta.columnMapping.mode": "id"}}, "column mapping by id"),
        ({"field": field("x", "long", {"delta.generationExpression": "id + 1"})}, "the column x is generated"),
        ({"field": field("x", "long", {"delta.identity.start": 1, "delta.identity.step": 1})}, "x is an identity"),
        ({"field": field("x", "long", {"delta.invariants": "{}"})}, "the column x has an invariant"),
        ({"field": field("x", "string", {"__CHAR_VARCHAR_TYPE_STRING": "varchar(3)"})}, "x has a limited length"),
        ({"field": field("x", "long", {"delta.unheard.of": "y"})}, "the column x has delta.unheard.of"),
        ({"field": field("x", struct(field("y", "long", nullable=False)))}, "x has fields that must not be NULL"),
        (
            {"field": field("x", array_of(struct(field("y", "long", {"delta.invariants": ""}))))},
            "the column x.y has an invariant",
        ),
    ],
)  # fmt: skip
def test_what_can_not_be_honoured_is_refused_by_name(change: dict[str, Any], named: str) -> None:
    features: list[str] = [
        *PROTOCOL_OF_VECTORS["writerFeatures"],
        *([change["feature"]] if "feature" in change else []),
    ]
    protocol = change.get("protocol") or {**PROTOCOL_OF_VECTORS, "writerFeatures": features}
    fields = [field("id", "long"), *([change["field"]] if "field" in change else [])]
    table = first_snapshot(0, [{"protocol": protocol}, metadata(fields, (), change.get("properties"))])
    with pytest.raises(TableHalt, match=named) as caught:
        assert table.schema
    assert caught.value.code == "table-not-writable"


def test_old_protocols_and_harmless_features_are_honoured() -> None:
    protocols: list[dict[str, Any]] = [{"minReaderVersion": 1, "minWriterVersion": w} for w in range(1, 7)]
    harmless = ["clustering", "domainMetadata", "typeWidening", "v2Checkpoint", "inCommitTimestamp"]
    protocols.append({**PROTOCOL_OF_VECTORS, "writerFeatures": harmless})
    fields = [field("id", "long", {"delta.typeChanges": [], "comment": "c", "CURRENT_DEFAULT": "3"})]
    for protocol in protocols:
        table = first_snapshot(0, [{"protocol": protocol}, metadata(fields)])
        assert table.schema.arrow.names == ["id"]


NESTED = field(
    "n",
    struct(
        field("l", array_of(struct(field("a", "long", number=4))), number=3),
        field("m", map_to(struct(field("b", "date", number=6))), number=5),
    ),
    number=2,
)


def test_mapped_columns_have_physical_names_and_ids_at_all_depths() -> None:
    schema = TableSchema.of(struct(field("id", "long", number=1), NESTED))
    (number, nested) = schema.columns
    assert (number.name, number.physical) == ("id", "col-1")
    assert number.stored.metadata == {b"PARQUET:field_id": b"1"}
    kind = nested.stored.type
    assert [inner.name for inner in kind] == ["col-3", "col-5"]
    assert kind.field(0).type.value_type.field(0).metadata == {b"PARQUET:field_id": b"4"}
    assert kind.field(1).type.item_type.field(0).name == "col-6"
    assert nested.logical.type.field("m").type.item_type.field(0).name == "b"


@pytest.mark.parametrize("start", [0, 1, 2, 3])
def test_nested_values_are_the_same_under_other_names(start: int) -> None:
    """Of slices and with NULLs at every depth."""
    (column,) = TableSchema.of(struct(NESTED)).columns
    values: list[Any] = [
        {"l": [{"a": 1}, None, {"a": None}], "m": [("x", {"b": None})]},
        None,
        {"l": None, "m": [("y", None), ("z", {"b": None})]},
        {"l": [], "m": None},
        {"l": [{"a": 9}], "m": []},
    ]
    logical = pa.chunked_array([pa.array(values, column.logical.type).slice(start)])
    stored = renamed(logical, column.stored.type)
    assert stored.type == column.stored.type
    stored.validate(full=True)
    back = renamed(stored, column.logical.type)
    assert back.to_pylist() == values[start:]


def test_narrower_values_are_widened_and_wrong_ones_refused() -> None:
    narrow = pa.chunked_array([pa.array([{"a": 1}], pa.struct({"a": pa.int32()}))])
    assert fitted_column(narrow, pa.struct({"a": pa.int64()})).to_pylist() == [{"a": 1}]
    with pytest.raises(pa.ArrowInvalid):
        fitted_column(pa.chunked_array([[2**40]]), pa.int32())


def test_nested_fields_go_by_their_names() -> None:
    """Two of one type that stand in another order must not be taken for each other."""
    column = pa.chunked_array([pa.array([{"a": 1, "b": 2}])])
    other = pa.struct({"b": pa.int64(), "a": pa.int64()})
    for fit in (fitted_column, stored_column):
        assert fit(column, other).to_pylist() == [{"b": 2, "a": 1}]
    more = pa.struct({"b": pa.int64(), "c": pa.int64()})
    assert stored_column(column, more).to_pylist() == [{"b": 2, "c": None}]
    with pytest.raises(pa.ArrowInvalid, match="other fields"):
        fitted_column(column, more)
