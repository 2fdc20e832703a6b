"""`kill -9` of the service, again and again, while it applies random histories: the tables become what the reference
says all the same, and every unreadable record is in quarantine once."""

from __future__ import annotations

import json
import os
import signal
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any
from urllib.parse import unquote

import pytest
from deltalake import DeltaTable
from tests.model.case import Case
from tests.model.packs import begun, pack
from tests.support.changes import Topic
from tests.support.histories import CommandTable
from tests.support.kafka import create_topic, end_offsets, produce
from tests.support.kills import AT_ANY_TIME, Killer, children
from tests.support.playback import Playback
from tests.support.spark import rows_of

from distributary.control.lease import read_holder
from distributary.control.lease_holder import this_process
from distributary.failpoints import POINTS, VARIABLE

SEED = int(os.environ.get("KILLS_SEED", "6"))
MINUTES = float(os.environ.get("KILLS_MINUTES", "30"))
SMALL: dict[str, Any] = {
    "trigger": {"interval": "1s", "max_records": 40},
    "spark": {"spark.driver.memory": "1g", "spark.master": "local[2]"},
    "defaults": {"maintenance": {"compact_after": 3}},
}


def case(flavour: str, histories: int, seed: int) -> Case:
    """A pack that needs no pauses: what has been applied when the rest comes is left to the kills."""
    for number in range(seed, seed + 100):
        found = pack(flavour, histories, number)
        found = begun(replace(found, delivery=replace(found.delivery, pauses=(), held=None)))
        if found.reaches_truth() and found.happen().decidable():
            return found
    raise AssertionError("no such pack")


def service(kafka: str, folder: Path, cases: Sequence[Case], spoilt: int) -> tuple[Killer, list[CommandTable]]:
    """The service with all records in Kafka, one that nobody can read before every `spoilt`-th; and what they are to
    become."""
    playback = Playback(kafka, folder, **SMALL)
    tables = [CommandTable(playback, one, spoilt) for one in cases]
    playback.configure({"match": f"{one.flavour}.t"} for one in cases)
    for table in tables:
        table.send(0)
    # By offsets: those of a compacted topic have gaps.
    topics = {table.topic: sum(end_offsets(kafka, table.topic).values()) for table in tables}
    return Killer(playback, [(one.flavour, "t") for one in cases], topics, Random(SEED)), tables


def check(killer: Killer, tables: Sequence[CommandTable]) -> None:
    """All is applied, once, whatever was killed."""
    done = killer.finish()
    assert done.exit_code == 0, str(done)
    different = [str(found) for table in tables if (found := table.difference())]
    assert not different, f"after the kills {dict(killer.kills)}:\n" + "\n".join(different)
    places = [(row["topic"], row["partition"], row["offset"]) for row in killer.playback.quarantined()]
    assert len(places) == len(set(places))
    unreadable = Counter({table.topic: table.unreadable for table in tables})
    assert Counter(topic for topic, _, _ in places) == +unreadable
    assert sum(unreadable.values())


def test_6_1_kill_9_loses_and_doubles_nothing_and_a_second_driver_is_refused(kafka: str, tmp_path: Path) -> None:
    killer, tables = service(kafka, tmp_path, [case("postgresql", 3, SEED)], 30)
    refuse_second_driver(killer)
    check(killer, tables)
    assert "taking over from a driver that is gone" in killer.playback.log(3)
    assert not killer.lease.exists()


@pytest.mark.slow
def test_6_1_kill_9_at_several_points_loses_and_doubles_nothing(kafka: str, tmp_path: Path) -> None:
    killer, tables = service(kafka, tmp_path, [case("sqlserver_direct", 3, SEED), case("postgresql", 3, SEED)], 30)
    assert killer.kill("before-commit")
    refuse_second_driver(killer)
    assert killer.kill(AT_ANY_TIME)
    assert not killer.is_through, "the last run had nothing to do"
    check(killer, tables)
    assert "taking over from a driver that is gone" in killer.playback.log(4)
    assert not killer.lease.exists()


def refuse_second_driver(killer: Killer) -> None:
    """A run is killed after its second commit; meanwhile another one is refused."""
    with killer.playback.start(**{VARIABLE: "after-commit=kill@2"}) as first:
        until_held(killer.lease, first.process.pid)
        second = killer.playback.run()
        assert second.exit_code == 3, str(second)
        assert f"another driver runs this config: process {first.process.pid} on " in second.output
        assert "stop the other driver first" in second.output
        assert first.ended(300).exit_code == -signal.SIGKILL
    assert killer.lease.exists()


def until_held(lease: Path, pid: int) -> None:
    """Until the process has the lease."""
    until = time.monotonic() + 300
    while (holder := read_holder(str(lease))) is None or holder.pid != pid:
        assert time.monotonic() < until, f"{lease} names {holder}"
        time.sleep(0.1)


@pytest.mark.slow
def test_6_1_kill_9_while_files_are_compacted_loses_and_doubles_nothing(kafka: str, tmp_path: Path) -> None:
    playback = Playback(kafka, tmp_path, **SMALL)
    # A file for each part, each by a job of its own: when the first one is there the commit is still to come.
    playback.configure([{"match": "dbo.t", "partition_by": ["part"]}])
    topic, parts, batches = Topic(f"{playback.prefix}.dbo.t"), 5, 4
    create_topic(kafka, topic.name)
    rows = [(number, number % parts) for number in range(batches * SMALL["trigger"]["max_records"])]
    for number, part in rows:
        topic.change("c", {"id": number}, {"id": number, "part": part}, at=number)
    produce(kafka, topic.records)
    place = tmp_path / "lake" / "dbo" / "t"

    def files() -> set[Path]:
        return set(place.glob("*/*.parquet"))

    with playback.start(**{VARIABLE: "before-compaction=wait(3)"}) as running:
        running.wait_until(lambda: '"point": "before-compaction"' in running.log.read_text("utf-8"))
        before, deadline = files(), time.monotonic() + 120
        while not (new := files() - before):
            assert time.monotonic() < deadline, running.log.read_text("utf-8")[-4000:]
        for pid in (*children(running.process.pid), running.process.pid):
            os.kill(pid, signal.SIGKILL)
        running.ended(60)
    table = DeltaTable(str(place))
    assert "OPTIMIZE" not in [commit["operation"] for commit in table.history()]
    assert not {Path(unquote(uri)).name for uri in table.file_uris()} & {path.name for path in new}
    done = playback.run()
    assert done.exit_code == 0, str(done)
    assert rows_of(place, "id", "part") == sorted(rows, key=repr)
    assert "OPTIMIZE" in [commit["operation"] for commit in DeltaTable(str(place)).history()]


@pytest.mark.slow
def test_a_driver_whose_lease_another_one_took_ends_what_is_in_flight_and_says_who(kafka: str, tmp_path: Path) -> None:
    killer, tables = service(kafka, tmp_path, [case("sqlserver_direct", 3, SEED)], 30)
    with killer.playback.start() as slept:
        until_held(killer.lease, slept.process.pid)
        other = replace(this_process(str(killer.lease)), host="driver-7", machine="another boot pid:[1]")
        killer.lease.write_text(json.dumps(other.to_json()), encoding="utf-8")
        run = slept.ended(300)
    assert run.exit_code == 3, str(run)
    assert "another driver has taken over this config: process" in run.output
    assert "on driver-7" in run.output
    # The other one gives no sign: it is waited for, and then followed.
    check(killer, tables)
    assert "waiting for its next heartbeat" in killer.playback.log(2)


@pytest.mark.slow
@pytest.mark.timeout(3 * 3600)
def test_6_1_half_an_hour_of_kills_at_all_points_loses_and_doubles_nothing(kafka: str, tmp_path: Path) -> None:
    end, random, kills, round_ = time.monotonic() + 60 * MINUTES, Random(SEED), Counter[str](), 0
    while time.monotonic() < end or set(kills) != {*POINTS, AT_ANY_TIME}:
        flavours = random.sample(["sqlserver_direct", "db2", "postgresql", "mariadb"], 2)
        cases = [case(flavour, 12, SEED + round_) for flavour in flavours]
        folder = tmp_path / str(round_)
        folder.mkdir()
        killer, tables = service(kafka, folder, cases, 25)
        killer.later = 3
        wheres = [*POINTS, *[AT_ANY_TIME] * 3]
        random.shuffle(wheres)
        # All is planned at once, and tables are made once: where that can be cut short comes first.
        first = ["before-plan", "after-schema-change"]
        for where in [*first, *(where for where in wheres if where not in first)]:
            if killer.is_through:
                break
            killer.kill(where)
        assert killer.kills, "no kill came about"
        check(killer, tables)
        kills += killer.kills
        print(f"round {round_}: {dict(killer.kills)}, applied at each: {killer.progress} of {killer.topics}")  # noqa: T201
        round_ += 1
    assert kills[AT_ANY_TIME] >= round_ / 2
