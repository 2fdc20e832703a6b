"""The lease: who gets it, who waits, and who learns that it is lost."""

from __future__ import annotations

import shutil
import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
import yaml
from pyspark.sql import SparkSession
from tests.support.waiting import wait_until

from distributary.config import Config, load
from distributary.control.lease import Lease, is_lake_there, lease_paths, read_holder, refuse_second
from distributary.control.lease_holder import Holder, this_process
from distributary.errors import AlreadyRunning, SetupError, TransientError
from distributary.storage.json_file import JsonFile, names_in

SHORT = 0.4
"""Seconds between two signs of life in these tests; three times that without one, and the lease is free."""


class Drivers:
    """Drivers of configs in one folder; each records the reports of its lease's loss."""

    def __init__(self, session: SparkSession, folder: Path) -> None:
        self.session = session
        self.folder = folder
        self._leases: list[Lease] = []

    def config(self, prefix: str = "server1", lake: str = "lake", checkpoint: str = "checkpoint") -> Config:
        text = {
            "version": 1,
            "kafka": {"bootstrap.servers": "localhost:1"},
            "source": {"topic_prefix": prefix},
            "target": {"path": str(self.folder / lake)},
            "checkpoint": str(self.folder / checkpoint),
            "tables": [{"match": "*.*"}],
        }
        path = self.folder / "config.yaml"
        path.write_text(yaml.safe_dump(text), encoding="utf-8")
        return load(path)

    def start(self, config: Config | None = None) -> tuple[Lease, list[AlreadyRunning]]:
        """A driver that has the lease. Raises AlreadyRunning."""
        lost: list[AlreadyRunning] = []
        config = config or self.config()
        lease = Lease(self.session, config, lost.append, beat_every=SHORT, expires_after=3 * SHORT)
        self._leases.append(lease)
        lease.acquire()
        return lease, lost

    def write(self, holder: Holder, config: Config | None = None) -> None:
        """A lease of another process."""
        for path in lease_paths(config or self.config()):
            JsonFile(self.session, path).write(holder.to_json())

    def end(self) -> None:
        for lease in self._leases:
            lease.release()


@pytest.fixture
def drivers(session: SparkSession, tmp_path: Path) -> Iterator[Drivers]:
    drivers = Drivers(session, tmp_path)
    yield drivers
    drivers.end()


def elsewhere(config: Config) -> Holder:
    """A driver on another machine: whether it lives can't be seen from here."""
    return replace(this_process(lease_paths(config)[0]), host="other", machine="another boot pid:[1]")


def test_the_second_driver_is_refused_until_the_first_has_ended(drivers: Drivers) -> None:
    first, lost = drivers.start()
    with pytest.raises(AlreadyRunning, match=f"process {this_process('').pid} on"):
        drivers.start()
    with pytest.raises(AlreadyRunning):
        refuse_second(drivers.config())
    time.sleep(2 * SHORT)
    first.release()
    assert not lost
    refuse_second(drivers.config())
    drivers.start()


@pytest.mark.parametrize(
    ("other", "refused"),
    [
        ({"prefix": "server2", "checkpoint": "other"}, False),
        ({"lake": "other", "checkpoint": "third"}, False),
        ({"checkpoint": "other"}, True),
        ({"prefix": "server2", "lake": "other"}, True),
    ],
)
def test_the_tables_and_the_checkpoint_are_of_one_driver_each(
    drivers: Drivers, other: dict[str, str], refused: bool
) -> None:
    _, lost = drivers.start(drivers.config())
    if refused:
        with pytest.raises(AlreadyRunning):
            drivers.start(drivers.config(**other))
        # What the refused one had got already it has given back.
        assert read_holder(lease_paths(drivers.config(prefix="server2", lake="other"))[0]) is None
    else:
        drivers.start(drivers.config(**other))
    time.sleep(2 * SHORT)
    assert not lost


def test_a_lease_whose_volume_is_gone_is_renewed_once_it_is_back(drivers: Drivers, tmp_path: Path) -> None:
    config = drivers.config()
    lease, away = Path(lease_paths(config)[0]), tmp_path / "away"
    _, lost = drivers.start(config)
    assert is_lake_there(drivers.session, config)
    (tmp_path / "lake").rename(away)
    (tmp_path / "lake").mkdir()  # where it was mounted
    time.sleep(4 * SHORT)
    assert not is_lake_there(drivers.session, config)
    assert not any((tmp_path / "lake").iterdir())
    (tmp_path / "lake").rmdir()
    away.rename(tmp_path / "lake")
    before = lease.read_text()
    wait_until(lambda: lease.read_text() != before)
    assert is_lake_there(drivers.session, config)
    assert not lost


def test_files_that_were_there_are_not_taken_for_removed_where_their_volume_is_gone(
    session: SparkSession, tmp_path: Path
) -> None:
    folder = tmp_path / "paused"
    assert names_in(session, str(folder)) == []
    JsonFile(session, f"{folder}/t.json").write({})
    assert names_in(session, str(folder)) == ["t.json"]
    shutil.rmtree(folder)
    with pytest.raises(TransientError, match="lake-missing"):
        names_in(session, str(folder), had_files=True)
    folder.mkdir()
    assert names_in(session, str(folder), had_files=True) == []


def test_a_driver_that_was_killed_here_is_followed_at_once(drivers: Drivers) -> None:
    config = drivers.config()
    drivers.write(replace(this_process(lease_paths(config)[0]), pid=999_999_999, born="1"))
    refuse_second(config)
    before = time.monotonic()
    drivers.start()
    assert time.monotonic() - before < 3 * SHORT


def test_a_driver_elsewhere_is_waited_for_and_followed_when_it_gives_no_sign(drivers: Drivers) -> None:
    # Its clock is a day ahead, which must not matter.
    drivers.write(replace(elsewhere(drivers.config()), beat=time.time() + 86_400))
    before = time.monotonic()
    drivers.start()
    assert time.monotonic() - before >= 3 * SHORT


def test_a_driver_elsewhere_that_gives_a_sign_keeps_the_lease(drivers: Drivers) -> None:
    other = elsewhere(drivers.config())
    drivers.write(other)
    beating = threading.Timer(SHORT, lambda: drivers.write(replace(other, beat=other.beat + 10)))
    beating.start()
    with pytest.raises(AlreadyRunning, match="on other"):
        drivers.start()
    beating.join()
    holder = read_holder(lease_paths(drivers.config())[0])
    assert holder is not None
    assert holder.id == other.id


def test_a_driver_that_slept_finds_that_another_one_took_over_and_leaves_it_alone(drivers: Drivers) -> None:
    lease, lost = drivers.start()
    other = elsewhere(drivers.config())
    drivers.write(other)
    wait_until(lambda: lost)
    assert "has taken over" in lost[0].message
    lease.release()
    assert [read_holder(path) for path in lease_paths(drivers.config())] == [other, other]


def test_a_lease_that_was_deleted_is_written_again(drivers: Drivers) -> None:
    _, lost = drivers.start()
    paths = lease_paths(drivers.config())
    for path in paths:
        Path(path).unlink()
    wait_until(lambda: all(read_holder(path) is not None for path in paths))
    assert not lost


@pytest.mark.parametrize("text", ["", "no JSON", "{}"])
def test_a_file_that_nobody_understands_holds_nobody_up(drivers: Drivers, text: str) -> None:
    for path in lease_paths(drivers.config()):
        Path(path).parent.mkdir(parents=True)
        Path(path).write_text(text, encoding="utf-8")
    refuse_second(drivers.config())
    drivers.start()


def test_of_many_drivers_that_start_at_once_one_is_left(drivers: Drivers) -> None:
    config, found = drivers.config(), list[list[AlreadyRunning]]()
    # Of other machines each, so that none sees at once that another one lives.
    leases = []
    for number in range(5):
        found.append([])
        lease = Lease(drivers.session, config, found[-1].append, beat_every=SHORT, expires_after=3 * SHORT)
        lease._me = replace(lease._me, host=f"h{number}", machine=f"m{number}")
        leases.append(lease)
    refused = list[int]()

    def take(number: int) -> None:
        try:
            leases[number].acquire()
        except AlreadyRunning:
            refused.append(number)

    threads = [threading.Thread(target=take, args=(number,)) for number in range(5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    wait_until(lambda: len(refused) + sum(map(len, found)) == 4)
    time.sleep(3 * SHORT)
    assert len(refused) + sum(map(len, found)) == 4
    for lease in leases:
        lease.release()


def test_a_place_that_can_not_be_written_is_reported(drivers: Drivers) -> None:
    (drivers.folder / "file").write_text("")
    with pytest.raises(SetupError, match="the lease of this config") as raised:
        drivers.start(drivers.config(lake="file/lake"))
    assert raised.value.code == "lease-unwritable"
