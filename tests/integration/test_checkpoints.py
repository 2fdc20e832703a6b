"""A stream's checkpoint that is restored or broken: it has only planned offsets; tables use their own."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from tests.support.changes import Topic
from tests.support.kafka import produce
from tests.support.spark import Bench

from distributary.job import Service
from distributary.observe.recorder import Recorder
from distributary.observe.status import ServiceStatus

pytestmark = pytest.mark.usefixtures("signal_handlers")


class Runs:
    """Runs of the service, each after one more row."""

    def __init__(self, bench: Bench) -> None:
        self.bench = bench
        self.rows = 0

    @property
    def checkpoint(self) -> Path:
        return self.bench.folder / "checkpoint"

    @property
    def offsets(self) -> list[Path]:
        """The stream's batches, the newest last."""
        return sorted((self.checkpoint / "offsets").glob("[0-9]*"), key=lambda path: int(path.name))

    def take(self) -> None:
        """Applies one more row; all must be there, and each change applied once."""
        self.rows += 1
        topic = Topic(self.bench.topic)
        topic.change("c", {"id": self.rows}, {"id": self.rows, "v": self.rows}, at=self.rows)
        produce(self.bench.kafka, topic.records)
        config = self.bench.config()
        recorder = Recorder(ServiceStatus())
        service = Service(config, self.bench.session, self.bench.client(config), recorder)
        assert service.run(once=True) == 0
        assert self.bench.rows() == [(n, n) for n in range(1, self.rows + 1)]
        assert recorder.status.snapshot()["tables"]["dbo.t"]["records_applied"] == self.rows

    def set_aside(self) -> list[Path]:
        """Checkpoints that the service did not go on with."""
        return sorted(self.bench.folder.glob("checkpoint.unusable-*"))


@pytest.fixture
def runs(kafka_bench: Bench) -> Runs:
    runs = Runs(kafka_bench.create())
    runs.take()
    return runs


def test_6_1_an_older_checkpoint_put_back_loses_and_doubles_nothing(runs: Runs) -> None:
    shutil.copytree(runs.checkpoint, runs.bench.folder / "copy")
    runs.take()
    shutil.rmtree(runs.checkpoint)
    shutil.copytree(runs.bench.folder / "copy", runs.checkpoint)
    runs.take()
    assert not runs.set_aside()


@pytest.mark.parametrize(
    "broken",
    [
        pytest.param("empty", id="an empty file of offsets"),
        pytest.param("metadata", id="broken metadata", marks=pytest.mark.slow),
    ],
)
def test_6_1_a_checkpoint_that_cant_be_used_is_set_aside(runs: Runs, broken: str) -> None:
    runs.take()
    file, text = {
        "empty": (runs.offsets[-1], ""),
        "metadata": (runs.checkpoint / "metadata", "{"),
    }[broken]
    assert file.exists()
    file.write_text(text)
    file.with_name(f".{file.name}.crc").unlink(missing_ok=True)
    runs.take()
    runs.take()
    assert len(runs.set_aside()) == 1
