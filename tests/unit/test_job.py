"""How the service starts."""

from __future__ import annotations

import threading
from pathlib import Path
from unittest.mock import MagicMock

import pytest
from tests.support.waiting import wait_until

from distributary import job
from distributary.config.load import load
from distributary.control import pauses, polling_thread, resume_requests
from distributary.errors import SetupError
from distributary.observe.recorder import Recorder
from distributary.observe.status import ServiceStatus
from distributary.quarantine import set_aside

ROOT = Path(__file__).parents[2]


def spark(*, stopped: bool) -> MagicMock:
    """A session of Spark whose context has stopped, or runs."""
    session = MagicMock()
    session.sparkContext._jsc.sc().isStopped.return_value = stopped
    return session


def service_without_spark(
    status: ServiceStatus, monkeypatch: pytest.MonkeyPatch, session: MagicMock | None = None
) -> job.Service:
    """A service whose stages do nothing, and whose storage has nothing."""
    for name in (
        *("TransactionFollower", "ConsumerGroup", "OffsetPlanner", "MaintenanceThread", "Scheduler", "TableSet"),
        *("KafkaRecords", "TaggedJobs"),
    ):
        monkeypatch.setattr(job, name, MagicMock())
    monkeypatch.setattr(job, "_TURN", 0.01)
    session = session or spark(stopped=False)
    service = job.Service(load(ROOT / "config/example.yaml"), session, MagicMock(), Recorder(status))
    monkeypatch.setattr(service, "_planner", MagicMock(keep_running=lambda: False))
    monkeypatch.setattr(service, "_listen_for_signals", lambda: None)
    monkeypatch.setattr(service._pauses, "read", lambda: None)
    monkeypatch.setattr(service._set_aside, "read", lambda: None)
    monkeypatch.setattr(service._halts, "clear", lambda: None)
    return service


def test_the_loop_turns_while_the_storage_does_not_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    """What operators ask for lies in the storage: who looks for it waits, and the loop does not."""
    answers, asked = threading.Event(), threading.Event()

    def hangs(*_: object) -> list[str]:
        asked.set()
        answers.wait(60)
        return []

    monkeypatch.setattr(polling_thread, "_JOIN_SECONDS", 0.1)
    for module in (resume_requests, pauses, set_aside):
        monkeypatch.setattr(module, "names_in", hangs)
    status = ServiceStatus()
    service = service_without_spark(status, monkeypatch)
    beats: list[float] = []
    monkeypatch.setattr(status, "heartbeat", lambda: beats.append(0))
    running = threading.Thread(target=service.run, kwargs={"once": False})
    running.start()
    try:
        wait_until(asked.is_set)
        before = len(beats)
        wait_until(lambda: len(beats) > before + 5)
    finally:
        service.stopping.set()
        running.join(30)
        assert not running.is_alive()
        answers.set()


@pytest.mark.parametrize("place", ["_pauses.read", "_set_aside.read", "_halts.clear", "_table_set.plan_again"])
def test_a_storage_that_does_not_answer_for_ten_minutes_does_not_end_the_service(
    monkeypatch: pytest.MonkeyPatch, place: str
) -> None:
    """Neither while it starts nor while it looks again at topics that wait."""
    answers, asked = threading.Event(), threading.Event()
    now = [0.0]
    status = ServiceStatus(clock=lambda: now[0])
    service = service_without_spark(status, monkeypatch)
    for module in (resume_requests, pauses, set_aside):
        monkeypatch.setattr(module, "names_in", lambda *_: [])

    def hangs(*_: object, **__: object) -> None:
        asked.set()
        answers.wait(60)

    part, method = place.split(".")
    monkeypatch.setattr(getattr(service, part), method, hangs)
    running = threading.Thread(target=service.run, kwargs={"once": False})
    running.start()
    try:
        wait_until(asked.is_set)
        now[0] += 601
        assert status.live(600)
    finally:
        service.stopping.set()
        answers.set()
        running.join(30)
        assert not running.is_alive()


def test_the_service_ends_once_spark_has_stopped(monkeypatch: pytest.MonkeyPatch) -> None:
    service = service_without_spark(ServiceStatus(), monkeypatch, spark(stopped=True))
    with pytest.raises(SetupError, match="Spark has stopped") as ended:
        service.run(once=False)
    assert ended.value.code == "spark-gone"


def test_a_config_that_is_changed_while_the_service_starts_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    """What the watch compares with is read before anything that takes time."""
    seen: list[str] = []

    class Watch:
        def __init__(self, *_: object) -> None:
            seen.append("watch")

    def broker(*_: object) -> None:
        seen.append("kafka")
        raise RuntimeError("no further")

    monkeypatch.setattr(job, "ConfigWatcher", Watch)
    monkeypatch.setattr(job, "KafkaClient", broker)
    file = ROOT / "config/example.yaml"
    with pytest.raises(RuntimeError, match="no further"):
        job.run(load(file), once=False, file=file)
    assert seen == ["watch", "kafka"]
