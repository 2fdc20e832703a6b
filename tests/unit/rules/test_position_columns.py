"""Columns of positions are compared like single positions."""

from __future__ import annotations

import random
from functools import cache
from typing import Any

import pyarrow as pa
import pytest
from tests.support.random_share import Scale

from distributary.decode.position import CONNECTORS, offset_position, position_of
from distributary.decode.source_block import Source
from distributary.rules.event import Position
from distributary.rules.order import compare, precedes_truncate
from distributary.rules.position_columns import follow, lowest_position, precede, precede_truncate
from distributary.rules.position_text import position_order, read_position


def lsn(rng: random.Random) -> str:
    return f"0000002a:{rng.randrange(9, 11):08x}:{rng.randrange(9, 11):04x}"


def source(rng: random.Random, connector: str, op: str) -> dict[str, Any]:
    """A source block with few different values, so that each part is often equal."""
    if connector == "sqlserver":
        change = None if op == "r" or rng.random() < 0.2 else lsn(rng)
        return {"commit_lsn": lsn(rng), "change_lsn": change, "event_serial_no": rng.choice([None, 1, 2, 10])}
    if connector == "db2":
        hexes = [f"00000000:0000000{digit}:0000000000000001" for digit in "19ab"]
        return {"commit_lsn": rng.choice(hexes), "change_lsn": rng.choice([None, *hexes])}
    if connector == "postgresql":
        level = rng.choice(["null", '"9"', '"10"'])
        return {
            "sequence": rng.choice([None, f'[{level},"{rng.randrange(8, 12)}"]']),
            "lsn": rng.choice([9, 10]) if op != "r" else rng.choice([0, None, 9, 10]),
            "ts_ms": rng.randrange(3),
        }
    if connector == "oracle":
        redo = rng.choice([None, " 0x0001.0002.0010 ", "0x0001.0002.0011"])
        scns = {"scn": rng.choice(["9", "10"]), "commit_scn": rng.choice([None, "9", "10", "100"])}
        return {**scns, "rs_id": redo, "ssn": rng.choice([None, 0, 1])}
    gtids = {"mysql": ["a-b:9", "a-b:10", "c:9"], "mariadb": ["0-1-9", "0-2-10", "1-1-9"]}[connector]
    binlog = {"file": f"b.{rng.choice([9, 10])}", "pos": rng.choice([9, 10]), "row": rng.choice([None, 0, 1])}
    return {**binlog, **rng.choice([{}, {"gtid": rng.choice(gtids), "server_id": rng.choice([1, 2])}])}


def text(rng: random.Random, connector: str, op: str) -> str:
    epoch = f"{rng.choice([0, 0, 1]):03d}:"
    found = position_of(connector)(Source(**source(rng, connector, op)), op)
    return epoch + (found or offset_position(5, 0, 7))


@pytest.fixture(scope="module")
def count(scale: Scale) -> int:
    """How many positions of each connector are compared."""
    return scale(300, at_least=60)


@cache
def cases(connector: str, count: int) -> list[tuple[Position, list[str | None]]]:
    rng = random.Random(connector)
    found = []
    for _ in range(count):
        at = read_position(connector, text(rng, connector, "t"))
        if at is not None:
            texts = [text(rng, connector, rng.choice("rcud")) for _ in range(rng.randrange(30))]
            found.append((at, [*texts, None]))
    assert len(found) > 2 / 3 * count
    return found


@pytest.mark.parametrize("connector", CONNECTORS)
def test_3_6_rows_before_a_truncate(connector: str, count: int) -> None:
    outcomes = set()
    for at, texts in cases(connector, count):
        positions = [None if one is None else read_position(connector, one) for one in texts]
        expected = [precedes_truncate(connector, position, at) for position in positions]
        assert precede_truncate(connector, pa.array(texts, pa.string()), at).tolist() == expected, (at, texts)
        outcomes |= set(expected)
    assert outcomes == {True, False}


@pytest.mark.parametrize("connector", CONNECTORS)
def test_2_1_ends_behind_a_truncate(connector: str, count: int) -> None:
    outcomes = set()
    for at, texts in cases(connector, count):
        positions = [None if one is None else read_position(connector, one) for one in texts]
        expected = [one is None or compare(connector, at, one) < 0 for one in positions]
        assert follow(connector, pa.array(texts, pa.string()), at).tolist() == expected, (at, texts)
        outcomes |= set(expected)
    assert outcomes == {True, False}


@pytest.mark.parametrize("connector", CONNECTORS)
def test_2_1_positions_before_another_one(connector: str, count: int) -> None:
    rng, outcomes = random.Random(connector), set()
    for _, texts in cases(connector, count):
        at = text(rng, connector, rng.choice("rcud"))
        position = read_position(connector, at)
        expected = []
        for one in texts:
            other = None if one is None else read_position(connector, one)
            if one is not None and "@0000" in one[:8] and "@0000" in at[:8]:
                expected.append(one < at)
            else:
                expected.append(other is not None and position is not None and compare(connector, other, position) < 0)
        assert precede(connector, pa.array(texts, pa.string()), at).tolist() == expected, (at, texts)
        outcomes |= set(expected)
    assert outcomes == {True, False}


def _kind(connector: str, text: str) -> str | None:
    """Equal for positions of which each stands before, at or behind each other one; None for those of no such kind."""
    if connector == "postgresql":
        return text[:4] if "." in text else None
    return [*text.split("/"), ""][3] if connector in ("mysql", "mariadb") else ""


@pytest.mark.parametrize("connector", CONNECTORS)
def test_2_1_the_lowest_of_many_positions(connector: str, count: int) -> None:
    found, order = 0, position_order(connector)
    for _, texts in cases(connector, count):
        given = [one for one in texts if one is not None]
        lowest = lowest_position(connector, pa.array(texts, pa.string()))
        if not given:
            assert lowest is None
            continue
        assert lowest in given
        # GTIDs of several origins are no total order, nor are positions with commits of unknown level.
        kind = _kind(connector, lowest or "")
        alike = [one for one in given if kind is not None and _kind(connector, one) == kind]
        assert all(order(lowest) <= order(one) for one in alike), (lowest, given)
        found += 1
    assert found > 2 / 3 * count


def test_2_1_of_a_server_that_took_over_the_lowest_position_is_that_of_the_old_one() -> None:
    old, new = "000:9/5/0/1/a/00000000000000000007", "000:1/4/0/2/a/00000000000000000009"
    assert lowest_position("mysql", pa.array([new, old])) == old
    assert precede("mysql", pa.array([old, new, None]), new).tolist() == [True, False, False]
