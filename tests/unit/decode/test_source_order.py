"""The order of changes by fields of the source block, from the config or built in for a connector."""

from __future__ import annotations

import random
from typing import Any, get_args

import pytest
from tests.support.decoding import plain_change, raw_table, rejections

from distributary.config.source import Connector
from distributary.decode.decoder import Decoded, Decoder
from distributary.decode.options import DecodeOptions
from distributary.decode.order_fields import Order, OrderField, parse_order
from distributary.decode.position import CONNECTORS
from distributary.decode.source_order import BUILT_IN, order_of
from distributary.errors import TableHalt
from distributary.evolve.order import check_order
from distributary.types.record_schema import RecordSchema

SCHEMA = RecordSchema({"id": "bigint"}, {"id": "bigint"})


def decoded(connector: str, *sources: Any, order: Order | None = None, op: str = "u") -> Decoded:
    options = DecodeOptions(connector, order=order_of(connector, order or ()))
    records = [
        plain_change(index, {"id": 1}, source={"connector": connector, **one}, op=op)
        for index, one in enumerate(sources)
    ]
    return Decoder(options).decode(raw_table(records), SCHEMA)


def positions(connector: str, *sources: Any, **more: Any) -> list[str]:
    found = decoded(connector, *sources, **more)
    assert rejections(found) == {}
    return list(found.events["position"].to_pylist())


# Source blocks as the connectors write them, in the order of their logs.
LOGS: dict[str, list[dict[str, Any]]] = {
    "informix": [
        {"commit_lsn": "-1", "change_lsn": "-1"},
        {"commit_lsn": "30064771072", "change_lsn": None},
        {"commit_lsn": "30065090612", "change_lsn": "30064963608", "txId": "4", "begin_lsn": "30064963604"},
        {"commit_lsn": "30065090612", "change_lsn": "30065000000"},
        {"commit_lsn": "130065090612", "change_lsn": "9"},
    ],
    "cockroachdb": [
        {"ts_hlc": "1759000000000000000.0000000000"},
        {"ts_hlc": "1759000000000000000.0000000002"},
        {"ts_hlc": "1759000000000000000.0000000010"},
        {"ts_hlc": "1759000000000000001"},
        {"ts_hlc": "11759000000000000000.0000000000"},
    ],
    "yashandb": [
        {"position_scn": None, "group_lsn": None, "group_offset": None, "batch_row_id": None, "instance_id": "1"},
        {"position_scn": 99, "group_lsn": 8, "group_offset": 0, "batch_row_id": 0},
        {"position_scn": 99, "group_lsn": 8, "group_offset": 0, "batch_row_id": 10},
        {"position_scn": 99, "group_lsn": 10, "group_offset": 0, "batch_row_id": 2},
        {"position_scn": 100, "group_lsn": 1, "group_offset": 0, "batch_row_id": 0},
    ],
    "ibmi": [
        {"sequence": "9", "receiver": "RECV008", "receiver_library": "LIB"},
        {"sequence": "82", "receiver": "RECV008"},
        {"sequence": "18446744073709551615", "receiver": "RECV009"},
    ],
    "mongodb": [
        {"ts_ms": 0, "ord": 1, "rs": "rs0", "collection": "c"},
        {"ts_ms": 1_700_000_000_000, "ord": 9},
        {"ts_ms": 1_700_000_000_000, "ord": 10},
        {"ts_ms": 1_700_000_001_000, "ord": 1},
    ],
}


def test_2_1_every_connector_that_is_known_by_its_fields_has_a_log_here() -> None:
    assert LOGS.keys() == BUILT_IN.keys()


def test_the_config_names_the_connectors_that_have_positions() -> None:
    assert set(get_args(Connector)) == {*CONNECTORS, *BUILT_IN}


@pytest.mark.parametrize("connector", LOGS)
def test_2_1_positions_sort_as_the_log_of_the_connector(connector: str) -> None:
    found = positions(connector, *LOGS[connector], op="r")
    assert found == sorted(set(found))
    shuffled = random.Random(1).sample(LOGS[connector], len(LOGS[connector]))
    assert sorted(positions(connector, *shuffled, op="r")) == found


def test_2_1_a_connector_that_was_never_seen_is_ordered_by_the_fields_of_the_config() -> None:
    order = parse_order(["commit_ts", "part text", "no decimal"])
    assert order == (OrderField("commit_ts"), OrderField("part", "text"), OrderField("no", "decimal"))
    log = [
        {"commit_ts": 9, "part": "b", "no": 5},
        {"commit_ts": "10", "part": "a", "no": 3.25},
        {"commit_ts": 10, "part": "a", "no": "3.3"},
        {"commit_ts": 10, "part": "b", "no": None},
    ]
    found = positions("seen-never", *log, order=order)
    assert found == sorted(set(found))
    assert found[1] == "000:00000000000000000010/a/00000000000000000003.2500000000"


@pytest.mark.parametrize("bad", ["x", "1.5", -2, "1" * 21, {"a": 1}, [1], True])
def test_6_3_a_value_that_is_no_number_makes_no_position(bad: Any) -> None:
    found = decoded("any", {"n": 1}, {"n": bad}, order=parse_order(["n"]))
    assert found.rejected["offset"].to_pylist() == [1]
    assert set(rejections(found).values()) <= {"bad-position", "wrong-json-type"}


@pytest.mark.parametrize("connector", LOGS)
def test_6_3_a_number_beyond_64_bits_makes_no_position_of_a_known_connector(connector: str) -> None:
    (field, *_) = BUILT_IN[connector]
    found = decoded(connector, {field.name: str(2**64 - 1)}, {field.name: str(2**64)}, {field.name: "9" * 20})
    assert rejections(found) == {1: "bad-position", 2: "bad-position"}
    assert rejections(decoded("any", {"n": "9" * 20}, order=parse_order(["n"]))) == {}


@pytest.mark.parametrize("bad", ["a/b", "a'b", "a b", "ä", "x" * 129, "a\n", {"a": 1}])
def test_6_3_a_text_of_other_characters_makes_no_position(bad: Any) -> None:
    found = decoded("any", {"n": "a:B-1"}, {"n": bad}, order=parse_order(["n text"]))
    assert rejections(found) == {1: "bad-position"}


def test_6_3_a_change_without_any_of_the_fields_has_no_position_and_a_snapshots_row_is_older_than_all() -> None:
    assert rejections(decoded("informix", {"commit_lsn": None})) == {0: "no-position"}
    assert positions("cockroachdb", {}, op="r") == ["000:"]


def test_2_7_changes_of_one_commit_are_one_transaction() -> None:
    found = decoded("informix", *LOGS["informix"][2:])
    one, same, other = found.events["transaction"].to_pylist()
    assert one == same != other


def test_2_1_a_connector_with_rules_of_its_own_keeps_them() -> None:
    order = parse_order(["n"])
    assert order_of("postgresql", order) == ()
    assert order_of("informix", order) == order
    assert order_of("informix", ()) == BUILT_IN["informix"]
    assert order_of("vitess", ()) == ()


@pytest.mark.parametrize("texts", [["a b"], ["a-b"], [""], ["a", "a text"], ["a number more"]])
def test_what_names_no_field_is_refused(texts: list[str]) -> None:
    with pytest.raises(ValueError, match=r"is n|occurs twice"):
        parse_order(texts)


def test_5_4_a_table_that_was_ordered_by_other_fields_halts() -> None:
    order = parse_order(["a", "b text"])
    check_order((("a", "number"), ("b", "text")), order)
    check_order(None, ())
    for known in (None, (("b", "text"), ("a", "number")), (("a", "number"),)):
        with pytest.raises(TableHalt, match="order-changed"):
            check_order(known, order)


def test_records_that_are_read_with_care_have_the_same_positions() -> None:
    quick = {"commit_lsn": "30065090612", "change_lsn": "7"}
    assert positions("informix", quick, {**quick, "snapshot": 0, "ts_ms": 1.0}) == 2 * positions("informix", quick)
